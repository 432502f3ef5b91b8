/* test_requests.c: what is no request of a method is refused before anything is done. */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"

static void refused(const char *method, const void *bytes, size_t size, rpc_code code,
                    const char *status)
{
    call_bytes(method, bytes, size);
    assert_string_equal(fake_trailer(&direct.rpc, "sessile-status"), status);
    assert_int_equal(direct.rpc.got.code, code);
    assert_int_equal(direct.rpc.got.count, 0);
    assert_true(strlen(direct.rpc.got.message) > 0);
}

/* For each method, a request whose session has an id of these bytes. */
static void id_refused_everywhere(const char *id, size_t size)
{
    const method *m;
    unsigned char bytes[64];
    assert_true(size < 60);
    bytes[0] = 0x0a; /* field 1, the session */
    bytes[1] = (unsigned char)(size + 2);
    bytes[2] = 0x1a; /* field 3, its id */
    bytes[3] = (unsigned char)size;
    memcpy(bytes + 4, id, size);
    for (size_t i = 0; (m = method_at(i)); i++)
        refused(m->name, bytes, size + 4, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_a_nul_in_a_string_is_refused(void **state)
{
    (void)state;
    session_with("s", 1);
    id_refused_everywhere("s\0x", 3);
}

static void test_a_string_that_is_not_utf_8_is_refused(void **state)
{
    (void)state;
    session_with("s", 1);
    id_refused_everywhere("s\xff", 2);
    id_refused_everywhere("\xed\xa0\x80", 3);
}

static void test_names_that_are_no_text_are_raw(void **state)
{
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__SessionRequest again = SESSILE__V1__SESSION_REQUEST__INIT;
    Sessile__V1__Raw raw = SESSILE__V1__RAW__INIT;
    Sessile__V1__Session session = SESSILE__V1__SESSION__INIT;
    (void)state;
    raw.id = (ProtobufCBinaryData){2, (uint8_t *)"x\xff"};
    session.raw = &raw;
    r.session = again.session = &session;
    Sessile__V1__SessionInfo *info = call_ok("CreateSession", &r);
    assert_string_equal(info->session->id, "");
    assert_int_equal(info->session->raw->id.len, 2);
    assert_memory_equal(info->session->raw->id.data, "x\xff", 2);
    call_ok("ResumeSession", &again);
}

static void test_truncated_bytes_are_refused(void **state)
{
    Sessile__V1__LabelRequest r = SESSILE__V1__LABEL_REQUEST__INIT;
    unsigned char bytes[100];
    (void)state;
    r.session = session_with("s", 1);
    r.name = "label";
    r.entry = 1;
    size_t size = sessile__v1__label_request__pack(&r, bytes), whole = 0;
    for (size_t n = 1; n < size; n++) {
        call_bytes("SetLabel", bytes, n);
        /* A cut between two fields is a shorter request. */
        if (strcmp(fake_trailer(&direct.rpc, "sessile-status"), "EINVALID") != 0)
            whole++;
    }
    assert_true(whole <= 1);
    refused("SetLabel", bytes, size - 1, RPC_INVALID_ARGUMENT, "EINVALID");
    refused("SetLabel", bytes, 1, RPC_INVALID_ARGUMENT, "EINVALID");
    call_bytes("SetLabel", bytes, size);
    assert_int_equal(direct.rpc.got.code, RPC_OK);
}

static void test_an_empty_request_names_no_session(void **state)
{
    const method *m;
    (void)state;
    for (size_t i = 0; (m = method_at(i)); i++) {
        if (m->flags & METHOD_ALL || strcmp(m->name, "CreateSession") == 0)
            continue;
        refused(m->name, "", 0, RPC_INVALID_ARGUMENT, "EINVALID");
    }
}

/* Fields of 2 bytes: an empty message each. */
static void parts(buf *out, unsigned char tag, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        buf_putc(out, (char)tag);
        buf_putc(out, 0);
    }
}

static void test_the_parts_of_a_request_are_counted(void **state)
{
    buf request;
    (void)state;
    session_with("s", 1);
    buf_init(&request, &allocator_default);
    parts(&request, 0x12, 100001); /* TurnRequest.messages */
    refused("Turn", request.data, request.size, RPC_RESOURCE_EXHAUSTED, "ELIMIT");
    buf_clear(&request);
    parts(&request, 0x12, 100000);
    refused("Turn", request.data, request.size, RPC_INVALID_ARGUMENT, "EINVALID");
    /* What is not known is counted too, and otherwise left alone. */
    buf_clear(&request);
    parts(&request, 0x7a, 100001); /* field 15 */
    refused("Search", request.data, request.size, RPC_RESOURCE_EXHAUSTED, "ELIMIT");
    buf_deinit(&request);
}

static void test_a_request_of_groups_is_refused(void **state)
{
    static const unsigned char group[] = {0x7b, 0x7c};
    (void)state;
    refused("ListSessions", group, sizeof group, RPC_INVALID_ARGUMENT, "EINVALID");
}

/* A message whose field 1 is such a message: the requests themselves never nest so. */
static void test_a_deep_request_is_refused(void **state)
{
    static const ProtobufCFieldDescriptor self[1];
    static const unsigned indices[1] = {0};
    static const ProtobufCIntRange ranges[2] = {{1, 0}, {0, 1}};
    ProtobufCMessageDescriptor deep = sessile__v1__empty__descriptor;
    ProtobufCFieldDescriptor field = self[0];
    unsigned char bytes[64];
    size_t at = sizeof bytes;
    ProtobufCMessage *out;
    sessile_error err;
    arena memory;
    int depth = 0;
    (void)state;
    field.name = "self";
    field.id = 1;
    field.label = PROTOBUF_C_LABEL_OPTIONAL;
    field.type = PROTOBUF_C_TYPE_MESSAGE;
    field.descriptor = &deep;
    deep.n_fields = 1;
    deep.fields = &field;
    deep.fields_sorted_by_name = indices;
    deep.n_field_ranges = 1;
    deep.field_ranges = ranges;
    for (; depth < 17; depth++) {
        unsigned char size = (unsigned char)(sizeof bytes - at);
        bytes[--at] = size;
        bytes[--at] = 0x0a;
    }
    arena_init(&memory, &allocator_default);
    assert_int_equal(
        decode_request(&deep, bytes + at, sizeof bytes - at, &memory, &out, &err),
        SESSILE_LIMIT);
    arena_free(&memory);
}

static void test_a_call_that_nobody_waits_for_is_not_begun(void **state)
{
    Sessile__V1__TitleRequest r = SESSILE__V1__TITLE_REQUEST__INIT;
    Sessile__V1__SessionRequest get = SESSILE__V1__SESSION_REQUEST__INIT;
    unsigned char bytes[64];
    (void)state;
    r.session = get.session = session_with("s", 1);
    r.title = "never";
    size_t size = sessile__v1__title_request__pack(&r, bytes);
    direct.rpc.over_after = 0;
    call_bytes("SetTitle", bytes, size);
    direct.rpc.over_after = -1;
    Sessile__V1__SessionInfo *info = call_ok("ResumeSession", &get);
    assert_string_equal(info->title, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIRECT(test_a_nul_in_a_string_is_refused),
        DIRECT(test_a_string_that_is_not_utf_8_is_refused),
        DIRECT(test_names_that_are_no_text_are_raw),
        DIRECT(test_truncated_bytes_are_refused),
        DIRECT(test_an_empty_request_names_no_session),
        DIRECT(test_the_parts_of_a_request_are_counted),
        DIRECT(test_a_request_of_groups_is_refused),
        DIRECT(test_a_deep_request_is_refused),
        DIRECT(test_a_call_that_nobody_waits_for_is_not_begun),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
