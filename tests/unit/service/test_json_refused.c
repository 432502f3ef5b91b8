/*
 * test_json_refused.c: large requests of JSON by clients that nobody knows: each is
 * refused, they cost what their bodies have, and others are served meanwhile.
 */
#include "slow.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "sessile_access.h"
#include "sessile_guard.h"
#include "support/runs.h"
#include "unit/rpc/wire.h"

enum { CLIENTS = 8 }; /* each must have sent its request within 10 s of its beginning */
#define BODY (7 * MIB)

typedef struct world {
    sessile_store *store;
    serving s;
    char *key;
    char bearer[300];
    rpc_header as[2];
} world;

static void world_open(world *w)
{
    const char *editor = "editor";
    sessile_guard_options guard;
    sessile_access_key_options key;
    service_settings settings;
    sessile_error err;
    memset(w, 0, sizeof *w);
    memset(&settings, 0, sizeof settings);
    w->store = run_store("ram:");
    sessile_guard_options_init(&guard);
    if (sessile_store_guard(w->store, &guard, &err))
        fail_msg("%s", err.message);
    sessile_access_key_options_init(&key);
    key.user = sessile_text("ann");
    key.roles = &editor;
    key.role_count = 1;
    if (sessile_access_key(w->store, &key, &w->key, &err))
        fail_msg("%s", err.message);
    snprintf(w->bearer, sizeof w->bearer, "Bearer %s", w->key);
    w->as[0] = (rpc_header){"authorization", w->bearer};
    settings.guarded = 1;
    serving_start(&w->s, w->store, &settings);
    w->s.headers = w->as;
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = names_of("s");
    serve_ok(&w->s, "CreateSession", &r);
}

static void world_close(world *w)
{
    serving_stop(&w->s);
    sessile_free(w->key);
    sessile_store_close(w->store);
}

/* ---------------------------------------------------------------------- the peak */

static struct {
    atomic_int over;
    size_t most;
    pthread_t thread;
} peak;

static void *watch_memory(void *arg)
{
    (void)arg;
    while (!atomic_load(&peak.over)) {
        const size_t now = in_use();
        peak.most = now > peak.most ? now : peak.most;
        usleep(500);
    }
    return NULL;
}

static void peak_begin(void)
{
    atomic_store(&peak.over, 0);
    peak.most = 0;
    assert_int_equal(pthread_create(&peak.thread, NULL, watch_memory, NULL), 0);
}

static size_t peak_end(void)
{
    atomic_store(&peak.over, 1);
    pthread_join(peak.thread, NULL);
    return peak.most;
}

/* ---------------------------------------------------------------------- clients */

/* A body of 7 MiB: `begin`, as many x as it takes, `end`. */
static char *body_of(const char *begin, const char *end)
{
    char *body = malloc(BODY);
    assert_non_null(body);
    memset(body, 'x', BODY);
    memcpy(body, begin, strlen(begin));
    memcpy(body + BODY - strlen(end), end, strlen(end));
    return body;
}

/* All of a request but its last byte. */
static int begin_request(const world *w, const char *path, const char *body)
{
    char head[300];
    int fd = wire_open(service_address(w->s.service));
    int size = snprintf(head, sizeof head,
                        "POST %s HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Type: application/json\r\n"
                        "Authorization: Bearer sesk_nobody\r\n"
                        "Content-Length: %zu\r\n\r\n",
                        path, BODY);
    assert_int_equal(wire_send(fd, head, (size_t)size), 0);
    assert_int_equal(wire_send(fd, body, BODY - 1), 0);
    return fd;
}

static void is_refused(int fd)
{
    char reply[2000] = "";
    size_t got = 0;
    int ended = 0;
    for (int i = 0; i < 600 && !ended && !strstr(reply, "\"EDENIED\""); i++)
        got += wire_read(fd, reply + got, sizeof reply - got, 100, &ended);
    assert_memory_equal(reply, "HTTP/1.1 401 ", 13);
    assert_non_null(strstr(reply, "\"code\":\"unauthenticated\""));
    close(fd);
}

static void ask_all(world *w, const char *path, char *body)
{
    int fds[CLIENTS];
    const size_t before = in_use();
    peak_begin();
    for (int i = 0; i < CLIENTS; i++)
        fds[i] = begin_request(w, path, body);
    append_by(&w->s, "s", "others are served");
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(wire_send(fds[i], body + BODY - 1, 1), 0);
    append_by(&w->s, "s", "also while they are refused");
    for (int i = 0; i < CLIENTS; i++)
        is_refused(fds[i]);
    const size_t most = peak_end() - before;
    print_message("%d requests of 7 MiB to %s: %zu MiB\n", CLIENTS, path, most / MIB);
    assert_true(most < CLIENTS * 2 * BODY);
    for (int i = 0; i < 500 && in_use() > before + 8 * MIB; i++)
        rpc_loop_turn(w->s.loop, 10);
    assert_true(in_use() <= before + 8 * MIB); /* and nothing of it is left */
    free(body);
}

static void test_large_requests_of_nobody_are_refused(void **state)
{
    world w;
    (void)state;
    world_open(&w);
    ask_all(&w, "/sessile.v1.SessionService/AppendMessage",
            body_of("{\"session\":{\"id\":\"s\"},\"message\":{\"role\":\"user\","
                    "\"content\":\"",
                    "\"}}"));
    world_close(&w);
}

static void test_large_requests_for_events_of_nobody_are_refused(void **state)
{
    world w;
    (void)state;
    world_open(&w);
    ask_all(&w, "/v1/events", body_of("{\"session\":{\"id\":\"", "\"}}"));
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_requests_of_nobody_are_refused),
        cmocka_unit_test(test_large_requests_for_events_of_nobody_are_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
