/*
 * text.c: hex, base32 and base64.
 *
 * Owns the base64 library, modp_b64. Must never decode leniently: with two texts for
 * the same bytes, a sealed line could be changed unnoticed.
 */
#include "base/text.h"

#include <string.h>
#include <modp_b64.h>

void hex_encode(char *out, const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = data;
    size_t i;
    for (i = 0; i < size; i++) {
        *out++ = digits[at[i] >> 4];
        *out++ = digits[at[i] & 15];
    }
    *out = 0;
}

/* The value of a lower-case hex digit, or -1. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int hex_decode(void *out, const char *hex, size_t out_size)
{
    unsigned char *to = out;
    size_t i;
    for (i = 0; i < out_size; i++) {
        int high = hex_value(hex[2 * i]);
        int low = high < 0 ? -1 : hex_value(hex[2 * i + 1]); /* no byte past a NUL */
        if (low < 0)
            return -1;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

void base32_encode(char *out, const void *data, size_t size)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    const unsigned char *at = data;
    unsigned pending = 0, bits = 0;
    size_t i;
    for (i = 0; i < size; i++) {
        pending = (pending << 8 | at[i]) & 0xfff;
        bits += 8;
        while (bits >= 5) {
            bits -= 5;
            *out++ = digits[pending >> bits & 31];
        }
    }
    if (bits)
        *out++ = digits[pending << (5 - bits) & 31];
    *out = 0;
}

size_t base64_size(size_t raw_size)
{
    return raw_size / 3 * 4 + (raw_size % 3 ? 4 : 0);
}

void base64_encode(char *out, const void *data, size_t size)
{
    modp_b64_encode(out, data, size);
}

void base64_put(buf *out, const void *data, size_t size)
{
    if (size > PTRDIFF_MAX / 2) {
        out->failed = 1;
        return;
    }
    if (buf_reserve(out, base64_size(size)))
        return;
    /* modp returns the length without the NUL that it writes. */
    out->size += modp_b64_encode(out->data + out->size, data, size);
}

int64_t base64_decode(void *out, const char *text, size_t size)
{
    size_t raw, tail;
    char quad[modp_b64_encode_len(3)];

    if (size == 0)
        return 0;
    if (size % 4 != 0)
        return -1;
    raw = modp_b64_decode(out, text, size);
    if (raw == (size_t)-1 || raw == 0)
        return -1;
    /* modp ignores spare bits of the last quad, so only the encoder's own spelling is
     * accepted. Other quads have no spare bits. */
    tail = raw % 3 ? raw % 3 : 3;
    modp_b64_encode(quad, (const char *)out + raw - tail, tail);
    if (base64_size(raw) != size || memcmp(quad, text + size - 4, 4) != 0)
        return -1;
    return (int64_t)raw;
}

/* ---------------------------------------------------------------------- URLs */

/* The same of either case. */
static int hex_digit(char c)
{
    return hex_value(c >= 'A' && c <= 'F' ? (char)(c - 'A' + 'a') : c);
}

int url_decode(char *out, size_t room, const char *text, size_t size)
{
    size_t n = 0;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '%') {
            if (i + 2 >= size || hex_digit(text[i + 1]) < 0 || hex_digit(text[i + 2]) < 0)
                return -1;
            c = (char)(hex_digit(text[i + 1]) * 16 + hex_digit(text[i + 2]));
            i += 2;
        }
        if (c == '\0' || n + 1 >= room)
            return -1;
        out[n++] = c;
    }
    out[n] = '\0';
    return 0;
}
