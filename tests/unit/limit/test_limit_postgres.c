/*
 * test_limit_postgres.c: windows in a PostgreSQL database: nodes that share it, that make
 * the table at once, that are killed; a server that is killed and started again; a role
 * that may not make the table.
 *
 * Own stores: each is a schema of a PostgreSQL server.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/limits.h"
#include "support/postgres_stores.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { HANDLES = 3 };

typedef struct scene {
    char *place;
    store_core *stores[HANDLES];
    limiter *limiters[HANDLES];
    uint64_t who;
} scene;

static void scene_open_at(scene *s, const char *url, const char *rate)
{
    s->place = postgres_place(url);
    for (int i = 0; i < HANDLES; i++) {
        s->stores[i] = limit_store(s->place);
        s->limiters[i] = limit_opened(s->stores[i], rate, NULL, 0);
    }
    s->who = limit_somebody(s->limiters[0], "ann");
}

static void scene_open(scene *s, const char *rate)
{
    scene_open_at(s, postgres_needed()->url, rate);
}

static void scene_close(scene *s)
{
    for (int i = 0; i < HANDLES; i++) {
        limiter_close(s->limiters[i]);
        store_handle_close(s->stores[i]);
    }
    postgres_drop(s->place);
}

static int let_through(limiter *l, uint64_t who, int tries)
{
    int n = 0;
    for (int i = 0; i < tries; i++)
        n += limit_let(l, who, NULL);
    return n;
}

static void is_not_lost(limiter *l)
{
    sessile_error why;
    if (limiter_lost(l, &why))
        fail_msg("%s", why.message);
}

static void nodes_share_one_window(void **state)
{
    scene s;
    sessile_error err = {0};
    (void)state;
    scene_open(&s, "10/hour");
    assert_int_equal(let_through(s.limiters[0], s.who, 4), 4);
    assert_int_equal(let_through(s.limiters[1], s.who, 4), 4);
    limit_taken taken;
    for (int i = 0; i < 5; i++) {
        must(limit_take(s.limiters[2], LIMIT_SEARCHES, s.who, &taken, &err), &err);
        limit_return(s.limiters[2], &taken);
    }
    assert_int_equal(let_through(s.limiters[2], s.who, 9), 2);
    assert_refused(limit_take(s.limiters[0], LIMIT_SEARCHES, s.who, NULL, &err),
                   SESSILE_LIMIT, &err, "10/hour");
    assert_in_range(err.retry_ms, 3590000, 3712500);
    assert_int_equal(let_through(s.limiters[0], limit_somebody(s.limiters[0], "bob"), 9),
                     9);
    for (int i = 0; i < HANDLES; i++)
        is_not_lost(s.limiters[i]);
    scene_close(&s);
}

static void retry_ms_is_by_the_server_s_clock(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "5/second");
    for (int round = 0; round < 3; round++) {
        int64_t retry = 0;
        while (limit_let(s.limiters[round % HANDLES], s.who, &retry))
            usleep(20000);
        assert_in_range(retry, 1, 1032);
        usleep((useconds_t)(retry + 2) * 1000);
        assert_true(limit_let(s.limiters[(round + 1) % HANDLES], s.who, NULL));
    }
    scene_close(&s);
}

static void a_client_slower_by_a_32nd_is_never_refused(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "20/second");
    for (int i = 0; i < 60; i++) {
        assert_true(limit_let(s.limiters[i % HANDLES], s.who, NULL));
        usleep(50000 * 33 / 32 + 2000);
    }
    scene_close(&s);
}

static void tries_at_random_are_never_more_than_N(void **state)
{
    scene s;
    limit_calls calls = {0};
    (void)state;
    scene_open(&s, "8/second");
    srand(7);
    for (int64_t until = limit_now_us() + 4000000; limit_now_us() < until;) {
        int64_t before = limit_now_us();
        if (limit_let(s.limiters[rand() % HANDLES], s.who, NULL))
            limit_calls_add(&calls, before, limit_now_us());
        if (rand() % 8 == 0)
            usleep((useconds_t)(rand() % 300000));
    }
    assert_true(calls.count >= 16);
    limit_calls_judge(&calls, limit_rate_of("8/second"));
    limit_calls_free(&calls);
    scene_close(&s);
}

static void processes_that_are_killed_are_N_in_total(void **state)
{
    char *place = postgres_place(postgres_needed()->url);
    limit_calls calls = {0};
    (void)state;
    store_handle_close(limit_store(place)); /* makes its name key */
    limit_processes(place, "20/second", NULL, 6, 41, 4000, &calls, NULL, NULL);
    print_message("# figure: calls let through by 6 killed processes = %zu\n",
                  calls.count);
    limit_calls_judge(&calls, limit_rate_of("20/second"));
    limit_calls_free(&calls);
    postgres_drop(place);
}

static pthread_barrier_t barrier;

static void *count_first(void *arg)
{
    limiter *l = arg;
    pthread_barrier_wait(&barrier);
    return (void *)(intptr_t)let_through(l, limit_somebody(l, "ann"), 4);
}

/* Who finds no table makes it; of several who come at once, one. */
static void the_table_is_made_once(void **state)
{
    (void)state;
    for (int round = 0; round < 5; round++) {
        scene s;
        pthread_t threads[HANDLES];
        intptr_t total = 0;
        scene_open(&s, "10/hour");
        pthread_barrier_init(&barrier, NULL, HANDLES);
        for (int i = 0; i < HANDLES; i++)
            pthread_create(&threads[i], NULL, count_first, s.limiters[i]);
        for (int i = 0; i < HANDLES; i++) {
            void *n;
            pthread_join(threads[i], &n);
            total += (intptr_t)n;
        }
        pthread_barrier_destroy(&barrier);
        assert_int_equal(total, 10);
        for (int i = 0; i < HANDLES; i++)
            is_not_lost(s.limiters[i]);
        scene_close(&s);
    }
}

static void
a_clock_that_was_set_back_keeps_nobody_out_for_more_than_a_window(void **state)
{
    scene s;
    char sql[200];
    (void)state;
    scene_open(&s, "3/second");
    assert_int_equal(let_through(s.limiters[0], s.who, 9), 3);
    snprintf(sql, sizeof sql, "UPDATE \"%s\".limits SET part = part + 1000000",
             postgres_schema(s.place));
    free(postgres_sql(postgres_needed()->url, sql));
    assert_int_equal(let_through(s.limiters[1], s.who, 9), 0);
    usleep(1040000);
    assert_int_equal(let_through(s.limiters[1], s.who, 9), 3);
    scene_close(&s);
}

/* Windows that are over are removed: the table does not grow for ever. */
static void old_windows_are_removed(void **state)
{
    scene s;
    char sql[300];
    (void)state;
    scene_open(&s, "3/second");
    assert_true(limit_let(s.limiters[0], s.who, NULL));
    snprintf(sql, sizeof sql,
             "INSERT INTO \"%s\".limits SELECT n, 1, array_fill(1, ARRAY[33]), 1"
             " FROM generate_series(1, 5000) n",
             postgres_schema(s.place));
    free(postgres_sql(postgres_needed()->url, sql));
    snprintf(sql, sizeof sql,
             "SELECT (count(*) < 5000)::text FROM \"%s\".limits WHERE ends = 1",
             postgres_schema(s.place));
    char *fewer = NULL;
    for (int i = 0; i < 40000 && !(fewer && strcmp(fewer, "true") == 0); i++) {
        (void)limit_let(s.limiters[0], (uint64_t)i * 77777 + 1, NULL);
        if (i % 500 == 499) {
            free(fewer);
            fewer = postgres_sql(postgres_needed()->url, sql);
        }
    }
    assert_non_null(fewer);
    assert_string_equal(fewer, "true");
    free(fewer);
    scene_close(&s);
}

/* An unlogged table is empty after a crash: the handle still has its calls. */
static void a_handle_has_N_while_the_server_is_restarted(void **state)
{
    static const char *const ends[] = {"crash", "stop"};
    const char *why;
    postgres_server *server = postgres_own(&why);
    scene s;
    limit_calls calls = {0};
    (void)state;
    if (!server) {
        print_message("# %s\n", why);
        skip();
    }
    scene_open_at(&s, server->url, "4/second");
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < 30; i++) {
            int64_t before = limit_now_us();
            if (limit_let(s.limiters[0], s.who, NULL))
                limit_calls_add(&calls, before, limit_now_us());
            usleep(20000);
        }
        assert_int_equal(postgres_do(server, ends[round % 2]), 0);
        assert_int_equal(postgres_do(server, "again"), 0);
    }
    assert_true(limit_let(s.limiters[1], limit_somebody(s.limiters[1], "bob"), NULL));
    is_not_lost(s.limiters[1]);
    assert_true(calls.count > 8);
    limit_calls_judge(&calls, limit_rate_of("4/second"));
    limit_calls_free(&calls);
    scene_close(&s);
    postgres_own_free(server);
}

static void who_may_not_make_the_table_has_its_own_window(void **state)
{
    scene s;
    char sql[400];
    sessile_error why;
    (void)state;
    scene_open(&s, "3/hour");
    snprintf(sql, sizeof sql, "REVOKE CREATE ON SCHEMA \"%s\" FROM CURRENT_USER",
             postgres_schema(s.place));
    free(postgres_sql(postgres_needed()->url, sql));
    assert_int_equal(let_through(s.limiters[0], s.who, 9), 3);
    assert_int_equal(limiter_lost(s.limiters[0], &why), 1);
    assert_int_equal(why.code, SESSILE_DENIED);
    scene_close(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_share_one_window),
        cmocka_unit_test(retry_ms_is_by_the_server_s_clock),
        cmocka_unit_test(a_client_slower_by_a_32nd_is_never_refused),
        cmocka_unit_test(tries_at_random_are_never_more_than_N),
        cmocka_unit_test(processes_that_are_killed_are_N_in_total),
        cmocka_unit_test(the_table_is_made_once),
        cmocka_unit_test(
            a_clock_that_was_set_back_keeps_nobody_out_for_more_than_a_window),
        cmocka_unit_test(old_windows_are_removed),
        cmocka_unit_test(a_handle_has_N_while_the_server_is_restarted),
        cmocka_unit_test(who_may_not_make_the_table_has_its_own_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
