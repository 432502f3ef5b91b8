/*
 * sweep.c: what a crash left of files that had no name yet.
 *
 * Owns the decision that nobody is writing such a file any more. It must never take away
 * one that somebody is writing, and never a name but that of a leftover.
 *
 * Whoever makes a file holds its lock until it has its name, so one that cannot be locked
 * is in use. Between making and locking lies a moment in which it looks abandoned; hence
 * it must be an hour old as well. (Should its maker have been stopped in that moment for
 * an hour, it will not find its file when it wakes, and fails: nothing is lost that was
 * acknowledged.) A leftover may be the second name of a log, where the file system cannot
 * rename without replacing: then the log is locked for a moment, and keeps its own name.
 */
#include "store/file/file.h"

#include <errno.h>
#include <string.h>

#define LEAST_AGE_MS (INT64_C(60) * 60 * 1000)
#define HEX          16

typedef struct sweeping {
    file_store *fs;
    int dir;
    const char *folder; /* NULL: ROOT */
    int (*visit)(void *arg, const char *folder, const char *file, uint64_t bytes);
    void *arg;
    sessile_status status;
    sessile_error *err;
} sweeping;

static int is_leftover_name(const char *name)
{
    size_t prefix = strlen(FILE_TEMPORARY_PREFIX);
    return strncmp(name, FILE_TEMPORARY_PREFIX, prefix) == 0 &&
           strlen(name) == prefix + HEX &&
           strspn(name + prefix, "0123456789abcdef") == HEX;
}

/* 1 when the file open as fd is nobody's any more; it is locked then. */
static int is_abandoned(const sweeping *s, int fd, const char *name, uint64_t *bytes)
{
    const os_table *os = s->fs->os;
    os_stat_info st, named;
    if (os->stat_fd(os->ud, fd, &st) != 0 || !st.is_regular ||
        st.uid != os->uid(os->ud) || os->now_ms(os->ud) - st.mtime_ms < LEAST_AGE_MS ||
        os->lock(os->ud, fd, OS_LOCK_EXCLUSIVE) != 0)
        return 0;
    *bytes = st.size;
    /* it may have been given its name, and its lock up, while we came to it */
    return os->stat_at(os->ud, s->dir, name, &named) == 0 && named.device == st.device &&
           named.inode == st.inode;
}

static int sweep_name(void *arg, const char *name)
{
    sweeping *s = arg;
    const os_table *os = s->fs->os;
    uint64_t bytes = 0;
    if (!is_leftover_name(name))
        return 0;
    int fd = os->open_at(os->ud, s->dir, name, OS_READ | OS_WRITE);
    if (fd < 0)
        return 0;
    if (is_abandoned(s, fd, name, &bytes) && s->visit(s->arg, s->folder, name, bytes) &&
        os->unlink_at(os->ud, s->dir, name) != 0) {
        s->status = fail_errno(s->err, errno, "cannot remove %s in %s", name,
                               s->folder ? s->folder : s->fs->root);
    }
    os->close(os->ud, fd); /* its lock goes with it */
    return s->status != SESSILE_OK;
}

static int sweep_folder(void *arg, file_folder *folder)
{
    sweeping *s = arg;
    const os_table *os = s->fs->os;
    s->dir = folder->fd;
    s->folder = folder->name;
    if (os->list(os->ud, folder->fd, sweep_name, s) != 0 && !s->status) {
        s->status = fail_errno(s->err, errno, "cannot list the folder %s in %s",
                               folder->name, s->fs->root);
    }
    return s->status != SESSILE_OK;
}

sessile_status file_sweep(void *self,
                          int (*visit)(void *arg, const char *folder, const char *file,
                                       uint64_t bytes),
                          void *arg, sessile_error *err)
{
    file_store *fs = self;
    sweeping s = {fs, -1, NULL, visit, arg, SESSILE_OK, err};
    sessile_status status = file_root(fs, 0, &s.dir, err);
    if (!status && fs->os->list(fs->os->ud, s.dir, sweep_name, &s) != 0 && !s.status)
        s.status = fail_errno(err, errno, "cannot list %s", fs->root);
    if (!status && !s.status)
        status = file_folders_each(fs, sweep_folder, &s, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK; /* nothing was ever written */
    }
    return s.status ? s.status : status;
}
