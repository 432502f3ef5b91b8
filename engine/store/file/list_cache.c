/*
 * list_cache.c: .list_cache, a cache beside the logs of an agent's folder.
 *
 * It is replaced whole and never synced, so it may be lost, old or torn after a power
 * cut. It is checked as a log is: no links, no access for others.
 */
#include "store/file/file.h"
#include "base/alloc.h"

#include <errno.h>
#include <string.h>

#define LIST_CACHE         ".list_cache"
#define LIST_CACHE_LARGEST (UINT64_C(256) << 20)

sessile_status file_stat(void *self, const char *folder, const char *name,
                         sessile_backend_stat *out, sessile_error *err)
{
    file_store *fs = self;
    file_folder *in;
    char log[FILE_NAME_SIZE];
    memset(out, 0, sizeof *out);
    sessile_status status = file_log_find(fs, folder, name, &in, log, err);
    if (status)
        return status;
    if (file_look(fs, in, log, out) != 0) {
        return fail_errno(err, errno, "cannot look at %s/agents/%s/%s", fs->root,
                          in->name, log);
    }
    return SESSILE_OK;
}

sessile_status file_list_cache_get(void *self, const char *folder, char **out,
                                   size_t *size, sessile_error *err)
{
    file_store *fs = self;
    file_folder *in;
    *out = NULL;
    *size = 0;
    sessile_status status = file_folder_get(fs, folder, 0, &in, err);
    if (status)
        return status;
    return file_read_whole(fs, in->fd, LIST_CACHE, in->name, 0, LIST_CACHE_LARGEST, out,
                           size, err);
}

sessile_status file_list_cache_put(void *self, const char *folder, const void *data,
                                   size_t size, sessile_error *err)
{
    file_store *fs = self;
    const os_table *os = fs->os;
    file_folder *in;
    char temporary[FILE_TEMPORARY];
    size_t written = 0;
    int fd = -1;
    sessile_status status = file_folder_get(fs, folder, 0, &in, err);
    if (status)
        return status;
    if (size > LIST_CACHE_LARGEST)
        return fail(err, SESSILE_LIMIT, LIST_CACHE " in %s would be far too large",
                    in->name);
    status = file_temporary(fs, in->fd, temporary, &fd, err);
    if (status)
        return status;
    if (os_write_full(os, fd, data, size, 0, &written) != 0 ||
        os->rename_over(os->ud, in->fd, temporary, LIST_CACHE) != 0) {
        status = fail_errno(err, errno, "cannot write " LIST_CACHE " in %s", in->name);
        file_discard(fs, in->fd, temporary, &fd);
        return status;
    }
    os->close(os->ud, fd);
    return SESSILE_OK;
}

typedef struct dropping {
    file_store *fs;
    sessile_status status;
    sessile_error *err;
} dropping;

/* Goes on after a failure: the others' list_caches are to go all the same. */
static int drop_one(void *arg, file_folder *folder)
{
    dropping *d = arg;
    const os_table *os = d->fs->os;
    if (os->unlink_at(os->ud, folder->fd, LIST_CACHE) != 0 && errno != ENOENT) {
        d->status = fail_errno(d->err, errno, "cannot remove %s/agents/%s/" LIST_CACHE,
                               d->fs->root, folder->name);
    }
    return 0;
}

sessile_status file_list_cache_drop(void *self, const char *folder, sessile_error *err)
{
    file_store *fs = self;
    dropping d = {fs, SESSILE_OK, err};
    file_folder *in;
    sessile_status status;
    if (folder) {
        status = file_folder_get(fs, folder, 0, &in, err);
        if (!status)
            drop_one(&d, in);
    } else {
        status = file_folders_each(fs, drop_one, &d, err);
    }
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        return SESSILE_OK;
    }
    return status ? status : d.status;
}
