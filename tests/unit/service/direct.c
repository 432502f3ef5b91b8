/* direct.c: see direct.h. */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"

struct direct direct;

/* What is freed when the test ends. */
typedef struct held {
    struct held *next;
    ProtobufCMessage *reply;
    union {
        Sessile__V1__Session session;
        Sessile__V1__Memory memory;
        Sessile__V1__Json json;
        Sessile__V1__Entry entry;
    } made;
} held;

static held *hold(void)
{
    held *h = calloc(1, sizeof *h);
    assert_non_null(h);
    h->next = direct.replies;
    direct.replies = h;
    return h;
}

int direct_open_over(sessile_store *store)
{
    memset(&direct, 0, sizeof direct);
    direct.store = store;
    direct.service.alloc = allocator_default;
    direct.service.store = direct.store;
    direct.rpc.over_after = -1;
    return keep_open(&direct.service.keep, &direct.service, 100, &allocator_default,
                     NULL) ||
           keep_open(&direct.service.memories, &direct.service, 100, &allocator_default,
                     NULL);
}

int direct_open(void **state)
{
    (void)state;
    return direct_open_over(run_store("ram:"));
}

int direct_open_files(void **state)
{
    return make_folder(state) || direct_open_over(run_store(runs_folder));
}

int direct_close_files(void **state)
{
    return direct_close(state) || remove_folder(state);
}

int direct_close(void **state)
{
    (void)state;
    fake_clear(&direct.rpc);
    keep_close(direct.service.keep);
    keep_close(direct.service.memories);
    sessile_store_close(direct.store);
    while (direct.replies) {
        held *h = direct.replies;
        direct.replies = h->next;
        if (h->reply)
            protobuf_c_message_free_unpacked(h->reply, NULL);
        free(h);
    }
    return 0;
}

/* ---------------------------------------------------------------------- calls */

static const ProtobufCServiceDescriptor *const services[] = {
    &sessile__v1__session_service__descriptor, &sessile__v1__memory_service__descriptor};

/* The service that has a method. */
static const ProtobufCServiceDescriptor *service_of(const char *name)
{
    for (size_t i = 0; i < sizeof services / sizeof *services; i++)
        if (protobuf_c_service_descriptor_get_method_by_name(services[i], name))
            return services[i];
    fail_msg("there is no method %s", name);
    return NULL;
}

static const method *method_named(const char *name)
{
    char path[128];
    snprintf(path, sizeof path, "/%s/%s", service_of(name)->name, name);
    const method *m = method_find(path);
    if (!m)
        fail_msg("there is no method %s", path);
    return m;
}

void call_bytes(const char *name, const void *bytes, size_t size)
{
    call c = {
        .server = &direct.service, .rpc = &direct.rpc, .method = method_named(name)};
    fake_clear(&direct.rpc);
    atomic_init(&c.references, 1);
    pthread_mutex_init(&c.mutex, NULL);
    buf_init(&c.request, &direct.service.alloc);
    buf_put(&c.request, bytes, size);
    call_run(&c);
    buf_deinit(&c.request);
    pthread_mutex_destroy(&c.mutex);
    assert_null(c.session);
    assert_null(c.kept);
    assert_int_equal(c.memory_count, 0);
    if (direct.rpc.over_after < 0)
        assert_int_equal(direct.rpc.got.finished, 1);
}

static void call_message(const char *name, const void *request)
{
    size_t size = protobuf_c_message_get_packed_size(request);
    unsigned char *bytes = malloc(size + 1);
    assert_non_null(bytes);
    protobuf_c_message_pack(request, bytes);
    call_bytes(name, bytes, size);
    free(bytes);
}

static const ProtobufCMessageDescriptor *output_of(const char *name)
{
    return protobuf_c_service_descriptor_get_method_by_name(service_of(name), name)
        ->output;
}

void *call_got(const char *name, size_t i)
{
    held *h = hold();
    assert_true(i < direct.rpc.got.count && i < FAKE_SENT);
    h->reply = protobuf_c_message_unpack(
        output_of(name), NULL, direct.rpc.got.sent[i].size, direct.rpc.got.sent[i].data);
    if (!h->reply)
        fail_msg("the reply of %s is no %s", name, output_of(name)->name);
    return h->reply;
}

void *call_ok(const char *name, const void *request)
{
    call_message(name, request);
    if (direct.rpc.got.code != RPC_OK)
        fail_msg("%s: %s: %s", name, fake_trailer(&direct.rpc, "sessile-status"),
                 direct.rpc.got.message);
    return call_got(name, 0);
}

void call_fails(const char *name, const void *request, rpc_code code, const char *status)
{
    call_message(name, request);
    assert_string_equal(fake_trailer(&direct.rpc, "sessile-status"), status);
    assert_int_equal(direct.rpc.got.code, code);
    assert_true(strlen(direct.rpc.got.message) > 0);
    assert_int_equal(direct.rpc.got.count, 0);
}

/* ---------------------------------------------------------------------- requests */

Sessile__V1__Session *asked(const char *id)
{
    Sessile__V1__Session *out = &hold()->made.session;
    sessile__v1__session__init(out);
    out->id = (char *)id;
    return out;
}

Sessile__V1__Memory *memory_named(const char *user)
{
    Sessile__V1__Memory *out = &hold()->made.memory;
    sessile__v1__memory__init(out);
    if (user)
        out->user = (char *)user;
    out->shared = !user;
    return out;
}

Sessile__V1__Json *json_of_text(const char *text)
{
    Sessile__V1__Json *out = &hold()->made.json;
    sessile__v1__json__init(out);
    out->text = (char *)text;
    return out;
}

Sessile__V1__Entry *entry_of(sessile_id id)
{
    Sessile__V1__Entry *out = &hold()->made.entry;
    sessile__v1__entry__init(out);
    out->id = id;
    return out;
}

Sessile__V1__Session *session_with(const char *id, int messages)
{
    sessile_session_options options;
    sessile_session *s;
    char text[100];
    sessile_session_options_init(&options);
    options.id = sessile_text(id);
    assert_int_equal(sessile_create(&s, direct.store, &options, NULL), SESSILE_OK);
    for (int i = 0; i < messages; i++) {
        snprintf(text, sizeof text, "{\"role\":\"%s\",\"content\":\"message %d\"}",
                 i % 2 ? "assistant" : "user", i);
        assert_int_equal(sessile_append(s, sessile_text(text), NULL, NULL), SESSILE_OK);
    }
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
    return asked(id);
}
