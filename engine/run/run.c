/*
 * run.c: begins a run and steps it from one stage to the next.
 *
 * Owns the order of the stages. Each stage has its own file and never calls this one.
 */
#include "run/run.h"

#include "run/begin.h"

sessile_status run_begin_turn(run_core **out, session_core *s,
                              const sessile_slice *messages, size_t count,
                              const sessile_run_options *options,
                              const memory_cores *memories, sessile_error *err)
{
    run_core *run;
    sessile_status status = run_new(&run, s, RUN_TURN, options, memories, err);
    if (status)
        return status;
    status = run_turn(run, messages, count, options, err);
    if (!status && run->policy && !run->turn.again &&
        !triggers_off(run->config.triggers)) {
        /* The turn is in the log: if the snapshot fails, the policy is refused, not the
         * turn. */
        sessile_error why = {0};
        if (run_snapshot(run, &why))
            run_refuse(run, LAW_NONE, why.message);
    } else {
        run->schedule.stage = STAGE_DONE;
    }
    return run_begun(run, status, out);
}

sessile_status run_begin_compact(run_core **out, session_core *s, int plan,
                                 const sessile_run_options *options,
                                 const memory_cores *memories, sessile_error *err)
{
    const os_table *os = s->store->os;
    run_core *run;
    sessile_status status =
        run_new(&run, s, plan ? RUN_PLAN : RUN_COMPACT, options, memories, err);
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
    return run_begun(run, status, out);
}

sessile_status run_begin_branch(run_core **out, session_core *s, sessile_id to,
                                const sessile_run_options *options,
                                const memory_cores *memories, sessile_error *err)
{
    run_core *run;
    sessile_status status = run_new(&run, s, RUN_BRANCH, options, memories, err);
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
    run->schedule.stage = STAGE_DONE;
    if (!status && options->summarize && !options->summary.size) {
        /* The head has moved: an error only costs the summary. */
        sessile_error why = {0};
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
    return run_begun(run, status, out);
}

/* A proposal that could not be written is dropped. For a turn this is a refusal, not an
 * error: its messages are in the log. */
static sessile_status commit_failed(run_core *run, const sessile_error *why,
                                    sessile_error *err)
{
    run_forget(run);
    if (run->kind != RUN_TURN) {
        run->result.failed = *why;
        return fail(err, why->code, "%s", why->message);
    }
    /* A refusal that could not be written is still reported. */
    if (run->result.refused)
        return SESSILE_OK;
    run->result.outcome.verdict = SESSILE_REFUSED;
    run->result.outcome.law = LAW_NONE;
    run_say(run, why->message);
    return SESSILE_OK;
}

static sessile_status commit(run_core *run, sessile_error *err)
{
    sessile_error why = {0};
    sessile_status status = run_memory_commit(run, &why);
    if (!status)
        status = run_commit(run, &why);
    run->schedule.stage = STAGE_DONE;
    if (status)
        status = commit_failed(run, &why, err);
    if (!status)
        status = run_end_pending(run, err);
    if (run->state)
        run->result.outcome.cannot_fit =
            laws_cannot_fit(run_context_left(run), run->config.window, run_reserve(run));
    return status;
}

static sessile_status step_run(run_core *run, sessile_need *need, sessile_error *err)
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
    /* One sync for everything that this run wrote. */
    return !status ? run_sync(run, err) : status;
}

sessile_status run_step(run_core *run, sessile_need *need, sessile_error *err)
{
    *need = (sessile_need){.kind = SESSILE_NEED_NONE};
    if (run->ask.out)
        return fail(err, SESSILE_INVALID, "the run waits for an answer: reply first");
    uint64_t before = run_clock_us(run);
    run_wait_begin(run);
    sessile_status status = step_run(run, need, err);
    run->result.outcome.engine_us += run_clock_us(run) - before;
    return status;
}
