/* chain.h: a loaded chain of policies and its pool of VMs, for the files of this
 * folder. */
#ifndef POLICY_CHAIN_H
#define POLICY_CHAIN_H

#include <pthread.h>

#include "base/counted.h"
#include "policy/vm.h"

#define CHAIN_STEPS 16
#define CHAIN_DEPTH 4
#define CHAIN_IDLE  4 /* VMs kept for the next pipelines */
/* A VM that uses more is freed: it contains garbage, which can be other sessions'
 * text. */
#define CHAIN_IDLE_BYTES (2 << 20)
#define CHAIN_HOOKS      11

/* Limits on what all policies of a chain require. */
#define CHAIN_REQUIRED       16 /* files */
#define CHAIN_REQUIRES       64 /* names by which files are required */
#define CHAIN_REQUIRED_BYTES (512 * 1024)
#define CHAIN_REQUIRE_DEPTH  8
#define CHAIN_NAME           256 /* bytes of such a name, with its NUL */

/* A policy of the chain. The chain owns the texts; info points to them. */
typedef struct chain_step {
    policy_step_info info;
    char *name, *options, *path;
    char *file;   /* last part of path, for errors */
    char *source; /* NULL for hosts */
    size_t source_size;
    size_t skip; /* bytes of a first line that begins with '#', or of a byte-order mark */
    unsigned node; /* its number in chain_require */
} chain_step;

/* A file that others require. It is not a step: they use its table. The chain owns the
 * texts. */
typedef struct chain_required {
    char *file, *source;
    size_t source_size, skip;
    char hash[65]; /* of it and of what it requires */
    unsigned node;
    uint64_t device, inode; /* identify the file while loading */
    int foreign;
} chain_required;

/* One file requires another by a name. */
typedef struct chain_require {
    unsigned node; /* who */
    char *name;    /* owned by the chain */
    size_t to;     /* index in required */
} chain_require;

struct sessile_policy {
    counted references; /* first: see base/counted.h */
    allocator alloc;
    const os_table *os;
    policy_limits limits;
    chain_step steps[CHAIN_STEPS];
    size_t count;
    chain_required required[CHAIN_REQUIRED];
    size_t required_count;
    chain_require requires[CHAIN_REQUIRES];
    size_t require_count;
    int is_foreign;
    sessile_policy *fallback; /* a reference, or NULL: see policy_fallback() */
    pthread_mutex_t lock;     /* guards what follows */
    vm *idle;
    unsigned idle_count;
};

/* An empty chain with one reference. */
sessile_status chain_new(sessile_policy **out, const policy_limits *limits,
                         const os_table *os, const allocator *a, sessile_error *err);

/* A VM in which every step is compiled, its budget full. Return it with
 * chain_return_vm(). */
sessile_status chain_take_vm(sessile_policy *p, vm **out, sessile_error *err);
/* Keeps the VM for the next pipeline; frees it when its budget was spent or it uses more
 * than CHAIN_IDLE_BYTES. NULL is ignored. */
void chain_return_vm(sessile_policy *p, vm *v);
/* Appends a step: a source that was read, with a name and effective options (JSON). */
struct source;
sessile_status chain_add_source(sessile_policy *p, const struct source *c,
                                const char *name, int64_t version, const char *options,
                                sessile_error *err);
/* Makes a VM for the pool of a chain that was loaded, unless it is foreign. */
sessile_status chain_warm(sessile_policy *p, sessile_error *err);

/*
 * The hash of a node with this source, in hex. A node that requires nothing has the hash
 * of its source. Otherwise it is a hash of that hash and of the names and hashes of what
 * it requires, sorted by name. NOMEM.
 */
sessile_status chain_hash(const sessile_policy *p, unsigned node, sessile_slice source,
                          char out[65], sessile_error *err);

/* The hooks in the order of their bits. */
typedef struct chain_hook {
    sessile_hook bit;
    const char *name;
} chain_hook;
extern const chain_hook chain_hooks[CHAIN_HOOKS];

/* The hooks of memories. They get values instead of a state, and return values. */
#define CHAIN_MEMORY_HOOKS                                                        \
    ((unsigned)(SESSILE_HOOK_REMEMBER | SESSILE_HOOK_TIDY | SESSILE_HOOK_RECALL | \
                SESSILE_HOOK_ADMIT))

#endif
