/*
 * reflection.c: which services and messages there are, as tools like grpcurl ask.
 *
 * The answers are the descriptors that the program was built with (descriptors.h, which
 * the build makes): a FileDescriptorSet of protoc, in whose bytes files and symbols are
 * found.
 *
 * It is a stream both ways. A worker judges the credential and answers the first request;
 * from then on the call is the loop's, which answers at once. Requests that came before
 * are kept until then. A client that keeps asking and reads nothing is refused once 1 MiB
 * waits for it.
 */
#include "service/nodes.h"

#include <string.h>

#include "service/reflection.pb-c.h"
#include "service/wire.h"

#define ASKS(what) GRPC__REFLECTION__V1__SERVER_REFLECTION_REQUEST__MESSAGE_REQUEST_##what
#define ANSWERS(what) \
    GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__MESSAGE_RESPONSE_##what

typedef Grpc__Reflection__V1__ServerReflectionRequest reflection_request;
typedef Grpc__Reflection__V1__ServerReflectionResponse reflection_response;

static const unsigned char descriptors[] = {
#include "service/descriptors.h"
};

/* ---------------------------------------------------------------------- descriptors */

/* Numbers of fields of google/protobuf/descriptor.proto. */
enum { SET_FILE = 1, NAME = 1, FILE_PACKAGE = 2 };

typedef enum scope { IN_FILE, IN_MESSAGE, IN_ENUM, IN_SERVICE, IN_NOTHING } scope;

/* The fields of descriptors that have a name, and what their own parts are. */
static const struct {
    scope in;
    uint32_t field;
    scope is;
} parts[] = {
    {IN_FILE, 4, IN_MESSAGE},    {IN_FILE, 5, IN_ENUM},       {IN_FILE, 6, IN_SERVICE},
    {IN_FILE, 7, IN_NOTHING},    {IN_MESSAGE, 2, IN_NOTHING}, {IN_MESSAGE, 3, IN_MESSAGE},
    {IN_MESSAGE, 4, IN_ENUM},    {IN_MESSAGE, 6, IN_NOTHING}, {IN_MESSAGE, 8, IN_NOTHING},
    {IN_SERVICE, 2, IN_NOTHING}, {IN_ENUM, 2, IN_NOTHING},
};
enum { PARTS = sizeof parts / sizeof *parts };

static size_t size_of(reader r)
{
    return (size_t)(r.end - r.at);
}

static int is_text(reader r, const char *text)
{
    return size_of(r) == strlen(text) && memcmp(r.at, text, size_of(r)) == 0;
}

/* What follows the name and a dot; "": it is the name; NULL: it begins otherwise. */
static const char *behind(reader name, const char *text)
{
    if (!name.at || strncmp((const char *)name.at, text, size_of(name)) != 0)
        return NULL;
    text += size_of(name);
    return *text == '.' && text[1] ? text + 1 : *text ? NULL : text;
}

/* 1: a descriptor has a part of that name. The names of an enum's values stand beside the
 * enum. */
static int has_symbol(reader descriptor, scope in, const char *symbol)
{
    field f;
    while (descriptor.at < descriptor.end && read_field(&descriptor, &f)) {
        size_t i = 0;
        while (i < PARTS && (parts[i].in != in || parts[i].field != f.id))
            i++;
        if (i == PARTS)
            continue;
        const char *rest = behind(find_field(f.bytes, NAME), symbol);
        if (rest && (!*rest || has_symbol(f.bytes, parts[i].is, rest)))
            return 1;
        if (parts[i].is == IN_ENUM && has_symbol(f.bytes, IN_ENUM, symbol))
            return 1;
    }
    return 0;
}

/* The FileDescriptorProto of a name, or with a symbol in it; nothing: there is none. */
static reader find_file(const char *name, const char *symbol)
{
    reader set = reader_of(descriptors, sizeof descriptors);
    field f;
    while (set.at < set.end && read_field(&set, &f)) {
        if (f.id != SET_FILE)
            continue;
        if (name && is_text(find_field(f.bytes, NAME), name))
            return f.bytes;
        const char *rest =
            symbol ? behind(find_field(f.bytes, FILE_PACKAGE), symbol) : NULL;
        if (rest && *rest && has_symbol(f.bytes, IN_FILE, rest))
            return f.bytes;
    }
    return (reader){NULL, NULL};
}

/* ---------------------------------------------------------------------- answers */

static sessile_status send_error(call *c, reflection_response out, rpc_code code,
                                 const char *why, sessile_error *err)
{
    Grpc__Reflection__V1__ErrorResponse error =
        GRPC__REFLECTION__V1__ERROR_RESPONSE__INIT;
    error.error_code = (int32_t)code;
    error.error_message = (char *)why;
    out.message_response_case = ANSWERS(ERROR_RESPONSE);
    out.error_response = &error;
    return call_send(c, &out.base, err);
}

/* One file: what it imports is asked for by its name. */
static sessile_status send_file(call *c, reflection_response out, reader file,
                                sessile_error *err)
{
    Grpc__Reflection__V1__FileDescriptorResponse all =
        GRPC__REFLECTION__V1__FILE_DESCRIPTOR_RESPONSE__INIT;
    ProtobufCBinaryData one = {size_of(file), (unsigned char *)file.at};
    if (!file.at)
        return send_error(c, out, RPC_NOT_FOUND, "there is no such file or symbol", err);
    all.n_file_descriptor_proto = 1;
    all.file_descriptor_proto = &one;
    out.message_response_case = ANSWERS(FILE_DESCRIPTOR_RESPONSE);
    out.file_descriptor_response = &all;
    return call_send(c, &out.base, err);
}

static sessile_status send_services(call *c, reflection_response out, sessile_error *err)
{
    enum { MOST = 8 };
    Grpc__Reflection__V1__ListServiceResponse all =
        GRPC__REFLECTION__V1__LIST_SERVICE_RESPONSE__INIT;
    Grpc__Reflection__V1__ServiceResponse rows[MOST], *list[MOST];
    const char *name;
    while (all.n_service < MOST &&
           (name = method_service(c->server, all.n_service)) != NULL) {
        Grpc__Reflection__V1__ServiceResponse *row = &rows[all.n_service];
        grpc__reflection__v1__service_response__init(row);
        row->name = (char *)name;
        list[all.n_service++] = row;
    }
    all.service = list;
    out.message_response_case = ANSWERS(LIST_SERVICES_RESPONSE);
    out.list_services_response = &all;
    return call_send(c, &out.base, err);
}

static sessile_status answer(call *c, const reflection_request *asked, sessile_error *err)
{
    reflection_response out = GRPC__REFLECTION__V1__SERVER_REFLECTION_RESPONSE__INIT;
    if (call_is_full(c))
        return fail(err, SESSILE_LIMIT, "read the answers before you ask for more");
    out.valid_host = asked->host;
    out.original_request = (reflection_request *)asked;
    switch (asked->message_request_case) {
    case ASKS(FILE_BY_FILENAME):
        return send_file(c, out, find_file(asked->file_by_filename, NULL), err);
    case ASKS(FILE_CONTAINING_SYMBOL):
        return send_file(c, out, find_file(NULL, asked->file_containing_symbol), err);
    case ASKS(LIST_SERVICES):
        return send_services(c, out, err);
    case ASKS(FILE_CONTAINING_EXTENSION):
    case ASKS(ALL_EXTENSION_NUMBERS_OF_TYPE):
        return send_error(c, out, RPC_NOT_FOUND, "there are no extensions", err);
    default:
        return send_error(c, out, RPC_INVALID_ARGUMENT,
                          "the request asks for nothing that is known here", err);
    }
}

/* ---------------------------------------------------------------------- on the loop */

/* The call ends on the loop too: its view is closed, so nothing blocks. c may be gone. */
static void leave(call *c, sessile_status status, const sessile_error *err)
{
    c->own = NULL;
    call_leave(c, status, err);
}

static int has_left(const call *c)
{
    return c->own == NULL;
}

static void answer_bytes(call *c, const void *data, size_t size)
{
    ProtobufCMessage *request;
    sessile_error err;
    arena memory;
    error_clear(&err);
    arena_init(&memory, &c->server->alloc);
    sessile_status status =
        size > REQUEST_ON_LOOP
            ? fail(&err, SESSILE_LIMIT, "a request has at most %d bytes", REQUEST_ON_LOOP)
            : decode_request(c->method->input, data, size, &memory, &request, &err);
    if (!status)
        status = answer(c, (const reflection_request *)request, &err);
    arena_free(&memory);
    if (status)
        leave(c, status, &err);
}

/* What came before the call was the loop's: each with its size before it. */
static void answer_early(call *c)
{
    buf early = c->early;
    buf_init(&c->early, &c->server->alloc);
    for (size_t at = 0, size; at < early.size && !has_left(c); at += size) {
        memcpy(&size, early.data + at, sizeof size);
        at += sizeof size;
        answer_bytes(c, early.data + at, size);
    }
    buf_deinit(&early);
}

static void on_message(call *c, const void *data, size_t size)
{
    if (has_left(c))
        return;
    answer_early(c);
    if (!has_left(c))
        answer_bytes(c, data, size);
}

static void on_ended(call *c)
{
    sessile_error none;
    if (has_left(c))
        return;
    answer_early(c);
    error_clear(&none);
    if (!has_left(c))
        leave(c, SESSILE_OK, &none);
}

static void on_gone(call *c)
{
    sessile_error err;
    fail(&err, SESSILE_CANCELLED, "the client has gone");
    if (!has_left(c))
        leave(c, err.code, &err);
}

static const call_stream reflection_stream = {on_message, on_ended, NULL, on_gone, NULL};

/* The worker has judged the credential, and returns. */
static void take_over(void *arg)
{
    call *c = arg;
    if (rpc_call_over(c->rpc)) {
        on_gone(c);
    } else if (!has_left(c)) {
        answer_early(c);
        if (!has_left(c) && atomic_load(&c->half))
            on_ended(c);
        else if (!has_left(c) && health_end_with(c))
            on_gone(c);
    }
    call_release(c);
}

/* ---------------------------------------------------------------------- the worker */

static sessile_status reflect(call *c, const void *request, sessile_error *err)
{
    static char there;
    sessile_status status = answer(c, request, err);
    if (status)
        return status;
    if (c->view != c->server->store)
        sessile_store_close(c->view);
    c->view = c->server->store;
    atomic_fetch_add(&c->references, 1);
    call_stay(c, &reflection_stream, &there);
    if (rpc_loop_post(rpc_call_loop(c->rpc), take_over, c) != 0) {
        sessile_error failed;
        (void)fail_nomem(&failed);
        call_fail(c, &failed); /* and `gone` ends it */
        call_release(c);
    }
    return SESSILE_OK;
}

#define REFLECTION                                                       \
    {                                                                    \
        "ServerReflectionInfo", reflect,                                 \
            METHOD_READS | METHOD_STREAMS | METHOD_DUPLEX | METHOD_ALL | \
                METHOD_REFLECTS,                                         \
            &grpc__reflection__v1__server_reflection_request__descriptor \
    }
const method methods_reflection[] = {REFLECTION, {NULL, NULL, 0, NULL}};
