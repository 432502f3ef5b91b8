/*
 * enter.c: what is checked of a call before the floors below see it.
 *
 * In this order: the principal was not revoked and has not expired; it has the
 * permission; the names are in its scope; the host's own rule allows it. Nothing of the
 * store is read before the names are allowed, so neither an answer nor its time tells
 * whether there is such a session.
 */
#include "guard/guard.h"

#include <string.h>

#include "base/names.h"
#include "guard/access.h"
#include "guard/authorize.h"
#include "guard/event.h"
#include "guard/rows.h"
#include "session/handle.h"

/* The columns of operations.def. */
#define NEED_NONE              0
#define NEED_NOTHING           0
#define NEED_KEY               0
#define NEED_HOST              PERMISSION_HOST
#define NEED_VIEW_SESSION      PERMISSION(VIEW_SESSION)
#define NEED_MODIFY_SESSION    PERMISSION(MODIFY_SESSION)
#define NEED_CREATE_SESSION    PERMISSION(CREATE_SESSION)
#define NEED_DELETE_SESSION    PERMISSION(DELETE_SESSION)
#define NEED_CREATE_CHECKPOINT PERMISSION(CREATE_CHECKPOINT)
#define NEED_READ_MEMORY       PERMISSION(READ_MEMORY)
#define NEED_WRITE_MEMORY      PERMISSION(WRITE_MEMORY)
#define NEED_READ_AUDIT        PERMISSION(READ_AUDIT)
#define NEED_CHECK_STORE       PERMISSION(CHECK_STORE)
#define NEED_MOVE_STORE        PERMISSION(MOVE_STORE)
#define NEED_MANAGE_KEYS       PERMISSION(MANAGE_KEYS)
#define NEED_MANAGE_PRIVACY    PERMISSION(MANAGE_PRIVACY)
#define NEED_MANAGE_ACCESS     PERMISSION(MANAGE_ACCESS)
#define NEED_ERASE_USER        PERMISSION(ERASE_USER)

#define OF_ALL_NONE    0
#define OF_ALL_SESSION 0
#define OF_ALL_MEMORY  0
#define OF_ALL_ROWS    0
#define OF_ALL_LINK    0
#define OF_ALL_STORE   1

#define OPERATION(name, permission, also, limit, event, screens, object)            \
    [OP_##name] = {NEED_##permission | NEED_##also, OF_ALL_##object, LIMIT_##limit, \
                   #event, #name},
const guard_row guard_rows[OP_COUNT] = {
#include "guard/operations.def"
};
#undef OPERATION

/* Those that go on with guard_own_names(), so that a grant on the names may give what is
 * missing. */
static const unsigned char has_names[OP_COUNT] = {
    [OP_create] = 1, [OP_resume] = 1,   [OP_session_open] = 1,
    [OP_delete] = 1, [OP_undelete] = 1, [OP_records_open] = 1,
};

/* Those whose names come after guard_check(): the host's rule is asked when they are
 * allowed. Of a row that is not here it is asked at once; of one that should not be here,
 * never, which unit/guard/test_authorize finds. */
static const unsigned char names_follow[OP_COUNT] = {
    [OP_create] = 1,   [OP_resume] = 1,       [OP_session_open] = 1, [OP_delete] = 1,
    [OP_undelete] = 1, [OP_records_open] = 1, [OP_memory_open] = 1,  [OP_consent] = 1,
    [OP_list] = 1,     [OP_list_with] = 1,    [OP_search_open] = 1,  [OP_fork] = 1,
    [OP_put] = 1,      [OP_child] = 1,
};

static int changes(permissions need)
{
    const permissions reads = PERMISSION(VIEW_SESSION) | PERMISSION(READ_MEMORY) |
                              PERMISSION(CHECK_STORE) | PERMISSION(READ_AUDIT) |
                              NEED_STEP | NEED_CHECK_AUDIT;

    return (need & ~reads) != 0;
}

int guard_changes(unsigned op)
{
    return changes(guard_rows[op].need);
}

/* After an event could not be written, nothing is changed before one can. This one says
 * that there may be a gap. */
static sessile_status check_audit(const principal *p, sessile_error *err)
{
    sessile_error why;
    audit_event e;
    sessile_status status;

    while (p->parent)
        p = p->parent;
    audit_event_init(&e);
    e.operation.name = slice_of("audit_resumed");
    status = guard_event(p, AUDIT_WRITE, &e, NULL, &why);
    if (!status)
        atomic_store(&p->guard->broken, 0);
    return status ? fail_rule(err, status, "audit",
                              "nothing was done, because the audit cannot be written: %s",
                              why.message)
                  : SESSILE_OK;
}

/* Of a call that may change something: whether it can be recorded. */
static sessile_status check_recorded(const guard_call *call, sessile_error *err)
{
    const guard *g = call->who->guard;
    const permissions looks =
        PERMISSION(CHECK_STORE) | PERMISSION(READ_AUDIT) | NEED_CHECK_AUDIT;
    permissions need = guard_rows[call->op].need;

    if (!g->audit || !atomic_load_explicit(&g->broken, memory_order_relaxed) ||
        need & (NEED_STEP | looks) || !(g->closed || guard_changes(call->op)))
        return SESSILE_OK;
    return check_audit(call->who, err);
}

int guard_gives_memory(const principal *p, const sessile_memory *memory, int writes)
{
    permissions need = PERMISSION(READ_MEMORY) | (writes ? PERMISSION(WRITE_MEMORY) : 0);

    return !p || ((p->may & need) == need && (!writes || p->all || !memory->shared));
}

sessile_status guard_refuse(sessile_permission permission, sessile_error *err)
{
    return fail(err, SESSILE_DENIED,
                "this needs the permission %s, which no role of this view gives",
                permission_name(permission));
}

sessile_status guard_may_create(guard_call *call, sessile_error *err)
{
    if (!call->who)
        return SESSILE_OK;
    if (!(call->who->may & PERMISSION(CREATE_SESSION)))
        return guard_refuse(SESSILE_MAY_CREATE_SESSION, err);
    return authorize_call_as(call, OP_create, NULL, err);
}

static sessile_status refuse_first(permissions missing, sessile_error *err)
{
    unsigned first = 0;

    while (!(missing >> first & 1))
        first++;
    if (first < SESSILE_PERMISSION_COUNT)
        return guard_refuse((sessile_permission)first, err);
    return fail(err, SESSILE_DENIED, "only the host's own handle may do this, no view");
}

static sessile_status refuse_foreign(sessile_error *err)
{
    return fail(err, SESSILE_DENIED, "this is not yours, or there is no such session");
}

static sessile_status refuse_shared(sessile_error *err)
{
    return fail(err, SESSILE_DENIED,
                "what an agent keeps for all users is written with a role of scope all: "
                "write to the user's own memory");
}

static sessile_status check_whole(const principal *p, sessile_error *err)
{
    if (!p->all)
        return fail(err, SESSILE_DENIED,
                    "this concerns all users of the store: it needs a role of scope all");
    return principal_is_whole(p)
               ? SESSILE_OK
               : fail(err, SESSILE_DENIED,
                      "this concerns the whole store, and this view is of some agents or "
                      "one session");
}

/* What a call needs now. A step of what only reads needs what its beginning needed; a run
 * that writes ends under the permissions that it began with. */
static permissions needed(const guard_call *call)
{
    permissions need = guard_rows[call->op].need;

    if (need & NEED_STEP && !guard_changes(call->begun))
        need |= guard_rows[call->begun].need;
    return need & ~NEED_STEP;
}

/* A handle is of what its principal saw when it was opened, and must see still. */
static int sees_still(const principal *p, const guard_names *of)
{
    guard_names names = *of;

    if (!names.agent.size)
        return 1; /* a store, or what is of all of it */
    if (!names.id.size && !names.user.size)
        return principal_sees_agent(p, names.agent);
    if (!names.id.size)
        names.id = principal_session(p);
    return principal_sees(p, &names);
}

sessile_status guard_also(principal *who, const guard_names *names, guard_op op,
                          sessile_permission permission, sessile_error *err)
{
    const authorize_question question = {who,
                                         slice_of(guard_rows[op].name),
                                         (permissions)1 << permission,
                                         changes((permissions)1 << permission),
                                         names,
                                         NULL};
    sessile_status status;

    if (!who)
        return SESSILE_OK;
    status = access_accept(who, err);
    if (!status && !(who->may & (permissions)1 << permission))
        status = guard_refuse(permission, err);
    if (!status && !sees_still(who, names))
        status = refuse_foreign(err);
    return status ? status : authorize(&question, NULL, err);
}

sessile_status guard_check(guard_call *call, sessile_error *err)
{
    principal *p = call->who;
    const guard_row *o = &guard_rows[call->op];
    int is_step = (o->need & NEED_STEP) != 0;
    permissions missing;
    sessile_status status;

    guard_forget_wrote(p);
    if (is_step) /* expiry ends nothing that goes on */
        status = principal_stands(p) ? access_check(p, err) : access_refuse(err);
    else
        status = access_accept(p, err);
    if (status)
        return status;
    missing = needed(call) & ~p->may;
    if (missing & NEED_CHECK_AUDIT)
        missing = p->may & (PERMISSION(READ_AUDIT) | PERMISSION(CHECK_STORE))
                      ? missing & ~NEED_CHECK_AUDIT
                      : missing ^ NEED_CHECK_AUDIT ^ PERMISSION(READ_AUDIT);
    if (missing && has_names[call->op] && access_is_narrow(p)) {
        call->missing = missing;
        missing = 0;
    }
    if (missing && p->guard->is_waiting)
        return guard_refuse_waiting(p->guard, err);
    if (missing && (p->may & PERMISSION_HOST))
        return fail(err, SESSILE_DENIED,
                    "this store wants a principal for everything: make a view with "
                    "sessile_store_as()");
    if (missing)
        return refuse_first(missing, err);
    status = o->of_all ? check_whole(p, err) : SESSILE_OK;
    if (status)
        return status;
    if (!(is_step && guard_changes(call->begun)) && !sees_still(p, call->own))
        return refuse_foreign(err);
    if (call->shared && !p->all && (o->need & PERMISSION(WRITE_MEMORY)))
        return refuse_shared(err);
    status = names_follow[call->op] ? SESSILE_OK : authorize_call(call, NULL, err);
    return status ? status : check_recorded(call, err);
}

static sessile_slice own_agent(const store_core *store)
{
    return (sessile_slice){store->agent, strlen(store->agent)};
}

/* What tells the session of these names from another one that was made under them: a
 * grant is on that one alone. NULL: nobody shared it with p, or there is none. */
static const char *made_of(const principal *p, const guard_names *names,
                           char nonce[HEADER_NONCE])
{
    const session_names of = {names->id, names->agent, names->user, NAMES_SESSION};

    if (!access_is_shared(p, names) || names_made(p->guard->store, &of, nonce, NULL))
        return NULL;
    return nonce;
}

/* What grants on these names add. sees: they are p's own. */
static sessile_status take_granted(guard_call *call, const guard_names *names, int sees,
                                   sessile_error *err)
{
    principal *p = call->who;
    char nonce[HEADER_NONCE];
    const char *made = made_of(p, names, nonce);
    int64_t until_ms;
    permissions more = access_on(p, names, made, sees, &until_ms), missing;

    missing = (sees ? call->missing : guard_rows[call->op].need) & ~more;
    if (!sees && !more)
        return refuse_foreign(err);
    if (missing)
        return refuse_first(missing, err);
    if (sees && !(more & ~p->may))
        return SESSILE_OK;
    if (principal_make_granted(&call->granted, p, names, sees, made, more, until_ms, err))
        return SESSILE_NOMEM;
    if (!principal_sees(call->granted, names)) { /* p is narrowed to others */
        principal_release(call->granted);
        call->granted = NULL;
        return refuse_foreign(err);
    }
    call->who = call->granted;
    return SESSILE_OK;
}

sessile_status guard_check_made(guard_call *call, const session_core *s,
                                sessile_error *err)
{
    const principal *p = call->granted;

    return !p || !p->made[0] || !strcmp(p->made, s->header.nonce) ? SESSILE_OK
                                                                  : refuse_foreign(err);
}

sessile_status guard_own_names(guard_call *call, const store_core *store,
                               sessile_session_options *options, sessile_error *err)
{
    principal *p = call->who;
    guard_names names;
    sessile_status status;

    if (!p->all && !options->user.data)
        options->user = p->user;
    names = (guard_names){options->agent, options->user, options->id};
    if (!names.agent.size)
        names.agent = own_agent(store);
    call->names = names;
    status = take_granted(call, &names, principal_sees(p, &names), err);
    return status ? status : authorize_call(call, NULL, err);
}

sessile_status guard_made_names(guard_call *call, const session_core *from,
                                const sessile_session_options *options,
                                sessile_error *err)
{
    const session_identity *own = &from->identity;
    guard_names names = {options->agent, options->user, options->id};
    int sees;

    if (!names.agent.size)
        names.agent = (sessile_slice){own->agent, own->agent_size};
    if (!names.user.size)
        names.user = (sessile_slice){own->user, own->user_size};
    sees = principal_sees(call->who, &names);
    if (!sees || !call->names.id.size)
        call->names = names;
    return sees ? authorize_call(call, &names, err) : refuse_foreign(err);
}

sessile_status guard_own_memory(guard_call *call, const store_core *store,
                                sessile_memory_options *options, sessile_error *err)
{
    const principal *p = call->who;
    sessile_slice agent = options->agent.size ? options->agent : own_agent(store);
    guard_names names = {agent, options->user, principal_session(p)};
    int sees =
        options->user.size ? principal_sees(p, &names) : principal_sees_agent(p, agent);

    call->names = (guard_names){agent, options->user, {NULL, 0}};
    if (!(p->may & PERMISSION(WRITE_MEMORY)) || (!options->user.size && !p->all))
        options->must_exist = 1; /* who may not write to it makes none */
    return sees ? authorize_call(call, NULL, err) : refuse_foreign(err);
}

/* 1: a permission for what concerns the whole store, and for nothing else. */
static int is_of_store(permissions need)
{
    int of_all = 0;

    for (int i = 0; i < OP_COUNT; i++)
        if (guard_rows[i].need & need) {
            if (!guard_rows[i].of_all)
                return 0;
            of_all = 1;
        }
    return of_all;
}

sessile_status guard_allows(principal *p, const store_core *store,
                            sessile_permission permission, guard_names *names,
                            sessile_error *err)
{
    const permissions need = PERMISSION_OF(permission);
    const permissions of_memory = PERMISSION(READ_MEMORY) | PERMISSION(WRITE_MEMORY);
    sessile_session_options o = {
        .agent = names->agent, .user = names->user, .id = names->id};
    guard_call call = {.who = p};
    sessile_status status = access_accept(p, err);

    if (!status && is_of_store(need))
        status = check_whole(p, err);
    if (status)
        return status;
    guard_begin(&call, OP_may);
    call.names = *names;
    call.missing = need & ~p->may;
    if (need & of_memory && !o.id.size) { /* which no grant on names gives */
        sessile_memory_options m = {.agent = o.agent, .user = o.user};
        if (!m.user.data && !p->all)
            m.user = p->user;
        status = call.missing ? refuse_first(call.missing, err)
                              : guard_own_memory(&call, store, &m, err);
        if (!status && need & PERMISSION(WRITE_MEMORY) && !m.user.size && !p->all)
            status = refuse_shared(err);
    } else {
        if (!o.id.size)
            o.id = principal_session(p);
        status = guard_own_names(&call, store, &o, err);
        if (!status && !(call.who->may & need))
            status = refuse_first(need, err);
    }
    *names = (guard_names){call.names.agent, call.names.user, names->id};
    principal_release(call.granted);
    return status;
}

sessile_status guard_own_user(const principal *p, sessile_slice *user, sessile_error *err)
{
    if (!principal_is_whole(p))
        return fail(err, SESSILE_DENIED,
                    "this concerns every agent, and this view is of some");
    if (p->all)
        return SESSILE_OK;
    if (user->size && !slice_same(*user, p->user))
        return refuse_foreign(err);
    *user = p->user;
    return p->user.size ? SESSILE_OK : refuse_foreign(err);
}

sessile_status guard_ends_user(const principal *p, sessile_slice user, sessile_error *err)
{
    if (p->user.size && slice_same(p->user, user))
        return fail(err, SESSILE_INVALID,
                    "nobody erases oneself, since the record of it would name the user "
                    "again: use the host's handle, or a view of another user");
    return guard_own_user(p, &user, err);
}

sessile_status guard_may_consent(const principal *p, sessile_slice user,
                                 sessile_error *err)
{
    if (!user.size || p->may & (PERMISSION(MANAGE_PRIVACY) | PERMISSION_HOST))
        return SESSILE_OK; /* of nobody: no consent is needed */
    if (slice_same(p->user, user))
        return SESSILE_OK;
    return fail_rule(err, SESSILE_DENIED, "consent",
                     "only the user consents, or whoever may manage_privacy");
}

sessile_status guard_may_unflag(const principal *p, sessile_error *err)
{
    if (p->may & (PERMISSION(MANAGE_ACCESS) | PERMISSION_HOST))
        return SESSILE_OK;
    return fail(err, SESSILE_DENIED,
                "a screen put this label: it is removed by the host, or with the "
                "permission manage_access");
}

sessile_status guard_check_consent(const principal *p, sessile_slice user,
                                   sessile_error *err)
{
    return p->guard->consent ? guard_may_consent(p, user, err) : SESSILE_OK;
}

sessile_status guard_own_list(guard_call *call, const store_core *store,
                              sessile_list_options *options, sessile_error *err)
{
    const principal *p = call->who;

    (void)store; /* a list is of every agent where none is named */
    call->names = (guard_names){options->agent, options->user, {NULL, 0}};
    if (options->agent.data && !principal_sees_agent(p, options->agent))
        return refuse_foreign(err);
    if (!p->all && options->user.data && !slice_same(options->user, p->user))
        return refuse_foreign(err);
    if (!p->all)
        call->names.user = options->user = p->user;
    return authorize_call(call, NULL, err);
}
