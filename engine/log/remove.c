/*
 * remove.c: removes a log, whether it opens or not.
 *
 * Decides whether the log is still the one that was meant: under its lock, the name leads
 * to it, and it has the size and ends with the line that the caller saw. Without locks
 * the store compares the size once more. Reads only what stands in clear: the start of
 * the first line, and the last bytes. Must never open a line.
 */
#include <string.h>

#include "log/internal.h"

/* The header line of a sealed log, in which its key is, is shorter. */
#define HEAD_MOST (UINT64_C(16) << 20)

/* OK: nothing opens the log any more, since its user was forgotten. Under its lock, or
 * before a removal that is refused if another log took the name. before_ms: as of
 * log_remove_forgotten(). */
static sessile_status check_forgotten(const sessile_backend *table,
                                      sessile_backend_log *log, const keyring *k,
                                      const char *name, int64_t mtime_ms,
                                      int64_t before_ms, sessile_error *err)
{
    char start[LOG_LOOK];
    size_t got = 0;
    logkey_about about;
    sessile_status status = table->read(log, 0, 0, start, sizeof start, &got, err);
    int forgot = status || logkey_look(&about, start, got) != 0 ? 0
                 : about.user[0] && mtime_ms < before_ms        ? 1
                                                         : keyring_forgot(k, &about, err);
    if (forgot < 0)
        return err->code;
    return status || forgot ? status
                            : fail(err, SESSILE_CONFLICT,
                                   "%s is not the log of a user who was forgotten: it "
                                   "was left alone",
                                   name);
}

static sessile_status read_tail(const sessile_backend *table, sessile_backend_log *log,
                                sessile_id count, uint64_t bytes, char out[LOG_TAIL],
                                size_t *size, sessile_error *err)
{
    *size = 0;
    if (count == 0 || bytes < LOG_TAIL)
        return SESSILE_OK;
    return table->read(log, count - 1, bytes - LOG_TAIL, out, LOG_TAIL, size, err);
}

sessile_status log_get_ending(log_t *log, log_ending *out, sessile_error *err)
{
    uint64_t size;
    sessile_status status = log_size(log, &size, err);
    memset(out, 0, sizeof *out);
    out->bytes = log_bytes(log);
    out->count = log_count(log);
    if (!status && size != out->bytes)
        return fail(err, SESSILE_CONFLICT, "%s was written to meanwhile", log->name);
    return !status ? read_tail(log->st.table, log->handle, out->count, out->bytes,
                               out->tail, &out->tail_size, err)
                   : status;
}

/* CONFLICT: it does not end as expected. */
static sessile_status check_ending(const sessile_backend *table, sessile_backend_log *log,
                                   const log_ending *expected, uint64_t bytes,
                                   const char *name, sessile_error *err)
{
    char tail[LOG_TAIL];
    size_t size = 0;
    sessile_status status = SESSILE_OK;
    int same = bytes == expected->bytes;
    if (same && expected->tail_size) {
        status = read_tail(table, log, expected->count, bytes, tail, &size, err);
        same = size == expected->tail_size && memcmp(tail, expected->tail, size) == 0;
    }
    if (status || same)
        return status;
    return fail(err, SESSILE_CONFLICT,
                "%s was written to or replaced meanwhile: it was left alone", name);
}

/* *again: it was replaced, or written to although any bytes were meant, since it was
 * opened. */
static sessile_status remove_once(store *st, const keyring *k, const char *folder,
                                  const char *name, const log_ending *expected,
                                  int timeout_ms, const int64_t *forgotten,
                                  uint64_t *bytes, int *again, sessile_error *err)
{
    const sessile_backend *table = st->table;
    const int locks = log_has_locks(table);
    sessile_backend_log *log;
    int64_t mtime_ms;
    int replaced = 0;
    *again = 0;
    sessile_status status = table->open(st->self, folder, name, &log, err);
    if (status)
        return status;
    if (locks)
        status = log_lock(table, log, SESSILE_LOCK_EXCLUSIVE, timeout_ms, &replaced, err);
    if (table->set_timeout)
        table->set_timeout(log, timeout_ms);
    if (!status && !replaced)
        status = table->size(log, bytes, &mtime_ms, err);
    if (!status && !replaced && forgotten)
        status = check_forgotten(table, log, k, name, mtime_ms, *forgotten, err);
    if (!status && !replaced && expected)
        status = check_ending(table, log, expected, *bytes, name, err);
    if (!status && !replaced) {
        status = table->remove(log, keyring_sealed(k) ? HEAD_MOST : UINT64_MAX, err);
        /* Where it was removed, and not replaced, opening it again says so; and what has
         * other bytes by now than were expected is left alone there. */
        *again = !locks && (status == SESSILE_CONFLICT || status == SESSILE_NOTFOUND);
    }
    *again = *again || (!status && replaced);
    table->close(log); /* its lock goes with it */
    return status;
}

static sessile_status remove_log(store *st, const keyring *k, const char *folder,
                                 const char *name, const log_ending *expected,
                                 int timeout_ms, const int64_t *forgotten,
                                 uint64_t *bytes, sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    int again = 1;
    err = err ? err : &local;
    *bytes = 0;
    if (!st->table->remove) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "the store \"%s\" removes nothing: delete it softly",
                    st->table->name);
    }
    for (int i = 0; again && i < LOG_TRIES; i++) {
        error_clear(err);
        status = remove_once(st, k, folder, name, expected, timeout_ms, forgotten, bytes,
                             &again, err);
    }
    return again ? fail(err, SESSILE_BUSY,
                        "%s is being written to or replaced: try again", name)
                 : status;
}

sessile_status log_remove(store *st, const keyring *k, const char *folder,
                          const char *name, const log_ending *expected, int timeout_ms,
                          uint64_t *bytes, sessile_error *err)
{
    return remove_log(st, k, folder, name, expected, timeout_ms, NULL, bytes, err);
}

sessile_status log_remove_forgotten(store *st, const keyring *k, const char *folder,
                                    const char *name, int64_t before_ms, int timeout_ms,
                                    uint64_t *bytes, sessile_error *err)
{
    return remove_log(st, k, folder, name, NULL, timeout_ms, &before_ms, bytes, err);
}
