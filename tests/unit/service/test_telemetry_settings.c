/*
 * test_telemetry_settings.c: what the variables of OpenTelemetry mean, and the sentence
 * for each that means nothing.
 */
/* before cmocka, which has a macro of the name of a function of ours */
#include "service/telemetry_settings.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "support/check.h"

#define ALL "OTEL_EXPORTER_OTLP_ENDPOINT", "http://collector:4318"

static telemetry_settings s;
static sessile_error err;

static const char *variable(void *ud, const char *name)
{
    const char *const *list = ud;
    for (; *list; list += 2)
        if (strcmp(list[0], name) == 0)
            return list[1];
    return NULL;
}

/* Name, value, …, NULL. */
static sessile_status read_of(const char *const *list)
{
    telemetry_program program = {"1.2.3", NULL};
    telemetry_settings_deinit(&s);
    return telemetry_settings_read(&s, &allocator_default, variable,
                                   (void *)(uintptr_t)list, &program, &err);
}
#define READ(...) read_of((const char *const[]){__VA_ARGS__, NULL})

static int set_up(void **state)
{
    (void)state;
    return telemetry_settings_read(&s, &allocator_default, variable,
                                   (void *)(uintptr_t)(const char *[]){NULL},
                                   &(telemetry_program){"1", NULL}, &err);
}

static int tear_down(void **state)
{
    (void)state;
    telemetry_settings_deinit(&s);
    return 0;
}

static void assert_on(int traces, int metrics, int logs)
{
    assert_int_equal(s.to[SIGNAL_TRACES].on, traces);
    assert_int_equal(s.to[SIGNAL_METRICS].on, metrics);
    assert_int_equal(s.to[SIGNAL_LOGS].on, logs);
}

static void without_an_endpoint_all_is_off_and_nothing_is_judged(void **state)
{
    (void)state;
    must(READ("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc", "OTEL_TRACES_SAMPLER", "?"), &err);
    assert_on(0, 0, 0);
    must(READ("OTEL_EXPORTER_OTLP_ENDPOINT", ""), &err);
    assert_on(0, 0, 0);
}

static void one_endpoint_serves_all_signals(void **state)
{
    (void)state;
    must(READ(ALL), &err);
    assert_on(1, 1, 1);
    assert_string_equal(s.to[SIGNAL_TRACES].url.data, "http://collector:4318/v1/traces");
    assert_string_equal(s.to[SIGNAL_METRICS].url.data,
                        "http://collector:4318/v1/metrics");
    assert_string_equal(s.to[SIGNAL_LOGS].url.data, "http://collector:4318/v1/logs");
    must(READ("OTEL_EXPORTER_OTLP_ENDPOINT", "https://h/otlp//"), &err);
    assert_string_equal(s.to[SIGNAL_TRACES].url.data, "https://h/otlp/v1/traces");
}

static void a_signals_own_endpoint_is_used_as_it_is(void **state)
{
    (void)state;
    must(READ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "https://[::1]:9/x?y=1"), &err);
    assert_on(1, 0, 0);
    assert_string_equal(s.to[SIGNAL_TRACES].url.data, "https://[::1]:9/x?y=1");
    must(READ(ALL, "OTEL_EXPORTER_OTLP_LOGS_ENDPOINT", "http://logs"), &err);
    assert_string_equal(s.to[SIGNAL_LOGS].url.data, "http://logs");
    assert_string_equal(s.to[SIGNAL_TRACES].url.data, "http://collector:4318/v1/traces");
}

static void signals_and_all_of_it_can_be_turned_off(void **state)
{
    (void)state;
    must(READ(ALL, "OTEL_METRICS_EXPORTER", "none", "OTEL_TRACES_EXPORTER", "otlp"),
         &err);
    assert_on(1, 0, 1);
    must(READ(ALL, "OTEL_SDK_DISABLED", "TRUE"), &err);
    assert_on(0, 0, 0);
    must(READ(ALL, "OTEL_SDK_DISABLED", "1"), &err); /* only "true" is */
    assert_on(1, 1, 1);
}

static void defaults_are_those_of_opentelemetry(void **state)
{
    (void)state;
    must(READ(ALL), &err);
    assert_int_equal(s.to[SIGNAL_TRACES].timeout_ms, 10000);
    assert_int_equal(s.delay_ms, 5000);
    assert_int_equal(s.queue, 2048);
    assert_int_equal(s.batch, 512);
    assert_int_equal(s.metric_interval_ms, 60000);
    assert_int_equal(s.sampler.kind, SAMPLE_ALL);
    assert_true(s.sampler.parent_based);
    assert_false(s.plain_ids);
    assert_int_equal(s.to[SIGNAL_TRACES].headers.size, 0);
    assert_non_null(strstr(s.resource.data,
                           "{\"key\":\"service.name\",\"value\":{\"stringValue\":"
                           "\"sessile-server\"}}"));
    assert_null(strstr(s.resource.data, "service.instance.id"));
}

static void headers_and_timeouts_of_a_signal_come_first(void **state)
{
    (void)state;
    must(READ(ALL, "OTEL_EXPORTER_OTLP_HEADERS",
              " api-key = a%3Db=c , ,x=", "OTEL_EXPORTER_OTLP_LOGS_HEADERS",
              "y=%20z%C3%A4", "OTEL_EXPORTER_OTLP_TIMEOUT", "7",
              "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT", "8"),
         &err);
    const buf *h = &s.to[SIGNAL_TRACES].headers;
    assert_int_equal(h->size, sizeof "api-key: a=b=c\0x;");
    assert_memory_equal(h->data, "api-key: a=b=c\0x;", h->size);
    assert_string_equal(s.to[SIGNAL_LOGS].headers.data, "y:  z\xc3\xa4");
    assert_int_equal(s.to[SIGNAL_TRACES].timeout_ms, 7);
    assert_int_equal(s.to[SIGNAL_METRICS].timeout_ms, 8);
}

static void the_name_of_the_service_comes_first(void **state)
{
    (void)state;
    must(READ(ALL, "OTEL_RESOURCE_ATTRIBUTES", "service.name=b,c=\"d\""), &err);
    assert_non_null(strstr(s.resource.data, "\"b\""));
    assert_non_null(strstr(s.resource.data, "\"\\\"d\\\"\""));
    must(
        READ(ALL, "OTEL_SERVICE_NAME", "a", "OTEL_RESOURCE_ATTRIBUTES", "service.name=b"),
        &err);
    assert_non_null(strstr(s.resource.data, "\"a\""));
    assert_null(strstr(s.resource.data, "\"b\""));
}

static void samplers_are_known_by_their_names(void **state)
{
    static const struct {
        const char *name, *arg;
        sampler expected;
    } cases[] = {
        {"always_on", "", {SAMPLE_ALL, 0, 0}},
        {"always_off", "nonsense", {SAMPLE_NONE, 0, 0}},
        {"parentbased_always_off", "", {SAMPLE_NONE, 1, 0}},
        {"traceidratio", "", {SAMPLE_RATIO, 0, UINT64_C(1) << 63}},
        {"traceidratio", "1.0", {SAMPLE_RATIO, 0, UINT64_C(1) << 63}},
        {"parentbased_traceidratio", "0.25", {SAMPLE_RATIO, 1, UINT64_C(1) << 61}},
        {"traceidratio", "0", {SAMPLE_RATIO, 0, 0}},
        {"traceidratio", "1e-3", {SAMPLE_RATIO, 0, 9223372036854776u}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        must(READ(ALL, "OTEL_TRACES_SAMPLER", cases[i].name, "OTEL_TRACES_SAMPLER_ARG",
                  cases[i].arg),
             &err);
        assert_int_equal(s.sampler.kind, cases[i].expected.kind);
        assert_int_equal(s.sampler.parent_based, cases[i].expected.parent_based);
        assert_true(s.sampler.below == cases[i].expected.below);
    }
}

/* One variable beside an endpoint is refused with its name, and not with its value. */
static void assert_bad(sessile_status expected, const char *name, const char *value)
{
    sessile_status status = READ(name, value, ALL);
    if (status != expected || !strstr(err.message, name))
        fail_msg("%s=%s: status %d, %s", name, value, status, err.message);
    if (strlen(value) > 7 && strstr(err.message, value))
        fail_msg("%s is quoted: %s", name, err.message);
    assert_on(0, 0, 0);
}

static void what_means_nothing_is_named(void **state)
{
    (void)state;
    static const char *const urls[] = {
        "collector:4318", "ftp://collector", "http://",     "http://u:p@collector",
        "http://h?x",     "http://h/#x",     "http://a b/", "file:///etc/passwd"};
    static const char *const lists[] = {"x",     "=x",    "a b=c", "a=%0a",
                                        "a=%",   "a=%2",  "a=%zz", "a=\xff",
                                        "a=%C3", "a:b=c", "a=b,c"};
    static const char *const numbers[] = {
        "0", "-1", "1s", "86400001", "1.5", " 1", "99999999999999999999"};
    static const char *const ratios[] = {"-0.1",   "1.1", "nan", "inf",
                                         "0x1p-1", "a",   "0.5 "};
    for (size_t i = 0; i < sizeof urls / sizeof *urls; i++)
        assert_bad(SESSILE_INVALID, "OTEL_EXPORTER_OTLP_ENDPOINT", urls[i]);
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        assert_bad(SESSILE_INVALID, "OTEL_EXPORTER_OTLP_HEADERS", lists[i]);
        assert_bad(SESSILE_INVALID, "OTEL_RESOURCE_ATTRIBUTES", lists[i]);
    }
    assert_bad(SESSILE_INVALID, "OTEL_EXPORTER_OTLP_LOGS_HEADERS", "Host=x");
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        assert_bad(SESSILE_INVALID, "OTEL_EXPORTER_OTLP_TIMEOUT", numbers[i]);
        assert_bad(SESSILE_INVALID, "OTEL_BSP_SCHEDULE_DELAY", numbers[i]);
        assert_bad(SESSILE_INVALID, "OTEL_BSP_MAX_QUEUE_SIZE", numbers[i]);
        assert_bad(SESSILE_INVALID, "OTEL_BSP_MAX_EXPORT_BATCH_SIZE", numbers[i]);
        assert_bad(SESSILE_INVALID, "OTEL_METRIC_EXPORT_INTERVAL", numbers[i]);
    }
    for (size_t i = 0; i < sizeof ratios / sizeof *ratios; i++) {
        sessile_status status = READ(ALL, "OTEL_TRACES_SAMPLER", "traceidratio",
                                     "OTEL_TRACES_SAMPLER_ARG", ratios[i]);
        assert_refused(status, SESSILE_INVALID, &err, "OTEL_TRACES_SAMPLER_ARG");
    }
}

static void what_is_not_there_is_said_so(void **state)
{
    (void)state;
    assert_bad(SESSILE_UNSUPPORTED, "OTEL_EXPORTER_OTLP_PROTOCOL", "grpc");
    assert_bad(SESSILE_UNSUPPORTED, "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL",
               "http/protobuf");
    assert_non_null(strstr(err.message, "http/json"));
    assert_bad(SESSILE_UNSUPPORTED, "OTEL_EXPORTER_OTLP_COMPRESSION", "gzip");
    assert_bad(SESSILE_UNSUPPORTED, "OTEL_LOGS_EXPORTER", "console");
    assert_bad(SESSILE_UNSUPPORTED, "OTEL_TRACES_SAMPLER", "xray");
    assert_bad(SESSILE_UNSUPPORTED, "OTEL_TRACES_SAMPLER", "parentbased_x");
    must(READ(ALL, "OTEL_EXPORTER_OTLP_PROTOCOL", "http/json",
              "OTEL_EXPORTER_OTLP_COMPRESSION", "none"),
         &err);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(without_an_endpoint_all_is_off_and_nothing_is_judged),
        TEST(one_endpoint_serves_all_signals),
        TEST(a_signals_own_endpoint_is_used_as_it_is),
        TEST(signals_and_all_of_it_can_be_turned_off),
        TEST(defaults_are_those_of_opentelemetry),
        TEST(headers_and_timeouts_of_a_signal_come_first),
        TEST(the_name_of_the_service_comes_first),
        TEST(samplers_are_known_by_their_names),
        TEST(what_means_nothing_is_named),
        TEST(what_is_not_there_is_said_so),
    };
    return cmocka_run_group_tests_name("telemetry settings", tests, NULL, NULL);
}
