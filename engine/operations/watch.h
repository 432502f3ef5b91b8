/*
 * watch.h: waits for entries that others write.
 */
#ifndef OPERATIONS_WATCH_H
#define OPERATIONS_WATCH_H

#include "session/handle.h"

/* sessile_session_watch(). */
sessile_status session_watch(session_core *s, sessile_id *seen, int timeout_ms,
                             int *changed, sessile_error *err);

#endif
