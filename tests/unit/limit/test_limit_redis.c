/*
 * test_limit_redis.c: windows in Redis: handles and processes that share one, a server
 * that is killed, started again, stopped, forgets its scripts, or speaks nonsense.
 *
 * Own stores: the windows are not in a store.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "limit/places.h"
#include "support/check.h"
#include "support/fake_server.h"
#include "support/limits.h"
#include "support/redis.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

enum { HANDLES = 3 };

/* Handles of one store, each with a window of its own, and what they share. */
typedef struct scene {
    redis_server *redis;
    store_core *store;
    limiter *limiters[HANDLES];
    uint64_t who;
} scene;

static void scene_open(scene *s, const char *rate, int deny)
{
    s->redis = redis_needed(NULL);
    s->store = limit_store("ram:");
    for (int i = 0; i < HANDLES; i++)
        s->limiters[i] = limit_opened(s->store, rate, s->redis->url, deny);
    s->who = limit_somebody(s->limiters[0], "ann");
}

static void scene_close(scene *s)
{
    for (int i = 0; i < HANDLES; i++)
        limiter_close(s->limiters[i]);
    store_handle_close(s->store);
    redis_free(s->redis);
}

static int let_through(limiter *l, uint64_t who, int tries)
{
    int n = 0;
    for (int i = 0; i < tries; i++)
        n += limit_let(l, who, NULL);
    return n;
}

static void is_lost(limiter *l, const char *part)
{
    sessile_error why;
    assert_int_equal(limiter_lost(l, &why), 1);
    assert_says(&why, "rate limits are not shared");
    assert_says(&why, part);
    assert_int_equal(limiter_lost(l, &why), 0);
}

static void is_not_lost(limiter *l)
{
    sessile_error why;
    if (limiter_lost(l, &why))
        fail_msg("%s", why.message);
}

static void say(const scene *s, const char *command)
{
    assert_int_not_equal(redis_say(s->redis, command, strlen(command))[0], '\0');
}

/* ------------------------------------------------------------------ windows */

static void handles_share_one_window(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "10/hour", 0);
    assert_int_equal(let_through(s.limiters[0], s.who, 4), 4);
    assert_int_equal(let_through(s.limiters[1], s.who, 4), 4);
    assert_int_equal(let_through(s.limiters[2], s.who, 9), 2);
    assert_int_equal(let_through(s.limiters[0], s.who, 9), 0);
    uint64_t bob = limit_somebody(s.limiters[0], "bob");
    assert_int_equal(let_through(s.limiters[0], bob, 9), 9);
    for (int i = 0; i < HANDLES; i++)
        is_not_lost(s.limiters[i]);
    scene_close(&s);
}

static void returned_calls_are_not_counted(void **state)
{
    scene s;
    sessile_error err = {0};
    limit_taken taken[2];
    (void)state;
    scene_open(&s, "2/hour", 0);
    for (int i = 0; i < 9; i++) {
        for (int k = 0; k < 2; k++)
            must(limit_take(s.limiters[k], LIMIT_SEARCHES, s.who, &taken[k], &err), &err);
        assert_false(limit_let(s.limiters[2], s.who, NULL));
        for (int k = 0; k < 2; k++)
            limit_return(s.limiters[k], &taken[k]);
    }
    limit_return(s.limiters[0], &taken[0]); /* there is nothing any more */
    assert_int_equal(let_through(s.limiters[1], s.who, 9), 2);
    assert_refused(limit_take(s.limiters[0], LIMIT_SEARCHES, s.who, NULL, &err),
                   SESSILE_LIMIT, &err, "2/hour");
    assert_in_range(err.retry_ms, 3590000, 3712500);
    scene_close(&s);
}

/* What it says is when there is room, whichever handle asks. */
static void retry_ms_is_by_the_server_s_clock(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "5/second", 0);
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
    scene_open(&s, "20/second", 0);
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
    scene_open(&s, "8/second", 0);
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

/* The processes have no file in common: only Redis counts them together. */
static void processes_that_are_killed_are_N_in_total(void **state)
{
    os_table without_ranges = os_posix;
    redis_server *redis = redis_needed(NULL);
    limit_calls calls = {0};
    char folder[] = "/tmp/limits.XXXXXX", url[64], command[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(url, sizeof url, "file:%s", folder);
    without_ranges.lock_range = NULL;
    os_current = &without_ranges;
    store_handle_close(limit_store(url)); /* makes its name key */
    limit_processes(url, "20/second", redis->url, 8, 41, 3000, &calls, NULL, NULL);
    os_current = &os_posix;
    print_message("# figure: calls let through by 8 killed processes = %zu\n",
                  calls.count);
    limit_calls_judge(&calls, limit_rate_of("20/second"));
    limit_calls_free(&calls);
    redis_free(redis);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

/* ------------------------------------------------------------------ away and back */

static void restart(void *arg)
{
    static int turn;
    if (turn++ % 6 == 2)
        redis_kill(arg);
    else if (turn % 6 == 0)
        redis_again(arg);
}

/* Killed and started again, empty: the machine's file still has every call. */
static void a_machine_has_N_while_redis_is_restarted(void **state)
{
    redis_server *redis = redis_needed(NULL);
    limit_calls calls = {0};
    char folder[] = "/tmp/limits.XXXXXX", url[64], command[64];
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(url, sizeof url, "file:%s", folder);
    store_handle_close(limit_store(url));
    limit_processes(url, "20/second", redis->url, 4, 41, 4000, &calls, restart, redis);
    limit_calls_judge(&calls, limit_rate_of("20/second"));
    limit_calls_free(&calls);
    redis_free(redis);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    assert_int_equal(system(command), 0);
}

static void a_server_that_is_gone_is_told_once_and_found_again(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "1000/hour", 0);
    assert_int_equal(let_through(s.limiters[0], s.who, 5), 5);
    redis_kill(s.redis);
    assert_int_equal(let_through(s.limiters[0], s.who, 50), 50);
    is_lost(s.limiters[0], "does not answer");
    redis_again(s.redis);
    usleep(1100000);
    assert_int_equal(let_through(s.limiters[0], s.who, 1), 1);
    is_not_lost(s.limiters[0]);
    say(&s, "DBSIZE\r\n");
    assert_string_equal(redis_say(s.redis, "DBSIZE\r\n", 8), ":1\r\n");
    redis_kill(s.redis);
    assert_int_equal(let_through(s.limiters[0], s.who, 1), 1);
    is_lost(s.limiters[0], "does not answer");
    scene_close(&s);
}

static void a_server_that_hangs_is_gone(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "1000/hour", 0);
    assert_int_equal(let_through(s.limiters[0], s.who, 5), 5);
    kill(s.redis->pid, SIGSTOP);
    assert_int_equal(let_through(s.limiters[0], s.who, 50), 50);
    is_lost(s.limiters[0], "does not answer");
    assert_int_equal(let_through(s.limiters[1], s.who, 50), 50); /* connects first */
    is_lost(s.limiters[1], "does not answer");
    kill(s.redis->pid, SIGCONT);
    usleep(1100000);
    assert_int_equal(let_through(s.limiters[0], s.who, 1), 1);
    is_not_lost(s.limiters[0]);
    scene_close(&s);
}

static void deny_refuses_while_the_server_is_gone(void **state)
{
    scene s;
    sessile_error err = {0};
    (void)state;
    scene_open(&s, "9/hour", 1);
    assert_int_equal(let_through(s.limiters[0], s.who, 5), 5);
    redis_kill(s.redis);
    for (int i = 0; i < 50; i++) {
        assert_refused(limit_take(s.limiters[0], LIMIT_SEARCHES, s.who, NULL, &err),
                       SESSILE_LIMIT, &err, "searches cannot be counted, and is refused");
        assert_int_equal(err.retry_ms, 0);
    }
    redis_again(s.redis);
    usleep(1100000);
    assert_int_equal(let_through(s.limiters[0], s.who, 50), 4); /* 5 are in the handle */
    scene_close(&s);
}

static void a_script_that_is_forgotten_is_loaded_again(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "9/hour", 0);
    assert_int_equal(let_through(s.limiters[0], s.who, 3), 3);
    say(&s, "SCRIPT FLUSH\r\n");
    assert_int_equal(let_through(s.limiters[0], s.who, 3), 3);
    assert_int_equal(let_through(s.limiters[1], s.who, 9), 3);
    is_not_lost(s.limiters[0]);
    scene_close(&s);
}

static void a_child_counts_with_its_parent(void **state)
{
    scene s;
    int status;
    (void)state;
    scene_open(&s, "9/hour", 0);
    assert_int_equal(let_through(s.limiters[0], s.who, 2), 2);
    pid_t pid = fork();
    if (pid == 0)
        _exit(let_through(s.limiters[0], s.who, 4));
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(WEXITSTATUS(status), 4);
    assert_int_equal(let_through(s.limiters[0], s.who, 9), 3);
    is_not_lost(s.limiters[0]);
    scene_close(&s);
}

/* ------------------------------------------------------------------ strange windows */

/* A script that is run by hand on the only window. */
static void on_window(const scene *s, const char *script)
{
    char command[900];
    int size =
        snprintf(command, sizeof command, "*3\r\n$4\r\nEVAL\r\n$%zu\r\n%s\r\n$1\r\n0\r\n",
                 strlen(script), script);
    const char *said = redis_say(s->redis, command, (size_t)size);
    assert_memory_equal(said, "+OK", 3);
}

static void
a_clock_that_was_set_back_keeps_nobody_out_for_more_than_a_window(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "3/second", 0);
    assert_int_equal(let_through(s.limiters[0], s.who, 9), 3);
    on_window(&s, "local k = redis.call('KEYS', '*')[1] local w = redis.call('GET', k) "
                  "return redis.call('SET', k, struct.pack('>I8', struct.unpack('>I8', w)"
                  " + 1000000) .. string.sub(w, 9), 'PX', 100000)");
    assert_int_equal(let_through(s.limiters[1], s.who, 9), 0);
    usleep(1040000);
    assert_int_equal(let_through(s.limiters[1], s.who, 9), 3);
    scene_close(&s);
}

static void what_is_no_window_begins_afresh(void **state)
{
    static const char *const junk[] = {"''", "'x'", "string.rep('x', 73)",
                                       "string.rep('\\255', 1000)"};
    (void)state;
    for (size_t i = 0; i < sizeof junk / sizeof *junk; i++) {
        scene s;
        char script[200];
        scene_open(&s, "3/hour", 0);
        assert_int_equal(let_through(s.limiters[0], s.who, 9), 3);
        snprintf(script, sizeof script,
                 "return redis.call('SET', redis.call('KEYS', '*')[1], %s)", junk[i]);
        on_window(&s, script);
        assert_int_equal(let_through(s.limiters[1], s.who, 9), 3);
        is_not_lost(s.limiters[1]);
        scene_close(&s);
    }
}

static void a_key_of_another_type_is_told(void **state)
{
    scene s;
    (void)state;
    scene_open(&s, "3/hour", 0);
    assert_int_equal(let_through(s.limiters[0], s.who, 9), 3);
    on_window(&s, "local k = redis.call('KEYS', '*')[1] redis.call('DEL', k) "
                  "redis.call('LPUSH', k, 'x') return redis.status_reply('OK')");
    assert_int_equal(let_through(s.limiters[1], s.who, 9), 3);
    is_lost(s.limiters[1], "WRONGTYPE");
    scene_close(&s);
}

static const char *nonsense;

static void talk(fake_server *f, int fd)
{
    char bytes[4096];
    while (fake_server_readable(f, fd) && read(fd, bytes, sizeof bytes) > 0)
        if (write(fd, nonsense, strlen(nonsense)) < 0)
            return;
}

static void a_server_that_speaks_nonsense_is_gone(void **state)
{
    static const char *const words[] = {"HTTP/1.1 400 Bad Request\r\n\r\n",
                                        "$-5\r\n",
                                        ":-1\r\n",
                                        ":99999999999\r\n",
                                        "$3\r\nabc\r\n",
                                        "*2\r\n:1\r\n:2\r\n",
                                        "-ERR no\r\n",
                                        "$40\r\n"};
    store_core *store = limit_store("ram:");
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        fake_server f = {.talk = talk};
        char url[64];
        nonsense = words[i];
        snprintf(url, sizeof url, "redis://127.0.0.1:%d",
                 fake_server_start(&f, "127.0.0.1"));
        limiter *l = limit_opened(store, "3/hour", url, 0);
        assert_int_equal(let_through(l, limit_somebody(l, "ann"), 9), 3);
        is_lost(l, "Redis at 127.0.0.1");
        limiter_close(l);
        fake_server_stop(&f);
    }
    store_handle_close(store);
}

/* ------------------------------------------------------------------ the URL */

static void a_password_is_given_and_never_told(void **state)
{
    redis_server *redis = redis_needed("wolfsmilch");
    store_core *store = limit_store("ram:");
    char url[100];
    sessile_error why;
    (void)state;
    limiter *l = limit_opened(store, "3/hour", redis->url, 0);
    assert_int_equal(let_through(l, limit_somebody(l, "ann"), 9), 3);
    is_not_lost(l);
    limiter_close(l);
    const char *keys = "AUTH wolfsmilch\r\nSELECT 1\r\nDBSIZE\r\n";
    assert_string_equal(redis_say(redis, keys, strlen(keys)), "+OK\r\n+OK\r\n:1\r\n");
    snprintf(url, sizeof url, "redis://:bilsenkraut@127.0.0.1:%d", redis->port);
    l = limit_opened(store, "3/hour", url, 0);
    assert_int_equal(let_through(l, limit_somebody(l, "ann"), 9), 3);
    assert_int_equal(limiter_lost(l, &why), 1);
    assert_says(&why, "says WRONGPASS");
    assert_null(strstr(why.message, "bilsenkraut"));
    limiter_close(l);
    store_handle_close(store);
    redis_free(redis);
}

static void urls_are_read(void **state)
{
    static const struct {
        const char *url, *host, *path, *user, *password;
        int port, database;
    } good[] = {
        {"redis://h", "h", "", "", "", 6379, 0},
        {"redis://h:7/", "h", "", "", "", 7, 0},
        {"redis://u:p@h:1234/15", "h", "", "u", "p", 1234, 15},
        {"redis://:p%40%2f%3a@[::1]:80", "::1", "", "", "p@/:", 80, 0},
        {"redis:///run/redis.sock", "", "/run/redis.sock", "", "", 6379, 0},
        {"redis://:p@/run/a%20b", "", "/run/a b", "", "p", 6379, 0},
    };
    static const char *const bad[] = {"",
                                      "redis:",
                                      "redis://",
                                      "redis:///",
                                      "rediss://h",
                                      "http://h",
                                      "redis://h:",
                                      "redis://h:0",
                                      "redis://h:65536",
                                      "redis://h:1x",
                                      "redis://h/x",
                                      "redis://h/-1",
                                      "redis://h/1/2",
                                      "redis://p@h",
                                      "redis://[::1",
                                      "redis://[::1]x",
                                      "redis://:%0@h",
                                      "redis://:%00@h",
                                      "redis://:%zz@h"};
    limit_redis_url url;
    sessile_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        must(limit_redis_url_parse(&url, good[i].url, &err), &err);
        assert_string_equal(url.host, good[i].host);
        assert_string_equal(url.path, good[i].path);
        assert_string_equal(url.user, good[i].user);
        assert_string_equal(url.password, good[i].password);
        assert_int_equal(url.port, good[i].port);
        assert_int_equal(url.database, good[i].database);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (limit_redis_url_parse(&url, bad[i], &err) != SESSILE_INVALID)
            fail_msg("%s", bad[i]);
    assert_says(&err, "redis://USER:PASSWORD@HOST:PORT/DATABASE");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(handles_share_one_window),
        cmocka_unit_test(returned_calls_are_not_counted),
        cmocka_unit_test(retry_ms_is_by_the_server_s_clock),
        cmocka_unit_test(a_client_slower_by_a_32nd_is_never_refused),
        cmocka_unit_test(tries_at_random_are_never_more_than_N),
        cmocka_unit_test(processes_that_are_killed_are_N_in_total),
        cmocka_unit_test(a_machine_has_N_while_redis_is_restarted),
        cmocka_unit_test(a_server_that_is_gone_is_told_once_and_found_again),
        cmocka_unit_test(a_server_that_hangs_is_gone),
        cmocka_unit_test(deny_refuses_while_the_server_is_gone),
        cmocka_unit_test(a_script_that_is_forgotten_is_loaded_again),
        cmocka_unit_test(a_child_counts_with_its_parent),
        cmocka_unit_test(
            a_clock_that_was_set_back_keeps_nobody_out_for_more_than_a_window),
        cmocka_unit_test(what_is_no_window_begins_afresh),
        cmocka_unit_test(a_key_of_another_type_is_told),
        cmocka_unit_test(a_server_that_speaks_nonsense_is_gone),
        cmocka_unit_test(a_password_is_given_and_never_told),
        cmocka_unit_test(urls_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
