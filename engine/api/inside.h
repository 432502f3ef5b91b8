/*
 * inside.h: what a program of the engine's own sees of a store behind its handle. It is
 * not public, and asks no guard: service/ uses it with the host's handle.
 */
#ifndef API_INSIDE_H
#define API_INSIDE_H

#include "sessile.h"
#include "store/store.h"

/* The backend, and the agent of sessions that name none; both live as long as the store.
 */
const store *api_backend(const sessile_store *host);
const char *api_default_agent(const sessile_store *host);

#endif
