/*
 * file.h: what the files of this folder share. README.md lists them.
 */
#ifndef STORE_FILE_H
#define STORE_FILE_H

#include <pthread.h>

#include "base/alloc.h"
#include "base/error.h"
#include "base/os.h"
#include "store/operations.h"
#include "store/wait.h"

/* An agent's folder. Kept open while the store is, since each append asks it whether the
 * log's name still leads to the log. */
typedef struct file_folder {
    struct file_folder *next;
    char *name;
    int fd;
    int named_durably; /* its own name is known to be durable */
    char network[16]; /* the network file system it lies on, fixed at opening; "": none */
} file_folder;

/* What the handles of one log in this store share (shared.c). */
typedef struct file_shared {
    struct file_shared *next;
    uint64_t device, inode; /* which log */
    unsigned handles;       /* under the store's mutex */
    pthread_mutex_t mutex;  /* all that follows */
    pthread_cond_t moved;   /* the turn was given back, or a sync has ended */
    int taken;              /* a handle has the turn */
    int poisoned;           /* nothing may be appended to it any more */
    uint64_t opened;        /* handles so far */
    int syncing;
    uint64_t begun, done;              /* syncs, counted */
    struct file_sync_waiting *waiting; /* those who want one */
} file_shared;

typedef struct file_inode {
    uint64_t device, inode;
} file_inode;

#define FILE_SUFFIX    ".jsonl"
#define FILE_NAME_SIZE 256

typedef struct file_store {
    const os_table *os;
    allocator alloc;
    char *root;
    int allow_network;      /* fixed after open */
    pthread_mutex_t mutex;  /* all that follows */
    int root_fd, agents_fd; /* -1: not there yet */
    int root_named;         /* ROOT's own name is known to be durable */
    file_folder *folders;
    file_inode made; /* the log made last, its name durable; 0: opened since */
    file_shared *shared;
} file_store;

/* Opens ROOT if it is not open; makes it first when make is 1. NOTFOUND otherwise. */
sessile_status file_root(file_store *fs, int make, int *fd, sessile_error *err);
/* ROOT/agents. */
sessile_status file_agents(file_store *fs, int make, int *fd, sessile_error *err);
/* ROOT/agents/<name>; borrowed for the life of the store. With make, all names on the way
 * are durable on return. */
sessile_status file_folder_get(file_store *fs, const char *name, int make,
                               file_folder **out, sessile_error *err);
void file_folders_free(file_store *fs);
/* The entry of a folder that `shown` stands for (wait.h), into name; itself, if it stands
 * for none. NOTFOUND. INVALID: it is no name. */
sessile_status file_name_find(const file_store *fs, int dir, const char *shown,
                              char name[FILE_NAME_SIZE], sessile_error *err);

/* The folder and the file of a log that is there, whose name may be damaged. */
sessile_status file_log_find(file_store *fs, const char *folder, const char *name,
                             file_folder **in, char out[FILE_NAME_SIZE],
                             sessile_error *err);

/* Visits the folders of agents until visit returns other than 0. NOTFOUND: none yet. */
sessile_status file_folders_each(file_store *fs,
                                 int (*visit)(void *arg, file_folder *folder), void *arg,
                                 sessile_error *err);
/* What a log's file (its file name: log) says of itself. 0, or -1 and errno. */
int file_look(const file_store *fs, const file_folder *folder, const char *log,
              sessile_backend_stat *out);

/* What the handles of a log share: for one more handle, for one less. NULL: no memory.
 * *number: the handle's, in the order of opening. */
file_shared *file_shared_get(file_store *fs, uint64_t device, uint64_t inode,
                             uint64_t *number);
void file_shared_put(file_store *fs, file_shared *shared);
void file_shared_free_all(file_store *fs);
void file_shared_poison(file_shared *shared);
int file_shared_is_poisoned(file_shared *shared);
/* The turn to come to the log's lock: as lock_wait(); what was waited is taken off
 * *timeout_ms. Given back once the lock is, by whichever thread. */
int file_shared_take(file_shared *shared, const os_table *os, int *timeout_ms,
                     lock_stop stop);
void file_shared_give(file_shared *shared);
/* Makes durable what was written to the log before the call, by a sync of this handle or
 * by one that it shares. 0; -1 and errno: this thread's sync failed, and poisoned. Who
 * gets 0 asks whether the log is poisoned: another's sync may have failed. */
int file_shared_sync(file_shared *shared, const os_table *os, int fd, uint64_t number);
/* How many handles sync or wait for a sync. Its mutex is held. */
size_t file_shared_waiting(const file_shared *shared);

/* Looks what kind of file system the folder open as fd lies on; network is "" for a local
 * one, or if that is unknown. */
void file_network(const file_store *fs, int fd, char network[16]);
/* UNSUPPORTED when that is one on which nothing is written. what: an agent's folder, or
 * NULL: ROOT. */
sessile_status file_may_write(const file_store *fs, const char *network, const char *what,
                              sessile_error *err);

/* DENIED unless st is a regular file of ours that others cannot write (private: nor
 * read). what names it. */
sessile_status file_check(const file_store *fs, const os_stat_info *st, int private_only,
                          const char *what, sessile_error *err);

/* The error of dir/name, which did not open with this errno; format names it. When it is
 * ours and its mode lacks `needed` (as 0400), the mode and the command that mends it are
 * named. */
sessile_status file_unopened(const file_store *fs, int dir, const char *name,
                             uint32_t needed, sessile_error *err, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

/* Reads all of dir/name, to be freed with host_free(). `where` names the folder in
 * errors. private_only: as for file_check(). DAMAGED: it is larger than `largest`. */
sessile_status file_read_whole(file_store *fs, int dir, const char *name,
                               const char *where, int private_only, uint64_t largest,
                               char **out, size_t *size, sessile_error *err);

/* Makes dir/name with these bytes, whole and durable, or not at all. *made (may be NULL):
 * the file. EXISTS. */
sessile_status file_write_new(file_store *fs, int dir, const char *name, const void *data,
                              size_t size, os_stat_info *made, sessile_error *err);
/* The parts of it, for content that comes in pieces. temporary has room for
 * FILE_TEMPORARY. file_publish syncs, renames and closes *fd. */
#define FILE_TEMPORARY        32
#define FILE_TEMPORARY_PREFIX ".new-"
sessile_status file_temporary(file_store *fs, int dir, char *temporary, int *fd,
                              sessile_error *err);
sessile_status file_publish(file_store *fs, int dir, const char *temporary, int *fd,
                            const char *name, sessile_error *err);
void file_discard(file_store *fs, int dir, const char *temporary, int *fd);

/* Copies size bytes at offset of the log open as `from` (its file name: log) into a piece
 * in the folder dir, durably. */
sessile_status file_set_piece(file_store *fs, int dir, int from, const char *log,
                              uint64_t offset, uint64_t size, sessile_error *err);

/* Which file a handle has open. */
file_inode file_log_inode(const sessile_backend_log *log);
/* 1 while this handle holds the exclusive lock of its log. */
int file_log_is_locked(const sessile_backend_log *log);

/* The cache of a log as its handle keeps it: opened when it is first wanted. */
typedef struct file_cache {
    int fd; /* -1: not open */
    int readonly;
    uint64_t device, inode;
} file_cache;
/* The handle's own, and where the log lies. */
file_cache *file_log_cache(sessile_backend_log *log, file_store **fs,
                           const file_folder **folder, const char **name);
void file_cache_close(file_store *fs, file_cache *cache);
/* Removes what is cached of a log (its file name: log), if there is anything. */
void file_cache_drop(file_store *fs, const file_folder *folder, const char *log);

/* ---- the functions of the table */

STORE_DECLARE(file);

void file_unlock(sessile_backend_log *handle);
sessile_status file_lock(sessile_backend_log *handle, int mode, int timeout_ms,
                         int *replaced, sessile_error *err);
sessile_status file_busy(sessile_backend_log *handle, sessile_error *err);
sessile_status file_rewrite(sessile_backend_log *handle, uint64_t offset,
                            const void *data, size_t size, sessile_error *err);
sessile_status file_set_aside(sessile_backend_log *handle, uint64_t offset,
                              sessile_error *err);

sessile_status file_blob_settle(void *self, const char *name, sessile_error *err);

#endif
