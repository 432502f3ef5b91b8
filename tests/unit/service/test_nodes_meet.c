/*
 * test_nodes_meet.c: what takes long about other nodes holds up nobody: a server of names
 * that does not answer, a log that is written slowly.
 *
 * The test stands in for two functions of the system: getaddrinfo() and write().
 */
#include <dlfcn.h>
#include <netdb.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "support/postgres.h"
#include "unit/service/lines.h"
#include "unit/service/trio.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cjson/cJSON.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

/* ---------------------------------------------------------------------- the system */

#define SLOW "slow.test"

static atomic_int looked_up, answered;

/* A server of names that says nothing of one name. */
int getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                struct addrinfo **out)
{
    int (*next)(const char *, const char *, const struct addrinfo *, struct addrinfo **);
    *(void **)&next = dlsym(RTLD_NEXT, "getaddrinfo");
    if (!name || strcmp(name, SLOW) != 0 || (hints && hints->ai_flags & AI_NUMERICHOST))
        return next(name, service, hints, out);
    atomic_fetch_add(&looked_up, 1);
    while (!atomic_load(&answered))
        usleep(1000);
    return EAI_AGAIN;
}

static nodes *_Atomic watched;
static atomic_int log_fd, written, locked;

/* Lines of the log: does their writer hold what loops take? */
ssize_t write(int fd, const void *data, size_t size)
{
    nodes *n = atomic_load(&watched);
    struct timespec until;
    if (n && fd == atomic_load(&log_fd)) {
        atomic_fetch_add(&written, 1);
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_sec += 2;
        if (pthread_mutex_timedlock(&n->mutex, &until) == 0)
            pthread_mutex_unlock(&n->mutex);
        else
            atomic_fetch_add(&locked, 1);
    }
    return syscall(SYS_write, fd, data, size);
}

/* ---------------------------------------------------------------------- tests */

static void add_node(const trio *t, const char *name, const char *address)
{
    char sql[400];
    snprintf(sql, sizeof sql,
             "INSERT INTO \"%s\".nodes VALUES ('%s', 5, '%s', '1', now(), "
             "clock_timestamp() + interval '60 s', 0, 0)",
             postgres_schema(t->place), name, address);
    free(postgres_sql(t->place, sql));
}

static void a_name_that_is_not_found_for_long_keeps_nobody_waiting(void **state)
{
    trio t;
    reply r = {0};
    (void)state;
    trio_open(&t, NULL, NULL, 0);
    trio_settled(&t, "s", -1);
    add_node(&t, "slow", SLOW ":7071");
    for (int i = 0; i < 500 && atomic_load(&looked_up) < TRIO; i++)
        trio_turn(&t, 20);
    assert_int_equal(atomic_load(&looked_up), TRIO);
    for (int i = 0; i < TRIO; i++)
        assert_int_equal(trio_append(&t, i, "s", "meanwhile", &r), RPC_OK);
    trio_turn(&t, LEASE_MS);
    for (int i = 0; i < TRIO; i++) {
        assert_int_equal(nodes_owning(t.nodes[i].service->nodes), 1);
        assert_int_equal(trio_append(&t, i, "s", "and later", &r), RPC_OK);
    }
    atomic_store(&answered, 1);
    trio_close(&t);
}

/* Other nodes are met while one is not found. */
static void who_could_not_be_found_is_looked_up_again(void **state)
{
    trio t;
    (void)state;
    atomic_store(&answered, 1);
    atomic_store(&looked_up, 0);
    trio_open(&t, NULL, NULL, 0);
    add_node(&t, "slow", SLOW ":7071");
    for (int i = 0; i < 1500 && atomic_load(&looked_up) < 2 * TRIO; i++)
        trio_turn(&t, 20);
    assert_true(atomic_load(&looked_up) >= 2 * TRIO);
    trio_settled(&t, "s", -1);
    trio_close(&t);
}

static void a_line_is_not_written_while_loops_are_kept_out(void **state)
{
    service_settings settings;
    lines l;
    trio t;
    (void)state;
    lines_open(&l);
    settings = (service_settings){.log = {.fd = l.in}};
    trio_open(&t, NULL, &settings, 0);
    trio_settled(&t, "s", -1);
    atomic_store(&log_fd, l.in);
    atomic_store(&watched, t.nodes[0].service->nodes);
    trio_stop(&t, 2);
    cJSON_Delete(lines_wait(&l, "A node left"));
    cJSON_Delete(lines_wait(&l, "A node left")); /* each of the others says so */
    atomic_store(&watched, NULL);
    assert_true(atomic_load(&written) > 0);
    assert_int_equal(atomic_load(&locked), 0);
    trio_close(&t);
    lines_close(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_is_not_found_for_long_keeps_nobody_waiting),
        cmocka_unit_test(who_could_not_be_found_is_looked_up_again),
        cmocka_unit_test(a_line_is_not_written_while_loops_are_kept_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
