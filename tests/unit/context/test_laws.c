/*
 * test_laws.c: the laws of context, each broken by a proposal and named, and kept by
 * others.
 *
 * A proposal is written as the list after it: numbers are kept messages, "+1" is the
 * first of the inserted that were made before.
 */
#include "support/lists.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ proposals */

enum { PUTS = 64 };

typedef struct proposal {
    list before;
    context after;
    pairing pairs;
    inserted_message inserted[PUTS];
    laws_input in;
} proposal;

static void begin(proposal *p, const char *line)
{
    memset(p, 0, sizeof *p);
    list_make(&p->before, line);
    context_init(&p->after, &allocator_default);
    pairing_init(&p->pairs, &allocator_default);
    assert_int_equal(pairing_of(&p->pairs, &p->before.c), 0);
    p->in.before = &p->before.c;
    p->in.after = &p->after;
    p->in.before_pairs = &p->pairs;
    p->in.inserted = p->inserted;
    p->in.floor = 2;
    p->in.result_limit = 1 << 20;
}

static void end(proposal *p)
{
    size_t i;
    for (i = 0; i < p->in.inserted_count; i++)
        put_free(&p->inserted[i]);
    pairing_deinit(&p->pairs);
    context_deinit(&p->after);
    list_free(&p->before);
}

static inserted_message *add_inserted(proposal *p, const char *text,
                                      const uint32_t *covers, size_t cover_count,
                                      const uint32_t *replaces, size_t replace_count)
{
    inserted_message *w = &p->inserted[p->in.inserted_count];
    assert_in_range(p->in.inserted_count, 0, PUTS - 1);
    *w = put_make((uint32_t)++p->in.inserted_count, text, covers, cover_count, replaces,
                  replace_count);
    return w;
}

/* Numbers in a line, up to 32 of them. */
static size_t numbers(const char *line, uint32_t *out)
{
    size_t count = 0;
    char *at;
    for (; line && *line; line = *at ? at + 1 : at) {
        out[count++] = (uint32_t)strtoul(line, &at, 10);
        assert_in_range(count, 1, 32);
    }
    return count;
}

/* A put made of a word, with what it covers and replaces in words. */
static inserted_message *add_word(proposal *p, const char *word, const char *covers,
                                  const char *replaces)
{
    uint32_t c[32], r[32];
    char *text = word_json(word, 900);
    inserted_message *w =
        add_inserted(p, text, c, numbers(covers, c), r, numbers(replaces, r));
    free(text);
    return w;
}

static void add_kept(proposal *p, const context *from, size_t i)
{
    const item *it = &from->items[i];
    assert_int_equal(context_push(&p->after, it, from->links + it->link), 0);
}

static void propose(proposal *p, const char *line)
{
    char *copy = strdup(line), *save = NULL, *word;

    context_clear(&p->after);
    for (word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        size_t n = strtoul(word + (*word == '+'), NULL, 10);
        if (*word == '+') {
            const inserted_message *w = &p->inserted[n - 1];
            assert_int_equal(context_push(&p->after, &w->columns, w->links), 0);
        } else {
            add_kept(p, &p->before.c, n - 1);
        }
    }
    free(copy);
}

static law broken_law(const proposal *p, judgement *j)
{
    sessile_error err;
    assert_int_equal(laws_check(&p->in, j, &allocator_default, &err), SESSILE_OK);
    return j->broken;
}

static void expect_law(const proposal *p, law expected, const char *words)
{
    judgement j;
    law l = broken_law(p, &j);
    if (l != expected)
        fail_msg("law %d (%s) instead of %d: %s", l, law_name(l), expected, j.message);
    assert_string_equal(j.message, words);
}

/* What a proposal that only takes messages out or inserted them in breaks. */
static void check(const char *before, const char *after, law expected, const char *words)
{
    proposal p;
    begin(&p, before);
    propose(&p, after);
    expect_law(&p, expected, words);
    end(&p);
}

static void keeps(const char *before, const char *after)
{
    check(before, after, LAW_NONE, "");
}

/* ------------------------------------------------------------------ 1: pairs */

static void a_pair_goes_together(void **unused)
{
    (void)unused;
    keeps("u a:x r:x u a", "4 5");
    keeps("u a:x,y r:x r:y u a", "5 6");
    keeps("u b:x,y m:y,x u a", "1 4 5");
}

static void a_call_without_its_result_breaks_pairs(void **unused)
{
    (void)unused;
    check("u a:x r:x u a", "1 2 4 5", LAW_PAIRS,
          "the call in 00000002 lost its result 00000003");
    check("u a:x,y r:x r:y u a", "2 3 5 6", LAW_PAIRS,
          "the call in 00000002 lost its result 00000004");
}

static void a_result_without_its_call_breaks_pairs(void **unused)
{
    (void)unused;
    check("u a:x r:x u a", "1 3 4 5", LAW_PAIRS,
          "the result 00000003 lost its call in 00000002");
    check("u b:x m:x u a", "3 4 5", LAW_PAIRS,
          "the result 00000003 lost its call in 00000002");
}

static void a_late_answer_belongs_to_its_call(void **unused)
{
    (void)unused;
    check("u a:x u r:x u a", "1 3 4 5 6", LAW_PAIRS,
          "the result 00000004 lost its call in 00000002");
    keeps("u a:x u r:x u a", "1 3 5 6");
}

static void a_dead_call_goes_like_any_message(void **unused)
{
    (void)unused;
    keeps("u a:x u a u a", "1 3 4 5 6");
    keeps("u a:x u a u a", "2 5 6");
}

static void what_was_broken_may_stay_broken(void **unused)
{
    (void)unused;
    keeps("u r:q a:x a u a", "2 3 5 6");
    keeps("u a:x r:x r:x u a", "4 5 6");
}

static void a_result_that_finds_another_call_breaks_pairs(void **unused)
{
    (void)unused;
    /* 3 answers 2, 5 answers 4; without 3 and 4, 5 would seem to answer 2. */
    check("u a:x r:x a:x r:x u a", "1 2 5 6 7", LAW_PAIRS,
          "the call in 00000002 lost its result 00000003");
    check("u a:x u a:x r:x r:x u a", "1 2 3 5 7 8", LAW_PAIRS,
          "the result 00000005 lost its call in 00000004");
}

static void something_between_call_and_result_breaks_pairs(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a:x r:x u a");
    add_word(&p, "n", "", "");
    propose(&p, "1 2 +1 3 4 5");
    expect_law(&p, LAW_PAIRS,
               "something else stands between the call in 00000002 and its "
               "result 00000003");
    propose(&p, "1 +1 2 3 4 5");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

static void between_what_was_apart_something_may_stand(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a:x a r:x u a");
    add_word(&p, "n", "", "3");
    propose(&p, "1 2 +1 4 5 6");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

static void an_edited_result_keeps_its_pair(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a:x,y r:x r:y u a");
    add_word(&p, "r:x", "", "3");
    propose(&p, "1 2 +1 4 5 6");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

static void an_edited_result_that_lost_its_id_breaks_pairs(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a:x r:x u a");
    add_word(&p, "n", "", "3");
    propose(&p, "1 2 +1 4 5");
    expect_law(&p, LAW_PAIRS, "the call in 00000002 lost its result 00000003");
    end(&p);
}

static void both_told_in_words_go_together(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a:x r:x u a");
    add_word(&p, "n", "2 3", "");
    propose(&p, "1 +1 4 5");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

static void a_new_result_needs_a_call(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "r:x", "", "");
    propose(&p, "1 2 +1 3 4");
    expect_law(&p, LAW_PAIRS, "new message 1 has a result without a call");
    end(&p);
}

static void a_new_call_needs_a_result(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "a:x", "", "2");
    add_word(&p, "r:x", "", "");
    propose(&p, "1 +1 3 4");
    expect_law(&p, LAW_PAIRS, "new message 1 has a call without a result");
    propose(&p, "1 +1 +2 3 4");
    expect_law(&p, LAW_NONE, "");
    propose(&p, "1 +1 3 +2 4");
    expect_law(&p, LAW_PAIRS, "new message 2 has a result that does not follow its call");
    end(&p);
}

static void an_edited_dead_call_stays_dead(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a:x,y r:y u a");
    add_word(&p, "a:x,y", "", "2");
    propose(&p, "1 +1 3 4 5");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

/* ------------------------------------------------------------------ 2: open work */

static void open_work_stays(void **unused)
{
    (void)unused;
    check("u a u a:x", "1 2 3", LAW_OPEN_WORK,
          "a call in 00000004 still waits for its result: it and what follows must stay "
          "last and as they are, and 00000004 did not");
    keeps("u a u a:x", "3 4");
}

static void results_of_open_work_stay_too(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a:x,y r:y");
    p.in.floor = 0;
    add_word(&p, "r:y", "", "5");
    propose(&p, "3 4 +1");
    expect_law(&p, LAW_OPEN_WORK,
               "a call in 00000004 still waits for its result: it and what follows must "
               "stay last and as they are, and 00000005 did not");
    end(&p);
}

static void nothing_comes_behind_open_work(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a:x");
    add_word(&p, "n", "", "");
    propose(&p, "1 2 3 4 +1");
    expect_law(&p, LAW_OPEN_WORK,
               "a call in 00000004 still waits for its result: it and what follows must "
               "stay last and as they are, and 00000004 did not");
    propose(&p, "1 2 3 +1 4");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

/* ------------------------------------------------------------------ 3: truth */

static void an_unknown_message_breaks_truth(void **unused)
{
    proposal p;
    item stranger;
    (void)unused;
    begin(&p, "u a u a");
    propose(&p, "1 2 3 4");
    stranger = p.after.items[0];
    stranger.key.entry = 77;
    assert_int_equal(context_push(&p.after, &stranger, NULL), 0);
    expect_law(&p, LAW_TRUTH, "0000004d is no message of this context");
    end(&p);
}

static void a_put_twice_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "n", "", "");
    propose(&p, "1 +1 2 +1 3 4");
    expect_law(&p, LAW_TRUTH, "new message 1 is no message of this context");
    end(&p);
}

static void standing_for_what_stays_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "n", "2", "");
    propose(&p, "1 +1 2 3 4");
    expect_law(&p, LAW_TRUTH, "a new message stands for 00000002, which stays");
    end(&p);
}

static void standing_for_what_never_was_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "n", "2 9", "");
    propose(&p, "1 +1 3 4");
    expect_law(&p, LAW_TRUTH,
               "a new message stands for 00000009, which is no message of this context");
    end(&p);
}

static void two_that_stand_for_one_break_truth(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "n", "2", "");
    add_word(&p, "n", "", "2");
    propose(&p, "1 +1 +2 3 4");
    expect_law(&p, LAW_TRUTH, "two new messages stand for 00000002");
    propose(&p, "1 +2 3 4");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

static void a_new_message_that_claims_an_id_breaks_truth(void **unused)
{
    proposal p;
    inserted_message *w;
    (void)unused;
    begin(&p, "s u a:x r:x u a");
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
    end(&p);
}

static void a_new_system_message_breaks_truth(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "s", "", "")->invalid_role = 1;
    propose(&p, "1 2 +1 3 4");
    expect_law(&p, LAW_TRUTH,
               "new message 1 has the role system, but replaces no message of that role");
    propose(&p, "1 2 3 4");
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

/* ------------------------------------------------------------------ 4: order */

static void another_order_breaks_order(void **unused)
{
    (void)unused;
    check("u a u a u a", "1 4 3 5 6", LAW_ORDER,
          "00000003 stands behind 00000004, which it came before");
}

static void a_message_twice_breaks_order(void **unused)
{
    (void)unused;
    check("u a u a", "1 2 2 3 4", LAW_ORDER, "00000002 stands there twice");
}

static void kept_puts_of_earlier_compactions_keep_their_place(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "n u a u a");
    p.before.c.items[0].key.entry = 16;
    p.before.c.items[0].key.n = 1;
    propose(&p, "1 2 3 4 5");
    expect_law(&p, LAW_NONE, "");
    propose(&p, "2 1 4 5");
    expect_law(&p, LAW_ORDER, "00000010.1 stands behind 00000002, which it came before");
    end(&p);
}

static void puts_of_one_compaction_are_told_apart(void **unused)
{
    proposal p;
    judgement j;
    (void)unused;
    begin(&p, "n n u a u a");
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
    end(&p);
}

/* ------------------------------------------------------------------ 5: pinned */

static void pinned_messages_stay(void **unused)
{
    (void)unused;
    check("u a* u a u a", "1 3 4 5 6", LAW_PINNED,
          "00000002 is pinned and must stay unedited");
    check("s u a u a", "2 3 4 5", LAW_PINNED,
          "00000001 is pinned and must stay unedited");
}

static void pinned_messages_stay_unedited(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "s u a u a");
    add_word(&p, "s", "", "1");
    propose(&p, "+1 2 3 4 5");
    expect_law(&p, LAW_PINNED, "00000001 is pinned and must stay unedited");
    end(&p);
}

static void the_last_user_message_stays(void **unused)
{
    (void)unused;
    check("u a u a a a a", "1 6 7", LAW_PINNED,
          "00000003 is the last message of the user and must stay unedited");
    keeps("u a u n a a", "3 5 6");
}

/* ------------------------------------------------------------------ 7: floor */

static void the_newest_messages_stay(void **unused)
{
    (void)unused;
    check("u a u a a a", "3 4 6", LAW_FLOOR,
          "00000005 is one of the newest 2 messages, "
          "which stay or are replaced one for one");
    keeps("u a u a a a", "3 5 6");
}

static void the_newest_messages_may_be_replaced_one_for_one(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a a a");
    add_word(&p, "a", "", "6");
    add_word(&p, "a", "5", "");
    add_word(&p, "a", "", "4 5");
    propose(&p, "1 2 3 4 5 +1");
    expect_law(&p, LAW_NONE, "");
    propose(&p, "1 2 3 4 +2 6");
    expect_law(&p, LAW_FLOOR,
               "00000005 is one of the newest 2 messages, which stay or are "
               "replaced one for one");
    propose(&p, "1 2 3 +3 6");
    expect_law(&p, LAW_FLOOR,
               "00000005 is one of the newest 2 messages, which stay or are "
               "replaced one for one");
    end(&p);
}

static void a_floor_that_does_not_fit_is_lower(void **unused)
{
    proposal p;
    uint32_t last;
    (void)unused;
    begin(&p, "u a u a a a");
    propose(&p, "3 4 6");
    last = p.before.c.items[5].tokens;
    p.in.window = 100 + last * 2;
    p.in.reserve = 100;
    expect_law(&p, LAW_FLOOR,
               "00000005 is one of the newest 2 messages, which stay or are "
               "replaced one for one");
    p.in.reserve = 101;
    expect_law(&p, LAW_NONE, "");
    propose(&p, "3 4 5");
    expect_law(&p, LAW_FLOOR,
               "00000006 is one of the newest 1 messages, which stay or are "
               "replaced one for one");
    p.in.reserve = 1000;
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

/* ------------------------------------------------------------------ 6, 9, 10 */

static void what_takes_out_must_leave_fewer_tokens(void **unused)
{
    proposal p;
    judgement j;
    (void)unused;
    begin(&p, "u a u a");
    add_word(&p, "a", "", "2");
    propose(&p, "1 3 4");
    laws_progress(&p.in, &j);
    assert_int_equal(j.broken, LAW_NONE);
    p.inserted[0].columns.tokens = p.before.c.items[1].tokens;
    propose(&p, "1 +1 3 4");
    laws_progress(&p.in, &j);
    assert_int_equal(j.broken, LAW_PROGRESS);
    assert_non_null(strstr(j.message, "1 messages left the context"));
    p.inserted[0].columns.tokens--;
    propose(&p, "1 +1 3 4");
    laws_progress(&p.in, &j);
    assert_int_equal(j.broken, LAW_NONE);
    propose(&p, "1 2 +1 3 4"); /* nothing left: a note may cost something */
    laws_progress(&p.in, &j);
    assert_int_equal(j.broken, LAW_NONE);
    end(&p);
}

static void what_does_not_fit_is_told_in_tokens(void **unused)
{
    list l;
    int64_t tokens;
    (void)unused;
    list_make(&l, "s u a u a");
    tokens = context_tokens(&l.c);
    assert_int_equal(laws_cannot_fit(&l.c, 0, 0), 0);
    assert_int_equal(laws_cannot_fit(&l.c, tokens + 10, 10), 0);
    assert_int_equal(laws_cannot_fit(&l.c, tokens + 10, 13), 3);
    assert_int_equal(laws_cannot_fit(&l.c, 5, 50), tokens);
    list_free(&l);
}

static void too_many_bytes_break_bounds(void **unused)
{
    proposal p;
    (void)unused;
    begin(&p, "u a u a");
    add_inserted(&p, "{\"role\":\"user\",\"content\":\"x\"}", NULL, 0, NULL, 0);
    add_inserted(&p, "{\"role\":\"user\",\"content\":\"y\"}", NULL, 0, NULL, 0);
    p.in.result_limit = p.inserted[0].size + p.inserted[1].size;
    propose(&p, "1 +1 2 +2 3 4");
    expect_law(&p, LAW_NONE, "");
    p.in.result_limit--;
    expect_law(&p, LAW_BOUNDS, "the new messages have 58 bytes of [policy_result] 57");
    propose(&p, "1 +1 2 3 4"); /* what is not in the list does not count */
    expect_law(&p, LAW_NONE, "");
    end(&p);
}

/* ------------------------------------------------------------------ 8: account */

static void everything_that_left_is_listed(void **unused)
{
    sessile_removal *left = NULL;
    size_t count = 0, capacity = 0;
    proposal p;

    (void)unused;
    begin(&p, "u a a r:q u a");
    add_word(&p, "n", "3 4", "");
    add_word(&p, "a", "", "2");
    propose(&p, "+1 +2 5 6");
    assert_int_equal(laws_account(&p.in, &left, &count, &capacity, &allocator_default),
                     0);
    assert_int_equal(count, 4);
    assert_int_equal(left[0].key.entry, 1);
    assert_int_equal(left[0].disposition, SESSILE_LOST);
    assert_int_equal(left[0].role, SESSILE_USER);
    assert_int_equal(left[0].tokens, p.before.c.items[0].tokens);
    assert_int_equal(left[0].by.entry, SESSILE_NO_ID);
    assert_int_equal(left[0].by.n, 0);
    assert_int_equal(left[1].key.entry, 2);
    assert_int_equal(left[1].disposition, SESSILE_REPLACED);
    assert_int_equal(left[1].by.n, 2);
    assert_int_equal(left[2].key.entry, 3);
    assert_int_equal(left[2].disposition, SESSILE_COVERED);
    assert_int_equal(left[2].by.n, 1);
    assert_int_equal(left[3].key.entry, 4);
    assert_int_equal(left[3].disposition, SESSILE_COVERED);
    mem_free(&allocator_default, left, capacity * sizeof *left);
    end(&p);
}

static void what_a_dropped_put_stood_for_is_lost(void **unused)
{
    sessile_removal *left = NULL;
    size_t count = 0, capacity = 0;
    proposal p;

    (void)unused;
    begin(&p, "u a a u a");
    add_word(&p, "n", "2 3", "");
    propose(&p, "1 4 5");
    assert_int_equal(laws_account(&p.in, &left, &count, &capacity, &allocator_default),
                     0);
    assert_int_equal(count, 2);
    assert_int_equal(left[0].disposition, SESSILE_LOST);
    assert_int_equal(left[1].disposition, SESSILE_LOST);
    mem_free(&allocator_default, left, capacity * sizeof *left);
    end(&p);
}

/* ------------------------------------------------------------------ against the words */

/* Law 1, word for word: for each result of before that had a call, look for both in after
 * by comparing everything with everything. */
typedef struct link_at {
    int item, link; /* -1: not there */
} link_at;

static int put_stands_for(const inserted_message *w, sessile_key key, int alone)
{
    size_t k;
    for (k = 0; k < w->replace_count; k++)
        if (w->replaces[k].entry == key.entry && w->replaces[k].n == key.n)
            return !alone || (w->replace_count == 1 && w->cover_count == 0);
    for (k = 0; k < w->cover_count; k++)
        if (w->covers[k].entry == key.entry && w->covers[k].n == key.n)
            return !alone;
    return 0;
}

/* 1 when link j of a context is the same call or result as `like`. */
static int same_link(const context *c, uint32_t j, const message_link *like)
{
    return c->links[j].id == like->id && c->links[j].is_result == like->is_result;
}

static link_at find_link(const proposal *p, uint32_t k)
{
    const context *before = &p->before.c, *after = &p->after;
    uint32_t i = p->pairs.links[k].item, nth = k - before->items[i].link;
    link_at out = {-1, -1};
    size_t a;

    for (a = 0; a < after->count; a++) {
        if (after->items[a].key.entry == before->items[i].key.entry &&
            after->items[a].key.n == before->items[i].key.n) {
            out.item = (int)a;
            out.link = (int)(after->items[a].link + k - before->items[i].link);
        }
    }
    for (a = 0; a < after->count && out.item < 0; a++) {
        const item *it = &after->items[a];
        uint32_t j;
        if (it->key.entry != SESSILE_NO_ID ||
            !put_stands_for(&p->inserted[it->key.n - 1], before->items[i].key, 0))
            continue;
        for (j = it->link; j < it->link + it->link_count; j++) {
            int as_before = j - it->link == nth; /* of two alike: the one at its place */
            if (same_link(after, j, &before->links[k]) && (out.item < 0 || as_before)) {
                out.item = (int)a;
                out.link = (int)j;
            }
        }
        break;
    }
    return out;
}

/* 1 when a new message's faulty link was as faulty in the one that it replaces alone. */
static int had_fault(const proposal *p, const inserted_message *w,
                     const message_link *link, uint32_t nth, int late)
{
    const context *before = &p->before.c;
    int fault = 0, any = 0;
    uint32_t k;
    for (k = 0; k < before->link_count; k++) {
        const struct pair_link *was = &p->pairs.links[k];
        int as_before = k - before->items[was->item].link == nth;
        if (!put_stands_for(w, before->items[was->item].key, 1) ||
            !same_link(before, k, link) || (any && !as_before))
            continue;
        any = 1;
        fault = was->mate == PAIR_NONE || (late && was->late);
    }
    return fault;
}

static int pairs_are_kept(const proposal *p)
{
    const context *before = &p->before.c, *after = &p->after;
    pairing now;
    int kept = 1;
    uint32_t k;
    size_t a;

    pairing_init(&now, &allocator_default);
    assert_int_equal(pairing_of(&now, after), 0);
    for (k = 0; k < before->link_count; k++) {
        const struct pair_link *was = &p->pairs.links[k];
        link_at result, call;
        if (!before->links[k].is_result || was->mate == PAIR_NONE ||
            p->pairs.links[was->mate].item == was->item)
            continue;
        result = find_link(p, k);
        call = find_link(p, was->mate);
        if (result.item < 0 && call.item < 0)
            continue;
        if (result.item < 0 || call.item < 0 ||
            now.links[result.link].mate != (uint32_t)call.link ||
            (now.links[result.link].late && !was->late))
            kept = 0;
    }
    for (a = 0; a < after->count; a++) {
        const item *it = &after->items[a];
        for (k = it->link; k < it->link + it->link_count; k++)
            if (it->key.entry == SESSILE_NO_ID &&
                (now.links[k].mate == PAIR_NONE || now.links[k].late) &&
                !had_fault(p, &p->inserted[it->key.n - 1], &after->links[k], k - it->link,
                           now.links[k].late))
                kept = 0;
    }
    pairing_deinit(&now);
    return kept;
}

/* A put that stands for a few messages from i on, or for none, with or without links. */
static size_t random_put(proposal *p, size_t i, char *line, size_t at)
{
    static const char *const words[] = {"n", "a", "r:x", "a:x", "m:x,y", "b:y", "a:x,y"};
    const context *before = &p->before.c;
    uint32_t keys[8];
    size_t count = random_below(4), k, n = before->count;
    int alone = random_below(2);
    char *text = NULL;

    if (alone)
        count = 1;
    if (count > n - i)
        count = n - i;
    for (k = 0; k < count; k++)
        keys[k] = before->items[i + k].key.entry;
    /* Half of them are an edited copy of what they stand for. */
    if (count && random_below(2))
        text = strdup(p->before.texts[i]);
    else
        text = word_json(words[random_below(7)], 0);
    add_inserted(p, text, keys, alone ? 0 : count, keys, alone ? count : 0);
    free(text);
    sprintf(line + at, " +%zu", p->in.inserted_count);
    return count;
}

/* What belongs together goes together, as a rule; now and then it does not. */
static void random_proposal(proposal *p)
{
    char line[4096] = "", gone[1024];
    unsigned drops = 1 + random_below(12), inserted = 1 + random_below(12);
    size_t i;

    for (i = 0; i < p->before.c.count; i++) {
        uint32_t first = p->pairs.group[i];
        gone[i] = first == i ? random_below(drops) == 0 : gone[first];
    }
    for (i = 0; i < p->before.c.count;)
        if (random_below(inserted) == 0 && p->in.inserted_count < PUTS - 1)
            i += random_put(p, i, line, strlen(line));
        else if (gone[i] != (random_below(20) == 0))
            i++;
        else
            sprintf(line + strlen(line), " %zu", ++i);
    propose(p, line);
}

static void law_1_is_what_the_words_say(void **unused)
{
    int round, lawful = 0;

    (void)unused;
    random_start();
    for (round = 0; round < 20000; round++) {
        char line[2048];
        judgement j;
        proposal p;
        int kept;

        random_line(line, sizeof line, 1 + random_below(10));
        begin(&p, line);
        random_proposal(&p);
        kept = pairs_are_kept(&p);
        (void)broken_law(&p, &j);
        if (kept == (j.broken == LAW_PAIRS))
            fail_msg("SEED=%llu, round %d: \"%s\" to \"%s\": %s \"%s\"",
                     (unsigned long long)random_seed(), round, line, list_keys(&p.after),
                     kept ? "lawful, not" : "unlawful, not", j.message);
        lawful += kept;
        end(&p);
    }
    assert_in_range(lawful, 2000, 18000); /* both sides are tried */
}

/* ------------------------------------------------------------------ the rest */

static void an_unchanged_list_passes(void **unused)
{
    proposal p;
    judgement j;
    const allocator none = {NULL, NULL}; /* judged without any memory */
    sessile_error err;

    (void)unused;
    begin(&p, "s u a:x r:x u a:y");
    propose(&p, "1 2 3 4 5 6");
    assert_int_equal(laws_check(&p.in, &j, &none, &err), SESSILE_OK);
    assert_int_equal(j.broken, LAW_NONE);
    assert_int_equal(j.key.entry, SESSILE_NO_ID);
    end(&p);
}

static void the_first_broken_law_is_named(void **unused)
{
    (void)unused;
    /* pairs, order, pinned and floor at once */
    check("s u a:x r:x u a", "5 3", LAW_PAIRS,
          "the call in 00000003 lost its result 00000004");
}

static void laws_have_names(void **unused)
{
    (void)unused;
    assert_string_equal(law_name(LAW_PAIRS), "pairs");
    assert_string_equal(law_name(LAW_BOUNDS), "bounds");
    assert_string_equal(law_name((law)99), "none");
}

static size_t allocations_left;

static void *failing(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    (void)osize;
    if (nsize == 0) {
        free(ptr);
        return NULL;
    }
    return allocations_left-- > 0 ? realloc(ptr, nsize) : (allocations_left = 0, NULL);
}

static void no_memory_is_told(void **unused)
{
    const allocator a = {failing, NULL};
    sessile_status status = SESSILE_NOMEM;
    int failures = 0, account = -1;
    sessile_error err;
    judgement j;
    proposal p;
    size_t n;

    (void)unused;
    begin(&p, "u a:x r:x a u a");
    add_word(&p, "n", "4", "");
    propose(&p, "+1 1 3 2 5 6"); /* out of order: a table is needed */
    for (n = 0; status && n < 100; n++, failures++) {
        allocations_left = n;
        status = laws_check(&p.in, &j, &a, &err);
        assert_true(!status || err.code == SESSILE_NOMEM);
    }
    assert_int_equal(j.broken, LAW_PAIRS);
    assert_in_range(failures, 3, 50);
    for (n = 0; account && n < 100; n++) {
        sessile_removal *left = NULL;
        size_t count = 0, capacity = 0;
        allocations_left = n;
        account = laws_account(&p.in, &left, &count, &capacity, &a);
        allocations_left = 1;
        mem_free(&a, left, capacity * sizeof *left);
    }
    assert_int_equal(account, 0);
    end(&p);
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
        cmocka_unit_test(pinned_messages_stay),
        cmocka_unit_test(pinned_messages_stay_unedited),
        cmocka_unit_test(the_last_user_message_stays),
        cmocka_unit_test(the_newest_messages_stay),
        cmocka_unit_test(the_newest_messages_may_be_replaced_one_for_one),
        cmocka_unit_test(a_floor_that_does_not_fit_is_lower),
        cmocka_unit_test(what_takes_out_must_leave_fewer_tokens),
        cmocka_unit_test(what_does_not_fit_is_told_in_tokens),
        cmocka_unit_test(too_many_bytes_break_bounds),
        cmocka_unit_test(everything_that_left_is_listed),
        cmocka_unit_test(what_a_dropped_put_stood_for_is_lost),
        cmocka_unit_test(law_1_is_what_the_words_say),
        cmocka_unit_test(an_unchanged_list_passes),
        cmocka_unit_test(the_first_broken_law_is_named),
        cmocka_unit_test(laws_have_names),
        cmocka_unit_test(no_memory_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
