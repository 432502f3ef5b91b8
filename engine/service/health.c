/*
 * health.c: whether this server serves, as balancers and supervisors ask it.
 *
 * The answer is the result of the last statement against the store: the beat of the node,
 * or a question of nodes.c. So a server that answers and cannot serve says so, and asking
 * often costs the store nothing. No credential is needed.
 *
 * "" and the names of services that it has: it serves. "replicas": as many standbys as
 * are wanted wait for commits; not part of "", since a server that lacks one can still
 * read.
 */
#include "service/nodes.h"
#include "service/observe.h"

#include <string.h>

#include "service/health.pb-c.h"

#define SERVING     GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVING
#define NOT_SERVING GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__NOT_SERVING
#define SERVICE_UNKNOWN \
    GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__SERVING_STATUS__SERVICE_UNKNOWN

typedef enum asked {
    ASKED_SERVER,
    ASKED_REPLICAS,
    ASKED_NOBODY,
    ASKED_NOTHING /* its call only ends with the service */
} asked;

struct watcher {
    call *call;
    watcher *next, **at; /* of its loop */
    asked what;
    int told; /* the last status; -1: none */
};

static asked what_is_asked(const service *s, const void *request)
{
    const Grpc__Health__V1__HealthCheckRequest *r = request;
    if (!*r->service || method_serves(s, r->service))
        return ASKED_SERVER;
    return strcmp(r->service, "replicas") == 0 ? ASKED_REPLICAS : ASKED_NOBODY;
}

static int status_of(const nodes *n, asked what)
{
    if (what == ASKED_NOBODY || what == ASKED_NOTHING)
        return SERVICE_UNKNOWN;
    int good = what == ASKED_SERVER ? nodes_serving(n) : nodes_replicated(n);
    return good ? SERVING : NOT_SERVING;
}

static sessile_status reply(call *c, int status, sessile_error *err)
{
    Grpc__Health__V1__HealthCheckResponse out =
        GRPC__HEALTH__V1__HEALTH_CHECK_RESPONSE__INIT;
    out.status = (Grpc__Health__V1__HealthCheckResponse__ServingStatus)status;
    return call_reply(c, &out.base, err);
}

static sessile_status check_health(call *c, const void *request, sessile_error *err)
{
    asked what = what_is_asked(c->server, request);
    if (what == ASKED_NOBODY)
        return fail(err, SESSILE_NOTFOUND, "this server has no service of that name");
    return reply(c, status_of(c->server->nodes, what), err);
}

/* ---------------------------------------------------------------------- watching */

/* NULL: no memory. */
static watcher *watch_for(call *c, asked what)
{
    nodes *n = c->server->nodes;
    peers *p = peers_of(c->server, rpc_call_loop(c->rpc));
    watcher *w = p ? mem_zalloc(&n->alloc, sizeof *w) : NULL;
    if (!w)
        return NULL;
    w->call = c;
    w->what = what;
    w->told = status_of(n, what);
    w->next = p->watchers;
    w->at = &p->watchers;
    if (w->next)
        w->next->at = &w->next;
    p->watchers = w;
    c->watcher = w;
    return w;
}

static sessile_status watch_health(call *c, const void *request, sessile_error *err)
{
    const watcher *w = watch_for(c, what_is_asked(c->server, request));
    return w ? reply(c, w->told, err) : fail_nomem(err);
}

int health_end_with(call *c)
{
    return watch_for(c, ASKED_NOTHING) ? 0 : -1;
}

void health_gone(watcher *w)
{
    call *c = w->call;
    allocator a = c->server->alloc;
    *w->at = w->next;
    if (w->next)
        w->next->at = w->at;
    c->watcher = NULL;
    mem_free(&a, w, sizeof *w);
}

/* A drain waits for each call. */
static void end(watcher *w)
{
    call *c = w->call;
    health_gone(w);
    observe_ended(c, RPC_UNAVAILABLE);
    rpc_finish(c->rpc, RPC_UNAVAILABLE, "the server is ending", NULL, 0);
}

void health_tell(peers *p)
{
    const nodes *n = p->nodes;
    int leaving = atomic_load(&n->leaving);
    watcher *next;
    for (watcher *w = p->watchers; w; w = next) {
        int status = status_of(n, w->what);
        next = w->next;
        if (status != w->told && reply(w->call, status, NULL))
            continue; /* it is over, and will be gone */
        w->told = status;
        if (leaving)
            end(w);
    }
}

void health_end(peers *p)
{
    while (p->watchers)
        end(p->watchers);
}

#define HEALTH(name, run, flags)                                      \
    {                                                                 \
        name, run, METHOD_READS | METHOD_LOOP | METHOD_ALL | (flags), \
            &grpc__health__v1__health_check_request__descriptor       \
    }
const method methods_health[] = {
    HEALTH("Check", check_health, 0),
    HEALTH("Watch", watch_health, METHOD_STREAMS),
    {NULL, NULL, 0, NULL},
};
