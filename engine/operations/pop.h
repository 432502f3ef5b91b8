/*
 * pop.h: takes the newest messages off the conversation.
 */
#ifndef OPERATIONS_POP_H
#define OPERATIONS_POP_H

#include "session/handle.h"

/* sessile_pop(); n is not 0. */
sessile_status session_pop(session_core *s, size_t n, sessile_id base,
                           sessile_message **out, size_t *count, sessile_error *err);

#endif
