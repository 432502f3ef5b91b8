/*
 * tree.h: the entries of a session as a tree of nodes, and questions about it.
 *
 * Functions whose names end in _locked expect the handle's mutex to be held.
 */
#ifndef SESSION_TREE_H
#define SESSION_TREE_H

#include <stddef.h>
#include <stdint.h>

#include "sessile.h"
#include "session/cores.h"

enum {
    NODE_HAS_CONTEXT = 1,
    NODE_HAS_VARS = 2,
    NODE_HAS_USAGE = 4, /* of a turn, or of a message by a model */
    NODE_NO_POLICY = 8, /* of a turn: no policy ran after it; the next judges for both */
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
    int64_t time_ms; /* when a message was said; else the entry's time */
} node;

/* Links to children, made by the first question about children. 0: none. */
typedef struct child_link {
    sessile_id child; /* the newest */
    sessile_id next;  /* the sibling before it */
} child_link;

/*
 * Loads the node of an entry from the log's index, with its whole block, unless it is in
 * memory. The header, the head and entries that this handle folded are always in memory;
 * for others call this before you read the node. The array of nodes may move. If the
 * index is bad, the session is reloaded. NOMEM, errors of session_reload_locked().
 */
sessile_status session_load_locked(session_core *s, sessile_id id, sessile_error *err);
/* Loads the path from id towards the root, down to low, which is not loaded. */
sessile_status session_load_path_locked(session_core *s, sessile_id id, sessile_id low,
                                        sessile_error *err);
/* Loads all nodes. */
sessile_status session_load_all_locked(session_core *s, sessile_error *err);
/* Rebuilds the fold from the lines of the log, or from another log that has its name now.
 * NOTFOUND, CONFLICT: that log is not what this handle has read. */
sessile_status session_reload_locked(session_core *s, sessile_error *err);
/* 1 if ancestor is id or on the path from id to the root, which has been loaded. */
int session_descends_locked(const session_core *s, sessile_id id, sessile_id ancestor);
/* strict: CONFLICT unless the head is base, or only compactions follow base. Otherwise:
 * CONFLICT unless the head descends from base. */
sessile_status session_check_base_locked(session_core *s, sessile_id base, int strict,
                                         sessile_error *err);

/* The ids of the messages on the path to `at`, oldest first, in an array that the caller
 * frees with mem_free(), *count * sizeof. */
sessile_status session_path_locked(session_core *s, sessile_id at, sessile_id **out,
                                   size_t *count, sessile_error *err);
/* NOTFOUND unless id is the header or a path entry; err names the nearest ones. */
sessile_status session_check_at(session_core *s, sessile_id id, sessile_error *err);
/* ---- questions about the tree (children.c); the host frees the lists */

/* See the functions of these names in sessile.h. */
sessile_status session_ancestry_locked(session_core *s, sessile_id id, sessile_id **out,
                                       size_t *count, sessile_error *err);
sessile_status session_children_locked(session_core *s, sessile_id id, sessile_id **out,
                                       size_t *count, sessile_error *err);
sessile_status session_siblings_locked(session_core *s, sessile_id id, sessile_id **out,
                                       size_t *count, sessile_error *err);
sessile_status session_leaves_locked(session_core *s, sessile_id **out, size_t *count,
                                     sessile_error *err);
sessile_status session_common_ancestor_locked(session_core *s, sessile_id a, sessile_id b,
                                              sessile_id *out, sessile_error *err);
/* The types with these names, a bit each; all of them if there are none. INVALID: there
 * is no such type in a session. */
sessile_status session_types(const char *const *types, size_t count, uint32_t *out,
                             sessile_error *err);
sessile_status session_tree_locked(session_core *s, const sessile_tree_options *o,
                                   sessile_node **out, size_t *count, sessile_error *err);

#endif
