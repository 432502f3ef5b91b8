/* open.h: a store in a PostgreSQL database. */
#ifndef STORE_POSTGRES_OPEN_H
#define STORE_POSTGRES_OPEN_H

#include "store/store.h"

/*
 * Opens a PostgreSQL database. `url` is postgres://… or postgresql://… as libpq reads it,
 * with the parameters that README.md adds. timeout_ms: how long a call waits for other
 * writers, or for a server that does not answer (-1: for ever). No error message contains
 * the password. INVALID: the URL; DENIED: the password or the rights; IO: no such server;
 * UNSUPPORTED: libpq is not installed, or the schema is newer than this engine.
 */
sessile_status store_postgres_open(store *out, const char *url, int timeout_ms,
                                   const os_table *os, const allocator *a,
                                   sessile_error *err);

/* Appends are acknowledged before the server has synced them; `sync` syncs. Every other
 * change is still synced. synchronous_commit in the URL takes precedence. Call it before
 * the store is used. */
void store_postgres_unsynced(store *st);

#endif
