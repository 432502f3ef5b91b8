/*
 * compare.h: compares what sessions say of themselves with the events of an audit.
 *
 * An event names the entries that its call wrote (guard/wrote.c), a session has them with
 * their times. An entry that no event names was written by somebody who went around the
 * guard, or by a call whose event was lost; an entry that an event names and that is not
 * there was cut off, or its session was removed.
 *
 *   compare.c         the order of the steps; which times are compared
 *   compare_events.c  what the events say of each session
 *   compare_logs.c    what each session says
 */
#ifndef ADMIN_COMPARE_H
#define ADMIN_COMPARE_H

#include "session/store_handle.h"
#include "sessile_audit.h"

typedef struct compare compare;

/* of: the store with the sessions; audit: the one that keeps the audit. NOTFOUND: there
 * is no audit; UNSUPPORTED: of is opened over records. */
sessile_status compare_begin(compare **out, store_core *of, store_core *audit,
                             sessile_error *err);
/* Reads on. NEEDS: there is more. */
sessile_status compare_step(compare *c, sessile_audit_report *report, sessile_error *err);
/* How many sessions, and spans of entries, are in memory at a time; unless it is set, a
 * quarter of a million and a million. */
void compare_set_room(compare *c, size_t sessions, size_t spans);
void compare_free(compare *c); /* NULL is ignored */

#endif
