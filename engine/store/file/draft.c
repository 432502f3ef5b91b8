/*
 * draft.c: writes a log in pieces before it has its name: a new log, or one that replaces
 * an existing log.
 *
 * The pieces go to a temporary file, which a rename gives the log's name. The replaced
 * log stays locked meanwhile, so nobody appends to it; a waiter for that lock finds that
 * the name leads elsewhere, and opens the log again. The bytes of the replaced log are
 * never touched. At every moment the name leads to one whole log, or to none if there was
 * none.
 */
#include "store/file/file.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "sessile_store.h"
#include "store/wait.h"

#define KEPT_MOST 10000 /* names tried for what is kept */

typedef struct file_draft {
    file_store *fs;
    const file_folder *folder;
    char name[FILE_NAME_SIZE]; /* with its suffix */
    char temporary[FILE_TEMPORARY];
    int fd;
    uint64_t size;
} file_draft;

static file_draft *draft_of(sessile_backend_draft *draft)
{
    return (file_draft *)(void *)draft;
}

void file_draft_drop(sessile_backend_draft *handle)
{
    if (handle) {
        file_draft *draft = draft_of(handle);
        file_store *fs = draft->fs;
        file_discard(fs, draft->folder->fd, draft->temporary, &draft->fd);
        mem_free(&fs->alloc, draft, sizeof *draft);
    }
}

sessile_status file_draft_new(void *self, const char *folder, const char *name,
                              sessile_backend_draft **out, sessile_error *err)
{
    file_store *fs = self;
    file_folder *in;
    *out = NULL;
    sessile_status status = store_name_check(name, err);
    if (!status)
        status = file_folder_get(fs, folder, 1, &in, err);
    if (status)
        return status;
    file_draft *draft = mem_zalloc(&fs->alloc, sizeof *draft);
    if (!draft)
        return fail_nomem(err);
    draft->fs = fs;
    draft->folder = in;
    memcpy(draft->name, name, strlen(name));
    memcpy(draft->name + strlen(name), FILE_SUFFIX, sizeof FILE_SUFFIX);
    status = file_temporary(fs, in->fd, draft->temporary, &draft->fd, err);
    if (status) {
        mem_free(&fs->alloc, draft, sizeof *draft);
        return status;
    }
    *out = (sessile_backend_draft *)(void *)draft;
    return SESSILE_OK;
}

sessile_status file_draft_write(sessile_backend_draft *handle, const void *data,
                                size_t size, sessile_error *err)
{
    file_draft *draft = draft_of(handle);
    size_t written = 0;
    if (os_write_full(draft->fs->os, draft->fd, data, size, draft->size, &written) != 0)
        return fail_errno(err, errno, "cannot write the new %s", draft->name);
    draft->size += size;
    return SESSILE_OK;
}

/* Gives the bytes under the log's name a second name, durable once the folder is synced.
 */
static sessile_status keep_old(file_draft *draft, char *kept, size_t kept_size,
                               sessile_error *err)
{
    const os_table *os = draft->fs->os;
    int stem = (int)(strlen(draft->name) - strlen(FILE_SUFFIX));
    os_stat_info old, there;
    for (unsigned n = 1; n <= KEPT_MOST; n++) {
        int size = snprintf(kept, kept_size, "%.*s.replaced-%u", stem, draft->name, n);
        if (size < 0 || (size_t)size >= kept_size)
            return fail(err, SESSILE_INVALID, "no room for the name of what is kept");
        if (os->link_at(os->ud, draft->folder->fd, draft->name, kept) == 0)
            return SESSILE_OK;
        if (errno != EEXIST) {
            return fail_errno(err, errno, "cannot keep the old %s as %s", draft->name,
                              kept);
        }
        /* kept already, by a run that was interrupted before its rename */
        if (os->stat_at(os->ud, draft->folder->fd, draft->name, &old) == 0 &&
            os->stat_at(os->ud, draft->folder->fd, kept, &there) == 0 &&
            old.device == there.device && old.inode == there.inode)
            return SESSILE_OK;
    }
    return fail(err, SESSILE_EXISTS,
                "%u old copies of %s are kept already: move them away", KEPT_MOST,
                draft->name);
}

sessile_status file_draft_replace(sessile_backend_draft *handle, sessile_backend_log *old,
                                  int keep, char *kept, size_t kept_size,
                                  sessile_error *err)
{
    file_draft *draft = draft_of(handle);
    file_store *fs = draft->fs;
    const os_table *os = fs->os;
    int dir = draft->folder->fd;
    sessile_status status = SESSILE_OK;
    if (kept && kept_size > 0)
        kept[0] = '\0';
    if (!file_log_is_locked(old))
        status = fail(err, SESSILE_INVALID, "a log is replaced only under its lock");
    if (!status && os->sync_all(os->ud, draft->fd) != 0)
        status = fail_errno(err, errno, "cannot sync the new %s", draft->name);
    if (!status && keep) {
        status = keep_old(draft, kept, kept_size, err);
        /* before the rename: a power cut must not keep the one and lose the other */
        if (!status && os->sync_all(os->ud, dir) != 0)
            status = fail_errno(err, errno, "cannot sync the folder of %s", draft->name);
    }
    if (!status && os->rename_over(os->ud, dir, draft->temporary, draft->name) != 0) {
        status =
            fail_errno(err, errno, "cannot put the new %s in its place", draft->name);
    }
    if (status) {
        file_draft_drop(handle);
        return status;
    }
    os->close(os->ud, draft->fd);
    draft->fd = -1;
    if (os->sync_all(os->ud, dir) != 0) {
        status =
            fail_errno(err, errno,
                       "%s was replaced, but its folder could not be synced: after a "
                       "power cut the old one may be there again",
                       draft->name);
        if (err)
            err->code = SESSILE_IO;
        status = SESSILE_IO;
    }
    file_cache_drop(fs, draft->folder, draft->name);
    mem_free(&fs->alloc, draft, sizeof *draft);
    return status;
}

sessile_status file_draft_publish(sessile_backend_draft *handle, sessile_error *err)
{
    file_draft *draft = draft_of(handle);
    file_store *fs = draft->fs;
    os_stat_info made;
    sessile_status status;
    if (fs->os->stat_fd(fs->os->ud, draft->fd, &made) != 0) {
        status = fail_errno(err, errno, "cannot look at the new %s", draft->name);
        file_draft_drop(handle);
        return status;
    }
    status = file_publish(fs, draft->folder->fd, draft->temporary, &draft->fd,
                          draft->name, err);
    if (!status) {
        pthread_mutex_lock(&fs->mutex);
        fs->made = (file_inode){made.device, made.inode};
        pthread_mutex_unlock(&fs->mutex);
    }
    mem_free(&fs->alloc, draft, sizeof *draft);
    return status;
}
