/*
 * guard.h: the guard of a store, and the handles of its views.
 *
 * The guard belongs to the host's principal, which the store's own handle holds.
 */
#ifndef GUARD_GUARD_H
#define GUARD_GUARD_H

#include "audit/audit.h"
#include "base/os.h"
#include "guard/access.h"
#include "guard/authorize.h"
#include "guard/principal.h"
#include "limit/limit.h"
#include "vault/jws.h"

struct guard {
    allocator alloc;
    const os_table *os;
    store_core *store;
    roles roles;
    int require_principal;
    int consent;                /* a user's consent is given by nobody else */
    limiter *limiter;           /* NULL: nothing is counted */
    audit_log *audit;           /* NULL: nothing is written */
    struct write_notes *notes;  /* of the store; with audit */
    store_core *audit_of;       /* that keeps it */
    int sync, no_reads, closed; /* sessile_audit_options */
    int is_waiting;         /* the store is guarded, and nobody has set its guard yet */
    char profile[41];       /* with which it was, while it waits; cut */
    access_fold *access;    /* grants, keys, locks */
    jws_verifier *verifier; /* NULL: no tokens */
    authorize_rule authorize;
    atomic_int broken; /* an event could not be written */
    atomic_uint made;  /* principals and handles, which are numbered */
};

/* sessile_store_guard(), _as(), _renew() and _revoke(); arguments are not NULL. The rule
 * is the guard's when it is set, else still the caller's. */
sessile_status guard_set(sessile_store *store, const sessile_guard_options *options,
                         const authorize_rule *rule, sessile_error *err);
sessile_status guard_view(sessile_store **out, sessile_store *store,
                          const sessile_credential *credential, sessile_error *err);
sessile_status guard_renew(sessile_store *view, const sessile_store *by,
                           const sessile_credential *credential, sessile_error *err);
sessile_status guard_revoke(sessile_store *view, sessile_error *err);
sessile_status guard_who(const sessile_store *store, sessile_principal *out,
                         sessile_error *err);
int guard_can(const sessile_store *view, sessile_permission permission,
              const sessile_session_options *names);
/* Of a guard that is waiting: DENIED, with the profile that the store was guarded with.
 */
sessile_status guard_refuse_waiting(const guard *g, sessile_error *err);
/* Called when a store was opened: the handle of a guarded store can do nothing until its
 * guard is set. IO, BUSY, NOMEM. */
sessile_status guard_opened(sessile_store *store, sessile_error *err);
/* sessile_may() and sessile_audit_note(). */
sessile_status guard_may(sessile_store *view, const sessile_operation *o,
                         sessile_error *err);
sessile_status guard_note(sessile_store *view, sessile_slice name, sessile_slice details,
                          sessile_error *err);
/* What the store's own handle does when it is closed, before its core is: what has logs
 * open goes, whoever else holds the guard. p may be NULL. */
void guard_close(principal *p);
void guard_free(guard *g);
int64_t guard_now_ms(const guard *g);
/* The audit that a principal's calls are in; NULL: none. */
audit_log *guard_audit(const principal *p);

/* ---- wrote.c */

/* Adds to the details which entries this thread wrote since the call began. 1: there are
 * some. */
int guard_say_wrote(guard_call *call);
/* What this thread wrote before, through a handle that has no guard, is of no call. */
void guard_forget_wrote(const principal *p);

#endif
