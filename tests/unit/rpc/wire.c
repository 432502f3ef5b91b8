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

/* ---------------------------------------------------------------------- HTTP/2 */

int wire_frame(int fd, int type, int flags, unsigned stream, const void *data,
               size_t size)
{
    static _Thread_local unsigned char out[9 + 65536];
    out[0] = (unsigned char)(size >> 16);
    out[1] = (unsigned char)(size >> 8);
    out[2] = (unsigned char)size;
    out[3] = (unsigned char)type;
    out[4] = (unsigned char)flags;
    out[5] = (unsigned char)(stream >> 24);
    out[6] = (unsigned char)(stream >> 16);
    out[7] = (unsigned char)(stream >> 8);
    out[8] = (unsigned char)stream;
    if (size > 0)
        memcpy(out + 9, data, size);
    return wire_send(fd, out, 9 + size);
}

int wire_http2(const char *address, const void *settings, size_t size)
{
    int fd = wire_open(address);
    wire_send(fd, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24);
    wire_frame(fd, SETTINGS, 0, 0, settings, size);
    wire_frame(fd, SETTINGS, ACK, 0, NULL, 0);
    return fd;
}

static size_t put_field(unsigned char *out, const char *name, const char *value)
{
    size_t n = 0, size = strlen(name);
    out[n++] = 0; /* not indexed, a new name */
    out[n++] = (unsigned char)size;
    memcpy(out + n, name, size);
    n += size;
    size = strlen(value);
    out[n++] = (unsigned char)size;
    memcpy(out + n, value, size);
    return n + size;
}

int wire_call(int fd, unsigned stream, int flags, const char *path, const void *more,
              size_t size)
{
    unsigned char block[20000];
    size_t n = 0;
    block[n++] = 0x83; /* :method POST */
    block[n++] = 0x86; /* :scheme http */
    n += put_field(block + n, ":path", path);
    n += put_field(block + n, ":authority", "x");
    n += put_field(block + n, "content-type", "application/grpc");
    n += put_field(block + n, "te", "trailers");
    if (size > 0)
        memcpy(block + n, more, size);
    return wire_frame(fd, HEADERS, flags, stream, block, n + size);
}

int wire_request(int fd, unsigned stream, int flags, const char *method, const void *more,
                 size_t size)
{
    char path[64] = "/t.Echo/";
    strcat(path, method);
    return wire_call(fd, stream, flags, path, more, size);
}

static int read_all(int fd, unsigned char *out, size_t size, int timeout_ms)
{
    size_t got = 0;
    while (got < size) {
        struct pollfd p = {fd, POLLIN, 0};
        ssize_t n;
        if (poll(&p, 1, timeout_ms) <= 0)
            return 0;
        n = recv(fd, out + got, size - got, 0);
        if (n <= 0)
            return -1;
        got += (size_t)n;
    }
    return 1;
}

static unsigned u32(const unsigned char *at)
{
    return (unsigned)at[0] << 24 | (unsigned)at[1] << 16 | (unsigned)at[2] << 8 | at[3];
}

static frames read_frames(int fd, int timeout_ms, size_t *credit, unsigned streams)
{
    static _Thread_local unsigned char body[1 << 17];
    frames f;
    int more;
    memset(&f, 0, sizeof f);
    f.goaway = f.reset = ~0u;
    for (;;) {
        unsigned char head[9];
        size_t size;
        more = read_all(fd, head, sizeof head, timeout_ms);
        if (more <= 0)
            break;
        size = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        assert_true(size <= sizeof body);
        if (size > 0 && (more = read_all(fd, body, size, timeout_ms)) <= 0)
            break;
        if (head[3] < 10)
            f.count[head[3]]++;
        if (head[3] == WINDOW_UPDATE && credit && u32(head + 5) < streams)
            credit[u32(head + 5)] += u32(body);
        if (head[3] == GOAWAY)
            f.goaway = u32(body + 4);
        if (head[3] == RST_STREAM)
            f.reset = u32(body);
    }
    f.ended = more < 0;
    return f;
}

frames wire_frames(int fd, int timeout_ms)
{
    return read_frames(fd, timeout_ms, NULL, 0);
}

int wire_credit(int fd, int timeout_ms, size_t *credit, unsigned streams)
{
    return read_frames(fd, timeout_ms, credit, streams).ended;
}
