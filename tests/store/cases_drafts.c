/*
 * cases_drafts.c: logs that are written beside another one and take its place, or a free
 * name, whole or not at all.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "store/backend.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static sessile_backend_draft *draft_of(opened *o, const char *name, const char *text)
{
    sessile_backend_draft *draft = NULL;

    must(o->table->draft_new(o->self, "main", name, &draft, &o->err), &o->err);
    assert_non_null(draft);
    if (text)
        must(o->table->draft_write(draft, text, strlen(text), &o->err), &o->err);
    return draft;
}

static sessile_status replace(opened *o, sessile_backend_draft *draft,
                              sessile_backend_log *old, int keep, char kept[100])
{
    sessile_status status;

    (void)locked(o, old);
    memset(kept, '#', 100);
    status = o->table->draft_replace(draft, old, keep, kept, 100, &o->err);
    unlocked(o, old);
    return status;
}

static void the_only_log_is(opened *o, const char *expected)
{
    shown s = {"", 1000};

    must(o->table->list(o->self, NULL, show, &s, &o->err), &o->err);
    assert_string_equal(s.text, expected);
}

static void a_draft_takes_a_logs_place(void **state)
{
    sessile_backend_log *old, *other, *log;
    opened o = open_log(*state, "one\n", &old, &other);
    sessile_log_end end = {1, 4, {0}}, stale;
    sessile_backend_draft *draft;
    sessile_backend_stat before, after;
    char kept[100];

    must(append(&o, old, &end, "two\n", 4, 1, 1), &o.err);
    stale = end;
    if (has(&o, SESSILE_BACKEND_LIST_CACHE))
        must(o.table->stat(o.self, "main", "log", &before, &o.err), &o.err);
    draft = draft_of(&o, "log", "first\n");
    must(o.table->draft_write(draft, "second\nth", 9, &o.err), &o.err);
    must(o.table->draft_write(draft, "ird\n", 4, &o.err), &o.err);
    the_only_log_is(&o, "main/log "); /* a draft is no log */
    log_holds(&o, "main", "log", "one\ntwo\n");
    assert_int_equal(size_of(&o, old), 8);
    (void)size_of(&o, other);
    must(replace(&o, draft, old, 0, kept), &o.err);
    log_holds(&o, "main", "log", "first\nsecond\nthird\n");
    the_only_log_is(&o, "main/log ");
    if (has(&o, SESSILE_BACKEND_LIST_CACHE)) {
        must(o.table->stat(o.self, "main", "log", &after, &o.err), &o.err);
        assert_int_equal(after.bytes, 19);
        assert_true(after.inode != before.inode);
    }
    append_is_gone(&o, other, stale);
    append_is_gone(&o, old, stale);
    if (o.table->replaced) {
        (void)size_of(&o, other);
        assert_int_equal(o.table->replaced(other), 1);
    }
    o.table->close(other);
    o.table->close(old);
    log = log_of(&o, "log");
    end = (sessile_log_end){3, 19, {0}};
    must(append(&o, log, &end, "fourth\n", 7, 1, 2), &o.err);
    if (o.table->replaced) {
        (void)size_of(&o, log);
        assert_int_equal(o.table->replaced(log), 0);
    }
    done_and_kept(&o, *state, log, "first\nsecond\nthird\nfourth\n");
}

typedef struct beside {
    const char *wanted;
    int times;
    uint64_t bytes;
} beside;

static int find_beside(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    beside *b = arg;

    if (folder && strcmp(folder, "main") == 0 && strcmp(file, b->wanted) == 0) {
        b->times++;
        b->bytes = bytes;
    }
    return 0;
}

static void what_is_kept_of_the_old_log_has_a_name(void **state)
{
    opened o = open_site(*state);
    char kept[2][100];

    create(&o, "main", "log", "one\ntwo\n");
    for (int i = 0; i < 2; i++) {
        sessile_backend_log *old = log_of(&o, "log");
        beside b = {kept[i], 0, 0};
        assert_int_equal(size_of(&o, old), 8);
        must(replace(&o, draft_of(&o, "log", i ? "thre\nfo\n" : "new\nneu\n"), old, 1,
                     kept[i]),
             &o.err);
        o.table->close(old);
        assert_non_null(memchr(kept[i], 0, 100));
        assert_true(kept[i][0] && strcmp(kept[i], "log") != 0);
        the_only_log_is(&o, "main/log ");
        if (o.table->list_others) {
            must(o.table->list_others(o.self, "main", find_beside, &b, &o.err), &o.err);
            assert_int_equal(b.times, 1);
            assert_int_equal(b.bytes, 8);
        }
    }
    assert_string_not_equal(kept[0], kept[1]);
    log_holds(&o, "main", "log", "thre\nfo\n");
    if (o.table->remove) { /* what was kept goes with the log */
        remove_log(&o, "log");
        for (int i = 0; i < 2 && o.table->list_others; i++) {
            beside b = {kept[i], 0, 0};
            must(o.table->list_others(o.self, NULL, find_beside, &b, &o.err), &o.err);
            assert_int_equal(b.times, 0);
        }
    }
    done(&o);
}

static void a_log_that_grew_unseen_is_not_replaced(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_log_end end = {1, 4, {0}};
    char kept[100];

    assert_int_equal(size_of(&o, a), 4);
    must(append(&o, b, &end, "two\n", 4, 1, 1), &o.err);
    for (int keep = 0; keep < 2; keep++)
        refused(replace(&o, draft_of(&o, "log", "new\n"), a, keep, kept),
                SESSILE_CONFLICT, &o.err);
    log_holds(&o, "main", "log", "one\ntwo\n");
    holds(&o, b, "one\ntwo\n");
    must(append(&o, b, &end, "three\n", 6, 1, 2), &o.err); /* nothing was changed */
    assert_int_equal(size_of(&o, a), 14);
    must(replace(&o, draft_of(&o, "log", "new\n"), a, 0, kept), &o.err);
    log_holds(&o, "main", "log", "new\n");
    /* the name leads to another one now */
    (void)size_of(&o, b);
    refused(replace(&o, draft_of(&o, "log", "late\n"), b, 0, kept), SESSILE_CONFLICT,
            &o.err);
    log_holds(&o, "main", "log", "new\n");
    the_only_log_is(&o, "main/log ");
    done_with(&o, a, b);
}

static void a_new_log_drops_the_old_ones_cache(void **state)
{
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    uint64_t bytes = 99;
    char kept[100];

    (void)locked(&o, log);
    must(o.table->cache_write(log, 0, "cached", 6, &o.err), &o.err);
    unlocked(&o, log);
    (void)size_of(&o, log);
    must(replace(&o, draft_of(&o, "log", "new\n"), log, 0, kept), &o.err);
    o.table->close(log);
    log = log_of(&o, "log");
    must(o.table->cache_size(log, &bytes, &o.err), &o.err);
    assert_int_equal(bytes, 0);
    done_with(&o, log, NULL);
}

static void a_draft_that_is_given_up_leaves_nothing(void **state)
{
    opened o = open_site(*state);

    create(&o, "main", "log", "one\n");
    o.table->draft_drop(draft_of(&o, "log", "new\n"));
    o.table->draft_drop(draft_of(&o, "other", NULL));
    the_only_log_is(&o, "main/log ");
    absent(&o, "main", "other");
    log_holds(&o, "main", "log", "one\n");
    create(&o, "main", "other", "made\n");
    log_holds(&o, "main", "other", "made\n");
    done(&o);
}

static void a_draft_becomes_a_new_log(void **state)
{
    opened o = open_site(*state);
    sessile_backend_draft *draft = draft_of(&o, "log", "one\ntwo\n"),
                          *late = draft_of(&o, "log", "late\n");
    sessile_log_end end = {3, 14, {0}};
    sessile_backend_log *log;

    must(o.table->draft_write(draft, "three\n", 6, &o.err), &o.err);
    absent(&o, "main", "log");
    the_only_log_is(&o, "");
    must(o.table->draft_publish(draft, &o.err), &o.err);
    the_only_log_is(&o, "main/log ");
    log_holds(&o, "main", "log", "one\ntwo\nthree\n");
    refused(o.table->draft_publish(late, &o.err), SESSILE_EXISTS, &o.err);
    log_holds(&o, "main", "log", "one\ntwo\nthree\n");
    refused(o.table->create(o.self, "main", "log", "x\n", 2, &o.err), SESSILE_EXISTS,
            &o.err);
    log = log_of(&o, "log");
    must(append(&o, log, &end, "four\n", 5, 1, 1), &o.err);
    o.table->close(log);
    restarted(&o, *state);
    log_holds(&o, "main", "log", "one\ntwo\nthree\nfour\n");
    the_only_log_is(&o, "main/log ");
    done(&o);
}

/* Records that come in many pieces, which end anywhere. */
static void a_large_draft_is_kept_whole(void **state)
{
    enum { RECORDS = 20000, SIZE = 10 };
    opened o = open_site(*state);
    char *text = malloc(RECORDS * SIZE + 1), *read, kept[100];
    sessile_backend_draft *draft;
    sessile_backend_log *log;
    size_t size;

    assert_non_null(text);
    for (int i = 0; i < RECORDS; i++)
        snprintf(text + i * SIZE, SIZE + 1, "%09u\n", (unsigned)i % 1000000000u);
    create(&o, "main", "log", "one\n");
    log = log_of(&o, "log");
    (void)size_of(&o, log);
    draft = draft_of(&o, "log", NULL);
    for (size_t at = 0; at < RECORDS * SIZE; at += 7777) {
        size_t left = RECORDS * SIZE - at;
        must(o.table->draft_write(draft, text + at, left < 7777 ? left : 7777, &o.err),
             &o.err);
    }
    must(replace(&o, draft, log, 0, kept), &o.err);
    o.table->close(log);
    log = log_of(&o, "log");
    read = all(&o, log, 5000, &size);
    assert_int_equal(size, RECORDS * SIZE);
    assert_memory_equal(read, text, size);
    free(read);
    free(text);
    sessile_log_end end = {RECORDS, RECORDS * SIZE, {0}};
    must(append(&o, log, &end, "more\n", 5, 1, 1), &o.err);
    assert_int_equal(end.count, RECORDS + 1);
    done_with(&o, log, NULL);
}

/* ------------------------------------------------------------------ after a crash */

typedef struct swept {
    int logs, files;
} swept;

static int take_all(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    swept *s = arg;

    (void)bytes;
    s->files++;
    s->logs += folder && strcmp(file, "log") == 0;
    return 1;
}

static void what_a_crash_leaves_of_a_draft_is_no_log(void **state)
{
    const site *g = *state;
    opened o = open_site(g);
    swept s = {0, 0};
    int status = -1;
    pid_t child;

    create(&o, "main", "log", "one\n");
    done(&o);
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        sessile_backend_draft *draft;
        sessile_status failed = g->kind->backend(g->place, &o.table, &o.self, &o.err);
        for (int i = 0; i < 2 && !failed; i++) {
            failed =
                o.table->draft_new(o.self, "main", i ? "new" : "log", &draft, &o.err);
            if (!failed)
                failed = o.table->draft_write(draft, "draft\n", 6, &o.err);
        }
        _exit(failed ? 1 : 0); /* neither dropped nor closed */
    }
    while (waitpid(child, &status, 0) < 0 && errno == EINTR)
        continue;
    assert_int_equal(status, 0);
    o = open_site(g);
    the_only_log_is(&o, "main/log ");
    absent(&o, "main", "new");
    log_holds(&o, "main", "log", "one\n");
    if (o.table->sweep) {
        sessile_backend_draft *draft = NULL; /* somebody's who is still at it */
        if (o.table->draft_publish)
            draft = draft_of(&o, "mine", "mine\n");
        must(o.table->sweep(o.self, take_all, &s, &o.err), &o.err);
        assert_int_equal(s.logs, 0);
        if (draft) {
            must(o.table->draft_publish(draft, &o.err), &o.err);
            log_holds(&o, "main", "mine", "mine\n");
        }
    }
    create(&o, "main", "new", "new\n");
    log_holds(&o, "main", "new", "new\n");
    log_holds(&o, "main", "log", "one\n");
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE_IF(a_draft_takes_a_logs_place, SESSILE_BACKEND_REPLACES),
    CASE_IF(what_is_kept_of_the_old_log_has_a_name, SESSILE_BACKEND_REPLACES),
    CASE_IF(a_log_that_grew_unseen_is_not_replaced,
            SESSILE_BACKEND_REPLACES | NEEDS_NO_LOCKS),
    CASE_IF(a_new_log_drops_the_old_ones_cache,
            SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_CACHES),
    CASE_IF(a_draft_that_is_given_up_leaves_nothing, SESSILE_BACKEND_REPLACES),
    CASE_IF(a_draft_becomes_a_new_log, SESSILE_BACKEND_REPLACES | NEEDS_PUBLISH),
    CASE_IF(a_large_draft_is_kept_whole, SESSILE_BACKEND_REPLACES),
    CASE_IF(what_a_crash_leaves_of_a_draft_is_no_log,
            SESSILE_BACKEND_REPLACES | NEEDS_PROCESSES),
};

CASES(cases_drafts, cases);
