/*
 * backend.c: handles of a store's table for the cases, and the checks that every answer
 * must stand. It must never make a call that the header does not allow.
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

opened open_site(const site *g)
{
    opened o = {NULL, NULL, {0}};
    sessile_status status = g->kind->backend(g->place, &o.table, &o.self, &o.err);

    must(status, &o.err);
    assert_non_null(o.table);
    return o;
}

void done(opened *o)
{
    if (o->table->free)
        o->table->free(o->self);
}

opened open_log(const site *g, const char *records, sessile_backend_log **a,
                sessile_backend_log **b)
{
    opened o = open_site(g);

    create(&o, "main", "log", records);
    *a = log_of(&o, "log");
    if (b)
        *b = log_of(&o, "log");
    return o;
}

void done_with(opened *o, sessile_backend_log *a, sessile_backend_log *b)
{
    o->table->close(a);
    if (b)
        o->table->close(b);
    done(o);
}

void restarted(opened *o, const site *g)
{
    if (!g->kind->vanishes) {
        done(o);
        *o = open_site(g);
    }
}

int has(const opened *o, unsigned capability)
{
    return (o->table->capabilities & capability) != 0;
}

/* The password of the server that the tests use is in no sentence. */
static void tells_no_password(const char *message)
{
    const char *url = getenv("SESSILE_TEST_POSTGRES");
    const char *from = url ? strstr(url, "://") : NULL, *to, *colon;
    char password[100];

    if (!from || !(to = strchr(from + 3, '@')) || !(colon = strchr(from + 3, ':')) ||
        colon > to || to - colon < 2)
        return;
    snprintf(password, sizeof password, "%.*s", (int)(to - colon - 1), colon + 1);
    if (strstr(message, password))
        fail_msg("a password is told: %s", message);
}

void refused(sessile_status status, sessile_status expected, const sessile_error *err)
{
    if (status != expected)
        fail_msg("%s was promised, and this is %s%s%s", sessile_status_name(expected),
                 sessile_status_name(status), status ? ": " : "",
                 status ? err->message : "");
    if (!memchr(err->message, 0, sizeof err->message) || strlen(err->message) < 10)
        fail_msg("%s without a sentence: \"%.40s\"", sessile_status_name(status),
                 err->message);
    tells_no_password(err->message);
}

/* ------------------------------------------------------------------ logs */

void create(opened *o, const char *folder, const char *name, const char *records)
{
    must(o->table->create(o->self, folder, name, records, strlen(records), &o->err),
         &o->err);
}

sessile_backend_log *log_in(opened *o, const char *folder, const char *name)
{
    sessile_backend_log *log = NULL;

    must(o->table->open(o->self, folder, name, &log, &o->err), &o->err);
    assert_non_null(log);
    return log;
}

sessile_backend_log *log_of(opened *o, const char *name)
{
    return log_in(o, "main", name);
}

void absent(opened *o, const char *folder, const char *name)
{
    sessile_backend_log *log = NULL;
    shown s = {"", 1000};
    char both[300];

    refused(o->table->open(o->self, folder, name, &log, &o->err), SESSILE_NOTFOUND,
            &o->err);
    must(o->table->list(o->self, NULL, show, &s, &o->err), &o->err);
    snprintf(both, sizeof both, "%s/%s ", folder, name);
    assert_int_equal(count_of(s.text, both), 0);
}

int locked(opened *o, sessile_backend_log *log)
{
    int replaced = 0;

    if (has(o, SESSILE_BACKEND_LOCKS))
        must(o->table->lock(log, SESSILE_LOCK_EXCLUSIVE, patience(), &replaced, &o->err),
             &o->err);
    return replaced;
}

void unlocked(opened *o, sessile_backend_log *log)
{
    if (has(o, SESSILE_BACKEND_LOCKS))
        o->table->unlock(log);
}

sessile_status append(opened *o, sessile_backend_log *log, sessile_log_end *end,
                      const void *data, size_t size, uint64_t count, unsigned char tag)
{
    const unsigned char tags[16] = {tag, 1};
    int poisoned = 0;

    assert_false(locked(o, log));
    sessile_status status =
        o->table->append(log, end, data, size, count, tags, &poisoned, &o->err);
    unlocked(o, log);
    assert_false(poisoned);
    return status;
}

void append_is_gone(opened *o, sessile_backend_log *log, sessile_log_end end)
{
    const sessile_log_end was = end;
    const unsigned char tag[16] = {9, 9};
    int poisoned = 0;

    if (has(o, SESSILE_BACKEND_LOCKS)) {
        assert_true(locked(o, log));
        unlocked(o, log);
        return;
    }
    refused(o->table->append(log, &end, "late\n", 5, 1, tag, &poisoned, &o->err),
            SESSILE_NOTFOUND, &o->err);
    assert_false(poisoned);
    assert_memory_equal(&end, &was, sizeof end);
}

sessile_status removed(opened *o, sessile_backend_log *log)
{
    sessile_status status;

    assert_false(locked(o, log));
    status = o->table->remove(log, 16, &o->err);
    unlocked(o, log);
    return status;
}

void remove_log(opened *o, const char *name)
{
    sessile_backend_log *log = log_of(o, name);

    (void)size_of(o, log);
    must(removed(o, log), &o->err);
    o->table->close(log);
}

/* ------------------------------------------------------------------ bytes */

uint64_t size_of(opened *o, sessile_backend_log *log)
{
    uint64_t bytes = 0;
    int64_t mtime;

    must(o->table->size(log, &bytes, &mtime, &o->err), &o->err);
    return bytes;
}

char *all(opened *o, sessile_backend_log *log, size_t piece, size_t *size)
{
    uint64_t record = 0;
    char *bytes;
    size_t got = 1;

    *size = (size_t)size_of(o, log);
    bytes = malloc(*size + piece);
    assert_non_null(bytes);
    for (size_t at = 0; got; at += got) {
        got = piece + 1;
        must(o->table->read(log, record, at, bytes + at, piece, &got, &o->err), &o->err);
        assert_true(got <= piece);
        assert_int_equal(got, *size - at < piece ? *size - at : piece);
        for (size_t i = 0; i < got; i++)
            record += bytes[at + i] == '\n';
        if (at + got == *size)
            break;
    }
    return bytes;
}

void holds(opened *o, sessile_backend_log *log, const char *expected)
{
    for (size_t piece = 1; piece < 40; piece += 6) {
        size_t size;
        char *bytes = all(o, log, piece, &size);
        assert_int_equal(size, strlen(expected));
        assert_memory_equal(bytes, expected, size);
        free(bytes);
    }
}

void log_holds(opened *o, const char *folder, const char *name, const char *expected)
{
    sessile_backend_log *log = log_in(o, folder, name);

    holds(o, log, expected);
    o->table->close(log);
}

/* ------------------------------------------------------------------ lists, time */

void done_and_kept(opened *o, const site *g, sessile_backend_log *log,
                   const char *expected)
{
    o->table->close(log);
    restarted(o, g);
    log_holds(o, "main", "log", expected);
    done(o);
}

void blob_holds(opened *o, get_blob get, const char *name, const char *expected)
{
    char *blob = NULL;
    size_t size = 99;

    must(get(o->self, name, &blob, &size, &o->err), &o->err);
    assert_int_equal(size, strlen(expected));
    assert_memory_equal(blob, expected, size);
    sessile_free(blob);
}

int show(void *arg, const char *folder, const char *name)
{
    shown *s = arg;
    size_t at = strlen(s->text);

    snprintf(s->text + at, sizeof s->text - at, "%s/%s ", folder, name);
    return --s->left == 0;
}

int count_of(const char *text, const char *part)
{
    int n = 0;
    for (const char *at = text; (at = strstr(at, part)); at++)
        n++;
    return n;
}

int patience(void)
{
    const char *told = getenv("SESSILE_PATIENCE");

    return told && atoi(told) > 0 ? atoi(told) : 60000;
}

/* ------------------------------------------------------------------ all cases */

const struct CMUnitTest *backend_cases(size_t *count)
{
    static struct CMUnitTest cases[128];
    const case_group groups[] = {cases_logs,  cases_reads,  cases_lists,  cases_writers,
                                 cases_blobs, cases_caches, cases_drafts, cases_removal,
                                 cases_waits, cases_ends};

    *count = 0;
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) {
        assert_true(*count + groups[i].count <= sizeof cases / sizeof *cases);
        memcpy(cases + *count, groups[i].cases, groups[i].count * sizeof *cases);
        *count += groups[i].count;
    }
    return cases;
}

int backend_run(const suite_store *kinds, size_t kind_count, const char *part)
{
    size_t count;
    const struct CMUnitTest *cases = backend_cases(&count);

    return suite_run_stores(kinds, kind_count, "backend", cases, count, 1, NULL, part);
}
