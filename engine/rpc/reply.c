/*
 * reply.c: what a service says of a call, from any thread, and how the loop takes it.
 *
 * What a service says goes into the call's box, under the lock of the loop's mailbox, and
 * the loop is woken. The loop takes all that is in the box at one time, and hands it to
 * the protocol. So a reply that was given by three functions usually leaves as one piece.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "rpc/call.h"
#include "rpc/http2.h"
#include "rpc/queued.h"

/* ---------------------------------------------------------------------- the reply */

/* 1: the lock is held, and something may be said. */
static int open_box(rpc_call *call)
{
    pthread_mutex_lock(&call->mailbox->lock);
    if (!call->box.finished && !atomic_load(&call->over))
        return 1;
    pthread_mutex_unlock(&call->mailbox->lock);
    return 0;
}

/* The loop shall look into the box, which is released. */
static void post(rpc_call *call)
{
    if (!call->box.posted) {
        call->box.posted = 1;
        rpc_call_keep(call);
        mailbox_put(call->mailbox, &call->box.mail);
    }
    mailbox_unlock(call->mailbox);
}

static int refuse(rpc_call *call, const char *why)
{
    rpc_finish(call, RPC_RESOURCE_EXHAUSTED, why, NULL, 0);
    return -1;
}

static int queue(rpc_call *call, const void *data, size_t size, int framed)
{
    chunk *one = NULL;
    int room = queued_has_room(call->mailbox, size);

    if (room && !(one = chunk_new(&call->alloc, data, size, framed)))
        return refuse(call, "the server is out of memory");
    if (!room || !queued_take(call->mailbox, one->size)) {
        if (one)
            mem_free(&call->alloc, one, sizeof *one + one->size);
        queued_press(call->mailbox);
        return refuse(call, queued_refusal);
    }
    if (!open_box(call)) {
        queued_remove(call->mailbox, one->size);
        mem_free(&call->alloc, one, sizeof *one + one->size);
        return -1;
    }
    if (atomic_fetch_add(&call->unsent, one->size) + one->size >
        call->limits->bytes.unsent)
        atomic_store(&call->high, 1);
    chunks_put(&call->box.queue, one);
    post(call);
    queued_press(call->mailbox);
    return 0;
}

int rpc_send(rpc_call *call, const void *data, size_t size)
{
    return call->request.kind == RPC_GRPC ? queue(call, data, size, 1) : -1;
}

/* The status as fields; without memory the code alone is sent. */
static void set_trailers(fields *f, const allocator *a, rpc_code code,
                         const char *message, const rpc_header *trailers, size_t n)
{
    char number[12];
    buf text;
    int failed = 0;

    fields_init(f, a);
    buf_init(&text, a);
    snprintf(number, sizeof number, "%u", (unsigned)code);
    failed = fields_add(f, "grpc-status", 11, number, strlen(number));
    if (message && *message) {
        frame_percent_put(&text, message);
        failed = failed || text.failed ||
                 fields_add(f, "grpc-message", 12, text.data, text.size);
    }
    failed = failed || fields_add_all(f, trailers, n);
    buf_deinit(&text);
    if (failed)
        fields_deinit(f);
}

void rpc_finish(rpc_call *call, rpc_code code, const char *message,
                const rpc_header *trailers, size_t n)
{
    fields said;

    if (call->request.kind != RPC_GRPC) {
        rpc_http_reply(call, code == RPC_UNAVAILABLE ? 503 : 500, "text/plain",
                       message ? message : "", message ? strlen(message) : 0);
        return;
    }
    set_trailers(&said, &call->alloc, code, message, trailers, n);
    if (!open_box(call)) {
        fields_deinit(&said);
        return;
    }
    call->box.finished = 1;
    call->box.code = code;
    call->box.trailers = said;
    post(call);
}

void rpc_http_head(rpc_call *call, int status, const char *type, int64_t length,
                   const rpc_header *headers, size_t n)
{
    fields said;
    int failed = 0;

    if (call->request.kind != RPC_HTTP)
        return;
    fields_init(&said, &call->alloc);
    if (type)
        failed = fields_add(&said, "content-type", 12, type, strlen(type));
    if (failed || fields_add_all(&said, headers, n)) {
        fields_deinit(&said);
        status = 503;
    }
    if (!open_box(call)) {
        fields_deinit(&said);
        return;
    }
    if (call->box.status || call->reply.status) {
        pthread_mutex_unlock(&call->mailbox->lock);
        fields_deinit(&said);
        return;
    }
    call->box.status = status;
    call->box.length = length;
    call->box.head = said;
    post(call);
}

int rpc_http_send(rpc_call *call, const void *data, size_t size)
{
    if (call->request.kind != RPC_HTTP)
        return -1;
    return size ? queue(call, data, size, 0) : 0;
}

void rpc_http_end(rpc_call *call)
{
    if (call->request.kind != RPC_HTTP || !open_box(call))
        return;
    call->box.finished = 1;
    post(call);
}

void rpc_http_reply(rpc_call *call, int status, const char *type, const void *body,
                    size_t size)
{
    if (!queued_has_room(call->mailbox, size)) {
        status = 429;
        type = "text/plain";
        body = queued_refusal;
        size = strlen(queued_refusal);
    }
    rpc_http_head(call, status, type, (int64_t)size, NULL, 0);
    rpc_http_send(call, body, size);
    rpc_http_end(call);
}

void call_refuse(rpc_call *call, rpc_code code, int http, const char *text)
{
    static const rpc_header accepts = {"grpc-accept-encoding", "identity"};
    if (call->request.kind == RPC_GRPC)
        rpc_finish(call, code, text, &accepts, code == RPC_UNIMPLEMENTED);
    else
        rpc_http_reply(call, http, "text/plain", text, strlen(text));
}

void rpc_call_pause(rpc_call *call, int paused)
{
    if (!open_box(call))
        return;
    call->box.paused = paused != 0;
    post(call);
}

/* -------------------------------------------------------------------- the loop's part */

/* Takes what is in the box. */
static void empty_box(rpc_call *call)
{
    call_box *box = &call->box;
    int paused;

    pthread_mutex_lock(&call->mailbox->lock);
    box->posted = 0;
    paused = box->paused;
    chunks_move(&call->stream.out.queue, &box->queue);
    if (box->status && !call->reply.status) {
        call->reply.status = box->status;
        call->reply.length = box->length;
        call->reply.head = box->head;
        fields_init(&box->head, &call->alloc);
    }
    if (box->finished && !call->stream.out.final) {
        call->stream.out.final = 1;
        call->reply.code = box->code;
        call->reply.trailers = box->trailers;
        fields_init(&box->trailers, &call->alloc);
    }
    pthread_mutex_unlock(&call->mailbox->lock);
    if (call->conn && call->stream.h2)
        serve_pause(call, paused);
}

static void pump(rpc_call *call)
{
    if (!call->conn)
        (void)call_drop_queue(call);
    else if (call->stream.h2)
        serve_pump(call);
    else
        http1_pump(call);
}

void reply_deliver(mail *m)
{
    rpc_call *call = (rpc_call *)(void *)((char *)m - offsetof(rpc_call, box.mail));
    empty_box(call);
    pump(call);
    rpc_call_drop(call);
}

size_t call_drop_queue(rpc_call *call)
{
    size_t size = chunks_free(&call->stream.out.queue, &call->alloc);
    atomic_fetch_sub(&call->unsent, size);
    queued_remove(call->mailbox, size);
    return size;
}

void call_sent(rpc_call *call, size_t size)
{
    size_t unsent = atomic_fetch_sub(&call->unsent, size) - size;
    queued_remove(call->mailbox, size);
    if (unsent > call->limits->bytes.unsent / 2 || !atomic_exchange(&call->high, 0))
        return;
    if (call->told && !call->gone && call->service->drained)
        call->service->drained(call->ud, call);
}

static void tell_gone(rpc_call *call, rpc_gone why)
{
    timer_clear(&call->loop->timers, &call->deadline);
    atomic_store(&call->over, 1);
    if (!call->told || call->gone)
        return;
    call->gone = 1;
    atomic_fetch_sub(&call->loop->figures.calls, 1);
    call->service->gone(call->ud, call, why);
}

void call_over(rpc_call *call, rpc_gone why)
{
    call->conn = NULL;
    tell_gone(call, why);
    (void)call_drop_queue(call);
    rpc_call_drop(call);
}

/* The deadline passed: what is queued is dropped, unless a message is half sent. */
void reply_too_late(timer *t)
{
    rpc_call *call = (rpc_call *)(void *)((char *)t - offsetof(rpc_call, deadline));
    stream *s = &call->stream;
    const chunk *first;

    if (!call->conn || s->out.done)
        return;
    rpc_call_keep(call);
    empty_box(call);
    if (!s->out.final) {
        rpc_finish(call, RPC_DEADLINE_EXCEEDED, "the deadline has passed", NULL, 0);
        first = s->out.queue.first;
        if (s->out.headers && ((first && first->sent) || http2_stuck(s)))
            http2_reset(s, NGHTTP2_CANCEL);
        else {
            (void)call_drop_queue(call);
            empty_box(call);
            pump(call);
        }
    }
    tell_gone(call, RPC_GONE_DEADLINE);
    rpc_call_drop(call);
}

/* A client that takes nothing more of the stream could not be told by trailers: it is
 * reset then, with the code that gRPC takes for RESOURCE_EXHAUSTED. */
size_t reply_shed(rpc_call *call)
{
    stream *s = &call->stream;
    fields said;
    size_t freed;
    int half;

    rpc_call_keep(call);
    empty_box(call);
    half = s->out.headers &&
           ((s->out.queue.first && s->out.queue.first->sent) || http2_stuck(s));
    freed = call_drop_queue(call);
    pthread_mutex_lock(&call->mailbox->lock);
    call->box.finished = 1; /* whatever the service says, it is over */
    pthread_mutex_unlock(&call->mailbox->lock);
    if (call->request.kind != RPC_GRPC || half) {
        http2_reset(s, NGHTTP2_ENHANCE_YOUR_CALM);
    } else {
        set_trailers(&said, &call->alloc, RPC_RESOURCE_EXHAUSTED, queued_refusal, NULL,
                     0);
        fields_deinit(&call->reply.trailers);
        call->reply.trailers = said;
        call->reply.code = RPC_RESOURCE_EXHAUSTED;
        s->out.final = 1;
        pump(call);
    }
    rpc_call_drop(call);
    return freed;
}
