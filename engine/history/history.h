/*
 * history.h: what the compactions on a path did, message by message.
 *
 * Used to explain (why.c), to list (compactions.c) and to undo (uncompact.c). A history
 * is built from the compaction entries of one path, oldest first: each is compared with
 * the context that it changed, and every message that left or came is an event. A history
 * is built for one call and not kept.
 */
#ifndef HISTORY_HISTORY_H
#define HISTORY_HISTORY_H

#include "context/finder.h"
#include "session/handle.h"

#define EVENT_NONE UINT32_MAX

/* A message left the context, or came into it. */
typedef struct history_event {
    sessile_key key;
    sessile_id at;  /* the compaction */
    sessile_key by; /* the message written that stands for it (left), or that stood for it
                       and goes (came); entry SESSILE_NO_ID: none */
    uint32_t before, next; /* the key's events around this one, or EVENT_NONE */
    uint32_t group;
    uint8_t came;        /* 1: written, or put back; 0: it left */
    uint8_t disposition; /* of what left: a sessile_disposition */
} history_event;

/* A message that was written and all that it stands for, or one that was lost: they come
 * and go together. */
typedef struct history_group {
    sessile_id at;   /* the compaction that made it */
    sessile_key put; /* entry SESSILE_NO_ID: none */
    uint32_t last;   /* its newest turn */
    int touched;     /* scratch of history_in_force() */
} history_group;

/* A compaction turned a group on or off. */
typedef struct history_turn {
    sessile_id at;
    uint32_t before; /* the group's turn before this one, or EVENT_NONE */
} history_turn;

/* A compaction with a context. */
typedef struct history_step {
    sessile_id at;
    sessile_id undoes;     /* the compaction that this one undoes, or SESSILE_NO_ID */
    uint32_t first, count; /* its events */
    uint64_t kept;         /* messages of its list that were there before it */
} history_step;

typedef struct history {
    history_step *steps; /* oldest first, so that `at` ascends */
    size_t step_count, step_capacity;
    history_event *events; /* in order of time */
    size_t event_count, event_capacity;
    history_group *groups;
    size_t group_count, group_capacity;
    history_turn *turns;
    size_t turn_count, turn_capacity;
    map first, last; /* the events of a key */
    const allocator *alloc;
} history;

void history_init(history *h, const allocator *a);
void history_deinit(history *h);
/* Of the path to `at`. Once after init. DAMAGED: a compaction cannot be read; NOMEM. */
sessile_status history_make(history *h, session_core *s, sessile_id at,
                            sessile_error *err);

/* The first or newest event of a key, or EVENT_NONE. */
uint32_t history_first(const history *h, sessile_key key);
uint32_t history_last(const history *h, sessile_key key);
/* The step of compaction `at`, or NULL. */
const history_step *history_find(const history *h, sessile_id at);
/*
 * Which of a step's events are in force: out[i] is 1 or 0, one for each of its events.
 * All events of a group are, if the group is as the step left it or every later change
 * to it was undone, and if no other compaction has touched what the group has in the
 * context. Returns how many events are in force.
 */
uint32_t history_in_force(history *h, const history_step *step, uint8_t *out);

/* ---- what it is for */

/* As sessile.h says of the functions of these names (why.c, uncompact.c,
 * compactions.c). */
sessile_status session_why(session_core *s, sessile_key key, sessile_explanation **out,
                           sessile_error *err);
sessile_status session_uncompact(session_core *s, sessile_id which, int dry_run,
                                 sessile_uncompacted **out, sessile_error *err);
sessile_status session_compactions(session_core *s, sessile_compaction **out,
                                   size_t *count, sessile_error *err);

/* ---- rows of compactions, as they are handed out (compactions.c) */

typedef struct compaction_rows compaction_rows;
sessile_status compaction_rows_new(compaction_rows **out, session_core *s, history *h,
                                   sessile_error *err);
void compaction_rows_free(compaction_rows *rows);
/* Adds the row of compaction or refusal `id` and sets *index (may be NULL) to its
 * number. */
sessile_status compaction_rows_add(compaction_rows *rows, sessile_id id, size_t *index,
                                   sessile_error *err);
/* Bytes that they take when handed out: the rows, then their text. */
size_t compaction_rows_size(const compaction_rows *rows);
/* Lays them out at `to`, which is aligned for a row. */
sessile_compaction *compaction_rows_give(const compaction_rows *rows, void *to);

#endif
