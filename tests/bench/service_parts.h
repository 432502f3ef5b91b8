/*
 * service_parts.h: what service.c consists of: servers that are processes of their own, a
 * client of them, and a long wire.
 */
#ifndef BENCH_SERVICE_PARTS_H
#define BENCH_SERVICE_PARTS_H

#include "bench/backends.h"
#include "rpc/rpc.h"
#include "service/sessile.pb-c.h"

/* ---- service_nodes.c */

enum { NODES = 3 };

/* Servers over one schema of one database, and a client with a connection to each. */
typedef struct nodes {
    int count;
    struct node {
        pid_t pid;
        char address[80];
        rpc_channel *channel;
    } node[NODES];
    rpc_loop *loop;
    rpc_tls *tls; /* of the client; NULL: plain text */
} nodes;

/* Why there can be no servers; NULL: there can. */
const char *nodes_missing(void);
/* Starts count servers over the store at url, and returns once they agree who owns what.
 * cert NULL: plain text. They end when this process does. */
void nodes_start(nodes *n, int count, const char *url, const char *cert, const char *key);
void nodes_stop(nodes *n);
/* Bytes of memory that a server has for itself. */
double nodes_resident(const nodes *n, int i);

/* What came back of a call. */
typedef struct answer answer;
struct answer {
    rpc_request *request; /* while it has not ended */
    void (*message)(answer *a, const void *data, size_t size); /* NULL: it is kept */
    void (*over)(answer *a);                                   /* NULL */
    void *arg;
    int ended;
    double at_us;   /* when it ended */
    char owner[80]; /* the node that served it, unless it was the one that was asked */
    unsigned char kept[512];
    size_t kept_size, messages;
};
/* Begins a call of a method ("Turn", or a path). What ends with another status than OK
 * ends the program. */
void client_begin(const nodes *n, int i, const char *method,
                  const ProtobufCMessage *request, answer *a);
/* Makes it: its time. The functions of *a are as they were set. */
double client_call(const nodes *n, int i, const char *method,
                   const ProtobufCMessage *request, answer *a);
/* Ends a stream. */
void client_leave(answer *a);

/* The session `id` is made or opened; its owner, as node i names it. */
void client_session(const nodes *n, int i, const char *id);
int client_owner(const nodes *n, int i, const char *id);
/* Begins an append to it of message_text(number), or makes it. The entry that it, or
 * another call that answers so, has written. */
void client_append_begin(const nodes *n, int i, const char *id, int number, answer *a);
double client_append(const nodes *n, int i, const char *id, int number, answer *a);
uint32_t written_entry(const answer *a);
/* For a request: a session's names. */
#define SESSION_NAMES(name, its_id)                         \
    Sessile__V1__Session name = SESSILE__V1__SESSION__INIT; \
    name.id = (char *)(size_t)(its_id)

/* ---- service_wire.c */

/* A proxy that delays each direction by delay_us. It listens at a port of its own, and
 * connects to the one that url names as 127.0.0.1:PORT. */
typedef struct wire wire;
wire *wire_open(const char *url, unsigned delay_us);
void wire_close(wire *w);
/* The URL with the wire's port. */
void wire_url(const wire *w, char out[4200]);

/* ---- the rows */

/* What takes turns in a row: the nodes, and a bare connection. */
typedef struct pair {
    const nodes *n;
    const backend *over; /* how its client reaches them: the second column */
    bare *plain;
    samples ours, bare, peer;
} pair;
extern const backend over_plain, over_tls;
void print_pair(pair *p, const char *operation, const char *bare_is, double target,
                double asked_ms);

/* service_events.c */
void bench_events(pair *p);

/* service_cost.c: how names what the clients of n use. */
void bench_tls(const nodes *with, const nodes *without);
void bench_idle(const nodes *n, const char *how);
void bench_kept(size_t entries);

#endif
