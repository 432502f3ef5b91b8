/*
 * fork.c: sessions made of other sessions, and what a session says of others.
 *
 * Owns nothing: a fork is a session like any other, a child of its store.
 */
#include "binding.h"

/* session:fork(entry or nil, {id, agent, user, title, metadata, uuid, window, reserve,
 * timeout_ms}) -> session; nil, message, code */
int binding_session_fork(lua_State *L, struct binding_session *session)
{
    struct binding_session *made;
    sessile_session_options options;
    sessile_error err;
    sessile_id entry;
    int failed;
    lua_settop(L, 3);
    entry = lua_isnil(L, 2) ? SESSILE_NO_ID : binding_check_id(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    failed = binding_session_options(L, 3, &options);
    if (failed)
        return failed;
    lua_getiuservalue(L, 1, 1); /* the store */
    made = binding_session_new(L, lua_gettop(L));
    if (sessile_fork(&made->handle, session->handle, entry, &options, &err))
        return binding_fail(L, &err);
    binding_session_opened(made, session->store);
    return 1;
}

/* store:put(session, {id, agent, user, window, reserve, timeout_ms}) -> session; nil,
 * message, code */
int binding_store_put(lua_State *L, struct binding_store *store)
{
    struct binding_session *session, *made;
    sessile_session_options options;
    sessile_error err;
    int failed;
    session = binding_session_live(L, 2);
    if (!session)
        return 3;
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    failed = binding_session_options(L, 3, &options);
    if (failed)
        return failed;
    made = binding_session_new(L, 1);
    if (sessile_put(&made->handle, store->handle, session->handle, &options, &err))
        return binding_fail(L, &err);
    binding_session_opened(made, store);
    return 1;
}

/* session:child(with_context, {id, agent, user, title, metadata, uuid, window, reserve,
 * timeout_ms}) -> session; nil, message, code */
int binding_session_child(lua_State *L, struct binding_session *session)
{
    struct binding_session *made;
    sessile_session_options options;
    sessile_error err;
    int failed;
    lua_settop(L, 3);
    luaL_checktype(L, 3, LUA_TTABLE);
    failed = binding_session_options(L, 3, &options);
    if (failed)
        return failed;
    lua_getiuservalue(L, 1, 1); /* the store */
    made = binding_session_new(L, lua_gettop(L));
    if (sessile_child(&made->handle, session->handle, lua_toboolean(L, 2), &options,
                      &err))
        return binding_fail(L, &err);
    binding_session_opened(made, session->store);
    return 1;
}

/* session:merged(child, message) -> id; nil, message, code */
int binding_session_merged(lua_State *L, struct binding_session *session)
{
    struct binding_session *child;
    sessile_slice message;
    sessile_error err;
    sessile_id id;
    int failed;
    child = binding_session_live(L, 2);
    if (!child)
        return 3;
    luaL_checktype(L, 3, LUA_TTABLE);
    failed = binding_json(L, 3, 1, "message", &message);
    if (failed)
        return failed;
    if (sessile_child_merged(session->handle, child->handle, message, &id, &err))
        return binding_fail(L, &err);
    binding_push_id(L, id);
    return 1;
}

/* session:discarded(child, reason) -> true; nil, message, code */
int binding_session_discarded(lua_State *L, struct binding_session *session)
{
    struct binding_session *child;
    sessile_slice reason = {NULL, 0};
    sessile_error err;
    child = binding_session_live(L, 2);
    if (!child)
        return 3;
    reason.data = luaL_optlstring(L, 3, "", &reason.size);
    return binding_done(
        L, sessile_child_discarded(session->handle, child->handle, reason, &err), &err);
}

/* session:subsessions() -> {{id, agent, user, entry, time, state, merged}, …} */
int binding_session_subsessions(lua_State *L, struct binding_session *session)
{
    static const char *const states[] = {"open", "merged", "discarded"};
    struct binding_guard *guard;
    sessile_subsession *rows = NULL;
    sessile_status status;
    sessile_error err;
    size_t count = 0, i;
    guard = binding_guard(L);
    status = sessile_subsessions(session->handle, &rows, &count, &err);
    guard->block = rows;
    if (status)
        return binding_fail(L, &err);
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    for (i = 0; i < count; i++) {
        lua_createtable(L, 0, 7);
        binding_push_slice(L, rows[i].id);
        lua_setfield(L, -2, "id");
        binding_push_slice(L, rows[i].agent);
        lua_setfield(L, -2, "agent");
        binding_push_slice(L, rows[i].user);
        lua_setfield(L, -2, "user");
        binding_set_id(L, "entry", rows[i].entry);
        binding_set_integer(L, "time", (int64_t)rows[i].time_ms);
        lua_pushstring(L, states[rows[i].state]);
        lua_setfield(L, -2, "state");
        if (rows[i].merged != SESSILE_NO_ID)
            binding_set_id(L, "merged", rows[i].merged);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    binding_guard_free(guard);
    return 1;
}

static void set_link(lua_State *L, const char *name, const sessile_link *link)
{
    lua_createtable(L, 0, 5);
    binding_push_slice(L, link->id);
    lua_setfield(L, -2, "id");
    binding_push_slice(L, link->agent);
    lua_setfield(L, -2, "agent");
    binding_push_slice(L, link->user);
    lua_setfield(L, -2, "user");
    binding_set_id(L, "entry", link->entry);
    if (link->tag[0]) {
        lua_pushstring(L, link->tag);
        lua_setfield(L, -2, "tag");
    }
    lua_setfield(L, -2, name);
}

void binding_push_links(lua_State *L, const sessile_session *session)
{
    sessile_link link;
    if (sessile_session_origin(session, &link))
        set_link(L, "origin", &link);
    if (sessile_session_parent(session, &link))
        set_link(L, "parent", &link);
}
