/*
 * blob.c: blobs, and files that appear whole or not at all.
 *
 * A file is created in one way: a temporary name, its bytes, a sync, a rename that
 * replaces nothing, a sync of the folder. A name in use is never written to.
 */
#include "store/file/file.h"

#include <errno.h>
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"

#define BLOB_LARGEST (UINT64_C(1) << 20)

sessile_status file_temporary(file_store *fs, int dir, char *temporary, int *fd,
                              sessile_error *err)
{
    const os_table *os = fs->os;
    unsigned char random[8];
    char network[16];
    file_network(fs, dir, network);
    sessile_status status = file_may_write(fs, network, NULL, err);
    if (status)
        return status;
    /* the leading dot keeps it out of lists; no log and no blob can have such a name */
    random_bytes(random, sizeof random);
    size_t prefix = strlen(FILE_TEMPORARY_PREFIX);
    memcpy(temporary, FILE_TEMPORARY_PREFIX, prefix);
    hex_encode(temporary + prefix, random, sizeof random);
    *fd = os->open_at(os->ud, dir, temporary, OS_WRITE | OS_CREATE_NEW);
    if (*fd < 0)
        return fail_errno(err, errno, "cannot make a file in %s", fs->root);
    /* Until it is closed: who sweeps up leftovers sees that this is none. Where there are
     * no locks its age has to do. */
    (void)os->lock(os->ud, *fd, OS_LOCK_EXCLUSIVE);
    return SESSILE_OK;
}

void file_discard(file_store *fs, int dir, const char *temporary, int *fd)
{
    const os_table *os = fs->os;
    if (*fd >= 0) {
        os->close(os->ud, *fd);
        *fd = -1;
        os->unlink_at(os->ud, dir, temporary);
    }
}

sessile_status file_publish(file_store *fs, int dir, const char *temporary, int *fd,
                            const char *name, sessile_error *err)
{
    const os_table *os = fs->os;
    sessile_status status;
    if (os->sync_all(os->ud, *fd) != 0) {
        status = fail_errno(err, errno, "cannot sync %s in %s", name, fs->root);
        goto discard;
    }
    if (os->rename_new(os->ud, dir, temporary, name) != 0) {
        status = errno == EEXIST
                     ? fail(err, SESSILE_EXISTS, "%s is already there", name)
                     : fail_errno(err, errno, "cannot name %s in %s", name, fs->root);
        goto discard;
    }
    /* Under its lock still: nobody has written to it, or given its name to another one.
     */
    status = SESSILE_OK;
    if (os->sync_all(os->ud, dir) != 0) {
        /* "or not at all": the name may or may not outlive a power cut, so it goes */
        status = fail_errno(err, errno, "cannot sync the folder of %s", name);
        os->unlink_at(os->ud, dir, name);
    }
    os->close(os->ud, *fd);
    *fd = -1;
    return status;
discard:
    file_discard(fs, dir, temporary, fd);
    return status;
}

sessile_status file_write_new(file_store *fs, int dir, const char *name, const void *data,
                              size_t size, os_stat_info *made, sessile_error *err)
{
    char temporary[FILE_TEMPORARY];
    size_t written = 0;
    int fd = -1;
    sessile_status status = file_temporary(fs, dir, temporary, &fd, err);
    if (status)
        return status;
    if (os_write_full(fs->os, fd, data, size, 0, &written) != 0)
        status = fail_errno(err, errno, "cannot write %s in %s", name, fs->root);
    else if (made && fs->os->stat_fd(fs->os->ud, fd, made) != 0)
        status = fail_errno(err, errno, "cannot look at %s in %s", name, fs->root);
    if (status) {
        file_discard(fs, dir, temporary, &fd);
        return status;
    }
    return file_publish(fs, dir, temporary, &fd, name, err);
}

sessile_status file_read_whole(file_store *fs, int dir, const char *name,
                               const char *where, int private_only, uint64_t largest,
                               char **out, size_t *size, sessile_error *err)
{
    const os_table *os = fs->os;
    os_stat_info st;
    char *data = NULL;
    int64_t got;
    sessile_status status = SESSILE_OK;
    int fd = os->open_at(os->ud, dir, name, OS_READ);
    if (fd < 0)
        return file_unopened(fs, dir, name, 0400, err, "%s in %s", name, where);
    if (os->stat_fd(os->ud, fd, &st) != 0)
        status = fail_errno(err, errno, "cannot look at %s in %s", name, where);
    if (!status)
        status = file_check(fs, &st, private_only, name, err);
    if (!status && st.size > largest)
        status = fail(err, SESSILE_DAMAGED, "%s in %s is far too large", name, where);
    if (!status && !(data = host_alloc(&fs->alloc, (size_t)st.size + 1)))
        status = fail_nomem(err);
    if (!status && (got = os_read_full(os, fd, data, (size_t)st.size, 0)) < 0)
        status = fail_errno(err, errno, "cannot read %s in %s", name, where);
    os->close(os->ud, fd);
    if (status) {
        host_free(data);
        return status;
    }
    data[got] = '\0';
    *out = data;
    *size = (size_t)got;
    return SESSILE_OK;
}

sessile_status file_blob_get(void *self, const char *name, char **out, size_t *size,
                             sessile_error *err)
{
    file_store *fs = self;
    int root;
    *out = NULL;
    *size = 0;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = file_root(fs, 0, &root, err);
    if (status)
        return status;
    return file_read_whole(fs, root, name, fs->root, 1, BLOB_LARGEST, out, size, err);
}

sessile_status file_blob_put_new(void *self, const char *name, const void *data,
                                 size_t size, sessile_error *err)
{
    file_store *fs = self;
    int root;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = file_root(fs, 1, &root, err);
    if (status)
        return status;
    return file_write_new(fs, root, name, data, size, NULL, err);
}
