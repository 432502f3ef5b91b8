/*
 * index_state.c: what a handle remembers about the index.
 *
 * Owns log->index: entries scanned, blocks loaded, the durability proof. Must never read
 * or write the cache, and calls no other file of this folder, so that scan.c may call it
 * and index.c may call scan.c.
 */
#include <string.h>

#include "base/text.h"
#include "log/internal.h"

#define DOMAIN "sessile index 1" /* with its NUL: 16 bytes */

void index_bind(log_t *log, const char *header, size_t size)
{
    unsigned char hash[32];
    hash256(hash, header, size, NULL, 0);
    memset(log->index.ad, 0, INDEX_AD);
    memcpy(log->index.ad, DOMAIN, sizeof DOMAIN);
    memcpy(log->index.ad + 16, hash, sizeof hash);
}

static void drop_lazy(log_t *log)
{
    log_index *ix = &log->index;
    mem_free(log->alloc, ix->present, (size_t)ix->lazy);
    ix->present = NULL;
    ix->lazy = 0;
}

void index_drop_ends(log_t *log)
{
    log_index *ix = &log->index;
    mem_free(log->alloc, ix->ends, ix->end_capacity * sizeof *ix->ends);
    ix->ends = NULL;
    ix->end_count = ix->end_capacity = 0;
}

void index_forget(log_t *log)
{
    log_index *ix = &log->index;
    drop_lazy(log);
    index_drop_ends(log);
    ix->anchor_count = 0;
    ix->written = ix->size = 0;
    ix->rewrite = 1;
    memset(&log->end, 0, sizeof log->end);
    log->in_write = 0;
}

void index_deinit(log_t *log)
{
    log_index *ix = &log->index;
    drop_lazy(log);
    index_drop_ends(log);
    mem_free(log->alloc, ix->anchors, ix->anchor_capacity * sizeof *ix->anchors);
    ix->anchors = NULL;
    ix->anchor_count = ix->anchor_capacity = 0;
    mem_free(log->alloc, ix->tags, ix->tag_capacity * sizeof *ix->tags);
    ix->tags = NULL;
    ix->tag_capacity = 0;
}

int index_tag_matches(const log_t *log, uint64_t id, const unsigned char tag[VAULT_TAG])
{
    const log_index *ix = &log->index;
    uint64_t number = id / LOG_BLOCK;
    return number >= ix->lazy || !ix->present[number] ||
           memcmp(ix->tags[id], tag, INDEX_TAG) == 0;
}

sessile_status log_check_proof(log_t *log, uint64_t size, sessile_error *err)
{
    const log_index *ix = &log->index;
    if (log->end.count >= ix->proof)
        return SESSILE_OK;
    int cut = ix->proof_bytes > size;
    uint64_t at, index;
    log_bad_place(log, &at, &index);
    log->judged = 1;
    return fail(err, cut ? SESSILE_TRUNCATED : SESSILE_DAMAGED,
                "%s %s at byte %llu, entry %08llx: its index says that %llu entries in "
                "%llu bytes were written safely. Nothing was changed",
                log->name, cut ? "is cut off" : "is damaged", (unsigned long long)at,
                (unsigned long long)index, (unsigned long long)ix->proof,
                (unsigned long long)ix->proof_bytes);
}

void index_add_entry(log_t *log, uint64_t index, uint64_t bytes_end, uint64_t in_write,
                     const unsigned char tag[VAULT_TAG])
{
    log_index *ix = &log->index;
    if (ix->callbacks.record_size == 0 || ix->off || index / LOG_BLOCK < ix->lazy)
        return;
    if (mem_grow(log->alloc, (void **)&ix->tags, &ix->tag_capacity, (size_t)index + 1,
                 sizeof *ix->tags) != 0) {
        ix->off = 1;
        return;
    }
    memcpy(ix->tags[index], tag, INDEX_TAG);
    if (index % LOG_BLOCK != LOG_BLOCK - 1)
        return;
    size_t at = (size_t)(index / LOG_BLOCK - ix->lazy);
    if (at > ix->anchor_count ||
        mem_grow(log->alloc, (void **)&ix->anchors, &ix->anchor_capacity, at + 1,
                 sizeof *ix->anchors) != 0) {
        ix->off = 1;
        return;
    }
    /* also again: a write that was refused may have been passed here before */
    ix->anchor_count = at + 1 > ix->anchor_count ? at + 1 : ix->anchor_count;
    ix->anchors[at].count = index + 1;
    ix->anchors[at].bytes = bytes_end;
    ix->anchors[at].in_write = in_write;
    memcpy(ix->anchors[at].tag, tag, VAULT_TAG);
}
