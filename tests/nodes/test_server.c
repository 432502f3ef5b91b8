/*
 * test_server.c: the server that the tests of this folder kill is one that can be killed.
 *
 * Owns what the others take for granted: a server of their own is gone when they are,
 * keeps what it committed through a kill, and lets only its password in.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "support/postgres.h"

static void a_kill_takes_nothing_that_was_committed(void **state)
{
    const char *why, *const ways[] = {"kill", "crash", "stop"};
    postgres_server *s = postgres_own(&why);
    (void)state;
    if (!s) {
        print_message("# %s\n", why);
        skip();
    }
    free(postgres_sql(s->url, "create table t (n int)"));
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char *n = postgres_sql(s->url, "insert into t values (1) returning n");
        assert_string_equal(n, "1");
        free(n);
        assert_int_equal(postgres_do(s, ways[i]), 0);
        assert_null(postgres_sql(s->url, "select 1"));
        assert_int_equal(postgres_do(s, "again"), 0);
    }
    char *count = postgres_sql(s->url, "select count(*) from t");
    assert_string_equal(count, "3");
    free(count);
    postgres_own_free(s);
}

static void the_server_goes_with_its_owner(void **state)
{
    const char *why;
    char folder[200] = "";
    int pipes[2];
    (void)state;
    assert_int_equal(pipe(pipes), 0);
    pid_t child = fork();
    if (child == 0) {
        postgres_server *s = postgres_own(&why);
        if (s && write(pipes[1], s->folder, strlen(s->folder)) > 0)
            kill(getpid(), SIGKILL);
        _exit(3);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    close(pipes[1]);
    if (WIFEXITED(status)) {
        close(pipes[0]);
        skip();
    }
    ssize_t got = read(pipes[0], folder, sizeof folder - 1);
    close(pipes[0]);
    assert_true(got > 0);
    /* the watchdog looks every second */
    while (access(folder, F_OK) == 0)
        usleep(20000);
}

static void each_test_has_a_schema_of_its_own(void **state)
{
    const char *why;
    const postgres_server *s = postgres_shared(&why);
    (void)state;
    if (!s) {
        print_message("# %s\n", why);
        skip();
    }
    char *one = postgres_place(s->url), *two = postgres_place(s->url), sql[200];
    assert_string_not_equal(one, two);
    snprintf(sql, sizeof sql, "create schema %s", postgres_schema(one));
    free(postgres_sql(one, sql));
    snprintf(sql, sizeof sql, "create table %s.t (n int)", postgres_schema(one));
    char *made = postgres_sql(one, sql);
    assert_non_null(made);
    free(made);
    postgres_drop(one);
    postgres_drop(two); /* was never made */
    char *left = postgres_sql(s->url, "select count(*) from pg_namespace "
                                      "where nspname like 'test\\_%'");
    assert_non_null(left);
    free(left);
}

static void the_password_is_asked_for(void **state)
{
    const char *why;
    const postgres_server *s = postgres_shared(&why);
    (void)state;
    if (!s) {
        print_message("# %s\n", why);
        skip();
    }
    char url[500];
    const char *at = strchr(s->tcp, '@');
    snprintf(url, sizeof url, "postgresql://sessile:wrong%s", at);
    assert_null(postgres_sql(url, "select 1"));
    char *rights = postgres_sql(s->url, "select rolsuper or rolcreaterole or rolcreatedb "
                                        "from pg_roles where rolname = current_user");
    assert_string_equal(rights, "f");
    free(rights);
    if (*s->ca) {
        snprintf(url, sizeof url, "%s?sslmode=verify-full&sslrootcert=%s", s->tcp, s->ca);
        char *ssl = postgres_sql(url, "select ssl from pg_stat_ssl "
                                      "where pid = pg_backend_pid()");
        assert_string_equal(ssl, "t");
        free(ssl);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_test_has_a_schema_of_its_own),
        cmocka_unit_test(the_password_is_asked_for),
        cmocka_unit_test(a_kill_takes_nothing_that_was_committed),
        cmocka_unit_test(the_server_goes_with_its_owner),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
