/*
 * alloc_count.h: an allocator that knows how many bytes it has given and not got back.
 *
 * For an object whose size is to be told: whatever it holds is allocated with it. Every
 * block is freed with its size (alloc.h), so the sum is exact but for what the allocator
 * below adds to each block. Any thread may allocate.
 */
#ifndef BASE_ALLOC_COUNT_H
#define BASE_ALLOC_COUNT_H

#include <stdatomic.h>

#include "base/alloc.h"

typedef struct alloc_count {
    allocator alloc; /* to allocate with; it holds the address of this struct */
    allocator under;
    atomic_size_t bytes;
} alloc_count;

void alloc_count_init(alloc_count *c, const allocator *under);
size_t alloc_count_bytes(const alloc_count *c);

#endif
