/*
 * library_table.c: table functions that take their charge before they work, and sort.
 *
 * Owns the limit on ranges ({} has nil at every index up to 2^63), and a sort whose
 * result depends on its input alone. Lua's sort picks pivots by the clock, so equal
 * elements can change their order from run to run. Must never walk a range that was
 * not charged.
 */
#include "policy/environment.h"

#include <stdint.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/vm.h"

/* Gas for one element that is read and written through metamethods. */
#define ELEMENT 4

/* Calls Lua's own function after taking the charge for n elements. */
static int stock(lua_State *L, stock_function which, uint64_t n)
{
    return vm_call_stock(L, which, n > UINT64_MAX / 8 ? UINT64_MAX : ELEMENT * n + 1);
}

/* The number of elements of first..last; 0 if they are not integers (Lua's own
 * raises). */
static uint64_t range(lua_Integer first, lua_Integer last)
{
    return last < first ? 0 : (uint64_t)last - (uint64_t)first + 1;
}

static lua_Integer integer_or(lua_State *L, int arg, lua_Integer otherwise)
{
    int is_integer;
    lua_Integer i = lua_tointegerx(L, arg, &is_integer);
    return is_integer ? i : otherwise;
}

static lua_Integer length_of(lua_State *L, int arg)
{
    int type = lua_type(L, arg);
    return type == LUA_TTABLE || type == LUA_TUSERDATA ? luaL_len(L, arg) : 0;
}

static int table_concat(lua_State *L)
{
    lua_Integer last = lua_isnoneornil(L, 4) ? length_of(L, 1) : integer_or(L, 4, 0);
    return stock(L, STOCK_CONCAT, range(integer_or(L, 3, 1), last));
}

/* Elements after pos move by one. */
static int table_insert(lua_State *L)
{
    uint64_t moved = 0;
    if (lua_gettop(L) >= 3)
        moved = range(integer_or(L, 2, 1), length_of(L, 1));
    return stock(L, STOCK_INSERT, moved);
}

static int table_remove(lua_State *L)
{
    uint64_t moved = 0;
    if (!lua_isnoneornil(L, 2))
        moved = range(integer_or(L, 2, 1), length_of(L, 1));
    return stock(L, STOCK_REMOVE, moved);
}

static int table_move(lua_State *L)
{
    return stock(L, STOCK_MOVE, range(integer_or(L, 2, 1), integer_or(L, 3, 0)));
}

static int table_pack(lua_State *L)
{
    return stock(L, STOCK_PACK, (uint64_t)lua_gettop(L));
}

static int table_unpack(lua_State *L)
{
    lua_Integer last = lua_isnoneornil(L, 3) ? length_of(L, 1) : integer_or(L, 3, 0);
    return stock(L, STOCK_UNPACK, range(integer_or(L, 2, 1), last));
}

/* ------------------------------------------------------------------ sort */

/* 1 when string a sorts before string b: by bytes, as pairs does. Lua's own calls the
 * locale again after every NUL. */
static int string_before(lua_State *L, int a, int b)
{
    size_t size_a, size_b, common;
    const char *text_a = lua_tolstring(L, a, &size_a);
    const char *text_b = lua_tolstring(L, b, &size_b);
    int order;

    common = size_a < size_b ? size_a : size_b;
    vm_charge(L, common / 8);
    order = memcmp(text_a, text_b, common);
    return order ? order < 0 : size_a < size_b;
}

/* 1 when the value at a sorts before the value at b, by the function at 2 or by <. */
static int before(lua_State *L, int a, int b)
{
    int result;
    vm_charge(L, 8);
    if (lua_isnil(L, 2) && lua_type(L, a) == LUA_TSTRING && lua_type(L, b) == LUA_TSTRING)
        return string_before(L, a, b);
    if (lua_isnil(L, 2))
        return lua_compare(L, a, b, LUA_OPLT);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, a < 0 ? a - 1 : a);
    lua_pushvalue(L, b < 0 ? b - 2 : b);
    lua_call(L, 2, 1);
    result = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return result;
}

static void copy_range(lua_State *L, int from, int to, lua_Integer first,
                       lua_Integer last)
{
    lua_Integer i;
    vm_charge(L, range(first, last));
    for (i = first; i <= last; i++) {
        lua_rawgeti(L, from, i);
        lua_rawseti(L, to, i);
    }
}

/* Merges the sorted runs low..middle and middle+1..high of `from` into `to`. When one
 * run is empty, the rest of the other is copied. */
static void merge(lua_State *L, int from, int to, lua_Integer low, lua_Integer middle,
                  lua_Integer high)
{
    lua_Integer left = low, right = middle + 1, at = low;

    lua_rawgeti(L, from, middle);
    lua_rawgeti(L, from, right);
    if (!before(L, -1, -2)) { /* in order as they are */
        lua_pop(L, 2);
        copy_range(L, from, to, low, high);
        return;
    }
    lua_pop(L, 2);
    while (left <= middle && right <= high) {
        lua_rawgeti(L, from, left);
        lua_rawgeti(L, from, right);
        if (before(L, -1, -2)) { /* strictly: equals keep their order */
            lua_rawseti(L, to, at++);
            right++;
            lua_pop(L, 1);
        } else {
            lua_pop(L, 1);
            lua_rawseti(L, to, at++);
            left++;
        }
    }
    for (; left <= middle; left++) {
        lua_rawgeti(L, from, left);
        lua_rawseti(L, to, at++);
    }
    for (; right <= high; right++) {
        lua_rawgeti(L, from, right);
        lua_rawseti(L, to, at++);
    }
}

/* A bottom-up merge sort between two scratch tables that the script cannot see. The
 * loop bounds are ours, whatever the comparison does, and an error leaves the table
 * unchanged. */
static int table_sort(lua_State *L)
{
    lua_Integer n, width, low;
    int from = 3, to = 4, i;

    luaL_checktype(L, 1, LUA_TTABLE);
    if (!lua_isnoneornil(L, 2))
        luaL_checktype(L, 2, LUA_TFUNCTION);
    lua_settop(L, 2);
    n = luaL_len(L, 1);
    if (n < 2)
        return 0;
    luaL_argcheck(L, n < INT32_MAX, 1, "array too big");
    vm_charge(L, 4 * ELEMENT * (uint64_t)n);
    for (i = from; i <= to; i++)
        lua_createtable(L, (int)n, 0);
    for (low = 1; low <= n; low++) {
        lua_geti(L, 1, low);
        lua_rawseti(L, from, low);
    }
    for (width = 1; width < n; width *= 2) {
        int swap = from;
        for (low = 1; low <= n; low += 2 * width) {
            lua_Integer middle = low + width - 1;
            lua_Integer high = middle + width < n ? middle + width : n;
            if (middle >= n)
                copy_range(L, from, to, low, n);
            else
                merge(L, from, to, low, middle, high);
        }
        from = to;
        to = swap;
    }
    for (low = 1; low <= n; low++) {
        lua_rawgeti(L, from, low);
        lua_seti(L, 1, low);
    }
    return 0;
}

void library_table(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"concat", table_concat}, {"insert", table_insert},
        {"move", table_move},     {"pack", table_pack},
        {"remove", table_remove}, {"sort", table_sort},
        {"unpack", table_unpack}, {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
