/*
 * statement.c: runs a statement that gives no rows, or one number.
 */
#include "store/sqlite/sqlite.h"

int sqlite_step(sqlite3_stmt *st)
{
    int rc = st ? sqlite3_step(st) : SQLITE_NOMEM;
    int reset = st ? sqlite3_reset(st) : SQLITE_OK;
    return rc == SQLITE_DONE || rc == SQLITE_ROW ? reset : rc;
}

int64_t sqlite_ask(sqlite3 *db, const char *text, int *rc)
{
    sqlite3_stmt *st = NULL;
    int64_t answer = -1;
    *rc = sqlite3_prepare_v2(db, text, -1, &st, NULL);
    if (*rc == SQLITE_OK) {
        *rc = sqlite3_step(st);
        if (*rc == SQLITE_ROW) {
            answer = sqlite3_column_int64(st, 0);
            *rc = SQLITE_OK;
        } else if (*rc == SQLITE_DONE) {
            *rc = SQLITE_OK;
        }
    }
    sqlite3_finalize(st);
    return answer;
}
