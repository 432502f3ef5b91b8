/*
 * watch.h: waits for entries that others write, or asks once for many sessions.
 */
#ifndef OPERATIONS_WATCH_H
#define OPERATIONS_WATCH_H

#include "session/handle.h"

/* sessile_session_watch(). */
sessile_status session_watch(session_core *s, sessile_id *seen, int timeout_ms,
                             int *changed, sessile_error *err);

/* sessile_changed(). INVALID: one of the sessions is of another store. */
sessile_status session_changed(store_core *st, session_core *const *sessions, size_t n,
                               unsigned char *changed, sessile_error *err);

#endif
