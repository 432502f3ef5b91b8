/*
 * memory_run.c: begins runs of memories and steps them.
 *
 * Owns which file has which kind of run. A run that has failed says so at every step.
 */
#include "memory_run/memory_run.h"

#include <string.h>

#include "operations/recall.h"

/* Gives the run to the caller, or frees it when status is an error. */
static sessile_status begun(memory_run_core *run, sessile_status status,
                            memory_run_core **out)
{
    if (status)
        memory_run_free(run);
    else
        *out = run;
    return status;
}

static sessile_status need_hook(const memory_run_core *run, sessile_hook hook,
                                const char *name, sessile_error *err)
{
    size_t i, count = run->hooks.policy ? policy_step_count(run->hooks.policy) : 0;
    for (i = 0; i < count; i++)
        if (policy_step_get(run->hooks.policy, i)->hooks & (unsigned)hook)
            return SESSILE_OK;
    return fail(err, SESSILE_INVALID,
                "no policy of the chain has a %s hook: name one that has", name);
}

static sessile_status begin_proposal(memory_run_core *run, sessile_error *err)
{
    sessile_status status = proposal_init(&run->proposal, run->store, run->session,
                                          run->memories, run->memory_count, err);
    run->has_proposal = 1;
    run->proposal.share = run->options.share;
    run->proposal.trust_tools = run->options.trust_tools;
    return status;
}

sessile_status memory_run_remember(memory_run_core **out, session_core *s,
                                   memory_core *const *memories, size_t memory_count,
                                   const sessile_memory_run_options *options,
                                   sessile_error *err)
{
    memory_run_core *run;
    sessile_status status = recall_check_memories(s, memories, memory_count, err);

    if (!status)
        status = memory_run_new(&run, MEMORY_RUN_REMEMBER, s->store, s, memories,
                                memory_count, options, err);
    if (status)
        return status;
    status = need_hook(run, SESSILE_HOOK_REMEMBER, "remember", err);
    if (!status)
        status = begin_proposal(run, err);
    /* law 5: what a user said goes to that user's memory */
    if (!status && s->identity.user_size &&
        !run->memories[run->proposal.target]->user_size)
        status = fail(err, SESSILE_INVALID,
                      "the session is a user's, and what is said in it goes to that "
                      "user's memory: give it");
    return begun(run, status, out);
}

sessile_status memory_run_tidy(memory_run_core **out, memory_core *m,
                               const sessile_memory_run_options *options,
                               sessile_error *err)
{
    memory_run_core *run;
    sessile_status status =
        memory_run_new(&run, MEMORY_RUN_TIDY, m->store, NULL, &m, 1, options, err);
    if (status)
        return status;
    run->stage = MEMORY_STAGE_TIDY;
    status = need_hook(run, SESSILE_HOOK_TIDY, "tidy", err);
    if (!status)
        status = begin_proposal(run, err);
    return begun(run, status, out);
}

sessile_status memory_run_admit(memory_run_core **out, memory_core *m,
                                const sessile_memory_write_entry *entries, size_t count,
                                const sessile_memory_run_options *options,
                                sessile_error *err)
{
    memory_run_core *run;
    sessile_status status =
        memory_run_new(&run, MEMORY_RUN_ADMIT, m->store, NULL, &m, 1, options, err);
    if (status)
        return status;
    run->stage = MEMORY_STAGE_ADMIT;
    status = begin_proposal(run, err);
    for (size_t i = 0; !status && i < count; i++)
        status = proposal_take_host(&run->proposal, 0, &entries[i], err);
    return begun(run, status, out);
}

/* What a recall is given is not more than it may be. */
static sessile_status check_recall(const sessile_recall_options *o, sessile_error *err)
{
    if (o->vector && (o->dims < 1 || o->dims > SESSILE_MEMORY_DIMS_MAX))
        return fail(err, SESSILE_LIMIT, "a vector has 1 to %d dimensions [memory_dims]",
                    SESSILE_MEMORY_DIMS_MAX);
    if (o->outside && o->outside_count > SESSILE_MEMORY_ENTRIES_MAX)
        return fail(err, SESSILE_LIMIT, "at most %d outside scores [memory_entries]",
                    SESSILE_MEMORY_ENTRIES_MAX);
    if (o->has_items && o->item_count > SESSILE_RECALL_ITEMS_MAX)
        return fail(err, SESSILE_LIMIT, "at most %d entries are recalled at once",
                    SESSILE_RECALL_ITEMS_MAX);
    return SESSILE_OK;
}

/* A copy of size bytes; NULL: no memory. */
static void *copy(const memory_run_core *run, const void *from, size_t size)
{
    void *to = mem_alloc(run->alloc, size);
    return to && size ? memcpy(to, from, size) : to;
}

/* Copies the options of a recall, whose arrays and texts are the caller's. */
static sessile_status keep_recall(memory_run_core *run,
                                  const sessile_recall_options *given, sessile_error *err)
{
    sessile_recall_options *o = &run->recall;
    size_t question = given->question.size;
    sessile_status status = check_recall(given, err);

    if (status)
        return status;
    *o = *given;
    buf_put(&run->recall_texts, given->question.data, question);
    buf_put(&run->recall_texts, given->model.data, given->model.size);
    if (run->recall_texts.failed)
        return fail_nomem(err);
    o->question = (sessile_slice){run->recall_texts.data, question};
    if (given->model.size)
        o->model = (sessile_slice){run->recall_texts.data + question, given->model.size};
    if (given->vector) {
        run->question_dims = given->dims;
        run->question_vector =
            copy(run, given->vector, given->dims * sizeof *given->vector);
        o->vector = run->question_vector;
        if (!o->vector)
            return fail_nomem(err);
    }
    if (given->outside) {
        run->outside_size = given->outside_count * sizeof *given->outside;
        run->outside = copy(run, given->outside, run->outside_size);
        o->outside = run->outside;
        if (!o->outside)
            return fail_nomem(err);
    }
    if (given->has_items && given->item_count) {
        run->recall_item_count = given->item_count;
        run->recall_items =
            copy(run, given->items, given->item_count * sizeof *given->items);
        o->items = run->recall_items;
        if (!o->items)
            return fail_nomem(err);
    }
    return SESSILE_OK;
}

sessile_status memory_run_recall(memory_run_core **out, session_core *s,
                                 memory_core *const *memories, size_t memory_count,
                                 const sessile_recall_options *recall,
                                 const sessile_memory_run_options *options,
                                 sessile_error *err)
{
    memory_run_core *run;
    sessile_status status = recall_check_memories(s, memories, memory_count, err);

    if (!status)
        status = memory_run_new(&run, MEMORY_RUN_RECALL, s->store, s, memories,
                                memory_count, options, err);
    if (status)
        return status;
    return begun(run, keep_recall(run, recall, err), out);
}

sessile_status memory_run_embed(memory_run_core **out, memory_core *m,
                                const sessile_memory_run_options *options,
                                sessile_error *err)
{
    memory_run_core *run;
    sessile_status status =
        memory_run_new(&run, MEMORY_RUN_EMBED, m->store, NULL, &m, 1, options, err);
    if (status)
        return status;
    if (!run->embed_model.size)
        status = fail(err, SESSILE_INVALID,
                      "name the model that embeds: vectors are kept under its name");
    return begun(run, status, out);
}

sessile_status memory_run_step(memory_run_core *run, sessile_need *need,
                               sessile_error *err)
{
    sessile_error why = {0};
    sessile_status status;

    *need = (sessile_need){.kind = SESSILE_NEED_NONE};
    if (run->ask.out)
        return fail(err, SESSILE_INVALID, "the run waits for an answer: reply first");
    if (run->result.failed.code)
        return fail_rule(err, run->result.failed.code, run->result.failed.rule, "%s",
                         run->result.failed.message);
    switch (run->kind) {
    case MEMORY_RUN_RECALL:
        status = memory_step_recall(run, need, &why);
        break;
    case MEMORY_RUN_EMBED:
        status = memory_step_embed(run, need, &why);
        break;
    default:
        status = memory_step_hooks(run, need, &why);
    }
    if (!status || status == SESSILE_NEEDS)
        return status;
    run->result.failed = why;
    run->result.failed.code = status;
    return fail_rule(err, status, why.rule, "%s", why.message);
}
