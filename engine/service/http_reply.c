/*
 * http_reply.c: replies as JSON, errors, and events.
 *
 * Codes and HTTP statuses are those of Connect (connectrpc.com/docs/protocol), whose
 * unary form this is. A method whose reply is a stream answers one object: its pieces are
 * joined. Pieces that are lists become one list, since protobuf joins messages that stand
 * one behind the other; rows become an array under the name of their type.
 *
 * An event is `data:` with the SessionEvent as JSON, and `id:` with the entry that was
 * seen last, so that a browser that connects again goes on behind it.
 */
#include "service/http.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "codec/json.h"
#include "service/json.h"

#define REPLY_MOST ((size_t)64 << 20)

/* ---------------------------------------------------------------------- errors */

static const struct {
    const char *name;
    int http;
} codes[] = {
    [RPC_OK] = {"ok", 200},
    [RPC_CANCELLED] = {"canceled", 499},
    [RPC_UNKNOWN] = {"unknown", 500},
    [RPC_INVALID_ARGUMENT] = {"invalid_argument", 400},
    [RPC_DEADLINE_EXCEEDED] = {"deadline_exceeded", 504},
    [RPC_NOT_FOUND] = {"not_found", 404},
    [RPC_ALREADY_EXISTS] = {"already_exists", 409},
    [RPC_PERMISSION_DENIED] = {"permission_denied", 403},
    [RPC_RESOURCE_EXHAUSTED] = {"resource_exhausted", 429},
    [RPC_FAILED_PRECONDITION] = {"failed_precondition", 400},
    [RPC_ABORTED] = {"aborted", 409},
    [RPC_OUT_OF_RANGE] = {"out_of_range", 400},
    [RPC_UNIMPLEMENTED] = {"unimplemented", 501},
    [RPC_INTERNAL] = {"internal", 500},
    [RPC_UNAVAILABLE] = {"unavailable", 503},
    [RPC_DATA_LOSS] = {"data_loss", 500},
    [RPC_UNAUTHENTICATED] = {"unauthenticated", 401},
};

static void put_error(buf *out, const char *code, const sessile_error *err)
{
    buf_puts(out, "{\"code\":\"");
    buf_puts(out, code);
    buf_puts(out, "\",\"message\":");
    json_put_cstring(out, err->message);
    buf_puts(out, ",\"details\":{\"status\":\"E");
    buf_puts(out, sessile_status_name(err->code));
    buf_puts(out, "\"");
    if (err->retry_ms > 0) {
        buf_puts(out, ",\"retryMs\":");
        buf_put_i64(out, err->retry_ms);
    }
    if (err->rule[0]) {
        buf_puts(out, ",\"rule\":");
        json_put_cstring(out, err->rule);
    }
    buf_puts(out, "}}");
}

void http_refuse(rpc_call *rpc, int http, const char *code, const char *message,
                 const rpc_header *header)
{
    char body[400];
    int size = snprintf(body, sizeof body, "{\"code\":\"%s\",\"message\":\"%s\"}\n", code,
                        message);
    rpc_http_head(rpc, http, "application/json", size, header, header ? 1 : 0);
    (void)rpc_http_send(rpc, body, (size_t)size);
    rpc_http_end(rpc);
}

/* ---------------------------------------------------------------------- events */

static int is_events(const call *c)
{
    return c->speech.as == CALL_EVENTS;
}

/* Puts text as the data of an event: a line for each of its lines. Line ends inside JSON
 * are white space. */
static void put_data(buf *out, const char *text, size_t size)
{
    for (size_t at = 0; at <= size;) {
        size_t n = at;
        while (n < size && text[n] != '\n' && text[n] != '\r')
            n++;
        buf_puts(out, "data: ");
        buf_put(out, text + at, n - at);
        buf_puts(out, "\n");
        at = n + 1 + (n + 1 < size && text[n] == '\r' && text[n + 1] == '\n');
    }
}

static sessile_status send_event(call *c, const char *name, const buf *json,
                                 const sessile_id *seen, sessile_error *err)
{
    static const rpc_header headers[] = {{"cache-control", "no-store"},
                                         {"x-accel-buffering", "no"}};
    buf out;
    buf_init(&out, &c->server->alloc);
    if (seen)
        buf_printf(&out, "id: %u\n", (unsigned)*seen);
    buf_printf(&out, "event: %s\n", name);
    put_data(&out, json->data, json->size);
    buf_puts(&out, "\n");
    /* The first one has the head; it does nothing later. */
    if (!atomic_exchange(&c->speech.headed, 1))
        rpc_http_head(c->rpc, 200, "text/event-stream", -1, headers, 2);
    int sent = out.failed ? 0 : rpc_http_send(c->rpc, out.data, out.size);
    sessile_status status = out.failed ? fail_nomem(err) : SESSILE_OK;
    buf_deinit(&out);
    return sent == 0 ? status
                     : fail(err, SESSILE_CANCELLED, "nobody waits for the reply");
}

static sessile_status send_session_event(call *c, const ProtobufCMessage *message,
                                         sessile_error *err)
{
    const Sessile__V1__SessionEvent *e = (const Sessile__V1__SessionEvent *)message;
    const char *name = "gone";
    sessile_id seen = SESSILE_NO_ID;
    buf json;
    if (e->what_case == SESSILE__V1__SESSION_EVENT__WHAT_ENTRY) {
        name = "entry";
        seen = e->entry->entry;
    } else if (e->what_case == SESSILE__V1__SESSION_EVENT__WHAT_UP_TO) {
        name = "up_to";
        seen = e->up_to ? e->up_to - 1 : SESSILE_NO_ID;
    }
    buf_init(&json, &c->server->alloc);
    sessile_status status = message_to_json(message, REPLY_MOST, &json, err);
    /* With several sessions an id could not say how far each one is. */
    if (!status)
        status = send_event(c, name, &json,
                            c->speech.one_session && seen != SESSILE_NO_ID ? &seen : NULL,
                            err);
    buf_deinit(&json);
    return status;
}

/* ---------------------------------------------------------------------- replies */

int pack_message(buf *out, const ProtobufCMessage *message)
{
    size_t size = protobuf_c_message_get_packed_size(message);
    if (buf_reserve(out, size ? size : 1))
        return -1;
    out->size += protobuf_c_message_pack(message, (unsigned char *)out->data + out->size);
    return 0;
}

/* A list that comes in pieces: its first field is what it lists. */
static int is_list(const ProtobufCMessageDescriptor *type)
{
    return type->n_fields > 0 && type->fields[0].label == PROTOBUF_C_LABEL_REPEATED;
}

static sessile_status too_large(sessile_error *err)
{
    return fail(err, SESSILE_LIMIT,
                "the reply is larger than 64 MiB: ask for less at a time, or by gRPC");
}

static sessile_status join(call *c, const ProtobufCMessage *message, sessile_error *err)
{
    http_joined *j = &c->speech.joined;
    sessile_status status = SESSILE_OK;
    j->type = message->descriptor;
    if (!is_list(j->type)) {
        if (j->bytes.size)
            buf_puts(&j->bytes, ",");
        status =
            j->bytes.size < REPLY_MOST
                ? message_to_json(message, REPLY_MOST - j->bytes.size, &j->bytes, err)
                : too_large(err);
    } else {
        if (protobuf_c_message_get_packed_size(message) > REPLY_MOST - j->bytes.size)
            return too_large(err);
        (void)pack_message(&j->bytes, message);
    }
    return !status && j->bytes.failed ? fail_nomem(err) : status;
}

/* Sends a whole reply. LIMIT: too much waits for clients already. */
static sessile_status reply_json(call *c, const buf *json, sessile_error *err)
{
    const char *why;
    if (!rpc_has_room(c->rpc, json->size, &why))
        return fail(err, SESSILE_LIMIT, "%s", why);
    rpc_http_reply(c->rpc, 200, "application/json", json->data, json->size);
    return SESSILE_OK;
}

static sessile_status send_json(call *c, const ProtobufCMessage *message,
                                sessile_error *err)
{
    buf json;
    buf_init(&json, &c->server->alloc);
    sessile_status status = message_to_json(message, REPLY_MOST, &json, err);
    if (!status)
        status = reply_json(c, &json, err);
    buf_deinit(&json);
    return status;
}

sessile_status http_send(call *c, const ProtobufCMessage *message, sessile_error *err)
{
    if (is_events(c))
        return send_session_event(c, message, err);
    if (c->method->flags & METHOD_STREAMS)
        return join(c, message, err);
    return send_json(c, message, err);
}

/* Sends what was joined: one object. */
static sessile_status send_joined(call *c, sessile_error *err)
{
    http_joined *j = &c->speech.joined;
    sessile_status status = SESSILE_OK;
    if (!j->type) {
        rpc_http_reply(c->rpc, 200, "application/json", "{}", 2);
    } else if (is_list(j->type)) {
        ProtobufCAllocator memory = message_allocator(&c->server->alloc);
        ProtobufCMessage *all = protobuf_c_message_unpack(
            j->type, &memory, j->bytes.size, (const unsigned char *)j->bytes.data);
        status = all ? send_json(c, all, err) : fail_nomem(err);
        message_free(all);
    } else {
        buf out;
        buf_init(&out, &c->server->alloc);
        buf_printf(&out, "{\"%c%s\":[", tolower((unsigned char)j->type->short_name[0]),
                   j->type->short_name + 1);
        buf_put(&out, j->bytes.data, j->bytes.size);
        buf_puts(&out, "]}");
        status = out.failed ? fail_nomem(err) : reply_json(c, &out, err);
        buf_deinit(&out);
    }
    return status;
}

void http_finish(call *c, sessile_status status, const sessile_error *err)
{
    sessile_error own;
    buf body;
    if (!status && (c->method->flags & METHOD_STREAMS) && !is_events(c)) {
        status = send_joined(c, &own);
        err = &own;
    }
    if (!status) {
        if (is_events(c))
            rpc_http_end(c->rpc);
        return;
    }
    rpc_code code = status_code(err->code, c->flags);
    buf_init(&body, &c->server->alloc);
    put_error(&body, codes[code].name, err);
    if (body.failed) {
        http_refuse(c->rpc, 503, "unavailable", "the server is out of memory", NULL);
    } else if (atomic_load(&c->speech.headed)) {
        (void)send_event(c, "error", &body, NULL, &own);
        rpc_http_end(c->rpc);
    } else {
        rpc_http_reply(c->rpc, codes[code].http, "application/json", body.data,
                       body.size);
    }
    buf_deinit(&body);
}
