/* call.h: a call as the protocols of a server see it. */
#ifndef RPC_CALL_H
#define RPC_CALL_H

#include "rpc/conn.h"
#include "rpc/fields.h"
#include "rpc/stream.h"

/* What a service said and the loop has not taken yet. Under the mailbox's lock. */
typedef struct call_box {
    mail mail;
    chunks queue;
    fields head;     /* of an RPC_HTTP reply: its fields */
    fields trailers; /* of a gRPC reply, with its status */
    int status;      /* of an RPC_HTTP reply; 0: no head yet */
    int64_t length;  /* of its body; -1: unknown */
    rpc_code code;
    unsigned posted : 1, finished : 1, paused : 1;
} call_box;

struct rpc_call {
    stream stream; /* the first member. HTTP/1.1 uses its queue alone */
    atomic_uint references;
    allocator alloc;
    rpc_loop *loop;
    mailbox *mailbox;
    const rpc_service *service;
    void *ud, *own;
    const rpc_limits *limits;
    conn *conn; /* NULL: it is over. The loop's thread */
    struct {
        rpc_kind kind;
        buf line; /* method, path and query, each with its NUL */
        const char *method, *path, *query;
        fields headers;
        size_t header_bytes;
        uint64_t deadline_us;
        char peer[ADDRESS_TEXT];
        char *certificate;
        int encrypted;
    } request;
    call_box box;
    struct {
        fields head, trailers;
        int status;
        int64_t length;
        rpc_code code;
    } reply;  /* what the loop took from the box */
    buf body; /* of an RPC_HTTP request over HTTP/2 */
    timer deadline;
    atomic_size_t unsent;
    atomic_int high; /* unsent was over the limit */
    atomic_int over;
    unsigned read : 1;  /* its headers were */
    unsigned told : 1;  /* the service knows of it */
    unsigned gone : 1;  /* and that it is gone */
    unsigned large : 1; /* its headers are */
};

/* A call of a connection, with the loop's reference. NULL: no memory. */
rpc_call *rpc_call_new(conn *c);
/* A field of the request; ":method", ":path" and ":authority" among them. */
void call_header(rpc_call *call, const char *name, size_t name_size, const char *value,
                 size_t value_size);
/* All headers are there: the service is told, or the call is refused. */
void call_begin(rpc_call *call);
/* It is over, and the loop's reference is dropped. */
void call_over(rpc_call *call, rpc_gone why);
/* Bytes of the reply were handed to the connection. */
void call_sent(rpc_call *call, size_t size);
/* Drops what the loop has of the reply: the bytes. */
size_t call_drop_queue(rpc_call *call);
/* Over HTTP/2: ends it because its client reads too slowly: the bytes that were freed. */
size_t reply_shed(rpc_call *call);
/* Ends a call in whose request something is wrong: as a gRPC status, or one of HTTP. */
void call_refuse(rpc_call *call, rpc_code code, int http, const char *text);
/* The box has something; the deadline passed. */
void reply_deliver(mail *m);
void reply_too_late(timer *t);
/* The protocol's part: sends what is in reply and in the stream's queue. */
void serve_pump(rpc_call *call); /* HTTP/2 */
void http1_pump(rpc_call *call);
void serve_pause(rpc_call *call, int paused);

#endif
