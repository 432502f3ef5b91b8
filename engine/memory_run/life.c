/*
 * life.c: creates and frees a run of memories.
 *
 * Owns the copies of the caller's options. A run that is freed before its end has written
 * nothing but the batches of vectors that were answered.
 */
#include "memory_run/memory_run.h"

#include "policy/worker.h"
#include "proposal/state.h"

static sessile_status check_options(const sessile_memory_run_options *o,
                                    sessile_error *err)
{
    if (o->embed_dims > SESSILE_MEMORY_DIMS_MAX)
        return fail(err, SESSILE_LIMIT, "a vector has 1 to %d dimensions [memory_dims]",
                    SESSILE_MEMORY_DIMS_MAX);
    if (!o->embed_batch || o->embed_batch > SESSILE_MEMORY_RUN_BATCH)
        return fail(err, SESSILE_INVALID, "a batch has 1 to %d texts",
                    SESSILE_MEMORY_RUN_BATCH);
    if ((unsigned)o->reason > SESSILE_REASON_MANUAL)
        return fail(err, SESSILE_INVALID, "no such reason: %d", (int)o->reason);
    return SESSILE_OK;
}

/* Hooks of memories edit no list, but a policy counts with a state. */
static sessile_status make_state(memory_run_core *run, sessile_error *err)
{
    context nothing;
    state_setup setup = {.context = &nothing,
                         .result_limit = run->store->limits.policy_result,
                         .vars_limit = 16 * 1024,
                         .depth = run->store->limits.depth,
                         .alloc = run->alloc};
    sessile_status status;

    context_init(&nothing, run->alloc);
    status = state_new(&run->hooks.state, &setup, err);
    context_deinit(&nothing);
    return status;
}

sessile_status memory_run_new(memory_run_core **out, memory_run_kind kind, store_core *st,
                              session_core *s, memory_core *const *memories,
                              size_t memory_count,
                              const sessile_memory_run_options *options,
                              sessile_error *err)
{
    sessile_status status = check_options(options, err);
    memory_run_core *run;

    if (status)
        return status;
    run = mem_zalloc(&st->alloc, sizeof *run);
    if (!run)
        return fail_nomem(err);
    run->alloc = &st->alloc;
    run->store = st;
    run->session = s;
    run->kind = kind;
    run->options = *options;
    if (!run->options.isolation)
        run->options.isolation = st->config.isolation;
    run->memory_count = memory_count;
    for (size_t i = 0; i < memory_count; i++)
        memory_retain(run->memories[i] = memories[i]);
    run->now_ms = st->os->now_ms(st->os->ud);
    run->result.refusal = run->result.recall.entry = SESSILE_NO_ID;
    run->result.hook = "";
    buf_init(&run->embed_model, run->alloc);
    buf_init(&run->hooks.journal, run->alloc);
    buf_init(&run->hooks.log, run->alloc);
    buf_init(&run->hooks.returned, run->alloc);
    buf_init(&run->ask.text, run->alloc);
    buf_init(&run->ask.request, run->alloc);
    buf_init(&run->arguments, run->alloc);
    buf_init(&run->result.changes, run->alloc);
    buf_init(&run->result.changes_json, run->alloc);
    buf_init(&run->recall_texts, run->alloc);
    buf_put(&run->embed_model, options->embed_model.data, options->embed_model.size);
    if (options->policy)
        policy_retain(run->hooks.policy = options->policy);
    if (run->embed_model.failed)
        status = fail_nomem(err);
    if (!status)
        status = make_state(run, err);
    for (size_t i = 0; !status && options->has_ids && i < options->id_count; i++)
        if (entry_ids_add(&run->ids, options->ids[i], run->alloc))
            status = fail_nomem(err);
    if (status) {
        memory_run_free(run);
        return status;
    }
    *out = run;
    return SESSILE_OK;
}

void memory_run_free(memory_run_core *run)
{
    const allocator *a;
    if (!run)
        return;
    a = run->alloc;
    policy_pipeline_free(run->hooks.pipeline);
    worker_stop(run->hooks.worker);
    state_free(run->hooks.state);
    policy_release(run->hooks.policy);
    if (run->has_proposal)
        proposal_deinit(&run->proposal);
    for (size_t i = 0; i < run->memory_count; i++)
        memory_close(run->memories[i]);
    buf_deinit(&run->embed_model);
    buf_wipe(&run->hooks.journal);
    buf_wipe(&run->hooks.log);
    buf_wipe(&run->hooks.returned);
    buf_wipe(&run->ask.text);
    buf_wipe(&run->ask.request);
    buf_wipe(&run->arguments);
    buf_wipe(&run->result.changes);
    buf_wipe(&run->result.changes_json);
    buf_wipe(&run->recall_texts);
    mem_free(a, run->ask.vectors, run->ask.vectors_size);
    mem_free(a, run->question_vector, run->question_dims * sizeof *run->question_vector);
    mem_free(a, run->outside, run->outside_size);
    mem_free(a, run->recall_items, run->recall_item_count * sizeof *run->recall_items);
    mem_free(a, run->ids.at, run->ids.capacity * sizeof *run->ids.at);
    mem_free(a, run, sizeof *run);
}
