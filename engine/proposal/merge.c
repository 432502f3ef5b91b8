/*
 * merge.c: the text of inserted messages.
 *
 * Completes a new message, and replaces fields of an existing one. Must never let a
 * policy give its message the name of an entry, and must never change other bytes: all
 * other members are copied as they are, in their order.
 */
#include "proposal/internal.h"

#include <string.h>

#include "base/error.h"
#include "base/names.h"
#include "base/text.h"
#include "codec/message.h"

/* ------------------------------------------------------------------ a new message */

/* Checks what a hook gave as an object, into s->checked. */
static sessile_status check_object(sessile_state *s, sessile_slice given, json *out,
                                   sessile_error *err)
{
    sessile_status status;

    buf_clear(&s->scratch.checked);
    if (given.size > UINT32_MAX / 2)
        return fail(err, SESSILE_LIMIT,
                    "a message of %zu bytes is too long for "
                    "[policy_result]",
                    given.size);
    status =
        json_check(&s->scratch.checked, given.data, given.size, s->limits.depth, err);
    if (status)
        return status;
    *out = json_of(s->scratch.checked.data, s->scratch.checked.size);
    if (out->type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "a policy's message must be a JSON object");
    return SESSILE_OK;
}

static const char *name_in(json object)
{
    return json_get(object, "id").type != JSON_NONE    ? "id"
           : json_get(object, "key").type != JSON_NONE ? "key"
                                                       : NULL;
}

static sessile_status check_nameless(json object, sessile_error *err)
{
    const char *name = name_in(object);
    if (!name)
        return SESSILE_OK;
    return fail(err, SESSILE_INVALID,
                "a message a policy writes has no %s: leave \"%s\" "
                "out",
                name, name);
}

/* A comma before all but the first member. */
static void put_comma(buf *out, int *any)
{
    if (*any)
        buf_putc(out, ',');
    *any = 1;
}

static void put_member(buf *out, int *any, json key, json value)
{
    put_comma(out, any);
    buf_put(out, key.at, key.size);
    buf_putc(out, ':');
    buf_put(out, value.at, value.size);
}

/* metadata with a kind in front of what it holds. */
static void put_kind(buf *out, int *any, const char *kind, json metadata)
{
    put_comma(out, any);
    buf_puts(out, "\"metadata\":{\"kind\":\"");
    buf_puts(out, kind);
    buf_putc(out, '"');
    if (metadata.type == JSON_OBJECT && metadata.size > 2) {
        buf_putc(out, ',');
        buf_put(out, metadata.at + 1, metadata.size - 1);
    } else {
        buf_putc(out, '}');
    }
}

/* The entry that a message says it is; entry SESSILE_NO_ID when that is no key. 0 or -1.
 */
static int read_name(sessile_state *s, json object, sessile_key *out)
{
    json value = json_get(object, name_in(object));
    sessile_slice text;
    buf decoded;
    int code = 0;

    out->entry = SESSILE_NO_ID;
    out->n = 0;
    if (value.type != JSON_STRING)
        return 0;
    buf_init(&decoded, s->alloc);
    code = json_string(&decoded, value);
    text = (sessile_slice){decoded.data, decoded.size};
    if (code == 0 && key_parse(text, out))
        out->entry = SESSILE_NO_ID;
    buf_deinit(&decoded);
    return code;
}

sessile_status inserted_complete(sessile_state *s, sessile_slice given,
                                 sessile_role role_default, const char *kind,
                                 sessile_key *name, int *has_name, sessile_error *err)
{
    json root, metadata;
    json_iter it;
    buf *out = &s->scratch.work;
    int any = 0, needs_kind, written = 0;
    sessile_status status = check_object(s, given, &root, err);

    if (!status && !has_name)
        status = check_nameless(root, err);
    if (status)
        return status;
    if (has_name)
        *has_name = name_in(root) != NULL;
    if (name && has_name && *has_name && read_name(s, root, name))
        return fail_nomem(err);
    metadata = json_get(root, "metadata");
    if (metadata.type != JSON_NONE && metadata.type != JSON_NULL &&
        metadata.type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "\"metadata\" of a message must be an object");
    needs_kind = kind && json_get(metadata, "kind").type == JSON_NONE;

    buf_clear(out);
    buf_putc(out, '{');
    if (json_get(root, "role").type == JSON_NONE) {
        put_comma(out, &any);
        buf_puts(out, "\"role\":");
        json_put_cstring(out, role_name(role_default));
    }
    for (it = json_begin(root); json_next(&it);) {
        if (needs_kind && !written && it.value.at == metadata.at) {
            put_kind(out, &any, kind, metadata);
            written = 1;
        } else {
            put_member(out, &any, it.key, it.value);
        }
    }
    if (needs_kind && !written)
        put_kind(out, &any, kind, metadata);
    buf_putc(out, '}');
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ fields over a
 * message */

/* A block's type, when pairing lives in it. */
static int is_result_block(json block)
{
    return json_is(json_get(block, "type"), "tool_result");
}

static int is_call_block(json block)
{
    return json_is(json_get(block, "type"), "tool_use");
}

/* A tool_result block with other content. */
static void put_result_block(buf *out, json block, json content)
{
    json_iter it = json_begin(block);
    int any = 0, written = 0;

    buf_putc(out, '{');
    while (json_next(&it)) {
        int is_content = !written && json_is(it.key, "content");
        put_member(out, &any, it.key, is_content ? content : it.value);
        written |= is_content;
    }
    if (!written) {
        put_comma(out, &any);
        buf_puts(out, "\"content\":");
        buf_put(out, content.at, content.size);
    }
    buf_putc(out, '}');
}

/*
 * New content over old. Where calls or results are blocks of the old content, text over
 * it must not tear them from their pairs: each tool_result keeps its id and everything
 * else and has the text as its content; each tool_use stays as it is, and the text stands
 * before them as a text block (none when it is empty); all other blocks go. An array of
 * blocks is taken as it is, and refused later when its calls and results are others.
 */
static void put_content(buf *out, json old, json content)
{
    static const char empty[] = "\"\"";
    size_t results = 0, calls = 0;
    json_iter it;
    int any = 0;

    for (it = json_begin(old); old.type == JSON_ARRAY && json_next(&it);) {
        results += (size_t)is_result_block(it.value);
        calls += (size_t)is_call_block(it.value);
    }
    if ((content.type != JSON_STRING && content.type != JSON_NULL) ||
        results + calls == 0) {
        buf_put(out, content.at, content.size);
        return;
    }
    if (content.type == JSON_NULL)
        content = json_of(empty, sizeof empty - 1);
    buf_putc(out, '[');
    if (results == 0 && content.size > 2) {
        put_comma(out, &any);
        buf_puts(out, "{\"type\":\"text\",\"text\":");
        buf_put(out, content.at, content.size);
        buf_putc(out, '}');
    }
    for (it = json_begin(old); json_next(&it);) {
        if (is_result_block(it.value)) {
            put_comma(out, &any);
            put_result_block(out, it.value, content);
        } else if (is_call_block(it.value)) {
            put_comma(out, &any);
            buf_put(out, it.value.at, it.value.size);
        }
    }
    buf_putc(out, ']');
}

/* Members by the hash of their decoded name, in s->names. */
static int name_number(sessile_state *s, json key, uint64_t *out)
{
    const char *data;
    size_t size;
    buf decoded;
    int code;

    if (json_plain(key, &data, &size)) {
        *out = hash64(data, size);
        return 0;
    }
    buf_init(&decoded, s->alloc);
    code = json_string(&decoded, key);
    if (code == 0)
        *out = hash64(decoded.data, decoded.size);
    buf_deinit(&decoded);
    return code;
}

/* What may not change: role and pairing; saying it again as it is does no harm. */
static sessile_status check_fixed(json base, json fields, sessile_error *err)
{
    static const char *const fixed[] = {"role", "tool_calls", "tool_call_id"};
    size_t i;
    for (i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        json was = json_get(base, fixed[i]), is = json_get(fields, fixed[i]);
        if (is.type == JSON_NONE)
            continue;
        if (was.type != is.type || was.size != is.size ||
            memcmp(was.at, is.at, is.size) != 0)
            return fail(err, SESSILE_INVALID,
                        "replacing keeps a message's \"%s\": leave "
                        "it out, or insert a message of its own",
                        fixed[i]);
    }
    return SESSILE_OK;
}

#define NAME_WRITTEN UINT32_MAX

/* Notes where the value of each field is. */
static sessile_status note_fields(sessile_state *s, json fields, sessile_error *err)
{
    json_iter it;
    uint64_t name;

    map_clear(&s->scratch.names);
    for (it = json_begin(fields); json_next(&it);) {
        if (name_number(s, it.key, &name))
            return fail_nomem(err);
        if (map_get(&s->scratch.names, name, NULL))
            return fail(err, SESSILE_INVALID,
                        "the new fields give one of their names "
                        "twice: leave one out");
        if (map_put(&s->scratch.names, name,
                    (uint32_t)(it.value.at - s->scratch.checked.data)))
            return fail_nomem(err);
    }
    return SESSILE_OK;
}

sessile_status inserted_merge(sessile_state *s, sessile_slice base_text,
                              sessile_slice fields_text, sessile_error *err)
{
    json base = json_of(base_text.data, base_text.size), fields, value;
    json_iter it;
    buf *out = &s->scratch.work;
    uint64_t name;
    uint32_t at;
    int any = 0;
    sessile_status status = check_object(s, fields_text, &fields, err);

    if (!status)
        status = check_nameless(fields, err);
    if (!status)
        status = check_fixed(base, fields, err);
    if (!status)
        status = note_fields(s, fields, err);
    if (status)
        return status;

    buf_clear(out);
    buf_putc(out, '{');
    for (it = json_begin(base); json_next(&it);) {
        if (name_number(s, it.key, &name))
            return fail_nomem(err);
        if (!map_get(&s->scratch.names, name, &at)) {
            put_member(out, &any, it.key, it.value);
            continue;
        }
        if (at == NAME_WRITTEN) /* a name that the message has twice */
            continue;
        value = json_of(s->scratch.checked.data + at, s->scratch.checked.size - at);
        put_comma(out, &any);
        buf_put(out, it.key.at, it.key.size);
        buf_putc(out, ':');
        if (json_is(it.key, "content"))
            put_content(out, it.value, value);
        else
            buf_put(out, value.at, value.size);
        (void)map_put(&s->scratch.names, name,
                      NAME_WRITTEN); /* replaces: needs no memory */
    }
    for (it = json_begin(fields); json_next(&it);) {
        if (name_number(s, it.key, &name))
            return fail_nomem(err);
        if (map_get(&s->scratch.names, name, &at) && at != NAME_WRITTEN)
            put_member(out, &any, it.key, it.value);
    }
    buf_putc(out, '}');
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}
