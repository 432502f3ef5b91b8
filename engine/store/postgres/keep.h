/* keep.h: records of logs in memory, so that they are not fetched again. */
#ifndef STORE_POSTGRES_KEEP_H
#define STORE_POSTGRES_KEEP_H

#include <pthread.h>

#include "base/alloc.h"
#include "base/os.h"

/* Consecutive records of a log. */
typedef struct keep_stretch {
    const char *data;
    size_t size;
    uint64_t from;  /* the log's offset of data */
    uint64_t first; /* the number of the record that begins there */
} keep_stretch;

typedef struct keep_piece keep_piece;
typedef struct keep_log keep_log; /* one log's records, for one handle or for several */

typedef struct keep {
    const os_table *os;
    allocator alloc;
    size_t most;           /* bytes, with what the pieces themselves take */
    int shared;            /* by all handles of a log, until they are the oldest */
    pthread_mutex_t mutex; /* all that follows */
    size_t bytes;
    uint64_t era; /* of the server: what an earlier one said is not put */
    keep_piece *newest, *oldest;
    keep_log **table; /* by their names, when shared: chains */
    size_t slots, logs;
} keep;

void keep_init(keep *k, const os_table *os, const allocator *a, size_t most, int shared);
void keep_deinit(keep *k);

/* The records of the log `id`, whose name has this hash, until keep_detach(). When
 * shared, a name leads to one log at a time: records of another id are forgotten. NULL:
 * no memory. */
keep_log *keep_attach(keep *k, uint64_t name, uint64_t id);
/* Records that only this handle sees, and that are fetched from now on. NULL: no memory.
 */
keep_log *keep_attach_alone(keep *k, uint64_t id);
void keep_detach(keep *k, keep_log *log); /* a log that is NULL is ignored, here and below
                                           */

/* What the log of that name has from its beginning on: *id, and the record and the offset
 * behind it; all 0: nothing is known. */
void keep_known(keep *k, uint64_t name, uint64_t *id, uint64_t *count, uint64_t *bytes);

/* Adds what is not there yet. era: of the connection that it came by. Lack of memory is
 * no error. */
void keep_put(keep *k, keep_log *log, const keep_stretch *s, uint64_t era);
/* Copies what is there from offset on, up to size bytes; returns how many. *index: the
 * record that begins behind them; UINT64_MAX: none is known. */
size_t keep_get(keep *k, keep_log *log, uint64_t offset, char *out, size_t size,
                uint64_t *index);
/* Of `size` bytes at offset, the first of which is not there: how many are to be fetched,
 * where the rest is there. */
uint64_t keep_lacks(keep *k, keep_log *log, uint64_t offset, uint64_t size);

/* Forgets what a log has, or what of it was put more than `us` ago. */
void keep_forget(keep *k, keep_log *log);
void keep_forget_older(keep *k, keep_log *log, uint64_t us);
/* Forgets everything: another server may have other records. */
void keep_begin_era(keep *k);
uint64_t keep_era(keep *k);

#endif
