/* store.h: the backends that come with the engine, and the host's. */
#ifndef STORE_STORE_H
#define STORE_STORE_H

#include "base/os.h"
#include "base/error.h"
#include "base/alloc.h"
#include "sessile_store.h"

/* An open backend: its table and its self. */
typedef struct store {
    const sessile_backend *table;
    void *self;
} store;

/* ROOT/agents/<folder>/<name>.jsonl and ROOT/<blob>, folders 0700 made when missing,
 * files 0600, single-component *at calls on a folder descriptor; symlinks, foreign-owned
 * and non-regular files are DENIED. Opening makes nothing; the first blob_put_new or
 * create makes ROOT (with its parents, each 0700). A ROOT that others may write is
 * DENIED. */
sessile_status store_file_open(store *out, const char *root, const os_table *os,
                               const allocator *a, sessile_error *err);

/* Lets it write on network file systems: UNSUPPORTED otherwise. Before it is used. */
void store_file_allow_network(store *st);

/* Logs in memory, for the life of the handle; threads excluded by a mutex a log. */
sessile_status store_ram_open(store *out, const os_table *os, const allocator *a,
                              sessile_error *err);

/* Takes a log's name away: whoever has it open keeps it, and it goes with the last. */
void store_ram_unname(store *st, const char *folder, const char *name);
/* Gives a log another name, which must be free; without memory it has none from then on.
 * Nobody else may be opening or naming it. */
void store_ram_rename(store *st, const char *folder, const char *name,
                      const char *new_folder, const char *new_name);

/*
 * A SQLite database in the file `path`, made when something is first kept in it (0600).
 * timeout_ms: how long a call waits for other writers, until set_timeout says otherwise
 * (-1: for ever). INVALID: the path; UNSUPPORTED: its schema is newer than this engine;
 * DENIED, IO, FULL.
 */
sessile_status store_sqlite_open(store *out, const char *path, int timeout_ms,
                                 const os_table *os, const allocator *a,
                                 sessile_error *err);
/* Lets it be used on a network file system: UNSUPPORTED otherwise. Before it is used. */
void store_sqlite_allow_network(store *st);

/*
 * A PostgreSQL database: `url` is postgres://… or postgresql://…, as libpq takes it, and
 * the parameters of ours that store/README.md names. timeout_ms: as above, and for a
 * server that does not answer. No password of it is ever in an error. INVALID: the URL;
 * DENIED: the password or the rights; IO: no such server; UNSUPPORTED: no libpq here, or
 * the schema is newer than this engine.
 */
sessile_status store_postgres_open(store *out, const char *url, int timeout_ms,
                                   const os_table *os, const allocator *a,
                                   sessile_error *err);
/* Appends are acknowledged before the server has synced them; `sync` sees to it. Only
 * they: all else that is changed is synced. The URL's own synchronous_commit goes before.
 * Before the store is used. */
void store_postgres_unsynced(store *st);

/* What a host brought: self is the store's from here on, and freed also on failure.
 * INVALID: the table lacks what it needs; UNSUPPORTED: its version. */
sessile_status store_hosted_open(store *out, const sessile_backend *table, void *self,
                                 const allocator *a, sessile_error *err);

void store_close(store *s);

#endif
