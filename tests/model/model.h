/*
 * model.h: the model of a session, and the operations that compare a session with it.
 *
 * The model is a list of entries and a head; it knows no log, no fold, no cache.
 */
#ifndef MODEL_MODEL_H
#define MODEL_MODEL_H

#include <stdint.h>

#include "codec/entry.h"
#include "sessile.h"

enum {
    HANDLES = 3,
    OPS = 60,
    BULK = 140, /* three of them are more than a block of an index */
    SAID_MOST = 4 * OPS + 4 * BULK,
    TITLE_SIZE = 40
};

typedef struct said {
    entry_type type;
    sessile_id parent;
    char *text; /* of messages */
    sessile_role role;
    int64_t tokens;
    unsigned count;      /* of turns: its messages */
    sessile_usage usage; /* of turns; all 0: none was given */
} said;

typedef struct world {
    const char *mode; /* "ram", "plain", "sealed" */
    char folder[256], root[300];
    char *url;
    sessile_store *stores[2]; /* of ram: the same twice */
    sessile_session *s[HANDLES];
    sessile_id base[HANDLES]; /* the head that the handle last showed or made */
    said log[SAID_MOST];
    sessile_id count, head;
    char title[TITLE_SIZE];
    uint64_t torn;  /* bytes of a torn end that nobody has set aside yet */
    size_t torn_at; /* the log's size without them */
    char why[1200];
} world;

typedef struct op {
    char kind;
    unsigned char handle;
    uint32_t number;
} op;

extern unsigned long figure_ops, figure_conflicts, figure_torn;

/* Notes why, and returns 1, so that a check reads `return wrong(…)`. */
int wrong(world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));

int said_is_message(const said *e);
/* 1 for an entry that a conversation can continue from. */
int world_is_leaf(const world *w, sessile_id id);
int world_descends(const world *w, sessile_id id, sessile_id ancestor);
/* Ids of the path's messages, oldest first. */
size_t world_path(const world *w, sessile_id leaf, sessile_id out[SAID_MOST]);
/* A new entry; a path entry moves the head. */
said *world_put(world *w, entry_type type, sessile_id parent);
void world_put_message(world *w, const char *text, entry_type type);
/* A file in the folder of the log. */
void world_file(const world *w, const char *name, char out[600]);
/* After calls that can have met the torn end. */
void world_check_torn(world *w);

/* Makes the stores and the session, and opens all handles; closes and removes them. */
int world_begin(world *w, const char *mode);
void world_end(world *w);

/* Operations, one or a few letters each: see step() in test_model.c. 0, or 1 and why. */
int do_append(world *w, unsigned h, uint64_t r);
int do_mixed(world *w, unsigned h, uint64_t r);
int do_refused(world *w, unsigned h, uint64_t r);
int do_turn(world *w, unsigned h, uint64_t r, char kind);
int do_branch(world *w, unsigned h, uint64_t r);
int do_pop(world *w, unsigned h, uint64_t r);
int do_fact(world *w, unsigned h, uint64_t r, char kind);
int do_context(world *w, unsigned h, uint64_t r, char kind);
int do_messages(world *w, unsigned h, uint64_t r, char kind);
int do_entries(world *w, unsigned h);
int do_figures(world *w, unsigned h);
int do_tree(world *w, unsigned h, uint64_t r);
int do_head(world *w, unsigned h);
int do_list(world *w, unsigned h);
int do_fork(world *w, unsigned h, uint64_t r);
int do_reopen(world *w, unsigned h);
int do_reopen_stores(world *w);
int do_cache(const world *w, uint64_t r, char kind);
int do_tear(world *w, uint64_t r);

#endif
