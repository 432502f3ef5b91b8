/*
 * fake_server.c: a TCP server of a test.
 *
 * Owns the listening socket and the thread. Knows nothing of what is said.
 */
#include "support/fake_server.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

int fake_server_readable(fake_server *f, int fd)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};

    while (!atomic_load(&f->stop))
        if (poll(&p, 1, 10) > 0)
            return 1;
    return 0;
}

static void *serve(void *arg)
{
    fake_server *f = arg;

    while (fake_server_readable(f, f->listener)) {
        int fd = accept4(f->listener, NULL, NULL, SOCK_CLOEXEC), yes = 1;
        if (fd >= 0) {
            setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &yes, sizeof yes);
            f->connections++;
            f->talk(f, fd);
            close(fd);
        }
    }
    return NULL;
}

int fake_server_start(fake_server *f, const char *host)
{
    struct sockaddr_in at = {.sin_family = AF_INET};
    socklen_t size = sizeof at;

    assert_int_equal(inet_pton(AF_INET, host, &at.sin_addr), 1);
    f->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(f->listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(f->listener, 8), 0);
    assert_int_equal(getsockname(f->listener, (struct sockaddr *)&at, &size), 0);
    assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
    return ntohs(at.sin_port);
}

void fake_server_stop(fake_server *f)
{
    atomic_store(&f->stop, 1);
    pthread_join(f->thread, NULL);
    close(f->listener);
}
