/*
 * test_words.c: what a text is cut into.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "memory/words.h"
#include "support/logs.h"

#include <cmocka.h>

static int put_term(void *arg, const char *term, size_t size)
{
    buf *out = arg;
    if (out->size)
        buf_putc(out, ' ');
    buf_put(out, term, size);
    return 0;
}

static void expect_flags(const char *language, unsigned flags, const char *text,
                         const char *terms)
{
    words *w;
    buf out;

    buf_init(&out, &allocator_default);
    assert_int_equal(words_open(&w, language, &allocator_default, NULL), SESSILE_OK);
    assert_int_equal(words_each(w, text, strlen(text), flags, put_term, &out), 0);
    assert_string_equal(out.size ? out.data : "", terms);
    buf_deinit(&out);
    words_close(w);
}

static void expect(const char *language, const char *text, const char *terms)
{
    expect_flags(language, 0, text, terms);
}

static void words_are_stemmed(void **state)
{
    (void)state;
    expect("english", "She prefers aisle seats; preferring windows never.",
           "prefer aisl seat prefer window never");
    expect("german", "Die Häuser und das Haus", "haus haus");
    expect("russian", "красный красного", "красн красн");
}

static void case_accents_and_forms_do_not_matter(void **state)
{
    (void)state;
    expect("english", "CAFÉ café cafe Cafe\xcc\x81", "cafe cafe cafe cafe");
    expect("english", "ﬁle FILE ｆｉｌｅ", "file file file");
    expect("german", "Straße STRASSE", "strass strass");
    expect("french", "résumé résumés", "resum resum");
    /* A vowel sign is no accent. */
    expect("english", "कि", "कि");
}

static void strokes_do_not_matter(void **state)
{
    (void)state;
    expect("english", "Łódź lodz", "lodz lodz");
    expect("english", "Øre Đorđe Ħal ıx Ŧu", "ore dord hal ix tu");
    expect("danish", "ø", "o");
    expect("english", "æ þ ŋ", "æ þ ŋ");
}

static void stop_words_are_left_out_unless_nothing_is_left(void **state)
{
    (void)state;
    expect("english", "what is the editor that he uses?", "editor use");
    expect("english", "To be, or not to be?", "to be or not to be");
    expect("english", "I don't, Ann's", "ann");
    expect("german", "was ist über uns", "was ist uber uns");
    expect("hungarian", "a", "a");
    expect("english", "", "");
    expect("english", " ... !", "");
}

static void numbers_and_names_of_code_are_terms(void **state)
{
    (void)state;
    expect("english", "port 8080, v2.1, session_open()", "port 8080 v2 1 session open");
    expect("english", "a #1 at 50 %", "1 50");
}

static void characters_without_spaces_go_in_pairs(void **state)
{
    (void)state;
    expect("english", "東京都 iPhone手機", "東 東京 京 京都 都 iphon 手 手機 機");
    expect_flags("english", WORDS_QUESTION, "東京都", "東京 京都");
    expect_flags("english", WORDS_QUESTION, "猫?", "猫");
    expect_flags("english", WORDS_QUESTION, "한국어", "한국 국어");
    expect_flags("english", WORDS_QUESTION, "ｶﾀｶﾅ", "カタ タカ カナ");
}

static void a_long_word_is_cut(void **state)
{
    char text[300], term[65];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    memset(term, 'x', 64);
    term[64] = '\0';
    expect("english", text, term);
}

static void a_day_is_in_words(void **state)
{
    static const struct {
        const char *language, *time, *day;
    } days[] = {
        {"english", "2023-05-08T13:56:00Z", "8 May 2023"},
        {"english", "2024-12-31T23:59:59Z", "31 December 2024"},
        {"german", "2023-03-01T00:00:00Z", "1 März 2023"},
        {"finnish", "2023-10-21T00:00:00Z", "21 lokakuu 2023"},
        {"tamil", "2023-02-28T00:00:00Z", "28 February 2023"},
    };
    char day[WORDS_DAY_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof days / sizeof *days; i++) {
        words *w;
        int64_t ms;
        assert_int_equal(time_parse(days[i].time, strlen(days[i].time), &ms), 0);
        assert_int_equal(words_open(&w, days[i].language, &allocator_default, NULL), 0);
        words_day(w, ms, day);
        assert_string_equal(day, days[i].day);
        words_close(w);
    }
}

static void every_day_of_every_language_has_room(void **state)
{
    static const char *const languages[] = {
        "english", "german", "french",    "spanish", "italian", "portuguese", "dutch",
        "swedish", "danish", "norwegian", "finnish", "russian", "indonesian"};
    char day[WORDS_DAY_SIZE];
    (void)state;
    for (size_t i = 0; i < sizeof languages / sizeof *languages; i++) {
        words *w;
        assert_int_equal(words_open(&w, languages[i], &allocator_default, NULL), 0);
        for (int month = 0; month < 12; month++) {
            words_day(w, INT64_C(1700000000000) + month * INT64_C(30) * 86400000, day);
            assert_true(strlen(day) >= strlen("1 mai 2023") - 1);
            assert_true(utf8_valid(day, strlen(day)));
            assert_null(strstr(day, "  ")); /* there are twelve */
        }
        words_close(w);
    }
}

static void an_unknown_language_names_the_known_ones(void **state)
{
    words *w;
    sessile_error err;
    (void)state;
    assert_int_equal(words_open(&w, "klingon", &allocator_default, &err),
                     SESSILE_INVALID);
    assert_null(w);
    assert_non_null(strstr(err.message, "klingon"));
    assert_non_null(strstr(err.message, "english"));
}

static void any_bytes_are_cut(void **state)
{
    words *w;
    buf out;
    unsigned seed = 15;
    (void)state;
    buf_init(&out, &allocator_default);
    assert_int_equal(words_open(&w, "french", &allocator_default, NULL), SESSILE_OK);
    assert_int_equal(words_each(w,
                                "abc\xff"
                                "def\xc3",
                                8, 0, put_term, &out),
                     0);
    assert_string_equal(out.data, "abc def");
    for (int round = 0; round < 3000; round++) {
        char text[200];
        size_t size = (size_t)(rand_r(&seed) % 200);
        for (size_t i = 0; i < size; i++) {
            int kind = rand_r(&seed) % 4;
            text[i] = (char)(kind == 0   ? rand_r(&seed)
                             : kind == 1 ? 0xe0 | (rand_r(&seed) % 16)
                             : kind == 2 ? 0x80 | (rand_r(&seed) % 64)
                                         : 'a' + rand_r(&seed) % 26);
        }
        buf_clear(&out);
        assert_int_equal(words_each(w, text, size, 0, put_term, &out), 0);
        assert_true(utf8_valid(out.data ? out.data : "", out.size));
    }
    words_close(w);
    buf_deinit(&out);
}

static int stop_at_once(void *arg, const char *term, size_t size)
{
    (void)term;
    (void)size;
    ++*(int *)arg;
    return 7;
}

static void a_visitor_ends_the_walk(void **state)
{
    words *w;
    int visits = 0;
    (void)state;
    assert_int_equal(words_open(&w, "english", &allocator_default, NULL), SESSILE_OK);
    assert_int_equal(words_each(w, "one 東京 three", 16, 0, stop_at_once, &visits), 7);
    assert_int_equal(visits, 1);
    words_close(w);
}

static void no_memory_is_reported(void **state)
{
    (void)state;
    for (size_t fail = 1; fail < 100; fail++) {
        meter m = {.fail_at = fail};
        allocator a = meter_allocator(&m);
        buf out;
        words *w;
        sessile_status status = words_open(&w, "english", &a, NULL);
        int result = -1;
        buf_init(&out, &allocator_default);
        if (status == SESSILE_OK)
            result = words_each(w, "n\xc3\xa4her \xff", 8, 0, put_term, &out);
        else
            assert_int_equal(status, SESSILE_NOMEM);
        buf_deinit(&out);
        words_close(w);
        assert_int_equal(m.live, 0);
        if (result == 0)
            return;
    }
    fail_msg("it never succeeded");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_stemmed),
        cmocka_unit_test(case_accents_and_forms_do_not_matter),
        cmocka_unit_test(strokes_do_not_matter),
        cmocka_unit_test(stop_words_are_left_out_unless_nothing_is_left),
        cmocka_unit_test(numbers_and_names_of_code_are_terms),
        cmocka_unit_test(characters_without_spaces_go_in_pairs),
        cmocka_unit_test(a_long_word_is_cut),
        cmocka_unit_test(a_day_is_in_words),
        cmocka_unit_test(every_day_of_every_language_has_room),
        cmocka_unit_test(an_unknown_language_names_the_known_ones),
        cmocka_unit_test(any_bytes_are_cut),
        cmocka_unit_test(a_visitor_ends_the_walk),
        cmocka_unit_test(no_memory_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
