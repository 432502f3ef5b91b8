/* fake_rpc.c: see fake_rpc.h. What only a loop calls does nothing. */
#include "fake_rpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void fake_clear(rpc_call *call)
{
    for (size_t i = 0; i < FAKE_SENT; i++)
        free(call->got.sent[i].data);
    memset(&call->got, 0, sizeof call->got);
}

const char *fake_trailer(const rpc_call *call, const char *name)
{
    for (size_t i = 0; i < call->got.trailer_count; i++)
        if (strcmp(call->got.trailers[i].name, name) == 0)
            return call->got.trailers[i].value;
    return "";
}

/* ---------------------------------------------------------------------- what is asked */

void rpc_call_keep(rpc_call *call)
{
    (void)call;
}

void rpc_call_drop(rpc_call *call)
{
    (void)call;
}

void rpc_call_set(rpc_call *call, void *own)
{
    call->own = own;
}

void *rpc_call_own(const rpc_call *call)
{
    return call->own;
}

rpc_kind rpc_call_kind(const rpc_call *call)
{
    (void)call;
    return RPC_GRPC;
}

const char *rpc_call_method(const rpc_call *call)
{
    (void)call;
    return "POST";
}

const char *rpc_call_path(const rpc_call *call)
{
    return call->asked.path ? call->asked.path : "";
}

const char *rpc_call_header(const rpc_call *call, const char *name)
{
    for (const rpc_header *h = call->asked.headers; h && h->name; h++)
        if (strcmp(h->name, name) == 0)
            return h->value;
    return NULL;
}

uint64_t rpc_call_deadline(const rpc_call *call)
{
    return call->asked.deadline ? call->asked.deadline : UINT64_MAX;
}

const char *rpc_call_peer(const rpc_call *call)
{
    (void)call;
    return "10.0.0.7:51234";
}

const char *rpc_call_certificate(const rpc_call *call)
{
    return call->asked.certificate;
}

int rpc_call_over(const rpc_call *call)
{
    return call->got.finished ||
           (call->over_after >= 0 && call->got.count >= (size_t)call->over_after);
}

/* ---------------------------------------------------------------------- what is replied
 */

int rpc_send(rpc_call *call, const void *data, size_t size)
{
    if (call->sending)
        call->sending(call);
    size_t i = call->got.count;
    if (rpc_call_over(call))
        return -1;
    call->got.count++;
    if (i >= FAKE_SENT)
        return 0;
    call->got.sent[i].data = malloc(size + 1);
    call->got.sent[i].size = size;
    memcpy(call->got.sent[i].data, data, size);
    return 0;
}

void rpc_finish(rpc_call *call, rpc_code code, const char *message,
                const rpc_header *trailers, size_t n)
{
    call->got.finished++;
    call->got.code = code;
    snprintf(call->got.message, sizeof call->got.message, "%s", message ? message : "");
    for (size_t i = 0; i < n && i < FAKE_TRAILERS; i++) {
        snprintf(call->got.trailers[i].name, sizeof call->got.trailers[i].name, "%s",
                 trailers[i].name);
        snprintf(call->got.trailers[i].value, sizeof call->got.trailers[i].value, "%s",
                 trailers[i].value);
        call->got.trailer_count = i + 1;
    }
}

int rpc_has_room(const rpc_call *call, size_t size, const char **why)
{
    (void)call;
    (void)size;
    *why = "";
    return 1;
}

size_t rpc_unsent(const rpc_call *call)
{
    (void)call;
    return 0;
}

void rpc_http_reply(rpc_call *call, int status, const char *type, const void *body,
                    size_t size)
{
    (void)call, (void)status, (void)type, (void)body, (void)size;
}

void rpc_http_head(rpc_call *call, int status, const char *type, int64_t length,
                   const rpc_header *headers, size_t n)
{
    (void)call, (void)status, (void)type, (void)length, (void)headers, (void)n;
}

int rpc_http_send(rpc_call *call, const void *data, size_t size)
{
    (void)call, (void)data, (void)size;
    return 0;
}

void rpc_http_end(rpc_call *call)
{
    (void)call;
}

const char *rpc_call_query(const rpc_call *call)
{
    (void)call;
    return "";
}
