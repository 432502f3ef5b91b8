/*
 * test_tamper.c: what an attacker or a failing disk does to a log is refused or set aside
 * and reported, never read as something else.
 *
 * Owns promises 4 and 12. The rule checked after each change: opening either says what is
 * wrong and changes no byte, or shows exactly a prefix of the commits that were written,
 * lacking at most the last write, and reports the bytes it set aside. A log that opens
 * damaged takes no write, and what it shows past the damage is, entry for entry, what was
 * written, or said to be lost.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "support/tamper.h"

/* ------------------------------------------------------------------ several writes */

static void damage_in_several_last_writes_is_refused(sample *s)
{
    /* The proof of the first damaged write is damaged itself: what it says in clear is
     * reason enough not to cut. */
    for (size_t first = 1; first + 1 < s->line_count; first++) {
        char *bytes = malloc(s->size);
        assert_non_null(bytes);
        memcpy(bytes, s->bytes, s->size);
        for (size_t i = first; i < s->line_count; i++)
            bytes[(s->lines[i] + s->lines[i + 1]) / 2] ^= 1;
        assert_int_equal(look(s, bytes, s->size), REFUSED);
        free(bytes);
    }
}

/* ------------------------------------------------------------------ whole lines */

/* The verdict on the sample's lines in another order: order[i] is the line that is put at
 * i. */
static verdict look_ordered(sample *s, const size_t *order, size_t count)
{
    char *out = malloc(2 * s->size);
    size_t size = 0;
    assert_non_null(out);
    for (size_t i = 0; i < count; i++) {
        size_t line_size = s->lines[order[i] + 1] - s->lines[order[i]];
        memcpy(out + size, s->bytes + s->lines[order[i]], line_size);
        size += line_size;
    }
    verdict v = look(s, out, size);
    free(out);
    return v;
}

/* The same with line i replaced by these bytes, also if it is the last. */
static void line_replaced(sample *s, size_t i, const char *theirs, size_t theirs_size)
{
    assert_int_equal(
        look_edited(s, s->lines[i], s->lines[i + 1] - s->lines[i], theirs, theirs_size),
        REFUSED);
}

static void any_two_lines_swapped_are_refused(sample *s)
{
    for (size_t a = 0; a < s->line_count; a++) {
        for (size_t b = a + 1; b < s->line_count; b++) {
            size_t order[64];
            for (size_t i = 0; i < s->line_count; i++)
                order[i] = i == a ? b : i == b ? a : i;
            assert_int_equal(look_ordered(s, order, s->line_count), REFUSED);
        }
    }
}

static void any_line_dropped_but_the_last_is_refused(sample *s)
{
    for (size_t gone = 0; gone + 1 < s->line_count; gone++) {
        size_t order[64], n = 0;
        for (size_t i = 0; i < s->line_count; i++)
            if (i != gone)
                order[n++] = i;
        assert_int_equal(look_ordered(s, order, n), REFUSED);
    }
}

static void any_line_replayed_is_refused(sample *s)
{
    for (size_t which = 0; which < s->line_count; which++) {
        for (size_t where = 1; where <= s->line_count; where++) {
            size_t order[64], n = 0;
            for (size_t i = 0; i < s->line_count; i++) {
                if (i == where)
                    order[n++] = which;
                order[n++] = i;
            }
            if (where == s->line_count)
                order[n++] = which;
            assert_int_equal(look_ordered(s, order, n), REFUSED);
        }
    }
}

static void lines_reversed_are_refused(sample *s)
{
    size_t order[64];
    order[0] = 0;
    for (size_t i = 1; i < s->line_count; i++)
        order[i] = s->line_count - i;
    assert_int_equal(look_ordered(s, order, s->line_count), REFUSED);
}

/* ------------------------------------------------------------------ other logs */

/* The bytes of another log of the same store, with the same ids and texts. */
static char *twin_of(sample *s, size_t *size)
{
    char path[600];
    kit_create(&s->k, "two");
    log_t *log = kit_resume(&s->k, "two", NULL);
    for (size_t i = 1; i < s->line_count; i++) {
        do_write(log, 1, "what was said", 20);
        do_sync(log);
    }
    log_close(log);
    kit_path(&s->k, "two", path);
    return file_read_all(path, size);
}

static void line_of_another_log_is_refused(sample *s)
{
    size_t other_size;
    char *other = twin_of(s, &other_size);
    /* line by line: theirs in the place of ours */
    char *theirs = other;
    for (size_t i = 0; i < s->line_count; i++) {
        size_t theirs_size = (size_t)(strchr(theirs, '\n') + 1 - theirs);
        line_replaced(s, i, theirs, theirs_size);
        theirs += theirs_size;
    }
    free(other);
}

static void header_of_another_log_is_refused(sample *s)
{
    size_t other_size;
    char *other = twin_of(s, &other_size);
    /* our key, their entry: everything before `,"commit":1` ours, the rest theirs */
    char *mine = strstr(s->bytes, ",\"commit\":1,\"s\":");
    char *yours = strstr(other, ",\"commit\":1,\"s\":");
    char *end = strchr(other, '\n');
    size_t a = (size_t)(mine - s->bytes), b = (size_t)(end - yours),
           rest = s->lines[1] - 1;
    char *bytes = malloc(s->size + b);
    assert_non_null(bytes);
    memcpy(bytes, s->bytes, a);
    memcpy(bytes + a, yours, b);
    memcpy(bytes + a + b, s->bytes + rest, s->size - rest);
    assert_int_equal(look(s, bytes, a + b + s->size - rest), REFUSED);
    free(bytes);
    free(other);
}

/* The log of one sample does not open with the bytes of another. */
static void is_sealed_to(sample *s, const sample *other)
{
    sessile_error err = {0};
    log_t *log;
    file_write_all(s->path, other->bytes, other->size);
    assert_int_equal(kit_try(&s->k, "log", &log, NULL, NULL, &err), SESSILE_SEALED);
}

/* The same secret, another keyring. */
static void log_of_another_store_is_sealed(sample *s)
{
    sample other;
    sample_open(&other, KIT_XCHACHA, "log", 20);
    is_sealed_to(s, &other);
    sample_close(&other);
}

static void plain_log_in_a_sealed_store_is_sealed(sample *s)
{
    sample plain;
    sample_open(&plain, KIT_PLAIN, "log", 20);
    is_sealed_to(s, &plain);
    is_sealed_to(&plain, s);
    sample_close(&plain);
}

static void plain_line_in_a_sealed_log_is_refused_and_the_reverse(void **state)
{
    (void)state;
    sample sealed, plain;
    sample_open(&sealed, KIT_XCHACHA, "x", 20);
    sample_open(&plain, KIT_PLAIN, "x", 20);
    sample *pairs[][2] = {{&sealed, &plain}, {&plain, &sealed}};
    for (int p = 0; p < 2; p++) {
        sample *s = pairs[p][0], *t = pairs[p][1];
        for (size_t i = 0; i < s->line_count; i++) {
            size_t theirs = t->lines[i + 1] - t->lines[i];
            line_replaced(s, i, t->bytes + t->lines[i], theirs);
        }
        /* one more at the end */
        char *bytes = malloc(s->size + t->size);
        assert_non_null(bytes);
        size_t last = t->lines[t->line_count - 1], extra = t->size - last;
        memcpy(bytes, s->bytes, s->size);
        memcpy(bytes + s->size, t->bytes + last, extra);
        assert_int_equal(look(s, bytes, s->size + extra), REFUSED);
        free(bytes);
    }
    sample_close(&plain);
    sample_close(&sealed);
}

static void line_of_another_time_is_refused(void **state)
{
    /* A log that was brought back from a backup and went on: the last line of the first
     * course has the right id and opens, but follows another line. */
    sample s;
    char path[600];
    (void)state;
    sample_open(&s, KIT_XCHACHA, "x", 20);
    size_t last = s.lines[s.line_count - 1], before = s.lines[s.line_count - 2];
    file_write_all(s.path, s.bytes, before);
    log_t *log = kit_resume(&s.k, "x", NULL);
    do_write(log, 1, "another course", 0);
    do_sync(log);
    do_write(log, 1, "of events", 0);
    do_sync(log);
    log_close(log);
    kit_path(&s.k, "x", path);
    size_t size;
    char *bytes = file_read_all(path, &size);
    char *cut = memrchr(bytes, '\n', size - 1);
    size_t keep = (size_t)(cut + 1 - bytes), extra = s.size - last;
    char *mixed = malloc(keep + extra);
    assert_non_null(mixed);
    memcpy(mixed, bytes, keep);
    memcpy(mixed + keep, s.bytes + last, extra);
    file_write_all(path, mixed, keep + extra);
    seen found = {0};
    uint64_t torn;
    sessile_error err = {0};
    assert_int_equal(kit_try(&s.k, "x", &log, &found, &torn, &err), SESSILE_OK);
    assert_int_equal(torn, 0);
    assert_int_equal(log_damage(log, &err), SESSILE_DAMAGED);
    assert_int_equal(found.count, s.line_count - 1);
    log_close(log);
    seen_free(&found);
    free(mixed);
    free(bytes);
    sample_close(&s);
}

/* ------------------------------------------------------------------ edits by hand */

/* A plain log, its path, and its header. */
static char *plain_log(kit *k, char path[600], size_t *size)
{
    kit_open(k, KIT_PLAIN);
    kit_create(k, "edit");
    kit_path(k, "edit", path);
    return file_read_all(path, size);
}

/* Appends a line with its checksum to bytes of 2000. */
static int put_line(char *bytes, int at, const char *line, int size)
{
    char hex[17];
    unsigned char hash[32];
    hash256(hash, line, (size_t)size, NULL, 0);
    hex_encode(hex, hash, 8);
    return at + snprintf(bytes + at, 2000 - (size_t)at, "%s,\"_c\":\"%s\"}\n", line, hex);
}

/* The log with these bytes opens, shows `count` entries, and is damaged behind them. */
static void opened_damaged(kit *k, const char *path, const char *bytes, int size,
                           size_t count)
{
    sessile_error err = {0};
    seen found = {0};
    log_t *log;
    uint64_t torn;
    file_write_all(path, bytes, (size_t)size);
    assert_int_equal(kit_try(k, "edit", &log, &found, &torn, &err), SESSILE_OK);
    assert_int_equal(found.count, count);
    assert_int_equal(log_damage(log, &err), SESSILE_DAMAGED);
    assert_int_equal(torn, 0);
    log_close(log);
    seen_free(&found);
}

/* An edit with a new checksum passes in a plain log: that is what plain means. It
 * must still be checked JSON. */
static void plain_line_with_a_new_checksum_must_be_json(void **state)
{
    static const char *const bad[] = {
        "{\"id\":\"00000001\",\"data\":{\"content\":\"a\x01\"}}",
        "{\"id\":\"00000001\",\"data\":{\"content\":\"\xff\"}}",
        "{\"id\":\"00000001\",\"data\":{\"content\":}}",
        "{\"id\":\"00000001\",\"data\":{}},{}",
        "{\"id\":\"00000001\"",
    };
    kit k;
    char path[600];
    size_t size;
    (void)state;
    char *header = plain_log(&k, path, &size);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char line[400], bytes[2000];
        int n = snprintf(line, sizeof line, "%.*s,\"commit\":1", (int)strlen(bad[i]) - 1,
                         bad[i]);
        int all = put_line(bytes, snprintf(bytes, sizeof bytes, "%s", header), line, n);
        opened_damaged(&k, path, bytes, all, 1);
    }
    free(header);
    kit_close(&k);
}

static void write_whose_count_is_wrong_is_no_write(void **state)
{
    /* an edit by hand, its checksums recomputed */
    static const struct {
        const char *first, *second;
    } edits[] = {{",\"commit\":2", NULL},
                 {"", ",\"commit\":1"},
                 {",\"commit\":1", ",\"commit\":2"}};
    static const size_t counts[] = {1, 1, 2};
    kit k;
    char path[600];
    size_t size;
    (void)state;
    char *header = plain_log(&k, path, &size);
    for (size_t i = 0; i < 3; i++) {
        char bytes[2000];
        int all = snprintf(bytes, sizeof bytes, "%s", header);
        const char *const clear[] = {edits[i].first, edits[i].second};
        for (int j = 0; j < 2 && clear[j]; j++) {
            char line[400];
            int n = snprintf(line, sizeof line, "{\"id\":\"%08x\",\"data\":{}%s", j + 1,
                             clear[j]);
            all = put_line(bytes, all, line, n);
        }
        opened_damaged(&k, path, bytes, all, counts[i]);
    }
    free(header);
    kit_close(&k);
}

static void plain_line_too_deep_is_LIMIT_and_nothing_is_cut(void **state)
{
    kit k;
    char path[600];
    sessile_error err = {0};
    log_t *log;
    uint64_t torn;
    size_t before, after;
    (void)state;
    kit_open(&k, KIT_PLAIN);
    kit_create(&k, "deep");
    log = kit_resume(&k, "deep", NULL);
    char text[2000] = "{\"id\":\"00000001\",\"data\":";
    for (int i = 0; i < 200; i++)
        strcat(text, "[");
    for (int i = 0; i < 200; i++)
        strcat(text, "]");
    strcat(text, "}");
    sessile_slice slice = {text, strlen(text)};
    assert_int_equal(log_begin(log, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(log_append(log, &slice, 1, 0, &err), SESSILE_OK);
    log_end(log);
    log_close(log);
    kit_path(&k, "deep", path);
    free(file_read_all(path, &before));
    assert_int_equal(kit_try(&k, "deep", &log, NULL, &torn, &err), SESSILE_LIMIT);
    free(file_read_all(path, &after));
    assert_int_equal(after, before);
    assert_int_equal(log_open(&log, &k.st, k.keys, "main", "deep", 400, 0, NULL, NULL,
                              &torn, &k.alloc, &err),
                     SESSILE_OK);
    log_close(log);
    kit_close(&k);
}

static void text_without_a_newline_takes_bounded_memory(void **state)
{
    kit k;
    char path[600];
    sessile_error err = {0};
    seen found = {0};
    log_t *log;
    uint64_t torn;
    size_t size;
    (void)state;
    kit_open(&k, KIT_XCHACHA);
    kit_create(&k, "long");
    kit_path(&k, "long", path);
    free(file_read_all(path, &size));
    assert_int_equal(truncate(path, 100 << 20), 0); /* a hole: takes no space */
    k.memory.peak = 0;
    assert_int_equal(kit_try(&k, "long", &log, &found, &torn, &err), SESSILE_OK);
    assert_int_equal(found.count, 1);
    assert_int_equal(torn, (100u << 20) - size);
    assert_true(k.memory.peak < 140u << 20);
    log_close(log);
    seen_free(&found);
    kit_close(&k);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SAMPLE_TEST(damage_in_several_last_writes_is_refused, KIT_PLAIN, 100),
        SAMPLE_TEST(any_two_lines_swapped_are_refused, KIT_PLAIN, 20),
        SAMPLE_TEST(any_line_dropped_but_the_last_is_refused, KIT_PLAIN, 20),
        SAMPLE_TEST(any_line_replayed_is_refused, KIT_PLAIN, 20),
        SAMPLE_TEST(lines_reversed_are_refused, KIT_PLAIN, 20),
        SAMPLE_TEST(line_of_another_log_is_refused, KIT_AES, 20),
        SAMPLE_TEST(header_of_another_log_is_refused, KIT_AES, 20),
        SAMPLE_TEST(log_of_another_store_is_sealed, KIT_XCHACHA, 20),
        SAMPLE_TEST(plain_log_in_a_sealed_store_is_sealed, KIT_XCHACHA, 20),
        cmocka_unit_test(plain_line_in_a_sealed_log_is_refused_and_the_reverse),
        cmocka_unit_test(line_of_another_time_is_refused),
        cmocka_unit_test(plain_line_with_a_new_checksum_must_be_json),
        cmocka_unit_test(write_whose_count_is_wrong_is_no_write),
        cmocka_unit_test(plain_line_too_deep_is_LIMIT_and_nothing_is_cut),
        cmocka_unit_test(text_without_a_newline_takes_bounded_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
