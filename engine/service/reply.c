/*
 * reply.c: the parts of replies: messages, rows, texts, in the arena of their call.
 *
 * A part that there is no memory for is noted in the call, which then ends as NOMEM; so a
 * method makes its reply without a look at each part. Only messages and rows can be NULL.
 */
#include "service/server.h"

#include <string.h>

void *call_new(call *c, size_t size)
{
    void *out = arena_new(&c->arena, size);
    if (!out)
        c->no_memory = 1;
    return out;
}

void *call_make(call *c, const ProtobufCMessageDescriptor *type)
{
    ProtobufCMessage *m = call_new(c, type->sizeof_message);
    if (m)
        protobuf_c_message_init(type, m);
    return m;
}

void *call_rows(call *c, size_t count, const ProtobufCMessageDescriptor *type)
{
    if (count > SIZE_MAX / 2 / (sizeof(void *) + type->sizeof_message)) {
        c->no_memory = 1;
        return NULL;
    }
    ProtobufCMessage **rows = call_new(c, (count ? count : 1) * sizeof(void *));
    for (size_t i = 0; rows && i < count; i++) {
        rows[i] = call_make(c, type);
        if (!rows[i])
            return NULL;
    }
    return rows;
}

char *call_text(call *c, sessile_slice text)
{
    static char none[1];
    char *out;
    if (text.size == 0)
        return none;
    if (!memchr(text.data, 0, text.size) && utf8_valid(text.data, text.size)) {
        out = call_new(c, text.size + 1);
        if (out)
            memcpy(out, text.data, text.size);
        return out ? out : none;
    }
    buf lossy;
    buf_init(&lossy, &c->server->alloc);
    utf8_put_lossy(&lossy, text.data, strnlen(text.data, text.size));
    out = lossy.failed ? NULL : call_new(c, lossy.size + 1);
    if (out && lossy.size)
        memcpy(out, lossy.data, lossy.size);
    c->no_memory |= lossy.failed;
    buf_deinit(&lossy);
    return out ? out : none;
}

char *call_string(call *c, const char *text)
{
    return call_text(c, sessile_text(text));
}

Sessile__V1__Json *call_json(call *c, sessile_slice text)
{
    if (text.size == 0)
        return NULL;
    Sessile__V1__Json *out = call_make(c, &sessile__v1__json__descriptor);
    if (out)
        out->text = call_text(c, text);
    return out;
}

Sessile__V1__Entry *call_entry(call *c, sessile_id id)
{
    if (id == SESSILE_NO_ID)
        return NULL;
    Sessile__V1__Entry *out = call_make(c, &sessile__v1__entry__descriptor);
    if (out)
        out->id = id;
    return out;
}

Sessile__V1__Key *call_key(call *c, sessile_key key)
{
    if (key.entry == SESSILE_NO_ID)
        return NULL;
    Sessile__V1__Key *out = call_make(c, &sessile__v1__key__descriptor);
    if (out) {
        out->entry = key.entry;
        out->n = key.n;
    }
    return out;
}

static int is_text(sessile_slice name)
{
    return name.size == 0 ||
           (!memchr(name.data, 0, name.size) && utf8_valid(name.data, name.size));
}

static ProtobufCBinaryData call_bytes(call *c, sessile_slice bytes)
{
    unsigned char *data = bytes.size ? call_new(c, bytes.size) : NULL;
    if (!data)
        return (ProtobufCBinaryData){0, NULL};
    memcpy(data, bytes.data, bytes.size);
    return (ProtobufCBinaryData){bytes.size, data};
}

Sessile__V1__Session *call_session_names(call *c, sessile_slice agent, sessile_slice user,
                                         sessile_slice id)
{
    Sessile__V1__Session *out = call_make(c, &sessile__v1__session__descriptor);
    if (out && is_text(agent) && is_text(user) && is_text(id)) {
        out->agent = call_text(c, agent);
        out->user = call_text(c, user);
        out->id = call_text(c, id);
    } else if (out && (out->raw = call_make(c, &sessile__v1__raw__descriptor))) {
        out->raw->agent = call_bytes(c, agent);
        out->raw->user = call_bytes(c, user);
        out->raw->id = call_bytes(c, id);
    }
    return out;
}

sessile_slice json_slice(const Sessile__V1__Json *json)
{
    return sessile_text(json ? json->text : NULL);
}

sessile_id entry_id(const Sessile__V1__Entry *entry)
{
    return entry ? entry->id : SESSILE_NO_ID;
}

int names_user(const Sessile__V1__Session *names)
{
    return names && (names->raw ? names->raw->user.len > 0 : *names->user != 0);
}

sessile_status read_role(const char *name, const char *field, sessile_role *out,
                         sessile_error *err)
{
    int role = SESSILE_SYSTEM;
    *out = SESSILE_ROLE_NONE;
    while (role <= SESSILE_FUNCTION &&
           strcmp(name, sessile_role_name((sessile_role)role)) != 0)
        role++;
    if (role > SESSILE_FUNCTION)
        return fail(err, SESSILE_INVALID, "%s: there is no such role", field);
    *out = (sessile_role)role;
    return SESSILE_OK;
}

Sessile__V1__Tokens *call_tokens(call *c, const sessile_tokens *from)
{
    Sessile__V1__Tokens *out = call_make(c, &sessile__v1__tokens__descriptor);
    if (!out)
        return NULL;
    out->tokens = from->tokens;
    out->low = from->low;
    out->high = from->high;
    out->source = call_string(c, from->source);
    return out;
}

Sessile__V1__Damage *call_damage(call *c, sessile_status status, const char *message,
                                 uint64_t lost)
{
    char name[32] = "E";
    Sessile__V1__Damage *out = call_make(c, &sessile__v1__damage__descriptor);
    if (!out)
        return NULL;
    strncat(name, sessile_status_name(status), sizeof name - 2);
    out->status = call_string(c, name);
    out->message = call_string(c, message);
    out->lost = lost;
    return out;
}

/* Not by call_key(): each has to be there. */
Sessile__V1__Key **call_keys(call *c, const sessile_key *keys, size_t count,
                             size_t *out_count)
{
    Sessile__V1__Key **out = call_rows(c, count, &sessile__v1__key__descriptor);
    *out_count = out ? count : 0;
    for (size_t i = 0; i < *out_count; i++) {
        out[i]->entry = keys[i].entry;
        out[i]->n = keys[i].n;
    }
    return out;
}

sessile_status reply_written(call *c, sessile_id entry, sessile_error *err)
{
    Sessile__V1__Written out = SESSILE__V1__WRITTEN__INIT;
    out.entry = entry;
    return call_reply(c, &out.base, err);
}

sessile_status reply_empty(call *c, sessile_error *err)
{
    Sessile__V1__Empty out = SESSILE__V1__EMPTY__INIT;
    return call_reply(c, &out.base, err);
}

sessile_slice *call_slices(call *c, Sessile__V1__Json *const *from, size_t n)
{
    sessile_slice *out = call_new(c, (n ? n : 1) * sizeof *out);
    for (size_t i = 0; out && i < n; i++)
        out[i] = json_slice(from[i]);
    return out;
}

const char *disposition_name(sessile_disposition disposition)
{
    static const char *const names[] = {"lost", "covered", "replaced", "undone"};
    return names[disposition];
}
