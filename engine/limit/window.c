/*
 * limit_window.c: windows and buckets of them. limit_window.h explains the algorithm.
 *
 * Must never read a clock or keep anything: each function changes the record it is given.
 */
#include "limit/window.h"

#include <string.h>

enum { PARTS_A_PERIOD = LIMIT_PARTS - 1, NEWEST = LIMIT_PARTS - 1 };

/* Exact also where a part is no whole number of milliseconds. */
static int64_t part_at(int64_t ms, uint32_t period_ms)
{
    return ms * PARTS_A_PERIOD / period_ms;
}

/* The first millisecond of a part. */
static int64_t part_begins(int64_t part, uint32_t period_ms)
{
    return (part * period_ms + PARTS_A_PERIOD - 1) / PARTS_A_PERIOD;
}

static uint32_t sum_from(const limit_record *r, int64_t first)
{
    uint32_t sum = 0;
    for (int64_t i = first; i < LIMIT_PARTS; i++)
        sum += r->counts[i];
    return sum;
}

/* How many calls of the window count now. */
static uint32_t calls_now(const limit_record *r, limit_time now)
{
    int64_t gone = r->period_ms ? part_at(now.ms, r->period_ms) - r->part : 0;
    return r->boot != now.boot || gone < 0 ? sum_from(r, 0)
           : gone < LIMIT_PARTS            ? sum_from(r, gone)
                                           : 0;
}

void limit_window_move(limit_record *r, limit_time now)
{
    int64_t part = part_at(now.ms, r->period_ms), gone = part - r->part;
    if (r->boot == now.boot && gone == 0)
        return;
    if (r->boot != now.boot || gone < 0) {
        uint32_t sum = sum_from(r, 0);
        memset(r->counts, 0, sizeof r->counts);
        r->counts[NEWEST] = (uint16_t)(sum > LIMIT_COUNT_MOST ? LIMIT_COUNT_MOST : sum);
    } else if (gone >= LIMIT_PARTS) {
        memset(r->counts, 0, sizeof r->counts);
    } else {
        size_t kept = (size_t)(LIMIT_PARTS - gone);
        memmove(r->counts, r->counts + gone, kept * sizeof *r->counts);
        memset(r->counts + kept, 0, (size_t)gone * sizeof *r->counts);
    }
    r->boot = now.boot;
    r->part = part;
}

void limit_window_take(limit_record *r, limit_ask *ask, limit_time now)
{
    limit_window_move(r, now);
    uint32_t sum = sum_from(r, 0);
    ask->part = r->part;
    ask->retry_ms = 0;
    if (sum < ask->rate.count) {
        if (!ask->look)
            r->counts[NEWEST]++;
        return;
    }
    /* there is room when enough of the oldest parts have left the window */
    int oldest = 0;
    for (; oldest < NEWEST; oldest++) {
        sum -= r->counts[oldest];
        if (sum < ask->rate.count)
            break;
    }
    int64_t leaves = part_begins(r->part + oldest + 1, ask->rate.period_ms);
    ask->retry_ms = (uint32_t)(leaves > now.ms ? leaves - now.ms : 1);
}

void limit_window_undo(limit_record *r, const limit_ask *ask, limit_time now)
{
    limit_window_move(r, now);
    int64_t age = r->part - ask->part;
    if (age >= 0 && age < LIMIT_PARTS && r->counts[NEWEST - age] > 0)
        r->counts[NEWEST - age]--;
}

limit_record *limit_bucket_find(limit_record bucket[LIMIT_BUCKET], const limit_ask *ask,
                                limit_time now, int share)
{
    limit_record *least = NULL;
    uint32_t calls = 0;
    for (int i = 0; i < LIMIT_BUCKET; i++)
        if (bucket[i].key == ask->key && bucket[i].period_ms == ask->rate.period_ms)
            return &bucket[i];
    for (int i = 0; i < LIMIT_BUCKET; i++) {
        limit_record *r = &bucket[i];
        uint32_t n = r->key ? calls_now(r, now) : 0;
        if (!least || n < calls) {
            least = r;
            calls = n;
        }
    }
    if (calls > 0 && !share)
        return NULL;
    memset(least, 0, sizeof *least);
    least->key = ask->key;
    least->boot = now.boot;
    least->period_ms = ask->rate.period_ms;
    least->part = part_at(now.ms, ask->rate.period_ms);
    least->counts[NEWEST] =
        (uint16_t)(calls > LIMIT_COUNT_MOST ? LIMIT_COUNT_MOST : calls);
    return least;
}
