/*
 * statement.c: statements: parameters, rows, results.
 */
#include "store/sqlite/sqlite.h"

sqlite3_stmt *sqlite_query_get(sqlite_conn *c, sqlite_query query)
{
    sqlite3_stmt **st = &c->statements[query];
    if (*st) {
        sqlite3_reset(*st);
        sqlite3_clear_bindings(*st);
        return *st;
    }
    sqlite3_prepare_v3(c->db, sqlite_query_texts[query], -1, SQLITE_PREPARE_PERSISTENT,
                       st, NULL);
    return *st;
}

int sqlite_bind(sqlite_conn *c, sqlite_query query, const sqlite_value *values,
                sqlite3_stmt **out)
{
    sqlite3_stmt *st = *out = sqlite_query_get(c, query);
    int rc = st ? SQLITE_OK : sqlite3_errcode(c->db);
    for (int i = 1; rc == SQLITE_OK && values && values->kind; values++, i++)
        if (values->kind == SQLITE_INT)
            rc = sqlite3_bind_int64(st, i, values->number);
        else if (!values->data)
            rc = sqlite3_bind_null(st, i);
        else if (values->kind == SQLITE_STRING)
            rc = sqlite3_bind_text64(st, i, values->data, values->size, SQLITE_STATIC,
                                     SQLITE_UTF8);
        else
            rc = sqlite3_bind_blob64(st, i, values->data, values->size, SQLITE_STATIC);
    return rc;
}

int sqlite_exec(sqlite_conn *c, sqlite_query query, const sqlite_value *values)
{
    sqlite3_stmt *st;
    int rc = sqlite_bind(c, query, values, &st);
    return rc == SQLITE_OK ? sqlite_step(st) : rc;
}

int sqlite_row(sqlite_conn *c, sqlite_query query, const sqlite_value *values,
               sqlite3_stmt **out)
{
    int rc = sqlite_bind(c, query, values, out);
    return rc == SQLITE_OK ? sqlite3_step(*out) : rc;
}

int sqlite_end(sqlite3_stmt *st, int rc)
{
    if (st)
        sqlite3_reset(st);
    return rc == SQLITE_ROW || rc == SQLITE_DONE ? SQLITE_OK : rc;
}

int sqlite_get_bytes(sqlite_conn *c, sqlite_query query, const char *name, char **out,
                     size_t *size)
{
    sqlite3_stmt *st;
    int rc = sqlite_row(c, query, SQL(sql_text(name)), &st);
    *out = NULL;
    if (rc == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(st, 0);
        *size = (size_t)sqlite3_column_bytes(st, 0);
        *out = host_dup(&allocator_default, data ? data : "", *size);
        rc = *out ? SQLITE_ROW : SQLITE_NOMEM;
    }
    return sqlite_end(st, rc);
}

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
