/*
 * snapshot.c: the data of a session in the index of its log.
 *
 * Owns the bytes of a record (one node), of the links of a block, and of a snapshot: the
 * state of the fold after a block's last entry, without the nodes. The header is not in
 * it, because it is read at each opening; nor is the context, which is built from the
 * newest compaction when it is needed.
 *
 * A snapshot is taken when the fold passes the end of a block, and kept until the block
 * is written. Must never trust what it reads back: anybody can forge a block of a plain
 * store, so every number is checked before it is used as an array index.
 */
#include "session/fold.h"

#include <string.h>

#include "base/text.h"

enum {
    VERSION = 5,
    RECORD_SIZE = SESSION_RECORD,
    LINK_SIZE = 9,
    PART_SIZE = 4 + 32,
    FIXED_SIZE = 104 + MODEL_SIZE,
    SLACK = LOG_BLOCK, /* room for entries behind the last block */
    PARTS_MOST = 1024, /* more messages of one unfinished turn are not kept */
    FACT_SIZE = 13,
    FACTS_MOST = 65536 /* with more in force, the index ends */
};

/* ------------------------------------------------------------------ numbers */

static void put32(unsigned char **to, uint32_t n)
{
    for (int i = 0; i < 4; i++)
        *(*to)++ = (unsigned char)(n >> (8 * i));
}

static void put64(unsigned char **to, uint64_t n)
{
    put32(to, (uint32_t)n);
    put32(to, (uint32_t)(n >> 32));
}

static uint32_t get32(const unsigned char **from)
{
    const unsigned char *at = *from;

    *from += 4;
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

static uint64_t get64(const unsigned char **from)
{
    uint64_t low = get32(from);

    return low | (uint64_t)get32(from) << 32;
}

static void put_usage(unsigned char **to, const sessile_usage *u)
{
    put64(to, (uint64_t)u->input);
    put64(to, (uint64_t)u->output);
    put64(to, (uint64_t)u->cache_read);
    put64(to, (uint64_t)u->cache_write);
}

static void get_usage(const unsigned char **from, sessile_usage *u)
{
    u->input = (int64_t)get64(from);
    u->output = (int64_t)get64(from);
    u->cache_read = (int64_t)get64(from);
    u->cache_write = (int64_t)get64(from);
}

/* ------------------------------------------------------------------ snapshots taken */

static void snapshot_free(session_core *s, size_t i)
{
    mem_free(s->alloc, s->index.snapshots[i].data, s->index.snapshots[i].size);
    s->index.snapshots[i] = (session_snapshot){NULL, 0};
}

void fold_snapshots_cut(session_core *s, size_t blocks)
{
    while (s->index.snapshot_count &&
           s->index.snapshot_first + s->index.snapshot_count > blocks)
        snapshot_free(s, --s->index.snapshot_count);
}

void fold_snapshots_free(session_core *s)
{
    fold_snapshots_cut(s, 0);
    if (s->index.snapshots)
        mem_free(s->alloc, s->index.snapshots,
                 s->index.snapshot_capacity * sizeof *s->index.snapshots);
    s->index.snapshots = NULL;
    s->index.snapshot_capacity = 0;
}

static void put_facts(unsigned char **to, const facts *f, const fact *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        put32(to, list[i].entry);
        put32(to, list[i].about);
        put32(to, list[i].name_size);
        *(*to)++ = (unsigned char)(list[i].kind | list[i].off << 7);
    }
    for (size_t i = 0; i < count; i++) {
        memcpy(*to, fact_name(f, &list[i]), list[i].name_size);
        *to += list[i].name_size;
    }
}

void fold_snapshot(session_core *s)
{
    const allocator *a = s->alloc;
    size_t block = s->tree.node_count / LOG_BLOCK - 1;
    unsigned char *data, *at;
    size_t size, fact_count = 0, names = 0;
    fact *in_force = NULL;

    if (!s->index.takes_snapshots)
        return;
    if (!s->index.snapshot_count)
        s->index.snapshot_first = block;
    data = NULL;
    size = 0;
    if (!facts_newest(&s->fold.facts, 0, a, &in_force, &fact_count)) {
        for (size_t i = 0; i < fact_count; i++)
            names += in_force[i].name_size;
        size = FIXED_SIZE + s->fold.title_size + s->fold.part_count * PART_SIZE +
               fact_count * FACT_SIZE + names;
    }
    if (size && fact_count <= FACTS_MOST &&
        block == s->index.snapshot_first + s->index.snapshot_count &&
        s->fold.part_count <= PARTS_MOST &&
        !mem_grow(a, (void **)&s->index.snapshots, &s->index.snapshot_capacity,
                  s->index.snapshot_count + 1, sizeof *s->index.snapshots))
        data = mem_alloc(a, size);
    if (!data) { /* the index ends here, for this handle */
        s->index.takes_snapshots = 0;
        mem_free(a, in_force, fact_count * sizeof *in_force);
        return;
    }
    at = data;
    put32(&at, VERSION);
    put32(&at, s->tree.head);
    put_usage(&at, &s->fold.usage);
    put32(&at, (uint32_t)s->fold.part_count);
    put64(&at, (uint64_t)s->fold.written_ms);
    put64(&at, (uint64_t)s->fold.said_ms);
    put64(&at, (uint64_t)s->fold.begun_ms);
    put32(&at, s->refusals.last ? 1 : 0);
    put32(&at, (uint32_t)s->fold.title_size);
    /* of none, it would be other bytes in each process */
    put64(&at, s->refusals.last ? hash64_bare(s->refusals.last) : 0);
    put32(&at, (uint32_t)fact_count);
    put32(&at, (uint32_t)names);
    memcpy(at, s->counting.model, MODEL_SIZE);
    at += MODEL_SIZE;
    memset(at, 0, (size_t)(data + FIXED_SIZE - at));
    at = data + FIXED_SIZE;
    if (s->fold.title_size)
        memcpy(at, s->fold.title, s->fold.title_size);
    at += s->fold.title_size;
    for (size_t i = 0; i < s->fold.part_count; i++) {
        put32(&at, s->fold.parts[i].id);
        put_usage(&at, &s->fold.parts[i].usage);
    }
    put_facts(&at, &s->fold.facts, in_force, fact_count);
    mem_free(a, in_force, fact_count * sizeof *in_force);
    s->index.snapshots[s->index.snapshot_count++] = (session_snapshot){data, size};
}

/* ------------------------------------------------------------------ given to the log */

static sessile_status fill(void *arg, uint64_t block, void *records, buf *extra,
                           buf *snapshot, sessile_error *err)
{
    session_core *s = arg;
    size_t first = (size_t)block * LOG_BLOCK;
    unsigned char *to = records;

    if (block < s->index.snapshot_first ||
        block - s->index.snapshot_first >= s->index.snapshot_count ||
        first + LOG_BLOCK > s->tree.node_count ||
        (block < s->index.absent_blocks && s->index.absent[block]))
        return fail(err, SESSILE_NOTFOUND, "this block's end was not seen");
    for (size_t i = first; i < first + LOG_BLOCK; i++) {
        const node *n = &s->tree.nodes[i];
        put32(&to, n->parent);
        put32(&to, n->tokens);
        put32(&to, n->turn);
        put32(&to, n->link_count);
        put32(&to, n->events);
        put32(&to, n->messages);
        put32(&to, n->context_at);
        put32(&to, n->vars_at);
        *to++ = n->type;
        *to++ = n->role;
        *to++ = n->flags;
        *to++ = n->marks;
        put64(&to, (uint64_t)n->time_ms);
        for (uint32_t k = 0; k < n->link_count; k++) {
            const message_link *l = &s->tree.links[n->link + k];
            unsigned char raw[LINK_SIZE], *at = raw;
            put64(&at, hash64_bare(l->id));
            *at = (unsigned char)(l->is_result | l->in_call << 1);
            buf_put(extra, raw, LINK_SIZE);
        }
    }
    buf_put(snapshot, s->index.snapshots[block - s->index.snapshot_first].data,
            s->index.snapshots[block - s->index.snapshot_first].size);
    return SESSILE_OK;
}

static void written(void *arg, uint64_t block)
{
    session_core *s = arg;
    size_t gone = 0;

    if (block == UINT64_MAX) { /* there will be no index */
        s->index.takes_snapshots = 0;
        fold_snapshots_free(s);
        return;
    }
    while (gone < s->index.snapshot_count && s->index.snapshot_first + gone < block)
        snapshot_free(s, gone++);
    if (gone) {
        s->index.snapshot_count -= gone;
        s->index.snapshot_first += gone;
        memmove(s->index.snapshots, s->index.snapshots + gone,
                s->index.snapshot_count * sizeof *s->index.snapshots);
    }
}

/* ---------------------------------------------------------------------- undone */

static sessile_status strange(sessile_error *err)
{
    return fail(err, SESSILE_INVALID, "the index holds what no session is");
}

/* Memory for count entries, of which only the header is there. */
static sessile_status make_room(session_core *s, size_t count, sessile_error *err)
{
    const allocator *a = s->alloc;
    size_t blocks = count / LOG_BLOCK;
    node *nodes = s->tree.nodes;

    s->index.absent = mem_alloc(a, blocks);
    if (!s->index.absent)
        return fail_nomem(err);
    memset(s->index.absent, 1, blocks);
    s->index.absent_blocks = s->index.absent_count = blocks;
    if (s->tree.node_capacity < count + SLACK) {
        nodes = mem_alloc(a, (count + SLACK) * sizeof *nodes);
        if (!nodes)
            return fail_nomem(err);
        nodes[0] = s->tree.nodes[0];
        mem_free(a, s->tree.nodes, s->tree.node_capacity * sizeof *nodes);
        s->tree.nodes = nodes;
        s->tree.node_capacity = count + SLACK;
    }
    s->tree.node_count = count;
    return SESSILE_OK;
}

static sessile_status get_parts(session_core *s, const unsigned char *from, size_t count,
                                sessile_error *err)
{
    if (mem_grow(s->alloc, (void **)&s->fold.parts, &s->fold.part_capacity, count,
                 sizeof *s->fold.parts))
        return fail_nomem(err);
    for (size_t i = 0; i < count; i++) {
        s->fold.parts[i].id = get32(&from);
        get_usage(&from, &s->fold.parts[i].usage);
    }
    s->fold.part_count = count;
    return SESSILE_OK;
}

/* Their records, then their names: exactly size bytes. */
static sessile_status get_facts(session_core *s, const unsigned char *from, size_t size,
                                size_t fact_count, size_t names, uint64_t count,
                                sessile_error *err)
{
    const char *name = (const char *)from + fact_count * FACT_SIZE;

    if (fact_count > FACTS_MOST || fact_count * FACT_SIZE > size ||
        names != size - fact_count * FACT_SIZE)
        return strange(err);
    facts_clear(&s->fold.facts);
    for (size_t i = 0; i < fact_count; i++) {
        sessile_id entry = get32(&from), about = get32(&from);
        uint32_t name_size = get32(&from);
        uint8_t kind = *from & 0x7f, off = *from >> 7;
        from++;
        if (entry >= count || about > entry || name_size > names || kind < FACT_LABEL ||
            kind > FACT_PENDING_RUN)
            return strange(err);
        if (facts_add(&s->fold.facts, (fact_kind)kind, entry, about, name, name_size,
                      off))
            return fail_nomem(err);
        name += name_size;
        names -= name_size;
    }
    return names ? strange(err) : SESSILE_OK;
}

static sessile_status restore(void *arg, uint64_t count, const void *snapshot,
                              size_t size, sessile_error *err)
{
    session_core *s = arg;
    const unsigned char *from = snapshot;
    uint32_t part_count, title_size, refused, fact_count, names;
    sessile_status status;
    size_t rest;
    uint64_t hash;
    char *title, model[MODEL_SIZE];

    if (s->tree.node_count != 1 || size < FIXED_SIZE || get32(&from) != VERSION)
        return strange(err);
    s->tree.head = get32(&from);
    get_usage(&from, &s->fold.usage);
    part_count = get32(&from);
    s->fold.written_ms = (int64_t)get64(&from);
    s->fold.said_ms = (int64_t)get64(&from);
    s->fold.begun_ms = (int64_t)get64(&from);
    refused = get32(&from);
    title_size = get32(&from);
    hash = get64(&from);
    fact_count = get32(&from);
    names = get32(&from);
    memcpy(model, from, MODEL_SIZE);
    model[MODEL_SIZE - 1] = 0;
    if (s->tree.head >= count || part_count > PARTS_MOST ||
        title_size > size - FIXED_SIZE ||
        (size_t)part_count * PART_SIZE > size - FIXED_SIZE - title_size)
        return strange(err);
    rest = size - FIXED_SIZE - title_size - (size_t)part_count * PART_SIZE;
    s->refusals.last = refused ? hash64_veil(hash) : 0;
    fold_model(s, model);
    from = (const unsigned char *)snapshot + FIXED_SIZE;
    title = mem_dup(s->alloc, from, title_size);
    if (!title)
        return fail_nomem(err);
    if (s->fold.title)
        mem_free(s->alloc, s->fold.title, s->fold.title_size + 1);
    s->fold.title = title;
    s->fold.title_size = title_size;
    from += title_size;
    status = get_parts(s, from, part_count, err);
    from += (size_t)part_count * PART_SIZE;
    if (!status)
        status = get_facts(s, from, rest, fact_count, names, count, err);
    if (!status)
        status = make_room(s, (size_t)count, err);
    s->context.stale = 1;
    meter_forget(s);
    s->index.restored = 1;
    return status;
}

static int get_node(node *n, size_t id, const unsigned char *from)
{
    n->parent = get32(&from);
    n->tokens = get32(&from);
    n->turn = get32(&from);
    n->link_count = get32(&from);
    n->events = get32(&from);
    n->messages = get32(&from);
    n->context_at = get32(&from);
    n->vars_at = get32(&from);
    n->type = *from++;
    n->role = *from++;
    n->flags = *from++;
    n->marks = *from++;
    n->time_ms = (int64_t)get64(&from);
    return (id ? n->parent < id : n->parent == SESSILE_NO_ID) && n->context_at <= id &&
           n->vars_at <= id && n->messages <= id && n->type <= ENTRY_TOMBSTONE;
}

static sessile_status take_block(void *arg, uint64_t block, const void *records,
                                 const void *extra, size_t extra_size, sessile_error *err)
{
    session_core *s = arg;
    const unsigned char *from = records, *link = extra;
    size_t first = (size_t)block * LOG_BLOCK, left = extra_size / LINK_SIZE;
    size_t links = s->tree.link_count;

    if (block >= s->index.absent_blocks || !s->index.absent[block])
        return SESSILE_OK;
    if (extra_size % LINK_SIZE || left > UINT32_MAX - links)
        return strange(err);
    if (mem_grow(s->alloc, (void **)&s->tree.links, &s->tree.link_capacity, links + left,
                 sizeof *s->tree.links))
        return fail_nomem(err);
    for (size_t i = first; i < first + LOG_BLOCK; i++, from += RECORD_SIZE) {
        node n;
        memset(&n, 0, sizeof n);
        if (!get_node(&n, i, from) || n.link_count > left)
            return strange(err);
        n.link = (uint32_t)links;
        left -= n.link_count;
        for (uint32_t k = 0; k < n.link_count; k++) {
            message_link l = {.id = hash64_veil(get64(&link))};
            l.is_result = *link & 1;
            l.in_call = *link++ >> 1 & 1;
            s->tree.links[links++] = l;
        }
        s->tree.nodes[i] = n;
    }
    if (left)
        return strange(err);
    s->tree.link_count = links;
    s->index.absent[block] = 0;
    s->index.absent_count--;
    s->index.blocks_taken++;
    return SESSILE_OK;
}

/* Inside a fold, where nothing can be read again: the caller of the scan reloads. */
sessile_status fold_load(session_core *s, sessile_id id, sessile_error *err)
{
    size_t block = id / LOG_BLOCK;
    sessile_status status;

    if (id == 0 || block >= s->index.absent_blocks || !s->index.absent[block])
        return SESSILE_OK;
    status = log_load(s->log, id, err);
    if (status && status != SESSILE_NOMEM) {
        s->index.failed = 1;
        status = fail(err, SESSILE_IO, "its index cannot be read");
    }
    return status;
}

static void reset(void *arg)
{
    session_core *s = arg;

    fold_forget(s);
}

void fold_forget(session_core *s)
{
    const allocator *a = s->alloc;

    fold_snapshots_cut(s, 0);
    fold_forget_parts(s);
    mem_free(a, s->index.absent, s->index.absent_blocks);
    s->index.absent = NULL;
    s->index.absent_blocks = s->index.absent_count = 0;
    if (s->fold.title)
        mem_free(a, s->fold.title, s->fold.title_size + 1);
    s->fold.title = NULL;
    s->fold.title_size = 0;
    s->tree.node_count = s->tree.link_count = 0;
    child_links_forget(s);
    s->tree.head = s->tree.base = 0;
    meter_forget(s);
    memset(s->counting.model, 0, sizeof s->counting.model);
    atomic_store(&s->counting.unit, -1);
    memset(&s->fold.usage, 0, sizeof s->fold.usage);
    s->fold.written_ms = s->fold.said_ms = s->fold.begun_ms = 0;
    s->refusals.last = s->refusals.last_fallback = 0;
    s->compacting.last_at = 0;
    facts_clear(&s->fold.facts);
    context_clear(&s->context.at_head);
    s->context.at_head.upto = 0;
    s->context.stale = 0;
    s->index.restored = s->index.failed = 0;
}

log_index_callbacks session_index_callbacks(session_core *s, int fresh)
{
    return (log_index_callbacks){.arg = s,
                                 .record_size = RECORD_SIZE,
                                 .fresh = fresh,
                                 .fill = fill,
                                 .restore = restore,
                                 .take = take_block,
                                 .reset = reset,
                                 .written = written};
}
