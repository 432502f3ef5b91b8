/*
 * cases_logs.c: logs: order, the fence of an append, what is apart from what, and names.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void records_are_read_back_in_order(void **state)
{
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    sessile_log_end end = {1, 4, {0}};
    unsigned char expected[16] = {7, 1};

    holds(&o, log, "one\n");
    must(append(&o, log, &end, "two\nthree\n", 10, 2, 7), &o.err);
    assert_int_equal(end.count, 3);
    assert_int_equal(end.bytes, 14);
    assert_memory_equal(end.tag, expected, 16);
    must(append(&o, log, &end, "4\n", 2, 1, 8), &o.err);
    must(o.table->sync(log, &o.err), &o.err);
    holds(&o, log, "one\ntwo\nthree\n4\n");
    done_and_kept(&o, *state, log, "one\ntwo\nthree\n4\n");
}

/* A log that begins with several records ends where they end. */
static void a_log_begins_with_what_it_was_made_of(void **state)
{
    sessile_backend_log *log;
    opened o = open_log(*state, "one\ntwo\nthree\n", &log, NULL);
    sessile_log_end end = {3, 14, {0}};

    holds(&o, log, "one\ntwo\nthree\n");
    must(append(&o, log, &end, "four\n", 5, 1, 1), &o.err);
    assert_int_equal(end.count, 4);
    holds(&o, log, "one\ntwo\nthree\nfour\n");
    done_with(&o, log, NULL);
}

static void what_one_handle_appends_the_other_sees_at_once(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_log_end end = {1, 4, {0}};

    must(append(&o, a, &end, "two\n", 4, 1, 1), &o.err);
    holds(&o, b, "one\ntwo\n");
    must(append(&o, b, &end, "three\n", 6, 1, 2), &o.err);
    holds(&o, a, "one\ntwo\nthree\n");
    o.table->close(a);
    holds(&o, b, "one\ntwo\nthree\n");
    done_with(&o, b, NULL);
}

static void two_stores_in_one_place_are_one(void **state)
{
    const site *g = *state;

    opened o = open_site(g), other = open_site(g);
    create(&o, "main", "log", "one\n");
    sessile_backend_log *a = log_of(&o, "log"), *b = log_of(&other, "log");
    sessile_log_end end = {1, 4, {0}}, late = end;

    must(append(&o, a, &end, "two\n", 4, 1, 1), &o.err);
    holds(&other, b, "one\ntwo\n");
    refused(append(&other, b, &late, "late\n", 5, 1, 9), SESSILE_CONFLICT, &other.err);
    must(append(&other, b, &end, "three\n", 6, 1, 2), &other.err);
    holds(&o, a, "one\ntwo\nthree\n");
    refused(other.table->create(other.self, "main", "log", "x\n", 2, &other.err),
            SESSILE_EXISTS, &other.err);
    done_with(&o, a, NULL);
    holds(&other, b,
          "one\ntwo\nthree\n"); /* a store that is closed takes nothing along */
    other.table->close(b);
    done(&other);
}

static void an_append_where_the_log_does_not_end_changes_nothing(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_log_end end = {1, 4, {0}}, late = end, early, was;

    must(append(&o, a, &end, "two\n", 4, 1, 1), &o.err);
    refused(append(&o, b, &late, "too late\n", 9, 1, 9), SESSILE_CONFLICT, &o.err);
    assert_int_equal(late.count, 1);
    assert_int_equal(late.bytes, 4);
    early = end;
    early.count++;
    early.bytes += 5;
    was = early;
    refused(append(&o, b, &early, "too early\n", 10, 1, 9), SESSILE_TRUNCATED, &o.err);
    assert_memory_equal(&early, &was, sizeof was);
    holds(&o, a, "one\ntwo\n");
    /* nobody was locked out, and the one who was late knows better now */
    must(append(&o, b, &end, "three\n", 6, 1, 2), &o.err);
    holds(&o, a, "one\ntwo\nthree\n");
    done_with(&o, a, b);
}

/* Who writes under a lock has looked at the end there; without one, the end is all of it:
 * of two records of one size, each writer must find only its own. */
static void an_end_is_its_tag_and_count_too(void **state)
{
    opened o = open_site(*state);
    sessile_log_end end = {1, 4, {0}}, wrong;
    sessile_backend_log *log;

    create(&o, "main", "log", "one\n");
    log = log_of(&o, "log");
    must(append(&o, log, &end, "two\n", 4, 1, 1), &o.err);
    wrong = end;
    wrong.tag[0] ^= 1;
    refused(append(&o, log, &wrong, "other\n", 6, 1, 9), SESSILE_CONFLICT, &o.err);
    wrong = end;
    wrong.tag[15] ^= 1;
    refused(append(&o, log, &wrong, "other\n", 6, 1, 9), SESSILE_CONFLICT, &o.err);
    wrong = end;
    wrong.count--;
    assert_int_not_equal(append(&o, log, &wrong, "other\n", 6, 1, 9), SESSILE_OK);
    must(append(&o, log, &end, "three\n", 6, 1, 2), &o.err);
    holds(&o, log, "one\ntwo\nthree\n");
    done_with(&o, log, NULL);
}

static void names_that_are_taken_or_missing_are_told(void **state)
{
    opened o = open_site(*state);
    sessile_backend_log *log = NULL;
    sessile_error *err = &o.err;

    refused(o.table->open(o.self, "main", "log", &log, err), SESSILE_NOTFOUND, err);
    create(&o, "main", "log", "one\n");
    refused(o.table->create(o.self, "main", "log", "other\n", 6, err), SESSILE_EXISTS,
            err);
    refused(o.table->open(o.self, "other", "log", &log, err), SESSILE_NOTFOUND, err);
    refused(o.table->open(o.self, "main", "log2", &log, err), SESSILE_NOTFOUND, err);
    refused(o.table->open(o.self, "main", "lo", &log, err), SESSILE_NOTFOUND, err);
    log_holds(&o, "main", "log", "one\n");
    done(&o);
}

/* The same name in another folder, and names as the engine makes them, to their limits.
 */
static void logs_are_apart(void **state)
{
    static const char most[] = "abcdefghijklmnopqrstuvwxyz0123456789_=-";
    opened o = open_site(*state);
    char longest[201], other[201], sibling[201];
    const char *names[][2] = {
        {"main", "log"},    {"other", "log"},   {"main", "lo"},    {"main", "log2"},
        {"main", "lo-g_0"}, {"main", "lo_g-0"}, {"main", "=hash"}, {"ma_n", "log"},
        {"main", most},     {"main", longest},  {longest, "log"},  {longest, longest},
        {"other", longest}, {"main", sibling},  {other, "log"},    {"m", "ain"},
        {"0", "0"},         {"null", "null"},   {"main", "-"},     {"main", "select_1"}};
    const size_t count = sizeof names / sizeof *names;

    for (size_t i = 0; i < 200; i++)
        longest[i] = other[i] = sibling[i] = most[i % (sizeof most - 1)];
    longest[200] = other[200] = sibling[200] = 0;
    other[199] = other[199] == 'a' ? 'b' : 'a';
    sibling[198] = '=';
    for (size_t i = 0; i < count; i++) {
        char text[20];
        snprintf(text, sizeof text, "%zu\n", i);
        create(&o, names[i][0], names[i][1], text);
    }
    for (size_t i = 0; i < count; i++) { /* each grows on its own */
        sessile_backend_log *log = log_in(&o, names[i][0], names[i][1]);
        sessile_log_end end = {1, i < 10 ? 2 : 3, {0}};
        char text[20];
        snprintf(text, sizeof text, "more %zu\n", i);
        must(append(&o, log, &end, text, strlen(text), 1, 1), &o.err);
        o.table->close(log);
    }
    restarted(&o, *state);
    for (size_t i = 0; i < count; i++) {
        char text[40];
        shown s = {"", 1000};
        snprintf(text, sizeof text, "%zu\nmore %zu\n", i, i);
        log_holds(&o, names[i][0], names[i][1], text);
        must(o.table->list(o.self, names[i][0], show, &s, &o.err), &o.err);
        char both[410];
        snprintf(both, sizeof both, "%s/%s ", names[i][0], names[i][1]);
        assert_int_equal(count_of(s.text, both), 1);
    }
    done(&o);
}

/* What was kept is there for the next handle, all kinds of it together. */
static void a_restart_keeps_everything(void **state)
{
    const site *g = *state;
    opened o = open_site(g);
    const sessile_backend *t = o.table;
    sessile_log_end end = {1, 4, {0}};
    sessile_backend_log *log;
    char *blob = NULL;
    size_t size = 0;

    create(&o, "main", "log", "one\n");
    create(&o, "other", "log", "other\n");
    if (has(&o, SESSILE_BACKEND_SEALS))
        must(t->blob_put_new(o.self, "ring", "\0ring", 5, &o.err), &o.err);
    for (int i = 0; i < 5; i++) {
        log = log_of(&o, "log");
        must(append(&o, log, &end, "more\n", 5, 1, (unsigned char)i), &o.err);
        must(t->sync(log, &o.err), &o.err);
        t->close(log);
        restarted(&o, g);
        t = o.table;
    }
    log_holds(&o, "main", "log", "one\nmore\nmore\nmore\nmore\nmore\n");
    log_holds(&o, "other", "log", "other\n");
    if (has(&o, SESSILE_BACKEND_SEALS)) {
        must(t->blob_get(o.self, "ring", &blob, &size, &o.err), &o.err);
        assert_int_equal(size, 5);
        assert_memory_equal(blob, "\0ring", 5);
        sessile_free(blob);
    }
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE(records_are_read_back_in_order),
    CASE(a_log_begins_with_what_it_was_made_of),
    CASE(what_one_handle_appends_the_other_sees_at_once),
    CASE_IF(two_stores_in_one_place_are_one, NEEDS_RESTARTS),
    CASE(an_append_where_the_log_does_not_end_changes_nothing),
    CASE_IF(an_end_is_its_tag_and_count_too, NEEDS_NO_LOCKS),
    CASE(names_that_are_taken_or_missing_are_told),
    CASE(logs_are_apart),
    CASE_IF(a_restart_keeps_everything, NEEDS_RESTARTS),
};

CASES(cases_logs, cases);
