/*
 * annotate.h: facts that a host writes about a session: labels, settings, metadata,
 * suspensions.
 *
 * Each is one commit, synced before the call returns, and does not move the head.
 */
#ifndef OPERATIONS_ANNOTATE_H
#define OPERATIONS_ANNOTATE_H

#include "session/handle.h"

enum { LABEL_MOST = 200 /* bytes of a label */ };

/* The public functions of these names. off: 1 removes the label. */
sessile_status session_label(session_core *s, sessile_id id, sessile_slice name, int off,
                             sessile_error *err);
sessile_status session_labels(session_core *s, sessile_label_row **out, size_t *count,
                              sessile_error *err);

/* kind: "settings" or "metadata". Sets the members of a JSON object; null removes one. */
sessile_status session_state_members(session_core *s, const char *kind,
                                     sessile_slice object, sessile_error *err);
/* Appends all members in force to out, as a JSON object. */
sessile_status session_members(session_core *s, const char *kind, buf *out,
                               sessile_error *err);
/* The same as a block for the host. */
sessile_status session_members_text(session_core *s, const char *kind, char **out,
                                    size_t *size, sessile_error *err);

/* The last member of an object with that key; JSON_NONE: none. work: a scratch buffer;
 * work->failed: out of memory. */
json session_member(json object, const char *key, size_t size, buf *work);

/* ---- suspensions (operations/suspend.c): the public functions of these names */

sessile_status session_suspend(session_core *s, sessile_slice reason, sessile_slice state,
                               sessile_id *out, sessile_error *err);
sessile_status session_suspension(session_core *s, sessile_suspension **out,
                                  sessile_error *err);
sessile_status session_resume_with(session_core *s, const sessile_slice *messages,
                                   size_t count, sessile_id *first, sessile_error *err);
sessile_status session_cancel(session_core *s, sessile_slice reason, sessile_error *err);

#endif
