/*
 * test_policy.c: policies loaded from files and run on real states: hooks, edits,
 * options, chains, files that are refused, the model, threads, determinism. It is long
 * because each of them needs the same states and the same small policies.
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

static int setup(void **state)
{
    (void)state;
    policies_start();
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    policies_end();
    return 0;
}

static void must(const ran *r)
{
    if (r->status)
        fail_msg("status %d: %s", r->status, r->err.message);
}

/* The log of a body that must succeed on "s u a u a". */
static const char *logged(const char *body)
{
    static ran r;
    r = policies_body(body, "s u a u a");
    must(&r);
    return r.log;
}

/* The sentence of a body that must fail with POLICY. */
static const char *refused(const char *body)
{
    static ran r;
    r = policies_body(body, "s u a u a");
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_string_equal(r.keys, "1 2 3 4 5");
    return r.err.message;
}

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
    must(&r);
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
    policy_setup s = policies_setup();
    sessile_policy *p = policies_must_load("merges", NULL);
    policy_pipeline *pl;
    policy_result result;
    sessile_error err;
    sessile_state *st;
    state_setup setup;
    list l;

    list_make(&l, "s u a u a");
    memset(&setup, 0, sizeof setup);
    setup.context = &l.c;
    setup.previous = previous;
    setup.floor = 2;
    setup.result_limit = 1 << 20;
    setup.vars_limit = 16384;
    setup.depth = 128;
    setup.read = list_read;
    setup.read_arg = &l;
    setup.alloc = &allocator_default;
    assert_int_equal(state_new(&st, &setup, &err), SESSILE_OK);
    assert_int_equal(state_hook_begin(st, "{}", 2, &err), SESSILE_OK);
    assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
    if (policy_pipeline_call(pl, 0, SESSILE_HOOK_MERGE, st, SESSILE_REASON_TURN, &result,
                             &err))
        fail_msg("%s", err.message);
    snprintf(log, sizeof log, "%s", policy_pipeline_log(pl));
    policy_pipeline_free(pl);
    state_free(st);
    list_free(&l);
    policy_release(p);
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
    must(&r);
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
        must(&r);
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
    must(&r);
    assert_null(strstr(r.text, "covers"));
    assert_non_null(strstr(r.text, "\"content\":[]"));
}

static void test_nonsense_results_are_named(void **state)
{
    (void)state;
    assert_string_equal(refused("return 5"),
                        "body.lua:1: truncate: it returned a number: return nothing, the "
                        "state, or a list of messages");
    assert_string_equal(
        refused("return true"),
        "body.lua:1: truncate: it returned a boolean: return nothing, the "
        "state, or a list of messages");
    assert_string_equal(refused("return {foo = 1}"),
                        "body.lua:1: truncate: it returned a table with the field 'foo', "
                        "which is no list of messages");
    assert_string_equal(
        refused("return {state.messages[1], 7}"),
        "body.lua:1: truncate: message 2 of the list is no message (number)");
    assert_string_equal(
        refused("return {[1] = state.messages[1], [3] = state.messages[2]}"),
        "body.lua:1: truncate: it returned a list of messages with holes");
    assert_string_equal(
        refused("return {{role='user', content=print or type}}"),
        "body.lua:1: truncate: message 1: content: a function cannot be JSON");
    assert_string_equal(
        refused("return {{role='user', content='', covers={'zz'}}}"),
        "body.lua:1: truncate: message 1: covers[1] is no key of a message");
    assert_non_null(
        strstr(refused("return {{role='boss', content='x'}}"), "body.lua:1: "));
}

static void test_wrong_arguments_name_the_line(void **state)
{
    (void)state;
    assert_string_equal(refused("state:drop(6)"),
                        "body.lua:1: drop: there is no position 6 (1 to 5)");
    assert_string_equal(refused("state:drop(0)"),
                        "body.lua:1: drop: there is no position 0 (1 to 5)");
    assert_string_equal(refused("state:drop(3, 2)"), "body.lua:1: drop: 3 comes after 2");
    assert_string_equal(
        refused("\n\nstate:drop('a')"),
        "body.lua:3: drop: a message's position was expected, got string");
    assert_string_equal(refused("state.drop(1)"),
                        "body.lua:1: call it with a colon, as in state:drop(i)");
    assert_string_equal(refused("state:replace(2, {x = 0/0})"),
                        "body.lua:1: replace: x: NaN cannot be JSON");
    assert_string_equal(
        refused("state.messages[1].content = 'x'"),
        "body.lua:1: a message is read-only: use state:replace(i, {content = "
        "…})");
    assert_string_equal(refused("state.messages[2] = nil"),
                        "body.lua:1: the list of messages is read-only: use state:drop, "
                        "state:replace or state:insert");
    assert_string_equal(
        refused("state.tokens = 1"),
        "body.lua:1: only vars of a state can be assigned: use state:drop, "
        "state:replace or state:insert");
    assert_string_equal(refused("ctx.now = 1"), "body.lua:1: ctx is read-only");
    assert_string_equal(refused("ctx.session.id = 1"),
                        "body.lua:1: this table is read-only");
}

static void test_an_error_after_edits_changes_nothing(void **state)
{
    (void)state;
    assert_string_equal(refused("state:drop(2, 3) error('no')"), "body.lua:1: no");
}

static void test_fields_of_messages(void **state)
{
    (void)state;
    assert_string_equal(
        logged("local m = state.messages[2] ctx.log(m.key, m.id, m.role, "
               "m.turn, m.pinned, m.open, m.dead, #m.labels, m.nothing, "
               "m.tokens > 0, m.content)"),
        "00000002 00000002 user 1 false false false 0 nil true message 2\n");
    assert_string_equal(logged("ctx.log(state.messages[1].pinned, state.messages[0], "
                               "state.messages[6], #state.messages, state.messages.x)"),
                        "true nil nil 5 nil\n");
    assert_string_equal(logged("ctx.log(state.messages[2] == state.messages[2], "
                               "state.messages[2] == state.messages[3])"),
                        "true false\n");
    assert_string_equal(
        logged("for i, m in ipairs(state.messages) do ctx.log(i, m.key) end"),
        "1 00000001\n2 00000002\n3 00000003\n4 00000004\n5 00000005\n");
    assert_string_equal(
        logged("for i, m in pairs(state.messages) do ctx.log(i, m.role) end"),
        "1 system\n2 user\n3 assistant\n4 user\n5 assistant\n");
    assert_string_equal(
        logged("local names = {} for k in pairs(state.messages[2]) do "
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
    must(&r);
    assert_string_equal(r.log, "1 false false nil nil 1\n2 false false nil x 2,3\n"
                               "3 false false x nil 2,3\n4 false true nil y 4\n"
                               "5 false false nil nil 5\n6 true false nil z 6\n");
}

static void test_turns_and_cuts(void **state)
{
    (void)state;
    assert_string_equal(logged("for _, t in ipairs(state:turns()) do "
                               "ctx.log(t.turn, t.first, t.last, t.tokens > 0) end"),
                        "0 1 1 true\n1 2 3 true\n2 4 5 true\n");
    assert_string_equal(logged("ctx.log(state:find_cut(1e9), state:find_cut(0))"),
                        "1 4\n");
    assert_string_equal(
        logged("local t = state.tokens state:drop(2, 3) ctx.log(state.tokens < t, "
               "#state.messages)"),
        "true 5\n");
    assert_string_equal(logged("ctx.log(state.window == math.huge, state.reserve)"),
                        "true 0\n");
}

static void test_vars_are_kept(void **state)
{
    ran r;
    (void)state;
    r = policies_body("state.vars.n = (state.vars.n or 0) + 1 state.vars.list = {}",
                      "s u");
    must(&r);
    assert_string_equal(r.vars, "{\"list\":{},\"n\":1}");
    r = policies_body("state.vars = {a = {1, 2}}", "s u");
    assert_string_equal(r.vars, "{\"a\":[1,2]}");
    r = policies_body("local v = state.vars.x", "s u");
    assert_string_equal(r.vars, "{}");
    assert_string_equal(refused("state.vars.f = error"),
                        "body.lua:1: truncate: vars: f: a function cannot be JSON");
    assert_string_equal(refused("state.vars = 3"),
                        "body.lua:1: vars is a table, got number");
}

/* Reading notes is no edit, however they were written; they stay byte for byte. */
static void test_reading_vars_keeps_their_bytes(void **state)
{
    static const char vars[] = "{\"b\":1.50,\"a\":[]}";
    policy_setup s = policies_setup();
    policy_result result;
    policy_pipeline *pl;
    sessile_policy *p;
    sessile_error err;
    sessile_state *st;
    list l;
    (void)state;
    policies_write("reads",
                   "return { truncate = function(state) return state.vars.b == 1.5 and "
                   "#state.vars.a == 0 and state or 'no' end }");
    p = policies_must_load("reads", NULL);
    list_make(&l, "s u");
    st = list_state(&l);
    assert_int_equal(state_hook_begin(st, vars, strlen(vars), &err), SESSILE_OK);
    assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
    assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                          SESSILE_REASON_TURN, &result, &err),
                     SESSILE_OK);
    assert_int_equal(sessile_state_vars(st).size, strlen(vars));
    assert_memory_equal(sessile_state_vars(st).data, vars, strlen(vars));
    policy_pipeline_free(pl);
    state_free(st);
    list_free(&l);
    policy_release(p);
}

static void test_a_state_ends_with_its_hook(void **state)
{
    sessile_policy *p;
    policy_pipeline *pl;
    policy_setup s = policies_setup();
    policy_result result;
    sessile_error err;
    sessile_state *st;
    list l;
    (void)state;

    policies_write(
        "callbacks",
        "local kept return { summarize = function(state) kept = state.messages "
        "end, truncate = function(state) return kept[1].role end }");
    p = policies_must_load("callbacks", NULL);
    list_make(&l, "s u a");
    st = list_state(&l);
    assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
    assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_SUMMARIZE, st,
                                          SESSILE_REASON_TURN, &result, &err),
                     SESSILE_OK);
    assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                          SESSILE_REASON_TURN, &result, &err),
                     SESSILE_POLICY);
    assert_string_equal(err.message,
                        "callbacks.lua:1: this state has ended: keep nothing of it "
                        "from one hook to the next");
    assert_int_equal(result.spent, 0);
    policy_pipeline_free(pl);
    state_free(st);
    list_free(&l);
    policy_release(p);
}

/* ------------------------------------------------------------------ ctx */

static void test_ctx_answers(void **state)
{
    (void)state;
    assert_string_equal(
        logged("ctx.log(ctx.reason, ctx.now, ctx.instructions, ctx.memory, "
               "ctx.nothing, ctx.count('hello world') > 0)"),
        "turn 1700000000000 keep names nil nil true\n");
    assert_string_equal(
        logged("local s = ctx.session ctx.log(s.id, s.agent, s.title, "
               "s.metadata.project.name, #s.metadata.tags, s.metadata.tags[2])"),
        "s-1 main A title x 2 b\n");
    assert_string_equal(logged("ctx.log('a\\nb\\27[31m')"), "a b [31m\n");
}

static void test_random_is_the_turns(void **state)
{
    static const char body[] = "local t = {} for i = 1, 8 do t[i] = ctx.random(100) end "
                               "ctx.log(table.concat(t, ' '), ctx.random() < 1)";
    ran a = policies_body(body, "s u"), b = policies_body(body, "s u a");
    (void)state;
    must(&a);
    assert_string_equal(a.log, b.log);
    assert_null(strstr(a.log, "101"));
    b = policies_body(
        "local _ = 1; local t = {} for i = 1, 8 do t[i] = ctx.random(100) end "
        "ctx.log(table.concat(t, ' '), ctx.random() < 1)",
        "s u");
    assert_string_not_equal(a.log, b.log); /* another policy, another hash */
    assert_string_equal(
        logged("for i = 1, 100 do assert(ctx.random(3) <= 3 and ctx.random(1) "
               "== 1 and ctx.random(math.maxinteger) > 0) end"),
        "");
    assert_non_null(strstr(refused("ctx.random(0)"), "must be 1 or more"));
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
    policy_setup s = policies_setup();
    sessile_policy *p;
    policy_pipeline *pl;
    policy_result result;
    sessile_state *st;
    asked a;
    list l;
    char source[4096];

    memset(&a, 0, sizeof a);
    snprintf(source, sizeof source, "return { truncate = function(state, ctx) %s\nend }",
             body);
    policies_write("asks", source);
    p = policies_must_load("asks", NULL);
    list_make(&l, "s u a:x r:x a");
    st = list_state(&l);
    assert_int_equal(policy_pipeline_new(&pl, p, &s, &a.err), SESSILE_OK);
    a.err.message[0] = 0;
    a.status = policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st, SESSILE_REASON_TURN,
                                    &result, &a.err);
    while (a.status == SESSILE_NEEDS) {
        a.times++;
        snprintf(a.request, sizeof a.request, "%.*s", (int)result.request.size,
                 result.request.data);
        a.status = policy_pipeline_answer(pl, answer, &result, &a.err);
    }
    snprintf(a.log, sizeof a.log, "%s", policy_pipeline_log(pl));
    policy_pipeline_free(pl);
    state_free(st);
    list_free(&l);
    policy_release(p);
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
        refused("ctx.model{message = {}}"),
        "body.lua:1: ctx.model takes messages, max_tokens, purpose and model, "
        "not 'message'");
    assert_string_equal(
        refused("ctx.model{messages = 'x'}"),
        "body.lua:1: ctx.model: messages is a list of messages, got string");
    assert_string_equal(refused("ctx.model{messages = {'x'}}"),
                        "body.lua:1: ctx.model: messages[1] is a string, not a message");
    assert_string_equal(refused("ctx.model{messages = {}, max_tokens = 'x'}"),
                        "body.lua:1: ctx.model: max_tokens is a number, got string");
}

static void test_a_pipeline_freed_while_it_waits(void **state)
{
    policy_setup s = policies_setup();
    sessile_policy *p;
    policy_pipeline *pl;
    policy_result result;
    sessile_error err;
    sessile_state *st;
    list l;
    (void)state;
    policies_write("asks",
                   "return { compact = function(state, ctx) ctx.model{messages={}} "
                   "state:drop(1) end }");
    p = policies_must_load("asks", NULL);
    list_make(&l, "s u a");
    for (int i = 0; i < 3; i++) {
        st = list_state(&l);
        assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
        assert_int_equal(policy_pipeline_answer(pl, NULL, &result, &err),
                         SESSILE_INVALID);
        assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_COMPACT, st,
                                              SESSILE_REASON_MANUAL, &result, &err),
                         SESSILE_NEEDS);
        assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_COMPACT, st,
                                              SESSILE_REASON_MANUAL, &result, &err),
                         SESSILE_INVALID);
        policy_pipeline_free(pl);
        state_free(st);
    }
    list_free(&l);
    policy_release(p);
}

/* ------------------------------------------------------------------ options */

static const char with_options[] =
    "return { options = {\n"
    "  turns = { type = 'integer', default = 20, min = 1, max = 99, about = 'newest' },\n"
    "  share = { type = 'number', default = 0.5 },\n"
    "  mode = { type = 'string', values = {'a', 'b'}, default = 'a' },\n"
    "  kinds = { type = 'list', default = {} },\n"
    "  deep = { type = 'boolean' } },\n"
    " truncate = function(state, ctx) local o = ctx.options\n"
    "  ctx.log(o.turns, o.share, o.mode, #o.kinds, o.deep) end }";

static void test_options_are_filled_in(void **state)
{
    sessile_policy *p;
    ran r;
    (void)state;
    policies_write("opts", with_options);
    p = policies_must_load("opts", "{ \"turns\" : 4.0, \"kinds\": [1,2] }");
    assert_string_equal(policy_step_get(p, 0)->options,
                        "{\"kinds\":[1,2],\"mode\":\"a\",\"share\":0.5,\"turns\":4}");
    policy_release(p);
    r = policies_run("opts", "{\"deep\":true,\"turns\":null}", SESSILE_HOOK_TRUNCATE,
                     "s u");
    must(&r);
    assert_string_equal(r.log, "20 0.5 a 0 true\n");
}

static void check_options(const char *options, sessile_status status,
                          const char *sentence)
{
    sessile_policy *p;
    sessile_error err;
    assert_int_equal(policies_load(&p, "opts", options, NULL, &err), status);
    assert_null(p);
    assert_string_equal(err.message, sentence);
}

static void test_options_are_checked(void **state)
{
    (void)state;
    policies_write("opts", with_options);
    check_options("{\"trun\":1}", SESSILE_INVALID,
                  "policy opts has no option 'trun': did you mean 'turns'?");
    check_options("{\"zzzzzz\":1}", SESSILE_INVALID,
                  "policy opts has no option 'zzzzzz'");
    check_options("{\"turns\":0}", SESSILE_INVALID,
                  "policy opts: option turns must be at least 1");
    check_options("{\"turns\":100}", SESSILE_INVALID,
                  "policy opts: option turns must be at most 99");
    check_options("{\"turns\":1.5}", SESSILE_INVALID,
                  "policy opts: option turns must be an integer, not number");
    check_options("{\"turns\":\"1\"}", SESSILE_INVALID,
                  "policy opts: option turns must be an integer, not string");
    check_options("{\"mode\":\"c\"}", SESSILE_INVALID,
                  "policy opts: option mode must be one of a, b");
    check_options("{\"kinds\":{\"a\":1}}", SESSILE_INVALID,
                  "policy opts: option kinds must be a list, not table");
    check_options("[]", SESSILE_INVALID, "policy opts: the options are no JSON object");
}

static void check_load_within(const char *source, const policy_limits *limits,
                              sessile_status status, const char *sentence)
{
    sessile_policy *p;
    sessile_error err;
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, limits, &err), status);
    assert_null(p);
    assert_string_equal(err.message, sentence);
}

static void check_load(const char *source, sessile_status status, const char *sentence)
{
    check_load_within(source, NULL, status, sentence);
}

static void test_wrong_declarations_are_the_policys_error(void **state)
{
    (void)state;
    check_load("return { options = { a = 3 } }", SESSILE_POLICY,
               "bad.lua: options.a is a table {type = …, default = …}, got number");
    check_load("return { options = { a = {} } }", SESSILE_POLICY,
               "bad.lua: options.a has no type");
    check_load("return { options = { a = {type='integer', default='x'} } }",
               SESSILE_POLICY,
               "bad.lua: options.a: its default must be an integer, not string");
    check_load("return { options = { a = {type='integer', defualt=1} } }", SESSILE_POLICY,
               "bad.lua: options.a has type, default, min, max, values and about, not "
               "'defualt'");
    check_load(
        "return { options = { a = {type='int'} } }", SESSILE_POLICY,
        "bad.lua: options.a: type is integer, number, string, boolean, list or table, "
        "not 'int'");
}

/* ------------------------------------------------------------------ loading */

static void test_files_that_are_no_policies(void **state)
{
    /* on a slow machine the instructions are to be spent before the time is */
    const policy_limits unhurried = {.ms = 600000};
    (void)state;
    check_load("return 5", SESSILE_POLICY,
               "bad.lua: a policy's file returns its table, this one a number");
    check_load("", SESSILE_POLICY,
               "bad.lua: a policy's file returns its table, this one a nil");
    check_load("local x = = 1", SESSILE_POLICY, "bad.lua:1: unexpected symbol near '='");
    check_load("\nlocal x = y.z", SESSILE_POLICY,
               "bad.lua:2: attempt to index a nil value (global 'y')");
    check_load("return { truncate = 5 }", SESSILE_POLICY,
               "bad.lua: truncate is a function, got number");
    check_load("return { trunctate = function() end }", SESSILE_POLICY,
               "bad.lua:1: 'trunctate' is no hook: did you mean 'truncate'?");
    check_load("return { version = 'x' }", SESSILE_POLICY,
               "bad.lua: version is an integer, got string");
    check_load("return { name = '' }", SESSILE_POLICY,
               "bad.lua: name is 1 to 100 bytes of UTF-8");
    check_load("-- a\nlocal _ENV = {}", SESSILE_POLICY,
               "bad.lua:2: _ENV cannot be used in a policy");
    check_load_within(
        "while true do end", &unhurried, SESSILE_POLICY,
        "bad.lua:1: it spent its budget of 50000000 instructions [policy_gas]");
}

static void test_bytecode_is_refused(void **state)
{
    sessile_policy *p;
    sessile_error err;
    (void)state;
    policies_write_bytes("code", "\x1bLuaT\0\x19\x93\r\n\x1a\n", 12);
    assert_int_equal(policies_load(&p, "code", NULL, NULL, &err), SESSILE_POLICY);
    assert_string_equal(err.message,
                        "code.lua is not text: a policy is source, never bytecode");
    policies_write_bytes("code", "return {}\0", 10);
    assert_int_equal(policies_load(&p, "code", NULL, NULL, &err), SESSILE_POLICY);
    /* behind a first line or a mark that is skipped, Lua itself refuses */
    policies_write_bytes("code", "#!x\n\x1bLuaT", 9);
    assert_int_equal(policies_load(&p, "code", NULL, NULL, &err), SESSILE_POLICY);
}

static void test_a_first_line_with_a_hash_is_skipped(void **state)
{
    sessile_policy *p;
    (void)state;
    policies_write("script", "#!/usr/bin/env sessile\nreturn { version = 2 }");
    p = policies_must_load("script", NULL);
    assert_int_equal(policy_step_get(p, 0)->version, 2);
    policy_release(p);
    policies_write("mark", "\xef\xbb\xbfreturn { version = 4 }");
    p = policies_must_load("mark", NULL);
    assert_int_equal(policy_step_get(p, 0)->version, 4);
    policy_release(p);
}

static sessile_status load_mode(int mode, sessile_error *err)
{
    char path[700];
    sessile_policy *p;
    sessile_status status;
    policies_write("mode", "return {}");
    snprintf(path, sizeof path, "%s/mode.lua", policies_folder());
    assert_int_equal(chmod(path, (mode_t)mode), 0);
    status = policies_load(&p, "mode", NULL, NULL, err);
    policy_release(p);
    return status;
}

static void test_files_that_others_may_write_are_denied_without_a_worker(void **state)
{
    sessile_error err;
    (void)state;
    assert_int_equal(load_mode(0644, &err), SESSILE_OK);
    assert_int_equal(load_mode(0620, &err), SESSILE_DENIED);
    assert_non_null(strstr(err.message, "/mode.lua can be written by others, so it would "
                                        "run in a process of its own: read it, then copy"
                                        " it or chmod go-w it"));
    assert_int_equal(load_mode(0602, &err), SESSILE_DENIED);
}

static uint32_t another_user(void *ud)
{
    (void)ud;
    return getuid() + 1;
}

static int stat_another(void *ud, int fd, os_stat_info *out)
{
    int r = os_posix.stat_fd(ud, fd, out);
    out->uid = getuid() + 7;
    return r;
}

static void test_files_of_another_user_are_denied_without_a_worker(void **state)
{
    os_table os = os_posix;
    sessile_policy_step step = {"mine", NULL, 0};
    sessile_policy *p;
    sessile_error err;
    (void)state;
    os.stat_fd = stat_another;
    policies_write("mine", "return {}");
    assert_int_equal(policy_load(&p, &step, 1, policies_folder(), NULL, NULL, &os,
                                 &allocator_default, &err),
                     SESSILE_DENIED);
    assert_non_null(strstr(err.message, "belongs to another user"));
    os = os_posix;
    os.uid = another_user; /* ours for a file of root's only when we are root */
    if (getuid() == 0) {
        assert_int_equal(policy_load(&p, &step, 1, policies_folder(), NULL, NULL, &os,
                                     &allocator_default, &err),
                         SESSILE_OK);
        policy_release(p);
    }
}

static void test_links_folders_and_large_files_are_refused(void **state)
{
    char path[700], target[700];
    sessile_policy *p;
    sessile_error err;
    char *large = calloc(1, 300000);
    (void)state;
    policies_write("real", "return {}");
    snprintf(path, sizeof path, "%s/link.lua", policies_folder());
    snprintf(target, sizeof target, "%s/real.lua", policies_folder());
    assert_int_equal(symlink(target, path), 0);
    assert_int_equal(policies_load(&p, "link", NULL, NULL, &err), SESSILE_DENIED);
    memset(large, ' ', 256 * 1024 + 1);
    policies_write("large", large);
    assert_int_equal(policies_load(&p, "large", NULL, NULL, &err), SESSILE_LIMIT);
    large[256 * 1024] = 0;
    memcpy(large, "return {}", 9);
    policies_write("large", large);
    assert_int_equal(policies_load(&p, "large", NULL, NULL, &err), SESSILE_OK);
    policy_release(p);
    free(large);
    snprintf(path, sizeof path, "%s/folder.lua", policies_folder());
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(policies_load(&p, "folder", NULL, NULL, &err), SESSILE_DENIED);
    rmdir(path);
}

static void test_names_are_looked_up(void **state)
{
    char path[1600];
    sessile_policy_step step = {"keep_last", NULL, 0};
    sessile_policy *p;
    sessile_error err;
    (void)state;
    policies_write("keep_last", "return {}");
    policies_write("other", "return {}");
    snprintf(path, sizeof path, "/nonexistent::%s", policies_folder());
    assert_int_equal(
        policy_load(&p, &step, 1, path, NULL, NULL, &os_posix, &allocator_default, &err),
        SESSILE_OK);
    policy_release(p);
    step.name = "keep_lst";
    assert_int_equal(
        policy_load(&p, &step, 1, path, NULL, NULL, &os_posix, &allocator_default, &err),
        SESSILE_NOTFOUND);
    assert_string_equal(err.message,
                        "there is no policy 'keep_lst': did you mean 'keep_last'?");
    step.name = "wholly_unlike";
    assert_int_equal(
        policy_load(&p, &step, 1, path, NULL, NULL, &os_posix, &allocator_default, &err),
        SESSILE_NOTFOUND);
    assert_string_equal(
        err.message, "there is no policy 'wholly_unlike'; there are: keep_last, other");
    assert_int_equal(
        policy_load(&p, &step, 1, NULL, NULL, NULL, &os_posix, &allocator_default, &err),
        SESSILE_NOTFOUND);
    snprintf(path, sizeof path, "%s/keep_last.lua", policies_folder());
    step.name = path;
    assert_int_equal(
        policy_load(&p, &step, 1, NULL, NULL, NULL, &os_posix, &allocator_default, &err),
        SESSILE_OK);
    assert_string_equal(policy_step_get(p, 0)->path, path);
    policy_release(p);
    step.name = "./no/such.lua";
    assert_int_equal(
        policy_load(&p, &step, 1, NULL, NULL, NULL, &os_posix, &allocator_default, &err),
        SESSILE_NOTFOUND);
    assert_string_equal(err.message, "there is no policy file ./no/such.lua");
}

/* ------------------------------------------------------------------ chains */

static void test_a_chain_file_becomes_its_elements(void **state)
{
    sessile_policy *p;
    sessile_error err;
    (void)state;
    policies_write("one", "return { options = { n = {type='integer', default=1}, a = "
                          "{type='string'} }, truncate = function() end }");
    policies_write("two", "return { options = { n = {type='integer', default=2} }, "
                          "compact = function() end }");
    policies_write("both", "return { name = 'both', chain = { 'one', {'two', n = 5} } }");
    policies_write("outer", "return { chain = { 'both', './one.lua' } }");
    p = policies_must_load("both", NULL);
    assert_int_equal(policy_step_count(p), 2);
    assert_string_equal(policy_step_get(p, 0)->name, "one");
    assert_string_equal(policy_step_get(p, 0)->options, "{\"n\":1}");
    assert_string_equal(policy_step_get(p, 1)->options, "{\"n\":5}");
    policy_release(p);
    /* options of a chain go to those who declare them, over its own */
    p = policies_must_load("both", "{\"n\":7,\"a\":\"x\"}");
    assert_string_equal(policy_step_get(p, 0)->options, "{\"a\":\"x\",\"n\":7}");
    assert_string_equal(policy_step_get(p, 1)->options, "{\"n\":7}");
    policy_release(p);
    p = policies_must_load("outer", NULL);
    assert_int_equal(policy_step_count(p), 3);
    assert_string_equal(policy_step_get(p, 2)->name, "one");
    policy_release(p);
    assert_int_equal(policies_load(&p, "both", "{\"m\":7}", NULL, &err), SESSILE_INVALID);
    assert_string_equal(err.message, "policy both has no option 'm': did you mean 'a'?");
    policies_write("both", "return { chain = { 'one', {'two', b = 5} } }");
    assert_int_equal(policies_load(&p, "both", NULL, NULL, &err), SESSILE_INVALID);
}

static void test_chains_are_bounded(void **state)
{
    sessile_policy *p;
    sessile_error err;
    (void)state;
    policies_write("self", "return { chain = { 'self' } }");
    assert_int_equal(policies_load(&p, "self", NULL, NULL, &err), SESSILE_LIMIT);
    policies_write("leaf", "return {}");
    policies_write("four", "return { chain = { 'leaf', 'leaf', 'leaf', 'leaf' } }");
    policies_write("wide", "return { chain = { 'four', 'four', 'four', 'four' } }");
    policies_write("wider", "return { chain = { 'wide', 'leaf' } }");
    assert_int_equal(policies_load(&p, "wide", NULL, NULL, &err), SESSILE_OK);
    assert_int_equal(policy_step_count(p), 16);
    policy_release(p);
    assert_int_equal(policies_load(&p, "wider", NULL, NULL, &err), SESSILE_LIMIT);
    check_load("return { chain = {} }", SESSILE_POLICY,
               "bad.lua: chain is a list of policies");
    check_load("return { chain = {3} }", SESSILE_POLICY,
               "bad.lua: chain[1] is \"name\" or {\"name\", option = …}");
    check_load("return { chain = {'leaf'}, truncate = function() end }", SESSILE_POLICY,
               "bad.lua: a policy has hooks or a chain, not both");
}

static void test_host_steps_stand_among_files(void **state)
{
    sessile_policy_step steps[2] = {{"mine", "{ \"x\" : 1 }", SESSILE_HOOK_TRUNCATE},
                                    {"leaf", NULL, 0}};
    policy_setup s = policies_setup();
    policy_result result;
    policy_pipeline *pl;
    sessile_policy *p;
    sessile_error err;
    (void)state;
    policies_write("leaf", "return {}");
    assert_int_equal(policy_load(&p, steps, 2, policies_folder(), NULL, NULL, &os_posix,
                                 &allocator_default, &err),
                     SESSILE_OK);
    assert_int_equal(policy_step_get(p, 0)->is_host, 1);
    assert_string_equal(policy_step_get(p, 0)->name, "mine");
    assert_string_equal(policy_step_get(p, 0)->options, "{\"x\":1}");
    assert_string_equal(policy_step_get(p, 0)->hash, "");
    assert_string_equal(policy_step_get(p, 0)->path, "");
    assert_int_equal(policy_step_get(p, 1)->is_host, 0);
    assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
    assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, NULL,
                                          SESSILE_REASON_TURN, &result, &err),
                     SESSILE_INVALID);
    policy_pipeline_free(pl);
    policy_release(p);
    assert_int_equal(
        policy_load(&p, steps, 0, NULL, NULL, NULL, &os_posix, &allocator_default, &err),
        SESSILE_INVALID);
}

/* Steps of a chain have environments of their own. */
static void test_steps_do_not_see_each_other(void **state)
{
    sessile_policy_step steps[2] = {{"a", NULL, 0}, {"b", NULL, 0}};
    policy_setup s = policies_setup();
    policy_result result;
    policy_pipeline *pl;
    sessile_policy *p;
    sessile_error err;
    sessile_state *st;
    list l;
    (void)state;
    policies_write("a",
                   "x = 1 string.rep = nil math.pi = 3 return { truncate = function() "
                   "assert(not ('x').rep) end }");
    policies_write("b",
                   "return { truncate = function(state, ctx) "
                   "assert(x == nil and math.pi > 3.1 and ('x'):rep(2) == 'xx') end }");
    assert_int_equal(policy_load(&p, steps, 2, policies_folder(), NULL, NULL, &os_posix,
                                 &allocator_default, &err),
                     SESSILE_OK);
    list_make(&l, "s u");
    st = list_state(&l);
    assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < 2; i++)
            if (policy_pipeline_call(pl, i, SESSILE_HOOK_TRUNCATE, st,
                                     SESSILE_REASON_TURN, &result, &err))
                fail_msg("%s", err.message);
    }
    policy_pipeline_free(pl);
    state_free(st);
    list_free(&l);
    policy_release(p);
}

/* ------------------------------------------------------------------ between pipelines */

/* Runs truncate of p on a list n times, one pipeline each; the last run's log. */
static const char *run_again(sessile_policy *p, int n)
{
    static char log[1024];
    policy_setup s = policies_setup();
    policy_result result;
    policy_pipeline *pl;
    sessile_error err;
    sessile_state *st;
    list l;
    list_make(&l, "s u a");
    for (int i = 0; i < n; i++) {
        st = list_state(&l);
        assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
        if (policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st, SESSILE_REASON_TURN,
                                 &result, &err))
            fail_msg("%s", err.message);
        snprintf(log, sizeof log, "%s", policy_pipeline_log(pl));
        policy_pipeline_free(pl);
        state_free(st);
    }
    list_free(&l);
    return log;
}

static void test_nothing_lives_on_in_a_pooled_vm(void **state)
{
    sessile_policy *p;
    (void)state;
    policies_write("leaky", "count = (count or 0) + 1\n"
                            "local own = 0\n"
                            "string.found = (string.found or 0) + 1\n"
                            "string.upper = function() return 'poison' end\n"
                            "table.concat, math.floor, utf8.char = nil, nil, nil\n"
                            "return { truncate = function(state, ctx) own = own + 1\n"
                            "  ctx.log(count, own, string.found, ('x'):upper(), "
                            "state.vars.left) end }");
    p = policies_must_load("leaky", NULL);
    assert_string_equal(run_again(p, 1), "1 1 1 poison nil\n");
    assert_string_equal(run_again(p, 5), "1 1 1 poison nil\n");
    policy_release(p);
    policies_write("clean",
                   "return { truncate = function(_, ctx) ctx.log(('x'):upper(), "
                   "table.concat{'a', 'b'}, math.floor(1.5), utf8.char(65)) end }");
    p = policies_must_load("clean", NULL);
    assert_string_equal(run_again(p, 2), "X ab 1 A\n");
    policy_release(p);
}

static void test_the_order_of_a_hash_is_never_seen(void **state)
{
    static const char body[] =
        "local t = {[3]=1, [1]=1, [-2]=1, [1.5]=1, [false]=1, [true]=1}\n"
        "for i = 1, 12 do t['k' .. (i * 7919) % 97] = i end\n"
        "local names = {} for k in pairs(t) do names[#names + 1] = tostring(k) end\n"
        "ctx.log(table.concat(names, ' '), (next(t)))\n"
        "local s = {} for k in ctx.sorted_pairs(t) do s[#s + 1] = tostring(k) end\n"
        "assert(table.concat(s) == table.concat(names))";
    static const char wanted[] =
        "-2 1 3 1.5 k11 k19 k27 k3 k38 k46 k54 k62 k65 k73 k81 k89 false true -2\n";
    (void)state;
    for (int i = 0; i < 5; i++) { /* each is another Lua state, with another hash seed */
        ran r = policies_body(body, "s u");
        must(&r);
        assert_string_equal(r.log, wanted);
    }
}

static void test_pairs_and_next_by_the_book(void **state)
{
    (void)state;
    assert_string_equal(
        logged("local t = {10, 20, 30} local n = 0 for k, v in pairs(t) do "
               "t[k] = nil n = n + v end ctx.log(n, next(t), #t)"),
        "60 nil 0\n");
    assert_string_equal(
        logged("local t = {a=1, b=2, c=3} for k in pairs(t) do t[k] = nil end "
               "ctx.log(next(t))"),
        "nil\n");
    assert_string_equal(logged("for k, v in pairs({}) do ctx.log(k) end ctx.log('end')"),
                        "end\n");
    assert_string_equal(logged("local t = {x=1, y=2} for k, v in pairs(t) do t.y = nil "
                               "ctx.log(k, v) end"),
                        "x 1\n");
    assert_string_equal(
        logged("for k, v in pairs(ctx.session.metadata) do ctx.log(k) end"),
        "project\ntags\n");
    assert_non_null(
        strstr(refused("pairs({[{}] = 1})"), "a key that is a table has no place"));
    assert_non_null(strstr(refused("next({}, 1)"), "next takes one argument here"));
    assert_non_null(strstr(refused("pairs(nil)"), "table expected"));
}

static void test_sort_is_stable_and_total(void **state)
{
    (void)state;
    assert_string_equal(
        logged("local t = {} for i = 1, 300 do t[i] = {k = i * 7 % 5, i = i} end\n"
               "table.sort(t, function(a, b) return a.k < b.k end)\n"
               "for i = 2, #t do assert(t[i-1].k < t[i].k or (t[i-1].k == t[i].k "
               "and t[i-1].i < t[i].i)) end ctx.log(#t)"),
        "300\n");
    assert_string_equal(
        logged("local t = {3, 1, 2} table.sort(t) ctx.log(table.concat(t, ' '))"),
        "1 2 3\n");
    assert_string_equal(logged("local t = {'b', 'a', 'B', ''} table.sort(t) "
                               "ctx.log(table.concat(t, '|'))"),
                        "|B|a|b\n");
    assert_string_equal(
        logged("for n = 0, 40 do local t = {} for i = 1, n do t[i] = i * 17 % 41 end "
               "table.sort(t) for i = 2, n do assert(t[i-1] < t[i]) end end"),
        "");
    /* a comparison that lies harms nobody else */
    assert_string_equal(
        logged("local t = {3, 1, 2, 5, 4} table.sort(t, function() return true end) "
               "local n = 0 for _, v in ipairs(t) do n = n + v end ctx.log(#t, n)"),
        "5 15\n");
    assert_non_null(strstr(refused("table.sort({1, 'x'})"), "attempt to compare"));
}

static void test_text_has_no_addresses(void **state)
{
    (void)state;
    assert_string_equal(
        logged("ctx.log({}, print, ctx.log, state, state.messages, ctx, nil, "
               "state.messages[1], tostring(1.5), tostring('x'))"),
        "table nil function state 5 messages ctx nil message 00000001 1.5 x\n");
    assert_string_equal(
        logged("ctx.log(('%s %s %5s|%d %%s'):format({}, ctx.log, 'a', 3))"),
        "table function     a|3 %s\n");
    assert_string_equal(
        logged("ctx.log(setmetatable({}, {__tostring = function() return 'T' end}), "
               "('%s'):format(setmetatable({}, {__tostring = function() return 'F' "
               "end})))"),
        "T F\n");
    assert_non_null(strstr(refused("('%p'):format({})"), "%p is not for policies"));
    assert_non_null(
        strstr(refused("local x = {} .. 'a'"), "attempt to concatenate a table"));
}

typedef struct worker {
    sessile_policy *policy;
    char log[64];
    int failed;
} worker;

static void *work(void *arg)
{
    worker *w = arg;
    policy_setup s = policies_setup();
    sessile_answer yes = {SESSILE_OK, {"yes", 3}, 0};
    for (int i = 0; i < 200 && !w->failed; i++) {
        policy_result result;
        policy_pipeline *pl;
        sessile_error err;
        sessile_state *st;
        sessile_status status;
        list l;
        list_make(&l, "s u a u a u a");
        st = list_state(&l);
        status = policy_pipeline_new(&pl, w->policy, &s, &err);
        if (!status)
            status = policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                          SESSILE_REASON_TURN, &result, &err);
        while (status == SESSILE_NEEDS)
            status = policy_pipeline_answer(pl, &yes, &result, &err);
        if (status || strcmp(policy_pipeline_log(pl), "1 yes 7\n") != 0)
            w->failed = 1;
        policy_pipeline_free(pl);
        state_free(st);
        list_free(&l);
    }
    return NULL;
}

static void test_many_threads_use_one_policy(void **state)
{
    enum { THREADS = 8 };
    pthread_t threads[THREADS];
    worker workers[THREADS];
    sessile_policy *p;
    (void)state;
    policies_write("busy", "n = (n or 0) + 1 return { truncate = function(state, ctx) "
                           "local t = {} for i = 1, 50 do t['k' .. i] = i end "
                           "local a = ctx.model{messages = state.messages} "
                           "state:keep_last(2) ctx.log(n, a, #state.messages) end }");
    p = policies_must_load("busy", NULL);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){p, "", 0};
        policy_retain(p);
        assert_int_equal(pthread_create(&threads[i], NULL, work, &workers[i]), 0);
    }
    policy_release(p);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(workers[i].failed, 0);
        policy_release(workers[i].policy);
    }
}

static void test_the_hosts_locale_is_not_seen(void **state)
{
    (void)state;
    if (!locale_with_comma())
        skip();
    assert_string_equal(
        logged("ctx.log(0.5, ('%.2f'):format(1.25), tonumber('0.25'), 1e100, "
               "tonumber('0,25'))"),
        "0.5 1.25 0.25 1e+100 nil\n");
    assert_string_equal(logged("state.vars.x = 0.5"), "");
    {
        char shown[16]; /* and the host has its own again */
        snprintf(shown, sizeof shown, "%.1f", 0.5);
        assert_string_equal(shown, "0,5");
    }
    locale_as_before();
}

static void test_time_in_lua_is_told(void **state)
{
    policy_setup s = policies_setup();
    policy_result result;
    policy_pipeline *pl;
    sessile_policy *p;
    sessile_error err;
    sessile_state *st;
    list l;
    (void)state;
    policies_write("slow", "return { truncate = function() for i = 1, 1e6 do end end }");
    p = policies_must_load("slow", NULL);
    list_make(&l, "s u");
    st = list_state(&l);
    assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
    assert_int_equal(policy_pipeline_us(pl), 0);
    assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                          SESSILE_REASON_TURN, &result, &err),
                     SESSILE_OK);
    assert_true(policy_pipeline_us(pl) > 100);
    policy_pipeline_free(pl);
    state_free(st);
    list_free(&l);
    policy_release(p);
}

/* ------------------------------------------------------------------ out of memory */

/* Fails the n-th allocation. What is given back is checked against what was asked for. */
typedef struct failing {
    size_t countdown, blocks;
} failing;

static void *failing_alloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    failing *f = ud;
    (void)osize;
    if (nsize == 0) {
        f->blocks -= ptr != NULL;
        free(ptr);
        return NULL;
    }
    if (nsize > osize && f->countdown && --f->countdown == 0)
        return NULL;
    if (!ptr)
        f->blocks++;
    return realloc(ptr, nsize);
}

static void test_every_failing_allocation_is_clean(void **state)
{
    policy_setup s = policies_setup();
    size_t n, step = 1;
    int finished = 0;
    (void)state;
    policies_write(
        "a", "return { options = {n={type='integer',default=3}}, truncate = "
             "function(state, ctx) local t = {} for i = 1, 20 do t[i] = ('x'):rep(i) end "
             "state.vars.t = t ctx.log(#t, ctx.options.n) pcall(error, {}) "
             "return {state.messages[1], state.messages[4], state.messages[5]} end }");
    policies_write("both", "return { chain = { {'a', n = 4} } }");
    for (n = 1; !finished; n += step) {
        failing f = {n, 0};
        allocator a = {failing_alloc, &f};
        sessile_policy_step named = {"both", "{\"n\":5}", 0};
        policy_pipeline *pl = NULL;
        policy_result result;
        sessile_policy *p;
        sessile_error err;
        sessile_status status;
        list l;
        sessile_state *st;

        list_make(&l, "s u a u a");
        st = list_state(&l);
        status = policy_load(&p, &named, 1, policies_folder(), NULL, NULL, &os_posix, &a,
                             &err);
        if (!status)
            status = policy_pipeline_new(&pl, p, &s, &err);
        if (!status)
            status = policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                          SESSILE_REASON_TURN, &result, &err);
        if (status && status != SESSILE_NOMEM)
            fail_msg("allocation %zu: status %d: %s", n, status, err.message);
        finished = f.countdown > 0;
        if (finished)
            assert_int_equal(status, SESSILE_OK);
        policy_pipeline_free(pl);
        policy_release(p);
        state_free(st);
        list_free(&l);
        assert_int_equal(f.blocks, 0);
        step = n < 400 ? 1 : n / 50; /* every early one, then a share */
    }
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

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
        test(test_options_are_filled_in),
        test(test_options_are_checked),
        test(test_wrong_declarations_are_the_policys_error),
        test(test_files_that_are_no_policies),
        test(test_bytecode_is_refused),
        test(test_a_first_line_with_a_hash_is_skipped),
        test(test_files_that_others_may_write_are_denied_without_a_worker),
        test(test_files_of_another_user_are_denied_without_a_worker),
        test(test_links_folders_and_large_files_are_refused),
        test(test_names_are_looked_up),
        test(test_a_chain_file_becomes_its_elements),
        test(test_chains_are_bounded),
        test(test_host_steps_stand_among_files),
        test(test_steps_do_not_see_each_other),
        test(test_nothing_lives_on_in_a_pooled_vm),
        test(test_the_order_of_a_hash_is_never_seen),
        test(test_pairs_and_next_by_the_book),
        test(test_sort_is_stable_and_total),
        test(test_text_has_no_addresses),
        test(test_many_threads_use_one_policy),
        test(test_the_hosts_locale_is_not_seen),
        test(test_time_in_lua_is_told),
        test(test_every_failing_allocation_is_clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
