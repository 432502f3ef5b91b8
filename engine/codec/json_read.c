/*
 * json_read.c: finds fields of checked text on demand.
 *
 * Must never copy, round or print a value: a value is a span of the text. Must never
 * read outside the span it is given, even if the text was not checked, and never
 * recurse: it skips a container by counting brackets outside strings.
 */
#include "codec/json.h"

#include <string.h>

#include "codec/scan.h"

static const json nothing = {NULL, 0, JSON_NONE};

/* Checked text has no white space, but a plain log may have been edited by hand. */
static const char *skip_space(const char *at, const char *end)
{
    while (at < end && (*at == ' ' || *at == '\n' || *at == '\t' || *at == '\r'))
        at++;
    return at;
}

/* The end of a number or literal. */
static const char *skip_word(const char *at, const char *end)
{
    while (at < end && *at != ',' && *at != ']' && *at != '}' && *at != ':' &&
           (unsigned char)*at > ' ')
        at++;
    return at;
}

/* The end of the container that begins at `at`. Kinds of brackets are not compared. */
static const char *skip_container(const char *at, const char *end)
{
    size_t level = 0;
    for (;;) {
        at = scan_to_structure(at, end);
        if (at == end)
            return end;
        if (*at == '"')
            at = scan_string(at, end);
        else if ((*at++ | 0x20) == '{')
            level++;
        else if (--level == 0)
            return at;
    }
}

/* The type of the value that begins at `at`, which may be end. */
static json_type type_at(const char *at, const char *end)
{
    if (at == end)
        return JSON_NONE;
    switch (*at) {
    case '"':
        return JSON_STRING;
    case '{':
        return JSON_OBJECT;
    case '[':
        return JSON_ARRAY;
    case 't':
        return JSON_TRUE;
    case 'f':
        return JSON_FALSE;
    case 'n':
        return JSON_NULL;
    case '-':
        return JSON_NUMBER;
    default:
        return *at >= '0' && *at <= '9' ? JSON_NUMBER : JSON_NONE;
    }
}

static size_t size_at(const char *at, const char *end, json_type type)
{
    if (type == JSON_STRING)
        return (size_t)(scan_string(at, end) - at);
    if (type == JSON_OBJECT || type == JSON_ARRAY)
        return (size_t)(skip_container(at, end) - at);
    return (size_t)(skip_word(at, end) - at);
}

static int is_container(json value)
{
    return value.type == JSON_OBJECT || value.type == JSON_ARRAY;
}

json json_of(const char *text, size_t size)
{
    const char *end;
    json value;
    if (size == 0)
        return nothing;
    end = text + size;
    value.at = skip_space(text, end);
    value.type = type_at(value.at, end);
    if (value.type == JSON_NONE)
        return nothing;
    value.size = size_at(value.at, end, value.type);
    return value;
}

json_iter json_begin(json container)
{
    json_iter it = {nothing, nothing, NULL, NULL, 0};
    if (!is_container(container) || container.size < 2)
        return it;
    it.is_object = container.type == JSON_OBJECT;
    it.at = container.at + 1;
    it.end = container.at + container.size - 1;
    return it;
}

json_iter json_enter(const json_iter *it)
{
    json_iter inner = {nothing, nothing, NULL, NULL, 0};
    if (!is_container(it->value))
        return inner;
    inner.is_object = it->value.type == JSON_OBJECT;
    inner.at = it->value.at + 1;
    inner.end = it->end;
    return inner;
}

size_t json_left(const json_iter *it, const json_iter *inner)
{
    if (!inner->end)
        return 0;
    /* inner has stopped at its closing bracket, or at the end of a text that has none. */
    return (size_t)(inner->end - it->value.at) + (inner->end < it->end);
}

int json_step(json_iter *it)
{
    const char *at = it->at;
    if (at == it->end)
        return 0;
    at = skip_space(at, it->end);
    if (it->is_object) {
        if (at == it->end || *at != '"')
            goto done;
        it->key.at = at;
        it->key.type = JSON_STRING;
        at = scan_string(at, it->end);
        it->key.size = (size_t)(at - it->key.at);
        at = skip_space(at, it->end);
        if (at == it->end || *at != ':')
            goto done;
        at = skip_space(at + 1, it->end);
    }
    it->value.at = at;
    it->value.size = 0;
    it->value.type = type_at(at, it->end);
    if (it->value.type == JSON_NONE)
        goto done;
    it->at = at;
    return 1;

done:
    it->at = it->end = at;
    it->key = it->value = nothing;
    return 0;
}

void json_finish(json_iter *it)
{
    const char *at;
    if (it->value.size == 0)
        it->value.size = size_at(it->value.at, it->end, it->value.type);
    at = skip_space(it->value.at + it->value.size, it->end);
    if (at < it->end && *at == ',')
        at++;
    else
        it->end = at; /* the closing bracket, or an end of text without one */
    it->at = at;
}

int json_next(json_iter *it)
{
    if (!json_step(it))
        return 0;
    json_finish(it);
    return 1;
}

static unsigned hex4(const char *at)
{
    unsigned n = 0;
    int i;
    for (i = 0; i < 4; i++) {
        unsigned char c = (unsigned char)at[i];
        n = n << 4 | (c <= '9' ? c - (unsigned)'0' : ((c | 0x20u) - 'a' + 10)) % 16;
    }
    return n & 0xffff;
}

static size_t put_code_point(uint32_t code, char out[4])
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    if (code < 0x10000) {
        out[0] = (char)(0xe0 | code >> 12);
        out[1] = (char)(0x80 | (code >> 6 & 0x3f));
        out[2] = (char)(0x80 | (code & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | code >> 18);
    out[1] = (char)(0x80 | (code >> 12 & 0x3f));
    out[2] = (char)(0x80 | (code >> 6 & 0x3f));
    out[3] = (char)(0x80 | (code & 0x3f));
    return 4;
}

size_t json_unescape(const char **at, const char *end, char out[4])
{
    const char *from = *at;
    uint32_t code;

    if (end - from < 2) {
        *at = end;
        return put_code_point(0xfffd, out);
    }
    *at = from + 2;
    switch (from[1]) {
    case 'b':
        out[0] = '\b';
        return 1;
    case 'f':
        out[0] = '\f';
        return 1;
    case 'n':
        out[0] = '\n';
        return 1;
    case 'r':
        out[0] = '\r';
        return 1;
    case 't':
        out[0] = '\t';
        return 1;
    case 'u':
        break;
    default: /* '"', '\\' and '/' are themselves */
        out[0] = from[1];
        return 1;
    }
    if (end - from < 6) {
        *at = end;
        return put_code_point(0xfffd, out);
    }
    *at = from + 6;
    code = hex4(from + 2);
    if (code < 0xd800 || code > 0xdfff)
        return put_code_point(code, out);
    /* A surrogate: with its other half it is a character, alone it has no UTF-8. */
    if (code < 0xdc00 && end - from >= 12 && from[6] == '\\' && from[7] == 'u') {
        uint32_t low = hex4(from + 8);
        if (low >= 0xdc00 && low <= 0xdfff) {
            *at = from + 12;
            return put_code_point(0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00),
                                  out);
        }
    }
    return put_code_point(0xfffd, out);
}

/* The inside of a string; 0 when value is not a string. */
static int inside(json value, const char **at, const char **end)
{
    if (value.type != JSON_STRING || value.size < 2)
        return 0;
    *at = value.at + 1;
    *end = value.at + value.size - 1;
    return 1;
}

/* json_is() for a name of known size. */
static int is_text(json value, const char *text, size_t size)
{
    const char *at, *end, *stop = text + size;

    if (!inside(value, &at, &end) || (size_t)(end - at) < size)
        return 0; /* decoding only ever shortens */
    if (!memchr(at, '\\', (size_t)(end - at)))
        return (size_t)(end - at) == size && memcmp(at, text, size) == 0;
    while (at < end) {
        char decoded[4];
        size_t length = 1;
        if (*at == '\\')
            length = json_unescape(&at, end, decoded);
        else
            decoded[0] = *at++;
        if ((size_t)(stop - text) < length || memcmp(text, decoded, length) != 0)
            return 0;
        text += length;
    }
    return text == stop;
}

int json_is(json value, const char *text)
{
    return is_text(value, text, strlen(text));
}

json json_get(json object, const char *name)
{
    size_t size = strlen(name);
    json_iter it = json_begin(object);
    if (object.type != JSON_OBJECT)
        return nothing;
    while (json_next(&it))
        if (is_text(it.key, name, size))
            return it.value;
    return nothing;
}

int json_string(buf *out, json value)
{
    const char *at, *end;
    if (!inside(value, &at, &end))
        return -1;
    if (buf_reserve(out, (size_t)(end - at)))
        return -1;
    while (at < end) {
        const char *plain = at;
        char decoded[4];
        at = memchr(plain, '\\', (size_t)(end - plain));
        if (!at)
            at = end;
        buf_put(out, plain, (size_t)(at - plain));
        if (at < end)
            buf_put(out, decoded, json_unescape(&at, end, decoded));
    }
    return out->failed ? -1 : 0;
}

int json_plain(json value, const char **data, size_t *size)
{
    const char *at, *end;
    if (!inside(value, &at, &end) || memchr(at, '\\', (size_t)(end - at)))
        return 0;
    *data = at;
    *size = (size_t)(end - at);
    return 1;
}

/* Digits alone, without a sign, that fit: 0, else -1. */
static int get_digits(const char *at, size_t size, uint64_t *out)
{
    uint64_t n = 0;
    size_t i;
    *out = 0;
    if (size == 0)
        return -1;
    for (i = 0; i < size; i++) {
        unsigned digit = (unsigned)(unsigned char)at[i] - '0';
        if (digit > 9 || n > (UINT64_MAX - digit) / 10)
            return -1;
        n = n * 10 + digit;
    }
    *out = n;
    return 0;
}

/* The absolute value of an integer that fits: 0, else -1. */
static int get_absolute(json value, int *is_negative, uint64_t *out)
{
    if (value.type != JSON_NUMBER)
        return -1;
    *is_negative = value.at[0] == '-';
    return get_digits(value.at + *is_negative, value.size - (size_t)*is_negative, out);
}

int json_uint(json value, uint64_t *out)
{
    uint64_t n;
    int is_negative;
    *out = 0;
    if (get_absolute(value, &is_negative, &n) || (is_negative && n > 0))
        return -1;
    *out = n;
    return 0;
}

int json_double(json value, double *out)
{
    static const double tens[] = {1e1, 1e2, 1e4, 1e8, 1e16, 1e32, 1e64, 1e128, 1e256};
    const char *at = value.at, *end = value.at + value.size;
    int is_negative, behind = 0, scale = 0, exponent = 0;
    unsigned power;

    *out = 0;
    if (value.type != JSON_NUMBER)
        return -1;
    is_negative = *at == '-';
    for (at += is_negative; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            behind = 1;
        } else {
            *out = *out * 10 + (*at - '0');
            scale -= behind;
        }
    }
    if (at < end) {
        int below = at + 1 < end && at[1] == '-';
        for (at += 1 + (at[1] == '-' || at[1] == '+'); at < end && exponent < 1000; at++)
            exponent = exponent * 10 + (*at - '0');
        scale += below ? -exponent : exponent;
    }
    power = (unsigned)(scale < 0 ? -scale : scale);
    for (size_t i = 0; i < sizeof tens / sizeof *tens; i++)
        if (power >> i & 1)
            *out = scale < 0 ? *out / tens[i] : *out * tens[i];
    if (is_negative)
        *out = -*out;
    return *out - *out == 0 && power < 512 ? 0 : -1;
}

int json_int(json value, int64_t *out)
{
    uint64_t n;
    int is_negative;
    *out = 0;
    if (get_absolute(value, &is_negative, &n) ||
        n > (uint64_t)INT64_MAX + (uint64_t)is_negative)
        return -1;
    *out = is_negative ? -(int64_t)(n / 2) - (int64_t)(n - n / 2) : (int64_t)n;
    return 0;
}
