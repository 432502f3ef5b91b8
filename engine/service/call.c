/*
 * call.c: one call, from its first header to its status.
 *
 *   loop    begun    which method is it? else it is refused at once
 *           message  the request
 *           ended    the call is given to a worker
 *   worker           whose call is it? the request is unpacked, the method runs, replies
 *                    are sent, the status ends it
 *   loop    gone     nobody waits any more: what still waits or works for it is told
 *
 * A deadline that passes in the queue ends the call before anything was begun: rpc says
 * so to the client, and the worker finds the call over.
 */
#include "service/server.h"

#include <string.h>

#include "base/os.h"

/* How long a call without a deadline may wait for other writers. */
enum { WAIT_MS = 30000 };

/* ---------------------------------------------------------------------- on the loop */

static void call_free(call *c)
{
    allocator a = c->server->alloc;
    buf_deinit(&c->request);
    pthread_mutex_destroy(&c->mutex);
    rpc_call_drop(c->rpc);
    mem_free(&a, c, sizeof *c);
}

void call_release(call *c)
{
    if (atomic_fetch_sub(&c->references, 1) == 1)
        call_free(c);
}

static call *call_open(service *s, rpc_call *rpc, const method *m)
{
    call *c = mem_zalloc(&s->alloc, sizeof *c);
    if (!c)
        return NULL;
    atomic_init(&c->references, 1);
    pthread_mutex_init(&c->mutex, NULL);
    c->server = s;
    c->rpc = rpc;
    c->method = m;
    buf_init(&c->request, &s->alloc);
    rpc_call_keep(rpc);
    rpc_call_set(rpc, c);
    return c;
}

static void refuse(rpc_call *rpc, sessile_status status, const char *why)
{
    sessile_error err;
    fail(&err, status, "%s", why);
    status_finish(rpc, &err, STATUS_AGAIN);
}

static void begun(void *ud, rpc_call *rpc)
{
    service *s = ud;
    const method *m;
    if (rpc_call_kind(rpc) != RPC_GRPC) {
        rpc_http_reply(rpc, 404, "text/plain", "not found\n", 10);
        return;
    }
    m = method_find(rpc_call_path(rpc));
    if (m && !(s->settings.services &
               (m->flags & METHOD_RECORDS ? SERVICE_RECORDS : SERVICE_SESSIONS)))
        m = NULL;
    if (!m)
        rpc_finish(rpc, RPC_UNIMPLEMENTED, "there is no such method", NULL, 0);
    else if (!call_open(s, rpc, m))
        refuse(rpc, SESSILE_NOMEM, "the server is out of memory");
}

static void message(void *ud, rpc_call *rpc, const void *data, size_t size)
{
    call *c = rpc_call_own(rpc);
    (void)ud;
    if (!c)
        return;
    if (c->replies++ > 0) {
        refuse(rpc, SESSILE_INVALID, "the method takes one request");
        return;
    }
    buf_put(&c->request, data, size);
    if (c->request.failed)
        refuse(rpc, SESSILE_NOMEM, "the server is out of memory");
}

static void ended(void *ud, rpc_call *rpc)
{
    call *c = rpc_call_own(rpc);
    service *s = ud;
    sessile_error err;
    if (!c || rpc_call_over(rpc))
        return;
    if (c->replies == 0) {
        refuse(rpc, SESSILE_INVALID, "the call has no request");
        return;
    }
    c->replies = 0;
    if (!(c->method->flags & METHOD_ALL))
        c->lane = decode_lane(c->request.data, c->request.size);
    atomic_fetch_add(&c->references, 1);
    if (pool_submit(s->pool, c, &err)) {
        status_finish(rpc, &err, STATUS_AGAIN);
        call_release(c);
    }
}

static void gone(void *ud, rpc_call *rpc, rpc_gone why)
{
    call *c = rpc_call_own(rpc);
    (void)ud;
    if (!c)
        return;
    if (why != RPC_GONE_FINISHED) {
        pthread_mutex_lock(&c->mutex);
        sessile_interrupt(c->session);
        pthread_mutex_unlock(&c->mutex);
    }
    rpc_call_set(rpc, NULL);
    call_release(c);
}

const rpc_service call_service = {begun, message, ended, NULL, gone};

/* ---------------------------------------------------------------------- the worker */

sessile_status call_names(call *c, const Sessile__V1__Session *names,
                          sessile_session_options *out, sessile_error *err)
{
    sessile_principal who;
    sessile_session_options_init(out);
    if (!names)
        return fail(err, SESSILE_INVALID, "the request names no session");
    if (names->raw) {
        out->agent =
            (sessile_slice){(char *)names->raw->agent.data, names->raw->agent.len};
        out->user = (sessile_slice){(char *)names->raw->user.data, names->raw->user.len};
        out->id = (sessile_slice){(char *)names->raw->id.data, names->raw->id.len};
    } else {
        out->agent = sessile_text(names->agent);
        out->user = sessile_text(names->user);
        out->id = sessile_text(names->id);
    }
    if (out->user.size == 0) {
        out->user = (sessile_slice){NULL, 0};
        if (c->server->settings.guarded && !sessile_store_who(c->view, &who, NULL))
            out->user = who.user;
    }
    return SESSILE_OK;
}

/* How long it may wait: until its deadline. */
static int time_left(const call *c)
{
    uint64_t deadline = rpc_call_deadline(c->rpc);
    uint64_t now = os_current->clock_us(os_current->ud);
    if (deadline == UINT64_MAX)
        return WAIT_MS;
    if (deadline <= now)
        return 0;
    return deadline - now > (uint64_t)WAIT_MS * 1000 ? WAIT_MS
                                                     : (int)((deadline - now) / 1000);
}

sessile_status call_session(call *c, const Sessile__V1__Session *names,
                            sessile_session **out, sessile_error *err)
{
    sessile_session_options options;
    sessile_session *session = NULL;
    int fresh = 0;
    sessile_status status = call_names(c, names, &options, err);
    *out = NULL;
    if (!status && options.id.size == 0)
        status = fail(err, SESSILE_INVALID, "which session? its id is empty");
    /* Before the store is looked at: who may not see it is not told whether it is there.
     */
    if (!status && c->server->settings.guarded &&
        !sessile_can(c->view, SESSILE_MAY_VIEW_SESSION, options.agent, options.user,
                     options.id))
        status = fail(err, SESSILE_DENIED, "the session is not yours to see");
    if (!status)
        status = keep_take(c->server->keep, &options, &c->kept, &fresh, err);
    if (status)
        return status;
    c->warm = !fresh;
    sessile_session *shared = kept_session(c->kept);
    (void)sessile_session_set_timeout(shared, time_left(c), NULL);
    status = sessile_session_as(&session, shared, c->view, err);
    if (status)
        return status;
    pthread_mutex_lock(&c->mutex);
    c->session = session;
    pthread_mutex_unlock(&c->mutex);
    *out = session;
    return SESSILE_OK;
}

/* A session that was removed, or whose handle writes no more, is opened anew by the next
 * call. */
static int can_stay(sessile_status status)
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

static void give_session(call *c, sessile_status status)
{
    pthread_mutex_lock(&c->mutex);
    sessile_session *session = c->session;
    c->session = NULL;
    pthread_mutex_unlock(&c->mutex);
    (void)sessile_session_close(session, NULL);
    if (c->kept)
        keep_give(c->server->keep, c->kept, can_stay(status));
    c->kept = NULL;
}

static sessile_status run_method(call *c, const ProtobufCMessage *request,
                                 sessile_error *err)
{
    sessile_status status = c->method->run(c, request, err);
    int stale = status == SESSILE_NOTFOUND && c->warm && c->replies == 0;
    if (!status && c->no_memory)
        status = fail_nomem(err);
    give_session(c, status);
    /* The name may belong to another session by now, which this handle never sees. */
    if (stale) {
        c->warm = 0;
        error_clear(err);
        status = c->method->run(c, request, err);
        give_session(c, status);
    }
    return status;
}

void call_run(call *c)
{
    service *s = c->server;
    ProtobufCMessage *request;
    sessile_error err;
    sessile_status status;

    if (rpc_call_over(c->rpc))
        return;
    error_clear(&err);
    arena_init(&c->arena, &s->alloc);
    c->flags = c->method->flags & METHOD_READS ? STATUS_AGAIN : 0;
    status = who_calls(c, &c->view, &err);
    if (status) {
        c->flags |= STATUS_NOBODY | STATUS_AGAIN;
        c->view = NULL;
    } else {
        status = decode_request(c->method->input, c->request.data, c->request.size,
                                &c->arena, &request, &err);
    }
    if (!status)
        status = run_method(c, request, &err);
    if (!status && c->replies == 0 && !(c->method->flags & METHOD_STREAMS))
        status = fail(&err, SESSILE_NOMEM, "the method made no reply");
    if (status)
        status_finish(c->rpc, &err, c->flags);
    else if (!c->later)
        rpc_finish(c->rpc, RPC_OK, NULL, NULL, 0);
    if (c->view != s->store)
        sessile_store_close(c->view);
    arena_free(&c->arena);
}

/* ---------------------------------------------------------------------- replies */

sessile_status call_reply(call *c, const ProtobufCMessage *message, sessile_error *err)
{
    if (c->no_memory)
        return fail_nomem(err);
    size_t size = protobuf_c_message_get_packed_size(message);
    unsigned char *bytes = mem_alloc(&c->server->alloc, size ? size : 1);
    if (!bytes)
        return fail_nomem(err);
    protobuf_c_message_pack(message, bytes);
    int sent = rpc_send(c->rpc, bytes, size);
    mem_free(&c->server->alloc, bytes, size ? size : 1);
    if (sent != 0)
        return fail(err, SESSILE_CANCELLED, "nobody waits for the reply");
    c->replies++;
    return SESSILE_OK;
}
