/*
 * tree.h: the entries of a session as a tree of nodes, and questions about it.
 *
 * Functions whose names end in _locked want the handle's mutex to be held.
 */
#ifndef SESSION_TREE_H
#define SESSION_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "sessile.h"

enum {
    NODE_HAS_CONTEXT = 1,
    NODE_HAS_VARS = 2,
    NODE_HAS_USAGE = 4, /* of a turn, or of a message by a model */
    NODE_NO_POLICY = 8, /* of a turn: it was to run none, whatever is configured */
    NODE_UNIT = 16      /* from here on, of a message: a token_unit times this */
};

/* What is kept of each entry: at most 48 bytes (the log keeps 8 more for the offset). */
typedef struct node {
    sessile_id parent; /* SESSILE_NO_ID: the header */
    uint32_t tokens;   /* of messages */
    uint32_t turn;     /* number of turn-starting messages up to here on its path */
    uint32_t link, link_count;
    uint32_t events;       /* turns, bare appends and compactions on its path */
    uint32_t messages;     /* messages on its path */
    sessile_id context_at; /* nearest compaction with a context on its path, or 0 */
    sessile_id vars_at;    /* nearest compaction with vars on its path, or 0 */
    uint8_t type, role, flags /* MESSAGE_… */, marks /* NODE_… */;
    int64_t time_ms; /* the entry's time */
} node;

/* Of each entry, once somebody asked for children; 0: none. */
typedef struct child_link {
    sessile_id child; /* the newest */
    sessile_id next;  /* the sibling before it */
} child_link;

/*
 * A node may be looked at when it is the header, the head, was folded by this handle, or
 * after this: what the log's index holds of old entries is taken out of it by blocks,
 * when they are wanted. Nodes may move meanwhile. NOMEM; what the log says when the index
 * is bad and it has to be folded again.
 */
sessile_status session_load_locked(sessile_session *s, sessile_id id, sessile_error *err);
/* All of the path from id on that is above low, which itself is left out. */
sessile_status session_load_path_locked(sessile_session *s, sessile_id id, sessile_id low,
                                        sessile_error *err);
/* All of them. */
sessile_status session_load_all_locked(sessile_session *s, sessile_error *err);
/* The fold rebuilt: from the lines of the log, or, when another log has its name, from
 * that one. NOTFOUND, CONFLICT: it is not what this handle has read. */
sessile_status session_reload_locked(sessile_session *s, sessile_error *err);
/* 1 when ancestor is id or lies on the path from id to the root (which was reached). */
int session_descends_locked(const sessile_session *s, sessile_id id, sessile_id ancestor);
/* CONFLICT unless head, compactions after it aside, is base (strict) or descends from it.
 */
sessile_status session_check_base_locked(sessile_session *s, sessile_id base, int strict,
                                         sessile_error *err);

/* Ids of the path's messages from the root to `at`, oldest first, into an array of the
 * session's allocator (free with mem_free, *count * sizeof). */
sessile_status session_path_locked(sessile_session *s, sessile_id at, sessile_id **out,
                                   size_t *count, sessile_error *err);
/* NOTFOUND unless id is the header or a path entry; the message names the nearest one. */
sessile_status session_check_at(sessile_session *s, sessile_id id, sessile_error *err);
/* ---- the tree, asked (session/children.c); lists are handed out */

/* As sessile.h says of the functions of these names. */
sessile_status session_ancestry_locked(sessile_session *s, sessile_id id,
                                       sessile_id **out, size_t *count,
                                       sessile_error *err);
sessile_status session_children_locked(sessile_session *s, sessile_id id,
                                       sessile_id **out, size_t *count,
                                       sessile_error *err);
sessile_status session_siblings_locked(sessile_session *s, sessile_id id,
                                       sessile_id **out, size_t *count,
                                       sessile_error *err);
sessile_status session_leaves_locked(sessile_session *s, sessile_id **out, size_t *count,
                                     sessile_error *err);
sessile_status session_common_ancestor_locked(sessile_session *s, sessile_id a,
                                              sessile_id b, sessile_id *out,
                                              sessile_error *err);
sessile_status session_tree_locked(sessile_session *s, const sessile_tree_options *o,
                                   sessile_node **out, size_t *count, sessile_error *err);

#endif
