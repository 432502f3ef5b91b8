/*
 * watch.c: waits until others have written to a session.
 *
 * Owns the decision whether there are new entries: entries that the caller has not seen.
 * The mutex is held while entries are read, and never while waiting.
 */
#include "session/fold.h"
#include "operations/watch.h"

#include <inttypes.h>

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
