/*
 * serve.c: calls over HTTP/2: the server's side of http2.c, and the form of gRPC's
 * replies.
 *
 * A gRPC reply is headers, messages, and trailers with a status; without a message the
 * headers are the trailers. It ends when its trailers are sent, whether or not the client
 * has sent all of its request: http2.c then resets the stream without an error.
 */
#include <string.h>

#include "rpc/call.h"
#include "rpc/http2.h"
#include "rpc/intake.h"

static rpc_call *of(stream *s)
{
    return (rpc_call *)(void *)s;
}

static stream *begun(http2 *h2, int32_t id)
{
    rpc_call *call = rpc_call_new(h2->conn);
    if (!call)
        return NULL;
    http2_add(h2, &call->stream, id);
    return &call->stream;
}

static void header(stream *s, const char *name, size_t name_size, const char *value,
                   size_t value_size)
{
    call_header(of(s), name, name_size, value, value_size);
}

/* Bytes of a body, by its length where that is told. */
static size_t expected(const rpc_call *call)
{
    const char *text = rpc_call_header(call, "content-length");
    size_t limit = call->limits->bytes.message, n = 0;
    for (; text && *text >= '0' && *text <= '9' && n <= limit; text++)
        n = n * 10 + (size_t)(*text - '0');
    return !text || n > limit ? limit : n;
}

static void headers_done(stream *s)
{
    rpc_call *call = of(s);
    if (call->read)
        return; /* trailers */
    call_begin(call);
    if (!call->told)
        intake_ignore(s);
    else if (call->request.kind == RPC_HTTP)
        intake_raw(s, expected(call));
}

static void data(stream *s, const unsigned char *bytes, size_t size)
{
    rpc_call *call = of(s);
    if (!call->told || call->gone)
        return;
    if (call->request.kind == RPC_GRPC) {
        call->service->message(call->ud, call, bytes, size);
        return;
    }
    if (size > call->limits->bytes.message - call->body.size) {
        intake_ignore(s);
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 413, "the body is too large");
        return;
    }
    buf_put(&call->body, bytes, size);
    if (call->body.failed) {
        intake_ignore(s);
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 503, "the server is out of memory");
    }
}

static void ended(stream *s)
{
    rpc_call *call = of(s);
    if (!call->told || call->gone)
        return;
    if (call->request.kind == RPC_HTTP) {
        call->service->message(call->ud, call, call->body.data ? call->body.data : "",
                               call->body.size);
        buf_deinit(&call->body);
    }
    if (!call->gone)
        call->service->ended(call->ud, call);
}

static void sent(stream *s, size_t size)
{
    call_sent(of(s), size);
}

static const nghttp2_nv *bare_status(rpc_call *call, nghttp2_nv *nv, char number[12])
{
    unsigned code = (unsigned)call->reply.code;
    number[0] = (char)('0' + code / 10);
    number[1] = (char)('0' + code % 10);
    number[2] = 0;
    *nv = http2_nv("grpc-status", code < 10 ? number + 1 : number);
    return nv;
}

static int last(stream *s)
{
    rpc_call *call = of(s);
    nghttp2_nv nv;
    char number[12];

    if (call->request.kind != RPC_GRPC)
        return 0;
    if (call->reply.trailers.count)
        return !http2_trailers(s, NULL, 0, &call->reply.trailers);
    return !http2_trailers(s, bare_status(call, &nv, number), 1, NULL);
}

static void bad(stream *s, frame_result why)
{
    rpc_call *call = of(s);
    if (why == FRAME_COMPRESSED)
        call_refuse(call, RPC_INTERNAL, 400,
                    "a message is compressed, and grpc-encoding does not say how");
    else if (why == FRAME_LARGE)
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 413,
                    "a message is larger than the server takes");
    else if (why == FRAME_NOMEM)
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 503, "the server is out of memory");
    else if (s->in.ended)
        call_refuse(call, RPC_INTERNAL, 400, "the request ended inside of a message");
    else
        call_refuse(call, RPC_RESOURCE_EXHAUSTED, 408,
                    "a message did not arrive in the time that it may take");
}

static void closed(stream *s, int64_t error)
{
    rpc_call *call = of(s);
    http2_remove(s->h2, s);
    call_over(call, s->out.done   ? RPC_GONE_FINISHED
                    : error == -1 ? RPC_GONE_BROKEN
                                  : RPC_GONE_CANCELLED);
}

const http2_side http2_server = {begun, header, headers_done, data,  ended,
                                 sent,  last,   bad,          closed};

/* ---------------------------------------------------------------------- replies */

static int begin_grpc(rpc_call *call)
{
    stream *s = &call->stream;
    nghttp2_nv own[3];
    char number[12];
    int only = !s->out.queue.first;

    own[0] = http2_nv(":status", "200");
    own[1] = http2_nv("content-type", "application/grpc");
    if (!only)
        return http2_headers(s, own, 2, NULL, 0);
    if (call->reply.trailers.count)
        return http2_headers(s, own, 2, &call->reply.trailers, 1);
    bare_status(call, &own[2], number);
    return http2_headers(s, own, 3, NULL, 1);
}

static int begin_http(rpc_call *call)
{
    stream *s = &call->stream;
    nghttp2_nv own[2];
    char status[4], length[24];
    size_t n = 1;
    int head = !strcmp(call->request.method, "HEAD"), code = call->reply.status;

    if (code < 200 || code > 599)
        code = 500;
    status[0] = (char)('0' + code / 100);
    status[1] = (char)('0' + code / 10 % 10);
    status[2] = (char)('0' + code % 10);
    status[3] = 0;
    own[0] = http2_nv(":status", status);
    if (call->reply.length >= 0) {
        buf text;
        buf_init(&text, &call->alloc);
        buf_put_i64(&text, call->reply.length);
        if (!text.failed && text.size < sizeof length) {
            memcpy(length, text.data, text.size + 1);
            own[n++] = http2_nv("content-length", length);
        }
        buf_deinit(&text);
    }
    if (head) {
        (void)call_drop_queue(call);
        s->out.final = 1;
    }
    return http2_headers(s, own, n, &call->reply.head,
                         head || (s->out.final && !s->out.queue.first));
}

void serve_pump(rpc_call *call)
{
    stream *s = &call->stream;
    int failed;

    if (s->out.headers) {
        if (!strcmp(call->request.method, "HEAD"))
            (void)call_drop_queue(call);
        http2_more(s);
        return;
    }
    if (call->request.kind == RPC_HTTP) {
        if (!call->reply.status && s->out.final)
            call->reply.status = 500; /* an end without a head */
        if (!call->reply.status)
            return;
        failed = begin_http(call);
    } else {
        if (!s->out.queue.first && !s->out.final)
            return;
        failed = begin_grpc(call);
    }
    if (failed)
        http2_reset(s, NGHTTP2_INTERNAL_ERROR);
}

void serve_pause(rpc_call *call, int paused)
{
    intake_pause(&call->stream, paused);
}

/* ---------------------------------------------------------------------- what is held */

size_t serve_held(conn *c)
{
    size_t size = 0;
    for (stream *s = http2_of(c)->streams; s; s = s->next)
        size += rpc_unsent(of(s));
    return size;
}

size_t serve_shed(conn *c)
{
    rpc_call *found = NULL;
    size_t most = 0;
    for (stream *s = http2_of(c)->streams; s; s = s->next) {
        const size_t size = rpc_unsent(of(s));
        if (size > most) {
            most = size;
            found = of(s);
        }
    }
    return found ? reply_shed(found) : 0;
}
