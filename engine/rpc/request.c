/*
 * request.c: one gRPC request of a client: the client's side of http2.c.
 *
 * A request ends when the server's trailers are there, when its deadline passed, when it
 * is cancelled, or when its stream or connection ended otherwise. An answer without a
 * grpc-status is never success, whatever came before: a reset after the last message
 * would else pass for one.
 *
 * Its end is told at once, inside of callbacks as well. So its memory is freed later, by
 * mail.
 */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "rpc/channel.h"
#include "rpc/http2.h"
#include "rpc/intake.h"

static void too_late(timer *t);
static void free_request(mail *m);

static rpc_request *of(stream *s)
{
    return (rpc_request *)(void *)s;
}

/* ---------------------------------------------------------------------- its life */

sessile_status rpc_request_open(rpc_request **out, rpc_channel *channel, const char *path,
                                const rpc_header *headers, size_t n, uint64_t deadline_us,
                                const rpc_replies *replies, void *ud, sessile_error *err)
{
    rpc_request *request = mem_zalloc(&channel->alloc, sizeof *request);

    *out = NULL;
    if (!request)
        return fail_nomem(err);
    request->alloc = channel->alloc;
    request->channel = channel;
    request->replies = *replies;
    request->ud = ud;
    request->ask.deadline_us = deadline_us;
    request->free.deliver = free_request;
    request->deadline.fire = too_late;
    fields_init(&request->ask.headers, &request->alloc);
    fields_init(&request->answer.headers, &request->alloc);
    intake_init(&request->stream, &channel->limits, &request->alloc);
    request->ask.path = mem_dup(&request->alloc, path, strlen(path));
    if (!request->ask.path || fields_add_all(&request->ask.headers, headers, n) ||
        (deadline_us != UINT64_MAX &&
         timer_set(&channel->loop->timers, &request->deadline, deadline_us))) {
        free_request(&request->free);
        return fail_nomem(err);
    }
    *out = request;
    if (channel->link.conn && channel->link.ready)
        request_submit(request, channel->link.conn);
    else
        channel_queue(channel, request);
    return SESSILE_OK;
}

static void free_request(mail *m)
{
    rpc_request *request =
        (rpc_request *)(void *)((char *)m - offsetof(rpc_request, free));
    allocator a = request->alloc;

    chunks_free(&request->stream.out.queue, &a);
    intake_deinit(&request->stream);
    fields_deinit(&request->ask.headers);
    fields_deinit(&request->answer.headers);
    if (request->ask.path)
        mem_free(&a, request->ask.path, strlen(request->ask.path) + 1);
    mem_free(&a, request, sizeof *request);
}

void request_end(rpc_request *request, const rpc_result *result)
{
    rpc_loop *loop = request->channel->loop;
    stream *s = &request->stream;

    if (request->over)
        return;
    request->over = 1;
    timer_clear(&loop->timers, &request->deadline);
    if (s->h2) {
        nghttp2_session_set_stream_user_data(s->h2->session, s->id, NULL);
        http2_remove(s->h2, s);
    } else
        channel_unqueue(request->channel, request);
    s->in.deaf = 1;
    request->replies.ended(request->ud, request, result);
    pthread_mutex_lock(&loop->box->lock);
    mailbox_put(loop->box, &request->free);
    mailbox_unlock(loop->box);
}

/* An end that the server did not tell. */
static void end(rpc_request *request, rpc_code code, const char *message, int unbegun)
{
    rpc_result result;
    result.code = code;
    result.message = message;
    result.unbegun = unbegun;
    result.told = 0;
    request_end(request, &result);
}

void request_submit(rpc_request *request, conn *c)
{
    http2 *h2 = http2_of(c);
    nghttp2_nv own[8];
    char timeout[FRAME_TIMEOUT_SIZE];
    size_t n = 0;

    own[n++] = http2_nv(":method", "POST");
    own[n++] = http2_nv(":scheme", c->tls ? "https" : "http");
    own[n++] = http2_nv(":path", request->ask.path);
    own[n++] = http2_nv(":authority", request->channel->target.authority);
    own[n++] = http2_nv("te", "trailers");
    own[n++] = http2_nv("content-type", "application/grpc");
    if (request->ask.deadline_us != UINT64_MAX) {
        uint64_t now = loop_clock_us(), at = request->ask.deadline_us;
        frame_timeout_print(at > now ? at - now : 1, timeout);
        own[n++] = http2_nv("grpc-timeout", timeout);
    }
    http2_add(h2, &request->stream, 0);
    if (http2_headers(&request->stream, own, n, &request->ask.headers, 0))
        end(request, RPC_UNAVAILABLE, "the request could not be sent", 1);
}

/* ---------------------------------------------------------------------- what is asked */

int rpc_request_send(rpc_request *request, const void *data, size_t size)
{
    stream *s = &request->stream;
    chunk *one;

    if (request->over || s->out.final)
        return -1;
    one = chunk_new(&request->alloc, data, size, 1);
    if (!one)
        return -1;
    chunks_put(&s->out.queue, one);
    request->unsent += one->size;
    if (request->unsent > request->channel->limits.bytes.unsent)
        request->high = 1;
    http2_more(s);
    return 0;
}

void rpc_request_end(rpc_request *request)
{
    if (request->over || request->stream.out.final)
        return;
    request->stream.out.final = 1;
    http2_more(&request->stream);
}

size_t rpc_request_unsent(const rpc_request *request)
{
    return request->unsent;
}

void rpc_request_pause(rpc_request *request, int paused)
{
    if (request->over)
        return;
    if (request->stream.h2)
        intake_pause(&request->stream, paused);
    else
        request->stream.in.paused = paused != 0;
}

/* The server shall not go on. */
static void give_up(rpc_request *request, rpc_code code, const char *message)
{
    int begun = request->stream.out.begun;
    http2_reset(&request->stream, NGHTTP2_CANCEL);
    end(request, code, message, !begun);
}

void rpc_request_cancel(rpc_request *request)
{
    give_up(request, RPC_CANCELLED, "the request was cancelled");
}

static void too_late(timer *t)
{
    give_up((rpc_request *)(void *)((char *)t - offsetof(rpc_request, deadline)),
            RPC_DEADLINE_EXCEEDED, "the deadline has passed");
}

const char *rpc_request_header(const rpc_request *request, const char *name)
{
    return fields_find(&request->answer.headers, name);
}

void rpc_request_headers(const rpc_request *request,
                         int (*visit)(void *arg, const char *name, const char *value),
                         void *arg)
{
    fields_visit(&request->answer.headers, visit, arg);
}

/* -------------------------------------------------------------------- what comes back */

static stream *begun(http2 *h2, int32_t id)
{
    (void)h2;
    (void)id;
    return NULL; /* a server begins none */
}

static void header(stream *s, const char *name, size_t name_size, const char *value,
                   size_t value_size)
{
    rpc_request *request = of(s);
    size_t i;

    request->answer.header_bytes += name_size + value_size + 32;
    if (request->answer.header_bytes > request->channel->limits.bytes.headers)
        return;
    if (name_size == 7 && !memcmp(name, ":status", 7)) {
        request->answer.http = 0;
        for (i = 0; i < value_size && i < 3; i++)
            request->answer.http = request->answer.http * 10 + (value[i] - '0');
        return;
    }
    fields_add(&request->answer.headers, name, name_size, value, value_size);
}

static void headers_done(stream *s)
{
    rpc_request *request = of(s);
    if (request->answer.header_bytes > request->channel->limits.bytes.headers) {
        give_up(request, RPC_RESOURCE_EXHAUSTED,
                "the server's headers are larger than is taken");
        return;
    }
    /* A page of a proxy is no message. */
    if (request->answer.http != 200 ||
        !frame_is_grpc(rpc_request_header(request, "content-type")))
        intake_ignore(s);
}

static void data(stream *s, const unsigned char *bytes, size_t size)
{
    rpc_request *request = of(s);
    if (request->replies.message)
        request->replies.message(request->ud, request, bytes, size);
}

/* The code for an answer that has none, by the specification of gRPC. */
static rpc_code of_http(int status)
{
    switch (status) {
    case 400:
        return RPC_INTERNAL;
    case 401:
        return RPC_UNAUTHENTICATED;
    case 403:
        return RPC_PERMISSION_DENIED;
    case 404:
        return RPC_UNIMPLEMENTED;
    case 429:
    case 502:
    case 503:
    case 504:
        return RPC_UNAVAILABLE;
    default:
        return RPC_UNKNOWN;
    }
}

static rpc_code of_answer(const rpc_request *request)
{
    int status = request->answer.http;
    return !status || status == 200 ? RPC_INTERNAL : of_http(status);
}

static rpc_code of_text(const char *text)
{
    unsigned n = 0;
    const char *c;
    for (c = text; *c >= '0' && *c <= '9' && c - text < 3; c++)
        n = n * 10 + (unsigned)(*c - '0');
    return *c || c == text || n > RPC_UNAUTHENTICATED ? RPC_UNKNOWN : (rpc_code)n;
}

static void ended(stream *s)
{
    rpc_request *request = of(s);
    const char *status = rpc_request_header(request, "grpc-status"),
               *message = rpc_request_header(request, "grpc-message");
    rpc_result result;
    buf text;

    if (!status) {
        give_up(request, of_answer(request), "the server's answer has no grpc-status");
        return;
    }
    if (!s->out.done)
        http2_reset(s, NGHTTP2_CANCEL);
    buf_init(&text, &request->alloc);
    if (message)
        frame_percent_take(&text, message);
    result.code = of_text(status);
    result.message = text.data && !text.failed ? text.data : "";
    result.unbegun = 0;
    result.told = 1;
    request_end(request, &result);
    buf_deinit(&text);
}

static void sent(stream *s, size_t size)
{
    rpc_request *request = of(s);
    request->unsent -= size;
    if (!request->high || request->unsent > request->channel->limits.bytes.unsent / 2)
        return;
    request->high = 0;
    if (request->replies.drained)
        request->replies.drained(request->ud, request);
}

static int last(stream *s)
{
    (void)s;
    return 0;
}

static void bad(stream *s, frame_result why)
{
    rpc_request *request = of(s);
    if (why == FRAME_LARGE)
        give_up(request, RPC_RESOURCE_EXHAUSTED,
                "a message of the server is larger than is taken");
    else if (why == FRAME_NOMEM)
        give_up(request, RPC_RESOURCE_EXHAUSTED, "there is no memory for the answer");
    else if (why == FRAME_COMPRESSED)
        give_up(request, RPC_INTERNAL, "a message of the server is compressed");
    else
        give_up(request, RPC_INTERNAL, "the server's answer ended inside of a message");
}

static void closed(stream *s, int64_t error)
{
    rpc_request *request = of(s);
    int unbegun = !s->out.begun;

    switch (error) {
    case NGHTTP2_REFUSED_STREAM:
        end(request, RPC_UNAVAILABLE, "the server refused the request", 1);
        break;
    case NGHTTP2_CANCEL:
        end(request, RPC_CANCELLED, "the server cancelled the request", 0);
        break;
    case NGHTTP2_ENHANCE_YOUR_CALM:
        end(request, RPC_RESOURCE_EXHAUSTED, "the server has had too much", 0);
        break;
    case NGHTTP2_INADEQUATE_SECURITY:
        end(request, RPC_PERMISSION_DENIED, "the server wants a better encryption", 0);
        break;
    case -1:
        end(request, RPC_UNAVAILABLE, "the connection ended", unbegun);
        break;
    default:
        end(request, of_answer(request), "the server's answer has no grpc-status", 0);
    }
}

const http2_side http2_client = {begun, header, headers_done, data,  ended,
                                 sent,  last,   bad,          closed};
