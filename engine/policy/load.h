/* load.h: the loader, for the two files that load a chain. */
#ifndef POLICY_LOAD_H
#define POLICY_LOAD_H

#include "policy/chain.h"
#include "policy/source.h"
#include "policy/worker.h"

typedef struct loader {
    sessile_policy *p;
    vm *vm; /* only for looking into files: freed when all are loaded */
    source_place place;
    const char *program;     /* what looks into foreign files; or NULL */
    worker *worker;          /* it runs, once one was met */
    unsigned nodes;          /* files that were looked into */
    char wanted[CHAIN_NAME]; /* what the last one required that it does not have yet */
} loader;

/* A file that is looked into, and the one that requires it. */
typedef struct looked {
    const source *c;
    unsigned node;
    const struct looked *outer; /* NULL: a policy of the chain */
    int foreign;                /* it, or one that it requires */
    buf *facts;                 /* of a foreign one: what the worker saw; else empty */
} looked;

/*
 * Looks into a file until all that it requires is in the chain: runs `inspect` with arg
 * in the loader's VM, where it leaves its results; for a foreign file facts are there
 * before. Errors: those of looking, of finding and reading what is required; POLICY: a
 * circle; DENIED: a path that leads away; LIMIT: too many, too deep, too large.
 */
sessile_status load_look(loader *l, looked *at, lua_CFunction inspect, void *arg,
                         int results, sessile_error *err);

/* The folder that a file lies in, appended: "." for none. */
void load_folder(const source *c, buf *out);

#endif
