/*
 * transfer_write.c: what becomes of a log's writes in the other store.
 *
 * Owns the comparison with a log that is there, and the three ways to put the rest: a
 * draft that gets its name when it is whole, appends behind an equal beginning, or
 * nothing but looking. It must never change a log that differs, nor append behind an end
 * that it did not see: append-if-end is the fence.
 */
#include "log/transfer_internal.h"

#include <string.h>

#include "store/records.h"

/* The other store is given bytes in pieces of this size. */
#define PIECE ((size_t)256 << 10)

static int replaces(const store *st)
{
    return (st->table->capabilities & SESSILE_BACKEND_REPLACES) != 0;
}

static int has_locks(const store *st)
{
    return (st->table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
}

/* Marks an error as the other store's. */
static sessile_status there(transfer *c, sessile_status status)
{
    c->failed_there = status && status != SESSILE_NOMEM;
    return status;
}

sessile_status transfer_there(transfer *c, sessile_error *err)
{
    const transfer_options *w = &c->wish;
    int64_t mtime_ms;
    uint64_t torn = 0;
    sessile_status status;
    if (!w->to_keys) {
        status = w->to->table->open(w->to->self, w->to_folder, w->to_name, &c->log, err);
        if (!status)
            status = w->to->table->size(c->log, &c->log_bytes, &mtime_ms, err);
    } else {
        status = log_open(&c->anew, w->to, w->to_keys, w->to_folder, w->to_name, w->depth,
                          w->timeout_ms, NULL, NULL, &torn, c->alloc, err);
        if (!status) {
            status = log_damage(c->anew, err);
            c->anew_count = log_count(c->anew);
        }
    }
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        c->stop = w->compare;
        return SESSILE_OK;
    }
    c->there = c->comparing = status == SESSILE_OK;
    return there(c, status);
}

void transfer_leave(transfer *c)
{
    if (c->draft) {
        c->wish.to->table->draft_drop(c->draft);
        c->draft = NULL;
    }
    log_copy_drop(&c->copy);
    if (c->log) {
        c->wish.to->table->close(c->log); /* its lock goes with it */
        c->log = NULL;
    }
    if (c->begun) {
        log_end(c->anew);
        c->begun = 0;
    }
    log_close(c->anew);
    c->anew = NULL;
}

static sessile_status written_meanwhile(const transfer *c, sessile_error *err)
{
    return fail(err, SESSILE_CONFLICT, "%s/%s is being written there meanwhile",
                c->wish.to_folder, c->wish.to_name);
}

/* ------------------------------------------------------------------ as it stands */

/* Takes the lock of the log there, which must still be what was compared. */
static sessile_status begin_append(transfer *c, sessile_error *err)
{
    const store *to = c->wish.to;
    int replaced = 0;
    uint64_t size = 0;
    int64_t mtime_ms;
    sessile_status status = SESSILE_OK;
    if (has_locks(to)) {
        status = log_lock(to->table, c->log, SESSILE_LOCK_EXCLUSIVE, c->wish.timeout_ms,
                          &replaced, err);
    } else if (to->table->set_timeout) {
        to->table->set_timeout(c->log, c->wish.timeout_ms);
    }
    if (!status)
        status = to->table->size(c->log, &size, &mtime_ms, err);
    if (!status && (replaced || size != c->at))
        status = written_meanwhile(c, err);
    c->end = c->from->end;
    c->end.bytes = c->at; /* a torn end that is equal so far is continued as well */
    c->appending = status == SESSILE_OK;
    return status;
}

/* tag: of the last line. */
static sessile_status flush(transfer *c, const unsigned char *tag, sessile_error *err)
{
    const store *to = c->wish.to;
    int poisoned = 0;
    sessile_status status = SESSILE_OK;
    if (c->out.failed)
        return fail_nomem(err);
    if (c->out.size == 0)
        return SESSILE_OK;
    if (c->appending) {
        status = to->table->append(c->log, &c->end, c->out.data, c->out.size,
                                   record_count(c->out.data, c->out.size), tag, &poisoned,
                                   err);
    } else if (c->draft) {
        status = to->table->draft_write(c->draft, c->out.data, c->out.size, err);
    } else {
        return SESSILE_OK; /* gathered: the store takes no drafts */
    }
    buf_clear(&c->out);
    return status;
}

/* Compares as far as the log there goes; *left: what is behind its end. */
static sessile_status compare(transfer *c, const char **data, size_t *left,
                              sessile_error *err)
{
    while (c->comparing && *left > 0) {
        size_t want = *left < PIECE ? *left : PIECE, got = 0;
        if (want > c->log_bytes - c->at)
            want = (size_t)(c->log_bytes - c->at);
        if (want == 0) {
            c->comparing = 0;
            break;
        }
        if (buf_reserve(&c->other, want) != 0)
            return fail_nomem(err);
        sessile_status status = c->wish.to->table->read(c->log, c->from->end.count, c->at,
                                                        c->other.data, want, &got, err);
        if (status)
            return there(c, status);
        if (got != want || memcmp(*data, c->other.data, got) != 0) {
            c->differs = 1;
            return SESSILE_OK;
        }
        c->at += got;
        *data += got;
        *left -= got;
    }
    return SESSILE_OK;
}

static sessile_status put_bytes(transfer *c, const char *data, size_t size,
                                sessile_error *err)
{
    const transfer_options *w = &c->wish;
    sessile_status status = compare(c, &data, &size, err);
    if (status || c->differs || size == 0)
        return status;
    if (w->compare || (c->raw && c->there && !c->replacing)) {
        c->stop = 1; /* what is there is short of it; of damage it stays clear */
        return SESSILE_OK;
    }
    if (c->there && !c->replacing && !c->appending) {
        status = begin_append(c, err);
    } else if (!c->appending && !c->draft && c->at == 0 && replaces(w->to) &&
               w->to->table->draft_publish) {
        status = w->to->table->draft_new(w->to->self, w->to_folder, w->to_name, &c->draft,
                                         err);
    }
    if (!status) {
        buf_put(&c->out, data, size);
        c->at += size;
        if (c->out.size >= PIECE || c->out.failed)
            status = flush(c, c->tag, err);
    }
    return there(c, status);
}

sessile_status transfer_write_raw(transfer *c, const char *data, size_t size,
                                  sessile_error *err)
{
    return put_bytes(c, data, size, err);
}

/* Puts the draft in the place of the log that differs, whose bytes are kept. */
static sessile_status replace(transfer *c, sessile_error *err)
{
    const store *to = c->wish.to;
    char kept[512];
    int replaced = 0;
    sessile_status status = SESSILE_OK;
    if (has_locks(to)) {
        status = log_lock(to->table, c->log, SESSILE_LOCK_EXCLUSIVE, c->wish.timeout_ms,
                          &replaced, err);
    }
    if (!status && replaced)
        status = written_meanwhile(c, err);
    if (!status) {
        status = to->table->draft_replace(c->draft, c->log, 1, kept, sizeof kept, err);
        c->draft = NULL; /* freed also when it fails */
    }
    return status;
}

static sessile_status finish_as_it_stands(transfer *c, sessile_error *err)
{
    const transfer_options *w = &c->wish;
    sessile_status status = flush(c, c->from->end.tag, err);
    if (status)
        return status;
    if (c->appending) {
        status = w->to->table->sync(c->log, err);
        if (has_locks(w->to))
            w->to->table->unlock(c->log);
        return status;
    }
    if (c->replacing)
        return replace(c, err);
    if (c->draft) {
        status = w->to->table->draft_publish(c->draft, err);
        c->draft = NULL; /* freed also when it fails */
    } else {
        status = w->to->table->create(w->to->self, w->to_folder, w->to_name, c->out.data,
                                      c->out.size, err);
    }
    return status == SESSILE_EXISTS ? written_meanwhile(c, err) : status;
}

/* ------------------------------------------------------------------ sealed anew */

static sessile_slice held_text(const transfer *c, size_t i)
{
    size_t start = i > 0 ? c->ends[i - 1] : 0;
    return (sessile_slice){c->held.data + start, c->ends[i] - start};
}

static sessile_status append_rest(transfer *c, size_t first, sessile_error *err)
{
    size_t count = c->end_count - first;
    sessile_status status = SESSILE_OK;
    if (!c->begun) {
        log_set_timeout(c->anew, c->wish.timeout_ms);
        status = log_begin(c->anew, NULL, NULL, err);
        c->begun = status == SESSILE_OK;
        if (!status && log_count(c->anew) != c->from->end.count + first)
            status = written_meanwhile(c, err);
    }
    if (status)
        return status;
    sessile_slice *texts = mem_alloc(c->alloc, count * sizeof *texts);
    if (!texts)
        return fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        texts[i] = held_text(c, first + i);
    status = log_append(c->anew, texts, count, UINT64_MAX, err);
    mem_free(c->alloc, texts, count * sizeof *texts);
    c->appending = 1;
    return status;
}

static sessile_status copy_entry(transfer *c, size_t i, sessile_error *err)
{
    const transfer_options *w = &c->wish;
    sessile_slice text = held_text(c, i);
    if (c->from->end.count + i > 0)
        return log_copy_entry(&c->copy, text.data, text.size, i + 1 == c->end_count, err);
    log_copy_drop(&c->copy);
    return (c->replacing ? log_copy_begin : log_copy_begin_new)(
        &c->copy, w->to, w->to_keys, w->to_folder, w->to_name, w->user, text.data,
        text.size, c->alloc, err);
}

static sessile_status put_entries(transfer *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; !status && i < c->end_count; i++) {
        uint64_t id = c->from->end.count + i;
        if (c->there && !c->replacing && id < c->anew_count) {
            sessile_slice text = held_text(c, i);
            buf_clear(&c->other);
            status = log_read(c->anew, (sessile_id)id, &c->other, err);
            if (!status && (c->other.size != text.size ||
                            memcmp(c->other.data, text.data, text.size))) {
                c->differs = 1;
                return SESSILE_OK;
            }
        } else if (c->wish.compare) {
            c->stop = 1;
            return SESSILE_OK;
        } else if (c->there && !c->replacing) {
            return there(c, append_rest(c, i, err));
        } else {
            status = copy_entry(c, i, err);
        }
    }
    return there(c, status);
}

static sessile_status finish_anew(transfer *c, sessile_error *err)
{
    const transfer_options *w = &c->wish;
    char kept[512];
    int replaced = 0;
    if (c->begun) {
        log_end(c->anew);
        c->begun = 0;
        return log_sync(c->anew, log_count(c->anew), err);
    }
    if (!c->replacing) {
        sessile_status status = log_copy_publish(&c->copy, c->from, w->from_keys, err);
        return status == SESSILE_EXISTS ? written_meanwhile(c, err) : status;
    }
    sessile_status status = SESSILE_OK;
    if (has_locks(w->to)) {
        status = log_lock(w->to->table, c->anew->handle, SESSILE_LOCK_EXCLUSIVE,
                          w->timeout_ms, &replaced, err);
    }
    if (!status && replaced)
        status = written_meanwhile(c, err);
    return !status ? log_copy_finish(&c->copy, c->anew->handle, 1, kept, sizeof kept, err)
                   : status;
}

/* ------------------------------------------------------------------ both */

sessile_status transfer_write_entry(transfer *c, sessile_error *err)
{
    return !c->wish.to_keys ? put_bytes(c, c->held.data, c->held.size, err)
                            : put_entries(c, err);
}

/* What is there, once all of the source was compared and nothing was to be put. */
static transfer_result as_found(const transfer *c)
{
    uint64_t have = !c->wish.to_keys ? c->log_bytes : c->anew_count;
    uint64_t want = !c->wish.to_keys ? c->at : c->from->end.count;
    return have > want ? TRANSFER_AHEAD : TRANSFER_KEPT;
}

sessile_status transfer_finish(transfer *c, sessile_error *err)
{
    if (c->differs) {
        c->about.result = TRANSFER_DIFFERS;
        return SESSILE_OK;
    }
    if (c->stop && !c->appending) {
        c->about.result = TRANSFER_SHORT;
        return SESSILE_OK;
    }
    if (c->there && !c->replacing && !c->appending) {
        c->about.result = as_found(c);
        return SESSILE_OK;
    }
    c->about.result = c->replacing   ? TRANSFER_REPLACED
                      : c->appending ? TRANSFER_CONTINUED
                                     : TRANSFER_COPIED;
    return there(c, !c->wish.to_keys ? finish_as_it_stands(c, err) : finish_anew(c, err));
}
