/*
 * test_metrics.c: what is counted, and the text that Prometheus reads, as it is and as
 * promtool judges it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "service/metrics.h"

static const char *const methods[] = {"Turn", "GetContext"};
static const char *const rules[] = {"turns \"fast\"\\\n"};
static const metrics_names names = {methods, 2, rules, 1};

static metrics *m;
static buf text;

static int set_up(void **state)
{
    (void)state;
    buf_init(&text, &allocator_default);
    m = metrics_new(&allocator_default, &names);
    return m ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    buf_deinit(&text);
    metrics_free(m);
    return 0;
}

static const char *written(void)
{
    buf_clear(&text);
    metrics_write(m, &text);
    assert_false(text.failed);
    return text.data;
}

/* The text has these lines, one after the other. */
static void assert_lines(const char *lines)
{
    const char *all = written(), *at = strstr(all, lines);
    if (!at || (at != all && at[-1] != '\n'))
        fail_msg("not written:\n%s\nbut:\n%s", lines, all);
}

static void assert_no(const char *part)
{
    if (strstr(written(), part))
        fail_msg("written: %s", part);
}

static void counters_are_written_by_their_labels(void **state)
{
    (void)state;
    metrics_add(m, METRIC_CALLS, 0, 0, 41);
    metrics_add(m, METRIC_CALLS, 0, 0, 1);
    metrics_add(m, METRIC_CALLS, 1, 14, 7);
    metrics_add(m, METRIC_ROUTED, WHERE_FALLBACK, 0, 3);
    assert_lines(
        "# HELP sessile_calls_total Calls that ended, by method and gRPC status.\n"
        "# TYPE sessile_calls_total counter\n"
        "sessile_calls_total{method=\"Turn\",status=\"OK\"} 42\n"
        "sessile_calls_total{method=\"GetContext\",status=\"UNAVAILABLE\"} 7\n"
        "# HELP ");
    assert_lines("# TYPE sessile_calls_routed_total counter\n"
                 "sessile_calls_routed_total{where=\"here\"} 0\n"
                 "sessile_calls_routed_total{where=\"relayed\"} 0\n"
                 "sessile_calls_routed_total{where=\"fallback\"} 3\n"
                 "# HELP ");
}

static void a_number_out_of_range_is_other(void **state)
{
    (void)state;
    assert_no("=\"other\"");
    metrics_add(m, METRIC_CALLS, 2, 17, 5);
    metrics_add(m, METRIC_CALLS, SIZE_MAX, SIZE_MAX, 1);
    metrics_add(m, METRIC_LIMIT_REFUSALS, 9, 0, 2);
    assert_lines("sessile_calls_total{method=\"other\",status=\"other\"} 6\n");
    assert_lines("sessile_limit_refusals_total{rule=\"other\"} 2\n");
}

static void a_value_of_a_label_is_escaped(void **state)
{
    (void)state;
    metrics_add(m, METRIC_LIMIT_REFUSALS, 0, 0, 1);
    assert_lines("sessile_limit_refusals_total{rule=\"turns \\\"fast\\\"\\\\\\n\"} 1\n");
}

static void gauges_go_up_and_down(void **state)
{
    (void)state;
    metrics_move(m, METRIC_QUEUE_LENGTH, 3);
    metrics_move(m, METRIC_QUEUE_LENGTH, -1);
    metrics_set(m, METRIC_CLOCK_OFFSET, 0, -1500000000);
    metrics_set(m, METRIC_POOL, STATE_IDLE, 32);
    assert_lines("# TYPE sessile_queue_length gauge\nsessile_queue_length 2\n");
    assert_lines("sessile_clock_offset_seconds -1.5\n");
    assert_lines("sessile_pool_connections{state=\"busy\"} 0\n"
                 "sessile_pool_connections{state=\"idle\"} 32\n");
    metrics_move(m, METRIC_QUEUE_LENGTH, -3);
    assert_lines("sessile_queue_length -1\n");
}

static void a_histogram_has_each_duration_in_one_bucket(void **state)
{
    (void)state;
    assert_no("sessile_call_seconds_count");
    metrics_observe(m, METRIC_CALL_SECONDS, 0, 100000);      /* on a bound: in it */
    metrics_observe(m, METRIC_CALL_SECONDS, 0, 100001);      /* past it */
    metrics_observe(m, METRIC_CALL_SECONDS, 0, 31000000000); /* past all */
    assert_lines("# TYPE sessile_call_seconds histogram\n"
                 "sessile_call_seconds_bucket{method=\"Turn\",le=\"0.0001\"} 1\n"
                 "sessile_call_seconds_bucket{method=\"Turn\",le=\"0.00025\"} 2\n"
                 "sessile_call_seconds_bucket{method=\"Turn\",le=\"0.0005\"} 2\n");
    assert_lines("sessile_call_seconds_bucket{method=\"Turn\",le=\"10\"} 2\n"
                 "sessile_call_seconds_bucket{method=\"Turn\",le=\"30\"} 2\n"
                 "sessile_call_seconds_bucket{method=\"Turn\",le=\"+Inf\"} 3\n"
                 "sessile_call_seconds_sum{method=\"Turn\"} 31.000200001\n"
                 "sessile_call_seconds_count{method=\"Turn\"} 3\n"
                 "# HELP ");
    assert_no("{method=\"GetContext\"");
    assert_lines("sessile_queue_seconds_bucket{le=\"+Inf\"} 0\n"
                 "sessile_queue_seconds_sum 0\n"
                 "sessile_queue_seconds_count 0\n");
}

static double number_of(const char *name)
{
    const char *at = strstr(written(), name);
    assert_non_null(at);
    return strtod(at + strlen(name), NULL);
}

static void the_process_is_described(void **state)
{
    (void)state;
    assert_lines("sessile_build_info{version=\"" SESSILE_VERSION "\"} 1\n");
    metrics_take_process(m);
    double started = number_of("\nprocess_start_time_seconds ");
    assert_true(started > 1.7e9 && started <= (double)time(NULL) + 1);
    double resident = number_of("\nprocess_resident_memory_bytes ");
    assert_true(resident > 100000 && resident < 1e12);
    double before = number_of("\nprocess_open_fds ");
    int fds[2];
    assert_int_equal(pipe(fds), 0);
    metrics_take_process(m);
    assert_true(before >= 1 && number_of("\nprocess_open_fds ") == before + 2);
    close(fds[0]);
    close(fds[1]);
    clock_t busy = clock() + CLOCKS_PER_SEC / 20;
    while (clock() < busy)
        ;
    metrics_take_process(m);
    double cpu = number_of("\nprocess_cpu_seconds_total ");
    assert_true(cpu >= 0.05 && cpu <= (double)clock() / CLOCKS_PER_SEC + 0.01);
}

static void nothing_is_counted_without_a_registry(void **state)
{
    (void)state;
    metrics_add(NULL, METRIC_CALLS, 0, 0, 1);
    metrics_move(NULL, METRIC_QUEUE_LENGTH, 1);
    metrics_set(NULL, METRIC_READY, 0, 1);
    metrics_observe(NULL, METRIC_QUEUE_SECONDS, 0, 1);
    metrics_take_process(NULL);
    metrics_write(NULL, &text);
    assert_int_equal(text.size, 0);
}

/* Fails at the call that brings left to 0. */
static void *short_of_memory(void *ud, void *ptr, size_t osize, size_t nsize)
{
    int *left = ud;
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    return --*left == 0 ? NULL : realloc(ptr, nsize);
}

static void without_memory_there_is_no_registry(void **state)
{
    (void)state;
    for (int i = 1; i <= 2; i++) {
        int left = i;
        allocator a = {short_of_memory, &left};
        assert_null(metrics_new(&a, &names));
    }
}

static void promtool_has_nothing_to_say(void **state)
{
    char path[300], command[400], said[4000];
    const char *tmp = getenv("TMPDIR");
    (void)state;
    if (system("command -v promtool >/dev/null") != 0) {
        print_message("# there is no promtool: apt-get install prometheus\n");
        skip();
    }
    for (size_t method = 0; method < 2; method++)
        metrics_observe(m, METRIC_CALL_SECONDS, method, 5000000);
    metrics_add(m, METRIC_CALLS, 0, 0, 1);
    metrics_add(m, METRIC_LIMIT_REFUSALS, 0, 0, 1);
    metrics_set(m, METRIC_CLOCK_OFFSET, 0, -1);
    metrics_take_process(m);

    snprintf(path, sizeof path, "%s/metrics.XXXXXX", tmp ? tmp : "/tmp");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    written();
    assert_int_equal(write(fd, text.data, text.size), text.size);
    close(fd);
    snprintf(command, sizeof command, "promtool check metrics < '%s' 2>&1", path);
    FILE *p = popen(command, "r");
    assert_non_null(p);
    size_t size = fread(said, 1, sizeof said - 1, p);
    said[size] = 0;
    int status = pclose(p);
    unlink(path);
    if (status != 0 || size > 0)
        fail_msg("promtool: %s", said);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(counters_are_written_by_their_labels),
        TEST(a_number_out_of_range_is_other),
        TEST(a_value_of_a_label_is_escaped),
        TEST(gauges_go_up_and_down),
        TEST(a_histogram_has_each_duration_in_one_bucket),
        TEST(the_process_is_described),
        TEST(nothing_is_counted_without_a_registry),
        TEST(without_memory_there_is_no_registry),
        TEST(promtool_has_nothing_to_say),
    };
    return cmocka_run_group_tests_name("metrics", tests, NULL, NULL);
}
