/*
 * checkpoint.c: the checkpoints of the write-ahead log.
 *
 * They run in a hook of ours rather than in SQLite's, because SQLite ignores the result,
 * and with it the news that a sync has failed.
 */
#include "store/sqlite/sqlite.h"

/* Frames (pages) in the WAL from which a commit moves them into the database; and from
 * which it also keeps other writers out for that long, so that the WAL can end. */
#define CHECKPOINT_FROM 1000
#define CHECKPOINT_HARD 8000

int sqlite_sync_committed(void *conn, sqlite3 *db, const char *name, int frames)
{
    sqlite_conn *c = conn;
    if (frames < CHECKPOINT_FROM)
        return SQLITE_OK;
    int rc = sqlite3_wal_checkpoint_v2(
        db, name,
        frames < CHECKPOINT_HARD ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_RESTART,
        NULL, NULL);
    if (rc == SQLITE_IOERR_FSYNC)
        sqlite_poison(c->store);
    return SQLITE_OK; /* the commit stands */
}
