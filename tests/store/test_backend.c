/*
 * test_backend.c: what the table of a store promises, over every store in stores.c.
 *
 * The engine's own floor makes calls of these kinds and no others; a store that passes
 * here, in test_sessions.c and in test_failures.c carries sessions.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* An open handle of a site's backend. */
typedef struct opened {
    const sessile_backend *table;
    void *self;
    sessile_error err;
} opened;

static opened open_site(const site *g)
{
    opened o = {NULL, NULL, {0}};

    assert_int_equal(g->kind->backend(g->place, &o.table, &o.self, &o.err), SESSILE_OK);
    return o;
}

static void done(opened *o)
{
    if (o->table->free)
        o->table->free(o->self);
}

static void must(sessile_status status, const sessile_error *err)
{
    if (status)
        fail_msg("%s: %s", sessile_status_name(status), err->message);
}

static void create(opened *o, const char *folder, const char *name, const char *record)
{
    must(o->table->create(o->self, folder, name, record, strlen(record), &o->err),
         &o->err);
}

static sessile_backend_log *log_of(opened *o, const char *name)
{
    sessile_backend_log *log = NULL;

    must(o->table->open(o->self, "main", name, &log, &o->err), &o->err);
    assert_non_null(log);
    return log;
}

static sessile_status append(opened *o, sessile_backend_log *log, sessile_log_end *end,
                             const void *data, size_t size, uint64_t count,
                             unsigned char tag)
{
    const int locks = (o->table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
    const unsigned char tags[16] = {tag, 1};
    int poisoned = 0, replaced = 0;

    if (locks)
        must(o->table->lock(log, SESSILE_LOCK_EXCLUSIVE, -1, &replaced, &o->err),
             &o->err);
    sessile_status status =
        o->table->append(log, end, data, size, count, tags, &poisoned, &o->err);
    assert_false(poisoned);
    if (locks)
        o->table->unlock(log);
    return status;
}

static uint64_t size_of(opened *o, sessile_backend_log *log)
{
    uint64_t bytes = 0;
    int64_t mtime;

    must(o->table->size(log, &bytes, &mtime, &o->err), &o->err);
    return bytes;
}

/* All bytes of a log, read in pieces of `piece`: free(). */
static char *all(opened *o, sessile_backend_log *log, size_t piece, size_t *size)
{
    char *bytes;
    size_t got = 1;

    *size = (size_t)size_of(o, log);
    bytes = malloc(*size + piece);
    assert_non_null(bytes);
    for (size_t at = 0; got; at += got) {
        got = piece + 1;
        must(o->table->read(log, 0, at, bytes + at, piece, &got, &o->err), &o->err);
        assert_true(got <= piece);
        assert_int_equal(got, *size - at < piece ? *size - at : piece);
        if (at + got == *size)
            break;
    }
    return bytes;
}

static void holds(opened *o, sessile_backend_log *log, const char *expected)
{
    for (size_t piece = 1; piece < 40; piece += 6) {
        size_t size;
        char *bytes = all(o, log, piece, &size);
        assert_int_equal(size, strlen(expected));
        assert_memory_equal(bytes, expected, size);
        free(bytes);
    }
}

/* ------------------------------------------------------------------ logs */

static void records_are_read_back_in_order(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    sessile_backend_log *log = log_of(&o, "log");
    sessile_log_end end = {1, 4, {0}};
    unsigned char expected[16] = {7, 1};
    char past[4];
    size_t got = 9;

    holds(&o, log, "one\n");
    must(append(&o, log, &end, "two\nthree\n", 10, 2, 7), &o.err);
    assert_int_equal(end.count, 3);
    assert_int_equal(end.bytes, 14);
    assert_memory_equal(end.tag, expected, 16);
    must(append(&o, log, &end, "4\n", 2, 1, 8), &o.err);
    must(o.table->sync(log, &o.err), &o.err);
    holds(&o, log, "one\ntwo\nthree\n4\n");
    must(o.table->read(log, 4, 16, past, sizeof past, &got, &o.err), &o.err);
    assert_int_equal(got, 0);
    o.table->close(log);
    done(&o);
}

static void what_one_handle_appends_the_other_sees_at_once(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    sessile_backend_log *a = log_of(&o, "log"), *b = log_of(&o, "log");
    sessile_log_end end = {1, 4, {0}};

    must(append(&o, a, &end, "two\n", 4, 1, 1), &o.err);
    holds(&o, b, "one\ntwo\n");
    must(append(&o, b, &end, "three\n", 6, 1, 2), &o.err);
    holds(&o, a, "one\ntwo\nthree\n");
    o.table->close(a);
    holds(&o, b, "one\ntwo\nthree\n");
    o.table->close(b);
    done(&o);
}

static void an_append_where_the_log_does_not_end_changes_nothing(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    sessile_backend_log *a = log_of(&o, "log"), *b = log_of(&o, "log");
    sessile_log_end end = {1, 4, {0}}, late = end, early;

    must(append(&o, a, &end, "two\n", 4, 1, 1), &o.err);
    assert_int_equal(append(&o, b, &late, "too late\n", 9, 1, 9), SESSILE_CONFLICT);
    assert_true(o.err.message[0] != 0);
    assert_int_equal(late.count, 1);
    assert_int_equal(late.bytes, 4);
    early = end;
    early.count++;
    early.bytes += 5;
    assert_int_equal(append(&o, b, &early, "too early\n", 10, 1, 9), SESSILE_TRUNCATED);
    holds(&o, a, "one\ntwo\n");
    /* nobody was locked out, and the one who was late knows better now */
    must(append(&o, b, &end, "three\n", 6, 1, 2), &o.err);
    holds(&o, a, "one\ntwo\nthree\n");
    o.table->close(a);
    o.table->close(b);
    done(&o);
}

static void names_that_are_taken_or_missing_are_told(void **state)
{
    opened o = open_site(*state);
    sessile_backend_log *log = NULL;
    sessile_error *err = &o.err;

    assert_int_equal(o.table->open(o.self, "main", "log", &log, err), SESSILE_NOTFOUND);
    assert_true(err->message[0] != 0);
    create(&o, "main", "log", "one\n");
    assert_int_equal(o.table->create(o.self, "main", "log", "other\n", 6, err),
                     SESSILE_EXISTS);
    assert_int_equal(o.table->open(o.self, "other", "log", &log, err), SESSILE_NOTFOUND);
    assert_int_equal(o.table->open(o.self, "main", "log2", &log, err), SESSILE_NOTFOUND);
    /* the same name elsewhere, and names as the engine makes them */
    create(&o, "other", "log", "other\n");
    create(&o, "main", "=4ajvkqf5mmlhs2tnhkuzw7l5d3cr2qz6ge7c3yvy5adtxqyp3jja", "hash\n");
    create(&o, "main", "lo-g_0", "third\n");
    log = log_of(&o, "log");
    holds(&o, log, "one\n");
    o.table->close(log);
    log = log_of(&o, "=4ajvkqf5mmlhs2tnhkuzw7l5d3cr2qz6ge7c3yvy5adtxqyp3jja");
    holds(&o, log, "hash\n");
    o.table->close(log);
    done(&o);
}

static void any_bytes_and_large_records_are_kept(void **state)
{
    enum { LARGE = 12 << 20 };
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    sessile_backend_log *log = log_of(&o, "log");
    sessile_log_end end = {1, 4, {0}};
    char *record = malloc(LARGE), *read;
    size_t size;

    assert_non_null(record);
    for (size_t i = 0; i < LARGE; i++) {
        record[i] = (char)(i * 2654435761u >> 13);
        if (record[i] == '\n') /* a record is a line */
            record[i] = 0;
    }
    record[LARGE - 1] = '\n';
    must(append(&o, log, &end, record, LARGE, 1, 1), &o.err);
    must(append(&o, log, &end, "\0\xff\n", 3, 1, 2), &o.err);
    read = all(&o, log, 1 << 20, &size);
    assert_int_equal(size, LARGE + 7);
    assert_memory_equal(read + 4, record, LARGE);
    assert_memory_equal(read + 4 + LARGE, "\0\xff\n", 3);
    free(read);
    free(record);
    o.table->close(log);
    done(&o);
}

static void a_hundred_thousand_records(void **state)
{
    enum { WRITES = 100, EACH = 1000, SIZE = 16 };
    const site *g = *state;
    opened o = open_site(g);
    create(&o, "main", "log", "000000000000000\n");
    sessile_backend_log *log = log_of(&o, "log");
    sessile_log_end end = {1, SIZE, {0}};
    static char piece[EACH * SIZE + 1];
    char *read, line[SIZE + 1];
    size_t size, n = 1;

    for (int i = 0; i < WRITES; i++) {
        for (int j = 0; j < EACH; j++, n++)
            snprintf(piece + j * SIZE, SIZE + 1, "%015zu\n", n);
        must(append(&o, log, &end, piece, EACH * SIZE, EACH, (unsigned char)i), &o.err);
    }
    must(o.table->sync(log, &o.err), &o.err);
    assert_int_equal(end.count, n);
    if (!g->kind->vanishes) { /* as after a restart */
        o.table->close(log);
        done(&o);
        o = open_site(g);
        log = log_of(&o, "log");
    }
    read = all(&o, log, 100000, &size);
    assert_int_equal(size, n * SIZE);
    for (size_t i = 0; i < n; i++) {
        snprintf(line, sizeof line, "%015zu\n", i);
        assert_memory_equal(read + i * SIZE, line, SIZE);
    }
    free(read);
    o.table->close(log);
    done(&o);
}

/* ------------------------------------------------------------------ many writers */

enum { WRITERS = 6, EACH = 100, RECORD = 16 };

typedef struct writer {
    opened *o;
    int number;
    unsigned long lost;
    pthread_t thread;
    const char *trouble;
} writer;

/* Appends at the end that it finds, and again where another one found it too. */
static void *write_all(void *arg)
{
    writer *w = arg;
    const sessile_backend *t = w->o->table;
    const int locks = (t->capabilities & SESSILE_BACKEND_LOCKS) != 0;
    sessile_backend_log *log = NULL;
    sessile_error err = {0};

    if (t->open(w->o->self, "main", "log", &log, &err)) {
        w->trouble = "open";
        return NULL;
    }
    for (int i = 0; i < EACH && !w->trouble;) {
        char record[RECORD + 1];
        unsigned char tag[16];
        sessile_log_end end = {0, 0, {0}};
        sessile_status status;
        int poisoned = 0, replaced = 0;
        int64_t mtime;
        size_t got = 0;

        snprintf(record, sizeof record, "%07d-%07d\n", w->number, i);
        memcpy(tag, record, 16); /* so that a tag can be read back: the record itself */
        if (locks && t->lock(log, SESSILE_LOCK_EXCLUSIVE, -1, &replaced, &err)) {
            w->trouble = "lock";
            break;
        }
        if (t->size(log, &end.bytes, &mtime, &err))
            w->trouble = "size";
        end.count = end.bytes / RECORD;
        if (!w->trouble && (t->read(log, end.count - 1, end.bytes - RECORD, end.tag,
                                    RECORD, &got, &err) ||
                            got != RECORD))
            w->trouble = "read";
        status = w->trouble
                     ? SESSILE_IO
                     : t->append(log, &end, record, RECORD, 1, tag, &poisoned, &err);
        if (locks)
            t->unlock(log);
        if (status == SESSILE_CONFLICT && !locks)
            w->lost++;
        else if (status)
            w->trouble = w->trouble ? w->trouble : "append";
        else
            i++;
    }
    t->close(log);
    return NULL;
}

static void of_many_writers_none_is_lost_or_doubled(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "0000000-0000000\n");
    writer writers[WRITERS];
    int next[WRITERS] = {0};
    size_t size;

    memset(writers, 0, sizeof writers);
    for (int i = 0; i < WRITERS; i++) {
        writers[i].o = &o;
        writers[i].number = i;
        assert_int_equal(pthread_create(&writers[i].thread, NULL, write_all, &writers[i]),
                         0);
    }
    for (int i = 0; i < WRITERS; i++)
        pthread_join(writers[i].thread, NULL);
    for (int i = 0; i < WRITERS; i++)
        if (writers[i].trouble)
            fail_msg("writer %d: %s failed", i, writers[i].trouble);
    sessile_backend_log *log = log_of(&o, "log");
    char *read = all(&o, log, 1000, &size);
    assert_int_equal(size, (1 + WRITERS * EACH) * RECORD);
    for (size_t at = RECORD; at < size; at += RECORD) {
        int who = atoi(read + at), which = atoi(read + at + 8);
        assert_in_range(who, 0, WRITERS - 1);
        assert_int_equal(which, next[who]);
        next[who]++;
    }
    free(read);
    o.table->close(log);
    done(&o);
}

/* ------------------------------------------------------------------ lists, blobs */

typedef struct shown {
    char text[4096];
    int left; /* how many more are wanted */
} shown;

static int show(void *arg, const char *folder, const char *name)
{
    shown *s = arg;
    size_t at = strlen(s->text);

    snprintf(s->text + at, sizeof s->text - at, "%s/%s ", folder, name);
    return --s->left == 0;
}

static int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

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
    if (o.table->capabilities & SESSILE_BACKEND_SEALS)
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
    s = (shown){"", 3};
    must(o.table->list(o.self, NULL, show, &s, &o.err), &o.err);
    assert_int_equal(count_of(s.text, "/"), 3);
    if (o.table->has_logs) {
        must(o.table->has_logs(o.self, &found, &o.err), &o.err);
        assert_int_equal(found, 1);
    }
    done(&o);
}

static void blob_is(opened *o, const char *name, const char *expected)
{
    char *blob = NULL;
    size_t size = 99;

    must(o->table->blob_get(o->self, name, &blob, &size, &o->err), &o->err);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(blob, expected, size);
    sessile_free(blob);
}

static void a_blob_is_put_once(void **state)
{
    const site *g = *state;
    opened o = open_site(g);
    const sessile_backend *t = o.table;
    char *blob = NULL;
    size_t size;

    if (!(t->capabilities & SESSILE_BACKEND_SEALS)) {
        done(&o);
        skip();
    }
    assert_int_equal(t->blob_get(o.self, "ring", &blob, &size, &o.err), SESSILE_NOTFOUND);
    must(t->blob_put_new(o.self, "ring", "first", 5, &o.err), &o.err);
    assert_int_equal(t->blob_put_new(o.self, "ring", "second", 6, &o.err),
                     SESSILE_EXISTS);
    blob_is(&o, "ring", "first");
    if (!g->kind->vanishes) {
        done(&o);
        o = open_site(g);
        blob_is(&o, "ring", "first");
    }
    done(&o);
}

static int add(void *arg, const char *name)
{
    strcat(arg, name);
    strcat(arg, " ");
    return 0;
}

static void a_blob_is_replaced_if_it_is_what_it_was(void **state)
{
    opened o = open_site(*state);
    const sessile_backend *t = o.table;
    char names[200] = "";

    if (!(t->capabilities & SESSILE_BACKEND_SEALS) || !t->blob_replace) {
        done(&o);
        skip();
    }
    assert_int_equal(t->blob_replace(o.self, "ring", "a", 1, "b", 1, &o.err),
                     SESSILE_NOTFOUND);
    must(t->blob_put_new(o.self, "ring", "first", 5, &o.err), &o.err);
    assert_int_equal(t->blob_replace(o.self, "ring", "firs", 4, "b", 1, &o.err),
                     SESSILE_CONFLICT);
    assert_int_equal(t->blob_replace(o.self, "ring", "First", 5, "b", 1, &o.err),
                     SESSILE_CONFLICT);
    blob_is(&o, "ring", "first");
    must(t->blob_replace(o.self, "ring", "first", 5, "longer than it was", 18, &o.err),
         &o.err);
    blob_is(&o, "ring", "longer than it was");
    if (t->blob_remove) {
        must(t->blob_put_new(o.self, "ring-2", "x", 1, &o.err), &o.err);
        must(t->blob_put_new(o.self, "other", "x", 1, &o.err), &o.err);
        must(t->blob_list(o.self, "ring", add, names, &o.err), &o.err);
        assert_int_equal(count_of(names, "ring"), 2);
        assert_int_equal(count_of(names, "other"), 0);
        must(t->blob_remove(o.self, "ring", &o.err), &o.err);
        assert_int_equal(t->blob_remove(o.self, "ring", &o.err), SESSILE_NOTFOUND);
        blob_is(&o, "ring-2", "x");
        must(t->blob_put_new(o.self, "ring", "again", 5, &o.err), &o.err);
    }
    done(&o);
}

/* ------------------------------------------------------------------ all of it */

#define CASE(name)                                     \
    {                                                  \
#name, name, site_set_up, site_tear_down, NULL \
    }

static const struct CMUnitTest cases[] = {
    CASE(records_are_read_back_in_order),
    CASE(what_one_handle_appends_the_other_sees_at_once),
    CASE(an_append_where_the_log_does_not_end_changes_nothing),
    CASE(names_that_are_taken_or_missing_are_told),
    CASE(any_bytes_and_large_records_are_kept),
    CASE(a_hundred_thousand_records),
    CASE(of_many_writers_none_is_lost_or_doubled),
    CASE(every_log_is_listed_once),
    CASE(a_blob_is_put_once),
    CASE(a_blob_is_replaced_if_it_is_what_it_was),
};

int main(int argc, char **argv)
{
    return suite_run("backend", cases, sizeof cases / sizeof *cases, argc, argv);
}
