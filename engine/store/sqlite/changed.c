/*
 * changed.c: how long each of many logs is, on one connection.
 *
 * Each row is looked at as `size` does it, and by itself: what costs is finding the row,
 * not the statement. No transaction is held over all of them, so that the WAL can be
 * checkpointed meanwhile.
 */
#include "store/sqlite/sqlite.h"

typedef struct ending {
    sessile_backend_log *const *logs;
    size_t n;
    uint64_t *bytes;
} ending;

static int ends_body(sqlite_conn *c, void *arg)
{
    const ending *e = arg;
    int rc = SQLITE_OK;
    for (size_t i = 0; i < e->n && rc == SQLITE_OK; i++) {
        sqlite3_stmt *st;
        rc = sqlite_row(c, QUERY_LOG_ROW, SQL(sql_int(sqlite_log_of(e->logs[i])->id)),
                        &st);
        int there = rc == SQLITE_ROW && sqlite3_column_type(st, 5) != SQLITE_NULL;
        e->bytes[i] = there ? (uint64_t)sqlite3_column_int64(st, 1) : SESSILE_LOG_GONE;
        rc = sqlite_end(st, rc);
    }
    return rc;
}

sessile_status sqlite_ends(void *self, sessile_backend_log *const *logs, size_t n,
                           uint64_t *bytes, sessile_error *err)
{
    sqlite_store *ss = self;
    ending e = {logs, n, bytes};
    return sqlite_run_read(ss, sqlite_patience_of(ss), ends_body, &e, err);
}
