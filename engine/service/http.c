/*
 * http.c: requests over HTTP that are not gRPC: which method they are for, and what they
 * ask.
 *
 * A request of JSON becomes the bytes of the same request in protobuf, on a worker and
 * once its credential was accepted, and goes the way of every call from there: the same
 * checks, the same lane and its limit, the same method. Parsing it on the loop would hold
 * up others.
 */
#include "service/http.h"

#include <stdio.h>
#include <arpa/inet.h>
#include <string.h>
#include <strings.h>

#include "service/http_query.h"
#include "service/json.h"
#include "service/nodes.h"

#define REQUEST_MOST (((size_t)8 << 20) / 100 * 101)

static const char EVENTS[] = "/sessile.v1.SessionService/StreamSessionEvents";

/* ---------------------------------------------------------------------- which method */

static int is_json_type(const char *type)
{
    static const char json[] = "application/json";
    if (!type || strncasecmp(type, json, sizeof json - 1) != 0)
        return 0;
    type += sizeof json - 1;
    return *type == '\0' || *type == ';' || *type == ' ';
}

static void answer_health(service *s, rpc_call *rpc)
{
    if (!service_serves(s))
        rpc_http_reply(rpc, 503, "text/plain", "not serving\n", 12);
    else
        rpc_http_reply(rpc, 200, "text/plain", "ok\n", 3);
}

static void refuse_verb(rpc_call *rpc, const char *allowed)
{
    rpc_header allow = {"allow", allowed};
    char text[80];
    snprintf(text, sizeof text, "this path takes %s", allowed);
    http_refuse(rpc, 405, "unimplemented", text, &allow);
}

/* 1: the host that a request names is this machine, a bare address, or an address that
 * the server was told. Without a guard that is all that keeps a page in somebody's
 * browser out: its name may have been resolved to 127.0.0.1 after it was loaded. */
static int names_this_server(const service *s, rpc_call *rpc)
{
    const char *given = rpc_call_header(rpc, "host"),
               *listens = rpc_listener_address(s->listener);
    unsigned char address[16];
    char host[256];
    if (!given)
        return 1;
    const char *from = *given == '[' ? given + 1 : given;
    const size_t size = strcspn(from, *given == '[' ? "]" : ":");
    if (size >= sizeof host)
        return 0;
    memcpy(host, from, size);
    host[size] = '\0';
    return strcasecmp(host, "localhost") == 0 || strncmp(listens, "unix:", 5) == 0 ||
           inet_pton(AF_INET, host, address) == 1 ||
           inet_pton(AF_INET6, host, address) == 1 ||
           (strncasecmp(listens, host, size) == 0 && listens[size] == ':');
}

/* Methods of sessile.proto and memory.proto alone: health is asked at /healthz, and
 * records are bytes. */
const method *http_begun(service *s, rpc_call *rpc)
{
    const char *path = rpc_call_path(rpc), *verb = rpc_call_method(rpc);
    const char *encoding = rpc_call_header(rpc, "content-encoding");
    const int gets = strcmp(verb, "GET") == 0, posts = strcmp(verb, "POST") == 0;
    const int events = strcmp(path, "/v1/events") == 0;
    const method *m = NULL;
    if (strcmp(path, "/healthz") == 0) {
        if (gets || strcmp(verb, "HEAD") == 0)
            answer_health(s, rpc);
        else
            refuse_verb(rpc, "GET");
        return NULL;
    }
    if (s->settings.json)
        m = method_served(s, events ? EVENTS : path);
    if (!s->settings.guarded && !names_this_server(s, rpc))
        http_refuse(rpc, 403, "permission_denied",
                    "without a guard the host of a URL is localhost or an address", NULL);
    else if (!m || m->flags & (METHOD_LOOP | METHOD_RECORDS | METHOD_REFLECTS))
        http_refuse(rpc, 404, "unimplemented", "there is nothing at this path", NULL);
    else if (!posts && !(gets && events))
        refuse_verb(rpc, events ? "GET, POST" : "POST");
    else if (m->flags & METHOD_DUPLEX)
        http_refuse(
            rpc, 501, "unimplemented",
            "a stream of requests needs gRPC; methods that answer once do the same",
            NULL);
    else if (posts && !is_json_type(rpc_call_header(rpc, "content-type")))
        http_refuse(rpc, 415, "invalid_argument", "the content type is application/json",
                    NULL);
    else if (encoding && strcasecmp(encoding, "identity") != 0)
        http_refuse(rpc, 415, "unimplemented", "the body must not be compressed", NULL);
    else
        return m;
    return NULL;
}

call_speech http_speech(const method *m)
{
    return strcmp(m->name, "StreamSessionEvents") == 0 ? CALL_EVENTS : CALL_JSON;
}

/* ---------------------------------------------------------------------- the request */

static sessile_status pack_request(call *c, const ProtobufCMessage *message,
                                   sessile_error *err)
{
    buf_clear(&c->request);
    return pack_message(&c->request, message) ? fail_nomem(err) : SESSILE_OK;
}

/* GET /v1/events. */
static sessile_status request_of_query(call *c, sessile_error *err)
{
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__Entry from = SESSILE__V1__ENTRY__INIT;
    const char *query = rpc_call_query(c->rpc);
    const char *last = rpc_call_header(c->rpc, "last-event-id");
    http_query p;
    size_t size = strlen(query) + 1;
    char *copy = mem_dup(&c->server->alloc, query, size - 1);
    if (!copy)
        return fail_nomem(err);
    sessile_status status = http_query_read(copy, &p, err);
    r.session = &names;
    names.agent = p.agent ? p.agent : names.agent;
    names.user = p.user ? p.user : names.user;
    names.id = p.id ? p.id : names.id;
    if (!status && last) {
        status = http_entry_read(last, "Last-Event-ID", &from.id, err);
        from.id++;
        r.from = &from;
    } else if (!status && p.from) {
        status = http_entry_read(p.from, "from", &from.id, err);
        r.from = &from;
    }
    if (!status)
        status = pack_request(c, &r.base, err);
    mem_free(&c->server->alloc, copy, size);
    return status;
}

sessile_status http_started(call *c, sessile_error *err)
{
    if (strcmp(rpc_call_method(c->rpc), "GET") != 0)
        return SESSILE_OK;
    atomic_store(&c->speech.translated, 1);
    c->speech.one_session = 1;
    return request_of_query(c, err);
}

sessile_status http_translate(call *c, sessile_error *err)
{
    ProtobufCMessage *message;
    sessile_status status =
        json_to_message(c->method->input, c->request.data ? c->request.data : "",
                        c->request.size, REQUEST_MOST, &c->server->alloc, &message, err);
    if (status)
        return status;
    if (c->speech.as == CALL_EVENTS)
        c->speech.one_session =
            ((const Sessile__V1__EventsRequest *)message)->session != NULL;
    status = pack_request(c, message, err);
    message_free(message);
    atomic_store(&c->speech.translated, 1);
    return status;
}
