/*
 * test_faults.c: writers on two hosts, whose clocks are wrong, over a cluster that fails
 * in each way in turn: nothing acknowledged is lost, nothing is there twice.
 *
 * The engine itself is the client here. It shows what the service may rely on, and that
 * the parts of this folder fit together: network, cluster, clocks, journals, ledger.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "service/cluster.h"
#include "support/ledger.h"
#include "support/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h> /* after the engine's: its fail() is a macro */

#define SECRET "hex:000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"

enum { SESSIONS = 2, WRITERS = 3, LIVES = 8, PAUSE_US = 10000 };
static const char *const sessions[SESSIONS] = {"first", "second"};

static sessile_status open_store(const char *url, sessile_store **out, sessile_error *err)
{
    sessile_store_options options;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_SECRET;
    options.key = SECRET;
    options.config.has_timeout = 1;
    options.config.timeout_ms = 4000;
    return sessile_open(out, url, &options, err);
}

/* ------------------------------------------------------------------ a writer */

/* Until it succeeds: a database may be away. */
static void open_session(sessile_store *store, const char *id, sessile_session **s)
{
    sessile_session_options o = named(id);
    sessile_error err = {0};
    if (*s)
        (void)sessile_session_close(*s, &err);
    while (sessile_resume(s, store, &o, &err))
        usleep(PAUSE_US);
}

/* This program, started as a writer: it ends when it is killed. */
_Noreturn static void write_for_ever(const char *url, const char *folder, unsigned writer)
{
    sessile_store *store;
    sessile_session *s[SESSIONS] = {NULL, NULL};
    sessile_error err = {0};
    ledger_journal j;
    while (open_store(url, &store, &err))
        usleep(PAUSE_US);
    for (int i = 0; i < SESSIONS; i++)
        open_session(store, sessions[i], &s[i]);
    ledger_journal_open(&j, folder, writer);
    for (;;) {
        char text[64], json[160];
        sessile_id id = SESSILE_NO_ID;
        int to = (int)(j.next % SESSIONS);
        unsigned n = ledger_journal_send(&j, sessions[to], text);
        snprintf(json, sizeof json, "{\"role\":\"user\",\"content\":\"%s\"}", text);
        sessile_status status = sessile_append(s[to], sessile_text(json), &id, &err);
        ledger_outcome outcome = LEDGER_UNKNOWN;
        if (!status)
            outcome = LEDGER_ACKNOWLEDGED;
        else if (status == SESSILE_BUSY || status == SESSILE_CONFLICT)
            outcome = LEDGER_REFUSED;
        ledger_journal_note(&j, n, outcome, id);
        if (outcome == LEDGER_UNKNOWN)
            open_session(store, sessions[to], &s[to]);
    }
}

/* ------------------------------------------------------------------ the scene */

typedef struct scene {
    cluster *c;
    char *journals;
    int host[WRITERS];  /* of each writer */
    int lives[WRITERS]; /* which life of each writes now: its number in the ledger */
    pid_t pid[WRITERS];
    unsigned next_life;
} scene;

static void start_writer(scene *s, int at)
{
    static const long clocks[WRITERS] = {0, 2 * 3600, -26 * 3600};
    static char number[LIVES][12], log[600];
    const char *why = NULL;
    unsigned life = s->next_life++;
    assert_true(life < LIVES);
    snprintf(number[life], sizeof number[life], "%u", life);
    snprintf(log, sizeof log, "%s/log", s->journals);
    const char *const argv[] = {"/proc/self/exe", s->c->url, s->journals, number[life],
                                NULL};
    network_program program = {.argv = argv, .log = log};
    if (clocks[at])
        program.extra = network_clock(clocks[at], &why);
    if (clocks[at] && !program.extra)
        print_message("# %s\n", why);
    s->lives[at] = (int)life;
    s->pid[at] = network_run(s->c->net, s->host[at], &program);
}

/* How many messages of a writer had an outcome whose word begins with one of `letters`.
 */
static unsigned long outcomes(const scene *s, int at, const char *letters)
{
    char path[600], line[200];
    unsigned long count = 0;
    snprintf(path, sizeof path, "%s/%d", s->journals, s->lives[at]);
    FILE *in = fopen(path, "re");
    while (in && fgets(line, sizeof line, in))
        count += strchr(letters, line[0]) != NULL;
    if (in)
        fclose(in);
    return count;
}

/* Waits until writers from `from` on have each had `more` of these outcomes. */
static void let_go_on(scene *s, int from, const char *letters, unsigned long more)
{
    unsigned long until[WRITERS];
    for (int i = from; i < WRITERS; i++)
        until[i] = outcomes(s, i, letters) + more;
    for (int i = from; i < WRITERS; i++)
        while (outcomes(s, i, letters) < until[i]) {
            assert_int_equal(waitpid(s->pid[i], NULL, WNOHANG), 0);
            usleep(PAUSE_US);
        }
}

static void let_write(scene *s, int from, unsigned long more)
{
    let_go_on(s, from, "a", more);
}

static void kill_writer(scene *s, int at)
{
    kill(s->pid[at], SIGKILL);
    assert_int_equal(waitpid(s->pid[at], NULL, 0), s->pid[at]);
}

static void scene_open(scene *s)
{
    sessile_store *store;
    sessile_error err = {0};
    s->c = cluster_needed(0);
    s->journals = folder_make();
    if (open_store(s->c->server[0]->url, &store, &err))
        fail_msg("%s", err.message);
    for (int i = 0; i < SESSIONS; i++)
        session_closed(session_made(store, sessions[i]));
    sessile_store_close(store);
    for (int i = 0; i < WRITERS; i++) {
        s->host[i] = network_host(s->c->net, i ? "node2" : "node1");
        start_writer(s, i);
    }
}

/* ------------------------------------------------------------------ the faults */

static void links_are_bad(scene *s)
{
    cluster *c = s->c;
    network_fault bad = {
        .delay_us = 500, .jitter_us = 500, .loss = 0.02, .doubled = 0.02};
    for (int db = 0; db < 2; db++)
        for (int i = 0; i < 2; i++)
            network_link(c->net, c->db[db], s->host[i], &bad);
    network_link(c->net, c->db[0], c->db[1], &bad);
    let_write(s, 0, 10);
    for (int db = 0; db < 2; db++)
        network_join(c->net, c->db[db]);
}

static void the_standby_is_away(scene *s)
{
    cluster *c = s->c;
    char *waiting = NULL;
    network_cut(c->net, c->db[0], c->db[1]);
    do {
        free(waiting);
        waiting = postgres_sql(c->server[0]->admin, "select count(*) from "
                                                    "pg_stat_activity where wait_event "
                                                    "= 'SyncRep'");
        assert_non_null(waiting);
    } while (strcmp(waiting, "0") == 0);
    free(waiting);
    network_mend(c->net, c->db[0], c->db[1]);
    let_write(s, 0, 10);
}

static void hosts_freeze_and_are_cut_off(scene *s)
{
    cluster *c = s->c;
    network_signal(c->net, c->db[0], SIGSTOP);
    usleep(20 * PAUSE_US);
    network_signal(c->net, c->db[0], SIGCONT);
    let_write(s, 0, 10);
    /* one node is cut off, the writers of the other go on */
    network_isolate(c->net, s->host[0]);
    let_write(s, 1, 20);
    network_join(c->net, s->host[0]);
    let_write(s, 0, 10);
    /* it sends to the database and hears nothing, then the other way round */
    for (int way = 0; way < 2; way++) {
        int one = way ? c->db[0] : s->host[0], other = way ? s->host[0] : c->db[0];
        network_one_way(c->net, one, other, &(network_fault){.cut = 1});
        let_write(s, 1, 10);
        network_mend(c->net, one, other);
    }
    let_write(s, 0, 10);
}

/* The standby is cut off, calls end without an answer, and then the primary dies: what it
 * alone has was acknowledged to nobody. */
static void the_primary_dies(scene *s)
{
    network_cut(s->c->net, s->c->db[0], s->c->db[1]);
    let_go_on(s, 0, "ur", 1);
    network_signal(s->c->net, s->c->db[0], SIGKILL);
    cluster_promote(s->c);
    let_write(s, 0, 10);
}

static void nothing_acknowledged_is_lost_under_any_fault(void **state)
{
    scene s = {.c = NULL};
    sessile_store *store;
    sessile_error err = {0};
    (void)state;
    scene_open(&s);
    let_write(&s, 0, 10);
    links_are_bad(&s);
    the_standby_is_away(&s);
    hosts_freeze_and_are_cut_off(&s);
    kill_writer(&s, 1);
    start_writer(&s, 1);
    let_write(&s, 1, 10);
    the_primary_dies(&s);
    for (int i = 0; i < WRITERS; i++)
        kill_writer(&s, i);

    ledger *l = ledger_read(s.journals);
    if (open_store(s.c->server[s.c->primary]->url, &store, &err))
        fail_msg("%s", err.message);
    ledger_sum sum = ledger_compare_all(l, store);
    for (int i = 0; i < SESSIONS; i++)
        ledger_check_clean(store, sessions[i]);
    printf("# figure: acknowledged through faults of network and database = %lu, refused "
           "= %lu, unknown = %lu (written = %lu), losses = %lu, duplicates = %lu\n",
           sum.acknowledged, sum.refused, sum.unknown, sum.unsaid, sum.lost, sum.twice);
    ledger_check_sum(&sum);
    sessile_store_close(store);
    ledger_free(l);
    folder_remove(s.journals);
    cluster_close(s.c);
}

int main(int argc, char **argv)
{
    if (argc == 4)
        write_for_ever(argv[1], argv[2], (unsigned)strtoul(argv[3], NULL, 10));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_acknowledged_is_lost_under_any_fault),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
