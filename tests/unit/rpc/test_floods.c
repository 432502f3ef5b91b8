/*
 * test_floods.c: one connection that misbehaves: what it is told, what it costs, and that
 * others are served meanwhile.
 *
 * Each attack is written frame by frame. After it the server has ended the connection as
 * hostile, no call is left, the memory in use has grown by less than a ceiling at any
 * time, and another client's call is answered.
 *
 * Runs alone: it looks at the memory of its own process, and at how a server behaves that
 * has the machine.
 */
#include <malloc.h>
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

#define CALM 11u /* ENHANCE_YOUR_CALM */
#define MIB  ((size_t)1 << 20)

typedef struct scene {
    echo echo;
    size_t before, most; /* bytes of memory in use */
} scene;

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void look(scene *s)
{
    size_t now = in_use();
    if (now > s->most)
        s->most = now;
}

static int up_with(void **state, const rpc_limits *limits)
{
    scene *s = calloc(1, sizeof *s);
    echo_start(&s->echo, 1, "127.0.0.1:0", limits, NULL);
    s->before = s->most = in_use();
    *state = s;
    return 0;
}

static int up(void **state)
{
    return up_with(state, NULL);
}

static int up_hasty(void **state)
{
    rpc_limits limits;
    rpc_limits_init(&limits);
    limits.ms.first = 500;
    limits.ms.stuck = 500;
    return up_with(state, &limits);
}

static int down(void **state)
{
    scene *s = *state;
    echo_stop(&s->echo);
    free(s);
    return 0;
}

/* Another client is served. */
static void others_are_served(scene *s)
{
    rpc_loop *loop;
    rpc_channel *channel;
    sessile_error err;
    answer a = {0};
    assert_int_equal(rpc_loop_open(&loop, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(rpc_channel_open(&channel, loop, s->echo.address, NULL, NULL, &err),
                     SESSILE_OK);
    ask(loop, channel, &a, "Unary", "still there", 11, 0);
    assert_int_equal(a.code, RPC_OK);
    answer_free(&a);
    rpc_channel_close(channel);
    rpc_loop_close(loop);
}

static void no_call_is_left(scene *s)
{
    assert_true(echo_empty(&s->echo));
    /* the last of them may still be told that they are gone */
    for (int i = 0; i < 3000 && echo_look(&s->echo).calls; i++)
        usleep(10000);
    assert_int_equal(echo_look(&s->echo).calls, 0);
}

/* The connection was ended for it. */
static void was_hostile(scene *s, int fd, size_t ceiling)
{
    frames f = wire_frames(fd, 60000);
    /* What it was told is lost when it goes on sending for long. */
    assert_true(f.goaway == CALM || f.goaway == ~0u);
    look(s);
    close(fd);
    assert_int_equal(f.ended, 1);
    no_call_is_left(s);
    assert_int_equal(echo_look(&s->echo).hostile, 1);
    assert_in_range(s->most - s->before, 0, ceiling);
    others_are_served(s);
}

static void test_rapid_reset(void **state)
{
    scene *s = *state;
    static const unsigned char cancel[4] = {0, 0, 0, 8};
    int fd = wire_http2(s->echo.address, NULL, 0);
    for (unsigned i = 0; i < 100000; i++) {
        if (wire_request(fd, 1 + 2 * i, END_HEADERS, "Silent", NULL, 0) ||
            wire_frame(fd, RST_STREAM, 0, 1 + 2 * i, cancel, 4))
            break;
        if (i % 100 == 0)
            look(s);
    }
    was_hostile(s, fd, 5 * MIB);
    assert_in_range(s->echo.begun, 100, 1000);
}

/* The client makes the server reset its streams: windows that overflow. */
static void test_resets_that_the_server_is_made_to_send(void **state)
{
    scene *s = *state;
    static const unsigned char most[4] = {0x7f, 0xff, 0xff, 0xff};
    int fd = wire_http2(s->echo.address, NULL, 0);
    for (unsigned i = 0; i < 100000; i++) {
        if (wire_request(fd, 1 + 2 * i, END_HEADERS, "Silent", NULL, 0) ||
            wire_frame(fd, WINDOW_UPDATE, 0, 1 + 2 * i, most, 4))
            break;
        look(s);
        /* not more at one time than there may be streams */
        if (i % 100 == 99 && !echo_until(&s->echo.gone[RPC_GONE_CANCELLED], (int)i + 1))
            break;
    }
    was_hostile(s, fd, 5 * MIB);
    assert_in_range(s->echo.begun, 100, 1000);
}

/* A client may cancel all that it has begun. */
static void test_cancelling_everything_once_is_no_flood(void **state)
{
    scene *s = *state;
    static const unsigned char cancel[4] = {0, 0, 0, 8};
    int fd = wire_http2(s->echo.address, NULL, 0);
    for (unsigned i = 0; i < 256; i++)
        wire_request(fd, 1 + 2 * i, END_HEADERS, "Silent", NULL, 0);
    assert_true(echo_until(&s->echo.begun, 256));
    for (unsigned i = 0; i < 256; i++)
        wire_frame(fd, RST_STREAM, 0, 1 + 2 * i, cancel, 4);
    assert_true(echo_until(&s->echo.gone[RPC_GONE_CANCELLED], 256));
    assert_int_equal(echo_look(&s->echo).hostile, 0);
    assert_int_equal(echo_look(&s->echo).connections, 1);
    close(fd);
    no_call_is_left(s);
}

static void test_continuations(void **state)
{
    scene *s = *state;
    static unsigned char more[16384];
    int fd = wire_http2(s->echo.address, NULL, 0);
    wire_request(fd, 1, 0, "Silent", NULL, 0);
    /* fields without an end, each not indexed */
    for (size_t i = 0; i + 4 <= sizeof more; i += 4)
        memcpy(more + i, "\0\1a\0", 4);
    for (int i = 0; i < 1000; i++) {
        if (wire_frame(fd, CONTINUATION, 0, 1, more, sizeof more))
            break;
        look(s);
    }
    frames f = wire_frames(fd, 60000);
    assert_int_equal(f.ended, 1);
    close(fd);
    no_call_is_left(s);
    assert_in_range(s->most - s->before, 0, 2 * MIB);
    others_are_served(s);
}

/* Frames of one type, without reading what is answered. */
static void flood(scene *s, int type, int flags, unsigned stream, const void *data,
                  size_t size)
{
    int fd = wire_http2(s->echo.address, NULL, 0);
    if (stream > 0)
        wire_request(fd, stream, END_HEADERS, "Stream", NULL, 0);
    for (int i = 0; i < 200000; i++) {
        if (wire_frame(fd, type, flags, stream, data, size))
            break;
        if (i % 1000 == 0)
            look(s);
    }
    was_hostile(s, fd, 2 * MIB);
}

static void test_pings(void **state)
{
    flood(*state, PING, 0, 0, "12345678", 8);
}

static void test_settings(void **state)
{
    flood(*state, SETTINGS, 0, 0, "\0\4\0\0\1\0", 6);
}

static void test_data_without_data(void **state)
{
    flood(*state, DATA, 0, 1, NULL, 0);
}

static void test_priorities(void **state)
{
    flood(*state, PRIORITY, 0, 3, "\0\0\0\0\1", 5);
}

/* 4 KiB of a header, indexed once and named a thousand times. */
static void test_a_header_bomb(void **state)
{
    scene *s = *state;
    unsigned char bomb[3600 + 8 + 4000];
    size_t n = 0;
    int fd = wire_http2(s->echo.address, NULL, 0);
    memcpy(bomb, "\x40\1a\x7f\x91\x1b", 6); /* indexed, value of 127 + 17 + 27 * 128 */
    n = 6;
    memset(bomb + n, 'x', 3600);
    n += 3600;
    memset(bomb + n, 0x80 | 62, 4000); /* the newest entry of the table */
    n += 4000;
    for (unsigned i = 0; i < 200; i++) {
        if (wire_request(fd, 1 + 2 * i, END_HEADERS | END_STREAM, "Silent", bomb, n))
            break;
        look(s);
    }
    frames f = wire_frames(fd, 1000);
    close(fd);
    assert_true(f.count[HEADERS] >= 200 || f.ended);
    assert_int_equal(s->echo.begun, 0);
    assert_in_range(s->most - s->before, 0, 5 * MIB);
    no_call_is_left(s);
    others_are_served(s);
}

/* Each stream begins a message of 8 MiB and sends what its window allows, as an honest
 * client would, but never the end of it. */
static void test_messages_that_never_end(void **state)
{
    enum { STREAMS = 256, ROUNDS = 60 };
    scene *s = *state;
    static unsigned char part[16384];
    static size_t credit[2 * STREAMS + 2], sent[2 * STREAMS + 2];
    int fd = wire_http2(s->echo.address, NULL, 0), ended = 0;

    memset(credit, 0, sizeof credit);
    memset(sent, 0, sizeof sent);
    for (unsigned i = 1; i < 2 * STREAMS; i += 2) {
        wire_request(fd, i, END_HEADERS, "Unary", NULL, 0);
        wire_frame(fd, DATA, 0, i, "\0\0\x7f\xff\xff", 5);
        credit[i] = 16384 - 5;
    }
    for (int round = 0; round < ROUNDS && !ended; round++) {
        for (unsigned i = 1; i < 2 * STREAMS; i += 2)
            while (credit[i] > 0 && sent[i] < 8000000 && !ended) {
                size_t n = credit[i] < sizeof part ? credit[i] : sizeof part;
                ended = wire_frame(fd, DATA, 0, i, part, n) != 0;
                credit[i] -= n;
                sent[i] += n;
            }
        look(s);
        ended = ended || wire_credit(fd, 20, credit, 2 * STREAMS);
    }
    look(s);
    /* the largest message, in a block that was doubled, and a window of each stream */
    assert_in_range(s->most - s->before, 0, 24 * MIB);
    others_are_served(s);
    close(fd);
    no_call_is_left(s);
}

static const unsigned char no_window[6] = {0, 4, 0, 0, 0, 0};

/* The peer opens no window, so nothing of a stream may be sent. */
static void test_a_window_that_stays_closed(void **state)
{
    scene *s = *state;
    static const unsigned char message[] = "\0\0\0\0\14"
                                           "1000 1000000";
    int fd = wire_http2(s->echo.address, no_window, sizeof no_window);
    frames f;
    wire_request(fd, 1, END_HEADERS, "Count", NULL, 0);
    wire_frame(fd, DATA, END_STREAM, 1, message, sizeof message - 1);
    f = wire_frames(fd, 3000);
    look(s);
    assert_int_equal(f.reset, 8); /* CANCEL */
    assert_int_equal(s->echo.gone[RPC_GONE_CANCELLED], 1);
    assert_in_range(s->most - s->before, 0, 5 * MIB);
    assert_in_range(s->echo.most_unsent, 0, 2 * MIB + 64);
    close(fd);
    no_call_is_left(s);
}

/* Windows are open, and the peer does not read. */
static void test_a_peer_that_does_not_read(void **state)
{
    scene *s = *state;
    static const unsigned char message[] = "\0\0\0\0\14"
                                           "1000 1000000";
    static const unsigned char wide[6] = {0, 4, 0x7f, 0xff, 0xff, 0xff};
    static const unsigned char more[4] = {0x7f, 0, 0, 0};
    int fd = wire_http2(s->echo.address, wide, sizeof wide);
    wire_frame(fd, WINDOW_UPDATE, 0, 0, more, 4);
    wire_request(fd, 1, END_HEADERS, "Count", NULL, 0);
    wire_frame(fd, DATA, END_STREAM, 1, message, sizeof message - 1);
    assert_true(echo_until(&s->echo.gone[RPC_GONE_BROKEN], 1));
    look(s);
    assert_in_range(s->most - s->before, 0, 5 * MIB);
    no_call_is_left(s);
    others_are_served(s);
    close(fd);
}

static void test_a_preface_and_then_nothing(void **state)
{
    scene *s = *state;
    int fd = wire_http2(s->echo.address, NULL, 0);
    assert_int_equal(wire_drain(fd, 60000), 1);
    close(fd);
    fd = wire_open(s->echo.address);
    wire_send(fd, "PRI * HTT", 9);
    assert_int_equal(wire_drain(fd, 60000), 1);
    close(fd);
    no_call_is_left(s);
}

static void test_more_streams_than_are_allowed(void **state)
{
    scene *s = *state;
    int fd = wire_http2(s->echo.address, NULL, 0);
    frames f;
    for (unsigned i = 0; i < 300; i++)
        wire_request(fd, 1 + 2 * i, END_HEADERS, "Silent", NULL, 0);
    assert_true(echo_until(&s->echo.begun, 256));
    f = wire_frames(fd, 500);
    assert_true(f.count[RST_STREAM] == 44 || f.ended);
    assert_int_equal(s->echo.begun, 256);
    close(fd);
    no_call_is_left(s);
}

static void test_more_connections_than_are_allowed(void **state)
{
    rpc_limits limits;
    int fds[8], open = 0;
    scene *s;
    (void)state;
    rpc_limits_init(&limits);
    limits.count.connections = 5;
    up_with((void **)&s, &limits);
    for (int i = 0; i < 8; i++) {
        fds[i] = wire_http2(s->echo.address, NULL, 0);
        open += !wire_drain(fds[i], 200);
    }
    assert_int_equal(open, 5);
    assert_int_equal(echo_look(&s->echo).refused, 3);
    for (int i = 0; i < 8; i++)
        close(fds[i]);
    no_call_is_left(s);
    others_are_served(s);
    down((void **)&s);
}

#define TEST(name)  cmocka_unit_test_setup_teardown(name, up, down)
#define HASTY(name) cmocka_unit_test_setup_teardown(name, up_hasty, down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(test_rapid_reset),
        TEST(test_resets_that_the_server_is_made_to_send),
        TEST(test_cancelling_everything_once_is_no_flood),
        TEST(test_continuations),
        TEST(test_pings),
        TEST(test_settings),
        TEST(test_data_without_data),
        TEST(test_priorities),
        TEST(test_a_header_bomb),
        TEST(test_messages_that_never_end),
        HASTY(test_a_window_that_stays_closed),
        HASTY(test_a_peer_that_does_not_read),
        HASTY(test_a_preface_and_then_nothing),
        TEST(test_more_streams_than_are_allowed),
        cmocka_unit_test(test_more_connections_than_are_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
