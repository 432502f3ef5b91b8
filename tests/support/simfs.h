/*
 * simfs.h: a file system in memory that can lose its power.
 *
 * Implements the whole table of system calls (base/os.h), so that a store can live in it,
 * and remembers of every change whether anybody has made it durable. From any moment on,
 * simfs_crash() makes the file system that a machine could find after a power cut.
 *
 * What is modelled
 *   - A change is *pending* until the matching sync returned: bytes and size of a file
 *     until sync_data or sync_all of the file; a name (create, mkdir, link, rename,
 *     unlink) until sync_all of the folder that holds it. Syncing a file says nothing
 *     about its name, syncing a folder nothing about what is in its files.
 *   - After a power cut there is what was durable, and any subset of the pending changes,
 *     applied in their order; an earlier one may be missing where a later one is there,
 *     also in one file and in one folder.
 *   - A write may be torn: any of its sectors of 512 bytes, with or without the size that
 *     it extended the file to. A sector that is not there holds the old bytes, or zeros
 *     where the file grew.
 *   - A rename is there or not there: never both names, never neither. Nor is a link or
 *     an unlink half there.
 *   - A failed sync (simfs_fail_sync) marks what it was to write clean: later syncs that
 *     succeed do not write it, though reads show it until the cut. Only what is written
 *     again after it becomes durable. At the cut it may be there or not.
 *   - Times are not durable: after the cut a file has its last synced one or a newer one.
 *   - Locks belong to open descriptors, as F_OFD_SETLK's do; they and the descriptors end
 *     with the process, by a cut or by simfs_kill().
 *   - Clocks tick by a fixed step a call: two runs of one scenario see the same times.
 *
 * What a real file system adds, and nothing may rely on: ext4 and XFS keep the order of
 * metadata through a journal, so that most of these subsets never occur; ext4 (ordered)
 * writes data before the size that shows it; fsync of a new file happens to keep its name
 * on most. What real systems do and this one does not: reads that return old bytes after
 * a failed sync, sectors with bytes of files deleted long ago (data=writeback), inode
 * numbers used again, devices that lie about their cache, permissions.
 *
 * Safe under threads. Memory that runs out ends the process.
 */
#ifndef SUPPORT_SIMFS_H
#define SUPPORT_SIMFS_H

#include "base/os.h"

typedef struct simfs simfs;

/* An empty file system: the folder / and nothing in it, durable. */
simfs *simfs_new(void);
void simfs_free(simfs *fs);
/* Its system calls; lives as long as fs. Relative paths begin at /. */
const os_table *simfs_table(simfs *fs);

/* ---- pending changes */

size_t simfs_pending(const simfs *fs);
/* 1 when change i is a write, which can be torn. */
int simfs_is_write(const simfs *fs, size_t i);
/* "write s.jsonl 310+95" for change i, oldest first. */
void simfs_describe(const simfs *fs, size_t i, char *out, size_t size);

/* What the cut leaves of a change. All but the first two are for writes, and mean
 * SIMFS_WHOLE elsewhere. */
typedef enum simfs_fate {
    SIMFS_LOST,
    SIMFS_WHOLE,
    SIMFS_TORN, /* any sectors, with the size or without: the seed decides */
    SIMFS_DATA, /* all bytes, but the file has not grown */
    SIMFS_SIZE, /* the file has grown, but no byte is there */
    SIMFS_HEAD, /* the first sectors, and the size up to there */
    SIMFS_TAIL, /* the file has grown, and only the last sectors are there */
    SIMFS_FATES
} simfs_fate;
/* One letter for each fate, for messages: "-+tdzhe". */
extern const char simfs_letters[SIMFS_FATES + 1];

/* ---- ends. Each makes a new file system and leaves fs as it is. */

/* The power is cut: fates[i] for each pending change. All of what is left is durable. */
simfs *simfs_crash(const simfs *fs, const unsigned char *fates, uint64_t seed);
/* The process is killed: nothing is lost, and what was pending is. */
simfs *simfs_kill(const simfs *fs);
/* All that is there is durable from now on. */
void simfs_settle(simfs *fs);

/* ---- watching */

/* Called before each changing call (create, write, truncate, sync, mkdir, rename, link,
 * unlink) with its number since simfs_new(), without any lock. NULL: nobody. */
typedef void (*simfs_watcher)(void *arg, simfs *fs, uint64_t number);
void simfs_watch(simfs *fs, simfs_watcher watcher, void *arg);
/* Threads change places behind each sync as well, so that others write before its caller
 * comes to know of it. */
void simfs_mingle(simfs *fs);
/* Changing calls so far. */
uint64_t simfs_changes(const simfs *fs);
/* Open descriptors, and how many of them hold a lock. */
size_t simfs_descriptors(const simfs *fs);
size_t simfs_locks(const simfs *fs);

/* The nth sync of a file (0: the next one) fails with EIO; see above. */
void simfs_fail_sync(simfs *fs, uint64_t nth);
/* How many have. */
uint64_t simfs_syncs_failed(const simfs *fs);

/* ---- looking, and meddling without system calls */

/* A file's bytes as they are read now, and a NUL: free(). NULL when there is none. */
char *simfs_read(const simfs *fs, const char *path, size_t *size);
/* Makes or replaces a file, durably; its folder must be there. */
void simfs_write(simfs *fs, const char *path, const void *data, size_t size);
/* Calls visit for each name in the folder, in the order they were made. */
void simfs_names(const simfs *fs, const char *path,
                 void (*visit)(void *arg, const char *name), void *arg);

#endif
