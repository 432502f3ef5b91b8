/*
 * test_authorize.c: a rule of the host's, in Lua, that can refuse a call of a view. That
 * each public function asks it is in test_doors, that threads do in
 * test_authorize_threads.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <sys/stat.h>
#include <unistd.h>

#include "guard/guard.h"
#include "sessile_guard.h"
#include "support/check.h"
#include "support/events.h"
#include "support/policies.h"
#include "support/sessions.h"

#include <cmocka.h>

#define HELLO    sessile_text("{\"role\":\"user\",\"content\":\"hello there\"}")
#define SENTENCE "a rule of this store's host does not allow this"

typedef struct world {
    char *folder;
    sessile_store *store, *view; /* the view: ann's, a role with every permission */
    sessile_error err;
} world;

static const char *path_of(const char *name)
{
    static char path[1024];

    snprintf(path, sizeof path, "%s/%s.lua", policies_folder(), name);
    return path;
}

static sessile_status set_guard(world *w, const char *rule)
{
    sessile_guard_options go;

    sessile_guard_options_init(&go);
    go.audit.on = 1;
    go.authorize = path_of(rule);
    return sessile_store_guard(w->store, &go, &w->err);
}

static void open_store(world *w)
{
    sessile_store_options so;

    w->folder = folder_make();
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&w->store, w->folder, &so, &w->err), &w->err);
}

static sessile_store *view_of(world *w, const char *user, const char *role)
{
    sessile_credential c;
    sessile_store *view;
    const sessile_slice agents[] = {sessile_text("main"), sessile_text("t*")};

    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.actor = sessile_text("a tool");
    c.source = sessile_text("10.0.0.1");
    c.roles = &role;
    c.role_count = 1;
    if (strcmp(role, "admin") != 0) {
        c.agents = agents;
        c.agent_count = 2;
    }
    must(sessile_store_as(&view, w->store, &c, &w->err), &w->err);
    return view;
}

/* A store with a rule whose function has this body, and a view. */
static void start(world *w, const char *body, const char *role)
{
    char text[4096];

    snprintf(text, sizeof text,
             "return { authorize = function(who, operation, object)\n%s\nend }", body);
    policies_write("rule", text);
    open_store(w);
    must(set_guard(w, "rule"), &w->err);
    w->view = view_of(w, "ann", role);
}

static void stop(world *w)
{
    sessile_store_close(w->view);
    sessile_store_close(w->store);
    folder_remove(w->folder);
    memset(w, 0, sizeof *w);
}

static sessile_status may(world *w, sessile_permission permission)
{
    sessile_operation o = {.name = sessile_text("tool"), .permission = permission};

    return sessile_may(w->view, &o, &w->err);
}

static sessile_status make(world *w, const char *id)
{
    sessile_session_options o = named(id ? id : "");
    sessile_session *s;
    sessile_status status = sessile_create(&s, w->view, &o, &w->err);

    if (!status)
        session_closed(s);
    return status;
}

static void assert_denied(const world *w, sessile_status status, const char *rule)
{
    assert_refused(status, SESSILE_DENIED, &w->err, SENTENCE);
    assert_string_equal(w->err.message, SENTENCE); /* and nothing else */
    assert_string_equal(w->err.rule, rule);
}

/* ------------------------------------------------------------------ what it takes away
 */

static void each_permission_can_be_taken_away(void **state)
{
    (void)state;
    for (int taken = 0; taken < SESSILE_PERMISSION_COUNT; taken++) {
        const char *name = sessile_permission_name((sessile_permission)taken);
        char body[300];
        world w = {0};

        snprintf(body, sizeof body,
                 "if operation.permission == '%s' then return false, 'not_%s' end\n"
                 "return true",
                 name, name);
        start(&w, body, "admin");
        for (int p = 0; p < SESSILE_PERMISSION_COUNT; p++) {
            if (p == SESSILE_MAY_IMPERSONATE)
                continue; /* which admin has not */
            sessile_status status = may(&w, (sessile_permission)p);
            if (p == taken) {
                snprintf(body, sizeof body, "authorize:not_%s", name);
                assert_denied(&w, status, body);
            } else {
                must(status, &w.err);
            }
        }
        stop(&w);
    }
}

static void it_sees_who_what_and_which(void **state)
{
    world w = {0};
    sessile_session_options o = named("s");
    sessile_session *s, *fork;

    (void)state;
    start(&w,
          "assert(who.user == 'ann' and who.actor == 'a tool' and who.method == 'host')\n"
          "assert(who.source == '10.0.0.1' and who.key == nil and who.session == nil)\n"
          "assert(who.roles[1] == 'editor' and #who.roles == 1 and who.all == false)\n"
          "assert(who.agents[1] == 'main' and who.agents[2] == 't*')\n"
          "assert(object.agent == 'main')\n"
          "if operation.name == 'list_with' then\n"
          "  assert(object.user == 'ann' and not object.id and not operation.changes)\n"
          "  return true\n"
          "end\n"
          "assert(object.user == 'ann' and object.id == 's')\n"
          "if operation.name == 'fork' then\n"
          "  assert(operation.permission == 'view_session')\n"
          "  assert(operation.also == 'create_session' and operation.changes)\n"
          "  return object.made.id ~= 'no' and object.made.user == 'ann', 'made'\n"
          "end\n"
          "assert(operation.name == 'create' or operation.name == 'append')\n"
          "return not object.made",
          "editor");
    must(sessile_create(&s, w.view, &o, &w.err), &w.err);
    must(sessile_append(s, HELLO, NULL, &w.err), &w.err);
    o = named("no");
    assert_denied(&w, sessile_fork(&fork, s, 1, &o, &w.err), "authorize:made");
    o = named("yes");
    must(sessile_fork(&fork, s, 1, &o, &w.err), &w.err);
    session_closed(fork);
    session_closed(s);

    sessile_list_options l;
    sessile_listed *rows;
    size_t count;
    sessile_list_options_init(&l);
    l.agent = sessile_text("main");
    must(sessile_list_with(w.view, &l, &rows, &count, &w.err), &w.err);
    assert_int_equal(count, 2);
    sessile_free(rows);
    stop(&w);
}

static void it_gives_nothing_and_is_not_asked_about_the_host(void **state)
{
    world w = {0};
    sessile_session_options o = named("s");
    sessile_session *s;

    (void)state;
    start(&w, "return true", "viewer");
    assert_refused(make(&w, "s"), SESSILE_DENIED, &w.err, "create_session");
    o.user = sessile_text("bob");
    assert_refused(sessile_resume(&s, w.view, &o, &w.err), SESSILE_DENIED, &w.err,
                   "not yours");
    stop(&w);

    start(&w, "return false", "admin");
    assert_denied(&w, make(&w, "s"), "authorize");
    o = named("s");
    must(sessile_create(&s, w.store, &o, &w.err), &w.err);
    must(sessile_append(s, HELLO, NULL, &w.err), &w.err);
    session_closed(s);
    stop(&w);
}

/* What is there is opened; what would be made is a session that is created. */
static void opening_what_is_not_there_is_creating(void **state)
{
    world w = {0};
    sessile_session *s;
    sessile_session_options o = named("s");

    (void)state;
    start(&w, "return operation.name ~= 'create' and not operation.changes, 'create'",
          "editor");
    assert_denied(&w, sessile_session_open(&s, w.view, &o, &w.err), "authorize:create");
    o.user = sessile_text("ann");
    must(sessile_create(&s, w.store, &o, &w.err), &w.err);
    session_closed(s);
    must(sessile_session_open(&s, w.view, &o, &w.err), &w.err);
    session_closed(s);
    stop(&w);
}

static int sessions_of(world *w)
{
    sessile_listed *rows;
    size_t count;

    must(sessile_list(w->store, NULL, &rows, &count, &w->err), &w->err);
    sessile_free(rows);
    return (int)count;
}

static void it_is_asked_before_anything_is_counted_or_looked_up(void **state)
{
    world w = {0};
    sessile_session *s;
    sessile_session_options o = named("none");

    (void)state;
    start(&w, "return false, 'closed'", "editor");
    /* whether there is such a session is not told */
    assert_denied(&w, sessile_resume(&s, w.view, &o, &w.err), "authorize:closed");
    for (int i = 0; i < 20; i++) /* the limit would be 10 a minute */
        assert_denied(&w, make(&w, NULL), "authorize:closed");
    assert_int_equal(sessions_of(&w), 0);
    stop(&w);
}

/* Another handle that a call uses has a guard of its own, which is asked as well. */
static void a_session_of_its_store_is_not_put_into_another(void **state)
{
    world w = {0}, other = {0};
    sessile_session_options o = named("s");
    sessile_session *s, *copy;

    (void)state;
    start(&w, "return operation.name ~= 'put', 'stays'", "editor");
    must(sessile_create(&s, w.view, &o, &w.err), &w.err);
    open_store(&other);
    assert_denied(&w, sessile_put(&copy, other.store, s, &o, &w.err), "authorize:stays");
    assert_int_equal(sessions_of(&other), 0);
    session_closed(s);
    sessile_store_close(other.store);
    folder_remove(other.folder);
    stop(&w);
}

/* ------------------------------------------------------------------ what fails */

static const struct hostile {
    const char *body, *why;
} hostile[] = {
    {"while true do end", "it spent its budget"},
    {"local s = 'x' while true do s = s .. s end", "it spent its budget"},
    {"while true do pcall(error) end", "it spent its budget"},
    {"return string.rep('x', 1 << 24)", "it spent its budget"},
    {"error(who.user)", "rule.lua:2: it raised an error"},
    {"error(string.rep(who.user, 1 << 16))", "rule.lua:2: it raised an error"},
    {"error({})", "it raised an error"},
    {"error()", "it raised an error"},
    {"", "true or false, got nil"},
    {"return", "true or false, got nil"},
    {"return nil", "true or false, got nil"},
    {"return 1", "true or false, got number"},
    {"return 'true'", "true or false, got string"},
    {"return {}", "true or false, got table"},
    {"return setmetatable({}, {__eq = function() return true end})", "got table"},
    {"return false, 7", "no name of a rule"},
    {"return false, ''", "no name of a rule"},
    {"return false, 'a b'", "no name of a rule"},
    {"return false, string.rep('x', 41)", "no name of a rule"},
    {"return false, who.user .. '!'", "no name of a rule"},
    {"who.user = 'bob' return true", "it raised an error"},
    {"who.roles[2] = 'admin' return true", "it raised an error"},
    {"rawset(who, 'user', 'bob') return true", "it raised an error"},
    {"operation.permission = nil return true", "it raised an error"},
    {"object.user = 'bob' return true", "it raised an error"},
    {"coroutine.wrap(function() while true do end end)() return true",
     "it raised an error"},
    {"return os.exit(0)", "it raised an error"},
    {"return require('x')", "it raised an error"},
    {"return load('return true')()", "it raised an error"},
    {"return true == debug.sethook()", "it raised an error"},
};

static void whatever_fails_refuses_and_tells_the_operator(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof hostile / sizeof *hostile; i++) {
        world w = {0};
        events e;
        char body[400];

        /* the name is one that an event must not have */
        snprintf(body, sizeof body, "if who.user == 'xANNx' then %s\nend return true",
                 hostile[i].body[0] ? hostile[i].body : "return");
        if (!strncmp(hostile[i].body, "return", 6) || !hostile[i].body[0])
            snprintf(body, sizeof body, "if who.user ~= 'xANNx' then return true end\n%s",
                     hostile[i].body);
        start(&w, body, "editor");
        sessile_store_close(w.view);
        w.view = view_of(&w, "xANNx", "editor");
        sessile_status status = make(&w, "s");
        if (status != SESSILE_DENIED)
            fail_msg("%s: %s", hostile[i].body, sessile_status_name(status));
        assert_denied(&w, status, "authorize");
        events_read(&e, w.store->who->guard, w.store->core);
        if (events_with(&e, 0, "\"rule\":\"authorize\"", hostile[i].why) != 1)
            assert_events(&e, 0, 1, "\"operation\":\"create\"", hostile[i].why);
        assert_events(&e, 0, 0, "xANNxxANNx", NULL);
        assert_events(&e, 0, 0, "\"why\":\"xANNx", NULL);
        events_free(&e);
        /* of an operation of the host's, too */
        assert_denied(&w, may(&w, SESSILE_MAY_VIEW_SESSION), "authorize");
        events_read(&e, w.store->who->guard, w.store->core);
        if (events_with(&e, 0, "\"operation\":\"host:tool\"", hostile[i].why) != 1)
            assert_events(&e, 0, 1, "\"operation\":\"host:tool\"", hostile[i].why);
        events_free(&e);
        /* and the next call of somebody else is answered */
        sessile_store_close(w.view);
        w.view = view_of(&w, "bob", "editor");
        must(make(&w, "s"), &w.err);
        stop(&w);
    }
}

static void nothing_is_left_for_the_next_call(void **state)
{
    world w = {0};

    (void)state;
    start(&w,
          "seen = (seen or 0) + 1\n"
          "string.seen = (string.seen or 0) + 1\n"
          "return seen == 1 and string.seen == 1",
          "editor");
    for (int i = 0; i < 3; i++)
        must(make(&w, NULL), &w.err);
    stop(&w);
}

/* ------------------------------------------------------------------ its file */

static void only_a_file_of_ours_is_a_rule(void **state)
{
    static const struct wrong {
        const char *text;
        sessile_status status;
        const char *part;
    } wrong[] = {
        {"return {}", SESSILE_POLICY, "authorize is a function, got nil"},
        {"return { authorize = true }", SESSILE_POLICY, "got boolean"},
        {"return { authorise = function() end }", SESSILE_POLICY, "not 'authorise'"},
        {"return function() return true end", SESSILE_POLICY, "returns its table"},
        {"return {", SESSILE_POLICY, "rule.lua:1"},
        {"while true do end", SESSILE_POLICY, "budget"},
    };
    world w = {0};

    (void)state;
    open_store(&w);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        policies_write("rule", wrong[i].text);
        assert_refused(set_guard(&w, "rule"), wrong[i].status, &w.err, wrong[i].part);
    }
    assert_refused(set_guard(&w, "none"), SESSILE_NOTFOUND, &w.err, "there is no rule");
    policies_write("rule", "return { authorize = function() return true end }");
    assert_int_equal(chmod(path_of("rule"), 0620), 0);
    assert_refused(set_guard(&w, "rule"), SESSILE_DENIED, &w.err, "written by others");
    assert_int_equal(chmod(path_of("rule"), 0600), 0);
    if (geteuid() == 0) {
        assert_int_equal(chown(path_of("rule"), 12345, 12345), 0);
        assert_refused(set_guard(&w, "rule"), SESSILE_DENIED, &w.err, "another user");
        assert_int_equal(chown(path_of("rule"), 0, 0), 0);
    }
    char link[1024];
    snprintf(link, sizeof link, "%s/linked.lua", policies_folder());
    assert_int_equal(symlink("rule.lua", link), 0);
    assert_int_equal(set_guard(&w, "linked"), SESSILE_DENIED);
    /* and the store has no guard yet */
    assert_null(w.store->who);
    must(set_guard(&w, "rule"), &w.err);
    sessile_store_close(w.store);
    folder_remove(w.folder);
}

static void it_is_read_when_the_guard_is_set(void **state)
{
    world w = {0};

    (void)state;
    start(&w, "return false, 'first'", "editor");
    policies_write("rule", "return { authorize = function() return true end }");
    assert_denied(&w, make(&w, NULL), "authorize:first");
    sessile_store_close(w.view);
    sessile_store_close(w.store);

    sessile_store_options so;
    sessile_store_options_init(&so);
    so.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open(&w.store, w.folder, &so, &w.err), &w.err);
    must(set_guard(&w, "rule"), &w.err);
    w.view = view_of(&w, "ann", "editor");
    must(make(&w, NULL), &w.err);
    stop(&w);
}

#define IN_FOLDER(test) \
    cmocka_unit_test_setup_teardown(test, policies_set_up, policies_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_FOLDER(each_permission_can_be_taken_away),
        IN_FOLDER(it_sees_who_what_and_which),
        IN_FOLDER(it_gives_nothing_and_is_not_asked_about_the_host),
        IN_FOLDER(opening_what_is_not_there_is_creating),
        IN_FOLDER(it_is_asked_before_anything_is_counted_or_looked_up),
        IN_FOLDER(a_session_of_its_store_is_not_put_into_another),
        IN_FOLDER(whatever_fails_refuses_and_tells_the_operator),
        IN_FOLDER(nothing_is_left_for_the_next_call),
        IN_FOLDER(only_a_file_of_ours_is_a_rule),
        IN_FOLDER(it_is_read_when_the_guard_is_set),
    };
    return cmocka_run_group_tests_name("authorize", tests, NULL, NULL);
}
