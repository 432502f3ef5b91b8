/*
 * cases_waits.c: waiting: for a lock, and for what others append. A wait ends when what
 * it waits for is there, when its time is up, or when its caller wants no more.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* Asked so often, then it is enough. */
static int enough(void *arg)
{
    return --*(int *)arg <= 0;
}

/* ------------------------------------------------------------------ locks */

static void a_lock_excludes_the_other_handle(void **state)
{
    opened o = open_site(*state);
    const sessile_backend *t = o.table;
    int replaced = 0;

    create(&o, "main", "log", "one\n");
    create(&o, "main", "log2", "one\n");
    sessile_backend_log *a = log_of(&o, "log"), *b = log_of(&o, "log"),
                        *other = log_of(&o, "log2");
    static const int modes[][3] = {
        {SESSILE_LOCK_EXCLUSIVE, SESSILE_LOCK_EXCLUSIVE, SESSILE_BUSY},
        {SESSILE_LOCK_EXCLUSIVE, SESSILE_LOCK_SHARED, SESSILE_BUSY},
        {SESSILE_LOCK_SHARED, SESSILE_LOCK_EXCLUSIVE, SESSILE_BUSY},
        {SESSILE_LOCK_SHARED, SESSILE_LOCK_SHARED, SESSILE_OK}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        must(t->lock(a, modes[i][0], 0, &replaced, &o.err), &o.err);
        assert_int_equal(replaced, 0);
        for (int wait = 0; wait <= 20; wait += 20) {
            sessile_status status = t->lock(b, modes[i][1], wait, &replaced, &o.err);
            if (!modes[i][2]) {
                must(status, &o.err);
                t->unlock(b);
            } else {
                refused(status, SESSILE_BUSY, &o.err);
                if (t->busy)
                    refused(t->busy(b, &o.err), SESSILE_BUSY, &o.err);
            }
        }
        must(t->lock(other, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &o.err), &o.err);
        t->unlock(other);
        t->unlock(a);
        must(t->lock(b, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &o.err), &o.err);
        t->unlock(b);
    }
    if (t->set_stop) {
        int left = 3;
        must(t->lock(a, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &o.err), &o.err);
        t->set_stop(b, enough, &left);
        refused(t->lock(b, SESSILE_LOCK_EXCLUSIVE, -1, &replaced, &o.err),
                SESSILE_CANCELLED, &o.err);
        t->set_stop(b, NULL, NULL);
        t->close(a); /* a handle that is closed holds nothing */
        a = log_of(&o, "log");
        must(t->lock(b, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &o.err), &o.err);
        t->unlock(b);
    }
    t->close(a);
    done_with(&o, b, other);
}

/* A child of fork, a pipe to it, and the log "main/log" in a store that is closed. */
static pid_t forked(opened *o, int pipes[2])
{
    pid_t child;

    create(o, "main", "log", "one\n");
    done(o);
    assert_int_equal(pipe(pipes), 0);
    child = fork();
    assert_true(child >= 0);
    return child;
}

static void a_lock_excludes_other_processes(void **state)
{
    const site *g = *state;
    opened o = open_site(g);
    int replaced = 0, status = -1, ready[2];
    char byte;
    pid_t child;

    child = forked(&o, ready);
    if (child == 0) {
        sessile_backend_log *log = NULL;
        int failed = g->kind->backend(g->place, &o.table, &o.self, &o.err) ||
                     o.table->open(o.self, "main", "log", &log, &o.err) ||
                     o.table->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &o.err);
        close(ready[0]);
        if (write(ready[1], "x", 1) != 1 || failed)
            _exit(1);
        pause();
        _exit(0);
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    o = open_site(g);
    sessile_backend_log *log = log_of(&o, "log");
    refused(o.table->lock(log, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &o.err),
            SESSILE_BUSY, &o.err);
    kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_true(WIFSIGNALED(status)); /* it was not one that failed */
    must(o.table->lock(log, SESSILE_LOCK_EXCLUSIVE, patience(), &replaced, &o.err),
         &o.err);
    o.table->unlock(log);
    done_with(&o, log, NULL);
}

/* ------------------------------------------------------------------ watch */

static int watched(opened *o, sessile_backend_log *log, uint64_t bytes, int timeout_ms)
{
    int changed = 9;

    must(o->table->watch(log, bytes, timeout_ms, NULL, NULL, &changed, &o->err), &o->err);
    assert_in_range(changed, 0, 1);
    return changed;
}

static void a_watch_ends_when_its_time_is_up(void **state)
{
    opened o = open_site(*state);
    int changed = 1, left = 3;
    create(&o, "main", "log", "one\n");
    sessile_backend_log *log = log_of(&o, "log");

    for (int i = 0; i < 10 && changed; i++) /* it may come early, but not always */
        changed = watched(&o, log, 4, 30);
    assert_int_equal(changed, 0);
    sessile_status status = SESSILE_OK;
    changed = 1;
    while (!status && changed)
        status = o.table->watch(log, 4, patience(), enough, &left, &changed, &o.err);
    refused(status, SESSILE_CANCELLED, &o.err);
    done_with(&o, log, NULL);
}

static void what_came_before_the_watch_is_not_missed(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_log_end end = {1, 4, {0}};

    must(append(&o, b, &end, "two\n", 4, 1, 1), &o.err);
    assert_int_equal(watched(&o, a, 4, -1), 1);
    assert_int_equal(watched(&o, a, 4, 0), 1);
    assert_int_equal(watched(&o, b, 4, -1), 1);
    assert_int_equal(size_of(&o, a), 8);
    done_with(&o, a, b);
}

typedef struct watcher {
    const sessile_backend *table;
    void *self;
    uint64_t last; /* it watches until the log has this many bytes, or is gone */
    unsigned long wakes;
    int gone;
    atomic_int watching;
    pthread_t thread;
    char trouble[200];
} watcher;

static void *watch_all(void *arg)
{
    watcher *w = arg;
    const sessile_backend *t = w->table;
    sessile_backend_log *log = NULL;
    sessile_error err = {0};
    uint64_t bytes = 4;
    int64_t mtime;
    sessile_status status = t->open(w->self, "main", "log", &log, &err);

    w->watching = 1;
    while (!status && bytes < w->last && !w->gone) {
        int changed = 0;
        status = t->watch(log, bytes, patience(), NULL, NULL, &changed, &err);
        if (!status && !changed) {
            snprintf(w->trouble, sizeof w->trouble, "nobody woke it at %llu bytes",
                     (unsigned long long)bytes);
            break;
        }
        w->wakes++;
        if (!status) {
            uint64_t was = bytes;
            sessile_backend_log *look = NULL;
            status = t->size(log, &bytes, &mtime, &err);
            if (!status && bytes == was) { /* early; or it is gone */
                sessile_status there = t->open(w->self, "main", "log", &look, &err);
                if (there == SESSILE_NOTFOUND)
                    w->gone = 1;
                else if (!there)
                    t->close(look);
            }
        }
    }
    if (status)
        snprintf(w->trouble, sizeof w->trouble, "%s: %.150s", sessile_status_name(status),
                 err.message);
    if (log)
        t->close(log);
    return NULL;
}

static void start(watcher *w, const opened *o, uint64_t last)
{
    memset(w, 0, sizeof *w);
    w->table = o->table;
    w->self = o->self;
    w->last = last;
    assert_int_equal(pthread_create(&w->thread, NULL, watch_all, w), 0);
    while (!w->watching)
        usleep(1000);
    usleep(20000); /* so that it most likely waits already; either way it must wake */
}

static void woken(watcher *w)
{
    pthread_join(w->thread, NULL);
    if (w->trouble[0])
        fail_msg("the watcher: %s", w->trouble);
}

static void an_append_wakes_who_watches(void **state)
{
    enum { APPENDS = 20 };
    opened o = open_site(*state);
    watcher watchers[2];
    create(&o, "main", "log", "one\n");
    create(&o, "main", "log2", "one\n");
    sessile_backend_log *log = log_of(&o, "log"), *other = log_of(&o, "log2");
    sessile_log_end end = {1, 4, {0}}, of_other = end;

    for (int i = 0; i < 2; i++)
        start(&watchers[i], &o, 4 + 4 * APPENDS);
    for (int i = 0; i < APPENDS; i++) {
        must(append(&o, log, &end, "abc\n", 4, 1, (unsigned char)i), &o.err);
        must(append(&o, other, &of_other, "abc\n", 4, 1, (unsigned char)i), &o.err);
        usleep(2000);
    }
    for (int i = 0; i < 2; i++)
        woken(&watchers[i]);
    done_with(&o, log, other);
}

static void one_handle_watches_and_appends(void **state)
{
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    sessile_log_end end = {1, 4, {0}};

    for (int i = 0; i < 5; i++) {
        assert_int_equal(watched(&o, log, end.bytes + 1, 0), 1);
        must(append(&o, log, &end, "abc\n", 4, 1, (unsigned char)i), &o.err);
        assert_int_equal(watched(&o, log, end.bytes - 4, -1), 1);
    }
    done_with(&o, log, NULL);
}

static void a_removal_wakes_who_watches(void **state)
{
    opened o = open_site(*state);
    watcher w;
    create(&o, "main", "log", "one\n");
    start(&w, &o, UINT64_MAX);
    remove_log(&o, "log");
    woken(&w);
    assert_true(w.gone);
    done(&o);
}

static void another_process_wakes_who_watches(void **state)
{
    const site *g = *state;
    opened o = open_site(g);
    watcher w;
    int status = -1, go[2];
    pid_t child;

    child = forked(&o, go);
    if (child == 0) {
        sessile_backend_log *log = NULL;
        sessile_log_end end = {1, 4, {0}};
        char byte;
        close(go[1]);
        if (read(go[0], &byte, 1) != 1 ||
            g->kind->backend(g->place, &o.table, &o.self, &o.err) ||
            o.table->open(o.self, "main", "log", &log, &o.err))
            _exit(1);
        for (int i = 0; i < 5; i++) {
            unsigned char tag[16] = {(unsigned char)i, 1};
            int poisoned = 0;
            if (o.table->append(log, &end, "abc\n", 4, 1, tag, &poisoned, &o.err))
                _exit(2);
            usleep(5000);
        }
        o.table->close(log);
        if (o.table->free)
            o.table->free(o.self);
        _exit(0);
    }
    close(go[0]);
    o = open_site(g);
    start(&w, &o, 4 + 5 * 4);
    assert_int_equal(write(go[1], "x", 1), 1);
    close(go[1]);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    woken(&w);
    assert_int_equal(status, 0);
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE_IF(a_lock_excludes_the_other_handle, SESSILE_BACKEND_LOCKS),
    CASE_IF(a_lock_excludes_other_processes, SESSILE_BACKEND_LOCKS | NEEDS_PROCESSES),
    CASE_IF(a_watch_ends_when_its_time_is_up, NEEDS_WATCH),
    CASE_IF(what_came_before_the_watch_is_not_missed, NEEDS_WATCH),
    CASE_IF(an_append_wakes_who_watches, NEEDS_WATCH),
    CASE_IF(one_handle_watches_and_appends, NEEDS_WATCH),
    CASE_IF(a_removal_wakes_who_watches, NEEDS_WATCH | NEEDS_REMOVE),
    CASE_IF(another_process_wakes_who_watches, NEEDS_WATCH | NEEDS_PROCESSES),
};

CASES(cases_waits, cases);
