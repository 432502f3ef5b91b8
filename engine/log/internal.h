/*
 * internal.h: the handle of a log, shared by the files of this floor and by nobody else.
 *
 * A file calls only files above it in this list.
 *
 *   line.c         the layout of one line
 *   handle.c       what an open log and its backend say: size, lock, name
 *   damage.c       the record of a log's damage (damage.h)
 *   sync.c         durability: one thread syncs, all share the result; poison
 *   block.c        one block of the index: its bytes (index.h)
 *   index_state.c  what a handle remembers of the index
 *   index_write.c  adds blocks to the index
 *   index_check.c  compares the index with the log
 *   reader.c       lines out of a backend, in large pieces
 *   scan.c         lines in order: what is committed, what is past it, recovery
 *   index.c        opening from the index; blocks read later
 *   salvage.c      reads past damage; stand-ins for what is lost
 *   log.c          open, refresh, close
 *   append.c       begin, append, end
 *   read.c         one entry, a range, a header for lists
 *   copy.c         writes a whole log, to replace one or under a new name (copy.h)
 *   fork.c         copies entries of one log into another
 *   rewrite.c      writes all that can be read of a damaged log to a new one
 *   reseal.c       seals a log under the newest key
 *   create.c       gives a new log its name
 *   transfer_write.c, transfer.c  move a log into another store (transfer.h)
 *   check.c        opens a log for inspection, changing nothing
 *   remove.c       removes a log
 *   watch.c        waits for what others append
 */
#ifndef LOG_INTERNAL_H
#define LOG_INTERNAL_H

#include <pthread.h>

#include "log/index.h"
#include "log/line.h"
#include "log/log.h"

struct log {
    store st;
    const allocator *alloc;
    sessile_backend_log *handle;
    char *name; /* "folder/name", for sentences */
    logkey key;
    unsigned depth;
    int timeout_ms;
    int locked;
    uint64_t torn; /* bytes set aside by this handle */
    /* What the backend last said through this handle: without locks it refuses to replace
     * a log that ends elsewhere by then. */
    uint64_t asked;
    int settled; /* what was there before this handle's first append is durable */

    /* Entry i begins at offsets[i] and ends where the next one begins, or the log does.
     * Not set in blocks that were left in the index: log_reach() first. */
    uint64_t *offsets;
    size_t offset_capacity;
    sessile_log_end end; /* the last commit that this handle has seen or made */
    /* While a scan that began at the index's anchor has not met a commit: how many lines
     * of an unfinished write end is behind. */
    uint64_t in_write;
    log_index index;
    struct log *before;               /* log_outlive() */
    struct log_damage_record *damage; /* NULL, or why nothing may be written: salvage.c */
    int judged; /* the log's bytes were found damaged or cut, not a visitor's entry */
    uint64_t proved; /* entries that a proof outside the log knows to have been safe */

    struct {
        buf lines, scratch; /* append: what is written; what is sealed */
        buf piece, text;    /* reading: bytes of the backend; opened entries */
    } buffers;
    struct {                 /* log_expect() */
        buf bytes;           /* of the backend, from `at` on */
        uint64_t at;         /* offset in the log */
        uint64_t first, end; /* the entries that are expected; both 0: none */
    } prefetch;
    struct {
        size_t *ends; /* where each opened entry of an unfinished write ends */
        size_t capacity;
    } pending;
    struct { /* shared with log_sync(), which other threads call */
        pthread_mutex_t mutex;
        pthread_cond_t ended; /* a sync has */
        uint64_t written;     /* end.count, as log_sync() may see it */
        uint64_t durable;     /* entries known synced */
        int busy;             /* a thread is syncing */
        sessile_error poison; /* code other than OK: nothing may be appended any more */
    } sync;
};

/* No line is shorter, whatever its entry. */
#define LOG_SHORTEST UINT64_C(64)

/* Lines from `at` on, up to the size that was given. */
typedef struct reader {
    log_t *log;
    uint64_t at; /* where the next line begins */
    uint64_t limit;
    size_t pos, have; /* of log->buffers.piece: the next line's start; bytes read */
} reader;

typedef enum reader_found {
    READER_LINE = 0,
    READER_END,      /* what is left, perhaps nothing, has no newline */
    READER_TOO_LONG, /* nor has it in LINE_LONGEST bytes */
    READER_FAILED
} reader_found;

void reader_init(reader *r, log_t *log, uint64_t at, uint64_t limit);
/* The next line without its newline, in log->buffers.piece until the next call. index:
 * which record it should be. */
reader_found reader_next(reader *r, uint64_t index, char **text, size_t *size,
                         sessile_error *err);
/* After READER_TOO_LONG: goes on behind the next newline. READER_END: there is none. */
reader_found reader_skip(reader *r, uint64_t index, sessile_error *err);

/*
 * Reads on from log->end to size, shows what is committed and moves log->end; stops at
 * the first line that is not good. Only faults of the system or the visitor are errors.
 */
sessile_status log_scan(log_t *log, uint64_t size, log_visit visit, void *arg,
                        sessile_error *err);
/* What is between log->end and size, none of it committed: OK when it is a torn end (or a
 * write in progress), DAMAGED when a later line says that a missing entry was safe. */
sessile_status log_judge(log_t *log, uint64_t size, sessile_error *err);
/* Under the exclusive lock: scan, judge, set aside and cut. *torn grows by what was cut.
 */
sessile_status log_recover(log_t *log, log_visit visit, void *arg, uint64_t *torn,
                           sessile_error *err);
/* Without: scan; what is bad is read again, and judged under a shared lock. */
sessile_status log_look(log_t *log, log_visit visit, void *arg, sessile_error *err);

/* 1: its log can be held. Where not, each change is compared with what was seen before.
 */
static inline int log_has_locks(const sessile_backend *table)
{
    return (table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
}
/* How often a change that others were faster than is tried again, where there are no
 * locks. */
#define LOG_TRIES 8
/* The bytes that the log has now. */
sessile_status log_size(log_t *log, uint64_t *size, sessile_error *err);
/* What a call of the backend on the open log answered. After NOTFOUND, where there are no
 * locks: it was removed, or replaced, which log_replaced() says from then on. */
sessile_status log_gone(log_t *log, sessile_status status, sessile_error *err);
/* Of a log that seems too short. NOTFOUND as log_gone(): where there are no locks, what a
 * removed log had may be told as this handle was told it, and not as it made it. */
sessile_status log_still_there(log_t *log, sessile_error *err);
/* 1: it failed only because another log has taken the name meanwhile, and can be tried
 * again on that one. Never where there are locks: the old bytes can still be read. */
int log_moved(log_t *log, sessile_status status);
/* NOTFOUND: the log's name was removed or given to another log. */
sessile_status log_fail_name_gone(const log_t *log, sessile_error *err);
/* Takes a lock of the backend; BUSY names who has it. */
sessile_status log_lock(const sessile_backend *table, sessile_backend_log *handle,
                        int kind, int timeout_ms, int *replaced, sessile_error *err);

/* After DAMAGED or TRUNCATED in err: keeps it as the handle's damage and clears it, when
 * at least the header was read. Else, and for every other error: status as it is. */
sessile_status log_take_damage(log_t *log, sessile_status status, sessile_error *err);
void log_damage_free(log_t *log);
/* Of a damaged log: appends entry id's text if it is one that the scan did not show, or
 * has a stand-in. *found 0: it is an entry like any other. */
sessile_status log_read_salvaged(log_t *log, sessile_id id, buf *out, int *found,
                                 sessile_error *err);

/* What was scanned, of size bytes, does not reach the entry of which the index knows that
 * it was safe: TRUNCATED when there are too few bytes for it, else DAMAGED. */
sessile_status log_check_proof(log_t *log, uint64_t size, sessile_error *err);
/* Frees buffers that grew large: all of them, or those of an append. */
void log_trim(log_t *log);
void log_trim_lines(log_t *log);

/* Under the exclusive lock, before a handle's first append: makes durable what the log
 * does not prove to be. A failed sync poisons. */
sessile_status log_settle(log_t *log, sessile_error *err);
/* More is known to be written, or synced (counts of entries). */
void log_learn(log_t *log, uint64_t written, uint64_t durable);
void log_poison(log_t *log, const sessile_error *why);
/* IO, naming why, when the log is poisoned. */
sessile_status log_poisoned(log_t *log, sessile_error *err);

#endif
