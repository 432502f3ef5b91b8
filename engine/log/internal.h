/*
 * internal.h: the handle of a log. Only files of this folder include it.
 *
 * Each file calls only files above it in this list.
 *
 *   line.c         the layout of one line
 *   handle.c       the state of an open log; size, lock, name
 *   damage.c       the record of a log's damage (damage.h)
 *   sync.c         durability: one thread syncs, all share the result; poison
 *   block.c        the bytes of one index block (index.h)
 *   index_state.c  what a handle remembers about the index
 *   index_write.c  adds blocks to the index
 *   index_check.c  compares the index with the log
 *   reader.c       reads lines from a backend, in large pieces
 *   scan.c         lines in order: what is committed, what is past it, recovery
 *   index.c        opening from the index; loading blocks later
 *   salvage.c      reads past damage; stand-ins for lost entries
 *   log.c          open, refresh, close
 *   append.c       begin, append, end
 *   read.c         one entry, a range, a header for lists
 *   copy.c         writes a whole log, to replace one or under a new name (copy.h)
 *   fork.c         copies entries of one log into another
 *   rewrite.c      writes everything readable of a damaged log to a new one
 *   reseal.c       seals a log under the newest key
 *   create.c       gives a new log its name
 *   transfer_write.c, transfer.c  copy a log into another store (transfer.h)
 *   check.c        opens a log to check it, changing nothing
 *   remove.c       removes a log
 *   rename.c       gives a log whose name was damaged its right name
 *   watch.c        waits until others append
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
    /* The size that the backend last reported to this handle. Without locks it refuses to
     * replace a log of another size. */
    uint64_t asked;
    uint64_t
        cache_bytes; /* of its cache, as opening saw it; UINT64_MAX: it did not look */
    int settled;     /* what was there before this handle's first append is durable */

    /* Entry i begins at offsets[i] and ends where the next one begins, or the log ends.
     * Not set in blocks that were not loaded: call log_load() first. */
    uint64_t *offsets;
    size_t offset_capacity;
    sessile_log_end end; /* the last commit that this handle has seen or made */
    /* The number of lines of an unfinished write before `end`, while a scan that began at
     * the index's anchor has not met a commit. */
    uint64_t in_write;
    struct {                /* where the last scan stopped */
        uint64_t at, index; /* offset; the id that the line there should have */
    } stopped;
    log_index index;
    struct log *before;               /* log_close_with() */
    struct log_damage_record *damage; /* NULL: not damaged (damage.c) */
    int judged; /* the log's bytes are damaged or cut; not: a visitor refused an entry */
    uint64_t
        proved; /* entries known to have been written, by the index or by log_judge() */

    struct {
        buf lines, scratch; /* append: what is written; what is sealed */
        buf piece, text;    /* reading: bytes of the backend; opened entries */
    } buffers;
    struct {                 /* log_prefetch() */
        buf bytes;           /* of the backend, from `at` on */
        uint64_t at;         /* offset in the log */
        uint64_t first, end; /* the entries that are expected; both 0: none */
    } prefetch;
    struct {
        size_t *ends; /* where each opened entry of an unfinished write ends */
        size_t capacity;
    } pending;
    struct { /* used by log_sync() too, which other threads call */
        pthread_mutex_t mutex;
        pthread_cond_t ended; /* a sync has */
        uint64_t written;     /* end.count, as log_sync() may see it */
        uint64_t durable;     /* entries known synced */
        int busy;             /* a thread is syncing */
        sessile_error poison; /* code other than OK: nothing may be appended any more */
    } sync;
};

/* What of a log's start is looked at: the clear part of a sealed header is far shorter.
 */
#define LOG_LOOK 1024

/* No line is shorter. */
#define LOG_SHORTEST UINT64_C(64)

/* Reads lines from `at` on, up to a limit. */
typedef struct reader {
    log_t *log;
    uint64_t at; /* where the next line begins */
    uint64_t limit;
    size_t pos, have; /* of log->buffers.piece: the next line's start; bytes read */
} reader;

typedef enum reader_found {
    READER_LINE = 0,
    READER_END,      /* the rest, perhaps nothing, has no newline */
    READER_TOO_LONG, /* no newline in LINE_LONGEST bytes */
    READER_FAILED
} reader_found;

void reader_init(reader *r, log_t *log, uint64_t at, uint64_t limit);
/* The next line without its newline, valid until the next call (log->buffers.piece).
 * index: the number that the line should have. */
reader_found reader_next(reader *r, uint64_t index, char **text, size_t *size,
                         sessile_error *err);
/* After READER_TOO_LONG: continues after the next newline. READER_END: there is none. */
reader_found reader_skip(reader *r, uint64_t index, sessile_error *err);

/*
 * Reads from log->end to size, visits committed entries and moves log->end. Stops at the
 * first line that is not good, which is not an error.
 */
sessile_status log_scan(log_t *log, uint64_t size, log_visit visit, void *arg,
                        sessile_error *err);
/* Judges the bytes between log->end and size, which log_scan() has just read. OK: a torn
 * end, or a write in progress. DAMAGED: one of the lines says that a missing entry was
 * durable, or the first bad line was written whole. */
sessile_status log_judge(log_t *log, uint64_t size, sessile_error *err);
/* Under the exclusive lock: scans, judges, and sets a torn end aside. Adds its bytes to
 * *torn. */
sessile_status log_recover(log_t *log, log_visit visit, void *arg, uint64_t *torn,
                           sessile_error *err);
/* Without a lock: scans. Bad bytes are read again, and judged under a shared lock. */
sessile_status log_scan_unlocked(log_t *log, log_visit visit, void *arg,
                                 sessile_error *err);

/* 1: the store has locks. Otherwise it compares each change with what was read before. */
static inline int log_has_locks(const sessile_backend *table)
{
    return (table->capabilities & SESSILE_BACKEND_LOCKS) != 0;
}
/* Without locks: how often a change is tried again when others were faster. */
#define LOG_TRIES 8
/* The size of the log now, in bytes. */
sessile_status log_size(log_t *log, uint64_t *size, sessile_error *err);
/* Returns the status of a backend call. After NOTFOUND in a store without locks, finds
 * out whether the log was removed or replaced, and says so in err. */
sessile_status log_check_gone(log_t *log, sessile_status status, sessile_error *err);
/* Checks that a log which seems too short still exists: without locks the size may come
 * from memory. NOTFOUND: as log_check_gone(). */
sessile_status log_check_exists(log_t *log, sessile_error *err);
/* 1: the call failed only because another log took the name, and can be tried again with
 * that one. Never with locks: there the old bytes can still be read. */
int log_can_retry(log_t *log, sessile_status status);
/* After an opening that failed with status: *moved 1: it can be tried again, since
 * another log has the name or none. Returns status, or BUSY: the handle's time is up, and
 * whether the log is just being removed is not known. (log.c) */
sessile_status log_check_moved(log_t *log, sessile_status status, int *moved,
                               sessile_error *err);
/* Returns NOTFOUND: the log was removed, or its name was given to another one. */
sessile_status log_fail_name_gone(const log_t *log, sessile_error *err);
/* Takes a lock of the backend. BUSY names the process that holds it. */
sessile_status log_lock(const sessile_backend *table, sessile_backend_log *handle,
                        int kind, int timeout_ms, int *replaced, sessile_error *err);

/* If status is DAMAGED or TRUNCATED and the header was read: records err as the log's
 * damage, clears it and returns OK. Otherwise returns status. */
sessile_status log_record_damage(log_t *log, sessile_status status, sessile_error *err);
void log_damage_free(log_t *log);
/* Appends the text of entry id of a damaged log if it is past the damage or has a
 * stand-in. *found 0: it is an ordinary entry. */
sessile_status log_read_salvaged(log_t *log, sessile_id id, buf *out, int *found,
                                 sessile_error *err);

/* Where the log is damaged: the first line that is not good, which may be in the middle
 * of a write, after the last scan. */
static inline void log_bad_place(const log_t *log, uint64_t *at, uint64_t *index)
{
    int later = log->stopped.index > log->end.count;
    *at = later ? log->stopped.at : log->end.bytes;
    *index = later ? log->stopped.index : log->end.count;
}
/* Compares a scanned log of size bytes with the durability proof of the index. If an
 * entry that was durable is missing: TRUNCATED if the log is too short for it, else
 * DAMAGED. */
sessile_status log_check_proof(log_t *log, uint64_t size, sessile_error *err);
/* Frees large buffers: all of them, or those of an append. */
void log_trim(log_t *log);
void log_trim_lines(log_t *log);

/* Under the exclusive lock, before a handle's first append: syncs the entries that the
 * log does not prove durable. A failed sync poisons. */
sessile_status log_settle(log_t *log, sessile_error *err);
/* Raises the numbers of entries known to be written and durable. */
void log_note_progress(log_t *log, uint64_t written, uint64_t durable);
void log_poison(log_t *log, const sessile_error *why);
/* IO if the log is poisoned; err says why. */
sessile_status log_poisoned(log_t *log, sessile_error *err);

#endif
