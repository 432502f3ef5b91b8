/*
 * messages.c: the messages of a path as rows that belong to the host.
 *
 * Owns the layout of the list: one block, rows first, then their text. Must never return
 * anything that belongs to the handle.
 */
#include "session/fold.h"
#include "operations/messages.h"

#include <inttypes.h>
#include <string.h>

/* Entries between two messages that are read along, to save another read. */
enum { GAP = 16 };

/* ------------------------------------------------------------------ which rows */

/* The first message at or after `from`, for which `from` must lie on the path. */
static sessile_status find_from(session_core *s, sessile_id at, sessile_id from,
                                const sessile_id *ids, size_t count, size_t *out,
                                sessile_error *err)
{
    size_t low = 0, high = count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ids[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    *out = low;
    sessile_status status = session_load_path_locked(s, at, from, err);
    if (status)
        return status;
    if (session_descends_locked(s, at, from))
        return SESSILE_OK;
    if (!count)
        fail(err, SESSILE_NOTFOUND,
             "entry %08" PRIx32 " is not on the path to %08" PRIx32
             ", which has no messages",
             from, at);
    else if (low == 0 || low == count)
        fail(err, SESSILE_NOTFOUND,
             "entry %08" PRIx32 " is not on the path to %08" PRIx32
             ": the nearest message on it is %08" PRIx32,
             from, at, ids[low ? count - 1 : 0]);
    else
        fail(err, SESSILE_NOTFOUND,
             "entry %08" PRIx32 " is not on the path to %08" PRIx32
             ": the nearest messages on it are %08" PRIx32 " and %08" PRIx32,
             from, at, ids[low - 1], ids[low]);
    return session_name_error(s, SESSILE_NOTFOUND, err);
}

/* Moves what is asked for to the front of ids: from, then role, then the newest `last`,
 * of these the first `limit`. */
static sessile_status choose(session_core *s, const sessile_messages_options *o,
                             sessile_id at, sessile_id *ids, size_t *count,
                             sessile_error *err)
{
    size_t first = 0, kept = 0;
    sessile_status status = SESSILE_OK;

    if (o->from != SESSILE_NO_ID)
        status = find_from(s, at, o->from, ids, *count, &first, err);
    if (status)
        return status;
    for (size_t i = first; i < *count; i++)
        if (o->role == SESSILE_ROLE_NONE || s->tree.nodes[ids[i]].role == o->role)
            ids[kept++] = ids[i];
    if (o->last && kept > o->last) {
        memmove(ids, ids + (kept - o->last), o->last * sizeof *ids);
        kept = o->last;
    }
    if (o->limit && kept > o->limit)
        kept = o->limit;
    *count = kept;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ their text */

typedef struct row {
    size_t at, size;
    int64_t time_ms;
} row;

typedef struct reading {
    const sessile_id *ids;
    row *rows;
    size_t done;
    buf text;
} reading;

static sessile_status take_row(void *arg, sessile_id id, const char *text, size_t size,
                               sessile_error *err)
{
    reading *r = arg;
    sessile_status status;
    entry e;
    row *to;

    if (id != r->ids[r->done])
        return SESSILE_OK;
    status = entry_read(&e, text, size, err);
    if (status)
        return status;
    to = &r->rows[r->done++];
    to->at = r->text.size;
    to->size = e.data.size;
    to->time_ms = message_time(json_get(e.data, "timestamp"), e.time_ms);
    buf_put(&r->text, e.data.at, e.data.size);
    buf_putc(&r->text, 0);
    return r->text.failed ? fail_nomem(err) : SESSILE_OK;
}

/* Reads neighbouring entries together. */
static sessile_status read_rows(session_core *s, reading *r, size_t count,
                                sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t i = 0;

    while (!status && i < count) {
        size_t end = i + 1;
        while (end < count && r->ids[end] - r->ids[end - 1] <= GAP)
            end++;
        status = session_texts_locked(s, r->ids[i], r->ids[end - 1], take_row, r, err);
        if (!status && r->done != end)
            status =
                session_fail_damaged(s, r->ids[r->done], err, "it is not where it was");
        i = end;
    }
    return status;
}

static sessile_status give_rows(const session_core *s, const reading *r, size_t count,
                                sessile_message **out, sessile_error *err)
{
    sessile_message *rows;
    char *text;

    if (count > (SIZE_MAX - r->text.size) / sizeof *rows)
        return fail_nomem(err);
    rows = host_alloc(&s->store->alloc, count * sizeof *rows + r->text.size);
    if (!rows)
        return fail_nomem(err);
    text = (char *)(rows + count);
    if (r->text.size)
        memcpy(text, r->text.data, r->text.size);
    for (size_t i = 0; i < count; i++) {
        const node *n = &s->tree.nodes[r->ids[i]];
        rows[i] = (sessile_message){.key = {r->ids[i], 0},
                                    .role = (sessile_role)n->role,
                                    .tokens = n->tokens,
                                    .time_ms = r->rows[i].time_ms,
                                    .json = {text + r->rows[i].at, r->rows[i].size}};
    }
    *out = rows;
    return SESSILE_OK;
}

sessile_status session_message_rows_locked(session_core *s, const sessile_id *ids,
                                           size_t count, sessile_message **out,
                                           sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    reading r = {.ids = ids};
    sessile_status status;

    buf_init(&r.text, a);
    if (count) {
        r.rows = mem_alloc(a, count * sizeof *r.rows);
        if (!r.rows)
            return fail_nomem(err);
    }
    status = read_rows(s, &r, count, err);
    if (!status)
        status = give_rows(s, &r, count, out, err);
    if (r.rows)
        mem_free(a, r.rows, count * sizeof *r.rows);
    buf_deinit(&r.text);
    return status;
}

/* An empty list is a block as well, so that the caller can always free it. */
sessile_status session_messages(session_core *s, const sessile_messages_options *options,
                                sessile_message **out, size_t *count, sessile_error *err)
{
    sessile_messages_options all = {.from = SESSILE_NO_ID, .at = SESSILE_NO_ID};
    const allocator *a = &s->store->alloc;
    sessile_id *ids = NULL, at;
    size_t path = 0, chosen;
    sessile_status status;

    *out = NULL;
    *count = 0;
    if (!options)
        options = &all;
    status = session_lock_fresh(s, err);
    if (status)
        return status;
    at = options->at == SESSILE_NO_ID ? s->tree.head : options->at;
    status = session_path_locked(s, at, &ids, &path, err);
    if (status)
        goto out;
    chosen = path;
    status = choose(s, options, at, ids, &chosen, err);
    if (!status)
        status = session_message_rows_locked(s, ids, chosen, out, err);
    if (status)
        goto out;
    *count = chosen;
    if (at == s->tree.head)
        s->tree.base = s->tree.head;
out:
    if (ids)
        mem_free(a, ids, path * sizeof *ids);
    session_unlock(s);
    return status;
}
