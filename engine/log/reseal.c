/*
 * reseal.c: reseals a log under the newest epoch and the keyring's suite; changes entries
 * of a log on the way.
 *
 * Under the exclusive lock the whole log is read and checked, copied entry by entry, and
 * replaced in one step. Must never copy a log that it could not read as a whole: a
 * damaged log keeps its key until somebody has decided what to do about it.
 *
 * Writers wait meanwhile. Other handles find another log under the name when they next
 * lock. Entries that were written but not synced when the lock was taken are in the copy,
 * and so are durable before anybody sees it.
 *
 * In a store without locks nobody waits. Entries that others append during the copy are
 * copied after it, until there are no more, for some rounds. The store replaces the log
 * only if it still ends there; otherwise the copy starts again.
 */
#include <string.h>

#include "log/copy.h"
#include "log/internal.h"

/* Looks for lines that others appended during the copy. */
enum { ROUNDS = 256 };

/* What is wanted of the copy. change NULL: the same entries under the newest key, and no
 * copy if the log has that already. */
typedef struct resealing {
    const log_index_callbacks *callbacks;
    log_change change;
    void *arg;
    buf changed; /* the text of one entry */
} resealing;

static sessile_status fail_replaced_again(const char *folder, const char *name,
                                          sessile_error *err)
{
    return fail(
        err, SESSILE_BUSY,
        "%s/%s was replaced before each of %d attempts to lock it: try again when "
        "nobody reseals or salvages it",
        folder, name, LOG_TRIES);
}

/* The first bytes of a log. *moved: they are gone, and another log may have the name. */
static sessile_status read_start(store *st, const char *folder, const char *name,
                                 int locks, int timeout_ms, log_about *out,
                                 char text[LOG_LOOK], size_t *got, int *moved,
                                 sessile_error *err)
{
    const sessile_backend *table = st->table;
    sessile_backend_log *log = NULL;
    int replaced = 0;
    *moved = 0;
    sessile_status status = table->open(st->self, folder, name, &log, err);
    for (int i = 0; !status && locks; i++) {
        status = log_lock(table, log, SESSILE_LOCK_SHARED, timeout_ms, &replaced, err);
        if (status || !replaced)
            break;
        table->close(log);
        log = NULL;
        status = i + 1 < LOG_TRIES ? table->open(st->self, folder, name, &log, err)
                                   : fail_replaced_again(folder, name, err);
    }
    if (log && table->set_timeout)
        table->set_timeout(log, timeout_ms);
    if (!status)
        status = table->size(log, &out->bytes, &out->mtime_ms, err);
    if (!status) {
        status = table->read(log, 0, 0, text, LOG_LOOK, got, err);
        *moved = status == SESSILE_NOTFOUND && !log_has_locks(table);
    }
    if (log)
        table->close(log); /* its lock goes with it */
    return status;
}

sessile_status log_read_about(store *st, const char *folder, const char *name, int shared,
                              int timeout_ms, log_about *out, sessile_error *err)
{
    static const char plain[] = ",\"sessile\":1,\"commit\":1,\"_c\":\"";
    sessile_error local = {0};
    sessile_status status = SESSILE_OK;
    char text[LOG_LOOK];
    size_t got = 0;
    int moved = 1, locks = shared && log_has_locks(st->table);
    err = err ? err : &local;
    memset(out, 0, sizeof *out);
    for (int i = 0; moved && i < LOG_TRIES; i++) {
        error_clear(err);
        status =
            read_start(st, folder, name, locks, timeout_ms, out, text, &got, &moved, err);
    }
    if (!status && logkey_look(&out->key, text, got) == 0) {
        out->sealed = 1;
    } else if (!status && memchr(text, '\n', got) &&
               !memmem(text, got, plain, sizeof plain - 1)) {
        /* a plain header may be longer than what was looked at */
        status = fail(err, SESSILE_DAMAGED, "%s/%s has not the first line of a log",
                      folder, name);
    }
    return status;
}

/* 1 when that is what a new log would be sealed with. */
static int is_newest(const keyring *k, uint64_t epoch, suite s)
{
    keyring_about now;
    keyring_facts(k, &now);
    return now.epoch == epoch && now.suite == s;
}

/* The log with its key; under its exclusive lock, if there are locks, and then the one
 * that its name leads to. */
static sessile_status attach_locked(log_t **out, store *st, const keyring *k,
                                    const char *folder, const char *name, int timeout_ms,
                                    const allocator *a, sessile_error *err)
{
    for (int i = 0; i < LOG_TRIES; i++) {
        int replaced = 0;
        sessile_status status =
            log_open_unread(out, st, k, folder, name, 0, timeout_ms, a, err);
        if (status || !log_has_locks(st->table))
            return status;
        status = log_lock(st->table, (*out)->handle, SESSILE_LOCK_EXCLUSIVE, timeout_ms,
                          &replaced, err);
        if (!status && !replaced)
            return SESSILE_OK;
        log_close(*out); /* its lock goes with it */
        *out = NULL;
        if (status)
            return status;
    }
    return fail_replaced_again(folder, name, err);
}

/* The text of an entry as the copy gets it. */
static sessile_status change_entry(resealing *r, sessile_id id, const buf *text,
                                   sessile_slice *out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    *out = (sessile_slice){text->data, text->size};
    if (!r->change)
        return SESSILE_OK;
    buf_clear(&r->changed);
    status = r->change(r->arg, id, text->data, text->size, &r->changed, err);
    if (!status && r->changed.failed)
        status = fail_nomem(err);
    if (!status && r->changed.size)
        *out = (sessile_slice){r->changed.data, r->changed.size};
    return status;
}

/* Every line behind those in the copy, up to the last commit, which a scan has proved. */
static sessile_status copy_lines(log_t *log, const keyring *k, const char *folder,
                                 const char *name, resealing *wanted, log_copy *copy,
                                 sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    uint64_t count = log->end.count, first = copy->count;
    reader r;
    reader_init(&r, log, first == 0 ? 0 : log->offsets[first], log->end.bytes);
    for (uint64_t index = first; !status && index < count; index++) {
        char *text;
        size_t size;
        line l;
        reader_found found = reader_next(&r, index, &text, &size, err);
        if (found == READER_FAILED)
            return err->code;
        buf_clear(&log->buffers.text);
        line_verdict verdict = found != READER_LINE
                                   ? LINE_BAD
                                   : line_open(&log->key, log->depth, text, size,
                                               index == 0, &l, &log->buffers.text, err);
        if (verdict == LINE_FAILED)
            return err->code;
        if (verdict == LINE_BAD || l.id != index) {
            return fail(err, SESSILE_IO,
                        "%s was changed while it was resealed: try again", log->name);
        }
        sessile_slice entry;
        status = change_entry(wanted, l.id, &log->buffers.text, &entry, err);
        if (!status)
            status =
                index == 0
                    ? log_copy_begin(copy, &log->st, k, folder, name, log->key.user,
                                     entry.data, entry.size, log->alloc, err)
                    : log_copy_entry(copy, entry.data, entry.size, l.commit != 0, err);
    }
    return status;
}

/* Reads all of it, with the index as a proof: once it is a copy, under another key,
 * nothing opens the index any more that knew what the log had to hold. */
static sessile_status scan_with_proof(log_t *log, const log_index_callbacks *callbacks,
                                      sessile_error *err)
{
    uint64_t cut = 0;
    if (callbacks && (log->st.table->capabilities & SESSILE_BACKEND_CACHES) != 0) {
        log->index.callbacks = *callbacks;
        log->index.callbacks.fresh = 1;
        log->index.off = 1; /* nothing is added to it */
    }
    sessile_status status = index_begin(log, 0, NULL, NULL, err);
    if (!status)
        status = log_recover(log, NULL, NULL, &cut, err);
    return !status ? log_check_proof(log, log->end.bytes, err) : status;
}

/* The copy in the place of the log, as it is when nothing more is appended. CONFLICT:
 * something was, between the last look and that. */
static sessile_status copy_all(log_t *log, const keyring *k, const char *folder,
                               const char *name, resealing *wanted, log_copy *copy,
                               sessile_error *err)
{
    uint64_t cut = 0;
    sessile_status status = copy_lines(log, k, folder, name, wanted, copy, err);
    for (int i = 0; !status && i < ROUNDS && !log_has_locks(log->st.table); i++) {
        /* before the last look: the less comes behind it, the less often others are
         * faster */
        status = log_copy_flush(copy, err);
        if (!status)
            status = log_recover(log, NULL, NULL, &cut, err);
        if (status || copy->count == log->end.count)
            break;
        status = copy_lines(log, k, folder, name, wanted, copy, err);
    }
    if (!status && !log_has_locks(log->st.table) && log->asked != log->end.bytes) {
        status =
            fail(err, SESSILE_CONFLICT, "%s has grown while it was resealed", log->name);
    }
    if (!status)
        status =
            log_check_gone(log, log_copy_finish(copy, log->handle, 0, NULL, 0, err), err);
    return status;
}

static sessile_status reseal_once(store *st, const keyring *k, const char *folder,
                                  const char *name, int timeout_ms, resealing *wanted,
                                  int *done, const allocator *a, sessile_error *err)
{
    log_copy copy;
    log_t *log;
    memset(&copy, 0, sizeof copy);
    sessile_status status = attach_locked(&log, st, k, folder, name, timeout_ms, a, err);
    if (status || (!wanted->change && is_newest(k, log->key.epoch, log->key.suite)))
        goto out;
    status = scan_with_proof(log, wanted->callbacks, err);
    if (!status)
        status = copy_all(log, k, folder, name, wanted, &copy, err);
    *done = status == SESSILE_OK;
    log_copy_drop(&copy);
out:
    if (log && log_can_retry(log, status))
        status = err->code = SESSILE_CONFLICT;
    log_close(log);
    return status;
}

static sessile_status reseal(store *st, const keyring *k, const char *folder,
                             const char *name, int timeout_ms, resealing *wanted,
                             int *done, const allocator *a, sessile_error *err)
{
    const char *verb = wanted->change ? "change" : "reseal";
    sessile_status status = SESSILE_CONFLICT;
    if ((st->table->capabilities & SESSILE_BACKEND_REPLACES) == 0)
        return fail(err, SESSILE_UNSUPPORTED, "this store cannot %s a log", verb);
    for (int i = 0; status == SESSILE_CONFLICT && i < LOG_TRIES; i++) {
        error_clear(err);
        status = reseal_once(st, k, folder, name, timeout_ms, wanted, done, a, err);
    }
    if (status == SESSILE_CONFLICT) {
        status = fail(err, SESSILE_BUSY,
                      "%s/%s was written to during each of %d attempts to %s it: "
                      "try again when less is written to it",
                      folder, name, LOG_TRIES, verb);
    }
    return status;
}

sessile_status log_reseal(store *st, const keyring *k, const char *folder,
                          const char *name, int timeout_ms,
                          const log_index_callbacks *callbacks, int *done,
                          const allocator *a, sessile_error *err)
{
    sessile_error local = {0};
    resealing wanted = {.callbacks = callbacks};
    err = err ? err : &local;
    *done = 0;
    error_clear(err);
    if (!keyring_sealed(k))
        return fail(err, SESSILE_UNSUPPORTED, "this store cannot reseal a log");
    return reseal(st, k, folder, name, timeout_ms, &wanted, done, a, err);
}

sessile_status log_change_entries(store *st, const keyring *k, const char *folder,
                                  const char *name, int timeout_ms,
                                  const log_index_callbacks *callbacks, log_change change,
                                  void *arg, const allocator *a, sessile_error *err)
{
    sessile_error local = {0};
    resealing wanted = {callbacks, change, arg, {0}};
    sessile_status status;
    int done = 0;
    err = err ? err : &local;
    error_clear(err);
    buf_init(&wanted.changed, a);
    status = reseal(st, k, folder, name, timeout_ms, &wanted, &done, a, err);
    buf_wipe(&wanted.changed);
    return status;
}
