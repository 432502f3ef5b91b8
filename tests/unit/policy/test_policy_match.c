/*
 * test_policy_match.c: the matcher of policies against Lua's own, and its bound.
 *
 * Random patterns and subjects over few letters are given to both. They must agree on
 * every result; where Lua's own raises, ours does too (it may refuse a malformed pattern
 * earlier).
 */
#include "policy/vm.h"
#include "support/lists.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <lauxlib.h>
#include <lualib.h>

static vm meter;

static int setup(void **state)
{
    lua_State *L = luaL_newstate();
    memset(&meter, 0, sizeof meter);
    meter.os = &os_posix;
    meter.limits.ms = 600000;
    meter.gas = UINT64_MAX;
    meter.wall_check = UINT64_MAX;
    *(vm **)lua_getextraspace(L) = &meter;
    luaL_openlibs(L);
    lua_newtable(L);
    library_match(L);
    lua_setglobal(L, "ours");
    *state = L;
    return 0;
}

static int teardown(void **state)
{
    lua_close(*state);
    return 0;
}

static void run(lua_State *L, const char *source)
{
    if (luaL_dostring(L, source))
        fail_msg("%s", lua_tostring(L, -1));
}

static void test_by_the_book(void **state)
{
    run(*state,
        "local malformed = {}\n"
        "for _, p in ipairs{'(a', 'a)', '%', '[a', '[a%', '%b', '%ba', '%f', '%fa', "
        "'%1', '(%1)', '%0', "
        "'(()', '[^', '[]', '[^]'} do malformed[p] = true end\n"
        "local function same(name, ...)\n"
        "  local a, b = table.pack(pcall(ours[name], ...)), "
        "table.pack(pcall(string[name], ...))\n"
        "  local text = name\n"
        "  for i = 1, select('#', ...) do local x = select(i, ...)\n"
        "    text = text .. ' ' .. (type(x) == 'string' and ('%q'):format(x) or "
        "tostring(x)) end\n"
        "  if malformed[(select(2, ...))] then return assert(b[1] or not a[1], text) "
        "end\n"
        "  assert(a.n == b.n, text)\n"
        "  for i = 1, a.n do if a[1] or i == 1 then\n"
        "    assert(a[i] == b[i], text .. ': ' .. tostring(a[i]) .. ' ~= ' .. "
        "tostring(b[i])) end end\n"
        "end\n"
        "for _, name in ipairs{'find', 'match', 'gsub'} do\n"
        "  for _, p in ipairs{'', 'a', '^a', 'a$', '^$', '$', 'a*', 'a-', 'a-b', 'a+', "
        "'a?b', '.', '.-',\n"
        "      '(a)(b)', '()a()', '(a*(b*))', '[ab]', '[^ab]', '[a-c]+', '[]]', '[^]]', "
        "'[]-a]', '[a-]',\n"
        "      '[%a_]', '[%w-]', '%a', '%A', '%d+', '%s', '%p', '%u', '%l', '%x', '%c', "
        "'%g', '%w',\n"
        "      '%bab', '%b()', '%f[%a]', '%f[%A]', '(.)%1', '(a)(.)%2%1', '%.', '%%', "
        "'%-', 'a%$',\n"
        "      '^(.-)%s*$', '\\0', '[\\0-\\31]', '[%z]', '(a', 'a)', '%', '[a', '[a%', "
        "'%b', '%ba', '%f',\n"
        "      '%fa', '%1', '(%1)', '%0', '^*', 'a**', '$a', '(()', '[^', '[%a-z]', "
        "'[+--]'} do\n"
        "    for _, s in ipairs{'', 'a', 'b', 'ab', 'aab', 'abab', ' a b ', 'A1_$%.-', "
        "'(a(b)c)', '\\0x',\n"
        "        'aXbYc', '[x]', '^a', 'abcabc', 'aaaa', 'bbb', '   ', '-]a', "
        "'\\200\\255é'} do\n"
        "      same(name, s, p, name == 'gsub' and '<%0>' or 1)\n"
        "      if name == 'gsub' then same(name, s, p, '%1', 2) same(name, s, p, '', 0) "
        "end\n"
        "      if name ~= 'gsub' then for i = -3, 4 do same(name, s, p, i) end end\n"
        "      if name == 'find' and not malformed[p] then same(name, s, p, 1, true) "
        "end\n"
        "    end end end\n"
        "same('gsub', 'abc', '%w', '%%') same('gsub', 'abc', '%w', '%x') same('gsub', "
        "'abc', '%w', '%')\n"
        "same('gsub', 'abc', '(%w)()', '%2%1') same('gsub', 'abc', 'b', {b = 1}) "
        "same('gsub', 'abc', 'b', {})\n"
        "same('gsub', 'abc', '%w', function(c) return c == 'b' and 'X' end)\n"
        "same('gsub', 'abc', '()', function(i) return i end) same('gsub', 'abc', 'b', "
        "print)\n"
        "same('gsub', 'abc', 'b', function() return {} end) same('gsub', 'abc', 'b', "
        "true)\n"
        "same('gsub', 'hello', 'l', 5) same('find', 'abc', 'b', 10) same('find', 123, "
        "2)\n");
}

static void test_gmatch(void **state)
{
    run(*state,
        "local function all(f, ...) local t = {} for a, b in f(...) do t[#t + 1] = "
        "tostring(a) .. '|' .. "
        "tostring(b) end return table.concat(t, ' ') end\n"
        "for _, p in ipairs{'a', '', 'a*', '()', '(a)(b)', '%w+', '^a', '(.)%1', "
        "'%f[%w]%w+', '.-'} do\n"
        "  for _, s in ipairs{'', 'a', 'abab', ' hello world ', 'aab', '^a^a'} do\n"
        "    assert(all(ours.gmatch, s, p) == all(string.gmatch, s, p))\n"
        "    for i = -3, 7 do\n"
        "      local a, b = all(ours.gmatch, s, p, i), all(string.gmatch, s, p, i)\n"
        "      assert(a == b, s .. ' ' .. p .. ' ' .. i .. ': ' .. a .. ' ~= ' .. b)\n"
        "    end end end\n");
}

/* A random pattern over pieces; repetitions are kept few, for Lua's own has no bound. */
static void random_pattern(char *out, size_t size)
{
    static const char *const pieces[] = {"a", "b", ".",     "%a", "%d", "[ab]", "[^a]",
                                         "(", ")", "()",    "%1", "%2", "%bab", "%f[a]",
                                         "$", "^", "[a-b]", "%.", "1",  "c"};
    static const char repeats[] = "*+-?";
    unsigned n = 1 + random_below(7), few = 0;
    out[0] = 0;
    if (random_below(6) == 0)
        strcat(out, "^");
    while (n-- > 0 && strlen(out) + 10 < size) {
        strcat(out, pieces[random_below(20)]);
        if (few < 3 && random_below(3) == 0) {
            strncat(out, &repeats[random_below(4)], 1);
            few++;
        }
    }
}

static void random_subject(char *out, size_t size)
{
    static const char letters[] = "aaabbc1. ";
    size_t n = random_below((uint32_t)size), i;
    for (i = 0; i < n; i++)
        out[i] = letters[random_below(sizeof letters - 1)];
    out[n] = 0;
}

static void test_random_patterns(void **state)
{
    lua_State *L = *state;
    random_start();
    run(L, "function compare(p, s)\n"
           "  for _, name in ipairs{'find', 'match', 'gsub'} do\n"
           "    local x = name == 'gsub' and '<%0>' or 1\n"
           "    local a = table.pack(pcall(ours[name], s, p, x))\n"
           "    local b = table.pack(pcall(string[name], s, p, x))\n"
           "    if a[1] then\n"
           "      assert(a.n == b.n, p .. ' on ' .. s)\n"
           "      for i = 1, a.n do assert(a[i] == b[i], name .. ' ' .. p .. ' on ' .. "
           "s) end\n"
           "    end\n"
           "    if not b[1] then assert(not a[1], name .. ' ' .. p .. ' on ' .. s) end\n"
           "  end end");
    for (int i = 0; i < 20000; i++) {
        char pattern[64], subject[24];
        random_pattern(pattern, sizeof pattern);
        random_subject(subject, sizeof subject);
        lua_getglobal(L, "compare");
        lua_pushstring(L, pattern);
        lua_pushstring(L, subject);
        if (lua_pcall(L, 2, 0, 0) != LUA_OK)
            fail_msg("seed %llu: %s", (unsigned long long)random_seed(),
                     lua_tostring(L, -1));
    }
}

static void test_a_match_without_end_is_stopped(void **state)
{
    static const char *const sources[] = {
        "('a'):rep(40), ('a*'):rep(30) .. 'b'",
        "('a'):rep(40), ('a-'):rep(30) .. 'b'",
        "('a'):rep(40), ('a?'):rep(40) .. 'b'",
        "('a'):rep(2e5), '.-b'",
        "('('):rep(2e5), '%b()'",
        "('x'):rep(1e4), '(.*)(.*)(.*)%3%2%1y'",
    };
    lua_State *L = *state;
    char source[200];
    for (size_t i = 0; i < sizeof sources / sizeof *sources; i++) {
        for (int which = 0; which < 3; which++) {
            static const char *const names[] = {"find", "match", "gsub"};
            meter.gas = 1000000;
            meter.spent = VM_FRESH;
            snprintf(source, sizeof source, "ours.%s(%s%s)", names[which], sources[i],
                     which == 2 ? ", ''" : "");
            if (luaL_dostring(L, source) == LUA_OK)
                fail_msg("%s ended", source);
            assert_int_equal(meter.spent, VM_GAS);
            lua_settop(L, 0);
        }
    }
    meter.gas = UINT64_MAX;
    meter.spent = VM_FRESH;
}

static void test_a_deep_pattern_is_refused(void **state)
{
    run(*state, "local ok, why = pcall(ours.find, ('a'):rep(300), ('a?'):rep(300))\n"
                "assert(not ok and why:find('pattern too complex', 1, true))\n"
                "assert(not pcall(ours.find, 'a', ('()'):rep(33)))\n"
                "assert(ours.find('', ('()'):rep(32)))");
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_by_the_book),
        test(test_gmatch),
        test(test_random_patterns),
        test(test_a_match_without_end_is_stopped),
        test(test_a_deep_pattern_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
