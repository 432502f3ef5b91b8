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
typedef struct handle {
    hosted *h;
    sessile_backend_log *log;
    sessile_backend_draft *draft;
} handle;

static handle *log_of(sessile_backend_log *log)
{
    return (handle *)(void *)log;
}

static handle *draft_of(sessile_backend_draft *draft)
{
    return (handle *)(void *)draft;
}

static handle *handle_new(hosted *h, sessile_error *err)
{
    handle *made = mem_zalloc(&h->alloc, sizeof *made);
    if (made)
        made->h = h;
    else
        fail_nomem(err);
    return made;
}

static void handle_free(handle *x)
{
    mem_free(&x->h->alloc, x, sizeof *x);
}

/* The result of a call that should have put something into a new handle. Frees the handle
 * on failure. */
static sessile_status handle_result(handle *x, sessile_status status, const char *absurd,
                                    sessile_error *err)
{
    if (!status && !x->log && !x->draft)
        status = hosted_absurd(x->h, err, absurd);
    if (status)
        handle_free(x);
    return status;
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
    handle *log = handle_new(h, err);
    if (!log)
        return SESSILE_NOMEM;
    HOSTED_CALL(heard_status, h, err, open, h->self, folder, name, &log->log);
    sessile_status status =
        handle_result(log, heard_status, "it opened a log and gave none", err);
    *out = status ? NULL : (sessile_backend_log *)(void *)log;
    return status;
}

static void hosted_close(sessile_backend_log *backend_log)
{
    if (backend_log) {
        handle *log = log_of(backend_log);
        log->h->host.close(log->log);
        handle_free(log);
    }
}

static sessile_status hosted_size(sessile_backend_log *backend_log, uint64_t *bytes,
                                  int64_t *mtime_ms, sessile_error *err)
{
    handle *log = log_of(backend_log);
    *bytes = 0;
    *mtime_ms = 0;
    HOSTED_CALL(status, log->h, err, size, log->log, bytes, mtime_ms);
    if (!status && *bytes > BYTES_MOST) {
        *bytes = 0;
        status = hosted_absurd(log->h, err, "a log has more bytes than there are");
    }
    return status;
}

static sessile_status hosted_read(sessile_backend_log *backend_log, uint64_t index,
                                  uint64_t offset, void *out, size_t size, size_t *got,
                                  sessile_error *err)
{
    handle *log = log_of(backend_log);
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

static sessile_status hosted_lock(sessile_backend_log *backend_log, int mode,
                                  int timeout_ms, int *replaced, sessile_error *err)
{
    handle *log = log_of(backend_log);
    *replaced = 0;
    HOSTED_CALL(status, log->h, err, lock, log->log, mode, timeout_ms, replaced);
    *replaced = *replaced != 0;
    return status;
}

static void hosted_unlock(sessile_backend_log *backend_log)
{
    log_of(backend_log)->h->host.unlock(log_of(backend_log)->log);
}

static sessile_status hosted_append(sessile_backend_log *backend_log,
                                    sessile_log_end *end, const void *data, size_t size,
                                    uint64_t count, const unsigned char new_tag[16],
                                    int *poisoned, sessile_error *err)
{
    handle *log = log_of(backend_log);
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

static sessile_status hosted_sync(sessile_backend_log *backend_log, sessile_error *err)
{
    handle *log = log_of(backend_log);
    HOSTED_CALL(status, log->h, err, sync, log->log);
    return status;
}

static sessile_status hosted_set_aside(sessile_backend_log *backend_log, uint64_t offset,
                                       sessile_error *err)
{
    handle *log = log_of(backend_log);
    HOSTED_CALL(status, log->h, err, set_aside, log->log, offset);
    return status;
}

static sessile_status hosted_rewrite(sessile_backend_log *backend_log, uint64_t offset,
                                     const void *data, size_t size, sessile_error *err)
{
    handle *log = log_of(backend_log);
    HOSTED_CALL(status, log->h, err, rewrite, log->log, offset, data, size);
    return status;
}

static void hosted_set_stop(sessile_backend_log *backend_log, int (*ask)(void *arg),
                            void *arg)
{
    log_of(backend_log)->h->host.set_stop(log_of(backend_log)->log, ask, arg);
}

static sessile_status hosted_busy(sessile_backend_log *backend_log, sessile_error *err)
{
    handle *log = log_of(backend_log);
    HOSTED_CALL(status, log->h, err, busy, log->log);
    return status == SESSILE_BUSY
               ? status
               : fail(err, SESSILE_BUSY, "another writer holds the log: wait longer");
}

static void hosted_set_timeout(sessile_backend_log *backend_log, int timeout_ms)
{
    log_of(backend_log)->h->host.set_timeout(log_of(backend_log)->log, timeout_ms);
}

static sessile_status hosted_watch(sessile_backend_log *backend_log, uint64_t bytes,
                                   int timeout_ms, int (*ask)(void *arg), void *arg,
                                   int *changed, sessile_error *err)
{
    handle *log = log_of(backend_log);
    *changed = 0;
    HOSTED_CALL(status, log->h, err, watch, log->log, bytes, timeout_ms, ask, arg,
                changed);
    *changed = !status && *changed != 0;
    return status;
}

static sessile_status hosted_fence(sessile_backend_log *backend_log, sessile_log_end *out,
                                   int *has_tag, sessile_error *err)
{
    handle *log = log_of(backend_log);
    memset(out, 0, sizeof *out);
    *has_tag = 0;
    HOSTED_CALL(status, log->h, err, fence, log->log, out, has_tag);
    return status;
}

static void hosted_opened(sessile_backend_log *backend_log, uint64_t *bytes,
                          uint64_t *cache_bytes)
{
    *bytes = 0;
    *cache_bytes = UINT64_MAX;
    log_of(backend_log)->h->host.opened(log_of(backend_log)->log, bytes, cache_bytes);
}

static void hosted_reread(sessile_backend_log *backend_log)
{
    log_of(backend_log)->h->host.reread(log_of(backend_log)->log);
}

static sessile_status hosted_ends(void *self, sessile_backend_log *const *logs, size_t n,
                                  uint64_t *bytes, sessile_error *err)
{
    hosted *h = self;
    sessile_backend_log **theirs = mem_alloc(&h->alloc, n * sizeof *theirs);
    if (!theirs)
        return fail_nomem(err);
    for (size_t i = 0; i < n; i++) {
        theirs[i] = log_of(logs[i])->log;
        bytes[i] = SESSILE_LOG_GONE;
    }
    HOSTED_CALL(status, h, err, ends, h->self, theirs, n, bytes);
    mem_free(&h->alloc, theirs, n * sizeof *theirs);
    for (size_t i = 0; !status && i < n; i++)
        if (bytes[i] > BYTES_MOST && bytes[i] != SESSILE_LOG_GONE)
            status = hosted_absurd(h, err, "a log has more bytes than there are");
    return status;
}

static sessile_status hosted_clock(void *self, int64_t *now_ms, sessile_error *err)
{
    hosted *h = self;
    *now_ms = 0;
    HOSTED_CALL(status, h, err, clock, h->self, now_ms);
    return !status && *now_ms <= 0
               ? hosted_absurd(h, err, "its clock shows a time before 1970")
               : status;
}

static int hosted_replaced(sessile_backend_log *backend_log)
{
    return log_of(backend_log)->h->host.replaced(log_of(backend_log)->log) != 0;
}

static sessile_status hosted_remove(sessile_backend_log *backend_log, uint64_t head,
                                    sessile_error *err)
{
    handle *log = log_of(backend_log);
    HOSTED_CALL(status, log->h, err, remove, log->log, head);
    return status;
}

/* ---------------------------------------------------------------------- caches */

static sessile_status hosted_cache_size(sessile_backend_log *backend_log, uint64_t *bytes,
                                        sessile_error *err)
{
    handle *log = log_of(backend_log);
    *bytes = 0;
    HOSTED_CALL(status, log->h, err, cache_size, log->log, bytes);
    if (!status && *bytes > BYTES_MOST) {
        *bytes = 0;
        status = hosted_absurd(log->h, err, "a cache has more bytes than there are");
    }
    return status;
}

static sessile_status hosted_cache_read(sessile_backend_log *backend_log, uint64_t offset,
                                        void *out, size_t size, size_t *got,
                                        sessile_error *err)
{
    handle *log = log_of(backend_log);
    *got = 0;
    HOSTED_CALL(status, log->h, err, cache_read, log->log, offset, out, size, got);
    if (!status && *got > size) {
        *got = 0;
        status =
            hosted_absurd(log->h, err, "it read more of a cache than it was asked for");
    }
    return status;
}

static sessile_status hosted_cache_write(sessile_backend_log *backend_log,
                                         uint64_t offset, const void *data, size_t size,
                                         sessile_error *err)
{
    handle *log = log_of(backend_log);
    HOSTED_CALL(status, log->h, err, cache_write, log->log, offset, data, size);
    return status;
}

static sessile_status hosted_draft_new(void *self, const char *folder, const char *name,
                                       sessile_backend_draft **out, sessile_error *err)
{
    hosted *h = self;
    *out = NULL;
    handle *draft = handle_new(h, err);
    if (!draft)
        return SESSILE_NOMEM;
    HOSTED_CALL(heard_status, h, err, draft_new, h->self, folder, name, &draft->draft);
    sessile_status status =
        handle_result(draft, heard_status, "it began a draft and gave none", err);
    *out = status ? NULL : (sessile_backend_draft *)(void *)draft;
    return status;
}

static sessile_status hosted_draft_write(sessile_backend_draft *backend_draft,
                                         const void *data, size_t size,
                                         sessile_error *err)
{
    handle *draft = draft_of(backend_draft);
    HOSTED_CALL(status, draft->h, err, draft_write, draft->draft, data, size);
    return status;
}

static sessile_status hosted_draft_replace(sessile_backend_draft *backend_draft,
                                           sessile_backend_log *old, int keep, char *kept,
                                           size_t kept_size, sessile_error *err)
{
    handle *draft = draft_of(backend_draft);
    HOSTED_CALL(status, draft->h, err, draft_replace, draft->draft, log_of(old)->log,
                keep, kept, kept_size);
    if (kept && kept_size > 0)
        kept[kept_size - 1] = '\0';
    handle_free(draft);
    return status;
}

static sessile_status hosted_draft_publish(sessile_backend_draft *backend_draft,
                                           sessile_error *err)
{
    handle *draft = draft_of(backend_draft);
    HOSTED_CALL(status, draft->h, err, draft_publish, draft->draft);
    handle_free(draft);
    return status;
}

static void hosted_draft_drop(sessile_backend_draft *backend_draft)
{
    if (backend_draft) {
        handle *draft = draft_of(backend_draft);
        draft->h->host.draft_drop(draft->draft);
        handle_free(draft);
    }
}

static sessile_status hosted_rename(sessile_backend_log *log, const char *folder,
                                    const char *name, sessile_error *err)
{
    handle *l = log_of(log);
    HOSTED_CALL(status, l->h, err, rename, l->log, folder, name);
    return status;
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
    shown->rename = host->rename ? hosted_rename : NULL;
    shown->set_timeout = host->set_timeout ? hosted_set_timeout : NULL;
    shown->watch = host->watch ? hosted_watch : NULL;
    shown->fence = host->fence ? hosted_fence : NULL;
    shown->opened = host->opened ? hosted_opened : NULL;
    shown->reread = host->reread ? hosted_reread : NULL;
    shown->ends = host->ends ? hosted_ends : NULL;
    shown->clock = host->clock ? hosted_clock : NULL;
}
