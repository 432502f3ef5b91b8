/*
 * read.h: reads texts, messages and contexts of a session.
 *
 * Functions whose names end in _locked expect the handle's mutex to be held.
 */
#ifndef SESSION_READ_H
#define SESSION_READ_H

#include "base/buf.h"
#include "context/context.h"
#include "sessile.h"
#include "session/cores.h"

/* Appends the text of entry id. As log_read(). */
sessile_status session_text_locked(session_core *s, sessile_id id, buf *out,
                                   sessile_error *err);

/* The context at the head, valid until the mutex is released; the context at any path
 * entry, built into out. NOTFOUND: there is no such path entry. */
sessile_status session_context_locked(session_core *s, const context **out,
                                      sessile_error *err);
sessile_status session_context_at_locked(session_core *s, sessile_id at, context *out,
                                         sessile_error *err);
/* Pushes the messages after low, an ancestor of high, up to high, on out (init'ed). */
sessile_status session_between_locked(session_core *s, sessile_id low, sessile_id high,
                                      context *out, sessile_error *err);
/* Appends the JSON of the message that key names. */
sessile_status session_message_locked(session_core *s, sessile_key key, buf *out,
                                      sessile_error *err);
/* Reads the messages of a list in order, as session_message_locked() does, but messages
 * that are close to each other in the log in one piece. Call prefetch_end() before the
 * mutex is released. */
typedef struct prefetch {
    session_core *s;
    const context *c;
    size_t next;            /* the item after those */
    sessile_id first, last; /* entries read in one piece; first > last: none yet */
} prefetch;
void prefetch_begin(prefetch *a, session_core *s, const context *c);
sessile_status prefetch_message(prefetch *a, sessile_key key, buf *out,
                                sessile_error *err);
void prefetch_end(prefetch *a);
/* Appends the vars of all policies at an entry: a JSON object {"name":{…}}. */
sessile_status session_vars_locked(session_core *s, sessile_id at, buf *out,
                                   sessile_error *err);
/* ---- lists for the host (render.c) */

/* Makes rows of a context as it is sent to a model: late answers are moved to their
 * calls, dead calls get a result made by the engine, orphans are left out. text reads the
 * message of an item. Sets only orphans and unanswered of info. The mutex of `times` is
 * held. */
typedef sessile_status (*render_text)(void *arg, sessile_key key, buf *out,
                                      sessile_error *err);
sessile_status render_context(const context *c, render_text text, void *arg,
                              const session_core *times /* for time_ms; or NULL */,
                              sessile_message **out, size_t *count,
                              sessile_context_info *info, const allocator *a,
                              sessile_error *err);

#endif
