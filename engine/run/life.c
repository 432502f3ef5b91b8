/*
 * life.c: creates and frees a run, and holds what every stage needs: clock, wait,
 * reserve, sync.
 *
 * Owns the copies of the caller's options. When a run is freed before its end, the turn
 * stays in the log and the proposal is dropped. This file calls no stage; stages call it.
 */
#include "run/run.h"

#include "run/begin.h"

uint64_t run_clock_us(const run_core *run)
{
    const os_table *os = run->session->store->os;
    return os->clock_us(os->ud);
}

void run_wait_begin(run_core *run)
{
    run->wait = session_wait_begin(run->session, run->options.has_timeout,
                                   run->config.timeout_ms);
}

/* Copies a slice; NULL when it is empty. 0, or -1: NOMEM. */
static int keep_text(const allocator *a, sessile_slice text, char **out, size_t *size)
{
    if (text.size == 0)
        return 0;
    *out = mem_dup(a, text.data, text.size);
    *size = *out ? text.size : 0;
    return *out ? 0 : -1;
}

static int keep_texts(run_core *run, const sessile_run_options *options)
{
    if (run->kind == RUN_TURN && keep_text(run->alloc, options->event,
                                           &run->options.event, &run->options.event_size))
        return -1;
    return keep_text(run->alloc, options->instructions, &run->options.instructions,
                     &run->options.instructions_size);
}

/* Merges the configuration of the call with that of the session and of the store, whose
 * policies may change meanwhile. Its policies are run->policy and run->fallback.policy.
 */
static sessile_status take_config(run_core *run, const sessile_run_options *options,
                                  sessile_error *err)
{
    store_core *store = run->session->store;
    sessile_config own = session_config(run->session), *c = &run->config;
    sessile_status status = config_check_merged(&options->config, &own, err);
    if (status)
        return status;
    *c = options->config;
    config_inherit(c, &own);
    pthread_mutex_lock(&store->mutex);
    config_inherit(c, &store->policies);
    if (!options->no_policy)
        policy_retain(run->policy = c->policy);
    run->fallback.off = options->no_policy || options->no_fallback;
    run->fallback.of_call = options->config.fallback != NULL;
    if (!run->fallback.off)
        policy_retain(run->fallback.policy = c->fallback);
    pthread_mutex_unlock(&store->mutex);
    c->policy = c->fallback = NULL;
    run->options.has_timeout = options->config.has_timeout;
    return config_keep(c, run->alloc, err);
}

static int keep_state(run_core *run, const sessile_run_options *options)
{
    if (options->state.size) {
        run->checkpoint.state.data =
            mem_dup(run->alloc, options->state.data, options->state.size);
        if (!run->checkpoint.state.data)
            return -1;
        run->checkpoint.state.size = options->state.size;
    }
    return 0;
}

sessile_status run_new(run_core **out, session_core *s, run_kind kind,
                       const sessile_run_options *options, const memory_cores *memories,
                       sessile_error *err)
{
    store_core *store = s->store;
    run_core *run = mem_zalloc(&store->alloc, sizeof *run);
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
    run->result.outcome.checkpoint = run->result.outcome.first_kept = SESSILE_NO_ID;
    run->replay.pending_run = SESSILE_NO_ID;
    run->result.outcome.branch_summary = run->result.outcome.from = SESSILE_NO_ID;
    run->result.outcome.hook = "";
    run->result.judged.key.entry = SESSILE_NO_ID;
    run->started_us = run_clock_us(run);
    sessile_status status = take_config(run, options, err);
    if (!status)
        status = run_screen_options(run, options, err);
    if (!status && (keep_texts(run, options) || keep_state(run, options)))
        status = fail_nomem(err);
    if (!status)
        status = run_memory_init(run, memories, err);
    if (status) {
        run_free(run);
        return status;
    }
    run_wait_begin(run);
    *out = run;
    return SESSILE_OK;
}

int64_t run_reserve(const run_core *run)
{
    return run->config.reserve + run->saw.held;
}

int64_t run_room(const run_core *run)
{
    return laws_room(run->config.window, run_reserve(run));
}

void run_free(run_core *run)
{
    if (!run)
        return;
    const allocator *a = run->alloc;
    policy_pipeline_free(run->pipeline);
    run_release_worker(run);
    state_free(run->state);
    run_memory_deinit(run);
    write_labels_deinit(&run->labels, a);
    buf_deinit(&run->journal);
    buf_deinit(&run->branch.prompt);
    if (run->options.model)
        mem_free(a, run->options.model, run->options.model_size + 1);
    policy_release(run->policy);
    policy_release(run->fallback.policy);
    buf_deinit(&run->fallback.refusal.log);
    config_free(&run->config, a);
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

sessile_status run_begun(run_core *run, sessile_status status, run_core **out)
{
    if (status) {
        run_free(run);
        return status;
    }
    run->result.outcome.engine_us = run_clock_us(run) - run->started_us;
    *out = run;
    return SESSILE_OK;
}

const policy_step_info *run_policy_step(const run_core *run)
{
    return run->policy && run->schedule.step < policy_step_count(run->policy)
               ? policy_step_get(run->policy, run->schedule.step)
               : NULL;
}

void run_written(run_core *run, sessile_id count)
{
    run->log.written = count;
    run->log.synced = 0;
}

sessile_status run_sync(run_core *run, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (run->log.written && !run->log.synced)
        status = session_sync_within(run->session, &run->wait, run->log.written, err);
    run->log.synced |= status == SESSILE_OK;
    return status;
}
