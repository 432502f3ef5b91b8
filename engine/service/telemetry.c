/*
 * telemetry.c: the exporter's thread: batches, attempts, and how it ends.
 *
 * Each signal is a lane of its own, with a ring, the batch that is being sent, and times.
 * A batch that was not accepted waits in its lane for its next attempt, while other lanes
 * go on; its ring fills meanwhile and drops its oldest. The lock protects the rings and
 * is never held while something is sent; batches belong to the thread that sends.
 */
#include "service/telemetry.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/os.h"
#include "base/text.h"
#include "service/otlp.h"
#include "service/post.h"
#include "service/ring.h"

enum { ATTEMPTS = 5, LONGEST_RETRY_MS = 60000 };
#define NEVER UINT64_MAX

typedef struct lane {
    metric_signal signal;
    const destination *to;
    ring ring;       /* of records; metrics have none */
    uint64_t due_us; /* when the next batch is made; NEVER: nothing waits */
    struct {
        buf body;
        size_t records; /* 0: there is no batch */
        int attempts;
        uint64_t next_us; /* of the next attempt */
    } batch;
    int fails; /* what was reported last */
} lane;

struct telemetry {
    const allocator *alloc;
    telemetry_options options;
    lane lanes[SIGNAL_COUNT];
    poster *poster;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    _Atomic uint64_t stop_by_us; /* 0: it runs */
};

static uint64_t now_us(void)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000u + (uint64_t)now.tv_nsec / 1000;
}

static uint64_t after_ms(int ms)
{
    return now_us() + (uint64_t)ms * 1000;
}

/* ---- making and handing over */

sessile_status telemetry_new(telemetry **out, const allocator *a,
                             const telemetry_options *options, sessile_error *err)
{
    const telemetry_settings *s = options->settings;
    int on = 0;
    *out = NULL;
    error_clear(err);
    for (int i = 0; i < SIGNAL_COUNT; i++)
        on |= s->to[i].on;
    if (!on)
        return SESSILE_OK;
    telemetry *t = mem_zalloc(a, sizeof *t);
    if (!t)
        return fail_nomem(err);
    t->alloc = a;
    t->options = *options;
    pthread_mutex_init(&t->lock, NULL);
    int failed = os_cond_init(&t->wake);
    t->poster = poster_new(a);
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        lane *l = &t->lanes[i];
        l->signal = (metric_signal)i;
        l->to = &s->to[i];
        l->due_us = i == SIGNAL_METRICS && options->metrics
                        ? after_ms(s->metric_interval_ms)
                        : NEVER;
        buf_init(&l->batch.body, a);
        failed |= ring_init(&l->ring, i == SIGNAL_METRICS ? 1 : s->queue, a);
    }
    if (failed || !t->poster) {
        telemetry_free(t);
        return fail_nomem(err);
    }
    *out = t;
    return SESSILE_OK;
}

void telemetry_free(telemetry *t)
{
    if (!t)
        return;
    for (int i = 0; i < SIGNAL_COUNT; i++) {
        if (t->lanes[i].ring.items)
            ring_deinit(&t->lanes[i].ring);
        buf_deinit(&t->lanes[i].batch.body);
    }
    poster_free(t->poster);
    pthread_cond_destroy(&t->wake);
    pthread_mutex_destroy(&t->lock);
    mem_free(t->alloc, t, sizeof *t);
}

int telemetry_wants(const telemetry *t, metric_signal signal)
{
    return t && t->lanes[signal].to->on;
}

const telemetry_settings *telemetry_settings_of(const telemetry *t)
{
    return t->options.settings;
}

const allocator *telemetry_allocator(const telemetry *t)
{
    return t->alloc;
}

static void count_dropped(telemetry *t, metric_signal signal, size_t records)
{
    metrics_add(t->options.metrics, METRIC_TELEMETRY_DROPPED, signal, 0, records);
}

void telemetry_put(telemetry *t, metric_signal signal, buf *json)
{
    size_t dropped = 1;
    if (!telemetry_wants(t, signal)) {
        buf_deinit(json);
        return;
    }
    if (json->failed) {
        buf_deinit(json);
    } else {
        lane *l = &t->lanes[signal];
        pthread_mutex_lock(&t->lock);
        dropped = ring_push(&l->ring, json);
        uint64_t due = l->ring.count >= t->options.settings->batch ? 0 : l->due_us;
        if (due == NEVER)
            due = after_ms(t->options.settings->delay_ms);
        int sooner = due < l->due_us;
        l->due_us = due;
        if (sooner)
            pthread_cond_signal(&t->wake);
        pthread_mutex_unlock(&t->lock);
    }
    if (dropped)
        count_dropped(t, signal, dropped);
}

void telemetry_log(void *ud, const log_record *record)
{
    telemetry *t = ud;
    buf json;
    if (!telemetry_wants(t, SIGNAL_LOGS))
        return;
    buf_init(&json, t->alloc);
    otlp_put_log(&json, record);
    telemetry_put(t, SIGNAL_LOGS, &json);
}

/* ---- batches */

/* Metrics as they are now. */
static void fill_metrics(telemetry *t, lane *l)
{
    buf *body = &l->batch.body;
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_REALTIME, &now);
    if (t->options.look)
        t->options.look(t->options.ud);
    else
        metrics_take_process(t->options.metrics);
    l->batch.records =
        otlp_put_metrics(body, t->options.metrics,
                         (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec);
    int last = atomic_load(&t->stop_by_us) != 0;
    l->due_us = last ? NEVER : after_ms(t->options.settings->metric_interval_ms);
}

/* The oldest records of the ring. */
static void fill_records(telemetry *t, lane *l)
{
    const telemetry_settings *s = t->options.settings;
    buf record;
    pthread_mutex_lock(&t->lock);
    while (l->batch.records < s->batch && ring_pop(&l->ring, &record)) {
        if (l->batch.records++)
            buf_putc(&l->batch.body, ',');
        buf_put(&l->batch.body, record.data, record.size);
        buf_deinit(&record);
    }
    l->due_us = l->ring.count == 0          ? NEVER
                : l->ring.count >= s->batch ? 0
                                            : after_ms(s->delay_ms);
    pthread_mutex_unlock(&t->lock);
}

static void drop_batch(telemetry *t, lane *l)
{
    if (l->batch.records)
        count_dropped(t, l->signal, l->batch.records);
    buf_deinit(&l->batch.body);
    l->batch.records = 0;
}

static void fill(telemetry *t, lane *l)
{
    otlp_put_head(&l->batch.body, l->signal, &t->options.settings->resource);
    if (l->signal == SIGNAL_METRICS)
        fill_metrics(t, l);
    else
        fill_records(t, l);
    otlp_put_tail(&l->batch.body);
    l->batch.attempts = 0;
    if (l->batch.body.failed || l->batch.records == 0)
        drop_batch(t, l);
}

/* ---- attempts */

static void report(telemetry *t, lane *l, const char *why)
{
    static const char *const names[] = {"traces", "metrics", "logs"};
    char sentence[400];
    int fails = why ? 1 : 0;
    if (!t->options.report || l->fails == fails)
        return;
    l->fails = fails;
    if (why)
        snprintf(sentence, sizeof sentence,
                 "The receiver of %s does not accept them (%s): see "
                 "OTEL_EXPORTER_OTLP_ENDPOINT "
                 "and the receiver's own log.",
                 names[l->signal], why);
    else
        snprintf(sentence, sizeof sentence, "The receiver of %s accepts them again.",
                 names[l->signal]);
    t->options.report(t->options.ud, l->signal, !why, sentence);
}

static int is_past_end(void *ud)
{
    uint64_t by = atomic_load(&((telemetry *)ud)->stop_by_us);
    return by && now_us() >= by;
}

static int may_try_again(int status)
{
    return status == 0 || status == 429 || status == 502 || status == 503 ||
           status == 504;
}

/* Twice the last time, less up to a half of it, so that servers do not come together. */
static int backoff_ms(const telemetry *t, const lane *l, int asked_ms)
{
    uint32_t random;
    int64_t ms = (int64_t)t->options.settings->retry_ms << (l->batch.attempts - 1);
    random_bytes(&random, sizeof random);
    ms -= (int64_t)(random % (uint64_t)(ms / 2 + 1));
    ms = asked_ms > ms ? asked_ms : ms;
    return ms < LONGEST_RETRY_MS ? (int)ms : LONGEST_RETRY_MS;
}

static void take_answer(telemetry *t, lane *l, const post_answer *answer)
{
    int stopping = atomic_load(&t->stop_by_us) != 0;
    l->batch.attempts++;
    if (answer->status >= 200 && answer->status < 300) {
        uint64_t rejected =
            otlp_rejected(l->signal, answer->body.data, answer->body.size, t->alloc);
        rejected = rejected < l->batch.records ? rejected : l->batch.records;
        metrics_add(t->options.metrics, METRIC_TELEMETRY_SENT, l->signal, 0,
                    l->batch.records - rejected);
        l->batch.records = rejected;
        drop_batch(t, l);
        report(t, l, rejected ? "some of them were rejected" : NULL);
        return;
    }
    report(t, l, answer->why);
    if (may_try_again(answer->status) && l->batch.attempts < ATTEMPTS && !stopping)
        l->batch.next_us = after_ms(backoff_ms(t, l, answer->retry_after_ms));
    else
        drop_batch(t, l);
}

static void attempt(telemetry *t, lane *l)
{
    const telemetry_settings *s = t->options.settings;
    uint64_t by = atomic_load(&t->stop_by_us), now = now_us();
    post_answer answer;
    post_request r = {.url = l->to->url.data,
                      .content_type = "application/json",
                      .headers = &l->to->headers,
                      .authority = s->authority.data,
                      .body = l->batch.body.data,
                      .size = l->batch.body.size,
                      .timeout_ms = l->to->timeout_ms,
                      .stop = is_past_end,
                      .stop_ud = t};
    if (by && (by <= now || (by - now) / 1000 < (uint64_t)r.timeout_ms))
        r.timeout_ms = by <= now ? 1 : (int)((by - now) / 1000) + 1;
    post_send(t->poster, &r, &answer);
    take_answer(t, l, &answer);
    buf_deinit(&answer.body);
}

/* ---- the thread */

/* When a lane has something to do; NEVER: nothing. The lock is held. */
static uint64_t due_of(const lane *l, int stopping)
{
    if (!l->to->on)
        return NEVER;
    if (l->batch.records)
        return stopping ? 0 : l->batch.next_us;
    return stopping && l->due_us != NEVER ? 0 : l->due_us;
}

/* Waits until a lane is due and returns it; NULL: it is time to end. */
static lane *next_lane(telemetry *t, size_t *turn)
{
    lane *found = NULL;
    pthread_mutex_lock(&t->lock);
    while (!found && !is_past_end(t)) {
        int stopping = atomic_load(&t->stop_by_us) != 0;
        uint64_t now = now_us(), soonest = NEVER;
        for (size_t i = 0; i < SIGNAL_COUNT && !found; i++) {
            lane *l = &t->lanes[++*turn % SIGNAL_COUNT];
            uint64_t due = due_of(l, stopping);
            found = due <= now ? l : NULL;
            soonest = due < soonest ? due : soonest;
        }
        if (found || (stopping && soonest == NEVER))
            break;
        if (soonest == NEVER) {
            pthread_cond_wait(&t->wake, &t->lock);
            continue;
        }
        struct timespec until = {(time_t)(soonest / 1000000),
                                 (long)(soonest % 1000000) * 1000};
        pthread_cond_timedwait(&t->wake, &t->lock, &until);
    }
    pthread_mutex_unlock(&t->lock);
    return found;
}

void telemetry_run(telemetry *t)
{
    size_t turn = 0;
    lane *l;
    if (!t)
        return;
    while ((l = next_lane(t, &turn))) {
        if (!l->batch.records)
            fill(t, l);
        if (l->batch.records)
            attempt(t, l);
    }
    for (size_t i = 0; i < SIGNAL_COUNT; i++) {
        drop_batch(t, &t->lanes[i]);
        pthread_mutex_lock(&t->lock);
        size_t left = t->lanes[i].ring.count;
        pthread_mutex_unlock(&t->lock);
        if (left)
            count_dropped(t, t->lanes[i].signal, left);
    }
}

void telemetry_stop(telemetry *t, int wait_ms)
{
    if (!t)
        return;
    pthread_mutex_lock(&t->lock);
    atomic_store(&t->stop_by_us, after_ms(wait_ms));
    pthread_cond_signal(&t->wake);
    pthread_mutex_unlock(&t->lock);
}
