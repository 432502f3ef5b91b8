/* wire.c: a socket that says exactly what a test wants. */
#include "unit/rpc/wire.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

int wire_open(const char *address)
{
    struct sockaddr_in to;
    int one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    memset(&to, 0, sizeof to);
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    to.sin_port = htons((uint16_t)atoi(strchr(address, ':') + 1));
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof to), 0);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    return fd;
}

int wire_send(int fd, const void *data, size_t size)
{
    const char *at = data;
    while (size > 0) {
        ssize_t n = send(fd, at, size, MSG_NOSIGNAL);
        if (n <= 0)
            return -1;
        at += n;
        size -= (size_t)n;
    }
    return 0;
}

size_t wire_read(int fd, char *out, size_t size, int timeout_ms, int *ended)
{
    size_t got = 0;
    int end = 0;
    while (got + 1 < size && !end) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n;
        if (poll(&p, 1, timeout_ms) <= 0)
            break;
        n = recv(fd, out + got, size - 1 - got, 0);
        end = n <= 0;
        got += n > 0 ? (size_t)n : 0;
    }
    out[got] = 0;
    if (ended)
        *ended = end;
    return got;
}

int wire_drain(int fd, int timeout_ms)
{
    static char out[65536];
    int ended = 0;
    while (wire_read(fd, out, sizeof out, timeout_ms, &ended) > 0 && !ended)
        ;
    return ended;
}
