/*
 * sqlvfs.h: the files of SQLite, watched, made to fail, and their power cut.
 *
 * SQLite does not come through base/os.h. While this is installed it is SQLite's default
 * VFS of the process, in front of the real one. One at a time; thread-safe but for
 * sqlvfs_install() and sqlvfs_remove().
 */
#ifndef SUPPORT_SQLVFS_H
#define SUPPORT_SQLVFS_H

#include <stddef.h>

/* Which calls are counted, and fail. */
enum { SQLVFS_WRITE = 1, SQLVFS_SYNC = 2, SQLVFS_OTHER = 4 /* open, delete, truncate */ };

typedef struct sqlvfs {
    unsigned kinds; /* that are counted in calls */
    long fail_at;   /* the call that fails, from 0; -1: none */
    int code;       /* how: a result code of SQLite */
    int torn;       /* a write that fails leaves half of its bytes */
    int lazy;       /* syncs are counted but not made; they take */
    int sync_us;    /* so long, as on a slow device */
    long calls;
    int hits; /* calls that failed */
    unsigned long wal_syncs, syncs, wal_writes;
} sqlvfs;

sqlvfs *sqlvfs_install(void);
void sqlvfs_remove(void);

/* From now on what has been synced of database `path` and of its WAL is remembered.
 * Neither may be open yet. */
void sqlvfs_remember(const char *path);
/* Makes a database in folder (the same name) of what a power cut would leave: of each
 * file either what was synced last or all that was written. */
enum { SQLVFS_DATABASE_WRITTEN = 1, SQLVFS_WAL_WRITTEN = 2 };
void sqlvfs_power_cut(const char *folder, unsigned what);

#endif
