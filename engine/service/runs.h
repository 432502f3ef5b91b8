/*
 * runs.h: what calls that run something share: how a run begins, and what it says.
 *
 * The methods that answer once are in methods_runs.c; Run, whose client answers what the
 * run needs, is in run_stream.c.
 */
#ifndef SERVICE_RUNS_H
#define SERVICE_RUNS_H

#include "service/server.h"

/* A run of a call. The run is freed with sessile_run_free(); the session is the call's.
 */
typedef struct begun {
    sessile_session *session;
    sessile_run *run;
    int with_context; /* the outcome has the context: of a plan */
} begun;

/* ---------------------------------------------------------------------- runs.c */

/* Begin what a request asks for. On failure there is no run. */
sessile_status begin_turn(call *c, const Sessile__V1__TurnRequest *r, begun *out,
                          sessile_error *err);
sessile_status begin_compact(call *c, const Sessile__V1__CompactRequest *r, begun *out,
                             sessile_error *err);
sessile_status begin_plan(call *c, const Sessile__V1__CompactRequest *r, begun *out,
                          sessile_error *err);
sessile_status begin_branch(call *c, const Sessile__V1__BranchRequest *r, begun *out,
                            sessile_error *err);
sessile_status begin_answer(call *c, const Sessile__V1__AnswerRequest *r, begun *out,
                            sessile_error *err);
/* The text is borrowed from the request. */
sessile_answer read_answer(const Sessile__V1__Answer *r);

/* ---------------------------------------------------------------------- runs_outcome.c
 */

/* What a run needs; NULL: no memory. */
Sessile__V1__Need *runs_need(call *c, const sessile_need *from);
/* The outcome of a run that is done or was parked, with the need that it was parked
 * with (NULL: none). */
sessile_status runs_outcome(call *c, const begun *b, Sessile__V1__Need *parked,
                            Sessile__V1__Outcome **out, sessile_error *err);
/* Ends the wait of a run that nobody answers: it is parked (*parked 1), or, what cannot
 * be, goes on with a failure as its answer. */
sessile_status runs_park(sessile_run *run, const sessile_need *need, int *parked,
                         sessile_error *err);

/* ---------------------------------------------------------------------- run_stream.c */

/* Runs that wait for the client of a stream. */
sessile_status runs_open(runs **out, service *s, sessile_error *err);
/* Parks each run that waits; those that come to wait are parked as well. */
void runs_drain(runs *r);
void runs_close(runs *r);
size_t runs_waiting(runs *r);

#endif
