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
    int allow_network; /* write also on a network file system */
    int unsynced;      /* appends need not be durable before `sync` */
} store_setup;

/* Opens the store that `url` names. No error message repeats a URL that may contain a
 * password. INVALID, UNSUPPORTED (unknown scheme), and the errors of the backend. */
sessile_status store_open(store *out, const char *url, const store_setup *setup,
                          sessile_error *err);

/* See sessile_store_scheme_at() and sessile_store_scheme_of(). */
const sessile_store_scheme *store_scheme_at(size_t index);
const sessile_store_scheme *store_scheme(const char *url, const char **path);

#endif
