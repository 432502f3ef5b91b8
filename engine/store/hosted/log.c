/*
 * log.c: logs of a hosted backend, with their caches and drafts.
 *
 * The engine's handle wraps the host's handle and its store. Impossible sizes, and more
 * bytes than were asked for, are errors. The end of a log after an append is computed
 * here and not taken from the host.
 */
#include "store/hosted/hosted.h"

#include <string.h>

/* No log of ours comes near it. */
#define BYTES_MOST (UINT64_MAX >> 2)

/* What the engine takes for a backend's log, or for its draft. */
typedef struct hosted_log {
    hosted *h;
    sessile_backend_log *log;
} hosted_log;

typedef struct hosted_draft {
    hosted *h;
    sessile_backend_draft *draft;
} hosted_draft;

static hosted_log *log_of(sessile_backend_log *log)
{
    return (hosted_log *)(void *)log;
}

static hosted_draft *draft_of(sessile_backend_draft *draft)
{
    return (hosted_draft *)(void *)draft;
}

static sessile_status hosted_create(void *self, const char *folder, const char *name,
                                    const void *data, size_t size, sessile_error *err)
{
    hosted *h = self;
    HOSTED_CALL(status, h, err, create, h->self, folder, name, data, size);
    return status;
}

static sessile_status hosted_open(void *self, const char *folder, const char *name,
                                  sessile_backend_log **out, sessile_error *err)
{
    hosted *h = self;
    *out = NULL;
    hosted_log *log = mem_zalloc(&h->alloc, sizeof *log);
    if (!log)
        return fail_nomem(err);
    log->h = h;
    HOSTED_CALL(status, h, err, open, h->self, folder, name, &log->log);
    if (!status && !log->log)
        status = hosted_absurd(h, err, "it opened a log and gave none");
    if (status) {
        mem_free(&h->alloc, log, sizeof *log);
        return status;
    }
    *out = (sessile_backend_log *)(void *)log;
    return SESSILE_OK;
}

static void hosted_close(sessile_backend_log *handle)
{
    if (handle) {
        hosted_log *log = log_of(handle);
        hosted *h = log->h;
        h->host.close(log->log);
        mem_free(&h->alloc, log, sizeof *log);
    }
}

static sessile_status hosted_size(sessile_backend_log *handle, uint64_t *bytes,
                                  int64_t *mtime_ms, sessile_error *err)
{
    hosted_log *log = log_of(handle);
    *bytes = 0;
    *mtime_ms = 0;
    HOSTED_CALL(status, log->h, err, size, log->log, bytes, mtime_ms);
    if (!status && *bytes > BYTES_MOST) {
        *bytes = 0;
        status = hosted_absurd(log->h, err, "a log has more bytes than there are");
    }
    return status;
}

static sessile_status hosted_read(sessile_backend_log *handle, uint64_t index,
                                  uint64_t offset, void *out, size_t size, size_t *got,
                                  sessile_error *err)
{
    hosted_log *log = log_of(handle);
    *got = 0;
    HOSTED_CALL(status, log->h, err, read, log->log, index, offset, out, size, got);
    if (status) {
        *got = 0;
    } else if (*got > size) {
        *got = 0;
        status = hosted_absurd(log->h, err, "it read more bytes than it was asked for");
    }
    return status;
}

static sessile_status hosted_lock(sessile_backend_log *handle, int mode, int timeout_ms,
                                  int *replaced, sessile_error *err)
{
    hosted_log *log = log_of(handle);
    *replaced = 0;
    HOSTED_CALL(status, log->h, err, lock, log->log, mode, timeout_ms, replaced);
    *replaced = *replaced != 0;
    return status;
}

static void hosted_unlock(sessile_backend_log *handle)
{
    log_of(handle)->h->host.unlock(log_of(handle)->log);
}

static sessile_status hosted_append(sessile_backend_log *handle, sessile_log_end *end,
                                    const void *data, size_t size, uint64_t count,
                                    const unsigned char new_tag[16], int *poisoned,
                                    sessile_error *err)
{
    hosted_log *log = log_of(handle);
    sessile_log_end given = *end;
    *poisoned = 0;
    HOSTED_CALL(status, log->h, err, append, log->log, &given, data, size, count, new_tag,
                poisoned);
    *poisoned = *poisoned != 0 && status;
    if (!status) {
        /* there is one right answer: what the host made of its copy is not needed */
        end->count += count;
        end->bytes += size;
        memcpy(end->tag, new_tag, sizeof end->tag);
    }
    return status;
}

static sessile_status hosted_sync(sessile_backend_log *handle, sessile_error *err)
{
    hosted_log *log = log_of(handle);
    HOSTED_CALL(status, log->h, err, sync, log->log);
    return status;
}

static sessile_status hosted_set_aside(sessile_backend_log *handle, uint64_t offset,
                                       sessile_error *err)
{
    hosted_log *log = log_of(handle);
    HOSTED_CALL(status, log->h, err, set_aside, log->log, offset);
    return status;
}

static sessile_status hosted_rewrite(sessile_backend_log *handle, uint64_t offset,
                                     const void *data, size_t size, sessile_error *err)
{
    hosted_log *log = log_of(handle);
    HOSTED_CALL(status, log->h, err, rewrite, log->log, offset, data, size);
    return status;
}

static void hosted_set_stop(sessile_backend_log *handle, int (*ask)(void *arg), void *arg)
{
    log_of(handle)->h->host.set_stop(log_of(handle)->log, ask, arg);
}

static sessile_status hosted_busy(sessile_backend_log *handle, sessile_error *err)
{
    hosted_log *log = log_of(handle);
    HOSTED_CALL(status, log->h, err, busy, log->log);
    return status == SESSILE_BUSY
               ? status
               : fail(err, SESSILE_BUSY, "another writer holds the log: wait longer");
}

static void hosted_set_timeout(sessile_backend_log *handle, int timeout_ms)
{
    log_of(handle)->h->host.set_timeout(log_of(handle)->log, timeout_ms);
}

static sessile_status hosted_watch(sessile_backend_log *handle, uint64_t bytes,
                                   int timeout_ms, int (*ask)(void *arg), void *arg,
                                   int *changed, sessile_error *err)
{
    hosted_log *log = log_of(handle);
    *changed = 0;
    HOSTED_CALL(status, log->h, err, watch, log->log, bytes, timeout_ms, ask, arg,
                changed);
    *changed = !status && *changed != 0;
    return status;
}

static int hosted_replaced(sessile_backend_log *handle)
{
    return log_of(handle)->h->host.replaced(log_of(handle)->log) != 0;
}

static sessile_status hosted_remove(sessile_backend_log *handle, uint64_t head,
                                    sessile_error *err)
{
    hosted_log *log = log_of(handle);
    HOSTED_CALL(status, log->h, err, remove, log->log, head);
    return status;
}

/* ---------------------------------------------------------------------- caches */

static sessile_status hosted_cache_size(sessile_backend_log *handle, uint64_t *bytes,
                                        sessile_error *err)
{
    hosted_log *log = log_of(handle);
    *bytes = 0;
    HOSTED_CALL(status, log->h, err, cache_size, log->log, bytes);
    if (!status && *bytes > BYTES_MOST) {
        *bytes = 0;
        status = hosted_absurd(log->h, err, "a cache has more bytes than there are");
    }
    return status;
}

static sessile_status hosted_cache_read(sessile_backend_log *handle, uint64_t offset,
                                        void *out, size_t size, size_t *got,
                                        sessile_error *err)
{
    hosted_log *log = log_of(handle);
    *got = 0;
    HOSTED_CALL(status, log->h, err, cache_read, log->log, offset, out, size, got);
    if (!status && *got > size) {
        *got = 0;
        status =
            hosted_absurd(log->h, err, "it read more of a cache than it was asked for");
    }
    return status;
}

static sessile_status hosted_cache_write(sessile_backend_log *handle, uint64_t offset,
                                         const void *data, size_t size,
                                         sessile_error *err)
{
    hosted_log *log = log_of(handle);
    HOSTED_CALL(status, log->h, err, cache_write, log->log, offset, data, size);
    return status;
}

static sessile_status hosted_draft_new(void *self, const char *folder, const char *name,
                                       sessile_backend_draft **out, sessile_error *err)
{
    hosted *h = self;
    *out = NULL;
    hosted_draft *draft = mem_zalloc(&h->alloc, sizeof *draft);
    if (!draft)
        return fail_nomem(err);
    draft->h = h;
    HOSTED_CALL(status, h, err, draft_new, h->self, folder, name, &draft->draft);
    if (!status && !draft->draft)
        status = hosted_absurd(h, err, "it began a draft and gave none");
    if (status) {
        mem_free(&h->alloc, draft, sizeof *draft);
        return status;
    }
    *out = (sessile_backend_draft *)(void *)draft;
    return SESSILE_OK;
}

static sessile_status hosted_draft_write(sessile_backend_draft *handle, const void *data,
                                         size_t size, sessile_error *err)
{
    hosted_draft *draft = draft_of(handle);
    HOSTED_CALL(status, draft->h, err, draft_write, draft->draft, data, size);
    return status;
}

static sessile_status hosted_draft_replace(sessile_backend_draft *handle,
                                           sessile_backend_log *old, int keep, char *kept,
                                           size_t kept_size, sessile_error *err)
{
    hosted_draft *draft = draft_of(handle);
    hosted *h = draft->h;
    HOSTED_CALL(status, h, err, draft_replace, draft->draft, log_of(old)->log, keep, kept,
                kept_size);
    if (kept && kept_size > 0)
        kept[kept_size - 1] = '\0';
    mem_free(&h->alloc, draft, sizeof *draft);
    return status;
}

static sessile_status hosted_draft_publish(sessile_backend_draft *handle,
                                           sessile_error *err)
{
    hosted_draft *draft = draft_of(handle);
    hosted *h = draft->h;
    HOSTED_CALL(status, h, err, draft_publish, draft->draft);
    mem_free(&h->alloc, draft, sizeof *draft);
    return status;
}

static void hosted_draft_drop(sessile_backend_draft *handle)
{
    if (handle) {
        hosted_draft *draft = draft_of(handle);
        hosted *h = draft->h;
        h->host.draft_drop(draft->draft);
        mem_free(&h->alloc, draft, sizeof *draft);
    }
}

void hosted_show_logs(sessile_backend *shown, const sessile_backend *host)
{
    const unsigned has = host->capabilities;
    shown->create = hosted_create;
    shown->open = hosted_open;
    shown->close = hosted_close;
    shown->size = hosted_size;
    shown->read = hosted_read;
    shown->append = hosted_append;
    shown->sync = hosted_sync;
    if (has & SESSILE_BACKEND_LOCKS) {
        shown->lock = hosted_lock;
        shown->unlock = hosted_unlock;
        shown->busy = host->busy ? hosted_busy : NULL;
        shown->rewrite = host->rewrite ? hosted_rewrite : NULL;
    }
    if (has & SESSILE_BACKEND_CUTS)
        shown->set_aside = hosted_set_aside;
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
    shown->set_stop = host->set_stop ? hosted_set_stop : NULL;
    shown->remove = host->remove ? hosted_remove : NULL;
    shown->set_timeout = host->set_timeout ? hosted_set_timeout : NULL;
    shown->watch = host->watch ? hosted_watch : NULL;
}
