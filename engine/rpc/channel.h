/* channel.h: a client's connection to one address, and its requests. */
#ifndef RPC_CHANNEL_H
#define RPC_CHANNEL_H

#include "rpc/conn.h"
#include "rpc/fields.h"
#include "rpc/stream.h"

struct rpc_target {
    allocator alloc;
    addresses found;
    char authority[300];
};

struct rpc_channel {
    allocator alloc;
    rpc_loop *loop;
    rpc_tls *tls;
    rpc_limits limits;
    rpc_target target;
    size_t next;  /* of its addresses, to be tried */
    size_t tried; /* since one worked */
    struct {
        conn *conn; /* new requests go there; NULL: none */
        int ready;
        unsigned failures; /* in a row */
        uint64_t retry_us; /* not before: requests fail at once */
        char why[160];     /* it failed last */
        rpc_fault fault;   /* and the kind of reason */
    } link;
    struct {
        rpc_request *first, *last; /* wait for a connection */
    } waiting;
    mail kick; /* looks at what waits; after the end, frees the channel */
    unsigned kicked : 1, closed : 1;
};

struct rpc_request {
    stream stream; /* the first member */
    allocator alloc;
    rpc_channel *channel;
    rpc_request *next; /* that waits */
    rpc_replies replies;
    void *ud;
    struct {
        char *path;
        fields headers;
        uint64_t deadline_us;
    } ask;
    struct {
        fields headers; /* and trailers */
        size_t header_bytes;
        int http; /* its status */
    } answer;
    mail free;
    timer deadline;
    size_t unsent;
    unsigned high : 1;
    unsigned over : 1;
};

/* The connection can be used. */
void channel_ready(rpc_channel *channel, conn *c);
/* Its peer takes no new requests. */
void channel_going(rpc_channel *channel, conn *c);
/* It ended, or was never there. */
void channel_lost(rpc_channel *channel, conn *c);
/* The request waits for a connection. */
void channel_queue(rpc_channel *channel, rpc_request *request);
void channel_unqueue(rpc_channel *channel, rpc_request *request);

/* Sends what there is of it on the channel's connection. */
void request_submit(rpc_request *request, conn *c);
/* Tells its end, once, and frees it soon. */
void request_end(rpc_request *request, const rpc_result *result);

#endif
