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
 * The smallest backend has create, open, close, size, read, append, sync and list, and
 * with SESSILE_BACKEND_SEALS blob_get and blob_put_new. Its other members are NULL, and
 * its capabilities are SESSILE_BACKEND_SEALS. Each append then takes place whole or not
 * at all, as in a transaction. A writer that gets CONFLICT reads what is new and tries
 * again.
 *
 * What you lose without each optional part:
 *
 *   SEALS         the store is plain and volatile like "ram:": it has no keyring, and a
 *                 later handle does not find its logs by name
 *   LOCKS         nothing; competing writers try again until their time is up
 *   CUTS          torn ends cannot be cut; leave it out only if an append cannot stop
 *                 half-way
 *   CACHES        opening a session reads its whole log
 *   REPLACES      UNSUPPORTED: salvaging a damaged log, resealing
 *   LIST_CACHE    a list of sessions opens each of them
 *   remove        sessions can only be deleted softly
 *   watch         a reader that waits for new entries polls the size
 *   ends          who follows many sessions asks the size of each
 *   clock         a clock of this machine that is wrong is not noticed
 *   blob_replace, blob_remove
 *                 UNSUPPORTED: rotating keys, forgetting users
 *
 * CUTS requires LOCKS. A backend without LOCKS that has CACHES, REPLACES or remove (a
 * database, for example) must fence each of these calls as it fences append.
 *
 * Rules
 *   - Names of folders and logs are single path components of [a-z0-9_=.-], at most 200
 *     bytes long, made by the engine. Lists leave out everything else that the backend
 *     holds, with one exception: a log whose folder or name is no such component any
 *     more, because it was damaged, should be listed as "misnamed." followed by
 *     something that identifies it. The engine never makes such a name; open, stat and
 *     list accept it, and the engine repairs it with `rename`.
 *   - All handles of a log see an append immediately, whoever opened them.
 *   - Any thread may call, and several may use one log at the same time. Functions may
 *     block. They must not call sessile, except sessile_copy() and sessile_free().
 *   - A function that fails returns a status other than OK and writes a message into err,
 *     which is never NULL. The message names the thing and says what to do. It does not
 *     contain a password. The application sees it unchanged.
 *   - An error is final: what a function reported as failed must not happen later.
 *   - If a function returns something impossible, such as a size out of bounds or an
 *     unknown status, the engine reports IO and ignores the rest of the result.
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

/* The end of a log: the number of its records, its size in bytes, and the tag of its last
 * record. The tag is the AEAD tag, or 8 bytes of checksum and 8 zeros. Compare it, but do
 * not interpret it. */
typedef struct sessile_log_end {
    uint64_t count;
    uint64_t bytes;
    unsigned char tag[16];
} sessile_log_end;

/* An open log. The backend defines this struct as it likes. */
typedef struct sessile_backend_log sessile_backend_log;
/* A log that is being written and has no name yet. The backend defines this struct, too.
 */
typedef struct sessile_backend_draft sessile_backend_draft;

/* What a backend knows of a log without opening it. */
typedef struct sessile_backend_stat {
    uint64_t bytes;
    int64_t mtime_ns; /* ns since 1970-01-01T00:00Z; whoever may write to the log can set
                         it */
    uint64_t inode;   /* changes when another log takes the name */
    /* When the log last changed, including its permissions and mtime, by the clock of the
     * store, which nobody can set. Equal to mtime_ns if there is no such clock. */
    int64_t changed_ns;
} sessile_backend_stat;

/* capabilities */
enum {
    SESSILE_BACKEND_SEALS = 1,      /* it keeps blobs: the store has a keyring, and logs
                                       can be sealed */
    SESSILE_BACKEND_CUTS = 2,       /* set_aside */
    SESSILE_BACKEND_LOCKS = 4,      /* lock, unlock */
    SESSILE_BACKEND_CACHES = 8,     /* cache_size, cache_read, cache_write */
    SESSILE_BACKEND_REPLACES = 16,  /* draft_new, _write, _replace and _drop */
    SESSILE_BACKEND_LIST_CACHE = 32 /* stat, list_stat, list_cache_get, _put and _drop */
};

enum { SESSILE_LOCK_SHARED = 1, SESSILE_LOCK_EXCLUSIVE = 2 };

/* Of `ends`: the size of a log that is not there any more, and how many logs are asked
 * for at once. */
#define SESSILE_LOG_GONE UINT64_MAX
enum { SESSILE_ENDS_MOST = 10000 };

typedef struct sessile_backend {
    int version;
    unsigned capabilities;
    const char *name; /* "file" */

    /* Frees self. Called when the store is closed or could not be opened; all logs are
     * closed then. NULL: self belongs to the host. */
    void (*free)(void *self);

    /* Creates a log with its first records, durable on return, or nothing at all. EXISTS:
     * the name is taken. */
    sessile_status (*create)(void *self, const char *folder, const char *name,
                             const void *data, size_t size, sessile_error *err);

    /* Opens a log; *out is closed with close. NOTFOUND. DENIED: it belongs to another
     * user, is a link, or is not a regular file. */
    sessile_status (*open)(void *self, const char *folder, const char *name,
                           sessile_backend_log **out, sessile_error *err);
    void (*close)(sessile_backend_log *log);

    /* Returns the size of the log in bytes, including a torn end, and its time of
     * modification (ms). If the log was removed or replaced: what this handle saw last;
     * `replaced` tells. */
    sessile_status (*size)(sessile_backend_log *log, uint64_t *bytes, int64_t *mtime_ms,
                           sessile_error *err);

    /* Reads up to size bytes at offset into out. offset is the start of record `index`,
     * or lies within it when a read is continued. *got is less than size only at the end
     * of the log. */
    sessile_status (*read)(sessile_backend_log *log, uint64_t index, uint64_t offset,
                           void *out, size_t size, size_t *got, sessile_error *err);

    /* Locks the log against every other handle of it in any process. mode:
     * SESSILE_LOCK_…. Waits at most timeout_ms (-1: for ever; 0: tries once). *replaced
     * is set to 1 if the name now belongs to another log: the engine opens the log again.
     * BUSY: the time is up. CANCELLED: see set_stop. UNSUPPORTED: locks cannot be relied
     * on where the log is. Not needed without LOCKS: append is the fence. */
    sessile_status (*lock)(sessile_backend_log *log, int mode, int timeout_ms,
                           int *replaced, sessile_error *err);
    void (*unlock)(sessile_backend_log *log);

    /*
     * Appends `count` records, size bytes in all, if the log still ends at *end. *end is
     * then set to the new end, whose tag is new_tag. The append need not be durable yet.
     * Called under the exclusive lock if there are LOCKS.
     *
     * CONFLICT: the log ends elsewhere, because it grew. TRUNCATED: it is shorter than
     * *end. NOTFOUND: it was removed or replaced. After an error the log is as before, or
     * *poisoned is set to 1. With CUTS that means: the log could not be cut back, and
     * nothing may be appended through any handle. Without: it is unknown whether the
     * append took place, and nothing may be appended through this handle. Opening the log
     * again shows what it contains.
     */
    sessile_status (*append)(sessile_backend_log *log, sessile_log_end *end,
                             const void *data, size_t size, uint64_t count,
                             const unsigned char new_tag[16], int *poisoned,
                             sessile_error *err);

    /* Makes everything durable that was appended before the call, and everything that was
     * read through this handle. IO: it is unknown what is durable. BUSY: not in time, and
     * the call may be repeated. */
    sessile_status (*sync)(sessile_backend_log *log, sessile_error *err);

    /* Copies the bytes from offset to the end of the log into a piece of its own, named
     * for the log and the offset and durable, and then cuts the log at offset, durably.
     * Called under the exclusive lock. It may be called again after an interruption. */
    sessile_status (*set_aside)(sessile_backend_log *log, uint64_t offset,
                                sessile_error *err);

    /* Calls visit for each log of a folder (NULL: of all folders) until visit returns
     * something other than 0. */
    sessile_status (*list)(void *self, const char *folder,
                           int (*visit)(void *arg, const char *folder, const char *name),
                           void *arg, sessile_error *err);

    /* Returns a blob, allocated with sessile_copy(); the engine frees it with
     * sessile_free(). NOTFOUND. DENIED: its permissions are too open. */
    sessile_status (*blob_get)(void *self, const char *name, char **out, size_t *size,
                               sessile_error *err);
    /* Creates a blob, durable and whole, or not at all. EXISTS: there is one of that
     * name. */
    sessile_status (*blob_put_new)(void *self, const char *name, const void *data,
                                   size_t size, sessile_error *err);

    /* Sets *found to 1 if there is at least one log. Optional: without it the engine
     * calls list. */
    sessile_status (*has_logs)(void *self, int *found, sessile_error *err);

    /* Writes size bytes again over the same bytes at offset, so that the next sync takes
     * them to the device: after a failed sync their pages may be marked clean. Called
     * under the exclusive lock. Optional if a later sync that succeeds makes everything
     * durable that was appended before it. */
    sessile_status (*rewrite)(sessile_backend_log *log, uint64_t offset, const void *data,
                              size_t size, sessile_error *err);

    /* The cache of a log: bytes that may be lost or wrong at any time, are never synced,
     * and are removed with the log. cache_size: 0 if there is none. cache_write cuts the
     * cache at offset and writes there; it is called under the exclusive lock. After an
     * error the bytes from offset on are undefined. DENIED: as for open. Without LOCKS a
     * write takes place whole or not at all; CONFLICT: the cache ends before offset. Of
     * two writes that meet, one wins. */
    sessile_status (*cache_size)(sessile_backend_log *log, uint64_t *bytes,
                                 sessile_error *err);
    sessile_status (*cache_read)(sessile_backend_log *log, uint64_t offset, void *out,
                                 size_t size, size_t *got, sessile_error *err);
    sessile_status (*cache_write)(sessile_backend_log *log, uint64_t offset,
                                  const void *data, size_t size, sessile_error *err);

    /*
     * A draft is a log in the making that takes the place of another one as a whole.
     *
     * draft_new begins it, in a folder that is created if missing. It has no name yet,
     * and lists do not show it. draft_write appends to it. draft_replace makes it durable
     * and gives it the name of the log in one atomic, durable step, drops the cache of
     * the log, and frees the draft, also on failure. draft_drop gives the draft up. What
     * a crash leaves of a draft is not a log.
     *
     * old: the log that is replaced, under its exclusive lock. keep 1: the old bytes are
     * kept durably under a name of their own, which is written into kept with a NUL.
     * keep 0: they can be read through `old` and other open handles until these are
     * closed; without LOCKS they are gone immediately, and reading them is NOTFOUND.
     *
     * Without LOCKS draft_replace returns CONFLICT and changes nothing if the old log
     * ends elsewhere than `size` last returned through `old`, or the name belongs to
     * another log.
     */
    sessile_status (*draft_new)(void *self, const char *folder, const char *name,
                                sessile_backend_draft **out, sessile_error *err);
    sessile_status (*draft_write)(sessile_backend_draft *draft, const void *data,
                                  size_t size, sessile_error *err);
    sessile_status (*draft_replace)(sessile_backend_draft *draft,
                                    sessile_backend_log *old, int keep, char *kept,
                                    size_t kept_size, sessile_error *err);
    void (*draft_drop)(sessile_backend_draft *draft);

    /* Replaces a blob if it still equals `was`, durably, as a whole or not at all.
     * CONFLICT: it differs. NOTFOUND: there is none. After IO it is either of the two. */
    sessile_status (*blob_replace)(void *self, const char *name, const void *was,
                                   size_t was_size, const void *data, size_t size,
                                   sessile_error *err);
    /* Overwrites and removes a blob, durably. NOTFOUND. */
    sessile_status (*blob_remove)(void *self, const char *name, sessile_error *err);
    /* Calls visit for each blob whose name begins with prefix until visit returns
     * something other than 0. A blob whose name is damaged, so that it is none that the
     * engine makes, should be shown as "misnamed." followed by something that identifies
     * it; a check lists those and names them. */
    sessile_status (*blob_list)(void *self, const char *prefix,
                                int (*visit)(void *arg, const char *name), void *arg,
                                sessile_error *err);

    /* Describes a log without opening it. NOTFOUND. */
    sessile_status (*stat)(void *self, const char *folder, const char *name,
                           sessile_backend_stat *out, sessile_error *err);
    /* The list cache of a folder: one blob that may be lost or wrong at any time and is
     * never synced. put replaces it as a whole; of two that meet, one wins. get:
     * allocated with sessile_copy(); NOTFOUND; DENIED as for open. drop removes that of a
     * folder, or of all folders (NULL); OK if there is none. */
    sessile_status (*list_cache_get)(void *self, const char *folder, char **out,
                                     size_t *size, sessile_error *err);
    sessile_status (*list_cache_put)(void *self, const char *folder, const void *data,
                                     size_t size, sessile_error *err);
    sessile_status (*list_cache_drop)(void *self, const char *folder, sessile_error *err);
    /* As list, with the result of stat for each log, or NULL where it is not known. A log
     * that was removed meanwhile is left out. Logs of one folder are visited one after
     * the other. */
    sessile_status (*list_stat)(void *self, const char *folder,
                                int (*visit)(void *arg, const char *folder,
                                             const char *name,
                                             const sessile_backend_stat *stat),
                                void *arg, sessile_error *err);
    /* Calls visit for everything in a folder (NULL: in all folders) that is not a log:
     * torn ends, replaced logs, drafts, caches, foreign files. Stops when visit returns
     * something other than 0. */
    sessile_status (*list_others)(void *self, const char *folder,
                                  int (*visit)(void *arg, const char *folder,
                                               const char *file, uint64_t bytes),
                                  void *arg, sessile_error *err);

    /* Sets a function that ends waits. While this handle waits for its lock, ask(arg) is
     * called every few milliseconds; if it returns 1, lock returns CANCELLED. Stays set
     * until the log is closed; ask NULL unsets it. Optional: without it such a wait
     * cannot be ended. */
    void (*set_stop)(sessile_backend_log *log, int (*ask)(void *arg), void *arg);
    /* Called after lock returned BUSY. Returns BUSY with a message that names the holder
     * of the lock, as far as that is known. May take milliseconds. Optional. */
    sessile_status (*busy)(sessile_backend_log *log, sessile_error *err);

    /* Makes an existing blob durable, since its creator may not have synced it yet and
     * the engine is about to rely on it. Optional if every blob that can be read is
     * durable. */
    sessile_status (*blob_settle)(void *self, const char *name, sessile_error *err);

    /* Returns 1 if, when size or lock last looked, the name belonged to another log than
     * the open one: the engine opens the log again. 0: it did not, or that is not known.
     * Optional if logs are never replaced, or with LOCKS. */
    int (*replaced)(sessile_backend_log *log);

    /* Calls visit for files without a name that a crash left and nobody writes to any
     * more, and removes those for which visit returns 1. folder is NULL for files outside
     * the folders of agents. Optional. */
    sessile_status (*sweep)(void *self,
                            int (*visit)(void *arg, const char *folder, const char *file,
                                         uint64_t bytes),
                            void *arg, sessile_error *err);

    /* Makes a draft durable and names it as a new log, in one atomic, durable step. Frees
     * the draft, also on failure. EXISTS: the name is taken, and nothing was changed.
     * Optional: without it the whole new log is passed to create. */
    sessile_status (*draft_publish)(sessile_backend_draft *draft, sessile_error *err);

    /* Removes a log and everything beside it (torn ends, replaced logs, caches), durably.
     * First goes what is beside it, then the first `head` bytes of the log are
     * overwritten, then the log goes. Called under the exclusive lock if there are LOCKS.
     * Other open handles learn of it at their next lock (`replaced`) and are closed as
     * usual. It may be called again after an interruption. Without LOCKS: CONFLICT if the
     * log ends elsewhere than `size` last returned through this handle. Optional: without
     * it sessions cannot be removed. */
    sessile_status (*remove)(sessile_backend_log *log, uint64_t head, sessile_error *err);

    /* Without LOCKS: sets how long each later call on this handle may wait for other
     * writers, or for a server that does not answer, before it returns BUSY or IO (ms;
     * -1: for ever; 0: try once). Until then the timeout of the store applies. Optional:
     * without it the store must bound these waits itself. */
    void (*set_timeout)(sessile_backend_log *log, int timeout_ms);

    /* Waits until the size of the log is not `bytes`, or its name belongs to another log
     * or to none; then sets *changed to 1. After timeout_ms (-1: never) returns OK with
     * *changed 0. ask(arg) is called every few milliseconds; if it returns 1: CANCELLED.
     * Holds no lock; other threads use the handle meanwhile. May return early with
     * *changed 1 and nothing new. IO: the source of changes is gone; the call may be
     * repeated. Optional: without it the engine polls size. */
    sessile_status (*watch)(sessile_backend_log *log, uint64_t bytes, int timeout_ms,
                            int (*ask)(void *arg), void *arg, int *changed,
                            sessile_error *err);

    /* Gives a log whose name was damaged its right name, durably and in one step; the
     * folder is created if it is missing. Called under the exclusive lock if there are
     * LOCKS; the handle is closed afterwards. What lies beside the log (caches, torn
     * ends, replaced logs) may stay where it is. EXISTS: the name is taken, and nothing
     * was changed. Optional: without it such a log keeps the name it has. */
    sessile_status (*rename)(sessile_backend_log *log, const char *folder,
                             const char *name, sessile_error *err);

    /* Where a store keeps the end of a log apart from its records: what append compares
     * with the writer's end, as it is kept, even if the records say something else.
     * *has_tag 0: append compares no tag. A check compares it with the records. NOTFOUND:
     * the log was removed or replaced. Optional. */
    sessile_status (*fence)(sessile_backend_log *log, sessile_log_end *out, int *has_tag,
                            sessile_error *err);

    /* Says what open saw: the size of the log, and of its cache (UINT64_MAX: it did not
     * look). Called right after open, so that a database is not asked again. Optional. */
    void (*opened)(sessile_backend_log *log, uint64_t *bytes, uint64_t *cache_bytes);

    /* For a store that keeps records in memory: what is read through this handle from now
     * on comes from where it is stored. Called right after open by a check, which looks
     * for what was lost or changed there. Optional if nothing is kept. */
    void (*reread)(sessile_backend_log *log);

    /* Says of n open logs of this store how long each is now: bytes[i] is what `size` of
     * logs[i] would return, or SESSILE_LOG_GONE if the log was removed, or its name
     * belongs to another log. n is 1 to SESSILE_ENDS_MOST; a log may be among them twice.
     * It is no look of `size`: what `replaced` returns, and the size that `remove` and
     * draft_replace compare with, stay as they are. Other threads use the handles
     * meanwhile. After an error bytes is undefined. Optional: without it the engine asks
     * `size` of each, and learns of a removal only if `replaced` tells. */
    sessile_status (*ends)(void *self, sessile_backend_log *const *logs, size_t n,
                           uint64_t *bytes, sessile_error *err);

    /* The time by the clock of the store's server, in ms since 1970-01-01T00:00Z, asked
     * for in this call. Optional: leave it out if the store has no clock but that of this
     * machine. */
    sessile_status (*clock)(void *self, int64_t *now_ms, sessile_error *err);
} sessile_backend;

/*
 * Opens a store over a backend of the application. The table and its name are copied.
 * self is passed to the functions and belongs to the store from this call on:
 * backend->free is called when the store is closed, or before this function returns an
 * error.
 *
 * options: as for sessile_open(). With SEALS, key_source and key choose whether the store
 * is sealed or plain. Its keyring is a blob, which is created if the backend has neither
 * keyring nor logs. Close *out with sessile_store_close().
 *
 * Errors: those of sessile_open(); INVALID: the table lacks a function, which the message
 * names; UNSUPPORTED: the version of the table.
 */
SESSILE_API sessile_status sessile_open_with(sessile_store **out,
                                             const sessile_backend *backend, void *self,
                                             const sessile_store_options *options,
                                             sessile_error *err);

/* Returns a copy of size bytes, followed by a NUL; NULL: no memory. It is freed with
 * sessile_free(). Backends use it for what they return. */
SESSILE_API char *sessile_copy(const void *data, size_t size);

#ifdef __cplusplus
}
#endif

#endif
