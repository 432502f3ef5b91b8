/*
 * rows.c: entries as a caller reads them.
 *
 * Texts are gathered in one buffer, and pointers are set when all of them are known, so
 * that an array of rows and everything in it is one block of the caller's.
 */
#include "memory/memory.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/text.h"

void rows_init(row_list *l, const allocator *a)
{
    memset(l, 0, sizeof *l);
    buf_init(&l->text, a);
    buf_init(&l->entry, a);
    buf_init(&l->scratch, a);
}

void rows_deinit(row_list *l)
{
    const allocator *a = l->text.alloc;
    mem_free(a, l->at, l->capacity * sizeof *l->at);
    mem_free(a, l->texts, l->text_capacity * sizeof *l->texts);
    buf_wipe(&l->text);
    buf_wipe(&l->entry);
    buf_wipe(&l->scratch);
    rows_init(l, a);
}

int rows_put(row_list *l, size_t field, const char *data, size_t size)
{
    if (mem_grow(l->text.alloc, (void **)&l->texts, &l->text_capacity, l->text_count + 1,
                 sizeof *l->texts))
        return -1;
    l->texts[l->text_count++] =
        (struct row_text){l->count - 1, field, l->text.size, size};
    buf_put(&l->text, data ? data : "", size);
    buf_putc(&l->text, '\0');
    return l->text.failed ? -1 : 0;
}

/* A string decoded; anything else as its JSON text. */
static int put_value(row_list *l, size_t field, json value)
{
    if (value.type != JSON_STRING)
        return rows_put(l, field, value.at, value.type == JSON_NONE ? 0 : value.size);
    buf_clear(&l->scratch);
    if (json_string(&l->scratch, value))
        return -1;
    return rows_put(l, field, l->scratch.data, l->scratch.size);
}

#define PUT(member, value) put_value(l, offsetof(sessile_memory_row, member), value)

static int put_texts(row_list *l, const entry *e, const memory_entry *m)
{
    return PUT(key, m->key) || PUT(value, m->value) || PUT(also, m->also) ||
           PUT(author, e->author) || PUT(from, m->from) || PUT(replaces, m->replaces) ||
           PUT(metadata, m->metadata);
}

static void fill(sessile_memory_row *row, const states *s, uint32_t record,
                 const memory_entry *m, int64_t now_ms)
{
    const memory_record *r = &s->records[record];
    uint32_t by;

    memset(row, 0, sizeof *row);
    row->id = r->id;
    row->state = states_of(s, record, now_ms);
    row->kind = m->kind;
    row->source = m->source;
    row->time_ms = r->time_ms;
    row->expires_ms = r->expires_ms;
    row->holds_from_ms = m->from_ms == INT64_MIN ? 0 : m->from_ms;
    row->holds_until_ms = m->to_ms == INT64_MAX ? 0 : m->to_ms;
    row->importance = m->importance;
    row->pinned = (r->flags & RECORD_PINNED) != 0;
    row->approved = (r->flags & RECORD_APPROVED) != 0;
    row->confirmed = r->confirmed;
    row->ended_by = r->ended_by ? r->ended_by : SESSILE_NO_ID;
    if (row->state == SESSILE_MEMORY_REPLACED &&
        (by = states_replaced_by(s, record)) != STATE_NONE)
        row->ended_by = s->records[by].id;
}

sessile_status rows_add(row_list *l, memory_core *m, uint32_t record, int64_t now_ms,
                        sessile_error *err)
{
    const states *s = &m->fold->states;
    sessile_status status;
    memory_entry data;
    entry e;

    buf_clear(&l->entry);
    status = log_read(m->log, s->records[record].id, &l->entry, err);
    if (!status)
        status = entry_read(&e, l->entry.data, l->entry.size, err);
    if (!status)
        status = memory_entry_read(&data, &e, err);
    if (status)
        return status;
    if (mem_grow(l->text.alloc, (void **)&l->at, &l->capacity, l->count + 1,
                 sizeof *l->at))
        return fail_nomem(err);
    fill(&l->at[l->count++], s, record, &data, now_ms);
    return put_texts(l, &e, &data) ? fail_nomem(err) : SESSILE_OK;
}

int rows_place(row_list *l)
{
    for (size_t i = 0; i < l->text_count; i++) {
        const struct row_text *t = &l->texts[i];
        sessile_slice slice = {l->text.data + t->from, t->size};
        memcpy((char *)&l->at[t->row] + t->field, &slice, sizeof slice);
    }
    return l->text.failed ? -1 : 0;
}

sessile_status rows_finish(row_list *l, memory_core *m, sessile_memory_row **out,
                           size_t *count, sessile_error *err)
{
    size_t size = l->count * sizeof *l->at;
    char *block, *text;

    if (!l->count)
        return SESSILE_OK;
    block = host_alloc(&m->store->alloc, size + l->text.size + 1);
    if (!block)
        return fail_nomem(err);
    text = block + size;
    memcpy(block, l->at, size);
    memcpy(text, l->text.data, l->text.size);
    for (size_t i = 0; i < l->text_count; i++) {
        const struct row_text *t = &l->texts[i];
        sessile_slice slice = {text + t->from, t->size};
        memcpy(block + t->row * sizeof *l->at + t->field, &slice, sizeof slice);
    }
    *out = (sessile_memory_row *)(void *)block;
    *count = l->count;
    return SESSILE_OK;
}

sessile_status memory_entry_text(memory_core *m, sessile_id id, char **out, size_t *size,
                                 sessile_error *err)
{
    sessile_status status = memory_lock_fresh(m, err);
    buf text;

    if (status)
        return status;
    buf_init(&text, &m->store->alloc);
    if (id >= log_count(m->log))
        status = fail(err, SESSILE_NOTFOUND, "%08" PRIx32 " is no entry here", id);
    else
        status = log_read(m->log, id, &text, err);
    memory_unlock(m);
    if (!status &&
        (text.failed || !(*out = host_dup(&m->store->alloc, text.data, text.size))))
        status = fail_nomem(err);
    if (!status)
        *size = text.size;
    buf_wipe(&text);
    return memory_name_error(m, status, err);
}
