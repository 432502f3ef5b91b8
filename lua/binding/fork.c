/*
 * fork.c: sessions made from other sessions, and the links between sessions.
 *
 * Owns nothing: a fork is a session like any other, a child of its store.
 */
#include "binding.h"

/* session:fork(entry or nil, {id, agent, user, title, metadata, uuid, window, reserve,
 * keep_min, timeout_ms}) -> session; nil, message, code */
int binding_session_fork(lua_State *L, struct binding_session *session)
{
    sessile_id entry = binding_opt_id(L, 2);
    sessile_session_options options;
    sessile_error err;
    struct binding_session *made = binding_session_new(L, 3, &options);
    if (!made)
        return 3;
    return binding_session_made(
        L, made, session->store,
        sessile_fork(&made->handle, session->handle, entry, &options, &err), &err);
}

/* store:put(session, {id, agent, user, window, reserve, keep_min, timeout_ms}) ->
 * session; nil, message, code */
int binding_store_put(lua_State *L, struct binding_store *store)
{
    struct binding_session *session = binding_session_live(L, 2), *made;
    sessile_session_options options;
    sessile_error err;
    if (!session || !(made = binding_session_new(L, 3, &options)))
        return 3;
    return binding_session_made(
        L, made, store,
        sessile_put(&made->handle, store->handle, session->handle, &options, &err), &err);
}

/* session:child(with_context, {id, agent, user, title, metadata, uuid, window, reserve,
 * keep_min, timeout_ms}) -> session; nil, message, code */
int binding_session_child(lua_State *L, struct binding_session *session)
{
    int with_context = lua_toboolean(L, 2);
    sessile_session_options options;
    sessile_error err;
    struct binding_session *made = binding_session_new(L, 3, &options);
    if (!made)
        return 3;
    return binding_session_made(
        L, made, session->store,
        sessile_child(&made->handle, session->handle, with_context, &options, &err),
        &err);
}

/* session:merged(child, message) -> id; nil, message, code */
int binding_session_merged(lua_State *L, struct binding_session *session)
{
    struct binding_session *child = binding_session_live(L, 2);
    sessile_slice message;
    sessile_error err;
    sessile_id id;
    if (!child)
        return 3;
    luaL_checktype(L, 3, LUA_TTABLE);
    if (binding_json(L, 3, 1, "message", &message))
        return 3;
    return binding_done_id(
        L, sessile_child_merged(session->handle, child->handle, message, &id, &err), &id,
        &err);
}

/* session:discarded(child, reason) -> true; nil, message, code */
int binding_session_discarded(lua_State *L, struct binding_session *session)
{
    struct binding_session *child = binding_session_live(L, 2);
    sessile_slice reason;
    sessile_error err;
    if (!child)
        return 3;
    reason = binding_opt_bytes(L, 3);
    return binding_done(
        L, sessile_child_discarded(session->handle, child->handle, reason, &err), &err);
}

static const char *const child_states[] = {"open", "merged", "discarded", NULL};

#define SUBSESSION(...) BINDING_FIELD(sessile_subsession, __VA_ARGS__)
static const struct binding_row subsession_row =
    BINDING_ROW(sessile_subsession, NULL, SUBSESSION("id", STRING, id),
                SUBSESSION("agent", STRING, agent), SUBSESSION("user", STRING, user),
                SUBSESSION("entry", ID, entry), SUBSESSION("time", INTEGER, time_ms),
                SUBSESSION("merged", ID, merged),
                BINDING_ENUM(sessile_subsession, "state", state, child_states));

/* session:subsessions() -> {{id, agent, user, entry, time, state, merged}, …} */
BINDING_LIST(binding_session_subsessions, sessile_subsession, &subsession_row,
             sessile_subsessions)

#define LINK(...) BINDING_FIELD(sessile_link, __VA_ARGS__)
static const struct binding_row link_row = BINDING_ROW(
    sessile_link, NULL, LINK("id", STRING, id), LINK("agent", STRING, agent),
    LINK("user", STRING, user), LINK("entry", ID, entry), LINK("tag", CHARS, tag));

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
