/*
 * test_state_lists.c: a proposal built by hand, a policy's notes, keep_last and find_cut,
 * random edits.
 *
 * Lists are written as in support/lists.h; what a hook made of them as keys, inserted
 * messages with a plus.
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

#include "tokens/tokens.h"
#include "support/hooks.h"

/* ------------------------------------------------------------------ rebuild */

static sessile_state_item kept(size_t index)
{
    sessile_state_item out;
    memset(&out, 0, sizeof out);
    out.index = index;
    return out;
}

static sessile_state_item made(const char *text)
{
    sessile_state_item out = kept(SIZE_MAX);
    out.json = sessile_text(text);
    return out;
}

static void a_list_can_be_built_by_hand(void **unused)
{
    const sessile_key covers[] = {{2, 0}, {3, 0}}, replaces[] = {{5, 0}};
    sessile_state_item items[5] = {kept(0), made(SUMMARY), kept(3), made(SUMMARY),
                                   kept(5)};
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u a u");
    items[1].covers = covers;
    items[1].cover_count = 2;
    items[3].replaces = replaces;
    items[3].replace_count = 1;
    OK(sessile_state_rebuild(h.s, items, 5, &hook_err));
    expect_list(&h, "1 +1 4 +2 6");
    expect_stands(&h, 1, "2 3/");
    expect_stands(&h, 2, "/5");
    expect_put(&h, 1,
               "{\"role\":\"user\",\"content\":\"in short\","
               "\"metadata\":{\"kind\":\"summary\"}}");
    /* what replaces one is that one in other words */
    expect_put(&h, 2, "{\"role\":\"assistant\",\"content\":\"in short\"}");
    assert_int_equal(state_after(h.s)->items[1].turn, 1);
    assert_int_equal(state_after(h.s)->items[3].turn, 2);
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void a_hand_built_list_wins_over_edits(void **unused)
{
    sessile_state_item items[4] = {kept(0), kept(1), made(SUMMARY), kept(3)};
    sessile_column c;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u");
    OK(hook_drop(&h, 1, 1));
    OK(hook_insert(&h, 1, SUMMARY));
    OK(hook_insert(&h, 1, SUMMARY));
    OK(sessile_state_rebuild(h.s, items, 4, &hook_err));
    OK(sessile_state_get(h.s, 1, &c, &hook_err));
    assert_false(c.edited);
    OK(sessile_state_get(h.s, 2, &c, &hook_err));
    assert_true(c.edited);
    OK(sessile_state_rebuild(h.s, items, 4,
                             &hook_err)); /* and the last one over others */
    INVALID(hook_drop(&h, 0, 0));
    INVALID(hook_insert(&h, 0, SUMMARY));
    INVALID(hook_replace(&h, 0, "{}"));
    INVALID(sessile_state_keep_last(h.s, 1, SESSILE_MESSAGES, &hook_err));
    expect_list(&h, "1 2 +1 4");
    hook_end(&h);
}

static void the_same_list_built_by_hand_is_no_change(void **unused)
{
    sessile_state_item items[3] = {kept(0), kept(1), kept(2)};
    hook h;
    (void)unused;
    hook_begin(&h, "s u a");
    OK(hook_drop(&h, 1, 1));
    OK(sessile_state_rebuild(h.s, items, 3, &hook_err));
    assert_int_equal(hook_finish(&h), 0);
    assert_int_equal(sessile_state_tokens(h.s), context_tokens(&h.l.c));
    assert_string_equal(list_keys(state_after(h.s)), "1 2 3");
    hook_end(&h);
}

static void an_id_in_a_hand_built_message_is_left_to_law_3(void **unused)
{
    static const char *const texts[3] = {"{\"id\":\"00000002\",\"content\":\"x\"}",
                                         "{\"key\":3,\"content\":\"x\"}",
                                         "{\"content\":\"x\"}"};
    size_t i;
    (void)unused;
    for (i = 0; i < 3; i++) {
        sessile_state_item items[3] = {kept(0), made(texts[i]), kept(2)};
        laws_input in;
        hook h;
        hook_begin(&h, "s u a");
        OK(sessile_state_rebuild(h.s, items, 3, &hook_err));
        assert_int_equal(hook_finish(&h), 1);
        OK(state_laws(h.s, &in, &hook_err));
        assert_int_equal(in.inserted[0].has_name, i < 2);
        assert_int_equal(in.inserted[0].name.entry, i == 0 ? 2 : SESSILE_NO_ID);
        hook_end(&h);
    }
}

static void a_hand_built_list_is_checked(void **unused)
{
    sessile_state_item twice[2] = {kept(1), kept(1)}, far[1] = {kept(3)};
    sessile_state_item edited[1] = {kept(1)};
    hook h;

    (void)unused;
    hook_begin(&h, "s u a");
    INVALID(sessile_state_rebuild(h.s, twice, 2, &hook_err));
    assert_string_equal(hook_err.message,
                        "item 1 of the list: message 1 is in the list twice");
    INVALID(sessile_state_rebuild(h.s, far, 1, &hook_err));
    edited[0].json = sessile_text("{}");
    INVALID(sessile_state_rebuild(h.s, edited, 1, &hook_err));
    OK(hook_drop(&h, 1, 1)); /* nothing was changed by all that */
    expect_list(&h, "1 3");
    hook_end(&h);
}

static void order_is_judged_later(void **unused)
{
    sessile_state_item items[4] = {kept(1), kept(0), kept(2), kept(3)};
    hook h;
    (void)unused;
    hook_begin(&h, "a u a u");
    OK(sessile_state_rebuild(h.s, items, 4, &hook_err));
    expect_list(&h, "2 1 3 4");
    assert_int_equal(hook_judge(&h), LAW_ORDER);
    hook_end(&h);
}

static void strange_keys_are_judged_later(void **unused)
{
    const sessile_key covers[] = {{77, 0}};
    sessile_state_item items[4] = {kept(0), kept(1), kept(2), made(SUMMARY)};
    hook h;
    (void)unused;
    hook_begin(&h, "u a u");
    items[3].covers = covers;
    items[3].cover_count = 1;
    OK(sessile_state_rebuild(h.s, items, 4, &hook_err));
    (void)hook_finish(&h);
    assert_int_equal(hook_judge(&h), LAW_TRUTH);
    hook_end(&h);
}

static void hand_built_messages_may_stand_for_new_ones(void **unused)
{
    const sessile_key own = {SESSILE_NO_ID, 1};
    sessile_state_item items[3] = {kept(0), made(SUMMARY), kept(2)};
    hook h;

    (void)unused;
    hook_begin(&h, "s u a u");
    OK(hook_cover(&h, 1, SUMMARY, 1, 2));
    expect_list(&h, "1 +1 4");
    next_hook(&h);
    items[1].covers = &own;
    items[1].cover_count = 1;
    OK(sessile_state_rebuild(h.s, items, 3, &hook_err));
    expect_list(&h, "1 +2 4");
    expect_stands(&h, 2, "2 3/");
    hook_end(&h);
}

/* ------------------------------------------------------------------ vars */

static void vars_are_kept_and_compared(void **unused)
{
    int changed, vars_changed;
    hook h;

    (void)unused;
    hook_begin(&h, "s u a");
    assert_string_equal(sessile_state_vars(h.s).data, "{}");
    OK(sessile_state_set_vars(h.s, sessile_text("{ \"n\": 1 }"), &hook_err));
    assert_string_equal(sessile_state_vars(h.s).data, "{\"n\":1}");
    OK(state_hook_end(h.s, &changed, &vars_changed, &hook_err));
    assert_true(vars_changed && !changed);
    assert_string_equal(sessile_state_vars(h.s).data, "{\"n\":1}");
    OK(state_hook_begin(h.s, "{\"n\":1}", 7, &hook_err));
    OK(sessile_state_set_vars(h.s, sessile_text("{\"n\":1}"), &hook_err));
    OK(state_hook_end(h.s, &changed, &vars_changed, &hook_err));
    assert_false(vars_changed);
    OK(state_hook_begin(h.s, "{\"other\":2}", 11, &hook_err));
    assert_string_equal(sessile_state_vars(h.s).data, "{\"other\":2}");
    hook_end(&h);
}

static void vars_are_bounded_objects(void **unused)
{
    char text[20000];
    hook h;

    (void)unused;
    hook_begin(&h, "s u a");
    OK(sessile_state_set_vars(h.s, sessile_text("{\"n\":1}"), &hook_err));
    INVALID(sessile_state_set_vars(h.s, sessile_text("[1]"), &hook_err));
    INVALID(sessile_state_set_vars(h.s, sessile_text("{"), &hook_err));
    memset(text, ' ', sizeof text);
    memcpy(text, "{\"a\":\"", 6);
    memset(text + 6, 'x', 16384 - 8);
    memcpy(text + 6 + 16384 - 8, "\"}", 3);
    OK(sessile_state_set_vars(h.s, sessile_text(text), &hook_err));
    memcpy(text + 6 + 16384 - 8, "y\"}", 4);
    assert_int_equal(sessile_state_set_vars(h.s, sessile_text(text), &hook_err),
                     SESSILE_LIMIT);
    assert_int_equal(sessile_state_vars(h.s).size, 16384);
    hook_end(&h);
}

/* ------------------------------------------------------------------ keep_last */

static void keeps(const char *line, int64_t n, sessile_unit unit, const char *left)
{
    hook h;
    hook_begin(&h, line);
    OK(sessile_state_keep_last(h.s, n, unit, &hook_err));
    expect_list(&h, left);
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void keep_last_counts_messages(void **unused)
{
    (void)unused;
    keeps("u a u a u a", 4, SESSILE_MESSAGES, "3 4 5 6");
    keeps("u a u a u a", 9, SESSILE_MESSAGES, "1 2 3 4 5 6");
    keeps("s u a u a u a", 4, SESSILE_MESSAGES, "1 5 6 7");
}

static void keep_last_counts_turns(void **unused)
{
    (void)unused;
    keeps("u a u a a u a", 2, SESSILE_TURNS, "3 4 5 6 7");
    keeps("s a u a u a u a", 1, SESSILE_TURNS, "1 7 8");
    keeps("s a u a", 1, SESSILE_TURNS, "1 2 3 4");
}

static void keep_last_counts_tokens(void **unused)
{
    hook h;
    int64_t last_four;
    (void)unused;
    hook_begin(&h, "u a u a u a");
    last_four = sessile_state_tokens(h.s) - h.l.c.items[0].tokens - h.l.c.items[1].tokens;
    OK(sessile_state_keep_last(h.s, last_four, SESSILE_TOKENS, &hook_err));
    expect_list(&h, "3 4 5 6");
    next_hook(&h);
    OK(sessile_state_keep_last(h.s, last_four - 1, SESSILE_TOKENS, &hook_err));
    expect_list(&h, "4 5 6");
    hook_end(&h);
}

static void keep_last_never_splits_pairs(void **unused)
{
    (void)unused;
    keeps("u a:x,y r:x r:y u a", 4, SESSILE_MESSAGES, "5 6");
    keeps("u b:x m:x a u r:x u a", 5, SESSILE_MESSAGES, "4 5 6 7 8");
    keeps("u a:x a u r:x u a", 5, SESSILE_MESSAGES, "3 4 6 7");
}

static void keep_last_leaves_pinned_messages(void **unused)
{
    (void)unused;
    keeps("s u* a u a u a", 0, SESSILE_MESSAGES, "1 2 6 7");
    keeps("u a:x* r:x u a u a", 0, SESSILE_MESSAGES, "2 3 6 7");
}

static void pinned_messages_are_no_turns(void **unused)
{
    (void)unused;
    keeps("u* a u* a u a u a", 2, SESSILE_TURNS, "1 3 5 6 7 8");
}

static void keep_last_leaves_open_work(void **unused)
{
    (void)unused;
    keeps("u a u a:x,y r:x", 0, SESSILE_MESSAGES, "3 4 5");
}

static void keep_last_leaves_the_last_user_message(void **unused)
{
    (void)unused;
    keeps("u a u a a a a", 0, SESSILE_MESSAGES, "3 6 7");
}

static void keep_last_leaves_a_replaced_floor(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "u a u a a a a");
    OK(hook_replace(&h, 5, "{\"content\":\"\"}"));
    (void)hook_finish(&h);
    next_hook(&h);
    OK(sessile_state_keep_last(h.s, 0, SESSILE_MESSAGES, &hook_err));
    expect_list(&h, "3 +1 7");
    assert_int_equal(hook_judge(&h), LAW_NONE);
    hook_end(&h);
}

static void keep_last_goes_on_from_edits(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "u a u a u a u a");
    OK(hook_drop(&h, 0, 1));
    OK(hook_insert(&h, 0, SUMMARY));
    OK(sessile_state_keep_last(h.s, 5, SESSILE_MESSAGES, &hook_err));
    expect_list(&h, "+1 5 6 7 8");
    hook_end(&h);
}

static void keep_last_twice_is_keep_last_once(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "s u a:x r:x u a u a u a");
    OK(sessile_state_keep_last(h.s, 6, SESSILE_MESSAGES, &hook_err));
    assert_int_equal(hook_finish(&h), 1);
    next_hook(&h);
    OK(sessile_state_keep_last(h.s, 6, SESSILE_MESSAGES, &hook_err));
    assert_int_equal(hook_finish(&h), 0);
    INVALID(sessile_state_keep_last(h.s, -1, SESSILE_MESSAGES, &hook_err));
    INVALID(sessile_state_keep_last(h.s, 1, (sessile_unit)3, &hook_err));
    hook_end(&h);
}

/* ------------------------------------------------------------------ cut and pairs */

static void find_cut_leaves_at_most_that_many_tokens(void **unused)
{
    int64_t t;
    hook h;
    (void)unused;
    hook_begin(&h, "u a u a u a");
    t = h.l.c.items[4].tokens + h.l.c.items[5].tokens + h.l.c.items[3].tokens;
    assert_int_equal(sessile_state_find_cut(h.s, t), 3);
    assert_int_equal(sessile_state_find_cut(h.s, t - 1), 4);
    assert_int_equal(sessile_state_find_cut(h.s, 1 << 20), 0);
    assert_int_equal(sessile_state_find_cut(h.s, 0), 4); /* the floor */
    OK(hook_drop(&h, 3, 3)); /* what was dropped holds nothing */
    assert_int_equal(sessile_state_find_cut(h.s, t - h.l.c.items[3].tokens), 3);
    hook_end(&h);
}

static void find_cut_splits_no_call_from_its_results(void **unused)
{
    int64_t t;
    hook h;
    (void)unused;
    hook_begin(&h, "u a:x,y r:x r:y u a");
    t = h.l.c.items[3].tokens + h.l.c.items[4].tokens + h.l.c.items[5].tokens;
    assert_int_equal(sessile_state_find_cut(h.s, t), 4);
    hook_end(&h);
    hook_begin(&h, "u a:x u r:x u a u a");
    assert_int_equal(sessile_state_find_cut(h.s, 0), 6);
    t = context_tokens(&h.l.c) - h.l.c.items[0].tokens;
    assert_int_equal(sessile_state_find_cut(h.s, t), 1);
    assert_int_equal(sessile_state_find_cut(h.s, t - 1), 4);
    hook_end(&h);
}

static void find_cut_stops_before_open_work(void **unused)
{
    hook h;
    (void)unused;
    hook_begin(&h, "u a a:x,y,z r:x r:y");
    assert_int_equal(sessile_state_find_cut(h.s, 0), 2);
    hook_end(&h);
}

static void pairs_of_an_item_are_its_group(void **unused)
{
    size_t out[8] = {99, 99, 99, 99};
    hook h;
    (void)unused;
    hook_begin(&h, "u a:x,y r:x u r:y");
    assert_int_equal(sessile_state_pairs(h.s, 4, out, 8), 3);
    assert_int_equal(out[0], 1);
    assert_int_equal(out[1], 2);
    assert_int_equal(out[2], 4);
    out[1] = 99;
    assert_int_equal(sessile_state_pairs(h.s, 1, out, 1), 3);
    assert_int_equal(out[1], 99);
    assert_int_equal(sessile_state_pairs(h.s, 0, out, 8), 1);
    assert_int_equal(out[0], 0);
    assert_int_equal(sessile_state_pairs(h.s, 5, NULL, 0), 0);
    hook_end(&h);
}

/* ------------------------------------------------------------------ any list */

/* Whatever was edited in earlier hooks of a pipeline that broke no law. */
static void random_lawful_hook(hook *h)
{
    size_t n = sessile_state_count(h->s), i = random_below((uint32_t)n), out[64], k,
           count;

    switch (random_below(3)) {
    case 0:
        (void)hook_replace(h, i, "{\"content\":\"less\"}");
        break;
    case 1:
        count = sessile_state_pairs(h->s, i, out, 64);
        for (k = 0; k < count; k++)
            OK(hook_drop(h, out[k], out[k]));
        break;
    default:
        (void)hook_insert(h, random_below(2) ? 0 : i, SUMMARY);
        break;
    }
    (void)hook_finish(h);
    next_hook(h);
}

static void say(const char *what, const hook *h, int round, const judgement *j)
{
    fail_msg("SEED=%llu, round %d: %s leaves \"%s\": %s",
             (unsigned long long)random_seed(), round, what, list_keys(state_after(h->s)),
             j->message);
}

static void keep_last_and_find_cut_break_no_law(void **unused)
{
    int round, cuts = 0, hooks = 0;

    (void)unused;
    random_start();
    for (round = 0; round < 10000; round++) {
        char line[2048];
        laws_input in;
        judgement j;
        hook h;
        int by_cut = random_below(2) != 0;
        size_t i, at;

        random_line(line, sizeof line, 1 + random_below(12));
        hook_begin_with(&h, line, random_below(4),
                        random_below(3) ? 0 : random_below(200) + 1);
        if (random_below(2)) {
            random_lawful_hook(&h);
            if (hook_judge(&h) != LAW_NONE) { /* not one to go on from */
                hook_end(&h);
                continue;
            }
            hooks++;
        }
        if (by_cut) {
            at = sessile_state_find_cut(h.s, random_below(200));
            for (i = 0; i < at; i++) {
                size_t out[64], count = sessile_state_pairs(h.s, i, out, 64), k;
                int stays = 0;
                for (k = 0; k < count; k++) {
                    sessile_column c;
                    OK(sessile_state_get(h.s, out[k], &c, &hook_err));
                    assert_true(out[k] < at); /* no pair spans the cut */
                    stays |= c.pinned;
                    stays |=
                        c.key.entry ==
                        h.l.c.items[context_last_user(&h.l.c) % h.l.c.count].key.entry;
                }
                if (!stays)
                    OK(hook_drop(&h, i, i));
            }
        } else {
            OK(sessile_state_keep_last(h.s, random_below(14),
                                       (sessile_unit)random_below(3), &hook_err));
        }
        cuts += hook_finish(&h);
        OK(state_laws(h.s, &in, &hook_err));
        OK(laws_check(&in, &j, &allocator_default, &hook_err));
        if (j.broken)
            say(by_cut ? "find_cut" : "keep_last", &h, round, &j);
        hook_end(&h);
    }
    assert_in_range(cuts, 2000, 10000);
    assert_in_range(hooks, 1000, 10000);
}

/* Edits of every kind, in any order, with the list and tokens kept beside them. */
static void any_edits_come_out_as_told(void **unused)
{
    int round;

    (void)unused;
    random_start();
    for (round = 0; round < 5000; round++) {
        char line[2048];
        int64_t foretold;
        size_t n, k;
        hook h;

        random_line(line, sizeof line, 1 + random_below(10));
        hook_begin(&h, line);
        for (k = random_below(4); k > 0; k--) {
            unsigned edits = random_below(8);
            n = sessile_state_count(h.s);
            while (n && edits-- > 0) {
                size_t i = random_below((uint32_t)n),
                       j = i + random_below((uint32_t)(n - i));
                switch (random_below(4)) {
                case 0:
                    OK(hook_drop(&h, i, j));
                    break;
                case 1:
                    (void)hook_replace(&h, i, "{\"content\":\"other words\"}");
                    break;
                case 2:
                    (void)hook_cover(&h, j, SUMMARY, i, j);
                    break;
                default:
                    OK(hook_insert(&h, i, SUMMARY));
                    break;
                }
            }
            foretold = sessile_state_tokens(h.s);
            (void)hook_finish(&h);
            if (context_tokens(state_after(h.s)) != foretold)
                fail_msg("SEED=%llu, round %d: %lld tokens, not %lld",
                         (unsigned long long)random_seed(), round,
                         (long long)context_tokens(state_after(h.s)),
                         (long long)foretold);
            next_hook(&h);
        }
        assert_true(hook_judge(&h) != LAW_TRUTH || strchr(line, 's'));
        assert_true(hook_judge(&h) != LAW_ORDER);
        hook_end(&h);
    }
}

/* ------------------------------------------------------------------ no memory */

static rations memory;

static sessile_status whole_pipeline(list *l, const allocator *a)
{
    const sessile_key own = {SESSILE_NO_ID, 1};
    sessile_state_item items[3] = {kept(0), made(SUMMARY), kept(4)};
    state_setup setup;
    sessile_status status;
    sessile_slice text;
    sessile_state *s;
    int changed, vars_changed;

    memset(&setup, 0, sizeof setup);
    setup.context = &l->c;
    setup.floor = 1;
    setup.result_limit = setup.vars_limit = 10000;
    setup.depth = 10;
    setup.read = list_read;
    setup.read_arg = l;
    setup.alloc = a;
    items[1].covers = &own;
    items[1].cover_count = 1;
    status = state_new(&s, &setup, &hook_err);
    if (!status)
        status = state_hook_begin(s, "{\"a\":1}", 7, &hook_err);
    if (!status)
        status = sessile_state_set_vars(s, sessile_text("{\"a\":2}"), &hook_err);
    if (!status)
        status = sessile_state_keep_last(s, 6, SESSILE_TURNS, &hook_err);
    if (!status)
        status = sessile_state_insert(s, 3, sessile_text(SUMMARY), 1, 1, 1, &hook_err);
    if (!status)
        status = sessile_state_insert(s, 1, sessile_text(SUMMARY), 0, 0, 0, &hook_err);
    if (!status)
        status =
            sessile_state_replace(s, 3, sessile_text("{\"content\":\"x\"}"), &hook_err);
    if (!status)
        status =
            sessile_state_replace(s, 3, sessile_text("{\"content\":\"y\"}"), &hook_err);
    if (!status)
        status = state_hook_end(s, &changed, &vars_changed, &hook_err);
    if (!status)
        status = state_hook_begin(s, NULL, 0, &hook_err);
    if (!status)
        status = sessile_state_json(s, 2, &text, &hook_err);
    if (!status)
        status = sessile_state_insert(s, 1, sessile_text(SUMMARY), 1, 1, 3, &hook_err);
    if (!status)
        status = sessile_state_rebuild(s, items, 3, &hook_err);
    if (!status)
        status = state_hook_end(s, &changed, &vars_changed, &hook_err);
    if (!status)
        assert_string_equal(list_keys(state_after(s)), "1 +4 +3");
    state_free(s);
    return status;
}

static void no_memory_is_told_and_nothing_leaks(void **unused)
{
    const allocator a = {ration, &memory};
    sessile_status status = SESSILE_NOMEM;
    size_t n;
    list l;

    (void)unused;
    list_make(&l, "s u a b:x m:x u a");
    for (n = 0; status && n < 500; n++) {
        memory.left = (long)n;
        status = whole_pipeline(&l, &a);
        assert_true(status == SESSILE_OK || hook_err.code == SESSILE_NOMEM);
    }
    assert_int_equal(status, SESSILE_OK);
    assert_in_range(n, 30, 400);
    list_free(&l);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_list_can_be_built_by_hand),
        cmocka_unit_test(a_hand_built_list_wins_over_edits),
        cmocka_unit_test(the_same_list_built_by_hand_is_no_change),
        cmocka_unit_test(an_id_in_a_hand_built_message_is_left_to_law_3),
        cmocka_unit_test(a_hand_built_list_is_checked),
        cmocka_unit_test(order_is_judged_later),
        cmocka_unit_test(strange_keys_are_judged_later),
        cmocka_unit_test(hand_built_messages_may_stand_for_new_ones),
        cmocka_unit_test(vars_are_kept_and_compared),
        cmocka_unit_test(vars_are_bounded_objects),
        cmocka_unit_test(keep_last_counts_messages),
        cmocka_unit_test(keep_last_counts_turns),
        cmocka_unit_test(keep_last_counts_tokens),
        cmocka_unit_test(keep_last_never_splits_pairs),
        cmocka_unit_test(keep_last_leaves_pinned_messages),
        cmocka_unit_test(pinned_messages_are_no_turns),
        cmocka_unit_test(keep_last_leaves_open_work),
        cmocka_unit_test(keep_last_leaves_the_last_user_message),
        cmocka_unit_test(keep_last_leaves_a_replaced_floor),
        cmocka_unit_test(keep_last_goes_on_from_edits),
        cmocka_unit_test(keep_last_twice_is_keep_last_once),
        cmocka_unit_test(find_cut_leaves_at_most_that_many_tokens),
        cmocka_unit_test(find_cut_splits_no_call_from_its_results),
        cmocka_unit_test(find_cut_stops_before_open_work),
        cmocka_unit_test(pairs_of_an_item_are_its_group),
        cmocka_unit_test(keep_last_and_find_cut_break_no_law),
        cmocka_unit_test(any_edits_come_out_as_told),
        cmocka_unit_test(no_memory_is_told_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
