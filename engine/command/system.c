/*
 * system.c: the module sessile.system: what Lua cannot ask the system.
 *
 * Must never change anything, or open a file where that can block.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/modules.h"

/* isatty(0|1|2) */
static int system_isatty(lua_State *L)
{
    lua_pushboolean(L, isatty((int)luaL_checkinteger(L, 1)));
    return 1;
}

/* columns(): of the terminal behind stdout, or nil */
static int system_columns(lua_State *L)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_col == 0)
        return 0;
    lua_pushinteger(L, size.ws_col);
    return 1;
}

/* seconds(): of a clock that only goes forward, to be taken from a later one */
static int system_seconds(lua_State *L)
{
    struct timespec now = {0, 0};
    clock_gettime(CLOCK_MONOTONIC, &now);
    lua_pushnumber(L, (lua_Number)now.tv_sec + (lua_Number)now.tv_nsec / 1e9);
    return 1;
}

/* Owns an open folder until it is collected, so that running out of memory leaks nothing.
 */
static int folder_gc(lua_State *L)
{
    DIR **folder = lua_touserdata(L, 1);
    if (*folder)
        closedir(*folder);
    *folder = NULL;
    return 0;
}

/* files(folder): the names in it, sorted by bytes, without those that begin with a dot;
 * or nil and a message. */
static int system_files(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    DIR **folder = lua_newuserdatauv(L, sizeof *folder, 0);
    *folder = NULL;
    lua_createtable(L, 0, 1);
    lua_pushcfunction(L, folder_gc);
    lua_setfield(L, -2, "__gc");
    lua_setmetatable(L, -2);
    *folder = opendir(path);
    if (!*folder) {
        lua_pushnil(L);
        lua_pushfstring(L, "%s: %s", path, strerror(errno));
        return 2;
    }
    lua_newtable(L);
    const struct dirent *one;
    for (lua_Integer n = 0; (one = readdir(*folder));) {
        if (one->d_name[0] == '.')
            continue;
        lua_pushstring(L, one->d_name);
        lua_rawseti(L, -2, ++n);
    }
    closedir(*folder);
    *folder = NULL;
    lua_getglobal(L, "table");
    lua_getfield(L, -1, "sort");
    lua_pushvalue(L, -3);
    lua_call(L, 1, 0);
    lua_pop(L, 1);
    return 1;
}

/* kind(path): "file", "folder" or "other", and its size; links are followed. Nothing is
 * opened, so that a FIFO holds nobody. Or nil, a message and errno. */
static int system_kind(lua_State *L)
{
    struct stat st;
    if (stat(luaL_checkstring(L, 1), &st) != 0) {
        int number = errno;
        lua_pushnil(L);
        lua_pushstring(L, strerror(number));
        lua_pushinteger(L, number);
        return 3;
    }
    lua_pushstring(L, S_ISREG(st.st_mode)   ? "file"
                      : S_ISDIR(st.st_mode) ? "folder"
                                            : "other");
    lua_pushinteger(L, (lua_Integer)st.st_size);
    return 2;
}

/* is_own(path): is it a file of this user or root that nobody else may write? What runs a
 * policy's source outside of the engine's sandbox asks first. */
static int system_is_own(lua_State *L)
{
    struct stat st;
    lua_pushboolean(L, lstat(luaL_checkstring(L, 1), &st) == 0 && S_ISREG(st.st_mode) &&
                           (st.st_uid == 0 || st.st_uid == getuid()) &&
                           (st.st_mode & 022) == 0);
    return 1;
}

/* real(path): the path of what it names, without links; nil if it names nothing. */
static int system_real(lua_State *L)
{
    char path[PATH_MAX];
    if (!realpath(luaL_checkstring(L, 1), path))
        return 0;
    lua_pushstring(L, path);
    return 1;
}

int luaopen_sessile_system(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"isatty", system_isatty},   {"columns", system_columns},
        {"files", system_files},     {"kind", system_kind},
        {"is_own", system_is_own},   {"real", system_real},
        {"seconds", system_seconds}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
