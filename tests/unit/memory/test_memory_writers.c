/*
 * test_memory_writers.c: several handles and processes on one memory: each sees what the
 * others wrote, nothing is lost, and what one expects of a key holds when it writes.
 *
 * Every handle is compared with a model that knows all that was written: the live set, as
 * it is listed and as it is found.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/children.h"
#include "support/memories.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "memory/memory.h"

enum { ENTRIES = 60, OPERATIONS = 150, KEYS = 5, HANDLES = 3 };

/* ------------------------------------------------------------------ a model */

typedef struct model_entry {
    sessile_id id;
    char value[40], key[8];
    int live;
} model_entry;

typedef struct model {
    model_entry entries[ENTRIES];
    size_t count;
} model;

static unsigned seed;

static unsigned below(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

/* Each value has a word that all have, one that some have, and one of its own. */
static void write_one(model *all, sessile_memory *m)
{
    model_entry *e = &all->entries[all->count];

    snprintf(e->value, sizeof e->value, "common group%u own%zu", below(4), all->count);
    snprintf(e->key, sizeof e->key, "%s%u", below(2) ? "key" : "", below(KEYS));
    if (e->key[0] != 'k')
        e->key[0] = '\0';
    for (size_t i = 0; e->key[0] && i < all->count; i++)
        if (!strcmp(all->entries[i].key, e->key))
            all->entries[i].live = 0;
    e->id = remember(m, e->key, e->value, NULL);
    e->live = 1;
    all->count++;
}

static void delete_one(model *all, sessile_memory *m)
{
    model_entry *e = &all->entries[below((unsigned)all->count)];
    if (!e->live) /* what became of it may be undone otherwise: test_states.c */
        return;
    judge(m, e->id, SESSILE_MEMORY_DELETE);
    e->live = 0;
}

/* The model's live values that have a word, newest first. */
static char *wanted(const model *all, const char *word)
{
    char *out = calloc(1, ENTRIES * 41);
    for (size_t i = all->count; i-- > 0;)
        if (all->entries[i].live && strstr(all->entries[i].value, word)) {
            strcat(out, *out ? "|" : "");
            strcat(out, all->entries[i].value);
        }
    return out;
}

/* All that a question finds, in the order of the log. */
static char *found_all(sessile_memory *m, const char *question)
{
    char *out = calloc(1, ENTRIES * 41);
    sessile_memory_search_options o;
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;

    sessile_memory_search_init(&o);
    o.limit = ENTRIES;
    must(sessile_memory_search(m, sessile_text(question), &o, &rows, &count, &err), &err);
    for (size_t left = count; left > 0; left--) {
        size_t newest = 0;
        for (size_t i = 1; i < count; i++)
            if (rows[i].id != 0 && (rows[newest].id == 0 || rows[i].id > rows[newest].id))
                newest = i;
        strcat(out, *out ? "|" : "");
        strcat(out, rows[newest].value.data);
        rows[newest].id = 0;
    }
    sessile_free(rows);
    return out;
}

static void compare(const model *all, sessile_memory *m)
{
    char *all_live = wanted(all, "common"), word[12], *some;

    expect_text(listed_values(m, NULL), all_live);
    expect_text(found_all(m, "common things"), all_live);
    free(all_live);
    snprintf(word, sizeof word, "group%u", below(4));
    some = wanted(all, word);
    expect_text(found_all(m, word), some);
    free(some);
}

static void every_handle_sees_the_same(void **state)
{
    place *p = *state;
    static model all;
    sessile_store *again = place_again(p);

    for (unsigned run = 1; run <= 3; run++) {
        sessile_memory *handles[HANDLES];
        char user[8];
        seed = run;
        memset(&all, 0, sizeof all);
        snprintf(user, sizeof user, "u%u", run);
        for (size_t i = 0; i < HANDLES; i++)
            handles[i] = memory_of(i ? p->store : again, user);
        for (int i = 0; i < OPERATIONS && all.count < ENTRIES; i++) {
            size_t h = below(HANDLES);
            if (!all.count || below(3))
                write_one(&all, handles[h]);
            else
                delete_one(&all, handles[h]);
            if (below(3) == 0)
                compare(&all, handles[below(HANDLES)]);
        }
        for (size_t i = 0; i < HANDLES; i++) {
            compare(&all, handles[i]);
            sessile_memory_close(handles[i]);
            handles[i] = memory_of(p->store, user); /* folds the whole log */
            compare(&all, handles[i]);
            sessile_memory_close(handles[i]);
        }
    }
    place_again_close(p, again);
}

/* ------------------------------------------------------------------ counting */

enum { THREADS = 4, ROUNDS = 12, CHILDREN = 3 };

/* Raises a number under a key by one: reads it, and writes if nobody was faster. */
static int raise_once(sessile_memory *m)
{
    for (;;) {
        sessile_memory_write_entry e;
        sessile_memory_row *row;
        sessile_error err;
        char value[24];
        sessile_status status =
            sessile_memory_read(m, sessile_text("number"), &row, &err);

        if (status && status != SESSILE_NOTFOUND)
            return -1;
        sessile_memory_write_init(&e);
        e.has_was = 1;
        e.was = status ? SESSILE_NO_ID : row->id;
        snprintf(value, sizeof value, "%d", status ? 1 : atoi(row->value.data) + 1);
        sessile_free(row);
        e.key = sessile_text("number");
        e.value = sessile_text(value);
        status = sessile_memory_write(m, &e, 1, NULL, &err);
        if (status != SESSILE_CONFLICT && status != SESSILE_BUSY)
            return status ? -1 : 0;
    }
}

static void *raise_often(void *arg)
{
    int failed = 0;
    for (int i = 0; i < ROUNDS; i++)
        failed |= raise_once(arg);
    return failed ? arg : NULL;
}

static void no_count_is_lost_among_threads(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    pthread_t threads[THREADS];
    char expected[16];
    void *failed;

    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, raise_often, m), 0);
    for (size_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    snprintf(expected, sizeof expected, "%d", THREADS * ROUNDS);
    expect_key(m, "number", expected);
    sessile_memory_close(m);
}

/* A process: opens the store by itself. */
static void raise_in_a_process(void *arg, int in, int out)
{
    sessile_store *st = place_again(arg);
    sessile_memory *m = memory_of(st, NULL);
    char result;

    child_tell(out, 'r');
    child_hear(in);
    result = raise_often(m) ? 'n' : 'y';
    sessile_memory_close(m);
    place_again_close(arg, st);
    child_tell(out, result);
    child_hear(in);
}

static void no_count_is_lost_among_processes(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    child children[CHILDREN];
    char expected[16];

    if (p->kind == STORE_RAM) { /* of one process */
        sessile_memory_close(m);
        return;
    }
    for (size_t i = 0; i < CHILDREN; i++)
        children[i] = child_start(raise_in_a_process, p);
    for (size_t i = 0; i < CHILDREN; i++)
        assert_int_equal(child_hear(children[i].from), 'r');
    for (size_t i = 0; i < CHILDREN; i++)
        child_tell(children[i].to, 'g');
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(raise_once(m), 0);
    for (size_t i = 0; i < CHILDREN; i++) {
        assert_int_equal(child_hear(children[i].from), 'y');
        child_end(&children[i]);
    }
    snprintf(expected, sizeof expected, "%d", (CHILDREN + 1) * ROUNDS);
    expect_key(m, "number", expected);
    sessile_memory_close(m);
}

/* In a child, whose parent held the mutex when it forked. */
static void use_what_the_parent_opened(void *arg, int in, int out)
{
    sessile_memory *m = arg;
    sessile_id seen = 0;
    int changed;

    alarm(20); /* a wait for the mutex would have no end */
    child_tell(out, sessile_memory_damage(m, NULL) == SESSILE_FORKED ? 'y' : 'n');
    child_hear(in);
    child_tell(out, sessile_memory_watch(m, &seen, 0, &changed, NULL) == SESSILE_FORKED
                        ? 'y'
                        : 'n');
    child_hear(in);
}

static void a_child_never_waits_for_its_parents_mutex(void **state)
{
    place *p = *state;
    sessile_memory *m = memory_of(p->store, NULL);
    child c;

    pthread_mutex_lock(&m->core->mutex);
    c = child_start(use_what_the_parent_opened, m);
    pthread_mutex_unlock(&m->core->mutex);
    assert_int_equal(child_hear(c.from), 'y');
    child_tell(c.to, 'g');
    assert_int_equal(child_hear(c.from), 'y');
    child_end(&c);
    sessile_memory_close(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(every_handle_sees_the_same),
        OVER(no_count_is_lost_among_threads),
        OVER(no_count_is_lost_among_processes),
        OVER(a_child_never_waits_for_its_parents_mutex),
    };
    return run_over_kinds("writers of a memory", STORE_RAM, tests,
                          sizeof tests / sizeof *tests);
}
