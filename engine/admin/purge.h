/*
 * purge.h: removes the sessions that expired, were deleted softly, or are old.
 */
#ifndef ADMIN_PURGE_H
#define ADMIN_PURGE_H

#include "session/store_handle.h"

/* How long sessions are kept. */
typedef struct purge_rule {
    int64_t sessions_ms; /* after the newest entry; 0: for ever */
    int64_t deleted_ms;  /* after a soft deletion; negative: for ever */
} purge_rule;
typedef purge_rule (*purge_rule_for)(const void *arg, sessile_slice agent,
                                     sessile_slice user);
/* Removes those of the sessions in a list that are due, as sessile_purge() does. *held is
 * raised by those that are due and under a hold: they stay. */
sessile_status purge_sessions(store_core *st, const sessile_list_options *which,
                              purge_rule_for rule_for, const void *arg, int dry_run,
                              sessile_listed **out, size_t *count, uint64_t *held,
                              sessile_error *err);
/* See sessile_purge(). */
sessile_status session_purge(store_core *st, const sessile_purge_options *options,
                             sessile_listed **out, size_t *count, sessile_error *err);
/* See sessile_purge_forgotten(); agent of size 0: all agents. */
sessile_status purge_forgotten(store_core *st, sessile_slice agent, int dry_run,
                               uint64_t *count, uint64_t *bytes, sessile_error *err);

#endif
