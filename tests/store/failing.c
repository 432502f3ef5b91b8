/*
 * failing.c: a table in front of another one, in which any function can be made to fail.
 *
 * The functions of a log are not told which store it is of, so there is one such table at
 * a time in a process.
 */
#include "store/suite.h"

#include <string.h>

static failing *now;

/* 1 when this call is the one that fails; err is filled. */
static int due(const char *function, sessile_error *err)
{
    for (size_t i = 0; failing_names[i]; i++)
        now->calls[i] += strcmp(failing_names[i], function) == 0;
    if (!now->function || strcmp(now->function, function) != 0)
        return 0;
    if (now->after-- != 0)
        return 0;
    now->hits++;
    err->code = now->status;
    strcpy(err->message, FAILING_SAYS);
    return 1;
}

#define FAILS(function)      \
    if (due(#function, err)) \
    return now->status

static sessile_status f_create(void *self, const char *folder, const char *name,
                               const void *data, size_t size, sessile_error *err)
{
    (void)self;
    FAILS(create);
    return now->under->create(now->self, folder, name, data, size, err);
}

static sessile_status f_open(void *self, const char *folder, const char *name,
                             sessile_backend_log **out, sessile_error *err)
{
    (void)self;
    FAILS(open);
    return now->under->open(now->self, folder, name, out, err);
}

static sessile_status f_size(sessile_backend_log *log, uint64_t *bytes, int64_t *mtime_ms,
                             sessile_error *err)
{
    FAILS(size);
    return now->under->size(log, bytes, mtime_ms, err);
}

static sessile_status f_read(sessile_backend_log *log, uint64_t index, uint64_t offset,
                             void *out, size_t size, size_t *got, sessile_error *err)
{
    FAILS(read);
    return now->under->read(log, index, offset, out, size, got, err);
}

static sessile_status f_lock(sessile_backend_log *log, int mode, int timeout_ms,
                             int *replaced, sessile_error *err)
{
    FAILS(lock);
    return now->under->lock(log, mode, timeout_ms, replaced, err);
}

static sessile_status f_append(sessile_backend_log *log, sessile_log_end *end,
                               const void *data, size_t size, uint64_t count,
                               const unsigned char new_tag[16], int *poisoned,
                               sessile_error *err)
{
    if (now->lost) {
        if (!due("append", err))
            return now->under->append(log, end, data, size, count, new_tag, poisoned,
                                      err);
        sessile_error ignored;
        int ignored_too;
        *poisoned = 1; /* it took place, and nobody was told */
        now->under->append(log, end, data, size, count, new_tag, &ignored_too, &ignored);
        return SESSILE_IO;
    }
    FAILS(append);
    return now->under->append(log, end, data, size, count, new_tag, poisoned, err);
}

static sessile_status f_sync(sessile_backend_log *log, sessile_error *err)
{
    FAILS(sync);
    return now->under->sync(log, err);
}

static sessile_status f_rewrite(sessile_backend_log *log, uint64_t offset,
                                const void *data, size_t size, sessile_error *err)
{
    FAILS(rewrite);
    return now->under->rewrite(log, offset, data, size, err);
}

static sessile_status f_list(void *self, const char *folder,
                             int (*visit)(void *arg, const char *folder,
                                          const char *name),
                             void *arg, sessile_error *err)
{
    (void)self;
    FAILS(list);
    return now->under->list(now->self, folder, visit, arg, err);
}

static sessile_status f_has_logs(void *self, int *found, sessile_error *err)
{
    (void)self;
    FAILS(has_logs);
    return now->under->has_logs(now->self, found, err);
}

static sessile_status f_blob_get(void *self, const char *name, char **out, size_t *size,
                                 sessile_error *err)
{
    (void)self;
    FAILS(blob_get);
    return now->under->blob_get(now->self, name, out, size, err);
}

static sessile_status f_blob_put_new(void *self, const char *name, const void *data,
                                     size_t size, sessile_error *err)
{
    (void)self;
    FAILS(blob_put_new);
    return now->under->blob_put_new(now->self, name, data, size, err);
}

static sessile_status f_blob_settle(void *self, const char *name, sessile_error *err)
{
    (void)self;
    FAILS(blob_settle);
    return now->under->blob_settle(now->self, name, err);
}

static sessile_status f_cache_size(sessile_backend_log *log, uint64_t *bytes,
                                   sessile_error *err)
{
    FAILS(cache_size);
    return now->under->cache_size(log, bytes, err);
}

static sessile_status f_cache_read(sessile_backend_log *log, uint64_t offset, void *out,
                                   size_t size, size_t *got, sessile_error *err)
{
    FAILS(cache_read);
    return now->under->cache_read(log, offset, out, size, got, err);
}

static sessile_status f_cache_write(sessile_backend_log *log, uint64_t offset,
                                    const void *data, size_t size, sessile_error *err)
{
    FAILS(cache_write);
    return now->under->cache_write(log, offset, data, size, err);
}

static sessile_status f_list_stat(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *name,
                                               const sessile_backend_stat *stat),
                                  void *arg, sessile_error *err)
{
    (void)self;
    FAILS(list_stat);
    return now->under->list_stat(now->self, folder, visit, arg, err);
}

static sessile_status f_stat(void *self, const char *folder, const char *name,
                             sessile_backend_stat *out, sessile_error *err)
{
    (void)self;
    FAILS(stat);
    return now->under->stat(now->self, folder, name, out, err);
}

static sessile_status f_list_cache_get(void *self, const char *folder, char **out,
                                       size_t *size, sessile_error *err)
{
    (void)self;
    FAILS(list_cache_get);
    return now->under->list_cache_get(now->self, folder, out, size, err);
}

static sessile_status f_list_cache_put(void *self, const char *folder, const void *data,
                                       size_t size, sessile_error *err)
{
    (void)self;
    FAILS(list_cache_put);
    return now->under->list_cache_put(now->self, folder, data, size, err);
}

static sessile_status f_list_cache_drop(void *self, const char *folder,
                                        sessile_error *err)
{
    (void)self;
    FAILS(list_cache_drop);
    return now->under->list_cache_drop(now->self, folder, err);
}

static sessile_status f_set_aside(sessile_backend_log *log, uint64_t offset,
                                  sessile_error *err)
{
    FAILS(set_aside);
    return now->under->set_aside(log, offset, err);
}

static sessile_status f_remove(sessile_backend_log *log, uint64_t head,
                               sessile_error *err)
{
    FAILS(remove);
    return now->under->remove(log, head, err);
}

static sessile_status f_watch(sessile_backend_log *log, uint64_t bytes, int timeout_ms,
                              int (*ask)(void *arg), void *arg, int *changed,
                              sessile_error *err)
{
    FAILS(watch);
    return now->under->watch(log, bytes, timeout_ms, ask, arg, changed, err);
}

static sessile_status f_list_others(void *self, const char *folder,
                                    int (*visit)(void *arg, const char *folder,
                                                 const char *file, uint64_t bytes),
                                    void *arg, sessile_error *err)
{
    (void)self;
    FAILS(list_others);
    return now->under->list_others(now->self, folder, visit, arg, err);
}

static sessile_status f_sweep(void *self,
                              int (*visit)(void *arg, const char *folder,
                                           const char *file, uint64_t bytes),
                              void *arg, sessile_error *err)
{
    (void)self;
    FAILS(sweep);
    return now->under->sweep(now->self, visit, arg, err);
}

static sessile_status f_blob_replace(void *self, const char *name, const void *was,
                                     size_t was_size, const void *data, size_t size,
                                     sessile_error *err)
{
    (void)self;
    FAILS(blob_replace);
    return now->under->blob_replace(now->self, name, was, was_size, data, size, err);
}

static sessile_status f_blob_remove(void *self, const char *name, sessile_error *err)
{
    (void)self;
    FAILS(blob_remove);
    return now->under->blob_remove(now->self, name, err);
}

static sessile_status f_blob_list(void *self, const char *prefix,
                                  int (*visit)(void *arg, const char *name), void *arg,
                                  sessile_error *err)
{
    (void)self;
    FAILS(blob_list);
    return now->under->blob_list(now->self, prefix, visit, arg, err);
}

static sessile_status f_draft_new(void *self, const char *folder, const char *name,
                                  sessile_backend_draft **out, sessile_error *err)
{
    (void)self;
    FAILS(draft_new);
    return now->under->draft_new(now->self, folder, name, out, err);
}

static sessile_status f_draft_write(sessile_backend_draft *draft, const void *data,
                                    size_t size, sessile_error *err)
{
    FAILS(draft_write);
    return now->under->draft_write(draft, data, size, err);
}

/* These two free the draft also when they fail. */
static sessile_status f_draft_replace(sessile_backend_draft *draft,
                                      sessile_backend_log *old, int keep, char *kept,
                                      size_t kept_size, sessile_error *err)
{
    if (due("draft_replace", err)) {
        now->under->draft_drop(draft);
        return now->status;
    }
    return now->under->draft_replace(draft, old, keep, kept, kept_size, err);
}

static sessile_status f_draft_publish(sessile_backend_draft *draft, sessile_error *err)
{
    if (due("draft_publish", err)) {
        now->under->draft_drop(draft);
        return now->status;
    }
    return now->under->draft_publish(draft, err);
}

static sessile_status f_ends(void *self, sessile_backend_log *const *logs, size_t n,
                             uint64_t *bytes, sessile_error *err)
{
    (void)self;
    FAILS(ends);
    return now->under->ends(now->self, logs, n, bytes, err);
}

static sessile_status f_clock(void *self, int64_t *now_ms, sessile_error *err)
{
    (void)self;
    FAILS(clock);
    return now->under->clock(now->self, now_ms, err);
}

static void f_free(void *self)
{
    (void)self;
    if (now->under->free)
        now->under->free(now->self);
}

const char *const failing_names[] = {
    "create",         "open",           "size",
    "read",           "lock",           "append",
    "sync",           "rewrite",        "set_aside",
    "list",           "list_stat",      "stat",
    "has_logs",       "list_others",    "sweep",
    "blob_get",       "blob_put_new",   "blob_settle",
    "blob_replace",   "blob_remove",    "blob_list",
    "cache_size",     "cache_read",     "cache_write",
    "list_cache_get", "list_cache_put", "list_cache_drop",
    "draft_new",      "draft_write",    "draft_replace",
    "draft_publish",  "remove",         "watch",
    "ends",           "clock",          NULL};

#define COVER(name) f->table.name = under->name ? f_##name : NULL

void failing_init(failing *f, const sessile_backend *under, void *self)
{
    memset(f, 0, sizeof *f);
    f->table = *under;
    f->under = under;
    f->self = self;
    f->table.free = f_free;
    COVER(create);
    COVER(open);
    COVER(size);
    COVER(read);
    COVER(lock);
    COVER(append);
    COVER(sync);
    COVER(rewrite);
    COVER(set_aside);
    COVER(list);
    COVER(list_stat);
    COVER(stat);
    COVER(has_logs);
    COVER(list_others);
    COVER(sweep);
    COVER(blob_get);
    COVER(blob_put_new);
    COVER(blob_settle);
    COVER(blob_replace);
    COVER(blob_remove);
    COVER(blob_list);
    COVER(cache_size);
    COVER(cache_read);
    COVER(cache_write);
    COVER(list_cache_get);
    COVER(list_cache_put);
    COVER(list_cache_drop);
    COVER(draft_new);
    COVER(draft_write);
    COVER(draft_replace);
    COVER(draft_publish);
    COVER(remove);
    COVER(watch);
    COVER(ends);
    COVER(clock);
    now = f;
}
