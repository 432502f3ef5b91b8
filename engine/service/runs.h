/*
 * runs.h: what calls that run something share: how a run begins, how it goes on, and its
 * outcome.
 *
 * The methods that answer once are in methods_runs.c and methods_memory_runs.c. Run and
 * RunMemory, whose clients answer what a run needs, are calls of run_stream.c.
 */
#ifndef SERVICE_RUNS_H
#define SERVICE_RUNS_H

#include "service/server.h"

/* A run of a call: of a session, or of memories. It is freed with runs_free(), also when
 * it could not begin; the session is the call's. */
typedef struct begun {
    sessile_session *session;
    sessile_policy *policy; /* that the request names; NULL: none */
    sessile_run *run;       /* or memory_run; the other one is NULL */
    sessile_memory_run *memory_run;
    int with_context; /* the outcome has the context: of a plan */
} begun;

/* ---------------------------------------------------------------------- runs.c */

/* Begin what a request asks for. On failure there is no run. INVALID: what is asked for;
 * NOMEM. Other errors: as call_session() and the function of sessile.h that begins it. */
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
/* The chain of policies that a request names; NULL: it names none. INVALID: a path.
 * Other errors: as sessile_policy_load(). */
sessile_status read_policies(call *c, Sessile__V1__Policy *const *from, size_t n,
                             sessile_policy **out, sessile_error *err);
/* The reason of a name; empty: *out stays as it is. INVALID: there is none, with the name
 * of the field. */
sessile_status read_reason(const char *name, const char *field, sessile_reason *out,
                           sessile_error *err);
/* As sessile_run_step(), or sessile_memory_run_step(): NEEDS; OK: it is done. */
sessile_status runs_step(const begun *b, sessile_need *need, sessile_error *err);
/* As sessile_run_reply(), or sessile_memory_run_reply(). */
sessile_status runs_reply(const begun *b, const sessile_answer *answer,
                          sessile_error *err);
/* Ends the wait of a run that nobody answers: it is parked (*parked 1), or, what cannot
 * be, goes on with a failure as its answer. Errors: as runs_reply(). */
sessile_status runs_park(const begun *b, const sessile_need *need, int *parked,
                         sessile_error *err);
void runs_free(begun *b);
/* Asks the server's model what a run needs; the worker waits. As service_ask() says. */
sessile_status runs_ask(call *c, const begun *b, const sessile_need *need, buf *text);

/* --------------------------------------------------------------------- runs_outcome.c */

/* What a run needs; NULL: no memory. */
Sessile__V1__Need *runs_need(call *c, const sessile_need *from);
/* The outcome of a run that is done or was parked, with the need that it was parked
 * with (NULL: none). NOMEM. Other errors: as sessile_run_outcome(). */
sessile_status runs_outcome(call *c, const begun *b, Sessile__V1__Need *parked,
                            Sessile__V1__Outcome **out, sessile_error *err);
/* "applied", …, of sessile_verdict. Static. */
const char *runs_verdict(sessile_verdict verdict);

/* ---------------------------------------------------------------------- run_stream.c */

/* A kind of call that runs something: how its requests and replies are read and made. */
typedef struct run_kind {
    /* Begins what the first request asks for. */
    sessile_status (*begin)(call *c, const void *request, begun *out, sessile_error *err);
    sessile_status (*send_outcome)(call *c, const begun *b, Sessile__V1__Need *parked,
                                   sessile_error *err);
    /* Of a stream; NULL: the call answers once. */
    sessile_status (*send_need)(call *c, Sessile__V1__Need *need, sessile_error *err);
    /* Gives the run what a later request answers to its need; *answered 0: nobody will.
     * INVALID: the request is no answer. */
    sessile_status (*reply)(call *c, const begun *b, const void *request, int *answered,
                            sessile_error *err);
} run_kind;

/* The method of such a call: begins the run, and goes on with it as it is answered.
 * NOMEM. Other errors: those of kind->begin(). */
sessile_status run_stream_begin(call *c, const run_kind *kind, const void *request,
                                sessile_error *err);
/* The same of a call that answers once: what it needs is asked of the server's model, if
 * there is one, and parked or answered with a failure if not (runs.c). */
sessile_status run_once(call *c, const run_kind *kind, const void *request,
                        sessile_error *err);
/* A method that answers once; send_once() is its file's. */
#define RUN_ONCE(name, begin)                                                    \
    static sessile_status begin_any_##name(call *c, const void *r, begun *out,   \
                                           sessile_error *err)                   \
    {                                                                            \
        return begin(c, r, out, err);                                            \
    }                                                                            \
    static sessile_status name(call *c, const void *request, sessile_error *err) \
    {                                                                            \
        static const run_kind kind = {begin_any_##name, send_once, NULL, NULL};  \
        return run_once(c, &kind, request, err);                                 \
    }

/* The runs that wait for their clients. NOMEM. */
sessile_status runs_open(runs **out, service *s, sessile_error *err);
/* Parks each run that waits; those that come to wait are parked as well. */
void runs_drain(runs *r);
/* The workers and the loops have ended before. NULL is ignored. */
void runs_close(runs *r);

#endif
