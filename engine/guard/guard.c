/* guard.c: the guard of a store, and its views. */
#include "guard/guard.h"

#include <string.h>

#include "base/names.h"
#include "session/store_handle.h"

void guard_close(principal *p)
{
    if (!p || p->parent)
        return;
    (void)audit_close(p->guard->audit, NULL);
    limiter_close(p->guard->limiter);
    p->guard->audit = NULL;
    p->guard->limiter = NULL;
}

void guard_free(guard *g)
{
    allocator a = g->alloc;

    (void)audit_close(g->audit, NULL);
    limiter_close(g->limiter);
    roles_deinit(&g->roles, &a);
    mem_free(&a, g, sizeof *g);
}

static sessile_status invalid_rate(const char *rule, sessile_error *err)
{
    if (err)
        err->code = SESSILE_INVALID;
    fail_prefix(err, "limits: \"%.63s\"", rule ? rule : "");
    return SESSILE_INVALID;
}

static sessile_status open_limiter(guard *g, const sessile_limit_options *options,
                                   sessile_error *err)
{
    limit_options o;
    sessile_status status = SESSILE_OK;

    if (!options->on)
        return SESSILE_OK;
    limit_options_init(&o);
    o.shared = options->shared;
    o.deny = options->deny;
    for (size_t i = 0; !status && i < options->rate_count; i++) {
        status = limit_options_set(&o, options->rates[i].rule,
                                   slice_of(options->rates[i].rate), err);
        if (status) /* also of a rule that there is not */
            status = invalid_rate(options->rates[i].rule, err);
    }
    return status ? status : limiter_open(&g->limiter, g->store, &o, err);
}

static sessile_status open_audit(guard *g, const sessile_audit_options *options,
                                 sessile_error *err)
{
    store_core *of = options->store ? options->store->core : g->store;

    if (!options->on)
        return SESSILE_OK;
    if (of->over_records || !(of->backend.table->capabilities & SESSILE_BACKEND_SEALS))
        return fail(err, SESSILE_UNSUPPORTED,
                    "a ram: store, and one over records, cannot keep an audit: give the "
                    "guard another store for it");
    g->sync = options->sync;
    g->no_reads = options->no_reads;
    g->closed = options->closed;
    return audit_open(&g->audit, of, NULL, err);
}

sessile_status guard_set(sessile_store *store, const sessile_guard_options *options,
                         sessile_error *err)
{
    const allocator *a = &store->core->alloc;
    sessile_status status;
    guard *g;

    if (store->who)
        return fail(err, SESSILE_INVALID, "this store has a guard already");
    g = mem_zalloc(a, sizeof *g);
    if (!g)
        return fail_nomem(err);
    g->alloc = *a;
    g->os = store->core->os;
    g->store = store->core;
    g->require_principal = options->require_principal;
    status = roles_init(&g->roles, options->roles, options->role_count, a, err);
    if (!status)
        status = open_limiter(g, &options->limits, err);
    if (!status)
        status = open_audit(g, &options->audit, err);
    if (!status) {
        store->who = principal_host(g, a);
        status = store->who ? SESSILE_OK : fail_nomem(err);
    }
    if (status)
        guard_free(g);
    return status;
}

int64_t guard_now_ms(const guard *g)
{
    return g->os->now_ms(g->os->ud);
}

static sessile_status check_expiry(const principal *p, int64_t expires_ms,
                                   sessile_error *err)
{
    if (expires_ms < 0 || (expires_ms && expires_ms <= guard_now_ms(p->guard)))
        return fail(err, SESSILE_INVALID, "the view would have expired already");
    return SESSILE_OK;
}

sessile_status guard_view(sessile_store **out, sessile_store *store,
                          const sessile_credential *credential, sessile_error *err)
{
    const allocator *a = &store->core->alloc;
    principal *p;
    sessile_status status;

    if (!store->who)
        return fail(err, SESSILE_INVALID,
                    "this store has no guard: set one with sessile_store_guard()");
    if (!principal_stands(store->who) || !principal_lives(store->who))
        return fail(err, SESSILE_DENIED, "the credential is not accepted");
    status = check_expiry(store->who, credential->expires_ms, err);
    if (!status)
        status = principal_make(&p, store->who, credential, err);
    if (status)
        return status;
    *out = mem_zalloc(a, sizeof **out);
    if (!*out) {
        principal_release(p);
        return fail_nomem(err);
    }
    **out = (sessile_store){.core = store->core, .who = p, .alloc = *a, .is_view = 1};
    return SESSILE_OK;
}

static sessile_status check_view(const sessile_store *view, sessile_error *err)
{
    return view->is_view ? SESSILE_OK
                         : fail(err, SESSILE_INVALID, "this is no view of a store");
}

sessile_status guard_renew(sessile_store *view, int64_t expires_ms, sessile_error *err)
{
    sessile_status status = check_view(view, err);

    if (!status)
        status = check_expiry(view->who, expires_ms, err);
    if (!status)
        atomic_store(&view->who->expires_ms, expires_ms);
    return status;
}

sessile_status guard_revoke(sessile_store *view, sessile_error *err)
{
    sessile_status status = check_view(view, err);

    if (!status)
        atomic_store(&view->who->revoked, 1);
    return status;
}

sessile_status guard_who(const sessile_store *store, sessile_principal *out,
                         sessile_error *err)
{
    const principal *p = store->who;

    if (!p)
        return fail(err, SESSILE_INVALID, "this store has no guard");
    out->user = p->user;
    out->actor = p->actor;
    out->session = p->session;
    out->agents = p->agents;
    out->agent_count = p->agent_count;
    out->permissions = p->may & PERMISSIONS_ALL;
    out->all = p->all;
    out->host = (p->may & PERMISSION_HOST) != 0;
    out->expires_ms = atomic_load(&p->expires_ms);
    return SESSILE_OK;
}

int guard_can(const sessile_store *view, sessile_permission permission,
              const sessile_session_options *names)
{
    const principal *p = view->who;
    sessile_session_options own = *names;
    guard_names all;

    if (!p)
        return 1;
    if (!own.id.size) /* a memory, which a view of one session has as well */
        own.id = p->session;
    return principal_stands(p) && principal_lives(p) && (p->may >> permission & 1) &&
           !guard_check_names(p, view->core, &own, &all, NULL);
}
