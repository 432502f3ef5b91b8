/*
 * block.c: the bytes of the index: a sequence of blocks, each found from its end.
 *
 * Owns the layout that README.md describes. Must never return a byte of a block that did
 * not open as a whole. A trailer is in clear, so it is only believed to say where a block
 * may begin; the sealed part repeats what it says.
 *
 * Blocks are read from the newest backwards. Each trailer also says where block
 * n & (n - 1) ends, so any block is found in a few dozen reads. Rejected: a table of
 * positions, which would be written again with every block; blocks of one size, because
 * the data about links has no fixed size.
 */
#include <string.h>

#include "log/internal.h"

#define VERSION 3
#define MAGIC   "sessidx1"

#define TRAILER_SIZE 32
#define FIXED_SIZE   56
#define NUMBER_MOST  (UINT64_C(1) << 24) /* blocks in 2^32 entries */
#define BLOCK_MOST   (UINT64_C(64) << 20)
/* What a first read of a block brings; most blocks are smaller. */
#define FIRST_READ ((size_t)24 << 10)
/* How far back a torn cache is searched for a block that is whole. */
#define SEARCHED ((size_t)64 << 10)

/* ---------------------------------------------------------------------- numbers */

static void put32(unsigned char *to, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        to[i] = (unsigned char)(n >> (8 * i));
}

static void put64(unsigned char *to, uint64_t n)
{
    put32(to, (uint32_t)n);
    put32(to + 4, (uint32_t)(n >> 32));
}

static uint32_t get32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get64(const unsigned char *at)
{
    return get32(at) | (uint64_t)get32(at + 4) << 32;
}

/* ---------------------------------------------------------------------- a block */

typedef struct trailer {
    uint64_t number, start, jump;
} trailer;

/* 0; -1: these are not the last bytes of a block that ends at `end`. */
static int read_trailer(trailer *t, const unsigned char *at, uint64_t end)
{
    if (memcmp(at, MAGIC, 8) != 0)
        return -1;
    t->number = get64(at + 8);
    t->start = get64(at + 16);
    t->jump = get64(at + 24);
    return t->number < NUMBER_MOST && t->start < end - TRAILER_SIZE &&
                   t->jump <= t->start && (t->start > 0) == (t->number > 0) &&
                   (t->jump > 0) == (t->number > 0) && end - t->start <= BLOCK_MOST
               ? 0
               : -1;
}

static void name_block(const log_t *log, unsigned char ad[INDEX_AD], uint64_t number,
                       uint64_t start)
{
    memcpy(ad, log->index.ad, INDEX_AD - 16);
    put64(ad + INDEX_AD - 16, number);
    put64(ad + INDEX_AD - 8, start);
}

void block_init(log_block *b, const allocator *a)
{
    memset(b, 0, sizeof *b);
    buf_init(&b->plain, a);
    buf_init(&b->sealed, a);
}

void block_deinit(log_block *b)
{
    buf_deinit(&b->plain);
    buf_deinit(&b->sealed);
}

static sessile_status bad(const log_t *log, sessile_error *err)
{
    return fail(err, SESSILE_INVALID,
                "a block of the index of %s is not what was written", log->name);
}

/* What an opened block says: 0, or -1: not of this version, or not whole. */
static int parse(const log_t *log, log_block *b)
{
    const size_t record = log->index.callbacks.record_size;
    const unsigned char *at = (const unsigned char *)b->plain.data;
    size_t fixed = FIXED_SIZE + LOG_BLOCK * (8 + INDEX_TAG + record),
           size = b->plain.size;
    if (size < fixed || get32(at) != VERSION || get32(at + 4) != record ||
        get64(at + 8) != b->number)
        return -1;
    b->anchor.count = (b->number + 1) * LOG_BLOCK;
    b->anchor.bytes = get64(at + 16);
    b->anchor.in_write = get64(at + 24);
    memcpy(b->anchor.tag, at + 32, VAULT_TAG);
    b->extra_size = get32(at + 48);
    b->snapshot_size = get32(at + 52);
    if (b->extra_size > size - fixed ||
        b->snapshot_size != size - fixed - b->extra_size ||
        b->anchor.in_write > b->anchor.count)
        return -1;
    b->offsets = at + FIXED_SIZE;
    b->tags = b->offsets + LOG_BLOCK * 8;
    b->records = b->tags + LOG_BLOCK * INDEX_TAG;
    b->extra = at + fixed;
    b->snapshot = b->extra + b->extra_size;
    return 0;
}

/* Reads [from, to) of the cache into out. INVALID: it is shorter. */
static sessile_status bring(log_t *log, uint64_t from, uint64_t to, buf *out,
                            sessile_error *err)
{
    size_t size = (size_t)(to - from), got = 0;
    buf_clear(out);
    if (buf_reserve(out, size) != 0)
        return fail_nomem(err);
    sessile_status status =
        log->st.table->cache_read(log->handle, from, out->data, size, &got, err);
    if (status)
        return status;
    out->size = got;
    return got == size ? SESSILE_OK : bad(log, err);
}

sessile_status block_read(log_t *log, uint64_t end, log_block *out, sessile_error *err)
{
    unsigned char ad[INDEX_AD];
    trailer t;
    buf *raw = &out->sealed;
    uint64_t from = end > FIRST_READ ? end - FIRST_READ : 0;
    /* If blocks are read in their order, this one begins where the last one ended. */
    if (out->end > 0 && out->end < end && end - out->end <= BLOCK_MOST)
        from = out->end;
    sessile_status status = end - from < TRAILER_SIZE ? bad(log, err) : SESSILE_OK;
    if (!status)
        status = bring(log, from, end, raw, err);
    if (status)
        return status;
    if (read_trailer(&t, (unsigned char *)raw->data + raw->size - TRAILER_SIZE, end) != 0)
        return bad(log, err);
    if (t.start < from) {
        from = t.start;
        status = bring(log, from, end, raw, err);
        if (status)
            return status;
    }
    name_block(log, ad, t.number, t.start);
    buf_clear(&out->plain);
    out->number = t.number;
    out->start = t.start;
    out->end = end;
    if (logkey_open_blob(&log->key, ad, INDEX_AD, raw->data + (t.start - from),
                         (size_t)(end - TRAILER_SIZE - t.start), &out->plain) != 0)
        return out->plain.failed ? fail_nomem(err) : bad(log, err);
    return parse(log, out) == 0 ? SESSILE_OK : bad(log, err);
}

sessile_status block_read_last(log_t *log, uint64_t size, log_block *out,
                               sessile_error *err)
{
    buf raw;
    trailer t;
    sessile_status status = block_read(log, size, out, err);
    if (status != SESSILE_INVALID)
        return status;
    /* Torn, or spoiled: the one before may be whole. */
    buf_init(&raw, log->alloc);
    uint64_t from = size > SEARCHED ? size - SEARCHED : 0;
    sessile_status searched = bring(log, from, size, &raw, err);
    for (size_t at = raw.size > TRAILER_SIZE ? raw.size - TRAILER_SIZE : 0;
         !searched && at-- > 0;) {
        uint64_t end = from + at + TRAILER_SIZE;
        if (read_trailer(&t, (unsigned char *)raw.data + at, end) == 0) {
            error_clear(err);
            status = block_read(log, end, out, err);
            break;
        }
    }
    buf_deinit(&raw);
    return searched ? searched : status;
}

/* ---------------------------------------------------------------------- which is where
 */

int block_set_end(log_t *log, uint64_t number, uint64_t end)
{
    log_index *ix = &log->index;
    if (mem_grow(log->alloc, (void **)&ix->ends, &ix->end_capacity, (size_t)number + 1,
                 sizeof *ix->ends) != 0)
        return -1;
    while (ix->end_count <= number)
        ix->ends[ix->end_count++] = 0;
    ix->ends[number] = end;
    return 0;
}

sessile_status block_find(log_t *log, uint64_t number, uint64_t *end, sessile_error *err)
{
    log_index *ix = &log->index;
    unsigned char raw[TRAILER_SIZE];
    uint64_t at = number;
    trailer t;
    while (at < ix->end_count && ix->ends[at] == 0)
        at++;
    if (at >= ix->end_count)
        return bad(log, err);
    for (; at > number; at = (at & (at - 1)) >= number ? at & (at - 1) : at - 1) {
        size_t got = 0;
        if (ix->ends[at] < TRAILER_SIZE)
            return bad(log, err);
        sessile_status status = log->st.table->cache_read(
            log->handle, ix->ends[at] - TRAILER_SIZE, raw, TRAILER_SIZE, &got, err);
        if (status)
            return status;
        if (got != TRAILER_SIZE || read_trailer(&t, raw, ix->ends[at]) != 0 ||
            t.number != at)
            return bad(log, err);
        ix->ends[at - 1] = t.start;
        ix->ends[at & (at - 1)] = t.jump;
    }
    *end = ix->ends[number];
    return SESSILE_OK;
}

/* ---------------------------------------------------------------------- written */

sessile_status block_put(log_t *log, uint64_t number, uint64_t start,
                         const log_anchor *anchor, buf *out, sessile_error *err)
{
    const log_index_callbacks *callbacks = &log->index.callbacks;
    unsigned char fixed[FIXED_SIZE] = {0}, ad[INDEX_AD], end[TRAILER_SIZE];
    uint64_t jump = 0;
    buf plain, extra, snapshot;
    buf_init(&plain, log->alloc);
    buf_init(&extra, log->alloc);
    buf_init(&snapshot, log->alloc);
    size_t records = LOG_BLOCK * callbacks->record_size;
    sessile_status status = SESSILE_OK;
    if (number > 0)
        status = block_find(log, number & (number - 1), &jump, err);
    if (!status &&
        buf_reserve(&plain, FIXED_SIZE + LOG_BLOCK * (8 + INDEX_TAG) + records) != 0)
        status = fail_nomem(err);
    if (status)
        goto out;
    unsigned char *at = (unsigned char *)plain.data + FIXED_SIZE;
    for (size_t i = 0; i < LOG_BLOCK; i++, at += 8)
        put64(at, log->offsets[number * LOG_BLOCK + i]);
    memcpy(at, log->index.tags[number * LOG_BLOCK], LOG_BLOCK * INDEX_TAG);
    at += LOG_BLOCK * INDEX_TAG;
    status = callbacks->fill(callbacks->arg, number, at, &extra, &snapshot, err);
    if (!status && (extra.failed || snapshot.failed))
        status = fail_nomem(err);
    if (!status && (extra.size > BLOCK_MOST / 4 || /* and the sum fits */
                    snapshot.size > BLOCK_MOST / 4)) {
        status = fail(err, SESSILE_LIMIT, "a block of the index of %s would be too large",
                      log->name);
    }
    if (status)
        goto out;
    put32(fixed, VERSION);
    put32(fixed + 4, (uint32_t)callbacks->record_size);
    put64(fixed + 8, number);
    put64(fixed + 16, anchor->bytes);
    put64(fixed + 24, anchor->in_write);
    memcpy(fixed + 32, anchor->tag, VAULT_TAG);
    put32(fixed + 48, (uint32_t)extra.size);
    put32(fixed + 52, (uint32_t)snapshot.size);
    memcpy(plain.data, fixed, FIXED_SIZE);
    plain.size = FIXED_SIZE + LOG_BLOCK * (8 + INDEX_TAG) + records;
    buf_put(&plain, extra.data, extra.size);
    buf_put(&plain, snapshot.data, snapshot.size);
    if (plain.failed) {
        status = fail_nomem(err);
        goto out;
    }
    name_block(log, ad, number, start);
    status = logkey_seal_blob(&log->key, ad, INDEX_AD, plain.data, plain.size, out, err);
    memcpy(end, MAGIC, 8);
    put64(end + 8, number);
    put64(end + 16, start);
    put64(end + 24, jump);
    buf_put(out, end, TRAILER_SIZE);
    if (!status && out->failed)
        status = fail_nomem(err);
out:
    buf_deinit(&plain);
    buf_deinit(&extra);
    buf_deinit(&snapshot);
    return status;
}
