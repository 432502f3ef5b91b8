/*
 * utf8.c: decides what is valid UTF-8, by RFC 3629.
 *
 * Must never accept an overlong form, a surrogate or a code point past U+10FFFF: each
 * would be a second spelling of something, and a way around a check.
 */
#include "base/text.h"

#include <string.h>

static int is_tail(unsigned char c)
{
    return (c & 0xc0) == 0x80;
}

size_t utf8_length(const void *data, size_t size)
{
    const unsigned char *at = data;
    unsigned char lead;

    if (size == 0)
        return 0;
    lead = at[0];
    if (lead < 0x80)
        return 1;
    if (lead < 0xc2 || lead > 0xf4)
        return 0; /* a tail, an overlong two-byte form, or past U+10FFFF */
    if (lead < 0xe0)
        return size >= 2 && is_tail(at[1]) ? 2 : 0;
    if (lead < 0xf0) {
        if (size < 3 || !is_tail(at[1]) || !is_tail(at[2]))
            return 0;
        if ((lead == 0xe0 && at[1] < 0xa0) || (lead == 0xed && at[1] > 0x9f))
            return 0; /* overlong; a surrogate */
        return 3;
    }
    if (size < 4 || !is_tail(at[1]) || !is_tail(at[2]) || !is_tail(at[3]))
        return 0;
    if ((lead == 0xf0 && at[1] < 0x90) || (lead == 0xf4 && at[1] > 0x8f))
        return 0; /* overlong; past U+10FFFF */
    return 4;
}

int utf8_valid(const void *data, size_t size)
{
    const unsigned char *at = data;
    const unsigned char *end = size ? at + size : at; /* NULL may have no bytes */

    while (at < end) {
        uint64_t eight;
        size_t length;
        if (end - at >= 8) {
            memcpy(&eight, at, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                at += 8;
                continue;
            }
        }
        length = utf8_length(at, (size_t)(end - at));
        if (length == 0)
            return 0;
        at += length;
    }
    return 1;
}

/* How many bytes of an invalid sequence one replacement character replaces, 1 to 3. */
static size_t broken_length(const unsigned char *at, size_t size)
{
    unsigned char low = 0x80, high = 0xbf;
    size_t length, n;

    if (at[0] < 0xc2 || at[0] > 0xf4)
        return 1;
    length = at[0] < 0xe0 ? 2 : at[0] < 0xf0 ? 3 : 4;
    if (at[0] == 0xe0)
        low = 0xa0;
    else if (at[0] == 0xf0)
        low = 0x90;
    else if (at[0] == 0xed)
        high = 0x9f;
    else if (at[0] == 0xf4)
        high = 0x8f;
    if (size < 2 || at[1] < low || at[1] > high)
        return 1;
    for (n = 2; n < length && n < size && is_tail(at[n]); n++)
        continue;
    return n;
}

void utf8_put_lossy(buf *out, const void *data, size_t size)
{
    const unsigned char *at = data, *end = size ? at + size : at, *from = at;

    while (at < end) {
        size_t length = utf8_length(at, (size_t)(end - at));
        if (length == 0) {
            buf_put(out, from, (size_t)(at - from));
            buf_put(out, "\xef\xbf\xbd", 3);
            length = broken_length(at, (size_t)(end - at));
            from = at + length;
        }
        at += length;
    }
    buf_put(out, from, (size_t)(at - from));
}

size_t utf8_floor(const char *data, size_t size, size_t limit)
{
    size_t n = limit < size ? limit : size;
    size_t back;

    if (n == size)
        return n;
    /* A sequence has at most three tails: find the lead of the byte at n. */
    for (back = 0; back < 4 && back <= n; back++) {
        unsigned char c = (unsigned char)data[n - back];
        if (!is_tail(c))
            return back == 0 || utf8_length(data + n - back, size - n + back) > back
                       ? n - back
                       : n;
    }
    return n; /* not UTF-8: no sequence to keep whole */
}
