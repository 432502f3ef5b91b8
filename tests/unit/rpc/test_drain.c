/*
 * test_drain.c: ends that lose no call: a listener that drains, a connection that is old
 * or idle; and a listener that is served by several loops.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/rpc/caller.h"
#include "unit/rpc/echo.h"
#include "unit/rpc/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct client {
    rpc_loop *loop;
    rpc_channel *channel;
} client;

static void client_open(client *c, const char *address, const rpc_limits *limits)
{
    sessile_error err;
    assert_int_equal(rpc_loop_open(&c->loop, limits, NULL, &err), SESSILE_OK);
    assert_int_equal(rpc_channel_open(&c->channel, c->loop, address, NULL, limits, &err),
                     SESSILE_OK);
}

static void client_close(client *c)
{
    rpc_channel_close(c->channel);
    rpc_loop_close(c->loop);
}

/* A call that was begun before goes on; its connection ends after it. */
static void test_a_listener_that_drains_lets_calls_finish(void **state)
{
    echo e;
    client c;
    answer stream = {0}, late = {0};
    char address[64];
    (void)state;
    echo_start(&e, 2, "127.0.0.1:0", NULL, NULL);
    snprintf(address, sizeof address, "%s", e.address);
    client_open(&c, address, NULL);
    ask_begin(c.channel, &stream, "Stream", NULL, 0, "a", 1, 0);
    while (stream.messages < 1)
        rpc_loop_turn(c.loop, 100);
    rpc_listener_drain(e.listener);
    turn_for(c.loop, 1000); /* past the second GOAWAY */
    assert_int_equal(stream.ended, 0);
    assert_int_equal(rpc_request_send(stream.request, "b", 1), 0);
    while (stream.messages < 2 && !stream.ended)
        rpc_loop_turn(c.loop, 100);
    rpc_request_end(stream.request);
    answer_wait(c.loop, &stream);
    assert_int_equal(stream.code, RPC_OK);
    assert_int_equal(stream.messages, 2);
    turn_for(c.loop, 20);
    assert_true(echo_empty(&e));
    ask(c.loop, c.channel, &late, "Unary", "", 0, 0);
    assert_int_equal(late.code, RPC_UNAVAILABLE);
    assert_int_equal(late.unbegun, 1);
    answer_free(&stream);
    answer_free(&late);
    client_close(&c);
    echo_stop(&e);
}

/* Calls all the time, while connections end by their age: none fails. */
static void test_old_connections_go_and_no_call_fails(void **state)
{
    echo e;
    client c;
    rpc_limits limits;
    (void)state;
    rpc_limits_init(&limits);
    limits.ms.age = 50;
    echo_start(&e, 1, "127.0.0.1:0", &limits, NULL);
    client_open(&c, e.address, NULL);
    for (int i = 0; i < 100 || (echo_look(&e).accepted < 5 && i < 20000); i++) {
        answer a = {0};
        ask(c.loop, c.channel, &a, "Later", "x", 1, 0);
        assert_int_equal(a.code, RPC_OK);
        answer_free(&a);
    }
    assert_in_range(echo_look(&e).accepted, 5, 20000);
    client_close(&c);
    assert_true(echo_empty(&e));
    echo_stop(&e);
}

static void test_an_idle_connection_ends(void **state)
{
    echo e;
    client c;
    rpc_limits limits;
    answer a = {0};
    (void)state;
    rpc_limits_init(&limits);
    limits.ms.idle = 100;
    echo_start(&e, 1, "127.0.0.1:0", &limits, NULL);
    client_open(&c, e.address, NULL);
    ask(c.loop, c.channel, &a, "Unary", "x", 1, 0);
    answer_free(&a);
    assert_true(rpc_channel_silence(c.channel) >= 0);
    for (int i = 0; i < 1000 && rpc_channel_silence(c.channel) >= 0; i++)
        rpc_loop_turn(c.loop, 20);
    assert_int_equal(rpc_channel_silence(c.channel), -1);
    assert_true(echo_empty(&e));
    ask(c.loop, c.channel, &a, "Unary", "x", 1, 0);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
    client_close(&c);
    echo_stop(&e);
}

/* HTTP/1.1 says it in its reply. */
static void test_draining_ends_kept_connections(void **state)
{
    static const char get[] = "GET /slow HTTP/1.1\r\nHost: x\r\n\r\n";
    echo e;
    char got[4096];
    int idle, busy, ended;
    (void)state;
    echo_start(&e, 1, "127.0.0.1:0", NULL, NULL);
    idle = wire_open(e.address);
    wire_send(idle, get, sizeof get - 1);
    wire_read(idle, got, sizeof got, 1000, &ended);
    assert_int_equal(ended, 0);
    assert_null(strstr(got, "connection: close"));
    busy = wire_open(e.address);
    wire_send(busy, "GET /hello HTTP/1.1\r\n", 21);
    assert_true(echo_until(&e.begun, 1));
    rpc_listener_drain(e.listener);
    assert_int_equal(wire_drain(idle, 60000), 1);
    wire_send(busy, "Host: x\r\n\r\n", 11);
    wire_read(busy, got, sizeof got, 60000, &ended);
    assert_int_equal(ended, 1);
    assert_true(strncmp(got, "HTTP/1.1 200", 12) == 0);
    assert_non_null(strstr(got, "connection: close"));
    close(idle);
    close(busy);
    assert_true(echo_empty(&e));
    echo_stop(&e);
}

static int listening_socket(char address[64])
{
    struct sockaddr_in at;
    socklen_t size = sizeof at;
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    memset(&at, 0, sizeof at);
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(bind(fd, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(fd, 8), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &size), 0);
    snprintf(address, 64, "127.0.0.1:%d", ntohs(at.sin_port));
    return fd;
}

/* The system connects, and nobody says a word: a server that is stopped. */
static void test_a_frozen_server_is_given_up(void **state)
{
    client c;
    rpc_limits limits;
    answer a = {0};
    char address[64];
    int fd = listening_socket(address);
    (void)state;
    rpc_limits_init(&limits);
    limits.ms.ping = 20;
    client_open(&c, address, &limits);
    ask(c.loop, c.channel, &a, "Unary", "x", 1, 0);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(a.told, 0);
    answer_free(&a);
    client_close(&c);
    close(fd);
}

/* A channel that pings knows that its peer is there. */
static void test_pings_are_heard(void **state)
{
    echo e;
    client c;
    rpc_limits limits;
    answer a = {0};
    (void)state;
    rpc_limits_init(&limits);
    limits.ms.ping = 20;
    echo_start(&e, 1, "127.0.0.1:0", NULL, NULL);
    client_open(&c, e.address, &limits);
    ask(c.loop, c.channel, &a, "Unary", "x", 1, 0);
    answer_free(&a);
    turn_for(c.loop, 1000);
    assert_in_range(rpc_channel_silence(c.channel), 0, 900);
    client_close(&c);
    echo_stop(&e);
}

static void test_loops_share_a_listener(void **state)
{
    enum { CLIENTS = 40 };
    echo e;
    client c[CLIENTS];
    int used = 0;
    (void)state;
    echo_start(&e, 4, "127.0.0.1:0", NULL, NULL);
    for (int i = 0; i < CLIENTS; i++) {
        answer a = {0};
        client_open(&c[i], e.address, NULL);
        ask(c[i].loop, c[i].channel, &a, "Later", "x", 1, 0);
        assert_int_equal(a.code, RPC_OK);
        answer_free(&a);
    }
    for (int i = 0; i < 4; i++)
        used += rpc_loop_look(e.loops[i]).connections > 0;
    assert_int_equal(echo_look(&e).connections, CLIENTS);
    assert_true(used >= 1);
    for (int i = 0; i < CLIENTS; i++)
        client_close(&c[i]);
    assert_true(echo_empty(&e));
    echo_stop(&e);
}

static void add_one(void *arg)
{
    ++*(int *)arg;
}

static void test_posting_and_waiting(void **state)
{
    rpc_loop *loop;
    sessile_error err;
    int posted = 0, later = 0;
    (void)state;
    assert_int_equal(rpc_loop_open(&loop, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(rpc_loop_after(loop, 30, add_one, &later), 0);
    assert_int_equal(rpc_loop_post(loop, add_one, &posted), 0);
    rpc_loop_turn(loop, 0);
    assert_int_equal(posted, 1);
    assert_int_equal(later, 0);
    turn_for(loop, 100);
    assert_int_equal(later, 1);
    assert_int_equal(rpc_loop_after(loop, 100000, add_one, &later), 0);
    rpc_loop_close(loop);
    assert_int_equal(later, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_listener_that_drains_lets_calls_finish),
        cmocka_unit_test(test_old_connections_go_and_no_call_fails),
        cmocka_unit_test(test_an_idle_connection_ends),
        cmocka_unit_test(test_draining_ends_kept_connections),
        cmocka_unit_test(test_pings_are_heard),
        cmocka_unit_test(test_a_frozen_server_is_given_up),
        cmocka_unit_test(test_loops_share_a_listener),
        cmocka_unit_test(test_posting_and_waiting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
