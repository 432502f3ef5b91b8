/*
 * test_rpc_tls.c: TLS at both ends: who is believed, what is refused, and certificates
 * that are replaced while connections are open. Foreign ends: grpcio, curl, openssl.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "unit/rpc/caller.h"
#include "unit/rpc/certificates.h"
#include "unit/rpc/echo.h"
#include "unit/rpc/program.h"
#include "unit/rpc/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct scene {
    certificates c;
    rpc_tls *server;
    echo echo;
    rpc_loop *loop;
    rpc_fault fault; /* of the last try */
} scene;

static rpc_tls *tls_open(int server, const char *cert, const char *key, const char *ca,
                         const char *name)
{
    rpc_tls_files files = {cert, key, ca, name};
    rpc_tls *tls;
    sessile_error err;
    if (rpc_tls_open(&tls, server, &files, NULL, &err))
        fail_msg("%s", err.message);
    return tls;
}

static scene *scene_new(int clients_too)
{
    scene *s = calloc(1, sizeof *s);
    rpc_limits limits;
    sessile_error err;
    certificates_make(&s->c);
    rpc_limits_init(&limits);
    limits.ms.handshake = 1000;
    s->server =
        tls_open(1, s->c.server, s->c.server_key, clients_too ? s->c.ca : NULL, NULL);
    echo_start(&s->echo, 2, "127.0.0.1:0", &limits, s->server);
    assert_int_equal(rpc_loop_open(&s->loop, NULL, NULL, &err), SESSILE_OK);
    return s;
}

static int up(void **state)
{
    *state = scene_new(0);
    return 0;
}

static int up_clients(void **state)
{
    *state = scene_new(1);
    return 0;
}

static int down(void **state)
{
    scene *s = *state;
    rpc_loop_close(s->loop);
    echo_stop(&s->echo);
    rpc_tls_drop(s->server);
    certificates_remove(&s->c);
    free(s);
    return 0;
}

/* A call of Peer as such a client. */
static void try_as(scene *s, rpc_tls *tls, answer *a)
{
    rpc_channel *channel;
    sessile_error err;
    memset(a, 0, sizeof *a);
    assert_int_equal(
        rpc_channel_open(&channel, s->loop, s->echo.address, tls, NULL, &err),
        SESSILE_OK);
    ask(s->loop, channel, a, "Peer", "", 0, 60000);
    s->fault = rpc_channel_fault(channel);
    rpc_channel_close(channel);
    turn_for(s->loop, 10);
    rpc_tls_drop(tls);
}

static void test_a_server_of_the_authority_is_believed(void **state)
{
    scene *s = *state;
    answer a;
    try_as(s, tls_open(0, NULL, NULL, s->c.ca, NULL), &a);
    assert_int_equal(a.code, RPC_OK);
    assert_non_null(strstr(a.first, " 1 -"));
    assert_int_equal(s->fault, RPC_FAULT_NONE);
    answer_free(&a);
    try_as(s, tls_open(0, NULL, NULL, s->c.ca, "localhost"), &a);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
}

static void test_others_are_not(void **state)
{
    scene *s = *state;
    answer a;
    try_as(s, tls_open(0, NULL, NULL, s->c.other_ca, NULL), &a);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(a.unbegun, 1);
    assert_non_null(strstr(a.message, "certificate"));
    assert_int_equal(s->fault, RPC_FAULT_AUTHORITY);
    try_as(s, tls_open(0, NULL, NULL, NULL, NULL), &a); /* the system's */
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(s->fault, RPC_FAULT_AUTHORITY);
    try_as(s, tls_open(0, NULL, NULL, s->c.ca, "example.org"), &a);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_non_null(strstr(a.message, "mismatch"));
    assert_int_equal(s->fault, RPC_FAULT_NAME);
    certificates_renew(&s->c, -1);
    assert_int_equal(rpc_tls_reload(s->server, NULL), SESSILE_OK);
    try_as(s, tls_open(0, NULL, NULL, s->c.ca, NULL), &a);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(s->fault, RPC_FAULT_TIME);
    assert_int_equal(s->echo.begun, 0);
}

static void test_plain_text_at_a_tls_port_begins_nothing(void **state)
{
    scene *s = *state;
    answer a;
    char got[4096];
    int ended, fd = wire_open(s->echo.address);
    wire_send(fd, "GET / HTTP/1.1\r\nHost: x\r\n\r\n", 27);
    wire_read(fd, got, sizeof got, 60000, &ended);
    assert_int_equal(ended, 1);
    assert_non_null(strstr(got, "HTTP/1.1 400 Bad Request"));
    assert_non_null(strstr(got, "this port speaks TLS: begin the address with https://"));
    assert_int_equal(echo_look(&s->echo).clear, 1);
    close(fd);
    try_as(s, NULL, &a);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(s->fault, RPC_FAULT_SILENT);
    assert_int_equal(s->echo.begun, 0);
}

static void test_tls_at_a_plain_port_is_known(void **state)
{
    scene *s = *state;
    rpc_channel *channel;
    rpc_tls *tls = tls_open(0, NULL, NULL, s->c.ca, NULL);
    answer a = {0};
    echo plain;
    echo_start(&plain, 1, "127.0.0.1:0", NULL, NULL);
    assert_int_equal(rpc_channel_open(&channel, s->loop, plain.address, tls, NULL, NULL),
                     SESSILE_OK);
    ask(s->loop, channel, &a, "Unary", "a", 1, 60000);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(rpc_channel_fault(channel), RPC_FAULT_NO_TLS);
    rpc_channel_close(channel);
    turn_for(s->loop, 10);
    echo_stop(&plain);
    rpc_tls_drop(tls);
}

static void test_a_handshake_that_does_not_end_is_given_up(void **state)
{
    scene *s = *state;
    int fd = wire_open(s->echo.address);
    wire_send(fd, "\x16\x03\x01\x00", 4);
    assert_int_equal(wire_drain(fd, 60000), 1);
    close(fd);
    assert_true(echo_empty(&s->echo));
}

static void test_a_client_is_known_by_its_certificate(void **state)
{
    scene *s = *state;
    answer a;
    try_as(s, tls_open(0, s->c.client, s->c.client_key, s->c.ca, NULL), &a);
    assert_int_equal(a.code, RPC_OK);
    assert_non_null(strstr(a.first, " 1 agent-7"));
    answer_free(&a);
}

static void test_a_client_without_one_is_refused(void **state)
{
    scene *s = *state;
    answer a;
    try_as(s, tls_open(0, NULL, NULL, s->c.ca, NULL), &a);
    assert_int_not_equal(a.code, RPC_OK);
    assert_int_equal(a.told, 0);
    assert_int_equal(s->echo.begun, 0);
    assert_int_equal(s->fault, RPC_FAULT_CLIENT);
    answer_free(&a);
}

static void test_new_certificates_are_used_by_new_connections(void **state)
{
    scene *s = *state;
    rpc_tls *tls = tls_open(0, NULL, NULL, s->c.ca, NULL);
    rpc_channel *channel;
    sessile_error err;
    answer a = {0};
    int64_t before = rpc_tls_expires(s->server), now = (int64_t)time(NULL);

    assert_in_range(before, now + 29 * 86400, now + 31 * 86400);
    assert_int_equal(
        rpc_channel_open(&channel, s->loop, s->echo.address, tls, NULL, &err),
        SESSILE_OK);
    ask(s->loop, channel, &a, "Unary", "a", 1, 0);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
    certificates_renew(&s->c, 90);
    assert_int_equal(rpc_tls_reload(s->server, &err), SESSILE_OK);
    assert_true(rpc_tls_expires(s->server) > before + 50 * 86400);
    ask(s->loop, channel, &a, "Unary", "b", 1, 0); /* the old connection goes on */
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
    rpc_channel_close(channel);
    try_as(s, tls, &a);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
}

static void test_a_failed_reload_changes_nothing(void **state)
{
    scene *s = *state;
    sessile_error err;
    answer a;
    FILE *f = fopen(s->c.server, "w");
    fputs("nothing\n", f);
    fclose(f);
    assert_int_equal(rpc_tls_reload(s->server, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "server.pem"));
    try_as(s, tls_open(0, NULL, NULL, s->c.ca, NULL), &a);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
}

static sessile_status open_status(const char *cert, const char *key, sessile_error *err)
{
    rpc_tls_files files = {cert, key, NULL, NULL};
    rpc_tls *tls;
    sessile_status status = rpc_tls_open(&tls, 1, &files, NULL, err);
    assert_true(status == SESSILE_OK || tls == NULL);
    rpc_tls_drop(tls);
    return status;
}

static void test_files_that_are_not_as_they_should_be(void **state)
{
    scene *s = *state;
    sessile_error err;
    assert_int_equal(open_status("/no/such", s->c.server_key, &err), SESSILE_NOTFOUND);
    assert_int_equal(open_status(s->c.server, "/no/such", &err), SESSILE_NOTFOUND);
    assert_int_equal(open_status(s->c.server, s->c.client_key, &err), SESSILE_INVALID);
    assert_int_equal(open_status(s->c.server, s->c.server, &err), SESSILE_INVALID);
    assert_int_equal(open_status(s->c.server, NULL, &err), SESSILE_INVALID);
    assert_int_equal(chmod(s->c.server_key, 0644), 0);
    assert_int_equal(open_status(s->c.server, s->c.server_key, &err), SESSILE_DENIED);
    assert_non_null(strstr(err.message, "server.key"));
}

static void test_grpcio_over_tls(void **state)
{
    scene *s = *state;
    static const char *const cases[] = {"unary", "large", "both_streams", "server_stream",
                                        "peer"};
    grpcio_needed();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *argv[] = {
            PYTHON, beside("client.py"), s->echo.address, cases[i], s->c.ca, NULL};
        program_ok(argv);
    }
}

static void test_the_client_and_a_server_of_grpcio(void **state)
{
    scene *s = *state;
    const char *argv[] = {PYTHON, beside("server.py"), s->c.server, s->c.server_key,
                          NULL};
    rpc_tls *tls = tls_open(0, NULL, NULL, s->c.ca, NULL);
    rpc_channel *channel;
    sessile_error err;
    char port[16], address[40];
    answer a = {0};
    program python;

    grpcio_needed();
    program_start(&python, argv, port, sizeof port);
    snprintf(address, sizeof address, "127.0.0.1:%s", port);
    assert_int_equal(rpc_channel_open(&channel, s->loop, address, tls, NULL, &err),
                     SESSILE_OK);
    ask(s->loop, channel, &a, "Unary", "over tls", 8, 0);
    assert_int_equal(a.code, RPC_OK);
    assert_string_equal(a.first, "over tls");
    answer_free(&a);
    ask(s->loop, channel, &a, "Count", "20 300000", 9, 0);
    assert_int_equal(a.bytes, 20 * 300000);
    answer_free(&a);
    rpc_channel_close(channel);
    turn_for(s->loop, 10);
    rpc_tls_drop(tls);
    program_end(&python);
}

static void test_versions_and_protocols(void **state)
{
    scene *s = *state;
    static const struct {
        const char *flag, *value, *expected; /* NULL: refused */
    } rows[] = {
        {"-tls1_3", "h2", "ALPN protocol: h2"},
        {"-tls1_2", "h2", "ALPN protocol: h2"},
        {"-tls1_2", "http/1.1", "ALPN protocol: http/1.1"},
        {"-tls1_1", "h2", NULL},
        {"-tls1_3", "spdy/3", NULL},
    };
    static char out[65536];
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *argv[] = {"/usr/bin/openssl",     "s_client",   "-connect",
                              s->echo.address,        rows[i].flag, "-alpn",
                              rows[i].value,          "-CAfile",    s->c.ca,
                              "-verify_return_error", NULL};
        int code = program_run(argv, out, sizeof out);
        if (rows[i].expected ? !strstr(out, rows[i].expected) : code == 0)
            fail_msg("%s %s: %d\n%s", rows[i].flag, rows[i].value, code, out);
    }
}

static void test_curl_over_tls(void **state)
{
    scene *s = *state;
    static char out[65536];
    char url[128];
    snprintf(url, sizeof url, "https://%s/hello", s->echo.address);
    program_needed("/usr/bin/curl", "curl");
    for (int i = 0; i < 2; i++) {
        const char *argv[] = {"/usr/bin/curl",
                              "-sS",
                              "-w",
                              "[%{http_version}]",
                              "--cacert",
                              s->c.ca,
                              i ? "--http1.1" : "--http2",
                              url,
                              NULL};
        program_run(argv, out, sizeof out);
        assert_string_equal(out, i ? "hello\n[1.1]" : "hello\n[2]");
    }
}

#define TEST(name)    cmocka_unit_test_setup_teardown(name, up, down)
#define CLIENTS(name) cmocka_unit_test_setup_teardown(name, up_clients, down)

/* What the socket does not take waits, sealed as it is, and goes on where it stopped. */
static void test_a_peer_that_reads_late_gets_all(void **state)
{
    enum { CALLS = 12, MESSAGES = 3, SIZE = 700000 }; /* more than sockets hold */
    scene *s = *state;
    rpc_tls *tls = tls_open(0, NULL, NULL, s->c.ca, NULL);
    answer a[CALLS], peer = {0};
    rpc_channel *channel;
    sessile_error err;
    memset(a, 0, sizeof a);
    assert_int_equal(
        rpc_channel_open(&channel, s->loop, s->echo.address, tls, NULL, &err),
        SESSILE_OK);
    ask(s->loop, channel, &peer, "Peer", "", 0, 60000);
    answer_free(&peer);
    for (int i = 0; i < CALLS; i++) {
        ask_begin(channel, &a[i], "Count", NULL, 0, "3 700000", 8, 0);
        rpc_request_end(a[i].request);
    }
    rpc_loop_turn(s->loop, 0);
    usleep(300000); /* the server fills the socket meanwhile */
    for (int i = 0; i < CALLS; i++) {
        answer_wait(s->loop, &a[i]);
        assert_int_equal(a[i].code, RPC_OK);
        assert_int_equal(a[i].messages, MESSAGES);
        assert_int_equal(a[i].bytes, MESSAGES * SIZE);
        answer_free(&a[i]);
    }
    rpc_channel_close(channel);
    turn_for(s->loop, 10);
    rpc_tls_drop(tls);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_server_of_the_authority_is_believed),
        TEST(test_others_are_not),
        TEST(test_plain_text_at_a_tls_port_begins_nothing),
        TEST(test_tls_at_a_plain_port_is_known),
        TEST(test_a_handshake_that_does_not_end_is_given_up),
        CLIENTS(test_a_client_is_known_by_its_certificate),
        CLIENTS(test_a_client_without_one_is_refused),
        TEST(test_new_certificates_are_used_by_new_connections),
        TEST(test_a_failed_reload_changes_nothing),
        TEST(test_files_that_are_not_as_they_should_be),
        TEST(test_grpcio_over_tls),
        TEST(test_the_client_and_a_server_of_grpcio),
        TEST(test_versions_and_protocols),
        TEST(test_curl_over_tls),
        TEST(test_a_peer_that_reads_late_gets_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
