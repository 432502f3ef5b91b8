/*
 * usage_sum.c: the usage that one entry reports, and sums of it.
 *
 * Owns what a report is worth. The fold adds it up as entries come in (fold.c); groups
 * are computed from the log when somebody asks (usage.c). Both use these functions, so
 * the groups add up to the fold's sum.
 */
#include "session/fold.h"

#include <string.h>

void usage_add(sessile_usage *a, const sessile_usage *b)
{
    a->input += b->input;
    a->output += b->output;
    a->cache_read += b->cache_read;
    a->cache_write += b->cache_write;
}

void usage_subtract(sessile_usage *a, const sessile_usage *b)
{
    a->input -= b->input;
    a->output -= b->output;
    a->cache_read -= b->cache_read;
    a->cache_write -= b->cache_write;
}

int64_t usage_total(const sessile_usage *u)
{
    return u->input + u->output + u->cache_read + u->cache_write;
}

/* No provider reports more in one turn: what does counts as this much, so that no sum of
 * a session's turns, nor one with an estimate, can overflow. */
#define USAGE_MOST (INT64_C(1) << 40)

static int64_t within_reason(int64_t n)
{
    return n < 0 ? 0 : n > USAGE_MOST ? USAGE_MOST : n;
}

int usage_get(json value, sessile_usage *out)
{
    memset(out, 0, sizeof *out);
    if (value.type != JSON_OBJECT || !usage_read(value, out))
        return 0;
    out->input = within_reason(out->input);
    out->output = within_reason(out->output);
    out->cache_read = within_reason(out->cache_read);
    out->cache_write = within_reason(out->cache_write);
    return 1;
}

int usage_of_turn(json data, sessile_usage *last, sessile_usage *all)
{
    json usage = json_get(data, "usage");
    int there = usage_get(usage, last);

    if (!usage_get(json_get(usage, "total"), all))
        *all = *last;
    return there;
}

void fold_forget_parts(session_core *s)
{
    s->fold.part_count = 0;
    if (s->fold.part_capacity > 64) {
        mem_free(s->alloc, s->fold.parts, s->fold.part_capacity * sizeof *s->fold.parts);
        s->fold.parts = NULL;
        s->fold.part_capacity = 0;
    }
}
