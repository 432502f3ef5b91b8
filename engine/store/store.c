/*
 * store.c: what all backends share: closing, checking names, waiting for a lock.
 */
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "store/wait.h"

#define NAME_LONGEST 200

void store_close(store *s)
{
    if (!s || !s->table)
        return;
    s->table->free(s->self);
    s->table = NULL;
    s->self = NULL;
}

int store_name_ok(const char *name)
{
    if (!name || name[0] == '\0' || name[0] == '.')
        return 0;
    size_t size = strlen(name);
    return size <= NAME_LONGEST &&
           strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_=.-") == size;
}

void store_misnamed(uint64_t number, const char *name, char out[STORE_MISNAMED_SIZE])
{
    int size = snprintf(out, STORE_MISNAMED_SIZE, STORE_MISNAMED "%" PRIu64 ".", number);
    char *at = out + size;
    for (; *name != '\0' && at < out + STORE_MISNAMED_SIZE - 1; name++)
        *at++ = (*name >= 'a' && *name <= 'z') || (*name >= '0' && *name <= '9') ||
                        *name == '-'
                    ? *name
                    : '_';
    *at = '\0';
}

const char *store_blob_shown(uint64_t number, const char *name,
                             char out[STORE_MISNAMED_SIZE])
{
    if (store_name_ok(name))
        return name;
    store_misnamed(number, name, out);
    return out;
}

int store_is_misnamed(const char *name, uint64_t *number)
{
    char *end;
    if (!name || strncmp(name, STORE_MISNAMED, sizeof STORE_MISNAMED - 1) != 0)
        return 0;
    *number = strtoull(name + sizeof STORE_MISNAMED - 1, &end, 10);
    return 1;
}

sessile_status store_name_check(const char *name, sessile_error *err)
{
    uint64_t number;
    if (store_is_misnamed(name, &number)) {
        return fail(err, SESSILE_DAMAGED,
                    "the name of %s is damaged: mend it with `sessile check --salvage`",
                    name);
    }
    return store_name_ok(name)
               ? SESSILE_OK
               : fail(err, SESSILE_INVALID, "the store was given a name it cannot keep");
}

sessile_status store_names_check(const char *folder, const char *name, sessile_error *err)
{
    sessile_status status = store_name_check(folder, err);
    return status ? status : store_name_check(name, err);
}

/*
 * A writer holds the lock for some microseconds (the sync is done outside it), so the
 * first tries only give the processor away; who still waits then sleeps, a little longer
 * each time, so that a hundred waiters do not keep a core busy.
 */
int lock_wait(const os_table *os, int timeout_ms, int (*attempt)(void *arg), void *arg,
              lock_stop stop)
{
    enum { EAGER = 8, LONGEST_MS = 8 };
    uint64_t start = 0;
    int pause_ms = 1;
    for (unsigned tries = 0;; tries++) {
        int got = attempt(arg);
        if (got <= 0 || timeout_ms == 0)
            return got;
        if (stop.ask && stop.ask(stop.arg))
            return LOCK_STOPPED;
        uint64_t now = os->clock_us(os->ud);
        if (tries == 0)
            start = now;
        else if (timeout_ms > 0 && now - start >= (uint64_t)timeout_ms * 1000)
            return LOCK_TAKEN;
        if (tries < EAGER) {
            os->sleep_ms(os->ud, 0);
            continue;
        }
        int pause = pause_ms;
        if (timeout_ms > 0) {
            uint64_t left_ms = ((uint64_t)timeout_ms * 1000 - (now - start)) / 1000 + 1;
            pause = left_ms < (uint64_t)pause ? (int)left_ms : pause;
        }
        os->sleep_ms(os->ud, pause);
        pause_ms = pause_ms < LONGEST_MS ? pause_ms * 2 : LONGEST_MS;
    }
}

sessile_status store_stopped(const char *log, sessile_error *err)
{
    return fail(err, SESSILE_CANCELLED,
                "waiting for %s was ended by another thread: nothing was written, do it "
                "again when you want it",
                log);
}

sessile_status store_undecided(const char *log, sessile_error *err)
{
    return fail(err, SESSILE_IO,
                "nobody can tell whether an append to %s took place: " STORE_LOOK_AGAIN,
                log);
}
