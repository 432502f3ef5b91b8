/*
 * remove.c: a log taken away for good, whether it opens or not.
 *
 * Owns the decision that the log is still the one that was meant: the name leads to it
 * under its lock, and nobody wrote since it was looked at. Must never read it.
 */
#include "log/inside.h"

/* The header line of a sealed log, in which its key is, is shorter. */
#define HEAD_MOST (UINT64_C(16) << 20)
/* Others who replace it at the same time are waited for; so many do not come. */
enum { TRIES = 8 };

sessile_status log_remove(store *st, const keyring *k, const char *folder,
                          const char *name, uint64_t expected, int timeout_ms,
                          uint64_t *bytes, sessile_error *err)
{
    const sessile_backend *table = st->table;
    int locks = (table->capabilities & SESSILE_BACKEND_LOCKS) != 0, replaced = 1;
    sessile_status status = SESSILE_OK;
    int64_t mtime_ms;

    *bytes = 0;
    if (table->remove == NULL) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the store \"%s\" removes nothing: delete it softly", table->name);
    }
    for (int i = 0; status == SESSILE_OK && replaced && i < TRIES; i++) {
        sessile_backend_log *log;
        status = table->open(st->self, folder, name, &log, err);
        if (status != SESSILE_OK) {
            return status;
        }
        replaced = 0;
        if (locks) {
            status =
                log_lock(table, log, SESSILE_LOCK_EXCLUSIVE, timeout_ms, &replaced, err);
        }
        if (status == SESSILE_OK && !replaced) {
            status = table->size(log, bytes, &mtime_ms, err);
        }
        if (status == SESSILE_OK && !replaced && expected != UINT64_MAX &&
            *bytes != expected) {
            status = fail(err, SESSILE_CONFLICT,
                          "%s was written to meanwhile: it was left alone", name);
        }
        if (status == SESSILE_OK && !replaced) {
            status = table->remove(log, keyring_sealed(k) ? HEAD_MOST : UINT64_MAX, err);
        }
        table->close(log); /* its lock goes with it */
    }
    return status == SESSILE_OK && replaced
               ? fail(err, SESSILE_BUSY, "%s is being replaced: try again", name)
               : status;
}
