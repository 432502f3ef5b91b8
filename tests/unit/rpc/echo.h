/* echo.h: a service for tests of rpc/, on loops with threads of their own. */
#ifndef UNIT_RPC_ECHO_H
#define UNIT_RPC_ECHO_H

#include <pthread.h>
#include <stdatomic.h>

#include "rpc/rpc.h"

/*
 * Methods of /t.Echo/:
 *   Unary      answers the message, with each header that begins with "x-" as a trailer
 *   Later      the same, from another thread
 *   Stream     answers each message as it comes, until the client ends
 *   Count      "N SIZE": N messages of SIZE bytes
 *   Fail       "CODE TEXT": that status
 *   Silent     never answers
 *   Early      a status before the request has ended
 *   Peer       who the client is: "ADDRESS ENCRYPTED NAME"
 * HTTP: GET /hello, POST /echo, GET /drip (three parts of unknown length), GET /slow
 * (from another thread); else 404.
 */
typedef struct echo {
    rpc_loop *loops[4];
    pthread_t threads[4];
    size_t count;
    rpc_listener *listener;
    const char *address;
    atomic_int begun, gone[4]; /* by rpc_gone */
    atomic_int drained;
    atomic_size_t most_unsent;
} echo;

extern const rpc_service echo_service;

/* Fails the test when it cannot. limits may be NULL, tls too. */
void echo_start(echo *e, size_t loops, const char *address, const rpc_limits *limits,
                rpc_tls *tls);
/* The same; what its replies hold is counted. queued may be NULL. */
void echo_start_counted(echo *e, size_t loops, const char *address,
                        const rpc_limits *limits, rpc_tls *tls, rpc_queued *queued);
void echo_stop(echo *e);
/* The sum of all loops. */
rpc_loop_figures echo_look(const echo *e);
/* Waits until no connection is left, or some seconds. 1: none is. */
int echo_empty(const echo *e);
/* Waits until *n is at least so much, or some seconds. 1: it is. */
int echo_until(atomic_int *n, int least);

#endif
