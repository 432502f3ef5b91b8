/* fake_server.h: a TCP server of a test, in a thread of its own, which says what the test
 * has it say to one client after the other. */
#ifndef SUPPORT_FAKE_SERVER_H
#define SUPPORT_FAKE_SERVER_H

#include <pthread.h>
#include <stdatomic.h>

typedef struct fake_server {
    /* Called in the thread for each connection, which is closed when it returns. */
    void (*talk)(struct fake_server *f, int fd);
    void *arg;       /* for talk */
    int connections; /* accepted; read it after the stop */
    int listener;
    atomic_int stop;
    pthread_t thread;
} fake_server;

/* Starts a server on an IPv4 address of this machine and returns its port; talk and arg
 * are set, all else is 0. A failure fails the test. */
int fake_server_start(fake_server *f, const char *host);
/* Ends the thread, once talk has returned, and the server. */
void fake_server_stop(fake_server *f);

/* In talk: waits until fd can be read; 0: the server is to stop. */
int fake_server_readable(fake_server *f, int fd);

#endif
