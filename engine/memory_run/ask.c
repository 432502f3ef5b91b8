/*
 * ask.c: what a run of memories asks its host, and the host's reply.
 *
 * A reply is copied. One that is wrong (too few vectors, a number that is not finite) is
 * an answer that failed, not an error of the call: the run goes on without it.
 */
#include "memory_run/memory_run.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "codec/json.h"
#include "screen/write.h"

/* Bytes of a host's reason that are kept. */
#define REASON_MOST 400

static void name_policy(const memory_run_core *run, sessile_need *need)
{
    const policy_step_info *step = policy_step_get(run->hooks.policy, run->hooks.step);
    need->policy = step->name;
    need->step = run->hooks.step;
    need->options = slice_of(step->options);
    need->hook = run->hooks.hook;
    need->reason = run->options.reason;
    need->now_ms = run->now_ms;
}

sessile_status memory_ask_model(memory_run_core *run, sessile_need *need)
{
    name_policy(run, need);
    need->kind = run->ask.out = SESSILE_NEED_MODEL;
    need->request = run->hooks.result.request;
    return SESSILE_NEEDS;
}

sessile_status memory_ask_hook(memory_run_core *run, sessile_need *need)
{
    name_policy(run, need);
    need->kind = run->ask.out = SESSILE_NEED_HOOK;
    need->request = (sessile_slice){run->arguments.data, run->arguments.size};
    return SESSILE_NEEDS;
}

sessile_status memory_ask_embed(memory_run_core *run, const char *purpose,
                                const sessile_slice *texts, size_t count,
                                sessile_need *need, sessile_error *err)
{
    buf *out = &run->ask.request;

    buf_clear(out);
    buf_puts(out, "{\"texts\":[");
    for (size_t i = 0; i < count; i++) {
        buf_puts(out, i ? "," : "");
        json_put_string(out, texts[i].data, texts[i].size);
    }
    buf_puts(out, "],");
    for (size_t i = 0; run->kind == MEMORY_RUN_EMBED && i < count; i++)
        buf_printf(out, "%s\"%08" PRIx32 "\"%s", i ? "," : "\"ids\":[", run->ids.at[i],
                   i + 1 < count ? "" : "],");
    buf_puts(out, "\"model\":");
    json_put_string(out, run->embed_model.data, run->embed_model.size);
    buf_printf(out, ",\"dims\":%zu,\"purpose\":\"%s\"}", run->options.embed_dims,
               purpose);
    if (out->failed)
        return fail_nomem(err);
    *need = (sessile_need){.kind = SESSILE_NEED_EMBED,
                           .policy = "",
                           .request = {out->data, out->size},
                           .reason = run->options.reason,
                           .now_ms = run->now_ms};
    run->ask.out = SESSILE_NEED_EMBED;
    return SESSILE_NEEDS;
}

/* What is left of a reply by the rules of the store; a refusal is an answer that failed.
 */
static sessile_status take_text(memory_run_core *run, const sessile_answer *answer,
                                sessile_error *err)
{
    memory_ask *ask = &run->ask;
    sessile_slice text = answer->text;
    sessile_screen_item item = {.kind = SESSILE_SCREEN_ANSWER,
                                .source = ask->out == SESSILE_NEED_HOOK
                                              ? SESSILE_SCREEN_BY_HOST
                                              : SESSILE_SCREEN_BY_AGENT,
                                .text = text};
    sessile_error why = {0};
    sessile_status status = SESSILE_OK;
    buf left;

    buf_init(&left, run->alloc);
    ask->status = answer->status;
    if (text.size && text.size <= run->store->limits.policy_result &&
        utf8_valid(text.data, text.size))
        status = write_screen(run->store, &item, &left, NULL, 0, &why);
    if (left.size)
        text = (sessile_slice){left.data, left.size};
    if (status == SESSILE_DENIED) {
        ask->status = SESSILE_POLICY;
        fail_prefix(&why, "the answer");
        text = slice_of(why.message);
    } else if (status) {
        buf_wipe(&left);
        return fail(err, status, "%s", why.message);
    }
    buf_clear(&ask->text);
    if (ask->status) { /* a reason, which is told and written into the log */
        utf8_put_lossy(&ask->text, text.data ? text.data : "",
                       text.size < REASON_MOST ? text.size : REASON_MOST);
        if (!ask->text.failed && ask->text.size > REASON_MOST)
            ask->text.size = utf8_floor(ask->text.data, ask->text.size, REASON_MOST);
    } else {
        buf_put(&ask->text, text.data, text.size);
    }
    buf_wipe(&left);
    return ask->text.failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status memory_run_reply(memory_run_core *run, const sessile_answer *answer,
                                sessile_error *err)
{
    memory_ask *ask = &run->ask;
    sessile_status status;

    if (!ask->out)
        return fail(err, SESSILE_INVALID, "nothing was asked: step the run first");
    if (ask->out == SESSILE_NEED_EMBED && !answer->status)
        return fail(err, SESSILE_INVALID,
                    "the run asks for vectors: give them to "
                    "sessile_memory_run_reply_vectors()");
    status = take_text(run, answer, err);
    if (status)
        return status;
    ask->replied = ask->out;
    ask->out = SESSILE_NEED_NONE;
    return SESSILE_OK;
}

sessile_status memory_run_reply_vectors(memory_run_core *run, const float *vectors,
                                        size_t count, size_t dims, sessile_error *err)
{
    memory_ask *ask = &run->ask;
    size_t size;

    if (ask->out != SESSILE_NEED_EMBED)
        return fail(err, SESSILE_INVALID, "no vectors were asked for");
    if (count > SESSILE_MEMORY_RUN_BATCH || dims > SESSILE_MEMORY_DIMS_MAX)
        return fail(err, SESSILE_LIMIT,
                    "at most %d vectors of %d dimensions [memory_dims] are one answer",
                    SESSILE_MEMORY_RUN_BATCH, SESSILE_MEMORY_DIMS_MAX);
    mem_free(run->alloc, ask->vectors, ask->vectors_size);
    size = count * dims * sizeof *vectors;
    ask->vectors = size ? mem_alloc(run->alloc, size) : NULL;
    ask->vectors_size = ask->vectors ? size : 0;
    if (size && !ask->vectors)
        return fail_nomem(err);
    if (size)
        memcpy(ask->vectors, vectors, size);
    ask->count = count;
    ask->dims = dims;
    ask->status = SESSILE_OK;
    ask->replied = SESSILE_NEED_EMBED;
    ask->out = SESSILE_NEED_NONE;
    return SESSILE_OK;
}

static int is_vector(const float *v, size_t dims)
{
    int nonzero = 0;
    for (size_t i = 0; i < dims; i++) {
        if (!isfinite(v[i]))
            return 0;
        nonzero |= v[i] != 0;
    }
    return nonzero;
}

int memory_take_vectors(memory_run_core *run, size_t count)
{
    memory_ask *ask = &run->ask;

    ask->replied = SESSILE_NEED_NONE;
    if (ask->status) {
        memory_run_say(run, "the texts were not embedded: %.*s",
                       ask->text.size ? (int)ask->text.size : 100,
                       ask->text.size ? ask->text.data : "no reason was given");
    } else if (ask->count != count) {
        memory_run_say(run, "the texts were not embedded: %zu vectors came for %zu texts",
                       ask->count, count);
    } else if (!ask->dims ||
               (run->options.embed_dims && ask->dims != run->options.embed_dims)) {
        memory_run_say(run,
                       "the texts were not embedded: vectors of %zu dimensions came, "
                       "not of %zu",
                       ask->dims, run->options.embed_dims);
    } else {
        for (size_t i = 0; i < count; i++)
            if (!is_vector(ask->vectors + i * ask->dims, ask->dims)) {
                memory_run_say(run,
                               "the texts were not embedded: vector %zu has a number "
                               "that is not finite, or zeros only",
                               i + 1);
                return 0;
            }
        return 1;
    }
    return 0;
}
