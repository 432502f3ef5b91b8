/*
 * test_metrics_threads.c: many threads count while others read: nothing is lost, and what
 * is read is never inconsistent.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "service/metrics.h"

enum { THREADS = 6, ROUNDS = 1000000 };

static const char *const methods[] = {"Turn"};
static const metrics_names names = {methods, 1, NULL, 0};

/* All begin at the same time, so that they meet. */
static pthread_barrier_t begin;

static void *count(void *arg)
{
    metrics *m = arg;
    pthread_barrier_wait(&begin);
    for (int i = 0; i < ROUNDS; i++) {
        metrics_add(m, METRIC_CALLS, 0, (size_t)(i % 3), 1);
        metrics_move(m, METRIC_QUEUE_LENGTH, i % 2 ? -1 : 1);
        metrics_observe(m, METRIC_CALL_SECONDS, 0, (uint64_t)i * 1000);
    }
    return NULL;
}

typedef struct totals {
    uint64_t calls[3], durations, sum;
    int64_t queue;
} totals;

static void add_up(void *arg, const metric_series *s)
{
    totals *t = arg;
    if (s->id == METRIC_CALLS && strcmp(s->values[1], "OK") == 0)
        t->calls[0] = (uint64_t)s->value;
    else if (s->id == METRIC_CALLS && strcmp(s->values[1], "CANCELLED") == 0)
        t->calls[1] = (uint64_t)s->value;
    else if (s->id == METRIC_CALLS && strcmp(s->values[1], "UNKNOWN") == 0)
        t->calls[2] = (uint64_t)s->value;
    else if (s->id == METRIC_QUEUE_LENGTH)
        t->queue = s->value;
    else if (s->id == METRIC_CALL_SECONDS) {
        t->durations = s->count;
        t->sum = s->sum;
    }
}

static atomic_int stop;
static atomic_int went_back;

/* A counter that is read again is never less. */
static void *read_on(void *arg)
{
    totals before = {{0}, 0, 0, 0};
    while (!atomic_load(&stop)) {
        totals now = {{0}, 0, 0, 0};
        metrics_each(arg, add_up, &now);
        if (now.calls[0] < before.calls[0] || now.durations < before.durations ||
            now.sum < before.sum)
            atomic_store(&went_back, 1);
        before = now;
    }
    return NULL;
}

static void sums_are_exact(void **state)
{
    pthread_t counting[THREADS], reading;
    totals t = {{0}, 0, 0, 0};
    metrics *m = metrics_new(&allocator_default, &names);
    (void)state;
    assert_non_null(m);
    assert_int_equal(pthread_barrier_init(&begin, NULL, THREADS), 0);
    assert_int_equal(pthread_create(&reading, NULL, read_on, m), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&counting[i], NULL, count, m), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(counting[i], NULL);
    atomic_store(&stop, 1);
    pthread_join(reading, NULL);
    pthread_barrier_destroy(&begin);

    metrics_each(m, add_up, &t);
    assert_int_equal(t.calls[0], THREADS * ((ROUNDS + 2) / 3));
    assert_int_equal(t.calls[1], THREADS * ((ROUNDS + 1) / 3));
    assert_int_equal(t.calls[2], THREADS * (ROUNDS / 3));
    assert_int_equal(t.durations, THREADS * ROUNDS);
    assert_int_equal(t.sum, (uint64_t)THREADS * ROUNDS * (ROUNDS - 1) / 2 * 1000);
    assert_int_equal(t.queue, 0);
    assert_false(atomic_load(&went_back));
    metrics_free(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(sums_are_exact)};
    return cmocka_run_group_tests_name("metrics of threads", tests, NULL, NULL);
}
