/*
 * test_postgres.c: the PostgreSQL store's URL, its errors, its tables, its connections.
 *
 * What every store promises is in tests/store/. Without a server the cases that
 * need one are skipped, and say why.
 */
#include "store/postgres/postgres.h"

#include "support/check.h"
#include "support/postgres.h"
#include "store/postgres/open.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "support/postgres_stores.h"

/* ------------------------------------------------------------------ a server */

/* The URL with another user and password, percent-encoded by the caller. */
static char *url_as(const char *url, const char *who)
{
    char *out = malloc(strlen(url) + strlen(who) + 20);
    const char *host = strchr(strstr(url, "://") + 3, '@');

    sprintf(out, "postgres://%s%s", who, host);
    return out;
}

static void postgres_refused(const char *url, sessile_status status, const char *names,
                             const char *secret)
{
    store st;
    sessile_error err;

    assert_int_equal(postgres_opened(url, &st, &err), status);
    assert_null(st.table);
    if (!strstr(err.message, names))
        fail_msg("\"%s\" does not name \"%s\"", err.message, names);
    if (secret && strstr(err.message, secret))
        fail_msg("a secret is told: %s", err.message);
}

/* ------------------------------------------------------------------ the URL */

static void a_url_that_cannot_be_is_refused_by_its_part(void **state)
{
    (void)state;
    postgres_refused("postgres:x", SESSILE_INVALID, "postgres://", NULL);
    postgres_refused("postgres://u:geheim@h/db?pol=3", SESSILE_INVALID, "\"pol\"",
                     "geheim");
    postgres_refused("postgres://u:geheim@h/db?pool=0", SESSILE_INVALID, "\"pool\"",
                     "geheim");
    postgres_refused("postgres://u:geheim@h/db?pool=many", SESSILE_INVALID, "\"pool\"",
                     "geheim");
    postgres_refused("postgres://u:geheim@h/db?pool", SESSILE_INVALID, "\"pool\"",
                     "geheim");
    postgres_refused("postgres://u:geheim@h/db?timeout=soon", SESSILE_INVALID,
                     "\"timeout\"", "geheim");
    static const char *const sizes[] = {"",
                                        "0",
                                        "-1",
                                        "1023KiB",
                                        "1MB",
                                        "1 MiB",
                                        "many",
                                        "99999999999GiB",
                                        "99999999999999999999999"};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char url[100];
        snprintf(url, sizeof url, "postgres://u:geheim@h/db?keep=%s", sizes[i]);
        postgres_refused(url, SESSILE_INVALID, "\"keep\"", "geheim");
    }
    postgres_refused("postgres://u:geheim@h/db?cleartext_password=yes", SESSILE_INVALID,
                     "allow", "geheim");
    postgres_refused("postgres://u:geheim@h/db?schema=a%22b", SESSILE_INVALID,
                     "\"schema\"", "geheim");
    postgres_refused("postgres://u:geheim@h/db?schema=pg_x", SESSILE_INVALID,
                     "\"schema\"", "geheim");
    postgres_refused("postgres://u:geheim@h/db?%zz=1", SESSILE_INVALID, "parameter",
                     "geheim");
    postgres_refused("postgres://u:geheim%zz@h/db", SESSILE_INVALID, "%25", "geheim");
    postgres_refused("postgres://u:geheim@[::1/db", SESSILE_INVALID, "URL", "geheim");
    postgres_refused("postgres://u:geheim@h/db?sslmode=never", SESSILE_IO, "sslmode",
                     "geheim");
}

static void what_is_ours_is_taken_off_and_the_rest_is_libpqs(void **state)
{
    pg_lib lib;
    pg_url url;
    sessile_error err = {0};
    const char *sslmode = NULL, *timeout = NULL, *idle = NULL;

    (void)state;
    must(pg_lib_open(&lib, &err), &err);
    must(pg_url_parse(
             &url, &lib,
             "postgresql://me:p%40ss%3Fword@host:1/db?schema=Mine_2&sslmode=require"
             "&timeout=1500ms&pool=3&keepalives_idle=7&connect_timeout=1"
             "&cleartext_password=allow&keep=3MiB",
             os_current, &allocator_default, &err),
         &err);
    for (size_t i = 0; url.keys[i]; i++) {
        sslmode = strcmp(url.keys[i], "sslmode") ? sslmode : url.values[i];
        idle = strcmp(url.keys[i], "keepalives_idle") ? idle : url.values[i];
        timeout = strcmp(url.keys[i], "tcp_user_timeout") ? timeout : url.values[i];
        assert_string_not_equal(url.keys[i], "schema");
        assert_string_not_equal(url.keys[i], "keep");
        assert_string_not_equal(url.keys[i], "cleartext_password");
    }
    assert_string_equal(sslmode, "require");
    assert_string_equal(idle, "7");
    assert_non_null(timeout);
    assert_string_equal(url.schema, "Mine_2");
    assert_int_equal(url.pool, 3);
    assert_int_equal(url.keep, 3 << 20);
    assert_int_equal(url.clear_password, 1);
    assert_int_equal(url.statement_ms, 1500);
    assert_int_equal(url.connect_ms, 2000);
    assert_string_equal(url.where, "me@host:1/db");
    assert_false(pg_url_clean(&url, "it is p@ss?word, said the server"));
    assert_false(pg_url_clean(&url, "in \"postgres://me:p%40ss%3Fword@host\""));
    assert_true(pg_url_clean(&url, "it is none"));
    pg_url_free(&url, &lib, &allocator_default);
    pg_lib_close(&lib);
}

static void nobody_there_is_told_at_once(void **state)
{
    (void)state;
    postgres_refused("postgres://u:geheim@127.0.0.1:1/db", SESSILE_IO, "u@127.0.0.1:1/db",
                     "geheim");
    postgres_refused("postgres://u:geheim@%2Fnowhere/db", SESSILE_IO, "/nowhere",
                     "geheim");
}

static void no_error_holds_a_password(void **state)
{
    static const char *const passwords[][2] = {
        /* as it is written, as it is */
        {"wrong-one", "wrong-one"},
        {"p%40ss%20w%25rd", "p@ss w%rd"},
        {"100%25", "100%"},
        {"a%3Ab%2Fc%3Fd%23e", "a:b/c?d#e"},
        {"%C3%A4%22'%5C", "\xc3\xa4\"'\\"},
    };
    const postgres_server *s = postgres_needed();

    (void)state;
    for (size_t i = 0; i < sizeof passwords / sizeof *passwords; i++) {
        char who[100], *url;
        snprintf(who, sizeof who, "nobody_here:%s@", passwords[i][0]);
        who[strlen(who) - 1] = 0;
        url = url_as(s->url, who);
        postgres_refused(url, SESSILE_DENIED, "password", passwords[i][0]);
        postgres_refused(url, SESSILE_DENIED, "nobody_here@", passwords[i][1]);
        free(url);
    }
    /* nor where it was not encoded, and ends before its time */
    static const char *const slips[] = {"wr@zq", "wr/zq",   "wr?zq",   "wr#zq",
                                        "12/zq", "12?a=zq", "12@zq:80"};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        char url[200];
        snprintf(url, sizeof url, "postgres://nobody_here:%s@127.0.0.1:5/d", slips[i]);
        postgres_refused(url, SESSILE_INVALID, "%40", "zq");
    }
    /* even where it is what the server repeats: the name of the user */
    char *url = url_as(s->url, "nobody_here:nobody_here");
    postgres_refused(url, SESSILE_DENIED, "password", "nobody_here");
    free(url);
}

static void a_database_that_is_not_there_is_named(void **state)
{
    const postgres_server *s = postgres_needed();
    char *url = strdup(s->url), *slash = strrchr(url, '/');
    char *end = strchr(slash, '?') ? strchr(slash, '?') : slash + strlen(slash), *other;

    (void)state;
    other = malloc(strlen(url) + 30);
    sprintf(other, "%.*s/not_there_%s", (int)(slash - url), url, end);
    postgres_refused(other, SESSILE_INVALID, "not_there_", NULL);
    free(other);
    free(url);
}

static void of_several_hosts_one_that_is_there_is_found(void **state)
{
    const postgres_server *s = postgres_needed();
    char *url = postgres_place(s->tcp), *several = malloc(strlen(url) + 100);
    const char *host = strchr(url, '@') + 1, *rest = strchr(host, '/');

    (void)state;
    /* one that refuses, one that never answers (reserved for documentation), ours */
    sprintf(several, "%.*s127.0.0.1:1,192.0.2.1:5432,%s&connect_timeout=2",
            (int)(host - url), url, host);
    assert_true(rest > host);
    store st = store_at(several);
    store_close(&st);
    free(several);
    postgres_drop(url);
}

static void a_server_that_must_prove_itself_does(void **state)
{
    const postgres_server *s = postgres_needed();
    char more[400], *url;

    (void)state;
    if (!s->ca[0])
        skip();
    snprintf(more, sizeof more, "sslmode=verify-full&sslrootcert=%s", s->ca);
    url = url_with(s->tcp, more);
    store st = store_at(url);
    store_close(&st);
    free(url);
    url = url_with(s->tcp, "sslmode=verify-full&sslrootcert=/nowhere/root.crt");
    postgres_refused(url, SESSILE_IO, "certificate", NULL);
    free(url);
}

static void no_bytes_of_a_url_do_harm(void **state)
{
    static const char *const seeds[] = {
        "postgres://u:geheim@h:1/db?schema=a&pool=3&timeout=5s&sslmode=require",
        "postgresql://u:g%65heim@[::1]:5432,h2:5433/"
        "db?options=-c%20a%3Db&password=geheim",
        "postgres://?host=%2Ftmp&user=u&password=geheim&connect_timeout=3",
    };
    static const char odd[] = "%@:/?#&=[],\0\xff 0az";
    pg_lib lib;
    pg_url url;
    sessile_error err = {0};
    unsigned n = 1;

    (void)state;
    must(pg_lib_open(&lib, &err), &err);
    for (int i = 0; i < 20000; i++) {
        char text[200];
        snprintf(text, sizeof text, "%s", seeds[i % 3]);
        for (int j = i % 5; j >= 0; j--) {
            n = n * 1103515245 + 12345;
            size_t at = 11 + (n >> 8) % (strlen(text) - 10);
            text[at] = odd[(n >> 20) % (sizeof odd - 1)];
            if (strlen(text) < 12)
                break;
        }
        if (!pg_url_parse(&url, &lib, text, os_current, &allocator_default, &err)) {
            const char **values;
            char *lists;
            size_t size;
            assert_true(url.pool >= 1 && url.schema[0]);
            assert_int_equal(pg_url_values(&url, (unsigned)i, &values, &lists, &size,
                                           &allocator_default),
                             0);
            mem_free(&allocator_default, (void *)values, url.room);
            mem_free(&allocator_default, lists, size);
            pg_url_free(&url, &lib, &allocator_default);
        } else {
            assert_true(err.code == SESSILE_INVALID && err.message[0]);
        }
    }
    pg_lib_close(&lib);
}

/* ------------------------------------------------------------------ tables */

static void opening_and_reading_make_nothing(void **state)
{
    char *url = postgres_place(postgres_needed()->url), text[200];
    store st = store_at(url);
    sessile_backend_log *log;
    sessile_error err = {0};
    char *blob;
    size_t size;
    int found = 1;

    (void)state;
    assert_int_equal(st.table->open(st.self, "main", "log", &log, &err),
                     SESSILE_NOTFOUND);
    assert_int_equal(st.table->blob_get(st.self, "ring", &blob, &size, &err),
                     SESSILE_NOTFOUND);
    must(st.table->has_logs(st.self, &found, &err), &err);
    assert_int_equal(found, 0);
    must(st.table->list_cache_put(st.self, "main", "x", 1, &err), &err);
    snprintf(text, sizeof text, "select count(*) from pg_namespace where nspname = '%s'",
             postgres_schema(url));
    postgres_value(url, text, "0");
    must(st.table->blob_put_new(st.self, "ring", "x", 1, &err), &err);
    postgres_value(url, text, "1");
    store_close(&st);
    postgres_drop(url);
}

static void tables_that_many_make_at_once_are_made_once(void **state)
{
    enum { MANY = 6 };
    char *url = postgres_place(postgres_needed()->url);
    pthread_t threads[MANY];
    int made = 0;

    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, postgres_make, url), 0);
    for (int i = 0; i < MANY; i++) {
        void *what;
        pthread_join(threads[i], &what);
        assert_non_null(what);
        made += !strcmp(what, "made");
    }
    assert_int_equal(made, 1);
    postgres_drop(url);
}

static void a_newer_schema_is_refused(void **state)
{
    char *url = postgres_place(postgres_needed()->url), text[200];

    (void)state;
    assert_non_null(postgres_make(url));
    snprintf(text, sizeof text, "update %s.store set version = 99", postgres_schema(url));
    postgres_value(url, text, NULL);
    postgres_refused(url, SESSILE_UNSUPPORTED, "99", NULL);
    postgres_drop(url);
}

static void who_may_only_read_reads(void **state)
{
    char *url = postgres_place(postgres_needed()->url), *reader;
    sessile_backend_log *log;
    sessile_error err = {0};
    char bytes[8];
    size_t got;
    int changed = 1;

    (void)state;
    assert_non_null(postgres_make(url));
    reader = url_with(url, "options=-c%20default_transaction_read_only%3Don");
    store st = store_at(reader);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    must(st.table->read(log, 0, 0, bytes, sizeof bytes, &got, &err), &err);
    assert_int_equal(got, 4);
    must(st.table->watch(log, 4, 30, NULL, NULL, &changed, &err), &err);
    assert_int_equal(changed, 0);
    st.table->close(log);
    assert_int_equal(st.table->create(st.self, "main", "other", "x\n", 2, &err),
                     SESSILE_DENIED);
    assert_non_null(strstr(err.message, "read"));
    store_close(&st);
    free(reader);
    postgres_drop(url);
}

static void views_show_plain_lines_and_fail_on_none(void **state)
{
    static const char lines[] =
        "{\"id\":\"00000000\",\"type\":\"session\",\"data\":{}}\n"
        "{\"id\":\"00000001\",\"type\":\"message\",\"author\":\"coder\",\"user\":\"ann\","
        "\"data\":{\"role\":\"user\",\"content\":\"a\\u0000\\u0000b \\\\u0000\"}}\n"
        "{\"id\":\"00000002\",\"s\":\"AAAA\"}\n"
        "no JSON \xff\xfe at all\n"
        "{\"id\":\"00000004\",\"type\":\"message\",\"data\":1e999999}\n"
        "{\"id\":\"00000005\",\"type\":\"message\",\"data\":\"\\ud800\"}\n"
        "{\"id\":\"00000006\",\"type\":\"head\",\"data\":{\"head\":\"00000001\"}}\n"
        "{\"id\":\"00000007\",\"type\":\"checkpoint\",\"data\":{\"name\":\"a\"}}\n"
        "{\"id\":\"00000008\",\"type\":\"checkpoint\",\"data\":{\"name\":\"b\","
        "\"head\":\"00000001\",\"messages\":1,\"tokens\":[7,\"estimate\"],"
        "\"state\":{\"step\":3}}}\n"
        "{\"id\":\"00000009\",\"type\":\"tombstone\","
        "\"data\":{\"withdraws\":\"00000007\"}}\n";
    char *url = postgres_place(postgres_needed()->url), text[400];
    store st = store_at(url);
    sessile_error err = {0};

    (void)state;
    must(st.table->create(st.self, "main", "log", lines, sizeof lines - 1, &err), &err);
    snprintf(text, sizeof text,
             "select string_agg(concat_ws(',', id, type, role, author, \"user\"), ' '"
             " order by id) from %s.transcript where name = 'log'",
             postgres_schema(url));
    postgres_value(
        url, text,
        "0,session 1,message,user,coder,ann 2 3 4 5 6,head 7,checkpoint 8,checkpoint"
        " 9,tombstone");
    snprintf(text, sizeof text, "select content from %s.transcript where id = 1",
             postgres_schema(url));
    postgres_value(url, text,
                   "a\xef\xbf\xbd\xef\xbf\xbd"
                   "b \\u0000");
    snprintf(text, sizeof text,
             "select concat_ws(',', entry, checkpoint, head, messages, tokens, state)"
             " from %s.checkpoints where name = 'log'",
             postgres_schema(url));
    postgres_value(url, text, "00000008,b,00000001,1,7,{\"step\": 3}");
    snprintf(text, sizeof text, "select head from %s.overview where name = 'log'",
             postgres_schema(url));
    postgres_value(url, text, "00000001");
    store_close(&st);
    postgres_drop(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_url_that_cannot_be_is_refused_by_its_part),
        cmocka_unit_test(what_is_ours_is_taken_off_and_the_rest_is_libpqs),
        cmocka_unit_test(nobody_there_is_told_at_once),
        cmocka_unit_test(no_error_holds_a_password),
        cmocka_unit_test(a_database_that_is_not_there_is_named),
        cmocka_unit_test(of_several_hosts_one_that_is_there_is_found),
        cmocka_unit_test(a_server_that_must_prove_itself_does),
        cmocka_unit_test(no_bytes_of_a_url_do_harm),
        cmocka_unit_test(opening_and_reading_make_nothing),
        cmocka_unit_test(tables_that_many_make_at_once_are_made_once),
        cmocka_unit_test(a_newer_schema_is_refused),
        cmocka_unit_test(who_may_only_read_reads),
        cmocka_unit_test(views_show_plain_lines_and_fail_on_none),
    };
    return cmocka_run_group_tests_name("the PostgreSQL store", tests, NULL, NULL);
}
