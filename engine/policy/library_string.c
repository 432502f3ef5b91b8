/*
 * library_string.c: string and utf8 functions that take their charge before they work
 * (those with patterns are in library_match.c).
 *
 * Owns the bound on what one call can cost: the hook that counts instructions does not
 * see what happens inside a C function. Must never pass a value with an address in its
 * text on to string.format, nor more work than was paid for.
 */
#include "policy/environment.h"

#include <stdint.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/vm.h"

/* Calls Lua's own function after taking n from the gas. */
static int stock(lua_State *L, stock_function which, uint64_t n)
{
    vm_charge(L, n + 1);
    return vm_of(L)->stock[which](L);
}

static size_t size_of(lua_State *L, int arg)
{
    return lua_type(L, arg) == LUA_TSTRING ? lua_rawlen(L, arg) : 0;
}

/* How many bytes a range i..j of a string of that size has, by Lua's rules for ends. */
static uint64_t range_of(lua_State *L, int first_arg, lua_Integer i, lua_Integer j,
                         size_t size)
{
    if (!lua_isnoneornil(L, first_arg))
        i = lua_tointeger(L, first_arg); /* 0 when it is none: Lua's own complains */
    if (!lua_isnoneornil(L, first_arg + 1))
        j = lua_tointeger(L, first_arg + 1);
    else if (j == 0)
        j = i;
    if (i < 0)
        i = i < -(lua_Integer)size ? 1 : (lua_Integer)size + i + 1;
    if (i < 1)
        i = 1;
    if (j < 0)
        j = j < -(lua_Integer)size ? 0 : (lua_Integer)size + j + 1;
    if (j > (lua_Integer)size)
        j = (lua_Integer)size;
    return j < i ? 0 : (uint64_t)j - (uint64_t)i + 1;
}

static int string_byte(lua_State *L)
{
    return stock(L, STOCK_BYTE, range_of(L, 2, 1, 0, size_of(L, 1)));
}

static int string_sub(lua_State *L)
{
    return stock(L, STOCK_SUB, range_of(L, 2, 1, -1, size_of(L, 1)) / 8);
}

static int string_char(lua_State *L)
{
    return stock(L, STOCK_CHAR, (uint64_t)lua_gettop(L));
}

static int string_lower(lua_State *L)
{
    return stock(L, STOCK_LOWER, size_of(L, 1) / 4);
}

static int string_upper(lua_State *L)
{
    return stock(L, STOCK_UPPER, size_of(L, 1) / 4);
}

static int string_reverse(lua_State *L)
{
    return stock(L, STOCK_REVERSE, size_of(L, 1) / 4);
}

static int string_rep(lua_State *L)
{
    size_t size, between_size, total;
    const char *text = luaL_checklstring(L, 1, &size);
    lua_Integer n = luaL_checkinteger(L, 2), i;
    const char *between = luaL_optlstring(L, 3, "", &between_size);
    luaL_Buffer buffer;
    char *out;

    if (n <= 0 || size + between_size == 0) {
        lua_pushliteral(L, "");
        return 1;
    }
    if ((lua_Unsigned)n > vm_of(L)->limits.memory / (size + between_size))
        return luaL_error(
            L, "string.rep: the result would be larger than a policy's memory");
    total = (size_t)n * size + (size_t)(n - 1) * between_size;
    vm_charge(L, total / 16 + (uint64_t)n / 4 + 1);
    out = luaL_buffinitsize(L, &buffer, total);
    for (i = 0; i < n; i++) {
        memcpy(out, text, size);
        out += size;
        if (i < n - 1) {
            memcpy(out, between, between_size);
            out += between_size;
        }
    }
    luaL_pushresultsize(&buffer, total);
    return 1;
}

/*
 * Lua's own format does the formatting. What it would turn into text by itself (%s of a
 * table has its address) is turned into text before, and %p is refused.
 */
static int string_format(lua_State *L)
{
    size_t size;
    const char *at = luaL_checklstring(L, 1, &size), *end = at + size;
    uint64_t cost = size;
    int arg = 1, top = lua_gettop(L);

    while (at < end) {
        if (*at++ != '%')
            continue;
        if (at < end && *at == '%') {
            at++;
            continue;
        }
        while (at < end &&
               (*at == '.' || (*at >= '0' && *at <= '9') || strchr("-+ #", *at)))
            at++;
        if (++arg > top)
            break; /* Lua's own message says which argument is missing */
        if (at < end && *at == 'p')
            return luaL_error(L, "string.format: %%p is not for policies");
        if (at < end && *at == 's') {
            library_text(L, arg, NULL);
            lua_replace(L, arg);
        }
        cost += 4 * size_of(L, arg) + 16;
    }
    lua_settop(L, top);
    return stock(L, STOCK_FORMAT, cost / 4);
}

void library_string(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"byte", string_byte},       {"char", string_char},   {"format", string_format},
        {"lower", string_lower},     {"rep", string_rep},     {"sub", string_sub},
        {"reverse", string_reverse}, {"upper", string_upper}, {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}

/* ------------------------------------------------------------------ utf8 */

static int utf8_char(lua_State *L)
{
    return stock(L, STOCK_UTF8CHAR, (uint64_t)lua_gettop(L));
}

static int utf8_codepoint(lua_State *L)
{
    return stock(L, STOCK_CODEPOINT, range_of(L, 2, 1, 0, size_of(L, 1)));
}

static int utf8_len(lua_State *L)
{
    return stock(L, STOCK_LEN, range_of(L, 2, 1, -1, size_of(L, 1)));
}

/* Walks from its start to the n-th character: at most four bytes each, within the string.
 */
static int utf8_offset(lua_State *L)
{
    size_t size = size_of(L, 1);
    lua_Integer n = lua_isinteger(L, 2) ? lua_tointeger(L, 2) : 0;
    uint64_t steps = n < 0 ? 0 - (uint64_t)n : (uint64_t)n;
    return stock(L, STOCK_OFFSET, steps < size / 4 ? 4 * steps : size);
}

void library_utf8(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"char", utf8_char}, {"codepoint", utf8_codepoint},
        {"len", utf8_len},   {"offset", utf8_offset},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
