/*
 * view.c: a text as screens see it, and the same text with words removed.
 *
 * Owns the translation of places. Must never remove a byte that no span covers, but for
 * the rest of a character, nor turn JSON into something that is none.
 */
#include "screen/view.h"

#include <stdlib.h>
#include <string.h>

#include "codec/json.h"

/* ------------------------------------------------------------------ spans */

void view_spans_init(view_spans *s, const allocator *a)
{
    memset(s, 0, sizeof *s);
    s->alloc = a;
}

void view_spans_deinit(view_spans *s)
{
    mem_free(s->alloc, s->list, s->capacity * sizeof *s->list);
    view_spans_init(s, s->alloc);
}

sessile_status view_spans_add(view_spans *s, size_t from, size_t to, sessile_error *err)
{
    void *list = s->list;
    if (mem_grow(s->alloc, &list, &s->capacity, s->count + 1, sizeof *s->list))
        return fail_nomem(err);
    s->list = list;
    s->list[s->count++] = (view_span){from, to};
    return SESSILE_OK;
}

static int compare_spans(const void *a, const void *b)
{
    const view_span *x = a, *y = b;
    if (x->from != y->from)
        return x->from < y->from ? -1 : 1;
    return (x->to > y->to) - (x->to < y->to);
}

/* Sorts them, and joins those that meet. */
static void join(view_spans *s)
{
    size_t i, n = 0;

    if (!s->count)
        return;
    qsort(s->list, s->count, sizeof *s->list, compare_spans);
    for (i = 1; i < s->count; i++)
        if (s->list[i].from > s->list[n].to)
            s->list[++n] = s->list[i];
        else if (s->list[i].to > s->list[n].to)
            s->list[n].to = s->list[i].to;
    s->count = n + 1;
}

/* ------------------------------------------------------------------ the view */

static sessile_status add_cut(view *v, size_t seen, size_t raw, sessile_error *err)
{
    void *cuts = v->cuts;
    if (mem_grow(v->decoded.alloc, &cuts, &v->cut_capacity, v->cut_count + 1,
                 sizeof *v->cuts))
        return fail_nomem(err);
    v->cuts = cuts;
    v->cuts[v->cut_count++] = (struct view_cut){seen, raw};
    return SESSILE_OK;
}

sessile_status view_make(view *v, sessile_slice raw, int is_json, const allocator *a,
                         sessile_error *err)
{
    const char *at = raw.data, *end = raw.data + raw.size, *escape = NULL;
    sessile_status status = SESSILE_OK;

    memset(v, 0, sizeof *v);
    buf_init(&v->decoded, a);
    v->raw = v->text = raw;
    v->is_json = is_json;
    if (is_json && raw.size)
        escape = memchr(raw.data, '\\', raw.size);
    if (!escape)
        return SESSILE_OK;
    while (!status && escape) {
        char decoded[4];
        size_t size;
        buf_put(&v->decoded, at, (size_t)(escape - at));
        at = escape;
        size = json_unescape(&at, end, decoded);
        buf_put(&v->decoded, decoded, size);
        status = add_cut(v, v->decoded.size, (size_t)(at - raw.data), err);
        escape = memchr(at, '\\', (size_t)(end - at));
    }
    buf_put(&v->decoded, at, (size_t)(end - at));
    if (!status && v->decoded.failed)
        status = fail_nomem(err);
    v->text = (sessile_slice){v->decoded.data, v->decoded.size};
    return status;
}

void view_deinit(view *v)
{
    mem_free(v->decoded.alloc, v->cuts, v->cut_capacity * sizeof *v->cuts);
    buf_deinit(&v->decoded);
}

/* The number of cuts at or before a place in the view. */
static size_t cuts_before(const view *v, size_t seen)
{
    size_t low = 0, high = v->cut_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (v->cuts[middle].seen <= seen)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The place in raw of a place in the view that is between two characters. */
static size_t raw_of(const view *v, size_t seen)
{
    size_t n = cuts_before(v, seen);
    return n ? v->cuts[n - 1].raw + (seen - v->cuts[n - 1].seen) : seen;
}

static int inside_character(const view *v, size_t at)
{
    return at < v->text.size && ((unsigned char)v->text.data[at] & 0xc0) == 0x80;
}

/* Turns places of the view into places of raw. */
static void to_raw(const view *v, view_spans *spans)
{
    size_t i;
    for (i = 0; i < spans->count; i++) {
        view_span *s = &spans->list[i];
        if (s->to > v->text.size)
            s->to = v->text.size;
        if (s->from > s->to)
            s->from = s->to;
        while (s->from > 0 && inside_character(v, s->from))
            s->from--;
        while (inside_character(v, s->to))
            s->to++;
        s->from = raw_of(v, s->from);
        s->to = raw_of(v, s->to);
    }
}

/* ------------------------------------------------------------------ removing */

typedef struct removal {
    const view *v;
    const view_spans *spans;
    const char *rule;
    buf *out;
    size_t next; /* the first span that does not end before the current place */
    size_t removed;
    int outside;
} removal;

/* Copies raw[from .. to), with the parts that spans cover replaced. */
static void copy_part(removal *r, size_t from, size_t to)
{
    const char *raw = r->v->raw.data;

    while (r->next < r->spans->count && from < to) {
        const view_span *s = &r->spans->list[r->next];
        size_t begin = s->from > from ? s->from : from, end = s->to < to ? s->to : to;
        if (begin >= to)
            break;
        if (begin < end) {
            buf_put(r->out, raw + from, begin - from);
            buf_printf(r->out, "[removed: %s]", r->rule);
            r->removed++;
            from = end;
        }
        if (s->to > to)
            break; /* it goes on in what follows */
        r->next++;
    }
    buf_put(r->out, raw + from, to - from);
}

static int is_white(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

/* Copies raw[from .. to), which is outside of strings: nothing is removed from it. */
static void copy_outside(removal *r, size_t from, size_t to)
{
    const char *raw = r->v->raw.data;
    size_t n = r->next, at;

    for (; n < r->spans->count && r->spans->list[n].from < to; n++) {
        const view_span *s = &r->spans->list[n];
        for (at = s->from > from ? s->from : from; at < to && at < s->to; at++)
            if (!is_white(raw[at]) && !strchr("{}[],:\"", raw[at]))
                r->outside = 1;
    }
    while (r->next < r->spans->count && r->spans->list[r->next].to <= to)
        r->next++;
    buf_put(r->out, raw + from, to - from);
}

/* The end of the string that begins after a quote at raw[at - 1]. */
static size_t string_end(sessile_slice raw, size_t at)
{
    while (at < raw.size && raw.data[at] != '"')
        at += raw.data[at] == '\\' ? 2 : 1;
    return at < raw.size ? at : raw.size;
}

/* A name of a member: a colon follows it. */
static int is_name(sessile_slice raw, size_t after)
{
    while (after < raw.size && is_white(raw.data[after]))
        after++;
    return after < raw.size && raw.data[after] == ':';
}

static int is_covered(const removal *r, size_t from, size_t to)
{
    const view_span *s = r->next < r->spans->count ? &r->spans->list[r->next] : NULL;
    return s && s->from < to && s->to > from;
}

static void copy_json(removal *r)
{
    sessile_slice raw = r->v->raw;
    size_t at = 0, begin, end;

    while (at < raw.size) {
        const char *quote = memchr(raw.data + at, '"', raw.size - at);
        begin = quote ? (size_t)(quote - raw.data) + 1 : raw.size;
        copy_outside(r, at, begin);
        if (!quote)
            return;
        end = string_end(raw, begin);
        if (is_name(raw, end + 1) && is_covered(r, begin, end))
            r->outside = 1;
        copy_part(r, begin, end);
        at = end;
        if (at < raw.size)
            buf_putc(r->out, raw.data[at++]);
        while (r->next < r->spans->count && r->spans->list[r->next].to <= at)
            r->next++;
    }
}

sessile_status view_remove(const view *v, view_spans *spans, const char *rule, buf *out,
                           size_t *removed, int *outside, sessile_error *err)
{
    removal r = {.v = v, .spans = spans, .rule = rule, .out = out};

    to_raw(v, spans);
    join(spans);
    if (v->is_json)
        copy_json(&r);
    else
        copy_part(&r, 0, v->raw.size);
    *removed = r.removed;
    *outside = r.outside;
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}
