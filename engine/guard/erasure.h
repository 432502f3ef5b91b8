/*
 * erasure.h: what the control log says of the erasures of a user.
 *
 * An erasure can end at any moment, and the one that completes it has to know what the
 * earlier one has done. So each log is noted before it is removed, and with it what else
 * will end. These are facts of the kind CONTROL_ERASURE:
 *
 *     {"subject":HASH,"step":"begin","logs":[[HASH,BYTES,1],…],"shared_entries":N,…}
 *     {"subject":HASH,"step":"done"}
 *     {"subject":HASH,"step":"forgotten","secret":"user-…"}
 *
 * subject is a hash of the user under the store's name key, and a log has one of its
 * place; the third number is 1 for a memory; secret is how the secrets of the user are
 * called. No name is in them, so they stay.
 */
#ifndef GUARD_ERASURE_H
#define GUARD_ERASURE_H

#include "guard/control.h"

#define ERASURE_SUBJECT 17 /* of hex, with its NUL */

/* What ends beside logs. Of an erasure that was interrupted, the most that was found. */
typedef struct erasure_counts {
    uint64_t shared_entries, consents, grants, access_keys, locks;
} erasure_counts;

typedef struct erasure_log {
    uint64_t hash, bytes;
    int is_memory, is_noted; /* in a fact */
} erasure_log;

/* What is known of a user's erasures. */
typedef struct erasure_record {
    store_core *store;
    control *log; /* NULL: the host keeps the records of this store */
    sessile_slice user;
    char subject[ERASURE_SUBJECT];
    int is_begun;      /* and not done */
    erasure_log *logs; /* that were found since it was begun */
    size_t count, capacity;
    erasure_counts most;
    int64_t done_ms;      /* when the last one was completed; 0: none was */
    int64_t forgotten_ms; /* when the user was forgotten last; 0: not known */
} erasure_record;

void erasure_subject(const store_core *st, sessile_slice user, char out[ERASURE_SUBJECT]);
/* Reads it, as the control log is now; *out is to be deinit'ed, also after an error. */
sessile_status erasure_read(erasure_record *out, store_core *st, sessile_slice user,
                            sessile_error *err);
void erasure_deinit(erasure_record *r);

/* One more log that will be removed; one that is known is not counted again. NOMEM. */
sessile_status erasure_add_log(erasure_record *r, const char *folder, const char *name,
                               uint64_t bytes, int is_memory, sessile_error *err);
/* What ends is what was found, or what was written down, if that is more. */
void erasure_raise(erasure_record *r, const erasure_counts *found);
/* Writes down what was added, and the counts, durably: what follows may be interrupted.
 */
sessile_status erasure_begin(erasure_record *r, const erasure_counts *found,
                             sessile_error *err);
/* Writes down that it is completed. */
sessile_status erasure_done(erasure_record *r, sessile_error *err);
/* Writes down that a user was forgotten just now. */
sessile_status erasure_forgotten(store_core *st, sessile_slice user, sessile_error *err);

/* When users were forgotten last, by what their secrets are called. */
typedef struct erasure_times {
    const allocator *alloc;
    struct erasure_time {
        char secret[NAME_SIZE];
        int64_t ms;
    } * list;
    size_t count, capacity;
} erasure_times;
/* *out is to be deinit'ed, also after an error. */
sessile_status erasure_times_read(erasure_times *out, store_core *st, sessile_error *err);
void erasure_times_deinit(erasure_times *t);
int64_t erasure_time_of(const erasure_times *t, const char *secret); /* 0: not known */

/*
 * Ends the grants to a user and on the user's sessions, the user's access keys, and locks
 * of the user, durably. counts: what was in force. dry_run 1: only counts. It finds those
 * of a user who was forgotten, too.
 */
sessile_status erasure_end_access(erasure_record *r, int dry_run, erasure_counts *counts,
                                  sessile_error *err);

#endif
