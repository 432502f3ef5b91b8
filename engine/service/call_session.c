/*
 * call_session.c: the session of a call: found by its names, opened for who calls, given
 * back when the call ends.
 */
#include "service/call.h"
#include "service/memories.h"
#include "service/nodes.h"
#include "service/observe.h"
#include "service/watch.h"

#include "api/inside.h"
#include "base/os.h"

/* The longest that a call may wait for other writers, also without a deadline. */
enum { WAIT_MS = 30000 };

static sessile_slice bytes_slice(const ProtobufCBinaryData *bytes)
{
    return (sessile_slice){(const char *)bytes->data, bytes->len};
}

void call_parts(const Sessile__V1__Session *names, sessile_slice out[3])
{
    const Sessile__V1__Raw *raw = names->raw;
    out[0] = raw ? bytes_slice(&raw->agent) : sessile_text(names->agent);
    out[1] = raw ? bytes_slice(&raw->user) : sessile_text(names->user);
    out[2] = raw ? bytes_slice(&raw->id) : sessile_text(names->id);
}

sessile_status call_names(call *c, const Sessile__V1__Session *names,
                          sessile_session_options *out, sessile_error *err)
{
    sessile_principal who;
    sessile_slice parts[3];
    sessile_session_options_init(out);
    if (!names)
        return fail(err, SESSILE_INVALID, "the request names no session");
    call_parts(names, parts);
    out->agent = parts[0];
    out->user = parts[1];
    out->id = parts[2];
    if (out->user.size == 0) {
        out->user = (sessile_slice){NULL, 0};
        if (c->server->settings.guarded && !sessile_store_who(c->view, &who, NULL))
            out->user = who.user;
    }
    return SESSILE_OK;
}

int call_time_left(const call *c)
{
    uint64_t deadline = rpc_call_deadline(c->rpc);
    uint64_t now = os_now_us();
    if (deadline == UINT64_MAX)
        return WAIT_MS;
    if (deadline <= now)
        return 0;
    return deadline - now > (uint64_t)WAIT_MS * 1000 ? WAIT_MS
                                                     : (int)((deadline - now) / 1000);
}

sessile_status call_may_see(call *c, const sessile_session_options *names,
                            sessile_error *err)
{
    if (names->id.size == 0)
        return fail(err, SESSILE_INVALID, "which session? its id is empty");
    if (c->server->settings.guarded && !sessile_can(c->view, SESSILE_MAY_VIEW_SESSION,
                                                    names->agent, names->user, names->id))
        return fail(err, SESSILE_DENIED, "the session is not yours to see");
    return SESSILE_OK;
}

sessile_status call_session(call *c, const Sessile__V1__Session *names,
                            sessile_session **out, sessile_error *err)
{
    sessile_session_options options;
    sessile_session *session = NULL;
    int fresh = 0;
    sessile_status status = call_names(c, names, &options, err);
    *out = NULL;
    if (!status)
        status = call_may_see(c, &options, err);
    if (!status)
        status = keep_take(c->server->keep, &options, &c->kept, &fresh, err);
    if (status)
        return status;
    c->warm = !fresh;
    if (fresh)
        observe_opened(c->server->observe);
    sessile_session *shared = kept_session(c->kept);
    (void)sessile_session_set_timeout(shared, call_time_left(c), NULL);
    status = sessile_session_as(&session, shared, c->view, err);
    if (status)
        return status;
    pthread_mutex_lock(&c->mutex);
    c->session = session;
    pthread_mutex_unlock(&c->mutex);
    api_moment_begin(session, fresh);
    *out = session;
    return SESSILE_OK;
}

int call_can_stay(sessile_status status)
{
    switch (status) {
    case SESSILE_NOTFOUND:
    case SESSILE_IO:
    case SESSILE_CLOSED:
    case SESSILE_DAMAGED:
    case SESSILE_TRUNCATED:
    case SESSILE_SEALED:
        return 0;
    default:
        return 1;
    }
}

void call_poke(call *c)
{
    if (c->kept && c->server->watch)
        watch_poke(c->server->watch, kept_session(c->kept));
    if (c->kept && c->astray && !(c->method->flags & METHOD_READS))
        poke_owner(c);
}

int call_give_back(call *c, sessile_status status)
{
    int removed = memories_give(c, status);
    api_moment_end(c->session);
    pthread_mutex_lock(&c->mutex);
    sessile_session *session = c->session;
    c->session = NULL;
    pthread_mutex_unlock(&c->mutex);
    (void)sessile_session_close(session, NULL);
    call_poke(c);
    if (c->kept) {
        keep_give(c->server->keep, c->kept, call_can_stay(status));
        removed |= status == SESSILE_NOTFOUND;
    }
    c->kept = NULL;
    return removed;
}
