/*
 * map.c: an open-addressing table from 64-bit hashes to 32-bit numbers.
 *
 * Must never get keys that an attacker chooses unless they were hashed with a secret
 * (see hash64()): the table has none of its own.
 *
 * It uses linear probing over a power of two, and is at most three quarters full. A
 * removal moves later entries back over the hole instead of leaving a tombstone, so
 * that a table does not get slower by insertions and removals.
 */
#include "base/map.h"

#include <string.h>

#define FIRST_CAPACITY 16

void map_init(map *m, const allocator *a)
{
    memset(m, 0, sizeof *m);
    m->alloc = a;
}

void map_deinit(map *m)
{
    const allocator *a = m->alloc;
    mem_free(a, m->keys, m->capacity * sizeof *m->keys);
    mem_free(a, m->values, m->capacity * sizeof *m->values);
    map_init(m, a);
}

void map_clear(map *m)
{
    if (m->keys)
        memset(m->keys, 0, m->capacity * sizeof *m->keys);
    m->count = 0;
}

/* The home slot of key: Fibonacci hashing, for keys that are small numbers. */
static size_t home_of(uint64_t key, size_t capacity)
{
    return (size_t)((key * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (capacity - 1);
}

/* The slot of key, or the empty one where it would go. There is always an empty one. */
static size_t slot_of(const uint64_t *keys, size_t capacity, uint64_t key)
{
    size_t at = home_of(key, capacity);
    while (keys[at] != 0 && keys[at] != key)
        at = (at + 1) & (capacity - 1);
    return at;
}

static int rehash(map *m, size_t capacity)
{
    uint64_t *keys = mem_zalloc(m->alloc, capacity * sizeof *keys);
    uint32_t *values = mem_alloc(m->alloc, capacity * sizeof *values);
    size_t i;

    if (!keys || !values) {
        mem_free(m->alloc, keys, capacity * sizeof *keys);
        mem_free(m->alloc, values, capacity * sizeof *values);
        return -1;
    }
    for (i = 0; i < m->capacity; i++) {
        if (m->keys[i] != 0) {
            size_t at = slot_of(keys, capacity, m->keys[i]);
            keys[at] = m->keys[i];
            values[at] = m->values[i];
        }
    }
    mem_free(m->alloc, m->keys, m->capacity * sizeof *m->keys);
    mem_free(m->alloc, m->values, m->capacity * sizeof *m->values);
    m->keys = keys;
    m->values = values;
    m->capacity = capacity;
    return 0;
}

int map_reserve(map *m, size_t count)
{
    size_t capacity = m->capacity ? m->capacity : FIRST_CAPACITY;
    if (count > (UINT64_C(1) << 31)) /* the index of a slot comes from 32 bits */
        return -1;
    while (capacity - capacity / 4 < count)
        capacity *= 2;
    return capacity == m->capacity ? 0 : rehash(m, capacity);
}

int map_put(map *m, uint64_t key, uint32_t value)
{
    size_t at;
    key += key == 0;
    if (m->capacity) { /* replacing must work even when there is no memory to grow */
        at = slot_of(m->keys, m->capacity, key);
        if (m->keys[at] == key) {
            m->values[at] = value;
            return 0;
        }
    }
    if (map_reserve(m, m->count + 1))
        return -1;
    at = slot_of(m->keys, m->capacity, key);
    m->keys[at] = key;
    m->values[at] = value;
    m->count++;
    return 0;
}

/* 1 when the key is there; *at is its slot. */
static int find(const map *m, uint64_t key, size_t *at)
{
    if (m->count == 0)
        return 0;
    *at = slot_of(m->keys, m->capacity, key + (key == 0));
    return m->keys[*at] != 0;
}

int map_get(const map *m, uint64_t key, uint32_t *value)
{
    size_t at;
    if (!find(m, key, &at))
        return 0;
    if (value)
        *value = m->values[at];
    return 1;
}

void map_prefetch(const map *m, uint64_t key)
{
    size_t home;
    if (m->count == 0)
        return;
    home = home_of(key + (key == 0), m->capacity);
    __builtin_prefetch(&m->keys[home]);
    __builtin_prefetch(&m->values[home]);
}

int map_remove(map *m, uint64_t key)
{
    size_t hole, at, mask = m->capacity - 1;
    if (!find(m, key, &hole))
        return 0;
    for (at = (hole + 1) & mask; m->keys[at] != 0; at = (at + 1) & mask) {
        /* The entry at `at` may move to the hole unless its home is between the two. */
        size_t home = home_of(m->keys[at], m->capacity);
        if (((at - home) & mask) >= ((at - hole) & mask)) {
            m->keys[hole] = m->keys[at];
            m->values[hole] = m->values[at];
            hole = at;
        }
    }
    m->keys[hole] = 0;
    m->count--;
    return 1;
}
