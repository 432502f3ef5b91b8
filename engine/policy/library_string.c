/*
 * library_string.c: string and utf8 functions that take their charge before they work.
 * Those with patterns are in library_match.c.
 *
 * Owns the limit on what one call can cost: the hook that counts instructions does not
 * run inside a C function. Must never pass a value whose text contains an address to
 * string.format, nor do more work than was charged.
 */
#include "policy/environment.h"

#include <stdint.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/vm.h"

/* The number of bytes in the range i..j of a string of that size, by Lua's rules. */
static uint64_t range_of(lua_State *L, int first_arg, lua_Integer i, lua_Integer j,
                         size_t size)
{
    if (!lua_isnoneornil(L, first_arg))
        i = lua_tointeger(L,
                          first_arg); /* 0 when it is not an integer: Lua's own raises */
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
    return vm_call_stock(L, STOCK_BYTE,
                         1 + range_of(L, 2, 1, 0, library_string_size(L, 1)));
}

static int string_sub(lua_State *L)
{
    return vm_call_stock(L, STOCK_SUB,
                         1 + range_of(L, 2, 1, -1, library_string_size(L, 1)) / 8);
}

/* Replaces strings among the arguments by the integers in them, each with its charge:
 * Lua's own converts all of its arguments in one call. It raises for strings that are
 * not integers. */
static void charge_integers(lua_State *L)
{
    int top = lua_gettop(L), arg, is_integer;
    lua_Integer n;
    vm_charge(L, (uint64_t)top);
    for (arg = 1; arg <= top; arg++) {
        if (lua_type(L, arg) != LUA_TSTRING)
            continue;
        vm_charge(L, lua_rawlen(L, arg) + 1);
        n = lua_tointegerx(L, arg, &is_integer);
        if (!is_integer)
            break;
        lua_pushinteger(L, n);
        lua_replace(L, arg);
    }
}

static int string_char(lua_State *L)
{
    charge_integers(L);
    return vm_call_stock(L, STOCK_CHAR, 1);
}

static int string_lower(lua_State *L)
{
    return vm_call_stock(L, STOCK_LOWER, 1 + library_string_size(L, 1) / 4);
}

static int string_upper(lua_State *L)
{
    return vm_call_stock(L, STOCK_UPPER, 1 + library_string_size(L, 1) / 4);
}

static int string_reverse(lua_State *L)
{
    return vm_call_stock(L, STOCK_REVERSE, 1 + library_string_size(L, 1) / 4);
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

/* Lua's own function does the formatting. Values that it would convert (%s of a table
 * has its address) are converted before, and %p is refused. */
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
        cost += 4 * library_string_size(L, arg) + 16;
    }
    lua_settop(L, top);
    return vm_call_stock(L, STOCK_FORMAT, 1 + cost / 4);
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
    charge_integers(L);
    return vm_call_stock(L, STOCK_UTF8CHAR, 1);
}

static int utf8_codepoint(lua_State *L)
{
    return vm_call_stock(L, STOCK_CODEPOINT,
                         1 + range_of(L, 2, 1, 0, library_string_size(L, 1)));
}

static int utf8_len(lua_State *L)
{
    return vm_call_stock(L, STOCK_LEN,
                         1 + range_of(L, 2, 1, -1, library_string_size(L, 1)));
}

/* 1 when s is a continuation byte. Lua's strings end with a NUL, which is none. */
static int goes_on(const char *s)
{
    return ((unsigned char)*s & 0xc0) == 0x80;
}

/* A walk over the characters of a string, whose characters can have any length. */
typedef struct walk {
    lua_State *L;
    const char *text;
    size_t size, at;
    unsigned steps;
} walk;

#define WALK_STEPS 1024 /* between two charges */

static void walk_step(walk *w, int by)
{
    w->at += (size_t)by;
    if (++w->steps >= WALK_STEPS) {
        w->steps = 0;
        vm_charge(w->L, WALK_STEPS / 4);
    }
}

static void walk_next(walk *w)
{
    do
        walk_step(w, 1);
    while (goes_on(w->text + w->at));
}

static void walk_back(walk *w)
{
    do
        walk_step(w, -1);
    while (w->at > 0 && goes_on(w->text + w->at));
}

/* Like Lua's own, in which one call can walk the whole string; with charges between. */
static int utf8_offset(lua_State *L)
{
    walk w = {L, NULL, 0, 0, 0};
    lua_Integer n, i;

    w.text = luaL_checklstring(L, 1, &w.size);
    n = luaL_checkinteger(L, 2);
    i = luaL_optinteger(L, 3, n >= 0 ? 1 : (lua_Integer)w.size + 1);
    if (i < 0)
        i = i < -(lua_Integer)w.size ? 0 : (lua_Integer)w.size + i + 1;
    luaL_argcheck(L, i >= 1 && i <= (lua_Integer)w.size + 1, 3, "position out of bounds");
    vm_charge(L, 2);
    w.at = (size_t)i - 1;
    if (n == 0) {
        if (w.at > 0 && goes_on(w.text + w.at))
            walk_back(&w);
        lua_pushinteger(L, (lua_Integer)w.at + 1);
        return 1;
    }
    if (goes_on(w.text + w.at))
        return luaL_error(L, "initial position is a continuation byte");
    for (; n < 0 && w.at > 0; n++)
        walk_back(&w);
    for (; n > 1 && w.at < w.size; n--)
        walk_next(&w);
    if (n == 0 || n == 1)
        lua_pushinteger(L, (lua_Integer)w.at + 1);
    else
        lua_pushnil(L);
    return 1;
}

/* Upvalue: Lua's own iterator. A script can call it with any string and position. It
 * skips continuation bytes there, of which UTF-8 has at most three. */
static int codes_next(lua_State *L)
{
    size_t size = library_string_size(L, 1), at, end;
    lua_Integer from = lua_tointeger(L, 2);

    if (from >= 1 && (lua_Unsigned)from < size) {
        const char *text = lua_tostring(L, 1);
        at = (size_t)from;
        for (end = at + 4; at < end && goes_on(text + at); at++)
            ;
        if (at == end)
            vm_charge(L, size / 4);
    }
    return lua_tocfunction(L, lua_upvalueindex(1))(L);
}

static int utf8_codes(lua_State *L)
{
    int results = vm_call_stock(L, STOCK_CODES, 1);
    lua_pushvalue(L, -results);
    lua_pushcclosure(L, codes_next, 1);
    lua_replace(L, -results - 1);
    return results;
}

void library_utf8(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"char", utf8_char},     {"codepoint", utf8_codepoint}, {"len", utf8_len},
        {"offset", utf8_offset}, {"codes", utf8_codes},         {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
