/* alloc_count.c: an allocator that counts. */
#include "base/alloc_count.h"

static void *count_fn(void *ud, void *ptr, size_t osize, size_t nsize)
{
    alloc_count *c = ud;
    void *got = c->under.fn(c->under.ud, ptr, osize, nsize);
    if (got || nsize == 0) /* else nothing has changed */
        atomic_fetch_add_explicit(&c->bytes, nsize - osize, memory_order_relaxed);
    return got;
}

void alloc_count_init(alloc_count *c, const allocator *under)
{
    c->alloc = (allocator){count_fn, c};
    c->under = *under;
    atomic_init(&c->bytes, 0);
}

size_t alloc_count_bytes(const alloc_count *c)
{
    return atomic_load_explicit(&c->bytes, memory_order_relaxed);
}
