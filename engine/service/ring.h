/* ring.h: a queue of records with a limit. When it is full, the oldest is dropped. */
#ifndef SERVICE_RING_H
#define SERVICE_RING_H

#include "base/buf.h"

/* The most bytes that the records of a ring have together. */
#define RING_BYTES (8u << 20)

typedef struct ring {
    buf *items;
    size_t room, first, count, bytes;
    const allocator *alloc;
} ring;

int ring_init(ring *r, size_t room, const allocator *a); /* 0, or -1: no memory */
void ring_deinit(ring *r);
/* Takes the memory of record, and inits it again. Returns how many records were dropped
 * for it: it counts itself when it alone is too large. */
size_t ring_push(ring *r, buf *record);
/* Moves the oldest record to *out, which the caller frees: 1; 0: there is none. */
int ring_pop(ring *r, buf *out);

#endif
