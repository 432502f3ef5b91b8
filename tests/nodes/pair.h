/* pair.h: two nodes with the same new session open, as a fixture. */
#ifndef NODES_PAIR_H
#define NODES_PAIR_H

#include "nodes/node.h"

typedef struct pair {
    database *d; /* NULL: there is no such database here, and a line has said why */
    node a, b;
} pair;

/* kind, own: as database_new() takes them. Ended by pair_close(). */
pair *pair_new(const char *kind, int own);
/* A cmocka teardown: *state is a pair. */
int pair_close(void **state);
/* The pair of a case; skips the case when there is none. */
pair *both(void **state);

#endif
