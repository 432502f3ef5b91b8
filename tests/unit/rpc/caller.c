/* caller.c: a client for tests. */
#include "unit/rpc/caller.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

uint64_t clock_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000 + (uint64_t)now.tv_nsec / 1000;
}

static void message(void *ud, rpc_request *request, const void *data, size_t size)
{
    answer *a = ud;
    if (a->messages++ == 0) {
        a->first = malloc(size + 1);
        memcpy(a->first, data, size);
        a->first[size] = 0;
        a->first_size = size;
    }
    a->bytes += size;
    if (a->cancel_at > 0 && (int)a->messages == a->cancel_at)
        rpc_request_cancel(request);
    else if (a->pause_at > 0 && (int)a->messages == a->pause_at)
        rpc_request_pause(request, 1);
}

static void ended(void *ud, rpc_request *request, const rpc_result *result)
{
    answer *a = ud;
    const char *value;
    a->ended++;
    a->code = result->code;
    snprintf(a->message, sizeof a->message, "%s", result->message);
    a->unbegun = result->unbegun;
    a->told = result->told;
    value = a->trailer_name ? rpc_request_header(request, a->trailer_name) : NULL;
    snprintf(a->trailer, sizeof a->trailer, "%s", value ? value : "");
    a->request = NULL;
}

static void drained(void *ud, rpc_request *request)
{
    answer *a = ud;
    (void)request;
    a->drained++;
}

const rpc_replies answer_replies = {message, ended, drained};

void answer_wait(rpc_loop *loop, answer *a)
{
    uint64_t until = clock_us() + 120000000;
    while (a->ended == 0 && clock_us() < until)
        rpc_loop_turn(loop, 100);
    assert_int_equal(a->ended, 1);
}

void turn_for(rpc_loop *loop, int ms)
{
    uint64_t until = clock_us() + (uint64_t)ms * 1000, now;
    while ((now = clock_us()) < until)
        rpc_loop_turn(loop, (int)((until - now) / 1000) + 1);
}

void ask_begin(rpc_channel *channel, answer *a, const char *method,
               const rpc_header *headers, size_t n, const void *data, size_t size,
               int timeout_ms)
{
    char path[128];
    sessile_error err;
    uint64_t deadline =
        timeout_ms > 0 ? clock_us() + (uint64_t)timeout_ms * 1000 : UINT64_MAX;
    snprintf(path, sizeof path, "/t.Echo/%s", method);
    assert_int_equal(rpc_request_open(&a->request, channel, path, headers, n, deadline,
                                      &answer_replies, a, &err),
                     SESSILE_OK);
    if (data != NULL)
        assert_int_equal(rpc_request_send(a->request, data, size), 0);
}

void ask(rpc_loop *loop, rpc_channel *channel, answer *a, const char *method,
         const void *data, size_t size, int timeout_ms)
{
    ask_begin(channel, a, method, NULL, 0, data, size, timeout_ms);
    if (a->request != NULL)
        rpc_request_end(a->request);
    answer_wait(loop, a);
}

void answer_free(answer *a)
{
    free(a->first);
    memset(a, 0, sizeof *a);
}
