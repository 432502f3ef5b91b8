/*
 * transfer_write.c: writes a log into the target store.
 *
 * Compares with a log that exists there, and continues in one of three ways: a draft that
 * gets its name when it is complete, appends after an equal beginning, or comparing only.
 * Must never change a log that differs, nor append at an end that it has not seen:
 * append-if-end prevents that.
 */
#include "log/transfer_internal.h"

#include <string.h>

#include "store/records.h"

/* The target store is given bytes in pieces of this size. */
#define PIECE ((size_t)256 << 10)

static int replaces(const store *st)
{
    return (st->table->capabilities & SESSILE_BACKEND_REPLACES) != 0;
}

static int has_locks(const store *st)
{
    return (st->table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
}

/* Marks an error as the target store's. */
static sessile_status target_status(transfer *t, sessile_status status)
{
    t->target.failed = status && status != SESSILE_NOMEM;
    return status;
}

sessile_status transfer_open_target(transfer *t, sessile_error *err)
{
    const transfer_options *o = &t->options;
    int64_t mtime_ms;
    uint64_t torn = 0;
    sessile_status status;
    if (!o->to_keys) {
        status = o->to->table->open(o->to->self, o->to_folder, o->to_name,
                                    &t->verbatim.handle, err);
        if (!status)
            status =
                o->to->table->size(t->verbatim.handle, &t->verbatim.size, &mtime_ms, err);
    } else {
        status = log_open(&t->resealed.log, o->to, o->to_keys, o->to_folder, o->to_name,
                          o->depth, o->timeout_ms, NULL, NULL, &torn, t->alloc, err);
        if (!status) {
            status = log_damage(t->resealed.log, err);
            t->resealed.count = log_count(t->resealed.log);
        }
    }
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        t->target.stop = o->compare;
        return SESSILE_OK;
    }
    t->target.exists = t->target.comparing = status == SESSILE_OK;
    return target_status(t, status);
}

void transfer_close_target(transfer *t)
{
    if (t->verbatim.draft) {
        t->options.to->table->draft_drop(t->verbatim.draft);
        t->verbatim.draft = NULL;
    }
    log_copy_drop(&t->resealed.copy);
    if (t->verbatim.handle) {
        t->options.to->table->close(t->verbatim.handle); /* its lock goes with it */
        t->verbatim.handle = NULL;
    }
    if (t->resealed.begun) {
        log_end(t->resealed.log);
        t->resealed.begun = 0;
    }
    log_close(t->resealed.log);
    t->resealed.log = NULL;
}

static sessile_status fail_written_meanwhile(const transfer *t, sessile_error *err)
{
    return fail(err, SESSILE_CONFLICT, "%s/%s is being written there meanwhile",
                t->options.to_folder, t->options.to_name);
}

/* ------------------------------------------------------------------ verbatim */

/* Takes the lock of the target log, which must still be what was compared. */
static sessile_status begin_append(transfer *t, sessile_error *err)
{
    const store *to = t->options.to;
    int replaced = 0;
    uint64_t size = 0;
    int64_t mtime_ms;
    sessile_status status = SESSILE_OK;
    if (has_locks(to)) {
        status = log_lock(to->table, t->verbatim.handle, SESSILE_LOCK_EXCLUSIVE,
                          t->options.timeout_ms, &replaced, err);
    } else if (to->table->set_timeout) {
        to->table->set_timeout(t->verbatim.handle, t->options.timeout_ms);
    }
    if (!status)
        status = to->table->size(t->verbatim.handle, &size, &mtime_ms, err);
    if (!status && (replaced || size != t->verbatim.at))
        status = fail_written_meanwhile(t, err);
    t->verbatim.end = t->source.log->end;
    t->verbatim.end.bytes = t->verbatim.at; /* an equal torn end is continued too */
    t->target.appending = status == SESSILE_OK;
    return status;
}

/* Writes what was gathered. tag: of its last line. */
static sessile_status flush_out(transfer *t, const unsigned char *tag, sessile_error *err)
{
    const store *to = t->options.to;
    int poisoned = 0;
    sessile_status status = SESSILE_OK;
    if (t->verbatim.out.failed)
        return fail_nomem(err);
    if (t->verbatim.out.size == 0)
        return SESSILE_OK;
    if (t->target.appending) {
        status =
            to->table->append(t->verbatim.handle, &t->verbatim.end, t->verbatim.out.data,
                              t->verbatim.out.size,
                              record_count(t->verbatim.out.data, t->verbatim.out.size),
                              tag, &poisoned, err);
    } else if (t->verbatim.draft) {
        status = to->table->draft_write(t->verbatim.draft, t->verbatim.out.data,
                                        t->verbatim.out.size, err);
    } else {
        return SESSILE_OK; /* kept: the store takes no drafts */
    }
    buf_clear(&t->verbatim.out);
    return status;
}

/* Compares up to the end of the target log; *left: the bytes behind it. */
static sessile_status compare_bytes(transfer *t, const char **data, size_t *left,
                                    sessile_error *err)
{
    while (t->target.comparing && *left > 0) {
        size_t want = *left < PIECE ? *left : PIECE, got = 0;
        if (want > t->verbatim.size - t->verbatim.at)
            want = (size_t)(t->verbatim.size - t->verbatim.at);
        if (want == 0) {
            t->target.comparing = 0;
            break;
        }
        if (buf_reserve(&t->other, want) != 0)
            return fail_nomem(err);
        sessile_status status =
            t->options.to->table->read(t->verbatim.handle, t->source.log->end.count,
                                       t->verbatim.at, t->other.data, want, &got, err);
        if (status)
            return target_status(t, status);
        if (got != want || memcmp(*data, t->other.data, got) != 0) {
            t->target.differs = 1;
            return SESSILE_OK;
        }
        t->verbatim.at += got;
        *data += got;
        *left -= got;
    }
    return SESSILE_OK;
}

sessile_status transfer_put_bytes(transfer *t, const char *data, size_t size,
                                  sessile_error *err)
{
    const transfer_options *o = &t->options;
    sessile_status status = compare_bytes(t, &data, &size, err);
    if (status || t->target.differs || size == 0)
        return status;
    if (o->compare || (t->source.raw && t->target.exists && !t->target.replacing)) {
        t->target.stop = 1; /* the target is shorter; damage is not appended to it */
        return SESSILE_OK;
    }
    if (t->target.exists && !t->target.replacing && !t->target.appending) {
        status = begin_append(t, err);
    } else if (!t->target.appending && !t->verbatim.draft && t->verbatim.at == 0 &&
               replaces(o->to) && o->to->table->draft_publish) {
        status = o->to->table->draft_new(o->to->self, o->to_folder, o->to_name,
                                         &t->verbatim.draft, err);
    }
    if (!status) {
        buf_put(&t->verbatim.out, data, size);
        t->verbatim.at += size;
        if (t->verbatim.out.size >= PIECE || t->verbatim.out.failed)
            status = flush_out(t, t->source.tag, err);
    }
    return target_status(t, status);
}

/* Replaces the log that differs by the draft; its bytes are kept. */
static sessile_status replace_target(transfer *t, sessile_error *err)
{
    const store *to = t->options.to;
    char kept[512];
    int replaced = 0;
    sessile_status status = SESSILE_OK;
    if (has_locks(to)) {
        status = log_lock(to->table, t->verbatim.handle, SESSILE_LOCK_EXCLUSIVE,
                          t->options.timeout_ms, &replaced, err);
    }
    if (!status && replaced)
        status = fail_written_meanwhile(t, err);
    if (!status) {
        status = to->table->draft_replace(t->verbatim.draft, t->verbatim.handle, 1, kept,
                                          sizeof kept, err);
        t->verbatim.draft = NULL; /* freed also when it fails */
    }
    return status;
}

static sessile_status finish_verbatim(transfer *t, sessile_error *err)
{
    const transfer_options *o = &t->options;
    sessile_status status = flush_out(t, t->source.log->end.tag, err);
    if (status)
        return status;
    if (t->target.appending) {
        status = o->to->table->sync(t->verbatim.handle, err);
        if (has_locks(o->to))
            o->to->table->unlock(t->verbatim.handle);
        return status;
    }
    if (t->target.replacing)
        return replace_target(t, err);
    if (t->verbatim.draft) {
        status = o->to->table->draft_publish(t->verbatim.draft, err);
        t->verbatim.draft = NULL; /* freed also when it fails */
    } else {
        status = o->to->table->create(o->to->self, o->to_folder, o->to_name,
                                      t->verbatim.out.data, t->verbatim.out.size, err);
    }
    return status == SESSILE_EXISTS ? fail_written_meanwhile(t, err) : status;
}

/* ------------------------------------------------------------------ resealed */

static sessile_slice held_text(const transfer *t, size_t i)
{
    size_t start = i > 0 ? t->write.ends[i - 1] : 0;
    return (sessile_slice){t->write.bytes.data + start, t->write.ends[i] - start};
}

static sessile_status append_rest(transfer *t, size_t first, sessile_error *err)
{
    size_t count = t->write.count - first;
    sessile_status status = SESSILE_OK;
    if (!t->resealed.begun) {
        log_set_timeout(t->resealed.log, t->options.timeout_ms);
        status = log_begin(t->resealed.log, NULL, NULL, err);
        t->resealed.begun = status == SESSILE_OK;
        if (!status && log_count(t->resealed.log) != t->source.log->end.count + first)
            status = fail_written_meanwhile(t, err);
    }
    if (status)
        return status;
    sessile_slice *texts = mem_alloc(t->alloc, count * sizeof *texts);
    if (!texts)
        return fail_nomem(err);
    for (size_t i = 0; i < count; i++)
        texts[i] = held_text(t, first + i);
    status = log_append(t->resealed.log, texts, count, UINT64_MAX, err);
    mem_free(t->alloc, texts, count * sizeof *texts);
    t->target.appending = 1;
    return status;
}

static sessile_status copy_entry(transfer *t, size_t i, sessile_error *err)
{
    const transfer_options *o = &t->options;
    sessile_slice text = held_text(t, i);
    if (t->source.log->end.count + i > 0)
        return log_copy_entry(&t->resealed.copy, text.data, text.size,
                              i + 1 == t->write.count, err);
    log_copy_drop(&t->resealed.copy);
    return (t->target.replacing ? log_copy_begin : log_copy_begin_new)(
        &t->resealed.copy, o->to, o->to_keys, o->to_folder, o->to_name, o->user,
        text.data, text.size, t->alloc, err);
}

static sessile_status put_entries(transfer *t, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    for (size_t i = 0; !status && i < t->write.count; i++) {
        uint64_t id = t->source.log->end.count + i;
        if (t->target.exists && !t->target.replacing && id < t->resealed.count) {
            sessile_slice text = held_text(t, i);
            buf_clear(&t->other);
            status = log_read(t->resealed.log, (sessile_id)id, &t->other, err);
            if (!status && (t->other.size != text.size ||
                            memcmp(t->other.data, text.data, text.size))) {
                t->target.differs = 1;
                return SESSILE_OK;
            }
        } else if (t->options.compare) {
            t->target.stop = 1;
            return SESSILE_OK;
        } else if (t->target.exists && !t->target.replacing) {
            return target_status(t, append_rest(t, i, err));
        } else {
            status = copy_entry(t, i, err);
        }
    }
    return target_status(t, status);
}

static sessile_status finish_resealed(transfer *t, sessile_error *err)
{
    const transfer_options *o = &t->options;
    char kept[512];
    int replaced = 0;
    if (t->resealed.begun) {
        log_end(t->resealed.log);
        t->resealed.begun = 0;
        return log_sync(t->resealed.log, log_count(t->resealed.log), err);
    }
    if (!t->target.replacing) {
        sessile_status status = log_copy_publish(&t->resealed.copy, t->source.log,
                                                 o->from_keys, o->timeout_ms, err);
        return status == SESSILE_EXISTS ? fail_written_meanwhile(t, err) : status;
    }
    sessile_status status = SESSILE_OK;
    if (has_locks(o->to)) {
        status = log_lock(o->to->table, t->resealed.log->handle, SESSILE_LOCK_EXCLUSIVE,
                          o->timeout_ms, &replaced, err);
    }
    if (!status && replaced)
        status = fail_written_meanwhile(t, err);
    return !status ? log_copy_finish(&t->resealed.copy, t->resealed.log->handle, 1, kept,
                                     sizeof kept, err)
                   : status;
}

/* ------------------------------------------------------------------ both */

sessile_status transfer_put_write(transfer *t, sessile_error *err)
{
    return !t->options.to_keys
               ? transfer_put_bytes(t, t->write.bytes.data, t->write.bytes.size, err)
               : put_entries(t, err);
}

/* The whole source was compared and nothing had to be written. */
static transfer_result result_of_comparison(const transfer *t)
{
    uint64_t have = !t->options.to_keys ? t->verbatim.size : t->resealed.count;
    uint64_t want = !t->options.to_keys ? t->verbatim.at : t->source.log->end.count;
    return have > want ? TRANSFER_AHEAD : TRANSFER_KEPT;
}

sessile_status transfer_finish(transfer *t, sessile_error *err)
{
    if (t->target.differs) {
        t->info.result = TRANSFER_DIFFERS;
        return SESSILE_OK;
    }
    if (t->target.stop && !t->target.appending) {
        t->info.result = TRANSFER_SHORT;
        return SESSILE_OK;
    }
    if (t->target.exists && !t->target.replacing && !t->target.appending) {
        t->info.result = result_of_comparison(t);
        return SESSILE_OK;
    }
    t->info.result = t->target.replacing   ? TRANSFER_REPLACED
                     : t->target.appending ? TRANSFER_CONTINUED
                                           : TRANSFER_COPIED;
    return target_status(t, !t->options.to_keys ? finish_verbatim(t, err)
                                                : finish_resealed(t, err));
}
