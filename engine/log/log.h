/*
 * log.h: an append-only log of entries in a store.
 *
 * README.md specifies the bytes. An entry is JSON text; nothing here knows what it means.
 * The id of an entry is its position: entry i is line i. Only log_sync() is thread-safe:
 * for all other calls the session above holds its mutex.
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "store/store.h"
#include "vault/vault.h"

typedef struct log log_t; /* not `log`: math.h owns that name */

/* A scan calls this for each committed entry, oldest first. text is valid during the call
 * and has passed json_check(). A status other than OK ends the scan with that error. */
typedef sessile_status (*log_visit)(void *arg, sessile_id id, const char *text,
                                    size_t size, sessile_error *err);

/* Creates a durable log with one entry, its header, and does not open it. header: the
 * entry's JSON text, of type session and id 0. When the keyring got a newer epoch
 * meanwhile, the log is sealed again, for which it waits timeout_ms for other writers
 * (-1: for ever); BUSY: the log exists, under the older epoch. */
sessile_status log_create(store *st, const keyring *k, const char *folder,
                          const char *name, const char *header, size_t size,
                          int timeout_ms, const allocator *a, sessile_error *err);

/* The same, sealed with a user's secret. user: as keyring_user_name() returns it; NULL or
 * "": the store's key is used. *bytes (may be NULL): the size of the log. */
sessile_status log_create_for(store *st, const keyring *k, const char *folder,
                              const char *name, const char *user, const char *header,
                              size_t size, int timeout_ms, uint64_t *bytes,
                              const allocator *a, sessile_error *err);

/*
 * Opens a log, scans all of it, and visits each committed entry. The scan stops at the
 * last commit, V. There are three cases for bytes past V:
 *
 * - A line among them says in clear that a missing entry is durable. Then the log is
 *   damaged. It is opened and not changed. log_damage() describes the damage, log_begin()
 *   is refused, and log_read_damaged() visits the entries past the damage.
 * - The exclusive lock is free. Then the bytes are a torn end: they are copied to a file
 *   beside the log and cut. *torn is set to their number.
 * - The lock is held. Then they may be a write in progress, and are left alone.
 *
 * DAMAGED: the header is bad.
 */
sessile_status log_open(log_t **out, store *st, const keyring *k, const char *folder,
                        const char *name, unsigned depth, int timeout_ms, log_visit visit,
                        void *arg, uint64_t *torn, const allocator *a,
                        sessile_error *err);

/* The index (README.md): blocks of this many entries, in the backend's cache. */
#define LOG_BLOCK 256

/*
 * Functions of the floor above that write its data into the index and read it back. The
 * data is opaque here. They are called inside log_open_indexed(), log_load(), log_read…()
 * and log_index_…() of the same log, by the thread that called those.
 */
typedef struct log_index_callbacks {
    void *arg;
    size_t record_size; /* bytes kept of one entry */
    int fresh;          /* the existing index is ignored, and rebuilt */
    /* Writes the LOG_BLOCK records of a block, and appends to extra and snapshot: more
     * data of these entries, and the state after the last one. NOTFOUND: that state is no
     * longer known. */
    sessile_status (*fill)(void *arg, uint64_t block, void *records, buf *extra,
                           buf *snapshot, sessile_error *err);
    /* Restores the state after `count` entries. Entry 0 was visited before. INVALID: the
     * snapshot makes no sense. */
    sessile_status (*restore)(void *arg, uint64_t count, const void *snapshot,
                              size_t size, sessile_error *err);
    /* Takes back the records and extra data of a block before the restored state.
     * INVALID: they make no sense. */
    sessile_status (*take)(void *arg, uint64_t block, const void *records,
                           const void *extra, size_t extra_size, sessile_error *err);
    /* Forgets everything restored and visited. The scan starts again at entry 0. */
    void (*reset)(void *arg);
    /* fill will not be called again for blocks before this one. */
    void (*written)(void *arg, uint64_t block);
} log_index_callbacks;

/*
 * As log_open(), with the index. If the index agrees with the log, entry 0 is visited,
 * the state after the last block is restored, and only later entries are visited. If it
 * is missing, stale or wrong, the whole log is scanned, and the index is written again
 * when the lock is free. callbacks NULL: no index is used. *out is set before the first
 * visit, so a visitor may call log_count(). TRUNCATED: the index has entries past the
 * log's end. DAMAGED: it has entries past V.
 */
sessile_status log_open_indexed(log_t **out, store *st, const keyring *k,
                                const char *folder, const char *name, unsigned depth,
                                int timeout_ms, const log_index_callbacks *callbacks,
                                log_visit visit, void *arg, uint64_t *torn,
                                const allocator *a, sessile_error *err);
/* Loads the block of entry id from the index, if it is not in memory. NOTFOUND: there is
 * no such entry. NOMEM. Any other error: this block of the index is bad; call
 * log_rescan(). */
sessile_status log_load(log_t *log, sessile_id id, sessile_error *err);
/* Visits all entries again, from 0 to log_count(), and drops the index, which will be
 * rebuilt. On error nothing has changed. Must not be called inside a visitor. */
sessile_status log_rescan(log_t *log, log_visit visit, void *arg, sessile_error *err);
/* Adds blocks to the index for durable entries that are not in it. Errors are ignored.
 * Call it between log_begin() and log_end(), after all entries were visited. */
void log_index_write(log_t *log);
/* The same, if the lock is free. */
void log_index_try(log_t *log);
/* Empties the index and stops using it. BUSY (no lock within timeout_ms), IO: the index
 * still exists. */
sessile_status log_index_drop(log_t *log, int timeout_ms, sessile_error *err);
/* The result of log_index_check(). */
typedef struct log_index_about {
    uint64_t bytes;  /* 0: there is no index */
    int strange;     /* no block opens: it belongs to another log, or is damaged */
    uint64_t torn;   /* bytes after the last whole block */
    uint64_t blocks; /* blocks that exist, or should */
    uint64_t wrong;  /* blocks that do not open, or do not agree with the log */
    uint64_t first;  /* the first of those */
    uint64_t behind; /* blocks past the log's last commit, which were not compared */
} log_index_about;
/*
 * Compares the index with the log, which was scanned from its first byte (log_inspect()),
 * and with the data of the callbacks. Changes nothing. A block that seems wrong is
 * compared again under a shared lock; without the lock it is not reported. IO, NOMEM.
 */
sessile_status log_index_check(log_t *log, int timeout_ms, log_index_about *out,
                               sessile_error *err);
/* Replaces the callbacks of a log that was opened with callbacks. */
void log_set_index_callbacks(log_t *log, log_index_callbacks callbacks);
/* 1 if the last log_refresh() or log_begin() found another log under the name: open the
 * log again. */
int log_replaced(const log_t *log);
/* log_close(log) will also close `old`: a thread may still be inside log_sync(old). Frees
 * the arrays of `old` now. */
void log_close_with(log_t *log, log_t *old);

/* Opens a log with its key and reads no entry, for log_copy_lines(). k NULL: the key is
 * not opened; only suite and user are known (transfer.h). */
sessile_status log_open_unread(log_t **out, store *st, const keyring *k,
                               const char *folder, const char *name, unsigned depth,
                               int timeout_ms, const allocator *a, sessile_error *err);
void log_close(log_t *log); /* does not sync */
/* Called every few milliseconds while log_begin() or log_sync_stoppable() waits. 1 ends
 * the wait with CANCELLED. Set once, after opening. */
typedef int (*log_stop)(void *arg);
void log_set_stop(log_t *log, log_stop stop, void *arg);
/* How long the next log_begin() waits for the lock, in ms. -1: for ever; 0: one try. */
void log_set_timeout(log_t *log, int timeout_ms);
/* Bytes of torn ends that this handle has set aside since it was opened. */
uint64_t log_torn(const log_t *log);

sessile_id log_count(const log_t *log); /* entries known; the next entry's id */
/* Inside a visitor: the first entry of the write that is being visited. */
sessile_id log_write_first(const log_t *log);
uint64_t log_bytes(const log_t *log);
const char *
log_user(const log_t *log); /* whose secret seals it; "": the store's key does */

/* Right after it was opened: what is read from now on comes from where the store keeps
 * it, not from memory. For who looks whether it is still there. */
void log_reread(log_t *log);

/* The log's size in bytes, torn end included, when this handle last asked the store. */
uint64_t log_last_size(const log_t *log);
/*
 * Waits until a log has another size than `bytes`, or its name leads to another log: sets
 * *changed to 1. After timeout_ms (-1: for ever), and after ten seconds at the latest, it
 * returns with *changed 0. It may return early. stop(arg) 1: CANCELLED. NOTFOUND: the log
 * does not exist any more.
 */
sessile_status log_watch(store *st, const char *folder, const char *name, uint64_t bytes,
                         const os_table *os, int timeout_ms, log_stop stop, void *arg,
                         int *changed, sessile_error *err);
/* The sizes of n open logs of a store, which may be in use by other threads: bytes[i] is
 * SESSILE_LOG_GONE if the log was removed or replaced. n is at most SESSILE_ENDS_MOST.
 * Only for stores whose backend has `ends`. */
sessile_status log_ends(store *st, log_t *const *logs, size_t n, uint64_t *bytes,
                        const allocator *a, sessile_error *err);
/* Asks for the size of one log, as log_ends() does it for many. A removal is noticed only
 * if the backend tells. */
sessile_status log_look_at_end(log_t *log, uint64_t *bytes, sessile_error *err);
/* bytes: the current size of the log. 1 if it differs from what this handle has read or
 * written. A damaged log was read to its end when it was opened. */
int log_has_news(const log_t *log, uint64_t bytes);
/* Sleeps, and calls stop every few milliseconds. CANCELLED, without a message. */
sessile_status log_sleep(const os_table *os, int ms, log_stop stop, void *arg);

/* Visits the entries that others have committed, without a lock. A bad line is read
 * again, then once more under a shared lock, before it counts as damage. TRUNCATED: the
 * log is shorter than before. */
sessile_status log_refresh(log_t *log, log_visit visit, void *arg, sessile_error *err);

/* Takes the exclusive lock, refreshes, and sets a torn end aside (log_torn()). After OK
 * call log_end(). BUSY names the process that holds the lock. CANCELLED, DAMAGED,
 * TRUNCATED; IO: the log is poisoned. */
sessile_status log_begin(log_t *log, log_visit visit, void *arg, sessile_error *err);
/*
 * Appends entries as one write, between log_begin() and log_end(). texts[i] is checked
 * JSON with the id log_count() + i. They are not visited. On error nothing was written,
 * or the log is poisoned (IO), and log_begin() will say so. LIMIT [session]: the log
 * would be larger than max_bytes.
 */
sessile_status log_append(log_t *log, const sessile_slice *texts, size_t count,
                          uint64_t max_bytes, sessile_error *err);
void log_end(log_t *log);
/*
 * As log_begin(), but does not read what others have appended. Returns 1 if it has begun;
 * the append will return CONFLICT if others have appended. 0: call log_begin() (the store
 * has locks, or this is the handle's first write, or the log is damaged or poisoned).
 */
int log_begin_known(log_t *log);

/*
 * Makes the first `target` entries durable; pass log_count() as it is after the append.
 * Thread-safe: call it without the session's mutex. One thread syncs, and threads that
 * come meanwhile share the result. IO: the sync failed, and the log is poisoned.
 */
sessile_status log_sync(log_t *log, sessile_id target, sessile_error *err);
/* The same. CANCELLED: stop(arg) returned 1 while another thread was syncing; it is not
 * known whether the entries are durable. */
sessile_status log_sync_stoppable(log_t *log, sessile_id target, log_stop stop, void *arg,
                                  sessile_error *err);

/* Appends the text of entry id to out, and checks its line. Only scans compare the tag of
 * the line before. NOTFOUND, IO; DAMAGED names entry and offset. */
sessile_status log_read(log_t *log, sessile_id id, buf *out, sessile_error *err);
/* Tells log_read() that entries first to last will be read next, in order: it may read
 * many of them together. log_prefetch_end() frees what was read ahead. */
void log_prefetch(log_t *log, sessile_id first, sessile_id last);
void log_prefetch_end(log_t *log);
/* The tag of entry id's line: 16 bytes (plain: 8 bytes and 8 zeros). As log_read(). */
sessile_status log_tag(log_t *log, sessile_id id, unsigned char tag[VAULT_TAG],
                       sessile_error *err);
/* The number of entries before the first damage; without damage, of all entries. */
sessile_id log_count_undamaged(const log_t *log);
/* Visits entries first to last, read in large pieces. */
sessile_status log_read_range(log_t *log, sessile_id first, sessile_id last,
                              log_visit visit, void *arg, sessile_error *err);

/* Appends the lines of entries first to last unchanged, each with its newline. DAMAGED:
 * the log is damaged. */
sessile_status log_read_lines(log_t *log, sessile_id first, sessile_id last, buf *out,
                              sessile_error *err);

/* ---- damaged logs (damage.c, salvage.c) */

/* OK: the log is not damaged. DAMAGED, TRUNCATED: it can only be read; err says why. */
sessile_status log_damage(const log_t *log, sessile_error *err);

/* One piece of damage. */
typedef enum log_flaw_kind {
    LOG_LOST,    /* no line of entries first to last can be opened */
    LOG_REFUSED, /* entry first opens, but its contents are invalid */
    LOG_ORDER,   /* entry first can be read, but is in another place, or does not follow
                    the line before it */
    LOG_BYTES,   /* bytes that are not an entry of this log, or a second copy of one */
    LOG_UNENDED  /* lines of a write without its last line: it was never completed, or its
                    last line is damaged */
} log_flaw_kind;
typedef struct log_flaw {
    log_flaw_kind kind;
    sessile_id first, last; /* SESSILE_NO_ID: it is not about entries */
    uint64_t offset, bytes; /* bytes 0: there are no bytes where they should be */
} log_flaw;

/* Appends the text of a stand-in for a lost entry: checked JSON with its id. Called in
 * the order of ids, before any later entry is visited. */
typedef sessile_status (*log_stand_in)(void *arg, const log_flaw *lost, sessile_id id,
                                       buf *out, sessile_error *err);
/*
 * Reads past the damage. Every line that opens counts as the entry that its id names;
 * stand_in makes an entry for each id without a line. All are visited in order. If visit
 * returns DAMAGED for an entry, a stand-in is visited in its place. From then on
 * log_count() and log_read() include these entries. May be called again after it failed.
 * IO, NOMEM, errors of visit.
 */
sessile_status log_read_damaged(log_t *log, log_visit visit, log_stand_in stand_in,
                                void *arg, sessile_error *err);
/* Adds a stand-in for entry id, which opens but was refused. */
sessile_status log_add_stand_in(log_t *log, sessile_id id, const char *text, size_t size,
                                sessile_error *err);
/* 1 if log_read() returns a stand-in for id. */
int log_has_stand_in(const log_t *log, sessile_id id);
/* The number of lost entries; the first thousand flaws, borrowed (*left: the number of
 * others). */
uint64_t log_lost(const log_t *log);
size_t log_flaws(const log_t *log, const log_flaw **out, uint64_t *left);

/* What log_inspect() found at the end of a log. */
typedef struct log_tail {
    uint64_t offset, bytes; /* past the last commit; bytes 0: none */
    int busy;               /* a writer holds the lock: a write may be in progress */
    int unlocked;           /* the folder refuses locks: a write may be in progress */
} log_tail;
/*
 * Opens a log to check it: reads every line and changes nothing. A torn end is reported
 * in *tail. The index is used only as a durability proof; callbacks NULL: not at all. The
 * handle may be used for reading, log_index_check() and log_rewrite().
 */
sessile_status log_inspect(log_t **out, store *st, const keyring *k, const char *folder,
                           const char *name, unsigned depth, int timeout_ms,
                           const log_index_callbacks *callbacks, log_visit visit,
                           void *arg, log_tail *tail, const allocator *a,
                           sessile_error *err);
/*
 * The same in steps, of a log that log_open_unread() has opened, and without an index:
 * reads about `bytes` more. *more 0: that was the end, which was judged. May be called
 * again when the log has grown. The handle keeps the offsets of what was read.
 */
sessile_status log_inspect_step(log_t *log, uint64_t bytes, log_visit visit, void *arg,
                                int *more, log_tail *tail, sessile_error *err);
/* Marks the log as damaged: from now on it can only be read. */
sessile_status log_set_damage(log_t *log, const sessile_error *why, sessile_error *err);

/*
 * Writes a new log with every entry as log_read() returns it, the same ids and a new data
 * key, and replaces the old log with it (rewrite.c). kept: set to the name of the file
 * with the old bytes. The handle stays with the old log: close it. If it is interrupted,
 * the old log or the new one has the name, and the call can be repeated. BUSY; NOTFOUND:
 * the log was replaced or removed; CONFLICT: it changed since it was opened; UNSUPPORTED:
 * the store cannot replace logs.
 */
sessile_status log_rewrite(log_t *log, const keyring *k, const char *folder,
                           const char *name, char *kept, size_t kept_size,
                           sessile_error *err);

/* Appends the header of a log to out and reads nothing else, for lists. */
sessile_status log_peek(store *st, const keyring *k, const char *folder, const char *name,
                        unsigned depth, int timeout_ms, buf *out, const allocator *a,
                        sessile_error *err);

/* What the first line of a log says in clear about its key. */
typedef struct log_about {
    int sealed;
    logkey_about key; /* sealed */
    uint64_t bytes;
    int64_t mtime_ms; /* when it was written to last, as the store says */
} log_about;
/* Reads it; nothing is opened. shared: under a shared lock, so that nobody replaces the
 * log meanwhile. BUSY, NOTFOUND, DENIED; DAMAGED: the first line is not a header. */
sessile_status log_read_about(store *st, const char *folder, const char *name, int shared,
                              int timeout_ms, log_about *out, sessile_error *err);

/*
 * Reseals a log under a new data key, unless it already has the newest epoch and the
 * keyring's suite. Entries and writes stay the same. A torn end is set aside first.
 * callbacks: their index is used as a durability proof; NULL: none. *done: 1 if the log
 * was resealed. BUSY: no lock in time. DAMAGED, TRUNCATED, SEALED, IO, FULL: the log was
 * not changed.
 */
sessile_status log_reseal(store *st, const keyring *k, const char *folder,
                          const char *name, int timeout_ms,
                          const log_index_callbacks *callbacks, int *done,
                          const allocator *a, sessile_error *err);

/* Appends the text that takes the place of entry id to out: checked JSON with that id.
 * Appends nothing: the entry stays as it is. */
typedef sessile_status (*log_change)(void *arg, sessile_id id, const char *text,
                                     size_t size, buf *out, sessile_error *err);
/*
 * Writes a log again, with some entries changed, under a new data key, and replaces the
 * old log with it. change is called for each entry in order, under the exclusive lock; in
 * a store without locks it starts at entry 0 again if others were faster. Entry 0 is
 * shown to it, and must stay as it is. Writes stay the same. Works in plain stores, too.
 * callbacks and errors: as of log_reseal(), and errors of change.
 */
sessile_status log_change_entries(store *st, const keyring *k, const char *folder,
                                  const char *name, int timeout_ms,
                                  const log_index_callbacks *callbacks, log_change change,
                                  void *arg, const allocator *a, sessile_error *err);

/* Gives a log whose name was damaged its right name. EXISTS: that name is taken.
 * NOTFOUND; BUSY; CONFLICT: it was replaced meanwhile; UNSUPPORTED. */
sessile_status log_rename(store *st, const char *folder, const char *name,
                          const char *to_folder, const char *to_name, int timeout_ms,
                          sessile_error *err);
/* How a log ends: another log, or one that was written to, resealed or cut since, ends
 * otherwise. */
#define LOG_TAIL 32 /* bytes, among them the tag or the checksum of the last line */
typedef struct log_ending {
    uint64_t bytes;
    sessile_id count;    /* entries */
    size_t tail_size;    /* LOG_TAIL; 0: only bytes is known */
    char tail[LOG_TAIL]; /* the last bytes, as they stand */
} log_ending;
/* How an open log ended when it was read last. CONFLICT: it has more bytes by now. */
sessile_status log_get_ending(log_t *log, log_ending *out, sessile_error *err);
/*
 * Removes a log and the files beside it, durably. The log need not open. Its header line
 * is overwritten first, a plain log as a whole. expected: how the log must end, which is
 * compared under its lock, else CONFLICT; NULL: any. *bytes: the size that it had.
 * NOTFOUND; BUSY; UNSUPPORTED: the store cannot remove logs.
 */
sessile_status log_remove(store *st, const keyring *k, const char *folder,
                          const char *name, const log_ending *expected, int timeout_ms,
                          uint64_t *bytes, sessile_error *err);
/* The same, but only if its user was forgotten: by keyring_forgot(), or since nothing was
 * written to this log of a user after before_ms (0: that is no reason). Else CONFLICT. */
sessile_status log_remove_forgotten(store *st, const keyring *k, const char *folder,
                                    const char *name, int64_t before_ms, int timeout_ms,
                                    uint64_t *bytes, sessile_error *err);

#endif
