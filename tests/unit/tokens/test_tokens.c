/*
 * test_tokens.c: that the estimate is near what tokenizers give, and grows as text does.
 *
 * Owns the promises of tokens/tokens.h. Prices are not tested to the token: what is, is
 * that each class of text lies in the range where several vocabularies put it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tokens/tokens.h"

#include <cmocka.h> /* after the engine: it makes a macro of the name fail */

static int64_t of_text(const char *text)
{
    return tokens_of_text(text, strlen(text));
}

static int64_t of_message(const char *text)
{
    message m;
    assert_int_equal(
        message_read(&m, text, strlen(text), NULL, NULL, NULL, &allocator_default, NULL),
        SESSILE_OK);
    return tokens_of_message(&m);
}

/* The estimate of a text, and the characters a token has in it, in tenths. */
static int64_t density(const char *text)
{
    return (int64_t)strlen(text) * 10 / of_text(text);
}

static void prose_has_about_four_characters_a_token(void **state)
{
    (void)state;
    assert_in_range(
        density("The harbour was quiet when the ferry came in, and only the two "
                "men who mend the nets looked up. It had been raining since the "
                "morning, which nobody there would have thought worth saying."),
        36, 50);
}

static void code_is_denser_than_prose(void **state)
{
    (void)state;
    assert_in_range(
        density("static int grow(struct list *l, size_t need)\n{\n    if (need <= "
                "l->capacity)\n        return 0;\n    l->items = realloc(l->items, "
                "need * sizeof *l->items);\n    return l->items ? 0 : -1;\n}\n"),
        22, 36);
}

static void base64_and_hex_have_about_two_characters_a_token(void **state)
{
    (void)state;
    assert_in_range(
        density("q83vASNFZ4mrze8BI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wEjRWeJ"
                "TWFueSBoYW5kcyBtYWtlIGxpZ2h0IHdvcmsuIE1hbnkgaGFuZHMgbWFrZQ"),
        15, 28);
    assert_in_range(
        density("9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08"
                "60303ae22b998861bce3b28f33eec1be758a213c86c93c076dbe9f558c11c752"),
        15, 28);
}

static void other_scripts_are_priced_by_character(void **state)
{
    (void)state;
    /* Ten characters each of Chinese, Cyrillic; three emoji. */
    assert_in_range(
        of_text("\xe4\xbd\xa0\xe5\xa5\xbd\xe4\xb8\x96\xe7\x95\x8c\xe4\xbd\xa0\xe5\xa5"
                "\xbd\xe4\xb8\x96\xe7\x95\x8c\xe4\xbd\xa0\xe5\xa5\xbd"),
        9, 16);
    assert_in_range(
        of_text("\xd0\xbf\xd1\x80\xd0\xb8\xd0\xb2\xd0\xb5\xd1\x82\xd0\xbc\xd0\xb8"
                "\xd1\x80\xd0\xb0"),
        3, 7);
    assert_in_range(of_text("\xf0\x9f\x98\x80\xf0\x9f\x98\x80\xf0\x9f\x98\x80"), 5, 10);
}

static void numbers_go_three_digits_to_a_token(void **state)
{
    (void)state;
    assert_in_range(of_text("123456789012345678901234567890"), 9, 12);
    assert_in_range(of_text("7"), 1, 1);
}

static void white_space_is_cheap(void **state)
{
    char text[4000];
    int64_t prose = of_text("one two three");
    (void)state;
    assert_int_equal(prose, 3);
    assert_in_range(of_text("one\n    two\n    three"), 5, 5);
    assert_int_equal(of_text("one  two"), 3);
    memset(text, ' ', sizeof text);
    assert_in_range(tokens_of_text(text, sizeof text), 40, 400); /* but not free */
    memset(text, '-', sizeof text);
    assert_in_range(tokens_of_text(text, sizeof text), 200, 1500);
    memset(text, 'a', sizeof text);
    assert_in_range(tokens_of_text(text, sizeof text), 500, 2000);
}

static void capitals_inside_a_word_begin_the_next(void **state)
{
    (void)state;
    assert_int_equal(of_text("readHeaderFrom"), 3);
    assert_int_equal(of_text("HTTPServer"), 2);
    assert_int_equal(of_text("Server"), 1);
    assert_int_equal(of_text("HTTP"), 1);
}

static void nothing_is_no_token(void **state)
{
    (void)state;
    assert_int_equal(tokens_of_text("", 0), 0);
    assert_int_equal(tokens_of_text(NULL, 0), 0);
    assert_int_equal(of_text("a"), 1);
}

/* Runs are counted alike wherever they stand in the blocks that are read at once: NULs
 * cost nothing, and move the text on. Prices of several
 * lengths, so that rounding hides nothing. */
static void the_place_of_a_text_does_not_matter(void **state)
{
    const char *text = "HTTPServer 123456 (\"long\"): \xc3\xa9 --------                  "
                       "               x  incomprehensible "
                       "UNCOMPREHENDING ------------- 12345678\n\n\t  end";
    size_t size, pad;
    (void)state;
    for (size = strlen(text) - 12; size <= strlen(text); size++) {
        int64_t alone = tokens_of_text(text, size);
        for (pad = 0; pad < 150; pad++) {
            char padded[400] = {0};
            memcpy(padded + pad, text, size);
            assert_int_equal(tokens_of_text(padded, pad + size), alone);
        }
    }
}

/* A megabyte of line breaks is few tokens, but not one. */
static void breaks_are_one_token_a_run(void **state)
{
    char text[800];
    (void)state;
    memset(text, '\n', sizeof text);
    assert_int_equal(tokens_of_text(text, 7), 1);
    assert_in_range(tokens_of_text(text, sizeof text), 10, 40);
}

static void more_text_is_never_fewer_tokens(void **state)
{
    const char *text =
        "void F(int argc) { return printf(\"%d\\n\", argc + 1000000); } // "
        "UPPERCASE_name \xe4\xbd\xa0\xe5\xa5\xbd\n\n\t\tend.....................";
    size_t size = strlen(text), n;
    int64_t before = 0;
    (void)state;
    for (n = 0; n <= size; n++) {
        int64_t now = tokens_of_text(text, n);
        assert_true(now >= before);
        before = now;
    }
}

/* ------------------------------------------------------------------ messages */

static void escapes_count_as_what_they_stand_for(void **state)
{
    (void)state;
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":\"one\\n    two \\u0066our\"}"),
        4 + of_text("one\n    two four"));
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":\"\\u4f60\\u597d\"}"),
        of_message("{\"role\":\"user\",\"content\":\"\xe4\xbd\xa0\xe5\xa5\xbd\"}"));
}

static void text_and_blocks_of_text_count_alike(void **state)
{
    int64_t plain = of_message("{\"role\":\"user\",\"content\":\"one two three\"}");
    (void)state;
    assert_int_equal(plain, 4 + 3);
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":[{\"type\":\"text\",\"text\":"
                   "\"one two three\"}]}"),
        plain);
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":[{\"text\":\"one two three\","
                   "\"type\":\"text\"}]}"),
        plain);
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":[\"one \",{\"text\":\"two "
                   "three\"}]}"),
        plain);
}

static void what_the_model_is_not_sent_counts_nothing(void **state)
{
    (void)state;
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":\"hi\",\"metadata\":{\"note\":"
                   "\"a long note that stays here\"},\"usage\":{\"input\":5},"
                   "\"author\":\"somebody\",\"x\":[1,2,3]}"),
        of_message("{\"role\":\"user\",\"content\":\"hi\"}"));
    assert_int_equal(of_message("{\"role\":\"user\"}"), 4);
    assert_int_equal(of_message("{\"role\":\"user\",\"content\":null}"), 4);
    assert_int_equal(
        of_message("{\"role\":\"model\",\"content\":[{\"type\":\"thinking\","
                   "\"thinking\":\"hm\",\"signature\":\"q83vASNFZ4mrze8BI0\"}]}"),
        of_message("{\"role\":\"model\",\"content\":\"hm\"}"));
}

static void calls_count_name_and_arguments_in_every_form(void **state)
{
    int64_t flat =
        of_message("{\"role\":\"model\",\"tool_calls\":[{\"id\":\"c\",\"name\":"
                   "\"read\",\"arguments\":\"{\\\"path\\\":\\\"a b\\\"}\"}]}");
    (void)state;
    assert_in_range(flat, 4 + 24 + 4, 4 + 24 + 12);
    assert_int_equal(
        of_message("{\"role\":\"model\",\"tool_calls\":[{\"id\":\"c\",\"function\":"
                   "{\"name\":\"read\",\"arguments\":\"{\\\"path\\\":\\\"a b\\\"}\"}}]}"),
        flat);
    assert_int_equal(
        of_message("{\"role\":\"model\",\"tool_calls\":[{\"id\":\"c\",\"name\":"
                   "\"read\",\"arguments\":{\"path\":\"a b\"}}]}"),
        flat);
    assert_int_equal(
        of_message("{\"role\":\"model\",\"content\":[{\"type\":\"tool_use\","
                   "\"id\":\"c\",\"name\":\"read\",\"input\":{\"path\":\"a b\"}}]}"),
        flat);
}

static void results_count_in_every_form(void **state)
{
    (void)state;
    assert_int_equal(of_message("{\"role\":\"tool\",\"tool_call_id\":\"c\",\"content\":"
                                "\"one two\"}"),
                     4 + 16 + 2);
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                   "\"tool_use_id\":\"c\",\"content\":\"one two\"}]}"),
        4 + 16 + 2);
    assert_int_equal(
        of_message("{\"role\":\"user\",\"content\":[{\"type\":\"tool_result\","
                   "\"tool_use_id\":\"c\",\"content\":[{\"type\":\"text\","
                   "\"text\":\"one two\"}]}]}"),
        4 + 16 + 2);
    assert_int_equal(
        of_message("{\"role\":\"model\",\"tool_calls\":[{\"id\":\"c\",\"name\":"
                   "\"read\",\"output\":\"one two\"}]}"),
        4 + 24 + 1 + 2);
}

static void media_is_not_counted_by_its_bytes(void **state)
{
    static char text[60000];
    char *data;
    int64_t first, last;
    (void)state;
    snprintf(text, sizeof text,
             "{\"role\":\"user\",\"content\":[{\"type\":\"image\",\"source\":"
             "{\"data\":\"%50000d\"}}]}",
             1);
    for (data = text; *data; data++)
        if (*data == ' ')
            *data = 'q';
    first = of_message(text);
    snprintf(text, sizeof text,
             "{\"role\":\"user\",\"content\":[{\"source\":{\"data\":\"%50000d\""
             "},\"type\":\"image\"}]}",
             1);
    last = of_message(text);
    assert_in_range(first, 100, 3000);
    assert_int_equal(first, last); /* wherever the type stands */
}

static void unknown_blocks_count_their_text(void **state)
{
    (void)state;
    assert_in_range(
        of_message("{\"role\":\"model\",\"content\":[{\"type\":\"refusal\",\"id\":"
                   "\"abcdef0123456789\",\"refusal\":\"one two three\"}]}"),
        7, 7);
}

static void nested_blocks_end_somewhere(void **state)
{
    buf b;
    int i;
    (void)state;
    buf_init(&b, &allocator_default);
    buf_puts(&b, "{\"role\":\"user\",\"content\":");
    for (i = 0; i < 10000; i++)
        buf_puts(&b, "[{\"type\":\"tool_result\",\"content\":");
    buf_puts(&b, "\"x\"");
    for (i = 0; i < 10000; i++)
        buf_puts(&b, "}]");
    buf_puts(&b, "}");
    assert_true(of_message(b.data) > 10000);
    buf_deinit(&b);
}

static void the_margin_holds_the_estimate(void **state)
{
    static const int64_t counts[] = {0, 1, 5, 100, 1000000, INT64_MAX};
    int64_t low, high;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof counts / sizeof *counts; i++) {
        tokens_margin(counts[i], &low, &high);
        assert_true(low >= 0 && low <= counts[i] && high >= counts[i]);
    }
    tokens_margin(1000, &low, &high);
    assert_in_range(low, 700, 900);
    assert_in_range(high, 1100, 1300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(prose_has_about_four_characters_a_token),
        cmocka_unit_test(code_is_denser_than_prose),
        cmocka_unit_test(base64_and_hex_have_about_two_characters_a_token),
        cmocka_unit_test(other_scripts_are_priced_by_character),
        cmocka_unit_test(numbers_go_three_digits_to_a_token),
        cmocka_unit_test(white_space_is_cheap),
        cmocka_unit_test(capitals_inside_a_word_begin_the_next),
        cmocka_unit_test(nothing_is_no_token),
        cmocka_unit_test(the_place_of_a_text_does_not_matter),
        cmocka_unit_test(breaks_are_one_token_a_run),
        cmocka_unit_test(more_text_is_never_fewer_tokens),
        cmocka_unit_test(escapes_count_as_what_they_stand_for),
        cmocka_unit_test(text_and_blocks_of_text_count_alike),
        cmocka_unit_test(what_the_model_is_not_sent_counts_nothing),
        cmocka_unit_test(calls_count_name_and_arguments_in_every_form),
        cmocka_unit_test(results_count_in_every_form),
        cmocka_unit_test(media_is_not_counted_by_its_bytes),
        cmocka_unit_test(unknown_blocks_count_their_text),
        cmocka_unit_test(nested_blocks_end_somewhere),
        cmocka_unit_test(the_margin_holds_the_estimate),
    };
    return cmocka_run_group_tests_name("tokens", tests, NULL, NULL);
}
