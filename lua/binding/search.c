/*
 * search.c: a search of a store as a userdata that is asked for one step after the other.
 *
 * It counts as a child of its store, which lives on until the search is gone.
 */
#include "binding.h"

#include <string.h>

struct binding_search {
    sessile_search *handle;
    struct binding_store *store;
};

static int search_finalize(lua_State *L)
{
    struct binding_search *search = luaL_checkudata(L, 1, BINDING_SEARCH);
    if (search->handle) {
        sessile_search_close(search->handle);
        search->handle = NULL;
        binding_store_release(search->store);
    }
    return 0;
}

static int search_text(lua_State *L)
{
    lua_pushliteral(L, BINDING_SEARCH);
    return 1;
}

static void push_occurrence(lua_State *L, const sessile_found *f)
{
    binding_push_slice(L, f->text);
    lua_setfield(L, -2, "text");
    binding_set_integer(L, "first", f->at + 1);
    binding_set_integer(L, "last", f->at + f->size);
    binding_set_boolean(L, "cut_before", f->cut_before);
    binding_set_boolean(L, "cut_after", f->cut_after);
    binding_set_integer(L, "time", f->time_ms);
}

/* search:step() -> {kind, session, agent, user, title, entry, role, field, text, first,
 * last, …}; nil at the end; nil, message, code */
static int search_step(lua_State *L)
{
    static const char *const kinds[] = {"end",   "nothing", "message",
                                        "title", "label",   "unread"};
    struct binding_search *search = luaL_checkudata(L, 1, BINDING_SEARCH);
    sessile_found f;
    sessile_error err;
    if (!search->handle)
        return binding_closed(L, "search");
    if (sessile_search_next(search->handle, &f, &err))
        return binding_fail(L, &err);
    if (f.kind == SESSILE_FOUND_END) {
        lua_pushnil(L);
        return 1;
    }
    lua_createtable(L, 0, 16);
    lua_pushstring(L, kinds[f.kind]);
    lua_setfield(L, -2, "kind");
    binding_set_slice(L, "session", f.id);
    binding_set_slice(L, "agent", f.agent);
    binding_set_slice(L, "user", f.user);
    binding_set_slice(L, "title", f.title);
    binding_set_integer(L, "index", f.index + 1);
    binding_set_integer(L, "total", f.total);
    binding_set_integer(L, "done", f.done);
    binding_set_integer(L, "entries", f.entries);
    if (f.kind == SESSILE_FOUND_UNREAD) {
        lua_pushfstring(L, "E%s", sessile_status_name(f.status));
        lua_setfield(L, -2, "code");
        lua_pushstring(L, f.message);
        lua_setfield(L, -2, "message");
    } else if (f.kind != SESSILE_FOUND_NOTHING) {
        push_occurrence(L, &f);
    }
    binding_set_id(L, "entry", f.entry);
    if (f.kind == SESSILE_FOUND_MESSAGE) {
        lua_pushstring(L, sessile_role_name(f.role));
        lua_setfield(L, -2, "role");
        lua_pushstring(L, f.field);
        lua_setfield(L, -2, "field");
    }
    return 1;
}

/* Bits of the roles in the list at field "roles". */
static unsigned roles_of(lua_State *L, int table)
{
    unsigned bits = 0;
    lua_Integer i, count;
    if (lua_getfield(L, table, "roles") == LUA_TTABLE) {
        count = (lua_Integer)lua_rawlen(L, -1);
        for (i = 1; i <= count; i++) {
            int role = SESSILE_SYSTEM;
            const char *name;
            lua_rawgeti(L, -1, i);
            name = lua_tostring(L, -1);
            while (name && role <= SESSILE_FUNCTION &&
                   strcmp(name, sessile_role_name((sessile_role)role)) != 0)
                role++;
            if (!name || role > SESSILE_FUNCTION)
                luaL_error(L, "option 'roles': unknown role '%s'", name ? name : "?");
            bits |= 1u << role;
            lua_pop(L, 1);
        }
    }
    lua_pop(L, 1);
    return bits;
}

/* store:search({text, exact, roles, head_only, limit, sessions}) -> search; nil, message,
 * code. sessions: what store:list takes. */
int binding_store_search(lua_State *L, struct binding_store *store)
{
    struct binding_search *search;
    sessile_search_options options;
    sessile_list_options which;
    sessile_error err;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    sessile_search_options_init(&options);
    options.text = binding_field_bytes(L, 2, "text");
    options.exact = binding_field_boolean(L, 2, "exact");
    options.head_only = binding_field_boolean(L, 2, "head_only");
    options.limit = binding_field_count(L, 2, "limit", UINT64_MAX);
    options.roles = roles_of(L, 2);
    lua_getfield(L, 2, "sessions");
    luaL_checktype(L, 3, LUA_TTABLE);
    binding_list_options(L, 3, &which);
    options.sessions = &which;
    search = binding_new(L, sizeof *search, 1, BINDING_SEARCH);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    if (sessile_search_open(&search->handle, store->handle, &options, &err))
        return binding_fail(L, &err);
    search->store = store;
    store->children++;
    return 1;
}

static const luaL_Reg methods[] = {
    {"step", search_step},
    {"close", search_finalize},
    {NULL, NULL},
};

void binding_search_open(lua_State *L)
{
    binding_class(L, BINDING_SEARCH, methods, search_finalize, search_text);
}
