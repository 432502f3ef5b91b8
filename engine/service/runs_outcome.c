/* runs_outcome.c: the needs and the outcomes of runs, as messages. */
#include "service/observe.h"
#include "service/runs.h"

#include "base/os.h"

static const char *const verdicts[] = {"no_policy",  "unchanged", "applied", "refused",
                                       "too_little", "stale",     "pending"};
static const char *const needs[] = {"none", "model", "hook", "state", "embed"};

const char *runs_verdict(sessile_verdict verdict)
{
    return verdicts[verdict];
}

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

Sessile__V1__Need *runs_need(call *c, const sessile_need *from)
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

/* The engine knows how long policies took, not when: the span ends now. */
static void trace_policy(call *c, const sessile_outcome *from)
{
    span policy;
    if (from->verdict == SESSILE_NO_POLICY || from->policy_us == 0)
        return;
    observe_part(c, &policy, "policy", SPAN_INTERNAL);
    span_began(&policy, os_now_us() - (uint64_t)from->policy_us);
    span_set(&policy, attribute_text("sessile.verdict", verdicts[from->verdict]));
    span_end(&policy);
}

sessile_status runs_outcome(call *c, const begun *b, Sessile__V1__Need *parked,
                            Sessile__V1__Outcome **out, sessile_error *err)
{
    sessile_outcome outcome;
    sessile_status status = sessile_run_outcome(b->run, &outcome, err);
    if (!status)
        trace_policy(c, &outcome);
    *out = status ? NULL : outcome_of(c, &outcome);
    if (!*out)
        return status ? status : fail_nomem(err);
    (*out)->session = call_session_names(c, sessile_session_agent(b->session),
                                         sessile_session_user(b->session),
                                         sessile_session_id(b->session));
    (*out)->need = parked;
    return b->with_context && !parked ? fill_context(c, b->run, *out, err) : SESSILE_OK;
}
