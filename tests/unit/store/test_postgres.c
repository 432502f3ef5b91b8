/*
 * test_postgres.c: the PostgreSQL store's URL, its errors, its tables, its connections.
 *
 * What every store promises is in tests/store/. Without a server the cases that need one
 * are skipped, and say why.
 */
#include "store/postgres/postgres.h"

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

/* ------------------------------------------------------------------ a server */

static const postgres_server *server(void)
{
    const char *why;
    const postgres_server *s = postgres_shared(&why);

    if (!s) {
        print_message("# %s\n", why);
        skip();
    }
    return s;
}

static sessile_status opened(const char *url, store *out, sessile_error *err)
{
    memset(err, 0, sizeof *err);
    return store_postgres_open(out, url, 5000, os_current, &allocator_default, err);
}

static store store_at(const char *url)
{
    store st;
    sessile_error err;

    if (opened(url, &st, &err))
        fail_msg("%s", err.message);
    return st;
}

/* The URL with more parameters. */
static char *with(const char *url, const char *more)
{
    char *out = malloc(strlen(url) + strlen(more) + 2);

    sprintf(out, "%s%c%s", url, strchr(url, '?') ? '&' : '?', more);
    return out;
}

/* The URL with another user and password, percent-encoded by the caller. */
static char *as(const char *url, const char *who)
{
    char *out = malloc(strlen(url) + strlen(who) + 20);
    const char *host = strchr(strstr(url, "://") + 3, '@');

    sprintf(out, "postgres://%s%s", who, host);
    return out;
}

static void refused(const char *url, sessile_status status, const char *names,
                    const char *secret)
{
    store st;
    sessile_error err;

    assert_int_equal(opened(url, &st, &err), status);
    assert_null(st.table);
    if (!strstr(err.message, names))
        fail_msg("\"%s\" does not name \"%s\"", err.message, names);
    if (secret && strstr(err.message, secret))
        fail_msg("a secret is told: %s", err.message);
}

static void did(sessile_status status, const sessile_error *err)
{
    if (status)
        fail_msg("%s", err->message);
}

/* The value of one statement, there and then. */
static void sql(const char *url, const char *text, const char *expected)
{
    char *value = postgres_sql(url, text);

    assert_non_null(value);
    if (expected)
        assert_string_equal(value, expected);
    free(value);
}

/* ------------------------------------------------------------------ the URL */

static void a_url_that_cannot_be_is_refused_by_its_part(void **state)
{
    (void)state;
    refused("postgres:x", SESSILE_INVALID, "postgres://", NULL);
    refused("postgres://u:geheim@h/db?pol=3", SESSILE_INVALID, "\"pol\"", "geheim");
    refused("postgres://u:geheim@h/db?pool=0", SESSILE_INVALID, "\"pool\"", "geheim");
    refused("postgres://u:geheim@h/db?pool=many", SESSILE_INVALID, "\"pool\"", "geheim");
    refused("postgres://u:geheim@h/db?pool", SESSILE_INVALID, "\"pool\"", "geheim");
    refused("postgres://u:geheim@h/db?timeout=soon", SESSILE_INVALID, "\"timeout\"",
            "geheim");
    refused("postgres://u:geheim@h/db?schema=a%22b", SESSILE_INVALID, "\"schema\"",
            "geheim");
    refused("postgres://u:geheim@h/db?schema=pg_x", SESSILE_INVALID, "\"schema\"",
            "geheim");
    refused("postgres://u:geheim@h/db?%zz=1", SESSILE_INVALID, "parameter", "geheim");
    refused("postgres://u:geheim%zz@h/db", SESSILE_INVALID, "%25", "geheim");
    refused("postgres://u:geheim@[::1/db", SESSILE_INVALID, "URL", "geheim");
    refused("postgres://u:geheim@h/db?sslmode=never", SESSILE_IO, "sslmode", "geheim");
}

static void what_is_ours_is_taken_off_and_the_rest_is_libpqs(void **state)
{
    pg_lib lib;
    pg_url url;
    sessile_error err = {0};
    const char *sslmode = NULL, *timeout = NULL, *idle = NULL;

    (void)state;
    did(pg_lib_open(&lib, &err), &err);
    did(pg_url_parse(
            &url, &lib,
            "postgresql://me:p%40ss%3Fword@host:1/db?schema=Mine_2&sslmode=require"
            "&timeout=1500ms&pool=3&keepalives_idle=7&connect_timeout=1",
            os_current, &allocator_default, &err),
        &err);
    for (size_t i = 0; url.keys[i]; i++) {
        sslmode = strcmp(url.keys[i], "sslmode") ? sslmode : url.values[i];
        idle = strcmp(url.keys[i], "keepalives_idle") ? idle : url.values[i];
        timeout = strcmp(url.keys[i], "tcp_user_timeout") ? timeout : url.values[i];
        assert_string_not_equal(url.keys[i], "schema");
    }
    assert_string_equal(sslmode, "require");
    assert_string_equal(idle, "7");
    assert_non_null(timeout);
    assert_string_equal(url.schema, "Mine_2");
    assert_int_equal(url.pool, 3);
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
    refused("postgres://u:geheim@127.0.0.1:1/db", SESSILE_IO, "u@127.0.0.1:1/db",
            "geheim");
    refused("postgres://u:geheim@%2Fnowhere/db", SESSILE_IO, "/nowhere", "geheim");
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
    const postgres_server *s = server();

    (void)state;
    for (size_t i = 0; i < sizeof passwords / sizeof *passwords; i++) {
        char who[100], *url;
        snprintf(who, sizeof who, "nobody_here:%s@", passwords[i][0]);
        who[strlen(who) - 1] = 0;
        url = as(s->url, who);
        refused(url, SESSILE_DENIED, "password", passwords[i][0]);
        refused(url, SESSILE_DENIED, "nobody_here@", passwords[i][1]);
        free(url);
    }
    /* nor where it was not encoded, and ends before its time */
    static const char *const slips[] = {"wr@zq", "wr/zq",   "wr?zq",   "wr#zq",
                                        "12/zq", "12?a=zq", "12@zq:80"};
    for (size_t i = 0; i < sizeof slips / sizeof *slips; i++) {
        char url[200];
        snprintf(url, sizeof url, "postgres://nobody_here:%s@127.0.0.1:5/d", slips[i]);
        refused(url, SESSILE_INVALID, "%40", "zq");
    }
    /* even where it is what the server repeats: the name of the user */
    char *url = as(s->url, "nobody_here:nobody_here");
    refused(url, SESSILE_DENIED, "password", "nobody_here");
    free(url);
}

static void a_database_that_is_not_there_is_named(void **state)
{
    const postgres_server *s = server();
    char *url = strdup(s->url), *slash = strrchr(url, '/');
    char *end = strchr(slash, '?') ? strchr(slash, '?') : slash + strlen(slash), *other;

    (void)state;
    other = malloc(strlen(url) + 30);
    sprintf(other, "%.*s/not_there_%s", (int)(slash - url), url, end);
    refused(other, SESSILE_INVALID, "not_there_", NULL);
    free(other);
    free(url);
}

static void of_several_hosts_one_that_is_there_is_found(void **state)
{
    const postgres_server *s = server();
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
    const postgres_server *s = server();
    char more[400], *url;

    (void)state;
    if (!s->ca[0])
        skip();
    snprintf(more, sizeof more, "sslmode=verify-full&sslrootcert=%s", s->ca);
    url = with(s->tcp, more);
    store st = store_at(url);
    store_close(&st);
    free(url);
    url = with(s->tcp, "sslmode=verify-full&sslrootcert=/nowhere/root.crt");
    refused(url, SESSILE_IO, "certificate", NULL);
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
    did(pg_lib_open(&lib, &err), &err);
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
    char *url = postgres_place(server()->url), text[200];
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
    did(st.table->has_logs(st.self, &found, &err), &err);
    assert_int_equal(found, 0);
    did(st.table->list_cache_put(st.self, "main", "x", 1, &err), &err);
    snprintf(text, sizeof text, "select count(*) from pg_namespace where nspname = '%s'",
             postgres_schema(url));
    sql(url, text, "0");
    did(st.table->blob_put_new(st.self, "ring", "x", 1, &err), &err);
    sql(url, text, "1");
    store_close(&st);
    postgres_drop(url);
}

static void *make_it(void *arg)
{
    store st = store_at(arg);
    sessile_error err = {0};
    sessile_status status = st.table->create(st.self, "main", "log", "one\n", 4, &err);
    if (status && status != SESSILE_EXISTS)
        printf("# %s\n", err.message);
    store_close(&st);
    return !status ? "made" : status == SESSILE_EXISTS ? "there" : NULL;
}

static void tables_that_many_make_at_once_are_made_once(void **state)
{
    enum { MANY = 6 };
    char *url = postgres_place(server()->url);
    pthread_t threads[MANY];
    int made = 0;

    (void)state;
    for (int i = 0; i < MANY; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_it, url), 0);
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
    char *url = postgres_place(server()->url), text[200];

    (void)state;
    assert_non_null(make_it(url));
    snprintf(text, sizeof text, "update %s.store set version = 99", postgres_schema(url));
    sql(url, text, NULL);
    refused(url, SESSILE_UNSUPPORTED, "99", NULL);
    postgres_drop(url);
}

static void who_may_only_read_reads(void **state)
{
    char *url = postgres_place(server()->url), *reader;
    sessile_backend_log *log;
    sessile_error err = {0};
    char bytes[8];
    size_t got;
    int changed = 1;

    (void)state;
    assert_non_null(make_it(url));
    reader = with(url, "options=-c%20default_transaction_read_only%3Don");
    store st = store_at(reader);
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    did(st.table->read(log, 0, 0, bytes, sizeof bytes, &got, &err), &err);
    assert_int_equal(got, 4);
    did(st.table->watch(log, 4, 30, NULL, NULL, &changed, &err), &err);
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
    char *url = postgres_place(server()->url), text[400];
    store st = store_at(url);
    sessile_error err = {0};

    (void)state;
    did(st.table->create(st.self, "main", "log", lines, sizeof lines - 1, &err), &err);
    snprintf(text, sizeof text,
             "select string_agg(concat_ws(',', id, type, role, author, \"user\"), ' '"
             " order by id) from %s.transcript where name = 'log'",
             postgres_schema(url));
    sql(url, text,
        "0,session 1,message,user,coder,ann 2 3 4 5 6,head 7,checkpoint 8,checkpoint"
        " 9,tombstone");
    snprintf(text, sizeof text, "select content from %s.transcript where id = 1",
             postgres_schema(url));
    sql(url, text,
        "a\xef\xbf\xbd\xef\xbf\xbd"
        "b \\u0000");
    snprintf(text, sizeof text,
             "select concat_ws(',', entry, checkpoint, head, messages, tokens, state)"
             " from %s.checkpoints where name = 'log'",
             postgres_schema(url));
    sql(url, text, "00000008,b,00000001,1,7,{\"step\": 3}");
    snprintf(text, sizeof text, "select head from %s.overview where name = 'log'",
             postgres_schema(url));
    sql(url, text, "00000001");
    store_close(&st);
    postgres_drop(url);
}

/* ------------------------------------------------------------------ connections */

/* A trigger that makes every append to the place wait so long. */
static void slow_down(const char *url, const char *seconds)
{
    char text[500];
    const char *schema = postgres_schema(url);

    snprintf(text, sizeof text,
             "create or replace function %s.slow() returns trigger language plpgsql as"
             " $$ begin perform pg_sleep(%s); return new; end $$;"
             " create or replace trigger slow before update on %s.sessions"
             " for each row execute function %s.slow()",
             schema, seconds, schema, schema);
    sql(url, text, NULL);
}

static void a_statement_past_the_timeout_ends_and_names_it(void **state)
{
    char *url = postgres_place(server()->url), *short_one;
    sessile_backend_log *log;
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    sessile_error err = {0};
    int poisoned = 1;

    (void)state;
    assert_non_null(make_it(url));
    slow_down(url, "2");
    short_one = with(url, "timeout=100ms");
    store st = store_at(short_one);
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    assert_int_equal(st.table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &err),
                     SESSILE_BUSY);
    assert_non_null(strstr(err.message, "timeout is 100 ms"));
    assert_int_equal(poisoned, 0);
    assert_int_equal(end.count, 1);
    slow_down(url, "0");
    did(st.table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &err), &err);
    st.table->close(log);
    store_close(&st);
    free(short_one);
    postgres_drop(url);
}

typedef struct holder {
    store *st;
    pthread_t thread;
    sessile_status status;
    sessile_error err;
} holder;

static void *hold(void *arg)
{
    holder *h = arg;
    sessile_backend_log *log;
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    int poisoned;

    h->status = h->st->table->open(h->st->self, "main", "log", &log, &h->err);
    if (!h->status) {
        h->status =
            h->st->table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &h->err);
        h->st->table->close(log);
    }
    return NULL;
}

static void what_the_server_says_becomes_an_error_of_ours(void **state)
{
    static const struct {
        const char *sqlstate;
        sessile_status status;
        const char *names;
    } cases[] = {
        {"53100", SESSILE_FULL, "disk"},      {"42501", SESSILE_DENIED, "rights"},
        {"53300", SESSILE_BUSY, "pool="},     {"40001", SESSILE_BUSY, "try again"},
        {"57014", SESSILE_BUSY, "timeout"},   {"XX001", SESSILE_IO, "XX001"},
        {"25006", SESSILE_DENIED, "standby"}, {"28000", SESSILE_DENIED, "password"},
    };
    char *url = postgres_place(server()->url), text[600];
    const char *schema = postgres_schema(url);
    sessile_error err = {0};

    (void)state;
    assert_non_null(make_it(url));
    store st = store_at(url);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        snprintf(text, sizeof text,
                 "create or replace function %s.no() returns trigger language plpgsql as"
                 " $$ begin raise exception using message = 'said with %s', errcode = "
                 "'%s'; end $$;"
                 " create or replace trigger no before insert on %s.blobs"
                 " for each row execute function %s.no()",
                 schema, ((pg_store *)st.self)->url.secret[0], cases[i].sqlstate, schema,
                 schema);
        sql(url, text, NULL);
        assert_int_equal(st.table->blob_put_new(st.self, "ring", "x", 1, &err),
                         cases[i].status);
        if (!strstr(err.message, cases[i].names))
            fail_msg("\"%s\" does not name \"%s\"", err.message, cases[i].names);
        assert_null(strstr(err.message, ((pg_store *)st.self)->url.secret[0]));
    }
    store_close(&st);
    postgres_drop(url);
}

static void rows_that_make_no_sense_are_not_believed(void **state)
{
    static const char *const spoilt[] = {
        "update %s.sessions set bytes = -1",
        "update %s.sessions set bytes = 9223372036854775807",
        "update %s.sessions set bytes = 4, count = 9",
        "update %s.sessions set count = 3, bytes = 12",
        "delete from %s.entries",
        "update %s.entries set at = 2",
    };
    (void)state;
    for (size_t i = 0; i < sizeof spoilt / sizeof *spoilt; i++) {
        char *url = postgres_place(server()->url), text[300], bytes[40];
        sessile_backend_log *log;
        sessile_error err = {0};
        size_t got = 0;

        assert_non_null(make_it(url));
        snprintf(text, sizeof text, spoilt[i], postgres_schema(url));
        sql(url, text, NULL);
        store st = store_at(url);
        sessile_status status = st.table->open(st.self, "main", "log", &log, &err);
        if (!status) {
            status = st.table->read(log, 0, 0, bytes, 12, &got, &err);
            /* what is there, and then what is missing */
            if (!status && got)
                status = st.table->read(log, 1, got, bytes, 12, &got, &err);
            st.table->close(log);
        }
        assert_int_equal(status, SESSILE_IO);
        assert_non_null(strstr(err.message, "somebody else changed it"));
        store_close(&st);
        postgres_drop(url);
    }
}

static void past_the_last_connection_a_call_waits_then_is_busy(void **state)
{
    char *url = postgres_place(server()->url), *one, text[200];
    sessile_backend_log *log;
    sessile_error err = {0};
    uint64_t bytes;
    int64_t mtime;

    (void)state;
    assert_non_null(make_it(url));
    one = with(url, "pool=1");
    store st = store_at(one);
    holder h = {.st = &st};
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    slow_down(url, "1.5");
    assert_int_equal(pthread_create(&h.thread, NULL, hold, &h), 0);
    snprintf(text, sizeof text,
             "select count(*) from pg_stat_activity where query like '%%%s%%'"
             " and wait_event = 'PgSleep'",
             postgres_schema(url));
    for (int busy = 0; !busy;) {
        char *n = postgres_sql(url, text);
        busy = n && strcmp(n, "0");
        free(n);
    }
    st.table->set_timeout(log, 20);
    assert_int_equal(st.table->size(log, &bytes, &mtime, &err), SESSILE_BUSY);
    assert_non_null(strstr(err.message, "pool="));
    st.table->set_timeout(log, 60000);
    did(st.table->size(log, &bytes, &mtime, &err), &err);
    assert_int_equal(bytes, 8);
    pthread_join(h.thread, NULL);
    did(h.status, &h.err);
    st.table->close(log);
    store_close(&st);
    free(one);
    postgres_drop(url);
}

static void *make_many(void *arg)
{
    store *st = arg;
    sessile_error err = {0};
    char name[40];

    for (int i = 0; i < 10; i++) {
        snprintf(name, sizeof name, "log-%lx-%d", (unsigned long)pthread_self(), i);
        if (st->table->create(st->self, "main", name, "one\n", 4, &err))
            return "failed";
    }
    return NULL;
}

static void a_hundred_threads_use_no_more_than_the_pool(void **state)
{
    enum { THREADS = 100 };
    char *url = postgres_place(server()->url), *named;
    pthread_t threads[THREADS];

    (void)state;
    assert_non_null(make_it(url));
    named = with(url, "pool=3&application_name=pool_of_three");
    store st = store_at(named);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, &st), 0);
    sql(url,
        "select count(*) <= 3 from pg_stat_activity"
        " where application_name = 'pool_of_three'",
        "t");
    for (int i = 0; i < THREADS; i++) {
        void *trouble;
        pthread_join(threads[i], &trouble);
        assert_null(trouble);
    }
    sql(url,
        "select count(*) between 1 and 3 from pg_stat_activity"
        " where application_name = 'pool_of_three'",
        "t");
    store_close(&st);
    free(named);
    postgres_drop(url);
}

static int reopen_in(void *arg, const char *folder, const char *name)
{
    store *st = arg;
    sessile_backend_log *log;
    sessile_error err = {0};

    did(st->table->open(st->self, folder, name, &log, &err), &err);
    st->table->close(log);
    return 0;
}

static void a_list_lets_its_visitor_use_the_last_connection(void **state)
{
    char *url = postgres_place(server()->url), *one;
    sessile_error err = {0};

    (void)state;
    assert_non_null(make_it(url));
    one = with(url, "pool=1");
    store st = store_at(one);
    did(st.table->list(st.self, NULL, reopen_in, &st, &err), &err);
    store_close(&st);
    free(one);
    postgres_drop(url);
}

static void what_the_server_forgot_is_prepared_again(void **state)
{
    char *url = postgres_place(server()->url);
    store st;
    sessile_backend_log *log;
    sessile_error err = {0};
    uint64_t bytes;
    int64_t mtime;
    pg_results r;
    pg_conn *c;

    (void)state;
    assert_non_null(make_it(url));
    st = store_at(url);
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    did(st.table->size(log, &bytes, &mtime, &err), &err);
    pg_call call = pg_call_of(st.self, 5000);
    pg_step s = pg_step_once("DISCARD ALL");
    did(pg_take(&call, &c, &err), &err);
    assert_int_equal(pg_send(&call, c, &s, 1, &r), PG_ANSWERED);
    assert_null(r.wrong);
    pg_results_free(st.self, &r);
    pg_give(st.self, c);
    did(st.table->size(log, &bytes, &mtime, &err), &err);
    assert_int_equal(bytes, 4);
    st.table->close(log);
    store_close(&st);
    postgres_drop(url);
}

static void a_child_of_fork_may_not_use_it(void **state)
{
    char *url = postgres_place(server()->url);
    store st;
    sessile_backend_log *log;
    sessile_error err = {0};
    uint64_t bytes;
    int64_t mtime;
    int status;

    (void)state;
    assert_non_null(make_it(url));
    st = store_at(url);
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    pid_t child = fork();
    if (!child) {
        int ok = st.table->size(log, &bytes, &mtime, &err) == SESSILE_FORKED;
        st.table->close(log);
        store_close(&st); /* which must not end the parent's connection */
        _exit(!ok);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pg_conn *first = ((pg_store *)st.self)->idle;
    did(st.table->size(log, &bytes, &mtime, &err), &err);
    assert_ptr_equal(((pg_store *)st.self)->idle, first);
    st.table->close(log);
    store_close(&st);
    postgres_drop(url);
}

static void what_is_acknowledged_is_synced_unless_the_url_says_else(void **state)
{
    static const char *const cases[][2] = {
        {"", "on"},
        {"options=-c%20synchronous_commit%3Doff", "off"},
    };
    char *url = postgres_place(server()->url), text[300];
    const char *schema = postgres_schema(url);

    (void)state;
    assert_non_null(make_it(url));
    snprintf(text, sizeof text, "create table %s.seen (setting text)", schema);
    sql(url, text, NULL);
    snprintf(text, sizeof text,
             "create function %s.see() returns trigger language plpgsql as $$ begin"
             " insert into %s.seen values (current_setting('synchronous_commit'));"
             " return new; end $$",
             schema, schema);
    sql(url, text, NULL);
    snprintf(text, sizeof text,
             "create trigger see before insert on %s.blobs for each row"
             " execute function %s.see()",
             schema, schema);
    sql(url, text, NULL);
    /* as an administrator may have set it */
    sql(server()->admin, "alter system set synchronous_commit = off", NULL);
    sql(server()->admin, "select pg_reload_conf()", NULL);
    for (size_t i = 0; i < 2; i++) {
        char *more = with(url, cases[i][0]), name[20];
        store st = store_at(more);
        sessile_error err = {0};
        snprintf(name, sizeof name, "blob%zu", i);
        did(st.table->blob_put_new(st.self, name, "x", 1, &err), &err);
        store_close(&st);
        free(more);
        snprintf(text, sizeof text, "delete from %s.seen returning setting", schema);
        sql(url, text, cases[i][1]);
    }
    sql(server()->admin, "alter system reset synchronous_commit", NULL);
    sql(server()->admin, "select pg_reload_conf()", NULL);
    postgres_drop(url);
}

/* Appends one record at the end that is known. */
static sessile_status put(store *st, sessile_backend_log *log, sessile_log_end *end,
                          const char *line, sessile_error *err)
{
    unsigned char tag[16];
    int poisoned;

    memset(tag, line[0], sizeof tag);
    memset(err, 0, sizeof *err);
    return st->table->append(log, end, line, strlen(line), 1, tag, &poisoned, err);
}

static void an_append_that_need_not_be_durable_is_waited_for_by_sync(void **state)
{
    char *url = postgres_place(server()->url), text[400], *lsn;
    const char *schema = postgres_schema(url);
    sessile_backend_log *log;
    sessile_error err = {0};
    sessile_log_end end = {.count = 1, .bytes = 4};
    store st = store_at(url);

    (void)state;
    store_postgres_unsynced(&st);
    did(st.table->create(st.self, "main", "log", "one\n", 4, &err), &err);
    snprintf(text, sizeof text, "create table %s.seen (setting text)", schema);
    sql(url, text, NULL);
    snprintf(text, sizeof text,
             "create function %s.see() returns trigger language plpgsql as $$ begin"
             " insert into %s.seen values (current_setting('synchronous_commit'));"
             " return new; end $$",
             schema, schema);
    sql(url, text, NULL);
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "create trigger see before insert on %s.%s for each row"
                 " execute function %s.see()",
                 schema, i ? "blobs" : "entries", schema);
        sql(url, text, NULL);
    }
    /* the server shall not sync of itself while this runs */
    sql(server()->admin, "alter system set wal_writer_delay = 10000", NULL);
    sql(server()->admin, "select pg_reload_conf()", NULL);
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    snprintf(text, sizeof text, "delete from %s.seen returning setting", schema);
    did(put(&st, log, &end, "two\n", &err), &err);
    sql(url, text, "off");
    did(st.table->blob_put_new(st.self, "blob", "x", 1, &err), &err);
    sql(url, text, "on");
    did(put(&st, log, &end, "three\n", &err), &err);
    lsn = postgres_sql(server()->admin, "select pg_current_wal_insert_lsn()");
    did(st.table->sync(log, &err), &err);
    snprintf(text, sizeof text, "select pg_current_wal_flush_lsn() >= '%s'::pg_lsn", lsn);
    sql(server()->admin, text, "t");
    free(lsn);
    sql(server()->admin, "alter system reset wal_writer_delay", NULL);
    sql(server()->admin, "select pg_reload_conf()", NULL);
    st.table->close(log);
    store_close(&st);
    postgres_drop(url);
}

static void what_a_failed_server_forgot_is_not_called_synced(void **state)
{
    char *url = postgres_place(server()->url), text[300];
    const char *schema = postgres_schema(url);
    sessile_backend_log *log;
    sessile_error err = {0};
    sessile_log_end end = {.count = 1, .bytes = 4};
    store st = store_at(url);

    (void)state;
    store_postgres_unsynced(&st);
    did(st.table->create(st.self, "main", "log", "one\n", 4, &err), &err);
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    did(put(&st, log, &end, "two\n", &err), &err);
    did(st.table->sync(log, &err), &err);
    did(put(&st, log, &end, "three\n", &err), &err);
    /* as after a crash: the last append is not there, and another node has gone on */
    snprintf(text, sizeof text, "update %s.entries set line = 'other' where id = 2",
             schema);
    sql(url, text, NULL);
    assert_int_equal(st.table->sync(log, &err), SESSILE_IO);
    assert_non_null(strstr(err.message, "lost"));
    snprintf(text, sizeof text, "delete from %s.entries where id = 2", schema);
    sql(url, text, NULL);
    assert_int_equal(st.table->sync(log, &err), SESSILE_IO);
    st.table->close(log);
    store_close(&st);
    postgres_drop(url);
}

static void a_log_is_read_from_any_byte(void **state)
{
    enum { RECORDS = 3000 };
    char *url = postgres_place(server()->url);
    store st = store_at(url);
    sessile_backend_log *log;
    sessile_error err = {0};
    char *all = malloc(RECORDS * 800), out[3000];
    size_t size = 0, got;
    uint64_t *at = malloc((RECORDS + 1) * sizeof *at);

    (void)state;
    for (int i = 0; i < RECORDS; i++) { /* records of very different sizes */
        int n = i % 50 ? i % 40 + 1 : 790;
        at[i] = size;
        memset(all + size, 'a' + i % 26, (size_t)n);
        size += (size_t)n;
        all[size++] = '\n';
    }
    did(st.table->create(st.self, "main", "log", all, size, &err), &err);
    did(st.table->open(st.self, "main", "log", &log, &err), &err);
    srand(7);
    for (int i = 0; i < 300; i++) {
        int record = rand() % RECORDS;
        size_t from = (size_t)at[record] + (size_t)(rand() % 3 ? 0 : 1),
               want = 1 + rand() % 2999;
        /* its right number, none, or a wrong one */
        uint64_t index = i % 3 == 0 ? (uint64_t)record : i % 3 == 1 ? 0 : RECORDS - 1;
        did(st.table->read(log, index, from, out, want, &got, &err), &err);
        assert_int_equal(got, size - from < want ? size - from : want);
        assert_memory_equal(out, all + from, got);
    }
    st.table->close(log);
    store_close(&st);
    free(at);
    free(all);
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
        cmocka_unit_test(what_the_server_says_becomes_an_error_of_ours),
        cmocka_unit_test(rows_that_make_no_sense_are_not_believed),
        cmocka_unit_test(opening_and_reading_make_nothing),
        cmocka_unit_test(tables_that_many_make_at_once_are_made_once),
        cmocka_unit_test(a_newer_schema_is_refused),
        cmocka_unit_test(who_may_only_read_reads),
        cmocka_unit_test(views_show_plain_lines_and_fail_on_none),
        cmocka_unit_test(a_statement_past_the_timeout_ends_and_names_it),
        cmocka_unit_test(past_the_last_connection_a_call_waits_then_is_busy),
        cmocka_unit_test(a_hundred_threads_use_no_more_than_the_pool),
        cmocka_unit_test(a_list_lets_its_visitor_use_the_last_connection),
        cmocka_unit_test(what_the_server_forgot_is_prepared_again),
        cmocka_unit_test(a_child_of_fork_may_not_use_it),
        cmocka_unit_test(what_is_acknowledged_is_synced_unless_the_url_says_else),
        cmocka_unit_test(an_append_that_need_not_be_durable_is_waited_for_by_sync),
        cmocka_unit_test(what_a_failed_server_forgot_is_not_called_synced),
        cmocka_unit_test(a_log_is_read_from_any_byte),
    };
    return cmocka_run_group_tests_name("the PostgreSQL store", tests, NULL, NULL);
}
