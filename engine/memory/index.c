/*
 * index.c: the index of a memory's log: what opening would find by reading every line.
 *
 * The problem. Opening a memory of 100,000 entries from its lines takes a second: each is
 * opened, parsed, cut into words and stemmed. None of that gives another result the next
 * time.
 *
 * The choice. The log keeps an index for whoever asks (engine/log/README.md, section 5):
 * a block for every 256 entries, sealed with the log's own key, appended when these
 * entries are durable. A block of a memory has, for each entry, what it did to the fold:
 * of a memory its times, key, sources and the terms of its text; of a verdict its ids; of
 * embeddings their bytes. Opening takes the blocks in their order and does all of it
 * again, with the functions that the lines would have called. So states, replaced and
 * deleted entries, and what was live at any earlier moment come out as they would from
 * the lines, and the only things left out are JSON, unsealing line after line, and words.
 *
 * Rejected: to keep the result, which entries are live, instead of what led to it. It
 * changes with every verdict, also for old entries, so each block would have to repeat
 * it for all before.
 *
 * Why it can be used without being believed:
 *
 *   - A block opens only under the key of this log, for this number and place. The last
 *     one counts only if its last entry is in the log with the tag that it says.
 *   - Tags say nothing of the blocks between, which could be of another history of the
 *     same log: a backup that was continued. So the fold hashes all texts, one after the
 *     other, with a key that only the log has (`chain`). Each block says what the hash
 *     was before it and after it, and they must meet.
 *   - Anybody can write a block of a plain log. So every number is checked before it is
 *     used, as in an entry of the log. A hit is always read from the log.
 *   - Terms are those of one version of the words: their fingerprint is in each block.
 *   - Whatever is wrong, the fold starts again from the lines, and the index is rebuilt.
 *
 * A block has 16 MiB at most. What is larger (vectors of many dimensions, many long
 * texts) is left to the log: the block says of an entry that it is to be read there.
 */
#include <string.h>

#include "base/wire.h"
#include "memory/fold.h"
#include "session/fold.h"

static sessile_status strange(sessile_error *err)
{
    return fail(err, SESSILE_INVALID, "the index holds what no memory is");
}

/* ------------------------------------------------------------------ taken back */

/* A block on its way into the fold. */
typedef struct taking {
    memory_fold *f;
    block_record records[LOG_BLOCK];
    const block_record *r; /* of the entry */
    sessile_id id;
    wire parts;
} taking;

/* r.count ids. */
static sessile_status take_ids(taking *t, sessile_id *ids, sessile_error *err)
{
    if (t->r->count > SESSILE_MEMORY_NAMED_MAX)
        return strange(err);
    for (uint32_t i = 0; i < t->r->count; i++)
        ids[i] = wire_u32(&t->parts);
    return t->parts.bad ? strange(err) : SESSILE_OK;
}

static sessile_status take_memory(taking *t, sessile_error *err)
{
    memory_fold *f = t->f;
    uint32_t record = (uint32_t)f->states.count;
    sessile_id replaces[SESSILE_MEMORY_NAMED_MAX];
    states_entry s = {.id = t->id,
                      .time_ms = t->r->time_ms,
                      .expires_ms = t->r->expires_ms,
                      .key = wire_text(&t->parts),
                      .session = t->r->session,
                      .replaces = replaces,
                      .replace_count = t->r->count,
                      .importance = t->r->importance / (double)UINT16_MAX,
                      .pending = (t->r->flags & BLOCK_PENDING) != 0,
                      .erased = (t->r->flags & BLOCK_ERASED) != 0,
                      .kind = t->r->what,
                      .source = t->r->source};
    sessile_status status = take_ids(t, replaces, err);

    if (status)
        return status;
    if (record >= f->postings.count || t->r->importance > UINT16_MAX ||
        !memory_kind_name((sessile_memory_kind)s.kind) ||
        !memory_source_name((sessile_memory_source)s.source))
        return strange(err);
    if (states_write(&f->states, &s))
        return fail_nomem(err);
    if (states_is_live(&f->states, record))
        postings_set_live(&f->postings, record, 1);
    return SESSILE_OK;
}

/* A verdict may name more entries than one call does. */
static sessile_status take_verdict(taking *t, sessile_error *err)
{
    states *s = &t->f->states;

    if (!memory_verdict_name((sessile_memory_verdict_kind)t->r->what))
        return strange(err);
    for (uint32_t i = 0; i < t->r->count; i++) {
        uint32_t record = states_find(s, wire_u32(&t->parts));
        if (t->parts.bad || record == STATE_NONE)
            return strange(err);
        if (states_judge(s, t->id, t->r->time_ms, record,
                         (sessile_memory_verdict_kind)t->r->what))
            return fail_nomem(err);
    }
    t->f->verdicts++;
    return SESSILE_OK;
}

static sessile_status take_vectors(taking *t, sessile_error *err)
{
    sessile_slice name = wire_text(&t->parts);
    size_t dims = t->r->dims, one = sizeof(sessile_id) + dims;
    memory_model *m;

    if (t->parts.bad || dims < 1 || dims > VECTOR_DIMS_MAX ||
        t->r->count > (size_t)(t->parts.end - t->parts.at) / one)
        return strange(err);
    m = memory_fold_make_model(t->f, name, dims);
    if (!m)
        return fail_nomem(err);
    for (uint32_t i = 0; i < t->r->count; i++) {
        uint32_t record = states_find(&t->f->states, wire_u32(&t->parts));
        const int8_t *values = (const int8_t *)t->parts.at;
        float scale = vector_good(values, dims) ? vector_scale(values, dims) : 0;
        if (record == STATE_NONE || scale == 0)
            return strange(err);
        if (vectors_put(&m->vectors, record, values, scale))
            return fail_nomem(err);
        t->parts.at += dims;
    }
    m->newest = t->id;
    return SESSILE_OK;
}

/* An entry that the block left to the log. */
static sessile_status take_line(taking *t, sessile_error *err)
{
    memory_fold *f = t->f;
    sessile_status status;
    buf text;

    buf_init(&text, f->alloc);
    status = log_read(*f->log, t->id, &text, err);
    if (!status)
        status = memory_fold_take(f, t->id, text.data, text.size, err);
    buf_wipe(&text);
    return status;
}

static sessile_status take_record(taking *t, sessile_error *err)
{
    memory_fold *f = t->f;

    switch (t->r->op) {
    case BLOCK_NOTHING:
        return SESSILE_OK;
    case BLOCK_MEMORY:
        return take_memory(t, err);
    case BLOCK_VERDICT:
        return take_verdict(t, err);
    case BLOCK_HEARD:
        return map_put(&f->heard, t->r->session, t->r->count) ? fail_nomem(err)
                                                              : SESSILE_OK;
    case BLOCK_VECTORS:
        return take_vectors(t, err);
    case BLOCK_CONSENT:
        f->consent = t->id;
        f->consented = (t->r->flags & BLOCK_GIVEN) != 0;
        return SESSILE_OK;
    case BLOCK_REFUSAL:
        f->refusals++;
        return SESSILE_OK;
    case BLOCK_READ:
        return take_line(t, err);
    default:
        return strange(err);
    }
}

/* The terms of the block's memories, which are not live yet. */
static sessile_status take_terms(memory_fold *f, const block_head *head,
                                 const block_record *records, sessile_error *err)
{
    uint16_t lengths[LOG_BLOCK][FIELDS];
    uint32_t count = 0;

    for (const block_record *r = records; r < records + LOG_BLOCK; r++)
        if (r->op == BLOCK_MEMORY)
            memcpy(lengths[count++], r->lengths, sizeof r->lengths);
    if (postings_extend(&f->postings, lengths, count))
        return fail_nomem(err);
    for (int field = 0; field < FIELDS; field++) {
        int result = postings_unpack(&f->postings, field, count, head->terms[field].data,
                                     head->terms[field].size);
        if (result)
            return result < 0 ? fail_nomem(err) : strange(err);
    }
    return SESSILE_OK;
}

static sessile_status take_whole(memory_fold *f, const block_head *head,
                                 const void *records, sessile_error *err)
{
    uint64_t block = f->restoring.blocks;
    sessile_status status;
    taking t;

    t.f = f;
    block_read_records(t.records, records);
    status = take_terms(f, head, t.records, err);
    wire_init(&t.parts, head->parts.data, head->parts.size);
    for (size_t i = 0; !status && i < LOG_BLOCK; i++) {
        t.id = (sessile_id)(block * LOG_BLOCK + i);
        t.r = &t.records[i];
        status = t.id || t.r->op == BLOCK_NOTHING ? take_record(&t, err) : strange(err);
    }
    if (!status && (t.parts.bad || t.parts.at != t.parts.end ||
                    f->states.count != f->postings.count))
        status = strange(err);
    if (status)
        return status;
    f->blocks.chain = head->chain;
    f->restoring.blocks++;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ callbacks */

static sessile_status take(void *arg, uint64_t block, const void *records,
                           const void *extra, size_t extra_size, sessile_error *err)
{
    memory_fold *f = arg;
    block_head head;

    if (block < f->restoring.blocks)
        return SESSILE_OK;
    if (block > f->restoring.blocks || block_read_head(&head, extra, extra_size) ||
        head.words != f->blocks.words || head.chain_before != f->blocks.chain ||
        head.first_record != f->states.count)
        return strange(err);
    if (!head.reads)
        return take_whole(f, &head, records, err);
    buf_clear(&f->restoring.block);
    buf_put(&f->restoring.block, records, (size_t)LOG_BLOCK * SESSION_RECORD);
    buf_put(&f->restoring.block, extra, extra_size);
    return f->restoring.block.failed ? fail_nomem(err) : SESSILE_OK;
}

/* After the log has learnt where the block's entries are. */
static sessile_status take_kept(memory_fold *f, sessile_error *err)
{
    size_t records = (size_t)LOG_BLOCK * SESSION_RECORD;
    block_head head;
    sessile_status status;

    if (f->restoring.block.size < records ||
        block_read_head(&head, f->restoring.block.data + records,
                        f->restoring.block.size - records))
        return strange(err);
    status = take_whole(f, &head, f->restoring.block.data, err);
    buf_wipe(&f->restoring.block);
    return status;
}

/* All blocks, the first one first: later ones build on them. */
static sessile_status restore(void *arg, uint64_t count, const void *snapshot,
                              size_t size, sessile_error *err)
{
    memory_fold *f = arg;
    uint64_t blocks = count / LOG_BLOCK;
    sessile_status status = SESSILE_OK;

    (void)snapshot;
    if (f->count != 1 || size != 0 || !f->log)
        return strange(err);
    f->blocks.chain = 0; /* block 0 has the header too */
    f->restoring.blocks = 0;
    if (states_reserve(&f->states, (size_t)count))
        return fail_nomem(err);
    for (uint64_t k = 0; !status && k < blocks; k++) {
        status = log_load(*f->log, (sessile_id)(k * LOG_BLOCK), err);
        if (!status && f->restoring.blocks == k)
            status = take_kept(f, err);
    }
    if (status && status != SESSILE_NOMEM)
        return strange(err);
    if (status)
        return status;
    f->count = (sessile_id)count;
    f->blocks.first = blocks;
    blocks_start(&f->blocks, &f->postings);
    return SESSILE_OK;
}

static sessile_status fill(void *arg, uint64_t block, void *records, buf *extra,
                           buf *snapshot, sessile_error *err)
{
    const blocks *b = &((memory_fold *)arg)->blocks;
    size_t size = (size_t)LOG_BLOCK * SESSION_RECORD;
    const block_built *built;

    (void)snapshot;
    if (block < b->first || block - b->first >= b->built_count)
        return fail(err, SESSILE_NOTFOUND, "this block's entries were not seen");
    built = &b->built[block - b->first];
    memcpy(records, built->data, size);
    buf_put(extra, built->data + size, built->size - size);
    return SESSILE_OK;
}

static void reset(void *arg)
{
    memory_fold_forget(arg);
}

static void written(void *arg, uint64_t block)
{
    memory_fold *f = arg;
    if (block == UINT64_MAX) /* there will be no index */
        blocks_stop(&f->blocks);
    blocks_drop(&f->blocks, block);
}

log_index_callbacks memory_index_callbacks(memory_fold *f, int fresh)
{
    return (log_index_callbacks){.arg = f,
                                 .record_size = SESSION_RECORD,
                                 .fresh = fresh,
                                 .fill = fill,
                                 .restore = restore,
                                 .take = take,
                                 .reset = reset,
                                 .written = written};
}
