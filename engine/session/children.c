/*
 * children.c: questions about the tree from above: children, siblings, ends of branches,
 * and rows of all entries.
 *
 * Lists go to the caller, who frees them. Must never read from the log.
 */
#include "session/fold.h"

#include <inttypes.h>
#include <string.h>

#include "base/text.h"

/* The children of every entry are known; INVALID: there is no entry `id`. */
static sessile_status need_links(session_core *s, sessile_id id, sessile_error *err)
{
    sessile_status status = session_check_at(s, id, err);

    if (status || s->tree.child_count)
        return status;
    status = session_load_all_locked(s, err);
    return status ? status : child_links_make(s) ? fail_nomem(err) : SESSILE_OK;
}

/* ------------------------------------------------------------------ lists of ids */

/* A list for the host; of none, one that can be freed all the same. */
static sessile_status give_ids(const session_core *s, size_t count, sessile_id **out,
                               sessile_error *err)
{
    *out = host_alloc(&s->store->alloc, (count ? count : 1) * sizeof **out);
    return *out ? SESSILE_OK : fail_nomem(err);
}

sessile_status session_ancestry_locked(session_core *s, sessile_id id, sessile_id **out,
                                       size_t *count, sessile_error *err)
{
    sessile_status status = session_check_at(s, id, err);
    size_t n = 1;

    if (!status)
        status = session_load_path_locked(s, id, 0, err);
    if (status)
        return status;
    for (sessile_id at = id; at; at = s->tree.nodes[at].parent)
        n++;
    status = give_ids(s, n, out, err);
    if (status)
        return status;
    *count = n;
    for (sessile_id at = id; n > 1; at = s->tree.nodes[at].parent)
        (*out)[--n] = at;
    (*out)[0] = 0;
    return SESSILE_OK;
}

/* The children of parent, oldest first, less one of them. */
static sessile_status list_children(session_core *s, sessile_id parent, sessile_id less,
                                    sessile_id **out, size_t *count, sessile_error *err)
{
    sessile_status status;
    size_t n = 0;

    for (sessile_id at = s->tree.children[parent].child; at;
         at = s->tree.children[at].next)
        n += at != less;
    status = give_ids(s, n, out, err);
    if (status)
        return status;
    *count = n;
    for (sessile_id at = s->tree.children[parent].child; at;
         at = s->tree.children[at].next)
        if (at != less)
            (*out)[--n] = at;
    return SESSILE_OK;
}

sessile_status session_children_locked(session_core *s, sessile_id id, sessile_id **out,
                                       size_t *count, sessile_error *err)
{
    sessile_status status = need_links(s, id, err);
    return status ? status : list_children(s, id, 0, out, count, err);
}

sessile_status session_siblings_locked(session_core *s, sessile_id id, sessile_id **out,
                                       size_t *count, sessile_error *err)
{
    sessile_status status = need_links(s, id, err);
    if (status)
        return status;
    if (id == 0)
        return give_ids(s, 0, out, err);
    return list_children(s, s->tree.nodes[id].parent, id, out, count, err);
}

sessile_status session_leaves_locked(session_core *s, sessile_id **out, size_t *count,
                                     sessile_error *err)
{
    sessile_status status = need_links(s, 0, err);
    size_t n = 0;

    if (status)
        return status;
    for (sessile_id id = 0; id < s->tree.node_count; id++)
        n += session_is_path_entry(s, id) && !s->tree.children[id].child;
    status = give_ids(s, n, out, err);
    if (status)
        return status;
    *count = n;
    n = 0;
    for (sessile_id id = 0; id < s->tree.node_count; id++)
        if (session_is_path_entry(s, id) && !s->tree.children[id].child)
            (*out)[n++] = id;
    return SESSILE_OK;
}

sessile_status session_common_ancestor_locked(session_core *s, sessile_id a, sessile_id b,
                                              sessile_id *out, sessile_error *err)
{
    sessile_status status = session_check_at(s, a, err);

    if (!status)
        status = session_check_at(s, b, err);
    /* The larger id is no ancestor of the smaller: it steps. */
    while (!status && a != b) {
        sessile_id *later = a > b ? &a : &b;
        *later = s->tree.nodes[*later].parent;
        status = session_load_locked(s, *later, err);
    }
    if (!status)
        *out = a;
    return status;
}

/* ------------------------------------------------------------------ rows */

/* Which entries are wanted. */
typedef struct pick {
    uint32_t types; /* a bit each */
    int all;
    int only_labelled;
    unsigned char *labelled; /* 1 for each entry that has a label; NULL: none has */
} pick;

sessile_status session_types(const char *const *types, size_t count, uint32_t *out,
                             sessile_error *err)
{
    *out = count ? 0 : UINT32_MAX;
    for (size_t i = 0; i < count; i++) {
        int type = ENTRY_SESSION;
        while (type <= ENTRY_CHILD &&
               strcmp(entry_type_name((entry_type)type), types[i]) != 0)
            type++;
        if (type > ENTRY_CHILD)
            return fail(err, SESSILE_INVALID,
                        "there is no type of entry '%.60s': session, message, turn, "
                        "compaction, branch_summary, head, label, checkpoint, metadata, "
                        "suspend, pending_run, refusal, custom, tombstone, child",
                        types[i]);
        *out |= UINT32_C(1) << type;
    }
    return SESSILE_OK;
}

static sessile_status read_labels(const session_core *s, pick *p, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    size_t count;
    fact *list;

    if (facts_in_force(&s->fold.facts, FACT_LABEL, a, &list, &count))
        return fail_nomem(err);
    if (count)
        p->labelled = mem_zalloc(a, s->tree.node_count);
    for (size_t i = 0; p->labelled && i < count; i++)
        if (list[i].about < s->tree.node_count)
            p->labelled[list[i].about] = 1;
    if (list)
        mem_free(a, list, count * sizeof *list);
    return count && !p->labelled ? fail_nomem(err) : SESSILE_OK;
}

static int is_wanted(const session_core *s, const pick *p, size_t id)
{
    return (p->types >> s->tree.nodes[id].type & 1) &&
           (!p->only_labelled || (p->labelled && p->labelled[id]));
}

static void fill_row(const session_core *s, const pick *p, sessile_id id,
                     sessile_node *row)
{
    const node *n = &s->tree.nodes[id];

    memset(row, 0, sizeof *row);
    row->id = id;
    row->type = entry_type_name((entry_type)n->type);
    row->role = n->role;
    row->speaker = (unsigned char)message_speaker((sessile_role)n->role, n->flags);
    row->starts_turn = (n->flags & MESSAGE_STARTS_TURN) != 0;
    row->tokens = n->tokens;
    row->time_ms = n->time_ms;
    row->first_child = row->next_sibling = SESSILE_NO_ID;
    row->is_path = session_is_path_entry(s, id) != 0;
    row->labelled = p->labelled && p->labelled[id];
}

/* Parents come first, so that a walk from the end puts every child before its later
 * siblings. */
static void link_rows(sessile_node *rows, size_t count, const uint32_t *row_of)
{
    for (size_t i = count; i-- > 0;) {
        uint32_t up;
        if (rows[i].parent == SESSILE_NO_ID)
            continue;
        up = row_of ? row_of[rows[i].parent] : rows[i].parent;
        rows[i].next_sibling = rows[up].first_child;
        rows[up].first_child = (uint32_t)i;
    }
}

/* All entries: the row of an entry is its id. */
static void all_rows(const session_core *s, const pick *p, sessile_node *rows)
{
    for (size_t i = 0; i < s->tree.node_count; i++) {
        sessile_id parent = s->tree.nodes[i].parent;
        int has_parent = i && parent < i;
        fill_row(s, p, (sessile_id)i, &rows[i]);
        rows[i].parent = has_parent ? parent : SESSILE_NO_ID;
        rows[i].total_tokens =
            (int64_t)rows[i].tokens + (has_parent ? rows[parent].total_tokens : 0);
    }
}

/* Some: each under the nearest of its ancestors that is among them. totals and row_of
 * have an element for every entry; row_of[id]: the row of the entry, or of that
 * ancestor. */
static void some_rows(const session_core *s, const pick *p, sessile_node *rows,
                      int64_t *totals, uint32_t *row_of)
{
    size_t count = 0;

    for (size_t i = 0; i < s->tree.node_count; i++) {
        const node *n = &s->tree.nodes[i];
        int has_parent = i && n->parent < i;
        uint32_t up = has_parent ? row_of[n->parent] : UINT32_MAX;
        totals[i] = (int64_t)n->tokens + (has_parent ? totals[n->parent] : 0);
        row_of[i] = up;
        if (!is_wanted(s, p, i))
            continue;
        fill_row(s, p, (sessile_id)i, &rows[count]);
        rows[count].parent = up == UINT32_MAX ? SESSILE_NO_ID : rows[up].id;
        rows[count].total_tokens = totals[i];
        row_of[i] = (uint32_t)count++;
    }
}

/* The row of an entry, or count: it has none. */
static size_t row_at(sessile_id id, const sessile_node *rows, size_t count,
                     const uint32_t *row_of)
{
    size_t at = row_of ? row_of[id] : id;

    return at < count && rows[at].id == id ? at : count;
}

static void flag_rows(const session_core *s, const context *c, sessile_node *rows,
                      size_t count, const uint32_t *row_of)
{
    for (sessile_id id = s->tree.head;; id = s->tree.nodes[id].parent) {
        size_t at = row_at(id, rows, count, row_of);
        if (at < count) {
            rows[at].on_path = 1;
            rows[at].is_head = id == s->tree.head;
        }
        if (!id)
            break;
    }
    for (size_t i = 0; i < c->count; i++) {
        sessile_key key = c->items[i].key;
        size_t at = key.n ? count : row_at(key.entry, rows, count, row_of);
        if (at < count)
            rows[at].in_context = 1;
    }
}

/* The rows of those that are picked, marked and linked; everything is in reach. */
static sessile_status make_rows(session_core *s, const pick *p, const context *c,
                                sessile_node **out, size_t *count, sessile_error *err)
{
    const allocator *a = &s->store->alloc;
    size_t n = p->all ? s->tree.node_count : 0;
    uint32_t *row_of = NULL;
    int64_t *totals = NULL;
    sessile_node *rows = NULL;

    if (!p->all) {
        for (size_t i = 0; i < s->tree.node_count; i++)
            n += (size_t)is_wanted(s, p, i);
        row_of = mem_alloc(a, s->tree.node_count * sizeof *row_of);
        totals = mem_alloc(a, s->tree.node_count * sizeof *totals);
    }
    if (p->all || (row_of && totals))
        rows = host_alloc(a, (n ? n : 1) * sizeof *rows);
    if (rows) {
        if (p->all)
            all_rows(s, p, rows);
        else
            some_rows(s, p, rows, totals, row_of);
        link_rows(rows, n, row_of);
        flag_rows(s, c, rows, n, row_of);
        *out = rows;
        *count = n;
    }
    if (row_of)
        mem_free(a, row_of, s->tree.node_count * sizeof *row_of);
    if (totals)
        mem_free(a, totals, s->tree.node_count * sizeof *totals);
    return rows ? SESSILE_OK : fail_nomem(err);
}

sessile_status session_tree_locked(session_core *s, const sessile_tree_options *o,
                                   sessile_node **out, size_t *count, sessile_error *err)
{
    pick p = {.all = !o->type_count && !o->labelled, .only_labelled = o->labelled};
    const context *c;
    sessile_status status = session_types(o->types, o->type_count, &p.types, err);

    /* Either may find that the log has to be folded again, with entries out of reach. */
    while (!status) {
        status = session_context_locked(s, &c, err);
        if (!status)
            status = session_load_all_locked(s, err);
        if (!s->context.stale && !s->index.absent_count)
            break;
    }
    if (!status)
        status = read_labels(s, &p, err);
    if (!status)
        status = make_rows(s, &p, c, out, count, err);
    if (p.labelled)
        mem_free(&s->store->alloc, p.labelled, s->tree.node_count);
    return status;
}
