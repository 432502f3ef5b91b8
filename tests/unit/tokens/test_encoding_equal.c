/*
 * test_encoding_equal.c: that texts have the tokens which tiktoken gives them.
 *
 * Owns the texts: published test plans; every code point that may be assigned in ten
 * contexts; 20,000 random mixes; long runs of one kind. They come in groups, and what
 * tiktoken made of each group is one hash in tests/tokens/tiktoken.txt, so that nothing
 * but this program is needed to compare. tests/tokens/tiktoken.mjs wrote that file: it
 * takes the texts from here,
 *
 *     build/tests/unit/tokens/test_encoding_equal texts
 *
 * and asks the npm package.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "codec/json.h"
#include "tokens/encoding.h"
#include "support/logs.h"

#include <cmocka.h>

#define POINTS_A_GROUP 4096
#define MIXES_A_GROUP  1000
#define MIXES          20000

/* What is done with the texts: hashed, or printed. */
typedef struct taker {
    const encoding *e; /* NULL: printed */
    char name[32];
    uint64_t hash, texts;
    buf ids, printed;
    FILE *golden;
    unsigned groups;
} taker;

static void add_number(taker *t, uint32_t n)
{
    int k;
    for (k = 0; k < 4; k++)
        t->hash = (t->hash ^ (n >> 8 * k & 0xff)) * UINT64_C(0x100000001b3);
}

static void text(taker *t, const char *data, size_t size)
{
    uint32_t n = (uint32_t)size, k;
    int64_t count;
    buf back;

    t->texts++;
    if (!t->e) {
        buf_put(&t->printed, &n, sizeof n);
        buf_put(&t->printed, data, size);
        return;
    }
    buf_clear(&t->ids);
    assert_int_equal(encoding_encode(t->e, data, size, &t->ids, NULL), SESSILE_OK);
    assert_int_equal(encoding_count(t->e, data, size, &count, NULL), SESSILE_OK);
    n = (uint32_t)(t->ids.size / sizeof n);
    assert_int_equal(count, n);
    add_number(t, n);
    for (k = 0; k < n; k++)
        add_number(t, ((const uint32_t *)t->ids.data)[k]);
    buf_init(&back, &allocator_default);
    assert_int_equal(encoding_decode(t->e, (const uint32_t *)t->ids.data, n, &back, NULL),
                     SESSILE_OK);
    assert_int_equal(back.size, size);
    if (size)
        assert_memory_equal(back.data, data, size);
    buf_deinit(&back);
}

static void begin(taker *t, const char *name, unsigned number)
{
    snprintf(t->name, sizeof t->name, "%s-%05x", name, number);
    t->hash = UINT64_C(0xcbf29ce484222325);
    t->texts = 0;
    buf_clear(&t->printed);
}

static void end(taker *t)
{
    char line[256], want[128];

    t->groups++;
    if (!t->e) {
        printf("%s %llu\n", t->name, (unsigned long long)t->texts);
        fwrite(t->printed.data, 1, t->printed.size, stdout);
        return;
    }
    snprintf(want, sizeof want, "%s %s %016llx\n", encoding_name(t->e), t->name,
             (unsigned long long)t->hash);
    rewind(t->golden);
    while (fgets(line, sizeof line, t->golden))
        if (!strcmp(line, want))
            return;
    fail_msg(
        "%s differs from tiktoken in the group %s: tests/tokens/README.md says how to "
        "find the text",
        encoding_name(t->e), t->name);
}

/* ------------------------------------------------------------------ the texts */

static const char *root(void)
{
    const char *set = getenv("SESSILE_ROOT");
    return set ? set : ".";
}

static void plans(taker *t)
{
    char path[4096];
    static char read[65536];
    FILE *file;
    buf checked, one;
    json_iter it;
    size_t size;

    snprintf(path, sizeof path, "%s/tests/tokens/plans.json", root());
    file = fopen(path, "rb");
    assert_non_null(file);
    size = fread(read, 1, sizeof read, file);
    fclose(file);
    buf_init(&checked, &allocator_default);
    buf_init(&one, &allocator_default);
    assert_int_equal(json_check(&checked, read, size, 8, NULL), SESSILE_OK);
    begin(t, "plans", 0);
    for (it = json_begin(json_of(checked.data, checked.size)); json_next(&it);) {
        buf_clear(&one);
        assert_int_equal(json_string(&one, it.value), 0);
        text(t, one.data ? one.data : "", one.size);
    }
    end(t);
    buf_deinit(&checked);
    buf_deinit(&one);
}

static size_t put_point(char out[4], uint32_t c)
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    if (c < 0x800) {
        out[0] = (char)(0xc0 | c >> 6);
        out[1] = (char)(0x80 | (c & 0x3f));
        return 2;
    }
    if (c < 0x10000) {
        out[0] = (char)(0xe0 | c >> 12);
        out[1] = (char)(0x80 | (c >> 6 & 0x3f));
        out[2] = (char)(0x80 | (c & 0x3f));
        return 3;
    }
    out[0] = (char)(0xf0 | c >> 18);
    out[1] = (char)(0x80 | (c >> 12 & 0x3f));
    out[2] = (char)(0x80 | (c >> 6 & 0x3f));
    out[3] = (char)(0x80 | (c & 0x3f));
    return 4;
}

/* Beside letters, digits, spaces, punctuation, line breaks, and itself. @ is the point.
 */
static void point(taker *t, uint32_t c)
{
    static const char contexts[] =
        "a@b\tA@B\t1@2\t @ \t!@?\t@\n@\tx @y\t'@\t@'s\t\n@@A\r\n@";
    char out[256], bytes[4];
    size_t size = put_point(bytes, c), n = 0;
    const char *at;

    for (at = contexts; *at; at++) {
        if (*at == '@') {
            memcpy(out + n, bytes, size);
            n += size;
        } else {
            out[n++] = *at;
        }
    }
    text(t, out, n);
}

/* Every code point of the planes that have characters, and one in 251 of the others. */
static void points(taker *t)
{
    uint32_t c;
    for (c = 0; c < 0x110000; c++) {
        if (c % POINTS_A_GROUP == 0)
            begin(t, "points", c);
        if ((c < 0xd800 || c > 0xdfff) &&
            (c < 0x34000 || (c >= 0xe0000 && c < 0xe1000) || c % 251 == 0))
            point(t, c);
        if (c % POINTS_A_GROUP == POINTS_A_GROUP - 1)
            end(t);
    }
}

static const char *const fragments[] = {"'s",
                                        "'S",
                                        "'\xc5\xbf",
                                        "'LL",
                                        "'re",
                                        "'VE",
                                        "'d",
                                        "'m",
                                        "'t",
                                        "'",
                                        "a",
                                        "A",
                                        "Ab",
                                        "aB",
                                        "XML",
                                        "文",
                                        "字",
                                        "ʰ",
                                        "ǅ",
                                        "\xcc\x81",
                                        "\xe2\x83\x9d",
                                        "1",
                                        "23",
                                        "456",
                                        "٣",
                                        "½",
                                        "Ⅷ",
                                        " ",
                                        "  ",
                                        "        ",
                                        "\n",
                                        "\r\n",
                                        "\r",
                                        "\t",
                                        "\xc2\xa0",
                                        "\xe3\x80\x80",
                                        "/",
                                        "//",
                                        "!",
                                        "?!",
                                        "-",
                                        "_",
                                        "🙂",
                                        "👨‍👩‍👧",
                                        "\xe2\x80\x8d",
                                        "\xf0\x90\xb5\x8a",
                                        "\xe2\x80\xa8",
                                        "é",
                                        "É",
                                        "ñ",
                                        "ß",
                                        "Hello",
                                        "WORLD",
                                        " the",
                                        "function",
                                        "=>",
                                        "{",
                                        "}\n",
                                        "    ",
                                        "\n\n",
                                        "가",
                                        "ก",
                                        "ا",
                                        "\xc2\x85",
                                        "\xe1\xa0\x8e",
                                        "\xef\xbb\xbf",
                                        "\xef\xbf\xbd",
                                        "AbCdEfGh0123",
                                        "aGVsbG8gd29ybGQ=",
                                        "deadbeef",
                                        "<|endoftext|>",
                                        "getUserById",
                                        "https://example.com/a?b=c",
                                        "\"key\": \"value\",",
                                        "\\n",
                                        "Привет",
                                        "안녕하세요",
                                        "こんにちは",
                                        "internationalization",
                                        "\x7f",
                                        "\x01"};

/* Fragments after each other, and at times a character drawn from anywhere. */
static void mixes(taker *t)
{
    uint64_t seed = 6;
    unsigned k;
    buf out;

    buf_init(&out, &allocator_default);
    for (k = 0; k < MIXES; k++) {
        unsigned n = 1 + (unsigned)(random_next(&seed) % 14);
        if (k % MIXES_A_GROUP == 0)
            begin(t, "mixes", k);
        buf_clear(&out);
        while (n-- > 0) {
            uint64_t x = random_next(&seed);
            if (x % 8 == 0) {
                char bytes[4];
                uint32_t c = (uint32_t)((x >> 8) % (x % 16 ? 0x3000 : 0x30000));
                buf_put(&out, bytes,
                        put_point(bytes, c >= 0xd800 && c < 0xe000 ? 'z' : c));
            } else {
                buf_puts(&out,
                         fragments[(x >> 8) % (sizeof fragments / sizeof *fragments)]);
            }
        }
        text(t, out.data, out.size);
        if (k % MIXES_A_GROUP == MIXES_A_GROUP - 1)
            end(t);
    }
    buf_deinit(&out);
}

/* Runs of one kind around the sizes where the way they are merged changes. */
static void runs(taker *t)
{
    static const char *const kinds[] = {
        "a",   "A",        "ab",      "1",  " ",        "\n",       "\r\n",
        " \n", "!",        "=",       "漢", "漢字仮名", "🙂",     "👨‍👩‍👧",
        "é",   "\xcc\x81", "aGVsbG8", "Zx", "\t",       "\xc2\xa0", "'s",
        "A漢"};
    static const unsigned sizes[] = {2,  3,  7,  8,  9,  31,  32,  33,
                                     90, 95, 96, 97, 98, 200, 1000};
    size_t kind, size, k;
    buf out;

    buf_init(&out, &allocator_default);
    begin(t, "runs", 0);
    for (kind = 0; kind < sizeof kinds / sizeof *kinds; kind++) {
        for (size = 0; size < sizeof sizes / sizeof *sizes; size++) {
            buf_clear(&out);
            for (k = 0; k < sizes[size]; k++)
                buf_puts(&out, kinds[kind]);
            text(t, out.data, out.size);
            buf_puts(&out, "x");
            text(t, out.data, out.size);
        }
    }
    end(t);
    buf_deinit(&out);
}

static void all(taker *t)
{
    plans(t);
    points(t);
    mixes(t);
    runs(t);
}

/* ------------------------------------------------------------------ tests */

static void compare(const char *name)
{
    const char *build = getenv("SESSILE_BUILD");
    char path[4096];
    encoding *e;
    taker t;

    memset(&t, 0, sizeof t);
    snprintf(path, sizeof path, "%s/share/sessile/encodings", build ? build : "build");
    assert_int_equal(encoding_open(&e, name, path, &allocator_default, NULL), SESSILE_OK);
    t.e = e;
    snprintf(path, sizeof path, "%s/tests/tokens/tiktoken.txt", root());
    t.golden = fopen(path, "r");
    assert_non_null(t.golden);
    buf_init(&t.ids, &allocator_default);
    buf_init(&t.printed, &allocator_default);
    all(&t);
    assert_int_equal(t.groups, 1 + 0x110000 / POINTS_A_GROUP + MIXES / MIXES_A_GROUP + 1);
    fclose(t.golden);
    buf_deinit(&t.ids);
    buf_deinit(&t.printed);
    encoding_free(e);
}

static void cl100k_base_is_what_tiktoken_gives(void **state)
{
    (void)state;
    compare("cl100k_base");
}

static void o200k_base_is_what_tiktoken_gives(void **state)
{
    (void)state;
    compare("o200k_base");
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cl100k_base_is_what_tiktoken_gives),
        cmocka_unit_test(o200k_base_is_what_tiktoken_gives),
    };
    if (argc == 2 && !strcmp(argv[1], "texts")) {
        taker t;
        memset(&t, 0, sizeof t);
        buf_init(&t.printed, &allocator_default);
        all(&t);
        buf_deinit(&t.printed);
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
