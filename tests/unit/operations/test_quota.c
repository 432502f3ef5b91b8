/*
 * test_quota.c: the limit [sessions_per_agent]: every way to make a session counts, and
 * creators that meet at the last place do not exceed it.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/children.h"
#include "support/forks.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "session/quota.h"

static size_t listed(sessile_store *st, const char *agent)
{
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    must(sessile_list(st, agent, &rows, &count, &err), &err);
    sessile_free(rows);
    return count;
}

static sessile_status create(sessile_store *st, const char *agent, const char *id,
                             sessile_error *err)
{
    sessile_session_options o = named(id);
    sessile_session *s;

    o.agent = sessile_text(agent);
    sessile_status status = sessile_create(&s, st, &o, err);
    sessile_session_close(s, NULL);
    return status;
}

static void create_fork_child_and_put_all_count(void **state)
{
    place *p = *state, other;
    sessile_session *s = session_made(p->store, "a"), *more, *foreign;
    sessile_session_options o = named("b");
    sessile_error err;

    place_open(&other, STORE_RAM);
    foreign = session_made(other.store, "foreign");
    say(foreign, "user", "hello");
    say(s, "user", "hello");
    p->store->core->limits.sessions_per_agent = 2;
    must(sessile_fork(&more, s, SESSILE_NO_ID, &o, &err), &err);
    session_closed(more);
    o = named("c");
    assert_refused(sessile_create(&more, p->store, &o, &err), SESSILE_LIMIT, &err,
                   "agent \"main\" has 2 sessions, softly deleted ones included, and the "
                   "limit [sessions_per_agent] is 2: delete one permanently");
    assert_refused(sessile_session_open(&more, p->store, &o, &err), SESSILE_LIMIT, &err,
                   "[sessions_per_agent]");
    assert_refused(sessile_fork(&more, s, SESSILE_NO_ID, &o, &err), SESSILE_LIMIT, &err,
                   "[sessions_per_agent]");
    assert_refused(sessile_child(&more, s, 0, &o, &err), SESSILE_LIMIT, &err,
                   "[sessions_per_agent]");
    assert_refused(sessile_child(&more, s, 1, &o, &err), SESSILE_LIMIT, &err,
                   "[sessions_per_agent]");
    assert_refused(sessile_put(&more, p->store, foreign, &o, &err), SESSILE_LIMIT, &err,
                   "[sessions_per_agent]");
    assert_int_equal(listed(p->store, NULL), 2);
    assert_int_equal(log_count(s->core->log), 2); /* the parent names no child */
    /* what is there is opened; another agent has its own places */
    o = named("b");
    must(sessile_session_open(&more, p->store, &o, &err), &err);
    session_closed(more);
    assert_int_equal(create(p->store, "main", "b", &err), SESSILE_EXISTS);
    must(create(p->store, "critic", "c", &err), &err);
    /* a place is free again when a session is gone, not when it is hidden */
    sessile_delete_options soft = {.soft = 1};
    o = named("b");
    must(sessile_delete(p->store, &o, &soft, NULL, &err), &err);
    assert_int_equal(create(p->store, "main", "c", &err), SESSILE_LIMIT);
    must(sessile_delete(p->store, &o, NULL, NULL, &err), &err);
    must(create(p->store, "main", "c", &err), &err);
    session_closed(foreign);
    place_close(&other);
    session_closed(s);
}

/* Where two have created at the same time, each counts again: nothing is taken from
 * somebody who wrote to his session meanwhile. */
static void what_is_too_much_is_removed_unless_it_was_written_to(void **state)
{
    place *p = *state;
    sessile_session *a = session_made(p->store, "a"), *b = session_made(p->store, "b");
    session_names names = {sessile_text("b"), sessile_text("main"), {NULL, 0}, 0};
    uint64_t bytes = log_bytes(b->core->log);
    sessile_error err;

    must(quota_keep(p->store->core, &names, bytes, &err), &err);
    p->store->core->limits.sessions_per_agent = 1;
    say(b, "user", "hello");
    must(quota_keep(p->store->core, &names, bytes, &err), &err);
    assert_int_equal(listed(p->store, NULL), 2);
    bytes = log_bytes(b->core->log);
    session_closed(b);
    assert_refused(quota_keep(p->store->core, &names, bytes, &err), SESSILE_LIMIT, &err,
                   "[sessions_per_agent]");
    assert_int_equal(listed(p->store, NULL), 1);
    session_closed(a);
}

enum { CREATORS = 4, EACH = 6, MOST = 9 };

typedef struct creator {
    pthread_t thread;
    place *p;
    int number, made, other;
} creator;

static void *create_some(void *arg)
{
    creator *c = arg;
    sessile_store *st = place_again(c->p);
    char id[32];

    if (st != c->p->store) /* a store in memory cannot be opened twice */
        st->core->limits.sessions_per_agent = MOST;
    for (int i = 0; i < EACH; i++) {
        sessile_error err;
        snprintf(id, sizeof id, "%d-%d", c->number, i);
        sessile_status status = create(st, "main", id, &err);
        c->made += !status;
        c->other += status && status != SESSILE_LIMIT;
    }
    place_again_close(c->p, st);
    return NULL;
}

static void creators_at_the_same_time_keep_the_limit(void **state)
{
    place *p = *state;
    creator all[CREATORS];
    sessile_error err;
    int made = 0;

    p->store->core->limits.sessions_per_agent = MOST;
    must(create(p->store, "main", "first", &err), &err);
    for (int i = 0; i < CREATORS; i++) {
        all[i] = (creator){.p = p, .number = i};
        assert_int_equal(pthread_create(&all[i].thread, NULL, create_some, &all[i]), 0);
    }
    for (int i = 0; i < CREATORS; i++) {
        pthread_join(all[i].thread, NULL);
        assert_int_equal(all[i].other, 0);
        made += all[i].made;
    }
    /* each session that was acknowledged is there, and no other */
    assert_true(made < MOST);
    assert_int_equal(listed(p->store, NULL), made + 1);
    for (int i = made + 1; i < MOST; i++) {
        char id[32];
        snprintf(id, sizeof id, "more-%d", i);
        must(create(p->store, "main", id, &err), &err);
    }
    assert_int_equal(create(p->store, "main", "last", &err), SESSILE_LIMIT);
}

/* In a process of its own: as many sessions as it gets, then how many these were. */
static void create_in_a_process(void *arg, int in, int out)
{
    creator c = {.p = arg, .number = (int)getpid()};

    child_tell(out, 'r');
    child_hear(in);
    (void)create_some(&c);
    child_tell(out, c.other ? '!' : (char)('0' + c.made));
    child_hear(in);
}

static void processes_keep_the_limit(void **state)
{
    enum { PROCESSES = 6 };
    place *p = *state;
    child children[PROCESSES];
    int made = 0;

    if (p->kind == STORE_RAM) /* of one process */
        return;
    p->store->core->limits.sessions_per_agent = MOST;
    for (int i = 0; i < PROCESSES; i++)
        children[i] = child_start(create_in_a_process, p);
    for (int i = 0; i < PROCESSES; i++)
        assert_int_equal(child_hear(children[i].from), 'r');
    for (int i = 0; i < PROCESSES; i++)
        child_tell(children[i].to, 'g');
    for (int i = 0; i < PROCESSES; i++) {
        char said = child_hear(children[i].from);
        assert_in_range(said, '0', '0' + EACH);
        made += said - '0';
        child_end(&children[i]);
    }
    assert_in_range(made, 0, MOST);
    assert_int_equal(listed(p->store, NULL), made);
}

static void a_store_whose_host_has_the_sessions_takes_no_such_limit(void **state)
{
    sessile_store_options options;
    sessile_store *st;
    sessile_error err;

    (void)state;
    sessile_store_options_init(&options);
    options.limits.sessions_per_agent = 3;
    assert_refused(sessile_open_records(&st, &options, &err), SESSILE_UNSUPPORTED, &err,
                   "[sessions_per_agent]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(create_fork_child_and_put_all_count),
        OVER(what_is_too_much_is_removed_unless_it_was_written_to),
        OVER(creators_at_the_same_time_keep_the_limit),
        OVER(processes_keep_the_limit),
    };
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(a_store_whose_host_has_the_sessions_takes_no_such_limit),
    };
    return run_over_kinds("sessions of an agent", STORE_RAM, tests,
                          sizeof tests / sizeof *tests) +
           cmocka_run_group_tests(alone, NULL, NULL);
}
