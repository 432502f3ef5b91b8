/*
 * test_nodes_told.c: what a node tells its operator of the others and of the database:
 * who joins and leaves, its lease lost and back, standbys that are missing.
 *
 * Own stores: each is a schema of a PostgreSQL server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/postgres.h"
#include "unit/service/lines.h"
#include "unit/service/trio.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cjson/cJSON.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

static service_settings settings;
static lines l;

static int set_up(void **state)
{
    (void)state;
    lines_open(&l);
    settings = (service_settings){.log = {.fd = l.in}};
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    lines_close(&l);
    return 0;
}

/* The line has to be of that level and have that text in a field; "": any. */
static void told(const char *message, const char *level, const char *field,
                 const char *text)
{
    cJSON *line = lines_wait(&l, message);
    assert_string_equal(line_field(line, "level"), level);
    if (*field && !strstr(line_field(line, field), text))
        fail_msg("%s: %s is \"%s\"", message, field, line_field(line, field));
    cJSON_Delete(line);
}

static void nodes_that_join_and_leave_are_told(void **state)
{
    trio t;
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    trio_stop(&t, 0);
    rpc_channel_close(t.nodes[0].channel);
    service_close(t.nodes[0].service);
    trio_start(&t, 0, &settings, 0); /* alone, it tells */
    told("The server began to serve.", "info", "others", "2");
    trio_stop(&t, 2);
    told("A node left", "warn", "node", "node2");
    rpc_channel_close(t.nodes[2].channel);
    service_close(t.nodes[2].service);
    trio_start(&t, 2, NULL, 0);
    told("A node joined.", "info", "address", trio_address(&t, 2));
    trio_close(&t);
}

static void a_lease_that_is_lost_is_told_once_and_when_it_is_back(void **state)
{
    const char *why;
    trio t;
    (void)state;
    if (!postgres_shared(&why)) {
        print_message("# %s\n", why);
        skip();
    }
    postgres_server *own = postgres_own(&why);
    assert_non_null(own);
    trio_open(&t, own->url, &settings, 0);
    assert_int_equal(postgres_do(own, "kill"), 0);
    for (int i = 0; i < TRIO; i++)
        told("The lease of this node was lost", "error", "why", "");
    assert_int_equal(postgres_do(own, "again"), 0);
    for (int i = 0; i < TRIO; i++)
        told("This node has its lease again.", "info", "seconds", "");
    assert_int_equal(lines_count(&l, "The lease of this node was lost"), TRIO);
    trio_close(&t);
    assert_null(strstr(l.text, "password"));
    postgres_own_free(own);
}

static void standbys_that_are_missing_are_told(void **state)
{
    trio t;
    (void)state;
    settings.nodes.replicas = 1;
    trio_open(&t, NULL, &settings, 0);
    told("Fewer standbys than serve.replicas", "warn", "wanted", "1");
    trio_close(&t);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(nodes_that_join_and_leave_are_told),
        TEST(a_lease_that_is_lost_is_told_once_and_when_it_is_back),
        TEST(standbys_that_are_missing_are_told),
    };
    return cmocka_run_group_tests_name("what nodes tell", tests, NULL, NULL);
}
