/*
 * test_policy_files.c: options, files that are refused, chains of policies; what
 * one run can see of another; threads; memory that runs out.
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
    must_have_run(&r);
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
               "bad.lua: name is 1 to 100 bytes of UTF-8 without control characters");
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
    sessile_policy *p;
    sessile_error err;
    fixture f;
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
    fixture_open(&f, p, "s u");
    for (size_t i = 0; i < 4; i++)
        if (policy_pipeline_call(f.pipeline, i % 2, SESSILE_HOOK_TRUNCATE, f.state,
                                 SESSILE_REASON_TURN, &f.result, &err))
            fail_msg("%s", err.message);
    fixture_close(&f);
}

/* ------------------------------------------------------------------ between pipelines */

/* Runs truncate of p on a list n times, one pipeline each; the last run's log. */
static const char *run_again(sessile_policy *p, int n)
{
    static char log[1024];
    for (int i = 0; i < n; i++) {
        fixture f;
        policy_retain(p);
        fixture_open(&f, p, "s u a");
        if (fixture_call(&f, SESSILE_HOOK_TRUNCATE))
            fail_msg("%s", f.err.message);
        snprintf(log, sizeof log, "%s", policy_pipeline_log(f.pipeline));
        fixture_close(&f);
    }
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
        must_have_run(&r);
        assert_string_equal(r.log, wanted);
    }
}

static void test_pairs_and_next_by_the_book(void **state)
{
    (void)state;
    assert_string_equal(
        policies_logged("local t = {10, 20, 30} local n = 0 for k, v in pairs(t) do "
                        "t[k] = nil n = n + v end ctx.log(n, next(t), #t)"),
        "60 nil 0\n");
    assert_string_equal(
        policies_logged("local t = {a=1, b=2, c=3} for k in pairs(t) do t[k] = nil end "
                        "ctx.log(next(t))"),
        "nil\n");
    assert_string_equal(
        policies_logged("for k, v in pairs({}) do ctx.log(k) end ctx.log('end')"),
        "end\n");
    assert_string_equal(
        policies_logged("local t = {x=1, y=2} for k, v in pairs(t) do t.y = nil "
                        "ctx.log(k, v) end"),
        "x 1\n");
    assert_string_equal(
        policies_logged("for k, v in pairs(ctx.session.metadata) do ctx.log(k) end"),
        "project\ntags\n");
    assert_non_null(strstr(policies_refused("pairs({[{}] = 1})"),
                           "a key that is a table has no place"));
    assert_non_null(
        strstr(policies_refused("next({}, 1)"), "next takes one argument here"));
    assert_non_null(strstr(policies_refused("pairs(nil)"), "table expected"));
}

static void test_sort_is_stable_and_total(void **state)
{
    (void)state;
    assert_string_equal(
        policies_logged(
            "local t = {} for i = 1, 300 do t[i] = {k = i * 7 % 5, i = i} end\n"
            "table.sort(t, function(a, b) return a.k < b.k end)\n"
            "for i = 2, #t do assert(t[i-1].k < t[i].k or (t[i-1].k == t[i].k "
            "and t[i-1].i < t[i].i)) end ctx.log(#t)"),
        "300\n");
    assert_string_equal(
        policies_logged(
            "local t = {3, 1, 2} table.sort(t) ctx.log(table.concat(t, ' '))"),
        "1 2 3\n");
    assert_string_equal(policies_logged("local t = {'b', 'a', 'B', ''} table.sort(t) "
                                        "ctx.log(table.concat(t, '|'))"),
                        "|B|a|b\n");
    assert_string_equal(
        policies_logged(
            "for n = 0, 40 do local t = {} for i = 1, n do t[i] = i * 17 % 41 end "
            "table.sort(t) for i = 2, n do assert(t[i-1] < t[i]) end end"),
        "");
    /* a comparison that lies harms nobody else */
    assert_string_equal(
        policies_logged(
            "local t = {3, 1, 2, 5, 4} table.sort(t, function() return true end) "
            "local n = 0 for _, v in ipairs(t) do n = n + v end ctx.log(#t, n)"),
        "5 15\n");
    assert_non_null(
        strstr(policies_refused("table.sort({1, 'x'})"), "attempt to compare"));
}

static void test_text_has_no_addresses(void **state)
{
    (void)state;
    assert_string_equal(
        policies_logged("ctx.log({}, print, ctx.log, state, state.messages, ctx, nil, "
                        "state.messages[1], tostring(1.5), tostring('x'))"),
        "table nil function state 5 messages ctx nil message 00000001 1.5 x\n");
    assert_string_equal(
        policies_logged("ctx.log(('%s %s %5s|%d %%s'):format({}, ctx.log, 'a', 3))"),
        "table function     a|3 %s\n");
    assert_string_equal(
        policies_logged(
            "ctx.log(setmetatable({}, {__tostring = function() return 'T' end}), "
            "('%s'):format(setmetatable({}, {__tostring = function() return 'F' "
            "end})))"),
        "T F\n");
    assert_non_null(
        strstr(policies_refused("('%p'):format({})"), "%p is not for policies"));
    assert_non_null(strstr(policies_refused("local x = {} .. 'a'"),
                           "attempt to concatenate a table"));
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
        policies_logged("ctx.log(0.5, ('%.2f'):format(1.25), tonumber('0.25'), 1e100, "
                        "tonumber('0,25'))"),
        "0.5 1.25 0.25 1e+100 nil\n");
    assert_string_equal(policies_logged("state.vars.x = 0.5"), "");
    {
        char shown[16]; /* and the host has its own again */
        snprintf(shown, sizeof shown, "%.1f", 0.5);
        assert_string_equal(shown, "0,5");
    }
    locale_as_before();
}

static void test_time_in_lua_is_told(void **state)
{
    fixture f;
    (void)state;
    fixture_load(&f, "slow", "return { truncate = function() for i = 1, 1e6 do end end }",
                 "s u", NULL);
    assert_int_equal(policy_pipeline_us(f.pipeline), 0);
    assert_int_equal(fixture_call(&f, SESSILE_HOOK_TRUNCATE), SESSILE_OK);
    assert_true(policy_pipeline_us(f.pipeline) > 100);
    fixture_close(&f);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
