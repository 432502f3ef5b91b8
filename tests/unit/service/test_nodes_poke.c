/*
 * test_nodes_poke.c: what is written at a server that does not own the session is seen at
 * once by those who watch it at the owner. The owners here look by themselves only once
 * in ten minutes.
 */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/os.h"
#include "sessile_access.h"
#include "support/check.h"
#include "unit/service/trio.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { PATIENCE_S = 20 };
static const service_settings RARELY = {.ms = {.look = 600000}};

/* ---------------------------------------------------------------------- helpers */

/* A call of JSON, which is served where it arrives: 1: it succeeded. */
static int post(const trio *t, int node, const char *method, const char *body)
{
    struct sockaddr_in to = {.sin_family = AF_INET};
    char request[1000], answer[2000] = "";
    size_t size = 0;
    ssize_t n;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &to.sin_addr), 1);
    to.sin_port = htons((uint16_t)atoi(strrchr(trio_address(t, node), ':') + 1));
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    snprintf(request, sizeof request,
             "POST /sessile.v1.SessionService/%s HTTP/1.1\r\nhost: "
             "localhost\r\nauthorization: "
             "Bearer %s\r\ncontent-type: application/json\r\ncontent-length: "
             "%zu\r\nconnection: close\r\n\r\n%s",
             method, t->key ? t->key : "none", strlen(body), body);
    assert_int_equal(write(fd, request, strlen(request)), strlen(request));
    while (size < sizeof answer - 1 &&
           (n = read(fd, answer + size, sizeof answer - 1 - size)) > 0)
        size += (size_t)n;
    close(fd);
    answer[size] = '\0';
    if (strncmp(answer, "HTTP/1.1 200", 12) != 0)
        print_message("# %s\n", answer);
    return strncmp(answer, "HTTP/1.1 200", 12) == 0;
}

static void append_at(const trio *t, int node, const char *id)
{
    char body[300];
    snprintf(body, sizeof body,
             "{\"session\":{\"id\":\"%s\"},\"message\":{\"role\":\"user\",\"content\":"
             "\"hello\"}}",
             id);
    assert_true(post(t, node, "AppendMessage", body));
}

/* Turns until so many events came; 0: they did not. */
static int came(trio *t, const reply *r, size_t events)
{
    uint64_t until =
        os_current->clock_us(os_current->ud) + (uint64_t)PATIENCE_S * 1000000;
    while (r->messages < events && !r->ended &&
           os_current->clock_us(os_current->ud) < until)
        rpc_loop_turn(t->loop, 20);
    return r->messages >= events;
}

/* A stream at the owner of a session; what is there was sent. */
static rpc_request *watch_at(trio *t, int owner, const char *id, reply *r)
{
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__EventsRequest request = SESSILE__V1__EVENTS_REQUEST__INIT;
    names.id = (char *)id;
    request.session = &names;
    rpc_request *made = trio_begin(t, owner, "StreamSessionEvents", &request.base, r);
    assert_true(came(t, r, 1)); /* up to here */
    return made;
}

static void stop_watching(rpc_request *watching, reply *r)
{
    if (!r->ended)
        rpc_request_cancel(watching);
    reply_free(r);
}

/* ---------------------------------------------------------------------- tests */

static void check_an_event_comes_at_once(int guarded)
{
    trio t;
    reply r = {0};
    trio_open(&t, NULL, &RARELY, guarded);
    int owner = trio_settled(&t, "s", -1);
    rpc_request *watching = watch_at(&t, owner, "s", &r);
    append_at(&t, (owner + 1) % TRIO, "s");
    if (!came(&t, &r, 3)) /* the entry, and up to it */
        fail_msg("no event came of what another node wrote");
    stop_watching(watching, &r);
    trio_close(&t);
}

static void an_event_of_another_node_comes_at_once(void **state)
{
    (void)state;
    check_an_event_comes_at_once(0);
}

/* The owner judges the credential of the call that wrote. */
static void an_event_of_another_node_comes_at_once_under_a_guard(void **state)
{
    (void)state;
    check_an_event_comes_at_once(1);
}

/* However many are written, and however few pokes say so. */
static void each_of_many_events_comes(void **state)
{
    enum { WRITES = 40 };
    trio t;
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, &RARELY, 0);
    int owner = trio_settled(&t, "s", -1);
    rpc_request *watching = watch_at(&t, owner, "s", &r);
    for (int i = 0; i < WRITES; i++)
        append_at(&t, (owner + 1 + i % 2) % TRIO, "s");
    if (!came(&t, &r, 1 + WRITES + 1))
        fail_msg("%zu events came of %d writes", r.messages, WRITES);
    stop_watching(watching, &r);
    trio_close(&t);
}

static rpc_code poked(trio *t, const char *user, const char *id, const char *key)
{
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    reply r = {0};
    names.id = (char *)id;
    names.user = (char *)user;
    trio_call_as(t, 0, "/sessile.v1.NodeService/Poke", &names.base, key, 0, &r);
    reply_free(&r);
    return r.code;
}

static void a_poke_grants_nothing(void **state)
{
    trio t;
    (void)state;
    trio_open(&t, NULL, &RARELY, 1);
    assert_int_equal(poked(&t, "ann", "s", ""), RPC_UNAUTHENTICATED);
    assert_int_equal(poked(&t, "ann", "s", "sesk_wrong"), RPC_UNAUTHENTICATED);
    assert_int_equal(poked(&t, "bob", "s", t.key), RPC_PERMISSION_DENIED);
    assert_int_equal(poked(&t, "ann", "", t.key), RPC_INVALID_ARGUMENT);
    /* whether it is there, or watched, is not told */
    assert_int_equal(poked(&t, "ann", "none", t.key), RPC_OK);
    trio_make(&t, 0, "s");
    assert_int_equal(poked(&t, "ann", "s", t.key), RPC_OK);
    trio_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_of_another_node_comes_at_once),
        cmocka_unit_test(an_event_of_another_node_comes_at_once_under_a_guard),
        cmocka_unit_test(each_of_many_events_comes),
        cmocka_unit_test(a_poke_grants_nothing),
    };
    return cmocka_run_group_tests_name("nodes: pokes", tests, NULL, NULL);
}
