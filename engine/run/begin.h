/* begin.h: the interface of runs for the api floor: begin, step, reply, outcome, free. */
#ifndef RUN_BEGIN_H
#define RUN_BEGIN_H

#include "session/handle.h"

/* The public functions of the same names; arguments are not NULL. memories: those of the
 * options, in place of these; NULL: none. */
sessile_status run_begin_turn(run_core **out, session_core *s,
                              const sessile_slice *messages, size_t count,
                              const sessile_run_options *options,
                              const memory_cores *memories, sessile_error *err);
sessile_status run_begin_compact(run_core **out, session_core *s, int plan,
                                 const sessile_run_options *options,
                                 const memory_cores *memories, sessile_error *err);
sessile_status run_begin_branch(run_core **out, session_core *s, sessile_id to,
                                const sessile_run_options *options,
                                const memory_cores *memories, sessile_error *err);
/* pending_run: SESSILE_NO_ID for the newest. answer: NULL to ask the model again. */
sessile_status run_begin_answer(run_core **out, session_core *s, sessile_id pending_run,
                                const sessile_answer *answer,
                                const sessile_run_options *options,
                                const memory_cores *memories, sessile_error *err);
sessile_status run_defer(run_core *run, sessile_id *out, sessile_error *err);
sessile_status run_step(run_core *run, sessile_need *need, sessile_error *err);
sessile_status run_reply(run_core *run, const sessile_answer *answer, sessile_error *err);
sessile_status run_outcome(run_core *run, sessile_outcome *out, sessile_error *err);
sessile_status run_context(run_core *run, sessile_message **out, size_t *count,
                           sessile_error *err);
void run_free(run_core *run);

#endif
