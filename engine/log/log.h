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
 * open), that an id at or past the first missing one is durable: the log is damaged. It
 * opens all the same, nothing is changed, log_damage() says what was found, every
 * log_begin() is refused, and log_read_past() shows what else can be read. Otherwise it
 * may be a write in progress or a torn tail: under the exclusive lock, on a scan made
 * under it, it is set aside (*torn: its bytes) and cut; when the lock cannot be had at
 * once, V is where this reader stops. A bad header is DAMAGED.
 */
sessile_status log_open(log_t **out, store *st, const keyring *k, const char *folder,
                        const char *name, unsigned depth, int timeout_ms, log_visit visit,
                        void *arg, uint64_t *torn, const allocator *a,
                        sessile_error *err);

/* The index (README.md): blocks of this many entries, in the backend's cache. */
#define LOG_BLOCK 256

/*
 * What the floor above keeps in the index; opaque here. The functions are called inside
 * log_open_kept(), log_reach(), log_read…(), log_index_…() of the same log, never by
 * another thread.
 */
typedef struct log_index_callbacks {
    void *arg;
    size_t record_size; /* bytes kept of one entry */
    int fresh;          /* what is there is ignored and rebuilt */
    /* Block `block`: LOG_BLOCK records; what more belongs to it, and the state after its
     * last entry, are appended. NOTFOUND: that state is not known any more. */
    sessile_status (*fill)(void *arg, uint64_t block, void *records, buf *extra,
                           buf *snapshot, sessile_error *err);
    /* The state after `count` entries, entry 0 having been shown. INVALID: it is none. */
    sessile_status (*restore)(void *arg, uint64_t count, const void *snapshot,
                              size_t size, sessile_error *err);
    /* What fill gave of a block that was not there since restore. INVALID. */
    sessile_status (*take)(void *arg, uint64_t block, const void *records,
                           const void *extra, size_t extra_size, sessile_error *err);
    /* All that was restored and shown is to be forgotten: it is shown from entry 0. */
    void (*reset)(void *arg);
    /* fill will not be asked for blocks before this one again. */
    void (*written)(void *arg, uint64_t block);
} log_index_callbacks;

/*
 * As log_open(), but begins at the index's last block where there is one that agrees with
 * the log: then entry 0 is shown, the state is restored, and only what comes after the
 * block is shown. A missing, stale or wrong index costs a whole scan, after which it is
 * written again if the lock can be had at once. callbacks NULL: no index (log_open). *out
 * is set before the first entry is shown, so that a visitor may call log_count().
 * TRUNCATED: the index knows of entries past the log's end; DAMAGED: or past V.
 */
sessile_status log_open_kept(log_t **out, store *st, const keyring *k, const char *folder,
                             const char *name, unsigned depth, int timeout_ms,
                             const log_index_callbacks *callbacks, log_visit visit,
                             void *arg, uint64_t *torn, const allocator *a,
                             sessile_error *err);
/* Takes the block of entry id out of the index, unless it is there. NOTFOUND: no such
 * entry. Any other error but NOMEM: the index cannot be read there; log_rescan(). */
sessile_status log_reach(log_t *log, sessile_id id, sessile_error *err);
/* Shows all of the log again, from entry 0 to log_count(), and gives the index up, to be
 * rebuilt. On error nothing has changed. Not inside a visitor. */
sessile_status log_rescan(log_t *log, log_visit visit, void *arg, sessile_error *err);
/* Adds to the index what is durable and not in it, when that is a block at least. Never
 * fails the caller. Between log_begin and log_end, all entries having been shown. */
void log_index_write(log_t *log);
/* The same, when the lock can be had at once. */
void log_index_try(log_t *log);
/* Empties the index, when the lock can be had in timeout_ms, and gives it up. BUSY, IO:
 * it is still there. */
sessile_status log_index_drop(log_t *log, int timeout_ms, sessile_error *err);
/* What a look at the index found. */
typedef struct log_index_about {
    uint64_t bytes; /* 0: there is none */
    int strange;   /* nothing in it opens: it is another log's, or spoiled from the end */
    uint64_t torn; /* bytes behind its last whole block */
    uint64_t blocks; /* that are there, or should be */
    uint64_t wrong;  /* of those: do not open, or say other than the log */
    uint64_t first;  /* the first of them */
    uint64_t behind; /* reach past the log's last commit: not compared */
} log_index_about;
/*
 * Compares the index with what this handle has scanned from the log's first byte
 * (log_inspect), and what the callbacks has made of it. Changes nothing. What seems wrong
 * is looked at again under a shared lock; when that cannot be taken it is not reported.
 * IO, NOMEM.
 */
sessile_status log_index_check(log_t *log, int timeout_ms, log_index_about *out,
                               sessile_error *err);
/* Another callbacks for what was opened with one. */
void log_keep(log_t *log, log_index_callbacks callbacks);
/* 1 when another log has taken its name, as the last log_refresh() or log_begin() has
 * seen: it is to be opened again. */
int log_replaced(const log_t *log);
/* `log` closes `old` when it is closed itself: somebody may still be inside
 * log_sync(old). What old remembers of its entries is freed. */
void log_outlive(log_t *log, log_t *old);

/* A handle with its key, no line read yet: for log_copy_lines(). k NULL: its key is not
 * opened, only its suite and user are known (transfer.h). */
sessile_status log_attach(log_t **out, store *st, const keyring *k, const char *folder,
                          const char *name, unsigned depth, const allocator *a,
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
/* Inside a visitor: the first entry of the write that is shown. */
sessile_id log_write_first(const log_t *log);
uint64_t log_bytes(const log_t *log);
const char *log_user(const log_t *log); /* whose secret seals it; "": the store's key */

/* The bytes that the log had when this handle last asked: a torn end counts. */
uint64_t log_asked(const log_t *log);
/*
 * Waits on a handle of its own until a log has other than `bytes` bytes, or its name
 * leads elsewhere (*changed 1); or some time has passed, timeout_ms (-1: for ever) at
 * most and ten seconds in any case (*changed 0). May come early. stop(arg) 1: CANCELLED.
 * NOTFOUND: there is no such log any more.
 */
sessile_status log_watch(store *st, const char *folder, const char *name, uint64_t bytes,
                         const os_table *os, int timeout_ms, log_stop stop, void *arg,
                         int *changed, sessile_error *err);
/* Sleeps, and asks every few milliseconds whether to stop: CANCELLED, without a sentence.
 */
sessile_status log_pause(const os_table *os, int ms, log_stop stop, void *arg);

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
 * As log_begin(), without asking what others have appended: 1 when begun. The append
 * compares, and is CONFLICT when they have. 0: log_begin() has to look (a store with
 * locks, a handle's first write, damage, poison).
 */
int log_begin_known(log_t *log);

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
/* Entries first..last will be read by log_read() next, one after the other: it may bring
 * many of them at once. Until log_expect_none(), which frees what was brought. */
void log_expect(log_t *log, sessile_id first, sessile_id last);
void log_expect_none(log_t *log);
/* The tag of entry id's line: 16 bytes (plain: 8, and zeros). As log_read(). */
sessile_status log_tag(log_t *log, sessile_id id, unsigned char tag[VAULT_TAG],
                       sessile_error *err);
/* How many entries stand before the first damage; all, where there is none. */
sessile_id log_sound(const log_t *log);
/* Shows entries first..last (inclusive), read in large pieces. */
sessile_status log_read_range(log_t *log, sessile_id first, sessile_id last,
                              log_visit visit, void *arg, sessile_error *err);

/* Appends the lines of entries first..last as they stand, each with its newline. DAMAGED:
 * a log that may only be read has none to give. */
sessile_status log_lines(log_t *log, sessile_id first, sessile_id last, buf *out,
                         sessile_error *err);

/* ---- damage: what is past it, in a log that may only be read (salvage.c) */

/* OK, or why nothing may be written: DAMAGED or TRUNCATED, with the sentence in err. */
sessile_status log_damage(const log_t *log, sessile_error *err);

/* What is wrong with some entries or bytes of a damaged log. */
typedef enum log_flaw_kind {
    LOG_LOST,    /* entries first to last: nothing that opens is left of them */
    LOG_REFUSED, /* entry first opens, and what it holds has no place in the log */
    LOG_ORDER,   /* entry first can be read, but stands in another place, or does not
                    follow the line before it */
    LOG_BYTES,   /* bytes that are no entry of this log, or one more copy of one */
    LOG_UNENDED  /* lines of a write whose end is not there: it was never made, or its end
                    is what was damaged */
} log_flaw_kind;
typedef struct log_flaw {
    log_flaw_kind kind;
    sessile_id first, last; /* SESSILE_NO_ID: not about entries */
    uint64_t offset, bytes; /* bytes 0: nothing stands where they should be */
} log_flaw;

/* Makes the text of the entry that stands in for one that is lost: checked JSON with its
 * id, appended to out. Asked in the order of ids, each before anything later is shown. */
typedef sessile_status (*log_stand_in)(void *arg, const log_flaw *lost, sessile_id id,
                                       buf *out, sessile_error *err);
/*
 * Reads on past the damage: every line that opens by itself takes its place by its id,
 * and for each id without one `stand_in` makes an entry; all are shown in order. An entry
 * that visit calls DAMAGED is shown again as a stand-in. From then on log_count() and
 * log_read() include them. May be called again after it failed. IO, NOMEM, visit's own.
 */
sessile_status log_read_past(log_t *log, log_visit visit, log_stand_in stand_in,
                             void *arg, sessile_error *err);
/* From now on text stands in for entry id, which opens but was refused. */
sessile_status log_cover(log_t *log, sessile_id id, const char *text, size_t size,
                         sessile_error *err);
/* 1 when a stand-in is what log_read() answers for id. */
int log_is_covered(const log_t *log, sessile_id id);
/* How many entries are lost, and the flaws, borrowed: at most the first thousand (left:
 * how many more there were). */
uint64_t log_lost(const log_t *log);
size_t log_flaws(const log_t *log, const log_flaw **out, uint64_t *left);

/* What log_inspect found at the end of a log. */
typedef struct log_tail {
    uint64_t offset, bytes; /* past the last commit; bytes 0: nothing */
    int busy;               /* a writer is at work: they may be its write in progress */
    int unlocked;           /* or so they may be: this folder refuses locks */
} log_tail;
/*
 * As log_open_kept(), but from the first byte, and changes nothing, whatever it finds: a
 * torn tail is left and reported. Of the index only the proof is taken; callbacks NULL:
 * not even that. Such a handle is for reading, log_index_check() and log_rewrite().
 */
sessile_status log_inspect(log_t **out, store *st, const keyring *k, const char *folder,
                           const char *name, unsigned depth, int timeout_ms,
                           const log_index_callbacks *callbacks, log_visit visit,
                           void *arg, log_tail *tail, const allocator *a,
                           sessile_error *err);
/* Makes the handle's log one that may only be read, for a reason found above. */
sessile_status log_hurt(log_t *log, const sessile_error *why, sessile_error *err);

/*
 * Writes a new log of the same name with every entry as log_read() has it, the same ids,
 * under a new data key, and puts it in the old one's place (rewrite.c). kept: the name
 * of the file that has the old bytes. The handle stays with the old log: close it. BUSY;
 * NOTFOUND: replaced or removed meanwhile; CONFLICT: it changed since it was opened;
 * UNSUPPORTED: this store replaces no logs. Interrupted anywhere, the old log or the new
 * one is there, whole, and it can be run again.
 */
sessile_status log_rewrite(log_t *log, const keyring *k, const char *folder,
                           const char *name, char *kept, size_t kept_size,
                           sessile_error *err);

/* Only the header of a log, for lists: appended to out. */
sessile_status log_peek(store *st, const keyring *k, const char *folder, const char *name,
                        unsigned depth, buf *out, const allocator *a, sessile_error *err);

/* What a log says in clear of its key, or that it is plain; nothing is opened. */
typedef struct log_about {
    int sealed;
    logkey_about key; /* sealed */
    uint64_t bytes;
} log_about;
/* shared: looks under a shared lock, so that nobody is replacing the log meanwhile. BUSY,
 * NOTFOUND, DENIED; DAMAGED: it has no first line of a log. */
sessile_status log_look_at(store *st, const char *folder, const char *name, int shared,
                           int timeout_ms, log_about *out, sessile_error *err);

/*
 * Reseals a log, if it is not of the newest epoch and of the keyring's suite: every
 * entry as it is, every write as it was, under a new data key, in one step. A torn end is
 * set aside first. callbacks: whose index is heard as a proof; NULL: none. Waits for the
 * exclusive lock: BUSY. DAMAGED, TRUNCATED, SEALED, IO, FULL: the log is as it was.
 * *done: 1 when it was resealed.
 */
sessile_status log_reseal(store *st, const keyring *k, const char *folder,
                          const char *name, int timeout_ms,
                          const log_index_callbacks *callbacks, int *done,
                          const allocator *a, sessile_error *err);

/*
 * Removes a log and what lies beside it, durably, whether it opens or not: its header
 * line is overwritten first (a plain log whole). expected: its bytes when it was looked
 * at, and CONFLICT when it has others now; UINT64_MAX: whatever it has. *bytes: it had.
 * NOTFOUND; BUSY; UNSUPPORTED: the store removes nothing.
 */
sessile_status log_remove(store *st, const keyring *k, const char *folder,
                          const char *name, uint64_t expected, int timeout_ms,
                          uint64_t *bytes, sessile_error *err);

#endif
