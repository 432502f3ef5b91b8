/*
 * blocks.h: what the index of a memory's log says of each of its entries.
 *
 * fold.c tells it every entry; index.c gives the blocks to the log, and takes them back.
 * index.c has the whole story.
 */
#ifndef MEMORY_BLOCKS_H
#define MEMORY_BLOCKS_H

#include "base/buf.h"
#include "log/log.h"
#include "memory/postings.h"
#include "sessile_memory.h"

/* What an entry did to the fold. */
typedef enum block_op {
    BLOCK_NOTHING,
    BLOCK_MEMORY,
    BLOCK_VERDICT,
    BLOCK_HEARD,
    BLOCK_VECTORS,
    BLOCK_CONSENT,
    BLOCK_REFUSAL,
    BLOCK_READ /* too large for the index: it is read from the log */
} block_op;

enum { BLOCK_PENDING = 1, BLOCK_GIVEN = 2, BLOCK_ERASED = 4 }; /* flags */

/* Of one entry, of fixed size. What has no fixed size follows in `parts`: the key and the
 * ids that a memory replaces; the ids of a verdict; a model's name, and for each vector
 * an id and dims bytes. */
typedef struct block_record {
    uint8_t op;
    uint8_t what; /* the kind, or the verdict */
    uint8_t source, flags;
    int64_t time_ms, expires_ms;
    uint64_t session;    /* hash of the first session it is from, or of the one heard */
    uint32_t importance; /* of 65,535 */
    uint16_t lengths[FIELDS];
    uint32_t count; /* of ids or vectors; what was heard up to */
    uint32_t dims;
} block_record;

/* A block that was built and is not in the index yet. */
typedef struct block_built {
    char *data; /* its records, then its extra data */
    size_t size;
} block_built;

/* Where in `parts` the bytes of a vector come, when the block is built. */
typedef struct block_vector {
    const int8_t *values;
    uint32_t dims;
    size_t at;
} block_vector;

typedef struct blocks {
    const allocator *alloc;
    int on;              /* blocks are built */
    uint64_t words;      /* the fingerprint of what makes words */
    uint64_t chain;      /* a hash of all entries so far */
    block_record record; /* of the entry that is being folded */
    buf records, parts;  /* of the block that is being built */
    block_vector *vectors;
    size_t vector_count, vector_capacity, vector_bytes;
    size_t parts_before, vectors_before; /* this entry */
    uint64_t chain_before;
    uint32_t first_record; /* of the memory, in this block */
    int whole;             /* all entries of this block are to be read from the log */
    block_built *built;    /* of the blocks from `first` on */
    uint64_t first;
    size_t built_count, built_capacity, built_bytes;
} blocks;

void blocks_init(blocks *b, const allocator *a);
void blocks_deinit(blocks *b);
/* Begins the block whose first entry comes next. */
void blocks_start(blocks *b, postings *p);
/* Before an entry is folded, and after it was. */
void blocks_begin(blocks *b);
void blocks_end(blocks *b, postings *p, const hash_key *key, sessile_id id,
                const char *text, size_t size);
/* Adds a vector of b->record.dims values, which stay there until the block is built. A
 * newer vector may take their place. Nothing is added if there is no room in the block.
 */
void blocks_put_vector(blocks *b, sessile_id id, const int8_t *values);
/* Builds no blocks any more. */
void blocks_stop(blocks *b);
/* Forgets the blocks before this one. */
void blocks_drop(blocks *b, uint64_t block);
/* The bytes that it takes. */
size_t blocks_bytes(const blocks *b);

/* ---- reading */

/* What comes before the records' parts. */
typedef struct block_head {
    uint64_t words, chain_before, chain;
    uint32_t first_record;
    int reads; /* 1: a record is BLOCK_READ */
    sessile_slice parts, terms[FIELDS];
} block_head;
/* 0, or -1: these are no such bytes, or of another version. */
int block_read_head(block_head *out, const void *extra, size_t size);
/* All records of a block. */
void block_read_records(block_record out[LOG_BLOCK], const void *records);

#endif
