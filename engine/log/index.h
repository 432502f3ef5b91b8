/*
 * index.h: the index of a log: a cache of what a scan would find. README.md specifies its
 * bytes. Only files of this folder include it.
 *
 *   block.c        one block: built, sealed, found in the cache, opened
 *   index_state.c  what a handle remembers about the index
 *   index.c        opening from the index; loading blocks later
 *   index_write.c  adds blocks, under the log's lock
 *   index_check.c  compares blocks with a scan
 *
 * The index is never believed over the log: opening compares its anchor with the log's
 * line. An index that does not agree is dropped and rebuilt from the lines.
 */
#ifndef LOG_INDEX_H
#define LOG_INDEX_H

#include "log/log.h"

#define INDEX_AD 64
/* Bytes of a tag that a block stores. */
#define INDEX_TAG 8

/* The end of a block in the log: after its last entry. in_write: the number of lines, up
 * to there, of a write that continues after it; 0: none. */
typedef struct log_anchor {
    uint64_t count, bytes, in_write;
    unsigned char tag[VAULT_TAG];
} log_anchor;

/* One block as it was read. Its pointers are into plain. */
typedef struct log_block {
    uint64_t number;
    uint64_t start, end; /* in the cache */
    log_anchor anchor;
    const unsigned char *offsets, *tags, *records, *extra, *snapshot;
    size_t extra_size, snapshot_size;
    buf plain, sealed;
} log_block;

typedef struct log_index {
    log_index_callbacks callbacks; /* record_size 0: there is no index */
    int off;                       /* given up by this handle */
    int rewrite;                /* what is in the cache is wrong from its first byte on */
    unsigned char ad[INDEX_AD]; /* additional data of the blocks of this log */

    /* The first `lazy` blocks were not scanned by this handle. present[k] is 1 if block k
     * was loaded from the cache. */
    uint64_t lazy;
    unsigned char *present;
    /* While the state is restored: the last block, and what others are read into. */
    log_block *last, *loaded;

    uint64_t written; /* blocks known to be in the cache */
    uint64_t size;    /* where they end */
    uint64_t retry;   /* after a failed write: not before so much is durable */
    uint64_t *ends;   /* where block k ends in the cache; 0: not known yet */
    size_t end_count, end_capacity;

    /* Ends of the blocks that this handle has scanned or written, from block `lazy` on.
     */
    log_anchor *anchors;
    size_t anchor_count, anchor_capacity;

    /* The first bytes of each line's tag, for entries in loaded blocks and for entries
     * that this handle scanned or wrote. */
    unsigned char (*tags)[INDEX_TAG];
    size_t tag_capacity;

    uint64_t proof, proof_bytes; /* entries known to have been durable */
} log_index;

/* ---- block.c */

/* Reads a number from a block's arrays, which are not aligned. */
static inline uint64_t block_u64(const unsigned char *at)
{
    uint64_t n = 0;
    for (int i = 0; i < 8; i++)
        n |= (uint64_t)at[i] << (8 * i);
    return n;
}
void block_init(log_block *b, const allocator *a);
void block_deinit(log_block *b);

/* Reads and opens the block that ends at `end` in the cache. INVALID: no block there
 * opens; NOMEM, IO. */
sessile_status block_read(log_t *log, uint64_t end, log_block *out, sessile_error *err);
/* Reads the last whole block before `size` in the cache, which may be torn after it.
 * INVALID: there is none. */
sessile_status block_read_last(log_t *log, uint64_t size, log_block *out,
                               sessile_error *err);
/* Finds where block `number` ends. The end of a later block must be known. INVALID,
 * NOMEM, IO. */
sessile_status block_find(log_t *log, uint64_t number, uint64_t *end, sessile_error *err);
/* Remembers where block number ends. 0 or -1. */
int block_set_end(log_t *log, uint64_t number, uint64_t end);
/* Appends block `number` to out; it will begin at `start` in the cache. */
sessile_status block_put(log_t *log, uint64_t number, uint64_t start,
                         const log_anchor *anchor, buf *out, sessile_error *err);

/* ---- index_state.c */

/* Binds the index to the log's first line, for which its blocks are sealed. */
void index_bind(log_t *log, const char *header, size_t size);
void index_deinit(log_t *log);
/* Undoes index_begin(): the log will be scanned from its start. */
void index_forget(log_t *log);
/* Forgets where blocks end in the cache. */
void index_drop_ends(log_t *log);
/* 0 if the entry's block has another tag: the line belongs to another history of this
 * log. */
int index_tag_matches(const log_t *log, uint64_t id, const unsigned char tag[VAULT_TAG]);
/* Records an entry that was scanned or built. in_write: the number of lines of its write
 * up to it; 0: the write ends with it. */
void index_add_entry(log_t *log, uint64_t index, uint64_t bytes_end, uint64_t in_write,
                     const unsigned char tag[VAULT_TAG]);

/* ---- index.c */

/* Restores log->end, log->in_write and the state of the callbacks from the index. Does
 * nothing if there is no index that agrees with the log. */
sessile_status index_begin(log_t *log, uint64_t size, log_visit visit, void *arg,
                           sessile_error *err);

#endif
