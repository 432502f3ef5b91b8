/* begin.h: the interface of runs of memories for the api floor. */
#ifndef MEMORY_RUN_BEGIN_H
#define MEMORY_RUN_BEGIN_H

#include "memory/memory.h"
#include "session/handle.h"

/* The public functions of these names; arguments are not NULL, slices have data. */
sessile_status memory_run_remember(memory_run_core **out, session_core *s,
                                   memory_core *const *memories, size_t memory_count,
                                   const sessile_memory_run_options *options,
                                   sessile_error *err);
sessile_status memory_run_tidy(memory_run_core **out, memory_core *m,
                               const sessile_memory_run_options *options,
                               sessile_error *err);
sessile_status memory_run_admit(memory_run_core **out, memory_core *m,
                                const sessile_memory_write_entry *entries, size_t count,
                                const sessile_memory_run_options *options,
                                sessile_error *err);
sessile_status memory_run_recall(memory_run_core **out, session_core *s,
                                 memory_core *const *memories, size_t memory_count,
                                 const sessile_recall_options *recall,
                                 const sessile_memory_run_options *options,
                                 sessile_error *err);
sessile_status memory_run_embed(memory_run_core **out, memory_core *m,
                                const sessile_memory_run_options *options,
                                sessile_error *err);
sessile_status memory_run_step(memory_run_core *run, sessile_need *need,
                               sessile_error *err);
sessile_status memory_run_reply(memory_run_core *run, const sessile_answer *answer,
                                sessile_error *err);
sessile_status memory_run_reply_vectors(memory_run_core *run, const float *vectors,
                                        size_t count, size_t dims, sessile_error *err);
sessile_status memory_run_outcome(memory_run_core *run, sessile_memory_outcome *out,
                                  sessile_error *err);
void memory_run_free(memory_run_core *run);

#endif
