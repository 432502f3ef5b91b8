/*
 * recall.c: a recall whose question is embedded, and whose entries hooks choose.
 *
 * What fails on the way costs what it was for: without a vector the question is asked by
 * words alone; without a hook's choice what was found is quoted in its own order. The
 * block itself, and its laws, are in operations/recall.c.
 */
#include "memory_run/memory_run.h"

#include <stdio.h>
#include <string.h>

#include "codec/json.h"
#include "operations/recall.h"

/* Asks for the vector of the question. */
static sessile_status ask_vector(memory_run_core *run, sessile_need *need,
                                 sessile_error *err)
{
    sessile_slice question;
    sessile_status status;
    buf text;

    buf_init(&text, run->alloc);
    status = recall_question(run->session, &run->recall, &text, err);
    question = (sessile_slice){text.data, text.size};
    if (!status && question.size)
        status = memory_ask_embed(run, "question", &question, 1, need, err);
    buf_wipe(&text);
    return status;
}

/* Whether the vectors of that model have these dimensions in all memories. */
static sessile_status check_dims(memory_run_core *run, sessile_slice model, size_t dims,
                                 int *good, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    *good = 1;
    for (size_t i = 0; !status && i < run->memory_count; i++) {
        memory_core *m = run->memories[i];
        const memory_model *known;
        status = memory_lock_fresh(m, err);
        if (status)
            break;
        known = memory_fold_model_of(m->fold, model, dims)
                    ? NULL
                    : memory_fold_model_of(m->fold, model, 0);
        if (known) {
            memory_run_say(run,
                           "the texts were not embedded: a vector of %zu dimensions "
                           "came, and those of its model here have %zu",
                           dims, known->vectors.dims);
            *good = 0;
        }
        memory_unlock(m);
    }
    return status;
}

static sessile_status take_vector(memory_run_core *run, sessile_error *err)
{
    const sessile_slice model = {run->embed_model.data, run->embed_model.size};
    int good;
    sessile_status status;

    if (!memory_take_vectors(run, 1))
        return SESSILE_OK;
    status = check_dims(run, model, run->ask.dims, &good, err);
    if (status || !good)
        return status;
    run->question_vector = run->ask.vectors;
    run->question_dims = run->ask.dims;
    run->ask.vectors = NULL;
    run->ask.vectors_size = 0;
    run->recall.vector = run->question_vector;
    run->recall.dims = run->question_dims;
    run->recall.model = model;
    run->result.has_vector = 1;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ the choice */

/* The arguments of `recall`: the question and what was found. */
static sessile_status put_found(memory_run_core *run, sessile_error *err)
{
    buf *out = &run->arguments;
    sessile_recall_options wide = run->recall; /* more than are quoted: a hook chooses */
    sessile_memory_row *rows = NULL;
    size_t count = 0;
    sessile_status status;
    buf text;

    wide.limit = 0;
    status = session_recall_find(run->session, run->memories, run->memory_count, &wide,
                                 &rows, &count, err);

    buf_init(&text, run->alloc);
    if (!status)
        status = recall_question(run->session, &run->recall, &text, err);
    buf_clear(out);
    buf_putc(out, '[');
    json_put_string(out, text.data ? text.data : "", text.size);
    buf_puts(out, ",[");
    for (size_t i = 0; !status && i < count; i++) {
        buf_puts(out, i ? "," : "");
        status = proposal_put_row(&run->proposal, out, rows[i].memory, &rows[i], err);
    }
    buf_puts(out, "]]");
    run->found = count;
    host_free(rows);
    buf_wipe(&text);
    return !status && out->failed ? fail_nomem(err) : status;
}

/* What a hook chose becomes the items of the recall. POLICY: it chose something else. */
static sessile_status take_choice(memory_run_core *run, sessile_error *err)
{
    const proposal *p = &run->proposal;
    json_iter it =
        json_begin(json_of(run->hooks.returned.data, run->hooks.returned.size));
    size_t count = 0;

    if (!json_next(&it) || it.value.type == JSON_NULL)
        return SESSILE_OK; /* it leaves the choice as it is */
    if (it.value.type != JSON_ARRAY)
        return fail(err, SESSILE_POLICY, "recall returns a list of entries, or nothing");
    if (!run->recall_items) {
        run->recall_items =
            mem_alloc(run->alloc, SESSILE_RECALL_ITEMS_MAX * sizeof *run->recall_items);
        if (!run->recall_items)
            return fail_nomem(err);
        run->recall_item_count = SESSILE_RECALL_ITEMS_MAX;
    }
    for (json_iter each = json_begin(it.value); json_next(&each);) {
        entry_ids ids = {NULL, 0, 0};
        size_t memory = PROPOSAL_MEMORIES;
        sessile_status status =
            proposal_take_ids(p, each.value, "recall returns", &ids, &memory, err);
        if (memory == PROPOSAL_MEMORIES)
            memory = p->target;
        if (!status && ids.count != 1)
            status = fail(err, SESSILE_POLICY, "recall returns a list of entries");
        if (!status && !proposal_has_shown(p, memory, ids.at[0]))
            status = fail(err, SESSILE_POLICY,
                          "recall returned an entry that it was not given");
        if (!status && count == SESSILE_RECALL_ITEMS_MAX)
            status = fail(err, SESSILE_POLICY, "recall returns at most %d entries",
                          SESSILE_RECALL_ITEMS_MAX);
        if (!status)
            run->recall_items[count++] = (sessile_recall_item){memory, ids.at[0]};
        mem_free(run->alloc, ids.at, ids.capacity * sizeof *ids.at);
        if (status)
            return status == SESSILE_NOMEM ? status : SESSILE_POLICY;
    }
    run->recall.has_items = 1;
    run->recall.items = run->recall_items;
    run->recall.item_count = count;
    return SESSILE_OK;
}

/* A hook that fails is named, and what was found is quoted as it is. */
static void drop_choice(memory_run_core *run, const sessile_error *why)
{
    run->result.verdict = SESSILE_REFUSED;
    memory_run_name(run, run->hooks.step, SESSILE_HOOK_RECALL);
    memory_run_say(run, "%s", why->message);
    run->recall.has_items = 0;
    run->recall.item_count = 0;
}

static sessile_status choose(memory_run_core *run, sessile_need *need, sessile_error *err)
{
    sessile_error why = {SESSILE_OK, ""};
    sessile_status status = SESSILE_OK;

    while (memory_next_hook(run, SESSILE_HOOK_RECALL)) {
        status = memory_hook(run, SESSILE_HOOK_RECALL, need, &why);
        if (!status)
            status = take_choice(run, &why);
        if (status == SESSILE_NEEDS)
            return status;
        if (status == SESSILE_POLICY)
            drop_choice(run, &why);
        else if (status)
            return fail(err, status, "%s", why.message);
        if (status)
            break;
        run->hooks.step++;
    }
    memory_hooks_end(run);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ all of it */

/* A proposal only keeps what the hook was shown. Memories without consent are left out
 * by the recall itself. */
static void begin_showing(memory_run_core *run)
{
    proposal *p = &run->proposal;
    proposal_start(p, run->store, run->session);
    p->reads_only = 1; /* who recalls does not write */
    for (size_t i = 0; i < run->memory_count; i++) {
        if (run->memories[i]->user_size)
            p->target = i;
        p->memories[p->memory_count++] = run->memories[i];
    }
    run->has_proposal = 1;
}

sessile_status memory_step_recall(memory_run_core *run, sessile_need *need,
                                  sessile_error *err)
{
    sessile_recall_outcome *out = &run->result.recall;
    int has_hook;
    sessile_status status = SESSILE_OK;

    if (run->stage == MEMORY_STAGE_DONE)
        return SESSILE_OK;
    if (run->ask.replied == SESSILE_NEED_EMBED)
        status = take_vector(run, err);
    else if (run->stage == MEMORY_STAGE_FIRST && run->embed_model.size &&
             !run->recall.vector && !run->recall.outside && !run->recall.has_items)
        status = ask_vector(run, need, err);
    if (status)
        return status;
    if (run->stage == MEMORY_STAGE_FIRST) { /* once */
        run->stage = MEMORY_STAGE_COMMIT;
        has_hook = memory_next_hook(run, SESSILE_HOOK_RECALL);
        if ((has_hook || run->options.dry_run) && !run->recall.has_items) {
            begin_showing(run);
            status = put_found(run, err);
            run->chooses = !status && has_hook && run->found;
        }
    }
    if (!status && run->chooses)
        status = choose(run, need, err);
    if (status)
        return status;
    run->stage = MEMORY_STAGE_DONE;
    if (run->options.dry_run) {
        out->found = run->recall.has_items ? run->recall.item_count : run->found;
        return SESSILE_OK;
    }
    status = session_recall(run->session, run->memories, run->memory_count, &run->recall,
                            out, err);
    if (!status && run->result.verdict != SESSILE_REFUSED)
        run->result.verdict =
            out->entry == SESSILE_NO_ID ? SESSILE_UNCHANGED : SESSILE_APPLIED;
    return status;
}
