/*
 * read.h: texts, messages and contexts read from a session.
 *
 * Functions whose names end in _locked want the handle's mutex to be held.
 */
#ifndef SESSION_READ_H
#define SESSION_READ_H

#include "base/buf.h"
#include "context/context.h"
#include "sessile.h"

/* Appends the text of entry id. As log_read(). */
sessile_status session_text_locked(sessile_session *s, sessile_id id, buf *out,
                                   sessile_error *err);

/* The context at the head (valid until the mutex is released), or at any path entry
 * (built into out). NOTFOUND: no such path entry. */
sessile_status session_context_locked(sessile_session *s, const context **out,
                                      sessile_error *err);
sessile_status session_context_at_locked(sessile_session *s, sessile_id at, context *out,
                                         sessile_error *err);
/* The messages of the path from after low, an ancestor of high, up to it, as a list into
 * out (init'ed). */
sessile_status session_between_locked(sessile_session *s, sessile_id low, sessile_id high,
                                      context *out, sessile_error *err);
/* Appends the message JSON named by key. */
sessile_status session_message_locked(sessile_session *s, sessile_key key, buf *out,
                                      sessile_error *err);
/* The messages of a list in its order, as session_message_locked() gives them: those that
 * stand close to each other in the log are read at once. prefetch_end() before the mutex
 * is released. */
typedef struct prefetch {
    sessile_session *s;
    const context *c;
    size_t next;            /* the item behind those */
    sessile_id first, last; /* entries read at once; first > last: none yet */
} prefetch;
void prefetch_begin(prefetch *a, sessile_session *s, const context *c);
sessile_status prefetch_message(prefetch *a, sessile_key key, buf *out,
                                sessile_error *err);
void prefetch_end(prefetch *a);
/* vars of all policies at an entry, a JSON object {"name":{…}}, appended to out. */
sessile_status session_vars_locked(sessile_session *s, sessile_id at, buf *out,
                                   sessile_error *err);
/* ---- lists for the host (render.c) */

/* Rows of a context as a model is sent it: late answers moved to their calls, dead calls
 * answered by an engine-made result, orphans left out. text reads an item's message. Of
 * info only orphans and unanswered are set. With `times` its mutex is held. */
typedef sessile_status (*render_text)(void *arg, sessile_key key, buf *out,
                                      sessile_error *err);
sessile_status render_context(const context *c, render_text text, void *arg,
                              const sessile_session *times /* for time_ms; or NULL */,
                              sessile_message **out, size_t *count,
                              sessile_context_info *info, const allocator *a,
                              sessile_error *err);

#endif
