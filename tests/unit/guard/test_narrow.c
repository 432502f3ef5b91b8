/*
 * test_narrow.c: a view of one session is of that session alone, and a view that may not
 * write to a memory makes none.
 *
 * Own stores: WHY the views are of a folder.
 */
#include "support/views.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <stdlib.h>
#include <string.h>

#include "sessile_memory.h"
#include "support/check.h"

#include <cmocka.h>

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

static sessile_credential of_session(const char *user, const char *const *role,
                                     const char *id)
{
    sessile_credential c;

    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.roles = role;
    c.role_count = 1;
    c.session = sessile_text(id);
    return c;
}

static sessile_status opened(views *v, sessile_store *view, const char *agent,
                             const char *user, int must_exist)
{
    sessile_memory_options o;
    sessile_memory *m;
    sessile_status status;

    sessile_memory_options_init(&o);
    o.agent = sessile_text(agent);
    o.user = sessile_text(user);
    o.must_exist = must_exist;
    status = sessile_memory_open(&m, view, &o, &v->err);
    sessile_memory_close(m);
    return status;
}

/* ------------------------------------------------------------------ one session */

static void one_of_the_same_id_is_another_session(void **state)
{
    views *v = *state;
    const char *editor = "editor", *admin = "admin";
    sessile_store *ann = view_of(v, "ann", editor), *bob = view_of(v, "bob", editor),
                  *one;
    sessile_credential c = of_session("ann", &editor, "bug");
    sessile_listed *rows;
    size_t count;

    view_puts(v, ann, "main", "bug");
    view_puts(v, ann, "coder", "bug");
    view_puts(v, bob, "main", "bug");
    must(sessile_store_as(&one, v->store, &c, &v->err), &v->err);
    must(view_resumes(v, one, "main", NULL, "bug", NULL), &v->err);
    assert_int_equal(view_resumes(v, one, "coder", NULL, "bug", NULL), SESSILE_DENIED);
    must(sessile_list(one, NULL, &rows, &count, &v->err), &v->err);
    assert_int_equal(count, 1);
    assert_memory_equal(rows[0].agent.data, "main", 5);
    sessile_free(rows);
    assert_int_equal(opened(v, one, "main", "ann", 0), SESSILE_OK);
    assert_int_equal(opened(v, one, "coder", "ann", 0), SESSILE_DENIED);
    sessile_store_close(one);

    c.agent = sessile_text("coder");
    must(sessile_store_as(&one, v->store, &c, &v->err), &v->err);
    must(view_resumes(v, one, "coder", NULL, "bug", NULL), &v->err);
    assert_int_equal(view_resumes(v, one, "main", NULL, "bug", NULL), SESSILE_DENIED);
    sessile_store_close(one);

    c = of_session("eve", &admin, "bug"); /* who sees all users is of one, too */
    c.owner = sessile_text("bob");
    must(sessile_store_as(&one, v->store, &c, &v->err), &v->err);
    must(view_resumes(v, one, "main", "bob", "bug", NULL), &v->err);
    assert_int_equal(view_resumes(v, one, "main", "ann", "bug", NULL), SESSILE_DENIED);
    assert_int_equal(view_resumes(v, one, "coder", "ann", "bug", NULL), SESSILE_DENIED);
    sessile_store_close(one);
    sessile_store_close(ann);
    sessile_store_close(bob);
}

/* What was shared with a user, given on to a helper. */
static void a_shared_session_is_given_on_alone(void **state)
{
    views *v = *state;
    const char *editor = "editor";
    sessile_store *ann = view_of(v, "ann", editor), *bob = view_of(v, "bob", editor),
                  *helper;
    sessile_grant_options o = grant_of("bob", "viewer", "bug");
    sessile_credential c = of_session("bob", &editor, "bug");

    view_puts(v, ann, "main", "bug");
    view_puts(v, bob, "main", "bug");
    view_grants(v, ann, &o);
    must(sessile_store_as(&helper, bob, &c, &v->err), &v->err);
    must(view_resumes(v, helper, "main", NULL, "bug", NULL), &v->err);
    assert_int_equal(view_resumes(v, helper, "main", "ann", "bug", NULL), SESSILE_DENIED);
    sessile_store_close(helper);
    c.owner = sessile_text("ann");
    must(sessile_store_as(&helper, bob, &c, &v->err), &v->err);
    must(view_resumes(v, helper, "main", "ann", "bug", NULL), &v->err);
    assert_int_equal(view_resumes(v, helper, "main", NULL, "bug", NULL), SESSILE_DENIED);
    sessile_store_close(helper);
    sessile_store_close(ann);
    sessile_store_close(bob);
}

/* Of a view of one session: a view names it again, and keeps its agent and its user. */
static void a_narrower_view_is_of_the_same_session(void **state)
{
    views *v = *state;
    const char *editor = "editor", *viewer = "viewer";
    sessile_store *ann = view_of(v, "ann", editor), *one, *less;
    sessile_credential c = of_session("ann", &editor, "bug");

    view_puts(v, ann, "coder", "bug");
    c.agent = sessile_text("coder");
    must(sessile_store_as(&one, ann, &c, &v->err), &v->err);
    for (int again = 0; again < 2; again++) {
        c = of_session("ann", &viewer, again ? "bug" : NULL);
        must(sessile_store_as(&less, one, &c, &v->err), &v->err);
        must(view_resumes(v, less, "coder", NULL, "bug", NULL), &v->err);
        assert_int_equal(view_resumes(v, less, "main", NULL, "bug", NULL),
                         SESSILE_DENIED);
        sessile_store_close(less);
    }
    must(opened(v, one, "coder", "ann", 0), &v->err);
    c = of_session("ann", &viewer, NULL); /* the memory as well */
    must(sessile_store_as(&less, one, &c, &v->err), &v->err);
    must(opened(v, less, "coder", "ann", 0), &v->err);
    sessile_store_close(less);
    c = of_session("ann", &viewer, "other");
    must(sessile_store_as(&less, one, &c, &v->err), &v->err);
    assert_int_equal(view_resumes(v, less, "coder", NULL, "bug", NULL), SESSILE_DENIED);
    sessile_store_close(less);
    sessile_store_close(one);
    sessile_store_close(ann);
}

static void what_a_session_is_named_by_is_checked(void **state)
{
    views *v = *state;
    const char *editor = "editor";
    const sessile_slice code = sessile_text("code*"), coder = sessile_text("coder");
    sessile_credential c = of_session("ann", &editor, NULL);
    sessile_store *view;

    c.agent = coder;
    assert_int_equal(sessile_store_as(&view, v->store, &c, &v->err), SESSILE_INVALID);
    c = of_session("ann", &editor, "bug");
    c.agent = code;
    assert_int_equal(sessile_store_as(&view, v->store, &c, &v->err), SESSILE_INVALID);
    c.agent = sessile_text("mailer");
    c.agents = &code;
    c.agent_count = 1;
    assert_int_equal(sessile_store_as(&view, v->store, &c, &v->err), SESSILE_INVALID);
    assert_says(&v->err, "name its agent");
    c.agent = sessile_text(NULL);
    c.agents = &coder; /* the only one */
    sessile_store *ann = view_of(v, "ann", editor);
    view_puts(v, ann, "coder", "bug");
    must(sessile_store_as(&view, v->store, &c, &v->err), &v->err);
    must(view_resumes(v, view, "coder", NULL, "bug", NULL), &v->err);
    sessile_store_close(view);
    sessile_store_close(ann);
}

/* A view of one session by a key is renewed by that key, and stays of it. */
static void a_view_of_one_session_is_renewed_as_it_was(void **state)
{
    views *v = *state;
    const char *editor = "editor";
    sessile_access_key_options o;
    sessile_credential c, other;
    sessile_store *view, *ann = view_of(v, "ann", editor);
    char *key;

    sessile_access_key_options_init(&o);
    o.user = sessile_text("ann");
    o.roles = &editor;
    o.role_count = 1;
    must(sessile_access_key(v->store, &o, &key, &v->err), &v->err);
    view_puts(v, ann, "coder", "bug");
    view_puts(v, ann, "coder", "other");
    sessile_credential_init(&c);
    c.key = sessile_text(key);
    other = c;
    other.session = sessile_text("other");
    other.agent = sessile_text("coder");
    c.session = sessile_text("bug");
    c.agent = sessile_text("coder");
    must(sessile_store_as(&view, v->store, &c, &v->err), &v->err);
    assert_int_equal(sessile_store_renew(view, NULL, &other, &v->err), SESSILE_INVALID);
    sessile_credential_init(&c);
    assert_int_equal(sessile_store_renew(view, v->store, &c, &v->err), SESSILE_INVALID);
    c.key = sessile_text(key); /* it says no more than that */
    must(sessile_store_renew(view, NULL, &c, &v->err), &v->err);
    must(view_resumes(v, view, "coder", NULL, "bug", NULL), &v->err);
    assert_int_equal(view_resumes(v, view, "coder", NULL, "other", NULL), SESSILE_DENIED);
    must(sessile_access_lock(v->store, sessile_text("ann"), sessile_text(NULL),
                             sessile_text(NULL), &v->err),
         &v->err);
    assert_int_equal(sessile_store_renew(view, NULL, &c, &v->err), SESSILE_DENIED);
    sessile_free(key);
    sessile_store_close(view);
    sessile_store_close(ann);
}

/* ------------------------------------------------------------------ memories */

static void who_may_not_write_makes_no_memory(void **state)
{
    views *v = *state;
    sessile_store *viewer = view_of(v, "ann", "viewer"),
                  *editor = view_of(v, "ann", "editor"),
                  *admin = view_of(v, "eve", "admin");

    assert_int_equal(opened(v, viewer, "main", "ann", 0), SESSILE_NOTFOUND);
    assert_int_equal(opened(v, v->store, "main", "ann", 1), SESSILE_NOTFOUND);
    must(opened(v, editor, "main", "ann", 0), &v->err);
    must(opened(v, viewer, "main", "ann", 0), &v->err);
    /* what the agent keeps for all is written with scope all */
    assert_int_equal(opened(v, editor, "main", "", 0), SESSILE_NOTFOUND);
    assert_int_equal(opened(v, v->store, "main", "", 1), SESSILE_NOTFOUND);
    must(opened(v, admin, "main", "", 0), &v->err);
    must(opened(v, editor, "main", "", 0), &v->err);
    must(opened(v, viewer, "main", "", 0), &v->err);
    sessile_store_close(viewer);
    sessile_store_close(editor);
    sessile_store_close(admin);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(one_of_the_same_id_is_another_session),
        CASE(a_shared_session_is_given_on_alone),
        CASE(a_narrower_view_is_of_the_same_session),
        CASE(what_a_session_is_named_by_is_checked),
        CASE(a_view_of_one_session_is_renewed_as_it_was),
        CASE(who_may_not_write_makes_no_memory),
    };
    return cmocka_run_group_tests_name("narrow views", tests, NULL, NULL);
}
