/* recall.h: entries of memories quoted in a session's context. */
#ifndef OPERATIONS_RECALL_H
#define OPERATIONS_RECALL_H

#include "base/buf.h"
#include "sessile_memory.h"
#include "session/cores.h"

/* The public functions of these names. Arguments are checked. */
sessile_status session_recall_find(session_core *s, memory_core *const *memories,
                                   size_t memory_count,
                                   const sessile_recall_options *options,
                                   sessile_memory_row **rows, size_t *count,
                                   sessile_error *err);
/* The checks of both that memories are those of the session. */
sessile_status recall_check_memories(const session_core *s, memory_core *const *memories,
                                     size_t memory_count, sessile_error *err);
/* Appends what both ask: options->question, or the text of the newest message of the
 * user. */
sessile_status recall_question(session_core *s, const sessile_recall_options *options,
                               buf *out, sessile_error *err);
sessile_status session_recall(session_core *s, memory_core *const *memories,
                              size_t memory_count, const sessile_recall_options *options,
                              sessile_recall_outcome *out, sessile_error *err);

#endif
