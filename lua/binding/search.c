/*
 * search.c: the search of a store. Each step reads a part of a log.
 */
#include "binding.h"

#include <string.h>

static const char *const kinds[] = {"end",   "nothing", "message", "title",
                                    "label", "unread",  NULL};

#define FOUND(...) BINDING_FIELD(sessile_found, __VA_ARGS__)
static const struct binding_field unread_fields[] =
    BINDING_FIELDS(FOUND("code", STATUS, status), FOUND("message", TEXT, message));

static const struct binding_field occurrence_fields[] = BINDING_FIELDS(
    FOUND("text", STRING, text), FOUND("first", INDEX, at),
    FOUND("cut_before", BOOLEAN, cut_before), FOUND("cut_after", BOOLEAN, cut_after),
    FOUND("time", INTEGER, time_ms));

static const struct binding_field message_fields[] =
    BINDING_FIELDS(FOUND("role", ROLE, role), FOUND("field", TEXT, field));

static void more_of_found(lua_State *L, const void *row)
{
    const sessile_found *found = row;
    if (found->kind == SESSILE_FOUND_UNREAD) {
        binding_set_fields(L, unread_fields, found);
    } else if (found->kind != SESSILE_FOUND_NOTHING) {
        binding_set_fields(L, occurrence_fields, found);
        binding_set_integer(L, "last", (int64_t)(found->at + found->size));
    }
    if (found->kind == SESSILE_FOUND_MESSAGE)
        binding_set_fields(L, message_fields, found);
}

static const struct binding_row found_row = BINDING_ROW(
    sessile_found, more_of_found, BINDING_ENUM(sessile_found, "kind", kind, kinds),
    FOUND("session", SLICE, id), FOUND("agent", SLICE, agent), FOUND("user", SLICE, user),
    FOUND("title", SLICE, title), FOUND("index", INDEX, index),
    FOUND("total", INTEGER, total), FOUND("done", INTEGER, done),
    FOUND("entries", INTEGER, entries), FOUND("entry", ID, entry));

/* search:step() -> {kind, session, agent, user, title, entry, role, field, text, first,
 * last, …}; nil at the end; nil, message, code */
static int search_step(lua_State *L, struct binding_child *search)
{
    sessile_found found;
    sessile_error err;
    if (sessile_search_next(search->handle, &found, &err))
        return binding_fail(L, &err);
    if (found.kind == SESSILE_FOUND_END)
        lua_pushnil(L);
    else
        binding_push_row(L, &found_row, &found);
    return 1;
}

BINDING_FREE(search_free, sessile_search_close)

const struct binding_child_class binding_search_class = {
    "sessile.core.Search", "search", search_free, {{"step", search_step}}};

/* Bits of the roles in the list at field "roles". */
static unsigned roles_of(lua_State *L, int table)
{
    unsigned bits = 0;
    if (binding_raw_field(L, table, "roles") == LUA_TTABLE) {
        for (lua_Integer i = 1; lua_rawgeti(L, -1, i) != LUA_TNIL; i++) {
            const char *name = lua_tostring(L, -1);
            sessile_role role = binding_role_of(name);
            if (role == SESSILE_ROLE_NONE)
                binding_misuse(L, "option 'roles': unknown role '%s'", name ? name : "?");
            bits |= 1u << role;
            lua_pop(L, 1);
        }
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
    return bits;
}

#define SEARCH(...) BINDING_FIELD(sessile_search_options, __VA_ARGS__)
static const struct binding_field search_fields[] = BINDING_FIELDS(
    SEARCH("text", SLICE, text), SEARCH("exact", BOOLEAN, exact),
    SEARCH("head_only", BOOLEAN, head_only), SEARCH("limit", COUNT, limit));

/* store:search({text, exact, roles, head_only, limit, sessions}) -> search; nil, message,
 * code. sessions: what store:list takes. */
int binding_store_search(lua_State *L, struct binding_store *store)
{
    sessile_search_options options;
    sessile_list_options which;
    sessile_search *handle;
    sessile_error err;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    sessile_search_options_init(&options);
    binding_get_fields(L, 2, search_fields, &options);
    options.roles = roles_of(L, 2);
    binding_raw_field(L, 2, "sessions");
    luaL_checktype(L, 3, LUA_TTABLE);
    binding_list_options(L, 3, &which);
    options.sessions = &which;
    struct binding_child *search = binding_child_new(L, &binding_search_class, store);
    if (sessile_search_open(&handle, store->handle, &options, &err))
        return binding_fail(L, &err);
    return binding_child_opened(search, handle);
}
