/*
 * sessile_store.h: the interface of a storage backend.
 *
 * To keep sessions in a store of your own, fill a sessile_backend with your functions and
 * pass it to sessile_open_with(). The engine's own stores use the same table.
 *
 * A backend keeps logs and blobs as bytes that it does not understand. A log is a
 * sequence of records (lines) that only grows. A blob is a small named value, such as the
 * keyring. In a sealed store everything that a backend sees is encrypted. The one promise
 * that it makes about writers is:
 *
 *     append these records if the log still ends at E.
 *
 * E = {count, bytes, tag of the last record}. This is the fence. A writer that was paused
 * finds another end and gets CONFLICT. A writer whose answer was lost reads the record at
 * E and compares it with its own bytes. There are no epochs, leases or idempotency keys.
 *
 * The smallest backend has create, open, close, size, read, append, sync, list, and with
 * SESSILE_BACKEND_SEALS blob_get and blob_put_new. All other members are NULL, and the
 * capabilities are SESSILE_BACKEND_SEALS. Each append then takes place whole or not at
 * all, as in a transaction; a writer that gets CONFLICT reads what is new and tries
 * again. What each missing part costs: SEALS         the store is volatile like "ram:":
 * plain, without a keyring, and the names of its logs mean nothing to a later handle
 *   LOCKS         nothing; competing writers try again until their time is up
 *   CUTS          a torn end could not be cut; leave it out only if there are none
 *   CACHES        opening a session reads its whole log
 *   REPLACES      UNSUPPORTED: salvage of a damaged log, sealing a log again
 *   LIST_CACHES   a list of sessions opens each of them
 *   remove        sessions can be deleted softly only
 *   watch         a reader that waits for new entries polls the size
 *   blob_replace, blob_remove   UNSUPPORTED: rotation of keys, forgetting users
 * CUTS requires LOCKS. A backend without LOCKS that has CACHES, REPLACES or remove (a
 * database, for example) fences each of these calls as it fences append.
 *
 * Rules
 *   - Folder and log names are single path components of [a-z0-9_=.-], made by the
 * engine, at most 200 bytes long. Lists leave out everything else that the backend holds.
 *   - Two handles of one log see each other's appends immediately, whoever opened them.
 *   - Any thread may call, and several may use one log. Functions may block. They must
 * not call sessile, except sessile_copy() and sessile_free().
 *   - A function that fails returns a status other than OK and writes a message into err,
 *     which is never NULL. The message names the thing and says what to do, and it
 * contains no password. The application sees it unchanged.
 *   - An error is final: what a function reported as failed must not happen later.
 *   - The engine answers impossible results (sizes out of bounds, an unknown status) with
 *     IO and ignores the rest of them.
 *   - `version` is SESSILE_BACKEND_VERSION.
 *
 * tests/store/ has the test suite that every store passes, and a store of 300 lines that
 * was written from this header alone. To run the suite over your store, build a shared
 * object that exports
 *
 *     sessile_status sessile_test_store(const char *place, const sessile_backend **table,
 *                                       void **self, sessile_error *err);
 *
 * (place: the path of an empty folder; the same place is the same store), and run
 *
 *     build/tests/store/test_backend --store ./mystore.so
 *
 * tests/store/README.md explains the rest, and what each failure means.
 */
#ifndef SESSILE_STORE_H
#define SESSILE_STORE_H

#include "sessile.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the table below. */
#define SESSILE_BACKEND_VERSION 1

/* Where a log ends. tag is 16 bytes: the last record's AEAD tag, or the 8 bytes of its
 * checksum and 8 zeros. Opaque to everyone but the log floor and the backends. */
typedef struct sessile_log_end {
    uint64_t count;
    uint64_t bytes;
    unsigned char tag[16];
} sessile_log_end;

/* A backend's own handle of an open log. */
typedef struct sessile_backend_log sessile_backend_log;
/* A log that is being written, before it has a name. */
typedef struct sessile_backend_draft sessile_backend_draft;

/* What a backend knows of a log without opening it. */
typedef struct sessile_backend_stat {
    uint64_t bytes;
    int64_t mtime_ns; /* since 1970-01-01T00:00Z; whoever may write can set it */
    uint64_t inode;   /* differs when another log took the name */
    /* When the log last changed, including its rights and its mtime, by the store's own
     * clock. Nobody can set it. Equal to mtime_ns where there is no such clock. */
    int64_t changed_ns;
} sessile_backend_stat;

/* capabilities */
enum {
    SESSILE_BACKEND_SEALS = 1,      /* has a keyring: logs may be sealed */
    SESSILE_BACKEND_CUTS = 2,       /* cut and set_aside are there */
    SESSILE_BACKEND_LOCKS = 4,      /* lock and unlock are there */
    SESSILE_BACKEND_CACHES = 8,     /* cache_* are there */
    SESSILE_BACKEND_REPLACES = 16,  /* draft_* are there */
    SESSILE_BACKEND_LIST_CACHE = 32 /* stat, list_stat and list_cache_* are there */
};

enum { SESSILE_LOCK_SHARED = 1, SESSILE_LOCK_EXCLUSIVE = 2 };

typedef struct sessile_backend {
    int version;
    unsigned capabilities;
    const char *name; /* "file" */

    /* Frees self, when the store is closed or could not be opened. Logs have been closed.
     * NULL: self stays the host's. */
    void (*free)(void *self);

    /* Makes a log whose first record(s) are data, durable on return, or nothing at all.
     * EXISTS when folder/name is there. */
    sessile_status (*create)(void *self, const char *folder, const char *name,
                             const void *data, size_t size, sessile_error *err);

    /* Opens a log. NOTFOUND. DENIED: not ours, a symlink, not a regular file. */
    sessile_status (*open)(void *self, const char *folder, const char *name,
                           sessile_backend_log **out, sessile_error *err);
    void (*close)(sessile_backend_log *log);

    /* Bytes in the log now (not E.bytes: a torn tail counts), and its mtime. Of a log
     * that was removed or replaced: what it had when this handle last saw it; `replaced`
     * tells. */
    sessile_status (*size)(sessile_backend_log *log, uint64_t *bytes, int64_t *mtime_ms,
                           sessile_error *err);

    /* Reads at most size bytes at offset (the start of record `index`, or inside it for a
     * continued read). *got less than size: the log ends there. */
    sessile_status (*read)(sessile_backend_log *log, uint64_t index, uint64_t offset,
                           void *out, size_t size, size_t *got, sessile_error *err);

    /* Waits at most timeout_ms (-1: for ever) for the lock, which excludes every other
     * handle of this log in any process; then sets *replaced to 1 when the name no longer
     * leads to the log that is open (reopen). BUSY on time-out; CANCELLED: see
     * set_stop. UNSUPPORTED: the log lies where locks cannot be relied on. May be absent
     * (capabilities): append is the fence all the same. */
    sessile_status (*lock)(sessile_backend_log *log, int mode, int timeout_ms,
                           int *replaced, sessile_error *err);
    void (*unlock)(sessile_backend_log *log);

    /* Appends size bytes of count records if the log still ends at *end; *end is then the
     * new end (its tag being new_tag). CONFLICT: the log ends elsewhere (grew).
     * TRUNCATED: it is shorter than end. NOTFOUND: it was removed or replaced. On every
     * error the log is as before, or *poisoned is set to 1: cutting back failed, and
     * nothing may be appended through any handle; or, where each append is a transaction,
     * nobody can tell whether it took place, and nothing may be appended through this
     * handle. Opening the log again shows which. Not yet durable. Called under the
     * exclusive lock where there are locks.
     */
    sessile_status (*append)(sessile_backend_log *log, sessile_log_end *end,
                             const void *data, size_t size, uint64_t count,
                             const unsigned char new_tag[16], int *poisoned,
                             sessile_error *err);

    /* Makes all that was appended before the call durable. A failure is IO, and unknown.
     */
    sessile_status (*sync)(sessile_backend_log *log, sessile_error *err);

    /* Copies the bytes from offset to the log's end into a piece of its own, named for
     * the log and the offset, durable on return; then cuts the log there, durably. Under
     * the exclusive lock. Running it again after an interruption is harmless. */
    sessile_status (*set_aside)(sessile_backend_log *log, uint64_t offset,
                                sessile_error *err);

    /* Visits the logs of a folder (NULL: of all folders); visit returns 0 to go on. */
    sessile_status (*list)(void *self, const char *folder,
                           int (*visit)(void *arg, const char *folder, const char *name),
                           void *arg, sessile_error *err);

    /* A named blob, made by sessile_copy(), for sessile_free(); NOTFOUND. Permissions are
     * checked. */
    sessile_status (*blob_get)(void *self, const char *name, char **out, size_t *size,
                               sessile_error *err);
    /* Puts a blob if it is absent (EXISTS otherwise), durable and whole, or not at all.
     */
    sessile_status (*blob_put_new)(void *self, const char *name, const void *data,
                                   size_t size, sessile_error *err);

    /* *found: 1 when at least one log is there. May be absent: list is asked. */
    sessile_status (*has_logs)(void *self, int *found, sessile_error *err);

    /* Writes size bytes once more where they stand, at offset, so that the next sync
     * takes them to the device: a sync that failed elsewhere may have left their pages
     * marked clean. Under the exclusive lock; no record changes. May be absent where what
     * was appended is durable as soon as any later sync succeeds. */
    sessile_status (*rewrite)(sessile_backend_log *log, uint64_t offset, const void *data,
                              size_t size, sessile_error *err);

    /* A cache beside the log: bytes that can be lost or wrong at any time, never synced,
     * gone with the log. Size: 0 when there is none, and reading makes none. Write: cuts
     * the cache at offset, then writes there; under the log's exclusive lock. An error
     * leaves any bytes at all from offset on. DENIED: not ours, a link, no file. Without
     * LOCKS a write is whole or not there at all, and CONFLICT when the cache ends before
     * offset; of two that meet, one is there. */
    sessile_status (*cache_size)(sessile_backend_log *log, uint64_t *bytes,
                                 sessile_error *err);
    sessile_status (*cache_read)(sessile_backend_log *log, uint64_t offset, void *out,
                                 size_t size, size_t *got, sessile_error *err);
    sessile_status (*cache_write)(sessile_backend_log *log, uint64_t offset,
                                  const void *data, size_t size, sessile_error *err);

    /*
     * A draft takes a log's place whole or not at all. draft_new makes it beside the log,
     * in a folder that is made when missing, under no name of a log; draft_write appends
     * to it; draft_replace makes it durable
     * and gives it the log's name, durably, in one step, drops the log's cache, and frees
     * the draft also when it fails. old: the log that is replaced, held under its
     * exclusive lock, which keeps naming the old bytes. keep: the old bytes get a name of
     * their own first, durably, which is written into kept (NUL-terminated); else they
     * are gone with the last handle (without LOCKS: at once, and reading them is
     * NOTFOUND). draft_drop gives a draft up. What a crash leaves of a draft is no log.
     * Without LOCKS draft_replace is CONFLICT, and nothing was changed, when the old log
     * ends elsewhere than size last said through `old`, or the name leads to another one.
     */
    sessile_status (*draft_new)(void *self, const char *folder, const char *name,
                                sessile_backend_draft **out, sessile_error *err);
    sessile_status (*draft_write)(sessile_backend_draft *draft, const void *data,
                                  size_t size, sessile_error *err);
    sessile_status (*draft_replace)(sessile_backend_draft *draft,
                                    sessile_backend_log *old, int keep, char *kept,
                                    size_t kept_size, sessile_error *err);
    void (*draft_drop)(sessile_backend_draft *draft);

    /* Puts a blob in the place of one that still holds exactly `was`, durable and whole,
     * or not at all; IO may leave either, whole. CONFLICT: it holds something else.
     * NOTFOUND: it is gone. */
    sessile_status (*blob_replace)(void *self, const char *name, const void *was,
                                   size_t was_size, const void *data, size_t size,
                                   sessile_error *err);
    /* Overwrites a blob and removes it, durably. NOTFOUND. */
    sessile_status (*blob_remove)(void *self, const char *name, sessile_error *err);
    /* Visits the names of blobs that begin with prefix; visit returns 0 to go on. */
    sessile_status (*blob_list)(void *self, const char *prefix,
                                int (*visit)(void *arg, const char *name), void *arg,
                                sessile_error *err);

    /* What is known of a log without opening it. NOTFOUND. */
    sessile_status (*stat)(void *self, const char *folder, const char *name,
                           sessile_backend_stat *out, sessile_error *err);
    /* A cache of a folder: one blob, replaced whole, never synced, lost or wrong at any
     * time. Two who put at once: one of the two blobs is there. Get: made by
     * sessile_copy(); NOTFOUND; DENIED as for a log. Drop: of a folder, or of all (NULL);
     * OK when there is none. */
    sessile_status (*list_cache_get)(void *self, const char *folder, char **out,
                                     size_t *size, sessile_error *err);
    sessile_status (*list_cache_put)(void *self, const char *folder, const void *data,
                                     size_t size, sessile_error *err);
    sessile_status (*list_cache_drop)(void *self, const char *folder, sessile_error *err);
    /* As list, in one pass with what stat tells of each log. stat is NULL when it cannot
     * be told; a log that was removed meanwhile is left out. Logs of one folder come one
     * after the other. */
    sessile_status (*list_stat)(void *self, const char *folder,
                                int (*visit)(void *arg, const char *folder,
                                             const char *name,
                                             const sessile_backend_stat *stat),
                                void *arg, sessile_error *err);
    /* Visits everything in a folder (NULL: in all folders) that is not a log: pieces set
     * aside, replaced logs, drafts, caches, foreign files. */
    sessile_status (*list_others)(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *file, uint64_t bytes),
                                  void *arg, sessile_error *err);

    /* Until the log is closed: while this handle waits for its lock, ask(arg) is called
     * every few milliseconds, and 1 ends the wait with CANCELLED. ask NULL: no more. May
     * be absent: such a wait cannot be ended. */
    void (*set_stop)(sessile_backend_log *log, int (*ask)(void *arg), void *arg);
    /* After lock said BUSY: the same with a sentence that names who holds the lock, as
     * far as that can be told. May take milliseconds. Returns BUSY. May be absent. */
    sessile_status (*busy)(sessile_backend_log *log, sessile_error *err);

    /* Makes a blob that is there durable: whoever put it may not have come to that yet,
     * and what is written next hangs on it. May be absent where blobs that can be read
     * are durable. */
    sessile_status (*blob_settle)(void *self, const char *name, sessile_error *err);

    /* 1 when, as size or lock saw it last, the name leads to another log than the one
     * that is open (reopen). 0: to this one, or to none, or it could not be told. May be
     * absent where a log is never replaced, or where there are LOCKS. */
    int (*replaced)(sessile_backend_log *log);

    /* Visits files without a name that a crash left and that nobody is writing any more;
     * folder is NULL outside the folders of agents. Removes each file for which visit
     * returns 1. May be absent. */
    sessile_status (*sweep)(void *self,
                            int (*visit)(void *arg, const char *folder, const char *file,
                                         uint64_t bytes),
                            void *arg, sessile_error *err);

    /* Makes a draft durable and gives it its name as a new log, durably, in one step;
     * frees it also when it fails. EXISTS: the name is taken, and nothing was changed.
     * May be absent: a new log is then handed to create in one piece. */
    sessile_status (*draft_publish)(sessile_backend_draft *draft, sessile_error *err);

    /* Removes the log and all that was kept beside it (pieces, replaced logs, caches),
     * durably: first what lies beside it, then the first `head` bytes of the log are
     * overwritten, then it goes. Under the exclusive lock where there are locks; handles
     * that are open say so at their next lock (replaced), and are closed as ever. Run
     * again after an interruption it finishes. Without LOCKS: CONFLICT when the log ends
     * elsewhere than size last said through this handle. May be absent: no session is
     * deleted. */
    sessile_status (*remove)(sessile_backend_log *log, uint64_t head, sessile_error *err);

    /* Without LOCKS: how long each later call on this handle may wait for other writers,
     * or for a server that does not answer (ms; -1: for ever; 0: one try), before it is
     * BUSY or IO. Before the first one: as the store was opened. May be absent: such
     * waits are the store's own affair, and bounded. */
    void (*set_timeout)(sessile_backend_log *log, int timeout_ms);

    /* Waits until the log has other than `bytes` bytes, or its name leads elsewhere
     * (*changed 1), or timeout_ms have passed (-1: never; *changed 0). ask(arg) is called
     * every few milliseconds; 1: CANCELLED. No lock is held, and other threads use the
     * handle meanwhile. May come early (*changed 1, and nothing new): size tells. IO:
     * what it listens to is gone; asking again is safe. May be absent: size is asked
     * again and again. */
    sessile_status (*watch)(sessile_backend_log *log, uint64_t bytes, int timeout_ms,
                            int (*ask)(void *arg), void *arg, int *changed,
                            sessile_error *err);
} sessile_backend;

/*
 * Opens a store over a backend of the application. The table and its name are copied.
 * self is passed to the functions and belongs to the store from this call on:
 * backend->free is called when the store is closed, or before this function returns an
 * error. options: as for sessile_open(); key_source and key say whether the store is
 * sealed or plain, if the backend SEALS; the keyring is a blob of it, made when it has
 * neither keyring nor logs. Close it with sessile_store_close(). Errors: those of
 * sessile_open(); INVALID: the table lacks a function (named); UNSUPPORTED: its version.
 */
SESSILE_API sessile_status sessile_open_with(sessile_store **out,
                                             const sessile_backend *backend, void *self,
                                             const sessile_store_options *options,
                                             sessile_error *err);

/* A copy for sessile_free(), with a NUL after it; NULL: no memory. Backends use it for
 * what they return. */
SESSILE_API char *sessile_copy(const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
