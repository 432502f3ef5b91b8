/*
 * triggers.h: when policies are to compact: what a host configured, and what the log
 * says of the last time.
 *
 * Owns the copy of the configuration (triggers.c) and the reading of the log (since.c).
 * Whether a trigger fires is decided in run/trigger.c.
 */
#ifndef SESSION_TRIGGERS_H
#define SESSION_TRIGGERS_H

#include "base/alloc.h"
#include "base/error.h"
#include "session/handle.h"

/* INVALID: a share above 1000, an event without a name. NULL is OK. */
sessile_status triggers_check(const sessile_triggers *t, sessile_error *err);
/* A copy of t, names included (NULL: NULL), which triggers_free() gives back. */
sessile_status triggers_copy(sessile_triggers **out, const sessile_triggers *t,
                             const allocator *a, sessile_error *err);
void triggers_free(sessile_triggers *t, const allocator *a);
/* 1 when they have no condition at all: nothing is compacted automatically. NULL: 0. */
int triggers_off(const sessile_triggers *t);
/* 1 when event is one of its names. */
int triggers_name(const sessile_triggers *t, sessile_slice event);

/* As seen from `at`, a path entry that was reached. */
sessile_status session_last_compaction_locked(session_core *s, sessile_id at,
                                              last_compaction *out, sessile_error *err);
/* The newest turn that policies could run after, or the last compaction, before `turn` on
 * its path; 0: there is none. */
sessile_status session_turn_before_locked(session_core *s, sessile_id turn,
                                          sessile_id last, sessile_id *out,
                                          sessile_error *err);

#endif
