/*
 * test_json_read.c: values, names and integers found in checked text, and strings
 * written.
 *
 * Owns the promises of codec/json.h beyond the door; test_json.c has those of the door.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include "base/text.h"
#include "codec/json.h"

#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

/* ------------------------------------------------------------------ reading */

static json of(const char *text)
{
    return json_of(text, strlen(text));
}

static void assert_span(json value, json_type type, const char *text)
{
    assert_int_equal(value.type, type);
    assert_int_equal(value.size, strlen(text));
    assert_memory_equal(value.at, text, value.size);
}

static void values_are_spans_of_the_text(void **state)
{
    (void)state;
    assert_span(of("\"a\\\"b\",1"), JSON_STRING, "\"a\\\"b\"");
    assert_span(of("\"\\\\\",1"), JSON_STRING, "\"\\\\\"");
    assert_span(of("-1.5e3,2"), JSON_NUMBER, "-1.5e3");
    assert_span(of("[\"]\",{\"a\":\"}\"}],1"), JSON_ARRAY, "[\"]\",{\"a\":\"}\"}]");
    assert_span(of("{\"a\":[1,{\"]\":2}]}{"), JSON_OBJECT, "{\"a\":[1,{\"]\":2}]}");
    assert_span(of("true"), JSON_TRUE, "true");
    assert_span(of("false]"), JSON_FALSE, "false");
    assert_span(of("null}"), JSON_NULL, "null");
    assert_int_equal(of("").type, JSON_NONE);
    assert_int_equal(json_of(NULL, 0).type, JSON_NONE);
}

static void members_are_found_by_decoded_name(void **state)
{
    json v =
        of("{\"ro\\u006ce\":1,\"b\":{\"role\":9},\"role\":2,\"\":3,\"\\ud83d\\ude00\":4,"
           "\"a\\u0000\":5,\"a\":6}");
    (void)state;
    assert_span(json_get(v, "role"), JSON_NUMBER, "1");
    assert_span(json_get(v, ""), JSON_NUMBER, "3");
    assert_span(json_get(v, "\xf0\x9f\x98\x80"), JSON_NUMBER, "4");
    assert_span(json_get(v, "a"), JSON_NUMBER, "6");
    assert_span(json_get(json_get(v, "b"), "role"), JSON_NUMBER, "9");
    assert_int_equal(json_get(v, "rol").type, JSON_NONE);
    assert_int_equal(json_get(v, "roles").type, JSON_NONE);
    assert_int_equal(json_get(v, "ro\\u006ce").type,
                     JSON_NONE); /* names are no JSON text */
    assert_int_equal(json_get(of("[\"role\",1]"), "role").type, JSON_NONE);
    assert_int_equal(json_get(of("\"role\""), "role").type, JSON_NONE);
}

static void containers_are_walked_in_order(void **state)
{
    json_iter it = json_begin(of("[1,\"a,]\",[2,3],{\"x\":[4]},null]"));
    static const char *const elements[] = {"1", "\"a,]\"", "[2,3]", "{\"x\":[4]}",
                                           "null"};
    size_t i;
    (void)state;
    for (i = 0; i < 5; i++) {
        assert_int_equal(json_next(&it), 1);
        assert_int_equal(it.key.type, JSON_NONE);
        assert_int_equal(it.value.size, strlen(elements[i]));
        assert_memory_equal(it.value.at, elements[i], it.value.size);
    }
    assert_int_equal(json_next(&it), 0);
    assert_int_equal(json_next(&it), 0);
    it = json_begin(of("{\"a\":{},\"b\":[]}"));
    assert_int_equal(json_next(&it), 1);
    assert_span(it.key, JSON_STRING, "\"a\"");
    assert_span(it.value, JSON_OBJECT, "{}");
    assert_int_equal(json_next(&it), 1);
    assert_span(it.key, JSON_STRING, "\"b\"");
    assert_span(it.value, JSON_ARRAY, "[]");
    assert_int_equal(json_next(&it), 0);
    it = json_begin(of("[]"));
    assert_int_equal(json_next(&it), 0);
    it = json_begin(of("{}"));
    assert_int_equal(json_next(&it), 0);
    it = json_begin(of("\"[1]\""));
    assert_int_equal(json_next(&it), 0);
}

static void assert_decodes(const char *text, const char *bytes, size_t size)
{
    buf out;
    buf_init(&out, &allocator_default);
    assert_int_equal(json_string(&out, of(text)), 0);
    assert_int_equal(out.size, size);
    assert_memory_equal(out.data, bytes, size);
    assert_true(utf8_valid(out.data, out.size));
    buf_deinit(&out);
}

static void strings_are_decoded(void **state)
{
    buf out;
    (void)state;
    assert_decodes("\"\"", "", 0);
    assert_decodes("\"a\\u0000b\"", "a\0b", 3);
    assert_decodes("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "\"\\/\b\f\n\r\t", 8);
    assert_decodes("\"\\u0041\\u00e9\\u20AC\\uD83D\\uDE00x\"",
                   "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80x", 11);
    assert_decodes("\"\\udbff\\udfff\"", "\xf4\x8f\xbf\xbf", 4);
    assert_decodes("\"\\ud800\"", "\xef\xbf\xbd", 3);
    assert_decodes("\"\\udc00\\ud800\"", "\xef\xbf\xbd\xef\xbf\xbd", 6);
    assert_decodes("\"\\ud800\\ud800\\udc00\"", "\xef\xbf\xbd\xf0\x90\x80\x80", 7);
    assert_decodes("\"\\ud800x\"", "\xef\xbf\xbdx", 4);
    assert_decodes("\"\\ud800\\n\"", "\xef\xbf\xbd\n", 4);
    buf_init(&out, &allocator_default);
    assert_int_equal(json_string(&out, of("12")), -1);
    assert_int_equal(json_string(&out, of("")), -1);
    buf_deinit(&out);
}

static void strings_are_compared_decoded(void **state)
{
    (void)state;
    assert_true(json_is(of("\"user\""), "user"));
    assert_true(json_is(of("\"us\\u0065r\""), "user"));
    assert_true(json_is(of("\"\\u0075\\u0073\\u0065\\u0072\""), "user"));
    assert_true(json_is(of("\"\\\\n\""), "\\n"));
    assert_true(json_is(of("\"\""), ""));
    assert_false(json_is(of("\"user\\u0000\""), "user"));
    assert_false(json_is(of("\"users\""), "user"));
    assert_false(json_is(of("\"use\""), "user"));
    assert_false(json_is(of("\"us\\u0065\""), "user"));
    assert_false(json_is(of("\"\\n\""), "\\n"));
    assert_false(json_is(of("1"), "1"));
}

static void plain_strings_need_no_copy(void **state)
{
    const char *data = NULL;
    size_t size = 0;
    (void)state;
    assert_int_equal(json_plain(of("\"abc\""), &data, &size), 1);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "abc", 3);
    assert_int_equal(json_plain(of("\"a\\n\""), &data, &size), 0);
    assert_int_equal(json_plain(of("1"), &data, &size), 0);
}

static void integers_are_exact_or_nothing(void **state)
{
    static const char *const bad[] = {"1.0",
                                      "1e2",
                                      "1E2",
                                      "0.5",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "99999999999999999999999",
                                      "\"1\"",
                                      "null",
                                      "true",
                                      "[1]"};
    int64_t n;
    uint64_t u;
    size_t i;
    (void)state;
    static const struct {
        const char *text;
        double value;
    } doubles[] = {{"0", 0},
                   {"-0.5", -0.5},
                   {"3.14159265358979", 3.14159265358979},
                   {"1e3", 1000},
                   {"2.5E-3", 0.0025},
                   {"1E+2", 100},
                   {"1e300", 1e300},
                   {"123456789012", 123456789012.0},
                   {"4.9e-300", 4.9e-300}};
    double d;
    for (i = 0; i < sizeof doubles / sizeof *doubles; i++) {
        assert_int_equal(json_double(of(doubles[i].text), &d), 0);
        assert_true(fabs(d - doubles[i].value) <= 1e-14 * fabs(doubles[i].value));
    }
    assert_int_equal(json_double(of("1e400"), &d), -1);
    assert_int_equal(json_double(of("1e99999999999"), &d), -1);
    assert_int_equal(json_double(of("\"1\""), &d), -1);
    assert_int_equal(json_int(of("9223372036854775807"), &n), 0);
    assert_true(n == INT64_MAX);
    assert_int_equal(json_int(of("-9223372036854775808"), &n), 0);
    assert_true(n == INT64_MIN);
    assert_int_equal(json_int(of("-1"), &n), 0);
    assert_true(n == -1);
    assert_int_equal(json_int(of("-0"), &n), 0);
    assert_true(n == 0);
    assert_int_equal(json_int(of("9007199254740993"), &n), 0);
    assert_true(n == INT64_C(9007199254740993));
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        n = 5;
        assert_int_equal(json_int(of(bad[i]), &n), -1);
        assert_true(n == 0);
    }
    assert_int_equal(json_uint(of("18446744073709551615"), &u), 0);
    assert_true(u == UINT64_MAX);
    assert_int_equal(json_uint(of("18446744073709551616"), &u), -1);
    assert_int_equal(json_uint(of("-1"), &u), -1);
    assert_int_equal(json_uint(of("-0"), &u), 0);
}

/* The two halves of a walk: into some values, over others. */
static void a_walk_into_values_ends_where_stepping_over_them_does(void **state)
{
    const char *text =
        "{\"a\":[1,{\"b\":\"]\"},[]],\"c\":{},\"d\":[],\"e\":\"x\",\"f\":[[2]]}";
    json_iter whole = json_begin(of(text)), halves = json_begin(of(text));
    int count = 0;
    (void)state;
    while (json_step(&halves)) {
        json_iter inner = json_enter(&halves);
        while (json_next(&inner))
            ;
        if (halves.value.type == JSON_ARRAY || halves.value.type == JSON_OBJECT)
            halves.value.size = json_left(&halves, &inner);
        json_finish(&halves);
        assert_int_equal(json_next(&whole), 1);
        assert_ptr_equal(whole.value.at, halves.value.at);
        assert_int_equal(whole.value.size, halves.value.size);
        assert_ptr_equal(whole.key.at, halves.key.at);
        count++;
    }
    assert_int_equal(json_next(&whole), 0);
    assert_int_equal(count, 5);
}

/* ------------------------------------------------------------------ writing */

static void written_strings_are_escaped_as_little_as_may_be(void **state)
{
    buf out;
    (void)state;
    buf_init(&out, &allocator_default);
    json_put_string(&out, "a\"b\\c/\b\f\n\r\t\x01\x1f\x7f\0\xe2\x80\xa8", 18);
    assert_string_equal(
        out.data, "\"a\\\"b\\\\c/\\b\\f\\n\\r\\t\\u0001\\u001f\x7f\\u0000\xe2\x80\xa8\"");
    buf_clear(&out);
    json_put_cstring(&out, "");
    assert_string_equal(out.data, "\"\"");
    buf_clear(&out);
    json_put_string(&out, NULL, 0);
    assert_string_equal(out.data, "\"\"");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_spans_of_the_text),
        cmocka_unit_test(members_are_found_by_decoded_name),
        cmocka_unit_test(containers_are_walked_in_order),
        cmocka_unit_test(strings_are_decoded),
        cmocka_unit_test(strings_are_compared_decoded),
        cmocka_unit_test(plain_strings_need_no_copy),
        cmocka_unit_test(integers_are_exact_or_nothing),
        cmocka_unit_test(a_walk_into_values_ends_where_stepping_over_them_does),
        cmocka_unit_test(written_strings_are_escaped_as_little_as_may_be),
    };
    return cmocka_run_group_tests_name("json_read", tests, NULL, NULL);
}
