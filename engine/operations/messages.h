/*
 * messages.h: the messages of a path as rows.
 */
#ifndef OPERATIONS_MESSAGES_H
#define OPERATIONS_MESSAGES_H

#include "session/handle.h"

/* sessile_messages(). */
sessile_status session_messages(session_core *s, const sessile_messages_options *options,
                                sessile_message **out, size_t *count, sessile_error *err);

/* The messages at ids, which ascend and whose nodes are loaded, as one block of rows that
 * the host frees; an empty list is a block, too. */
sessile_status session_message_rows_locked(session_core *s, const sessile_id *ids,
                                           size_t count, sessile_message **out,
                                           sessile_error *err);

#endif
