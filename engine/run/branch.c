/*
 * branch.c: a run that moves the head to an older entry and may ask for a summary of the
 * branch that it leaves.
 *
 * The head moves first, durably, in one commit that also holds the summary if the caller
 * gave one. Only then is a summary asked for: from the policies' branch_summary hooks or,
 * when no policy has that hook, from the host's model. The summary is appended after the
 * new head in a second commit, unless others have appended there meanwhile. So a summary
 * that fails or never comes costs only the summary. Rejected: one commit after the
 * answer. The head would not move until the model answered, and might never move.
 */
#include "run/run.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "session/life.h"
#include "tokens/tokens.h"
#include "session/count.h"
#include "session/read.h"

/* One of the two commits. */
typedef struct branch_write {
    run_core *run;
    const sessile_run_options *options; /* first commit */
    sessile_slice text;                 /* the summary; empty: none */
    entry_source source;                /* of the summary */
    const char *stale;                  /* second commit: why the summary was dropped */
    buf data;                           /* the summary as a message */
} branch_write;

/* ------------------------------------------------------------------ writing */

/* Adds the summary as a message; its metadata names the branch that was left. */
static sessile_status add_summary(branch_write *w, batch *b, sessile_error *err)
{
    run_core *run = w->run;
    char from[9], fork[9];
    message m;

    id_print(run->branch.from, from);
    id_print(run->branch.ancestor, fork);
    buf_clear(&w->data);
    buf_puts(&w->data, "{\"role\":\"user\",\"content\":");
    json_put_string(&w->data, w->text.data, w->text.size);
    buf_printf(&w->data,
               ",\"metadata\":{\"kind\":\"branch_summary\",\"from\":\"%s\","
               "\"ancestor\":\"%s\"}}",
               from, fork);
    if (w->data.failed)
        return fail_nomem(err);
    sessile_status status =
        message_read(&m, w->data.data, w->data.size, NULL, NULL, NULL, run->alloc, err);
    if (status)
        return status;
    token_count n = session_count_locked(run->session, &m);
    entry_fields f = {.parent = run->branch.to,
                      .type = ENTRY_BRANCH_SUMMARY,
                      .source = w->source,
                      .data = w->data.data,
                      .data_size = w->data.size,
                      .tokens = n.tokens,
                      .token_source = token_unit_name(n.unit)};
    run->result.outcome.branch_summary = batch_next(b);
    batch_add(b, &f);
    write_labels_put(&run->labels, b, 0, run->result.outcome.branch_summary);
    return SESSILE_OK;
}

/* session_build: moves the head to run->branch.to. */
static sessile_status build_branch(void *arg, session_core *s, batch *b,
                                   sessile_error *err)
{
    branch_write *w = arg;
    run_core *run = w->run;
    sessile_id base = w->options->has_base ? w->options->base : s->tree.base;
    sessile_status status = session_check_running_locked(s, err);

    if (!status && w->options->on_conflict != SESSILE_ON_CONFLICT_APPEND)
        status = session_check_base_locked(s, base, 1, err);
    if (!status)
        status = session_check_at(s, run->branch.to, err);
    if (!status)
        status = session_common_ancestor_locked(s, s->tree.head, run->branch.to,
                                                &run->branch.ancestor, err);
    if (status)
        return status;
    run->branch.from = s->tree.head;
    run->now_ms = b->now_ms;
    if (run->branch.from != run->branch.to)
        batch_move_head(b, run->branch.to, run->branch.from);
    if (w->text.size)
        status = add_summary(w, b, err);
    if (!status && !b->count)
        s->tree.base = s->tree.head; /* the caller named the head, so it knows it */
    return status;
}

/* session_build: appends the summary if the head is still where this run moved it. */
static sessile_status build_summary(void *arg, session_core *s, batch *b,
                                    sessile_error *err)
{
    branch_write *w = arg;

    w->stale = NULL;
    if (session_check_running_locked(s, NULL))
        w->stale = "the session was suspended meanwhile";
    else if (s->tree.head != w->run->branch.to)
        w->stale = "the conversation continued before there was a summary";
    return w->stale ? SESSILE_OK : add_summary(w, b, err);
}

sessile_status run_branch(run_core *run, const sessile_run_options *options,
                          sessile_error *err)
{
    const sessile_limits *limits = &run->session->store->limits;
    branch_write w = {
        .run = run, .options = options, .text = options->summary, .source = SOURCE_HOST};
    sessile_status status;
    buf left;

    if (!utf8_valid(w.text.data, w.text.size))
        return fail(err, SESSILE_INVALID, "the summary of the branch is not UTF-8");
    if (w.text.size > limits->message)
        return fail(err, SESSILE_LIMIT,
                    "the summary has %zu bytes and the limit [message] is %llu: shorten "
                    "it, or raise the limit",
                    w.text.size, (unsigned long long)limits->message);
    buf_init(&w.data, run->alloc);
    buf_init(&left, run->alloc);
    status = run_screen_summary(run, SESSILE_SCREEN_BY_HOST, &w.text, &left, err);
    if (!status)
        status = session_write(
            run->session, build_branch, &w,
            &(session_writing){.wait = &run->wait, .count = &run->log.written}, err);
    if (!status && w.text.size) {
        run->result.summary = mem_dup(run->alloc, w.text.data, w.text.size);
        run->result.summary_size = run->result.summary ? w.text.size : 0;
    }
    buf_deinit(&w.data);
    buf_deinit(&left);
    if (status)
        return status;
    run->result.outcome.from = run->branch.from;
    run->result.outcome.head = run->result.outcome.branch_summary == SESSILE_NO_ID
                                   ? run->branch.to
                                   : run->result.outcome.branch_summary;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ what is left */

sessile_status run_branch_state(run_core *run, sessile_error *err)
{
    session_core *s = run->session;
    context left;
    meter_ratio fit[TOKEN_UNITS];
    sessile_status status = session_lock_within(s, &run->wait, err);
    if (status)
        return status;
    context_init(&left, run->alloc);
    status =
        session_between_locked(s, run->branch.ancestor, run->branch.from, &left, err);
    if (!status)
        status = session_fit_locked(s, run->branch.from, fit, err);
    session_unlock(s);
    run->turn.previous = left.count;
    if (!status && left.count)
        status = run_new_state(run, &left, NULL, fit, err);
    context_deinit(&left);
    if (!status && run->state && run->policy)
        status = run_acquire_worker(run, err);
    return status;
}

/* ------------------------------------------------------------------ asking */

/* Moves schedule.step to the next policy with the hook, or to the end of the chain: the
 * host's model. 0: nobody is left to ask. */
static int next_summarizer(run_core *run)
{
    size_t steps = run->policy ? policy_step_count(run->policy) : 0;

    for (; run->schedule.step < steps; run->schedule.step++)
        if (run_policy_step(run)->hooks & SESSILE_HOOK_BRANCH_SUMMARY) {
            run->schedule.hook = SESSILE_HOOK_BRANCH_SUMMARY;
            return 1;
        }
    if (run->schedule.hook || run->schedule.step > steps)
        return 0; /* a policy had the hook */
    return 1;
}

static void report_summary(run_core *run, int failed, const char *message)
{
    run_name_policy(run);
    run->result.outcome.verdict = failed ? SESSILE_REFUSED : SESSILE_UNCHANGED;
    run->result.outcome.hook = failed ? hook_name(SESSILE_HOOK_BRANCH_SUMMARY) : "";
    run_say(run, message);
}

static sessile_status start_summary(run_core *run, sessile_error *err)
{
    const policy_step_info *step = run_policy_step(run);
    sessile_status status;

    if (!step) {
        run->schedule.hook = SESSILE_HOOK_BRANCH_SUMMARY;
        status = branch_prompt(run, &run->branch.prompt, err);
        run->schedule.result = (policy_result){
            .request = {run->branch.prompt.data, run->branch.prompt.size}};
        return !status ? SESSILE_NEEDS : status;
    }
    status = state_hook_begin(run->state, "{}", 2, err);
    if (status)
        return status;
    if (step->is_host)
        return SESSILE_NEEDS;
    if (!run->pipeline)
        status = run_make_pipeline(run, err);
    return status ? status
                  : policy_pipeline_call(run->pipeline, run->schedule.step,
                                         run->schedule.hook, run->state,
                                         run->options.reason, &run->schedule.result, err);
}

/* Checks the text that the hook or the model returned and keeps it. *done: it is a
 * summary, not blank. */
static sessile_status accept_summary(run_core *run, int *done, sessile_error *err)
{
    uint64_t limit = run->session->store->limits.policy_result;
    sessile_slice text = run->schedule.result.text;
    size_t i = 0;

    while (i < text.size && strchr(" \t\r\n", text.data[i]) && text.data[i])
        i++;
    *done = 0;
    if (i == text.size) {
        report_summary(run, 0, "no summary was given");
        return SESSILE_OK;
    }
    if (!utf8_valid(text.data, text.size))
        return fail(err, SESSILE_POLICY, "the summary is not UTF-8");
    if (text.size > limit)
        return fail(err, SESSILE_POLICY,
                    "the summary has %zu bytes and the limit [policy_result] is %llu",
                    text.size, (unsigned long long)limit);
    buf left;
    buf_init(&left, run->alloc);
    sessile_status status =
        run_screen_summary(run, SESSILE_SCREEN_BY_AGENT, &text, &left, err);
    if (!status) {
        run->result.summary = mem_dup(run->alloc, text.data, text.size);
        status = run->result.summary ? SESSILE_OK : fail_nomem(err);
    }
    buf_deinit(&left);
    if (status)
        return status;
    run->result.summary_size = text.size;
    report_summary(run, 0, "");
    *done = 1;
    return SESSILE_OK;
}

sessile_status run_branch_ask(run_core *run, sessile_need *need, sessile_error *err)
{
    int done = 0;

    while (!done && (run->ask.replied || next_summarizer(run))) {
        sessile_error why = {0};
        sessile_status status =
            run->ask.replied ? run_take_reply(run, &why) : start_summary(run, &why);
        if (status == SESSILE_NEEDS)
            return run_ask_host(run, need, err);
        if (!status)
            status = accept_summary(run, &done, &why);
        if (status)
            report_summary(run, 1, why.message[0] ? why.message : "the summary failed");
        state_hook_drop(run->state);
        run->schedule.step++;
    }
    run->schedule.stage = STAGE_COMMIT;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ the second commit */

void run_branch_commit(run_core *run)
{
    int is_policy = run->result.policy_name[0] != 0;
    branch_write w = {.run = run,
                      .text = {run->result.summary, run->result.summary_size},
                      .source = is_policy ? SOURCE_POLICY : SOURCE_AGENT};
    sessile_error why = {0};
    sessile_id count = 0;

    run->schedule.stage = STAGE_DONE;
    if (!run->result.summary)
        return;
    buf_init(&w.data, run->alloc);
    sessile_status status =
        session_write(run->session, build_summary, &w,
                      &(session_writing){.wait = &run->wait, .count = &count}, &why);
    buf_deinit(&w.data);
    if (!status && !w.stale) {
        run_written(run, count);
        run->result.outcome.head = run->result.outcome.branch_summary;
        run->result.outcome.verdict = SESSILE_APPLIED;
        return;
    }
    run->result.outcome.branch_summary = SESSILE_NO_ID;
    run->result.outcome.verdict = w.stale ? SESSILE_STALE : SESSILE_REFUSED;
    run_say(run, w.stale ? w.stale : why.message);
}
