/*
 * life.c: ttl, archive, delete, undelete and purge, of store and session handles.
 *
 * Never decides which session may go: that is the engine's.
 */
#include "binding.h"

/* store:delete({id, agent, user}, soft, reason, actor) -> {id_hash, time, bytes} */
int binding_store_delete(lua_State *L, struct binding_store *store)
{
    sessile_session_options which;
    sessile_delete_options options = {0};
    sessile_deleted gone;
    sessile_error err;
    int failed;
    luaL_checktype(L, 2, LUA_TTABLE);
    failed = binding_session_options(L, 2, &which);
    if (failed)
        return failed;
    options.soft = lua_toboolean(L, 3);
    options.reason.data = luaL_optlstring(L, 4, "", &options.reason.size);
    options.actor.data = luaL_optlstring(L, 5, "", &options.actor.size);
    if (sessile_delete(store->handle, &which, &options, &gone, &err))
        return binding_fail(L, &err);
    lua_createtable(L, 0, 3);
    binding_set_text(L, "id_hash", gone.id_hash);
    binding_set_time(L, "time", gone.time_ms);
    if (!options.soft)
        binding_set_integer(L, "bytes", (int64_t)gone.bytes);
    return 1;
}

/* store:undelete({id, agent, user}, actor) -> true */
int binding_store_undelete(lua_State *L, struct binding_store *store)
{
    sessile_session_options which;
    sessile_slice actor;
    sessile_error err;
    int failed;
    luaL_checktype(L, 2, LUA_TTABLE);
    failed = binding_session_options(L, 2, &which);
    if (failed)
        return failed;
    actor.data = luaL_optlstring(L, 3, "", &actor.size);
    return binding_done(L, sessile_undelete(store->handle, &which, actor, &err), &err);
}

/* store:purge({agent, retention_ms, dry_run}) -> rows, as list has them */
int binding_store_purge(lua_State *L, struct binding_store *store)
{
    sessile_purge_options options;
    sessile_listed *rows = NULL;
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_purge_options_init(&options);
    options.agent = binding_field_bytes(L, 2, "agent");
    options.retention_ms =
        binding_field_integer(L, 2, "retention_ms", options.retention_ms);
    options.dry_run = binding_field_boolean(L, 2, "dry_run");
    struct binding_result got = binding_result(L);
    got.status = sessile_purge(store->handle, &options, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &binding_listed_row, rows);
}

/* session:life() -> {status, ttl, expires, deleted}, times in ms, nil for none */
int binding_session_life(lua_State *L, struct binding_session *session)
{
    sessile_life_info life;
    sessile_error err;
    if (sessile_session_life(session->handle, &life, &err))
        return binding_fail(L, &err);
    lua_createtable(L, 0, 4);
    binding_set_text(L, "status", sessile_life_name(life.life));
    binding_set_time(L, "ttl", life.ttl_ms);
    binding_set_time(L, "expires", life.expires_ms);
    binding_set_time(L, "deleted", life.deleted_ms);
    return 1;
}

/* session:set_ttl(ms) -> true */
int binding_session_set_ttl(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    return binding_done(
        L, sessile_set_ttl(session->handle, luaL_checkinteger(L, 2), &err), &err);
}

/* session:set_archived(boolean) -> true */
int binding_session_set_archived(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    return binding_done(
        L, sessile_set_archived(session->handle, lua_toboolean(L, 2), &err), &err);
}
