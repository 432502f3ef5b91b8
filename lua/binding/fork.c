/*
 * fork.c: sessions made of other sessions, and what a session says of others.
 *
 * Owns nothing: a fork is a session like any other, a child of its store.
 */
#include "binding.h"

/* session:fork(entry or nil, {id, agent, user, title, metadata, uuid, window, reserve,
 * timeout_ms}) -> session; nil, message, code */
int binding_session_fork(lua_State *L)
{
    struct binding_session *session = binding_session_live(L, 1);
    struct binding_session *made;
    sessile_session_options options;
    sessile_error err;
    sessile_id entry;
    int failed;
    if (!session) {
        return 3;
    }
    lua_settop(L, 3);
    entry = lua_isnil(L, 2) ? SESSILE_NO_ID : binding_check_id(L, 2);
    luaL_checktype(L, 3, LUA_TTABLE);
    failed = binding_session_options(L, 3, &options);
    if (failed) {
        return failed;
    }
    lua_getiuservalue(L, 1, 1); /* the store */
    made = binding_session_new(L, lua_gettop(L));
    if (sessile_fork(&made->handle, session->handle, entry, &options, &err) !=
        SESSILE_OK) {
        return binding_fail(L, &err);
    }
    binding_session_opened(made, session->store);
    return 1;
}

/* store:put(session, {id, agent, user, window, reserve, timeout_ms}) -> session; nil,
 * message, code */
int binding_store_put(lua_State *L)
{
    struct binding_store *store = binding_store_live(L, 1);
    struct binding_session *session, *made;
    sessile_session_options options;
    sessile_error err;
    int failed;
    if (!store) {
        return 3;
    }
    session = binding_session_live(L, 2);
    if (!session) {
        return 3;
    }
    luaL_checktype(L, 3, LUA_TTABLE);
    lua_settop(L, 3);
    failed = binding_session_options(L, 3, &options);
    if (failed) {
        return failed;
    }
    made = binding_session_new(L, 1);
    if (sessile_put(&made->handle, store->handle, session->handle, &options, &err) !=
        SESSILE_OK) {
        return binding_fail(L, &err);
    }
    binding_session_opened(made, store);
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
    binding_push_id(L, link->entry);
    lua_setfield(L, -2, "entry");
    if (link->tag[0]) {
        lua_pushstring(L, link->tag);
        lua_setfield(L, -2, "tag");
    }
    lua_setfield(L, -2, name);
}

void binding_push_links(lua_State *L, const sessile_session *session)
{
    sessile_link link;
    if (sessile_session_origin(session, &link)) {
        set_link(L, "origin", &link);
    }
}
