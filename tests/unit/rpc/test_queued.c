/*
 * test_queued.c: what all replies together may hold in memory while their clients do not
 * read: who is refused, who is served, and that nothing is counted for ever.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "unit/rpc/caller.h"
#include "unit/rpc/echo.h"
#include "unit/rpc/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#define CALM 11u /* ENHANCE_YOUR_CALM: gRPC takes it for RESOURCE_EXHAUSTED */
#define MIB  ((size_t)1 << 20)
#define MOST (8 * MIB)

typedef struct scene {
    echo echo;
    rpc_queued *queued;
} scene;

static int up(void **state)
{
    scene *s = calloc(1, sizeof *s);
    assert_int_equal(rpc_queued_open(&s->queued, MOST, &allocator_default, NULL),
                     SESSILE_OK);
    echo_start_counted(&s->echo, 2, "127.0.0.1:0", NULL, NULL, s->queued);
    *state = s;
    return 0;
}

static int down(void **state)
{
    scene *s = *state;
    echo_stop(&s->echo);
    rpc_queued_drop(s->queued);
    free(s);
    return 0;
}

/* A client that lets the server send nothing. */
static int slow_client(const scene *s)
{
    static const unsigned char no_window[6] = {0, 4, 0, 0, 0, 0};
    return wire_http2(s->echo.address, no_window, sizeof no_window);
}

/* It asks for a message of a megabyte, which waits in the server, or is refused. */
static void ask_a_megabyte(scene *s, int fd, unsigned id)
{
    static const unsigned char message[] = "\0\0\0\0\11"
                                           "1 1000000";
    const int begun = atomic_load(&s->echo.begun);
    wire_request(fd, id, END_HEADERS, "Count", NULL, 0);
    wire_frame(fd, DATA, END_STREAM, id, message, sizeof message - 1);
    assert_true(echo_until(&s->echo.begun, begun + 1));
    assert_in_range(rpc_queued_bytes(s->queued), 0, MOST);
}

typedef struct client {
    rpc_loop *loop;
    rpc_channel *channel;
} client;

static client client_open(const scene *s)
{
    client c;
    sessile_error err;
    assert_int_equal(rpc_loop_open(&c.loop, NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(
        rpc_channel_open(&c.channel, c.loop, s->echo.address, NULL, NULL, &err),
        SESSILE_OK);
    return c;
}

static void client_close(client *c)
{
    rpc_channel_close(c->channel);
    rpc_loop_close(c->loop);
}

static void others_are_served(const scene *s)
{
    client c = client_open(s);
    answer a = {0};
    ask(c.loop, c.channel, &a, "Count", "1 500000", 8, 0);
    assert_int_equal(a.code, RPC_OK);
    assert_int_equal(a.bytes, 500000);
    answer_free(&a);
    client_close(&c);
}

static void nothing_is_counted(const scene *s)
{
    assert_true(echo_empty(&s->echo));
    for (int i = 0; i < 3000 && rpc_queued_bytes(s->queued); i++)
        usleep(10000);
    assert_int_equal(rpc_queued_bytes(s->queued), 0);
}

/* ---------------------------------------------------------------------- tests */

static void test_slow_readers_hold_so_much_together(void **state)
{
    enum { CLIENTS = 24 };
    scene *s = *state;
    int fds[CLIENTS], dropped = 0;
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = slow_client(s);
        ask_a_megabyte(s, fds[i], 1);
    }
    others_are_served(s);
    for (int i = 0; i < CLIENTS; i++) {
        frames f = wire_frames(fds[i], 100);
        assert_true(f.reset == CALM || f.reset == ~0u);
        dropped += f.reset == CALM;
    }
    assert_in_range(dropped, CLIENTS - 8, CLIENTS - 1);
    assert_in_range(rpc_queued_bytes(s->queued), 1, MOST);
    for (int i = 0; i < CLIENTS; i++)
        close(fds[i]);
    nothing_is_counted(s);
}

static void test_who_holds_most_is_refused(void **state)
{
    enum { STREAMS = 12 };
    scene *s = *state;
    int modest = slow_client(s), greedy = slow_client(s);
    ask_a_megabyte(s, modest, 1);
    for (unsigned i = 0; i < STREAMS; i++)
        ask_a_megabyte(s, greedy, 1 + 2 * i);
    assert_int_equal(wire_frames(greedy, 500).reset, CALM);
    assert_int_equal(wire_frames(modest, 500).reset, ~0u);
    close(greedy);
    close(modest);
    nothing_is_counted(s);
}

static void test_a_reply_larger_than_all_may_be_is_refused(void **state)
{
    scene *s = *state;
    client c = client_open(s);
    answer a = {0};
    ask(c.loop, c.channel, &a, "Count", "1 9000000", 9, 0);
    assert_int_equal(a.code, RPC_RESOURCE_EXHAUSTED);
    assert_int_equal(a.messages, 0);
    assert_non_null(strstr(a.message, "ask for less"));
    answer_free(&a);
    client_close(&c);
    nothing_is_counted(s);
}

/* A reply of 5 MB over HTTP/1.1, for which there is no room left: others hold as much. */
static void test_one_of_http_is_told(void **state)
{
    enum { BODY = 5000000 };
    static char body[BODY];
    static const char small[] = "GET /hello HTTP/1.1\r\nHost: localhost\r\n\r\n";
    char head[200], text[1000];
    scene *s = *state;
    int held = slow_client(s), fd = wire_open(s->echo.address);
    int size = snprintf(head, sizeof head,
                        "POST /echo HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Length: %d\r\n\r\n",
                        BODY);
    for (unsigned i = 0; i < 5; i++)
        ask_a_megabyte(s, held, 1 + 2 * i);
    assert_int_equal(wire_send(fd, head, (size_t)size), 0);
    assert_int_equal(wire_send(fd, body, BODY), 0);
    wire_read(fd, text, sizeof text, 2000, NULL);
    assert_non_null(strstr(text, "HTTP/1.1 429"));
    assert_non_null(strstr(text, "ask for less"));
    assert_int_equal(wire_send(fd, small, sizeof small - 1), 0);
    wire_read(fd, text, sizeof text, 2000, NULL);
    assert_non_null(strstr(text, "HTTP/1.1 200"));
    close(fd);
    close(held);
    nothing_is_counted(s);
}

int main(void)
{
#define UP(test) cmocka_unit_test_setup_teardown(test, up, down)
    const struct CMUnitTest tests[] = {
        UP(test_slow_readers_hold_so_much_together),
        UP(test_who_holds_most_is_refused),
        UP(test_a_reply_larger_than_all_may_be_is_refused),
        UP(test_one_of_http_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
