/*
 * check.c: opens a log to check it, and changes nothing.
 *
 * Reads a log from its first byte, so that every line is opened and compared with the one
 * before it. Bytes past the last commit are judged under a shared lock, so that a write
 * in progress is not reported. Must never cut, set aside, settle or write an index.
 */
#include <string.h>

#include "log/internal.h"

/* Reads on to the end as it is now. */
static sessile_status read_on(log_t *log, log_visit visit, void *arg, uint64_t *size,
                              sessile_error *err)
{
    sessile_status status = log_size(log, size, err);
    if (!status && *size > log->end.bytes)
        status = log_scan(log, *size, visit, arg, err);
    if (!status && *size < log->end.bytes) {
        log->judged = 1;
        status = fail(err, SESSILE_TRUNCATED,
                      "%s ends at byte %llu, and %llu bytes were there a moment ago. "
                      "Nothing was changed",
                      log->name, (unsigned long long)*size,
                      (unsigned long long)log->end.bytes);
    }
    return status;
}

/* What is past the last commit, once nobody is writing it. */
static sessile_status look_at_tail(log_t *log, int timeout_ms, log_visit visit, void *arg,
                                   uint64_t *size, log_tail *tail, sessile_error *err)
{
    const sessile_backend *table = log->st.table;
    int replaced, locked = 0;
    sessile_status status = SESSILE_OK;
    if (log_has_locks(table)) {
        status =
            table->lock(log->handle, SESSILE_LOCK_SHARED, timeout_ms, &replaced, err);
        if (status == SESSILE_BUSY) {
            error_clear(err);
            tail->busy = 1;
            return SESSILE_OK;
        }
        locked = status == SESSILE_OK;
        if (status == SESSILE_UNSUPPORTED) { /* a network folder */
            error_clear(err);
            tail->unlocked = 1;
            status = SESSILE_OK;
        }
        if (status)
            return status;
    }
    status = read_on(log, visit, arg, size, err);
    if (!status && *size > log->end.bytes)
        status = log_judge(log, *size, err);
    if (locked)
        table->unlock(log->handle);
    return status;
}

/* A store that keeps the end of a log apart from its entries takes no append when the
 * two differ. Where counts or bytes differ its size says so. */
static sessile_status check_fence(log_t *log, sessile_error *err)
{
    sessile_log_end kept;
    uint64_t size = 0;
    int has_tag;
    if (!log->st.table->fence)
        return SESSILE_OK;
    sessile_status status = log->st.table->fence(log->handle, &kept, &has_tag, err);
    if (!status)
        status = log_size(log, &size, err);
    /* when it has grown since it was read, what is kept is of what came */
    if (status || size != log->end.bytes || kept.bytes != log->end.bytes ||
        kept.count != log->end.count || !has_tag ||
        memcmp(kept.tag, log->end.tag, sizeof kept.tag) == 0)
        return status;
    log->judged = 1;
    return fail(err, SESSILE_DAMAGED,
                "%s: the store's note of its last entry (tag) is wrong: all of it can be "
                "read, and nothing can be appended",
                log->name);
}

/* What was read to its end, with that status, is a log that holds together. */
static sessile_status judge_end(log_t *log, sessile_status status, uint64_t size,
                                log_tail *tail, sessile_error *err)
{
    if (!status && log->end.count == 0) {
        status =
            fail(err, SESSILE_DAMAGED,
                 "%s is damaged at byte 0, entry 00000000, its header: nothing of it "
                 "can be opened. Nothing was changed: bring back a backup",
                 log->name);
    }
    if (!status)
        status = log_check_proof(log, size, err);
    if (!status)
        status = check_fence(log, err);
    status = log_record_damage(log, status, err);
    if (!status && !log->damage && size > log->end.bytes) {
        tail->offset = log->end.bytes;
        tail->bytes = size - log->end.bytes;
    }
    return status;
}

static sessile_status inspect_once(log_t **out, store *st, const keyring *k,
                                   const char *folder, const char *name, unsigned depth,
                                   int timeout_ms, const log_index_callbacks *callbacks,
                                   log_visit visit, void *arg, log_tail *tail, int *moved,
                                   const allocator *a, sessile_error *err)
{
    uint64_t size = 0;
    log_t *log;
    *out = NULL;
    *moved = 0;
    *tail = (log_tail){0, 0, 0, 0};
    sessile_status status =
        log_open_unread(&log, st, k, folder, name, depth, timeout_ms, a, err);
    if (status)
        return status;
    log_reread(log);
    if (callbacks && (st->table->capabilities & SESSILE_BACKEND_CACHES) != 0) {
        log->index.callbacks = *callbacks;
        log->index.callbacks.fresh = 1;
    }
    *out = log;
    /* The proof before the log's size: what it knows of was there by then. */
    status = index_begin(log, 0, NULL, NULL, err);
    if (!status)
        status = read_on(log, visit, arg, &size, err);
    if (!status && size > log->end.bytes)
        status = look_at_tail(log, timeout_ms, visit, arg, &size, tail, err);
    status = judge_end(log, status, size, tail, err);
    if (status) {
        status = log_check_moved(log, status, moved, err);
        *out = NULL;
        log_close(log);
    }
    return status;
}

sessile_status log_inspect(log_t **out, store *st, const keyring *k, const char *folder,
                           const char *name, unsigned depth, int timeout_ms,
                           const log_index_callbacks *callbacks, log_visit visit,
                           void *arg, log_tail *tail, const allocator *a,
                           sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    int moved = 1;
    err = err ? err : &local;
    for (int i = 0; moved && i < LOG_TRIES; i++) {
        if (i > 0)
            callbacks->reset(callbacks->arg);
        error_clear(err);
        status = inspect_once(out, st, k, folder, name, depth, timeout_ms, callbacks,
                              visit, arg, tail, &moved, a, err);
        moved = moved && callbacks; /* else what was shown cannot be taken back */
    }
    return status;
}

sessile_status log_inspect_step(log_t *log, uint64_t bytes, log_visit visit, void *arg,
                                int *more, log_tail *tail, sessile_error *err)
{
    sessile_error local = {0};
    uint64_t size = 0, begin = log->end.bytes, limit;
    sessile_status status = SESSILE_OK;
    err = err ? err : &local;
    *more = 0;
    *tail = (log_tail){0, 0, 0, 0};
    if (log->damage)
        return SESSILE_OK;
    status = log_size(log, &size, err);
    /* A write may be larger than that, and then more is read until it ends. */
    for (limit = begin; !status && log->end.bytes == begin && limit < size; bytes *= 2) {
        limit = bytes < size - begin ? begin + bytes : size;
        status = log_scan(log, limit, visit, arg, err);
    }
    *more = !status && log->end.bytes > begin && log->end.bytes < size;
    if (*more)
        return SESSILE_OK;
    if (!status)
        status = read_on(log, visit, arg, &size, err);
    if (!status && size > log->end.bytes)
        status = look_at_tail(log, log->timeout_ms, visit, arg, &size, tail, err);
    return judge_end(log, status, size, tail, err);
}
