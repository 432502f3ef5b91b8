/*
 * files.c: the module sessile.files: files of this user's own, written as such.
 *
 * Must never follow a link, make a file that others may read, or leave half of one
 * behind.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/modules.h"

static int failed(lua_State *L, const char *path, int number)
{
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, strerror(number));
    lua_pushinteger(L, number);
    return 3;
}

/* Makes the folders above path, 0700: 0, or an errno. */
static int make_folders(const char *path)
{
    char folder[PATH_MAX];
    size_t i, size = strlen(path);
    if (size >= sizeof folder)
        return ENAMETOOLONG;
    for (i = 1; i < size; i++) {
        if (path[i] != '/')
            continue;
        memcpy(folder, path, i);
        folder[i] = '\0';
        if (mkdir(folder, 0700) != 0 && errno != EEXIST)
            return errno;
    }
    return 0;
}

/* Writes a file that is not there yet: 0, or an errno. */
static int write_new(const char *path, const char *text, size_t size)
{
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int number = 0;
    if (fd < 0)
        return errno;
    while (size && !number) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno != EINTR)
            number = errno;
        text += n > 0 ? n : 0;
        size -= n > 0 ? (size_t)n : 0;
    }
    if (!number && fsync(fd) != 0)
        number = errno;
    if (close(fd) != 0 && !number)
        number = errno;
    if (number)
        unlink(path);
    return number;
}

/* write(path, text[, replace]): true; or nil, a message and errno: EEXIST when there is
 * one and replace is not true. Folders that are missing are made. Either all of it is
 * there afterwards, or what was before. */
static int files_write(lua_State *L)
{
    size_t size;
    const char *path = luaL_checkstring(L, 1), *text = luaL_checklstring(L, 2, &size);
    const char *temporary;
    struct stat st;
    int number = make_folders(path);

    if (!number && lstat(path, &st) == 0 && !lua_toboolean(L, 3))
        number = EEXIST;
    if (number)
        return failed(L, path, number);
    temporary = lua_pushfstring(L, "%s.%d.new", path, (int)getpid());
    number = write_new(temporary, text, size);
    if (number)
        return failed(L, temporary, number);
    /* A link fails when somebody was faster; a rename takes the place of what is there.
     */
    if ((lua_toboolean(L, 3) ? rename(temporary, path) : link(temporary, path)) != 0)
        number = errno;
    if (number || !lua_toboolean(L, 3))
        unlink(temporary);
    if (number)
        return failed(L, path, number);
    lua_pushboolean(L, 1);
    return 1;
}

/* remove(path): whether it was there; or nil, a message and errno */
static int files_remove(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    int gone = unlink(path) == 0;
    if (!gone && errno != ENOENT)
        return failed(L, path, errno);
    lua_pushboolean(L, gone);
    return 1;
}

int luaopen_sessile_files(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"write", files_write}, {"remove", files_remove}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
