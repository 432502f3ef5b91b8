/*
 * rename.c: gives a log whose name was damaged its right name.
 *
 * Must never take the name of another log, nor read or change the log itself.
 */
#include "log/internal.h"

sessile_status log_rename(store *st, const char *folder, const char *name,
                          const char *to_folder, const char *to_name, int timeout_ms,
                          sessile_error *err)
{
    const sessile_backend *table = st->table;
    sessile_backend_log *log;
    int replaced = 0;
    sessile_status status;
    if (!table->rename) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the store \"%s\" cannot rename a log: rename it there", table->name);
    }
    status = table->open(st->self, folder, name, &log, err);
    if (status)
        return status;
    if (log_has_locks(table))
        status = log_lock(table, log, SESSILE_LOCK_EXCLUSIVE, timeout_ms, &replaced, err);
    if (table->set_timeout)
        table->set_timeout(log, timeout_ms);
    if (!status && replaced)
        status = fail(err, SESSILE_CONFLICT, "%s was replaced meanwhile: check it again",
                      name);
    if (!status)
        status = table->rename(log, to_folder, to_name, err);
    table->close(log); /* its lock goes with it */
    return status;
}
