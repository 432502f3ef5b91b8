/*
 * test_events.c: StreamSessionEvents, over a store in memory, files and SQLite.
 *
 * Most tests write past the service as well, as another server would: by the host's own
 * handle of the same store.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "guard/enter.h"
#include "service/watch.h"
#include "session/fold.h"
#include "support/runs.h"

static const char *const URLS[] = {"ram:", "file", "sqlite"};
enum { STORES = 3 };

/* A store of each kind, in the folder of the tests. */
static sessile_store *store_at(int i)
{
    static int n;
    char url[200];
    if (i == 0)
        return run_store("ram:");
    snprintf(url, sizeof url, "%s:%s/events-%d%s", URLS[i], runs_folder, n++,
             i == 2 ? ".db" : "");
    return run_store(url);
}

typedef struct world {
    sessile_store *store;
    sessile_session *own; /* the host's handle of "s", past the service */
    serving s;
} world;

static sessile_session *open_own(sessile_store *store, const char *id)
{
    sessile_session_options o;
    sessile_session *out;
    sessile_error err;
    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    if (sessile_session_open(&out, store, &o, &err))
        fail_msg("%s", err.message);
    return out;
}

static void world_open(world *w, int store)
{
    w->store = store_at(store);
    w->own = open_own(w->store, "s");
    serving_start(&w->s, w->store, NULL);
}

static void world_close(world *w)
{
    serving_stop(&w->s);
    (void)sessile_session_close(w->own, NULL);
    sessile_store_close(w->store);
}

static void say(sessile_session *s, const char *text)
{
    char body[200];
    sessile_error err;
    snprintf(body, sizeof body, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    if (sessile_append(s, sessile_text(body), NULL, &err))
        fail_msg("%s", err.message);
}

static const Sessile__V1__SessionEvent *event(const stream *st, size_t i)
{
    assert_true(i < st->count);
    return st->replies[i];
}

static void is_entry(const stream *st, size_t i, sessile_id id, sessile_session *own)
{
    const Sessile__V1__SessionEvent *e = event(st, i);
    char *text;
    size_t size;
    assert_int_equal(e->what_case, SESSILE__V1__SESSION_EVENT__WHAT_ENTRY);
    assert_int_equal(e->entry->entry, id);
    assert_string_equal(e->session->id, "s");
    assert_int_equal(sessile_entry(own, id, &text, &size, NULL), SESSILE_OK);
    assert_int_equal(strlen(e->entry->json->text), size);
    assert_memory_equal(e->entry->json->text, text, size);
    sessile_free(text);
}

static void is_up_to(const stream *st, size_t i, sessile_id end)
{
    const Sessile__V1__SessionEvent *e = event(st, i);
    assert_int_equal(e->what_case, SESSILE__V1__SESSION_EVENT__WHAT_UP_TO);
    assert_int_equal(e->up_to, end);
}

static void watch_from(world *w, stream *st, sessile_id from)
{
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    Sessile__V1__Entry entry = SESSILE__V1__ENTRY__INIT;
    r.session = names_of("s");
    entry.id = from;
    r.from = from == SESSILE_NO_ID ? NULL : &entry;
    stream_begin(&w->s, st, "StreamSessionEvents", &r);
}

/* ---------------------------------------------------------------------- tests */

static void test_a_stream_has_what_was_written_and_what_is_written(void **state)
{
    (void)state;
    for (int i = 0; i < STORES; i++) {
        world w;
        stream st;
        world_open(&w, i);
        say(w.own, "one");
        watch_from(&w, &st, 0);
        assert_true(stream_wait(&st, 3));
        is_entry(&st, 0, 0, w.own);
        is_entry(&st, 1, 1, w.own);
        is_up_to(&st, 2, 2);
        append_by(&w.s, "s", "two, by the service");
        assert_true(stream_wait(&st, 5));
        is_entry(&st, 3, 2, w.own);
        is_up_to(&st, 4, 3);
        say(w.own, "three, past the service");
        assert_true(stream_wait(&st, 7));
        is_entry(&st, 5, 3, w.own);
        is_up_to(&st, 6, 4);
        stream_done(&st);
        world_close(&w);
    }
}

static void test_without_a_cursor_only_what_is_new_comes(void **state)
{
    world w;
    stream st;
    (void)state;
    world_open(&w, 0);
    say(w.own, "old");
    watch_from(&w, &st, SESSILE_NO_ID);
    assert_true(stream_wait(&st, 1));
    is_up_to(&st, 0, 2);
    append_by(&w.s, "s", "new");
    assert_true(stream_wait(&st, 3));
    is_entry(&st, 1, 2, w.own);
    is_up_to(&st, 2, 3);
    stream_done(&st);
    world_close(&w);
}

static void test_a_cursor_past_the_end_is_invalid(void **state)
{
    world w;
    stream st;
    (void)state;
    world_open(&w, 0);
    watch_from(&w, &st, 1);
    assert_true(stream_wait(&st, 1));
    is_up_to(&st, 0, 1);
    stream_done(&st);
    watch_from(&w, &st, 2);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
    assert_string_equal(st.status, "EINVALID");
    stream_done(&st);
    world_close(&w);
}

static void test_a_session_that_is_not_there_is_not_found(void **state)
{
    world w;
    char status[32];
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    (void)state;
    world_open(&w, 0);
    r.session = names_of("another");
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status), RPC_NOT_FOUND);
    assert_string_equal(status, "ENOTFOUND");
    r.session = NULL;
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status),
                     RPC_INVALID_ARGUMENT);
    world_close(&w);
}

static void test_a_removed_session_is_gone_and_the_others_go_on(void **state)
{
    (void)state;
    for (int i = 0; i < STORES; i++) {
        world w;
        stream st;
        Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
        Sessile__V1__Cursor cursors[3];
        Sessile__V1__Cursor *rows[3] = {&cursors[0], &cursors[1], &cursors[2]};
        const char *ids[3] = {"s", "removed", "never"};
        world_open(&w, i);
        sessile_session *other = open_own(w.store, "removed");
        for (int k = 0; k < 3; k++) {
            sessile__v1__cursor__init(&cursors[k]);
            cursors[k].session = names_of(ids[k]);
        }
        r.cursors = rows;
        r.n_cursors = 3;
        stream_begin(&w.s, &st, "StreamSessionEvents", &r);
        assert_true(stream_wait(&st, 3));
        int gone = 0;
        for (size_t k = 0; k < 3; k++) {
            gone += event(&st, k)->what_case == SESSILE__V1__SESSION_EVENT__WHAT_GONE;
            if (event(&st, k)->what_case == SESSILE__V1__SESSION_EVENT__WHAT_GONE)
                assert_string_equal(event(&st, k)->session->id, "never");
        }
        assert_int_equal(gone, 1);
        (void)sessile_session_close(other, NULL);
        Sessile__V1__DeleteRequest d = SESSILE__V1__DELETE_REQUEST__INIT;
        d.session = names_of("removed");
        serve_ok(&w.s, "DeleteSession", &d);
        assert_true(stream_wait(&st, 4));
        assert_int_equal(event(&st, 3)->what_case, SESSILE__V1__SESSION_EVENT__WHAT_GONE);
        assert_string_equal(event(&st, 3)->session->id, "removed");
        append_by(&w.s, "s", "still");
        assert_true(stream_wait(&st, 6));
        is_entry(&st, 4, 1, w.own);
        d.session = names_of("s");
        serve_ok(&w.s, "DeleteSession", &d);
        stream_wait_end(&st);
        assert_int_equal(st.code, RPC_OK);
        assert_int_equal(st.count, 7);
        stream_done(&st);
        world_close(&w);
    }
}

static void test_a_slow_reader_gets_all_and_costs_little(void **state)
{
    world w;
    stream st;
    enum { LARGE = 60, SIZE = 200000 };
    char *body = malloc(SIZE + 100);
    (void)state;
    world_open(&w, 0);
    int n = sprintf(body, "{\"role\":\"user\",\"content\":\"");
    memset(body + n, 'x', SIZE);
    strcpy(body + n + SIZE, "\"}");
    for (int i = 0; i < LARGE; i++)
        assert_int_equal(sessile_append(w.own, sessile_text(body), NULL, NULL), 0);
    free(body);
    watch_from(&w, &st, 0);
    assert_true(stream_wait(&st, 1));
    rpc_request_pause(st.request, 1);
    append_by(&w.s, "s", "the last"); /* others are served meanwhile */
    size_t before = st.count;
    for (int i = 0; i < 10; i++)
        rpc_loop_turn(w.s.loop, 20);
    assert_true(st.count < LARGE);
    assert_true(before <= st.count);
    rpc_request_pause(st.request, 0);
    assert_true(stream_wait(&st, LARGE + 3));
    for (sessile_id i = 0; i < LARGE + 2; i++)
        is_entry(&st, i, i, w.own);
    is_up_to(&st, LARGE + 2, LARGE + 2);
    stream_done(&st);
    world_close(&w);
}

static void test_a_server_that_ends_says_where_to_go_on(void **state)
{
    world w;
    stream st;
    (void)state;
    world_open(&w, 0);
    watch_from(&w, &st, 0);
    assert_true(stream_wait(&st, 2));
    serving_drain(&w.s);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_UNAVAILABLE);
    assert_non_null(strstr(st.message, "from the entry after the last"));
    stream_done(&st);
    world_close(&w);
}

/* A watcher is cut at random and goes on from the entry after the last that it saw, while
 * 1,000 entries are written by the service and past it. */
static void test_cut_at_random_it_is_the_log(void **state)
{
    (void)state;
    srand(7);
    for (int i = 0; i < STORES; i++) {
        enum { ENTRIES = 1000 };
        world w;
        stream st;
        sessile_id next = 0;
        int written = 1, cuts = 0;
        world_open(&w, i);
        while (next < ENTRIES) {
            watch_from(&w, &st, next);
            size_t until = 1 + (size_t)rand() % 60, seen = 0;
            while (seen < until && next < ENTRIES) {
                char text[40];
                snprintf(text, sizeof text, "entry %d", written);
                if (written < ENTRIES && written++ % 5 == 0)
                    append_by(&w.s, "s", text);
                else if (written <= ENTRIES && (written - 1) % 5)
                    say(w.own, text);
                if (written >= ENTRIES)
                    assert_true(stream_wait(&st, seen + 1));
                rpc_loop_turn(w.s.loop, 0);
                for (; seen < st.count; seen++)
                    if (event(&st, seen)->what_case ==
                        SESSILE__V1__SESSION_EVENT__WHAT_ENTRY)
                        is_entry(&st, seen, next++, w.own);
            }
            stream_done(&st);
            cuts++;
        }
        assert_true(cuts > 5);
        world_close(&w);
    }
}

static void test_many_watch_one_session(void **state)
{
    world w;
    enum { WATCHERS = 100 };
    static stream all[WATCHERS];
    (void)state;
    world_open(&w, 0);
    for (int i = 0; i < WATCHERS; i++)
        watch_from(&w, &all[i], 0);
    for (int k = 1; k < 20; k++)
        append_by(&w.s, "s", "for all");
    for (int i = 0; i < WATCHERS; i++) {
        sessile_id next = 0;
        for (size_t k = 0; next < 20; k++) {
            assert_true(stream_wait(&all[i], k + 1));
            if (event(&all[i], k)->what_case == SESSILE__V1__SESSION_EVENT__WHAT_ENTRY)
                is_entry(&all[i], k, next++, w.own);
        }
        if (i % 2)
            stream_done(&all[i]);
    }
    append_by(&w.s, "s", "for half");
    for (int i = 0; i < WATCHERS; i += 2) {
        size_t k = all[i].count;
        while (event(&all[i], k - 1)->what_case !=
                   SESSILE__V1__SESSION_EVENT__WHAT_UP_TO ||
               event(&all[i], k - 1)->up_to != 21)
            assert_true(stream_wait(&all[i], ++k));
        stream_done(&all[i]);
    }
    world_close(&w);
}

/* Turns the loop for a while. */
static void turn(world *w)
{
    for (int i = 0; i < 10; i++)
        rpc_loop_turn(w->s.loop, 10);
}

/* A call that is given up while it waits for a writer: the streams of its session, which
 * is open once for all, wait for the call and are not ended with it. */
static void test_a_call_that_is_given_up_ends_no_stream(void **state)
{
    enum { TIMES = 12 }; /* who waits beside the call may have its turn just in time */
    world w;
    stream append, st;
    sessile_error err;
    Sessile__V1__AppendRequest r = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    (void)state;
    world_open(&w, 1);
    append_by(&w.s, "s", "so that it is open");
    r.session = names_of("s");
    r.message = &json;
    json.text = "{\"role\":\"user\",\"content\":\"given up\"}";
    say(w.own, "what the writer knows");
    for (int i = 0; i < TIMES; i++) {
        if (i > 0)
            stream_done(&st);
        assert_int_equal(log_begin(w.own->core->log, NULL, NULL, &err), SESSILE_OK);
        stream_begin(&w.s, &append, "AppendMessage", &r);
        turn(&w);
        watch_from(&w, &st, 0);
        turn(&w);
        stream_done(&append);
        turn(&w);
        log_end(w.own->core->log);
        assert_true(stream_wait(&st, 4));
        is_up_to(&st, 3, 3);
    }
    append_by(&w.s, "s", "it goes on");
    assert_true(stream_wait(&st, 6));
    is_entry(&st, 4, 3, w.own);
    stream_done(&st);
    world_close(&w);
}

static int64_t cpu_us(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (int64_t)used.tv_sec * 1000000 + used.tv_nsec / 1000;
}

/* 1: there is a moment at which the process does less than half of what it could. */
static int rests(void)
{
    enum { MOMENTS = 25, US = 20000 };
    for (int i = 0; i < MOMENTS; i++) {
        const int64_t before = cpu_us();
        usleep(US);
        if (cpu_us() - before < US / 2)
            return 1;
    }
    return 0;
}

/* Another server says that a session was written to, while the last who watches it goes:
 * so there may be nothing left to ask about when the thread that asks wakes up. A thread
 * that does not wait then keeps the mutex as well, and the alarm ends this program. */
static void test_a_server_rests_when_what_was_in_doubt_has_gone(void **state)
{
    enum { TIMES = 100 };
    world w;
    (void)state;
    world_open(&w, 0);
    alarm(120);
    watch *all = w.s.service->watch;
    const sessile_session_options names = {.id = sessile_session_id(w.own),
                                           .agent = sessile_session_agent(w.own),
                                           .user = sessile_session_user(w.own)};
    for (int i = 0; i < TIMES; i++) {
        stream st;
        watch_from(&w, &st, 0);
        assert_true(stream_wait(&st, 2));
        stream_done(&st);
        while (watch_count(all) > 0) {
            watch_look(all, &names);
            rpc_loop_turn(w.s.loop, 0);
        }
        assert_true(rests());
    }
    alarm(0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_stream_has_what_was_written_and_what_is_written),
        cmocka_unit_test(test_without_a_cursor_only_what_is_new_comes),
        cmocka_unit_test(test_a_cursor_past_the_end_is_invalid),
        cmocka_unit_test(test_a_session_that_is_not_there_is_not_found),
        cmocka_unit_test(test_a_removed_session_is_gone_and_the_others_go_on),
        cmocka_unit_test(test_a_slow_reader_gets_all_and_costs_little),
        cmocka_unit_test(test_a_server_that_ends_says_where_to_go_on),
        cmocka_unit_test(test_cut_at_random_it_is_the_log),
        cmocka_unit_test(test_many_watch_one_session),
        cmocka_unit_test(test_a_call_that_is_given_up_ends_no_stream),
        cmocka_unit_test(test_a_server_rests_when_what_was_in_doubt_has_gone),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
