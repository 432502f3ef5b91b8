/*
 * log.c: opens, refreshes and closes logs.
 *
 * Owns the life of a handle, and decides at opening whether bytes past the last commit
 * are judged under the exclusive lock or without it. Must never open a log whose name
 * leads to another one by then: it tries again with that one.
 */
#include "log/log.h"

#include <string.h>

#include "log/internal.h"

/* ---------------------------------------------------------------------- the handle */

void log_close(log_t *log)
{
    if (!log)
        return;
    const allocator *a = log->alloc;
    log_close(log->before);
    index_deinit(log);
    if (log->handle)
        log->st.table->close(log->handle);
    log_damage_free(log);
    logkey_deinit(&log->key);
    if (log->name)
        mem_free(a, log->name, strlen(log->name) + 1);
    mem_free(a, log->offsets, log->offset_capacity * sizeof *log->offsets);
    mem_free(a, log->pending.ends, log->pending.capacity * sizeof *log->pending.ends);
    buf_deinit(&log->buffers.lines);
    buf_deinit(&log->buffers.scratch);
    buf_deinit(&log->buffers.piece);
    buf_deinit(&log->prefetch.bytes);
    buf_deinit(&log->buffers.text);
    pthread_cond_destroy(&log->sync.ended);
    pthread_mutex_destroy(&log->sync.mutex);
    mem_free(a, log, sizeof *log);
}

/* Learns how long the log is, unless its opening has said so. */
static sessile_status ask_size(log_t *log, sessile_error *err)
{
    uint64_t size;
    log->cache_bytes = UINT64_MAX;
    if (!log->st.table->opened)
        return log_size(log, &size, err);
    log->st.table->opened(log->handle, &log->asked, &log->cache_bytes);
    return SESSILE_OK;
}

/* The log's key out of its first line. */
static sessile_status read_key(log_t *log, const keyring *k, sessile_error *err)
{
    char *text;
    size_t text_size;
    reader r;
    sessile_status status = ask_size(log, err);
    if (status)
        return status;
    reader_init(&r, log, 0, log->asked);
    reader_found found = reader_next(&r, 0, &text, &text_size, err);
    if (found == READER_FAILED)
        return err->code;
    if (found != READER_LINE) {
        /* a store may say that a log which was removed has no bytes */
        status = log_check_exists(log, err);
        if (status)
            return status;
        return fail(err, SESSILE_DAMAGED,
                    "it has no first line: nothing of it can be opened. Nothing was "
                    "changed: bring back a backup");
    }
    index_bind(log, text, text_size);
    return k ? line_key(&log->key, k, text, text_size, err)
             : line_read_key_info(&log->key, text, text_size, err);
}

/*
 * *moved 1: what failed says nothing of the log that has the name now. Whoever removes a
 * log overwrites its first line before the name goes, so a first line that is none is
 * damage only if the name still leads to it when nobody holds its lock. A key that does
 * not open may be one that was dropped, since all logs were sealed again after this one
 * was opened.
 */
sessile_status log_check_moved(log_t *log, sessile_status status, int *moved,
                               sessile_error *err)
{
    sessile_error other = {0};
    uint64_t size;
    int64_t mtime_ms;
    int replaced = 0;
    *moved = log_can_retry(log, status);
    if (status != SESSILE_DAMAGED && status != SESSILE_SEALED)
        return status;
    if (!log_has_locks(log->st.table)) {
        /* log_replaced() is what the store saw when it was asked last */
        *moved = !log->st.table->size(log->handle, &size, &mtime_ms, &other) &&
                 log_replaced(log);
        return status;
    }
    sessile_status got = log_lock(log->st.table, log->handle, SESSILE_LOCK_SHARED,
                                  log->timeout_ms, &replaced, &other);
    if (!got) {
        log->st.table->unlock(log->handle);
        *moved = replaced;
    } else if (got == SESSILE_BUSY || got == SESSILE_CANCELLED) {
        return fail(
            err, got,
            "%s cannot be read while somebody else holds it, perhaps to remove it: "
            "%s",
            log->name, other.message);
    }
    return status;
}

/* *moved: the name was gone, or another log's, before the first line was read. */
static sessile_status attach_once(log_t **out, store *st, const keyring *k,
                                  const char *folder, const char *name, unsigned depth,
                                  int timeout_ms, int *moved, const allocator *a,
                                  sessile_error *err)
{
    *out = NULL;
    *moved = 0;
    log_t *log = mem_zalloc(a, sizeof *log);
    if (!log)
        return fail_nomem(err);
    log->st = *st;
    log->alloc = a;
    log->depth = depth;
    pthread_mutex_init(&log->sync.mutex, NULL);
    os_cond_init(&log->sync.ended);
    buf_init(&log->buffers.lines, a);
    buf_init(&log->buffers.scratch, a);
    buf_init(&log->buffers.piece, a);
    buf_init(&log->prefetch.bytes, a);
    buf_init(&log->buffers.text, a);
    buf_puts(&log->buffers.scratch, folder);
    buf_puts(&log->buffers.scratch, "/");
    buf_puts(&log->buffers.scratch, name);
    if (!log->buffers.scratch.failed)
        log->name = mem_dup(a, log->buffers.scratch.data, log->buffers.scratch.size);
    sessile_status status = !log->name ? fail_nomem(err) : SESSILE_OK;
    if (!status)
        status = st->table->open(st->self, folder, name, &log->handle, err);
    if (!status) {
        log_set_timeout(log, timeout_ms);
        status = read_key(log, k, err);
        if (status && status != SESSILE_NOTFOUND)
            fail_prefix(err, "%s", log->name);
        status = log_check_moved(log, status, moved, err);
    }
    if (status) {
        log_close(log);
        return status;
    }
    *out = log;
    return SESSILE_OK;
}

sessile_status log_open_unread(log_t **out, store *st, const keyring *k,
                               const char *folder, const char *name, unsigned depth,
                               int timeout_ms, const allocator *a, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int moved = 1;
    for (int i = 0; moved && i < LOG_TRIES; i++) {
        error_clear(err);
        status = attach_once(out, st, k, folder, name, depth, timeout_ms, &moved, a, err);
    }
    return status;
}

/* ---------------------------------------------------------------------- opening */

/* Scans to size, from where the index leads or from the start. */
static sessile_status scan_first(log_t *log, uint64_t size, log_visit visit, void *arg,
                                 sessile_error *err)
{
    sessile_status status = index_begin(log, size, visit, arg, err);
    if (!status)
        status = log_scan(log, size, visit, arg, err);
    if (!status && log->in_write != 0) {
        /* A write that was safe does not end: only a scan can say where the log does. */
        index_forget(log);
        log->index.callbacks.reset(log->index.callbacks.arg);
        status = log_scan(log, size, visit, arg, err);
    }
    return status;
}

/* 1 when the log has been read and is as long as it was: a torn end is still there. */
static int is_uncut(log_t *log, uint64_t was)
{
    uint64_t size;
    sessile_error err;
    return log->end.count > 0 && !log->sync.poison.code && !log_size(log, &size, &err) &&
           size >= was && size > log->end.bytes;
}

/* *moved: it was removed meanwhile, or another log took its name. */
static sessile_status open_once(log_t **out, store *st, const keyring *k,
                                const char *folder, const char *name, unsigned depth,
                                int timeout_ms, const log_index_callbacks *callbacks,
                                log_visit visit, void *arg, uint64_t *torn, int *moved,
                                const allocator *a, sessile_error *err)
{
    uint64_t size, cut = 0;
    int replaced = 0;
    log_t *log;
    *out = NULL;
    *moved = 0;
    sessile_status status =
        log_open_unread(&log, st, k, folder, name, depth, timeout_ms, a, err);
    if (status)
        return status;
    if (callbacks && (st->table->capabilities & SESSILE_BACKEND_CACHES) != 0)
        log->index.callbacks = *callbacks;
    *out = log;
    /* asked a moment ago, for the first line; a database need not be asked again */
    size = log->asked;
    if (log_has_locks(log->st.table))
        status = log_size(log, &size, err);
    if (!status)
        status = scan_first(log, size, visit, arg, err);
    if (status)
        goto out;
    /* The index may be newer than the size: then the log has grown since, or was cut. */
    if (size == log->end.bytes && log->end.count > 0 &&
        log->end.count >= log->index.proof)
        goto out;
    /* Something is past the last commit. With the lock, the truth can be had at once. */
    status =
        log_has_locks(log->st.table)
            ? log->st.table->lock(log->handle, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, err)
            : SESSILE_BUSY;
    if (!status) {
        *moved = replaced;
        status = replaced ? log_fail_name_gone(log, err)
                          : log_recover(log, visit, arg, &cut, err);
        if ((status == SESSILE_DENIED || status == SESSILE_FULL) && is_uncut(log, size)) {
            error_clear(
                err); /* there is no place for the torn end: who appends is told */
            status = SESSILE_OK;
        }
        log->st.table->unlock(log->handle);
    } else if (status == SESSILE_BUSY || status == SESSILE_DENIED ||
               status == SESSILE_UNSUPPORTED) {
        error_clear(err);
        status = log_scan_unlocked(log, visit, arg, err);
    }
out:
    if (!status)
        status = log_check_proof(log, size, err);
    status = log_record_damage(log, status, err);
    if (status) {
        int gone = 0;
        status = log_check_moved(log, status, &gone, err);
        *moved = *moved || gone;
        *out = NULL;
        log_close(log);
        return status;
    }
    log_note_progress(log, log->end.count, 1); /* the header came durable */
    if (!log->damage)
        log_index_try(log);
    log->torn = cut;
    *torn = cut;
    return SESSILE_OK;
}

sessile_status log_open_indexed(log_t **out, store *st, const keyring *k,
                                const char *folder, const char *name, unsigned depth,
                                int timeout_ms, const log_index_callbacks *callbacks,
                                log_visit visit, void *arg, uint64_t *torn,
                                const allocator *a, sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    uint64_t cut = 0;
    int moved = 1;
    err = err ? err : &local;
    for (int i = 0; moved && i < LOG_TRIES; i++) {
        if (i > 0 && callbacks)
            callbacks->reset(callbacks->arg);
        error_clear(err);
        status = open_once(out, st, k, folder, name, depth, timeout_ms, callbacks, visit,
                           arg, &cut, &moved, a, err);
        moved = moved && callbacks; /* else what was shown cannot be taken back */
    }
    if (torn)
        *torn = cut;
    return status;
}

sessile_status log_open(log_t **out, store *st, const keyring *k, const char *folder,
                        const char *name, unsigned depth, int timeout_ms, log_visit visit,
                        void *arg, uint64_t *torn, const allocator *a, sessile_error *err)
{
    return log_open_indexed(out, st, k, folder, name, depth, timeout_ms, NULL, visit, arg,
                            torn, a, err);
}

void log_close_with(log_t *log, log_t *old)
{
    index_deinit(old);
    old->index.off = 1;
    mem_free(old->alloc, old->offsets, old->offset_capacity * sizeof *old->offsets);
    old->offsets = NULL;
    old->offset_capacity = 0;
    log->torn += old->torn;
    log_t *last = log;
    while (last->before)
        last = last->before;
    last->before = old;
}

sessile_status log_refresh(log_t *log, log_visit visit, void *arg, sessile_error *err)
{
    sessile_error local = {0};
    err = err ? err : &local;
    error_clear(err);
    if (log->damage)
        return SESSILE_OK; /* nobody writes to it: what it has was read at opening */
    return log_scan_unlocked(log, visit, arg, err);
}
