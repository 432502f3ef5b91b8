/*
 * http.h: the same methods as JSON over HTTP, for programs without gRPC.
 *
 *   POST /sessile.v1.SessionService/Method   a request as JSON, its reply as JSON
 *   POST /sessile.v1.MemoryService/Method    the same
 *   GET  /v1/events?id=…                     events of a session as text/event-stream
 *   GET  /healthz                            200, or 503 when it does not serve
 *
 * http.c reads requests and makes calls of them, http_reply.c writes what calls say.
 */
#ifndef SERVICE_HTTP_H
#define SERVICE_HTTP_H

#include "service/server.h"

/* ---------------------------------------------------------------------- http.c */

/* A request began that is not of gRPC: the method that it is for, or NULL: it was
 * answered. */
const method *http_begun(service *s, rpc_call *rpc);
/* How it is answered. */
call_speech http_speech(const method *m);
/* Its body is there, and the call begins; on the loop. INVALID: a parameter. */
sessile_status http_started(call *c, sessile_error *err);
/* Makes the request of the call, which is JSON, one of protobuf; on a worker. INVALID:
 * it is no such JSON. LIMIT. NOMEM. */
sessile_status http_translate(call *c, sessile_error *err);

/* ---------------------------------------------------------------------- http_reply.c */

/* Sends a message of the reply, or keeps it for the end. Any thread. */
sessile_status http_send(call *c, const ProtobufCMessage *message, sessile_error *err);
/* Ends a call. */
void http_finish(call *c, sessile_status status, const sessile_error *err);
/* Packs a message behind what is in out. 0, or -1: no memory, as out->failed says. */
int pack_message(buf *out, const ProtobufCMessage *message);
/* Ends a request that is no call. http: the status; code: Connect's name. */
void http_refuse(rpc_call *rpc, int http, const char *code, const char *message,
                 const rpc_header *header);

#endif
