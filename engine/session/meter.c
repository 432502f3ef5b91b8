/*
 * meter.c: how many tokens a context takes, from the provider's report down to an
 * estimate.
 *
 * The problem: a policy and a host ask after every turn how large the context is, and
 * the log of a long session must not be walked for the answer. A count with a vocabulary
 * other than the model's is wrong by a third or more, always in the same direction.
 * The choice: sums are kept while entries are folded, so the answer at the head costs
 * nothing. A provider reports the size of everything it was sent, so the difference
 * between two reports is what the messages between them took. The ratio of that to our
 * counts is taken from the newest segments: their median, weighted by size, which a
 * single odd segment (an image, thoughts that are not sent again, a cache that was not
 * counted) does not move. The system prompt and tools are in both reports, so they cancel
 * out. The messages cannot take more than the whole report: the newest segments may
 * differ from the rest, so a ratio that would exceed the report is lowered. Rejected: a
 * least-squares line (one odd segment moves it); the ratio of totals alone (it includes
 * the system prompt and tools, which are in no message).
 *
 * Must never depend on anything but the path: what a handle has seen before, which index
 * was there, or whether it was folded or walked, changes no figure.
 */
#include "session/fold.h"

#include <stdlib.h>
#include <string.h>

#include "session/meter.h"

/* ------------------------------------------------------------------ walking to an entry
 */

/* What an entry that is marked so reports. */
static sessile_status reported_by(session_core *s, sessile_id id, int64_t *out,
                                  sessile_error *err)
{
    sessile_usage usage, all;
    entry e;
    sessile_status status = session_read_entry(s, id, &s->fold.scratch, &e, err);

    *out = 0;
    if (status)
        return status;
    if (e.type == ENTRY_TURN)
        (void)usage_of_turn(e.data, &usage, &all);
    else
        (void)usage_get(json_get(e.data, "usage"), &usage);
    *out = usage_total(&usage);
    return SESSILE_OK;
}

/* Entries of the path from `at` back, as far as a meter looks: METER_MESSAGES from the
 * newest report, or from `at` when there is none as near; never more segments than
 * it keeps. */
static sessile_status gather(session_core *s, sessile_id at, id_list *ids,
                             sessile_error *err)
{
    sessile_status status = session_load_locked(s, at, err);
    int64_t from = status ? 0 : s->tree.nodes[at].messages;
    unsigned segments = 0, messages = 0;
    int reports = 0;

    for (sessile_id id = at; !status && id; id = s->tree.nodes[id].parent) {
        const node *n;
        status = session_load_locked(s, id, err);
        if (status)
            break;
        n = &s->tree.nodes[id];
        if (n->marks & NODE_HAS_USAGE) {
            if (!reports)
                from = n->messages;
            segments += reports && messages;
            reports = 1;
            messages = 0;
        }
        if (from - n->messages > METER_MESSAGES)
            break;
        if (mem_grow(ids->alloc, (void **)&ids->at, &ids->capacity, ids->count + 1,
                     sizeof *ids->at))
            return fail_nomem(err);
        ids->at[ids->count++] = id;
        if (segments == METER_SEGMENTS)
            break;
        messages += (unsigned)node_is_message(n);
    }
    return status;
}

static sessile_status meter_make(session_core *s, sessile_id at, token_meter *m,
                                 sessile_error *err)
{
    id_list ids = {.alloc = &s->store->alloc};
    sessile_status status = gather(s, at, &ids, err);

    memset(m, 0, sizeof *m);
    for (size_t i = ids.count; !status && i > 0; i--) {
        sessile_id id = ids.at[i - 1];
        int64_t reported = 0;
        if (s->tree.nodes[id].marks & NODE_HAS_USAGE)
            status = reported_by(s, id, &reported, err);
        if (!status)
            meter_step(m, s, id, reported);
    }
    m->upto = at;
    m->all_known = 0;
    m->known = !status;
    id_list_deinit(&ids);
    return status;
}

/* The meter at an entry: the handle's own at the head, else made in `other`. */
static sessile_status meter_at(session_core *s, sessile_id at, token_meter *other,
                               token_meter **out, sessile_error *err)
{
    int is_head = at == s->tree.head;

    *out = is_head ? &s->counting.meter : other;
    return is_head && (*out)->known && (*out)->upto == at ? SESSILE_OK
                                                          : meter_make(s, at, *out, err);
}

/* 1 when its newest report is near enough to say anything. */
static int has_report(const session_core *s, const token_meter *m)
{
    return m->report &&
           (int64_t)s->tree.nodes[m->upto].messages - s->tree.nodes[m->report].messages <=
               METER_MESSAGES;
}

/* ------------------------------------------------------------------ the fit */

static int by_ratio(const void *x, const void *y)
{
    const meter_segment *a = x, *b = y;
    int64_t p = a->reported * METER_UNIT / a->counted;
    int64_t q = b->reported * METER_UNIT / b->counted;

    if (p != q)
        return p < q ? -1 : 1;
    return a->counted < b->counted ? -1 : a->counted > b->counted;
}

/* The ratio below which half of all that was counted lies. */
static int64_t median(const meter_segment *sorted, unsigned n, int64_t all)
{
    int64_t below = 0;

    for (unsigned i = 0; i < n; i++) {
        below += sorted[i].counted;
        if (below * 2 >= all)
            return sorted[i].reported * METER_UNIT / sorted[i].counted;
    }
    return 0;
}

static void fit_unit(const token_meter *m, const session_core *s, unsigned unit,
                     meter_ratio *out)
{
    meter_segment good[METER_SEGMENTS];
    int64_t newest = s->tree.nodes[m->report].messages, all = 0;
    unsigned n = 0;

    *out = (meter_ratio){0, 0};
    for (unsigned i = 0; i < m->count; i++) {
        const meter_segment *one = &m->segments[i];
        if (one->counted && one->unit == unit &&
            newest - one->messages <= METER_MESSAGES) {
            all += one->counted;
            good[n++] = *one;
        }
    }
    if (n < METER_LEAST)
        return;
    qsort(good, n, sizeof *good, by_ratio);
    out->samples = n;
    out->ratio = median(good, n, all);
}

int64_t meter_scale(int64_t tokens, const meter_ratio *ratio)
{
    int64_t r = ratio->ratio;

    if (!r)
        return tokens;
    return tokens / METER_UNIT * r +
           (tokens % METER_UNIT * r + METER_UNIT / 2) / METER_UNIT;
}

void meter_scale_context(context *c, const meter_ratio fit[TOKEN_UNITS])
{
    for (size_t i = 0; i < c->count; i++) {
        item *it = &c->items[i];
        const meter_ratio *r = &fit[it->unit < TOKEN_UNITS ? it->unit : TOKENS_ESTIMATE];
        int64_t n;
        if (!r->ratio)
            continue;
        n = meter_scale(it->tokens, r);
        it->tokens = n > UINT32_MAX ? UINT32_MAX : (uint32_t)n;
        it->unit = TOKENS_FITTED;
    }
}

/* ------------------------------------------------------------------ a sum, read */

/* From the best to the least. */
enum { RUNG_EXACT, RUNG_HOST, RUNG_FITTED, RUNG_ESTIMATE };

static const char *const sources[] = {TOKEN_SOURCE_EXACT, TOKEN_SOURCE_HOST,
                                      TOKEN_SOURCE_FITTED, TOKEN_SOURCE_ESTIMATE};

/* One unit's part of a sum. Returns its rung. */
static int read_unit(unsigned unit, int64_t counted, int64_t messages,
                     const meter_ratio *ratio, int exact, sessile_tokens *out)
{
    out->tokens = counted;
    if ((int)unit == exact || unit == TOKENS_HOST) {
        tokens_framing_margin(counted, messages, &out->low, &out->high);
        return unit == TOKENS_HOST ? RUNG_HOST : RUNG_EXACT;
    }
    if (unit == TOKENS_FITTED) {
        tokens_fitted_margin(counted, &out->low, &out->high);
        return RUNG_FITTED;
    }
    if (ratio->ratio) {
        out->tokens = meter_scale(counted, ratio);
        tokens_fitted_margin(out->tokens, &out->low, &out->high);
        return RUNG_FITTED;
    }
    tokens_margin(counted, &out->low, &out->high);
    return RUNG_ESTIMATE;
}

void meter_read(const token_sums *sums, const meter_ratio fit[TOKEN_UNITS], int exact,
                sessile_tokens *out)
{
    int worst = RUNG_EXACT;

    *out = (sessile_tokens){0, 0, 0, TOKEN_SOURCE_ESTIMATE};
    if (!sums->messages)
        return;
    for (unsigned unit = 0; unit < TOKEN_UNITS; unit++) {
        sessile_tokens part;
        int rung;
        if (!sums->by[unit])
            continue;
        rung = read_unit(unit, sums->by[unit], sums->messages, &fit[unit], exact, &part);
        out->tokens += part.tokens;
        out->low += part.low;
        out->high += part.high;
        worst = rung > worst ? rung : worst;
    }
    out->source = sources[worst];
}

/* ------------------------------------------------------------------ sums of contexts */

static sessile_status sum_all(session_core *s, token_meter *m, sessile_error *err)
{
    const context *c;
    context other;
    sessile_status status;

    if (m->all_known)
        return SESSILE_OK;
    context_init(&other, &s->store->alloc);
    if (m->upto == s->tree.head) {
        status = session_context_locked(s, &c, err);
    } else {
        c = &other;
        status = session_context_at_locked(s, m->upto, &other, err);
    }
    if (!status) {
        meter_sum(c, &m->all);
        m->all_known = 1;
    }
    context_deinit(&other);
    return status;
}

/* The sums of the context that the newest report is of: what was said since, taken off,
 * unless a compaction lies between. */
static sessile_status sum_reported(session_core *s, token_meter *m, token_sums *out,
                                   sessile_error *err)
{
    sessile_status status;
    context c;

    if (s->tree.nodes[m->report].context_at == s->tree.nodes[m->upto].context_at) {
        status = sum_all(s, m, err);
        *out = m->all;
        for (int i = 0; i < TOKEN_UNITS; i++)
            out->by[i] -= m->since.by[i];
        out->messages -= m->since.messages;
        return status;
    }
    context_init(&c, &s->store->alloc);
    status = session_context_at_locked(s, m->report, &c, err);
    meter_sum(&c, out);
    context_deinit(&c);
    return status;
}

/* ------------------------------------------------------------------ the fit, bounded */

/* Lowers the ratios until the messages of the newest report, `sums`, take no more than it
 * says. */
static void bound_fit(token_meter *m, const token_sums *sums, int exact)
{
    int64_t fitted = 0, rest = 0, room;
    sessile_tokens part;

    for (unsigned unit = 0; unit < TOKEN_UNITS; unit++)
        if (read_unit(unit, sums->by[unit], sums->messages, &m->fit[unit], exact,
                      &part) == RUNG_FITTED &&
            m->fit[unit].ratio)
            fitted += part.tokens;
        else
            rest += part.tokens;
    room = m->reported > rest ? m->reported - rest : 0;
    for (unsigned unit = 0; fitted > room && unit < TOKEN_UNITS; unit++)
        if (m->fit[unit].ratio)
            m->fit[unit].ratio = m->fit[unit].ratio * room / fitted + !room;
}

static sessile_status make_fit(session_core *s, token_meter *m, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int is_fitted = 0;
    token_sums sums;

    if (m->fit_known)
        return SESSILE_OK;
    memset(m->fit, 0, sizeof m->fit);
    for (unsigned unit = 0; m->report && unit < TOKENS_FITTED; unit++) {
        fit_unit(m, s, unit, &m->fit[unit]);
        is_fitted |= m->fit[unit].ratio != 0;
    }
    if (is_fitted) {
        status = sum_reported(s, m, &sums, err);
        if (!status)
            bound_fit(m, &sums, session_exact_unit(s));
    }
    m->fit_known = !status;
    return status;
}

sessile_status session_fit_locked(session_core *s, sessile_id at,
                                  meter_ratio out[TOKEN_UNITS], sessile_error *err)
{
    sessile_status status;
    token_meter other, *m;

    memset(out, 0, TOKEN_UNITS * sizeof *out);
    status = meter_at(s, at, &other, &m, err);
    if (status || !has_report(s, m))
        return status;
    status = make_fit(s, m, err);
    if (!status)
        memcpy(out, m->fit, sizeof m->fit);
    return status;
}

/* ------------------------------------------------------------------ the context */

/* What the newest report counted beside the messages: system prompt and tools that are no
 * entries. Known only by a fit; else it would be the error of our counts. */
static sessile_status find_outside(session_core *s, token_meter *m, int exact,
                                   sessile_error *err)
{
    sessile_tokens counted;
    sessile_status status;
    token_sums sums;

    if (m->outside_of == m->report)
        return SESSILE_OK;
    status = sum_reported(s, m, &sums, err);
    if (status)
        return status;
    meter_read(&sums, m->fit, exact, &counted);
    m->outside = m->reported > counted.tokens ? m->reported - counted.tokens : 0;
    if (!strcmp(counted.source, TOKEN_SOURCE_ESTIMATE))
        m->outside = 0;
    m->outside_of = m->report;
    return SESSILE_OK;
}

sessile_status session_outside_locked(session_core *s, sessile_id at, int64_t *out,
                                      sessile_error *err)
{
    sessile_status status;
    token_meter other, *m;

    *out = 0;
    status = meter_at(s, at, &other, &m, err);
    if (status || !has_report(s, m))
        return status;
    status = make_fit(s, m, err);
    if (!status)
        status = find_outside(s, m, session_exact_unit(s), err);
    *out = m->outside;
    return status;
}

static void add_known(sessile_tokens *to, int64_t tokens, int64_t margin)
{
    to->tokens += tokens;
    to->low += tokens - margin;
    to->high += tokens + margin;
}

/* What was counted, where no report says how much the context is. */
static sessile_status count_all(session_core *s, token_meter *m, int exact,
                                sessile_tokens *out, int *messages_only,
                                sessile_error *err)
{
    sessile_status status = sum_all(s, m, err);

    if (status)
        return status;
    meter_read(&m->all, m->fit, exact, out);
    if (has_report(s, m)) {
        status = find_outside(s, m, exact, err);
        if (status)
            return status;
        add_known(out, m->outside, m->outside / 8);
        *messages_only = !m->outside;
    }
    if (m->all.messages && !strcmp(out->source, TOKEN_SOURCE_EXACT)) {
        sessile_slice model = session_model(s);
        const model_kind *kind = model_find(model.data, model.size);
        add_known(out, kind ? kind->reply : 0, 0);
    }
    return SESSILE_OK;
}

static sessile_status read_at(session_core *s, token_meter *m, sessile_tokens *out,
                              int *messages_only, sessile_error *err)
{
    int exact = session_exact_unit(s), has = has_report(s, m);
    int is_of_context =
        has && s->tree.nodes[m->report].context_at == s->tree.nodes[m->upto].context_at;
    sessile_status status = SESSILE_OK;

    *messages_only = 1;
    if (!has) {
        memset(m->fit, 0, sizeof m->fit);
        m->fit_known = 0;
    } else if (!is_of_context || m->since.messages) {
        status = make_fit(s, m, err);
    }
    if (status || !is_of_context)
        return status ? status : count_all(s, m, exact, out, messages_only, err);
    *messages_only = 0;
    meter_read(&m->since, m->fit, exact, out);
    add_known(out, m->reported, 0);
    out->source = TOKEN_SOURCE_USAGE;
    return SESSILE_OK;
}

sessile_status session_tokens_at_locked(session_core *s, sessile_id at,
                                        sessile_tokens *out, int *messages_only,
                                        sessile_error *err)
{
    token_meter other, *m;
    sessile_status status;

    *out = (sessile_tokens){0, 0, 0, TOKEN_SOURCE_ESTIMATE};
    status = meter_at(s, at, &other, &m, err);
    return status ? status : read_at(s, m, out, messages_only, err);
}

sessile_status session_tokens_with_locked(session_core *s, sessile_id at,
                                          const context *c, sessile_tokens *out,
                                          sessile_error *err)
{
    token_meter m, *found;
    int messages_only, exact = session_exact_unit(s);
    sessile_status status = meter_at(s, at, &m, &found, err);

    if (status)
        return status;
    m = *found;
    if (has_report(s, &m)) {
        status = make_fit(s, &m, err);
        if (!status)
            status = find_outside(s, &m, exact, err);
    }
    meter_sum(c, &m.all);
    m.all_known = 1;
    return status ? status : count_all(s, &m, exact, out, &messages_only, err);
}

sessile_status session_tokens_locked(session_core *s, sessile_tokens *out,
                                     sessile_error *err)
{
    int messages_only;

    return session_tokens_at_locked(s, s->tree.head, out, &messages_only, err);
}
