/* counted.c: counting references. */
#include "base/counted.h"

#include <stddef.h>

void counted_init(counted *c, void (*free)(void *object))
{
    atomic_init(&c->references, 1);
    c->free = free;
}

void counted_retain(void *object)
{
    counted *c = object;
    if (c)
        atomic_fetch_add_explicit(&c->references, 1, memory_order_relaxed);
}

void counted_release(void *object)
{
    counted *c = object;
    if (c && atomic_fetch_sub_explicit(&c->references, 1, memory_order_acq_rel) == 1)
        c->free(object);
}
