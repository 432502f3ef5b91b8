/*
 * run.c: runs one call as one transaction.
 *
 * Writers of one store queue; only the first of them tries to get SQLite's lock, which
 * other processes may hold. A commit that failed for any reason but a full disk has an
 * unknown outcome, and is never reported as not done.
 */
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <string.h>

int64_t sqlite_now(const sqlite_store *ss)
{
    return ss->os->now_ms(ss->os->ud);
}

/* 1 when a connection that met this is not to be used again. */
static int breaks(int rc)
{
    int primary = rc & 0xff;
    return primary == SQLITE_IOERR || primary == SQLITE_CORRUPT ||
           primary == SQLITE_NOTADB || primary == SQLITE_CANTOPEN ||
           primary == SQLITE_NOMEM;
}

/* ------------------------------------------------------------------ trying */

typedef struct attempt {
    sqlite_conn *conn;
    sqlite_body body; /* NULL: begins a transaction */
    void *arg;
    int rc;
} attempt;

static int is_busy(int rc)
{
    return (rc & 0xff) == SQLITE_BUSY || (rc & 0xff) == SQLITE_PROTOCOL;
}

static int try_once(void *arg)
{
    attempt *t = arg;
    t->rc = t->body ? t->body(t->conn, t->arg)
                    : sqlite_step(sqlite_query_get(t->conn, QUERY_BEGIN));
    if (t->rc != SQLITE_OK && t->body)
        for (int i = 0; i < QUERY_COUNT; i++)
            sqlite3_reset(t->conn->statements[i]);
    return is_busy(t->rc) ? 1 : 0;
}

/* OK also when what was tried failed for another reason: t->rc. */
static sessile_status try_until(sqlite_store *ss, sqlite_patience wait, attempt *t,
                                sessile_error *err)
{
    switch (lock_wait(ss->os, wait.timeout_ms, try_once, t, wait.stop)) {
    case LOCK_STOPPED:
        return store_stopped(wait.what, err);
    case LOCK_TAKEN:
        return fail(err, SESSILE_BUSY,
                    "another process is writing to %s: wait longer, or try again",
                    ss->path);
    default:
        return is_busy(t->rc) ? fail(err, SESSILE_BUSY,
                                     "another process is writing to %s: wait longer, or "
                                     "try again",
                                     ss->path)
                              : SESSILE_OK;
    }
}

sessile_status sqlite_run_read(sqlite_store *ss, sqlite_patience wait, sqlite_body body,
                               void *arg, sessile_error *err)
{
    sqlite_conn *c;
    sessile_status status = sqlite_conn_take(ss, wait, 0, &c, err);
    if (status)
        return status;
    attempt t = {c, body, arg, SQLITE_OK};
    status = try_until(ss, wait, &t, err);
    if (!status && t.rc != SQLITE_OK && t.rc != SQLITE_UNDO)
        status = sqlite_fail(ss, c->db, t.rc, "cannot read", err);
    sqlite_conn_give(c, t.rc != SQLITE_UNDO && breaks(t.rc));
    return status;
}

/* ------------------------------------------------------------------ the turn */

static sessile_status turn_take(sqlite_store *ss, sqlite_patience *wait,
                                sessile_error *err)
{
    const os_table *os = ss->os;
    sessile_status status = SESSILE_OK;
    uint64_t start = 0;
    pthread_mutex_lock(&ss->mutex);
    while (ss->writing && !status) {
        uint64_t now = os->clock_us(os->ud);
        start = start == 0 ? now : start;
        if (wait->stop.ask && wait->stop.ask(wait->stop.arg)) {
            status = store_stopped(wait->what, err);
        } else if (wait->timeout_ms >= 0 &&
                   now - start >= (uint64_t)wait->timeout_ms * 1000) {
            status = fail(err, SESSILE_BUSY,
                          "another thread is writing to %s: wait longer, or try again",
                          ss->path);
        } else {
            os_cond_slice(&ss->moved, &ss->mutex);
        }
    }
    ss->writing |= status == SESSILE_OK;
    pthread_mutex_unlock(&ss->mutex);
    if (start != 0 && wait->timeout_ms > 0) {
        uint64_t gone_ms = (os->clock_us(os->ud) - start) / 1000;
        wait->timeout_ms =
            gone_ms < (uint64_t)wait->timeout_ms ? wait->timeout_ms - (int)gone_ms : 0;
    }
    return status;
}

static void turn_give(sqlite_store *ss)
{
    pthread_mutex_lock(&ss->mutex);
    ss->writing = 0;
    pthread_cond_broadcast(&ss->moved);
    pthread_mutex_unlock(&ss->mutex);
}

/* ------------------------------------------------------------------ writing */

/* A file that was moved away is written to as if nothing had happened, and lost. */
static sessile_status still_named(const sqlite_store *ss, sqlite_conn *c,
                                  sessile_error *err)
{
    int moved = 0;
    sqlite3_file_control(c->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved ? fail(err, SESSILE_IO,
                        "%s was moved, removed or replaced while it was open: close the "
                        "store and open it again",
                        ss->path)
                 : SESSILE_OK;
}

/* The transaction that has begun. *undone: the body wants nothing kept. */
static sessile_status run(sqlite_store *ss, sqlite_conn *c, sqlite_body body, void *arg,
                          int *undone, int *unknown, int *broken, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int committing = 0;
    int rc = body(c, arg);
    *undone = rc == SQLITE_UNDO;
    if (rc == SQLITE_OK) {
        committing = 1;
        rc = sqlite_step(sqlite_query_get(c, QUERY_COMMIT));
    }
    if (rc != SQLITE_OK && rc != SQLITE_UNDO) {
        status = sqlite_fail(ss, c->db, rc, "cannot write to", err);
        *unknown = committing && (rc & 0xff) == SQLITE_IOERR;
        *broken = breaks(rc);
    }
    if (rc != SQLITE_OK && !sqlite3_get_autocommit(c->db)) {
        for (int i = 0; i < QUERY_COUNT; i++)
            sqlite3_reset(c->statements[i]);
        sqlite_step(sqlite_query_get(c, QUERY_ROLLBACK));
    }
    return status;
}

sessile_status sqlite_run_write(sqlite_store *ss, sqlite_patience wait, int flags,
                                sqlite_body body, void *arg, int *unknown,
                                sessile_error *err)
{
    sqlite_conn *c = NULL;
    int broken = 0, undone = 0, maybe = 0;
    unknown = unknown ? unknown : &maybe;
    *unknown = 0;
    sessile_status status = sqlite_poisoned(ss, err);
    if (!status)
        status = turn_take(ss, &wait, err);
    if (status)
        return status;
    status = sqlite_conn_take(ss, wait, flags & SQLITE_MAKES, &c, err);
    if (!status)
        status = sqlite_sync_ready(ss, wait, err);
    if (!status)
        status = still_named(ss, c, err);
    if (!status) {
        attempt t = {c, NULL, NULL, SQLITE_OK};
        status = try_until(ss, wait, &t, err);
        if (!status && t.rc != SQLITE_OK) {
            status = sqlite_fail(ss, c->db, t.rc, "cannot write to", err);
            broken = breaks(t.rc);
        } else if (!status) {
            status = run(ss, c, body, arg, &undone, unknown, &broken, err);
        }
    }
    if (c)
        sqlite_conn_give(c, broken);
    turn_give(ss);
    if (!status && !undone && (flags & SQLITE_DURABLE) != 0) {
        status = sqlite_sync_store(ss, err);
        *unknown = status != SESSILE_OK;
    }
    return status;
}
