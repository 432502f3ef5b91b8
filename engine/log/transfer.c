/*
 * transfer.c: reads a log for another store, line by line, up to its last commit.
 *
 * Decides where a log that others write to ends, and whether the bytes past that end are
 * a write in progress, a torn end, or damage. Must never change or repair the source.
 * Must never leave out a byte in silence: bytes that are not transferred are counted, and
 * damage is reported.
 *
 * A whole write is read into memory before any of it is written, so the target never has
 * half a write. So a transfer needs memory for one piece and for the largest write,
 * however long the log is.
 */
#include "log/transfer_internal.h"

#include <string.h>

/* Bytes of the source in one step. */
#define STEP ((uint64_t)1 << 20)
/* Bytes past damage are read in pieces of this size. */
#define RAW_PIECE ((size_t)256 << 10)

/* ------------------------------------------------------------------ the handle */

void transfer_free(transfer *t)
{
    if (!t)
        return;
    transfer_close_target(t);
    if (t->source.locked)
        t->source.log->st.table->unlock(t->source.log->handle);
    log_close(t->source.log);
    buf_deinit(&t->text);
    buf_deinit(&t->write.bytes);
    buf_deinit(&t->verbatim.out);
    buf_deinit(&t->other);
    mem_free(t->alloc, t->write.ends, t->write.capacity * sizeof *t->write.ends);
    mem_free(t->alloc, t, sizeof *t);
}

/* Goes back to the last commit. */
static void rewind_reading(transfer *t)
{
    reader_init(&t->source.reader, t->source.log, t->source.log->end.bytes,
                t->source.limit);
    t->source.index = t->source.log->end.count;
    memcpy(t->source.tag, t->source.log->end.tag, VAULT_TAG);
    buf_clear(&t->write.bytes);
    t->write.count = 0;
}

void transfer_restart(transfer *t)
{
    t->source.log->end = (sessile_log_end){0, 0, {0}};
    t->source.raw = t->source.looks = t->target.differs = t->target.comparing =
        t->target.stop = 0;
    t->verbatim.at = 0;
    t->target.replacing = 1;
    error_clear(&t->info.damage);
    buf_clear(&t->verbatim.out);
    rewind_reading(t);
}

sessile_status transfer_begin(transfer **out, const transfer_options *options,
                              const allocator *a, sessile_error *err)
{
    sessile_error local = {0};
    uint64_t size = 0;
    int64_t mtime_ms;
    err = err ? err : &local;
    *out = NULL;
    transfer *t = mem_zalloc(a, sizeof *t);
    if (!t)
        return fail_nomem(err);
    t->options = *options;
    t->alloc = a;
    buf_init(&t->text, a);
    buf_init(&t->write.bytes, a);
    buf_init(&t->verbatim.out, a);
    buf_init(&t->other, a);
    sessile_status status = log_open_unread(
        &t->source.log, options->from, options->from_keys, options->folder, options->name,
        options->depth, options->timeout_ms, a, err);
    if (!status && options->callbacks && options->from_keys &&
        (options->from->table->capabilities & SESSILE_BACKEND_CACHES) != 0) {
        t->source.log->index.callbacks = *options->callbacks;
        t->source.log->index.callbacks.fresh = 1;
        t->source.log->index.off = 1; /* nothing is added to it */
        status = index_begin(t->source.log, 0, NULL, NULL, err);
    }
    if (!status)
        status = options->from->table->size(t->source.log->handle, &size, &mtime_ms, err);
    if (!status) {
        t->source.limit = size < options->limit ? size : options->limit;
        rewind_reading(t);
        status = transfer_open_target(t, err);
    }
    if (status) {
        transfer_free(t);
        return status;
    }
    *out = t;
    return SESSILE_OK;
}

uint64_t transfer_done(const transfer *t)
{
    return t->source.raw ? t->source.raw_at : t->source.log->end.bytes;
}

int transfer_target_failed(const transfer *t)
{
    return t->target.failed;
}

const char *transfer_user(const transfer *t)
{
    return t->source.log->key.user;
}

void transfer_get_info(const transfer *t, transfer_info *out)
{
    *out = t->info;
}

/* ------------------------------------------------------------------ one line */

/* 1: sealed, and there is no key: no line is opened. */
static int is_opaque(const transfer *t)
{
    return !t->options.from_keys && t->source.log->key.suite != SUITE_NONE;
}

/* Checks the line itself and its place in the log. */
static line_verdict judge_line(transfer *t, char *text, size_t size, line *l,
                               sessile_error *err)
{
    const log_t *log = t->source.log;
    uint64_t in_write = t->source.index - log->end.count;
    line_verdict verdict;
    buf_clear(&t->text);
    if (is_opaque(t)) {
        verdict = line_check_layout(&log->key, text, size, t->source.index == 0, l);
    } else {
        verdict = line_open(&log->key, log->depth, text, size, t->source.index == 0, l,
                            &t->text, err);
    }
    if (verdict != LINE_GOOD)
        return verdict;
    if (l->id != t->source.index || (l->commit != 0 && l->commit != in_write + 1) ||
        (!is_opaque(t) && log->key.suite != SUITE_NONE &&
         memcmp(l->previous, t->source.tag, VAULT_TAG) != 0))
        return LINE_BAD;
    return LINE_GOOD;
}

/* Keeps the line, or its entry, until its write is whole. */
static sessile_status hold_line(transfer *t, const char *text, size_t size,
                                sessile_error *err)
{
    if (!t->options.to_keys) {
        buf_put(&t->write.bytes, text, size);
        buf_putc(&t->write.bytes, '\n');
    } else {
        buf_put(&t->write.bytes, t->text.data, t->text.size);
        if (mem_grow(t->alloc, (void **)&t->write.ends, &t->write.capacity,
                     t->write.count + 1, sizeof *t->write.ends) != 0)
            return fail_nomem(err);
        t->write.ends[t->write.count++] = t->write.bytes.size;
    }
    return t->write.bytes.failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ the end */

/*
 * Judges the bytes between the last commit and `limit`. A write in progress is whole a
 * moment later, so they are read a second time, then a third time under a shared lock,
 * and only then judged. NEEDS: read again from the last commit.
 */
static sessile_status judge_tail(transfer *t, sessile_error *err)
{
    log_t *log = t->source.log;
    const sessile_backend *table = log->st.table;
    uint64_t size = 0;
    int64_t mtime_ms;
    int replaced = 0;
    sessile_status status = SESSILE_OK;
    if (t->source.looks == 0) {
        t->source.looks = 1;
        rewind_reading(t);
        return SESSILE_NEEDS;
    }
    if (t->source.looks == 1 && !t->source.locked &&
        (table->capabilities & SESSILE_BACKEND_LOCKS) != 0) {
        t->source.looks = 2;
        status = log_lock(table, log->handle, SESSILE_LOCK_SHARED, 0, &replaced, err);
        if (status == SESSILE_BUSY) {
            error_clear(err);
            return SESSILE_OK; /* a writer is at work: nothing can be judged */
        }
        if (!status) {
            t->source.locked = 1;
            rewind_reading(t);
            return SESSILE_NEEDS;
        }
        if (status != SESSILE_UNSUPPORTED)
            return status;
        error_clear(err); /* a folder that refuses locks */
    }
    status = table->size(log->handle, &size, &mtime_ms, err);
    if (!status && size > log->end.bytes)
        status = log_judge(log, size, err);
    else if (!status)
        status = log_check_proof(log, size, err);
    if (status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED) {
        t->info.damage = *err;
        t->source.limit = size;
        if (!t->options.to_keys) {
            error_clear(err);
            t->source.raw = 1;
            t->source.raw_at = log->end.bytes;
            return SESSILE_NEEDS;
        }
    }
    return status;
}

/* All whole writes were written. */
static sessile_status end_source(transfer *t, sessile_error *err)
{
    log_t *log = t->source.log;
    uint64_t size = 0;
    int64_t mtime_ms;
    sessile_status status = SESSILE_OK;
    if (log->end.bytes < t->source.limit || log->end.count == 0) {
        status = judge_tail(t, err);
        if (!status && log->end.count == 0) {
            return fail(err, SESSILE_DAMAGED,
                        "%s is damaged at byte 0, entry 00000000, its header: nothing of "
                        "it can be opened",
                        log->name);
        }
        return status;
    }
    /* The index may already cover entries that were appended since the limit was set:
     * that they are missing here is no loss. */
    status = log->st.table->size(log->handle, &size, &mtime_ms, err);
    return !status && size <= t->source.limit && log->end.count < log->index.proof
               ? judge_tail(t, err)
               : status;
}

/* ------------------------------------------------------------------ in steps */

static sessile_status raw_step(transfer *t, sessile_error *err)
{
    const sessile_backend *table = t->source.log->st.table;
    uint64_t left = t->source.limit - t->source.raw_at;
    size_t want = left < RAW_PIECE ? (size_t)left : RAW_PIECE, got = 0;
    if (want == 0)
        return SESSILE_OK;
    buf_clear(&t->text);
    if (buf_reserve(&t->text, want) != 0)
        return fail_nomem(err);
    sessile_status status = table->read(t->source.log->handle, t->source.log->end.count,
                                        t->source.raw_at, t->text.data, want, &got, err);
    if (status || got == 0)
        return status;
    /* Backends that store each record in a row get whole records, if there are any. */
    const char *newline = memrchr(t->text.data, '\n', got);
    size_t size = newline && got < left ? (size_t)(newline - t->text.data) + 1 : got;
    status = transfer_put_bytes(t, t->text.data, size, err);
    t->source.raw_at += size;
    return !status ? SESSILE_NEEDS : status;
}

/* The next line. OK: there is no more. */
static sessile_status line_step(transfer *t, sessile_error *err)
{
    log_t *log = t->source.log;
    char *text;
    size_t size;
    line l;
    log->stopped.at = t->source.reader.at; /* for log_judge(), as log_scan() leaves it */
    log->stopped.index = t->source.index;
    reader_found found =
        reader_next(&t->source.reader, t->source.index, &text, &size, err);
    if (found == READER_FAILED)
        return err->code;
    if (found != READER_LINE || t->source.index >= SESSILE_NO_ID)
        return end_source(t, err);
    line_verdict verdict = judge_line(t, text, size, &l, err);
    if (verdict == LINE_FAILED)
        return err->code;
    if (verdict == LINE_BAD)
        return end_source(t, err);
    sessile_status status = hold_line(t, text, size, err);
    if (status)
        return status;
    t->source.index++;
    memcpy(t->source.tag, l.tag, VAULT_TAG);
    if (l.commit == 0)
        return SESSILE_NEEDS;
    status = transfer_put_write(t, err);
    if (status)
        return status;
    log->end.count = t->source.index;
    log->end.bytes = t->source.reader.at;
    memcpy(log->end.tag, l.tag, VAULT_TAG);
    t->source.looks = 0;
    buf_clear(&t->write.bytes);
    t->write.count = 0;
    return SESSILE_NEEDS;
}

sessile_status transfer_step(transfer *t, sessile_error *err)
{
    sessile_error local = {0};
    sessile_status status = SESSILE_NEEDS;
    uint64_t until = t->source.reader.at + STEP;
    err = err ? err : &local;
    while (status == SESSILE_NEEDS && !t->target.differs && !t->target.stop) {
        status = t->source.raw ? raw_step(t, err) : line_step(t, err);
        if (status == SESSILE_NEEDS && (t->source.raw || t->source.reader.at >= until))
            return status;
    }
    if (t->target.differs && t->options.replace && !t->options.compare &&
        (t->options.to->table->capabilities & SESSILE_BACKEND_REPLACES) != 0) {
        transfer_restart(t);
        return SESSILE_NEEDS;
    }
    if (status && status != SESSILE_NEEDS)
        return status;
    status = transfer_finish(t, err);
    t->info.entries = t->source.log->end.count;
    t->info.bytes = t->source.raw ? t->source.limit : t->source.log->end.bytes;
    t->info.unfinished = t->source.raw || t->target.differs
                             ? 0
                             : t->source.limit - t->source.log->end.bytes;
    return status;
}
