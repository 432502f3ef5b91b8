/*
 * test_postgres_keep.c: what a PostgreSQL store keeps in memory, and how often a session
 * makes it ask.
 *
 * Round trips are counted where they are made, and bytes by a proxy. Each number below is
 * a promise of README.md: who adds a question to the opening of a session learns it here.
 */
#include "store/postgres/postgres.h"

#include "support/check.h"
#include "support/postgres_stores.h"
#include "support/proxy.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sessile_store.h"

/* A store of sessions whose round trips can be read. */
typedef struct node {
    sessile_store *store;
    pg_store *ps;
} node;

static node node_at(const char *url)
{
    sessile_store_options options;
    sessile_error err;
    node n;
    store st = store_at(url);
    n.ps = st.self;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    must(sessile_open_with(&n.store, st.table, st.self, &options, &err), &err);
    return n;
}

static sessile_session *session_at(const node *n, int create)
{
    sessile_session_options options;
    sessile_session *s;
    sessile_error err;
    sessile_session_options_init(&options);
    options.id = sessile_text("kept");
    must(create ? sessile_create(&s, n->store, &options, &err)
                : sessile_resume(&s, n->store, &options, &err),
         &err);
    return s;
}

static void append(sessile_session *s, int i)
{
    char text[800];
    sessile_error err;
    snprintf(text, sizeof text, "{\"role\":\"user\",\"content\":\"%d %0*d\"}", i, 600, 0);
    must(sessile_append(s, sessile_text(text), NULL, &err), &err);
}

/* The context has `count` messages, and the last of them is number `last`. */
static void context_is(sessile_session *s, size_t count, int last)
{
    sessile_message *list;
    sessile_error err;
    size_t got;
    char begins[60];
    must(sessile_context(s, SESSILE_NO_ID, &list, &got, NULL, &err), &err);
    assert_int_equal(got, count);
    int n = snprintf(begins, sizeof begins, "{\"role\":\"user\",\"content\":\"%d ", last);
    assert_memory_equal(list[got - 1].json.data, begins, n);
    sessile_free(list);
}

static uint64_t trips(const node *n, uint64_t since)
{
    return n->ps->round_trips - since;
}

/* ------------------------------------------------------------------ round trips */

static void a_session_is_opened_in_three_round_trips(void **state)
{
    static const int sizes[] = {3, 300, 1400, 3000};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        char *url = postgres_place(postgres_needed()->url), *kept;
        kept = url_with(url, "keep=64MiB");
        node writer = node_at(url);
        sessile_session *s = session_at(&writer, 1);
        for (int m = 0; m < sizes[i]; m++)
            append(s, m);
        sessile_session_close(s, NULL);
        for (int shared = 0; shared < 2; shared++) {
            node cold = node_at(shared ? kept : url);
            uint64_t was = cold.ps->round_trips;
            s = session_at(&cold, 0);
            uint64_t opening = trips(&cold, was);
            context_is(s, (size_t)sizes[i], sizes[i] - 1);
            print_message("# figure: %d messages: %d round trips to open, %d with all of "
                          "them read\n",
                          sizes[i], (int)opening, (int)trips(&cold, was));
            assert_in_range(opening, 1, 3);
            sessile_session_close(s, NULL);
            sessile_store_close(cold.store);
        }
        sessile_store_close(writer.store);
        free(kept);
        postgres_drop(url);
    }
}

static void a_context_that_was_read_is_not_fetched_again(void **state)
{
    enum { MESSAGES = 1000 };
    const postgres_server *server = postgres_needed();
    char *place = postgres_place(server->tcp), *far, *kept;
    proxy *wire = proxy_open(proxy_port_of(server->tcp));
    (void)state;
    far = proxy_url(wire, place);
    kept = url_with(far, "keep=64MiB");
    node writer = node_at(place), reader = node_at(kept);
    sessile_session *w = session_at(&writer, 1), *r;
    for (int i = 0; i < MESSAGES; i++)
        append(w, i);
    r = session_at(&reader, 0);
    context_is(r, MESSAGES, MESSAGES - 1);

    uint64_t was = reader.ps->round_trips, bytes = proxy_bytes(wire, PROXY_TO_CLIENT);
    context_is(r, MESSAGES, MESSAGES - 1);
    assert_in_range(trips(&reader, was), 0, 1); /* where does the log end? */
    append(w, MESSAGES);
    append(r, MESSAGES + 1); /* finds another end, reads on, and tries again */
    context_is(r, MESSAGES + 2, MESSAGES + 1);
    assert_in_range(trips(&reader, was), 3, 7);
    assert_in_range(proxy_bytes(wire, PROXY_TO_CLIENT) - bytes, 1, 50000);
    sessile_session_close(r, NULL);

    /* opened again, by another handle */
    bytes = proxy_bytes(wire, PROXY_TO_CLIENT);
    r = session_at(&reader, 0);
    context_is(r, MESSAGES + 2, MESSAGES + 1);
    assert_in_range(proxy_bytes(wire, PROXY_TO_CLIENT) - bytes, 1, 200000);
    sessile_session_close(r, NULL);
    sessile_session_close(w, NULL);
    sessile_store_close(writer.store);
    sessile_store_close(reader.store);
    proxy_close(wire);
    free(kept);
    free(far);
    postgres_drop(place);
}

/* ------------------------------------------------------------------ whose records */

static sessile_backend_log *log_at(store *st, const char *name)
{
    sessile_backend_log *log;
    sessile_error err;
    must(st->table->open(st->self, "main", name, &log, &err), &err);
    return log;
}

static void log_is(store *st, const char *name, const char *expected)
{
    sessile_backend_log *log = log_at(st, name);
    char out[64] = "";
    size_t got;
    sessile_error err;
    must(st->table->read(log, 0, 0, out, sizeof out - 1, &got, &err), &err);
    assert_string_equal(out, expected);
    st->table->close(log);
}

static void what_took_the_place_of_a_log_is_read(void **state)
{
    char *url = postgres_place(postgres_needed()->url), *kept;
    sessile_backend_draft *draft;
    sessile_error err;
    uint64_t bytes;
    int64_t mtime;
    (void)state;
    kept = url_with(url, "keep=1MiB");
    store st = store_at(kept), other = store_at(url);
    must(st.table->create(st.self, "main", "a", "one\ntwo\n", 8, &err), &err);
    log_is(&st, "a", "one\ntwo\n");
    sessile_backend_log *old = log_at(&st, "a"), *its = log_at(&other, "a");

    must(other.table->draft_new(other.self, "main", "a", &draft, &err), &err);
    must(other.table->draft_write(draft, "ONE\nTWO\n", 8, &err), &err);
    must(other.table->draft_replace(draft, its, 0, NULL, 0, &err), &err);
    log_is(&st, "a", "ONE\nTWO\n");
    /* whoever has the old one open learns that it is gone */
    char out[8];
    size_t got;
    must(st.table->size(old, &bytes, &mtime, &err), &err);
    assert_int_equal(st.table->replaced(old), 1);
    assert_int_equal(st.table->read(old, 0, 0, out, 8, &got, &err), SESSILE_NOTFOUND);
    st.table->close(old);
    other.table->close(its);

    its = log_at(&other, "a");
    must(other.table->remove(its, 0, &err), &err);
    other.table->close(its);
    must(other.table->create(other.self, "main", "a", "111\n222\n", 8, &err), &err);
    log_is(&st, "a", "111\n222\n");
    store_close(&other);
    store_close(&st);
    free(kept);
    postgres_drop(url);
}

/* A check looks for what was lost or changed in the tables. */
static void who_checks_reads_the_tables(void **state)
{
    char *url = postgres_place(postgres_needed()->url), *kept, text[200], out[16] = "";
    sessile_error err;
    size_t got;
    (void)state;
    kept = url_with(url, "keep=1MiB");
    store st = store_at(kept);
    must(st.table->create(st.self, "main", "a", "one\ntwo\n", 8, &err), &err);
    log_is(&st, "a", "one\ntwo\n");
    snprintf(text, sizeof text, "update %s.entries set line = E'TWO\\n' where id = 1",
             postgres_schema(url));
    postgres_value(url, text, NULL);
    log_is(&st, "a", "one\ntwo\n");
    sessile_backend_log *log = log_at(&st, "a");
    st.table->reread(log);
    must(st.table->read(log, 0, 0, out, sizeof out - 1, &got, &err), &err);
    assert_string_equal(out, "one\nTWO\n");
    st.table->close(log);
    store_close(&st);
    free(kept);
    postgres_drop(url);
}

/* ------------------------------------------------------------------ how much */

static void no_more_is_kept_than_was_asked_for(void **state)
{
    enum { LOGS = 6, RECORDS = 600, RECORD = 1000 };
    char *url = postgres_place(postgres_needed()->url), *kept, name[8], *text, *out;
    sessile_error err;
    (void)state;
    kept = url_with(url, "keep=1MiB");
    store st = store_at(kept);
    const pg_store *ps = st.self;
    text = malloc(RECORDS * RECORD);
    out = malloc(RECORDS * RECORD);
    for (int pass = 0; pass < 3; pass++) {
        for (int l = 0; l < LOGS; l++) {
            size_t got;
            snprintf(name, sizeof name, "l%d", l);
            memset(text, 'a' + l, RECORDS * RECORD);
            for (int i = 1; i <= RECORDS; i++)
                text[i * RECORD - 1] = '\n';
            if (pass == 0)
                must(
                    st.table->create(st.self, "main", name, text, RECORDS * RECORD, &err),
                    &err);
            sessile_backend_log *log = log_at(&st, name);
            must(st.table->read(log, 0, 0, out, RECORDS * RECORD, &got, &err), &err);
            assert_int_equal(got, RECORDS * RECORD);
            assert_memory_equal(out, text, got);
            assert_in_range(ps->keep.bytes, 1, 1 << 20);
            st.table->close(log);
        }
    }
    assert_in_range(ps->keep.bytes, 500000, 1 << 20); /* and it stays */
    free(out);
    free(text);
    store_close(&st);
    free(kept);
    postgres_drop(url);
}

static void without_the_parameter_nothing_stays_of_a_closed_log(void **state)
{
    char *url = postgres_place(postgres_needed()->url);
    sessile_error err;
    (void)state;
    store st = store_at(url);
    const pg_store *ps = st.self;
    must(st.table->create(st.self, "main", "a", "one\ntwo\n", 8, &err), &err);
    log_is(&st, "a", "one\ntwo\n");
    assert_int_equal(ps->keep.bytes, 0);
    store_close(&st);
    postgres_drop(url);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_session_is_opened_in_three_round_trips),
        cmocka_unit_test(a_context_that_was_read_is_not_fetched_again),
        cmocka_unit_test(what_took_the_place_of_a_log_is_read),
        cmocka_unit_test(who_checks_reads_the_tables),
        cmocka_unit_test(no_more_is_kept_than_was_asked_for),
        cmocka_unit_test(without_the_parameter_nothing_stays_of_a_closed_log),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
