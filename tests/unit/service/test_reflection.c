/*
 * test_reflection.c: streams of reflection that go on: what one costs whose client reads
 * nothing, and how it ends. What is answered is judged in test_clients.c.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "service/server.h"
#include "support/runs.h"

#define PATH "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"

/* ServerReflectionRequest: list_services, and file_by_filename. */
static const char SERVICES[] = "\x3a\x01*";
static const char LARGE[] = "\x1a\x0dsessile.proto";

typedef struct world {
    sessile_store *store;
    serving s;
    rpc_request *request;
    size_t answers;
    int ended;
    rpc_code code;
    char status[32];
} world;

static void on_message(void *ud, rpc_request *request, const void *data, size_t size)
{
    world *w = ud;
    (void)request, (void)data;
    assert_true(size > 0);
    w->answers++;
}

static void on_end(void *ud, rpc_request *request, const rpc_result *result)
{
    world *w = ud;
    const char *status = rpc_request_header(request, "sessile-status");
    w->ended = 1;
    w->code = result->code;
    snprintf(w->status, sizeof w->status, "%s", status ? status : "");
}

static const rpc_replies replies = {on_message, on_end, NULL};

static void world_open(world *w)
{
    memset(w, 0, sizeof *w);
    w->store = run_store("ram:");
    serving_start(&w->s, w->store, NULL);
    assert_int_equal(rpc_request_open(&w->request, w->s.channel, PATH, NULL, 0,
                                      UINT64_MAX, &replies, w, NULL),
                     SESSILE_OK);
}

static void world_close(world *w)
{
    serving_stop(&w->s);
    sessile_store_close(w->store);
}

static void ask(world *w, const char *request)
{
    assert_int_equal(rpc_request_send(w->request, request, strlen(request)), 0);
}

/* Turns the loop until there are so many answers, or it ended. */
static void wait_for(world *w, size_t answers)
{
    time_t until = time(NULL) + 60;
    while (!w->ended && w->answers < answers) {
        if (time(NULL) > until)
            fail_msg("%zu of %zu answers came", w->answers, answers);
        rpc_loop_turn(w->s.loop, 50);
    }
}

static unsigned calls(const world *w)
{
    const service *s = w->s.service;
    unsigned n = 0;
    for (int i = 0; i < s->settings.loops; i++)
        n += rpc_loop_look(s->loops[i]).calls;
    return n;
}

static void test_who_asks_on_and_reads_nothing_is_refused(void **state)
{
    world w;
    (void)state;
    world_open(&w);
    ask(&w, SERVICES);
    wait_for(&w, 1);
    rpc_request_pause(w.request, 1);
    for (int i = 0; i < 1000; i++)
        ask(&w, LARGE);
    time_t until = time(NULL) + 60;
    while (rpc_request_unsent(w.request) > 0 && time(NULL) < until)
        rpc_loop_turn(w.s.loop, 10);
    rpc_request_pause(w.request, 0);
    wait_for(&w, 1001);
    assert_true(w.ended);
    assert_int_equal(w.code, RPC_RESOURCE_EXHAUSTED);
    assert_string_equal(w.status, "ELIMIT");
    assert_in_range(w.answers, 2,
                    300); /* what 1 MiB here and 1 MiB there have room for */
    world_close(&w);
}

static void test_a_stream_that_is_idle_ends_with_the_server(void **state)
{
    world w;
    (void)state;
    world_open(&w);
    ask(&w, SERVICES);
    wait_for(&w, 1);
    serving_drain(&w.s);
    wait_for(&w, 2);
    assert_true(w.ended);
    assert_int_equal(w.code, RPC_UNAVAILABLE);
    assert_int_equal(w.answers, 1);
    world_close(&w);
}

static void test_what_is_no_request_ends_the_stream(void **state)
{
    world w;
    (void)state;
    world_open(&w);
    ask(&w, SERVICES);
    ask(&w, SERVICES);
    wait_for(&w, 2);
    ask(&w, "\x1a\x02\xff\xff");
    wait_for(&w, 3);
    assert_true(w.ended);
    assert_int_equal(w.code, RPC_INVALID_ARGUMENT);
    assert_string_equal(w.status, "EINVALID");
    assert_int_equal(w.answers, 2);
    world_close(&w);
}

static void test_a_client_that_goes_leaves_no_call(void **state)
{
    world w;
    (void)state;
    world_open(&w);
    ask(&w, SERVICES);
    wait_for(&w, 1);
    rpc_request_cancel(w.request);
    time_t until = time(NULL) + 60;
    while (calls(&w) > 0 && time(NULL) < until)
        rpc_loop_turn(w.s.loop, 10);
    assert_int_equal(calls(&w), 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_asks_on_and_reads_nothing_is_refused),
        cmocka_unit_test(test_a_stream_that_is_idle_ends_with_the_server),
        cmocka_unit_test(test_what_is_no_request_ends_the_stream),
        cmocka_unit_test(test_a_client_that_goes_leaves_no_call),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
