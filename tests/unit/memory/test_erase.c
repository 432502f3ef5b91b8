/*
 * test_erase.c: what is erased is in no file and comes back by no verdict, and nothing
 * else changes.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/memories.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static sessile_slice text(const char *t)
{
    return sessile_text(t);
}

static size_t erase(sessile_memory *m, const sessile_memory_erase_options *options)
{
    sessile_error err;
    size_t erased;
    must(sessile_memory_erase(m, options, &erased, &err), &err);
    return erased;
}

static size_t erase_id(sessile_memory *m, sessile_id id)
{
    return erase(m, &(sessile_memory_erase_options){.ids = &id, .id_count = 1});
}

/* An entry that is from messages of sessions, and replaces others. */
static sessile_id from_sessions(sessile_memory *m, const char *value, const char *one,
                                const char *other, const sessile_id *replaces,
                                size_t count)
{
    const sessile_memory_from from[] = {{.session = text(one), .first = 1, .last = 2},
                                        {.session = text(other), .first = 1, .last = 1}};
    sessile_memory_write_entry e;
    sessile_error err;
    sessile_id id;

    sessile_memory_write_init(&e);
    e.value = text(value);
    e.from = from;
    e.from_count = other ? 2 : 1;
    e.replaces = replaces;
    e.replace_count = count;
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    return id;
}

static sessile_memory_state state_of(sessile_memory *m, sessile_id id)
{
    sessile_memory_row *row;
    sessile_memory_state state;
    sessile_error err;
    must(sessile_memory_get(m, id, &row, &err), &err);
    state = row->state;
    if (state == SESSILE_MEMORY_ERASED)
        assert_true(!row->value.size && !row->key.size && !row->also.size &&
                    !row->from.size && !row->metadata.size && !row->author.size);
    sessile_free(row);
    return state;
}

/* ------------------------------------------------------------------ what is left */

static void what_it_replaced_stays_replaced(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, "ann"), *other = memory_of(p->store, "ann");
    sessile_memory_stats stats;
    sessile_error err;
    sessile_id emacs = remember(m, "editor", "emacs", NULL), vim, ed;

    vim = remember(m, "editor", "vim", "canary");
    remember(m, NULL, "likes tea", NULL);
    assert_int_equal(erase_id(m, vim), 1);
    expect_text(listed_values(m, NULL), "likes tea");
    expect_text(found(m, "vim canary emacs"), "");
    expect_key(m, "editor", NULL);
    assert_int_equal(state_of(m, vim), SESSILE_MEMORY_ERASED);
    assert_int_equal(state_of(m, emacs), SESSILE_MEMORY_REPLACED);
    /* another handle, which had the old log open */
    expect_text(listed_values(other, NULL), "likes tea");
    assert_int_equal(state_of(other, vim), SESSILE_MEMORY_ERASED);
    /* life goes on, in both */
    ed = remember(other, "editor", "ed", NULL);
    expect_key(m, "editor", "ed");
    judge(m, ed, SESSILE_MEMORY_REJECT);
    expect_key(other, "editor", NULL);
    judge(m, emacs, SESSILE_MEMORY_RESTORE);
    expect_key(other, "editor", "emacs");
    assert_int_equal(sessile_memory_verdict(m, &vim, 1, SESSILE_MEMORY_RESTORE,
                                            text(NULL), text(NULL), NULL, &err),
                     SESSILE_NOTFOUND);
    assert_non_null(strstr(err.message, "erased"));
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_int_equal(stats.states[SESSILE_MEMORY_ERASED], 1);
    assert_int_equal(erase_id(m, vim), 0);
    sessile_memory_close(m);
    sessile_memory_close(other);
}

static void an_older_entry_that_was_restored_is_erased(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id old = remember(m, "editor", "emacs", NULL);

    remember(m, "editor", "vim", NULL);
    judge(m, old, SESSILE_MEMORY_RESTORE);
    expect_key(m, "editor", "emacs");
    assert_int_equal(erase_id(m, old), 1);
    expect_key(m, "editor", NULL);
    expect_text(listed_values(m, NULL), "");
    sessile_memory_close(m);
}

static void a_session_takes_what_came_from_it(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, "ann");
    sessile_memory_erase_options bug = {.session = text("bug")};
    sessile_id of_bug = from_sessions(m, "canary one", "bug", NULL, NULL, 0);
    sessile_id of_tea = from_sessions(m, "tea", "talk", NULL, NULL, 0), merge;

    merge =
        from_sessions(m, "canary tea", "talk", "bug", (sessile_id[]){of_bug, of_tea}, 2);
    from_sessions(m, "canary two", "bug", NULL, NULL, 0);
    remember(m, NULL, "of none", NULL);
    expect_text(listed_values(m, NULL), "of none|canary two|canary tea");
    assert_int_equal(erase(m, &bug), 3);
    expect_text(listed_values(m, NULL), "of none|tea");
    assert_int_equal(state_of(m, merge), SESSILE_MEMORY_ERASED);
    assert_int_equal(state_of(m, of_bug), SESSILE_MEMORY_ERASED);
    assert_int_equal(erase(m, &bug), 0);
    sessile_memory_close(m);
}

static void a_deleted_session_ends_what_came_from_it(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, "ann");
    sessile_id of_bug = from_sessions(m, "bug", "bug", NULL, NULL, 0), merge;
    sessile_id of_tea = from_sessions(m, "tea", "talk", NULL, NULL, 0);
    sessile_error err;
    size_t changed;

    merge = from_sessions(m, "bug tea", "talk", "bug", (sessile_id[]){of_bug, of_tea}, 2);
    must(sessile_memory_delete_from(m, text(NULL), text("bug"), text("ann"), &changed,
                                    &err),
         &err);
    assert_int_equal(changed, 2);
    expect_text(listed_values(m, NULL), "tea");
    assert_int_equal(state_of(m, merge), SESSILE_MEMORY_REJECTED);
    assert_int_equal(state_of(m, of_bug), SESSILE_MEMORY_DELETED);
    must(sessile_memory_delete_from(m, text(NULL), text("bug"), text("ann"), &changed,
                                    &err),
         &err);
    assert_int_equal(changed, 0);
    assert_int_equal(
        sessile_memory_delete_from(m, text(NULL), text(NULL), text(NULL), NULL, &err),
        SESSILE_INVALID);
    /* what is undone again, a person wanted */
    judge(m, of_bug, SESSILE_MEMORY_RESTORE);
    expect_text(listed_values(m, NULL), "tea|bug");
    sessile_memory_close(m);
}

static void what_ended_long_ago_is_erased(void **state)
{
    place *p = *state;
    const os_table *os = p->store->core->os;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_memory_erase_options before = {0};
    sessile_id gone, old;

    remember(m, "k", "one", NULL);
    old = remember(m, "k", "two", NULL);
    gone = remember(m, NULL, "gone", NULL);
    judge(m, gone, SESSILE_MEMORY_DELETE);
    os->sleep_ms(os->ud, 5);
    before.ended_before_ms = os->now_ms(os->ud);
    os->sleep_ms(os->ud, 5);
    remember(m, "k", "three", NULL);
    assert_int_equal(erase(m, &before), 2);
    assert_int_equal(state_of(m, gone), SESSILE_MEMORY_ERASED);
    assert_int_equal(state_of(m, old), SESSILE_MEMORY_REPLACED);
    expect_text(listed_values(m, NULL), "three");
    sessile_memory_close(m);
}

static void vectors_of_others_stay(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    const float vectors[] = {1, 0, 0, 1, 1, 1};
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_memory_stats stats;
    sessile_error err;
    size_t count;
    sessile_id ids[3];

    ids[0] = remember(m, NULL, "east", NULL);
    ids[1] = remember(m, NULL, "north", NULL);
    ids[2] = remember(m, NULL, "between", NULL);
    must(sessile_memory_embed(m, text("compass"), 2, ids, vectors, 3, &err), &err);
    assert_int_equal(erase_id(m, ids[1]), 1);
    must(sessile_memory_get_stats(m, &stats, &err), &err);
    assert_int_equal(stats.vectors, 2);
    sessile_memory_search_init(&o);
    o.vector = vectors + 2;
    o.dims = 2;
    must(sessile_memory_search(m, text(NULL), &o, &rows, &count, &err), &err);
    assert_string_equal(rows->value.data, "between");
    sessile_free(rows);
    sessile_memory_close(m);
}

static void what_is_not_there_changes_nothing(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    sessile_id ids[] = {remember(m, NULL, "tea", NULL), 77};
    sessile_memory_erase_options o = {.ids = ids, .id_count = 2};
    sessile_error err;
    size_t erased = 5;

    assert_int_equal(sessile_memory_erase(m, &o, &erased, &err), SESSILE_NOTFOUND);
    assert_non_null(strstr(err.message, "0000004d"));
    assert_int_equal(erased, 0);
    expect_text(listed_values(m, NULL), "tea");
    assert_int_equal(erase(m, &(sessile_memory_erase_options){0}), 0);
    sessile_memory_close(m);
}

/* ------------------------------------------------------------------ random ones */

enum { ENTRIES = 40, ROUNDS = 60 };

/* The live entries, a bit for each of the first 64 ids. */
static uint64_t live_ids(sessile_memory *m)
{
    sessile_memory_row *rows;
    sessile_error err;
    uint64_t live = 0;
    size_t count;
    must(sessile_memory_list(m, NULL, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        live |= UINT64_C(1) << rows[i].id;
    sessile_free(rows);
    return live;
}

/* Entries with a few keys, some of which replace others, and verdicts about them. */
static size_t grow(sessile_memory *m, unsigned *seed, sessile_id *ids, size_t count)
{
    static const char *const keys[] = {"", "a", "b", "c"};
    for (size_t i = 0; i < ENTRIES / 2; i++) {
        sessile_memory_write_entry e;
        sessile_error err;
        sessile_id old = count ? ids[(unsigned)rand_r(seed) % count] : 0;
        if (count && rand_r(seed) % 3 == 0) {
            (void)sessile_memory_verdict(m, &old, 1,
                                         (sessile_memory_verdict_kind)(rand_r(seed) % 4),
                                         text(NULL), text(NULL), NULL, &err);
            continue;
        }
        sessile_memory_write_init(&e);
        e.value = text("something");
        e.key = text(keys[rand_r(seed) % 4]);
        e.replaces = &old;
        e.replace_count = count && rand_r(seed) % 3 == 0;
        e.pending = rand_r(seed) % 8 == 0;
        must(sessile_memory_write(m, &e, 1, &ids[count], &err), &err);
        count++;
    }
    return count;
}

static void nothing_else_begins_or_ends_to_live(void **state)
{
    (void)state;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        sessile_memory *m;
        sessile_id ids[ENTRIES], some[ENTRIES];
        unsigned seed = round;
        size_t count, n = 0;
        uint64_t before, erased = 0;
        place p;

        place_open(&p, STORE_PLAIN);
        m = memory_of(p.store, NULL);
        count = grow(m, &seed, ids, 0);
        count = grow(m, &seed, ids, count);
        for (size_t i = 0; i < count; i++)
            if (rand_r(&seed) % 4 == 0) {
                some[n++] = ids[i];
                erased |= UINT64_C(1) << ids[i];
            }
        before = live_ids(m);
        assert_int_equal(
            erase(m, &(sessile_memory_erase_options){.ids = some, .id_count = n}), n);
        if (live_ids(m) != (before & ~erased))
            fail_msg("round %u: live %llx, erased %llx, now %llx", round,
                     (unsigned long long)before, (unsigned long long)erased,
                     (unsigned long long)live_ids(m));
        sessile_memory_close(m);
        place_close(&p);
    }
}

/* ------------------------------------------------------------------ files */

static void no_file_has_it(void **state)
{
    sessile_memory *m;
    sessile_error err;
    sessile_id id;
    place p;
    (void)state;

    place_files_only();
    place_unguarded_only(); /* the audit keeps the keys of what was erased */
    place_open(&p, STORE_PLAIN);
    m = memory_of(p.store, NULL);
    id = remember(m, "canary key", "canary value", "canary also");
    must(sessile_memory_verdict(m, &id, 1, SESSILE_MEMORY_DELETE, text("a canary reason"),
                                text(NULL), NULL, &err),
         &err);
    remember(m, NULL, "a sparrow", NULL);
    assert_int_not_equal(keyed_files_with(p.folder, "canary"), 0);
    assert_int_equal(erase_id(m, id), 1);
    assert_int_equal(keyed_files_with(p.folder, "canary"), 0);
    assert_int_not_equal(keyed_files_with(p.folder, "sparrow"), 0);
    sessile_memory_close(m);
    place_close(&p);
}

int main(void)
{
    const struct CMUnitTest over[] = {
        OVER(what_it_replaced_stays_replaced),
        OVER(an_older_entry_that_was_restored_is_erased),
        OVER(a_session_takes_what_came_from_it),
        OVER(a_deleted_session_ends_what_came_from_it),
        OVER(what_ended_long_ago_is_erased),
        OVER(vectors_of_others_stay),
        OVER(what_is_not_there_changes_nothing),
    };
    const struct CMUnitTest alone[] = {
        cmocka_unit_test(nothing_else_begins_or_ends_to_live),
        cmocka_unit_test(no_file_has_it),
    };
    return run_over_kinds("erasing", STORE_SEALED, over, sizeof over / sizeof *over) +
           cmocka_run_group_tests_name("erasing", alone, NULL, NULL);
}
