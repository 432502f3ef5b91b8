/*
 * test_fork.c: a session made of another one: what comes along and what does not.
 *
 * Every test runs over a volatile, a sealed and a plain store. What may go wrong is in
 * test_fork_safety.c.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/faulty.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "support/forks.h"

/* ------------------------------------------------------------------ helpers */

typedef sessile_status (*members_fn)(sessile_session *, char **, size_t *,
                                     sessile_error *);

static void assert_members(sessile_session *s, members_fn read, const char *expected)
{
    char *text;
    size_t size;
    sessile_error err;

    must(read(s, &text, &size, &err), &err);
    assert_string_equal(text, expected);
    sessile_free(text);
}

/* ------------------------------------------------------------------ what comes along */

static void a_fork_holds_everything_up_to_the_entry(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_link origin;

    say(s, "user", "one");
    sessile_id at = say(s, "assistant", "two");
    say(s, "user", "three");
    sessile_session *f = fork_at(s, at, "b");
    assert_contents(f, "one two");
    assert_head(f, at);
    assert_same_entries(s, f, at);
    assert_int_equal(log_count(f->core->log), at + 1);
    assert_true(sessile_session_origin(f, &origin));
    assert_int_equal(origin.id.size, 1);
    assert_memory_equal(origin.id.data, "a", 1);
    assert_memory_equal(origin.agent.data, "main", 4);
    assert_int_equal(origin.entry, at);
    assert_int_equal(strlen(origin.tag), p->kind == STORE_SEALED ? 32 : 16);
    assert_false(sessile_session_origin(s, &origin));
    /* each goes its own way */
    say(f, "user", "other");
    say(s, "assistant", "four");
    assert_contents(f, "one two other");
    assert_contents(s, "one two three four");
    session_closed(f);
    f = session_resumed(p->store, "b");
    assert_contents(f, "one two other");
    assert_true(sessile_session_origin(f, &origin));
    assert_int_equal(origin.entry, at);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

static void without_an_entry_it_forks_at_the_head(void **state)
{
    sessile_session_options o;
    sessile_session *s = session_in(state, "a");

    say(s, "user", "one");
    sessile_id leaf = say(s, "user", "two");
    sessile_session *f = fork_at(s, SESSILE_NO_ID, "whole");
    assert_contents(f, "one two");
    session_closed(f);
    /* a head that was moved back, with an abandoned branch behind it */
    move_head(s, 1);
    say(s, "user", "three");
    move_head(s, leaf);
    f = fork_at(s, SESSILE_NO_ID, "back");
    assert_contents(f, "one two");
    assert_int_equal(log_count(f->core->log), leaf + 1);
    session_closed(f);
    /* nothing on the path: an empty fork */
    move_head(s, 0);
    sessile_session_options_init(&o);
    f = fork_with(s, SESSILE_NO_ID, &o);
    assert_contents(f, "");
    assert_head(f, 0);
    assert_int_equal(f->core->identity.id_size, 36);
    session_closed(f);
    session_closed(s);
}

static void branches_and_compactions_below_come_along(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");

    say(s, "user", "one");
    sessile_id two = say(s, "user", "two");
    put_entry(
        s, "compaction", SESSILE_NO_ID,
        "{\"context\":[\"00000003.1\"],\"upto\":\"00000002\",\"inserted\":[{\"n\":1,"
        "\"turn\":1,\"tokens\":[3,\"estimate\"],\"covers\":[\"00000001-00000002\"],"
        "\"message\":{\"role\":\"user\",\"content\":\"in short\"}}]}");
    sessile_id four = say(s, "user", "four");
    move_head(s, two);
    sessile_id branch = say(s, "user", "aside");
    move_head(s, four);
    sessile_id last = say(s, "user", "last");
    sessile_session *f = fork_at(s, last, "b");
    char *here = context_keys(s, last), *there = context_keys(f, last);
    assert_string_equal(here, there);
    assert_non_null(strstr(there, "00000003.1"));
    free(here);
    free(there);
    here = context_keys(s, branch);
    there = context_keys(f, branch);
    assert_string_equal(here, there);
    free(here);
    free(there);
    assert_same_entries(s, f, last);
    session_closed(f);
    /* from the branch that was left: the same ids */
    f = fork_at(s, branch, "c");
    assert_contents(f, "one two aside");
    assert_head(f, branch);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

static void a_fork_may_end_in_the_middle_of_a_turn(void **state)
{
    static const char *const messages[] = {
        "{\"role\":\"user\",\"content\":\"ask\",\"usage\":{\"input\":3}}",
        "{\"role\":\"assistant\",\"content\":\"answer\",\"usage\":{\"input\":4}}"};
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_usage usage;
    sessile_error err;

    sessile_id turn = say_turn(s, messages, 2, ",\"usage\":{\"input\":10}");
    sessile_session *whole = fork_at(s, turn, "whole"), *half = fork_at(s, 1, "half");
    must(sessile_total_usage(whole, &usage, &err), &err);
    assert_int_equal(usage.input, 10);
    assert_contents(half, "ask");
    must(sessile_total_usage(half, &usage, &err), &err);
    assert_int_equal(usage.input, 3);
    say(half, "assistant", "another");
    session_closed(half);
    half = session_resumed(p->store, "half");
    assert_contents(half, "ask another");
    session_closed(half);
    session_closed(whole);
    session_closed(s);
    assert_clean(p->store);
}

static void labels_put_later_come_along_as_they_are_now(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_error err;

    sessile_id one = say(s, "user", "one");
    put_label(s, one, "early");
    put_label(s, one, "gone");
    sessile_id two = say(s, "user", "two");
    sessile_id three = say(s, "user", "three");
    put_label(s, one, "late");
    put_label(s, two, "pinned");
    put_label(s, three, "not in the fork");
    must(sessile_unlabel(s, one, sessile_text("gone"), &err), &err);
    put_label(s, two, "on and off");
    must(sessile_unlabel(s, two, sessile_text("on and off"), &err), &err);
    put_label(s, one, "again");
    must(sessile_unlabel(s, one, sessile_text("again"), &err), &err);
    put_label(s, one, "again");
    sessile_session *f = fork_at(s, two, "b");
    assert_labels(f, "00000001=early 00000001=late 00000001=again 00000004=pinned");
    assert_head(f, two);
    session_closed(f);
    f = session_resumed(p->store, "b");
    assert_labels(f, "00000001=early 00000001=late 00000001=again 00000004=pinned");
    /* and the fork of the fork */
    sessile_session *g = fork_at(f, one, "c");
    assert_labels(g, "00000001=early 00000001=late 00000001=again");
    assert_contents(g, "one");
    session_closed(g);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

static void title_settings_and_metadata_come_along_as_they_are_now(void **state)
{
    place *p = *state;
    sessile_session_options o;
    sessile_session *s;
    sessile_error err;

    sessile_session_options_init(&o);
    o.id = sessile_text("a");
    o.title = sessile_text("first");
    o.metadata = sessile_text("{\"team\":\"x\",\"n\":1}");
    must(sessile_create(&s, p->store, &o, &err), &err);
    must(sessile_set_settings(s, sessile_text("{\"model\":\"m1\",\"old\":true}"), &err),
         &err);
    give_title(s, "second");
    put_entry(s, "metadata", SESSILE_NO_ID, "{\"status\":\"archived\",\"ttl\":5}");
    sessile_id one = say(s, "user", "one");
    say(s, "user", "two");
    must(sessile_set_settings(s,
                              sessile_text("{\"model\":\"m2\",\"old\":null,"
                                           "\"deep\":{\"a\":[1,9007199254740993]}}"),
                              &err),
         &err);
    must(sessile_set_metadata(s, sessile_text("{\"n\":2,\"team\":null,\"k\":3}"), &err),
         &err);
    give_title(s, "third");
    sessile_session *f = fork_at(s, one, "b");
    assert_title(f, "third");
    assert_members(f, sessile_settings,
                   "{\"model\":\"m2\",\"deep\":{\"a\":[1,9007199254740993]}}");
    assert_members(f, sessile_metadata, "{\"n\":2,\"k\":3}");
    assert_null(facts_find(&f->core->fold.facts, FACT_METADATA, 0, "status", 6));
    assert_null(facts_find(&f->core->fold.facts, FACT_METADATA, 0, "ttl", 3));
    session_closed(f);
    /* what is given goes before what is there */
    sessile_session_options_init(&o);
    o.id = sessile_text("c");
    o.title = sessile_text("mine");
    o.metadata = sessile_text("{\"k\":4,\"new\":null}");
    f = fork_with(s, one, &o);
    assert_title(f, "mine");
    assert_members(f, sessile_metadata, "{\"n\":2,\"k\":4}");
    session_closed(f);
    o.id = sessile_text("d");
    o.title = sessile_text("");
    f = fork_with(s, 0, &o);
    assert_title(f, "");
    session_closed(f);
    assert_title(s, "third");
    session_closed(s);
    assert_clean(p->store);
}

static void a_suspension_is_not_inherited(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    sessile_suspension *suspension;
    sessile_error err;
    sessile_id id;

    sessile_id one = say(s, "user", "one");
    must(sessile_suspend(s, sessile_text("approval"), sessile_text(""), &id, &err), &err);
    /* stated behind the entry: it is not copied at all */
    sessile_session *f = fork_at(s, one, "b");
    must(sessile_suspended(f, &suspension, &err), &err);
    assert_null(suspension);
    say(f, "user", "goes on");
    session_closed(f);
    /* among the lines: it is ended */
    put_entry(s, "pending_run", one, "{\"policy\":\"summarize\"}");
    sessile_id later =
        put_entry(s, "message", one, "{\"role\":\"user\",\"content\":\"x\"}");
    must(sessile_suspended(s, &suspension, &err), &err);
    assert_non_null(suspension);
    sessile_free(suspension);
    f = fork_at(s, later, "c");
    must(sessile_suspended(f, &suspension, &err), &err);
    assert_null(suspension);
    say(f, "user", "goes on");
    assert_contents(f, "one x goes on");
    size_t pending;
    fact *pending_runs;
    assert_int_equal(facts_in_force(&f->core->fold.facts, FACT_PENDING_RUN,
                                    &p->store->alloc, &pending_runs, &pending),
                     0);
    assert_int_equal(pending, 0);
    session_closed(f);
    session_closed(s);
    assert_clean(p->store);
}

/* Above a block of the index, whose nodes a handle brings when they are wanted. */
static void a_long_session_forks_from_its_index(void **state)
{
    enum { MANY = 3 * LOG_BLOCK + 17 };
    place *p = *state;
    sessile_session *s = session_made(p->store, "a");
    char content[32];

    for (int i = 1; i <= MANY; i++) {
        snprintf(content, sizeof content, "m%d", i);
        say(s, "user", content);
    }
    put_label(s, 5, "far back");
    session_closed(s);
    s = session_resumed(p->store, "a");
    sessile_session *f = fork_at(s, 300, "b");
    assert_head(f, 300);
    assert_labels(f, "00000005=far back");
    assert_same_entries(s, f, 300);
    session_closed(f);
    f = fork_at(s, SESSILE_NO_ID, "c");
    assert_head(f, MANY);
    session_closed(f);
    session_closed(s);
    /* the fork has an index of its own */
    f = session_resumed(p->store, "c");
    assert_int_equal(f->core->index.restored, p->kind != STORE_RAM || place_elsewhere());
    assert_labels(f, "00000005=far back");
    session_closed(f);
    assert_clean(p->store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(a_fork_holds_everything_up_to_the_entry),
        OVER(without_an_entry_it_forks_at_the_head),
        OVER(branches_and_compactions_below_come_along),
        OVER(a_fork_may_end_in_the_middle_of_a_turn),
        OVER(labels_put_later_come_along_as_they_are_now),
        OVER(title_settings_and_metadata_come_along_as_they_are_now),
        OVER(a_suspension_is_not_inherited),
        OVER(a_long_session_forks_from_its_index),
    };

    return run_over_kinds("fork", STORE_RAM, tests, sizeof tests / sizeof *tests) != 0;
}
