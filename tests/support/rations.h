/*
 * rations.h: an allocator that gives a number of blocks and then no more.
 *
 *   rations r = {3, 0};                  three allocations succeed, all others fail
 *   const allocator a = {ration, &r};
 *
 * Not for several threads.
 */
#ifndef SUPPORT_RATIONS_H
#define SUPPORT_RATIONS_H

#include <stddef.h>

typedef struct rations {
    long left; /* allocations that still succeed; negative: all of them */
    long live; /* blocks that have not been freed */
} rations;

/* A sessile_alloc; ud is the rations. */
void *ration(void *ud, void *ptr, size_t osize, size_t nsize);

#endif
