/*
 * limit_window.h: never more than N calls in any period, counted in 128 bytes.
 *
 * The problem. A token bucket lets 2N-1 calls through in one period: N saved, and N-1
 * that are refilled meanwhile. A list of times is exact, and takes 8 bytes a call.
 *
 * The choice. The period is cut into 32 equal parts, and the calls of each are counted.
 * Any period that ends now lies within the part that has begun and the 32 before it. So a
 * call has room if these 33 counts together are below N, and there are never more than N
 * calls in any period. The price is that a window is up to 1/32 longer than its period: a
 * client that keeps a pause of 33/32 of period / N between its calls is never refused.
 *
 * The clock. Times are those of the machine's monotonic clock, which nobody sets: setting
 * the time of day changes nothing. That clock starts again with the machine. A record of
 * another start, or of a later time than now, says how many calls there were, and not how
 * long ago: all of them are then counted as if they were made now. So there are never
 * more than N across a restart either, and nobody waits longer than one window.
 */
#ifndef LIMIT_WINDOW_H
#define LIMIT_WINDOW_H

#include <stddef.h>
#include <stdint.h>

#include "limit/limit.h"

enum { LIMIT_PARTS = 33, LIMIT_BUCKET = 8, LIMIT_BACK = 2 };

/* The window of one key; all zero: of nobody. */
typedef struct limit_record {
    uint64_t key;
    uint64_t check; /* of a record in a file: over all the others */
    uint64_t boot;  /* which start of the machine `part` is of */
    int64_t part;   /* the number of the newest part */
    uint32_t period_ms;
    uint16_t counts[LIMIT_PARTS]; /* the newest is the last */
    unsigned char spare[26];
} limit_record;

_Static_assert(sizeof(limit_record) == 128, "a record of .limits has 128 bytes");

/* When it is. */
typedef struct limit_time {
    uint64_t boot;
    int64_t ms;
} limit_time;

/* One call that is to be counted. */
typedef struct limit_ask {
    uint64_t key;
    limit_rate rate;
    int look;          /* 1: count nothing. LIMIT_BACK, for a server: take one back */
    int makes;         /* it may make the store's folder: so may its count */
    int64_t part;      /* out: in which part it was counted */
    uint32_t retry_ms; /* out: when there may be room, at least 1; 0: it has room */
} limit_ask;

/* Brings a window to now. */
void limit_window_move(limit_record *r, limit_time now);
/* Moves and counts. The record is of the same key and period. */
void limit_window_take(limit_record *r, limit_ask *ask, limit_time now);
/* Takes back what was counted. */
void limit_window_undo(limit_record *r, const limit_ask *ask, limit_time now);

/*
 * The record of a key among those of its bucket. A key that has none is given one that is
 * nobody's or whose window is over: emptied, with the key put in. When there is no such
 * record: NULL, or with `share` the one with the fewest calls, which keeps its counts.
 * So the new key may be refused early, and the old one begins afresh; a window that is
 * full is the last to be given up.
 */
limit_record *limit_bucket_find(limit_record bucket[LIMIT_BUCKET], const limit_ask *ask,
                                limit_time now, int share);

#endif
