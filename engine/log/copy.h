/*
 * copy.h: writes a whole log, entry by entry, to replace one (log_copy_begin(),
 * log_copy_finish()) or under a new name (log_copy_begin_new(), log_copy_publish()).
 *
 *   log_copy_begin(&copy, …, header, size, …);
 *   log_copy_entry(&copy, text, size, ends_write, &err);    // entry 1, 2, …
 *   log_copy_finish(&copy, old, keep, kept, sizeof kept, &err);
 *   log_copy_drop(&copy);                                   // always, at the end
 *
 * The new log has its own data key, under the newest epoch and the keyring's suite. Until
 * log_copy_finish() returns OK the old log is unchanged; a crash leaves one of the two.
 * Until log_copy_publish() returns OK there is no log under the new name.
 */
#ifndef LOG_COPY_H
#define LOG_COPY_H

#include "log/log.h"

typedef struct log_copy {
    store st;
    const allocator *alloc;
    const keyring *keys;          /* NULL: the old log need not open any more */
    sessile_backend_draft *draft; /* NULL: finished or dropped, or all is in lines */
    const char *folder, *name;    /* borrowed */
    logkey key;
    buf lines, scratch;
    unsigned char tag[VAULT_TAG]; /* of the newest line */
    uint64_t count;               /* entries so far, the header among them */
    uint64_t committed;           /* of which in finished writes */
    uint64_t bytes;
} log_copy;

/*
 * Begins a copy with its header, the text of entry 0. user: whose secret seals it, as
 * log_user() returns it; NULL or "": the store's key does. Call it under the exclusive
 * lock of the log that will be replaced. After an error call log_copy_drop().
 * UNSUPPORTED: the store cannot replace logs.
 */
sessile_status log_copy_begin(log_copy *copy, store *st, const keyring *k,
                              const char *folder, const char *name, const char *user,
                              const char *header, size_t size, const allocator *a,
                              sessile_error *err);
/* The same for a log under a new name. folder and name are borrowed until the end. In a
 * store without drafts the lines are kept in memory. */
sessile_status log_copy_begin_new(log_copy *copy, store *st, const keyring *k,
                                  const char *folder, const char *name, const char *user,
                                  const char *header, size_t size, const allocator *a,
                                  sessile_error *err);
/* Adds the next entry. text: checked JSON with the id copy->count. ends_write: it is the
 * last line of its write. INVALID, LIMIT [message], FULL, IO. */
sessile_status log_copy_entry(log_copy *copy, const char *text, size_t size,
                              int ends_write, sessile_error *err);
/* Writes the lines in memory to the draft, so that log_copy_finish() has less to do. */
sessile_status log_copy_flush(log_copy *copy, sessile_error *err);
/*
 * Makes the copy durable and gives it the log's name. old: the log that is replaced, open
 * under its exclusive lock; it refers to the old bytes until it is closed. keep: the old
 * bytes get a name of their own first, written into kept. INVALID: the last write has not
 * ended. SEALED: the log's user was forgotten meanwhile. After IO either log may have the
 * name.
 */
sessile_status log_copy_finish(log_copy *copy, sessile_backend_log *old, int keep,
                               char *kept, size_t kept_size, sessile_error *err);
/*
 * Copies entries 1 to `last` of source in one pass: each is opened and sealed again, in
 * the same writes, and the write of entry `last` ends there. Each line is compared with
 * the one before it, and the last with tag (NULL: not compared). source: from
 * log_open_unread(); entry `last` is committed. visit, if not NULL, is called for each
 * entry. No lock is taken. DAMAGED: a line does not open, or is not what was written;
 * TRUNCATED; CONFLICT: the log was resealed since the tag was read.
 */
sessile_status log_copy_lines(log_copy *copy, log_t *source, sessile_id last,
                              const unsigned char *tag, log_visit visit, void *arg,
                              sessile_error *err);
/*
 * Makes a copy durable and gives it its new name. source: the log that was copied, sealed
 * under keyring k. SEALED: the log's user was forgotten meanwhile. EXISTS: the name is
 * taken. After IO the new log may exist. It waits timeout_ms for other writers (-1: for
 * ever) when it has to be sealed again, as log_create() does.
 */
sessile_status log_copy_publish(log_copy *copy, const log_t *source, const keyring *k,
                                int timeout_ms, sessile_error *err);
/* The same, without checking whether the keyring has a newer epoch by then. */
sessile_status log_copy_take_name(log_copy *copy, const log_t *source, const keyring *k,
                                  sessile_error *err);
/* Frees the memory, and drops a copy that is not finished. A zeroed copy is ignored. */
void log_copy_drop(log_copy *copy);

#endif
