/*
 * test_policy_walls.c: what a script cannot see or change, what it may spend in all, and
 * what the host is asked for.
 */
#include "support/policies.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "support/hostile.h"

/* CPU time that a script may take past its budget. That it ends at all is what is
 * checked; SESSILE_TIMES=1 prints how soon. Instrumented builds are several times slower.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLACK_MS = 5000 };
#else
enum { SLACK_MS = 1000 };
#endif

/* What is not there cannot be used; what is there is what the design lists. */
static void test_the_environment_is_an_allow_list(void **state)
{
    static const char *const absent[] = {
        "load",        "loadstring",      "loadfile",
        "dofile",      "package",         "io",
        "os",          "debug",           "coroutine",
        "xpcall",      "collectgarbage",  "warn",
        "print",       "getmetatable",    "rawset",
        "_G",          "unpack",          "_VERSION",
        "math.random", "math.randomseed", "string.dump",
        "string.pack", "string.unpack",   "string.packsize",
        "ctx.memory",
    };
    static const char *const present[] = {
        "assert",        "error",
        "ipairs",        "next",
        "pairs",         "pcall",
        "select",        "tonumber",
        "tostring",      "type",
        "rawequal",      "rawlen",
        "rawget",        "setmetatable",
        "math.floor",    "math.huge",
        "string.format", "string.rep",
        "string.find",   "string.gmatch",
        "table.sort",    "table.unpack",
        "table.concat",  "utf8.char",
        "utf8.codes",    "utf8.charpattern",
        "require",
    };
    char body[128];
    (void)state;
    for (size_t i = 0; i < sizeof absent / sizeof *absent; i++) {
        ran r;
        snprintf(body, sizeof body, "assert(%s == nil)", absent[i]);
        r = policies_body(body, "s u");
        if (r.status)
            fail_msg("%s is there: %s", absent[i], r.err.message);
    }
    for (size_t i = 0; i < sizeof present / sizeof *present; i++) {
        ran r;
        snprintf(body, sizeof body, "assert(%s ~= nil)", present[i]);
        r = policies_body(body, "s u");
        if (r.status)
            fail_msg("%s is missing: %s", present[i], r.err.message);
    }
}

static void test_metatables_are_restricted(void **state)
{
    static const char *const names[] = {"__gc",  "__close", "__mode", "__metatable",
                                        "__len", "__pairs", "__name"};
    char body[160], says[64];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        hostile one = {body, says};
        snprintf(body, sizeof body, "setmetatable({}, {%s = function() end})", names[i]);
        snprintf(says, sizeof says, "setmetatable: %s is not for policies", names[i]);
        check_hostile_all(&one, 1, 0);
    }
    /* an endless chain of callable tables was one instruction of 2.5 s */
    {
        static const hostile cases[] = {
            {"local t = {} setmetatable(t, {__call = t}) t()",
             "setmetatable: __call must be a function, got a table"},
            {"setmetatable({}, {__call = state})",
             "setmetatable: __call must be a function, got a userdata"},
        };
        check_hostile(cases, 0);
    }
    /* a metatable is copied: what is added to the script's own later has no effect */
    {
        ran r = policies_body(
            "local mt = {__index = {a = 1}, __gc = nil}\n"
            "local t = setmetatable({}, mt) mt.__gc = function() error('x') end\n"
            "mt.__index = nil mt.__len = function() return 99 end\n"
            "assert(t.a == 1 and #t == 0)\n"
            "local n = setmetatable({}, {__add = function() return 'sum' end, __eq = "
            "function() "
            "return true end, __lt = function() return true end, __unm = function() "
            "return 'neg' "
            "end, __call = function(_, x) return x end})\n"
            "assert(n + 1 == 'sum' and n == setmetatable({}, {__eq = function() return "
            "true end}) "
            "and n < n and -n == 'neg' and n(7) == 7)\n"
            "assert(setmetatable(t, nil) == t and t.a == nil)",
            "s u");
        if (r.status)
            fail_msg("%s", r.err.message);
    }
}

static void test_strings_do_not_lead_to_the_full_library(void **state)
{
    ran r = policies_body(
        "assert(('x').dump == nil and ('x').pack == nil)\n"
        "assert(('x').rep == string.rep and ('x'):rep(2) == 'xx')\n"
        "string.rep = nil assert(('x').rep == nil)\n"
        "string.own = function(s) return s .. '!' end assert(('x'):own() == 'x!')\n"
        "assert('10' + 1 == 11 and '3' * '4' == 12)",
        "s u");
    (void)state;
    if (r.status)
        fail_msg("%s", r.err.message);
}

static void test_ctx_options_cannot_be_changed_through_pairs(void **state)
{
    ran r;
    (void)state;
    policies_write(
        "opts",
        "return { options = { a = {type='table', default={x={1}}} },\n"
        "truncate = function(state, ctx) local o = ctx.options\n"
        "  for k, v in pairs(o) do assert(not pcall(function() v.x = 2 end)) end\n"
        "  assert(not pcall(setmetatable, o, nil))\n"
        "  assert(not pcall(table.insert, o.a.x, 2))\n"
        "  local f, t = pairs(o) assert(t == nil)\n"
        "  local k, v = next(o) assert(k == 'a' and v.x[1] == 1 and #v.x == 1)\n"
        "  ctx.log(o.a.x[1]) end }");
    r = policies_run("opts", NULL, SESSILE_HOOK_TRUNCATE, "s u");
    if (r.status)
        fail_msg("%s", r.err.message);
    assert_string_equal(r.log, "1\n");
}

/* The budget is the pipeline's: the second hook has what the first has left. */
static void test_one_budget_for_all_hooks(void **state)
{
    policy_limits limits = {3000000, 10000, 64 << 20, 1 << 20};
    fixture f;
    int i;
    (void)state;

    fixture_load(&f, "half",
                 "return { truncate = function() for i = 1, 700000 do end end }", "s u",
                 &limits);
    for (int round = 0; round < 3; round++) {
        fixture_new_pipeline(&f);
        for (i = 0; i < 20 && !fixture_call(&f, SESSILE_HOOK_TRUNCATE); i++)
            ;
        assert_in_range(i, 2, 5); /* the same in each pipeline */
        assert_int_equal(f.result.spent, 1);
        /* once spent it stays spent */
        assert_int_equal(fixture_call(&f, SESSILE_HOOK_TRUNCATE), SESSILE_POLICY);
        assert_int_equal(f.result.spent, 1);
    }
    fixture_close(&f);
}

/* A VM from the pool has its whole budget again. */
static void test_every_pipeline_has_a_full_budget(void **state)
{
    policy_limits limits = {1000000, 10000, 64 << 20, 1 << 20};
    fixture f;
    (void)state;

    fixture_load(&f, "third",
                 "return { truncate = function() for i = 1, 300000 do end end }", "s u",
                 &limits);
    for (int round = 0; round < 10; round++) {
        fixture_new_pipeline(&f);
        if (fixture_call(&f, SESSILE_HOOK_TRUNCATE))
            fail_msg("round %d: %s", round, f.err.message);
    }
    fixture_close(&f);
}

/* The most that a policy had at one time, as the host's allocator sees it. */
typedef struct watched {
    size_t now, most;
} watched;

static void *watch_memory(void *ud, void *ptr, size_t osize, size_t nsize)
{
    watched *w = ud;
    void *block;
    if (nsize == 0) {
        w->now -= ptr ? osize : 0;
        free(ptr);
        return NULL;
    }
    block = realloc(ptr, nsize);
    w->now += nsize - (ptr ? osize : 0);
    w->most = w->now > w->most ? w->now : w->most;
    return block;
}

/* Loads a policy with that body as its truncate; its memory is watched by w. */
static sessile_policy *load_watched(watched *w, const char *body,
                                    const policy_limits *limits)
{
    allocator a = {watch_memory, w};
    sessile_policy_step step = {"watched", NULL, 0};
    sessile_policy *p;
    sessile_error err;
    char source[300];

    snprintf(source, sizeof source, "return { truncate = function() %s end }", body);
    policies_write("watched", source);
    assert_int_equal(
        policy_load(&p, &step, 1, policies_folder(), limits, NULL, &os_posix, &a, &err),
        SESSILE_OK);
    return p;
}

static void test_the_host_never_gives_more_than_the_limit(void **state)
{
    static const char *const bodies[] = {
        "local s = ('x'):rep(1500000) local t = s .. s .. s .. s return #t",
        "local s = ('x'):rep(1500000) pcall(function() return s .. s .. s .. s end) s = "
        "s .. s",
        "local t = {} for i = 1, 1e9 do t[i] = i end",
        "local t = {} while true do t[#t + 1] = {} end",
    };
    policy_limits limits = {UINT64_MAX, 2000, 4 << 20, 1 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        watched w = {0, 0};
        sessile_policy *p = load_watched(&w, bodies[i], &limits);
        size_t before = w.now;
        fixture f;

        fixture_open(&f, p, "s u");
        assert_int_equal(fixture_call(&f, SESSILE_HOOK_TRUNCATE), SESSILE_POLICY);
        assert_string_equal(f.err.message,
                            "watched.lua:1: it spent its budget of 4194304 bytes of "
                            "memory [policy_memory]");
        assert_true(w.most <= before + limits.memory + 65536);
        fixture_close(&f);
        assert_int_equal(w.now, 0);
    }
}

static void test_time_is_bounded(void **state)
{
    policy_limits limits = {UINT64_MAX, 50, 64 << 20, 1 << 20};
    uint64_t from = thread_cpu_ms();
    ran r = policies_body_within("while true do end", "s u", &limits);
    (void)state;
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_string_equal(r.err.message,
                        "body.lua:1: it spent its budget of 50 ms [policy_ms]");
    assert_in_range(thread_cpu_ms() - from, 45, 50 + SLACK_MS);
    r = policies_body_within("local a = ('a'):rep(40) while true do pcall(a.find, a, "
                             "('a-'):rep(30) .. 'b') end",
                             "s u", &limits);
    assert_string_equal(r.err.message,
                        "body.lua:1: it spent its budget of 50 ms [policy_ms]");
}

static void test_loading_is_under_the_budget(void **state)
{
    static const char *const sources[] = {
        "while true do end",
        "local t = {} while true do t[#t + 1] = {} end",
        "return ('a'):rep(30):find(('a*'):rep(30) .. 'b')",
        "local function f() return f() + 1 end return f()",
    };
    sessile_policy *p;
    sessile_error err;
    (void)state;
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        policies_write("bad", sources[i]);
        assert_int_equal(policies_load(&p, "bad", NULL, &limits_tight, &err),
                         SESSILE_POLICY);
        if (!strstr(err.message, "budget"))
            fail_msg("%s", err.message);
    }
}

static void test_source_that_is_hard_to_compile(void **state)
{
    static char source[200000];
    sessile_policy *p;
    sessile_error err;
    (void)state;
    memset(source, '(', 100000);
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, &limits_tight, &err), SESSILE_POLICY);
    memset(source, '{', 100000);
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, &limits_tight, &err), SESSILE_POLICY);
    memset(source, 0, sizeof source);
    strcpy(source, "return {} --[==[");
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, &limits_tight, &err), SESSILE_POLICY);
    source[0] = 0;
    for (int i = 0; i < 300; i++)
        sprintf(source + strlen(source), "local a%d = 1\n", i);
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, &limits_tight, &err), SESSILE_POLICY);
    assert_non_null(strstr(err.message, "bad.lua:"));
}

/* The answer of a model is measured before a script sees it, the request before it
 * leaves. */
static void test_what_leaves_is_bounded(void **state)
{
    static const hostile cases[] = {
        {"ctx.model{messages = {{role = 'user', content = ('x'):rep(70000)}}}",
         "the JSON text would be too long"},
    };
    (void)state;
    check_hostile(cases, 0);
}

static void test_a_waiting_script_resumes_its_budget(void **state)
{
    ran r = policies_body_within(
        "pcall(function() ctx.model{messages = {}} while true do end end)", "s u",
        &limits_tight);
    (void)state;
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_int_equal(r.result.spent, 1);
    r = policies_body_within("while true do ctx.model{messages = {}} end", "s u",
                             &limits_tight);
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_int_equal(r.result.spent, 1);
}

/* Runs the hook, answers every request, and counts them. */
static int requests_of(fixture *f)
{
    sessile_answer yes = {SESSILE_OK, {"yes", 3}, 0};
    int asked = 0;
    sessile_status status = fixture_call(f, SESSILE_HOOK_TRUNCATE);
    for (; status == SESSILE_NEEDS; asked++)
        status = policy_pipeline_answer(f->pipeline, &yes, &f->result, &f->err);
    if (status)
        fail_msg("%s", f->err.message);
    return asked;
}

static void test_the_model_is_asked_32_times(void **state)
{
    fixture f;
    (void)state;

    fixture_load(&f, "asks",
                 "local n = 0\n"
                 "return { truncate = function(state, ctx) for i = 1, 20 do n = n + 1\n"
                 "local text, why = ctx.model{messages = {}}\n"
                 "if n <= 32 then assert(text == 'yes') else assert(text == nil and\n"
                 "why == 'a pipeline may ask the model 32 times', why) end end end }",
                 "s u", NULL);
    for (int round = 0; round < 2; round++) { /* of each pipeline, not of a hook */
        fixture_new_pipeline(&f);
        assert_int_equal(requests_of(&f), 20);
        assert_int_equal(requests_of(&f), 12);
        assert_int_equal(requests_of(&f), 0);
    }
    fixture_close(&f);
}

/* Other sessions' texts do not wait in a VM of the pool. */
static void test_a_vm_full_of_garbage_is_freed(void **state)
{
    static const char *const bodies[] = {"local s = ('x'):rep(3 << 20)", "local s = 'x'"};
    (void)state;
    for (int i = 0; i < 2; i++) {
        watched w = {0, 0};
        sessile_policy *p = load_watched(&w, bodies[i], &limits_usual);
        size_t before = w.now;
        fixture f;

        fixture_open(&f, p, "s u");
        assert_int_equal(fixture_call(&f, SESSILE_HOOK_TRUNCATE), SESSILE_OK);
        fixture_end_pipeline(&f);
        if (i == 0)
            assert_true(w.now < before); /* loading has left it there */
        else
            assert_true(w.now >= before);
        fixture_close(&f);
        assert_int_equal(w.now, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_the_environment_is_an_allow_list),
        test(test_metatables_are_restricted),
        test(test_strings_do_not_lead_to_the_full_library),
        test(test_ctx_options_cannot_be_changed_through_pairs),
        test(test_one_budget_for_all_hooks),
        test(test_every_pipeline_has_a_full_budget),
        test(test_the_host_never_gives_more_than_the_limit),
        test(test_time_is_bounded),
        test(test_loading_is_under_the_budget),
        test(test_source_that_is_hard_to_compile),
        test(test_what_leaves_is_bounded),
        test(test_a_waiting_script_resumes_its_budget),
        test(test_the_model_is_asked_32_times),
        test(test_a_vm_full_of_garbage_is_freed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
