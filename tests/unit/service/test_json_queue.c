/*
 * test_json_queue.c: calls of JSON wait for their session like all others, and those that
 * are too many are refused before anything was begun.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "api/inside.h"
#include "support/runs.h"
#include "unit/rpc/wire.h"

enum { MAY_WAIT = 32, TOO_MANY = 8, CALLS = MAY_WAIT + TOO_MANY, PATIENCE = 600 };

typedef struct world {
    sessile_store *store;
    serving s;
    sessile_backend_log *held;
    struct {
        int fd, ended;
        char text[2000]; /* of the answer */
        size_t size;
    } calls[CALLS];
} world;

/* A session whose writers wait. */
static void hold(world *w)
{
    const store *st = api_backend(w->store);
    sessile_error err;
    int replaced;
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = names_of("busy");
    serve_ok(&w->s, "CreateSession", &r);
    assert_int_equal(st->table->open(st->self, "main", "busy", &w->held, &err),
                     SESSILE_OK);
    assert_int_equal(
        st->table->lock(w->held, SESSILE_LOCK_EXCLUSIVE, 1000, &replaced, &err),
        SESSILE_OK);
}

static void let_go(world *w)
{
    const store *st = api_backend(w->store);
    st->table->unlock(w->held);
    st->table->close(w->held);
}

static void post(world *w, int i)
{
    char body[200], request[600];
    int size = snprintf(body, sizeof body,
                        "{\"session\":{\"id\":\"busy\"},\"message\":"
                        "{\"role\":\"user\",\"content\":\"%d\"}}",
                        i);
    int all = snprintf(request, sizeof request,
                       "POST /sessile.v1.SessionService/AppendMessage HTTP/1.1\r\n"
                       "Host: localhost\r\nConnection: close\r\n"
                       "Content-Type: application/json\r\nContent-Length: %d\r\n\r\n%s",
                       size, body);
    w->calls[i].fd = wire_open(service_address(w->s.service));
    assert_int_equal(wire_send(w->calls[i].fd, request, (size_t)all), 0);
}

/* Reads replies until `wanted` calls have ended. */
static void wait_for_answers(world *w, int wanted)
{
    int ended = 0;
    for (int turn = 0; turn < PATIENCE && ended < wanted; turn++) {
        ended = 0;
        for (int i = 0; i < CALLS; i++) {
            char *to = w->calls[i].text + w->calls[i].size;
            if (!w->calls[i].ended)
                w->calls[i].size += wire_read(w->calls[i].fd, to,
                                              sizeof w->calls[i].text - w->calls[i].size,
                                              2, &w->calls[i].ended);
            ended += w->calls[i].ended;
        }
    }
    assert_int_equal(ended, wanted);
}

static int count(const world *w, const char *text)
{
    int n = 0;
    for (int i = 0; i < CALLS; i++)
        n += strstr(w->calls[i].text, text) != NULL;
    return n;
}

static void those_that_are_too_many_for_a_session_are_refused(void **state)
{
    static world w;
    Sessile__V1__MessagesRequest r = SESSILE__V1__MESSAGES_REQUEST__INIT;
    (void)state;
    w.store = run_store("ram:");
    serving_start(&w.s, w.store, NULL);
    hold(&w);
    for (int i = 0; i < CALLS; i++)
        post(&w, i);
    wait_for_answers(&w, TOO_MANY);
    assert_int_equal(count(&w, "HTTP/1.1 503"), TOO_MANY);
    assert_int_equal(count(&w, "too many calls wait for this session"), TOO_MANY);
    let_go(&w);
    wait_for_answers(&w, CALLS);
    assert_int_equal(count(&w, "HTTP/1.1 200"), MAY_WAIT);
    r.session = names_of("busy");
    const Sessile__V1__Messages *m = serve_ok(&w.s, "GetMessages", &r);
    assert_int_equal(m->n_messages, MAY_WAIT);
    for (int i = 0; i < CALLS; i++)
        close(w.calls[i].fd);
    serving_stop(&w.s);
    sessile_store_close(w.store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(those_that_are_too_many_for_a_session_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
