/*
 * count.c: tokens for a model that the caller names, and of messages in no session.
 *
 * For the session's own model the meter answers (meter.c). For another model a context
 * is counted again, without reports: they are of the session's model.
 */
#include "session/count.h"

#include <string.h>

#include "session/fold.h"

/* kind: whose reply is added; NULL: none is. */
static void read_sums(const token_sums *sums, int exact, const model_kind *kind,
                      sessile_tokens *out)
{
    static const meter_ratio none[TOKEN_UNITS];
    int64_t reply = kind && sums->messages ? kind->reply : 0;

    meter_read(sums, none, exact, out);
    out->tokens += reply;
    out->low += reply;
    out->high += reply;
}

/* All of a context in one unit: what was counted in it stands, the rest is counted. */
static sessile_status recount(session_core *s, const context *c, token_unit unit,
                              const model_kind *kind, token_sums *out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf text;

    memset(out, 0, sizeof *out);
    buf_init(&text, &s->store->alloc);
    for (size_t i = 0; !status && i < c->count; i++) {
        const item *it = &c->items[i];
        token_count n = {it->tokens, (token_unit)it->unit};
        message m;
        if (it->unit != unit) {
            buf_clear(&text);
            status = session_message_locked(s, it->key, &text, err);
            if (!status)
                status = message_read(&m, text.data, text.size, NULL, NULL, NULL,
                                      &s->store->alloc, err);
            if (status)
                break;
            n.tokens = counters_message(s->store->counters, unit, kind, &m, &n.unit);
        }
        token_sums_add(out, n.unit, n.tokens);
    }
    buf_deinit(&text);
    return status;
}

static sessile_status count_for(session_core *s, sessile_id at, sessile_slice model,
                                sessile_tokens *out, sessile_error *err)
{
    counters *all = s->store->counters;
    const model_kind *kind = model_find(model.data, model.size);
    token_unit unit = counters_unit(all, model.data, model.size);
    token_sums sums;
    context c;
    sessile_status status;

    context_init(&c, &s->store->alloc);
    status = session_context_at_locked(s, at, &c, err);
    if (!status)
        status = recount(s, &c, unit, kind, &sums, err);
    if (!status)
        read_sums(&sums, counters_exact(all, model.data, model.size), kind, out);
    context_deinit(&c);
    return status;
}

sessile_status session_tokens_for_locked(session_core *s, sessile_id at,
                                         sessile_slice model, sessile_slice tools,
                                         sessile_slice system, sessile_tokens *out,
                                         sessile_error *err)
{
    sessile_slice own = session_model(s);
    sessile_status status;
    int messages_only = 1;

    if (model.size == 0 ||
        (model.size == own.size && !memcmp(model.data, own.data, own.size))) {
        model = own;
        status = session_tokens_at_locked(s, at, out, &messages_only, err);
    } else {
        status = count_for(s, at, model, out, err);
    }
    if (!status) { /* what is wrong with the tools is said in either case */
        sessile_tokens unwanted = *out;
        status = counters_beside(s->store->counters, model, tools, system,
                                 messages_only ? out : &unwanted, err);
    }
    return status;
}

/* ------------------------------------------------------------------ in no session */

void counting_begin(counting *c)
{
    c->kind = model_find(c->model.data, c->model.size);
    c->unit = counters_unit(c->store->counters, c->model.data, c->model.size);
    c->exact = counters_exact(c->store->counters, c->model.data, c->model.size);
    memset(&c->sums, 0, sizeof c->sums);
    buf_init(&c->text, &c->store->alloc);
}

sessile_status counting_add(counting *c, sessile_slice text, sessile_tokens *one,
                            sessile_error *err)
{
    token_sums alone;
    token_count n;
    message m;
    sessile_status status;

    buf_clear(&c->text);
    status = json_check(&c->text, text.data ? text.data : "", text.size,
                        c->store->limits.depth, err);
    if (!status)
        status = message_read(&m, c->text.data, c->text.size, NULL, NULL, NULL,
                              &c->store->alloc, err);
    if (status)
        return status;
    n.tokens = counters_message(c->store->counters, c->unit, c->kind, &m, &n.unit);
    token_sums_add(&c->sums, n.unit, n.tokens);
    memset(&alone, 0, sizeof alone);
    token_sums_add(&alone, n.unit, n.tokens);
    read_sums(&alone, c->exact, NULL, one);
    return SESSILE_OK;
}

void counting_end(const counting *c, sessile_tokens *out)
{
    read_sums(&c->sums, c->exact, c->kind, out);
}

void session_count_text(const store_core *st, sessile_slice text, sessile_tokens *out)
{
    const char *model = st->model ? st->model : "";
    size_t size = strlen(model);
    token_unit by = counters_unit(st->counters, model, size);

    out->tokens =
        counters_text(st->counters, by, text.size ? text.data : "", text.size, &by);
    out->low = out->high = out->tokens;
    if ((int)by == counters_exact(st->counters, model, size)) {
        out->source = TOKEN_SOURCE_EXACT;
    } else if (by == TOKENS_HOST) {
        out->source = TOKEN_SOURCE_HOST;
    } else {
        out->source = TOKEN_SOURCE_ESTIMATE;
        tokens_margin(out->tokens, &out->low, &out->high);
    }
}
