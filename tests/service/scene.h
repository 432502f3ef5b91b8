/*
 * scene.h: a service as it is meant to be run, and clients that use it all the time:
 * three nodes with TLS and a guard, over the cluster of cluster.h, each on a host of its
 * own; writers and watchers of others' gRPC library (clients.py) on two more hosts.
 *
 * The clocks of the second and the third node are wrong by +2 hours and -26 hours.
 */
#ifndef SERVICE_SCENE_H
#define SERVICE_SCENE_H

#include "service/cluster.h"
#include "unit/rpc/certificates.h"

enum { SCENE_NODES = 3, SCENE_CLIENTS = 2, SCENE_SESSIONS = 12 };

typedef struct scene_options {
    int writers;     /* of each client */
    int no_affinity; /* 1: serve = { affinity = false } */
} scene_options;

typedef struct scene scene;

/* Starts all of it and waits until each writer was answered. Skips the test, with the
 * reason, where this machine lacks something. */
scene *scene_open(const scene_options *options);
void scene_close(scene *s);

cluster *scene_cluster(scene *s);
int scene_node_host(const scene *s, int node);
int scene_client_host(const scene *s, int client);

/* kill(2) of the node's process, and its end: the exit status, or 128 + signal. */
int scene_node_end(scene *s, int node, int signal);
/* Starts it again and waits until its port answers. */
void scene_node_start(scene *s, int node);

/* Waits until each writer has been acknowledged `more` messages from now on. Fails the
 * test when a client has ended: it says why on its standard error. */
void scene_let_write(scene *s, unsigned long more);
/* How many messages were acknowledged so far. */
unsigned long scene_acknowledged(const scene *s);

/* µs of the monotonic clock. */
uint64_t scene_now(void);
/* The longest time, in ms, that any writer waited for an acknowledgement between the two.
 */
double scene_pause(const scene *s, uint64_t from, uint64_t until);

/* The sum over all nodes of a counter, since each was started: the start of its line in
 * their metrics, e.g. "sessile_calls_routed_total{where=\"here\"}". */
unsigned long scene_metric(scene *s, const char *line);

/*
 * Ends the writers, waits until the watchers have all there is, and judges: what was
 * acknowledged is in the newest primary, once, in each writer's order; each log is whole;
 * each watcher saw what the logs have, byte for byte. Prints figures that begin with
 * `title`. Nothing may be broken.
 */
void scene_judge(scene *s, const char *title);

#endif
