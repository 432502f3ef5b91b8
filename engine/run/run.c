/*
 * run.c: stepping a run, its needs and replies, and the outcome.
 *
 * Owns the run's life. A run that is freed early leaves the turn in the log and drops
 * the proposal.
 */
#include "run/run.h"

#include <string.h>

#include "run/begin.h"
#include "session/read.h"

static uint64_t clock_us(const sessile_run *run)
{
    const os_table *os = run->session->store->os;
    return os->clock_us(os->ud);
}

/* A call of this run begins. */
static void begin_wait(sessile_run *run)
{
    run->wait = session_wait_begin(run->session, run->options.has_timeout,
                                   run->options.timeout_ms);
}

/* A copy of what a slice says, NULL when it is empty: 0, or -1: NOMEM. */
static int keep_text(const allocator *a, sessile_slice text, char **out, size_t *size)
{
    if (text.size == 0)
        return 0;
    *out = mem_dup(a, text.data, text.size);
    *size = *out ? text.size : 0;
    return *out ? 0 : -1;
}

static int keep_texts(sessile_run *run, const sessile_run_options *options)
{
    if (run->kind == RUN_TURN && keep_text(run->alloc, options->event,
                                           &run->options.event, &run->options.event_size))
        return -1;
    return keep_text(run->alloc, options->instructions, &run->options.instructions,
                     &run->options.instructions_size);
}

/* A reference to the policy of the call, else of the session, else of the store. */
static sessile_policy *choose(sessile_store *store, sessile_policy *of_call,
                              const policy_ref *of_session, const policy_ref *of_store)
{
    sessile_policy *chosen = of_call ? of_call : of_session->policy;
    pthread_mutex_lock(&store->mutex);
    if (!chosen)
        chosen = of_store->policy;
    if (chosen)
        policy_retain(chosen);
    pthread_mutex_unlock(&store->mutex);
    return chosen;
}

static int keep_checkpoint(sessile_run *run, const sessile_run_options *options)
{
    run->checkpoint.keep = options->checkpoint_keep;
    if (options->state.size) {
        run->checkpoint.state.data =
            mem_dup(run->alloc, options->state.data, options->state.size);
        if (!run->checkpoint.state.data)
            return -1;
        run->checkpoint.state.size = options->state.size;
    }
    return triggers_copy(&run->checkpoint.on, options->checkpoint_on, run->alloc, NULL);
}

sessile_status run_new(sessile_run **out, sessile_session *s, run_kind kind,
                       const sessile_run_options *options, sessile_error *err)
{
    sessile_store *store = s->store;
    sessile_run *run = mem_zalloc(&store->alloc, sizeof *run);
    if (!run)
        return fail_nomem(err);
    run->alloc = &store->alloc;
    buf_init(&run->journal, run->alloc);
    buf_init(&run->branch.prompt, run->alloc);
    buf_init(&run->fallback.refusal.log, run->alloc);
    run->session = s;
    run->kind = kind;
    run->options.reason = kind == RUN_TURN ? SESSILE_REASON_TURN : options->reason;
    run->schedule.why = run->options.reason;
    run->result.outcome.compaction = run->result.outcome.refusal =
        run->result.outcome.pending_run = SESSILE_NO_ID;
    run->result.outcome.checkpoint = SESSILE_NO_ID;
    run->replay.pending_run = SESSILE_NO_ID;
    run->result.outcome.branch_summary = run->result.outcome.from = SESSILE_NO_ID;
    run->result.outcome.hook = "";
    run->result.judged.key.entry = SESSILE_NO_ID;
    run->started_us = clock_us(run);
    run->options.has_timeout = options->has_timeout;
    run->options.timeout_ms = options->timeout_ms;
    begin_wait(run);
    if (keep_texts(run, options) ||
        triggers_copy(&run->options.triggers, options->triggers, run->alloc, NULL) ||
        keep_checkpoint(run, options)) {
        run_free(run);
        return fail_nomem(err);
    }

    if (!options->no_policy)
        run->policy = choose(store, options->policy, &s->settings.policy, &store->policy);
    if (!options->no_policy && !options->no_fallback)
        run->fallback.policy =
            choose(store, options->fallback, &s->settings.fallback, &store->fallback);
    run->options.window = options->window      ? options->window
                          : s->settings.window ? s->settings.window
                                               : store->window;
    run->options.reserve = options->reserve      ? options->reserve
                           : s->settings.reserve ? s->settings.reserve
                                                 : store->reserve;
    *out = run;
    return SESSILE_OK;
}

int64_t run_reserve(const sessile_run *run)
{
    return run->options.reserve + run->saw.held;
}

void run_free(sessile_run *run)
{
    if (!run)
        return;
    const allocator *a = run->alloc;
    policy_pipeline_free(run->pipeline);
    run_give_worker(run);
    state_free(run->state);
    buf_deinit(&run->journal);
    buf_deinit(&run->branch.prompt);
    if (run->options.model)
        mem_free(a, run->options.model, run->options.model_size + 1);
    policy_release(run->policy);
    policy_release(run->fallback.policy);
    buf_deinit(&run->fallback.refusal.log);
    triggers_free(run->options.triggers, a);
    triggers_free(run->checkpoint.on, a);
    if (run->checkpoint.state.data)
        mem_free(a, (char *)run->checkpoint.state.data, run->checkpoint.state.size + 1);
    run_vars_deinit(run);
    if (run->options.event)
        mem_free(a, run->options.event, run->options.event_size + 1);
    run_answers_deinit(&run->ask.answers, a);
    run_answers_deinit(&run->replay.known, a);
    if (run->options.instructions)
        mem_free(a, run->options.instructions, run->options.instructions_size + 1);
    if (run->ask.answer_text)
        mem_free(a, run->ask.answer_text, run->ask.answer.text.size + 1);
    if (run->result.summary)
        mem_free(a, run->result.summary, run->result.summary_size + 1);
    mem_free(a, run->result.removals,
             run->result.removal_capacity * sizeof *run->result.removals);
    mem_free(a, run, sizeof *run);
}

void run_begun(sessile_run *run)
{
    run->result.outcome.engine_us = clock_us(run) - run->started_us;
}

sessile_status run_begin_turn(sessile_run **out, sessile_session *s,
                              const sessile_slice *messages, size_t count,
                              const sessile_run_options *options, sessile_error *err)
{
    sessile_run *run;
    sessile_status status = run_new(&run, s, RUN_TURN, options, err);
    if (status)
        return status;
    status = run_turn(run, messages, count, options, err);
    if (!status && run->policy) {
        /* The turn is in the log whatever happens now: a snapshot that fails refuses the
         * policy, not the turn. */
        sessile_error why = {SESSILE_OK, ""};
        if (run_snapshot(run, &why))
            run_refuse(run, LAW_NONE, why.message);
    } else {
        run->schedule.stage = STAGE_DONE;
    }
    if (status) {
        run_free(run);
        return status;
    }
    run_begun(run);
    *out = run;
    return SESSILE_OK;
}

sessile_status run_begin_compact(sessile_run **out, sessile_session *s, int plan,
                                 const sessile_run_options *options, sessile_error *err)
{
    const os_table *os = s->store->os;
    sessile_run *run;
    sessile_status status = run_new(&run, s, plan ? RUN_PLAN : RUN_COMPACT, options, err);
    if (status)
        return status;
    run->now_ms = os->now_ms(os->ud);
    run->schedule.stage = STAGE_COMPACT;
    if (!run->policy)
        status =
            fail(err, SESSILE_INVALID,
                 "no policy to compact with: name one in the call, the session or the "
                 "store");
    if (!status)
        status = run_snapshot(run, err);
    if (status) {
        run_free(run);
        return status;
    }
    run_begun(run);
    *out = run;
    return SESSILE_OK;
}

sessile_status run_begin_branch(sessile_run **out, sessile_session *s, sessile_id to,
                                const sessile_run_options *options, sessile_error *err)
{
    sessile_run *run;
    sessile_status status = run_new(&run, s, RUN_BRANCH, options, err);
    if (status)
        return status;
    run->branch.to = to;
    if (options->model.size) {
        run->options.model =
            mem_dup(run->alloc, options->model.data, options->model.size);
        run->options.model_size = run->options.model ? options->model.size : 0;
        status = run->options.model ? SESSILE_OK : fail_nomem(err);
    }
    if (!status)
        status = run_branch(run, options, err);
    if (status) {
        run_free(run);
        return status;
    }
    run->schedule.stage = STAGE_DONE;
    if (options->summarize && !options->summary.size) {
        /* The head has moved whatever happens now. */
        sessile_error why = {SESSILE_OK, ""};
        run->result.outcome.verdict = SESSILE_UNCHANGED;
        if (run_branch_state(run, &why)) {
            run->result.outcome.verdict = SESSILE_REFUSED;
            run_say(run, why.message);
        } else if (!run->state) {
            run_say(run, "nothing was left behind");
        } else {
            run->schedule.stage = STAGE_SUMMARIZE;
        }
    }
    run->result.outcome.engine_us = clock_us(run) - run->started_us;
    *out = run;
    return SESSILE_OK;
}

/* The context as the run leaves it, or for a plan would leave it. */
static const context *context_left(const sessile_run *run)
{
    int taken = run->result.outcome.verdict == SESSILE_APPLIED ||
                (run->kind == RUN_PLAN && !run->result.refused);
    return taken ? state_after(run->state) : state_before(run->state);
}

/* What could not be written is as if it had not been proposed. Of a turn that is all
 * there is to say: its messages are in the log. */
static sessile_status commit_failed(sessile_run *run, const sessile_error *why,
                                    sessile_error *err)
{
    run_forget(run);
    if (run->kind != RUN_TURN) {
        run->result.failed = *why;
        return fail(err, why->code, "%s", why->message);
    }
    /* A refusal that could not be recorded is still that refusal. */
    if (run->result.refused)
        return SESSILE_OK;
    run->result.outcome.verdict = SESSILE_REFUSED;
    run->result.outcome.law = LAW_NONE;
    run_say(run, why->message);
    return SESSILE_OK;
}

static sessile_status commit(sessile_run *run, sessile_error *err)
{
    sessile_error why = {SESSILE_OK, ""};
    sessile_status status = run_commit(run, &why);
    run->schedule.stage = STAGE_DONE;
    if (status)
        status = commit_failed(run, &why, err);
    if (!status)
        status = run_end_pending(run, err);
    if (run->state)
        run->result.outcome.cannot_fit =
            laws_cannot_fit(context_left(run), run->options.window, run_reserve(run));
    return status;
}

static sessile_status step_run(sessile_run *run, sessile_need *need, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    if (run->result.failed.code)
        return fail(err, run->result.failed.code, "%s", run->result.failed.message);
    if (run->kind == RUN_BRANCH && run->schedule.stage < STAGE_COMMIT)
        status = run_branch_ask(run, need, err);
    if (!status && run->kind == RUN_BRANCH && run->schedule.stage == STAGE_COMMIT)
        run_branch_commit(run);
    while (!status && run->schedule.stage != STAGE_DONE) {
        if (run->schedule.stage < STAGE_COMMIT)
            status = run_schedule(run, need, err);
        if (!status)
            status = commit(run, err);
        if (!status && run_wants_fallback(run))
            run_begin_fallback(run);
    }
    if (!status)
        status = run_checkpoint(run, need, err);
    /* One sync for all that this run wrote, and only then success. */
    return !status ? run_sync(run, err) : status;
}

sessile_status run_sync(sessile_run *run, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (run->log.written && !run->log.synced)
        status = session_sync_within(run->session, &run->wait, run->log.written, err);
    run->log.synced |= status == SESSILE_OK;
    return status;
}

sessile_status run_step(sessile_run *run, sessile_need *need, sessile_error *err)
{
    *need = (sessile_need){.kind = SESSILE_NEED_NONE};
    if (run->ask.out)
        return fail(err, SESSILE_INVALID, "the run waits for an answer: reply first");
    uint64_t before = clock_us(run);
    begin_wait(run);
    sessile_status status = step_run(run, need, err);
    run->result.outcome.engine_us += clock_us(run) - before;
    return status;
}

sessile_status run_reply(sessile_run *run, const sessile_answer *answer,
                         sessile_error *err)
{
    if (!run->ask.out)
        return fail(err, SESSILE_INVALID, "nothing was asked: step the run first");
    char *text = mem_dup(run->alloc, answer->text.size ? answer->text.data : "",
                         answer->text.size);
    if (!text)
        return fail_nomem(err);
    if (!run->checkpoint.asked && run->kind != RUN_BRANCH &&
        !policy_step_get(run->policy, run->schedule.step)->is_host) {
        sessile_status status = run_answers_note(run, answer, err);
        if (status) {
            mem_free(run->alloc, text, answer->text.size + 1);
            return status;
        }
    }
    if (run->ask.answer_text)
        mem_free(run->alloc, run->ask.answer_text, run->ask.answer.text.size + 1);
    run->ask.answer_text = text;
    run->ask.answer = *answer;
    run->ask.answer.text.data = text;
    run->ask.out = 0;
    run->ask.replied = 1;
    return SESSILE_OK;
}

sessile_status run_outcome(sessile_run *run, sessile_outcome *out, sessile_error *err)
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
    o->reason = run->schedule.why;
    o->removals = run->result.removals;
    o->removal_count = run->result.removal_count;
    o->policy_us = run->pipeline ? policy_pipeline_us(run->pipeline) : 0;
    *out = *o;
    out->fallback = (sessile_fallback){
        .policy = "", .hook = "", .message = "", .refusal = SESSILE_NO_ID};
    if (run->fallback.runs)
        run_fallback_outcome(run, out);
    return SESSILE_OK;
}

typedef struct outcome_texts {
    sessile_run *run;
    prefetch reading;
} outcome_texts;

/* Text of an item for the outcome's context: own messages from the state, the rest from
 * the log. The session's mutex is held. */
static sessile_status text_locked(void *arg, sessile_key key, buf *out,
                                  sessile_error *err)
{
    outcome_texts *texts = arg;
    sessile_run *run = texts->run;
    if (key.entry == SESSILE_NO_ID) {
        sessile_slice text;
        sessile_status status = state_text(run->state, key, &text, err);
        if (!status)
            buf_put(out, text.data, text.size);
        return status;
    }
    return prefetch_message(&texts->reading, key, out, err);
}

sessile_status run_context(sessile_run *run, sessile_message **out, size_t *count,
                           sessile_error *err)
{
    if (run->schedule.stage != STAGE_DONE)
        return fail(err, SESSILE_INVALID, "the run is not done: step it until OK");
    sessile_session *s = run->session;
    context at;
    context_init(&at, run->alloc);
    const context *c = &at;
    sessile_status status = SESSILE_OK;
    sessile_context_info info;
    status = session_lock(s, err);
    if (status)
        return status;
    if (run->state && run->kind != RUN_BRANCH)
        c = context_left(run);
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
