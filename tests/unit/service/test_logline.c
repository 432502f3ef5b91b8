/*
 * test_logline.c: log lines are JSON objects, written whole by one write each, without
 * secrets.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cjson/cJSON.h>

#include "base/text.h"
#include "service/logline.h"
#include "service/redact.h"

/* Each write to one end of it is one packet at the other. */
static int ends[2];
static logger l;
static char packet[LOGLINE_SIZE * 2];

static int set_up(void **state)
{
    (void)state;
    l = (logger){.least = LEVEL_INFO};
    int failed = socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends);
    l.fd = ends[0];
    return failed;
}

static int tear_down(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* The next write, which has to be one line of JSON; the caller deletes it. NULL: none. */
static cJSON *next_line(void)
{
    ssize_t size = recv(ends[1], packet, sizeof packet - 1, MSG_DONTWAIT);
    if (size < 0)
        return NULL;
    packet[size] = 0;
    assert_in_range(size, 2, LOGLINE_SIZE);
    assert_ptr_equal(strchr(packet, '\n'), packet + size - 1);
    cJSON *line = cJSON_ParseWithOpts(packet, NULL, 0);
    assert_true(cJSON_IsObject(line));
    return line;
}

static const char *text_of(const cJSON *line, const char *name)
{
    const cJSON *found = cJSON_GetObjectItemCaseSensitive(line, name);
    assert_true(cJSON_IsString(found));
    return found->valuestring;
}

static void a_line_has_time_level_message_ids_and_fields(void **state)
{
    trace_context c = {{0}, {0}, 1};
    int64_t ms;
    (void)state;
    assert_int_equal(
        traceparent_parse(&c, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
                          55),
        0);
    logline_write(&l, LEVEL_WARN, &c, "It is \"late\".\n",
                  (attribute[]){attribute_text("method", "Turn"),
                                attribute_number("n", INT64_MIN),
                                attribute_truth("again", 7), attribute_truth("first", 0)},
                  4);
    cJSON *line = next_line();
    assert_int_equal(time_parse(text_of(line, "time"), 24, &ms), 0);
    assert_true(ms > INT64_C(1700000000000));
    assert_string_equal(text_of(line, "level"), "warn");
    assert_string_equal(text_of(line, "message"), "It is \"late\".\n");
    assert_string_equal(text_of(line, "trace_id"), "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(text_of(line, "span_id"), "b7ad6b7169203331");
    assert_non_null(strstr(packet, ",\"method\":\"Turn\",\"n\":-9223372036854775808,"
                                   "\"again\":true,\"first\":false}\n"));
    cJSON_Delete(line);
}

static void without_a_trace_there_are_no_ids(void **state)
{
    trace_context none = {{0}, {0}, 0};
    (void)state;
    logline_write(&l, LEVEL_ERROR, &none, "a", NULL, 0);
    logline_write(&l, LEVEL_ERROR, NULL, "b", NULL, 0);
    for (int i = 0; i < 2; i++) {
        cJSON *line = next_line();
        assert_null(cJSON_GetObjectItem(line, "trace_id"));
        assert_null(cJSON_GetObjectItem(line, "span_id"));
        assert_int_equal(cJSON_GetArraySize(line), 3);
        cJSON_Delete(line);
    }
}

static void lines_below_the_level_are_not_written(void **state)
{
    log_level level;
    (void)state;
    logline_write(&l, LEVEL_DEBUG, NULL, "no", NULL, 0);
    assert_null(next_line());
    logline_write(NULL, LEVEL_ERROR, NULL, "no", NULL, 0);
    assert_int_equal(logline_level(&level, "debug"), 0);
    l.least = level;
    logline_write(&l, LEVEL_DEBUG, NULL, "yes", NULL, 0);
    cJSON *line = next_line();
    assert_string_equal(text_of(line, "level"), "debug");
    cJSON_Delete(line);
    assert_int_equal(logline_level(&level, "Debug"), -1);
    assert_int_equal(logline_level(&level, ""), -1);
}

static void a_long_line_is_cut_and_says_so(void **state)
{
    char *field = malloc(3000), controls[1200];
    attribute fields[20];
    (void)state;
    memset(field, 'x', 2999);
    field[2999] = 0;
    memset(controls, 1, sizeof controls - 1);
    controls[sizeof controls - 1] = 0;
    for (size_t i = 0; i < 19; i++)
        fields[i] = attribute_text("field", field);
    fields[19] = attribute_number("last", 1);
    logline_write(&l, LEVEL_INFO, NULL, "many", fields, 20);
    cJSON *line = next_line();
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(line, "cut")));
    assert_string_equal(text_of(line, "field") + 500,
                        "\xe2\x80\xa6"); /* a value has a limit */
    assert_int_equal(cJSON_GetObjectItem(line, "last")->valueint,
                     1); /* what fits is there */
    assert_true(strlen(packet) > 3500);
    cJSON_Delete(line);
    logline_write(&l, LEVEL_INFO, NULL, controls, NULL, 0);
    line = next_line();
    assert_true(cJSON_IsTrue(cJSON_GetObjectItem(line, "cut")));
    cJSON_Delete(line);
    free(field);
}

static void what_is_no_utf8_is_replaced(void **state)
{
    (void)state;
    logline_write(&l, LEVEL_INFO, NULL, "m",
                  (attribute[]){attribute_slice("path", (sessile_slice){"a\xff\0b", 4})},
                  1);
    cJSON *line = next_line();
    assert_non_null(strstr(packet, "\"a\xef\xbf\xbd\\u0000b\""));
    cJSON_Delete(line);
}

static void secrets_are_hidden(void **state)
{
    static const struct {
        const char *text, *expected;
    } cases[] = {
        {"postgres://me:Pa:s/s@w@db1:5432/agents?pool=3",
         "postgres://me:***@db1:5432/agents?pool=3"},
        {"at redis://:hunter2@127.0.0.1/1, twice", "at redis://:***@127.0.0.1/1, twice"},
        {"postgres://me@db1/agents", "postgres://me@db1/agents"},
        {"https://host:4318/v1/traces", "https://host:4318/v1/traces"},
        {"host=db1 Password=hunter2 port=1", "host=db1 Password=*** port=1"},
        {"/?sslpassword=a;x=1&token=b&c=d", "/?sslpassword=***;x=1&token=***&c=d"},
        {"Authorization: Bearer 0123456789abcdef0123", "Authorization: Bearer ***"},
        {"\"authorization\":\"basic\tQWxhZGRpbjpvcGVuIHNlc2FtZQ==",
         "\"authorization\":\"basic\t***"},
        {"a bearer token is needed", "a bearer token is needed"},
        {"key sesk_abcdefghijklmnop_secretsecret_check!",
         "key sesk_abcdefghijklmnop_***!"},
        {"sesk_cut", "sesk_***"},
        {"(eyJhbGciOiJFUzI1NiJ9.eyJzdWIi.c2ln)", "(***)"},
        {"eyJ is a beginning", "eyJ is a beginning"},
        {"", ""},
        {" ://:@ ", " ://:***@ "},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        buf out;
        buf_init(&out, &allocator_default);
        redact_put(&out, cases[i].text, strlen(cases[i].text));
        buf_putc(&out, 0);
        assert_string_equal(out.data, cases[i].expected);
        buf_deinit(&out);
    }
    logline_write(&l, LEVEL_INFO, NULL, "cannot open redis://:hunter2@h",
                  (attribute[]){attribute_text("store", "postgres://me:hunter2@h")}, 1);
    cJSON_Delete(next_line());
    assert_null(strstr(packet, "hunter2"));
}

static void a_line_that_cannot_be_written_is_counted(void **state)
{
    metrics_names names = {NULL, 0, NULL, 0};
    metrics *m = metrics_new(&allocator_default, &names);
    buf text;
    (void)state;
    int full = open("/dev/full", O_WRONLY);
    assert_true(full >= 0);
    l.fd = full;
    l.metrics = m;
    errno = EBADF;
    logline_write(&l, LEVEL_INFO, NULL, "lost", NULL, 0);
    assert_int_equal(errno, EBADF); /* as it was: who logs may be about to look at it */
    close(full);
    buf_init(&text, &allocator_default);
    metrics_write(m, &text);
    assert_non_null(strstr(text.data, "\nsessile_log_lines_lost_total 1\n"));
    buf_deinit(&text);
    metrics_free(m);
}

static void remember(void *ud, const log_record *record)
{
    *(log_record *)ud = *record;
}

static void somebody_else_is_given_what_is_written(void **state)
{
    log_record seen = {0};
    attribute field = attribute_number("n", 1);
    (void)state;
    l.also = remember;
    l.also_ud = &seen;
    logline_write(&l, LEVEL_DEBUG, NULL, "below", &field, 1);
    assert_null(seen.message);
    logline_write(&l, LEVEL_ERROR, NULL, "above", &field, 1);
    assert_string_equal(seen.message, "above");
    assert_int_equal(seen.level, LEVEL_ERROR);
    assert_int_equal(seen.field_count, 1);
    assert_true(seen.time_ms > 0);
}

/* ---------------------------------------------------------------------- for people */

static const char *next_text(void)
{
    ssize_t size = recv(ends[1], packet, sizeof packet - 1, MSG_DONTWAIT);
    assert_in_range(size, 2, LOGLINE_SIZE);
    packet[size] = 0;
    assert_ptr_equal(strchr(packet, '\n'), packet + size - 1);
    assert_true(utf8_valid(packet, (size_t)size));
    return packet;
}

static void at_a_terminal_a_line_is_text(void **state)
{
    (void)state;
    l.is_text = 1;
    logline_write(&l, LEVEL_WARN, NULL, "The database is away.",
                  (attribute[]){attribute_number("seconds", 5),
                                attribute_text("why", "postgres://a:secret@db")},
                  2);
    const char *text = next_text();
    assert_int_equal(strspn(text, "0123456789:"), 8);
    assert_string_equal(
        text + 8,
        " warn  The database is away. (seconds=5, why=\"postgres://a:***@db\")\n");
    logline_write(&l, LEVEL_ERROR, NULL, "Alone.", NULL, 0);
    assert_string_equal(next_text() + 8, " error Alone.\n");
}

/* What others say reaches a terminal: an escape would be obeyed. */
static void text_is_inert(void **state)
{
    static const char *const bad[] = {"a\x1b[2Jb",
                                      "a\nb",
                                      "a\x7f"
                                      "b",
                                      "a\xc2\x9b"
                                      "2Jb",
                                      "a\xe2\x80\xae"
                                      "b",
                                      "a\xff"
                                      "b",
                                      "a\xe2\x81\xa6"
                                      "b"};
    (void)state;
    l.is_text = 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        logline_write(&l, LEVEL_INFO, NULL, bad[i],
                      (attribute[]){attribute_text("f", bad[i])}, 1);
        for (const char *at = next_text(); at[1]; at++)
            assert_true((unsigned char)*at >= ' ' && (unsigned char)*at < 0x7f);
    }
    logline_write(&l, LEVEL_INFO, NULL, "Größe … 大", NULL, 0);
    assert_string_equal(next_text() + 8, " info  Größe … 大\n");
}

static void long_text_is_cut(void **state)
{
    char long_text[3 * LOGLINE_SIZE];
    (void)state;
    l.is_text = 1;
    for (size_t i = 0; i + 2 < sizeof long_text; i += 2)
        memcpy(long_text + i, "ö", 2);
    long_text[sizeof long_text - 2] = 0;
    logline_write(&l, LEVEL_INFO, NULL, long_text, NULL, 0);
    const char *text = next_text();
    assert_string_equal(text + strlen(text) - 4, "…\n");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(a_line_has_time_level_message_ids_and_fields),
        TEST(without_a_trace_there_are_no_ids),
        TEST(lines_below_the_level_are_not_written),
        TEST(a_long_line_is_cut_and_says_so),
        TEST(what_is_no_utf8_is_replaced),
        TEST(secrets_are_hidden),
        TEST(a_line_that_cannot_be_written_is_counted),
        TEST(somebody_else_is_given_what_is_written),
        TEST(at_a_terminal_a_line_is_text),
        TEST(text_is_inert),
        TEST(long_text_is_cut),
    };
    return cmocka_run_group_tests_name("log lines", tests, NULL, NULL);
}
