/*
 * test_laws.c: the laws of pairs, open work, truth and order, each broken by a proposal
 * and named, and kept by others. The other laws are in test_laws_bounds.c.
 *
 * A proposal is written as the list after it: numbers are kept messages, "+1" is the
 * first of the inserted messages that were made before.
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
#include "support/proposals.h"

/* ------------------------------------------------------------------ 1: pairs */

static void a_pair_goes_together(void **unused)
{
    (void)unused;
    keeps_laws("u a:x r:x u a", "4 5");
    keeps_laws("u a:x,y r:x r:y u a", "5 6");
    keeps_laws("u b:x,y m:y,x u a", "1 4 5");
}

static void a_call_without_its_result_breaks_pairs(void **unused)
{
    (void)unused;
    check_law("u a:x r:x u a", "1 2 4 5", LAW_PAIRS,
              "the call in 00000002 lost its result 00000003");
    check_law("u a:x,y r:x r:y u a", "2 3 5 6", LAW_PAIRS,
              "the call in 00000002 lost its result 00000004");
}

static void a_result_without_its_call_breaks_pairs(void **unused)
{
    (void)unused;
    check_law("u a:x r:x u a", "1 3 4 5", LAW_PAIRS,
              "the result 00000003 lost its call in 00000002");
    check_law("u b:x m:x u a", "3 4 5", LAW_PAIRS,
              "the result 00000003 lost its call in 00000002");
}

static void a_late_answer_belongs_to_its_call(void **unused)
{
    (void)unused;
    check_law("u a:x u r:x u a", "1 3 4 5 6", LAW_PAIRS,
              "the result 00000004 lost its call in 00000002");
    keeps_laws("u a:x u r:x u a", "1 3 5 6");
}

static void a_dead_call_goes_like_any_message(void **unused)
{
    (void)unused;
    keeps_laws("u a:x u a u a", "1 3 4 5 6");
    keeps_laws("u a:x u a u a", "2 5 6");
}

static void what_was_broken_may_stay_broken(void **unused)
{
    (void)unused;
    keeps_laws("u r:q a:x a u a", "2 3 5 6");
    keeps_laws("u a:x r:x r:x u a", "4 5 6");
}

static void a_result_that_finds_another_call_breaks_pairs(void **unused)
{
    (void)unused;
    /* 3 answers 2, 5 answers 4; without 3 and 4, 5 would seem to answer 2. */
    check_law("u a:x r:x a:x r:x u a", "1 2 5 6 7", LAW_PAIRS,
              "the call in 00000002 lost its result 00000003");
    check_law("u a:x u a:x r:x r:x u a", "1 2 3 5 7 8", LAW_PAIRS,
              "the result 00000005 lost its call in 00000004");
}

static void something_between_call_and_result_breaks_pairs(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a:x r:x u a");
    add_word(&p, "n", "", "");
    propose(&p, "1 2 +1 3 4 5");
    expect_law(&p, LAW_PAIRS,
               "something else stands between the call in 00000002 and its "
               "result 00000003");
    propose(&p, "1 +1 2 3 4 5");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

static void between_what_was_apart_something_may_stand(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a:x a r:x u a");
    add_word(&p, "n", "", "3");
    propose(&p, "1 2 +1 4 5 6");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

static void an_edited_result_keeps_its_pair(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a:x,y r:x r:y u a");
    add_word(&p, "r:x", "", "3");
    propose(&p, "1 2 +1 4 5 6");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

static void an_edited_result_that_lost_its_id_breaks_pairs(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a:x r:x u a");
    add_word(&p, "n", "", "3");
    propose(&p, "1 2 +1 4 5");
    expect_law(&p, LAW_PAIRS, "the call in 00000002 lost its result 00000003");
    proposal_end(&p);
}

static void both_told_in_words_go_together(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a:x r:x u a");
    add_word(&p, "n", "2 3", "");
    propose(&p, "1 +1 4 5");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

static void a_new_result_needs_a_call(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a");
    add_word(&p, "r:x", "", "");
    propose(&p, "1 2 +1 3 4");
    expect_law(&p, LAW_PAIRS, "new message 1 has a result without a call");
    proposal_end(&p);
}

static void a_new_call_needs_a_result(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a");
    add_word(&p, "a:x", "", "2");
    add_word(&p, "r:x", "", "");
    propose(&p, "1 +1 3 4");
    expect_law(&p, LAW_PAIRS, "new message 1 has a call without a result");
    propose(&p, "1 +1 +2 3 4");
    expect_law(&p, LAW_NONE, "");
    propose(&p, "1 +1 3 +2 4");
    expect_law(&p, LAW_PAIRS, "new message 2 has a result that does not follow its call");
    proposal_end(&p);
}

static void an_edited_dead_call_stays_dead(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a:x,y r:y u a");
    add_word(&p, "a:x,y", "", "2");
    propose(&p, "1 +1 3 4 5");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

/* ------------------------------------------------------------------ 2: open work */

static void open_work_stays(void **unused)
{
    (void)unused;
    check_law(
        "u a u a:x", "1 2 3", LAW_OPEN_WORK,
        "a call in 00000004 still waits for its result: it and what follows must stay "
        "last and as they are, and 00000004 did not");
    keeps_laws("u a u a:x", "3 4");
}

static void results_of_open_work_stay_too(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a:x,y r:y");
    p.in.floor = 0;
    add_word(&p, "r:y", "", "5");
    propose(&p, "3 4 +1");
    expect_law(&p, LAW_OPEN_WORK,
               "a call in 00000004 still waits for its result: it and what follows must "
               "stay last and as they are, and 00000005 did not");
    proposal_end(&p);
}

static void nothing_comes_behind_open_work(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a:x");
    add_word(&p, "n", "", "");
    propose(&p, "1 2 3 4 +1");
    expect_law(&p, LAW_OPEN_WORK,
               "a call in 00000004 still waits for its result: it and what follows must "
               "stay last and as they are, and 00000004 did not");
    propose(&p, "1 2 3 +1 4");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

/* ------------------------------------------------------------------ 3: truth */

static void an_unknown_message_breaks_truth(void **unused)
{
    proposal p;
    item stranger;
    (void)unused;
    proposal_begin(&p, "u a u a");
    propose(&p, "1 2 3 4");
    stranger = p.after.items[0];
    stranger.key.entry = 77;
    assert_int_equal(context_push(&p.after, &stranger, NULL), 0);
    expect_law(&p, LAW_TRUTH, "0000004d is no message of this context");
    proposal_end(&p);
}

static void a_put_twice_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a");
    add_word(&p, "n", "", "");
    propose(&p, "1 +1 2 +1 3 4");
    expect_law(&p, LAW_TRUTH, "new message 1 is no message of this context");
    proposal_end(&p);
}

static void standing_for_what_stays_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a");
    add_word(&p, "n", "2", "");
    propose(&p, "1 +1 2 3 4");
    expect_law(&p, LAW_TRUTH, "a new message stands for 00000002, which stays");
    proposal_end(&p);
}

static void standing_for_what_never_was_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a");
    add_word(&p, "n", "2 9", "");
    propose(&p, "1 +1 3 4");
    expect_law(&p, LAW_TRUTH,
               "a new message stands for 00000009, which is no message of this context");
    proposal_end(&p);
}

static void two_that_stand_for_one_break_truth(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a");
    add_word(&p, "n", "2", "");
    add_word(&p, "n", "", "2");
    propose(&p, "1 +1 +2 3 4");
    expect_law(&p, LAW_TRUTH, "two new messages stand for 00000002");
    propose(&p, "1 +2 3 4");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

static void a_new_message_that_claims_an_id_breaks_truth(void **unused)
{
    proposal p;
    inserted_message *w;
    (void)unused;
    proposal_begin(&p, "s u a:x r:x u a");
    w = add_word(&p, "a", "", "");
    w->has_name = 1;
    w->name = (sessile_key){3, 0};
    propose(&p, "1 2 +1 4 5 6"); /* told before law 1: the orphan comes of it */
    expect_law(&p, LAW_TRUTH,
               "new message 1 claims the id 00000003: a message that a policy writes has "
               "none, it names what it stands for in covers or replaces");
    w->name.entry = SESSILE_NO_ID;
    expect_law(&p, LAW_TRUTH,
               "new message 1 claims an id: a message that a policy writes has none, it "
               "names what it stands for in covers or replaces");
    propose(&p, "1 2 3 4 5 6");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

static void a_new_system_message_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a");
    add_word(&p, "s", "", "")->invalid_role = 1;
    propose(&p, "1 2 +1 3 4");
    expect_law(&p, LAW_TRUTH,
               "new message 1 has the role system, but does not replace one message of "
               "that role: write it as user");
    propose(&p, "1 2 3 4");
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

/* ------------------------------------------------------------------ 4: order */

static void another_order_breaks_order(void **unused)
{
    (void)unused;
    check_law("u a u a u a", "1 4 3 5 6", LAW_ORDER,
              "00000003 stands behind 00000004, which it came before");
}

static void a_message_twice_breaks_order(void **unused)
{
    (void)unused;
    check_law("u a u a", "1 2 2 3 4", LAW_ORDER, "00000002 stands there twice");
}

static void kept_puts_of_earlier_compactions_keep_their_place(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "n u a u a");
    p.before.c.items[0].key.entry = 16;
    p.before.c.items[0].key.n = 1;
    propose(&p, "1 2 3 4 5");
    expect_law(&p, LAW_NONE, "");
    propose(&p, "2 1 4 5");
    expect_law(&p, LAW_ORDER, "00000010.1 stands behind 00000002, which it came before");
    proposal_end(&p);
}

static void puts_of_one_compaction_are_told_apart(void **unused)
{
    proposal p;
    judgement j;
    (void)unused;
    proposal_begin(&p, "n n u a u a");
    p.before.c.items[0].key.entry = p.before.c.items[1].key.entry = 16;
    p.before.c.items[0].key.n = 1;
    p.before.c.items[1].key.n = 2;
    propose(&p, "2 1 3 4 5 6");
    assert_int_equal(broken_law(&p, &j), LAW_ORDER);
    assert_string_equal(j.message,
                        "00000010.1 stands behind 00000010.2, which it came before");
    p.before.c.items[0].flags |= ITEM_PINNED;
    propose(&p, "2 3 4 5 6");
    assert_int_equal(broken_law(&p, &j), LAW_PINNED);
    assert_int_equal(j.key.n, 1);
    proposal_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pair_goes_together),
        cmocka_unit_test(a_call_without_its_result_breaks_pairs),
        cmocka_unit_test(a_result_without_its_call_breaks_pairs),
        cmocka_unit_test(a_late_answer_belongs_to_its_call),
        cmocka_unit_test(a_dead_call_goes_like_any_message),
        cmocka_unit_test(what_was_broken_may_stay_broken),
        cmocka_unit_test(a_result_that_finds_another_call_breaks_pairs),
        cmocka_unit_test(something_between_call_and_result_breaks_pairs),
        cmocka_unit_test(between_what_was_apart_something_may_stand),
        cmocka_unit_test(an_edited_result_keeps_its_pair),
        cmocka_unit_test(an_edited_result_that_lost_its_id_breaks_pairs),
        cmocka_unit_test(both_told_in_words_go_together),
        cmocka_unit_test(a_new_result_needs_a_call),
        cmocka_unit_test(a_new_call_needs_a_result),
        cmocka_unit_test(an_edited_dead_call_stays_dead),
        cmocka_unit_test(open_work_stays),
        cmocka_unit_test(results_of_open_work_stay_too),
        cmocka_unit_test(nothing_comes_behind_open_work),
        cmocka_unit_test(an_unknown_message_breaks_truth),
        cmocka_unit_test(a_put_twice_breaks_truth),
        cmocka_unit_test(standing_for_what_stays_breaks_truth),
        cmocka_unit_test(standing_for_what_never_was_breaks_truth),
        cmocka_unit_test(two_that_stand_for_one_break_truth),
        cmocka_unit_test(a_new_message_that_claims_an_id_breaks_truth),
        cmocka_unit_test(a_new_system_message_breaks_truth),
        cmocka_unit_test(another_order_breaks_order),
        cmocka_unit_test(a_message_twice_breaks_order),
        cmocka_unit_test(kept_puts_of_earlier_compactions_keep_their_place),
        cmocka_unit_test(puts_of_one_compaction_are_told_apart),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
