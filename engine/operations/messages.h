/*
 * messages.h: the messages of a path as rows.
 */
#ifndef OPERATIONS_MESSAGES_H
#define OPERATIONS_MESSAGES_H

#include "session/handle.h"

/* sessile_messages(). */
sessile_status session_messages(session_core *s, const sessile_messages_options *options,
                                sessile_message **out, size_t *count, sessile_error *err);

#endif
