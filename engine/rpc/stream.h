/* stream.h: one call or request on an HTTP/2 connection: what waits to be sent, and the
 * messages that come. */
#ifndef RPC_STREAM_H
#define RPC_STREAM_H

#include <stdatomic.h>

#include "rpc/frame.h"

/* Bytes that wait to be sent. */
typedef struct chunk {
    struct chunk *next;
    size_t size, sent;
    unsigned char data[];
} chunk;

typedef struct chunks {
    chunk *first, *last;
} chunks;

/* A copy of data, behind a head of gRPC where framed. NULL: no memory. */
chunk *chunk_new(const allocator *a, const void *data, size_t size, int framed);
void chunks_put(chunks *list, chunk *one);
/* Moves all of from to the end of list. */
void chunks_move(chunks *list, chunks *from);
/* Copies at most size bytes and frees what was copied. */
size_t chunks_take(chunks *list, void *out, size_t size, const allocator *a);
/* Frees the first one. */
void chunks_drop(chunks *list, const allocator *a);
/* Frees all. Returns the bytes that were not sent. */
size_t chunks_free(chunks *list, const allocator *a);

struct http2;

typedef struct stream {
    struct http2 *h2;           /* NULL: it is over */
    struct stream *next, *prev; /* of h2 */
    int32_t id;
    struct {
        chunks queue;
        unsigned headers : 1; /* were submitted */
        unsigned begun : 1;   /* were sent */
        unsigned idle : 1;    /* nghttp2 waits to be told that there is more */
        unsigned final : 1;   /* nothing is added to the queue any more */
        unsigned done : 1;    /* all was handed to nghttp2 */
        uint64_t since;       /* when something was sent last, or could be */
    } out;
    struct {
        frame_reader reader;
        buf held;          /* bytes that came while it was paused */
        size_t unconsumed; /* of the window: not yet given back */
        size_t reserved;   /* of the connection's memory for messages */
        uint64_t since;    /* when the message that is incomplete began; 0: none is */
        struct stream *next_waiting;
        size_t expected; /* in.raw: bytes of the body that are still to come */
        unsigned paused : 1;
        unsigned waiting : 1; /* for memory */
        unsigned wide : 1;
        unsigned ended : 1;
        unsigned raw : 1;  /* no frames of gRPC */
        unsigned deaf : 1; /* what comes is thrown away */
    } in;
} stream;

#endif
