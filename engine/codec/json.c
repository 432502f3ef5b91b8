/*
 * json.c: validates JSON text from outside, and drops white space. All such text
 * passes through this file.
 *
 * Owns what is valid JSON (RFC 8259, strict UTF-8, bounded nesting). Must never print
 * a value again: keys, numbers and escapes stay as they were. A printer that "only"
 * normalizes will sooner or later turn 9007199254740993 into 9.00719925474099e+15.
 *
 * One pass: tokens are checked in place, and the text between two pieces of white
 * space is copied in one run. Nesting is a counter and a stack of bits (1: object), so
 * that the depth of the input is not a depth of calls.
 */
#include "codec/json.h"

#include <string.h>

#include "base/text.h"
#include "codec/scan.h"

/* Levels that need no allocation: 512. */
#define STACK_BYTES 64

typedef struct checker {
    const char *start, *at, *end;
    const char *run;   /* not yet copied: run..at */
    char *to;          /* in the room reserved at the end of out */
    const char *wrong; /* what is wrong at `at`, when something is */
} checker;

static int bad(checker *c, const char *wrong)
{
    c->wrong = wrong;
    return -1;
}

static int is_space(char c)
{
    return c == ' ' || c == '\n' || c == '\t' || c == '\r';
}

static int is_digit(char c)
{
    return c >= '0' && c <= '9';
}

/* Copies the run so far, then skips white space. Called only where there is some. */
static void drop_space(checker *c)
{
    size_t size = (size_t)(c->at - c->run);
    memcpy(c->to, c->run, size);
    c->to += size;
    while (c->at < c->end && is_space(*c->at))
        c->at++;
    c->run = c->at;
}

/* The next byte after white space; 0 at the end (a NUL is not JSON either). */
static char next_char(checker *c)
{
    if (c->at < c->end && (unsigned char)*c->at <= ' ' && is_space(*c->at))
        drop_space(c);
    return c->at < c->end ? *c->at : 0;
}

static int is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static int check_escape(checker *c)
{
    int i;
    if (c->end - c->at < 2)
        return bad(c, "the text ends in a string");
    switch (c->at[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
        c->at += 2;
        return 0;
    case 'u':
        if (c->end - c->at < 6)
            return bad(c, "the text ends in a string");
        for (i = 2; i < 6; i++)
            if (!is_hex(c->at[i]))
                return bad(c, "\\u is not followed by four hex digits");
        c->at += 6;
        return 0;
    default:
        return bad(c, "an escape that JSON does not have");
    }
}

static int check_string(checker *c)
{
    const char *open = c->at++;
    for (;;) {
        size_t length;
        c->at = scan_to_odd(c->at, c->end);
        if (c->at == c->end) {
            c->at = open;
            return bad(c, "a string that is not closed");
        }
        if (*c->at == '"') {
            c->at++;
            return 0;
        }
        if (*c->at == '\\') {
            if (check_escape(c))
                return -1;
            continue;
        }
        if ((unsigned char)*c->at < 0x20)
            return bad(c, "a control character in a string: it must be escaped");
        do { /* non-ASCII text is rarely a single character */
            length = utf8_length(c->at, (size_t)(c->end - c->at));
            if (length == 0)
                return bad(c, "bytes that are not UTF-8");
            c->at += length;
        } while (c->at < c->end && (unsigned char)*c->at >= 0x80);
    }
}

static int check_digits(checker *c)
{
    if (c->at == c->end || !is_digit(*c->at))
        return bad(c, "a number without a digit where one must be");
    while (c->at < c->end && is_digit(*c->at))
        c->at++;
    return 0;
}

static int check_number(checker *c)
{
    if (*c->at == '-')
        c->at++;
    if (c->at < c->end && *c->at == '0') {
        c->at++;
        if (c->at < c->end && is_digit(*c->at))
            return bad(c, "a number with a leading zero");
    } else if (check_digits(c)) {
        return -1;
    }
    if (c->at < c->end && *c->at == '.') {
        c->at++;
        if (check_digits(c))
            return -1;
    }
    if (c->at < c->end && (*c->at == 'e' || *c->at == 'E')) {
        c->at++;
        if (c->at < c->end && (*c->at == '+' || *c->at == '-'))
            c->at++;
        if (check_digits(c))
            return -1;
    }
    return 0;
}

static int check_word(checker *c, const char *word, size_t size)
{
    if ((size_t)(c->end - c->at) < size || memcmp(c->at, word, size) != 0)
        return bad(c, "no JSON value");
    c->at += size;
    return 0;
}

/* A string, number or literal. */
static int check_scalar(checker *c, char first)
{
    switch (first) {
    case '"':
        return check_string(c);
    case 't':
        return check_word(c, "true", 4);
    case 'f':
        return check_word(c, "false", 5);
    case 'n':
        return check_word(c, "null", 4);
    case '-':
        return check_number(c);
    case ']':
    case '}':
        return bad(c, "a value is missing");
    default:
        if (first >= '0' && first <= '9')
            return check_number(c);
        if (c->at == c->end)
            return bad(c, "the text ends where a value must be");
        if (c->at == c->start && (size_t)(c->end - c->at) >= 3 &&
            memcmp(c->at, "\xef\xbb\xbf", 3) == 0)
            return bad(c, "a byte order mark, which is no JSON");
        return bad(c, "no JSON value");
    }
}

static int check_key(checker *c)
{
    if (next_char(c) != '"')
        return bad(c, c->at == c->end ? "the text ends in an object"
                                      : "no name in quotes, where an object needs one");
    if (check_string(c))
        return -1;
    if (next_char(c) != ':')
        return bad(c, "no ':' after a name");
    c->at++;
    return 0;
}

/* Bit `level` of the stack: 1 when that container is an object. */
static void set_object(unsigned char *stack, size_t level, int is_object)
{
    unsigned char bit = (unsigned char)(1u << (level & 7));
    if (is_object)
        stack[level >> 3] = (unsigned char)(stack[level >> 3] | bit);
    else
        stack[level >> 3] = (unsigned char)(stack[level >> 3] & ~bit);
}

static int top_is_object(const unsigned char *stack, size_t level)
{
    return stack[level >> 3] >> (level & 7) & 1;
}

/* 0; -1: wrong says what; 1: too deep. */
static int check_value(checker *c, unsigned char *stack, size_t depth)
{
    size_t level = 0; /* open containers; the innermost is bit level - 1 */

    for (;;) {
        char first = next_char(c);
        int is_object = first == '{';
        if (is_object || first == '[') {
            if (level == depth)
                return 1;
            set_object(stack, level++, is_object);
            c->at++;
            if (next_char(c) != (is_object ? '}' : ']')) {
                if (is_object && check_key(c))
                    return -1;
                continue;
            }
            c->at++;
            level--;
        } else if (check_scalar(c, first)) {
            return -1;
        }
        /* A value is complete: a comma, or ends of containers. */
        for (;;) {
            if (level == 0)
                return 0;
            is_object = top_is_object(stack, level - 1);
            first = next_char(c);
            if (first == ',') {
                c->at++;
                if (is_object && check_key(c))
                    return -1;
                break;
            }
            if (first != (is_object ? '}' : ']')) {
                if (c->at == c->end)
                    return bad(c, is_object ? "the text ends in an object"
                                            : "the text ends in an array");
                return bad(c, is_object ? "no ',' or '}' after a member"
                                        : "no ',' or ']' after an element");
            }
            c->at++;
            level--;
        }
    }
}

sessile_status json_check(buf *out, const char *text, size_t size, unsigned depth,
                          sessile_error *err)
{
    unsigned char small[STACK_BYTES];
    unsigned char *stack = small;
    size_t stack_size = sizeof small;
    size_t levels = depth < size ? depth : size; /* each level takes a byte of text */
    sessile_status status = SESSILE_OK;
    checker c;
    int result;

    if (!text && size)
        return fail(err, SESSILE_INVALID, "the text is NULL, and its size is %zu", size);
    if (buf_reserve(out, size))
        return fail_nomem(err);
    if (levels > sizeof small * 8) {
        stack_size = levels / 8 + 1;
        stack = mem_alloc(out->alloc, stack_size);
        if (!stack)
            return fail_nomem(err);
    }
    c.start = c.at = c.run = text;
    c.end = text + size;
    c.to = out->data + out->size;
    c.wrong = NULL;

    result = check_value(&c, stack, depth);
    if (result == 0) {
        /* The tail: nothing but white space may follow. */
        (void)next_char(&c);
        if (c.at < c.end)
            result = bad(&c, "text after the end of the value");
    }
    if (result == 0) {
        size_t rest = (size_t)(c.at - c.run);
        memcpy(c.to, c.run, rest);
        c.to += rest;
        out->size = (size_t)(c.to - out->data);
    } else if (result > 0) {
        status = fail(err, SESSILE_LIMIT,
                      "JSON is nested deeper than %u levels at byte %zu: flatten it, or "
                      "raise the limit [depth]",
                      depth, (size_t)(c.at - c.start));
    } else {
        status = fail(err, SESSILE_INVALID, "not JSON: %s, at byte %zu", c.wrong,
                      (size_t)(c.at - c.start));
    }
    out->data[out->size] = 0;
    if (stack != small)
        mem_free(out->alloc, stack, stack_size);
    return status;
}
