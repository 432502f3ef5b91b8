/*
 * test_limits.c: a rate that three nodes share by Redis: no more calls of a user pass
 * than it has room for, wherever they arrive. While Redis is killed, frozen or cut off,
 * each call is answered all the same: two of the nodes count for themselves then, and the
 * third (`deny`) refuses. When Redis is back they share again.
 */
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/cluster.h"
#include "support/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { NODES = 3, DENIES = 2 /* the node that refuses */, MOST = 10, PORT = 7071 };

#define SECRET "a secret of this test alone, 32+ bytes"
#define KEY    "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

/* A client on a host of its own. */
typedef struct searcher {
    FILE *to, *from;
    pid_t pid;
    int users; /* each is called once: a window is a minute long */
    char user[20];
    long longest_ms;
} searcher;

typedef struct scene {
    cluster *c;
    char *folder, server[700];
    service_node node[NODES];
    char listen[NODES][64], config[NODES][700], log[NODES][700];
    const char *argv[NODES][6], *extra[NODES][4];
    char store[1200];
    searcher client;
} scene;

/* ------------------------------------------------------------------ the scene */

static void base64url(char *out, const char *text)
{
    static const char letters[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    uint32_t bits = 0;
    int n = 0;
    for (; *text; text++) {
        bits = bits << 8 | (unsigned char)*text;
        for (n += 8; n >= 6; n -= 6)
            *out++ = letters[bits >> (n - 6) & 63];
    }
    if (n > 0)
        *out++ = letters[bits << (6 - n) & 63];
    *out = '\0';
}

static void write_file(const char *path, const char *text)
{
    FILE *out = fopen(path, "we");
    assert_non_null(out);
    assert_true(fputs(text, out) >= 0);
    assert_int_equal(fclose(out), 0);
    assert_int_equal(chmod(path, 0600), 0);
}

static void write_keys(const scene *s)
{
    char path[600], secret[100], text[200];
    base64url(secret, SECRET);
    snprintf(path, sizeof path, "%s/jwks.json", s->folder);
    snprintf(text, sizeof text,
             "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"test\",\"alg\":\"HS256\",\"k\":"
             "\"%s\"}]}",
             secret);
    write_file(path, text);
}

static void prepare_node(scene *s, int i)
{
    char name[20], text[1600], path[600];
    snprintf(name, sizeof name, "node%d", i + 1);
    int host = network_host(s->c->net, name);
    snprintf(path, sizeof path, "%s/%s.lua", s->folder, name);
    snprintf(text, sizeof text,
             "return { serve = { plain = true, name = \"%s\" }, guard = { profile = "
             "\"standard\", "
             "audit = false, rate_limits = { searches = \"%d/minute\", "
             "failures = \"off\", shared = \"redis://%s:6379\", deny = %s }, "
             "identity = { token = { issuer = \"https://id.example\", "
             "audience = \"sessile\", keys = \"%s/jwks.json\" } } } }\n",
             name, MOST, network_address(s->c->net, s->c->redis->host),
             i == DENIES ? "true" : "false", s->folder);
    write_file(path, text);
    snprintf(s->listen[i], sizeof s->listen[i], "%s:%d", network_address(s->c->net, host),
             PORT);
    snprintf(s->config[i], sizeof s->config[i], "SESSILE_CONFIG=%s", path);
    snprintf(s->log[i], sizeof s->log[i], "%s/%s.log", s->folder, name);
    const char *argv[] = {s->server, "serve", "--listen", s->listen[i], NULL};
    const char *extra[] = {s->config[i], s->store, "SESSILE_KEY=" KEY, NULL};
    memcpy(s->argv[i], argv, sizeof argv);
    memcpy(s->extra[i], extra, sizeof extra);
    s->node[i] = (service_node){
        .host = host,
        .port = PORT,
        .program = {.argv = s->argv[i], .extra = s->extra[i], .log = s->log[i]}};
}

static void client_start(scene *s)
{
    const char *root = getenv("SESSILE_ROOT"), *build = getenv("SESSILE_BUILD");
    char program[600], messages[600];
    int down[2], up[2];
    snprintf(program, sizeof program, "%s/tests/service/searcher.py", root ? root : ".");
    snprintf(messages, sizeof messages, "%s/proto/service", build ? build : "build");
    assert_int_equal(pipe2(down, O_CLOEXEC) | pipe2(up, O_CLOEXEC), 0);
    int host = network_host(s->c->net, "client");
    s->client.pid = network_fork(s->c->net, host);
    if (s->client.pid == 0) {
        dup2(down[0], 0);
        dup2(up[1], 1);
        execl("/usr/bin/python3", "python3", program, messages, SECRET, s->listen[0],
              s->listen[1], s->listen[2], (char *)NULL);
        _exit(127);
    }
    close(down[0]);
    close(up[1]);
    s->client.to = fdopen(down[1], "w");
    s->client.from = fdopen(up[0], "r");
    assert_non_null(s->client.to);
    assert_non_null(s->client.from);
}

static scene *scene_new(void)
{
    const char *build = getenv("SESSILE_BUILD");
    scene *s = calloc(1, sizeof *s);
    assert_non_null(s);
    snprintf(s->server, sizeof s->server, "%s/libexec/sessile-server",
             build ? build : "build");
    if (access(s->server, X_OK) != 0) {
        print_message("# there is no %s: make service\n", s->server);
        skip();
    }
    if (system("/usr/bin/python3 -c 'import grpc, google.protobuf' 2>/dev/null") != 0) {
        print_message("# there is no python3-grpcio\n");
        skip();
    }
    s->c = cluster_needed(1);
    s->folder = folder_make();
    snprintf(s->store, sizeof s->store, "SESSILE_STORE=%s", s->c->url);
    write_keys(s);
    for (int i = 0; i < NODES; i++)
        prepare_node(s, i);
    for (int i = 0; i < NODES; i++)
        service_node_start(s->c->net, &s->node[i]);
    client_start(s);
    return s;
}

static void scene_free(scene *s)
{
    fclose(s->client.to);
    waitpid(s->client.pid, NULL, 0);
    fclose(s->client.from);
    for (int i = 0; i < NODES; i++)
        service_node_end(&s->node[i], SIGKILL);
    cluster_close(s->c);
    folder_remove(s->folder);
    free(s);
}

/* ------------------------------------------------------------------ calls */

/* From now on somebody calls whom no node has seen. */
static void another_user(scene *s)
{
    snprintf(s->client.user, sizeof s->client.user, "user%d", ++s->client.users);
}

typedef enum answered {
    PASSED,
    FULL, /* the user's rate has no room */
    LOST  /* it cannot be counted where all count */
} answered;

/* Searches at a node. Any other answer, and none in time, fails the test. */
static answered search(scene *s, int node)
{
    char line[1000], code[40], rule[40];
    long ms;
    assert_true(fprintf(s->client.to, "%d %s\n", node, s->client.user) > 0);
    assert_int_equal(fflush(s->client.to), 0);
    assert_non_null(fgets(line, sizeof line, s->client.from));
    assert_int_equal(sscanf(line, "%39s %39s %ld", code, rule, &ms), 3);
    if (ms > s->client.longest_ms)
        s->client.longest_ms = ms;
    if (strcmp(code, "OK") == 0)
        return PASSED;
    if (strcmp(code, "RESOURCE_EXHAUSTED") == 0 && strcmp(rule, "searches") == 0)
        return FULL;
    if (strcmp(code, "RESOURCE_EXHAUSTED") != 0 || !strstr(line, "cannot be counted"))
        fail_msg("node %d: %s", node, line);
    return LOST;
}

/* Calls a node a number of times, and counts the calls that have that answer. */
static int count_at(scene *s, int node, int calls, answered wanted)
{
    int n = 0;
    for (int i = 0; i < calls; i++)
        n += search(s, node) == wanted;
    return n;
}

static void the_rate_is_shared(scene *s)
{
    int n[3] = {0};
    another_user(s);
    for (int i = 0; i < 3 * MOST; i++)
        n[search(s, i % NODES)]++;
    assert_int_equal(n[PASSED], MOST);
    assert_int_equal(n[FULL], 2 * MOST);
    /* and each user has a rate of their own */
    another_user(s);
    assert_int_equal(search(s, 0), PASSED);
}

static void each_goes_by_itself(scene *s)
{
    another_user(s);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(count_at(s, i, MOST, i == DENIES ? LOST : PASSED), MOST);
    for (int i = 0; i < NODES; i++)
        assert_int_equal(search(s, i), i == DENIES ? LOST : FULL);
}

/* What a node counts is known to the next, and the other way round. */
static int share(scene *s, int node)
{
    another_user(s);
    return search(s, node) == PASSED &&
           count_at(s, (node + 1) % NODES, MOST, PASSED) == MOST - 1 &&
           search(s, node) == FULL;
}

static void wait_shared(scene *s)
{
    for (int i = 0; i < NODES; i++)
        while (!share(s, i))
            usleep(50000);
}

/* ------------------------------------------------------------------ the test */

static void a_rate_holds_over_all_nodes_and_without_redis_over_each(void **state)
{
    (void)state;
    scene *s = scene_new();
    int redis = s->c->redis->host;
    the_rate_is_shared(s);

    redis_kill(s->c->redis);
    each_goes_by_itself(s);
    redis_again(s->c->redis);
    wait_shared(s);
    the_rate_is_shared(s);

    network_signal(s->c->net, redis, SIGSTOP);
    each_goes_by_itself(s);
    network_signal(s->c->net, redis, SIGCONT);
    wait_shared(s);
    the_rate_is_shared(s);

    network_isolate(s->c->net, redis);
    each_goes_by_itself(s);
    network_join(s->c->net, redis);
    wait_shared(s);
    the_rate_is_shared(s);
    printf("# figure: longest call while Redis is gone, ms = %ld\n",
           s->client.longest_ms);
    scene_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rate_holds_over_all_nodes_and_without_redis_over_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
