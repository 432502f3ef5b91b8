/*
 * poke.c: a node that wrote to a session which another node owns tells that one.
 *
 * Streams of events are at the owner of their session, which is woken by its own calls. A
 * call that ran elsewhere (JSON, the first one of a credential, an owner that is not
 * heard) would be seen by the owner's next look, a second later. So is that of a client
 * which showed only a certificate: the owner could not judge it, and is not told.
 *
 * It is a hint: it carries nothing but the session's name, grants nothing, and may be
 * lost. The owner judges the credential of the call that wrote. One poke of a session is
 * on its way from each loop; what is written meanwhile makes one more, however much it
 * is.
 */
#include "service/nodes.h"

#include <string.h>

#include "base/os.h"

enum { POKE_MS = 1000, POKES_MOST = 256 };

struct poke {
    poke *next, **at; /* of those on their way */
    service *server;
    rpc_loop *loop;
    peer *to;
    rpc_request *request;
    uint64_t key; /* of the session */
    int again;    /* there is more to tell by now */
    int opening, ended;
    size_t size, name_size; /* of this block; of the packed name, which is behind it */
    const char *authorization, *device; /* behind that; NULL: none */
};

static void poke_free(poke *k)
{
    wipe(k + 1, k->size - sizeof *k); /* it has a credential */
    mem_free(&k->server->alloc, k, k->size);
}

/* ---------------------------------------------------------------------- on the loop */

static void set_out(peers *p, poke *k, peer *to)
{
    k->to = to;
    k->next = p->pokes;
    k->at = &p->pokes;
    if (k->next)
        k->next->at = &k->next;
    p->pokes = k;
    p->poke_count++;
}

static void come_back(poke *k)
{
    k->to->peers->poke_count--;
    *k->at = k->next;
    if (k->next)
        k->next->at = k->at;
}

static void tell_owner(void *arg);

static void ended(void *ud, rpc_request *request, const rpc_result *result)
{
    poke *k = ud;
    (void)request;
    if (k->opening) {
        k->ended = 1;
        return;
    }
    come_back(k);
    if (k->again && result->code == RPC_OK) {
        k->again = 0;
        tell_owner(k);
    } else {
        poke_free(k);
    }
}

/* 1: it is on its way. */
static int begin(poke *k)
{
    static const rpc_replies replies = {NULL, ended, NULL};
    rpc_header headers[2];
    size_t n = 0;
    uint64_t until = os_now_us() + (uint64_t)POKE_MS * 1000;
    if (k->authorization)
        headers[n++] = (rpc_header){"authorization", k->authorization};
    if (k->device)
        headers[n++] = (rpc_header){"sessile-device", k->device};
    k->opening = 1;
    k->ended = 0;
    if (rpc_request_open(&k->request, k->to->channel, "/sessile.v1.NodeService/Poke",
                         headers, n, until, &replies, k, NULL))
        return 0;
    int sent = rpc_request_send(k->request, k + 1, k->name_size) == 0;
    if (!k->ended && sent)
        rpc_request_end(k->request);
    else if (!k->ended)
        rpc_request_cancel(k->request);
    k->opening = 0;
    return sent && !k->ended;
}

/* 1: one is on its way already, and another one follows it. */
static int joins(const peers *p, const poke *k, const peer *to)
{
    for (poke *one = p->pokes; one; one = one->next)
        if (one->key == k->key && one->to == to) {
            one->again = 1;
            return 1;
        }
    return 0;
}

static void tell_owner(void *arg)
{
    poke *k = arg;
    peers *p = peers_of(k->server, k->loop);
    int alone;
    peer *owner = p ? peers_owner(p, k->key, &alone) : NULL;
    if (!owner || p->poke_count >= POKES_MOST || joins(p, k, owner)) {
        poke_free(k);
        return;
    }
    set_out(p, k, owner);
    if (!begin(k)) {
        come_back(k);
        poke_free(k);
    }
}

void poke_lose(peer *one)
{
    poke *next;
    for (poke *k = one->peers->pokes; k; k = next) {
        next = k->next;
        if (k->to == one) {
            k->again = 0;
            rpc_request_cancel(k->request); /* ends it */
        }
    }
}

/* ---------------------------------------------------------------------- on a worker */

static size_t room_for(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static const char *put_text(char **at, const char *text)
{
    char *out = *at;
    if (!text)
        return NULL;
    *at += strlen(text) + 1;
    return strcpy(out, text);
}

void poke_owner(call *c)
{
    nodes *n = c->server->nodes;
    const sessile_session *s = kept_session(c->kept);
    const char *authorization = rpc_call_header(c->rpc, "authorization");
    const char *device = rpc_call_header(c->rpc, "sessile-device");
    if (!n || !n->link || !n->settings.affinity ||
        (c->server->settings.guarded && !authorization))
        return;
    Sessile__V1__Session *names = call_session_names(
        c, sessile_session_agent(s), sessile_session_user(s), sessile_session_id(s));
    if (!names)
        return;
    size_t name_size = protobuf_c_message_get_packed_size(&names->base);
    size_t size = sizeof(poke) + name_size + room_for(authorization) + room_for(device);
    poke *k = mem_zalloc(&c->server->alloc, size);
    if (!k)
        return;
    k->server = c->server;
    k->loop = rpc_call_loop(c->rpc);
    k->size = size;
    k->name_size = name_size;
    k->key = node_key(sessile_session_agent(s), node_user(sessile_session_user(s)),
                      sessile_session_id(s));
    protobuf_c_message_pack(&names->base, (uint8_t *)(k + 1));
    char *at = (char *)(k + 1) + name_size;
    k->authorization = put_text(&at, authorization);
    k->device = put_text(&at, device);
    if (rpc_loop_post(k->loop, tell_owner, k) != 0)
        poke_free(k);
}
