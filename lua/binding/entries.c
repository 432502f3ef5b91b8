/*
 * entries.c: reading a session: lists of messages, contexts, single entries, and the
 * iterator over all of them.
 *
 * Every list is made of new tables, so what a caller does to them touches nothing that is
 * kept. The engine's list is owned by a guard while Lua tables are built from it.
 */
#include "binding.h"

#define MESSAGES(...) BINDING_FIELD(sessile_messages_options, __VA_ARGS__)
static const struct binding_field messages_fields[] = BINDING_FIELDS(
    MESSAGES("from", ID, from), MESSAGES("at", ID, at), MESSAGES("role", ROLE, role),
    MESSAGES("limit", COUNT, limit), MESSAGES("last", COUNT, last));

/* session:messages{from, limit, last, role, at} -> list; nil, message, code */
int binding_session_messages(lua_State *L, struct binding_session *session)
{
    sessile_messages_options options;
    sessile_message *list = NULL;
    sessile_messages_options_init(&options);
    binding_get_fields(L, 2, messages_fields, &options);
    struct binding_result got = binding_result(L);
    got.status = sessile_messages(session->handle, &options, &list, &got.count, &got.err);
    return binding_result_messages(L, &got, list);
}

#define CONTEXT(...) BINDING_FIELD(sessile_context_info, __VA_ARGS__)
static const struct binding_field context_fields[] = BINDING_FIELDS(
    CONTEXT("head", ID, head), CONTEXT("dropped", INTEGER, dropped),
    CONTEXT("orphans", INTEGER, orphans), CONTEXT("unanswered", INTEGER, unanswered),
    CONTEXT("lost", INTEGER, lost));

/* session:context([at]) -> list, {tokens, low, high, source, head, dropped, orphans,
 * unanswered, lost}; nil, message, code */
int binding_session_context(lua_State *L, struct binding_session *session)
{
    sessile_id at = binding_opt_id(L, 2);
    sessile_context_info info;
    sessile_message *list = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_context(session->handle, at, &list, &got.count, &info, &got.err);
    int failed = binding_result_failed(L, &got, list);
    if (failed)
        return failed;
    binding_push_messages(L, list, got.count);
    binding_push_tokens(L, &info.tokens);
    binding_set_fields(L, context_fields, &info);
    binding_guard_free(got.guard);
    return 2;
}

/* session:entry(id) -> table; nil, message, code */
int binding_session_entry(lua_State *L, struct binding_session *session)
{
    sessile_id id = binding_check_id(L, 2);
    char *json = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_entry(session->handle, id, &json, &got.count, &got.err);
    return binding_result_object(L, &got, "sessile.Entry", json);
}

/* ------------------------------------------------------------------ the iterator */

/* iterator() -> the next entry, nil at the end. A for loop has nowhere to put an error,
 * and a list that just ends would look whole: so this one raises. */
static int entries_next(lua_State *L)
{
    struct binding_child *entries = luaL_checkudata(L, 1, binding_entries_class.name);
    sessile_error err;
    const char *json;
    size_t size;
    sessile_id id;
    if (!entries->handle) {
        lua_pushnil(L);
        return 1;
    }
    if (entries->session->closed)
        return luaL_error(L, "the session was closed while its entries were read");
    if (sessile_entries_next(entries->handle, &id, &json, &size, &err))
        return luaL_error(L, "E%s: %s", sessile_status_name(err.code), err.message);
    if (size == 0) {
        binding_child_close(entries);
        lua_pushnil(L);
        return 1;
    }
    binding_push_object(L, "sessile.Entry", json, size);
    return 1;
}

BINDING_FREE(entries_free, sessile_entries_close)

const struct binding_child_class binding_entries_class = {
    .name = "sessile.core.Entries", .noun = "iterator", .free = entries_free};

#define ENTRIES(...) BINDING_FIELD(sessile_entries_options, __VA_ARGS__)
static const struct binding_field entries_fields[] =
    BINDING_FIELDS(ENTRIES("after", ID, after), ENTRIES("before", ID, before),
                   ENTRIES("limit", COUNT, limit), ENTRIES("reverse", BOOLEAN, reverse));

/* session:entries{types, after, before, limit, reverse} -> iterator: a userdata that is
 * called; nil, message, code */
int binding_session_entries(lua_State *L, struct binding_session *session)
{
    sessile_entries_options options;
    sessile_entries *handle;
    sessile_error err;
    sessile_entries_options_init(&options);
    binding_get_fields(L, 2, entries_fields, &options);
    options.types = binding_field_texts(L, 2, "types", 0, &options.type_count);
    struct binding_child *entries = binding_child_new(L, &binding_entries_class, NULL);
    entries->session = session;
    if (sessile_entries_open(&handle, session->handle, &options, &err))
        return binding_fail(L, &err);
    return binding_child_opened(entries, handle);
}

void binding_entries_open(lua_State *L)
{
    luaL_getmetatable(L, binding_entries_class.name);
    lua_pushcfunction(L, entries_next);
    lua_setfield(L, -2, "__call");
    lua_pop(L, 1);
}
