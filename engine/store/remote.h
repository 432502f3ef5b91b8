/*
 * remote.h: what the engine and libsessile-remote.so say to each other: one function.
 *
 * The other side is remote/: a store behind a server of records. It is a library of its
 * own, looked for when a URL begins with grpc:// or grpcs://, so that whoever keeps
 * sessions elsewhere loads neither HTTP/2 nor TLS.
 */
#ifndef STORE_REMOTE_H
#define STORE_REMOTE_H

#include "store/open.h"

#define STORE_REMOTE_VERSION 1

/* The type of remote_store_open(), which the library exports. version: the caller's
 * STORE_REMOTE_VERSION; UNSUPPORTED: the library is of another one. */
typedef sessile_status store_remote_function(int version, store *out, const char *url,
                                             const store_setup *setup,
                                             sessile_error *err);

/* Opens the store at a URL that begins with grpc:// or grpcs://, with the library at
 * setup->remote. UNSUPPORTED: it is not installed; and the errors of the library. */
sessile_status store_remote_open(store *out, const char *url, const store_setup *setup,
                                 sessile_error *err);

#endif
