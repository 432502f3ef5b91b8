/*
 * test_can.c: sessile_can() and sessile_may() agree with the calls, for views with roles,
 * grants and narrowings, on sessions and memories of their own and of others.
 *
 * test_doors has the same for each function, with permissions alone.
 *
 * Own stores: WHY the views are of a folder.
 */
#include "support/views.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>

#include <stdio.h>
#include <string.h>

#include "sessile_memory.h"
#include "support/check.h"

#include <cmocka.h>

#define NONE sessile_text(NULL)

typedef struct object {
    const char *agent, *user, *id;
} object;

/* What needs one permission beside view_session, made on an object through a view. */
typedef struct operation {
    const char *name;
    sessile_permission permission;
    int opens;  /* it opens the session first: that wants view_session */
    int memory; /* it is about the memory, without an id */
    sessile_status (*call)(views *v, sessile_store *view, const object *o,
                           sessile_session *s);
} operation;

static sessile_session_options options_of(const object *o)
{
    return session_of(o->agent, o->user, o->id);
}

static sessile_status do_read(views *v, sessile_store *view, const object *o,
                              sessile_session *s)
{
    (void)view;
    (void)o;
    return view_reads(v, s);
}

static sessile_status do_append(views *v, sessile_store *view, const object *o,
                                sessile_session *s)
{
    (void)view;
    (void)o;
    return sessile_append(s, HELLO, NULL, &v->err);
}

static sessile_status do_checkpoint(views *v, sessile_store *view, const object *o,
                                    sessile_session *s)
{
    (void)view;
    (void)o;
    return sessile_checkpoint(s, NULL, NULL, &v->err);
}

/* What is there already answers EXISTS to whom it lets in. */
static sessile_status do_create(views *v, sessile_store *view, const object *o,
                                sessile_session *s)
{
    sessile_session_options own = options_of(o);
    sessile_status status = sessile_create(&s, view, &own, &v->err);

    if (!status) {
        sessile_session_close(s, NULL);
        must(sessile_delete(v->store, &own, NULL, NULL, &v->err), &v->err);
    }
    return status;
}

static sessile_status do_delete(views *v, sessile_store *view, const object *o,
                                sessile_session *s)
{
    sessile_session_options own = options_of(o);
    sessile_delete_options soft = {.soft = 1};
    sessile_status status = sessile_delete(view, &own, &soft, NULL, &v->err);

    (void)s;
    if (!status)
        must(sessile_undelete(v->store, &own, NONE, &v->err), &v->err);
    return status;
}

static sessile_status open_memory(views *v, sessile_store *view, const object *o,
                                  sessile_memory **m)
{
    sessile_memory_options own;

    sessile_memory_options_init(&own);
    own.agent = sessile_text(o->agent);
    own.user = sessile_text(o->user);
    return sessile_memory_open(m, view, &own, &v->err);
}

static sessile_status do_list_memory(views *v, sessile_store *view, const object *o,
                                     sessile_session *s)
{
    sessile_memory_row *rows = NULL;
    sessile_memory *m;
    size_t count;
    sessile_status status = open_memory(v, view, o, &m);

    (void)s;
    if (!status)
        status = sessile_memory_list(m, NULL, &rows, &count, &v->err);
    sessile_free(rows);
    sessile_memory_close(m);
    return status;
}

static sessile_status do_write_memory(views *v, sessile_store *view, const object *o,
                                      sessile_session *s)
{
    sessile_memory_write_entry e;
    sessile_memory *m;
    sessile_status status = open_memory(v, view, o, &m);

    (void)s;
    sessile_memory_write_init(&e);
    e.value = sessile_text("tea");
    if (!status)
        status = sessile_memory_write(m, &e, 1, NULL, &v->err);
    sessile_memory_close(m);
    return status;
}

static const operation operations[] = {
    {"read", SESSILE_MAY_VIEW_SESSION, 1, 0, do_read},
    {"append", SESSILE_MAY_MODIFY_SESSION, 1, 0, do_append},
    {"checkpoint", SESSILE_MAY_CREATE_CHECKPOINT, 1, 0, do_checkpoint},
    {"create", SESSILE_MAY_CREATE_SESSION, 0, 0, do_create},
    {"delete", SESSILE_MAY_DELETE_SESSION, 0, 0, do_delete},
    {"list of a memory", SESSILE_MAY_READ_MEMORY, 0, 1, do_list_memory},
    {"write to a memory", SESSILE_MAY_WRITE_MEMORY, 0, 1, do_write_memory},
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* ------------------------------------------------------------------ what is asked */

static int says(views *v, sessile_store *view, sessile_permission permission,
                const object *o, int memory)
{
    sessile_operation own = {.name = sessile_text("try"),
                             .permission = permission,
                             .agent = sessile_text(o->agent),
                             .user = sessile_text(o->user),
                             .id = memory ? NONE : sessile_text(o->id)};
    int can = sessile_can(view, permission, own.agent, own.user, own.id);
    sessile_status may = sessile_may(view, &own, &v->err);

    if (can != (may == SESSILE_OK))
        fail_msg("%s on %s %s %s: can() says %d, may() %s",
                 sessile_permission_name(permission), o->agent, o->user, o->id, can,
                 sessile_status_name(may));
    return can;
}

static void compare(views *v, sessile_store *view, const char *who, const operation *op,
                    const object *o)
{
    int may = says(v, view, op->permission, o, op->memory), views_it;
    sessile_status status = SESSILE_OK;
    sessile_session *s = NULL;

    if (op->opens) {
        views_it = says(v, view, SESSILE_MAY_VIEW_SESSION, o, 0);
        sessile_session_options own = options_of(o);
        status = sessile_resume(&s, view, &own, &v->err);
        may = status == SESSILE_NOTFOUND ? views_it : may && views_it;
    }
    if (op->permission == SESSILE_MAY_WRITE_MEMORY) /* it is opened first */
        may &= says(v, view, SESSILE_MAY_READ_MEMORY, o, 1);
    if (!status)
        status = op->call(v, view, o, s);
    sessile_session_close(s, NULL);
    if (may == (status == SESSILE_DENIED))
        fail_msg("%s: %s on %s %s %s: can() says %d, the call %s: %s", who, op->name,
                 o->agent, o->user, o->id, may, sessile_status_name(status),
                 v->err.message);
}

/* ------------------------------------------------------------------ who asks */

enum { PEOPLE = 3, ROLES = 5, NARROWINGS = 5 };
static const char *const people[PEOPLE] = {"ann", "bob", NULL};
static const char *const roles[ROLES] = {NULL, "viewer", "editor", "admin", "auditor"};

static void narrow(sessile_credential *c, int how)
{
    static const sessile_slice agents[] = {{"code*", 5}, {"main", 4}};

    if (how == 1 || how == 2) {
        c->agents = &agents[how - 1];
        c->agent_count = 1;
    } else if (how == 3) {
        c->session = sessile_text("bug");
    } else if (how == 4) {
        c->session = sessile_text("bug");
        c->owner = sessile_text("ann");
        c->agent = sessile_text("coder");
    }
}

static void compare_all(views *v, sessile_store *view, const char *who)
{
    static const object objects[] = {
        {"main", "ann", "bug"}, {"main", "ann", "other"}, {"coder", "ann", "bug"},
        {"main", "bob", "bug"}, {"main", "bob", "none"},  {"coder", "bob", "gone"},
        {"main", "", "bug"},
    };

    for (size_t i = 0; i < sizeof objects / sizeof *objects; i++)
        for (int k = 0; k < OPERATIONS; k++)
            compare(v, view, who, &operations[k], &objects[i]);
}

/* Each user with each role, narrowed in each way, by the host or by the user's own view.
 */
static void compare_everybody(views *v)
{
    char who[200];

    for (int i = 0; i < PEOPLE * ROLES * NARROWINGS * 2; i++) {
        const char *role = roles[i / PEOPLE % ROLES];
        int how = i / PEOPLE / ROLES % NARROWINGS,
            twice = i / PEOPLE / ROLES / NARROWINGS;
        sessile_store *view, *first = view_of(v, people[i % PEOPLE], role);
        sessile_credential c;
        sessile_credential_init(&c);
        c.user = sessile_text(people[i % PEOPLE]);
        c.roles = &role;
        c.role_count = role && !twice;
        narrow(&c, how);
        must(sessile_store_as(&view, twice ? first : v->store, &c, &v->err), &v->err);
        snprintf(who, sizeof who, "%s, %s, narrowing %d%s",
                 people[i % PEOPLE] ? people[i % PEOPLE] : "nobody",
                 role ? role : "no role", how, twice ? ", of a view" : "");
        compare_all(v, view, who);
        sessile_store_close(view);
        sessile_store_close(first);
    }
}

static void make_sessions(views *v)
{
    static const char *const users[] = {"ann", "bob"};
    static const char *const agents[] = {"main", "coder"};
    sessile_memory_options mo;
    sessile_memory *m;

    for (int i = 0; i < 2; i++) {
        sessile_store *view = view_of(v, users[i], "editor");
        view_puts(v, view, NULL, "bug");
        view_puts(v, view, "coder", i ? "gone" : "bug");
        if (!i)
            view_puts(v, view, NULL, "other");
        sessile_store_close(view);
    }
    view_puts(v, v->store, NULL, "bug"); /* of nobody */
    for (int i = 0; i < 6; i++) {
        sessile_memory_options_init(&mo);
        mo.agent = sessile_text(agents[i % 2]);
        mo.user = sessile_text(i / 2 ? users[i / 2 - 1] : "");
        mo.consent = sessile_text(i / 2 ? "yes" : "");
        must(sessile_memory_open(&m, v->store, &mo, &v->err), &v->err);
        sessile_memory_close(m);
    }
}

static void without_grants(void **state)
{
    views v;

    (void)state;
    views_open(&v, NULL);
    make_sessions(&v);
    compare_everybody(&v);
    views_close(&v);
}

/* On one's own session and on those of others, with some agents, everywhere, and on a
 * session that is gone, and made again. */
static void with_grants(void **state)
{
    static const sessile_slice code = {"code*", 5};
    sessile_grant_options o;
    views v;

    (void)state;
    views_open(&v, NULL);
    make_sessions(&v);
    for (int i = 0; i < 2; i++) { /* ann's bug: bob edits it, and ann herself */
        o = grant_of(i ? "ann" : "bob", "editor", "bug");
        o.owner = sessile_text("ann");
        view_grants(&v, v.store, &o);
    }
    o = grant_of("ann", "admin", "gone");
    o.agent = sessile_text("coder");
    o.owner = sessile_text("bob");
    view_grants(&v, v.store, &o);
    sessile_session_options gone = session_of("coder", "bob", "gone");
    must(sessile_delete(v.store, &gone, NULL, NULL, &v.err), &v.err);
    sessile_store *bob = view_of(&v, "bob", "editor");
    view_puts(&v, bob, "coder", "gone");
    sessile_store_close(bob);
    compare_everybody(&v);

    o = grant_of("bob", "editor", NULL);
    o.agents = &code;
    o.agent_count = 1;
    view_grants(&v, v.store, &o);
    o.user = NONE; /* whoever audits reads everywhere */
    o.holders = sessile_text("auditor");
    o.role = "viewer";
    o.agent_count = 0;
    view_grants(&v, v.store, &o);
    compare_everybody(&v);
    views_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_grants),
        cmocka_unit_test(with_grants),
    };
    return cmocka_run_group_tests_name("can", tests, NULL, NULL);
}
