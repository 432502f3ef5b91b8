/*
 * conn.c: one connection: a socket, TLS or not, and the protocol that is spoken on it.
 *
 * Owns the socket. What the bytes mean is the protocol's affair (http2.c, http1.c), which
 * is found out here: by ALPN under TLS, else by the first bytes, which an HTTP/2 client
 * begins with a preface that is no HTTP/1.1 request. conn_write.c writes.
 *
 * A connection is ended in any callback, but freed only when the turn ends: whoever
 * called may still look at it.
 */
#include "rpc/conn.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/channel.h"
#include "rpc/http1.h"
#include "rpc/http2.h"
#include "rpc/listener.h"

enum {
    READS = 4, /* of INPUT_SIZE in one turn: other connections have a right too */
};
#define NOTICE_US (500 * 1000ull) /* between the first and the second GOAWAY */

/* What each HTTP/2 client sends first (RFC 9113, 3.4). */
static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE_SIZE (sizeof preface - 1)

static void ready(source *s, uint32_t events);
static void overdue(timer *t);

static conn *of_source(source *s)
{
    return (conn *)(void *)((char *)s - offsetof(conn, io));
}

/* ---------------------------------------------------------------------- its life */

conn *conn_new(rpc_loop *loop, int fd, const rpc_limits *limits)
{
    conn *c = mem_zalloc(&loop->alloc, sizeof *c);
    if (!c) {
        close(fd);
        return NULL;
    }
    c->io.fd = fd;
    c->io.ready = ready;
    c->loop = loop;
    c->limits = limits;
    c->timer.fire = overdue;
    c->at.opened = c->at.heard = c->at.wrote = loop->now_us;
    buf_init(&c->out.data, &loop->alloc);
    c->next = loop->conns.all;
    if (c->next)
        c->next->prev = c;
    loop->conns.all = c;
    return c;
}

void conn_end(conn *c)
{
    rpc_loop *loop = c->loop;

    if (c->phase == CONN_DEAD)
        return;
    c->phase = CONN_DEAD;
    loop_unwatch(loop, &c->io);
    timer_clear(&loop->timers, &c->timer);
    if (c->prev)
        c->prev->next = c->next;
    else
        loop->conns.all = c->next;
    if (c->next)
        c->next->prev = c->prev;
    c->prev = NULL;
    c->next = loop->conns.dead;
    loop->conns.dead = c;
    if (c->owner.listener)
        atomic_fetch_sub(&loop->figures.connections, 1);
    /* The channel first: whose request ends may begin another one. */
    if (c->owner.channel)
        channel_lost(c->owner.channel, c);
    if (c->speaks)
        c->speaks->ended(c);
}

void conn_hostile(conn *c)
{
    if (!c->hostile)
        atomic_fetch_add(&c->loop->figures.hostile, 1);
    c->hostile = 1;
}

void conns_reap(rpc_loop *loop)
{
    conn *c, *next;
    if (!loop->conns.dead)
        return;
    conns_flush(loop); /* so that none of them is in that list */
    for (c = loop->conns.dead, loop->conns.dead = NULL; c; c = next) {
        next = c->next;
        if (c->speaks)
            c->speaks->release(c);
        tls_link_free(c->tls);
        close(c->io.fd);
        conn_take_back(c, &c->out.data);
        mem_free(&loop->alloc, c, sizeof *c);
    }
}

void conns_close(rpc_loop *loop)
{
    while (loop->conns.all)
        conn_end(loop->conns.all);
    conns_reap(loop);
}

/* ---------------------------------------------------------------------- its time */

void conn_due(conn *c, uint64_t at_us)
{
    if (at_us == UINT64_MAX || c->phase == CONN_DEAD ||
        (c->timer.place && c->timer.at_us <= at_us))
        return;
    if (timer_set(&c->loop->timers, &c->timer, at_us)) {
        /* Whoever calls may be inside of a callback of this connection: it ends when the
         * turn does. */
        c->out.data.failed = 1;
        conn_dirty(c);
    }
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t conn_after(uint64_t us, int ms)
{
    return ms > 0 ? us + (uint64_t)ms * 1000 : UINT64_MAX;
}

/* Until the protocol is known. */
static uint64_t beginning(const conn *c)
{
    int limit = c->limits->ms.first;
    if (c->phase != CONN_SNIFFING && c->limits->ms.handshake)
        limit = c->limits->ms.handshake;
    return conn_after(c->at.opened, limit);
}

static void overdue(timer *t)
{
    conn *c = (conn *)(void *)((char *)t - offsetof(conn, timer));
    uint64_t now = c->loop->now_us, due = UINT64_MAX, one;

    if (c->phase < CONN_OPEN)
        due = beginning(c);
    else if (c->phase == CONN_LINGER)
        due = c->at.wrote + CONN_LINGER_US;
    if (c->out.blocked)
        due = earlier(due, conn_after(c->at.wrote, c->limits->ms.stuck));
    if (due <= now) {
        conn_end(c);
        return;
    }
    if (c->phase == CONN_OPEN) {
        if (c->at.age && c->at.age <= now)
            conn_drain(c);
        if (c->at.age)
            due = earlier(due, c->at.age);
        if (c->at.drain && c->at.drain <= now) {
            c->at.drain = 0;
            c->speaks->drain(c, 1);
            conn_dirty(c);
        }
        if (c->at.drain)
            due = earlier(due, c->at.drain);
        one = c->speaks->look(c);
        due = earlier(due, one);
    }
    conn_due(c, due);
}

void conn_drain(conn *c)
{
    c->at.age = 0;
    if (c->draining || c->phase > CONN_OPEN)
        return;
    c->draining = 1;
    if (c->phase < CONN_OPEN)
        return;
    c->speaks->drain(c, 0);
    c->at.drain = c->loop->now_us + NOTICE_US;
    conn_due(c, c->at.drain);
    conn_dirty(c);
}

/* ---------------------------------------------------------------------- bytes in */

/* The protocol is known. 0; -1: no memory. */
static int speak(conn *c, int h2)
{
    int failed = h2 ? http2_begin(c) : http1_begin(c);
    if (failed) {
        conn_end(c);
        return -1;
    }
    c->phase = CONN_OPEN;
    if (c->owner.listener && c->limits->ms.age) {
        uint64_t age = (uint64_t)c->limits->ms.age * 1000;
        c->at.age = c->loop->now_us + age - age / 10 + loop_draw(c->loop, age / 5 + 1);
        conn_due(c, c->at.age);
    }
    if (c->draining) {
        /* As if it were old: what it has sent already is read first. */
        c->draining = 0;
        c->at.age = c->loop->now_us;
    }
    if (c->owner.channel)
        channel_ready(c->owner.channel, c);
    conn_due(c, c->loop->now_us); /* the protocol says when it wants to look */
    conn_dirty(c);
    return 0;
}

static void give(conn *c, const unsigned char *data, size_t size)
{
    if (c->speaks->receive(c, data, size))
        conn_finish(c);
}

/* Takes bytes until it is known whether they begin with the preface. */
static void sniff(conn *c, const unsigned char *data, size_t size)
{
    size_t take = PREFACE_SIZE - c->sniffed.size;
    int same;

    if (take > size)
        take = size;
    memcpy(c->sniffed.bytes + c->sniffed.size, data, take);
    c->sniffed.size += take;
    same = !memcmp(c->sniffed.bytes, preface, c->sniffed.size);
    if (same && c->sniffed.size < PREFACE_SIZE)
        return;
    if (speak(c, same))
        return;
    give(c, c->sniffed.bytes, c->sniffed.size);
    if (c->phase == CONN_OPEN && size > take)
        give(c, data + take, size - take);
}

static void take(conn *c, const unsigned char *data, size_t size)
{
    c->at.heard = c->loop->now_us;
    /* A server begins with a SETTINGS frame, whose length has a zero in front. What else
     * comes is an alert of TLS, or a page of HTTP/1.1. */
    c->heard |= !c->owner.channel || data[0] == 0;
    if (c->phase == CONN_SNIFFING)
        sniff(c, data, size);
    else if (c->phase == CONN_OPEN)
        give(c, data, size);
    /* else it has been said that no more is read */
}

/* ---------------------------------------------------------------------- beginning */

/* TLS broke: it may have a word for the peer about why. */
static void break_off(conn *c)
{
    (void)conn_push(c);
    conn_end(c);
}

/* Goes on with what came. */
static void shake_hands(conn *c)
{
    int done = tls_handshake(c->tls);
    conn_dirty(c);
    if (!done)
        return;
    if (done < 0) {
        break_off(c);
        return;
    }
    if (c->owner.channel && tls_speaks_h2(c->tls) != 1) {
        c->error = EPROTONOSUPPORT; /* a server that speaks no HTTP/2 */
        conn_end(c);
    } else if (tls_speaks_h2(c->tls) >= 0) {
        (void)speak(c, tls_speaks_h2(c->tls));
    } else {
        c->phase = CONN_SNIFFING;
        c->at.opened = c->loop->now_us;
        conn_due(c, beginning(c));
    }
}

/* 1: a server's client begins without TLS: with a word of HTTP, where a handshake has the
 * number 22. */
static int is_clear(const conn *c, const unsigned char *data)
{
    return c->owner.listener && c->phase == CONN_HANDSHAKE && !c->shook &&
           data[0] >= 'A' && data[0] <= 'Z';
}

/* Bytes of a connection with TLS. All are used up before others are read. */
static void take_sealed(conn *c, const unsigned char *data, size_t size)
{
    long n = 1;
    if (is_clear(c, data)) {
        atomic_fetch_add(&c->loop->figures.clear, 1);
        conn_refuse_clear(c, data, size);
        return;
    }
    c->shook = 1;
    tls_feed(c->tls, data, size);
    if (c->phase == CONN_HANDSHAKE)
        shake_hands(c);
    while (n > 0 && c->phase > CONN_HANDSHAKE && c->phase != CONN_DEAD) {
        n = tls_read(c->tls, c->loop->run.input, INPUT_SIZE);
        if (n > 0)
            take(c, c->loop->run.input, (size_t)n);
        else if (n < 0)
            break_off(c);
    }
    tls_feed(c->tls, NULL, 0);
}

static void read_some(conn *c)
{
    int sealed = c->tls && c->phase != CONN_LINGER, i;
    unsigned char *in = sealed ? c->loop->run.sealed : c->loop->run.input;
    for (i = 0; i < READS && c->phase != CONN_DEAD; i++) {
        long n = conn_pull(c, in);
        if (n < 0)
            conn_end(c);
        if (n <= 0)
            break;
        if (c->out.blocked)
            c->out.withheld += (size_t)n;
        if (sealed)
            take_sealed(c, in, (size_t)n);
        else
            take(c, in, (size_t)n);
        if (n < INPUT_SIZE)
            break;
    }
    conn_dirty(c);
}

static void connected(conn *c)
{
    int error = 0;
    socklen_t size = sizeof error;
    if (getsockopt(c->io.fd, SOL_SOCKET, SO_ERROR, &error, &size) || error) {
        c->error = error;
        conn_end(c);
        return;
    }
    if (c->tls) {
        c->phase = CONN_HANDSHAKE;
        shake_hands(c);
    } else
        (void)speak(c, 1);
    conn_watch(c);
}

static void ready(source *s, uint32_t events)
{
    conn *c = of_source(s);
    if (c->phase == CONN_CONNECTING) {
        if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
            connected(c);
        return;
    }
    if (events & EPOLLOUT)
        conn_dirty(c);
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP))
        read_some(c);
}

static void begin(conn *c, rpc_tls *tls, const char *host, conn_phase phase)
{
    c->phase = phase;
    if (tls) {
        c->tls = tls_link_new(tls, host, &c->loop->alloc);
        if (!c->tls) {
            conn_end(c);
            return;
        }
    }
    conn_due(c, beginning(c));
    conn_watch(c);
}

void conn_serve(conn *c, struct rpc_listener *l, rpc_tls *tls)
{
    c->owner.listener = l;
    atomic_fetch_add(&c->loop->figures.connections, 1);
    begin(c, tls, NULL, tls ? CONN_HANDSHAKE : CONN_SNIFFING);
}

void conn_dial(conn *c, struct rpc_channel *channel, rpc_tls *tls, const char *host)
{
    c->owner.channel = channel;
    begin(c, tls, host, CONN_CONNECTING);
}
