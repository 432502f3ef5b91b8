/* test_entries.c: which entries an iterator shows, and how many a handle knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"

static void say(sessile_session *s)
{
    assert_int_equal(sessile_append(s,
                                    sessile_text("{\"role\":\"user\",\"content\":\"x\"}"),
                                    NULL, NULL),
                     SESSILE_OK);
}

static sessile_id next_id(sessile_entries *e)
{
    const char *json;
    size_t size;
    sessile_id id;
    assert_int_equal(sessile_entries_next(e, &id, &json, &size, NULL), SESSILE_OK);
    return size ? id : SESSILE_NO_ID;
}

/* The ids that options select, as a text: "3 4 ". */
static const char *shown(sessile_session *s, const sessile_entries_options *options)
{
    static char out[200];
    sessile_entries *e;
    size_t n = 0;
    sessile_id id;
    assert_int_equal(sessile_entries_open(&e, s, options, NULL), SESSILE_OK);
    out[0] = 0;
    while ((id = next_id(e)) != SESSILE_NO_ID)
        n += (size_t)snprintf(out + n, sizeof out - n, "%u ", (unsigned)id);
    assert_int_equal(next_id(e), SESSILE_NO_ID);
    sessile_entries_close(e);
    return out;
}

/* Messages 1, 2, 4 and 5, a custom entry 3, a label 6. */
static void fill(sessile_session *s)
{
    say(s);
    say(s);
    assert_int_equal(sessile_append_custom(s, sessile_text("{}"), NULL, NULL, NULL),
                     SESSILE_OK);
    say(s);
    say(s);
    assert_int_equal(sessile_label(s, 1, sessile_text("l"), NULL), SESSILE_OK);
}

static void entries_are_read_between_two(void **state)
{
    run_world *w = *state;
    sessile_entries_options o;
    fill(w->s);
    sessile_entries_options_init(&o);
    assert_string_equal(shown(w->s, NULL), "0 1 2 3 4 5 6 ");
    assert_string_equal(shown(w->s, &o), "0 1 2 3 4 5 6 ");
    o.after = 3;
    assert_string_equal(shown(w->s, &o), "4 5 6 ");
    o.before = 6;
    assert_string_equal(shown(w->s, &o), "4 5 ");
    o.limit = 1;
    assert_string_equal(shown(w->s, &o), "4 ");
    o.reverse = 1;
    assert_string_equal(shown(w->s, &o), "5 ");
    o.limit = 9;
    assert_string_equal(shown(w->s, &o), "5 4 ");
    o.before = 2;
    assert_string_equal(shown(w->s, &o), "");
    o.before = SESSILE_NO_ID;
    o.after = 6;
    assert_string_equal(shown(w->s, &o), "");
    o.after = SESSILE_NO_ID;
    o.before = 0;
    assert_string_equal(shown(w->s, &o), "");
}

static void entries_of_some_types_are_counted(void **state)
{
    run_world *w = *state;
    const char *const types[] = {"custom", "message"};
    sessile_entries_options o;
    fill(w->s);
    sessile_entries_options_init(&o);
    o.types = types;
    o.type_count = 1;
    assert_string_equal(shown(w->s, &o), "3 ");
    o.reverse = 1;
    o.limit = 1;
    assert_string_equal(shown(w->s, &o), "3 ");
    o.type_count = 2;
    o.limit = 3;
    assert_string_equal(shown(w->s, &o), "5 4 3 ");
    o.reverse = 0;
    assert_string_equal(shown(w->s, &o), "1 2 3 ");
}

/* An iterator shows what there was when it was opened. */
static void entries_written_later_are_not_shown(void **state)
{
    run_world *w = *state;
    sessile_entries *e;
    say(w->s);
    assert_int_equal(sessile_entries_open(&e, w->s, NULL, NULL), SESSILE_OK);
    say(w->s);
    assert_int_equal(next_id(e), 0);
    assert_int_equal(next_id(e), 1);
    assert_int_equal(next_id(e), SESSILE_NO_ID);
    sessile_entries_close(e);
}

static void entries_that_cannot_be_are_refused(void **state)
{
    run_world *w = *state;
    const char *const types[] = {"massage"};
    sessile_entries_options o;
    sessile_entries *e;
    sessile_error err;
    fill(w->s);
    sessile_entries_options_init(&o);
    o.after = 7;
    assert_int_equal(sessile_entries_open(&e, w->s, &o, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "7 entries, and 00000007"));
    o.after = SESSILE_NO_ID;
    o.before = 7;
    assert_int_equal(sessile_entries_open(&e, w->s, &o, &err), SESSILE_INVALID);
    assert_null(e);
    o.before = SESSILE_NO_ID;
    o.types = types;
    o.type_count = 1;
    assert_int_equal(sessile_entries_open(&e, w->s, &o, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "'massage'"));
    o.types = NULL;
    assert_int_equal(sessile_entries_open(&e, w->s, &o, &err), SESSILE_INVALID);
}

static void a_length_is_what_the_handle_knows(void **state)
{
    run_world *w = *state;
    sessile_session *other = session_at(w->store);
    sessile_id head;
    assert_int_equal(sessile_session_length(w->s), 1);
    say(w->s);
    assert_int_equal(sessile_session_length(w->s), 2);
    say(other);
    assert_int_equal(sessile_session_length(w->s), 2);
    assert_int_equal(sessile_head(w->s, &head, NULL), SESSILE_OK);
    assert_int_equal(sessile_session_length(w->s), 3);
    assert_int_equal(sessile_session_length(NULL), 0);
    session_done(other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(entries_are_read_between_two),
        IN_WORLD(entries_of_some_types_are_counted),
        IN_WORLD(entries_written_later_are_not_shown),
        IN_WORLD(entries_that_cannot_be_are_refused),
        IN_WORLD(a_length_is_what_the_handle_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
