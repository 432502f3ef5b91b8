/*
 * fold.c: folds entries, one at a time, into a tree, a head, totals and a context.
 *
 * Owns what a session remembers of each entry. Must never read from the log, because it
 * runs as the visitor of a scan. (It may read the index, to load an old parent.) Must
 * never fold half an entry: an entry is folded whole or not at all, so that a scan that
 * ran out of memory can continue later.
 *
 * The context at the head is kept up to date as long as that is one push: a message that
 * follows the entry for which the context was built. Anything else (a compaction, a move
 * of the head) leaves the context behind. A reader sees that its `upto` is not the head
 * and rebuilds it (context_at.c). Rejected: deciding here what a move of the head means
 * for the context, which would be a second definition of a context.
 */
#include "session/fold.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "tokens/tokens.h"

/* ------------------------------------------------------------------ one entry */

/* What folding one entry is about to change. */
typedef struct change {
    node n;
    entry e;
    sessile_id head; /* SESSILE_NO_ID: stays */
    char *title;     /* NULL: stays; else owned until it is taken */
    size_t title_size;
    sessile_usage usage; /* of a message or a turn */
    int has_usage;
    sessile_usage total;    /* of a turn: of all its model calls */
    sessile_id turn_first;  /* turn: its first message */
    char model[MODEL_SIZE]; /* that it names, or "" */
} change;

static sessile_status take_title(fold *f, change *c, json title, sessile_error *err)
{
    const allocator *a = f->s->alloc;
    sessile_status status = SESSILE_OK;
    buf text;

    if (title.type != JSON_STRING)
        return SESSILE_OK;
    buf_init(&text, a);
    if (json_string(&text, title) || text.failed)
        status = fail_nomem(err);
    else {
        c->title = mem_dup(a, text.size ? text.data : "", text.size);
        c->title_size = text.size;
        if (!c->title)
            status = fail_nomem(err);
    }
    buf_deinit(&text);
    return status;
}

/* The name of a model, as far as there is room. */
static int take_model(fold *f, change *c, json name)
{
    int failed;
    buf text;

    if (name.type != JSON_STRING)
        return 0;
    buf_init(&text, f->s->alloc);
    failed = json_string(&text, name) || text.failed;
    if (!failed && text.size && !memchr(text.data, 0, text.size)) {
        size_t size = utf8_floor(text.data, text.size, MODEL_SIZE - 1);
        memcpy(c->model, text.data, size);
    }
    buf_deinit(&text);
    return failed;
}

static char *dup_name(const allocator *a, sessile_slice name)
{
    return mem_dup(a, name.size ? name.data : "", name.size);
}

static int same_name(const char *data, size_t size, const buf *name)
{
    return size == name->size && (size == 0 || !memcmp(data, name->data, size));
}

/* What the header says of another session, the first time that it is folded. */
static void take_link(header_link *to, header_link *from)
{
    const allocator *a = from->id.alloc;

    if (to->entry != SESSILE_NO_ID || from->entry == SESSILE_NO_ID)
        return;
    header_link_deinit(to);
    *to = *from;
    header_link_init(from, a);
}

/* The header: its names are ours, or, when the handle was opened by the name of a file,
 * become ours if they belong there. */
static sessile_status fold_header(fold *f, change *c, sessile_error *err)
{
    session_core *s = f->s;
    const allocator *a = s->alloc;
    sessile_status status;
    header h;

    header_init(&h, a);
    status = header_read(&h, &c->e, err);
    if (status)
        goto out;
    if (!s->identity.id) {
        s->identity.kind = h.kind;
        s->identity.id = dup_name(a, (sessile_slice){h.id.data, h.id.size});
        s->identity.agent = dup_name(a, (sessile_slice){h.agent.data, h.agent.size});
        s->identity.user = dup_name(a, (sessile_slice){h.user.data, h.user.size});
        s->identity.id_size = h.id.size;
        s->identity.agent_size = h.agent.size;
        s->identity.user_size = h.user.size;
        if (!s->identity.id || !s->identity.agent || !s->identity.user) {
            status = fail_nomem(err);
            goto out;
        }
    } else if (h.kind != s->identity.kind ||
               !same_name(s->identity.id, s->identity.id_size, &h.id) ||
               !same_name(s->identity.agent, s->identity.agent_size, &h.agent) ||
               !same_name(s->identity.user, s->identity.user_size, &h.user)) {
        char shown[NAME_SHOWN];
        name_show((sessile_slice){h.id.data, h.id.size}, shown);
        status =
            fail(err, SESSILE_DAMAGED,
                 "its header says that it is session %s of another name: its file was "
                 "moved or replaced; put it back under its own name",
                 shown);
        goto out;
    }
    s->header.created_ms = h.created_ms;
    memcpy(s->header.nonce, h.nonce, sizeof s->header.nonce);
    s->header.ttl_ms = h.ttl_ms;
    take_link(&s->header.origin, &h.origin);
    take_link(&s->header.parent, &h.parent);
    json metadata = json_get(c->e.data, "metadata");
    if (metadata.type == JSON_OBJECT && !s->header.metadata) {
        s->header.metadata = mem_dup(a, metadata.at, metadata.size);
        s->header.metadata_size = metadata.size;
        if (!s->header.metadata) {
            status = fail_nomem(err);
            goto out;
        }
    }
    status = take_title(f, c, json_get(c->e.data, "title"), err);
out:
    header_deinit(&h);
    return status;
}

static sessile_status fold_message(fold *f, change *c, sessile_error *err)
{
    session_core *s = f->s;
    const allocator *a = s->alloc;
    size_t first = s->tree.link_count;
    int64_t tokens = c->e.tokens;
    sessile_status status;
    const char *text;
    size_t size;
    message m;

    if (f->own && c->e.data.size > s->store->limits.message)
        return fail(err, SESSILE_LIMIT,
                    "the message has %zu bytes, the limit [message] is %" PRIu64
                    ": shorten it, or raise the limit",
                    c->e.data.size, s->store->limits.message);
    status = message_read(&m, c->e.data.at, c->e.data.size, &s->tree.links,
                          &s->tree.link_count, &s->tree.link_capacity, a, err);
    if (status == SESSILE_NOMEM)
        return status;
    if (status)
        return fail(err, SESSILE_DAMAGED, "what it holds is no message");
    if (s->tree.link_count > UINT32_MAX)
        return fail(err, SESSILE_LIMIT, "a session holds at most 2^32 calls and results");
    if (tokens < 0)
        tokens = tokens_of_message(&m);
    else if (json_plain(c->e.token_source, &text, &size))
        c->n.marks |= (uint8_t)(token_unit_of(text, size) * NODE_UNIT);
    c->n.tokens = tokens > UINT32_MAX ? UINT32_MAX : (uint32_t)tokens;
    c->n.link = (uint32_t)first;
    c->n.link_count = (uint32_t)(s->tree.link_count - first);
    c->n.time_ms = message_time(m.timestamp, c->e.time_ms);
    c->n.role = (uint8_t)m.role;
    c->n.flags = (uint8_t)m.flags;
    c->n.events++;
    c->n.messages++;
    if (m.flags & MESSAGE_STARTS_TURN)
        c->n.turn++;
    c->has_usage = usage_get(m.usage, &c->usage);
    if (c->has_usage && usage_total(&c->usage) > 0 &&
        (m.role == SESSILE_ASSISTANT || m.role == SESSILE_MODEL))
        c->n.marks |= NODE_HAS_USAGE;
    /* A turn replaces only what is in its own write. */
    if (s->fold.part_count && s->log && s->fold.parts[0].id < log_write_first(s->log))
        s->fold.part_count = 0;
    if (c->has_usage && mem_grow(a, (void **)&s->fold.parts, &s->fold.part_capacity,
                                 s->fold.part_count + 1, sizeof *s->fold.parts))
        return fail_nomem(err);
    c->head = c->e.id;
    return SESSILE_OK;
}

static int read_id(json value, sessile_id *out)
{
    const char *text;
    size_t size;

    return json_plain(value, &text, &size) ? id_parse(text, size, out) : -1;
}

static sessile_status fold_turn(fold *f, change *c, sessile_error *err)
{
    uint64_t count;

    if (read_id(json_get(c->e.data, "first"), &c->turn_first) ||
        c->turn_first >= c->e.id || json_uint(json_get(c->e.data, "count"), &count))
        return fail(err, SESSILE_DAMAGED, "the turn does not say which messages it has");
    /* Its messages stand right before it. What was lost of them is not on the path. */
    if (c->e.id - c->turn_first == count)
        for (sessile_id id = c->turn_first; id < c->e.id; id++) {
            sessile_status status = fold_load(f->s, id, err);
            if (status)
                return status;
            count -= f->s->tree.nodes[id].type == ENTRY_TOMBSTONE;
        }
    if (count > c->n.events || count > c->n.messages)
        return fail(err, SESSILE_DAMAGED,
                    "the turn has %" PRIu64 " messages, and fewer are on its path",
                    count);
    c->n.events = c->n.events - (uint32_t)count + 1;
    /* A turn of several model calls reports the last one, whose input is the context's
     * size, and under "total" the sum of all. */
    c->has_usage = usage_of_turn(c->e.data, &c->usage, &c->total);
    if (c->has_usage && usage_total(&c->usage) > 0)
        c->n.marks |= NODE_HAS_USAGE;
    if (take_model(f, c, json_get(c->e.data, "model")))
        return fail_nomem(err);
    if (json_get(c->e.data, "policy").type == JSON_FALSE)
        c->n.marks |= NODE_NO_POLICY;
    c->head = c->e.id;
    return SESSILE_OK;
}

static void fold_compaction(change *c)
{
    c->n.events++;
    if (json_get(c->e.data, "context").type == JSON_ARRAY) {
        c->n.marks |= NODE_HAS_CONTEXT;
        c->n.context_at = c->e.id;
    }
    if (json_get(c->e.data, "vars").type == JSON_OBJECT) {
        c->n.marks |= NODE_HAS_VARS;
        c->n.vars_at = c->e.id;
    }
    c->head = c->e.id;
}

static sessile_status fold_head(fold *f, change *c, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    sessile_id to = SESSILE_NO_ID;

    if (!read_id(json_get(c->e.data, "head"), &to) && to < c->e.id)
        status = fold_load(f->s, to, err);
    if (status)
        return status;
    if (to >= c->e.id || !session_is_path_entry(f->s, to))
        return fail(err, SESSILE_DAMAGED,
                    "it moves the head to something that is no entry of the tree");
    c->head = to;
    return SESSILE_OK;
}

/* A parent comes before its child, and the parent of a path entry is of the tree. (What
 * stands in for a lost entry, or is of a type that this version does not know, may have
 * been of the tree.) */
static sessile_status check_parent(const fold *f, const change *c, sessile_error *err)
{
    sessile_status status;
    const node *parent;

    if (c->e.parent >= c->e.id)
        return fail(err, SESSILE_DAMAGED, "its parent is no entry before it");
    status = fold_load(f->s, c->e.parent, err);
    if (status)
        return status;
    parent = &f->s->tree.nodes[c->e.parent];
    if (!entry_on_path(c->e.type) || session_is_path_entry(f->s, c->e.parent) ||
        parent->type == ENTRY_UNKNOWN)
        return SESSILE_OK;
    return fail(err, SESSILE_DAMAGED, "its parent %08" PRIx32 " is a fact", c->e.parent);
}

static sessile_status plan(fold *f, change *c, sessile_error *err)
{
    session_core *s = f->s;
    sessile_status status;

    if (c->e.id == 0) {
        c->head = 0;
        return fold_header(f, c, err);
    }
    status = check_parent(f, c, err);
    if (status)
        return status;
    {
        const node *parent = &s->tree.nodes[c->e.parent];
        c->n.turn = parent->turn;
        c->n.events = parent->events;
        c->n.messages = parent->messages;
        c->n.context_at = parent->context_at;
        c->n.vars_at = parent->vars_at;
    }
    switch (c->e.type) {
    case ENTRY_MESSAGE:
    case ENTRY_BRANCH_SUMMARY:
        return fold_message(f, c, err);
    case ENTRY_TURN:
        return fold_turn(f, c, err);
    case ENTRY_COMPACTION:
        fold_compaction(c);
        return SESSILE_OK;
    case ENTRY_HEAD:
        return fold_head(f, c, err);
    case ENTRY_METADATA:
        if (take_model(f, c, json_get(json_get(c->e.data, "settings"), "model")))
            return fail_nomem(err);
        return take_title(f, c, json_get(c->e.data, "title"), err);
    case ENTRY_SESSION:
        return fail(err, SESSILE_DAMAGED, "it is a second header");
    default:
        return SESSILE_OK;
    }
}

/* The total counts each message's usage until its turn reports one for all of them. */
static void apply_usage(session_core *s, const change *c)
{
    if (c->e.type == ENTRY_TURN) {
        if (c->has_usage) {
            for (size_t i = 0; i < s->fold.part_count; i++)
                if (s->fold.parts[i].id >= c->turn_first)
                    usage_subtract(&s->fold.usage, &s->fold.parts[i].usage);
            usage_add(&s->fold.usage, &c->total);
        }
        s->fold.part_count = 0;
    } else if (c->has_usage) {
        s->fold.parts[s->fold.part_count].id = c->e.id;
        s->fold.parts[s->fold.part_count++].usage = c->usage;
        usage_add(&s->fold.usage, &c->usage);
    }
}

/* One push, when the entry follows the one that the context was made for. */
static void apply_context(session_core *s, const change *c)
{
    if (s->context.stale || !entry_on_path(c->e.type) ||
        s->context.at_head.upto != c->e.parent || (c->n.marks & NODE_HAS_CONTEXT))
        return;
    if (node_is_message(&c->n) && context_push_node(s, c->e.id, &s->context.at_head))
        s->context.stale = 1;
    else
        s->context.at_head.upto = c->e.id;
}

/* Nothing in here can fail. */
static void apply(fold *f, change *c)
{
    session_core *s = f->s;

    s->tree.nodes[s->tree.node_count++] = c->n;
    child_links_follow(s);
    apply_usage(s, c);
    if (*c->model)
        fold_model(s, c->model);
    apply_context(s, c);
    meter_follow(s, c->e.id, usage_total(&c->usage));
    if (facts_changed_pin(&s->fold.facts, c->e.id)) /* seen when it is built again */
        s->context.stale = 1;
    if (c->head != SESSILE_NO_ID) {
        s->tree.head = c->head;
        f->moved = 1;
    }
    if (c->title) {
        if (s->fold.title && s->fold.title != f->keep_title)
            mem_free(s->alloc, s->fold.title, s->fold.title_size + 1);
        s->fold.title = c->title;
        s->fold.title_size = c->title_size;
        c->title = NULL;
    }
    /* Two in a row of one turn: each is compared with the last of its own kind. */
    if (c->e.type == ENTRY_REFUSAL) {
        uint64_t *last = json_get(c->e.data, "fallback_of").type == JSON_STRING
                             ? &s->refusals.last_fallback
                             : &s->refusals.last;
        *last = hash64_lasting(c->e.data.at, c->e.data.size);
    }
    /* a fork is younger than the entries it was made with */
    s->fold.written_ms =
        c->e.time_ms > s->header.created_ms ? c->e.time_ms : s->header.created_ms;
    if (node_is_message(&c->n) && c->n.time_ms > s->fold.said_ms)
        s->fold.said_ms = c->n.time_ms;
    if (node_is_message(&c->n) && c->n.time_ms > 0 &&
        (!s->fold.begun_ms || c->n.time_ms < s->fold.begun_ms))
        s->fold.begun_ms = c->n.time_ms;
    if (s->tree.node_count % LOG_BLOCK == 0)
        fold_snapshot(s);
}

int64_t fold_modified(const session_core *s)
{
    int64_t said = s->fold.said_ms;

    return !said || (s->header.origin.id.size && said < s->header.created_ms)
               ? s->header.created_ms
               : said;
}

int64_t fold_created(const session_core *s)
{
    int64_t begun = s->fold.begun_ms;

    return begun && !s->header.origin.id.size && begun < s->header.created_ms
               ? begun
               : s->header.created_ms;
}

sessile_status fold_visit(void *arg, sessile_id id, const char *text, size_t size,
                          sessile_error *err)
{
    fold *f = arg;
    session_core *s = f->s;
    const allocator *a = s->alloc;
    size_t links = s->tree.link_count, taken = s->index.blocks_taken;
    size_t facts = s->fold.facts.count, names = s->fold.facts.names.size;
    change c = {.head = SESSILE_NO_ID};
    sessile_status status;

    if (id < s->tree.node_count)
        return SESSILE_OK;
    if (id > s->tree.node_count) {
        s->fold.broken = 1;
        return fail(err, SESSILE_IO,
                    "the session lost its place in the log: close it and resume it");
    }
    if (mem_grow(a, (void **)&s->tree.nodes, &s->tree.node_capacity,
                 s->tree.node_count + 1, sizeof *s->tree.nodes))
        return fail_nomem(err);
    status = entry_read(&c.e, text, size, err);
    if (!status && c.e.id != id)
        status = fail(err, SESSILE_DAMAGED, "it calls itself %08" PRIx32, c.e.id);
    if (!status) {
        c.n.parent = c.e.parent;
        c.n.time_ms = c.e.time_ms;
        c.n.type = (uint8_t)c.e.type;
        status = plan(f, &c, err);
    }
    if (!status && facts_of_entry(&s->fold.facts, &c.e))
        status = fail_nomem(err);
    if (!status) {
        apply(f, &c);
        return SESSILE_OK;
    }
    if (s->index.blocks_taken == taken)
        s->tree.link_count = links;
    facts_cut(&s->fold.facts, facts, names);
    if (c.title)
        mem_free(a, c.title, c.title_size + 1);
    if (status == SESSILE_DAMAGED && err) {
        sessile_error what = *err;
        session_fail_damaged(s, id, err, "%s", what.message);
    }
    return status;
}
