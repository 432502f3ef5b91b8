/*
 * peers.c: the other nodes, as one loop sees them: who is heard, and who owns a session.
 *
 * A channel lives on one loop, so each loop has one to each other node and looks at all
 * of them ten times a second. PINGs tell who is there; no call is spent on finding out. A
 * node that is alive in the database and not heard here owns nothing for this loop, until
 * a byte comes back: two nodes that do not hear each other both go on serving.
 *
 * Nothing here waits. Where a node is, is looked up by another thread (meet.c); one that
 * cannot be looked up is not heard, and is tried again.
 */
#include "service/nodes.h"

#include <string.h>

#include "base/os.h"

enum { LOOK_MS = 100, PROBE_MS = 1000, AGAIN_MS = 5000 };

/* ---------------------------------------------------------------------- one of them */

static void probe_ended(void *ud, rpc_request *request, const rpc_result *result)
{
    peer *one = ud;
    (void)request;
    (void)result;
    one->probe = NULL;
}

/* A channel connects when it is asked for something. */
static void probe(peer *one)
{
    static const rpc_replies replies = {NULL, probe_ended, NULL};
    uint64_t until = os_now_us() + (uint64_t)PROBE_MS * 1000;
    rpc_request *made;
    if (rpc_request_open(&made, one->channel, "/grpc.health.v1.Health/Check", NULL, 0,
                         until, &replies, one, NULL))
        return;
    one->probe = made;
    (void)rpc_request_send(made, "", 0);
    rpc_request_end(made);
}

static void peer_free(nodes *n, peer *one)
{
    if (one->channel)
        rpc_channel_close(one->channel);
    rpc_target_free(one->way.target);
    rpc_tls_drop(one->way.tls);
    mem_free(&n->alloc, one, sizeof *one);
}

static void look_up(peer *one)
{
    one->way.again_us = os_now_us() + (uint64_t)AGAIN_MS * 1000;
    meet_ask(one);
}

/* Makes the channel once it is known where the node is, and has new certificates read. */
static void meet(peer *one)
{
    const nodes *n = one->peers->nodes;
    rpc_limits limits;
    if (!meet_is_idle(one))
        return;
    if (!one->channel && one->way.target && !one->way.status) {
        rpc_limits_init(&limits);
        limits.ms.ping = PING_MS;
        if (rpc_channel_open_to(&one->channel, one->peers->loop, one->way.target,
                                one->way.tls, &limits, NULL))
            return; /* no memory: at the next look */
        rpc_target_free(one->way.target);
        one->way.target = NULL;
    }
    if (one->channel ? n->settings.cert && one->way.reloads != atomic_load(&n->reloads)
                     : os_now_us() >= one->way.again_us)
        look_up(one);
}

static peer *peer_new(peers *p, const store_node *from)
{
    peer *one = mem_zalloc(&p->nodes->alloc, sizeof *one);
    if (!one)
        return NULL;
    memcpy(one->name, from->name, sizeof one->name);
    memcpy(one->address, from->address, sizeof one->address);
    one->hash = node_hash(one->name);
    one->peers = p;
    return one;
}

void peer_done(peer *one)
{
    peers *p = one->peers;
    if (!one->gone || one->relays || !meet_is_idle(one))
        return;
    peer **at = &p->gone;
    while (*at != one)
        at = &(*at)->next_gone;
    *at = one->next_gone;
    peer_free(p->nodes, one);
}

/* ---------------------------------------------------------------------- all of them */

static int is_of(const peer *one, const store_node *row)
{
    return strcmp(one->name, row->name) == 0 && strcmp(one->address, row->address) == 0;
}

static int is_among(const peer *one, const store_node *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (is_of(one, &rows[i]))
            return 1;
    return 0;
}

static int has(const peers *p, const store_node *row)
{
    for (size_t i = 0; i < p->count; i++)
        if (is_of(p->list[i], row))
            return 1;
    return 0;
}

/* What it passed on to one that has left may still be answered. */
static void let_go(peers *p, size_t i)
{
    peer *one = p->list[i];
    p->list[i] = p->list[--p->count];
    poke_lose(one);
    one->gone = 1;
    one->next_gone = p->gone;
    p->gone = one;
    peer_done(one);
}

/* One that there is no memory for is not there for this loop until the living change
 * again. */
static void take_up(peers *p, const store_node *row)
{
    peer *one = peer_new(p, row);
    if (!one)
        return;
    if (mem_grow(&p->nodes->alloc, (void **)&p->list, &p->capacity, p->count + 1,
                 sizeof *p->list) != 0) {
        peer_free(p->nodes, one);
        return;
    }
    p->list[p->count++] = one;
    look_up(one);
}

/* 1: the living have changed, and p->rows are they. */
static int copy_living(peers *p)
{
    nodes *n = p->nodes;
    pthread_mutex_lock(&n->mutex);
    const int changed =
        p->version != n->version && mem_grow(&n->alloc, (void **)&p->rows, &p->row_room,
                                             n->living_count, sizeof *p->rows) == 0;
    if (changed) {
        if (n->living_count)
            memcpy(p->rows, n->living, n->living_count * sizeof *p->rows);
        p->row_count = n->living_count;
        p->version = n->version;
    }
    pthread_mutex_unlock(&n->mutex);
    return changed;
}

static void follow(peers *p)
{
    if (!copy_living(p))
        return;
    for (size_t i = p->count; i-- > 0;)
        if (!is_among(p->list[i], p->rows, p->row_count))
            let_go(p, i);
    for (size_t i = 0; i < p->row_count; i++)
        if (!has(p, &p->rows[i]))
            take_up(p, &p->rows[i]);
}

/* One loop tells, and not before a node was heard for the first time. */
static void tell_heard(peer *one)
{
    const nodes *n = one->peers->nodes;
    if (one->heard == one->told || one->peers->loop != n->server->loops[0])
        return;
    if (one->was_heard)
        nodes_tell_heard(one);
    one->told = one->heard;
    one->was_heard = 1;
}

static void look_at(peer *one)
{
    meet(one);
    if (!one->channel)
        return;
    int silence = rpc_channel_silence(one->channel);
    one->heard = silence >= 0 && silence <= SILENCE_MS;
    tell_heard(one);
    if (silence < 0 && !one->probe)
        probe(one);
    if (!one->heard && one->relays)
        relay_lose(one);
}

static void look_at_gone(peers *p)
{
    peer *next;
    for (peer *one = p->gone; one; one = next) {
        next = one->next_gone;
        peer_done(one);
    }
}

static void look(void *arg)
{
    peers *p = arg;
    if (p->nodes->link && p->nodes->settings.affinity)
        follow(p);
    for (size_t i = 0; i < p->count; i++)
        look_at(p->list[i]);
    look_at_gone(p);
    health_tell(p);
    if (rpc_loop_after(p->loop, LOOK_MS, look, p) != 0)
        for (size_t i = 0; i < p->count; i++) /* nobody looks any more */
            p->list[i]->heard = 0;
}

sessile_status peers_open(peers **out, nodes *n, rpc_loop *loop, sessile_error *err)
{
    peers *p = mem_zalloc(&n->alloc, sizeof *p);
    *out = p;
    if (!p)
        return fail_nomem(err);
    p->nodes = n;
    p->loop = loop;
    return rpc_loop_after(loop, 0, look, p) == 0 ? SESSILE_OK : fail_nomem(err);
}

void peers_close(peers *p)
{
    if (!p)
        return;
    nodes *n = p->nodes;
    health_end(p);
    while (p->count > 0) {
        peer *one = p->list[p->count - 1];
        relay_lose(one);
        let_go(p, p->count - 1);
    }
    while (p->gone) {
        peer *one = p->gone;
        one->gone = 0; /* while its relays end */
        relay_lose(one);
        one->gone = 1;
        peer_done(one);
    }
    mem_free(&n->alloc, p->rows, p->row_room * sizeof *p->rows);
    mem_free(&n->alloc, p->list, p->capacity * sizeof *p->list);
    mem_free(&n->alloc, p, sizeof *p);
}

peers *peers_of(const service *s, const rpc_loop *loop)
{
    for (int i = 0; s->nodes && i < s->settings.loops; i++)
        if (s->loops[i] == loop)
            return s->nodes->loops[i];
    return NULL;
}

peer *peers_owner(peers *p, uint64_t key, int *alone)
{
    const nodes *n = p->nodes;
    uint64_t hashes[NODES_MOST + 1];
    peer *of[NODES_MOST + 1];
    size_t count = 0;
    int owning = nodes_owning(n);
    if (owning) {
        hashes[count] = n->hash;
        of[count++] = NULL;
    }
    for (size_t i = 0; i < p->count && count <= NODES_MOST; i++) {
        if (p->list[i]->heard) {
            hashes[count] = p->list[i]->hash;
            of[count++] = p->list[i];
        }
    }
    *alone = count == 0 && p->count > 0 && nodes_lost(n);
    return count ? of[node_choose(key, hashes, count)] : NULL;
}
