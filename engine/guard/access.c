/*
 * access.c: what the grants, keys and locks in force say of a principal.
 *
 * Owns the rule of what adds up: a role that is granted adds to those of the credential,
 * and a view of a view has no more than each of the two. A fold that could not be made
 * says no.
 */
#include "guard/access.h"

#include <string.h>

#include "base/names.h"
#include "guard/guard.h"

static int is_host(const principal *p)
{
    return !p->parent;
}

/* The principal whose grants count: of a view of a view, the first one. */
static const principal *first_of(const principal *p)
{
    while (!is_host(p->parent))
        p = p->parent;
    return p;
}

/* 1: the grant is given to p, and has not ended. *until_ms: at the latest. */
static int is_given(const access_grant *g, const principal *p, int64_t now_ms,
                    int64_t *until_ms)
{
    int given = g->is.user.size ? slice_same(g->is.user, p->user) : 0;

    for (size_t i = 0; !given && g->is.holders.size && i < p->role_count; i++)
        given = slice_same(g->is.holders, p->roles[i]);
    if (!given || (g->is.until_ms && now_ms >= g->is.until_ms))
        return 0;
    if (g->is.until_ms && (!*until_ms || g->is.until_ms < *until_ms))
        *until_ms = g->is.until_ms;
    return 1;
}

static permissions limit_of(const principal *p)
{
    permissions most = PERMISSIONS_ALL;

    for (; !is_host(p->parent); p = p->parent)
        if (!p->inherits)
            most &= atomic_load(&p->base);
    return most;
}

static int is_on_session(const access_grant *g, const guard_names *names)
{
    return g->is.session.size && slice_same(g->is.session, names->id) &&
           slice_same(g->is.agent, names->agent) && slice_same(g->is.owner, names->user);
}

/* made: of the session of these names; NULL: there is none. */
static permissions on_names(const access_fold *a, const principal *p,
                            const guard_names *names, const char *made, int sees,
                            int64_t *until_ms)
{
    int64_t now_ms = guard_now_ms(a->guard);
    const principal *first = first_of(p);
    permissions may = 0;

    for (size_t i = 0; i < a->grant_count; i++) {
        const access_grant *g = &a->grants[i];
        int covers = g->is.session.size
                         ? made && is_on_session(g, names) && !strcmp(g->made, made)
                         : g->is.agent_count && (sees || g->all) &&
                               names_match(g->is.agents, g->is.agent_count, names->agent);
        if (covers && is_given(g, first, now_ms, until_ms))
            may |= g->is.session.size ? g->may & ~PERMISSION(CREATE_SESSION) : g->may;
    }
    return may & limit_of(p);
}

int access_is_narrow(const principal *p)
{
    const access_fold *a = p->guard->access;

    return a && !is_host(p) && !p->is_granted && atomic_load(&a->narrow_count);
}

int access_is_shared(const principal *p, const guard_names *names)
{
    access_fold *a = p->guard->access;
    int64_t until_ms = 0;
    int shared = 0;

    if (!access_is_narrow(p) || access_begin(a, 0, NULL))
        return 0;
    for (size_t i = 0; !shared && i < a->grant_count; i++)
        shared = is_on_session(&a->grants[i], names) &&
                 is_given(&a->grants[i], first_of(p), guard_now_ms(a->guard), &until_ms);
    access_end(a);
    return shared;
}

permissions access_on(principal *p, const guard_names *names, const char *made, int sees,
                      int64_t *until_ms)
{
    access_fold *a = p->guard->access;
    permissions may;

    *until_ms = 0;
    if (!access_is_narrow(p) || access_begin(a, 0, NULL))
        return 0;
    may = on_names(a, p, names, made, sees, until_ms);
    access_end(a);
    return may;
}

/* What p may, by what its credential gives and by grants that are on no names. */
static void add_up(const access_fold *a, const principal *p, permissions *may, int *all,
                   int64_t *until_ms)
{
    int64_t now_ms = guard_now_ms(a->guard);

    if (is_host(p->parent)) {
        *may = atomic_load(&p->base);
        *all = p->base_all;
        for (size_t i = 0; i < a->grant_count; i++) {
            const access_grant *g = &a->grants[i];
            if (g->is.session.size || g->is.agent_count ||
                !is_given(g, p, now_ms, until_ms))
                continue;
            *may |= g->may;
            *all |= g->all;
        }
        return;
    }
    add_up(a, p->parent, may, all, until_ms);
    if (p->is_granted) {
        guard_names names = {p->agents[0], p->owner, p->on};
        *may = (p->is_own ? *may : 0) |
               on_names(a, p->parent, &names, p->made, p->is_own, until_ms);
        *all &= p->is_own;
    } else if (!p->inherits) {
        *may &= atomic_load(&p->base);
        *all &= p->base_all;
    }
}

static int is_refused(const access_fold *a, const principal *p)
{
    for (; !is_host(p); p = p->parent)
        if (access_is_locked(a, p->user, p->key) ||
            (p->is_by_key && !access_find_key(a, p->key)))
            return 1;
    return 0;
}

sessile_status access_refuse(sessile_error *err)
{
    return fail(err, SESSILE_DENIED, "the credential is not accepted");
}

sessile_status access_check(principal *p, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_error why = {0};
    uint64_t version;
    int64_t until_ms;

    if (!a || is_host(p))
        return SESSILE_OK;
    if (p->parent && !is_host(p->parent)) { /* what p may rests on what it may */
        sessile_status status = access_check(p->parent, err);
        if (status)
            return status;
    }
    if (control_look(a->control, &version, &why))
        return fail_rule(err, SESSILE_DENIED, "control",
                         "the control log of this store cannot be trusted, so nobody but "
                         "the host may use it, who repairs it");
    until_ms = atomic_load(&p->until_ms);
    if (atomic_load(&p->version) != version ||
        (until_ms && guard_now_ms(p->guard) >= until_ms)) {
        permissions may;
        int all;
        sessile_status status = access_begin(a, 0, &why);
        if (status)
            return status == SESSILE_NOMEM
                       ? fail_nomem(err)
                       : fail_rule(err, SESSILE_DENIED, "control",
                                   "the control log of this store cannot be read");
        until_ms = 0;
        add_up(a, p, &may, &all, &until_ms);
        atomic_store(&p->may, may);
        atomic_store(&p->all, all);
        atomic_store(&p->refused, is_refused(a, p));
        atomic_store(&p->until_ms, until_ms);
        atomic_store(&p->version, a->version);
        access_end(a);
    }
    return atomic_load(&p->refused) || (p->is_granted && !atomic_load(&p->may))
               ? access_refuse(err)
               : SESSILE_OK;
}

sessile_status access_accept(principal *p, sessile_error *err)
{
    return principal_stands(p) && principal_lives(p) ? access_check(p, err)
                                                     : access_refuse(err);
}
