/*
 * test_pretoken.c: that the scanners cut text as the regular expressions do which they
 * stand for.
 *
 * PCRE2 judges, with its own tables of Unicode, which are another version's: characters
 * that it does not know yet, or knows as something else, are named in a figure and left
 * out.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "tokens/cutter.h"
#include "tokens/pretoken.h"
#include "tokens/unicode.h"
#include "support/logs.h"

#include <cmocka.h>

/* Where the pieces of a text end. */
typedef struct ends {
    size_t at[4096], count;
    const unsigned char *text;
} ends;

static int put_end(void *arg, const unsigned char *piece, size_t size)
{
    ends *e = arg;
    assert_true(e->count < sizeof e->at / sizeof *e->at);
    e->at[e->count++] = (size_t)(piece - e->text) + size;
    return 0;
}

/* The expression of a kind in brackets, so that it is not taken for the kind again. */
static cutter *judge(unsigned kind)
{
    char wrapped[1024];
    cutter *c;
    buf steps;

    snprintf(wrapped, sizeof wrapped, "(?:%s)", pretoken_pattern(kind));
    buf_init(&steps, &allocator_default);
    assert_int_equal(cut_put(&steps, wrapped, strlen(wrapped), CUT_KEEP, NULL), 0);
    assert_int_equal(cutter_open(&c, steps.data, steps.size, &allocator_default, NULL),
                     0);
    buf_deinit(&steps);
    return c;
}

static void compare(unsigned kind, const cutter *c, const char *text, size_t size)
{
    static ends ours, theirs;
    const unsigned char *at = (const unsigned char *)text, *end = at + size;

    ours = theirs = (ends){.text = at};
    while (at < end) {
        size_t length = pretoken_scanners[kind](at, end);
        assert_true(length > 0 && length <= (size_t)(end - at));
        put_end(&ours, at, length);
        at += length;
    }
    assert_int_equal(
        cutter_run(c, (const unsigned char *)text, size, put_end, &theirs, NULL), 0);
    if (ours.count != theirs.count ||
        memcmp(ours.at, theirs.at, ours.count * sizeof *ours.at) != 0) {
        for (size_t k = 0; k < size; k++)
            fprintf(stderr, "%02x ", (unsigned char)text[k]);
        fail_msg("the scanner of pattern %u cuts this otherwise than its expression",
                 kind);
    }
}

/* ------------------------------------------------------------------ characters */

static unsigned char *known; /* of each code point: do both say the same of it? */

static size_t put_point(char out[4], uint32_t c)
{
    static const unsigned char leads[] = {0, 0, 0xc0, 0xe0, 0xf0};
    size_t size = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4, k;
    for (k = size; k-- > 1; c >>= 6)
        out[k] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(leads[size] | c);
    return size;
}

static unsigned class_by_pcre2(pcre2_code **codes, pcre2_match_data *found, uint32_t c)
{
    char bytes[4];
    size_t size = put_point(bytes, c);
    unsigned class;
    for (class = 1; class < UNICODE_NEWLINE; class ++)
        if (pcre2_match(codes[class], (PCRE2_SPTR)bytes, size, 0, 0, found, NULL) > 0)
            return class;
    return UNICODE_NONE;
}

static int learn(void **state)
{
    static const char *const classes[UNICODE_NEWLINE] = {
        "",       "[\\p{Lu}\\p{Lt}]", "\\p{Ll}",         "[\\p{Lm}\\p{Lo}]",
        "\\p{M}", "\\p{N}",           "\\p{White_Space}"};
    pcre2_code *codes[UNICODE_NEWLINE] = {0}, *unassigned;
    pcre2_match_data *found = pcre2_match_data_create(1, NULL);
    unsigned class, newer = 0, other = 0;
    char version[64], bytes[4];
    PCRE2_SIZE where;
    uint32_t c;
    int code;
    (void)state;

    for (class = 1; class < UNICODE_NEWLINE; class ++) {
        codes[class] = pcre2_compile((PCRE2_SPTR)classes[class], PCRE2_ZERO_TERMINATED,
                                     PCRE2_UTF | PCRE2_UCP, &code, &where, NULL);
        pcre2_jit_compile(codes[class], PCRE2_JIT_COMPLETE);
    }
    unassigned = pcre2_compile((PCRE2_SPTR) "\\p{Cn}", PCRE2_ZERO_TERMINATED, PCRE2_UTF,
                               &code, &where, NULL);
    known = calloc(0x110000, 1);
    for (c = 0; c < 0x110000; c++) {
        unsigned ours = unicode_class_of(c);
        if (c >= 0xd800 && c < 0xe000)
            continue;
        if (ours == UNICODE_NEWLINE)
            ours = UNICODE_SPACE;
        known[c] = ours == class_by_pcre2(codes, found, c);
        if (known[c])
            continue;
        if (pcre2_match(unassigned, (PCRE2_SPTR)bytes, put_point(bytes, c), 0, 0, found,
                        NULL) > 0)
            newer++;
        else
            other++;
    }
    pcre2_config(PCRE2_CONFIG_UNICODE_VERSION, version);
    printf("# figure: characters of Unicode %s that PCRE2 (%s) does not know yet = %u\n",
           unicode_version, version, newer);
    printf("# figure: characters that PCRE2 has in another class = %u\n", other);
    /* Between two versions a handful of characters change. */
    assert_true(other < 50);
    for (class = 1; class < UNICODE_NEWLINE; class ++)
        pcre2_code_free(codes[class]);
    pcre2_code_free(unassigned);
    pcre2_match_data_free(found);
    return 0;
}

static int forget(void **state)
{
    (void)state;
    free(known);
    return 0;
}

/* ------------------------------------------------------------------ tests */

/* A character that both know: often one that patterns name. */
static uint32_t some_point(uint64_t *seed)
{
    static const uint32_t named[] = {
        '\'',   's',   'S',   0x17f,  'l',  'L',  'r', 'e',  'v',  'V',    'E',
        't',    'd',   'M',   ' ',    '\n', '\r', '/', 0xa0, 0x85, 0x3000, 0x301,
        0x20dd, 0x1c5, 0x2b0, 0x6587, '1',  0xbd, 'A', 'z',  '!',  0x1f642};
    for (;;) {
        uint64_t x = random_next(seed);
        uint32_t c = x % 4 ? named[(x >> 8) % (sizeof named / sizeof *named)]
                           : (uint32_t)((x >> 8) % (x % 8 ? 0x3100 : 0x110000));
        if (known[c])
            return c;
    }
}

static void every_character_in_context_is_cut_alike(void **state)
{
    static const char contexts[] = "a@b A@B 1@2  @ !@? @\n@ '@@'s\n@@A";
    unsigned kind;
    (void)state;

    for (kind = PRETOKEN_GPT2; kind < PRETOKEN_KINDS; kind++) {
        cutter *c = judge(kind);
        uint32_t point;
        for (point = 0; point < 0x110000; point++) {
            char text[256], bytes[4];
            size_t size = put_point(bytes, point), n = 0;
            const char *at;
            if (!known[point] || (point >= 0x34000 && point % 97))
                continue;
            for (at = contexts; *at; at++) {
                if (*at != '@') {
                    text[n++] = *at;
                    continue;
                }
                memcpy(text + n, bytes, size);
                n += size;
            }
            compare(kind, c, text, n);
        }
        cutter_free(c);
    }
}

static void random_texts_are_cut_alike(void **state)
{
    unsigned kind, k;
    (void)state;

    for (kind = PRETOKEN_GPT2; kind < PRETOKEN_KINDS; kind++) {
        cutter *c = judge(kind);
        uint64_t seed = kind;
        for (k = 0; k < 20000; k++) {
            char text[4 * 24];
            size_t n = 0;
            unsigned left = 1 + (unsigned)(random_next(&seed) % 24);
            while (left-- > 0)
                n += put_point(text + n, some_point(&seed));
            compare(kind, c, text, n);
        }
        cutter_free(c);
    }
}

static void a_known_expression_is_known_again(void **state)
{
    unsigned kind;
    (void)state;
    for (kind = PRETOKEN_GPT2; kind < PRETOKEN_KINDS; kind++) {
        const char *pattern = pretoken_pattern(kind);
        assert_int_equal(pretoken_kind(pattern, strlen(pattern)), kind);
    }
    assert_int_equal(pretoken_kind("x", 1), PRETOKEN_KINDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_character_in_context_is_cut_alike),
        cmocka_unit_test(random_texts_are_cut_alike),
        cmocka_unit_test(a_known_expression_is_known_again),
    };
    return cmocka_run_group_tests(tests, learn, forget);
}
