/*
 * read.c: what a hook reads of a state: columns, and texts.
 *
 * Owns the texts that were read. A text is read from the log only when a hook asks for
 * it.
 */
#include "proposal/internal.h"

#include <string.h>

#include "base/error.h"

size_t state_count(const sessile_state *s)
{
    return s->given->c.count;
}

int64_t state_tokens(const sessile_state *s)
{
    return s->edits.tokens;
}

int64_t state_window(const sessile_state *s)
{
    return s->limits.window;
}

int64_t state_reserve(const sessile_state *s)
{
    return s->limits.reserve;
}

uint32_t state_keep_min(const sessile_state *s)
{
    return s->limits.floor;
}

size_t state_previous(const sessile_state *s)
{
    return s->given->previous;
}

sessile_status state_check_index(const sessile_state *s, size_t i, sessile_error *err)
{
    if (i < s->given->c.count)
        return SESSILE_OK;
    return fail(err, SESSILE_INVALID,
                "there is no message %zu: the state has %zu, counted from 0", i,
                s->given->c.count);
}

sessile_status state_get(const sessile_state *s, size_t i, sessile_column *out,
                         sessile_error *err)
{
    const item *it;
    unsigned pairs;

    memset(out, 0, sizeof *out);
    if (state_check_index(s, i, err))
        return SESSILE_INVALID;
    it = given_item(s, i);
    pairs = given_pairs(s)->flags[i];
    out->key = it->key;
    out->role = (sessile_role)it->role;
    out->tokens = it->tokens;
    out->turn = it->turn;
    out->pinned = (it->flags & ITEM_PINNED) != 0;
    out->open = (pairs & PAIR_OPEN) != 0;
    out->dead = (pairs & PAIR_DEAD) != 0;
    out->written = it->key.n > 0;
    out->starts_turn = (it->flags & ITEM_STARTS_TURN) != 0;
    out->edited = s->edits.marks[i] != MARK_NONE;
    error_clear(err);
    return SESSILE_OK;
}

sessile_status state_label(const sessile_state *s, size_t i, size_t n, sessile_slice *out,
                           sessile_error *err)
{
    const fact *labels;
    const item *it;

    *out = (sessile_slice){NULL, 0};
    if (state_check_index(s, i, err))
        return SESSILE_INVALID;
    it = given_item(s, i);
    if (s->labels.count && !it->key.n &&
        n < facts_labels_of(&s->labels, it->key.entry, &labels))
        *out = (sessile_slice){fact_name(&s->labels, &labels[n]), labels[n].name_size};
    error_clear(err);
    return SESSILE_OK;
}

/* The text of item i of the first list. */
static sessile_status first_text(sessile_state *s, size_t i, sessile_slice *out,
                                 sessile_error *err)
{
    const context *first = &s->lists[0].c;
    sessile_status status;
    item_text *kept;
    buf b;

    if (!s->reader.texts) {
        s->reader.texts = mem_zalloc(s->alloc, first->count * sizeof *s->reader.texts);
        if (!s->reader.texts)
            return fail_nomem(err);
    }
    kept = &s->reader.texts[i];
    if (!kept->data) {
        buf_init(&b, s->alloc);
        status = s->reader.read(s->reader.arg, first->items[i].key, &b, err);
        if (!status && b.failed)
            status = fail_nomem(err);
        if (status) {
            buf_deinit(&b);
            return status;
        }
        kept->data = b.data;
        kept->size = b.size;
        kept->capacity = b.capacity;
    }
    out->data = kept->data;
    out->size = kept->size;
    return SESSILE_OK;
}

static void put_text(const sessile_state *s, uint32_t number, sessile_slice *out)
{
    out->data = inserted_of(s, number)->json;
    out->size = inserted_of(s, number)->size;
}

sessile_status state_json(sessile_state *s, size_t i, sessile_slice *out,
                          sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    uint32_t origin;

    out->data = NULL;
    out->size = 0;
    if (state_check_index(s, i, err))
        return SESSILE_INVALID;
    origin = origin_of(s, i);
    if (origin == ORIGIN_NONE)
        put_text(s, given_item(s, i)->key.n, out);
    else
        status = first_text(s, origin, out, err);
    if (!status)
        error_clear(err);
    return status;
}

sessile_status state_text(sessile_state *s, sessile_key key, sessile_slice *out,
                          sessile_error *err)
{
    size_t at;
    int found;

    out->data = NULL;
    out->size = 0;
    if (key_is_own(key) && key.n >= 1 && key.n <= s->made.count) {
        put_text(s, key.n, out);
        return SESSILE_OK;
    }
    found = finder_find(&s->reader.find, key, &at);
    if (found < 0)
        return fail_nomem(err);
    if (!found)
        return fail(err, SESSILE_NOTFOUND, "no such message in the context");
    return first_text(s, at, out, err);
}
