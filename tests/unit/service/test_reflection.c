/*
 * test_reflection.c: streams of reflection that go on: what one costs whose client reads
 * nothing or asks before it was let in, and how it ends. What is answered is judged in
 * test_clients.c.
 */
#include "serving.h"

#include <malloc.h>
#include <semaphore.h>
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

enum { FEW = 16 };

typedef struct world {
    sessile_store *store;
    serving s;
    rpc_request *request;
    size_t answers, sizes[FEW]; /* of the first ones */
    int ended;
    rpc_code code;
    char status[32];
} world;

static void on_message(void *ud, rpc_request *request, const void *data, size_t size)
{
    world *w = ud;
    (void)request, (void)data;
    assert_true(size > 0);
    if (w->answers < FEW)
        w->sizes[w->answers] = size;
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

static void world_open_with(world *w, int workers)
{
    service_settings settings;
    memset(&settings, 0, sizeof settings);
    settings.size.workers = workers;
    memset(w, 0, sizeof *w);
    w->store = run_store("ram:");
    serving_start(&w->s, w->store, &settings);
    assert_int_equal(rpc_request_open(&w->request, w->s.channel, PATH, NULL, 0,
                                      UINT64_MAX, &replies, w, NULL),
                     SESSILE_OK);
}

static void world_open(world *w)
{
    world_open_with(w, 4);
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

/* Turns the loop until all was sent, and a while longer, or it ended. */
static void send_all(world *w)
{
    time_t until = time(NULL) + 500;
    while (!w->ended && rpc_request_unsent(w->request) > 0 && time(NULL) < until)
        rpc_loop_turn(w->s.loop, 10);
    for (int i = 0; !w->ended && i < 50; i++)
        rpc_loop_turn(w->s.loop, 10);
}

/* Turns the loop until there are so many answers, or it ended. */
static void wait_for(world *w, size_t answers)
{
    time_t until = time(NULL) + 500;
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
    time_t until = time(NULL) + 500;
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

/* ---------------------------------------------------------------------- too early */

/* The only worker of a server, which is held until it is let go. */
typedef struct held_worker {
    job job;
    sem_t has_it, let_go;
} held_worker;

static void be_held(job *j)
{
    held_worker *h = (held_worker *)j;
    sem_post(&h->has_it);
    sem_wait(&h->let_go);
}

static void hold_worker(world *w, held_worker *h)
{
    memset(h, 0, sizeof *h);
    h->job.run = be_held;
    sem_init(&h->has_it, 0, 0);
    sem_init(&h->let_go, 0, 0);
    pool_put(w->s.service->pool, &h->job);
    sem_wait(&h->has_it);
}

static void let_worker_go(world *w, held_worker *h)
{
    sem_post(&h->let_go);
    while (pool_jobs(w->s.service->pool) > 0)
        rpc_loop_turn(w->s.loop, 10);
}

static size_t in_use(void)
{
    struct mallinfo2 m = mallinfo2();
    return m.uordblks + m.hblkhd;
}

static void test_what_is_asked_before_it_is_let_in_is_answered_in_its_order(void **state)
{
    held_worker h;
    world w;
    (void)state;
    world_open_with(&w, 1);
    hold_worker(&w, &h);
    for (int i = 0; i < FEW; i++)
        ask(&w, i % 3 == 1 ? LARGE : SERVICES);
    rpc_request_end(w.request);
    send_all(&w);
    assert_int_equal(w.answers, 0);
    let_worker_go(&w, &h);
    wait_for(&w, FEW + 1);
    assert_true(w.ended);
    assert_int_equal(w.code, RPC_OK);
    assert_int_equal(w.answers, FEW);
    for (int i = 0; i < FEW; i++)
        assert_int_equal(w.sizes[i] > 10000, i % 3 == 1);
    world_close(&w);
}

/* Few that are large, or many that are small: nothing of them is kept. */
static void test_who_asks_much_before_it_is_let_in_is_refused(void **state)
{
    enum { SIZE = 4000 };
    static char large[SIZE + 1];
    (void)state;
    memset(large, 'x', SIZE);
    memcpy(large, "\x1a\x9d\x1f", 3); /* file_by_filename, of SIZE - 3 bytes */
    for (int i = 0; i < 2; i++) {
        held_worker h;
        world w;
        world_open_with(&w, 1);
        hold_worker(&w, &h);
        const size_t before = in_use();
        for (int k = 0; k < (i ? 50000 : 2000); k++)
            ask(&w, i ? SERVICES : large);
        send_all(&w);
        assert_true(w.ended); /* and the worker is still held */
        assert_int_equal(w.code, RPC_RESOURCE_EXHAUSTED);
        assert_string_equal(w.status, "ELIMIT");
        assert_int_equal(w.answers, 0);
        assert_true(in_use() < before + ((size_t)1 << 20));
        let_worker_go(&w, &h);
        for (int k = 0; k < 500 && calls(&w) > 0; k++)
            rpc_loop_turn(w.s.loop, 10);
        assert_int_equal(calls(&w), 0);
        world_close(&w);
    }
}

/* ---------------------------------------------------------------------- the end */

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
    time_t until = time(NULL) + 500;
    while (calls(&w) > 0 && time(NULL) < until)
        rpc_loop_turn(w.s.loop, 10);
    assert_int_equal(calls(&w), 0);
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_who_asks_on_and_reads_nothing_is_refused),
        cmocka_unit_test(test_what_is_asked_before_it_is_let_in_is_answered_in_its_order),
        cmocka_unit_test(test_who_asks_much_before_it_is_let_in_is_refused),
        cmocka_unit_test(test_a_stream_that_is_idle_ends_with_the_server),
        cmocka_unit_test(test_what_is_no_request_ends_the_stream),
        cmocka_unit_test(test_a_client_that_goes_leaves_no_call),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
