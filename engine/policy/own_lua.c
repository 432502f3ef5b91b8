/*
 * own_lua.c: what the engine needs to have a Lua of its own.
 *
 * libsessile contains a copy of Lua 5.4 whose names nobody sees, wherever there is a
 * static library of it. Without one, the names of Lua are found when a program is loaded.
 * In a process with another version (LuaJIT, Neovim) they are that version's, whose
 * structures differ: a policy would crash.
 */
#include "policy/own_lua.h"

#include <stdio.h>
#include <string.h>
#include <lua.h>
#include "base/error.h"
#include "base/os.h"

/* The copy refers to these instead of the variables of the C library: a shared library
 * cannot contain its relocations to them, since Debian compiles it for programs. Only
 * functions that no policy has would use them. */
FILE *own_lua_stdin, *own_lua_stdout, *own_lua_stderr;

__attribute__((constructor)) static void set_streams(void)
{
    own_lua_stdin = stdin;
    own_lua_stdout = stdout;
    own_lua_stderr = stderr;
}

sessile_status own_lua_check(sessile_error *err)
{
    lua_State *(*newstate)(lua_Alloc, void *) = lua_newstate;
    const void *ours, *older;

    memcpy(&ours, &newstate, sizeof ours);
    if (os_symbol("lua_newstate") != ours)
        return SESSILE_OK; /* nobody else has it */
    /* A function of every version before 5.4, which has none by that name. */
    older = os_symbol("lua_newuserdata");
    if (!(older && os_same_object(older, ours)) && lua_version(NULL) == LUA_VERSION_NUM)
        return SESSILE_OK;
    return fail(
        err, SESSILE_UNSUPPORTED,
        "policies need Lua 5.4, and this process has another version of Lua: build "
        "sessile where there is a static library of Lua 5.4 (liblua5.4-dev), or use "
        "policies from another process");
}
