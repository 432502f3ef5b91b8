/*
 * timer.c: what shall be called when, for the thread of one loop.
 *
 * Each call with a deadline sets a timer and clears it soon after, so both are cheap: the
 * heap holds pointers, and a timer knows its place in it.
 */
#include "rpc/timer.h"

void timers_init(timers *t, const allocator *a)
{
    t->heap = NULL;
    t->count = t->capacity = 0;
    t->alloc = a;
}

void timers_deinit(timers *t)
{
    mem_free(t->alloc, t->heap, t->capacity * sizeof *t->heap);
    t->heap = NULL;
    t->count = t->capacity = 0;
}

static void put(timers *t, size_t place, timer *one)
{
    t->heap[place - 1] = one;
    one->place = place;
}

static void rise(timers *t, size_t place, timer *one)
{
    while (place > 1 && t->heap[place / 2 - 1]->at_us > one->at_us) {
        put(t, place, t->heap[place / 2 - 1]);
        place /= 2;
    }
    put(t, place, one);
}

static void sink(timers *t, size_t place, timer *one)
{
    size_t child;
    while ((child = place * 2) <= t->count) {
        if (child < t->count && t->heap[child]->at_us < t->heap[child - 1]->at_us)
            child++;
        if (t->heap[child - 1]->at_us >= one->at_us)
            break;
        put(t, place, t->heap[child - 1]);
        place = child;
    }
    put(t, place, one);
}

int timer_set(timers *t, timer *one, uint64_t at_us)
{
    uint64_t before = one->at_us;
    if (!one->place) {
        if (mem_grow(t->alloc, (void **)&t->heap, &t->capacity, t->count + 1,
                     sizeof *t->heap))
            return -1;
        one->at_us = at_us;
        rise(t, ++t->count, one);
        return 0;
    }
    one->at_us = at_us;
    if (at_us < before)
        rise(t, one->place, one);
    else
        sink(t, one->place, one);
    return 0;
}

void timer_clear(timers *t, timer *one)
{
    size_t place = one->place;
    timer *last;

    if (!place)
        return;
    one->place = 0;
    last = t->heap[--t->count];
    if (last == one)
        return;
    if (place > 1 && t->heap[place / 2 - 1]->at_us > last->at_us)
        rise(t, place, last);
    else
        sink(t, place, last);
}

uint64_t timers_next(const timers *t)
{
    return t->count ? t->heap[0]->at_us : UINT64_MAX;
}

void timers_fire(timers *t, uint64_t now_us)
{
    while (t->count && t->heap[0]->at_us <= now_us) {
        timer *one = t->heap[0];
        timer_clear(t, one);
        one->fire(one);
    }
}
