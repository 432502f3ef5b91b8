/* echo.c: a service for tests of rpc/. */
#include "unit/rpc/echo.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

/* What is kept of a call. */
typedef struct mine {
    int left;    /* messages of Count */
    size_t size; /* of each */
    char *data;  /* the message of Later */
    size_t data_size;
    int kind;          /* first letter of the method, but for some */
    atomic_int owners; /* the call, and the thread of Later */
} mine;

static void mine_drop(mine *m)
{
    if (atomic_fetch_sub(&m->owners, 1) != 1)
        return;
    free(m->data);
    free(m);
}

static int add_trailer(void *arg, const char *name, const char *value)
{
    rpc_header **at = arg;
    if (strncmp(name, "x-", 2) == 0) {
        (*at)->name = name;
        (*at)->value = value;
        (*at)++;
    }
    return 0;
}

static void finish(rpc_call *call)
{
    rpc_header trailers[32], *end = trailers;
    rpc_call_headers(call, add_trailer, &end);
    rpc_finish(call, RPC_OK, NULL, trailers, (size_t)(end - trailers));
}

static void *reply_later(void *arg)
{
    rpc_call *call = arg;
    mine *m = rpc_call_own(call);
    struct timespec pause = {0, 1000000};
    nanosleep(&pause, NULL);
    if (rpc_call_kind(call) == RPC_HTTP) {
        rpc_http_reply(call, 200, "text/plain", "slow\n", 5);
    } else {
        rpc_send(call, m->data, m->data_size);
        finish(call);
    }
    mine_drop(m);
    rpc_call_drop(call);
    return NULL;
}

static void later(rpc_call *call)
{
    mine *m = rpc_call_own(call);
    pthread_t thread;
    rpc_call_keep(call);
    atomic_fetch_add(&m->owners, 1);
    if (pthread_create(&thread, NULL, reply_later, call) == 0)
        pthread_detach(thread);
    else {
        mine_drop(m);
        rpc_call_drop(call);
    }
}

static void count_on(echo *e, rpc_call *call, mine *m)
{
    static char zeros[1 << 20];
    while (m->left > 0 && rpc_unsent(call) < (1 << 20)) {
        size_t unsent;
        m->left--;
        if (rpc_send(call, zeros, m->size) != 0)
            return;
        unsent = rpc_unsent(call);
        if (unsent > atomic_load(&e->most_unsent))
            atomic_store(&e->most_unsent, unsent);
    }
    if (m->left == 0) {
        m->left = -1;
        rpc_finish(call, RPC_OK, NULL, NULL, 0);
    }
}

static void begun(void *ud, rpc_call *call)
{
    echo *e = ud;
    const char *path = rpc_call_path(call);
    mine *m = calloc(1, sizeof *m);
    char text[512];

    atomic_fetch_add(&e->begun, 1);
    rpc_call_set(call, m);
    atomic_init(&m->owners, 1);
    m->left = -1;
    if (rpc_call_kind(call) == RPC_HTTP) {
        m->kind = 'h';
        if (strcmp(path, "/slow") == 0)
            later(call);
        return;
    }
    if (strncmp(path, "/t.Echo/", 8) != 0) {
        rpc_finish(call, RPC_UNIMPLEMENTED, "no such method", NULL, 0);
        return;
    }
    m->kind = path[8];
    if (strcmp(path + 8, "Stream") == 0)
        m->kind = 's';
    if (strcmp(path + 8, "Silent") == 0)
        m->kind = 'q';
    if (m->kind == 'E')
        rpc_finish(call, RPC_FAILED_PRECONDITION, "early", NULL, 0);
    if (m->kind == 'P') {
        const char *name = rpc_call_certificate(call);
        snprintf(text, sizeof text, "%s %d %s", rpc_call_peer(call),
                 rpc_call_encrypted(call), name ? name : "-");
        rpc_send(call, text, strlen(text));
        rpc_finish(call, RPC_OK, NULL, NULL, 0);
    }
}

static void http(rpc_call *call, const void *data, size_t size)
{
    const char *path = rpc_call_path(call);
    if (strcmp(path, "/hello") == 0)
        rpc_http_reply(call, 200, "text/plain", "hello\n", 6);
    else if (strcmp(path, "/echo") == 0)
        rpc_http_reply(call, 200, "application/octet-stream", data, size);
    else if (strcmp(path, "/drip") == 0) {
        rpc_http_head(call, 200, "text/event-stream", -1, NULL, 0);
        rpc_http_send(call, "one\n", 4);
        rpc_http_send(call, "two\n", 4);
        rpc_http_send(call, "three\n", 6);
        rpc_http_end(call);
    } else if (strcmp(path, "/slow") != 0)
        rpc_http_reply(call, 404, "text/plain", "no\n", 3);
}

static void message(void *ud, rpc_call *call, const void *data, size_t size)
{
    mine *m = rpc_call_own(call);
    char text[512];
    int code;

    switch (m->kind) {
    case 'h':
        http(call, data, size);
        break;
    case 'U':
    case 's':
        rpc_send(call, data, size);
        break;
    case 'L':
        m->data = malloc(size + 1);
        memcpy(m->data, data, size);
        m->data_size = size;
        later(call);
        break;
    case 'C':
        snprintf(text, sizeof text, "%.*s", (int)size, (const char *)data);
        if (sscanf(text, "%d %zu", &m->left, &m->size) == 2)
            count_on(ud, call, m);
        break;
    case 'F':
        snprintf(text, sizeof text, "%.*s", (int)size, (const char *)data);
        code = atoi(text);
        rpc_finish(call, (rpc_code)code, strchr(text, ' ') + 1, NULL, 0);
        break;
    default:
        break;
    }
}

static void ended(void *ud, rpc_call *call)
{
    mine *m = rpc_call_own(call);
    (void)ud;
    if (m->kind == 'U' || m->kind == 's')
        finish(call);
}

static void drained(void *ud, rpc_call *call)
{
    echo *e = ud;
    mine *m = rpc_call_own(call);
    atomic_fetch_add(&e->drained, 1);
    if (m->kind == 'C')
        count_on(e, call, m);
}

static void gone(void *ud, rpc_call *call, rpc_gone why)
{
    echo *e = ud;
    atomic_fetch_add(&e->gone[why], 1);
    mine_drop(rpc_call_own(call));
}

const rpc_service echo_service = {begun, message, ended, drained, gone};

static void *run(void *arg)
{
    rpc_loop_run(arg);
    return NULL;
}

void echo_start(echo *e, size_t loops, const char *address, const rpc_limits *limits,
                rpc_tls *tls)
{
    echo_start_counted(e, loops, address, limits, tls, NULL);
}

void echo_start_counted(echo *e, size_t loops, const char *address,
                        const rpc_limits *limits, rpc_tls *tls, rpc_queued *queued)
{
    sessile_error err;
    memset(e, 0, sizeof *e);
    e->count = loops;
    for (size_t i = 0; i < loops; i++)
        assert_int_equal(rpc_loop_open(&e->loops[i], limits, NULL, &err), SESSILE_OK);
    for (size_t i = 0; queued && i < loops; i++)
        rpc_loop_count(e->loops[i], queued);
    if (rpc_listen(&e->listener, e->loops, loops, address, tls, &echo_service, e, &err))
        fail_msg("%s", err.message);
    e->address = rpc_listener_address(e->listener);
    for (size_t i = 0; i < loops; i++)
        assert_int_equal(pthread_create(&e->threads[i], NULL, run, e->loops[i]), 0);
}

void echo_stop(echo *e)
{
    for (size_t i = 0; i < e->count; i++)
        rpc_loop_stop(e->loops[i]);
    for (size_t i = 0; i < e->count; i++)
        pthread_join(e->threads[i], NULL);
    rpc_listener_close(e->listener);
    for (size_t i = 0; i < e->count; i++)
        rpc_loop_close(e->loops[i]);
}

rpc_loop_figures echo_look(const echo *e)
{
    rpc_loop_figures sum = {0};
    for (size_t i = 0; i < e->count; i++) {
        rpc_loop_figures one = rpc_loop_look(e->loops[i]);
        sum.accepted += one.accepted;
        sum.refused += one.refused;
        sum.hostile += one.hostile;
        sum.clear += one.clear;
        sum.connections += one.connections;
        sum.calls += one.calls;
    }
    return sum;
}

static void doze(void)
{
    struct timespec pause = {0, 5000000};
    nanosleep(&pause, NULL);
}

int echo_empty(const echo *e)
{
    for (int i = 0; i < 4000 && echo_look(e).connections > 0; i++)
        doze();
    return echo_look(e).connections == 0;
}

int echo_until(atomic_int *n, int least)
{
    for (int i = 0; i < 4000 && atomic_load(n) < least; i++)
        doze();
    return atomic_load(n) >= least;
}
