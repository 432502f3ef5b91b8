/*
 * run.h: one operation (turn, compact, plan, branch) as a state machine that can stop and
 * be answered.
 *
 * A run walks a fixed schedule of hooks over one proposal (proposal/state.h). Between two
 * calls of the host it holds no lock and no Lua stack but its own pipeline's. Whatever
 * ends it, a turn's messages were written before its first hook.
 *
 *   turn.c      begin: check, count, write the turn; snapshot the context
 *   schedule.c  which hook of which policy is next, and what its end means
 *   trigger.c   whether the turn's end is a time to compact, asked or not
 *   fallback.c  what runs instead, once, when the policy was refused
 *   commit.c    the accepted proposal, judged on the head as it is now, as one entry
 *   branch.c    a branch: the head moved, what it left summarized; branch_prompt.c
 *   vars.c      the policies' notes
 *   record.c    the JSON of compaction and refusal entries
 *   isolation.c the process that isolated policies run in
 *   ask.c       what the host is asked, and its reply
 *   answers.c   what models answered, now and before the run was pending
 *   auto.c      checkpoints that a turn makes by itself
 *   pending.c   writes down a run that waits; pending_answer.c begins it again
 *   run.c       begins a run and steps it from stage to stage
 *   outcome.c   what the stages report, and the public outcome
 *   life.c      creates and frees a run; clock, wait, reserve and sync for all stages
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "policy/policy.h"
#include "context/laws.h"
#include "session/write.h"
#include "proposal/state.h"
#include "session/triggers.h"

typedef enum run_kind { RUN_TURN, RUN_COMPACT, RUN_PLAN, RUN_BRANCH } run_kind;

/* Where the schedule stands. Each stage but the last two goes through the chain's steps.
 */
typedef enum run_stage {
    STAGE_MERGE, /* turns only */
    STAGE_SUMMARIZE,
    STAGE_TRUNCATE,
    STAGE_COMPACT, /* for each step: should_compact (not when a person asked), flush,
                      compact */
    STAGE_COMMIT,  /* judge the whole, write */
    STAGE_DONE
} run_stage;

/* One policy's notes while the run goes on. */
typedef struct run_vars {
    char *name; /* the policy's */
    char *text; /* JSON object, or NULL: {} */
    size_t name_size, text_size;
} run_vars;

/* What triggers are judged by: the log at the turn, read with the snapshot. */
typedef struct run_counts {
    uint64_t messages, messages_before; /* since the last compaction: at the turn, and at
                                           the turn before it */
    uint64_t ms, ms_before;             /* the same */
    last_compaction last;
    trigger_attempt by_share, by_overflow; /* on the turn's path; turn 0: none */
} run_counts;

/* The policy's refusal, while the fallback runs. */
typedef struct run_refusal {
    char policy[128], message[504];
    const char *hook; /* static */
    int law, too_little;
    sessile_id entry;
    uint64_t repeated;
    buf log;            /* what its files said; of both when joined */
    int joined;         /* what the fallback's files said has been added */
    uint64_t policy_us; /* what it took */
} run_refusal;

/* One answer of a model, and the request it is for. */
typedef struct run_answer {
    unsigned char request[32]; /* BLAKE2b-256 of its JSON */
    sessile_status status;     /* OK, or text is why there is none */
    char *text;
    size_t size;
    int used; /* known: it has been given to this run's policy */
} run_answer;

typedef struct run_answers {
    run_answer *at;
    size_t count, capacity;
} run_answers;

/* What the caller asked for. Texts are owned. */
typedef struct run_options {
    int64_t window, reserve;
    int has_timeout, timeout_ms; /* of each call; else the session's */
    sessile_reason reason;       /* of the run as a whole */
    sessile_triggers *triggers;  /* of this call, or NULL */
    char *instructions;
    char *event; /* its name, or NULL */
    char *model; /* the name asked for, or NULL */
    size_t instructions_size, event_size, model_size;
} run_options;

/* The checkpoint that a turn makes by itself. */
typedef struct run_checkpointing {
    sessile_triggers *on; /* of this call, or NULL */
    uint32_t keep;
    sessile_slice state; /* that came with the turn; owned */
    sessile_checkpoint_reason reason;
    int asked, done;
    sessile_error why; /* it could not be written */
} run_checkpointing;

typedef struct run_fallback {
    sessile_policy *policy; /* a reference, or NULL; once it runs, the one refused */
    int runs;               /* it runs, or ran */
    run_refusal refusal;    /* then: what was refused */
} run_fallback;

/* Which hook is next, and what is known for it. */
typedef struct run_schedule_state {
    run_stage stage;
    size_t step;
    sessile_hook hook;    /* the hook that is running or was asked for; 0: none */
    policy_result result; /* of that hook */
    int phase;            /* STAGE_COMPACT: where this step stands */
    sessile_reason fired; /* a trigger's, which asks no should_compact; TURN: none did */
    sessile_reason fired_first; /* when STAGE_COMPACT began, or as the pending run says */
    int overflowed;             /* STAGE_COMPACT goes, or went, by for that reason */
    sessile_reason why;         /* of the newest flush or compact; else the run's */
    sessile_reason stands; /* of the flush or compact whose edits are in the list; TURN:
                              none */
    int64_t tokens_given;  /* what the compact was given */
    int did_not_fit;
    uint32_t edited;        /* bit a step: its hook changed the list */
    uint32_t edited_before; /* the same before the compact, for the rewind */
} run_schedule_state;

/* What the host is asked, and its answer. */
typedef struct run_ask {
    int out;               /* a need is out */
    int replied;           /* an answer has come and is not taken in yet */
    sessile_answer answer; /* its text is owned: answer_text */
    char *answer_text;
    unsigned char request[32]; /* hash of what a model was asked last */
    run_answers answers;       /* given to this run's policy so far */
} run_ask;

/* A pending run that goes on: the policy runs again, with the answers that it was given.
 */
typedef struct run_replay {
    int runs;               /* it runs again from a pending run */
    sessile_id pending_run; /* the pending run it answers, until that is closed */
    run_answers known;      /* given before it was pending */
    int overflowed;         /* STAGE_COMPACT went by for that reason then */
} run_replay;

/* The notes (vars) of all policies. */
typedef struct run_notes {
    run_vars *at;
    size_t count, capacity;
    int changed;
} run_notes;

/* The turn that was written. */
typedef struct run_turn_ids {
    sessile_id first, last;
    size_t previous; /* messages of the context before the turn */
    int beside;      /* a sibling of what came between; the head stays */
} run_turn_ids;

/* The log as the policy sees it. */
typedef struct run_view {
    sessile_id entry;      /* the newest path entry that the policy knows */
    sessile_id context_at; /* the compaction in force then */
    sessile_id vars_at;    /* the notes in force then */
    size_t count;          /* entries in the log then, facts too */
    int64_t held; /* of the window, for system prompt and tools that are in no message */
} run_view;

typedef struct run_log {
    sessile_id written; /* log count that must become durable; 0: nothing */
    int synced;
} run_log;

typedef struct run_branching {
    sessile_id to, from, ancestor; /* where the head goes, was, and both come from */
    buf prompt;
} run_branching;

/* What the outcome is made from. */
typedef struct run_result {
    sessile_outcome outcome;
    sessile_removal *removals;
    size_t removal_count, removal_capacity;
    char *summary;
    size_t summary_size;
    char policy_name[128]; /* of the culprit, or of the last that edited */
    int refused;
    sessile_error failed; /* a compact that could not be written: its error */
    char message[504];
    judgement judged;
} run_result;

struct sessile_run {
    const allocator *alloc;
    sessile_session *session;
    run_kind kind;
    sessile_policy *policy;    /* a reference, or NULL: none runs */
    policy_pipeline *pipeline; /* made when the first Lua hook runs */
    sessile_state *state;
    struct worker *worker; /* of isolated policies, taken from the session; or NULL */
    buf journal;           /* of the state, for the worker */
    session_wait wait;     /* of the call that goes on */
    int64_t now_ms;
    uint64_t started_us;
    run_options options;
    run_checkpointing checkpoint;
    run_counts counts;
    run_fallback fallback;
    run_schedule_state schedule;
    run_ask ask;
    run_replay replay;
    run_notes notes;
    run_turn_ids turn;
    run_view saw;
    run_log log;
    run_branching branch;
    run_result result;
};

/* life.c: a run with its policy, window and timeouts, and nothing done. */
sessile_status run_new(sessile_run **out, sessile_session *s, run_kind kind,
                       const sessile_run_options *options, sessile_error *err);
/* Ends a run_begin_*(): gives the run to the caller, or frees it when status is an error.
 * The time since run_new() counts as the engine's. */
sessile_status run_begun(sessile_run *run, sessile_status status, sessile_run **out);
uint64_t run_clock_us(const sessile_run *run);
/* The timeout of a call starts now. */
void run_wait_begin(sessile_run *run);
/* Makes durable what the run wrote, once. */
sessile_status run_sync(sessile_run *run, sessile_error *err);
/* The part of the window that messages cannot use: the reserve, and the system prompt
 * and tools that are not in any message. The room is the rest. */
int64_t run_reserve(const sessile_run *run);
int64_t run_room(const sessile_run *run);
/* Entries up to that log count must become durable before the run reports success. */
void run_written(sessile_run *run, sessile_id count);
/* The policy of the chain whose turn it is; NULL: none, or none is left. */
const policy_step_info *run_policy_step(const sessile_run *run);

/* turn.c */
sessile_status run_turn(sessile_run *run, const sessile_slice *messages, size_t count,
                        const sessile_run_options *options, sessile_error *err);
/* The context that policies start from. previous: messages before the turn. */
sessile_status run_snapshot(sessile_run *run, sessile_error *err);

/* run->state, showing that context; labels may be NULL. */
sessile_status run_new_state(sessile_run *run, const context *c, const facts *labels,
                             const meter_ratio *fit, sessile_error *err);

/* branch.c: the head moved; then, when a summary is wanted, the state that shows what was
 * left (none: nothing was), asking for it, and writing it. */
sessile_status run_branch(sessile_run *run, const sessile_run_options *options,
                          sessile_error *err);
sessile_status run_branch_state(sessile_run *run, sessile_error *err);
sessile_status run_branch_ask(sessile_run *run, sessile_need *need, sessile_error *err);
void run_branch_commit(sessile_run *run);
/* branch_prompt.c: the request to the host's model, as JSON. */
sessile_status branch_prompt(sessile_run *run, buf *out, sessile_error *err);

/* isolation.c: a process for the policies of this run, when the store wants one: the
 * session's, or a new one. Both do nothing otherwise. */
sessile_status run_acquire_worker(sessile_run *run, sessile_error *err);
void run_release_worker(sessile_run *run);

/* trigger.c: what is in force for this run, or NULL; what they are judged by (with the
 * session's mutex); the reason of those that fire on the list as it is now, or TURN; and
 * whether, after STAGE_COMPACT, overflow still does. */
const sessile_triggers *run_triggers(const sessile_run *run);
sessile_status run_count_locked(sessile_run *run, sessile_error *err);
sessile_reason run_fired(sessile_run *run);
int run_fired_again(sessile_run *run);

/* fallback.c: 1 when the policy was refused and a fallback is to run; begins it. */
int run_wants_fallback(const sessile_run *run);
void run_begin_fallback(sessile_run *run);

/* schedule.c: goes on to the next end: OK (STAGE_COMMIT or DONE reached) or NEEDS. */
sessile_status run_schedule(sessile_run *run, sessile_need *need, sessile_error *err);
/* The pipeline of the run's policies, into run->pipeline. */
sessile_status run_make_pipeline(sessile_run *run, sessile_error *err);

/* outcome.c */
/* ctx.reason of the hook that runs. */
sessile_reason run_reason_of_hook(const sessile_run *run);
/* Refuses the pipeline: its edits are dropped and the schedule jumps to the commit. */
void run_refuse(sessile_run *run, law broken, const char *message);
/* Sets the outcome's policy to that of the step. */
void run_name_policy(sessile_run *run);
/* Sets the outcome's message; text may be the run's own. */
void run_say(sessile_run *run, const char *text);
/* Resets the outcome of a proposal that was not written. */
void run_forget(sessile_run *run);
/* The context as the run leaves it, or as a plan would leave it. */
const context *run_context_left(const sessile_run *run);

/* commit.c: judges the whole and writes compaction or refusal. */
sessile_status run_commit(sessile_run *run, sessile_error *err);

/* answers.c: copies are made; run_answers_known() is borrowed until the run ends. */
sessile_status run_answers_add(run_answers *list, const unsigned char request[32],
                               sessile_status status, sessile_slice text,
                               const allocator *a, sessile_error *err);
void run_answers_deinit(run_answers *list, const allocator *a);
/* Drops the last answer to that request. */
void run_answers_drop(run_answers *list, const unsigned char request[32],
                      const allocator *a);
/* The host's answer to the request that was asked last, as the policy will be told. */
sessile_status run_answers_note(sessile_run *run, const sessile_answer *answer,
                                sessile_error *err);
void run_request_hash(unsigned char out[32], sessile_slice request);
/* The next answer that was given to this very request before; or NULL. */
const run_answer *run_answers_known(sessile_run *run);

/* ask.c: NEEDS, with *need saying what the host is asked about the hook that runs; or why
 * what was written could not be synced. */
sessile_status run_ask_host(sessile_run *run, sessile_need *need, sessile_error *err);
/* Uses the host's reply: OK with schedule.result, NEEDS (it asks again), or the hook's
 * failure. */
sessile_status run_take_reply(sessile_run *run, sessile_error *err);

/* pending.c: adds to a commit the fact that ends the pending run this run answers, if
 * any; and the same in a commit of its own. */
sessile_status run_close_pending(sessile_run *run, sessile_session *s, batch *b,
                                 sessile_error *err);
sessile_status run_end_pending(sessile_run *run, sessile_error *err);

/* auto.c: after a turn's end is written: OK, or NEEDS the state of a checkpoint. */
sessile_status run_checkpoint(sessile_run *run, sessile_need *need, sessile_error *err);

/* record.c */
/* A policy of a chain as a JSON object, without the closing brace. */
void record_step(const policy_step_info *step, buf *out);
sessile_status record_compaction(sessile_run *run, sessile_id self, int with_context,
                                 buf *out, sessile_error *err);
void record_refusal(const sessile_run *run, buf *out);
/* Gives the messages written, where removals name them, their numbers in the log. */
sessile_status record_number(sessile_run *run, sessile_error *err);
/* Finds the text of the first summary written, decoded, into run->summary. */
sessile_status record_summary(sessile_run *run, sessile_error *err);

/* vars.c: notes by policy name */
sessile_status run_vars_load(sessile_run *run, const char *text, size_t size,
                             sessile_error *err);
const run_vars *run_vars_get(const sessile_run *run, const char *name);
sessile_status run_vars_set(sessile_run *run, const char *name, sessile_slice text,
                            sessile_error *err);
void run_vars_write(const sessile_run *run, buf *out);
void run_vars_deinit(sessile_run *run);

#endif
