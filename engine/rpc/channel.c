/*
 * channel.c: a client's connection to one address, made when it is needed.
 *
 * Requests wait while it is being made, and go out together. When it cannot be made they
 * end at once, as never begun: a caller that has another node to ask must not wait for
 * this one. For a while after that (longer after each failure) requests end without a
 * try.
 *
 * A connection whose peer says GOAWAY is let go: its requests finish there, and the next
 * one makes a new connection.
 */
#include "rpc/channel.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PAUSE_US     50000u
#define PAUSE_MAX_US 2000000u

static void kicked(mail *m);
static void dial(rpc_channel *channel);

/* ---------------------------------------------------------------------- its life */

static sessile_status find(rpc_target *out, const char *address, sessile_error *err)
{
    sessile_status status = addresses_find(&out->found, address, err);

    if (status)
        return status;
    if (!out->found.host[0] || strlen(address) >= sizeof out->authority)
        address = "localhost";
    memcpy(out->authority, address, strlen(address) + 1);
    return SESSILE_OK;
}

sessile_status rpc_target_find(rpc_target **out, const char *address, const allocator *a,
                               sessile_error *err)
{
    rpc_target *target = mem_zalloc(a, sizeof *target);
    sessile_status status;

    *out = NULL;
    if (!target)
        return fail_nomem(err);
    target->alloc = *a;
    status = find(target, address, err);
    if (status)
        rpc_target_free(target);
    else
        *out = target;
    return status;
}

void rpc_target_free(rpc_target *target)
{
    if (!target)
        return;
    allocator a = target->alloc;
    mem_free(&a, target, sizeof *target);
}

sessile_status rpc_channel_open_to(rpc_channel **out, rpc_loop *loop,
                                   const rpc_target *target, rpc_tls *tls,
                                   const rpc_limits *limits, sessile_error *err)
{
    rpc_channel *channel = mem_zalloc(&loop->alloc, sizeof *channel);

    *out = channel;
    if (!channel)
        return fail_nomem(err);
    channel->alloc = loop->alloc;
    channel->loop = loop;
    channel->target = *target;
    channel->tls = tls;
    tls_retain(tls);
    channel->limits = limits ? *limits : loop->limits;
    channel->kick.deliver = kicked;
    return SESSILE_OK;
}

sessile_status rpc_channel_open(rpc_channel **out, rpc_loop *loop, const char *address,
                                rpc_tls *tls, const rpc_limits *limits,
                                sessile_error *err)
{
    rpc_target target = {.alloc = loop->alloc};
    sessile_status status = find(&target, address, err);

    *out = NULL;
    return status ? status : rpc_channel_open_to(out, loop, &target, tls, limits, err);
}

static void kick(rpc_channel *channel)
{
    if (channel->kicked)
        return;
    channel->kicked = 1;
    pthread_mutex_lock(&channel->loop->box->lock);
    mailbox_put(channel->loop->box, &channel->kick);
    mailbox_unlock(channel->loop->box);
}

static void fail_waiting(rpc_channel *channel, const char *why)
{
    rpc_result result = {RPC_UNAVAILABLE, why, 1, 0};
    /* Those alone that wait now: whoever is told may ask again. */
    rpc_request *last = channel->waiting.last;
    while (channel->waiting.first && last) {
        rpc_request *one = channel->waiting.first;
        int end = one == last;
        request_end(one, &result);
        if (end)
            break;
    }
}

void rpc_channel_close(rpc_channel *channel)
{
    conn *c, *next;

    if (!channel || channel->closed)
        return;
    channel->closed = 1;
    channel->link.conn = NULL;
    while (channel->waiting.first)
        fail_waiting(channel, "the channel was closed");
    for (c = channel->loop->conns.all; c; c = next) {
        next = c->next;
        if (c->owner.channel == channel)
            conn_end(c);
    }
    kick(channel); /* frees it, when no callback of it runs any more */
}

int rpc_channel_silence(const rpc_channel *channel)
{
    uint64_t now = loop_clock_us(), heard;
    if (!channel->link.conn || !channel->link.ready)
        return -1;
    heard = channel->link.conn->at.heard;
    return now <= heard ? 0 : (int)((now - heard) / 1000);
}

/* ---------------------------------------------------------------------- connecting */

void channel_ready(rpc_channel *channel, conn *c)
{
    rpc_request *one;
    if (channel->link.conn != c)
        return;
    channel->link.ready = 1;
    channel->link.failures = 0;
    channel->link.retry_us = 0;
    channel->link.fault = RPC_FAULT_NONE;
    channel->tried = 0;
    while ((one = channel->waiting.first)) {
        channel_unqueue(channel, one);
        request_submit(one, c);
    }
}

void channel_going(rpc_channel *channel, conn *c)
{
    if (channel->link.conn != c)
        return;
    channel->link.conn = NULL;
    channel->link.ready = 0;
}

static void because(rpc_channel *channel, const char *why)
{
    snprintf(channel->link.why, sizeof channel->link.why,
             "no connection to the server could be made: %s", why);
}

/* Nobody answers: the next address of the name, or the end of what waits. */
static void failed(rpc_channel *channel)
{
    uint64_t pause = PAUSE_US;
    unsigned i;

    channel->next = (channel->next + 1) % channel->target.found.count;
    if (++channel->tried < channel->target.found.count) {
        kick(channel);
        return;
    }
    channel->tried = 0;
    for (i = 0; i < channel->link.failures && pause < PAUSE_MAX_US; i++)
        pause *= 2;
    if (pause > PAUSE_MAX_US)
        pause = PAUSE_MAX_US;
    channel->link.failures++;
    channel->link.retry_us =
        loop_clock_us() + pause / 2 + loop_draw(channel->loop, pause / 2);
    fail_waiting(channel, channel->link.why);
}

rpc_fault rpc_channel_fault(const rpc_channel *channel)
{
    return channel->link.fault;
}

void channel_lost(rpc_channel *channel, conn *c)
{
    int ready = channel->link.ready;
    if (channel->link.conn != c)
        return;
    channel->link.conn = NULL;
    channel->link.ready = 0;
    if (c->tls)
        channel->link.fault = tls_fault(c->tls);
    else
        channel->link.fault = ready && !c->heard ? RPC_FAULT_SILENT : RPC_FAULT_NONE;
    if (ready)
        return;
    if (c->tls && *tls_failure(c->tls))
        because(channel, tls_failure(c->tls));
    else
        because(channel, c->error ? strerrordesc_np(c->error) : "it did not answer");
    failed(channel);
}

static void dial(rpc_channel *channel)
{
    const address *to = &channel->target.found.list[channel->next];
    int one = 1,
        fd = socket(to->at.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    conn *c;

    if (fd < 0) {
        because(channel, strerrordesc_np(errno));
        failed(channel);
        return;
    }
    if (to->at.ss_family != AF_UNIX)
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (connect(fd, (const struct sockaddr *)&to->at, to->size) && errno != EINPROGRESS) {
        because(channel, strerrordesc_np(errno));
        close(fd);
        failed(channel);
        return;
    }
    c = conn_new(channel->loop, fd, &channel->limits);
    if (!c) {
        because(channel, "there is no memory");
        failed(channel);
        return;
    }
    address_print(to, c->owner.peer);
    channel->link.conn = c;
    channel->link.ready = 0;
    conn_dial(c, channel, channel->tls, channel->target.found.host);
}

static void kicked(mail *m)
{
    rpc_channel *channel =
        (rpc_channel *)(void *)((char *)m - offsetof(rpc_channel, kick));
    channel->kicked = 0;
    if (channel->closed) {
        allocator a = channel->alloc;
        rpc_tls_drop(channel->tls);
        mem_free(&a, channel, sizeof *channel);
        return;
    }
    if (channel->link.conn || !channel->waiting.first)
        return;
    if (channel->link.retry_us > loop_clock_us())
        fail_waiting(channel, channel->link.why);
    else
        dial(channel);
}

/* ---------------------------------------------------------------------- what waits */

void channel_queue(rpc_channel *channel, rpc_request *request)
{
    request->next = NULL;
    if (channel->waiting.last)
        channel->waiting.last->next = request;
    else
        channel->waiting.first = request;
    channel->waiting.last = request;
    if (!channel->link.conn)
        kick(channel);
}

void channel_unqueue(rpc_channel *channel, rpc_request *request)
{
    rpc_request **at = &channel->waiting.first, *before = NULL;
    while (*at && *at != request) {
        before = *at;
        at = &(*at)->next;
    }
    if (!*at)
        return;
    *at = request->next;
    if (channel->waiting.last == request)
        channel->waiting.last = before;
    request->next = NULL;
}
