/*
 * alloc.c: the injected allocator, and blocks that belong to the host.
 *
 * Owns every call of malloc and its relatives in the engine. Must never end the
 * process when there is no memory: it returns NULL, and the caller reports NOMEM.
 */
#include "base/alloc.h"

#include <stdalign.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* The smallest capacity an array is grown to. */
#define FIRST_CAPACITY 8
/* A capacity from which on an array grows by a quarter: many sessions are in memory, and
 * half of what they have should not be empty. */
#define MANY 1024

static void *default_fn(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    return realloc(ptr, nsize);
}

const allocator allocator_default = {default_fn, NULL};

/* In the allocator's contract size 0 means free, so an empty block has one byte. */
static size_t asked(size_t size)
{
    return size ? size : 1;
}

void *mem_alloc(const allocator *a, size_t size)
{
    if (size > PTRDIFF_MAX)
        return NULL;
    return a->fn(a->ud, NULL, 0, asked(size));
}

void *mem_zalloc(const allocator *a, size_t size)
{
    void *ptr = mem_alloc(a, size);
    if (ptr)
        memset(ptr, 0, size);
    return ptr;
}

void *mem_realloc(const allocator *a, void *ptr, size_t osize, size_t nsize)
{
    if (nsize > PTRDIFF_MAX)
        return NULL;
    if (!ptr)
        return mem_alloc(a, nsize);
    return a->fn(a->ud, ptr, asked(osize), asked(nsize));
}

void mem_free(const allocator *a, void *ptr, size_t size)
{
    if (ptr)
        a->fn(a->ud, ptr, asked(size), 0);
}

/* Copies data and a NUL to a block of size + 1, or does nothing for NULL. */
static char *fill(char *block, const void *data, size_t size)
{
    if (block) {
        if (size)
            memcpy(block, data, size);
        block[size] = 0;
    }
    return block;
}

char *mem_dup(const allocator *a, const void *data, size_t size)
{
    return size < PTRDIFF_MAX ? fill(mem_alloc(a, size + 1), data, size) : NULL;
}

int mem_grow(const allocator *a, void **array, size_t *capacity, size_t need, size_t size)
{
    size_t wanted = *capacity ? *capacity : FIRST_CAPACITY;
    void *old, *grown;

    if (need <= *capacity)
        return 0;
    if (size == 0 || need > PTRDIFF_MAX / size)
        return -1;
    while (wanted < need && wanted <= PTRDIFF_MAX / 2)
        wanted += wanted < MANY ? wanted : wanted / 4;
    if (wanted < need)
        wanted = need;
    if (wanted > PTRDIFF_MAX / size)
        wanted = need;
    /* The caller's variable is a `T *` whose address was cast. It is copied as bytes,
     * because access through a `void *` lvalue would violate the aliasing rules. */
    memcpy(&old, array, sizeof old);
    grown = mem_realloc(a, old, *capacity * size, wanted * size);
    if (!grown)
        return -1;
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return 0;
}

/* The header of a block for the host. host_free() has no store to ask for the
 * allocator, because a block can outlive its store. Aligned, so that what follows is
 * too. */
typedef struct given {
    alignas(max_align_t) allocator from;
    size_t size; /* of the whole, as it was asked for */
} given;

void *host_alloc(const allocator *a, size_t size)
{
    given *block;
    if (size > PTRDIFF_MAX - sizeof *block)
        return NULL;
    block = mem_alloc(a, sizeof *block + size);
    if (!block)
        return NULL;
    block->from = *a;
    block->size = sizeof *block + size;
    return block + 1;
}

char *host_dup(const allocator *a, const void *data, size_t size)
{
    return size < PTRDIFF_MAX ? fill(host_alloc(a, size + 1), data, size) : NULL;
}

size_t host_size(const void *ptr)
{
    return ((const given *)ptr - 1)->size - sizeof(given);
}

void host_free(void *ptr)
{
    if (ptr) {
        given *block = (given *)ptr - 1;
        allocator from = block->from;
        mem_free(&from, block, block->size);
    }
}
