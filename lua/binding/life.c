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
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 5);
    if (binding_session_options(L, 2, &which))
        return 3;
    options.soft = lua_toboolean(L, 3);
    options.reason = binding_opt_bytes(L, 4);
    options.actor = binding_opt_bytes(L, 5);
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
    sessile_slice actor = binding_opt_bytes(L, 3);
    sessile_error err;
    luaL_checktype(L, 2, LUA_TTABLE);
    if (binding_session_options(L, 2, &which))
        return 3;
    return binding_done(L, sessile_undelete(store->handle, &which, actor, &err), &err);
}

#define PURGE(...) BINDING_FIELD(sessile_purge_options, __VA_ARGS__)
static const struct binding_field purge_fields[] = BINDING_FIELDS(
    PURGE("agent", SLICE, agent), PURGE("retention_ms", INTEGER, retention_ms),
    PURGE("dry_run", BOOLEAN, dry_run), PURGE("user", SLICE, user));

/* store:purge({agent, user, retention_ms, dry_run}) -> rows, as list has them */
int binding_store_purge(lua_State *L, struct binding_store *store)
{
    sessile_purge_options options;
    sessile_listed *rows = NULL;
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_purge_options_init(&options);
    binding_get_fields(L, 2, purge_fields, &options);
    struct binding_result got = binding_result(L);
    got.status = sessile_purge(store->handle, &options, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &binding_listed_row, rows);
}

/* store:purge_forgotten(agent, dry_run) -> {sessions, bytes} */
int binding_store_purge_forgotten(lua_State *L, struct binding_store *store)
{
    sessile_slice agent = binding_opt_bytes(L, 2);
    uint64_t count, bytes;
    sessile_error err;
    if (sessile_purge_forgotten(store->handle, agent, lua_toboolean(L, 3), &count, &bytes,
                                &err))
        return binding_fail(L, &err);
    lua_createtable(L, 0, 2);
    binding_set_integer(L, "sessions", (int64_t)count);
    binding_set_integer(L, "bytes", (int64_t)bytes);
    return 1;
}

static void more_of_deletion(lua_State *L, const void *row)
{
    const sessile_deletion *gone = row;
    if (gone->id_hash[0])
        binding_set_text(L, "id_hash", gone->id_hash);
}

#define DELETION(...) BINDING_FIELD(sessile_deletion, __VA_ARGS__)
static const struct binding_row deletion_row =
    BINDING_ROW(sessile_deletion, more_of_deletion, DELETION("time", TIME, time_ms),
                DELETION("bytes", INTEGER, bytes), DELETION("id", SLICE, id),
                DELETION("agent", SLICE, agent), DELETION("reason", SLICE, reason),
                DELETION("actor", SLICE, actor));

/* store:deletions() -> {{time, bytes, id_hash, id, agent, reason, actor}, …} */
int binding_store_deletions(lua_State *L, struct binding_store *store)
{
    sessile_deletion *rows = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_deletions(store->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &deletion_row, rows);
}

static void more_of_node(lua_State *L, const void *row)
{
    const sessile_store_node *node = row;
    lua_pushboolean(L, node->left_ms > 0);
    lua_setfield(L, -2, "living");
}

#define NODE(...) BINDING_FIELD(sessile_store_node, __VA_ARGS__)
static const struct binding_row node_row =
    BINDING_ROW(sessile_store_node, more_of_node, NODE("name", TEXT, name),
                NODE("address", TEXT, address), NODE("version", TEXT, version),
                NODE("started", TIME, started_ms), NODE("left", INTEGER, left_ms),
                NODE("sessions", INTEGER, sessions), NODE("calls", INTEGER, calls));

/* store:nodes() -> {{name, address, version, started, left, living, sessions, calls}, …}
 */
int binding_store_nodes(lua_State *L, struct binding_store *store)
{
    sessile_store_node *rows = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_nodes(store->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &node_row, rows);
}

/* store:standbys() -> how many; false: this role may not see them; nil, message, code */
int binding_store_standbys(lua_State *L, struct binding_store *store)
{
    sessile_error err;
    int standbys;
    if (sessile_standbys(store->handle, &standbys, &err))
        return binding_fail(L, &err);
    if (standbys < 0)
        lua_pushboolean(L, 0);
    else
        lua_pushinteger(L, standbys);
    return 1;
}

static void more_of_life(lua_State *L, const void *row)
{
    binding_set_text(L, "status",
                     sessile_life_name(((const sessile_life_info *)row)->life));
}

#define LIFE(...) BINDING_FIELD(sessile_life_info, __VA_ARGS__)
static const struct binding_row life_row =
    BINDING_ROW(sessile_life_info, more_of_life, LIFE("ttl", TIME, ttl_ms),
                LIFE("expires", TIME, expires_ms), LIFE("deleted", TIME, deleted_ms));

/* session:life() -> {status, ttl, expires, deleted}, times in ms, nil for none */
int binding_session_life(lua_State *L, struct binding_session *session)
{
    sessile_life_info life;
    sessile_error err;
    return binding_done_row(L, sessile_session_life(session->handle, &life, &err),
                            &life_row, &life, &err);
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
