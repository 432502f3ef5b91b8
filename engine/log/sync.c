/*
 * sync.c: makes writes durable, and poisons a log after a failed sync.
 *
 * Owns what is known to be synced, and the poison. One thread syncs. Threads that come
 * meanwhile wait; that sync covers their entries, or one of them makes the next sync. So
 * sixteen writers pay for two syncs. Must never sync again after a sync has failed: the
 * kernel has marked the pages clean, and a second sync would report a false success.
 * (BUSY is no failure: a database waits for its standbys, and can be asked again.)
 *
 * Handles of one log in one process also share syncs, in store/file/shared.c. Processes
 * sync for themselves.
 */
#include <string.h>

#include "log/internal.h"
#include "store/wait.h"

/* How much log_settle() writes at once. */
#define SETTLE_PIECE ((size_t)1 << 20)

void log_note_progress(log_t *log, uint64_t written, uint64_t durable)
{
    pthread_mutex_lock(&log->sync.mutex);
    /* A scan from the start shows again what was written long ago. */
    if (written > log->sync.written)
        log->sync.written = written;
    if (durable > log->sync.durable)
        log->sync.durable = durable;
    pthread_mutex_unlock(&log->sync.mutex);
}

void log_poison(log_t *log, const sessile_error *why)
{
    pthread_mutex_lock(&log->sync.mutex);
    if (!log->sync.poison.code) {
        fail(
            &log->sync.poison, SESSILE_IO,
            log_has_locks(log->st.table)
                ? "nothing more is written to %s since a write could not be made safe: %s"
                : "nothing more is written to %s through this handle, since nobody can "
                  "tell whether its last write took place: " STORE_LOOK_AGAIN " (%s)",
            log->name, why->message);
    }
    pthread_mutex_unlock(&log->sync.mutex);
}

sessile_status log_poisoned(log_t *log, sessile_error *err)
{
    pthread_mutex_lock(&log->sync.mutex);
    sessile_status status = log->sync.poison.code;
    if (status && err)
        *err = log->sync.poison;
    pthread_mutex_unlock(&log->sync.mutex);
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
    pthread_mutex_lock(&log->sync.mutex);
    uint64_t durable = log->sync.durable;
    pthread_mutex_unlock(&log->sync.mutex);
    if (durable >= log->end.count) {
        log->settled = 1;
        return SESSILE_OK;
    }
    uint64_t at = log->offsets[durable];
    buf_clear(&log->buffers.piece);
    while (!status && table->rewrite && at < log->end.bytes) {
        uint64_t left = log->end.bytes - at;
        size_t size = left < SETTLE_PIECE ? (size_t)left : SETTLE_PIECE, got = 0;
        if (buf_reserve(&log->buffers.piece, size) != 0) {
            status = fail_nomem(err);
            break;
        }
        status = table->read(log->handle, durable, at, log->buffers.piece.data, size,
                             &got, err);
        if (!status && got != size) {
            status = fail(err, SESSILE_IO, "%s could not be read to its end: try again",
                          log->name);
        }
        if (!status)
            status = table->rewrite(log->handle, at, log->buffers.piece.data, size, err);
        at += size;
    }
    log_trim(log);
    if (status)
        return status;
    status = table->sync(log->handle, err);
    if (status) {
        if (status != SESSILE_BUSY)
            log_poison(log, err);
        return status;
    }
    log_note_progress(log, log->end.count, log->end.count);
    log->settled = 1;
    return SESSILE_OK;
}

sessile_status log_sync(log_t *log, sessile_id target, sessile_error *err)
{
    return log_sync_stoppable(log, target, NULL, NULL, err);
}

sessile_status log_sync_stoppable(log_t *log, sessile_id target, log_stop stop, void *arg,
                                  sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    sessile_error local = {0};
    err = err ? err : &local;
    pthread_mutex_lock(&log->sync.mutex);
    while (log->sync.busy && log->sync.durable < target && !log->sync.poison.code) {
        if (stop && stop(arg)) {
            status = fail(err, SESSILE_CANCELLED,
                          "waiting for a sync of %s was ended by another thread: it is "
                          "written and not known to be safe: look before doing it again",
                          log->name);
            goto out;
        }
        os_cond_slice(&log->sync.ended, &log->sync.mutex);
    }
    if (log->sync.durable >= target)
        goto out;
    if (log->sync.poison.code) {
        *err = log->sync.poison;
        status = err->code;
        goto out;
    }
    log->sync.busy = 1;
    uint64_t covered = log->sync.written; /* before the sync begins */
    pthread_mutex_unlock(&log->sync.mutex);
    status = log->st.table->sync(log->handle, err);
    if (status && status != SESSILE_BUSY)
        log_poison(log, err);
    pthread_mutex_lock(&log->sync.mutex);
    log->sync.busy = 0;
    if (!status && covered > log->sync.durable)
        log->sync.durable = covered;
    pthread_cond_broadcast(&log->sync.ended);
out:
    pthread_mutex_unlock(&log->sync.mutex);
    return status;
}
