/*
 * model.c: which model a session is for, and its messages counted for that model.
 *
 * The model is the store's, when its options name one; else the last one that the log
 * names, in a turn or in the settings. Counting needs no lock: the encoding to count
 * with is kept apart, and looked up again only when the log names another model.
 */
#include "session/fold.h"
#include "base/names.h"

#include <string.h>

sessile_slice session_model(const sessile_session *s)
{
    const char *of_store = s->store->model;

    return of_store ? slice_of(of_store) : slice_of(s->counting.model);
}

void fold_model(sessile_session *s, const char *name)
{
    if (!strcmp(s->counting.model, name))
        return;
    memcpy(s->counting.model, name, MODEL_SIZE);
    atomic_store(&s->counting.unit, -1);
}

int session_exact_unit(const sessile_session *s)
{
    sessile_slice model = session_model(s);

    return counters_exact(s->store->counters, model.data, model.size);
}

static void choose_locked(sessile_session *s)
{
    sessile_slice model = session_model(s);

    if (atomic_load(&s->counting.unit) >= 0)
        return;
    atomic_store(&s->counting.kind, model_find(model.data, model.size));
    atomic_store(&s->counting.unit,
                 counters_unit(s->store->counters, model.data, model.size));
}

static token_count count_message_in(const sessile_session *s, int unit, const message *m)
{
    token_count n = {0, TOKENS_ESTIMATE};

    n.tokens = counters_message(s->store->counters, (token_unit)unit,
                                atomic_load(&s->counting.kind), m, &n.unit);
    return n;
}

token_count session_count_locked(sessile_session *s, const message *m)
{
    choose_locked(s);
    return count_message_in(s, atomic_load(&s->counting.unit), m);
}

token_count session_count(sessile_session *s, const message *m)
{
    int unit = atomic_load(&s->counting.unit);

    if (unit < 0 && !session_lock(s, NULL)) {
        choose_locked(s);
        unit = atomic_load(&s->counting.unit);
        session_unlock(s);
    }
    return count_message_in(s, unit < 0 ? TOKENS_ESTIMATE : unit, m);
}

/* ------------------------------------------------------------------ for another model */

/* All of a context in one unit: what was counted in it stands, the rest is counted. */
static sessile_status recount(sessile_session *s, const context *c, token_unit unit,
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

static sessile_status count_for(sessile_session *s, sessile_id at, sessile_slice model,
                                sessile_tokens *out, sessile_error *err)
{
    counters *all = s->store->counters;
    const model_kind *kind = model_find(model.data, model.size);
    token_unit unit = counters_unit(all, model.data, model.size);
    meter_ratio none[TOKEN_UNITS];
    token_sums sums;
    context c;
    sessile_status status;

    memset(none, 0, sizeof none);
    context_init(&c, &s->store->alloc);
    status = session_context_at_locked(s, at, &c, err);
    if (!status)
        status = recount(s, &c, unit, kind, &sums, err);
    if (!status)
        meter_read(&sums, none, counters_exact(all, model.data, model.size), out);
    if (!status && kind && sums.messages) {
        out->tokens += kind->reply;
        out->low += kind->reply;
        out->high += kind->reply;
    }
    context_deinit(&c);
    return status;
}

sessile_status session_tokens_for_locked(sessile_session *s, sessile_id at,
                                         sessile_slice model, sessile_slice tools,
                                         sessile_slice system, sessile_tokens *out,
                                         sessile_error *err)
{
    sessile_slice own = session_model(s);
    sessile_status status;
    int beside = 1;

    if (model.size == 0 ||
        (model.size == own.size && !memcmp(model.data, own.data, own.size))) {
        model = own;
        status = session_tokens_at_locked(s, at, out, &beside, err);
    } else {
        status = count_for(s, at, model, out, err);
    }
    if (!status) { /* what is wrong with the tools is said in either case */
        sessile_tokens unwanted = *out;
        status = counters_beside(s->store->counters, model, tools, system,
                                 beside ? out : &unwanted, err);
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

static void read_sums(const token_sums *sums, int exact, sessile_tokens *out)
{
    meter_ratio none[TOKEN_UNITS];

    memset(none, 0, sizeof none);
    meter_read(sums, none, exact, out);
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
    read_sums(&alone, c->exact, one);
    return SESSILE_OK;
}

void counting_end(const counting *c, sessile_tokens *out)
{
    int64_t reply = c->kind && c->sums.messages ? c->kind->reply : 0;

    read_sums(&c->sums, c->exact, out);
    out->tokens += reply;
    out->low += reply;
    out->high += reply;
}

void session_count_text(const sessile_store *st, sessile_slice text, sessile_tokens *out)
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
