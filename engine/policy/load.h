/* load.h: the loader, for the two files that load a chain. */
#ifndef POLICY_LOAD_H
#define POLICY_LOAD_H

#include "policy/chain.h"
#include "policy/source.h"
#include "policy/worker.h"

typedef struct loader {
    sessile_policy *p;
    vm *vm; /* only to inspect files: freed when all are loaded */
    source_place place;
    const char *program; /* the worker program, which inspects foreign files; or NULL */
    worker *worker;      /* started for the first foreign file; else NULL */
    unsigned nodes;      /* number of inspected files */
    char wanted[CHAIN_NAME]; /* the missing name that the last file required */
    int is_fallback; /* a chain that another one names: it has no fallback itself */
} loader;

/* A file that is being inspected, and the one that requires it. */
typedef struct inspected {
    const source *c;
    unsigned node;
    const struct inspected *outer; /* NULL: a policy of the chain */
    int foreign;                   /* this file, or one that it requires, is foreign */
    buf *facts; /* of a foreign file: the worker's answer; else empty */
} inspected;

/* Inspects a file until everything that it requires is in the chain: runs `inspect`
 * with arg in the loader's VM, where it leaves its results. For a foreign file the
 * facts exist before that. Errors: those of inspecting, finding and reading; POLICY: a
 * cycle; DENIED: a path that leads out of the folder; LIMIT: too many, too deep, too
 * large. */
sessile_status load_inspect(loader *l, inspected *at, lua_CFunction inspect, void *arg,
                            int results, sessile_error *err);

/* Appends the folder of a file: "." when its path has none. */
void load_folder(const source *c, buf *out);

#endif
