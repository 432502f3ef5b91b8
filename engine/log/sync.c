/*
 * sync.c: when a write is durable, and when a log is lost to writing.
 *
 * Owns what is known to be synced, and the poison. One thread syncs; those who come
 * meanwhile wait, and find their entries covered by it or make the next one: sixteen
 * writers pay for two syncs, not sixteen. It must never sync again after a sync failed:
 * the kernel has marked the pages clean, and a second sync would report a success that is
 * none.
 *
 * Handles of one log in one process share as well, below: store/file/shared.c. Processes
 * sync each for themselves.
 */
#include <string.h>

#include "log/internal.h"

/* How much log_settle() writes at once. */
#define SETTLE_PIECE ((size_t)1 << 20)

void log_learn(log_t *log, uint64_t written, uint64_t durable)
{
    pthread_mutex_lock(&log->mutex);
    /* A scan from the start shows again what was written long ago. */
    if (written > log->written)
        log->written = written;
    if (durable > log->durable)
        log->durable = durable;
    pthread_mutex_unlock(&log->mutex);
}

void log_poison(log_t *log, const sessile_error *why)
{
    pthread_mutex_lock(&log->mutex);
    if (!log->poison.code) {
        fail(
            &log->poison, SESSILE_IO,
            log_has_locks(log->st.table)
                ? "nothing more is written to %s since a write could not be made safe: %s"
                : "nothing more is written to %s through this handle, since nobody can "
                  "tell whether its last write took place: open it again, which shows "
                  "it (%s)",
            log->name, why->message);
    }
    pthread_mutex_unlock(&log->mutex);
}

sessile_status log_poisoned(log_t *log, sessile_error *err)
{
    pthread_mutex_lock(&log->mutex);
    sessile_status status = log->poison.code;
    if (status && err)
        *err = log->poison;
    pthread_mutex_unlock(&log->mutex);
    return status;
}

/*
 * The problem: the newest writes of whoever was here before are in the log, but no line
 * says that they are on the device, and their writer may have been told that a sync
 * failed. Our own first line would be taken for a proof that they are. The choice: write
 * their bytes once more where they stand and sync, once a handle. The pages are dirty
 * again, so that this sync speaks of them; and the next line may name them. Without it a
 * log written by one process an append would never prove anything, and damage in its
 * middle would pass for a torn end.
 */
sessile_status log_settle(log_t *log, sessile_error *err)
{
    const sessile_backend *table = log->st.table;
    sessile_status status = SESSILE_OK;
    pthread_mutex_lock(&log->mutex);
    uint64_t durable = log->durable;
    pthread_mutex_unlock(&log->mutex);
    if (durable >= log->end.count) {
        log->settled = 1;
        return SESSILE_OK;
    }
    uint64_t at = log->offsets[durable];
    buf_clear(&log->piece);
    while (!status && table->rewrite && at < log->end.bytes) {
        uint64_t left = log->end.bytes - at;
        size_t size = left < SETTLE_PIECE ? (size_t)left : SETTLE_PIECE, got = 0;
        if (buf_reserve(&log->piece, size) != 0) {
            status = fail_nomem(err);
            break;
        }
        status = table->read(log->handle, durable, at, log->piece.data, size, &got, err);
        if (!status && got != size) {
            status = fail(err, SESSILE_IO, "%s could not be read to its end: try again",
                          log->name);
        }
        if (!status)
            status = table->rewrite(log->handle, at, log->piece.data, size, err);
        at += size;
    }
    log_trim(log);
    if (status)
        return status;
    status = table->sync(log->handle, err);
    if (status) {
        log_poison(log, err);
        return status;
    }
    log_learn(log, log->end.count, log->end.count);
    log->settled = 1;
    return SESSILE_OK;
}

sessile_status log_sync(log_t *log, sessile_id target, sessile_error *err)
{
    return log_sync_unless(log, target, NULL, NULL, err);
}

sessile_status log_sync_unless(log_t *log, sessile_id target, log_stop stop, void *arg,
                               sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    sessile_error local = {SESSILE_OK, ""};
    err = err ? err : &local;
    pthread_mutex_lock(&log->mutex);
    while (log->syncing && log->durable < target && !log->poison.code) {
        if (stop && stop(arg)) {
            status = fail(err, SESSILE_CANCELLED,
                          "waiting for a sync of %s was ended by another thread: it is "
                          "written and not known to be safe: look before doing it again",
                          log->name);
            goto out;
        }
        os_cond_slice(&log->synced, &log->mutex);
    }
    if (log->durable >= target)
        goto out;
    if (log->poison.code) {
        *err = log->poison;
        status = err->code;
        goto out;
    }
    log->syncing = 1;
    uint64_t covered = log->written; /* before the sync begins */
    pthread_mutex_unlock(&log->mutex);
    status = log->st.table->sync(log->handle, err);
    if (status)
        log_poison(log, err);
    pthread_mutex_lock(&log->mutex);
    log->syncing = 0;
    if (!status && covered > log->durable)
        log->durable = covered;
    pthread_cond_broadcast(&log->synced);
out:
    pthread_mutex_unlock(&log->mutex);
    return status;
}
