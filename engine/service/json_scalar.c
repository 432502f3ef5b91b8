/*
 * json_scalar.c: strings, bytes, numbers and names of enums, from JSON.
 *
 * Owns which spellings of a value are taken. Must never take a value that would be
 * another one in the message: a number out of range, half of a character, a string with a
 * NUL.
 */
#include "service/json_reader.h"

#include <math.h>
#include <string.h>

#include "base/text.h"

sessile_status fail_type(reader *r, const place *at, const char *wanted, json value)
{
    static const char *const words[] = {"nothing",  "null",     "false",    "true",
                                        "a number", "a string", "an array", "an object"};
    return fail_at(r->err, SESSILE_INVALID, at, "this has to be %s, and is %s", wanted,
                   words[value.type]);
}

/* ------------------------------------------------------------------ strings */

/* What a member of the type string cannot have; NULL: nothing. Half a surrogate pair is
 * told from a U+FFFD that was meant by how it is written. */
static const char *refused_in_text(json string)
{
    const char *end = string.at + string.size;
    const char *at = string.at;

    while ((at = memchr(at, '\\', (size_t)(end - at)))) {
        const char *escape = at;
        char decoded[4];
        size_t size = json_unescape(&at, end, decoded);
        if (size == 1 && decoded[0] == 0)
            return "a NUL (\\u0000)";
        if (size == 3 && memcmp(decoded, "\xef\xbf\xbd", 3) == 0 &&
            (escape[2] == 'd' || escape[2] == 'D'))
            return "half of a surrogate pair, which has no UTF-8";
    }
    return NULL;
}

/* A string in r->text. */
static sessile_status decode(reader *r, const place *at, json value)
{
    const char *refused;
    if (value.type != JSON_STRING)
        return fail_type(r, at, "a string", value);
    refused = refused_in_text(value);
    if (refused)
        return fail_at(r->err, SESSILE_INVALID, at, "this string has %s: take it out",
                       refused);
    buf_clear(&r->text);
    return json_string(&r->text, value) ? fail_nomem(r->err) : SESSILE_OK;
}

sessile_status scalar_string(reader *r, const place *at, json value, char **out)
{
    sessile_status status = decode(r, at, value);
    char *text;
    if (status)
        return status;
    text = host_dup(r->alloc, r->text.data, r->text.size);
    if (!text)
        return fail_nomem(r->err);
    *out = text;
    return SESSILE_OK;
}

/* Base64 in either alphabet, with all of its padding or none, as base64_decode() wants
 * it. Returns 0, or -1 when there is no memory. */
static int normalize_base64(buf *text)
{
    char *at = text->data;
    char *end = at + text->size;
    int padded = text->size && end[-1] == '=';

    for (; at < end; at++)
        *at = *at == '-' ? '+' : *at == '_' ? '/' : *at;
    while (!padded && text->size % 4 && !text->failed)
        buf_putc(text, '=');
    return text->failed ? -1 : 0;
}

sessile_status scalar_bytes(reader *r, const place *at, json value,
                            ProtobufCBinaryData *out)
{
    sessile_status status = decode(r, at, value);
    unsigned char *bytes;
    int64_t size;

    if (status || r->text.size == 0)
        return status;
    if (normalize_base64(&r->text))
        return fail_nomem(r->err);
    bytes = host_alloc(r->alloc, r->text.size / 4 * 3 + 1);
    if (!bytes)
        return fail_nomem(r->err);
    size = base64_decode(bytes, r->text.data, r->text.size);
    if (size < 0) {
        host_free(bytes);
        return fail_at(r->err, SESSILE_INVALID, at, "this string is not base64");
    }
    out->data = bytes;
    out->len = (size_t)size;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ numbers */

/* Makes a string with a number in it that number, which lies in r->number. Anything else
 * stays as it is. */
static sessile_status unquote(reader *r, const place *at, json *value)
{
    sessile_status status;
    json number;
    if (value->type != JSON_STRING)
        return SESSILE_OK;
    status = decode(r, at, *value);
    if (status)
        return status;
    buf_clear(&r->number);
    status = json_check(&r->number, r->text.data, r->text.size, 0, NULL);
    if (status == SESSILE_NOMEM)
        return fail_nomem(r->err);
    number = json_of(r->number.data, r->number.size);
    if (!status && number.type == JSON_NUMBER && number.size == r->text.size)
        *value = number;
    return SESSILE_OK;
}

static sessile_status whole_number(reader *r, const place *at, json value, unsigned bits,
                                   int is_signed, uint64_t *out)
{
    uint64_t most = UINT64_MAX >> (64 - bits) >> is_signed;
    sessile_status status = unquote(r, at, &value);
    if (status)
        return status;
    if (value.type == JSON_NUMBER && number_whole(value, bits, is_signed, out) == 0)
        return SESSILE_OK;
    return fail_at(r->err, SESSILE_INVALID, at,
                   "this has to be a whole number from %s%llu to %llu",
                   is_signed ? "-" : "", is_signed ? (unsigned long long)most + 1 : 0ull,
                   (unsigned long long)most);
}

sessile_status scalar_32(reader *r, const place *at, json value, int is_signed,
                         uint32_t *out)
{
    uint64_t n;
    sessile_status status = whole_number(r, at, value, 32, is_signed, &n);
    if (!status)
        *out = (uint32_t)n;
    return status;
}

sessile_status scalar_64(reader *r, const place *at, json value, int is_signed,
                         uint64_t *out)
{
    return whole_number(r, at, value, 64, is_signed, out);
}

sessile_status scalar_real(reader *r, const place *at, json value, int is_float,
                           double *out)
{
    sessile_status status = SESSILE_OK;
    *out = 0;
    if (json_is(value, "NaN"))
        *out = NAN;
    else if (json_is(value, "Infinity"))
        *out = INFINITY;
    else if (json_is(value, "-Infinity"))
        *out = -INFINITY;
    else
        status = unquote(r, at, &value);
    if (status || *out != 0)
        return status;
    if (value.type != JSON_NUMBER)
        return fail_type(r, at, "a number, \"NaN\", \"Infinity\" or \"-Infinity\"",
                         value);
    if (number_real(value, is_float, &r->text, out) == 0)
        return SESSILE_OK;
    if (r->text.failed)
        return fail_nomem(r->err);
    return fail_at(r->err, SESSILE_INVALID, at, "this number is too great for a %s",
                   is_float ? "float" : "double");
}

sessile_status scalar_enum(reader *r, const place *at, json value, uint32_t *out)
{
    const ProtobufCEnumDescriptor *type = at->field->descriptor;
    const ProtobufCEnumValue *found;
    sessile_status status;

    if (value.type == JSON_NUMBER)
        return scalar_32(r, at, value, 1, out);
    status = decode(r, at, value);
    if (status)
        return status;
    found = protobuf_c_enum_descriptor_get_value_by_name(type, r->text.data);
    if (!found)
        return fail_at(r->err, SESSILE_INVALID, at, "this is no name of the enum %s",
                       type->short_name);
    *out = (uint32_t)found->value;
    return SESSILE_OK;
}
