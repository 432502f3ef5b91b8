/*
 * test_telemetry_threads.c: threads end spans and log while the exporter sends and ends:
 * each record arrives once or is counted as dropped.
 */
/* before cmocka, which has a macro of the name of a function of ours */
#include "service/trace.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "support/check.h"
#include "support/otlp.h"

enum { THREADS = 4, SPANS = 1500 };

static const char *endpoint;
static telemetry *exporter;

static const char *variable(void *ud, const char *name)
{
    (void)ud;
    if (strcmp(name, "OTEL_EXPORTER_OTLP_ENDPOINT") == 0)
        return endpoint;
    if (strcmp(name, "OTEL_BSP_MAX_QUEUE_SIZE") == 0)
        return "1000";
    return strcmp(name, "OTEL_METRICS_EXPORTER") == 0 ? "none" : NULL;
}

static void *work(void *arg)
{
    logger l = {
        .fd = -1, .least = LEVEL_INFO, .also = telemetry_log, .also_ud = exporter};
    (void)arg;
    for (int i = 0; i < SPANS; i++) {
        span call, inner;
        span_begin(&call, exporter, "call", SPAN_SERVER, NULL);
        span_child(&inner, &call, "inner", SPAN_INTERNAL);
        span_set(&inner, attribute_number("i", i));
        logline_write(&l, LEVEL_INFO, &inner.context, "line", NULL, 0);
        span_end(&inner);
        span_end(&call);
    }
    return NULL;
}

static void *run(void *arg)
{
    telemetry_run(arg);
    return NULL;
}

typedef struct totals {
    int64_t spans, lines, dropped;
} totals;

static void add_up(void *arg, const metric_series *series)
{
    totals *t = arg;
    if (series->id != METRIC_TELEMETRY_SENT && series->id != METRIC_TELEMETRY_DROPPED)
        return;
    if (strcmp(series->values[0], "traces") == 0)
        t->spans += series->value;
    if (strcmp(series->values[0], "logs") == 0)
        t->lines += series->value;
    if (series->id == METRIC_TELEMETRY_DROPPED)
        t->dropped += series->value;
}

static void each_record_is_sent_or_counted(void **state)
{
    const telemetry_program program = {"1", NULL};
    const metrics_names names = {NULL, 0, NULL, 0};
    otlp_receiver *r = otlp_receiver_needed(0, "200;quiet=1");
    telemetry_settings settings;
    pthread_t threads[THREADS], sending;
    sessile_error err;
    totals t = {0, 0, 0};
    int64_t arrived = 0;
    (void)state;
    endpoint = r->url;
    must(telemetry_settings_read(&settings, &allocator_default, variable, NULL, &program,
                                 &err),
         &err);
    metrics *m = metrics_new(&allocator_default, &names);
    telemetry_options options = {.settings = &settings, .metrics = m};
    must(telemetry_new(&exporter, &allocator_default, &options, &err), &err);
    assert_int_equal(pthread_create(&sending, NULL, run, exporter), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, work, NULL), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    telemetry_stop(exporter, 60000);
    pthread_join(sending, NULL);
    metrics_each(m, add_up, &t);
    assert_int_equal(t.spans, THREADS * SPANS * 2);
    assert_int_equal(t.lines, THREADS * SPANS);
    while (arrived <
           t.spans + t.lines - t.dropped) { /* and no more: nothing is left then */
        cJSON *said = otlp_receiver_next(r);
        arrived += otlp_at(said, "records")->valueint;
        cJSON_Delete(said);
    }
    assert_int_equal(arrived, t.spans + t.lines - t.dropped);
    print_message("# figure: records dropped by a ring of 1000 = %d\n", (int)t.dropped);
    telemetry_free(exporter);
    metrics_free(m);
    telemetry_settings_deinit(&settings);
    otlp_receiver_free(r);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(each_record_is_sent_or_counted)};
    return cmocka_run_group_tests_name("telemetry of threads", tests, NULL, NULL);
}
