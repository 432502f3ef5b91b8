/*
 * limits.h: rate limiters of stores, a clock that a test sets, and the list of times that
 * a limiter is judged by.
 */
#ifndef SUPPORT_LIMITS_H
#define SUPPORT_LIMITS_H

#include "limit/limit.h"

/* ---- when calls were let through */

/* One call: its moment lies between the two, in microseconds. */
typedef struct limit_call {
    int64_t before_us, after_us;
} limit_call;

typedef struct limit_calls {
    limit_call *at;
    size_t count, capacity;
} limit_calls;

void limit_calls_add(limit_calls *c, int64_t before_us, int64_t after_us);
void limit_calls_free(limit_calls *c);
/* Fails the test if more calls than the rate allows lie within one period for certain. */
void limit_calls_judge(limit_calls *c, limit_rate rate);

/* ---- limiters */

/* A plain store at a URL, over os_current. */
store_core *limit_store(const char *url);
/* A limiter of it whose rule SEARCHES has this rate; shared: NULL, or a Redis. */
limiter *limit_opened(const store_core *store, const char *rate, const char *shared,
                      int deny);
limit_rate limit_rate_of(const char *rate);
uint64_t limit_somebody(const limiter *l, const char *name);
/* Takes one call of SEARCHES: 1: it was let through; 0: it was refused, with a sentence
 * and retry_ms, which is returned in *retry_ms (may be NULL). */
int limit_let(limiter *l, uint64_t who, int64_t *retry_ms);

/* ---- a clock that a test sets */

typedef struct limit_clock {
    os_table table; /* for os_current */
    uint64_t us, boot;
} limit_clock;
void limit_clock_init(limit_clock *c);

/* The real one. */
int64_t limit_now_us(void);

/* ---- processes */

/* `count` processes with limiters of their own of the store at url try all the time, for
 * `ms` milliseconds, and until `least` calls were let through. One is killed every now
 * and then, and started again. Adds the calls that were let through. `meanwhile` (may be
 * NULL) is called about each 50 ms. */
void limit_processes(const char *url, const char *rate, const char *shared, int count,
                     size_t least, int ms, limit_calls *out, void (*meanwhile)(void *arg),
                     void *arg);

#endif
