/*
 * os_socket.c: sockets that a library owns: who is at the other end, and a detour for
 * what is said over them.
 *
 * A library that is told nothing but a socket's number can be made to talk to us instead
 * of the other end: one end of a socket pair takes the number (dup2), and the socket gets
 * another one. Every descriptor closes on exec; none of these calls waits.
 */
#include "base/os.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

int os_socket_local(int fd)
{
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    memset(&at, 0, sizeof at);
    if (getpeername(fd, (struct sockaddr *)&at, &size) != 0)
        return 0;
    if (at.ss_family == AF_INET) {
        struct sockaddr_in in;
        memcpy(&in, &at, sizeof in);
        return (ntohl(in.sin_addr.s_addr) >> 24) == 127;
    }
    if (at.ss_family == AF_INET6) {
        struct sockaddr_in6 in;
        memcpy(&in, &at, sizeof in);
        return IN6_IS_ADDR_LOOPBACK(&in.sin6_addr) ||
               (IN6_IS_ADDR_V4MAPPED(&in.sin6_addr) && in.sin6_addr.s6_addr[12] == 127);
    }
    return at.ss_family == AF_UNIX;
}

static int not_yet(void)
{
    return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
}

int os_socket_receive(int fd, void *out, int size, int peek)
{
    ssize_t n = recv(fd, out, (size_t)size, MSG_DONTWAIT | (peek ? MSG_PEEK : 0));
    return n > 0 ? (int)n : n < 0 && not_yet() ? 0 : -1;
}

int os_socket_send(int fd, const void *data, int size)
{
    ssize_t n = send(fd, data, (size_t)size, MSG_DONTWAIT | MSG_NOSIGNAL);
    return n >= 0 ? (int)n : not_yet() ? 0 : -1;
}

void os_socket_private(int fd)
{
    (void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

int os_detour_open(os_detour *d, int fd)
{
    struct stat info;
    int ends[2];
    memset(d, 0, sizeof *d);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) != 0)
        return -1;
    d->near = ends[0];
    d->far = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (d->far < 0 || fstat(ends[1], &info) != 0 || dup3(ends[1], fd, O_CLOEXEC) < 0) {
        int why = errno;
        if (d->far >= 0)
            close(d->far);
        close(ends[0]);
        close(ends[1]);
        errno = why;
        return -1;
    }
    close(ends[1]);
    d->device = (uint64_t)info.st_dev;
    d->inode = (uint64_t)info.st_ino;
    d->open = 1;
    return 0;
}

int os_detour_holds(const os_detour *d, int fd)
{
    struct stat info;
    return d->open && fd >= 0 && fstat(fd, &info) == 0 &&
           (uint64_t)info.st_dev == d->device && (uint64_t)info.st_ino == d->inode;
}

void os_detour_close(os_detour *d, int fd)
{
    if (!d->open)
        return;
    if (os_detour_holds(d, fd))
        (void)dup3(d->far, fd, O_CLOEXEC);
    close(d->far);
    close(d->near);
    d->open = 0;
}
