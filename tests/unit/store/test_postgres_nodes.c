/*
 * test_postgres_nodes.c: leases of nodes in a PostgreSQL database: who is alive, two
 * nodes of one name, a server that is killed and started again, a role that may not
 * write.
 *
 * Own stores: each is a schema of a PostgreSQL server.
 */
#include <arpa/inet.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "store/nodes.h"
#include "support/check.h"
#include "support/postgres_stores.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { LEASE = 2000, TIMEOUT = 5000 };

typedef struct scene {
    char *place;
    store store;
    store_nodes *conns[4]; /* one a node */
} scene;

static void scene_open(scene *s, const char *url)
{
    sessile_error err;
    s->place = postgres_place(url);
    s->store = store_at(s->place);
    for (int i = 0; i < 4; i++)
        must(store_nodes_open(&s->conns[i], &s->store, &err), &err);
}

static void scene_close(scene *s)
{
    for (int i = 0; i < 4; i++)
        store_nodes_close(s->conns[i]);
    store_close(&s->store);
    postgres_drop(s->place);
}

static store_node node_called(const char *name, uint64_t incarnation)
{
    store_node n = {.incarnation = incarnation, .sessions = 3, .calls = 7};
    snprintf(n.name, sizeof n.name, "%s", name);
    snprintf(n.address, sizeof n.address, "10.0.0.1:%s", name);
    strcpy(n.version, "1.2.3");
    return n;
}

static store_beat beat(scene *s, int i, const store_node *own, int lease)
{
    sessile_error err;
    store_beat out;
    must(store_nodes_beat(s->conns[i], own, lease, TIMEOUT, 0, &out, &err), &err);
    return out;
}

static void the_living_find_each_other(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, postgres_needed()->url);
    store_node a = node_called("a", 1), b = node_called("b", 2), c = node_called("c", 3);
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 0); /* nobody else, and not itself */
    assert_int_equal(beat(&s, 1, &b, LEASE).count, 1);
    beat(&s, 2, &c, LEASE);
    store_beat seen = beat(&s, 0, &a, LEASE);
    assert_int_equal(seen.count, 2);
    assert_string_equal(seen.others[0].name, "b");
    assert_string_equal(seen.others[0].address, "10.0.0.1:b");
    assert_string_equal(seen.others[1].name, "c");
    assert_string_equal(seen.others[1].version, "1.2.3");
    assert_int_equal(seen.others[1].calls, 7);
    assert_int_equal(seen.others[1].sessions, 3);
    assert_in_range(seen.others[1].left_ms, 1, LEASE);
    scene_close(&s);
}

static void who_does_not_beat_is_dead_by_the_database_s_clock(void **state)
{
    scene s;
    sessile_error err;
    store_node *all;
    size_t count;
    (void)state;
    scene_open(&s, postgres_needed()->url);
    store_node a = node_called("a", 1), b = node_called("b", 2);
    beat(&s, 1, &b, 300);
    usleep(350000);
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 0);
    /* the list has it all the same, and says that it is dead */
    must(store_nodes_list(&s.store, &all, &count, &allocator_default, &err), &err);
    assert_int_equal(count, 2);
    assert_string_equal(all[1].name, "b");
    assert_true(all[1].left_ms <= 0);
    assert_true(all[0].left_ms > 0);
    assert_true(all[0].started_ms > 1500000000000);
    host_free(all);
    beat(&s, 1, &b, LEASE); /* it woke up */
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 1);
    scene_close(&s);
}

static void who_leaves_is_gone_at_once(void **state)
{
    scene s;
    sessile_error err;
    (void)state;
    scene_open(&s, postgres_needed()->url);
    store_node a = node_called("a", 1), b = node_called("b", 2);
    store_node another = node_called("b", 9);
    beat(&s, 1, &b, LEASE);
    must(store_nodes_leave(s.conns[1], &another, TIMEOUT, &err), &err);
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 1); /* that was not its row */
    must(store_nodes_leave(s.conns[1], &b, TIMEOUT, &err), &err);
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 0);
    scene_close(&s);
}

static void two_of_one_name_are_refused(void **state)
{
    scene s;
    sessile_error err;
    store_beat out;
    (void)state;
    scene_open(&s, postgres_needed()->url);
    store_node first = node_called("a", 1), second = node_called("a", 2);
    beat(&s, 0, &first, 500);
    assert_refused(store_nodes_beat(s.conns[1], &second, LEASE, TIMEOUT, 0, &out, &err),
                   SESSILE_EXISTS, &err, "\"a\"");
    beat(&s, 0, &first, 500); /* the first one goes on */
    usleep(550000);
    beat(&s, 1, &second, LEASE); /* it died, and this one was started in its place */
    assert_refused(store_nodes_beat(s.conns[0], &first, LEASE, TIMEOUT, 0, &out, &err),
                   SESSILE_EXISTS, &err, "\"a\"");
    scene_close(&s);
}

static void rows_of_the_long_dead_are_removed(void **state)
{
    scene s;
    sessile_error err;
    store_node *all;
    size_t count;
    char sql[300];
    (void)state;
    scene_open(&s, postgres_needed()->url);
    store_node a = node_called("a", 1), b = node_called("b", 2);
    beat(&s, 1, &b, LEASE);
    snprintf(sql, sizeof sql,
             "UPDATE \"%s\".nodes SET until = now() - interval '2 hours'",
             postgres_schema(s.place));
    free(postgres_sql(s.place, sql));
    beat(&s, 0, &a, LEASE);
    must(store_nodes_list(&s.store, &all, &count, &allocator_default, &err), &err);
    assert_int_equal(count, 1);
    assert_string_equal(all[0].name, "a");
    host_free(all);
    scene_close(&s);
}

/* What others wrote into the table is not believed to be an address. */
static void rows_with_odd_texts_are_left_out(void **state)
{
    scene s;
    char sql[300];
    (void)state;
    scene_open(&s, postgres_needed()->url);
    store_node a = node_called("a", 1), b = node_called("b", 2);
    beat(&s, 1, &b, LEASE);
    snprintf(sql, sizeof sql, "UPDATE \"%s\".nodes SET address = E'10.0.0.1:1\\r\\nx: y'",
             postgres_schema(s.place));
    free(postgres_sql(s.place, sql));
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 0);
    scene_close(&s);
}

typedef struct racer {
    scene *s;
    int i;
} racer;

static void *race(void *arg)
{
    racer *r = arg;
    char name[2] = {(char)('a' + r->i), 0};
    store_node own = node_called(name, (uint64_t)r->i + 1);
    for (int n = 0; n < 30; n++)
        beat(r->s, r->i, &own, LEASE);
    return NULL;
}

/* Four that find no table make it once, and none is in the way of another. */
static void all_begin_at_once(void **state)
{
    scene s;
    pthread_t threads[4];
    racer racers[4];
    (void)state;
    scene_open(&s, postgres_needed()->url);
    for (int i = 0; i < 4; i++) {
        racers[i] = (racer){&s, i};
        assert_int_equal(pthread_create(&threads[i], NULL, race, &racers[i]), 0);
    }
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    store_node a = node_called("a", 1);
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 3);
    scene_close(&s);
}

static void a_beat_needs_no_connection_of_the_pool(void **state)
{
    scene s;
    sessile_error err;
    (void)state;
    scene_open(&s, postgres_needed()->url);
    pg_store *ps = s.store.self;
    pg_call call = pg_call_of(ps, 30000);
    pg_conn *taken[64];
    assert_true(ps->url.pool <= 64);
    store_node a = node_called("a", 1);
    beat(&s, 0, &a, LEASE); /* the table is made through the pool */
    for (int i = 0; i < ps->url.pool; i++)
        must(pg_take(&call, &taken[i], &err), &err);
    beat(&s, 0, &a, LEASE);
    for (int i = 0; i < ps->url.pool; i++)
        pg_give(ps, taken[i]);
    scene_close(&s);
}

static void the_server_is_killed_and_started_again(void **state)
{
    const char *why;
    sessile_error err;
    store_beat out;
    scene s;
    (void)state;
    (void)postgres_needed();
    postgres_server *own = postgres_own(&why);
    if (!own) {
        print_message("# %s\n", why);
        skip();
        return;
    }
    scene_open(&s, own->url);
    store_node a = node_called("a", 1), b = node_called("b", 2);
    beat(&s, 0, &a, LEASE);
    beat(&s, 1, &b, LEASE);
    assert_int_equal(postgres_do(own, "kill"), 0);
    assert_refused(store_nodes_beat(s.conns[0], &a, LEASE, 300, 0, &out, &err),
                   SESSILE_IO, &err, "");
    assert_int_equal(postgres_do(own, "again"), 0);
    /* unlogged: after a crash it is empty, and fills again */
    assert_int_equal(beat(&s, 0, &a, LEASE).count, 0);
    assert_int_equal(beat(&s, 1, &b, LEASE).count, 1);
    scene_close(&s);
    postgres_own_free(own);
}

static void a_beat_that_waits_is_stopped(void **state)
{
    scene s;
    sessile_error err;
    store_beat out;
    (void)state;
    scene_open(&s, postgres_needed()->url);
    store_node a = node_called("a", 1);
    beat(&s, 0, &a, LEASE);
    store_nodes_stop(s.conns[0]);
    (void)store_nodes_beat(s.conns[0], &a, LEASE, TIMEOUT, 0, &out, &err);
    must(store_nodes_leave(s.conns[0], &a, TIMEOUT, &err), &err);
    assert_int_equal(beat(&s, 1, &a, LEASE).count, 0);
    scene_close(&s);
}

/* Takes connections, and says nothing. */
static int silent_port(int *port)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000001)};
    socklen_t size = sizeof in;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&in, size) | listen(fd, 20), 0);
    assert_int_equal(getsockname(fd, (struct sockaddr *)&in, &size), 0);
    *port = ntohs(in.sin_port);
    return fd;
}

/* The machine of a primary that died sends nothing. A beat has less time than it takes to
 * give that host up, and the one after it begins with the other. */
static void a_silent_host_is_not_asked_first_for_ever(void **state)
{
    scene s;
    int port, silent = silent_port(&port);
    char *url = strdup(postgres_needed()->tcp), *several = malloc(strlen(url) + 100);
    const char *host = strchr(url, '@') + 1;
    sessile_error err;
    store_beat out;
    (void)state;
    sprintf(several, "%.*s127.0.0.1:%d,%s?connect_timeout=2", (int)(host - url), url,
            port, host);
    scene_open(&s, several);
    ((pg_store *)s.store.self)->server.host = 0; /* it was the primary */
    /* no beat has the time for two hosts */
    store_node a = node_called("a", 1);
    sessile_status status = SESSILE_IO;
    for (int i = 0; status && i < 4; i++)
        status = store_nodes_beat(s.conns[0], &a, LEASE, 1000, 0, &out, &err);
    must(status, &err);
    scene_close(&s);
    close(silent);
    free(several);
    free(url);
}

static void only_a_database_server_has_nodes(void **state)
{
    store_node *all;
    store_nodes *nodes;
    size_t count;
    sessile_error err;
    store ram = {0};
    (void)state;
    assert_refused(store_nodes_open(&nodes, &ram, &err), SESSILE_UNSUPPORTED, &err,
                   "PostgreSQL");
    assert_refused(store_nodes_list(&ram, &all, &count, &allocator_default, &err),
                   SESSILE_UNSUPPORTED, &err, "PostgreSQL");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_living_find_each_other),
        cmocka_unit_test(who_does_not_beat_is_dead_by_the_database_s_clock),
        cmocka_unit_test(who_leaves_is_gone_at_once),
        cmocka_unit_test(two_of_one_name_are_refused),
        cmocka_unit_test(rows_of_the_long_dead_are_removed),
        cmocka_unit_test(rows_with_odd_texts_are_left_out),
        cmocka_unit_test(all_begin_at_once),
        cmocka_unit_test(a_beat_needs_no_connection_of_the_pool),
        cmocka_unit_test(the_server_is_killed_and_started_again),
        cmocka_unit_test(a_beat_that_waits_is_stopped),
        cmocka_unit_test(a_silent_host_is_not_asked_first_for_ever),
        cmocka_unit_test(only_a_database_server_has_nodes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
