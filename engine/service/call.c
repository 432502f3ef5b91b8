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
 * A call can go on after its method (call_stay()): no worker waits for its client or for
 * what it follows. What the client does is told to its stream, which asks for a worker
 * when there is something to do. A call whose requests are a stream begins with the
 * first.
 *
 * A deadline that passes in the queue ends the call before anything was begun: rpc says
 * so to the client, and the worker finds the call over.
 */
#include "service/call.h"
#include "service/http.h"
#include "service/known.h"
#include "service/nodes.h"
#include "service/observe.h"

#include <string.h>

#include "api/inside.h"

enum { EARLY_MOST = 64 * 1024, REQUEST_KEPT = 4096 };

/* ---------------------------------------------------------------------- on the loop */

static void call_free(call *c)
{
    allocator a = c->server->alloc;
    const call_stream *stream = atomic_load(&c->stream);
    if (stream && stream->free)
        stream->free(c);
    buf_deinit(&c->speech.joined.bytes);
    buf_deinit(&c->request);
    buf_deinit(&c->early);
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
    atomic_init(&c->stream, NULL);
    atomic_init(&c->half, 0);
    pthread_mutex_init(&c->mutex, NULL);
    c->server = s;
    c->rpc = rpc;
    c->method = m;
    c->flags = STATUS_AGAIN;
    c->astray = 1;
    if (rpc_call_kind(rpc) != RPC_GRPC)
        c->speech.as = http_speech(m);
    buf_init(&c->request, &s->alloc);
    buf_init(&c->early, &s->alloc);
    buf_init(&c->speech.joined.bytes, &s->alloc);
    atomic_init(&c->speech.headed, 0);
    atomic_init(&c->speech.translated, 0);
    rpc_call_keep(rpc);
    rpc_call_set(rpc, c);
    observe_begun(c);
    return c;
}

void call_fail(call *c, const sessile_error *err)
{
    observe_failed(c, err);
    if (c->speech.as == CALL_GRPC)
        status_finish(c->rpc, err, c->flags);
    else
        http_finish(c, err->code, err);
}

/* Before anything was begun, and nothing will be. */
static void refuse(call *c, sessile_status status, const char *why)
{
    sessile_error err;
    c->refused = 1;
    fail(&err, status, "%s", why);
    call_fail(c, &err);
}

static void begun(void *ud, rpc_call *rpc)
{
    service *s = ud;
    const int http = rpc_call_kind(rpc) != RPC_GRPC;
    const method *m = http ? http_begun(s, rpc) : method_served(s, rpc_call_path(rpc));
    if (m && !call_open(s, rpc, m))
        rpc_finish(rpc, RPC_RESOURCE_EXHAUSTED, "the server is out of memory", NULL, 0);
    else if (!m && !http)
        rpc_finish(rpc, RPC_UNIMPLEMENTED, "there is no such method", NULL, 0);
}

/* What blocks nowhere, and anybody may ask. */
static void run_on_loop(call *c)
{
    ProtobufCMessage *request;
    sessile_error err;
    sessile_status status = SESSILE_OK;
    error_clear(&err);
    arena_init(&c->arena, &c->server->alloc);
    if (c->request.size > REQUEST_ON_LOOP)
        status = fail(&err, SESSILE_INVALID, "the request is larger than %d bytes",
                      REQUEST_ON_LOOP);
    if (!status)
        status = decode_request(c->method->input, c->request.data, c->request.size,
                                &c->arena, &request, &err);
    if (!status)
        status = c->method->run(c, request, &err);
    if (status) {
        call_fail(c, &err);
    } else if (!c->watcher) {
        observe_ended(c, RPC_OK);
        rpc_finish(c->rpc, RPC_OK, NULL, NULL, 0);
    }
    arena_free(&c->arena);
}

/* Its request is there. */
static void start(call *c)
{
    if (c->speech.as != CALL_GRPC)
        call_submit(c); /* served here: its session is not known yet */
    else if (c->method->flags & METHOD_LOOP)
        run_on_loop(c);
    else if (!relay_begin(c))
        call_submit(c);
}

/* A request that came before the call stayed waits for that. */
static void keep_early(call *c, const void *data, size_t size)
{
    if (size > REQUEST_ON_LOOP || c->early.size + sizeof size + size > EARLY_MOST) {
        refuse(c, SESSILE_LIMIT, "read the answers before you ask for more");
        return;
    }
    buf_put(&c->early, &size, sizeof size);
    buf_put(&c->early, data, size);
    if (c->early.failed)
        refuse(c, SESSILE_NOMEM, "the server is out of memory");
}

static void message(void *ud, rpc_call *rpc, const void *data, size_t size)
{
    call *c = rpc_call_own(rpc);
    (void)ud;
    if (!c || c->refused || rpc_call_over(rpc))
        return;
    const int duplex = (c->method->flags & METHOD_DUPLEX) != 0;
    if (c->messages++ > 0) {
        const call_stream *stream = atomic_load(&c->stream);
        if (duplex && c->relay)
            relay_message(c->relay, data, size);
        else if (stream && stream->message)
            stream->message(c, data, size);
        else if (c->method->flags & METHOD_REFLECTS)
            keep_early(c, data, size);
        else
            refuse(c, SESSILE_INVALID,
                   duplex ? "an answer came before it was asked for"
                          : "the method takes one request");
        return;
    }
    buf_put(&c->request, data, size);
    if (c->request.failed)
        refuse(c, SESSILE_NOMEM, "the server is out of memory");
    else if (duplex)
        start(c);
}

static void ended(void *ud, rpc_call *rpc)
{
    call *c = rpc_call_own(rpc);
    (void)ud;
    if (!c || c->refused || rpc_call_over(rpc))
        return;
    if (c->messages == 0) {
        refuse(c, SESSILE_INVALID, "the call has no request");
        return;
    }
    if (!(c->method->flags & METHOD_DUPLEX)) {
        start(c);
        return;
    }
    /* A worker stays first and looks at `half` then: one of the two sees the other. */
    atomic_store(&c->half, 1);
    const call_stream *stream = atomic_load(&c->stream);
    if (c->relay)
        relay_half(c->relay);
    else if (stream && stream->ended)
        stream->ended(c);
}

static void drained(void *ud, rpc_call *rpc)
{
    call *c = rpc_call_own(rpc);
    const call_stream *stream = c ? atomic_load(&c->stream) : NULL;
    (void)ud;
    if (c && c->relay)
        relay_drained(c->relay);
    else if (stream && stream->drained)
        stream->drained(c);
}

static void gone(void *ud, rpc_call *rpc, rpc_gone why)
{
    call *c = rpc_call_own(rpc);
    (void)ud;
    if (!c)
        return;
    observe_ended(c, why == RPC_GONE_DEADLINE ? RPC_DEADLINE_EXCEEDED : RPC_CANCELLED);
    if (c->relay)
        relay_gone(c->relay);
    if (c->watcher)
        health_gone(c->watcher);
    const call_stream *stream = atomic_load(&c->stream);
    if (stream) {
        if (stream->gone)
            stream->gone(c);
    } else if (why != RPC_GONE_FINISHED) {
        pthread_mutex_lock(&c->mutex);
        sessile_interrupt(c->session);
        pthread_mutex_unlock(&c->mutex);
    }
    rpc_call_set(rpc, NULL);
    call_release(c);
}

const rpc_service call_service = {begun, message, ended, drained, gone};

/* ---------------------------------------------------------------------- the worker */

static sessile_status run_method(call *c, const ProtobufCMessage *request,
                                 sessile_error *err)
{
    span engine;
    observe_part(c, &engine, "engine", SPAN_INTERNAL);
    sessile_status status = c->method->run(c, request, err);
    if (status)
        span_fail(&engine, sessile_status_name(status));
    span_end(&engine);
    if (atomic_load(&c->stream))
        return SESSILE_OK;
    int again = status == SESSILE_NOTFOUND && c->warm && c->replies == 0;
    if (!status && c->no_memory)
        status = fail_nomem(err);
    again &= call_give_back(c, status);
    /* The name may belong to another one by now, which this handle never sees. */
    if (again) {
        c->warm = 0;
        error_clear(err);
        status = c->method->run(c, request, err);
        (void)call_give_back(c, status);
    }
    return status;
}

/* So that the next call with it waits for its session at once, and can be passed on. */
static void note_credential(call *c, sessile_status status)
{
    known_caller who;
    if (status == SESSILE_DENIED) {
        known_forget(c->server->known, c->rpc);
    } else if (!status) {
        who_is(c, &who);
        known_learn(c->server->known, c->rpc, &who);
    }
}

sessile_status call_find_caller(call *c, sessile_error *err)
{
    span credential;
    if (!c->server->settings.guarded)
        return who_calls(c, &c->view, err);
    observe_part(c, &credential, "credential", SPAN_INTERNAL);
    sessile_status status = who_calls(c, &c->view, err);
    if (status)
        span_fail(&credential, sessile_status_name(status));
    span_end(&credential);
    note_credential(c, status);
    if (status) {
        c->flags |= STATUS_NOBODY | STATUS_AGAIN;
        c->view = NULL;
    }
    return status;
}

void call_drop_view(call *c)
{
    if (c->view != c->server->store)
        sessile_store_close(c->view);
    c->view = NULL;
}

static void finish(call *c, sessile_status status, const sessile_error *err)
{
    if (status) {
        call_fail(c, err);
    } else {
        observe_ended(c, RPC_OK);
        if (c->speech.as == CALL_GRPC)
            rpc_finish(c->rpc, RPC_OK, NULL, NULL, 0);
        else
            http_finish(c, SESSILE_OK, NULL);
    }
    call_drop_view(c);
    arena_free(&c->arena);
}

void call_run(call *c)
{
    service *s = c->server;
    ProtobufCMessage *request;
    sessile_error err;
    sessile_status status = SESSILE_OK;

    observe_taken(c);
    if (rpc_call_over(c->rpc)) {
        call_drop_view(c);
        return;
    }
    error_clear(&err);
    arena_init(&c->arena, &s->alloc);
    c->flags = c->method->flags & METHOD_READS ? STATUS_AGAIN : 0;
    if (!c->view)
        status = call_find_caller(c, &err);
    if (!status)
        status = decode_request(c->method->input, c->request.data, c->request.size,
                                &c->arena, &request, &err);
    if (!status)
        status = run_method(c, request, &err);
    if (atomic_load(&c->stream))
        return;
    if (!status && c->replies == 0 && !(c->method->flags & METHOD_STREAMS))
        status = fail(&err, SESSILE_NOMEM, "the method made no reply");
    finish(c, status, &err);
}

/* ---------------------------------------------------------------------- streams */

void call_stay(call *c, const call_stream *stream, void *own)
{
    api_moment_end(c->session);
    atomic_fetch_add(&c->references, 1);
    c->own = own;
    atomic_store(&c->stream, stream);
}

void call_forget_request(call *c)
{
    pthread_mutex_lock(&c->mutex);
    if (c->request.capacity > REQUEST_KEPT)
        buf_deinit(&c->request);
    pthread_mutex_unlock(&c->mutex);
}

void call_leave(call *c, sessile_status status, const sessile_error *err)
{
    (void)call_give_back(c, status);
    finish(c, status, err);
    call_release(c);
}

sessile_status call_send(call *c, const ProtobufCMessage *message, sessile_error *err)
{
    const char *why;
    buf bytes;
    if (c->speech.as != CALL_GRPC)
        return http_send(c, message, err);
    buf_init(&bytes, &c->server->alloc);
    if (pack_message(&bytes, message))
        return fail_nomem(err);
    if (!rpc_has_room(c->rpc, bytes.size, &why)) {
        buf_deinit(&bytes);
        return fail(err, SESSILE_LIMIT, "%s", why);
    }
    int sent = rpc_send(c->rpc, bytes.data, bytes.size);
    buf_deinit(&bytes);
    return sent == 0 ? SESSILE_OK
                     : fail(err, SESSILE_CANCELLED, "nobody waits for the reply");
}

int call_is_full(const call *c)
{
    rpc_limits limits;
    rpc_limits_init(&limits);
    return rpc_unsent(c->rpc) > limits.bytes.unsent;
}

/* ---------------------------------------------------------------------- replies */

sessile_status call_reply(call *c, const ProtobufCMessage *message, sessile_error *err)
{
    if (c->no_memory)
        return fail_nomem(err);
    sessile_status status = call_send(c, message, err);
    c->replies += !status;
    return status;
}
