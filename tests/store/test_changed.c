/*
 * test_changed.c: many sessions that are asked for at once while others write to them,
 * remove them and reseal them, over every store in stores.c.
 */
#include "store/backend.h"

#include "support/keyed.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/host.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SESSIONS = 6 };

/* Sessions of one store, which are followed, and another store of the same place, through
 * which others write; it may be the same one. */
typedef struct scene {
    sessile_store *st, *other;
    sessile_session *s[SESSIONS];
    sessile_error err;
} scene;

static void begin(scene *k, const site *g)
{
    char id[20];

    memset(k, 0, sizeof *k);
    k->st = site_store(g);
    k->other = g->kind->vanishes ? k->st : site_store(g);
    for (int i = 0; i < SESSIONS; i++) {
        snprintf(id, sizeof id, "s%d", i);
        k->s[i] = session_of(k->st, id);
    }
}

static void end(scene *k)
{
    for (int i = 0; i < SESSIONS; i++)
        sessile_session_close(k->s[i], NULL);
    if (k->other != k->st)
        sessile_store_close(k->other);
    sessile_store_close(k->st);
}

/* Somebody else writes to session i. */
static void write_to(scene *k, int i)
{
    char id[20];

    snprintf(id, sizeof id, "s%d", i);
    sessile_session *t = session_of(k->other, id);
    must(try_say(t, "hello", NULL, &k->err), &k->err);
    sessile_session_close(t, NULL);
}

static void read_on(scene *k, int i)
{
    uint64_t events;
    must(sessile_event_count(k->s[i], &events, &k->err), &k->err);
}

/* What is said of all sessions: a letter for each, "-" or "x". */
static void changed_are(scene *k, const char *expected)
{
    unsigned char changed[SESSIONS];
    char said[SESSIONS + 1] = "";

    memset(changed, 9, sizeof changed);
    must(sessile_changed(k->st, k->s, SESSIONS, changed, &k->err), &k->err);
    for (int i = 0; i < SESSIONS; i++) {
        assert_in_range(changed[i], 0, 1);
        said[i] = changed[i] ? 'x' : '-';
    }
    assert_string_equal(said, expected);
}

static void what_others_wrote_is_told_until_it_is_read(void **state)
{
    scene k;
    begin(&k, *state);
    changed_are(&k, "------");
    write_to(&k, 1);
    write_to(&k, 4);
    changed_are(&k, "-x--x-");
    changed_are(&k, "-x--x-");
    read_on(&k, 1);
    changed_are(&k, "----x-");
    write_to(&k, 1);
    write_to(&k, 5);
    read_on(&k, 4);
    changed_are(&k, "-x---x");
    read_on(&k, 1);
    read_on(&k, 5);
    changed_are(&k, "------");
    end(&k);
}

static void what_a_handle_wrote_itself_is_no_news(void **state)
{
    scene k;
    begin(&k, *state);
    for (int i = 0; i < 3; i++) {
        must(try_say(k.s[2], "mine", NULL, &k.err), &k.err);
        changed_are(&k, "------");
    }
    write_to(&k, 2);
    changed_are(&k, "--x---");
    must(try_say(k.s[2], "mine", NULL, &k.err), &k.err); /* which reads on first */
    changed_are(&k, "------");
    end(&k);
}

static void a_session_that_was_removed_is_told(void **state)
{
    sessile_session_options gone = named("s3");
    sessile_delete_options hard = {0};
    scene k;
    begin(&k, *state);
    must(sessile_delete(k.other, &gone, &hard, NULL, &k.err), &k.err);
    changed_are(&k, "---x--");
    end(&k);
}

/* Its log is another one now, which may be just as long. */
static void a_session_that_was_resealed_is_told(void **state)
{
    sessile_reseal_state last;
    scene k;
    begin(&k, *state);
    must(sessile_keys_rotate(k.other, NULL, NULL, &k.err), &k.err);
    must(keyed_reseal(k.other, NULL, &last, &k.err), &k.err);
    assert_int_equal(last.resealed, SESSIONS);
    changed_are(&k, "xxxxxx");
    for (int i = 0; i < SESSIONS; i++)
        read_on(&k, i);
    changed_are(&k, "------");
    write_to(&k, 0);
    changed_are(&k, "x-----");
    end(&k);
}

/* More than a store is asked for at once, and one of them many times. */
static void many_more_than_one_question_holds(void **state)
{
    enum { MANY = 2 * SESSILE_ENDS_MOST + 7 };
    sessile_session **s = calloc(MANY, sizeof *s);
    unsigned char *changed = calloc(MANY, 1);
    scene k;

    assert_non_null(s);
    assert_non_null(changed);
    begin(&k, *state);
    for (size_t i = 0; i < MANY; i++)
        s[i] = k.s[i % SESSIONS];
    write_to(&k, 2);
    must(sessile_changed(k.st, s, MANY, changed, &k.err), &k.err);
    for (size_t i = 0; i < MANY; i++)
        assert_int_equal(changed[i], i % SESSIONS == 2);
    must(sessile_changed(k.st, NULL, 0, NULL, &k.err), &k.err);
    end(&k);
    free(s);
    free(changed);
}

static void a_session_of_another_store_is_refused(void **state)
{
    unsigned char changed[2] = {9, 9};
    scene k;
    begin(&k, *state);
    sessile_store *third = site_store(*state);
    sessile_session *two[2] = {k.s[0], session_of(third, "s9")};
    write_to(&k, 0);
    refused(sessile_changed(k.st, two, 2, changed, &k.err), SESSILE_INVALID, &k.err);
    assert_int_equal(changed[0] | changed[1], 0);
    sessile_session_close(two[1], NULL);
    sessile_store_close(third);
    end(&k);
}

typedef struct writer {
    scene *k;
    pthread_t thread;
    int wrote;
} writer;

static void *write_all(void *arg)
{
    writer *w = arg;
    sessile_error err;
    for (int i = 0; i < 30; i++)
        w->wrote += try_say(w->k->s[i % SESSIONS], "more", NULL, &err) == SESSILE_OK;
    return NULL;
}

/* Through the very handles that are asked with: nobody waits, and in the end there is no
 * news. */
static void other_threads_use_the_handles_meanwhile(void **state)
{
    unsigned char changed[SESSIONS];
    scene k;
    begin(&k, *state);
    writer w = {.k = &k};
    assert_int_equal(pthread_create(&w.thread, NULL, write_all, &w), 0);
    for (int i = 0; i < 100; i++)
        must(sessile_changed(k.st, k.s, SESSIONS, changed, &k.err), &k.err);
    pthread_join(w.thread, NULL);
    assert_int_equal(w.wrote, 30);
    changed_are(&k, "------");
    end(&k);
}

static const struct CMUnitTest cases[] = {
    CASE(what_others_wrote_is_told_until_it_is_read),
    CASE(what_a_handle_wrote_itself_is_no_news),
    CASE_IF(a_session_that_was_removed_is_told,
            NEEDS_REMOVE | NEEDS_RESTARTS | NEEDS_ENDS),
    CASE_IF(a_session_that_was_resealed_is_told, NEEDS_SEALED | SESSILE_BACKEND_REPLACES |
                                                     NEEDS_BLOB_REPLACE | NEEDS_RESTARTS),
    CASE(many_more_than_one_question_holds),
    CASE(a_session_of_another_store_is_refused),
    CASE(other_threads_use_the_handles_meanwhile),
};

int main(int argc, char **argv)
{
    return suite_run("changed", cases, sizeof cases / sizeof *cases, 0, argc, argv);
}
