/*
 * loop.c: one thread, its descriptors, its timers and its mail.
 *
 * A turn waits for descriptors, lets each read, fires timers, delivers mail, and then
 * lets each connection that has something to send write once. So the replies to all
 * requests that arrived together leave together.
 *
 * Other threads reach the loop by its mailbox alone: a list under one mutex, and an
 * eventfd that is written once until the loop has read it. The loop's own thread needs no
 * waking: it looks into the box before it waits.
 */
#include "rpc/loop.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "rpc/conn.h"
#include "rpc/listener.h"
#include "rpc/queued.h"

#define EVENTS 64
/* Rounds of mail in one turn: mail may lead to mail, and descriptors have a right too. */
#define ROUNDS 4

uint64_t loop_clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

/* Steele, Lea and Flood's SplitMix64. */
uint64_t loop_draw(rpc_loop *loop, uint64_t n)
{
    uint64_t z = loop->run.seed += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return n ? (z ^ z >> 31) % n : 0;
}

/* ---------------------------------------------------------------------- mail */

static mailbox *mailbox_new(const allocator *a)
{
    mailbox *box = mem_zalloc(a, sizeof *box);
    if (!box)
        return NULL;
    box->alloc = *a;
    box->event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (box->event < 0 || pthread_mutex_init(&box->lock, NULL)) {
        if (box->event >= 0)
            close(box->event);
        mem_free(a, box, sizeof *box);
        return NULL;
    }
    atomic_init(&box->references, 1);
    return box;
}

void mailbox_retain(mailbox *box)
{
    atomic_fetch_add_explicit(&box->references, 1, memory_order_relaxed);
}

void mailbox_release(mailbox *box)
{
    allocator a;
    if (!box || atomic_fetch_sub_explicit(&box->references, 1, memory_order_acq_rel) != 1)
        return;
    a = box->alloc;
    queued_release(box->queued);
    pthread_mutex_destroy(&box->lock);
    mem_free(&a, box, sizeof *box);
}

void mailbox_put(mailbox *box, mail *m)
{
    m->next = NULL;
    if (box->last)
        box->last->next = m;
    else
        box->first = m;
    box->last = m;
}

/* The event is written under the lock, so that closing the loop never closes it
 * meanwhile. It happens once for all mail that the loop has not yet seen. */
void mailbox_unlock(mailbox *box)
{
    if (!box->woken && box->event >= 0 &&
        !(box->inside && pthread_equal(box->thread, pthread_self()))) {
        uint64_t one = 1;
        box->woken = write(box->event, &one, sizeof one) == (ssize_t)sizeof one;
    }
    pthread_mutex_unlock(&box->lock);
}

/* 1: there was some. */
static int deliver(rpc_loop *loop)
{
    mail *m, *next;

    pthread_mutex_lock(&loop->box->lock);
    m = loop->box->first;
    loop->box->first = loop->box->last = NULL;
    pthread_mutex_unlock(&loop->box->lock);
    if (!m)
        return 0;
    for (; m; m = next) {
        next = m->next;
        m->deliver(m);
    }
    return 1;
}

static int has_mail(rpc_loop *loop)
{
    int some;
    pthread_mutex_lock(&loop->box->lock);
    some = loop->box->first != NULL;
    pthread_mutex_unlock(&loop->box->lock);
    return some;
}

static void woken(source *s, uint32_t events)
{
    rpc_loop *loop = (rpc_loop *)(void *)((char *)s - offsetof(rpc_loop, run.event));
    uint64_t count;
    (void)events;
    pthread_mutex_lock(&loop->box->lock);
    if (read(s->fd, &count, sizeof count) > 0)
        loop->box->woken = 0;
    pthread_mutex_unlock(&loop->box->lock);
}

typedef struct posted {
    mail mail;
    timer timer;
    rpc_loop *loop;
    void (*fn)(void *arg);
    void *arg;
} posted;

static void run_posted(posted *p)
{
    void (*fn)(void *) = p->fn;
    void *arg = p->arg;
    mem_free(&p->loop->alloc, p, sizeof *p);
    fn(arg);
}

static void deliver_posted(mail *m)
{
    run_posted((posted *)(void *)((char *)m - offsetof(posted, mail)));
}

static void fire_posted(timer *t)
{
    run_posted((posted *)(void *)((char *)t - offsetof(posted, timer)));
}

static posted *posted_new(rpc_loop *loop, void (*fn)(void *arg), void *arg)
{
    posted *p = mem_zalloc(&loop->alloc, sizeof *p);
    if (p) {
        p->mail.deliver = deliver_posted;
        p->timer.fire = fire_posted;
        p->loop = loop;
        p->fn = fn;
        p->arg = arg;
    }
    return p;
}

int rpc_loop_post(rpc_loop *loop, void (*fn)(void *arg), void *arg)
{
    posted *p = posted_new(loop, fn, arg);
    if (!p)
        return -1;
    pthread_mutex_lock(&loop->box->lock);
    mailbox_put(loop->box, &p->mail);
    mailbox_unlock(loop->box);
    return 0;
}

int rpc_loop_after(rpc_loop *loop, int ms, void (*fn)(void *arg), void *arg)
{
    posted *p = posted_new(loop, fn, arg);
    uint64_t delay = ms > 0 ? (uint64_t)ms * 1000 : 0;
    if (!p)
        return -1;
    if (timer_set(&loop->timers, &p->timer, loop_clock_us() + delay)) {
        mem_free(&loop->alloc, p, sizeof *p);
        return -1;
    }
    return 0;
}

/* ---------------------------------------------------------------------- descriptors */

int loop_watch(rpc_loop *loop, source *s, uint32_t events)
{
    struct epoll_event e;
    memset(&e, 0, sizeof e);
    e.events = events;
    e.data.ptr = s;
    if (s->events == events)
        return 0;
    if (epoll_ctl(loop->run.epoll, s->events ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, s->fd, &e))
        return -1;
    s->events = events;
    return 0;
}

void loop_unwatch(rpc_loop *loop, source *s)
{
    if (s->events)
        epoll_ctl(loop->run.epoll, EPOLL_CTL_DEL, s->fd, NULL);
    s->events = 0;
}

/* ---------------------------------------------------------------------- its life */

void rpc_limits_init(rpc_limits *limits)
{
    memset(limits, 0, sizeof *limits);
    limits->bytes.message = 8u * 1024 * 1024 / 100 * 101;
    limits->bytes.headers = 16u * 1024;
    limits->bytes.unsent = 1024u * 1024;
    limits->count.streams = 256;
    limits->count.connections = 10000;
    limits->ms.handshake = 5000;
    limits->ms.first = 10000;
    limits->ms.age = 30 * 60 * 1000;
    limits->ms.stuck = 60 * 1000;
}

sessile_status rpc_loop_open(rpc_loop **out, const rpc_limits *limits, const allocator *a,
                             sessile_error *err)
{
    rpc_loop *loop;

    *out = NULL;
    if (!a)
        a = &allocator_default;
    if (base_init())
        return fail(err, SESSILE_IO, "the system has no random bytes");
    loop = mem_zalloc(a, sizeof *loop);
    if (!loop)
        return fail_nomem(err);
    loop->alloc = *a;
    if (limits)
        loop->limits = *limits;
    else
        rpc_limits_init(&loop->limits);
    timers_init(&loop->timers, &loop->alloc);
    buf_init(&loop->run.spare[0], &loop->alloc);
    buf_init(&loop->run.spare[1], &loop->alloc);
    loop->run.epoll = -1;
    random_bytes(&loop->run.seed, sizeof loop->run.seed);
    loop->run.input = mem_alloc(a, INPUT_SIZE);
    loop->run.sealed = mem_alloc(a, INPUT_SIZE);
    loop->box = mailbox_new(a);
    loop->run.epoll = epoll_create1(EPOLL_CLOEXEC);
    if (loop->run.input && loop->run.sealed && loop->box && loop->run.epoll >= 0) {
        loop->run.event.fd = loop->box->event;
        loop->run.event.ready = woken;
        loop->now_us = loop_clock_us();
        if (!loop_watch(loop, &loop->run.event, EPOLLIN)) {
            *out = loop;
            return SESSILE_OK;
        }
    }
    rpc_loop_close(loop);
    return fail(err, SESSILE_IO,
                "a loop could not be opened: the process may have too many open files");
}

void rpc_loop_close(rpc_loop *loop)
{
    allocator a;
    mail *m, *next;

    if (!loop)
        return;
    a = loop->alloc;
    if (loop->box) {
        queued_leave(loop);
        conns_close(loop);
        while (loop->shares)
            listener_share_leave(loop->shares);
        while (loop->timers.count) {
            timer *t = loop->timers.heap[0];
            timer_clear(&loop->timers, t);
            if (t->fire == fire_posted)
                mem_free(&a, (char *)t - offsetof(posted, timer), sizeof(posted));
        }
        /* What is delivered now finds its connection gone. Posted functions are called:
         * they may have something to free. */
        while (deliver(loop))
            ;
        pthread_mutex_lock(&loop->box->lock);
        close(loop->box->event);
        loop->box->event = -1;
        m = loop->box->first;
        loop->box->first = loop->box->last = NULL;
        pthread_mutex_unlock(&loop->box->lock);
        for (; m; m = next) {
            next = m->next;
            m->deliver(m);
        }
        mailbox_release(loop->box);
    }
    if (loop->run.epoll >= 0)
        close(loop->run.epoll);
    timers_deinit(&loop->timers);
    mem_free(&a, loop->run.input, INPUT_SIZE);
    mem_free(&a, loop->run.sealed, INPUT_SIZE);
    buf_deinit(&loop->run.spare[0]);
    buf_deinit(&loop->run.spare[1]);
    mem_free(&a, loop, sizeof *loop);
}

/* ---------------------------------------------------------------------- turning */

void loop_settle(rpc_loop *loop)
{
    int round;
    for (round = 0; round < ROUNDS; round++) {
        int some = deliver(loop);
        conns_flush(loop);
        if (!some)
            break;
    }
    conns_reap(loop);
}

static int patience_ms(rpc_loop *loop, int timeout_ms)
{
    uint64_t next = timers_next(&loop->timers), now = loop_clock_us(), ms;
    if (atomic_load(&loop->run.stop) || has_mail(loop) || loop->conns.dirty)
        return 0;
    if (next == UINT64_MAX)
        return timeout_ms;
    ms = next <= now ? 0 : (next - now + 999) / 1000;
    if (ms > 3600 * 1000)
        ms = 3600 * 1000;
    return timeout_ms < 0 || ms < (uint64_t)timeout_ms ? (int)ms : timeout_ms;
}

void rpc_loop_turn(rpc_loop *loop, int timeout_ms)
{
    struct epoll_event events[EVENTS];
    int i, n;

    pthread_mutex_lock(&loop->box->lock);
    loop->box->inside = 1;
    loop->box->thread = pthread_self();
    pthread_mutex_unlock(&loop->box->lock);

    loop->now_us = loop_clock_us();
    loop_settle(loop);
    n = epoll_wait(loop->run.epoll, events, EVENTS, patience_ms(loop, timeout_ms));
    loop->now_us = loop_clock_us();
    for (i = 0; i < n; i++) {
        source *s = events[i].data.ptr;
        /* One that an earlier event of this turn has ended is not watched any more. */
        if (s->events)
            s->ready(s, events[i].events);
    }
    timers_fire(&loop->timers, loop->now_us);
    loop_settle(loop);

    pthread_mutex_lock(&loop->box->lock);
    loop->box->inside = 0;
    pthread_mutex_unlock(&loop->box->lock);
}

void rpc_loop_run(rpc_loop *loop)
{
    while (!atomic_load(&loop->run.stop))
        rpc_loop_turn(loop, -1);
    atomic_store(&loop->run.stop, 0);
}

void rpc_loop_stop(rpc_loop *loop)
{
    atomic_store(&loop->run.stop, 1);
    pthread_mutex_lock(&loop->box->lock);
    mailbox_unlock(loop->box);
}

rpc_loop_figures rpc_loop_look(const rpc_loop *loop)
{
    rpc_loop_figures f;
    f.accepted = atomic_load(&loop->figures.accepted);
    f.refused = atomic_load(&loop->figures.refused);
    f.hostile = atomic_load(&loop->figures.hostile);
    f.clear = atomic_load(&loop->figures.clear);
    f.connections = atomic_load(&loop->figures.connections);
    f.calls = atomic_load(&loop->figures.calls);
    return f;
}
