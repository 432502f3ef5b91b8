/*
 * test_json.c: what is JSON, what is not, and that what is leaves as it came.
 *
 * Owns the promise "JSON in is JSON out". Random values come from a seed that is printed
 * when one fails; SEED in the environment runs it again. cJSON judges beside us where it
 * is able to: it reads numbers as doubles and ends strings at \u0000.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/text.h"
#include "codec/json.h"
#include "support/rations.h"

#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

#define DEPTH 128

/* Checks size bytes that lie in a block of exactly that size, so that a sanitizer sees a
 * read past the end. */
static sessile_status check_bytes(buf *out, const char *text, size_t size,
                                  sessile_error *err)
{
    char *copy = malloc(size ? size : 1);
    sessile_status status;
    assert_non_null(copy);
    memcpy(copy, text, size);
    status = json_check(out, copy, size, DEPTH, err);
    free(copy);
    return status;
}

static void assert_compact(const char *text, const char *compact)
{
    sessile_error err;
    buf out;
    buf_init(&out, &allocator_default);
    if (check_bytes(&out, text, strlen(text), &err))
        fail_msg("%s: %s", text, err.message);
    assert_string_equal(out.data, compact);
    buf_deinit(&out);
}

static void assert_same(const char *text)
{
    assert_compact(text, text);
}

static void assert_invalid(const char *text, size_t size)
{
    sessile_error err;
    buf out;
    buf_init(&out, &allocator_default);
    buf_puts(&out, "before");
    if (check_bytes(&out, text, size, &err) != SESSILE_INVALID)
        fail_msg("taken: %.*s", (int)size, text);
    assert_string_equal(out.data, "before");
    assert_int_equal(out.size, 6);
    assert_non_null(strstr(err.message, "byte "));
    buf_deinit(&out);
}

/* ------------------------------------------------------------------ valid */

static void text_is_kept_token_for_token(void **state)
{
    static const char *const same[] = {
        "9007199254740993",
        "1e400",
        "-0",
        "-0.0",
        "1E+2",
        "1e-2",
        "0.1000",
        "123456789012345678901234567890",
        "\"a\\u0000b\"",
        "\"\\u2028\"",
        "\"\xe2\x80\xa8\"",
        "\"\\/\"",
        "\"/\"",
        "\"\\ud800\"",
        "\"\\udc00\\ud800\"",
        "\"\\uD83D\\uDE00\"",
        "\"\xf0\x9f\x98\x80\"",
        "\"\\u00E9\\b\\f\\n\\r\\t\\\"\\\\\"",
        "{}",
        "[]",
        "\"\"",
        "null",
        "true",
        "false",
        "{\"\":0}",
        "{\"\":{\"\":[]}}",
        "{\"a\":1,\"a\":2,\"a\":1}",
        "[[],{},[[]]]",
        "[0]",
        "\"\x7f\"",
        "{\"role\":\"user\",\"content\":[{\"type\":\"text\"},null,1.5e+10,[true,false]]}",
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof same / sizeof *same; i++)
        assert_same(same[i]);
}

static void white_space_outside_strings_is_dropped(void **state)
{
    (void)state;
    assert_compact(" \t\r\n{ \"a b\" :\n[ 1 ,\t2 , { } ] , \"c\" : \" d \\n \" }\r\n",
                   "{\"a b\":[1,2,{}],\"c\":\" d \\n \"}");
    assert_compact("  1  ", "1");
    assert_compact("[ ]", "[]");
    assert_compact("{\n}", "{}");
    assert_compact(" \"  \" ", "\"  \"");
}

static void output_is_appended(void **state)
{
    sessile_error err;
    buf out;
    (void)state;
    buf_init(&out, &allocator_default);
    buf_puts(&out, "x");
    assert_int_equal(json_check(&out, "[ 1 ]", 5, DEPTH, &err), SESSILE_OK);
    assert_int_equal(json_check(&out, " 2", 2, DEPTH, &err), SESSILE_OK);
    assert_string_equal(out.data, "x[1]2");
    buf_deinit(&out);
}

static void long_strings_are_kept(void **state)
{
    size_t size = 200 * 1024, i;
    char *text = malloc(size + 1);
    (void)state;
    memset(text, 'a', size);
    text[0] = text[size - 1] = '"';
    text[size] = 0;
    assert_same(text);
    for (i = 1; i + 3 < size; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    assert_same(text);
    text[size - 1] = 'a'; /* and never closed */
    assert_invalid(text, size);
    free(text);
}

/* ------------------------------------------------------------------ invalid */

static void what_is_not_json_is_refused(void **state)
{
    static const char *const bad[] = {
        "",
        " ",
        "[1,]",
        "{\"a\":1,}",
        "[,1]",
        "[1,,2]",
        "{,}",
        "[1 2]",
        "{\"a\" 1}",
        "{\"a\":}",
        "{\"a\"}",
        "{a:1}",
        "{'a':1}",
        "{1:2}",
        "{\"a\":1 \"b\":2}",
        "{null:1}",
        "// c\n1",
        "/* c */1",
        "1 // c",
        "[1] x",
        "[1][2]",
        "1 2",
        "{}{}",
        "nulll",
        "truee",
        "NaN",
        "-NaN",
        "Infinity",
        "-Infinity",
        "nul",
        "tru",
        "fals",
        "True",
        "NULL",
        "undefined",
        "01",
        "-01",
        "00",
        "+1",
        ".5",
        "1.",
        "1.e5",
        "1e",
        "1e+",
        "1E-",
        "-",
        "--1",
        "0x10",
        "1_000",
        "1a",
        "-a",
        "1.5.5",
        "\"",
        "\"abc",
        "\"\\\"",
        "\"\\",
        "\"\\x41\"",
        "\"\\a\"",
        "\"\\'\"",
        "\"\\u\"",
        "\"\\u12\"",
        "\"\\u123\"",
        "\"\\u123g\"",
        "\"\\U1234\"",
        "\"\\u12",
        "'a'",
        "[",
        "]",
        "{",
        "}",
        "[1",
        "[1,",
        "{\"a\"",
        "{\"a\":",
        "{\"a\":1",
        "{\"a\":1,",
        "[}",
        "{]",
        "[1}",
        "{\"a\":1]",
        "[[]",
        "[]]",
        "\xef\xbb\xbf{}",
        "\xef\xbb\xbf",
        "\xc2\xa0"
        "1",
        "\"a\nb\"",
        "\"a\tb\"",
        "\"\x01\"",
        "\"\x1f\"",
        "\"\r\"",
        "\x0b"
        "1",
        "\f1",
        "\"\\u00zz\"",
        "\"\\n",
        "[\"a\",\"b\"",
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_invalid(bad[i], strlen(bad[i]));
    assert_invalid("1\0", 2);
    assert_invalid("\0", 1);
    assert_invalid("\"a\0b\"", 5);
    assert_invalid("[1,\0002]", 6);
}

static void strings_that_are_not_utf8_are_refused_at_every_place(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\xaf",
        "\xc1\x81",
        "\xc2",
        "\xc3(",
        "\xe0\x80\xaf",
        "\xe2\x82",
        "\xe2(\xa1",
        "\xed\xa0\x80",
        "\xed\xb0\x80",
        "\xf0\x80\x80\xaf",
        "\xf0\x9f\x98",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xfe",
        "\xff",
    };
    size_t i, pad;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (pad = 0; pad < 18; pad++) {
            char text[64];
            int size = snprintf(text, sizeof text, "\"%.*s%saaaaaaaaaaaa\"", (int)pad,
                                "aaaaaaaaaaaaaaaaaaaa", bad[i]);
            assert_invalid(text, (size_t)size);
            assert_invalid(text, 1 + pad + strlen(bad[i])); /* cut off there, too */
        }
    }
}

/* Every control character, at every place of a word. */
static void control_characters_must_be_escaped(void **state)
{
    char text[20];
    int c, at;
    (void)state;
    for (c = 0; c < 0x20; c++) {
        for (at = 1; at < 18; at++) {
            memset(text, 'a', sizeof text);
            text[0] = text[19] = '"';
            text[at] = (char)c;
            assert_invalid(text, sizeof text);
        }
    }
}

static void errors_name_the_byte(void **state)
{
    sessile_error err;
    buf out;
    (void)state;
    buf_init(&out, &allocator_default);
    json_check(&out, "{\"a\": tru}", 10, DEPTH, &err);
    assert_string_equal(err.message, "not JSON: no JSON value, at byte 6");
    json_check(&out, "[1, 2] 3", 8, DEPTH, &err);
    assert_string_equal(err.message,
                        "not JSON: text after the end of the value, at byte 7");
    buf_deinit(&out);
}

static void every_prefix_of_a_value_is_refused(void **state)
{
    const char *text =
        "{\"a\":[1.5e-3,\"\\u00e9\\n\xc3\xa9\",true,null,{\"b\":false}],\"\":-0}";
    size_t size;
    (void)state;
    for (size = 0; size < strlen(text); size++)
        assert_invalid(text, size);
    assert_same(text);
}

/* ------------------------------------------------------------------ depth */

static sessile_status check_nested(unsigned levels, unsigned depth, const char *open,
                                   const char *close)
{
    sessile_error err;
    sessile_status status;
    buf text, out;
    unsigned i;
    buf_init(&text, &allocator_default);
    buf_init(&out, &allocator_default);
    for (i = 0; i < levels; i++)
        buf_puts(&text, i % 2 ? open : "[");
    buf_puts(&text, "1");
    while (i-- > 0)
        buf_puts(&text, i % 2 ? close : "]");
    status = json_check(&out, text.data, text.size, depth, &err);
    if (!status)
        assert_string_equal(out.data, text.data);
    else if (status == SESSILE_LIMIT)
        assert_non_null(strstr(err.message, "[depth]"));
    buf_deinit(&text);
    buf_deinit(&out);
    return status;
}

static void nesting_stops_at_the_limit(void **state)
{
    static const unsigned limits[] = {1, 2, 7, 8, 9, 128, 511, 512, 513, 5000};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof limits / sizeof *limits; i++) {
        assert_int_equal(check_nested(limits[i], limits[i], "{\"a\":", "}"), SESSILE_OK);
        assert_int_equal(check_nested(limits[i] + 1, limits[i], "{\"a\":", "}"),
                         SESSILE_LIMIT);
        assert_int_equal(check_nested(limits[i], limits[i], "{\"a\":", "]"),
                         limits[i] > 1 ? SESSILE_INVALID : SESSILE_OK);
    }
    assert_int_equal(check_nested(0, 0, "", ""), SESSILE_OK);
    assert_int_equal(check_nested(1, 0, "", ""), SESSILE_LIMIT);
}

static void deep_text_costs_no_stack(void **state)
{
    size_t size = 4000000;
    char *text = malloc(size);
    sessile_error err;
    buf out;
    json value;
    (void)state;
    memset(text, '[', size / 2);
    memset(text + size / 2, ']', size / 2);
    buf_init(&out, &allocator_default);
    assert_int_equal(json_check(&out, text, size, UINT32_MAX, &err), SESSILE_OK);
    value = json_of(out.data, out.size);
    assert_int_equal(value.size, size);
    buf_deinit(&out);
    free(text);
}

static void want_of_memory_leaves_the_output_as_it_was(void **state)
{
    rations memory = {0, 0};
    allocator a = {ration, &memory};
    sessile_error err;
    char text[2000];
    buf out;
    (void)state;
    memset(text, '[', 1000);
    memset(text + 1000, ']', 1000);
    buf_init(&out, &a);
    assert_int_equal(json_check(&out, text, 2000, 1000, &err), SESSILE_NOMEM);
    buf_clear(&out);
    memory.left = 1; /* the output, but not the stack of a deep limit */
    assert_int_equal(json_check(&out, text, 2000, 1000, &err), SESSILE_NOMEM);
    assert_int_equal(out.size, 0);
    buf_deinit(&out);
}

/* ------------------------------------------------------------------ random values */

static uint64_t seed, dice;

static uint64_t roll(uint64_t sides)
{
    dice ^= dice << 13;
    dice ^= dice >> 7;
    dice ^= dice << 17;
    return (dice >> 16) % sides;
}

static void put_random_space(buf *spaced)
{
    static const char spaces[] = " \t\r\n";
    if (roll(3) == 0) {
        uint64_t n = roll(4);
        while (n-- > 0)
            buf_putc(spaced, spaces[roll(4)]);
    }
}

static void put_both(buf *tight, buf *spaced, const char *text)
{
    buf_puts(tight, text);
    buf_puts(spaced, text);
}

/* judged: nothing that cJSON reads as something else. */
static void put_random_string(buf *tight, buf *spaced, int judged)
{
    static const char *const pieces[] = {
        "a",
        " ",
        "word",
        "\\n",
        "\\\"",
        "\\\\",
        "\\/",
        "\xc3\xa9",
        "\xe2\x80\xa8",
        "\xf0\x9f\x98\x80",
        "\\u00e9",
        "\\uD83D\\uDE00",
        "{",
        "}",
        "[",
        "]",
        ",",
        ":",
        "'",
        "0123456789abcdef",
        "\x7f",
        "\\u2028",
        /* from here: not for the judge */ "\\u0000",
        "\\ud800",
        "\\udfff",
    };
    uint64_t n = roll(12);
    put_both(tight, spaced, "\"");
    while (n-- > 0)
        put_both(tight, spaced, pieces[roll(judged ? 22 : 25)]);
    put_both(tight, spaced, "\"");
}

static void put_random_value(buf *tight, buf *spaced, int depth, int judged)
{
    static const char *const words[] = {
        "null", "true", "false",         "0",   "-0",    "1", "-1.5", "9007199254740993",
        "1E+2", "1e-7", "123456789.125", "0.0", "1e400",
    };
    uint64_t i, n, kind = roll(depth > 0 ? 4 : 2);

    put_random_space(spaced);
    if (kind == 0) {
        put_both(tight, spaced, words[roll(judged ? 12 : 13)]);
    } else if (kind == 1) {
        put_random_string(tight, spaced, judged);
    } else {
        put_both(tight, spaced, kind == 2 ? "[" : "{");
        n = roll(6);
        for (i = 0; i < n; i++) {
            if (i > 0)
                put_both(tight, spaced, ",");
            if (kind == 3) {
                put_random_space(spaced);
                put_random_string(tight, spaced, judged);
                put_random_space(spaced);
                put_both(tight, spaced, ":");
            }
            put_random_value(tight, spaced, depth - 1, judged);
        }
        put_random_space(spaced);
        put_both(tight, spaced, kind == 2 ? "]" : "}");
    }
    put_random_space(spaced);
}

/* Buffers for one test: its state. */
enum { BUFFERS = 4 };

static int open_buffers(void **state)
{
    static buf buffers[BUFFERS];
    for (int i = 0; i < BUFFERS; i++)
        buf_init(&buffers[i], &allocator_default);
    *state = buffers;
    return 0;
}

static int close_buffers(void **state)
{
    for (int i = 0; i < BUFFERS; i++)
        buf_deinit((buf *)*state + i);
    return 0;
}

static void clear_all(buf *buffers)
{
    for (int i = 0; i < BUFFERS; i++)
        buf_clear(&buffers[i]);
}

static void random_values_come_back_byte_for_byte(void **state)
{
    sessile_error err;
    buf *all = *state, *tight = all, *spaced = all + 1, *out = all + 2;
    int i;
    for (i = 0; i < 20000; i++) {
        clear_all(all);
        put_random_value(tight, spaced, 5, 0);
        if (check_bytes(out, spaced->data, spaced->size, &err) ||
            out->size != tight->size || memcmp(out->data, tight->data, out->size) != 0)
            fail_msg("SEED=%llu, value %d: %s\n%s", (unsigned long long)seed, i,
                     err.message, spaced->data);
        assert_int_equal(json_of(out->data, out->size).size, out->size);
    }
}

static void another_reader_finds_the_same_value(void **state)
{
    sessile_error err;
    buf *all = *state, *tight = all, *spaced = all + 1, *out = all + 2;
    int i;
    for (i = 0; i < 5000; i++) {
        cJSON *before, *after;
        clear_all(all);
        put_random_value(tight, spaced, 5, 1);
        before = cJSON_ParseWithLengthOpts(spaced->data, spaced->size, NULL, 0);
        assert_int_equal(check_bytes(out, spaced->data, spaced->size, &err), SESSILE_OK);
        after = cJSON_ParseWithLengthOpts(out->data, out->size, NULL, 0);
        /* cJSON_Compare finds no equals among members of one name: printed, then. */
        if (!before || !after) {
            fail_msg("SEED=%llu, value %d: %s", (unsigned long long)seed, i,
                     spaced->data);
        } else {
            char *a = cJSON_PrintUnformatted(before), *b = cJSON_PrintUnformatted(after);
            if (strcmp(a, b) != 0)
                fail_msg("SEED=%llu, value %d: %s\n%s", (unsigned long long)seed, i, a,
                         b);
            cJSON_free(a);
            cJSON_free(b);
        }
        cJSON_Delete(before);
        cJSON_Delete(after);
    }
}

/* Values with a byte changed: whatever we take, we take again unchanged, and a reader of
 * the result never leaves it. */
static void damaged_values_are_taken_or_refused_but_never_misread(void **state)
{
    sessile_error err;
    buf *all = *state, *tight = all, *spaced = all + 1, *out = all + 2, *again = all + 3;
    int i;
    for (i = 0; i < 20000; i++) {
        static const char bytes[] = "\"\\{}[],:0-.eun \x01\x80\xff\xe2";
        char *copy;
        json value;
        json_iter it;
        clear_all(all);
        put_random_value(tight, spaced, 4, 0);
        spaced->data[roll(spaced->size)] = bytes[roll(sizeof bytes)];
        /* The reader on text that nobody checked: stays inside, and ends. */
        copy = malloc(spaced->size);
        memcpy(copy, spaced->data, spaced->size);
        value = json_of(copy, spaced->size);
        for (it = json_begin(value); json_next(&it);) {
            assert_true(it.value.at >= copy && it.value.size > 0 &&
                        it.value.at + it.value.size <= copy + spaced->size);
            (void)json_get(it.value, "a");
            buf_clear(again);
            (void)json_string(again, it.value);
        }
        free(copy);
        buf_clear(again);
        if (!check_bytes(out, spaced->data, spaced->size, &err)) {
            assert_int_equal(check_bytes(again, out->data, out->size, &err), SESSILE_OK);
            assert_int_equal(out->size, again->size);
            assert_memory_equal(out->data, again->data, out->size);
        }
    }
}

static void written_strings_are_read_back(void **state)
{
    unsigned char bytes[64];
    sessile_error err;
    buf *all = *state, *out = all, *checked = all + 1, *back = all + 2;
    int i;
    for (i = 0; i < 5000; i++) {
        size_t size = (size_t)roll(sizeof bytes), j;
        for (j = 0; j < size; j++)
            bytes[j] = (unsigned char)roll(128);
        clear_all(all);
        json_put_string(out, bytes, size);
        assert_int_equal(check_bytes(checked, out->data, out->size, &err), SESSILE_OK);
        assert_int_equal(json_string(back, json_of(checked->data, checked->size)), 0);
        assert_int_equal(back->size, size);
        assert_memory_equal(back->data, bytes, size);
    }
}

static void numbers_are_written_to_the_millionth(void **state)
{
    buf out;

    (void)state;
    buf_init(&out, &allocator_default);
    json_put_millionths(&out, 0);
    buf_putc(&out, ' ');
    json_put_millionths(&out, 0.8);
    buf_putc(&out, ' ');
    json_put_millionths(&out, 1);
    buf_putc(&out, ' ');
    json_put_millionths(&out, 12.3456785);
    buf_putc(&out, '\0');
    assert_string_equal(out.data, "0.000000 0.800000 1.000000 12.345679");
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_are_written_to_the_millionth),
        cmocka_unit_test(text_is_kept_token_for_token),
        cmocka_unit_test(white_space_outside_strings_is_dropped),
        cmocka_unit_test(output_is_appended),
        cmocka_unit_test(long_strings_are_kept),
        cmocka_unit_test(what_is_not_json_is_refused),
        cmocka_unit_test(strings_that_are_not_utf8_are_refused_at_every_place),
        cmocka_unit_test(control_characters_must_be_escaped),
        cmocka_unit_test(errors_name_the_byte),
        cmocka_unit_test(every_prefix_of_a_value_is_refused),
        cmocka_unit_test(nesting_stops_at_the_limit),
        cmocka_unit_test(deep_text_costs_no_stack),
        cmocka_unit_test(want_of_memory_leaves_the_output_as_it_was),
        cmocka_unit_test_setup_teardown(random_values_come_back_byte_for_byte,
                                        open_buffers, close_buffers),
        cmocka_unit_test_setup_teardown(another_reader_finds_the_same_value, open_buffers,
                                        close_buffers),
        cmocka_unit_test_setup_teardown(
            damaged_values_are_taken_or_refused_but_never_misread, open_buffers,
            close_buffers),
        cmocka_unit_test_setup_teardown(written_strings_are_read_back, open_buffers,
                                        close_buffers),
    };
    const char *given = getenv("SEED");
    seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    dice = seed * UINT64_C(0x9e3779b97f4a7c15) | 1;
    print_message("SEED=%llu\n", (unsigned long long)seed);
    return cmocka_run_group_tests_name("json", tests, NULL, NULL);
}
