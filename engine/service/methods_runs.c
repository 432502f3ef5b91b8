/*
 * methods_runs.c: turns, compactions, branches, and answers, as calls that answer once.
 *
 * A policy that asks for a model cannot be answered within such a call, unless the server
 * asks its own. The run is parked then: it becomes a pending run, whose id and need are
 * in the outcome, and Answer goes on with it, at any node. What cannot be parked (a plan,
 * the summary of a branch) goes on without an answer.
 */
#include "service/server.h"

#include <string.h>

/* ---------------------------------------------------------------------- options */

static sessile_status read_policies(call *c, const Sessile__V1__RunConfig *r,
                                    sessile_policy **out, sessile_error *err)
{
    *out = NULL;
    if (r->n_policies == 0)
        return SESSILE_OK;
    sessile_policy_step *steps = call_new(c, r->n_policies * sizeof *steps);
    if (!steps)
        return fail_nomem(err);
    for (size_t i = 0; i < r->n_policies; i++) {
        const Sessile__V1__Policy *p = r->policies[i];
        /* A path would read a file of the server's. */
        if (!*p->name || strchr(p->name, '/') || strstr(p->name, ".lua"))
            return fail(
                err, SESSILE_INVALID,
                "RunConfig.policies[%zu]: a policy is named as the server has it, "
                "without a path",
                i);
        steps[i].name = p->name;
        steps[i].options = p->options ? p->options->text : NULL;
    }
    return sessile_policy_load(out, c->server->store, steps, r->n_policies, err);
}

static sessile_status read_config(call *c, const Sessile__V1__RunConfig *r,
                                  sessile_run_options *out, sessile_error *err)
{
    sessile_run_options_init(out);
    if (!r)
        return SESSILE_OK;
    out->config.window = r->window;
    out->config.reserve = r->reserve;
    out->config.keep_min = r->keep_min;
    out->no_policy = r->no_policy;
    out->no_fallback = r->no_fallback;
    return read_policies(c, r, &out->config.policy, err);
}

static void read_base(const Sessile__V1__Base *base, int on_conflict,
                      sessile_run_options *out)
{
    out->on_conflict = (sessile_on_conflict)on_conflict;
    if (!base)
        return;
    out->has_base = 1;
    out->base = base->entry;
    out->once = sessile_text(base->once);
}

/* ---------------------------------------------------------------------- outcomes */

static const char *const verdicts[] = {"no_policy",  "unchanged", "applied", "refused",
                                       "too_little", "stale",     "pending"};
static const char *const needs[] = {"none", "model", "hook", "state", "embed"};

static void fill_removals(call *c, Sessile__V1__Outcome *out, const sessile_outcome *from)
{
    out->removals = call_rows(c, from->removal_count, &sessile__v1__removal__descriptor);
    for (size_t i = 0; out->removals && i < from->removal_count; i++) {
        const sessile_removal *gone = &from->removals[i];
        Sessile__V1__Removal *row = out->removals[i];
        row->key = call_key(c, gone->key);
        row->disposition = call_string(c, disposition_name(gone->disposition));
        row->role = call_string(c, sessile_role_name(gone->role));
        row->tokens = gone->tokens;
        row->by = call_key(c, gone->by);
    }
    out->n_removals = out->removals ? from->removal_count : 0;
}

static Sessile__V1__Fallback *fallback_of(call *c, const sessile_fallback *from)
{
    if (from->verdict == SESSILE_NO_POLICY)
        return NULL;
    Sessile__V1__Fallback *out = call_make(c, &sessile__v1__fallback__descriptor);
    if (!out)
        return NULL;
    out->verdict = call_string(c, verdicts[from->verdict]);
    out->too_little = from->too_little;
    out->policy = call_string(c, from->policy);
    out->hook = call_string(c, from->hook);
    out->law = from->law;
    out->message = call_string(c, from->message);
    out->refusal = call_entry(c, from->refusal);
    out->repeated = from->repeated;
    return out;
}

static Sessile__V1__Need *need_of(call *c, const sessile_need *from)
{
    Sessile__V1__Need *out = call_make(c, &sessile__v1__need__descriptor);
    if (!out)
        return NULL;
    out->kind = call_string(c, needs[from->kind]);
    out->policy = call_string(c, from->policy);
    out->request = call_json(c, from->request);
    out->reason = call_string(c, sessile_reason_name(from->reason));
    out->instructions = call_text(c, from->instructions);
    return out;
}

static Sessile__V1__Outcome *outcome_of(call *c, const sessile_outcome *from)
{
    Sessile__V1__Outcome *out = call_make(c, &sessile__v1__outcome__descriptor);
    if (!out)
        return NULL;
    out->head = from->head;
    out->first = call_entry(c, from->first);
    out->last = call_entry(c, from->last);
    out->again = from->again;
    out->from = call_entry(c, from->from);
    out->branch_summary = call_entry(c, from->branch_summary);
    out->compaction = call_entry(c, from->compaction);
    out->time_ms = from->time_ms;
    out->first_kept = call_entry(c, from->first_kept);
    out->verdict = call_string(c, verdicts[from->verdict]);
    out->too_little = from->too_little;
    out->policy = call_string(c, from->policy);
    out->hook = call_string(c, from->hook);
    out->law = from->law;
    out->message = call_string(c, from->message);
    out->refusal = call_entry(c, from->refusal);
    out->pending_run = call_entry(c, from->pending_run);
    out->checkpoint = call_entry(c, from->checkpoint);
    out->checkpoint_failed = call_string(c, from->checkpoint_failed);
    out->repeated = from->repeated;
    out->log = call_string(c, from->log);
    out->tokens_before = from->tokens_before;
    out->tokens_after = from->tokens_after;
    out->cannot_fit = from->cannot_fit;
    fill_removals(c, out, from);
    out->summary = call_string(c, from->summary);
    out->reason = call_string(c, sessile_reason_name(from->reason));
    out->fallback = fallback_of(c, &from->fallback);
    out->engine_us = from->engine_us;
    out->policy_us = from->policy_us;
    return out;
}

static sessile_status fill_context(call *c, sessile_run *run, Sessile__V1__Outcome *out,
                                   sessile_error *err)
{
    sessile_message *rows;
    size_t count;
    sessile_status status = sessile_run_context(run, &rows, &count, err);
    if (status)
        return status;
    out->context = call_rows(c, count, &sessile__v1__message__descriptor);
    for (size_t i = 0; out->context && i < count; i++)
        fill_message(c, out->context[i], &rows[i]);
    out->n_context = out->context ? count : 0;
    sessile_free(rows);
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- running */

/* What a call that answers once says to a need: parks it, or goes on without. */
static sessile_status answer_need(call *c, sessile_run *run, const sessile_need *need,
                                  Sessile__V1__Need **parked, sessile_error *err)
{
    sessile_answer none = {.status = SESSILE_UNSUPPORTED,
                           .text = sessile_text("nobody answers in this call")};
    if (need->kind == SESSILE_NEED_MODEL) {
        *parked = need_of(c, need);
        if (!sessile_run_defer(run, NULL, err))
            return SESSILE_OK;
        *parked = NULL;
        error_clear(err);
    }
    return sessile_run_reply(run, &none, err);
}

/* Runs to its end, and replies. Frees the run. */
static sessile_status finish_run(call *c, sessile_session *session, sessile_run *run,
                                 int with_context, sessile_error *err)
{
    Sessile__V1__Need *parked = NULL;
    sessile_outcome outcome;
    sessile_need need;
    sessile_status status = SESSILE_NEEDS;
    while (!parked && (status = sessile_run_step(run, &need, err)) == SESSILE_NEEDS) {
        status = answer_need(c, run, &need, &parked, err);
        if (status)
            break;
    }
    if (!status)
        status = sessile_run_outcome(run, &outcome, err);
    Sessile__V1__Outcome *out = status ? NULL : outcome_of(c, &outcome);
    if (out) {
        out->session = call_session_names(c, sessile_session_agent(session),
                                          sessile_session_user(session),
                                          sessile_session_id(session));
        out->need = parked;
        if (with_context)
            status = fill_context(c, run, out, err);
    }
    if (!status)
        status = out ? call_reply(c, &out->base, err) : fail_nomem(err);
    sessile_run_free(run);
    return status;
}

/* A session that a turn may make. */
static sessile_status open_or_make(call *c, const Sessile__V1__TurnRequest *r,
                                   sessile_session **out, sessile_error *err)
{
    sessile_session_options options;
    sessile_session *made;
    sessile_status status = call_session(c, r->session, out, err);
    if (status != SESSILE_NOTFOUND || !r->create)
        return status;
    error_clear(err);
    status = call_names(c, r->session, &options, err);
    if (!status)
        status = sessile_session_open(&made, c->view, &options, err);
    if (status)
        return status;
    (void)sessile_session_close(made, NULL);
    return call_session(c, r->session, out, err);
}

static sessile_status turn(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__TurnRequest *r = request;
    sessile_session *session;
    sessile_run_options options;
    sessile_run *run;
    sessile_slice *messages = call_slices(c, r->messages, r->n_messages);
    sessile_status status =
        messages ? open_or_make(c, r, &session, err) : fail_nomem(err);
    if (status)
        return status;
    status = read_config(c, r->config, &options, err);
    if (status)
        return status;
    read_base(r->follows, (int)r->on_conflict, &options);
    if (options.once.size)
        c->flags |= STATUS_AGAIN;
    options.usage = json_slice(r->usage);
    options.model = sessile_text(r->model);
    options.metadata = json_slice(r->metadata);
    options.event = sessile_text(r->event);
    options.state = json_slice(r->state);
    status = sessile_turn_begin(&run, session, messages, r->n_messages, &options, err);
    sessile_policy_free(options.config.policy);
    return status ? status : finish_run(c, session, run, 0, err);
}

static sessile_status read_reason(const char *name, sessile_reason *out,
                                  sessile_error *err)
{
    int reason = SESSILE_REASON_TURN;
    if (!*name)
        return SESSILE_OK;
    while (reason <= SESSILE_REASON_MANUAL &&
           strcmp(name, sessile_reason_name((sessile_reason)reason)) != 0)
        reason++;
    if (reason > SESSILE_REASON_MANUAL)
        return fail(err, SESSILE_INVALID,
                    "CompactRequest.reason is turn, threshold, overflow, timer, event or "
                    "manual");
    *out = (sessile_reason)reason;
    return SESSILE_OK;
}

static sessile_status compact_or_plan(call *c, const Sessile__V1__CompactRequest *r,
                                      int plan, sessile_error *err)
{
    sessile_session *session;
    sessile_run_options options;
    sessile_run *run;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = read_config(c, r->config, &options, err);
    if (status)
        return status;
    options.instructions = sessile_text(r->instructions);
    status = read_reason(r->reason, &options.reason, err);
    if (status) {
        sessile_policy_free(options.config.policy);
        return status;
    }
    status = plan ? sessile_plan_begin(&run, session, &options, err)
                  : sessile_compact_begin(&run, session, &options, err);
    sessile_policy_free(options.config.policy);
    return status ? status : finish_run(c, session, run, plan, err);
}

static sessile_status compact(call *c, const void *request, sessile_error *err)
{
    return compact_or_plan(c, request, 0, err);
}

static sessile_status plan(call *c, const void *request, sessile_error *err)
{
    return compact_or_plan(c, request, 1, err);
}

static sessile_status branch(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__BranchRequest *r = request;
    sessile_session *session;
    sessile_run_options options;
    sessile_run *run;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = read_config(c, r->config, &options, err);
    if (status)
        return status;
    read_base(r->follows, (int)r->on_conflict, &options);
    options.summary = sessile_text(r->summary);
    options.summarize = r->summarize;
    options.instructions = sessile_text(r->instructions);
    status = sessile_branch_begin(&run, session, r->entry, &options, err);
    sessile_policy_free(options.config.policy);
    return status ? status : finish_run(c, session, run, 0, err);
}

static sessile_answer read_answer(const Sessile__V1__Answer *r)
{
    if (r->failure)
        return (sessile_answer){.status = SESSILE_IO,
                                .text = sessile_text(r->failure->message)};
    return (sessile_answer){.text = sessile_text(r->text), .verdict = r->verdict};
}

static sessile_status answer(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__AnswerRequest *r = request;
    sessile_session *session;
    sessile_run_options options;
    sessile_answer given;
    sessile_run *run;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = read_config(c, r->config, &options, err);
    if (status)
        return status;
    if (r->answer)
        given = read_answer(r->answer);
    status = sessile_answer_begin(&run, session, entry_id(r->pending_run),
                                  r->answer ? &given : NULL, &options, err);
    sessile_policy_free(options.config.policy);
    return status ? status : finish_run(c, session, run, 0, err);
}

static sessile_status list_pending_runs(call *c, const void *request, sessile_error *err)
{
    const Sessile__V1__SessionRequest *r = request;
    Sessile__V1__PendingRuns *out = call_make(c, &sessile__v1__pending_runs__descriptor);
    sessile_session *session;
    sessile_pending_run *rows;
    size_t count;
    sessile_status status = call_session(c, r->session, &session, err);
    if (!status)
        status = sessile_pending_runs(session, &rows, &count, err);
    if (status)
        return status;
    if (out)
        out->runs = call_rows(c, count, &sessile__v1__pending_run__descriptor);
    for (size_t i = 0; out && out->runs && i < count; i++) {
        out->runs[i]->entry = rows[i].entry;
        out->runs[i]->time_ms = rows[i].time_ms;
        out->runs[i]->refused = rows[i].refused;
        out->runs[i]->policy = call_text(c, rows[i].policy);
        out->runs[i]->request = call_json(c, rows[i].request);
        out->n_runs = i + 1;
    }
    sessile_free(rows);
    return out ? call_reply(c, &out->base, err) : fail_nomem(err);
}

const method methods_runs[] = {
    METHOD("Turn", turn, turn_request, 0),
    METHOD("Compact", compact, compact_request, 0),
    METHOD("Plan", plan, compact_request, METHOD_READS),
    METHOD("Branch", branch, branch_request, 0),
    METHOD("Answer", answer, answer_request, 0),
    METHOD("ListPendingRuns", list_pending_runs, session_request, METHOD_READS),
    {NULL, NULL, 0, NULL},
};
