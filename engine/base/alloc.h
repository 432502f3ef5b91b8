/* alloc.h: the injected allocator, and blocks that belong to the host. */
#ifndef BASE_ALLOC_H
#define BASE_ALLOC_H

#include <stddef.h>
#include "sessile.h"

typedef struct allocator {
    sessile_alloc fn;
    void *ud;
} allocator;

/* realloc and free. */
extern const allocator allocator_default;

void *mem_alloc(const allocator *a, size_t size); /* NULL: no memory */
void *mem_zalloc(const allocator *a, size_t size);
void *mem_realloc(const allocator *a, void *ptr, size_t osize, size_t nsize);
void mem_free(const allocator *a, void *ptr, size_t size); /* NULL is ignored */
char *mem_dup(const allocator *a, const void *data,
              size_t size); /* size + 1, with a NUL */

/* Grows an array to hold at least need elements of size bytes, and some more, so that
 * growing one by one costs a constant time each. 0, or -1 and nothing changed. */
int mem_grow(const allocator *a, void **array, size_t *capacity, size_t need,
             size_t size);

/* A block for the host. host_free() returns it to its allocator. */
void *host_alloc(const allocator *a, size_t size);
char *host_dup(const allocator *a, const void *data, size_t size); /* with a NUL */
void host_free(void *ptr);                                         /* NULL is ignored */
/* The size of a block from host_alloc() or host_dup(). */
size_t host_size(const void *ptr);

#endif
