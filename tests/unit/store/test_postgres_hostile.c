/*
 * test_postgres_hostile.c: servers that lie, and others in the same database.
 *
 * Owns a server that is none, which says whatever a case has it say, and a schema full of
 * functions and operators that another user planted. What is read from either may be
 * refused; it must never run, overflow, reach a terminal as it is, or take for ever.
 */
#include "store/postgres/postgres.h"

#include "support/check.h"
#include "support/fake_server.h"
#include "support/postgres.h"
#include "support/postgres_stores.h"
#include "store/postgres/open.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

static store store_within(const char *url, int timeout_ms)
{
    store st;
    sessile_error err = {0};

    must(store_postgres_open(&st, url, timeout_ms, os_current, &allocator_default, &err),
         &err);
    return st;
}

/* `format`, with the schema of a place for each "%1$s". */
static void sql(const char *url, const char *place, const char *format,
                const char *expected)
{
    static char text[4000];
    char *value;

    snprintf(text, sizeof text, format, postgres_schema(place));
    value = postgres_sql(url, text);
    assert_non_null(value);
    if (expected)
        assert_string_equal(value, expected);
    free(value);
}

/* ------------------------------------------------------------------ a server that is
 * none */

typedef struct liar {
    const char *first; /* what it says to whoever has said who they are */
    size_t first_size;
    const char *then; /* to everything after that; NULL: nothing */
    size_t then_size;
    int for_ever; /* `then` again and again, asked or not */
    fake_server server;
} liar;

static void talk(fake_server *server, int fd)
{
    const liar *l = server->arg;
    char heard[4096];

    if (!fake_server_readable(server, fd) || recv(fd, heard, sizeof heard, 0) <= 0)
        return;
    if (send(fd, l->first, l->first_size, MSG_NOSIGNAL) < 0)
        return;
    for (;;) {
        if (!l->for_ever &&
            (!fake_server_readable(server, fd) || recv(fd, heard, sizeof heard, 0) <= 0))
            return;
        if (atomic_load(&server->stop) ||
            (l->then && send(fd, l->then, l->then_size, MSG_NOSIGNAL) < 0))
            return;
    }
}

/* How an opening at such a server ends, within a second or two. */
static sessile_status told(liar *l, sessile_error *err)
{
    char url[200];
    store st;

    l->server.talk = talk;
    l->server.arg = l;
    snprintf(url, sizeof url,
             "postgres://me:geheim@127.0.0.1:%d/db?sslmode=disable&gssencmode=disable",
             fake_server_start(&l->server, "127.0.0.1"));
    memset(err, 0, sizeof *err);
    sessile_status status =
        store_postgres_open(&st, url, 100, os_current, &allocator_default, err);
    fake_server_stop(&l->server);
    if (!status)
        store_close(&st);
    return status;
}

#define BYTES(text)              text, sizeof(text) - 1
#define ERROR(state, said, size) "E\0\0\0" size "SFATAL\0VFATAL\0C" state "\0M" said "\0"
#define READY                    "Z\0\0\0\5I"
#define LET_IN                   "R\0\0\0\10\0\0\0\0" READY

static void what_a_server_says_is_never_obeyed_nor_repeated_with_a_secret(void **state)
{
    /* 29 bytes: the length itself, four names, the state, the ends */
    static const struct {
        const char *text;
        size_t size;
    } said[] = {
        {BYTES(ERROR("28P01", "no \33[31m:  22222:x", "\57"))},
        {BYTES(ERROR("28P01", "geheim is no password", "\62"))},
        {BYTES(ERROR("\33[2J\7", "hm", "\37"))},
        {BYTES(ERROR("XX000", "a\r\nb\302\233c", "\44"))},
    };
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        char text[100];
        sessile_error err;
        memcpy(text, said[i].text, said[i].size);
        text[4] = (char)said[i].size; /* the last of its strings ends the list */
        liar l = {.first = text, .first_size = said[i].size + 1};
        text[said[i].size] = '\0';
        sessile_status status = told(&l, &err);

        assert_true(status == SESSILE_DENIED || status == SESSILE_IO);
        assert_null(strstr(err.message, "geheim"));
        assert_null(strpbrk(err.message, "\33\7\r\n"));
        assert_null(strstr(err.message, "\302\233"));
    }
}

static void a_server_that_makes_no_sense_or_no_end_is_given_up(void **state)
{
    static const struct {
        const char *first;
        size_t first_size;
        const char *then;
        size_t then_size;
        int for_ever;
    } said[] = {
        {BYTES("HTTP/1.1 400 Bad Request\r\n\r\n"), NULL, 0, 0},
        {BYTES("E\177\377\377\377SFATAL"), NULL, 0, 0},
        {BYTES("R\0\0\0\0"), NULL, 0, 0},
        {BYTES("R\377\377\377\377"), NULL, 0, 0},
        {BYTES("R\0\0\0\10\377\377\377\377"), NULL, 0, 0},
        {BYTES("N\0\0\0\14SNOTICE\0\0"), BYTES("N\0\0\0\14SNOTICE\0\0"), 1},
        {BYTES(LET_IN), NULL, 0, 0},
        {BYTES(LET_IN), BYTES(READY), 0},
        {BYTES(LET_IN), BYTES("N\0\0\0\14SNOTICE\0\0"), 1},
        /* no columns for what has some, rows without a description, a count of -1 */
        {BYTES(LET_IN),
         BYTES("1\0\0\0\4"
               "2\0\0\0\4"
               "n\0\0\0\4"
               "C\0\0\0\5\0" READY),
         0},
        {BYTES(LET_IN),
         BYTES("2\0\0\0\4"
               "D\0\0\0\6\0\0" READY),
         0},
        {BYTES(LET_IN),
         BYTES("1\0\0\0\4"
               "2\0\0\0\4"
               "T\0\0\0\6\377\377" READY),
         0},
        {BYTES(LET_IN),
         BYTES("1\0\0\0\4"
               "2\0\0\0\4"
               "T\0\0\0\6\0\0"
               "D\0\0\0\6\0\1"
               "C\0\0\0\5\0" READY),
         0},
        {BYTES(LET_IN), BYTES("A\0\0\0\13\0\0\0\1a\0\0"), 1},
    };
    (void)state;
    for (size_t i = 0; i < sizeof said / sizeof *said; i++) {
        liar l = {.first = said[i].first,
                  .first_size = said[i].first_size,
                  .then = said[i].then,
                  .then_size = said[i].then_size,
                  .for_ever = said[i].for_ever};
        sessile_error err;
        sessile_status status = told(&l, &err);

        if (status != SESSILE_IO && status != SESSILE_BUSY && status != SESSILE_INVALID)
            fail_msg("server %zu: %d %s", i, (int)status, err.message);
        assert_null(strstr(err.message, "geheim"));
    }
}

/* ------------------------------------------------------------------ what others planted
 */

static int nothing(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    (void)folder;
    (void)file;
    (void)bytes;
    ++*(int *)arg;
    return 0;
}

/* Each of them fits what we ask better than the server's own does. */
static void what_others_planted_in_the_search_path_is_never_called(void **state)
{
    static const char planted[] =
        "create schema %1$s_x;"
        "create sequence %1$s_x.heard;"
        "create function %1$s_x.convert_from(bytea, text) returns text language sql"
        " as $$ select nextval('%1$s_x.heard')::text $$;"
        "create function %1$s_x.inside(jsonb, jsonb) returns text language sql"
        " as $$ select nextval('%1$s_x.heard')::text $$;"
        "create function %1$s_x.times(bigint, interval) returns interval language sql"
        " as $$ select nextval('%1$s_x.heard') * interval '1 s' $$;"
        "create function %1$s_x.beside(text, bigint) returns text language sql"
        " as $$ select nextval('%1$s_x.heard')::text $$;"
        "create function %1$s_x.pg_advisory_xact_lock(int) returns void language sql"
        " as $$ select nextval('%1$s_x.heard') $$;"
        "create operator %1$s_x.->> (leftarg = jsonb, rightarg = jsonb,"
        " function = %1$s_x.inside);"
        "create operator %1$s_x.#>> (leftarg = jsonb, rightarg = jsonb,"
        " function = %1$s_x.inside);"
        "create operator %1$s_x.* (leftarg = bigint, rightarg = interval,"
        " function = %1$s_x.times);"
        "create operator %1$s_x.|| (leftarg = text, rightarg = bigint,"
        " function = %1$s_x.beside)";
    static const char line[] = "{\"id\":\"00000000\",\"type\":\"session\",\"data\":{}}\n";
    const char *shared = postgres_needed()->url;
    char *url = postgres_place(shared), path[200], *led;
    sessile_backend_log *log;
    sessile_backend_draft *draft;
    sessile_error err = {0};
    int changed, found = 0;

    (void)state;
    sql(shared, url, planted, NULL);
    snprintf(path, sizeof path, "options=-c%%20search_path%%3D%s_x",
             postgres_schema(url));
    led = malloc(strlen(url) + sizeof path + 2);
    sprintf(led, "%s&%s", url, path);
    store st = store_within(led, 5000);
    must(st.table->create(st.self, "main", "log", line, sizeof line - 1, &err), &err);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    must(st.table->watch(log, sizeof line - 1, 1, NULL, NULL, &changed, &err), &err);
    must(st.table->draft_new(st.self, "main", "copy", &draft, &err), &err);
    must(st.table->list_others(st.self, NULL, nothing, &found, &err), &err);
    assert_int_equal(found, 1);
    st.table->draft_drop(draft);
    st.table->close(log);
    store_close(&st);
    sql(led, url, "select type from %1$s.transcript", "session");
    sql(shared, url, "select is_called from %1$s_x.heard", "f");
    sql(shared, url, "drop schema %1$s_x cascade", NULL);
    free(led);
    postgres_drop(url);
}

/* ------------------------------------------------------------------ tables that lie */

/* A table whose length() counts something else than bytes: 4 of them each. */
static void a_cache_longer_than_it_says_is_not_taken(void **state)
{
    const char *shared = postgres_needed()->url;
    char *url = postgres_place(shared);
    sessile_backend_log *log;
    sessile_error err = {0};
    uint64_t bytes;

    (void)state;
    store st = store_within(url, 5000);
    must(st.table->create(st.self, "main", "log", "one\n", 4, &err), &err);
    sql(shared, url,
        "alter table %1$s.caches alter data type text using '';"
        "insert into %1$s.caches select id, 0, repeat(chr(128512), 262144)"
        " from %1$s.sessions",
        NULL);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    must(st.table->cache_size(log, &bytes, &err), &err);
    assert_int_equal(bytes, 262144);
    st.table->close(log);
    store_close(&st);
    postgres_drop(url);
}

/* A row that is lost, or lies, costs what it held. Where a log's row and its entries do
 * not agree the log has one byte too many, which shows that it is damaged. */
static void rows_that_lie_cost_what_they_held(void **state)
{
    static const struct {
        const char *lie, *reads;
    } lies[] = {
        {"update %1$s.sessions set bytes = 9223372036854775807", "one\ntwo\nthree\n\n"},
        {"update %1$s.sessions set bytes = -1", "one\ntwo\nthree\n\n"},
        {"update %1$s.sessions set bytes = 3", "one\ntwo\nthree\n\n"},
        {"update %1$s.sessions set count = 9223372036854775807", "one\ntwo\nthree\n\n"},
        {"update %1$s.sessions set count = 1, bytes = 15", "one\ntwo\nthree\n\n"},
        {"update %1$s.entries set at = at + (1::bigint << 40) where id = 1",
         "one\n   \nthree\n"},
        {"update %1$s.entries set at = at + (1::bigint << 40) where id = 2",
         "one\ntwo\n      \n"},
        {"update %1$s.entries set line = '' where id = 1", "one\n   \nthree\n"},
        {"update %1$s.entries set line = 'tw' where id = 1", "one\ntw \nthree\n"},
        {"delete from %1$s.entries where id = 0", "   \ntwo\nthree\n"},
        {"delete from %1$s.entries where id = 1", "one\n   \nthree\n"},
        {"delete from %1$s.entries where id = 2", "one\ntwo\n\n"},
        {"delete from %1$s.entries", "              \n"},
    };
    const char *shared = postgres_needed()->url;
    (void)state;
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        char *url = postgres_place(shared), out[64] = "", one;
        sessile_backend_log *log;
        sessile_error err = {0};
        size_t got = 1, at = 0;
        uint64_t bytes = 0;
        int64_t mtime;
        store st = store_within(url, 5000);
        must(st.table->create(st.self, "main", "a", "one\ntwo\nthree\n", 14, &err), &err);
        sql(shared, url, lies[i].lie, NULL);
        must(st.table->open(st.self, "main", "a", &log, &err), &err);
        must(st.table->size(log, &bytes, &mtime, &err), &err);
        for (; got > 0 && at < sizeof out; at += got)
            must(st.table->read(log, 0, at, out + at, 3, &got, &err), &err);
        if (strcmp(out, lies[i].reads) != 0 || bytes != strlen(out))
            fail_msg("%s: %zu \"%s\"", lies[i].lie, (size_t)bytes, out);
        for (at = bytes; at-- > 0;) { /* also byte by byte, from anywhere */
            must(st.table->read(log, 0, at, &one, 1, &got, &err), &err);
            if (got != 1 || one != out[at])
                fail_msg("%s: byte %zu", lies[i].lie, at);
        }
        st.table->close(log);
        store_close(&st);
        postgres_drop(url);
    }
}

static int count(void *arg, const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    return ++*(int *)arg > 5000;
}

/* Pages that never end: a view has the same logs behind each. */
static void a_list_that_repeats_itself_ends(void **state)
{
    const char *shared = postgres_needed()->url;
    char *url = postgres_place(shared);
    sessile_error err = {0};
    int seen = 0;

    (void)state;
    store st = store_within(url, 5000);
    must(st.table->create(st.self, "main", "log", "one\n", 4, &err), &err);
    sql(shared, url,
        "alter table %1$s.sessions rename to real;"
        "create function %1$s.more(text) returns setof %1$s.real language sql as"
        " $$ select r.* from %1$s.real r, generate_series(1, 1500) $$;"
        "create view %1$s.sessions as select id, agent, name collate \"C\" as name, was,"
        " kept, taken_by, count, bytes, tag, created, updated, watched"
        " from %1$s.more('x')",
        NULL);
    assert_int_equal(st.table->list(st.self, NULL, count, &seen, &err), SESSILE_IO);
    assert_int_equal(seen, 1);
    assert_non_null(strstr(err.message, "somebody else"));
    store_close(&st);
    postgres_drop(url);
}

/* ------------------------------------------------------------------ replication */

/* The standby that must have every commit is not there: nothing is acknowledged, also not
 * by finding it on the one machine that has it. */
static void what_no_standby_has_is_not_acknowledged(void **state)
{
    const char *why;
    postgres_server *s = postgres_own(&why);
    sessile_backend_log *log;
    sessile_log_end end = {1, 4, {0}};
    sessile_error err = {0};
    unsigned char tag[16] = {2};
    int poisoned;

    (void)state;
    if (!s) {
        print_message("# %s\n", why);
        skip();
    }
    free(postgres_sql(s->admin, "alter system set wal_level = 'replica'"));
    free(postgres_sql(s->admin, "alter system set max_wal_senders = 2"));
    assert_int_equal(postgres_do(s, "stop"), 0);
    assert_int_equal(postgres_do(s, "again"), 0);
    store st = store_within(s->url, 1000);
    must(st.table->create(st.self, "main", "log", "one\n", 4, &err), &err);
    must(st.table->open(st.self, "main", "log", &log, &err), &err);
    free(postgres_sql(s->admin, "alter system set synchronous_standby_names = 'nobody'"));
    /* heeded by every process of the server after a start, at the latest */
    assert_int_equal(postgres_do(s, "stop"), 0);
    assert_int_equal(postgres_do(s, "again"), 0);
    assert_int_equal(st.table->append(log, &end, "two\n", 4, 1, tag, &poisoned, &err),
                     SESSILE_IO);
    assert_int_equal(poisoned, 1);
    assert_int_equal(end.bytes, 4);
    st.table->close(log);
    store_close(&st);
    postgres_own_free(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_a_server_says_is_never_obeyed_nor_repeated_with_a_secret),
        cmocka_unit_test(a_server_that_makes_no_sense_or_no_end_is_given_up),
        cmocka_unit_test(what_others_planted_in_the_search_path_is_never_called),
        cmocka_unit_test(a_cache_longer_than_it_says_is_not_taken),
        cmocka_unit_test(rows_that_lie_cost_what_they_held),
        cmocka_unit_test(a_list_that_repeats_itself_ends),
        cmocka_unit_test(what_no_standby_has_is_not_acknowledged),
    };
    return cmocka_run_group_tests_name("PostgreSQL servers that lie", tests, NULL, NULL);
}
