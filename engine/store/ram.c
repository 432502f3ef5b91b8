/*
 * ram.c: logs in memory, which live as long as the store handle, and the table of the
 * backend; its blobs are in ram_blob.c.
 *
 * The disk is never touched. All handles of a log share it. A log whose name was taken
 * away is freed with its last handle. Each log has one mutex for its lock and its bytes;
 * the list of logs has the store's mutex.
 */
#include "store/ram.h"

#include <string.h>

#include "base/buf.h"
#include "store/ram_internal.h"
#include "store/wait.h"

typedef struct ram_log {
    struct ram_log *next;
    char *folder, *name;
    pthread_mutex_t mutex; /* all that follows */
    buf bytes;
    sessile_log_end end; /* of what was appended; count is not known of the first write */
    int has_end;
    int64_t mtime_ms;
    int readers, writer; /* who holds the lock */
    /* under the store's mutex */
    unsigned handles;
    int unnamed; /* goes with its last handle */
} ram_log;

typedef struct ram_handle {
    ram_store *rs;
    ram_log *log;
    int locked;
    lock_stop stop;
} ram_handle;

static ram_handle *handle_of(sessile_backend_log *log)
{
    return (ram_handle *)(void *)log;
}

void ram_free_text(ram_store *rs, char *text)
{
    if (text)
        mem_free(&rs->alloc, text, strlen(text) + 1);
}

static void free_log(ram_store *rs, ram_log *log)
{
    if (log) {
        ram_free_text(rs, log->folder);
        ram_free_text(rs, log->name);
        buf_deinit(&log->bytes);
        pthread_mutex_destroy(&log->mutex);
        mem_free(&rs->alloc, log, sizeof *log);
    }
}

/* Under the store's mutex. */
static ram_log *find(ram_store *rs, const char *folder, const char *name)
{
    ram_log *log = rs->logs;
    while (log && (strcmp(log->folder, folder) != 0 || strcmp(log->name, name) != 0))
        log = log->next;
    return log;
}

static sessile_status ram_create(void *self, const char *folder, const char *name,
                                 const void *data, size_t size, sessile_error *err)
{
    ram_store *rs = self;
    sessile_status status = store_names_check(folder, name, err);
    if (status)
        return status;
    ram_log *log = mem_zalloc(&rs->alloc, sizeof *log);
    if (!log)
        return fail_nomem(err);
    pthread_mutex_init(&log->mutex, NULL);
    buf_init(&log->bytes, &rs->alloc);
    log->folder = mem_dup(&rs->alloc, folder, strlen(folder));
    log->name = mem_dup(&rs->alloc, name, strlen(name));
    buf_put(&log->bytes, data, size);
    log->mtime_ms = rs->os->now_ms(rs->os->ud);
    if (!log->folder || !log->name || log->bytes.failed) {
        free_log(rs, log);
        return fail_nomem(err);
    }
    pthread_mutex_lock(&rs->mutex);
    if (find(rs, folder, name)) {
        status = fail(err, SESSILE_EXISTS, "%s is already there", name);
    } else {
        ram_log **last = &rs->logs;
        while (*last)
            last = &(*last)->next;
        *last = log;
        log = NULL;
    }
    pthread_mutex_unlock(&rs->mutex);
    free_log(rs, log);
    return status;
}

static sessile_status ram_open(void *self, const char *folder, const char *name,
                               sessile_backend_log **out, sessile_error *err)
{
    ram_store *rs = self;
    *out = NULL;
    sessile_status status = store_names_check(folder, name, err);
    if (status)
        return status;
    ram_handle *handle = mem_zalloc(&rs->alloc, sizeof *handle);
    if (!handle)
        return fail_nomem(err);
    pthread_mutex_lock(&rs->mutex);
    ram_log *log = find(rs, folder, name);
    if (log)
        log->handles++;
    pthread_mutex_unlock(&rs->mutex);
    if (!log) {
        mem_free(&rs->alloc, handle, sizeof *handle);
        return fail(err, SESSILE_NOTFOUND, "there is no log %s", name);
    }
    handle->rs = rs;
    handle->log = log;
    *out = (sessile_backend_log *)(void *)handle;
    return SESSILE_OK;
}

static void ram_unlock(sessile_backend_log *handle)
{
    ram_handle *h = handle_of(handle);
    if (h->locked == 0)
        return;
    pthread_mutex_lock(&h->log->mutex);
    if (h->locked == SESSILE_LOCK_EXCLUSIVE)
        h->log->writer = 0;
    else
        h->log->readers--;
    pthread_mutex_unlock(&h->log->mutex);
    h->locked = 0;
}

static void ram_close(sessile_backend_log *handle)
{
    if (!handle)
        return;
    ram_unlock(handle);
    ram_store *rs = handle_of(handle)->rs;
    ram_log *log = handle_of(handle)->log;
    pthread_mutex_lock(&rs->mutex);
    int last = --log->handles == 0 && log->unnamed;
    pthread_mutex_unlock(&rs->mutex);
    if (last)
        free_log(rs, log);
    mem_free(&rs->alloc, handle_of(handle), sizeof(ram_handle));
}

void store_ram_rename(store *st, const char *folder, const char *name,
                      const char *new_folder, const char *new_name)
{
    ram_store *rs = st->self;
    char *f = mem_dup(&rs->alloc, new_folder, strlen(new_folder));
    char *n = mem_dup(&rs->alloc, new_name, strlen(new_name));
    pthread_mutex_lock(&rs->mutex);
    ram_log *log = f && n ? find(rs, folder, name) : NULL;
    if (log) {
        char *was = log->folder;
        log->folder = f;
        f = was;
        was = log->name;
        log->name = n;
        n = was;
    }
    pthread_mutex_unlock(&rs->mutex);
    ram_free_text(rs, f);
    ram_free_text(rs, n);
    if (!log)
        store_ram_unname(st, folder, name);
}

/* Nothing leads to the log any more; under the store's mutex. 1: nobody has it open. */
static int unname(ram_store *rs, ram_log *log)
{
    ram_log **at = &rs->logs;
    while (*at != log)
        at = &(*at)->next;
    *at = log->next;
    log->unnamed = 1;
    return log->handles == 0;
}

void store_ram_unname(store *st, const char *folder, const char *name)
{
    ram_store *rs = st->self;
    pthread_mutex_lock(&rs->mutex);
    ram_log *log = find(rs, folder, name);
    int last = log && unname(rs, log);
    pthread_mutex_unlock(&rs->mutex);
    if (last)
        free_log(rs, log);
}

/* Its bytes go with its last handle, which may be this one. */
static sessile_status ram_remove(sessile_backend_log *handle, uint64_t head,
                                 sessile_error *err)
{
    ram_store *rs = handle_of(handle)->rs;
    (void)head;
    (void)err;
    pthread_mutex_lock(&rs->mutex);
    if (!handle_of(handle)->log->unnamed)
        (void)unname(rs, handle_of(handle)->log);
    pthread_mutex_unlock(&rs->mutex);
    return SESSILE_OK;
}

static sessile_status ram_size(sessile_backend_log *handle, uint64_t *bytes,
                               int64_t *mtime_ms, sessile_error *err)
{
    ram_log *log = handle_of(handle)->log;
    (void)err;
    pthread_mutex_lock(&log->mutex);
    *bytes = log->bytes.size;
    *mtime_ms = log->mtime_ms;
    pthread_mutex_unlock(&log->mutex);
    return SESSILE_OK;
}

static sessile_status ram_ends(void *self, sessile_backend_log *const *logs, size_t n,
                               uint64_t *bytes, sessile_error *err)
{
    ram_store *rs = self;
    (void)err;
    pthread_mutex_lock(&rs->mutex);
    for (size_t i = 0; i < n; i++) {
        ram_log *log = handle_of(logs[i])->log;
        pthread_mutex_lock(&log->mutex);
        bytes[i] = log->unnamed ? SESSILE_LOG_GONE : log->bytes.size;
        pthread_mutex_unlock(&log->mutex);
    }
    pthread_mutex_unlock(&rs->mutex);
    return SESSILE_OK;
}

static sessile_status ram_read(sessile_backend_log *handle, uint64_t index,
                               uint64_t offset, void *out, size_t size, size_t *got,
                               sessile_error *err)
{
    ram_log *log = handle_of(handle)->log;
    (void)index;
    (void)err;
    *got = 0;
    pthread_mutex_lock(&log->mutex);
    if (offset < log->bytes.size) {
        size_t left = log->bytes.size - (size_t)offset;
        *got = left < size ? left : size;
        memcpy(out, log->bytes.data + offset, *got);
    }
    pthread_mutex_unlock(&log->mutex);
    return SESSILE_OK;
}

typedef struct lock_try {
    ram_log *log;
    int mode;
} lock_try;

static int try_lock(void *arg)
{
    lock_try *t = arg;
    int taken;
    pthread_mutex_lock(&t->log->mutex);
    if (t->mode == SESSILE_LOCK_EXCLUSIVE) {
        taken = t->log->writer || t->log->readers > 0;
        t->log->writer = taken ? t->log->writer : 1;
    } else {
        taken = t->log->writer;
        t->log->readers += taken ? 0 : 1;
    }
    pthread_mutex_unlock(&t->log->mutex);
    return taken;
}

static sessile_status ram_lock(sessile_backend_log *handle, int mode, int timeout_ms,
                               int *replaced, sessile_error *err)
{
    ram_handle *h = handle_of(handle);
    lock_try t = {h->log, mode};
    *replaced = 0;
    switch (lock_wait(h->rs->os, timeout_ms, try_lock, &t, h->stop)) {
    case LOCK_GOT:
        break;
    case LOCK_STOPPED:
        return store_stopped(h->log->name, err);
    default:
        return fail(err, SESSILE_BUSY,
                    "another handle of this process holds %s: wait longer, or try again",
                    h->log->name);
    }
    h->locked = mode;
    pthread_mutex_lock(&h->rs->mutex);
    *replaced = h->log->unnamed;
    pthread_mutex_unlock(&h->rs->mutex);
    return SESSILE_OK;
}

static void ram_set_stop(sessile_backend_log *handle, int (*ask)(void *arg), void *arg)
{
    handle_of(handle)->stop = (lock_stop){ask, arg};
}

static sessile_status ram_append(sessile_backend_log *handle, sessile_log_end *end,
                                 const void *data, size_t size, uint64_t count,
                                 const unsigned char new_tag[16], int *poisoned,
                                 sessile_error *err)
{
    ram_handle *h = handle_of(handle);
    ram_log *log = h->log;
    sessile_status status = SESSILE_OK;
    *poisoned = 0;
    pthread_mutex_lock(&log->mutex);
    if (log->bytes.size < end->bytes) {
        status = fail(err, SESSILE_TRUNCATED, "%s is shorter than what is known of it",
                      log->name);
        goto out;
    }
    if (log->bytes.size > end->bytes ||
        (log->has_end && (log->end.count != end->count ||
                          memcmp(log->end.tag, end->tag, sizeof end->tag) != 0))) {
        status = fail(err, SESSILE_CONFLICT, "%s has grown: read on, then try again",
                      log->name);
        goto out;
    }
    if (buf_reserve(&log->bytes, size) != 0) {
        log->bytes.failed = 0; /* what is in it is whole */
        status = fail_nomem(err);
        goto out;
    }
    buf_put(&log->bytes, data, size);
    end->count += count;
    end->bytes += size;
    memcpy(end->tag, new_tag, sizeof end->tag);
    log->end = *end;
    log->has_end = 1;
    log->mtime_ms = h->rs->os->now_ms(h->rs->os->ud);
out:
    pthread_mutex_unlock(&log->mutex);
    return status;
}

static sessile_status ram_sync(sessile_backend_log *handle, sessile_error *err)
{
    (void)handle;
    (void)err;
    return SESSILE_OK;
}

static sessile_status ram_list(void *self, const char *folder,
                               int (*visit)(void *arg, const char *folder,
                                            const char *name),
                               void *arg, sessile_error *err)
{
    ram_store *rs = self;
    sessile_status status = SESSILE_OK;
    buf names;
    buf_init(&names, &rs->alloc);
    pthread_mutex_lock(&rs->mutex);
    for (const ram_log *log = rs->logs; log; log = log->next) {
        if (!folder || strcmp(folder, log->folder) == 0) {
            buf_put(&names, log->folder, strlen(log->folder) + 1);
            buf_put(&names, log->name, strlen(log->name) + 1);
        }
    }
    pthread_mutex_unlock(&rs->mutex);
    if (names.failed)
        status = fail_nomem(err);
    /* visit may make, open or remove logs: it runs without the mutex, over names */
    for (const char *at = names.data; !status && at && at < names.data + names.size;) {
        const char *in = at, *name = in + strlen(in) + 1;
        if (visit(arg, in, name) != 0)
            break;
        at = name + strlen(name) + 1;
    }
    buf_deinit(&names);
    return status;
}

static sessile_status ram_has_logs(void *self, int *found, sessile_error *err)
{
    ram_store *rs = self;
    (void)err;
    pthread_mutex_lock(&rs->mutex);
    *found = rs->logs != NULL;
    pthread_mutex_unlock(&rs->mutex);
    return SESSILE_OK;
}

static void ram_free(void *self)
{
    ram_store *rs = self;
    if (!rs)
        return;
    while (rs->logs) {
        ram_log *log = rs->logs;
        rs->logs = log->next;
        free_log(rs, log);
    }
    ram_blobs_free(rs);
    pthread_mutex_destroy(&rs->mutex);
    allocator a = rs->alloc;
    mem_free(&a, rs, sizeof *rs);
}

static const sessile_backend ram_backend = {
    .version = SESSILE_BACKEND_VERSION,
    .capabilities =
        SESSILE_BACKEND_LOCKS, /* an append is whole or nothing: no torn ends */
    .name = "ram",
    .free = ram_free,
    .create = ram_create,
    .open = ram_open,
    .close = ram_close,
    .size = ram_size,
    .read = ram_read,
    .lock = ram_lock,
    .unlock = ram_unlock,
    .set_stop = ram_set_stop,
    .append = ram_append,
    .sync = ram_sync,
    .list = ram_list,
    .blob_get = ram_blob_get,
    .blob_put_new = ram_blob_put_new,
    .blob_remove = ram_blob_remove,
    .blob_list = ram_blob_list,
    .has_logs = ram_has_logs,
    .remove = ram_remove,
    .ends = ram_ends,
};

sessile_status store_ram_open(store *out, const os_table *os, const allocator *a,
                              sessile_error *err)
{
    out->table = NULL;
    out->self = NULL;
    ram_store *rs = mem_zalloc(a, sizeof *rs);
    if (!rs)
        return fail_nomem(err);
    rs->os = os;
    rs->alloc = *a;
    pthread_mutex_init(&rs->mutex, NULL);
    out->table = &ram_backend;
    out->self = rs;
    return SESSILE_OK;
}
