/* run.c: the public functions of policies and runs. */
#include "api/api.h"

#include "base/text.h"
#include "policy/policy.h"
#include "run/begin.h"
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
    policy_limits limits = {.gas = store->limits.policy_gas,
                            .ms = store->limits.policy_ms,
                            .memory = store->limits.policy_memory,
                            .result = store->limits.policy_result};
    return policy_load(out, steps, count, store->policy_path, &limits, store->worker,
                       store->os, &store->alloc, err);
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
    return run_begin_turn(out, session, messages, count, options, err);
}

sessile_status sessile_compact_begin(sessile_run **out, sessile_session *session,
                                     const sessile_run_options *options,
                                     sessile_error *err)
{
    API_RUN;
    return run_begin_compact(out, session, 0, options, err);
}

sessile_status sessile_plan_begin(sessile_run **out, sessile_session *session,
                                  const sessile_run_options *options, sessile_error *err)
{
    API_RUN;
    return run_begin_compact(out, session, 1, options, err);
}

sessile_status sessile_branch_begin(sessile_run **out, sessile_session *session,
                                    sessile_id entry, const sessile_run_options *options,
                                    sessile_error *err)
{
    API_RUN;
    if (options->on_conflict == SESSILE_ON_CONFLICT_BRANCH)
        return fail(err, SESSILE_INVALID,
                    "on_conflict of a branch is \"fail\" or \"append\": it is a branch");
    return run_begin_branch(out, session, entry, options, err);
}

sessile_status sessile_branch(sessile_session *session, sessile_id entry,
                              sessile_slice summary, sessile_id *at, sessile_error *err)
{
    sessile_run_options options;
    sessile_outcome outcome = {.head = SESSILE_NO_ID};
    sessile_need need;
    sessile_run *run;
    if (at)
        *at = SESSILE_NO_ID;
    sessile_run_options_init(&options);
    options.summary = summary;
    sessile_status status = sessile_branch_begin(&run, session, entry, &options, err);
    if (!status)
        status = sessile_run_step(run, &need, err);
    if (!status)
        status = sessile_run_outcome(run, &outcome, err);
    if (!status && at)
        *at = outcome.head;
    sessile_run_free(run);
    return status;
}

sessile_status sessile_run_step(sessile_run *run, sessile_need *need, sessile_error *err)
{
    API_USE(run);
    API_NEED(need);
    return run_step(run, need, err);
}

sessile_status sessile_run_reply(sessile_run *run, const sessile_answer *answer,
                                 sessile_error *err)
{
    API_USE(run);
    API_NEED(answer);
    API_TEXT(answer->text);
    return run_reply(run, answer, err);
}

sessile_status sessile_run_outcome(sessile_run *run, sessile_outcome *out,
                                   sessile_error *err)
{
    error_clear(err);
    API_ZERO(out);
    API_NEED(run);
    return run_outcome(run, out, err);
}

sessile_status sessile_run_context(sessile_run *run, sessile_message **out, size_t *count,
                                   sessile_error *err)
{
    API_LIST(out, count, run);
    return run_context(run, out, count, err);
}

sessile_status sessile_run_defer(sessile_run *run, sessile_id *out, sessile_error *err)
{
    error_clear(err);
    API_OPTIONAL(sessile_id, out, SESSILE_NO_ID);
    API_NEED(run);
    return run_defer(run, out, err);
}

sessile_status sessile_pending_runs(sessile_session *session, sessile_pending_run **out,
                                    size_t *count, sessile_error *err)
{
    API_LIST(out, count, session);
    return session_pending_runs(session, out, count, err);
}

sessile_status sessile_answer_begin(sessile_run **out, sessile_session *session,
                                    sessile_id pending_run, const sessile_answer *answer,
                                    const sessile_run_options *options,
                                    sessile_error *err)
{
    API_RUN;
    if (answer)
        API_TEXT(answer->text);
    return run_begin_answer(out, session, pending_run, answer, options, err);
}

void sessile_run_free(sessile_run *run)
{
    run_free(run);
}
