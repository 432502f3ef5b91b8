/*
 * ctx_memory.c: ctx.memory, what a policy reads of memories and proposes to write.
 *
 * Each function yields its name and its arguments as JSON, as ctx.model yields a request;
 * the caller of the pipeline answers, also for a script in another process. So nothing
 * here knows what a memory is. The answer is {"value": …}, {"error": "why"} (nil and the
 * reason), or {"raise": "why"}: the arguments were wrong.
 */
#include "policy/pipeline.h"

#include <lauxlib.h>

#include "policy/lua_json.h"

/* Reading costs time of the engine's, which is not the script's gas. */
#define REQUESTS_MAX 1000
/* Gas of a call beyond that: a script that catches the error and calls again ends soon.
 */
#define BEYOND_CHARGE 10000

static const char functions_key;

static int answered(lua_State *L, int status, lua_KContext before)
{
    size_t size;
    const char *text;

    (void)status;
    if (lua_type(L, (int)before + 1) != LUA_TSTRING)
        return lua_gettop(L) - (int)before; /* nil, and why there is no answer */
    text = lua_tolstring(L, (int)before + 1, &size);
    vm_charge(L, size / 4 + 1);
    lua_settop(L, (int)before + 1);
    lua_json_push(L, text, size);
    if (lua_getfield(L, -1, "raise") == LUA_TSTRING)
        return luaL_error(L, "%s", lua_tostring(L, -1));
    lua_pop(L, 1);
    if (lua_getfield(L, -1, "error") == LUA_TSTRING) {
        lua_pushnil(L);
        lua_insert(L, -2);
        return 2;
    }
    lua_pop(L, 1);
    lua_getfield(L, -1, "value");
    if (lua_islightuserdata(L, -1) && !lua_touserdata(L, -1)) {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
    return 1;
}

/* Upvalue 1: the name of the function. */
static int ask(lua_State *L)
{
    policy_pipeline *pl = ctx_pipeline(L);
    const char *name = lua_tostring(L, lua_upvalueindex(1));
    int count = lua_gettop(L);

    if (!lua_isyieldable(L))
        return luaL_error(L, "ctx.memory cannot be used here");
    if (pl->asked_memory >= REQUESTS_MAX) {
        vm_charge(L, BEYOND_CHARGE);
        return luaL_error(L, "a pipeline may use ctx.memory %d times", REQUESTS_MAX);
    }
    luaL_argcheck(L, count <= 2, 3, "is one too many");
    lua_createtable(L, count, 0);
    lua_json_mark_array(L, -1);
    for (int i = 1; i <= count; i++) {
        if (lua_isnil(L, i))
            lua_pushlightuserdata(L, NULL);
        else
            lua_pushvalue(L, i);
        lua_rawseti(L, count + 1, i);
    }
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, count + 1);
    lua_setfield(L, -2, "arguments");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "memory");
    if (!lua_json_text(L, -1, 0, (size_t)pl->policy->limits.result))
        return luaL_error(L, "ctx.memory.%s: %s", name, lua_tostring(L, -1));
    lua_replace(L, 1);
    lua_settop(L, 1);
    pl->asked_memory++;
    pl->asks_memory = 1;
    return lua_yieldk(L, 1, 0, answered);
}

void ctx_memory_open(lua_State *L)
{
    static const char *const names[] = {"search", "read",    "list", "write",
                                        "delete", "confirm", "room"};
    lua_newtable(L);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        lua_pushstring(L, names[i]);
        lua_pushcclosure(L, ask, 1);
        lua_setfield(L, -2, names[i]);
    }
    lua_json_freeze(L, -1); /* a script cannot change it for the next */
    lua_rawsetp(L, LUA_REGISTRYINDEX, &functions_key);
}

void ctx_memory_push(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &functions_key);
}
