/*
 * fenced.h: a store as a host would write it over a database: no locks, and caches,
 * drafts, removal and lists all the same, each change compared and done in one step.
 *
 * Written from sessile_store.h alone. The medium stands for the database: it outlives the
 * stores opened over it, in this process.
 */
#ifndef STORE_FENCED_H
#define STORE_FENCED_H

#include "sessile_store.h"

typedef struct fenced_medium fenced_medium;

fenced_medium *fenced_medium_new(void);
void fenced_medium_free(fenced_medium *m);

/* The table, and a self for it over that medium. */
const sessile_backend *fenced_store(fenced_medium *m, void **self);

/* What set_timeout was last given, through any handle; -2: nothing yet. */
int fenced_timeout(fenced_medium *m);

#endif
