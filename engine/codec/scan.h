/*
 * scan.h: reads text eight bytes at a time. For the files of this folder, and for
 * screen/url.c.
 *
 * Strings of a conversation are long and plain. Testing eight bytes in one word, with
 * a bit in the top of each byte that matters, is several times faster than a table,
 * and needs no special instructions of the processor.
 */
#ifndef CODEC_SCAN_H
#define CODEC_SCAN_H

#include <stdint.h>
#include <string.h>

#define SCAN_ONES UINT64_C(0x0101010101010101)
#define SCAN_TOPS UINT64_C(0x8080808080808080)
/* Strings of up to this many bytes are mostly names: a call would cost more than they do.
 */
#define SCAN_NAME 16

/* Top bits set where a byte of word is c (c < 0x80); may be set above such a byte, too.
 */
static inline uint64_t scan_equal(uint64_t word, unsigned char c)
{
    uint64_t x = word ^ (SCAN_ONES * c);
    return (x - SCAN_ONES) & ~x & SCAN_TOPS;
}

/* Top bits set where a byte is a control character; may be set above such a byte, too. */
static inline uint64_t scan_control(uint64_t word)
{
    return (word - SCAN_ONES * 0x20) & ~word & SCAN_TOPS;
}

static inline uint64_t scan_load(const char *at)
{
    uint64_t word;
    memcpy(&word, at, sizeof word);
    return word;
}

/*
 * How many bytes of a word stand before the first one marked in `tops` (not 0). Marks
 * that should not be there come from a borrow, so that they stand above a true one: the
 * lowest is always true, and where the first byte of memory is not the lowest, bytes are
 * looked at one by one instead.
 */
static inline int scan_lead(uint64_t tops)
{
    return __builtin_ctzll(tops) >> 3;
}

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define SCAN_WORDS 1
#else
#define SCAN_WORDS 0
#endif

/* The first '"' or '\\' in at..end, or end. */
static inline const char *scan_to_quote(const char *at, const char *end)
{
    while (SCAN_WORDS && end - at >= 8) {
        uint64_t word = scan_load(at);
        uint64_t tops = scan_equal(word, '"') | scan_equal(word, '\\');
        if (tops)
            return at + scan_lead(tops);
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\')
        at++;
    return at;
}

/* The first byte in at..end that is '"', '\\' or a control character, or end. */
static inline const char *scan_to_escape(const char *at, const char *end)
{
    while (SCAN_WORDS && end - at >= 8) {
        uint64_t word = scan_load(at);
        uint64_t tops =
            scan_equal(word, '"') | scan_equal(word, '\\') | scan_control(word);
        if (tops)
            return at + scan_lead(tops);
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20)
        at++;
    return at;
}

/* As scan_to_escape, but also stops at a byte that is not ASCII. */
static inline const char *scan_to_odd(const char *at, const char *end)
{
    while (SCAN_WORDS && end - at >= 8) {
        uint64_t word = scan_load(at);
        uint64_t tops = scan_equal(word, '"') | scan_equal(word, '\\') |
                        scan_control(word) | (word & SCAN_TOPS);
        if (tops)
            return at + scan_lead(tops);
        at += 8;
    }
    while (at < end && *at != '"' && *at != '\\' && (unsigned char)*at >= 0x20 &&
           (unsigned char)*at < 0x80)
        at++;
    return at;
}

/* The first '"' or bracket of any kind in at..end, or end. */
static inline const char *scan_to_structure(const char *at, const char *end)
{
    while (SCAN_WORDS && end - at >= 8) {
        uint64_t word = scan_load(at);
        uint64_t folded = word | SCAN_ONES * 0x20; /* '[' is '{' and ']' is '}' */
        uint64_t tops =
            scan_equal(word, '"') | scan_equal(folded, '{') | scan_equal(folded, '}');
        if (tops)
            return at + scan_lead(tops);
        at += 8;
    }
    while (at < end && *at != '"' && (*at | 0x20) != '{' && (*at | 0x20) != '}')
        at++;
    return at;
}

/* The end of the string whose opening quote is at `at`: past the closing one, or end. */
static inline const char *scan_string(const char *at, const char *end)
{
    const char *close, *back, *near;
    at++;
    near = end - at > SCAN_NAME ? at + SCAN_NAME : end;
    while (at < near) {
        at = scan_to_quote(at, near);
        if (at == near)
            break;
        if (*at == '"')
            return at + 1;
        if (end - at < 2)
            return end;
        at += 2; /* an escape: whatever follows the backslash is not the end */
    }
    /* Not a name, then, and long: the next quote is the end, unless an odd number of
     * backslashes stands before it. Each is counted once: `at` moves past the quote. */
    for (;; at = close + 1) {
        close = memchr(at, '"', (size_t)(end - at));
        if (!close)
            return end;
        for (back = close; back > at && back[-1] == '\\'; back--)
            ;
        if ((close - back) % 2 == 0)
            return close + 1;
    }
}

#endif
