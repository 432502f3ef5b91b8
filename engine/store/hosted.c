/*
 * hosted.c: a backend that the host brought, looked after.
 *
 * Owns a copy of the host's table and a table of its own in front of it. What the host's
 * functions answer is believed only as far as it makes sense: a status that there is none
 * of, a size beyond all bounds, more bytes than were asked for, a name that the engine
 * never made. Everything else passes, with the host's own sentence. It must never change
 * what a call means, nor call the host's functions of itself: no retry, no cache.
 */
#include "store/store.h"

#include <stdio.h>
#include <string.h>

#include "store/wait.h"

/* No log and no blob of ours comes near it. */
#define BYTES_MOST (UINT64_MAX >> 2)
/* A keyring with all its epochs has less. */
#define BLOB_MOST ((size_t)16 << 20)

typedef struct hosted {
    allocator alloc;
    sessile_backend host;  /* the host's table; what it lacks is NULL */
    sessile_backend shown; /* what the engine sees */
    void *self;
    char name[41];
} hosted;

/* What the engine takes for a backend's log, or for its draft. */
typedef struct hosted_log {
    hosted *h;
    sessile_backend_log *log;
} hosted_log;

typedef struct hosted_draft {
    hosted *h;
    sessile_backend_draft *draft;
} hosted_draft;

static hosted_log *of(sessile_backend_log *log)
{
    return (hosted_log *)(void *)log;
}

static hosted_draft *of_draft(sessile_backend_draft *draft)
{
    return (hosted_draft *)(void *)draft;
}

/* ---------------------------------------------------------------------- answers */

/* The host writes its sentence into `heard`; err may be NULL. */
typedef struct answer {
    sessile_error heard;
    sessile_error *err;
} answer;

static sessile_error *hear(answer *a, sessile_error *err)
{
    memset(a, 0, sizeof(*a));
    a->err = err;
    return &a->heard;
}

static sessile_status told(const hosted *h, answer *a, sessile_status status,
                           const char *what)
{
    a->heard.message[sizeof(a->heard.message) - 1] = '\0';
    if (status == SESSILE_OK) {
        error_clear(a->err);
        return SESSILE_OK;
    }
    if ((int)status < 0 || status > SESSILE_CLOSED || status == SESSILE_NEEDS) {
        return fail(a->err, SESSILE_IO,
                    "the store \"%s\" answered %s with %d, which is no status of a store",
                    h->name, what, (int)status);
    }
    if (a->heard.message[0] == '\0') {
        return fail(a->err, status,
                    "the store \"%s\" answered %s with %s and said no more", h->name,
                    what, sessile_status_name(status));
    }
    return fail(a->err, status, "%s", a->heard.message);
}

static sessile_status absurd(const hosted *h, sessile_error *err, const char *what)
{
    return fail(err, SESSILE_IO,
                "the store \"%s\" cannot be right: %s. Nothing it said was believed",
                h->name, what);
}

/* ---------------------------------------------------------------------- logs */

static void hosted_free(void *self)
{
    hosted *h = self;
    if (h->host.free != NULL) {
        h->host.free(h->self);
    }
    allocator a = h->alloc;
    mem_free(&a, h, sizeof(*h));
}

static sessile_status hosted_create(void *self, const char *folder, const char *name,
                                    const void *data, size_t size, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.create(h->self, folder, name, data, size, e), "create");
}

static sessile_status hosted_open(void *self, const char *folder, const char *name,
                                  sessile_backend_log **out, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    *out = NULL;
    hosted_log *log = mem_zalloc(&h->alloc, sizeof(*log));
    if (log == NULL) {
        return fail_nomem(err);
    }
    log->h = h;
    sessile_status status =
        told(h, &a, h->host.open(h->self, folder, name, &log->log, e), "open");
    if (status == SESSILE_OK && log->log == NULL) {
        status = absurd(h, err, "it opened a log and gave none");
    }
    if (status != SESSILE_OK) {
        mem_free(&h->alloc, log, sizeof(*log));
        return status;
    }
    *out = (sessile_backend_log *)(void *)log;
    return SESSILE_OK;
}

static void hosted_close(sessile_backend_log *handle)
{
    if (handle != NULL) {
        hosted_log *log = of(handle);
        hosted *h = log->h;
        h->host.close(log->log);
        mem_free(&h->alloc, log, sizeof(*log));
    }
}

static sessile_status hosted_size(sessile_backend_log *handle, uint64_t *bytes,
                                  int64_t *mtime_ms, sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    *bytes = 0;
    *mtime_ms = 0;
    sessile_status status =
        told(log->h, &a, log->h->host.size(log->log, bytes, mtime_ms, e), "size");
    if (status == SESSILE_OK && *bytes > BYTES_MOST) {
        *bytes = 0;
        status = absurd(log->h, err, "a log has more bytes than there are");
    }
    return status;
}

static sessile_status hosted_read(sessile_backend_log *handle, uint64_t index,
                                  uint64_t offset, void *out, size_t size, size_t *got,
                                  sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    *got = 0;
    sessile_status status =
        told(log->h, &a, log->h->host.read(log->log, index, offset, out, size, got, e),
             "read");
    if (status != SESSILE_OK) {
        *got = 0;
    } else if (*got > size) {
        *got = 0;
        status = absurd(log->h, err, "it read more bytes than it was asked for");
    }
    return status;
}

static sessile_status hosted_lock(sessile_backend_log *handle, int mode, int timeout_ms,
                                  int *replaced, sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    *replaced = 0;
    sessile_status status = told(
        log->h, &a, log->h->host.lock(log->log, mode, timeout_ms, replaced, e), "lock");
    *replaced = *replaced != 0;
    return status;
}

static void hosted_unlock(sessile_backend_log *handle)
{
    of(handle)->h->host.unlock(of(handle)->log);
}

static sessile_status hosted_append(sessile_backend_log *handle, sessile_log_end *end,
                                    const void *data, size_t size, uint64_t count,
                                    const unsigned char new_tag[16], int *poisoned,
                                    sessile_error *err)
{
    hosted_log *log = of(handle);
    sessile_log_end given = *end;
    answer a;
    sessile_error *e = hear(&a, err);
    *poisoned = 0;
    sessile_status status = told(
        log->h, &a,
        log->h->host.append(log->log, &given, data, size, count, new_tag, poisoned, e),
        "append");
    *poisoned = *poisoned != 0 && status != SESSILE_OK;
    if (status == SESSILE_OK) {
        /* there is one right answer: what the host made of its copy is not needed */
        end->count += count;
        end->bytes += size;
        memcpy(end->tag, new_tag, sizeof(end->tag));
    }
    return status;
}

static sessile_status hosted_sync(sessile_backend_log *handle, sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    return told(log->h, &a, log->h->host.sync(log->log, e), "sync");
}

static sessile_status hosted_set_aside(sessile_backend_log *handle, uint64_t offset,
                                       sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    return told(log->h, &a, log->h->host.set_aside(log->log, offset, e), "set_aside");
}

static sessile_status hosted_rewrite(sessile_backend_log *handle, uint64_t offset,
                                     const void *data, size_t size, sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    return told(log->h, &a, log->h->host.rewrite(log->log, offset, data, size, e),
                "rewrite");
}

static void hosted_set_stop(sessile_backend_log *handle, int (*ask)(void *arg), void *arg)
{
    of(handle)->h->host.set_stop(of(handle)->log, ask, arg);
}

static sessile_status hosted_busy(sessile_backend_log *handle, sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    sessile_status status = told(log->h, &a, log->h->host.busy(log->log, e), "busy");
    return status == SESSILE_BUSY
               ? status
               : fail(err, SESSILE_BUSY, "another writer holds the log: wait longer");
}

static int hosted_replaced(sessile_backend_log *handle)
{
    return of(handle)->h->host.replaced(of(handle)->log) != 0;
}

/* ---------------------------------------------------------------------- caches, drafts
 */

static sessile_status hosted_cache_size(sessile_backend_log *handle, uint64_t *bytes,
                                        sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    *bytes = 0;
    sessile_status status =
        told(log->h, &a, log->h->host.cache_size(log->log, bytes, e), "cache_size");
    if (status == SESSILE_OK && *bytes > BYTES_MOST) {
        *bytes = 0;
        status = absurd(log->h, err, "a cache has more bytes than there are");
    }
    return status;
}

static sessile_status hosted_cache_read(sessile_backend_log *handle, uint64_t offset,
                                        void *out, size_t size, size_t *got,
                                        sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    *got = 0;
    sessile_status status =
        told(log->h, &a, log->h->host.cache_read(log->log, offset, out, size, got, e),
             "cache_read");
    if (status == SESSILE_OK && *got > size) {
        *got = 0;
        status = absurd(log->h, err, "it read more of a cache than it was asked for");
    }
    return status;
}

static sessile_status hosted_cache_write(sessile_backend_log *handle, uint64_t offset,
                                         const void *data, size_t size,
                                         sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    return told(log->h, &a, log->h->host.cache_write(log->log, offset, data, size, e),
                "cache_write");
}

static sessile_status hosted_draft_new(void *self, const char *folder, const char *name,
                                       sessile_backend_draft **out, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    *out = NULL;
    hosted_draft *draft = mem_zalloc(&h->alloc, sizeof(*draft));
    if (draft == NULL) {
        return fail_nomem(err);
    }
    draft->h = h;
    sessile_status status = told(
        h, &a, h->host.draft_new(h->self, folder, name, &draft->draft, e), "draft_new");
    if (status == SESSILE_OK && draft->draft == NULL) {
        status = absurd(h, err, "it began a draft and gave none");
    }
    if (status != SESSILE_OK) {
        mem_free(&h->alloc, draft, sizeof(*draft));
        return status;
    }
    *out = (sessile_backend_draft *)(void *)draft;
    return SESSILE_OK;
}

static sessile_status hosted_draft_write(sessile_backend_draft *handle, const void *data,
                                         size_t size, sessile_error *err)
{
    hosted_draft *draft = of_draft(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    return told(draft->h, &a, draft->h->host.draft_write(draft->draft, data, size, e),
                "draft_write");
}

static sessile_status hosted_draft_replace(sessile_backend_draft *handle,
                                           sessile_backend_log *old, int keep, char *kept,
                                           size_t kept_size, sessile_error *err)
{
    hosted_draft *draft = of_draft(handle);
    hosted *h = draft->h;
    answer a;
    sessile_error *e = hear(&a, err);
    sessile_status status =
        told(h, &a,
             h->host.draft_replace(draft->draft, of(old)->log, keep, kept, kept_size, e),
             "draft_replace");
    if (kept != NULL && kept_size > 0) {
        kept[kept_size - 1] = '\0';
    }
    mem_free(&h->alloc, draft, sizeof(*draft));
    return status;
}

static sessile_status hosted_draft_publish(sessile_backend_draft *handle,
                                           sessile_error *err)
{
    hosted_draft *draft = of_draft(handle);
    hosted *h = draft->h;
    answer a;
    sessile_error *e = hear(&a, err);
    sessile_status status =
        told(h, &a, h->host.draft_publish(draft->draft, e), "draft_publish");
    mem_free(&h->alloc, draft, sizeof(*draft));
    return status;
}

static void hosted_draft_drop(sessile_backend_draft *handle)
{
    if (handle != NULL) {
        hosted_draft *draft = of_draft(handle);
        hosted *h = draft->h;
        h->host.draft_drop(draft->draft);
        mem_free(&h->alloc, draft, sizeof(*draft));
    }
}

/* ---------------------------------------------------------------------- lists */

/* A visit on its way: a host that goes on after it was told to stop is not listened to.
 */
typedef struct visiting {
    int (*log)(void *arg, const char *folder, const char *name);
    int (*log_stat)(void *arg, const char *folder, const char *name,
                    const sessile_backend_stat *stat);
    int (*file)(void *arg, const char *folder, const char *file, uint64_t bytes);
    int (*blob)(void *arg, const char *name);
    void *arg;
    int over;
} visiting;

static int show_log(void *arg, const char *folder, const char *name)
{
    visiting *v = arg;
    if (!v->over && store_name_ok(folder) && store_name_ok(name)) {
        v->over = v->log(v->arg, folder, name) != 0;
    }
    return v->over;
}

static int show_stat(void *arg, const char *folder, const char *name,
                     const sessile_backend_stat *stat)
{
    visiting *v = arg;
    if (!v->over && store_name_ok(folder) && store_name_ok(name)) {
        v->over = v->log_stat(v->arg, folder, name, stat) != 0;
    }
    return v->over;
}

static int show_file(void *arg, const char *folder, const char *file, uint64_t bytes)
{
    visiting *v = arg;
    if (!v->over && file != NULL) {
        v->over = v->file(v->arg, folder, file, bytes) != 0;
    }
    return v->over;
}

static int show_blob(void *arg, const char *name)
{
    visiting *v = arg;
    if (!v->over && store_name_ok(name)) {
        v->over = v->blob(v->arg, name) != 0;
    }
    return v->over;
}

static sessile_status hosted_list(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *name),
                                  void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.log = visit, .arg = arg};
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.list(h->self, folder, show_log, &v, e), "list");
}

static sessile_status hosted_list_stat(void *self, const char *folder,
                                       int (*visit)(void *arg, const char *folder,
                                                    const char *name,
                                                    const sessile_backend_stat *stat),
                                       void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.log_stat = visit, .arg = arg};
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.list_stat(h->self, folder, show_stat, &v, e), "list_stat");
}

static sessile_status hosted_list_others(void *self, const char *folder,
                                         int (*visit)(void *arg, const char *folder,
                                                      const char *file, uint64_t bytes),
                                         void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.file = visit, .arg = arg};
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.list_others(h->self, folder, show_file, &v, e),
                "list_others");
}

static sessile_status hosted_sweep(void *self,
                                   int (*visit)(void *arg, const char *folder,
                                                const char *file, uint64_t bytes),
                                   void *arg, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.sweep(h->self, visit, arg, e), "sweep");
}

static sessile_status hosted_remove(sessile_backend_log *handle, uint64_t head,
                                    sessile_error *err)
{
    hosted_log *log = of(handle);
    answer a;
    sessile_error *e = hear(&a, err);
    return told(log->h, &a, log->h->host.remove(log->log, head, e), "remove");
}

static sessile_status hosted_stat(void *self, const char *folder, const char *name,
                                  sessile_backend_stat *out, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    memset(out, 0, sizeof(*out));
    return told(h, &a, h->host.stat(h->self, folder, name, out, e), "stat");
}

static int found_one(void *arg, const char *folder, const char *name)
{
    (void)folder;
    (void)name;
    *(int *)arg = 1;
    return 1;
}

static sessile_status hosted_has_logs(void *self, int *found, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    *found = 0;
    if (h->host.has_logs == NULL) {
        return hosted_list(self, NULL, found_one, found, err);
    }
    sessile_status status = told(h, &a, h->host.has_logs(h->self, found, e), "has_logs");
    *found = *found != 0;
    return status;
}

/* ---------------------------------------------------------------------- blobs */

/* What was handed out becomes a block of the engine's own, of a size that is true. */
static sessile_status take_blob(const hosted *h, sessile_status status, char *given,
                                char **out, size_t *size, sessile_error *err)
{
    *out = NULL;
    if (status == SESSILE_OK && (given == NULL || *size > BLOB_MOST)) {
        status = absurd(h, err, "a blob has no bytes, or more than a blob can have");
    } else if (status == SESSILE_OK && given_size(given) < *size) {
        status = absurd(h, err, "a blob is shorter than it was said to be");
    } else if (status == SESSILE_OK) {
        *out = give_dup(&h->alloc, given, *size);
        status = *out != NULL ? SESSILE_OK : fail_nomem(err);
    }
    if (status != SESSILE_OK) {
        *size = 0;
    }
    sessile_free(given);
    return status;
}

static sessile_status hosted_blob_get(void *self, const char *name, char **out,
                                      size_t *size, sessile_error *err)
{
    hosted *h = self;
    char *given = NULL;
    answer a;
    sessile_error *e = hear(&a, err);
    *size = 0;
    sessile_status status =
        told(h, &a, h->host.blob_get(h->self, name, &given, size, e), "blob_get");
    return take_blob(h, status, given, out, size, err);
}

static sessile_status hosted_blob_put_new(void *self, const char *name, const void *data,
                                          size_t size, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.blob_put_new(h->self, name, data, size, e),
                "blob_put_new");
}

static sessile_status hosted_blob_replace(void *self, const char *name, const void *was,
                                          size_t was_size, const void *data, size_t size,
                                          sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.blob_replace(h->self, name, was, was_size, data, size, e),
                "blob_replace");
}

static sessile_status hosted_blob_remove(void *self, const char *name, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.blob_remove(h->self, name, e), "blob_remove");
}

static sessile_status hosted_blob_list(void *self, const char *prefix,
                                       int (*visit)(void *arg, const char *name),
                                       void *arg, sessile_error *err)
{
    hosted *h = self;
    visiting v = {.blob = visit, .arg = arg};
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.blob_list(h->self, prefix, show_blob, &v, e), "blob_list");
}

static sessile_status hosted_blob_settle(void *self, const char *name, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.blob_settle(h->self, name, e), "blob_settle");
}

static sessile_status hosted_shelf_get(void *self, const char *folder, char **out,
                                       size_t *size, sessile_error *err)
{
    hosted *h = self;
    char *given = NULL;
    answer a;
    sessile_error *e = hear(&a, err);
    *size = 0;
    sessile_status status =
        told(h, &a, h->host.shelf_get(h->self, folder, &given, size, e), "shelf_get");
    return take_blob(h, status, given, out, size, err);
}

static sessile_status hosted_shelf_put(void *self, const char *folder, const void *data,
                                       size_t size, sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.shelf_put(h->self, folder, data, size, e), "shelf_put");
}

static sessile_status hosted_shelf_drop(void *self, const char *folder,
                                        sessile_error *err)
{
    hosted *h = self;
    answer a;
    sessile_error *e = hear(&a, err);
    return told(h, &a, h->host.shelf_drop(h->self, folder, e), "shelf_drop");
}

/* ---------------------------------------------------------------------- the table */

static sessile_status check_table(const sessile_backend *t, sessile_error *err)
{
    const struct {
        unsigned with; /* a capability, or 0: always */
        int there;
        const char *what;
    } wanted[] = {
        {0, t->create != NULL, "create"},
        {0, t->open != NULL, "open"},
        {0, t->close != NULL, "close"},
        {0, t->size != NULL, "size"},
        {0, t->read != NULL, "read"},
        {0, t->append != NULL, "append"},
        {0, t->sync != NULL, "sync"},
        {0, t->list != NULL, "list"},
        {SESSILE_BACKEND_SEALS, t->blob_get != NULL, "blob_get"},
        {SESSILE_BACKEND_SEALS, t->blob_put_new != NULL, "blob_put_new"},
        {SESSILE_BACKEND_SEALS, t->blob_remove == NULL || t->blob_list != NULL,
         "blob_list, which goes with blob_remove"},
        {SESSILE_BACKEND_LOCKS, t->lock != NULL && t->unlock != NULL, "lock and unlock"},
        {SESSILE_BACKEND_CUTS, t->set_aside != NULL, "set_aside"},
        {SESSILE_BACKEND_CUTS, (t->capabilities & SESSILE_BACKEND_LOCKS) != 0,
         "LOCKS, without which it may not cut"},
        {SESSILE_BACKEND_CACHES,
         t->cache_size != NULL && t->cache_read != NULL && t->cache_write != NULL,
         "cache_size, cache_read and cache_write"},
        {SESSILE_BACKEND_CACHES, (t->capabilities & SESSILE_BACKEND_LOCKS) != 0,
         "LOCKS, without which it may keep no caches"},
        {SESSILE_BACKEND_REPLACES,
         t->draft_new != NULL && t->draft_write != NULL && t->draft_replace != NULL &&
             t->draft_drop != NULL,
         "draft_new, draft_write, draft_replace and draft_drop"},
        {SESSILE_BACKEND_REPLACES, (t->capabilities & SESSILE_BACKEND_LOCKS) != 0,
         "LOCKS, without which it may replace nothing"},
        {SESSILE_BACKEND_SHELVES,
         t->stat != NULL && t->list_stat != NULL && t->shelf_get != NULL &&
             t->shelf_put != NULL && t->shelf_drop != NULL,
         "stat, list_stat, shelf_get, shelf_put and shelf_drop"},
    };
    for (size_t i = 0; i < sizeof(wanted) / sizeof(*wanted); i++) {
        if (!wanted[i].there &&
            (wanted[i].with == 0 || (t->capabilities & wanted[i].with) != 0)) {
            return fail(err, SESSILE_INVALID, "the store's table lacks %s",
                        wanted[i].what);
        }
    }
    return SESSILE_OK;
}

/* The functions that the host may leave out, where it has them. */
static void show(sessile_backend *shown, const sessile_backend *host)
{
    const unsigned has = host->capabilities;
    if (has & SESSILE_BACKEND_SEALS) {
        shown->blob_get = hosted_blob_get;
        shown->blob_put_new = hosted_blob_put_new;
        shown->blob_replace = host->blob_replace ? hosted_blob_replace : NULL;
        shown->blob_remove = host->blob_remove ? hosted_blob_remove : NULL;
        shown->blob_list = host->blob_list ? hosted_blob_list : NULL;
        shown->blob_settle = host->blob_settle ? hosted_blob_settle : NULL;
    }
    if (has & SESSILE_BACKEND_LOCKS) {
        shown->lock = hosted_lock;
        shown->unlock = hosted_unlock;
        shown->set_stop = host->set_stop ? hosted_set_stop : NULL;
        shown->busy = host->busy ? hosted_busy : NULL;
        shown->rewrite = host->rewrite ? hosted_rewrite : NULL;
    }
    if (has & SESSILE_BACKEND_CUTS) {
        shown->set_aside = hosted_set_aside;
    }
    if (has & SESSILE_BACKEND_CACHES) {
        shown->cache_size = hosted_cache_size;
        shown->cache_read = hosted_cache_read;
        shown->cache_write = hosted_cache_write;
    }
    if (has & SESSILE_BACKEND_REPLACES) {
        shown->draft_new = hosted_draft_new;
        shown->draft_write = hosted_draft_write;
        shown->draft_replace = hosted_draft_replace;
        shown->draft_drop = hosted_draft_drop;
        shown->draft_publish = host->draft_publish ? hosted_draft_publish : NULL;
        shown->replaced = host->replaced ? hosted_replaced : NULL;
    }
    if (has & SESSILE_BACKEND_SHELVES) {
        shown->stat = hosted_stat;
        shown->list_stat = hosted_list_stat;
        shown->shelf_get = hosted_shelf_get;
        shown->shelf_put = hosted_shelf_put;
        shown->shelf_drop = hosted_shelf_drop;
    }
    shown->list_others = host->list_others ? hosted_list_others : NULL;
    shown->sweep = host->sweep ? hosted_sweep : NULL;
    shown->remove = host->remove ? hosted_remove : NULL;
}

sessile_status store_hosted_open(store *out, const sessile_backend *table, void *self,
                                 const allocator *a, sessile_error *err)
{
    out->table = NULL;
    out->self = NULL;
    sessile_status status = SESSILE_OK;
    if (table->version != SESSILE_BACKEND_VERSION) {
        status = fail(err, SESSILE_UNSUPPORTED,
                      "the store's table is of version %d, and this library knows %d",
                      table->version, SESSILE_BACKEND_VERSION);
    } else {
        status = check_table(table, err);
    }
    hosted *h = status == SESSILE_OK ? mem_zalloc(a, sizeof(*h)) : NULL;
    if (h == NULL) {
        if (table->free != NULL) {
            table->free(self);
        }
        return status == SESSILE_OK ? fail_nomem(err) : status;
    }
    h->alloc = *a;
    h->host = *table;
    h->self = self;
    snprintf(h->name, sizeof(h->name), "%s", table->name != NULL ? table->name : "");
    h->shown = (sessile_backend){
        .version = SESSILE_BACKEND_VERSION,
        .capabilities =
            table->capabilities &
            (SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CUTS | SESSILE_BACKEND_LOCKS |
             SESSILE_BACKEND_CACHES | SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_SHELVES),
        .name = h->name,
        .free = hosted_free,
        .create = hosted_create,
        .open = hosted_open,
        .close = hosted_close,
        .size = hosted_size,
        .read = hosted_read,
        .append = hosted_append,
        .sync = hosted_sync,
        .list = hosted_list,
        .has_logs = hosted_has_logs,
    };
    show(&h->shown, &h->host);
    out->table = &h->shown;
    out->self = h;
    return SESSILE_OK;
}
