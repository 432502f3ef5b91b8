/*
 * sessile.c: the sessile executable.
 *
 * Owns a Lua state with the module sessile.core in it, the search for the Lua files
 * that belong to this executable, and the list of the modules in modules.h. Must never
 * know a command: everything that a user can type is Lua, in lua/sessile/cli. SIGINT
 * ends the process, as is the default: what was acknowledged is in the log.
 */
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

#include "command/modules.h"

/* Loaded when a script first requires them. */
static const luaL_Reg modules[] = {
    {"sessile.core", luaopen_sessile_core},
    {"sessile.files", luaopen_sessile_files},
    {"sessile.markdown", luaopen_sessile_markdown},
    {"sessile.disk", luaopen_sessile_disk},
    {"sessile.process", luaopen_sessile_process},
    {"sessile.pager", luaopen_sessile_pager},
    {"sessile.line", luaopen_sessile_line},
    {"sessile.screen", luaopen_sessile_screen},
    {"sessile.stdio", luaopen_sessile_stdio},
    {NULL, NULL},
};

/* What the server is made of besides: not in every program that is linked with this file.
 */
__attribute__((weak)) int luaopen_sessile_service(lua_State *L);

/* Where the Lua files are, from the folder that holds bin/: build tree, then installed.
 */
static const char *const places[] = {"/../lua", "/share/lua/5.4", "/../share/lua/5.4",
                                     NULL};

static int is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* ------------------------------------------------------------------------ starting */

/* Pushes the path of this executable and the folder of its Lua files, or raises. Without
 * /proc, as in a bare chroot, it is taken to be where it was built to be installed. */
static void find_files(lua_State *L)
{
    char path[PATH_MAX] = SESSILE_PREFIX "/bin/sessile";
    char probe[PATH_MAX + 64], real[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof path - 1);
    if (size > 0)
        path[size] = '\0';
    lua_pushstring(L, path);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    }
    for (int i = 0; places[i]; i++) {
        snprintf(probe, sizeof probe, "%s%s/sessile/cli/init.lua", path, places[i]);
        if (is_file(probe)) {
            snprintf(probe, sizeof probe, "%s%s", path, places[i]);
            lua_pushstring(L, realpath(probe, real) ? real : probe);
            return;
        }
    }
    luaL_error(L, "the Lua files of sessile are neither in %s%s nor in %s%s: %s", path,
               places[0], path, places[1],
               size > 0 ? "install again" : "mount /proc, or install there");
}

/* Turns whatever was raised into a text with a traceback, unless it has one. */
static int traceback(lua_State *L)
{
    const char *text = luaL_tolstring(L, 1, NULL);
    if (!strstr(text, "\nstack traceback:\n"))
        luaL_traceback(L, L, text, 1);
    return 1;
}

/* Opens the libraries, and says where these files are, which come first. */
static int prepare(lua_State *L)
{
    luaL_openlibs(L);
    find_files(L); /* at 1 and 2 */
    luaL_requiref(L, "sessile.system", luaopen_sessile_system, 0);
    lua_pushvalue(L, 1);
    lua_setfield(L, -2, "executable");
    lua_pushvalue(L, 2);
    lua_setfield(L, -2, "lua");
    lua_pop(L, 1);

    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    luaL_setfuncs(L, modules, 0);
    if (luaopen_sessile_service) {
        lua_pushcfunction(L, luaopen_sessile_service);
        lua_setfield(L, -2, "sessile.service");
    }
    lua_pop(L, 1);

    /* These files first: they belong to the C inside this executable. */
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", lua_tostring(L, 2),
                    lua_tostring(L, 2), lua_tostring(L, -1));
    lua_setfield(L, -3, "path");
    /* For a module that needs a state in another thread (service/module_model.c). */
    lua_pushcfunction(L, prepare);
    lua_setfield(L, LUA_REGISTRYINDEX, "sessile.prepare");
    return 0;
}

/* Everything that may raise: arguments argc and argv; returns the exit code. */
static int run_main(lua_State *L)
{
    int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);

    lua_pushcfunction(L, prepare);
    lua_call(L, 0, 0);

    lua_createtable(L, argc, 1);
    for (int i = 0; i < argc; i++) {
        lua_pushstring(L, argv[i]);
        lua_rawseti(L, -2, i);
    }
    lua_pushvalue(L, -1);
    lua_setglobal(L, "arg");

    lua_getglobal(L, "require");
    lua_pushliteral(L, "sessile.cli");
    lua_call(L, 1, 1);
    lua_getfield(L, -1, "main");
    lua_pushvalue(L, -3);
    lua_call(L, 1, 1);
    return 1;
}

/* Writes text to stderr; a control character, which a terminal might obey, as a ?. */
static void complain(const char *text)
{
    const unsigned char *c =
        (const unsigned char *)(text ? text : "an error without text");
    for (; *c; c++) {
        int two = c[0] == 0xC2 && c[1] >= 0x80 && c[1] <= 0x9F; /* U+0080 to U+009F */
        int control = two || (*c < 0x20 && *c != '\n' && *c != '\t') || *c == 0x7F;
        fputc(control ? '?' : *c, stderr);
        c += two;
    }
}

int main(int argc, char **argv)
{
    int code = 1;
    lua_State *L = luaL_newstate();
    signal(SIGCHLD, SIG_DFL); /* who ignores it passes that on: no child's end was seen */
    if (!L) {
        fputs("sessile: not enough memory\n", stderr);
        return 1;
    }
    lua_pushcfunction(L, traceback);
    lua_pushcfunction(L, run_main);
    lua_pushinteger(L, argc);
    lua_pushlightuserdata(L, argv);
    if (lua_pcall(L, 2, 1, 1) == LUA_OK)
        code = (int)lua_tointeger(L, -1);
    else {
        fputs("sessile: this is a defect of sessile: ", stderr);
        complain(lua_tostring(L, -1));
        fputc('\n', stderr);
    }
    lua_close(L);
    /* A full disk must not look like success. */
    if ((fflush(stdout) != 0 || ferror(stdout)) && code == 0) {
        fputs("sessile: standard output cannot be written.\n", stderr);
        code = 1;
    }
    return code;
}
