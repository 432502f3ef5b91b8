/* quota.h: how many sessions an agent may have: the limit [sessions_per_agent]. */
#ifndef SESSION_QUOTA_H
#define SESSION_QUOTA_H

#include "session/header.h"

/* LIMIT: without the log that a session of these names has there, its agent has as many
 * sessions as it may. */
sessile_status quota_check(store_core *st, const session_names *names,
                           sessile_error *err);
/* The same for a log that was made just now and has `bytes` bytes: what is too much is
 * removed again, unless somebody has written to it. */
sessile_status quota_keep(store_core *st, const session_names *names, uint64_t bytes,
                          sessile_error *err);

#endif
