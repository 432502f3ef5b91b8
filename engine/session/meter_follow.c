/*
 * meter_follow.c: adds entries to a meter, in the order of the path.
 *
 * Owns the sums and segments of a meter. The fold calls it for each entry. Must never
 * load a node nor read from the log: meter.c does that, and answers the questions.
 */
#include "session/fold.h"

#include <string.h>

#include "session/meter.h"

/* A segment whose ratio is further off measures something else than its messages. */
#define RATIO_LEAST (METER_UNIT / 4)
#define RATIO_MOST  (METER_UNIT * 4)

void token_sums_add(token_sums *sums, unsigned unit, int64_t tokens)
{
    sums->by[unit < TOKEN_UNITS ? unit : TOKENS_ESTIMATE] += tokens;
    sums->messages++;
}

void meter_sum(const context *c, token_sums *out)
{
    memset(out, 0, sizeof *out);
    for (size_t i = 0; i < c->count; i++)
        token_sums_add(out, c->items[i].unit, c->items[i].tokens);
}

const char *meter_source(const context *c)
{
    token_sums sums;

    meter_sum(c, &sums);
    if (sums.by[TOKENS_ESTIMATE] || !c->count)
        return TOKEN_SOURCE_ESTIMATE;
    if (sums.by[TOKENS_FITTED])
        return TOKEN_SOURCE_FITTED;
    for (int i = TOKEN_UNITS - 1; i > 0; i--)
        if (sums.by[i])
            return token_unit_name((token_unit)i);
    return TOKEN_SOURCE_ESTIMATE;
}

static int64_t sum_of(const token_sums *sums)
{
    int64_t all = 0;

    for (int i = 0; i < TOKEN_UNITS; i++)
        all += sums->by[i];
    return all;
}

/* The only unit in it, or TOKEN_UNITS. */
static unsigned only_unit(const token_sums *sums)
{
    unsigned found = TOKEN_UNITS;

    for (unsigned i = 0; i < TOKEN_UNITS; i++) {
        if (sums->by[i] == 0)
            continue;
        if (found != TOKEN_UNITS)
            return TOKEN_UNITS;
        found = i;
    }
    return found;
}

static void take_segment(token_meter *m, const session_core *s, sessile_id to,
                         int64_t reported)
{
    const node *a = &s->tree.nodes[m->report], *b = &s->tree.nodes[to];
    meter_segment *to_fill = &m->segments[m->next];
    unsigned unit = only_unit(&m->since);
    int64_t counted = sum_of(&m->since), more = reported - m->reported;

    *to_fill = (meter_segment){.messages = a->messages};
    if (unit < TOKEN_UNITS && a->context_at == b->context_at && more > 0) {
        int64_t ratio = more * METER_UNIT / counted;
        if (ratio >= RATIO_LEAST && ratio <= RATIO_MOST)
            *to_fill = (meter_segment){a->messages, (uint8_t)unit, counted, more};
    }
    m->next = (m->next + 1) % METER_SEGMENTS;
    if (m->count < METER_SEGMENTS)
        m->count++;
}

void meter_step(token_meter *m, const session_core *s, sessile_id id, int64_t reported)
{
    const node *n = &s->tree.nodes[id];

    if (node_is_message(n)) {
        token_sums_add(&m->since, node_unit(n), n->tokens);
        token_sums_add(&m->all, node_unit(n), n->tokens);
    }
    if (n->marks & NODE_HAS_CONTEXT)
        m->all_known = 0;
    if (n->marks & NODE_HAS_USAGE) {
        /* A turn says once more what its last message has said. */
        if (m->report && m->since.messages)
            take_segment(m, s, id, reported);
        m->report = id;
        m->reported = reported;
        memset(&m->since, 0, sizeof m->since);
        m->fit_known = 0;
    }
    m->upto = id;
}

void meter_forget(session_core *s)
{
    s->counting.meter.known = 0;
}

void meter_follow(session_core *s, sessile_id id, int64_t reported)
{
    token_meter *m = &s->counting.meter;
    const node *n = &s->tree.nodes[id];

    if (m->known && entry_on_path((entry_type)n->type) && n->parent == m->upto)
        meter_step(m, s, id, reported);
}
