/*
 * index_write.c: adds blocks to the index, under the log's exclusive lock. In a store
 * without locks each write happens as a whole or not at all, and is refused past the end
 * of the cache: then another handle has emptied it.
 *
 * Owns the end of the cache. Must never make an append fail: the log is complete without
 * an index. Must never add a block whose last entry is not durable, because the block
 * proves that it is.
 */
#include <string.h>

#include "log/internal.h"

/* Another handle may add the same blocks at the same time, where there are no locks. */
enum { TRIES = 2 };
/* What is written at once. */
#define PIECE ((size_t)256 << 10)

/* 1 when the block is one of this log as it is now. */
static int block_fits(const log_t *log, const log_block *b)
{
    const log_index *ix = &log->index;
    if (b->anchor.count > log->end.count)
        return 0;
    if (b->number < ix->lazy)
        return 1; /* nothing better is known of it */
    const log_anchor *a = &ix->anchors[b->number - ix->lazy];
    return b->number - ix->lazy < ix->anchor_count && a->bytes == b->anchor.bytes &&
           memcmp(a->tag, b->anchor.tag, VAULT_TAG) == 0;
}

/* Sees how far the cache goes, which another handle may have added to. 0, or -1: it
 * cannot be gone on with. */
static int find_cache_end(log_t *log)
{
    log_index *ix = &log->index;
    sessile_error err = {0};
    uint64_t size = 0;
    log_block b;
    if (log->st.table->cache_size(log->handle, &size, &err))
        return -1;
    if (!ix->rewrite && size == ix->size)
        return 0;
    if (!ix->rewrite && size > 0) {
        block_init(&b, log->alloc);
        sessile_status status = block_read_last(log, size, &b, &err);
        if (!status && block_fits(log, &b) && block_set_end(log, b.number, b.end) == 0) {
            ix->written = b.number + 1;
            ix->size = b.end;
            block_deinit(&b);
            return ix->written >= ix->lazy ? 0 : -1;
        }
        block_deinit(&b);
        if (status && status != SESSILE_INVALID)
            return -1;
    }
    /* Nothing in it is of use. Only a handle that has scanned the whole log rebuilds it.
     */
    if (ix->lazy > 0)
        return -1;
    ix->written = ix->size = ix->end_count = 0;
    return 0;
}

static sessile_status add_blocks(log_t *log, uint64_t until, sessile_error *err)
{
    log_index *ix = &log->index;
    sessile_status status = SESSILE_OK;
    buf out;
    buf_init(&out, log->alloc);
    for (uint64_t k = ix->written; k < until && !status;) {
        uint64_t from = ix->size;
        buf_clear(&out);
        while (k < until && out.size < PIECE && !status) {
            status = k - ix->lazy >= ix->anchor_count
                         ? fail(err, SESSILE_NOTFOUND, "no such block")
                         : block_put(log, k, from + out.size, &ix->anchors[k - ix->lazy],
                                     &out, err);
            if (!status && block_set_end(log, k, from + out.size) != 0)
                status = fail_nomem(err);
            k++;
        }
        if (!status) {
            status =
                log->st.table->cache_write(log->handle, from, out.data, out.size, err);
        }
        if (!status) {
            ix->written = k;
            ix->size = from + out.size;
            ix->rewrite = 0;
        }
    }
    ix->end_count = ix->end_count > ix->written ? (size_t)ix->written : ix->end_count;
    buf_deinit(&out);
    return status;
}

static void give_index_up(log_t *log)
{
    log_index *ix = &log->index;
    ix->off = 1;
    ix->callbacks.written(ix->callbacks.arg, UINT64_MAX);
}

void log_set_index_callbacks(log_t *log, log_index_callbacks callbacks)
{
    if (log->index.callbacks.record_size != 0)
        log->index.callbacks = callbacks;
}

sessile_status log_index_drop(log_t *log, int timeout_ms, sessile_error *err)
{
    const sessile_backend *table = log->st.table;
    sessile_status status = SESSILE_OK;
    int replaced = 0;
    if (log->index.callbacks.record_size == 0)
        return SESSILE_OK;
    int locks = !log->locked && log_has_locks(table);
    if (locks) {
        status = log_lock(table, log->handle, SESSILE_LOCK_EXCLUSIVE, timeout_ms,
                          &replaced, err);
        locks = status == SESSILE_OK;
    }
    if (!status && !replaced)
        status = table->cache_write(log->handle, 0, "", 0, err);
    if (locks)
        table->unlock(log->handle);
    give_index_up(log);
    return status;
}

void log_index_write(log_t *log)
{
    log_index *ix = &log->index;
    sessile_error err = {0};
    if (ix->callbacks.record_size == 0 || ix->off)
        return;
    pthread_mutex_lock(&log->sync.mutex);
    uint64_t durable = !log->sync.poison.code ? log->sync.durable : 0;
    pthread_mutex_unlock(&log->sync.mutex);
    durable = durable < log->end.count ? durable : log->end.count;
    uint64_t until = durable / LOG_BLOCK;
    if (until <= (ix->rewrite ? 0 : ix->written) || durable < ix->retry)
        return;
    sessile_status status = SESSILE_CONFLICT;
    for (int i = 0; status == SESSILE_CONFLICT && i < TRIES; i++) {
        status = find_cache_end(log) == 0 ? SESSILE_OK : SESSILE_IO;
        if (!status && until > ix->written)
            status = add_blocks(log, until, &err);
    }
    ix->callbacks.written(ix->callbacks.arg, ix->written);
    if (status == SESSILE_DENIED || status == SESSILE_NOTFOUND || status == SESSILE_LIMIT)
        give_index_up(log);
    else if (status)
        ix->retry = durable + LOG_BLOCK;
}

void log_index_try(log_t *log)
{
    const log_index *ix = &log->index;
    sessile_error err = {0};
    uint64_t size;
    int replaced;
    if (ix->callbacks.record_size == 0 || ix->off || log->locked || log->damage)
        return;
    pthread_mutex_lock(&log->sync.mutex);
    uint64_t durable = log->sync.durable;
    pthread_mutex_unlock(&log->sync.mutex);
    durable = durable < log->end.count ? durable : log->end.count;
    if (durable / LOG_BLOCK <= (ix->rewrite ? 0 : ix->written))
        return;
    if (!log_has_locks(log->st.table)) {
        log_index_write(log);
        return;
    }
    if (log->st.table->lock(log->handle, SESSILE_LOCK_EXCLUSIVE, 0, &replaced, &err))
        return;
    /* If others have appended, they continue the index. */
    if (!replaced && !log_size(log, &size, &err) && size == log->end.bytes)
        log_index_write(log);
    log->st.table->unlock(log->handle);
}
