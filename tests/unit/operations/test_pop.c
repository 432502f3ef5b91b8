/* test_pop.c: the newest messages, taken off the conversation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "support/check.h"
#include "support/runs.h"

static sessile_id say(sessile_session *s, const char *content)
{
    char text[80];
    sessile_error err;
    sessile_id id;
    snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"%s\"}", content);
    must(sessile_append(s, sessile_text(text), &id, &err), &err);
    return id;
}

static sessile_id head_of(sessile_session *s)
{
    sessile_error err;
    sessile_id id;
    must(sessile_head(s, &id, &err), &err);
    return id;
}

/* Takes n off and expects their contents, as "two three ". */
static void pop(sessile_session *s, size_t n, const char *expected)
{
    char got[200] = "";
    sessile_message *rows;
    sessile_error err;
    size_t count;
    must(sessile_pop(s, n, SESSILE_NO_ID, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        const char *content = strstr(rows[i].json.data, "\"content\":\"") + 11;
        strncat(got, content, (size_t)(strchr(content, '"') - content));
        strcat(got, " ");
    }
    sessile_free(rows);
    assert_string_equal(got, expected);
}

static void the_newest_messages_are_taken_off(void **state)
{
    run_world *w = *state;
    sessile_id one = say(w->s, "one");
    say(w->s, "two");
    say(w->s, "three");
    pop(w->s, 2, "two three ");
    assert_int_equal(head_of(w->s), one);
    assert_int_equal(message_count(w->s), 1);
    assert_int_equal(context_size(w->s), 1);
    pop(w->s, 5, "one ");
    assert_int_equal(head_of(w->s), 0);
    pop(w->s, 1, "");
    assert_int_equal(entries_with(w->s, "three"), 1);
}

/* One that is said afterwards follows those that stayed. */
static void the_conversation_goes_on_before_them(void **state)
{
    run_world *w = *state;
    say(w->s, "one");
    sessile_id two = say(w->s, "two");
    pop(w->s, 1, "two ");
    say(w->s, "other");
    pop(w->s, 2, "one other ");
    sessile_error err;
    must(sessile_branch(w->s, two, sessile_text(NULL), NULL, &err), &err);
    pop(w->s, 3, "one two ");
}

static void a_turn_and_its_compaction_lose_messages(void **state)
{
    run_world *w = *state;
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    host_script sc = {.on = drop_first, .arg = &hook};
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    sessile_outcome out;
    sessile_message *rows;
    sessile_error err;
    size_t count;
    sessile_run_free(take_turn(w->s, NULL, 4, &sc, &out));
    sessile_id before = head_of(w->s);
    sessile_run_free(take_turn(w->s, p, 2, &sc, &out));
    assert_int_not_equal(out.compaction, SESSILE_NO_ID);
    size_t left = context_size(w->s);
    assert_true(left < 6);
    must(sessile_pop(w->s, 1, out.head, &rows, &count, &err), &err);
    assert_int_equal(rows[0].key.entry, out.last - 1);
    sessile_free(rows);
    assert_int_equal(context_size(w->s), 5); /* the compaction was after it */
    must(sessile_pop(w->s, 1, SESSILE_NO_ID, &rows, &count, &err), &err);
    sessile_free(rows);
    assert_int_equal(head_of(w->s), before);
    sessile_policy_free(p);
}

/* What somebody else has said since is not taken off unseen. */
static void a_base_that_moved_is_a_conflict(void **state)
{
    run_world *w = *state;
    sessile_session *other = session_at(w->store);
    sessile_message *rows;
    sessile_error err;
    size_t count;
    sessile_id one = say(w->s, "one");
    head_of(other);
    sessile_id two = say(w->s, "two");
    assert_int_equal(sessile_pop(other, 1, SESSILE_NO_ID, &rows, &count, &err),
                     SESSILE_CONFLICT);
    assert_null(rows);
    assert_int_equal(count, 0);
    assert_int_equal(sessile_pop(w->s, 1, one, &rows, &count, &err), SESSILE_CONFLICT);
    assert_int_equal(message_count(w->s), 2);
    must(sessile_pop(other, 1, two, &rows, &count, &err), &err);
    assert_int_equal(rows[0].key.entry, two);
    sessile_free(rows);
    session_done(other);
}

static void nothing_is_taken_off_a_suspended_session(void **state)
{
    run_world *w = *state;
    sessile_message *rows;
    sessile_error err;
    size_t count;
    say(w->s, "one");
    assert_int_equal(sessile_pop(w->s, 0, SESSILE_NO_ID, &rows, &count, &err),
                     SESSILE_INVALID);
    must(sessile_suspend(w->s, sessile_text("x"), sessile_text(NULL), NULL, &err), &err);
    assert_int_equal(sessile_pop(w->s, 1, SESSILE_NO_ID, &rows, &count, &err),
                     SESSILE_SUSPENDED);
    assert_int_equal(message_count(w->s), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(the_newest_messages_are_taken_off),
        IN_WORLD(the_conversation_goes_on_before_them),
        IN_WORLD(a_turn_and_its_compaction_lose_messages),
        IN_WORLD(a_base_that_moved_is_a_conflict),
        IN_WORLD(nothing_is_taken_off_a_suspended_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
