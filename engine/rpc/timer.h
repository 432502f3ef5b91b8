/* timer.h: what shall be called when, for the thread of one loop. */
#ifndef RPC_TIMER_H
#define RPC_TIMER_H

#include <stddef.h>
#include <stdint.h>

#include "base/alloc.h"

typedef struct timer {
    uint64_t at_us; /* of the monotonic clock */
    size_t place;   /* in the heap, from 1; 0: it is not set */
    void (*fire)(struct timer *timer);
} timer;

/* A binary heap of pointers: the one that is due first is its root. */
typedef struct timers {
    timer **heap;
    size_t count, capacity;
    const allocator *alloc;
} timers;

void timers_init(timers *t, const allocator *a);
void timers_deinit(timers *t);
/* Sets it, or moves it when it is set. It must not move in memory while it is set. 0; -1:
 * no memory, and it is not set. */
int timer_set(timers *t, timer *one, uint64_t at_us);
void timer_clear(timers *t, timer *one);
/* When the first one is due; UINT64_MAX: none is set. */
uint64_t timers_next(const timers *t);
/* Calls those that are due, each one cleared first. */
void timers_fire(timers *t, uint64_t now_us);

#endif
