/*
 * write.h: the one way in which entries get into a log.
 *
 * session_write() takes the log's lock, reads what others wrote, lets the caller build
 * entries for the head as it is then, appends them as one commit and folds them in.
 */
#ifndef SESSION_WRITE_H
#define SESSION_WRITE_H

#include "session/handle.h"

/* Entries on their way into one commit. */
typedef struct batch {
    buf text;
    size_t *starts; /* offsets into text */
    size_t count, capacity;
    sessile_id first; /* the id of the first entry */
    sessile_id base;  /* the handle's base after it; SESSILE_NO_ID: the head */
    int64_t now_ms;
    const allocator *alloc;
} batch;
/* The id the next entry will have. */
sessile_id batch_next(const batch *b);
/* Adds an entry: id and time are set by the batch. NOMEM is found by session_write. */
void batch_add(batch *b, entry_fields *fields);

/* The text of the i-th entry; borrowed until the next is added. */
sessile_slice batch_entry(const batch *b, size_t i);
/* Adds an entry whose text is there already, its id put in its place. */
void batch_copy(batch *b, const char *text, size_t size);
void batch_init(batch *b, sessile_id first, int64_t now_ms, const allocator *a);
void batch_deinit(batch *b);

/* Builds the entries for the head as it is now (mutex and log lock held). Adding nothing
 * writes nothing. An error writes nothing. */
typedef sessile_status (*session_build)(void *arg, sessile_session *s, batch *b,
                                        sessile_error *err);
/* How session_write() writes. NULL stands for zeros. */
typedef struct session_writing {
    /*
     * 1: build may be called again whatever it returned. In a store without locks it is
     * then called first on what this handle has seen, without asking for what others
     * appended, since the store compares. If that writes nothing, it is called again on
     * what is there. This saves a database one query with each write.
     */
    int known;
    /* Not NULL: the write is a part of a longer call, which waits by this and afterwards
     * calls session_sync_within() with *count. */
    session_wait *wait;
    sessile_id *count; /* log_count() after the write; may be NULL */
} session_writing;

/*
 * Writes what build builds. Without a wait it is a call of its own, which returns when
 * the entries are durable. Takes the mutex. If the log has grown between reading and
 * appending, build is called again on what is there then.
 */
sessile_status session_write(sessile_session *s, session_build build, void *arg,
                             const session_writing *how, sessile_error *err);
/* Waits until that is durable, unless the store's durability is NONE. No mutex held. */
sessile_status session_sync_within(sessile_session *s, const session_wait *w,
                                   sessile_id count, sessile_error *err);

/* Makes all that this handle wrote durable, whatever the store's durability; the next
 * write says so. */
sessile_status session_sync(sessile_session *s, sessile_error *err);

/* Adds an entry for a message: checked text, read columns. Returns its id. */
sessile_id batch_message(batch *b, sessile_id parent, const char *text, size_t size,
                         const message *m, token_count tokens);

/* Adds an entry that is no message: checked text, no tokens. Returns its id. */
sessile_id batch_put(batch *b, sessile_id parent, entry_type type, entry_source source,
                     const char *data, size_t size);

/* Adds the fact that moves the head from `was` to `to`. */
void batch_move_head(batch *b, sessile_id to, sessile_id was);

/* ---- small writes, each synced (write.c) */

/* As sessile.h says of the functions of these names; arguments are not NULL. */
sessile_status session_append_message(sessile_session *s, sessile_slice text,
                                      sessile_id *out, sessile_error *err);
/* A message's text checked into out, with its columns (spans into out) and tokens. */
sessile_status session_check_message(sessile_session *s, sessile_slice text, buf *out,
                                     message *columns, token_count *tokens,
                                     sessile_error *err);
sessile_status session_append_custom(sessile_session *s, sessile_slice data,
                                     entry_source source, sessile_id *out,
                                     sessile_error *err);
sessile_status session_set_title(sessile_session *s, sessile_slice title,
                                 sessile_error *err);
sessile_status session_clear(sessile_session *s, sessile_error *err);
/* LIMIT [title]; INVALID: not UTF-8. */
sessile_status session_check_title(const sessile_store *st, sessile_slice title,
                                   sessile_error *err);

/* Checks a JSON object for a header into out; empty stays empty. */
sessile_status session_check_metadata(buf *out, const sessile_store *st,
                                      sessile_slice text, sessile_error *err);

#endif
