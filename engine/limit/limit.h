/*
 * limit.h: how often something may be done.
 *
 * A rule such as "10/minute" means: never more than 10 in any minute, wherever the minute
 * begins. limit_window.h says how that is counted. Who is counted is a user, a session or
 * a source; calls that are refused are not counted, so whoever keeps trying gets through
 * as soon as there is room.
 *
 *     limit_options_init(&options);
 *     limit_options_set(&options, "searches", sessile_text("100/minute"), err);
 *     limiter_open(&limiter, store, &options, err);
 *     who = limiter_who(limiter, parts, count);              // once for a user
 *     status = limit_take(limiter, LIMIT_SEARCHES, who, NULL, err); // LIMIT: retry_ms
 *
 * Where counts are kept. Every call is counted in the handle. It is also counted where
 * all who share the store see it: in `.limits` in the store's folder, or FILE.limits
 * beside a SQLite database (limit_file.c); in a table of a PostgreSQL store; or, with the
 * option `shared`, in Redis (limit_redis.c). A call must have room in each of these. So
 * when a shared place is gone, the one before it still holds: at most N for each machine
 * without Redis, at most N for each handle without the file.
 */
#ifndef LIMIT_LIMIT_H
#define LIMIT_LIMIT_H

#include "base/error.h"
#include "session/store_handle.h"

/* The rules: what the column `limit` of operations.def names, and failures to say who one
 * is. LIMIT_NONE is never refused. */
typedef enum limit_rule {
    LIMIT_NONE = 0,
    LIMIT_SESSION_CREATION,
    LIMIT_CHECKPOINT_WRITES,
    LIMIT_MEMORY_READS,
    LIMIT_MEMORY_WRITES,
    LIMIT_BRANCH_OPERATIONS,
    LIMIT_SEARCHES,
    LIMIT_EXPORTS,
    LIMIT_GRANTS,
    LIMIT_FAILURES,
    LIMIT_RULES
} limit_rule;

/* Who is counted. */
typedef enum limit_per { LIMIT_PER_USER, LIMIT_PER_SESSION, LIMIT_PER_SOURCE } limit_per;
limit_per limit_rule_per(limit_rule rule);
/* "session_creation"; "none". Static. */
const char *limit_rule_name(limit_rule rule);

/* ------------------------------------------------------------------ rates */

#define LIMIT_COUNT_MOST 65535

/* At most count in any period. */
typedef struct limit_rate {
    uint32_t count;     /* 0: as many as one likes */
    uint32_t period_ms; /* a second, a minute, an hour or a day */
} limit_rate;

#define LIMIT_RATE_SIZE 24
/* Reads "10/minute", with second, minute, hour or day; or "off". INVALID: anything else;
 * *out is unchanged. */
sessile_status limit_rate_parse(limit_rate *out, sessile_slice text, sessile_error *err);
/* The same text again. */
void limit_rate_print(limit_rate rate, char out[LIMIT_RATE_SIZE]);

/* ------------------------------------------------------------------ limiters */

typedef struct limit_options {
    limit_rate rates[LIMIT_RULES];
    /* A Redis server that all who share the store count in, instead of the store:
     * "redis://USER:PASSWORD@HOST:PORT/DATABASE", or "redis:///PATH" for a Unix socket.
     * NULL: none. */
    const char *shared;
    int deny; /* 1: what cannot be counted in a shared place is refused */
} limit_options;

/* The default rates. */
void limit_options_init(limit_options *options);
/* Sets the rate of a rule by its name. NOTFOUND: there is no such rule; INVALID: see
 * limit_rate_parse(). */
sessile_status limit_options_set(limit_options *options, const char *rule,
                                 sessile_slice rate, sessile_error *err);

typedef struct limiter limiter;

/*
 * A limiter of a store, which must outlive it. Any number of threads may use it, and a
 * child process, if no other thread was using it at the fork(). Nothing is made, and no
 * server is asked, before something is counted. INVALID: the URL of `shared`;
 * UNSUPPORTED: its client library is not installed; NOMEM.
 */
sessile_status limiter_open(limiter **out, const store_core *store,
                            const limit_options *options, sessile_error *err);
void limiter_close(limiter *l); /* NULL is ignored */

/* Who is counted, as a number: a user, the names of a session, a source. Keep it: it
 * takes longer to work out than to be counted. Different parts have different numbers. */
uint64_t limiter_who(const limiter *l, const sessile_slice *parts, size_t count);

/* Where a call was counted, so that it can be taken back. */
enum { LIMIT_PLACES_MOST = 3 };
typedef struct limit_taken {
    uint64_t key;
    limit_rate rate;
    int64_t parts[LIMIT_PLACES_MOST]; /* of the window of each place */
    unsigned char counted[LIMIT_PLACES_MOST];
} limit_taken;

/*
 * Counts one call, if it has room. LIMIT: it has none; the error names the rule and says
 * in retry_ms when it can have room, at least 1; or, with `deny`, it cannot be counted,
 * and retry_ms is 0. No other error: what cannot be counted in one place is counted in
 * the others.
 *
 * *taken (may be NULL) is for limit_return().
 */
sessile_status limit_take(limiter *l, limit_rule rule, uint64_t who, limit_taken *taken,
                          sessile_error *err);
/* The call was not one of those that are limited: it is not counted any more. Between the
 * two it was, so that any number of callers at the same time never pass more than N. */
void limit_return(limiter *l, const limit_taken *taken);

/* 1: since this was last asked, a shared place was lost that calls should have been
 * counted in; *why says which, and what went wrong. Told once, until it was there again.
 */
int limiter_lost(limiter *l, sessile_error *why);

#endif
