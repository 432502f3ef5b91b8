/*
 * test_states.c: which entries are live, compared with the definition in states.h.
 *
 * The model (support/state_rules.h) keeps what was written and judged, and answers every
 * question from the definition.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "memory/states.h"
#include "support/logs.h"
#include "support/state_rules.h"

#include <cmocka.h>

enum { ENTRIES = RULE_ENTRIES, NAMED = RULE_NAMED, KEYS = 7, OPERATIONS = 320 };

static unsigned seed;

static unsigned below(unsigned n)
{
    return (unsigned)rand_r(&seed) % n;
}

/* ------------------------------------------------------------------ both at once */

typedef struct both {
    rule_memory m;
    states s;
    int told[ENTRIES]; /* what `changed` said, and births */
    size_t live_at[OPERATIONS + 2];
    uint64_t was[OPERATIONS + 2][(ENTRIES + 63) / 64]; /* live before each id */
    sessile_id next;
} both;

static void note_change(void *arg, uint32_t record, int live)
{
    both *b = arg;
    assert_int_equal(b->told[record], !live);
    b->told[record] = live;
}

static sessile_slice key_text(int key, char out[16])
{
    if (key < 0)
        return (sessile_slice){NULL, 0};
    return (sessile_slice){out, (size_t)snprintf(out, 16, "key/%d", key)};
}

static void write_one(both *b)
{
    rule_entry *e = &b->m.entries[b->m.count];
    char text[16];
    states_entry given = {.id = b->next, .importance = below(11) / 10.0};

    *e = (rule_entry){
        .id = b->next, .stamp = rule_stamp(&b->m), .key = (int)below(KEYS) - 2};
    if (e->key < 0)
        e->key = -1;
    e->pending = below(5) == 0;
    e->expires_ms = below(4) ? 0 : 1 + below(100);
    if (b->m.count && below(2))
        for (e->replace_count = below(NAMED); given.replace_count < e->replace_count;
             given.replace_count++)
            /* also of what is no entry, and of the same one twice */
            e->replaces[given.replace_count] = below(b->next + 3);
    given.replaces = e->replaces;
    given.key = key_text(e->key, text);
    given.pending = e->pending;
    given.expires_ms = e->expires_ms;
    given.session = below(3);
    assert_int_equal(states_write(&b->s, &given), 0);
    b->told[b->m.count] = states_is_live(&b->s, (uint32_t)b->m.count);
    b->m.count++;
    /* an id that is not of an earlier entry says nothing */
    for (size_t i = 0; i < e->replace_count; i++)
        if (e->replaces[i] >= e->id)
            e->replaces[i] = SESSILE_NO_ID;
}

static void judge_one(both *b, int64_t now, sessile_memory_verdict_kind to)
{
    uint32_t record = below((unsigned)b->m.count);
    rule_entry before = b->m.entries[record];
    sessile_memory_state was = rule_state(&b->m, &before, now);
    int would = states_would_change(&b->s, now, record, to);

    assert_int_equal(would, rule_would_change(&b->m, &b->m.entries[record], now, to));
    rule_judge(&b->m, &b->m.entries[record], now, to);
    assert_int_equal(states_judge(&b->s, b->next, now, record, to), 0);
    if (!would) {
        assert_int_equal(memcmp(&before, &b->m.entries[record], sizeof before), 0);
        assert_int_equal(rule_state(&b->m, &b->m.entries[record], now), was);
    }
}

/* One verdict, about one entry or several. */
static void judge_some(both *b)
{
    sessile_memory_verdict_kind to = below(7);
    int64_t now = below(100);
    for (unsigned n = 1 + below(3); n > 0; n--)
        judge_one(b, now, to);
}

static void compare(both *b)
{
    char text[16];
    size_t live = 0;

    for (uint32_t i = 0; i < b->m.count; i++) {
        const rule_entry *e = &b->m.entries[i];
        const rule_entry *by = rule_replacer(&b->m, e);
        sessile_memory_state state = rule_state(&b->m, e, 50);
        int is_live = rule_state(&b->m, e, 0) == SESSILE_MEMORY_LIVE;
        assert_int_equal(states_of(&b->s, i, 50), state);
        assert_int_equal(states_is_live(&b->s, i), is_live);
        assert_int_equal(b->told[i], is_live);
        assert_int_equal(states_find(&b->s, e->id), i);
        assert_int_equal(!!(b->s.records[i].flags & RECORD_PINNED), e->pinned);
        assert_int_equal(!!(b->s.records[i].flags & RECORD_APPROVED), e->approved);
        if (state == SESSILE_MEMORY_REPLACED)
            assert_int_equal(states_replaced_by(&b->s, i), by - b->m.entries);
        live += (size_t)is_live;
    }
    assert_int_equal(b->s.live_count, live);
    for (int key = 0; key < KEYS - 2; key++) {
        uint32_t slot = states_slot(&b->s, key_text(key, text));
        uint32_t holder = states_holder(&b->s, slot, 50);
        for (uint32_t i = 0; i < b->m.count; i++)
            if (b->m.entries[i].key == key &&
                states_of(&b->s, i, 50) == SESSILE_MEMORY_LIVE) {
                assert_int_equal(holder, i); /* and there is one only */
                holder = STATE_NONE;
            }
        assert_int_equal(holder, STATE_NONE);
    }
}

static void compare_past(both *b)
{
    uint64_t live[(ENTRIES + 63) / 64];
    for (sessile_id at = 1; at <= b->next; at++) {
        states_live_before(&b->s, at, live);
        assert_memory_equal(live, b->was[at], (b->m.count + 63) / 64 * sizeof *live);
    }
}

static void states_are_those_of_the_definition(void **state)
{
    static both b;
    (void)state;
    for (unsigned run = 1; run <= 40; run++) {
        memset(&b, 0, sizeof b);
        seed = run;
        states_init(&b.s, &allocator_default);
        b.s.changed = note_change;
        b.s.arg = &b;
        b.next = 1; /* 0 is the header */
        while (b.next <= OPERATIONS && b.m.count < ENTRIES) {
            if (b.m.count)
                memcpy(b.was[b.next], b.s.live, (b.m.count + 63) / 64 * sizeof(uint64_t));
            if (!b.m.count || below(5) < 2)
                write_one(&b);
            else
                judge_some(&b);
            b.next++;
            compare(&b);
        }
        memcpy(b.was[b.next], b.s.live, (b.m.count + 63) / 64 * sizeof(uint64_t));
        compare_past(&b);
        states_deinit(&b.s);
    }
}

/* ------------------------------------------------------------------ by name */

static void put(states *s, sessile_id id, const char *key, sessile_id replaces)
{
    states_entry e = {.id = id, .key = {key, key ? strlen(key) : 0}};
    e.replaces = &replaces;
    e.replace_count = replaces > 0;
    assert_int_equal(states_write(s, &e), 0);
}

static void expect(const states *s, const char *letters)
{
    static const char of[] = "lprdje"; /* j: rejected */
    for (uint32_t i = 0; letters[i]; i++)
        if (of[states_of(s, i, 1)] != letters[i])
            fail_msg("entry %u is %c, not %c", i, of[states_of(s, i, 1)], letters[i]);
}

static void a_key_has_one_holder(void **state)
{
    states s;
    (void)state;
    states_init(&s, &allocator_default);
    put(&s, 1, "editor", 0);
    put(&s, 2, "editor", 0);
    put(&s, 3, "shell", 0);
    expect(&s, "rll");
    assert_int_equal(states_judge(&s, 4, 1, 1, SESSILE_MEMORY_DELETE), 0);
    expect(&s, "rdl"); /* the old editor is not wanted back */
    assert_int_equal(states_judge(&s, 5, 1, 1, SESSILE_MEMORY_REJECT), 0);
    expect(&s, "rdl"); /* it is ended already */
    assert_int_equal(states_judge(&s, 6, 1, 0, SESSILE_MEMORY_RESTORE), 0);
    expect(&s, "ldl");
    assert_int_equal(states_judge(&s, 7, 1, 1, SESSILE_MEMORY_RESTORE), 0);
    expect(&s, "rll");
    states_deinit(&s);
}

static void a_bad_merge_is_undone_by_one_verdict(void **state)
{
    const sessile_id both_of_them[] = {1, 2};
    states_entry merge = {.id = 3, .replaces = both_of_them, .replace_count = 2};
    states s;
    (void)state;
    states_init(&s, &allocator_default);
    put(&s, 1, "a", 0);
    put(&s, 2, NULL, 0);
    assert_int_equal(states_write(&s, &merge), 0);
    expect(&s, "rrl");
    assert_int_equal(states_judge(&s, 4, 1, 1, SESSILE_MEMORY_DELETE), 0);
    assert_int_equal(states_judge(&s, 5, 1, 2, SESSILE_MEMORY_REJECT), 0);
    expect(&s, "ldj"); /* what ended otherwise stays ended */
    assert_int_equal(states_judge(&s, 6, 1, 2, SESSILE_MEMORY_RESTORE), 0);
    expect(&s, "rdl");
    states_deinit(&s);
}

static void what_is_pending_replaces_nothing_until_it_is_approved(void **state)
{
    states_entry pending = {.id = 2, .key = {"a", 1}, .pending = 1};
    states s;
    (void)state;
    states_init(&s, &allocator_default);
    put(&s, 1, "a", 0);
    assert_int_equal(states_write(&s, &pending), 0);
    expect(&s, "lp");
    assert_int_equal(states_judge(&s, 3, 1, 1, SESSILE_MEMORY_RESTORE), 0);
    expect(&s, "lp"); /* that needs a person who says so */
    assert_int_equal(states_judge(&s, 4, 1, 1, SESSILE_MEMORY_APPROVE), 0);
    expect(&s, "rl");
    states_deinit(&s);
}

static void a_history_leads_back_over_keys_and_names(void **state)
{
    uint32_t *list;
    size_t count;
    states s;
    (void)state;
    states_init(&s, &allocator_default);
    put(&s, 1, "editor", 0);
    put(&s, 2, NULL, 0);
    put(&s, 3, NULL, 2);
    put(&s, 5, "editor", 3);
    put(&s, 6, "other", 0);
    assert_int_equal(states_history(&s, 3, &list, &count), 0);
    assert_int_equal(count, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(list[i], 3 - i);
    mem_free(&allocator_default, list, count * sizeof *list);
    assert_int_equal(states_history(&s, 4, &list, &count), 0);
    assert_int_equal(count, 1);
    mem_free(&allocator_default, list, count * sizeof *list);
    states_deinit(&s);
}

static void no_memory_leaves_nothing_behind(void **state)
{
    (void)state;
    for (size_t fail = 1; fail < 200; fail++) {
        meter m = {.fail_at = fail};
        allocator a = meter_allocator(&m);
        states_entry e = {.id = 1, .key = {"a", 1}, .session = 9};
        sessile_id first = 1;
        uint32_t *list = NULL;
        size_t count = 0;
        int result = -1;
        states s;
        states_init(&s, &a);
        if (!states_write(&s, &e)) {
            e = (states_entry){.id = 2, .replaces = &first, .replace_count = 1};
            if (!states_write(&s, &e) &&
                !states_judge(&s, 3, 0, 0, SESSILE_MEMORY_RESTORE))
                result = states_history(&s, 1, &list, &count);
        }
        mem_free(&a, list, count * sizeof *list);
        states_deinit(&s);
        assert_int_equal(m.live, 0);
        if (!result)
            return;
    }
    fail_msg("it never succeeded");
}

static void a_record_has_the_size_that_is_promised(void **state)
{
    (void)state;
    assert_int_equal(sizeof(memory_record), 64);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(states_are_those_of_the_definition),
        cmocka_unit_test(a_key_has_one_holder),
        cmocka_unit_test(a_bad_merge_is_undone_by_one_verdict),
        cmocka_unit_test(what_is_pending_replaces_nothing_until_it_is_approved),
        cmocka_unit_test(a_history_leads_back_over_keys_and_names),
        cmocka_unit_test(no_memory_leaves_nothing_behind),
        cmocka_unit_test(a_record_has_the_size_that_is_promised),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
