/*
 * test_guard.c: views of a store: whose sessions they see, and what they may.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "sessile_guard.h"
#include "sessile_memory.h"

#include <cmocka.h>

static const char *const no_permissions[] = {NULL};
static const char *const see_all[] = {"view_session", "read_memory"};
static const char *const act_for[] = {"view_session", "impersonate"};
static const sessile_role_definition own_roles[] = {
    {"nobody", no_permissions, 0, 0},
    {"reader", see_all, 2, 1},
    {"broker", act_for, 2, 0},
};

typedef struct world {
    sessile_store *store;
    sessile_error err;
} world;

static void open_store(world *w, int require_principal)
{
    sessile_store_options so;
    sessile_guard_options go;

    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&w->store, "ram:", &so, &w->err), SESSILE_OK);
    sessile_guard_options_init(&go);
    go.roles = own_roles;
    go.role_count = 3;
    go.require_principal = require_principal;
    assert_int_equal(sessile_store_guard(w->store, &go, &w->err), SESSILE_OK);
}

static int open_world(void **state)
{
    world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    open_store(w, 0);
    *state = w;
    return 0;
}

static int close_world(void **state)
{
    world *w = *state;
    sessile_store_close(w->store);
    free(w);
    return 0;
}

static sessile_credential credential(const char *user, const char *const *role)
{
    sessile_credential c;
    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.roles = role;
    c.role_count = role ? 1 : 0;
    return c;
}

static sessile_store *view_of(world *w, const char *user, const char *role)
{
    sessile_store *view;
    sessile_credential c = credential(user, &role);
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_OK);
    return view;
}

static sessile_status renewed(world *w, sessile_store *view, sessile_store *by,
                              int64_t expires_ms)
{
    sessile_credential c;

    sessile_credential_init(&c);
    c.expires_ms = expires_ms;
    return sessile_store_renew(view, by, &c, &w->err);
}

static sessile_session_options named(const char *agent, const char *user, const char *id)
{
    sessile_session_options o;
    sessile_session_options_init(&o);
    o.agent = sessile_text(agent);
    o.user = sessile_text(user);
    o.id = sessile_text(id);
    return o;
}

#define HELLO "{\"role\":\"user\",\"content\":\"hello there\"}"

static size_t count(world *w, sessile_session *s)
{
    sessile_message *rows;
    size_t n;
    assert_int_equal(sessile_messages(s, NULL, &rows, &n, &w->err), SESSILE_OK);
    sessile_free(rows);
    return n;
}

static sessile_session *made(world *w, sessile_store *st, const char *agent,
                             const char *user, const char *id)
{
    sessile_session_options o = named(agent, user, id);
    sessile_session *s;
    assert_int_equal(sessile_create(&s, st, &o, &w->err), SESSILE_OK);
    return s;
}

/* Makes a session with one message, and closes it. */
static void put(world *w, sessile_store *st, const char *agent, const char *user,
                const char *id, const char *message)
{
    sessile_session *s = made(w, st, agent, user, id);
    assert_int_equal(sessile_append(s, sessile_text(message), NULL, &w->err), SESSILE_OK);
    assert_int_equal(sessile_session_close(s, &w->err), SESSILE_OK);
}

static sessile_status resumed(world *w, sessile_store *st, const char *agent,
                              const char *user, const char *id)
{
    sessile_session_options o = named(agent, user, id);
    sessile_session *s;
    sessile_status status = sessile_resume(&s, st, &o, &w->err);
    if (!status)
        assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    return status;
}

static size_t listed(world *w, sessile_store *st)
{
    sessile_listed *rows;
    size_t count;
    assert_int_equal(sessile_list(st, NULL, &rows, &count, &w->err), SESSILE_OK);
    sessile_free(rows);
    return count;
}

/* ------------------------------------------------------------------ whose sessions */

static void a_store_without_a_guard_has_no_views(void **state)
{
    sessile_store_options so;
    sessile_store *st, *view;
    sessile_principal who;
    sessile_error err;
    const char *role = "editor";
    sessile_credential c = credential("ann", &role);
    (void)state;
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&st, "ram:", &so, &err), SESSILE_OK);
    assert_int_equal(sessile_store_as(&view, st, &c, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "no guard"));
    assert_null(view);
    assert_int_equal(sessile_store_who(st, &who, &err), SESSILE_INVALID);
    assert_true(sessile_can(st, SESSILE_MAY_DELETE_SESSION, sessile_text(NULL),
                            sessile_text("x"), sessile_text("y")));
    sessile_store_close(st);
}

static void each_user_has_a_namespace(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *bob = view_of(w, "bob", "editor");
    char foreign[sizeof w->err.message];

    put(w, ann, NULL, NULL, "bug-42", HELLO);
    assert_int_equal(resumed(w, ann, NULL, NULL, "bug-42"), SESSILE_OK);
    assert_int_equal(resumed(w, ann, NULL, "ann", "bug-42"), SESSILE_OK);
    assert_int_equal(resumed(w, w->store, NULL, "ann", "bug-42"), SESSILE_OK);
    assert_int_equal(resumed(w, bob, NULL, NULL, "bug-42"), SESSILE_NOTFOUND);
    /* another's name: the same answer whether it is there or not */
    assert_int_equal(resumed(w, bob, NULL, "ann", "bug-42"), SESSILE_DENIED);
    memcpy(foreign, w->err.message, sizeof foreign);
    assert_int_equal(resumed(w, bob, NULL, "ann", "none"), SESSILE_DENIED);
    assert_string_equal(w->err.message, foreign);
    assert_int_equal(resumed(w, bob, NULL, "zoe", "bug-42"), SESSILE_DENIED);
    assert_string_equal(w->err.message, foreign);
    assert_int_equal(resumed(w, bob, NULL, "", "bug-42"), SESSILE_DENIED);
    assert_string_equal(w->err.message, foreign);
    assert_null(strstr(foreign, "ann"));
    put(w, bob, NULL, NULL, "bug-42", HELLO);
    assert_int_equal(listed(w, w->store), 2);
    assert_int_equal(listed(w, bob), 1);
    sessile_store_close(bob);
    sessile_store_close(ann);
}

static void lists_and_searches_have_only_ones_own(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *all = view_of(w, "", "reader");
    sessile_list_options lo;
    sessile_search_options so;
    sessile_listed *rows;
    sessile_search *search;
    sessile_found found;
    size_t count;

    put(w, w->store, "main", "ann", "a", HELLO);
    put(w, w->store, "main", "bob", "b", HELLO);
    put(w, w->store, "main", "", "c", HELLO);
    assert_int_equal(listed(w, all), 3);
    assert_int_equal(listed(w, ann), 1);
    sessile_list_options_init(&lo);
    lo.limit = 1; /* what is left out does not use up the limit */
    assert_int_equal(sessile_list_with(ann, &lo, &rows, &count, &w->err), SESSILE_OK);
    assert_int_equal(count, 1);
    assert_memory_equal(rows[0].id.data, "a", 1);
    sessile_free(rows);
    lo.user = sessile_text("bob");
    assert_int_equal(sessile_list_with(ann, &lo, &rows, &count, &w->err), SESSILE_DENIED);
    assert_null(rows);
    sessile_search_options_init(&so);
    so.text = sessile_text("hello");
    assert_int_equal(sessile_search_open(&search, ann, &so, &w->err), SESSILE_OK);
    count = 0;
    do {
        assert_int_equal(sessile_search_next(search, &found, &w->err), SESSILE_OK);
        if (found.kind == SESSILE_FOUND_MESSAGE) {
            assert_memory_equal(found.id.data, "a", 1);
            count++;
        }
    } while (found.kind != SESSILE_FOUND_END);
    assert_int_equal(count, 1);
    sessile_search_close(search);
    sessile_store_close(all);
    sessile_store_close(ann);
}

static void agents_and_one_session_narrow_a_view(void **state)
{
    world *w = *state;
    const sessile_slice agents[] = {sessile_text("code*"), sessile_text("docs")};
    const char *role = "editor";
    sessile_credential c = credential("ann", &role);
    sessile_store *view, *one;

    put(w, w->store, "coder", "ann", "x", HELLO);
    put(w, w->store, "coder", "ann", "y", HELLO);
    put(w, w->store, "mailer", "ann", "x", HELLO);
    c.agents = agents;
    c.agent_count = 2;
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_OK);
    assert_int_equal(resumed(w, view, "coder", NULL, "x"), SESSILE_OK);
    assert_int_equal(resumed(w, view, "docs", NULL, "x"), SESSILE_NOTFOUND);
    assert_int_equal(resumed(w, view, "docs2", NULL, "x"), SESSILE_DENIED);
    assert_int_equal(resumed(w, view, "mailer", NULL, "x"), SESSILE_DENIED);
    assert_int_equal(resumed(w, view, NULL, NULL, "x"), SESSILE_DENIED); /* "main" */
    assert_int_equal(listed(w, view), 2);
    c.session = sessile_text("y"); /* of "main", which is none of the agents */
    assert_int_equal(sessile_store_as(&one, view, &c, &w->err), SESSILE_INVALID);
    c.agent = sessile_text("coder");
    assert_int_equal(sessile_store_as(&one, view, &c, &w->err), SESSILE_OK);
    assert_int_equal(listed(w, one), 1);
    assert_int_equal(resumed(w, one, "coder", NULL, "y"), SESSILE_OK);
    assert_int_equal(resumed(w, one, "coder", NULL, "x"), SESSILE_DENIED);
    sessile_store_close(one);
    const sessile_slice every = sessile_text("*"); /* no more than the other view's */
    c = credential("ann", &role);
    c.agents = &every;
    c.agent_count = 1;
    assert_int_equal(sessile_store_as(&one, view, &c, &w->err), SESSILE_OK);
    assert_int_equal(resumed(w, one, "coder", NULL, "x"), SESSILE_OK);
    assert_int_equal(resumed(w, one, "mailer", NULL, "x"), SESSILE_DENIED);
    sessile_store_close(one);
    sessile_store_close(view);
}

static void what_is_made_of_a_session_stays_in_the_namespace(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor");
    sessile_session *s = made(w, ann, NULL, NULL, "a"), *other;
    sessile_session_options theirs = named(NULL, "bob", "stolen");
    sessile_session_options own = named(NULL, NULL, "copy");

    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err), SESSILE_OK);
    assert_int_equal(sessile_fork(&other, s, 1, &theirs, &w->err), SESSILE_DENIED);
    assert_null(other);
    assert_int_equal(sessile_child(&other, s, 0, &theirs, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_put(&other, ann, s, &theirs, &w->err), SESSILE_DENIED);
    assert_int_equal(listed(w, w->store), 1);
    assert_int_equal(sessile_fork(&other, s, 1, &own, &w->err), SESSILE_OK);
    assert_memory_equal(sessile_session_user(other).data, "ann", 3);
    assert_int_equal(sessile_session_close(other, NULL), SESSILE_OK);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    sessile_store_close(ann);
}

static void links_to_others_have_no_names(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *bob = view_of(w, "bob", "editor");
    sessile_session *s = made(w, w->store, NULL, "ann", "a"), *other;
    sessile_session_options theirs = named(NULL, "bob", "b");
    sessile_subsession *rows;
    sessile_link link;
    size_t count;

    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err), SESSILE_OK);
    assert_int_equal(sessile_child(&other, s, 0, &theirs, &w->err), SESSILE_OK);
    assert_int_equal(sessile_session_close(other, NULL), SESSILE_OK);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);

    sessile_session_options o = named(NULL, NULL, "b");
    assert_int_equal(sessile_resume(&other, bob, &o, &w->err), SESSILE_OK);
    assert_true(sessile_session_parent(other, &link));
    assert_int_equal(link.id.size + link.user.size + link.agent.size, 0);
    assert_int_equal(sessile_session_close(other, NULL), SESSILE_OK);
    o = named(NULL, NULL, "a");
    assert_int_equal(sessile_resume(&s, ann, &o, &w->err), SESSILE_OK);
    assert_int_equal(sessile_subsessions(s, &rows, &count, &w->err), SESSILE_OK);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].id.size + rows[0].user.size + rows[0].agent.size, 0);
    assert_int_not_equal(rows[0].entry, SESSILE_NO_ID);
    sessile_free(rows);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    sessile_store_close(bob);
    sessile_store_close(ann);
}

/* ------------------------------------------------------------------ roles */

static void a_viewer_reads_and_does_not_write(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "viewer");
    sessile_session_options o = named(NULL, NULL, "a");
    sessile_session *s;
    sessile_message *rows;
    size_t count;

    put(w, w->store, NULL, "ann", "a", HELLO);
    assert_int_equal(sessile_resume(&s, ann, &o, &w->err), SESSILE_OK);
    assert_int_equal(sessile_messages(s, NULL, &rows, &count, &w->err), SESSILE_OK);
    assert_int_equal(count, 1);
    sessile_free(rows);
    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err),
                     SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "modify_session"));
    assert_int_equal(sessile_set_title(s, sessile_text("t"), &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_delete(ann, &o, NULL, NULL, &w->err), SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "delete_session"));
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    o.id = sessile_text("new");
    assert_int_equal(sessile_create(&s, ann, &o, &w->err), SESSILE_DENIED);
    assert_int_equal(listed(w, w->store), 1);
    sessile_store_close(ann);
}

/* To open or create wants to create only where there is none. */
static void opening_what_is_there_needs_no_right_to_create(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "viewer");
    sessile_session_options o = named(NULL, NULL, "a");
    sessile_session *s;

    put(w, w->store, NULL, "ann", "a", HELLO);
    assert_int_equal(sessile_session_open(&s, ann, &o, &w->err), SESSILE_OK);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    o.id = sessile_text("new");
    assert_int_equal(sessile_session_open(&s, ann, &o, &w->err), SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "create_session"));
    assert_int_equal(listed(w, w->store), 1);
    sessile_store_close(ann);
}

static void admins_and_auditors_have_what_their_names_say(void **state)
{
    world *w = *state;
    sessile_store *admin = view_of(w, "eve", "admin"), *ann = view_of(w, "ann", "editor");
    sessile_store *auditor = view_of(w, "sue", "auditor");
    sessile_check *check;
    sessile_listed *rows;
    size_t count;

    put(w, w->store, NULL, "bob", "b", HELLO);
    assert_int_equal(resumed(w, admin, NULL, "bob", "b"), SESSILE_OK);
    assert_int_equal(resumed(w, auditor, NULL, "bob", "b"), SESSILE_DENIED);
    assert_int_equal(sessile_list(auditor, NULL, &rows, &count, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_check_open(&check, auditor, NULL, 0, &w->err), SESSILE_OK);
    sessile_check_close(check);
    assert_int_equal(sessile_check_open(&check, ann, NULL, 0, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_purge(ann, NULL, &rows, &count, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_purge(admin, NULL, &rows, &count, &w->err), SESSILE_OK);
    sessile_free(rows);
    sessile_store_close(auditor);
    sessile_store_close(ann);
    sessile_store_close(admin);
}

static void roles_that_cannot_be_are_refused_by_name(void **state)
{
    world *w = *state;
    static const char *const wrong[] = {"view_sessions"};
    const sessile_role_definition bad = {"support", wrong, 1, 0};
    const sessile_role_definition twice[] = {{"x", see_all, 1, 0}, {"x", see_all, 2, 0}};
    const char *role = "wizard";
    sessile_credential c = credential("ann", &role);
    sessile_store_options so;
    sessile_guard_options go;
    sessile_store *st, *view;

    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_INVALID);
    assert_non_null(strstr(w->err.message, "wizard"));
    assert_int_equal(sessile_store_guard(w->store, NULL, &w->err), SESSILE_INVALID);
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&st, "ram:", &so, &w->err), SESSILE_OK);
    sessile_guard_options_init(&go);
    go.roles = &bad;
    go.role_count = 1;
    assert_int_equal(sessile_store_guard(st, &go, &w->err), SESSILE_INVALID);
    assert_non_null(strstr(w->err.message, "view_sessions"));
    go.roles = twice;
    go.role_count = 2;
    assert_int_equal(sessile_store_guard(st, &go, &w->err), SESSILE_INVALID);
    assert_non_null(strstr(w->err.message, "twice"));
    assert_int_equal(sessile_store_guard(st, NULL, &w->err), SESSILE_OK);
    sessile_store_close(st);
}

/* ------------------------------------------------------------------ views of views */

static void a_view_of_a_view_only_narrows(void **state)
{
    world *w = *state;
    const char *viewer = "viewer", *admin = "admin";
    sessile_store *ann = view_of(w, "ann", "editor"), *narrow;
    sessile_credential c = credential("ann", &admin);
    sessile_principal who;

    assert_int_equal(sessile_store_as(&narrow, ann, &c, &w->err), SESSILE_OK);
    assert_int_equal(sessile_store_who(narrow, &who, &w->err), SESSILE_OK);
    assert_false(who.all);
    assert_false(who.host);
    assert_false(who.permissions >> SESSILE_MAY_DELETE_SESSION & 1);
    assert_true(who.permissions >> SESSILE_MAY_MODIFY_SESSION & 1);
    sessile_store_close(narrow);
    c = credential("bob", &viewer);
    assert_int_equal(sessile_store_as(&narrow, ann, &c, &w->err), SESSILE_DENIED);
    c = credential("ann", NULL);
    assert_int_equal(sessile_store_as(&narrow, ann, &c, &w->err), SESSILE_OK);
    put(w, narrow, NULL, NULL, "a", HELLO);
    /* what ends the one ends the other */
    assert_int_equal(sessile_store_revoke(ann, &w->err), SESSILE_OK);
    assert_int_equal(resumed(w, narrow, NULL, NULL, "a"), SESSILE_DENIED);
    assert_string_equal(w->err.message, "the credential is not accepted");
    sessile_store_close(narrow);
    sessile_store_close(ann);

    sessile_store *broker = view_of(w, "svc", "broker");
    c = credential("ann", NULL);
    assert_int_equal(sessile_store_as(&narrow, broker, &c, &w->err), SESSILE_OK);
    assert_int_equal(resumed(w, narrow, NULL, NULL, "a"), SESSILE_OK);
    sessile_store_close(narrow);
    sessile_store_close(broker);
}

static int64_t unix_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void an_expired_view_passes_again_when_it_is_renewed(void **state)
{
    world *w = *state;
    const char *role = "editor";
    sessile_credential c = credential("ann", &role);
    sessile_store *view;
    sessile_session *s;

    c.expires_ms = unix_ms() - 1;
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_INVALID);
    c.expires_ms = unix_ms() + 60000;
    assert_int_equal(sessile_store_as(&view, w->store, &c, &w->err), SESSILE_OK);
    s = made(w, view, NULL, NULL, "a");
    int64_t end = unix_ms() + 500;
    assert_int_equal(renewed(w, view, w->store, end), SESSILE_OK);
    while (unix_ms() < end)
        usleep(10000);
    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err),
                     SESSILE_DENIED);
    assert_int_equal(renewed(w, view, NULL, 0), SESSILE_DENIED); /* by itself */
    assert_int_equal(renewed(w, view, view, 0), SESSILE_DENIED);
    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err),
                     SESSILE_DENIED);
    assert_int_equal(renewed(w, view, w->store, 0), SESSILE_OK);
    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err), SESSILE_OK);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    assert_int_equal(renewed(w, w->store, w->store, 0), SESSILE_INVALID);
    assert_int_equal(sessile_store_revoke(view, &w->err), SESSILE_OK);
    assert_int_equal(renewed(w, view, w->store, 0), SESSILE_DENIED);
    sessile_store_close(view);
}

/* A view that was given away ends with the word of who gave it, or is renewed by it. */
static void a_view_of_a_view_is_renewed_by_who_made_it(void **state)
{
    world *w = *state;
    const char *role = "editor";
    sessile_store *ann = view_of(w, "ann", role), *helper, *other;
    sessile_credential c = credential("ann", &role);
    sessile_listed *rows;
    size_t count;

    int64_t end = c.expires_ms = unix_ms() + 200;
    assert_int_equal(sessile_store_as(&helper, ann, &c, &w->err), SESSILE_OK);
    c.expires_ms = 0;
    assert_int_equal(sessile_store_as(&other, ann, &c, &w->err), SESSILE_OK);
    while (unix_ms() < end)
        usleep(10000);
    assert_int_equal(renewed(w, helper, NULL, 0), SESSILE_DENIED);
    assert_int_equal(renewed(w, helper, other, 0), SESSILE_DENIED);
    assert_int_equal(renewed(w, helper, w->store, 0), SESSILE_DENIED);
    assert_int_equal(sessile_list(helper, NULL, &rows, &count, &w->err), SESSILE_DENIED);
    assert_int_equal(renewed(w, helper, ann, 0), SESSILE_OK);
    assert_int_equal(sessile_list(helper, NULL, &rows, &count, &w->err), SESSILE_OK);
    sessile_free(rows);
    assert_int_equal(sessile_store_revoke(ann, &w->err), SESSILE_OK);
    assert_int_equal(renewed(w, helper, ann, 0), SESSILE_DENIED);
    sessile_store_close(other);
    sessile_store_close(helper);
    sessile_store_close(ann);
}

static void a_store_that_requires_a_principal_gives_the_host_views_alone(void **state)
{
    world strict = {0};
    sessile_session_options o = named(NULL, "ann", "a");
    sessile_session *s;
    (void)state;
    open_store(&strict, 1);
    assert_int_equal(sessile_create(&s, strict.store, &o, &strict.err), SESSILE_DENIED);
    assert_non_null(strstr(strict.err.message, "principal"));
    sessile_store *ann = view_of(&strict, "ann", "editor");
    put(&strict, ann, NULL, NULL, "a", HELLO);
    sessile_store_close(ann);
    sessile_store_close(strict.store);
}

static void a_view_does_not_change_what_the_host_has_set(void **state)
{
    world *w = *state;
    sessile_store *admin = view_of(w, "eve", "admin");
    sessile_policy_step step;
    sessile_policy *policy;

    memset(&step, 0, sizeof step);
    step.name = "sliding_window";
    assert_int_equal(sessile_policy_load(&policy, admin, &step, 1, &w->err),
                     SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "host's own handle"));
    assert_int_equal(sessile_store_guard(admin, NULL, &w->err), SESSILE_INVALID);
    sessile_store_close(admin);
}

/* Handles keep their principal: what was opened through a view outlives it. */
static void a_session_outlives_its_view(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "viewer");
    sessile_session_options o = named(NULL, NULL, "a");
    sessile_session *s;
    sessile_message *rows;
    size_t count;

    put(w, w->store, NULL, "ann", "a", HELLO);
    assert_int_equal(sessile_resume(&s, ann, &o, &w->err), SESSILE_OK);
    sessile_store_close(ann);
    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err),
                     SESSILE_DENIED);
    assert_int_equal(sessile_messages(s, NULL, &rows, &count, &w->err), SESSILE_OK);
    sessile_free(rows);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
}

/* A copy of a store wants the right of both sides. */
/* A host opens a session once, and serves it to those who may see it. */
static void an_open_session_is_shared_with_whom_it_belongs_to(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *bob = view_of(w, "bob", "editor"),
                  *looks = view_of(w, "ann", "viewer"), *other;
    sessile_session *s = made(w, w->store, "main", "ann", "s"), *hers, *seen, *none;
    sessile_store_options plain;

    assert_int_equal(sessile_session_as(&hers, s, ann, &w->err), SESSILE_OK);
    assert_int_equal(sessile_session_as(&seen, s, looks, &w->err), SESSILE_OK);
    assert_int_equal(sessile_session_as(&none, s, bob, &w->err), SESSILE_DENIED);
    assert_null(none);
    assert_int_equal(sessile_append(hers, sessile_text(HELLO), NULL, &w->err),
                     SESSILE_OK);
    assert_int_equal(sessile_append(seen, sessile_text(HELLO), NULL, &w->err),
                     SESSILE_DENIED);
    assert_int_equal(sessile_session_close(hers, &w->err), SESSILE_OK);
    /* what was closed was a handle: the session is open, and has what was written */
    assert_int_equal(count(w, seen), 1);
    assert_int_equal(sessile_session_close(seen, &w->err), SESSILE_OK);
    assert_int_equal(sessile_append(s, sessile_text(HELLO), NULL, &w->err), SESSILE_OK);
    assert_int_equal(count(w, s), 2);

    sessile_store_options_init(&plain);
    plain.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&other, "ram:", &plain, &w->err), SESSILE_OK);
    assert_int_equal(sessile_session_as(&none, s, other, &w->err), SESSILE_INVALID);
    sessile_store_close(other);
    sessile_session_close(s, NULL);
    sessile_store_close(ann);
    sessile_store_close(bob);
    sessile_store_close(looks);
}

static void a_copy_between_stores_asks_both_principals(void **state)
{
    world *w = *state, other = {0};
    sessile_store *ann, *admin = view_of(w, "eve", "admin");
    sessile_migration *m;

    open_store(&other, 0);
    ann = view_of(&other, "ann", "editor");
    sessile_place from = {.store = admin}, to = {.store = ann};
    assert_int_equal(sessile_migrate_begin(&m, &from, &to, NULL, &w->err),
                     SESSILE_DENIED);
    assert_int_equal(sessile_migrate_begin(&m, &to, &from, NULL, &w->err),
                     SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "move_store"));
    sessile_store_close(ann);
    sessile_store_close(other.store);
    sessile_store_close(admin);
}

/* ------------------------------------------------------------------ memories */

static sessile_status memory_of(world *w, sessile_store *st, const char *user,
                                sessile_memory **out)
{
    sessile_memory_options o;
    sessile_memory_options_init(&o);
    o.user = sessile_text(user);
    o.consent = sessile_text("yes");
    return sessile_memory_open(out, st, &o, &w->err);
}

static sessile_status noted(world *w, sessile_memory *m, const char *value)
{
    sessile_memory_write_entry e;
    sessile_memory_write_init(&e);
    e.value = sessile_text(value);
    return sessile_memory_write(m, &e, 1, NULL, &w->err);
}

static void a_users_memory_is_the_users(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *admin = view_of(w, "eve", "admin");
    sessile_memory *own, *shared, *other;
    sessile_memory_row *rows;
    size_t count;

    assert_int_equal(memory_of(w, ann, "ann", &own), SESSILE_OK);
    assert_int_equal(noted(w, own, "tea"), SESSILE_OK);
    assert_int_equal(memory_of(w, ann, "bob", &other), SESSILE_DENIED);
    assert_null(other);
    /* what the agent keeps for all: read by each, written by whom all is given */
    assert_int_equal(memory_of(w, ann, NULL, &shared), SESSILE_NOTFOUND);
    assert_int_equal(memory_of(w, admin, NULL, &other), SESSILE_OK);
    assert_int_equal(noted(w, other, "a rule"), SESSILE_OK);
    sessile_memory_close(other);
    assert_int_equal(memory_of(w, ann, NULL, &shared), SESSILE_OK);
    assert_int_equal(noted(w, shared, "poison"), SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "scope all"));
    assert_int_equal(sessile_memory_list(shared, NULL, &rows, &count, &w->err),
                     SESSILE_OK);
    assert_int_equal(count, 1);
    sessile_free(rows);
    sessile_memory_close(shared);
    sessile_memory_close(own);
    sessile_store_close(admin);
    sessile_store_close(ann);
}

/* A host opens a memory once, and serves it to those who may read it. */
static void an_open_memory_is_shared_with_whom_it_belongs_to(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *bob = view_of(w, "bob", "editor"),
                  *looks = view_of(w, "ann", "viewer"), *other;
    sessile_memory *own, *all, *hers, *seen, *none, *rules;
    sessile_memory_row *rows;
    sessile_store_options plain;
    size_t count;

    assert_int_equal(memory_of(w, w->store, "ann", &own), SESSILE_OK);
    assert_int_equal(memory_of(w, w->store, NULL, &all), SESSILE_OK);
    assert_int_equal(sessile_memory_as(&hers, own, ann, &w->err), SESSILE_OK);
    assert_int_equal(sessile_memory_as(&seen, own, looks, &w->err), SESSILE_OK);
    assert_int_equal(sessile_memory_as(&none, own, bob, &w->err), SESSILE_DENIED);
    assert_null(none);
    assert_int_equal(noted(w, hers, "tea"), SESSILE_OK);
    assert_int_equal(noted(w, seen, "coffee"), SESSILE_DENIED);
    /* what the agent keeps for all is everybody's to read, and not to write */
    assert_int_equal(sessile_memory_as(&rules, all, bob, &w->err), SESSILE_OK);
    assert_int_equal(noted(w, rules, "poison"), SESSILE_DENIED);
    sessile_memory_close(rules);
    /* it is open until the last handle is closed */
    sessile_memory_close(own);
    sessile_memory_close(hers);
    assert_int_equal(sessile_memory_list(seen, NULL, &rows, &count, &w->err), SESSILE_OK);
    assert_int_equal(count, 1);
    sessile_free(rows);
    sessile_memory_close(seen);

    sessile_store_options_init(&plain);
    plain.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open(&other, "ram:", &plain, &w->err), SESSILE_OK);
    assert_int_equal(sessile_memory_as(&none, all, other, &w->err), SESSILE_INVALID);
    sessile_store_close(other);
    sessile_memory_close(all);
    sessile_store_close(ann);
    sessile_store_close(bob);
    sessile_store_close(looks);
}

static void can_says_what_a_call_would_be_answered(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "viewer");
    sessile_slice none = sessile_text(NULL), bob = sessile_text("bob");

    assert_true(sessile_can(ann, SESSILE_MAY_VIEW_SESSION, none, none, none));
    assert_false(sessile_can(ann, SESSILE_MAY_MODIFY_SESSION, none, none, none));
    assert_false(sessile_can(ann, SESSILE_MAY_VIEW_SESSION, none, bob, none));
    assert_true(sessile_can(w->store, SESSILE_MAY_MODIFY_SESSION, none, bob, none));
    sessile_credential c = credential("ann", NULL);
    sessile_store *one;
    c.session = sessile_text("a");
    assert_int_equal(sessile_store_as(&one, ann, &c, &w->err), SESSILE_OK);
    assert_true(sessile_can(one, SESSILE_MAY_READ_MEMORY, none, none, none));
    assert_true(sessile_can(one, SESSILE_MAY_VIEW_SESSION, none, none, c.session));
    assert_false(sessile_can(one, SESSILE_MAY_VIEW_SESSION, none, none, bob));
    sessile_store_close(one);
    assert_int_equal(sessile_store_revoke(ann, &w->err), SESSILE_OK);
    assert_false(sessile_can(ann, SESSILE_MAY_VIEW_SESSION, none, none, none));
    assert_string_equal(sessile_permission_name(SESSILE_MAY_ERASE_USER), "erase_user");
    assert_null(sessile_permission_name(SESSILE_PERMISSION_COUNT));
    sessile_store_close(ann);
}

#define IN_WORLD(test) cmocka_unit_test_setup_teardown(test, open_world, close_world)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_store_without_a_guard_has_no_views),
        IN_WORLD(each_user_has_a_namespace),
        IN_WORLD(lists_and_searches_have_only_ones_own),
        IN_WORLD(agents_and_one_session_narrow_a_view),
        IN_WORLD(what_is_made_of_a_session_stays_in_the_namespace),
        IN_WORLD(links_to_others_have_no_names),
        IN_WORLD(a_viewer_reads_and_does_not_write),
        IN_WORLD(opening_what_is_there_needs_no_right_to_create),
        IN_WORLD(admins_and_auditors_have_what_their_names_say),
        IN_WORLD(roles_that_cannot_be_are_refused_by_name),
        IN_WORLD(a_view_of_a_view_only_narrows),
        IN_WORLD(an_expired_view_passes_again_when_it_is_renewed),
        IN_WORLD(a_view_of_a_view_is_renewed_by_who_made_it),
        cmocka_unit_test(a_store_that_requires_a_principal_gives_the_host_views_alone),
        IN_WORLD(a_view_does_not_change_what_the_host_has_set),
        IN_WORLD(a_session_outlives_its_view),
        IN_WORLD(an_open_session_is_shared_with_whom_it_belongs_to),
        IN_WORLD(a_copy_between_stores_asks_both_principals),
        IN_WORLD(a_users_memory_is_the_users),
        IN_WORLD(an_open_memory_is_shared_with_whom_it_belongs_to),
        IN_WORLD(can_says_what_a_call_would_be_answered),
    };
    return cmocka_run_group_tests_name("guard", tests, NULL, NULL);
}
