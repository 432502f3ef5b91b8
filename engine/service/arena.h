/* arena.h: memory that is freed as a whole: what a call reads and makes. */
#ifndef SERVICE_ARENA_H
#define SERVICE_ARENA_H

#include "base/alloc.h"

typedef struct arena_block arena_block;

typedef struct arena {
    const allocator *alloc;
    arena_block *blocks; /* the newest first */
    size_t used;         /* of the newest */
} arena;

void arena_init(arena *a, const allocator *alloc);
void arena_free(arena *a);
/* Zeroed, aligned for anything; NULL: no memory. */
void *arena_new(arena *a, size_t size);

#endif
