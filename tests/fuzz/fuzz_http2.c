/*
 * fuzz_http2.c: bytes on a connection of a server: which protocol it is, HTTP/2, gRPC,
 * and HTTP/1.1 from its first byte to its end.
 *
 * The first byte says whether the preface and SETTINGS come before the rest, and how the
 * rest is cut. Holds: each call that was begun is told its end once; the connection ends
 * when its peer does; a service is never given more than the limits say.
 */
#include "fuzz/fuzz.h"

#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/conn.h"
#include "rpc/listener.h"

static const char *const words[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
                                    "Content-Length: 3\r\n",
                                    "application/grpc",
                                    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                                    "\x83\x86",
                                    "te",
                                    "trailers",
                                    "grpc-timeout",
                                    "\0\0\0\0\1x",
                                    NULL};

const fuzz_about fuzz_this = {"http2", 6000, 4096, words};

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0";
#define BLOCK                                         \
    "\x83\x86\0\5:path\5/Echo\0\xa:authority\1x\0\xc" \
    "content-type\x10"                                \
    "application/grpc"                                \
    "\0\2te\x8trailers"
#define BLOCK_SIZE "\x52"

void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char call[] =
        "\0\0" BLOCK_SIZE "\1\4\0\0\0\1" BLOCK "\0\0\7\0\1\0\0\0\1\0\0\0\0\2hi";
    static const char reset[] =
        "\0\0" BLOCK_SIZE "\1\4\0\0\0\1" BLOCK "\0\0\4\3\0\0\0\0\1\0\0\0\10";
    static const char compressed[] =
        "\0\0" BLOCK_SIZE "\1\4\0\0\0\1" BLOCK "\0\0\7\0\1\0\0\0\1\1\0\0\0\2hi";
    static const char ping[] = "\0\0\10\6\0\0\0\0\0"
                               "12345678"
                               "\0\0\10\7\0\0\0\0\0\0\0\0\0\0\0\0\0";
    fuzz_give(take, arg, 1, call, sizeof call - 1);
    fuzz_give(take, arg, 15, call, sizeof call - 1);
    fuzz_give(take, arg, 1, reset, sizeof reset - 1);
    fuzz_give(take, arg, 1, compressed, sizeof compressed - 1);
    fuzz_give(take, arg, 1, ping, sizeof ping - 1);
    fuzz_give_text(take, arg, 0, "GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    fuzz_give_text(take, arg, 14,
                   "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello");
}

static rpc_limits limits;
static int begun_count, gone_count;

static void begun(void *ud, rpc_call *call)
{
    (void)ud;
    begun_count++;
    FUZZ_CHECK(strlen(rpc_call_path(call)) <= limits.bytes.headers);
}

static void message(void *ud, rpc_call *call, const void *data, size_t size)
{
    (void)ud;
    FUZZ_CHECK(size <= limits.bytes.message);
    if (rpc_call_kind(call) == RPC_GRPC)
        rpc_send(call, data, size);
    else
        rpc_http_reply(call, 200, "text/plain", data, size);
}

static void ended(void *ud, rpc_call *call)
{
    (void)ud;
    rpc_finish(call, RPC_OK, "fine", NULL, 0);
}

static void gone(void *ud, rpc_call *call, rpc_gone why)
{
    (void)ud;
    (void)why;
    gone_count++;
    FUZZ_CHECK(rpc_call_over(call));
}

static const rpc_service service = {begun, message, ended, NULL, gone};
static rpc_listener listener;

static void give(rpc_loop *loop, int fd, const void *data, size_t size)
{
    char reply[4096];
    if (send(fd, data, size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
        return;
    rpc_loop_turn(loop, 0);
    while (recv(fd, reply, sizeof reply, MSG_DONTWAIT) > 0)
        ;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static rpc_loop *loop;
    size_t step;
    int pair[2], turns;
    conn *c;

    if (!size || socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair))
        return 0;
    if (!loop) {
        rpc_limits_init(&limits);
        limits.bytes.message = 2000;
        limits.bytes.headers = 1000;
        FUZZ_CHECK(!rpc_loop_open(&loop, &limits, NULL, NULL));
        listener.service = &service;
    }
    begun_count = gone_count = 0;
    c = conn_new(loop, pair[0], &loop->limits);
    FUZZ_CHECK(c != NULL);
    conn_serve(c, &listener, NULL);
    step = data[0] / 2 ? data[0] / 2 : size;
    if (data[0] % 2)
        give(loop, pair[1], preface, sizeof preface - 1);
    for (data++, size--; size;) {
        size_t n = step < size ? step : size;
        give(loop, pair[1], data, n);
        data += n;
        size -= n;
    }
    close(pair[1]);
    for (turns = 0; turns < 50 && rpc_loop_look(loop).connections; turns++)
        rpc_loop_turn(loop, 0);
    FUZZ_CHECK(rpc_loop_look(loop).connections == 0);
    FUZZ_CHECK(begun_count == gone_count);
    FUZZ_CHECK(rpc_loop_look(loop).calls == 0);
    return 0;
}
