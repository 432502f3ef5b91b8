/*
 * files.c: the module sessile.files: a file that is written completely or not at all, and
 * a file that grows by appending.
 *
 * Owns what is written until it is complete. Until then the file has no name, or a hidden
 * one where the file system requires a name, and a process that dies leaves the previous
 * file in place. Only the owner can read it (0600, 0700), because it is a conversation
 * outside of its sealed store. Must never follow a link at the name that it replaces.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <lauxlib.h>
#include <lua.h>

#include "command/modules.h"

#define FILE_TYPE "sessile.File"

struct file {
    int fd;
    int folder;      /* where it is to be */
    char hidden[32]; /* its name until it is complete; "": it has none */
    char name[NAME_MAX + 1];
};

/* nil, a message, and the code of what went wrong. */
static int fail(lua_State *L, const char *path, int number)
{
    const char *code = number == ENOENT                        ? "ENOTFOUND"
                       : number == EACCES || number == EPERM   ? "EDENIED"
                       : number == EEXIST                      ? "EEXISTS"
                       : number == ENOSPC || number == EDQUOT  ? "EFULL"
                       : number == EISDIR || number == ENOTDIR ? "EINVALID"
                       : number == ENAMETOOLONG                ? "EINVALID"
                                                               : "EIO";
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", path, strerror(number));
    lua_pushstring(L, code);
    return 3;
}

static void forget(struct file *file)
{
    if (file->hidden[0])
        unlinkat(file->folder, file->hidden, 0);
    file->hidden[0] = '\0';
    if (file->fd >= 0)
        close(file->fd);
    if (file->folder >= 0)
        close(file->folder);
    file->fd = file->folder = -1;
}

/* Opens an unused hidden name for writing; its number, or -1. */
static int open_hidden(struct file *file)
{
    unsigned int seed = (unsigned int)getpid();
    for (int i = 0; i < 1000; i++) {
        snprintf(file->hidden, sizeof file->hidden, ".sessile-%08x",
                 (unsigned int)rand_r(&seed));
        int fd = openat(file->folder, file->hidden,
                        O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd >= 0 || errno != EEXIST)
            return fd;
    }
    return -1;
}

/* Whether a name is that of something in a folder. */
static int is_name(const char *name)
{
    return *name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}

/* A file that is in no folder yet, left on the stack. */
static struct file *new_file(lua_State *L)
{
    struct file *file = lua_newuserdatauv(L, sizeof *file, 0);
    *file = (struct file){-1, -1, "", ""};
    luaL_setmetatable(L, FILE_TYPE);
    return file;
}

/* Opens the file, which is on top of the stack, in its folder, to be `name` there: the
 * results of create. */
static int begin(lua_State *L, struct file *file, const char *path, const char *name)
{
    if (!is_name(name))
        return fail(L, path, EISDIR);
    if (strlen(name) > NAME_MAX)
        return fail(L, path, ENAMETOOLONG);
    strcpy(file->name, name);
    if (access("/proc/self/fd", X_OK) == 0) /* else it could not be given its name */
        file->fd = openat(file->folder, ".", O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
    if (file->fd < 0)
        file->fd = open_hidden(file);
    if (file->fd < 0) {
        int number = errno;
        file->hidden[0] = '\0';
        return fail(L, path, number);
    }
    return 1;
}

/* create(path) -> a file to be written, which has no name yet; nil, message, code */
static int files_create(lua_State *L)
{
    size_t size;
    const char *path = luaL_checklstring(L, 1, &size), *slash = strrchr(path, '/');
    lua_pushlstring(L, path, slash ? (size_t)(slash - path) + 1 : 0);
    const char *folder = slash ? lua_tostring(L, -1) : ".";
    struct file *file = new_file(L);
    if (strlen(path) != size)
        return fail(L, path, EISDIR);
    file->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->folder < 0)
        return fail(L, folder, errno);
    return begin(L, file, path, slash ? slash + 1 : path);
}

/* Goes from a file's folder into the one of that name, made for its owner alone when
 * there was none: 0, or errno; ELOOP: it is a link. */
static int enter(struct file *file, const char *name)
{
    struct stat st;
    if (!is_name(name))
        return EINVAL;
    int number = mkdirat(file->folder, name, 0700) != 0 && errno != EEXIST ? errno : 0;
    int next = number ? -1
                      : openat(file->folder, name,
                               O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (!number && next < 0) {
        number = errno;
        if (fstatat(file->folder, name, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
            S_ISLNK(st.st_mode))
            number = ELOOP;
    }
    if (number)
        return number;
    close(file->folder);
    file->folder = next;
    return 0;
}

/* below(folder, path) -> a file as create makes, at `path` below `folder`, which is
 * there. The folders between them are made when they are missing, and none of them may be
 * a link: nil, message, EDENIED, what to do. nil, message, code */
static int files_below(lua_State *L)
{
    size_t length, size;
    const char *folder = luaL_checklstring(L, 1, &length);
    const char *path = luaL_checklstring(L, 2, &size);
    luaL_argcheck(L, strlen(folder) == length, 1, "a path expected");
    luaL_argcheck(L, strlen(path) == size, 2, "a path expected");
    struct file *file = new_file(L);
    file->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file->folder < 0)
        return fail(L, folder, errno);
    for (const char *slash; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        const char *name = lua_pushlstring(L, path, (size_t)(slash - path));
        int number = enter(file, name);
        folder = lua_pushfstring(L, "%s/%s", folder, name);
        if (number == ELOOP) {
            lua_pushnil(L);
            lua_pushfstring(L, "%s is a link", folder);
            lua_pushliteral(L, "EDENIED");
            lua_pushliteral(L, "Name the folder that it leads to, or remove the link.");
            return 4;
        }
        if (number)
            return fail(L, folder, number);
        lua_replace(L, 4);
        lua_settop(L, 4);
    }
    lua_settop(L, 3);
    return begin(L, file, path, path);
}

static struct file *open_file(lua_State *L)
{
    struct file *file = luaL_checkudata(L, 1, FILE_TYPE);
    luaL_argcheck(L, file->fd >= 0, 1, "the file is closed");
    return file;
}

/* Writes all of it: 0, or errno. */
static int write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno;
        text += n;
        size -= (size_t)n;
    }
    return 0;
}

/* file:write(text) -> true; nil, message, code */
static int file_write(lua_State *L)
{
    struct file *file = open_file(L);
    size_t size;
    const char *text = luaL_checklstring(L, 2, &size);
    int number = write_all(file->fd, text, size);
    if (number)
        return fail(L, file->name, number);
    lua_pushboolean(L, 1);
    return 1;
}

/* Gives a file without a name its hidden one, which no other has; 0, or -1. */
static int give_name(struct file *file, const char *name)
{
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file->fd);
    return linkat(AT_FDCWD, link, file->folder, name, AT_SYMLINK_FOLLOW);
}

/* file:finish(replace) -> true: it is there under its name, and on the disk. Without
 * `replace` EEXISTS when something is there. nil, message, code: nothing has changed. */
static int file_finish(lua_State *L)
{
    struct file *file = open_file(L);
    int replace = lua_toboolean(L, 2), bad = fsync(file->fd) != 0;
    if (!bad && !replace) {
        bad = file->hidden[0]
                  ? linkat(file->folder, file->hidden, file->folder, file->name, 0) != 0
                  : give_name(file, file->name) != 0;
    } else if (!bad) {
        if (!file->hidden[0]) {
            snprintf(file->hidden, sizeof file->hidden, ".sessile-%08x",
                     (unsigned int)getpid());
            unlinkat(file->folder, file->hidden, 0); /* of a process that died */
            if (give_name(file, file->hidden) != 0) {
                int number = errno;
                file->hidden[0] = '\0';
                return fail(L, file->name, number);
            }
        }
        bad = renameat(file->folder, file->hidden, file->folder, file->name) != 0;
        if (!bad)
            file->hidden[0] = '\0';
    }
    if (bad)
        return fail(L, file->name, errno);
    (void)fsync(file->folder);
    forget(file);
    lua_pushboolean(L, 1);
    return 1;
}

/* file:drop(): as if it had never been; harmless after finish. */
static int file_drop(lua_State *L)
{
    forget(luaL_checkudata(L, 1, FILE_TYPE));
    return 0;
}

/* folder(path) -> true: there is such a folder, made for its owner alone when there was
 * none; nil, message, code */
static int files_folder(lua_State *L)
{
    const char *path = luaL_checkstring(L, 1);
    struct stat st;
    if (mkdir(path, 0700) != 0) {
        int number = errno;
        if (number != EEXIST || stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
            return fail(L, path, number == EEXIST ? ENOTDIR : number);
    }
    lua_pushboolean(L, 1);
    return 1;
}

/* Makes the folders above a path that are missing, for this user alone. */
static void make_folders(char *path)
{
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(path, 0700); /* the open that follows says what is wrong */
        *slash = '/';
    }
}

/* append(path, text) -> true; nil, message, code: adds text at the end of a file that
 * nobody else may read; it and its folders are made when they are missing. A link, or
 * somebody else's file, is left alone: EDENIED. */
static int files_append(lua_State *L)
{
    size_t size, length;
    const char *path = luaL_checklstring(L, 1, &length),
               *text = luaL_checklstring(L, 2, &size);
    char *copy = lua_newuserdatauv(L, length + 1, 0);
    struct stat st;
    int fd, number = 0;
    luaL_argcheck(L, length > 0 && strlen(path) == length, 1, "a path expected");
    memcpy(copy, path, length + 1);
    make_folders(copy);
    fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC,
              0600);
    if (fd < 0)
        number = errno == ELOOP ? EPERM : errno;
    else if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid())
        number = EPERM;
    else if ((st.st_mode & 077) != 0 && fchmod(fd, 0600) != 0)
        number = errno;
    else
        number = write_all(fd, text, size);
    if (fd >= 0)
        close(fd);
    if (number)
        return fail(L, path, number);
    lua_pushboolean(L, 1);
    return 1;
}

int luaopen_sessile_files(lua_State *L)
{
    static const luaL_Reg methods[] = {{"write", file_write},
                                       {"finish", file_finish},
                                       {"drop", file_drop},
                                       {NULL, NULL}};
    static const luaL_Reg functions[] = {{"create", files_create},
                                         {"below", files_below},
                                         {"folder", files_folder},
                                         {"append", files_append},
                                         {NULL, NULL}};
    luaL_newmetatable(L, FILE_TYPE);
    luaL_newlib(L, methods);
    lua_setfield(L, -2, "__index");
    lua_pushcfunction(L, file_drop);
    lua_setfield(L, -2, "__gc");
    lua_pushcfunction(L, file_drop);
    lua_setfield(L, -2, "__close");
    lua_pop(L, 1);
    luaL_newlib(L, functions);
    return 1;
}
