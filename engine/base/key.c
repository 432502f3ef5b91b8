/*
 * key.c: slices of text, and the printed form of message keys.
 *
 * Owns the spelling of a sessile_key. Must never accept a second spelling of the same
 * key: policies and people compare keys as text.
 */
#include "base/names.h"

#include <string.h>

#define ID_DIGITS 8

sessile_slice slice_of(const char *text)
{
    sessile_slice slice = {text, text ? strlen(text) : 0};
    return slice;
}

int slice_same(sessile_slice a, sessile_slice b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

void key_print(sessile_key key, char out[SESSILE_KEY_SIZE])
{
    static const char digits[] = "0123456789abcdef";
    char decimal[10];
    size_t i, count = 0;

    for (i = 0; i < ID_DIGITS; i++)
        *out++ = digits[key.entry >> (28 - 4 * i) & 15];
    if (key.n > 0) {
        uint32_t n = key.n;
        *out++ = '.';
        for (; n > 0; n /= 10)
            decimal[count++] = (char)('0' + n % 10);
        while (count > 0)
            *out++ = decimal[--count];
    }
    *out = 0;
}

sessile_status key_parse(sessile_slice text, sessile_key *out)
{
    uint32_t entry = 0;
    uint64_t n = 0;
    size_t i;

    out->entry = SESSILE_NO_ID;
    out->n = 0;
    if (text.size < ID_DIGITS || !text.data)
        return SESSILE_INVALID;
    for (i = 0; i < ID_DIGITS; i++) {
        char c = text.data[i];
        if (c >= '0' && c <= '9')
            entry = entry << 4 | (uint32_t)(c - '0');
        else if (c >= 'a' && c <= 'f')
            entry = entry << 4 | (uint32_t)(c - 'a' + 10);
        else
            return SESSILE_INVALID;
    }
    /* Alone it means "no entry" in calls: from a person it would mean the head. With a
     * number it names a message of a proposal that is still being made. */
    if (entry == SESSILE_NO_ID && text.size == ID_DIGITS)
        return SESSILE_INVALID;
    if (text.size > ID_DIGITS) {
        if (text.data[i++] != '.' || i == text.size || text.data[i] == '0')
            return SESSILE_INVALID;
        for (; i < text.size; i++) {
            if (text.data[i] < '0' || text.data[i] > '9')
                return SESSILE_INVALID;
            n = n * 10 + (uint64_t)(text.data[i] - '0');
            if (n > UINT32_MAX)
                return SESSILE_INVALID;
        }
    }
    out->entry = entry;
    out->n = (uint32_t)n;
    return SESSILE_OK;
}
