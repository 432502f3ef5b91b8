/*
 * simfs_calls.c: the system calls of the simulated file system.
 *
 * Owns descriptors, locks, paths and the errors that a system answers with. Must never
 * touch what is durable: it records changes, and simfs.c knows what becomes of them.
 */
#include "support/simfs_inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_FD 3
#define NOWHERE  SIMFS_NOWHERE

/* ---------------------------------------------------------------------- paths */

static opened *fd_get(simfs *fs, int fd)
{
    size_t at = (size_t)(fd - FIRST_FD);
    if (fd < FIRST_FD || at >= fs->fd_count || !fs->fds[at].used) {
        errno = EBADF;
        return NULL;
    }
    return &fs->fds[at];
}

static size_t start_of(simfs *fs, int dir)
{
    if (dir < 0)
        return 0;
    const opened *o = fd_get(fs, dir);
    if (!o)
        return NOWHERE;
    if (!fs->nodes[o->node].is_dir) {
        errno = ENOTDIR;
        return NOWHERE;
    }
    return o->node;
}

/* The folder that holds the last name of the path; *found: what the name leads to. */
static size_t look_up(simfs *fs, int dir, const char *path, char last[256], size_t *found)
{
    size_t at = start_of(fs, dir);
    *found = NOWHERE;
    if (at != NOWHERE)
        at = simfs_walk(fs, at, path, last);
    if (at != NOWHERE)
        *found =
            strcmp(last, ".") == 0 ? at : simfs_name_get(&fs->nodes[at].live_names, last);
    return at;
}

/* ---------------------------------------------------------------------- the table */

static void enter(simfs *fs)
{
    pthread_mutex_lock(&fs->mutex);
}

static int leave(simfs *fs, int error)
{
    pthread_mutex_unlock(&fs->mutex);
    if (error == 0)
        return 0;
    errno = error;
    return -1;
}

/* Before a changing call. */
static void announce(simfs *fs)
{
    enter(fs);
    uint64_t number = fs->changes++;
    simfs_watcher watcher = fs->watcher;
    void *arg = fs->watcher_arg;
    leave(fs, 0);
    if (watcher)
        watcher(arg, fs, number);
}

static int fd_new(simfs *fs, size_t at, int flags)
{
    size_t slot = 0;
    while (slot < fs->fd_count && fs->fds[slot].used)
        slot++;
    if (slot == fs->fd_count) {
        fs->fds = simfs_must(realloc(fs->fds, (slot + 1) * sizeof *fs->fds));
        fs->fd_count++;
    }
    fs->fds[slot] = (opened){1, OS_LOCK_NONE, flags, at};
    return (int)slot + FIRST_FD;
}

static int sim_open(void *ud, int dir, const char *path, int flags)
{
    simfs *fs = ud;
    char last[256];
    size_t found;
    int fd = -1, error = 0;
    if (flags & OS_CREATE_NEW)
        announce(fs);
    enter(fs);
    size_t at = look_up(fs, dir, path, last, &found);
    if (at == NOWHERE) {
        error = errno;
    } else if (flags & OS_CREATE_NEW) {
        if (found != NOWHERE) {
            error = EEXIST;
        } else {
            found = simfs_node_new(fs, 0);
            simfs_change(fs, (op){.kind = OP_LINK,
                                  .node = at,
                                  .target = found,
                                  .name = simfs_must(strdup(last))});
        }
    } else if (found == NOWHERE) {
        error = ENOENT;
    } else if ((flags & OS_DIRECTORY) && !fs->nodes[found].is_dir) {
        error = ENOTDIR;
    } else if ((flags & OS_WRITE) && fs->nodes[found].is_dir) {
        error = EISDIR;
    }
    if (error == 0)
        fd = fd_new(fs, found, flags);
    leave(fs, error);
    return fd;
}

static int sim_close(void *ud, int fd)
{
    simfs *fs = ud;
    enter(fs);
    opened *o = fd_get(fs, fd);
    if (o)
        o->used = 0;
    return leave(fs, o ? 0 : EBADF);
}

static int64_t sim_pread(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    simfs *fs = ud;
    int64_t got = -1;
    enter(fs);
    const opened *o = fd_get(fs, fd);
    int error = !o ? EBADF : fs->nodes[o->node].is_dir ? EISDIR : 0;
    if (error == 0 && !(o->flags & OS_READ))
        error = EBADF;
    if (error == 0) {
        const bytes *b = &fs->nodes[o->node].live;
        size_t left = offset < b->size ? b->size - (size_t)offset : 0;
        got = (int64_t)(size < left ? size : left);
        if (got > 0)
            memcpy(out, b->data + offset, (size_t)got);
    }
    leave(fs, error);
    return got;
}

static int64_t sim_pwrite(void *ud, int fd, const void *data, size_t size,
                          uint64_t offset)
{
    simfs *fs = ud;
    announce(fs);
    enter(fs);
    const opened *o = fd_get(fs, fd);
    int error = o && (o->flags & OS_WRITE) ? 0 : EBADF;
    if (error == 0) {
        op w = {.kind = OP_WRITE, .node = o->node, .offset = offset};
        simfs_bytes_put(&w.data, 0, data, size);
        simfs_change(fs, w);
    }
    return leave(fs, error) ? -1 : (int64_t)size;
}

static int sim_truncate(void *ud, int fd, uint64_t size)
{
    simfs *fs = ud;
    announce(fs);
    enter(fs);
    const opened *o = fd_get(fs, fd);
    int error = o && (o->flags & OS_WRITE) ? 0 : EINVAL;
    if (error == 0)
        simfs_change(fs, (op){.kind = OP_TRUNCATE, .node = o->node, .offset = size});
    return leave(fs, error);
}

static int sim_sync(void *ud, int fd)
{
    simfs *fs = ud;
    announce(fs);
    enter(fs);
    const opened *o = fd_get(fs, fd);
    int error = o ? 0 : EBADF;
    if (o) {
        int fails = 0;
        if (!fs->nodes[o->node].is_dir && fs->syncs_until_failure != UINT64_MAX)
            fails = fs->syncs_until_failure-- == 0;
        simfs_sync_node(fs, o->node, fails);
        fs->syncs_failed += fails != 0;
        error = fails ? EIO : 0;
    }
    error = leave(fs, error) ? errno : 0;
    if (fs->mingles)
        os_posix.sleep_ms(NULL, 0);
    errno = error;
    return error ? -1 : 0;
}

static void fill(const simfs *fs, size_t at, os_stat_info *out)
{
    const node *n = &fs->nodes[at];
    memset(out, 0, sizeof *out);
    out->device = 1;
    out->inode = at + 1;
    out->size = n->live.size;
    out->mtime_ms = n->mtime;
    out->mtime_ns = out->ctime_ns = n->mtime * 1000000;
    out->uid = 1000;
    out->mode = n->is_dir ? 0700 : 0600;
    out->is_dir = n->is_dir;
    out->is_regular = !n->is_dir;
}

static int sim_stat_fd(void *ud, int fd, os_stat_info *out)
{
    simfs *fs = ud;
    enter(fs);
    const opened *o = fd_get(fs, fd);
    if (o)
        fill(fs, o->node, out);
    return leave(fs, o ? 0 : EBADF);
}

static int sim_stat_at(void *ud, int dir, const char *name, os_stat_info *out)
{
    simfs *fs = ud;
    char last[256];
    size_t found;
    enter(fs);
    size_t at = look_up(fs, dir, name, last, &found);
    int error = at == NOWHERE ? errno : found == NOWHERE ? ENOENT : 0;
    if (error == 0)
        fill(fs, found, out);
    return leave(fs, error);
}

static int sim_lock(void *ud, int fd, int mode)
{
    simfs *fs = ud;
    int error = 0;
    enter(fs);
    opened *o = fd_get(fs, fd);
    if (!o)
        error = EBADF;
    for (size_t i = 0; o && mode != OS_LOCK_NONE && i < fs->fd_count; i++) {
        const opened *p = &fs->fds[i];
        if (p != o && p->used && p->node == o->node && p->lock != OS_LOCK_NONE &&
            (mode == OS_LOCK_EXCLUSIVE || p->lock == OS_LOCK_EXCLUSIVE))
            error = EAGAIN;
    }
    if (error == 0)
        o->lock = mode;
    return leave(fs, error);
}

/* Begins a call about a name: the folder's node and what the name is, or NOWHERE. */
static size_t begin_call(simfs *fs, int dir, const char *path, char last[256],
                         size_t *found)
{
    announce(fs);
    enter(fs);
    return look_up(fs, dir, path, last, found);
}

static int sim_mkdir(void *ud, int dir, const char *path)
{
    simfs *fs = ud;
    char last[256];
    size_t found;
    size_t at = begin_call(fs, dir, path, last, &found);
    int error = at == NOWHERE ? errno : found != NOWHERE ? EEXIST : 0;
    if (error == 0) {
        found = simfs_node_new(fs, 1);
        simfs_change(fs, (op){.kind = OP_LINK,
                              .node = at,
                              .target = found,
                              .name = simfs_must(strdup(last))});
    }
    return leave(fs, error);
}

static int give_name(simfs *fs, int dir, const char *from, const char *to, int over,
                     op_kind kind)
{
    char last[256];
    size_t source, found, at;
    announce(fs);
    enter(fs);
    int error = 0;
    at = look_up(fs, dir, from, last, &source);
    if (at == NOWHERE || source == NOWHERE)
        error = at == NOWHERE ? errno : ENOENT;
    if (error == 0 && look_up(fs, dir, to, last, &found) == NOWHERE)
        error = errno;
    if (error == 0 && found != NOWHERE && !over)
        error = EEXIST;
    /* two names of one file: a rename does nothing */
    if (error == 0 && found != source)
        simfs_change(fs,
                     (op){.kind = kind,
                          .node = at,
                          .target = source,
                          .name = simfs_must(strdup(to)),
                          .from = kind == OP_RENAME ? simfs_must(strdup(from)) : NULL});
    return leave(fs, error);
}

static int sim_rename_new(void *ud, int dir, const char *from, const char *to)
{
    return give_name(ud, dir, from, to, 0, OP_RENAME);
}

static int sim_rename_over(void *ud, int dir, const char *from, const char *to)
{
    return give_name(ud, dir, from, to, 1, OP_RENAME);
}

static int sim_link(void *ud, int dir, const char *from, const char *to)
{
    return give_name(ud, dir, from, to, 0, OP_LINK);
}

static int sim_unlink(void *ud, int dir, const char *name)
{
    simfs *fs = ud;
    char last[256];
    size_t found;
    size_t at = begin_call(fs, dir, name, last, &found);
    int error = at == NOWHERE             ? errno
                : found == NOWHERE        ? ENOENT
                : fs->nodes[found].is_dir ? EISDIR
                                          : 0;
    if (error == 0)
        simfs_change(
            fs, (op){.kind = OP_UNLINK, .node = at, .name = simfs_must(strdup(last))});
    return leave(fs, error);
}

static int sim_list(void *ud, int dir, int (*visit)(void *arg, const char *name),
                    void *arg)
{
    simfs *fs = ud;
    names copy = {NULL, 0, 0};
    enter(fs);
    size_t at = start_of(fs, dir);
    int error = at == NOWHERE ? errno : 0;
    if (error == 0)
        copy = simfs_names_copy(&fs->nodes[at].live_names);
    leave(fs, 0);
    for (size_t i = 0; i < copy.count; i++)
        if (visit(arg, copy.list[i].name))
            break;
    simfs_names_free(&copy);
    errno = error;
    return error ? -1 : 0;
}

static int64_t sim_now(void *ud)
{
    simfs *fs = ud;
    enter(fs);
    int64_t now = ++fs->now_ms;
    leave(fs, 0);
    return now;
}

static uint64_t sim_clock(void *ud)
{
    simfs *fs = ud;
    enter(fs);
    uint64_t now = fs->clock_us += 10;
    leave(fs, 0);
    return now;
}

static uint64_t sim_cpu(void *ud)
{
    simfs *fs = ud;
    enter(fs);
    uint64_t now = ++fs->cpu_us;
    leave(fs, 0);
    return now;
}

static void sim_sleep(void *ud, int ms)
{
    simfs *fs = ud;
    enter(fs);
    fs->clock_us += (uint64_t)(ms > 0 ? ms : 0) * 1000;
    fs->now_ms += ms > 0 ? ms : 0;
    leave(fs, 0);
    os_posix.sleep_ms(NULL, 0); /* whoever holds the lock must get on */
}

static uint32_t sim_uid(void *ud)
{
    (void)ud;
    return 1000;
}

static uint32_t sim_pid(void *ud)
{
    (void)ud;
    return os_posix.pid(NULL);
}

static const char *sim_env(void *ud, const char *name)
{
    (void)ud;
    (void)name;
    return NULL;
}

os_table simfs_calls(simfs *fs)
{
    return (os_table){
        .ud = fs,
        .open_at = sim_open,
        .close = sim_close,
        .pread = sim_pread,
        .pwrite = sim_pwrite,
        .truncate = sim_truncate,
        .sync_data = sim_sync,
        .sync_all = sim_sync,
        .stat_fd = sim_stat_fd,
        .stat_at = sim_stat_at,
        .lock = sim_lock,
        .mkdir_at = sim_mkdir,
        .rename_new = sim_rename_new,
        .rename_over = sim_rename_over,
        .link_at = sim_link,
        .unlink_at = sim_unlink,
        .list = sim_list,
        .now_ms = sim_now,
        .clock_us = sim_clock,
        .thread_cpu_us = sim_cpu,
        .sleep_ms = sim_sleep,
        .uid = sim_uid,
        .pid = sim_pid,
        .env = sim_env,
    };
}
