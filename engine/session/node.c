/*
 * node.c: questions about nodes that are in memory.
 *
 * The fold asks them too, so nothing here may load a node or read from the log: the
 * caller has loaded the nodes (load.c). Ids strictly descend towards the root (the fold
 * refuses anything else), so every walk ends.
 */
#include "session/fold.h"

unsigned node_unit(const node *n)
{
    unsigned unit = n->marks / NODE_UNIT;

    return unit < TOKEN_UNITS ? unit : TOKENS_ESTIMATE;
}

int node_is_message(const node *n)
{
    return n->type == ENTRY_MESSAGE || n->type == ENTRY_BRANCH_SUMMARY;
}

int session_is_path_entry(const session_core *s, sessile_id id)
{
    if (id >= s->tree.node_count)
        return 0;
    return id == 0 || entry_on_path((entry_type)s->tree.nodes[id].type) ||
           s->tree.nodes[id].type == ENTRY_TOMBSTONE;
}

int session_descends_locked(const session_core *s, sessile_id id, sessile_id ancestor)
{
    if (id >= s->tree.node_count)
        return 0;
    while (id > ancestor)
        id = s->tree.nodes[id].parent;
    return id == ancestor;
}

void id_list_deinit(id_list *l)
{
    if (l->at)
        mem_free(l->alloc, l->at, l->capacity * sizeof *l->at);
    l->at = NULL;
    l->count = l->capacity = 0;
}

int path_gather(const session_core *s, sessile_id high, sessile_id low, id_list *out)
{
    uint64_t lost = 0;
    sessile_id id;

    for (id = high; id > low; id = s->tree.nodes[id].parent) {
        if (s->tree.nodes[id].type == ENTRY_TOMBSTONE)
            lost++;
        if (!node_is_message(&s->tree.nodes[id]))
            continue;
        if (mem_grow(out->alloc, (void **)&out->at, &out->capacity, out->count + 1,
                     sizeof *out->at))
            return -1;
        out->at[out->count++] = id;
    }
    out->lost += lost;
    return id == low || lost ? 0 : 1;
}

int context_push_node(const session_core *s, sessile_id id, context *out)
{
    const node *n = &s->tree.nodes[id];
    item it = {.key = {id, 0},
               .tokens = n->tokens,
               .turn = n->turn,
               .link_count = n->link_count,
               .role = n->role,
               .unit = (uint8_t)node_unit(n),
               .flags = n->flags & (MESSAGE_STARTS_TURN | MESSAGE_SUMMARY | MESSAGE_KIND |
                                    MESSAGE_ERROR)};

    return context_push_opening(out, &it, n->link_count ? &s->tree.links[n->link] : NULL);
}
