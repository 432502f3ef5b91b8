/* serving.c: see serving.h. */
#include "serving.h"
#include "service/memory.pb-c.h"
#include "service/records.pb-c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

enum { PATIENCE_S = 30 };

typedef struct held {
    struct held *next;
    ProtobufCMessage *reply;
} held;

/* ---------------------------------------------------------------------- the service */

static void *run_service(void *arg)
{
    serving *s = arg;
    sessile_error err;
    if (service_run(s->service, &err))
        fprintf(stderr, "the service: %s\n", err.message);
    return NULL;
}

void serving_start(serving *s, sessile_store *store, const service_settings *settings)
{
    service_settings standard;
    sessile_error err;
    rpc_limits limits;
    memset(s, 0, sizeof *s);
    memset(&standard, 0, sizeof standard);
    if (settings)
        standard = *settings;
    standard.listen.address = "127.0.0.1:0";
    if (!standard.size.workers)
        standard.size.workers = 4;
    if (!standard.ms.drain)
        standard.ms.drain = 10000;
    if (service_open(&s->service, store, &standard, &err))
        fail_msg("%s", err.message);
    assert_int_equal(pthread_create(&s->thread, NULL, run_service, s), 0);
    s->running = 1;
    rpc_limits_init(&limits);
    assert_int_equal(rpc_loop_open(&s->loop, &limits, &allocator_default, NULL), 0);
    assert_int_equal(rpc_channel_open(&s->channel, s->loop, service_address(s->service),
                                      NULL, &limits, NULL),
                     0);
}

void serving_drain(serving *s)
{
    service_stop(s->service);
}

void serving_stop(serving *s)
{
    rpc_channel_close(s->channel);
    rpc_loop_close(s->loop);
    service_stop(s->service);
    pthread_join(s->thread, NULL);
    service_close(s->service);
    for (held *h = s->held; h;) {
        held *next = h->next;
        protobuf_c_message_free_unpacked(h->reply, NULL);
        free(h);
        h = next;
    }
}

/* ---------------------------------------------------------------------- streams */

static const ProtobufCServiceDescriptor *const services[] = {
    &sessile__v1__session_service__descriptor, &sessile__v1__memory_service__descriptor,
    &sessile__v1__record_service__descriptor};

static const ProtobufCMethodDescriptor *method_of(const char *name, const char **service)
{
    for (size_t i = 0; i < sizeof services / sizeof *services; i++) {
        const ProtobufCMethodDescriptor *m =
            protobuf_c_service_descriptor_get_method_by_name(services[i], name);
        *service = services[i]->name;
        if (m)
            return m;
    }
    fail_msg("there is no method %s", name);
    return NULL;
}

const ProtobufCMessageDescriptor *reply_type(const char *method)
{
    const char *service;
    return method_of(method, &service)->output;
}

static void on_message(void *ud, rpc_request *request, const void *data, size_t size)
{
    stream *st = ud;
    void *reply = protobuf_c_message_unpack(reply_type(st->method), NULL, size,
                                            size ? data : (const void *)"");
    assert_non_null(reply);
    st->replies = realloc(st->replies, (st->count + 1) * sizeof *st->replies);
    assert_non_null(st->replies);
    st->replies[st->count++] = reply;
    if (st->count == st->cancel_at)
        rpc_request_cancel(request);
}

static void on_end(void *ud, rpc_request *request, const rpc_result *result)
{
    stream *st = ud;
    const char *status = rpc_request_header(request, "sessile-status");
    st->ended = 1;
    st->code = result->code;
    snprintf(st->message, sizeof st->message, "%s", result->message);
    snprintf(st->status, sizeof st->status, "%s", status ? status : "");
    st->request = NULL;
}

static const rpc_replies replies = {on_message, on_end, NULL};

static void send_message(rpc_request *r, const ProtobufCMessage *m)
{
    size_t size = protobuf_c_message_get_packed_size(m);
    unsigned char *bytes = malloc(size ? size : 1);
    assert_non_null(bytes);
    protobuf_c_message_pack(m, bytes);
    (void)rpc_request_send(r, bytes, size);
    free(bytes);
}

void stream_open(serving *s, stream *st, const char *method, const void *request)
{
    const char *service;
    char path[128];
    size_t n = 0;
    memset(st, 0, sizeof *st);
    st->of = s;
    st->method = method;
    while (s->headers && s->headers[n].name)
        n++;
    (void)method_of(method, &service);
    snprintf(path, sizeof path, "/%s/%s", service, method);
    assert_int_equal(rpc_request_open(&st->request, s->channel, path, s->headers, n,
                                      UINT64_MAX, &replies, st, NULL),
                     SESSILE_OK);
    if (request)
        send_message(st->request, request);
}

void stream_begin(serving *s, stream *st, const char *method, const void *request)
{
    stream_open(s, st, method, request);
    if (strncmp(method, "Run", 3) != 0)
        rpc_request_end(st->request);
}

void stream_send(stream *st, const void *request)
{
    assert_non_null(st->request);
    send_message(st->request, request);
}

int stream_wait(stream *st, size_t count)
{
    time_t until = time(NULL) + PATIENCE_S;
    while (st->count < count && !st->ended) {
        if (time(NULL) > until)
            fail_msg("%s: %zu of %zu replies came in %d s", st->method, st->count, count,
                     PATIENCE_S);
        rpc_loop_turn(st->of->loop, 100);
    }
    return st->count >= count;
}

void stream_wait_end(stream *st)
{
    if (!st->ended)
        (void)stream_wait(st, SIZE_MAX);
}

void stream_done(stream *st)
{
    if (!st->ended) {
        rpc_request_cancel(st->request);
        rpc_loop_turn(st->of->loop, 0); /* so that the server hears of it */
    }
    for (size_t i = 0; i < st->count; i++)
        protobuf_c_message_free_unpacked(st->replies[i], NULL);
    free(st->replies);
    memset(st, 0, sizeof *st);
}

/* ---------------------------------------------------------------------- calls */

void *serve_ok(serving *s, const char *method, const void *request)
{
    stream st;
    held *h = calloc(1, sizeof *h);
    assert_non_null(h);
    stream_begin(s, &st, method, request);
    stream_wait_end(&st);
    if (st.code != RPC_OK || st.count != 1)
        fail_msg("%s: %d %s, %zu replies", method, (int)st.code, st.message, st.count);
    h->reply = st.replies[0];
    h->next = s->held;
    s->held = h;
    st.count = 0;
    stream_done(&st);
    return h->reply;
}

rpc_code serve_fails(serving *s, const char *method, const void *request, char status[32])
{
    stream st;
    stream_begin(s, &st, method, request);
    stream_wait_end(&st);
    rpc_code code = st.code;
    assert_int_not_equal(code, RPC_OK);
    memcpy(status, st.status, 32);
    stream_done(&st);
    return code;
}

Sessile__V1__Session *names_of(const char *id)
{
    static Sessile__V1__Session names[16];
    static int last;
    Sessile__V1__Session *out = &names[last++ % 16];
    sessile__v1__session__init(out);
    out->id = (char *)id;
    return out;
}

sessile_id append_by(serving *s, const char *id, const char *text)
{
    char body[256];
    Sessile__V1__AppendRequest r = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    snprintf(body, sizeof body, "{\"role\":\"user\",\"content\":\"%s\"}", text);
    json.text = body;
    r.session = names_of(id);
    r.message = &json;
    const Sessile__V1__Written *w = serve_ok(s, "AppendMessage", &r);
    return w->entry;
}
