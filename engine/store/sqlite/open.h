/* open.h: a store in a SQLite database. */
#ifndef STORE_SQLITE_OPEN_H
#define STORE_SQLITE_OPEN_H

#include "store/store.h"

/*
 * Opens the SQLite database in the file `path`. The file is created (0600) when something
 * is first kept in it. timeout_ms: how long a call waits for other writers (-1: for ever)
 * until set_timeout changes it. INVALID: the path; UNSUPPORTED: the schema is newer than
 * this engine; DENIED, IO, FULL.
 */
sessile_status store_sqlite_open(store *out, const char *path, int timeout_ms,
                                 const os_table *os, const allocator *a,
                                 sessile_error *err);

/* Allows use on a network file system, which is UNSUPPORTED otherwise. Call it before the
 * store is used. */
void store_sqlite_allow_network(store *st);

/* The path of its file, as it was given. Borrowed. NULL: another store. */
const char *store_sqlite_path(const store *st);

#endif
