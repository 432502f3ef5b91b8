/* lua.c: a Lua program that reads inputs; whatever it raises is a finding. */
#include "fuzz/lua.h"

#include <stdio.h>
#include <stdlib.h>
#include <lauxlib.h>
#include <lualib.h>

#include "fuzz/fuzz.h"

/* Of lua/binding, which fuzzers are linked with. */
int luaopen_sessile_core(lua_State *L);

static void broken(lua_State *L)
{
    fprintf(stderr, "%s\n", lua_tostring(L, -1));
    fuzz_broken(__FILE__, __LINE__, "Lua raises nothing");
}

static int traceback(lua_State *L)
{
    luaL_traceback(L, L, lua_tostring(L, 1), 1);
    return 1;
}

lua_State *fuzz_lua(const char *program, const char *arguments, int results)
{
    const char *root = getenv("SESSILE_ROOT");
    char path[4200];
    lua_State *L = luaL_newstate();
    FUZZ_CHECK(L != NULL);
    luaL_openlibs(L);
    luaL_requiref(L, "sessile.core", luaopen_sessile_core, 0);
    snprintf(path, sizeof path, "%s/lua/?.lua;%s/lua/?/init.lua", root ? root : ".",
             root ? root : ".");
    lua_getglobal(L, "package");
    lua_pushstring(L, path);
    lua_setfield(L, -2, "path");
    lua_settop(L, 0);
    lua_pushcfunction(L, traceback);
    if (luaL_loadstring(L, program) || luaL_dostring(L, arguments))
        broken(L);
    if (lua_pcall(L, lua_gettop(L) - 2, results, 1))
        broken(L);
    return L;
}

void fuzz_lua_call(lua_State *L, int index, int count)
{
    lua_pushvalue(L, index);
    lua_insert(L, -count - 1);
    if (lua_pcall(L, count, 0, 1))
        broken(L);
}
