/*
 * message.c: what the engine needs to know about a message.
 *
 * Owns roles, and the forms of calls and results. Must never check more than it needs
 * to: unknown fields belong to the caller and are kept.
 *
 * The object is walked once. Fields are distinguished by their first letters instead
 * of by one comparison for each name, because this code runs on every append.
 */
#include "codec/message.h"

#include <string.h>

#include "base/text.h"

static const char *const role_names[] = {
    [SESSILE_ROLE_NONE] = "none",      [SESSILE_SYSTEM] = "system",
    [SESSILE_DEVELOPER] = "developer", [SESSILE_USER] = "user",
    [SESSILE_ASSISTANT] = "assistant", [SESSILE_MODEL] = "model",
    [SESSILE_TOOL] = "tool",           [SESSILE_FUNCTION] = "function",
};

const char *role_name(sessile_role role)
{
    size_t at = (size_t)role;
    return at < sizeof role_names / sizeof *role_names ? role_names[at] : role_names[0];
}

sessile_role role_of(json name)
{
    int role;
    for (role = SESSILE_SYSTEM; role <= SESSILE_FUNCTION; role++)
        if (json_is(name, role_names[role]))
            return (sessile_role)role;
    return SESSILE_ROLE_NONE;
}

/* ------------------------------------------------------------------ links */

/* The array for links while a message is read. */
typedef struct linker {
    message_link **links; /* NULL: not wanted */
    size_t *count, *capacity;
    const allocator *alloc;
    int no_memory;
} linker;

/* hash64_lasting of the decoded bytes of a string: 0, or -1 without memory. */
static int hash_of_id(json id, const allocator *a, uint64_t *hash)
{
    const char *data;
    size_t size;
    buf decoded;
    int result;

    if (json_plain(id, &data, &size)) {
        *hash = hash64_lasting(data, size);
        return 0;
    }
    buf_init(&decoded, a);
    result = json_string(&decoded, id);
    if (result == 0)
        *hash = hash64_lasting(decoded.data, decoded.size);
    buf_deinit(&decoded);
    return result;
}

static void add_link(linker *to, json id, int is_result, int in_call)
{
    message_link *link;
    uint64_t hash;

    if (!to->links || to->no_memory)
        return;
    if (hash_of_id(id, to->alloc, &hash) ||
        mem_grow(to->alloc, (void **)to->links, to->capacity, *to->count + 1,
                 sizeof **to->links)) {
        to->no_memory = 1;
        return;
    }
    link = *to->links + (*to->count)++;
    link->id = hash;
    link->is_result = (uint8_t)is_result;
    link->in_call = (uint8_t)in_call;
}

/* ------------------------------------------------------------------ blocks and calls */

/* The fields of a content block or a call that matter here. */
typedef struct piece {
    json type, id, tool_use_id, tool_call_id, output;
    int is_error;
} piece;

static void take_first(json *field, json value)
{
    if (field->type == JSON_NONE)
        *field = value;
}

/* The field of a block or call by its name; decided by the first letter, so that most
 * names cost nothing. */
static void take_piece_field(piece *out, json key, json value, char first)
{
    switch (first) {
    case 'i':
        if (json_is(key, "id"))
            take_first(&out->id, value);
        else if (value.type == JSON_TRUE &&
                 (json_is(key, "is_error") || json_is(key, "isError")))
            out->is_error = 1;
        break;
    case 'o':
        if (json_is(key, "output"))
            take_first(&out->output, value);
        break;
    case 't':
        if (json_is(key, "type"))
            take_first(&out->type, value);
        else if (json_is(key, "tool_use_id"))
            take_first(&out->tool_use_id, value);
        else if (json_is(key, "tool_call_id"))
            take_first(&out->tool_call_id, value);
        break;
    default:
        break;
    }
}

/* The first letter of a decoded name; an escaped one must be decoded. */
static char first_letter(json key)
{
    const char *at;
    char decoded[4];
    if (key.size < 3)
        return 0;
    at = key.at + 1;
    if (*at != '\\')
        return *at;
    (void)json_unescape(&at, key.at + key.size - 1, decoded);
    return decoded[0];
}

static void read_fields(piece *out, json_iter *it)
{
    memset(out, 0, sizeof *out);
    while (json_next(it))
        take_piece_field(out, it->key, it->value, first_letter(it->key));
}

/* Reads the current object, and finds its end. */
static void read_piece(piece *out, json_iter *at)
{
    json_iter inner = json_enter(at);
    read_fields(out, &inner);
    at->value.size = json_left(at, &inner);
}

/* What was found while reading the content. */
typedef struct content_kinds {
    size_t blocks, results;
} content_kinds;

static sessile_status read_content(message *out, json_iter *it, linker *to,
                                   content_kinds *kinds, sessile_error *err)
{
    for (; json_step(it); json_finish(it)) {
        piece block;
        kinds->blocks++;
        if (it->value.type == JSON_STRING)
            continue;
        if (it->value.type != JSON_OBJECT)
            return fail(err, SESSILE_INVALID,
                        "content[%zu] of the message is neither an object nor text",
                        kinds->blocks - 1);
        read_piece(&block, it);
        if (block.is_error)
            out->flags |= MESSAGE_ERROR;
        if (json_is(block.type, "tool_use")) {
            if (block.id.type != JSON_STRING)
                return fail(err, SESSILE_INVALID,
                            "content[%zu] is a tool_use without an \"id\" that is text",
                            kinds->blocks - 1);
            add_link(to, block.id, 0, 0);
        } else if (json_is(block.type, "tool_result")) {
            kinds->results++;
            if (block.tool_use_id.type == JSON_STRING)
                add_link(to, block.tool_use_id, 1, 0);
            else if (block.tool_call_id.type == JSON_STRING)
                add_link(to, block.tool_call_id, 1, 0);
        }
    }
    return SESSILE_OK;
}

static sessile_status read_calls(json_iter *it, linker *to, sessile_error *err)
{
    size_t i;

    for (i = 0; json_step(it); json_finish(it), i++) {
        piece call;
        if (it->value.type != JSON_OBJECT)
            return fail(err, SESSILE_INVALID, "tool_calls[%zu] is no object", i);
        read_piece(&call, it);
        if (call.id.type != JSON_STRING)
            return fail(err, SESSILE_INVALID,
                        "tool_calls[%zu] has no \"id\" that is text", i);
        add_link(to, call.id, 0, 0);
        if (call.output.type != JSON_NONE && call.output.type != JSON_NULL)
            add_link(to, call.id, 1, 1);
    }
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ the message */

/* Sets a field that may occur once: a second one is an error. */
static sessile_status take_once(json *field, json value, const char *name,
                                sessile_error *err)
{
    if (field->type != JSON_NONE)
        return fail(err, SESSILE_INVALID, "the message gives \"%s\" twice: leave one out",
                    name);
    *field = value;
    return SESSILE_OK;
}

/* Fields with contents are walked in place, which gives their size. Links are in the
 * order of the text, which is the order in which the model wrote them. */
static sessile_status read_inside(message *out, json_iter *it, linker *to,
                                  content_kinds *kinds, sessile_error *err)
{
    json_iter inner;
    sessile_status status;
    int is_content = json_is(it->key, "content");
    json *field = is_content ? &out->content : &out->tool_calls;

    if (!is_content && !json_is(it->key, "tool_calls"))
        return SESSILE_OK;
    if (field->type != JSON_NONE) /* said with its name when it is taken */
        return SESSILE_OK;
    inner = json_enter(it);
    status = is_content ? read_content(out, &inner, to, kinds, err)
                        : read_calls(&inner, to, err);
    if (!status)
        it->value.size = json_left(it, &inner);
    return status;
}

static sessile_status take_field(message *out, json *role, json key, json value,
                                 sessile_error *err)
{
    switch (first_letter(key)) {
    case 'a':
        if (json_is(key, "author"))
            take_first(&out->author, value);
        break;
    case 'c':
        if (json_is(key, "content"))
            return take_once(&out->content, value, "content", err);
        break;
    case 'i':
        if (value.type == JSON_TRUE &&
            (json_is(key, "is_error") || json_is(key, "isError")))
            out->flags |= MESSAGE_ERROR;
        break;
    case 'm':
        if (json_is(key, "metadata"))
            take_first(&out->metadata, value);
        break;
    case 'r':
        if (json_is(key, "role"))
            return take_once(role, value, "role", err);
        break;
    case 't':
        if (json_is(key, "tool_calls"))
            return take_once(&out->tool_calls, value, "tool_calls", err);
        if (json_is(key, "tool_call_id"))
            return take_once(&out->tool_call_id, value, "tool_call_id", err);
        if (json_is(key, "timestamp"))
            take_first(&out->timestamp, value);
        break;
    case 'u':
        if (json_is(key, "usage"))
            take_first(&out->usage, value);
        break;
    default:
        break;
    }
    return SESSILE_OK;
}

static sessile_status read_object(message *out, json *role, linker *to,
                                  content_kinds *kinds, sessile_error *err)
{
    json_iter it = json_begin(out->root);
    while (json_step(&it)) {
        sessile_status status;
        if (it.value.type == JSON_ARRAY) {
            status = read_inside(out, &it, to, kinds, err);
            if (status)
                return status;
        }
        json_finish(&it);
        status = take_field(out, role, it.key, it.value, err);
        if (status)
            return status;
    }
    return SESSILE_OK;
}

static sessile_status check_types(message *out, json role, sessile_error *err)
{
    if (role.type == JSON_NONE)
        return fail(
            err, SESSILE_INVALID,
            "the message has no \"role\": give it one of system, developer, user, "
            "assistant, model, tool, function");
    out->role = role_of(role);
    if (out->role == SESSILE_ROLE_NONE)
        return fail(err, SESSILE_INVALID,
                    "the message's \"role\" is none of system, developer, user, "
                    "assistant, model, tool, function");
    if (out->content.type != JSON_NONE && out->content.type != JSON_NULL &&
        out->content.type != JSON_STRING && out->content.type != JSON_ARRAY)
        return fail(err, SESSILE_INVALID,
                    "the message's \"content\" is neither text nor an array of blocks");
    if (out->tool_calls.type != JSON_NONE && out->tool_calls.type != JSON_NULL &&
        out->tool_calls.type != JSON_ARRAY)
        return fail(err, SESSILE_INVALID, "the message's \"tool_calls\" is no array");
    if (out->tool_call_id.type != JSON_NONE && out->tool_call_id.type != JSON_NULL &&
        out->tool_call_id.type != JSON_STRING)
        return fail(err, SESSILE_INVALID, "the message's \"tool_call_id\" is no text");
    return SESSILE_OK;
}

static void set_flags(message *out, const content_kinds *kinds)
{
    json kind = json_get(out->metadata, "kind");
    int only_results = kinds->blocks > 0 && kinds->blocks == kinds->results;

    if (kind.type != JSON_NONE && kind.type != JSON_NULL) {
        out->flags |= MESSAGE_KIND;
        if (json_is(kind, "summary") || json_is(kind, "branch_summary"))
            out->flags |= MESSAGE_SUMMARY;
    } else if (out->role == SESSILE_USER && !only_results) {
        out->flags |= MESSAGE_STARTS_TURN;
    }
}

int64_t message_time(json timestamp, int64_t entry_ms)
{
    const char *text;
    size_t size;
    int64_t ms;

    if (timestamp.type == JSON_STRING) {
        if (!json_plain(timestamp, &text, &size) || time_parse(text, size, &ms))
            return entry_ms;
    } else if (timestamp.type != JSON_NUMBER || json_int(timestamp, &ms)) {
        return entry_ms;
    }
    return ms > 0 && ms < entry_ms ? ms : entry_ms;
}

sessile_role message_speaker(sessile_role role, unsigned flags)
{
    int is_written = (flags & (MESSAGE_STARTS_TURN | MESSAGE_KIND)) != 0;

    return role == SESSILE_USER && !is_written ? SESSILE_TOOL : role;
}

sessile_status message_read(message *out, const char *text, size_t size,
                            message_link **links, size_t *link_count,
                            size_t *link_capacity, const allocator *a, sessile_error *err)
{
    linker to = {links, link_count, link_capacity, a, 0};
    content_kinds kinds = {0, 0};
    json role = {NULL, 0, JSON_NONE};
    size_t links_before = links ? *link_count : 0;
    sessile_status status;

    memset(out, 0, sizeof *out);
    if (size < 2 || text[0] != '{' || text[size - 1] != '}')
        return fail(err, SESSILE_INVALID, "a message must be a JSON object");
    out->root.at = text;
    out->root.size = size;
    out->root.type = JSON_OBJECT;

    status = read_object(out, &role, &to, &kinds, err);
    if (!status)
        status = check_types(out, role, err);
    if (!status && out->tool_call_id.type == JSON_STRING &&
        (out->role == SESSILE_TOOL || out->role == SESSILE_FUNCTION))
        add_link(&to, out->tool_call_id, 1, 0);
    if (!status && to.no_memory)
        status = fail_nomem(err);
    if (!status)
        set_flags(out, &kinds);
    if (status) {
        memset(out, 0, sizeof *out);
        if (links)
            *link_count = links_before;
    }
    return status;
}

sessile_role message_speaker_in(json text)
{
    sessile_role role = role_of(json_get(text, "role"));
    message m;

    if (role == SESSILE_USER && json_get(text, "content").type == JSON_ARRAY &&
        !message_read(&m, text.at, text.size, NULL, NULL, NULL, NULL, NULL))
        role = message_speaker(m.role, m.flags);
    return role;
}

/* Appends the text of id if it has the given hash: 1 found. */
static int put_if_id(json id, uint64_t wanted, buf *out)
{
    uint64_t hash;
    if (id.type != JSON_STRING || hash_of_id(id, out->alloc, &hash) || hash != wanted)
        return 0;
    buf_put(out, id.at, id.size);
    return 1;
}

int message_call_id(const char *text, size_t size, uint64_t id, buf *out)
{
    json root = json_of(text, size);
    json_iter it;
    piece found;

    for (it = json_begin(json_get(root, "tool_calls")); json_step(&it);
         json_finish(&it)) {
        read_piece(&found, &it);
        if (put_if_id(found.id, id, out))
            return 1;
    }
    for (it = json_begin(json_get(root, "content")); json_step(&it); json_finish(&it)) {
        read_piece(&found, &it);
        if (json_is(found.type, "tool_use") && put_if_id(found.id, id, out))
            return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ usage */

/* The first of the names (NULL-terminated) that is a count; negative ones are none. */
static int first_count(json usage, const char *const *names, int64_t *out)
{
    int64_t n;
    for (; *names; names++) {
        if (json_int(json_get(usage, *names), &n) == 0 && n >= 0) {
            *out = n;
            return 1;
        }
    }
    return 0;
}

int usage_cost(json usage, double *out)
{
    json cost = json_get(usage, "cost");
    if (cost.type == JSON_OBJECT)
        cost = json_get(cost, "total");
    return json_double(cost, out) == 0 && *out >= 0;
}

int usage_read(json usage, sessile_usage *out)
{
    static const char *const input[] = {"input", "input_tokens", "prompt_tokens", NULL};
    static const char *const output[] = {"output", "output_tokens", "completion_tokens",
                                         NULL};
    static const char *const cache_read[] = {"cache_read", "cacheRead",
                                             "cache_read_input_tokens", NULL};
    static const char *const cache_write[] = {"cache_write", "cacheWrite",
                                              "cache_creation_input_tokens", NULL};
    int found;

    memset(out, 0, sizeof *out);
    if (usage.type != JSON_OBJECT)
        return 0;
    found = first_count(usage, input, &out->input);
    found |= first_count(usage, output, &out->output);
    found |= first_count(usage, cache_read, &out->cache_read);
    found |= first_count(usage, cache_write, &out->cache_write);
    return found;
}
