/*
 * test_strangers.c: nobody is kept out of a session by calls of others who may not use
 * it, whatever they name.
 *
 * A session is held, so that its owner's calls wait for it. Calls of strangers that name
 * it are answered meanwhile, and take none of the owner's places.
 */
#include "users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/inside.h"
#include "service/server.h"
#include "support/runs.h"
#include "unit/rpc/wire.h"

enum { PLACES = 32 /* of a user, for one session */ };

typedef struct world {
    users u;
    sessile_backend_log *held;
    char name[256]; /* of the log of ann's session */
    stream waits[PLACES], strangers[PLACES];
} world;

static int take_name(void *arg, const char *folder, const char *name)
{
    (void)folder;
    snprintf(arg, sizeof((world *)NULL)->name, "%s", name);
    return 0;
}

/* From now on whoever writes to ann's session "s" waits. */
static void hold(world *w)
{
    const store *st = api_backend(w->u.store);
    sessile_error err;
    int replaced;
    if (st->table->list(st->self, "main", take_name, w->name, &err) ||
        st->table->open(st->self, "main", w->name, &w->held, &err) ||
        st->table->lock(w->held, SESSILE_LOCK_EXCLUSIVE, 1000, &replaced, &err))
        fail_msg("%s", err.message);
}

static void let_go(world *w)
{
    const store *st = api_backend(w->u.store);
    st->table->unlock(w->held);
    st->table->close(w->held);
}

static void begin_append(world *w, stream *st, const char *user)
{
    Sessile__V1__AppendRequest r = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    json.text = (char *)"{\"role\":\"user\",\"content\":\"hello\"}";
    r.session = names_of("s");
    if (user)
        r.session->user = (char *)user;
    r.message = &json;
    stream_begin(&w->u.s, st, "AppendMessage", &r);
}

/* Ann writes, and waits. */
static void begin_world(world *w)
{
    memset(w, 0, sizeof *w);
    users_open(&w->u);
    hold(w);
    begin_append(w, &w->waits[0], "ann");
    while (pool_jobs(w->u.s.service->pool) == 0)
        rpc_loop_turn(w->u.s.loop, 1);
}

/* All of ann's places are still hers. */
static void end_world(world *w)
{
    users_call_as(&w->u, ANN);
    for (int i = 1; i < PLACES; i++)
        begin_append(w, &w->waits[i], i % 2 ? NULL : "ann"); /* which is the same */
    while (pool_jobs(w->u.s.service->pool) < PLACES)
        rpc_loop_turn(w->u.s.loop, 1);
    let_go(w);
    for (int i = 0; i < PLACES; i++) {
        stream_wait_end(&w->waits[i]);
        if (w->waits[i].code != RPC_OK)
            fail_msg("a call of the owner: %s", w->waits[i].message);
        stream_done(&w->waits[i]);
    }
    users_close(&w->u);
}

/* As many calls as fill the queue of a session: each is answered while it is held. */
static void strangers_are_answered(world *w, const char *user, rpc_code code)
{
    for (int i = 0; i < PLACES; i++)
        begin_append(w, &w->strangers[i], user);
    for (int i = 0; i < PLACES; i++) {
        stream_wait_end(&w->strangers[i]);
        assert_int_equal(w->strangers[i].code, code);
        stream_done(&w->strangers[i]);
    }
}

static void those_without_a_credential_keep_nobody_out(void **state)
{
    static world w;
    (void)state;
    begin_world(&w);
    users_call_as(&w.u, -1);
    strangers_are_answered(&w, NULL, RPC_UNAUTHENTICATED);
    strangers_are_answered(&w, "ann", RPC_UNAUTHENTICATED);
    end_world(&w);
}

static void those_with_a_wrong_one_keep_nobody_out(void **state)
{
    static const rpc_header wrong[] = {{"authorization", "Bearer sesk_no_such_key"},
                                       {NULL, NULL}};
    static world w;
    (void)state;
    begin_world(&w);
    w.u.s.headers = wrong;
    strangers_are_answered(&w, NULL, RPC_UNAUTHENTICATED);
    strangers_are_answered(&w, "ann", RPC_UNAUTHENTICATED);
    end_world(&w);
}

static void other_users_keep_nobody_out(void **state)
{
    static world w;
    (void)state;
    begin_world(&w);
    users_call_as(&w.u, BOB);
    strangers_are_answered(&w, "ann", RPC_PERMISSION_DENIED);
    end_world(&w);
}

/* Bob's session of the same name is another one, and waits for nobody. */
static void a_session_of_the_same_name_does_not_wait(void **state)
{
    static world w;
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    (void)state;
    begin_world(&w);
    users_call_as(&w.u, BOB);
    r.session = names_of("s");
    serve_ok(&w.u.s, "CreateSession", &r);
    append_by(&w.u.s, "s", "his own");
    r.session = names_of("s");
    end_world(&w);
}

static void strangers_who_speak_json_are_answered(void **state)
{
    static const char body[] = "{\"session\":{\"user\":\"ann\",\"id\":\"s\"},\"message\":"
                               "{\"role\":\"user\",\"content\":\"x\"}}";
    static world w;
    char request[1000], text[2000];
    (void)state;
    begin_world(&w);
    int size = snprintf(request, sizeof request,
                        "POST /sessile.v1.SessionService/AppendMessage HTTP/1.1\r\n"
                        "Host: localhost\r\nConnection: close\r\n"
                        "Authorization: %s\r\nContent-Type: application/json\r\n"
                        "Content-Length: %zu\r\n\r\n%s",
                        w.u.bearer[BOB], sizeof body - 1, body);
    int fd = wire_open(service_address(w.u.s.service));
    assert_int_equal(wire_send(fd, request, (size_t)size), 0);
    wire_read(fd, text, sizeof text, 20000, NULL);
    close(fd);
    assert_non_null(strstr(text, "HTTP/1.1 403"));
    assert_non_null(strstr(text, "permission_denied"));
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_without_a_credential_keep_nobody_out),
        cmocka_unit_test(those_with_a_wrong_one_keep_nobody_out),
        cmocka_unit_test(other_users_keep_nobody_out),
        cmocka_unit_test(a_session_of_the_same_name_does_not_wait),
        cmocka_unit_test(strangers_who_speak_json_are_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
