/*
 * fake_client.c: the client of engine/rpc for tests that call methods without a
 * connection: no other node can be reached. So nothing of engine/rpc is linked.
 */
#include "fake_rpc.h"

#include <string.h>

void rpc_limits_init(rpc_limits *limits)
{
    memset(limits, 0, sizeof *limits);
}

sessile_status rpc_tls_open(rpc_tls **out, int server, const rpc_tls_files *files,
                            const allocator *a, sessile_error *err)
{
    (void)server;
    (void)files;
    (void)a;
    *out = NULL;
    return fail_nomem(err);
}

sessile_status rpc_tls_reload(rpc_tls *tls, sessile_error *err)
{
    (void)tls;
    (void)err;
    return SESSILE_OK;
}

void rpc_tls_drop(rpc_tls *tls)
{
    (void)tls;
}

int rpc_loop_after(rpc_loop *loop, int ms, void (*fn)(void *arg), void *arg)
{
    (void)loop;
    (void)ms;
    (void)fn;
    (void)arg;
    return -1;
}

int rpc_loop_post(rpc_loop *loop, void (*fn)(void *arg), void *arg)
{
    return rpc_loop_after(loop, 0, fn, arg);
}

const char *rpc_listener_address(const rpc_listener *l)
{
    (void)l;
    return "";
}

rpc_loop *rpc_call_loop(const rpc_call *call)
{
    (void)call;
    return NULL;
}

void rpc_call_headers(const rpc_call *call,
                      int (*visit)(void *arg, const char *name, const char *value),
                      void *arg)
{
    (void)call;
    (void)visit;
    (void)arg;
}

sessile_status rpc_target_find(rpc_target **out, const char *address, const allocator *a,
                               sessile_error *err)
{
    (void)address;
    (void)a;
    *out = NULL;
    return fail_nomem(err);
}

void rpc_target_free(rpc_target *target)
{
    (void)target;
}

sessile_status rpc_channel_open_to(rpc_channel **out, rpc_loop *loop,
                                   const rpc_target *target, rpc_tls *tls,
                                   const rpc_limits *limits, sessile_error *err)
{
    (void)loop;
    (void)target;
    (void)tls;
    (void)limits;
    *out = NULL;
    return fail_nomem(err);
}

void rpc_channel_close(rpc_channel *channel)
{
    (void)channel;
}

int rpc_channel_silence(const rpc_channel *channel)
{
    (void)channel;
    return -1;
}

sessile_status rpc_request_open(rpc_request **out, rpc_channel *channel, const char *path,
                                const rpc_header *headers, size_t n, uint64_t deadline_us,
                                const rpc_replies *replies, void *ud, sessile_error *err)
{
    (void)channel;
    (void)path;
    (void)headers;
    (void)n;
    (void)deadline_us;
    (void)replies;
    (void)ud;
    *out = NULL;
    return fail_nomem(err);
}

int rpc_request_send(rpc_request *request, const void *data, size_t size)
{
    (void)request;
    (void)data;
    (void)size;
    return -1;
}

void rpc_request_end(rpc_request *request)
{
    (void)request;
}

void rpc_request_pause(rpc_request *request, int paused)
{
    (void)request;
    (void)paused;
}

void rpc_request_cancel(rpc_request *request)
{
    (void)request;
}

const char *rpc_request_header(const rpc_request *request, const char *name)
{
    (void)request;
    (void)name;
    return NULL;
}

void rpc_request_headers(const rpc_request *request,
                         int (*visit)(void *arg, const char *name, const char *value),
                         void *arg)
{
    (void)request;
    (void)visit;
    (void)arg;
}
