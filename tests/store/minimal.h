/*
 * minimal.h: a store as a host would write it: in memory, with the least that works.
 *
 * Written from sessile_store.h alone. The medium stands for what a host keeps its data in
 * (a database, a bucket): it outlives the stores opened over it, in this process.
 */
#ifndef STORE_MINIMAL_H
#define STORE_MINIMAL_H

#include "sessile_store.h"

typedef struct minimal_medium minimal_medium;

minimal_medium *minimal_medium_new(void);
void minimal_medium_free(minimal_medium *m);

/* The table, and a self for it over that medium. */
const sessile_backend *minimal_store(minimal_medium *m, void **self);

#endif
