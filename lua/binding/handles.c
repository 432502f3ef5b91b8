/*
 * handles.c: the classes of userdata, and the guard that owns a block of the engine.
 *
 * Most handles only iterate or hold something (binding_child): they share one finalizer,
 * one check that they are open and one way to count in their parents. Stores, sessions
 * and runs have files of their own.
 */
#include <string.h>
#include "binding.h"

/* ------------------------------------------------------------------ classes */

/* Calls the method in upvalue 1 with its handle, or says that the handle is closed. */
static int call_method(lua_State *L)
{
    const struct binding_method *method = lua_touserdata(L, lua_upvalueindex(1));
    if (method->session) {
        struct binding_session *session = binding_session_live(L, 1);
        return session ? method->session(L, session) : 3;
    }
    if (method->store) {
        struct binding_store *store = binding_store_live(L, 1);
        return store ? method->store(L, store) : 3;
    }
    struct binding_run *run = binding_run_live(L, 1);
    return run ? method->run(L, run) : 3;
}

void binding_class(lua_State *L, const char *name, const struct binding_method *methods,
                   lua_CFunction close, lua_CFunction finalize, lua_CFunction text)
{
    const luaL_Reg meta[] = {
        {"__gc", finalize}, {"__close", finalize}, {"__tostring", text}, {NULL, NULL}};
    luaL_newmetatable(L, name); /* sets __name */
    luaL_setfuncs(L, meta, 0);
    lua_newtable(L);
    lua_pushcfunction(L, close);
    lua_setfield(L, -2, "close");
    for (; methods->name; methods++) {
        lua_pushlightuserdata(L, (void *)methods);
        lua_pushcclosure(L, methods->plain ? methods->plain : call_method, 1);
        lua_setfield(L, -2, methods->name);
    }
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}

void *binding_new(lua_State *L, size_t size, int user_values, const char *name)
{
    void *p = lua_newuserdatauv(L, size, user_values);
    memset(p, 0, size);
    luaL_setmetatable(L, name);
    return p;
}

/* ------------------------------------------------------------------ guards */

static int guard_gc(lua_State *L)
{
    binding_guard_free(luaL_checkudata(L, 1, BINDING_GUARD));
    return 0;
}

struct binding_guard *binding_guard(lua_State *L)
{
    struct binding_guard *guard = lua_newuserdatauv(L, sizeof *guard, 0);
    guard->block = NULL;
    if (luaL_newmetatable(L, BINDING_GUARD)) {
        lua_pushcfunction(L, guard_gc);
        lua_setfield(L, -2, "__gc");
    }
    lua_setmetatable(L, -2);
    return guard;
}

void binding_guard_free(struct binding_guard *guard)
{
    sessile_free(guard->block);
    guard->block = NULL;
}

/* ------------------------------------------------------------------ children */

/* The first argument, of the class in upvalue 1. */
static struct binding_child *self(lua_State *L)
{
    const struct binding_child_class *class = lua_touserdata(L, lua_upvalueindex(1));
    return luaL_checkudata(L, 1, class->name);
}

struct binding_child *binding_child_new(lua_State *L,
                                        const struct binding_child_class *class,
                                        struct binding_store *store)
{
    struct binding_child *child = binding_new(L, sizeof *child, 2, class->name);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    child->class = class;
    child->stores[0] = store;
    return child;
}

int binding_child_opened(struct binding_child *child, void *handle)
{
    child->handle = handle;
    if (child->session)
        child->session->children++;
    for (int i = 0; i < 2; i++)
        if (child->stores[i])
            child->stores[i]->children++;
    return 1;
}

void binding_child_close(struct binding_child *child)
{
    void *handle = child->handle;
    if (!handle)
        return;
    child->handle = NULL;
    child->class->free(handle);
    if (child->session)
        binding_session_release(child->session, NULL);
    for (int i = 0; i < 2; i++)
        if (child->stores[i])
            binding_store_release(child->stores[i]);
}

static int child_finalize(lua_State *L)
{
    binding_child_close(self(L));
    return 0;
}

static int child_text(lua_State *L)
{
    struct binding_child *child = self(L);
    lua_pushfstring(L, "%s%s", child->class->name, child->handle ? "" : " (closed)");
    return 1;
}

/* Calls method number upvalue 2 with its handle, or says that the handle is closed. */
static int child_method(lua_State *L)
{
    struct binding_child *child = self(L);
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(2));
    if (!child->handle)
        return binding_closed(L, child->class->noun);
    return child->class->methods[i].call(L, child);
}

void binding_child_register(lua_State *L, const struct binding_child_class *class)
{
    static const luaL_Reg meta[] = {{"__gc", child_finalize},
                                    {"__close", child_finalize},
                                    {"__tostring", child_text},
                                    {NULL, NULL}};
    static const luaL_Reg methods[] = {{"close", child_finalize}, {NULL, NULL}};
    luaL_newmetatable(L, class->name);
    lua_pushlightuserdata(L, (void *)class);
    luaL_setfuncs(L, meta, 1);
    lua_newtable(L);
    lua_pushlightuserdata(L, (void *)class);
    luaL_setfuncs(L, methods, 1);
    for (int i = 0; class->methods[i].name; i++) {
        lua_pushlightuserdata(L, (void *)class);
        lua_pushinteger(L, i);
        lua_pushcclosure(L, child_method, 2);
        lua_setfield(L, -2, class->methods[i].name);
    }
    lua_setfield(L, -2, "__index");
    lua_pop(L, 1);
}
