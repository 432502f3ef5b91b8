/*
 * index_check.c: compares the index with the log, for log_inspect().
 *
 * Compares every block with the result of a full scan: offsets, anchor, and the data of
 * the floor above, byte for byte. Must never change either, nor report a block that
 * somebody may be writing.
 */
#include <string.h>

#include "log/internal.h"

static int same_bytes(const buf *made, const unsigned char *is, size_t size)
{
    return made->size == size && (size == 0 || memcmp(made->data, is, size) == 0);
}

/* *same: block b says what the scan said. */
static sessile_status compare_block(log_t *log, const log_block *b, int *same,
                                    sessile_error *err)
{
    const log_index *ix = &log->index;
    const log_anchor *a;
    size_t size = LOG_BLOCK * ix->callbacks.record_size;
    sessile_error why = {0};
    buf records, extra, snapshot;
    *same = b->number < ix->anchor_count;
    if (!*same)
        return SESSILE_OK;
    a = &ix->anchors[b->number];
    *same = a->count == b->anchor.count && a->bytes == b->anchor.bytes &&
            a->in_write == b->anchor.in_write &&
            memcmp(a->tag, b->anchor.tag, VAULT_TAG) == 0;
    for (size_t i = 0; i < LOG_BLOCK && *same; i++)
        *same = log->offsets[b->number * LOG_BLOCK + i] == block_u64(b->offsets + 8 * i);
    *same = *same &&
            memcmp(ix->tags[b->number * LOG_BLOCK], b->tags, LOG_BLOCK * INDEX_TAG) == 0;
    if (!*same)
        return SESSILE_OK;
    buf_init(&records, log->alloc);
    buf_init(&extra, log->alloc);
    buf_init(&snapshot, log->alloc);
    sessile_status status =
        buf_reserve(&records, size) == 0 ? SESSILE_OK : fail_nomem(err);
    if (!status) {
        status = ix->callbacks.fill(ix->callbacks.arg, b->number, records.data, &extra,
                                    &snapshot, &why);
        if (status == SESSILE_NOMEM || extra.failed || snapshot.failed) {
            status = fail_nomem(err);
        } else if (status) { /* there is nothing to compare with */
            status = SESSILE_OK;
        } else {
            *same = memcmp(records.data, b->records, size) == 0 &&
                    same_bytes(&extra, b->extra, b->extra_size) &&
                    same_bytes(&snapshot, b->snapshot, b->snapshot_size);
        }
    }
    buf_deinit(&records);
    buf_deinit(&extra);
    buf_deinit(&snapshot);
    return status;
}

/* INVALID, which says that a block is wrong, is no error here. */
static sessile_status wrong_or(sessile_status status, int *good, sessile_error *err)
{
    *good = status == SESSILE_OK;
    if (status == SESSILE_INVALID) {
        error_clear(err);
        return SESSILE_OK;
    }
    return status;
}

static sessile_status check_blocks(log_t *log, log_index_about *out, sessile_error *err)
{
    uint64_t end;
    int good;
    log_block b;
    memset(out, 0, sizeof *out);
    log->index.end_count = 0;
    sessile_status status = log->st.table->cache_size(log->handle, &out->bytes, err);
    if (status || out->bytes == 0)
        return status;
    block_init(&b, log->alloc);
    status = wrong_or(block_read_last(log, out->bytes, &b, err), &good, err);
    if (!good) {
        out->strange = status == SESSILE_OK;
        goto out;
    }
    out->torn = out->bytes - b.end;
    out->blocks = b.number + 1;
    status = block_set_end(log, b.number, b.end) == 0 ? SESSILE_OK : fail_nomem(err);
    for (uint64_t k = out->blocks; !status && k-- > 0;) {
        status = wrong_or(block_find(log, k, &end, err), &good, err);
        if (!status && !good) { /* nor is any before it */
            out->wrong += k + 1;
            out->first = 0;
            break;
        }
        if (good)
            status = wrong_or(block_read(log, end, &b, err), &good, err);
        good = good && b.number == k;
        if (good && b.anchor.count > log->end.count) {
            out->behind++;
            continue;
        }
        if (good)
            status = compare_block(log, &b, &good, err);
        if (!status && !good) {
            out->wrong++;
            out->first = k;
        }
    }
out:
    block_deinit(&b);
    return status;
}

sessile_status log_index_check(log_t *log, int timeout_ms, log_index_about *out,
                               sessile_error *err)
{
    const sessile_backend *table = log->st.table;
    sessile_error local = {0};
    int replaced;
    err = err ? err : &local;
    memset(out, 0, sizeof *out);
    if (log->index.callbacks.record_size == 0)
        return SESSILE_OK;
    sessile_status status = check_blocks(log, out, err);
    if (status || (!out->strange && out->torn == 0 && out->wrong == 0))
        return status;
    if (!log_has_locks(table)) /* who adds to it does so in one step */
        return check_blocks(log, out, err);
    /* Again, while nobody adds to it. */
    status = table->lock(log->handle, SESSILE_LOCK_SHARED, timeout_ms, &replaced, err);
    if (!status) {
        status = check_blocks(log, out, err);
        table->unlock(log->handle);
    } else if (status == SESSILE_BUSY || status == SESSILE_UNSUPPORTED) {
        error_clear(err);
        memset(out, 0, sizeof *out);
        status = SESSILE_OK;
    }
    return status;
}
