/*
 * cases_removal.c: logs that are removed: gone for everyone, with all that lay beside
 * them, and another log may take the name.
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

static void what_was_removed_is_gone(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    create(&o, "main", "log2", "two\n");
    create(&o, "other", "log", "other\n");
    sessile_backend_log *open = log_of(&o, "log");
    sessile_log_end end = {1, 4, {0}};
    sessile_backend_stat st;
    int found = 0;

    assert_int_equal(size_of(&o, open), 4);
    remove_log(&o, "log");
    absent(&o, "main", "log");
    if (has(&o, SESSILE_BACKEND_LIST_CACHE))
        refused(o.table->stat(o.self, "main", "log", &st, &o.err), SESSILE_NOTFOUND,
                &o.err);
    append_is_gone(&o, open, end);
    o.table->close(open);
    log_holds(&o, "main", "log2", "two\n");
    log_holds(&o, "other", "log", "other\n");
    restarted(&o, *state);
    absent(&o, "main", "log");
    log_holds(&o, "main", "log2", "two\n");
    remove_log(&o, "log2");
    sessile_backend_log *last = log_in(&o, "other", "log");
    (void)size_of(&o, last);
    must(removed(&o, last), &o.err);
    o.table->close(last);
    if (o.table->has_logs) {
        must(o.table->has_logs(o.self, &found, &o.err), &o.err);
        assert_int_equal(found, 0);
    }
    done(&o);
}

static void another_log_may_take_the_name(void **state)
{
    sessile_backend_log *old, *log;
    opened o = open_log(*state, "one\n", &old, NULL);
    sessile_log_end end = {1, 4, {0}}, stale;

    must(append(&o, old, &end, "two\n", 4, 1, 1), &o.err);
    stale = end;
    assert_int_equal(size_of(&o, old), 8);
    remove_log(&o, "log");
    create(&o, "main", "log", "new\n");
    log_holds(&o, "main", "log", "new\n");
    /* as long as the old one was, and ending alike: the old handle is still of the old */
    log = log_of(&o, "log");
    end = (sessile_log_end){1, 4, {0}};
    must(append(&o, log, &end, "neu\n", 4, 1, 1), &o.err);
    append_is_gone(&o, old, stale);
    log_holds(&o, "main", "log", "new\nneu\n");
    if (o.table->replaced && !has(&o, SESSILE_BACKEND_LOCKS)) {
        (void)size_of(&o, old);
        assert_int_equal(o.table->replaced(old), 1);
        (void)size_of(&o, log);
        assert_int_equal(o.table->replaced(log), 0);
    }
    o.table->close(old);
    must(append(&o, log, &end, "more\n", 5, 1, 2), &o.err);
    done_and_kept(&o, *state, log, "new\nneu\nmore\n");
}

/* Without locks the end that the handle saw last is the fence of a removal too. */
static void a_log_that_grew_unseen_is_not_removed(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_log_end end = {1, 4, {0}};

    assert_int_equal(size_of(&o, a), 4);
    must(append(&o, b, &end, "two\n", 4, 1, 1), &o.err);
    refused(removed(&o, a), SESSILE_CONFLICT, &o.err);
    holds(&o, b, "one\ntwo\n");
    assert_int_equal(size_of(&o, a), 8);
    must(removed(&o, a), &o.err);
    absent(&o, "main", "log");
    done_with(&o, a, b);
}

static void a_log_of_many_records_is_removed_whole(void **state)
{
    enum { RECORDS = 3000 };
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    sessile_log_end end = {1, 4, {0}};
    char *text = malloc(RECORDS * 4 + 1);

    assert_non_null(text);
    for (int i = 0; i < RECORDS; i++)
        memcpy(text + 4 * i, "abc\n", 4);
    must(append(&o, log, &end, text, RECORDS * 4, RECORDS, 1), &o.err);
    free(text);
    assert_int_equal(size_of(&o, log), 4 + RECORDS * 4);
    must(removed(&o, log), &o.err);
    o.table->close(log);
    absent(&o, "main", "log");
    create(&o, "main", "log", "two\n");
    log_holds(&o, "main", "log", "two\n");
    done(&o);
}

/* A handle may have the first part of a log in memory when the log is removed. That part
 * alone is not what the log was: a short read says that the log ends there. */
static void a_read_across_a_removal_is_never_short(void **state)
{
    enum { RECORDS = 600, RECORD = 500, SIZE = RECORDS * RECORD };
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    sessile_backend_log *log = log_of(&o, "log");
    sessile_log_end end = {1, 4, {0}};
    char *text = malloc(SIZE), *out = malloc(SIZE);
    size_t got;

    assert_non_null(text);
    assert_non_null(out);
    memset(text, 'a', SIZE);
    for (int i = 1; i <= RECORDS; i++)
        text[i * RECORD - 1] = '\n';
    must(append(&o, log, &end, text, SIZE, RECORDS, 1), &o.err);
    assert_int_equal(size_of(&o, log), 4 + SIZE);
    must(o.table->read(log, 1, 4, out, 10, &got, &o.err), &o.err);
    assert_int_equal(got, 10);
    remove_log(&o, "log");
    sessile_status status = o.table->read(log, 1, 4, out, SIZE, &got, &o.err);
    if (!status)
        assert_int_equal(got, SIZE);
    else
        refused(status, SESSILE_NOTFOUND, &o.err);
    o.table->close(log);
    free(out);
    free(text);
    done(&o);
}

typedef struct rival {
    opened *o;
    unsigned long appended;
    int removed;
    pthread_t thread;
    char trouble[200];
} rival;

static void *append_until_gone(void *arg)
{
    rival *r = arg;
    const sessile_backend *t = r->o->table;
    const int locks = has(r->o, SESSILE_BACKEND_LOCKS);
    sessile_backend_log *log = NULL;
    sessile_error err = {0};
    sessile_log_end end = {1, 4, {0}};
    sessile_status status = t->open(r->o->self, "main", "log", &log, &err);
    unsigned char tag[16] = {0};
    int poisoned = 0, replaced = 0;

    for (int i = 0; i < 3000 && !status && !replaced; i++) {
        tag[0] = (unsigned char)(i & 255);
        if (locks)
            status = t->lock(log, SESSILE_LOCK_EXCLUSIVE, patience(), &replaced, &err);
        if (!status && !replaced)
            status = t->append(log, &end, "more\n", 5, 1, tag, &poisoned, &err);
        if (locks)
            t->unlock(log);
        r->appended += !status && !replaced;
    }
    if (status && status != SESSILE_NOTFOUND)
        snprintf(r->trouble, sizeof r->trouble, "%s: %.150s", sessile_status_name(status),
                 err.message);
    if (log)
        t->close(log);
    return NULL;
}

/* Of an append and a removal that meet, one sees the other. */
static void a_removal_meets_a_writer(void **state)
{
    opened o = open_site(*state);
    rival r = {&o, 0, 0, 0, ""};
    sessile_status status = SESSILE_CONFLICT;
    sessile_backend_log *log;

    create(&o, "main", "log", "one\n");
    log = log_of(&o, "log");
    assert_int_equal(pthread_create(&r.thread, NULL, append_until_gone, &r), 0);
    while (size_of(&o, log) < 100 && !r.trouble[0])
        usleep(1000);
    while (status == SESSILE_CONFLICT) { /* it grows; the next look is newer */
        (void)size_of(&o, log);
        status = removed(&o, log);
    }
    pthread_join(r.thread, NULL);
    must(status, &o.err);
    if (r.trouble[0])
        fail_msg("the writer: %s", r.trouble);
    assert_true(r.appended >= 19);
    o.table->close(log);
    absent(&o, "main", "log");
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE_IF(what_was_removed_is_gone, NEEDS_REMOVE),
    CASE_IF(another_log_may_take_the_name, NEEDS_REMOVE),
    CASE_IF(a_log_that_grew_unseen_is_not_removed, NEEDS_REMOVE | NEEDS_NO_LOCKS),
    CASE_IF(a_log_of_many_records_is_removed_whole, NEEDS_REMOVE),
    CASE_IF(a_read_across_a_removal_is_never_short, NEEDS_REMOVE | NEEDS_NO_LOCKS),
    CASE_IF(a_removal_meets_a_writer, NEEDS_REMOVE),
};

CASES(cases_removal, cases);
