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
#include "service/http.h"
#include "service/memories.h"
#include "service/nodes.h"
#include "service/observe.h"
#include "service/watch.h"

#include <string.h>

#include "api/inside.h"
#include "base/os.h"

/* The longest that a call may wait for other writers, also without a deadline. */
enum { WAIT_MS = 30000 };
enum { EARLY_MOST = 64 * 1024 };

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

static void run_job(job *j)
{
    call *c = (call *)j;
    call_run(c);
    call_release(c);
}

static uint64_t text_hash(const char *text)
{
    return text ? hash64(text, strlen(text)) : 0;
}

static uint64_t slice_hash(sessile_slice text)
{
    return hash64(text.size ? text.data : "", text.size);
}

static sessile_slice bytes_slice(const ProtobufCBinaryData *bytes)
{
    return (sessile_slice){(const char *)bytes->data, bytes->len};
}

/* By the names that it is about, so that whatever else is in the bytes makes no other
 * lane. The same request of two callers may be about two memories, each caller's own. */
static uint64_t lane_of(const call *c, const sessile_slice names[3], decoded_names named)
{
    const int own = named == NAMES_OWN && !names[1].size && !names[2].size;
    const uint64_t parts[] = {
        slice_hash(names[0]),
        slice_hash(names[1]),
        slice_hash(names[2]),
        own ? text_hash(rpc_call_header(c->rpc, "authorization")) : 0,
        own ? text_hash(rpc_call_certificate(c->rpc)) : 0,
    };
    return hash64(parts, sizeof parts) | 1;
}

uint64_t call_lane(const call *c, const Sessile__V1__Session *names)
{
    const Sessile__V1__Raw *raw = names->raw;
    const sessile_slice parts[3] = {
        raw ? bytes_slice(&raw->agent) : sessile_text(names->agent),
        raw ? bytes_slice(&raw->user) : sessile_text(names->user),
        raw ? bytes_slice(&raw->id) : sessile_text(names->id),
    };
    return lane_of(c, parts, NAMES_OWN);
}

/* The jobs of a call that goes on run one after the other, so it has a lane in any case:
 * if it names nothing, one of its own. */
static void set_lane(call *c)
{
    sessile_slice names[3];
    if (c->method->flags & (METHOD_ALL | METHOD_APART))
        return;
    decoded_names named =
        decode_names(c->method->input, c->request.data, c->request.size, names);
    if (named != NAMES_NONE)
        c->job.lane = lane_of(c, names, named);
    else if (c->method->flags & METHOD_DUPLEX)
        c->job.lane = hash64(&c, sizeof c) | 1;
}

static void translate_job(job *j);

void call_submit(call *c)
{
    nodes *n = c->server->nodes;
    sessile_error err;
    sessile_status status = SESSILE_OK;
    c->job.run = run_job;
    observe_waits(c);
    if (c->speech.as != CALL_GRPC)
        status = http_started(c, &err);
    if (c->speech.as == CALL_GRPC || atomic_load(&c->speech.translated))
        set_lane(c);
    else
        c->job.run = translate_job;
    if (n)
        atomic_fetch_add(&n->count.here, 1);
    atomic_fetch_add(&c->references, 1);
    if (!status)
        status = pool_submit(c->server->pool, &c->job, &err);
    if (status) {
        call_fail(c, &err);
        call_release(c);
    }
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

sessile_status call_names(call *c, const Sessile__V1__Session *names,
                          sessile_session_options *out, sessile_error *err)
{
    sessile_principal who;
    sessile_session_options_init(out);
    if (!names)
        return fail(err, SESSILE_INVALID, "the request names no session");
    if (names->raw) {
        out->agent = bytes_slice(&names->raw->agent);
        out->user = bytes_slice(&names->raw->user);
        out->id = bytes_slice(&names->raw->id);
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

/* 1: what the call is about was removed. */
static int give_back(call *c, sessile_status status)
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
    again &= give_back(c, status);
    /* The name may belong to another one by now, which this handle never sees. */
    if (again) {
        c->warm = 0;
        error_clear(err);
        status = c->method->run(c, request, err);
        (void)give_back(c, status);
    }
    return status;
}

/* So that the next call with it can be passed on. */
static void note_credential(call *c, sessile_status status)
{
    sessile_principal who;
    if (!c->server->settings.guarded || !c->server->nodes)
        return;
    if (status == SESSILE_DENIED)
        nodes_forget(c->server->nodes, c->rpc);
    else if (!status && !sessile_store_who(c->view, &who, NULL))
        nodes_learn(c->server->nodes, c->rpc, who.user);
}

static sessile_status find_caller(call *c, sessile_error *err)
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

static void drop_view(call *c)
{
    if (c->view != c->server->store)
        sessile_store_close(c->view);
    c->view = NULL;
}

/* A request in JSON, which a worker reads for those alone who may call. Its session is
 * known then, and it waits for it like any other, or is refused. */
static void translate_job(job *j)
{
    call *c = (call *)j;
    sessile_error err;
    error_clear(&err);
    if (rpc_call_over(c->rpc)) {
        call_release(c);
        return;
    }
    sessile_status status = find_caller(c, &err);
    if (!status)
        status = http_translate(c, &err);
    if (!status) {
        set_lane(c);
        c->job.run = run_job;
        status = pool_submit(c->server->pool, &c->job, &err);
    }
    if (status) {
        call_fail(c, &err);
        drop_view(c);
        call_release(c);
    }
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
    drop_view(c);
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
        drop_view(c);
        return;
    }
    error_clear(&err);
    arena_init(&c->arena, &s->alloc);
    c->flags = c->method->flags & METHOD_READS ? STATUS_AGAIN : 0;
    if (!c->view)
        status = find_caller(c, &err);
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

void call_leave(call *c, sessile_status status, const sessile_error *err)
{
    (void)give_back(c, status);
    finish(c, status, err);
    call_release(c);
}

sessile_status call_send(call *c, const ProtobufCMessage *message, sessile_error *err)
{
    buf bytes;
    if (c->speech.as != CALL_GRPC)
        return http_send(c, message, err);
    buf_init(&bytes, &c->server->alloc);
    if (pack_message(&bytes, message))
        return fail_nomem(err);
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
