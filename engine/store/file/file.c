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
    .version = SESSILE_BACKEND_VERSION,
    .capabilities = SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CUTS | SESSILE_BACKEND_LOCKS |
                    SESSILE_BACKEND_CACHES | SESSILE_BACKEND_REPLACES |
                    SESSILE_BACKEND_LIST_CACHE,
    .name = "file",
    .free = file_free,
    .create = file_create,
    .open = file_open,
    .close = file_close,
    .size = file_size,
    .read = file_read,
    .lock = file_lock,
    .unlock = file_unlock,
    .append = file_append,
    .sync = file_sync,
    .set_aside = file_set_aside,
    .list = file_list,
    .list_others = file_list_others,
    .blob_get = file_blob_get,
    .blob_put_new = file_blob_put_new,
    .blob_replace = file_blob_replace,
    .blob_remove = file_blob_remove,
    .blob_list = file_blob_list,
    .blob_settle = file_blob_settle,
    .has_logs = file_has_logs,
    .rewrite = file_rewrite,
    .cache_size = file_cache_size,
    .cache_read = file_cache_read,
    .cache_write = file_cache_write,
    .draft_new = file_draft_new,
    .draft_write = file_draft_write,
    .draft_replace = file_draft_replace,
    .draft_drop = file_draft_drop,
    .stat = file_stat,
    .list_cache_get = file_list_cache_get,
    .list_cache_put = file_list_cache_put,
    .list_cache_drop = file_list_cache_drop,
    .list_stat = file_list_stat,
    .set_stop = file_set_stop,
    .busy = file_busy,
    .replaced = file_replaced,
    .sweep = file_sweep,
    .remove = file_remove,
    .draft_publish = file_draft_publish,
};

void store_file_allow_network(store *st)
{
    ((file_store *)st->self)->allow_network = 1;
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
