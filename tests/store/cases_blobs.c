/*
 * cases_blobs.c: small named values: put once, replaced if they are what they were, taken
 * away, listed.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void blob_is(opened *o, const char *name, const char *expected)
{
    blob_holds(o, o->table->blob_get, name, expected);
}

static void no_blob(opened *o, const char *name)
{
    char *blob = NULL;
    size_t size;

    refused(o->table->blob_get(o->self, name, &blob, &size, &o->err), SESSILE_NOTFOUND,
            &o->err);
}

static void put(opened *o, const char *name, const char *text)
{
    must(o->table->blob_put_new(o->self, name, text, strlen(text), &o->err), &o->err);
}

static void a_blob_is_put_once(void **state)
{
    const site *g = *state;
    opened o = open_site(g);
    const sessile_backend *t = o.table;

    no_blob(&o, "ring");
    put(&o, "ring", "first");
    refused(t->blob_put_new(o.self, "ring", "second", 6, &o.err), SESSILE_EXISTS, &o.err);
    blob_is(&o, "ring", "first");
    no_blob(&o, "rin");
    no_blob(&o, "ring2");
    restarted(&o, g);
    blob_is(&o, "ring", "first");
    done(&o);
}

/* Neither is the other. */
static void a_blob_and_a_log_may_have_one_name(void **state)
{
    opened o = open_site(*state);
    shown s = {"", 1000};

    put(&o, "thing", "a blob");
    absent(&o, "main", "thing");
    create(&o, "main", "thing", "a log\n");
    create(&o, "thing", "thing", "another\n");
    blob_is(&o, "thing", "a blob");
    log_holds(&o, "main", "thing", "a log\n");
    must(o.table->list(o.self, NULL, show, &s, &o.err), &o.err);
    assert_int_equal(count_of(s.text, "thing "), 2);
    done(&o);
}

static void a_blob_has_any_bytes(void **state)
{
    enum { LARGE = 1 << 20 };
    opened o = open_site(*state);
    char *blob = NULL, *large = malloc(LARGE);
    size_t size = 0;

    assert_non_null(large);
    for (size_t i = 0; i < LARGE; i++)
        large[i] = (char)(i * 2654435761u >> 11);
    must(o.table->blob_put_new(o.self, "large", large, LARGE, &o.err), &o.err);
    must(o.table->blob_put_new(o.self, "empty", "", 0, &o.err), &o.err);
    restarted(&o, *state);
    must(o.table->blob_get(o.self, "large", &blob, &size, &o.err), &o.err);
    assert_int_equal(size, LARGE);
    assert_memory_equal(blob, large, LARGE);
    sessile_free(blob);
    blob_is(&o, "empty", "");
    free(large);
    done(&o);
}

static void a_blob_is_replaced_if_it_is_what_it_was(void **state)
{
    opened o = open_site(*state);
    const sessile_backend *t = o.table;

    refused(t->blob_replace(o.self, "ring", "a", 1, "b", 1, &o.err), SESSILE_NOTFOUND,
            &o.err);
    put(&o, "ring", "first");
    refused(t->blob_replace(o.self, "ring", "firs", 4, "b", 1, &o.err), SESSILE_CONFLICT,
            &o.err);
    refused(t->blob_replace(o.self, "ring", "First", 5, "b", 1, &o.err), SESSILE_CONFLICT,
            &o.err);
    refused(t->blob_replace(o.self, "ring", "first\0", 6, "b", 1, &o.err),
            SESSILE_CONFLICT, &o.err);
    blob_is(&o, "ring", "first");
    must(t->blob_replace(o.self, "ring", "first", 5, "longer than it was", 18, &o.err),
         &o.err);
    blob_is(&o, "ring", "longer than it was");
    refused(t->blob_replace(o.self, "ring", "first", 5, "late", 4, &o.err),
            SESSILE_CONFLICT, &o.err);
    must(t->blob_replace(o.self, "ring", "longer than it was", 18, "short", 5, &o.err),
         &o.err);
    restarted(&o, *state);
    blob_is(&o, "ring", "short");
    done(&o);
}

typedef struct names {
    char text[400];
    int left;
} names;

static int add(void *arg, const char *name)
{
    names *n = arg;
    size_t at = strlen(n->text);

    snprintf(n->text + at, sizeof n->text - at, "%s ", name);
    return --n->left == 0;
}

static void blobs_are_listed_and_removed(void **state)
{
    opened o = open_site(*state);
    const sessile_backend *t = o.table;
    names n = {"", 100};

    refused(t->blob_remove(o.self, "user-1", &o.err), SESSILE_NOTFOUND, &o.err);
    put(&o, "user-1", "first");
    put(&o, "user-2", "x");
    put(&o, "user_1", "x"); /* "_" and "%" mean themselves in a prefix */
    put(&o, "other", "x");
    create(&o, "main", "user-log", "one\n");
    must(t->blob_list(o.self, "user-", add, &n, &o.err), &o.err);
    assert_int_equal(count_of(n.text, "user-1 "), 1);
    assert_int_equal(count_of(n.text, "user-2 "), 1);
    assert_int_equal(count_of(n.text, " "), 2);
    n = (names){"", 100};
    must(t->blob_list(o.self, "user_", add, &n, &o.err), &o.err);
    assert_string_equal(n.text, "user_1 ");
    n = (names){"", 1};
    must(t->blob_list(o.self, "user", add, &n, &o.err), &o.err);
    assert_int_equal(count_of(n.text, " "), 1);
    must(t->blob_remove(o.self, "user-1", &o.err), &o.err);
    no_blob(&o, "user-1");
    refused(t->blob_remove(o.self, "user-1", &o.err), SESSILE_NOTFOUND, &o.err);
    blob_is(&o, "user-2", "x");
    n = (names){"", 100};
    must(t->blob_list(o.self, "user-", add, &n, &o.err), &o.err);
    assert_string_equal(n.text, "user-2 ");
    put(&o, "user-1", "again");
    restarted(&o, *state);
    blob_is(&o, "user-1", "again");
    log_holds(&o, "main", "user-log", "one\n");
    done(&o);
}

static void a_blob_that_is_there_can_be_settled(void **state)
{
    opened o = open_site(*state);

    put(&o, "ring", "first");
    must(o.table->blob_settle(o.self, "ring", &o.err), &o.err);
    blob_is(&o, "ring", "first");
    done(&o);
}

typedef struct rival {
    const sessile_backend *table;
    void *self;
    int number, puts, replacements;
    pthread_t thread;
    char trouble[200];
} rival;

/* Counts a blob up: reads it, and replaces it if it is still that. */
static void *count_up(void *arg)
{
    rival *r = arg;
    const sessile_backend *t = r->table;
    sessile_error err = {0};
    sessile_status status = t->blob_put_new(r->self, "mine", &r->number, 1, &err);

    r->puts += status == SESSILE_OK;
    if (status && status != SESSILE_EXISTS)
        snprintf(r->trouble, sizeof r->trouble, "put: %.150s", err.message);
    while (t->blob_replace && r->replacements < 20 && !r->trouble[0]) {
        char *was = NULL, text[20];
        size_t size = 0;
        status = t->blob_get(r->self, "counter", &was, &size, &err);
        if (!status) {
            snprintf(text, sizeof text, "%05d", atoi(was) + 1);
            usleep(50); /* so that others come in between */
            status = t->blob_replace(r->self, "counter", was, size, text, 5, &err);
            sessile_free(was);
        }
        if (!status)
            r->replacements++;
        else if (status != SESSILE_CONFLICT)
            snprintf(r->trouble, sizeof r->trouble, "replace: %.150s", err.message);
    }
    return NULL;
}

static void of_many_who_want_a_blob_one_has_it(void **state)
{
    enum { RIVALS = 4 };
    opened o = open_site(*state);
    rival rivals[RIVALS];
    int puts = 0;

    put(&o, "counter", "00000");
    memset(rivals, 0, sizeof rivals);
    for (int i = 0; i < RIVALS; i++) {
        rivals[i].table = o.table;
        rivals[i].self = o.self;
        rivals[i].number = i;
        assert_int_equal(pthread_create(&rivals[i].thread, NULL, count_up, &rivals[i]),
                         0);
    }
    for (int i = 0; i < RIVALS; i++)
        pthread_join(rivals[i].thread, NULL);
    for (int i = 0; i < RIVALS; i++) {
        if (rivals[i].trouble[0])
            fail_msg("%s", rivals[i].trouble);
        puts += rivals[i].puts;
    }
    assert_int_equal(puts, 1);
    if (o.table->blob_replace)
        blob_is(&o, "counter", "00080");
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE_IF(a_blob_is_put_once, SESSILE_BACKEND_SEALS),
    CASE_IF(a_blob_and_a_log_may_have_one_name, SESSILE_BACKEND_SEALS),
    CASE_IF(a_blob_has_any_bytes, SESSILE_BACKEND_SEALS),
    CASE_IF(a_blob_is_replaced_if_it_is_what_it_was,
            SESSILE_BACKEND_SEALS | NEEDS_BLOB_REPLACE),
    CASE_IF(blobs_are_listed_and_removed, SESSILE_BACKEND_SEALS | NEEDS_BLOB_REMOVE),
    CASE_IF(a_blob_that_is_there_can_be_settled,
            SESSILE_BACKEND_SEALS | NEEDS_BLOB_SETTLE),
    CASE_IF(of_many_who_want_a_blob_one_has_it, SESSILE_BACKEND_SEALS),
};

CASES(cases_blobs, cases);
