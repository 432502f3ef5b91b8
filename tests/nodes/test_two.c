/*
 * test_two.c: two nodes use one session.
 *
 * Owns what somebody relies on who runs several machines over one database: what one node
 * made the other sees, whatever it is, and turns that were thought on the same words
 * never both pass. Nothing here fails or dies; that is the other programs' affair.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes/pair.h"

enum { ROUNDS = 40, CHECKPOINTS = 25 };

static int pair_open(void **state)
{
    *state = pair_new(*state, 0);
    return 0;
}

static void both_say(const pair *p, const char *contents)
{
    node_reply a = node_must(&p->a, NODE_CONTENTS, 0, 0, NULL);
    node_reply b = node_must(&p->b, NODE_CONTENTS, 0, 0, NULL);
    assert_string_equal(a.text, contents);
    assert_string_equal(b.text, contents);
}

static void made_on_one_gone_on_with_on_the_other(void **state)
{
    pair *p = both(state);
    node_must(&p->a, NODE_APPEND, 0, 0, "one");
    node_must(&p->a, NODE_CLOSE, 0, 0, NULL);
    node_must(&p->b, NODE_RESUME, 0, 0, "shared");
    node_must(&p->b, NODE_APPEND, 0, 0, "two");
    node_must(&p->b, NODE_TURN, 0, 0, "three");
    node_must(&p->b, NODE_CLOSE, 0, 0, NULL);
    node_must(&p->a, NODE_RESUME, 0, 0, "shared");
    node_must(&p->a, NODE_APPEND, 0, 0, "four");
    node_must(&p->b, NODE_RESUME, 0, 0, "shared");
    both_say(p, "one two three four");
}

static void open_on_both_each_sees_the_others_words_at_once(void **state)
{
    pair *p = both(state);
    char all[1024] = "";
    for (int i = 0; i < 20; i++) {
        char word[16];
        snprintf(word, sizeof word, "w%d", i);
        node_must(i % 2 ? &p->a : &p->b, NODE_HEAD, 0, 0, NULL);
        node_must(i % 2 ? &p->a : &p->b, i % 3 ? NODE_APPEND : NODE_TURN, 0, 0, word);
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "", word);
        both_say(p, all);
    }
}

static void labels_and_checkpoints_are_the_sessions(void **state)
{
    pair *p = both(state);
    char expected[200];
    sessile_id one = node_must(&p->a, NODE_APPEND, 0, 0, "one").id;
    node_must(&p->a, NODE_LABEL, one, 0, "kept");
    sessile_id point = node_must(&p->a, NODE_CHECKPOINT, 0, 0, "here").id;
    node_must(&p->b, NODE_HEAD, 0, 0, NULL);
    node_must(&p->b, NODE_APPEND, 0, 0, "two");
    snprintf(expected, sizeof expected, "%08x:kept", one);
    assert_string_equal(node_must(&p->b, NODE_LABELS, 0, 0, NULL).text, expected);
    snprintf(expected, sizeof expected, "%08x:here", point);
    assert_string_equal(node_must(&p->b, NODE_CHECKPOINTS, 0, 0, NULL).text, expected);
    assert_int_equal(node_must(&p->b, NODE_RESTORE, point, 0, NULL).id, one);
    both_say(p, "one");
}

/* Both nodes do this at once, with "a" or "b" and the number; the ids they made. */
static void both_do(pair *p, node_word what, int number, sessile_id made[2])
{
    char text[2][16];
    node *nodes[2] = {&p->a, &p->b};
    for (int n = 0; n < 2; n++) {
        snprintf(text[n], sizeof text[n], "%c%d", "ab"[n], number);
        node_ask(nodes[n], what, 0, 0, text[n]);
    }
    for (int n = 0; n < 2; n++) {
        node_reply r = node_answer(nodes[n]);
        if (r.status)
            print_error("%s\n", r.text);
        assert_int_equal(r.status, SESSILE_OK);
        made[n] = r.id;
    }
}

static void two_nodes_that_checkpoint_at_once_make_one_order(void **state)
{
    pair *p = both(state);
    sessile_id made[2 * CHECKPOINTS];
    node_must(&p->a, NODE_APPEND, 0, 0, "one");
    node_must(&p->b, NODE_HEAD, 0, 0, NULL);
    for (int i = 0; i < CHECKPOINTS; i++)
        both_do(p, NODE_CHECKPOINT, i, made + 2 * i);
    node_reply a = node_must(&p->a, NODE_CHECKPOINTS, 0, 0, NULL);
    node_reply b = node_must(&p->b, NODE_CHECKPOINTS, 0, 0, NULL);
    assert_int_equal(a.number, 2 * CHECKPOINTS);
    assert_string_equal(a.text, b.text);
    for (int i = 0; i < 2 * CHECKPOINTS; i++) {
        char row[40];
        snprintf(row, sizeof row, "%08x:%c%d", made[i], i % 2 ? 'b' : 'a', i / 2);
        assert_non_null(strstr(a.text, row));
    }
}

/* Both look, both think, both write: of every such pair one is told. */
static void of_two_turns_on_one_base_one_is_a_conflict(void **state)
{
    pair *p = both(state);
    char policy[600];
    unsigned conflicts = 0, first[2] = {0, 0};
    snprintf(policy, sizeof policy, "%s/policies/sliding_window.lua",
             getenv("SESSILE_ROOT") ? getenv("SESSILE_ROOT") : ".");
    node_must(&p->a, NODE_POLICY, 0, 0, policy);
    node_must(&p->b, NODE_POLICY, 0, 0, policy);
    char all[2048] = "";
    for (int i = 0; i < ROUNDS; i++) {
        char word[2][16];
        sessile_id head = node_must(&p->a, NODE_HEAD, 0, 0, NULL).id;
        assert_int_equal(node_must(&p->b, NODE_HEAD, 0, 0, NULL).id, head);
        snprintf(word[0], sizeof word[0], "a%d", i);
        snprintf(word[1], sizeof word[1], "b%d", i);
        node_ask(i % 2 ? &p->b : &p->a, NODE_TURN, 0, SESSILE_ON_CONFLICT_FAIL,
                 word[i % 2]);
        node_ask(i % 2 ? &p->a : &p->b, NODE_TURN, 0, SESSILE_ON_CONFLICT_FAIL,
                 word[!(i % 2)]);
        node_reply r[2] = {node_answer(&p->a), node_answer(&p->b)};
        for (int n = 0; n < 2; n++)
            if (r[n].status && r[n].status != SESSILE_CONFLICT)
                print_error("%s\n", r[n].text);
        int winner = !r[0].status ? 0 : 1;
        assert_int_equal(r[winner].status, SESSILE_OK);
        assert_int_equal(r[!winner].status, SESSILE_CONFLICT);
        first[winner]++;
        conflicts++;
        snprintf(all + strlen(all), sizeof all - strlen(all), "%s%s", i ? " " : "",
                 word[winner]);
        both_say(p, all);
    }
    assert_int_equal(conflicts, ROUNDS);
    printf("# figure: turns of two nodes on one base, %s = %d, of which refused as "
           "conflicts = %u\n",
           p->d->kind, 2 * ROUNDS, conflicts);
}

static void who_accepts_what_came_between_is_written_behind_it(void **state)
{
    pair *p = both(state);
    unsigned there = 0;
    for (int i = 0; i < ROUNDS / 2; i++) {
        char word[2][16];
        node_must(&p->a, NODE_HEAD, 0, 0, NULL);
        node_must(&p->b, NODE_HEAD, 0, 0, NULL);
        snprintf(word[0], sizeof word[0], "a%d", i);
        snprintf(word[1], sizeof word[1], "b%d", i);
        node_ask(&p->a, NODE_TURN, 0, SESSILE_ON_CONFLICT_APPEND, word[0]);
        node_ask(&p->b, NODE_TURN, 0, SESSILE_ON_CONFLICT_APPEND, word[1]);
        for (int n = 0; n < 2; n++) {
            node_reply r = node_answer(n ? &p->b : &p->a);
            if (r.status)
                print_error("%s\n", r.text);
            assert_int_equal(r.status, SESSILE_OK);
        }
        there += 2;
        node_reply all = node_must(&p->a, NODE_CONTENTS, 0, 0, NULL);
        assert_int_equal(all.number, there);
        /* both of this round are its last two */
        const char *end =
            all.text + strlen(all.text) - strlen(word[0]) - strlen(word[1]) - 1;
        assert_non_null(strstr(end, word[0]));
        assert_non_null(strstr(end, word[1]));
        assert_string_equal(node_must(&p->b, NODE_CONTENTS, 0, 0, NULL).text, all.text);
    }
}

static void who_asks_for_a_branch_gets_a_sibling(void **state)
{
    pair *p = both(state);
    node_must(&p->a, NODE_APPEND, 0, 0, "root");
    node_must(&p->b, NODE_HEAD, 0, 0, NULL);
    node_must(&p->a, NODE_TURN, 0, 0, "trunk");
    node_must(&p->b, NODE_TURN, 0, SESSILE_ON_CONFLICT_BRANCH, "twig");
    both_say(p, "root trunk");
}

/* Appends need no base: who comes late reads on and writes behind. */
static void appends_of_two_nodes_all_stand_one_after_the_other(void **state)
{
    pair *p = both(state);
    node_must(&p->a, NODE_HEAD, 0, 0, NULL);
    node_must(&p->b, NODE_HEAD, 0, 0, NULL);
    for (int i = 0; i < ROUNDS; i++)
        both_do(p, NODE_APPEND, i, (sessile_id[2]){0});
    node_reply all = node_must(&p->a, NODE_CONTENTS, 0, 0, NULL);
    assert_int_equal(all.number, 2 * ROUNDS);
    assert_string_equal(all.text, node_must(&p->b, NODE_CONTENTS, 0, 0, NULL).text);
    int next[2] = {0, 0};
    for (char *word = strtok(all.text, " "); word; word = strtok(NULL, " "))
        assert_int_equal(atoi(word + 1), next[*word == 'b']++);
    assert_true(next[0] == ROUNDS && next[1] == ROUNDS);
}

static int by_size(const void *a, const void *b)
{
    const double *x = a, *y = b;
    return (*x > *y) - (*x < *y);
}

/* How soon is a figure, not a promise. */
static void who_waits_is_woken_by_the_others_words(void **state)
{
    pair *p = both(state);
    double late[ROUNDS];
    char last[16];
    for (int i = 0; i < ROUNDS; i++) {
        const node *waits = i % 2 ? &p->b : &p->a, *writes = i % 2 ? &p->a : &p->b;
        snprintf(last, sizeof last, "w%d", i);
        node_must(waits, NODE_HEAD, 0, 0, NULL);
        node_ask(waits, NODE_WATCH, 0, 60000, NULL);
        node_must(writes, NODE_HEAD, 0, 0, NULL);
        double said = node_must(writes, i % 3 ? NODE_APPEND : NODE_TURN, 0, 0, last).at;
        node_reply r = node_answer(waits);
        if (r.status)
            print_error("%s\n", r.text);
        assert_int_equal(r.status, SESSILE_OK);
        assert_int_equal(r.number, 1);
        late[i] = r.at - said;
        node_reply all = node_must(waits, NODE_CONTENTS, 0, 0, NULL);
        assert_int_equal(all.number, i + 1);
        assert_string_equal(strrchr(all.text, 'w'), last);
    }
    /* and nobody is woken by nothing */
    node_must(&p->a, NODE_HEAD, 0, 0, NULL);
    assert_int_equal(node_must(&p->a, NODE_WATCH, 0, 20, NULL).number, 0);
    qsort(late, ROUNDS, sizeof *late, by_size);
    printf("# figure: from an acknowledged append to the other node awake, over %s = "
           "%.2f ms (median), %.2f ms (worst of %d)\n",
           p->d->kind, late[ROUNDS / 2], late[ROUNDS - 1], ROUNDS);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_on_one_gone_on_with_on_the_other),
        cmocka_unit_test(open_on_both_each_sees_the_others_words_at_once),
        cmocka_unit_test(labels_and_checkpoints_are_the_sessions),
        cmocka_unit_test(two_nodes_that_checkpoint_at_once_make_one_order),
        cmocka_unit_test(of_two_turns_on_one_base_one_is_a_conflict),
        cmocka_unit_test(who_accepts_what_came_between_is_written_behind_it),
        cmocka_unit_test(who_asks_for_a_branch_gets_a_sibling),
        cmocka_unit_test(appends_of_two_nodes_all_stand_one_after_the_other),
        cmocka_unit_test(who_waits_is_woken_by_the_others_words),
    };
    return database_run("two nodes", tests, sizeof tests / sizeof *tests, pair_open,
                        pair_close, argc, argv);
}
