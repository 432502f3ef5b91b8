/* begin.h: the interface of runs for the api floor: begin, step, reply, outcome, free. */
#ifndef RUN_BEGIN_H
#define RUN_BEGIN_H

#include "session/handle.h"

/* The public functions of the same names; arguments are not NULL. */
sessile_status run_begin_turn(sessile_run **out, sessile_session *s,
                              const sessile_slice *messages, size_t count,
                              const sessile_run_options *options, sessile_error *err);
sessile_status run_begin_compact(sessile_run **out, sessile_session *s, int plan,
                                 const sessile_run_options *options, sessile_error *err);
sessile_status run_begin_branch(sessile_run **out, sessile_session *s, sessile_id to,
                                const sessile_run_options *options, sessile_error *err);
/* pending_run: SESSILE_NO_ID for the newest. answer: NULL to ask the model again. */
sessile_status run_begin_answer(sessile_run **out, sessile_session *s,
                                sessile_id pending_run, const sessile_answer *answer,
                                const sessile_run_options *options, sessile_error *err);
sessile_status run_defer(sessile_run *run, sessile_id *out, sessile_error *err);
sessile_status run_step(sessile_run *run, sessile_need *need, sessile_error *err);
sessile_status run_reply(sessile_run *run, const sessile_answer *answer,
                         sessile_error *err);
sessile_status run_outcome(sessile_run *run, sessile_outcome *out, sessile_error *err);
sessile_status run_context(sessile_run *run, sessile_message **out, size_t *count,
                           sessile_error *err);
void run_free(sessile_run *run);

#endif
