/*
 * watch.c: waits for what others append.
 *
 * Owns the connection that listens, which is not one of the pool, and the list of
 * waiters.
 *
 * A NOTIFY takes a lock of the whole server until its commit is on the disk, so appends
 * to different logs would queue for it (measured: 8 writers on 20 logs make 2,200 appends
 * a second, and 700 if each of them notifies). So an append notifies only while somebody
 * waits: a waiter writes into the log's row until when it waits (`watched`), and the
 * append reads that in the row that it changes anyway. No append is missed: it either
 * precedes that write, and is seen by looking at the log afterwards, or follows it, and
 * notifies.
 *
 * There is no thread of ours: one of the waiters reads the connection, for a short time,
 * and wakes the others. When the connection breaks, all of them look at their logs again.
 * A waiter that may not write, or cannot listen (on a standby), polls.
 */
#include "store/postgres/postgres.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LEASE_MS = 60000, LOOK_MS = 100 };

typedef struct watching {
    pg_log *log;
    uint64_t bytes;
    uint64_t until_us;
    lock_stop stop;
    int polls; /* it cannot listen, or cannot have appends notify it */
    pg_waiting me;
} watching;

/* Under the mutex. */
static void wake_all(pg_store *ps)
{
    for (pg_waiting *w = ps->waiting; w; w = w->next)
        w->called = 1;
    pthread_cond_broadcast(&ps->watched);
}

/* Marks those who wait for the log that the notification names. Under the mutex. */
static void notify(pg_store *ps, const PGnotify *n)
{
    uint64_t id = strtoull(n->extra, NULL, 10);
    for (pg_waiting *w = ps->waiting; w; w = w->next)
        w->called |= w->id == id;
}

/* ---------------------------------------------------------------------- listening */

/* A connection that listens, made without the mutex. */
static sessile_status listen(watching *w, pg_conn **out, sessile_error *err)
{
    pg_store *ps = w->log->ps;
    pg_call call = pg_call_of(ps, ps->timeout_ms);
    char sql[PG_SCHEMA_MOST + 20];
    pg_results r;
    call.stop = w->stop;
    sessile_status status = pg_connect(&call, out, err);
    if (status)
        return status;
    snprintf(sql, sizeof sql, "LISTEN \"%s\"", ps->url.schema);
    pg_step s = pg_step_once(sql);
    pg_ended ended = pg_send(&call, *out, &s, 1, &r);
    if (ended == PG_ANSWERED && !r.wrong) {
        pg_results_free(ps, &r);
        return SESSILE_OK;
    }
    if (ended == PG_ANSWERED) { /* a standby, or no such thing here */
        pg_results_free(ps, &r);
        w->polls = 1;
    } else {
        status = fail(err, SESSILE_IO, "the connection to %s broke: watch again",
                      ps->url.where);
    }
    pg_finish(ps, *out);
    *out = NULL;
    return status;
}

/* Makes the connection that listens, unless there is one. Under the mutex. */
static sessile_status ensure_listener(watching *w, sessile_error *err)
{
    pg_store *ps = w->log->ps;
    sessile_status status = SESSILE_OK;
    while (!ps->listener && !w->polls && !status) {
        if (ps->busy) { /* another one is making it */
            os_cond_slice(&ps->watched, &ps->watch_mutex);
            if (w->stop.ask && w->stop.ask(w->stop.arg))
                status = store_stopped(w->log->name, err);
            continue;
        }
        pg_conn *c = NULL;
        ps->busy = 1;
        pthread_mutex_unlock(&ps->watch_mutex);
        status = listen(w, &c, err);
        pthread_mutex_lock(&ps->watch_mutex);
        ps->busy = 0;
        ps->listener = c;
        pthread_cond_broadcast(&ps->watched);
    }
    return status;
}

/* Waits OS_SLICE_MS at most for a notification. Under the mutex. */
static void wait_slice(watching *w)
{
    pg_store *ps = w->log->ps;
    if (ps->busy || !ps->listener) {
        os_cond_slice(&ps->watched, &ps->watch_mutex);
        return;
    }
    pg_conn *c = ps->listener;
    ps->busy = 1;
    pthread_mutex_unlock(&ps->watch_mutex);
    int broken = pg_is_old(ps, c);
    broken = broken || (os_fd_wait(ps->lib.PQsocket(c->pg), OS_READ, OS_SLICE_MS) &&
                        !ps->lib.PQconsumeInput(c->pg));
    pthread_mutex_lock(&ps->watch_mutex);
    ps->busy = 0;
    for (PGnotify *n; !broken && (n = ps->lib.PQnotifies(c->pg));) {
        notify(ps, n);
        ps->lib.PQfreemem(n);
    }
    if (broken || ps->lib.PQstatus(c->pg) != CONNECTION_OK) {
        ps->listener = NULL;
        pg_finish(ps, c);
        wake_all(ps);
    }
    pthread_cond_broadcast(&ps->watched);
}

/* ---------------------------------------------------------------------- one watch */

/* Has appends notify, for LEASE_MS from now. */
static sessile_status lease(watching *w, sessile_error *err)
{
    pg_log *log = w->log;
    pg_store *ps = log->ps;
    uint64_t now = ps->os->clock_us(ps->os->ud);
    pthread_mutex_lock(&log->mutex);
    int leased = log->leased_us > now;
    pthread_mutex_unlock(&log->mutex);
    if (leased || w->polls)
        return SESSILE_OK;
    pg_call call = pg_log_call(log);
    pg_step s = pg_step_of(PG_WATCH);
    pg_results r;
    call.stop = w->stop;
    pg_arg_int(&s, log->id);
    pg_arg_int(&s, LEASE_MS);
    sessile_status status = pg_put(&call, &s, 1, log->name, &r, err);
    if (status == SESSILE_DENIED) { /* who may only read */
        error_clear(err);
        w->polls = 1;
        return SESSILE_OK;
    }
    if (!status) {
        pg_results_free(ps, &r);
        pthread_mutex_lock(&log->mutex);
        /* the row may hold an earlier lease, of which half is left */
        log->leased_us = now + (uint64_t)LEASE_MS * 500;
        pthread_mutex_unlock(&log->mutex);
    }
    return status;
}

static sessile_status watch_look(watching *w, int *changed, sessile_error *err)
{
    pg_call call = pg_log_call(w->log);
    pg_seen seen;
    call.stop = w->stop;
    sessile_status status = pg_look(&call, w->log, &seen, err);
    *changed =
        !status && (!seen.there || seen.size != w->bytes || seen.leads_to != w->log->id);
    return status;
}

/* Waits until it is notified, or it is time to look at the log. *over: time is up. */
static sessile_status wait(watching *w, int *over, sessile_error *err)
{
    pg_store *ps = w->log->ps;
    uint64_t look_us = ps->os->clock_us(ps->os->ud) +
                       (w->polls ? (uint64_t)LOOK_MS : (uint64_t)LEASE_MS / 4) * 1000;
    sessile_status status = SESSILE_OK;
    pthread_mutex_lock(&ps->watch_mutex);
    while (!w->me.called && !status && !pg_over(ps, look_us)) {
        *over = pg_over(ps, w->until_us);
        if (*over)
            break;
        if (w->stop.ask && w->stop.ask(w->stop.arg)) {
            status = store_stopped(w->log->name, err);
            break;
        }
        wait_slice(w);
    }
    w->me.called = 0;
    pthread_mutex_unlock(&ps->watch_mutex);
    return status;
}

sessile_status pg_watch(sessile_backend_log *handle, uint64_t bytes, int timeout_ms,
                        int (*ask)(void *arg), void *arg, int *changed,
                        sessile_error *err)
{
    pg_log *log = pg_log_of(handle);
    pg_store *ps = log->ps;
    watching w = {.log = log, .bytes = bytes, .stop = {ask, arg}};
    int over = 0, looked = 0;
    *changed = 0;
    if (pg_forked(ps, err))
        return SESSILE_FORKED;
    w.until_us = pg_call_of(ps, timeout_ms).until_us;
    if (timeout_ms == 0)
        return watch_look(&w, changed, err);
    w.me.id = log->id;
    pthread_mutex_lock(&ps->watch_mutex);
    w.me.next = ps->waiting;
    ps->waiting = &w.me;
    pthread_mutex_unlock(&ps->watch_mutex);
    sessile_status status = SESSILE_OK;
    while (!status && !*changed && !over) {
        if (looked && ask && ask(arg)) { /* also when it is called all the time */
            status = store_stopped(log->name, err);
            break;
        }
        over = looked && pg_over(ps, w.until_us);
        looked = 1;
        pthread_mutex_lock(&ps->watch_mutex);
        status = ensure_listener(&w, err);
        pthread_mutex_unlock(&ps->watch_mutex);
        if (!status)
            status = lease(&w, err);
        if (!status)
            status = watch_look(&w, changed, err);
        if (!status && !*changed && !over)
            status = wait(&w, &over, err);
    }
    pthread_mutex_lock(&ps->watch_mutex);
    for (pg_waiting **at = &ps->waiting; *at; at = &(*at)->next) {
        if (*at == &w.me) {
            *at = w.me.next;
            break;
        }
    }
    pthread_mutex_unlock(&ps->watch_mutex);
    return status;
}

void pg_watch_free(pg_store *ps)
{
    if (ps->listener) {
        pg_finish(ps, ps->listener);
        ps->listener = NULL;
    }
}
