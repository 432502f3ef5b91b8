/*
 * test_replies.c: a reply that is larger than all replies together may be is refused with
 * a sentence, by gRPC and as JSON, and the server goes on.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "support/runs.h"
#include "unit/rpc/wire.h"

enum { REPLIES = 256 * 1024, LARGE = 400 * 1024 };

typedef struct world {
    sessile_store *store;
    serving s;
} world;

/* The session "s" with a message that is larger than all replies may be. */
static void start(world *w)
{
    service_settings settings;
    sessile_session_options o;
    sessile_session *s;
    char *body = malloc(LARGE);
    assert_non_null(body);
    memset(&settings, 0, sizeof settings);
    settings.size.replies = REPLIES;
    w->store = run_store("ram:");
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    assert_int_equal(sessile_create(&s, w->store, &o, NULL), SESSILE_OK);
    memset(body, 'x', LARGE);
    memcpy(body, "{\"role\":\"user\",\"content\":\"", 26);
    memcpy(body + LARGE - 2, "\"}", 2);
    assert_int_equal(sessile_append(s, (sessile_slice){body, LARGE}, NULL, NULL),
                     SESSILE_OK);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    free(body);
    serving_start(&w->s, w->store, &settings);
}

static void stop(world *w)
{
    serving_stop(&w->s);
    sessile_store_close(w->store);
}

static void by_grpc(void **state)
{
    world w;
    char status[32];
    Sessile__V1__ContextRequest r = SESSILE__V1__CONTEXT_REQUEST__INIT;
    Sessile__V1__SessionRequest small = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    start(&w);
    r.session = names_of("s");
    assert_int_equal(serve_fails(&w.s, "GetContext", &r, status), RPC_RESOURCE_EXHAUSTED);
    assert_string_equal(status, "ELIMIT");
    small.session = names_of("s");
    serve_ok(&w.s, "ResumeSession", &small);
    stop(&w);
}

static void post(const world *w, const char *method, char *reply, size_t size)
{
    static const char body[] = "{\"session\":{\"id\":\"s\"}}";
    char request[400];
    int n = snprintf(request, sizeof request,
                     "POST /sessile.v1.SessionService/%s HTTP/1.1\r\n"
                     "Host: localhost\r\nConnection: close\r\n"
                     "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n%s",
                     method, sizeof body - 1, body);
    int fd = wire_open(service_address(w->s.service));
    assert_int_equal(wire_send(fd, request, (size_t)n), 0);
    wire_read(fd, reply, size, 20000, NULL);
    close(fd);
}

static void as_json(void **state)
{
    world w;
    char reply[2000];
    (void)state;
    start(&w);
    post(&w, "GetContext", reply, sizeof reply);
    assert_non_null(strstr(reply, "HTTP/1.1 429"));
    assert_non_null(strstr(reply, "\"code\":\"resource_exhausted\""));
    assert_non_null(strstr(reply, "ask for less"));
    assert_non_null(strstr(reply, "\"status\":\"ELIMIT\""));
    post(&w, "ResumeSession", reply, sizeof reply);
    assert_non_null(strstr(reply, "HTTP/1.1 200"));
    stop(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_grpc),
        cmocka_unit_test(as_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
