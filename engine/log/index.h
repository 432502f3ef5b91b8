/*
 * index.h: the index of a log: a cache that says what a scan would. README.md has its
 * bytes. Inside the log floor only.
 *
 *   block.c        one block: built, sealed, found in the cache, opened
 *   index_state.c  what a handle remembers of the index
 *   index.c        opening from the index; blocks read later
 *   index_write.c  adds blocks, under the log's lock
 *   index_check.c  compares blocks with a scan
 *
 * The index is never believed over the log: opening compares its anchor with the log's
 * own line, and whatever does not fit is dropped and rebuilt from the lines.
 */
#ifndef LOG_INDEX_H
#define LOG_INDEX_H

#include "log/log.h"

#define INDEX_AD 64
/* What a block keeps of a tag. */
#define INDEX_TAG 8

/* Where a block ends in the log: its last entry, and how many lines of a write that goes
 * on behind it end there (0: its write ends with it). */
typedef struct log_anchor {
    uint64_t count, bytes, in_write;
    unsigned char tag[VAULT_TAG];
} log_anchor;

typedef struct log_index {
    log_index_callbacks callbacks; /* record_size 0: there is no index */
    int off;                       /* given up by this handle */
    int rewrite;                /* what is in the cache is wrong from its first byte on */
    unsigned char ad[INDEX_AD]; /* additional data of the blocks of this log */

    /* The first `lazy` blocks were not scanned by this handle; present[k] is 1 when block
     * k has been taken out of the cache. */
    uint64_t lazy;
    unsigned char *present;

    uint64_t written; /* blocks known to be in the cache */
    uint64_t size;    /* where they end */
    uint64_t retry;   /* after a failed write: not before so much is durable */
    uint64_t *ends;   /* where block k ends in the cache; 0: not known yet */
    size_t end_count, end_capacity;

    /* Ends of the blocks that this handle has scanned or written, from block `lazy` on.
     */
    log_anchor *anchors;
    size_t anchor_count, anchor_capacity;

    /* Of each entry the first bytes of its line's tag: of those taken out of the cache,
     * and of those passed by this handle, for the blocks to come. */
    unsigned char (*tags)[INDEX_TAG];
    size_t tag_capacity;

    uint64_t proof, proof_bytes; /* entries that are known to have been safe */
} log_index;

/* ---- block.c */

/* One block as it was read; points into plain. */
typedef struct log_block {
    uint64_t number;
    uint64_t start, end; /* in the cache */
    log_anchor anchor;
    const unsigned char *offsets, *tags, *records, *extra, *snapshot;
    size_t extra_size, snapshot_size;
    buf plain;
} log_block;
/* A number of a block's arrays, which are of no alignment. */
static inline uint64_t block_u64(const unsigned char *at)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)at[i] << (8 * i);
    return n;
}
void block_init(log_block *b, const allocator *a);
void block_deinit(log_block *b);

/* The block that ends at `end` of the cache, opened. INVALID: there is none that opens;
 * NOMEM, IO. */
sessile_status block_read(log_t *log, uint64_t end, log_block *out, sessile_error *err);
/* The last one that begins and ends before `size` of the cache, also when the cache was
 * torn behind it. INVALID: none is found. */
sessile_status block_read_last(log_t *log, uint64_t size, log_block *out,
                               sessile_error *err);
/* Where block `number` ends. The end of a later one must be known. INVALID, NOMEM, IO. */
sessile_status block_find(log_t *log, uint64_t number, uint64_t *end, sessile_error *err);
/* Remembers where block number ends. 0 or -1. */
int block_note(log_t *log, uint64_t number, uint64_t end);
/* Appends block `number`, which is to begin at `start` of the cache. */
sessile_status block_put(log_t *log, uint64_t number, uint64_t start,
                         const log_anchor *anchor, buf *out, sessile_error *err);

/* ---- index_state.c */

/* Binds the index to the log's first line: blocks are sealed for it. */
void index_named(log_t *log, const char *header, size_t size);
void index_deinit(log_t *log);
/* Undoes index_begin(): the log is to be scanned from its start. */
void index_forget(log_t *log);
/* Forgets where blocks end in the cache. */
void index_drop_ends(log_t *log);
/* 0 when a block says that entry id has another tag: its line opens, and is of another
 * course of this log. */
int index_knows(const log_t *log, uint64_t id, const unsigned char tag[VAULT_TAG]);
/* Entry `index` has been scanned or built. in_write: lines of its write up to it, or 0
 * when the write ends with it. */
void index_pass(log_t *log, uint64_t index, uint64_t bytes_end, uint64_t in_write,
                const unsigned char tag[VAULT_TAG]);

/* ---- index.c */

/* Goes as far as the index leads: log->end, log->in_write and what the callbacks
 * restores. Nothing happens where there is no index, or none that agrees with the log. */
sessile_status index_begin(log_t *log, uint64_t size, log_visit visit, void *arg,
                           sessile_error *err);

#endif
