/*
 * rpc.h: gRPC over HTTP/2, and plain HTTP/1.1 requests, both ends. It knows nothing of
 * sessions.
 *
 * A loop owns connections and is run by one thread. Nothing here starts a thread. A
 * server listens with one or more loops; a client opens a channel on a loop. Callbacks
 * run on the thread of their loop and must not block. A server that has to block hands
 * its call to another thread, which may reply from there: rpc_send() and rpc_finish() may
 * be called by any thread, and wake the loop.
 *
 * Memory is the allocator's of a loop, which any thread may call.
 *
 * A call has one owner of each reference. The loop holds one until `gone`; whoever keeps
 * a call longer takes another with rpc_call_keep().
 *
 * Limits stop one peer from costing the others anything: the size of messages and
 * headers, the streams of a connection, connections, resets, pings, and slow bytes.
 */
#ifndef RPC_RPC_H
#define RPC_RPC_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"
#include "base/error.h"

/* ---------------------------------------------------------------------- common */

/* The status codes of gRPC, by its specification. */
typedef enum rpc_code {
    RPC_OK = 0,
    RPC_CANCELLED = 1,
    RPC_UNKNOWN = 2,
    RPC_INVALID_ARGUMENT = 3,
    RPC_DEADLINE_EXCEEDED = 4,
    RPC_NOT_FOUND = 5,
    RPC_ALREADY_EXISTS = 6,
    RPC_PERMISSION_DENIED = 7,
    RPC_RESOURCE_EXHAUSTED = 8,
    RPC_FAILED_PRECONDITION = 9,
    RPC_ABORTED = 10,
    RPC_OUT_OF_RANGE = 11,
    RPC_UNIMPLEMENTED = 12,
    RPC_INTERNAL = 13,
    RPC_UNAVAILABLE = 14,
    RPC_DATA_LOSS = 15,
    RPC_UNAUTHENTICATED = 16
} rpc_code;

/* A header or trailer: a lower-case name and a value of printable ASCII. Both are copied
 * by the functions that take them. The value of a name that ends in "-bin" is base64. */
typedef struct rpc_header {
    const char *name, *value;
} rpc_header;

typedef struct rpc_limits {
    struct {
        size_t message; /* bytes of one message, without its frame */
        size_t headers; /* bytes of all headers of a request or response */
        size_t unsent;  /* bytes queued on a stream above which rpc_unsent() is high */
    } bytes;
    struct {
        unsigned streams;     /* at one time on one connection */
        unsigned connections; /* of one loop's listeners */
    } count;
    struct {
        int handshake; /* TLS */
        int first;     /* until the first request; and a request, of gRPC each message of
                          it, from its first byte to its last */
        int idle;      /* a connection without a call; 0: for ever */
        int age;       /* a connection is asked to end after about this long; 0: never */
        int stuck;     /* a peer that takes nothing of what waits for it: its call is
                          reset, or its connection ended; 0: never */
        int ping;      /* a channel sends a PING this often; 0: never */
    } ms;
} rpc_limits;

/* 8 MiB and 1 %, 16 KiB, 1 MiB; 256, 10,000; 5 s, 10 s, 0, 30 minutes (10 % more or less,
 * so that not all end at once), 60 s, 0. */
void rpc_limits_init(rpc_limits *limits);

/* ---------------------------------------------------------------------- TLS */

/* Certificates and what is asked of peers. May be used by several loops and threads. */
typedef struct rpc_tls rpc_tls;

typedef struct rpc_tls_files {
    const char *cert, *key; /* PEM files; a client may have none */
    const char *ca;         /* server: clients must show a certificate of this authority.
                               Client: the authority that it believes; NULL: the system's */
    const char *name;       /* client: the name that the server's certificate must have;
                               NULL: the host of the channel's address */
} rpc_tls_files;

/* TLS 1.2 or later, ALPN h2 and http/1.1. DENIED: a key that others may read. INVALID,
 * NOTFOUND: a file that is not as it should be, by its name. Ended by rpc_tls_drop(). */
sessile_status rpc_tls_open(rpc_tls **out, int server, const rpc_tls_files *files,
                            const allocator *a, sessile_error *err);
/* Reads the files again. New connections use what was read; after an error, what was
 * there before. Any thread. */
sessile_status rpc_tls_reload(rpc_tls *tls, sessile_error *err);
/* The end of the certificate's life, in s since 1970; 0: it has no certificate. */
int64_t rpc_tls_expires(const rpc_tls *tls);
void rpc_tls_drop(rpc_tls *tls);

/* ---------------------------------------------------------------------- the loop */

typedef struct rpc_loop rpc_loop;

/* limits NULL: those of rpc_limits_init(). IO: the system gives no descriptor or no
 * random bytes. NOMEM. */
sessile_status rpc_loop_open(rpc_loop **out, const rpc_limits *limits, const allocator *a,
                             sessile_error *err);
/* Runs until rpc_loop_stop(). */
void rpc_loop_run(rpc_loop *loop);
/* Handles what is there, and waits for it at most timeout_ms (-1: for ever). For a client
 * that blocks: it turns the loop until its request ended. */
void rpc_loop_turn(rpc_loop *loop, int timeout_ms);
/* Any thread. */
void rpc_loop_stop(rpc_loop *loop);
/* Calls fn(arg) on the loop's thread, soon. Any thread. 0, or -1: no memory. */
int rpc_loop_post(rpc_loop *loop, void (*fn)(void *arg), void *arg);
/* Calls fn(arg) on the loop's thread after ms. Only on the loop's thread, or before it
 * runs. 0, or -1: no memory. */
int rpc_loop_after(rpc_loop *loop, int ms, void (*fn)(void *arg), void *arg);
/* Ends each connection and frees the loop, which must not be running. */
void rpc_loop_close(rpc_loop *loop);

/* What waits in memory for clients that read slowly, over several loops. most: bytes of
 * replies. Near it the calls of those who hold most end as RESOURCE_EXHAUSTED, over it
 * each reply of more than 16 KiB does. NOMEM. */
typedef struct rpc_queued rpc_queued;
sessile_status rpc_queued_open(rpc_queued **out, size_t most, const allocator *a,
                               sessile_error *err);
/* Replies of a loop count from now on. Once for a loop, before it runs. */
void rpc_loop_count(rpc_loop *loop, rpc_queued *q);
/* Any thread. */
size_t rpc_queued_bytes(const rpc_queued *q);
/* Its loops may go on with it. NULL is ignored. */
void rpc_queued_drop(rpc_queued *q);

typedef struct rpc_loop_figures {
    /* Connections: hostile: ended for a flood; clear: without TLS at a port of TLS. */
    uint64_t accepted, refused, hostile, clear;
    unsigned connections, calls; /* now */
} rpc_loop_figures;
/* Any thread. */
rpc_loop_figures rpc_loop_look(const rpc_loop *loop);

/* ---------------------------------------------------------------------- server */

typedef struct rpc_call rpc_call;

typedef enum rpc_kind {
    RPC_GRPC, /* over HTTP/2, content type application/grpc */
    RPC_HTTP  /* any other request, over HTTP/1.1 or HTTP/2 */
} rpc_kind;

typedef enum rpc_gone {
    RPC_GONE_FINISHED, /* the whole reply was given to the connection */
    RPC_GONE_CANCELLED,
    RPC_GONE_DEADLINE, /* the client has been told so */
    RPC_GONE_BROKEN    /* the connection ended */
} rpc_gone;

/* What a server is told. All run on the loop's thread. */
typedef struct rpc_service {
    /* A request began. Its path and headers are known. It may be finished at once. */
    void (*begun)(void *ud, rpc_call *call);
    /* A whole message of a gRPC call; the body of another request, once, also if it is
     * empty. The bytes are valid during this call. */
    void (*message)(void *ud, rpc_call *call, const void *data, size_t size);
    /* The client sends no more messages. */
    void (*ended)(void *ud, rpc_call *call);
    /* rpc_unsent() was high and is low again. */
    void (*drained)(void *ud, rpc_call *call);
    /* Once for each call that begun, and last: nobody waits any more. */
    void (*gone)(void *ud, rpc_call *call, rpc_gone why);
} rpc_service;

typedef struct rpc_listener rpc_listener;

/* Listens at an address: "127.0.0.1:7071", "[::1]:0", "host:port", "unix:/path". tls
 * NULL: plain text. The listener is served by each of the n loops; service and ud must
 * live as long as they. INVALID: no such address. EXISTS: it is in use. */
sessile_status rpc_listen(rpc_listener **out, rpc_loop *const *loops, size_t n,
                          const char *address, rpc_tls *tls, const rpc_service *service,
                          void *ud, sessile_error *err);
/* The address, with the port that was taken for port 0. Lives as long as the listener. */
const char *rpc_listener_address(const rpc_listener *l);
/* 1: each address that it listens at is of this machine alone. */
int rpc_listener_local(const rpc_listener *l);
/* Accepts no more, tells each connection to go (GOAWAY: first a notice, half a second
 * later the last id), and lets calls finish. Any thread. rpc_loop_look() tells when none
 * is left. */
void rpc_listener_drain(rpc_listener *l);
/* Ends its connections and frees it. Its loops must not be running; they may be closed
 * before it or after it. */
void rpc_listener_close(rpc_listener *l);

void rpc_call_keep(rpc_call *call); /* any thread */
void rpc_call_drop(rpc_call *call); /* any thread */

/* A pointer of the service's own, NULL at first. */
void rpc_call_set(rpc_call *call, void *own);
void *rpc_call_own(const rpc_call *call);

/* These do not change after `begun`; any thread may ask. Texts live as long as the call.
 */
rpc_kind rpc_call_kind(const rpc_call *call);
const char *rpc_call_method(const rpc_call *call); /* "POST" */
const char *rpc_call_path(const rpc_call *call); /* "/package.Service/Method", no query */
const char *rpc_call_query(const rpc_call *call); /* what followed '?', or "" */
/* The first header of that lower-case name; NULL. */
const char *rpc_call_header(const rpc_call *call, const char *name);
/* Calls visit for each header until it returns something other than 0. */
void rpc_call_headers(const rpc_call *call,
                      int (*visit)(void *arg, const char *name, const char *value),
                      void *arg);
/* µs of the monotonic clock; UINT64_MAX: none. From grpc-timeout. */
uint64_t rpc_call_deadline(const rpc_call *call);
const char *rpc_call_peer(const rpc_call *call); /* "10.0.0.7:51234", "unix" */
int rpc_call_encrypted(const rpc_call *call);
/* The subject's common name or first DNS or URI name of the client's certificate, which
 * was verified; NULL: it showed none. */
const char *rpc_call_certificate(const rpc_call *call);
/* 1: nobody waits for the reply. Any thread. */
int rpc_call_over(const rpc_call *call);
/* Stops reading the request (1) and goes on (0): the client stops when its window is
 * full. Messages that have arrived wait. Any thread; it works soon, not at once. */
void rpc_call_pause(rpc_call *call, int paused);
/* The loop that the call is of, e.g. for a channel to pass it on with. */
rpc_loop *rpc_call_loop(const rpc_call *call);

/*
 * Replies. Any thread; after the call is over they do nothing.
 *
 * rpc_send() queues a copy of one message of a gRPC reply. 0; -1: no memory, and the call
 * is finished as RESOURCE_EXHAUSTED, or it was over. rpc_finish() ends it; message may be
 * NULL or any UTF-8 and is percent-encoded on the wire.
 */
int rpc_send(rpc_call *call, const void *data, size_t size);
void rpc_finish(rpc_call *call, rpc_code code, const char *message,
                const rpc_header *trailers, size_t n);
/* Bytes queued and not yet given to the connection. Any thread. */
size_t rpc_unsent(const rpc_call *call);
/* 0: a piece of that size would be refused now, because too much waits for clients that
 * read slowly (rpc_queued); *why is the sentence. Any thread. */
int rpc_has_room(const rpc_call *call, size_t size, const char **why);

/* The same for an RPC_HTTP request: the head once, then bytes of the body as they come,
 * and rpc_http_end(). Without a length (-1) an HTTP/1.1 body is chunked. A reply in one
 * piece: rpc_http_reply(). */
void rpc_http_head(rpc_call *call, int status, const char *type, int64_t length,
                   const rpc_header *headers, size_t n);
int rpc_http_send(rpc_call *call, const void *data, size_t size);
void rpc_http_end(rpc_call *call);
void rpc_http_reply(rpc_call *call, int status, const char *type, const void *body,
                    size_t size);

/* ---------------------------------------------------------------------- client */

/* A connection to one address, made when it is needed and made again when it broke. */
typedef struct rpc_channel rpc_channel;
typedef struct rpc_request rpc_request;

/* address as for rpc_listen(). Lives on one loop; these functions are for its thread.
 * INVALID: no such address. NOMEM. */
sessile_status rpc_channel_open(rpc_channel **out, rpc_loop *loop, const char *address,
                                rpc_tls *tls, const rpc_limits *limits,
                                sessile_error *err);
/* Where a channel connects, found ahead: a name waits for a server of names, which a loop
 * must not do. Any thread. INVALID: no such address, or its name is not known. NOMEM. */
typedef struct rpc_target rpc_target;
sessile_status rpc_target_find(rpc_target **out, const char *address, const allocator *a,
                               sessile_error *err);
void rpc_target_free(rpc_target *target); /* NULL is ignored */
/* As rpc_channel_open(), which waits nowhere; the target is copied. NOMEM. */
sessile_status rpc_channel_open_to(rpc_channel **out, rpc_loop *loop,
                                   const rpc_target *target, rpc_tls *tls,
                                   const rpc_limits *limits, sessile_error *err);
/* Its requests end as UNAVAILABLE first. Before the loop is closed. */
void rpc_channel_close(rpc_channel *channel);
/* Why the last connection of a channel failed, where another address or a later try would
 * not help. */
typedef enum rpc_fault {
    RPC_FAULT_NONE,
    RPC_FAULT_AUTHORITY, /* the peer's certificate: its authority is not trusted */
    RPC_FAULT_NAME,      /* for another host */
    RPC_FAULT_TIME,      /* it has expired, or is not valid yet */
    RPC_FAULT_CLIENT,    /* the peer wants a certificate of ours, or another one */
    RPC_FAULT_NO_TLS,    /* the peer does not speak TLS */
    RPC_FAULT_SILENT /* without TLS: the peer ended the connection, and said nothing in
                        HTTP/2. It may be one that wants TLS */
} rpc_fault;
rpc_fault rpc_channel_fault(const rpc_channel *channel);

/* ms since the peer was last heard (bytes of any kind), if it is connected; -1: it is
 * not. With limits.ms.ping it tells within that time whether the peer is there. */
int rpc_channel_silence(const rpc_channel *channel);

typedef struct rpc_result {
    rpc_code code;
    const char *message; /* UTF-8; "" if there is none. During the callback */
    /* 1: the server cannot have begun it (never sent, or refused): it may be tried
     * elsewhere whatever it does. */
    int unbegun;
    /* 1: the code is the server's own: it came in its trailers. */
    int told;
} rpc_result;

/* What a client is told. `ended` is called exactly once, and last, also for a request
 * that could not be sent; afterwards the request is gone. */
typedef struct rpc_replies {
    /* NULL: what comes is dropped */
    void (*message)(void *ud, rpc_request *request, const void *data, size_t size);
    void (*ended)(void *ud, rpc_request *request, const rpc_result *result);
    void (*drained)(void *ud, rpc_request *request); /* may be NULL */
} rpc_replies;

/* Begins a gRPC request. deadline_us: of the monotonic clock; UINT64_MAX: none. NOMEM. */
sessile_status rpc_request_open(rpc_request **out, rpc_channel *channel, const char *path,
                                const rpc_header *headers, size_t n, uint64_t deadline_us,
                                const rpc_replies *replies, void *ud, sessile_error *err);
int rpc_request_send(rpc_request *request, const void *data, size_t size); /* 0, -1 */
void rpc_request_end(rpc_request *request); /* no more messages */
size_t rpc_request_unsent(const rpc_request *request);
/* Stops reading replies (1) and goes on (0): the peer stops when its window is full. */
void rpc_request_pause(rpc_request *request, int paused);
/* Calls `ended` (CANCELLED) before it returns. */
void rpc_request_cancel(rpc_request *request);
/* A header or trailer that the server sent; NULL. In `ended`, or after a message. */
const char *rpc_request_header(const rpc_request *request, const char *name);
/* Each header and trailer that the server sent, in their order. */
void rpc_request_headers(const rpc_request *request,
                         int (*visit)(void *arg, const char *name, const char *value),
                         void *arg);

#endif
