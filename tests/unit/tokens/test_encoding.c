/*
 * test_encoding.c: exact token counts: opening, counting, encoding, decoding.
 *
 * What the counts are is compared with tiktoken in test_encoding_equal.c; here it is how
 * the functions behave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <pthread.h>

#include "base/text.h"
#include "sessile.h"
#include "tokens/cutter.h"
#include "tokens/encoding.h"
#include "tokens/encoding_image.h"
#include "support/rations.h"

#include <cmocka.h>

static const char *folder(void)
{
    static char path[4096];
    const char *build = getenv("SESSILE_BUILD");
    snprintf(path, sizeof path, "%s/share/sessile/encodings", build ? build : "build");
    return path;
}

static encoding *opened(const char *name)
{
    sessile_error err = {0};
    encoding *e;
    if (encoding_open(&e, name, folder(), &allocator_default, &err))
        fail_msg("%s", err.message);
    return e;
}

static int64_t count(const encoding *e, const char *text, size_t size)
{
    int64_t tokens = -1;
    assert_int_equal(encoding_count(e, text, size, &tokens, NULL), SESSILE_OK);
    return tokens;
}

static void a_text_has_the_tokens_of_its_encoding(void **state)
{
    static const uint32_t want[] = {15339, 1917, 0};
    encoding *e = opened("cl100k_base");
    buf ids;
    (void)state;

    buf_init(&ids, &allocator_default);
    assert_string_equal(encoding_name(e), "cl100k_base");
    assert_int_equal(encoding_encode(e, "hello world!", 12, &ids, NULL), SESSILE_OK);
    assert_int_equal(ids.size, sizeof want);
    assert_memory_equal(ids.data, want, sizeof want);
    assert_int_equal(count(e, "hello world!", 12), 3);
    assert_int_equal(count(e, "", 0), 0);
    assert_int_equal(count(e, NULL, 0), 0);
    buf_deinit(&ids);
    encoding_free(e);
}

static void special_tokens_in_a_text_are_text(void **state)
{
    encoding *e = opened("o200k_base");
    (void)state;
    assert_true(count(e, "<|endoftext|>", 13) > 1);
    encoding_free(e);
}

static void what_is_no_utf8_counts_as_its_replacement(void **state)
{
    static const char *const broken[][2] = {
        {"a\xff", "a\xef\xbf\xbd"},
        {"\xe4\xb8", "\xef\xbf\xbd"},                             /* cut short: one */
        {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"}, /* a surrogate: three */
        {"\xf0\x9f\x98x", "\xef\xbf\xbdx"},
        {"\xc0\xaf", "\xef\xbf\xbd\xef\xbf\xbd"},
    };
    encoding *e = opened("cl100k_base");
    size_t k;
    buf a, b;
    (void)state;

    buf_init(&a, &allocator_default);
    buf_init(&b, &allocator_default);
    for (k = 0; k < sizeof broken / sizeof *broken; k++) {
        const char *x = broken[k][0], *y = broken[k][1];
        buf_clear(&a);
        buf_clear(&b);
        assert_int_equal(encoding_encode(e, x, strlen(x), &a, NULL), SESSILE_OK);
        assert_int_equal(encoding_encode(e, y, strlen(y), &b, NULL), SESSILE_OK);
        assert_int_equal(a.size, b.size);
        assert_memory_equal(a.data, b.data, a.size);
    }
    buf_deinit(&a);
    buf_deinit(&b);
    encoding_free(e);
}

static void an_encoding_that_is_not_there_is_not_found(void **state)
{
    sessile_error err = {0};
    encoding *e = (encoding *)&err;
    (void)state;
    assert_int_equal(encoding_open(&e, "cl200k", folder(), &allocator_default, &err),
                     SESSILE_NOTFOUND);
    assert_null(e);
    assert_non_null(strstr(err.message, "cl200k"));
    assert_non_null(strstr(err.message, "o200k_base"));
}

/* ------------------------------------------------------------------ any input */

/* Big inputs are one test: a quadratic way through any of them would take hours. */
static void no_text_takes_long(void **state)
{
    static const char *const kinds[] = {
        "a", "A", " ",  "\n",       " \n",      "漢", "漢字A", "🙂",
        "1", "!", "'s", "\xcc\x81", "aGVsbG8w", "Zx", "\xff",  "\xe4\xb8"};
    static const char *const names[] = {"cl100k_base", "o200k_base"};
    size_t size = 300000, n, k;
    char *text = malloc(size);
    (void)state;

    assert_non_null(text);
    for (n = 0; n < 2; n++) {
        encoding *e = opened(names[n]);
        for (k = 0; k < sizeof kinds / sizeof *kinds; k++) {
            size_t kind = strlen(kinds[k]), at;
            for (at = 0; at < size; at++)
                text[at] = kinds[k][at % kind];
            assert_in_range(count(e, text, size), 1, 3 * size);
        }
        encoding_free(e);
    }
    free(text);
}

static void an_expression_that_runs_wild_is_stopped(void **state)
{
    char text[5000];
    sessile_error err = {0};
    int64_t tokens;
    encoding *e;
    buf file;
    (void)state;

    buf_init(&file, &allocator_default);
    for (unsigned k = 0; k < 256; k++) {
        char byte = (char)k;
        base64_put(&file, &byte, 1);
        buf_printf(&file, " %u\n", k);
    }
    assert_int_equal(encoding_open_bytes(&e, "wild.tiktoken", file.data, file.size,
                                         "(?:a|aa)+[^a]", &allocator_default, &err),
                     SESSILE_OK);
    memset(text, 'a', sizeof text);
    assert_int_equal(encoding_count(e, text, sizeof text, &tokens, &err), SESSILE_LIMIT);
    assert_non_null(strstr(err.message, "too many ways"));
    assert_int_equal(count(e, "aab", 3), 3);
    encoding_free(e);

    /* One that looks far ahead at every place: few tries, and each is long. */
    char *longer = malloc(1 << 20);
    memset(longer, 'a', 1 << 20);
    assert_int_equal(encoding_open_bytes(&e, "far.tiktoken", file.data, file.size,
                                         "a{1,65535}b|.", &allocator_default, &err),
                     SESSILE_OK);
    assert_int_equal(encoding_count(e, longer, 1 << 20, &tokens, &err), SESSILE_LIMIT);
    free(longer);
    buf_deinit(&file);
    encoding_free(e);
}

static int note_size(void *arg, const unsigned char *piece, size_t size)
{
    (void)piece;
    buf_printf(arg, "%zu ", size);
    return 0;
}

/* A match begins with a view of a part of the text: it is as if it saw all. */
static void long_pieces_are_cut_as_short_ones(void **state)
{
    static const char expression[] = "\\s+(?!\\S)|\\s|x(?=\\S*y)|[^\\sx]+";
    sessile_error err = {0};
    buf steps, text, sizes;
    cutter *c;
    (void)state;

    buf_init(&steps, &allocator_default);
    buf_init(&text, &allocator_default);
    buf_init(&sizes, &allocator_default);
    for (unsigned k = 0; k < 10000; k++)
        buf_puts(&text, " ");
    buf_puts(&text, "x");
    for (unsigned k = 0; k < 30001; k++)
        buf_puts(&text, "\xc3\xa9");
    buf_puts(&text, "y");
    assert_int_equal(cut_put(&steps, expression, sizeof expression - 1, CUT_KEEP, &err),
                     SESSILE_OK);
    assert_int_equal(cutter_open(&c, steps.data, steps.size, &allocator_default, &err),
                     SESSILE_OK);
    assert_int_equal(cutter_run(c, (const unsigned char *)text.data, text.size, note_size,
                                &sizes, &err),
                     SESSILE_OK);
    buf_putc(&sizes, 0);
    assert_string_equal(sizes.data, "9999 1 1 60003 ");
    cutter_free(c);
    buf_deinit(&sizes);
    buf_deinit(&text);
    buf_deinit(&steps);
}

/* Looking for what is not there ends at an empty slot: without one it would not end. */
static void a_file_with_a_full_table_is_refused(void **state)
{
    sessile_error err = {0};
    image_header *h;
    vocabulary v;
    image i;
    buf file;
    unsigned k;
    (void)state;

    vocabulary_init(&v, &allocator_default);
    buf_init(&file, &allocator_default);
    for (k = 0; k < 256; k++) {
        char byte = (char)k;
        assert_int_equal(vocabulary_add(&v, k, &byte, 1, NULL), SESSILE_OK);
    }
    v.listed = 1;
    assert_int_equal(vocabulary_add(&v, 256, "ab", 2, NULL), SESSILE_OK);
    assert_int_equal(vocabulary_add_merge(&v, 'a', 'b', 256, NULL), SESSILE_OK);
    assert_int_equal(image_build(&file, &v, NULL), SESSILE_OK);
    assert_int_equal(image_open(&i, file.data, file.size, &err), SESSILE_OK);
    h = (image_header *)file.data;
    memset((uint64_t *)i.pairs, 0, sizeof(uint64_t) << h->pair_bits);
    h->checksum = image_checksum(h);
    assert_int_equal(image_open(&i, file.data, file.size, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "tables are damaged"));
    vocabulary_deinit(&v);
    buf_deinit(&file);
}

/* ------------------------------------------------------------------ out of memory */

static const char tokenizer[] =
    "{\"pre_tokenizer\":{\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Digits\","
    "\"individual_digits\":true},{\"type\":\"ByteLevel\",\"add_prefix_space\":false}]},"
    "\"added_tokens\":[{\"id\":300,\"content\":\"<x>\",\"special\":false}],"
    "\"model\":{\"type\":\"BPE\",\"merges\":[\"a b\"],\"vocab\":{\"ab\":256";

static void put_tokenizer(buf *out)
{
    unsigned k, next = 0x100;
    buf_puts(out, tokenizer);
    for (k = 0; k < 256; k++) {
        int itself = (k >= '!' && k <= '~') || (k >= 0xa1 && k <= 0xac) || k >= 0xae;
        buf_printf(out, ",\"\\u%04x\":%u", itself ? k : next, k);
        next += !itself;
    }
    buf_puts(out, "}}}");
}

/* One life of an encoding; OK when there was memory for all of it. */
static sessile_status live(const char *name, const buf *file, rations *r)
{
    static char text[3000];
    sessile_encoding_options options;
    sessile_encoding *e = NULL;
    sessile_slice slice = {text, sizeof text};
    allocator a = {ration, r};
    sessile_error err;
    sessile_status status;
    uint32_t *ids = NULL;
    size_t count = 0, size = 0;
    int64_t tokens;
    char *back = NULL;

    memset(text, 'a', sizeof text);
    memcpy(text, "ab <x>12 \xff", 10);
    if (file) {
        status = encoding_open_bytes(&e, name, file->data, file->size, NULL, &a, &err);
    } else {
        sessile_encoding_options_init(&options);
        options.folders = folder();
        options.alloc = ration;
        options.alloc_ud = r;
        status = sessile_encoding_open(&e, name, &options, &err);
    }
    if (!status)
        status = sessile_encoding_count(e, slice, &tokens, &err);
    if (!status)
        status = sessile_encoding_encode(e, slice, &ids, &count, &err);
    if (!status)
        status = sessile_encoding_decode(e, ids, count, &back, &size, &err);
    if (status)
        assert_int_equal(err.code, SESSILE_NOMEM);
    else
        assert_int_equal(tokens, count);
    sessile_free(ids);
    sessile_free(back);
    sessile_encoding_close(e);
    return status;
}

static void out_of_memory_anywhere_is_clean(void **state)
{
    rations r = {0, 0};
    long n;
    buf file;
    (void)state;

    buf_init(&file, &allocator_default);
    put_tokenizer(&file);
    for (n = 0, r.left = 0; live("cl100k_base", NULL, &r); r.left = ++n) {
        assert_int_equal(r.live, 0);
        assert_true(n < 10000);
    }
    assert_int_equal(r.live, 0);
    assert_true(n > 5);
    for (n = 0, r.left = 0; live("x.json", &file, &r); r.left = ++n) {
        assert_int_equal(r.live, 0);
        assert_true(n < 10000);
    }
    assert_int_equal(r.live, 0);
    assert_true(n > 20);
    buf_deinit(&file);
}

/* ------------------------------------------------------------------ threads */

static const char shared[] = "hello world! internationalisations of uncommonness";

static void *count_often(void *arg)
{
    const encoding *e = arg;
    intptr_t wrong = 0;
    int k;
    for (k = 0; k < 200; k++) {
        int64_t tokens = 0;
        wrong +=
            encoding_count(e, shared, sizeof shared - 1, &tokens, NULL) || tokens != 8;
    }
    return (void *)wrong;
}

static void threads_share_an_encoding(void **state)
{
    encoding *e = opened("cl100k_base");
    pthread_t threads[4];
    int k;
    (void)state;

    for (k = 0; k < 4; k++)
        assert_int_equal(pthread_create(&threads[k], NULL, count_often, e), 0);
    for (k = 0; k < 4; k++) {
        void *wrong;
        pthread_join(threads[k], &wrong);
        assert_null(wrong);
    }
    encoding_free(e);
}

/* ------------------------------------------------------------------ the public edge */

static void what_is_missing_is_named(void **state)
{
    sessile_encoding *e = (sessile_encoding *)state;
    sessile_error err;
    sessile_slice bad = {NULL, 3};
    uint32_t *ids;
    int64_t tokens = 7;
    size_t size;
    char *text;

    assert_int_equal(sessile_encoding_open(NULL, "x", NULL, &err), SESSILE_INVALID);
    assert_int_equal(sessile_encoding_open(&e, NULL, NULL, &err), SESSILE_INVALID);
    assert_null(e);
    assert_int_equal(sessile_encoding_count(NULL, bad, &tokens, &err), SESSILE_INVALID);
    assert_int_equal(tokens, 0);
    assert_int_equal(sessile_encoding_encode(NULL, bad, &ids, &size, &err),
                     SESSILE_INVALID);
    assert_int_equal(sessile_encoding_decode(NULL, NULL, 0, &text, &size, &err),
                     SESSILE_INVALID);
    e = opened("cl100k_base");
    assert_int_equal(sessile_encoding_count(e, bad, &tokens, &err), SESSILE_INVALID);
    assert_int_equal(sessile_encoding_decode(e, NULL, 2, &text, &size, &err),
                     SESSILE_INVALID);
    assert_null(text);
    sessile_encoding_close(e);
    sessile_encoding_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_the_tokens_of_its_encoding),
        cmocka_unit_test(special_tokens_in_a_text_are_text),
        cmocka_unit_test(what_is_no_utf8_counts_as_its_replacement),
        cmocka_unit_test(an_encoding_that_is_not_there_is_not_found),
        cmocka_unit_test(no_text_takes_long),
        cmocka_unit_test(an_expression_that_runs_wild_is_stopped),
        cmocka_unit_test(long_pieces_are_cut_as_short_ones),
        cmocka_unit_test(a_file_with_a_full_table_is_refused),
        cmocka_unit_test(out_of_memory_anywhere_is_clean),
        cmocka_unit_test(threads_share_an_encoding),
        cmocka_unit_test(what_is_missing_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
