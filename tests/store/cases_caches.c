/*
 * cases_caches.c: the bytes beside a log that may be lost at any time: what is read is
 * what was written last, or less of it; never anything else.
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

static uint64_t cache_size(opened *o, sessile_backend_log *log)
{
    uint64_t bytes = 99;

    must(o->table->cache_size(log, &bytes, &o->err), &o->err);
    return bytes;
}

static sessile_status cache_write(opened *o, sessile_backend_log *log, uint64_t offset,
                                  const char *text)
{
    sessile_status status;

    (void)locked(o, log);
    (void)cache_size(o, log); /* as the log floor does: it looks before it writes */
    status = o->table->cache_write(log, offset, text, strlen(text), &o->err);
    unlocked(o, log);
    return status;
}

static void cache_is(opened *o, sessile_backend_log *log, const char *expected)
{
    const size_t size = strlen(expected);
    char out[100];
    size_t got = 99;

    assert_int_equal(cache_size(o, log), size);
    for (size_t at = 0; at < size; at++) {
        for (size_t want = 1; want < size + 3; want += 3) {
            must(o->table->cache_read(log, at, out, want, &got, &o->err), &o->err);
            assert_int_equal(got, size - at < want ? size - at : want);
            assert_memory_equal(out, expected + at, got);
        }
    }
    if (size) {
        must(o->table->cache_read(log, size, out, 5, &got, &o->err), &o->err);
        assert_int_equal(got, 0);
    }
}

static void a_cache_is_cut_and_written(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    create(&o, "main", "log2", "one\n");
    sessile_backend_log *log = log_of(&o, "log"), *b = log_of(&o, "log"),
                        *other = log_of(&o, "log2");

    assert_int_equal(cache_size(&o, log), 0);
    must(cache_write(&o, log, 0, "hello"), &o.err);
    cache_is(&o, log, "hello");
    must(cache_write(&o, log, 5, " there"), &o.err);
    cache_is(&o, log, "hello there");
    cache_is(&o, b, "hello there");
    must(cache_write(&o, log, 3, "p"), &o.err);
    cache_is(&o, log, "help");
    cache_is(&o, b, "help");
    must(cache_write(&o, b, 0, "by another"), &o.err);
    cache_is(&o, log, "by another");
    assert_int_equal(cache_size(&o, other), 0);
    must(cache_write(&o, other, 0, "of log2"), &o.err);
    cache_is(&o, log, "by another");
    must(cache_write(&o, log, 0, ""), &o.err);
    assert_int_equal(cache_size(&o, log), 0);
    cache_is(&o, other, "of log2");
    holds(&o, log, "one\n");
    o.table->close(log);
    done_with(&o, b, other);
}

static void a_cache_is_no_log_and_changes_none(void **state)
{
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    sessile_log_end end = {1, 4, {0}};
    shown s = {"", 1000};

    must(cache_write(&o, log, 0, "cached"), &o.err);
    must(o.table->list(o.self, NULL, show, &s, &o.err), &o.err);
    assert_string_equal(s.text, "main/log ");
    assert_int_equal(size_of(&o, log), 4);
    must(append(&o, log, &end, "two\n", 4, 1, 1), &o.err);
    holds(&o, log, "one\ntwo\n");
    cache_is(&o, log, "cached");
    done_and_kept(&o, *state, log, "one\ntwo\n");
}

/* Who writes behind the end of a cache has not seen that somebody cut it. */
static void without_locks_a_cache_has_no_holes(void **state)
{
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);

    refused(cache_write(&o, log, 1, "x"), SESSILE_CONFLICT, &o.err);
    assert_int_equal(cache_size(&o, log), 0);
    must(cache_write(&o, log, 0, "hello"), &o.err);
    refused(cache_write(&o, log, 6, "x"), SESSILE_CONFLICT, &o.err);
    cache_is(&o, log, "hello");
    done_with(&o, log, NULL);
}

static void a_large_cache_is_kept_whole(void **state)
{
    enum { LARGE = 3 << 20, PIECE = 1 << 19 };
    sessile_backend_log *log;
    opened o = open_log(*state, "one\n", &log, NULL);
    char *bytes = malloc(LARGE), *read = malloc(LARGE);
    size_t got = 0;

    assert_non_null(bytes);
    assert_non_null(read);
    for (size_t i = 0; i < LARGE; i++)
        bytes[i] = (char)(i * 2654435761u >> 12);
    for (size_t at = 0; at < LARGE; at += PIECE) {
        (void)locked(&o, log);
        assert_int_equal(cache_size(&o, log), at);
        must(o.table->cache_write(log, at, bytes + at, PIECE, &o.err), &o.err);
        unlocked(&o, log);
    }
    must(o.table->cache_read(log, 0, read, LARGE, &got, &o.err), &o.err);
    assert_int_equal(got, LARGE);
    assert_memory_equal(read, bytes, LARGE);
    free(bytes);
    free(read);
    done_with(&o, log, NULL);
}

typedef struct filler {
    opened *o;
    sessile_backend_log *log;
    char byte;
    pthread_t thread;
    pthread_barrier_t *both; /* are there */
    char trouble[200];
} filler;

/* Writes the whole cache with its own byte, again and again. */
static void *fill(void *arg)
{
    enum { SIZE = 3000 };
    filler *f = arg;
    const sessile_backend *t = f->o->table;
    const int locks = has(f->o, SESSILE_BACKEND_LOCKS);
    sessile_error err = {0};
    char bytes[SIZE], there_is[SIZE + 100] = "";
    int replaced = 0;
    size_t got = 0;

    memset(bytes, f->byte, sizeof bytes);
    pthread_barrier_wait(f->both);
    for (int i = 0; i < 40 && !f->trouble[0]; i++) {
        uint64_t there = 0;
        memset(there_is, 0, sizeof there_is);
        sessile_status status =
            locks ? t->lock(f->log, SESSILE_LOCK_EXCLUSIVE, patience(), &replaced, &err)
                  : SESSILE_OK;
        if (!status)
            status = t->cache_size(f->log, &there, &err);
        if (!status)
            status = t->cache_write(f->log, 0, bytes, sizeof bytes, &err);
        if (!status)
            status = t->cache_read(f->log, 0, there_is, sizeof there_is, &got, &err);
        if (!status &&
            (got != SIZE || strspn(there_is, there_is[0] == 'a' ? "a" : "b") != SIZE))
            snprintf(f->trouble, sizeof f->trouble, "half of one and half of the other");
        if (locks)
            t->unlock(f->log);
        if (status && status != SESSILE_CONFLICT)
            snprintf(f->trouble, sizeof f->trouble, "%.150s", err.message);
    }
    return NULL;
}

static void of_two_caches_that_meet_one_is_there(void **state)
{
    opened o = open_site(*state);
    create(&o, "main", "log", "one\n");
    filler fillers[2];
    pthread_barrier_t both;
    char out[4000];
    size_t got = 0;

    memset(fillers, 0, sizeof fillers);
    pthread_barrier_init(&both, NULL, 2);
    for (int i = 0; i < 2; i++) {
        fillers[i].o = &o;
        fillers[i].byte = (char)('a' + i);
        fillers[i].both = &both;
        fillers[i].log = log_of(&o, "log");
        assert_int_equal(pthread_create(&fillers[i].thread, NULL, fill, &fillers[i]), 0);
    }
    for (int i = 0; i < 2; i++)
        pthread_join(fillers[i].thread, NULL);
    pthread_barrier_destroy(&both);
    for (int i = 0; i < 2; i++)
        if (fillers[i].trouble[0])
            fail_msg("%s", fillers[i].trouble);
    must(o.table->cache_read(fillers[0].log, 0, out, sizeof out, &got, &o.err), &o.err);
    assert_int_equal(got, 3000);
    for (size_t i = 0; i < got; i++)
        assert_int_equal(out[i], out[0]);
    o.table->close(fillers[0].log);
    o.table->close(fillers[1].log);
    done(&o);
}

/* A log of the same name that is made afterwards has none of it. */
static void a_cache_goes_with_its_log(void **state)
{
    sessile_backend_log *log, *old;
    opened o = open_log(*state, "one\n", &log, &old);

    must(cache_write(&o, log, 0, "what the old one was"), &o.err);
    o.table->close(log);
    remove_log(&o, "log");
    create(&o, "main", "log", "new\n");
    log = log_of(&o, "log");
    assert_int_equal(cache_size(&o, log), 0);
    if (!has(&o, SESSILE_BACKEND_LOCKS)) {
        /* who still has the old one open writes no cache for the new one */
        (void)o.table->cache_write(old, 0, "stale", 5, &o.err);
        assert_int_equal(cache_size(&o, log), 0);
    }
    done_with(&o, old, log);
}

static const struct CMUnitTest cases[] = {
    CASE_IF(a_cache_is_cut_and_written, SESSILE_BACKEND_CACHES),
    CASE_IF(a_cache_is_no_log_and_changes_none, SESSILE_BACKEND_CACHES),
    CASE_IF(without_locks_a_cache_has_no_holes, SESSILE_BACKEND_CACHES | NEEDS_NO_LOCKS),
    CASE_IF(a_large_cache_is_kept_whole, SESSILE_BACKEND_CACHES),
    CASE_IF(of_two_caches_that_meet_one_is_there, SESSILE_BACKEND_CACHES),
    CASE_IF(a_cache_goes_with_its_log, SESSILE_BACKEND_CACHES | NEEDS_REMOVE),
};

CASES(cases_caches, cases);
