/*
 * test_run_answers.c: plans, models that answer or fail, compactions that save too
 * little or cannot be written, through the public interface.
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

/* A Lua policy written to a file of its own. */
static sessile_policy *lua_policy(sessile_store *store, const char *name,
                                  const char *text)
{
    char path[128];
    snprintf(path, sizeof path, "%s/%s.lua", runs_folder, name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
    sessile_policy_step step = {path, NULL, 0};
    sessile_policy *p;
    sessile_error err;
    sessile_status status = sessile_policy_load(&p, store, &step, 1, &err);
    if (status)
        print_message("%s\n", err.message);
    assert_int_equal(status, SESSILE_OK);
    return p;
}

static void a_plan_writes_nothing_and_shows_what_would_be(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_hook hook = SESSILE_HOOK_COMPACT;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_COMPACT);
    host_script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_run *run;
    sessile_run_options o;
    sessile_message *list;
    size_t count;
    sessile_id before, after;
    sessile_run_free(take_turn(s, NULL, 6, &quiet, &out));
    assert_int_equal(sessile_head(s, &before, NULL), SESSILE_OK);
    sessile_run_options_init(&o);
    o.config.policy = p;
    assert_int_equal(sessile_plan_begin(&run, s, &o, NULL), SESSILE_OK);
    run_finish(run, &sc, &out);
    assert_int_equal(out.removal_count, 1);
    assert_int_equal(sessile_run_context(run, &list, &count, NULL), SESSILE_OK);
    assert_int_equal(count, 5);
    sessile_free(list);
    sessile_run_free(run);
    assert_int_equal(sessile_head(s, &after, NULL), SESSILE_OK);
    assert_int_equal(before, after);
    assert_int_equal(context_size(s), 6);
    sessile_policy_free(p);
}

static void compacting_without_a_policy_is_invalid(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_run *run;
    sessile_error err;
    assert_int_equal(sessile_compact_begin(&run, s, NULL, &err), SESSILE_INVALID);
    assert_null(run);
    assert_non_null(strstr(err.message, "policy"));
}

static void a_turn_on_an_old_base_is_a_conflict_and_writes_nothing(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s, *other = session_at(w->store);
    host_script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run *run;
    sessile_slice m = sessile_text("{\"role\":\"user\",\"content\":\"mine\"}");
    sessile_run_free(take_turn(s, NULL, 2, &sc, &out));
    assert_int_equal(sessile_turn_begin(&run, other, &m, 1, NULL, NULL),
                     SESSILE_CONFLICT);
    assert_null(run);
    assert_int_equal(message_count(s), 2);
    /* Having looked, the other goes on. */
    assert_int_equal(context_size(other), 2);
    sessile_run_free(take_turn(other, NULL, 1, &sc, &out));
    assert_int_equal(message_count(s), 3);
    session_done(other);
}

static const char counting[] = "return { name = 'counting', version = 3,\n"
                               "  truncate = function(state)\n"
                               "    state.vars.turns = (state.vars.turns or 0) + 1\n"
                               "    if state.vars.turns == 3 then state:drop(1) end\n"
                               "  end }\n";

static void vars_are_kept_across_turns_and_reopening(void **state)
{
    (void)state;
    char url[96];
    snprintf(url, sizeof url, "%s/vars", runs_folder);
    host_script sc = {.calls = ""};
    sessile_outcome out;
    for (int i = 1; i <= 3; i++) {
        sessile_store *store = run_store(url);
        sessile_session *s = session_at(store);
        sessile_policy *p = lua_policy(store, "counting", counting);
        sessile_run *run = take_turn(s, p, 2, &sc, &out);
        assert_int_equal(out.verdict, i == 3 ? SESSILE_APPLIED : SESSILE_UNCHANGED);
        sessile_run_free(run);
        sessile_policy_free(p);
        session_done(s);
        sessile_store_close(store);
    }
}

static const char asking[] =
    "return { name = 'asking', version = 1,\n"
    "  should_compact = function(state) return #state.messages >= 4 end,\n"
    "  compact = function(state, ctx)\n"
    "    local text, why = ctx.model{ messages = { state.messages[1] }, max_tokens = 9,\n"
    "                                 purpose = 'summary' }\n"
    "    if not text then ctx.log('no summary: ' .. why) return end\n"
    "    state:insert(1, { role = 'user', content = text }, { covers = { 1, 2 } })\n"
    "  end }\n";

static void a_models_answer_becomes_the_summary_and_is_in_the_entry(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = lua_policy(w->store, "asking", asking);
    host_script sc = {.model_text = "ok"};
    sessile_outcome out;
    sessile_run_free(take_turn(s, p, 2, &sc, &out));
    assert_int_equal(sc.models, 0);
    sessile_run *run = take_turn(s, p, 2, &sc, &out);
    assert_int_equal(sc.models, 1);
    assert_non_null(strstr(sc.request, "\"purpose\":\"summary\""));
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    assert_string_equal(out.summary, "ok");
    assert_int_equal(out.removal_count, 2);
    assert_int_equal(out.removals[0].disposition, SESSILE_COVERED);
    assert_int_equal(out.removals[0].by.entry, out.compaction);
    assert_int_equal(out.removals[0].by.n, 1);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 3);
    assert_int_equal(entries_with(s, "\"summary\":\"ok\""), 1);
    sessile_policy_free(p);
}

static void a_model_that_fails_leaves_the_context_as_it_was(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = lua_policy(w->store, "asking", asking);
    host_script sc = {.model_text = NULL};
    sessile_outcome out;
    sessile_run *run = take_turn(s, p, 4, &sc, &out);
    assert_int_equal(sc.models, 1);
    assert_int_equal(out.verdict, SESSILE_UNCHANGED);
    assert_non_null(strstr(out.log, "no summary: no model today"));
    sessile_run_free(run);
    assert_int_equal(context_size(s), 4);
    sessile_policy_free(p);
}

static void a_turn_is_written_before_its_policy_is_waited_for(void **state)
{
    (void)state;
    char url[96];
    snprintf(url, sizeof url, "%s/before", runs_folder);
    sessile_store *store = run_store(url);
    sessile_session *s = session_at(store);
    sessile_policy *p = host_policy(store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_run *run = turn_waiting(s, p, &need);
    sessile_store *elsewhere = run_store(url);
    sessile_session *reader = session_at(elsewhere);
    assert_int_equal(message_count(reader), 1);
    session_done(reader);
    sessile_store_close(elsewhere);
    sessile_run_free(run);
    sessile_policy_free(p);
    session_done(s);
    sessile_store_close(store);
}

static void drop_a_short_one_of_many(sessile_hook hook, sessile_state *state,
                                     sessile_answer *a, void *arg)
{
    (void)a, (void)arg;
    if (hook == SESSILE_HOOK_COMPACT)
        assert_int_equal(sessile_state_drop(state, 1, 1, NULL), SESSILE_OK);
}

static void a_compact_that_saves_under_5_percent_is_left_out(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p =
        host_policy(w->store, SESSILE_HOOK_SHOULD_COMPACT | SESSILE_HOOK_COMPACT);
    host_script sc = {.on = drop_a_short_one_of_many};
    sessile_outcome out;
    for (int i = 0; i < 40; i++)
        assert_int_equal(
            sessile_append(s,
                           sessile_text("{\"role\":\"user\",\"content\":\"one two three "
                                        "four five six\"}"),
                           NULL, NULL),
            SESSILE_OK);
    sessile_run *run = take_turn(s, p, 2, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_TOO_LITTLE);
    assert_true(out.too_little);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 42);

    /* Asked for by a person, the same is done. */
    sessile_run_options o;
    sessile_run_options_init(&o);
    o.config.policy = p;
    assert_int_equal(sessile_compact_begin(&run, s, &o, NULL), SESSILE_OK);
    run_finish(run, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_APPLIED);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 41);
    sessile_policy_free(p);
}

static void what_cannot_fit_is_said_by_how_much(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    host_script sc = {.calls = ""};
    sessile_outcome out;
    sessile_run *run;
    sessile_run_options o;
    sessile_slice m[2] = {sessile_text("{\"role\":\"user\",\"content\":\"a b c d e f\"}"),
                          sessile_text("{\"role\":\"assistant\",\"content\":\"g h\"}")};
    sessile_run_options_init(&o);
    o.config.policy = p;
    o.config.window = 5;
    o.config.reserve = 2;
    assert_int_equal(sessile_turn_begin(&run, s, m, 2, &o, NULL), SESSILE_OK);
    run_finish(run, &sc, &out);
    assert_int_equal(out.cannot_fit, out.tokens_after - 3);
    sessile_run_free(run);
    sessile_policy_free(p);
}

static void replying_to_nothing_and_stepping_past_a_question_are_invalid(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_answer a = {SESSILE_OK, {NULL, 0}, 0};
    sessile_outcome out;
    sessile_run *run = turn_waiting(s, p, &need);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_INVALID);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_INVALID);
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_INVALID);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_OK);
    sessile_run_free(run);
    sessile_policy_free(p);
}

static void a_bad_message_of_a_turn_is_named_and_nothing_is_written(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_slice m[2] = {sessile_text("{\"role\":\"user\",\"content\":\"good\"}"),
                          sessile_text("{\"role\":\"wizard\",\"content\":\"bad\"}")};
    sessile_run *run;
    sessile_error err;
    assert_int_equal(sessile_turn_begin(&run, s, m, 2, NULL, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "message 2"));
    assert_int_equal(message_count(s), 0);
}

/* A world whose log is almost at its limit. */
static int open_full_world(void **state)
{
    run_world *w = calloc(1, sizeof *w);
    sessile_store_options o;
    sessile_outcome out;
    host_script quiet = {.calls = ""};
    assert_non_null(w);
    sessile_store_options_init(&o);
    o.key_source = SESSILE_KEY_PLAIN;
    o.limits.session = 1900;
    assert_int_equal(sessile_open(&w->store, "ram:", &o, NULL), SESSILE_OK);
    w->s = session_at(w->store);
    sessile_run_free(take_turn(w->s, NULL, 4, &quiet, &out));
    *state = w;
    return 0;
}

#define IN_FULL_WORLD(test) \
    cmocka_unit_test_setup_teardown(test, open_full_world, close_world)

static void a_compaction_that_cannot_be_written_leaves_the_turn_acknowledged(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    host_script sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_run *run = take_turn(s, p, 1, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_non_null(strstr(out.message, "[session]"));
    assert_int_equal(out.removal_count, 0);
    assert_int_equal(out.compaction, SESSILE_NO_ID);
    assert_int_equal(out.tokens_after, out.tokens_before);
    sessile_run_free(run);
    assert_int_equal(message_count(s), 5);
    assert_int_equal(context_size(s), 5);
    sessile_policy_free(p);
}

static void a_refusal_that_cannot_be_recorded_still_names_its_culprit(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    host_script sc = {.on = say_no};
    sessile_outcome out;
    sessile_run *run = take_turn(s, p, 1, &sc, &out);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_int_equal(out.refusal, SESSILE_NO_ID);
    assert_string_equal(out.policy, "host");
    assert_non_null(strstr(out.message, "the disk of the policy is full"));
    sessile_run_free(run);
    assert_int_equal(message_count(s), 5);
    assert_int_equal(entries_with(s, "\"type\":\"refusal\""), 0);
    sessile_policy_free(p);
}

static void a_compact_that_cannot_be_written_fails_and_goes_on_failing(void **state)
{
    run_world *w = *state;
    sessile_session *s = w->s;
    sessile_hook hook = SESSILE_HOOK_TRUNCATE;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    host_script quiet = {.calls = ""}, sc = {.on = drop_first, .arg = &hook};
    sessile_outcome out;
    sessile_need need;
    sessile_run *run;
    sessile_run_options o;
    sessile_run_free(take_turn(s, NULL, 1, &quiet, &out));
    sessile_run_options_init(&o);
    o.config.policy = p;
    assert_int_equal(sessile_compact_begin(&run, s, &o, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_NEEDS);
    run_answer(run, &need, &sc);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_LIMIT);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_LIMIT);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_LIMIT);
    sessile_run_free(run);
    assert_int_equal(context_size(s), 5);
    sessile_policy_free(p);
}

static void a_long_reason_of_a_host_is_cut_not_lost(void **state)
{
    run_world *w = *state;
    sessile_policy *p = host_policy(w->store, SESSILE_HOOK_TRUNCATE);
    sessile_need need;
    sessile_outcome out;
    sessile_run *run = turn_waiting(w->s, p, &need);
    size_t size = 65536 + 5;
    char *reason = malloc(size);
    assert_non_null(reason);
    memset(reason, 'F', size);
    sessile_answer a = {SESSILE_POLICY, {reason, size}, 0};
    assert_int_equal(sessile_run_reply(run, &a, NULL), SESSILE_OK);
    free(reason);
    assert_int_equal(sessile_run_step(run, &need, NULL), SESSILE_OK);
    assert_int_equal(sessile_run_outcome(run, &out, NULL), SESSILE_OK);
    assert_int_equal(out.verdict, SESSILE_REFUSED);
    assert_int_equal(strlen(out.message), 400);
    sessile_run_free(run);
    sessile_policy_free(p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_WORLD(a_plan_writes_nothing_and_shows_what_would_be),
        IN_WORLD(compacting_without_a_policy_is_invalid),
        IN_WORLD(a_turn_on_an_old_base_is_a_conflict_and_writes_nothing),
        cmocka_unit_test(vars_are_kept_across_turns_and_reopening),
        IN_WORLD(a_models_answer_becomes_the_summary_and_is_in_the_entry),
        IN_WORLD(a_model_that_fails_leaves_the_context_as_it_was),
        cmocka_unit_test(a_turn_is_written_before_its_policy_is_waited_for),
        IN_WORLD(a_compact_that_saves_under_5_percent_is_left_out),
        IN_WORLD(what_cannot_fit_is_said_by_how_much),
        IN_WORLD(replying_to_nothing_and_stepping_past_a_question_are_invalid),
        IN_FULL_WORLD(a_compaction_that_cannot_be_written_leaves_the_turn_acknowledged),
        IN_FULL_WORLD(a_refusal_that_cannot_be_recorded_still_names_its_culprit),
        IN_FULL_WORLD(a_compact_that_cannot_be_written_fails_and_goes_on_failing),
        IN_WORLD(a_long_reason_of_a_host_is_cut_not_lost),
        IN_WORLD(a_bad_message_of_a_turn_is_named_and_nothing_is_written),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
