/*
 * agent_info.h: what an agent says about itself. It is stored in the agent's
 * checkpoints.
 */
#ifndef SESSION_AGENT_INFO_H
#define SESSION_AGENT_INFO_H

#include "session/handle.h"

enum { AGENT_INFO_MOST = 200 }; /* bytes of a version, of a configuration's name */

/* Copies the description into the session. INVALID, LIMIT, NOMEM. */
sessile_status session_set_agent_info(session_core *s, const sessile_agent_info *info,
                                      sessile_error *err);
void session_free_agent_info(session_core *s);

/* Text of a host: UTF-8 of at most `most` bytes. what: its name in errors. INVALID,
 * LIMIT. */
sessile_status session_check_text(sessile_slice text, size_t most, const char *what,
                                  sessile_error *err);
/* JSON of a host, appended to out as it will be stored; empty text appends nothing.
 * object: it has to be an object. INVALID, LIMIT, NOMEM. */
sessile_status session_check_json(buf *out, const session_core *s, sessile_slice text,
                                  const char *what, int object, sessile_error *err);

#endif
