/*
 * purge.h: removes the sessions that expired or were deleted softly.
 */
#ifndef ADMIN_PURGE_H
#define ADMIN_PURGE_H

#include "session/store_handle.h"

/* See sessile_purge(). */
sessile_status session_purge(store_core *st, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err);
/* See sessile_purge_forgotten(); agent of size 0: all agents. */
sessile_status purge_forgotten(store_core *st, sessile_slice agent, int dry_run,
                               uint64_t *count, uint64_t *bytes, sessile_error *err);

#endif
