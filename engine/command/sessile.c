/*
 * sessile.c: the sessile executable.
 *
 * Owns: a Lua state with the module sessile.core inside, the search for the Lua files
 * that belong to this executable, and the few questions to the system that Lua cannot ask
 * (module sessile.system). Must never know a command: everything a user can type is Lua,
 * in lua/sessile/cli. SIGINT ends the process, as it does by default: whatever was
 * acknowledged is in the log.
 */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>
#include <lualib.h>

int luaopen_sessile_core(lua_State *L);

/* Where the Lua files are, from the folder that holds bin/: build tree, then installed.
 */
static const char *const places[] = {"/../lua", "/share/lua/5.4", NULL};

static int is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISREG(st.st_mode);
}

/* ------------------------------------------------------------- module sessile.system */

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
    for (lua_Integer n = 0; (one = readdir(*folder)) != NULL;) {
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

/* Pushes the module; executable and Lua folder are at -2 and -1 when it is called. */
static void push_system(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"isatty", system_isatty}, {"columns", system_columns}, {"files", system_files},
        {"kind", system_kind},     {"is_own", system_is_own},   {NULL, NULL}};
    luaL_newlib(L, functions);
    lua_pushvalue(L, -3);
    lua_setfield(L, -2, "executable");
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "lua");
}

/* ------------------------------------------------------------------------ starting */

/* Pushes the path of this executable and the folder of its Lua files, or raises. */
static void find_files(lua_State *L)
{
    char path[PATH_MAX], probe[PATH_MAX + 64], real[PATH_MAX];
    ssize_t size = readlink("/proc/self/exe", path, sizeof(path) - 1);
    if (size <= 0)
        luaL_error(L, "cannot tell where this executable is: is /proc mounted?");
    path[size] = '\0';
    lua_pushstring(L, path);
    for (int up = 0; up < 2; up++) {
        char *slash = strrchr(path, '/');
        if (slash)
            *slash = '\0';
    }
    for (int i = 0; places[i]; i++) {
        snprintf(probe, sizeof(probe), "%s%s/sessile/cli/init.lua", path, places[i]);
        if (is_file(probe)) {
            snprintf(probe, sizeof(probe), "%s%s", path, places[i]);
            lua_pushstring(L, realpath(probe, real) ? real : probe);
            return;
        }
    }
    luaL_error(L,
               "the Lua files of sessile are neither in %s%s nor in %s%s: install again",
               path, places[0], path, places[1]);
}

/* Turns whatever was raised into a text with a traceback. */
static int traceback(lua_State *L)
{
    luaL_traceback(L, L, luaL_tolstring(L, 1, NULL), 1);
    return 1;
}

/* Everything that may raise: arguments argc and argv; returns the exit code. */
static int run(lua_State *L)
{
    int argc = (int)lua_tointeger(L, 1);
    char **argv = lua_touserdata(L, 2);

    luaL_openlibs(L);
    find_files(L);
    push_system(L);
    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_LOADED_TABLE);
    lua_insert(L, -2);
    lua_setfield(L, -2, "sessile.system");
    lua_pop(L, 1);

    luaL_getsubtable(L, LUA_REGISTRYINDEX, LUA_PRELOAD_TABLE);
    lua_pushcfunction(L, luaopen_sessile_core);
    lua_setfield(L, -2, "sessile.core");
    lua_pop(L, 1);

    /* These files first: they belong to the C inside this executable. */
    lua_getglobal(L, "package");
    lua_getfield(L, -1, "path");
    lua_pushfstring(L, "%s/?.lua;%s/?/init.lua;%s", lua_tostring(L, 4),
                    lua_tostring(L, 4), lua_tostring(L, -1));
    lua_setfield(L, -3, "path");
    lua_pop(L, 2);

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
    if (!L) {
        fputs("sessile: not enough memory\n", stderr);
        return 1;
    }
    lua_pushcfunction(L, traceback);
    lua_pushcfunction(L, run);
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
