/*
 * embed.c: entries of a memory get vectors.
 *
 * A batch is written when its answer has come, so that a run which ends early, or whose
 * process is killed, loses one answer at most: the next run goes on with what is missing.
 * Other processes may embed the same memory; an entry that has its vector by then is
 * asked for no more.
 *
 * What is embedded of an entry is "key: value" and, on a line of its own, `also`. A key
 * often has the word that tells what the value is about ("editor: prefers vim"); `also`
 * is there to be found by, and comes last, because models that read only the beginning
 * of a text leave out the end. Day and author are not embedded: they are in every text
 * and make all of them more alike.
 */
#include "memory_run/memory_run.h"

#include <inttypes.h>

#include "base/text.h"

/* Bytes of a text. Models take 8,192 tokens of at least a byte, some of which are their
 * own. */
enum { TEXT_MOST = 8000 };

static sessile_status end(memory_run_core *run, sessile_verdict verdict, size_t left)
{
    run->stage = MEMORY_STAGE_DONE;
    run->result.verdict = verdict;
    run->result.to_embed = left;
    return SESSILE_OK;
}

/* Adds the text of an entry to out, and returns how many bytes that is. */
static size_t put_text(buf *out, const sessile_memory_row *row)
{
    size_t from = out->size, size;

    if (row->key.size) {
        buf_put(out, row->key.data, row->key.size);
        buf_puts(out, ": ");
    }
    buf_put(out, row->value.data, row->value.size);
    if (row->also.size) {
        buf_putc(out, '\n');
        buf_put(out, row->also.data, row->also.size);
    }
    if (out->failed)
        return 0;
    size = utf8_floor(out->data + from, out->size - from, TEXT_MOST);
    out->size = from + size;
    return size;
}

/* Asks for the vectors of these rows; their ids are in run->ids. */
static sessile_status ask(memory_run_core *run, const sessile_memory_row *rows,
                          size_t count, sessile_need *need, sessile_error *err)
{
    sessile_slice *texts = mem_alloc(run->alloc, count * sizeof *texts);
    sessile_status status = SESSILE_OK;
    const char *at;
    buf all;

    buf_init(&all, run->alloc);
    run->ids.count = 0;
    for (size_t i = 0; texts && i < count; i++) {
        texts[i].size = put_text(&all, &rows[i]);
        if (entry_ids_add(&run->ids, rows[i].id, run->alloc))
            status = fail_nomem(err);
    }
    if (!texts || all.failed)
        status = fail_nomem(err);
    at = all.data;
    for (size_t i = 0; !status && i < count; i++) {
        texts[i].data = at;
        at += texts[i].size;
    }
    if (!status)
        status = memory_ask_embed(run, "entry", texts, count, need, err);
    buf_wipe(&all);
    mem_free(run->alloc, texts, count * sizeof *texts);
    return status;
}

/* Asks for the next batch, or ends the run when there is none. */
static sessile_status next(memory_run_core *run, sessile_need *need, sessile_error *err)
{
    sessile_slice model = {run->embed_model.data, run->embed_model.size};
    size_t most = run->options.dry_run ? 0 : run->options.embed_batch;
    size_t count = 0, left = 0;
    sessile_memory_row *rows = NULL;
    sessile_status status =
        memory_unembedded(run->memories[0], model, run->options.embed_dims, &run->at,
                          most, &rows, &count, &left, err);
    if (status)
        return status;
    run->result.to_embed = left + count;
    if (!count)
        return end(run, run->result.embedded ? SESSILE_APPLIED : SESSILE_UNCHANGED, left);
    status = ask(run, rows, count, need, err);
    host_free(rows);
    return status;
}

/* Writes the vectors that came: 1 in *failed and the reason in the result: they are none.
 */
static sessile_status take(memory_run_core *run, int *failed, sessile_error *err)
{
    sessile_slice model = {run->embed_model.data, run->embed_model.size};
    size_t count = run->ids.count;
    sessile_status status;

    *failed = !memory_take_vectors(run, count);
    if (*failed)
        return SESSILE_OK;
    if (run->ask.dims > run->store->limits.memory_dims) {
        memory_run_say(run,
                       "vectors of %zu dimensions came, and a vector has at most %" PRIu32
                       " [memory_dims]",
                       run->ask.dims, run->store->limits.memory_dims);
        *failed = 1;
        return SESSILE_OK;
    }
    if (!run->options.embed_dims) {
        /* what has vectors of that name and other dimensions is embedded again */
        run->options.embed_dims = run->ask.dims;
        run->at = 0;
    }
    status = memory_embed(run->memories[0], model, run->ask.dims, run->ids.at,
                          run->ask.vectors, count, err);
    if (!status)
        run->result.embedded += count;
    return status;
}

sessile_status memory_step_embed(memory_run_core *run, sessile_need *need,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int failed = 0;

    if (run->stage == MEMORY_STAGE_DONE)
        return SESSILE_OK;
    if (run->ask.replied)
        status = take(run, &failed, err);
    if (status)
        return status;
    return failed ? end(run, SESSILE_REFUSED, run->result.to_embed)
                  : next(run, need, err);
}
