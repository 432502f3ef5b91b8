/*
 * test_matrix.c: each way to change a line, tried on each line of a sealed log.
 *
 * Owns the table of promise 12: edits of what stands in clear, of the base64, of the
 * spelling; the parts of the header exchanged, one by one, with those of a log with the
 * same entries. All are refused; beside the last write some look like a torn end, and
 * then are set aside and reported. test_tamper.c has what moves whole lines.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdlib.h>
#include <string.h>

#include "support/tamper.h"

static unsigned long tried, refused, aside;

/* Puts `size` bytes in the place of `was` bytes at `at`, and looks. */
static verdict edited(sample *s, size_t at, size_t was, const char *text, size_t size)
{
    verdict v = look_edited(s, at, was, text, size);
    tried++;
    refused += v == REFUSED;
    aside += v == SET_ASIDE;
    return v;
}

/* As the rule has it for a change of line i, the first byte of it at `at`. */
static void expect(const sample *s, size_t i, size_t at, verdict v, const char *what)
{
    int late = at >= s->last;
    if (v == WHOLE || (v == SET_ASIDE && !late))
        print_error("%s, line %zu: %s\n", kit_names[s->k.mode], i, what);
    assert_int_not_equal(v, WHOLE);
    assert_true(v == REFUSED || late);
}

/* The offset of a text in line i, or of its end. */
static size_t find(const sample *s, size_t i, const char *text)
{
    size_t size = s->lines[i + 1] - s->lines[i];
    const char *at = memmem(s->bytes + s->lines[i], size, text, strlen(text));
    return at ? (size_t)(at - s->bytes) : s->lines[i + 1];
}

/* ------------------------------------------------------------------ fields and spelling
 */

static const struct edit {
    const char *what, *from, *to;
} edits[] = {
    {"a space after the brace", "{\"id\"", "{ \"id\""},
    {"a space after the colon", "\"id\":", "\"id\": "},
    {"the id's name escaped", "\"id\"", "\"\\u0069d\""},
    {"a second id", "{\"id\":\"", "{\"id\":\"00000000\",\"id\":\""},
    {"another member", ",\"s\":\"", ",\"x\":1,\"s\":\""},
    {"a member behind the seal", "\"}\n", "\",\"x\":1}\n"},
    {"a space before the newline", "}\n", "} \n"},
    {"a carriage return", "}\n", "}\r\n"},
    {"an empty line", "}\n", "}\n\n"},
    {"a zero byte before it", "{\"id\"", "\0{\"id\""},
    {"no newline", "}\n", "}"},
    {"the seal's name escaped", "\"s\"", "\"\\u0073\""},
    {"padding doubled", "\"}\n", "=\"}\n"},
    {"four characters more", "\"}\n", "AAAA\"}\n"},
    {"a newline in the seal", ",\"s\":\"", ",\"s\":\"\n"},
    {"no seal", ",\"s\":\"", ",\"s\":\"\"}\n{\"s\":\""},
    {"count of a write grown", "\"commit\":1", "\"commit\":2"},
    {"count of a write with a zero before it", "\"commit\":", "\"commit\":0"},
    {"count of a write 0", "\"commit\":1", "\"commit\":0"},
    {"count of a write too large for a number", "\"commit\":", "\"commit\":4294967296"},
    {"no count", ",\"commit\":1", ""},
    {"durable of a later entry", "\"durable\":\"000000", "\"durable\":\"0000ff"},
    {"durable in capitals", "\"durable\":\"000000", "\"durable\":\"0000FF"},
    {"durable of an earlier entry", "\"durable\":\"0000000", "\"durable\":\"0000001"},
    {"durable left out", ",\"durable\":\"", ",\"durabl\":\""},
    {"a count where none was", "\",\"s\":\"", "\",\"commit\":1,\"s\":\""},
};

static void no_edit_of_any_line_passes(sample *s)
{
    for (size_t i = 0; i < s->line_count; i++)
        for (size_t e = 0; e < sizeof edits / sizeof *edits; e++) {
            size_t at = find(s, i, edits[e].from);
            size_t to = edits[e].to[0] ? strlen(edits[e].to) : 0;
            if (e == 9) /* begins with a zero byte */
                to = strlen(edits[e].to + 1) + 1;
            size_t same = 0; /* bytes that both begin with */
            while (edits[e].from[same] && edits[e].from[same] == edits[e].to[same])
                same++;
            if (at < s->lines[i + 1])
                expect(s, i, at + same,
                       edited(s, at, strlen(edits[e].from), edits[e].to, to),
                       edits[e].what);
        }
}

static void no_other_id_passes(sample *s)
{
    for (size_t i = 0; i < s->line_count; i++)
        for (unsigned other = 0; other < s->line_count + 3; other++) {
            char id[9];
            snprintf(id, sizeof id, "%08x", other);
            if (other != i)
                expect(s, i, s->lines[i] + 7, edited(s, s->lines[i] + 7, 8, id, 8), id);
        }
}

/* What stands in clear is sealed too: a claim that is as good as the true one. */
static void no_humbler_claim_of_durability_passes(sample *s)
{
    unsigned long claims = 0;
    for (size_t i = 0; i < s->line_count; i++) {
        unsigned id;
        size_t at = find(s, i, "\"durable\":\"") + 11;
        if (at >= s->lines[i + 1] || sscanf(s->bytes + at, "%8x", &id) != 1)
            continue;
        for (unsigned other = 0; other < id; other++, claims++) {
            char text[9];
            snprintf(text, sizeof text, "%08x", other);
            expect(s, i, at, edited(s, at, 8, text, 8), text);
        }
    }
    assert_true(claims > 0);
}

/* The last character of a base64 that is padded has bits that no byte takes. Sets each of
 * them; how many there were. */
static unsigned long respelled(sample *s)
{
    static const char digits[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned long spare = 0;
    for (size_t i = 0; i < s->line_count; i++)
        for (size_t at = s->lines[i] + 1; at < s->lines[i + 1]; at++) {
            if (s->bytes[at] != '=' || s->bytes[at - 1] == '=')
                continue;
            for (int next = 1; next < 4; next++, spare++) {
                const char *digit = strchr(digits, s->bytes[at - 1]);
                char other = digits[((size_t)(digit - digits) ^ (size_t)next)];
                expect(s, i, at - 1, edited(s, at - 1, 1, &other, 1), "spare bits");
            }
        }
    return spare;
}

static void no_second_spelling_of_a_base64_passes(sample *s)
{
    unsigned long spare = respelled(s);
    for (size_t padding = 31; padding < 33; padding++) {
        sample other;
        sample_open(&other, s->k.mode, "base64", padding);
        spare += respelled(&other);
        sample_close(&other);
    }
    assert_true(spare > 0);
}

/* ------------------------------------------------------------------ the header */

/* The text of a header's member, quotes or digits included. */
static size_t member(const char *bytes, const char *name, size_t *size)
{
    const char *at = strstr(bytes, name) + strlen(name);
    *size = strcspn(at, ",");
    return (size_t)(at - bytes);
}

static void header_of_another_suite_epoch_or_user_is_refused(sample *s)
{
    static const struct edit header[] = {
        {"no suite", ",\"suite\":\"", ",\"suite\":\"\",\"x\":\""},
        {"a suite that is none", ",\"suite\":\"", ",\"suite\":\"x"},
        {"epoch 2", ",\"epoch\":1", ",\"epoch\":2"},
        {"epoch 0", ",\"epoch\":1", ",\"epoch\":0"},
        {"epoch 01", ",\"epoch\":1", ",\"epoch\":01"},
        {"epoch 11", ",\"epoch\":1", ",\"epoch\":11"},
        {"an epoch past all numbers", ",\"epoch\":1", ",\"epoch\":18446744073709551617"},
        {"no epoch", ",\"epoch\":1", ""},
        {"a user", ",\"epoch\":1", ",\"epoch\":1,\"user\":\"x\""},
        {"no mark", ",\"sessile\":1", ""},
        {"a later mark", ",\"sessile\":1", ",\"sessile\":2"},
        {"a durable", "\"commit\":1", "\"commit\":1,\"durable\":\"00000000\""},
    };
    size_t size;
    const char *other =
        s->k.mode == KIT_AES ? "\"xchacha20-poly1305\"" : "\"aes-256-gcm\"";
    size_t at = member(s->bytes, ",\"suite\":", &size);
    assert_int_equal(edited(s, at, size, other, strlen(other)), REFUSED);
    for (size_t e = 0; e < sizeof header / sizeof *header; e++) {
        at = find(s, 0, header[e].from);
        assert_true(at < s->lines[1]);
        assert_int_equal(
            edited(s, at, strlen(header[e].from), header[e].to, strlen(header[e].to)),
            REFUSED);
    }
}

static void part_of_another_logs_header_is_refused(sample *s)
{
    /* a log with the same entries in the same store: only its key differs */
    static const char *const names[] = {",\"key\":", ",\"commitment\":", ",\"s\":"};
    char path[600];
    size_t theirs_size;
    kit_create(&s->k, "twin");
    kit_path(&s->k, "twin", path);
    char *theirs = file_read_all(path, &theirs_size);
    for (unsigned which = 1; which < 8; which++) {
        char *bytes = malloc(2 * s->size + theirs_size);
        size_t size = s->size;
        assert_non_null(bytes);
        memcpy(bytes, s->bytes, s->size);
        bytes[size] = 0;
        for (unsigned n = 0; n < 3; n++) {
            size_t was, is;
            if (!(which & 1u << n))
                continue;
            size_t at = member(bytes, names[n], &was);
            size_t from = member(theirs, names[n], &is);
            if (n == 2) {
                was = strcspn(bytes + at, "\n");
                is = strcspn(theirs + from, "\n");
            }
            memmove(bytes + at + is, bytes + at + was, size - at - was + 1);
            memcpy(bytes + at, theirs + from, is);
            size = size - was + is;
        }
        verdict v = look(s, bytes, size);
        tried++;
        refused++;
        assert_int_equal(v, REFUSED);
        free(bytes);
    }
    free(theirs);
}

static void plain_header_over_sealed_lines_is_refused(sample *s)
{
    sample plain;
    sample_open(&plain, KIT_PLAIN, "down", 30);
    assert_int_equal(edited(s, 0, s->lines[1], plain.bytes, plain.lines[1]), REFUSED);
    assert_int_equal(edited(&plain, 0, plain.lines[1], s->bytes, s->lines[1]), REFUSED);
    sample_close(&plain);
}

static int report(void **state)
{
    (void)state;
    printf("# figure: tampered lines tried = %lu\n", tried);
    printf("# figure: tampered lines refused = %lu\n", refused);
    printf("# figure: tampered lines of the last write set aside and reported = %lu\n",
           aside);
    printf("# figure: tampered lines shown as good = %lu\n", tried - refused - aside);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(no_edit_of_any_line_passes, KIT_AES, 30),
        SAMPLE_TEST(no_other_id_passes, KIT_AES, 30),
        SAMPLE_TEST(no_humbler_claim_of_durability_passes, KIT_AES, 30),
        SAMPLE_TEST(no_second_spelling_of_a_base64_passes, KIT_AES, 30),
        SAMPLE_TEST(header_of_another_suite_epoch_or_user_is_refused, KIT_AES, 30),
        SAMPLE_TEST(part_of_another_logs_header_is_refused, KIT_AES, 30),
        SAMPLE_TEST(plain_header_over_sealed_lines_is_refused, KIT_AES, 30),
    };
    return cmocka_run_group_tests(tests, NULL, report);
}
