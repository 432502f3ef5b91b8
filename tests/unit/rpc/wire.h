/* wire.h: a socket that says exactly what a test wants. */
#ifndef UNIT_RPC_WIRE_H
#define UNIT_RPC_WIRE_H

#include <stddef.h>

/* Connects to "127.0.0.1:PORT". */
int wire_open(const char *address);
/* Sends all, or until the peer is gone. 0, -1. */
int wire_send(int fd, const void *data, size_t size);
/* Reads until the end, or for timeout_ms without a byte, or out is full; adds a NUL.
 * *ended (may be NULL): the peer closed. The bytes. */
size_t wire_read(int fd, char *out, size_t size, int timeout_ms, int *ended);
/* Reads and drops for so long, or to the end: 1. */
int wire_drain(int fd, int timeout_ms);

/* ---- HTTP/2, frame by frame */

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

/* Connects, sends the preface and SETTINGS of that size (of entries of 6 bytes). */
int wire_http2(const char *address, const void *settings, size_t size);
int wire_frame(int fd, int type, int flags, unsigned stream, const void *data,
               size_t size);
/* HEADERS of a gRPC request of a path, with `more` bytes of HPACK behind. */
int wire_call(int fd, unsigned stream, int flags, const char *path, const void *more,
              size_t size);
/* The same of /t.Echo/METHOD. */
int wire_request(int fd, unsigned stream, int flags, const char *method, const void *more,
                 size_t size);
/* Reads frames until the end or for timeout_ms without one. What came is counted. */
typedef struct frames {
    unsigned count[10]; /* by type */
    unsigned goaway;    /* error code of the last GOAWAY; ~0u: none */
    unsigned reset;     /* of the last RST_STREAM; ~0u: none */
    int ended;
} frames;
frames wire_frames(int fd, int timeout_ms);
/* The same, and adds what each WINDOW_UPDATE grants to the credit of its stream. 1: the
 * peer closed. */
int wire_credit(int fd, int timeout_ms, size_t *credit, unsigned streams);

#endif
