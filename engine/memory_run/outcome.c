/* outcome.c: what came of a run of memories. */
#include "memory_run/memory_run.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"

void memory_run_say(memory_run_core *run, const char *format, ...)
{
    char *to = run->result.message, message[2 * sizeof run->result.message];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    message[utf8_floor(message, strlen(message), sizeof run->result.message - 1)] = 0;
    memcpy(to, message, strlen(message) + 1);
}

void memory_run_name(memory_run_core *run, size_t step, sessile_hook hook)
{
    const char *name = "";
    if (run->hooks.policy && step < policy_step_count(run->hooks.policy))
        name = policy_step_get(run->hooks.policy, step)->name;
    snprintf(run->result.policy, sizeof run->result.policy, "%s", name);
    run->result.hook = hook ? hook_name(hook) : "";
}

/* The hook that runs, or whose proposal is being judged. */
static sessile_hook hook_of(const memory_run_core *run)
{
    if (run->hooks.hook)
        return run->hooks.hook;
    return run->kind == MEMORY_RUN_ADMIT                 ? SESSILE_HOOK_ADMIT
           : run->kind == MEMORY_RUN_TIDY || run->tidied ? SESSILE_HOOK_TIDY
                                                         : SESSILE_HOOK_REMEMBER;
}

proposal_author memory_run_author(void *arg, size_t step)
{
    const memory_run_core *run = arg;
    const policy_step_info *info;
    if (!run->hooks.policy || step >= policy_step_count(run->hooks.policy))
        return (proposal_author){"", "", "", 0};
    info = policy_step_get(run->hooks.policy, step);
    return (proposal_author){info->name, info->hash, hook_name(hook_of(run)),
                             info->version};
}

sessile_status memory_run_count(memory_run_core *run, sessile_error *err)
{
    const proposal *p = &run->proposal;
    memory_run_result *r = &run->result;

    for (size_t i = 0; i < p->count; i++) {
        const proposed *x = &p->at[i];
        if (x->state == PROPOSED_STALE)
            r->stale++;
        else if (x->state == PROPOSED_NOT_ADMITTED)
            r->not_admitted++;
        else if (x->kind == PROPOSED_DELETE)
            r->ended += x->ends;
        else if (x->kind == PROPOSED_CONFIRM)
            r->confirmed += x->ids.count;
        else {
            r->written++;
            r->pending += (size_t)x->entry.pending;
            r->lowered += (size_t)x->lowered;
            r->ended += x->is_host && !x->entry.pending ? x->ids.count : x->ends;
        }
    }
    if (r->changes.size && p->count)
        buf_putc(&r->changes, ',');
    proposal_put_changes(p, &r->changes, memory_run_author, run);
    return r->changes.failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status memory_run_outcome(memory_run_core *run, sessile_memory_outcome *out,
                                  sessile_error *err)
{
    memory_run_result *r = &run->result;

    buf_clear(&r->changes_json);
    buf_putc(&r->changes_json, '[');
    buf_put(&r->changes_json, r->changes.data, r->changes.size);
    buf_putc(&r->changes_json, ']');
    if (r->changes_json.failed)
        return fail_nomem(err);
    *out =
        (sessile_memory_outcome){.verdict = r->verdict,
                                 .policy = r->policy,
                                 .hook = r->hook,
                                 .law = r->law,
                                 .message = r->message,
                                 .refusal = r->refusal,
                                 .heard = r->heard,
                                 .left = r->left,
                                 .written = r->written,
                                 .pending = r->pending,
                                 .lowered = r->lowered,
                                 .ended = r->ended,
                                 .confirmed = r->confirmed,
                                 .not_admitted = r->not_admitted,
                                 .stale = r->stale,
                                 .changes = {r->changes_json.data, r->changes_json.size},
                                 .recall = r->recall,
                                 .has_vector = r->has_vector,
                                 .embedded = r->embedded,
                                 .to_embed = r->to_embed,
                                 .log = run->hooks.log.data ? run->hooks.log.data : "",
                                 .policy_us = run->hooks.us};
    return SESSILE_OK;
}
