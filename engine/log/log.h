/*
 * log.h: a log of entries over a store: frames lines, appends, scans, recovers.
 *
 * Knows the layout of a line (README.md beside this file describes it so that a stranger
 * could read a log) and nothing of what entries mean. Not safe under threads but for
 * log_sync(): the session above holds its mutex. Ids are positions: entry i is line i.
 */
#ifndef LOG_LOG_H
#define LOG_LOG_H

#include "store/store.h"
#include "vault/vault.h"

typedef struct log log_t; /* not `log`: math.h owns that name */

/* What a scan shows of each committed entry, oldest first. text is borrowed for the call;
 * it is JSON that has passed json_check. A non-OK return ends the scan with that error.
 */
typedef sessile_status (*log_visit)(void *arg, sessile_id id, const char *text,
                                    size_t size, sessile_error *err);

/*
 * Makes a log with one entry, its header (durable), and does not open it.
 * header: the entry's JSON text, type session, id 0.
 */
sessile_status log_create(store *st, const keyring *k, const char *folder,
                          const char *name, const char *header, size_t size,
                          const allocator *a, sessile_error *err);

/* The same, sealed with the secret of a user (keyring_user_name(); NULL or "": none). */
sessile_status log_create_for(store *st, const keyring *k, const char *folder,
                              const char *name, const char *user, const char *header,
                              size_t size, const allocator *a, sessile_error *err);

/*
 * Opens a log and scans it whole, showing each committed entry. Stops at the last commit
 * V. What is past V: when a later line says in clear, by its layout alone (it need not
 * open), that an id at or past the first missing one is durable: DAMAGED (names log,
 * entry and offset; nothing is changed). Otherwise it may be a write in progress or a
 * torn tail: under the exclusive lock, on a scan made under it, it is set aside (*torn:
 * its bytes) and cut; when the lock cannot be had at once, V is where this reader stops.
 * A bad header is DAMAGED.
 */
sessile_status log_open(log_t **out, store *st, const keyring *k, const char *folder,
                        const char *name, unsigned depth, int timeout_ms, log_visit visit,
                        void *arg, uint64_t *torn, const allocator *a,
                        sessile_error *err);
void log_close(log_t *log); /* does not sync */
/* What ends a wait of this handle, in log_begin() or (asked with the arg given there) in
 * log_sync_unless(): asked every few milliseconds; 1: CANCELLED. Set once, after open. */
typedef int (*log_stop)(void *arg);
void log_set_stop(log_t *log, log_stop stop, void *arg);
/* How long the next log_begin() waits for the lock: ms, -1 for ever, 0 one try. */
void log_set_timeout(log_t *log, int timeout_ms);
/* Bytes of torn ends that this handle has set aside, at its opening and since. */
uint64_t log_torn(const log_t *log);

sessile_id log_count(const log_t *log); /* entries known: the next entry's id */
uint64_t log_bytes(const log_t *log);
const char *log_user(const log_t *log); /* whose secret seals it; "": the store's key */

/* Shows what others have committed since (no lock taken; stops at the last commit).
 * TRUNCATED: shorter than known. A line past the known end that is bad is read again,
 * then once under a shared lock, before it is called anything. */
sessile_status log_refresh(log_t *log, log_visit visit, void *arg, sessile_error *err);

/* Takes the exclusive lock and refreshes (recovering a torn tail: see log_torn()). BUSY
 * names who holds it; CANCELLED. Every begin that returned OK is ended by log_end().
 * DAMAGED, TRUNCATED, IO (poisoned). */
sessile_status log_begin(log_t *log, log_visit visit, void *arg, sessile_error *err);
/*
 * Appends entries as one write with one commit, between begin and end. texts[i] is
 * checked JSON whose id is log_count() + i. Not shown to a visitor. On error nothing was
 * written (or the log is poisoned: IO, and every later begin says so). LIMIT [session]
 * when the log would pass max_bytes.
 */
sessile_status log_append(log_t *log, const sessile_slice *texts, size_t count,
                          uint64_t max_bytes, sessile_error *err);
void log_end(log_t *log);

/*
 * Returns when everything up to log_count() as it was at some moment after the call began
 * is durable: one thread syncs, those who came meanwhile share. Safe under threads, to be
 * called without the session's mutex, target = log_count() after the append. A failure is
 * IO and poisons the log.
 */
sessile_status log_sync(log_t *log, sessile_id target, sessile_error *err);
/* The same, given up when stop(arg) says 1 while another thread's sync is waited for:
 * CANCELLED, and whether what was written is durable is not known. */
sessile_status log_sync_unless(log_t *log, sessile_id target, log_stop stop, void *arg,
                               sessile_error *err);

/* Appends entry id's text to out. NOTFOUND; DAMAGED (names entry and offset); IO. Checks
 * the line; its previous tag is compared only by scans. */
sessile_status log_read(log_t *log, sessile_id id, buf *out, sessile_error *err);
/* Shows entries first..last (inclusive), read in large pieces. */
sessile_status log_read_range(log_t *log, sessile_id first, sessile_id last,
                              log_visit visit, void *arg, sessile_error *err);

/* Only the header of a log, for lists: appended to out. */
sessile_status log_peek(store *st, const keyring *k, const char *folder, const char *name,
                        unsigned depth, buf *out, const allocator *a, sessile_error *err);

#endif
