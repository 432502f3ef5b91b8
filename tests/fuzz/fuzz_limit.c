/*
 * fuzz_limit.c: rates, the URL of a Redis server, and records of `.limits`.
 *
 * The first byte of an input chooses: 0 a rate, 1 a URL, 2 a record, whose rate and time
 * are its own first bytes.
 *
 * Holds: a rate is read in one spelling, which printing gives back; what is refused
 * leaves the output as it was, and its sentence says what is allowed; a URL that is read
 * has a host or a path, and one that is refused leaves nothing; whatever a record says,
 * no more than its rate is let through, and it waits no longer than a window.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "limit/places.h"

enum { RATE, URL, RECORD };

static const char *const words[] = {"10/minute", "/second", "/hour", "/day",     "off",
                                    "65535",     "65536",   "0",     "redis://", "@",
                                    ":",         "[::1]",   "%2F",   "6379",     NULL};

const fuzz_about fuzz_this = {"limit", 300000, 1 << 9, words};

static void try_rate(const char *text, size_t size)
{
    char printed[LIMIT_RATE_SIZE];
    limit_rate rate = {12345, 6};
    sessile_error err = {0};
    sessile_status status = limit_rate_parse(&rate, (sessile_slice){text, size}, &err);
    if (!status) {
        limit_rate_print(rate, printed);
        FUZZ_CHECK(strlen(printed) == size && memcmp(printed, text, size) == 0);
        FUZZ_CHECK(rate.count <= LIMIT_COUNT_MOST && rate.period_ms >= 1000);
    } else {
        FUZZ_CHECK(status == SESSILE_INVALID && rate.count == 12345 &&
                   rate.period_ms == 6);
        FUZZ_CHECK(strstr(err.message, "second, minute, hour or day") != NULL);
    }
}

static void try_url(const char *data, size_t size)
{
    char *text = malloc(size + 1);
    limit_redis_url url, none = {0};
    sessile_error err = {0};
    memcpy(text, data, size);
    text[size] = '\0';
    sessile_status status = limit_redis_url_parse(&url, text, &err);
    if (!status) {
        FUZZ_CHECK(strncmp(text, "redis://", 8) == 0);
        FUZZ_CHECK((url.host[0] != '\0') != (url.path[0] == '/'));
        FUZZ_CHECK(url.port > 0 && url.port <= 65535 && url.database >= 0);
    } else {
        FUZZ_CHECK(status == SESSILE_INVALID && memcmp(&url, &none, sizeof url) == 0);
    }
    free(text);
}

static void try_record(const unsigned char *data, size_t size)
{
    static const uint32_t periods[] = {1000, 60000, 3600000, 86400000};
    limit_record r;
    int64_t ms = 0;
    if (size < 4 + sizeof r)
        return;
    limit_ask ask = {.rate = {1 + data[0], periods[data[1] % 4]}};
    memcpy(&ms, data + 2, 2);
    ms *= 1000003;
    memcpy(&r, data + 4, sizeof r);
    ask.key = r.key = 1;
    r.period_ms = ask.rate.period_ms; /* what limit_bucket_find() sees to */
    /* what a check stands for: the parts of a machine's clock */
    r.part = (int64_t)((uint64_t)r.part % (UINT64_C(1) << 50));
    uint32_t through = 0;
    for (int i = 0; i < 300; i++) {
        limit_window_take(&r, &ask, (limit_time){7, ms});
        through += ask.retry_ms == 0;
        FUZZ_CHECK(ask.retry_ms <= ask.rate.period_ms / 32 * 33 + 40);
    }
    FUZZ_CHECK(through <= ask.rate.count);
    ms += ask.retry_ms;
    if (through == 0 && ask.rate.count < 256) {
        limit_window_take(&r, &ask, (limit_time){7, ms});
        FUZZ_CHECK(ask.retry_ms == 0);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    const char *text = (const char *)data + 1;
    switch (data[0] % 3) {
    case RATE:
        try_rate(text, size - 1);
        break;
    case URL:
        try_url(text, size - 1);
        break;
    default:
        try_record(data + 1, size - 1);
        break;
    }
    return 0;
}

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const rates[] = {"10/minute", "65535/day", "off", "1/second",
                                        "10/fortnight"};
    static const char *const urls[] = {"redis://user:p%40ss@host:6379/3",
                                       "redis:///run/redis.sock", "redis://[::1]:1"};
    unsigned char record[4 + sizeof(limit_record)];
    for (size_t i = 0; i < sizeof rates / sizeof *rates; i++)
        fuzz_give_text(take, arg, RATE, rates[i]);
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        fuzz_give_text(take, arg, URL, urls[i]);
    for (int i = 0; i < 3; i++) {
        memset(record, i, sizeof record);
        fuzz_give(take, arg, RECORD, record, sizeof record);
    }
}
