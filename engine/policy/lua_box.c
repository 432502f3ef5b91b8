/*
 * lua_box.c: the checks and the metatables that a state, its messages and a message
 * share.
 *
 * Must not know of the sandbox: this file is compiled into the Lua module as well.
 */
#include "policy/lua_box.h"

#include <lauxlib.h>

int lua_box_metatable(lua_State *L, const void *key, const char *name)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, key) == LUA_TTABLE)
        return 0;
    lua_pop(L, 1);
    lua_createtable(L, 0, 8);
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, key);
    return 1;
}

int lua_box_is(lua_State *L, int index, const void *key)
{
    int same;
    if (lua_type(L, index) != LUA_TUSERDATA || !lua_getmetatable(L, index))
        return 0;
    lua_rawgetp(L, LUA_REGISTRYINDEX, key);
    same = lua_rawequal(L, -1, -2);
    lua_pop(L, 2);
    return same;
}

void lua_box_set_index(lua_State *L, const char *const *names, int last,
                       lua_CFunction index)
{
    for (int field = 1; field <= last; field++) {
        lua_pushinteger(L, field);
        lua_setfield(L, -2, names[field]);
    }
    lua_pushcclosure(L, index, 1);
    lua_setfield(L, -2, "__index");
}

void lua_box_live(lua_State *L, const lua_box *box)
{
    if (!box->state)
        luaL_error(L,
                   "this state has ended: keep nothing of it from one hook to the next");
}

void lua_box_charge(lua_State *L, const lua_box *box, size_t n)
{
    if (box->charge)
        box->charge(L, n);
}
