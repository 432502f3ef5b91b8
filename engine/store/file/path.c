/*
 * path.c: opens ROOT and the folders below it.
 *
 * Each step opens one component relative to a checked descriptor, so no link or foreign
 * folder can lead elsewhere. Names are never joined into longer paths, except ROOT
 * itself, which the host chose. Opening never creates anything.
 */
#include "store/file/file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "store/wait.h"

#define OTHERS_WRITE 022u
#define OTHERS       077u

sessile_status file_check(const file_store *fs, const os_stat_info *st, int private_only,
                          const char *what, sessile_error *err)
{
    if (!st->is_regular) {
        return fail(err, SESSILE_DENIED, "%s in %s is not a regular file: move it away",
                    what, fs->root);
    }
    if (st->uid != fs->os->uid(fs->os->ud)) {
        return fail(err, SESSILE_DENIED, "%s in %s belongs to another user", what,
                    fs->root);
    }
    if ((st->mode & (private_only ? OTHERS : OTHERS_WRITE)) != 0) {
        return fail(err, SESSILE_DENIED, "%s in %s is open to others: chmod 600 it", what,
                    fs->root);
    }
    return SESSILE_OK;
}

sessile_status file_unopened(const file_store *fs, int dir, const char *name,
                             uint32_t needed, sessile_error *err, const char *format, ...)
{
    const os_table *os = fs->os;
    const int error = errno;
    char what[sizeof err->message];
    os_stat_info st;
    va_list args;
    va_start(args, format);
    if (vsnprintf(what, sizeof what, format, args) < 0)
        what[0] = 0;
    va_end(args);
    if (error == EACCES && os->stat_at(os->ud, dir, name, &st) == 0 &&
        st.uid == os->uid(os->ud) && (st.mode & needed) != needed) {
        return fail(err, SESSILE_DENIED,
                    "cannot open %s, whose mode is %03o: chmod u+%s it", what,
                    (unsigned)st.mode, st.is_dir ? "rwx" : "rw");
    }
    return fail_errno(err, error, "cannot open %s", what);
}

void file_network(const file_store *fs, int fd, char network[16])
{
    const os_table *os = fs->os;
    if (!os->network || os->network(os->ud, fd, network, 16) != 1)
        network[0] = '\0';
}

sessile_status file_may_write(const file_store *fs, const char *network, const char *what,
                              sessile_error *err)
{
    if (network[0] == '\0' || fs->allow_network)
        return SESSILE_OK;
    return fail(
        err, SESSILE_UNSUPPORTED,
        "%s%s%s is on a network file system (%s), whose locks and syncs cannot be "
        "relied on: keep the store on a local disk; or, when one machine alone "
        "writes there, open it with allow_network (Lua: network = true, command: "
        "--network)",
        fs->root, !what ? "" : "/agents/", !what ? "" : what, network);
}

/* Opens a folder and sees that it is one of ours. dir -1: name is ROOT. */
static sessile_status open_folder(file_store *fs, int dir, const char *name, int *fd,
                                  sessile_error *err)
{
    const os_table *os = fs->os;
    os_stat_info st;
    const char *in = dir < 0 ? "" : " in ", *root = dir < 0 ? "" : fs->root;
    *fd = -1;
    int got = os->open_at(os->ud, dir, name, OS_READ | OS_DIRECTORY);
    if (got < 0) {
        if (errno == ENOTDIR || errno == ELOOP) {
            return fail(err, SESSILE_DENIED,
                        "%s%s%s is a link or no folder: name the folder itself", name, in,
                        root);
        }
        return file_unopened(fs, dir, name, 0500, err, "the folder %s%s%s", name, in,
                             root);
    }
    sessile_status status = SESSILE_OK;
    if (os->stat_fd(os->ud, got, &st) != 0) {
        status =
            fail_errno(err, errno, "cannot look at the folder %s%s%s", name, in, root);
    } else if (!st.is_dir || st.uid != os->uid(os->ud)) {
        status = fail(err, SESSILE_DENIED, "the folder %s%s%s belongs to another user",
                      name, in, root);
    } else if ((st.mode & OTHERS_WRITE) != 0) {
        status =
            fail(err, SESSILE_DENIED,
                 "others may write in the folder %s%s%s: chmod 700 it", name, in, root);
    }
    if (status) {
        os->close(os->ud, got);
        return status;
    }
    *fd = got;
    return SESSILE_OK;
}

/* All that follows runs under the store's mutex. */

static sessile_status root_locked(file_store *fs, int make, sessile_error *err)
{
    /* Also when it is there and open: who made it may not have come to their sync. */
    if (make && !fs->root_named) {
        if (os_make_path(fs->os, &fs->alloc, fs->root) != 0)
            return fail_errno(err, errno, "cannot make the folder %s", fs->root);
        fs->root_named = 1;
    }
    if (fs->root_fd >= 0)
        return SESSILE_OK;
    return open_folder(fs, -1, fs->root, &fs->root_fd, err);
}

/* Opens dir/name, making it when asked. */
static sessile_status folder_below(file_store *fs, int dir, const char *name, int make,
                                   int *fd, sessile_error *err)
{
    if (make && fs->os->mkdir_at(fs->os->ud, dir, name) != 0 && errno != EEXIST)
        return fail_errno(err, errno, "cannot make the folder %s in %s", name, fs->root);
    return open_folder(fs, dir, name, fd, err);
}

static sessile_status agents_locked(file_store *fs, int make, sessile_error *err)
{
    sessile_status status = root_locked(fs, make, err);
    if (status || fs->agents_fd >= 0)
        return status;
    return folder_below(fs, fs->root_fd, "agents", make, &fs->agents_fd, err);
}

sessile_status file_root(file_store *fs, int make, int *fd, sessile_error *err)
{
    pthread_mutex_lock(&fs->mutex);
    sessile_status status = root_locked(fs, make, err);
    *fd = fs->root_fd;
    pthread_mutex_unlock(&fs->mutex);
    return status;
}

sessile_status file_agents(file_store *fs, int make, int *fd, sessile_error *err)
{
    pthread_mutex_lock(&fs->mutex);
    sessile_status status = agents_locked(fs, make, err);
    *fd = fs->agents_fd;
    pthread_mutex_unlock(&fs->mutex);
    return status;
}

typedef struct finding {
    const os_table *os;
    int dir;
    uint64_t inode;
    char *name;
} finding;

static int is_it(void *arg, const char *name)
{
    finding *f = arg;
    os_stat_info st;
    if (strlen(name) >= FILE_NAME_SIZE ||
        f->os->stat_at(f->os->ud, f->dir, name, &st) != 0 || st.inode != f->inode)
        return 0;
    memcpy(f->name, name, strlen(name) + 1);
    return 1;
}

sessile_status file_name_find(const file_store *fs, int dir, const char *shown,
                              char name[FILE_NAME_SIZE], sessile_error *err)
{
    finding f = {fs->os, dir, 0, name};
    name[0] = '\0';
    if (!store_is_misnamed(shown, &f.inode)) {
        sessile_status status = store_name_check(shown, err);
        if (!status)
            memcpy(name, shown, strlen(shown) + 1);
        return status;
    }
    if (fs->os->list(fs->os->ud, dir, is_it, &f) < 0)
        return fail_errno(err, errno, "cannot list %s", fs->root);
    return name[0] != '\0'
               ? SESSILE_OK
               : fail(err, SESSILE_NOTFOUND, "there is no %s in %s", shown, fs->root);
}

static sessile_status folder_locked(file_store *fs, const char *name, int make,
                                    file_folder **out, sessile_error *err)
{
    const os_table *os = fs->os;
    file_folder *folder = fs->folders;
    while (folder && strcmp(folder->name, name) != 0)
        folder = folder->next;
    if (!folder) {
        sessile_status status = agents_locked(fs, make, err);
        if (status)
            return status;
        char entry[FILE_NAME_SIZE];
        status = file_name_find(fs, fs->agents_fd, name, entry, err);
        if (status)
            return status;
        folder = mem_zalloc(&fs->alloc, sizeof *folder);
        char *copy = mem_dup(&fs->alloc, name, strlen(name));
        if (!folder || !copy)
            status = fail_nomem(err);
        else
            status = folder_below(fs, fs->agents_fd, entry, make, &folder->fd, err);
        if (status) {
            mem_free(&fs->alloc, copy, strlen(name) + 1);
            mem_free(&fs->alloc, folder, sizeof *folder);
            return status;
        }
        folder->name = copy;
        file_network(fs, folder->fd, folder->network);
        folder->next = fs->folders;
        fs->folders = folder;
    }
    sessile_status status =
        make ? file_may_write(fs, folder->network, folder->name, err) : SESSILE_OK;
    if (status)
        return status;
    if (make && !folder->named_durably) {
        /* Also when somebody else made it a moment ago: they may not have come to their
         * sync, and what we are about to acknowledge hangs on these names. */
        status = root_locked(fs, 1, err);
        if (status)
            return status;
        if (os->sync_all(os->ud, fs->agents_fd) != 0 ||
            os->sync_all(os->ud, fs->root_fd) != 0)
            return fail_errno(err, errno, "cannot sync the folders of %s", fs->root);
        folder->named_durably = 1;
    }
    *out = folder;
    return SESSILE_OK;
}

sessile_status file_folder_get(file_store *fs, const char *name, int make,
                               file_folder **out, sessile_error *err)
{
    *out = NULL;
    uint64_t inode;
    sessile_status status = make || !store_is_misnamed(name, &inode)
                                ? store_name_check(name, err)
                                : SESSILE_OK;
    if (status)
        return status;
    pthread_mutex_lock(&fs->mutex);
    status = folder_locked(fs, name, make, out, err);
    pthread_mutex_unlock(&fs->mutex);
    return status;
}

void file_folders_free(file_store *fs)
{
    const os_table *os = fs->os;
    while (fs->folders) {
        file_folder *folder = fs->folders;
        fs->folders = folder->next;
        os->close(os->ud, folder->fd);
        mem_free(&fs->alloc, folder->name, strlen(folder->name) + 1);
        mem_free(&fs->alloc, folder, sizeof *folder);
    }
    if (fs->agents_fd >= 0)
        os->close(os->ud, fs->agents_fd);
    if (fs->root_fd >= 0)
        os->close(os->ud, fs->root_fd);
    fs->agents_fd = fs->root_fd = -1;
}
