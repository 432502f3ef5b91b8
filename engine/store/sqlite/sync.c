/*
 * sync.c: makes commits durable.
 *
 * All writers of the store share the syncs of the write-ahead log (WAL). After a sync has
 * failed there must be no other: the kernel has marked the pages clean, and a second sync
 * would wrongly report success. So the store is poisoned: nothing more is written through
 * it.
 *
 * With synchronous=FULL, SQLite syncs the WAL in each commit, while it holds the only
 * lock for writers: sixteen writers pay for sixteen syncs, one after the other, and
 * durability=none is not possible. Therefore connections run with synchronous=NORMAL, in
 * which a commit syncs nothing. A call that acknowledges then syncs the WAL through
 * SQLite's own file handle (the same fdatasync, outside the lock). One thread syncs, and
 * threads that arrive meanwhile share the next sync.
 *
 * Why this is as safe as FULL:
 *   - A frame is in the WAL, in the kernel's pages, before its commit returns, and a sync
 *     speaks of a file, not of a descriptor: it covers every commit of every connection
 *     and process that returned before it began. Recovery takes frames in order up to the
 *     first bad one, so what was synced is kept whatever came after it.
 *   - The WAL is used from its start again only when all of it is in the database
 *     (nBackfill == mxFrame in wal.c), and a checkpoint in NORMAL syncs the WAL before it
 *     copies anything, and the database before it sets nBackfill. So a frame that is gone
 *     from the WAL when we come to sync is in the database, synced.
 *   - A writer that restarts the WAL writes and syncs its header first (also in NORMAL),
 * so that old frames are never taken for new ones.
 *   - The WAL file is not replaced while a connection is open: whoever wants to remove it
 *     needs the exclusive lock of the database, and the connection that syncs holds a
 *     shared one from before this store's first write until the store is closed. Being
 *     open that long it also hears of every write-back that failed (Linux tells each
 *     descriptor once, and those that are opened later not at all).
 *   - That file and the database still have their names after the sync, or the call
 *     fails: what a stranger unlinked is synced in vain.
 *   - Its first sync syncs the folder too (SQLite does that for a journal it may have
 *     made), so the WAL has its name before anything in it is acknowledged.
 *
 * It is no safer than FULL either: another program that checkpoints with synchronous=OFF
 * promises the WAL's reuse without having synced the database, whoever wrote the frames.
 */
#include "store/sqlite/sqlite.h"

#include <errno.h>
#include <string.h>

#define SCRUB_TRIES    12
#define SCRUB_PAUSE_MS 5

sessile_status sqlite_sync_ready(sqlite_store *ss, sqlite_patience wait,
                                 sessile_error *err)
{
    sqlite_conn *c;
    int rc;
    pthread_mutex_lock(&ss->mutex);
    int ready = ss->syncer != NULL;
    pthread_mutex_unlock(&ss->mutex);
    if (ready)
        return SESSILE_OK;
    sessile_status status = sqlite_conn_take(ss, wait, 0, &c, err);
    if (status)
        return status;
    sqlite_ask(c->db, "SELECT count(*) FROM sqlite_schema", &rc); /* opens the WAL */
    if (rc != SQLITE_OK) {
        status = sqlite_fail(ss, c->db, rc, "cannot read", err);
        sqlite_conn_give(c, 1);
        return status;
    }
    pthread_mutex_lock(&ss->mutex);
    if (!ss->syncer) {
        ss->syncer = c;
        ss->wal_inode = sqlite_path_wal(ss);
        c = NULL;
    }
    pthread_mutex_unlock(&ss->mutex);
    if (c)
        sqlite_conn_give(c, 0);
    return SESSILE_OK;
}

static int sync_wal(sqlite_store *ss, int *error)
{
    sqlite3_file *wal = NULL;
    int rc =
        sqlite3_file_control(ss->syncer->db, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    if (rc == SQLITE_OK && (!wal || !wal->pMethods))
        rc = SQLITE_IOERR;
    errno = 0;
    if (rc == SQLITE_OK)
        rc = wal->pMethods->xSync(wal, SQLITE_SYNC_NORMAL | SQLITE_SYNC_DATAONLY);
    *error = errno;
    return rc;
}

/* 1 when the database or its WAL lost its name. What was synced is in a file that nobody
 * finds again, unless this store's connections bring it into the database at the end. */
static int lost_names(sqlite_store *ss)
{
    int moved = 0;
    sqlite3_file_control(ss->syncer->db, "main", SQLITE_FCNTL_HAS_MOVED, &moved);
    return moved || sqlite_path_wal(ss) != ss->wal_inode;
}

sessile_status sqlite_sync_store(sqlite_store *ss, sessile_error *err)
{
    int rc = SQLITE_OK, error = 0, lost = 0;
    sessile_status status = sqlite_sync_ready(ss, sqlite_patience_of(ss), err);
    if (status)
        return status;
    pthread_mutex_lock(&ss->mutex);
    uint64_t wanted = ss->begun + 1; /* a sync that is running began too early */
    while (ss->syncing && ss->done < wanted)
        pthread_cond_wait(&ss->moved, &ss->mutex);
    if (ss->done < wanted && !ss->poisoned) {
        uint64_t mine = ++ss->begun;
        ss->syncing = 1;
        pthread_mutex_unlock(&ss->mutex);
        rc = sync_wal(ss, &error);
        lost = rc == SQLITE_OK && lost_names(ss);
        pthread_mutex_lock(&ss->mutex);
        ss->syncing = 0;
        ss->done = mine;
        ss->poisoned |= rc != SQLITE_OK || lost;
        pthread_cond_broadcast(&ss->moved);
    }
    pthread_mutex_unlock(&ss->mutex);
    if (rc != SQLITE_OK) {
        return fail(err, SESSILE_IO,
                    "cannot sync %s: what was written since the last sync may or may not "
                    "be there; " STORE_LOOK_AGAIN "%s%s",
                    ss->path, error != 0 ? ": " : "", error != 0 ? strerror(error) : "");
    }
    if (lost) {
        return fail(
            err, SESSILE_IO,
            "%s, or the write-ahead log beside it, was moved, removed or replaced "
            "while it was open: what was written since may be lost; " STORE_LOOK_AGAIN,
            ss->path);
    }
    /* the one that we shared may have failed */
    return sqlite_poisoned(ss, err);
}

void sqlite_sync_scrub(sqlite_store *ss)
{
    const os_table *os = ss->os;
    sqlite_conn *c;
    int rc = SQLITE_BUSY;
    if (sqlite_conn_take(ss, sqlite_patience_of(ss), 0, &c, NULL))
        return;
    for (int i = 0; i < SCRUB_TRIES && (rc & 0xff) == SQLITE_BUSY; i++) {
        if (i > 0)
            os->sleep_ms(os->ud, SCRUB_PAUSE_MS);
        rc = sqlite3_wal_checkpoint_v2(c->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL,
                                       NULL);
    }
    if (rc == SQLITE_IOERR_FSYNC)
        sqlite_poison(ss);
    sqlite_conn_give(c, 0);
}
