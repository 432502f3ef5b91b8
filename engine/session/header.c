/*
 * header.c: a session's names, and the header entry that holds them.
 *
 * A session is (agent, user, id), three byte strings. JSON holds text only, so a name
 * that is not UTF-8 is written as {"b64":"…"}. Must never treat a name as a path or as a
 * C string: where the store keeps it is decided by the keyring alone.
 */
#include "session/header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

static sessile_status name_fits(sessile_slice name, const char *what, uint32_t limit,
                                sessile_error *err)
{
    if (name.size > limit)
        return fail(err, SESSILE_LIMIT,
                    "the session's %s has %zu bytes, the limit [id] is %" PRIu32
                    ": choose a shorter one",
                    what, name.size, limit);
    if (name.size && !name.data)
        return fail(err, SESSILE_INVALID, "the session's %s has a size but no bytes",
                    what);
    return SESSILE_OK;
}

sessile_status names_of(session_names *out, const sessile_store *st,
                        const sessile_session_options *options, int id_may_be_empty,
                        sessile_error *err)
{
    sessile_status status;

    memset(out, 0, sizeof *out);
    if (options) {
        out->id = options->id;
        out->agent = options->agent;
        out->user = options->user;
    }
    if (!out->agent.size)
        out->agent = (sessile_slice){st->agent, strlen(st->agent)};
    if (!out->id.size && !id_may_be_empty)
        return fail(err, SESSILE_INVALID,
                    "a session's id may not be empty: give one, or create a session "
                    "without an id to have one made");
    status = name_fits(out->id, "id", st->limits.id, err);
    if (!status)
        status = name_fits(out->agent, "agent", st->limits.id, err);
    if (!status)
        status = name_fits(out->user, "user", st->limits.id, err);
    return status;
}

void names_place(const sessile_store *st, const session_names *names,
                 char folder[NAME_SIZE], char name[NAME_SIZE])
{
    keyring_folder_name(st->keys, names->agent, folder);
    keyring_log_name(st->keys, names->user, names->id, name);
}

void name_show(sessile_slice name, char out[NAME_SHOWN])
{
    const size_t room = NAME_SHOWN - 8; /* quotes, an ellipsis, a NUL */
    size_t shown;

    if (name.size && utf8_valid(name.data, name.size)) {
        shown = utf8_floor(name.data, name.size, room);
        snprintf(out, NAME_SHOWN, "\"%.*s%s\"", (int)shown, name.data,
                 shown < name.size ? "…" : "");
        return;
    }
    shown = name.size < room / 2 ? name.size : room / 2;
    out[0] = 'x';
    out[1] = '\'';
    hex_encode(out + 2, name.data, shown);
    snprintf(out + 2 + 2 * shown, NAME_SHOWN - 2 - 2 * shown, "%s'",
             shown < name.size ? "…" : "");
}

static void put_name(buf *out, sessile_slice name)
{
    if (utf8_valid(name.data, name.size)) {
        json_put_string(out, name.data, name.size);
        return;
    }
    buf_puts(out, "{\"b64\":\"");
    base64_put(out, name.data, name.size);
    buf_puts(out, "\"}");
}

void header_put(buf *out, const session_names *names, sessile_slice title,
                sessile_slice metadata, int64_t now_ms)
{
    entry_fields fields = {.id = 0,
                           .parent = SESSILE_NO_ID,
                           .time_ms = now_ms,
                           .type = ENTRY_SESSION,
                           .source = SOURCE_HOST,
                           .tokens = -1};
    char created[TIME_SIZE];
    buf data;

    buf_init(&data, out->alloc);
    buf_puts(&data, "{\"session\":");
    put_name(&data, names->id);
    buf_puts(&data, ",\"agent\":");
    put_name(&data, names->agent);
    buf_puts(&data, ",\"user\":");
    put_name(&data, names->user);
    buf_puts(&data, ",\"title\":");
    json_put_string(&data, title.data, title.size);
    time_print(now_ms, created);
    buf_printf(&data, ",\"created\":\"%s\"", created);
    if (metadata.size) {
        buf_puts(&data, ",\"metadata\":");
        buf_put(&data, metadata.data, metadata.size);
    }
    buf_putc(&data, '}');
    fields.data = data.data;
    fields.data_size = data.size;
    if (data.failed)
        out->failed = 1;
    else
        entry_put(out, &fields);
    buf_deinit(&data);
}

void header_init(header *h, const allocator *a)
{
    buf_init(&h->id, a);
    buf_init(&h->agent, a);
    buf_init(&h->user, a);
    buf_init(&h->title, a);
    h->created_ms = 0;
}

void header_deinit(header *h)
{
    buf_deinit(&h->id);
    buf_deinit(&h->agent);
    buf_deinit(&h->user);
    buf_deinit(&h->title);
}

/* Decodes a name: a string, or bytes in base64. 0, or -1: neither (or no memory: failed).
 */
static int get_name(buf *out, json value)
{
    const char *text;
    size_t size;
    int64_t raw;

    if (value.type == JSON_STRING)
        return json_string(out, value);
    if (!json_plain(json_get(value, "b64"), &text, &size))
        return -1;
    if (buf_reserve(out, size))
        return -1;
    raw = base64_decode(out->data + out->size, text, size);
    if (raw < 0)
        return -1;
    out->size += (size_t)raw;
    return 0;
}

sessile_status header_read(header *h, const entry *e, sessile_error *err)
{
    json title = json_get(e->data, "title");
    const char *created;
    size_t size;

    if (e->type != ENTRY_SESSION || e->id != 0)
        return fail(err, SESSILE_DAMAGED,
                    "its first entry is no session header: restore it from a backup");
    if (get_name(&h->id, json_get(e->data, "session")) ||
        get_name(&h->agent, json_get(e->data, "agent")) ||
        get_name(&h->user, json_get(e->data, "user")) ||
        (title.type == JSON_STRING && json_string(&h->title, title))) {
        if (h->id.failed || h->agent.failed || h->user.failed || h->title.failed)
            return fail_nomem(err);
        return fail(err, SESSILE_DAMAGED,
                    "its header does not name a session: restore it from a backup");
    }
    if (!json_plain(json_get(e->data, "created"), &created, &size) ||
        time_parse(created, size, &h->created_ms))
        h->created_ms = e->time_ms;
    return SESSILE_OK;
}
