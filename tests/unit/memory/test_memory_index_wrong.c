/*
 * test_memory_index_wrong.c: a wrong index of a memory's log is not used.
 *
 * Each test puts another file in the place of the index: with a bit changed, cut, of an
 * earlier copy of the log, of another log, or under another key. What the memory shows
 * must be what its lines say.
 *
 * Files only: it looks at files, and changes bytes in them.
 * Own stores: sealed and plain folders.
 */
#include "support/check.h"
#include "support/keyed.h"
#include "support/logs.h"
#include "support/memories.h"
#include "support/memory_ground.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void a_spoiled_index_is_not_used(void **state)
{
    memory_ground *g = *state;
    memory_told t = memory_told_make(g, 1100);
    char *bad = malloc(t.good.size);

    for (size_t i = 0; i < 60; i++) { /* a byte anywhere */
        size_t at = i < 40 ? (size_t)memory_draw(g, (uint32_t)t.good.size)
                           : t.good.size - 1 - (i - 40);
        memcpy(bad, t.good.data, t.good.size);
        bad[at] ^= (char)(1 << memory_draw(g, 8));
        file_write_all(t.idx, bad, t.good.size);
        memory_expect_shown(g, 7, t.truth, -1);
    }
    for (size_t i = 0; i < 12; i++) { /* cut anywhere */
        file_write_all(t.idx, t.good.data, memory_draw(g, (uint32_t)t.good.size));
        memory_expect_shown(g, 7, t.truth, -1);
    }
    file_write_all(t.idx, t.good.data, t.good.size);
    memory_expect_shown(g, 7, t.truth, 1);
    free(bad);
    memory_told_free(&t);
}

static void a_spoiled_index_of_a_plain_log_is_not_used(void **state)
{
    memory_ground *g = *state;
    sessile_store_close(g->store);
    folder_remove(g->root);
    g->root = folder_make();
    g->plain = 1;
    memory_ground_open(g);
    a_spoiled_index_is_not_used(state);
}

static void an_index_of_an_earlier_copy_is_not_used(void **state)
{
    memory_ground *g = *state;
    char *truth, *log;
    memory_told t = memory_told_make(g, 300);
    sessile_memory *m;
    file_bytes before, first, second;

    log = memory_file(g, ".jsonl");
    before = bytes_read(log);
    /* the log goes on one way, then is brought back and goes on another way */
    m = memory_of(g->store, NULL);
    memory_tell(g, m, 1000);
    sessile_memory_close(m);
    first = bytes_read(t.idx);
    sessile_store_close(g->store);
    file_write_all(log, before.data, before.size);
    file_write_all(t.idx, t.good.data, t.good.size);
    memory_ground_open(g);
    g->seed = 99;
    m = memory_of(g->store, NULL);
    memory_tell(g, m, 1000);
    truth = memory_shown(m, 8);
    sessile_memory_close(m);
    second = bytes_read(t.idx);
    assert_true(second.size != first.size ||
                memcmp(second.data, first.data, first.size) != 0);
    memory_expect_shown(g, 8, truth, 1);
    file_write_all(t.idx, first.data, first.size); /* of the first way */
    memory_expect_shown(g, 8, truth, 0);
    file_write_all(t.idx, t.good.data,
                   t.good.size); /* of before: it is short, and true */
    memory_expect_shown(g, 8, truth, 1);
    free(log);
    free(truth);
    free(before.data);
    free(first.data);
    free(second.data);
    memory_told_free(&t);
}

/* Where the block that ends there begins. */
static size_t block_start(const file_bytes *b, size_t end)
{
    size_t start = 0;
    assert_memory_equal(b->data + end - 32, "sessidx1", 8);
    for (size_t i = 0; i < 8; i++)
        start |= (size_t)(unsigned char)b->data[end - 16 + i] << 8 * i;
    return start;
}

/* Blocks of two histories of one log in one file: each opens, and the last one agrees
 * with the log. */
static void blocks_of_two_histories_do_not_meet(void **state)
{
    memory_ground *g = *state;
    sessile_memory *m = memory_of(g->store, NULL);
    char *log, *idx, *truth;
    file_bytes before, first = {NULL, 0}, second;
    size_t start, end;
    sessile_id id;

    for (int i = 0; i < 250; i++) /* of one size each, so that blocks can change places */
        remember(m, NULL, "either", NULL);
    sessile_memory_close(m);
    log = memory_file(g, ".jsonl");
    idx = memory_file(g, ".idx");
    before = bytes_read(log);
    for (int way = 0; way < 2; way++) {
        if (way) {
            sessile_store_close(g->store);
            file_write_all(log, before.data, before.size);
            unlink(idx);
            memory_ground_open(g);
        }
        m = memory_of(g->store, NULL);
        for (int i = 0; i < 600; i++) {
            id = remember(m, NULL, i >= 200 ? "both" : way ? "lamp" : "left", NULL);
            if (i == 100)
                judge(m, id, SESSILE_MEMORY_PIN);
        }
        truth = memory_shown(m, 9);
        sessile_memory_close(m);
        if (!way) {
            free(truth);
            first = bytes_read(idx);
        }
    }
    second = bytes_read(idx);
    assert_int_equal(first.size, second.size);
    memory_expect_shown(g, 9, truth, 1);
    /* the block in the middle of the other history */
    end = block_start(&second, second.size);
    start = block_start(&second, end);
    assert_int_equal(block_start(&first, first.size), end);
    assert_int_equal(block_start(&first, end), start);
    assert_true(start > 0);
    memcpy(second.data + start, first.data + start, end - start);
    file_write_all(idx, second.data, second.size);
    memory_expect_shown(g, 9, truth, 0);
    free(log);
    free(idx);
    free(truth);
    free(before.data);
    free(first.data);
    free(second.data);
}

static void an_index_of_another_log_is_not_used(void **state)
{
    memory_ground *g = *state;
    sessile_memory *m = memory_of(g->store, "bob");
    sessile_session_options named;
    sessile_session *s;
    file_bytes foreign[3];
    sessile_error err;
    char *path;
    memory_told t;

    memory_tell(g, m, 900); /* of a user */
    sessile_memory_close(m);
    path = keyed_file(g->root, "coder.memory/", "sessidx1");
    assert_non_null(path);
    foreign[0] = bytes_read(path);
    free(path);
    t = memory_told_make(g, 900);
    foreign[1] = bytes_read(t.idx); /* of a memory that was removed */
    foreign[1].data = realloc(foreign[1].data, foreign[1].size * 2);
    memcpy(foreign[1].data + foreign[1].size, foreign[1].data, foreign[1].size);
    foreign[1].size *= 2;
    sessile_session_options_init(&named);
    named.id = sessile_text("s");
    named.agent = sessile_text("other");
    must(sessile_create(&s, g->store, &named, &err), &err);
    for (int i = 0; i < 600; i++)
        keyed_say(s, "something");
    sessile_session_close(s, NULL);
    path = keyed_file(g->root, "other/", "sessidx1");
    assert_non_null(path);
    foreign[2] = bytes_read(path);
    free(path);
    for (size_t i = 0; i < 3; i++) {
        file_write_all(t.idx, foreign[i].data, foreign[i].size);
        memory_expect_shown(g, 7, t.truth, 0);
        memory_expect_shown(g, 7, t.truth, 1); /* it was made again */
        free(foreign[i].data);
    }
    memory_told_free(&t);
}

static void a_memory_sealed_again_gets_another_index(void **state)
{
    memory_ground *g = *state;
    memory_told t = memory_told_make(g, 900);
    sessile_reseal_state last;
    sessile_error err;
    uint64_t epoch;
    file_bytes now;

    must(sessile_keys_rotate(g->store, NULL, &epoch, &err), &err);
    must(keyed_reseal(g->store, NULL, &last, &err), &err);
    memory_expect_shown(g, 7, t.truth, -1);
    memory_expect_shown(g, 7, t.truth, 1);
    now = bytes_read(t.idx);
    assert_true(now.size != t.good.size || memcmp(now.data, t.good.data, now.size) != 0);
    file_write_all(t.idx, t.good.data, t.good.size); /* the one under the old key */
    memory_expect_shown(g, 7, t.truth, 0);
    assert_int_equal(memory_findings(g->store), 0);
    free(now.data);
    memory_told_free(&t);
}

#define ON_GROUND(test) \
    cmocka_unit_test_setup_teardown(test, memory_ground_set_up, memory_ground_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_GROUND(a_spoiled_index_is_not_used),
        ON_GROUND(a_spoiled_index_of_a_plain_log_is_not_used),
        ON_GROUND(an_index_of_an_earlier_copy_is_not_used),
        ON_GROUND(blocks_of_two_histories_do_not_meet),
        ON_GROUND(an_index_of_another_log_is_not_used),
        ON_GROUND(a_memory_sealed_again_gets_another_index),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
