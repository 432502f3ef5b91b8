/* guard.c: the guard of a store, and its views. */
#include "guard/guard.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "guard/credential.h"
#include "guard/event.h"
#include "screen/write.h"
#include "session/store_handle.h"
#include "session/writes.h"

void guard_close(principal *p)
{
    if (!p || p->parent)
        return;
    (void)audit_close(p->guard->audit, NULL);
    limiter_close(p->guard->limiter);
    p->guard->audit = NULL;
    p->guard->limiter = NULL;
    access_close(p->guard->access);
    p->guard->access = NULL;
}

void guard_free(guard *g)
{
    allocator a = g->alloc;

    (void)audit_close(g->audit, NULL);
    limiter_close(g->limiter);
    access_close(g->access);
    jws_close(g->verifier);
    roles_deinit(&g->roles, &a);
    if (g->authorize.release)
        g->authorize.release(g->authorize.ref);
    mem_free(&a, g, sizeof *g);
}

/* ------------------------------------------------------------------ made */

static guard *new_guard(const sessile_store *store)
{
    guard *g = mem_zalloc(&store->core->alloc, sizeof *g);

    if (!g)
        return NULL;
    g->alloc = store->core->alloc;
    g->os = store->core->os;
    g->store = store->core;
    return g;
}

static sessile_status open_verifier(guard *g, const sessile_token_options *token,
                                    sessile_error *err)
{
    const jws_options options = {token->keys, token->issuer, token->audience,
                                 token->user, token->roles,  token->agents,
                                 token->actor};

    return jws_open(&g->verifier, &options, g->os, &g->alloc, err);
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
    if (options->store && options->store->who && options->store->who->guard->is_waiting)
        return fail(
            err, SESSILE_DENIED,
            "the store that is to keep the audit stays guarded: set its guard first");
    if (of->over_records || !(of->backend.table->capabilities & SESSILE_BACKEND_SEALS))
        return fail(err, SESSILE_UNSUPPORTED,
                    "a ram: store, and one over records, cannot keep an audit: give the "
                    "guard another store for it");
    g->sync = options->sync;
    g->no_reads = options->no_reads;
    g->closed = options->closed;
    if (!g->store->notes)
        g->store->notes = write_notes_new(&g->store->alloc);
    g->notes = g->store->notes;
    g->audit_of = of;
    return g->notes ? audit_open(&g->audit, of, NULL, err) : fail_nomem(err);
}

/* Writes down that the store is guarded, and with which audit: if that is removed,
 * another one does not take its place unseen. One whose control log is DAMAGED was:
 * principals are DENIED, and the host can repair it. */
static sessile_status note_guarded(const guard *g, const char *profile,
                                   sessile_error *err)
{
    control *c = g->access->control;
    guarded_audit known;
    int on;
    sessile_status status = access_guarded(c, &on, NULL, &known, err);

    if (!status && !known.root[0] && g->audit && g->audit_of == g->store)
        status = audit_root(g->audit, known.root, err);
    if (!status)
        status = access_set_guarded(c, 1, profile, known.root, &g->alloc, err);
    if (status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED ||
        status == SESSILE_SEALED) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

/* The store is not guarded any more: its handle is as it was. */
static sessile_status switch_off(sessile_store *store, sessile_error *err)
{
    control *c;
    sessile_status status = control_open(&c, store->core, err);

    if (!status)
        status = access_set_guarded(c, 0, NULL, "", &store->core->alloc, err);
    control_close(c);
    if (status)
        return status;
    principal_release(store->who);
    store->who = NULL;
    return SESSILE_OK;
}

sessile_status guard_set(sessile_store *store, const sessile_guard_options *options,
                         const authorize_rule *rule, sessile_error *err)
{
    const sessile_error none = {0};
    write_rules *rules = NULL;
    principal *host = NULL;
    sessile_status status;
    guard *g;

    if (store->who && !store->who->guard->is_waiting)
        return fail(err, SESSILE_INVALID, "this store has a guard already");
    if (options->off)
        return switch_off(store, err);
    g = new_guard(store);
    if (!g)
        return fail_nomem(err);
    g->require_principal = options->require_principal;
    g->consent = options->consent;
    status = roles_init(&g->roles, options->roles, options->role_count, &g->alloc, err);
    if (!status)
        status = access_open(&g->access, g, g->store, err);
    if (!status)
        status = open_limiter(g, &options->limits, err);
    if (!status)
        status = open_audit(g, &options->audit, err);
    if (!status && options->token)
        status = open_verifier(g, options->token, err);
    if (!status)
        status = write_rules_new(&rules, options->screens, &options->urls, g->os,
                                 &g->alloc, err);
    if (!status) {
        host = principal_host(g, &g->alloc);
        status = host ? SESSILE_OK : fail_nomem(err);
    }
    if (!status && options->profile) /* last: nothing after it can fail */
        status = note_guarded(g, options->profile, err);
    if (status) {
        counted_release(rules);
        if (host)
            principal_release(host); /* with it goes the guard */
        else
            guard_free(g);
        return status;
    }
    g->authorize = *rule;
    store->core->rules = rules;
    atomic_store(&store->core->consent, options->consent != 0);
    principal_release(store->who);
    store->who = host;
    guard_view_event(host, OP_store_guard, &none);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ opened */

sessile_status guard_refuse_waiting(const guard *g, sessile_error *err)
{
    return fail(
        err, SESSILE_DENIED,
        "this store is guarded%s%s%s: set its guard with sessile_store_guard(), or "
        "say there that it is off",
        g->profile[0] ? " (" : "", g->profile, g->profile[0] ? ")" : "");
}

/* The handle may set the guard of its store, and nothing else. */
static sessile_status wait_for_guard(sessile_store *store, const buf *profile,
                                     sessile_error *err)
{
    guard *g = new_guard(store);

    if (!g)
        return fail_nomem(err);
    g->is_waiting = 1;
    g->require_principal = 1;
    if (profile->size)
        memcpy(g->profile, profile->data,
               utf8_floor(profile->data, profile->size, sizeof g->profile - 1));
    store->who = principal_host(g, &g->alloc);
    if (store->who)
        return SESSILE_OK;
    guard_free(g);
    return fail_nomem(err);
}

sessile_status guard_opened(sessile_store *store, sessile_error *err)
{
    int on = 0;
    control *c;
    sessile_status status;
    buf profile;

    if (store->core->over_records)
        return SESSILE_OK;
    status = control_open(&c, store->core, err);
    if (status)
        return status;
    buf_init(&profile, &store->core->alloc);
    status = access_guarded(c, &on, &profile, NULL, err);
    control_close(c);
    if (!status && on)
        status = wait_for_guard(store, &profile, err);
    buf_deinit(&profile);
    return status;
}

audit_log *guard_audit(const principal *p)
{
    return p ? p->guard->audit : NULL;
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

/* The session of that principal, whose names are those that p knows. */
static void keep_session(const principal *p, sessile_credential *c)
{
    if (c->session.size && !slice_same(c->session, p->session))
        return;
    c->session = p->session;
    if (!c->agent.size)
        c->agent = p->agents[0];
    if (!c->owner.data)
        c->owner = p->owner;
}

/* *told: 1: the audit has the refusal already. */
static sessile_status make_view(principal **out, const sessile_store *store,
                                const sessile_credential *credential, int *told,
                                sessile_error *err)
{
    sessile_credential own = *credential;
    const principal *narrow = store->who;
    accepted by;
    sessile_status status;

    while (narrow->parent && !narrow->session.size)
        narrow = narrow->parent;
    if (own.session.size && narrow->session.size)
        keep_session(narrow, &own);
    status = access_accept(store->who, err);
    if (!status)
        status = check_expiry(store->who, credential->expires_ms, err);
    if (status)
        return status;
    status = credential_open(&by, store->who->guard, &own, err);
    *told = status != SESSILE_OK;
    if (status)
        return status;
    status = principal_make(out, store->who, &by.about, err);
    if (status == SESSILE_DENIED && by.about.is_lenient)
        status = access_refuse(err); /* of another user */
    credential_close(&by);
    if (!status)
        status = access_check(*out, err);
    return status;
}

/* Whom the system lets open the store has done so already, which is an event: the view
 * says nothing more, and would be one for each command. */
static int is_of_opener(const sessile_store *store, const sessile_credential *credential)
{
    return credential->os && !store->is_view;
}

sessile_status guard_view(sessile_store **out, sessile_store *store,
                          const sessile_credential *credential, sessile_error *err)
{
    const allocator *a = &store->core->alloc;
    principal *p = NULL;
    sessile_error why = {0};
    int told = 0;
    sessile_status status;

    if (!store->who)
        return fail(err, SESSILE_INVALID,
                    "this store has no guard: set one with sessile_store_guard()");
    if (store->who->guard->is_waiting)
        return guard_refuse_waiting(store->who->guard, err);
    status = make_view(&p, store, credential, &told, &why);
    if (!told && (status || !is_of_opener(store, credential)))
        guard_view_event(status ? store->who : p, OP_store_as, &why);
    if (!status) {
        *out = mem_zalloc(a, sizeof **out);
        status = *out ? SESSILE_OK : fail_nomem(&why);
    }
    if (status) {
        if (err)
            *err = why;
        principal_release(p);
        return status;
    }
    **out = (sessile_store){.core = store->core, .who = p, .alloc = *a, .is_view = 1};
    return SESSILE_OK;
}

static sessile_status check_view(const sessile_store *view, sessile_error *err)
{
    return view->is_view ? SESSILE_OK
                         : fail(err, SESSILE_INVALID, "this is no view of a store");
}

/* The view goes on under what both credentials give. */
static sessile_status renew(principal *p, const principal_about *about,
                            sessile_error *err)
{
    permissions may;
    sessile_status status;
    int all, narrows = p->agent_count == about->agent_count;

    for (size_t i = 0; narrows && i < p->agent_count; i++)
        narrows = slice_same(p->agents[i], about->agents[i]);
    if (!slice_same(p->user, about->user) || !slice_same(p->actor, about->actor))
        return access_refuse(err);
    /* else what is revoked would not be what the view stands on */
    if (p->is_lenient != about->is_lenient || p->is_by_key != about->is_by_key ||
        (p->is_by_key && !slice_same(p->key, about->key)))
        return fail(err, SESSILE_INVALID,
                    "the new credential is of another kind, or another key: make a view "
                    "with it");
    if (!narrows || !slice_same(p->session, about->session) ||
        !slice_same(p->owner, about->owner))
        return fail(err, SESSILE_INVALID,
                    "the new credential is for other agents, or another session: make a "
                    "view with it");
    status = principal_roles(&p->guard->roles, about, &may, &all, err);
    if (status)
        return status;
    if (about->role_count || about->is_lenient) {
        atomic_store(&p->base, atomic_load(&p->base) & may);
        atomic_store(&p->base_all, atomic_load(&p->base_all) & all);
        atomic_store(&p->version, UINT64_MAX); /* it is compared again */
    }
    atomic_store(&p->expires_ms, about->expires_ms);
    return SESSILE_OK;
}

/* A word is that of who made the view. A key or a token speaks for itself. */
static sessile_status check_word(const sessile_store *view, const sessile_store *by,
                                 sessile_error *err)
{
    if (!by || by->who != view->who->parent)
        return fail(err, SESSILE_DENIED,
                    "a view does not renew itself: it needs a newer key or token, or the "
                    "word of the handle that it was made through");
    return access_accept(by->who, err);
}

sessile_status guard_renew(sessile_store *view, const sessile_store *by,
                           const sessile_credential *credential, sessile_error *err)
{
    sessile_credential own = *credential;
    int by_word = !own.key.data && !own.token.data, told = 0;
    sessile_error why = {0};
    accepted accepted;
    sessile_status status = check_view(view, err);

    if (!status)
        status = check_expiry(view->who, own.expires_ms, err);
    if (status)
        return status;
    if (!principal_stands(view->who))
        status = access_refuse(&why);
    if (!status && by_word)
        status = check_word(view, by, &why);
    if (by_word && !own.os) { /* the same one */
        own.user = own.user.size ? own.user : view->who->user;
        own.actor = own.actor.size ? own.actor : view->who->actor;
        if (!own.agent_count) {
            own.agents = view->who->agents;
            own.agent_count = view->who->agent_count;
        }
    }
    if (view->who->session.size)
        keep_session(view->who, &own);
    if (!status) {
        status = credential_open(&accepted, view->who->guard, &own, &why);
        told = status != SESSILE_OK;
        if (!status) {
            status = renew(view->who, &accepted.about, &why);
            credential_close(&accepted);
        }
    }
    if (!told)
        guard_view_event(view->who, OP_store_renew, &why);
    if (status && err)
        *err = why;
    return status;
}

sessile_status guard_revoke(sessile_store *view, sessile_error *err)
{
    const sessile_error none = {0};
    sessile_status status = check_view(view, err);

    if (!status) {
        atomic_store(&view->who->revoked, 1);
        guard_view_event(view->who, OP_store_revoke, &none);
    }
    return status;
}

sessile_status guard_who(const sessile_store *store, sessile_principal *out,
                         sessile_error *err)
{
    principal *p = store->who;

    if (!p)
        return fail(err, SESSILE_INVALID, "this store has no guard");
    if (p->guard->is_waiting)
        return guard_refuse_waiting(p->guard, err);
    (void)access_check(p, NULL); /* what it may now */
    out->user = p->user;
    out->actor = p->actor;
    out->session = p->session;
    out->agents = p->agents;
    out->agent_count = p->agent_count;
    out->permissions = p->may & PERMISSIONS_ALL;
    out->all = p->all;
    out->host = (p->may & PERMISSION_HOST) != 0;
    out->expires_ms = atomic_load(&p->expires_ms);
    out->method = p->method.data;
    out->key = p->key;
    return SESSILE_OK;
}

int guard_can(const sessile_store *view, sessile_permission permission,
              const sessile_session_options *names)
{
    guard_names of = {names->agent, names->user, names->id};

    return !view->who || !guard_allows(view->who, view->core, permission, &of, NULL);
}
