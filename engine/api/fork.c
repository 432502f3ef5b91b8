/* fork.c: the public functions that make sessions of other sessions. */
#include "api/api.h"

#include "base/names.h"
#include "guard/principal.h"
#include "operations/fork.h"
#include "operations/records.h"

/* Opens what was made. Over records it is nobody else's. */
static sessile_status open_made(session_core **out, store_core *store,
                                const sessile_session_options *chosen, sessile_error *err)
{
    sessile_status status = session_open(out, store, chosen, err);
    session_records_own(store, chosen, *out);
    return status;
}

/* The id of what was made, which was chosen for it or by the caller. */
static sessile_slice made_id(const sessile_session_options *chosen, const char *id)
{
    return chosen->id.size ? chosen->id : slice_of(id);
}

/* A copy of the options, which will have the id that is made. */
static sessile_status choose(const sessile_session_options *given,
                             sessile_session_options *options, const char *function,
                             sessile_error *err)
{
    sessile_session_options_init(options);
    if (given)
        *options = *given;
    return api_check_session(options, function, err);
}

sessile_status sessile_fork(sessile_session **out, sessile_session *session,
                            sessile_id entry, const sessile_session_options *options,
                            sessile_error *err)
{
    sessile_session_options chosen;
    char id[UUID_SIZE];
    error_clear(err);
    if (out)
        *out = NULL;
    API_NEED(session);
    sessile_status status = choose(options, &chosen, __func__, err);
    if (status)
        return status;
    if (!out && !chosen.id.size)
        return fail(err, SESSILE_INVALID,
                    "a fork that is not opened wants an id: nobody would know it");
    GUARD_ENTER(fork, session);
    GUARD_REFUSE_IF(GUARD_WHO, guard_made_names(&call_, core, &chosen, err));
    GUARD_ENTRY(&entry);
    GUARD_COUNT;
    status = session_fork(core, entry, &chosen, NULL, id, err);
    GUARD_TEXT("made", made_id(&chosen, id));
    if (status || !out)
        return GUARD_LEAVE(status);
    GUARD_MAKE(out, &core->store->alloc);
    status = open_made(GUARD_INTO(out), core->store, &chosen, err);
    GUARD_MADE_SESSION(out, status);
}

sessile_status sessile_put(sessile_session **out, sessile_store *store,
                           sessile_session *session,
                           const sessile_session_options *options, sessile_error *err)
{
    sessile_session_options chosen;
    error_clear(err);
    if (out)
        *out = NULL;
    API_NEED(session);
    API_NEED(store);
    sessile_status status = choose(options, &chosen, __func__, err);
    if (status)
        return status;
    GUARD_ENTER(put, store);
    GUARD_ALSO_MAY(put, session, VIEW_SESSION);
    GUARD_REFUSE_IF(GUARD_WHO,
                    guard_made_names(&call_, GUARD_ALSO(session), &chosen, err));
    GUARD_COUNT;
    status = session_put(core, GUARD_ALSO(session), &chosen, err);
    if (status || !out)
        return GUARD_LEAVE(status);
    GUARD_MAKE(out, &core->alloc);
    status = open_made(GUARD_INTO(out), core, &chosen, err);
    GUARD_MADE_SESSION(out, status);
}

/* The names of others are left out. */
static int give_link(const principal *who, const header_link *from, sessile_link *out)
{
    memset(out, 0, sizeof *out);
    out->entry = from->entry;
    if (from->entry == SESSILE_NO_ID)
        return 0;
    guard_names names = {{from->agent.data, from->agent.size},
                         {from->user.data, from->user.size},
                         {from->id.data, from->id.size}};
    if (!principal_sees(who, &names))
        return 1;
    out->id = (sessile_slice){from->id.data, from->id.size};
    out->agent = (sessile_slice){from->agent.data, from->agent.size};
    out->user = (sessile_slice){from->user.data, from->user.size};
    memcpy(out->tag, from->tag, sizeof out->tag);
    return 1;
}

int sessile_session_origin(const sessile_session *session, sessile_link *out)
{
    return session && out
               ? give_link(session->who, &GUARD_OWN(session)->header.origin, out)
               : 0;
}

int sessile_session_parent(const sessile_session *session, sessile_link *out)
{
    return session && out
               ? give_link(session->who, &GUARD_OWN(session)->header.parent, out)
               : 0;
}

sessile_status sessile_child(sessile_session **out, sessile_session *parent,
                             int with_context, const sessile_session_options *options,
                             sessile_error *err)
{
    sessile_session_options chosen;
    char id[UUID_SIZE];
    API_MAKE(out, parent);
    sessile_status status = choose(options, &chosen, __func__, err);
    if (status)
        return status;
    GUARD_ENTER(child, parent);
    GUARD_REFUSE_IF(GUARD_WHO, guard_made_names(&call_, core, &chosen, err));
    GUARD_COUNT;
    GUARD_MAKE(out, &core->store->alloc);
    status = session_child(core, with_context, &chosen, id, err);
    GUARD_TEXT("made", made_id(&chosen, id));
    if (!status)
        status = open_made(GUARD_INTO(out), core->store, &chosen, err);
    GUARD_MADE_SESSION(out, status);
}

sessile_status sessile_child_merged(sessile_session *parent, const sessile_session *child,
                                    sessile_slice message, sessile_id *out,
                                    sessile_error *err)
{
    error_clear(err);
    if (out)
        *out = SESSILE_NO_ID;
    API_NEED(parent);
    API_NEED(child);
    API_TEXT(message);
    GUARD_ENTER(child_merged, parent);
    GUARD_ALSO_MAY(child_merged, child, VIEW_SESSION);
    GUARD_ENTRY(out);
    GUARD_TEXT("child", guard_names_of(GUARD_ALSO(child)).id);
    return GUARD_LEAVE(session_child_merged(core, GUARD_ALSO(child), message, out, err));
}

sessile_status sessile_child_discarded(sessile_session *parent,
                                       const sessile_session *child, sessile_slice reason,
                                       sessile_error *err)
{
    API_USE(parent);
    API_NEED(child);
    API_TEXT(reason);
    GUARD_ENTER(child_discarded, parent);
    GUARD_ALSO_MAY(child_discarded, child, VIEW_SESSION);
    GUARD_TEXT("child", guard_names_of(GUARD_ALSO(child)).id);
    GUARD_TEXT("reason", reason);
    return GUARD_LEAVE(session_child_discarded(core, GUARD_ALSO(child), reason, err));
}

sessile_status sessile_subsessions(sessile_session *session, sessile_subsession **out,
                                   size_t *count, sessile_error *err)
{
    error_clear(err);
    if (out)
        *out = NULL;
    if (count)
        *count = 0;
    API_NEED(session);
    API_NEED(out);
    API_NEED(count);
    GUARD_ENTER(subsessions, session);
    return GUARD_LEAVE(session_subsessions(core, GUARD_WHO, out, count, err));
}
