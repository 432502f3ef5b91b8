/*
 * index.c: opens a log from its index, and loads blocks later.
 *
 * Owns what this handle has read from the index. Must never believe it over the log: a
 * block counts if its last entry is in the log at the given place with the given tag. A
 * block that does not count is ignored, because a scan finds the same. But any block that
 * opens is a durability proof: its entries were durable when it was written.
 */
#include <string.h>

#include "log/internal.h"

/* Room for entries behind the last block, so that the arrays need not grow at once. */
#define SLACK LOG_BLOCK

/* ---------------------------------------------------------------------- blocks taken */

/* Takes the offsets of a block and hands on the rest. INVALID: it does not go with what
 * is known. */
static sessile_status take_block(log_t *log, const log_block *b, sessile_error *err)
{
    log_index *ix = &log->index;
    uint64_t first = b->number * LOG_BLOCK, before = 0;
    for (size_t i = 0; i < LOG_BLOCK; i++) {
        uint64_t offset = block_u64(b->offsets + 8 * i);
        if (i > 0 || b->number > 0 ? offset <= before : offset != 0)
            goto bad;
        before = offset;
    }
    if (b->anchor.bytes <= before || b->anchor.bytes > log->end.bytes)
        goto bad;
    /* Its neighbours say where it begins and ends, as far as they are there. */
    if (b->number > 0 && ix->present[b->number - 1] &&
        log->offsets[first] != block_u64(b->offsets))
        goto bad;
    if (b->anchor.count < log->end.count &&
        (b->number + 1 >= ix->lazy || ix->present[b->number + 1]) &&
        log->offsets[b->anchor.count] != b->anchor.bytes)
        goto bad;
    sessile_status status = ix->callbacks.take(ix->callbacks.arg, b->number, b->records,
                                               b->extra, b->extra_size, err);
    if (status)
        return status;
    for (size_t i = 0; i < LOG_BLOCK; i++)
        log->offsets[first + i] = block_u64(b->offsets + 8 * i);
    log->offsets[b->anchor.count] = b->anchor.bytes;
    memcpy(ix->tags[first], b->tags, LOG_BLOCK * sizeof *ix->tags);
    ix->present[b->number] = 1;
    return SESSILE_OK;
bad:
    return fail(err, SESSILE_INVALID, "a block of the index of %s does not fit the log",
                log->name);
}

sessile_status log_load(log_t *log, sessile_id id, sessile_error *err)
{
    const log_index *ix = &log->index;
    uint64_t number = id / LOG_BLOCK, end;
    log_block once;
    if (number >= ix->lazy || ix->present[number])
        return SESSILE_OK;
    if (ix->last && ix->last->number == number) /* it was read */
        return take_block(log, ix->last, err);
    block_init(&once, log->alloc);
    log_block *b = ix->loaded ? ix->loaded : &once;
    sessile_status status = block_find(log, number, &end, err);
    if (!status)
        status = block_read(log, end, b, err);
    if (!status && b->number != number)
        status = fail(err, SESSILE_INVALID, "the index of %s is out of order", log->name);
    if (!status)
        status = take_block(log, b, err);
    block_deinit(&once);
    return status;
}

/* ---------------------------------------------------------------------- opening */

/* Line `index` of the log, from `from` to `to`, into text: 1 when it is a good line. */
static int good_line(log_t *log, uint64_t index, uint64_t from, uint64_t to, line *l,
                     buf *text, sessile_status *status, sessile_error *err)
{
    size_t got = 0;
    buf_clear(&log->buffers.piece);
    buf_clear(text);
    *status = SESSILE_OK;
    if (from >= to || to - from > LINE_LONGEST + 1)
        return 0;
    size_t size = (size_t)(to - from);
    if (buf_reserve(&log->buffers.piece, size) != 0) {
        *status = fail_nomem(err);
        return 0;
    }
    *status = log->st.table->read(log->handle, index, from, log->buffers.piece.data, size,
                                  &got, err);
    *status = log_check_gone(log, *status, err);
    if (*status || got != size || log->buffers.piece.data[size - 1] != '\n' ||
        memchr(log->buffers.piece.data, '\n', size - 1))
        return 0;
    line_verdict verdict = line_open(&log->key, log->depth, log->buffers.piece.data,
                                     size - 1, index == 0, l, text, err);
    *status = verdict == LINE_FAILED ? err->code : SESSILE_OK;
    return verdict == LINE_GOOD && l->id == index;
}

/* 1 when the log has the block's last entry where the block says. */
static int block_agrees(log_t *log, const log_block *b, sessile_status *status,
                        sessile_error *err)
{
    const uint64_t last = b->anchor.count - 1;
    line l;
    *status = SESSILE_OK;
    if (b->anchor.bytes / LOG_SHORTEST < b->anchor.count)
        return 0; /* that many lines do not fit: nothing is allocated for them */
    if (!good_line(log, last, block_u64(b->offsets + 8 * (LOG_BLOCK - 1)),
                   b->anchor.bytes, &l, &log->buffers.text, status, err))
        return 0;
    return memcmp(l.tag, b->anchor.tag, VAULT_TAG) == 0 &&
           (l.commit != 0) == (b->anchor.in_write == 0);
}

/* The last block of the cache; INVALID: there is none that can be used. */
static sessile_status read_last_block(log_t *log, log_block *b, sessile_error *err)
{
    enum { TRIES = 3 }; /* a writer may be adding to it this moment */
    uint64_t size = 0, was;
    sessile_status status = SESSILE_INVALID;
    for (int i = 0; i < TRIES && status == SESSILE_INVALID; i++) {
        was = size;
        size = log->cache_bytes;
        log->cache_bytes = UINT64_MAX;
        status = size != UINT64_MAX ? SESSILE_OK
                                    : log->st.table->cache_size(log->handle, &size, err);
        if (!status) {
            status = size > 0 && size != was ? block_read_last(log, size, b, err)
                                             : SESSILE_INVALID;
        }
        if (size == 0 || size == was)
            break;
    }
    return status == SESSILE_NOMEM || !status ? status : SESSILE_INVALID;
}

/* Shows entry 0: what a session is called is not the index's to say. */
static sessile_status show_header(log_t *log, uint64_t size, log_visit visit, void *arg,
                                  int *shown, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    char *text;
    size_t text_size;
    reader r;
    line l;
    *shown = 0;
    reader_init(&r, log, 0, size);
    reader_found found = reader_next(&r, 0, &text, &text_size, err);
    if (found == READER_FAILED)
        return err->code;
    if (found != READER_LINE)
        return SESSILE_OK;
    buf_clear(&log->buffers.text);
    line_verdict verdict =
        line_open(&log->key, log->depth, text, text_size, 1, &l, &log->buffers.text, err);
    if (verdict == LINE_FAILED)
        return err->code;
    if (verdict == LINE_GOOD) {
        *shown = 1;
        if (visit)
            status = visit(arg, 0, log->buffers.text.data, log->buffers.text.size, err);
    }
    return status;
}

/* Memory for what the block leaves out. */
static sessile_status make_room(log_t *log, const log_block *b, sessile_error *err)
{
    log_index *ix = &log->index;
    size_t count = (size_t)b->anchor.count + SLACK;
    ix->lazy = b->number + 1;
    ix->present = mem_zalloc(log->alloc, (size_t)ix->lazy);
    if (log->offset_capacity < count) {
        mem_free(log->alloc, log->offsets, log->offset_capacity * sizeof *log->offsets);
        log->offset_capacity = 0;
        log->offsets = mem_alloc(log->alloc, count * sizeof *log->offsets);
        log->offset_capacity = log->offsets ? count : 0;
    }
    if (!ix->present || !log->offsets ||
        mem_grow(log->alloc, (void **)&ix->tags, &ix->tag_capacity, count,
                 sizeof *ix->tags) != 0 ||
        block_set_end(log, b->number, b->end) != 0)
        return fail_nomem(err);
    return SESSILE_OK;
}

sessile_status index_begin(log_t *log, uint64_t size, log_visit visit, void *arg,
                           sessile_error *err)
{
    log_index *ix = &log->index;
    sessile_error why = {0};
    int shown = 0;
    log_block b, loaded;
    if (ix->callbacks.record_size == 0)
        return SESSILE_OK;
    block_init(&b, log->alloc);
    block_init(&loaded, log->alloc);
    sessile_status status = read_last_block(log, &b, &why);
    if (status) {
        status = status == SESSILE_NOMEM ? fail_nomem(err) : SESSILE_OK;
        goto out;
    }
    ix->proof = b.anchor.count;
    ix->proof_bytes = b.anchor.bytes;
    log->proved = b.anchor.count;
    ix->rewrite = ix->callbacks.fresh;
    if (b.anchor.bytes > size || ix->callbacks.fresh)
        goto out; /* of the first log_check_proof() will speak */
    if (!block_agrees(log, &b, &status, err)) {
        ix->rewrite = 1;
        goto out;
    }
    status = show_header(log, size, visit, arg, &shown, err);
    if (status || !shown)
        goto out;
    status = make_room(log, &b, err);
    if (!status) {
        log->end.count = b.anchor.count;
        log->end.bytes = b.anchor.bytes;
        memcpy(log->end.tag, b.anchor.tag, VAULT_TAG);
        log->in_write = b.anchor.in_write;
        ix->written = b.number + 1;
        ix->size = b.end;
        ix->last = &b;
        ix->loaded = &loaded; /* its memory is used again for each block */
        status = ix->callbacks.restore(ix->callbacks.arg, b.anchor.count, b.snapshot,
                                       b.snapshot_size, err);
        ix->last = ix->loaded = NULL;
    }
    if (!status && !ix->present[b.number])
        status = take_block(log, &b, err);
    if (!status) {
        log_note_progress(log, b.anchor.count, b.anchor.count);
    } else if (status == SESSILE_INVALID) { /* what it holds is not what it should be */
        error_clear(err);
        index_forget(log);
        ix->callbacks.reset(ix->callbacks.arg);
        status = SESSILE_OK;
    }
out:
    block_deinit(&b);
    block_deinit(&loaded);
    log_trim(log);
    return status;
}

/* ---------------------------------------------------------------------- from the start
 */

sessile_status log_rescan(log_t *log, log_visit visit, void *arg, sessile_error *err)
{
    sessile_error local = {0};
    const sessile_log_end known = log->end;
    err = err ? err : &local;
    /* What is known of the index stays aside until the lines have said that they are
     * all there. */
    log_index was = log->index;
    log->index.lazy = 0;
    log->index.present = NULL;
    log->index.anchors = NULL;
    log->index.anchor_count = log->index.anchor_capacity = 0;
    log->index.tags = NULL;
    log->index.tag_capacity = 0;
    memset(&log->end, 0, sizeof log->end);
    sessile_status status = log_scan(log, known.bytes, visit, arg, err);
    if (!status && memcmp(&log->end, &known, sizeof known) != 0) {
        status = fail(err, SESSILE_DAMAGED,
                      "%s is damaged at byte %llu, entry %08llx: bring back a backup",
                      log->name, (unsigned long long)log->end.bytes,
                      (unsigned long long)log->end.count);
    }
    log_index now = log->index;
    if (status) {
        mem_free(log->alloc, now.anchors, now.anchor_capacity * sizeof *now.anchors);
        mem_free(log->alloc, now.tags, now.tag_capacity * sizeof *now.tags);
        log->index = was;
        log->end = known;
        return status;
    }
    mem_free(log->alloc, was.anchors, was.anchor_capacity * sizeof *was.anchors);
    mem_free(log->alloc, was.tags, was.tag_capacity * sizeof *was.tags);
    mem_free(log->alloc, was.present, (size_t)was.lazy);
    index_drop_ends(log);
    log->index.written = log->index.size = log->index.retry = 0;
    log->index.rewrite = 1;
    return SESSILE_OK;
}
