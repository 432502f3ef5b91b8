/*
 * call.c: one call: sent, waited for, made again.
 *
 * Owns the connections and what is done when one breaks. An answer is one only if the
 * server's own status came with it (the trailer sessile-status, or OK). All else says
 * nothing about what took place: the connection broke, time was up here or there, a
 * proxy answered. Then the call is made again, with a new connection. That is safe for
 * each of them: a read changes nothing, and a change is conditional in itself. An append
 * names the end that it starts from, and logs never come back to an end that they had.
 * So once the second one was answered, the first can do nothing any more, wherever it
 * still is; what was found then (CONFLICT, EXISTS) may be our own doing, which the caller
 * finds out by reading (log.c).
 */
#include "remote/remote.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/names.h"

enum {
    IDLE_MOST = 16,
    TURN_MS = 10,    /* between two looks whether somebody asked to stop */
    TRY_MS = 20000,  /* one try, before a server is taken for dead */
    ONCE_MS = 1000,  /* one try, of a call that may not wait */
    GRACE_MS = 1500, /* to learn what became of a change */
    STATUSES = 64,
    PAUSE_MS = 5,
    PAUSE_MOST_MS = 100
};

/* ---------------------------------------------------------------------- connections */

sessile_status remote_forked(const remote *r, sessile_error *err)
{
    return r->os->pid(r->os->ud) == r->pid
               ? SESSILE_OK
               : fail(err, SESSILE_FORKED,
                      "the store was opened before fork(): open it again in the child");
}

static void close_conn(remote *r, remote_conn *c)
{
    if (c->channel)
        rpc_channel_close(c->channel);
    rpc_loop_close(c->loop);
    mem_free(&r->alloc, c, sizeof *c);
}

sessile_status remote_conn_take(remote *r, remote_conn **out, sessile_error *err)
{
    rpc_limits limits;
    pthread_mutex_lock(&r->mutex);
    remote_conn *c = r->idle;
    if (c) {
        r->idle = c->next;
        r->idle_count--;
    }
    pthread_mutex_unlock(&r->mutex);
    *out = c;
    if (c) {
        rpc_loop_turn(c->loop, 0); /* what came while nobody listened: its end, perhaps */
        return SESSILE_OK;
    }
    c = mem_zalloc(&r->alloc, sizeof *c);
    if (!c)
        return fail_nomem(err);
    rpc_limits_init(&limits);
    sessile_status status = rpc_loop_open(&c->loop, &limits, &r->alloc, err);
    if (!status)
        status =
            rpc_channel_open(&c->channel, c->loop, r->url.address, r->tls, &limits, err);
    if (status) {
        if (c->loop)
            rpc_loop_close(c->loop);
        mem_free(&r->alloc, c, sizeof *c);
        return status;
    }
    *out = c;
    return SESSILE_OK;
}

void remote_conn_give(remote *r, remote_conn *c, int again)
{
    if (!c)
        return;
    pthread_mutex_lock(&r->mutex);
    int keep = again && r->idle_count < IDLE_MOST;
    if (keep) {
        c->next = r->idle;
        r->idle = c;
        r->idle_count++;
    }
    pthread_mutex_unlock(&r->mutex);
    if (!keep)
        close_conn(r, c);
}

void remote_conns_close(remote *r)
{
    while (r->idle) {
        remote_conn *c = r->idle;
        r->idle = c->next;
        close_conn(r, c);
    }
}

/* ---------------------------------------------------------------------- one try */

typedef struct attempt {
    remote_call *call;
    int ended, stopped, unbegun, known;
    int final; /* a call with `once` is not tried again */
    sessile_status status;
    sessile_error err; /* of an answer: the server's; else why there is none */
} attempt;

static void on_message(void *ud, rpc_request *request, const void *data, size_t size)
{
    attempt *t = ud;
    buf *b = &t->call->replies;
    (void)request;
    buf_put(b, &size, sizeof size);
    buf_put(b, data, size);
}

/* The status that a server named in its trailer; OK: there is no such. */
static sessile_status named_status(const char *name)
{
    if (!name || *name != 'E')
        return SESSILE_OK;
    for (int i = 1; i < STATUSES; i++)
        if (strcmp(status_name((sessile_status)i), name + 1) == 0)
            return (sessile_status)i;
    return SESSILE_IO; /* of a newer server */
}

/* The server says that it does not know who calls. */
static sessile_status unknown_caller(const remote *r, sessile_error *err)
{
    if (r->credential)
        return fail_prefix(err, "%s", r->url.where);
    return fail(
        err, SESSILE_DENIED,
        "%s asks who calls: set SESSILE_TOKEN, or name a file that has the token in "
        "the URL of the store: token_file=FILE",
        r->url.where);
}

static void on_ended(void *ud, rpc_request *request, const rpc_result *result)
{
    attempt *t = ud;
    const remote *r = t->call->r;
    const char *poisoned = rpc_request_header(request, "sessile-poisoned");
    const char *retry = rpc_request_header(request, "sessile-retry-ms");
    const char *rule = rpc_request_header(request, "sessile-rule");
    sessile_status named = named_status(rpc_request_header(request, "sessile-status"));
    t->ended = 1;
    t->unbegun = result->unbegun;
    t->status = SESSILE_OK;
    if (result->told && result->code == RPC_OK) {
        t->known = 1;
    } else if (result->told && named) {
        t->known = 1;
        t->status = fail_rule(&t->err, named, rule ? rule : "", "%s", result->message);
        if (result->code == RPC_UNAUTHENTICATED)
            t->status = unknown_caller(r, &t->err);
        t->err.retry_ms = retry ? strtoll(retry, NULL, 10) : 0;
        t->call->poisoned = poisoned != NULL;
    } else if (result->told && result->code == RPC_UNIMPLEMENTED) {
        t->known = 1;
        t->status = fail(&t->err, SESSILE_UNSUPPORTED,
                         "%s serves no records: its `serve.services` needs \"records\"",
                         r->url.where);
    } else {
        t->status = fail(&t->err, SESSILE_IO, "%s does not answer%s%s", r->url.where,
                         *result->message ? ": " : "", result->message);
    }
}

/* Who cannot be trusted, or spoken with, is named as that. OK: it is another reason. */
static sessile_status refused(const remote *r, rpc_fault fault, sessile_error *err)
{
    const char *where = r->url.where;
    switch (fault) {
    case RPC_FAULT_AUTHORITY:
        return fail(err, SESSILE_DENIED,
                    "the certificate of %s is of an authority that is not trusted here: "
                    "name the right one in the URL of the store, ca=FILE",
                    where);
    case RPC_FAULT_NAME:
        return fail(err, SESSILE_DENIED,
                    "the certificate of %s is for another name: use one that it has in "
                    "the URL of the store",
                    where);
    case RPC_FAULT_TIME:
        return fail(err, SESSILE_DENIED,
                    "the certificate of %s has expired, or is not valid yet by the clock "
                    "of this machine: it needs a new one",
                    where);
    case RPC_FAULT_CLIENT:
        return fail(err, SESSILE_DENIED,
                    "%s wants a certificate of this client that its authority has "
                    "signed: name it in the URL of the store, cert=FILE&key=FILE",
                    where);
    case RPC_FAULT_NO_TLS:
        return fail(err, SESSILE_DENIED,
                    "%s does not speak TLS: configure serve.cert and serve.key there, or "
                    "use grpc:// on the same machine",
                    where);
    case RPC_FAULT_SILENT:
        return fail(err, SESSILE_IO,
                    "%s does not speak in clear text: if it has TLS, use grpcs://",
                    where);
    case RPC_FAULT_NONE:
        break;
    }
    return SESSILE_OK;
}

static int asked_to_stop(const remote_call *call)
{
    return call->stop.ask && call->stop.ask(call->stop.arg);
}

static uint64_t now_us(const remote *r)
{
    return r->os->clock_us(r->os->ud);
}

/* Sends it over c and waits for its end. -1: no memory. */
static int try_once(attempt *t, remote_conn *c, const char *method, const void *bytes,
                    size_t size)
{
    static const rpc_replies replies = {on_message, on_ended, NULL};
    remote_call *call = t->call;
    rpc_header headers[1] = {{"authorization", call->r->credential}};
    rpc_request *request;
    char path[80];
    uint64_t now = now_us(call->r), most = (uint64_t)TRY_MS * 1000, until;
    if (call->until_us <= now)
        most = (uint64_t)ONCE_MS * 1000;
    else if (call->until_us - now < most)
        most = call->until_us - now;
    until = now + most;
    snprintf(path, sizeof path, "/sessile.v1.RecordService/%s", method);
    size_t n = call->r->credential ? 1 : 0;
    if (rpc_request_open(&request, c->channel, path, headers, n, until, &replies, t,
                         NULL))
        return -1;
    if (!t->ended && rpc_request_send(request, bytes, size) != 0 && !t->ended) {
        rpc_request_cancel(request);
        return -1;
    }
    if (!t->ended)
        rpc_request_end(request);
    while (!t->ended) {
        rpc_loop_turn(c->loop, TURN_MS);
        if (!t->ended && (now_us(call->r) > until + 200000 || asked_to_stop(call))) {
            t->stopped = asked_to_stop(call);
            rpc_request_cancel(request);
        }
    }
    sessile_status why =
        t->known ? SESSILE_OK : refused(call->r, rpc_channel_fault(c->channel), &t->err);
    if (why)
        t->status = why;
    t->final = why || t->unbegun;
    return 0;
}

/* ---------------------------------------------------------------------- a call */

remote_call remote_call_of(remote *r, int timeout_ms)
{
    remote_call call = {.r = r, .until_us = UINT64_MAX};
    if (timeout_ms >= 0)
        call.until_us = now_us(r) + (uint64_t)timeout_ms * 1000;
    buf_init(&call.replies, &r->alloc);
    return call;
}

void remote_done(remote_call *call)
{
    buf_deinit(&call->replies);
}

void remote_grace(remote_call *call)
{
    uint64_t until = now_us(call->r) + (uint64_t)GRACE_MS * 1000;
    if (call->until_us < until)
        call->until_us = until;
    call->stop = (lock_stop){NULL, NULL};
}

static sessile_status stopped(const remote_call *call, sessile_error *err)
{
    return store_stopped(call->r->url.where, err);
}

/* 1: it may be tried again, after a pause. */
static int may_go_on(remote_call *call, int tries)
{
    int ms = PAUSE_MS << (tries < 5 ? tries : 5);
    if (asked_to_stop(call) || now_us(call->r) >= call->until_us)
        return 0;
    call->r->os->sleep_ms(call->r->os->ud, ms < PAUSE_MOST_MS ? ms : PAUSE_MOST_MS);
    return 1;
}

/* Makes tries until one has an answer. */
static sessile_status do_packed(remote_call *call, const char *method, const void *bytes,
                                size_t size, sessile_error *err)
{
    remote *r = call->r;
    for (int tries = 0;; tries++) {
        attempt t = {.call = call};
        remote_conn *c = call->conn;
        buf_clear(&call->replies);
        sessile_status status = c ? SESSILE_OK : remote_conn_take(r, &c, err);
        if (status)
            return status;
        int sent = try_once(&t, c, method, bytes, size);
        if (!call->conn)
            remote_conn_give(r, c, sent == 0 && t.known);
        if (sent != 0 || call->replies.failed)
            return fail_nomem(err);
        call->known = t.known;
        if (t.known && t.status != SESSILE_BUSY) {
            if (t.status && err)
                *err = t.err;
            return t.status;
        }
        call->maybe |= !t.known && !t.unbegun;
        if (!may_go_on(call, tries) || (call->once && t.final)) {
            if (t.stopped || (!call->maybe && asked_to_stop(call)))
                return stopped(call, err);
            if (err)
                *err = t.err;
            return t.status;
        }
    }
}

sessile_status remote_do(remote_call *call, const char *method,
                         const ProtobufCMessage *request, sessile_error *err)
{
    remote *r = call->r;
    size_t size = protobuf_c_message_get_packed_size(request);
    sessile_status status = remote_forked(r, err);
    call->known = call->maybe = call->poisoned = 0;
    if (status)
        return status;
    unsigned char *bytes = mem_alloc(&r->alloc, size ? size : 1);
    if (!bytes)
        return fail_nomem(err);
    protobuf_c_message_pack(request, bytes);
    status = do_packed(call, method, bytes, size, err);
    if (!call->known && call->maybe && !call->reads) {
        /* once more, for the answer alone */
        remote_grace(call);
        status = do_packed(call, method, bytes, size, err);
    }
    mem_free(&r->alloc, bytes, size ? size : 1);
    return status;
}

sessile_status remote_unknown(const remote_call *call, const char *what,
                              sessile_error *err)
{
    return fail(err, SESSILE_IO,
                "%s did not answer while %s was changed, and nobody could tell in time "
                "whether that took place: " STORE_LOOK_AGAIN,
                call->r->url.where, what);
}

/* ---------------------------------------------------------------------- replies */

ProtobufCMessage *remote_reply(remote_call *call, const ProtobufCMessageDescriptor *type,
                               size_t *at)
{
    size_t size;
    if (*at + sizeof size > call->replies.size)
        return NULL;
    memcpy(&size, call->replies.data + *at, sizeof size);
    const unsigned char *bytes =
        (const unsigned char *)call->replies.data + *at + sizeof size;
    *at += sizeof size + size;
    return protobuf_c_message_unpack(type, NULL, size, bytes);
}

sessile_status remote_only(remote_call *call, const ProtobufCMessageDescriptor *type,
                           ProtobufCMessage **out, sessile_error *err)
{
    size_t at = 0;
    *out = remote_reply(call, type, &at);
    return *out ? SESSILE_OK
                : fail(err, SESSILE_IO, "%s answered something that cannot be read",
                       call->r->url.where);
}

/* ---------------------------------------------------------------------- sending ahead */

sessile_status remote_send(remote_call *call, const void *data, size_t size,
                           Sessile__V1__RecordData *out, sessile_error *err)
{
    sessile__v1__record_data__init(out);
    if (size <= REMOTE_WHOLE) {
        out->data = remote_bytes(data, size);
        return SESSILE_OK;
    }
    for (size_t at = 0; at < size;) {
        Sessile__V1__RecordUploadRequest request =
            SESSILE__V1__RECORD_UPLOAD_REQUEST__INIT;
        size_t n = size - at < REMOTE_PIECE ? size - at : REMOTE_PIECE;
        ProtobufCMessage *reply = NULL;
        request.id = out->upload;
        request.offset = at;
        request.data = remote_bytes((const char *)data + at, n);
        sessile_status status = remote_do(call, "Upload", &request.base, err);
        if (!status)
            status =
                remote_only(call, &sessile__v1__record_upload__descriptor, &reply, err);
        if (!status && !out->upload.len) {
            ProtobufCBinaryData id = ((Sessile__V1__RecordUpload *)(void *)reply)->id;
            out->upload.data = (uint8_t *)mem_dup(&call->r->alloc, id.data, id.len);
            out->upload.len = out->upload.data ? id.len : 0;
            status = out->upload.data ? SESSILE_OK : fail_nomem(err);
        }
        if (reply)
            protobuf_c_message_free_unpacked(reply, NULL);
        if (status) {
            remote_sent(call, out);
            return status;
        }
        at += n;
    }
    return SESSILE_OK;
}

void remote_sent(remote_call *call, Sessile__V1__RecordData *data)
{
    Sessile__V1__RecordDraftRequest request = SESSILE__V1__RECORD_DRAFT_REQUEST__INIT;
    if (!data->upload.len)
        return;
    remote_call drop = remote_call_of(call->r, 0);
    drop.once = drop.reads = 1;
    request.op = SESSILE__V1__RECORD_DRAFT_DO__RECORD_DRAFT_DROP;
    request.id = data->upload;
    (void)remote_do(&drop, "Draft", &request.base, NULL);
    remote_done(&drop);
    mem_free(&call->r->alloc, data->upload.data, data->upload.len + 1);
    data->upload = (ProtobufCBinaryData){0, NULL};
}
