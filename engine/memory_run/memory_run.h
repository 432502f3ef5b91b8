/*
 * memory_run.h: a run of memories, for the files of this folder.
 *
 *   memory_run.c   begin, step, reply: which kind does what
 *   life.c         creates and frees a run
 *   ask.c          what the host is asked, and its reply
 *   hooks.c        one hook of one policy: called, continued, its requests answered
 *   remember.c     remember, tidy, admit: hooks, then the proposal is judged and written
 *   recall.c       the question is embedded, hooks choose, the block is written
 *   embed.c        entries get vectors
 *   outcome.c      what came of it
 *
 * Nothing is written before the proposal was judged, and no lock is held between two
 * steps. Calls go from a kind's file to hooks.c, ask.c and outcome.c, never back.
 */
#ifndef MEMORY_RUN_MEMORY_RUN_H
#define MEMORY_RUN_MEMORY_RUN_H

#include "memory_run/begin.h"
#include "policy/policy.h"
#include "remember/proposal.h"

typedef enum memory_run_kind {
    MEMORY_RUN_REMEMBER,
    MEMORY_RUN_TIDY,
    MEMORY_RUN_ADMIT,
    MEMORY_RUN_RECALL,
    MEMORY_RUN_EMBED
} memory_run_kind;

/* What a run does next. A recall is in FIRST until its question has a vector or needs
 * none, and in COMMIT until its message is written. An embedding stays in FIRST. */
typedef enum memory_run_stage {
    MEMORY_STAGE_FIRST = 0, /* remember hooks are called */
    MEMORY_STAGE_ADMIT,     /* admit hooks are called for each proposed entry */
    MEMORY_STAGE_COMMIT,    /* the proposal is judged and written */
    MEMORY_STAGE_TIDY,      /* tidy hooks are called for each entry; ADMIT comes next */
    MEMORY_STAGE_DONE
} memory_run_stage;

/* The hook that runs, and what it runs in. */
typedef struct memory_hooks {
    sessile_policy *policy;    /* a reference, or NULL */
    policy_pipeline *pipeline; /* of the current item; NULL: not made yet */
    sessile_state *state;      /* an empty list: hooks of memories edit none */
    struct worker *worker;
    buf journal;
    size_t step;
    sessile_hook hook; /* 0: none runs */
    policy_result result;
    buf returned; /* what the hook returned: a JSON array of two, checked */
    buf log;
    uint64_t us; /* of pipelines that have ended */
} memory_hooks;

/* What the host is asked. */
typedef struct memory_ask {
    sessile_need_kind out;     /* NONE: nothing */
    sessile_need_kind replied; /* a reply that was not used yet */
    sessile_status status;     /* of the reply; not OK: text says why */
    buf text;                  /* its text, or why there is none */
    float *vectors;
    size_t count, dims, vectors_size /* bytes */;
    buf request;
} memory_ask;

typedef struct memory_run_result {
    sessile_verdict verdict;
    char policy[128], message[504];
    const char *hook; /* static */
    int law;
    sessile_id refusal;
    size_t heard, left;
    size_t written, pending, lowered, ended, confirmed, not_admitted, stale;
    buf changes, changes_json; /* without and with its brackets */
    sessile_recall_outcome recall;
    int has_vector;
    size_t embedded, to_embed;
    sessile_error failed; /* the run has failed: every step says so */
} memory_run_result;

struct memory_run_core {
    const allocator *alloc;
    store_core *store;
    memory_run_kind kind;
    session_core *session; /* of remember and recall; else NULL */
    memory_core *memories[PROPOSAL_MEMORIES];
    size_t memory_count;
    sessile_memory_run_options options; /* its texts, ids and policy are not used */
    buf embed_model;
    int64_t now_ms;
    memory_hooks hooks;
    memory_ask ask;
    proposal proposal;
    int has_proposal;
    memory_run_stage stage;
    buf arguments; /* of the hook */
    size_t at; /* ADMIT: the proposed entry; TIDY: index of ids; EMBED: the next record */
    int has_heard; /* the arguments of remember hooks are there */
    int attested;  /* ADMIT: the sources of the proposed entries are known */
    int tidied;    /* TIDY has run */
    entry_ids ids; /* the entries to tidy, or to embed */
    memory_run_result result;
    sessile_recall_options recall; /* of RECALL; its texts are in recall_texts */
    buf recall_texts;
    float *question_vector; /* of RECALL, or NULL */
    size_t question_dims;
    int chooses;                       /* of RECALL: a hook chooses from what was found */
    size_t found;                      /* of RECALL: what it chooses from */
    sessile_memory_outside *outside;   /* of RECALL, or NULL */
    size_t outside_size;               /* bytes */
    sessile_recall_item *recall_items; /* that the caller gave, or a hook chose */
    size_t recall_item_count;
};

/* ---- life.c */
sessile_status memory_run_new(memory_run_core **out, memory_run_kind kind, store_core *st,
                              session_core *s, memory_core *const *memories,
                              size_t memory_count,
                              const sessile_memory_run_options *options,
                              sessile_error *err);

/* ---- outcome.c */
/* Sets result.message. */
void memory_run_say(memory_run_core *run, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The policy that runs refused, or the proposal of one was: by its step. */
void memory_run_name(memory_run_core *run, size_t step, sessile_hook hook);
/* A proposal_author_of; arg is the run. */
proposal_author memory_run_author(void *arg, size_t step);
/* Counts what was proposed and what became of it. */
sessile_status memory_run_count(memory_run_core *run, sessile_error *err);

/* ---- hooks.c */
/* 1: a step of the chain from hooks.step on has the hook; hooks.step is the first. */
int memory_next_hook(memory_run_core *run, sessile_hook hook);
/*
 * Calls the hook of hooks.step with run->arguments, or goes on with it after a reply. OK:
 * hooks.returned has what it returned, and what it asked ctx.memory to write is in the
 * proposal. NEEDS. POLICY: it failed. Anything else: the run has failed.
 */
sessile_status memory_hook(memory_run_core *run, sessile_hook hook, sessile_need *need,
                           sessile_error *err);
/* The pipeline ends; the next hook begins another one, with a budget of its own. */
void memory_hooks_end(memory_run_core *run);

/* ---- ask.c */
/* NEEDS: the host is asked; request is what it is asked, in run->ask.request. */
sessile_status memory_ask_embed(memory_run_core *run, const char *purpose,
                                const sessile_slice *texts, size_t count,
                                sessile_need *need, sessile_error *err);
sessile_status memory_ask_model(memory_run_core *run, sessile_need *need);
sessile_status memory_ask_hook(memory_run_core *run, sessile_need *need);
/* Takes the reply to EMBED for `count` texts: 1, or 0: it failed, and run->result.message
 * says why. */
int memory_take_vectors(memory_run_core *run, size_t count);

/* ---- remember.c */
sessile_status memory_step_hooks(memory_run_core *run, sessile_need *need,
                                 sessile_error *err);

/* ---- recall.c */
sessile_status memory_step_recall(memory_run_core *run, sessile_need *need,
                                  sessile_error *err);

/* ---- embed.c */
sessile_status memory_step_embed(memory_run_core *run, sessile_need *need,
                                 sessile_error *err);

#endif
