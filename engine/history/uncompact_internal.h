/*
 * uncompact_internal.h: an uncompaction in progress.
 *
 *   uncompact.c       the steps in order, and the entry
 *   uncompact_plan.c  which events are undone, where messages go, what is allowed
 */
#ifndef HISTORY_UNCOMPACT_INTERNAL_H
#define HISTORY_UNCOMPACT_INTERNAL_H

#include "context/finder.h"
#include "history/history.h"
#include "session/compaction.h"
#include "session/fold.h"

typedef struct undoing {
    sessile_id which; /* as asked */
    /* what is made; rebuilt at each build */
    history h;
    const history_step *step;
    uint8_t *force; /* one per event of the step */
    size_t force_size;
    /* at the head; before the step; all of the path; as proposed */
    context now, was, path, after;
    finder in_now;
    map changes;     /* of keys: the step's event */
    uint32_t *slots; /* one per item of was: before which item of now it comes back */
    size_t slot_count;
    buf keys; /* restored, then removed: sessile_key[] */
    sessile_uncompacted result;
    const char *source; /* of its counts; static */
    buf data;
    const allocator *alloc;
} undoing;

#define SLOT_NONE UINT32_MAX

/* Finds the compaction to undo, and its events that are in force. INVALID: there is
 * none, or none of its events can be undone; NOTFOUND. */
sessile_status uncompact_choose(undoing *u, session_core *s, sessile_error *err);
/* Builds the list after it (u->after), and the keys that come back and that leave. */
sessile_status uncompact_propose(undoing *u, sessile_error *err);
/* INVALID when the list breaks a law that holds for uncompact. */
sessile_status uncompact_check(undoing *u, const session_core *s, sessile_error *err);

#endif
