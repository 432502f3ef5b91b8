/*
 * test_lines.c: lines that arrive in pieces, lines that are too long, JSON as lines.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>

#include "base/lines.h"

#include <cmocka.h>

static void expect_line(lines *l, const char *text)
{
    const char *line;
    size_t size;
    assert_int_equal(lines_next(l, &line, &size), LINES_ONE);
    assert_int_equal(size, strlen(text));
    assert_memory_equal(line, text, size);
}

static void expect(lines *l, lines_found found)
{
    const char *line;
    size_t size;
    assert_int_equal(lines_next(l, &line, &size), found);
}

static void feed(lines *l, const char *text)
{
    assert_int_equal(lines_feed(l, text, strlen(text)), 0);
}

static void lines_come_in_whatever_pieces(void **state)
{
    static const char text[] = "one\n\nthree\nfour";
    (void)state;
    for (size_t piece = 1; piece < sizeof text; piece++) {
        static const char *const wanted[] = {"one", "", "three"};
        size_t found = 0;
        lines l;
        lines_init(&l, &allocator_default, 100);
        for (size_t at = 0; at < strlen(text); at += piece) {
            size_t left = strlen(text) - at, size;
            const char *line;
            assert_int_equal(lines_feed(&l, text + at, left < piece ? left : piece), 0);
            while (lines_next(&l, &line, &size) == LINES_ONE) {
                assert_true(found < 3);
                assert_int_equal(size, strlen(wanted[found]));
                assert_memory_equal(line, wanted[found++], size);
            }
        }
        assert_int_equal(found, 3);
        expect(&l, LINES_NONE);
        lines_end(&l);
        expect_line(&l, "four");
        expect(&l, LINES_NONE);
        lines_deinit(&l);
    }
}

static void a_line_that_is_too_long_is_told_once_and_dropped(void **state)
{
    lines l;
    (void)state;
    lines_init(&l, &allocator_default, 4);
    feed(&l, "1234\n12345\nok\n");
    expect_line(&l, "1234");
    expect(&l, LINES_LONG);
    expect_line(&l, "ok");
    for (int i = 0; i < 1000; i++) {
        feed(&l, "more and more");
        expect(&l, i == 0 ? LINES_LONG : LINES_NONE);
        assert_true(lines_held(&l) == 0);
    }
    feed(&l, "\nback\n");
    expect_line(&l, "back");
    feed(&l, "12345");
    lines_end(&l);
    expect(&l, LINES_LONG);
    expect(&l, LINES_NONE);
    lines_deinit(&l);
}

static void expect_put(const char *text, size_t size, const char *wanted)
{
    buf out;
    buf_init(&out, &allocator_default);
    lines_put(&out, text, size);
    assert_string_equal(out.data, wanted);
    buf_deinit(&out);
}

static void json_is_one_line_for_every_reader(void **state)
{
    static const char ends[] = "\"a\xE2\x80\xA8\xE2\x80\xA9\xC2\x85z\xC3\xA9\"";
    (void)state;
    expect_put("{}", 2, "{}\n");
    expect_put("", 0, "\n");
    expect_put("{\n\"a\":\r\n1}", 10, "{ \"a\":  1}\n");
    expect_put(ends, sizeof ends - 1, "\"a\\u2028\\u2029\\u0085z\xC3\xA9\"\n");
    expect_put("\"\xFF\xE2\x80\"", 5, "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_come_in_whatever_pieces),
        cmocka_unit_test(a_line_that_is_too_long_is_told_once_and_dropped),
        cmocka_unit_test(json_is_one_line_for_every_reader),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
