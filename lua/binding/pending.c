/*
 * pending.c: pending runs: written down, listed, answered.
 *
 * Owns nothing: a run that answers is a run like any other (run.c).
 */
#include "binding.h"

/* run:defer() -> the pending run's id; the run is done */
int binding_run_defer(lua_State *L, struct binding_run *run)
{
    sessile_id id;
    sessile_error err;
    if (sessile_run_defer(run->handle, &id, &err))
        return binding_fail(L, &err);
    run->asks = SESSILE_NEED_NONE;
    run->done = 1;
    binding_push_id(L, id);
    return 1;
}

#define PENDING(...) BINDING_FIELD(sessile_pending_run, __VA_ARGS__)
static const struct binding_row pending_row =
    BINDING_ROW(sessile_pending_run, NULL, PENDING("id", ID, entry),
                PENDING("time", INTEGER, time_ms), PENDING("refused", BOOLEAN, refused),
                PENDING("policy", STRING, policy), PENDING("request", JSON, request));

/* session:pending_runs() -> {{id, time, policy, request}} */
BINDING_LIST(binding_session_pending_runs, sessile_pending_run, &pending_row,
             sessile_pending_runs)
