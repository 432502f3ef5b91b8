/*
 * service_wire.c: a long wire: TCP on 127.0.0.1 whose bytes arrive later than they were
 * sent, by the same time each. So the time of an operation behind it says how many round
 * trips it makes, whatever this machine takes for the rest.
 *
 * One thread passes bytes on: what came is kept in pieces, each with its moment.
 */
#include "bench/service_parts.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum { ENDS_MOST = 128, PIECE = 65536 };

typedef struct piece {
    struct piece *next;
    double due_us;
    size_t size, sent;
    char data[];
} piece;

/* One end of a connection: what was read here goes to ends[other]. */
typedef struct end {
    int fd; /* -1: free */
    int other;
    piece *first, *last; /* to be written here */
} end;

struct wire {
    pthread_t thread;
    atomic_int stop;
    int listening, port, to;
    double delay_us;
    char url[4200];
    end ends[ENDS_MOST];
};

static struct sockaddr_in at_port(int port)
{
    struct sockaddr_in a;
    memset(&a, 0, sizeof a);
    a.sin_family = AF_INET;
    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    a.sin_port = htons((uint16_t)port);
    return a;
}

static void end_close(wire *w, int i)
{
    end *e = &w->ends[i];
    if (e->fd >= 0)
        close(e->fd);
    e->fd = -1;
    while (e->first) {
        piece *p = e->first;
        e->first = p->next;
        free(p);
    }
    e->last = NULL;
}

static void cut(wire *w, int i)
{
    end_close(w, w->ends[i].other);
    end_close(w, i);
}

static void accept_one(wire *w)
{
    struct sockaddr_in server = at_port(w->to);
    int client = accept4(w->listening, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, i = 0;
    if (client < 0 || fd < 0 ||
        connect(fd, (struct sockaddr *)&server, sizeof server) != 0)
        broken("the wire");
    fcntl(fd, F_SETFL, O_NONBLOCK);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    setsockopt(client, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    while (i < ENDS_MOST && w->ends[i].fd >= 0)
        i += 2;
    if (i == ENDS_MOST)
        broken("the wire has too many connections");
    w->ends[i] = (end){client, i + 1, NULL, NULL};
    w->ends[i + 1] = (end){fd, i, NULL, NULL};
}

static void take(wire *w, int i)
{
    end *to = &w->ends[w->ends[i].other];
    piece *p = malloc(sizeof *p + PIECE);
    if (!p)
        broken("memory");
    ssize_t n = recv(w->ends[i].fd, p->data, PIECE, 0);
    if (n <= 0) {
        free(p);
        if (n == 0 || (errno != EAGAIN && errno != EINTR))
            cut(w, i);
        return;
    }
    p->next = NULL;
    p->due_us = now_us() + w->delay_us;
    p->size = (size_t)n;
    p->sent = 0;
    *(to->last ? &to->last->next : &to->first) = p;
    to->last = p;
}

/* Writes what is due. The next moment that something is, or `next`. */
static double give(wire *w, int i, double next)
{
    end *e = &w->ends[i];
    while (e->fd >= 0 && e->first) {
        piece *p = e->first;
        if (p->due_us > now_us())
            return p->due_us < next ? p->due_us : next;
        ssize_t n = send(e->fd, p->data + p->sent, p->size - p->sent, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) {
            cut(w, i);
            return next;
        }
        p->sent += n > 0 ? (size_t)n : 0;
        if (p->sent < p->size)
            return now_us() + 100; /* soon again */
        e->first = p->next;
        if (!e->first)
            e->last = NULL;
        free(p);
    }
    return next;
}

static void *run(void *arg)
{
    wire *w = arg;
    struct pollfd fds[ENDS_MOST + 1];
    while (!atomic_load(&w->stop)) {
        double next = now_us() + 50000, wait;
        for (int i = 0; i < ENDS_MOST; i++) {
            next = give(w, i, next);
            fds[i] = (struct pollfd){w->ends[i].fd, POLLIN, 0};
        }
        fds[ENDS_MOST] = (struct pollfd){w->listening, POLLIN, 0};
        wait = next - now_us();
        struct timespec t = {0, wait > 0 ? (long)(wait * 1000) : 0};
        if (ppoll(fds, ENDS_MOST + 1, &t, NULL) <= 0)
            continue;
        for (int i = 0; i < ENDS_MOST; i++)
            if (fds[i].revents && w->ends[i].fd == fds[i].fd)
                take(w, i);
        if (fds[ENDS_MOST].revents)
            accept_one(w);
    }
    return NULL;
}

wire *wire_open(const char *url, unsigned delay_us)
{
    static const char host[] = "127.0.0.1:";
    struct sockaddr_in a = at_port(0);
    socklen_t size = sizeof a;
    const char *at = strstr(url, host), *rest;
    wire *w = calloc(1, sizeof *w);
    if (!w || !at)
        broken("a URL with 127.0.0.1:PORT");
    w->delay_us = delay_us;
    for (int i = 0; i < ENDS_MOST; i++)
        w->ends[i].fd = -1;
    w->to = atoi(at + sizeof host - 1);
    w->listening = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (bind(w->listening, (struct sockaddr *)&a, sizeof a) != 0 ||
        listen(w->listening, 16) != 0 ||
        getsockname(w->listening, (struct sockaddr *)&a, &size) != 0)
        broken("a socket");
    w->port = ntohs(a.sin_port);
    rest = at + sizeof host - 1;
    rest += strspn(rest, "0123456789");
    snprintf(w->url, sizeof w->url, "%.*s%s%d%s", (int)(at - url), url, host, w->port,
             rest);
    if (pthread_create(&w->thread, NULL, run, w) != 0)
        broken("a thread");
    return w;
}

void wire_close(wire *w)
{
    atomic_store(&w->stop, 1);
    pthread_join(w->thread, NULL);
    for (int i = 0; i < ENDS_MOST; i++)
        end_close(w, i);
    close(w->listening);
    free(w);
}

void wire_url(const wire *w, char out[4200])
{
    snprintf(out, 4200, "%s", w->url);
}
