/*
 * file.c: a store of plain files: its table of functions; opened and freed.
 */
#include "store/file/file.h"

#include <string.h>

#include "store/file/open.h"

static void file_free(void *self)
{
    file_store *fs = self;
    if (!fs)
        return;
    allocator a = fs->alloc;
    file_folders_free(fs);
    file_shared_free_all(fs);
    if (fs->root)
        mem_free(&a, fs->root, strlen(fs->root) + 1);
    pthread_mutex_destroy(&fs->mutex);
    mem_free(&a, fs, sizeof *fs);
}

static const sessile_backend file_backend = {
    STORE_TABLE(file),
    .capabilities = SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CUTS | SESSILE_BACKEND_LOCKS |
                    SESSILE_BACKEND_CACHES | SESSILE_BACKEND_REPLACES |
                    SESSILE_BACKEND_LIST_CACHE,
    .name = "file",
    .free = file_free,
    .lock = file_lock,
    .unlock = file_unlock,
    .set_aside = file_set_aside,
    .blob_settle = file_blob_settle,
    .rewrite = file_rewrite,
    .busy = file_busy,
};

void store_file_allow_network(store *st)
{
    ((file_store *)st->self)->allow_network = 1;
}

const char *store_file_root(const store *st)
{
    return st->table == &file_backend ? ((const file_store *)st->self)->root : NULL;
}

sessile_status store_file_open(store *out, const char *root, const os_table *os,
                               const allocator *a, sessile_error *err)
{
    int fd;
    out->table = NULL;
    out->self = NULL;
    if (!root || root[0] == '\0')
        return fail(err, SESSILE_INVALID, "a file store needs the path of its folder");
    file_store *fs = mem_zalloc(a, sizeof *fs);
    if (!fs)
        return fail_nomem(err);
    fs->os = os;
    fs->alloc = *a;
    fs->root_fd = fs->agents_fd = -1;
    pthread_mutex_init(&fs->mutex, NULL);
    fs->root = mem_dup(a, root, strlen(root));
    sessile_status status = !fs->root ? fail_nomem(err) : SESSILE_OK;
    if (!status) {
        /* a trailing slash would follow a link */
        for (size_t n = strlen(root); n > 1 && fs->root[n - 1] == '/'; n--)
            fs->root[n - 1] = '\0';
        status = file_root(fs, 0, &fd, err);
    }
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK; /* made by the first write */
    }
    if (status) {
        file_free(fs);
        return status;
    }
    out->table = &file_backend;
    out->self = fs;
    return SESSILE_OK;
}
