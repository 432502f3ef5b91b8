/* frame.h: the parts of gRPC that are bytes: messages in their frames, and the values of
 * three headers. It knows no connection. */
#ifndef RPC_FRAME_H
#define RPC_FRAME_H

#include "base/buf.h"
#include "rpc/rpc.h"

/* A message on the wire is one byte of flags, four of its size (big endian), and itself.
 */
#define FRAME_HEAD 5
void frame_head(unsigned char out[FRAME_HEAD], size_t size);

typedef struct frame_reader {
    buf body;     /* of the message that is incomplete */
    size_t limit; /* bytes of one message */
    unsigned char head[FRAME_HEAD];
    unsigned head_size; /* of the head: how much of it is there */
} frame_reader;

typedef enum frame_result {
    FRAME_MORE,       /* all bytes were taken */
    FRAME_MESSAGE,    /* a message is whole */
    FRAME_COMPRESSED, /* the compressed flag is set, or one that nobody knows */
    FRAME_LARGE,      /* its size is over the limit */
    FRAME_NOMEM
} frame_result;

void frame_init(frame_reader *r, size_t limit, const allocator *a);
void frame_deinit(frame_reader *r);
/* Takes bytes of *data, which it moves on, until a message is whole or no bytes are left.
 * *message holds until the next call and as long as the bytes that were given. Memory is
 * taken as bytes come, never by what a head claims. After an error the reader must not be
 * used again. */
frame_result frame_read(frame_reader *r, const unsigned char **data, size_t *size,
                        const unsigned char **message, size_t *message_size);
/* The message that was handed out is not needed any more: a stream may be open for long
 * after its first one. */
void frame_taken(frame_reader *r);
/* The size of the message that has begun, by its head; 0: none has, or its head is not
 * whole. */
size_t frame_expected(const frame_reader *r);
/* 1: a message has begun and is not whole. */
int frame_inside(const frame_reader *r);

/* The value of grpc-timeout in µs: 1 to 8 digits and a unit of "HMSmun". 0, or -1. */
int frame_timeout_parse(const char *text, uint64_t *us);
/* Prints µs, rounded up, in the finest unit that 8 digits hold. */
#define FRAME_TIMEOUT_SIZE 12
void frame_timeout_print(uint64_t us, char out[FRAME_TIMEOUT_SIZE]);

/* grpc-message: each byte outside of ' ' to '~', and '%', as %XX. Decoding takes what is
 * no such escape as it is; what is no UTF-8 then becomes U+FFFD. */
void frame_percent_put(buf *out, const char *text);
void frame_percent_take(buf *out, const char *text);

/* 1: "application/grpc", alone or followed by '+' or ';'. */
int frame_is_grpc(const char *content_type);

#endif
