/* decoded.c: texts that are encoded in a text. */
#include "remember/decoded.h"

#include <string.h>

#include "base/text.h"

/* Characters of a run that is looked at, and how often what was decoded is decoded. */
enum { RUN_LEAST = 12, DEPTH = 3 };

/* ------------------------------------------------------------------ what it may be */

/* A text: UTF-8 without control characters, for the most part letters and blanks. */
static int is_text(const char *data, size_t size)
{
    size_t letters = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)data[i];
        if ((c < 0x20 && c != '\n' && c != '\r' && c != '\t') || c == 0x7f)
            return 0;
        letters += c == ' ' || c >= 0x80 || ((c | 32) >= 'a' && (c | 32) <= 'z');
    }
    return size && 2 * letters >= size && utf8_valid(data, size);
}

/* Ends the line that begins at `at`, or takes it back when it is no text. */
static void end_line(buf *out, size_t at)
{
    if (!out->failed && is_text(out->data + at, out->size - at))
        buf_putc(out, '\n');
    else
        out->size = at;
}

static uint32_t point_at(const char *at, size_t *size, size_t left)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    uint32_t c;

    *size = utf8_length(at, left);
    if (!*size) {
        *size = 1;
        return 0xfffd;
    }
    c = (unsigned char)at[0] & masks[*size];
    for (size_t i = 1; i < *size; i++)
        c = c << 6 | ((unsigned char)at[i] & 0x3f);
    return c;
}

static void put_point(buf *out, uint32_t c)
{
    if (c < 0x80) {
        buf_putc(out, (char)c);
    } else if (c < 0x800) {
        buf_putc(out, (char)(0xc0 | c >> 6));
        buf_putc(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x10000) {
        buf_putc(out, (char)(0xe0 | c >> 12));
        buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_putc(out, (char)(0x80 | (c & 0x3f)));
    } else if (c < 0x110000) {
        buf_putc(out, (char)(0xf0 | c >> 18));
        buf_putc(out, (char)(0x80 | (c >> 12 & 0x3f)));
        buf_putc(out, (char)(0x80 | (c >> 6 & 0x3f)));
        buf_putc(out, (char)(0x80 | (c & 0x3f)));
    }
}

/* ------------------------------------------------------------------ base64, hex */

static int value64(char c)
{
    return c >= 'A' && c <= 'Z'   ? c - 'A'
           : c >= 'a' && c <= 'z' ? c - 'a' + 26
           : c >= '0' && c <= '9' ? c - '0' + 52
           : c == '+' || c == '-' ? 62
           : c == '/' || c == '_' ? 63
                                  : -1;
}

static int value16(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* Decodes a run in groups of `width` bits; other characters are skipped. */
static void put_bits(buf *out, const char *run, size_t size, int (*value)(char),
                     unsigned width)
{
    size_t at = out->size;
    uint32_t bits = 0;
    unsigned held = 0;

    for (size_t i = 0; i < size; i++) {
        int v = value(run[i]);
        if (v < 0)
            continue;
        bits = bits << width | (uint32_t)v;
        held += width;
        if (held >= 8) {
            held -= 8;
            buf_putc(out, (char)(bits >> held & 0xff));
        }
    }
    end_line(out, at);
}

/* Runs of one alphabet: each line of one, and its lines together, from the first that is
 * long enough. */
static void put_runs(buf *out, sessile_slice text, int (*value)(char), unsigned width)
{
    for (size_t i = 0; i < text.size;) {
        size_t end = i, line = i, first = text.size;
        for (; end < text.size; end++) {
            if (value(text.data[end]) >= 0)
                continue;
            if (text.data[end] != '\n' && text.data[end] != '\r')
                break;
            if (end - line >= RUN_LEAST) {
                put_bits(out, text.data + line, end - line, value, width);
                first = line < first ? line : first;
            }
            line = end + 1;
        }
        if (end > line && end - line >= RUN_LEAST)
            put_bits(out, text.data + line, end - line, value, width);
        if (first < line)
            put_bits(out, text.data + first, end - first, value, width);
        i = end + 1;
    }
}

/* ------------------------------------------------------------------ escapes */

/* Digits of a number in base 10 or 16: how many, at most `most`; *c is the number. */
static size_t read_number(const char *at, size_t left, int is_hex, size_t most,
                          uint32_t *c)
{
    size_t n = 0;
    for (*c = 0;
         n < left && n < most && value16(at[n]) >= 0 && (is_hex || value16(at[n]) < 10);
         n++)
        *c = *c * (is_hex ? 16 : 10) + (uint32_t)value16(at[n]);
    return n;
}

/* The size of an escape at `at`, or 0; *c is what it stands for. */
static size_t read_escape(const char *at, size_t left, uint32_t *c)
{
    size_t n = 0;
    int is_hex;

    if (left > 2 && at[0] == '%' && read_number(at + 1, left - 1, 1, 2, c) == 2)
        return 3;
    if (left > 3 && at[0] == '\\' && at[1] == 'x' &&
        read_number(at + 2, left - 2, 1, 2, c) == 2)
        return 4;
    if (left > 5 && at[0] == '\\' && at[1] == 'u' &&
        read_number(at + 2, left - 2, 1, 4, c) == 4)
        return 6;
    if (left < 4 || at[0] != '&' || at[1] != '#')
        return 0;
    is_hex = (at[2] | 32) == 'x';
    n = read_number(at + 2 + is_hex, left - 2 - (size_t)is_hex, is_hex, 7, c);
    if (!n)
        return 0;
    n += 2 + (size_t)is_hex;
    return n < left && at[n] == ';' ? n + 1 : n;
}

/* The text with its escapes read, when there are three: bytes of UTF-8 with %. */
static void put_unescaped(buf *out, sessile_slice text)
{
    size_t at = out->size, escapes = 0;

    for (size_t i = 0, size; i < text.size; i += size) {
        uint32_t c;
        size = read_escape(text.data + i, text.size - i, &c);
        escapes += size > 0;
        if (size == 3 || size == 4)
            buf_putc(out, (char)c);
        else if (size)
            put_point(out, c);
        else
            buf_putc(out, text.data[i]);
        size = size ? size : 1;
    }
    if (escapes >= 3)
        buf_putc(out, '\n');
    else
        out->size = at;
}

/* ------------------------------------------------------------------ characters */

/* A byte in a character that is not seen, or -1. */
static int hidden_byte(uint32_t c)
{
    return c >= 0xe0020 && c <= 0xe007e   ? (int)(c - 0xe0000)
           : c >= 0xe0100 && c <= 0xe01ef ? (int)(c - 0xe0100 + 16)
                                          : -1;
}

/* The Latin letter that a Cyrillic or Greek one looks like, or 0. */
static char latin_like(uint32_t c)
{
    static const struct {
        uint16_t like;
        char letter;
    } letters[] = {
        {0x430, 'a'}, {0x435, 'e'}, {0x43e, 'o'}, {0x440, 'p'}, {0x441, 'c'},
        {0x443, 'y'}, {0x445, 'x'}, {0x456, 'i'}, {0x458, 'j'}, {0x455, 's'},
        {0x501, 'd'}, {0x51b, 'q'}, {0x51d, 'w'}, {0x4bb, 'h'}, {0x4cf, 'l'},
        {0x410, 'A'}, {0x412, 'B'}, {0x415, 'E'}, {0x41a, 'K'}, {0x41c, 'M'},
        {0x41d, 'H'}, {0x41e, 'O'}, {0x420, 'P'}, {0x421, 'C'}, {0x422, 'T'},
        {0x423, 'Y'}, {0x425, 'X'}, {0x406, 'I'}, {0x405, 'S'}, {0x43a, 'k'},
        {0x43c, 'm'}, {0x442, 't'}, {0x433, 'r'}, {0x3b1, 'a'}, {0x3bf, 'o'},
        {0x3c1, 'p'}, {0x3bd, 'v'}, {0x3b9, 'i'}, {0x3ba, 'k'}, {0x3c5, 'u'},
        {0x3c7, 'x'}, {0x3b5, 'e'}, {0x391, 'A'}, {0x392, 'B'}, {0x395, 'E'},
        {0x396, 'Z'}, {0x397, 'H'}, {0x399, 'I'}, {0x39a, 'K'}, {0x39c, 'M'},
        {0x39d, 'N'}, {0x39f, 'O'}, {0x3a1, 'P'}, {0x3a4, 'T'}, {0x3a5, 'Y'},
        {0x3a7, 'X'},
    };
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (letters[i].like == c)
            return letters[i].letter;
    return 0;
}

/* One walk over the characters: those that are not seen, and those that look like Latin
 * ones. */
static void put_characters(buf *out, sessile_slice text)
{
    size_t at = out->size, likes = 0;
    buf hidden;

    buf_init(&hidden, out->alloc);
    for (size_t i = 0, size; i < text.size; i += size) {
        uint32_t c = point_at(text.data + i, &size, text.size - i);
        int byte = c < 0x80 ? -1 : hidden_byte(c);
        char like = c < 0x80 ? 0 : latin_like(c);
        likes += like != 0;
        if (byte >= 0)
            buf_putc(&hidden, (char)byte);
        if (like)
            buf_putc(out, like);
        else
            buf_put(out, text.data + i, size);
    }
    if (likes)
        buf_putc(out, '\n');
    else
        out->size = at;
    at = out->size;
    buf_put(out, hidden.data, hidden.size);
    end_line(out, at);
    if (hidden.failed)
        out->failed = 1;
    buf_wipe(&hidden);
}

/* ------------------------------------------------------------------ all of them */

void decoded_put(buf *out, sessile_slice text)
{
    buf last, next;

    buf_init(&last, out->alloc);
    buf_init(&next, out->alloc);
    for (int i = 0; i < DEPTH && text.size && !out->failed; i++) {
        buf swapped = last;
        buf_clear(&next);
        put_runs(&next, text, value64, 6);
        put_runs(&next, text, value16, 4);
        put_unescaped(&next, text);
        put_characters(&next, text);
        buf_put(out, next.data, next.size);
        if (next.failed)
            out->failed = 1;
        last = next;
        next = swapped;
        text = (sessile_slice){last.data, last.size};
    }
    buf_wipe(&last);
    buf_wipe(&next);
}

void decoded_put_rotated(buf *out, sessile_slice text, int by)
{
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i], first = c >= 'a' && c <= 'z' ? 'a' : 'A';
        if (c >= first && c < first + 26)
            c = (char)(first + (c - first + by) % 26);
        buf_putc(out, c);
    }
}

void decoded_put_reversed(buf *out, sessile_slice text)
{
    for (size_t end = text.size; end;) {
        size_t at = end - 1;
        while (at && ((unsigned char)text.data[at] & 0xc0) == 0x80)
            at--;
        buf_put(out, text.data + at, end - at);
        end = at;
    }
}
