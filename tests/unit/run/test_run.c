/*
 * test_run.c: turns, compactions and plans through the public interface, with policies
 * that are the host's own functions and with small Lua files.
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

#include "sessile.h"
#include "support/runs.h"

static void a_turn_without_a_policy_is_written_and_done(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    host_script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run *run = take_turn(s, NULL, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_NO_POLICY);
    assert_int_equal(out.first, 1);
    assert_int_equal(out.last, 3);
    assert_int_equal(message_count(s), 2);
    sessile_run_free(run);
}

static void hooks_run_in_the_order_of_the_contract(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, 63);
    host_script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run_free(take_turn(s, p, 2, &sc, &out));
    assert_string_equal(sc.calls,
                        "merge summarize truncate should_compact flush compact ");
    assert_int_equal(out.verdict, SESSILE_UNCHANGED);
    sessile_policy_free(p);
}

static void what_a_hook_drops_leaves_the_context_and_stays_in_the_log(void **state)
{
    (void)state;
    char url[96];
    snprintf(url, sizeof url, "%s/kept", runs_folder);
    sessile_store *store = run_store(url);
    sessile_session *s = session_at(store);
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(store, SESSILE_HOOK_TRUNCATE);
    host_script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_run_free(take_turn(s, NULL, 4, &quiet, &out));
    sessile_run *run = take_turn(s, p, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    assert_int_equal(out.removal_count, 1);
    assert_int_equal(out.removals[0].key.entry, 1);
    assert_int_equal(out.removals[0].disposition, SESSILE_LOST);
    assert_true(out.tokens_after < out.tokens_before);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 5);
    assert_int_equal(message_count(s), 6);
    sessile_policy_free(p);
    session_done(s);
    sessile_store_close(store);

    store = run_store(url);
    s = session_at(store);
    assert_int_equal(context_size(s), 5);
    assert_int_equal(message_count(s), 6);
    session_done(s);
    sessile_store_close(store);
}

static void drop_the_call(sessile_hook hook, sessile_state *state, sessile_answer *a,
                          void *arg)
{
    (void)hook, (void)a, (void)arg;
    assert_int_equal(sessile_state_drop(state, 1, 1, NULL), SESSILE_OK);
}

/* user, call, result, user, assistant: written bare. */
static void with_a_call(sessile_session *s)
{
    static const char *const m[] = {
        "{\"role\":\"user\",\"content\":\"read it\"}",
        "{\"role\":\"assistant\",\"content\":\"\",\"tool_calls\":[{\"id\":\"c1\","
        "\"name\":"
        "\"read\",\"arguments\":\"{}\"}]}",
        "{\"role\":\"tool\",\"tool_call_id\":\"c1\",\"content\":\"the file\"}",
        "{\"role\":\"user\",\"content\":\"and now?\"}",
        "{\"role\":\"assistant\",\"content\":\"done\"}"};
    for (int i = 0; i < 5; i++)
        assert_int_equal(sessile_append(s, sessile_text(m[i]), NULL, NULL), SESSILE_OK);
}

static void a_result_without_its_call_is_refused_by_law_1(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    host_script sc = {.on = drop_the_call};
    sessile_outcome out;
    with_a_call(s);
    sessile_run *run = take_turn(s, p, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_int_equal(out.law, 1);
    assert_string_equal(out.policy, "host");
    assert_string_equal(out.hook, "truncate");
    assert_int_equal(context_size(s), 7);
    assert_int_equal(entries_with(s, "\"type\":\"refusal\""), 1);
    sessile_run_free(run);

    /* The turn stands, and the log says who was refused. */
    assert_int_equal(message_count(s), 7);
    sessile_policy_free(p);
}

static void a_failing_hook_refuses_all_and_the_same_refusal_is_written_once(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    host_script sc = {.on = say_no};
    sessile_outcome out;
    for (int i = 0; i < 3; i++) {
        sessile_run *run = take_turn(s, p, 2, &sc, &out);
        assert_int_equal(out.verdict, SESSILE_REFUSED);
        assert_int_equal(out.law, 0);
        assert_non_null(strstr(out.message, "the disk of the policy is full"));
        assert_int_equal(out.repeated, i);
        sessile_run_free(run);
    }
    assert_int_equal(context_size(s), 6);
    assert_int_equal(entries_with(s, "\"type\":\"refusal\""), 1);
    sessile_policy_free(p);
}

/* A turn whose policy is about to drop the first of 4 messages, while another handle of
 * the session writes. */
typedef struct race {
    sessile_session *other;
    sessile_policy *policy;
    sessile_hook hook;
    host_script drops;
    sessile_run *run;
    sessile_need need;
    sessile_outcome out;
} race;

static void race_begin(race *r, run_world *w)
{
    host_script quiet = {.calls = ""};
    r->other = session_at(w->store);
    r->hook = SESSILE_HOOK_TRUNCATE;
    r->policy = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    r->drops = (host_script){.on = drop_first, .arg = &r->hook};
    sessile_run_free(take_turn(w->s, NULL, 4, &quiet, &r->out));
    r->run = turn_waiting(w->s, r->policy, &r->need);
}

/* The policy answers, and the run ends. */
static void race_finish(race *r)
{
    run_answer(r->run, &r->need, &r->drops);
    run_finish(r->run, &r->drops, &r->out);
    sessile_run_free(r->run);
}

static void race_end(race *r)
{
    sessile_policy_free(r->policy);
    session_done(r->other);
}

static void what_is_said_meanwhile_follows_the_proposal(void **state)
{
    run_world *w = *state;
    race r;
    sessile_message *list;
    size_t count;
    race_begin(&r, w);
    assert_int_equal(context_size(r.other), 5);
    assert_int_equal(
        sessile_append(r.other,
                       sessile_text("{\"role\":\"assistant\",\"content\":\"me first\"}"),
                       NULL, NULL),
        SESSILE_OK);
    race_finish(&r);
    assert_int_equal(r.out.verdict, SESSILE_APPLIED);
    assert_int_equal(context_size(w->s), 5);
    assert_int_equal(sessile_context(r.other, SESSILE_NO_ID, &list, &count, NULL, NULL),
                     SESSILE_OK);
    assert_int_equal(count, 5);
    assert_non_null(strstr(list[4].json.data, "me first"));
    sessile_free(list);
    race_end(&r);
}

static void a_proposal_is_stale_once_the_head_has_moved_away(void **state)
{
    run_world *w = *state;
    race r;
    race_begin(&r, w);
    assert_int_equal(sessile_clear(r.other, NULL), SESSILE_OK);
    race_finish(&r);
    assert_int_equal(r.out.verdict, SESSILE_STALE);
    assert_int_equal(r.out.compaction, SESSILE_NO_ID);
    assert_int_equal(entries_with(w->s, "\"type\":\"compaction\""), 0);
    race_end(&r);
}

static void of_two_compactions_the_second_is_stale(void **state)
{
    run_world *w = *state;
    race r;
    sessile_run *quick;
    sessile_run_options o;
    sessile_outcome first;
    race_begin(&r, w);
    sessile_run_options_init(&o);
    o.config.policy = r.policy;
    assert_int_equal(sessile_compact_begin(&quick, r.other, &o, NULL), SESSILE_OK);
    run_finish(quick, &r.drops, &first);
    assert_int_equal(first.verdict, SESSILE_APPLIED);
    sessile_run_free(quick);
    race_finish(&r);
    assert_int_equal(r.out.verdict, SESSILE_STALE);
    assert_int_equal(context_size(w->s), 4);
    race_end(&r);
}

static void a_run_freed_early_leaves_the_turn(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_run_free(turn_waiting(s, p, &need));
    assert_int_equal(message_count(s), 1);
    sessile_policy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_turn_without_a_policy_is_written_and_done),
        IN_WORLD(hooks_run_in_the_order_of_the_contract),
        cmocka_unit_test(what_a_hook_drops_leaves_the_context_and_stays_in_the_log),
        IN_WORLD(a_result_without_its_call_is_refused_by_law_1),
        IN_WORLD(a_failing_hook_refuses_all_and_the_same_refusal_is_written_once),
        IN_WORLD(what_is_said_meanwhile_follows_the_proposal),
        IN_WORLD(a_proposal_is_stale_once_the_head_has_moved_away),
        IN_WORLD(of_two_compactions_the_second_is_stale),
        IN_WORLD(a_run_freed_early_leaves_the_turn),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
