/*
 * transfer.c: a log read for another store, line by line, up to its last commit.
 *
 * Owns where a log that others write to ends, and whether what is behind that is a write
 * in progress, a torn end, or damage. It must never change the source, which is why it
 * heals nothing, nor pass over a byte in silence: what is not carried is counted, and
 * what is damaged is named.
 *
 * A whole write is held before any of it is put, so that the other store never sees half
 * of one; so it takes the memory of a piece and of the largest write, however long the
 * log is.
 */
#include "log/transfer_internal.h"

#include <string.h>

/* So many bytes of the source in one step. */
#define STEP ((uint64_t)1 << 20)
/* Past damage, in pieces of this size. */
#define RAW_PIECE ((size_t)256 << 10)

/* ------------------------------------------------------------------ the handle */

void transfer_free(transfer *c)
{
    if (!c)
        return;
    transfer_leave(c);
    if (c->locked)
        c->from->st.table->unlock(c->from->handle);
    log_close(c->from);
    buf_deinit(&c->text);
    buf_deinit(&c->held);
    buf_deinit(&c->out);
    buf_deinit(&c->other);
    mem_free(c->alloc, c->ends, c->end_capacity * sizeof *c->ends);
    mem_free(c->alloc, c, sizeof *c);
}

/* Reading goes on behind the last commit. */
static void rewind_reading(transfer *c)
{
    reader_init(&c->r, c->from, c->from->end.bytes, c->limit);
    c->index = c->from->end.count;
    memcpy(c->tag, c->from->end.tag, VAULT_TAG);
    buf_clear(&c->held);
    c->end_count = 0;
}

void transfer_again(transfer *c)
{
    c->from->end = (sessile_log_end){0, 0, {0}};
    c->raw = c->looks = c->differs = c->comparing = c->stop = 0;
    c->at = 0;
    c->replacing = 1;
    error_clear(&c->about.damage);
    buf_clear(&c->out);
    rewind_reading(c);
}

sessile_status transfer_begin(transfer **out, const transfer_options *wish,
                              const allocator *a, sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    uint64_t size = 0;
    int64_t mtime_ms;
    err = err ? err : &local;
    *out = NULL;
    transfer *c = mem_zalloc(a, sizeof *c);
    if (!c)
        return fail_nomem(err);
    c->wish = *wish;
    c->alloc = a;
    buf_init(&c->text, a);
    buf_init(&c->held, a);
    buf_init(&c->out, a);
    buf_init(&c->other, a);
    sessile_status status = log_attach(&c->from, wish->from, wish->from_keys,
                                       wish->folder, wish->name, wish->depth, a, err);
    if (!status && wish->callbacks && wish->from_keys &&
        (wish->from->table->capabilities & SESSILE_BACKEND_CACHES) != 0) {
        c->from->index.callbacks = *wish->callbacks;
        c->from->index.callbacks.fresh = 1;
        c->from->index.off = 1; /* nothing is added to it */
        status = index_begin(c->from, 0, NULL, NULL, err);
    }
    if (!status)
        status = wish->from->table->size(c->from->handle, &size, &mtime_ms, err);
    if (!status) {
        c->limit = size < wish->limit ? size : wish->limit;
        rewind_reading(c);
        status = transfer_there(c, err);
    }
    if (status) {
        transfer_free(c);
        return status;
    }
    *out = c;
    return SESSILE_OK;
}

uint64_t transfer_done(const transfer *c)
{
    return c->raw ? c->raw_at : c->from->end.bytes;
}

int transfer_failed_there(const transfer *c)
{
    return c->failed_there;
}

const char *transfer_user(const transfer *c)
{
    return c->from->key.user;
}

void transfer_get_info(const transfer *c, transfer_info *out)
{
    *out = c->about;
}

/* ------------------------------------------------------------------ one line */

/* Sealed, and without a key: nothing of it is opened. */
static int is_closed(const transfer *c)
{
    return !c->wish.from_keys && c->from->key.suite != SUITE_NONE;
}

/* Checks the line by itself and in its place. */
static line_verdict judge_line(transfer *c, char *text, size_t size, line *l,
                               sessile_error *err)
{
    const log_t *log = c->from;
    uint64_t in_write = c->index - log->end.count;
    line_verdict verdict;
    buf_clear(&c->text);
    if (is_closed(c)) {
        verdict = line_look(&log->key, text, size, c->index == 0, l);
    } else {
        verdict =
            line_open(&log->key, log->depth, text, size, c->index == 0, l, &c->text, err);
    }
    if (verdict != LINE_GOOD)
        return verdict;
    if (l->id != c->index || (l->commit != 0 && l->commit != in_write + 1) ||
        (!is_closed(c) && log->key.suite != SUITE_NONE &&
         memcmp(l->previous, c->tag, VAULT_TAG) != 0))
        return LINE_BAD;
    return LINE_GOOD;
}

/* Keeps the line until its write is whole. */
static sessile_status hold(transfer *c, const char *text, size_t size, sessile_error *err)
{
    if (!c->wish.to_keys) {
        buf_put(&c->held, text, size);
        buf_putc(&c->held, '\n');
    } else {
        buf_put(&c->held, c->text.data, c->text.size);
        if (mem_grow(c->alloc, (void **)&c->ends, &c->end_capacity, c->end_count + 1,
                     sizeof *c->ends) != 0)
            return fail_nomem(err);
        c->ends[c->end_count++] = c->held.size;
    }
    return c->held.failed ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ the end */

/*
 * What is behind the last commit, `limit` not being reached by whole writes. A write that
 * others are making is whole a moment later; what stays is looked at once more under a
 * shared lock, and only then called anything. NEEDS: read again from there.
 */
static sessile_status look_behind(transfer *c, sessile_error *err)
{
    log_t *log = c->from;
    const sessile_backend *table = log->st.table;
    uint64_t size = 0;
    int64_t mtime_ms;
    int replaced = 0;
    sessile_status status = SESSILE_OK;
    if (c->looks == 0) {
        c->looks = 1;
        rewind_reading(c);
        return SESSILE_NEEDS;
    }
    if (c->looks == 1 && !c->locked &&
        (table->capabilities & SESSILE_BACKEND_LOCKS) != 0) {
        c->looks = 2;
        status = log_lock(table, log->handle, SESSILE_LOCK_SHARED, 0, &replaced, err);
        if (status == SESSILE_BUSY) {
            error_clear(err);
            return SESSILE_OK; /* somebody is writing it: it is not ours to judge */
        }
        if (!status) {
            c->locked = 1;
            rewind_reading(c);
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
        c->about.damage = *err;
        c->limit = size;
        if (!c->wish.to_keys) {
            error_clear(err);
            c->raw = 1;
            c->raw_at = log->end.bytes;
            return SESSILE_NEEDS;
        }
    }
    return status;
}

/* All whole writes were put. */
static sessile_status at_end(transfer *c, sessile_error *err)
{
    log_t *log = c->from;
    uint64_t size = 0;
    int64_t mtime_ms;
    sessile_status status = SESSILE_OK;
    if (log->end.bytes < c->limit || log->end.count == 0) {
        status = look_behind(c, err);
        if (!status && log->end.count == 0) {
            return fail(err, SESSILE_DAMAGED,
                        "%s is damaged at byte 0, entry 00000000, its header: nothing of "
                        "it can be opened",
                        log->name);
        }
        return status;
    }
    /* What came since the limit was set is no loss: of it the index may know already. */
    status = log->st.table->size(log->handle, &size, &mtime_ms, err);
    return !status && size <= c->limit && log->end.count < log->index.proof
               ? look_behind(c, err)
               : status;
}

/* ------------------------------------------------------------------ in steps */

static sessile_status raw_step(transfer *c, sessile_error *err)
{
    const sessile_backend *table = c->from->st.table;
    uint64_t left = c->limit - c->raw_at;
    size_t want = left < RAW_PIECE ? (size_t)left : RAW_PIECE, got = 0;
    if (want == 0)
        return SESSILE_OK;
    buf_clear(&c->text);
    if (buf_reserve(&c->text, want) != 0)
        return fail_nomem(err);
    sessile_status status = table->read(c->from->handle, c->from->end.count, c->raw_at,
                                        c->text.data, want, &got, err);
    if (status || got == 0)
        return status;
    /* Backends that keep a row a record are given whole ones, where there are any. */
    const char *newline = memrchr(c->text.data, '\n', got);
    size_t size = newline && got < left ? (size_t)(newline - c->text.data) + 1 : got;
    status = transfer_write_raw(c, c->text.data, size, err);
    c->raw_at += size;
    return !status ? SESSILE_NEEDS : status;
}

/* The next line. OK: there is no more. */
static sessile_status line_step(transfer *c, sessile_error *err)
{
    log_t *log = c->from;
    char *text;
    size_t size;
    line l;
    reader_found found = reader_next(&c->r, c->index, &text, &size, err);
    if (found == READER_FAILED)
        return err->code;
    if (found != READER_LINE || c->index >= SESSILE_NO_ID)
        return at_end(c, err);
    line_verdict verdict = judge_line(c, text, size, &l, err);
    if (verdict == LINE_FAILED)
        return err->code;
    if (verdict == LINE_BAD)
        return at_end(c, err);
    sessile_status status = hold(c, text, size, err);
    if (status)
        return status;
    c->index++;
    memcpy(c->tag, l.tag, VAULT_TAG);
    if (l.commit == 0)
        return SESSILE_NEEDS;
    status = transfer_write_entry(c, err);
    if (status)
        return status;
    log->end.count = c->index;
    log->end.bytes = c->r.at;
    memcpy(log->end.tag, l.tag, VAULT_TAG);
    c->looks = 0;
    buf_clear(&c->held);
    c->end_count = 0;
    return SESSILE_NEEDS;
}

sessile_status transfer_step(transfer *c, sessile_error *err)
{
    sessile_error local = {SESSILE_OK, ""};
    sessile_status status = SESSILE_NEEDS;
    uint64_t until = c->r.at + STEP;
    err = err ? err : &local;
    while (status == SESSILE_NEEDS && !c->differs && !c->stop) {
        status = c->raw ? raw_step(c, err) : line_step(c, err);
        if (status == SESSILE_NEEDS && (c->raw || c->r.at >= until))
            return status;
    }
    if (c->differs && c->wish.replace && !c->wish.compare &&
        (c->wish.to->table->capabilities & SESSILE_BACKEND_REPLACES) != 0) {
        transfer_again(c);
        return SESSILE_NEEDS;
    }
    if (status && status != SESSILE_NEEDS)
        return status;
    status = transfer_finish(c, err);
    c->about.entries = c->from->end.count;
    c->about.bytes = c->raw ? c->limit : c->from->end.bytes;
    c->about.unfinished = c->raw || c->differs ? 0 : c->limit - c->from->end.bytes;
    return status;
}
