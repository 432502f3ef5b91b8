/* run.c: the public functions of policies and runs. */
#include "api/api.h"

#include <string.h>

#include "policy/policy.h"
#include "run/begin.h"
#include "operations/pending.h"
#include "session/handle.h"
#include "session/triggers.h"

sessile_status sessile_policy_load(sessile_policy **out, sessile_store *store,
                                   const sessile_policy_step *steps, size_t count,
                                   sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    *out = NULL;
    if (!store || !steps)
        return api_missing(err, __func__, "store or steps");
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

static sessile_status check(sessile_run **out, sessile_session *session,
                            const sessile_run_options **options,
                            sessile_run_options *defaults, const char *function,
                            sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, function, "out");
    *out = NULL;
    if (!session)
        return api_missing(err, function, "session");
    if (!*options) {
        sessile_run_options_init(defaults);
        *options = defaults;
    }
    if ((*options)->window < 0 || (*options)->reserve < 0)
        return fail(err, SESSILE_INVALID, "window and reserve are tokens: 0 or more");
    if (api_bad((*options)->usage) || api_bad((*options)->model) ||
        api_bad((*options)->metadata) || api_bad((*options)->instructions) ||
        api_bad((*options)->event) || api_bad((*options)->summary))
        return api_missing(err, function, "the data of a slice in options");
    if ((unsigned)(*options)->on_conflict > SESSILE_ON_CONFLICT_BRANCH)
        return fail(err, SESSILE_INVALID, "on_conflict is FAIL, APPEND or BRANCH");
    if ((*options)->has_timeout) {
        sessile_status status = store_handle_timeout((*options)->timeout_ms, err);
        if (status)
            return status;
    }
    if ((unsigned)(*options)->reason > SESSILE_REASON_MANUAL)
        return fail(err, SESSILE_INVALID, "no such reason: %d", (int)(*options)->reason);
    if (api_bad((*options)->state))
        return api_missing(err, function, "the data of a slice in options");
    sessile_status good = triggers_check((*options)->triggers, err);
    return !good ? triggers_check((*options)->checkpoint_on, err) : good;
}

sessile_status sessile_turn_begin(sessile_run **out, sessile_session *session,
                                  const sessile_slice *messages, size_t count,
                                  const sessile_run_options *options, sessile_error *err)
{
    sessile_run_options defaults;
    sessile_status status = check(out, session, &options, &defaults, __func__, err);
    if (status)
        return status;
    if (!messages && count)
        return api_missing(err, __func__, "messages");
    for (size_t i = 0; i < count; i++)
        if (api_bad(messages[i]))
            return api_missing(err, __func__, "the data of a message");
    return run_begin_turn(out, session, messages, count, options, err);
}

sessile_status sessile_compact_begin(sessile_run **out, sessile_session *session,
                                     const sessile_run_options *options,
                                     sessile_error *err)
{
    sessile_run_options defaults;
    sessile_status status = check(out, session, &options, &defaults, __func__, err);
    return !status ? run_begin_compact(out, session, 0, options, err) : status;
}

sessile_status sessile_plan_begin(sessile_run **out, sessile_session *session,
                                  const sessile_run_options *options, sessile_error *err)
{
    sessile_run_options defaults;
    sessile_status status = check(out, session, &options, &defaults, __func__, err);
    return !status ? run_begin_compact(out, session, 1, options, err) : status;
}

sessile_status sessile_branch_begin(sessile_run **out, sessile_session *session,
                                    sessile_id entry, const sessile_run_options *options,
                                    sessile_error *err)
{
    sessile_run_options defaults;
    sessile_status status = check(out, session, &options, &defaults, __func__, err);
    if (status)
        return status;
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
    error_clear(err);
    if (!run || !need)
        return api_missing(err, __func__, "run or need");
    return run_step(run, need, err);
}

sessile_status sessile_run_reply(sessile_run *run, const sessile_answer *answer,
                                 sessile_error *err)
{
    error_clear(err);
    if (!run || !answer)
        return api_missing(err, __func__, "run or answer");
    if (api_bad(answer->text))
        return api_missing(err, __func__, "answer->text.data");
    return run_reply(run, answer, err);
}

sessile_status sessile_run_outcome(sessile_run *run, sessile_outcome *out,
                                   sessile_error *err)
{
    error_clear(err);
    if (!out)
        return api_missing(err, __func__, "out");
    memset(out, 0, sizeof *out);
    if (!run)
        return api_missing(err, __func__, "run");
    return run_outcome(run, out, err);
}

sessile_status sessile_run_context(sessile_run *run, sessile_message **out, size_t *count,
                                   sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!run)
        return api_missing(err, __func__, "run");
    return run_context(run, out, count, err);
}

sessile_status sessile_run_defer(sessile_run *run, sessile_id *out, sessile_error *err)
{
    sessile_id unwanted;
    error_clear(err);
    if (!out)
        out = &unwanted;
    *out = SESSILE_NO_ID;
    if (!run)
        return api_missing(err, __func__, "run");
    return run_defer(run, out, err);
}

sessile_status sessile_pending_runs(sessile_session *session, sessile_pending_run **out,
                                    size_t *count, sessile_error *err)
{
    error_clear(err);
    if (!out || !count)
        return api_missing(err, __func__, "out or count");
    *out = NULL;
    *count = 0;
    if (!session)
        return api_missing(err, __func__, "session");
    return session_pending_runs(session, out, count, err);
}

sessile_status sessile_answer_begin(sessile_run **out, sessile_session *session,
                                    sessile_id pending_run, const sessile_answer *answer,
                                    const sessile_run_options *options,
                                    sessile_error *err)
{
    sessile_run_options defaults;
    sessile_status status = check(out, session, &options, &defaults, __func__, err);
    if (status)
        return status;
    if (answer && api_bad(answer->text))
        return api_missing(err, __func__, "answer->text.data");
    return run_begin_answer(out, session, pending_run, answer, options, err);
}

void sessile_run_free(sessile_run *run)
{
    run_free(run);
}
