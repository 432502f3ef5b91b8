/*
 * test_memory.c: what a session says that it holds in memory, against what the allocator
 * of its store has given since it was opened.
 */
#include "support/check.h"
#include "support/runs.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <malloc.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What the machine's allocator keeps for the blocks that the store has. */
static atomic_size_t given;

static void *allocate(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    (void)osize;
    size_t was = ptr ? malloc_usable_size(ptr) : 0;
    void *got = NULL;
    if (nsize == 0)
        free(ptr);
    else if (!(got = realloc(ptr, nsize)))
        return NULL;
    atomic_fetch_add(&given, (got ? malloc_usable_size(got) : 0) - was);
    return got;
}

static sessile_store *open_counted(const char *folder)
{
    sessile_store_options o;
    sessile_store *st;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    o.durability = SESSILE_NONE;
    o.alloc = allocate;
    must(sessile_open(&st, folder, &o, &err), &err);
    return st;
}

static void say_many(sessile_session *s, int count)
{
    char text[900];
    memset(text, 'a', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    for (int i = 0; i < count; i++)
        say(s, i % 2 ? "assistant" : "user", text + i % 300);
}

/* Within a tenth, of the session and what its backend has of its log beside it, which is
 * little where that is a file. */
static void holds_what_it_says(const sessile_session *s, size_t before)
{
    enum { BACKEND = 1024 };
    size_t says = sessile_session_memory(s), is = atomic_load(&given) - before;
    print_message("# figure: a session says %zu of %zu bytes\n", says, is);
    assert_true(says <= is + is / 10);
    assert_true(says + says / 10 + BACKEND >= is);
}

static void read_all(sessile_session *s)
{
    sessile_message *rows;
    sessile_error err;
    size_t count;
    must(sessile_context(s, SESSILE_NO_ID, &rows, &count, NULL, &err), &err);
    sessile_free(rows);
}

/* Leaves the newest messages in the context. */
static void drop_most(sessile_hook hook, sessile_state *state, sessile_answer *answer,
                      void *arg)
{
    (void)hook;
    (void)answer;
    (void)arg;
    size_t count = sessile_state_count(state);
    assert_int_equal(sessile_state_drop(state, 0, count - 10, NULL), SESSILE_OK);
}

static void compact(sessile_store *st, sessile_session *s)
{
    host_script drops = {.on = drop_most};
    sessile_policy *policy = host_policy(st, SESSILE_HOOK_TRUNCATE);
    sessile_run_options o;
    sessile_outcome outcome;
    sessile_run *run;
    sessile_error err;
    sessile_run_options_init(&o);
    o.config.policy = policy;
    must(sessile_compact_begin(&run, s, &o, &err), &err);
    run_finish(run, &drops, &outcome);
    assert_int_equal(outcome.verdict, SESSILE_APPLIED);
    sessile_run_free(run);
    sessile_policy_free(policy);
}

static void session_of_entries(int count, int compacts)
{
    char *folder = folder_make();
    sessile_store *st = open_counted(folder);
    sessile_session *s;
    size_t before = atomic_load(&given), empty, full;

    s = session_made(st, "s");
    holds_what_it_says(s, before);
    empty = sessile_session_memory(s);
    say_many(s, count);
    holds_what_it_says(s, before);
    read_all(s);
    holds_what_it_says(s, before);
    if (compacts) {
        compact(st, s);
        read_all(s);
        holds_what_it_says(s, before);
    }
    full = sessile_session_memory(s);
    /* texts of 750 bytes are not kept */
    assert_true(full - empty < (size_t)count * 400 + 200000);
    session_closed(s);
    sessile_store_close(st);

    /* as another process finds it */
    st = open_counted(folder);
    before = atomic_load(&given);
    s = session_resumed(st, "s");
    holds_what_it_says(s, before);
    read_all(s);
    holds_what_it_says(s, before);
    /* a server keeps ten thousand */
    assert_in_range(sessile_session_memory(s), 0, 20000 + 100 * (size_t)count);
    session_closed(s);
    sessile_store_close(st);
    assert_int_equal(atomic_load(&given), 0);
    folder_remove(folder);
}

static void an_empty_session(void **state)
{
    (void)state;
    session_of_entries(0, 0);
}

static void a_session_of_a_hundred(void **state)
{
    (void)state;
    session_of_entries(100, 0);
}

static void a_session_of_many(void **state)
{
    (void)state;
    session_of_entries(1400, 0);
}

static void a_session_that_was_compacted(void **state)
{
    (void)state;
    session_of_entries(1400, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_empty_session),
        cmocka_unit_test(a_session_of_a_hundred),
        cmocka_unit_test(a_session_of_many),
        cmocka_unit_test(a_session_that_was_compacted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
