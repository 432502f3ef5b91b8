/*
 * find.c: searches messages for a text.
 *
 * Owns the walk over a message's texts, and the search (Knuth, Morris, Pratt: each
 * byte is read once, so that no text and no query takes long). Must never copy a
 * message's text, or join two values.
 */
#include "codec/find.h"

#include <string.h>

#include "base/text.h"

/* Limit on the nesting of blocks in the results of tools. */
enum { NESTED_MOST = 8 };

/* ------------------------------------------------------------------ the query */

int find_init(find_query *q, sessile_slice text, int exact, const allocator *a)
{
    memset(q, 0, sizeof *q);
    q->alloc = a;
    q->size = text.size;
    for (unsigned c = 0; c < 256; c++)
        q->fold[c] = (unsigned char)(!exact && c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
    q->text = mem_alloc(a, text.size);
    q->back = mem_alloc(a, text.size * sizeof *q->back);
    if (!q->text || !q->back)
        return -1;
    for (size_t i = 0; i < text.size; i++)
        q->text[i] = (char)q->fold[(unsigned char)text.data[i]];
    /* back[i]: the length of the longest proper prefix of the query that ends at i */
    q->back[0] = 0;
    for (size_t i = 1, have = 0; i < q->size; i++) {
        while (have && q->text[have] != q->text[i])
            have = q->back[have - 1];
        have += q->text[have] == q->text[i];
        q->back[i] = (uint32_t)have;
    }
    return 0;
}

void find_deinit(find_query *q)
{
    if (!q->alloc)
        return;
    mem_free(q->alloc, q->text, q->size);
    mem_free(q->alloc, q->back, q->size * sizeof *q->back);
    memset(q, 0, sizeof *q);
}

/* Continues the search over size bytes, with *have bytes of the query matched. 1: the
 * match is complete, after *used bytes. */
static int go_on(const find_query *q, const char *data, size_t size, size_t *have,
                 size_t *used)
{
    const unsigned char *at = (const unsigned char *)data, *end = at + size;
    const unsigned char first = (unsigned char)q->text[0];
    size_t k = *have;

    for (; at < end; at++) {
        unsigned char c = q->fold[*at];
        if (!k) {
            while (c != first && ++at < end)
                c = q->fold[*at];
            if (at == end)
                break;
        }
        while (k && (unsigned char)q->text[k] != c)
            k = q->back[k - 1];
        k += (unsigned char)q->text[k] == c;
        if (k == q->size) {
            *used = (size_t)(at - (const unsigned char *)data) + 1;
            return 1;
        }
    }
    *have = k;
    return 0;
}

int find_in_text(const find_query *q, const char *text, size_t size, size_t *at)
{
    size_t have = 0, used;

    if (!size || !go_on(q, text, size, &have, &used))
        return 0;
    *at = used - q->size;
    return 1;
}

/* What follows ESC in a control sequence of a terminal, ESC [ parameters intermediates
 * final; of any other sequence only the first byte, since its text may be shown. */
enum { PLAIN, ESCAPED, PARAMETERS, INTERMEDIATES };

/* How many of the bytes at data continue the sequence that *state is in. */
static size_t in_sequence(int *state, const char *data, size_t size)
{
    size_t i = 0;

    if (*state == ESCAPED && size) {
        *state = data[0] == '[' ? PARAMETERS : PLAIN;
        i = strchr("[]PX^_", data[0]) && data[0];
    }
    while (*state == PARAMETERS && i < size)
        if (data[i] >= '0' && data[i] <= '?')
            i++;
        else
            *state = INTERMEDIATES;
    while (*state == INTERMEDIATES && i < size)
        if (data[i] >= ' ' && data[i] <= '/') {
            i++;
        } else {
            *state = PLAIN;
            i += data[i] >= '@' && data[i] <= '~';
        }
    return i;
}

size_t find_strip(char *text, size_t size)
{
    int state = PLAIN;
    size_t kept = 0;

    for (size_t i = 0; i < size; i++) {
        i += in_sequence(&state, text + i, size - i);
        if (i < size && text[i] == '\033')
            state = ESCAPED;
        else if (i < size)
            text[kept++] = text[i];
    }
    return kept;
}

static int find_in_string(const find_query *q, json string, size_t *out)
{
    int sequence = PLAIN;
    const char *at = string.at + 1, *end = string.at + string.size - 1;
    size_t before = 0, have = 0, used, size;

    while (at < end) {
        const char *stop = memchr(at, '\\', (size_t)(end - at));
        char decoded[4];
        size = (size_t)((stop ? stop : end) - at);
        used = in_sequence(&sequence, at, size);
        at += used;
        size -= used;
        if (go_on(q, at, size, &have, &used))
            goto found;
        before += size;
        at += size;
        if (!stop)
            break;
        size = json_unescape(&at, end, decoded);
        if (in_sequence(&sequence, decoded, size) == size)
            continue;
        if (decoded[0] == '\033') {
            sequence = ESCAPED;
            continue;
        }
        if (go_on(q, decoded, size, &have, &used))
            goto found;
        before += size;
    }
    return 0;
found:
    *out = before + used - q->size;
    return 1;
}

int find_in_value(const find_query *q, json value, size_t *at)
{
    if (value.type == JSON_STRING && value.size >= 2)
        return find_in_string(q, value, at);
    return value.type == JSON_NUMBER && find_in_text(q, value.at, value.size, at);
}

/* ------------------------------------------------------------------ a message */

static int in_one(const find_query *q, json value, find_place *out)
{
    out->value = value;
    return find_in_value(q, value, &out->at);
}

/* A member of a block, or of arguments, that proves something to a provider, and says
 * nothing: signature, thinkingSignature, encrypted_content. */
static int is_sealed(json key)
{
    static const char end[] = "ignature", start[] = "encrypted";
    const char *name = key.at + 1;
    size_t size = key.size - 2;

    return (size >= sizeof end &&
            !memcmp(name + size - (sizeof end - 1), end, sizeof end - 1)) ||
           (size >= sizeof start - 1 && !memcmp(name, start, sizeof start - 1));
}

static int ends_number(char c)
{
    return c == ',' || c == ']' || c == '}';
}

/* Every string and number in a value, however deep, without the names of members. Checked
 * text has no white space between tokens: a string before a ':' is a name. */
static int in_all(const find_query *q, json value, find_place *out)
{
    const char *at = value.at, *end = value.at + value.size;

    while (at < end) {
        json one = {at, 0, JSON_NUMBER};
        if (*at == '"') {
            one = json_of(at, (size_t)(end - at));
            at += one.size;
            if (at < end && *at == ':') {
                at++;
                if (is_sealed(one) && at < end && *at == '"')
                    at += json_of(at, (size_t)(end - at)).size;
                continue;
            }
        } else if (*at == '-' || (*at >= '0' && *at <= '9')) {
            while (at < end && !ends_number(*at))
                at++;
            one.size = (size_t)(at - one.at);
        } else {
            at++;
            continue;
        }
        if (in_one(q, one, out))
            return 1;
    }
    return 0;
}

static int is_one_of(json key, const char *const *names)
{
    for (; *names; names++)
        if (json_is(key, *names))
            return 1;
    return 0;
}

/* Fields of a block or call that are not text for people. */
static const char *const not_text[] = {
    "type",          "id",         "tool_use_id", "tool_call_id", "call_id",
    "data",          "source",     "image_url",   "input_audio",  "file",
    "inline_data",   "inlineData", "media_type",  "mime_type",    "mimeType",
    "cache_control", "metadata",   NULL};

static int in_content(const find_query *q, json value, int nested, find_place *out);

static int in_block(const find_query *q, json block, int nested, find_place *out)
{
    static const char *const blocks[] = {"content", "output", NULL};
    json_iter it = json_begin(block);

    while (json_next(&it)) {
        if (is_one_of(it.key, not_text) || is_sealed(it.key))
            continue;
        if (is_one_of(it.key, blocks) ? in_content(q, it.value, nested + 1, out)
                                      : in_all(q, it.value, out))
            return 1;
    }
    return 0;
}

/* A string, a block, or a list of both. */
static int in_content(const find_query *q, json value, int nested, find_place *out)
{
    json_iter it;

    if (value.type == JSON_OBJECT)
        return nested < NESTED_MOST && in_block(q, value, nested, out);
    if (value.type != JSON_ARRAY)
        return in_one(q, value, out);
    for (it = json_begin(value); json_next(&it);)
        if (it.value.type == JSON_OBJECT
                ? nested < NESTED_MOST && in_block(q, it.value, nested, out)
                : in_all(q, it.value, out))
            return 1;
    return 0;
}

int find_in_message(const find_query *q, json message, find_place *out)
{
    static const char *const fields[] = {
        "content",  "tool_calls", "function_call", "reasoning", "reasoning_content",
        "thinking", "refusal",    "name",          "arguments", "output",
        NULL};
    json_iter it = json_begin(message);

    while (json_next(&it)) {
        const char *const *field = fields;
        while (*field && !json_is(it.key, *field))
            field++;
        out->field = *field;
        if (*field && in_content(q, it.value, 0, out))
            return 1;
    }
    return 0;
}

/* ------------------------------------------------------------------ what is around it */

find_part find_around(const char *text, size_t text_size, size_t at, size_t size,
                      size_t before, size_t after)
{
    size_t end = at + size;
    find_part part = {0, text_size};

    if (at > before) {
        part.from = utf8_floor(text, text_size, at - before);
        /* rounding down may have added up to three bytes */
        if (part.from < at - before)
            part.from += utf8_length(text + part.from, text_size - part.from);
    }
    if (text_size - end > after)
        part.to = utf8_floor(text, text_size, end + after);
    return part;
}
