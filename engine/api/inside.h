/*
 * inside.h: what a program of the engine's own sees of a store behind its handle, and
 * how several reads of a session are of one moment. It is not public, and asks no guard.
 */
#ifndef API_INSIDE_H
#define API_INSIDE_H

#include "sessile.h"
#include "store/store.h"

/* The backend, and the agent of sessions that name none; both live as long as the store.
 */
const store *api_backend(const sessile_store *host);
const char *api_default_agent(const sessile_store *host);

/*
 * What the calling thread reads of a session is of one moment from now on: the store is
 * asked once where the log ends, with the first read, instead of with each. is_read 1:
 * not even then; the session was opened by the same call a moment ago. A write ends it,
 * and api_moment_end(), on the same thread, before the handle is closed or given to
 * another thread. NULL is ignored.
 */
void api_moment_begin(sessile_session *session, int is_read);
void api_moment_end(sessile_session *session);

#endif
