/*
 * test_access.c: what is granted adds up and ends, one session can be shared, and who is
 * locked or revoked is refused, in other processes within a second.
 *
 * Own stores: WHY it forks, kills and damages files.
 */
#include "support/check.h"
#include "support/keyed.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "sessile_access.h"
#include "support/children.h"

#define HELLO sessile_text("{\"role\":\"user\",\"content\":\"hello there\"}")

typedef struct world {
    char *folder, path[600];
    sessile_store *store; /* the host's */
    sessile_error err;
} world;

static sessile_store *guarded(const char *path)
{
    sessile_store *store = keyed_open(path, KEYED_OLD);
    sessile_error err;

    must(sessile_store_guard(store, NULL, &err), &err);
    return store;
}

static int set_up(void **state)
{
    world *w = calloc(1, sizeof *w);

    w->folder = folder_make();
    snprintf(w->path, sizeof w->path, "%s/store", w->folder);
    w->store = guarded(w->path);
    *state = w;
    return 0;
}

static int tear_down(void **state)
{
    world *w = *state;

    sessile_store_close(w->store);
    folder_remove(w->folder);
    free(w);
    return 0;
}

static sessile_store *view_of(world *w, const char *user, const char *role)
{
    sessile_credential c;
    sessile_store *view;

    sessile_credential_init(&c);
    c.user = sessile_text(user);
    c.roles = &role;
    c.role_count = role != NULL;
    must(sessile_store_as(&view, w->store, &c, &w->err), &w->err);
    return view;
}

static sessile_session_options session_of(const char *agent, const char *user,
                                          const char *id)
{
    sessile_session_options o;

    sessile_session_options_init(&o);
    o.agent = sessile_text(agent);
    if (user)
        o.user = sessile_text(user);
    o.id = sessile_text(id);
    return o;
}

/* A session with one message. */
static void put(world *w, sessile_store *view, const char *agent, const char *id)
{
    sessile_session_options o = session_of(agent, NULL, id);
    sessile_session *s;

    must(sessile_create(&s, view, &o, &w->err), &w->err);
    must(sessile_append(s, HELLO, NULL, &w->err), &w->err);
    must(sessile_session_close(s, &w->err), &w->err);
}

static sessile_status resumed(world *w, sessile_store *view, const char *agent,
                              const char *user, const char *id, sessile_session **out)
{
    sessile_session_options o = session_of(agent, user, id);
    sessile_session *s;
    sessile_status status = sessile_resume(&s, view, &o, &w->err);

    if (out)
        *out = s;
    else
        sessile_session_close(s, NULL);
    return status;
}

static sessile_status read_of(world *w, sessile_session *s)
{
    sessile_message *rows;
    size_t count;
    sessile_status status = sessile_messages(s, NULL, &rows, &count, &w->err);

    sessile_free(rows);
    return status;
}

static sessile_status listed(world *w, sessile_store *view, size_t *count)
{
    sessile_listed *rows;
    sessile_status status = sessile_list(view, NULL, &rows, count, &w->err);

    sessile_free(rows);
    return status;
}

static sessile_grant_options grant_to(const char *user, const char *role)
{
    sessile_grant_options o;

    sessile_grant_options_init(&o);
    o.user = sessile_text(user);
    o.role = role;
    return o;
}

static sessile_id granted(world *w, sessile_store *by, const sessile_grant_options *o)
{
    sessile_id id;

    must(sessile_grant(by, o, &id, &w->err), &w->err);
    return id;
}

static int64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

#define FOREIGN "this is not yours, or there is no such session"

/* ------------------------------------------------------------------ grants */

static void a_granted_role_adds_up_and_ends(void **state)
{
    world *w = *state;
    sessile_store *bob = view_of(w, "bob", NULL), *eve = view_of(w, "eve", NULL);
    sessile_grant_options o = grant_to("bob", "viewer");
    sessile_principal who;
    size_t count;

    assert_int_equal(listed(w, bob, &count), SESSILE_DENIED);
    sessile_id viewer = granted(w, w->store, &o);
    must(listed(w, bob, &count), &w->err);
    assert_int_equal(listed(w, eve, &count), SESSILE_DENIED);
    o.role = "editor";
    sessile_id editor = granted(w, w->store, &o);
    put(w, bob, "main", "a");
    must(sessile_store_who(bob, &who, &w->err), &w->err);
    assert_int_equal(who.all, 0);
    must(sessile_grant_end(w->store, editor, &w->err), &w->err);
    sessile_session_options again = session_of("main", NULL, "b");
    sessile_session *s;
    assert_int_equal(sessile_create(&s, bob, &again, &w->err), SESSILE_DENIED);
    must(resumed(w, bob, "main", NULL, "a", NULL), &w->err);
    must(sessile_grant_end(w->store, viewer, &w->err), &w->err);
    assert_int_equal(listed(w, bob, &count), SESSILE_DENIED);
    assert_int_equal(sessile_grant_end(w->store, viewer, &w->err), SESSILE_NOTFOUND);
    sessile_store_close(bob);
    sessile_store_close(eve);
}

static void a_grant_ends_by_itself(void **state)
{
    world *w = *state;
    sessile_store *bob = view_of(w, "bob", NULL);
    sessile_grant_options o = grant_to("bob", "viewer");
    sessile_grant_row *rows;
    size_t count;

    o.until_ms = now_ms() + 60000;
    granted(w, w->store, &o);
    must(listed(w, bob, &count), &w->err);
    o.until_ms = now_ms() + 300;
    o.role = "admin";
    granted(w, w->store, &o);
    while (now_ms() < o.until_ms)
        usleep(10000);
    assert_int_equal(sessile_can(bob, SESSILE_MAY_DELETE_SESSION, sessile_text("main"),
                                 sessile_text("bob"), sessile_text("a")),
                     0);
    must(listed(w, bob, &count), &w->err); /* the other goes on */
    must(sessile_grants(w->store, &rows, &count, &w->err), &w->err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].role.size, 6);
    sessile_free(rows);
    o.until_ms = 1;
    assert_int_equal(sessile_grant(w->store, &o, NULL, &w->err), SESSILE_INVALID);
    sessile_store_close(bob);
}

static void holders_of_a_role_are_given_it(void **state)
{
    world *w = *state;
    sessile_store *bob = view_of(w, "bob", "viewer"), *eve = view_of(w, "eve", "auditor");
    sessile_grant_options o = grant_to("", "editor");

    o.holders = sessile_text("viewer");
    granted(w, w->store, &o);
    put(w, bob, "main", "a");
    assert_int_equal(resumed(w, eve, "main", "bob", "a", NULL), SESSILE_DENIED);
    sessile_store_close(bob);
    sessile_store_close(eve);
}

static void a_role_is_granted_for_some_agents(void **state)
{
    world *w = *state;
    sessile_store *bob = view_of(w, "bob", NULL);
    sessile_grant_options o = grant_to("bob", "editor");
    sessile_slice agents[] = {sessile_text("code*"), sessile_text("docs")};
    sessile_session *s;
    size_t count;

    o.agents = agents;
    o.agent_count = 2;
    granted(w, w->store, &o);
    put(w, bob, "coder", "a");
    put(w, bob, "docs", "a");
    must(resumed(w, bob, "coder", NULL, "a", &s), &w->err);
    must(sessile_append(s, HELLO, NULL, &w->err), &w->err);
    sessile_session_close(s, NULL);
    sessile_session_options main_a = session_of("main", NULL, "a");
    assert_int_equal(sessile_create(&s, bob, &main_a, &w->err), SESSILE_DENIED);
    assert_int_equal(listed(w, bob, &count), SESSILE_DENIED);
    assert_int_equal(resumed(w, bob, "coder", "ann", "a", NULL), SESSILE_DENIED);
    assert_string_equal(w->err.message, FOREIGN);
    sessile_store_close(bob);
}

static void an_owner_shares_one_session(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *bob = view_of(w, "bob", "editor"),
                  *eve = view_of(w, "eve", "editor");
    sessile_grant_options o = grant_to("bob", "viewer");
    sessile_grant_row *rows;
    sessile_session *s;
    size_t count;

    put(w, ann, "main", "bug");
    put(w, ann, "main", "other");
    put(w, bob, "main", "bug");
    o.session = sessile_text("bug");
    assert_int_equal(resumed(w, bob, "main", "ann", "bug", NULL), SESSILE_DENIED);
    sessile_id id = granted(w, ann, &o);

    must(resumed(w, bob, "main", "ann", "bug", &s), &w->err);
    must(read_of(w, s), &w->err);
    assert_int_equal(sessile_append(s, HELLO, NULL, &w->err), SESSILE_DENIED);
    assert_int_equal(resumed(w, bob, "main", "ann", "other", NULL), SESSILE_DENIED);
    assert_string_equal(w->err.message, FOREIGN);
    assert_int_equal(resumed(w, bob, "code", "ann", "bug", NULL), SESSILE_DENIED);
    assert_string_equal(w->err.message, FOREIGN);
    assert_int_equal(resumed(w, eve, "main", "ann", "bug", NULL), SESSILE_DENIED);
    sessile_session_options bug = session_of("main", "ann", "bug");
    assert_int_equal(sessile_delete(bob, &bug, NULL, NULL, &w->err), SESSILE_DENIED);
    must(resumed(w, bob, "main", NULL, "bug", NULL), &w->err); /* its own */
    must(listed(w, bob, &count), &w->err);
    assert_int_equal(count, 1);

    must(sessile_grants(bob, &rows, &count, &w->err), &w->err);
    assert_int_equal(count, 1);
    assert_int_equal(rows[0].id, id);
    assert_memory_equal(rows[0].owner.data, "ann", 4);
    assert_memory_equal(rows[0].session.data, "bug", 4);
    assert_memory_equal(rows[0].agent.data, "main", 5);
    assert_memory_equal(rows[0].by.data, "ann", 4);
    sessile_free(rows);
    must(sessile_grants(eve, &rows, &count, &w->err), &w->err);
    assert_int_equal(count, 0);
    sessile_free(rows);

    assert_int_equal(sessile_grant_end(bob, id, &w->err), SESSILE_NOTFOUND);
    must(sessile_grant_end(ann, id, &w->err), &w->err);
    assert_int_equal(read_of(w, s), SESSILE_DENIED); /* the handle that is open */
    sessile_session_close(s, NULL);
    assert_int_equal(resumed(w, bob, "main", "ann", "bug", NULL), SESSILE_DENIED);
    assert_string_equal(w->err.message, FOREIGN);
    sessile_store_close(ann);
    sessile_store_close(bob);
    sessile_store_close(eve);
}

static void nobody_gives_what_they_do_not_have(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *adam = view_of(w, "adam", "admin");
    sessile_grant_options o = grant_to("bob", "admin");

    put(w, ann, "main", "bug");
    o.session = sessile_text("bug");
    assert_int_equal(sessile_grant(ann, &o, NULL, &w->err), SESSILE_DENIED);
    o.role = "viewer";
    o.owner = sessile_text("eve");
    assert_int_equal(sessile_grant(ann, &o, NULL, &w->err), SESSILE_DENIED);
    o = grant_to("bob", "viewer");
    assert_int_equal(sessile_grant(ann, &o, NULL, &w->err), SESSILE_DENIED);
    must(sessile_grant(adam, &o, NULL, &w->err), &w->err);
    o.role = "wizard";
    assert_int_equal(sessile_grant(adam, &o, NULL, &w->err), SESSILE_INVALID);
    sessile_access_key_options k;
    char *key;
    sessile_access_key_options_init(&k);
    assert_int_equal(sessile_access_key(ann, &k, &key, &w->err), SESSILE_DENIED);
    assert_null(key);
    sessile_store_close(ann);
    sessile_store_close(adam);
}

static void a_view_of_a_view_has_no_more_by_grants(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *bob = view_of(w, "bob", "editor"),
                  *narrow;
    sessile_grant_options o = grant_to("bob", "editor");
    const char *viewer = "viewer";
    sessile_credential c;
    sessile_session *s;

    put(w, ann, "main", "bug");
    o.session = sessile_text("bug");
    granted(w, ann, &o);
    sessile_credential_init(&c);
    c.user = sessile_text("bob");
    c.roles = &viewer;
    c.role_count = 1;
    must(sessile_store_as(&narrow, bob, &c, &w->err), &w->err);
    must(resumed(w, narrow, "main", "ann", "bug", &s), &w->err);
    assert_int_equal(sessile_append(s, HELLO, NULL, &w->err), SESSILE_DENIED);
    sessile_session_close(s, NULL);
    sessile_store_close(narrow);
    c.session = sessile_text("mine"); /* this one alone */
    must(sessile_store_as(&narrow, bob, &c, &w->err), &w->err);
    assert_int_equal(resumed(w, narrow, "main", "ann", "bug", NULL), SESSILE_DENIED);
    sessile_store_close(narrow);
    must(resumed(w, bob, "main", "ann", "bug", &s), &w->err);
    must(sessile_append(s, HELLO, NULL, &w->err), &w->err);
    sessile_session_close(s, NULL);
    sessile_store_close(ann);
    sessile_store_close(bob);
}

/* Somebody without any role, who was given one session, gets through no other door. */
static void a_shared_session_opens_nothing_else(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor"), *bob = view_of(w, "bob", NULL);
    sessile_grant_options o = grant_to("bob", "editor");
    sessile_session_options own = session_of("main", NULL, "mine"),
                            gone = session_of("main", "ann", "gone");
    sessile_session *s;
    size_t count;

    put(w, ann, "main", "bug");
    o.session = sessile_text("bug");
    granted(w, ann, &o);
    put(w, ann, "main", "gone");
    o.session = sessile_text("gone");
    granted(w, ann, &o);
    must(sessile_delete(w->store, &gone, NULL, NULL, &w->err), &w->err);
    must(resumed(w, bob, "main", "ann", "bug", NULL), &w->err);
    assert_int_equal(sessile_create(&s, bob, &own, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_resume(&s, bob, &own, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_session_open(&s, bob, &own, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_session_open(&s, bob, &gone, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_delete(bob, &own, NULL, NULL, &w->err), SESSILE_DENIED);
    assert_int_equal(sessile_undelete(bob, &own, sessile_text(NULL), &w->err),
                     SESSILE_DENIED);
    assert_int_equal(listed(w, bob, &count), SESSILE_DENIED);
    must(listed(w, w->store, &count), &w->err);
    assert_int_equal(count, 1);
    sessile_store_close(ann);
    sessile_store_close(bob);
}

/* ------------------------------------------------------------------ locks */

static void who_is_locked_is_refused_at_once(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor");
    sessile_session *s;
    sessile_access_lock_row *rows;
    sessile_credential c;
    sessile_store *again;
    size_t count;

    put(w, ann, "main", "a");
    must(resumed(w, ann, "main", NULL, "a", &s), &w->err);
    for (int i = 0; i < 2; i++) /* twice is harmless */
        must(sessile_access_lock(w->store, sessile_text("ann"), sessile_text(NULL),
                                 sessile_text("left"), &w->err),
             &w->err);
    assert_int_equal(read_of(w, s), SESSILE_DENIED);
    assert_string_equal(w->err.message, "the credential is not accepted");
    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    assert_int_equal(sessile_store_as(&again, w->store, &c, &w->err), SESSILE_DENIED);
    assert_string_equal(w->err.message, "the credential is not accepted");
    must(sessile_access_locks(w->store, &rows, &count, &w->err), &w->err);
    assert_int_equal(count, 1);
    assert_memory_equal(rows[0].reason.data, "left", 5);
    sessile_free(rows);
    must(
        sessile_access_unlock(w->store, sessile_text("ann"), sessile_text(NULL), &w->err),
        &w->err);
    must(read_of(w, s), &w->err);
    assert_int_equal(
        sessile_access_unlock(w->store, sessile_text("ann"), sessile_text(NULL), &w->err),
        SESSILE_NOTFOUND);
    assert_int_equal(sessile_access_lock(w->store, sessile_text("a"), sessile_text("b"),
                                         sessile_text(NULL), &w->err),
                     SESSILE_INVALID);
    sessile_session_close(s, NULL);
    sessile_store_close(ann);
}

/* ------------------------------------------------------------------ other processes */

static void read_when_told(void *arg, int in, int out)
{
    world *w = arg;
    sessile_store *store = guarded(w->path);
    world own = {.store = store};
    sessile_store *ann = view_of(&own, "ann", "editor");
    sessile_session *s;

    must(resumed(&own, ann, "main", NULL, "a", &s), &own.err);
    for (;;) {
        child_tell(out, read_of(&own, s) == SESSILE_DENIED ? 'd' : 'r');
        if (child_hear(in) != 'g')
            break;
    }
    sessile_session_close(s, NULL);
    sessile_store_close(ann);
    sessile_store_close(store);
    _exit(0);
}

static void another_process_refuses_within_a_second(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor");
    child c;

    put(w, ann, "main", "a");
    c = child_start(read_when_told, w);
    assert_int_equal(child_hear(c.from), 'r');
    child_tell(c.to, 'g');
    assert_int_equal(child_hear(c.from), 'r');
    must(sessile_access_lock(w->store, sessile_text("ann"), sessile_text(NULL),
                             sessile_text(NULL), &w->err),
         &w->err);
    usleep(1010000);
    child_tell(c.to, 'g'); /* a call that begins a second later */
    assert_int_equal(child_hear(c.from), 'd');
    must(
        sessile_access_unlock(w->store, sessile_text("ann"), sessile_text(NULL), &w->err),
        &w->err);
    usleep(1010000);
    child_tell(c.to, 'g');
    assert_int_equal(child_hear(c.from), 'r');
    child_end(&c);
    sessile_store_close(ann);
}

/* Locks u0, u1, … and says each that is acknowledged. */
static void lock_until_killed(world *w, int out)
{
    sessile_store *store = guarded(w->path);

    for (int i = 0;; i++) {
        char user[20];
        snprintf(user, sizeof user, "u%d", i);
        if (sessile_access_lock(store, sessile_text(user), sessile_text(NULL),
                                sessile_text(NULL), &w->err) ||
            write(out, "l", 1) != 1)
            _exit(1);
    }
}

static void a_fact_that_was_acknowledged_survives_a_kill(void **state)
{
    enum { KILLS = 12 };
    world *w = *state;
    size_t before = 0;

    for (int i = 0; i < KILLS; i++) {
        sessile_access_lock_row *rows;
        size_t count, said = 0;
        int ends[2], status;
        char byte;

        assert_int_equal(pipe(ends), 0);
        pid_t pid = fork();
        if (pid == 0) {
            close(ends[0]);
            lock_until_killed(w, ends[1]);
        }
        close(ends[1]);
        assert_int_equal(read(ends[0], &byte, 1), 1);
        usleep((useconds_t)(i * 1700));
        kill(pid, SIGKILL);
        assert_int_equal(waitpid(pid, &status, 0), pid);
        assert_true(WIFSIGNALED(status));
        for (said = 1; read(ends[0], &byte, 1) == 1;)
            said++;
        close(ends[0]);
        sessile_store *store = guarded(w->path);
        must(sessile_access_locks(store, &rows, &count, &w->err), &w->err);
        sessile_free(rows);
        assert_true(count >= said && count >= before);
        before = count;
        must(sessile_access_lock(store, sessile_text("zoe"), sessile_text(NULL),
                                 sessile_text(NULL), &w->err),
             &w->err);
        sessile_store_close(store);
    }
}

/* ------------------------------------------------------------------ guarded stores */

static void a_store_stays_guarded(void **state)
{
    world *w = *state;
    sessile_guard_options o;
    sessile_store *store;
    sessile_session *s;
    size_t count;

    sessile_store_close(w->store);
    w->store = keyed_open(w->path, KEYED_OLD);
    sessile_session_options a = session_of("main", NULL, "a");
    must(sessile_create(&s, w->store, &a, &w->err), &w->err);
    must(sessile_session_close(s, &w->err), &w->err);
    sessile_guard_options_init(&o);
    o.profile = "standard";
    must(sessile_store_guard(w->store, &o, &w->err), &w->err);

    store = keyed_open(w->path, KEYED_OLD); /* by somebody who forgot it */
    assert_int_equal(listed(w, store, &count), SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "guarded"));
    assert_int_equal(resumed(w, store, "main", NULL, "a", NULL), SESSILE_DENIED);
    assert_int_equal(sessile_keys_rotate(store, NULL, NULL, &w->err), SESSILE_DENIED);
    sessile_store *view;
    sessile_credential c;
    sessile_credential_init(&c);
    assert_int_equal(sessile_store_as(&view, store, &c, &w->err), SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "guarded (standard)"));
    sessile_principal who;
    assert_int_equal(sessile_store_who(store, &who, &w->err), SESSILE_DENIED);
    assert_non_null(strstr(w->err.message, "guarded (standard)"));
    must(sessile_store_guard(store, NULL, &w->err), &w->err);
    must(listed(w, store, &count), &w->err);
    sessile_store_close(store);

    store = keyed_open(w->path, KEYED_OLD);
    sessile_guard_options_init(&o);
    o.off = 1;
    must(sessile_store_guard(store, &o, &w->err), &w->err);
    must(listed(w, store, &count), &w->err);
    sessile_store_close(store);
    store = keyed_open(w->path, KEYED_OLD); /* for good */
    must(listed(w, store, &count), &w->err);
    sessile_store_close(store);
}

static void a_damaged_control_log_lets_the_host_alone(void **state)
{
    world *w = *state;
    sessile_store *ann = view_of(w, "ann", "editor");
    sessile_guard_options o;
    char path[700];
    size_t count;
    FILE *file;

    put(w, ann, "main", "a");
    for (int i = 0; i < 2; i++) /* the second one is damaged next */
        must(sessile_access_lock(w->store, sessile_text(i ? "bob" : "zoe"),
                                 sessile_text(NULL), sessile_text(NULL), &w->err),
             &w->err);
    sessile_store_close(ann);
    sessile_store_close(w->store);
    snprintf(path, sizeof path, "%s/agents/guard.control/000.jsonl", w->path);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -60, SEEK_END), 0);
    int byte = fgetc(file);
    assert_int_equal(fseek(file, -60, SEEK_END), 0);
    fputc(byte == 'A' ? 'B' : 'A', file);
    fclose(file);

    w->store = keyed_open(w->path, KEYED_OLD);
    assert_int_equal(listed(w, w->store, &count), SESSILE_DENIED); /* it may be guarded */
    sessile_guard_options_init(&o);
    o.profile = "standard";
    must(sessile_store_guard(w->store, &o, &w->err), &w->err);
    must(listed(w, w->store, &count), &w->err);
    sessile_credential c;
    sessile_credential_init(&c);
    c.user = sessile_text("ann");
    assert_int_equal(sessile_store_as(&ann, w->store, &c, &w->err), SESSILE_DENIED);
    assert_string_equal(w->err.rule, "control");

    sessile_check *check; /* the host repairs it */
    sessile_checked step;
    must(sessile_check_open(&check, w->store, NULL, 1, &w->err), &w->err);
    do {
        must(sessile_check_next(check, &step, &w->err), &w->err);
    } while (step.file);
    sessile_check_close(check);
    ann = view_of(w, "ann", "editor");
    must(resumed(w, ann, "main", NULL, "a", NULL), &w->err);
    sessile_store_close(ann);
    c.user = sessile_text("zoe"); /* what could be read is in force */
    assert_int_equal(sessile_store_as(&ann, w->store, &c, &w->err), SESSILE_DENIED);
    assert_string_equal(w->err.rule, "");
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(a_granted_role_adds_up_and_ends),
        CASE(a_grant_ends_by_itself),
        CASE(holders_of_a_role_are_given_it),
        CASE(a_role_is_granted_for_some_agents),
        CASE(an_owner_shares_one_session),
        CASE(nobody_gives_what_they_do_not_have),
        CASE(a_view_of_a_view_has_no_more_by_grants),
        CASE(a_shared_session_opens_nothing_else),
        CASE(who_is_locked_is_refused_at_once),
        CASE(another_process_refuses_within_a_second),
        CASE(a_fact_that_was_acknowledged_survives_a_kill),
        CASE(a_store_stays_guarded),
        CASE(a_damaged_control_log_lets_the_host_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
