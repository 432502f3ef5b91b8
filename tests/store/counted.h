/*
 * counted.h: a store that counts how often it is asked. To a database each call of its
 * table is a question and an answer over a wire.
 */
#ifndef STORE_COUNTED_H
#define STORE_COUNTED_H

#include "store/minimal.h"

/* Of all stores that counted_store() has opened. */
extern struct counted {
    unsigned open, size, read, append;
} counted;

/* A plain store over the medium; NULL: it cannot be opened. One medium at a time. */
sessile_store *counted_store(minimal_medium *medium);

#endif
