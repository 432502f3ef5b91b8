/*
 * log.c: the handle of a log: made, opened, read on, appended to.
 *
 * Owns the order of things in an append: lock, read on, build every line in memory, one
 * write, unlock. It must never hand a backend bytes that are not whole lines ending in a
 * commit, and never sync what it wrote: log_sync() does that, outside the lock. (What
 * others left behind is made safe or set aside under it, before an append: log_settle(),
 * log_recover().)
 */
#include "log/log.h"

#include <assert.h>
#include <string.h>

#include "log/internal.h"

/* Buffers that grew past this are given back. What reads needs less: a log that is only
 * appended to through this handle never reads. */
#define KEEP      ((size_t)64 << 10)
#define KEEP_READ ((size_t)16 << 10)

/* ---------------------------------------------------------------------- the handle */

static void trim(buf *b, size_t keep)
{
    if (b->capacity > keep)
        buf_deinit(b);
}

void log_trim(log_t *log)
{
    trim(&log->piece, KEEP_READ);
    trim(&log->text, KEEP_READ);
    trim(&log->lines, KEEP);
    trim(&log->scratch, KEEP);
}

void log_close(log_t *log)
{
    if (!log)
        return;
    const allocator *a = log->alloc;
    log_close(log->before);
    index_deinit(log);
    if (log->handle)
        log->st.table->close(log->handle);
    log_damage_free(log);
    logkey_deinit(&log->key);
    if (log->name)
        mem_free(a, log->name, strlen(log->name) + 1);
    mem_free(a, log->offsets, log->offset_capacity * sizeof *log->offsets);
    mem_free(a, log->pending, log->pending_capacity * sizeof *log->pending);
    buf_deinit(&log->lines);
    buf_deinit(&log->scratch);
    buf_deinit(&log->piece);
    buf_deinit(&log->prefetch);
    buf_deinit(&log->text);
    pthread_cond_destroy(&log->synced);
    pthread_mutex_destroy(&log->mutex);
    mem_free(a, log, sizeof *log);
}

/* The log's key out of its first line. */
static sessile_status read_key(log_t *log, const keyring *k, sessile_error *err)
{
    uint64_t size;
    char *text;
    size_t text_size;
    reader r;
    sessile_status status = log_size(log, &size, err);
    if (status)
        return status;
    reader_init(&r, log, 0, size);
    reader_found found = reader_next(&r, 0, &text, &text_size, err);
    if (found == READER_FAILED)
        return err->code;
    if (found != READER_LINE) {
        return fail(err, SESSILE_DAMAGED,
                    "it has no first line: nothing of it can be opened. Nothing was "
                    "changed: bring back a backup");
    }
    index_named(log, text, text_size);
    return k ? line_key(&log->key, k, text, text_size, err)
             : line_key_look(&log->key, text, text_size, err);
}

static int has_locks(const log_t *log)
{
    return log_has_locks(log->st.table);
}

/* A first line that is none: whoever removes a log overwrites it before its name goes. So
 * it is damage only if the name still leads to it when nobody holds its lock. */
static int is_being_removed(log_t *log)
{
    enum { WAIT_MS = 1000 };
    sessile_error ignored = {SESSILE_OK, ""};
    int replaced = 0;
    if (!has_locks(log) || log->st.table->lock(log->handle, SESSILE_LOCK_SHARED, WAIT_MS,
                                               &replaced, &ignored))
        return 0;
    log->st.table->unlock(log->handle);
    return replaced;
}

/* *moved: the name was gone, or another log's, before the first line was read. */
static sessile_status attach_once(log_t **out, store *st, const keyring *k,
                                  const char *folder, const char *name, unsigned depth,
                                  int *moved, const allocator *a, sessile_error *err)
{
    *out = NULL;
    *moved = 0;
    log_t *log = mem_zalloc(a, sizeof *log);
    if (!log)
        return fail_nomem(err);
    log->st = *st;
    log->alloc = a;
    log->depth = depth;
    pthread_mutex_init(&log->mutex, NULL);
    os_cond_init(&log->synced);
    buf_init(&log->lines, a);
    buf_init(&log->scratch, a);
    buf_init(&log->piece, a);
    buf_init(&log->prefetch, a);
    buf_init(&log->text, a);
    buf_puts(&log->scratch, folder);
    buf_puts(&log->scratch, "/");
    buf_puts(&log->scratch, name);
    if (!log->scratch.failed)
        log->name = mem_dup(a, log->scratch.data, log->scratch.size);
    sessile_status status = !log->name ? fail_nomem(err) : SESSILE_OK;
    if (!status)
        status = st->table->open(st->self, folder, name, &log->handle, err);
    if (!status) {
        status = read_key(log, k, err);
        *moved = log_moved(log, status) || (status == SESSILE_DAMAGED &&
                                            (log_replaced(log) || is_being_removed(log)));
        if (status && status != SESSILE_NOTFOUND)
            fail_prefix(err, "%s", log->name);
    }
    if (status) {
        log_close(log);
        return status;
    }
    *out = log;
    return SESSILE_OK;
}

sessile_status log_attach(log_t **out, store *st, const keyring *k, const char *folder,
                          const char *name, unsigned depth, const allocator *a,
                          sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    int moved = 1;
    for (int i = 0; moved && i < LOG_TRIES; i++) {
        error_clear(err);
        status = attach_once(out, st, k, folder, name, depth, &moved, a, err);
    }
    return status;
}

sessile_id log_write_first(const log_t *log)
{
    return (sessile_id)(log->end.count - log->in_write);
}

const char *log_user(const log_t *log)
{
    return log->key.user;
}

uint64_t log_torn(const log_t *log)
{
    return log->torn;
}

void log_set_timeout(log_t *log, int timeout_ms)
{
    log->timeout_ms = timeout_ms;
    if (log->st.table->set_timeout)
        log->st.table->set_timeout(log->handle, timeout_ms);
}

void log_set_stop(log_t *log, log_stop stop, void *arg)
{
    if (log->st.table->set_stop)
        log->st.table->set_stop(log->handle, stop, arg);
}

sessile_status log_size(log_t *log, uint64_t *size, sessile_error *err)
{
    int64_t mtime_ms;
    sessile_status status = log->st.table->size(log->handle, size, &mtime_ms, err);
    log->asked = !status ? *size : UINT64_MAX;
    return log_gone(log, status, err);
}

sessile_status log_gone(log_t *log, sessile_status status, sessile_error *err)
{
    sessile_error ignored = {SESSILE_OK, ""};
    uint64_t size;
    int64_t mtime_ms;
    if (status != SESSILE_NOTFOUND || has_locks(log))
        return status;
    log->asked = UINT64_MAX;
    (void)log->st.table->size(log->handle, &size, &mtime_ms, &ignored);
    return fail(err, SESSILE_NOTFOUND,
                log_replaced(log) ? "%s was replaced since it was opened: open it again"
                                  : "%s was removed since it was opened: nothing more is "
                                    "read from it or written to it",
                log->name);
}

uint64_t log_asked(const log_t *log)
{
    return log->asked;
}

sessile_status log_still_there(log_t *log, sessile_error *err)
{
    char first;
    size_t got;
    return has_locks(log) ? SESSILE_OK
                          : log_gone(log,
                                     log->st.table->read(log->handle, 0, 0, &first,
                                                         sizeof first, &got, err),
                                     err);
}

int log_moved(log_t *log, sessile_status status)
{
    return status == SESSILE_NOTFOUND && !has_locks(log) && log_replaced(log);
}

/* ---------------------------------------------------------------------- create, open */

/* Entries are one line of JSON that begins with its id and ends with a brace. */
int log_is_entry(const char *text, size_t size, uint64_t id)
{
    sessile_id found;
    return line_id(text, size, &found) && found == id && text[size - 1] == '}' &&
           !memchr(text, '\n', size);
}

sessile_status log_create_for(store *st, const keyring *k, const char *folder,
                              const char *name, const char *user, const char *header,
                              size_t size, const allocator *a, sessile_error *err)
{
    unsigned char tag[VAULT_TAG];
    logkey key;
    buf out, scratch;
    memset(&key, 0, sizeof key);
    buf_init(&out, a);
    buf_init(&scratch, a);
    sessile_status status;
    if (!log_is_entry(header, size, 0)) {
        status = fail(err, SESSILE_INVALID, "a log begins with an entry of id 00000000");
        goto out;
    }
    status = line_put_header(&key, k, user, &out, header, size, tag, &scratch, err);
    if (!status && out.size > LINE_LONGEST)
        status = fail(err, SESSILE_LIMIT, "the header is too long [message]");
    if (!status)
        status = st->table->create(st->self, folder, name, out.data, out.size, err);
    if (!status && keyring_sealed(k)) {
        log_made made = {folder,   name,     user,      header, size,
                         out.data, out.size, key.epoch, a};
        status = log_keep_up(st, k, &made, err);
    }
out:
    logkey_deinit(&key);
    buf_deinit(&out);
    buf_deinit(&scratch);
    return status;
}

sessile_status log_create(store *st, const keyring *k, const char *folder,
                          const char *name, const char *header, size_t size,
                          const allocator *a, sessile_error *err)
{
    return log_create_for(st, k, folder, name, NULL, header, size, a, err);
}

/* Scans to size, from where the index leads or from the start. */
static sessile_status scan_first(log_t *log, uint64_t size, log_visit visit, void *arg,
                                 sessile_error *err)
{
    sessile_status status = index_begin(log, size, visit, arg, err);
    if (!status)
        status = log_scan(log, size, visit, arg, err);
    if (!status && log->in_write != 0) {
        /* A write that was safe does not end: only a scan can say where the log does. */
        index_forget(log);
        log->index.callbacks.reset(log->index.callbacks.arg);
        status = log_scan(log, size, visit, arg, err);
    }
    return status;
}

/* 1 when the log has been read and is as long as it was: a torn end is still there. */
static int is_uncut(log_t *log, uint64_t was)
{
    uint64_t size;
    sessile_error err;
    return log->end.count > 0 && !log->poison.code && !log_size(log, &size, &err) &&
           size >= was && size > log->end.bytes;
}

/* Its name was removed or given to another: the session above looks which. */
static sessile_status not_there(const log_t *log, sessile_error *err)
{
    return fail(err, SESSILE_NOTFOUND,
                "%s was removed or replaced since it was opened: open it again",
                log->name);
}

/* *moved: it was removed meanwhile, or another log took its name. */
static sessile_status open_once(log_t **out, store *st, const keyring *k,
                                const char *folder, const char *name, unsigned depth,
                                int timeout_ms, const log_index_callbacks *callbacks,
                                log_visit visit, void *arg, uint64_t *torn, int *moved,
                                const allocator *a, sessile_error *err)
{
    uint64_t size, cut = 0;
    int replaced = 0;
    log_t *log;
    *out = NULL;
    *moved = 0;
    sessile_status status = log_attach(&log, st, k, folder, name, depth, a, err);
    if (status)
        return status;
    log_set_timeout(log, timeout_ms);
    if (callbacks && (st->table->capabilities & SESSILE_BACKEND_CACHES) != 0)
        log->index.callbacks = *callbacks;
    *out = log;
    /* asked a moment ago, for the first line; a database need not be asked again */
    size = log->asked;
    if (has_locks(log))
        status = log_size(log, &size, err);
    if (!status)
        status = scan_first(log, size, visit, arg, err);
    if (status)
        goto out;
    /* The index may be newer than the size: then the log has grown since, or was cut. */
    if (size == log->end.bytes && log->end.count > 0 &&
        log->end.count >= log->index.proof)
        goto out;
    /* Something is past the last commit. With the lock, the truth can be had at once. */
    status = has_locks(log) ? log->st.table->lock(log->handle, SESSILE_LOCK_EXCLUSIVE, 0,
                                                  &replaced, err)
                            : SESSILE_BUSY;
    if (!status) {
        *moved = replaced;
        status = replaced ? not_there(log, err) : log_recover(log, visit, arg, &cut, err);
        if ((status == SESSILE_DENIED || status == SESSILE_FULL) && is_uncut(log, size)) {
            error_clear(
                err); /* there is no place for the torn end: who appends is told */
            status = SESSILE_OK;
        }
        log->st.table->unlock(log->handle);
    } else if (status == SESSILE_BUSY || status == SESSILE_DENIED ||
               status == SESSILE_UNSUPPORTED) {
        error_clear(err);
        status = log_look(log, visit, arg, err);
    }
out:
    if (!status)
        status = log_check_proof(log, size, err);
    status = log_take_damage(log, status, err);
    if (status) {
        *moved =
            *moved || log_moved(log, status) ||
            (status == SESSILE_DAMAGED && (log_replaced(log) || is_being_removed(log)));
        *out = NULL;
        log_close(log);
        return status;
    }
    log_learn(log, log->end.count, 1); /* the header came durable */
    if (!log->damage)
        log_index_try(log);
    log->torn = cut;
    *torn = cut;
    return SESSILE_OK;
}

sessile_status log_open_kept(log_t **out, store *st, const keyring *k, const char *folder,
                             const char *name, unsigned depth, int timeout_ms,
                             const log_index_callbacks *callbacks, log_visit visit,
                             void *arg, uint64_t *torn, const allocator *a,
                             sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    sessile_status status = SESSILE_OK;
    uint64_t cut = 0;
    int moved = 1;
    err = err ? err : &local;
    for (int i = 0; moved && i < LOG_TRIES; i++) {
        if (i > 0 && callbacks)
            callbacks->reset(callbacks->arg);
        error_clear(err);
        status = open_once(out, st, k, folder, name, depth, timeout_ms, callbacks, visit,
                           arg, &cut, &moved, a, err);
        moved = moved && callbacks; /* else what was shown cannot be taken back */
    }
    if (torn)
        *torn = cut;
    return status;
}

sessile_status log_open(log_t **out, store *st, const keyring *k, const char *folder,
                        const char *name, unsigned depth, int timeout_ms, log_visit visit,
                        void *arg, uint64_t *torn, const allocator *a, sessile_error *err)
{
    return log_open_kept(out, st, k, folder, name, depth, timeout_ms, NULL, visit, arg,
                         torn, a, err);
}

int log_replaced(const log_t *log)
{
    const sessile_backend *table = log->st.table;
    return (table->capabilities & SESSILE_BACKEND_REPLACES) != 0 && table->replaced &&
           table->replaced(log->handle);
}

void log_outlive(log_t *log, log_t *old)
{
    index_deinit(old);
    old->index.off = 1;
    mem_free(old->alloc, old->offsets, old->offset_capacity * sizeof *old->offsets);
    old->offsets = NULL;
    old->offset_capacity = 0;
    log->torn += old->torn;
    log_t *last = log;
    while (last->before)
        last = last->before;
    last->before = old;
}

sessile_status log_refresh(log_t *log, log_visit visit, void *arg, sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    err = err ? err : &local;
    error_clear(err);
    if (log->damage)
        return SESSILE_OK; /* nobody writes to it: what it has was read at opening */
    return log_look(log, visit, arg, err);
}

/* ---------------------------------------------------------------------- append */

sessile_status log_lock(const sessile_backend *table, sessile_backend_log *handle,
                        int kind, int timeout_ms, int *replaced, sessile_error *err)
{
    sessile_status status = table->lock(handle, kind, timeout_ms, replaced, err);
    return status == SESSILE_BUSY && table->busy ? table->busy(handle, err) : status;
}

/* Nobody is held off: that the log still ends here is compared by the append. */
static sessile_status begin_unlocked(log_t *log, log_visit visit, void *arg,
                                     sessile_error *err)
{
    sessile_status status = log_look(log, visit, arg, err);
    if (!status && log_replaced(log))
        status = not_there(log, err);
    if (!status && !log->settled)
        status = log_settle(log, err);
    log->locked = status == SESSILE_OK;
    return status;
}

int log_begin_known(log_t *log)
{
    assert(!log->locked);
    log->locked = !has_locks(log) && log->settled && !log->damage &&
                  !log_poisoned(log, NULL) && !log_replaced(log);
    return log->locked;
}

sessile_status log_begin(log_t *log, log_visit visit, void *arg, sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    uint64_t cut = 0;
    int replaced = 0;
    err = err ? err : &local;
    assert(!log->locked);
    sessile_status status = log_damage(log, err);
    if (!status)
        status = log_poisoned(log, err);
    if (status)
        return status;
    error_clear(err);
    if (!has_locks(log))
        return begin_unlocked(log, visit, arg, err);
    status = log_lock(log->st.table, log->handle, SESSILE_LOCK_EXCLUSIVE, log->timeout_ms,
                      &replaced, err);
    if (status)
        return status;
    if (replaced) {
        status = not_there(log, err);
    } else {
        status = log_recover(log, visit, arg, &cut, err);
        log->torn += cut;
    }
    if (!status && !log->settled)
        status = log_settle(log, err);
    if (status) {
        log->st.table->unlock(log->handle);
        return status;
    }
    log->locked = 1;
    return SESSILE_OK;
}

void log_end(log_t *log)
{
    if (!log->locked)
        return;
    log->locked = 0;
    if (has_locks(log))
        log->st.table->unlock(log->handle);
    trim(&log->lines, KEEP);
    trim(&log->scratch, KEEP);
}

/* Builds the lines of a write in log->lines. end: where the log will end. */
static sessile_status build(log_t *log, const sessile_slice *texts, size_t count,
                            uint64_t max_bytes, sessile_log_end *end, sessile_error *err)
{
    unsigned char previous[VAULT_TAG];
    buf *lines = &log->lines;
    pthread_mutex_lock(&log->mutex);
    uint64_t durable = log->durable;
    pthread_mutex_unlock(&log->mutex);
    buf_clear(lines);
    for (size_t i = 0; i < count; i++) {
        uint64_t id = log->end.count + i;
        size_t start = lines->size;
        line_clear clear = {0, 0};
        if (!log_is_entry(texts[i].data, texts[i].size, id)) {
            return fail(err, SESSILE_INVALID, "an entry for %s has not the id %08llx",
                        log->name, (unsigned long long)id);
        }
        if (i + 1 == count)
            clear = (line_clear){count, durable};
        memcpy(previous, end->tag, VAULT_TAG);
        sessile_status status = line_put(&log->key, lines, texts[i].data, texts[i].size,
                                         clear, previous, end->tag, &log->scratch, err);
        if (status)
            return status;
        if (lines->size - start > LINE_LONGEST) {
            return fail(err, SESSILE_LIMIT, "an entry for %s is too long [message]",
                        log->name);
        }
        log->offsets[id] = log->end.bytes + start;
        index_pass(log, id, log->end.bytes + lines->size,
                   i + 1 == count ? 0 : (uint64_t)i + 1, end->tag);
    }
    if (max_bytes != 0 &&
        (log->end.bytes > max_bytes || lines->size > max_bytes - log->end.bytes)) {
        return fail(
            err, SESSILE_LIMIT,
            "%s would grow past %llu bytes [session]: begin a new session, or raise "
            "the limit",
            log->name, (unsigned long long)max_bytes);
    }
    return SESSILE_OK;
}

sessile_status log_append(log_t *log, const sessile_slice *texts, size_t count,
                          uint64_t max_bytes, sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    unsigned char tag[VAULT_TAG];
    int poisoned = 0;
    err = err ? err : &local;
    assert(log->locked && count > 0);
    sessile_status status = log_poisoned(log, err);
    if (status)
        return status;
    if (count > SESSILE_NO_ID - log->end.count) {
        return fail(err, SESSILE_LIMIT, "%s has no ids left: begin a new session",
                    log->name);
    }
    if (mem_grow(log->alloc, (void **)&log->offsets, &log->offset_capacity,
                 (size_t)log->end.count + count, sizeof *log->offsets) != 0)
        return fail_nomem(err);
    sessile_log_end end = log->end;
    status = build(log, texts, count, max_bytes, &end, err);
    if (status)
        return status;
    memcpy(tag, end.tag, VAULT_TAG);
    end = log->end;
    status = log->st.table->append(log->handle, &end, log->lines.data, log->lines.size,
                                   count, tag, &poisoned, err);
    if (poisoned)
        log_poison(log, err);
    if (status)
        return log_gone(log, status, err);
    log->end = end;
    log_learn(log, end.count, 0);
    return SESSILE_OK;
}
