/*
 * erase_text.c: what the entries of a log become when some of them are erased.
 *
 * The texts of an erased entry, and its author, are left out. Its envelope stays, with
 * its kind, and the ids of what it replaced by name or by key. A verdict about it loses
 * its reason. Its vectors are left out of the entries that have them, for every model.
 */
#include "memory/erase.h"

#include <string.h>

#include "base/text.h"

/* An entry's envelope as it is, without its author, around other data. */
static void put_changed(erasing *e, const entry *was, buf *out)
{
    entry_fields fields = {.id = was->id,
                           .parent = was->parent,
                           .time_ms = was->time_ms,
                           .type = was->type,
                           .source = was->source,
                           .tokens = -1};

    buf_clear(&e->user);
    if (was->user.type != JSON_NONE) {
        buf_put(&e->user, was->user.at, was->user.size);
        buf_putc(&e->user, '\0');
        fields.user_json = e->user.data;
    }
    if (e->user.failed)
        out->failed = 1;
    else
        entry_put_data(out, &fields, &e->data);
}

/* Appends an id to an array of which *count are written. */
static void put_next_id(buf *out, size_t *count, sessile_id id)
{
    buf_puts(out, (*count)++ ? "," : "");
    memory_put_id(out, id);
}

/* A target: what it is, and what it replaces. */
static sessile_status erase_entry(erasing *e, uint32_t record, const entry *was, buf *out,
                                  sessile_error *err)
{
    const states *s = &e->m->fold->states;
    const memory_record *r = &s->records[record];
    size_t count, named = 0;
    const uint32_t *edges = states_edges(s, record, &count);
    memory_entry data;
    sessile_status status = memory_entry_read(&data, was, err);

    if (status)
        return status;
    buf_clear(&e->data);
    buf_printf(&e->data, "{\"erased\":true,\"kind\":\"%s\",\"replaces\":[",
               memory_kind_name(data.kind));
    for (size_t i = 0; i < count; i++)
        put_next_id(&e->data, &named, s->records[edges[i]].id);
    for (uint32_t k = r->below; k != STATE_NONE; k = s->records[k].below)
        if (!erasing_has(e, k) && !(s->records[k].flags & RECORD_DELETED))
            put_next_id(&e->data, &named, s->records[k].id);
    buf_printf(&e->data, "]%s}", data.pending ? ",\"pending\":true" : "");
    put_changed(e, was, out);
    return SESSILE_OK;
}

static int names_target(const erasing *e, json of)
{
    for (json_iter it = json_begin(of); json_next(&it);) {
        const char *text;
        size_t size;
        sessile_id id;
        if (json_plain(it.value, &text, &size) && !id_parse(text, size, &id) &&
            erasing_has(e, states_find(&e->m->fold->states, id)))
            return 1;
    }
    return 0;
}

static void put_raw(buf *out, json key, json value)
{
    if (out->size > 1)
        buf_putc(out, ',');
    buf_put(out, key.at, key.size);
    buf_putc(out, ':');
    buf_put(out, value.at, value.size);
}

/* A verdict about a target, without its reason. */
static void erase_reason(erasing *e, const entry *was, buf *out)
{
    json reason = json_get(was->data, "reason");

    if (reason.type == JSON_NONE || !names_target(e, json_get(was->data, "of")))
        return;
    buf_clear(&e->data);
    buf_putc(&e->data, '{');
    for (json_iter it = json_begin(was->data); json_next(&it);)
        if (it.value.at != reason.at)
            put_raw(&e->data, it.key, it.value);
    buf_putc(&e->data, '}');
    put_changed(e, was, out);
}

/* The ids and the vectors that are not of targets, as members `of` and `v`. */
static void put_vectors(erasing *e, json of, const unsigned char *bytes, size_t one,
                        size_t count)
{
    const states *s = &e->m->fold->states;
    buf kept;
    size_t at = 0, named = 0;

    buf_init(&kept, e->data.alloc);
    buf_puts(&e->data, ",\"of\":[");
    for (json_iter it = json_begin(of); at < count && json_next(&it); at++) {
        const char *text;
        size_t size;
        sessile_id id;
        if (!json_plain(it.value, &text, &size) || id_parse(text, size, &id) ||
            erasing_has(e, states_find(s, id)))
            continue;
        put_next_id(&e->data, &named, id);
        buf_put(&kept, bytes + at * one, one);
    }
    buf_puts(&e->data, "],\"v\":\"");
    base64_put(&e->data, kept.data ? kept.data : "", kept.size);
    buf_puts(&e->data, "\"");
    e->data.failed |= kept.failed;
    buf_wipe(&kept);
}

static sessile_status erase_vectors(erasing *e, const entry *was, buf *out,
                                    sessile_error *err)
{
    const allocator *a = &e->m->store->alloc;
    json of = json_get(was->data, "of"), v = json_get(was->data, "v");
    const char *text;
    unsigned char *bytes;
    size_t size, room, one;
    uint64_t dims;
    int64_t raw;

    if (!names_target(e, of) || json_uint(json_get(was->data, "dims"), &dims) ||
        dims < 1 || dims > SESSILE_MEMORY_DIMS_MAX || !json_plain(v, &text, &size))
        return SESSILE_OK;
    one = sizeof(float) + (size_t)dims;
    room = size / 4 * 3 + 1;
    bytes = mem_alloc(a, room);
    if (!bytes)
        return fail_nomem(err);
    raw = base64_decode(bytes, text, size);
    buf_clear(&e->data);
    buf_putc(&e->data, '{');
    for (json_iter it = json_begin(was->data); json_next(&it);)
        if (it.value.at != of.at && it.value.at != v.at)
            put_raw(&e->data, it.key, it.value);
    put_vectors(e, of, bytes, one, raw > 0 ? (size_t)raw / one : 0);
    buf_putc(&e->data, '}');
    put_changed(e, was, out);
    wipe(bytes, room);
    mem_free(a, bytes, room);
    return SESSILE_OK;
}

static sessile_status check_same_memory(erasing *e, const entry *was, sessile_error *err)
{
    header h;
    sessile_status status;

    header_init(&h, &e->m->store->alloc);
    status = header_read(&h, was, err);
    if (!status && strcmp(h.nonce, e->m->fold->header.nonce) != 0)
        status = fail(err, SESSILE_NOTFOUND,
                      "it was removed, and another one was made: open that one");
    header_deinit(&h);
    return status;
}

sessile_status erase_change(void *arg, sessile_id id, const char *text, size_t size,
                            buf *out, sessile_error *err)
{
    erasing *e = arg;
    uint32_t record;
    entry was;
    sessile_status status = entry_read(&was, text, size, err);

    if (status)
        return status;
    if (id == 0)
        return check_same_memory(e, &was, err);
    switch (was.type) {
    case ENTRY_MEMORY:
        record = states_find(&e->m->fold->states, id);
        return record != STATE_NONE && erasing_has(e, record)
                   ? erase_entry(e, record, &was, out, err)
                   : SESSILE_OK;
    case ENTRY_VERDICT:
        erase_reason(e, &was, out);
        return SESSILE_OK;
    case ENTRY_VECTOR:
        return erase_vectors(e, &was, out, err);
    default:
        return SESSILE_OK;
    }
}
