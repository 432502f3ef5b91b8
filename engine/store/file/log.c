/*
 * log.c: logs as files, ROOT/agents/<folder>/<name>.jsonl.
 *
 * Owns the descriptors of open logs, their locks, and the promise "append if the log
 * still ends at E". The size of the file is the end of the log: nothing is written past
 * it, and whole records are never written again. This file does not know what a record
 * contains.
 */
#include "store/file/file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sessile_store.h"
#include "store/wait.h"

typedef struct file_log {
    file_store *fs;
    const file_folder *folder;
    char name[FILE_NAME_SIZE]; /* with its suffix */
    int fd;
    int readonly; /* the file or its device does not let us write */
    int locked;   /* OS_LOCK_… that this handle holds */
    int has_turn; /* among the handles of this store */
    int named;    /* its name is known to be durable */
    uint64_t device, inode;
    int replaced; /* when its name was looked at last, it led to another log */
    file_shared *shared;
    uint64_t number; /* among the handles of the log */
    /* As seen when the lock was taken: while it is held nobody else moves them. */
    uint64_t size;
    int64_t mtime_ms;
    file_cache cache;
    lock_stop stop;
} file_log;

/* The table's handle is ours by another name. */
static file_log *log_of(sessile_backend_log *log)
{
    return (file_log *)(void *)log;
}

/* ---------------------------------------------------------------------- poisoned logs */

static sessile_status fail_poisoned(const file_log *log, sessile_error *err)
{
    return fail(err, SESSILE_IO,
                "an earlier write to %s could not be made safe: " STORE_LOOK_AGAIN,
                log->name);
}

/* ------------------------------------------------------------ open and create */

static sessile_status file_name(char out[FILE_NAME_SIZE], const char *name,
                                sessile_error *err)
{
    sessile_status status = store_name_check(name, err);
    if (!status) {
        size_t size = strlen(name);
        memcpy(out, name, size);
        memcpy(out + size, FILE_SUFFIX, sizeof FILE_SUFFIX);
    }
    return status;
}

sessile_status file_log_find(file_store *fs, const char *folder, const char *name,
                             file_folder **in, char out[FILE_NAME_SIZE],
                             sessile_error *err)
{
    uint64_t inode;
    int misnamed = store_is_misnamed(name, &inode);
    sessile_status status = misnamed ? SESSILE_OK : file_name(out, name, err);
    if (!status)
        status = file_folder_get(fs, folder, 0, in, err);
    return !status && misnamed ? file_name_find(fs, (*in)->fd, name, out, err) : status;
}

sessile_status file_create(void *self, const char *folder, const char *name,
                           const void *data, size_t size, sessile_error *err)
{
    file_store *fs = self;
    file_folder *in;
    char file[FILE_NAME_SIZE];
    os_stat_info st;
    sessile_status status = file_name(file, name, err);
    if (!status)
        status = file_folder_get(fs, folder, 1, &in, err);
    if (status)
        return status;
    if (fs->os->stat_at(fs->os->ud, in->fd, file, &st) == 0)
        return fail(err, SESSILE_EXISTS, "%s is already there", file);
    status = file_write_new(fs, in->fd, file, data, size, &st, err);
    if (!status) {
        pthread_mutex_lock(&fs->mutex);
        fs->made = (file_inode){st.device, st.inode};
        pthread_mutex_unlock(&fs->mutex);
    }
    return status;
}

sessile_status file_open(void *self, const char *folder, const char *name,
                         sessile_backend_log **out, sessile_error *err)
{
    file_store *fs = self;
    const os_table *os = fs->os;
    file_folder *in;
    os_stat_info st;
    char file[FILE_NAME_SIZE];
    *out = NULL;
    sessile_status status = file_log_find(fs, folder, name, &in, file, err);
    if (status)
        return status;
    file_log *log = mem_zalloc(&fs->alloc, sizeof *log);
    if (!log)
        return fail_nomem(err);
    log->fs = fs;
    log->folder = in;
    log->cache.fd = -1;
    memcpy(log->name, file, sizeof file);
    log->fd = os->open_at(os->ud, in->fd, log->name, OS_READ | OS_WRITE);
    if (log->fd < 0 && (errno == EACCES || errno == EROFS)) {
        log->readonly = 1;
        log->fd = os->open_at(os->ud, in->fd, log->name, OS_READ);
    }
    if (log->fd < 0) {
        status = errno == ELOOP
                     ? fail(err, SESSILE_DENIED, "%s is a link", log->name)
                     : file_unopened(fs, in->fd, log->name, 0400, err, "%s/agents/%s/%s",
                                     fs->root, in->name, log->name);
        goto out;
    }
    if (os->stat_fd(os->ud, log->fd, &st) != 0) {
        status = fail_errno(err, errno, "cannot look at %s", log->name);
        goto out;
    }
    status = file_check(fs, &st, 0, log->name, err);
    if (status)
        goto out;
    log->device = st.device;
    log->inode = st.inode;
    log->shared = file_shared_get(fs, st.device, st.inode, &log->number);
    if (!log->shared) {
        status = fail_nomem(err);
        goto out;
    }
    pthread_mutex_lock(&fs->mutex);
    log->named = fs->made.inode == st.inode && fs->made.device == st.device;
    if (log->named)
        fs->made = (file_inode){0, 0}; /* whose inode it is later, nobody knows */
    pthread_mutex_unlock(&fs->mutex);
    *out = (sessile_backend_log *)(void *)log;
    log = NULL;
out:
    if (log) {
        if (log->fd >= 0)
            os->close(os->ud, log->fd);
        mem_free(&fs->alloc, log, sizeof *log);
    }
    return status;
}

void file_close(sessile_backend_log *handle)
{
    if (handle) {
        file_log *log = log_of(handle);
        file_cache_close(log->fs, &log->cache);
        log->fs->os->close(log->fs->os->ud, log->fd); /* its lock goes with it */
        if (log->has_turn)
            file_shared_give(log->shared);
        file_shared_put(log->fs, log->shared);
        mem_free(&log->fs->alloc, log, sizeof *log);
    }
}

/* ---------------------------------------------------------------------- read */

sessile_status file_size(sessile_backend_log *handle, uint64_t *bytes, int64_t *mtime_ms,
                         sessile_error *err)
{
    file_log *log = log_of(handle);
    const os_table *os = log->fs->os;
    os_stat_info st;
    *bytes = 0;
    *mtime_ms = 0;
    if (log->locked == OS_LOCK_NONE) {
        /* Asked by its name, which also says whether it is still this one's: readers take
         * no lock. What is gone may be read to its end all the same. */
        int named = os->stat_at(os->ud, log->folder->fd, log->name, &st) == 0;
        log->replaced = named && (st.device != log->device || st.inode != log->inode);
        if ((!named || log->replaced) && os->stat_fd(os->ud, log->fd, &st) != 0)
            return fail_errno(err, errno, "cannot look at %s", log->name);
        *bytes = st.size;
        *mtime_ms = st.mtime_ms;
    } else {
        *bytes = log->size;
        *mtime_ms = log->mtime_ms;
    }
    return SESSILE_OK;
}

sessile_status file_read(sessile_backend_log *handle, uint64_t index, uint64_t offset,
                         void *out, size_t size, size_t *got, sessile_error *err)
{
    file_log *log = log_of(handle);
    (void)index; /* for backends that keep records, not bytes */
    *got = 0;
    int64_t n = os_read_full(log->fs->os, log->fd, out, size, offset);
    if (n < 0)
        return fail_errno(err, errno, "cannot read %s", log->name);
    *got = (size_t)n;
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- lock */

typedef struct lock_try {
    file_log *log;
    int mode;
} lock_try;

static int try_lock(void *arg)
{
    lock_try *t = arg;
    const os_table *os = t->log->fs->os;
    if (os->lock(os->ud, t->log->fd, t->mode) == 0)
        return 0;
    return errno == EAGAIN || errno == EACCES || errno == EINTR ? 1 : -1;
}

void file_unlock(sessile_backend_log *handle)
{
    file_log *log = log_of(handle);
    if (log->locked != OS_LOCK_NONE) {
        log->locked = OS_LOCK_NONE;
        log->fs->os->lock(log->fs->os->ud, log->fd, OS_LOCK_NONE);
    }
    if (log->has_turn) {
        log->has_turn = 0;
        file_shared_give(log->shared);
    }
}

sessile_status file_lock(sessile_backend_log *handle, int mode, int timeout_ms,
                         int *replaced, sessile_error *err)
{
    file_log *log = log_of(handle);
    const os_table *os = log->fs->os;
    os_stat_info st;
    *replaced = 0;
    int wanted = mode == SESSILE_LOCK_EXCLUSIVE ? OS_LOCK_EXCLUSIVE : OS_LOCK_SHARED;
    if (log->readonly && wanted == OS_LOCK_EXCLUSIVE) {
        return fail(err, SESSILE_DENIED,
                    "%s may only be read: chmod u+w it and open it again", log->name);
    }
    sessile_status allowed =
        file_may_write(log->fs, log->folder->network, log->folder->name, err);
    if (allowed)
        return allowed; /* nor is a shared lock worth anything there */
    lock_try t = {log, wanted};
    int got = LOCK_GOT;
    if (wanted == OS_LOCK_EXCLUSIVE) {
        got = file_shared_take(log->shared, os, &timeout_ms, log->stop);
        log->has_turn = got == LOCK_GOT;
    }
    if (got == LOCK_GOT)
        got = lock_wait(os, timeout_ms, try_lock, &t, log->stop);
    if (got != LOCK_GOT) {
        int error = errno;
        file_unlock(handle);
        return got == LOCK_STOPPED ? store_stopped(log->name, err)
               : got == LOCK_TAKEN ? fail(err, SESSILE_BUSY,
                                          "another writer holds %s: wait longer, or try "
                                          "again",
                                          log->name)
                                   : fail_errno(err, error, "cannot lock %s", log->name);
    }
    log->locked = wanted;
    log->replaced = 0;
    if (os->stat_at(os->ud, log->folder->fd, log->name, &st) == 0) {
        *replaced = log->replaced = st.device != log->device || st.inode != log->inode;
    } else if (errno == ENOENT) {
        *replaced = 1;
    } else {
        sessile_status status = fail_errno(err, errno, "cannot look at %s", log->name);
        file_unlock(handle);
        return status;
    }
    if (!*replaced) {
        /* the name's size is the log's: one call for both questions */
        log->size = st.size;
        log->mtime_ms = st.mtime_ms;
    } else if (os->stat_fd(os->ud, log->fd, &st) == 0) {
        log->size = st.size;
        log->mtime_ms = st.mtime_ms;
    } else {
        sessile_status status = fail_errno(err, errno, "cannot look at %s", log->name);
        file_unlock(handle);
        return status;
    }
    return SESSILE_OK;
}

void file_set_stop(sessile_backend_log *handle, int (*ask)(void *arg), void *arg)
{
    log_of(handle)->stop = (lock_stop){ask, arg};
}

/* Not done by file_lock: a caller that only tries does not need it, and reading /proc is
 * slow. */
sessile_status file_busy(sessile_backend_log *handle, sessile_error *err)
{
    const file_log *log = log_of(handle);
    const os_table *os = log->fs->os;
    os_holder holder;
    if (!os->lock_holder) {
        errno = ENOSYS;
    } else if (os->lock_holder(os->ud, log->fd, &holder) == 0) {
        const char *program = holder.program[0] != '\0' ? holder.program : "no name";
        if (holder.own) {
            return fail(err, SESSILE_BUSY,
                        "another handle of this process holds %s: wait longer, or let "
                        "it finish first",
                        log->name);
        }
        if (holder.stopped) {
            return fail(err, SESSILE_BUSY,
                        "process %u (%s) holds %s and is stopped: continue it (kill "
                        "-CONT %u), or end it",
                        holder.pid, program, log->name, holder.pid);
        }
        return fail(err, SESSILE_BUSY,
                    "process %u (%s) holds %s: wait longer, or try again when it is done",
                    holder.pid, program, log->name);
    }
    if (errno == ENOSYS) {
        return fail(err, SESSILE_BUSY,
                    "another writer holds %s, and without /proc it is unknown who: "
                    "wait longer, or try again",
                    log->name);
    }
    return fail(err, SESSILE_BUSY,
                "another writer holds %s, one that cannot be seen from here or has just "
                "let go: wait longer, or try again",
                log->name);
}

int file_log_is_locked(const sessile_backend_log *handle)
{
    return ((const file_log *)(const void *)handle)->locked == OS_LOCK_EXCLUSIVE;
}

int file_replaced(sessile_backend_log *handle)
{
    return log_of(handle)->replaced;
}

file_inode file_log_inode(const sessile_backend_log *handle)
{
    const file_log *log = (const file_log *)(const void *)handle;
    return (file_inode){log->device, log->inode};
}

file_cache *file_log_cache(sessile_backend_log *handle, file_store **fs,
                           const file_folder **folder, const char **name)
{
    file_log *log = log_of(handle);
    *fs = log->fs;
    *folder = log->folder;
    *name = log->name;
    return &log->cache;
}

/* ---------------------------------------------------------------------- append, sync */

sessile_status file_append(sessile_backend_log *handle, sessile_log_end *end,
                           const void *data, size_t size, uint64_t count,
                           const unsigned char new_tag[16], int *poisoned,
                           sessile_error *err)
{
    file_log *log = log_of(handle);
    const os_table *os = log->fs->os;
    os_stat_info st;
    size_t written = 0;
    *poisoned = 0;
    if (log->readonly) {
        return fail(err, SESSILE_DENIED,
                    "%s may only be read: chmod u+w it and open it again", log->name);
    }
    if (file_shared_is_poisoned(log->shared)) {
        *poisoned = 1;
        return fail_poisoned(log, err);
    }
    /* This comparison is the fence. Under the exclusive lock the size is the one that was
     * seen when it was taken: only who holds it moves the end. */
    st.size = log->size;
    if (log->locked != OS_LOCK_EXCLUSIVE && os->stat_fd(os->ud, log->fd, &st) != 0)
        return fail_errno(err, errno, "cannot look at %s", log->name);
    if (st.size < end->bytes) {
        return fail(err, SESSILE_TRUNCATED,
                    "%s has %llu bytes where %llu are known to have been written: bring "
                    "back a backup",
                    log->name, (unsigned long long)st.size,
                    (unsigned long long)end->bytes);
    }
    if (st.size > end->bytes) {
        return fail(err, SESSILE_CONFLICT, "%s has grown: read on, then try again",
                    log->name);
    }
    /* Who made this log, or put it in the place of another, may have been killed before
     * the sync of the folder. What is about to be acknowledged hangs on that name. */
    if (!log->named) {
        if (os->sync_all(os->ud, log->folder->fd) != 0)
            return fail_errno(err, errno, "cannot sync the folder of %s", log->name);
        log->named = 1;
    }
    /* Without O_APPEND, with which Linux ignores pwrite's offset. */
    if (os_write_full(os, log->fd, data, size, end->bytes, &written) != 0) {
        sessile_status status = fail_errno(err, errno, "cannot append to %s", log->name);
        /* also when no byte is said to have gone: a failed call may have moved the end */
        if (os->truncate(os->ud, log->fd, end->bytes) != 0) {
            file_shared_poison(log->shared);
            *poisoned = 1;
        }
        return status;
    }
    end->count += count;
    end->bytes += size;
    memcpy(end->tag, new_tag, sizeof end->tag);
    log->size = end->bytes;
    return SESSILE_OK;
}

sessile_status file_rewrite(sessile_backend_log *handle, uint64_t offset,
                            const void *data, size_t size, sessile_error *err)
{
    file_log *log = log_of(handle);
    const os_table *os = log->fs->os;
    size_t written;
    if (log->readonly) {
        return fail(err, SESSILE_DENIED,
                    "%s may only be read: chmod u+w it and open it again", log->name);
    }
    /* The same bytes: a write that stops half-way has changed nothing. */
    if (os_write_full(os, log->fd, data, size, offset, &written) != 0)
        return fail_errno(err, errno, "cannot write %s", log->name);
    return SESSILE_OK;
}

sessile_status file_sync(sessile_backend_log *handle, sessile_error *err)
{
    file_log *log = log_of(handle);
    if (file_shared_is_poisoned(log->shared))
        return fail_poisoned(log, err);
    if (file_shared_sync(log->shared, log->fs->os, log->fd, log->number) != 0) {
        int error = errno;
        fail_errno(err, error,
                   "cannot sync %s: what was written since the last sync may "
                   "or may not be there; " STORE_LOOK_AGAIN,
                   log->name);
        if (err)
            err->code = SESSILE_IO; /* whatever the cause: the outcome is not known */
        return SESSILE_IO;
    }
    /* Another handle's sync that failed may have been the one we shared, or have marked
     * our pages clean before ours came to them. */
    return file_shared_is_poisoned(log->shared) ? fail_poisoned(log, err) : SESSILE_OK;
}

/* ---------------------------------------------------------------------- set aside */

sessile_status file_set_aside(sessile_backend_log *handle, uint64_t offset,
                              sessile_error *err)
{
    file_log *log = log_of(handle);
    const os_table *os = log->fs->os;
    os_stat_info st;
    if (log->locked != OS_LOCK_EXCLUSIVE)
        return fail(err, SESSILE_INVALID, "a log is cut only under its lock");
    if (file_shared_is_poisoned(log->shared))
        return fail_poisoned(log, err);
    if (os->stat_fd(os->ud, log->fd, &st) != 0)
        return fail_errno(err, errno, "cannot look at %s", log->name);
    if (st.size <= offset)
        return SESSILE_OK;
    sessile_status status = file_set_piece(log->fs, log->folder->fd, log->fd, log->name,
                                           offset, st.size - offset, err);
    if (status)
        return status;
    if (os->truncate(os->ud, log->fd, offset) != 0)
        return fail_errno(err, errno, "cannot cut the torn end of %s", log->name);
    log->size = offset;
    if (os->sync_all(os->ud, log->fd) != 0) {
        status = fail_errno(err, errno, "cannot sync %s after cutting it", log->name);
        file_shared_poison(log->shared);
    }
    return status;
}
