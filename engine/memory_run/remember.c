/*
 * remember.c: remember, tidy and admit: hooks propose, then the proposal is judged and
 * written.
 *
 *     REMEMBER   `remember` of each policy, on what was not heard yet
 *     ADMIT      `admit` of each policy, on each entry that is to be written
 *     COMMIT     the proposal is judged on the memory as it is, and written
 *     TIDY       `tidy` of each policy, on each entry that was written; then once more
 *                ADMIT and COMMIT
 *
 * A hook that fails refuses what is proposed so far, and nothing of it is written. What
 * was written before (of remember, when tidy fails) stays.
 */
#include "memory_run/memory_run.h"

#include <string.h>

#include "base/text.h"
#include "codec/json.h"

/* Entries that one run of tidy looks at: each may ask a model. */
enum { TIDY_MOST = 64 };

/* ------------------------------------------------------------------ refusals */

static sessile_status refuse(memory_run_core *run, const sessile_error *why,
                             sessile_error *err)
{
    proposal *p = &run->proposal;
    proposal_author author = memory_run_author(run, run->hooks.step);
    memory_law law = run->hooks.result.spent ? MEMORY_LAW_BOUNDS : MEMORY_LAW_NONE;
    sessile_status status;

    run->result.verdict = SESSILE_REFUSED;
    run->result.law = law;
    memory_run_name(run, run->hooks.step, run->hooks.hook);
    memory_run_say(run, "%s", why->message[0] ? why->message : "the policy failed");
    proposal_clear(p);
    status =
        proposal_refuse(p, law, run->result.message, run->options.dry_run, &author, err);
    run->result.refusal = p->refusal;
    memory_hooks_end(run);
    run->stage = MEMORY_STAGE_DONE;
    return status;
}

/* Runs a hook; *failed: it failed, and was refused. */
static sessile_status call(memory_run_core *run, sessile_hook hook, int *failed,
                           sessile_need *need, sessile_error *err)
{
    sessile_error why = {SESSILE_OK, ""};
    sessile_status status = memory_hook(run, hook, need, &why);

    *failed = status == SESSILE_POLICY;
    if (*failed)
        return refuse(run, &why, err);
    if (status && status != SESSILE_NEEDS)
        return fail(err, status, "%s", why.message);
    return status;
}

/* ------------------------------------------------------------------ remember */

static sessile_status hear(memory_run_core *run, sessile_error *err)
{
    proposal *p = &run->proposal;
    sessile_status status;

    buf_clear(&run->arguments);
    buf_putc(&run->arguments, '[');
    status = proposal_hear(p, &run->arguments, err);
    buf_putc(&run->arguments, ']');
    run->result.heard = p->message_count;
    run->result.left = p->heard.left;
    run->has_heard = 1;
    return !status && run->arguments.failed ? fail_nomem(err) : status;
}

static sessile_status step_remember(memory_run_core *run, sessile_need *need,
                                    sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int failed = 0;

    if (!run->has_heard)
        status = hear(run, err);
    while (!status && run->proposal.message_count &&
           memory_next_hook(run, SESSILE_HOOK_REMEMBER)) {
        status = call(run, SESSILE_HOOK_REMEMBER, &failed, need, err);
        if (status || failed)
            return status;
        run->hooks.step++;
    }
    run->hooks.step = 0;
    memory_hooks_end(run);
    run->stage = MEMORY_STAGE_ADMIT;
    return status;
}

/* ------------------------------------------------------------------ tidy */

static sessile_status list_live(memory_run_core *run, sessile_error *err)
{
    memory_core *m = run->memories[run->proposal.target];
    sessile_status status = memory_lock_fresh(m, err);
    int64_t now_ms = memory_now_ms(m);

    if (status)
        return status;
    for (size_t i = m->fold->states.count; !status && i > 0; i--)
        if (states_of(&m->fold->states, (uint32_t)(i - 1), now_ms) ==
                SESSILE_MEMORY_LIVE &&
            entry_ids_add(&run->ids, m->fold->states.records[i - 1].id, run->alloc))
            status = fail_nomem(err);
    memory_unlock(m);
    return status;
}

/* The next entry that is live, with its neighbours; 0: there is none. */
static int next_near(memory_run_core *run, sessile_status *status, sessile_error *err)
{
    int live = 0;

    while (run->at < run->ids.count && run->at < TIDY_MOST && !live) {
        buf_clear(&run->arguments);
        buf_putc(&run->arguments, '[');
        *status = proposal_put_near(&run->proposal, &run->arguments, run->proposal.target,
                                    run->ids.at[run->at], &live, err);
        buf_putc(&run->arguments, ']');
        if (*status == SESSILE_NOTFOUND && run->kind == MEMORY_RUN_REMEMBER)
            *status = SESSILE_OK; /* it was erased meanwhile */
        if (*status)
            return 0;
        if (!live)
            run->at++;
    }
    return live;
}

static sessile_status step_tidy(memory_run_core *run, sessile_need *need,
                                sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int failed = 0;

    if (run->kind == MEMORY_RUN_TIDY && !run->options.has_ids && !run->ids.count)
        status = list_live(run, err);
    while (!status && (run->ask.replied || next_near(run, &status, err))) {
        while (!status && memory_next_hook(run, SESSILE_HOOK_TIDY)) {
            status = call(run, SESSILE_HOOK_TIDY, &failed, need, err);
            if (status || failed)
                return status;
            run->hooks.step++;
        }
        run->hooks.step = 0;
        run->at++;
        memory_hooks_end(run);
    }
    run->result.left =
        run->kind == MEMORY_RUN_TIDY ? run->ids.count - run->at : run->result.left;
    run->at = 0;
    run->ids.count = 0;
    run->tidied = 1;
    run->stage = MEMORY_STAGE_ADMIT;
    return status;
}

/* ------------------------------------------------------------------ admit */

/* Bytes of what a policy says about an entry. */
#define WHY_MOST 400

/* POLICY: it returned something else than true, false, "pending" or nothing. */
static sessile_status take_admission(memory_run_core *run, proposed *x,
                                     sessile_error *err)
{
    json_iter it =
        json_begin(json_of(run->hooks.returned.data, run->hooks.returned.size));
    json said = {0}, why = {0};

    if (json_next(&it))
        said = it.value;
    if (json_next(&it))
        why = it.value;
    if (said.type == JSON_TRUE)
        return SESSILE_OK;
    if (json_is(said, "pending"))
        x->waits = 1;
    else if (said.type == JSON_FALSE || said.type == JSON_NULL)
        x->state = PROPOSED_NOT_ADMITTED;
    else
        return fail(err, SESSILE_POLICY,
                    "admit returns true, false or \"pending\", and a reason");
    buf_clear(&x->why);
    if (why.type == JSON_STRING && why.size > 2)
        (void)json_string(&x->why, why);
    else
        buf_puts(&x->why, x->waits ? "a policy wants a person to look at it"
                                   : "a policy does not admit it");
    if (x->why.failed)
        return fail_nomem(err);
    x->why.size = utf8_floor(x->why.data, x->why.size, WHY_MOST);
    return SESSILE_OK;
}

/* One hook about one entry. */
static sessile_status admit_one(memory_run_core *run, int *failed, sessile_need *need,
                                sessile_error *err)
{
    sessile_error why = {SESSILE_OK, ""};
    sessile_status status;

    buf_clear(&run->arguments);
    buf_putc(&run->arguments, '[');
    proposal_put_proposed(&run->proposal, &run->arguments, run->at);
    buf_putc(&run->arguments, ']');
    if (run->arguments.failed)
        return fail_nomem(err);
    status = call(run, SESSILE_HOOK_ADMIT, failed, need, err);
    if (status || *failed)
        return status;
    status = take_admission(run, &run->proposal.at[run->at], &why);
    *failed = status == SESSILE_POLICY;
    if (*failed)
        return refuse(run, &why, err);
    return status ? fail(err, status, "%s", why.message) : SESSILE_OK;
}

static sessile_status step_admit(memory_run_core *run, sessile_need *need,
                                 sessile_error *err)
{
    proposal *p = &run->proposal;
    sessile_status status = SESSILE_OK;
    int failed = 0;

    if (!run->attested)
        status = proposal_attest(p, err);
    run->attested = 1;
    p->reads_only = 1; /* who admits does not write */
    for (; !status && !p->broken && run->at < p->count; run->at++) {
        if (p->at[run->at].kind != PROPOSED_WRITE)
            continue;
        while (!status && p->at[run->at].state == PROPOSED_GOOD &&
               memory_next_hook(run, SESSILE_HOOK_ADMIT)) {
            status = admit_one(run, &failed, need, err);
            if (status || failed)
                return status;
            run->hooks.step++;
        }
        run->hooks.step = 0;
    }
    p->reads_only = 0;
    memory_hooks_end(run);
    run->at = 0;
    run->attested = 0;
    run->stage = MEMORY_STAGE_COMMIT;
    return status;
}

/* ------------------------------------------------------------------ commit */

static sessile_verdict verdict_of(const proposal *p)
{
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].state == PROPOSED_GOOD)
            return SESSILE_APPLIED;
    return SESSILE_UNCHANGED;
}

/* What was written is looked at by tidy, if there is one and it has not been. */
static sessile_status begin_tidy(memory_run_core *run, sessile_error *err)
{
    const proposal *p = &run->proposal;
    size_t step = run->hooks.step;
    int has_hook = memory_next_hook(run, SESSILE_HOOK_TIDY);

    run->hooks.step = step;
    run->stage = MEMORY_STAGE_DONE;
    if (run->tidied || run->kind != MEMORY_RUN_REMEMBER || !has_hook)
        return SESSILE_OK;
    for (size_t i = 0; i < p->count; i++)
        if (p->at[i].id != SESSILE_NO_ID && p->at[i].memory == p->target &&
            !p->at[i].entry.pending && entry_ids_add(&run->ids, p->at[i].id, run->alloc))
            return fail_nomem(err);
    if (run->ids.count)
        run->stage = MEMORY_STAGE_TIDY;
    return SESSILE_OK;
}

static sessile_status step_commit(memory_run_core *run, sessile_error *err)
{
    proposal *p = &run->proposal;
    sessile_status status = SESSILE_OK;

    if (p->count || p->heard.moves)
        status = proposal_commit(p, run->options.dry_run, memory_run_author, run, err);
    if (status)
        return status;
    run->stage = MEMORY_STAGE_DONE;
    if (p->broken) {
        size_t step = p->culprit < p->count ? p->at[p->culprit].step : 0;
        run->result.verdict = SESSILE_REFUSED;
        run->result.law = (int)p->broken;
        run->result.refusal = p->refusal;
        memory_run_name(run, step,
                        run->tidied ? SESSILE_HOOK_TIDY : SESSILE_HOOK_REMEMBER);
        memory_run_say(run, "law %d: %s", (int)p->broken, p->message);
        return SESSILE_OK;
    }
    if (p->is_stale) {
        run->result.verdict = SESSILE_STALE;
        memory_run_say(run, "the session was heard by another process meanwhile");
        return SESSILE_OK;
    }
    if (run->result.verdict != SESSILE_APPLIED)
        run->result.verdict = verdict_of(p);
    status = memory_run_count(run, err);
    if (!status)
        status = begin_tidy(run, err);
    proposal_clear(p);
    return status;
}

/* ------------------------------------------------------------------ all of it */

sessile_status memory_step_hooks(memory_run_core *run, sessile_need *need,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    while (!status && run->stage != MEMORY_STAGE_DONE)
        switch (run->stage) {
        case MEMORY_STAGE_FIRST:
            status = step_remember(run, need, err);
            break;
        case MEMORY_STAGE_TIDY:
            status = step_tidy(run, need, err);
            break;
        case MEMORY_STAGE_ADMIT:
            status = step_admit(run, need, err);
            break;
        default:
            status = step_commit(run, err);
        }
    return status;
}
