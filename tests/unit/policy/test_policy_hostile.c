/*
 * test_policy_hostile.c: scripts that mean harm, or are merely wrong, and how they end.
 *
 * Each ends with SESSILE_POLICY, within its budget, with the context as it was, and a
 * sentence that names file and line. The host's process is still here afterwards.
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

static const policy_limits tight = {10000000, 300, 16 << 20, 1 << 16};
/* What a store gives unless told otherwise; and the same with gas for ever. */
static const policy_limits usual = {50000000, 500, 64 << 20, 1 << 20};
static const policy_limits endless = {UINT64_MAX, 500, 64 << 20, 1 << 20};

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

static uint64_t cpu_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

/* CPU time that a script may take past its budget. That it ends at all is what is
 * checked; SESSILE_TIMES=1 prints how soon. Instrumented builds are several times slower.
 */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SLACK_MS = 5000 };
#else
enum { SLACK_MS = 1000 };
#endif

typedef struct hostile {
    const char *body;
    const char *says; /* part of the sentence */
} hostile;

static void check_within(const hostile *cases, size_t count, int spent,
                         const policy_limits *limits)
{
    for (size_t i = 0; i < count; i++) {
        uint64_t from = cpu_ms(), took;
        ran r = policies_body_within(cases[i].body, "s u a u a", limits);
        took = cpu_ms() - from;
        if (r.status != SESSILE_POLICY)
            fail_msg("%s: status %d: %s", cases[i].body, r.status, r.err.message);
        if (strncmp(r.err.message, "body.lua:1: ", 12) != 0 ||
            !strstr(r.err.message, cases[i].says))
            fail_msg("%s: %s", cases[i].body, r.err.message);
        if (r.result.spent != spent)
            fail_msg("%s: spent %d: %s", cases[i].body, r.result.spent, r.err.message);
        if (strcmp(r.keys, "1 2 3 4 5") != 0)
            fail_msg("%s: left %s", cases[i].body, r.keys);
        if (took > limits->ms + SLACK_MS)
            fail_msg("%s: took %llu ms", cases[i].body, (unsigned long long)took);
        if (getenv("SESSILE_TIMES"))
            print_message("%4llu ms  %s\n", (unsigned long long)took, cases[i].body);
    }
}

static void check_all(const hostile *cases, size_t count, int spent)
{
    check_within(cases, count, spent, &tight);
}

#define check(cases, spent) check_all(cases, sizeof cases / sizeof *cases, spent)

static void test_loops_end(void **state)
{
    static const hostile cases[] = {
        {"while true do end", "budget"},
        {"repeat until false", "budget"},
        {"for i = 1, math.huge do end", "budget"},
        {"::a:: goto a", "budget"},
        {"while true do pcall(error) end", "budget"},
        {"while true do pcall(error, {}) end", "budget"},
        {"pcall(function() while true do end end) while true do end", "budget"},
        {"local function f() pcall(f) pcall(f) while true do end end f()", "budget"},
        {"local function f() local ok, e = pcall(f) return f() end f()", "budget"},
        {"local function deep(n) if n > 0 then deep(n - 1) end while true do "
         "pcall(error) end end "
         "deep(50000)",
         "budget"},
        {"local t = setmetatable({}, {__index = function(t, k) while true do end end}) "
         "pcall(function() return t.x end)",
         "budget"},
        {"pcall(function() error(setmetatable({}, {__tostring = function() while true do "
         "end "
         "end})) end) while true do end",
         "budget"},
        {"pcall(string.gsub, ('x'):rep(1e5), 'x', function() while true do end end)",
         "budget"},
        {"pcall(table.sort, {3, 2, 1}, function() while true do end end)", "budget"},
        {"for _ in (function() return 1 end) do end", "budget"},
        {"while true do local t = setmetatable({}, {__call = function() end}) t() end",
         "budget"},
        {"state:drop(2, 3) while true do end", "budget"},
        {"while true do state:keep_last(1) end", "budget"},
        {"while true do local m = state.messages[1].content end", "budget"},
        {"while true do state.vars = {} end", "budget"},
        {"while true do ctx.log('x') end", "budget"},
        {"while true do ctx.random(10) end", "budget"},
    };
    (void)state;
    check(cases, 1);
}

static void test_one_call_cannot_work_for_ever(void **state)
{
    static const hostile cases[] = {
        {"table.move({}, 1, 1 << 62, 2)", "budget"},
        {"table.move({}, 1, math.maxinteger - 1, 2, {})", "budget"},
        {"table.move(state.messages, 1, 1 << 62, 1, {})", "budget"},
        {"table.concat(setmetatable({}, {__index = function() return '' end}), '', 1, 1 "
         "<< 62)",
         "budget"},
        {"table.unpack({}, 1, 1e8)", "budget"},
        {"table.unpack({}, -(1 << 62), 1 << 62)", "budget"},
        {"local t = {} for i = 1, 1e5 do t[i] = i end while true do table.insert(t, 1, "
         "0) "
         "table.remove(t, 1) end",
         "budget"},
        {"local t = {} for i = 1, 2e5 do t[i] = i % 7 end while true do table.sort(t, "
         "function(a, b) return a < b end) end",
         "budget"},
        {"('a'):rep(30):find(('a*'):rep(30) .. 'b')", "budget"},
        {"('a'):rep(30):gsub(('a-'):rep(30) .. 'b', '')", "budget"},
        {"for _ in (('x'):rep(1e5)):gmatch('.-.-.-.-y') do end", "budget"},
        {"local s = ('x'):rep(1e6) while true do s:upper() end", "budget"},
        {"local s = ('x'):rep(1e6) while true do s:byte(1, 100000) end", "budget"},
        {"local s = ('x'):rep(1e6) while true do utf8.len(s) end", "budget"},
        {"local s = ('1'):rep(1e6) while true do tonumber(s) end", "budget"},
        {"local s = ('x'):rep(1e6) while true do ('%s'):format(s) end", "budget"},
        {"local s = ('x'):rep(1e6) while true do ctx.count(s) end", "budget"},
        {"local a, b = ('x'):rep(4e6), ('x'):rep(4e6) while true do local c = a == b end",
         "budget"},
        {"local s = ('x'):rep(4e6) while true do local t = s .. 'y' end", "budget"},
        {"local t = {} for i = 1, 1e5 do t[i] = i end for i = 1, 1e5 do t[i] = nil end "
         "while true do next(t) end",
         "budget"},
        {"local big = {} for i = 1, 1e5 do big[i] = i end for i = 1, 1e5 do big[i] = nil "
         "end "
         "local t = {} for i = 1, 1e4 do t[i] = big end while true do state.vars = {x = "
         "t} "
         "pcall(state.insert, state, 6, {content = t}) end",
         "budget"},
        {"local function f(...) while true do select('#', ...) end end "
         "f(table.unpack({}, 1, "
         "1e5))",
         "budget"},
        {"local t = {} for i = 1, 1e5 do t['k' .. i] = i end while true do for k in "
         "pairs(t) do "
         "break end end",
         "budget"},
        {"local s = 'return ' while true do s = s .. s end", "budget"},
    };
    (void)state;
    check(cases, 1);
}

/* Functions that look through each of many large texts, or the whole of one, in one call;
 * instructions that do, a hundred of which were one look at the budget. */
static void test_large_strings_cost_what_they_take(void **state)
{
    static const hostile cases[] = {
        {"local s, t = (' '):rep(15e6) .. '65', {} for i = 1, 2000 do t[i] = s end "
         "string.char(table.unpack(t))",
         "budget"},
        {"local s, t = (' '):rep(15e6) .. '65', {} for i = 1, 2000 do t[i] = s end "
         "utf8.char(table.unpack(t))",
         "budget"},
        {"local s, t = ('\\0'):rep(15e6), {} for i = 1, 2000 do t[i] = s end "
         "math.max(table.unpack(t))",
         "budget"},
        {"local s, t = ('\\0'):rep(15e6), {} for i = 1, 2000 do t[i] = s end "
         "math.min(table.unpack(t))",
         "budget"},
        {"local s, t = ('\\0'):rep(15e6), {} for i = 1, 2000 do t[i] = s end "
         "while true do table.sort(t) end",
         "budget"},
        {"local s, t = ('\\0'):rep(8e6), {} for i = 1, 2000 do t[i] = s end "
         "while true do table.sort(t, function(a, b) return a < b end) end",
         "budget"},
        {"local s = ('\\0'):rep(8e6) local t = s .. 'x' while true do local c = s < t "
         "end",
         "budget"},
        {"local s = '\\0' for i = 1, 23 do s = s .. s end while true do local c = s < s "
         "c = s < s c = s < s c = s < s c = s < s c = s < s c = s < s c = s < s end",
         "budget"},
        {"local s = ('\\0'):rep(1e6) while true do local c = s <= s end", "budget"},
        {"local s = ('\\0'):rep(65000) while true do local c = s <= s end", "budget"},
        {"local s = (' '):rep(15e6) .. '1' while true do local c = s + 1 end", "budget"},
        {"local s = (' '):rep(15e6) .. '1' while true do math.floor(s) end", "budget"},
        {"local s = ('\\x80'):rep(15e6) while true do utf8.offset(s, 0, #s) end",
         "budget"},
        {"local s = 'x' .. ('\\x80'):rep(15e6) while true do utf8.offset(s, 2) end",
         "budget"},
        {"local s = 'x' .. ('\\x80'):rep(15e6) while true do utf8.offset(s, -1) end",
         "budget"},
        {"local f, s = utf8.codes(''), ('\\x80'):rep(15e6) while true do pcall(f, s, 1) "
         "end",
         "budget"},
        {"local f, s = utf8.codes('', true), ('\\x80'):rep(15e6) while true do pcall(f, "
         "s, "
         "1) end",
         "budget"},
    };
    (void)state;
    check_within(cases, sizeof cases / sizeof *cases, 1, &usual);
    check_within(cases, sizeof cases / sizeof *cases, 1, &endless);
}

static void test_no_string_is_beyond_16_mib(void **state)
{
    static const hostile cases[] = {
        {"local s = ('x'):rep(17 << 20)", "[policy_memory]"},
        {"local s = ('x'):rep(9 << 20) s = s .. s", "[policy_memory]"},
        {"local s = ('x'):rep(9 << 20) pcall(table.concat, {s, s})", "[policy_memory]"},
        {"('x'):rep(4 << 20):gsub('x', 'yyyyy')", "[policy_memory]"},
    };
    ran r = policies_body_within("assert(#('x'):rep((16 << 20) - 64) == (16 << 20) - 64)",
                                 "s u", &usual);
    (void)state;
    if (r.status)
        fail_msg("%s", r.err.message);
    check_within(cases, sizeof cases / sizeof *cases, 1, &endless);
}

/* What the functions that are ours by now give is what Lua's gave. */
static void test_charged_functions_do_what_luas_do(void **state)
{
    ran r = policies_body(
        "local s = 'a\\u{e9}\\u{20ac}\\u{1f600}z'\n"
        "local at = {} for i = 1, 6 do at[i] = utf8.offset(s, i) end\n"
        "assert(table.concat(at, ' ') == '1 2 4 7 11 12' and not utf8.offset(s, 7))\n"
        "for i = 1, 5 do assert(utf8.offset(s, -i) == at[6 - i]) end\n"
        "assert(not utf8.offset(s, -6) and utf8.offset(s, 0) == 1)\n"
        "assert(utf8.offset(s, 0, 9) == 7 and utf8.offset(s, 0, -5) == 7)\n"
        "assert(utf8.offset(s, 0, 12) == 12 and utf8.offset(s, 2, 4) == 7)\n"
        "assert(utf8.offset(s, -1, 4) == 2 and utf8.offset('', 1) == 1)\n"
        "assert(utf8.offset('', 0) == 1 and not utf8.offset('', -1))\n"
        "assert(utf8.offset('\\x80\\x80', 0, 2) == 1)\n"
        "assert(not pcall(utf8.offset, s, 1, 3) and not pcall(utf8.offset, s, 1, 14))\n"
        "assert(not pcall(utf8.offset, s, 1, 0) and not pcall(utf8.offset, s, 1, -13))\n"
        "local seen = '' for p, c in utf8.codes(s) do seen = seen .. p .. ':' .. c .. ' "
        "' "
        "end\n"
        "assert(seen == '1:97 2:233 4:8364 7:128512 11:122 ')\n"
        "assert(not pcall(function() for _ in utf8.codes('a\\xff') do end end))\n"
        "assert(string.char('65', 66.0) == 'AB' and utf8.char('8364', 65) == "
        "'\\u{20ac}A')\n"
        "assert(math.max(1, 2.5, -1) == 2.5 and math.min(3) == 3 and math.min(2, 1) == "
        "1)\n"
        "assert(not pcall(math.max))\n"
        "local t = {'b', 'a\\0c', 'a', '', '\\xff', 'a\\0b', 'B', 'ab'} table.sort(t)\n"
        "assert(table.concat(t, ',') == ',B,a,a\\0b,a\\0c,ab,b,\\xff')\n"
        "assert(not pcall(table.sort, {'a', 1}))",
        "s u");
    (void)state;
    if (r.status)
        fail_msg("%s", r.err.message);
}

static void test_memory_is_bounded(void **state)
{
    static const hostile cases[] = {
        {"local t = {} while true do t[#t + 1] = {} end", "budget"},
        {"local t = {} while true do t[#t + 1] = ('x'):rep(1000) .. #t end", "budget"},
        {"local s = 'x' while true do s = s .. s end", "budget"},
        {"local s = 'x' while true do pcall(function() s = s .. s end) end", "budget"},
        {"local function f() return f() + 1 end f()", "budget"},
        {"local function f(n) local t = {n, f} return f({n}) .. '' end f()", "budget"},
        {"local t = {} for i = 1, 1e9 do t['k' .. i] = i end", "budget"},
        {"local f f = function(g) return function() return g end end local x = f while "
         "true do "
         "x = f(x) end",
         "budget"},
        {"string.format(('%s'):rep(60), (table.unpack)((function() local t = {} for i = "
         "1, 60 do "
         "t[i] = ('x'):rep(1e6) end return t end)()))",
         "budget"},
        {"('x'):rep(1e6):gsub('x', ('y'):rep(1e4))", "budget"},
        {"local t = {} for i = 1, 1e6 do t[i] = ('x'):rep(20) end table.concat(t, "
         "('y'):rep(1e5))",
         "budget"},
    };
    (void)state;
    check(cases, 1);
}

static void test_errors_of_every_kind_end(void **state)
{
    static const hostile cases[] = {
        {"error('boom')", "boom"},
        {"error('boom', 0)", "boom"},
        {"error()", "it raised nil"},
        {"error(nil)", "it raised nil"},
        {"error(42)", "it raised 42"},
        {"error(0.5)", "it raised 0.5"},
        {"error(true)", "it raised a boolean"},
        {"error({})", "it raised a table"},
        {"error(print or error)", "it raised a function"},
        {"error(setmetatable({}, {__tostring = error}))", "it raised a table"},
        {"error(setmetatable({}, {__tostring = function() while true do end end}))",
         "it raised a table"},
        {"error(setmetatable({}, {__index = error, __concat = error}))",
         "it raised a table"},
        {"error(state)", "it raised a userdata"},
        {"error(('x'):rep(1e5))", "xxxx"},
        {"error('a\\0b\\27[31m\\n\\255')", "a"},
        {"assert(false)", "assertion failed"},
        {"assert(nil, {})", "it raised a table"},
        {"local x = nil + 1", "arithmetic"},
        {"state:drop(2, 3) error('x')", "x"},
        {"state:replace(2, {role = 'system'})", ""},
        {"tostring(setmetatable({}, {__tostring = function() return {} end}))",
         "'__tostring' must return a string"},
        {"local function f() return pcall(f) end f() error('after')", "after"},
        {"string.rep('x', 1 << 62)", "larger than a policy's memory"},
        {"string.rep('x', 1 << 40, 'y')", "larger than a policy's memory"},
        {"('x'):rep(-1):rep(1e18)() ", "call a string"},
        {"local t = {} t[1] = t return t", ""},
        {"return function() end", "it returned a function"},
        {"return ctx", "it returned another value"},
        {"return {state}", "message 1 of the list is no message (another value)"},
        {"local t = {} t.content = t t.role = 'user' return {t}", "contains itself"},
    };
    (void)state;
    check(cases, 0);
}

/* With all the time in the world: what is written is bounded by itself. */
static void test_writing_for_ever_ends(void **state)
{
    static const policy_limits roomy = {UINT64_C(1) << 40, 60000, 64 << 20, 1 << 16};
    static const hostile cases[] = {
        {"while true do state:insert(6, {content = 'x'}) end", "[policy_result]"},
    };
    (void)state;
    check_within(cases, 1, 0, &roomy);
}

static void test_deep_recursion_ends(void **state)
{
    static const hostile cases[] = {
        {"local function f() f() end f()", ""},
        {"local function f() pcall(f) end f() error('x')", ""},
        {"local t = setmetatable({}, {}) local function f() return t .. t end "
         "setmetatable(t, {__concat = f}) f()",
         ""},
        {"local t = {} setmetatable(t, {__index = function(_, k) return t[k .. 'x'] "
         "end}) "
         "return t.x",
         ""},
        {"local s = 'x' local function f() return s:gsub('x', f) end f()", ""},
        {"local function f(a, b) table.sort({1, 2, 3}, f) return a < b end f(1, 2)", ""},
        {"local t = {} for i = 1, 300 do t = {t} end state.vars = {t = t}",
         "nested deeper"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ran r = policies_body_within(cases[i].body, "s u a", &tight);
        (void)state;
        if (r.status != SESSILE_POLICY || !strstr(r.err.message, cases[i].says))
            fail_msg("%s: status %d: %s", cases[i].body, r.status, r.err.message);
    }
}

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
        check_all(&one, 1, 0);
    }
    /* an endless chain of callable tables was one instruction of 2.5 s */
    {
        static const hostile cases[] = {
            {"local t = {} setmetatable(t, {__call = t}) t()",
             "setmetatable: __call must be a function, got a table"},
            {"setmetatable({}, {__call = state})",
             "setmetatable: __call must be a function, got a userdata"},
        };
        check(cases, 0);
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
    policy_setup s = policies_setup();
    policy_limits limits = {3000000, 10000, 64 << 20, 1 << 20};
    policy_result result;
    policy_pipeline *pl;
    sessile_policy *p;
    sessile_error err;
    sessile_state *st;
    list l;
    int i;
    (void)state;

    policies_write("half",
                   "return { truncate = function() for i = 1, 700000 do end end }");
    assert_int_equal(policies_load(&p, "half", NULL, &limits, &err), SESSILE_OK);
    list_make(&l, "s u");
    st = list_state(&l);
    for (int round = 0; round < 3; round++) {
        assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
        for (i = 0; i < 20; i++)
            if (policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                     SESSILE_REASON_TURN, &result, &err))
                break;
        assert_in_range(i, 2, 5); /* the same in each pipeline: each begins afresh */
        assert_int_equal(result.spent, 1);
        /* once spent it stays spent */
        assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                              SESSILE_REASON_TURN, &result, &err),
                         SESSILE_POLICY);
        assert_int_equal(result.spent, 1);
        policy_pipeline_free(pl);
    }
    state_free(st);
    list_free(&l);
    policy_release(p);
}

/* A VM from the pool has its whole budget again. */
static void test_every_pipeline_has_a_full_budget(void **state)
{
    policy_setup s = policies_setup();
    policy_limits limits = {1000000, 10000, 64 << 20, 1 << 20};
    policy_result result;
    policy_pipeline *pl;
    sessile_policy *p;
    sessile_error err;
    sessile_state *st;
    list l;
    (void)state;

    policies_write("third",
                   "return { truncate = function() for i = 1, 300000 do end end }");
    assert_int_equal(policies_load(&p, "third", NULL, &limits, &err), SESSILE_OK);
    list_make(&l, "s u");
    st = list_state(&l);
    for (int round = 0; round < 10; round++) {
        assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
        if (policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st, SESSILE_REASON_TURN,
                                 &result, &err))
            fail_msg("round %d: %s", round, err.message);
        policy_pipeline_free(pl);
    }
    state_free(st);
    list_free(&l);
    policy_release(p);
}

/* The most that a policy had at one time, as the host's allocator sees it. */
typedef struct watched {
    size_t now, most;
} watched;

static void *watch(void *ud, void *ptr, size_t osize, size_t nsize)
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
    sessile_policy_step step = {"eats", NULL, 0};
    char source[300];
    (void)state;
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++) {
        watched w = {0, 0};
        allocator a = {watch, &w};
        policy_setup s = policies_setup();
        policy_result result;
        policy_pipeline *pl;
        sessile_policy *p;
        sessile_error err;
        sessile_state *st;
        size_t before;
        list l;

        snprintf(source, sizeof source, "return { truncate = function() %s end }",
                 bodies[i]);
        policies_write("eats", source);
        assert_int_equal(policy_load(&p, &step, 1, policies_folder(), &limits, NULL,
                                     &os_posix, &a, &err),
                         SESSILE_OK);
        list_make(&l, "s u");
        st = list_state(&l);
        before = w.now;
        assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
        assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                              SESSILE_REASON_TURN, &result, &err),
                         SESSILE_POLICY);
        assert_string_equal(err.message,
                            "eats.lua:1: it spent its budget of 4194304 bytes of "
                            "memory [policy_memory]");
        assert_true(w.most <= before + limits.memory + 65536);
        policy_pipeline_free(pl);
        state_free(st);
        list_free(&l);
        policy_release(p);
        assert_int_equal(w.now, 0);
    }
}

static void test_time_is_bounded(void **state)
{
    policy_limits limits = {UINT64_MAX, 50, 64 << 20, 1 << 20};
    uint64_t from = cpu_ms();
    ran r = policies_body_within("while true do end", "s u", &limits);
    (void)state;
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_string_equal(r.err.message,
                        "body.lua:1: it spent its budget of 50 ms [policy_ms]");
    assert_in_range(cpu_ms() - from, 45, 50 + SLACK_MS);
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
        assert_int_equal(policies_load(&p, "bad", NULL, &tight, &err), SESSILE_POLICY);
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
    assert_int_equal(policies_load(&p, "bad", NULL, &tight, &err), SESSILE_POLICY);
    memset(source, '{', 100000);
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, &tight, &err), SESSILE_POLICY);
    memset(source, 0, sizeof source);
    strcpy(source, "return {} --[==[");
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, &tight, &err), SESSILE_POLICY);
    source[0] = 0;
    for (int i = 0; i < 300; i++)
        sprintf(source + strlen(source), "local a%d = 1\n", i);
    policies_write("bad", source);
    assert_int_equal(policies_load(&p, "bad", NULL, &tight, &err), SESSILE_POLICY);
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
    check(cases, 0);
}

static void test_a_waiting_script_resumes_its_budget(void **state)
{
    ran r = policies_body_within(
        "pcall(function() ctx.model{messages = {}} while true do end end)", "s u",
        &tight);
    (void)state;
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_int_equal(r.result.spent, 1);
    r = policies_body_within("while true do ctx.model{messages = {}} end", "s u", &tight);
    assert_int_equal(r.status, SESSILE_POLICY);
    assert_int_equal(r.result.spent, 1);
}

/* Runs the hook, answers every request, and counts them. */
static int requests_of(policy_pipeline *pl, sessile_state *st)
{
    sessile_answer yes = {SESSILE_OK, {"yes", 3}, 0};
    policy_result result;
    sessile_error err;
    int asked = 0;
    sessile_status status = policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                                 SESSILE_REASON_TURN, &result, &err);
    for (; status == SESSILE_NEEDS; asked++)
        status = policy_pipeline_answer(pl, &yes, &result, &err);
    if (status)
        fail_msg("%s", err.message);
    return asked;
}

static void test_the_model_is_asked_32_times(void **state)
{
    policy_setup s = policies_setup();
    policy_pipeline *pl;
    sessile_policy *p;
    sessile_error err;
    sessile_state *st;
    list l;
    (void)state;

    policies_write("asks",
                   "local n = 0\n"
                   "return { truncate = function(state, ctx) for i = 1, 20 do n = n + 1\n"
                   "local text, why = ctx.model{messages = {}}\n"
                   "if n <= 32 then assert(text == 'yes') else assert(text == nil and\n"
                   "why == 'a pipeline may ask the model 32 times', why) end end end }");
    p = policies_must_load("asks", NULL);
    list_make(&l, "s u");
    st = list_state(&l);
    for (int round = 0; round < 2; round++) { /* of each pipeline, not of a hook */
        assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
        assert_int_equal(requests_of(pl, st), 20);
        assert_int_equal(requests_of(pl, st), 12);
        assert_int_equal(requests_of(pl, st), 0);
        policy_pipeline_free(pl);
    }
    state_free(st);
    list_free(&l);
    policy_release(p);
}

/* Other sessions' texts do not wait in a VM of the pool. */
static void test_a_vm_full_of_garbage_is_freed(void **state)
{
    static const char *const bodies[] = {"local s = ('x'):rep(3 << 20)", "local s = 'x'"};
    sessile_policy_step step = {"fills", NULL, 0};
    char source[100];
    (void)state;
    for (int i = 0; i < 2; i++) {
        watched w = {0, 0};
        allocator a = {watch, &w};
        policy_setup s = policies_setup();
        policy_result result;
        policy_pipeline *pl;
        sessile_policy *p;
        sessile_error err;
        sessile_state *st;
        size_t before;
        list l;

        snprintf(source, sizeof source, "return { truncate = function() %s end }",
                 bodies[i]);
        policies_write("fills", source);
        assert_int_equal(policy_load(&p, &step, 1, policies_folder(), &usual, NULL,
                                     &os_posix, &a, &err),
                         SESSILE_OK);
        list_make(&l, "s u");
        st = list_state(&l);
        before = w.now;
        assert_int_equal(policy_pipeline_new(&pl, p, &s, &err), SESSILE_OK);
        assert_int_equal(policy_pipeline_call(pl, 0, SESSILE_HOOK_TRUNCATE, st,
                                              SESSILE_REASON_TURN, &result, &err),
                         SESSILE_OK);
        policy_pipeline_free(pl);
        if (i == 0)
            assert_true(w.now < before); /* loading has left it there */
        else
            assert_true(w.now >= before);
        state_free(st);
        list_free(&l);
        policy_release(p);
        assert_int_equal(w.now, 0);
    }
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_loops_end),
        test(test_one_call_cannot_work_for_ever),
        test(test_large_strings_cost_what_they_take),
        test(test_no_string_is_beyond_16_mib),
        test(test_charged_functions_do_what_luas_do),
        test(test_memory_is_bounded),
        test(test_errors_of_every_kind_end),
        test(test_writing_for_ever_ends),
        test(test_deep_recursion_ends),
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
