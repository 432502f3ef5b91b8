/* test_entries.c: entries read from one on, and how many a handle knows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

static void entries_are_read_from_one_on(void **state)
{
    run_world *w = *state;
    sessile_entries *e;
    sessile_error err;
    for (int i = 1; i < 5; i++)
        say(w->s);
    assert_int_equal(sessile_entries_open(&e, w->s, NULL), SESSILE_OK);
    assert_int_equal(sessile_entries_seek(e, 3, NULL), SESSILE_OK);
    assert_int_equal(next_id(e), 3);
    assert_int_equal(next_id(e), 4);
    assert_int_equal(next_id(e), SESSILE_NO_ID);
    assert_int_equal(sessile_entries_seek(e, 0, NULL), SESSILE_OK);
    assert_int_equal(next_id(e), 0);
    assert_int_equal(sessile_entries_seek(e, 5, NULL), SESSILE_OK);
    assert_int_equal(next_id(e), SESSILE_NO_ID);
    assert_int_equal(sessile_entries_seek(e, 6, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "5 entries"));
    sessile_entries_close(e);
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
        IN_WORLD(entries_are_read_from_one_on),
        IN_WORLD(a_length_is_what_the_handle_knows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
