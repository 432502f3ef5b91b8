/*
 * test_door_limits.c: how often calls of a view pass, by a clock that the test sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessile_access.h"
#include "sessile_memory.h"
#include "support/check.h"
#include "support/limits.h"
#include "support/sessions.h"

#include <cmocka.h>

typedef struct world {
    limit_clock clock;
    sessile_store *store, *view;
    sessile_error err;
} world;

static sessile_store *view_of(world *w, const char *user, const char *actor)
{
    const char *admin = "admin";
    sessile_credential c;
    sessile_store *view;

    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.actor = sessile_text(actor);
    c.roles = &admin;
    c.role_count = 1;
    must(sessile_store_as(&view, w->store, &c, &w->err), &w->err);
    return view;
}

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    sessile_store_options so;
    sessile_guard_options go;

    limit_clock_init(&w->clock);
    os_current = &w->clock.table;
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&w->store, "ram:", &so, &w->err), &w->err);
    sessile_guard_options_init(&go);
    go.limits.on = 1;
    must(sessile_store_guard(w->store, &go, &w->err), &w->err);
    w->view = view_of(w, "ann", NULL);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;

    sessile_store_close(w->view);
    sessile_store_close(w->store);
    os_current = &os_posix;
    free(w);
    return 0;
}

static sessile_status make(world *w, sessile_store *st)
{
    sessile_session_options o;
    sessile_session *s;
    sessile_status status;

    sessile_session_options_init(&o);
    status = sessile_create(&s, st, &o, &w->err);
    if (!status)
        session_closed(s);
    return status;
}

/* It was refused by that rule, and passes once its minute is over. */
static void assert_limit(world *w, sessile_status status, const char *rule)
{
    assert_int_equal(status, SESSILE_LIMIT);
    assert_string_equal(w->err.rule, rule);
    assert_in_range(w->err.retry_ms, 1, 70000);
    w->clock.us += (uint64_t)w->err.retry_ms * 1000;
}

static void the_eleventh_session_of_a_minute_is_refused(void **state)
{
    world *w = *state;
    sessile_store *bob = view_of(w, "bob", NULL);
    sessile_store *narrower = view_of(w, "ann", "helper");

    for (int i = 0; i < 10; i++)
        must(make(w, i % 2 ? narrower : w->view), &w->err);
    must(make(w, bob), &w->err); /* each user has their own */
    for (int i = 0; i < 30; i++) /* and the host's own handle is not counted */
        must(make(w, w->store), &w->err);
    sessile_store *again = view_of(w, "ann", NULL);
    assert_limit(w, make(w, again), "session_creation");
    must(make(w, again), &w->err);
    sessile_store_close(again);
    sessile_store_close(narrower);
    sessile_store_close(bob);
}

/* Opening counts when a session is made, not when it is there. */
static void what_is_there_is_opened_without_end(void **state)
{
    world *w = *state;
    char id[8];

    for (int i = 0; i < 40; i++) {
        sessile_session *s;
        snprintf(id, sizeof id, "s%d", i % 10);
        sessile_session_options o = named(id);
        must(sessile_session_open(&s, w->view, &o, &w->err), &w->err);
        session_closed(s);
    }
    sessile_session_options o = named("one more");
    sessile_session *s;
    assert_limit(w, sessile_session_open(&s, w->view, &o, &w->err), "session_creation");
    assert_null(s);
}

static void a_view_without_a_user_is_counted_by_its_actor(void **state)
{
    world *w = *state;
    sessile_store *bot = view_of(w, NULL, "bot"), *other = view_of(w, NULL, "other");

    for (int i = 0; i < 10; i++)
        must(make(w, bot), &w->err);
    must(make(w, other), &w->err);
    assert_limit(w, make(w, bot), "session_creation");
    sessile_store_close(bot);
    sessile_store_close(other);
}

static void a_session_has_100_checkpoints_and_20_branches_a_minute(void **state)
{
    world *w = *state;
    sessile_session_options o = named("s");
    sessile_session *s, *same;

    must(sessile_create(&s, w->view, &o, &w->err), &w->err);
    sessile_id first = say(s, "user", "hello");
    must(sessile_resume(&same, w->view, &o, &w->err), &w->err);
    for (int i = 0; i < 100; i++)
        must(sessile_checkpoint(i % 2 ? s : same, NULL, NULL, &w->err), &w->err);
    assert_limit(w, sessile_checkpoint(s, NULL, NULL, &w->err), "checkpoint_writes");
    must(sessile_checkpoint(same, NULL, NULL, &w->err), &w->err);
    for (int i = 0; i < 20; i++)
        must(sessile_branch(s, first, sessile_text(NULL), NULL, &w->err), &w->err);
    assert_limit(w, sessile_branch(same, first, sessile_text(NULL), NULL, &w->err),
                 "branch_operations");
    must(sessile_branch(same, first, sessile_text(NULL), NULL, &w->err), &w->err);
    session_closed(same);
    session_closed(s);
}

/* A fork and a child are sessions of their maker: no chain of them is longer than the
 * sessions that one may make. */
static void forks_and_children_are_sessions_that_were_made(void **state)
{
    world *w = *state;
    sessile_session *last, *next;
    sessile_session_options o = named("s"), own;
    sessile_status status = SESSILE_OK;
    int made = 1;

    must(sessile_create(&last, w->view, &o, &w->err), &w->err);
    say(last, "user", "hello");
    sessile_session_options_init(&own);
    for (; made < 20; made++) {
        status = made % 2 ? sessile_fork(&next, last, 1, &own, &w->err)
                          : sessile_child(&next, last, 1, &own, &w->err);
        if (status)
            break;
        session_closed(last);
        last = next;
        if (made % 2 == 0)
            say(last, "user", "hello");
    }
    assert_int_equal(made, 10);
    assert_limit(w, status, "session_creation");
    must(sessile_fork(&next, last, 1, &own, &w->err), &w->err);
    session_closed(next);
    session_closed(last);
}

/* A fork that is refused for its maker's sake is no branch of the session. */
static void a_refused_fork_is_not_counted_by_its_session(void **state)
{
    world *w = *state;
    sessile_session_options o = named("s"), own;
    sessile_session *s, *made;

    must(sessile_create(&s, w->view, &o, &w->err), &w->err);
    sessile_id first = say(s, "user", "hello");
    sessile_session_options_init(&own);
    for (int i = 0; i < 9; i++)
        must(make(w, w->view), &w->err);
    for (int i = 0; i < 40; i++)
        assert_int_equal(sessile_fork(&made, s, first, &own, &w->err), SESSILE_LIMIT);
    for (int i = 0; i < 20; i++)
        must(sessile_branch(s, first, sessile_text(NULL), NULL, &w->err), &w->err);
    assert_limit(w, sessile_branch(s, first, sessile_text(NULL), NULL, &w->err),
                 "branch_operations");
    session_closed(s);
}

/* What gives somebody something is counted, and what refuses them is not. */
static void sixty_facts_of_access_a_minute_are_written(void **state)
{
    world *w = *state;
    sessile_grant_options o;
    sessile_id id;
    char *key;
    sessile_slice bob = sessile_text("bob"), none = sessile_text(NULL);
    sessile_access_key_options k;

    sessile_grant_options_init(&o);
    sessile_access_key_options_init(&k);
    o.user = bob;
    o.role = "viewer";
    for (int i = 0; i < 20; i++) {
        must(sessile_grant(w->view, &o, &id, &w->err), &w->err);
        must(sessile_grant_end(w->view, id, &w->err), &w->err);
        must(sessile_access_key(w->view, &k, &key, &w->err), &w->err);
        sessile_free(key);
    }
    for (int i = 0; i < 3; i++)
        must(sessile_access_lock(w->view, bob, none, none, &w->err), &w->err);
    assert_int_equal(sessile_access_unlock(w->view, bob, none, &w->err), SESSILE_LIMIT);
    assert_int_equal(sessile_access_key(w->view, &k, &key, &w->err), SESSILE_LIMIT);
    assert_int_equal(sessile_grant_end(w->view, 7, &w->err), SESSILE_LIMIT);
    for (int i = 0; i < 100; i++) /* the host's own handle is not counted */
        must(sessile_grant(w->store, &o, NULL, &w->err), &w->err);
    assert_limit(w, sessile_grant(w->view, &o, NULL, &w->err), "grants");
    must(sessile_grant(w->view, &o, NULL, &w->err), &w->err);
}

static void the_1001st_read_of_a_memory_is_refused(void **state)
{
    world *w = *state;
    sessile_memory_options o;
    sessile_memory *m;
    sessile_memory_row *row;

    sessile_memory_options_init(&o);
    o.user = sessile_text("ann");
    must(sessile_memory_open(&m, w->view, &o, &w->err), &w->err);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(sessile_memory_read(m, sessile_text("k"), &row, &w->err),
                         SESSILE_NOTFOUND);
    assert_limit(w, sessile_memory_read(m, sessile_text("k"), &row, &w->err),
                 "memory_reads");
    assert_int_equal(sessile_memory_read(m, sessile_text("k"), &row, &w->err),
                     SESSILE_NOTFOUND);
    sessile_memory_close(m);
}

/* A caller that wants no error is counted all the same. */
static void a_call_without_an_error_is_counted(void **state)
{
    world *w = *state;
    sessile_session_options o;
    sessile_session *s;

    sessile_session_options_init(&o);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(sessile_create(&s, w->view, &o, NULL), SESSILE_OK);
        session_closed(s);
    }
    assert_int_equal(sessile_create(&s, w->view, &o, NULL), SESSILE_LIMIT);
}

/* An automatic checkpoint over the limit is not made, and the turn is. */
static void a_turn_is_never_lost_to_a_limit(void **state)
{
    world *w = *state;
    sessile_triggers each = {.messages = 1};
    sessile_slice hello = sessile_text("{\"role\":\"user\",\"content\":\"hello there\"}");
    sessile_session_options o = named("s");
    sessile_run_options ro;
    sessile_outcome out;
    sessile_need need;
    sessile_session *s;
    sessile_run *run;
    int made = 0;

    must(sessile_create(&s, w->view, &o, &w->err), &w->err);
    sessile_run_options_init(&ro);
    ro.config.checkpoint.triggers = &each;
    ro.state = sessile_text("{\"at\":1}");
    for (int i = 0; i < 102; i++) {
        must(sessile_turn_begin(&run, s, &hello, 1, &ro, &w->err), &w->err);
        must(sessile_run_step(run, &need, &w->err), &w->err);
        must(sessile_run_outcome(run, &out, &w->err), &w->err);
        made += out.checkpoint != SESSILE_NO_ID;
        if (i == 101)
            assert_non_null(strstr(out.checkpoint_failed, "checkpoint_writes"));
        sessile_run_free(run);
    }
    assert_int_equal(made, 100);
    session_closed(s);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {
        TEST(the_eleventh_session_of_a_minute_is_refused),
        TEST(what_is_there_is_opened_without_end),
        TEST(a_view_without_a_user_is_counted_by_its_actor),
        TEST(a_session_has_100_checkpoints_and_20_branches_a_minute),
        TEST(forks_and_children_are_sessions_that_were_made),
        TEST(a_refused_fork_is_not_counted_by_its_session),
        TEST(sixty_facts_of_access_a_minute_are_written),
        TEST(the_1001st_read_of_a_memory_is_refused),
        TEST(a_call_without_an_error_is_counted),
        TEST(a_turn_is_never_lost_to_a_limit),
    };
    return cmocka_run_group_tests_name("door limits", tests, NULL, NULL);
}
