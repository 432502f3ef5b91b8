/*
 * test_cluster.c: what the service stands on keeps its promises without a service: what a
 * primary acknowledged to a client on a third host is on its standby.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/cluster.h"
#include "support/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { ROWS = 20, PORT = 7071 };

/* A client on a host of its own, which writes the rows that it is told. */
typedef struct client {
    int host, to, from;
    pid_t pid;
} client;

static void work(const char *url, int in, int out)
{
    int row;
    while (read(in, &row, sizeof row) == sizeof row) {
        char sql[80], *said;
        snprintf(sql, sizeof sql, "insert into t values (%d) returning n", row);
        said = postgres_sql(url, sql);
        row = said ? row : -1;
        free(said);
        if (write(out, &row, sizeof row) != sizeof row)
            break;
    }
    _exit(0);
}

static client client_start(cluster *c)
{
    int down[2], up[2];
    client k = {.host = network_host(c->net, "client")};
    assert_int_equal(pipe2(down, O_CLOEXEC) | pipe2(up, O_CLOEXEC), 0);
    k.pid = network_fork(c->net, k.host);
    if (k.pid == 0) {
        close(down[1]);
        close(up[0]);
        work(c->url, down[0], up[1]);
    }
    close(down[0]);
    close(up[1]);
    k.to = down[1];
    k.from = up[0];
    return k;
}

static void client_end(client *k)
{
    close(k->to);
    waitpid(k->pid, NULL, 0);
    close(k->from);
}

static void ask(const client *k, int row)
{
    assert_int_equal(write(k->to, &row, sizeof row), sizeof row);
}

/* The row that was acknowledged, or -1: it was not. */
static int answer(const client *k)
{
    int row;
    assert_int_equal(read(k->from, &row, sizeof row), sizeof row);
    return row;
}

static int silent(const client *k)
{
    struct pollfd p = {.fd = k->from, .events = POLLIN};
    return poll(&p, 1, 0) == 0;
}

/* One value of the newest primary, asked beside the network. */
static void value_is(const cluster *c, const char *sql, const char *expected)
{
    char *value = postgres_sql(c->server[c->primary]->url, sql);
    assert_non_null(value);
    assert_string_equal(value, expected);
    free(value);
}

/* Waits until that many commits wait for the standby. */
static void wait_waiting(const cluster *c, const char *count)
{
    for (char *n = NULL;; usleep(5000)) {
        n = postgres_sql(
            c->server[c->primary]->admin,
            "select count(*) from pg_stat_activity where wait_event = 'SyncRep'");
        assert_non_null(n);
        int there = strcmp(n, count) == 0;
        free(n);
        if (there)
            return;
    }
}

static void what_was_acknowledged_outlives_the_primary(void **state)
{
    (void)state;
    cluster *c = cluster_needed(0);
    client k = client_start(c);
    free(postgres_sql(c->server[0]->url, "create table t (n int)"));
    for (int row = 1; row <= ROWS; row++) {
        ask(&k, row);
        assert_int_equal(answer(&k), row);
    }
    /* without the standby, a commit waits */
    network_cut(c->net, c->db[0], c->db[1]);
    ask(&k, ROWS + 1);
    wait_waiting(c, "1");
    assert_true(silent(&k));
    network_mend(c->net, c->db[0], c->db[1]);
    assert_int_equal(answer(&k), ROWS + 1);
    /* again, and the primary dies meanwhile */
    network_cut(c->net, c->db[0], c->db[1]);
    ask(&k, ROWS + 2);
    wait_waiting(c, "1");
    network_signal(c->net, c->db[0], SIGKILL);
    assert_int_equal(answer(&k), -1);
    cluster_promote(c);
    value_is(c, "select string_agg(n::text, ' ' order by n) from t",
             "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21");
    /* the client finds the new one by the same URL */
    ask(&k, ROWS + 3);
    assert_int_equal(answer(&k), ROWS + 3);
    /* and the old one becomes its standby */
    network_mend(c->net, c->db[0], c->db[1]);
    cluster_rebuild(c);
    ask(&k, ROWS + 4);
    assert_int_equal(answer(&k), ROWS + 4);
    network_isolate(c->net, c->db[0]);
    ask(&k, ROWS + 5);
    wait_waiting(c, "1");
    assert_true(silent(&k));
    network_join(c->net, c->db[0]);
    assert_int_equal(answer(&k), ROWS + 5);
    value_is(c, "select count(*) from t", "24");
    client_end(&k);
    cluster_close(c);
}

static void a_frozen_primary_goes_on_and_a_killed_one_comes_back(void **state)
{
    (void)state;
    cluster *c = cluster_needed(0);
    client k = client_start(c);
    free(postgres_sql(c->server[0]->url, "create table t (n int)"));
    ask(&k, 1);
    assert_int_equal(answer(&k), 1);
    network_signal(c->net, c->db[0], SIGSTOP);
    ask(&k, 2);
    assert_true(silent(&k));
    network_signal(c->net, c->db[0], SIGCONT);
    int second = answer(&k); /* -1: it was given up */
    assert_true(second == 2 || second == -1);
    network_signal(c->net, c->db[0], SIGKILL);
    ask(&k, 3);
    assert_int_equal(answer(&k), -1);
    assert_int_equal(postgres_do(c->server[0], "again"), 0);
    ask(&k, 4);
    assert_int_equal(answer(&k), 4);
    value_is(c, "select count(*) from t where n in (1, 4)", "2");
    client_end(&k);
    cluster_close(c);
}

/* What Redis says to a client on another host, or "" when nothing listens. */
static void ping(const redis_server *redis, int host, char out[16])
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(6379)};
    int fd = network_socket(redis->net, host, SOCK_STREAM);
    inet_pton(AF_INET, network_address(redis->net, redis->host), &in.sin_addr);
    memset(out, 0, 16);
    if (connect(fd, (struct sockaddr *)&in, sizeof in) == 0 &&
        send(fd, "PING\r\n", 6, MSG_NOSIGNAL) == 6)
        (void)!recv(fd, out, 5, MSG_WAITALL);
    close(fd);
}

static void redis_and_a_node_answer_on_hosts_of_their_own(void **state)
{
    const char *why;
    char said[16];
    (void)state;
    network *net = network_open(0, &why);
    if (!net) {
        print_message("# there is no network: %s\n", why);
        skip();
    }
    int host = network_host(net, "node1");
    redis_server *redis = redis_needed_in(net, network_host(net, "redis"));
    ping(redis, host, said);
    assert_string_equal(said, "+PONG");
    redis_kill(redis);
    ping(redis, host, said);
    assert_string_equal(said, "");
    redis_again(redis);
    ping(redis, host, said);
    assert_string_equal(said, "+PONG");

    /* any program is a node that listens */
    const char *const argv[] = {"/proc/self/exe", "listen", network_address(net, host),
                                NULL};
    service_node node = {.host = host, .port = PORT, .program = {.argv = argv}};
    for (int i = 0; i < 2; i++) {
        service_node_start(net, &node);
        assert_int_equal(service_node_end(&node, SIGTERM), 128 + SIGTERM);
    }
    assert_int_equal(service_node_end(&node, SIGTERM), 0);
    redis_free(redis);
    network_close(net);
}

/* The server itself as a node over both databases. SIGTERM ends it in order. */
static void a_server_is_killed_and_serves_again(void **state)
{
    char config[800], file[700], store[1200], program[900], listen_at[64];
    const char *build = getenv("SESSILE_BUILD");
    (void)state;
    snprintf(program, sizeof program, "%s/libexec/sessile-server",
             build ? build : "build");
    if (access(program, X_OK) != 0) {
        print_message("# there is no %s: make service\n", program);
        skip();
    }
    cluster *c = cluster_needed(0);
    int host = network_host(c->net, "node1"), client = network_host(c->net, "client");
    char *folder = folder_make();
    snprintf(listen_at, sizeof listen_at, "%s:%d", network_address(c->net, host), PORT);
    snprintf(file, sizeof file, "%s/config.lua", folder);
    FILE *out = fopen(file, "we");
    assert_non_null(out);
    fprintf(out, "return { serve = { plain = true } }\n");
    fclose(out);
    snprintf(config, sizeof config, "SESSILE_CONFIG=%s", file);
    snprintf(store, sizeof store, "SESSILE_STORE=%s", c->url);
    snprintf(file, sizeof file, "%s/log", folder);
    const char *const argv[] = {program, "serve", "--listen", listen_at, NULL};
    const char *const extra[] = {config, store, "SESSILE_KEY=a secret of this test",
                                 NULL};
    service_node node = {.host = host,
                         .port = PORT,
                         .program = {.argv = argv, .extra = extra, .log = file}};
    for (int i = 0; i < 2; i++) {
        struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
        service_node_start(c->net, &node);
        int fd = network_socket(c->net, client, SOCK_STREAM);
        inet_pton(AF_INET, network_address(c->net, host), &in.sin_addr);
        assert_int_equal(connect(fd, (struct sockaddr *)&in, sizeof in), 0);
        close(fd);
        assert_int_equal(service_node_end(&node, i ? SIGTERM : SIGKILL),
                         i ? 0 : 128 + SIGKILL);
    }
    folder_remove(folder);
    cluster_close(c);
}

/* What this program does when it is started as a node. */
static int listen_there(const char *address)
{
    struct sockaddr_in in = {.sin_family = AF_INET, .sin_port = htons(PORT)};
    int fd = socket(AF_INET, SOCK_STREAM, 0), on = 1;
    inet_pton(AF_INET, address, &in.sin_addr);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(fd, (struct sockaddr *)&in, sizeof in) || listen(fd, 5))
        return 1;
    for (;;)
        close(accept(fd, NULL, NULL));
}

int main(int argc, char **argv)
{
    if (argc > 2 && strcmp(argv[1], "listen") == 0)
        return listen_there(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_acknowledged_outlives_the_primary),
        cmocka_unit_test(a_frozen_primary_goes_on_and_a_killed_one_comes_back),
        cmocka_unit_test(redis_and_a_node_answer_on_hosts_of_their_own),
        cmocka_unit_test(a_server_is_killed_and_serves_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
