/*
 * child_links.c: for each entry its first child and its next sibling.
 *
 * An entry names its parent; nothing in the log names its children. The first question
 * for them builds the links, which the fold keeps up to date from then on. Only the
 * header and path entries are linked: a fact is no step of a conversation. Children are
 * linked newest first, so that a new one is added, and removed by a write that failed,
 * without a walk. Rejected: links from the start (8 bytes an entry that few need), and an
 * array of children for each entry (an allocation each).
 */
#include "session/fold.h"

void child_links_forget(session_core *s)
{
    if (s->tree.children)
        mem_free(s->alloc, s->tree.children,
                 s->tree.child_capacity * sizeof *s->tree.children);
    s->tree.children = NULL;
    s->tree.child_count = s->tree.child_capacity = 0;
}

/* Entry id becomes the first of its parent's children. */
static void link_child(session_core *s, sessile_id id)
{
    sessile_id parent = s->tree.nodes[id].parent;

    s->tree.children[id] = (child_link){0, 0};
    if (id == 0 || parent >= id || !session_is_path_entry(s, id))
        return;
    s->tree.children[id].next = s->tree.children[parent].child;
    s->tree.children[parent].child = id;
}

int child_links_make(session_core *s)
{
    if (mem_grow(s->alloc, (void **)&s->tree.children, &s->tree.child_capacity,
                 s->tree.node_count, sizeof *s->tree.children))
        return -1;
    while (s->tree.child_count < s->tree.node_count)
        link_child(s, (sessile_id)s->tree.child_count++);
    return 0;
}

void child_links_follow(session_core *s)
{
    if (s->tree.child_count && child_links_make(s))
        child_links_forget(s); /* to be made again when somebody asks */
}

void child_links_cut(session_core *s)
{
    while (s->tree.child_count > s->tree.node_count) {
        sessile_id id = (sessile_id)--s->tree.child_count;
        sessile_id parent = s->tree.nodes[id].parent;
        if (id && parent < id && s->tree.children[parent].child == id)
            s->tree.children[parent].child = s->tree.children[id].next;
    }
}
