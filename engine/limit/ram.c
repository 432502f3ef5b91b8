/*
 * limit_ram.c: windows in memory, under a mutex.
 *
 * Owns a table of buckets that doubles when a key finds no record in its bucket. Beyond
 * 65,536 records, or when memory runs out, keys share records.
 */
#include "base/text.h"
#include "limit/places.h"

#include <string.h>

enum { BUCKETS_FIRST = 8, BUCKETS_MOST = 8192 };

typedef limit_record bucket[LIMIT_BUCKET];

typedef struct ram_place {
    limit_place place;
    const os_table *os;
    allocator alloc;
    pthread_mutex_t mutex; /* all that follows */
    size_t count;          /* of buckets: a power of two */
    bucket *buckets;
} ram_place;

static bucket *bucket_of(ram_place *p, uint64_t key)
{
    return &p->buckets[key & (p->count - 1)];
}

/* Doubles the table. A bucket's records go to one of two, so all of them have room. */
static int grow(ram_place *p)
{
    size_t old = p->count;
    if (old >= BUCKETS_MOST)
        return -1;
    bucket *more = mem_zalloc(&p->alloc, 2 * old * sizeof *more);
    if (!more)
        return -1;
    for (size_t b = 0; b < old; b++) {
        size_t used[2] = {0, 0};
        for (int i = 0; i < LIMIT_BUCKET; i++) {
            const limit_record *r = &p->buckets[b][i];
            size_t high = (r->key & old) != 0;
            if (r->key)
                more[b + high * old][used[high]++] = *r;
        }
    }
    mem_free(&p->alloc, p->buckets, old * sizeof *p->buckets);
    p->buckets = more;
    p->count = 2 * old;
    return 0;
}

static limit_answer ram_take(limit_place *self, limit_ask *ask, sessile_error *why)
{
    ram_place *p = (ram_place *)self;
    (void)why;
    pthread_mutex_lock(&p->mutex);
    limit_time now = limit_now(p->os, 0);
    limit_record *r = limit_bucket_find(*bucket_of(p, ask->key), ask, now, 0);
    while (!r) {
        int share = grow(p) != 0;
        r = limit_bucket_find(*bucket_of(p, ask->key), ask, now, share);
    }
    limit_window_take(r, ask, now);
    pthread_mutex_unlock(&p->mutex);
    return ask->retry_ms ? LIMIT_FULL : LIMIT_COUNTED;
}

static void ram_undo(limit_place *self, const limit_ask *ask)
{
    ram_place *p = (ram_place *)self;
    pthread_mutex_lock(&p->mutex);
    limit_time now = limit_now(p->os, 0);
    limit_record *r = limit_bucket_find(*bucket_of(p, ask->key), ask, now, 0);
    if (r)
        limit_window_undo(r, ask, now);
    pthread_mutex_unlock(&p->mutex);
}

static void ram_free(limit_place *self)
{
    ram_place *p = (ram_place *)self;
    allocator a = p->alloc;
    mem_free(&a, p->buckets, p->count * sizeof *p->buckets);
    pthread_mutex_destroy(&p->mutex);
    mem_free(&a, p, sizeof *p);
}

sessile_status limit_ram_open(limit_place **out, const os_table *os, const allocator *a,
                              sessile_error *err)
{
    *out = NULL;
    ram_place *p = mem_zalloc(a, sizeof *p);
    if (!p)
        return fail_nomem(err);
    p->buckets = mem_zalloc(a, BUCKETS_FIRST * sizeof *p->buckets);
    if (!p->buckets) {
        mem_free(a, p, sizeof *p);
        return fail_nomem(err);
    }
    p->place = (limit_place){ram_take, ram_undo, ram_free};
    p->os = os;
    p->alloc = *a;
    p->count = BUCKETS_FIRST;
    pthread_mutex_init(&p->mutex, NULL);
    *out = &p->place;
    return SESSILE_OK;
}
