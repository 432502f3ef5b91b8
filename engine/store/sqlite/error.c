/*
 * error.c: SQLite's result codes as statuses with a message; stores that are poisoned.
 */
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <string.h>

static int no_space(int error)
{
    return error == ENOSPC || error == EDQUOT || error == EFBIG;
}

sessile_status sqlite_fail(const sqlite_store *ss, sqlite3 *db, int rc, const char *doing,
                           sessile_error *err)
{
    const char *says = db ? sqlite3_errmsg(db) : sqlite3_errstr(rc);
    int error = db ? sqlite3_system_errno(db) : 0;
    const char *path = ss->path;
    if (db && sqlite3_errcode(db) == SQLITE_OK) {
        /* found by us, not by SQLite */
        says = (rc & 0xff) == SQLITE_CORRUPT ? "its rows do not fit together"
                                             : sqlite3_errstr(rc);
    }
    switch (rc & 0xff) {
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
        return fail(err, SESSILE_BUSY,
                    "%s %s: another writer holds it: wait longer, or try again", doing,
                    path);
    case SQLITE_NOMEM:
        return fail_nomem(err);
    case SQLITE_FULL:
        return fail(err, SESSILE_FULL,
                    "%s %s: no space is left: make room, and do it again", doing, path);
    case SQLITE_TOOBIG:
        return fail(err, SESSILE_LIMIT, "%s %s: SQLite keeps no value that large", doing,
                    path);
    case SQLITE_READONLY:
        return fail(err, SESSILE_DENIED,
                    "%s %s: it may only be read: see the rights of the file and of its "
                    "folder (%s)",
                    doing, path, says);
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return fail(err, SESSILE_DENIED, "%s %s: %s", doing, path, says);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
        return fail(
            err, SESSILE_DAMAGED,
            "%s %s: the database is damaged (%s): look with `sqlite3 FILE 'PRAGMA "
            "integrity_check'`, and bring back a backup",
            doing, path, says);
    case SQLITE_ERROR:
        return fail(err, SESSILE_DAMAGED,
                    "%s %s: its tables are not those that were made (%s): bring back a "
                    "backup",
                    doing, path, says);
    case SQLITE_CANTOPEN:
        /* a missing -wal or -shm cannot be made in a folder that may only be read */
        return fail(err, error == EIO || error == EMFILE ? SESSILE_IO : SESSILE_DENIED,
                    "%s %s, or the files that SQLite keeps beside it: see the rights of "
                    "the file and of its folder (%s)",
                    doing, path, error != 0 ? strerror(error) : says);
    default:
        return fail(err, no_space(error) ? SESSILE_FULL : SESSILE_IO, "%s %s: %s%s",
                    doing, path, says,
                    rc == SQLITE_IOERR_WRITE && error == 0
                        ? ": the device refuses it, or a quota or limit on files does"
                        : "");
    }
}

void sqlite_poison(sqlite_store *ss)
{
    pthread_mutex_lock(&ss->mutex);
    ss->poisoned = 1;
    pthread_mutex_unlock(&ss->mutex);
}

sessile_status sqlite_poisoned(sqlite_store *ss, sessile_error *err)
{
    pthread_mutex_lock(&ss->mutex);
    int poisoned = ss->poisoned;
    pthread_mutex_unlock(&ss->mutex);
    return poisoned
               ? fail(err, SESSILE_IO,
                      "an earlier write to %s could not be made safe: " STORE_LOOK_AGAIN,
                      ss->path)
               : SESSILE_OK;
}
