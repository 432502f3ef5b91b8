/* intake.h: what comes on a stream, how much of it may come, and when it must be there.
 */
#ifndef RPC_INTAKE_H
#define RPC_INTAKE_H

#include "rpc/http2.h"

/* Bytes that a peer may send before they are taken: on a stream, and on all of a
 * connection. */
enum {
    SERVER_WINDOW = 16 * 1024,
    SERVER_WIDE = 512 * 1024, /* of a stream with a message that needs it */
    SERVER_WIDES = 4,         /* streams of a connection that are so */
    SERVER_CONNECTION = 1024 * 1024,
    CLIENT_WINDOW = 1024 * 1024,
    CLIENT_CONNECTION = 8 * 1024 * 1024
};

void intake_init(stream *s, const rpc_limits *limits, const allocator *a);
void intake_deinit(stream *s);
/* The stream carries a plain body of up to `expected` bytes instead of gRPC frames. */
void intake_raw(stream *s, size_t expected);
/* Bytes came. Calls side->data for each message that is whole. */
void intake_take(stream *s, const unsigned char *data, size_t size);
/* Nothing more comes. A message that is not whole is bad. */
void intake_end(stream *s);
/* Stops taking, or takes what was held and lets the peer send again. */
void intake_pause(stream *s, int paused);
/* Throws away what comes from now on. */
void intake_ignore(stream *s);
/* It leaves its connection. */
void intake_leave(stream *s);
/* Ends a message that has not arrived in time. When to look again. */
uint64_t intake_look(stream *s, uint64_t now);

#endif
