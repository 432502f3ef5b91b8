/* test_pattern.c: sets of expressions: what they match, what the filter may leave out,
 * and what an expression may cost. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"
#include "screen/literals.h"
#include "screen/pattern.h"
#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

static pattern_set *set_of(const char *const *list)
{
    pattern_set *set;
    sessile_error err;
    char name[16];
    int i;

    assert_int_equal(pattern_set_new(&set, &allocator_default, &err), SESSILE_OK);
    for (i = 0; list[i]; i++) {
        snprintf(name, sizeof name, "p%d", i);
        if (pattern_set_add(set, name, slice_of(list[i]), &err))
            fail_msg("%s: %s", list[i], err.message);
    }
    pattern_set_ready(set);
    return set;
}

/* The matches as "0:1-4 1:0-2". */
static char *show(const pattern_set *set, sessile_slice text, int filter, char *out)
{
    pattern_hits hits;
    sessile_error err;
    size_t i, size = 0;

    pattern_hits_init(&hits, &allocator_default);
    if (pattern_set_match(set, text, filter, os_current, &hits, &err))
        snprintf(out, 500, "%.400s", err.message);
    else
        out[0] = 0;
    for (i = 0; i < hits.count && size < 400; i++)
        size += (size_t)sprintf(out + size, "%s%u:%zu-%zu", i ? " " : "",
                                hits.list[i].pattern, hits.list[i].from, hits.list[i].to);
    pattern_hits_deinit(&hits);
    return out;
}

static void check(const char *expression, const char *text, const char *expected)
{
    const char *list[] = {expression, NULL};
    pattern_set *set = set_of(list);
    char with[512], without[512];

    assert_string_equal(show(set, slice_of(text), 1, with), expected);
    assert_string_equal(show(set, slice_of(text), 0, without), expected);
    pattern_set_free(set);
}

static void matches_are_places_in_the_text(void **state)
{
    (void)state;
    check("ignore", "Please IGNORE it, ignore", "0:7-13 0:18-24");
    check("a.b", "a\nb", "0:0-3");
    check("(?-i)AKIA[0-9A-Z]{4}", "akia1234 AKIA1234", "0:9-17");
    check("key = \\K\\w+", "key = abc;", "0:6-9");
    check("\\bäpfel\\b", "drei ÄPFEL!", "0:5-11");
    check("(a|b)c", "ac bc", "0:0-2 0:3-5");
    check("nothing", "", "");
}

static void a_match_of_nothing_is_no_place(void **state)
{
    const char *list[] = {"x*", NULL};
    pattern_set *set = set_of(list);
    pattern_hits hits;
    (void)state;

    pattern_hits_init(&hits, &allocator_default);
    assert_int_equal(pattern_set_match(set, slice_of("äxx"), 1, os_current, &hits, NULL),
                     SESSILE_OK);
    assert_int_equal(hits.count, 1);
    assert_int_equal(hits.list[0].from, 2);
    assert_int_equal(hits.matched, 1);
    pattern_hits_deinit(&hits);
    pattern_set_free(set);
}

/* KELVIN SIGN is a k, and LONG S an s, for an expression that ignores case. */
static void the_filter_knows_letters_that_equal_ascii(void **state)
{
    (void)state;
    check("disk", "di\xc5\xbf\xe2\x84\xaa", "0:0-7");
}

static void a_long_text_is_searched_to_its_end(void **state)
{
    size_t size = 300000;
    char *text = malloc(size + 1), got[512], expected[64];
    const char *list[] = {"needle", "x{2000}y", "(?<=q)z", NULL};
    pattern_set *set = set_of(list);
    (void)state;

    memset(text, '.', size);
    text[size] = 0;
    memcpy(text + 4093, "needle", 6);
    memcpy(text + size - 6, "needle", 6);
    memset(text + 60000, 'x', 2000);
    text[62000] = 'y';
    memcpy(text + 131071, "qz", 2);
    snprintf(expected, sizeof expected,
             "0:4093-4099 0:299994-300000 1:60000-62001 "
             "2:131072-131073");
    assert_string_equal(show(set, slice_of(text), 1, got), expected);
    pattern_set_free(set);
    free(text);
}

static void steps_do_not_split_characters(void **state)
{
    size_t count = 50000, i;
    char *text = malloc(count * 3 + 8), got[512];
    const char *list[] = {"\xe2\x82\xac{3}needle", "[^\xe2\x82\xacnedl]", NULL};
    pattern_set *set = set_of(list);
    (void)state;

    for (i = 0; i < count; i++)
        memcpy(text + 3 * i, "\xe2\x82\xac", 3);
    memcpy(text + 3 * count, "needle", 7);
    assert_string_equal(show(set, slice_of(text), 1, got), "0:149991-150006");
    pattern_set_free(set);
    free(text);
}

static void an_expression_that_tries_too_much_fails(void **state)
{
    char text[64], got[512];
    const char *list[] = {"(a+)+$", NULL};
    pattern_set *set = set_of(list);
    (void)state;

    memset(text, 'a', 50);
    strcpy(text + 50, "!");
    assert_string_equal(show(set, slice_of(text), 1, got),
                        "the pattern 'p0' tries too many ways to match this text");
    pattern_set_free(set);
}

/* Every place looks ahead to the end: no single match is dear, all of them are. */
static void a_text_that_needs_too_long_fails(void **state)
{
    size_t size = (size_t)4 << 20;
    char *text = malloc(size + 1), got[512];
    const char *list[] = {"a(?=[^b]*+[bc])", NULL};
    pattern_set *set = set_of(list);
    (void)state;

    memset(text, 'a', size);
    text[size] = 0;
    assert_string_equal(show(set, slice_of(text), 1, got),
                        "the pattern 'p0' tries too many ways to match this text");
    pattern_set_free(set);
    free(text);
}

static void what_is_no_utf8_is_refused(void **state)
{
    char got[512];
    const char *list[] = {"a", NULL};
    pattern_set *set = set_of(list);
    (void)state;

    assert_string_equal(show(set, slice_of("a\xff"), 1, got),
                        "a text that is screened is UTF-8");
    pattern_set_free(set);
}

static void wrong_patterns_are_named(void **state)
{
    pattern_set *set;
    sessile_error err;
    char many[16];
    int i;
    (void)state;

    assert_int_equal(pattern_set_new(&set, &allocator_default, &err), SESSILE_OK);
    assert_int_equal(pattern_set_add(set, "a", slice_of("x(y"), &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "the pattern 'a' is wrong at byte 3"));
    assert_int_equal(pattern_set_add(set, "a b", slice_of("x"), &err), SESSILE_INVALID);
    assert_int_equal(pattern_set_add(set, "", slice_of("x"), &err), SESSILE_INVALID);
    assert_int_equal(pattern_set_add(set, "a", slice_of("\xff"), &err), SESSILE_INVALID);
    assert_int_equal(pattern_set_add(set, "a", slice_of(""), &err), SESSILE_INVALID);
    assert_int_equal(pattern_set_add(set, "a", slice_of("\\C"), &err), SESSILE_INVALID);
    assert_int_equal(pattern_set_add(set, "a", slice_of("x"), &err), SESSILE_OK);
    assert_int_equal(pattern_set_add(set, "a", slice_of("x"), &err), SESSILE_INVALID);
    for (i = 1; i < PATTERNS_MOST; i++) {
        snprintf(many, sizeof many, "n%d", i);
        assert_int_equal(pattern_set_add(set, many, slice_of("x"), &err), SESSILE_OK);
    }
    assert_int_equal(pattern_set_add(set, "z", slice_of("x"), &err), SESSILE_LIMIT);
    pattern_set_free(set);
}

/* ------------------------------------------------------------------ literals */

/* What is found in an expression, as "a|b"; "": nothing. */
static void needs(const char *expression, const char *expected)
{
    literals found;
    char got[512] = "";
    size_t i;

    literals_of(&found, expression, strlen(expression));
    for (i = 0; i < found.count; i++) {
        if (i)
            strcat(got, "|");
        strncat(got, found.list[i].text, found.list[i].size);
    }
    assert_string_equal(got, expected);
}

static void literals_are_what_a_match_cannot_do_without(void **state)
{
    (void)state;
    needs("Ignore", "ignore");
    needs("\\b(ignore|disregard)\\b.{0,40}\\b(previous|above)\\b", "ignore|disregard");
    needs("(ignore|skip).*rules", "rules");
    needs("colou?r", "colo");
    needs("ab+cdef", "cdef");
    needs("abc*", "");
    needs("abcd*", "abc");
    needs("abc{2}x", "abc");
    needs("(abc)?defg", "defg");
    needs("(abc)?", "");
    needs("(?:abc|d)", "");
    needs("(?i)abc", "abc");
    needs("(?<name>abc)", "abc");
    needs("(?=abc)de", "");
    needs("abc(?!x)def", "abcdef");
    needs("[abc]def", "def");
    needs("[]abc]def", "def");
    needs("[[:alpha:]]def", "def");
    needs("\\.com", ".com");
    needs("\\d{3}-\\d{2}", "");
    needs("\xc3\xa4pfel", "pfel");
    needs("a|bcd", "");
}

static void of_syntax_that_is_not_known_nothing_is_needed(void **state)
{
    const char *unknown[] = {"(?x) a b c",   "(?R)abc",    "(?(1)abc)",    "(*FAIL)abc",
                             "\\Qabc\\E",    "abc\\1",     "abc{,3}",      "(?#abc)def",
                             "(?P=name)abc", "abc\\x41bc", "[a\\Q]\\E]abc"};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof unknown / sizeof *unknown; i++)
        needs(unknown[i], "");
}

/* Expressions and texts of few letters: with and without the filter, the same matches. */
static void the_filter_hides_no_match(void **state)
{
    static const char *const parts[] = {"abc",        "(abc|cab)", "b?",     "c+", "[ab]",
                                        ".",          "a{2}",      "(bca)*", "|",  "\\b",
                                        "(?:ab|ba)c", "(?=ca)",    "k",      "s"};
    unsigned seed = 7;
    int round, i;
    (void)state;

    for (round = 0; round < 3000; round++) {
        char expression[128] = "", text[64], with[512], without[512];
        const char *list[] = {expression, NULL};
        pattern_set *set;
        for (i = 0; i < 4; i++) {
            seed = seed * 1103515245 + 12345;
            strcat(expression, parts[seed / 65536 % (sizeof parts / sizeof *parts)]);
        }
        for (i = 0; i < 30; i++) {
            seed = seed * 1103515245 + 12345;
            text[i] = "abcABCks "[seed / 65536 % 9];
        }
        text[30] = 0;
        set = set_of(list);
        show(set, slice_of(text), 1, with);
        show(set, slice_of(text), 0, without);
        if (strcmp(with, without) != 0)
            fail_msg("%s on %s: %s, not %s", expression, text, with, without);
        pattern_set_free(set);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(matches_are_places_in_the_text),
        cmocka_unit_test(a_match_of_nothing_is_no_place),
        cmocka_unit_test(the_filter_knows_letters_that_equal_ascii),
        cmocka_unit_test(a_long_text_is_searched_to_its_end),
        cmocka_unit_test(steps_do_not_split_characters),
        cmocka_unit_test(an_expression_that_tries_too_much_fails),
        cmocka_unit_test(a_text_that_needs_too_long_fails),
        cmocka_unit_test(what_is_no_utf8_is_refused),
        cmocka_unit_test(wrong_patterns_are_named),
        cmocka_unit_test(literals_are_what_a_match_cannot_do_without),
        cmocka_unit_test(of_syntax_that_is_not_known_nothing_is_needed),
        cmocka_unit_test(the_filter_hides_no_match),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
