/*
 * test_connection.c: the connection to the server fails at every moment of a write.
 *
 * Owns what a node may say of a write whose answer it did not get. An append is cut off
 * at every place of its exchange, its answer is held back past its time, its statement
 * arrives when its writer has long gone on, the server is away for a while: what was
 * acknowledged is there once, what was refused is not there and does not come later, and
 * what nobody knows is there at most once. After each the node goes on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "support/ledger.h"
#include "nodes/node.h"
#include "support/logs.h"
#include "support/proxy.h"

enum { A, B, NODES };

/* Two nodes, each behind a network of its own, one session, and what they were told. */
typedef struct wire {
    database *d;
    proxy *p[NODES];
    char *url[NODES];
    node n[NODES];
    ledger *book;
    unsigned writer[NODES], seq[NODES];
    unsigned long acknowledged, refused, unknown;
} wire;

static int soak(void)
{
    return getenv("SESSILE_SOAK") != NULL;
}

static int wire_open(void **state)
{
    const char *why = "";
    wire *w = calloc(1, sizeof *w);
    *state = w;
    w->d = database_new("postgres", 1, 0, &why);
    if (!w->d) {
        print_message("# %s\n", why);
        return 0;
    }
    w->book = ledger_new();
    for (int i = 0; i < NODES; i++) {
        char plain[1000];
        /* unencrypted: the same bytes each time */
        snprintf(plain, sizeof plain, "%s?sslmode=disable&schema=%s", w->d->server->tcp,
                 postgres_schema(w->d->place));
        w->p[i] = proxy_open(proxy_port_of(plain));
        w->url[i] = proxy_url(w->p[i], plain);
        w->writer[i] = ledger_writer(w->book);
        node_start(&w->n[i], w->d, w->url[i]);
        node_must(&w->n[i], NODE_OPEN, 0, 0, NULL);
        node_must(&w->n[i], i ? NODE_RESUME : NODE_CREATE, 0, 0, "shared");
    }
    return 0;
}

static int wire_close(void **state)
{
    wire *w = *state;
    for (int i = 0; i < NODES; i++) {
        node_kill(&w->n[i]);
        proxy_close(w->p[i]);
        free(w->url[i]);
    }
    ledger_free(w->book);
    database_free(w->d);
    free(w);
    return 0;
}

static wire *wired(void **state)
{
    wire *w = *state;
    if (!w->d)
        skip();
    return w;
}

/* The next message of a node is written, from here to its answer. */
static void write_ask(wire *w, int i, node_word word)
{
    char text[64];
    ledger_text(text, w->writer[i], w->seq[i]);
    node_ask(&w->n[i], word, 0, 0, text);
}

/* Its outcome is noted. Other errors than a write may end in fail the test. */
static node_reply write_answer(wire *w, int i)
{
    node_reply r = node_answer(&w->n[i]);
    ledger_outcome outcome = LEDGER_REFUSED;
    if (!r.status)
        outcome = LEDGER_ACKNOWLEDGED;
    else if (r.status == SESSILE_IO)
        outcome = LEDGER_UNKNOWN;
    else if (r.status != SESSILE_CONFLICT && r.status != SESSILE_BUSY)
        print_error("%s\n", r.text);
    assert_true(outcome != LEDGER_REFUSED || r.status == SESSILE_CONFLICT ||
                r.status == SESSILE_BUSY);
    w->acknowledged += outcome == LEDGER_ACKNOWLEDGED;
    w->refused += outcome == LEDGER_REFUSED;
    w->unknown += outcome == LEDGER_UNKNOWN;
    ledger_note(w->book, w->writer[i], w->seq[i]++, outcome, SESSILE_NO_ID);
    return r;
}

static node_reply write_one(wire *w, int i, node_word word)
{
    write_ask(w, i, word);
    return write_answer(w, i);
}

/* The network is whole again; the node opens its session again when it has to, and is
 * heard. */
static void recover(wire *w, int i, sessile_status last)
{
    for (int way = 0; way < 2; way++) {
        proxy_cut_after(w->p[i], (proxy_way)way, UINT64_MAX);
        proxy_hold_after(w->p[i], (proxy_way)way, UINT64_MAX);
        proxy_hold(w->p[i], (proxy_way)way, 0);
    }
    if (last) {
        node_must(&w->n[i], NODE_RESUME, 0, 0, "shared");
        node_must(&w->n[i], NODE_HEAD, 0, 0, NULL);
    }
    node_reply r = write_one(w, i, NODE_APPEND);
    if (r.status)
        print_error("after it: %s\n", r.text);
    assert_int_equal(r.status, SESSILE_OK);
}

static void all_is_well(wire *w, const char *what)
{
    sessile_session_options o;
    sessile_store *store;
    sessile_session *s;
    sessile_error err = {0};
    sessile_session_options_init(&o);
    o.id = sessile_text("shared");
    assert_int_equal(database_open(w->d, NULL, &store, &err), SESSILE_OK);
    assert_int_equal(sessile_resume(&s, store, &o, &err), SESSILE_OK);
    ledger_sum sum = ledger_compare(w->book, s);
    ledger_check_clean(store, "shared");
    assert_int_equal(sessile_session_close(s, &err), SESSILE_OK);
    sessile_store_close(store);
    printf("# figure: %s: acknowledged = %lu, refused = %lu, unknown = %lu (written = "
           "%lu), losses = %lu, duplicates = %lu\n",
           what, sum.acknowledged, sum.refused, sum.unknown, sum.unsaid, sum.lost,
           sum.twice);
    ledger_check_sum(&sum);
}

/* Bytes of one write through an idle connection, each way. */
static void measure(wire *w, int i, node_word word, uint64_t size[2])
{
    write_one(w, i, NODE_APPEND); /* whatever the first one prepares is prepared */
    write_one(w, i, word);
    for (int way = 0; way < 2; way++)
        size[way] = proxy_bytes(w->p[i], (proxy_way)way);
    assert_int_equal(write_one(w, i, word).status, SESSILE_OK);
    for (int way = 0; way < 2; way++)
        size[way] = proxy_bytes(w->p[i], (proxy_way)way) - size[way];
    assert_true(size[0] > 100 && size[1] > 10);
}

/* Every place: the sending, up to the last byte of the statement, and the answer. */
static void cut_at_every_place(wire *w, node_word word, const char *what)
{
    uint64_t size[2];
    unsigned cuts = 0;
    measure(w, A, word, size);
    for (int way = 0; way < 2; way++) {
        uint64_t step = soak() ? 1 : 1 + size[way] / 40;
        for (uint64_t at = 0; at <= size[way]; at += step) {
            unsigned before = proxy_cuts(w->p[A]);
            proxy_cut_after(w->p[A], (proxy_way)way, at);
            sessile_status status = write_one(w, A, word).status;
            cuts += proxy_cuts(w->p[A]) - before;
            recover(w, A, status);
        }
    }
    assert_true(cuts > 20);
    printf("# figure: places at which %s was cut off = %u\n", what, cuts);
    all_is_well(w, what);
}

static void an_append_cut_off_anywhere(void **state)
{
    cut_at_every_place(wired(state), NODE_APPEND, "an append");
}

static void a_turn_cut_off_anywhere(void **state)
{
    cut_at_every_place(wired(state), NODE_TURN, "a turn");
}

/* The network stops passing on what goes one way, after `at` of 1,000 parts of a write's
 * exchange, for longer than the writer waits. What it kept arrives afterwards. */
static sessile_status held_past_its_time(wire *w, proxy_way way, node_word word,
                                         const uint64_t size[2], unsigned at)
{
    write_one(w, A, NODE_APPEND);
    node_must(&w->n[A], NODE_TIMEOUT, 0, 200, NULL);
    proxy_hold_after(w->p[A], way, (size[way] - 1) * at / 1000);
    sessile_status status = write_one(w, A, word).status;
    assert_int_not_equal(status, SESSILE_OK);
    recover(w, A, status);
    return status;
}

/* At the end of the exchange it is the write that is held, whatever is asked before it:
 * the server has it or may get it, and nobody can tell, so neither OK nor refused would
 * be true. */
static void held_at_every_place(wire *w, proxy_way way, node_word word, const char *what)
{
    uint64_t size[2];
    measure(w, A, word, size);
    for (unsigned at = 0; at < 1000; at += soak() ? 10 : 500)
        held_past_its_time(w, way, word, size, at);
    assert_int_equal(held_past_its_time(w, way, word, size, 1000), SESSILE_IO);
    all_is_well(w, what);
}

static void an_answer_that_does_not_come_is_unknown(void **state)
{
    held_at_every_place(wired(state), PROXY_TO_CLIENT, NODE_APPEND, "answers held back");
}

static void a_statement_that_was_given_up_is_unknown(void **state)
{
    held_at_every_place(wired(state), PROXY_TO_SERVER, NODE_TURN, "statements held back");
}

/* A write waits in the network while another node writes: who comes late is fenced. */
static void a_write_that_was_held_up_is_fenced(void **state)
{
    wire *w = wired(state);
    for (int i = 0; i < (soak() ? 200 : 10); i++) {
        int is_turn = i % 2;
        node_must(&w->n[A], NODE_HEAD, 0, 0, NULL);
        proxy_hold(w->p[A], PROXY_TO_SERVER, 1);
        write_ask(w, A, is_turn ? NODE_TURN : NODE_APPEND);
        assert_true(proxy_wait_held(w->p[A], PROXY_TO_SERVER, 1, 60000));
        node_must(&w->n[B], NODE_HEAD, 0, 0, NULL);
        assert_int_equal(write_one(w, B, i % 4 < 2 ? NODE_TURN : NODE_APPEND).status,
                         SESSILE_OK);
        proxy_hold(w->p[A], PROXY_TO_SERVER, 0);
        /* an append goes behind it; a turn was thought on other words */
        assert_int_equal(write_answer(w, A).status,
                         is_turn ? SESSILE_CONFLICT : SESSILE_OK);
    }
    all_is_well(w, "writes held up past another's");
}

/* The statement of a connection that is gone arrives while its writer, on a new one,
 * finds out what became of it: before, between and after all that it does for that. */
static void a_statement_that_arrives_late(void **state)
{
    wire *w = wired(state);
    unsigned late = 0;
    uint64_t most = 600, step = soak() ? 8 : 60;
    for (uint64_t at = 0; at <= most; at += step) {
        unsigned before = proxy_delivered(w->p[A]);
        write_one(w, A, NODE_APPEND);
        uint64_t bytes = proxy_bytes(w->p[A], PROXY_TO_SERVER);
        proxy_hold(w->p[A], PROXY_TO_SERVER, 1);
        write_ask(w, A, (at / step) % 2 ? NODE_TURN : NODE_APPEND);
        assert_true(proxy_wait_held(w->p[A], PROXY_TO_SERVER, 1, 60000));
        proxy_orphan(w->p[A], at);
        sessile_status status = write_answer(w, A).status;
        /* as far as what it did about it went */
        uint64_t went = proxy_bytes(w->p[A], PROXY_TO_SERVER) - bytes;
        if (went + 200 > most && most < 8000)
            most = went + 200;
        late += proxy_delivered(w->p[A]) - before;
        recover(w, A, status);
        while (proxy_waiting(w->p[A]) > 0)
            node_must(&w->n[A], NODE_HEAD, 0, 0, NULL);
        /* what was delivered was refused or taken by now: later words are behind it */
        recover(w, A, SESSILE_OK);
    }
    assert_true(late > 2);
    printf("# figure: statements that arrived while their writer asked for them = %u\n",
           late);
    all_is_well(w, "late statements");
}

static void *allow_later(void *p)
{
    struct timespec pause = {0, 150000000};
    nanosleep(&pause, NULL);
    proxy_refuse(p, 0);
    return NULL;
}

static void a_server_that_is_away_for_a_while(void **state)
{
    wire *w = wired(state);
    for (int i = 0; i < (soak() ? 50 : 3); i++) {
        pthread_t thread;
        write_one(w, A, NODE_APPEND);
        proxy_refuse(w->p[A], 1);
        proxy_cut(w->p[A]);
        assert_int_equal(pthread_create(&thread, NULL, allow_later, w->p[A]), 0);
        sessile_status status = write_one(w, A, i % 2 ? NODE_TURN : NODE_APPEND).status;
        pthread_join(thread, NULL);
        recover(w, A, status);
    }
    /* and for longer than one waits */
    node_must(&w->n[A], NODE_TIMEOUT, 0, 200, NULL);
    proxy_refuse(w->p[A], 1);
    proxy_cut(w->p[A]);
    node_reply r = write_one(w, A, NODE_APPEND);
    assert_int_not_equal(r.status, SESSILE_OK);
    proxy_refuse(w->p[A], 0);
    recover(w, A, r.status);
    all_is_well(w, "a server that was away");
}

/* Both take turns on what they see, both are cut off at random, both look and try again
 * until it is there. */
static void two_nodes_that_both_try_again(void **state)
{
    wire *w = wired(state);
    uint64_t seed = (uint64_t)time(NULL) ^ (uint64_t)getpid() << 32, size[2];
    unsigned again = 0, conflicts = 0;
    print_message("seed %llu\n", (unsigned long long)seed);
    measure(w, A, NODE_TURN, size);
    node_must(&w->n[B], NODE_HEAD, 0, 0, NULL);
    for (int round = 0; round < (soak() ? 300 : 15); round++) {
        char text[NODES][64];
        int there[NODES] = {0, 0};
        for (int i = 0; i < NODES; i++)
            ledger_text(text[i], w->writer[i], w->seq[i]);
        while (!there[A] || !there[B]) {
            int asked[NODES];
            for (int i = 0; i < NODES; i++) {
                proxy_way way = (proxy_way)(random_next(&seed) % 2);
                asked[i] = !there[i];
                if (!asked[i])
                    continue;
                if (random_next(&seed) % 3)
                    proxy_cut_after(w->p[i], way,
                                    random_next(&seed) % (size[way] + size[way] / 8));
                node_ask(&w->n[i], NODE_TURN, 0, 0, text[i]);
            }
            for (int i = 0; i < NODES; i++) {
                if (!asked[i])
                    continue;
                node_reply r = node_answer(&w->n[i]);
                for (int way = 0; way < 2; way++)
                    proxy_cut_after(w->p[i], (proxy_way)way, UINT64_MAX);
                conflicts += r.status == SESSILE_CONFLICT;
                there[i] = r.status == SESSILE_OK;
                if (there[i])
                    continue;
                if (r.status != SESSILE_IO && r.status != SESSILE_CONFLICT &&
                    r.status != SESSILE_BUSY)
                    print_error("%s\n", r.text);
                assert_true(r.status == SESSILE_IO || r.status == SESSILE_CONFLICT ||
                            r.status == SESSILE_BUSY);
                node_must(&w->n[i], NODE_RESUME, 0, 0, "shared");
                node_reply all = node_must(&w->n[i], NODE_CONTENTS, 0, 0, NULL);
                assert_true(strlen(all.text) + 1 < sizeof all.text);
                there[i] = strstr(all.text, text[i]) != NULL;
                again += !there[i];
            }
        }
        for (int i = 0; i < NODES; i++)
            ledger_note(w->book, w->writer[i], w->seq[i]++, LEDGER_ACKNOWLEDGED,
                        SESSILE_NO_ID);
        for (int i = 0; i < NODES; i++)
            node_must(&w->n[i], NODE_HEAD, 0, 0, NULL);
    }
    printf("# figure: turns that two nodes took again = %u, conflicts = %u\n", again,
           conflicts);
    all_is_well(w, "two nodes that try again");
}

int main(void)
{
#define EACH(test) cmocka_unit_test_setup_teardown(test, wire_open, wire_close)
    const struct CMUnitTest tests[] = {
        EACH(an_append_cut_off_anywhere),
        EACH(a_turn_cut_off_anywhere),
        EACH(an_answer_that_does_not_come_is_unknown),
        EACH(a_statement_that_was_given_up_is_unknown),
        EACH(a_write_that_was_held_up_is_fenced),
        EACH(a_statement_that_arrives_late),
        EACH(a_server_that_is_away_for_a_while),
        EACH(two_nodes_that_both_try_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
