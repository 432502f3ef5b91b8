/*
 * ring.c: a ring of buffers. Its caller holds the lock.
 *
 * The oldest records are dropped, not the newest: who looks at telemetry while something
 * is wrong wants to see what happens now.
 */
#include "service/ring.h"

int ring_init(ring *r, size_t room, const allocator *a)
{
    *r = (ring){.room = room, .alloc = a};
    r->items = mem_zalloc(a, room * sizeof *r->items);
    return r->items ? 0 : -1;
}

void ring_deinit(ring *r)
{
    buf record;
    while (ring_pop(r, &record))
        buf_deinit(&record);
    mem_free(r->alloc, r->items, r->room * sizeof *r->items);
    *r = (ring){0};
}

int ring_pop(ring *r, buf *out)
{
    if (r->count == 0)
        return 0;
    *out = r->items[r->first];
    r->first = (r->first + 1) % r->room;
    r->count--;
    r->bytes -= out->capacity;
    return 1;
}

size_t ring_push(ring *r, buf *record)
{
    size_t dropped = 0;
    buf oldest;

    if (record->capacity > RING_BYTES) {
        buf_deinit(record);
        return 1;
    }
    while (r->count == r->room || r->bytes > RING_BYTES - record->capacity) {
        ring_pop(r, &oldest);
        buf_deinit(&oldest);
        dropped++;
    }
    r->items[(r->first + r->count++) % r->room] = *record;
    r->bytes += record->capacity;
    buf_init(record, record->alloc);
    return dropped;
}
