/*
 * state_put.c: new messages: their text, and what they stand for.
 *
 * Owns the text of every message that a policy writes. Must never let a policy name an
 * entry as its own, and must never change bytes of a message that it was not told to
 * change: members are copied as they stand in the text.
 */
#include "session/state_inside.h"

#include <string.h>

#include "base/error.h"
#include "base/text.h"
#include "tokens/tokens.h"

/* ------------------------------------------------------------------ what it stands for */

void stand_for_nothing(sessile_state *s)
{
    s->stand_count = 0;
    s->strange_count = 0;
}

static int stand_for_index(sessile_state *s, size_t index)
{
    if (mem_grow(s->alloc, (void **)&s->stands, &s->stand_capacity, s->stand_count + 1,
                 sizeof *s->stands))
        return -1;
    s->stands[s->stand_count++] = (uint32_t)index;
    return 0;
}

/* A key of the first list; one that is not in it is kept aside, for law 3 to name. */
static int stand_for_first(sessile_state *s, sessile_key key)
{
    size_t at;
    int found = finder_find(&s->find, key, &at);
    if (found < 0)
        return -1;
    if (found)
        return stand_for_index(s, at);
    if (mem_grow(s->alloc, (void **)&s->strange, &s->strange_capacity,
                 s->strange_count + 1, sizeof *s->strange))
        return -1;
    s->strange[s->strange_count++] = key;
    return 0;
}

static int stand_for_put(sessile_state *s, const put *w)
{
    size_t k;
    for (k = 0; k < w->replace_count; k++) {
        if (stand_for_first(s, w->replaces[k]))
            return -1;
    }
    for (k = 0; k < w->cover_count; k++) {
        if (stand_for_first(s, w->covers[k]))
            return -1;
    }
    return 0;
}

int stand_for_item(sessile_state *s, size_t i)
{
    uint32_t origin = origin_of(s, i);
    if (origin != ORIGIN_NONE)
        return stand_for_index(s, origin);
    return stand_for_put(s, put_of(s, given_item(s, i)->key.n));
}

int stand_for_key(sessile_state *s, sessile_key key)
{
    if (key_is_own(key) && key.n >= 1 && key.n <= s->puts_before)
        return stand_for_put(s, put_of(s, key.n));
    return stand_for_first(s, key);
}

/*
 * Indexes come in order, but for what a new message of an earlier hook stood for, which
 * may be put anywhere. Then they are sorted by marking them in a row of bytes as long as
 * the list: linear, and each is there once.
 */
static int sort_stands(sessile_state *s)
{
    size_t k, i, n = s->lists[0].c.count;
    uint8_t *seen;

    for (k = 1; k < s->stand_count; k++) {
        if (s->stands[k] <= s->stands[k - 1])
            break;
    }
    if (k >= s->stand_count)
        return 0;
    seen = mem_zalloc(s->alloc, n);
    if (!seen)
        return -1;
    for (k = 0; k < s->stand_count; k++)
        seen[s->stands[k]] = 1;
    s->stand_count = 0;
    for (i = 0; i < n; i++) {
        if (seen[i])
            s->stands[s->stand_count++] = (uint32_t)i;
    }
    mem_free(s->alloc, seen, n);
    return 0;
}

int stand_keys(sessile_state *s, sessile_key **out, size_t *count)
{
    const context *first = &s->lists[0].c;
    size_t k, n;

    *out = NULL;
    *count = 0;
    if (sort_stands(s))
        return -1;
    n = s->stand_count + s->strange_count;
    if (n == 0)
        return 0;
    *out = mem_alloc(s->alloc, n * sizeof **out);
    if (!*out)
        return -1;
    for (k = 0; k < s->stand_count; k++)
        (*out)[k] = first->items[s->stands[k]].key;
    for (k = 0; k < s->strange_count; k++)
        (*out)[s->stand_count + k] = s->strange[k];
    *count = n;
    return 0;
}

uint32_t stand_turn(const sessile_state *s, uint32_t otherwise)
{
    uint32_t newest = 0;
    size_t k;
    if (s->stand_count == 0)
        return otherwise;
    for (k = 0; k < s->stand_count; k++) {
        if (s->stands[k] > newest)
            newest = s->stands[k];
    }
    return s->lists[0].c.items[newest].turn;
}

/* ------------------------------------------------------------------ text */

/* Checks what a hook gave as an object, into s->checked. */
static sessile_status check_object(sessile_state *s, sessile_slice text, json *out,
                                   sessile_error *err)
{
    sessile_status code;

    buf_clear(&s->checked);
    if (text.size > UINT32_MAX / 2)
        return fail(err, SESSILE_LIMIT, "a message of %zu bytes is too long for "
                    "[policy_result]", text.size);
    code = json_check(&s->checked, text.data, text.size, s->depth, err);
    if (code)
        return code;
    *out = json_of(s->checked.data, s->checked.size);
    if (out->type != JSON_OBJECT)
        return fail(err, SESSILE_INVALID, "a policy's message must be a JSON object");
    return SESSILE_OK;
}

static sessile_status check_nameless(json object, sessile_error *err)
{
    const char *name = json_get(object, "id").type != JSON_NONE    ? "id"
                       : json_get(object, "key").type != JSON_NONE ? "key"
                                                                   : NULL;
    if (!name)
        return SESSILE_OK;
    return fail(err, SESSILE_INVALID, "a message a policy writes has no %s: leave \"%s\" "
                "out", name, name);
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

sessile_status put_complete(sessile_state *s, sessile_slice message_text,
                            sessile_role role_default, const char *kind,
                            sessile_error *err)
{
    json root, metadata;
    json_iter it;
    buf *out = &s->work;
    int any = 0, needs_kind, written = 0;
    sessile_status code = check_object(s, message_text, &root, err);

    if (!code)
        code = check_nameless(root, err);
    if (code)
        return code;
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
        json_put_cstring(out, sessile_role_name(role_default));
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

/* ------------------------------------------------------------------ fields over a message */

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
 * New content over old. Where calls or results are blocks of the old content, text over it
 * must not tear them from their pairs: each tool_result keeps its id and everything else
 * and has the text as its content; each tool_use stays as it is, and the text stands before
 * them as a text block (none when it is empty); all other blocks go. An array of blocks is
 * taken as it is, and refused later when its calls and results are others.
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
    static const char *const fixed[] = { "role", "tool_calls", "tool_call_id" };
    size_t i;
    for (i = 0; i < sizeof fixed / sizeof *fixed; i++) {
        json was = json_get(base, fixed[i]), is = json_get(fields, fixed[i]);
        if (is.type == JSON_NONE)
            continue;
        if (was.type != is.type || was.size != is.size ||
            memcmp(was.at, is.at, is.size) != 0)
            return fail(err, SESSILE_INVALID, "replacing keeps a message's \"%s\": leave "
                        "it out, or insert a message of its own", fixed[i]);
    }
    return SESSILE_OK;
}

#define NAME_WRITTEN UINT32_MAX

/* Notes where the value of each field is. */
static sessile_status note_fields(sessile_state *s, json fields, sessile_error *err)
{
    json_iter it;
    uint64_t name;

    map_clear(&s->names);
    for (it = json_begin(fields); json_next(&it);) {
        if (name_number(s, it.key, &name))
            return fail_nomem(err);
        if (map_get(&s->names, name, NULL))
            return fail(err, SESSILE_INVALID, "the new fields give one of their names "
                        "twice: leave one out");
        if (map_put(&s->names, name, (uint32_t)(it.value.at - s->checked.data)))
            return fail_nomem(err);
    }
    return SESSILE_OK;
}

sessile_status put_merge(sessile_state *s, sessile_slice base_text, sessile_slice fields_text,
                         sessile_error *err)
{
    json base = json_of(base_text.data, base_text.size), fields, value;
    json_iter it;
    buf *out = &s->work;
    uint64_t name;
    uint32_t at;
    int any = 0;
    sessile_status code = check_object(s, fields_text, &fields, err);

    if (!code)
        code = check_nameless(fields, err);
    if (!code)
        code = check_fixed(base, fields, err);
    if (!code)
        code = note_fields(s, fields, err);
    if (code)
        return code;

    buf_clear(out);
    buf_putc(out, '{');
    for (it = json_begin(base); json_next(&it);) {
        if (name_number(s, it.key, &name))
            return fail_nomem(err);
        if (!map_get(&s->names, name, &at)) {
            put_member(out, &any, it.key, it.value);
            continue;
        }
        if (at == NAME_WRITTEN) /* a name that the message has twice */
            continue;
        value = json_of(s->checked.data + at, s->checked.size - at);
        put_comma(out, &any);
        buf_put(out, it.key.at, it.key.size);
        buf_putc(out, ':');
        if (json_is(it.key, "content"))
            put_content(out, it.value, value);
        else
            buf_put(out, value.at, value.size);
        (void)map_put(&s->names, name, NAME_WRITTEN); /* replaces: needs no memory */
    }
    for (it = json_begin(fields); json_next(&it);) {
        if (name_number(s, it.key, &name))
            return fail_nomem(err);
        if (map_get(&s->names, name, &at) && at != NAME_WRITTEN)
            put_member(out, &any, it.key, it.value);
    }
    buf_putc(out, '}');
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ puts */

sessile_status put_read(sessile_state *s, message *out, sessile_error *err)
{
    s->link_count = 0;
    return message_read(out, s->work.data, s->work.size, &s->links, &s->link_count,
                        &s->link_capacity, s->alloc, err);
}

int put_same_links(const sessile_state *s, size_t i)
{
    const item *it = given_item(s, i);
    const message_link *was = s->given->c.links + it->link;
    size_t k;

    if (it->link_count != s->link_count)
        return 0;
    for (k = 0; k < s->link_count; k++) {
        if (was[k].id != s->links[k].id || was[k].is_result != s->links[k].is_result ||
            was[k].in_call != s->links[k].in_call)
            return 0;
    }
    return 1;
}

/* Law 10 judges a hook's whole result when it ends. This keeps a hook that is still
 * running from filling the memory until then. */
static sessile_status check_room(const sessile_state *s, size_t freed, sessile_error *err)
{
    uint64_t most = s->result_limit < UINT64_MAX / 8 ? s->result_limit * 4 + 65536
                                                     : UINT64_MAX;
    if (s->put_bytes - freed + s->work.size <= most)
        return SESSILE_OK;
    return fail(err, SESSILE_LIMIT, "the new messages have far more bytes than "
                "[policy_result] %llu", (unsigned long long)s->result_limit);
}

/* The text and columns of s->work. */
static void set_columns(put *w, const message *m, uint32_t turn)
{
    int64_t tokens = tokens_of_message(m);
    w->columns.role = (uint8_t)m->role;
    w->columns.flags = (uint8_t)(m->flags & (MESSAGE_STARTS_TURN | MESSAGE_SUMMARY |
                                             MESSAGE_KIND | MESSAGE_ERROR));
    w->columns.turn = turn;
    w->columns.tokens = tokens < 0            ? 0
                        : tokens > UINT32_MAX ? UINT32_MAX
                                              : (uint32_t)tokens;
}

sessile_status put_new(sessile_state *s, const message *m, uint32_t turn,
                       uint32_t *number, sessile_error *err)
{
    sessile_status code = check_room(s, 0, err);
    put *w;

    if (code)
        return code;
    if (s->put_count >= MARK_COVERED - 1)
        return fail(err, SESSILE_LIMIT, "too many new messages for [policy_result]");
    if (mem_grow(s->alloc, (void **)&s->puts, &s->put_capacity, s->put_count + 1,
                 sizeof *s->puts))
        return fail_nomem(err);
    w = &s->puts[s->put_count];
    memset(w, 0, sizeof *w);
    w->json = mem_dup(s->alloc, s->work.data, s->work.size);
    if (s->link_count)
        w->links = mem_alloc(s->alloc, s->link_count * sizeof *w->links);
    if (!w->json || (s->link_count && !w->links)) {
        mem_free(s->alloc, w->json, s->work.size + 1);
        mem_free(s->alloc, w->links, s->link_count * sizeof *w->links);
        return fail_nomem(err);
    }
    if (s->link_count)
        memcpy(w->links, s->links, s->link_count * sizeof *w->links);
    w->size = s->work.size;
    w->columns.key.entry = SESSILE_NO_ID;
    w->columns.key.n = (uint32_t)++s->put_count;
    w->columns.link_count = (uint32_t)s->link_count;
    set_columns(w, m, turn);
    s->put_bytes += w->size;
    *number = w->columns.key.n;
    return SESSILE_OK;
}

sessile_status put_again(sessile_state *s, const message *m, uint32_t number,
                         sessile_error *err)
{
    put *w = put_of(s, number);
    char *text;
    sessile_status code = check_room(s, w->size, err);

    if (code)
        return code;
    text = mem_dup(s->alloc, s->work.data, s->work.size);
    if (!text)
        return fail_nomem(err);
    s->put_bytes = s->put_bytes - w->size + s->work.size;
    mem_free(s->alloc, w->json, w->size + 1);
    w->json = text;
    w->size = s->work.size;
    set_columns(w, m, w->columns.turn);
    return SESSILE_OK;
}

void put_stands(sessile_state *s, uint32_t number, sessile_key *covers,
                size_t cover_count, sessile_key *replaces, size_t replace_count)
{
    put *w = put_of(s, number);
    size_t at;

    w->covers = covers;
    w->cover_count = cover_count;
    w->replaces = replaces;
    w->replace_count = replace_count;
    if (w->columns.role != SESSILE_SYSTEM && w->columns.role != SESSILE_DEVELOPER)
        return;
    w->invalid_role = !(replace_count == 1 && cover_count == 0 &&
                        finder_find(&s->find, replaces[0], &at) == 1 &&
                        s->lists[0].c.items[at].role == w->columns.role);
}

void put_clear(sessile_state *s, uint32_t number)
{
    put *w = put_of(s, number);
    if (!w->json)
        return;
    s->put_bytes -= w->size;
    mem_free(s->alloc, w->json, w->size + 1);
    mem_free(s->alloc, w->links, w->columns.link_count * sizeof *w->links);
    mem_free(s->alloc, w->covers, w->cover_count * sizeof *w->covers);
    mem_free(s->alloc, w->replaces, w->replace_count * sizeof *w->replaces);
    memset(w, 0, sizeof *w);
    w->columns.key.entry = SESSILE_NO_ID;
    w->columns.key.n = number;
}

void puts_cut(sessile_state *s, size_t count)
{
    while (s->put_count > count)
        put_clear(s, (uint32_t)s->put_count--);
}
