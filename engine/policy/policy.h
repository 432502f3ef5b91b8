/*
 * policy.h: policies written in Lua, in a sandbox: load a chain, run a hook on a state.
 *
 * A loaded chain is immutable and reference-counted. It has a small pool of private Lua
 * states (VMs). Each VM is compiled once and used by one pipeline at a time, in a fresh
 * environment. A script that exceeds its budget, raises, or returns an invalid result
 * ends with SESSILE_POLICY and one sentence. Its VM is freed when a budget was the cause.
 */
#ifndef POLICY_POLICY_H
#define POLICY_POLICY_H

#include "base/alloc.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/os.h"
#include "sessile.h"

typedef struct policy_limits {
    uint64_t gas;    /* instructions and charges of one pipeline */
    uint32_t ms;     /* its CPU time in Lua */
    uint64_t memory; /* bytes of its Lua state */
    uint64_t result; /* bytes of one value that leaves the VM */
} policy_limits;

typedef struct policy_step_info {
    const char *name; /* the policy's `name`, or the file's name without .lua */
    int64_t version;
    unsigned hooks; /* sessile_hook bits */
    int is_host;
    char hash[65];       /* BLAKE2b-256 of the source and what it requires, hex; "" for
                            hosts */
    const char *options; /* effective options, JSON object text */
    const char *path;    /* "" for hosts */
} policy_step_info;

/* Loads a chain. Names are searched in the folders of search_path (separated by ':');
 * those with '/' or ending in ".lua" are paths. A file that returns {name=, version=,
 * chain={…}} is replaced by the chain's elements ("name" or {"name", option=…});
 * options given to it go to the elements that declare them. At most 16 steps after
 * that, nesting 4. Files are regular (DENIED) and have at most 256 KiB of text (no
 * bytecode). A file is foreign if neither we nor root own it, or if others can write
 * it: the program `worker` inspects it, and the whole chain runs in a separate
 * process. Without a program (NULL) it is DENIED. Options are checked against their
 * declarations: unknown (INVALID, with the nearest name), type, min, max, one of
 * `values`; defaults are filled in. What a file requires while it is inspected is
 * loaded with the chain, by the same rules: at most 16 files and 512 KiB, 8 deep, no
 * cycles. */
sessile_status policy_load(sessile_policy **out, const sessile_policy_step *steps,
                           size_t count, const char *search_path,
                           const policy_limits *limits, const char *worker,
                           const os_table *os, const allocator *a, sessile_error *err);
/* 1 when a file of the chain is foreign: the chain never runs in this process. */
int policy_is_foreign(const sessile_policy *p);
/* The chain that the first of the files with a `fallback` names, loaded with its own
 * options; borrowed, or NULL. */
sessile_policy *policy_fallback(const sessile_policy *p);
void policy_retain(sessile_policy *p);
void policy_release(sessile_policy *p);
size_t policy_step_count(const sessile_policy *p);
const policy_step_info *policy_step_get(const sessile_policy *p, size_t step);

/* ---- one pipeline */

typedef struct policy_pipeline policy_pipeline;

typedef struct policy_setup {
    sessile_slice session_id, agent, title;
    sessile_slice metadata; /* JSON object text, or empty */
    sessile_id turn;        /* seeds ctx.random with session id and policy hash */
    sessile_slice instructions;
    int64_t now_ms; /* the script's only clock */
    /* Hooks run in this worker (borrowed). NULL: in the host's process. */
    struct worker *worker;
    int has_memory;       /* 1: ctx.memory is there */
    sessile_state *state; /* worker: the state of the pipeline */
    buf *journal;         /* worker: the state's complete journal */
} policy_setup;

/* Borrows the policy (retained) and copies the setup's texts. */
sessile_status policy_pipeline_new(policy_pipeline **out, sessile_policy *p,
                                   const policy_setup *setup, sessile_error *err);
void policy_pipeline_free(policy_pipeline *pl);

typedef struct policy_result {
    int verdict;           /* should_compact: 0 or 1 */
    sessile_slice text;    /* branch_summary: the returned text, borrowed until the next
                              call, not checked. Empty: none. Hooks of memories: the
                              first two results as a JSON array, null for none */
    sessile_slice request; /* NEEDS: the request, JSON, borrowed until the answer */
    int asks_memory;       /* NEEDS: it is one of ctx.memory, not of a model */
    int spent; /* POLICY: 1 when a budget (gas, time, memory) was spent, or the result is
                  too large or too deep */
} policy_result;

/* Runs a hook of a Lua step, on a state whose hook has begun. OK: it returned, and its
 * edits and vars are in the state. NEEDS: it waits for a model or a memory;
 * policy_pipeline_answer() continues it, with the same three results. POLICY: it
 * failed; err says why in one sentence, with file and line if there are any. reason:
 * the value of ctx.reason. */
sessile_status policy_pipeline_call(policy_pipeline *pl, size_t step, sessile_hook hook,
                                    sessile_state *state, sessile_reason reason,
                                    policy_result *out, sessile_error *err);
/* The same for a hook of a memory, which gets values instead of the state: the elements
 * of a JSON array (checked; copied). ctx still counts with the state, whose list stays as
 * it is. */
sessile_status policy_pipeline_call_with(policy_pipeline *pl, size_t step,
                                         sessile_hook hook, sessile_slice arguments,
                                         sessile_state *state, sessile_reason reason,
                                         policy_result *out, sessile_error *err);
sessile_status policy_pipeline_answer(policy_pipeline *pl, const sessile_answer *answer,
                                      policy_result *out, sessile_error *err);

/* The lines that scripts wrote with ctx.log, borrowed; "" when none. */
const char *policy_pipeline_log(const policy_pipeline *pl);
/* Microseconds spent in Lua so far. */
uint64_t policy_pipeline_us(const policy_pipeline *pl);

#endif
