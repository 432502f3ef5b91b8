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
#include "support/hostile.h"

static const policy_limits limits_endless = {UINT64_MAX, 500, 64 << 20, 1 << 20};
/* Where memory is the limit that is looked at, however slow the machine is. */
static const policy_limits limits_patient = {UINT64_MAX, 60000, 64 << 20, 1 << 20};

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
    check_hostile(cases, 1);
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
    check_hostile(cases, 1);
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
    check_hostile_within(cases, sizeof cases / sizeof *cases, 1, &limits_usual);
    check_hostile_within(cases, sizeof cases / sizeof *cases, 1, &limits_endless);
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
                                 "s u", &limits_patient);
    (void)state;
    if (r.status)
        fail_msg("%s", r.err.message);
    check_hostile_within(cases, sizeof cases / sizeof *cases, 1, &limits_patient);
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
    check_hostile(cases, 1);
}

static void test_errors_of_every_kind_end(void **state)
{
    static const hostile cases[] = {
        {"error('boom')", "boom"},
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
    check_hostile(cases, 0);
}

/* A text that is raised with level 0 is for the user: it has no position before it. */
static void test_a_sentence_is_told_as_it_is(void **state)
{
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"error('no key: set one', 0)", "no key: set one"},
        {"pcall(error, 'a', 0) error('b')", "body.lua:1: b"},
        {"local ok, why = pcall(error, 'a', 0) error(why)", "body.lua:1: a"},
        {"error('boom', 1)", "body.lua:1: boom"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        ran r = policies_body_within(cases[i].body, "s u a", &limits_usual);
        assert_int_equal(r.status, SESSILE_POLICY);
        assert_string_equal(r.err.message, cases[i].says);
    }
}

/* With all the time in the world: what is written is bounded by itself. */
static void test_writing_for_ever_ends(void **state)
{
    static const policy_limits roomy = {UINT64_C(1) << 40, 60000, 64 << 20, 1 << 16};
    static const hostile cases[] = {
        {"while true do state:insert(6, {content = 'x'}) end", "[policy_result]"},
    };
    (void)state;
    check_hostile_within(cases, 1, 0, &roomy);
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
        ran r = policies_body_within(cases[i].body, "s u a", &limits_tight);
        (void)state;
        if (r.status != SESSILE_POLICY || !strstr(r.err.message, cases[i].says))
            fail_msg("%s: status %d: %s", cases[i].body, r.status, r.err.message);
    }
}

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
        test(test_a_sentence_is_told_as_it_is),
        test(test_writing_for_ever_ends),
        test(test_deep_recursion_ends),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
