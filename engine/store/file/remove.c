/*
 * remove.c: removes a log and the files beside it; gives a log its right name.
 *
 * The files beside the log go first and its name goes last, so after an interruption the
 * log is found and removed again. Files of other logs are safe: no log's name contains a
 * dot, and every file beside a log begins with its name and a dot.
 */
#include "store/file/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"

enum { PIECE = 1 << 16 };

/* Zeros over the first `head` bytes of a file, durably. */
static sessile_status overwrite(file_store *fs, int dir, const char *file, uint64_t head,
                                sessile_error *err)
{
    static const char nothing[PIECE];
    const os_table *os = fs->os;
    sessile_status status = SESSILE_OK;
    os_stat_info st;
    int fd = os->open_at(os->ud, dir, file, OS_READ | OS_WRITE);
    if (fd < 0)
        return fail_errno(err, errno, "cannot open %s to overwrite it", file);
    if (os->stat_fd(os->ud, fd, &st) != 0)
        status = fail_errno(err, errno, "cannot look at %s", file);
    else if (!st.is_regular)
        status = fail(err, SESSILE_DENIED, "%s is no file: take it away", file);
    uint64_t end = !status && st.size < head ? st.size : head;
    for (uint64_t at = 0; !status && at < end; at += PIECE) {
        size_t size = end - at < PIECE ? (size_t)(end - at) : PIECE, written;
        if (os_write_full(os, fd, nothing, size, at, &written) != 0)
            status = fail_errno(err, errno, "cannot overwrite %s", file);
    }
    if (!status && os->sync_all(os->ud, fd) != 0)
        status = fail_errno(err, errno, "cannot sync %s", file);
    os->close(os->ud, fd);
    return status;
}

typedef struct beside {
    const char *log; /* the log's file name */
    size_t stem;     /* of which its own name and the dot */
    buf names;       /* each with its NUL */
} beside;

static int note(void *arg, const char *file)
{
    beside *b = arg;
    if (strncmp(file, b->log, b->stem) == 0 && strcmp(file, b->log) != 0)
        buf_put(&b->names, file, strlen(file) + 1);
    return b->names.failed;
}

static sessile_status remove_beside(file_store *fs, int dir, const char *log,
                                    uint64_t head, sessile_error *err)
{
    const os_table *os = fs->os;
    sessile_status status = SESSILE_OK;
    beside b = {log, strlen(log) - strlen(FILE_SUFFIX) + 1, {0}};
    buf_init(&b.names, &fs->alloc);
    if (os->list(os->ud, dir, note, &b) < 0)
        status = fail_errno(err, errno, "cannot list what lies beside %s", log);
    else if (b.names.failed)
        status = fail_nomem(err);
    for (size_t at = 0; !status && at < b.names.size;) {
        const char *file = b.names.data + at;
        os_stat_info st;
        at += strlen(file) + 1;
        /* what is a link has no bytes of ours */
        if (os->stat_at(os->ud, dir, file, &st) == 0 && st.is_regular)
            status = overwrite(fs, dir, file, head, err);
        if (!status && os->unlink_at(os->ud, dir, file) != 0 && errno != ENOENT)
            status = fail_errno(err, errno, "cannot remove %s", file);
    }
    buf_deinit(&b.names);
    return status;
}

sessile_status file_rename(sessile_backend_log *handle, const char *folder,
                           const char *name, sessile_error *err)
{
    char from[2 * FILE_NAME_SIZE], to[2 * FILE_NAME_SIZE], entry[FILE_NAME_SIZE];
    file_store *fs;
    const file_folder *in;
    file_folder *there;
    const char *log;
    int agents;
    (void)file_log_cache(handle, &fs, &in, &log);
    if (!file_log_is_locked(handle))
        return fail(err, SESSILE_INVALID, "a log is renamed only under its lock");
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = file_folder_get(fs, folder, 1, &there, err);
    if (!status)
        status = file_agents(fs, 0, &agents, err);
    if (!status)
        status = file_name_find(fs, agents, in->name, entry, err);
    if (status)
        return status;
    file_cache_drop(fs, in, log);
    snprintf(from, sizeof from, "%s/%s", entry, log);
    snprintf(to, sizeof to, "%s/%s" FILE_SUFFIX, folder, name);
    if (fs->os->rename_new(fs->os->ud, agents, from, to) != 0) {
        return errno == EEXIST
                   ? fail(err, SESSILE_EXISTS, "%s is already there", to)
                   : fail_errno(err, errno, "cannot rename %s to %s", from, to);
    }
    if (fs->os->sync_all(fs->os->ud, there->fd) != 0 ||
        fs->os->sync_all(fs->os->ud, in->fd) != 0)
        return fail_errno(err, errno, "cannot sync the folder of %s", to);
    return SESSILE_OK;
}

sessile_status file_remove(sessile_backend_log *handle, uint64_t head, sessile_error *err)
{
    file_store *fs;
    const file_folder *folder;
    const char *log;
    (void)file_log_cache(handle, &fs, &folder, &log);
    if (!file_log_is_locked(handle))
        return fail(err, SESSILE_INVALID, "a log is removed only under its lock");
    sessile_status status = remove_beside(fs, folder->fd, log, head, err);
    if (!status)
        status = overwrite(fs, folder->fd, log, head, err);
    if (status)
        return status;
    if (fs->os->unlink_at(fs->os->ud, folder->fd, log) != 0)
        return fail_errno(err, errno, "cannot remove %s", log);
    if (fs->os->sync_all(fs->os->ud, folder->fd) != 0) {
        fail_errno(
            err, errno,
            "%s was removed, but its folder could not be synced: after a power cut "
            "it may be there again, unreadable",
            log);
        if (err)
            err->code = SESSILE_IO;
        return SESSILE_IO;
    }
    return SESSILE_OK;
}
