/*
 * trio.h: three services over one PostgreSQL database, in this process, and a client of
 * each.
 */
#ifndef UNIT_SERVICE_TRIO_H
#define UNIT_SERVICE_TRIO_H

#include "service/nodes.h"

enum { TRIO = 3, REPLY_MOST = 64 };

typedef struct trio_node {
    sessile_store *store;
    service *service;
    pthread_t thread;
    int running;
    rpc_channel *channel; /* of the client */
} trio_node;

typedef struct trio {
    char *place; /* the schema's URL */
    trio_node nodes[TRIO];
    rpc_loop *loop;          /* of the client; the test turns it */
    char *key;               /* an access key of "ann"; NULL: the stores have no guard */
    rpc_tls *tls;            /* of the client; NULL: plain text */
    const char *traceparent; /* of its calls; NULL: they are of no trace */
} trio;

/* Skips the test without PostgreSQL. url: NULL: the shared server. more: settings of each
 * but for the address and the name; NULL: none. */
void trio_open(trio *t, const char *url, const service_settings *more, int guarded);
/* The same with TLS: the client believes this authority. */
void trio_open_trusting(trio *t, const char *authority, const service_settings *more);
void trio_close(trio *t);
/* Starts node i, over its store if it has one, else over one at `place`; for a test that
 * opens none or one of them. */
void trio_start(trio *t, int i, const service_settings *more, int guarded);
/* Ends one node as SIGTERM does. */
void trio_stop(trio *t, int i);
/* Its loops answer no more, and its lease goes on: a node that is not heard. It cannot be
 * woken. */
void trio_deafen(trio *t, int i);
/* The address that others know it by. */
const char *trio_address(const trio *t, int i);

/* One call: what came back. */
typedef struct reply {
    int ended, told, unbegun;
    rpc_code code;
    char message[512];
    char *first; /* message; bytes: of all messages */
    size_t first_size, messages, bytes;
    uint64_t hash;   /* of all messages */
    char owner[280]; /* trailer sessile-owner; "": none */
    char status[40]; /* trailer sessile-status */
    int keep_open;   /* a stream that is not waited for */
    int pause_ms;    /* after each message */
} reply;

/* Calls a method ("Turn", or a path) at a node with a packed request, and waits. Fails
 * the test when there is no end within half a minute. timeout_ms 0: no deadline. */
void trio_call(trio *t, int node, const char *method, const ProtobufCMessage *request,
               int timeout_ms, reply *out);
/* The same with this key; "": none. */
void trio_call_as(trio *t, int node, const char *method, const ProtobufCMessage *request,
                  const char *key, int timeout_ms, reply *out);
/* Begins one; trio_turn() goes on with it. */
rpc_request *trio_begin(trio *t, int node, const char *method,
                        const ProtobufCMessage *request, reply *out);
void trio_turn(trio *t, int ms);
void reply_free(reply *r);

/* Which node answers for a session, when node i is asked: by ResumeSession. */
int trio_owner(trio *t, int i, const char *id);
/* Makes a session, or opens it. */
void trio_make(trio *t, int i, const char *id);
/* The same, and waits until each node (but for `without`; -1: none) names the
 * same owner for it. Returns that. */
int trio_settled(trio *t, const char *id, int without);
/* The first of session-0, session-1, … that node i owns; id has room for 32. */
void trio_session_of(trio *t, int i, char *id);
/* Appends one message, and returns the status. */
rpc_code trio_append(trio *t, int i, const char *id, const char *text, reply *out);

nodes_figures trio_figures(const trio *t, int i);

#endif
