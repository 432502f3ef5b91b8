/*
 * copy.h: a log written whole, entry by entry, to take the place of the one that is there
 * (log_copy_begin, log_copy_finish), or a name that is free (_begin_new, _publish).
 *
 *   log_copy_begin(&copy, …, header, size, …);
 *   log_copy_entry(&copy, text, size, ends_write, &err);    // entry 1, 2, …
 *   log_copy_finish(&copy, old, keep, kept, sizeof kept, &err);
 *   log_copy_drop(&copy);                                   // always, at the end
 *
 * The new log has a data key of its own, under the newest epoch and the suite of the
 * keyring. Ids are positions, as in every log. Until log_copy_finish() returns OK the old
 * log is what it was; a crash leaves one of the two. Until log_copy_publish() does, there
 * is no log of that name.
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
 * Begins a copy with its header, an entry's text of id 0. user: whose secret seals it, as
 * log_user() has it; NULL or "": the store's own key does. Works under the exclusive lock
 * of the log that is to be replaced. UNSUPPORTED: the store replaces no logs. On failure
 * nothing is left but what log_copy_drop() takes.
 */
sessile_status log_copy_begin(log_copy *copy, store *st, const keyring *k,
                              const char *folder, const char *name, const char *user,
                              const char *header, size_t size, const allocator *a,
                              sessile_error *err);
/* The same for a log under a name that is free; folder and name are borrowed until the
 * end. Where the store takes no drafts its lines are gathered in memory. */
sessile_status log_copy_begin_new(log_copy *copy, store *st, const keyring *k,
                                  const char *folder, const char *name, const char *user,
                                  const char *header, size_t size, const allocator *a,
                                  sessile_error *err);
/* Adds the next entry (text: checked JSON whose id is copy->count). ends_write: it is the
 * last line of its write. INVALID, LIMIT [message], FULL, IO. */
sessile_status log_copy_entry(log_copy *copy, const char *text, size_t size,
                              int ends_write, sessile_error *err);
/* Hands over what is gathered: log_copy_finish() has that much less to do. */
sessile_status log_copy_flush(log_copy *copy, sessile_error *err);
/*
 * Makes the copy durable and gives it the log's name. old: the open log that is replaced,
 * under its exclusive lock, which goes on naming the old bytes until it is closed. keep:
 * the old bytes get a name of their own first, written into kept. INVALID: the last write
 * is not ended. SEALED: the user whose log it is was forgotten meanwhile. IO may leave
 * either of the two logs under the name.
 */
sessile_status log_copy_finish(log_copy *copy, sessile_backend_log *old, int keep,
                               char *kept, size_t kept_size, sessile_error *err);
/*
 * Entries 1 to last of source, opened and resealed in one pass, each write as it was;
 * the one that `last` is in ends there. Each is compared with the line before it, and the
 * last with tag (NULL: with nothing). source: as log_attach() gave it out, no line read;
 * it has committed entry `last`. visit (may be NULL) is shown each as it goes by. No lock
 * is taken: what is committed does not move. DAMAGED: a line that does not open, or is
 * not what was written; TRUNCATED; CONFLICT: the log was resealed since the tag was
 * read.
 */
sessile_status log_copy_lines(log_copy *copy, log_t *source, sessile_id last,
                              const unsigned char *tag, log_visit visit, void *arg,
                              sessile_error *err);
/*
 * Makes a copy under a new name durable and gives it that name. source: the log that was
 * copied, of the keyring k: SEALED when the user whose log it is was forgotten meanwhile.
 * EXISTS: the name is taken. After IO it may be there, or not.
 */
sessile_status log_copy_publish(log_copy *copy, const log_t *source, const keyring *k,
                                sessile_error *err);
/* The same, without a look at whether the keyring has a newer epoch by then. */
sessile_status log_copy_take_name(log_copy *copy, const log_t *source, const keyring *k,
                                  sessile_error *err);
/* Gives up what is not finished, and the memory. A zeroed copy is left alone. */
void log_copy_drop(log_copy *copy);

#endif
