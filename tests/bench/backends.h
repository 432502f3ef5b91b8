/*
 * backends.h: the stores that are compared, each beside its bare library and, where it is
 * installed, LangGraph's saver for it; and the table that says what came of it.
 */
#ifndef BENCH_BACKENDS_H
#define BENCH_BACKENDS_H

#include "bench/bare.h"

enum { FILES_BACKEND, SQLITE_BACKEND, POSTGRES_BACKEND, BACKENDS };

typedef struct backend {
    const char *name;
    const bare_kind *bare;
    char missing[1200]; /* why there are no rows of it; empty: there are */
} backend;

extern backend backends[BACKENDS];

/* Begins the run: the folder, the backends that are there, the table's head. */
void backends_begin(int argc, char **argv);
int backends_end(void);

/* The store `name` of a backend. Each name is a store of its own; opened twice it is two
 * handles of one, as two nodes have it. */
sessile_store *backend_store(const backend *b, const char *name,
                             sessile_key_source source, sessile_durability durability);
/* The schema in which the PostgreSQL store `name` is, for who opens it elsewhere; and a
 * URL with one parameter more. */
void backend_schema(char out[128], const char *name);
void url_add(char *out, size_t room, const char *url, const char *name,
             const char *value);
/* A bare connection; first: the first of this name. */
bare *backend_bare(const backend *b, const char *name, int first, int synced);

/* ---- peers */

typedef struct peer peer;
/* Runs a script of node for the backend: langgraph.mjs or adk.mjs, with their folder. A
 * note says what it is, or why there is none: NULL. */
peer *peer_start(const backend *b, const char *name, const char *script);
/* "make N", "put N" or "load N", as the scripts say: microseconds. */
double peer_do(peer *p, const char *verb, size_t n);
/* NULL is ignored. */
void peer_stop(peer *p);

/* ---- the table */

typedef struct result {
    const char *operation;
    const backend *of;
    samples *ours, *bare, *peer; /* bare and peer may be NULL or empty */
    const char *bare_is;
    double target;   /* of the ratio of the medians; 0: none was set */
    double asked_ms; /* of ours, p95; 0: none was set */
} result;
/* Prints the row and empties its samples. */
void result_print(const result *r);

#endif
