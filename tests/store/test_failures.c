/*
 * test_failures.c: each function of each store fails, at each of its calls, while
 * sessions are used.
 *
 * Whatever fails: the call that met it fails with that status and that sentence, or did
 * not need it; what was acknowledged before and after is there once and in order; what
 * was refused is there at most once; and the handle goes on, unless a failed sync has
 * poisoned it.
 */
#include "store/suite.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAID = 4 };

/* What a scenario was told. */
typedef struct account {
    sessile_store *st;
    sessile_status told[SAID]; /* of each message */
    int made;                  /* the session was created */
    int poisoned;              /* a call failed in a sync */
} account;

/* A call either did not mind, or says what happened in the store's own words. */
static sessile_status heard(failing *f, sessile_status status, const sessile_error *err)
{
    if (status) {
        if (status != f->status || !strstr(err->message, FAILING_SAYS))
            fail_msg("%s failed: %s: %s", f->function, sessile_status_name(status),
                     err->message);
    }
    return status;
}

static sessile_session_options named(const char *id)
{
    sessile_session_options o;

    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    return o;
}

static sessile_status say(sessile_session *s, int n, sessile_error *err)
{
    char json[80];
    sessile_id id;

    snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"number %d\"}", n);
    return sessile_append(s, sessile_text(json), &id, err);
}

/* Opens the store, makes a session, writes, reads it through another handle, lists. */
static void scenario(const site *g, failing *f, account *a)
{
    sessile_session_options o = named("one");
    sessile_store_options options;
    sessile_session *s = NULL, *other = NULL;
    sessile_listed *rows;
    sessile_message *list;
    sessile_error err = {0};
    size_t count;

    site_options(g, &options);
    options.durability = SESSILE_SYNC;
    if (heard(f, sessile_open_with(&a->st, &f->table, f, &options, &err), &err)) {
        assert_null(a->st);
        return;
    }
    if (!heard(f, sessile_create(&s, a->st, &o, &err), &err))
        a->made = 1;
    for (int i = 0; i < SAID && s; i++) {
        a->told[i] = say(s, i, &err);
        if (a->told[i] && strcmp(f->function, "sync") == 0) {
            a->poisoned = 1; /* from here on everything says so */
            assert_int_equal(a->told[i], SESSILE_IO);
            continue;
        }
        heard(f, a->told[i], &err);
    }
    if (!heard(f, sessile_session_open(&other, a->st, &o, &err), &err)) {
        a->made = 1;
        if (!heard(f, sessile_messages(other, NULL, &list, &count, &err), &err))
            sessile_free(list);
        sessile_session_close(other, NULL);
    }
    if (!heard(f, sessile_list(a->st, NULL, &rows, &count, &err), &err))
        sessile_free(rows);
    if (s && !a->poisoned && f->hits) { /* it goes on */
        f->function = NULL;
        if (sessile_append(s, sessile_text("{\"role\":\"user\",\"content\":\"on\"}"),
                           &(sessile_id){0}, &err))
            fail_msg("after a failure: %s", err.message);
    }
    sessile_session_close(s, NULL);
}

/* What is there afterwards, in a store that works. */
static void look(sessile_store *st, const account *a, const char *what)
{
    sessile_session_options o = named("one");
    sessile_session *s;
    sessile_message *rows;
    sessile_error err;
    size_t count, at = 0;
    sessile_status status = sessile_resume(&s, st, &o, &err);

    if (status == SESSILE_NOTFOUND && !a->made)
        return;
    if (status)
        fail_msg("%s: %s", what, err.message);
    assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_OK);
    assert_int_equal(sessile_messages(s, NULL, &rows, &count, &err), SESSILE_OK);
    for (int i = 0; i < SAID && a->made; i++) {
        char text[20];
        snprintf(text, sizeof text, "\"number %d\"", i);
        if (at < count && strstr(rows[at].json.data, text))
            at++;
        else if (a->told[i] == SESSILE_OK)
            fail_msg("%s: message %d of %zu was acknowledged and is not there", what, i,
                     count);
    }
    if (at < count && strstr(rows[at].json.data, "\"on\""))
        at++;
    assert_int_equal(at, count);
    sessile_free(rows);
    sessile_session_close(s, NULL);
}

static void every_function_fails_at_every_call(void **state)
{
    static const sessile_status statuses[] = {SESSILE_IO, SESSILE_FULL, SESSILE_DENIED};
    const site *g = *state;
    unsigned long failures = 0;

    for (size_t k = 0; k < sizeof statuses / sizeof *statuses; k++) {
        for (const char *const *name = failing_names; *name; name++) {
            for (int after = 0;; after++) {
                site fresh = {g->kind, g->kind->place()};
                const sessile_backend *table;
                sessile_error err;
                char what[100];
                void *self;
                failing f;
                account a;

                memset(&a, 0, sizeof a);
                for (int i = 0; i < SAID; i++)
                    a.told[i] = SESSILE_CLOSED; /* never said */
                assert_int_equal(g->kind->backend(fresh.place, &table, &self, &err),
                                 SESSILE_OK);
                failing_init(&f, table, self);
                f.function = *name;
                f.after = after;
                f.status = strcmp(*name, "sync") ? statuses[k] : SESSILE_IO;
                snprintf(what, sizeof what, "%s at its call %d", *name, after);
                scenario(&fresh, &f, &a);
                f.function = NULL;
                if (a.st && g->kind->vanishes)
                    look(a.st, &a, what);
                sessile_store_close(a.st);
                if (!g->kind->vanishes) {
                    a.st = site_store(&fresh);
                    look(a.st, &a, what);
                    sessile_store_close(a.st);
                }
                g->kind->place_free(fresh.place);
                failures += (unsigned long)f.hits;
                if (!f.hits)
                    break;
            }
        }
    }
    print_message("# figure: %s, failures survived = %lu\n", g->kind->name, failures);
    assert_true(failures > 60);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest cases[] = {{"every_function_fails_at_every_call",
                                               every_function_fails_at_every_call,
                                               site_set_up, site_tear_down, NULL}};
    return suite_run("failures", cases, 1, 0, argc, argv);
}
