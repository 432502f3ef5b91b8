/*
 * time.c: times as text and back.
 *
 * Owns the calendar arithmetic. Must never use the C library for it: gmtime_r and
 * strftime depend on the locale and the environment of the host.
 *
 * Years are counted from the first of March, so that the leap day is the last day of
 * its year and month lengths follow one rule: before month m (0 is March) there are
 * (153 * m + 2) / 5 days. Each era of 400 years has 146,097 days.
 */
#include "base/text.h"

#include <string.h>

#define MS_PER_DAY   INT64_C(86400000)
#define DAYS_TO_1970 719468 /* from the first of March of year 0 */
#define DAYS_PER_ERA 146097
/* 9999-12-31T23:59:59.999Z */
#define LAST_MS INT64_C(253402300799999)

static int64_t days_of(unsigned year, unsigned month, unsigned day)
{
    unsigned y = month <= 2 ? year - 1 : year;
    unsigned m = month <= 2 ? month + 9 : month - 3;
    return (int64_t)y * 365 + y / 4 - y / 100 + y / 400 + (153 * m + 2) / 5 + day - 1 -
           DAYS_TO_1970;
}

static void put_digits(char *out, unsigned n, unsigned width)
{
    while (width-- > 0) {
        out[width] = (char)('0' + n % 10);
        n /= 10;
    }
}

void time_print(int64_t ms, char out[TIME_SIZE])
{
    unsigned days, era, day, year, m, rest;

    if (ms < 0)
        ms = 0;
    if (ms > LAST_MS)
        ms = LAST_MS;
    days = (unsigned)(ms / MS_PER_DAY) + DAYS_TO_1970;
    rest = (unsigned)(ms % MS_PER_DAY);
    era = days / DAYS_PER_ERA;
    day = days % DAYS_PER_ERA;
    /* The day of the era less the leap days before it, in years of 365 days. */
    year = (day - day / 1460 + day / 36524 - day / 146096) / 365;
    day -= 365 * year + year / 4 - year / 100;
    m = (5 * day + 2) / 153;
    day -= (153 * m + 2) / 5;
    year += era * 400 + (m >= 10);

    memcpy(out, "0000-00-00T00:00:00.000Z", TIME_SIZE);
    put_digits(out, year, 4);
    put_digits(out + 5, m < 10 ? m + 3 : m - 9, 2);
    put_digits(out + 8, day + 1, 2);
    put_digits(out + 11, rest / 3600000, 2);
    put_digits(out + 14, rest / 60000 % 60, 2);
    put_digits(out + 17, rest / 1000 % 60, 2);
    put_digits(out + 20, rest % 1000, 3);
}

/* Reads exactly width digits at *at and advances: 0, or -1. */
static int get_digits(const char **at, const char *end, unsigned width, unsigned *out)
{
    unsigned n = 0;
    if (end - *at < (ptrdiff_t)width)
        return -1;
    while (width-- > 0) {
        unsigned digit = (unsigned)(unsigned char)**at - '0';
        if (digit > 9)
            return -1;
        n = n * 10 + digit;
        ++*at;
    }
    *out = n;
    return 0;
}

static int get_char(const char **at, const char *end, char c, char other)
{
    if (*at == end || (**at != c && **at != other))
        return -1;
    ++*at;
    return 0;
}

static unsigned month_length(unsigned year, unsigned month)
{
    static const unsigned char days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return month == 2 && leap ? 29u : days[month - 1];
}

/* ".123456": cut to milliseconds. Nothing there is 0. */
static int get_fraction(const char **at, const char *end, unsigned *ms)
{
    unsigned weight = 100, digit;
    *ms = 0;
    if (*at == end || **at != '.')
        return 0;
    ++*at;
    if (get_digits(at, end, 1, &digit))
        return -1;
    do {
        *ms += digit * weight;
        weight /= 10;
    } while (get_digits(at, end, 1, &digit) == 0);
    return 0;
}

/* "Z" or "+hh:mm": minutes east. */
static int get_offset(const char **at, const char *end, int *minutes)
{
    unsigned h, m;
    int sign;
    *minutes = 0;
    if (get_char(at, end, 'Z', 'z') == 0)
        return 0;
    if (*at == end || (**at != '+' && **at != '-'))
        return -1;
    sign = *(*at)++ == '-' ? -1 : 1;
    if (get_digits(at, end, 2, &h) || get_char(at, end, ':', ':') ||
        get_digits(at, end, 2, &m) || h > 23 || m > 59)
        return -1;
    *minutes = sign * (int)(h * 60 + m);
    return 0;
}

int time_parse(const char *text, size_t size, int64_t *ms)
{
    const char *at = text, *end = text + size;
    unsigned year, month, day, h, m, s, fraction;
    int offset;
    int64_t total;

    *ms = 0;
    if (get_digits(&at, end, 4, &year) || get_char(&at, end, '-', '-') ||
        get_digits(&at, end, 2, &month) || get_char(&at, end, '-', '-') ||
        get_digits(&at, end, 2, &day) || get_char(&at, end, 'T', 't') ||
        get_digits(&at, end, 2, &h) || get_char(&at, end, ':', ':') ||
        get_digits(&at, end, 2, &m) || get_char(&at, end, ':', ':') ||
        get_digits(&at, end, 2, &s) || get_fraction(&at, end, &fraction) ||
        get_offset(&at, end, &offset) || at != end)
        return -1;
    if (year < 1969 || month < 1 || month > 12 || day < 1 ||
        day > month_length(year, month) || h > 23 || m > 59 || s > 60)
        return -1; /* 60: a leap second, read as the next second */
    total = days_of(year, month, day) * MS_PER_DAY + (int64_t)h * 3600000 +
            (int64_t)m * 60000 + (int64_t)s * 1000 + fraction - (int64_t)offset * 60000;
    if (total < 0 || total > LAST_MS)
        return -1;
    *ms = total;
    return 0;
}
