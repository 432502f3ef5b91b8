/*
 * test_failover.c: another server, or the same one again, under sessions that are open.
 *
 * Owns what is true when an operator restarts the server, or lets a copy take its place
 * that lacks what was written last (an asynchronous standby, a backup that was put back):
 * who has a session open goes on, or is told; never is a word written behind words that
 * are not there any more.
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

#include "support/ledger.h"
#include "nodes/pair.h"

static int pair_open(void **state)
{
    *state = pair_new("postgres", 1);
    return 0;
}

static void clean(const pair *p)
{
    sessile_store *store;
    sessile_error err = {0};
    assert_int_equal(database_open(p->d, NULL, &store, &err), SESSILE_OK);
    ledger_check_clean(store, "shared");
    sessile_store_close(store);
}

static void open_sessions_go_on_when_the_server_comes_back(void **state)
{
    pair *p = both(state);
    static const char *const ways[] = {"stop", "crash", "kill"};
    char all[200] = "";
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        char word[2][16];
        snprintf(word[0], sizeof word[0], "a%zu", i);
        snprintf(word[1], sizeof word[1], "b%zu", i);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s %s", i ? " " : "",
                 word[0], word[1]);
        node_must(&p->a, NODE_HEAD, 0, 0, NULL);
        assert_int_equal(postgres_do(p->d->own, ways[i]), 0);
        assert_int_equal(postgres_do(p->d->own, "again"), 0);
        /* the first word after it is a write here, a look there */
        node_must(&p->a, i % 2 ? NODE_APPEND : NODE_TURN, 0, 0, word[0]);
        node_must(&p->b, NODE_HEAD, 0, 0, NULL);
        node_must(&p->b, NODE_TURN, 0, 0, word[1]);
        assert_string_equal(node_must(&p->a, NODE_CONTENTS, 0, 0, NULL).text, all);
    }
    clean(p);
}

static void sql(const pair *p, const char *format)
{
    char text[2000];
    const char *schema = postgres_schema(p->d->place);
    snprintf(text, sizeof text, format, schema, schema);
    char *done = postgres_sql(p->d->place, text);
    assert_non_null(done);
    free(done);
}

/* The end that A knows has as many records and bytes as the log that B goes on with, and
 * is another one. */
static void what_a_standby_did_not_have_is_not_gone_on_from(void **state)
{
    pair *p = both(state);
    node_must(&p->a, NODE_APPEND, 0, 0, "one");
    sql(p, "create schema standby; create table standby.sessions as "
           "select * from %s.sessions; create table standby.entries as "
           "select * from %s.entries");
    node_must(&p->a, NODE_APPEND, 0, 0, "lost");
    sql(p, "begin; delete from %s.entries e using standby.sessions s where e.session = "
           "s.id and e.id >= s.count; update %s.sessions t set count = s.count, bytes = "
           "s.bytes, tag = s.tag from standby.sessions s where t.id = s.id; commit");
    node_must(&p->b, NODE_RESUME, 0, 0, "shared");
    assert_string_equal(node_must(&p->b, NODE_CONTENTS, 0, 0, NULL).text, "one");
    node_must(&p->b, NODE_APPEND, 0, 0, "else");

    node_reply late = node_do(&p->a, NODE_APPEND, 0, 0, "late");
    node_must(&p->b, NODE_RESUME, 0, 0, "shared");
    node_reply after = node_must(&p->b, NODE_CONTENTS, 0, 0, NULL);
    printf("# figure: an append behind a word that a failover lost was answered %s\n",
           sessile_status_name(late.status));
    assert_int_equal(late.status, SESSILE_CONFLICT);
    assert_non_null(strstr(late.text, "open the session again"));
    assert_string_equal(after.text, "one else");
    clean(p);
    /* who looks again goes on from what is there */
    node_must(&p->a, NODE_RESUME, 0, 0, "shared");
    node_must(&p->a, NODE_APPEND, 0, 0, "more");
    clean(p);
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, pair_open, pair_close)
    const struct CMUnitTest tests[] = {
        EACH(open_sessions_go_on_when_the_server_comes_back),
        EACH(what_a_standby_did_not_have_is_not_gone_on_from),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
