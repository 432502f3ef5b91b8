/*
 * cache.c: NAME.idx, the cache beside a log.
 *
 * Nothing here is synced: the bytes may be lost or wrong at any time, and a reader must
 * work without them. The file is created only by a write. Like a log, it is never reached
 * through a link.
 */
#include "store/file/file.h"

#include <errno.h>
#include <string.h>

#define CACHE_SUFFIX ".idx"

/* The cache of a log, by the log's file name. out has room for FILE_NAME_SIZE. */
static void cache_name(char out[FILE_NAME_SIZE], const char *log)
{
    size_t size = strlen(log) - strlen(FILE_SUFFIX);
    memcpy(out, log, size);
    memcpy(out + size, CACHE_SUFFIX, sizeof CACHE_SUFFIX);
}

void file_cache_drop(file_store *fs, const file_folder *folder, const char *log)
{
    char name[FILE_NAME_SIZE];
    cache_name(name, log);
    fs->os->unlink_at(fs->os->ud, folder->fd, name); /* there may be none */
}

void file_cache_close(file_store *fs, file_cache *cache)
{
    if (cache->fd >= 0) {
        fs->os->close(fs->os->ud, cache->fd);
        cache->fd = -1;
    }
}

/* Opens the file of that name as the handle's cache. NOTFOUND unless make. */
static sessile_status open_cache(file_store *fs, const file_folder *folder,
                                 const char *name, int make, file_cache *cache,
                                 sessile_error *err)
{
    const os_table *os = fs->os;
    os_stat_info st;
    cache->readonly = 0;
    cache->fd = os->open_at(os->ud, folder->fd, name, OS_READ | OS_WRITE);
    if (cache->fd < 0 && errno == ENOENT && make) {
        cache->fd =
            os->open_at(os->ud, folder->fd, name, OS_READ | OS_WRITE | OS_CREATE_NEW);
    } else if (cache->fd < 0 && (errno == EACCES || errno == EROFS)) {
        cache->readonly = 1;
        cache->fd = os->open_at(os->ud, folder->fd, name, OS_READ);
    }
    if (cache->fd < 0)
        return fail_errno(err, errno, "cannot open %s", name);
    sessile_status status = SESSILE_OK;
    if (os->stat_fd(os->ud, cache->fd, &st) != 0)
        status = fail_errno(err, errno, "cannot look at %s", name);
    else
        status = file_check(fs, &st, 0, name, err);
    if (status) {
        file_cache_close(fs, cache);
        return status;
    }
    cache->device = st.device;
    cache->inode = st.inode;
    return SESSILE_OK;
}

sessile_status file_cache_size(sessile_backend_log *handle, uint64_t *bytes,
                               sessile_error *err)
{
    file_store *fs;
    const file_folder *folder;
    const char *log;
    char name[FILE_NAME_SIZE];
    os_stat_info st;
    file_cache *cache = file_log_cache(handle, &fs, &folder, &log);
    const os_table *os = fs->os;
    *bytes = 0;
    cache_name(name, log);
    /* Who is about to write looks whether the name still leads to what is open: a cache
     * that was removed would grow unseen. */
    if (cache->fd >= 0 && file_log_is_locked(handle) &&
        (os->stat_at(os->ud, folder->fd, name, &st) != 0 || st.device != cache->device ||
         st.inode != cache->inode))
        file_cache_close(fs, cache);
    if (cache->fd < 0) {
        sessile_error why = {0};
        sessile_status status = open_cache(fs, folder, name, 0, cache, &why);
        if (status == SESSILE_NOTFOUND)
            return SESSILE_OK;
        if (status)
            return fail(err, status, "%s", why.message);
    }
    if (os->stat_fd(os->ud, cache->fd, &st) != 0)
        return fail_errno(err, errno, "cannot look at %s", name);
    *bytes = st.size;
    return SESSILE_OK;
}

sessile_status file_cache_read(sessile_backend_log *handle, uint64_t offset, void *out,
                               size_t size, size_t *got, sessile_error *err)
{
    file_store *fs;
    const file_folder *folder;
    const char *log;
    char name[FILE_NAME_SIZE];
    sessile_status status = SESSILE_OK;
    file_cache *cache = file_log_cache(handle, &fs, &folder, &log);
    *got = 0;
    cache_name(name, log);
    if (cache->fd < 0)
        status = open_cache(fs, folder, name, 0, cache, err);
    if (status)
        return status;
    int64_t n = os_read_full(fs->os, cache->fd, out, size, offset);
    if (n < 0)
        return fail_errno(err, errno, "cannot read %s", name);
    *got = (size_t)n;
    return SESSILE_OK;
}

sessile_status file_cache_write(sessile_backend_log *handle, uint64_t offset,
                                const void *data, size_t size, sessile_error *err)
{
    file_store *fs;
    const file_folder *folder;
    const char *log;
    char name[FILE_NAME_SIZE];
    sessile_status status = SESSILE_OK;
    size_t written;
    file_cache *cache = file_log_cache(handle, &fs, &folder, &log);
    const os_table *os = fs->os;
    cache_name(name, log);
    if (!file_log_is_locked(handle))
        return fail(err, SESSILE_INVALID, "a cache is written only under the log's lock");
    if (cache->fd < 0)
        status = open_cache(fs, folder, name, 1, cache, err);
    if (!status && cache->readonly)
        status = fail(err, SESSILE_DENIED, "%s may only be read: chmod u+w it", name);
    if (status)
        return status;
    if (os->truncate(os->ud, cache->fd, offset) != 0)
        return fail_errno(err, errno, "cannot cut %s", name);
    if (os_write_full(os, cache->fd, data, size, offset, &written) != 0)
        return fail_errno(err, errno, "cannot write %s", name);
    return SESSILE_OK;
}
