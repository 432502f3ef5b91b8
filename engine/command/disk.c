/*
 * disk.c: the module sessile.disk: on which file system a path is, and whether locks
 * work there.
 *
 * Must never open what is at the path: opening a FIFO blocks. It creates one file, to
 * lock it, and removes it before it returns.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "base/os.h"
#include "command/modules.h"

static int failed(lua_State *L, int number)
{
    lua_pushnil(L);
    lua_pushstring(L, strerror(number));
    lua_pushinteger(L, number);
    return 3;
}

static void set_integer(lua_State *L, const char *name, lua_Integer value)
{
    lua_pushinteger(L, value);
    lua_setfield(L, -2, name);
}

static void set_boolean(lua_State *L, const char *name, int value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

/* look(path): {kind, mode, owner, own, writable, free, size, read_only,
 * network = a name or nil} of a file or folder, links not followed; real = its path
 * without links; or nil, a message and errno */
static int disk_look(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat st;
    struct statvfs fs;
    char network[64] = "", real[PATH_MAX];
    int fd;

    if (lstat(path, &st) != 0)
        return failed(L, errno);
    lua_newtable(L);
    lua_pushstring(L, S_ISREG(st.st_mode)   ? "file"
                      : S_ISDIR(st.st_mode) ? "folder"
                      : S_ISLNK(st.st_mode) ? "link"
                                            : "other");
    lua_setfield(L, -2, "kind");
    if (realpath(path, real)) {
        lua_pushstring(L, real);
        lua_setfield(L, -2, "real");
    }
    set_integer(L, "mode", st.st_mode & 07777);
    set_integer(L, "owner", (lua_Integer)st.st_uid);
    set_boolean(L, "own", st.st_uid == geteuid());
    set_boolean(L, "writable", faccessat(AT_FDCWD, path, W_OK, AT_EACCESS) == 0);
    if (statvfs(path, &fs) == 0) {
        lua_pushnumber(L, (lua_Number)fs.f_bavail * (lua_Number)fs.f_frsize);
        lua_setfield(L, -2, "free");
        lua_pushnumber(L, (lua_Number)fs.f_blocks * (lua_Number)fs.f_frsize);
        lua_setfield(L, -2, "size");
        set_boolean(L, "read_only", (fs.f_flag & ST_RDONLY) != 0);
    }
    fd = S_ISDIR(st.st_mode) ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        if (os_proc_network(NULL, fd, network, sizeof network) == 1) {
            lua_pushstring(L, network);
            lua_setfield(L, -2, "network");
        }
        close(fd);
    }
    return 1;
}

/* Locks the file open as fd for writing: 0, or an errno. */
static int lock(int fd)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    return fcntl(fd, F_OFD_SETLK, &whole) == 0 ? 0 : errno;
}

/* lock(folder): true when a lock taken there keeps another one out; false when it does
 * not; or nil, a message and errno */
static int disk_lock(lua_State *L)
{
    const char *folder = luaL_checkstring(L, 1);
    const char *path = lua_pushfstring(L, "%s/.doctor-%d", folder, (int)getpid());
    int first = open(path, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    int second, number, refused = 0;

    if (first < 0)
        return failed(L, errno);
    second = open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    number = second < 0 ? errno : lock(first);
    if (!number) {
        refused = lock(second);
        if (refused && refused != EAGAIN && refused != EACCES)
            number = refused;
    }
    if (second >= 0)
        close(second);
    close(first);
    if (unlink(path) != 0 && !number)
        number = errno;
    if (number)
        return failed(L, number);
    lua_pushboolean(L, refused != 0);
    return 1;
}

int luaopen_sessile_disk(lua_State *L)
{
    static const luaL_Reg functions[] = {
        {"look", disk_look}, {"lock", disk_lock}, {NULL, NULL}};
    luaL_newlib(L, functions);
    return 1;
}
