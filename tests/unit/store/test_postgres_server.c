/*
 * test_postgres_server.c: what the PostgreSQL store makes of a server: timeouts,
 * errors, rows that make no sense, its connections, restarts, and what is durable.
 *
 * Without a server the cases that need one are skipped, and say why.
 */
#include "store/postgres/open.h"
#include "store/postgres/postgres.h"

#include "support/check.h"
#include "support/postgres.h"

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
    postgres_value(url, text, NULL);
}

static void a_statement_past_the_timeout_ends_and_names_it(void **state)
{
    char *url = postgres_place(postgres_needed()->url), *short_one;
    sessile_backend_log *log;
    sessile_log_end end = {1, 4, {0}};
    unsigned char tag[16] = {1};
    sessile_error err = {0};
    int poisoned = 1;

    (void)state;
    assert_non_null(postgres_make(url));
    slow_down(url, "2");
    short_one = url_with(url, "timeout=100ms");
    store st = store_at(short_one);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    assert_int_equal(st.table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &err),
                     SESSILE_BUSY);
    assert_non_null(strstr(err.message, "timeout is 100 ms"));
    assert_int_equal(poisoned, 0);
    assert_int_equal(end.count, 1);
    slow_down(url, "0");
    must(st.table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &err), &err);
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
    char *url = postgres_place(postgres_needed()->url), text[600];
    const char *schema = postgres_schema(url);
    sessile_error err = {0};

    (void)state;
    assert_non_null(postgres_make(url));
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
        postgres_value(url, text, NULL);
        assert_int_equal(st.table->blob_put_new(st.self, "ring", "x", 1, &err),
                         cases[i].status);
        if (!strstr(err.message, cases[i].names))
            fail_msg("\"%s\" does not name \"%s\"", err.message, cases[i].names);
        assert_null(strstr(err.message, ((pg_store *)st.self)->url.secret[0]));
    }
    store_close(&st);
    postgres_drop(url);
}

static void past_the_last_connection_a_call_waits_then_is_busy(void **state)
{
    char *url = postgres_place(postgres_needed()->url), *one, text[200];
    sessile_backend_log *log;
    sessile_error err = {0};
    uint64_t bytes;
    int64_t mtime;

    (void)state;
    assert_non_null(postgres_make(url));
    one = url_with(url, "pool=1");
    store st = store_at(one);
    holder h = {.st = &st};
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
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
    must(st.table->size(log, &bytes, &mtime, &err), &err);
    assert_int_equal(bytes, 8);
    pthread_join(h.thread, NULL);
    must(h.status, &h.err);
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
    char *url = postgres_place(postgres_needed()->url), *named;
    pthread_t threads[THREADS];

    (void)state;
    assert_non_null(postgres_make(url));
    named = url_with(url, "pool=3&application_name=pool_of_three");
    store st = store_at(named);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, make_many, &st), 0);
    postgres_value(url,
                   "select count(*) <= 3 from pg_stat_activity"
                   " where application_name = 'pool_of_three'",
                   "t");
    for (int i = 0; i < THREADS; i++) {
        void *trouble;
        pthread_join(threads[i], &trouble);
        assert_null(trouble);
    }
    postgres_value(url,
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

    must(st->table->open(st->self, folder, name, &log, &err), &err);
    st->table->close(log);
    return 0;
}

static void a_list_lets_its_visitor_use_the_last_connection(void **state)
{
    char *url = postgres_place(postgres_needed()->url), *one;
    sessile_error err = {0};

    (void)state;
    assert_non_null(postgres_make(url));
    one = url_with(url, "pool=1");
    store st = store_at(one);
    must(st.table->list(st.self, NULL, reopen_in, &st, &err), &err);
    store_close(&st);
    free(one);
    postgres_drop(url);
}

/* A place with the log "main/log" of four bytes, and a handle of it. */
typedef struct one_log {
    char *url;
    store st;
    sessile_backend_log *log;
    sessile_error err;
} one_log;

static void one_log_open(one_log *o)
{
    memset(o, 0, sizeof *o);
    o->url = postgres_place(postgres_needed()->url);
    assert_non_null(postgres_make(o->url));
    o->st = store_at(o->url);
    must(o->st.table->open(o->st.self, "main", "log", &o->log, &o->err), &o->err);
}

static sessile_status one_log_size(one_log *o, uint64_t *bytes)
{
    int64_t mtime;
    return o->st.table->size(o->log, bytes, &mtime, &o->err);
}

/* Without what is the server's: a child of fork calls it too. */
static void one_log_leave(one_log *o)
{
    o->st.table->close(o->log);
    store_close(&o->st);
}

static void what_the_server_forgot_is_prepared_again(void **state)
{
    one_log o;
    uint64_t bytes;
    pg_results r;
    pg_conn *c;

    (void)state;
    one_log_open(&o);
    must(one_log_size(&o, &bytes), &o.err);
    pg_call call = pg_call_of(o.st.self, 5000);
    pg_step s = pg_step_once("DISCARD ALL");
    must(pg_take(&call, &c, &o.err), &o.err);
    assert_int_equal(pg_send(&call, c, &s, 1, &r), PG_ANSWERED);
    assert_null(r.wrong);
    pg_results_free(o.st.self, &r);
    pg_give(o.st.self, c);
    must(one_log_size(&o, &bytes), &o.err);
    assert_int_equal(bytes, 4);
    one_log_leave(&o);
    postgres_drop(o.url);
}

static void a_child_of_fork_may_not_use_it(void **state)
{
    one_log o;
    uint64_t bytes;
    int status;

    (void)state;
    one_log_open(&o);
    pid_t child = fork();
    if (!child) {
        int ok = one_log_size(&o, &bytes) == SESSILE_FORKED;
        one_log_leave(&o); /* which must not end the parent's connection */
        _exit(!ok);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    pg_conn *first = ((pg_store *)o.st.self)->idle;
    must(one_log_size(&o, &bytes), &o.err);
    assert_ptr_equal(((pg_store *)o.st.self)->idle, first);
    one_log_leave(&o);
    postgres_drop(o.url);
}

static void what_is_acknowledged_is_synced_unless_the_url_says_else(void **state)
{
    static const char *const cases[][2] = {
        {"", "on"},
        {"options=-c%20synchronous_commit%3Doff", "off"},
    };
    char *url = postgres_place(postgres_needed()->url), text[300];
    const char *schema = postgres_schema(url);

    (void)state;
    assert_non_null(postgres_make(url));
    snprintf(text, sizeof text, "create table %s.seen (setting text)", schema);
    postgres_value(url, text, NULL);
    snprintf(text, sizeof text,
             "create function %s.see() returns trigger language plpgsql as $$ begin"
             " insert into %s.seen values (current_setting('synchronous_commit'));"
             " return new; end $$",
             schema, schema);
    postgres_value(url, text, NULL);
    snprintf(text, sizeof text,
             "create trigger see before insert on %s.blobs for each row"
             " execute function %s.see()",
             schema, schema);
    postgres_value(url, text, NULL);
    /* as an administrator may have set it */
    postgres_value(postgres_needed()->admin, "alter system set synchronous_commit = off",
                   NULL);
    postgres_value(postgres_needed()->admin, "select pg_reload_conf()", NULL);
    for (size_t i = 0; i < 2; i++) {
        char *more = url_with(url, cases[i][0]), name[20];
        store st = store_at(more);
        sessile_error err = {0};
        snprintf(name, sizeof name, "blob%zu", i);
        must(st.table->blob_put_new(st.self, name, "x", 1, &err), &err);
        store_close(&st);
        free(more);
        snprintf(text, sizeof text, "delete from %s.seen returning setting", schema);
        postgres_value(url, text, cases[i][1]);
    }
    postgres_value(postgres_needed()->admin, "alter system reset synchronous_commit",
                   NULL);
    postgres_value(postgres_needed()->admin, "select pg_reload_conf()", NULL);
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
    char *url = postgres_place(postgres_needed()->url), text[400], *lsn;
    const char *schema = postgres_schema(url);
    sessile_backend_log *log;
    sessile_error err = {0};
    sessile_log_end end = {.count = 1, .bytes = 4};
    store st = store_at(url);

    (void)state;
    store_postgres_unsynced(&st);
    must(st.table->create(st.self, "main", "log", "one\n", 4, &err), &err);
    snprintf(text, sizeof text, "create table %s.seen (setting text)", schema);
    postgres_value(url, text, NULL);
    snprintf(text, sizeof text,
             "create function %s.see() returns trigger language plpgsql as $$ begin"
             " insert into %s.seen values (current_setting('synchronous_commit'));"
             " return new; end $$",
             schema, schema);
    postgres_value(url, text, NULL);
    for (size_t i = 0; i < 2; i++) {
        snprintf(text, sizeof text,
                 "create trigger see before insert on %s.%s for each row"
                 " execute function %s.see()",
                 schema, i ? "blobs" : "entries", schema);
        postgres_value(url, text, NULL);
    }
    /* the server shall not sync of itself while this runs */
    postgres_value(postgres_needed()->admin, "alter system set wal_writer_delay = 10000",
                   NULL);
    postgres_value(postgres_needed()->admin, "select pg_reload_conf()", NULL);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    snprintf(text, sizeof text, "delete from %s.seen returning setting", schema);
    must(put(&st, log, &end, "two\n", &err), &err);
    postgres_value(url, text, "off");
    must(st.table->blob_put_new(st.self, "blob", "x", 1, &err), &err);
    postgres_value(url, text, "on");
    must(put(&st, log, &end, "three\n", &err), &err);
    lsn = postgres_sql(postgres_needed()->admin, "select pg_current_wal_insert_lsn()");
    must(st.table->sync(log, &err), &err);
    snprintf(text, sizeof text, "select pg_current_wal_flush_lsn() >= '%s'::pg_lsn", lsn);
    postgres_value(postgres_needed()->admin, text, "t");
    free(lsn);
    postgres_value(postgres_needed()->admin, "alter system reset wal_writer_delay", NULL);
    postgres_value(postgres_needed()->admin, "select pg_reload_conf()", NULL);
    st.table->close(log);
    store_close(&st);
    postgres_drop(url);
}

static void what_a_failed_server_forgot_is_not_called_synced(void **state)
{
    char *url = postgres_place(postgres_needed()->url), text[300];
    const char *schema = postgres_schema(url);
    sessile_backend_log *log;
    sessile_error err = {0};
    sessile_log_end end = {.count = 1, .bytes = 4};
    store st = store_at(url);

    (void)state;
    store_postgres_unsynced(&st);
    must(st.table->create(st.self, "main", "log", "one\n", 4, &err), &err);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    must(put(&st, log, &end, "two\n", &err), &err);
    must(st.table->sync(log, &err), &err);
    must(put(&st, log, &end, "three\n", &err), &err);
    /* as after a crash: the last append is not there, and another node has gone on */
    snprintf(text, sizeof text, "update %s.entries set line = 'other' where id = 2",
             schema);
    postgres_value(url, text, NULL);
    assert_int_equal(st.table->sync(log, &err), SESSILE_IO);
    assert_non_null(strstr(err.message, "lost"));
    snprintf(text, sizeof text, "delete from %s.entries where id = 2", schema);
    postgres_value(url, text, NULL);
    assert_int_equal(st.table->sync(log, &err), SESSILE_IO);
    st.table->close(log);
    store_close(&st);
    postgres_drop(url);
}

static void a_log_is_read_from_any_byte(void **state)
{
    enum { RECORDS = 3000 };
    char *url = postgres_place(postgres_needed()->url);
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
    must(st.table->create(st.self, "main", "log", all, size, &err), &err);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    srand(7);
    for (int i = 0; i < 300; i++) {
        int record = rand() % RECORDS;
        size_t from = (size_t)at[record] + (size_t)(rand() % 3 ? 0 : 1),
               want = 1 + rand() % 2999;
        /* its right number, none, or a wrong one */
        uint64_t index = i % 3 == 0 ? (uint64_t)record : i % 3 == 1 ? 0 : RECORDS - 1;
        must(st.table->read(log, index, from, out, want, &got, &err), &err);
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
        cmocka_unit_test(what_the_server_says_becomes_an_error_of_ours),
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
