/*
 * fallback.c: the policy that runs when the first one was refused.
 *
 * The refusal is already in the log and in the outcome. The fallback starts from the
 * context that the policy started from, as if that policy had never run: with a new
 * state, a new pipeline (and so a new budget), the notes as they were, and a new process.
 * It runs once: if it is refused too, the run ends.
 *
 * It is the one that is configured, else the one that the policy's file names. A person
 * who asks for a compaction gets that policy or its refusal: only a fallback that the
 * call itself names runs then.
 */
#include "run/run.h"

#include <string.h>

#include "base/names.h"

/* The policy that may run in place of the refused one, borrowed; or NULL. */
static sessile_policy *find_fallback(const run_core *run)
{
    int asked = run->kind != RUN_TURN && run->options.reason == SESSILE_REASON_MANUAL;
    if (run->fallback.off || (asked && !run->fallback.of_call))
        return NULL;
    return run->fallback.policy ? run->fallback.policy : policy_fallback(run->policy);
}

int run_wants_fallback(const run_core *run)
{
    return run->result.refused && !run->fallback.runs && find_fallback(run);
}

/* Saves what the outcome will report of the refused policy. */
static void save_refusal(run_core *run)
{
    run_refusal *r = &run->fallback.refusal;
    memcpy(r->policy, run->result.policy_name, sizeof r->policy);
    memcpy(r->message, run->result.message, sizeof r->message);
    r->hook = run->result.outcome.hook;
    r->law = run->result.outcome.law;
    r->too_little = run->result.outcome.too_little;
    r->entry = run->result.outcome.refusal;
    r->repeated = run->result.outcome.repeated;
    run->fallback.reason =
        run->kind == RUN_TURN && strcmp(r->hook, hook_name(SESSILE_HOOK_SHOULD_COMPACT))
            ? run->schedule.why
            : SESSILE_REASON_TURN;
    if (run->pipeline) {
        buf_puts(&r->log, policy_pipeline_log(run->pipeline));
        r->policy_us = policy_pipeline_us(run->pipeline);
    }
}

/* Drops everything that the policy's hooks produced. */
static void reset_run(run_core *run)
{
    sessile_outcome *o = &run->result.outcome;
    policy_pipeline_free(run->pipeline);
    run->pipeline = NULL;
    run_release_worker(run);
    state_free(run->state);
    run->state = NULL;
    buf_clear(&run->journal);
    run_vars_deinit(run);
    run->notes.changed = 0;
    run_forget(run);
    o->verdict = SESSILE_NO_POLICY;
    o->too_little = 0;
    o->law = LAW_NONE;
    o->hook = "";
    o->repeated = 0;
    run->result.policy_name[0] = run->result.message[0] = 0;
    run->result.judged = (judgement){.broken = LAW_NONE, .key = {SESSILE_NO_ID, 0}};
    run->schedule.result = (policy_result){0};
    run->result.refused = 0;
    run->schedule.edited = run->schedule.edited_before = 0;
    run->schedule.did_not_fit = 0;
    run->schedule.fired = run->schedule.stands = SESSILE_REASON_TURN;
    run->schedule.overflowed = run->replay.overflowed = 0;
    run->schedule.phase = 0;
    run->schedule.step = 0;
    run->schedule.hook = 0;
}

void run_begin_fallback(run_core *run)
{
    sessile_policy *refused = run->policy, *next = find_fallback(run);
    sessile_error why = {0};
    save_refusal(run);
    reset_run(run);
    run->fallback.runs = 1;
    policy_retain(next);
    policy_release(run->fallback.policy);
    run->policy = next;
    run->fallback.policy = refused;
    run->schedule.stage = run->kind == RUN_TURN ? STAGE_MERGE : STAGE_COMPACT;
    run_name_policy(run);
    if (run_snapshot(run, &why))
        run_refuse(run, LAW_NONE, why.message);
    else
        run->result.policy_name[0] = 0;
}
