/*
 * rewrite.c: a damaged log written anew.
 *
 * Owns the way from a log that may only be read to one that can be written again: a new
 * log under the same name with the same entries under the same ids, stand-ins where they
 * are lost. It must never touch the old bytes, which keep a name of their own, nor write
 * what it has not just opened.
 *
 * It is a new log: a header of its own, a data key of its own, each line a commit. A line
 * may name the one before it as durable, although it is not yet: all are synced before
 * the log gets its name, and before that nobody reads them. Stopped anywhere, there is
 * the old log or the new one under the name, whole, and perhaps a draft that is no log.
 */
#include <string.h>

#include "log/inside.h"

/* What is gathered before it is written. */
#define PIECE ((size_t)1 << 20)

typedef struct rewriting {
    log_t *log;
    sessile_backend_draft *draft;
    logkey key;
    buf text, lines, scratch;
    unsigned char tag[VAULT_TAG];
} rewriting;

static sessile_status flush(rewriting *w, size_t most, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    if (w->lines.size > most) {
        status =
            w->log->st.table->draft_write(w->draft, w->lines.data, w->lines.size, err);
        buf_clear(&w->lines);
    }
    return status;
}

static sessile_status put_header(rewriting *w, const keyring *k, sessile_error *err)
{
    line l;
    sessile_status status = log_read(w->log, 0, &w->text, err);
    if (status == SESSILE_OK) {
        status = line_put_header(&w->key, k, &w->lines, w->text.data, w->text.size,
                                 &w->scratch, err);
    }
    if (status != SESSILE_OK) {
        return status;
    }
    buf_clear(&w->text);
    if (line_open(&w->key, w->log->depth, w->lines.data, w->lines.size - 1, 1, &l,
                  &w->text, err) != LINE_GOOD) {
        return err->code != SESSILE_OK
                   ? err->code
                   : fail(err, SESSILE_IO, "%s: its new header does not open again",
                          w->log->name);
    }
    memcpy(w->tag, l.tag, VAULT_TAG);
    return SESSILE_OK;
}

static sessile_status put_entry(rewriting *w, sessile_id id, sessile_error *err)
{
    size_t start = w->lines.size;
    unsigned char tag[VAULT_TAG];
    buf_clear(&w->text);
    sessile_status status = log_read(w->log, id, &w->text, err);
    if (status == SESSILE_OK) {
        status = line_put(&w->key, &w->lines, w->text.data, w->text.size,
                          (line_clear){1, id}, w->tag, tag, &w->scratch, err);
    }
    if (status != SESSILE_OK) {
        return status;
    }
    memcpy(w->tag, tag, VAULT_TAG);
    if (w->lines.size - start > LINE_LONGEST) {
        return fail(err, SESSILE_LIMIT,
                    "%s: entry %08x is too long for a line of a new log [message]",
                    w->log->name, (unsigned)id);
    }
    return SESSILE_OK;
}

/* OK when the log is still the one that was read. */
static sessile_status unchanged(log_t *log, int replaced, sessile_error *err)
{
    uint64_t size;
    int64_t mtime_ms;
    if (replaced) {
        return fail(err, SESSILE_NOTFOUND,
                    "%s was removed or replaced since it was opened: open it again",
                    log->name);
    }
    sessile_status status = log->st.table->size(log->handle, &size, &mtime_ms, err);
    if (status == SESSILE_OK && size != log_bytes(log)) {
        status = fail(err, SESSILE_CONFLICT, "%s changed while it was read: try again",
                      log->name);
    }
    return status;
}

sessile_status log_rewrite(log_t *log, const keyring *k, const char *folder,
                           const char *name, char *kept, size_t kept_size,
                           sessile_error *err)
{
    const sessile_backend *table = log->st.table;
    const unsigned needed = SESSILE_BACKEND_REPLACES | SESSILE_BACKEND_LOCKS;
    sessile_error local = {SESSILE_OK, ""};
    rewriting w = {.log = log};
    int replaced;
    err = err != NULL ? err : &local;
    error_clear(err);
    if (kept_size > 0) {
        kept[0] = '\0';
    }
    if ((table->capabilities & needed) != needed) {
        return fail(err, SESSILE_UNSUPPORTED, "the store of %s replaces no logs",
                    log->name);
    }
    sessile_status status =
        table->lock(log->handle, SESSILE_LOCK_EXCLUSIVE, log->timeout_ms, &replaced, err);
    if (status != SESSILE_OK) {
        return status;
    }
    buf_init(&w.text, log->alloc);
    buf_init(&w.lines, log->alloc);
    buf_init(&w.scratch, log->alloc);
    status = unchanged(log, replaced, err);
    if (status == SESSILE_OK) {
        status = put_header(&w, k, err);
    }
    if (status == SESSILE_OK) {
        status = table->draft_new(log->st.self, folder, name, &w.draft, err);
    }
    for (sessile_id id = 1; status == SESSILE_OK && id < log_count(log); id++) {
        status = put_entry(&w, id, err);
        if (status == SESSILE_OK) {
            status = flush(&w, PIECE, err);
        }
    }
    if (status == SESSILE_OK) {
        status = flush(&w, 0, err);
    }
    if (status == SESSILE_OK) {
        status = table->draft_replace(w.draft, log->handle, 1, kept, kept_size, err);
        w.draft = NULL; /* gone either way */
    }
    if (w.draft != NULL) {
        table->draft_drop(w.draft);
    }
    table->unlock(log->handle);
    logkey_deinit(&w.key);
    buf_deinit(&w.text);
    buf_deinit(&w.lines);
    buf_deinit(&w.scratch);
    return status;
}
