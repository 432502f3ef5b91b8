/*
 * test_telemetry.c: spans, metrics and log records arrive at a receiver that decodes them
 * by protobuf, and what happens when it is away, slow, overloaded or refuses.
 */
/* before cmocka, which has a macro of the name of a function of ours */
#include "service/trace.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cjson/cJSON.h>

#include "support/check.h"
#include "support/otlp.h"

/* ------------------------------------------------------------------ an exporter that
 * runs */

static const char *const methods[] = {"Turn"};
static const metrics_names names = {methods, 1, NULL, 0};
static const telemetry_program program = {"1.2.3", "node-1"};

typedef struct scene {
    telemetry_settings settings;
    metrics *metrics;
    telemetry *telemetry;
    pthread_t thread;
    int reports; /* +1 for each that it fails, +100 for each that it works again */
    char said[400];
    const char *variables[20]; /* name, value, …, NULL */
} scene;

static const char *variable(void *ud, const char *name)
{
    const scene *s = ud;
    for (size_t i = 0; s->variables[i]; i += 2)
        if (strcmp(s->variables[i], name) == 0)
            return s->variables[i + 1];
    return NULL;
}

static void hear(void *ud, metric_signal signal, int works, const char *sentence)
{
    scene *s = ud;
    (void)signal;
    s->reports += works ? 100 : 1;
    snprintf(s->said, sizeof s->said, "%s", sentence);
}

/* Makes one; url NULL: only what the variables say. */
static void make(scene *s, const char *url)
{
    sessile_error err;
    size_t i = 0;
    while (s->variables[i])
        i += 2;
    if (url) {
        s->variables[i] = "OTEL_EXPORTER_OTLP_ENDPOINT";
        s->variables[i + 1] = url;
    }
    must(telemetry_settings_read(&s->settings, &allocator_default, variable, s, &program,
                                 &err),
         &err);
    s->settings.retry_ms = 1;
    s->metrics = metrics_new(&allocator_default, &names);
    assert_non_null(s->metrics);
    telemetry_options options = {&s->settings, s->metrics, hear, NULL, s};
    must(telemetry_new(&s->telemetry, &allocator_default, &options, &err), &err);
}

static void *run(void *arg)
{
    telemetry_run(arg);
    return NULL;
}

static void start(scene *s)
{
    assert_int_equal(pthread_create(&s->thread, NULL, run, s->telemetry), 0);
}

/* Ends it after what waits was sent. */
static void finish(scene *s, int wait_ms)
{
    telemetry_stop(s->telemetry, wait_ms);
    pthread_join(s->thread, NULL);
}

static void clear(scene *s)
{
    telemetry_free(s->telemetry);
    metrics_free(s->metrics);
    telemetry_settings_deinit(&s->settings);
}

typedef struct wanted {
    metric_id id;
    const char *signal;
    int64_t value;
} wanted;

static void find(void *arg, const metric_series *series)
{
    wanted *w = arg;
    if (series->id == w->id && strcmp(series->values[0], w->signal) == 0)
        w->value = series->value;
}

static int64_t count_of(const scene *s, metric_id id, const char *signal)
{
    wanted w = {id, signal, 0};
    metrics_each(s->metrics, find, &w);
    return w.value;
}

static void assert_counts(const scene *s, int64_t sent, int64_t dropped)
{
    assert_int_equal(count_of(s, METRIC_TELEMETRY_SENT, "traces"), sent);
    assert_int_equal(count_of(s, METRIC_TELEMETRY_DROPPED, "traces"), dropped);
}

static void put_span(scene *s, const char *name)
{
    span one;
    span_begin(&one, s->telemetry, name, SPAN_INTERNAL, NULL);
    assert_ptr_equal(one.to, s->telemetry);
    span_end(&one);
    assert_null(one.to);
}

#define TRACES_ALONE "OTEL_METRICS_EXPORTER", "none", "OTEL_LOGS_EXPORTER", "none"
#define SPANS        "decoded.resourceSpans.0.scopeSpans.0.spans"

static const char *text_at(cJSON *value, const char *path)
{
    return cJSON_GetStringValue(otlp_at(value, path));
}

/* ------------------------------------------------------------------ what arrives */

static void spans_arrive_with_all_that_they_have(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_SERVICE_NAME", "chat",
                             "OTEL_RESOURCE_ATTRIBUTES", "team=a%20b,service.name=not",
                             "OTEL_EXPORTER_OTLP_HEADERS", "x-key=se%2Ccret"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    trace_context caller;
    char header[TRACEPARENT_SIZE], parent[TRACEPARENT_SIZE];
    span call, wait;
    (void)state;
    make(&s, r->url);
    start(&s);
    assert_int_equal(
        traceparent_parse(&caller,
                          "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", 55),
        0);
    uint64_t before = (uint64_t)time(NULL);
    span_begin(&call, s.telemetry, "sessile.v1.SessionService/Turn", SPAN_SERVER,
               &caller);
    span_child(&wait, &call, "queue", SPAN_INTERNAL);
    traceparent_print(&wait.context, header);
    traceparent_print(&call.context, parent);
    span_end(&wait);
    span_set(&call, attribute_text("rpc.system", "gr\"pc\xff"));
    span_set(&call, attribute_number("rpc.grpc.status_code", INT64_MIN));
    span_set(&call, attribute_truth("sessile.again", 1));
    span_set_session(&call, sessile_text("conversation-1"));
    span_fail(&call, "CONFLICT");
    span_end(&call);
    finish(&s, 10000);

    cJSON *said = otlp_receiver_next(r);
    assert_string_equal(text_at(said, "path"), "/v1/traces");
    assert_string_equal(text_at(said, "headers.content-type"), "application/json");
    assert_string_equal(text_at(said, "headers.x-key"), "se,cret");
    cJSON *resource = otlp_at(said, "decoded.resourceSpans.0.resource.attributes");
    assert_string_equal(otlp_attribute(resource, "service.name"), "chat");
    assert_string_equal(otlp_attribute(resource, "service.version"), "1.2.3");
    assert_string_equal(otlp_attribute(resource, "service.instance.id"), "node-1");
    assert_string_equal(otlp_attribute(resource, "team"), "a b");
    assert_string_equal(text_at(said, "decoded.resourceSpans.0.scopeSpans.0.scope.name"),
                        "sessile");

    cJSON *spans = otlp_at(said, SPANS);
    assert_int_equal(cJSON_GetArraySize(spans), 2);
    cJSON *child = otlp_at(spans, "0"), *root = otlp_at(spans, "1");
    assert_string_equal(text_at(root, "name"), "sessile.v1.SessionService/Turn");
    assert_string_equal(text_at(root, "traceId"), "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(text_at(root, "parentSpanId"), "b7ad6b7169203331");
    assert_memory_equal(text_at(root, "spanId"), parent + 36, 16);
    assert_int_equal(otlp_at(root, "kind")->valueint, 2);
    assert_int_equal(otlp_at(root, "flags")->valueint, 0x301);
    assert_int_equal(otlp_at(root, "status.code")->valueint, 2);
    assert_string_equal(text_at(root, "status.message"), "CONFLICT");
    cJSON *attributes = otlp_at(root, "attributes");
    assert_string_equal(otlp_attribute(attributes, "rpc.system"), "gr\"pc\xef\xbf\xbd");
    assert_string_equal(otlp_attribute(attributes, "rpc.grpc.status_code"),
                        "-9223372036854775808");
    assert_string_equal(otlp_attribute(attributes, "sessile.again"), "true");
    /* printf %s conversation-1 | b2sum -l 256 */
    assert_string_equal(otlp_attribute(attributes, "session.id"), "adf585682191f152");

    assert_string_equal(text_at(child, "name"), "queue");
    assert_string_equal(text_at(child, "traceId"), text_at(root, "traceId"));
    assert_string_equal(text_at(child, "parentSpanId"), text_at(root, "spanId"));
    assert_memory_equal(text_at(child, "spanId"), header + 36, 16);
    assert_int_equal(otlp_at(child, "kind")->valueint, 1);
    assert_int_equal(otlp_at(child, "flags")->valueint, 0x101);
    assert_null(cJSON_GetObjectItem(child, "status"));
    uint64_t began = strtoull(text_at(root, "startTimeUnixNano"), NULL, 10);
    uint64_t ended = strtoull(text_at(root, "endTimeUnixNano"), NULL, 10);
    assert_true(began / 1000000000 >= before && began <= ended);
    assert_true(strtoull(text_at(child, "startTimeUnixNano"), NULL, 10) >= began);
    cJSON_Delete(said);
    assert_counts(&s, 2, 0);
    assert_int_equal(s.reports, 0);
    clear(&s);
    otlp_receiver_free(r);
}

static void a_root_has_no_parent_and_attributes_have_a_limit(void **state)
{
    scene s = {.variables = {TRACES_ALONE}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    char name[SPAN_ATTRIBUTES + 3][8];
    span one;
    (void)state;
    make(&s, r->url);
    s.settings.plain_ids = 1;
    start(&s);
    span_begin(&one, s.telemetry, "one", SPAN_CLIENT, NULL);
    span_set_session(&one, sessile_text("conversation-1"));
    for (int i = 0; i < SPAN_ATTRIBUTES + 3; i++) {
        snprintf(name[i], sizeof name[i], "n%d", i);
        span_set(&one, attribute_number(name[i], i));
    }
    span_end(&one);
    finish(&s, 10000);
    cJSON *said = otlp_receiver_next(r), *root = otlp_at(said, SPANS ".0");
    assert_null(cJSON_GetObjectItem(root, "parentSpanId"));
    assert_int_equal(cJSON_GetArraySize(otlp_at(root, "attributes")), SPAN_ATTRIBUTES);
    assert_int_equal(otlp_at(root, "droppedAttributesCount")->valueint, 4);
    assert_string_equal(otlp_attribute(otlp_at(root, "attributes"), "session.id"),
                        "conversation-1");
    assert_string_equal(otlp_attribute(otlp_at(root, "attributes"), "n30"), "30");
    cJSON_Delete(said);
    clear(&s);
    otlp_receiver_free(r);
}

static cJSON *metric_of(cJSON *said, const char *name)
{
    cJSON *one;
    cJSON_ArrayForEach(one,
                       otlp_at(said, "decoded.resourceMetrics.0.scopeMetrics.0.metrics"))
    {
        if (strcmp(text_at(one, "name"), name) == 0)
            return one;
    }
    fail_msg("there is no metric %s", name);
    return NULL;
}

static void metrics_arrive(void **state)
{
    scene s = {
        .variables = {"OTEL_TRACES_EXPORTER", "none", "OTEL_LOGS_EXPORTER", "none"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    (void)state;
    make(&s, r->url);
    metrics_add(s.metrics, METRIC_CALLS, 0, 10, 3);
    metrics_observe(s.metrics, METRIC_CALL_SECONDS, 0, 250000000);
    metrics_observe(s.metrics, METRIC_CALL_SECONDS, 0, 31000000000);
    metrics_set(s.metrics, METRIC_CLOCK_OFFSET, 0, -1500000000);
    start(&s);
    finish(&s, 10000); /* the last time, long before the interval */

    cJSON *said = otlp_receiver_next(r);
    assert_string_equal(text_at(said, "path"), "/v1/metrics");
    cJSON *calls = metric_of(said, "sessile_calls_total");
    assert_string_equal(text_at(calls, "unit"), "1");
    assert_int_equal(otlp_at(calls, "sum.aggregationTemporality")->valueint, 2);
    assert_true(cJSON_IsTrue(otlp_at(calls, "sum.isMonotonic")));
    cJSON *point = otlp_at(calls, "sum.dataPoints.0");
    assert_string_equal(text_at(point, "asInt"), "3");
    assert_string_equal(otlp_attribute(otlp_at(point, "attributes"), "method"), "Turn");
    assert_string_equal(otlp_attribute(otlp_at(point, "attributes"), "status"),
                        "ABORTED");
    uint64_t began = strtoull(text_at(point, "startTimeUnixNano"), NULL, 10);
    assert_true(began / 1000000000 + 60 > (uint64_t)time(NULL));
    assert_true(strtoull(text_at(point, "timeUnixNano"), NULL, 10) >= began);
    cJSON *offset = metric_of(said, "sessile_clock_offset_seconds");
    assert_true(otlp_at(offset, "gauge.dataPoints.0.asDouble")->valuedouble == -1.5);
    assert_string_equal(text_at(offset, "unit"), "s");
    cJSON *seconds = metric_of(said, "sessile_call_seconds");
    point = otlp_at(seconds, "histogram.dataPoints.0");
    assert_int_equal(otlp_at(seconds, "histogram.aggregationTemporality")->valueint, 2);
    assert_string_equal(text_at(point, "count"), "2");
    assert_true(otlp_at(point, "sum")->valuedouble == 31.25);
    assert_int_equal(cJSON_GetArraySize(otlp_at(point, "explicitBounds")), METRIC_BOUNDS);
    assert_int_equal(cJSON_GetArraySize(otlp_at(point, "bucketCounts")),
                     METRIC_BOUNDS + 1);
    assert_true(otlp_at(point, "explicitBounds.10")->valuedouble == 0.25);
    assert_string_equal(text_at(point, "bucketCounts.10"), "1");
    assert_string_equal(text_at(point, "bucketCounts.17"), "1");
    assert_true(strtod(text_at(metric_of(said, "process_resident_memory_bytes"),
                               "gauge.dataPoints.0.asInt"),
                       NULL) > 100000);
    cJSON_Delete(said);
    assert_true(count_of(&s, METRIC_TELEMETRY_SENT, "metrics") > 20);
    clear(&s);
    otlp_receiver_free(r);
}

static void metrics_arrive_again_at_each_interval(void **state)
{
    scene s = {.variables = {"OTEL_TRACES_EXPORTER", "none", "OTEL_LOGS_EXPORTER", "none",
                             "OTEL_METRIC_EXPORT_INTERVAL", "20"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    (void)state;
    make(&s, r->url);
    start(&s);
    for (int i = 0; i < 3; i++)
        cJSON_Delete(otlp_receiver_next(r));
    finish(&s, 10000);
    clear(&s);
    otlp_receiver_free(r);
}

static void log_records_arrive_with_the_ids_of_their_span(void **state)
{
    scene s = {
        .variables = {"OTEL_TRACES_EXPORTER", "none", "OTEL_METRICS_EXPORTER", "none"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    trace_context c;
    (void)state;
    make(&s, r->url);
    start(&s);
    logger l = {
        .fd = -1, .least = LEVEL_INFO, .also = telemetry_log, .also_ud = s.telemetry};
    assert_int_equal(
        traceparent_parse(&c, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                          55),
        0);
    logline_write(&l, LEVEL_WARN, &c, "cannot open redis://:hunter2@h",
                  (attribute[]){attribute_number("seconds", 5), attribute_text("a", "b")},
                  2);
    logline_write(&l, LEVEL_DEBUG, &c, "below", NULL, 0);
    logline_write(&l, LEVEL_ERROR, NULL, "no span", NULL, 0);
    finish(&s, 10000);
    cJSON *said = otlp_receiver_next(r);
    assert_string_equal(text_at(said, "path"), "/v1/logs");
    cJSON *records = otlp_at(said, "decoded.resourceLogs.0.scopeLogs.0.logRecords");
    assert_int_equal(cJSON_GetArraySize(records), 2);
    cJSON *one = otlp_at(records, "0"), *two = otlp_at(records, "1");
    assert_string_equal(text_at(one, "body.stringValue"), "cannot open redis://:***@h");
    assert_int_equal(otlp_at(one, "severityNumber")->valueint, 13);
    assert_string_equal(text_at(one, "severityText"), "WARN");
    assert_string_equal(text_at(one, "traceId"), "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(text_at(one, "spanId"), "b7ad6b7169203331");
    assert_string_equal(otlp_attribute(otlp_at(one, "attributes"), "seconds"), "5");
    assert_string_equal(otlp_attribute(otlp_at(one, "attributes"), "a"), "b");
    assert_true(strtoull(text_at(one, "timeUnixNano"), NULL, 10) / 1000000000 + 60 >
                (uint64_t)time(NULL));
    assert_string_equal(text_at(two, "body.stringValue"), "no span");
    assert_null(cJSON_GetObjectItem(two, "traceId"));
    cJSON_Delete(said);
    clear(&s);
    otlp_receiver_free(r);
}

static void a_batch_is_sent_when_it_is_full(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", "3",
                             "OTEL_BSP_SCHEDULE_DELAY", "86400000"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    (void)state;
    make(&s, r->url);
    start(&s);
    for (int i = 0; i < 7; i++)
        put_span(&s, "s");
    for (int i = 0; i < 2; i++) { /* nobody waits a day for these */
        cJSON *said = otlp_receiver_next(r);
        assert_int_equal(cJSON_GetArraySize(otlp_at(said, SPANS)), 3);
        cJSON_Delete(said);
    }
    finish(&s, 10000);
    cJSON *said = otlp_receiver_next(r);
    assert_int_equal(cJSON_GetArraySize(otlp_at(said, SPANS)), 1);
    cJSON_Delete(said);
    assert_counts(&s, 7, 0);
    clear(&s);
    otlp_receiver_free(r);
}

static void a_batch_that_is_not_full_is_sent_after_the_delay(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_SCHEDULE_DELAY", "10"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    (void)state;
    make(&s, r->url);
    start(&s);
    for (int i = 0; i < 2; i++) {
        put_span(&s, "s");
        cJSON_Delete(otlp_receiver_next(r));
    }
    finish(&s, 10000);
    assert_counts(&s, 2, 0);
    clear(&s);
    otlp_receiver_free(r);
}

/* ------------------------------------------------------------------ what goes wrong */

static void a_full_ring_drops_the_oldest_and_counts_them(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_MAX_QUEUE_SIZE", "4"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    const char *all[] = {"0", "1", "2", "3", "4", "5", "6", "7", "8", "9"};
    (void)state;
    make(&s, r->url);
    for (int i = 0; i < 10; i++)
        put_span(&s, all[i]);
    assert_counts(&s, 0, 6);
    start(&s);
    finish(&s, 10000);
    cJSON *said = otlp_receiver_next(r);
    assert_int_equal(cJSON_GetArraySize(otlp_at(said, SPANS)), 4);
    assert_string_equal(text_at(said, SPANS ".0.name"), "6");
    assert_string_equal(text_at(said, SPANS ".3.name"), "9");
    cJSON_Delete(said);
    assert_counts(&s, 4, 6);
    clear(&s);
    otlp_receiver_free(r);
}

static void an_overloaded_receiver_is_tried_again_when_it_says(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_SCHEDULE_DELAY", "1"}};
    otlp_receiver *r = otlp_receiver_needed(0, "503;retry-after=1 429 200");
    struct timespec first, second;
    (void)state;
    make(&s, r->url);
    start(&s);
    put_span(&s, "kept");
    cJSON_Delete(otlp_receiver_next(r));
    clock_gettime(CLOCK_MONOTONIC, &first);
    cJSON_Delete(otlp_receiver_next(r));
    clock_gettime(CLOCK_MONOTONIC, &second);
    assert_true((second.tv_sec - first.tv_sec) * 1000 +
                    (second.tv_nsec - first.tv_nsec) / 1000000 >
                900);
    cJSON *said = otlp_receiver_next(r);
    assert_string_equal(text_at(said, SPANS ".0.name"), "kept");
    cJSON_Delete(said);
    finish(&s, 10000);
    assert_counts(&s, 1, 0);
    assert_int_equal(s.reports, 101); /* once each, whatever the number of attempts */
    assert_string_equal(s.said, "The receiver of traces accepts them again.");
    clear(&s);
    otlp_receiver_free(r);
}

static void what_is_refused_is_dropped_and_counted(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_SCHEDULE_DELAY", "1"}};
    otlp_receiver *r = otlp_receiver_needed(0, "400 200");
    (void)state;
    make(&s, r->url);
    start(&s);
    put_span(&s, "refused");
    cJSON_Delete(otlp_receiver_next(r));
    put_span(&s, "taken");
    cJSON *said = otlp_receiver_next(r);
    assert_string_equal(text_at(said, SPANS ".0.name"), "taken");
    cJSON_Delete(said);
    finish(&s, 10000);
    assert_counts(&s, 1, 1);
    assert_int_equal(s.reports, 101);
    clear(&s);
    otlp_receiver_free(r);
}

static void redirects_are_not_followed(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_SCHEDULE_DELAY", "1"}};
    otlp_receiver *r = otlp_receiver_needed(0, "307;location=/v1/logs 200");
    (void)state;
    make(&s, r->url);
    start(&s);
    put_span(&s, "redirected");
    cJSON_Delete(otlp_receiver_next(r));
    put_span(&s, "next");
    cJSON *said = otlp_receiver_next(r);
    assert_string_equal(text_at(said, "path"), "/v1/traces");
    assert_string_equal(text_at(said, SPANS ".0.name"), "next");
    cJSON_Delete(said);
    finish(&s, 10000);
    assert_counts(&s, 1, 1);
    clear(&s);
    otlp_receiver_free(r);
}

static void records_that_an_answer_rejects_are_counted(void **state)
{
    scene s = {.variables = {TRACES_ALONE}};
    otlp_receiver *r = otlp_receiver_needed(0, "200;rejected=2");
    (void)state;
    make(&s, r->url);
    for (int i = 0; i < 5; i++)
        put_span(&s, "s");
    start(&s);
    finish(&s, 10000);
    cJSON_Delete(otlp_receiver_next(r));
    assert_counts(&s, 3, 2);
    assert_int_equal(s.reports, 1);
    clear(&s);
    otlp_receiver_free(r);
}

static void wait_for_dropped(const scene *s, int64_t count)
{
    struct timespec pause = {0, 1000000};
    while (count_of(s, METRIC_TELEMETRY_DROPPED, "traces") < count)
        nanosleep(&pause, NULL);
}

static void a_receiver_that_is_away_costs_records_and_nothing_else(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_SCHEDULE_DELAY", "1"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200");
    char url[64];
    int port = r->port;
    (void)state;
    snprintf(url, sizeof url, "%s", r->url);
    otlp_receiver_free(r); /* nobody listens there now */
    make(&s, url);
    start(&s);
    put_span(&s, "lost");
    wait_for_dropped(&s, 1);
    r = otlp_receiver_needed(port, "200");
    put_span(&s, "found");
    cJSON *said = otlp_receiver_next(r);
    assert_string_equal(text_at(said, SPANS ".0.name"), "found");
    cJSON_Delete(said);
    finish(&s, 10000);
    assert_counts(&s, 1, 1);
    assert_int_equal(s.reports, 101);
    clear(&s);
    otlp_receiver_free(r);
}

static void a_slow_receiver_is_tried_again(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_SCHEDULE_DELAY", "1",
                             "OTEL_EXPORTER_OTLP_TIMEOUT", "300"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200;sleep=600000 200");
    (void)state;
    make(&s, r->url);
    start(&s);
    put_span(&s, "slow");
    for (int i = 0; i < 2; i++) {
        cJSON *said = otlp_receiver_next(r);
        assert_string_equal(text_at(said, SPANS ".0.name"), "slow");
        cJSON_Delete(said);
    }
    finish(&s, 10000);
    assert_counts(&s, 1, 0);
    assert_int_equal(s.reports, 101);
    clear(&s);
    otlp_receiver_free(r);
}

static void an_end_does_not_wait_for_a_receiver_that_hangs(void **state)
{
    scene s = {.variables = {TRACES_ALONE, "OTEL_BSP_SCHEDULE_DELAY", "1",
                             "OTEL_EXPORTER_OTLP_TIMEOUT", "86400000"}};
    otlp_receiver *r = otlp_receiver_needed(0, "200;sleep=86400000");
    (void)state;
    make(&s, r->url);
    start(&s);
    put_span(&s, "hangs");
    cJSON_Delete(otlp_receiver_next(r)); /* it is being sent */
    put_span(&s, "waits");
    finish(&s, 50); /* or this test hangs for a day */
    assert_counts(&s, 0, 2);
    clear(&s);
    otlp_receiver_free(r);
}

/* ------------------------------------------------------------------ off */

static void without_an_endpoint_nothing_is_recorded_and_traces_are_passed_on(void **state)
{
    scene s = {.variables = {"OTEL_SERVICE_NAME", "chat"}};
    const char *header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    char out[TRACEPARENT_SIZE];
    trace_context caller;
    span one, two;
    (void)state;
    make(&s, NULL);
    assert_null(s.telemetry);
    assert_int_equal(traceparent_parse(&caller, header, 55), 0);
    span_begin(&one, NULL, "call", SPAN_SERVER, &caller);
    span_child(&two, &one, "relay", SPAN_CLIENT);
    span_set(&two, attribute_number("n", 1));
    span_set_session(&two, sessile_text("id"));
    traceparent_print(&two.context, out);
    assert_string_equal(out, header);
    span_end(&two);
    span_end(&one);
    span_begin(&one, NULL, "call", SPAN_SERVER, NULL);
    traceparent_print(&one.context, out);
    assert_string_equal(out, "");
    span_end(&one);
    telemetry_run(NULL);
    telemetry_stop(NULL, 0);
    clear(&s);
}

static void a_trace_that_is_not_sampled_is_passed_on_and_not_exported(void **state)
{
    scene s = {
        .variables = {TRACES_ALONE, "OTEL_TRACES_SAMPLER", "parentbased_always_on"}};
    const char *header = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00";
    char out[TRACEPARENT_SIZE];
    trace_context caller;
    span one, two;
    (void)state;
    make(&s, "http://127.0.0.1:1");
    assert_int_equal(traceparent_parse(&caller, header, 55), 0);
    span_begin(&one, s.telemetry, "call", SPAN_SERVER, &caller);
    span_child(&two, &one, "relay", SPAN_CLIENT);
    assert_null(two.to);
    traceparent_print(&two.context, out);
    assert_string_equal(out, header);
    span_end(&two);
    span_end(&one);
    s.settings.sampler.kind = SAMPLE_NONE;
    span_begin(&one, s.telemetry, "call", SPAN_SERVER, NULL);
    traceparent_print(&one.context, out);
    assert_int_equal(strlen(out), 55);
    assert_string_equal(out + 53, "02"); /* random, and not sampled */
    span_end(&one);
    start(&s);
    finish(&s, 10000);
    assert_counts(&s, 0, 0);
    clear(&s);
}

/* ------------------------------------------------------------------ without memory */

typedef struct shortage {
    int left;    /* fails at the call that brings it to 0 */
    int64_t out; /* bytes that are not freed */
} shortage;

static void *short_of_memory(void *ud, void *ptr, size_t osize, size_t nsize)
{
    shortage *s = ud;
    if (nsize > osize && --s->left == 0)
        return NULL;
    s->out += (int64_t)nsize - (int64_t)osize;
    if (nsize > 0)
        return realloc(ptr, nsize);
    free(ptr);
    return NULL;
}

/* Reads settings, makes an exporter, ends a span and drops it: 1 when no call failed. */
static int live_once(scene *s, const allocator *a)
{
    sessile_error err;
    telemetry_options options = {.settings = &s->settings};
    trace_context c = {{1}, {1}, 1};
    span one;
    sessile_status status =
        telemetry_settings_read(&s->settings, a, variable, s, &program, &err);
    if (!status)
        status = telemetry_new(&s->telemetry, a, &options, &err);
    assert_true(status == SESSILE_OK || status == SESSILE_NOMEM);
    if (!status) {
        logger l = {.fd = -1, .also = telemetry_log, .also_ud = s->telemetry};
        span_begin(&one, s->telemetry, "one", SPAN_SERVER, &c);
        span_set(&one, attribute_text("a", "b"));
        span_end(&one);
        logline_write(&l, LEVEL_ERROR, &c, "m", (attribute[]){attribute_text("a", "b")},
                      1);
    }
    telemetry_free(s->telemetry);
    s->telemetry = NULL;
    telemetry_settings_deinit(&s->settings);
    return !status;
}

static void without_memory_nothing_is_kept_or_leaked(void **state)
{
    scene s = {.variables = {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1",
                             "OTEL_EXPORTER_OTLP_HEADERS", "a=b",
                             "OTEL_RESOURCE_ATTRIBUTES", "c=d"}};
    int failed = 0, i = 0;
    shortage all;
    (void)state;
    do { /* until a run needs fewer allocations than are allowed */
        all = (shortage){++i, 0};
        allocator a = {short_of_memory, &all};
        failed += !live_once(&s, &a);
        assert_int_equal(all.out, 0);
    } while (all.left <= 0);
    assert_true(failed > 10 && i - failed > 10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(spans_arrive_with_all_that_they_have),
        cmocka_unit_test(a_root_has_no_parent_and_attributes_have_a_limit),
        cmocka_unit_test(metrics_arrive),
        cmocka_unit_test(metrics_arrive_again_at_each_interval),
        cmocka_unit_test(log_records_arrive_with_the_ids_of_their_span),
        cmocka_unit_test(a_batch_is_sent_when_it_is_full),
        cmocka_unit_test(a_batch_that_is_not_full_is_sent_after_the_delay),
        cmocka_unit_test(a_full_ring_drops_the_oldest_and_counts_them),
        cmocka_unit_test(an_overloaded_receiver_is_tried_again_when_it_says),
        cmocka_unit_test(what_is_refused_is_dropped_and_counted),
        cmocka_unit_test(redirects_are_not_followed),
        cmocka_unit_test(records_that_an_answer_rejects_are_counted),
        cmocka_unit_test(a_receiver_that_is_away_costs_records_and_nothing_else),
        cmocka_unit_test(a_slow_receiver_is_tried_again),
        cmocka_unit_test(an_end_does_not_wait_for_a_receiver_that_hangs),
        cmocka_unit_test(
            without_an_endpoint_nothing_is_recorded_and_traces_are_passed_on),
        cmocka_unit_test(a_trace_that_is_not_sampled_is_passed_on_and_not_exported),
        cmocka_unit_test(without_memory_nothing_is_kept_or_leaked),
    };
    return cmocka_run_group_tests_name("telemetry", tests, NULL, NULL);
}
