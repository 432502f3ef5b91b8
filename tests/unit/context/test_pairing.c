/*
 * test_pairing.c: which result answers which call, and the list that this is asked of.
 *
 * Pairs are written "item>item" from call to result, with "!" when the answer is late.
 */
#include "support/lists.h"
#include "support/rations.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ in words */

/* "2>3 2>4!" of all answered calls of other items, by result, items counted from 1. */
static const char *pairs_of(const pairing *p, const context *c)
{
    static char out[4096];
    size_t at = 0;
    uint32_t k;

    out[0] = 0;
    for (k = 0; k < p->link_count; k++) {
        uint32_t mate = p->links[k].mate;
        if (!c->links[k].is_result || mate == PAIR_NONE ||
            p->links[mate].item == p->links[k].item)
            continue;
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%u>%u%s", at ? " " : "",
                               p->links[mate].item + 1, p->links[k].item + 1,
                               p->links[k].late ? "!" : "");
    }
    return out;
}

/* "open 2, dead 3 4, orphan 5". */
static const char *flags_of(const pairing *p)
{
    static const struct {
        unsigned flag;
        const char *name;
    } names[] = {{PAIR_OPEN, "open"},
                 {PAIR_DEAD, "dead"},
                 {PAIR_ORPHAN, "orphan"},
                 {PAIR_LATE, "late"}};
    static char out[4096];
    size_t at = 0, n, i;

    out[0] = 0;
    for (n = 0; n < 4; n++) {
        int any = 0;
        for (i = 0; i < p->item_count; i++) {
            if (!(p->flags[i] & names[n].flag))
                continue;
            at +=
                (size_t)snprintf(out + at, sizeof out - at, "%s%s %zu",
                                 any || !at ? "" : ", ", any ? "" : names[n].name, i + 1);
            any = 1;
        }
    }
    return out;
}

static void check(const char *line, const char *pairs, const char *flags)
{
    pairing p;
    list l;

    list_make(&l, line);
    pairing_init(&p, &allocator_default);
    assert_int_equal(pairing_make(&p, &l.c), 0);
    assert_string_equal(pairs_of(&p, &l.c), pairs);
    assert_string_equal(flags_of(&p), flags);
    pairing_deinit(&p);
    list_free(&l);
}

/* ------------------------------------------------------------------ pairs */

static void results_answer_the_call_before_them(void **unused)
{
    (void)unused;
    check("u a:x r:x", "2>3", "");
    check("u a:x,y r:x r:y a", "2>3 2>4", "");
}

static void results_may_come_in_any_order(void **unused)
{
    (void)unused;
    check("a:x,y,z r:z r:x r:y", "1>2 1>3 1>4", "");
}

static void blocks_pair_like_messages(void **unused)
{
    (void)unused;
    check("u b:x,y m:y,x a", "2>3 2>3", "");
}

static void the_newest_call_of_an_id_is_answered(void **unused)
{
    (void)unused;
    check("a:x u a:x r:x", "3>4", "dead 1");
}

static void an_answered_call_takes_no_second_result(void **unused)
{
    (void)unused;
    check("a:x r:x r:x", "1>2", "orphan 3");
}

static void a_second_result_answers_the_older_call_of_that_id(void **unused)
{
    (void)unused;
    check("a:x u a:x r:x r:x", "3>4 1>5!", "late 5");
}

static void a_result_before_its_call_is_an_orphan(void **unused)
{
    (void)unused;
    check("r:x a:x r:x", "2>3", "orphan 1");
}

static void a_result_of_an_unknown_call_is_an_orphan(void **unused)
{
    (void)unused;
    check("u r:q a", "", "orphan 2");
}

/* ------------------------------------------------------------------ open, dead, late */

static void calls_at_the_end_are_open(void **unused)
{
    (void)unused;
    check("u a:x", "", "open 2");
    check("u a:x,y r:x", "2>3", "open 2");
}

static void anything_else_behind_makes_them_dead(void **unused)
{
    (void)unused;
    check("u a:x u", "", "dead 2");
    check("u a:x,y r:x a", "2>3", "dead 2");
    check("a:x a:y", "", "open 2, dead 1");
}

static void an_orphan_behind_makes_them_dead_too(void **unused)
{
    (void)unused;
    check("a:x r:q", "", "dead 1, orphan 2");
}

static void a_result_after_something_else_is_late(void **unused)
{
    (void)unused;
    check("a:x u r:x", "1>3!", "late 3");
    check("a:x,y r:x u r:y", "1>2 1>4!", "late 4");
}

static void text_beside_results_ends_the_waiting(void **unused)
{
    (void)unused;
    check("b:x,y t:x m:y", "1>2 1>3!", "late 3");
    check("b:x,y t:x", "1>2", "dead 1");
}

static void a_result_in_a_message_with_calls_answers_in_time(void **unused)
{
    (void)unused;
    check("b:x x:y/x r:y", "1>2 2>3", "");
}

static void calls_and_results_of_one_message_meet(void **unused)
{
    (void)unused;
    check("u x:q/q a", "", "");
    check("b:q x:q/q", "", "dead 1");
}

/* ------------------------------------------------------------------ calls with output */

static void a_call_with_output_opens_nothing(void **unused)
{
    (void)unused;
    check("u o:x", "", "");
    check("u o:x r:x", "", "orphan 3");
}

static void a_tool_message_with_output_answers_the_call(void **unused)
{
    (void)unused;
    check("a:x,y p:y p:x", "1>2 1>3", "");
    check("a:x u p:x", "1>3!", "late 3");
}

static void a_tool_message_with_output_of_no_call_stands_alone(void **unused)
{
    (void)unused;
    check("u p:x", "", "");
}

static void a_call_given_twice_in_a_message_is_one_call(void **unused)
{
    (void)unused;
    check("a:x,x r:x a", "1>2", "");
    check("a:x,x", "", "open 1");
    check("a:x,x r:x r:x", "1>2", "orphan 3");
}

/* ------------------------------------------------------------------ many calls */

/* A message with more calls than are compared one by one goes through the table. */
static void many_calls_pair_as_few_do(void **unused)
{
    char line[4096] = "u a:", *at = line + 4;
    pairing p;
    list l;
    int i;

    (void)unused;
    for (i = 0; i < 40; i++)
        at += sprintf(at, "%sc%d", i ? "," : "", i);
    for (i = 39; i >= 1; i--)
        at += sprintf(at, " r:c%d", i);
    list_make(&l, line);
    pairing_init(&p, &allocator_default);
    assert_int_equal(pairing_make(&p, &l.c), 0);
    for (i = 0; i < 39; i++) {
        uint32_t k = l.c.items[2 + i].link;
        assert_int_equal(p.links[k].mate, 39 - i);
        assert_int_equal(p.links[k].late, 0);
    }
    assert_string_equal(flags_of(&p), "open 2");
    pairing_deinit(&p);
    list_free(&l);
}

static void the_first_open_item_is_told(void **unused)
{
    pairing p;
    list l;

    (void)unused;
    list_make(&l, "u a:x u a:x,y r:y");
    pairing_init(&p, &allocator_default);
    assert_int_equal(pairing_make(&p, &l.c), 0);
    assert_int_equal(p.first_open, 3);
    list_free(&l);
    list_make(&l, "u a:x u");
    assert_int_equal(pairing_make(&p, &l.c), 0);
    assert_int_equal(p.first_open, 3);
    list_free(&l);
    list_make(&l, "");
    assert_int_equal(pairing_make(&p, &l.c), 0);
    assert_int_equal(p.first_open, 0);
    list_free(&l);
    pairing_deinit(&p);
}

/* ------------------------------------------------------------------ groups */

static void check_groups(const char *line, const char *groups)
{
    char out[1024] = "";
    size_t at = 0, i;
    pairing p;
    list l;

    list_make(&l, line);
    pairing_init(&p, &allocator_default);
    assert_int_equal(pairing_make(&p, &l.c), 0);
    for (i = 0; i < p.item_count; i++)
        at += (size_t)snprintf(out + at, sizeof out - at, "%s%u-%u", i ? " " : "",
                               p.group[i] + 1, p.group_end[i] + 1);
    assert_string_equal(out, groups);
    pairing_deinit(&p);
    list_free(&l);
}

static void groups_hold_calls_and_their_results(void **unused)
{
    (void)unused;
    check_groups("u a:x,y r:x r:y a", "1-1 2-4 2-3 2-4 5-5");
}

static void groups_reach_to_late_answers(void **unused)
{
    (void)unused;
    check_groups("a:x u a r:x", "1-4 2-2 3-3 1-4");
}

static void a_result_of_two_messages_joins_them(void **unused)
{
    (void)unused;
    check_groups("b:x b:y m:y,x", "1-3 1-2 1-3");
}

static void orphans_and_dead_calls_are_alone(void **unused)
{
    (void)unused;
    check_groups("r:x a:x u", "1-1 2-2 3-3");
}

/* ------------------------------------------------------------------ against the words */

/* The rules, word for word, without any thought of cost. */
typedef struct naive {
    int mate[4096], late[4096], item[4096], twice[4096];
    int orphan[1024], dead[1024], open[1024];
} naive;

/* 1 when item j is nothing but results for `calls`, judged by results before it. */
static int only_results_of(const naive *n, const context *c, int j, int calls)
{
    const item *it = &c->items[j];
    uint32_t k;
    int good = 0;

    if (it->flags & ITEM_STARTS_TURN)
        return 0;
    for (k = it->link; k < it->link + it->link_count; k++) {
        int own = k + 1 < it->link + it->link_count && c->links[k + 1].in_call;
        if (!c->links[k].is_result && !own)
            return 0;
        if (c->links[k].is_result && n->mate[k] >= 0 && n->item[n->mate[k]] == calls &&
            !n->late[k])
            good = 1;
    }
    return good;
}

static int stood_between(const naive *n, const context *c, int calls, int end)
{
    int j;
    for (j = calls + 1; j < end; j++)
        if (!only_results_of(n, c, j, calls))
            return 1;
    return 0;
}

static void pair_naively(naive *n, const context *c)
{
    int i, j, k;

    memset(n, 0, sizeof *n);
    for (i = 0; i < (int)c->count; i++) {
        const item *it = &c->items[i];
        int end = (int)(it->link + it->link_count);
        for (k = (int)it->link; k < end; k++) {
            int own = c->links[k].in_call, j_from = own ? k - 2 : k - 1;
            int answers = !own || it->role == SESSILE_TOOL;
            n->item[k] = i;
            n->mate[k] = -1;
            if (!c->links[k].is_result) {
                /* the same call given before in this message, and not answered since */
                for (j = (int)it->link; j < k; j++)
                    if (c->links[j].id == c->links[k].id && !c->links[j].is_result &&
                        n->mate[j] == -1 && !n->twice[j])
                        n->twice[k] = 1;
                continue;
            }
            for (j = j_from; j >= 0 && answers; j--)
                if (!c->links[j].is_result && c->links[j].id == c->links[k].id &&
                    n->mate[j] == -1 && !n->twice[j] &&
                    !(j + 1 < (int)c->link_count && c->links[j + 1].in_call))
                    break;
            if (answers && j >= 0) {
                n->mate[k] = j;
                n->mate[j] = k;
                n->late[k] = stood_between(n, c, n->item[j], i);
            } else if (!own) {
                n->orphan[i] = 1;
            } else {
                n->mate[k] = k - 1;
                n->mate[k - 1] = k;
            }
            if (own)
                n->mate[k - 1] = k;
        }
    }
    for (k = 0; k < (int)c->link_count; k++) {
        int waits = !c->links[k].is_result && n->mate[k] == -1 && !n->twice[k];
        if (!waits)
            continue;
        if (stood_between(n, c, n->item[k], (int)c->count))
            n->dead[n->item[k]] = 1;
        else
            n->open[n->item[k]] = 1;
    }
}

static void pairing_is_what_the_rules_say(void **unused)
{
    static naive n;
    pairing p;
    int round;

    (void)unused;
    random_start();
    pairing_init(&p, &allocator_default);
    for (round = 0; round < 20000; round++) {
        char line[2048];
        size_t i, k;
        list l;

        random_line(line, sizeof line, 1 + random_below(12));
        list_make(&l, line);
        pair_naively(&n, &l.c);
        assert_int_equal(pairing_make(&p, &l.c), 0);
        for (k = 0; k < l.c.link_count; k++) {
            int mate = p.links[k].mate == PAIR_NONE ? -1 : (int)p.links[k].mate;
            if (!n.twice[k] && (mate != n.mate[k] || p.links[k].late != n.late[k]))
                fail_msg("SEED=%llu, round %d: link %zu of \"%s\" pairs with %d, not %d",
                         (unsigned long long)random_seed(), round, k, line, mate,
                         n.mate[k]);
        }
        for (i = 0; i < l.c.count; i++) {
            unsigned f = p.flags[i];
            if (!!(f & PAIR_ORPHAN) != n.orphan[i] || !!(f & PAIR_DEAD) != n.dead[i] ||
                !!(f & PAIR_OPEN) != n.open[i])
                fail_msg("SEED=%llu, round %d: item %zu of \"%s\" has flags %u",
                         (unsigned long long)random_seed(), round, i + 1, line, f);
        }
        list_free(&l);
    }
    pairing_deinit(&p);
}

/* ------------------------------------------------------------------ the list */

static void a_copy_is_the_same_and_its_own(void **unused)
{
    context copy;
    list l;

    (void)unused;
    list_make(&l, "s u a:x r:x u");
    context_init(&copy, &allocator_default);
    assert_int_equal(context_copy(&copy, &l.c), 0);
    assert_int_equal(copy.count, l.c.count);
    assert_int_equal(copy.upto, l.c.upto);
    assert_int_equal(copy.link_count, l.c.link_count);
    for (size_t i = 0; i < copy.count; i++) { /* by field: padding holds anything */
        const item *a = &copy.items[i], *b = &l.c.items[i];
        assert_int_equal(a->key.entry, b->key.entry);
        assert_int_equal(a->key.n, b->key.n);
        assert_int_equal(a->tokens, b->tokens);
        assert_int_equal(a->turn, b->turn);
        assert_int_equal(a->link, b->link);
        assert_int_equal(a->link_count, b->link_count);
        assert_int_equal(a->role, b->role);
        assert_int_equal(a->flags, b->flags);
    }
    for (size_t i = 0; i < copy.link_count; i++) {
        const message_link *a = &copy.links[i], *b = &l.c.links[i];
        assert_true(a->id == b->id);
        assert_int_equal(a->is_result, b->is_result);
        assert_int_equal(a->in_call, b->in_call);
    }
    assert_ptr_not_equal(copy.items, l.c.items);
    context_clear(&copy);
    assert_int_equal(l.c.count, 5);
    context_deinit(&copy);
    list_free(&l);
}

static void only_the_opening_system_messages_are_marked(void **unused)
{
    size_t i;
    list l;

    (void)unused;
    list_make(&l, "s d s u s");
    for (i = 0; i < 5; i++)
        assert_int_equal(!!(l.c.items[i].flags & ITEM_PINNED), i < 3);
    list_free(&l);
}

static void the_last_user_message_starts_a_turn(void **unused)
{
    list l;

    (void)unused;
    list_make(&l, "s u a u b:x m:x n a");
    assert_int_equal(context_last_user(&l.c), 3);
    list_free(&l);
    list_make(&l, "s a");
    assert_int_equal(context_last_user(&l.c), 2);
    list_free(&l);
}

/* The Nth allocation fails, for every N. */
static rations memory;

static void no_memory_is_told(void **unused)
{
    const allocator a = {ration, &memory};
    int failures = 0, code = -1;
    size_t n;
    list l;

    (void)unused;
    list_make(&l, "u a:x,y u a:x u a:z r:x r:y");
    for (n = 0; code != 0 && n < 100; n++) {
        pairing p;
        pairing_init(&p, &a);
        memory.left = (long)n;
        code = pairing_make(&p, &l.c);
        failures += code != 0;
        memory.left = 100;
        pairing_deinit(&p);
    }
    assert_int_equal(code, 0);
    assert_in_range(failures, 2, 20);
    list_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(results_answer_the_call_before_them),
        cmocka_unit_test(results_may_come_in_any_order),
        cmocka_unit_test(blocks_pair_like_messages),
        cmocka_unit_test(the_newest_call_of_an_id_is_answered),
        cmocka_unit_test(an_answered_call_takes_no_second_result),
        cmocka_unit_test(a_second_result_answers_the_older_call_of_that_id),
        cmocka_unit_test(a_result_before_its_call_is_an_orphan),
        cmocka_unit_test(a_result_of_an_unknown_call_is_an_orphan),
        cmocka_unit_test(calls_at_the_end_are_open),
        cmocka_unit_test(anything_else_behind_makes_them_dead),
        cmocka_unit_test(an_orphan_behind_makes_them_dead_too),
        cmocka_unit_test(a_result_after_something_else_is_late),
        cmocka_unit_test(text_beside_results_ends_the_waiting),
        cmocka_unit_test(a_result_in_a_message_with_calls_answers_in_time),
        cmocka_unit_test(calls_and_results_of_one_message_meet),
        cmocka_unit_test(a_call_with_output_opens_nothing),
        cmocka_unit_test(a_tool_message_with_output_answers_the_call),
        cmocka_unit_test(a_tool_message_with_output_of_no_call_stands_alone),
        cmocka_unit_test(a_call_given_twice_in_a_message_is_one_call),
        cmocka_unit_test(many_calls_pair_as_few_do),
        cmocka_unit_test(the_first_open_item_is_told),
        cmocka_unit_test(groups_hold_calls_and_their_results),
        cmocka_unit_test(groups_reach_to_late_answers),
        cmocka_unit_test(a_result_of_two_messages_joins_them),
        cmocka_unit_test(orphans_and_dead_calls_are_alone),
        cmocka_unit_test(pairing_is_what_the_rules_say),
        cmocka_unit_test(a_copy_is_the_same_and_its_own),
        cmocka_unit_test(only_the_opening_system_messages_are_marked),
        cmocka_unit_test(the_last_user_message_starts_a_turn),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
