/*
 * wire.h: numbers and texts in one byte order, for messages between two processes.
 *
 * Little-endian, no padding. A reader that runs past its end sets `bad` and returns
 * zeros from then on, so that a message can be read first and checked afterwards.
 */
#ifndef BASE_WIRE_H
#define BASE_WIRE_H

#include "base/buf.h"
#include "sessile.h"

void wire_put_u8(buf *out, uint8_t n);
void wire_put_u32(buf *out, uint32_t n);
void wire_put_u64(buf *out, uint64_t n);
void wire_put_i64(buf *out, int64_t n);
/* A size of 32 bits, then the bytes. */
void wire_put_text(buf *out, const char *data, size_t size);

typedef struct wire {
    const unsigned char *at, *end;
    int bad; /* a read went past the end */
} wire;

void wire_init(wire *w, const void *data, size_t size);
uint8_t wire_u8(wire *w);
uint32_t wire_u32(wire *w);
uint64_t wire_u64(wire *w);
int64_t wire_i64(wire *w);
sessile_slice wire_text(wire *w); /* borrowed from the input */
/* A count of items of at least `each` bytes: bad when that many cannot follow. */
uint32_t wire_count(wire *w, size_t each);

#endif
