/*
 * test_laws_bounds.c: the laws of what must stay and what must fit, the account of what
 * left, and law 1 held against a slow judge.
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

/* ------------------------------------------------------------------ 5: pinned */

static void pinned_messages_stay(void **unused)
{
    (void)unused;
    check_law("u a* u a u a", "1 3 4 5 6", LAW_PINNED,
              "00000002 is pinned and must stay unedited");
    check_law("s u a u a", "2 3 4 5", LAW_PINNED,
              "00000001 is pinned and must stay unedited");
}

static void pinned_messages_stay_unedited(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "s u a u a");
    add_word(&p, "s", "", "1");
    propose(&p, "+1 2 3 4 5");
    expect_law(&p, LAW_PINNED, "00000001 is pinned and must stay unedited");
    proposal_end(&p);
}

static void the_last_user_message_stays(void **unused)
{
    (void)unused;
    check_law("u a u a a a a", "1 6 7", LAW_PINNED,
              "00000003 is the last message of the user and must stay unedited");
    keeps_laws("u a u n a a", "3 5 6");
}

/* ------------------------------------------------------------------ 7: floor */

static void the_newest_messages_stay(void **unused)
{
    (void)unused;
    check_law("u a u a a a", "3 4 6", LAW_FLOOR,
              "00000005 is one of the newest 2 messages, "
              "which stay or are replaced one for one");
    keeps_laws("u a u a a a", "3 5 6");
}

static void the_newest_messages_may_be_replaced_one_for_one(void **unused)
{
    proposal p;
    (void)unused;
    proposal_begin(&p, "u a u a a a");
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
    proposal_end(&p);
}

static void a_floor_that_does_not_fit_is_lower(void **unused)
{
    proposal p;
    uint32_t last;
    (void)unused;
    proposal_begin(&p, "u a u a a a");
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
    proposal_end(&p);
}

/* ------------------------------------------------------------------ 6, 9, 10 */

static void what_takes_out_must_leave_fewer_tokens(void **unused)
{
    proposal p;
    judgement j;
    (void)unused;
    proposal_begin(&p, "u a u a");
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
    proposal_end(&p);
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
    proposal_begin(&p, "u a u a");
    add_inserted(&p, "{\"role\":\"user\",\"content\":\"x\"}", NULL, 0, NULL, 0);
    add_inserted(&p, "{\"role\":\"user\",\"content\":\"y\"}", NULL, 0, NULL, 0);
    p.in.result_limit = p.inserted[0].size + p.inserted[1].size;
    propose(&p, "1 +1 2 +2 3 4");
    expect_law(&p, LAW_NONE, "");
    p.in.result_limit--;
    expect_law(&p, LAW_BOUNDS, "the new messages have 58 bytes of [policy_result] 57");
    propose(&p, "1 +1 2 3 4"); /* what is not in the list does not count */
    expect_law(&p, LAW_NONE, "");
    proposal_end(&p);
}

/* ------------------------------------------------------------------ 8: account */

static void everything_that_left_is_listed(void **unused)
{
    sessile_removal *left = NULL;
    size_t count = 0, capacity = 0;
    proposal p;

    (void)unused;
    proposal_begin(&p, "u a a r:q u a");
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
    proposal_end(&p);
}

static void what_a_dropped_put_stood_for_is_lost(void **unused)
{
    sessile_removal *left = NULL;
    size_t count = 0, capacity = 0;
    proposal p;

    (void)unused;
    proposal_begin(&p, "u a a u a");
    add_word(&p, "n", "2 3", "");
    propose(&p, "1 4 5");
    assert_int_equal(laws_account(&p.in, &left, &count, &capacity, &allocator_default),
                     0);
    assert_int_equal(count, 2);
    assert_int_equal(left[0].disposition, SESSILE_LOST);
    assert_int_equal(left[1].disposition, SESSILE_LOST);
    mem_free(&allocator_default, left, capacity * sizeof *left);
    proposal_end(&p);
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
    assert_int_equal(pairing_make(&now, after), 0);
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
        if (random_below(inserted) == 0 && p->in.inserted_count < PROPOSAL_PUTS - 1)
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
        proposal_begin(&p, line);
        random_proposal(&p);
        kept = pairs_are_kept(&p);
        (void)broken_law(&p, &j);
        if (kept == (j.broken == LAW_PAIRS))
            fail_msg("SEED=%llu, round %d: \"%s\" to \"%s\": %s \"%s\"",
                     (unsigned long long)random_seed(), round, line, list_keys(&p.after),
                     kept ? "lawful, not" : "unlawful, not", j.message);
        lawful += kept;
        proposal_end(&p);
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
    proposal_begin(&p, "s u a:x r:x u a:y");
    propose(&p, "1 2 3 4 5 6");
    assert_int_equal(laws_check(&p.in, &j, &none, &err), SESSILE_OK);
    assert_int_equal(j.broken, LAW_NONE);
    assert_int_equal(j.key.entry, SESSILE_NO_ID);
    proposal_end(&p);
}

static void the_first_broken_law_is_named(void **unused)
{
    (void)unused;
    /* pairs, order, pinned and floor at once */
    check_law("s u a:x r:x u a", "5 3", LAW_PAIRS,
              "the call in 00000003 lost its result 00000004");
}

static void laws_have_names(void **unused)
{
    (void)unused;
    assert_string_equal(law_name(LAW_PAIRS), "pairs");
    assert_string_equal(law_name(LAW_BOUNDS), "bounds");
    assert_string_equal(law_name((law)99), "none");
}

static rations memory;

static void no_memory_is_told(void **unused)
{
    const allocator a = {ration, &memory};
    sessile_status status = SESSILE_NOMEM;
    int failures = 0, account = -1;
    sessile_error err;
    judgement j;
    proposal p;
    size_t n;

    (void)unused;
    proposal_begin(&p, "u a:x r:x a u a");
    add_word(&p, "n", "4", "");
    propose(&p, "+1 1 3 2 5 6"); /* out of order: a table is needed */
    for (n = 0; status && n < 100; n++, failures++) {
        memory.left = (long)n;
        status = laws_check(&p.in, &j, &a, &err);
        assert_true(!status || err.code == SESSILE_NOMEM);
    }
    assert_int_equal(j.broken, LAW_PAIRS);
    assert_in_range(failures, 3, 50);
    for (n = 0; account && n < 100; n++) {
        sessile_removal *left = NULL;
        size_t count = 0, capacity = 0;
        memory.left = (long)n;
        account = laws_account(&p.in, &left, &count, &capacity, &a);
        memory.left = 1;
        mem_free(&a, left, capacity * sizeof *left);
    }
    assert_int_equal(account, 0);
    proposal_end(&p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
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
