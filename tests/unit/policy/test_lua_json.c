/*
 * test_lua_json.c: Lua values to JSON and back, and what cannot be JSON.
 *
 * `to(source)` is the JSON of a Lua expression; `there_and_back(text)` is JSON read and
 * written again.
 */
#include "policy/lua_json.h"
#include "support/policies.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>
#include <lualib.h>

static int mark(lua_State *L)
{
    lua_json_mark_array(L, 1);
    lua_settop(L, 1);
    return 1;
}

static int freeze(lua_State *L)
{
    lua_json_freeze(L, 1);
    lua_settop(L, 1);
    return 1;
}

static int verbatim(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    lua_json_verbatim(L, text, size);
    return 1;
}

static int setup(void **state)
{
    lua_State *L = luaL_newstate();
    luaL_openlibs(L);
    lua_json_open(L);
    lua_json_open(L); /* idempotent */
    lua_register(L, "array", mark);
    lua_register(L, "freeze", freeze);
    lua_register(L, "verbatim", verbatim);
    lua_pushlightuserdata(L, NULL);
    lua_setglobal(L, "null");
    *state = L;
    return 0;
}

static int teardown(void **state)
{
    lua_close(*state);
    return 0;
}

static int last_ok;

static const char *text_of(lua_State *L, const char *source, int message, size_t most)
{
    lua_settop(L, 0);
    lua_pushfstring(L, "return %s", source);
    if (luaL_dostring(L, lua_tostring(L, 1)))
        fail_msg("%s", lua_tostring(L, -1));
    last_ok = lua_json_text(L, 2, message, most);
    assert_int_equal(lua_gettop(L), 3);
    return lua_tostring(L, -1);
}

static const char *to(lua_State *L, const char *source)
{
    return text_of(L, source, 0, 1 << 20);
}

static const char *there_and_back(lua_State *L, const char *text)
{
    lua_settop(L, 0);
    lua_json_push(L, text, strlen(text));
    assert_int_equal(lua_gettop(L), 1);
    assert_int_equal(lua_json_text(L, 1, 0, 1 << 20), 1);
    return lua_tostring(L, -1);
}

static void test_scalars(void **state)
{
    lua_State *L = *state;
    assert_string_equal(to(L, "true"), "true");
    assert_string_equal(to(L, "null"), "null");
    assert_string_equal(to(L, "'a\\0b'"), "\"a\\u0000b\"");
    assert_string_equal(to(L, "'\"\\\\\\n\\t\\r\\b\\f\\x7f'"),
                        "\"\\\"\\\\\\n\\t\\r\\b\\f\x7f\"");
    assert_string_equal(to(L, "'é😀'"), "\"é😀\"");
}

static void test_numbers_keep_their_value(void **state)
{
    lua_State *L = *state;
    static const char *const texts[] = {
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        "0.1",
        "-2.5e-07",
        "1e+300",
        "5e-324",
        "2.2250738585072014e-308",
        "1.7976931348623157e+308",
        "123456789.12345679",
        "0.30000000000000004",
        "-0.0",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(there_and_back(L, texts[i]), texts[i]);
    /* beyond 64 bits: the nearest float */
    assert_string_equal(there_and_back(L, "18446744073709551616"),
                        "1.8446744073709552e+19");
    assert_string_equal(there_and_back(L, "1E2"), "100");
    lua_settop(L, 0);
    lua_json_push(L, "7", 1);
    assert_true(lua_isinteger(L, 1));
    lua_json_push(L, "7.0", 3);
    assert_false(lua_isinteger(L, 2));
    assert_true(lua_tonumber(L, 2) == 7.0);
}

static void test_every_float_reads_back_the_same(void **state)
{
    lua_State *L = *state;
    uint64_t bits = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        double n;
        size_t size;
        const char *text;
        bits ^= bits << 13;
        bits ^= bits >> 7;
        bits ^= bits << 17;
        memcpy(&n, &bits, sizeof n);
        if (n - n != 0) /* NaN or an infinity */
            continue;
        lua_settop(L, 0);
        lua_pushnumber(L, n);
        assert_int_equal(lua_json_text(L, 1, 0, 100), 1);
        text = lua_tolstring(L, -1, &size);
        lua_json_push(L, text, size);
        assert_true(lua_tonumber(L, -1) == n);
    }
}

static void test_arrays_and_objects(void **state)
{
    lua_State *L = *state;
    assert_string_equal(to(L, "{}"), "{}");
    assert_string_equal(to(L, "array{}"), "[]");
    assert_string_equal(to(L, "{1, 'a', {true}}"), "[1,\"a\",[true]]");
    assert_string_equal(to(L, "{[2]='b', [1]='a'}"), "[\"a\",\"b\"]");
    assert_string_equal(to(L, "{b=1, a=2, ab=3, ['']=0, B=4}"),
                        "{\"\":0,\"B\":4,\"a\":2,\"ab\":3,\"b\":1}");
    assert_string_equal(to(L, "verbatim '{\"z\":1,\"a\":[ ]}'"), "{\"z\":1,\"a\":[ ]}");
    assert_string_equal(to(L, "{x = verbatim '1e2'}"), "{\"x\":1e2}");
    assert_string_equal(to(L, "freeze{b={1,2}, a=freeze{c=1}}"),
                        "{\"a\":{\"c\":1},\"b\":[1,2]}");
}

static void test_round_trips_keep_empty_arrays(void **state)
{
    lua_State *L = *state;
    static const char *const texts[] = {
        "[]",
        "{}",
        "[[],{},[[]]]",
        "{\"a\":[],\"b\":{}}",
        "[1,[2,[3,{\"x\":[null]}]]]",
        "{\"content\":[{\"text\":\"hi\",\"type\":\"text\"}],\"role\":\"user\"}",
    };
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        assert_string_equal(there_and_back(L, texts[i]), texts[i]);
}

static void test_escapes_are_decoded(void **state)
{
    lua_State *L = *state;
    assert_string_equal(there_and_back(L, "\"\\u0041\\/\\u00e9\\ud83d\\ude00\""),
                        "\"A/é😀\"");
    assert_string_equal(there_and_back(L, "\"\\ud83dx\\ude00\""),
                        "\"\xef\xbf\xbdx\xef\xbf\xbd\"");
    assert_string_equal(there_and_back(L, "{\"\\u0061\":1}"), "{\"a\":1}");
    assert_string_equal(there_and_back(L, "\"\\\\\\\"\""), "\"\\\\\\\"\"");
}

static void test_a_later_duplicate_wins(void **state)
{
    assert_string_equal(there_and_back(*state, "{\"a\":1,\"b\":2,\"a\":3}"),
                        "{\"a\":3,\"b\":2}");
}

static void check_member(lua_State *L, const char *text, const char *name,
                         const char *wanted)
{
    lua_settop(L, 0);
    lua_json_push_member(L, text, strlen(text), name);
    assert_int_equal(lua_gettop(L), 1);
    if (!wanted) {
        assert_true(lua_isnil(L, 1));
        return;
    }
    lua_json_text(L, 1, 0, 1000);
    assert_string_equal(lua_tostring(L, -1), wanted);
}

static void test_one_member_is_read_alone(void **state)
{
    lua_State *L = *state;
    const char *text =
        "{\"s\":\"]}\\\"{\",\"n\":-1.5e3,\"o\":{\"x\":[1,\"}\"]},\"t\":true,"
        "\"\\u006b\":[2],\"z\":null}";
    check_member(L, text, "s", "\"]}\\\"{\"");
    check_member(L, text, "n", "-1500");
    check_member(L, text, "o", "{\"x\":[1,\"}\"]}");
    check_member(L, text, "t", "true");
    check_member(L, text, "k", "[2]");
    check_member(L, text, "z", "null");
    check_member(L, text, "x", NULL);
    check_member(L, "[1]", "x", NULL);
    check_member(L, "{}", "x", NULL);
}

static void refuses(lua_State *L, const char *source, const char *sentence)
{
    const char *text = to(L, source);
    assert_int_equal(last_ok, 0);
    assert_string_equal(text, sentence);
}

static void test_what_cannot_be_json_is_named(void **state)
{
    lua_State *L = *state;
    refuses(L, "0/0", "NaN cannot be JSON");
    refuses(L, "-1/0", "an infinity cannot be JSON");
    refuses(L, "{metadata = {x = print}}", "metadata.x: a function cannot be JSON");
    refuses(L, "{{1, {io.stdout}}}", "[1][2][1]: a userdata cannot be JSON");
    refuses(L, "{list = {1, nil, 3}}", "list: a list with holes cannot be JSON");
    refuses(L, "{1, x = 2}",
            "a table that is a list and has named fields cannot be JSON");
    refuses(L, "(function() local a = array{}; a.x = 1; return {a = a} end)()",
            "a: a table that is a list and has named fields cannot be JSON");
    refuses(L, "{[0] = 1}", "a key that is no name and no position cannot be JSON");
    refuses(L, "{[1.5] = 1}", "a key that is no name and no position cannot be JSON");
    refuses(L, "{[true] = 1}", "a key that is no name and no position cannot be JSON");
    refuses(L, "(function() local t = {}; t.a = {t}; return t end)()",
            "a[1]: a table that contains itself cannot be JSON");
    refuses(
        L,
        "(function() local t = {} for i = 1, 1008 do t = {t} end return {x = t} end)()",
        "x[1][1][1][1][1][1][1][1][1][1][1]…: it is nested deeper than any message may "
        "be: flatten it");
}

static void test_shared_tables_are_no_cycle(void **state)
{
    assert_string_equal(to(*state, "(function() local t = {1} return {t, t, {t}} end)()"),
                        "[[1],[1],[[1]]]");
}

static void test_nesting_of_1008_is_written(void **state)
{
    to(*state, "(function() local t = {} for i = 1, 1007 do t = {t} end return t end)()");
    assert_int_equal(last_ok, 1);
}

static void test_text_is_bounded(void **state)
{
    lua_State *L = *state;
    text_of(L, "('x'):rep(98)", 0, 100);
    assert_int_equal(last_ok, 1);
    assert_string_equal(text_of(L, "{a = ('x'):rep(98)}", 0, 100),
                        "a: the JSON text would be too long");
    assert_int_equal(last_ok, 0);
    /* a graph whose text is exponential */
    text_of(L, "(function() local t = {} for i = 1, 60 do t = {t, t} end return t end)()",
            0, 1 << 16);
    assert_int_equal(last_ok, 0);
}

static void test_empty_content_of_a_message_is_a_list(void **state)
{
    lua_State *L = *state;
    assert_string_equal(
        text_of(L, "{content={}, tool_calls={}, metadata={content={}}}", 1, 999),
        "{\"content\":[],\"metadata\":{\"content\":{}},\"tool_calls\":[]}");
    assert_string_equal(text_of(L, "{content={}}", 0, 999), "{\"content\":{}}");
}

static void test_no_metamethod_runs(void **state)
{
    assert_string_equal(
        to(*state, "setmetatable({a=1}, {__index=error, __pairs=error, __len=error})"),
        "{\"a\":1}");
}

static void test_frozen_tables_read_and_refuse(void **state)
{
    lua_State *L = *state;
    lua_settop(L, 0);
    assert_int_equal(
        luaL_dostring(L, "local f = freeze{a = {1, 2}, b = 3}\n"
                         "assert(f.b == 3 and #f.a == 2 and f.a[2] == 2 and f.x == nil)\n"
                         "assert(type(f) == 'table')\n"
                         "assert(not pcall(function() f.b = 4 end))\n"
                         "assert(not pcall(function() f.a[3] = 4 end))\n"
                         "assert(f.b == 3 and #f.a == 2)"),
        0);
}

static void test_keys_are_sorted_by_bytes(void **state)
{
    lua_State *L = *state;
    lua_settop(L, 0);
    assert_int_equal(
        luaL_dostring(L, "return {b=1, a=1, ['a\\0']=1, B=1, [1]=1, ['é']=1}"), 0);
    lua_json_keys(L, 1);
    assert_int_equal(lua_json_text(L, 2, 0, 999), 1);
    assert_string_equal(lua_tostring(L, -1), "[\"B\",\"a\",\"a\\u0000\",\"b\",\"é\"]");
}

/* Truncated or garbled text raises, and never reads beyond its end. */
static int push_text(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    lua_json_push(L, text, size);
    lua_json_push_member(L, text, size, "zz");
    return 0;
}

static void test_broken_text_raises(void **state)
{
    lua_State *L = *state;
    const char *text =
        "{\"a\":[1,2.5e1,\"x\\u00e9\\n\",null,true],\"b\":{\"c\":\"\\\\\"}}";
    char *copy;
    for (size_t n = 0; n < strlen(text); n++) {
        lua_settop(L, 0);
        copy = test_malloc(n ? n : 1); /* so that one byte too far is seen */
        memcpy(copy, text, n);
        lua_pushcfunction(L, push_text);
        lua_pushlstring(L, copy, n);
        assert_int_equal(lua_pcall(L, 1, 0, 0), LUA_ERRRUN);
        test_free(copy);
    }
}

static void test_a_foreign_decimal_point_changes_nothing(void **state)
{
    char shown[16];
    if (!locale_with_comma())
        skip();
    snprintf(shown, sizeof shown, "%.1f", 0.5);
    assert_string_equal(shown, "0,5");
    assert_string_equal(there_and_back(*state, "[0.5,-2.5e-07]"), "[0.5,-2.5e-07]");
    locale_as_before();
}

#define test(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test(test_scalars),
        test(test_numbers_keep_their_value),
        test(test_every_float_reads_back_the_same),
        test(test_arrays_and_objects),
        test(test_round_trips_keep_empty_arrays),
        test(test_escapes_are_decoded),
        test(test_a_later_duplicate_wins),
        test(test_one_member_is_read_alone),
        test(test_what_cannot_be_json_is_named),
        test(test_shared_tables_are_no_cycle),
        test(test_nesting_of_1008_is_written),
        test(test_text_is_bounded),
        test(test_empty_content_of_a_message_is_a_list),
        test(test_no_metamethod_runs),
        test(test_frozen_tables_read_and_refuse),
        test(test_keys_are_sorted_by_bytes),
        test(test_broken_text_raises),
        test(test_a_foreign_decimal_point_changes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
