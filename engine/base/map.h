/* map.h: an open-addressing table from 64-bit hashes to 32-bit numbers. */
#ifndef BASE_MAP_H
#define BASE_MAP_H

#include <stdint.h>
#include "base/alloc.h"

typedef struct map {
    uint64_t *keys; /* 0: empty; the key 0 is kept as 1 */
    uint32_t *values;
    size_t capacity, count;
    const allocator *alloc;
} map;

void map_init(map *m, const allocator *a);
void map_deinit(map *m);
void map_clear(map *m); /* memory kept */
/* The bytes that it takes beside itself. */
static inline size_t map_bytes(const map *m)
{
    return m->capacity * (sizeof *m->keys + sizeof *m->values);
}
int map_reserve(map *m, size_t count);                    /* 0 or -1 */
int map_put(map *m, uint64_t key, uint32_t value);        /* sets or replaces; 0 or -1 */
int map_get(const map *m, uint64_t key, uint32_t *value); /* 1 found, 0 not */
/* Fetches what map_get() of a key will look at first. */
void map_prefetch(const map *m, uint64_t key);
int map_remove(map *m, uint64_t key); /* 1 removed, 0 not there */

#endif
