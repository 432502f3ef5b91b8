/*
 * view.h: a text as screens see it, and the same text with words removed.
 *
 * In JSON an escape can stand for any character ("\u0069gnore"), so screens see the text
 * of JSON with its escapes decoded. Places in this view are translated back before words
 * are removed.
 */
#ifndef SCREEN_VIEW_H
#define SCREEN_VIEW_H

#include "base/buf.h"
#include "base/error.h"

/* text[from .. to) of the view. */
typedef struct view_span {
    size_t from, to;
} view_span;

typedef struct view_spans {
    const allocator *alloc;
    view_span *list;
    size_t count, capacity;
} view_spans;
void view_spans_init(view_spans *s, const allocator *a);
void view_spans_deinit(view_spans *s);
sessile_status view_spans_add(view_spans *s, size_t from, size_t to, sessile_error *err);

typedef struct view {
    sessile_slice raw;  /* borrowed */
    sessile_slice text; /* what is seen: raw itself when nothing is decoded */
    int is_json;
    buf decoded;
    /* What follows an escape: its place in the view and in raw, in ascending order. */
    struct view_cut {
        size_t seen, raw;
    } * cuts;
    size_t cut_count, cut_capacity;
} view;

/* Borrows raw; when is_json, it is valid JSON. NOMEM. */
sessile_status view_make(view *v, sessile_slice raw, int is_json, const allocator *a,
                         sessile_error *err);
void view_deinit(view *v);

/* Appends raw with "[removed: RULE]" for each of the spans, which are sorted and joined
 * first; a span that begins or ends inside of a character has all of it. In JSON only
 * parts of strings are removed. *removed: how many places. *outside is 1, and out is not
 * complete, when a span of JSON covers a name, a number or a word outside of strings:
 * removing it would change what the JSON means. NOMEM. */
sessile_status view_remove(const view *v, view_spans *spans, const char *rule, buf *out,
                           size_t *removed, int *outside, sessile_error *err);

#endif
