/*
 * memories.h: what the methods of MemoryService share: the memories of a call, and what
 * requests and replies have of them.
 *
 * A memory is lent by keep.c as a session is, and a handle of it is made for who calls.
 * It lives until the call ends.
 */
#ifndef SERVICE_MEMORIES_H
#define SERVICE_MEMORIES_H

#include "service/memory.pb-c.h"
#include "service/pieces.h"

/* ---------------------------------------------------------------------- memories.c */

/* The memory of a request, opened for who calls. make: 1: it is made when it is not
 * there. NOTFOUND, DENIED and so on, as sessile_memory_open() says. */
sessile_status call_memory(call *c, const Sessile__V1__Memory *names, int make,
                           sessile_memory **out, sessile_error *err);
/* The same of a memory to which entries are written. DENIED: nothing is written for its
 * agent (call_may_remember()). */
sessile_status call_memory_to_write(call *c, const Sessile__V1__Memory *names, int make,
                                    sessile_memory **out, sessile_error *err);
/* Its names, as call_names() has those of a session. INVALID: there are none; an id; a
 * user of a shared memory. */
sessile_status call_memory_names(call *c, const Sessile__V1__Memory *names,
                                 sessile_session_options *out, sessile_error *err);

/* The memories of a session, those that a request names and that are there. */
typedef struct memory_set {
    sessile_memory *at[SESSILE_RECALL_MEMORIES_MAX];
    int shared[SESSILE_RECALL_MEMORIES_MAX]; /* 1: the one that the agent keeps for all */
    size_t count;
} memory_set;
/* names: "user", "agent"; none: both. INVALID: another name. Other errors: as
 * call_memory(), but a memory that is not there is left out. */
sessile_status call_memories(call *c, sessile_session *session, char *const *names,
                             size_t n, memory_set *out, sessile_error *err);
/* Gives the call's memories back. status: of the call. 1: one of them was removed. */
int memories_give(call *c, sessile_status status);

/* -------------------------------------------------------------------- memories_read.c */

typedef enum memory_word { WORD_STATE, WORD_KIND, WORD_SOURCE, WORD_VERDICT } memory_word;
/* The value of a name; empty: 0. INVALID: there is none, with the name of the field. */
sessile_status read_word(memory_word what, const char *name, const char *field, int *out,
                         sessile_error *err);
/* Entries to be written, in the arena. INVALID: the name of a kind or a source. NOMEM. */
sessile_status read_entries(call *c, Sessile__V1__MemoryEntry *const *from, size_t n,
                            sessile_memory_write_entry **out, sessile_error *err);
/* from may be NULL. INVALID: the name of a state, a kind or a source. */
sessile_status read_filter(const Sessile__V1__MemoryFilter *from,
                           sessile_memory_filter *out, sessile_error *err);
/* Vectors one behind the other, in the arena. INVALID: they are of several sizes.
 * NOMEM. */
sessile_status read_vectors(call *c, Sessile__V1__Vector *const *from, size_t n,
                            const float **out, size_t *dims, sessile_error *err);
/* The place of a session's memory in a set; INVALID: the request has left it out, or it
 * is not there. */
sessile_status read_place(const memory_set *set, int shared, size_t *out,
                          sessile_error *err);
/* What an outside index has found. set: of a recall; NULL: of a search. from may be NULL:
 * then *out is. INVALID: a memory that is not in the set. NOMEM. */
sessile_status read_outside(call *c, const Sessile__V1__OutsideHits *from,
                            const memory_set *set, sessile_memory_outside **out,
                            size_t *count, sessile_error *err);
static inline double real_or(const Sessile__V1__Real *real, double standard)
{
    return real ? real->value : standard;
}

/* -------------------------------------------------------------------- memories_rows.c */

/* A list of entries, and what it was asked for with. It stands first in what a method
 * makes for it, in the call's arena. */
typedef struct row_list row_list;
struct row_list {
    /* Finds the rows, as one block for sessile_free(); on failure there is none. It may
     * be called again, by another worker. */
    sessile_status (*find)(call *c, row_list *l, sessile_memory_row **rows, size_t *count,
                           sessile_error *err);
    const memory_set *set; /* of a recall; else NULL */
    /* of memories_rows.c */
    int found;
    uint64_t mark; /* of the rows that were found */
};
/* Replies a list, no faster than its client reads: as reply_list(). LIMIT: the rows have
 * more than 8 MiB. */
sessile_status reply_rows(call *c, row_list *l, sessile_error *err);
/* Sends one row, and frees it. As call_send(). */
sessile_status reply_row(call *c, sessile_memory_row *row, sessile_error *err);

#endif
