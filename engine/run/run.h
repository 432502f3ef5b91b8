/*
 * run.h: one operation (turn, compact, plan, branch) as a state machine that can wait for
 * the host.
 *
 * A run calls the hooks of its policies in a fixed order on one proposal
 * (proposal/state.h). Between two calls of the host it holds no lock. The messages of a
 * turn are written before its first hook, so they are in the log however the run ends.
 *
 *   run.c            begins a run and steps it from stage to stage
 *   turn.c           checks, counts and writes the turn; takes the snapshot
 *   once.c           finds the turn that an earlier call of the same name has written
 *   branch.c         moves the head and asks for a summary; branch_prompt.c
 *   trigger.c        decides whether to compact at the end of a turn
 *   schedule.c       decides which hook of which policy runs next
 *   ask.c            asks the host, and uses its reply
 *   answers.c        what models answered, now and before the run was pending
 *   screen.c         answers and summaries meet the rules of the store
 *   vars.c           the policies' notes
 *   isolation.c      the process that isolated policies run in
 *   commit.c         checks the proposal on the head as it is now, and writes it
 *   record.c         the JSON of compaction and refusal entries
 *   fallback.c       the policy that runs when the first one was refused
 *   auto.c           checkpoints that the engine makes at the end of a turn
 *   pending.c        writes a run that waits into the log
 *   pending_answer.c begins such a run again with an answer
 *   outcome.c        what the stages report, and the public outcome
 *   life.c           creates and frees a run; clock, wait, reserve, sync
 */
#ifndef RUN_RUN_H
#define RUN_RUN_H

#include "policy/policy.h"
#include "remember/proposal.h"
#include "context/laws.h"
#include "screen/write.h"
#include "session/write.h"
#include "proposal/state.h"
#include "session/triggers.h"

typedef enum run_kind { RUN_TURN, RUN_COMPACT, RUN_PLAN, RUN_BRANCH } run_kind;

/* Each stage but the last two goes through the policies of the chain. */
typedef enum run_stage {
    STAGE_MERGE, /* turns only */
    STAGE_SUMMARIZE,
    STAGE_TRUNCATE,
    STAGE_COMPACT, /* for each policy: should_compact (only after a turn), flush, compact
                    */
    STAGE_COMMIT,  /* check the whole proposal, write it */
    STAGE_DONE
} run_stage;

/* The notes of one policy. */
typedef struct run_vars {
    char *name; /* the policy's */
    char *text; /* JSON object, or NULL: {} */
    size_t name_size, text_size;
} run_vars;

/* What triggers are judged by, read with the snapshot. */
typedef struct run_counts {
    uint64_t messages, messages_before; /* since the last compaction: at this turn, and
                                           at the turn before */
    uint64_t ms, ms_before;             /* the same for the time */
    last_compaction last;
    trigger_attempt by_share, by_overflow; /* on the path; turn 0: none */
} run_counts;

/* The refusal of the first policy, while the fallback runs. */
typedef struct run_refusal {
    char policy[128], message[504];
    const char *hook; /* static */
    int law, too_little;
    sessile_id entry;
    uint64_t repeated;
    buf log;            /* what its files logged */
    int joined;         /* 1: what the fallback's files logged was appended */
    uint64_t policy_us; /* time that it took */
} run_refusal;

/* A model's answer, and the request that it answers. */
typedef struct run_answer {
    unsigned char request[32]; /* BLAKE2b-256 of its JSON */
    sessile_status status;     /* OK; else text says why there is no answer */
    char *text;
    size_t size;
    int used; /* of a known answer: this run has used it */
} run_answer;

typedef struct run_answers {
    run_answer *at;
    size_t count, capacity;
} run_answers;

/* The caller's options. Texts are owned. */
typedef struct run_options {
    int has_timeout; /* config.timeout_ms is of the call; else the session's counts */
    sessile_reason reason; /* of the whole run */
    char *instructions;
    char *event; /* its name, or NULL */
    char *model; /* the name asked for, or NULL */
    size_t instructions_size, event_size, model_size;
} run_options;

/* The checkpoint that the engine makes at the end of the turn. */
typedef struct run_checkpointing {
    sessile_slice state; /* given with the turn; owned */
    sessile_checkpoint_reason reason;
    int asked, done;
    sessile_error why; /* why it could not be written */
} run_checkpointing;

typedef struct run_fallback {
    sessile_policy *policy; /* a reference: the configured one, or NULL; once it runs: the
                               refused one */
    int off;                /* the caller wants none */
    int of_call;            /* the call itself names it */
    int runs;               /* it runs or has run */
    sessile_reason reason;  /* why the refused policy compacted; TURN: it did not */
    run_refusal refusal;    /* of the first policy, once it runs */
} run_fallback;

/* Which hook is next, and what it needs. */
typedef struct run_schedule_state {
    run_stage stage;
    size_t step;
    sessile_hook hook;          /* the hook that runs or waits; 0: none */
    policy_result result;       /* of that hook */
    int phase;                  /* of STAGE_COMPACT, for this policy */
    sessile_reason fired;       /* the trigger that fired, so should_compact is not
                                   called; TURN: none */
    sessile_reason fired_first; /* the same when STAGE_COMPACT began */
    int overflowed;             /* STAGE_COMPACT has run for that reason */
    sessile_reason why;    /* reason of the newest flush or compact; else the run's */
    sessile_reason stands; /* reason of the flush or compact whose edits are in the
                              list; TURN: none */
    int64_t tokens_given;  /* tokens of the list before the compact */
    int did_not_fit;
    uint32_t edited;        /* bit i: policy i changed the list */
    uint32_t edited_before; /* the same before the compact, to undo it */
} run_schedule_state;

/* What the host is asked, and its reply. */
typedef struct run_ask {
    int out;               /* 1: the host has been asked */
    int replied;           /* 1: its reply was not used yet */
    sessile_answer answer; /* its text is owned: answer_text */
    char *answer_text;
    unsigned char request[32]; /* hash of the last request to a model */
    run_answers answers;       /* that this run has received */
} run_ask;

/* A pending run that continues: the policy runs again, with the answers it has. */
typedef struct run_replay {
    int runs;               /* 1: this run continues a pending one */
    sessile_id pending_run; /* which, until it is closed */
    run_answers known;      /* its answers, from the entry */
    int overflowed;         /* STAGE_COMPACT had run for that reason */
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
    int beside;      /* 1: it is on a branch beside the head, which stays */
    int again;       /* 1: an earlier call has written it */
} run_turn_ids;

/* The log as the policies see it. */
typedef struct run_view {
    sessile_id entry;      /* the newest path entry that they see */
    sessile_id context_at; /* the compaction in force at entry */
    sessile_id vars_at;    /* the notes in force at entry */
    size_t count;          /* entries in the log at that time, with facts */
    int64_t held;          /* tokens for system prompt and tools that are not messages */
} run_view;

typedef struct run_log {
    sessile_id written; /* entries up to this log count must become durable;
                           0: none */
    int synced;
} run_log;

typedef struct run_branching {
    sessile_id to, from,
        ancestor; /* the new head, the old one, and their common ancestor */
    buf prompt;
} run_branching;

/* What the outcome is made from. */
typedef struct run_result {
    sessile_outcome outcome;
    sessile_removal *removals;
    size_t removal_count, removal_capacity;
    char *summary;
    size_t summary_size;
    char policy_name[128]; /* the policy that was refused, or the last that edited */
    int refused;
    sessile_error failed; /* why a compact could not be written */
    char message[504];
    judgement judged;
} run_result;

/* ctx.memory: see memory.c. */
typedef struct run_memory {
    proposal proposal;
    int is_open; /* proposal is in use */
    int has;     /* 1: policies have a ctx.memory */
    buf changes; /* what was written, a JSON array; empty: nothing was proposed */
} run_memory;

struct run_core {
    const allocator *alloc;
    struct principal
        *who; /* whose checkpoints are counted and recorded, or NULL; borrowed */
    session_core *session;
    run_kind kind;
    sessile_policy *policy;    /* a reference, or NULL */
    policy_pipeline *pipeline; /* made when the first Lua hook runs */
    sessile_state *state;
    struct worker *worker; /* for isolated policies, the session's; or NULL */
    buf journal;           /* of the state's edits, for the worker */
    session_wait wait;     /* of the current call */
    int64_t now_ms;
    uint64_t started_us;
    sessile_config config; /* owned; its policies are policy and fallback.policy */
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
    run_memory memory;
    write_labels labels; /* of answers and summaries that were flagged: of the entry that
                            is made from them */
    run_result result;
};

/* ask.c: keeps a reply for the stage that asked: what the engine itself answers, and what
 * screens left of the host's. */
sessile_status run_keep_reply(run_core *run, const sessile_answer *answer,
                              sessile_error *err);

/* screen.c: *text, which then may be in left (empty before), is what may be used. DENIED,
 * with the rule. is_host: it is from a hook of the host's. */
sessile_status run_screen_answer(run_core *run, int is_host, sessile_slice *text,
                                 buf *left, sessile_error *err);
/* DENIED: the instructions, which a model reads, the event or the name of a model. */
sessile_status run_screen_options(const run_core *run, const sessile_run_options *options,
                                  sessile_error *err);
sessile_status run_screen_summary(run_core *run, sessile_screen_source source,
                                  sessile_slice *text, buf *left, sessile_error *err);

/* life.c: creates a run with its policies and configuration. */
sessile_status run_new(run_core **out, session_core *s, run_kind kind,
                       const sessile_run_options *options, const memory_cores *memories,
                       sessile_error *err);
/* Ends a run_begin_*(): gives the run to the caller, or frees it when status is an error.
 * The time since run_new() counts as the engine's. */
sessile_status run_begun(run_core *run, sessile_status status, run_core **out);
uint64_t run_clock_us(const run_core *run);
/* The timeout of a call starts now. */
void run_wait_begin(run_core *run);
/* Makes durable what the run wrote, once. */
sessile_status run_sync(run_core *run, sessile_error *err);
/* The part of the window that messages cannot use: the reserve, and the system prompt
 * and tools that are not in any message. The room is the rest. */
int64_t run_reserve(const run_core *run);
int64_t run_room(const run_core *run);
/* Entries up to that log count must become durable before the run reports success. */
void run_written(run_core *run, sessile_id count);
/* The policy of the chain at schedule.step; NULL: none is left. */
const policy_step_info *run_policy_step(const run_core *run);

#define RUN_ONCE_MOST 64 /* bytes of options->once */

/* once.c. INVALID: a name that cannot be, or without a base. */
sessile_status run_once_check(const sessile_run_options *options, sessile_error *err);
/* Sets turn.again, its ids and the outcome's head if a turn of options->once was written
 * after the base. The mutex is held. */
sessile_status run_once_find_locked(run_core *run, session_core *s,
                                    const sessile_run_options *options,
                                    sessile_error *err);

/* turn.c */
sessile_status run_turn(run_core *run, const sessile_slice *messages, size_t count,
                        const sessile_run_options *options, sessile_error *err);
/* Takes the snapshot that policies start from: context, notes, counts, state. */
sessile_status run_snapshot(run_core *run, sessile_error *err);

/* run->state, showing that context; labels may be NULL. */
sessile_status run_new_state(run_core *run, const context *c, const facts *labels,
                             const meter_ratio *fit, sessile_error *err);

/* branch.c: moves the head. When a summary is wanted: makes the state that shows the
 * branch that was left (NULL: it has no messages), asks for the summary, and writes it.
 */
sessile_status run_branch(run_core *run, const sessile_run_options *options,
                          sessile_error *err);
sessile_status run_branch_state(run_core *run, sessile_error *err);
sessile_status run_branch_ask(run_core *run, sessile_need *need, sessile_error *err);
void run_branch_commit(run_core *run);
/* branch_prompt.c: writes the request to the host's model, as JSON. */
sessile_status branch_prompt(run_core *run, buf *out, sessile_error *err);

/* isolation.c: gets a worker process for this run's policies, the session's or a new one,
 * and returns it to the session. Both do nothing when no worker is needed. */
sessile_status run_acquire_worker(run_core *run, sessile_error *err);
void run_release_worker(run_core *run);

/* trigger.c */
/* Reads run->counts. The session's mutex is held. */
sessile_status run_count_locked(run_core *run, sessile_error *err);
/* The reason of the trigger that fires on the list as it is now, or TURN. */
sessile_reason run_fired(run_core *run);
/* After STAGE_COMPACT: 1 when the overflow trigger fires (again). */
int run_fired_again(run_core *run);

/* fallback.c: 1 when the policy was refused and there is a fallback; starts it. */
int run_wants_fallback(const run_core *run);
void run_begin_fallback(run_core *run);

/* schedule.c: runs hooks until STAGE_COMMIT (OK), or until the host must answer (NEEDS).
 */
sessile_status run_schedule(run_core *run, sessile_need *need, sessile_error *err);
/* Makes run->pipeline for the run's policies. */
sessile_status run_make_pipeline(run_core *run, sessile_error *err);

/* outcome.c */
/* ctx.reason of the hook that runs. */
sessile_reason run_reason_of_hook(const run_core *run);
/* Refuses the pipeline: its edits are dropped and the schedule jumps to the commit. */
void run_refuse(run_core *run, law broken, const char *message);
/* Sets the outcome's policy to that of the step. */
void run_name_policy(run_core *run);
/* Sets the outcome's message; text may be the run's own. */
void run_say(run_core *run, const char *text);
/* Resets the outcome of a proposal that was not written. */
void run_forget(run_core *run);
/* The context as the run leaves it, or as a plan would leave it. */
const context *run_context_left(const run_core *run);

/* memory.c */
sessile_status run_memory_init(run_core *run, const memory_cores *memories,
                               sessile_error *err);
void run_memory_deinit(run_core *run);
/* The policies are about to see the run's state. */
sessile_status run_memory_show(run_core *run, sessile_error *err);
/* A hook asks ctx.memory: 1, and *status of the reply, which is used next. 0: it asks
 * something else. */
int run_memory_answer(run_core *run, sessile_error *err, sessile_status *status);
/* Judges and writes what was proposed; a law that is broken refuses the pipeline. */
sessile_status run_memory_commit(run_core *run, sessile_error *err);

/* commit.c: checks the whole proposal and writes a compaction or a refusal. */
sessile_status run_commit(run_core *run, sessile_error *err);

/* answers.c: request and text are copied. */
sessile_status run_answers_add(run_answers *list, const unsigned char request[32],
                               sessile_status status, sessile_slice text,
                               const allocator *a, sessile_error *err);
void run_answers_deinit(run_answers *list, const allocator *a);
/* Drops the last answer to that request. */
void run_answers_drop(run_answers *list, const unsigned char request[32],
                      const allocator *a);
/* Records the answer to the last request, as the policy will get it. */
sessile_status run_answers_note(run_core *run, const sessile_answer *answer,
                                sessile_error *err);
void run_request_hash(unsigned char out[32], sessile_slice request);
/* The next unused answer to the last request, borrowed from the run; or NULL. */
const run_answer *run_answers_known(run_core *run);

/* ask.c: NEEDS, with *need saying what the host is asked about the hook that runs; or why
 * what was written could not be synced. */
sessile_status run_ask_host(run_core *run, sessile_need *need, sessile_error *err);
/* Uses the host's reply: OK with schedule.result, NEEDS (it asks again), or the hook's
 * failure. */
sessile_status run_take_reply(run_core *run, sessile_error *err);

/* pending.c: ends the pending run that this run answers, if any: as a fact in the commit
 * b, or in a commit of its own. */
sessile_status run_close_pending(run_core *run, session_core *s, batch *b,
                                 sessile_error *err);
sessile_status run_end_pending(run_core *run, sessile_error *err);

/* auto.c: makes the checkpoint that the rules ask for: OK, or NEEDS its state. */
sessile_status run_checkpoint(run_core *run, sessile_need *need, sessile_error *err);

/* record.c */
/* A policy of a chain as a JSON object, without the closing brace. */
void record_step(const policy_step_info *step, buf *out);
sessile_status record_compaction(run_core *run, sessile_id self, int with_context,
                                 buf *out, sessile_error *err);
void record_refusal(const run_core *run, buf *out);
/* Replaces the numbers of inserted messages in removals by their numbers in the log. */
sessile_status record_number(run_core *run, sessile_error *err);
/* The first message that stays as it was, of those after the first removal; or
 * SESSILE_NO_ID. */
sessile_id record_first_kept(const run_core *run, const laws_input *in);
/* Copies the text of the first summary that was written to run->result.summary. */
sessile_status record_summary(run_core *run, sessile_error *err);

/* vars.c: notes by policy name */
sessile_status run_vars_load(run_core *run, const char *text, size_t size,
                             sessile_error *err);
const run_vars *run_vars_get(const run_core *run, const char *name);
sessile_status run_vars_set(run_core *run, const char *name, sessile_slice text,
                            sessile_error *err);
void run_vars_write(const run_core *run, buf *out);
void run_vars_deinit(run_core *run);

#endif
