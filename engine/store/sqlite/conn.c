/*
 * conn.c: connections to the database.
 *
 * Each call takes a connection of its own, so readers never wait for a writer. A few idle
 * ones are kept. A connection never waits inside SQLite (it has no busy handler), because
 * such a wait could not be ended.
 */
#include "store/sqlite/sqlite.h"

#include <string.h>

#define IDLE_MOST 6

sqlite_patience sqlite_patience_of(const sqlite_store *ss)
{
    return (sqlite_patience){ss->timeout_ms, {NULL, NULL}, ss->path};
}

void sqlite_conn_close(sqlite_conn *c)
{
    if (!c)
        return;
    for (int i = 0; i < QUERY_COUNT; i++)
        sqlite3_finalize(c->statements[i]);
    sqlite3_close(c->db);
    mem_free(&c->store->alloc, c, sizeof *c);
}

/* 1 when the database is in WAL mode now. */
static int is_wal(sqlite3 *db, const char *text, int *rc)
{
    sqlite3_stmt *st = NULL;
    int wal = 0;
    *rc = sqlite3_prepare_v2(db, text, -1, &st, NULL);
    if (*rc == SQLITE_OK) {
        *rc = sqlite3_step(st);
        if (*rc == SQLITE_ROW) {
            const char *mode = (const char *)sqlite3_column_text(st, 0);
            wal = mode && strcmp(mode, "wal") == 0;
        }
        *rc = *rc == SQLITE_ROW || *rc == SQLITE_DONE ? SQLITE_OK : *rc;
    }
    sqlite3_finalize(st);
    return wal;
}

typedef struct opening {
    sqlite_store *store;
    int make;
    sqlite_conn *conn;
    sessile_status status;
    sessile_error *err;
} opening;

static int give_up(opening *o, int rc, const char *doing)
{
    o->status = (rc & 0xff) == SQLITE_BUSY
                    ? SESSILE_BUSY
                    : sqlite_fail(o->store, o->conn->db, rc, doing, o->err);
    return o->status == SESSILE_BUSY;
}

static int set_up(opening *o)
{
    sqlite_conn *c = o->conn;
    sqlite_store *ss = o->store;
    int rc = sqlite3_open_v2(ss->real, &c->db,
                             SQLITE_OPEN_READWRITE | SQLITE_OPEN_NOMUTEX |
                                 SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW,
                             NULL);
    if (rc != SQLITE_OK)
        return give_up(o, rc, "cannot open");
    sqlite3_extended_result_codes(c->db, 1);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    /* those that a stranger put into the file; the engine uses none */
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_ENABLE_VIEW, 0, NULL);
    sqlite3_limit(c->db, SQLITE_LIMIT_ATTACHED, 0);
    /* until it is known to be ours, closing it must change nothing */
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    o->status = sqlite_schema_ready(c, o->make, &rc, o->err);
    if (o->status)
        return o->status == SESSILE_BUSY;
    sqlite3_db_config(c->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    rc = sqlite3_exec(c->db,
                      "PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON;"
                      "PRAGMA secure_delete = ON; PRAGMA cell_size_check = ON;"
                      "PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY",
                      NULL, NULL, NULL);
    if (rc != SQLITE_OK)
        return give_up(o, rc, "cannot open");
    if (!is_wal(c->db, "PRAGMA journal_mode", &rc) && rc == SQLITE_OK &&
        !sqlite3_db_readonly(c->db, "main") &&
        !is_wal(c->db, "PRAGMA journal_mode = WAL", &rc) && rc == SQLITE_OK) {
        o->status = fail(o->err, SESSILE_UNSUPPORTED,
                         "SQLite cannot keep a write-ahead log beside %s: keep the "
                         "database on another file system",
                         ss->path);
        return 0;
    }
    if (rc != SQLITE_OK)
        return give_up(o, rc, "cannot open");
    sqlite3_wal_hook(c->db, sqlite_sync_committed, c);
    return 0;
}

/* For lock_wait(): 1: others are at it. */
static int try_open(void *arg)
{
    opening *o = arg;
    sqlite_store *ss = o->store;
    o->status = SESSILE_OK;
    o->conn = mem_zalloc(&ss->alloc, sizeof *o->conn);
    if (!o->conn) {
        o->status = fail_nomem(o->err);
        return -1;
    }
    o->conn->store = ss;
    int again = set_up(o);
    if (!o->status)
        return 0;
    sqlite_conn_close(o->conn);
    o->conn = NULL;
    return again ? 1 : -1;
}

/* ------------------------------------------------------------------ those that wait */

/* Looks at the file, and makes it. Under the mutex. */
static sessile_status file_ready(sqlite_store *ss, int make, sessile_error *err)
{
    int there, state = 1;
    sessile_status status = sqlite_path_look(ss, &there, err);
    if (!status && !there && make) {
        status = sqlite_path_make(ss, err);
        if (!status)
            status = sqlite_path_look(ss, &there, err);
    }
    if (status)
        return status;
    if (there && !ss->ours)
        status = sqlite_schema_probe(ss, &state, err);
    if (!status && (!there || (!state && !make)))
        status = fail(err, SESSILE_NOTFOUND, "nothing was ever kept in %s", ss->path);
    return status;
}

sessile_status sqlite_conn_take(sqlite_store *ss, sqlite_patience wait, int make,
                                sqlite_conn **out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    *out = NULL;
    pthread_mutex_lock(&ss->mutex);
    if (ss->idle) {
        *out = ss->idle;
        ss->idle = (*out)->next;
        ss->idle_count--;
    } else {
        status = file_ready(ss, make, err);
    }
    pthread_mutex_unlock(&ss->mutex);
    if (status || *out)
        return status;
    opening o = {ss, make, NULL, SESSILE_OK, err};
    switch (lock_wait(ss->os, wait.timeout_ms, try_open, &o, wait.stop)) {
    case LOCK_GOT:
        break;
    case LOCK_TAKEN:
        return fail(err, SESSILE_BUSY,
                    "others are setting up or recovering %s: wait longer, or try again",
                    ss->path);
    case LOCK_STOPPED:
        return store_stopped(wait.what, err);
    default:
        return o.status;
    }
    pthread_mutex_lock(&ss->mutex);
    ss->ours = 1;
    pthread_mutex_unlock(&ss->mutex);
    *out = o.conn;
    return SESSILE_OK;
}

void sqlite_conn_give(sqlite_conn *c, int broken)
{
    sqlite_store *ss = c->store;
    if (!broken && sqlite3_get_autocommit(c->db)) {
        pthread_mutex_lock(&ss->mutex);
        if (ss->idle_count < IDLE_MOST) {
            c->next = ss->idle;
            ss->idle = c;
            ss->idle_count++;
            c = NULL;
        }
        pthread_mutex_unlock(&ss->mutex);
    }
    sqlite_conn_close(c);
}
