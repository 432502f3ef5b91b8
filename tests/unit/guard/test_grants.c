/*
 * test_grants.c: what a grant is on, how long it lasts, who sees it, and that nobody
 * fills the control log with facts.
 *
 * Own stores: WHY it looks at the size of a file.
 */
#include "support/views.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/os.h"
#include "guard/guard.h"
#include "support/check.h"
#include "support/sessions.h"

#include <cmocka.h>

#define FOREIGN "this is not yours, or there is no such session"
#define NONE    sessile_text(NULL)

static int set_up(void **state)
{
    views *v = malloc(sizeof *v);

    views_open(v, NULL);
    *state = v;
    return 0;
}

static int tear_down(void **state)
{
    views_close(*state);
    free(*state);
    return 0;
}

static int may_view(sessile_store *view, const char *user, const char *id)
{
    return sessile_can(view, SESSILE_MAY_VIEW_SESSION, NONE, sessile_text(user),
                       sessile_text(id));
}

static void remove_session(views *v, const char *user, const char *id)
{
    sessile_session_options o = session_of(NULL, user, id);

    must(sessile_delete(v->store, &o, NULL, NULL, &v->err), &v->err);
}

/* ------------------------------------------------------------------ what it is on */

static void a_session_that_is_not_there_is_not_shared(void **state)
{
    views *v = *state;
    sessile_store *ann = view_of(v, "ann", "editor"), *eve = view_of(v, "eve", "editor");
    sessile_grant_options o = grant_of("bob", "viewer", "none");

    assert_int_equal(sessile_grant(ann, &o, NULL, &v->err), SESSILE_NOTFOUND);
    assert_says(&v->err, "there is no session \"none\" to share");
    assert_int_equal(sessile_grant(v->store, &o, NULL, &v->err), SESSILE_NOTFOUND);
    view_puts(v, ann, NULL, "bug");
    o.owner = sessile_text("ann"); /* of others: alike, whether it is there or not */
    assert_int_equal(sessile_grant(eve, &o, NULL, &v->err), SESSILE_DENIED);
    char sentence[sizeof v->err.message];
    strcpy(sentence, v->err.message);
    o.session = sessile_text("bug");
    assert_int_equal(sessile_grant(eve, &o, NULL, &v->err), SESSILE_DENIED);
    assert_string_equal(v->err.message, sentence);
    must(sessile_grant(ann, &o, NULL, &v->err), &v->err);
    sessile_store_close(ann);
    sessile_store_close(eve);
}

/* Somebody who made another session of the same names has shared nothing. */
static void a_grant_ends_with_its_session(void **state)
{
    views *v = *state;
    sessile_store *ann = view_of(v, "ann", "editor"), *bob = view_of(v, "bob", NULL);
    sessile_grant_options o = grant_of("bob", "viewer", "bug");
    sessile_session_options bug = session_of(NULL, "ann", "bug");
    sessile_session *s;

    view_puts(v, ann, NULL, "bug");
    view_grants(v, ann, &o);
    o.role = "admin"; /* with which bob could remove it, too */
    view_grants(v, v->store,
                &(sessile_grant_options){.user = o.user,
                                         .role = "admin",
                                         .session = o.session,
                                         .owner = sessile_text("ann")});
    must(view_resumes(v, bob, NULL, "ann", "bug", &s), &v->err);
    must(view_reads(v, s), &v->err);
    assert_true(may_view(bob, "ann", "bug"));

    remove_session(v, "ann", "bug");
    assert_int_equal(view_resumes(v, bob, NULL, "ann", "bug", NULL), SESSILE_DENIED);
    assert_string_equal(v->err.message, FOREIGN);
    assert_false(may_view(bob, "ann", "bug"));
    view_puts(v, ann, NULL, "bug");
    assert_int_equal(view_resumes(v, bob, NULL, "ann", "bug", NULL), SESSILE_DENIED);
    assert_string_equal(v->err.message, FOREIGN);
    assert_int_equal(view_reads(v, s), SESSILE_NOTFOUND); /* the handle that is open */
    assert_false(may_view(bob, "ann", "bug"));
    assert_int_equal(sessile_delete(bob, &bug, NULL, NULL, &v->err), SESSILE_DENIED);
    assert_int_equal(sessile_undelete(bob, &bug, NONE, &v->err), SESSILE_DENIED);
    must(view_resumes(v, ann, NULL, NULL, "bug", NULL), &v->err);

    o.role = "viewer"; /* this one is shared on its own */
    view_grants(v, ann, &o);
    must(view_resumes(v, bob, NULL, "ann", "bug", NULL), &v->err);
    sessile_session_close(s, NULL);
    sessile_store_close(ann);
    sessile_store_close(bob);
}

static os_table hooked;
static int left; /* files that are opened before it happens; 0: it does not */
static views *hooked_views;

static void make_again(views *v, const char *content)
{
    sessile_session_options o = session_of(NULL, "ann", "bug");
    sessile_session *s;

    must(sessile_create(&s, v->store, &o, &v->err), &v->err);
    say(s, "user", content);
    sessile_session_close(s, NULL);
}

static int open_at(void *ud, int dir, const char *path, int flags)
{
    if (left && --left == 0) {
        remove_session(hooked_views, "ann", "bug");
        make_again(hooked_views, "of the second session");
    }
    return os_posix.open_at(ud, dir, path, flags);
}

/* Whatever is read when the session is made again amid bob's call, it is of the one that
 * was shared. */
static void a_session_that_is_made_again_meanwhile_is_not_read(void **state)
{
    enum { FILES = 12 };
    views v;
    int refused = 0;

    (void)state;
    hooked = os_posix;
    hooked.open_at = open_at;
    os_current = &hooked;
    views_open(&v, NULL);
    hooked_views = &v;
    sessile_store *bob = view_of(&v, "bob", NULL);
    for (int i = 1; i <= FILES; i++) {
        sessile_grant_options o = grant_of("bob", "viewer", "bug");
        sessile_message *rows = NULL;
        sessile_session *s;
        sessile_error err;
        size_t count = 0;
        o.owner = sessile_text("ann");
        make_again(&v, "of the first session");
        view_grants(&v, v.store, &o);
        sessile_session_options bug = session_of(NULL, "ann", "bug");
        left = i;
        sessile_status status = sessile_resume(&s, bob, &bug, &err);
        left = 0;
        refused += status == SESSILE_DENIED;
        if (!status && !sessile_messages(s, NULL, &rows, &count, &err))
            for (size_t k = 0; k < count; k++)
                assert_null(strstr(rows[k].json.data, "second"));
        sessile_free(rows);
        sessile_session_close(s, NULL);
        remove_session(&v, "ann", "bug");
    }
    assert_true(refused > 0);
    sessile_store_close(bob);
    views_close(&v);
    os_current = &os_posix;
}

static void a_grant_stays_on_a_session_that_is_sealed_again(void **state)
{
    views *v = *state;
    sessile_store *ann = view_of(v, "ann", "editor"), *bob = view_of(v, "bob", NULL);
    sessile_grant_options o = grant_of("bob", "viewer", "bug");
    sessile_session_options bug = session_of(NULL, "ann", "bug");
    sessile_delete_options soft = {.soft = 1};
    sessile_reseal_state step;
    sessile_reseal *reseal;

    view_puts(v, ann, NULL, "bug");
    view_grants(v, ann, &o);
    must(sessile_keys_rotate(v->store, NULL, NULL, &v->err), &v->err);
    must(sessile_reseal_begin(&reseal, v->store, NULL, &v->err), &v->err);
    while (sessile_reseal_step(reseal, &step, &v->err) == SESSILE_NEEDS)
        ;
    assert_true(step.resealed >= 2 && !step.failed);
    sessile_reseal_free(reseal);
    must(view_resumes(v, bob, NULL, "ann", "bug", NULL), &v->err);
    must(sessile_delete(v->store, &bug, &soft, NULL, &v->err), &v->err);
    must(sessile_undelete(v->store, &bug, NONE, &v->err), &v->err);
    must(view_resumes(v, bob, NULL, "ann", "bug", NULL), &v->err);
    sessile_store_close(ann);
    sessile_store_close(bob);
}

/* A view that may less than its user, as one that a helper was given. */
static void a_grant_on_ones_own_session_gives_what_it_says(void **state)
{
    views *v = *state;
    sessile_store *host = v->store, *ann = view_of(v, "ann", "editor"),
                  *little = view_of(v, "ann", NULL);
    sessile_grant_options o = grant_of("ann", "editor", "bug");
    sessile_session_options copy = session_of(NULL, NULL, "copy");
    sessile_session *s, *made;

    view_puts(v, ann, NULL, "bug");
    view_puts(v, ann, NULL, "other");
    assert_int_equal(view_resumes(v, little, NULL, NULL, "bug", NULL), SESSILE_DENIED);
    o.owner = sessile_text("ann");
    sessile_id id = view_grants(v, host, &o);
    assert_true(may_view(little, "ann", "bug"));
    must(view_resumes(v, little, NULL, NULL, "bug", &s), &v->err);
    must(view_reads(v, s), &v->err);
    must(sessile_append(s, HELLO, NULL, &v->err), &v->err);
    assert_false(may_view(little, "ann", "other"));
    assert_int_equal(view_resumes(v, little, NULL, NULL, "other", NULL), SESSILE_DENIED);
    assert_int_equal(sessile_fork(&made, s, 1, &copy, &v->err), SESSILE_DENIED);
    must(sessile_grant_end(host, id, &v->err), &v->err);
    assert_int_equal(view_reads(v, s), SESSILE_DENIED);
    assert_false(may_view(little, "ann", "bug"));
    sessile_session_close(s, NULL);
    sessile_store_close(little);
    sessile_store_close(ann);
}

/* ------------------------------------------------------------------ who sees it */

static size_t seen(views *v, sessile_store *view)
{
    sessile_grant_row *rows;
    size_t count;

    must(sessile_grants(view, &rows, &count, &v->err), &v->err);
    sessile_free(rows);
    return count;
}

/* Two views of ann's: of some agents, and of one session. */
static void a_narrowed_view_sees_and_ends_those_of_its_part(void **state)
{
    views *v = *state;
    const char *editor = "editor";
    sessile_slice code = sessile_text("code*");
    sessile_store *ann = view_of(v, "ann", editor), *coder, *one;
    sessile_grant_options o = grant_of("bob", "viewer", "bug");
    sessile_credential c;

    view_puts(v, ann, NULL, "bug");
    view_puts(v, ann, NULL, "other");
    view_puts(v, ann, "coder", "bug");
    sessile_id on_bug = view_grants(v, ann, &o);
    o.session = sessile_text("other");
    sessile_id on_other = view_grants(v, ann, &o);
    o.session = sessile_text("bug");
    o.agent = sessile_text("coder");
    sessile_id on_coders = view_grants(v, ann, &o);
    o = grant_of("ann", "viewer", NULL);
    sessile_id everywhere = view_grants(v, v->store, &o);
    assert_int_equal(seen(v, ann), 4);

    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    c.agents = &code;
    c.agent_count = 1;
    must(sessile_store_as(&coder, ann, &c, &v->err), &v->err);
    c.agent_count = 0;
    c.session = sessile_text("bug");
    must(sessile_store_as(&one, ann, &c, &v->err), &v->err);
    assert_int_equal(seen(v, coder), 1);
    assert_int_equal(seen(v, one), 1);
    for (int i = 0; i < 2; i++) {
        sessile_store *narrow = i ? one : coder;
        assert_int_equal(sessile_grant_end(narrow, on_other, &v->err), SESSILE_NOTFOUND);
        assert_int_equal(sessile_grant_end(narrow, everywhere, &v->err),
                         SESSILE_NOTFOUND);
        assert_int_equal(sessile_grant_end(narrow, i ? on_coders : on_bug, &v->err),
                         SESSILE_NOTFOUND);
    }
    must(sessile_grant_end(coder, on_coders, &v->err), &v->err);
    must(sessile_grant_end(one, on_bug, &v->err), &v->err);
    assert_int_equal(seen(v, ann), 2);
    sessile_store_close(coder);
    sessile_store_close(one);
    sessile_store_close(ann);
}

/* ------------------------------------------------------------------ the control log */

static off_t log_size(const views *v)
{
    char path[700];
    struct stat st;

    snprintf(path, sizeof path, "%s/agents/guard.control/000.jsonl", v->path);
    return stat(path, &st) ? 0 : st.st_size;
}

static void a_text_in_a_fact_has_an_end(void **state)
{
    enum { LONG = 60000, MANY = 65 };
    views *v = *state;
    sessile_store *ann = view_of(v, "ann", "editor");
    char *text = malloc(LONG), *key;
    sessile_slice big = {text, LONG}, many[MANY];
    sessile_grant_options o, bad[6];
    sessile_access_key_options k[3];

    memset(text, 'x', LONG);
    for (int i = 0; i < MANY; i++)
        many[i] = sessile_text("coder");
    view_puts(v, ann, NULL, "bug");
    o = grant_of("bob", "viewer", "bug");
    view_grants(v, ann, &o);
    off_t before = log_size(v);
    assert_true(before > 0);

    for (int i = 0; i < 6; i++)
        bad[i] = grant_of("bob", "viewer", i < 3 ? "bug" : NULL);
    bad[0].session = bad[1].user = bad[2].agent = bad[3].holders = big;
    bad[3].user = NONE;
    bad[4].agents = &big;
    bad[4].agent_count = 1;
    bad[5].agents = many;
    bad[5].agent_count = MANY;
    for (int i = 0; i < 6; i++) {
        sessile_store *by = i < 3 ? ann : v->store;
        assert_int_equal(sessile_grant(by, &bad[i], NULL, &v->err), SESSILE_LIMIT);
        assert_string_equal(v->err.rule, "");
    }
    for (int i = 0; i < 3; i++)
        sessile_access_key_options_init(&k[i]);
    k[0].user = k[1].device = k[2].label = big;
    for (int i = 0; i < 3; i++)
        assert_int_equal(sessile_access_key(v->store, &k[i], &key, &v->err),
                         SESSILE_LIMIT);
    assert_int_equal(sessile_access_lock(v->store, big, NONE, NONE, &v->err),
                     SESSILE_LIMIT);
    assert_int_equal(
        sessile_access_lock(v->store, sessile_text("bob"), NONE, big, &v->err),
        SESSILE_LIMIT);
    assert_int_equal(log_size(v), before);
    free(text);
    sessile_store_close(ann);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_session_that_is_not_there_is_not_shared),
        CASE(a_grant_ends_with_its_session),
        cmocka_unit_test(a_session_that_is_made_again_meanwhile_is_not_read),
        CASE(a_grant_stays_on_a_session_that_is_sealed_again),
        CASE(a_grant_on_ones_own_session_gives_what_it_says),
        CASE(a_narrowed_view_sees_and_ends_those_of_its_part),
        CASE(a_text_in_a_fact_has_an_end),
    };
    return cmocka_run_group_tests_name("grants", tests, NULL, NULL);
}
