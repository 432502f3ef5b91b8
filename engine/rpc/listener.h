/* listener.h: the sockets that a server listens at, and who serves what comes. */
#ifndef RPC_LISTENER_H
#define RPC_LISTENER_H

#include "rpc/address.h"
#include "rpc/loop.h"

struct listener_share;

typedef struct listening {
    source io;
    struct listener_share *share;
} listening;

/* One loop's share of a listener. */
typedef struct listener_share {
    rpc_listener *listener;
    rpc_loop *loop;              /* NULL: it has been closed */
    struct listener_share *next; /* of the loop */
    mail drain;
    timer pause;
    listening sockets[ADDRESSES_MAX];
} listener_share;

struct rpc_listener {
    allocator alloc;
    const rpc_service *service;
    void *ud;
    rpc_tls *tls;
    struct {
        int fds[ADDRESSES_MAX];
        size_t count;
        char text[ADDRESS_TEXT];
        char path[ADDRESS_TEXT]; /* of a Unix socket, to be removed; "" */
        int local;
    } at;
    atomic_int draining;
    atomic_size_t open; /* loops that accept */
    size_t count;
    listener_share shares[]; /* one for each loop */
};

/* The loop is being closed. */
void listener_share_leave(listener_share *share);

#endif
