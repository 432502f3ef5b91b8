/*
 * redis.h: a Redis server of a test's own, on a Unix socket or a port of 127.0.0.1, that
 * a test may kill and start again. It keeps nothing on a disk, and ends with the test.
 */
#ifndef SUPPORT_REDIS_H
#define SUPPORT_REDIS_H

#include <sys/types.h>

#include "support/network.h"

typedef struct redis_server {
    char folder[256];
    char socket[300];
    int port;          /* 0: on the socket alone */
    char password[64]; /* "": it asks for none */
    char url[400];     /* the whole URL */
    pid_t pid;         /* 0: stopped */
    network *net;      /* of its host, or NULL */
    int host;
} redis_server;

/* Skips the test where there is no redis-server. password: NULL, or it asks for that,
 * over TCP. */
redis_server *redis_needed(const char *password);
/* In a host, at port 6379 of its address; redis_say() reaches it whatever is cut. */
redis_server *redis_needed_in(network *n, int host);
void redis_free(redis_server *s);
/* Ends it (SIGKILL); starts it again, empty, and waits until it answers. */
void redis_kill(redis_server *s);
void redis_again(redis_server *s);
/* Sends one command, as bytes of its protocol or in one line; what the server answered,
 * static, until the next call. */
const char *redis_say(const redis_server *s, const void *command, size_t size);

#endif
