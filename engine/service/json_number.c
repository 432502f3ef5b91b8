/*
 * json_number.c: numbers of JSON as the types of protobuf.
 *
 * Whole numbers are decimal arithmetic: 9007199254740993 in a double would be another
 * number, and 1e2 is as whole as 100. Doubles are read and printed by the C library, in
 * the C locale, since a decimal point is a point in JSON.
 */
#include "service/json_parts.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Multiplies by ten to the power: 0, or -1 when it does not fit. */
static int scale_up(uint64_t *n, uint64_t power)
{
    for (; power && *n; power--) {
        if (*n > UINT64_MAX / 10)
            return -1;
        *n *= 10;
    }
    return 0;
}

/* The exponent that begins at `at` (or no exponent: at is end). What is beyond any text's
 * number of digits stays there. */
static int64_t exponent_at(const char *at, const char *end)
{
    int64_t exponent = 0;
    int is_negative;
    if (at == end)
        return 0;
    at++; /* e */
    is_negative = *at == '-';
    for (at += is_negative || *at == '+'; at < end; at++)
        if (exponent < INT64_MAX / 100)
            exponent = exponent * 10 + (*at - '0');
    return is_negative ? -exponent : exponent;
}

/* The absolute value of a number: 0, or -1 when it is not whole or does not fit. */
static int absolute(const char *at, const char *end, uint64_t *out)
{
    uint64_t n = 0, zeros = 0; /* zeros that follow the digits in n */
    int64_t scale = 0;
    int behind = 0; /* 1 behind the point */

    for (; at < end && *at != 'e' && *at != 'E'; at++) {
        if (*at == '.') {
            behind = 1;
            continue;
        }
        scale -= behind;
        if (*at == '0') {
            zeros++;
            continue;
        }
        unsigned digit = (unsigned)(*at - '0');
        if (scale_up(&n, zeros + 1) || n > UINT64_MAX - digit)
            return -1;
        n += digit;
        zeros = 0;
    }
    scale += (int64_t)zeros + exponent_at(at, end);
    *out = n;
    if (n == 0)
        return 0;
    return scale < 0 ? -1 : scale_up(out, (uint64_t)scale);
}

int number_whole(json number, unsigned bits, int is_signed, uint64_t *out)
{
    int is_negative = *number.at == '-';
    uint64_t most = UINT64_MAX >> (64 - bits);
    uint64_t n;

    if (absolute(number.at + is_negative, number.at + number.size, &n))
        return -1;
    if (is_signed)
        most = (most >> 1) + (uint64_t)is_negative;
    else if (is_negative)
        most = 0;
    if (n > most)
        return -1;
    *out = is_negative ? 0 - n : n;
    return 0;
}

/* Sets the thread's locale to C, and returns the one before. newlocale() allocates
 * nothing for this name. */
static locale_t enter_c(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

int number_real(json number, int is_float, buf *copy, double *out)
{
    locale_t before;
    buf_clear(copy);
    buf_put(copy, number.at, number.size);
    if (copy->failed)
        return -1;
    before = enter_c();
    *out = is_float ? strtof(copy->data, NULL) : strtod(copy->data, NULL);
    uselocale(before);
    return isfinite(*out) ? 0 : -1;
}

/* Whether the text is this number to a reader of floats, or of doubles. The greatest
 * float is refused by some when it was rounded up, as 3.4028235e+38 is. */
static int reads_back(const char *text, double number, int is_float)
{
    double wide = strtod(text, NULL);
    return is_float ? strtof(text, NULL) == (float)number && fabs(wide) <= FLT_MAX
                    : wide == number;
}

void number_put(buf *out, double number, int is_float)
{
    char text[32];
    int digits = is_float ? 6 : 15; /* often enough */
    locale_t before = enter_c();
    do
        snprintf(text, sizeof text, "%.*g", digits++, number);
    while (!reads_back(text, number, is_float) && digits <= 17);
    uselocale(before);
    buf_puts(out, text);
}
