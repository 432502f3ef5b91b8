/*
 * test_questions.c: how often a store is asked. To a database each call of its table is a
 * question and an answer over a wire: a write that looks first takes twice as long, and a
 * context that is read line by line a hundred times.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include "sessile.h"
#include "store/counted.h"

#include <cmocka.h>

#include "store/host.h"

static minimal_medium *medium;
static sessile_store *store, *other;
static sessile_session *here, *there;

static void append_text(sessile_session *s, const char *message)
{
    sessile_error err;
    assert_int_equal(sessile_append(s, sessile_text(message), NULL, &err), SESSILE_OK);
}

static void append_number(sessile_session *s, int i)
{
    char text[600];
    snprintf(text, sizeof text, "{\"role\":\"%s\",\"content\":\"%d %0*d\"}",
             i % 2 ? "assistant" : "user", i, 500, 0);
    append_text(s, text);
}

static int set_up(void **state)
{
    (void)state;
    medium = minimal_medium_new();
    store = counted_store(medium);
    other = counted_store(medium);
    assert_true(store && other);
    here = session_of(store, "asked");
    there = NULL;
    append_number(here, 0);
    memset(&counted, 0, sizeof counted);
    return 0;
}

static int tear_down(void **state)
{
    sessile_error err;
    (void)state;
    if (there)
        sessile_session_close(there, &err);
    sessile_session_close(here, &err);
    sessile_store_close(other);
    sessile_store_close(store);
    minimal_medium_free(medium);
    return 0;
}

/* The messages of the context, which are those of the list `wanted`. */
static void check_context(sessile_session *s, const char *const *wanted, size_t count)
{
    sessile_message *rows;
    sessile_error err;
    size_t got;

    assert_int_equal(sessile_context(s, SESSILE_NO_ID, &rows, &got, NULL, &err),
                     SESSILE_OK);
    assert_int_equal(got, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(rows[i].json.size, strlen(wanted[i]));
        assert_memory_equal(rows[i].json.data, wanted[i], rows[i].json.size);
    }
    sessile_free(rows);
}

/* ------------------------------------------------------------------ reading */

static void a_context_is_read_in_pieces(void **state)
{
    sessile_message *context, *all;
    sessile_error err;
    size_t count, in_all;
    (void)state;

    for (int i = 1; i < 5000; i++)
        append_number(here, i);
    memset(&counted, 0, sizeof counted);
    assert_int_equal(sessile_context(here, SESSILE_NO_ID, &context, &count, NULL, &err),
                     SESSILE_OK);
    assert_int_equal(count, 5000);
    assert_in_range(counted.read, 2, 8); /* some 3.5 MB, a megabyte at once */
    assert_int_equal(sessile_messages(here, NULL, &all, &in_all, &err), SESSILE_OK);
    assert_int_equal(in_all, count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(context[i].json.size, all[i].json.size);
        assert_memory_equal(context[i].json.data, all[i].json.data, all[i].json.size);
    }
    sessile_free(context);
    sessile_free(all);
}

static void an_answer_that_came_late_is_read_where_it_is(void **state)
{
    static const char call[] = "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":"
                               "[{\"id\":\"c1\",\"type\":\"function\",\"function\":"
                               "{\"name\":\"f\",\"arguments\":\"{}\"}}]}";
    static const char late[] =
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"found\"}";
    static const char *said[] = {"{\"role\":\"user\",\"content\":\"a\"}",
                                 call,
                                 "{\"role\":\"user\",\"content\":\"b\"}",
                                 "{\"role\":\"user\",\"content\":\"c\"}",
                                 late,
                                 "{\"role\":\"user\",\"content\":\"d\"}"};
    sessile_error err;
    (void)state;

    assert_int_equal(sessile_clear(here, &err), SESSILE_OK);
    for (size_t i = 0; i < 6; i++)
        append_text(here, said[i]);
    const char *wanted[] = {said[0], call, late, said[2], said[3], said[5]};
    there = session_of(other, "asked");
    check_context(there, wanted, 6);
    check_context(here, wanted, 6);
}

/* ------------------------------------------------------------------ writing */

static void who_writes_alone_does_not_look_first(void **state)
{
    (void)state;
    for (int i = 1; i <= 10; i++)
        append_number(here, i);
    assert_int_equal(counted.append, 10);
    assert_int_equal(counted.size, 0);
    assert_int_equal(counted.read, 0);
}

static void a_turn_is_one_question(void **state)
{
    static const char *const texts[2] = {"{\"role\":\"user\",\"content\":\"q\"}",
                                         "{\"role\":\"assistant\",\"content\":\"a\"}"};
    sessile_slice messages[2] = {sessile_text(texts[0]), sessile_text(texts[1])};
    sessile_error err;
    sessile_need need;
    sessile_run *run;
    (void)state;

    assert_int_equal(sessile_turn_begin(&run, here, messages, 2, NULL, &err), SESSILE_OK);
    assert_int_equal(sessile_run_step(run, &need, &err), SESSILE_OK);
    sessile_run_free(run);
    assert_int_equal(counted.append, 1);
    assert_int_equal(counted.size, 0);
}

static void who_meets_others_looks_first_until_they_are_gone(void **state)
{
    (void)state;
    there = session_of(other, "asked");
    append_number(there, 1);
    memset(&counted, 0, sizeof counted);
    append_number(here, 2); /* refused, then on what is there */
    assert_int_equal(counted.append, 2);
    append_number(there, 3);
    memset(&counted, 0, sizeof counted);
    append_number(here, 4);
    assert_int_equal(counted.append, 1);
    assert_int_equal(counted.size, 1);
    append_number(here, 5); /* looks, and meets nobody */
    memset(&counted, 0, sizeof counted);
    append_number(here, 6);
    assert_int_equal(counted.append, 1);
    assert_int_equal(counted.size, 0);

    sessile_message *rows;
    sessile_error err;
    size_t count;
    assert_int_equal(sessile_messages(there, NULL, &rows, &count, &err), SESSILE_OK);
    assert_int_equal(count, 7);
    for (size_t i = 0; i < count; i++) {
        char begins[64];
        int size = snprintf(begins, sizeof begins, "{\"role\":\"%s\",\"content\":\"%zu ",
                            i % 2 ? "assistant" : "user", i);
        assert_memory_equal(rows[i].json.data, begins, (size_t)size);
    }
    sessile_free(rows);
}

/* A turn that was thought on an older head is refused, also when nobody looked first. */
static void a_turn_on_a_head_that_moved_is_still_a_conflict(void **state)
{
    sessile_slice message = sessile_text("{\"role\":\"user\",\"content\":\"late\"}");
    sessile_error err;
    sessile_run *run;
    (void)state;

    append_number(here, 1);
    there = session_of(other, "asked");
    append_number(there, 2);
    assert_int_equal(sessile_turn_begin(&run, here, &message, 1, NULL, &err),
                     SESSILE_CONFLICT);
    assert_null(run);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_context_is_read_in_pieces, set_up, tear_down),
        cmocka_unit_test_setup_teardown(an_answer_that_came_late_is_read_where_it_is,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_writes_alone_does_not_look_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(a_turn_is_one_question, set_up, tear_down),
        cmocka_unit_test_setup_teardown(who_meets_others_looks_first_until_they_are_gone,
                                        set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_turn_on_a_head_that_moved_is_still_a_conflict,
                                        set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
