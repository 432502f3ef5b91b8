/*
 * hooks.c: one hook of one policy: called, continued, and its requests answered.
 *
 * What ctx.memory asks is answered here and at once; a model, and a hook of the host, are
 * the host's affair. What a script, or a process that runs one, returns is checked before
 * anybody reads it.
 */
#include "memory_run/memory_run.h"

#include "base/text.h"
#include "codec/json.h"
#include "policy/worker.h"
#include "proposal/journal.h"
#include "proposal/state.h"

/* Nesting of what hooks return. */
#define RESULT_DEPTH 32

int memory_next_hook(memory_run_core *run, sessile_hook hook)
{
    memory_hooks *h = &run->hooks;
    size_t count = h->policy ? policy_step_count(h->policy) : 0;

    while (h->step < count &&
           !(policy_step_get(h->policy, h->step)->hooks & (unsigned)hook))
        h->step++;
    return h->step < count;
}

void memory_hooks_end(memory_run_core *run)
{
    memory_hooks *h = &run->hooks;

    if (h->pipeline) {
        const char *log = policy_pipeline_log(h->pipeline);
        buf_puts(&h->log, log);
        h->us += policy_pipeline_us(h->pipeline);
        policy_pipeline_free(h->pipeline);
        h->pipeline = NULL;
    }
    h->hook = 0;
}

/* ------------------------------------------------------------------ the pipeline */

static sessile_status start_worker(memory_run_core *run, sessile_error *err)
{
    memory_hooks *h = &run->hooks;
    sessile_status status;

    if (h->worker && worker_is_dead(h->worker)) {
        worker_stop(h->worker);
        h->worker = NULL;
    }
    if (h->worker ||
        (run->options.isolation != SESSILE_WORKER && !policy_is_foreign(h->policy)))
        return SESSILE_OK;
    status =
        worker_start(&h->worker, run->store->worker, run->store->os, run->alloc, err);
    if (!status)
        state_journal_to(h->state, &h->journal);
    return status;
}

static sessile_status make_pipeline(memory_run_core *run, sessile_error *err)
{
    memory_hooks *h = &run->hooks;
    session_core *s = run->session;
    const memory_core *m = run->memory_count ? run->memories[0] : NULL;
    policy_setup setup = {.now_ms = run->now_ms, .has_memory = 1, .state = h->state};
    sessile_status status = start_worker(run, err);
    buf title;

    if (status)
        return status;
    setup.worker = h->worker;
    setup.journal = &h->journal;
    buf_init(&title, run->alloc);
    if (s) {
        status = session_lock(s, err);
        if (status)
            return status;
        buf_put(&title, s->fold.title ? s->fold.title : "", s->fold.title_size);
        setup.turn = s->tree.head;
        session_unlock(s);
        setup.session_id = (sessile_slice){s->identity.id, s->identity.id_size};
        setup.agent = (sessile_slice){s->identity.agent, s->identity.agent_size};
        setup.metadata = (sessile_slice){s->header.metadata, s->header.metadata_size};
    } else if (m) {
        setup.agent = (sessile_slice){m->agent, m->agent_size};
    }
    setup.title = (sessile_slice){title.data, title.size};
    status = title.failed ? fail_nomem(err)
                          : policy_pipeline_new(&h->pipeline, h->policy, &setup, err);
    buf_deinit(&title);
    return status;
}

/* ------------------------------------------------------------------ its results */

static sessile_status take_result(memory_run_core *run, sessile_error *err)
{
    memory_hooks *h = &run->hooks;
    sessile_slice text = h->result.text;

    buf_clear(&h->returned);
    if (json_check(&h->returned, text.data ? text.data : "", text.size, RESULT_DEPTH,
                   err))
        return fail(err, SESSILE_POLICY, "what it returned is no JSON");
    return SESSILE_OK;
}

/* POLICY: a request of a host's hook was wrong. */
static sessile_status check_raised(const memory_run_core *run, json answer,
                                   sessile_error *err)
{
    json raised = json_get(answer, "raise");
    sessile_status status;
    buf text;

    if (raised.type != JSON_STRING)
        return SESSILE_OK;
    buf_init(&text, run->alloc);
    status = json_string(&text, raised)
                 ? fail_nomem(err)
                 : fail(err, SESSILE_POLICY, "%.*s", (int)text.size, text.data);
    buf_deinit(&text);
    return status;
}

/* The reply of a host's hook: what it returned, and what it asked to write. */
static sessile_status take_host_result(memory_run_core *run, sessile_error *err)
{
    memory_hooks *h = &run->hooks;
    json reply, asks, result, why;
    sessile_status status;
    buf checked, answer;

    buf_init(&checked, run->alloc);
    buf_init(&answer, run->alloc);
    buf_clear(&h->returned);
    if (!run->ask.text.size)
        buf_puts(&run->ask.text, "{}");
    status =
        json_check(&checked, run->ask.text.data, run->ask.text.size, RESULT_DEPTH, err);
    if (status)
        status = fail(err, SESSILE_POLICY, "the hook's answer is no JSON object");
    reply = json_of(checked.data ? checked.data : "", checked.size);
    asks = json_get(reply, "asks");
    for (json_iter it = json_begin(asks);
         !status && asks.type == JSON_ARRAY && json_next(&it);) {
        buf_clear(&answer);
        status =
            proposal_request(&run->proposal, h->step,
                             (sessile_slice){it.value.at, it.value.size}, &answer, err);
        if (!status)
            status = check_raised(run, json_of(answer.data, answer.size), err);
    }
    result = json_get(reply, "result");
    why = json_get(reply, "why");
    buf_putc(&h->returned, '[');
    buf_put(&h->returned, result.size ? result.at : "null",
            result.size ? result.size : 4);
    buf_putc(&h->returned, ',');
    buf_put(&h->returned, why.size ? why.at : "null", why.size ? why.size : 4);
    buf_putc(&h->returned, ']');
    if (!status && h->returned.failed)
        status = fail_nomem(err);
    buf_wipe(&checked);
    buf_wipe(&answer);
    return status;
}

/* ------------------------------------------------------------------ calls */

static sessile_status start(memory_run_core *run, sessile_error *err)
{
    memory_hooks *h = &run->hooks;
    sessile_status status = SESSILE_OK;

    if (!h->pipeline)
        status = make_pipeline(run, err);
    if (!status)
        status = state_hook_begin(h->state, "{}", 2, err);
    if (!status)
        status = policy_pipeline_call_with(
            h->pipeline, h->step, h->hook,
            (sessile_slice){run->arguments.data, run->arguments.size}, h->state,
            run->options.reason, &h->result, err);
    return status;
}

/* The reply of a model goes to the script; that of a host's hook is its result. */
static sessile_status go_on(memory_run_core *run, int is_host, sessile_error *err)
{
    const sessile_answer answer = {.status = run->ask.status,
                                   .text = {run->ask.text.data, run->ask.text.size}};

    run->ask.replied = SESSILE_NEED_NONE;
    if (!is_host)
        return policy_pipeline_answer(run->hooks.pipeline, &answer, &run->hooks.result,
                                      err);
    if (!answer.status)
        return take_host_result(run, err);
    return fail(err, SESSILE_POLICY, "%.*s", (int)answer.text.size,
                answer.text.size ? answer.text.data : "");
}

/* Answers ctx.memory until the hook ends, or asks a model. */
static sessile_status answer_memory(memory_run_core *run, sessile_status status,
                                    sessile_error *err)
{
    memory_hooks *h = &run->hooks;
    sessile_answer answer = {.status = SESSILE_OK};
    buf text;

    buf_init(&text, run->alloc);
    while (status == SESSILE_NEEDS && h->result.asks_memory) {
        buf_clear(&text);
        status = proposal_request(&run->proposal, h->step, h->result.request, &text, err);
        if (status)
            break;
        answer.text = (sessile_slice){text.data, text.size};
        status = policy_pipeline_answer(h->pipeline, &answer, &h->result, err);
    }
    buf_wipe(&text);
    return status;
}

sessile_status memory_hook(memory_run_core *run, sessile_hook hook, sessile_need *need,
                           sessile_error *err)
{
    memory_hooks *h = &run->hooks;
    int is_host = policy_step_get(h->policy, h->step)->is_host;
    sessile_status status;

    if (run->ask.replied) {
        status = go_on(run, is_host, err);
    } else {
        h->hook = hook;
        h->result.spent = 0;
        if (is_host)
            return memory_ask_hook(run, need);
        status = start(run, err);
    }
    if (!is_host)
        status = answer_memory(run, status, err);
    if (status == SESSILE_NEEDS)
        return memory_ask_model(run, need);
    if (!is_host) {
        state_hook_drop(h->state);
        if (!status)
            status = take_result(run, err);
    }
    return status;
}
