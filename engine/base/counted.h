/*
 * counted.h: objects counted by reference whose type the holder need not know.
 *
 * Such an object begins with a `counted`. Counting is safe under threads.
 */
#ifndef BASE_COUNTED_H
#define BASE_COUNTED_H

#include <stdatomic.h>

typedef struct counted {
    atomic_uint references;
    void (*free)(void *object);
} counted;

/* One reference, the caller's. */
void counted_init(counted *c, void (*free)(void *object));
/* NULL is ignored by both. Releasing the last reference frees the object. */
void counted_retain(void *object);
void counted_release(void *object);

#endif
