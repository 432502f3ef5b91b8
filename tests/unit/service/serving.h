/*
 * serving.h: a service in this process, and a client of it.
 *
 *   serving s;
 *   serving_start(&s, run_store("ram:"), NULL);
 *   Sessile__V1__Written *w = serve_ok(&s, "AppendMessage", &request);
 *
 *   stream st;
 *   stream_begin(&s, &st, "StreamSessionEvents", &request);
 *   stream_wait(&s, &st, 3);            until 3 messages came
 *   stream_end(&s, &st);
 *
 * Only the thread that started a service calls it, by one connection.
 */
#ifndef UNIT_SERVICE_SERVING_H
#define UNIT_SERVICE_SERVING_H

#include <pthread.h>

#include "rpc/rpc.h"
#include "service/service.h"
#include "service/sessile.pb-c.h"

typedef struct serving {
    service *service;
    pthread_t thread;
    int running;
    rpc_loop *loop;
    rpc_channel *channel;
    const rpc_header *headers; /* of each call; ends with a row without a name */
    void *held;                /* replies, freed by serving_stop() */
} serving;

/* A call whose replies are a stream. */
typedef struct stream {
    serving *of;
    const char *method;
    rpc_request *request; /* NULL: it ended */
    void **replies;
    size_t count;
    int ended;
    rpc_code code;
    char message[512], status[32];
    size_t cancel_at; /* ends it once so many replies came; 0: never */
} stream;

/* Serves a store, which stays the caller's. settings NULL: what most tests need. */
void serving_start(serving *s, sessile_store *store, const service_settings *settings);
/* Tells it to end; what there is may end. */
void serving_drain(serving *s);
void serving_stop(serving *s);

/* The type of a method's replies. */
const ProtobufCMessageDescriptor *reply_type(const char *method);

/* A call that answers once: its reply, which lives until serving_stop(). Fails the test
 * when the call does. */
void *serve_ok(serving *s, const char *method, const void *request);
/* The same of a call that fails: its code. The text of its status stays in status. */
rpc_code serve_fails(serving *s, const char *method, const void *request,
                     char status[32]);

void stream_begin(serving *s, stream *st, const char *method, const void *request);
/* The same, and the client may send more, whatever the method takes. request may be NULL:
 * nothing is sent yet. */
void stream_open(serving *s, stream *st, const char *method, const void *request);
void stream_send(stream *st, const void *request);
/* Turns the loop until there are so many replies, or it ended: 1, or 0: it ended before
 * that. Fails the test after two minutes. */
int stream_wait(stream *st, size_t count);
void stream_wait_end(stream *st);
/* Cancels it if it did not end, and forgets its replies. */
void stream_done(stream *st);

/* The name of a session in requests; static. */
Sessile__V1__Session *names_of(const char *id);
/* Writes a message by the service. */
sessile_id append_by(serving *s, const char *id, const char *text);

#endif
