/*
 * watch.c: waits until others have written to a session; asks many sessions at once
 * whether others did.
 *
 * Owns the decision whether there are new entries: entries that the caller has not seen.
 * The mutex is held while entries are read, and never while waiting.
 *
 * Whoever asks for many sessions must not wait for one of them, nor keep others waiting:
 * the store is asked without any mutex, and a session that another thread is using when
 * the answer is there counts as changed. Its log cannot go away meanwhile: one that was
 * replaced stays open as long as its session (log_close_with()).
 */
#include "session/fold.h"
#include "operations/watch.h"

#include <inttypes.h>
#include <string.h>

#include "context/disposition.h"

/* A store may wake us without news, so the time between two polls grows. */
enum { SOONEST_MS = 5, LATEST_MS = 50 };

/* Reads new entries. *seen: set to the number known before, when it is 0. */
static sessile_status read_on(session_core *s, session_wait *w, sessile_id *seen,
                              sessile_id *count, uint64_t *bytes, sessile_error *err)
{
    sessile_status status = session_lock_within(s, w, err);

    if (status)
        return status;
    if (!*seen)
        *seen = (sessile_id)log_count(s->log);
    status = session_refresh_locked(s, err);
    *count = (sessile_id)log_count(s->log);
    *bytes = log_last_size(s->log);
    session_unlock(s);
    return status;
}

sessile_status session_watch(session_core *s, sessile_id *seen, int timeout_ms,
                             int *changed, sessile_error *err)
{
    session_wait turn = session_wait_begin(s, 0, 0);
    session_syncing stop = {s, &turn};
    const os_table *os = s->store->os;
    const uint64_t begin = os->clock_us(os->ud);
    session_names names = session_own_names(s);
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_id known = *seen;
    uint64_t bytes;

    *changed = 0;
    session_moment_end(s);
    if (s->store->over_records)
        return fail(
            err, SESSILE_UNSUPPORTED,
            "the records of this session are the host's, and nobody else writes to "
            "this handle: watch where they are kept, and open it again");
    names_place(s->store, &names, folder, name);
    for (int pause = SOONEST_MS;;) {
        int woken = 0, left = timeout_ms;
        sessile_status status = read_on(s, &turn, &known, seen, &bytes, err);
        if (status)
            return status;
        if (known > *seen)
            return session_name_error(s,
                                      fail(err, SESSILE_INVALID,
                                           "it has %" PRIu32 " entries, and not %" PRIu32,
                                           *seen, known),
                                      err);
        *changed = *seen > known;
        if (timeout_ms > 0) {
            uint64_t gone_ms = (os->clock_us(os->ud) - begin) / 1000;
            left = gone_ms < (uint64_t)timeout_ms ? timeout_ms - (int)gone_ms : 0;
        }
        if (*changed || !left)
            return SESSILE_OK;
        status = log_watch(&s->store->backend, folder, name, bytes, os, left,
                           session_sync_stopped, &stop, &woken, err);
        if (status == SESSILE_NOTFOUND)
            status = fail(err, status, "it was removed: nobody writes to it any more");
        if (status)
            return session_name_error(s, status, err);
        /* it may have woken us for half a write, or for nothing */
        if (!woken)
            pause = SOONEST_MS;
        else if (pause > SOONEST_MS)
            (void)log_sleep(os, pause, session_sync_stopped, &stop);
        if (woken)
            pause = pause * 2 < LATEST_MS ? pause * 2 : LATEST_MS;
    }
}

/* ------------------------------------------------------------------ many sessions */

/* 1 if the next call on the session has news, or a reason why it is of no use any more.
 * bytes: how long its log is, or NULL: it is asked for. */
static sessile_status look(session_core *s, const log_t *log, const uint64_t *bytes,
                           unsigned char *changed, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    uint64_t size = bytes ? *bytes : 0;

    *changed = 1;
    if (pthread_mutex_trylock(&s->mutex))
        return SESSILE_OK;
    if (log == s->log && !session_check_usable(s, NULL)) {
        if (!bytes)
            status = log_look_at_end(s->log, &size, err);
        *changed = (unsigned char)(!status && log_has_news(s->log, size));
    }
    session_unlock(s);
    return status ? session_name_error(s, status, err) : SESSILE_OK;
}

/* Of SESSILE_ENDS_MOST sessions at most. */
static sessile_status look_at_some(store_core *st, session_core *const *sessions,
                                   size_t n, log_t **logs, uint64_t *bytes,
                                   unsigned char *changed, sessile_error *err)
{
    const int at_once = st->backend.table->ends != NULL;
    sessile_status status = SESSILE_OK;

    for (size_t i = 0; i < n && !status; i++) {
        logs[i] = __atomic_load_n(&sessions[i]->log, __ATOMIC_ACQUIRE);
        status = session_check_process(sessions[i], err);
        if (!status && sessions[i]->store != st)
            status = session_fail(sessions[i], err, SESSILE_INVALID,
                                  "it was opened in another store");
    }
    if (!status && at_once)
        status = log_ends(&st->backend, logs, n, bytes, &st->alloc, err);
    for (size_t i = 0; i < n && !status; i++)
        status = look(sessions[i], logs[i], at_once ? &bytes[i] : NULL, &changed[i], err);
    return status;
}

sessile_status session_changed(store_core *st, session_core *const *sessions, size_t n,
                               unsigned char *changed, sessile_error *err)
{
    const size_t room = n < SESSILE_ENDS_MOST ? n : SESSILE_ENDS_MOST;
    sessile_status status = SESSILE_OK;

    if (n == 0)
        return SESSILE_OK;
    log_t **logs = mem_alloc(&st->alloc, room * sizeof *logs);
    uint64_t *bytes = mem_alloc(&st->alloc, room * sizeof *bytes);
    if (!logs || !bytes)
        status = fail_nomem(err);
    for (size_t done = 0; done < n && !status;) {
        size_t some = n - done < room ? n - done : room;
        status =
            look_at_some(st, sessions + done, some, logs, bytes, changed + done, err);
        done += some;
    }
    if (status)
        memset(changed, 0, n);
    mem_free(&st->alloc, logs, room * sizeof *logs);
    mem_free(&st->alloc, bytes, room * sizeof *bytes);
    return status;
}
