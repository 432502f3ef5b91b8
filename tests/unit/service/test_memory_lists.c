/*
 * test_memory_lists.c: lists of a memory: what they cost when their clients read slowly
 * or nothing, that they are of one moment, and how much one reply has.
 */
#include "slow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "service/memory.pb-c.h"
#include "sessile_memory.h"
#include "support/runs.h"

enum { SIZE = 60000, ENTRIES = 110 }; /* 6.3 MiB */

static Sessile__V1__Memory *memory_of(const char *user)
{
    static Sessile__V1__Memory names[16];
    static int last;
    Sessile__V1__Memory *out = &names[last++ % 16];
    sessile__v1__memory__init(out);
    out->user = (char *)user;
    return out;
}

/* Writes entries of `size` bytes, "0 xxx", "1 xxx" and so on, one after the other. With a
 * key, each replaces the one before. */
static void fill(sessile_store *store, const char *user, const char *key, int from,
                 int count, size_t size)
{
    char *value = malloc(size + 16);
    sessile_memory_options o;
    sessile_memory *m;
    sessile_error err;
    assert_non_null(value);
    sessile_memory_options_init(&o);
    o.user = sessile_text(user);
    o.consent = sessile_text("remember it");
    if (sessile_memory_open(&m, store, &o, &err))
        fail_msg("%s", err.message);
    for (int i = from; i < from + count; i++) {
        sessile_memory_write_entry entry;
        sessile_id id;
        int n = sprintf(value, "%d ", i);
        memset(value + n, 'x', size);
        sessile_memory_write_init(&entry);
        entry.key = sessile_text(key);
        entry.value = (sessile_slice){value, (size_t)n + size};
        if (sessile_memory_write(m, &entry, 1, &id, &err))
            fail_msg("%s", err.message);
    }
    sessile_memory_close(m);
    free(value);
}

/* The rows of all pieces are the entries from the newest on, down to `last`. */
static void has_entries(const stream *st, int newest, int last)
{
    int next = newest;
    assert_int_equal(st->code, RPC_OK);
    for (size_t i = 0; i < st->count; i++) {
        const Sessile__V1__MemoryRows *piece = st->replies[i];
        for (size_t k = 0; k < piece->n_rows; k++)
            assert_int_equal(atoi(piece->rows[k]->value), next--);
    }
    assert_int_equal(next, last - 1);
}

/* ---------------------------------------------------------------- nothing is read */

enum { MEMORIES = 4, STREAMS = 100 };

static size_t pack_list(unsigned i, unsigned char *out)
{
    Sessile__V1__ListMemoryRequest r = SESSILE__V1__LIST_MEMORY_REQUEST__INIT;
    char user[16];
    snprintf(user, sizeof user, "u%u", i % MEMORIES);
    r.memory = memory_of(user);
    r.limit = ENTRIES;
    return sessile__v1__list_memory_request__pack(&r, out);
}

/* 100 streams of 6.3 MiB cost what is on its way (1 MiB and a piece each), what they
 * keep, and what the workers have at hand; not 630 MiB. */
static void test_who_reads_nothing_costs_little(void **state)
{
    slow w;
    (void)state;
    slow_open(&w, "ram:", 64 * MIB);
    for (int i = 0; i < MEMORIES; i++) {
        char user[16];
        snprintf(user, sizeof user, "u%d", i);
        fill(w.store, user, "", 0, ENTRIES, SIZE);
    }
    const size_t before = in_use();
    int fd = slow_ask(&w, "/sessile.v1.MemoryService/ListMemory", STREAMS, pack_list);
    const size_t most = slow_settle(&w, slow_begun, STREAMS);
    print_message("%d streams of 6.3 MiB: %zu MiB\n", STREAMS, (most - before) / MIB);
    assert_int_equal(slow_calls(&w), STREAMS); /* none was refused */
    assert_true(most - before < STREAMS * (MIB + MIB / 2) + 64 * MIB + 96 * MIB);
    close(fd);
    slow_settle(&w, slow_calls, 0);
    slow_close(&w);
}

/* ---------------------------------------------------------------- slow readers */

static const size_t KEPT[] = {64 * MIB, 0}; /* rows are kept; they are found again */

static void test_who_reads_slowly_gets_each_entry(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        Sessile__V1__ListMemoryRequest list = SESSILE__V1__LIST_MEMORY_REQUEST__INIT;
        Sessile__V1__MemoryHistoryRequest history =
            SESSILE__V1__MEMORY_HISTORY_REQUEST__INIT;
        slow w;
        stream st;
        slow_open(&w, "ram:", KEPT[i]);
        fill(w.store, "ann", "", 0, ENTRIES, SIZE);
        fill(w.store, "bob", "key", 0, ENTRIES, SIZE);
        list.memory = memory_of("ann");
        list.limit = ENTRIES;
        slow_begin(&w, &st, "ListMemory", &list);
        slow_go_on(&st);
        has_entries(&st, ENTRIES - 1, 0);
        stream_done(&st);
        history.memory = memory_of("bob");
        history.key = "key";
        slow_begin(&w, &st, "GetMemoryHistory", &history);
        slow_go_on(&st);
        has_entries(&st, ENTRIES - 1, 0);
        stream_done(&st);
        slow_close(&w);
    }
}

static void test_a_list_that_is_read_slowly_is_of_one_moment(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        Sessile__V1__ListMemoryRequest r = SESSILE__V1__LIST_MEMORY_REQUEST__INIT;
        slow w;
        stream st;
        slow_open(&w, "ram:", KEPT[i]);
        fill(w.store, "ann", "", 0, ENTRIES, SIZE);
        r.memory = memory_of("ann");
        r.limit = ENTRIES;
        slow_begin(&w, &st, "ListMemory", &r);
        fill(w.store, "ann", "", ENTRIES, 1, 1); /* as many rows, and all one further */
        slow_go_on(&st);
        if (KEPT[i]) {
            has_entries(&st, ENTRIES - 1, 0);
        } else {
            assert_int_equal(st.code, RPC_ABORTED);
            assert_string_equal(st.status, "ECONFLICT");
        }
        stream_done(&st);
        slow_close(&w);
    }
}

/* ---------------------------------------------------------------- how much */

static void read_all(slow *w, stream *st, const char *method, const void *request)
{
    stream_begin(&w->s, st, method, request);
    stream_wait_end(st);
}

static void is_refused(slow *w, const char *method, const void *request,
                       const char *sentence)
{
    stream st;
    read_all(w, &st, method, request);
    assert_int_equal(st.code, RPC_RESOURCE_EXHAUSTED);
    assert_string_equal(st.status, "ELIMIT");
    assert_non_null(strstr(st.message, sentence));
    assert_int_equal(st.count, 0);
    stream_done(&st);
}

static void test_a_reply_has_at_most_8_mib_and_the_rest_is_asked_for(void **state)
{
    enum { MANY = 200, PAGE = 100 }; /* 11.4 MiB */
    Sessile__V1__ListMemoryRequest list = SESSILE__V1__LIST_MEMORY_REQUEST__INIT;
    Sessile__V1__MemoryHistoryRequest history = SESSILE__V1__MEMORY_HISTORY_REQUEST__INIT;
    static const char fewer[] = "more than 8 MiB: ask for fewer rows";
    slow w;
    (void)state;
    slow_open(&w, "ram:", 64 * MIB);
    fill(w.store, "ann", "", 0, MANY, SIZE);
    fill(w.store, "bob", "key", 0, MANY, SIZE);
    list.memory = memory_of("ann");
    list.limit = MANY;
    history.memory = memory_of("bob");
    history.key = "key";
    is_refused(&w, "ListMemory", &list, fewer);
    is_refused(&w, "GetMemoryHistory", &history, fewer);
    list.limit = history.limit = PAGE;
    for (int page = 0; page < MANY / PAGE; page++) {
        const int newest = MANY - page * PAGE - 1;
        stream st;
        list.skip = history.skip = (uint64_t)(page * PAGE);
        read_all(&w, &st, "ListMemory", &list);
        has_entries(&st, newest, newest - PAGE + 1);
        stream_done(&st);
        read_all(&w, &st, "GetMemoryHistory", &history);
        has_entries(&st, newest, newest - PAGE + 1);
        stream_done(&st);
    }
    slow_close(&w);
}

static void test_a_history_has_at_most_1000_rows_and_goes_on(void **state)
{
    enum { ROWS = 1000, MORE = 50 };
    Sessile__V1__MemoryHistoryRequest r = SESSILE__V1__MEMORY_HISTORY_REQUEST__INIT;
    slow w;
    stream st;
    (void)state;
    slow_open(&w, "ram:", 64 * MIB);
    fill(w.store, "ann", "key", 0, ROWS + MORE, 1);
    r.memory = memory_of("ann");
    r.key = "key";
    read_all(&w, &st, "GetMemoryHistory", &r);
    has_entries(&st, ROWS + MORE - 1, MORE);
    stream_done(&st);
    r.skip = ROWS;
    read_all(&w, &st, "GetMemoryHistory", &r);
    has_entries(&st, MORE - 1, 0);
    stream_done(&st);
    r.skip = ROWS + MORE; /* behind the end there is nothing */
    read_all(&w, &st, "GetMemoryHistory", &r);
    has_entries(&st, -1, 0);
    stream_done(&st);
    r.skip = UINT64_MAX;
    read_all(&w, &st, "GetMemoryHistory", &r);
    has_entries(&st, -1, 0);
    stream_done(&st);
    r.limit = ROWS + 1;
    is_refused(&w, "GetMemoryHistory", &r, "limit is at most 1000");
    slow_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_reads_nothing_costs_little),
        cmocka_unit_test(test_who_reads_slowly_gets_each_entry),
        cmocka_unit_test(test_a_list_that_is_read_slowly_is_of_one_moment),
        cmocka_unit_test(test_a_reply_has_at_most_8_mib_and_the_rest_is_asked_for),
        cmocka_unit_test(test_a_history_has_at_most_1000_rows_and_goes_on),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
