/*
 * memory.c: ctx.memory in the policies of a session: what a flush saves before a
 * compaction.
 *
 * Requests are answered here, at once; what they propose is collected and judged with the
 * laws of memory when the hooks have ended. It is written before the compaction, so that
 * nothing leaves the context before it is in the memory. A proposal that breaks a law
 * refuses the compaction as well.
 *
 * A pending run runs its policies again from their start: what was read is answered as it
 * was, and what is written is collected again.
 */
#include "run/run.h"

#include <string.h>

#include "operations/recall.h"
#include "policy/policy.h"
#include "run/begin.h"

sessile_status run_memory_init(run_core *run, const memory_cores *memories,
                               sessile_error *err)
{
    run_memory *m = &run->memory;
    session_core *s = run->session;
    sessile_status status;

    buf_init(&m->changes, run->alloc);
    if (!memories || !memories->count)
        return SESSILE_OK;
    status = recall_check_memories(s, memories->at, memories->count, err);
    if (status)
        return status;
    status = proposal_init(&m->proposal, s->store, s, memories->at, memories->count, err);
    m->is_open = 1;
    for (size_t i = 0; i < m->proposal.memory_count; i++)
        memory_retain(m->proposal.memories[i]);
    m->has = !status;
    /* without the user's consent, or a memory that can be read, there is no ctx.memory */
    if (status && status != SESSILE_NOMEM && status != SESSILE_INVALID) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

void run_memory_deinit(run_core *run)
{
    run_memory *m = &run->memory;

    if (m->is_open) {
        for (size_t i = 0; i < m->proposal.memory_count; i++)
            memory_close(m->proposal.memories[i]);
        proposal_deinit(&m->proposal);
    }
    buf_wipe(&m->changes);
    memset(m, 0, sizeof *m);
}

/* The policies see the context: what they may name as sources. */
sessile_status run_memory_show(run_core *run, sessile_error *err)
{
    run_memory *m = &run->memory;

    if (!m->has)
        return SESSILE_OK;
    proposal_clear(&m->proposal);
    return m->proposal.message_count
               ? SESSILE_OK
               : proposal_show_context(&m->proposal, state_before(run->state), err);
}

int run_memory_answer(run_core *run, sessile_error *err, sessile_status *status)
{
    const run_answer *known;
    sessile_answer answer = {.status = SESSILE_OK};
    buf text;

    if (!run->schedule.result.asks_memory || !run->memory.has)
        return 0;
    buf_init(&text, run->alloc);
    run_request_hash(run->ask.request, run->schedule.result.request);
    *status = proposal_request(&run->memory.proposal, run->schedule.step,
                               run->schedule.result.request, &text, err);
    known = run_answers_known(run);
    answer.text = known ? (sessile_slice){known->text, known->size}
                        : (sessile_slice){text.data, text.size};
    if (!*status) {
        run->ask.out = 1;
        *status = run_keep_reply(run, &answer, err);
        run->ask.out = 0;
    }
    buf_wipe(&text);
    return 1;
}

static proposal_author author_of(void *arg, size_t step)
{
    const run_core *run = arg;
    const policy_step_info *info = run->policy && step < policy_step_count(run->policy)
                                       ? policy_step_get(run->policy, step)
                                       : NULL;
    return info ? (proposal_author){info->name, info->hash, "", info->version}
                : (proposal_author){"", "", "", 0};
}

sessile_status run_memory_commit(run_core *run, sessile_error *err)
{
    proposal *p = &run->memory.proposal;
    buf *changes = &run->memory.changes;
    sessile_status status;

    if (!run->memory.has || !p->count || run->result.refused)
        return SESSILE_OK;
    status = proposal_attest(p, err);
    if (!status)
        status = proposal_commit(p, run->kind == RUN_PLAN, author_of, run, err);
    if (!status && p->broken) {
        sessile_error why;
        fail(&why, SESSILE_POLICY, "law %d of memory: %s", (int)p->broken, p->message);
        run->schedule.step = p->culprit < p->count ? p->at[p->culprit].step : 0;
        run_name_policy(run);
        run_refuse(run, LAW_NONE, why.message);
        return SESSILE_OK;
    }
    buf_clear(changes);
    buf_putc(changes, '[');
    proposal_put_changes(p, changes, author_of, run);
    buf_putc(changes, ']');
    proposal_clear(p);
    return !status && changes->failed ? fail_nomem(err) : status;
}
