/*
 * test_nodes_health.c: what health says: without a credential, of a node that ends, of
 * one that has lost the database; and names of nodes.
 *
 * Own stores: each is a schema of a PostgreSQL server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/health.pb-c.h"
#include "support/check.h"
#include "support/postgres.h"
#include "support/runs.h"
#include "unit/rpc/wire.h"
#include "unit/service/trio.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#define CHECK "/grpc.health.v1.Health/Check"
#define WATCH "/grpc.health.v1.Health/Watch"
enum { SERVING = 1, NOT_SERVING = 2, SERVICE_UNKNOWN = 3 };

static int status_in(reply *r)
{
    Grpc__Health__V1__HealthCheckResponse *out =
        grpc__health__v1__health_check_response__unpack(NULL, r->first_size,
                                                        (uint8_t *)r->first);
    assert_non_null(out);
    int status = (int)out->status;
    grpc__health__v1__health_check_response__free_unpacked(out, NULL);
    reply_free(r);
    return status;
}

/* Below 0: an error. */
static int check(trio *t, int i, const char *service)
{
    Grpc__Health__V1__HealthCheckRequest request =
        GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    reply r = {0};
    request.service = (char *)service;
    trio_call_as(t, i, CHECK, &request.base, "", 0, &r);
    return r.code == RPC_OK ? status_in(&r) : -(int)r.code;
}

/* What Watch says first. */
static int first_watched(trio *t, int i, const char *service)
{
    Grpc__Health__V1__HealthCheckRequest request =
        GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    reply r = {0};
    request.service = (char *)service;
    rpc_request *one = trio_begin(t, i, WATCH, &request.base, &r);
    for (int turns = 0; turns < 500 && !r.messages; turns++)
        trio_turn(t, 20);
    assert_int_equal(r.ended, 0);
    int status = status_in(&r);
    rpc_request_cancel(one);
    return status;
}

/* What GET /metrics says: sessile_ready. */
static int ready(const trio *t, int i)
{
    static const char request[] = "GET /metrics HTTP/1.1\r\nHost: localhost\r\n"
                                  "Connection: close\r\n\r\n";
    static char page[300000];
    int fd = wire_open(service_metrics_address(t->nodes[i].service));
    assert_int_equal(wire_send(fd, request, sizeof request - 1), 0);
    wire_read(fd, page, sizeof page, 10000, NULL);
    close(fd);
    const char *line = strstr(page, "\nsessile_ready ");
    assert_non_null(line);
    return atoi(line + strlen("\nsessile_ready "));
}

static void anybody_may_ask(void **state)
{
    trio t;
    (void)state;
    trio_open(&t, NULL, NULL, 1);
    assert_int_equal(check(&t, 0, ""), SERVING);
    assert_int_equal(check(&t, 1, "sessile.v1.SessionService"), SERVING);
    assert_int_equal(check(&t, 2, "replicas"), SERVING); /* none are wanted */
    trio_close(&t);
}

static void who_watches_is_told_that_a_node_ends(void **state)
{
    Grpc__Health__V1__HealthCheckRequest request =
        GRPC__HEALTH__V1__HEALTH_CHECK_REQUEST__INIT;
    trio t;
    reply r = {0}, gone = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    request.service = "";
    trio_begin(&t, 0, WATCH, &request.base, &r);
    rpc_request *one = trio_begin(&t, 0, WATCH, &request.base, &gone);
    for (int i = 0; i < 500 && !(r.messages && gone.messages); i++)
        trio_turn(&t, 20);
    trio_turn(&t, 300);
    assert_int_equal(r.messages, 1); /* at once, and then when it changes */
    assert_int_equal(status_in(&r), SERVING);
    rpc_request_cancel(one);
    reply_free(&gone);
    r.messages = 0;
    service_stop(t.nodes[0].service);
    for (int i = 0; i < 500 && !r.ended; i++)
        trio_turn(&t, 20);
    assert_int_equal(r.messages, 1);
    assert_int_equal(status_in(&r), NOT_SERVING);
    assert_int_equal(r.code, RPC_UNAVAILABLE);
    assert_int_equal(check(&t, 1, ""), SERVING);
    trio_close(&t);
}

/* A server of the records in a database, without nodes, as the first of `t`. */
static void serve_records(trio *t, const char *url)
{
    service_settings settings = {.listen = {.metrics = "127.0.0.1:0"}};
    sessile_store_options options;
    sessile_error err;
    sessile_store_options_init(&options);
    settings.services = SERVICE_RECORDS;
    settings.records.url = url;
    settings.records.options = &options;
    memset(t, 0, sizeof *t);
    must(rpc_loop_open(&t->loop, NULL, &allocator_default, &err), &err);
    t->nodes[0].store = run_store("ram:");
    trio_start(t, 0, &settings, 0);
}

static void close_one(trio *t)
{
    trio_stop(t, 0);
    rpc_channel_close(t->nodes[0].channel);
    service_close(t->nodes[0].service);
    sessile_store_close(t->nodes[0].store);
    rpc_loop_close(t->loop);
}

/* Waits until a server says that of itself. */
static void wait_for(trio *t, int status)
{
    for (int i = 0; i < 1000 && check(t, 0, "") != status; i++)
        trio_turn(t, 20);
    assert_int_equal(check(t, 0, ""), status);
    assert_int_equal(ready(t, 0), status == SERVING);
}

/* Of a service that is not there, or that another server would have, Check knows nothing;
 * Watch waits for it. */
static void services_that_are_not_there_are_unknown(void **state)
{
    static const char *const here[] = {"", "sessile.v1.RecordService",
                                       "grpc.health.v1.Health",
                                       "grpc.reflection.v1.ServerReflection"};
    static const char *const elsewhere[] = {"sessile.v1.SessionService",
                                            "sessile.v1.MemoryService",
                                            "sessile.v1.NodeService", "not.yet"};
    sessile_error err;
    trio t;
    (void)state;
    serve_records(&t, runs_folder);
    for (size_t i = 0; i < sizeof here / sizeof *here; i++) {
        assert_int_equal(check(&t, 0, here[i]), SERVING);
        assert_int_equal(first_watched(&t, 0, here[i]), SERVING);
    }
    for (size_t i = 0; i < sizeof elsewhere / sizeof *elsewhere; i++) {
        assert_int_equal(check(&t, 0, elsewhere[i]), -RPC_NOT_FOUND);
        assert_int_equal(first_watched(&t, 0, elsewhere[i]), SERVICE_UNKNOWN);
    }
    close_one(&t);
    trio sessions = {0};
    must(rpc_loop_open(&sessions.loop, NULL, &allocator_default, &err), &err);
    sessions.nodes[0].store = run_store("ram:");
    trio_start(&sessions, 0, NULL, 0);
    assert_int_equal(check(&sessions, 0, "sessile.v1.MemoryService"), SERVING);
    assert_int_equal(check(&sessions, 0, "sessile.v1.RecordService"), -RPC_NOT_FOUND);
    close_one(&sessions);
}

/* A node that answers and can serve nothing says so, and serves again; so does a server
 * of records. */
static void without_the_database_nobody_serves(void **state)
{
    service_settings settings = {.listen = {.metrics = "127.0.0.1:0"}};
    const char *why;
    trio t, records;
    (void)state;
    if (!postgres_shared(&why)) {
        print_message("# %s\n", why);
        skip();
    }
    postgres_server *own = postgres_own(&why);
    assert_non_null(own);
    trio_open(&t, own->url, &settings, 0);
    serve_records(&records, t.place);
    wait_for(&t, SERVING);
    wait_for(&records, SERVING);
    assert_int_equal(postgres_do(own, "kill"), 0);
    wait_for(&t, NOT_SERVING);
    wait_for(&records, NOT_SERVING);
    assert_int_equal(postgres_do(own, "again"), 0);
    wait_for(&t, SERVING);
    wait_for(&records, SERVING);
    trio_settled(&t, "after", -1); /* the table is there again, and all are in it */
    close_one(&records);
    trio_close(&t);
    postgres_own_free(own);
}

static void replicas_are_counted(void **state)
{
    service_settings settings = {.nodes = {.replicas = 1}};
    trio t;
    (void)state;
    trio_open(&t, NULL, &settings, 0); /* the shared server has no standby */
    assert_int_equal(check(&t, 0, "replicas"), NOT_SERVING);
    assert_int_equal(check(&t, 0, ""), SERVING); /* it can read, and write */
    trio_close(&t);
}

/* ---------------------------------------------------------------------- names */

static void two_nodes_of_one_name_are_refused(void **state)
{
    service_settings settings = {.listen = {"127.0.0.1:0"}};
    trio t;
    service *s;
    sessile_error err;
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    settings.nodes.name = "node1";
    assert_refused(service_open(&s, t.nodes[0].store, &settings, &err), SESSILE_EXISTS,
                   &err, "\"node1\"");
    settings.nodes.name = "no spaces";
    assert_refused(service_open(&s, t.nodes[0].store, &settings, &err), SESSILE_INVALID,
                   &err, "name");
    trio_close(&t);
}

static void a_node_that_was_killed_gets_its_name_back(void **state)
{
    service_settings settings = {.listen = {"127.0.0.1:0"}, .nodes = {.name = "late"}};
    trio t;
    service *s;
    sessile_error err;
    char sql[300];
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    snprintf(sql, sizeof sql,
             "INSERT INTO \"%s\".nodes VALUES ('late', 5, '10.0.0.9:1', '1', now(), "
             "clock_timestamp() + interval '1500 ms', 0, 0)",
             postgres_schema(t.place));
    free(postgres_sql(t.place, sql));
    must(service_open(&s, t.nodes[0].store, &settings, &err), &err);
    service_close(s);
    trio_close(&t);
}

static Sessile__V1__NodeList *list_nodes(trio *t, int i)
{
    Sessile__V1__Empty request = SESSILE__V1__EMPTY__INIT;
    reply r = {0};
    trio_call(t, i, "/sessile.v1.NodeService/Nodes", &request.base, 0, &r);
    if (r.code != RPC_OK)
        fail_msg("%d %s", r.code, r.message);
    Sessile__V1__NodeList *list =
        sessile__v1__node_list__unpack(NULL, r.first_size, (uint8_t *)r.first);
    assert_non_null(list);
    reply_free(&r);
    return list;
}

static void nodes_are_listed(void **state)
{
    trio t;
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    int owner = trio_settled(&t, "x", -1);
    Sessile__V1__NodeList *list = list_nodes(&t, 1);
    for (int i = 0; i < 500 && list->nodes[owner]->sessions == 0; i++) {
        sessile__v1__node_list__free_unpacked(list, NULL);
        trio_turn(&t, 20); /* its next beat tells */
        list = list_nodes(&t, 1);
    }
    assert_int_equal(list->n_nodes, TRIO);
    assert_string_equal(list->here, "node1");
    for (int i = 0; i < TRIO; i++) {
        char name[8];
        snprintf(name, sizeof name, "node%d", i);
        assert_string_equal(list->nodes[i]->name, name);
        assert_string_equal(list->nodes[i]->address, trio_address(&t, i));
        assert_true(list->nodes[i]->living);
    }
    assert_int_equal(list->nodes[owner]->sessions, 1);
    assert_true(list->nodes[owner]->calls > 0);
    sessile__v1__node_list__free_unpacked(list, NULL);
    trio_close(&t);
}

static void nodes_are_listed_for_who_may_check_the_store(void **state)
{
    Sessile__V1__Empty request = SESSILE__V1__EMPTY__INIT;
    trio t;
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 1);
    trio_call(&t, 1, "/sessile.v1.NodeService/Nodes", &request.base, 0, &r);
    assert_int_equal(r.code, RPC_PERMISSION_DENIED);
    trio_close(&t);
}

/* One server over a store without nodes works as well. */
static void a_store_without_nodes_is_served_by_one(void **state)
{
    trio t = {0};
    Sessile__V1__Empty request = SESSILE__V1__EMPTY__INIT;
    sessile_error err;
    reply r = {0};
    (void)state;
    must(rpc_loop_open(&t.loop, NULL, &allocator_default, &err), &err);
    t.nodes[0].store = run_store("ram:");
    trio_start(&t, 0, NULL, 0);
    assert_int_equal(check(&t, 0, ""), SERVING);
    trio_call(&t, 0, "/sessile.v1.NodeService/Nodes", &request.base, 0, &r);
    assert_int_equal(r.code, RPC_UNIMPLEMENTED);
    close_one(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(anybody_may_ask),
        cmocka_unit_test(who_watches_is_told_that_a_node_ends),
        cmocka_unit_test_setup_teardown(services_that_are_not_there_are_unknown,
                                        make_folder, remove_folder),
        cmocka_unit_test(without_the_database_nobody_serves),
        cmocka_unit_test(replicas_are_counted),
        cmocka_unit_test(two_nodes_of_one_name_are_refused),
        cmocka_unit_test(a_node_that_was_killed_gets_its_name_back),
        cmocka_unit_test(nodes_are_listed),
        cmocka_unit_test(nodes_are_listed_for_who_may_check_the_store),
        cmocka_unit_test(a_store_without_nodes_is_served_by_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
