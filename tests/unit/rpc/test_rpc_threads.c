/*
 * test_rpc_threads.c: replies from many threads, at the same time as the loop, as clients
 * that go away, and as a loop that ends. Made for ThreadSanitizer: it starts no programs.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "unit/rpc/caller.h"
#include "unit/rpc/echo.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { WORKERS = 4, CLIENTS = 3, CALLS = 60 };

/* ---- a service whose calls are answered by workers */

typedef struct pool {
    pthread_mutex_t lock;
    pthread_cond_t more;
    rpc_call *waiting[4096];
    size_t first, last;
    int stop;
    atomic_int gone, begun;
} pool;

static void begun(void *ud, rpc_call *call)
{
    pool *p = ud;
    atomic_fetch_add(&p->begun, 1);
    rpc_call_keep(call);
    pthread_mutex_lock(&p->lock);
    p->waiting[p->last++ % 4096] = call;
    pthread_cond_signal(&p->more);
    pthread_mutex_unlock(&p->lock);
}

static void message(void *ud, rpc_call *call, const void *data, size_t size)
{
    (void)ud;
    (void)call;
    (void)data;
    (void)size;
}

static void ended(void *ud, rpc_call *call)
{
    (void)ud;
    (void)call;
}

static void gone(void *ud, rpc_call *call, rpc_gone why)
{
    pool *p = ud;
    (void)call;
    (void)why;
    atomic_fetch_add(&p->gone, 1);
}

static const rpc_service pooled = {begun, message, ended, NULL, gone};

/* Says all that can be said of a call. */
static void *work(void *arg)
{
    pool *p = arg;
    for (;;) {
        rpc_header trailer = {"x-path", NULL};
        rpc_call *call;
        pthread_mutex_lock(&p->lock);
        while (p->first == p->last && !p->stop)
            pthread_cond_wait(&p->more, &p->lock);
        if (p->first == p->last) {
            pthread_mutex_unlock(&p->lock);
            return NULL;
        }
        call = p->waiting[p->first++ % 4096];
        pthread_mutex_unlock(&p->lock);
        trailer.value = rpc_call_path(call);
        rpc_call_pause(call, 1);
        for (int i = 0; i < 5 && !rpc_call_over(call); i++)
            rpc_send(call, "some data", 9);
        (void)rpc_unsent(call);
        rpc_call_pause(call, 0);
        rpc_finish(call, RPC_OK, "done", &trailer, 1);
        rpc_send(call, "too late", 8);
        rpc_call_drop(call);
    }
}

static void *run(void *arg)
{
    rpc_loop_run(arg);
    return NULL;
}

/* ---- clients, each with a loop of its own */

typedef struct caller {
    const char *address;
    int impatient; /* cancels some, and leaves with others */
    int right;
} caller;

static void *call_all(void *arg)
{
    caller *c = arg;
    rpc_loop *loop;
    rpc_channel *channel;
    answer *all = calloc(CALLS, sizeof *all);
    if (rpc_loop_open(&loop, NULL, NULL, NULL) ||
        rpc_channel_open(&channel, loop, c->address, NULL, NULL, NULL))
        return NULL;
    for (int i = 0; i < CALLS; i++) {
        rpc_request_open(&all[i].request, channel, "/t.Pool/Work", NULL, 0,
                         c->impatient ? clock_us() + 3000 * (uint64_t)(i % 7 + 1)
                                      : UINT64_MAX,
                         &answer_replies, &all[i], NULL);
        if (all[i].request)
            rpc_request_send(all[i].request, "question", 8);
        if (all[i].request)
            rpc_request_end(all[i].request);
        rpc_loop_turn(loop, 0);
        if (c->impatient && i % 5 == 0 && all[i].request)
            rpc_request_cancel(all[i].request);
    }
    for (int i = 0; i < CALLS && !c->impatient; i++)
        while (!all[i].ended)
            rpc_loop_turn(loop, 100);
    rpc_channel_close(channel);
    rpc_loop_close(loop);
    for (int i = 0; i < CALLS; i++) {
        c->right += all[i].ended == 1 &&
                    (c->impatient || (all[i].code == RPC_OK && all[i].messages == 5));
        free(all[i].first);
    }
    free(all);
    return NULL;
}

static void test_workers_answer_and_clients_leave(void **state)
{
    pool p;
    rpc_loop *loops[2];
    pthread_t turning[2], workers[WORKERS], clients[CLIENTS];
    caller callers[CLIENTS];
    rpc_listener *l;
    sessile_error err;
    (void)state;

    memset(&p, 0, sizeof p);
    pthread_mutex_init(&p.lock, NULL);
    pthread_cond_init(&p.more, NULL);
    for (int i = 0; i < 2; i++)
        assert_int_equal(rpc_loop_open(&loops[i], NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(rpc_listen(&l, loops, 2, "127.0.0.1:0", NULL, &pooled, &p, &err),
                     SESSILE_OK);
    for (int i = 0; i < 2; i++)
        pthread_create(&turning[i], NULL, run, loops[i]);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&workers[i], NULL, work, &p);
    for (int i = 0; i < CLIENTS; i++) {
        callers[i] = (caller){rpc_listener_address(l), i > 0, 0};
        pthread_create(&clients[i], NULL, call_all, &callers[i]);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i], NULL);
        assert_int_equal(callers[i].right, CALLS);
    }
    rpc_listener_drain(l);
    (void)rpc_loop_look(loops[0]);
    for (int i = 0; i < 2; i++)
        rpc_loop_stop(loops[i]);
    for (int i = 0; i < 2; i++)
        pthread_join(turning[i], NULL);
    /* The loops end while workers may still hold calls of them. */
    rpc_listener_close(l);
    for (int i = 0; i < 2; i++)
        rpc_loop_close(loops[i]);
    pthread_mutex_lock(&p.lock);
    p.stop = 1;
    pthread_cond_broadcast(&p.more);
    pthread_mutex_unlock(&p.lock);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(workers[i], NULL);
    assert_int_equal(p.begun, p.gone);
}

/* ---- posting */

static void count(void *arg)
{
    ++*(int *)arg; /* on the loop's thread alone */
}

typedef struct poster {
    rpc_loop *loop;
    int *n;
} poster;

static void *post_all(void *arg)
{
    poster *p = arg;
    for (int i = 0; i < 1000; i++)
        rpc_loop_post(p->loop, count, p->n);
    return NULL;
}

static void test_all_posts_arrive(void **state)
{
    rpc_loop *loop;
    sessile_error err;
    pthread_t threads[WORKERS];
    int n = 0;
    poster p;
    (void)state;
    assert_int_equal(rpc_loop_open(&loop, NULL, NULL, &err), SESSILE_OK);
    p = (poster){loop, &n};
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, post_all, &p);
    while (n < WORKERS * 1000)
        rpc_loop_turn(loop, -1);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    rpc_loop_close(loop);
    assert_int_equal(n, WORKERS * 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workers_answer_and_clients_leave),
        cmocka_unit_test(test_all_posts_arrive),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
