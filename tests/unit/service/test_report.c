/*
 * test_report.c: log lines have a bounded rate, each kind its own, and sentences of
 * errors have no names in them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include <cjson/cJSON.h>

#include "base/os.h"
#include "lines.h"
#include "service/report.h"

static uint64_t clock_now;
static os_table table;
static const os_table *real;
static reports r;
static lines l;
static size_t exported;

static uint64_t tell_clock(void *ud)
{
    (void)ud;
    return clock_now;
}

static void export(void *ud, const log_record *record)
{
    (void)record;
    ++*(size_t *)ud;
}

static int set_up(void **state)
{
    (void)state;
    real = os_current;
    table = *real;
    table.clock_us = tell_clock;
    os_current = &table;
    clock_now = 1000000;
    exported = 0;
    lines_open(&l);
    reports_init(
        &r,
        &(logger){.fd = l.in, .least = LEVEL_INFO, .also = export, .also_ud = &exported});
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    reports_deinit(&r);
    lines_close(&l);
    os_current = real;
    return 0;
}

static void say(report_kind kind, const char *message, int times)
{
    for (int i = 0; i < times; i++)
        report(&r, kind, LEVEL_ERROR, NULL, message, NULL, 0);
}

/* ---------------------------------------------------------------------- rates */

static void a_million_failures_are_ten_lines_and_a_number(void **state)
{
    (void)state;
    say(REPORT_STORE, "away", 1000000);
    assert_int_equal(lines_count(&l, "away"), REPORT_LINES);
    reports_tick(&r, 0);
    assert_int_equal(lines_count(&l, "More lines"), 0); /* the window goes on */
    clock_now += (uint64_t)REPORT_WINDOW_MS * 1000;
    reports_tick(&r, 0);
    cJSON *line = lines_wait(&l, "More lines");
    assert_string_equal(line_field(line, "kind"), "store");
    assert_string_equal(line_field(line, "lines"), "999990");
    assert_string_equal(line_field(line, "level"), "warn");
    cJSON_Delete(line);
    reports_tick(&r, 0);
    assert_int_equal(lines_count(&l, "More lines"), 1); /* once */
}

static void the_next_window_has_lines_again_behind_the_number(void **state)
{
    (void)state;
    say(REPORT_STORE, "away", 15);
    clock_now += (uint64_t)REPORT_WINDOW_MS * 1000;
    say(REPORT_STORE, "still away", 1);
    cJSON *line = lines_wait(&l, "More lines");
    assert_string_equal(line_field(line, "lines"), "5");
    cJSON_Delete(line);
    cJSON_Delete(lines_wait(&l, "still away"));
    assert_int_equal(exported, REPORT_LINES + 2); /* what is written, and no more */
}

static void one_kind_does_not_silence_another(void **state)
{
    (void)state;
    say(REPORT_STORE, "away", 100);
    say(REPORT_DAMAGE, "damaged", 1);
    assert_int_equal(lines_count(&l, "damaged"), 1);
}

static void the_end_says_what_was_left_out(void **state)
{
    (void)state;
    say(REPORT_LOAD, "busy", 12);
    reports_tick(&r, 1);
    cJSON *line = lines_wait(&l, "More lines");
    assert_string_equal(line_field(line, "lines"), "2");
    cJSON_Delete(line);
}

static void lines_below_the_level_count_for_nothing(void **state)
{
    (void)state;
    r.log.least = LEVEL_ERROR;
    for (int i = 0; i < 20; i++)
        report(&r, REPORT_NODES, LEVEL_INFO, NULL, "joined", NULL, 0);
    say(REPORT_NODES, "lost", 1);
    clock_now += (uint64_t)REPORT_WINDOW_MS * 1000;
    reports_tick(&r, 0);
    assert_int_equal(lines_count(&l, ""), 1);
}

static void lines_about_telemetry_are_not_exported(void **state)
{
    (void)state;
    say(REPORT_TELEMETRY, "the receiver is away", 1);
    assert_int_equal(lines_count(&l, "the receiver"), 1);
    assert_int_equal(exported, 0);
    say(REPORT_SERVER, "began", 1);
    assert_int_equal(exported, 1);
}

static void without_a_place_nothing_is_said(void **state)
{
    (void)state;
    r.log.fd = 0;
    say(REPORT_SERVER, "began", 1);
    reports_tick(&r, 1);
    assert_int_equal(exported, 0);
    assert_int_equal(lines_count(&l, ""), 0);
}

/* ---------------------------------------------------------------------- sentences */

static void assert_hidden(const char *sentence, const char *request, size_t size,
                          const char *expected)
{
    buf out;
    buf_init(&out, &allocator_default);
    report_put_sentence(&out, sentence, request, size);
    assert_false(out.failed);
    assert_string_equal(out.size ? out.data : "", expected);
    buf_deinit(&out);
}

static void names_of_the_request_are_hidden(void **state)
{
    /* a Session (field 1) with agent "coder" and id "bug-42" */
    static const char request[] = "\x0a\x0f\x0a\x05"
                                  "coder\x1a\x06"
                                  "bug-42";
    const size_t size = sizeof request - 1;
    (void)state;
    assert_hidden("the connection to db:5432 broke while bug-42 was asked for", request,
                  size, "the connection to db:5432 broke while *** was asked for");
    assert_hidden("session bug-42 is kept as coder/bug-42.", request, size,
                  "session *** is kept as ***/***.");
    assert_hidden("bug-421, bug-4 and a coders' bug", request, size,
                  "bug-421, bug-4 and a coders' bug");
    assert_hidden("", request, size, "");
    assert_hidden("bug-42", NULL, 0, "bug-42");
}

static void names_at_the_end_of_a_request_are_not_read_past_it(void **state)
{
    char *request = malloc(3);
    assert_non_null(request);
    memcpy(request,
           "\x1a\x06"
           "b",
           3); /* cut short */
    (void)state;
    assert_hidden("bug-42 is damaged", request, 3, "bug-42 is damaged");
    free(request);
}

static void what_is_quoted_is_hidden(void **state)
{
    (void)state;
    assert_hidden("session \"my \"own\" name\" is damaged", NULL, 0,
                  "session *** is damaged");
    assert_hidden("session \"cut", NULL, 0, "session ***");
    assert_hidden("session x'ff00' is not there", NULL, 0, "session *** is not there");
    assert_hidden("the server's clock", NULL, 0, "the server's clock");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_million_failures_are_ten_lines_and_a_number),
        TEST(the_next_window_has_lines_again_behind_the_number),
        TEST(one_kind_does_not_silence_another),
        TEST(the_end_says_what_was_left_out),
        TEST(lines_below_the_level_count_for_nothing),
        TEST(lines_about_telemetry_are_not_exported),
        TEST(without_a_place_nothing_is_said),
        cmocka_unit_test(names_of_the_request_are_hidden),
        cmocka_unit_test(names_at_the_end_of_a_request_are_not_read_past_it),
        cmocka_unit_test(what_is_quoted_is_hidden),
    };
    return cmocka_run_group_tests_name("reports", tests, NULL, NULL);
}
