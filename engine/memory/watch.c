/*
 * watch.c: waits until others have written to a memory.
 *
 * As session_watch() does for sessions. The mutex is held while entries are read, and
 * never while waiting.
 */
#include "memory/memory.h"

#include <inttypes.h>

/* A store may wake us without news, so the time between two polls grows. */
enum { SOONEST_MS = 5, LATEST_MS = 50 };

static int never_stopped(void *arg)
{
    (void)arg;
    return 0;
}

/* Reads new entries. *known: set to the number known before, when it is 0. */
static sessile_status read_on(memory_core *m, sessile_id *known, sessile_id *count,
                              uint64_t *bytes, sessile_error *err)
{
    sessile_status status = memory_check_process(m, err);

    if (status)
        return memory_name_error(m, status, err);
    if (!*known) {
        pthread_mutex_lock(&m->mutex);
        *known = log_count(m->log);
        pthread_mutex_unlock(&m->mutex);
    }
    status = memory_lock_fresh(m, err);
    if (status)
        return status;
    *count = log_count(m->log);
    *bytes = log_last_size(m->log);
    memory_unlock(m);
    return SESSILE_OK;
}

sessile_status memory_watch(memory_core *m, sessile_id *seen, int timeout_ms,
                            int *changed, sessile_error *err)
{
    const os_table *os = m->store->os;
    const uint64_t begin = os->clock_us(os->ud);
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_id known = *seen;
    uint64_t bytes = 0;

    *changed = 0;
    memory_place(m, folder, name);
    for (int pause = SOONEST_MS;;) {
        int woken = 0, left = timeout_ms;
        sessile_status status = read_on(m, &known, seen, &bytes, err);
        if (!status && known > *seen)
            status = memory_name_error(
                m,
                fail(err, SESSILE_INVALID, "it has %" PRIu32 " entries, and not %" PRIu32,
                     *seen, known),
                err);
        if (status)
            return status;
        *changed = *seen > known;
        if (timeout_ms > 0) {
            uint64_t gone_ms = (os->clock_us(os->ud) - begin) / 1000;
            left = gone_ms < (uint64_t)timeout_ms ? timeout_ms - (int)gone_ms : 0;
        }
        if (*changed || !left)
            return SESSILE_OK;
        status = log_watch(&m->store->backend, folder, name, bytes, os, left,
                           never_stopped, NULL, &woken, err);
        if (status == SESSILE_NOTFOUND)
            status = fail(err, status, "it was removed: nobody writes to it any more");
        if (status)
            return memory_name_error(m, status, err);
        /* it may have woken us for half a write, or for nothing */
        if (!woken)
            pause = SOONEST_MS;
        else if (pause > SOONEST_MS)
            os->sleep_ms(os->ud, pause);
        if (woken)
            pause = pause * 2 < LATEST_MS ? pause * 2 : LATEST_MS;
    }
}
