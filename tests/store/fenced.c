/*
 * fenced.c: a database in memory: rows under one mutex, which stands for transactions.
 *
 * Owns the rows. No lock outlives a call: whoever changes a log says what they saw of it,
 * and is refused when it is no longer so. A row that was removed stays as an empty one,
 * so that handles of it can say what became of it.
 *
 * It is long because it is a whole store: one function for each operation of the table.
 */
#include "store/fenced.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* What a row is; GONE: of a log or a draft, which handles may still point at. */
enum { LOG, KEPT, DRAFT, BLOB, LIST_CACHE, GONE };

typedef struct row {
    struct row *next;
    int kind;
    unsigned long id;
    char *folder, *name; /* folder "": a blob; name "": a list cache */
    char *data, *cache;
    size_t size, cache_size;
    sessile_log_end end;
    long long changed_ns;
} row;

struct fenced_medium {
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    row *rows; /* in order of folders; none is freed before the medium is */
    unsigned long ids;
    int timeout_ms;
};

/* A handle of a log. */
typedef struct handle {
    fenced_medium *m;
    row *log;
    uint64_t seen; /* what size said last: the fence of draft_replace and remove */
    int replaced;
} handle;

typedef struct draft {
    fenced_medium *m;
    row *row;
} draft;

static handle *of(sessile_backend_log *log)
{
    return (handle *)log;
}

static sessile_status say(sessile_error *err, sessile_status status, const char *name,
                          const char *what)
{
    err->code = status;
    snprintf(err->message, sizeof err->message, "the fenced store: %s %s", name, what);
    return status;
}

static sessile_status no_memory(sessile_error *err)
{
    return say(err, SESSILE_NOMEM, "this", "does not fit into memory");
}

/* ------------------------------------------------------------------ rows */

static row *find(const fenced_medium *m, int kind, const char *folder, const char *name)
{
    row *r = m->rows;

    while (r && (r->kind != kind || strcmp(r->folder, folder) || strcmp(r->name, name)))
        r = r->next;
    return r;
}

static void touch(fenced_medium *m, row *r)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    r->changed_ns = now.tv_sec * 1000000000LL + now.tv_nsec;
    pthread_cond_broadcast(&m->changed);
}

/* 0, or -1: no memory, and nothing was changed. */
static int put_bytes(char **bytes, size_t *size, size_t at, const void *data, size_t more)
{
    char *grown = realloc(*bytes, at + more + 1);

    if (!grown)
        return -1;
    if (more)
        memcpy(grown + at, data, more);
    *bytes = grown;
    *size = at + more;
    return 0;
}

/* A new row behind the last one of its folder. NULL: no memory. */
static row *add(fenced_medium *m, int kind, const char *folder, const char *name,
                const void *data, size_t size)
{
    row *r = calloc(1, sizeof *r), **at = &m->rows, **behind = NULL;

    if (!r)
        return NULL;
    r->kind = kind;
    r->folder = strdup(folder);
    r->name = strdup(name);
    if (!r->folder || !r->name || put_bytes(&r->data, &r->size, 0, data, size)) {
        free(r->folder);
        free(r->name);
        free(r);
        return NULL;
    }
    r->id = ++m->ids;
    for (; *at; at = &(*at)->next)
        if (!strcmp((*at)->folder, folder))
            behind = &(*at)->next;
    at = behind ? behind : at;
    r->next = *at;
    *at = r;
    touch(m, r);
    return r;
}

static void gone(fenced_medium *m, row *r)
{
    r->kind = GONE;
    r->size = r->cache_size = 0;
    touch(m, r);
}

static sessile_status put_new(fenced_medium *m, int kind, const char *folder,
                              const char *name, const void *data, size_t size,
                              sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    pthread_mutex_lock(&m->mutex);
    if (find(m, kind, folder, name))
        status = say(err, SESSILE_EXISTS, name, "is there already");
    else if (!add(m, kind, folder, name, data, size))
        status = no_memory(err);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static sessile_status get(fenced_medium *m, int kind, const char *folder,
                          const char *name, char **out, size_t *size, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    row *r;

    pthread_mutex_lock(&m->mutex);
    r = find(m, kind, folder, name);
    if (!r) {
        status = say(err, SESSILE_NOTFOUND, name, "is not there");
    } else {
        *size = r->size;
        *out = sessile_copy(r->data, r->size);
        status = *out ? SESSILE_OK : no_memory(err);
    }
    pthread_mutex_unlock(&m->mutex);
    return status;
}

/* ------------------------------------------------------------------ logs */

static sessile_status fenced_create(void *self, const char *folder, const char *name,
                                    const void *data, size_t size, sessile_error *err)
{
    return put_new(self, LOG, folder, name, data, size, err);
}

static sessile_status fenced_open(void *self, const char *folder, const char *name,
                                  sessile_backend_log **out, sessile_error *err)
{
    fenced_medium *m = self;
    uint64_t seen;
    handle *h;
    row *r;

    pthread_mutex_lock(&m->mutex);
    r = find(m, LOG, folder, name);
    /* it may be gone before size is asked for the first time */
    seen = r ? r->size : 0;
    pthread_mutex_unlock(&m->mutex);
    if (!r)
        return say(err, SESSILE_NOTFOUND, name, "is not there");
    h = calloc(1, sizeof *h);
    if (!h)
        return no_memory(err);
    h->m = m;
    h->log = r;
    h->seen = seen;
    *out = (sessile_backend_log *)h;
    return SESSILE_OK;
}

static void fenced_close(sessile_backend_log *log)
{
    free(log);
}

static sessile_status fenced_size(sessile_backend_log *log, uint64_t *bytes,
                                  int64_t *mtime_ms, sessile_error *err)
{
    handle *h = of(log);

    (void)err;
    pthread_mutex_lock(&h->m->mutex);
    if (h->log->kind != GONE && h->log->kind != KEPT)
        h->seen = h->log->size;
    else
        h->replaced = find(h->m, LOG, h->log->folder, h->log->name) != NULL;
    *bytes = h->seen;
    *mtime_ms = h->log->changed_ns / 1000000;
    pthread_mutex_unlock(&h->m->mutex);
    return SESSILE_OK;
}

static sessile_status fenced_ends(void *self, sessile_backend_log *const *logs, size_t n,
                                  uint64_t *bytes, sessile_error *err)
{
    fenced_medium *m = self;

    (void)err;
    pthread_mutex_lock(&m->mutex);
    for (size_t i = 0; i < n; i++) {
        const row *r = ((const handle *)logs[i])->log;
        bytes[i] = r->kind == LOG ? r->size : SESSILE_LOG_GONE;
    }
    pthread_mutex_unlock(&m->mutex);
    return SESSILE_OK;
}

static sessile_status fenced_clock(void *self, int64_t *now_ms, sessile_error *err)
{
    struct timespec now;

    (void)self;
    (void)err;
    clock_gettime(CLOCK_REALTIME, &now);
    *now_ms = now.tv_sec * 1000LL + now.tv_nsec / 1000000;
    return SESSILE_OK;
}

static int fenced_replaced(sessile_backend_log *log)
{
    int replaced;

    pthread_mutex_lock(&of(log)->m->mutex);
    replaced = of(log)->replaced;
    pthread_mutex_unlock(&of(log)->m->mutex);
    return replaced;
}

static sessile_status fenced_read(sessile_backend_log *log, uint64_t index,
                                  uint64_t offset, void *out, size_t size, size_t *got,
                                  sessile_error *err)
{
    handle *h = of(log);
    sessile_status status = SESSILE_OK;

    (void)index;
    *got = 0;
    pthread_mutex_lock(&h->m->mutex);
    if (h->log->kind == GONE) {
        status = say(err, SESSILE_NOTFOUND, h->log->name, "is not there any more");
    } else if (offset < h->log->size) {
        *got = h->log->size - offset < size ? h->log->size - offset : size;
        memcpy(out, h->log->data + offset, *got);
    }
    pthread_mutex_unlock(&h->m->mutex);
    return status;
}

static sessile_status fenced_append(sessile_backend_log *log, sessile_log_end *end,
                                    const void *data, size_t size, uint64_t count,
                                    const unsigned char new_tag[16], int *poisoned,
                                    sessile_error *err)
{
    handle *h = of(log);
    row *r = h->log;
    sessile_status status = SESSILE_OK;

    *poisoned = 0;
    pthread_mutex_lock(&h->m->mutex);
    if (r->kind != LOG)
        status = say(err, SESSILE_NOTFOUND, r->name, "is not there any more");
    else if (r->size < end->bytes)
        status = say(err, SESSILE_TRUNCATED, r->name, "is shorter than it was");
    else if (r->size > end->bytes ||
             (r->end.count && (r->end.count != end->count ||
                               memcmp(r->end.tag, end->tag, sizeof end->tag) != 0)))
        status = say(err, SESSILE_CONFLICT, r->name, "has grown");
    else if (put_bytes(&r->data, &r->size, r->size, data, size))
        status = no_memory(err);
    if (!status) {
        r->end.count = end->count += count;
        r->end.bytes = end->bytes += size;
        memcpy(end->tag, new_tag, sizeof end->tag);
        memcpy(r->end.tag, new_tag, sizeof end->tag);
        touch(h->m, r);
    }
    pthread_mutex_unlock(&h->m->mutex);
    return status;
}

static sessile_status fenced_sync(sessile_backend_log *log, sessile_error *err)
{
    (void)log;
    (void)err;
    return SESSILE_OK;
}

static void fenced_set_timeout(sessile_backend_log *log, int timeout_ms)
{
    pthread_mutex_lock(&of(log)->m->mutex);
    of(log)->m->timeout_ms = timeout_ms;
    pthread_mutex_unlock(&of(log)->m->mutex);
}

/* The log ends where this handle has last seen it end, and has its name. */
static int is_as_seen(const handle *h)
{
    return h->log->kind == LOG && h->log->size == h->seen;
}

static sessile_status fenced_remove(sessile_backend_log *log, uint64_t head,
                                    sessile_error *err)
{
    handle *h = of(log);
    sessile_status status = SESSILE_OK;
    size_t stem = strlen(h->log->name);

    (void)head;
    pthread_mutex_lock(&h->m->mutex);
    if (h->log->kind != LOG)
        status = say(err, SESSILE_NOTFOUND, h->log->name, "is not there any more");
    else if (!is_as_seen(h))
        status = say(err, SESSILE_CONFLICT, h->log->name, "has grown");
    for (row *r = h->m->rows; r && !status; r = r->next)
        if (r->kind == KEPT && !strcmp(r->folder, h->log->folder) &&
            !strncmp(r->name, h->log->name, stem) && r->name[stem] == '.')
            gone(h->m, r);
    if (!status)
        gone(h->m, h->log);
    pthread_mutex_unlock(&h->m->mutex);
    return status;
}

static sessile_status fenced_watch(sessile_backend_log *log, uint64_t bytes,
                                   int timeout_ms, int (*ask)(void *arg), void *arg,
                                   int *changed, sessile_error *err)
{
    handle *h = of(log);
    sessile_status status = SESSILE_OK;
    int left = timeout_ms;

    *changed = 0;
    pthread_mutex_lock(&h->m->mutex);
    for (;;) {
        struct timespec until;
        *changed = h->log->kind != LOG || h->log->size != bytes;
        if (*changed || !left)
            break;
        if (ask && ask(arg)) {
            status = say(err, SESSILE_CANCELLED, h->log->name, "is watched no longer");
            break;
        }
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 5000000;
        if (until.tv_nsec >= 1000000000) {
            until.tv_nsec -= 1000000000;
            until.tv_sec++;
        }
        pthread_cond_timedwait(&h->m->changed, &h->m->mutex, &until);
        left = left < 0 ? left : left > 5 ? left - 5 : 0;
    }
    pthread_mutex_unlock(&h->m->mutex);
    return status;
}

/* ------------------------------------------------------------------ caches */

static sessile_status fenced_cache_size(sessile_backend_log *log, uint64_t *bytes,
                                        sessile_error *err)
{
    (void)err;
    pthread_mutex_lock(&of(log)->m->mutex);
    *bytes = of(log)->log->cache_size;
    pthread_mutex_unlock(&of(log)->m->mutex);
    return SESSILE_OK;
}

static sessile_status fenced_cache_read(sessile_backend_log *log, uint64_t offset,
                                        void *out, size_t size, size_t *got,
                                        sessile_error *err)
{
    const row *r = of(log)->log;

    (void)err;
    *got = 0;
    pthread_mutex_lock(&of(log)->m->mutex);
    if (offset < r->cache_size) {
        *got = r->cache_size - offset < size ? r->cache_size - offset : size;
        memcpy(out, r->cache + offset, *got);
    }
    pthread_mutex_unlock(&of(log)->m->mutex);
    return SESSILE_OK;
}

static sessile_status fenced_cache_write(sessile_backend_log *log, uint64_t offset,
                                         const void *data, size_t size,
                                         sessile_error *err)
{
    row *r = of(log)->log;
    sessile_status status = SESSILE_OK;

    pthread_mutex_lock(&of(log)->m->mutex);
    if (r->kind != LOG)
        status = say(err, SESSILE_NOTFOUND, r->name, "is not there any more");
    else if (r->cache_size < offset)
        status = say(err, SESSILE_CONFLICT, r->name, "has a shorter cache");
    else if (put_bytes(&r->cache, &r->cache_size, offset, data, size))
        status = no_memory(err);
    pthread_mutex_unlock(&of(log)->m->mutex);
    return status;
}

/* ------------------------------------------------------------------ drafts */

static sessile_status fenced_draft_new(void *self, const char *folder, const char *name,
                                       sessile_backend_draft **out, sessile_error *err)
{
    draft *d = calloc(1, sizeof *d);

    if (!d)
        return no_memory(err);
    d->m = self;
    pthread_mutex_lock(&d->m->mutex);
    d->row = add(d->m, DRAFT, folder, name, "", 0);
    pthread_mutex_unlock(&d->m->mutex);
    if (!d->row) {
        free(d);
        return no_memory(err);
    }
    *out = (sessile_backend_draft *)d;
    return SESSILE_OK;
}

static sessile_status fenced_draft_write(sessile_backend_draft *handle, const void *data,
                                         size_t size, sessile_error *err)
{
    draft *d = (draft *)handle;
    int failed;

    pthread_mutex_lock(&d->m->mutex);
    failed = put_bytes(&d->row->data, &d->row->size, d->row->size, data, size);
    pthread_mutex_unlock(&d->m->mutex);
    return failed ? no_memory(err) : SESSILE_OK;
}

/* Under the mutex. */
static void end_draft(draft *d, sessile_status status)
{
    if (status)
        gone(d->m, d->row);
    else
        d->row->kind = LOG;
    touch(d->m, d->row);
    pthread_mutex_unlock(&d->m->mutex);
    free(d);
}

/* The old bytes under a name of their own. */
static sessile_status keep_old(fenced_medium *m, row *old, char *kept, size_t kept_size,
                               sessile_error *err)
{
    for (unsigned n = 1;; n++) {
        snprintf(kept, kept_size, "%s.replaced-%u", old->name, n);
        if (!find(m, KEPT, old->folder, kept))
            break;
    }
    return add(m, KEPT, old->folder, kept, old->data, old->size) ? SESSILE_OK
                                                                 : no_memory(err);
}

static sessile_status fenced_draft_replace(sessile_backend_draft *handle,
                                           sessile_backend_log *old, int keep, char *kept,
                                           size_t kept_size, sessile_error *err)
{
    draft *d = (draft *)handle;
    row *r = of(old)->log;
    sessile_status status = SESSILE_OK;

    pthread_mutex_lock(&d->m->mutex);
    if (!is_as_seen(of(old)))
        status = say(err, SESSILE_CONFLICT, r->name, "is not what it was");
    else if (keep)
        status = keep_old(d->m, r, kept, kept_size, err);
    if (!status)
        gone(d->m, r);
    end_draft(d, status);
    return status;
}

static sessile_status fenced_draft_publish(sessile_backend_draft *handle,
                                           sessile_error *err)
{
    draft *d = (draft *)handle;
    sessile_status status = SESSILE_OK;

    pthread_mutex_lock(&d->m->mutex);
    if (find(d->m, LOG, d->row->folder, d->row->name))
        status = say(err, SESSILE_EXISTS, d->row->name, "is there already");
    end_draft(d, status);
    return status;
}

static void fenced_draft_drop(sessile_backend_draft *handle)
{
    draft *d = (draft *)handle;

    if (d) {
        pthread_mutex_lock(&d->m->mutex);
        end_draft(d, SESSILE_CANCELLED);
    }
}

/* ------------------------------------------------------------------ lists */

/* The next row of those kinds, from r on. Rows are never freed, so r may be kept without
 * the mutex while visit opens logs. */
static row *next_of(fenced_medium *m, row *r, const char *folder, unsigned kinds,
                    sessile_backend_stat *stat)
{
    pthread_mutex_lock(&m->mutex);
    while (r && (!(kinds >> r->kind & 1) || (folder && strcmp(r->folder, folder) != 0)))
        r = r->next;
    if (r && stat)
        *stat = (sessile_backend_stat){r->size, r->changed_ns, r->id, r->changed_ns};
    pthread_mutex_unlock(&m->mutex);
    return r;
}

static row *following(fenced_medium *m, row *r)
{
    pthread_mutex_lock(&m->mutex);
    r = r->next;
    pthread_mutex_unlock(&m->mutex);
    return r;
}

static row *first(fenced_medium *m)
{
    row *r;

    pthread_mutex_lock(&m->mutex);
    r = m->rows;
    pthread_mutex_unlock(&m->mutex);
    return r;
}

static sessile_status fenced_list(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *name),
                                  void *arg, sessile_error *err)
{
    row *r = first(self);

    (void)err;
    while ((r = next_of(self, r, folder, 1u << LOG, NULL))) {
        if (visit(arg, r->folder, r->name))
            break;
        r = following(self, r);
    }
    return SESSILE_OK;
}

static sessile_status fenced_list_stat(void *self, const char *folder,
                                       int (*visit)(void *arg, const char *folder,
                                                    const char *name,
                                                    const sessile_backend_stat *stat),
                                       void *arg, sessile_error *err)
{
    sessile_backend_stat stat;
    row *r = first(self);

    (void)err;
    while ((r = next_of(self, r, folder, 1u << LOG, &stat))) {
        if (visit(arg, r->folder, r->name, &stat))
            break;
        r = following(self, r);
    }
    return SESSILE_OK;
}

static sessile_status fenced_list_others(void *self, const char *folder,
                                         int (*visit)(void *arg, const char *folder,
                                                      const char *file, uint64_t bytes),
                                         void *arg, sessile_error *err)
{
    sessile_backend_stat stat;
    row *r = first(self);

    (void)err;
    while ((r = next_of(self, r, folder, 1u << KEPT, &stat))) {
        if (visit(arg, r->folder, r->name, stat.bytes))
            break;
        r = following(self, r);
    }
    return SESSILE_OK;
}

static sessile_status fenced_stat(void *self, const char *folder, const char *name,
                                  sessile_backend_stat *out, sessile_error *err)
{
    fenced_medium *m = self;
    row *r;

    pthread_mutex_lock(&m->mutex);
    r = find(m, LOG, folder, name);
    if (r)
        *out = (sessile_backend_stat){r->size, r->changed_ns, r->id, r->changed_ns};
    pthread_mutex_unlock(&m->mutex);
    return r ? SESSILE_OK : say(err, SESSILE_NOTFOUND, name, "is not there");
}

/* ------------------------------------------------------------------ blobs, list_caches
 */

static sessile_status fenced_blob_get(void *self, const char *name, char **out,
                                      size_t *size, sessile_error *err)
{
    return get(self, BLOB, "", name, out, size, err);
}

static sessile_status fenced_blob_put_new(void *self, const char *name, const void *data,
                                          size_t size, sessile_error *err)
{
    return put_new(self, BLOB, "", name, data, size, err);
}

static sessile_status fenced_blob_replace(void *self, const char *name, const void *was,
                                          size_t was_size, const void *data, size_t size,
                                          sessile_error *err)
{
    fenced_medium *m = self;
    sessile_status status = SESSILE_OK;
    row *r;

    pthread_mutex_lock(&m->mutex);
    r = find(m, BLOB, "", name);
    if (!r)
        status = say(err, SESSILE_NOTFOUND, name, "is not there");
    else if (r->size != was_size || memcmp(r->data, was, was_size) != 0)
        status = say(err, SESSILE_CONFLICT, name, "is another one by now");
    else if (put_bytes(&r->data, &r->size, 0, data, size))
        status = no_memory(err);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static sessile_status fenced_blob_remove(void *self, const char *name, sessile_error *err)
{
    fenced_medium *m = self;
    row *r;

    pthread_mutex_lock(&m->mutex);
    r = find(m, BLOB, "", name);
    if (r)
        gone(m, r);
    pthread_mutex_unlock(&m->mutex);
    return r ? SESSILE_OK : say(err, SESSILE_NOTFOUND, name, "is not there");
}

static sessile_status fenced_blob_list(void *self, const char *prefix,
                                       int (*visit)(void *arg, const char *name),
                                       void *arg, sessile_error *err)
{
    row *r = first(self);

    (void)err;
    while ((r = next_of(self, r, "", 1u << BLOB, NULL))) {
        if (!strncmp(r->name, prefix, strlen(prefix)) && visit(arg, r->name))
            break;
        r = following(self, r);
    }
    return SESSILE_OK;
}

static sessile_status fenced_list_cache_get(void *self, const char *folder, char **out,
                                            size_t *size, sessile_error *err)
{
    return get(self, LIST_CACHE, folder, "", out, size, err);
}

static sessile_status fenced_list_cache_put(void *self, const char *folder,
                                            const void *data, size_t size,
                                            sessile_error *err)
{
    fenced_medium *m = self;
    sessile_status status = SESSILE_OK;
    row *r;

    pthread_mutex_lock(&m->mutex);
    r = find(m, LIST_CACHE, folder, "");
    if (r ? put_bytes(&r->data, &r->size, 0, data, size)
          : !add(m, LIST_CACHE, folder, "", data, size))
        status = no_memory(err);
    pthread_mutex_unlock(&m->mutex);
    return status;
}

static sessile_status fenced_list_cache_drop(void *self, const char *folder,
                                             sessile_error *err)
{
    fenced_medium *m = self;

    (void)err;
    pthread_mutex_lock(&m->mutex);
    for (row *r = m->rows; r; r = r->next)
        if (r->kind == LIST_CACHE && (!folder || !strcmp(r->folder, folder)))
            gone(m, r);
    pthread_mutex_unlock(&m->mutex);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ the store */

fenced_medium *fenced_medium_new(void)
{
    fenced_medium *m = calloc(1, sizeof *m);

    if (m) {
        pthread_mutex_init(&m->mutex, NULL);
        pthread_cond_init(&m->changed, NULL);
        m->timeout_ms = -2;
    }
    return m;
}

void fenced_medium_free(fenced_medium *m)
{
    while (m->rows) {
        row *r = m->rows;
        m->rows = r->next;
        free(r->folder);
        free(r->name);
        free(r->data);
        free(r->cache);
        free(r);
    }
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->mutex);
    free(m);
}

int fenced_timeout(fenced_medium *m)
{
    int timeout_ms;

    pthread_mutex_lock(&m->mutex);
    timeout_ms = m->timeout_ms;
    pthread_mutex_unlock(&m->mutex);
    return timeout_ms;
}

const sessile_backend *fenced_store(fenced_medium *m, void **self)
{
    static const sessile_backend table = {
        .version = SESSILE_BACKEND_VERSION,
        .capabilities = SESSILE_BACKEND_SEALS | SESSILE_BACKEND_CACHES |
                        SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_LIST_CACHE,
        .name = "fenced",
        .create = fenced_create,
        .open = fenced_open,
        .close = fenced_close,
        .size = fenced_size,
        .read = fenced_read,
        .append = fenced_append,
        .sync = fenced_sync,
        .list = fenced_list,
        .blob_get = fenced_blob_get,
        .blob_put_new = fenced_blob_put_new,
        .cache_size = fenced_cache_size,
        .cache_read = fenced_cache_read,
        .cache_write = fenced_cache_write,
        .draft_new = fenced_draft_new,
        .draft_write = fenced_draft_write,
        .draft_replace = fenced_draft_replace,
        .draft_drop = fenced_draft_drop,
        .draft_publish = fenced_draft_publish,
        .blob_replace = fenced_blob_replace,
        .blob_remove = fenced_blob_remove,
        .blob_list = fenced_blob_list,
        .stat = fenced_stat,
        .list_cache_get = fenced_list_cache_get,
        .list_cache_put = fenced_list_cache_put,
        .list_cache_drop = fenced_list_cache_drop,
        .list_stat = fenced_list_stat,
        .list_others = fenced_list_others,
        .replaced = fenced_replaced,
        .remove = fenced_remove,
        .set_timeout = fenced_set_timeout,
        .watch = fenced_watch,
        .ends = fenced_ends,
        .clock = fenced_clock,
    };
    *self = m;
    return &table;
}
