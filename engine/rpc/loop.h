/* loop.h: what the other files of this folder know of a loop. */
#ifndef RPC_LOOP_H
#define RPC_LOOP_H

#include <pthread.h>
#include <stdatomic.h>

#include "base/buf.h"
#include "rpc/rpc.h"
#include "rpc/timer.h"

/* A descriptor that a loop watches. */
typedef struct source {
    void (*ready)(struct source *s, uint32_t events);
    int fd;
    uint32_t events; /* of epoll, as they are asked for now */
} source;

/* What some thread asked the loop to do. */
typedef struct mail {
    struct mail *next;
    void (*deliver)(struct mail *m);
} mail;

/* The mail of a loop. Calls refer to it as well, so that a thread may reply to one whose
 * loop has been closed. */
typedef struct mailbox {
    atomic_uint references;
    pthread_mutex_t lock;
    int event;  /* wakes the loop; -1: the loop is closed */
    int woken;  /* the event has been written and not yet read */
    int inside; /* thread is turning the loop, and looks here before it waits */
    pthread_t thread;
    mail *first, *last;
    struct rpc_queued *queued;  /* where replies are counted; NULL: nowhere */
    atomic_size_t queued_bytes; /* of replies of this loop */
    allocator alloc;
} mailbox;

void mailbox_retain(mailbox *box);
void mailbox_release(mailbox *box);
/* Both with box->lock held; the second also releases it and wakes the loop. */
void mailbox_put(mailbox *box, mail *m);
void mailbox_unlock(mailbox *box);

struct conn;
struct listener_share;

struct rpc_loop {
    allocator alloc; /* the first member: a pointer to it lives as long as the loop */
    rpc_limits limits;
    uint64_t now_us; /* of the monotonic clock, since epoll returned */
    struct {
        int epoll;
        source event;
        unsigned char *input; /* INPUT_SIZE: what is read lies here until it is handled */
        unsigned char *sealed; /* INPUT_SIZE: what is read of a connection with TLS */
        buf spare[2];          /* memory for a connection that has something to send */
        atomic_int stop;
        uint64_t seed; /* for what is drawn: ages, pauses */
    } run;
    mailbox *box;
    timers timers;
    struct {
        struct conn *all;   /* doubly linked */
        struct conn *dirty; /* have something to send; singly linked */
        struct conn *dead;  /* to be freed when nothing of the turn refers to them */
    } conns;
    struct {
        mail mail; /* asks the loop to drop replies (queued.c) */
        int posted;
    } shed;
    struct listener_share *shares; /* of the listeners that it serves */
    struct {
        atomic_uint_fast64_t accepted, refused, hostile, clear;
        atomic_uint connections, calls;
    } figures;
};

#define INPUT_SIZE 65536

uint64_t loop_clock_us(void);
/* A number below n, drawn cheaply: for jitter, never for secrets. */
uint64_t loop_draw(rpc_loop *loop, uint64_t n);
/* Delivers mail, lets connections write, and frees those that have ended. */
void loop_settle(rpc_loop *loop);
/* Watches s->fd for events of epoll, or for others than before. 0, or -1 and errno. */
int loop_watch(rpc_loop *loop, source *s, uint32_t events);
void loop_unwatch(rpc_loop *loop, source *s);

#endif
