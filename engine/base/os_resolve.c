/*
 * os_resolve.c: the addresses of a name, within a time.
 *
 * getaddrinfo() takes as long as the servers of names let it. getaddrinfo_a() asks in a
 * thread of the C library, which cannot be stopped: a question that is given up lives
 * until that thread has its answer, and is freed by whoever lets go of it last.
 */
#include "base/os.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/counted.h"

#define NAME_MOST 254

typedef struct question {
    counted references; /* first: ours, and that of the answer */
    struct gaicb ask;
    struct addrinfo hints;
    char name[NAME_MOST];
} question;

static void free_question(void *object)
{
    question *q = object;

    if (q->ask.ar_result)
        freeaddrinfo(q->ask.ar_result);
    free(q);
}

static void answered(union sigval of)
{
    counted_release(of.sival_ptr);
}

/* Waits for the answer: 0, or -1 and errno. */
static int wait_for(question *q, int timeout_ms)
{
    const struct gaicb *list[] = {&q->ask};
    struct timespec now, end;
    int64_t left_ns = (int64_t)timeout_ms * 1000000;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_ms / 1000;
    end.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    while (gai_error(&q->ask) == EAI_INPROGRESS) {
        struct timespec left = {left_ns / 1000000000, left_ns % 1000000000};
        if (left_ns <= 0) {
            errno = ETIMEDOUT;
            return -1;
        }
        (void)gai_suspend(list, 1, &left); /* a signal ends it as well */
        clock_gettime(CLOCK_MONOTONIC, &now);
        left_ns =
            (int64_t)(end.tv_sec - now.tv_sec) * 1000000000 + end.tv_nsec - now.tv_nsec;
    }
    switch (gai_error(&q->ask)) {
    case 0:
        return 0;
    case EAI_MEMORY:
        errno = ENOMEM;
        return -1;
    case EAI_NONAME:
    case EAI_NODATA:
        errno = ENOENT;
        return -1;
    default:
        errno = EAGAIN;
        return -1;
    }
}

static int copy_addresses(const struct addrinfo *at, os_address *out, int room)
{
    int count = 0;

    for (; at; at = at->ai_next) {
        if (at->ai_family != AF_INET && at->ai_family != AF_INET6)
            continue;
        if (count == room) {
            errno = E2BIG;
            return -1;
        }
        memset(&out[count], 0, sizeof out[count]);
        out[count].family = at->ai_family == AF_INET ? 4 : 6;
        if (at->ai_family == AF_INET) {
            struct sockaddr_in in;
            memcpy(&in, at->ai_addr, sizeof in);
            memcpy(out[count].bytes, &in.sin_addr, 4);
        } else {
            struct sockaddr_in6 in;
            memcpy(&in, at->ai_addr, sizeof in);
            memcpy(out[count].bytes, &in.sin6_addr, 16);
        }
        count++;
    }
    if (!count)
        errno = ENOENT;
    return count ? count : -1;
}

int os_resolve(void *ud, const char *name, int timeout_ms, os_address *out, int room)
{
    question *q = calloc(1, sizeof *q);
    struct sigevent then = {.sigev_notify = SIGEV_THREAD,
                            .sigev_notify_function = answered};
    struct gaicb *list[1];
    int count = -1;

    (void)ud;
    if (!q || strlen(name) >= sizeof q->name) {
        errno = q ? ENOENT : ENOMEM;
        free(q);
        return -1;
    }
    counted_init(&q->references, free_question);
    memcpy(q->name, name, strlen(name) + 1);
    q->hints.ai_socktype = SOCK_STREAM; /* each address once */
    q->ask.ar_name = q->name;
    q->ask.ar_request = &q->hints;
    list[0] = &q->ask;
    then.sigev_value.sival_ptr = q;
    counted_retain(q);
    if (getaddrinfo_a(GAI_NOWAIT, list, 1, &then)) {
        counted_release(q); /* there will be no answer */
        errno = EAGAIN;
    } else if (!wait_for(q, timeout_ms)) {
        count = copy_addresses(q->ask.ar_result, out, room);
    }
    int error = errno;
    counted_release(q);
    errno = error;
    return count;
}
