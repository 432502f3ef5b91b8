/*
 * internal.h: the struct of a state. Only files of this folder include it.
 *
 *   state.c           its life: hooks begin and end, edits become a list
 *   edit.c            drop, replace, insert, rebuild, vars
 *   insert.c          inserted messages, and what they cover
 *   merge.c           the text of inserted messages
 *   cut.c             keep_last, find_cut, pairs
 *   read.c            columns and texts
 *   journal.c         records the calls, for an equal state in another process
 *   journal_replay.c  repeats them
 *
 * Edits are marks beside the list that the hook was given, so its indexes hold until the
 * hook ends. A state has a few lists: the first one of the pipeline, the one given to the
 * hook, and perhaps a marked one. The next list is built in a free one.
 */
#ifndef PROPOSAL_INTERNAL_H
#define PROPOSAL_INTERNAL_H

#include <assert.h>

#include "proposal/state.h"
#include "context/finder.h"

/* A list, how it pairs, and where its items come from. */
typedef struct state_list {
    context c;
    pairing pairs;
    int has_pairs;    /* made when a hook is given the list */
    uint32_t *origin; /* index in the first list; ORIGIN_NONE: a new message. Of the
                         first list: NULL, every item is its own origin */
    size_t origin_capacity;
    size_t previous; /* how many of its items come from before the turn */
} state_list;
#define ORIGIN_NONE UINT32_MAX

enum { STATE_LISTS = 4 };

/* Marks of items: not edited; dropped; covered by an inserted message; or n: replaced by
 * inserted message n. */
#define MARK_NONE    0u
#define MARK_DROPPED UINT32_MAX
#define MARK_COVERED (UINT32_MAX - 1)

typedef struct insertion {
    uint32_t at;     /* before this item of the given list */
    uint32_t number; /* of its put */
} insertion;

/* An item of a hand-built list. */
typedef struct built {
    uint32_t index;  /* of the given list, or ORIGIN_NONE: a new message */
    uint32_t number; /* of its put */
} built;

/* A text read by the host's reader, kept for the state's life. */
typedef struct item_text {
    char *data;
    size_t size, capacity;
} item_text;

/* What an edit may not exceed. */
typedef struct state_limits {
    int64_t window, reserve, made_ratio;
    uint32_t floor;
    uint64_t result, vars; /* bytes */
    unsigned depth;
} state_limits;

/* The edits of the hook that runs. */
typedef struct state_edits {
    uint32_t *marks; /* one per given item */
    size_t mark_capacity;
    int marked; /* a mark is set */
    insertion *inserts;
    size_t insert_count, insert_capacity;
    built *built; /* a hand-built list wins over marks and inserts */
    size_t built_count, built_capacity;
    int is_built;
    int64_t tokens; /* of the list as edited */
    size_t left;    /* its messages */
} state_edits;

/* The messages that policies inserted, of all hooks. */
typedef struct state_inserted {
    inserted_message *at;
    size_t count, capacity;
    uint32_t *from; /* one per message: the item of the first list that it replaces one
                       for one, or ORIGIN_NONE */
    size_t from_capacity;
    size_t before;  /* number of them when the hook began */
    size_t at_mark; /* number of them at the mark */
    uint64_t bytes; /* of all their texts */
} state_inserted;

/* Texts of the host, read when a policy asks for them. */
typedef struct state_reader {
    state_read read;
    void *arg;
    item_text *texts; /* one per item of the first list, made when one is read */
    finder find;      /* over the first list */
} state_reader;

typedef struct state_vars {
    buf given, set;
    int has; /* the hook set some */
} state_vars;

typedef struct state_scratch {
    buf checked, work;
    message_link *links;
    size_t link_count, link_capacity;
    uint32_t *stands; /* indexes in the first list */
    size_t stand_count, stand_capacity;
    sessile_key *strange; /* keys that are of nothing in the first list */
    size_t strange_count, strange_capacity;
    map names;
} state_scratch;

struct sessile_state {
    const allocator *alloc;
    state_limits limits;
    buf *journal; /* where calls are noted; NULL: nowhere */
    state_list lists[STATE_LISTS];
    state_list *given;  /* lists[0] is what the pipeline began with */
    state_list *marked; /* or NULL */
    state_edits edits;
    state_inserted made;
    state_reader reader;
    facts labels; /* of the first list's entries, as they were when the run began */
    state_vars vars;
    state_scratch scratch;
};

static inline const item *given_item(const sessile_state *s, size_t i)
{
    return &s->given->c.items[i];
}

static inline const pairing *given_pairs(const sessile_state *s)
{
    assert(s->given->has_pairs); /* there are no questions between hooks */
    return &s->given->pairs;
}

/* The item's index in the first list, or ORIGIN_NONE. */
static inline uint32_t origin_of(const sessile_state *s, size_t i)
{
    return s->given->origin ? s->given->origin[i] : (uint32_t)i;
}

static inline inserted_message *inserted_of(const sessile_state *s, uint32_t number)
{
    return &s->made.at[number - 1];
}

/* The item of the first list that it is, or that it alone replaces; or ORIGIN_NONE. */
static inline uint32_t likeness_of(const sessile_state *s, size_t i)
{
    uint32_t origin = origin_of(s, i);
    return origin == ORIGIN_NONE ? s->made.from[given_item(s, i)->key.n - 1] : origin;
}

static inline int mark_is_inserted(uint32_t mark)
{
    return mark != MARK_NONE && mark < MARK_COVERED;
}

/* An item's tokens with the edits so far. */
static inline uint32_t tokens_now(const sessile_state *s, size_t i)
{
    uint32_t mark = s->edits.marks[i];
    if (mark == MARK_NONE)
        return given_item(s, i)->tokens;
    return mark_is_inserted(mark) ? inserted_of(s, mark)->columns.tokens : 0;
}

static inline int is_gone(const sessile_state *s, size_t i)
{
    return s->edits.marks[i] == MARK_DROPPED || s->edits.marks[i] == MARK_COVERED;
}

/* ---- read.c */

/* INVALID unless the given list has an item i. */
sessile_status state_check_index(const sessile_state *s, size_t i, sessile_error *err);

/* ---- edit.c */

/* Removes item i: MARK_DROPPED or MARK_COVERED. */
void state_mark_removed(sessile_state *s, size_t i, uint32_t mark);
sessile_status state_check_unbuilt(const sessile_state *s, sessile_error *err);

/* The first byte of a call in a journal. */
typedef enum journal_call {
    JOURNAL_BEGIN = 1, /* vars */
    JOURNAL_END,
    JOURNAL_FORGET,
    JOURNAL_MARK,
    JOURNAL_REWIND,
    JOURNAL_EDITS, /* from here on: what a hook may do */
    JOURNAL_DROP = JOURNAL_EDITS,
    JOURNAL_REPLACE,
    JOURNAL_INSERT,
    JOURNAL_KEEP_LAST,
    JOURNAL_REBUILD,
    JOURNAL_VARS
} journal_call;

/* ---- journal.c: records a call that succeeded, when the state has a journal */

void journal_begin(const sessile_state *s, const char *vars, size_t size);
void journal_end(const sessile_state *s);
void journal_forget(const sessile_state *s);
void journal_mark(const sessile_state *s);
void journal_rewind(const sessile_state *s);
void journal_drop(const sessile_state *s, size_t first, size_t last);
void journal_replace(const sessile_state *s, size_t i, sessile_slice fields);
void journal_insert(const sessile_state *s, size_t i, sessile_slice message, int covers,
                    size_t first, size_t last);
void journal_keep_last(const sessile_state *s, int64_t n, sessile_unit unit);
void journal_rebuild(const sessile_state *s, const sessile_state_item *items,
                     size_t count);
void journal_vars(const sessile_state *s, sessile_slice text);

/* ---- insert.c */

/* Starts a list of the items that a new message covers. */
void covered_clear(sessile_state *s);
/* Adds given item i; if it is an inserted message, the items that it covers. 0 or -1. */
int covered_add_item(sessile_state *s, size_t i);
/* Adds the item that a key in a hand-built list names. 0 or -1. */
int covered_add_key(sessile_state *s, sessile_key key);
/* The keys of the items, each once, in the order of the first list. 0 or -1. */
int covered_keys(sessile_state *s, sessile_key **out, size_t *count);
/* The turn of the newest item; without items: `otherwise`. */
uint32_t covered_turn(const sessile_state *s, uint32_t otherwise);

/* ---- merge.c */

/* Completes a message that a hook made, into scratch.work: adds role_default and
 * metadata.kind (NULL: not added) if they are missing. A member "id" or "key" is INVALID;
 * with has_name it is recorded for law 3. */
sessile_status inserted_complete(sessile_state *s, sessile_slice message,
                                 sessile_role role_default, const char *kind,
                                 sessile_key *name, int *has_name, sessile_error *err);
/* Replaces fields of the message `base`, into scratch.work. */
sessile_status inserted_merge(sessile_state *s, sessile_slice base, sessile_slice fields,
                              sessile_error *err);
/* ---- insert.c: inserted messages */

/* Reads scratch.work as a message, its links into scratch.links. */
sessile_status inserted_read(sessile_state *s, message *out, sessile_error *err);
/* 1 if the links are those of given item i, in their order. */
int inserted_same_links(const sessile_state *s, size_t i);
/* Makes an inserted message of scratch.work, as it was read. It covers nothing yet. */
sessile_status inserted_new(sessile_state *s, const message *m, uint32_t turn,
                            uint32_t *number, sessile_error *err);
/* Replaces the text of an inserted message by scratch.work. */
sessile_status inserted_set_text(sessile_state *s, const message *m, uint32_t number,
                                 sessile_error *err);
/* Sets what an inserted message covers and replaces, and takes the arrays over; checks
 * its role. 0; -1: no memory, and the arrays are still the caller's. */
int inserted_set_covered(sessile_state *s, uint32_t number, sessile_key *covers,
                         size_t cover_count, sessile_key *replaces, size_t replace_count);
/* Frees an inserted message; its number is not used again. */
void inserted_clear(sessile_state *s, uint32_t number);
/* Frees the newest inserted messages, until `count` are left. */
void inserted_truncate(sessile_state *s, size_t count);

#endif
