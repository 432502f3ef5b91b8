/* proxy.c: see proxy.h. One thread polls everything; calls change the plan under the
 * mutex and wake it. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "support/proxy.h"

enum { CONNECTIONS_MOST = 256, ROOM = 1 << 18 };

/* fd[way] is where bytes of that way come from: the client first, then the server. */
typedef struct connection {
    int fd[2]; /* -1: gone */
    char *held[2];
    size_t size[2];
    int ended[2]; /* nothing more will come from there */
    int orphan;
} connection;

struct proxy {
    pthread_t thread;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    int listener, wake[2], port, server_port;
    int stop, refuse, hold[2];
    uint64_t passed[2], cut_at[2], hold_at[2]; /* of `passed` */
    uint64_t deliver_at;                       /* of passed[PROXY_TO_SERVER] */
    int64_t orphan_until_ms; /* an orphan was delivered: others wait for its answer,
                                or until then; 0: nobody waits */
    uint64_t accepted;
    unsigned cuts, delivered;
    size_t count;
    connection list[CONNECTIONS_MOST];
};

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static void must(int ok, const char *what)
{
    if (ok)
        return;
    perror(what);
    exit(70);
}

static struct sockaddr_in address(int port)
{
    struct sockaddr_in a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_port = htons((uint16_t)port);
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    return a;
}

/* Listens again at the port it had, or at a free one the first time. */
static void listen_there(proxy *p)
{
    struct sockaddr_in a = address(p->port);
    socklen_t length = sizeof a;
    int on = 1;
    p->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    must(p->listener >= 0, "proxy: socket");
    setsockopt(p->listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    must(bind(p->listener, (struct sockaddr *)&a, sizeof a) == 0, "proxy: bind");
    must(listen(p->listener, 64) == 0, "proxy: listen");
    getsockname(p->listener, (struct sockaddr *)&a, &length);
    p->port = ntohs(a.sin_port);
}

static void accept_one(proxy *p)
{
    struct sockaddr_in a = address(p->server_port);
    int on = 1;
    int client = accept4(p->listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (client < 0)
        return;
    int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (p->count == CONNECTIONS_MOST || server < 0 ||
        connect(server, (struct sockaddr *)&a, sizeof a) != 0) {
        close(client);
        if (server >= 0)
            close(server);
        return;
    }
    fcntl(server, F_SETFL, O_NONBLOCK);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(server, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    connection *c = &p->list[p->count++];
    memset(c, 0, sizeof *c);
    c->fd[PROXY_TO_SERVER] = client;
    c->fd[PROXY_TO_CLIENT] = server;
    for (int way = 0; way < 2; way++)
        must((c->held[way] = malloc(ROOM)) != NULL, "proxy: malloc");
    p->accepted++;
}

static void end_side(connection *c, int way)
{
    if (c->fd[way] >= 0)
        close(c->fd[way]);
    c->fd[way] = -1;
    c->ended[way] = 1;
}

static void end_both(connection *c)
{
    end_side(c, 0);
    end_side(c, 1);
    c->size[0] = c->size[1] = 0;
}

static void take(connection *c, int way)
{
    ssize_t got = read(c->fd[way], c->held[way] + c->size[way], ROOM - c->size[way]);
    if (got > 0)
        c->size[way] += (size_t)got;
    else if (got == 0 || (errno != EAGAIN && errno != EINTR))
        c->ended[way] = 1;
}

/* Passes on what may be passed on. */
static void pass(proxy *p, connection *c, int way)
{
    int to = c->fd[!way];
    while (c->size[way] > 0 && to >= 0) {
        size_t most = c->size[way];
        if (c->orphan && way == PROXY_TO_SERVER) {
            if (p->passed[way] < p->deliver_at)
                return;
        } else if (p->hold[way] || p->passed[way] == p->hold_at[way] ||
                   (way == PROXY_TO_SERVER && p->orphan_until_ms > now_ms())) {
            return;
        } else {
            if (p->cut_at[way] == p->passed[way]) {
                p->cut_at[way] = UINT64_MAX;
                p->cuts++;
                end_both(c);
                return;
            }
            if (most > p->cut_at[way] - p->passed[way])
                most = (size_t)(p->cut_at[way] - p->passed[way]);
            if (most > p->hold_at[way] - p->passed[way])
                most = (size_t)(p->hold_at[way] - p->passed[way]);
            /* an orphan's moment is not passed by */
            if (way == PROXY_TO_SERVER && p->deliver_at > p->passed[way] &&
                most > p->deliver_at - p->passed[way])
                most = (size_t)(p->deliver_at - p->passed[way]);
        }
        ssize_t put = send(to, c->held[way], most, MSG_NOSIGNAL);
        if (put < 0) {
            if (errno != EAGAIN && errno != EINTR)
                end_both(c);
            return;
        }
        memmove(c->held[way], c->held[way] + put, c->size[way] - (size_t)put);
        c->size[way] -= (size_t)put;
        if (!c->orphan)
            p->passed[way] += (uint64_t)put;
        else if (c->size[way] == 0) {
            p->delivered++;
            p->orphan_until_ms = now_ms() + 500;
        }
    }
    if (c->size[way] == 0 && c->ended[way] && to >= 0)
        shutdown(to, SHUT_WR);
}

static void serve(proxy *p)
{
    for (size_t i = 0; i < p->count; i++) {
        connection *c = &p->list[i];
        /* orphans first: others wait for their moment to have been */
        if (c->orphan)
            pass(p, c, PROXY_TO_SERVER);
    }
    for (size_t i = 0; i < p->count;) {
        connection *c = &p->list[i];
        uint64_t before = p->passed[PROXY_TO_SERVER];
        for (int way = 0; way < 2; way++)
            pass(p, c, way);
        if (c->orphan && c->size[PROXY_TO_SERVER] == 0 &&
            (c->size[PROXY_TO_CLIENT] > 0 || c->ended[PROXY_TO_CLIENT]))
            p->orphan_until_ms = 0;
        if (c->orphan)
            c->size[PROXY_TO_CLIENT] = 0;
        int over = (c->ended[0] && c->size[0] == 0 && c->ended[1] && c->size[1] == 0) ||
                   (c->ended[1] && c->fd[0] < 0);
        if (over) {
            end_both(c);
            free(c->held[0]);
            free(c->held[1]);
            *c = p->list[--p->count];
            continue;
        }
        i++;
        if (p->passed[PROXY_TO_SERVER] != before &&
            p->passed[PROXY_TO_SERVER] == p->deliver_at)
            i = 0; /* the orphan's moment */
    }
}

static void *run(void *arg)
{
    proxy *p = arg;
    struct pollfd fds[2 + 2 * CONNECTIONS_MOST];
    char byte[64];
    pthread_mutex_lock(&p->mutex);
    while (!p->stop) {
        nfds_t n = 2;
        size_t count = p->count;
        if (p->refuse && p->listener >= 0) {
            close(p->listener);
            p->listener = -1;
        } else if (!p->refuse && p->listener < 0) {
            listen_there(p);
        }
        serve(p);
        pthread_cond_broadcast(&p->changed);
        count = p->count;
        fds[0] = (struct pollfd){p->wake[0], POLLIN, 0};
        fds[1] = (struct pollfd){p->listener, POLLIN, 0};
        for (size_t i = 0; i < count; i++)
            for (int way = 0; way < 2; way++) {
                connection *c = &p->list[i];
                short events = 0;
                if (!c->ended[way] && c->size[way] < ROOM)
                    events |= POLLIN;
                /* what could not be sent at once; what is kept on purpose waits for a
                 * wake */
                if (c->size[!way] > 0 && !p->hold[!way] && !c->orphan &&
                    p->passed[!way] != p->hold_at[!way])
                    events |= POLLOUT;
                fds[n++] = (struct pollfd){events ? c->fd[way] : -1, events, 0};
            }
        pthread_mutex_unlock(&p->mutex);
        (void)poll(fds, n, p->orphan_until_ms ? 5 : 1000);
        pthread_mutex_lock(&p->mutex);
        if (fds[0].revents)
            (void)!read(p->wake[0], byte, sizeof byte);
        for (size_t i = 0; i < count; i++)
            for (int way = 0; way < 2; way++)
                if ((fds[2 + 2 * i + (size_t)way].revents &
                     (POLLIN | POLLHUP | POLLERR)) &&
                    p->list[i].fd[way] >= 0)
                    take(&p->list[i], way);
        if (fds[1].revents && p->listener >= 0)
            accept_one(p);
    }
    pthread_mutex_unlock(&p->mutex);
    return NULL;
}

/* Calls that change the plan: return when the thread has seen it. */
static void lock(proxy *p)
{
    pthread_mutex_lock(&p->mutex);
}
static void unlock_awake(proxy *p)
{
    (void)!write(p->wake[1], "", 1);
    pthread_cond_wait(&p->changed, &p->mutex);
    pthread_mutex_unlock(&p->mutex);
}

proxy *proxy_open(int port)
{
    proxy *p = calloc(1, sizeof *p);
    sigset_t all, before;
    must(p != NULL, "proxy: calloc");
    p->server_port = port;
    p->cut_at[0] = p->cut_at[1] = p->hold_at[0] = p->hold_at[1] = UINT64_MAX;
    must(pipe2(p->wake, O_CLOEXEC | O_NONBLOCK) == 0, "proxy: pipe");
    listen_there(p);
    pthread_mutex_init(&p->mutex, NULL);
    pthread_cond_init(&p->changed, NULL);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    must(pthread_create(&p->thread, NULL, run, p) == 0, "proxy: thread");
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return p;
}

void proxy_close(proxy *p)
{
    if (!p)
        return;
    lock(p);
    p->stop = 1;
    (void)!write(p->wake[1], "", 1);
    pthread_mutex_unlock(&p->mutex);
    pthread_join(p->thread, NULL);
    for (size_t i = 0; i < p->count; i++) {
        end_both(&p->list[i]);
        free(p->list[i].held[0]);
        free(p->list[i].held[1]);
    }
    if (p->listener >= 0)
        close(p->listener);
    close(p->wake[0]);
    close(p->wake[1]);
    pthread_mutex_destroy(&p->mutex);
    pthread_cond_destroy(&p->changed);
    free(p);
}

static const char *const HOST = "127.0.0.1:";

int proxy_port_of(const char *url)
{
    const char *at = strstr(url, HOST);
    return at ? atoi(at + strlen(HOST)) : 0;
}

char *proxy_url(const proxy *p, const char *url)
{
    size_t room = strlen(url) + 16;
    char *out = malloc(room);
    const char *at = strstr(url, HOST);
    must(out && at, "proxy: a URL with 127.0.0.1:PORT");
    const char *rest = at + strlen(HOST) + strspn(at + strlen(HOST), "0123456789");
    snprintf(out, room, "%.*s%s%d%s", (int)(at - url), url, HOST, p->port, rest);
    return out;
}

uint64_t proxy_bytes(proxy *p, proxy_way way)
{
    lock(p);
    uint64_t n = p->passed[way];
    pthread_mutex_unlock(&p->mutex);
    return n;
}

/* A function that reads one number under the lock. */
#define NUMBER(type, function, member)   \
    type function(proxy *p)              \
    {                                    \
        lock(p);                         \
        type n = p->member;              \
        pthread_mutex_unlock(&p->mutex); \
        return n;                        \
    }
NUMBER(size_t, proxy_connections, count)
NUMBER(uint64_t, proxy_accepted, accepted)
NUMBER(unsigned, proxy_cuts, cuts)
NUMBER(unsigned, proxy_delivered, delivered)

unsigned proxy_waiting(proxy *p)
{
    unsigned n = 0;
    lock(p);
    for (size_t i = 0; i < p->count; i++)
        n += p->list[i].orphan && p->list[i].size[PROXY_TO_SERVER] > 0;
    pthread_mutex_unlock(&p->mutex);
    return n;
}

void proxy_cut_after(proxy *p, proxy_way way, uint64_t bytes)
{
    lock(p);
    p->cut_at[way] = bytes == UINT64_MAX ? bytes : p->passed[way] + bytes;
    unlock_awake(p);
}

void proxy_cut(proxy *p)
{
    lock(p);
    for (size_t i = 0; i < p->count; i++)
        end_both(&p->list[i]);
    unlock_awake(p);
}

void proxy_hold(proxy *p, proxy_way way, int on)
{
    lock(p);
    p->hold[way] = on;
    unlock_awake(p);
}

void proxy_hold_after(proxy *p, proxy_way way, uint64_t bytes)
{
    lock(p);
    p->hold_at[way] = bytes == UINT64_MAX ? bytes : p->passed[way] + bytes;
    unlock_awake(p);
}

void proxy_refuse(proxy *p, int on)
{
    lock(p);
    p->refuse = on;
    unlock_awake(p);
}

static size_t held(const proxy *p, proxy_way way)
{
    size_t sum = 0;
    for (size_t i = 0; i < p->count; i++)
        sum += p->list[i].size[way];
    return sum;
}

int proxy_wait_held(proxy *p, proxy_way way, size_t bytes, int timeout_ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    lock(p);
    while (held(p, way) < bytes &&
           pthread_cond_timedwait(&p->changed, &p->mutex, &until) == 0)
        ;
    int there = held(p, way) >= bytes;
    pthread_mutex_unlock(&p->mutex);
    return there;
}

void proxy_orphan(proxy *p, uint64_t bytes)
{
    lock(p);
    for (size_t i = 0; i < p->count; i++) {
        connection *c = &p->list[i];
        if (c->size[PROXY_TO_SERVER] == 0)
            continue;
        c->orphan = 1;
        end_side(c, PROXY_TO_SERVER); /* the client's descriptor; its bytes stay */
        c->size[PROXY_TO_CLIENT] = 0;
    }
    p->hold[PROXY_TO_SERVER] = 0;
    p->deliver_at = p->passed[PROXY_TO_SERVER] + bytes;
    unlock_awake(p);
}
