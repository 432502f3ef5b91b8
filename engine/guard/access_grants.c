/* access_grants.c: grants: made, ended, listed. */
#include "guard/access_facts.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "guard/access_rows.h"
#include "guard/guard.h"
#include "session/header.h"

static sessile_status check_grant(const principal *p, const sessile_grant_options *o,
                                  const guard_names *names, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (!o->user.size == !o->holders.size)
        return fail(err, SESSILE_INVALID,
                    "a grant is given to a user, or to all holders of a role: name one");
    if (o->session.size && o->agent_count)
        return fail(err, SESSILE_INVALID,
                    "a grant is on one session or with some agents, not both");
    status = access_check_until(p, o->until_ms, "grant", err);
    if (!status)
        status = access_check_role(p, o->role, o->session.size != 0, err);
    if (status || access_manages(p) || (p->may & PERMISSION_HOST))
        return status;
    if (!o->session.size || !p->user.size || !slice_same(names->user, p->user) ||
        !principal_sees(p, names))
        return fail(err, SESSILE_DENIED,
                    "this needs the permission manage_access: without it one shares a "
                    "session of one's own, and no more");
    return SESSILE_OK;
}

/* LIMIT: names that no session, user or role may have. NOTFOUND: there is no session to
 * share. made: which one of its names it is. */
static sessile_status check_names(const principal *p, const sessile_grant_options *o,
                                  const guard_names *names, char made[HEADER_NONCE],
                                  sessile_error *err)
{
    const sessile_session_options of = {
        .agent = names->agent, .user = names->user, .id = names->id};
    char shown[NAME_SHOWN];
    session_names session;
    sessile_status status = access_check_text(p, o->user, "name of the user", err);

    if (!status)
        status = access_check_text(p, o->holders, "name of the role", err);
    if (!status)
        status = access_check_texts(p, o->agents, o->agent_count, "agent", err);
    if (status || !o->session.size)
        return status;
    status = names_from_options(&session, p->guard->store, &of, 0, err);
    if (!status)
        status = names_made(p->guard->store, &session, made, err);
    name_show(names->id, shown);
    return status == SESSILE_NOTFOUND
               ? fail(err, SESSILE_NOTFOUND, "there is no session %s to share", shown)
               : status;
}

sessile_status access_grant_make(principal *p, const store_core *st,
                                 const sessile_grant_options *o, sessile_id *id,
                                 sessile_error *err)
{
    guard_names names = {o->agent, o->owner, o->session};
    char made[HEADER_NONCE] = "";
    sessile_status status;
    buf data;

    if (!names.agent.size)
        names.agent = (sessile_slice){st->agent, strlen(st->agent)};
    if (!names.user.data && !p->all)
        names.user = p->user;
    status = check_grant(p, o, &names, err);
    if (!status)
        status = check_names(p, o, &names, made, err);
    if (status)
        return status;
    buf_init(&data, &p->guard->alloc);
    buf_puts(&data, "{\"role\":");
    json_put_cstring(&data, o->role);
    status = fact_put_user(p, &data, "user", o->user, err);
    fact_put_name(&data, "holders", o->holders);
    fact_put_names(&data, "agents", o->agents, o->agent_count);
    if (o->session.size) {
        fact_put_name(&data, "session", names.id);
        fact_put_name(&data, "made", slice_of(made));
        fact_put_name(&data, "agent", names.agent);
        if (!status)
            status = fact_put_user(p, &data, "owner", names.user, err);
    }
    if (o->until_ms)
        buf_printf(&data, ",\"until\":%" PRIi64, o->until_ms);
    if (!status)
        status = fact_append(p, CONTROL_GRANT, &data, id, err);
    buf_deinit(&data);
    return status;
}

/* 1: p sees the grant, or (to_end) may end it. */
static int is_of(const principal *p, const access_grant *g, int to_end)
{
    const guard_names names = {g->is.agent, g->is.owner, g->is.session};
    int is_owner = g->is.session.size && p->user.size && slice_same(g->is.owner, p->user);

    if (access_has_ended(p, g->is.until_ms))
        return 0;
    if (!principal_is_whole(p) && !(g->is.session.size && principal_reaches(p, &names)))
        return 0; /* it is of another part of what its user has */
    return access_manages(p) || (p->may & PERMISSION_HOST) || is_owner ||
           (!to_end && p->user.size && slice_same(g->is.user, p->user));
}

static size_t count_grants(const access_fold *a)
{
    return a->grant_count;
}

sessile_status access_grant_list(principal *p, sessile_grant_row **rows, size_t *count,
                                 sessile_error *err)
{
#define AT(field) offsetof(sessile_grant_row, field)
    static const rows_shape sh = {
        sizeof(sessile_grant_row),
        {AT(user), AT(holders), AT(role), AT(session), AT(agent), AT(owner), AT(by)},
        7,
        {AT(agents)},
        {AT(agent_count)},
        1};
#undef AT
    const access_fold *a = p->guard->access;
    const void **chosen;
    size_t n = 0, room;
    void *out = NULL;
    sessile_status status = rows_begin(p, count_grants, &chosen, &room, err);

    if (status)
        return status;
    for (size_t i = 0; i < a->grant_count; i++)
        if (is_of(p, &a->grants[i], 0))
            chosen[n++] = &a->grants[i].is;
    status = rows_end(p, &sh, chosen, room, n, &out, count, err);
    *rows = out;
    return status;
}

sessile_status access_grant_end(principal *p, sessile_id id, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = access_begin(a, 1, err);
    int found = 0;
    buf data;

    if (status)
        return status;
    for (size_t i = 0; i < a->grant_count; i++)
        found |= a->grants[i].is.id == id && is_of(p, &a->grants[i], 1);
    access_end(a);
    if (!found)
        return fail(err, SESSILE_NOTFOUND, "no grant %08" PRIx32 " is in force", id);
    buf_init(&data, &a->guard->alloc);
    buf_printf(&data, "{\"end\":%" PRIu32, id);
    status = fact_append(p, CONTROL_GRANT, &data, NULL, err);
    buf_deinit(&data);
    return status;
}
