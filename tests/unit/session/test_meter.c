/*
 * test_meter.c: tokens of the context: the same figures however a handle came to know the
 * log, and counts that follow what was reported.
 */
#include "guard/enter.h"
#include "support/sessions.h"
#include "session/fold.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

static sessile_tokens tokens_of(sessile_session *s)
{
    sessile_tokens t;
    sessile_error err;

    pthread_mutex_lock(&s->core->mutex);
    if (session_refresh_locked(s->core, &err) || session_tokens_locked(s->core, &t, &err))
        fail_msg("%s", err.message);
    pthread_mutex_unlock(&s->core->mutex);
    assert_true(t.low <= t.tokens && t.tokens <= t.high);
    return t;
}

static void assert_same(sessile_tokens a, sessile_tokens b)
{
    assert_int_equal(a.tokens, b.tokens);
    assert_int_equal(a.low, b.low);
    assert_int_equal(a.high, b.high);
    assert_string_equal(a.source, b.source);
}

/* Words enough that margins of a few tokens do not matter. */
static sessile_id talk(sessile_session *s, const char *role, unsigned n)
{
    static const char *const words[] = {"river", "stone", "window"};
    char text[900];
    size_t at = 0;

    for (unsigned i = 0; i < 60 + n % 40; i++)
        at += (size_t)snprintf(text + at, sizeof text - at, "%s ",
                               words[i * n % 3 ? 0 : 1 + i % 2]);
    return say(s, role, text);
}

/* A turn whose report makes everything since the one before take `percent` of its count.
 * *total is that report's. */
static sessile_id reported_turn(sessile_session *s, unsigned n, int percent,
                                int64_t *total)
{
    char rest[80], question[200], answer[200];
    const char *turn[] = {question, answer};
    sessile_id id;
    int64_t counted;

    snprintf(question, sizeof question,
             "{\"role\":\"user\",\"content\":\"%*s of the question\"}", 40 + (int)n % 50,
             "what becomes of the river when the stone is gone");
    snprintf(answer, sizeof answer,
             "{\"role\":\"assistant\",\"content\":\"it flows on, as %u others did, past "
             "windows and gardens and out to where nobody asks\"}",
             n);
    id = say_turn(s, turn, 2, "");
    counted = s->core->tree.nodes[id - 1].tokens + s->core->tree.nodes[id - 2].tokens;
    move_head(s, s->core->tree.nodes[id - 2].parent);
    *total += counted * percent / 100;
    snprintf(rest, sizeof rest, ",\"usage\":{\"input\":%lld}", (long long)*total);
    return say_turn(s, turn, 2, rest);
}

static void counts_follow_what_was_reported(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "fit");
    char list[80];
    sessile_tokens t;
    sessile_id last = 0;
    int64_t total = 3000, counted = 0;
    const context *c;
    sessile_error err;

    talk(s, "user", 1);
    assert_string_equal(tokens_of(s).source, "estimate");
    for (unsigned i = 0; i < 8; i++) {
        int64_t odd = total + 50000; /* once the provider counts an image, or forgets */
        last = reported_turn(s, i, 150, i == 4 ? &odd : &total);
        if (i == 4)
            total = odd;
    }
    t = tokens_of(s);
    assert_string_equal(t.source, "usage");
    assert_int_equal(t.tokens, total);
    /* what follows is counted in the provider's tokens */
    sessile_id id = talk(s, "user", 3);
    t = tokens_of(s);
    assert_string_equal(t.source, "usage");
    assert_in_range(t.tokens - total, s->core->tree.nodes[id].tokens * 145 / 100,
                    s->core->tree.nodes[id].tokens * 155 / 100);
    /* and so is the context that a compaction left, with what is in no message */
    snprintf(list, sizeof list, "{\"context\":[\"%08x\"],\"upto\":\"%08x\"}",
             (unsigned)id, (unsigned)id);
    int64_t single = s->core->tree.nodes[id].tokens;
    assert_int_equal(session_context_locked(s->core, &c, &err), SESSILE_OK);
    for (size_t i = 0; i < c->count - 1; i++)
        counted += c->items[i].tokens;
    put_entry(s, "compaction", SESSILE_NO_ID, list);
    t = tokens_of(s);
    assert_string_equal(t.source, "fitted");
    assert_in_range(t.tokens, total - counted * 155 / 100 + single * 145 / 100,
                    total - counted * 145 / 100 + single * 155 / 100);
    /* a report is the best again as soon as there is one */
    total = 700;
    last = reported_turn(s, 9, 150, &total);
    assert_int_equal(tokens_of(s).tokens, total);
    assert_string_equal(tokens_of(s).source, "usage");
    move_head(s, 0);
    assert_int_equal(tokens_of(s).tokens, 0);
    move_head(s, last);
    assert_int_equal(tokens_of(s).tokens, total);
    session_closed(s);
}

static void a_model_s_message_reports_as_a_turn_does(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "messages");
    sessile_id id;

    say_json(s, "{\"role\":\"assistant\",\"content\":\"a\",\"usage\":{\"input\":40,"
                "\"output\":2}}");
    assert_int_equal(tokens_of(s).tokens, 42);
    assert_string_equal(tokens_of(s).source, "usage");
    id = say_json(s, "{\"role\":\"user\",\"content\":\"b\",\"usage\":{\"input\":9}}");
    assert_int_equal(tokens_of(s).tokens, 42 + s->core->tree.nodes[id].tokens);
    say_json(s, "{\"role\":\"assistant\",\"content\":\"\",\"usage\":{\"input\":0}}");
    assert_in_range(tokens_of(s).tokens, 42, 80); /* an aborted reply reports nothing */
    session_closed(s);
}

static void few_reports_are_no_fit(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "few");
    int64_t total = 100;
    sessile_id id;

    for (unsigned i = 0; i < METER_LEAST; i++) /* one fewer from report to report */
        reported_turn(s, i, 200, &total);
    id = talk(s, "user", 3);
    assert_int_equal(tokens_of(s).tokens - total, s->core->tree.nodes[id].tokens);
    reported_turn(s, 7, 200, &total);
    total = tokens_of(s).tokens;
    id = talk(s, "user", 3);
    assert_in_range(tokens_of(s).tokens - total, s->core->tree.nodes[id].tokens * 19 / 10,
                    s->core->tree.nodes[id].tokens * 21 / 10);
    session_closed(s);
}

/* One handle that is asked after every step, one that is asked seldom, and one opened
 * again say the same, wherever the head goes. */
static void every_handle_comes_to_the_same_figures(void **state)
{
    place *p = *state;
    sessile_session *asked = session_made(p->store, "same");
    sessile_store *other = place_again(p);
    sessile_session *seldom = session_resumed(other, "same");
    unsigned seed = 77, fitted = 0, reports = 0;
    int64_t total = 900;

    for (unsigned i = 0; i < 900; i++) {
        sessile_tokens t;
        seed = seed * 1103515245 + 12345;
        unsigned what = seed >> 16 & 31;
        if (what < 8) {
            talk(asked, what & 1 ? "user" : "assistant", seed >> 24);
        } else if (what < 24 || i < 20) {
            reported_turn(asked, seed >> 20, 110 + (int)(seed >> 28), &total);
            reports++;
        } else if (what < 27 && asked->core->tree.head) {
            char list[80];
            sessile_id back = asked->core->tree.head;
            while (back && !node_is_message(&asked->core->tree.nodes[back]))
                back = asked->core->tree.nodes[back].parent;
            snprintf(list, sizeof list, "{\"context\":[\"%08x\"],\"upto\":\"%08x\"}",
                     (unsigned)back, (unsigned)asked->core->tree.head);
            if (back)
                put_entry(asked, "compaction", SESSILE_NO_ID, list);
        } else if (what < 29) {
            sessile_id to = asked->core->tree.head;
            for (unsigned k = 0; k < (seed >> 20 & 31) && to; k++)
                to = asked->core->tree.nodes[to].parent;
            move_head(asked, to);
        }
        t = tokens_of(asked);
        fitted += !strcmp(t.source, "fitted");
        if (what < 8 && i % 5 == 0)
            assert_same(tokens_of(seldom), t);
        if (i % 29 == 0) {
            sessile_store *third = place_again(p);
            sessile_session *fresh = session_resumed(third, "same");
            assert_same(tokens_of(fresh), t);
            session_closed(fresh);
            place_again_close(p, third);
        }
    }
    assert_true(fitted > 20 && reports > 200);
    session_closed(seldom);
    place_again_close(p, other);
    session_closed(asked);
}

/* Neither a report nor a ratio from very long ago says anything. */
static void what_was_reported_long_ago_is_forgotten_by_all(void **state)
{
    place *p = *state;
    sessile_session *s = session_made(p->store, "long");
    sessile_store *other;
    sessile_session *fresh;
    int64_t total = 100;

    for (unsigned i = 0; i < 10; i++)
        reported_turn(s, i, 200, &total);
    for (int i = 0; i < METER_MESSAGES; i++)
        say(s, "user", "more");
    assert_string_equal(tokens_of(s).source, "usage");
    say(s, "user", "one too many");
    assert_string_equal(tokens_of(s).source, "estimate");
    other = place_again(p);
    fresh = session_resumed(other, "long");
    assert_same(tokens_of(fresh), tokens_of(s));
    session_closed(fresh);
    place_again_close(p, other);
    session_closed(s);
}

#define IN(kind, test) \
    cmocka_unit_test_setup_teardown(test, place_set_up_##kind, place_tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN(ram, counts_follow_what_was_reported),
        IN(ram, a_model_s_message_reports_as_a_turn_does),
        IN(ram, few_reports_are_no_fit),
        IN(plain, every_handle_comes_to_the_same_figures),
        IN(plain, what_was_reported_long_ago_is_forgotten_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
