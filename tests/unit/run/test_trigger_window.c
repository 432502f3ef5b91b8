/*
 * test_trigger_window.c: triggers by tokens, events, which one holds, and what runs
 * instead of a policy that was refused: through the public interface, with a clock of
 * the test's own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/os.h"
#include "sessile.h"
#include "support/triggers.h"

/* ------------------------------------------------------------------ what hooks do */

static const char *world_turn_with(world *w, const char *event)
{
    w->options.event = sessile_text(event);
    world_turn(w);
    w->options.event = sessile_text(NULL);
    return w->calls;
}

static int64_t world_tokens(world *w)
{
    sessile_tokens t;
    assert_int_equal(sessile_count_tokens(w->s, &t, NULL), SESSILE_OK);
    return t.tokens;
}

/* ------------------------------------------------------------------ share, overflow */

/* Fills the context to just under a limit of tokens with turns that fire nothing.
 */
static void fill(world *w, int64_t most)
{
    int64_t before = 0, step = 0;
    while (world_tokens(w) + step < most) {
        before = world_tokens(w);
        IS_QUIET(w);
        step = world_tokens(w) - before;
    }
}

static void a_share_of_the_window_fires_once_it_is_used(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.share = 800});
    IS_QUIET(w); /* without a window there is no share of it */
    w->options.config.window = 500;
    w->options.config.reserve = 100;
    fill(w, 320);
    FIRES(w, "threshold");
    assert_true(w->out.tokens_before >= 320);
    assert_int_equal(world_context_size(w), 2);
    IS_QUIET(w);
}

static void a_share_that_stays_used_waits_for_more(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.share = 500});
    w->options.config.window = 4000;
    w->compact = NOTHING;
    fill(w, 2000);
    FIRES(w, "threshold");
    int64_t tried = world_tokens(w);
    int quiet = 0;
    while (strcmp(world_turn(w), "") == 0)
        quiet++;
    assert_true(quiet > 2);
    assert_true(world_tokens(w) - tried >= 200);

    /* A window that is another one is another question. */
    IS_QUIET(w);
    w->options.config.window = 3900;
    FIRES(w, "threshold");

    /* So is another branch. */
    IS_QUIET(w);
    assert_int_equal(sessile_clear(w->s, NULL), SESSILE_OK);
    w->options.config.window = 40;
    IS_QUIET(w);
    FIRES(w, "threshold");
}

static void what_does_not_fit_is_compacted_for_overflow(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.overflow = 1});
    w->options.config.window = 300;
    fill(w, 301);
    FIRES(w, "overflow");
    assert_int_equal(w->out.reason, SESSILE_REASON_OVERFLOW);
    assert_int_equal(w->out.cannot_fit, 0);
    assert_int_equal(world_entries_with(w, "\"reason\":\"overflow\""), 1);
    IS_QUIET(w);
}

static void an_overflow_that_lasts_asks_again_when_it_has_grown(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.overflow = 1});
    w->options.config.window = 2000;
    w->compact = CROP;
    fill(w, 2001);
    FIRES(w, "overflow");
    assert_int_equal(w->out.verdict, SESSILE_APPLIED); /* saved less than 5 % */
    assert_int_equal(w->out.too_little, 0);
    assert_true(w->out.cannot_fit >= 0);
    w->compact = NOTHING;
    int fired = 0;
    for (int i = 0; i < 20; i++)
        fired += strcmp(world_turn(w), "") != 0;
    assert_in_range(fired, 1, 7);
    world_reopen(w); /* the log does not say that it was in vain: it is tried once more */
    w->compact = CUT;
    FIRES(w, "overflow");
    assert_int_equal(w->out.cannot_fit, 0);
}

static void overflow_comes_after_a_compact_that_did_not_do(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.overflow = 1,
                                    .events = (const char *const[]){"tidy"},
                                    .event_count = 1});
    w->options.config.window = 2000;
    w->compact = CROP;
    fill(w, 2001);
    w->options.config.window = 1500;
    assert_string_equal(world_turn_with(w, "tidy"), "compact:event compact:overflow ");
    assert_int_equal(world_entries_with(w, "\"reason\":\"overflow\""), 1);
    assert_int_equal(world_entries_with(w, "\"type\":\"compaction\""), 1);
}

static void a_policy_that_says_when_is_asked_unless_a_trigger_fires(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 4});
    sessile_policy_free(w->policy);
    w->policy = world_host(w, "host",
                           SESSILE_HOOK_SHOULD_COMPACT | SESSILE_HOOK_FLUSH |
                               SESSILE_HOOK_COMPACT);
    assert_string_equal(world_turn(w), "should_compact:threshold ");
    assert_int_equal(w->out.reason, SESSILE_REASON_TURN);
    assert_string_equal(world_turn(w), "flush:threshold compact:threshold ");
    w->should = 1;
    assert_string_equal(world_turn(w),
                        "should_compact:threshold flush:threshold compact:threshold ");
    assert_int_equal(w->out.reason, SESSILE_REASON_THRESHOLD);
}

static void the_little_that_a_trigger_saves_is_left_out(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 60});
    w->compact = CROP;
    for (int i = 0; i < 29; i++)
        IS_QUIET(w);
    FIRES(w, "threshold");
    assert_int_equal(w->out.verdict, SESSILE_TOO_LITTLE);
    assert_int_equal(w->out.too_little, 1);
    w->options.reason = SESSILE_REASON_TIMER;
    world_compact(w, 0);
    assert_int_equal(w->out.verdict, SESSILE_TOO_LITTLE);
    w->options.reason = SESSILE_REASON_OVERFLOW;
    world_compact(w, 0);
    assert_int_equal(w->out.verdict, SESSILE_APPLIED);
    w->options.reason = SESSILE_REASON_MANUAL;
    world_compact(w, 0);
    assert_int_equal(w->out.verdict, SESSILE_APPLIED);
}

/* ------------------------------------------------------------------ events, order */

static void an_event_fires_when_the_trigger_lists_it(void **state)
{
    world *w = *state;
    const char *const names[] = {"deploy", "done"};
    world_use(w, (sessile_triggers){.events = names, .event_count = 2});
    assert_string_equal(world_turn_with(w, "deploy"), "compact:event ");
    assert_string_equal(world_turn_with(w, "deplo"), "");
    assert_string_equal(world_turn_with(w, "lunch"), "");
    assert_string_equal(world_turn_with(w, "done"), "compact:event ");
    assert_int_equal(world_entries_with(w, "\"reason\":\"event\",\"event\":\"done\""), 1);
    w->options.config.triggers = NULL;
    assert_string_equal(world_turn_with(w, "done"), "");
}

static void of_several_reasons_the_first_in_order_is_told(void **state)
{
    world *w = *state;
    const char *const names[] = {"deploy"};
    world_use(w, (sessile_triggers){.messages = 2,
                                    .interval_ms = 1000,
                                    .overflow = 1,
                                    .share = 1,
                                    .events = names,
                                    .event_count = 1});
    world_now_ms += 5000;
    FIRES(w, "threshold");
    w->t.messages = 0;
    world_now_ms += 5000;
    FIRES(w, "timer");
    w->options.config.window = 5;
    world_now_ms += 5000;
    FIRES(w, "overflow");
    assert_string_equal(world_turn_with(w, "deploy"), "compact:event compact:overflow ");
}

static void a_trigger_takes_the_place_of_the_one_further_out(void **state)
{
    world *w = *state;
    const char *const names[] = {"deploy"};
    sessile_triggers every_turn = {.messages = 2};
    sessile_triggers event = {.events = names, .event_count = 1}, none = {.messages = 0};
    world_close(w);
    world_open_store(w, &every_turn);
    world_open_session(w, NULL);
    w->policy = world_host(w, "host", SESSILE_HOOK_COMPACT);
    FIRES(w, "threshold");
    w->options.config.triggers = &none;
    IS_QUIET(w);
    w->options.config.triggers = NULL;
    assert_int_equal(sessile_session_close(w->s, NULL), SESSILE_OK);
    sessile_run_free(w->run);
    w->run = NULL;
    world_open_session(w, &event);
    IS_QUIET(w);
    assert_string_equal(world_turn_with(w, "deploy"), "compact:event ");
    w->options.config.triggers = &every_turn;
    FIRES(w, "threshold");
}

static void triggers_without_a_condition_run_no_hook_after_a_turn(void **state)
{
    world *w = *state;
    sessile_policy_free(w->policy);
    w->policy = world_host(w, "host",
                           SESSILE_HOOK_MERGE | SESSILE_HOOK_SUMMARIZE |
                               SESSILE_HOOK_TRUNCATE | SESSILE_HOOK_SHOULD_COMPACT |
                               SESSILE_HOOK_FLUSH | SESSILE_HOOK_COMPACT);
    w->should = 1;
    world_use(w, (sessile_triggers){.messages = 0});
    IS_QUIET(w);
    assert_int_equal(w->out.verdict, SESSILE_NO_POLICY);
    assert_string_equal(world_compact(w, 0), "flush:manual compact:manual ");
    w->options.config.triggers = NULL;
    assert_string_equal(world_turn(w), "merge:turn summarize:turn truncate:turn "
                                       "should_compact:threshold flush:threshold "
                                       "compact:threshold ");
}

static void a_trigger_that_makes_no_sense_is_invalid(void **state)
{
    world *w = *state;
    const char *const names[] = {"fine", ""};
    sessile_triggers wrong[] = {
        {.share = 1001}, {.events = names, .event_count = 2}, {.event_count = 1}};
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"x\"}");
    for (int i = 0; i < 3; i++) {
        sessile_run_options o = w->options;
        sessile_session_options so;
        sessile_store_options sto;
        sessile_session *s;
        sessile_store *store;
        sessile_error err;
        o.config.triggers = &wrong[i];
        assert_int_equal(sessile_turn_begin(&w->run, w->s, &m, 1, &o, &err),
                         SESSILE_INVALID);
        assert_non_null(strstr(err.message, "trigger"));
        sessile_session_options_init(&so);
        so.id = sessile_text("other");
        so.config.triggers = &wrong[i];
        assert_int_equal(sessile_create(&s, w->store, &so, &err), SESSILE_INVALID);
        assert_int_equal(sessile_resume(&s, w->store, &so, &err), SESSILE_INVALID);
        sessile_store_options_init(&sto);
        sto.config.triggers = &wrong[i];
        assert_int_equal(sessile_open(&store, "ram:", &sto, &err), SESSILE_INVALID);
    }
    assert_int_equal(world_context_size(w), 0);
}

/* ------------------------------------------------------------------ the fallback */

static void world_use_fallback(world *w)
{
    sessile_policy_free(w->policy);
    w->policy = world_host(w, "host", SESSILE_HOOK_TRUNCATE);
    w->fallback = world_host(w, "spare", SESSILE_HOOK_TRUNCATE);
    w->truncate = BREAK;
    w->instead = CUT;
}

static void a_refused_policy_has_its_fallback_on_the_same_context(void **state)
{
    world *w = *state;
    world_turn(w);
    world_use_fallback(w);
    assert_string_equal(world_turn(w), "truncate:turn fallback/truncate:turn ");
    assert_int_equal(w->out.verdict, SESSILE_REFUSED);
    assert_int_equal(w->out.law, 5);
    assert_string_equal(w->out.policy, "host");
    assert_string_equal(w->out.hook, "truncate");
    assert_int_not_equal(w->out.refusal, SESSILE_NO_ID);
    assert_int_equal(w->out.fallback.verdict, SESSILE_APPLIED);
    assert_string_equal(w->out.fallback.policy, "spare");
    assert_int_equal(w->out.fallback.law, 0);
    assert_int_equal(w->out.fallback.refusal, SESSILE_NO_ID);
    assert_int_not_equal(w->out.compaction, SESSILE_NO_ID);
    assert_int_equal(w->out.head, w->out.compaction);
    assert_int_equal(w->out.removal_count, 2);
    assert_true(w->out.tokens_after < w->out.tokens_before);
    assert_int_equal(world_context_size(w), 2);
    assert_int_equal(world_entries_with(w, "\"type\":\"refusal\""), 1);
    assert_int_equal(world_entries_with(w, "\"policy\":[{\"name\":\"spare\""), 1);
    assert_int_equal(world_entries_with(w, "\"fallback_of\":\"host\""), 1);

    w->truncate = CUT; /* nothing is refused: it does not run */
    assert_string_equal(world_turn(w), "truncate:turn ");
    assert_int_equal(w->out.fallback.verdict, SESSILE_NO_POLICY);
}

/* Only the call can name a fallback for what a person asks for. */
static void a_person_gets_no_fallback_that_is_configured(void **state)
{
    world *w = *state;
    world_turn(w);
    world_turn(w);
    world_use_fallback(w);
    sessile_store_set_fallback(w->store, w->fallback);
    sessile_policy *spare = w->fallback;
    w->fallback = NULL;
    assert_string_equal(world_turn(w), "truncate:turn fallback/truncate:turn ");
    for (int plan = 0; plan < 2; plan++) {
        assert_string_equal(world_compact(w, plan), "truncate:manual ");
        assert_int_equal(w->out.verdict, SESSILE_REFUSED);
        assert_int_equal(w->out.fallback.verdict, SESSILE_NO_POLICY);
    }
    w->fallback = spare;
    assert_string_equal(world_compact(w, 1), "truncate:manual fallback/truncate:manual ");
    assert_string_equal(w->out.fallback.policy, "spare");
}

static void a_fallback_that_fails_too_is_told_and_written_once(void **state)
{
    world *w = *state;
    world_use_fallback(w);
    w->truncate = FAIL;
    w->instead = BREAK;
    for (int i = 0; i < 3; i++) {
        assert_string_equal(world_turn(w), "truncate:turn fallback/truncate:turn ");
        assert_int_equal(w->out.verdict, SESSILE_REFUSED);
        assert_int_equal(w->out.law, 0);
        assert_non_null(strstr(w->out.message, "out of ideas"));
        assert_int_equal(w->out.repeated, i);
        assert_int_equal(w->out.fallback.verdict, SESSILE_REFUSED);
        assert_int_equal(w->out.fallback.law, 5);
        assert_string_equal(w->out.fallback.policy, "spare");
        assert_string_equal(w->out.compaction == SESSILE_NO_ID ? "none" : "one", "none");
    }
    /* The message of law 5 names the entry, which is another each time. */
    assert_int_equal(world_entries_with(w, "\"policy\":\"host\""), 1);
    assert_int_equal(world_context_size(w), 6);
    w->instead = FAIL;
    world_turn(w);
    world_turn(w);
    assert_int_equal(w->out.fallback.repeated, 1);
    assert_int_equal(w->out.fallback.refusal, SESSILE_NO_ID);
    assert_int_equal(world_entries_with(w, "\"policy\":\"spare\""), 4);
}

static void a_trigger_that_fired_fires_for_the_fallback(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 4, .share = 1});
    w->options.config.window = 100000;
    w->fallback = world_host(w, "spare", SESSILE_HOOK_FLUSH | SESSILE_HOOK_COMPACT);
    w->compact = FAIL;
    IS_QUIET(w);
    assert_string_equal(
        world_turn(w),
        "compact:threshold fallback/flush:threshold fallback/compact:threshold ");
    assert_int_equal(w->out.fallback.verdict, SESSILE_UNCHANGED);
    w->t.messages = 2;
    w->instead = CUT;
    assert_string_equal(
        world_turn(w),
        "compact:threshold fallback/flush:threshold fallback/compact:threshold ");
    assert_int_equal(w->out.fallback.verdict, SESSILE_APPLIED);
    assert_int_equal(
        world_entries_with(w, "\"fallback_of\":\"host\",\"reason\":\"threshold\""), 1);
}

static void notes_of_what_was_refused_are_not_kept(void **state)
{
    world *w = *state;
    world_use_fallback(w);
    w->note = "{\"n\":1}";
    world_turn(w);
    assert_int_equal(world_entries_with(w, "\"vars\":{\"spare\":{\"n\":1}}"), 1);
    assert_int_equal(world_entries_with(w, "\"host\":{\"n\":1}"), 0);
}

static void a_persons_compaction_has_its_fallback_too(void **state)
{
    world *w = *state;
    sessile_message *list;
    size_t count;
    world_turn(w);
    world_turn(w);
    w->fallback = world_host(w, "spare", SESSILE_HOOK_COMPACT);
    w->compact = FAIL;
    w->instead = CUT;
    assert_string_equal(world_compact(w, 1), "compact:manual fallback/compact:manual ");
    assert_int_equal(w->out.verdict, SESSILE_REFUSED);
    assert_int_equal(w->out.fallback.verdict, SESSILE_APPLIED);
    assert_int_equal(sessile_run_context(w->run, &list, &count, NULL), SESSILE_OK);
    sessile_free(list);
    assert_int_equal(count, 2);
    assert_int_equal(world_context_size(w), 4);
    assert_int_equal(world_entries_with(w, "refusal"), 0);

    assert_string_equal(world_compact(w, 0), "compact:manual fallback/compact:manual ");
    assert_int_equal(world_context_size(w), 2);
    assert_int_equal(world_entries_with(w, "\"type\":\"refusal\""), 1);
}

static void a_fallback_is_the_calls_the_sessions_or_the_stores(void **state)
{
    world *w = *state;
    world_use_fallback(w);
    world_turn(w);
    sessile_policy *stores = w->fallback;
    w->fallback = NULL;
    assert_string_equal(world_turn(w), "truncate:turn ");
    sessile_store_set_fallback(w->store, stores);
    sessile_policy_free(stores);
    assert_string_equal(world_turn(w), "truncate:turn fallback/truncate:turn ");
    assert_string_equal(w->out.fallback.policy, "spare");
    w->options.no_fallback = 1;
    assert_string_equal(world_turn(w), "truncate:turn ");
    w->options.no_fallback = 0;

    sessile_session_options o;
    assert_int_equal(sessile_session_close(w->s, NULL), SESSILE_OK);
    sessile_run_free(w->run);
    w->run = NULL;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.config.fallback = world_host(w, "closer", SESSILE_HOOK_TRUNCATE);
    assert_int_equal(sessile_resume(&w->s, w->store, &o, NULL), SESSILE_OK);
    sessile_policy_free(o.config.fallback);
    world_turn(w);
    assert_string_equal(w->out.fallback.policy, "closer");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_share_of_the_window_fires_once_it_is_used),
        IN_WORLD(a_share_that_stays_used_waits_for_more),
        IN_WORLD(what_does_not_fit_is_compacted_for_overflow),
        IN_WORLD(an_overflow_that_lasts_asks_again_when_it_has_grown),
        IN_WORLD(overflow_comes_after_a_compact_that_did_not_do),
        IN_WORLD(a_policy_that_says_when_is_asked_unless_a_trigger_fires),
        IN_WORLD(the_little_that_a_trigger_saves_is_left_out),
        IN_WORLD(an_event_fires_when_the_trigger_lists_it),
        IN_WORLD(of_several_reasons_the_first_in_order_is_told),
        IN_WORLD(a_trigger_takes_the_place_of_the_one_further_out),
        IN_WORLD(triggers_without_a_condition_run_no_hook_after_a_turn),
        IN_WORLD(a_trigger_that_makes_no_sense_is_invalid),
        IN_WORLD(a_refused_policy_has_its_fallback_on_the_same_context),
        IN_WORLD(a_person_gets_no_fallback_that_is_configured),
        IN_WORLD(a_fallback_that_fails_too_is_told_and_written_once),
        IN_WORLD(a_trigger_that_fired_fires_for_the_fallback),
        IN_WORLD(notes_of_what_was_refused_are_not_kept),
        IN_WORLD(a_persons_compaction_has_its_fallback_too),
        IN_WORLD(a_fallback_is_the_calls_the_sessions_or_the_stores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
