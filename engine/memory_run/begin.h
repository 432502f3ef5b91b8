/* begin.h: the interface of runs of memories for the api floor. */
#ifndef MEMORY_RUN_BEGIN_H
#define MEMORY_RUN_BEGIN_H

#include "memory/memory.h"
#include "session/handle.h"

/* The public functions of these names; arguments are not NULL, slices have data. */
sessile_status memory_run_remember(sessile_memory_run **out, sessile_session *s,
                                   sessile_memory *const *memories, size_t memory_count,
                                   const sessile_memory_run_options *options,
                                   sessile_error *err);
sessile_status memory_run_tidy(sessile_memory_run **out, sessile_memory *m,
                               const sessile_memory_run_options *options,
                               sessile_error *err);
sessile_status memory_run_admit(sessile_memory_run **out, sessile_memory *m,
                                const sessile_memory_write_entry *entries, size_t count,
                                const sessile_memory_run_options *options,
                                sessile_error *err);
sessile_status memory_run_recall(sessile_memory_run **out, sessile_session *s,
                                 sessile_memory *const *memories, size_t memory_count,
                                 const sessile_recall_options *recall,
                                 const sessile_memory_run_options *options,
                                 sessile_error *err);
sessile_status memory_run_embed(sessile_memory_run **out, sessile_memory *m,
                                const sessile_memory_run_options *options,
                                sessile_error *err);
sessile_status memory_run_step(sessile_memory_run *run, sessile_need *need,
                               sessile_error *err);
sessile_status memory_run_reply(sessile_memory_run *run, const sessile_answer *answer,
                                sessile_error *err);
sessile_status memory_run_reply_vectors(sessile_memory_run *run, const float *vectors,
                                        size_t count, size_t dims, sessile_error *err);
sessile_status memory_run_outcome(sessile_memory_run *run, sessile_memory_outcome *out,
                                  sessile_error *err);
void memory_run_free(sessile_memory_run *run);

#endif
