/*
 * test_index.c: opening by the index, and what becomes of an index that is not
 * as it was written.
 *
 * One rule is behind all of it: what a session shows is what its log says, with
 * an index, without one, and with any index at all; or the error is the one
 * that names what is wrong. A whole state is one text here, so that two ways to
 * it can be compared. (One long file, since every fault of an index is held
 * against that one text and the same few logs.)
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "guard/enter.h"
#include "log/copy.h"
#include "log/internal.h"
#include "session/fold.h"
#include "operations/messages.h"
#include "support/check.h"
#include "support/logs.h"
#include "support/sessions.h"

#include <cmocka.h>
#include "support/indexes.h"

static int soak(void)
{
    const char *set = getenv("SESSILE_SOAK");
    return set && *set == '1';
}

/* ------------------------------------------------------------------ stores */

static int is_there(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0;
}

/* ------------------------------------------------------------------ a story */

/* An entry of the first block that can be a leaf. */
static sessile_id old_leaf(sessile_session *s)
{
    sessile_error err;
    sessile_id id = 5;
    must(session_load_locked(s->core, id, &err), &err);
    while (!session_is_path_entry(s->core, id))
        id++;
    return id;
}

/* ------------------------------------------------------------------ used at
 * all */

static void opening_by_the_index_shows_what_a_scan_shows(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)
        for (uint64_t seed = 1; seed <= (soak() ? 200 : 6); seed++) {
            index_bed b = bed_make((store_kind)kind);
            int restored = 0;
            char *with, *without;
            make_story(&b, "s", 300 + (size_t)(seed * 131) % 900, seed);
            assert_true(is_there(bed_path(&b, "s", ".idx")));
            with = state_must(&b, "s", &restored);
            assert_int_equal(restored, 1);
            without = truth_of(&b, "s");
            assert_same_text(with, without, "seed", (size_t)seed);
            free(with);
            /* the scan has made the index again */
            free(state_must(&b, "s", &restored));
            with = state_must(&b, "s", &restored);
            assert_int_equal(restored, 1);
            assert_same_text(with, without, "made again, seed", (size_t)seed);
            free(with);
            free(without);
            bed_end(&b);
        }
}

static void a_lazy_handle_goes_on_as_a_whole_one_would(void **state)
{
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)
        for (uint64_t seed = 1; seed <= (soak() ? 100 : 4); seed++) {
            index_bed b = bed_make((store_kind)kind);
            sessile_session *s;
            uint64_t more = seed * 77;
            char *with, *without;
            buf text;
            sessile_error err;
            make_story(&b, "s", 800, seed);
            s = session_resumed(b.st, "s");
            assert_true(s->core->index.absent_count > 0);
            move_head(s, 0);
            index_tell(s, 850, &more);
            move_head(s, old_leaf(s));
            index_tell(s, 1100, &more);
            index_settle(s);
            index_tell(s, 1150, &more);
            buf_init(&text, &allocator_default);
            must(put_state(s, &text, &err), &err);
            buf_putc(&text, 0);
            session_closed(s);
            with = state_must(&b, "s", NULL);
            without = truth_of(&b, "s");
            assert_same_text(text.data, without, "the handle itself, seed", (size_t)seed);
            assert_same_text(with, without, "opened again, seed", (size_t)seed);
            buf_deinit(&text);
            free(with);
            free(without);
            bed_end(&b);
        }
}

static void one_old_entry_does_not_bring_the_others(void **state)
{
    index_bed b = bed_make(STORE_SEALED);
    sessile_session *s;
    sessile_error err;
    buf text;
    (void)state;
    make_story(&b, "s", 5000, 3);
    s = session_resumed(b.st, "s");
    assert_int_equal(s->core->index.absent_blocks, 5000 / 256);
    size_t absent = s->core->index.absent_count;
    buf_init(&text, &allocator_default);
    must(session_text_locked(s->core, 5, &text, &err), &err);
    assert_int_equal(s->core->index.absent_count, absent - 1);
    must(session_text_locked(s->core, 2600, &text, &err), &err);
    assert_int_equal(s->core->index.absent_count, absent - 2);
    buf_deinit(&text);
    session_closed(s);
    bed_end(&b);
}

/* ------------------------------------------------------------------ faults of
 * the cache */

static uint64_t le64(const char *at)
{
    uint64_t n = 0;
    for (int i = 7; i >= 0; i--)
        n = n << 8 | (unsigned char)at[i];
    return n;
}

/* Where the last block begins. */
static size_t last_start(const char *idx, size_t size)
{
    assert_memory_equal(idx + size - 32, "sessidx1", 8);
    return (size_t)le64(idx + size - 32 + 16);
}

static void any_index_shows_what_the_log_says(void **state)
{
    size_t tried = 0;
    (void)state;
    for (int kind = STORE_SEALED; kind <= STORE_PLAIN; kind++) {
        index_bed b = bed_make((store_kind)kind);
        uint64_t seed = 99;
        int restored;
        char *truth, *bad, *again;
        index_files f;
        make_story(&b, "s", 900, 11);
        f = take_files(&b, "s");
        truth = truth_of(&b, "s");
        size_t start = last_start(f.idx, f.idx_size), last = f.idx_size - start;
        bad = malloc(f.idx_size);
        assert_non_null(bad);

        index_shows(&b, truth, &f, "missing", 0);
        put_index(&b, "", 0);
        index_shows(&b, truth, &f, "empty", 0);
        /* what was missing is there again, and is used */
        again = state_must(&b, "s", &restored);
        assert_int_equal(restored, 1);
        free(again);
        for (size_t cut = 0; cut < last;
             cut += soak() || cut < 8 || cut + 40 > last ? 1 : 397) {
            put_index(&b, f.idx, start + cut);
            index_shows(&b, truth, &f, "cut", cut);
            tried++;
        }
        for (size_t i = 0; i < (soak() ? last * 8 : 60); i++) {
            size_t bit = start * 8 + (soak() ? i : random_next(&seed) % (last * 8));
            memcpy(bad, f.idx, f.idx_size);
            bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
            put_index(&b, bad, f.idx_size);
            index_shows(&b, truth, &f, "bit", bit);
            tried++;
        }
        for (size_t i = 0; i < (soak() ? 5000 : 60); i++) {
            size_t bit = random_next(&seed) % (start * 8);
            memcpy(bad, f.idx, f.idx_size);
            bad[bit / 8] = (char)(bad[bit / 8] ^ 1 << bit % 8);
            put_index(&b, bad, f.idx_size);
            index_shows(&b, truth, &f, "bit of an older block", bit);
            tried++;
        }
        for (size_t i = 0; i < 256; i++) { /* the trailer, which is in clear */
            memcpy(bad, f.idx, f.idx_size);
            bad[f.idx_size - 32 + i / 8] ^= (char)(1 << i % 8);
            put_index(&b, bad, f.idx_size);
            if (i % 8 == 0 || soak()) {
                index_shows(&b, truth, &f, "bit of the trailer", i);
                tried++;
            }
        }
        /* two blocks exchanged, and bytes behind the end */
        size_t first = 0; /* the first block's size: where the second begins */
        for (size_t at = f.idx_size; at > 0; at = (size_t)le64(f.idx + at - 16))
            first = at;
        memcpy(bad, f.idx + start, last < first ? last : first);
        memcpy(bad + first, f.idx + first, f.idx_size - first);
        put_index(&b, bad, f.idx_size);
        index_shows(&b, truth, &f, "exchanged", 0);
        again = malloc(f.idx_size + 1000);
        memcpy(again, f.idx, f.idx_size);
        memset(again + f.idx_size, 0, 1000);
        put_index(&b, again, f.idx_size + 1000);
        index_shows(&b, truth, &f, "zeros behind", 1000);
        free(again);
        free(bad);
        free(truth);
        drop_files(&f);
        bed_end(&b);
    }
    print_message("# figure: indexes that were not as written = %zu\n", tried);
}

/* The header's node is there from the beginning, its line's place is not. */
static void the_header_is_read_beside_a_bad_first_block(void **state)
{
    index_bed b = bed_make(STORE_SEALED);
    sessile_session *s;
    sessile_error err;
    index_files f;
    buf text;
    (void)state;
    make_story(&b, "s", 900, 11);
    f = take_files(&b, "s");
    f.idx[100] ^= 1;
    put_index(&b, f.idx, f.idx_size);
    s = session_resumed(b.st, "s");
    assert_int_equal(s->core->index.restored, 1);
    buf_init(&text, &allocator_default);
    must(session_text_locked(s->core, 0, &text, &err), &err);
    buf_deinit(&text);
    session_closed(s);
    drop_files(&f);
    bed_end(&b);
}

/* The files of session s, which has this number of entries. */
static index_files files_of_story(index_bed *b, size_t count, uint64_t seed)
{
    make_story(b, "s", count, seed);
    return take_files(b, "s");
}

/* Its files after more entries. */
static index_files files_grown(index_bed *b, size_t count, uint64_t seed)
{
    sessile_session *s = session_resumed(b->st, "s");
    index_tell(s, count, &seed);
    session_closed(s);
    return take_files(b, "s");
}

/* An older copy of the log is put back, without its index. */
static void restore_log(const index_bed *b, const index_files *old)
{
    file_write_all(bed_path(b, "s", ".jsonl"), old->log, old->log_size);
    unlink(bed_path(b, "s", ".idx"));
}

/* With the index of `other` the session shows what its log says, and does not use it. */
static void assert_ignored(const index_bed *b, const index_files *other, const char *what)
{
    int restored = 1;
    index_files f = take_files(b, "s");
    char *truth = truth_of(b, "s"), *now;
    put_index(b, other->idx, other->idx_size);
    now = state_must(b, "s", &restored);
    assert_int_equal(restored, 0);
    assert_same_text(now, truth, what, 0);
    log_is(b, "s", &f);
    free(now);
    free(truth);
    drop_files(&f);
}

#define EACH_KIND for (store_kind kind = STORE_SEALED; kind <= STORE_PLAIN; kind++)

static void an_index_of_another_log_is_ignored(void **state)
{
    (void)state;
    EACH_KIND
    {
        index_bed b = bed_make(kind);
        index_files other;
        make_story(&b, "s", 700, 1);
        make_story(&b, "other", 1500, 2);
        other = take_files(&b, "other");
        assert_ignored(&b, &other, "another's");
        drop_files(&other);
        bed_end(&b);
    }
}

static void an_older_index_is_continued(void **state)
{
    (void)state;
    EACH_KIND
    {
        index_bed b = bed_make(kind);
        index_files old = files_of_story(&b, 700, 1), now = files_grown(&b, 2000, 5);
        char *truth = truth_of(&b, "s");
        put_index(&b, old.idx, old.idx_size);
        index_shows(&b, truth, &now, "older", 0);
        index_shows(&b, truth, &now, "older, then", 1);
        free(truth);
        drop_files(&old);
        drop_files(&now);
        bed_end(&b);
    }
}

static void a_log_older_than_its_index_is_truncated(void **state)
{
    (void)state;
    EACH_KIND
    {
        index_bed b = bed_make(kind);
        sessile_error err;
        char *out;
        index_files old = files_of_story(&b, 700, 1), now = files_grown(&b, 2000, 5);
        file_write_all(bed_path(&b, "s", ".jsonl"), old.log, old.log_size);
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_TRUNCATED);
        assert_non_null(strstr(err.message, "salvage"));
        log_is(&b, "s", &old);
        /* cut to nothing but its header as well */
        size_t header = (size_t)(strchr(old.log, '\n') - old.log) + 1;
        file_write_all(bed_path(&b, "s", ".jsonl"), old.log, header);
        assert_int_equal(state_of(&b, "s", &out, NULL, &err), SESSILE_TRUNCATED);
        drop_files(&old);
        drop_files(&now);
        bed_end(&b);
    }
}

/* An older copy was put back and continued: the index has entries that are no longer in
 * the log. The log is whole, so it is what counts. */
static void an_index_of_another_history_is_ignored(void **state)
{
    (void)state;
    EACH_KIND
    {
        index_bed b = bed_make(kind);
        index_files old = files_of_story(&b, 700, 1), first = files_grown(&b, 1200, 5);
        restore_log(&b, &old);
        index_files second = files_grown(&b, 2500, 6);
        assert_ignored(&b, &first, "other history");
        drop_files(&old);
        drop_files(&first);
        drop_files(&second);
        bed_end(&b);
    }
}

/* The same with lines of the same sizes, so that every line is where another one was. */
static void a_line_in_the_same_place_is_not_the_same_line(void **state)
{
    static const char *const said[] = {
        "{\"role\":\"user\",\"content\":\"a\",\"usage\":{\"input\":10}}",
        "{\"role\":\"user\",\"content\":\"b\",\"usage\":{\"input\":20}}"};
    (void)state;
    EACH_KIND
    {
        index_bed b = bed_make(kind);
        index_files old = files_of_story(&b, 300, 1), went[2];
        for (int history = 0; history < 2; history++) {
            restore_log(&b, &old);
            sessile_session *s = session_resumed(b.st, "s");
            for (int i = 0; i < 500; i++)
                say_json(s, said[history]);
            session_closed(s);
            went[history] = take_files(&b, "s");
        }
        assert_int_equal(went[0].log_size, went[1].log_size);
        assert_ignored(&b, &went[0], "same place");
        drop_files(&old);
        drop_files(&went[0]);
        drop_files(&went[1]);
        bed_end(&b);
    }
}

/* A block says that its entries were safe: none is written before they are. */
static void what_is_not_known_to_be_safe_is_not_in_it(void **state)
{
    index_bed b = bed_make(STORE_SEALED);
    sessile_session *s = session_made(b.st, "s");
    sessile_error err;
    (void)state;
    for (int i = 0; i < 600; i++)
        say(s, "user", "x");
    assert_false(is_there(bed_path(&b, "s", ".idx")));
    must(log_sync(s->core->log, 300, &err), &err);
    assert_false(is_there(bed_path(&b, "s", ".idx")));
    say(s, "user", "y");
    assert_true(is_there(bed_path(&b, "s", ".idx")));
    must(sessile_session_close(s, &err), &err);
    bed_end(&b);
}

/* What a refused write brought out of the index stays whole. */
static void a_refused_write_takes_nothing_back_of_old_blocks(void **state)
{
    index_bed b = bed_make(STORE_SEALED);
    sessile_session *s;
    sessile_error err;
    sessile_id id;
    char *with, *without, data[32];
    buf text;
    (void)state;
    make_story(&b, "s", 1500, 31);
    s = session_resumed(b.st, "s");
    s->core->store->limits.session = log_bytes(s->core->log) + 1;
    size_t absent = s->core->index.absent_count;
    for (unsigned to = 7; s->core->index.absent_count == absent || to % 200 != 0; to++) {
        snprintf(data, sizeof data, "{\"head\":\"%08x\"}", to);
        assert_int_not_equal(try_entry(s, "head", SESSILE_NO_ID, data, &id, &err),
                             SESSILE_OK);
    }
    assert_true(s->core->index.absent_count < absent);
    /* the next links must not come to stand where those of the blocks are */
    s->core->store->limits.session = UINT64_MAX;
    say_turn(s,
             (const char *const[]){"{\"role\":\"assistant\",\"content\":\"\",\"tool_"
                                   "calls\":[{\"id\":\"c7\",\"name\":\"n\","
                                   "\"arguments\":\"\"}]}"},
             1, "");
    buf_init(&text, &allocator_default);
    must(put_state(s, &text, &err), &err);
    buf_putc(&text, 0);
    session_closed(s);
    with = state_must(&b, "s", NULL);
    without = truth_of(&b, "s");
    assert_same_text(text.data, without, "refused", 0);
    assert_same_text(with, without, "refused, opened again", 0);
    buf_deinit(&text);
    free(with);
    free(without);
    bed_end(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opening_by_the_index_shows_what_a_scan_shows),
        cmocka_unit_test(a_lazy_handle_goes_on_as_a_whole_one_would),
        cmocka_unit_test(one_old_entry_does_not_bring_the_others),
        cmocka_unit_test(any_index_shows_what_the_log_says),
        cmocka_unit_test(the_header_is_read_beside_a_bad_first_block),
        cmocka_unit_test(an_index_of_another_log_is_ignored),
        cmocka_unit_test(an_older_index_is_continued),
        cmocka_unit_test(a_log_older_than_its_index_is_truncated),
        cmocka_unit_test(an_index_of_another_history_is_ignored),
        cmocka_unit_test(a_line_in_the_same_place_is_not_the_same_line),
        cmocka_unit_test(what_is_not_known_to_be_safe_is_not_in_it),
        cmocka_unit_test(a_refused_write_takes_nothing_back_of_old_blocks),
    };
    return cmocka_run_group_tests_name("the index", tests, NULL, NULL);
}
