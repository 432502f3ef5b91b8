/*
 * finder.h: finds the index of a key in a context, for callers that look up many keys.
 *
 * Proposals are judged and applied by looking up keys almost in the order of the list.
 * So a finder searches forward from its last result, and builds a table only when a key
 * was not found there. A proposal that keeps the order costs one walk over the list and
 * no memory.
 */
#ifndef CONTEXT_FINDER_H
#define CONTEXT_FINDER_H

#include "context/context.h"

typedef struct finder {
    const context *c; /* borrowed; must not change while the finder is used */
    size_t next;      /* where the search continues */
    int has_table;
    map table;
} finder;

void finder_init(finder *f, const context *c, const allocator *a);
void finder_deinit(finder *f);
/* 1 and *out, 0: not there, -1: NOMEM. */
int finder_find(finder *f, sessile_key key, size_t *out);

static inline int key_same(sessile_key a, sessile_key b)
{
    return a.entry == b.entry && a.n == b.n;
}

/* A message that the proposal in the making writes. */
static inline int key_is_own(sessile_key key)
{
    return key.entry == SESSILE_NO_ID;
}

#endif
