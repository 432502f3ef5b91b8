/*
 * call.c: a call of a server: what the service may ask and say, from any thread.
 *
 * What a service says goes into the call's box, under the lock of the loop's mailbox, and
 * the loop is woken. The loop takes all that is in the box at one time, and hands it to
 * the protocol. So a reply that was given by three functions usually leaves as one piece.
 *
 * What was asked for does not change after `begun`, and is read without a lock.
 */
#include "rpc/call.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "rpc/intake.h"
#include "rpc/listener.h"

static void deliver(mail *m);
static void too_late(timer *t);

/* ---------------------------------------------------------------------- its life */

rpc_call *rpc_call_new(conn *c)
{
    rpc_loop *loop = c->loop;
    rpc_call *call = mem_zalloc(&loop->alloc, sizeof *call);

    if (!call)
        return NULL;
    call->alloc = loop->alloc;
    atomic_init(&call->references, 1);
    call->loop = loop;
    call->mailbox = loop->box;
    mailbox_retain(loop->box);
    call->service = c->owner.listener->service;
    call->ud = c->owner.listener->ud;
    call->limits = c->limits;
    call->conn = c;
    intake_init(&call->stream, c->limits, &call->alloc);
    buf_init(&call->request.line, &call->alloc);
    buf_init(&call->body, &call->alloc);
    fields_init(&call->request.headers, &call->alloc);
    fields_init(&call->box.head, &call->alloc);
    fields_init(&call->box.trailers, &call->alloc);
    fields_init(&call->reply.head, &call->alloc);
    fields_init(&call->reply.trailers, &call->alloc);
    call->request.deadline_us = UINT64_MAX;
    call->request.method = call->request.path = call->request.query = "";
    call->box.mail.deliver = deliver;
    call->deadline.fire = too_late;
    return call;
}

static void call_free(rpc_call *call)
{
    allocator a = call->alloc;

    chunks_free(&call->box.queue, &a);
    chunks_free(&call->stream.out.queue, &a);
    intake_deinit(&call->stream);
    buf_deinit(&call->request.line);
    buf_deinit(&call->body);
    fields_deinit(&call->request.headers);
    fields_deinit(&call->box.head);
    fields_deinit(&call->box.trailers);
    fields_deinit(&call->reply.head);
    fields_deinit(&call->reply.trailers);
    if (call->request.certificate)
        mem_free(&a, call->request.certificate, strlen(call->request.certificate) + 1);
    mailbox_release(call->mailbox);
    mem_free(&a, call, sizeof *call);
}

void rpc_call_keep(rpc_call *call)
{
    atomic_fetch_add_explicit(&call->references, 1, memory_order_relaxed);
}

void rpc_call_drop(rpc_call *call)
{
    if (call &&
        atomic_fetch_sub_explicit(&call->references, 1, memory_order_acq_rel) == 1)
        call_free(call);
}

/* ---------------------------------------------------------------------- the request */

void call_header(rpc_call *call, const char *name, size_t name_size, const char *value,
                 size_t value_size)
{
    fields *to = &call->request.headers;

    if (call->read)
        return; /* trailers, which mean nothing here */
    call->request.header_bytes += name_size + value_size + 32;
    if (call->request.header_bytes > call->limits->bytes.headers)
        call->large = 1;
    if (call->large)
        return;
    if (name_size == 10 && !memcmp(name, ":authority", 10)) {
        name = "host";
        name_size = 4;
    }
    if (fields_add(to, name, name_size, value, value_size))
        call->large = 1;
}

/* Takes the pseudo-headers out of the list, and splits the path. 0; -1: no memory. */
static int read_line(rpc_call *call)
{
    fields rest;
    const char *name = NULL, *value = NULL, *method = "", *path = "", *query;
    buf *line = &call->request.line;

    fields_init(&rest, &call->alloc);
    while (fields_next(&call->request.headers, &name, &value))
        if (!strcmp(name, ":method"))
            method = value;
        else if (!strcmp(name, ":path"))
            path = value;
        else if (*name != ':' &&
                 fields_add(&rest, name, strlen(name), value, strlen(value))) {
            fields_deinit(&rest);
            return -1;
        }
    query = strchr(path, '?');
    buf_put(line, method, strlen(method) + 1);
    buf_put(line, path, query ? (size_t)(query - path) : strlen(path));
    buf_putc(line, 0);
    buf_puts(line, query ? query + 1 : "");
    buf_putc(line, 0);
    fields_deinit(&call->request.headers);
    call->request.headers = rest;
    if (line->failed)
        return -1;
    call->request.method = line->data;
    call->request.path = call->request.method + strlen(call->request.method) + 1;
    call->request.query = call->request.path + strlen(call->request.path) + 1;
    return 0;
}

/* What is wrong with a request of gRPC; NULL: nothing. */
static const char *wrong(rpc_call *call, rpc_code *code)
{
    const char *value = rpc_call_header(call, "grpc-encoding");
    uint64_t us;

    *code = RPC_UNIMPLEMENTED;
    if (value && strcmp(value, "identity"))
        return "messages are taken without compression alone: send grpc-encoding: "
               "identity";
    *code = RPC_INTERNAL;
    value = rpc_call_header(call, "te");
    if (!value || strcmp(value, "trailers"))
        return "the header te: trailers is missing: something between drops trailers";
    value = rpc_call_header(call, "grpc-timeout");
    if (!value)
        return NULL;
    if (frame_timeout_parse(value, &us))
        return "the header grpc-timeout is not 1 to 8 digits and a unit of HMSmun";
    call->request.deadline_us = call->loop->now_us + us;
    return NULL;
}

void call_begin(rpc_call *call)
{
    conn *c = call->conn;
    const char *text, *who;
    rpc_code code;
    int failed = call->large ? 0 : read_line(call);

    call->read = 1;
    call->request.kind = RPC_HTTP;
    text = rpc_call_header(call, "content-type");
    if (call->stream.h2 && frame_is_grpc(text) &&
        (call->large || !strcmp(call->request.method, "POST")))
        call->request.kind = RPC_GRPC;
    if (failed || call->large) {
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 431, "the headers are too large");
        return;
    }
    memcpy(call->request.peer, c->owner.peer, sizeof call->request.peer);
    call->request.encrypted = c->tls != NULL;
    who = c->tls ? tls_peer_name(c->tls) : NULL;
    if (who)
        call->request.certificate = mem_dup(&call->alloc, who, strlen(who));
    if (who && !call->request.certificate) {
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 503, "the server is out of memory");
        return;
    }
    text = call->request.kind == RPC_GRPC ? wrong(call, &code) : NULL;
    if (text) {
        call_refuse(call, code, 400, text);
        return;
    }
    if (call->request.deadline_us != UINT64_MAX &&
        timer_set(&call->loop->timers, &call->deadline, call->request.deadline_us)) {
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 503, "the server is out of memory");
        return;
    }
    call->told = 1;
    atomic_fetch_add(&call->loop->figures.calls, 1);
    call->service->begun(call->ud, call);
}

void rpc_call_set(rpc_call *call, void *own)
{
    call->own = own;
}

void *rpc_call_own(const rpc_call *call)
{
    return call->own;
}

rpc_kind rpc_call_kind(const rpc_call *call)
{
    return call->request.kind;
}

const char *rpc_call_method(const rpc_call *call)
{
    return call->request.method;
}

const char *rpc_call_path(const rpc_call *call)
{
    return call->request.path;
}

const char *rpc_call_query(const rpc_call *call)
{
    return call->request.query;
}

const char *rpc_call_header(const rpc_call *call, const char *name)
{
    return fields_find(&call->request.headers, name);
}

void rpc_call_headers(const rpc_call *call,
                      int (*visit)(void *arg, const char *name, const char *value),
                      void *arg)
{
    fields_visit(&call->request.headers, visit, arg);
}

uint64_t rpc_call_deadline(const rpc_call *call)
{
    return call->request.deadline_us;
}

const char *rpc_call_peer(const rpc_call *call)
{
    return call->request.peer;
}

int rpc_call_encrypted(const rpc_call *call)
{
    return call->request.encrypted;
}

const char *rpc_call_certificate(const rpc_call *call)
{
    return call->request.certificate;
}

int rpc_call_over(const rpc_call *call)
{
    return atomic_load(&call->over);
}

rpc_loop *rpc_call_loop(const rpc_call *call)
{
    return call->loop;
}

size_t rpc_unsent(const rpc_call *call)
{
    return atomic_load(&call->unsent);
}

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

static int queue(rpc_call *call, const void *data, size_t size, int framed)
{
    chunk *one = chunk_new(&call->alloc, data, size, framed);
    if (!one) {
        rpc_finish(call, RPC_RESOURCE_EXHAUSTED, "the server is out of memory", NULL, 0);
        return -1;
    }
    if (!open_box(call)) {
        mem_free(&call->alloc, one, sizeof *one + one->size);
        return -1;
    }
    if (atomic_fetch_add(&call->unsent, one->size) + one->size >
        call->limits->bytes.unsent)
        atomic_store(&call->high, 1);
    chunks_put(&call->box.queue, one);
    post(call);
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

/* ---------------------------------------------------------------------- the loop's part
 */

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
        chunks_free(&call->stream.out.queue, &call->alloc);
    else if (call->stream.h2)
        serve_pump(call);
    else
        http1_pump(call);
}

static void deliver(mail *m)
{
    rpc_call *call = (rpc_call *)(void *)((char *)m - offsetof(rpc_call, box.mail));
    empty_box(call);
    pump(call);
    rpc_call_drop(call);
}

void call_sent(rpc_call *call, size_t size)
{
    size_t unsent = atomic_fetch_sub(&call->unsent, size) - size;
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
    atomic_fetch_sub(&call->unsent, chunks_free(&call->stream.out.queue, &call->alloc));
    rpc_call_drop(call);
}

/* The deadline passed: what is queued is dropped, unless a message is half sent. */
static void too_late(timer *t)
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
            atomic_fetch_sub(&call->unsent, chunks_free(&s->out.queue, &call->alloc));
            empty_box(call);
            pump(call);
        }
    }
    tell_gone(call, RPC_GONE_DEADLINE);
    rpc_call_drop(call);
}
