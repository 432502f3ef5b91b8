/*
 * cluster.h: what a service stands on, on a network that a test can break: a primary
 * PostgreSQL, its synchronous standby, and Redis, each on a host of its own.
 *
 * A host is broken by the functions of network.h: network_isolate(), network_cut(),
 * network_signal() with SIGSTOP, SIGCONT, SIGKILL. A server that was killed is started
 * again by postgres_do(server, "again") or redis_again(). The judge reads a database by
 * its Unix socket (server->url), which no cut reaches.
 */
#ifndef SERVICE_CLUSTER_H
#define SERVICE_CLUSTER_H

#include "support/network.h"
#include "support/postgres.h"
#include "support/redis.h"

typedef struct cluster {
    network *net;
    int db[2];                  /* hosts "db1" and "db2" */
    postgres_server *server[2]; /* theirs */
    int primary;                /* 0 or 1: the newest */
    redis_server *redis;        /* on host "redis"; NULL: there is none */
    char *url; /* of both databases, whichever can be written to, as seen from a host */
} cluster;

/* A commit of the primary waits for the standby. with_redis: 1 or 0. Skips the test, with
 * the reason, where this machine lacks something. */
cluster *cluster_needed(int with_redis);
void cluster_close(cluster *c);

/* The standby becomes the primary, and waits for nobody. The other one, if it lives,
 * knows nothing of that. */
void cluster_promote(cluster *c);
/* The old primary is ended, with all it has, and begins anew as the standby of the new
 * one, which waits for it from now on. Their link must not be cut. */
void cluster_rebuild(cluster *c);

/* A program that serves at a port of a host: a node. All strings are the caller's, and
 * live as long as it is used. */
typedef struct service_node {
    int host, port;
    network_program program;
    pid_t pid; /* 0: it does not run */
} service_node;

/* Starts it and waits until its port answers. Fails the test when it ends before. */
void service_node_start(network *n, service_node *node);
/* Sends a signal and waits for its end: its exit status, or 128 + signal. Again is
 * harmless, and 0. */
int service_node_end(service_node *node, int signal);

#endif
