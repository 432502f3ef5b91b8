/*
 * http1.c: HTTP/1.1 on one connection, a server's side.
 *
 * One request at a time: its head, its body by Content-Length, its reply. Bytes that come
 * before the reply is complete are never read as a request: the connection ends after
 * that reply. What a head may be is said in http1_head.c.
 */
#include "rpc/http1.h"

#include <string.h>

#include "rpc/call.h"
#include "rpc/http1_head.h"
#include "rpc/queued.h"

enum { PIECE = 65536 };

typedef struct http1 {
    conn *conn;
    buf head;              /* of the request that comes */
    buf body;              /* of it */
    size_t missing;        /* of its body */
    uint64_t since;        /* its first byte; 0: none has come */
    rpc_call *call;        /* from its head to the end of its reply */
    int64_t left;          /* bytes of the reply's body that were promised; -1: chunked */
    unsigned began : 1;    /* a request has */
    unsigned whole : 1;    /* the request is complete */
    unsigned last : 1;     /* the connection ends after this reply */
    unsigned replied : 1;  /* the reply's head is written */
    unsigned bodiless : 1; /* the reply has no body, whatever is said */
    unsigned ended : 1;    /* nothing more is written */
} http1;

/* ---------------------------------------------------------------------- replies */

/* A refusal that no service sees. The connection ends after it. */
static int refuse(http1 *h, int status, const char *why)
{
    buf *out = &h->conn->out.data;
    buf_printf(out,
               "HTTP/1.1 %d %s\r\ncontent-type: text/plain\r\ncontent-length: %zu\r\n"
               "connection: close\r\n\r\n%s",
               status, http1_reason(status), strlen(why), why);
    h->ended = 1;
    return -1;
}

static void write_head(http1 *h)
{
    rpc_call *call = h->call;
    buf *out = &h->conn->out.data;
    const char *name = NULL, *value = NULL;
    int status = call->reply.status;

    if (status < 200 || status > 599)
        status = 500;
    h->bodiless = status == 204 || status == 304;
    h->left = h->bodiless ? 0 : call->reply.length;
    if (!h->whole || h->conn->draining)
        h->last = 1;
    buf_printf(out, "HTTP/1.1 %d %s\r\n", status, http1_reason(status));
    while (fields_next(&call->reply.head, &name, &value)) {
        buf_puts(out, name);
        buf_puts(out, ": ");
        buf_puts(out, value);
        buf_puts(out, "\r\n");
    }
    if (h->left < 0)
        buf_puts(out, "transfer-encoding: chunked\r\n");
    else if (!h->bodiless) {
        buf_puts(out, "content-length: ");
        buf_put_i64(out, h->left);
        buf_puts(out, "\r\n");
    }
    if (h->last)
        buf_puts(out, "connection: close\r\n");
    buf_puts(out, "\r\n");
    if (!strcmp(call->request.method, "HEAD"))
        h->bodiless = 1;
    h->replied = 1;
}

/* Writes a piece of the body. */
static void write_piece(http1 *h, const unsigned char *data, size_t size)
{
    buf *out = &h->conn->out.data;

    if (h->bodiless)
        return;
    if (h->left < 0) {
        buf_printf(out, "%zx\r\n", size);
        buf_put(out, data, size);
        buf_puts(out, "\r\n");
        return;
    }
    if ((uint64_t)h->left < size) {
        size = (size_t)h->left; /* more than was promised */
        h->last = 1;
    }
    buf_put(out, data, size);
    h->left -= (int64_t)size;
}

/* Writes what there is of the body, as much as c->out takes. */
static void write_body(http1 *h)
{
    rpc_call *call = h->call;
    chunks *queue = &call->stream.out.queue;

    while (queue->first && !conn_full(h->conn)) {
        chunk *one = queue->first;
        size_t size = one->size - one->sent;
        if (size > PIECE)
            size = PIECE;
        write_piece(h, one->data + one->sent, size);
        one->sent += size;
        if (one->sent == one->size)
            chunks_drop(queue, &call->alloc);
        call_sent(call, size);
    }
}

/* The reply is complete. -1: and the connection with it. */
static int finish(http1 *h)
{
    rpc_call *call = h->call;

    if (!h->bodiless && h->left < 0)
        buf_puts(&h->conn->out.data, "0\r\n\r\n");
    else if (!h->bodiless && h->left > 0)
        h->last = 1; /* less than was promised: the end of the connection tells */
    if (!h->whole)
        h->last = 1;
    h->call = NULL;
    h->replied = h->whole = 0;
    h->since = 0;
    buf_deinit(&h->head);
    buf_deinit(&h->body);
    call_over(call, RPC_GONE_FINISHED);
    if (h->last)
        h->ended = 1;
    else
        conn_due(h->conn, conn_after(h->conn->loop->now_us, h->conn->limits->ms.idle));
    return h->last ? -1 : 0;
}

static int produce(conn *c)
{
    http1 *h = c->state;
    rpc_call *call = h->call;

    if (h->ended)
        return -1;
    if (!call)
        return 0;
    if (!call->reply.status && call->stream.out.final)
        call->reply.status = 500; /* an end without a head */
    if (!call->reply.status)
        return 0;
    if (!h->replied)
        write_head(h);
    write_body(h);
    return call->stream.out.final && !call->stream.out.queue.first ? finish(h) : 0;
}

void http1_pump(rpc_call *call)
{
    conn_dirty(call->conn);
}

/* ---------------------------------------------------------------------- requests */

static int add_header(void *arg, const char *name, size_t name_size, const char *value,
                      size_t value_size)
{
    call_header(arg, name, name_size, value, value_size);
    return 0;
}

static void give_body(http1 *h)
{
    rpc_call *call = h->call;
    h->whole = 1;
    h->since = 0;
    if (!call->told)
        return;
    call->service->message(call->ud, call, h->body.data ? h->body.data : "",
                           h->body.size);
    buf_deinit(&h->body); /* the service has what it wants of it */
    call->service->ended(call->ud, call);
}

/* The head is whole. */
static int begin(http1 *h)
{
    conn *c = h->conn;
    http1_head head;
    const char *why;
    rpc_call *call = rpc_call_new(c);
    int refused;

    if (!call)
        return refuse(h, 503, "the server is out of memory");
    refused = http1_head_read(&head, h->head.data, h->head.size, c->limits->bytes.message,
                              add_header, call, &why);
    if (refused) {
        rpc_call_drop(call);
        return refuse(h, refused, why);
    }
    h->call = call;
    h->missing = head.body;
    h->last |= head.close;
    buf_deinit(&h->head);
    call_begin(call);
    if (head.expects && h->missing && call->told)
        buf_puts(&c->out.data, "HTTP/1.1 100 Continue\r\n\r\n");
    if (!h->missing)
        give_body(h);
    return 0;
}

/* Takes bytes of the head. How many, or -1. */
static long take_head(http1 *h, const char *data, size_t size)
{
    conn *c = h->conn;
    size_t limit = c->limits->bytes.headers, before = h->head.size, whole, taken;
    size_t from = before < 3 ? 0 : before - 3;

    if (!before && (data[0] < 'A' || data[0] > 'Z'))
        return refuse(h, 400, "this is no request of HTTP/1.1");
    if (!h->since) {
        h->began = 1;
        h->since = c->loop->now_us;
        conn_due(c, conn_after(h->since, c->limits->ms.first));
    }
    taken = size < limit - before ? size : limit - before;
    buf_put(&h->head, data, taken);
    if (h->head.failed)
        return refuse(h, 503, "the server is out of memory");
    whole = http1_head_size(h->head.data + from, h->head.size - from);
    if (!whole) {
        if (h->head.size >= limit)
            return refuse(h, 431, "the headers are too large");
        return (long)taken;
    }
    h->head.size = from + whole;
    if (begin(h))
        return -1;
    return (long)(from + whole - before);
}

static int receive(conn *c, const unsigned char *data, size_t size)
{
    http1 *h = c->state;

    while (size && !h->ended) {
        if (!h->call) {
            long n = take_head(h, (const char *)data, size);
            if (n < 0)
                return -1;
            data += n;
            size -= (size_t)n;
            continue;
        }
        if (h->whole || !h->call->told) {
            /* No request is read before the reply to this one is complete, and none of
             * what came until then. */
            h->last = 1;
            return 0;
        }
        if (size < h->missing) {
            buf_put(&h->body, data, size);
            h->missing -= size;
            size = 0;
        } else {
            buf_put(&h->body, data, h->missing);
            data += h->missing;
            size -= h->missing;
            h->missing = 0;
        }
        if (h->body.failed)
            return refuse(h, 503, "the server is out of memory");
        if (!h->missing)
            give_body(h);
    }
    return 0;
}

/* ---------------------------------------------------------------------- the protocol */

static uint64_t look(conn *c)
{
    http1 *h = c->state;
    uint64_t now = c->loop->now_us, due = UINT64_MAX;
    const rpc_limits *limits = c->limits;

    if (h->since)
        due = conn_after(h->since, limits->ms.first);
    else if (!h->began)
        due = conn_after(c->at.opened, limits->ms.first);
    else if (!h->call)
        due = conn_after(c->at.heard, limits->ms.idle);
    if (due > now)
        return due;
    if (h->since && !h->replied) {
        if (h->call)
            call_over(h->call, RPC_GONE_CANCELLED);
        h->call = NULL;
        h->since = 0;
        refuse(h, 408, "the request did not arrive in the time that it may take");
    }
    conn_finish(c);
    return UINT64_MAX;
}

static void drain(conn *c, int last)
{
    http1 *h = c->state;
    (void)last;
    h->last = 1;
    if (!h->call && !h->since)
        conn_finish(c);
}

static size_t held(conn *c)
{
    const http1 *h = c->state;
    return h->call ? rpc_unsent(h->call) : 0;
}

static size_t shed(conn *c)
{
    http1 *h = c->state;
    const size_t size = held(c);
    rpc_call *call = h->call;

    if (h->replied) {
        conn_end(c);
        return size;
    }
    h->call = NULL;
    h->since = 0;
    call_over(call, RPC_GONE_CANCELLED);
    (void)refuse(h, 429, queued_refusal);
    conn_finish(c);
    return size;
}

static void ended(conn *c)
{
    http1 *h = c->state;
    rpc_call *call = h->call;
    h->call = NULL;
    if (call)
        call_over(call, RPC_GONE_BROKEN);
}

static void release(conn *c)
{
    http1 *h = c->state;
    buf_deinit(&h->head);
    buf_deinit(&h->body);
    mem_free(&c->loop->alloc, h, sizeof *h);
    c->state = NULL;
}

static const protocol http1_protocol = {receive, produce, look,  drain,
                                        held,    shed,    ended, release};

int http1_begin(conn *c)
{
    http1 *h = mem_zalloc(&c->loop->alloc, sizeof *h);
    if (!h)
        return -1;
    h->conn = c;
    buf_init(&h->head, &c->loop->alloc);
    buf_init(&h->body, &c->loop->alloc);
    c->state = h;
    c->speaks = &http1_protocol;
    return 0;
}
