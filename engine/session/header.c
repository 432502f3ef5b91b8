/*
 * header.c: a session's names, and the header entry that holds them.
 *
 * A session is (agent, user, id), three byte strings. JSON holds text only, so a name
 * that is not UTF-8 is written as {"b64":"…"}. Must never treat a name as a path or as a
 * C string: the keyring alone decides where the store keeps it.
 */
#include "session/header.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "session/handle.h"

static sessile_status name_fits(sessile_slice name, const char *what, uint32_t limit,
                                sessile_error *err)
{
    if (name.size > limit)
        return fail(err, SESSILE_LIMIT,
                    "the %s has %zu bytes, the limit [id] is %" PRIu32
                    ": choose a shorter one",
                    what, name.size, limit);
    if (name.size && !name.data)
        return fail(err, SESSILE_INVALID, "the %s has a size but no bytes", what);
    return SESSILE_OK;
}

sessile_status names_from_options(session_names *out, const store_core *st,
                                  const sessile_session_options *options,
                                  int id_may_be_empty, sessile_error *err)
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
    status = name_fits(out->id, "session's id", st->limits.id, err);
    if (!status)
        status = name_fits(out->agent, "name of the agent", st->limits.id, err);
    if (!status)
        status = name_fits(out->user, "name of the user", st->limits.id, err);
    return status;
}

void names_place(const store_core *st, const session_names *names, char folder[NAME_SIZE],
                 char name[NAME_SIZE])
{
    keyring_folder_name(st->keys, names->agent, folder);
    if (names->kind == NAMES_MEMORY) /* the longest folder has 100 bytes */
        memcpy(folder + strlen(folder), MEMORY_FOLDER, sizeof MEMORY_FOLDER);
    else if (names->kind == NAMES_AUDIT)
        memcpy(folder, AUDIT_FOLDER, sizeof AUDIT_FOLDER);
    else if (names->kind == NAMES_CONTROL)
        memcpy(folder, CONTROL_FOLDER, sizeof CONTROL_FOLDER);
    keyring_log_name(st->keys, names->user, names->id, name);
}

int folder_has_sessions(const char *folder)
{
    size_t size = strlen(folder), end = sizeof MEMORY_FOLDER - 1;
    return strcmp(folder, AUDIT_FOLDER) != 0 && strcmp(folder, CONTROL_FOLDER) != 0 &&
           (size <= end || strcmp(folder + size - end, MEMORY_FOLDER) != 0);
}

sessile_status names_check_removal(store_core *st, const session_names *names,
                                   sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE], secret[NAME_SIZE];
    const store_removal what = {folder, name, secret, names->user};

    names_place(st, names, folder, name);
    keyring_user_name(st->keys, names->user, secret);
    return store_check_removal(st, &what, err);
}

/* The type of the header of each kind. */
static const entry_type header_types[] = {[NAMES_SESSION] = ENTRY_SESSION,
                                          [NAMES_MEMORY] = ENTRY_MEMORY,
                                          [NAMES_AUDIT] = ENTRY_AUDIT,
                                          [NAMES_CONTROL] = ENTRY_CONTROL};

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

void header_put_name(buf *out, sessile_slice name)
{
    if (utf8_valid(name.data, name.size)) {
        json_put_string(out, name.data, name.size);
        return;
    }
    buf_puts(out, "{\"b64\":\"");
    base64_put(out, name.data, name.size);
    buf_puts(out, "\"}");
}

static void put_link(buf *out, const char *name, const sessile_link *link)
{
    buf_printf(out, ",\"%s\":{\"agent\":", name);
    header_put_name(out, link->agent);
    buf_puts(out, ",\"id\":");
    header_put_name(out, link->id);
    if (link->user.size) {
        buf_puts(out, ",\"user\":");
        header_put_name(out, link->user);
    }
    buf_printf(out, ",\"entry\":\"%08" PRIx32 "\"", link->entry);
    if (link->tag[0])
        buf_printf(out, ",\"tag\":\"%s\"", link->tag);
    buf_putc(out, '}');
}

static void put_names(buf *data, const session_names *names)
{
    buf_puts(data, "{\"session\":");
    header_put_name(data, names->id);
    buf_puts(data, ",\"agent\":");
    header_put_name(data, names->agent);
    buf_puts(data, ",\"user\":");
    header_put_name(data, names->user);
}

void header_put(buf *out, const session_names *names, const header_fields *given)
{
    entry_fields fields = {.id = 0,
                           .parent = SESSILE_NO_ID,
                           .time_ms = given->now_ms,
                           .type = header_types[names->kind],
                           .source = SOURCE_HOST,
                           .tokens = -1};
    char created[TIME_SIZE], nonce[HEADER_NONCE];
    unsigned char random[(HEADER_NONCE - 1) / 2];
    buf data;

    buf_init(&data, out->alloc);
    put_names(&data, names);
    buf_puts(&data, ",\"title\":");
    json_put_string(&data, given->title.data, given->title.size);
    time_print(given->now_ms, created);
    random_bytes(random, sizeof random);
    hex_encode(nonce, random, sizeof random);
    buf_printf(&data, ",\"created\":\"%s\",\"nonce\":\"%s\"", created, nonce);
    if (given->metadata.size) {
        buf_puts(&data, ",\"metadata\":");
        buf_put(&data, given->metadata.data, given->metadata.size);
    }
    if (given->language.size) {
        buf_puts(&data, ",\"language\":");
        json_put_string(&data, given->language.data, given->language.size);
    }
    if (given->ttl_ms > 0)
        buf_printf(&data, ",\"ttl_ms\":%" PRIi64, given->ttl_ms);
    if (given->origin)
        put_link(&data, "origin", given->origin);
    if (given->parent)
        put_link(&data, "parent", given->parent);
    buf_putc(&data, '}');
    entry_put_data(out, &fields, &data);
    buf_deinit(&data);
}

sessile_status header_rename(buf *out, const char *text, size_t size,
                             const session_names *names, sessile_error *err)
{
    sessile_status status;
    json_iter it;
    entry e;
    buf data;

    status = entry_read(&e, text, size, err);
    if (!status && e.type != header_types[names->kind])
        status = fail(err, SESSILE_DAMAGED, "its first entry is no session header");
    if (status)
        return status;
    buf_init(&data, out->alloc);
    put_names(&data, names);
    for (it = json_begin(e.data); json_next(&it);) {
        if (json_is(it.key, "session") || json_is(it.key, "agent") ||
            json_is(it.key, "user"))
            continue;
        buf_putc(&data, ',');
        buf_put(&data, it.key.at, it.key.size);
        buf_putc(&data, ':');
        buf_put(&data, it.value.at, it.value.size);
    }
    buf_putc(&data, '}');
    buf_put(out, text, (size_t)(e.data.at - text));
    buf_put(out, data.data, data.size);
    buf_put(out, e.data.at + e.data.size,
            size - (size_t)(e.data.at - text) - e.data.size);
    if (data.failed || out->failed)
        status = fail_nomem(err);
    buf_deinit(&data);
    return status;
}

/* ------------------------------------------------------------------ reading */

void header_link_init(header_link *l, const allocator *a)
{
    buf_init(&l->id, a);
    buf_init(&l->agent, a);
    buf_init(&l->user, a);
    l->entry = SESSILE_NO_ID;
    l->tag[0] = 0;
}

void header_link_deinit(header_link *l)
{
    buf_deinit(&l->id);
    buf_deinit(&l->agent);
    buf_deinit(&l->user);
    l->entry = SESSILE_NO_ID;
}

void header_init(header *h, const allocator *a)
{
    header_link_init(&h->origin, a);
    header_link_init(&h->parent, a);
    buf_init(&h->id, a);
    buf_init(&h->agent, a);
    buf_init(&h->user, a);
    buf_init(&h->title, a);
    buf_init(&h->language, a);
    h->created_ms = 0;
    h->nonce[0] = 0;
}

void header_deinit(header *h)
{
    header_link_deinit(&h->origin);
    header_link_deinit(&h->parent);
    buf_deinit(&h->id);
    buf_deinit(&h->agent);
    buf_deinit(&h->user);
    buf_deinit(&h->title);
    buf_deinit(&h->language);
}

int header_get_name(buf *out, json value)
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

/* A link that makes no sense is none: it is what is said of another session, and no
 * reason not to open this one. -1: no memory. */
static int get_link(header_link *l, json value)
{
    json user = json_get(value, "user");
    const char *text;
    size_t size;
    sessile_id id;

    if (value.type != JSON_OBJECT)
        return 0;
    if (header_get_name(&l->id, json_get(value, "id")) ||
        header_get_name(&l->agent, json_get(value, "agent")) ||
        (user.type != JSON_NONE && header_get_name(&l->user, user)) ||
        !json_plain(json_get(value, "entry"), &text, &size) || id_parse(text, size, &id))
        return l->id.failed || l->agent.failed || l->user.failed ? -1 : 0;
    l->entry = id;
    if (json_plain(json_get(value, "tag"), &text, &size) && size < sizeof l->tag) {
        memcpy(l->tag, text, size);
        l->tag[size] = 0;
    }
    return 0;
}

sessile_status header_read(header *h, const entry *e, sessile_error *err)
{
    json title = json_get(e->data, "title");
    const char *created, *nonce;
    uint64_t ttl;
    size_t size;

    json language = json_get(e->data, "language");

    h->kind = e->type == ENTRY_MEMORY    ? NAMES_MEMORY
              : e->type == ENTRY_AUDIT   ? NAMES_AUDIT
              : e->type == ENTRY_CONTROL ? NAMES_CONTROL
                                         : NAMES_SESSION;
    if (e->type != header_types[h->kind] || e->id != 0)
        return fail(err, SESSILE_DAMAGED,
                    "its first entry is no session header: restore it from a backup");
    if (header_get_name(&h->id, json_get(e->data, "session")) ||
        header_get_name(&h->agent, json_get(e->data, "agent")) ||
        header_get_name(&h->user, json_get(e->data, "user")) ||
        (title.type == JSON_STRING && json_string(&h->title, title)) ||
        (language.type == JSON_STRING && json_string(&h->language, language))) {
        if (h->id.failed || h->agent.failed || h->user.failed || h->title.failed ||
            h->language.failed)
            return fail_nomem(err);
        return fail(err, SESSILE_DAMAGED,
                    "its header does not name a session: restore it from a backup");
    }
    if (get_link(&h->origin, json_get(e->data, "origin")) ||
        get_link(&h->parent, json_get(e->data, "parent")))
        return fail_nomem(err);
    if (!json_plain(json_get(e->data, "created"), &created, &size) ||
        time_parse(created, size, &h->created_ms))
        h->created_ms = e->time_ms;
    h->nonce[0] = 0;
    if (json_plain(json_get(e->data, "nonce"), &nonce, &size) &&
        size == HEADER_NONCE - 1) {
        memcpy(h->nonce, nonce, size);
        h->nonce[size] = 0;
    }
    if (json_uint(json_get(e->data, "ttl_ms"), &ttl) || ttl > UINT64_C(1) << 53)
        ttl = 0;
    h->ttl_ms = (int64_t)ttl;
    return SESSILE_OK;
}

sessile_status header_peek(store_core *st, const char *folder, const char *name,
                           header *h, sessile_error *err)
{
    sessile_status status;
    entry read;
    buf text;

    buf_init(&text, &st->alloc);
    status = log_peek(&st->backend, st->keys, folder, name, session_read_depth(st),
                      st->config.timeout_ms, &text, &st->alloc, err);
    if (!status)
        status = entry_read(&read, text.data, text.size, err);
    if (!status)
        status = header_read(h, &read, err);
    buf_wipe(&text);
    return status;
}

sessile_status names_made(store_core *st, const session_names *names,
                          char nonce[HEADER_NONCE], sessile_error *err)
{
    char folder[NAME_SIZE], name[NAME_SIZE];
    sessile_status status;
    header h;

    names_place(st, names, folder, name);
    header_init(&h, &st->alloc);
    status = header_peek(st, folder, name, &h, err);
    if (!status)
        memcpy(nonce, h.nonce, HEADER_NONCE);
    header_deinit(&h);
    return status;
}
