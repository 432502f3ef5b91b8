/*
 * cases_lists.c: which logs there are, what can be told of one without opening it, and
 * what a folder's list remembers.
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

static void every_log_is_listed_once(void **state)
{
    opened o = open_site(*state);
    shown s = {"", 1000};
    int found = 1;

    if (o.table->has_logs) {
        must(o.table->has_logs(o.self, &found, &o.err), &o.err);
        assert_int_equal(found, 0);
    }
    must(o.table->list(o.self, NULL, show, &s, &o.err), &o.err);
    must(o.table->list(o.self, "main", show, &s, &o.err), &o.err);
    assert_string_equal(s.text, "");
    for (int i = 0; i < 20; i++) {
        char name[20];
        snprintf(name, sizeof name, "log%02d", i);
        create(&o, i % 2 ? "main" : "other", name, "one\n");
    }
    if (has(&o, SESSILE_BACKEND_SEALS))
        must(o.table->blob_put_new(o.self, "log99", "x", 1, &o.err), &o.err);
    must(o.table->list(o.self, NULL, show, &s, &o.err), &o.err);
    assert_int_equal(count_of(s.text, "main/log"), 10);
    assert_int_equal(count_of(s.text, "other/log"), 10);
    assert_int_equal(count_of(s.text, "main/log07 "), 1);
    assert_int_equal(count_of(s.text, "log99"), 0);
    s = (shown){"", 1000};
    must(o.table->list(o.self, "other", show, &s, &o.err), &o.err);
    assert_int_equal(count_of(s.text, "other/"), 10);
    assert_int_equal(count_of(s.text, "main/"), 0);
    s = (shown){"", 1000};
    must(o.table->list(o.self, "mai", show, &s, &o.err), &o.err);
    assert_string_equal(s.text, "");
    s = (shown){"", 3};
    must(o.table->list(o.self, NULL, show, &s, &o.err), &o.err);
    assert_int_equal(count_of(s.text, "/"), 3);
    if (o.table->has_logs) {
        must(o.table->has_logs(o.self, &found, &o.err), &o.err);
        assert_int_equal(found, 1);
    }
    done(&o);
}

typedef struct opening {
    opened *o;
    int opened, made;
} opening;

/* A visitor may use the store: the engine opens what it is shown. */
static int open_it(void *arg, const char *folder, const char *name)
{
    opening *v = arg;
    sessile_backend_log *log = log_in(v->o, folder, name);
    char made[40];

    assert_int_equal(size_of(v->o, log), 4);
    v->o->table->close(log);
    v->opened++;
    if (v->made < 3) {
        snprintf(made, sizeof made, "made%d", v->made++);
        create(v->o, "made", made, "one\n");
    }
    return 0;
}

static void who_is_shown_a_log_may_use_the_store(void **state)
{
    opened o = open_site(*state);
    opening v = {&o, 0, 0};

    create(&o, "main", "a", "one\n");
    create(&o, "main", "b", "one\n");
    create(&o, "other", "a", "one\n");
    must(o.table->list(o.self, NULL, open_it, &v, &o.err), &o.err);
    assert_in_range(v.opened, 3, 6); /* what is made meanwhile is listed, or is not */
    done(&o);
}

typedef struct counted {
    unsigned char seen[10000];
    int doubled, strange, changes; /* how often the folder was another one */
    char folder[32];
} counted;

static int count_one(void *arg, const char *folder, const char *name)
{
    counted *c = arg;
    int n = -1;

    if (sscanf(name, "log%d", &n) != 1 || n < 0 || n >= 10000) {
        c->strange++;
    } else {
        c->doubled += c->seen[n];
        c->seen[n] = 1;
    }
    if (strcmp(c->folder, folder) != 0)
        c->changes++;
    snprintf(c->folder, sizeof c->folder, "%s", folder);
    return 0;
}

static int count_stat(void *arg, const char *folder, const char *name,
                      const sessile_backend_stat *stat)
{
    assert_true(!stat || stat->bytes == 4);
    return count_one(arg, folder, name);
}

static void all_seen(const counted *c, int logs)
{
    assert_int_equal(c->doubled, 0);
    assert_int_equal(c->strange, 0);
    for (int i = 0; i < logs; i++)
        assert_int_equal(c->seen[i], 1);
}

/* SESSILE_SOAK=1: ten thousand. */
static void many_logs_are_listed(void **state)
{
    static counted c;
    const int logs = getenv("SESSILE_SOAK") ? 10000 : 700;
    opened o = open_site(*state);

    for (int i = 0; i < logs; i++) {
        char folder[20], name[20];
        snprintf(folder, sizeof folder, "folder%d", i % 7);
        snprintf(name, sizeof name, "log%d", i);
        create(&o, folder, name, "one\n");
    }
    memset(&c, 0, sizeof c);
    must(o.table->list(o.self, NULL, count_one, &c, &o.err), &o.err);
    all_seen(&c, logs);
    if (has(&o, SESSILE_BACKEND_LIST_CACHE)) {
        memset(&c, 0, sizeof c);
        must(o.table->list_stat(o.self, NULL, count_stat, &c, &o.err), &o.err);
        all_seen(&c, logs);
        assert_int_equal(c.changes, 7); /* one folder after the other */
    }
    done(&o);
}

/* ------------------------------------------------------------------ without opening */

static sessile_backend_stat stat_of(opened *o, const char *name)
{
    sessile_backend_stat st;

    memset(&st, 0, sizeof st);
    must(o->table->stat(o->self, "main", name, &st, &o->err), &o->err);
    return st;
}

typedef struct found {
    const char *name;
    sessile_backend_stat stat;
    int times;
} found;

static int find_stat(void *arg, const char *folder, const char *name,
                     const sessile_backend_stat *stat)
{
    found *f = arg;

    (void)folder;
    if (strcmp(name, f->name) == 0) {
        assert_non_null(stat);
        f->stat = *stat;
        f->times++;
    }
    return 0;
}

static void what_is_told_of_a_log_changes_with_it(void **state)
{
    opened o = open_site(*state);
    sessile_backend_stat first, second, other;
    sessile_log_end end = {1, 4, {0}};
    sessile_backend_log *log;
    found f = {"log", {0, 0, 0, 0}, 0};

    refused(o.table->stat(o.self, "main", "log", &first, &o.err), SESSILE_NOTFOUND,
            &o.err);
    create(&o, "main", "log", "one\n");
    create(&o, "main", "log2", "one\n");
    first = stat_of(&o, "log");
    assert_int_equal(first.bytes, 4);
    assert_true(first.changed_ns > 0);
    other = stat_of(&o, "log2");
    assert_true(other.inode != first.inode);
    second = stat_of(&o, "log"); /* who only looks changes nothing */
    assert_true(first.bytes == second.bytes && first.inode == second.inode &&
                first.changed_ns == second.changed_ns &&
                first.mtime_ns == second.mtime_ns);
    log = log_of(&o, "log");
    must(append(&o, log, &end, "two\n", 4, 1, 1), &o.err);
    second = stat_of(&o, "log");
    assert_int_equal(second.bytes, 8);
    assert_int_equal(second.inode, first.inode);
    assert_true(second.changed_ns >= first.changed_ns);
    must(o.table->list_stat(o.self, "main", find_stat, &f, &o.err), &o.err);
    assert_int_equal(f.times, 1);
    assert_true(f.stat.bytes == second.bytes && f.stat.inode == second.inode &&
                f.stat.changed_ns == second.changed_ns &&
                f.stat.mtime_ns == second.mtime_ns);
    o.table->close(log);
    restarted(&o, *state);
    first = stat_of(&o, "log");
    assert_true(first.bytes == second.bytes && first.inode == second.inode &&
                first.changed_ns == second.changed_ns);
    done(&o);
}

/* ------------------------------------------------------------------ list_caches */

static void list_cache_is(opened *o, const char *folder, const char *expected)
{
    blob_holds(o, o->table->list_cache_get, folder, expected);
}

static void a_list_cache_is_replaced_whole_and_dropped(void **state)
{
    opened o = open_site(*state);
    const sessile_backend *t = o.table;
    shown s = {"", 1000};
    char *blob = NULL;
    size_t size;

    create(&o, "main", "log", "one\n");
    create(&o, "other", "log", "one\n");
    refused(t->list_cache_get(o.self, "main", &blob, &size, &o.err), SESSILE_NOTFOUND,
            &o.err);
    must(t->list_cache_drop(o.self, "main", &o.err), &o.err);
    must(t->list_cache_put(o.self, "main", "the first one", 13, &o.err), &o.err);
    must(t->list_cache_put(o.self, "other", "other", 5, &o.err), &o.err);
    list_cache_is(&o, "main", "the first one");
    must(t->list_cache_put(o.self, "main", "next", 4, &o.err), &o.err);
    list_cache_is(&o, "main", "next");
    list_cache_is(&o, "other", "other");
    must(t->list(o.self, NULL, show, &s, &o.err), &o.err); /* a list cache is no log */
    assert_int_equal(count_of(s.text, "/"), 2);
    must(t->list_cache_drop(o.self, "main", &o.err), &o.err);
    refused(t->list_cache_get(o.self, "main", &blob, &size, &o.err), SESSILE_NOTFOUND,
            &o.err);
    list_cache_is(&o, "other", "other");
    must(t->list_cache_put(o.self, "main", "again", 5, &o.err), &o.err);
    must(t->list_cache_drop(o.self, NULL, &o.err), &o.err);
    refused(t->list_cache_get(o.self, "main", &blob, &size, &o.err), SESSILE_NOTFOUND,
            &o.err);
    refused(t->list_cache_get(o.self, "other", &blob, &size, &o.err), SESSILE_NOTFOUND,
            &o.err);
    log_holds(&o, "main", "log", "one\n");
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE(every_log_is_listed_once),
    CASE(who_is_shown_a_log_may_use_the_store),
    CASE(many_logs_are_listed),
    CASE_IF(what_is_told_of_a_log_changes_with_it, SESSILE_BACKEND_LIST_CACHE),
    CASE_IF(a_list_cache_is_replaced_whole_and_dropped, SESSILE_BACKEND_LIST_CACHE),
};

CASES(cases_lists, cases);
