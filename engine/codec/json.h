/*
 * json.h: a strict reader that keeps the caller's bytes, and a writer.
 *
 * All text from outside passes through json_check(). It validates by RFC 8259 (strict
 * UTF-8, no lone surrogate in the raw text; escapes such as \ud800 are legal and
 * stay), checks the depth, and copies the text token by token without the white space
 * outside strings. Keys, numbers and escapes stay as written. All other functions work
 * on checked text: on spans of it, without a tree and without copies. Numbers are not
 * rounded. Names are compared after their escapes are decoded.
 */
#ifndef CODEC_JSON_H
#define CODEC_JSON_H

#include "base/buf.h"
#include "base/error.h"

typedef enum json_type {
    JSON_NONE = 0, /* nothing there */
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
} json_type;

/* A value: a span of checked text. Strings include their quotes. */
typedef struct json {
    const char *at;
    size_t size;
    json_type type;
} json;

/* Validates size bytes as one JSON value and appends the compact text to out. INVALID
 * names the byte offset and the error; LIMIT [depth]; NOMEM. On failure the size of
 * out does not change. */
sessile_status json_check(buf *out, const char *text, size_t size, unsigned depth,
                          sessile_error *err);

/* The value that checked text begins with (type JSON_NONE when size is 0). */
json json_of(const char *text, size_t size);

/* A member of an object by name (the first one); JSON_NONE when there is none or
 * object is not an object. */
json json_get(json object, const char *name);

/* Iteration: json_iter it = json_begin(v); while (json_next(&it)) … it.key, it.value. */
typedef struct json_iter {
    json key; /* of objects; JSON_NONE in arrays */
    json value;
    const char *at, *end;
    int is_object;
} json_iter;
json_iter json_begin(json container);
int json_next(json_iter *it);

/*
 * The same in two halves, for code that walks into a value instead of skipping it, so
 * that each byte is read once. json_step finds the next key and where its value begins
 * (value.size is 0). json_finish skips the value, or uses the size that the caller has
 * set. json_enter walks a container whose end is not known yet; after its last element,
 * json_left is the container's size.
 *
 *     for (it = json_begin(object); json_step(&it); json_finish(&it)) {
 *         inner = json_enter(&it);
 *         while (json_next(&inner)) ...
 *         it.value.size = json_left(&it, &inner);
 *     }
 */
int json_step(json_iter *it);
void json_finish(json_iter *it);
json_iter json_enter(const json_iter *it);
size_t json_left(const json_iter *it, const json_iter *inner);

/* 1 when value is a string equal to text after decoding. */
int json_is(json value, const char *text);
/* Sets a field when key is its name and it is not set yet. */
static inline void json_fill(json *field, json value, json key, const char *name)
{
    if (field->type == JSON_NONE && json_is(key, name))
        *field = value;
}
/* Appends a string's decoded bytes (lone surrogate escapes become U+FFFD). 0 or -1. */
int json_string(buf *out, json value);
/* Decodes the escape at *at (a backslash inside a string that ends at end), moves *at
 * past it, writes 1 to 4 bytes of UTF-8 to out, and returns their number. For readers
 * that do not copy the string. */
size_t json_unescape(const char **at, const char *end, char out[4]);
/* If the string has no escape, sets the span inside the quotes and returns 1; else 0. */
int json_plain(json value, const char **data, size_t *size);
/* A number that is an integer in range: 0, else -1 (also for 1e2 and 1.0). */
int json_int(json value, int64_t *out);
int json_uint(json value, uint64_t *out);
/* Any finite number, whatever the locale; exact to about 15 digits. 0 or -1. */
int json_double(json value, double *out);

/* Writing. Strings are escaped minimally ("\"", "\\", control characters as \u00xx or
 * their short forms); data must be UTF-8. */
void json_put_string(buf *out, const void *data, size_t size);
void json_put_cstring(buf *out, const char *text);
/* Appends a number from 0 to 1e12, rounded to millionths. The decimal point is a point in
 * every locale, as it is not with printf(). */
void json_put_millionths(buf *out, double number);

#endif
