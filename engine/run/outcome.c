/*
 * outcome.c: what the stages of a run report, and how the caller reads it.
 *
 * The stages set the verdict, name the policy and say why. run_outcome() and
 * run_context() turn that into the public outcome when the run is done.
 */
#include "run/run.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "run/begin.h"
#include "session/read.h"

sessile_reason run_reason_of_hook(const run_core *run)
{
    if (run->kind != RUN_TURN || run->schedule.stage != STAGE_COMPACT)
        return run->options.reason;
    return run->schedule.fired != SESSILE_REASON_TURN ? run->schedule.fired
                                                      : SESSILE_REASON_THRESHOLD;
}

void run_say(run_core *run, const char *text)
{
    size_t size = strlen(text);
    if (size >= sizeof run->result.message)
        size = utf8_floor(text, size, sizeof run->result.message - 1);
    memmove(run->result.message, text, size);
    run->result.message[size] = 0;
}

void run_refuse(run_core *run, law broken, const char *message)
{
    run->result.refused = 1;
    if (run->schedule.hook)
        run->schedule.why = run_reason_of_hook(run);
    run->result.outcome.law = (int)broken;
    run->result.outcome.hook = run->schedule.hook ? hook_name(run->schedule.hook) : "";
    run_say(run, message);
    run->schedule.stage = STAGE_COMMIT;
    run->schedule.hook = 0;
}

void run_name_policy(run_core *run)
{
    const policy_step_info *step = run_policy_step(run);
    const char *name = step ? step->name : "";
    size_t size = strlen(name);
    if (size >= sizeof run->result.policy_name)
        size = utf8_floor(name, size, sizeof run->result.policy_name - 1);
    memcpy(run->result.policy_name, name, size);
    run->result.policy_name[size] = 0;
}

void run_forget(run_core *run)
{
    run->result.outcome.compaction = run->result.outcome.refusal = SESSILE_NO_ID;
    run->result.outcome.first_kept = SESSILE_NO_ID;
    run->result.outcome.time_ms = 0;
    run->result.outcome.tokens_after = run->result.outcome.tokens_before;
    run->result.removal_count = 0;
    if (run->result.summary)
        mem_free(run->alloc, run->result.summary, run->result.summary_size + 1);
    run->result.summary = NULL;
    run->result.summary_size = 0;
}

const context *run_context_left(const run_core *run)
{
    int taken = run->result.outcome.verdict == SESSILE_APPLIED ||
                (run->kind == RUN_PLAN && !run->result.refused);
    return taken ? state_after(run->state) : state_before(run->state);
}

/* Moves what the outcome says into out->fallback, and puts the refused policy first. */
static void add_fallback(run_core *run, sessile_outcome *out)
{
    run_refusal *first = &run->fallback.refusal;
    /* also one that changed nothing is named: it is what ran instead */
    const char *name =
        out->policy[0] ? out->policy : policy_step_get(run->policy, 0)->name;
    out->fallback = (sessile_fallback){.verdict = out->verdict,
                                       .too_little = out->too_little,
                                       .policy = name,
                                       .hook = out->hook,
                                       .law = out->law,
                                       .message = out->message,
                                       .refusal = out->refusal,
                                       .repeated = out->repeated};
    out->verdict = SESSILE_REFUSED;
    out->too_little = first->too_little;
    out->policy = first->policy;
    out->hook = first->hook;
    out->law = first->law;
    out->message = first->message;
    out->refusal = first->entry;
    out->repeated = first->repeated;
    out->policy_us += first->policy_us;
    if (!first->joined)
        buf_puts(&first->log, out->log);
    first->joined = 1;
    if (first->log.data && !first->log.failed)
        out->log = first->log.data;
}

sessile_status run_outcome(run_core *run, sessile_outcome *out, sessile_error *err)
{
    if (run->schedule.stage != STAGE_DONE || run->ask.out)
        return fail(err, SESSILE_INVALID, "the run is not done: step it until OK");
    if (run->result.failed.code)
        return fail(err, run->result.failed.code, "%s", run->result.failed.message);
    sessile_outcome *o = &run->result.outcome;
    const char *log = run->pipeline ? policy_pipeline_log(run->pipeline) : "";
    o->policy = run->result.policy_name;
    o->checkpoint_failed = run->checkpoint.why.message;
    o->message = run->result.message;
    o->summary = run->result.summary ? run->result.summary : "";
    o->log = log;
    o->memory = (sessile_slice){run->memory.changes.data, run->memory.changes.size};
    o->reason = run->schedule.why;
    o->removals = run->result.removals;
    o->removal_count = run->result.removal_count;
    o->policy_us = run->pipeline ? policy_pipeline_us(run->pipeline) : 0;
    *out = *o;
    out->fallback = (sessile_fallback){
        .policy = "", .hook = "", .message = "", .refusal = SESSILE_NO_ID};
    if (run->fallback.runs)
        add_fallback(run, out);
    return SESSILE_OK;
}

typedef struct outcome_texts {
    run_core *run;
    prefetch reading;
} outcome_texts;

/* Text of an item for the outcome's context: own messages from the state, the rest from
 * the log. The session's mutex is held. */
static sessile_status text_locked(void *arg, sessile_key key, buf *out,
                                  sessile_error *err)
{
    outcome_texts *texts = arg;
    run_core *run = texts->run;
    if (key.entry == SESSILE_NO_ID) {
        sessile_slice text;
        sessile_status status = state_text(run->state, key, &text, err);
        if (!status)
            buf_put(out, text.data, text.size);
        return status;
    }
    return prefetch_message(&texts->reading, key, out, err);
}

sessile_status run_context(run_core *run, sessile_message **out, size_t *count,
                           sessile_error *err)
{
    if (run->schedule.stage != STAGE_DONE)
        return fail(err, SESSILE_INVALID, "the run is not done: step it until OK");
    session_core *s = run->session;
    context at;
    context_init(&at, run->alloc);
    const context *c = &at;
    sessile_status status = SESSILE_OK;
    sessile_context_info info;
    status = session_lock(s, err);
    if (status)
        return status;
    if (run->state && run->kind != RUN_BRANCH)
        c = run_context_left(run);
    else
        status = session_context_at_locked(s, run->result.outcome.head, &at, err);
    if (!status) {
        outcome_texts texts = {.run = run};
        prefetch_begin(&texts.reading, s, c);
        status =
            render_context(c, text_locked, &texts, s, out, count, &info, run->alloc, err);
        prefetch_end(&texts.reading);
    }
    session_unlock(s);
    context_deinit(&at);
    return status;
}
