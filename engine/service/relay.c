/*
 * relay.c: a call whose session another node owns is passed on, once, bytes as they are.
 *
 * The call keeps its credential, deadline and trace, so the owner asks the guard for
 * itself, and no node has rights over another. What the owner answers is passed back;
 * its own trailers too, and `sessile-owner`, where the next call could go at once.
 *
 * An answer is one only with its status. When there is none:
 *
 *   never begun, or refused by the owner   the call is run here
 *   it may have begun, and only reads, or
 *   has `once`                             the call is run here
 *   it may have begun                      UNKNOWN: nobody can tell
 *   a part of a stream was passed back     UNAVAILABLE: the client resumes
 *
 * Only calls whose credential was accepted here before are passed on. A wrong one is
 * always judged, and counted, where it arrives: otherwise somebody who guesses keys would
 * use up the attempts of the nodes that pass the guesses on.
 */
#include "service/known.h"
#include "service/nodes.h"
#include "service/observe.h"

#include <string.h>
#include <strings.h>

#define FORWARDED "sessile-forwarded"
#define OWNER     "sessile-owner"
#define REFUSED   "sessile-refused"

enum { HEADERS = 24 };

struct relay {
    call *call; /* a reference */
    peer *peer;
    relay *next, **at; /* among those of the peer */
    rpc_request *request;
    span span;   /* of the node's answer */
    buf reply;   /* of a call with one reply: kept until its status is there */
    int kept;    /* there is one */
    int passed;  /* messages of a stream */
    int answers; /* that the client sent after its first request */
    int opening, ended;
    int gone; /* nobody waits */
    int lost; /* the owner is not heard any more */
    int paused;
    size_t most_unsent;
};

/* ---------------------------------------------------------------------- the end */

static void relay_free(relay *r)
{
    call *c = r->call;
    peer *one = r->peer;
    allocator a = c->server->alloc;
    *r->at = r->next;
    if (r->next)
        r->next->at = r->at;
    c->relay = NULL;
    span_end(&r->span);
    buf_deinit(&r->reply);
    mem_free(&a, r, sizeof *r);
    peer_done(one);
    call_release(c);
}

static void routed(call *c, metric_where where)
{
    observe *o = c->server->observe;
    if (o && !(c->method->flags & METHOD_ALL))
        metrics_add(observe_metrics(o), METRIC_ROUTED, where, 0, 1);
}

/* A status that this node gives, or passes back. */
static void finish(call *c, rpc_code code, const char *message,
                   const rpc_header *trailers, size_t n)
{
    observe_ended(c, code);
    rpc_finish(c->rpc, code, message, trailers, n);
}

typedef struct headers {
    rpc_header list[HEADERS];
    size_t count;
} headers;

static void add(headers *h, const char *name, const char *value)
{
    if (h->count < HEADERS)
        h->list[h->count++] = (rpc_header){name, value};
}

/* The trailers of ours that the owner sent. */
static int take_trailer(void *arg, const char *name, const char *value)
{
    if (strncmp(name, "sessile-", 8) == 0 && strcmp(name, OWNER) != 0)
        add(arg, name, value);
    return 0;
}

static void pass_back(relay *r, rpc_request *request, const rpc_result *result)
{
    call *c = r->call;
    nodes *n = c->server->nodes;
    headers trailers = {.count = 0};
    add(&trailers, OWNER, r->peer->address);
    rpc_request_headers(request, take_trailer, &trailers);
    if (result->code == RPC_UNAUTHENTICATED)
        known_forget(c->server->known, c->rpc);
    atomic_fetch_add(&n->count.relayed, 1);
    routed(c, WHERE_RELAYED);
    if (r->reply.failed) {
        finish(c, RPC_UNKNOWN,
               "it was done, and there was no memory to pass the answer on", NULL, 0);
        return;
    }
    if (r->kept && result->code == RPC_OK)
        (void)rpc_send(c->rpc, r->reply.data, r->reply.size);
    finish(c, result->code, result->message, trailers.list, trailers.count);
}

/* 1: the owner said that it did nothing, because it has lost the database. */
static int is_refused(rpc_request *request, const rpc_result *result)
{
    return result->told && result->code == RPC_UNAVAILABLE &&
           rpc_request_header(request, REFUSED) != NULL;
}

/* 1: to run the call here does nothing twice. */
static int may_run_here(const relay *r, rpc_request *request, const rpc_result *result)
{
    const call *c = r->call;
    if (r->passed > 0 || r->answers > 0)
        return 0;
    return result->unbegun || is_refused(request, result) ||
           (c->method->flags & METHOD_READS) ||
           decode_has_once(c->method->input, c->request.data, c->request.size);
}

static void finish_lost(relay *r)
{
    call *c = r->call;
    observe_report(c->server->observe, REPORT_NODES, LEVEL_WARN,
                   "A node was lost before it answered a call that was passed on to it.",
                   (attribute[]){attribute_text("node", r->peer->name),
                                 attribute_text("method", c->method->name)},
                   2);
    if (c->method->flags & METHOD_READS)
        finish(c, RPC_UNAVAILABLE,
               "the node that answered was lost: go on where the stream ended", NULL, 0);
    else
        finish(c, RPC_UNKNOWN,
               "the node that ran it was lost before it answered, and it may have "
               "been done: look before it is sent again, or name a turn with `once`",
               NULL, 0);
}

static void ended(void *ud, rpc_request *request, const rpc_result *result)
{
    relay *r = ud;
    call *c = r->call;
    nodes *n = c->server->nodes;
    if (result->code != RPC_OK)
        span_fail(&r->span, status_code_name(result->code));
    if (r->opening) {
        r->ended = 1; /* nothing was sent: relay_begin() goes on */
        return;
    }
    span_end(&r->span);
    if (!result->told && (result->unbegun || r->lost || result->code == RPC_UNAVAILABLE))
        r->peer->heard = 0; /* until it is looked at again */
    if (r->gone || rpc_call_over(c->rpc)) {
        relay_free(r);
        return;
    }
    if (result->told && !is_refused(request, result)) {
        pass_back(r, request, result);
    } else if (!result->told && !r->lost && result->code == RPC_DEADLINE_EXCEEDED) {
        finish(c, result->code, "the deadline has passed", NULL, 0);
    } else if (may_run_here(r, request, result) && !atomic_load(&n->ending)) {
        atomic_fetch_add(&n->count.fallback, 1);
        routed(c, WHERE_FALLBACK);
        c->relay = NULL;
        c->astray = 1;
        call_submit(c);
    } else {
        finish_lost(r);
    }
    relay_free(r);
}

void relay_gone(relay *r)
{
    r->gone = 1;
    rpc_request_cancel(r->request); /* ends it */
}

void relay_lose(peer *one)
{
    while (one->relays) {
        one->relays->lost = 1;
        rpc_request_cancel(one->relays->request);
    }
}

/* ---------------------------------------------------------------------- replies */

static void message(void *ud, rpc_request *request, const void *data, size_t size)
{
    relay *r = ud;
    call *c = r->call;
    if (!(c->method->flags & (METHOD_STREAMS | METHOD_DUPLEX))) {
        buf_clear(&r->reply);
        buf_put(&r->reply, size ? data : "", size);
        r->kept = 1;
        return;
    }
    r->passed++;
    if (rpc_send(c->rpc, data, size) != 0)
        return; /* the call is over, and `gone` ends this */
    if (rpc_unsent(c->rpc) > r->most_unsent) {
        r->paused = 1;
        rpc_request_pause(request, 1);
    }
}

void relay_drained(relay *r)
{
    if (r->paused) {
        r->paused = 0;
        rpc_request_pause(r->request, 0);
    }
}

/* ------------------------------------------------- what a client of a stream sends on */

void relay_message(relay *r, const void *data, size_t size)
{
    r->answers++;
    if (rpc_request_send(r->request, data, size) != 0)
        rpc_request_cancel(r->request);
}

void relay_half(relay *r)
{
    rpc_request_end(r->request);
}

/* ---------------------------------------------------------------------- the beginning */

/* What the owner is to see of the client's headers. Its trace goes on by a header of our
 * own. */
static int take_header(void *arg, const char *name, const char *value)
{
    static const char *const passed[] = {"authorization", "tracestate", "baggage"};
    int is_passed = strncmp(name, "sessile-", 8) == 0 && strcmp(name, FORWARDED) != 0;
    for (size_t i = 0; i < sizeof passed / sizeof *passed; i++)
        is_passed |= strcmp(name, passed[i]) == 0;
    if (is_passed)
        add(arg, name, value);
    return 0;
}

/* 1: it is on its way; 0: nothing was sent. */
static int pass_on(call *c, peer *to)
{
    static const rpc_replies replies = {message, ended, NULL};
    nodes *n = c->server->nodes;
    char trace[TRACEPARENT_SIZE];
    rpc_limits limits;
    headers all = {.count = 0};
    relay *r = mem_zalloc(&n->alloc, sizeof *r);
    if (!r)
        return 0;
    rpc_limits_init(&limits);
    r->most_unsent = limits.bytes.unsent;
    atomic_fetch_add(&c->references, 1);
    r->call = c;
    r->peer = to;
    buf_init(&r->reply, &n->alloc);
    r->next = to->relays;
    r->at = &to->relays;
    if (r->next)
        r->next->at = &r->next;
    to->relays = r;
    c->relay = r;

    observe_part(c, &r->span, "relay", SPAN_CLIENT);
    span_set(&r->span, attribute_text("sessile.node", to->name));
    traceparent_print(&r->span.context, trace);
    add(&all, FORWARDED, n->own.name);
    if (*trace)
        add(&all, "traceparent", trace);
    rpc_call_headers(c->rpc, take_header, &all);
    r->opening = 1;
    int made = rpc_request_open(&r->request, to->channel, rpc_call_path(c->rpc), all.list,
                                all.count, rpc_call_deadline(c->rpc), &replies, r,
                                NULL) == SESSILE_OK;
    if (made && !r->ended)
        made = rpc_request_send(r->request, c->request.data, c->request.size) == 0;
    if (made && !r->ended && !(c->method->flags & METHOD_DUPLEX))
        rpc_request_end(r->request);
    if (!made && r->request && !r->ended)
        rpc_request_cancel(r->request);
    r->opening = 0;
    if (!made || r->ended) {
        relay_free(r);
        return 0;
    }
    return 1;
}

static void refuse(call *c, const char *why)
{
    static const rpc_header trailers[] = {{"sessile-status", "EBUSY"}, {REFUSED, "1"}};
    atomic_fetch_add(&c->server->nodes->count.refused, 1);
    finish(c, RPC_UNAVAILABLE, why, trailers, 2);
}

/* What the session or the memory of a call is known by. 1: it has one, and another node
 * may be asked. A node that has lost the database cannot judge credentials: it passes
 * them on. */
static int key_of(call *c, uint64_t *key)
{
    nodes *n = c->server->nodes;
    sessile_slice names[3];
    known_caller who = {0, 0};
    const int guarded = c->server->settings.guarded;
    if (guarded && (!rpc_call_header(c->rpc, "authorization") ||
                    (!known_find(c->server->known, c->rpc, &who) && !nodes_lost(n))))
        return 0;
    *key = 0;
    const decoded_names named =
        decode_names(c->method->input, c->request.data, c->request.size, names);
    if (named == NAMES_NONE || (c->method->flags & METHOD_ALL))
        return nodes_lost(n);
    if (!names[0].size)
        names[0] = sessile_text(n->settings.agent);
    if (names[1].size || !guarded || named == NAMES_SHARED)
        who.user = node_user(names[1]);
    *key = node_key(names[0], who.user, names[2]);
    return 1;
}

static int route(call *c)
{
    nodes *n = c->server->nodes;
    peers *p = peers_of(c->server, rpc_call_loop(c->rpc));
    uint64_t key;
    int alone;
    if (!p || !n->link || (c->method->flags & METHOD_RECORDS))
        return 0;
    if (rpc_call_header(c->rpc, FORWARDED)) {
        if (nodes_lost(n)) {
            refuse(c, "this node has lost the database");
            return 1;
        }
        atomic_fetch_add(&n->count.forwarded, 1);
        c->astray = 0;
        return 0;
    }
    if (!n->settings.affinity || c->speech.as != CALL_GRPC || !key_of(c, &key))
        return 0;
    peer *owner = peers_owner(p, key, &alone);
    if (alone) {
        refuse(c, "this node has lost the database, and hears no other: ask another one");
        return 1;
    }
    c->astray = owner != NULL;
    return owner ? pass_on(c, owner) : 0;
}

int relay_begin(call *c)
{
    if (route(c))
        return 1;
    routed(c, WHERE_HERE);
    return 0;
}
