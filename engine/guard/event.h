/*
 * event.h: what the guard writes into the audit.
 *
 * The door writes an event for each call (enter.h). What is not a call,
 * such as a refused credential, is written with guard_event().
 */
#ifndef GUARD_EVENT_H
#define GUARD_EVENT_H

#include "audit/audit.h"
#include "guard/principal.h"
#include "limit/limit.h"

/*
 * Writes an event of p, and fills in who it is: user, actor, role, method, key. The
 * caller fills in the operation, the outcome and the rest. id (may be NULL): as of
 * audit_write(); "" if there is no audit. p NULL, or a guard without an audit: OK.
 * IO, FULL, BUSY, FORKED: the event is not in the audit.
 */
sessile_status guard_event(const principal *p, audit_class class, audit_event *e,
                           char id[AUDIT_ID], sessile_error *err);

/* Says what an event is about, and of whom, if that is not the principal's own user. */
void guard_name_object(audit_event *e, const principal *p, const guard_names *names);
/* Counts a call of p's. LIMIT. */
sessile_status guard_take(principal *p, limit_rule rule, const guard_names *names,
                          sessile_error *err);

/* The event of what is done with a view, by a row of operations.def. It refuses nothing:
 * views are made while the audit cannot be written, for those who look after it. */
void guard_view_event(const principal *p, unsigned op, const sessile_error *failed);

/* A checkpoint that the engine makes by itself: counted as one of the caller's (LIMIT),
 * and recorded. who: may be NULL. failed: its code is OK if it was made. */
sessile_status guard_checkpoint_begin(principal *who, const session_core *s,
                                      sessile_error *err);
void guard_checkpoint_end(principal *who, const session_core *s, sessile_id checkpoint,
                          const sessile_error *failed);

#endif
