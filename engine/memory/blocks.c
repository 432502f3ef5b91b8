/*
 * blocks.c: the bytes of the index's blocks.
 *
 * Owns their layout. A block is built while its entries are folded, since later ones
 * change the fold, and kept until the log has written it.
 *
 *   extra: version, fingerprint of the words, chain before and after, first record,
 * reads, parts, and for each field the packed terms
 *
 * All numbers are little-endian, texts have their size before them (base/wire.h).
 */
#include "memory/blocks.h"

#include <string.h>

#include "base/text.h"
#include "base/wire.h"
#include "session/fold.h"

enum {
    VERSION = 0x6d656d01, /* of sessions it is below 2^16 */
    PARTS_MOST = 8 << 20, /* the log takes 16 MiB */
    TERMS_MOST = 6 << 20,
    KEY_MOST = 4096,
    BUILT_MOST = 256 << 20 /* of all blocks that wait to be written */
};

void blocks_init(blocks *b, const allocator *a)
{
    memset(b, 0, sizeof *b);
    b->alloc = a;
    buf_init(&b->records, a);
    buf_init(&b->parts, a);
}

void blocks_stop(blocks *b)
{
    b->on = 0;
    buf_wipe(&b->records);
    buf_wipe(&b->parts);
    mem_free(b->alloc, b->vectors, b->vector_capacity * sizeof *b->vectors);
    b->vectors = NULL;
    b->vector_count = b->vector_capacity = b->vector_bytes = 0;
}

void blocks_drop(blocks *b, uint64_t block)
{
    size_t gone = 0;
    while (gone < b->built_count && b->first + gone < block) {
        wipe(b->built[gone].data, b->built[gone].size);
        mem_free(b->alloc, b->built[gone].data, b->built[gone].size);
        b->built_bytes -= b->built[gone++].size;
    }
    if (!gone)
        return;
    b->built_count -= gone;
    b->first += gone;
    memmove(b->built, b->built + gone, b->built_count * sizeof *b->built);
}

void blocks_deinit(blocks *b)
{
    const allocator *a = b->alloc;
    blocks_stop(b);
    blocks_drop(b, UINT64_MAX);
    mem_free(a, b->built, b->built_capacity * sizeof *b->built);
    blocks_init(b, a);
}

size_t blocks_bytes(const blocks *b)
{
    return b->records.capacity + b->parts.capacity +
           b->vector_capacity * sizeof *b->vectors + b->built_bytes +
           b->built_capacity * sizeof *b->built;
}

/* ------------------------------------------------------------------ building */

static void clear_parts(blocks *b)
{
    buf_clear(&b->parts);
    b->vector_count = b->vector_bytes = 0;
}

void blocks_start(blocks *b, postings *p)
{
    buf_clear(&b->records);
    clear_parts(b);
    b->chain_before = b->chain;
    b->first_record = p->count;
    b->whole = 0;
    postings_mark(p);
}

void blocks_begin(blocks *b)
{
    memset(&b->record, 0, sizeof b->record);
    b->parts_before = b->parts.size;
    b->vectors_before = b->vector_count;
}

void blocks_put_vector(blocks *b, sessile_id id, const int8_t *values)
{
    uint32_t dims = b->record.dims;

    if (b->record.op == BLOCK_READ)
        return;
    if (b->parts.size + b->vector_bytes + sizeof id + dims > PARTS_MOST) {
        b->parts.size = b->parts_before;
        while (b->vector_count > b->vectors_before)
            b->vector_bytes -= b->vectors[--b->vector_count].dims;
        b->record = (block_record){.op = BLOCK_READ};
        return;
    }
    if (mem_grow(b->alloc, (void **)&b->vectors, &b->vector_capacity, b->vector_count + 1,
                 sizeof *b->vectors)) {
        b->parts.failed = 1;
        return;
    }
    wire_put_u32(&b->parts, id);
    b->vectors[b->vector_count++] = (block_vector){values, dims, b->parts.size};
    b->vector_bytes += dims;
    b->record.count++;
}

/* The parts, with the vectors in their places. */
static void put_parts(const blocks *b, buf *out)
{
    size_t from = 0;
    wire_put_u32(out, (uint32_t)(b->parts.size + b->vector_bytes));
    for (size_t i = 0; i < b->vector_count; i++) {
        const block_vector *v = &b->vectors[i];
        buf_put(out, b->parts.data + from, v->at - from);
        buf_put(out, v->values, v->dims);
        from = v->at;
    }
    if (b->parts.size > from)
        buf_put(out, b->parts.data + from, b->parts.size - from);
}

static void put_record(buf *out, const block_record *r)
{
    wire_put_u8(out, r->op);
    wire_put_u8(out, r->what);
    wire_put_u8(out, r->source);
    wire_put_u8(out, r->flags);
    wire_put_i64(out, r->time_ms);
    wire_put_i64(out, r->expires_ms);
    wire_put_u64(out, r->session);
    wire_put_u32(out, r->importance);
    wire_put_u32(out, r->lengths[FIELD_MAIN] | (uint32_t)r->lengths[FIELD_ALSO] << 16);
    wire_put_u32(out, r->count);
    wire_put_u32(out, r->dims);
}

/* Nothing is kept but that every entry is to be read. */
static void read_all(blocks *b, uint64_t block)
{
    static const block_record nothing = {.op = BLOCK_NOTHING}, read = {.op = BLOCK_READ};
    buf_clear(&b->records);
    clear_parts(b);
    for (uint64_t i = 0; i < LOG_BLOCK; i++)
        put_record(&b->records, i || block ? &read : &nothing);
}

static int has_reads(const blocks *b)
{
    for (size_t i = 0; i < LOG_BLOCK; i++)
        if ((unsigned char)b->records.data[i * SESSION_RECORD] == BLOCK_READ)
            return 1;
    return 0;
}

/* Its records and its extra data, one after the other. */
static int build(blocks *b, const postings *p, uint64_t block, buf *out)
{
    buf terms[FIELDS];
    int failed = 0;

    for (int f = 0; f < FIELDS; f++) {
        buf_init(&terms[f], b->alloc);
        failed |= postings_pack(p, f, &terms[f]);
        b->whole |= terms[f].size > TERMS_MOST;
    }
    if (b->whole || b->parts.size + b->vector_bytes > PARTS_MOST) {
        read_all(b, block);
        for (int f = 0; f < FIELDS; f++)
            buf_clear(&terms[f]);
    }
    failed |= b->records.failed || b->parts.failed ||
              b->records.size != (size_t)LOG_BLOCK * SESSION_RECORD;
    if (!failed) {
        (void)buf_reserve(out, b->records.size + b->parts.size + b->vector_bytes + 64 +
                                   terms[FIELD_MAIN].size + terms[FIELD_ALSO].size);
        buf_put(out, b->records.data, b->records.size);
        wire_put_u32(out, VERSION);
        wire_put_u64(out, b->words);
        wire_put_u64(out, b->chain_before);
        wire_put_u64(out, b->chain);
        wire_put_u32(out, b->first_record);
        wire_put_u8(out, (uint8_t)has_reads(b));
        put_parts(b, out);
        for (int f = 0; f < FIELDS; f++)
            wire_put_text(out, terms[f].data, terms[f].size);
    }
    for (int f = 0; f < FIELDS; f++)
        buf_wipe(&terms[f]);
    return failed || out->failed ? -1 : 0;
}

/* The block is whole: it is kept until it was written. */
static void finish(blocks *b, postings *p, uint64_t block)
{
    block_built built = {NULL, 0};
    buf out;

    buf_init(&out, b->alloc);
    if (!b->built_count)
        b->first = block;
    if (!build(b, p, block, &out) && block == b->first + b->built_count &&
        b->built_bytes + out.size <= BUILT_MOST &&
        !mem_grow(b->alloc, (void **)&b->built, &b->built_capacity, b->built_count + 1,
                  sizeof *b->built))
        built = (block_built){mem_alloc(b->alloc, out.size), out.size};
    if (built.data) {
        memcpy(built.data, out.data, out.size);
        b->built[b->built_count++] = built;
        b->built_bytes += built.size;
        blocks_start(b, p);
    } else { /* the index ends here, for this handle */
        blocks_stop(b);
    }
    buf_wipe(&out);
}

void blocks_end(blocks *b, postings *p, const hash_key *key, sessile_id id,
                const char *text, size_t size)
{
    uint64_t both[] = {b->chain, hash64_keyed(key, text, size)};

    b->chain = hash64_keyed(key, both, sizeof both);
    if (!b->on)
        return;
    if (b->record.op == BLOCK_MEMORY && (b->parts.size - b->parts_before > KEY_MOST ||
                                         b->record.count > SESSILE_MEMORY_NAMED_MAX))
        b->whole = 1;
    put_record(&b->records, &b->record);
    if (b->parts.failed || b->records.failed)
        blocks_stop(b);
    else if (id % LOG_BLOCK == LOG_BLOCK - 1)
        finish(b, p, id / LOG_BLOCK);
}

/* ------------------------------------------------------------------ reading */

int block_read_head(block_head *out, const void *extra, size_t size)
{
    wire w;
    uint32_t version;

    wire_init(&w, extra, size);
    version = wire_u32(&w);
    out->words = wire_u64(&w);
    out->chain_before = wire_u64(&w);
    out->chain = wire_u64(&w);
    out->first_record = wire_u32(&w);
    out->reads = wire_u8(&w);
    out->parts = wire_text(&w);
    for (int f = 0; f < FIELDS; f++)
        out->terms[f] = wire_text(&w);
    return w.bad || w.at != w.end || version != VERSION ? -1 : 0;
}

void block_read_records(block_record out[LOG_BLOCK], const void *records)
{
    wire w;

    wire_init(&w, records, (size_t)LOG_BLOCK * SESSION_RECORD);
    for (block_record *r = out; r < out + LOG_BLOCK; r++) {
        uint32_t lengths;
        r->op = wire_u8(&w);
        r->what = wire_u8(&w);
        r->source = wire_u8(&w);
        r->flags = wire_u8(&w);
        r->time_ms = wire_i64(&w);
        r->expires_ms = wire_i64(&w);
        r->session = wire_u64(&w);
        r->importance = wire_u32(&w);
        lengths = wire_u32(&w);
        r->lengths[FIELD_MAIN] = (uint16_t)lengths;
        r->lengths[FIELD_ALSO] = (uint16_t)(lengths >> 16);
        r->count = wire_u32(&w);
        r->dims = wire_u32(&w);
    }
}
