/* run.c: the public functions of policies and runs. */
#include "api/api.h"

#include "base/names.h"
#include "base/text.h"
#include "policy/policy.h"
#include "run/begin.h"
#include "run/run.h"
#include "operations/pending.h"
#include "session/handle.h"

sessile_status sessile_policy_load(sessile_policy **out, sessile_store *store,
                                   const sessile_policy_step *steps, size_t count,
                                   sessile_error *err)
{
    API_MAKE(out, store);
    API_NEED(steps);
    if (count == 0)
        return fail(err, SESSILE_INVALID, "a chain has at least one policy");
    GUARD_ENTER(policy_load, store);
    policy_limits limits = {.gas = core->limits.policy_gas,
                            .ms = core->limits.policy_ms,
                            .memory = core->limits.policy_memory,
                            .result = core->limits.policy_result};
    return GUARD_LEAVE(policy_load(out, steps, count, core->policy_path, &limits,
                                   core->worker, core->os, &core->alloc, err));
}

void sessile_policy_free(sessile_policy *policy)
{
    policy_release(policy);
}

void sessile_run_options_init(sessile_run_options *options)
{
    if (!options)
        return;
    memset(options, 0, sizeof *options);
    options->reason = SESSILE_REASON_MANUAL;
}

static sessile_status check(const sessile_run_options *o, const char *function,
                            sessile_error *err)
{
    if (api_bad(o->usage) || api_bad(o->model) || api_bad(o->metadata) ||
        api_bad(o->instructions) || api_bad(o->event) || api_bad(o->summary) ||
        api_bad(o->state))
        return api_missing(err, function, "the data of a slice in options");
    /* they are written into the log, whose lines are JSON */
    if (!utf8_valid(o->instructions.data, o->instructions.size))
        return fail(err, SESSILE_INVALID, "the instructions are not UTF-8");
    if (!utf8_valid(o->event.data, o->event.size))
        return fail(err, SESSILE_INVALID, "the event is not UTF-8");
    if (!utf8_valid(o->model.data, o->model.size))
        return fail(err, SESSILE_INVALID, "the model's name is not UTF-8");
    if ((unsigned)o->on_conflict > SESSILE_ON_CONFLICT_BRANCH)
        return fail(err, SESSILE_INVALID, "on_conflict is FAIL, APPEND or BRANCH");
    if ((unsigned)o->reason > SESSILE_REASON_MANUAL)
        return fail(err, SESSILE_INVALID, "no such reason: %d", (int)o->reason);
    return config_check(&o->config, err);
}

/* What begins every run: its output, its session, its options. */
#define API_RUN                                            \
    error_clear(err);                                      \
    API_OUT(out, NULL);                                    \
    API_NEED(session);                                     \
    API_OPTIONS(sessile_run_options, options);             \
    sessile_status status = check(options, __func__, err); \
    if (status)                                            \
    return status

sessile_status sessile_turn_begin(sessile_run **out, sessile_session *session,
                                  const sessile_slice *messages, size_t count,
                                  const sessile_run_options *options, sessile_error *err)
{
    API_RUN;
    API_TEXTS(messages, count);
    GUARD_ENTER(turn_begin, session);
    GUARD_GOES_ON;
    GUARD_NUMBER("messages", count);
    API_MEMORIES(cores, options->memories, options->memory_count, 1);
    GUARD_MAKE(out, &core->store->alloc);
    status = run_begin_turn(GUARD_INTO(out), core, messages, count, options, &cores, err);
    if (GUARD_WHO && !status) {
        run_core *run = *GUARD_INTO(out);
        run->who = (*out)->who; /* which lives as long */
        call_.entry = &run->result.outcome.last;
    }
    GUARD_MADE(out, status);
}

sessile_status sessile_compact_begin(sessile_run **out, sessile_session *session,
                                     const sessile_run_options *options,
                                     sessile_error *err)
{
    API_RUN;
    GUARD_ENTER(compact_begin, session);
    GUARD_GOES_ON;
    API_MEMORIES(cores, options->memories, options->memory_count, 1);
    GUARD_MAKE(out, &core->store->alloc);
    GUARD_MADE(out, run_begin_compact(GUARD_INTO(out), core, 0, options, &cores, err));
}

sessile_status sessile_plan_begin(sessile_run **out, sessile_session *session,
                                  const sessile_run_options *options, sessile_error *err)
{
    API_RUN;
    GUARD_ENTER(plan_begin, session);
    API_MEMORIES(cores, options->memories, options->memory_count, 1);
    GUARD_MAKE(out, &core->store->alloc);
    GUARD_MADE(out, run_begin_compact(GUARD_INTO(out), core, 1, options, &cores, err));
}

sessile_status sessile_branch_begin(sessile_run **out, sessile_session *session,
                                    sessile_id entry, const sessile_run_options *options,
                                    sessile_error *err)
{
    API_RUN;
    if (options->on_conflict == SESSILE_ON_CONFLICT_BRANCH)
        return fail(err, SESSILE_INVALID,
                    "on_conflict of a branch is \"fail\" or \"append\": it is a branch");
    GUARD_ENTER(branch_begin, session);
    GUARD_GOES_ON;
    GUARD_ENTRY(&entry);
    GUARD_COUNT;
    API_MEMORIES(cores, options->memories, options->memory_count, 1);
    GUARD_MAKE(out, &core->store->alloc);
    GUARD_MADE(out, run_begin_branch(GUARD_INTO(out), core, entry, options, &cores, err));
}

sessile_status sessile_branch(sessile_session *session, sessile_id entry,
                              sessile_slice summary, sessile_id *at, sessile_error *err)
{
    sessile_run_options options;
    sessile_outcome outcome = {.head = SESSILE_NO_ID};
    sessile_need need;
    run_core *run = NULL;

    API_USE(session);
    API_TEXT(summary);
    API_OPTIONAL(sessile_id, at, SESSILE_NO_ID);
    sessile_run_options_init(&options);
    options.summary = summary;
    GUARD_ENTER(branch, session);
    GUARD_ENTRY(&entry);
    GUARD_COUNT;
    sessile_status status = run_begin_branch(&run, core, entry, &options, NULL, err);
    if (!status)
        status = run_step(run, &need, err);
    if (!status)
        status = run_outcome(run, &outcome, err);
    if (!status)
        *at = outcome.head;
    run_free(run);
    return GUARD_LEAVE(status);
}

/* What the event of a run's end says of it: the entry that it ended with. */
static void say_outcome(guard_call *call, const run_core *run)
{
    const sessile_outcome *o = &run->result.outcome;

    call->entry = o->compaction != SESSILE_NO_ID ? &o->compaction : &o->head;
    guard_text(call, "run", slice_of("ended"));
}

sessile_status sessile_run_step(sessile_run *run, sessile_need *need, sessile_error *err)
{
    API_USE(run);
    API_NEED(need);
    GUARD_ENTER(run_step, run);
    sessile_status status = run_step(core, need, err);
    GUARD_SAY(say_outcome(&call_, core));
    return GUARD_STEP(run, status);
}

sessile_status sessile_run_reply(sessile_run *run, const sessile_answer *answer,
                                 sessile_error *err)
{
    API_USE(run);
    API_NEED(answer);
    API_TEXT(answer->text);
    GUARD_ENTER(run_reply, run);
    return GUARD_LEAVE(run_reply(core, answer, err));
}

sessile_status sessile_run_outcome(sessile_run *run, sessile_outcome *out,
                                   sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(run);
    GUARD_ENTER(run_outcome, run);
    return GUARD_LEAVE(run_outcome(core, out, err));
}

sessile_status sessile_run_context(sessile_run *run, sessile_message **out, size_t *count,
                                   sessile_error *err)
{
    API_LIST(out, count, run);
    GUARD_ENTER(run_context, run);
    return GUARD_LEAVE(run_context(core, out, count, err));
}

sessile_status sessile_run_defer(sessile_run *run, sessile_id *out, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, out, SESSILE_NO_ID);
    API_NEED(run);
    GUARD_ENTER(run_defer, run);
    GUARD_ENTRY(out);
    GUARD_TEXT("run", slice_of("deferred"));
    return GUARD_STEP(run, run_defer(core, out, err));
}

sessile_status sessile_pending_runs(sessile_session *session, sessile_pending_run **out,
                                    size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    GUARD_ENTER(pending_runs, session);
    return GUARD_LEAVE(session_pending_runs(core, out, count, err));
}

sessile_status sessile_answer_begin(sessile_run **out, sessile_session *session,
                                    sessile_id pending_run, const sessile_answer *answer,
                                    const sessile_run_options *options,
                                    sessile_error *err)
{
    API_RUN;
    if (answer)
        API_TEXT(answer->text);
    GUARD_ENTER(answer_begin, session);
    GUARD_GOES_ON;
    API_MEMORIES(cores, options->memories, options->memory_count, 1);
    GUARD_MAKE(out, &core->store->alloc);
    GUARD_MADE(out, run_begin_answer(GUARD_INTO(out), core, pending_run, answer, options,
                                     &cores, err));
}

void sessile_run_free(sessile_run *run)
{
    if (!run)
        return;
    GUARD_CLOSE(run);
    run_free(core);
}
