/*
 * library_base.c: the global functions that replace Lua's own, and those of math.
 *
 * Owns pcall (which cannot catch a spent budget), the order of pairs, tostring without
 * addresses, and the list of metamethods that a script may set. Must never let a
 * script see the order of a hash table, an address, or the time of a collection.
 */
#include "policy/environment.h"

#include <limits.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/lua_json.h"
#include "policy/vm.h"

/* ------------------------------------------------------------------ error, pcall */

/* As Lua's. A text that is raised with level 0 is a sentence for the user: no position is
 * put before it (vm_failure). */
static int base_error(lua_State *L)
{
    lua_Integer level = luaL_optinteger(L, 2, 1);
    lua_settop(L, 1);
    if (lua_type(L, 1) == LUA_TSTRING && level == 0) {
        lua_pushvalue(L, 1); /* held, so that no other text gets its address */
        lua_rawsetp(L, LUA_REGISTRYINDEX, &vm_of(L)->sentence);
        vm_of(L)->sentence = lua_tostring(L, 1);
    } else if (lua_type(L, 1) == LUA_TSTRING && level > 0 && level <= INT_MAX) {
        luaL_where(L, (int)level);
        lua_insert(L, 1);
        lua_concat(L, 2);
    }
    return lua_error(L);
}

/* The most nested calls. In a coroutine, a caught error frees the C stack, so Lua's
 * own limit of 200 does not apply, and each catch walks the whole stack. Without this
 * limit a spent budget, raised again through 100,000 of them, took 27 seconds. */
#define NESTED_PCALLS 100

/* After the call, or when the coroutine was resumed: everything beyond `first` is the
 * result, or the error object is at the top. */
static int finish_pcall(lua_State *L, int status, lua_KContext first)
{
    vm *v = vm_of(L);
    v->pcalls--;
    if (status == LUA_ERRMEM && !v->spent)
        v->spent = VM_MEMORY;
    if (v->spent)
        return vm_raise(L);
    if (status == LUA_OK || status == LUA_YIELD)
        return lua_gettop(L) - (int)first;
    lua_pushboolean(L, 0);
    lua_insert(L, -2);
    return 2;
}

static int base_pcall(lua_State *L)
{
    int status;
    luaL_checkany(L, 1);
    if (vm_of(L)->pcalls >= NESTED_PCALLS)
        return luaL_error(L, "pcall is nested deeper than %d", NESTED_PCALLS);
    lua_pushboolean(L, 1);
    lua_insert(L, 1);
    vm_of(L)->pcalls++;
    status = lua_pcallk(L, lua_gettop(L) - 2, LUA_MULTRET, 0, 0, finish_pcall);
    return finish_pcall(L, status, 0);
}

/* ------------------------------------------------------------------ tostring */

const char *library_text(lua_State *L, int index, size_t *size)
{
    index = lua_absindex(L, index);
    luaL_checkstack(L, 4, NULL);
    if (luaL_callmeta(L, index, "__tostring")) {
        if (lua_type(L, -1) != LUA_TSTRING)
            luaL_error(L, "'__tostring' must return a string");
        return lua_tolstring(L, -1, size);
    }
    switch (lua_type(L, index)) {
    case LUA_TSTRING:
    case LUA_TNUMBER:
        lua_pushvalue(L, index); /* tolstring would change the number itself */
        break;
    case LUA_TBOOLEAN:
        lua_pushstring(L, lua_toboolean(L, index) ? "true" : "false");
        break;
    case LUA_TLIGHTUSERDATA:
        lua_pushstring(L, lua_touserdata(L, index) ? "userdata" : "null");
        break;
    default:
        lua_pushstring(L, luaL_typename(L, index));
    }
    return lua_tolstring(L, -1, size);
}

static int base_tostring(lua_State *L)
{
    luaL_checkany(L, 1);
    library_text(L, 1, NULL);
    return 1;
}

static int base_tonumber(lua_State *L)
{
    return vm_call_stock(L, STOCK_TONUMBER, 1 + library_string_size(L, 1));
}

static int base_select(lua_State *L)
{
    return vm_call_stock(L, STOCK_SELECT, 1 + (uint64_t)lua_gettop(L) / 4);
}

/* ------------------------------------------------------------------ pairs and next */

/* A key of a table: integers first, then other numbers, strings by bytes, booleans. */
enum { RANK_INTEGER, RANK_FLOAT, RANK_STRING, RANK_BOOLEAN };

typedef struct table_key {
    int rank;
    union {
        lua_Integer integer;
        lua_Number number;
        int boolean;
        struct {
            const char *text; /* held by the table */
            size_t size;
        } string;
    } is;
} table_key;

static int compare_keys(const void *a, const void *b)
{
    const table_key *x = a, *y = b;
    size_t common;
    int order;

    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    switch (x->rank) {
    case RANK_INTEGER:
        return x->is.integer < y->is.integer ? -1 : x->is.integer > y->is.integer;
    case RANK_FLOAT:
        return x->is.number < y->is.number ? -1 : x->is.number > y->is.number;
    case RANK_STRING:
        common =
            x->is.string.size < y->is.string.size ? x->is.string.size : y->is.string.size;
        order = memcmp(x->is.string.text, y->is.string.text, common);
        if (order)
            return order;
        return x->is.string.size < y->is.string.size
                   ? -1
                   : x->is.string.size > y->is.string.size;
    default:
        return x->is.boolean - y->is.boolean;
    }
}

static table_key read_key(lua_State *L, int index)
{
    table_key key = {RANK_INTEGER, {0}};
    switch (lua_type(L, index)) {
    case LUA_TNUMBER:
        if (lua_isinteger(L, index)) {
            key.is.integer = lua_tointeger(L, index);
        } else {
            key.rank = RANK_FLOAT;
            key.is.number = lua_tonumber(L, index);
        }
        break;
    case LUA_TSTRING:
        key.rank = RANK_STRING;
        key.is.string.text = lua_tolstring(L, index, &key.is.string.size);
        break;
    case LUA_TBOOLEAN:
        key.rank = RANK_BOOLEAN;
        key.is.boolean = lua_toboolean(L, index);
        break;
    default:
        luaL_error(L,
                   "a key that is a %s has no place in an order: use numbers, strings or "
                   "booleans as keys",
                   luaL_typename(L, index));
    }
    return key;
}

static void push_key(lua_State *L, const table_key *key)
{
    switch (key->rank) {
    case RANK_INTEGER:
        lua_pushinteger(L, key->is.integer);
        break;
    case RANK_FLOAT:
        lua_pushnumber(L, key->is.number);
        break;
    case RANK_STRING:
        lua_pushlstring(L, key->is.string.text, key->is.string.size);
        break;
    default:
        lua_pushboolean(L, key->is.boolean);
    }
}

/* Replaces argument 1 by its original table when it is a read-only proxy. */
static void check_table(lua_State *L)
{
    if (lua_json_thaw(L, 1))
        lua_replace(L, 1);
    luaL_checktype(L, 1, LUA_TTABLE);
}

/* Iterates over 1..n. Upvalues: the table, n, the position. */
static int list_next(lua_State *L)
{
    lua_Integer n = lua_tointeger(L, lua_upvalueindex(2));
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));
    while (i < n) {
        lua_settop(L, 0);
        lua_pushinteger(L, ++i);
        if (lua_rawgeti(L, lua_upvalueindex(1), i) != LUA_TNIL) {
            lua_pushinteger(L, i);
            lua_replace(L, lua_upvalueindex(3));
            return 2;
        }
    }
    return 0;
}

/* Iterates over a list of keys. Upvalues: the table, the keys, the position. */
static int keys_next(lua_State *L)
{
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));
    for (;;) {
        lua_settop(L, 0);
        if (lua_rawgeti(L, lua_upvalueindex(2), ++i) == LUA_TNIL)
            return 0;
        lua_pushvalue(L, 1);
        if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNIL) { /* not removed meanwhile */
            lua_pushinteger(L, i);
            lua_replace(L, lua_upvalueindex(3));
            return 2;
        }
    }
}

/* Pushes the keys of the table at 1, sorted, as a list. */
static void push_sorted_keys(lua_State *L, size_t count)
{
    table_key *keys = lua_newuserdatauv(L, count * sizeof *keys + 1, 0);
    size_t i = 0;

    lua_pushnil(L);
    while (lua_next(L, 1)) {
        lua_pop(L, 1);
        keys[i++] = read_key(L, -1);
    }
    qsort(keys, i, sizeof *keys, compare_keys);
    lua_createtable(L, count < 1000000 ? (int)count : 0, 0);
    for (i = 0; i < count; i++) {
        push_key(L, &keys[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_remove(L, -2);
}

int library_pairs(lua_State *L)
{
    size_t count = 0, bytes = 0;
    lua_Integer greatest = 0;
    int is_list = 1;

    luaL_checkany(L, 1);
    if (luaL_getmetafield(L, 1, "__pairs") !=
        LUA_TNIL) { /* only our own values have one */
        lua_pushvalue(L, 1);
        lua_call(L, 1, 3);
        return 3;
    }
    check_table(L);
    lua_settop(L, 1);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        lua_pop(L, 1);
        count++;
        if (lua_isinteger(L, -1) && lua_tointeger(L, -1) >= 1) {
            if (lua_tointeger(L, -1) > greatest)
                greatest = lua_tointeger(L, -1);
        } else {
            is_list = 0;
            bytes += lua_type(L, -1) == LUA_TSTRING ? lua_rawlen(L, -1) : 0;
        }
    }
    lua_pushvalue(L, 1);
    if (is_list && (lua_Integer)count == greatest) {
        vm_charge(L, count + 1);
        lua_pushinteger(L, (lua_Integer)count);
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, list_next, 3);
    } else {
        vm_charge(L, 20 * count + bytes + 1);
        push_sorted_keys(L, count);
        lua_pushinteger(L, 0);
        lua_pushcclosure(L, keys_next, 3);
    }
    return 1; /* the argument may be a read-only proxy of the table */
}

/* next(t): the first key and value in the order of pairs; nil when t is empty. */
static int base_next(lua_State *L)
{
    table_key first = {RANK_INTEGER, {0}};
    size_t count = 0;

    if (!lua_isnoneornil(L, 2))
        return luaL_error(L, "next takes one argument here: walk with pairs");
    check_table(L);
    lua_settop(L, 1);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        table_key key;
        lua_pop(L, 1);
        key = read_key(L, -1);
        if (count++ == 0 || compare_keys(&key, &first) < 0)
            first = key;
    }
    vm_charge(L, 2 * count + 1);
    if (count == 0) {
        lua_pushnil(L);
        return 1;
    }
    push_key(L, &first);
    lua_pushvalue(L, -1);
    lua_rawget(L, 1);
    return 2;
}

/* ------------------------------------------------------------------ setmetatable */

/* A script's metatable is a copy of the listed fields, which the script cannot reach.
 * During __gc no hooks run. With __mode a memory limit can free what is in use
 * (5.4.4). __close and __metatable change who sees what. The others would make our
 * functions run a script's. */
static const char *const metamethods[] = {
    "__index", "__newindex", "__call", "__tostring", "__eq",   "__lt",
    "__le",    "__concat",   "__unm",  "__add",      "__sub",  "__mul",
    "__div",   "__mod",      "__pow",  "__idiv",     "__band", "__bor",
    "__bxor",  "__shl",      "__shr",  "__bnot",
};
static const char *const refused[] = {"__gc",  "__close", "__mode", "__metatable",
                                      "__len", "__pairs", "__name"};

static int base_setmetatable(lua_State *L)
{
    size_t i;

    luaL_checktype(L, 1, LUA_TTABLE);
    luaL_argexpected(L, lua_isnil(L, 2) || lua_istable(L, 2), 2, "nil or table");
    if (lua_json_thaw(L, 1))
        return luaL_error(L, "this table is read-only");
    lua_settop(L, 2);
    vm_charge(L, 30);
    if (lua_istable(L, 2)) {
        for (i = 0; i < sizeof refused / sizeof *refused; i++) {
            lua_pushstring(L, refused[i]);
            if (lua_rawget(L, 2) != LUA_TNIL)
                return luaL_error(L, "setmetatable: %s is not for policies", refused[i]);
            lua_pop(L, 1);
        }
        lua_pushliteral(
            L, "__call"); /* a table in its place is called in turn, without end */
        if (lua_rawget(L, 2) != LUA_TNIL && !lua_isfunction(L, -1))
            return luaL_error(L, "setmetatable: __call must be a function, got a %s",
                              luaL_typename(L, -1));
        lua_pop(L, 1);
        lua_newtable(L);
        for (i = 0; i < sizeof metamethods / sizeof *metamethods; i++) {
            lua_pushstring(L, metamethods[i]);
            lua_pushvalue(L, -1);
            if (lua_rawget(L, 2) == LUA_TNIL)
                lua_pop(L, 2);
            else
                lua_rawset(L, 3);
        }
    }
    lua_setmetatable(L, 1);
    lua_settop(L, 1);
    return 1;
}

/* ------------------------------------------------------------------ math */

/* Like Lua's own, which compares any values, also strings, in one call. */
static int extreme(lua_State *L, int greatest)
{
    int top = lua_gettop(L), best = 1, i;
    luaL_argcheck(L, top >= 1, 1, "value expected");
    for (i = 2; i <= top; i++) {
        vm_charge(L, 1 + library_string_size(L, best) + library_string_size(L, i));
        if (lua_compare(L, greatest ? best : i, greatest ? i : best, LUA_OPLT))
            best = i;
    }
    lua_pushvalue(L, best);
    return 1;
}

static int math_max(lua_State *L)
{
    return extreme(L, 1);
}

static int math_min(lua_State *L)
{
    return extreme(L, 0);
}

void library_math(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"max", math_max},
        {"min", math_min},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}

void library_base(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"error", base_error},
        {"next", base_next},
        {"pairs", library_pairs},
        {"pcall", base_pcall},
        {"select", base_select},
        {"tonumber", base_tonumber},
        {"tostring", base_tostring},
        {"setmetatable", base_setmetatable},
        {NULL, NULL},
    };
    luaL_setfuncs(L, functions, 0);
}
