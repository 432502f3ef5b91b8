/*
 * test_memory_nomem.c: memory runs out at every place where it can, in the life of a
 * long-term memory.
 *
 * The life is played again and again; the first time its first allocation fails and all
 * that follow, the next time its second, until it passes. Nothing may leak. When there is
 * memory again, the same handle shows what was acknowledged, and goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "sessile_memory.h"
#include "support/memories.h"
#include "support/rations.h"
#include "support/simfs.h"

#include <cmocka.h>

enum { WRITES = 6 };

typedef struct life {
    sessile_store *store;
    sessile_memory *memory;
    sessile_id ids[WRITES];
    int written, deleted, embedded;
} life;

static sessile_status open_all(life *l, rations *r)
{
    sessile_store_options o;
    sessile_memory_options m;
    sessile_status status;

    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f";
    o.alloc = ration;
    o.alloc_ud = r;
    status = sessile_open(&l->store, "/store", &o, NULL);
    if (status)
        return status;
    sessile_memory_options_init(&m);
    m.user = sessile_text("ann");
    m.consent = sessile_text("yes");
    return sessile_memory_open(&l->memory, l->store, &m, NULL);
}

static sessile_status write_all(life *l)
{
    sessile_memory_from from = {.session = sessile_text("s"), .first = 1, .last = 2};
    while (l->written < WRITES) {
        sessile_memory_write_entry e;
        sessile_status status;
        char value[40];
        sessile_memory_write_init(&e);
        snprintf(value, sizeof value, "common entry%d n\xc3\xa4her", l->written);
        e.value = sessile_text(value);
        e.key = sessile_text(l->written % 2 ? "odd" : NULL);
        e.also = sessile_text("nearby");
        e.metadata = sessile_text("{\"a\":1}");
        e.from = &from;
        e.from_count = 1;
        if (l->written == 4) {
            e.replaces = l->ids;
            e.replace_count = 1;
        }
        status = sessile_memory_write(l->memory, &e, 1, &l->ids[l->written], NULL);
        if (status)
            return status;
        l->written++;
    }
    return SESSILE_OK;
}

static sessile_status judge_and_embed(life *l)
{
    float vector[] = {1, 2, 3};
    sessile_status status = SESSILE_OK;
    if (!l->deleted)
        status =
            sessile_memory_verdict(l->memory, &l->ids[2], 1, SESSILE_MEMORY_DELETE,
                                   sessile_text("why"), sessile_text("me"), NULL, NULL);
    l->deleted |= !status;
    if (!status && !l->embedded)
        status = sessile_memory_embed(l->memory, sessile_text("tiny"), 3, &l->ids[4],
                                      vector, 1, NULL);
    l->embedded |= !status;
    return status;
}

static sessile_status read_all(life *l)
{
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_memory_stats stats;
    float vector[] = {1, 2, 2};
    size_t count;
    sessile_status status;

    sessile_memory_search_init(&o);
    o.explain = 1;
    o.vector = vector;
    o.dims = 3;
    o.filter.session = sessile_text("s");
    status =
        sessile_memory_search(l->memory, sessile_text("common"), &o, &rows, &count, NULL);
    sessile_free(rows);
    if (!status)
        status = sessile_memory_history(l->memory, sessile_text("odd"), 0, &rows, &count,
                                        NULL);
    if (!status)
        sessile_free(rows);
    return status ? status : sessile_memory_get_stats(l->memory, &stats, NULL);
}

/* What the handle shows when there is memory again. A write that failed for want of
 * memory was not written. */
static void expect_acknowledged(const life *l)
{
    sessile_memory_stats stats;
    sessile_memory_row *row;
    sessile_error err;
    char *hits;

    assert_int_equal(sessile_memory_get_stats(l->memory, &stats, &err), SESSILE_OK);
    assert_int_equal(stats.entries, l->written);
    assert_int_equal(stats.states[SESSILE_MEMORY_DELETED], l->deleted);
    assert_int_equal(stats.vectors, l->embedded);
    hits = found(l->memory, "common");
    for (int i = 0; i < l->written; i++) {
        char word[32];
        snprintf(word, sizeof word, "entry%d", i);
        assert_int_equal(sessile_memory_get(l->memory, l->ids[i], &row, &err),
                         SESSILE_OK);
        assert_int_equal(strstr(hits, word) != NULL, row->state == SESSILE_MEMORY_LIVE);
        sessile_free(row);
    }
    free(hits);
}

static sessile_status live(life *l)
{
    sessile_status status = write_all(l);
    if (!status)
        status = judge_and_embed(l);
    return status ? status : read_all(l);
}

static void a_memory_survives_want_of_memory(void **state)
{
    int done = 0;
    long n;
    (void)state;
    for (n = 0; !done; n++) {
        rations r = {n, 0};
        life l = {.store = NULL};
        simfs *fs = simfs_new();
        os_current = simfs_table(fs);
        assert_in_range(n, 0, 20000);
        done = !open_all(&l, &r) && !live(&l);
        r.left = -1;
        if (l.memory) {
            expect_acknowledged(&l);
            assert_int_equal(live(&l), SESSILE_OK);
            expect_acknowledged(&l);
        }
        sessile_memory_close(l.memory);
        sessile_store_close(l.store);
        if (r.live)
            print_error("allocation %ld: %ld blocks leaked\n", n, r.live);
        assert_int_equal(r.live, 0);
        assert_int_equal(simfs_descriptors(fs), 0);
        os_current = &os_posix;
        simfs_free(fs);
    }
    assert_true(n > 200);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_memory_survives_want_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
