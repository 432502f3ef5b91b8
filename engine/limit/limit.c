/*
 * limit.c: rules, rates, and a limiter: the places that a call is counted in, in order.
 *
 * A call is counted in the handle, then in the machine's file, then in what all machines
 * share. The first that has no room refuses it, and those before it take their count
 * back. So each place has at least the calls that went on to the places behind it.
 */
#include "limit/limit.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "limit/places.h"
#include "store/file/open.h"
#include "store/postgres/limits.h"
#include "store/sqlite/open.h"

/* ------------------------------------------------------------------ rules and rates */

enum { SECOND = 1000, MINUTE = 60 * SECOND, HOUR = 60 * MINUTE, DAY = 24 * HOUR };

static const struct rule {
    const char *name;
    limit_rate standard;
    limit_per per;
    int makes; /* such a call may be the first of a store, and makes its folder */
} rules[LIMIT_RULES] = {
    [LIMIT_NONE] = {"none", {0, MINUTE}, LIMIT_PER_USER, 0},
    [LIMIT_SESSION_CREATION] = {"session_creation", {10, MINUTE}, LIMIT_PER_USER, 1},
    [LIMIT_CHECKPOINT_WRITES] = {"checkpoint_writes",
                                 {100, MINUTE},
                                 LIMIT_PER_SESSION,
                                 0},
    [LIMIT_MEMORY_READS] = {"memory_reads", {1000, MINUTE}, LIMIT_PER_SESSION, 0},
    [LIMIT_MEMORY_WRITES] = {"memory_writes", {100, MINUTE}, LIMIT_PER_USER, 1},
    [LIMIT_BRANCH_OPERATIONS] = {"branch_operations", {20, MINUTE}, LIMIT_PER_SESSION, 0},
    [LIMIT_SEARCHES] = {"searches", {60, MINUTE}, LIMIT_PER_USER, 0},
    [LIMIT_EXPORTS] = {"exports", {10, HOUR}, LIMIT_PER_USER, 0},
    [LIMIT_GRANTS] = {"grants", {60, MINUTE}, LIMIT_PER_USER, 1},
    [LIMIT_FAILURES] = {"failures", {10, MINUTE}, LIMIT_PER_SOURCE, 0},
};

static const struct unit {
    const char *name;
    uint32_t ms;
} units[] = {{"second", SECOND}, {"minute", MINUTE}, {"hour", HOUR}, {"day", DAY}};
enum { UNITS = sizeof units / sizeof *units };

limit_per limit_rule_per(limit_rule rule)
{
    return rules[rule].per;
}

const char *limit_rule_name(limit_rule rule)
{
    return rules[rule].name;
}

static int is_text(sessile_slice text, const char *word)
{
    return text.size == strlen(word) && memcmp(text.data, word, text.size) == 0;
}

sessile_status limit_rate_parse(limit_rate *out, sessile_slice text, sessile_error *err)
{
    const char *at = text.data, *end = at ? at + text.size : at;
    uint32_t count = 0;
    if (is_text(text, "off")) {
        *out = (limit_rate){0, MINUTE};
        return SESSILE_OK;
    }
    /* no sign, no leading zero, nothing that wraps around */
    for (; at < end && *at >= '0' && *at <= '9' && count <= LIMIT_COUNT_MOST; at++) {
        if (*at == '0' && count == 0)
            break;
        count = 10 * count + (uint32_t)(*at - '0');
    }
    if (count > 0 && count <= LIMIT_COUNT_MOST && at < end && *at++ == '/') {
        for (size_t i = 0; i < UNITS; i++) {
            if (is_text((sessile_slice){at, (size_t)(end - at)}, units[i].name)) {
                *out = (limit_rate){count, units[i].ms};
                return SESSILE_OK;
            }
        }
    }
    return fail(err, SESSILE_INVALID,
                "a rate is a number from 1 to %d, a slash, and second, minute, hour or "
                "day, as \"10/minute\", or \"off\": \"%.*s\" is none",
                LIMIT_COUNT_MOST, (int)(text.size < 40 ? text.size : 40),
                text.data ? text.data : "");
}

void limit_rate_print(limit_rate rate, char out[LIMIT_RATE_SIZE])
{
    const char *unit = "?";
    for (size_t i = 0; i < UNITS; i++)
        if (units[i].ms == rate.period_ms)
            unit = units[i].name;
    if (rate.count == 0)
        snprintf(out, LIMIT_RATE_SIZE, "off");
    else
        snprintf(out, LIMIT_RATE_SIZE, "%u/%s", (unsigned)rate.count, unit);
}

void limit_options_init(limit_options *options)
{
    memset(options, 0, sizeof *options);
    for (int i = 0; i < LIMIT_RULES; i++)
        options->rates[i] = rules[i].standard;
}

sessile_status limit_options_set(limit_options *options, const char *rule,
                                 sessile_slice rate, sessile_error *err)
{
    for (int i = LIMIT_NONE + 1; i < LIMIT_RULES; i++)
        if (rule && strcmp(rules[i].name, rule) == 0)
            return limit_rate_parse(&options->rates[i], rate, err);
    return fail(err, SESSILE_NOTFOUND,
                "there is no rate limit \"%.40s\": use session_creation, "
                "checkpoint_writes, memory_reads, memory_writes, branch_operations, "
                "searches, exports, grants or failures",
                rule ? rule : "");
}

/* ------------------------------------------------------------------ limiters */

struct limiter {
    allocator alloc;
    const keyring *keys;
    limit_rate rates[LIMIT_RULES];
    int deny;
    int count;
    limit_place *places[LIMIT_PLACES_MOST]; /* the first is the handle's own */
    pthread_mutex_t mutex;                  /* all that follows, for changes */
    atomic_int lost[LIMIT_PLACES_MOST];     /* it was away when it was last asked */
    int untold;                             /* nobody has asked since one was lost */
    sessile_error why;
};

limit_time limit_now(const os_table *os, uint64_t boot)
{
    return (limit_time){boot, (int64_t)(os->clock_us(os->ud) / 1000)};
}

/* ROOT/.limits, or FILE.limits; of other stores nothing. */
static sessile_status open_file(limiter *l, const store_core *store, sessile_error *err)
{
    const char *root = store_file_root(&store->backend);
    const char *base = root ? root : store_sqlite_path(&store->backend);
    const char *name = root ? "/.limits" : ".limits";
    if (!base || !store->os->lock_range)
        return SESSILE_OK;
    sessile_slice purpose = slice_of("limits");
    uint64_t secret = keyring_name_hash(store->keys, &purpose, 1);
    hash_key key = hash_key_of("sessile .limits records", &secret, sizeof secret);
    buf path;
    buf_init(&path, &store->alloc);
    buf_puts(&path, base);
    buf_puts(&path, name);
    sessile_status status = path.failed
                                ? fail_nomem(err)
                                : limit_file_open(&l->places[l->count], path.data, &key,
                                                  store->os, &store->alloc, err);
    buf_deinit(&path);
    l->count += !status;
    return status;
}

sessile_status limiter_open(limiter **out, const store_core *store,
                            const limit_options *options, sessile_error *err)
{
    const allocator *a = &store->alloc;
    *out = NULL;
    limiter *l = mem_zalloc(a, sizeof *l);
    if (!l)
        return fail_nomem(err);
    l->alloc = *a;
    l->keys = store->keys;
    l->deny = options->deny;
    memcpy(l->rates, options->rates, sizeof l->rates);
    pthread_mutex_init(&l->mutex, NULL);
    sessile_status status = limit_ram_open(&l->places[0], store->os, a, err);
    l->count = !status;
    if (!status)
        status = open_file(l, store, err);
    if (!status && options->shared) {
        status =
            limit_redis_open(&l->places[l->count], options->shared, store->os, a, err);
        l->count += !status;
    } else if (!status && store_is_postgres(&store->backend)) {
        status = limit_postgres_open(&l->places[l->count], &store->backend, a, err);
        l->count += !status;
    }
    if (status)
        limiter_close(l);
    else
        *out = l;
    return status;
}

void limiter_close(limiter *l)
{
    if (!l)
        return;
    for (int i = 0; i < l->count; i++)
        l->places[i]->free(l->places[i]);
    pthread_mutex_destroy(&l->mutex);
    allocator a = l->alloc;
    mem_free(&a, l, sizeof *l);
}

uint64_t limiter_who(const limiter *l, const sessile_slice *parts, size_t count)
{
    return keyring_name_hash(l->keys, parts, count);
}

/* The key of a rule and somebody: a bijection of `who`, another for each rule and period,
 * so that two keys of one person never meet (the finisher of SplitMix64). */
static uint64_t key_of(limit_rule rule, limit_rate rate, uint64_t who)
{
    uint64_t x = who + UINT64_C(0x9e3779b97f4a7c15) * (rate.period_ms * 16u + rule);
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    x ^= x >> 31;
    return x ? x : 1;
}

/* What a place answered, for limiter_lost(). */
static void note(limiter *l, int place, limit_answer answer, const sessile_error *why)
{
    int away = answer == LIMIT_AWAY;
    if (!away && !l->lost[place])
        return;
    pthread_mutex_lock(&l->mutex);
    if (away && !l->lost[place]) {
        l->why = *why;
        l->untold = 1;
    }
    l->lost[place] = away;
    pthread_mutex_unlock(&l->mutex);
}

static sessile_status refuse(limit_rule rule, limit_rate rate, uint32_t retry_ms,
                             sessile_error *err)
{
    char text[LIMIT_RATE_SIZE];
    limit_rate_print(rate, text);
    fail_rule(err, SESSILE_LIMIT, rules[rule].name,
              "the limit %s of %s is reached: try again in %u s", rules[rule].name, text,
              (unsigned)((retry_ms + 999) / 1000));
    if (err)
        err->retry_ms = retry_ms;
    return SESSILE_LIMIT;
}

void limit_return(limiter *l, const limit_taken *taken)
{
    for (int i = 0; i < l->count; i++) {
        const limit_ask ask = {
            .key = taken->key, .rate = taken->rate, .part = taken->parts[i]};
        if (taken->counted[i])
            l->places[i]->undo(l->places[i], &ask);
    }
}

/* Asks each place. Those behind one that refuses are looked at, so that each of them
 * notices a clock that was set back when the caller does, not a window later. */
sessile_status limit_take(limiter *l, limit_rule rule, uint64_t who, limit_taken *taken,
                          sessile_error *err)
{
    const limit_rate rate = l->rates[rule];
    sessile_status status = SESSILE_OK;
    limit_taken own = {.key = key_of(rule, rate, who), .rate = rate};
    uint32_t retry_ms = 0;
    if (taken)
        *taken = (limit_taken){0};
    if (rate.count == 0)
        return SESSILE_OK;
    for (int i = 0; i < l->count; i++) {
        sessile_error why; /* of a place that is away */
        limit_ask ask = {.key = own.key,
                         .rate = rate,
                         .look = status != SESSILE_OK,
                         .makes = rules[rule].makes};
        limit_answer answer = l->places[i]->take(l->places[i], &ask, &why);
        note(l, i, answer, &why);
        own.counted[i] = answer == LIMIT_COUNTED && !status;
        own.parts[i] = ask.part;
        if (answer == LIMIT_FULL) {
            retry_ms = ask.retry_ms > retry_ms ? ask.retry_ms : retry_ms;
            status = SESSILE_LIMIT;
        } else if (answer == LIMIT_AWAY && l->deny && !status) {
            status = fail(err, SESSILE_LIMIT, "%s cannot be counted, and is refused: %s",
                          rules[rule].name, why.message);
        }
    }
    if (status)
        limit_return(l, &own);
    else if (taken)
        *taken = own;
    return retry_ms ? refuse(rule, rate, retry_ms, err) : status;
}

int limiter_lost(limiter *l, sessile_error *why)
{
    pthread_mutex_lock(&l->mutex);
    int lost = l->untold;
    l->untold = 0;
    *why = l->why;
    pthread_mutex_unlock(&l->mutex);
    return lost;
}
