/*
 * annotate.c: labels, settings, metadata and suspensions of a session handle.
 *
 * Owns the shapes in which they are seen in Lua. Never decides what is in force: that is
 * the engine's.
 */
#include "binding.h"
#include "policy/lua_json.h"

/* ------------------------------------------------------------------ labels */

static int label(lua_State *L, struct binding_session *session,
                 sessile_status (*put)(sessile_session *, sessile_id, sessile_slice,
                                       sessile_error *))
{
    sessile_id entry = binding_check_id(L, 2);
    sessile_slice name = binding_check_bytes(L, 3);
    sessile_error err;
    return binding_done(L, put(session->handle, entry, name, &err), &err);
}

/* session:label(id, name) -> true; nil, message, code */
int binding_session_label(lua_State *L, struct binding_session *session)
{
    return label(L, session, sessile_label);
}

/* session:unlabel(id, name) -> true; nil, message, code */
int binding_session_unlabel(lua_State *L, struct binding_session *session)
{
    return label(L, session, sessile_unlabel);
}

#define LABEL(...) BINDING_FIELD(sessile_label_row, __VA_ARGS__)
static const struct binding_row label_row = BINDING_ROW(
    sessile_label_row, NULL, LABEL("id", ID, entry), LABEL("name", STRING, name),
    LABEL("time", INTEGER, time_ms), LABEL("fact", ID, fact));

/* session:labels() -> {{id, name, time, fact}, …} */
BINDING_LIST(binding_session_labels, sessile_label_row, &label_row, sessile_labels)

/* ------------------------------------------------------------------ members */

/* With a table: its members are stated -> true. Without: those in force -> a table. */
static int
members(lua_State *L, struct binding_session *session, const char *what,
        const char *class,
        sessile_status (*set)(sessile_session *, sessile_slice, sessile_error *),
        sessile_status (*get)(sessile_session *, char **, size_t *, sessile_error *))
{
    sessile_slice object;
    sessile_error err;
    char *text = NULL;
    if (!lua_isnoneornil(L, 2)) {
        if (binding_json(L, 2, 0, what, &object))
            return 3;
        return binding_done(L, set(session->handle, object, &err), &err);
    }
    struct binding_result got = binding_result(L);
    got.status = get(session->handle, &text, &got.count, &got.err);
    return binding_result_object(L, &got, class, text);
}

/* session:settings([object]) */
int binding_session_settings(lua_State *L, struct binding_session *session)
{
    return members(L, session, "settings", "sessile.Settings", sessile_set_settings,
                   sessile_settings);
}

/* session:metadata([object]) */
int binding_session_metadata(lua_State *L, struct binding_session *session)
{
    return members(L, session, "metadata", "sessile.Metadata", sessile_set_metadata,
                   sessile_metadata);
}

/* ------------------------------------------------------------------ suspensions */

/* session:suspend(reason or nil, state or nil) -> id; nil, message, code */
int binding_session_suspend(lua_State *L, struct binding_session *session)
{
    sessile_slice reason = binding_opt_bytes(L, 2), state = {NULL, 0};
    sessile_error err;
    sessile_id id;
    if (!lua_isnoneornil(L, 3) && binding_json(L, 3, 0, "state", &state))
        return 3;
    return binding_done_id(L, sessile_suspend(session->handle, reason, state, &id, &err),
                           &id, &err);
}

#define SUSPENSION(...) BINDING_FIELD(sessile_suspension, __VA_ARGS__)
static const struct binding_row suspension_row =
    BINDING_ROW(sessile_suspension, NULL, SUSPENSION("id", ID, entry),
                SUSPENSION("time", INTEGER, time_ms),
                SUSPENSION("reason", STRING, reason), SUSPENSION("state", JSON, state));

/* session:suspended() -> {id, time, reason, state}, or false: it is not suspended */
int binding_session_suspended(lua_State *L, struct binding_session *session)
{
    sessile_suspension *suspension = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_suspended(session->handle, &suspension, &got.err);
    return binding_result_row(L, &got, &suspension_row, suspension);
}

/* session:resume_with({message, …}) -> id of the first, or true: none was given */
int binding_session_resume_with(lua_State *L, struct binding_session *session)
{
    sessile_slice *messages;
    sessile_error err;
    sessile_id first;
    size_t count;
    luaL_checktype(L, 2, LUA_TTABLE);
    if (binding_json_list(L, 2, 1, &messages, &count))
        return 3;
    if (sessile_resume_with(session->handle, messages, count, &first, &err))
        return binding_fail(L, &err);
    if (count)
        binding_push_id(L, first);
    else
        lua_pushboolean(L, 1);
    return 1;
}

/* session:cancel([reason]) -> true; nil, message, code */
int binding_session_cancel(lua_State *L, struct binding_session *session)
{
    sessile_slice reason = binding_opt_bytes(L, 2);
    sessile_error err;
    return binding_done(L, sessile_cancel(session->handle, reason, &err), &err);
}
