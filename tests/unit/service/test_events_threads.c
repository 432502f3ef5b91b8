/*
 * test_events_threads.c: events while threads write, watchers come and go, and the server
 * ends in the middle.
 */
#include "serving.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/runs.h"

enum { SESSIONS = 3, WATCHERS = 12, ENTRIES = 150 };

typedef struct writer {
    sessile_store *store;
    char id[8];
    pthread_t thread;
    int failed;
} writer;

static void *write_all(void *arg)
{
    writer *w = arg;
    sessile_session_options o;
    sessile_session *s;
    sessile_session_options_init(&o);
    o.id = sessile_text(w->id);
    w->failed = sessile_resume(&s, w->store, &o, NULL) != SESSILE_OK;
    for (int i = 1; i < ENTRIES && !w->failed; i++) {
        usleep(10000); /* so that streams are at the end again and again */
        w->failed =
            sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"x\"}"), NULL,
                           NULL) != SESSILE_OK;
    }
    if (!w->failed)
        (void)sessile_session_close(s, NULL);
    return NULL;
}

/* One stream of all sessions, which goes on where it was cut. */
typedef struct watcher {
    stream st;
    int open;
    size_t seen;
    sessile_id next[SESSIONS];
} watcher;

static void watch_on(serving *s, watcher *w)
{
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    Sessile__V1__Cursor cursors[SESSIONS], *rows[SESSIONS];
    Sessile__V1__Entry from[SESSIONS];
    char ids[SESSIONS][8];
    for (int i = 0; i < SESSIONS; i++) {
        sessile__v1__cursor__init(&cursors[i]);
        sessile__v1__entry__init(&from[i]);
        snprintf(ids[i], sizeof ids[i], "s%d", i);
        cursors[i].session = names_of(ids[i]);
        cursors[i].from = &from[i];
        from[i].id = w->next[i];
        rows[i] = &cursors[i];
    }
    r.cursors = rows;
    r.n_cursors = SESSIONS;
    stream_begin(s, &w->st, "StreamSessionEvents", &r);
    w->open = 1;
    w->seen = 0;
}

/* Each entry comes once, in its order. */
static void take(watcher *w)
{
    for (; w->seen < w->st.count; w->seen++) {
        const Sessile__V1__SessionEvent *e = w->st.replies[w->seen];
        int i = e->session->id[1] - '0';
        if (e->what_case == SESSILE__V1__SESSION_EVENT__WHAT_ENTRY)
            assert_int_equal(e->entry->entry, w->next[i]++);
        else
            assert_true(e->what_case == SESSILE__V1__SESSION_EVENT__WHAT_UP_TO &&
                        e->up_to == w->next[i]);
    }
}

static int has_all(const watcher *w)
{
    for (int i = 0; i < SESSIONS; i++)
        if (w->next[i] < ENTRIES)
            return 0;
    return 1;
}

static void watch_all(serving *s, watcher *all)
{
    int left = WATCHERS;
    for (int turn = 0; left > 0; turn++) {
        rpc_loop_turn(s->loop, 5);
        assert_true(turn < 100000);
        for (int i = 0; i < WATCHERS; i++) {
            watcher *w = &all[i];
            if (!w->open && !has_all(w))
                watch_on(s, w);
            if (!w->open)
                continue;
            take(w);
            if (w->st.ended)
                fail_msg("%d %s", (int)w->st.code, w->st.message);
            left -= has_all(w);
            if (has_all(w) || (w->seen > 0 && rand() % 100 == 0)) {
                stream_done(&w->st);
                w->open = 0;
            }
        }
    }
}

static void test_watchers_come_and_go_while_threads_write(void **state)
{
    sessile_store *store = run_store("ram:");
    static watcher all[WATCHERS];
    writer writers[SESSIONS];
    serving s;
    (void)state;
    srand(11);
    memset(all, 0, sizeof all);
    serving_start(&s, store, NULL);
    for (int i = 0; i < SESSIONS; i++) {
        Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
        writer *w = &writers[i];
        memset(w, 0, sizeof *w);
        w->store = store;
        snprintf(w->id, sizeof w->id, "s%d", i);
        r.session = names_of(w->id);
        serve_ok(&s, "CreateSession", &r);
        assert_int_equal(pthread_create(&w->thread, NULL, write_all, w), 0);
    }
    watch_all(&s, all);
    for (int i = 0; i < SESSIONS; i++) {
        pthread_join(writers[i].thread, NULL);
        assert_false(writers[i].failed);
    }
    serving_stop(&s);
    sessile_store_close(store);
}

static void test_a_server_ends_while_all_is_going_on(void **state)
{
    sessile_store *store = run_store("ram:");
    static watcher all[WATCHERS];
    writer w;
    serving s;
    (void)state;
    memset(all, 0, sizeof all);
    memset(&w, 0, sizeof w);
    serving_start(&s, store, NULL);
    for (int i = 0; i < SESSIONS; i++) {
        Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
        char id[8];
        snprintf(id, sizeof id, "s%d", i);
        r.session = names_of(id);
        serve_ok(&s, "CreateSession", &r);
    }
    w.store = store;
    strcpy(w.id, "s1");
    assert_int_equal(pthread_create(&w.thread, NULL, write_all, &w), 0);
    for (int i = 0; i < WATCHERS; i++)
        watch_on(&s, &all[i]);
    assert_true(stream_wait(&all[0].st, 2));
    serving_drain(&s);
    for (int i = 0; i < WATCHERS; i++) {
        stream_wait_end(&all[i].st);
        take(&all[i]);
        assert_int_equal(all[i].st.code, RPC_UNAVAILABLE);
        stream_done(&all[i].st);
    }
    pthread_join(w.thread, NULL);
    serving_stop(&s);

    serving_start(&s, store, NULL);
    for (int i = 0; i < WATCHERS; i++) {
        watch_on(&s, &all[i]);
        while (all[i].next[1] < ENTRIES) {
            assert_true(stream_wait(&all[i].st, all[i].seen + 1));
            take(&all[i]);
        }
        stream_done(&all[i].st);
    }
    serving_stop(&s);
    sessile_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_watchers_come_and_go_while_threads_write),
        cmocka_unit_test(test_a_server_ends_while_all_is_going_on),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
