/*
 * test_encoding.c: exact token counts: opening, counting, encoding, decoding.
 *
 * What the counts are is compared with tiktoken in spec/encoding_spec.lua and
 * test_encoding_equal.c; here it is how the functions behave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "tokens/encoding.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_the_tokens_of_its_encoding),
        cmocka_unit_test(special_tokens_in_a_text_are_text),
        cmocka_unit_test(what_is_no_utf8_counts_as_its_replacement),
        cmocka_unit_test(an_encoding_that_is_not_there_is_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
