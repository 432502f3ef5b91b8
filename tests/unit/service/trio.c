/* trio.c: see trio.h. */
#include "unit/service/trio.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/os.h"
#include "sessile_access.h"
#include "support/check.h"
#include "support/postgres.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

static uint64_t now_us(void)
{
    return os_current->clock_us(os_current->ud);
}

/* ---------------------------------------------------------------------- the nodes */

static sessile_store *open_store(const char *url)
{
    sessile_store_options o;
    sessile_store *store;
    sessile_error err;
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_SECRET;
    o.key = "a passphrase of some length";
    must(sessile_open(&store, url, &o, &err), &err);
    return store;
}

static void guard(sessile_store *store)
{
    sessile_guard_options o;
    sessile_error err;
    sessile_guard_options_init(&o);
    o.limits.on = 0;
    must(sessile_store_guard(store, &o, &err), &err);
}

static char *make_key(sessile_store *store)
{
    static const char *const roles[] = {"editor"};
    sessile_access_key_options o;
    sessile_error err;
    char *key;
    sessile_access_key_options_init(&o);
    o.user = sessile_text("ann");
    o.roles = roles;
    o.role_count = 1;
    must(sessile_access_key(store, &o, &key, &err), &err);
    return key;
}

static void *run(void *arg)
{
    trio_node *n = arg;
    sessile_error err;
    if (service_run(n->service, &err))
        print_message("# service_run: %s\n", err.message);
    return NULL;
}

void trio_start(trio *t, int i, const service_settings *more, int guarded)
{
    trio_node *n = &t->nodes[i];
    service_settings settings = {.listen = {NULL}};
    sessile_error err;
    char name[8];
    if (more)
        settings = *more;
    snprintf(name, sizeof name, "node%d", i);
    settings.listen.address = "127.0.0.1:0";
    settings.size.workers = 4;
    settings.nodes.name = name;
    settings.guarded = guarded;
    settings.ms.drain = settings.ms.drain ? settings.ms.drain : 5000;
    if (!n->store) {
        n->store = open_store(t->place);
        if (guarded)
            guard(n->store);
    }
    must(service_open(&n->service, n->store, &settings, &err), &err);
    assert_int_equal(pthread_create(&n->thread, NULL, run, n), 0);
    n->running = 1;
    must(rpc_channel_open(&n->channel, t->loop, service_address(n->service), t->tls, NULL,
                          &err),
         &err);
}

static void open_all(trio *t, const char *url, const char *authority,
                     const service_settings *more, int guarded)
{
    const char *why;
    sessile_error err;
    memset(t, 0, sizeof *t);
    if (!url) {
        const postgres_server *server = postgres_shared(&why);
        if (!server) {
            print_message("# %s\n", why);
            skip();
        }
        url = server->url;
    }
    t->place = postgres_place(url);
    if (authority) {
        rpc_tls_files files = {.ca = authority, .name = "127.0.0.1"};
        must(rpc_tls_open(&t->tls, 0, &files, &allocator_default, &err), &err);
    }
    must(rpc_loop_open(&t->loop, NULL, &allocator_default, &err), &err);
    if (guarded) { /* before the others look */
        t->nodes[0].store = open_store(t->place);
        guard(t->nodes[0].store);
        t->key = make_key(t->nodes[0].store);
    }
    for (int i = 0; i < TRIO; i++)
        trio_start(t, i, more, guarded);
}

void trio_open(trio *t, const char *url, const service_settings *more, int guarded)
{
    open_all(t, url, NULL, more, guarded);
}

void trio_open_trusting(trio *t, const char *authority, const service_settings *more)
{
    open_all(t, NULL, authority, more, 0);
}

void trio_stop(trio *t, int i)
{
    trio_node *n = &t->nodes[i];
    if (!n->running)
        return;
    service_stop(n->service);
    /* its client goes when it is told to, which takes somebody who reads */
    for (int turns = 0; turns < 20; turns++)
        trio_turn(t, 50);
    service_stop(n->service);
    pthread_join(n->thread, NULL);
    n->running = 0;
}

void trio_close(trio *t)
{
    for (int i = 0; i < TRIO; i++) {
        trio_node *n = &t->nodes[i];
        if (n->running) {
            service_stop(n->service);
            service_stop(n->service);
            pthread_join(n->thread, NULL);
        }
        rpc_channel_close(n->channel);
        service_close(n->service);
        sessile_store_close(n->store);
    }
    rpc_loop_close(t->loop);
    if (t->tls)
        rpc_tls_drop(t->tls);
    sessile_free(t->key);
    postgres_drop(t->place);
}

void trio_deafen(trio *t, int i)
{
    service *s = t->nodes[i].service;
    for (int k = 0; k < s->settings.loops; k++)
        rpc_loop_stop(s->loops[k]);
}

const char *trio_address(const trio *t, int i)
{
    return service_address(t->nodes[i].service);
}

nodes_figures trio_figures(const trio *t, int i)
{
    return nodes_look(t->nodes[i].service->nodes);
}

/* ---------------------------------------------------------------------- calls */

static void message(void *ud, rpc_request *request, const void *data, size_t size)
{
    reply *r = ud;
    (void)request;
    if (r->messages++ == 0) {
        r->first = malloc(size + 1);
        memcpy(r->first, data, size);
        r->first_size = size;
    }
    r->bytes += size;
    uint64_t parts[2] = {r->hash, hash64(size ? data : "", size)};
    r->hash = hash64(parts, sizeof parts);
    if (r->pause_ms)
        os_current->sleep_ms(os_current->ud, r->pause_ms);
}

static void copy_trailer(rpc_request *request, const char *name, char *out, size_t room)
{
    const char *value = rpc_request_header(request, name);
    snprintf(out, room, "%s", value ? value : "");
}

static void ended(void *ud, rpc_request *request, const rpc_result *result)
{
    reply *r = ud;
    r->ended++;
    r->code = result->code;
    r->told = result->told;
    r->unbegun = result->unbegun;
    snprintf(r->message, sizeof r->message, "%s", result->message);
    copy_trailer(request, "sessile-owner", r->owner, sizeof r->owner);
    copy_trailer(request, "sessile-status", r->status, sizeof r->status);
}

static rpc_request *begin(trio *t, int node, const char *method,
                          const ProtobufCMessage *request, const char *key,
                          int timeout_ms, reply *out)
{
    static const rpc_replies replies = {message, ended, NULL};
    char path[128], bearer[300];
    rpc_header headers[2];
    size_t count = 0;
    unsigned char *bytes = malloc(protobuf_c_message_get_packed_size(request) + 1);
    size_t size = protobuf_c_message_pack(request, bytes);
    rpc_request *made;
    sessile_error err;
    uint64_t until = timeout_ms ? now_us() + (uint64_t)timeout_ms * 1000 : UINT64_MAX;
    snprintf(bearer, sizeof bearer, "Bearer %s", key ? key : "");
    snprintf(path, sizeof path, *method == '/' ? "%s" : "/sessile.v1.SessionService/%s",
             method);
    if (key && *key)
        headers[count++] = (rpc_header){"authorization", bearer};
    if (t->traceparent)
        headers[count++] = (rpc_header){"traceparent", t->traceparent};
    must(rpc_request_open(&made, t->nodes[node].channel, path, headers, count, until,
                          &replies, out, &err),
         &err);
    (void)rpc_request_send(made, bytes, size);
    rpc_request_end(made);
    free(bytes);
    return made;
}

rpc_request *trio_begin(trio *t, int node, const char *method,
                        const ProtobufCMessage *request, reply *out)
{
    return begin(t, node, method, request, t->key, 0, out);
}

void trio_turn(trio *t, int ms)
{
    uint64_t until = now_us() + (uint64_t)ms * 1000;
    while (now_us() < until)
        rpc_loop_turn(t->loop, 10);
}

void trio_call_as(trio *t, int node, const char *method, const ProtobufCMessage *request,
                  const char *key, int timeout_ms, reply *out)
{
    uint64_t until = now_us() + 60000000;
    int pause_ms = out->pause_ms;
    memset(out, 0, sizeof *out);
    out->pause_ms = pause_ms;
    (void)begin(t, node, method, request, key, timeout_ms, out);
    while (!out->ended && now_us() < until)
        rpc_loop_turn(t->loop, 50);
    if (!out->ended)
        fail_msg("%s at node %d does not end", method, node);
}

void trio_call(trio *t, int node, const char *method, const ProtobufCMessage *request,
               int timeout_ms, reply *out)
{
    trio_call_as(t, node, method, request, t->key, timeout_ms, out);
}

void reply_free(reply *r)
{
    free(r->first);
    r->first = NULL;
}

/* ---------------------------------------------------------------------- sessions */

static int by_address(const trio *t, const char *address)
{
    for (int i = 0; i < TRIO; i++)
        if (strcmp(trio_address(t, i), address) == 0)
            return i;
    fail_msg("%s is nobody's address", address);
    return -1;
}

int trio_owner(trio *t, int i, const char *id)
{
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__SessionRequest request = SESSILE__V1__SESSION_REQUEST__INIT;
    reply r = {0};
    names.id = (char *)id;
    request.session = &names;
    trio_call(t, i, "ResumeSession", &request.base, 0, &r);
    if (r.code != RPC_OK)
        fail_msg("node %d, %s: %d %s", i, id, r.code, r.message);
    reply_free(&r);
    return *r.owner ? by_address(t, r.owner) : i;
}

void trio_make(trio *t, int i, const char *id)
{
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__CreateRequest request = SESSILE__V1__CREATE_REQUEST__INIT;
    reply r = {0};
    names.id = (char *)id;
    request.session = &names;
    request.open = 1;
    trio_call(t, i, "CreateSession", &request.base, 0, &r);
    if (r.code != RPC_OK)
        fail_msg("%s is not made: %d %s", id, r.code, r.message);
    reply_free(&r);
}

int trio_settled(trio *t, const char *id, int without)
{
    int owners[TRIO], first = without == 0;
    trio_make(t, first, id);
    for (uint64_t until = now_us() + 30000000; now_us() < until;) {
        int same = 1;
        for (int i = 0; i < TRIO; i++)
            if (i != without)
                owners[i] = trio_owner(t, i, id);
        for (int i = 0; i < TRIO; i++)
            if (i != without)
                same &= owners[i] == owners[first] && owners[i] != without;
        if (same)
            return owners[first];
        trio_turn(t, 20);
    }
    fail_msg("the nodes do not agree who owns %s", id);
    return -1;
}

void trio_session_of(trio *t, int i, char *id)
{
    for (int n = 0; n < 100; n++) {
        snprintf(id, 32, "session-%d", n);
        if (trio_settled(t, id, -1) == i)
            return;
    }
    fail_msg("node %d owns nothing", i);
}

rpc_code trio_append(trio *t, int i, const char *id, const char *text, reply *out)
{
    Sessile__V1__Session names = SESSILE__V1__SESSION__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    Sessile__V1__AppendRequest request = SESSILE__V1__APPEND_REQUEST__INIT;
    size_t size = strlen(text) + 64;
    char *all = malloc(size);
    snprintf(all, size, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    names.id = (char *)id;
    json.text = all;
    request.session = &names;
    request.message = &json;
    trio_call(t, i, "AppendMessage", &request.base, 0, out);
    free(all);
    reply_free(out);
    return out->code;
}
