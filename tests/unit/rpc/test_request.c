/*
 * test_request.c: the client, against the server of this library and against gRPC's
 * reference core (python3-grpcio, server.py).
 *
 * Each case runs against both, so that neither end is judged by its own brother alone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "unit/rpc/caller.h"
#include "unit/rpc/echo.h"
#include "unit/rpc/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct scene {
    echo echo;
    program python;
    int foreign;
    rpc_loop *loop;
    rpc_channel *channel;
} scene;

static void client_open(scene *s, const char *address, const rpc_limits *limits)
{
    sessile_error err;
    assert_int_equal(rpc_loop_open(&s->loop, limits, NULL, &err), SESSILE_OK);
    if (rpc_channel_open(&s->channel, s->loop, address, NULL, limits, &err))
        fail_msg("%s", err.message);
}

static void client_close(scene *s)
{
    rpc_channel_close(s->channel);
    rpc_loop_close(s->loop);
}

static int own_up(void **state)
{
    scene *s = calloc(1, sizeof *s);
    echo_start(&s->echo, 1, "127.0.0.1:0", NULL, NULL);
    client_open(s, s->echo.address, NULL);
    *state = s;
    return 0;
}

static int foreign_up(void **state)
{
    scene *s = calloc(1, sizeof *s);
    const char *argv[] = {PYTHON, beside("server.py"), NULL};
    char port[16], address[40];

    s->foreign = 1;
    *state = s;
    grpcio_needed();
    program_start(&s->python, argv, port, sizeof port);
    snprintf(address, sizeof address, "127.0.0.1:%s", port);
    client_open(s, address, NULL);
    return 0;
}

static int down(void **state)
{
    scene *s = *state;
    if (s->loop != NULL)
        client_close(s);
    if (s->foreign && s->python.pid > 0)
        program_end(&s->python);
    else if (!s->foreign)
        echo_stop(&s->echo);
    free(s);
    return 0;
}

/* ---------------------------------------------------------------------- both servers */

static void test_a_unary_call_is_answered(void **state)
{
    scene *s = *state;
    answer a = {0};
    ask(s->loop, s->channel, &a, "Unary", "hello", 5, 0);
    assert_int_equal(a.code, RPC_OK);
    assert_int_equal(a.told, 1);
    assert_int_equal(a.messages, 1);
    assert_string_equal(a.first, "hello");
    answer_free(&a);
}

static void test_headers_go_and_trailers_come_back(void **state)
{
    scene *s = *state;
    rpc_header headers[] = {{"x-one", "a value, 1"}, {"x-two-bin", "AAECAw=="}};
    answer a = {0};
    a.trailer_name = "x-one";
    ask_begin(s->channel, &a, "Unary", headers, 2, "", 0, 0);
    rpc_request_end(a.request);
    answer_wait(s->loop, &a);
    assert_string_equal(a.trailer, "a value, 1");
    answer_free(&a);
    a.trailer_name = "x-two-bin";
    ask_begin(s->channel, &a, "Unary", headers, 2, "", 0, 0);
    rpc_request_end(a.request);
    answer_wait(s->loop, &a);
    /* with or without padding */
    assert_true(strncmp(a.trailer, "AAECAw", 6) == 0);
    answer_free(&a);
}

static void test_a_message_of_4_mib_goes_both_ways(void **state)
{
    scene *s = *state;
    size_t size = 4 << 20;
    char *data = malloc(size);
    answer a = {0};
    for (size_t i = 0; i < size; i++)
        data[i] = (char)(i * 7 + (i >> 10));
    ask(s->loop, s->channel, &a, "Unary", data, size, 0);
    assert_int_equal(a.code, RPC_OK);
    assert_int_equal(a.first_size, size);
    assert_memory_equal(a.first, data, size);
    answer_free(&a);
    free(data);
}

static void test_64_calls_at_once(void **state)
{
    scene *s = *state;
    static answer all[64];
    char text[32];
    memset(all, 0, sizeof all);
    for (int i = 0; i < 64; i++) {
        int n = snprintf(text, sizeof text, "call %d", i);
        ask_begin(s->channel, &all[i], "Unary", NULL, 0, text, (size_t)n, 0);
        rpc_request_end(all[i].request);
    }
    for (int i = 0; i < 64; i++) {
        answer_wait(s->loop, &all[i]);
        snprintf(text, sizeof text, "call %d", i);
        assert_int_equal(all[i].code, RPC_OK);
        assert_string_equal(all[i].first, text);
        answer_free(&all[i]);
    }
}

static void test_a_stream_of_the_server(void **state)
{
    scene *s = *state;
    answer a = {0};
    ask(s->loop, s->channel, &a, "Count", "20 300000", 9, 0);
    assert_int_equal(a.code, RPC_OK);
    assert_int_equal(a.messages, 20);
    assert_int_equal(a.bytes, 20 * 300000);
    answer_free(&a);
}

static void test_a_stream_both_ways(void **state)
{
    scene *s = *state;
    answer a = {0};
    ask_begin(s->channel, &a, "Stream", NULL, 0, "0", 1, 0);
    for (size_t i = 1; i <= 20; i++) {
        uint64_t until = clock_us() + 120000000;
        while (a.messages < i && clock_us() < until)
            rpc_loop_turn(s->loop, 100);
        assert_int_equal(a.messages, i);
        if (i < 20)
            rpc_request_send(a.request, "next", 4);
    }
    rpc_request_end(a.request);
    answer_wait(s->loop, &a);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
}

static void test_statuses_and_their_text(void **state)
{
    scene *s = *state;
    char text[128];
    for (int code = 1; code <= 16; code++) {
        answer a = {0};
        int n = snprintf(text, sizeof text, "%d größe, 日本語: 100%% & %%41", code);
        ask(s->loop, s->channel, &a, "Fail", text, (size_t)n, 0);
        assert_int_equal(a.code, code);
        assert_int_equal(a.told, 1);
        assert_string_equal(a.message, strchr(text, ' ') + 1);
        answer_free(&a);
    }
}

static void test_a_method_that_is_not_there(void **state)
{
    scene *s = *state;
    sessile_error err;
    answer a = {0};
    assert_int_equal(rpc_request_open(&a.request, s->channel, "/no/such", NULL, 0,
                                      UINT64_MAX, &answer_replies, &a, &err),
                     SESSILE_OK);
    rpc_request_end(a.request);
    answer_wait(s->loop, &a);
    assert_int_equal(a.code, RPC_UNIMPLEMENTED);
    assert_int_equal(a.told, 1);
}

static void test_a_deadline_ends_it(void **state)
{
    scene *s = *state;
    answer a = {0};
    ask(s->loop, s->channel, &a, "Silent", "", 0, 100);
    assert_int_equal(a.code, RPC_DEADLINE_EXCEEDED);
    assert_int_equal(a.unbegun, 0);
    answer_free(&a);
    ask(s->loop, s->channel, &a, "Unary", "on", 2, 0);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
}

static void test_cancelling_tells_at_once(void **state)
{
    scene *s = *state;
    answer a = {0};
    ask(s->loop, s->channel, &a, "Unary", "", 0, 0);
    answer_free(&a);
    ask_begin(s->channel, &a, "Silent", NULL, 0, "", 0, 0);
    turn_for(s->loop, 50);
    rpc_request_cancel(a.request);
    assert_int_equal(a.ended, 1);
    assert_int_equal(a.code, RPC_CANCELLED);
    if (!s->foreign) {
        turn_for(s->loop, 10);
        assert_true(echo_until(&s->echo.gone[RPC_GONE_CANCELLED], 1));
    }
}

static void test_cancelling_inside_of_a_message(void **state)
{
    scene *s = *state;
    answer a = {0};
    a.cancel_at = 3;
    ask(s->loop, s->channel, &a, "Count", "1000 1000", 9, 0);
    assert_int_equal(a.code, RPC_CANCELLED);
    assert_int_equal(a.messages, 3);
    answer_free(&a);
    ask(s->loop, s->channel, &a, "Unary", "on", 2, 0);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
}

/* The server must stop: what it may send is the window and what was on its way. */
static void test_a_paused_request_stops_the_server(void **state)
{
    scene *s = *state;
    answer a = {0};
    a.pause_at = 1;
    ask_begin(s->channel, &a, "Count", NULL, 0, "20 400000", 9, 0);
    rpc_request_end(a.request);
    turn_for(s->loop, 500);
    assert_int_equal(a.messages, 1);
    assert_int_equal(a.ended, 0);
    if (!s->foreign)
        assert_int_equal(echo_look(&s->echo).calls, 1);
    a.pause_at = 0;
    rpc_request_pause(a.request, 0);
    answer_wait(s->loop, &a);
    assert_int_equal(a.code, RPC_OK);
    assert_int_equal(a.messages, 20);
    answer_free(&a);
}

/* All of the answer may have come while it was paused. */
static void test_a_whole_answer_waits_for_a_paused_request(void **state)
{
    scene *s = *state;
    answer a = {0};
    a.pause_at = 1;
    ask_begin(s->channel, &a, "Count", NULL, 0, "5 10", 4, 0);
    rpc_request_end(a.request);
    turn_for(s->loop, 300);
    assert_int_equal(a.messages, 1);
    assert_int_equal(a.ended, 0);
    a.pause_at = 0;
    rpc_request_pause(a.request, 0);
    answer_wait(s->loop, &a);
    assert_int_equal(a.code, RPC_OK);
    assert_int_equal(a.messages, 5);
    answer_free(&a);
}

/* ---------------------------------------------------------------------- no server */

static void test_nobody_there_is_unbegun(void **state)
{
    scene s = {0};
    answer a = {0};
    (void)state;
    client_open(&s, "127.0.0.1:1", NULL);
    ask(s.loop, s.channel, &a, "Unary", "", 0, 0);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(a.unbegun, 1);
    assert_int_equal(a.told, 0);
    assert_int_equal(rpc_channel_silence(s.channel), -1);
    answer_free(&a);
    client_close(&s);
}

static void test_a_server_that_comes_back_is_found(void **state)
{
    scene s = {0};
    answer a = {0};
    char address[64];
    (void)state;
    echo_start(&s.echo, 1, "127.0.0.1:0", NULL, NULL);
    snprintf(address, sizeof address, "%s", s.echo.address);
    client_open(&s, address, NULL);
    ask(s.loop, s.channel, &a, "Unary", "", 0, 0);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
    echo_stop(&s.echo);
    ask(s.loop, s.channel, &a, "Unary", "", 0, 0);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    answer_free(&a);
    echo_start(&s.echo, 1, address, NULL, NULL);
    for (int i = 0; i < 200 && a.code != RPC_OK; i++) {
        answer_free(&a);
        a.code = RPC_UNKNOWN;
        turn_for(s.loop, 20);
        ask(s.loop, s.channel, &a, "Unary", "", 0, 0);
        a.code = a.code == RPC_OK ? RPC_OK : RPC_UNKNOWN;
        if (a.code == RPC_OK)
            break;
    }
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
    client_close(&s);
    echo_stop(&s.echo);
}

static void test_closing_a_channel_ends_its_requests(void **state)
{
    scene *s = *state;
    answer a = {0}, b = {0};
    ask(s->loop, s->channel, &a, "Unary", "", 0, 0);
    answer_free(&a);
    ask_begin(s->channel, &a, "Silent", NULL, 0, "", 0, 0);
    turn_for(s->loop, 20);
    ask_begin(s->channel, &b, "Silent", NULL, 0, "", 0, 0);
    client_close(s);
    s->loop = NULL;
    assert_int_equal(a.ended, 1);
    assert_int_equal(a.code, RPC_UNAVAILABLE);
    assert_int_equal(a.unbegun, 0);
    assert_int_equal(b.ended, 1);
    assert_int_equal(b.unbegun, 1);
}

static void test_addresses_that_are_none(void **state)
{
    const char *wrong[] = {"",
                           "host",
                           ":80",
                           "127.0.0.1:",
                           "127.0.0.1:x",
                           "::1:80",
                           "127.0.0.1:99999999",
                           "[::1]",
                           "unix:"};
    rpc_loop *loop;
    rpc_channel *channel;
    sessile_error err;
    (void)state;
    assert_int_equal(rpc_loop_open(&loop, NULL, NULL, &err), SESSILE_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(rpc_channel_open(&channel, loop, wrong[i], NULL, NULL, &err),
                         SESSILE_INVALID);
        assert_null(channel);
    }
    rpc_loop_close(loop);
}

static void test_over_a_unix_socket(void **state)
{
    scene s = {0};
    answer a = {0};
    char address[64];
    (void)state;
    snprintf(address, sizeof address, "unix:/tmp/rpc-%d.sock",
             (int)clock_us() & 0xffffff);
    echo_start(&s.echo, 1, address, NULL, NULL);
    assert_int_equal(rpc_listener_local(s.echo.listener), 1);
    client_open(&s, address, NULL);
    ask(s.loop, s.channel, &a, "Peer", "", 0, 0);
    assert_string_equal(a.first, "unix 0 -");
    answer_free(&a);
    client_close(&s);
    echo_stop(&s.echo);
}

#define BOTH(test)                                      \
    {#test " (own)", test, own_up, down, NULL},         \
    {                                                   \
#test " (grpcio)", test, foreign_up, down, NULL \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_a_unary_call_is_answered),
        BOTH(test_headers_go_and_trailers_come_back),
        BOTH(test_a_message_of_4_mib_goes_both_ways),
        BOTH(test_64_calls_at_once),
        BOTH(test_a_stream_of_the_server),
        BOTH(test_a_stream_both_ways),
        BOTH(test_statuses_and_their_text),
        BOTH(test_a_method_that_is_not_there),
        BOTH(test_a_deadline_ends_it),
        BOTH(test_cancelling_tells_at_once),
        BOTH(test_cancelling_inside_of_a_message),
        BOTH(test_a_paused_request_stops_the_server),
        BOTH(test_a_whole_answer_waits_for_a_paused_request),
        cmocka_unit_test_setup_teardown(test_closing_a_channel_ends_its_requests, own_up,
                                        down),
        cmocka_unit_test(test_nobody_there_is_unbegun),
        cmocka_unit_test(test_a_server_that_comes_back_is_found),
        cmocka_unit_test(test_addresses_that_are_none),
        cmocka_unit_test(test_over_a_unix_socket),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
