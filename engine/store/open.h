/*
 * open.h: the schemes of store URLs. Every part of the engine that reads a store's URL
 * asks here.
 */
#ifndef STORE_OPEN_H
#define STORE_OPEN_H

#include "store/store.h"

/* What a backend may need when it opens its store. */
typedef struct store_setup {
    const os_table *os;
    const allocator *alloc;
    int timeout_ms;
    int allow_network;  /* write also on a network file system */
    int unsynced;       /* appends need not be durable before `sync` */
    const char *remote; /* libsessile-remote.so; NULL: as installed */
} store_setup;

/* Opens the store that `url` names. No error message repeats a URL that may contain a
 * password. INVALID, UNSUPPORTED (unknown scheme), and the errors of the backend. */
sessile_status store_open(store *out, const char *url, const store_setup *setup,
                          sessile_error *err);

/* How long a call waits for other writers, and a server for an answer, unless told. */
#define STORE_TIMEOUT_MS 5000

/*
 * The same for a program that wants the table of a store and nothing above it: no keyring
 * is opened, no key is needed, and what a record holds is not looked at. So a service
 * appends, reads and lists for clients who have the key themselves. Everything that
 * sessile_store.h says of a backend holds of out->table: locks are for the caller to
 * take, names and records for the caller to check.
 *
 * options (may be NULL): durability, allow_network, alloc, remote and config.timeout_ms
 * are used. Ended by store_close(), after all logs were closed. INVALID, and as
 * store_open().
 */
sessile_status store_backend_open(store *out, const char *url,
                                  const sessile_store_options *options,
                                  sessile_error *err);

/* See sessile_store_scheme_at() and sessile_store_scheme_of(). */
const sessile_store_scheme *store_scheme_at(size_t index);
const sessile_store_scheme *store_scheme(const char *url, const char **path);

#endif
