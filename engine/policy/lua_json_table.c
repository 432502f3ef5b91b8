/*
 * lua_json_table.c: the tables that JSON knows beside plain ones: arrays, raw text and
 * read-only data.
 *
 * Each has a metatable that holds its kind, under a key that is an address of this file.
 * Must never run a metamethod.
 */
#include "policy/lua_json.h"

#include <lauxlib.h>

/* Addresses that serve as keys of the registry and of our metatables. */
static const char array_key, verbatim_key;
static const char kind_key, data_key;

static void make_kind(lua_State *L, const void *key, int kind)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TNIL) {
        lua_createtable(L, 0, 1);
        lua_pushinteger(L, kind);
        lua_rawsetp(L, -2, &kind_key);
        lua_rawsetp(L, LUA_REGISTRYINDEX, key);
    }
    lua_pop(L, 1);
}

void lua_json_open(lua_State *L)
{
    luaL_checkstack(L, 4, NULL);
    make_kind(L, &array_key, LUA_JSON_ARRAY);
    make_kind(L, &verbatim_key, LUA_JSON_VERBATIM);
}

int lua_json_kind(lua_State *L, int index)
{
    int kind;
    if (!lua_getmetatable(L, index))
        return LUA_JSON_PLAIN;
    lua_rawgetp(L, -1, &kind_key);
    kind = (int)lua_tointeger(L, -1);
    lua_pop(L, 2);
    return kind;
}

void lua_json_mark_array(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &array_key);
    lua_setmetatable(L, index);
}

void lua_json_verbatim(lua_State *L, const char *text, size_t size)
{
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, text, size);
    lua_setfield(L, -2, "json");
    lua_rawgetp(L, LUA_REGISTRYINDEX, &verbatim_key);
    lua_setmetatable(L, -2);
}

/* ------------------------------------------------------------------ read-only tables */

static int frozen_newindex(lua_State *L)
{
    return luaL_error(L, "this table is read-only");
}

static int frozen_len(lua_State *L)
{
    if (lua_json_thaw(L, 1))
        lua_pushinteger(L, (lua_Integer)lua_rawlen(L, -1));
    else
        lua_pushinteger(L, 0);
    return 1;
}

int lua_json_thaw(lua_State *L, int index)
{
    if (!lua_getmetatable(L, index))
        return 0;
    lua_rawgetp(L, -1, &data_key);
    lua_remove(L, -2);
    if (lua_istable(L, -1))
        return 1;
    lua_pop(L, 1);
    return 0;
}

void lua_json_freeze(lua_State *L, int index)
{
    if (LUA_VERSION_NUM < 502)
        return; /* nothing could be iterated there, or have its length taken */
    index = lua_absindex(L, index);
    luaL_checkstack(L, 6, "too deeply nested");
    if (lua_json_kind(L, index) == LUA_JSON_FROZEN)
        return;
    lua_pushnil(L);
    while (lua_next(L, index)) {
        if (lua_istable(L,
                        -1)) { /* assigning to a key that exists keeps lua_next sound */
            lua_json_freeze(L, -1);
            lua_pushvalue(L, -2);
            lua_insert(L, -2);
            lua_rawset(L, index);
        } else {
            lua_pop(L, 1);
        }
    }
    lua_newtable(L);
    lua_createtable(L, 0, 5);
    lua_pushvalue(L, index);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, frozen_newindex);
    lua_setfield(L, -2, "__newindex");
    lua_pushcfunction(L, frozen_len);
    lua_setfield(L, -2, "__len");
    lua_pushinteger(L, LUA_JSON_FROZEN);
    lua_rawsetp(L, -2, &kind_key);
    lua_pushvalue(L, index);
    lua_rawsetp(L, -2, &data_key);
    lua_setmetatable(L, -2);
    lua_replace(L, index);
}
