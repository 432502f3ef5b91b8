/*
 * change.c: replaces, removes, syncs and lists existing blobs.
 *
 * To replace or remove a blob, a process locks the blob itself (an open-file-description
 * lock) and checks that the name still leads to the locked file. So of two changes one is
 * first, and the other sees its result. A name never holds part of a blob, unless the
 * blob is being removed.
 */
#include "store/file/file.h"

#include <errno.h>
#include <string.h>

#include "base/text.h"
#include "store/wait.h"

/* Whoever holds the lock writes a small file and syncs it. */
#define LOCK_MS 10000
#define PIECE   4096

typedef struct lock_try {
    const os_table *os;
    int fd;
} lock_try;

static int try_lock(void *arg)
{
    const lock_try *t = arg;
    if (t->os->lock(t->os->ud, t->fd, OS_LOCK_EXCLUSIVE) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES || errno == EINTR ? 1 : -1;
}

/* Opens and locks a blob. 1 in *gone: it was replaced or removed meanwhile. */
static sessile_status try_open(file_store *fs, int root, const char *name, int *fd,
                               os_stat_info *st, int *gone, sessile_error *err)
{
    const os_table *os = fs->os;
    const lock_stop never = {NULL, NULL};
    os_stat_info named;
    *gone = 0;
    *fd = os->open_at(os->ud, root, name, OS_READ | OS_WRITE);
    if (*fd < 0)
        return file_unopened(fs, root, name, 0600, err, "%s in %s", name, fs->root);
    lock_try t = {os, *fd};
    int got = lock_wait(os, LOCK_MS, try_lock, &t, never);
    if (got < 0)
        return fail_errno(err, errno, "cannot lock %s in %s", name, fs->root);
    if (got != LOCK_GOT) {
        return fail(err, SESSILE_BUSY, "another process holds %s in %s: try again", name,
                    fs->root);
    }
    if (os->stat_fd(os->ud, *fd, st) != 0)
        return fail_errno(err, errno, "cannot look at %s in %s", name, fs->root);
    if (os->stat_at(os->ud, root, name, &named) != 0) {
        *gone = errno == ENOENT;
        return *gone ? SESSILE_OK
                     : fail_errno(err, errno, "cannot look at %s in %s", name, fs->root);
    }
    *gone = named.device != st->device || named.inode != st->inode;
    return *gone ? SESSILE_OK : file_check(fs, st, 1, name, err);
}

static sessile_status lock_blob(file_store *fs, const char *name, int *root, int *fd,
                                os_stat_info *st, sessile_error *err)
{
    int gone;
    *fd = -1;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = file_root(fs, 0, root, err);
    if (status)
        return status;
    do {
        status = try_open(fs, *root, name, fd, st, &gone, err);
        if ((status || gone) && *fd >= 0) {
            fs->os->close(fs->os->ud, *fd);
            *fd = -1;
        }
    } while (!status && gone);
    return status;
}

/* 1: it holds exactly these bytes. -1 and errno. */
static int holds(const os_table *os, int fd, uint64_t size, const void *was,
                 size_t was_size)
{
    char bytes[PIECE];
    if (size != was_size)
        return 0;
    for (size_t at = 0; at < was_size;) {
        size_t want = was_size - at < PIECE ? was_size - at : PIECE;
        int64_t got = os_read_full(os, fd, bytes, want, at);
        if (got < 0)
            return -1;
        if ((size_t)got != want || memcmp(bytes, (const char *)was + at, want) != 0)
            return 0;
        at += want;
    }
    return 1;
}

/* The new bytes under a temporary name, synced, then over the old ones. */
static sessile_status put_over(file_store *fs, int root, const char *name,
                               const void *data, size_t size, sessile_error *err)
{
    const os_table *os = fs->os;
    char temporary[FILE_TEMPORARY];
    size_t written;
    int fd;
    sessile_status status = file_temporary(fs, root, temporary, &fd, err);
    if (status)
        return status;
    if (os_write_full(os, fd, data, size, 0, &written) != 0)
        status = fail_errno(err, errno, "cannot write %s in %s", name, fs->root);
    else if (os->sync_all(os->ud, fd) != 0)
        status = fail_errno(err, errno, "cannot sync %s in %s", name, fs->root);
    else if (os->rename_over(os->ud, root, temporary, name) != 0)
        status = fail_errno(err, errno, "cannot replace %s in %s", name, fs->root);
    if (status) {
        file_discard(fs, root, temporary, &fd);
        return status;
    }
    os->close(os->ud, fd);
    if (os->sync_all(os->ud, root) != 0) {
        fail_errno(err, errno,
                   "%s was replaced, but its folder could not be synced: after a power "
                   "cut the old one may be there again",
                   name);
        if (err)
            err->code = SESSILE_IO;
        return SESSILE_IO;
    }
    return SESSILE_OK;
}

sessile_status file_blob_replace(void *self, const char *name, const void *was,
                                 size_t was_size, const void *data, size_t size,
                                 sessile_error *err)
{
    file_store *fs = self;
    os_stat_info st;
    int root, fd;
    sessile_status status = lock_blob(fs, name, &root, &fd, &st, err);
    if (status)
        return status;
    int same = holds(fs->os, fd, st.size, was, was_size);
    if (same < 0) {
        status = fail_errno(err, errno, "cannot read %s in %s", name, fs->root);
    } else if (!same) {
        status =
            fail(err, SESSILE_CONFLICT, "%s was changed meanwhile: look again", name);
    } else {
        status = put_over(fs, root, name, data, size, err);
    }
    fs->os->close(fs->os->ud, fd); /* its lock goes with it */
    return status;
}

sessile_status file_blob_remove(void *self, const char *name, sessile_error *err)
{
    static const char nothing[PIECE];
    file_store *fs = self;
    const os_table *os = fs->os;
    os_stat_info st;
    int root, fd;
    sessile_status status = lock_blob(fs, name, &root, &fd, &st, err);
    if (status)
        return status;
    for (uint64_t at = 0; at < st.size && !status; at += PIECE) {
        size_t size = st.size - at < PIECE ? (size_t)(st.size - at) : PIECE, written;
        if (os_write_full(os, fd, nothing, size, at, &written) != 0)
            status = fail_errno(err, errno, "cannot overwrite %s in %s", name, fs->root);
    }
    if (!status && os->sync_all(os->ud, fd) != 0)
        status = fail_errno(err, errno, "cannot sync %s in %s", name, fs->root);
    if (!status && os->unlink_at(os->ud, root, name) != 0)
        status = fail_errno(err, errno, "cannot remove %s in %s", name, fs->root);
    if (!status && os->sync_all(os->ud, root) != 0)
        status = fail_errno(err, errno, "cannot sync the folder of %s", name);
    os->close(os->ud, fd);
    return status;
}

sessile_status file_blob_settle(void *self, const char *name, sessile_error *err)
{
    file_store *fs = self;
    int root;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = file_root(fs, 0, &root, err);
    /* its bytes were synced before it got its name */
    if (!status && fs->os->sync_all(fs->os->ud, root) != 0)
        status = fail_errno(err, errno, "cannot sync the folder of %s", name);
    return status;
}

typedef struct listing {
    const os_table *os;
    int root;
    const char *prefix;
    int (*visit)(void *arg, const char *name);
    void *arg;
} listing;

static int list_one(void *arg, const char *name)
{
    const listing *l = arg;
    char shown[STORE_MISNAMED_SIZE];
    os_stat_info st;
    if (!store_name_ok(name)) {
        if (!strncmp(name, FILE_TEMPORARY_PREFIX, strlen(FILE_TEMPORARY_PREFIX)) ||
            l->os->stat_at(l->os->ud, l->root, name, &st) != 0 || !st.is_regular)
            return 0;
        name = store_blob_shown(st.inode, name, shown);
    }
    return strncmp(name, l->prefix, strlen(l->prefix)) == 0 ? l->visit(l->arg, name) : 0;
}

sessile_status file_blob_list(void *self, const char *prefix,
                              int (*visit)(void *arg, const char *name), void *arg,
                              sessile_error *err)
{
    file_store *fs = self;
    listing l = {fs->os, -1, prefix, visit, arg};
    sessile_status status = file_root(fs, 0, &l.root, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        return SESSILE_OK;
    }
    if (!status && fs->os->list(fs->os->ud, l.root, list_one, &l) < 0)
        status = fail_errno(err, errno, "cannot list %s", fs->root);
    return status;
}
