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
    return binding_done_id(
        L, sessile_child_merged(session->handle, child->handle, message, &id, &err), &id,
        &err);
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

static void more_of_subsession(lua_State *L, const void *row)
{
    static const char *const states[] = {"open", "merged", "discarded"};
    const sessile_subsession *child = row;
    binding_set_text(L, "state", states[child->state]);
}

#define SUBSESSION(...) BINDING_FIELD(sessile_subsession, __VA_ARGS__)
static const struct binding_row subsession_row = {
    sizeof(sessile_subsession),
    more_of_subsession,
    {SUBSESSION("id", STRING, id), SUBSESSION("agent", STRING, agent),
     SUBSESSION("user", STRING, user), SUBSESSION("entry", ID, entry),
     SUBSESSION("time", INTEGER, time_ms), SUBSESSION("merged", ID, merged)}};

/* session:subsessions() -> {{id, agent, user, entry, time, state, merged}, …} */
int binding_session_subsessions(lua_State *L, struct binding_session *session)
{
    struct binding_result got = binding_result(L);
    sessile_subsession *rows = NULL;
    got.status = sessile_subsessions(session->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &subsession_row, rows);
}

static void more_of_link(lua_State *L, const void *row)
{
    binding_set_text(L, "tag", ((const sessile_link *)row)->tag);
}

#define LINK(...) BINDING_FIELD(sessile_link, __VA_ARGS__)
static const struct binding_row link_row = {
    sizeof(sessile_link),
    more_of_link,
    {LINK("id", STRING, id), LINK("agent", STRING, agent), LINK("user", STRING, user),
     LINK("entry", ID, entry)}};

void binding_push_links(lua_State *L, const sessile_session *session)
{
    sessile_link link;
    if (sessile_session_origin(session, &link)) {
        binding_push_row(L, &link_row, &link);
        lua_setfield(L, -2, "origin");
    }
    if (sessile_session_parent(session, &link)) {
        binding_push_row(L, &link_row, &link);
        lua_setfield(L, -2, "parent");
    }
}
