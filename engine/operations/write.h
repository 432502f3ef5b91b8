/*
 * write.h: messages and custom entries in one commit.
 */
#ifndef OPERATIONS_WRITE_H
#define OPERATIONS_WRITE_H

#include "session/handle.h"

/* sessile_write(); there are entries, and their sources are good. */
sessile_status session_write_entries(session_core *s, const sessile_write_entry *entries,
                                     size_t count, sessile_id base, sessile_id *first,
                                     sessile_error *err);

#endif
