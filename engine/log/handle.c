/*
 * handle.c: the state of an open log, and calls of its backend.
 *
 * Owns the backend calls that every other file needs: size, lock, whether the log still
 * has its name. Must never read a line, and calls no other file of this folder, so that
 * all of them may call it.
 */
#include <string.h>

#include "log/internal.h"

/* Buffers that grew past this are given back. Reading needs less than writing: a log that
 * is only appended to through this handle never reads. */
#define KEEP      ((size_t)64 << 10)
#define KEEP_READ ((size_t)16 << 10)

/* ---------------------------------------------------------------------- memory */

static void trim_buffer(buf *b, size_t keep)
{
    if (b->capacity > keep)
        buf_deinit(b);
}

void log_trim_lines(log_t *log)
{
    trim_buffer(&log->buffers.lines, KEEP);
    trim_buffer(&log->buffers.scratch, KEEP);
}

void log_trim(log_t *log)
{
    trim_buffer(&log->buffers.piece, KEEP_READ);
    trim_buffer(&log->buffers.text, KEEP_READ);
    log_trim_lines(log);
}

sessile_id log_write_first(const log_t *log)
{
    return (sessile_id)(log->end.count - log->in_write);
}

const char *log_user(const log_t *log)
{
    return log->key.user;
}

uint64_t log_torn(const log_t *log)
{
    return log->torn;
}

uint64_t log_last_size(const log_t *log)
{
    return log->asked;
}

void log_reread(log_t *log)
{
    if (log->st.table->reread)
        log->st.table->reread(log->handle);
}

void log_set_timeout(log_t *log, int timeout_ms)
{
    log->timeout_ms = timeout_ms;
    if (log->st.table->set_timeout)
        log->st.table->set_timeout(log->handle, timeout_ms);
}

void log_set_stop(log_t *log, log_stop stop, void *arg)
{
    if (log->st.table->set_stop)
        log->st.table->set_stop(log->handle, stop, arg);
}

sessile_status log_size(log_t *log, uint64_t *size, sessile_error *err)
{
    int64_t mtime_ms;
    sessile_status status = log->st.table->size(log->handle, size, &mtime_ms, err);
    log->asked = !status ? *size : UINT64_MAX;
    return log_check_gone(log, status, err);
}

sessile_status log_check_gone(log_t *log, sessile_status status, sessile_error *err)
{
    sessile_error ignored = {0};
    uint64_t size;
    int64_t mtime_ms;
    if (status != SESSILE_NOTFOUND || log_has_locks(log->st.table))
        return status;
    log->asked = UINT64_MAX;
    (void)log->st.table->size(log->handle, &size, &mtime_ms, &ignored);
    return fail(err, SESSILE_NOTFOUND,
                log_replaced(log) ? "%s was replaced since it was opened: open it again"
                                  : "%s was removed since it was opened: nothing more is "
                                    "read from it or written to it",
                log->name);
}

sessile_status log_check_exists(log_t *log, sessile_error *err)
{
    char first;
    size_t got;
    return log_has_locks(log->st.table)
               ? SESSILE_OK
               : log_check_gone(log,
                                log->st.table->read(log->handle, 0, 0, &first,
                                                    sizeof first, &got, err),
                                err);
}

int log_replaced(const log_t *log)
{
    const sessile_backend *table = log->st.table;
    return (table->capabilities & SESSILE_BACKEND_REPLACES) != 0 && table->replaced &&
           table->replaced(log->handle);
}

int log_can_retry(log_t *log, sessile_status status)
{
    return status == SESSILE_NOTFOUND && !log_has_locks(log->st.table) &&
           log_replaced(log);
}

sessile_status log_lock(const sessile_backend *table, sessile_backend_log *handle,
                        int kind, int timeout_ms, int *replaced, sessile_error *err)
{
    sessile_status status = table->lock(handle, kind, timeout_ms, replaced, err);
    return status == SESSILE_BUSY && table->busy ? table->busy(handle, err) : status;
}

/* Its name was removed or given to another: the session above looks which. */
sessile_status log_fail_name_gone(const log_t *log, sessile_error *err)
{
    return fail(err, SESSILE_NOTFOUND,
                "%s was removed or replaced since it was opened: open it again",
                log->name);
}
