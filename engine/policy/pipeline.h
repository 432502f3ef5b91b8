/* pipeline.h: one pipeline, for the files that run it: a VM in use, and the data behind
 * ctx. */
#ifndef POLICY_PIPELINE_H
#define POLICY_PIPELINE_H

#include "base/buf.h"
#include "policy/chain.h"

typedef struct pipeline_random {
    int seeded;
    uint64_t s[4];
} pipeline_random;

struct policy_pipeline {
    sessile_policy *policy;
    vm *vm;      /* NULL before the first hook */
    char *texts; /* what the setup's slices point to */
    size_t texts_size;
    policy_setup setup;
    int waiting;     /* a model or a memory was asked */
    int asks_memory; /* it was a memory */
    unsigned asked;  /* how often a model was asked */
    unsigned asked_memory;

    /* the hook that runs */
    size_t step;
    sessile_hook hook;
    sessile_reason reason;
    sessile_state *state;
    int passed;            /* arguments of the hook */
    char origin[VM_WHERE]; /* "file.lua:12" where the hook is defined */

    pipeline_random random[CHAIN_STEPS];
    buf log;
    buf text;      /* what a branch_summary, or a hook of a memory, returned */
    buf arguments; /* of a hook of a memory: JSON array */

    /* in a process of its own */
    int opened;         /* the worker knows this pipeline */
    uint64_t worker_us; /* spent in Lua there */
};

/* Makes the ctx of a VM; raises. */
void ctx_open(lua_State *L);
/* Pushes ctx. It answers for the pipeline and the step that the VM runs. */
void ctx_push(lua_State *L);
/* The pipeline that the VM runs; raises when there is none. */
policy_pipeline *ctx_pipeline(lua_State *L);
/* ctx_memory.c: pushes the table ctx.memory, which is made once for a VM. */
void ctx_memory_open(lua_State *L);
void ctx_memory_push(lua_State *L);

/* The table of the pipeline that the VM runs: the coroutine, the state, and the slots of
 * each step. */
enum { TABLE_THREAD = 1, TABLE_STATE, TABLE_SLOTS };
enum { SLOT_HOOKS = 0, SLOT_STRINGS, SLOT_OPTIONS, SLOT_SESSION, SLOTS };
/* Pushes it, or nil when there is none, and returns the type. */
int pipeline_push_table(lua_State *L);
/* Replaces it by the value at the top, which is popped. */
void pipeline_set_table(lua_State *L);
/* Pushes slot `slot` of the step that runs, and returns the type. */
int pipeline_get_slot(lua_State *L, const policy_pipeline *pl, int slot);
/* Sets it to the value at the top, which is popped. */
void pipeline_set_slot(lua_State *L, const policy_pipeline *pl, int slot);

#endif
