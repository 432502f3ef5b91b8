/*
 * context.h: a context in memory: a list of items, and how calls pair with results in
 * it.
 *
 * An item is a message of the path, named by its entry, or a message that a policy
 * wrote, named by its compaction and number. Items hold columns only; text is read on
 * demand. A context owns its arrays, so a snapshot of it is two copies and needs no
 * lock.
 */
#ifndef CONTEXT_CONTEXT_H
#define CONTEXT_CONTEXT_H

#include "base/alloc.h"
#include "base/map.h"
#include "codec/message.h"

enum {
    ITEM_STARTS_TURN = MESSAGE_STARTS_TURN,
    ITEM_SUMMARY = MESSAGE_SUMMARY,
    ITEM_KIND = MESSAGE_KIND,
    ITEM_ERROR = MESSAGE_ERROR,
    ITEM_PINNED = 16,  /* pinned entries, and the system messages that open the context */
    ITEM_OPENING = 32, /* of the latter */
};

typedef struct item {
    sessile_key key; /* entry SESSILE_NO_ID: the n-th put of a proposal being made */
    uint32_t tokens, turn;
    uint32_t link, link_count; /* its calls and results, in context.links */
    uint8_t role, flags, unit /* a token_unit */;
} item;

typedef struct context {
    item *items;
    size_t count, capacity;
    message_link *links;
    size_t link_count, link_capacity;
    sessile_id upto; /* the newest path entry this context takes into account */
    uint64_t lost;   /* entries skipped because damage lost them */
    const allocator *alloc;
} context;

void context_init(context *c, const allocator *a);
void context_deinit(context *c);
void context_clear(context *c);
int context_copy(context *out, const context *from); /* out is init'ed; 0 or -1: NOMEM */
/* Room for `more` items, so that they are pushed without growing. 0 or -1. */
int context_reserve(context *c, size_t more);
/* Appends an item, its links copied from `links` (item->link is set). 0 or -1. */
int context_push(context *c, const item *it, const message_link *links);
/* The same, and pins system and developer messages that open the context. */
int context_push_opening(context *c, const item *it, const message_link *links);
int64_t context_tokens(const context *c);
/* The last message of the user, which law 5 keeps; count: there is none. */
size_t context_last_user(const context *c);

/*
 * How calls and results pair, in one pass.
 *
 * A result answers the newest call before it that has its id and no result yet. A call is
 * open while it is unanswered and only results of its own message follow that message; an
 * unanswered call that is not open is dead; a result that comes after something else than
 * results of its message stood in between is late. A result without such a call is an
 * orphan. A call whose id its message has given before is that same call, in another
 * form.
 */
typedef struct pairing {
    /* one per link of the context, parallel to context.links */
    struct pair_link {
        uint32_t item; /* the item this link belongs to */
        uint32_t mate; /* the link it is paired with; PAIR_NONE. A call given twice in
                          its message: the first of the two */
        uint8_t late;  /* on a result: answered late */
    } * links;
    size_t link_count;
    /* one per item */
    uint8_t *flags;      /* PAIR_OPEN, PAIR_DEAD, PAIR_ORPHAN: of any of its links */
    uint32_t *group;     /* the first item of those that stay or go together with it */
    uint32_t *group_end; /* at a group's first item: its last item; else itself */
    size_t item_count;
    size_t first_open; /* the first item with an open call; item_count: none */
    const allocator *alloc;
    size_t capacity_links, capacity_items;
    map calls;
} pairing;
#define PAIR_NONE UINT32_MAX
enum { PAIR_OPEN = 1, PAIR_DEAD = 2, PAIR_ORPHAN = 4, PAIR_LATE = 8 };

void pairing_init(pairing *p, const allocator *a);
void pairing_deinit(pairing *p);
int pairing_make(pairing *p, const context *c); /* memory reused; 0 or -1: NOMEM */

#endif
