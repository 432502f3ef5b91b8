/*
 * journal.c: the calls that edit a state, recorded, and the state they begin with as
 * bytes.
 *
 * Owns the bytes of a journal: one for the kind of call, then its arguments. The calls
 * record themselves (state.c, edit.c, cut.c) once they have succeeded, so a journal
 * holds no call that failed. journal_replay.c reads it.
 */
#include "proposal/journal.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "proposal/internal.h"

void state_journal_to(sessile_state *s, buf *journal)
{
    s->journal = journal;
}

/* ------------------------------------------------------------------ the beginning */

enum { ITEM_BYTES = 27, LINK_BYTES = 10, LABEL_BYTES = 8 };

static void put_context(const context *c, buf *out)
{
    wire_put_u32(out, c->upto);
    wire_put_u32(out, (uint32_t)c->count);
    for (size_t i = 0; i < c->count; i++) {
        const item *it = &c->items[i];
        wire_put_u32(out, it->key.entry);
        wire_put_u32(out, it->key.n);
        wire_put_u32(out, it->tokens);
        wire_put_u32(out, it->turn);
        wire_put_u32(out, it->link);
        wire_put_u32(out, it->link_count);
        wire_put_u8(out, it->role);
        wire_put_u8(out, it->flags);
        wire_put_u8(out, it->unit);
    }
    wire_put_u32(out, (uint32_t)c->link_count);
    for (size_t i = 0; i < c->link_count; i++) {
        wire_put_u64(out, hash64_bare(c->links[i].id));
        wire_put_u8(out, c->links[i].is_result);
        wire_put_u8(out, c->links[i].in_call);
    }
}

static void put_labels(const facts *labels, buf *out)
{
    wire_put_u32(out, (uint32_t)labels->count);
    for (size_t i = 0; i < labels->count; i++) {
        const fact *one = &labels->at[i];
        wire_put_u32(out, one->about);
        wire_put_text(out, fact_name(labels, one), one->name_size);
    }
}

void state_image_put(const sessile_state *s, buf *out)
{
    wire_put_u64(out, s->lists[0].previous);
    wire_put_i64(out, s->limits.window);
    wire_put_i64(out, s->limits.reserve);
    wire_put_i64(out, s->limits.made_ratio);
    wire_put_u32(out, s->limits.floor);
    wire_put_u64(out, s->limits.result);
    wire_put_u64(out, s->limits.vars);
    wire_put_u32(out, s->limits.depth);
    put_labels(&s->labels, out);
    put_context(&s->lists[0].c, out);
}

static sessile_status fail_image(sessile_error *err)
{
    return fail(err, SESSILE_INVALID, "these bytes are no state");
}

static sessile_status get_context(wire *w, context *c, sessile_error *err)
{
    c->upto = wire_u32(w);
    uint32_t count = wire_count(w, ITEM_BYTES);
    if (mem_grow(c->alloc, (void **)&c->items, &c->capacity, count, sizeof *c->items))
        return fail_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        item *it = &c->items[i];
        memset(it, 0, sizeof *it);
        it->key.entry = wire_u32(w);
        it->key.n = wire_u32(w);
        it->tokens = wire_u32(w);
        it->turn = wire_u32(w);
        it->link = wire_u32(w);
        it->link_count = wire_u32(w);
        it->role = wire_u8(w);
        it->flags = wire_u8(w);
        it->unit = wire_u8(w);
    }
    c->count = count;
    count = wire_count(w, LINK_BYTES);
    if (mem_grow(c->alloc, (void **)&c->links, &c->link_capacity, count,
                 sizeof *c->links))
        return fail_nomem(err);
    for (uint32_t i = 0; i < count; i++) {
        memset(&c->links[i], 0, sizeof c->links[i]);
        c->links[i].id = hash64_veil(wire_u64(w));
        c->links[i].is_result = wire_u8(w);
        c->links[i].in_call = wire_u8(w);
    }
    c->link_count = count;
    for (size_t i = 0; i < c->count; i++) {
        const item *it = &c->items[i];
        if (it->link_count > count || it->link > count - it->link_count)
            return fail_image(err);
    }
    return w->bad ? fail_image(err) : SESSILE_OK;
}

static sessile_status get_labels(wire *w, facts *into, sessile_error *err)
{
    uint32_t count = wire_count(w, LABEL_BYTES);
    sessile_id before = 0;

    for (uint32_t i = 0; i < count; i++) {
        sessile_id about = wire_u32(w);
        sessile_slice name = wire_text(w);
        if (w->bad || about < before)
            return fail_image(err);
        before = about;
        if (facts_add(into, FACT_LABEL, 0, about, name.data, name.size, 0))
            return fail_nomem(err);
    }
    return SESSILE_OK;
}

sessile_status state_image_get(wire *w, state_setup *setup, context *into, facts *labels,
                               sessile_error *err)
{
    sessile_status status;

    setup->previous = (size_t)wire_u64(w);
    setup->window = wire_i64(w);
    setup->reserve = wire_i64(w);
    setup->fit = NULL; /* the items are scaled */
    setup->made_ratio = wire_i64(w);
    setup->floor = wire_u32(w);
    setup->result_limit = wire_u64(w);
    setup->vars_limit = wire_u64(w);
    setup->depth = wire_u32(w);
    setup->context = into;
    setup->labels = labels;
    status = get_labels(w, labels, err);
    return status ? status : get_context(w, into, err);
}

/* ------------------------------------------------------------------ recording */

static int begin_call(const sessile_state *s, journal_call what)
{
    if (!s->journal)
        return 0;
    wire_put_u8(s->journal, (uint8_t)what);
    return 1;
}

void journal_begin(const sessile_state *s, const char *vars, size_t size)
{
    if (begin_call(s, JOURNAL_BEGIN))
        wire_put_text(s->journal, vars, size);
}

void journal_end(const sessile_state *s)
{
    (void)begin_call(s, JOURNAL_END);
}

void journal_forget(const sessile_state *s)
{
    (void)begin_call(s, JOURNAL_FORGET);
}

void journal_mark(const sessile_state *s)
{
    (void)begin_call(s, JOURNAL_MARK);
}

void journal_rewind(const sessile_state *s)
{
    (void)begin_call(s, JOURNAL_REWIND);
}

void journal_drop(const sessile_state *s, size_t first, size_t last)
{
    if (begin_call(s, JOURNAL_DROP)) {
        wire_put_u64(s->journal, first);
        wire_put_u64(s->journal, last);
    }
}

void journal_replace(const sessile_state *s, size_t i, sessile_slice fields)
{
    if (begin_call(s, JOURNAL_REPLACE)) {
        wire_put_u64(s->journal, i);
        wire_put_text(s->journal, fields.data, fields.size);
    }
}

void journal_insert(const sessile_state *s, size_t i, sessile_slice message, int covers,
                    size_t first, size_t last)
{
    if (begin_call(s, JOURNAL_INSERT)) {
        wire_put_u64(s->journal, i);
        wire_put_text(s->journal, message.data, message.size);
        wire_put_u8(s->journal, covers != 0);
        wire_put_u64(s->journal, first);
        wire_put_u64(s->journal, last);
    }
}

void journal_keep_last(const sessile_state *s, int64_t n, sessile_unit unit)
{
    if (begin_call(s, JOURNAL_KEEP_LAST)) {
        wire_put_i64(s->journal, n);
        wire_put_u8(s->journal, (uint8_t)unit);
    }
}

static void put_keys(buf *out, const sessile_key *keys, size_t count)
{
    wire_put_u32(out, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        wire_put_u32(out, keys[i].entry);
        wire_put_u32(out, keys[i].n);
    }
}

void journal_rebuild(const sessile_state *s, const sessile_state_item *items,
                     size_t count)
{
    if (!begin_call(s, JOURNAL_REBUILD))
        return;
    wire_put_u32(s->journal, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        int is_new = items[i].index == SIZE_MAX;
        wire_put_u64(s->journal, is_new ? UINT64_MAX : (uint64_t)items[i].index);
        if (is_new) {
            wire_put_text(s->journal, items[i].json.data, items[i].json.size);
            put_keys(s->journal, items[i].covers, items[i].cover_count);
            put_keys(s->journal, items[i].replaces, items[i].replace_count);
        }
    }
}

void journal_vars(const sessile_state *s, sessile_slice text)
{
    if (begin_call(s, JOURNAL_VARS))
        wire_put_text(s->journal, text.data, text.size);
}
