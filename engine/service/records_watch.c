/*
 * records_watch.c: RecordService: waiting for what others append, and many logs looked at
 * together.
 *
 * Owns one thread, which is started by the first watch, and the calls that wait. It looks
 * at the logs of all of them: soon after a change by this server, and else each 50 ms,
 * which finds the writers of other servers and of this machine.
 */
#include "service/records.h"

#include <string.h>
#include <time.h>

#include "base/os.h"

enum { LOOK_MS = 50 };

typedef struct record_watch {
    struct record_watch *next;
    call *c;
    record_log *log;
    uint64_t bytes;
} record_watch;

static const call_stream stream = {NULL, NULL, NULL, NULL, NULL};

static void drop_watch(records *r, record_watch *w, int again, sessile_status status,
                       const sessile_error *err)
{
    records_give(r, w->log, again);
    call_leave(w->c, status, err);
    mem_free(&r->alloc, w, sizeof *w);
}

static void end_watch(records *r, record_watch *w, int there, uint64_t bytes)
{
    Sessile__V1__RecordLook reply = SESSILE__V1__RECORD_LOOK__INIT;
    sessile_error err;
    reply.there = there;
    reply.bytes = bytes;
    sessile_status status = call_send(w->c, &reply.base, &err);
    drop_watch(r, w, there, status, &err);
}

/* 1: the watch came to its end. */
static int look_at(records *r, record_watch *w)
{
    const sessile_backend *t = r->store.table;
    sessile_backend_stat stat;
    uint64_t bytes = 0;
    int64_t mtime_ms;
    sessile_error err;
    int there = 1;
    if (rpc_call_over(w->c->rpc)) {
        fail(&err, SESSILE_CANCELLED, "nobody waits for the reply");
        drop_watch(r, w, 1, SESSILE_CANCELLED, &err);
        return 1;
    }
    if (atomic_load(&w->c->server->stops)) {
        fail(&err, SESSILE_CLOSED, "the server is ending: ask another one");
        drop_watch(r, w, 1, SESSILE_CLOSED, &err);
        return 1;
    }
    sessile_status status = t->size(w->log->log, &bytes, &mtime_ms, &err);
    if (!status && t->replaced && t->replaced(w->log->log))
        there = 0;
    if (!status && there && (t->capabilities & SESSILE_BACKEND_LIST_CACHE))
        there = t->stat(r->store.self, w->log->folder, w->log->name, &stat, &err) !=
                SESSILE_NOTFOUND;
    /* who cannot be looked at is told to look, and sees why not */
    if (!status && there && bytes == w->bytes)
        return 0;
    end_watch(r, w, there, bytes);
    return 1;
}

static void wait_a_moment(records *r)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_nsec += LOOK_MS * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_nsec -= 1000000000L;
        until.tv_sec++;
    }
    pthread_cond_timedwait(&r->changed, &r->mutex, &until);
}

static void *watch_all(void *arg)
{
    records *r = arg;
    pthread_mutex_lock(&r->mutex);
    while (!r->ending) {
        if (!r->watches) {
            pthread_cond_wait(&r->changed, &r->mutex);
            continue;
        }
        wait_a_moment(r);
        record_watch *all = r->watches, *left = NULL;
        r->watches = NULL;
        pthread_mutex_unlock(&r->mutex);
        while (all) {
            record_watch *w = all;
            all = w->next;
            if (!look_at(r, w)) {
                w->next = left;
                left = w;
            }
        }
        pthread_mutex_lock(&r->mutex);
        while (left) {
            record_watch *w = left;
            left = w->next;
            w->next = r->watches;
            r->watches = w;
        }
    }
    pthread_mutex_unlock(&r->mutex);
    return NULL;
}

void records_poke(records *r)
{
    pthread_mutex_lock(&r->mutex);
    if (r->watches)
        pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
}

static sessile_status start_watcher(records *r, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    pthread_mutex_lock(&r->mutex);
    if (!r->watching) {
        int why = pthread_create(&r->watcher, NULL, watch_all, r);
        r->watching = !why;
        if (why)
            status = fail_errno(err, why, "a thread cannot be started");
    }
    pthread_mutex_unlock(&r->mutex);
    return status;
}

sessile_status records_watch(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordWatchRequest *q = request;
    records *r = c->server->records;
    record_log *log = NULL;
    sessile_status status = records_enter(c, err);
    if (!status)
        status = start_watcher(r, err);
    if (!status)
        status = records_take(r, q->log, &log, err);
    if (status)
        return status;
    record_watch *w = mem_zalloc(&r->alloc, sizeof *w);
    if (!w) {
        records_give(r, log, 1);
        return fail_nomem(err);
    }
    *w = (record_watch){NULL, c, log, q->bytes};
    call_stay(c, &stream, NULL);
    pthread_mutex_lock(&r->mutex);
    w->next = r->watches;
    r->watches = w;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    return SESSILE_OK;
}

void records_watch_close(records *r)
{
    pthread_mutex_lock(&r->mutex);
    r->ending = 1;
    pthread_cond_signal(&r->changed);
    pthread_mutex_unlock(&r->mutex);
    if (r->watching)
        pthread_join(r->watcher, NULL);
    while (r->watches) {
        record_watch *w = r->watches;
        sessile_error err;
        r->watches = w->next;
        fail(&err, SESSILE_CLOSED, "the server is ending: ask another one");
        drop_watch(r, w, 0, SESSILE_CLOSED, &err);
    }
}

/* ---------------------------------------------------------------------- many together */

enum { TOGETHER = 128 /* of the open logs, which are 256 */ };

/* Of the logs at names[0..n): what is open, or can be opened, is asked in one question.
 */
static sessile_status ask_ends(records *r, Sessile__V1__RecordLog *const *names, size_t n,
                               uint64_t *out, sessile_error *err)
{
    record_log *logs[TOGETHER];
    sessile_backend_log *open[TOGETHER];
    uint64_t bytes[TOGETHER];
    size_t place[TOGETHER], count = 0;
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; i < n && !status; i++) {
        status = records_take(r, names[i], &logs[count], err);
        if (!status) {
            open[count] = logs[count]->log;
            place[count++] = i;
        } else if (status == SESSILE_NOTFOUND) {
            out[i] = SESSILE_LOG_GONE;
            status = SESSILE_OK;
        }
    }
    if (!status && count)
        status = r->store.table->ends(r->store.self, open, count, bytes, err);
    for (size_t i = 0; i < count; i++) {
        if (!status)
            out[place[i]] = bytes[i];
        records_give(r, logs[i], !status && bytes[i] != SESSILE_LOG_GONE);
    }
    return status;
}

sessile_status records_tell_ends(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__RecordEndsRequest *q = request;
    records *r = c->server->records;
    Sessile__V1__RecordEnds reply = SESSILE__V1__RECORD_ENDS__INIT;
    sessile_status status = records_enter(c, err);
    if (!status && !r->store.table->ends)
        status = fail(err, SESSILE_UNSUPPORTED, "the store looks at one log at a time");
    if (!status && (q->n_logs == 0 || q->n_logs > SESSILE_ENDS_MOST))
        status = fail(err, SESSILE_INVALID, "ends are asked of 1 to %d logs",
                      SESSILE_ENDS_MOST);
    if (status)
        return status;
    reply.bytes = call_new(c, q->n_logs * sizeof *reply.bytes);
    if (!reply.bytes)
        return fail_nomem(err);
    reply.n_bytes = q->n_logs;
    for (size_t i = 0; i < q->n_logs && !status; i += TOGETHER) {
        size_t n = q->n_logs - i < TOGETHER ? q->n_logs - i : TOGETHER;
        status = ask_ends(r, q->logs + i, n, reply.bytes + i, err);
    }
    return status ? status : call_reply(c, &reply.base, err);
}
