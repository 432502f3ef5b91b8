/*
 * test_failures.c: each function of each store fails, at each of its calls, while
 * sessions are used, and while they are changed: deleted, resealed, forgotten.
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

#include "store/host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SAID = 4 };

/* The call to fail at after that one, of all: -1: none. In memory all of them; on a
 * disk or a server, where each costs a new place, the first and the last. SESSILE_SOAK=1:
 * all everywhere. */
static int next_call(const site *g, int after, int calls)
{
    const int few = g->kind->processes && !getenv("SESSILE_SOAK");

    after = few && after + 1 < calls ? calls - 1 : after + 1;
    return after < calls ? after : -1;
}

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

static sessile_status say_number(sessile_session *s, int n, sessile_error *err)
{
    char text[40];

    snprintf(text, sizeof text, "number %d", n);
    return try_say(s, text, NULL, err);
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
        a->told[i] = say_number(s, i, &err);
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
        else if (!a->told[i])
            fail_msg("%s: message %d of %zu was acknowledged and is not there", what, i,
                     count);
    }
    if (at < count && strstr(rows[at].json.data, "\"on\""))
        at++;
    assert_int_equal(at, count);
    sessile_free(rows);
    sessile_session_close(s, NULL);
}

/* ------------------------------------------------------------------ changes */

enum { KEPT, DELETED, FORGOTTEN, SESSIONS };
static const char *const ids[SESSIONS] = {"kept", "deleted", "forgotten"};

static sessile_session_options one_of(int which)
{
    sessile_session_options o = named(ids[which]);

    if (which == FORGOTTEN)
        o.user = sessile_text("u");
    return o;
}

/* What is there before anything fails. */
static void prepare(const site *g)
{
    sessile_store *st = site_store(g);
    sessile_session *s;
    sessile_error err;

    for (int i = 0; i < SESSIONS; i++) {
        sessile_session_options o = one_of(i);
        if (sessile_create(&s, st, &o, &err))
            fail_msg("%s", err.message);
        for (int n = 0; n < SAID; n++)
            if (say_number(s, n, &err))
                fail_msg("%s", err.message);
        sessile_session_close(s, NULL);
    }
    sessile_store_close(st);
}

/* A log that fails is left as it was, and is no error of the step: here it is one. */
static sessile_status reseal(sessile_store *st, sessile_error *err)
{
    sessile_error why = {0};
    sessile_reseal_state state;
    sessile_reseal *reseal;
    sessile_status status = sessile_reseal_begin(&reseal, st, NULL, err);

    if (status)
        return status;
    do {
        status = sessile_reseal_step(reseal, &state, err);
        if ((status == SESSILE_NEEDS || !status) && state.log)
            why = state.why;
    } while (status == SESSILE_NEEDS);
    sessile_reseal_free(reseal);
    if (!status && why.code) {
        *err = why;
        status = why.code;
    }
    return status;
}

/* Keys, a user, a session, a list. told: what each said. */
typedef struct changes {
    sessile_status rotated, resealed, forgot, deleted, listed;
} changes;

/* What each says where nothing fails. */
static changes can;

static void change(sessile_store *st, changes *c, sessile_error err[5])
{
    sessile_session_options o = one_of(DELETED);
    sessile_listed *rows;
    size_t count;

    c->rotated = sessile_keys_rotate(st, NULL, NULL, &err[0]);
    c->resealed = reseal(st, &err[1]);
    c->forgot = sessile_forget(st, sessile_text("u"), NULL, &err[2]);
    c->deleted = sessile_delete(st, &o, NULL, NULL, &err[3]);
    c->listed = sessile_list(st, NULL, &rows, &count, &err[4]);
    if (!c->listed)
        sessile_free(rows);
}

/* Opens a session and counts what was said in it; a status when it does not open. */
static sessile_status whole(sessile_store *st, int which, const char *what)
{
    sessile_session_options o = one_of(which);
    sessile_message *rows;
    sessile_session *s;
    sessile_error err;
    size_t count;
    sessile_status status = sessile_resume(&s, st, &o, &err);

    if (status)
        return status;
    assert_int_equal(sessile_session_damage(s, NULL, NULL), SESSILE_OK);
    if (sessile_messages(s, NULL, &rows, &count, &err))
        fail_msg("%s: %s", what, err.message);
    if (count != SAID)
        fail_msg("%s: %s has %zu messages of %d", what, ids[which], count, SAID);
    sessile_free(rows);
    sessile_session_close(s, NULL);
    return SESSILE_OK;
}

/* One is told, in the store's own words, or it was not needed; then all is either as
 * before or as it was to be; and what could not be done is done when it is tried again.
 */
static unsigned long changes_fail_at(const site *g, const char *name, int after,
                                     sessile_status status, int calls[FAILING_MOST])
{
    site fresh = {g->kind, g->kind->place()};
    sessile_store_options options;
    sessile_status told[5], found;
    const sessile_backend *table;
    sessile_store *st = NULL;
    sessile_error err[5], e;
    changes c;
    char what[100];
    void *self;
    failing f;

    snprintf(what, sizeof what, "changes: %s at its call %d", name, after);
    prepare(&fresh);
    assert_int_equal(g->kind->backend(fresh.place, &table, &self, &e), SESSILE_OK);
    failing_init(&f, table, self);
    site_options(&fresh, &options);
    if (sessile_open_with(&st, &f.table, &f, &options, &e))
        fail_msg("%s", e.message);
    f.function = name;
    f.after = after;
    f.status = status;
    memset(err, 0, sizeof err);
    change(st, &c, err);
    f.function = NULL;
    if (calls)
        memcpy(calls, f.calls, sizeof f.calls);
    memcpy(told, &c, sizeof told);
    for (int i = 0; i < 5; i++) {
        if (told[i] && told[i] != ((const sessile_status *)&can)[i] &&
            (!f.hits || !err[i].message[0]))
            fail_msg("%s: change %d: %s: %s", what, i, sessile_status_name(told[i]),
                     err[i].message);
    }
    sessile_store_close(st);
    st = site_store(&fresh);
    found = whole(st, KEPT, what);
    if (found)
        fail_msg("%s: what was to be kept is %s", what, sessile_status_name(found));
    found = whole(st, DELETED, what);
    if (found && (found != SESSILE_NOTFOUND || can.deleted))
        fail_msg("%s: what was deleted is %s", what, sessile_status_name(found));
    if (!c.deleted && !found)
        fail_msg("%s: what was deleted is there", what);
    found = whole(st, FORGOTTEN, what);
    if ((found && (found != SESSILE_SEALED || can.forgot)) || (!c.forgot && !found))
        fail_msg("%s: who was forgotten is %s", what, sessile_status_name(found));
    if (f.hits) { /* again, and nothing fails */
        changes again;
        change(st, &again, err);
        if (again.deleted && again.deleted != can.deleted &&
            again.deleted != SESSILE_NOTFOUND)
            fail_msg("%s: deleted again: %s", what, err[3].message);
        again.deleted = can.deleted;
        for (int i = 0; i < 5; i++)
            if (((sessile_status *)&again)[i] != ((const sessile_status *)&can)[i])
                fail_msg("%s: change %d, again: %s", what, i, err[i].message);
        if (whole(st, KEPT, what))
            fail_msg("%s: what was to be kept is gone in the end", what);
    }
    sessile_store_close(st);
    g->kind->place_free(fresh.place);
    return (unsigned long)f.hits;
}

/* ------------------------------------------------------------------ lost answers */

/* The append takes place, and its answer is lost: the session cannot tell, and says so
 * until it is opened again; then it is there, once. */
static void of_a_lost_answer_nobody_can_tell_until_it_is_looked_at(void **state)
{
    const site *g = *state;

    for (int lost = 0; lost < SAID; lost++) {
        site fresh = {g->kind, g->kind->place()};
        sessile_session_options o = named("one");
        sessile_store_options options;
        const sessile_backend *table;
        sessile_message *rows;
        sessile_session *s;
        sessile_store *st;
        sessile_error err;
        size_t count;
        void *self;
        failing f;

        assert_int_equal(g->kind->backend(fresh.place, &table, &self, &err), SESSILE_OK);
        failing_init(&f, table, self);
        f.lost = 1;
        f.status = SESSILE_IO;
        site_options(&fresh, &options);
        if (sessile_open_with(&st, &f.table, &f, &options, &err) ||
            sessile_create(&s, st, &o, &err))
            fail_msg("%s", err.message);
        for (int i = 0; i < lost; i++)
            if (say_number(s, i, &err))
                fail_msg("%s", err.message);
        f.function = "append";
        f.after = 0;
        assert_int_equal(say_number(s, lost, &err), SESSILE_IO);
        assert_int_equal(f.hits, 1);
        assert_int_equal(say_number(s, lost + 1, &err),
                         SESSILE_IO); /* not through this handle */
        if (!strstr(err.message, FAILING_SAYS))
            fail_msg("it does not say why: %s", err.message);
        sessile_session_close(s, NULL);
        if (!g->kind->vanishes) {
            sessile_store_close(st);
            st = site_store(&fresh);
        }
        if (sessile_resume(&s, st, &o, &err) ||
            sessile_messages(s, NULL, &rows, &count, &err))
            fail_msg("%s", err.message);
        assert_int_equal(count, lost + 1);
        for (size_t i = 0; i < count; i++) {
            char text[40];
            snprintf(text, sizeof text, "\"number %zu\"", i);
            assert_non_null(strstr(rows[i].json.data, text));
        }
        sessile_free(rows);
        if (say_number(s, lost + 1, &err)) /* and now it goes on */
            fail_msg("%s", err.message);
        sessile_session_close(s, NULL);
        sessile_store_close(st);
        g->kind->place_free(fresh.place);
    }
}

/* ------------------------------------------------------------------ all of it */

/* How often that function failed. */
static unsigned long uses_fail_at(const site *g, const char *name, int after,
                                  sessile_status status, int calls[FAILING_MOST])
{
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
    assert_int_equal(g->kind->backend(fresh.place, &table, &self, &err), SESSILE_OK);
    failing_init(&f, table, self);
    f.function = name;
    f.after = after;
    f.status = strcmp(name, "sync") ? status : SESSILE_IO;
    snprintf(what, sizeof what, "%s at its call %d", name, after);
    scenario(&fresh, &f, &a);
    f.function = NULL;
    if (calls)
        memcpy(calls, f.calls, sizeof f.calls);
    if (a.st && g->kind->vanishes)
        look(a.st, &a, what);
    sessile_store_close(a.st);
    if (!g->kind->vanishes) {
        a.st = site_store(&fresh);
        look(a.st, &a, what);
        sessile_store_close(a.st);
    }
    g->kind->place_free(fresh.place);
    return (unsigned long)f.hits;
}

typedef unsigned long fails_at(const site *g, const char *name, int after,
                               sessile_status status, int calls[FAILING_MOST]);

/* Each function that is called at all when nothing fails, at each of its calls. With
 * SESSILE_SOAK=1 with each status, not in turn. Returns how many failures there were. */
static unsigned long fail_all(const site *g, fails_at *at)
{
    static const sessile_status statuses[] = {SESSILE_IO, SESSILE_FULL, SESSILE_DENIED};
    unsigned long failures = 0;
    int calls[FAILING_MOST];

    assert_int_equal(at(g, "nothing", 0, SESSILE_IO, calls), 0);
    for (size_t k = 0; k < (getenv("SESSILE_SOAK") ? 3 : 1); k++)
        for (size_t i = 0; failing_names[i]; i++)
            for (int after = calls[i] ? 0 : -1; after >= 0;
                 after = next_call(g, after, calls[i]))
                failures += at(g, failing_names[i], after,
                               statuses[(k + i + (size_t)after) % 3], NULL);
    return failures;
}

static void every_function_fails_at_every_call(void **state)
{
    const site *g = *state;
    unsigned long failures = fail_all(g, uses_fail_at);

    print_message("# figure: %s, failures survived = %lu\n", g->kind->name, failures);
    assert_true(failures > 15);
}

static void every_function_fails_while_sessions_are_changed(void **state)
{
    const site *g = *state;
    sessile_error err[5];
    unsigned long failures;
    sessile_store *st;

    prepare(g);
    st = site_store(g);
    change(st, &can, err);
    sessile_store_close(st);
    failures = fail_all(g, changes_fail_at);
    print_message("# figure: %s, failures of changes survived = %lu\n", g->kind->name,
                  failures);
    assert_true(failures > 5);
}

int main(int argc, char **argv)
{
    static const struct CMUnitTest cases[] = {
        CASE(every_function_fails_at_every_call),
        CASE_IF(every_function_fails_while_sessions_are_changed, NEEDS_RESTARTS),
        CASE(of_a_lost_answer_nobody_can_tell_until_it_is_looked_at),
    };
    return suite_run("failures", cases, sizeof cases / sizeof *cases, 2, argc, argv);
}
