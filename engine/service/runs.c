/*
 * runs.c: runs of calls: what a request may ask for, and of which session; how a run is
 * stepped and parked; calls that answer once; questions to the server's model.
 *
 * A policy is named as the server has it. A request never carries code, nor a path.
 */
#include "service/memories.h"
#include "service/runs.h"

#include <string.h>

/* ---------------------------------------------------------------------- options */

sessile_status read_policies(call *c, Sessile__V1__Policy *const *from, size_t n,
                             sessile_policy **out, sessile_error *err)
{
    *out = NULL;
    if (n == 0)
        return SESSILE_OK;
    sessile_policy_step *steps = call_new(c, n * sizeof *steps);
    if (!steps)
        return fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        const Sessile__V1__Policy *p = from[i];
        /* A path would read a file of the server's. */
        if (!*p->name || strchr(p->name, '/') || strstr(p->name, ".lua"))
            return fail(
                err, SESSILE_INVALID,
                "config.policies[%zu]: a policy is named as the server has it, without a "
                "path",
                i);
        steps[i].name = p->name;
        steps[i].options = p->options ? p->options->text : NULL;
    }
    return sessile_policy_load(out, c->server->store, steps, n, err);
}

/* The memories that policies may use, and write to. */
static sessile_status read_memories(call *c, const Sessile__V1__RunConfig *r,
                                    sessile_session *session, sessile_run_options *out,
                                    sessile_error *err)
{
    memory_set *set = call_new(c, sizeof *set);
    if (!set)
        return fail_nomem(err);
    sessile_status status = call_may_remember(c, sessile_session_agent(session), err);
    if (!status)
        status = call_memories(c, session, r->memories, r->n_memories, set, err);
    out->memories = set->at;
    out->memory_count = status ? 0 : set->count;
    return status;
}

static sessile_status read_config(call *c, const Sessile__V1__RunConfig *r, begun *of,
                                  sessile_run_options *out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    sessile_run_options_init(out);
    if (!r)
        return SESSILE_OK;
    out->config.window = r->window;
    out->config.reserve = r->reserve;
    out->config.keep_min = r->keep_min;
    out->no_policy = r->no_policy;
    out->no_fallback = r->no_fallback;
    if (r->n_memories)
        status = read_memories(c, r, of->session, out, err);
    if (!status)
        status = read_policies(c, r->policies, r->n_policies, &of->policy, err);
    out->config.policy = of->policy;
    return status;
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

/* ---------------------------------------------------------------------- beginning */

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
        status = call_may_add(c, options.agent, err);
    if (!status)
        status = sessile_session_open(&made, c->view, &options, err);
    if (status)
        return status;
    (void)sessile_session_close(made, NULL);
    return call_session(c, r->session, out, err);
}

sessile_status begin_turn(call *c, const Sessile__V1__TurnRequest *r, begun *out,
                          sessile_error *err)
{
    sessile_run_options options;
    sessile_slice *messages = call_slices(c, r->messages, r->n_messages);
    sessile_status status =
        messages ? open_or_make(c, r, &out->session, err) : fail_nomem(err);
    if (!status)
        status = call_may_add(c, sessile_session_agent(out->session), err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
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
    return sessile_turn_begin(&out->run, out->session, messages, r->n_messages, &options,
                              err);
}

sessile_status read_reason(const char *name, const char *field, sessile_reason *out,
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
                    "%s is turn, threshold, overflow, timer, event or manual", field);
    *out = (sessile_reason)reason;
    return SESSILE_OK;
}

static sessile_status compact_or_plan(call *c, const Sessile__V1__CompactRequest *r,
                                      begun *out, sessile_error *err)
{
    sessile_run_options options;
    sessile_status status = call_session(c, r->session, &out->session, err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    if (status)
        return status;
    options.instructions = sessile_text(r->instructions);
    status = read_reason(r->reason, "CompactRequest.reason", &options.reason, err);
    if (!status && out->with_context)
        status = sessile_plan_begin(&out->run, out->session, &options, err);
    else if (!status)
        status = sessile_compact_begin(&out->run, out->session, &options, err);
    return status;
}

sessile_status begin_compact(call *c, const Sessile__V1__CompactRequest *r, begun *out,
                             sessile_error *err)
{
    out->with_context = 0;
    return compact_or_plan(c, r, out, err);
}

sessile_status begin_plan(call *c, const Sessile__V1__CompactRequest *r, begun *out,
                          sessile_error *err)
{
    out->with_context = 1;
    return compact_or_plan(c, r, out, err);
}

sessile_status begin_branch(call *c, const Sessile__V1__BranchRequest *r, begun *out,
                            sessile_error *err)
{
    sessile_run_options options;
    sessile_status status = call_session(c, r->session, &out->session, err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    if (status)
        return status;
    read_base(r->follows, (int)r->on_conflict, &options);
    options.summary = sessile_text(r->summary);
    options.summarize = r->summarize;
    options.instructions = sessile_text(r->instructions);
    return sessile_branch_begin(&out->run, out->session, r->entry, &options, err);
}

sessile_answer read_answer(const Sessile__V1__Answer *r)
{
    if (r->failure)
        return (sessile_answer){.status = SESSILE_IO,
                                .text = sessile_text(r->failure->message)};
    return (sessile_answer){.text = sessile_text(r->text), .verdict = r->verdict};
}

sessile_status begin_answer(call *c, const Sessile__V1__AnswerRequest *r, begun *out,
                            sessile_error *err)
{
    sessile_run_options options;
    sessile_answer given;
    sessile_status status = call_session(c, r->session, &out->session, err);
    if (!status)
        status = read_config(c, r->config, out, &options, err);
    if (status)
        return status;
    if (r->answer)
        given = read_answer(r->answer);
    return sessile_answer_begin(&out->run, out->session, entry_id(r->pending_run),
                                r->answer ? &given : NULL, &options, err);
}

/* ---------------------------------------------------------------------- going on */

sessile_status runs_step(const begun *b, sessile_need *need, sessile_error *err)
{
    return b->run ? sessile_run_step(b->run, need, err)
                  : sessile_memory_run_step(b->memory_run, need, err);
}

sessile_status runs_reply(const begun *b, const sessile_answer *answer,
                          sessile_error *err)
{
    return b->run ? sessile_run_reply(b->run, answer, err)
                  : sessile_memory_run_reply(b->memory_run, answer, err);
}

sessile_status runs_park(const begun *b, const sessile_need *need, int *parked,
                         sessile_error *err)
{
    sessile_answer none = {.status = SESSILE_UNSUPPORTED,
                           .text = sessile_text("nobody answers in this call")};
    *parked = b->run && need->kind == SESSILE_NEED_MODEL &&
              !sessile_run_defer(b->run, NULL, err);
    if (*parked)
        return SESSILE_OK;
    error_clear(err);
    return runs_reply(b, &none, err);
}

void runs_free(begun *b)
{
    sessile_run_free(b->run);
    sessile_memory_run_free(b->memory_run);
    sessile_policy_free(b->policy);
}

/* ------------------------------------------------------------- calls that answer once */

static sessile_status go_to_the_end(call *c, const run_kind *kind, const begun *b,
                                    sessile_error *err)
{
    Sessile__V1__Need *asked = NULL;
    sessile_need need;
    int parked = 0;
    sessile_status status = SESSILE_OK;
    while (!status && !parked && (status = runs_step(b, &need, err)) == SESSILE_NEEDS) {
        asked = runs_need(c, &need);
        status = runs_park(b, &need, &parked, err);
    }
    return status ? status : kind->send_outcome(c, b, parked ? asked : NULL, err);
}

sessile_status run_once(call *c, const run_kind *kind, const void *request,
                        sessile_error *err)
{
    begun b = {.run = NULL};
    if (c->server->settings.ask)
        return run_stream_begin(c, kind, request, err);
    sessile_status status = kind->begin(c, request, &b, err);
    if (!status)
        status = go_to_the_end(c, kind, &b, err);
    runs_free(&b);
    return status;
}

/* ----------------------------------------------------------------- the server's model */

/* What waits for a model is not waited for by a server that ends: it is parked. */
static int is_over(void *arg)
{
    call *c = arg;
    return rpc_call_over(c->rpc) || atomic_load(&c->server->stops) > 0;
}

sessile_status runs_ask(call *c, const begun *b, const sessile_need *need, buf *text)
{
    service_question q = {.request = need->request, .over = is_over, .over_arg = c};
    char *settings = NULL;
    size_t size = 0;
    if (is_over(c))
        return SESSILE_CANCELLED;
    if (b->session) {
        q.agent = sessile_session_agent(b->session);
        q.user = sessile_session_user(b->session);
        q.session = sessile_session_id(b->session);
        (void)sessile_settings(b->session, &settings, &size, NULL);
        q.settings = (sessile_slice){settings, size};
    }
    sessile_status status =
        c->server->settings.ask(c->server->settings.ask_arg, &q, text);
    sessile_free(settings);
    return status;
}
