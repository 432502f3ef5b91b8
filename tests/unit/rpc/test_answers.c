/*
 * test_answers.c: the client and servers that answer otherwise than they should: what is
 * success, and what cannot have begun. The server is this test, frame by frame.
 */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit/rpc/caller.h"
#include "unit/rpc/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

typedef struct scene {
    int listening, fd;
    rpc_loop *loop;
    rpc_channel *channel;
    answer answer;
} scene;

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

/* A request is on its way: the server has its headers. */
static int up(void **state)
{
    scene *s = calloc(1, sizeof *s);
    rpc_limits limits;
    char address[64], got[4096];
    sessile_error err;

    rpc_limits_init(&limits);
    limits.bytes.message = 1000;
    s->listening = listening_socket(address);
    assert_int_equal(rpc_loop_open(&s->loop, &limits, NULL, &err), SESSILE_OK);
    assert_int_equal(rpc_channel_open(&s->channel, s->loop, address, NULL, NULL, &err),
                     SESSILE_OK);
    ask_begin(s->channel, &s->answer, "Unary", NULL, 0, "hello", 5, 0);
    rpc_request_end(s->answer.request);
    turn_for(s->loop, 20);
    s->fd = accept(s->listening, NULL, NULL);
    assert_true(s->fd >= 0);
    while (rpc_channel_silence(s->channel) < 0)
        rpc_loop_turn(s->loop, 100);
    turn_for(s->loop, 20);
    wire_read(s->fd, got, sizeof got, 100, NULL);
    wire_frame(s->fd, SETTINGS, 0, 0, NULL, 0);
    *state = s;
    return 0;
}

static int down(void **state)
{
    scene *s = *state;
    rpc_channel_close(s->channel);
    rpc_loop_close(s->loop);
    if (s->fd >= 0)
        close(s->fd);
    close(s->listening);
    answer_free(&s->answer);
    free(s);
    return 0;
}

#define HEAD           \
    "\x88\0\xc"        \
    "content-type\x10" \
    "application/grpc"
#define PAGE          \
    "\x48\3"          \
    "503\0\xc"        \
    "content-type\x9" \
    "text/html"
#define STATUS(n) \
    "\0\xb"       \
    "grpc-status\1" n

static void headers(scene *s, int flags, const char *block, size_t size)
{
    wire_frame(s->fd, HEADERS, flags | END_HEADERS, 1, block, size);
}

static void expect(scene *s, rpc_code code, int told, int unbegun)
{
    answer_wait(s->loop, &s->answer);
    assert_int_equal(s->answer.code, code);
    assert_int_equal(s->answer.told, told);
    assert_int_equal(s->answer.unbegun, unbegun);
}

static void test_a_whole_answer(void **state)
{
    scene *s = *state;
    headers(s, 0, HEAD, sizeof HEAD - 1);
    wire_frame(s->fd, DATA, 0, 1, "\0\0\0\0\2ok", 7);
    headers(s, END_STREAM, STATUS("0"), sizeof STATUS("0") - 1);
    expect(s, RPC_OK, 1, 0);
    assert_string_equal(s->answer.first, "ok");
}

static void test_a_reset_after_the_message_is_no_success(void **state)
{
    scene *s = *state;
    headers(s, 0, HEAD, sizeof HEAD - 1);
    wire_frame(s->fd, DATA, 0, 1, "\0\0\0\0\2ok", 7);
    wire_frame(s->fd, RST_STREAM, 0, 1, "\0\0\0\0", 4);
    expect(s, RPC_INTERNAL, 0, 0);
    assert_int_equal(s->answer.messages, 1);
}

static void test_an_end_without_a_status_is_no_success(void **state)
{
    scene *s = *state;
    headers(s, 0, HEAD, sizeof HEAD - 1);
    wire_frame(s->fd, DATA, END_STREAM, 1, "\0\0\0\0\2ok", 7);
    expect(s, RPC_INTERNAL, 0, 0);
}

static void test_a_status_that_is_no_number(void **state)
{
    scene *s = *state;
    headers(s, END_STREAM, HEAD STATUS("x"), sizeof HEAD STATUS("x") - 1);
    expect(s, RPC_UNKNOWN, 1, 0);
}

static void test_the_page_of_a_proxy(void **state)
{
    scene *s = *state;
    headers(s, 0, PAGE, sizeof PAGE - 1);
    wire_frame(s->fd, DATA, END_STREAM, 1, "<html>busy</html>", 17);
    expect(s, RPC_UNAVAILABLE, 0, 0);
    assert_int_equal(s->answer.messages, 0);
}

static void test_a_refused_stream_is_unbegun(void **state)
{
    scene *s = *state;
    wire_frame(s->fd, RST_STREAM, 0, 1, "\0\0\0\7", 4);
    expect(s, RPC_UNAVAILABLE, 0, 1);
}

static void test_what_goaway_leaves_out_is_unbegun(void **state)
{
    scene *s = *state;
    wire_frame(s->fd, GOAWAY, 0, 0, "\0\0\0\0\0\0\0\0", 8);
    expect(s, RPC_UNAVAILABLE, 0, 1);
}

static void test_what_goaway_takes_may_have_begun(void **state)
{
    scene *s = *state;
    wire_frame(s->fd, GOAWAY, 0, 0, "\0\0\0\1\0\0\0\0", 8);
    turn_for(s->loop, 50);
    assert_int_equal(s->answer.ended, 0);
    close(s->fd);
    s->fd = -1;
    expect(s, RPC_UNAVAILABLE, 0, 0);
}

static void test_a_connection_that_breaks_may_have_begun(void **state)
{
    scene *s = *state;
    close(s->fd);
    s->fd = -1;
    expect(s, RPC_UNAVAILABLE, 0, 0);
}

static void test_an_answer_that_ends_inside_of_a_message(void **state)
{
    scene *s = *state;
    headers(s, 0, HEAD, sizeof HEAD - 1);
    wire_frame(s->fd, DATA, 0, 1, "\0\0\0\0\5hal", 8);
    headers(s, END_STREAM, STATUS("0"), sizeof STATUS("0") - 1);
    expect(s, RPC_INTERNAL, 0, 0);
    assert_int_equal(s->answer.messages, 0);
}

static void test_messages_that_are_not_taken(void **state)
{
    scene *s = *state;
    headers(s, 0, HEAD, sizeof HEAD - 1);
    wire_frame(s->fd, DATA, 0, 1, "\0\0\0\4\0", 5); /* of 1024 bytes */
    expect(s, RPC_RESOURCE_EXHAUSTED, 0, 0);
}

static void test_a_compressed_message(void **state)
{
    scene *s = *state;
    headers(s, 0, HEAD, sizeof HEAD - 1);
    wire_frame(s->fd, DATA, 0, 1, "\1\0\0\0\2ok", 7);
    expect(s, RPC_INTERNAL, 0, 0);
}

static void test_no_http_2_at_all(void **state)
{
    scene *s = *state;
    static const char reply[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
    wire_send(s->fd, reply, sizeof reply - 1);
    expect(s, RPC_UNAVAILABLE, 0, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, up, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_a_whole_answer),
        TEST(test_a_reset_after_the_message_is_no_success),
        TEST(test_an_end_without_a_status_is_no_success),
        TEST(test_a_status_that_is_no_number),
        TEST(test_the_page_of_a_proxy),
        TEST(test_a_refused_stream_is_unbegun),
        TEST(test_what_goaway_leaves_out_is_unbegun),
        TEST(test_what_goaway_takes_may_have_begun),
        TEST(test_a_connection_that_breaks_may_have_begun),
        TEST(test_an_answer_that_ends_inside_of_a_message),
        TEST(test_messages_that_are_not_taken),
        TEST(test_a_compressed_message),
        TEST(test_no_http_2_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
