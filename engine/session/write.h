/*
 * write.h: writes entries to the log. There is no other way to write.
 *
 * session_write() takes the log's lock, reads what others wrote, calls the caller's build
 * function for the head as it is then, folds the entries and appends them as one commit.
 */
#ifndef SESSION_WRITE_H
#define SESSION_WRITE_H

#include "session/handle.h"

/* The entries of one commit. */
typedef struct batch {
    buf text;
    size_t *starts; /* offsets into text */
    size_t count, capacity;
    sessile_id first; /* the id of the first entry */
    sessile_id base;  /* the handle's base after it; SESSILE_NO_ID: the head */
    int64_t now_ms;
    buf user; /* JSON: who acts in each entry, as header_put_name() writes it, or empty */
    const allocator *alloc;
} batch;
/* The id of the next entry. */
sessile_id batch_next(const batch *b);
/* Adds an entry and sets its id and time. session_write() reports NOMEM. */
void batch_add(batch *b, entry_fields *fields);

/* The text of entry i, valid until the next one is added. */
sessile_slice batch_entry(const batch *b, size_t i);
/* Adds a copy of an entry's text, with its new id. */
void batch_copy(batch *b, const char *text, size_t size);
void batch_init(batch *b, sessile_id first, int64_t now_ms, const allocator *a);
void batch_deinit(batch *b);

/* Builds the entries for the head as it is now. Mutex and log lock are held. Nothing is
 * written if it adds nothing or returns an error. */
typedef sessile_status (*session_build)(void *arg, session_core *s, batch *b,
                                        sessile_error *err);
/* Options of session_write(). NULL: zeros. */
typedef struct session_writing {
    /*
     * 1: build may be called again, whatever it returned. In a store without locks it is
     * first called for what this handle knows, without reading the log, because the
     * store's append compares. If that writes nothing, the log is read and build is
     * called again. This saves a database query with each write.
     */
    int known;
    /* Not NULL: the write is a part of a longer call. The waits count as that call's, and
     * it calls session_sync_within() with *count afterwards. */
    session_wait *wait;
    sessile_id *count; /* log_count() after the write; may be NULL */
} session_writing;

/*
 * Writes the entries that build builds. Takes the mutex. Returns when they are durable,
 * unless how->wait is set. If the log has grown between reading and appending, build is
 * called again.
 */
sessile_status session_write(session_core *s, session_build build, void *arg,
                             const session_writing *how, sessile_error *err);
/* Waits until `count` entries are durable, unless the store's durability is NONE. Call it
 * without the mutex. */
sessile_status session_sync_within(session_core *s, const session_wait *w,
                                   sessile_id count, sessile_error *err);

/* Makes everything that this handle wrote durable, whatever the store's durability. */
sessile_status session_sync(session_core *s, sessile_error *err);

/* Adds a message: its checked text and its columns. Returns its id. */
sessile_id batch_message(batch *b, sessile_id parent, const char *text, size_t size,
                         const message *m, token_count tokens);
/* The same from another source than its role says. */
sessile_id batch_message_from(batch *b, sessile_id parent, entry_source source,
                              const char *text, size_t size, const message *m,
                              token_count tokens);

/* Adds an entry of another type: its checked text. Returns its id. */
sessile_id batch_put(batch *b, sessile_id parent, entry_type type, entry_source source,
                     const char *data, size_t size);

/* Adds the fact that moves the head from `was` to `to`. */
void batch_move_head(batch *b, sessile_id to, sessile_id was);

/* ---- checks of a new session (open.c) */

/* LIMIT [title]; INVALID: not UTF-8. */
sessile_status session_check_title(const store_core *st, sessile_slice title,
                                   sessile_error *err);

/* Checks a JSON object for a header into out. Empty text leaves out empty. */
sessile_status session_check_metadata(buf *out, const store_core *st, sessile_slice text,
                                      sessile_error *err);

#endif
