/*
 * faulty.h: a table of system calls over another one, that counts and that fails on
 * purpose.
 *
 *   faulty f;
 *   faulty_init(&f, &os_posix);             // or &sim.table
 *   os_current = &f.table;                  // stores opened from now on use it
 *   faulty_fail(&f, FAULTY_SYNCS, 0, EIO);  // the next sync of any kind fails, once
 *   … f.hits == 1: it came to that …
 *   faulty_none(&f);                        // works again; counts start at 0
 *
 * A scenario run once with faulty_none() tells in f.all how many calls it has; run again
 * with faulty_fail(&f, FAULTY_ALL, n, EIO) for each n below that, every call fails once.
 * faulty_stop(&f, n) leaves what a process killed after n changing calls leaves.
 *
 * Safe under threads as long as nobody changes the plan while others call.
 */
#ifndef SUPPORT_FAULTY_H
#define SUPPORT_FAULTY_H

#include <pthread.h>
#include <stdint.h>

#include "base/os.h"

typedef enum faulty_kind {
    FAULTY_OPEN,   /* open_at without OS_CREATE_NEW */
    FAULTY_CREATE, /* open_at with it */
    FAULTY_CLOSE,  /* counted, never failed: nothing could be done about it */
    FAULTY_READ,
    FAULTY_WRITE,
    FAULTY_TRUNCATE,
    FAULTY_SYNC_DATA,
    FAULTY_SYNC_ALL,
    FAULTY_STAT_FD,
    FAULTY_STAT_AT,
    FAULTY_LOCK,   /* taking one */
    FAULTY_UNLOCK, /* counted, never failed */
    FAULTY_MKDIR,
    FAULTY_RENAME_NEW,
    FAULTY_RENAME_OVER,
    FAULTY_LINK,
    FAULTY_UNLINK,
    FAULTY_LIST,
    FAULTY_KINDS
} faulty_kind;
/* The call's name, as "rename_new". */
extern const char *const faulty_names[FAULTY_KINDS];

/* Sets of kinds. A plan strikes no close and no unlock, and does not count them. */
#define FAULTY_BIT(kind) (1u << (kind))
#define FAULTY_ALL       (FAULTY_BIT(FAULTY_KINDS) - 1u)
#define FAULTY_SYNCS     (FAULTY_BIT(FAULTY_SYNC_DATA) | FAULTY_BIT(FAULTY_SYNC_ALL))
#define FAULTY_CHANGING                                                    \
    (FAULTY_SYNCS | FAULTY_BIT(FAULTY_CREATE) | FAULTY_BIT(FAULTY_WRITE) | \
     FAULTY_BIT(FAULTY_TRUNCATE) | FAULTY_BIT(FAULTY_MKDIR) |              \
     FAULTY_BIT(FAULTY_RENAME_NEW) | FAULTY_BIT(FAULTY_RENAME_OVER) |      \
     FAULTY_BIT(FAULTY_LINK) | FAULTY_BIT(FAULTY_UNLINK))

/* What happens at the call that is hit. */
typedef enum faulty_how {
    FAULTY_REFUSED, /* the call is not made: -1 and the error */
    FAULTY_SHORT,   /* a read or write of half the bytes, which says so; others: made */
    FAULTY_TORN,    /* a write of half the bytes, then -1; others: as REFUSED */
    FAULTY_LIED     /* the call is made, then says -1 and the error */
} faulty_how;

typedef struct faulty {
    os_table table; /* what stores are given; table.ud is the faulty itself */
    const os_table *below;
    pthread_mutex_t mutex;

    uint64_t counts[FAULTY_KINDS]; /* since the last plan */
    uint64_t all, changing;
    int64_t descriptors; /* opened less closed, since faulty_init() */
    int64_t locks;       /* descriptors that hold a lock */

    /* the plan: call number `at` (from 0) of the calls in `kinds`, and `times` - 1 more
     */
    unsigned kinds;
    uint64_t at, times;
    int error;
    faulty_how how;
    uint64_t met;       /* calls of `kinds` so far */
    uint64_t hits;      /* how often the plan struck, stopped calls included */
    faulty_kind struck; /* the kind it struck first */

    int stopping;       /* from the changing call number `stop_at` on, all of them fail */
    int stopping_reads; /* and everything else as well */
    uint64_t stop_at;

    /* Called before each changing call with its number since the last plan, without any
     * lock: a test may wait here, look at the files, or kill the process. */
    void (*before)(void *arg, faulty_kind kind, uint64_t number);
    void *before_arg;

    unsigned char *held; /* by descriptor: holds a lock */
    size_t held_size;
} faulty;

void faulty_init(faulty *f, const os_table *below);
void faulty_deinit(faulty *f);

/* Every plan begins with counts of 0. */
void faulty_none(faulty *f);
/* The call number at (from 0) among those of kinds is refused with error, once. */
void faulty_fail(faulty *f, unsigned kinds, uint64_t at, int error);
/* The same for `times` calls in a row (UINT64_MAX: for ever), in another way. */
void faulty_plan(faulty *f, unsigned kinds, uint64_t at, uint64_t times, faulty_how how,
                 int error);
/* n changing calls are made; those after it fail with EIO, as if the process had been
 * killed there. reads_too: all other calls fail from then on as well, except close and
 * unlock. */
void faulty_stop(faulty *f, uint64_t n, int reads_too);

#endif
