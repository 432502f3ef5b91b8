/*
 * pending.c: pending runs: written down, listed, answered.
 *
 * Owns nothing: a run that answers is a run like any other (run.c).
 */
#include "binding.h"
#include "policy/lua_json.h"

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

/* session:pending_runs() -> {{id, time, policy, request}} */
int binding_session_pending_runs(lua_State *L, struct binding_session *session)
{
    struct binding_guard *guard;
    sessile_pending_run *rows = NULL;
    sessile_status status;
    sessile_error err;
    size_t count = 0, i;
    guard = binding_guard(L);
    status = sessile_pending_runs(session->handle, &rows, &count, &err);
    guard->block = rows;
    if (status)
        return binding_fail(L, &err);
    lua_newtable(L);
    for (i = 0; i < count; i++) {
        lua_createtable(L, 0, 4);
        binding_set_id(L, "id", rows[i].entry);
        binding_set_integer(L, "time", (int64_t)rows[i].time_ms);
        lua_pushboolean(L, rows[i].refused);
        lua_setfield(L, -2, "refused");
        binding_push_slice(L, rows[i].policy);
        lua_setfield(L, -2, "policy");
        if (rows[i].request.size) {
            lua_json_push(L, rows[i].request.data, rows[i].request.size);
            lua_setfield(L, -2, "request");
        }
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    binding_guard_free(guard);
    return 1;
}
