/* http2.h: HTTP/2 on one connection, both sides, by nghttp2. */
#ifndef RPC_HTTP2_H
#define RPC_HTTP2_H

#include <nghttp2/nghttp2.h>

#include "rpc/conn.h"
#include "rpc/fields.h"
#include "rpc/stream.h"

/* What a server and a client make of a stream. None of them may end the connection. */
typedef struct http2_side {
    /* A stream that the peer began, in the list of h2; NULL: no memory. */
    stream *(*begun)(struct http2 *h2, int32_t id);
    void (*header)(stream *s, const char *name, size_t name_size, const char *value,
                   size_t value_size);
    void (*headers_done)(stream *s);
    /* A message of gRPC, or (in.raw) a part of another body. */
    void (*data)(stream *s, const unsigned char *data, size_t size);
    /* The peer sends nothing more. */
    void (*ended)(stream *s);
    /* Bytes of it were handed to the connection. */
    void (*sent)(stream *s, size_t size);
    /* All data were handed to the connection. 1: trailers were submitted. */
    int (*last)(stream *s);
    /* The peer sent what is no message of gRPC, one that is too large, or one that did
     * not arrive in time (FRAME_MORE). What it sends from now on is thrown away. */
    void (*bad)(stream *s, frame_result why);
    /* It is over: by an error code of HTTP/2, or because the connection ended (-1). */
    void (*closed)(stream *s, int64_t error);
} http2_side;

/* How often something may be done: `burst` at once, `rate` a second on the long run. */
typedef struct bucket {
    double tokens;
    uint64_t at_us;
} bucket;

typedef struct http2 {
    nghttp2_session *session;
    conn *conn;
    const http2_side *side;
    stream *streams; /* those that are not over */
    unsigned count;
    uint64_t idle_since;
    unsigned began : 1; /* a stream has begun */
    unsigned going : 1; /* the peer said GOAWAY */
    struct {
        size_t reserved;      /* for messages that are coming */
        stream *first, *last; /* wait for some, in the order in which they asked */
        unsigned wide;        /* streams whose window was opened wide */
    } memory;
    struct {
        bucket resets, pings, settings, empty, other;
    } floods;
    uint64_t pinged; /* when the last PING was sent; client */
} http2;

/* Begins on a connection: a server's with a listener, a client's with a channel. 0, -1.
 */
int http2_begin(conn *c);
http2 *http2_of(conn *c);

/* What nghttp2 calls, with the http2 as its argument; NULL: no memory. */
nghttp2_session_callbacks *http2_callbacks(void);

void http2_add(http2 *h2, stream *s, int32_t id);
void http2_remove(http2 *h2, stream *s);
/* There is more to send, or nothing more will come. */
void http2_more(stream *s);
/* Resets it. */
void http2_reset(stream *s, uint32_t error);
/* A server that has replied in full still takes the rest of the request for so long, and
 * then resets the stream. A client that is still sending (curl 7.88) takes a reset for an
 * error, and throws the reply away. */
enum { HTTP2_LINGER_MS = 1000 };
/* 1: the stream of such a server, in that time. */
int http2_lingers(const stream *s);
/* 1: nothing can be sent on it until the peer opens its window. */
int http2_stuck(stream *s);

/* An nghttp2_nv that points to what is given, and copies it when submitted. */
nghttp2_nv http2_nv(const char *name, const char *value);
/* Submits what a stream says first: its own and more fields. 0; -1: no memory. */
int http2_headers(stream *s, const nghttp2_nv *own, size_t n, const fields *more,
                  int last);
int http2_trailers(stream *s, const nghttp2_nv *own, size_t n, const fields *more);

/* Of a server's connection, as conn.h says (serve.c). */
size_t serve_held(conn *c);
size_t serve_shed(conn *c);

extern const http2_side http2_server, http2_client;

#endif
