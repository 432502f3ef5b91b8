/*
 * listener.c: the sockets that a server listens at, and accepting.
 *
 * All loops watch the same sockets with EPOLLEXCLUSIVE, so that the system wakes one of
 * them for a new connection. A socket for each loop (SO_REUSEPORT) would lose the
 * connections that wait in one whose loop is busy or has ended.
 */
#include "rpc/listener.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/conn.h"

enum {
    BACKLOG = 1024,
    ACCEPTS = 16, /* in one turn: other loops have a right too */
    PAUSE_US = 100 * 1000,
};

/* ---------------------------------------------------------------------- accepting */

static void accept_one(listener_share *share, int fd, const address *from)
{
    rpc_loop *loop = share->loop;
    conn *c;
    int one = 1;

    if (atomic_load(&loop->figures.connections) >= loop->limits.count.connections) {
        atomic_fetch_add(&loop->figures.refused, 1);
        close(fd);
        return;
    }
    atomic_fetch_add(&loop->figures.accepted, 1);
    if (from->at.ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    c = conn_new(loop, fd, &loop->limits);
    if (!c)
        return;
    if (from->at.ss_family == AF_UNIX)
        memcpy(c->owner.peer, "unix", sizeof "unix");
    else
        address_print(from, c->owner.peer);
    c->draining = atomic_load(&share->listener->draining) != 0;
    conn_serve(c, share->listener, share->listener->tls);
}

static void watch(listener_share *share)
{
    size_t i;
    for (i = 0; i < share->listener->at.count; i++)
        loop_watch(share->loop, &share->sockets[i].io, EPOLLIN | EPOLLEXCLUSIVE);
}

static void unwatch(listener_share *share)
{
    size_t i;
    timer_clear(&share->loop->timers, &share->pause);
    for (i = 0; i < share->listener->at.count; i++)
        loop_unwatch(share->loop, &share->sockets[i].io);
}

static void resume(timer *t)
{
    watch((listener_share *)(void *)((char *)t - offsetof(listener_share, pause)));
}

/* No descriptor is free: without a pause the loop would try for ever. */
static void pause_a_while(listener_share *share)
{
    unwatch(share);
    if (timer_set(&share->loop->timers, &share->pause, share->loop->now_us + PAUSE_US))
        watch(share);
}

static void accept_some(listener_share *share, int listening)
{
    int i;
    for (i = 0; i < ACCEPTS; i++) {
        address from;
        int fd;
        from.size = sizeof from.at;
        memset(&from.at, 0, sizeof from.at);
        fd = accept4(listening, (struct sockaddr *)&from.at, &from.size,
                     SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd >= 0)
            accept_one(share, fd, &from);
        else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS ||
                 errno == ENOMEM) {
            pause_a_while(share);
            return;
        } else if (errno != EINTR && errno != ECONNABORTED)
            return;
    }
}

static void ready(source *s, uint32_t events)
{
    listening *at = (listening *)(void *)((char *)s - offsetof(listening, io));
    (void)events;
    accept_some(at->share, s->fd);
}

/* ---------------------------------------------------------------------- listening */

/* A socket that nobody listens at any more, after a crash, is in the way of the next. */
static void remove_dead(const address *a)
{
    struct sockaddr_un un;
    struct stat st;
    int fd;

    memcpy(&un, &a->at, sizeof un);
    if (lstat(un.sun_path, &st) || !S_ISSOCK(st.st_mode))
        return;
    fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return;
    if (connect(fd, (const struct sockaddr *)&a->at, a->size) && errno == ECONNREFUSED)
        unlink(un.sun_path);
    close(fd);
}

static sessile_status listen_at(rpc_listener *l, const char *text, address *a,
                                sessile_error *err)
{
    int one = 1,
        fd = socket(a->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    int error;

    if (fd < 0)
        return fail_errno(err, errno, "a socket could not be opened");
    if (a->at.ss_family == AF_UNIX)
        remove_dead(a);
    else
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->at.ss_family == AF_INET6)
        setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &one, sizeof one);
    if (bind(fd, (struct sockaddr *)&a->at, a->size) || listen(fd, BACKLOG)) {
        error = errno;
        close(fd);
        if (error == EADDRINUSE)
            return fail(err, SESSILE_EXISTS,
                        "%s is in use: stop the program that listens there, or choose "
                        "another address",
                        text);
        return fail_errno(err, error, "%s cannot be listened at", text);
    }
    a->size = sizeof a->at;
    getsockname(fd, (struct sockaddr *)&a->at, &a->size);
    l->at.fds[l->at.count++] = fd;
    return SESSILE_OK;
}

static void set_port(address *a, uint16_t port)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    if (a->at.ss_family == AF_INET) {
        memcpy(&in, &a->at, sizeof in);
        in.sin_port = port;
        memcpy(&a->at, &in, sizeof in);
    } else if (a->at.ss_family == AF_INET6) {
        memcpy(&in6, &a->at, sizeof in6);
        in6.sin6_port = port;
        memcpy(&a->at, &in6, sizeof in6);
    }
}

static uint16_t port_of(const address *a)
{
    struct sockaddr_in in;
    struct sockaddr_in6 in6;
    memcpy(&in, &a->at, sizeof in);
    memcpy(&in6, &a->at, sizeof in6);
    return a->at.ss_family == AF_INET    ? in.sin_port
           : a->at.ss_family == AF_INET6 ? in6.sin6_port
                                         : 0;
}

/* A name may stand for several addresses: all of them, at the same port. */
static sessile_status listen_everywhere(rpc_listener *l, const char *text,
                                        sessile_error *err)
{
    addresses found;
    sessile_status status = addresses_find(&found, text, err);
    size_t i;

    l->at.local = 1;
    for (i = 0; i < found.count && !status; i++) {
        if (i && !port_of(&found.list[i]))
            set_port(&found.list[i], port_of(&found.list[0]));
        status = listen_at(l, text, &found.list[i], err);
        l->at.local = l->at.local && address_local(&found.list[i]);
    }
    if (status)
        return status;
    address_print(&found.list[0], l->at.text);
    if (found.list[0].at.ss_family == AF_UNIX)
        memcpy(l->at.path, l->at.text + 5, strlen(l->at.text + 5) + 1);
    return SESSILE_OK;
}

sessile_status rpc_listen(rpc_listener **out, rpc_loop *const *loops, size_t n,
                          const char *address, rpc_tls *tls, const rpc_service *service,
                          void *ud, sessile_error *err)
{
    rpc_listener *l;
    sessile_status status;
    size_t i, k;

    *out = NULL;
    if (!n || n > 1024)
        return fail(err, SESSILE_INVALID, "a listener needs 1 to 1024 loops");
    l = mem_zalloc(&loops[0]->alloc, sizeof *l + n * sizeof *l->shares);
    if (!l)
        return fail_nomem(err);
    l->alloc = loops[0]->alloc;
    l->service = service;
    l->ud = ud;
    l->tls = tls;
    tls_retain(tls);
    l->count = n;
    atomic_init(&l->open, n);
    status = listen_everywhere(l, address, err);
    if (status) {
        rpc_listener_close(l);
        return status;
    }
    for (i = 0; i < n; i++) {
        listener_share *share = &l->shares[i];
        share->listener = l;
        share->loop = loops[i];
        share->pause.fire = resume;
        share->next = loops[i]->shares;
        loops[i]->shares = share;
        for (k = 0; k < l->at.count; k++) {
            share->sockets[k].share = share;
            share->sockets[k].io.fd = l->at.fds[k];
            share->sockets[k].io.ready = ready;
        }
        watch(share);
    }
    *out = l;
    return SESSILE_OK;
}

const char *rpc_listener_address(const rpc_listener *l)
{
    return l->at.text;
}

int rpc_listener_local(const rpc_listener *l)
{
    return l->at.local;
}

/* ---------------------------------------------------------------------- the end */

static void stop_listening(rpc_listener *l)
{
    size_t i;
    for (i = 0; i < l->at.count; i++)
        close(l->at.fds[i]);
    l->at.count = 0;
    if (l->at.path[0])
        unlink(l->at.path);
    l->at.path[0] = 0;
}

static void drain(mail *m)
{
    listener_share *share =
        (listener_share *)(void *)((char *)m - offsetof(listener_share, drain));
    conn *c, *next;
    size_t i;

    if (!share->loop)
        return;
    /* Who has connected already is served. */
    for (i = 0; i < share->listener->at.count; i++)
        accept_some(share, share->listener->at.fds[i]);
    unwatch(share);
    if (atomic_fetch_sub(&share->listener->open, 1) == 1)
        stop_listening(share->listener);
    for (c = share->loop->conns.all; c; c = next) {
        next = c->next;
        if (c->owner.listener == share->listener)
            conn_drain(c);
    }
}

void rpc_listener_drain(rpc_listener *l)
{
    size_t i;
    if (atomic_exchange(&l->draining, 1))
        return;
    for (i = 0; i < l->count; i++) {
        mailbox *box = l->shares[i].loop->box;
        l->shares[i].drain.deliver = drain;
        pthread_mutex_lock(&box->lock);
        mailbox_put(box, &l->shares[i].drain);
        mailbox_unlock(box);
    }
}

void listener_share_leave(listener_share *share)
{
    listener_share **at = &share->loop->shares;
    unwatch(share);
    while (*at != share)
        at = &(*at)->next;
    *at = share->next;
    share->loop = NULL;
}

void rpc_listener_close(rpc_listener *l)
{
    allocator a;
    conn *c, *next;
    size_t i;

    if (!l)
        return;
    a = l->alloc;
    for (i = 0; i < l->count; i++) {
        rpc_loop *loop = l->shares[i].loop;
        if (!loop)
            continue;
        loop_settle(loop); /* it may have been told to drain */
        for (c = loop->conns.all; c; c = next) {
            next = c->next;
            if (c->owner.listener == l)
                conn_end(c);
        }
        loop_settle(loop);
        listener_share_leave(&l->shares[i]);
    }
    stop_listening(l);
    rpc_tls_drop(l->tls);
    mem_free(&a, l, sizeof *l + l->count * sizeof *l->shares);
}
