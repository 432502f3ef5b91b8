/*
 * ask.c: what a run asks its host, and the host's reply.
 *
 * Between the two the run holds nothing but its own memory, and what it has written is
 * durable.
 */
#include "run/run.h"

#include "base/names.h"
#include "base/text.h"
#include "run/begin.h"

/* Bytes of a host's reason that are kept. */
#define REASON_MOST 400

sessile_status run_ask_host(run_core *run, sessile_need *need, sessile_error *err)
{
    const policy_step_info *step = run_policy_step(run);
    /* The turn is written but not yet durable, and the answer may take any time. */
    sessile_status status = run_sync(run, err);
    if (status)
        return status;
    *need = (sessile_need){
        .kind = step && step->is_host ? SESSILE_NEED_HOOK : SESSILE_NEED_MODEL,
        .policy = step ? step->name : "",
        .step = run->schedule.step,
        .hook = run->schedule.hook,
        .reason = run_reason_of_hook(run),
        .instructions = {run->options.instructions, run->options.instructions_size},
        .now_ms = run->now_ms,
        .fallback = run->fallback.runs};
    if (step)
        need->options = slice_of(step->options);
    if (need->kind == SESSILE_NEED_HOOK)
        need->state = run->state;
    else
        need->request = run->schedule.result.request;
    run->ask.out = 1;
    return SESSILE_NEEDS;
}

sessile_status run_keep_reply(run_core *run, const sessile_answer *answer,
                              sessile_error *err)
{
    char *text = mem_dup(run->alloc, answer->text.size ? answer->text.data : "",
                         answer->text.size);
    if (!text)
        return fail_nomem(err);
    if (!run->checkpoint.asked && run->kind != RUN_BRANCH &&
        !run_policy_step(run)->is_host) {
        sessile_status status = run_answers_note(run, answer, err);
        if (status) {
            mem_free(run->alloc, text, answer->text.size + 1);
            return status;
        }
    }
    if (run->ask.answer_text)
        mem_free(run->alloc, run->ask.answer_text, run->ask.answer.text.size + 1);
    run->ask.answer_text = text;
    run->ask.answer = *answer;
    run->ask.answer.text.data = text;
    run->ask.out = 0;
    run->ask.replied = 1;
    return SESSILE_OK;
}

sessile_status run_reply(run_core *run, const sessile_answer *answer, sessile_error *err)
{
    sessile_answer own = *answer;
    sessile_error why = {0};
    sessile_status status;
    const policy_step_info *step;
    buf left;

    if (!run->ask.out)
        return fail(err, SESSILE_INVALID, "nothing was asked: step the run first");
    buf_init(&left, run->alloc);
    step = run_policy_step(run);
    status = run->checkpoint.asked /* a state is screened when it is written */
                 ? SESSILE_OK
                 : run_screen_answer(run, step && step->is_host, &own.text, &left, &why);
    if (status == SESSILE_DENIED) { /* the policy is told, and the turn stands */
        own.status = SESSILE_POLICY;
        own.text = slice_of(why.message);
        status = SESSILE_OK;
    } else if (status && err) {
        *err = why;
    }
    if (!status)
        status = run_keep_reply(run, &own, err);
    buf_wipe(&left);
    return status;
}

sessile_status run_take_reply(run_core *run, sessile_error *err)
{
    const policy_step_info *step = run_policy_step(run);
    const sessile_answer *answer = &run->ask.answer;

    run->ask.replied = 0;
    if (step && !step->is_host)
        return policy_pipeline_answer(run->pipeline, answer, &run->schedule.result, err);
    run->schedule.result =
        (policy_result){.verdict = answer->verdict, .text = answer->text};
    if (!answer->status)
        return SESSILE_OK;
    size_t size = utf8_floor(answer->text.data, answer->text.size, REASON_MOST);
    if (size)
        return fail(err, SESSILE_POLICY, "%.*s", (int)size, answer->text.data);
    return fail(err, SESSILE_POLICY,
                run->kind == RUN_BRANCH ? "nobody answered" : "the hook failed");
}
