/* memories_rows.c: entries of memories as messages, in pieces. */
#include "service/memories.h"

enum { PIECE = 1 << 20, ROW = 256, REPLY_MOST = 8 << 20 };

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

static size_t size_of(const sessile_memory_row *row)
{
    return ROW + row->key.size + row->value.size + row->also.size + row->author.size +
           row->from.size + row->replaces.size + row->metadata.size + row->explain.size;
}

/* The memory of one piece is used again for the next. All that is sent may wait for a
 * client that reads nothing, so there is a limit to it. */
sessile_status send_rows(call *c, const sessile_memory_row *rows, size_t count,
                         const memory_set *set, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += size_of(&rows[i]);
    if (sum > REPLY_MOST)
        return fail(err, SESSILE_LIMIT,
                    "the reply would have more than %d MiB: ask for fewer rows",
                    REPLY_MOST >> 20);
    for (size_t i = 0; i < count && !status;) {
        Sessile__V1__MemoryRows piece = SESSILE__V1__MEMORY_ROWS__INIT;
        size_t bytes = 0, n = 0;
        arena all = c->arena;
        arena_init(&c->arena, all.alloc);
        while (i + n < count && (n == 0 || bytes + size_of(&rows[i + n]) <= PIECE))
            bytes += size_of(&rows[i + n++]);
        piece.rows = call_rows(c, n, &sessile__v1__memory_row__descriptor);
        for (size_t k = 0; piece.rows && k < n; k++)
            fill_row(c, piece.rows[k], &rows[i + k], set);
        piece.n_rows = piece.rows ? n : 0;
        i += n;
        status = call_reply(c, &piece.base, err);
        arena_free(&c->arena);
        c->arena = all;
    }
    return status;
}

sessile_status reply_row(call *c, sessile_memory_row *row, sessile_error *err)
{
    Sessile__V1__MemoryRow out = SESSILE__V1__MEMORY_ROW__INIT;
    fill_row(c, &out, row, NULL);
    sessile_free(row);
    return call_reply(c, &out.base, err);
}
