/*
 * test_trigger.c: when policies compact without being asked whether, and what runs
 * instead of one that was refused: through the public interface, with a clock of the
 * test's own.
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

/* ------------------------------------------------------------------ messages, interval
 */

static void messages_are_counted_from_the_last_compaction(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 6});
    for (int round = 0; round < 2; round++) {
        IS_QUIET(w);
        IS_QUIET(w);
        FIRES(w, "threshold");
        assert_int_equal(w->out.verdict, SESSILE_APPLIED);
        assert_int_equal(w->out.reason, SESSILE_REASON_THRESHOLD);
        assert_int_equal(world_context_size(w), 2);
    }
    assert_int_equal(world_entries_with(w, "\"reason\":\"threshold\""), 2);
}

static void the_count_goes_on_in_another_handle(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 6});
    for (int round = 0; round < 2; round++) {
        IS_QUIET(w);
        world_reopen(w);
        IS_QUIET(w);
        FIRES(w, "threshold");
    }
}

static void what_comes_to_nothing_is_tried_again_as_many_messages_later(void **state)
{
    static const act failures[] = {NOTHING, FAIL, BREAK};
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 4});
    for (int i = 0; i < 3; i++) {
        w->compact = failures[i];
        IS_QUIET(w);
        FIRES(w, "threshold");
        if (i == 1)
            world_reopen(w);
    }
    w->compact = CUT;
    IS_QUIET(w);
    FIRES(w, "threshold");
    assert_int_equal(world_context_size(w), 2);
}

static void a_truncate_that_cuts_each_turn_puts_nothing_off(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 8});
    sessile_policy_free(w->policy);
    w->policy = world_host(w, "host", SESSILE_HOOK_TRUNCATE | SESSILE_HOOK_COMPACT);
    w->truncate = CROP;
    for (int round = 0; round < 3; round++) {
        /* What is counted from lies at no multiple itself. */
        world_turn(w);
        world_turn(w);
        world_compact(w, 0);
        assert_int_equal(w->out.verdict, SESSILE_APPLIED);
        for (int i = 0; i < 3; i++)
            assert_string_equal(world_turn(w), "truncate:turn ");
        assert_string_equal(world_turn(w), "truncate:turn compact:threshold ");
        if (round == 1) {
            world_reopen(w);
            sessile_policy_free(w->policy);
            w->policy =
                world_host(w, "host", SESSILE_HOOK_TRUNCATE | SESSILE_HOOK_COMPACT);
        }
    }
    assert_true(world_entries_with(w, "\"reason\":\"turn\"") > 3);
}

static void appended_messages_count_and_run_nothing(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 5});
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"aside\"}");
    for (int i = 0; i < 7; i++)
        assert_int_equal(sessile_append(w->s, m, NULL, NULL), SESSILE_OK);
    assert_int_equal(world_entries_with(w, "\"type\":\"compaction\""), 0);
    FIRES(w, "threshold");
    assert_int_equal(sessile_append(w->s, m, NULL, NULL), SESSILE_OK);
    IS_QUIET(w);
    FIRES(w, "threshold");
}

static void a_turn_without_a_policy_leaves_it_to_the_next(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.messages = 4, .interval_ms = 60000});
    IS_QUIET(w);
    w->options.no_policy = 1;
    world_now_ms += 61000;
    for (int i = 0; i < 2; i++)
        IS_QUIET(w);
    w->options.no_policy = 0;
    FIRES(w, "threshold");
    w->t.messages = 0;
    w->options.no_policy = 1;
    world_now_ms += 61000;
    IS_QUIET(w);
    world_reopen(w);
    w->options.no_policy = 0;
    FIRES(w, "timer");
}

static void an_interval_is_judged_by_the_turns_time(void **state)
{
    world *w = *state;
    world_use(w, (sessile_triggers){.interval_ms = 60000});
    IS_QUIET(w);
    world_now_ms += 59999;
    IS_QUIET(w);
    world_now_ms += 1;
    FIRES(w, "timer");
    assert_int_equal(w->out.reason, SESSILE_REASON_TIMER);
    assert_int_equal(world_entries_with(w, "\"reason\":\"timer\""), 1);
    world_now_ms += 59000; /* from the compaction on */
    IS_QUIET(w);
    w->compact = NOTHING;
    world_now_ms += 1000;
    FIRES(w, "timer");
    IS_QUIET(w);
    world_now_ms += 59000;
    IS_QUIET(w);
    world_now_ms += 1000;
    FIRES(w, "timer");
    world_now_ms -= 1000000; /* a clock that was set back fires nothing */
    IS_QUIET(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(messages_are_counted_from_the_last_compaction),
        IN_WORLD(the_count_goes_on_in_another_handle),
        IN_WORLD(what_comes_to_nothing_is_tried_again_as_many_messages_later),
        IN_WORLD(a_truncate_that_cuts_each_turn_puts_nothing_off),
        IN_WORLD(appended_messages_count_and_run_nothing),
        IN_WORLD(a_turn_without_a_policy_leaves_it_to_the_next),
        IN_WORLD(an_interval_is_judged_by_the_turns_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
