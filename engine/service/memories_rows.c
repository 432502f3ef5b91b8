/*
 * memories_rows.c: entries of memories as messages: one, or a list in pieces (pieces.h).
 *
 * A list whose rows were dropped is found again, and may be another one by then: entries
 * were written or expired, verdicts were given. It goes on only if each row is the same
 * entry in the same state as before.
 */
#include "service/memories.h"

enum { ROW = 256, REPLY_MOST = 8 << 20 };

static void fill_row(call *c, Sessile__V1__MemoryRow *out, const sessile_memory_row *from,
                     const memory_set *set)
{
    out->id = from->id;
    out->state = call_string(c, sessile_memory_state_name(from->state));
    out->kind = call_string(c, sessile_memory_kind_name(from->kind));
    out->source = call_string(c, sessile_memory_source_name(from->source));
    out->key = call_text(c, from->key);
    out->value = call_text(c, from->value);
    out->also = call_text(c, from->also);
    out->author = call_text(c, from->author);
    out->from = call_json(c, from->from);
    out->replaces = call_json(c, from->replaces);
    out->metadata = call_json(c, from->metadata);
    out->time_ms = from->time_ms;
    out->expires_ms = from->expires_ms;
    out->holds_from_ms = from->holds_from_ms;
    out->holds_until_ms = from->holds_until_ms;
    out->importance = from->importance;
    out->pinned = from->pinned;
    out->approved = from->approved;
    out->confirmed = from->confirmed;
    out->ended_by = call_entry(c, from->ended_by);
    out->score = from->score;
    out->cover = from->cover;
    out->cosine = from->cosine;
    out->explain = call_json(c, from->explain);
    out->shared = set && set->shared[from->memory];
}

/* ---------------------------------------------------------------------- lists */

static size_t row_bytes(const void *row)
{
    const sessile_memory_row *r = row;
    return ROW + r->key.size + r->value.size + r->also.size + r->author.size +
           r->from.size + r->replaces.size + r->metadata.size + r->explain.size;
}

/* What can change of an entry, for all rows. Scores are left out: they fall as time goes
 * by, and what counts is the order that they make. */
static uint64_t mark_of(const sessile_memory_row *rows, size_t count)
{
    uint64_t mark = count;
    for (size_t i = 0; i < count; i++) {
        const sessile_memory_row *r = &rows[i];
        const uint64_t parts[] = {
            mark,        r->memory,   r->id,
            r->state,    r->ended_by, (uint64_t)r->pinned << 1 | (uint64_t)r->approved,
            r->confirmed};
        mark = hash64(parts, sizeof parts);
    }
    return mark;
}

static sessile_status read_rows(call *c, void *what, void **out, size_t *count,
                                sessile_error *err)
{
    row_list *l = what;
    sessile_memory_row *rows = NULL;
    size_t bytes = 0;
    sessile_status status = l->find(c, l, &rows, count, err);
    for (size_t i = 0; !status && i < *count; i++)
        bytes += row_bytes(&rows[i]);
    if (!status && bytes > REPLY_MOST)
        status = fail(err, SESSILE_LIMIT,
                      "the reply would have more than %d MiB: ask for fewer rows",
                      REPLY_MOST >> 20);
    const uint64_t mark = status ? 0 : mark_of(rows, *count);
    if (!status && l->found && l->mark != mark)
        status = fail(err, SESSILE_CONFLICT,
                      "the memory has changed while its list was read: read it again");
    if (status) {
        sessile_free(rows);
        return status;
    }
    l->found = 1;
    l->mark = mark;
    *out = rows;
    return SESSILE_OK;
}

static const ProtobufCMessage *rows_piece(call *c, void *what, const void *rows, size_t n,
                                          int last)
{
    const row_list *l = what;
    const sessile_memory_row *from = rows;
    Sessile__V1__MemoryRows *out = call_make(c, &sessile__v1__memory_rows__descriptor);
    (void)last;
    if (!out)
        return NULL;
    out->rows = call_rows(c, n, &sessile__v1__memory_row__descriptor);
    for (size_t i = 0; out->rows && i < n; i++)
        fill_row(c, out->rows[i], &from[i], l->set);
    out->n_rows = out->rows ? n : 0;
    return &out->base;
}

sessile_status reply_rows(call *c, row_list *l, sessile_error *err)
{
    static const list_kind kind = {sizeof(sessile_memory_row), read_rows, row_bytes,
                                   rows_piece};
    return reply_list(c, &kind, l, err);
}

/* ---------------------------------------------------------------------- one row */

sessile_status reply_row(call *c, sessile_memory_row *row, sessile_error *err)
{
    Sessile__V1__MemoryRow out = SESSILE__V1__MEMORY_ROW__INIT;
    fill_row(c, &out, row, NULL);
    sessile_free(row);
    return call_reply(c, &out.base, err);
}
