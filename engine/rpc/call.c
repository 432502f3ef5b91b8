/*
 * call.c: a call of a server: its life, and what the service may ask of it.
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
#include "rpc/queued.h"

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
    call->box.mail.deliver = reply_deliver;
    call->deadline.fire = reply_too_late;
    return call;
}

static void call_free(rpc_call *call)
{
    allocator a = call->alloc;

    queued_remove(call->mailbox, chunks_free(&call->box.queue, &a) +
                                     chunks_free(&call->stream.out.queue, &a));
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

int rpc_has_room(const rpc_call *call, size_t size, const char **why)
{
    *why = queued_refusal;
    return queued_has_room(call->mailbox, size);
}
