/*
 * disposition.h: what a proposal does with every message of a context.
 *
 * The laws and the account share this. Each message of `before` stays, is replaced or
 * covered by a new message, or is lost; and each new message has its place in `after`.
 */
#ifndef CONTEXT_DISPOSITION_H
#define CONTEXT_DISPOSITION_H

#include "context/laws.h"
#include "context/finder.h"

#define PLACE_NONE UINT32_MAX

enum {
    DISPOSITION_LOST = 0,
    DISPOSITION_COVERED,
    DISPOSITION_REPLACED,
    DISPOSITION_KEPT
};

/* How a proposal says what is not so. */
enum untruth {
    UNTRUE_NONE = 0,
    UNTRUE_UNKNOWN, /* a key in after is of no message of before, nor of a new one */
    UNTRUE_FOREIGN, /* a new message stands for what was not in before */
    UNTRUE_STAYS,   /* … for what stays */
    UNTRUE_TWICE    /* … for what another stands for already */
};

typedef struct dispositions {
    /* one per item of before */
    uint32_t *place; /* where it, or the new message that stands for it, is in after */
    uint8_t *disposition;
    size_t item_count;
    /* one per put of the proposal */
    uint32_t
        *inserted_at; /* where it is in after; PLACE_NONE: not in the list any more */
    uint32_t
        *inserted_from; /* the item of before that it replaces one for one; PLACE_NONE */
    size_t inserted_count;
    size_t inserted_places; /* how many of them are in after */
    /* the first fault of each kind */
    enum untruth untruth;
    sessile_key untruth_key;
    int disorder;
    sessile_key disorder_key, disorder_after; /* stands behind that one, wrongly */
    const allocator *alloc;
} dispositions;

void dispositions_init(dispositions *p, const allocator *a);
void dispositions_deinit(dispositions *p);
int dispositions_find(dispositions *p,
                      const laws_input *in); /* once after init; 0, or -1: NOMEM */

#endif
