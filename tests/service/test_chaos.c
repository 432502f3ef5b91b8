/*
 * test_chaos.c: three nodes, two databases and their clients, through every fault of
 * machines and networks: nothing acknowledged is lost, nothing is there twice, each
 * stream of events has each entry once.
 *
 * Each fault is a step of one long scene, during which all clients go on. After each step
 * the longest time that any writer waited is printed. CHAOS_SECONDS goes on with steps
 * chosen by SEED, for so long.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "service/scene.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

enum { SOME = 10, SECOND_US = 1000000 };

static void wait_s(double seconds)
{
    usleep((useconds_t)(seconds * SECOND_US));
}

/* ------------------------------------------------------------------ nodes */

static void nothing_at_all(scene *s)
{
    scene_let_write(s, 3 * SOME);
}

static void a_node_is_killed(scene *s)
{
    assert_int_equal(scene_node_end(s, 1, SIGKILL), 128 + SIGKILL);
    scene_let_write(s, SOME);
    scene_node_start(s, 1);
    scene_let_write(s, SOME);
}

static void a_node_is_told_to_end(scene *s)
{
    assert_int_equal(scene_node_end(s, 0, SIGTERM), 0);
    scene_let_write(s, SOME);
    scene_node_start(s, 0);
    scene_let_write(s, SOME);
}

static void a_node_is_frozen_and_wakes(scene *s)
{
    cluster *c = scene_cluster(s);
    network_signal(c->net, scene_node_host(s, 2), SIGSTOP);
    wait_s(4);
    network_signal(c->net, scene_node_host(s, 2), SIGCONT);
    scene_let_write(s, SOME);
}

static void a_node_has_no_database(scene *s)
{
    cluster *c = scene_cluster(s);
    for (int db = 0; db < 2; db++)
        network_cut(c->net, scene_node_host(s, 1), c->db[db]);
    wait_s(4);
    for (int db = 0; db < 2; db++)
        network_mend(c->net, scene_node_host(s, 1), c->db[db]);
    scene_let_write(s, SOME);
}

static void nodes_do_not_hear_each_other(scene *s)
{
    cluster *c = scene_cluster(s);
    network_cut(c->net, scene_node_host(s, 0), scene_node_host(s, 1));
    wait_s(1);
    scene_let_write(s, SOME);
    network_mend(c->net, scene_node_host(s, 0), scene_node_host(s, 1));
    scene_let_write(s, SOME);
}

static void a_node_is_cut_off(scene *s)
{
    cluster *c = scene_cluster(s);
    network_isolate(c->net, scene_node_host(s, 0));
    scene_let_write(s, SOME);
    network_join(c->net, scene_node_host(s, 0));
    scene_let_write(s, SOME);
}

static void a_node_is_deaf_one_way(scene *s)
{
    cluster *c = scene_cluster(s);
    int node = scene_node_host(s, 2), other = scene_node_host(s, 0);
    for (int way = 0; way < 2; way++) {
        network_one_way(c->net, way ? node : other, way ? other : node,
                        &(network_fault){.cut = 1});
        wait_s(1);
        scene_let_write(s, SOME);
        network_mend(c->net, node, other);
    }
    network_one_way(c->net, c->db[c->primary], node, &(network_fault){.cut = 1});
    wait_s(3);
    network_mend(c->net, c->db[c->primary], node);
    scene_let_write(s, SOME);
}

static void links_are_bad(scene *s)
{
    cluster *c = scene_cluster(s);
    network_fault bad = {
        .delay_us = 5000, .jitter_us = 2500, .loss = 0.02, .doubled = 0.02};
    for (int n = 0; n < SCENE_NODES; n++) {
        for (int db = 0; db < 2; db++)
            network_link(c->net, scene_node_host(s, n), c->db[db], &bad);
        for (int other = 0; other < n; other++)
            network_link(c->net, scene_node_host(s, n), scene_node_host(s, other), &bad);
        for (int k = 0; k < SCENE_CLIENTS; k++)
            network_link(c->net, scene_node_host(s, n), scene_client_host(s, k), &bad);
    }
    network_link(c->net, c->db[0], c->db[1], &bad);
    scene_let_write(s, SOME / 2);
    for (int n = 0; n < SCENE_NODES; n++)
        network_join(c->net, scene_node_host(s, n));
    network_mend(c->net, c->db[0], c->db[1]);
    scene_let_write(s, SOME);
}

/* ------------------------------------------------------------------ databases */

static void wait_for_commits_that_wait(cluster *c)
{
    char *waiting = NULL;
    do {
        free(waiting);
        waiting = postgres_sql(c->server[c->primary]->admin,
                               "select count(*) from pg_stat_activity where wait_event = "
                               "'SyncRep'");
        assert_non_null(waiting);
    } while (strcmp(waiting, "0") == 0);
    free(waiting);
}

static void the_standby_dies_and_comes_back(scene *s)
{
    cluster *c = scene_cluster(s);
    network_signal(c->net, c->db[1 - c->primary], SIGKILL);
    wait_for_commits_that_wait(c);
    wait_s(2);
    assert_int_equal(postgres_do(c->server[1 - c->primary], "again"), 0);
    scene_let_write(s, SOME);
}

static void the_primary_freezes(scene *s)
{
    cluster *c = scene_cluster(s);
    network_signal(c->net, c->db[c->primary], SIGSTOP);
    wait_s(2);
    network_signal(c->net, c->db[c->primary], SIGCONT);
    scene_let_write(s, SOME);
}

static void the_primary_dies(scene *s)
{
    cluster *c = scene_cluster(s);
    network_signal(c->net, c->db[c->primary], SIGKILL);
    cluster_promote(c);
    scene_let_write(s, SOME);
    cluster_rebuild(c);
    scene_let_write(s, SOME);
}

/* The old one is up all the time, and can be reached again once the new one has written.
 */
static void the_primary_is_cut_off_and_comes_back(scene *s)
{
    cluster *c = scene_cluster(s);
    int old = c->primary;
    network_isolate(c->net, c->db[old]);
    cluster_promote(c);
    scene_let_write(s, SOME);
    network_join(c->net, c->db[old]);
    scene_let_write(s, SOME);
    cluster_rebuild(c);
    scene_let_write(s, SOME);
}

/* What the primary alone has was acknowledged to nobody and shown to nobody, also when
 * calls have ended while it waited. */
static void the_standby_is_cut_off_and_then_the_primary_dies(scene *s)
{
    cluster *c = scene_cluster(s);
    network_cut(c->net, c->db[0], c->db[1]);
    wait_for_commits_that_wait(c);
    wait_s(6); /* calls of 4 s end without an answer, and are made again */
    network_signal(c->net, c->db[c->primary], SIGKILL);
    cluster_promote(c);
    network_mend(c->net, c->db[0], c->db[1]);
    scene_let_write(s, SOME);
    cluster_rebuild(c);
    scene_let_write(s, SOME);
}

/* ------------------------------------------------------------------ the scene */

typedef struct step {
    const char *what;
    void (*happens)(scene *s);
} step;

static const step steps[] = {
    {"nothing fails", nothing_at_all},
    {"a node is killed", a_node_is_killed},
    {"a node is told to end", a_node_is_told_to_end},
    {"a node is frozen for 4 s", a_node_is_frozen_and_wakes},
    {"a node is without the database for 4 s", a_node_has_no_database},
    {"two nodes do not hear each other", nodes_do_not_hear_each_other},
    {"a node is cut off from all", a_node_is_cut_off},
    {"a node is deaf one way, for 3 s also to the database", a_node_is_deaf_one_way},
    {"each link loses 2 %, doubles 2 %, 5 ms late", links_are_bad},
    {"the standby is dead for 2 s", the_standby_dies_and_comes_back},
    {"the primary is frozen for 2 s", the_primary_freezes},
    {"the primary dies, the standby is promoted", the_primary_dies},
    {"the primary is cut off, the standby is promoted, the old one comes back",
     the_primary_is_cut_off_and_comes_back},
    {"the standby is cut off for 6 s, then the primary dies",
     the_standby_is_cut_off_and_then_the_primary_dies},
};
enum { STEPS = sizeof steps / sizeof *steps };

static void take(scene *s, const step *one)
{
    uint64_t began = scene_now();
    one->happens(s);
    printf("# figure: longest wait of a writer, in ms, when %s = %.0f\n", one->what,
           scene_pause(s, began, scene_now()));
    fflush(stdout);
}

static void nothing_is_lost_whatever_fails(void **state)
{
    const char *set = getenv("CHAOS_SECONDS"), *seed = getenv("SEED");
    uint64_t until = set ? scene_now() + strtoull(set, NULL, 10) * SECOND_US : 0;
    unsigned random = seed ? (unsigned)strtoul(seed, NULL, 10) : 1;
    (void)state;
    scene *s = scene_open(&(scene_options){.writers = 3});
    for (int i = 0; i < STEPS; i++)
        take(s, &steps[i]);
    while (scene_now() < until)
        take(s, &steps[rand_r(&random) % STEPS]);
    scene_judge(s, "chaos");
    scene_close(s);
}

/* Without faults: where calls are served, and that it makes no difference. */
static void calls_are_served_by_the_owner_unless_affinity_is_off(void **state)
{
    (void)state;
    for (int off = 0; off < 2; off++) {
        scene *s = scene_open(&(scene_options){.writers = 3, .no_affinity = off});
        scene_let_write(s, 5 * SOME);
        unsigned long here =
                          scene_metric(s, "sessile_calls_routed_total{where=\"here\"} "),
                      relayed = scene_metric(
                          s, "sessile_calls_routed_total{where=\"relayed\"} "),
                      fallback = scene_metric(
                          s, "sessile_calls_routed_total{where=\"fallback\"} ");
        printf("# figure: affinity %s: served here = %lu, relayed = %lu, without the "
               "owner = "
               "%lu\n",
               off ? "off" : "on", here, relayed, fallback);
        if (off) {
            assert_int_equal(relayed, 0);
        } else {
            assert_true(relayed > here / 2);
            assert_true(fallback * 20 < here);
        }
        scene_judge(s, off ? "affinity off" : "affinity on");
        scene_close(s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_are_served_by_the_owner_unless_affinity_is_off),
        cmocka_unit_test(nothing_is_lost_whatever_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
