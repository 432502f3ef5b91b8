/*
 * test_rpc_nomem.c: memory that is refused, at each place where a server or a client
 * takes some: nothing crashes, nothing is lost, each call and request ends once.
 *
 * Server and client share a loop of this thread, so that the Nth allocation is the same
 * in every run, but for what the system's sockets do.
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

/* Refuses the allocation number `fails`, once. */
typedef struct meter {
    long count, fails;
    size_t bytes; /* in use */
} meter;

static void *metered(void *ud, void *ptr, size_t osize, size_t nsize)
{
    meter *m = ud;
    void *p;
    if (nsize == 0) {
        free(ptr);
        m->bytes -= osize;
        return NULL;
    }
    if (++m->count == m->fails)
        return NULL;
    p = realloc(ptr, nsize);
    assert_non_null(p);
    m->bytes += nsize - (ptr ? osize : 0);
    return p;
}

/* A unary call, a stream of some size, and a request of HTTP/1.1. */
static void run_all(rpc_loop *loop, const char *address, int *right)
{
    rpc_channel *channel;
    sessile_error err;
    static const char *const methods[] = {"Unary", "Count", "Fail"};
    static const char *const messages[] = {"hello", "3 100000", "9 text"};
    static const char post[] = "POST /echo HTTP/1.1\r\nHost: x\r\n"
                               "Content-Length: 2\r\n\r\nhi";
    const rpc_header header = {"x-a", "b"};
    char got[4096];
    int fd, ended = 0;

    *right = 0;
    if (rpc_channel_open(&channel, loop, address, NULL, NULL, &err))
        return;
    for (int i = 0; i < 3; i++) {
        char path[64];
        answer a = {0};
        snprintf(path, sizeof path, "/t.Echo/%s", methods[i]);
        if (rpc_request_open(&a.request, channel, path, &header, 1, clock_us() + 2000000,
                             &answer_replies, &a, &err))
            continue;
        if (rpc_request_send(a.request, messages[i], strlen(messages[i])) &&
            a.request != NULL)
            rpc_request_cancel(a.request);
        if (a.request)
            rpc_request_end(a.request);
        while (!a.ended)
            rpc_loop_turn(loop, 100);
        turn_for(loop, 0);
        assert_int_equal(a.ended, 1);
        *right += a.code == (i == 2 ? RPC_FAILED_PRECONDITION : RPC_OK);
        answer_free(&a);
    }
    rpc_channel_close(channel);
    fd = wire_open(address);
    wire_send(fd, post, sizeof post - 1);
    for (int i = 0; i < 100 && !ended; i++) {
        size_t n;
        rpc_loop_turn(loop, 2);
        n = wire_read(fd, got, sizeof got, 0, &ended);
        if (n > 0) {
            *right += strncmp(got, "HTTP/1.1 200", 12) == 0;
            break;
        }
    }
    close(fd);
}

static void test_every_allocation_may_fail(void **state)
{
    long places = 0, n;
    (void)state;

    for (n = 1;; n++) {
        meter m = {0, n, 0};
        allocator a = {metered, &m};
        rpc_loop *loop = NULL;
        rpc_listener *l = NULL;
        sessile_error err;
        int right = 0;
        echo e;

        memset(&e, 0, sizeof e);
        if (!rpc_loop_open(&loop, NULL, &a, &err) &&
            !rpc_listen(&l, &loop, 1, "127.0.0.1:0", NULL, &echo_service, &e, &err))
            run_all(loop, rpc_listener_address(l), &right);
        rpc_listener_close(l);
        rpc_loop_close(loop);
        assert_int_equal(m.bytes, 0);
        assert_int_equal(e.begun, e.gone[0] + e.gone[1] + e.gone[2] + e.gone[3]);
        places++;
        if (m.count < n) {
            assert_int_equal(right, 4); /* nothing failed */
            break;
        }
    }
    print_message("# figure: allocations that failed = %ld\n", places - 1);
    assert_true(places > 40);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
