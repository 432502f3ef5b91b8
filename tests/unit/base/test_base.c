/*
 * test_base.c: memory, buffers, tables, text, times and keys.
 *
 * Owns the promises of engine/base. Must never depend on the clock or the machine.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail /* the engine has a function of that name */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/map.h"
#include "base/text.h"

/* ------------------------------------------------------------------ a failing allocator
 */

/* Counts what is out, checks sizes, and fails the Nth call. */
typedef struct meter {
    size_t live, calls, fail_at;
    int saw_text; /* a block that was not zeroes was freed */
} meter;

static void *metered(void *ud, void *ptr, size_t osize, size_t nsize)
{
    meter *m = ud;
    void *grown;
    if (nsize == 0) {
        size_t i;
        m->live -= osize;
        for (i = 0; i < osize && i < 6; i++)
            m->saw_text |= ((char *)ptr)[i] != 0;
        free(ptr);
        return NULL;
    }
    if (++m->calls == m->fail_at)
        return NULL;
    grown = realloc(ptr, nsize);
    m->live += nsize - osize;
    return grown;
}

/* ------------------------------------------------------------------ memory */

static void sizes_given_back_are_those_asked_for(void **state)
{
    meter m = {0, 0, 0, 0};
    allocator a = {metered, &m};
    void *p;
    (void)state;
    p = mem_alloc(&a, 0);
    assert_non_null(p);
    mem_free(&a, p, 0);
    p = mem_dup(&a, "abc", 3);
    assert_string_equal(p, "abc");
    p = mem_realloc(&a, p, 4, 100);
    p = mem_realloc(&a, p, 100, 0);
    assert_non_null(p);
    mem_free(&a, p, 0);
    p = mem_zalloc(&a, 64);
    assert_int_equal(((char *)p)[63], 0);
    mem_free(&a, p, 64);
    mem_free(&a, NULL, 10);
    assert_int_equal(m.live, 0);
    assert_null(mem_alloc(&a, SIZE_MAX));
    assert_null(mem_dup(&a, "", SIZE_MAX));
    assert_null(host_alloc(&a, SIZE_MAX));
}

static void arrays_grow_and_keep_what_they_held(void **state)
{
    meter m = {0, 0, 0, 0};
    allocator a = {metered, &m};
    int *array = NULL;
    size_t capacity = 0;
    int i;
    (void)state;
    for (i = 0; i < 1000; i++) {
        assert_int_equal(
            mem_grow(&a, (void **)&array, &capacity, (size_t)i + 1, sizeof *array), 0);
        array[i] = i;
    }
    assert_in_range(m.calls, 1, 12); /* doubling: not once an element */
    for (i = 0; i < 1000; i++)
        assert_int_equal(array[i], i);
    assert_int_equal(
        mem_grow(&a, (void **)&array, &capacity, SIZE_MAX / 2, sizeof *array), -1);
    m.fail_at = m.calls + 1;
    assert_int_equal(mem_grow(&a, (void **)&array, &capacity, 5000, sizeof *array), -1);
    assert_int_equal(array[999], 999);
    mem_free(&a, array, capacity * sizeof *array);
    assert_int_equal(m.live, 0);
}

static void blocks_for_the_host_return_to_their_allocator(void **state)
{
    meter m = {0, 0, 0, 0};
    allocator a = {metered, &m};
    char *p = host_dup(&a, "text", 4);
    void *q = host_alloc(&a, 0);
    (void)state;
    assert_string_equal(p, "text");
    assert_int_equal((uintptr_t)p % _Alignof(max_align_t), 0);
    assert_true(m.live > 5);
    sessile_free(p);
    sessile_free(q);
    sessile_free(NULL);
    assert_int_equal(m.live, 0);
}

/* ------------------------------------------------------------------ buffers */

static void buffer_ends_with_a_nul_that_does_not_count(void **state)
{
    buf b;
    int i;
    (void)state;
    buf_init(&b, &allocator_default);
    for (i = 0; i < 500; i++) {
        buf_putc(&b, 'x');
        assert_int_equal(b.data[b.size], 0);
    }
    buf_clear(&b);
    assert_int_equal(b.size, 0);
    buf_puts(&b, "n=");
    buf_put_i64(&b, INT64_MIN);
    buf_putc(&b, ' ');
    buf_put_u64(&b, UINT64_MAX);
    buf_putc(&b, ' ');
    buf_put_u64(&b, 0);
    buf_put_i64(&b, -7);
    assert_string_equal(b.data, "n=-9223372036854775808 18446744073709551615 0-7");
    buf_deinit(&b);
    assert_null(b.data);
    assert_ptr_equal(b.alloc, &allocator_default);
}

static void buffer_printf_fits_any_size(void **state)
{
    buf b;
    char text[1000];
    size_t size;
    (void)state;
    for (size = 0; size < sizeof text; size++) {
        memset(text, 'a', size);
        text[size] = 0;
        buf_init(&b, &allocator_default);
        buf_printf(&b, "<%s>", text);
        assert_int_equal(b.size, size + 2);
        assert_int_equal(b.data[b.size - 1], '>');
        assert_int_equal(strlen(b.data), b.size);
        buf_deinit(&b);
    }
}

static void buffer_failure_sticks_until_cleared(void **state)
{
    meter m = {0, 0, 2, 0};
    allocator a = {metered, &m};
    char text[200];
    buf b;
    (void)state;
    memset(text, 'x', sizeof text);
    buf_init(&b, &a);
    buf_puts(&b, "kept");
    buf_put(&b, text, sizeof text); /* no memory for this one */
    assert_int_equal(b.failed, 1);
    buf_puts(&b, "z");
    buf_printf(&b, "%d", 1);
    assert_string_equal(b.data, "kept");
    assert_int_equal(buf_reserve(&b, 1), -1);
    buf_clear(&b);
    buf_puts(&b, "again");
    assert_string_equal(b.data, "again");
    assert_int_equal(buf_reserve(&b, SIZE_MAX), -1);
    buf_deinit(&b);
    assert_int_equal(m.live, 0);
}

static void buffer_of_secrets_is_zeroed_before_it_is_freed(void **state)
{
    meter m = {0, 0, 0, 0};
    allocator a = {metered, &m};
    buf b;
    (void)state;
    buf_init(&b, &a);
    buf_puts(&b, "secret");
    buf_wipe(&b);
    assert_null(b.data);
    assert_int_equal(m.live, 0);
    assert_int_equal(m.saw_text, 0);
    buf_wipe(&b); /* and twice is harmless */
}

/* ------------------------------------------------------------------ map */

static void map_agrees_with_a_plain_array(void **state)
{
    enum { KEYS = 512, STEPS = 60000 };
    static int64_t model[KEYS];
    uint64_t x = UINT64_C(88172645463325252);
    map m;
    int i;
    (void)state;
    for (i = 0; i < KEYS; i++)
        model[i] = -1;
    map_init(&m, &allocator_default);
    for (i = 0; i < STEPS; i++) {
        uint32_t got = 0;
        size_t key;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        key = (size_t)(x >> 20) % KEYS;
        switch (x % 3) {
        case 0:
            assert_int_equal(map_put(&m, key, (uint32_t)i), 0);
            model[key] = i;
            break;
        case 1:
            assert_int_equal(map_remove(&m, key), model[key] >= 0);
            model[key] = -1;
            break;
        default:
            assert_int_equal(map_get(&m, key, &got), model[key] >= 0);
            if (model[key] >= 0)
                assert_int_equal(got, model[key]);
        }
        /* 0 is kept as 1: they are one key here. */
        if (key == 0)
            model[1] = model[0];
        if (key == 1)
            model[0] = model[1];
    }
    map_clear(&m);
    assert_int_equal(m.count, 0);
    assert_int_equal(map_get(&m, 5, NULL), 0);
    map_deinit(&m);
}

static void map_survives_want_of_memory(void **state)
{
    meter m = {0, 0, 0, 0};
    allocator a = {metered, &m};
    map table;
    uint32_t i, got;
    (void)state;
    map_init(&table, &a);
    for (i = 1; i <= 12; i++)
        assert_int_equal(map_put(&table, i, i * 10), 0);
    m.fail_at = m.calls + 2; /* the second array of the larger table */
    assert_int_equal(map_put(&table, 13, 130), -1);
    assert_int_equal(map_put(&table, 12, 7), 0); /* replacing needs no memory */
    for (i = 1; i <= 11; i++) {
        assert_int_equal(map_get(&table, i, &got), 1);
        assert_int_equal(got, i * 10);
    }
    assert_int_equal(map_get(&table, 13, NULL), 0);
    assert_int_equal(map_reserve(&table, SIZE_MAX), -1);
    map_deinit(&table);
    assert_int_equal(m.live, 0);
}

/* ------------------------------------------------------------------ UTF-8 */

static void utf8_of_every_bad_class_is_refused(void **state)
{
    static const char *const bad[] = {
        "\x80",
        "\xbf",
        "\xc0\xaf",
        "\xc1\xbf",
        "\xc2",
        "\xc2\x41",
        "\xc2\xc2",
        "\xe0\x9f\xbf",
        "\xe2\x82",
        "\xe2\x41\x80",
        "\xed\xa0\x80",
        "\xed\xbf\xbf",
        "\xf0\x8f\xbf\xbf",
        "\xf0\x9f\x98",
        "\xf4\x90\x80\x80",
        "\xf5\x80\x80\x80",
        "\xfe",
        "\xff",
        "\xf8\x88\x80\x80\x80",
    };
    size_t i, pad;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        for (pad = 0; pad < 10; pad++) { /* at every place of a word */
            char text[32] = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
            assert_true(utf8_valid(text, 31));
            memcpy(text + pad, bad[i], strlen(bad[i]));
            assert_false(utf8_valid(text, 31));
            assert_false(utf8_valid(text, pad + strlen(bad[i])));
        }
    }
    assert_true(utf8_valid("\xc2\x80\xe0\xa0\x80\xed\x9f\xbf\xee\x80\x80\xf0\x90\x80\x80"
                           "\xf4\x8f\xbf\xbf",
                           19));
    assert_true(utf8_valid("a\0b", 3));
    assert_true(utf8_valid(NULL, 0));
}

static void utf8_floor_splits_no_character(void **state)
{
    const char *text = "a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"; /* 1 + 2 + 3 + 4 */
    static const size_t floors[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 10, 10};
    size_t i;
    (void)state;
    for (i = 0; i < sizeof floors / sizeof *floors; i++)
        assert_int_equal(utf8_floor(text, 10, i), floors[i]);
}

/* ------------------------------------------------------------------ hex, base32, base64
 */

static void hex_is_lower_case_only(void **state)
{
    char text[9];
    unsigned char raw[4];
    (void)state;
    hex_encode(text, "\x00\x9a\xff\x10", 4);
    assert_string_equal(text, "009aff10");
    assert_int_equal(hex_decode(raw, text, 4), 0);
    assert_memory_equal(raw, "\x00\x9a\xff\x10", 4);
    assert_int_equal(hex_decode(raw, "009AFF10", 4), -1);
    assert_int_equal(hex_decode(raw, "009aff1g", 4), -1);
    assert_int_equal(hex_decode(raw, "009a", 4), -1); /* ends early */
}

static void base32_follows_the_rfc(void **state)
{
    static const char *const pairs[][2] = {
        {"", ""},
        {"f", "my"},
        {"fo", "mzxq"},
        {"foo", "mzxw6"},
        {"foob", "mzxw6yq"},
        {"fooba", "mzxw6ytb"},
        {"foobar", "mzxw6ytboi"},
    };
    char out[32];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        base32_encode(out, pairs[i][0], strlen(pairs[i][0]));
        assert_string_equal(out, pairs[i][1]);
    }
}

static void base64_round_trips_every_length(void **state)
{
    unsigned char raw[200], back[200];
    size_t size;
    buf b;
    (void)state;
    buf_init(&b, &allocator_default);
    for (size = 0; size < sizeof raw; size++) {
        random_bytes(raw, size);
        buf_clear(&b);
        base64_put(&b, raw, size);
        assert_int_equal(b.size, base64_size(size));
        assert_int_equal(base64_decode(back, b.data ? b.data : "", b.size), size);
        assert_memory_equal(raw, back, size);
    }
    buf_clear(&b);
    base64_put(&b, "foobar!", 7);
    assert_string_equal(b.data, "Zm9vYmFyIQ==");
    buf_deinit(&b);
}

static void base64_that_is_not_canonical_is_refused(void **state)
{
    static const char *const bad[] = {
        "Zm9vYmFyIR==", /* spare bits of the last quad set */
        "Zm9=",         /* the same, one byte short of a quad */
        "Zm9vYmFyIQ",   /* no padding */
        "Zm9vYmFyIQ=",
        "Zm9vYmFyI===",
        "====",
        "A===",
        "Zm9vYmFyIQ==\n",
        "Zm 9",
        "Zm9v\nZm9v",
        "Zm9vYg==Zm9v",
        "Zm-_",
        "Zm\0v",
        "Zm9v====",
        "=m9v",
        "Z",
        "\xff\xff\xff\xff",
    };
    char out[64];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        size_t size = i == 12 ? 4 : strlen(bad[i]);
        assert_int_equal(base64_decode(out, bad[i], size), -1);
    }
    assert_int_equal(base64_decode(out, "Zm9vYmFyIQ==", 12), 7);
}

/* Every change of one character of an encoding gives other bytes or a refusal. */
static void base64_has_one_spelling(void **state)
{
    const char *text = "AAECAwQFBgc=";
    char other[12], out[16];
    size_t i;
    int c;
    (void)state;
    for (i = 0; i < 12; i++) {
        for (c = 0; c < 256; c++) {
            int64_t size;
            memcpy(other, text, 12);
            other[i] = (char)c;
            if (other[i] == text[i])
                continue;
            size = base64_decode(out, other, 12);
            assert_false(size == 8 && memcmp(out, "\0\1\2\3\4\5\6\7", 8) == 0);
        }
    }
}

/* ------------------------------------------------------------------ times */

static int64_t parsed(const char *text)
{
    int64_t ms;
    return time_parse(text, strlen(text), &ms) ? -1 : ms;
}

static void times_print_and_parse_around_leap_days(void **state)
{
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {
        {"1970-01-01T00:00:00.000Z", 0},
        {"1972-02-29T23:59:59.999Z", INT64_C(68255999999)},
        {"1972-03-01T00:00:00.000Z", INT64_C(68256000000)},
        {"1999-12-31T23:59:59.999Z", INT64_C(946684799999)},
        {"2000-02-29T12:00:00.000Z", INT64_C(951825600000)},
        {"2000-03-01T00:00:00.000Z", INT64_C(951868800000)},
        {"2023-02-28T23:59:59.999Z", INT64_C(1677628799999)},
        {"2023-03-01T00:00:00.000Z", INT64_C(1677628800000)},
        {"2024-02-29T00:00:00.000Z", INT64_C(1709164800000)},
        {"2026-11-21T20:12:03.123Z", INT64_C(1795291923123)},
        {"2100-02-28T23:59:59.000Z", INT64_C(4107542399000)},
        {"2100-03-01T00:00:00.000Z", INT64_C(4107542400000)},
        {"9999-12-31T23:59:59.999Z", INT64_C(253402300799999)},
    };
    char text[TIME_SIZE];
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        time_print(cases[i].ms, text);
        assert_string_equal(text, cases[i].text);
        assert_true(parsed(cases[i].text) == cases[i].ms);
    }
}

static void every_day_follows_the_one_before(void **state)
{
    char text[TIME_SIZE], before[TIME_SIZE] = "";
    int64_t day;
    (void)state;
    for (day = 0; day < 366 * 500; day++) {
        time_print(day * 86400000, text);
        assert_true(strcmp(before, text) < 0);
        assert_true(parsed(text) == day * 86400000);
        memcpy(before, text, sizeof before);
    }
}

static void times_outside_the_years_are_clamped(void **state)
{
    char text[TIME_SIZE];
    (void)state;
    time_print(-1, text);
    assert_string_equal(text, "1970-01-01T00:00:00.000Z");
    time_print(INT64_MAX, text);
    assert_string_equal(text, "9999-12-31T23:59:59.999Z");
}

static void times_with_offsets_and_fractions_are_read(void **state)
{
    (void)state;
    assert_true(parsed("1970-01-01T01:00:00+01:00") == 0);
    assert_true(parsed("1969-12-31T23:00:00-01:00") == 0);
    assert_true(parsed("1970-01-01T00:00:00.5Z") == 500);
    assert_true(parsed("1970-01-01T00:00:00.12345678901Z") == 123);
    assert_true(parsed("1970-01-01t00:00:00z") == 0);
    assert_true(parsed("2016-12-31T23:59:60Z") == parsed("2017-01-01T00:00:00Z"));
}

static void times_that_are_none_are_refused(void **state)
{
    static const char *const bad[] = {
        "",
        "1970-01-01",
        "1970-01-01T00:00:00",
        "1970-01-01 00:00:00Z",
        "1970-13-01T00:00:00Z",
        "1970-00-01T00:00:00Z",
        "1970-01-32T00:00:00Z",
        "1970-01-00T00:00:00Z",
        "2023-02-29T00:00:00Z",
        "2100-02-29T00:00:00Z",
        "1970-04-31T00:00:00Z",
        "1970-01-01T24:00:00Z",
        "1970-01-01T00:60:00Z",
        "1970-01-01T00:00:61Z",
        "1970-01-01T00:00:00.Z",
        "1970-01-01T00:00:00+1:00",
        "1970-01-01T00:00:00+24:00",
        "1970-01-01T00:00:00+01:60",
        "1970-01-01T00:00:00Zx",
        "1970-01-01T00:00:00+01:00",
        "1969-12-31T23:59:59Z",
        "x970-01-01T00:00:00Z",
        "9999-12-31T23:59:59-01:00",
        "+970-01-01T00:00:00Z",
    };
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++)
        assert_true(parsed(bad[i]) == -1);
}

/* ------------------------------------------------------------------ hashes and random */

static void hash256_is_blake2b(void **state)
{
    unsigned char out[32], keyed[32];
    char hex[65];
    (void)state;
    hash256(out, "abc", 3, NULL, 0);
    hex_encode(hex, out, 32);
    assert_string_equal(
        hex, "bddd813c634239723171ef3fee98579b94964e3bb1cb3e427262c8c068d52319");
    hash256(keyed, "abc", 3, "k", 1);
    assert_memory_not_equal(out, keyed, 32);
}

static void a_lasting_hash_can_be_bared_and_veiled_again(void **state)
{
    uint64_t hash = hash64_lasting("call_1", 6);
    (void)state;
    assert_true(hash == hash64_lasting("call_1", 6));
    assert_true(hash != hash64_lasting("call_2", 6));
    /* the same in every process and release: it is kept on disks */
    assert_true(hash64_bare(hash) == UINT64_C(0xcef132fa0ac773d0));
    assert_true(hash64_veil(hash64_bare(hash)) == hash);
    for (uint64_t i = 0; i < 1000; i++)
        assert_true(hash64_bare(hash64_veil(i << (i % 64))) == i << (i % 64));
}

static void a_keyed_hash_is_that_of_its_key(void **state)
{
    hash_key key = hash_key_of("what it is for, 1", "secret", 6);
    hash_key other = hash_key_of("what it is for, 1", "secreu", 6);
    hash_key use = hash_key_of("what it is for, 2", "secret", 6);
    (void)state;
    /* the same in every process and release: it is kept on disks */
    assert_true(hash64_keyed(&key, "call_1", 6) == UINT64_C(0x481758c44fa51487));
    assert_true(hash64_keyed(&key, "call_1", 6) != hash64_keyed(&key, "call_2", 6));
    assert_true(hash64_keyed(&key, "call_1", 6) != hash64_keyed(&other, "call_1", 6));
    assert_true(hash64_keyed(&key, "call_1", 6) != hash64_keyed(&use, "call_1", 6));
}

static void hash64_is_constant_and_tells_apart(void **state)
{
    (void)state;
    assert_true(hash64("call_1", 6) == hash64("call_1", 6));
    assert_true(hash64("call_1", 6) != hash64("call_2", 6));
    assert_true(hash64("", 0) != hash64("\0", 1));
}

static void bytes_are_wiped_and_compared(void **state)
{
    char secret[8] = "secret!";
    char first[16], second[16];
    (void)state;
    assert_true(same_bytes(secret, "secret!", 7));
    assert_false(same_bytes(secret, "secret?", 7));
    wipe(secret, sizeof secret);
    assert_memory_equal(secret, "\0\0\0\0\0\0\0\0", 8);
    random_bytes(first, sizeof first);
    random_bytes(second, sizeof second);
    assert_memory_not_equal(first, second, sizeof first);
}

/* ------------------------------------------------------------------ keys */

static sessile_status parse(const char *text, sessile_key *key)
{
    return sessile_key_parse(sessile_text(text), key);
}

static void keys_print_and_parse(void **state)
{
    static const struct {
        sessile_key key;
        const char *text;
    } cases[] = {
        {{0, 0}, "00000000"},
        {{0x2a, 0}, "0000002a"},
        {{0x16, 1}, "00000016.1"},
        {{0xfffffffe, 4294967295}, "fffffffe.4294967295"},
    };
    char text[SESSILE_KEY_SIZE];
    sessile_key key;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof cases / sizeof *cases; i++) {
        sessile_key_print(cases[i].key, text);
        assert_string_equal(text, cases[i].text);
        assert_int_equal(parse(text, &key), SESSILE_OK);
        assert_int_equal(key.entry, cases[i].key.entry);
        assert_int_equal(key.n, cases[i].key.n);
    }
}

static void keys_have_one_spelling(void **state)
{
    static const char *const bad[] = {
        "",
        "0000002",
        "0000002A",
        "000000002a",
        "0000002a.",
        "0000002a.0",
        "0000002a.01",
        "0000002a.4294967296",
        "0000002a.99999999999999999999",
        "0000002a.1x",
        "0000002a 1",
        "0000002a.-1",
        "0x00002a",
        " 000002a",
        "0000002g",
        "ffffffff",
    };
    sessile_key key;
    size_t i;
    (void)state;
    for (i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(parse(bad[i], &key), SESSILE_INVALID);
        assert_int_equal(key.entry, SESSILE_NO_ID);
    }
    assert_int_equal(sessile_text(NULL).size, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_given_back_are_those_asked_for),
        cmocka_unit_test(arrays_grow_and_keep_what_they_held),
        cmocka_unit_test(blocks_for_the_host_return_to_their_allocator),
        cmocka_unit_test(buffer_ends_with_a_nul_that_does_not_count),
        cmocka_unit_test(buffer_printf_fits_any_size),
        cmocka_unit_test(buffer_failure_sticks_until_cleared),
        cmocka_unit_test(buffer_of_secrets_is_zeroed_before_it_is_freed),
        cmocka_unit_test(map_agrees_with_a_plain_array),
        cmocka_unit_test(map_survives_want_of_memory),
        cmocka_unit_test(utf8_of_every_bad_class_is_refused),
        cmocka_unit_test(utf8_floor_splits_no_character),
        cmocka_unit_test(hex_is_lower_case_only),
        cmocka_unit_test(base32_follows_the_rfc),
        cmocka_unit_test(base64_round_trips_every_length),
        cmocka_unit_test(base64_that_is_not_canonical_is_refused),
        cmocka_unit_test(base64_has_one_spelling),
        cmocka_unit_test(times_print_and_parse_around_leap_days),
        cmocka_unit_test(every_day_follows_the_one_before),
        cmocka_unit_test(times_outside_the_years_are_clamped),
        cmocka_unit_test(times_with_offsets_and_fractions_are_read),
        cmocka_unit_test(times_that_are_none_are_refused),
        cmocka_unit_test(hash256_is_blake2b),
        cmocka_unit_test(a_keyed_hash_is_that_of_its_key),
        cmocka_unit_test(hash64_is_constant_and_tells_apart),
        cmocka_unit_test(a_lasting_hash_can_be_bared_and_veiled_again),
        cmocka_unit_test(bytes_are_wiped_and_compared),
        cmocka_unit_test(keys_print_and_parse),
        cmocka_unit_test(keys_have_one_spelling),
    };
    if (base_init())
        return 1;
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
