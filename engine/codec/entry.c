/*
 * entry.c: entries to text and back.
 *
 * Owns the order in which the fields of an entry are written (stored entries are
 * compared and hashed as text), and the names of types and sources. Must never refuse
 * an unknown field or type: a newer version may have written it, and it is kept.
 */
#include "codec/entry.h"

#include <string.h>

#include "base/names.h"
#include "base/text.h"

static const char *const type_names[] = {
    [ENTRY_UNKNOWN] = "unknown",
    [ENTRY_SESSION] = "session",
    [ENTRY_MESSAGE] = "message",
    [ENTRY_TURN] = "turn",
    [ENTRY_COMPACTION] = "compaction",
    [ENTRY_BRANCH_SUMMARY] = "branch_summary",
    [ENTRY_HEAD] = "head",
    [ENTRY_LABEL] = "label",
    [ENTRY_CHECKPOINT] = "checkpoint",
    [ENTRY_METADATA] = "metadata",
    [ENTRY_SUSPEND] = "suspend",
    [ENTRY_PENDING_RUN] = "pending_run",
    [ENTRY_REFUSAL] = "refusal",
    [ENTRY_CUSTOM] = "custom",
    [ENTRY_TOMBSTONE] = "tombstone",
    [ENTRY_CHILD] = "child",
    [ENTRY_MEMORY] = "memory",
    [ENTRY_VERDICT] = "verdict",
    [ENTRY_HEARD] = "heard",
    [ENTRY_VECTOR] = "vector",
    [ENTRY_CONSENT] = "consent",
    [ENTRY_AUDIT] = "audit",
    [ENTRY_EVENT] = "event",
    [ENTRY_SEAL] = "seal",
    [ENTRY_LANE] = "lane",
    [ENTRY_WHO] = "who",
    [ENTRY_CONTROL] = "control",
    [ENTRY_FACT] = "fact",
};

static const char *const source_names[] = {
    [SOURCE_NONE] = "none",     [SOURCE_USER] = "user", [SOURCE_AGENT] = "agent",
    [SOURCE_SYSTEM] = "system", [SOURCE_TOOL] = "tool", [SOURCE_POLICY] = "policy",
    [SOURCE_HOST] = "host",
};

#define TYPE_COUNT   (sizeof type_names / sizeof *type_names)
#define SOURCE_COUNT (sizeof source_names / sizeof *source_names)

const char *entry_type_name(entry_type type)
{
    return (size_t)type < TYPE_COUNT ? type_names[type] : type_names[ENTRY_UNKNOWN];
}

const char *entry_source_name(entry_source source)
{
    return (size_t)source < SOURCE_COUNT ? source_names[source]
                                         : source_names[SOURCE_NONE];
}

entry_source entry_source_of(const char *name, size_t size)
{
    size_t i;
    for (i = SOURCE_NONE + 1; i < SOURCE_COUNT; i++)
        if (strlen(source_names[i]) == size && memcmp(source_names[i], name, size) == 0)
            return (entry_source)i;
    return SOURCE_NONE;
}

entry_source source_of_role(sessile_role role)
{
    switch (role) {
    case SESSILE_USER:
        return SOURCE_USER;
    case SESSILE_ASSISTANT:
    case SESSILE_MODEL:
        return SOURCE_AGENT;
    case SESSILE_SYSTEM:
    case SESSILE_DEVELOPER:
        return SOURCE_SYSTEM;
    case SESSILE_TOOL:
    case SESSILE_FUNCTION:
        return SOURCE_TOOL;
    case SESSILE_ROLE_NONE:
        break;
    }
    return SOURCE_NONE;
}

int entry_on_path(entry_type type)
{
    return type == ENTRY_MESSAGE || type == ENTRY_TURN || type == ENTRY_COMPACTION ||
           type == ENTRY_BRANCH_SUMMARY;
}

/* ------------------------------------------------------------------ ids */

void id_print(sessile_id id, char out[9])
{
    static const char digits[] = "0123456789abcdef";
    int i;
    for (i = 7; i >= 0; i--) {
        out[i] = digits[id & 15];
        id >>= 4;
    }
    out[8] = 0;
}

int id_parse(const char *text, size_t size, sessile_id *out)
{
    sessile_slice slice = {text, size};
    sessile_key key;
    *out = SESSILE_NO_ID;
    if (size != 8 || key_parse(slice, &key))
        return -1;
    *out = key.entry;
    return 0;
}

/* ------------------------------------------------------------------ writing */

static char *append(char *to, const char *text, size_t size)
{
    memcpy(to, text, size);
    return to + size;
}

static char *append_text(char *to, const char *text)
{
    return append(to, text, strlen(text));
}

/* `,"name":"value"` with a value that needs no escapes. */
static char *append_field(char *to, const char *name, const char *value)
{
    to = append(to, ",\"", 2);
    to = append_text(to, name);
    to = append(to, "\":\"", 3);
    to = append_text(to, value);
    *to++ = '"';
    return to;
}

static void put_raw_field(buf *out, const char *name, const char *text, size_t size)
{
    buf_put(out, ",\"", 2);
    buf_puts(out, name);
    buf_put(out, "\":", 2);
    buf_put(out, text, size);
}

void entry_put(buf *out, const entry_fields *fields)
{
    char head[192]; /* id, parent_id, timestamp, type and source take at most 140 bytes */
    char id[9], time[TIME_SIZE];
    char *to = head;

    id_print(fields->id, id);
    to = append_text(to, "{\"id\":\"");
    to = append(to, id, 8);
    *to++ = '"';
    if (fields->parent == SESSILE_NO_ID) {
        to = append_text(to, ",\"parent_id\":null");
    } else {
        id_print(fields->parent, id);
        to = append_field(to, "parent_id", id);
    }
    time_print(fields->time_ms, time);
    to = append_field(to, "timestamp", time);
    to = append_field(to, "type", entry_type_name(fields->type));
    if (fields->source != SOURCE_NONE)
        to = append_field(to, "source", entry_source_name(fields->source));

    if (buf_reserve(out,
                    fields->data_size < PTRDIFF_MAX / 2 ? fields->data_size + 256 : 0))
        return;
    buf_put(out, head, (size_t)(to - head));
    if (fields->author_json)
        put_raw_field(out, "author", fields->author_json, strlen(fields->author_json));
    if (fields->user_json)
        put_raw_field(out, "user", fields->user_json, strlen(fields->user_json));
    if (fields->data)
        put_raw_field(out, "data", fields->data, fields->data_size);
    else
        put_raw_field(out, "data", "{}", 2);
    if (fields->tokens >= 0) {
        buf_puts(out, ",\"tokens\":[");
        buf_put_i64(out, fields->tokens);
        if (fields->token_source) {
            buf_putc(out, ',');
            json_put_cstring(out, fields->token_source);
        }
        buf_putc(out, ']');
    }
    buf_putc(out, '}');
}

void entry_put_data(buf *out, entry_fields *fields, const buf *data)
{
    fields->data = data->data;
    fields->data_size = data->size;
    if (data->failed)
        out->failed = 1;
    else
        entry_put(out, fields);
}

/* ------------------------------------------------------------------ reading */

/* The fields of an entry, as written in the text. */
typedef struct raw_entry {
    json id, parent, time, type, source, author, user, data, tokens;
} raw_entry;

static void take_field(raw_entry *raw, json key, json value)
{
    /* Two letters distinguish the engine's own names. A name that begins with an
     * escape is none of them, because the engine wrote them. */
    switch (key.size > 3 ? key.at[1] : 0) {
    case 'i':
        json_fill(&raw->id, value, key, "id");
        break;
    case 'p':
        json_fill(&raw->parent, value, key, "parent_id");
        break;
    case 't':
        if (key.at[2] == 'i')
            json_fill(&raw->time, value, key, "timestamp");
        else if (key.at[2] == 'y')
            json_fill(&raw->type, value, key, "type");
        else
            json_fill(&raw->tokens, value, key, "tokens");
        break;
    case 's':
        json_fill(&raw->source, value, key, "source");
        break;
    case 'a':
        json_fill(&raw->author, value, key, "author");
        break;
    case 'u':
        json_fill(&raw->user, value, key, "user");
        break;
    case 'd':
        json_fill(&raw->data, value, key, "data");
        break;
    default:
        break;
    }
}

static int read_id(json value, sessile_id *out)
{
    const char *data;
    size_t size;
    return json_plain(value, &data, &size) ? id_parse(data, size, out) : -1;
}

static int read_time(json value, int64_t *out)
{
    const char *data;
    size_t size;
    return json_plain(value, &data, &size) ? time_parse(data, size, out) : -1;
}

static entry_type read_type(json value)
{
    size_t i;
    for (i = ENTRY_UNKNOWN + 1; i < TYPE_COUNT; i++)
        if (json_is(value, type_names[i]))
            return (entry_type)i;
    return ENTRY_UNKNOWN;
}

static entry_source read_source(json value)
{
    const char *data;
    size_t size;
    return json_plain(value, &data, &size) ? entry_source_of(data, size) : SOURCE_NONE;
}

/* Reads [n, source]; anything else counts as not counted. */
static void read_tokens(entry *out, json value)
{
    json_iter it = json_begin(value);
    out->tokens = -1;
    if (value.type != JSON_ARRAY || !json_next(&it) || json_int(it.value, &out->tokens) ||
        out->tokens < 0) {
        out->tokens = -1;
        return;
    }
    if (json_next(&it) && it.value.type == JSON_STRING)
        out->token_source = it.value;
}

sessile_status entry_read(entry *out, const char *text, size_t size, sessile_error *err)
{
    const char *wrong = NULL;
    raw_entry raw;
    json root = {text, size, JSON_OBJECT};
    json_iter it;

    memset(out, 0, sizeof *out);
    memset(&raw, 0, sizeof raw);
    out->id = out->parent = SESSILE_NO_ID;
    out->tokens = -1;
    if (size < 2 || text[0] != '{' || text[size - 1] != '}')
        return fail(err, SESSILE_DAMAGED, "an entry is no JSON object");
    for (it = json_begin(root); json_next(&it);)
        take_field(&raw, it.key, it.value);

    if (read_id(raw.id, &out->id))
        wrong = "id";
    else if (raw.parent.type != JSON_NULL && read_id(raw.parent, &out->parent))
        wrong = "parent_id";
    else if (read_time(raw.time, &out->time_ms))
        wrong = "timestamp";
    else if (raw.type.type != JSON_STRING)
        wrong = "type";
    else if (raw.data.type != JSON_OBJECT)
        wrong = "data";
    if (wrong) {
        char id[9];
        id_print(out->id, id);
        memset(out, 0, sizeof *out);
        out->id = out->parent = SESSILE_NO_ID;
        out->tokens = -1;
        return fail(err, SESSILE_DAMAGED, "entry %s has no valid \"%s\"", id, wrong);
    }
    out->type = read_type(raw.type);
    out->source = read_source(raw.source);
    if (raw.author.type == JSON_STRING)
        out->author = raw.author;
    if (raw.user.type == JSON_STRING || raw.user.type == JSON_OBJECT)
        out->user = raw.user;
    out->data = raw.data;
    read_tokens(out, raw.tokens);
    return SESSILE_OK;
}
