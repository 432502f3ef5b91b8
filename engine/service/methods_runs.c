/*
 * methods_runs.c: turns, compactions, branches, and answers, as calls that answer once.
 *
 * A policy that asks for a model cannot be answered within such a call, unless the server
 * asks its own. The run is parked then: it becomes a pending run, whose id and need are
 * in the outcome, and Answer goes on with it, at any node. What cannot be parked (a plan,
 * the summary of a branch) goes on without an answer.
 */
#include "service/runs.h"

static sessile_status send_once(call *c, const begun *b, Sessile__V1__Need *parked,
                                sessile_error *err)
{
    Sessile__V1__Outcome *out;
    sessile_status status = runs_outcome(c, b, parked, &out, err);
    return status ? status : call_reply(c, &out->base, err);
}
RUN_ONCE(turn, begin_turn)
RUN_ONCE(compact, begin_compact)
RUN_ONCE(plan, begin_plan)
RUN_ONCE(branch, begin_branch)
RUN_ONCE(answer, begin_answer)

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
