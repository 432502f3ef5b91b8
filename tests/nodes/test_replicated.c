/*
 * test_replicated.c: a primary that waits for a synchronous standby, and loses it.
 *
 * Owns the one promise of such a pair: what a client was told is kept is on both, so that
 * the standby can take the primary's place at any moment. Clients whose calls end without
 * an answer look whether their word is there, and ask for a sync before they believe it.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes/node.h"

enum { CLIENTS = 3, TIMEOUT_MS = 600, LONG_MS = 4000 };

typedef struct cluster {
    database *d;
    postgres_server *standby;
    char *url; /* of both */
    node client[CLIENTS];
    char word[CLIENTS][32]; /* what each wants to be kept */
    int acknowledged[CLIENTS];
} cluster;

/* "user:password@host1:port1,host2:port2/database?schema=…" */
static char *url_of_both(const cluster *c)
{
    const char *of = c->d->place, *second = strchr(c->standby->url, '@') + 1;
    size_t before = strcspn(strchr(of, '@'), "/") + (size_t)(strchr(of, '@') - of);
    char *url = malloc(strlen(of) + strlen(second) + 2);
    sprintf(url, "%.*s,%.*s%s", (int)before, of, (int)strcspn(second, "/"), second,
            of + before);
    return url;
}

static int cluster_open(void **state)
{
    cluster *c = calloc(1, sizeof *c);
    const char *why = "";
    *state = c;
    c->d = database_new("postgres", 1, 1, &why);
    if (c->d)
        c->standby = postgres_replica(c->d->own, &why);
    if (!c->standby) {
        print_message("# %s\n", why);
        return 0;
    }
    c->url = url_of_both(c);
    for (int i = 0; i < CLIENTS; i++) {
        char id[16];
        snprintf(id, sizeof id, "session-%d", i);
        node_start(&c->client[i], c->d, c->url);
        node_must(&c->client[i], NODE_OPEN, 0, 0, NULL);
        node_must(&c->client[i], NODE_CREATE, 0, 0, id);
        node_must(&c->client[i], NODE_APPEND, 0, 0, "before");
        node_must(&c->client[i], NODE_TIMEOUT, 0, TIMEOUT_MS, NULL);
        snprintf(c->word[i], sizeof c->word[i], "word-%d", i);
    }
    return 0;
}

static int cluster_close(void **state)
{
    cluster *c = *state;
    for (int i = 0; i < CLIENTS; i++)
        node_kill(&c->client[i]);
    postgres_own_free(c->standby);
    database_free(c->d);
    free(c->url);
    free(c);
    return 0;
}

static int sees(const cluster *c, int i)
{
    char id[16];
    snprintf(id, sizeof id, "session-%d", i);
    if (node_do(&c->client[i], NODE_RESUME, 0, 0, id).status)
        return 0;
    (void)node_do(&c->client[i], NODE_TIMEOUT, 0, TIMEOUT_MS, NULL);
    return strstr(node_must(&c->client[i], NODE_CONTENTS, 0, 0, NULL).text, c->word[i]) !=
           NULL;
}

/* What a careful client does until its word is kept. */
static void try_once(cluster *c, int i)
{
    if (c->acknowledged[i])
        return;
    node_reply r = sees(c, i) ? node_do(&c->client[i], NODE_SYNC, 0, 0, NULL)
                              : node_do(&c->client[i], NODE_APPEND, 0, 0, c->word[i]);
    if (r.status && r.status != SESSILE_BUSY && r.status != SESSILE_IO)
        fail_msg("%s", r.text);
    c->acknowledged[i] = r.status == SESSILE_OK;
}

static int acknowledged(const cluster *c)
{
    int n = 0;
    for (int i = 0; i < CLIENTS; i++)
        n += c->acknowledged[i];
    return n;
}

static void count_is(const postgres_server *s, const char *sql, const char *expected)
{
    char *n = postgres_sql(s->admin, sql);
    assert_non_null(n);
    assert_string_equal(n, expected);
    free(n);
}

/* Nobody finds a word that one machine has. */
static void nothing_is_shown(cluster *c)
{
    for (int i = 0; i < CLIENTS; i++) {
        node_reply r = node_do(&c->client[i], NODE_CONTENTS, 0, 0, NULL);
        if (r.status != SESSILE_BUSY)
            fail_msg("%d %s", (int)r.status, r.text);
        assert_non_null(strstr(r.text, "standby"));
    }
}

static void what_was_acknowledged_is_on_the_standby(void **state)
{
    cluster *c = *state;
    if (!c->standby)
        skip();

    /* Cut off, the standby gets nothing. Nobody is told that a word is kept, nobody sees
     * one, and the commits go on waiting for the standby. */
    assert_int_equal(postgres_do(c->standby, "kill"), 0);
    for (int i = 0; i < CLIENTS; i++) {
        node_reply r = node_do(&c->client[i], NODE_APPEND, 0, 0, c->word[i]);
        assert_int_equal(r.status, SESSILE_IO); /* nobody knows */
        try_once(c, i);
    }
    count_is(c->d->own,
             "select count(*) from pg_stat_activity where wait_event = 'SyncRep'", "3");
    for (int i = 0; i < CLIENTS; i++)
        assert_false(sees(c, i));
    assert_int_equal(acknowledged(c), 0);

    /* Started again, the primary would show what it has and the standby has not. */
    assert_int_equal(postgres_do(c->d->own, "kill"), 0);
    assert_int_equal(postgres_do(c->d->own, "again"), 0);
    char sql[100];
    snprintf(sql, sizeof sql, "select count(*) from %s.entries where id = 2",
             postgres_schema(c->d->place));
    char *there = postgres_sql(c->d->place, sql);
    assert_non_null(there);
    assert_string_equal(there, "3");
    free(there);
    nothing_is_shown(c);

    /* The standby takes its place: what was acknowledged is there, the rest comes. */
    assert_int_equal(postgres_do(c->d->own, "kill"), 0);
    assert_int_equal(postgres_do(c->standby, "again"), 0);
    assert_int_equal(postgres_do(c->standby, "promote"), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(sees(c, i), c->acknowledged[i]);
    for (int i = 0; i < CLIENTS; i++) {
        try_once(c, i);
        assert_true(c->acknowledged[i]);
        assert_true(sees(c, i));
    }
}

/* An operator who ends the wait of a commit makes it seen by all. The server says so in a
 * notice, and answers that all is well. */
static void a_wait_that_an_operator_ends_is_no_acknowledgement(void **state)
{
    cluster *c = *state;
    char *ended = NULL;
    if (!c->standby)
        skip();
    assert_int_equal(postgres_do(c->standby, "kill"), 0);
    node_must(&c->client[0], NODE_TIMEOUT, 0, LONG_MS, NULL);
    node_ask(&c->client[0], NODE_APPEND, 0, 0, c->word[0]);
    do {
        free(ended);
        ended =
            postgres_sql(c->d->own->admin, "select count(pg_cancel_backend(pid)) from "
                                           "pg_stat_activity where wait_event = "
                                           "'SyncRep'");
    } while (ended && strcmp(ended, "0") == 0);
    free(ended);
    assert_int_equal(node_answer(&c->client[0]).status, SESSILE_IO);
    assert_true(sees(c, 0));
    try_once(c, 0);
    assert_int_equal(acknowledged(c), 0);
}

/* The standby comes back in time: the commits that waited are kept, and whoever looks is
 * told so. */
static void a_standby_that_comes_back_settles_what_waited(void **state)
{
    cluster *c = *state;
    if (!c->standby)
        skip();
    assert_int_equal(postgres_do(c->standby, "kill"), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(node_do(&c->client[i], NODE_APPEND, 0, 0, c->word[i]).status,
                         SESSILE_IO);
    assert_int_equal(postgres_do(c->standby, "again"), 0);
    for (int i = 0; i < CLIENTS; i++) {
        for (int tries = 0; tries < 50 && !c->acknowledged[i]; tries++)
            try_once(c, i);
        assert_true(c->acknowledged[i]);
        assert_string_equal(node_must(&c->client[i], NODE_CONTENTS, 0, 0, NULL).text,
                            i == 0   ? "before word-0"
                            : i == 1 ? "before word-1"
                                     : "before word-2");
    }
    assert_int_equal(postgres_do(c->d->own, "kill"), 0);
    assert_int_equal(postgres_do(c->standby, "promote"), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_true(sees(c, i));
}

/* The same after the primary was started again: then all is shown, and stays. */
static void what_a_restarted_primary_shows_is_on_the_standby(void **state)
{
    cluster *c = *state;
    if (!c->standby)
        skip();
    assert_int_equal(postgres_do(c->standby, "kill"), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(node_do(&c->client[i], NODE_APPEND, 0, 0, c->word[i]).status,
                         SESSILE_IO);
    assert_int_equal(postgres_do(c->d->own, "kill"), 0);
    assert_int_equal(postgres_do(c->d->own, "again"), 0);
    nothing_is_shown(c);
    assert_int_equal(postgres_do(c->standby, "again"), 0);
    for (int i = 0; i < CLIENTS; i++) {
        int seen = 0;
        for (int tries = 0; tries < 50 && !seen; tries++)
            seen = sees(c, i);
        assert_true(seen);
    }
    assert_int_equal(postgres_do(c->d->own, "kill"), 0);
    assert_int_equal(postgres_do(c->standby, "promote"), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_true(sees(c, i));
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, cluster_open, cluster_close)
    const struct CMUnitTest tests[] = {
        EACH(what_was_acknowledged_is_on_the_standby),
        EACH(a_wait_that_an_operator_ends_is_no_acknowledgement),
        EACH(a_standby_that_comes_back_settles_what_waited),
        EACH(what_a_restarted_primary_shows_is_on_the_standby),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
