/*
 * test_policy.c: policies run on real states: hooks, edits, the turn's facts, the model.
 * Files and options are in test_policy_files.c.
 */
#include "support/policies.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "support/policy_bodies.h"

/* ------------------------------------------------------------------ hooks and edits */

static const char every_hook[] =
    "local function say(name) return function(state, ctx)\n"
    "  ctx.log(name, #state.messages, state.tokens > 0, ctx.reason) end end\n"
    "return { name = 'all', version = 3, summarize = say 'summarize',\n"
    "  truncate = say 'truncate', flush = say 'flush', compact = say 'compact',\n"
    "  should_compact = function(state, ctx) say 'ask' (state, ctx) return true end,\n"
    "  merge = function(previous, next, ctx)\n"
    "    ctx.log('merge', previous and #previous, #next.messages) end }";

static void test_each_hook_gets_its_arguments(void **state)
{
    ran r;
    (void)state;
    policies_write("all", every_hook);
    r = policies_run("all", NULL, SESSILE_HOOK_SUMMARIZE, "s u a");
    must_have_run(&r);
    assert_string_equal(r.log, "summarize 3 true turn\n");
    r = policies_run("all", NULL, SESSILE_HOOK_TRUNCATE, "s u a");
    assert_string_equal(r.log, "truncate 3 true turn\n");
    r = policies_run("all", NULL, SESSILE_HOOK_FLUSH, "s u a");
    assert_string_equal(r.log, "flush 3 true turn\n");
    r = policies_run("all", NULL, SESSILE_HOOK_COMPACT, "s u a");
    assert_string_equal(r.log, "compact 3 true turn\n");
    r = policies_run("all", NULL, SESSILE_HOOK_SHOULD_COMPACT, "s u a");
    assert_string_equal(r.log, "ask 3 true turn\n");
    assert_int_equal(r.result.verdict, 1);
    r = policies_run("all", NULL, SESSILE_HOOK_MERGE, "s u a");
    assert_string_equal(r.log, "merge 3 3\n");
}

/* merge alone is given the context before the turn, or nil when it was empty. */
static const char *merged(size_t previous)
{
    static char log[256];
    state_setup setup;
    fixture f;

    fixture_open(&f, policies_must_load("merges", NULL), "s u a u a");
    memset(&setup, 0, sizeof setup);
    setup.context = &f.list.c;
    setup.previous = previous;
    setup.floor = 2;
    setup.result_limit = 1 << 20;
    setup.vars_limit = 16384;
    setup.depth = 128;
    setup.read = list_read;
    setup.read_arg = &f.list;
    setup.alloc = &allocator_default;
    state_free(f.state);
    assert_int_equal(state_new(&f.state, &setup, &f.err), SESSILE_OK);
    assert_int_equal(state_hook_begin(f.state, "{}", 2, &f.err), SESSILE_OK);
    if (fixture_call(&f, SESSILE_HOOK_MERGE))
        fail_msg("%s", f.err.message);
    snprintf(log, sizeof log, "%s", policy_pipeline_log(f.pipeline));
    fixture_close(&f);
    return log;
}

static void test_merge_sees_what_was_before(void **state)
{
    (void)state;
    policies_write("merges",
                   "return { merge = function(previous, next, ctx)\n"
                   "  if previous then ctx.log(previous[3], previous[4], "
                   "previous.messages == previous, pcall(function() previous[1] = 1 "
                   "end)) end\n"
                   "  ctx.log(previous and #previous, #next.messages)\n"
                   "  return next end }");
    assert_string_equal(merged(0), "nil 5\n");
    assert_string_equal(merged(3),
                        "message 00000003 nil true false merges.lua:2: the list of "
                        "messages is read-only: use state:drop, state:replace or "
                        "state:insert\n3 5\n");
}

static void test_what_a_file_says_of_itself(void **state)
{
    sessile_policy *p;
    const policy_step_info *info;
    (void)state;
    policies_write("file", every_hook);
    p = policies_must_load("file", NULL);
    assert_int_equal(policy_step_count(p), 1);
    assert_null(policy_step_get(p, 1));
    info = policy_step_get(p, 0);
    assert_string_equal(info->name, "all");
    assert_int_equal(info->version, 3);
    assert_int_equal(info->hooks, 63);
    assert_int_equal(info->is_host, 0);
    assert_int_equal(strlen(info->hash), 64);
    assert_string_equal(info->options, "{}");
    assert_non_null(strstr(info->path, "/file.lua"));
    policy_release(p);
    policies_write("plain", "return {}");
    p = policies_must_load("plain", NULL);
    assert_string_equal(policy_step_get(p, 0)->name, "plain");
    assert_int_equal(policy_step_get(p, 0)->hooks, 0);
    policy_release(p);
}

static void test_a_missing_hook_does_nothing(void **state)
{
    ran r;
    (void)state;
    policies_write("empty", "return {}");
    r = policies_run("empty", NULL, SESSILE_HOOK_COMPACT, "s u a u a");
    must_have_run(&r);
    assert_string_equal(r.keys, "1 2 3 4 5");
}

static void test_should_compact_is_truthiness(void **state)
{
    static const struct {
        const char *source;
        int verdict;
    } cases[] = {
        {"return { should_compact = function() return 0 end }", 1},
        {"return { should_compact = function() return false end }", 0},
        {"return { should_compact = function() return nil, true end }", 0},
        {"return { should_compact = function() end }", 0},
        {"return { should_compact = function(s) return s.tokens > 0.8 * s.window end }",
         0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ran r;
        policies_write("ask", cases[i].source);
        r = policies_run("ask", NULL, SESSILE_HOOK_SHOULD_COMPACT, "s u a");
        must_have_run(&r);
        assert_int_equal(r.result.verdict, cases[i].verdict);
    }
}

static void check_keys(const char *body, const char *line, const char *keys)
{
    ran r = policies_body(body, line);
    if (r.status)
        fail_msg("%s: %s", body, r.err.message);
    if (strcmp(r.keys, keys) != 0)
        fail_msg("%s: %s, not %s", body, r.keys, keys);
}

static void test_edits_land(void **state)
{
    (void)state;
    check_keys("state:drop(2)", "s u a u a", "1 3 4 5");
    check_keys("state:drop(2, 3)", "s u a u a", "1 4 5");
    check_keys("state:drop(2) state:drop(3)", "s u a u a", "1 4 5");
    check_keys("state:keep_last(2, 'messages')", "s u a u a", "1 4 5");
    check_keys("state:keep_last(1, 'turns')", "s u a u a", "1 4 5");
    check_keys("state:keep_last(2.9, 'messages')", "s u a u a", "1 4 5");
    check_keys("state:keep_last(math.huge, 'tokens')", "s u a u a", "1 2 3 4 5");
    check_keys("state:replace(3, {content = 'short'})", "s u a u a", "1 2 +1 4 5");
    check_keys("state:insert(2, {content = 'sum'}, {covers = {2, 3}})", "s u a u a",
               "1 +1 4 5");
    check_keys("state:insert(6, {content = 'note'})", "s u a u a", "1 2 3 4 5 +1");
    check_keys("return state", "s u a", "1 2 3");
    check_keys("state:drop(2, 3) return state", "s u a u a", "1 4 5");
    check_keys("state:drop(2, 3) return state.messages", "s u a u a", "1 4 5");
}

static void test_a_hand_built_list_is_taken(void **state)
{
    ran r;
    (void)state;
    check_keys("local m = state.messages return {m[1], m[4], m[5]}", "s u a u a",
               "1 4 5");
    check_keys("local m = state.messages return {messages = {m[1], m[4], m[5]}}",
               "s u a u a", "1 4 5");
    check_keys("local m = state.messages return {m[1], {role='user', content='sum', "
               "covers={m[2].key, m[3]}}, m[4], m[5]}",
               "s u a u a", "1 +1 4 5");
    check_keys(
        "local m = state.messages return {m[1], m[2], {role='assistant', content='x', "
        "replaces={'00000003'}}, m[4], m[5]}",
        "s u a u a", "1 2 +1 4 5");
    r = policies_body("local m = state.messages return {m[1], {role='user', content={}, "
                      "covers={'00000002'}}, m[3], m[4], m[5]}",
                      "s u a u a");
    must_have_run(&r);
    assert_null(strstr(r.text, "covers"));
    assert_non_null(strstr(r.text, "\"content\":[]"));
}

static void test_nonsense_results_are_named(void **state)
{
    (void)state;
    assert_string_equal(policies_refused("return 5"),
                        "body.lua:1: truncate: it returned a number: return nothing, the "
                        "state, or a list of messages");
    assert_string_equal(
        policies_refused("return true"),
        "body.lua:1: truncate: it returned a boolean: return nothing, the "
        "state, or a list of messages");
    assert_string_equal(policies_refused("return {foo = 1}"),
                        "body.lua:1: truncate: it returned a table with the field 'foo', "
                        "which is no list of messages");
    assert_string_equal(
        policies_refused("return {state.messages[1], 7}"),
        "body.lua:1: truncate: message 2 of the list is no message (number)");
    assert_string_equal(
        policies_refused("return {[1] = state.messages[1], [3] = state.messages[2]}"),
        "body.lua:1: truncate: it returned a list of messages with holes");
    assert_string_equal(
        policies_refused("return {{role='user', content=print or type}}"),
        "body.lua:1: truncate: message 1: content: a function cannot be JSON");
    assert_string_equal(
        policies_refused("return {{role='user', content='', covers={'zz'}}}"),
        "body.lua:1: truncate: message 1: covers[1] is no key of a message");
    assert_non_null(
        strstr(policies_refused("return {{role='boss', content='x'}}"), "body.lua:1: "));
}

static void test_wrong_arguments_name_the_line(void **state)
{
    (void)state;
    assert_string_equal(policies_refused("state:drop(6)"),
                        "body.lua:1: drop: there is no position 6 (1 to 5)");
    assert_string_equal(policies_refused("state:drop(0)"),
                        "body.lua:1: drop: there is no position 0 (1 to 5)");
    assert_string_equal(policies_refused("state:drop(3, 2)"),
                        "body.lua:1: drop: 3 comes after 2");
    assert_string_equal(
        policies_refused("\n\nstate:drop('a')"),
        "body.lua:3: drop: a message's position was expected, got string");
    assert_string_equal(policies_refused("state.drop(1)"),
                        "body.lua:1: call it with a colon, as in state:drop(i)");
    assert_string_equal(policies_refused("state:replace(2, {x = 0/0})"),
                        "body.lua:1: replace: x: NaN cannot be JSON");
    assert_string_equal(
        policies_refused("state.messages[1].content = 'x'"),
        "body.lua:1: a message is read-only: use state:replace(i, {content = "
        "…})");
    assert_string_equal(policies_refused("state.messages[2] = nil"),
                        "body.lua:1: the list of messages is read-only: use state:drop, "
                        "state:replace or state:insert");
    assert_string_equal(
        policies_refused("state.tokens = 1"),
        "body.lua:1: only vars of a state can be assigned: use state:drop, "
        "state:replace or state:insert");
    assert_string_equal(policies_refused("ctx.now = 1"), "body.lua:1: ctx is read-only");
    assert_string_equal(policies_refused("ctx.session.id = 1"),
                        "body.lua:1: this table is read-only");
}

static void test_an_error_after_edits_changes_nothing(void **state)
{
    (void)state;
    assert_string_equal(policies_refused("state:drop(2, 3) error('no')"),
                        "body.lua:1: no");
}

static void test_fields_of_messages(void **state)
{
    (void)state;
    assert_string_equal(
        policies_logged("local m = state.messages[2] ctx.log(m.key, m.id, m.role, "
                        "m.turn, m.pinned, m.open, m.dead, #m.labels, m.nothing, "
                        "m.tokens > 0, m.content)"),
        "00000002 00000002 user 1 false false false 0 nil true message 2\n");
    assert_string_equal(
        policies_logged("ctx.log(state.messages[1].pinned, state.messages[0], "
                        "state.messages[6], #state.messages, state.messages.x)"),
        "true nil nil 5 nil\n");
    assert_string_equal(policies_logged("ctx.log(state.messages[2] == state.messages[2], "
                                        "state.messages[2] == state.messages[3])"),
                        "true false\n");
    assert_string_equal(
        policies_logged("for i, m in ipairs(state.messages) do ctx.log(i, m.key) end"),
        "1 00000001\n2 00000002\n3 00000003\n4 00000004\n5 00000005\n");
    assert_string_equal(
        policies_logged("for i, m in pairs(state.messages) do ctx.log(i, m.role) end"),
        "1 system\n2 user\n3 assistant\n4 user\n5 assistant\n");
    assert_string_equal(
        policies_logged("local names = {} for k in pairs(state.messages[2]) do "
                        "names[#names + 1] = k end ctx.log(table.concat(names, ' '))"),
        "content dead id key labels open pinned role tokens turn\n");
}

static void test_calls_are_seen(void **state)
{
    ran r =
        policies_body("for i, m in ipairs(state.messages) do ctx.log(i, m.open, m.dead, "
                      "m.tool_call_id, m.tool_calls and m.tool_calls[1].id, "
                      "table.concat(state:pairs_of(i), ',')) end",
                      "u a:x r:x a:y u a:z");
    (void)state;
    must_have_run(&r);
    assert_string_equal(r.log, "1 false false nil nil 1\n2 false false nil x 2,3\n"
                               "3 false false x nil 2,3\n4 false true nil y 4\n"
                               "5 false false nil nil 5\n6 true false nil z 6\n");
}

static void test_turns_and_cuts(void **state)
{
    (void)state;
    assert_string_equal(
        policies_logged("for _, t in ipairs(state:turns()) do "
                        "ctx.log(t.turn, t.first, t.last, t.tokens > 0) end"),
        "0 1 1 true\n1 2 3 true\n2 4 5 true\n");
    assert_string_equal(
        policies_logged("ctx.log(state:find_cut(1e9), state:find_cut(0))"), "1 4\n");
    assert_string_equal(
        policies_logged(
            "local t = state.tokens state:drop(2, 3) ctx.log(state.tokens < t, "
            "#state.messages)"),
        "true 5\n");
    assert_string_equal(
        policies_logged("ctx.log(state.window == math.huge, state.reserve)"), "true 0\n");
}

static void test_vars_are_kept(void **state)
{
    ran r;
    (void)state;
    r = policies_body("state.vars.n = (state.vars.n or 0) + 1 state.vars.list = {}",
                      "s u");
    must_have_run(&r);
    assert_string_equal(r.vars, "{\"list\":{},\"n\":1}");
    r = policies_body("state.vars = {a = {1, 2}}", "s u");
    assert_string_equal(r.vars, "{\"a\":[1,2]}");
    r = policies_body("local v = state.vars.x", "s u");
    assert_string_equal(r.vars, "{}");
    assert_string_equal(policies_refused("state.vars.f = error"),
                        "body.lua:1: truncate: vars: f: a function cannot be JSON");
    assert_string_equal(policies_refused("state.vars = 3"),
                        "body.lua:1: vars is a table, got number");
}

/* Reading notes is no edit, however they were written; they stay byte for byte. */
static void test_reading_vars_keeps_their_bytes(void **state)
{
    static const char vars[] = "{\"b\":1.50,\"a\":[]}";
    fixture f;
    (void)state;
    fixture_load(&f, "reads",
                 "return { truncate = function(state) return state.vars.b == 1.5 and "
                 "#state.vars.a == 0 and state or 'no' end }",
                 "s u", NULL);
    assert_int_equal(state_hook_begin(f.state, vars, strlen(vars), &f.err), SESSILE_OK);
    assert_int_equal(fixture_call(&f, SESSILE_HOOK_TRUNCATE), SESSILE_OK);
    assert_int_equal(sessile_state_vars(f.state).size, strlen(vars));
    assert_memory_equal(sessile_state_vars(f.state).data, vars, strlen(vars));
    fixture_close(&f);
}

static void test_a_state_ends_with_its_hook(void **state)
{
    fixture f;
    (void)state;

    fixture_load(&f, "callbacks",
                 "local kept return { summarize = function(state) kept = state.messages "
                 "end, truncate = function(state) return kept[1].role end }",
                 "s u a", NULL);
    assert_int_equal(fixture_call(&f, SESSILE_HOOK_SUMMARIZE), SESSILE_OK);
    assert_int_equal(fixture_call(&f, SESSILE_HOOK_TRUNCATE), SESSILE_POLICY);
    assert_string_equal(f.err.message,
                        "callbacks.lua:1: this state has ended: keep nothing of it "
                        "from one hook to the next");
    assert_int_equal(f.result.spent, 0);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ ctx */

static void test_ctx_answers(void **state)
{
    (void)state;
    assert_string_equal(
        policies_logged("ctx.log(ctx.reason, ctx.now, ctx.instructions, ctx.memory, "
                        "ctx.nothing, ctx.count('hello world') > 0)"),
        "turn 1700000000000 keep names nil nil true\n");
    assert_string_equal(
        policies_logged("local s = ctx.session ctx.log(s.id, s.agent, s.title, "
                        "s.metadata.project.name, #s.metadata.tags, s.metadata.tags[2])"),
        "s-1 main A title x 2 b\n");
    assert_string_equal(policies_logged("ctx.log('a\\nb\\27[31m')"), "a b [31m\n");
}

static void test_random_is_the_turns(void **state)
{
    static const char body[] = "local t = {} for i = 1, 8 do t[i] = ctx.random(100) end "
                               "ctx.log(table.concat(t, ' '), ctx.random() < 1)";
    ran a = policies_body(body, "s u"), b = policies_body(body, "s u a");
    (void)state;
    must_have_run(&a);
    assert_string_equal(a.log, b.log);
    assert_null(strstr(a.log, "101"));
    b = policies_body(
        "local _ = 1; local t = {} for i = 1, 8 do t[i] = ctx.random(100) end "
        "ctx.log(table.concat(t, ' '), ctx.random() < 1)",
        "s u");
    assert_string_not_equal(a.log, b.log); /* another policy, another hash */
    assert_string_equal(
        policies_logged("for i = 1, 100 do assert(ctx.random(3) <= 3 and ctx.random(1) "
                        "== 1 and ctx.random(math.maxinteger) > 0) end"),
        "");
    assert_non_null(strstr(policies_refused("ctx.random(0)"), "must be 1 or more"));
}

/* ------------------------------------------------------------------ the model */

typedef struct asked {
    sessile_status status;
    sessile_error err;
    char request[2048];
    char log[512];
    int times;
} asked;

static asked ask(const char *body, const sessile_answer *answer)
{
    char source[4096];
    fixture f;
    asked a;

    memset(&a, 0, sizeof a);
    snprintf(source, sizeof source, "return { truncate = function(state, ctx) %s\nend }",
             body);
    fixture_load(&f, "asks", source, "s u a:x r:x a", NULL);
    a.status = fixture_call(&f, SESSILE_HOOK_TRUNCATE);
    while (a.status == SESSILE_NEEDS) {
        a.times++;
        snprintf(a.request, sizeof a.request, "%.*s", (int)f.result.request.size,
                 f.result.request.data);
        a.status = policy_pipeline_answer(f.pipeline, answer, &f.result, &f.err);
    }
    a.err = f.err;
    snprintf(a.log, sizeof a.log, "%s", policy_pipeline_log(f.pipeline));
    fixture_close(&f);
    return a;
}

static asked ask_yes(const char *body)
{
    sessile_answer yes = {SESSILE_OK, {"yes", 3}, 0};
    return ask(body, &yes);
}

static void test_a_model_is_asked(void **state)
{
    asked a = ask_yes("ctx.log(ctx.model{messages = {{role='user', content='q'}}, "
                      "max_tokens = 12.7, purpose = 'summary'})");
    (void)state;
    assert_int_equal(a.status, SESSILE_OK);
    assert_int_equal(a.times, 1);
    assert_string_equal(a.log, "yes\n");
    assert_string_equal(a.request, "{\"max_tokens\":12,\"messages\":[{\"content\":\"q\","
                                   "\"role\":\"user\"}],\"purpose\":\"summary\"}");
}

static void test_views_are_sent_as_messages(void **state)
{
    asked a = ask_yes("ctx.model{messages = {state.messages[3], state.messages[4]}}");
    (void)state;
    assert_int_equal(a.status, SESSILE_OK);
    assert_string_equal(
        a.request,
        "{\"messages\":[{\"content\":\"message 3\",\"role\":\"assistant\",\"tool_calls\":"
        "[{\"arguments\":\"{}\",\"id\":\"x\",\"name\":\"f\"}]},{\"content\":\"result 4\","
        "\"role\":\"tool\",\"tool_call_id\":\"x\"}]}");
    a = ask_yes("ctx.model{messages = state.messages}");
    assert_non_null(strstr(a.request,
                           "{\"messages\":[{\"content\":\"message 1\",\"role\":"
                           "\"system\"},"));
}

static void test_a_model_is_asked_inside_pcall_and_loops(void **state)
{
    asked a =
        ask_yes("local ok, text = pcall(function() local ok, t = pcall(ctx.model, "
                "{messages = {}}) assert(ok) return t .. '!' end) ctx.log(ok, text) "
                "for i = 1, 3 do ctx.log(i, ctx.model{messages = {}}) end "
                "ctx.log(pcall(function() ctx.model{messages = {}} error('x', 0) end))");
    (void)state;
    assert_int_equal(a.status, SESSILE_OK);
    assert_int_equal(a.times, 5);
    assert_string_equal(a.log, "true yes!\n1 yes\n2 yes\n3 yes\nfalse x\n");
}

static void test_asking_where_it_cannot_wait_raises(void **state)
{
    asked a = ask_yes("table.sort({2, 1}, function(x, y) ctx.model{messages={}} end)");
    (void)state;
    assert_int_equal(a.status, SESSILE_POLICY);
    assert_string_equal(a.err.message, "asks.lua:1: ctx.model cannot be used here");
    a = ask_yes("('x'):gsub('x', function() ctx.model{messages={}} end)");
    assert_int_equal(a.status, SESSILE_POLICY);
    assert_string_equal(a.err.message, "asks.lua:1: ctx.model cannot be used here");
    assert_int_equal(a.times, 0);
}

static void test_a_failing_model_never_raises(void **state)
{
    static char large[(1 << 20) + 2];
    static const char show[] = "ctx.log(ctx.model{messages={}})";
    sessile_answer no = {SESSILE_IO, {"offline", 7}, 0};
    asked a = ask(show, &no);
    (void)state;
    assert_int_equal(a.status, SESSILE_OK);
    assert_string_equal(a.log, "nil offline\n");
    no.text = (sessile_slice){NULL, 0};
    assert_string_equal(ask(show, &no).log, "nil the model did not answer\n");
    no = (sessile_answer){SESSILE_OK, {"a\xffz", 3}, 0};
    assert_string_equal(ask(show, &no).log, "nil the answer is not UTF-8\n");
    memset(large, 'x', sizeof large);
    no.text = (sessile_slice){large, (1 << 20) + 1};
    assert_string_equal(ask(show, &no).log,
                        "nil the answer is longer than 1048576 bytes\n");
    no.text = (sessile_slice){"", 0};
    assert_string_equal(ask("ctx.log(#ctx.model{messages={}})", &no).log, "0\n");
}

static void test_wrong_requests_raise(void **state)
{
    (void)state;
    assert_string_equal(
        policies_refused("ctx.model{message = {}}"),
        "body.lua:1: ctx.model takes messages, max_tokens, purpose and model, "
        "not 'message'");
    assert_string_equal(
        policies_refused("ctx.model{messages = 'x'}"),
        "body.lua:1: ctx.model: messages is a list of messages, got string");
    assert_string_equal(policies_refused("ctx.model{messages = {'x'}}"),
                        "body.lua:1: ctx.model: messages[1] is a string, not a message");
    assert_string_equal(policies_refused("ctx.model{messages = {}, max_tokens = 'x'}"),
                        "body.lua:1: ctx.model: max_tokens is a number, got string");
}

static void test_a_pipeline_freed_while_it_waits(void **state)
{
    fixture f;
    (void)state;
    fixture_load(&f, "asks",
                 "return { compact = function(state, ctx) ctx.model{messages={}} "
                 "state:drop(1) end }",
                 "s u a", NULL);
    for (int i = 0; i < 3; i++) {
        fixture_new_pipeline(&f);
        state_free(f.state);
        f.state = list_state(&f.list);
        assert_int_equal(policy_pipeline_answer(f.pipeline, NULL, &f.result, &f.err),
                         SESSILE_INVALID);
        assert_int_equal(fixture_call(&f, SESSILE_HOOK_COMPACT), SESSILE_NEEDS);
        assert_int_equal(fixture_call(&f, SESSILE_HOOK_COMPACT), SESSILE_INVALID);
    }
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_each_hook_gets_its_arguments),
        test(test_merge_sees_what_was_before),
        test(test_what_a_file_says_of_itself),
        test(test_a_missing_hook_does_nothing),
        test(test_should_compact_is_truthiness),
        test(test_edits_land),
        test(test_a_hand_built_list_is_taken),
        test(test_nonsense_results_are_named),
        test(test_wrong_arguments_name_the_line),
        test(test_an_error_after_edits_changes_nothing),
        test(test_fields_of_messages),
        test(test_calls_are_seen),
        test(test_turns_and_cuts),
        test(test_vars_are_kept),
        test(test_reading_vars_keeps_their_bytes),
        test(test_a_state_ends_with_its_hook),
        test(test_ctx_answers),
        test(test_random_is_the_turns),
        test(test_a_model_is_asked),
        test(test_views_are_sent_as_messages),
        test(test_a_model_is_asked_inside_pcall_and_loops),
        test(test_asking_where_it_cannot_wait_raises),
        test(test_a_failing_model_never_raises),
        test(test_wrong_requests_raise),
        test(test_a_pipeline_freed_while_it_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
