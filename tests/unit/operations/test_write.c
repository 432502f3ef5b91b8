/* test_write.c: messages and custom entries in one commit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/runs.h"

static sessile_write_entry said(const char *json)
{
    return (sessile_write_entry){sessile_text(json), 0, NULL};
}

static sessile_write_entry fact(const char *json, const char *source)
{
    return (sessile_write_entry){sessile_text(json), 1, source};
}

#define ONE "{\"role\":\"user\",\"content\":\"one\"}"
#define TWO "{\"role\":\"assistant\",\"content\":\"two\"}"

static void assert_entry(sessile_session *s, sessile_id id, const char *part)
{
    sessile_error err;
    char *text;
    size_t size;
    must(sessile_entry(s, id, &text, &size, &err), &err);
    if (!strstr(text, part))
        fail_msg("%s lacks %s", text, part);
    sessile_free(text);
}

static void a_fact_is_about_the_message_before_it(void **state)
{
    run_world *w = *state;
    const sessile_write_entry list[] = {fact("{\"n\":0}", NULL), said(ONE),
                                        fact("{\"n\":1}", "agent"), said(TWO),
                                        fact("{\"n\":2}", "tool")};
    sessile_id first, head;
    sessile_error err;
    must(sessile_write(w->s, list, 5, SESSILE_NO_ID, &first, &err), &err);
    assert_int_equal(first, 1);
    assert_entry(w->s, 1, "\"parent_id\":\"00000000\"");
    assert_entry(w->s, 1, "\"source\":\"host\"");
    assert_entry(w->s, 2, "\"parent_id\":\"00000000\"");
    assert_entry(w->s, 3, "\"parent_id\":\"00000002\"");
    assert_entry(w->s, 3, "\"source\":\"agent\"");
    assert_entry(w->s, 4, "\"parent_id\":\"00000002\"");
    assert_entry(w->s, 5, "\"parent_id\":\"00000004\"");
    assert_entry(w->s, 5, "\"data\":{\"n\":2}");
    must(sessile_head(w->s, &head, &err), &err);
    assert_int_equal(head, 4);
    assert_int_equal(context_size(w->s), 2);
}

static void one_that_is_wrong_keeps_all_out(void **state)
{
    run_world *w = *state;
    const sessile_write_entry wrong[] = {said("{\"role\":\"nobody\"}"), said("{"),
                                         fact("[]", NULL)};
    sessile_error err;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const sessile_write_entry list[] = {said(ONE), fact("{}", NULL), wrong[i]};
        assert_refused(sessile_write(w->s, list, 3, SESSILE_NO_ID, NULL, &err),
                       SESSILE_INVALID, &err, "entry 3");
    }
    const sessile_write_entry unknown[] = {said(ONE), fact("{}", "nobody")};
    assert_refused(sessile_write(w->s, unknown, 2, SESSILE_NO_ID, NULL, &err),
                   SESSILE_INVALID, &err, "source");
    assert_refused(sessile_write(w->s, unknown, 0, SESSILE_NO_ID, NULL, &err),
                   SESSILE_INVALID, &err, "at least 1 entry");
    assert_int_equal(sessile_session_length(w->s), 1);
}

static void a_base_that_moved_is_a_conflict(void **state)
{
    run_world *w = *state;
    sessile_session *other = session_at(w->store);
    const sessile_write_entry list[] = {said(ONE), fact("{}", NULL)};
    sessile_id first;
    sessile_error err;
    must(sessile_write(w->s, list, 2, 0, &first, &err), &err);
    assert_int_equal(sessile_write(other, list, 2, 0, NULL, &err), SESSILE_CONFLICT);
    assert_int_equal(sessile_write(other, list + 1, 1, 0, NULL, &err), SESSILE_CONFLICT);
    must(sessile_write(other, list + 1, 1, first, NULL, &err), &err);
    must(sessile_write(other, list, 2, SESSILE_NO_ID, NULL, &err), &err);
    assert_int_equal(message_count(w->s), 2);
    session_done(other);
}

static void a_suspended_session_takes_facts(void **state)
{
    run_world *w = *state;
    const sessile_write_entry list[] = {fact("{}", NULL), said(ONE)};
    sessile_error err;
    must(sessile_suspend(w->s, sessile_text("x"), sessile_text(NULL), NULL, &err), &err);
    assert_int_equal(sessile_write(w->s, list, 2, SESSILE_NO_ID, NULL, &err),
                     SESSILE_SUSPENDED);
    must(sessile_write(w->s, list, 1, SESSILE_NO_ID, NULL, &err), &err);
    assert_int_equal(message_count(w->s), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_fact_is_about_the_message_before_it),
        IN_WORLD(one_that_is_wrong_keeps_all_out),
        IN_WORLD(a_base_that_moved_is_a_conflict),
        IN_WORLD(a_suspended_session_takes_facts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
