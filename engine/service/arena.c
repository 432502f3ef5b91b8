/* arena.c: blocks of 8 KiB and more, chained. */
#include "service/arena.h"

#include <stdalign.h>
#include <stdint.h>

enum { BLOCK = 8192 };

struct arena_block {
    arena_block *next;
    size_t size; /* of the whole block */
    alignas(max_align_t) char bytes[];
};

void arena_init(arena *a, const allocator *alloc)
{
    *a = (arena){.alloc = alloc};
}

void arena_free(arena *a)
{
    while (a->blocks) {
        arena_block *block = a->blocks;
        a->blocks = block->next;
        mem_free(a->alloc, block, block->size);
    }
    a->used = 0;
}

void *arena_new(arena *a, size_t size)
{
    const size_t align = alignof(max_align_t);
    if (size > SIZE_MAX / 2)
        return NULL;
    size = (size + align - 1) / align * align;
    size_t room = a->blocks ? a->blocks->size - sizeof *a->blocks - a->used : 0;
    if (size > room) {
        size_t bytes = sizeof *a->blocks + (size > BLOCK ? size : BLOCK);
        arena_block *block = mem_zalloc(a->alloc, bytes);
        if (!block)
            return NULL;
        block->next = a->blocks;
        block->size = bytes;
        a->blocks = block;
        a->used = 0;
    }
    void *out = a->blocks->bytes + a->used;
    a->used += size;
    return out;
}
