/*
 * guard.h: the guard of a store, and the handles of its views.
 *
 * The guard belongs to the host's principal, which the store's own handle holds.
 */
#ifndef GUARD_GUARD_H
#define GUARD_GUARD_H

#include "audit/audit.h"
#include "base/os.h"
#include "guard/principal.h"
#include "limit/limit.h"

struct guard {
    allocator alloc;
    const os_table *os;
    store_core *store;
    roles roles;
    int require_principal;
    int consent;                /* a user's consent is given by nobody else */
    limiter *limiter;           /* NULL: nothing is counted */
    audit_log *audit;           /* NULL: nothing is written */
    int sync, no_reads, closed; /* sessile_audit_options */
};

/* sessile_store_guard(), _as(), _renew() and _revoke(); arguments are not NULL. */
sessile_status guard_set(sessile_store *store, const sessile_guard_options *options,
                         sessile_error *err);
sessile_status guard_view(sessile_store **out, sessile_store *store,
                          const sessile_credential *credential, sessile_error *err);
sessile_status guard_renew(sessile_store *view, int64_t expires_ms, sessile_error *err);
sessile_status guard_revoke(sessile_store *view, sessile_error *err);
sessile_status guard_who(const sessile_store *store, sessile_principal *out,
                         sessile_error *err);
int guard_can(const sessile_store *view, sessile_permission permission,
              const sessile_session_options *names);
/* What the store's own handle does when it is closed, before its core is: the audit and
 * the limiter go, whoever else holds the guard. p may be NULL. */
void guard_end(principal *p);
void guard_free(guard *g);
int64_t guard_now_ms(const guard *g);

#endif
