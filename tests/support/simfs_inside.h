/* simfs_inside.h: what simfs.c and simfs_calls.c share, and nobody else. */
#ifndef SUPPORT_SIMFS_INTERNAL_H
#define SUPPORT_SIMFS_INTERNAL_H

#include <stddef.h>
#include <stdint.h>
#include <pthread.h>

#include "support/simfs.h"

#define SIMFS_NOWHERE SIZE_MAX

typedef struct bytes {
    char *data;
    size_t size, capacity;
} bytes;

typedef struct named {
    char *name;
    size_t node;
} named;

typedef struct names {
    named *list;
    size_t count, capacity;
} names;

/* A file or a folder; its place in fs->nodes is its inode number less 1. */
typedef struct node {
    int is_dir;
    int64_t mtime, base_mtime;
    bytes live, base;
    names live_names, base_names;
} node;

typedef enum op_kind { OP_WRITE, OP_TRUNCATE, OP_LINK, OP_UNLINK, OP_RENAME } op_kind;

/* A change that somebody has not synced, or could not. */
typedef struct op {
    op_kind kind;
    size_t node;       /* the file or folder that it changes */
    size_t target;     /* LINK, RENAME: what the name leads to */
    uint64_t offset;   /* WRITE; TRUNCATE: the new size */
    bytes data;        /* WRITE */
    char *name, *from; /* LINK, UNLINK, RENAME: the name; RENAME: the old one */
    int doomed;        /* a sync of it failed: no later one speaks of it */
    int durable;       /* synced, and kept here since it follows a doomed one */
} op;

typedef struct opened {
    int used, lock, flags;
    size_t node;
} opened;

struct simfs {
    os_table table;
    pthread_mutex_t mutex;
    node *nodes;
    size_t node_count, node_capacity;
    op *ops;
    size_t op_count, op_capacity;
    opened *fds;
    size_t fd_count;
    int64_t now_ms;
    uint64_t clock_us, cpu_us;
    uint64_t changes;
    uint64_t syncs_failed;
    uint64_t syncs_until_failure; /* UINT64_MAX: never */
    int mingles;
    simfs_watcher watcher;
    void *watcher_arg;
};

/* A list grown to hold count elements of size bytes. */
void *simfs_grown(void *list, size_t *capacity, size_t count, size_t size);
/* block, which must not be NULL. */
void *simfs_must(void *block);
void simfs_bytes_put(bytes *b, uint64_t offset, const char *data, size_t size);
size_t simfs_name_get(const names *in, const char *name); /* SIMFS_NOWHERE: not there */
names simfs_names_copy(const names *in);
void simfs_names_free(names *in);
/* A node that no name leads to yet. */
size_t simfs_node_new(simfs *fs, int is_dir);
/* Makes a change live, and pending. Takes what it points to. */
void simfs_change(simfs *fs, op o);
/* A sync of a node: its changes are durable, or (fails) doomed. */
void simfs_sync_node(simfs *fs, size_t at, int fails);
/* The folder of a path's last component from node `at` on, and that component. */
size_t simfs_walk(const simfs *fs, size_t at, const char *path, char last[256]);
/* The system calls over fs. */
os_table simfs_calls(simfs *fs);

#endif
