/*
 * test_proxy.c: the network that the tests of connections cut: it does to a plain client
 * of the server what it is told, so that what they see is the engine's doing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "support/postgres.h"
#include "support/proxy.h"

typedef struct line {
    const postgres_server *server;
    proxy *p;
    char *url; /* through it, unencrypted: the same bytes each time */
} line;

static int line_open(void **state)
{
    const char *why;
    line *l = calloc(1, sizeof *l);
    *state = l;
    l->server = postgres_shared(&why);
    if (!l->server) {
        print_message("# %s\n", why);
        return 0;
    }
    char plain[600];
    l->p = proxy_open(proxy_port_of(l->server->tcp));
    snprintf(plain, sizeof plain, "%s?sslmode=disable", l->server->tcp);
    l->url = proxy_url(l->p, plain);
    free(postgres_sql(l->server->url, "drop table if exists proxied"));
    free(postgres_sql(l->server->url, "create table proxied (n int)"));
    return 0;
}

static int line_close(void **state)
{
    line *l = *state;
    proxy_close(l->p);
    if (l->server)
        free(postgres_sql(l->server->url, "drop table proxied"));
    free(l->url);
    free(l);
    return 0;
}

static line *opened(void **state)
{
    line *l = *state;
    if (!l->server)
        skip();
    return l;
}

static int rows(const line *l)
{
    char *n = postgres_sql(l->server->url, "select count(*) from proxied");
    int count = atoi(n);
    free(n);
    return count;
}

static int insert(const line *l)
{
    char *done = postgres_sql(l->url, "insert into proxied values (1)");
    int ok = done != NULL;
    free(done);
    return ok;
}

/* Every place in the exchange: the row is there when the server got the whole statement,
 * and the client knows it when it got the whole answer. */
static void a_cut_anywhere_is_seen_and_costs_what_it_must(void **state)
{
    line *l = opened(state);
    uint64_t before[2] = {proxy_bytes(l->p, 0), proxy_bytes(l->p, 1)};
    unsigned known = 0, written = 0;
    assert_true(insert(l));
    assert_int_equal(rows(l), 1);
    const uint64_t sizes[2] = {proxy_bytes(l->p, 0) - before[0],
                               proxy_bytes(l->p, 1) - before[1]};
    for (int way = 0; way < 2; way++) {
        uint64_t size = sizes[way];
        assert_true(size > 50);
        for (uint64_t at = size > 40 ? size - 40 : 0; at < size; at += 3) {
            int was = rows(l);
            unsigned cuts = proxy_cuts(l->p);
            proxy_cut_after(l->p, (proxy_way)way, at);
            int ok = insert(l);
            proxy_cut_after(l->p, (proxy_way)way, UINT64_MAX);
            int now = rows(l);
            assert_true(now == was || now == was + 1);
            if (ok)
                assert_int_equal(now, was + 1);
            else
                assert_int_equal(proxy_cuts(l->p), cuts + 1);
            known += (unsigned)ok;
            written += (unsigned)(now > was);
        }
    }
    assert_true(written > known); /* the answer was cut off, not the statement */
}

static void *insert_thread(void *arg)
{
    return (void *)(intptr_t)insert(arg);
}

static void an_answer_that_is_held_back_comes_late(void **state)
{
    line *l = opened(state);
    pthread_t thread;
    void *ok;
    assert_true(insert(l));
    proxy_hold(l->p, PROXY_TO_CLIENT, 1);
    assert_int_equal(pthread_create(&thread, NULL, insert_thread, l), 0);
    assert_true(proxy_wait_held(l->p, PROXY_TO_CLIENT, 1, 60000));
    assert_int_equal(rows(l), 1);
    proxy_hold(l->p, PROXY_TO_CLIENT, 0);
    pthread_join(thread, &ok);
    assert_non_null(ok);
    assert_int_equal(rows(l), 2);
}

/* The client is gone, its statement is not. */
static void what_an_orphan_sent_arrives_in_its_time(void **state)
{
    line *l = opened(state);
    pthread_t thread;
    void *ok;
    /* the last bytes of an exchange are the statement and the farewell */
    uint64_t before = proxy_bytes(l->p, PROXY_TO_SERVER);
    assert_true(insert(l));
    uint64_t size = proxy_bytes(l->p, PROXY_TO_SERVER) - before;
    proxy_cut_after(l->p, PROXY_TO_SERVER, size - 20);
    assert_false(insert(l)); /* the cut fell into the statement */
    assert_int_equal(rows(l), 1);
    proxy_hold(l->p, PROXY_TO_SERVER, 1);
    assert_int_equal(pthread_create(&thread, NULL, insert_thread, l), 0);
    assert_true(proxy_wait_held(l->p, PROXY_TO_SERVER, 1, 60000));
    proxy_orphan(l->p, 10);
    pthread_join(thread, &ok);
    assert_null(ok);
    assert_int_equal(proxy_delivered(l->p), 0);
    assert_true(insert(l)); /* passes the moment */
    assert_int_equal(proxy_delivered(l->p), 1);
}

static void refused_is_refused_until_it_is_not(void **state)
{
    line *l = opened(state);
    proxy_refuse(l->p, 1);
    assert_false(insert(l));
    proxy_refuse(l->p, 0);
    assert_true(insert(l));
    assert_int_equal(rows(l), 1);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, line_open, line_close)
    const struct CMUnitTest tests[] = {
        EACH(a_cut_anywhere_is_seen_and_costs_what_it_must),
        EACH(an_answer_that_is_held_back_comes_late),
        EACH(what_an_orphan_sent_arrives_in_its_time),
        EACH(refused_is_refused_until_it_is_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
