/*
 * test_postgres_replaced.c: a primary that was replaced and lives on, seen by a store
 * that has met the new one.
 *
 * The old primary is behind one proxy and the new one behind another, so that each can be
 * away for the store alone. It stays up all the time, and answers whoever asks.
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

typedef struct scene {
    postgres_server *old, *new;
    proxy *to_old, *to_new;
    char *place;    /* the schema's URL at the old one */
    char *promoted; /* the same at the new one */
    char *both;     /* through the proxies, the old one first */
} scene;

/* The URL with another authority (user, hosts, ports) than its own. */
static char *url_at(const char *url, const char *authority)
{
    const char *from = strstr(url, "://") + 3;
    char *out = malloc(strlen(url) + strlen(authority) + 1);
    sprintf(out, "%.*s%s%s", (int)(from - url), url, authority,
            from + strcspn(from, "/"));
    return out;
}

static char *authority_of(const char *url)
{
    const char *from = strstr(url, "://") + 3;
    return strndup(from, strcspn(from, "/"));
}

static int set_up(void **state)
{
    scene *s = calloc(1, sizeof *s);
    const char *why = "";
    *state = s;
    s->old = postgres_own(&why);
    s->new = s->old ? postgres_replica(s->old, &why) : NULL;
    if (!s->new) {
        print_message("# %s\n", why);
        return 0;
    }
    s->to_old = proxy_open(proxy_port_of(s->old->tcp));
    s->to_new = proxy_open(proxy_port_of(s->new->tcp));
    s->place = postgres_place(s->old->tcp);
    char *a = authority_of(s->new->tcp);
    s->promoted = url_at(s->place, a);
    free(a);
    char *here = proxy_url(s->to_old, s->place),
         *there = proxy_url(s->to_new, s->promoted);
    char *first = authority_of(here), *second = authority_of(there);
    char *hosts = malloc(strlen(first) + strlen(second) + 2);
    sprintf(hosts, "%s,%s", first, strchr(second, '@') + 1);
    char *two = url_at(s->place, hosts);
    s->both = url_with(two, "target_session_attrs=read-write&pool=4");
    free(two);
    free(hosts);
    free(first);
    free(second);
    free(here);
    free(there);
    return 0;
}

static int tear_down(void **state)
{
    scene *s = *state;
    if (s->new) {
        proxy_close(s->to_old);
        proxy_close(s->to_new);
        free(s->place);
        free(s->promoted);
        free(s->both);
    }
    postgres_own_free(s->new);
    postgres_own_free(s->old);
    free(s);
    return 0;
}

static void append(store *st, const char *line, uint64_t count, uint64_t bytes)
{
    static const unsigned char tag[16] = {1};
    sessile_log_end end = {.count = count, .bytes = bytes};
    sessile_backend_log *log;
    sessile_error err;
    int poisoned;
    memcpy(end.tag, tag, sizeof tag);
    must(st->table->open(st->self, "main", "a", &log, &err), &err);
    must(st->table->append(log, &end, line, strlen(line), 1, tag, &poisoned, &err), &err);
    st->table->close(log);
}

static uint64_t size_of(sessile_backend_log *log, store *st)
{
    uint64_t bytes;
    int64_t mtime;
    sessile_error err;
    must(st->table->size(log, &bytes, &mtime, &err), &err);
    return bytes;
}

static void a_primary_that_was_replaced_is_not_believed(void **state)
{
    scene *s = *state;
    sessile_backend_log *log;
    sessile_error err;
    pg_conn *lent[3];
    uint64_t bytes;
    int64_t mtime;
    int changed;
    if (!s->new)
        skip();
    store st = store_at(s->both);
    pg_store *ps = st.self;
    must(st.table->create(st.self, "main", "a", "one\n", 4, &err), &err);
    must(st.table->open(st.self, "main", "a", &log, &err), &err);
    must(st.table->watch(log, 4, 50, NULL, NULL, &changed, &err), &err);
    assert_non_null(ps->listener);

    assert_int_equal(postgres_do(s->new, "promote"), 0);
    store other = store_at(s->promoted);
    append(&other, "two\n", 1, 4);
    assert_int_equal(size_of(log, &st), 4); /* it has not met the new one */

    /* Two connections to the old one are in use, and a third finds it away. */
    pg_call call = pg_call_of(ps, 5000);
    for (int i = 0; i < 3; i++) {
        if (i == 2)
            proxy_refuse(s->to_old, 1);
        must(pg_take(&call, &lent[i], &err), &err);
    }
    assert_true(lent[2]->timeline > lent[0]->timeline);
    proxy_refuse(s->to_old, 0);
    /* What comes by the older ones is not believed, and they are not kept. */
    pg_step look = pg_step_once("SELECT 1");
    pg_results r;
    assert_int_equal(pg_send(&call, lent[0], &look, 1, &r), PG_LOST);
    for (int i = 0; i < 3; i++)
        pg_give(ps, lent[i]);
    assert_int_equal(ps->connections, 1);
    assert_int_equal(size_of(log, &st), 8);
    must(st.table->watch(log, 8, 50, NULL, NULL, &changed, &err), &err);
    must(st.table->watch(log, 8, 50, NULL, NULL, &changed, &err), &err);
    assert_int_equal(ps->listener->timeline, ps->server.timeline);

    /* The new one was there last: it is asked first, although the old one is too. */
    uint64_t accepted = proxy_accepted(s->to_old);
    proxy_cut(s->to_new);
    assert_int_equal(size_of(log, &st), 8);
    assert_int_equal(proxy_accepted(s->to_old), accepted);

    /* It is away for a moment. The old one offers itself, and is refused. */
    proxy_refuse(s->to_new, 1);
    proxy_cut(s->to_new);
    st.table->set_timeout(log, 300);
    int refused = 0; /* else the last try was at the new one */
    for (int i = 0; i < 50 && !refused; i++) {
        assert_int_equal(st.table->size(log, &bytes, &mtime, &err), SESSILE_IO);
        refused = strstr(err.message, "replaced") != NULL;
    }
    assert_true(refused);
    assert_true(proxy_accepted(s->to_old) > accepted);
    proxy_refuse(s->to_new, 0);
    st.table->set_timeout(log, 10000);
    assert_int_equal(size_of(log, &st), 8);
    st.table->close(log);
    store_close(&other);
    store_close(&st);
}

/* Where commits were lost, other records have the same places: nothing of the old server
 * is in memory any more. */
static void what_the_old_primary_said_is_forgotten(void **state)
{
    scene *s = *state;
    sessile_backend_log *log;
    sessile_error err;
    char out[16] = "", *kept;
    size_t got;
    if (!s->new)
        skip();
    kept = url_with(s->both, "keep=1MiB");
    store st = store_at(kept);
    must(st.table->create(st.self, "main", "a", "one\n", 4, &err), &err);
    assert_int_equal(postgres_do(s->new, "promote"), 0);
    /* the old one goes on alone, and is seen */
    postgres_value(s->old->admin, "alter system set synchronous_standby_names = ''",
                   NULL);
    postgres_value(s->old->admin, "select pg_reload_conf()", NULL);
    append(&st, "OLD\n", 1, 4);
    store other = store_at(s->promoted);
    append(&other, "new\n", 1, 4);

    proxy_refuse(s->to_old, 1);
    proxy_cut(s->to_old);
    must(st.table->open(st.self, "main", "a", &log, &err), &err);
    assert_int_equal(size_of(log, &st), 8);
    must(st.table->read(log, 0, 0, out, sizeof out - 1, &got, &err), &err);
    assert_string_equal(out, "one\nnew\n");
    st.table->close(log);
    store_close(&other);
    store_close(&st);
    free(kept);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        EACH(a_primary_that_was_replaced_is_not_believed),
        EACH(what_the_old_primary_said_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
