/*
 * rewrite.c: writes everything that can be read of a damaged log to a new one.
 *
 * The new log has the same name, the same entries and the same ids, with stand-ins for
 * lost entries. It has its own header and data key, and each line is a commit that names
 * the line before it as durable (copy.c). Must never touch the old bytes, which get a
 * name of their own, nor write what it has not just opened. If it is interrupted, the old
 * log or the new one has the name, and there may be a draft, which is not a log.
 */
#include <string.h>

#include "log/copy.h"
#include "log/internal.h"

/* OK when the log is still the one that was read. */
static sessile_status unchanged(log_t *log, int replaced, sessile_error *err)
{
    uint64_t size;
    sessile_status status = log_size(log, &size, err);
    if (!status && (replaced || log_replaced(log))) {
        return fail(err, SESSILE_NOTFOUND,
                    "%s was removed or replaced since it was opened: open it again",
                    log->name);
    }
    if (!status && size != log_bytes(log)) {
        status = fail(err, SESSILE_CONFLICT, "%s changed while it was read: try again",
                      log->name);
    }
    return status;
}

/* Every entry of log, its header first. */
static sessile_status copy_all(log_t *log, log_copy *copy, const keyring *k,
                               const char *folder, const char *name, buf *text,
                               sessile_error *err)
{
    sessile_status status = log_read(log, 0, text, err);
    if (!status) {
        status = log_copy_begin(copy, &log->st, k, folder, name, log_user(log),
                                text->data, text->size, log->alloc, err);
    }
    for (uint64_t id = 1; !status && id < log_count(log); id++) {
        buf_clear(text);
        status = log_read(log, (sessile_id)id, text, err);
        if (!status)
            status = log_copy_entry(copy, text->data, text->size, 1, err);
    }
    return status;
}

sessile_status log_rewrite(log_t *log, const keyring *k, const char *folder,
                           const char *name, char *kept, size_t kept_size,
                           sessile_error *err)
{
    const sessile_backend *table = log->st.table;
    sessile_error local = {0};
    log_copy copy;
    buf text;
    int replaced = 0;
    err = err ? err : &local;
    error_clear(err);
    memset(&copy, 0, sizeof copy);
    if (kept_size > 0)
        kept[0] = '\0';
    if ((table->capabilities & SESSILE_BACKEND_REPLACES) == 0) {
        return fail(err, SESSILE_UNSUPPORTED, "the store of %s replaces no logs",
                    log->name);
    }
    sessile_status status = SESSILE_OK;
    if (log_has_locks(table)) {
        status = log_lock(table, log->handle, SESSILE_LOCK_EXCLUSIVE, log->timeout_ms,
                          &replaced, err);
    }
    if (status)
        return status;
    buf_init(&text, log->alloc);
    status = unchanged(log, replaced, err);
    if (!status)
        status = copy_all(log, &copy, k, folder, name, &text, err);
    /* Without locks the store refuses when it has changed since unchanged() asked. */
    if (!status)
        status = log_copy_finish(&copy, log->handle, 1, kept, kept_size, err);
    log_copy_drop(&copy);
    if (log_has_locks(table))
        table->unlock(log->handle);
    buf_deinit(&text);
    return status;
}
