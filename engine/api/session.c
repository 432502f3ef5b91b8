/* session.c: the public functions of sessions: opening, names, and the facts they keep.
 */
#include "api/api.h"
#include "api/inside.h"

#include "policy/policy.h"
#include "operations/append.h"
#include "operations/create.h"
#include "operations/watch.h"
#include "session/count.h"
#include "session/fold.h"
#include "session/write.h"
#include "tokens/tokens.h"

void sessile_session_options_init(sessile_session_options *options)
{
    if (options)
        memset(options, 0, sizeof *options);
}

sessile_status api_check_session(const sessile_session_options *options,
                                 const char *function, sessile_error *err)
{
    if (api_bad(options->id) || api_bad(options->agent) || api_bad(options->user) ||
        api_bad(options->title) || api_bad(options->metadata))
        return api_missing(err, function, "the data of a slice in options");
    return config_check(&options->config, err);
}

/* What begins every opening of a session. */
#define API_SESSION                                                    \
    error_clear(err);                                                  \
    API_OUT(out, NULL);                                                \
    API_NEED(store);                                                   \
    API_NEED(options);                                                 \
    sessile_status status = api_check_session(options, __func__, err); \
    if (status)                                                        \
    return status

static sessile_status check_id(const sessile_session_options *options, sessile_error *err)
{
    return options->id.size
               ? SESSILE_OK
               : fail(err, SESSILE_INVALID, "which session? its id is empty");
}

sessile_status sessile_create(sessile_session **out, sessile_store *store,
                              const sessile_session_options *options, sessile_error *err)
{
    char id[UUID_SIZE];
    API_SESSION;
    GUARD_ENTER(create, store);
    GUARD_NAMES(sessile_session_options, options, guard_own_names);
    GUARD_COUNT;
    GUARD_MAKE(out, &core->alloc);
    status = session_make(core, options, NULL, NULL, err, id);
    sessile_session_options named = *options;
    if (named.id.size == 0)
        named.id = sessile_text(id);
    if (!status)
        status = session_open(GUARD_INTO(out), core, &named, err);
    GUARD_SAY(call_.names.id = named.id);
    GUARD_MADE_SESSION(out, status);
}

/* Opens what is there, if it is what was shared with the caller. */
static sessile_status open_there(guard_call *call, session_core **out, store_core *store,
                                 const sessile_session_options *options,
                                 sessile_error *err)
{
    sessile_status status = session_open(out, store, options, err);

    if (status || !call->who)
        return status;
    status = guard_check_made(call, *out, err);
    if (status) {
        (void)session_close(*out, NULL);
        *out = NULL;
    }
    return status;
}

sessile_status sessile_resume(sessile_session **out, sessile_store *store,
                              const sessile_session_options *options, sessile_error *err)
{
    API_SESSION;
    status = check_id(options, err);
    if (status)
        return status;
    GUARD_ENTER(resume, store);
    GUARD_NAMES(sessile_session_options, options, guard_own_names);
    GUARD_MAKE(out, &core->alloc);
    status = open_there(&call_, GUARD_INTO(out), core, options, err);
    GUARD_MADE_SESSION(out, status);
}

/* What is there is opened, as by resume. Making it is counted first: two who make one at
 * the same time are counted twice, so never more are made than the limit allows. */
static sessile_status open_counted(guard_call *call, session_core **out,
                                   store_core *store,
                                   const sessile_session_options *options,
                                   sessile_error *err)
{
    sessile_status status = open_there(call, out, store, options, err);

    if (status != SESSILE_NOTFOUND) {
        call->event_of = OP_resume;
        return status;
    }
    error_clear(err);
    status = guard_may_create(call, err);
    if (!status)
        status = guard_count(call, err);
    return status ? status : session_open_or_make(out, store, options, err);
}

sessile_status sessile_session_open(sessile_session **out, sessile_store *store,
                                    const sessile_session_options *options,
                                    sessile_error *err)
{
    API_SESSION;
    status = check_id(options, err);
    if (status)
        return status;
    GUARD_ENTER(session_open, store);
    GUARD_NAMES(sessile_session_options, options, guard_own_names);
    GUARD_MAKE(out, &core->alloc);
    if (GUARD_WHO)
        status = open_counted(&call_, GUARD_INTO(out), core, options, err);
    else
        status = session_open_or_make(GUARD_INTO(out), core, options, err);
    GUARD_MADE_SESSION(out, status);
}

sessile_status sessile_session_as(sessile_session **out, sessile_session *session,
                                  sessile_store *view, sessile_error *err)
{
    API_MAKE(out, session);
    API_NEED(view);
    session_core *shared = GUARD_OWN(session);
    sessile_session_options own;
    const sessile_session_options *options = &own;
    session_names names = session_own_names(shared);
    sessile_session_options_init(&own);
    own.id = names.id;
    own.agent = names.agent;
    own.user = names.user;
    GUARD_ENTER(session_as, view);
    GUARD_NAMES(sessile_session_options, options, guard_own_names);
    if (shared->store != core)
        return GUARD_LEAVE(
            fail(err, SESSILE_INVALID, "the session was opened through another store"));
    GUARD_MAKE(out, &core->alloc);
    (*out)->is_view = 1;
    *GUARD_INTO(out) = shared;
    sessile_status status =
        GUARD_WHO ? guard_check_made(&call_, shared, err) : SESSILE_OK;
    GUARD_MADE_SESSION(out, status);
}

sessile_status sessile_session_close(sessile_session *session, sessile_error *err)
{
    error_clear(err);
    if (!session)
        return SESSILE_OK;
    int shares = session->is_view;
    GUARD_CLOSE(session);
    return shares ? SESSILE_OK : session_close(core, err);
}

sessile_status sessile_session_sync(sessile_session *session, sessile_error *err)
{
    error_clear(err);
    API_NEED(session);
    return session_sync(GUARD_OWN(session), err);
}

sessile_status sessile_session_set_timeout(sessile_session *session, int timeout_ms,
                                           sessile_error *err)
{
    error_clear(err);
    API_NEED(session);
    sessile_status status = config_check_timeout(timeout_ms, err);
    if (!status)
        session_set_timeout(GUARD_OWN(session), timeout_ms);
    return status;
}

sessile_status sessile_session_watch(sessile_session *session, sessile_id *seen,
                                     int timeout_ms, int *changed, sessile_error *err)
{
    sessile_id own = 0;
    error_clear(err);
    API_NEED(session);
    API_NEED(changed);
    *changed = 0;
    sessile_status status = config_check_timeout(timeout_ms, err);
    if (status)
        return status;
    GUARD_ENTER(session_watch, session);
    return GUARD_LEAVE(session_watch(core, seen ? seen : &own, timeout_ms, changed, err));
}

sessile_status sessile_changed(sessile_store *store, sessile_session *const *sessions,
                               size_t n, unsigned char *changed, sessile_error *err)
{
    error_clear(err);
    API_NEED(store);
    API_NEED_IF(n, sessions);
    API_NEED_IF(n, changed);
    for (size_t i = 0; i < n; i++) {
        API_REFUSE_IF(!sessions[i], "one of sessions");
        changed[i] = 0;
    }
    GUARD_ENTER(changed, store);
    session_core **cores = mem_alloc(&core->alloc, (n ? n : 1) * sizeof *cores);
    if (!cores)
        return GUARD_LEAVE(fail_nomem(err));
    for (size_t i = 0; i < n; i++)
        cores[i] = GUARD_ALSO(sessions[i]);
    sessile_status status = session_changed(core, cores, n, changed, err);
    mem_free(&core->alloc, cores, (n ? n : 1) * sizeof *cores);
    /* of a session that may not be read through its handle nothing is said: the next call
     * on it is refused, and says why */
    for (size_t i = 0; !status && i < n; i++)
        if (GUARD_PRINCIPAL(sessions[i]) &&
            GUARD_MAY(OP_changed, sessions[i], VIEW_SESSION, NULL))
            changed[i] = 1;
    return GUARD_LEAVE(status);
}

void sessile_interrupt(sessile_session *session)
{
    if (session)
        atomic_fetch_add(&GUARD_OWN(session)->waiting.interrupts, 1);
}

sessile_slice sessile_session_id(const sessile_session *session)
{
    const session_core *core = GUARD_OWN(session);
    return core ? (sessile_slice){core->identity.id, core->identity.id_size}
                : sessile_text(NULL);
}

sessile_slice sessile_session_agent(const sessile_session *session)
{
    const session_core *core = GUARD_OWN(session);
    return core ? (sessile_slice){core->identity.agent, core->identity.agent_size}
                : sessile_text(NULL);
}

sessile_slice sessile_session_user(const sessile_session *session)
{
    const session_core *core = GUARD_OWN(session);
    return core ? (sessile_slice){core->identity.user, core->identity.user_size}
                : sessile_text(NULL);
}

int64_t sessile_session_created(sessile_session *session)
{
    session_core *core = GUARD_OWN(session);
    if (!core || session_lock(core, NULL))
        return 0;
    (void)session_refresh_locked(core, NULL);
    int64_t ms = fold_created(core);
    session_unlock(core);
    return ms;
}

int64_t sessile_session_modified(sessile_session *session)
{
    session_core *core = GUARD_OWN(session);
    if (!core || session_lock(core, NULL))
        return 0;
    (void)session_refresh_locked(core, NULL);
    int64_t ms = fold_modified(core);
    session_unlock(core);
    return ms;
}

sessile_status sessile_session_damage(sessile_session *session, uint64_t *lost,
                                      sessile_error *out)
{
    error_clear(out);
    if (lost)
        *lost = 0;
    if (!session)
        return SESSILE_OK;
    sessile_error *err = out;
    GUARD_ENTER(session_damage, session);
    sessile_status status = session_lock(core, out);
    if (status)
        return GUARD_LEAVE(status);
    status = session_damage_locked(core, lost, out);
    session_unlock(core);
    return GUARD_LEAVE(status);
}

uint64_t sessile_session_torn(const sessile_session *session)
{
    return session ? atomic_load(&GUARD_OWN(session)->torn) : 0;
}

sessile_id sessile_session_length(sessile_session *session)
{
    session_core *core = GUARD_OWN(session);
    if (!core || session_lock(core, NULL))
        return 0;
    sessile_id count = (sessile_id)log_count(core->log);
    session_unlock(core);
    return count;
}

size_t sessile_session_memory(const sessile_session *session)
{
    const session_core *core = GUARD_OWN(session);
    return core ? sizeof *session + session_memory(core) : 0;
}

int64_t sessile_session_window(const sessile_session *session, int64_t *reserve)
{
    const session_core *core = GUARD_OWN(session);
    sessile_config config = {0};
    if (core)
        config = session_config(core);
    if (reserve)
        *reserve = config.reserve;
    return config.window;
}

void api_moment_begin(sessile_session *session, int is_read)
{
    if (session)
        session_moment_begin(GUARD_OWN(session), is_read);
}

void api_moment_end(sessile_session *session)
{
    if (session)
        session_moment_end(GUARD_OWN(session));
}

sessile_status api_read_begin(session_core *session, sessile_error *err)
{
    sessile_status status = session_lock(session, err);
    if (status)
        return status;
    status = session_refresh_locked(session, err);
    if (status)
        session_unlock(session);
    return status;
}

sessile_status sessile_head(sessile_session *session, sessile_id *out, sessile_error *err)
{
    error_clear(err);
    API_OUT(out, 0);
    API_NEED(session);
    GUARD_ENTER(head, session);
    sessile_status status = api_read_begin(core, err);
    if (status)
        return GUARD_LEAVE(status);
    *out = core->tree.base = core->tree.head;
    session_unlock(core);
    return GUARD_LEAVE(SESSILE_OK);
}

sessile_status sessile_clear(sessile_session *session, sessile_error *err)
{
    error_clear(err);
    API_NEED(session);
    GUARD_ENTER(clear, session);
    return GUARD_LEAVE(session_clear(core, err));
}

sessile_status sessile_title(sessile_session *session, char **out, size_t *size,
                             sessile_error *err)
{
    API_LIST(out, size, session);
    GUARD_ENTER(title, session);
    sessile_status status = api_read_begin(core, err);
    if (status)
        return GUARD_LEAVE(status);
    *out = host_dup(&core->store->alloc, core->fold.title ? core->fold.title : "",
                    core->fold.title_size);
    if (*out)
        *size = core->fold.title_size;
    else
        status = fail_nomem(err);
    session_unlock(core);
    return GUARD_LEAVE(status);
}

sessile_status sessile_set_title(sessile_session *session, sessile_slice title,
                                 sessile_error *err)
{
    error_clear(err);
    API_NEED(session);
    API_TEXT(title);
    GUARD_ENTER(set_title, session);
    GUARD_TEXT("set", sessile_text("title"));
    GUARD_NUMBER("bytes", title.size);
    return GUARD_LEAVE(session_set_title(core, title, err));
}

sessile_status sessile_event_count(sessile_session *session, uint64_t *out,
                                   sessile_error *err)
{
    error_clear(err);
    API_OUT(out, 0);
    API_NEED(session);
    GUARD_ENTER(event_count, session);
    sessile_status status = api_read_begin(core, err);
    if (status)
        return GUARD_LEAVE(status);
    if (core->tree.head)
        *out = core->tree.nodes[core->tree.head].events;
    session_unlock(core);
    return GUARD_LEAVE(SESSILE_OK);
}

sessile_status sessile_total_usage(sessile_session *session, sessile_usage *out,
                                   sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(session);
    GUARD_ENTER(total_usage, session);
    sessile_status status = api_read_begin(core, err);
    if (status)
        return GUARD_LEAVE(status);
    *out = core->fold.usage;
    session_unlock(core);
    return GUARD_LEAVE(SESSILE_OK);
}

sessile_status sessile_usage_groups(sessile_session *session, sessile_usage_by by,
                                    sessile_usage_group **out, size_t *count,
                                    sessile_error *err)
{
    error_clear(err);
    API_OUT(out, NULL);
    API_OUT(count, 0);
    API_NEED(session);
    if (by < SESSILE_USAGE_BY_DAY || by > SESSILE_USAGE_BY_DAY_AND_MODEL)
        return fail(err, SESSILE_INVALID,
                    "usage is grouped by day, model or agent, not by %d", (int)by);
    GUARD_ENTER(usage_groups, session);
    return GUARD_LEAVE(session_usage_groups(core, by, out, count, err));
}
