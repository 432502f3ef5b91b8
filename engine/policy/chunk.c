/*
 * chunk.c: the compiled sources of a chain, their environments, and `require`.
 *
 * Owns the function `require`. A required file runs in an environment of its own, once
 * for each step that requires it, so that two steps share no table. Must never open a
 * file, and never resolve a name otherwise than the chain does.
 */
#include "policy/chunk.h"

#include <string.h>
#include <lauxlib.h>

/* Gas for a fresh environment. */
#define ENVIRONMENT_CHARGE 500

/* Registry keys: the list of compiled chunks, and the function that makes variables. */
static const char chunks_key, maker_key;

enum { UP_CHAIN = 1, UP_NODE, UP_LOADED, UPS = UP_LOADED };

/* ------------------------------------------------------------------ compiling */

void chunk_open(lua_State *L)
{
    static const char maker[] = "local e = ... return function() return e end";
    if (luaL_loadbufferx(L, maker, sizeof maker - 1, "=maker", "t") != LUA_OK)
        lua_error(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &maker_key);
}

void chunk_compile(lua_State *L, const char *source, size_t size, const char *file)
{
    const char *name = lua_pushfstring(L, "@%s", file);
    int status = luaL_loadbufferx(L, source, size, name, "t");
    lua_remove(L, -2);
    if (status == LUA_ERRMEM)
        vm_spend(L, VM_MEMORY);
    if (status != LUA_OK)
        lua_error(L);
}

void chunk_compile_chain(lua_State *L, const sessile_policy *p)
{
    size_t i;

    lua_createtable(L, (int)p->count, 0);
    for (i = 0; i < p->count; i++) {
        const chain_step *step = &p->steps[i];
        if (!step->source)
            continue;
        chunk_compile(L, step->source + step->skip, step->source_size - step->skip,
                      step->file);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    for (i = 0; i < p->required_count; i++) {
        const chain_required *r = &p->required[i];
        chunk_compile(L, r->source + r->skip, r->source_size - r->skip, r->file);
        lua_rawseti(L, -2, (lua_Integer)(CHAIN_STEPS + i) + 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &chunks_key);
}

/* Pushes a chunk compiled by chunk_compile_chain(), or nil. */
static int push_compiled(lua_State *L, size_t index)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &chunks_key) == LUA_TTABLE)
        lua_rawgeti(L, -1, (lua_Integer)index + 1);
    else
        lua_pushnil(L);
    lua_remove(L, -2);
    return lua_type(L, -1);
}

/* ------------------------------------------------------------------ environments */

/*
 * A compiled chunk is one function with one upvalue, its _ENV. Assigning to that upvalue
 * would change the environment of every closure that the chunk has ever made. So the
 * chunk gets a new upvalue, and old closures keep the old one.
 */
void chunk_set_environment(lua_State *L, int chunk)
{
    chunk = lua_absindex(L, chunk);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &maker_key);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    lua_upvaluejoin(L, chunk, 1, -1, 1);
    lua_pop(L, 1);
}

/* ------------------------------------------------------------------ require */

const chain_require *chunk_find_require(const sessile_policy *p, unsigned node,
                                        const char *name)
{
    size_t i;
    for (i = 0; i < p->require_count; i++)
        if (p->requires[i].node == node && strcmp(p->requires[i].name, name) == 0)
    return &p->requires[i];
    return NULL;
}

/* The name is not in the chain. While a file is being inspected, the name is reported to
 * the loader, which loads that file and runs this one again. */
static int report_missing(lua_State *L, const char *name, size_t size)
{
    vm *v = vm_of(L);

    if (strlen(name) != size || size == 0 || size >= CHAIN_NAME)
        return luaL_error(L, "require: a name is 1 to %d bytes of text", CHAIN_NAME - 1);
    if (!v->wanted)
        return luaL_error(L,
                          "'%s' was not required while the file was loaded: require it "
                          "at the top of the file",
                          name);
    if (!v->wanted[0])
        memcpy(v->wanted, name, size + 1);
    return luaL_error(L, "'%s' is not loaded yet", name);
}

/* Defined below: a required file can itself require files. */
static void set_require(lua_State *L, const sessile_policy *p, unsigned node, int loaded);

/* Pushes the chunk of a required file with a fresh environment of its own. loaded: the
 * index of the table of files that this environment shares with those it requires. */
static void push_required(lua_State *L, const sessile_policy *p, size_t index, int loaded)
{
    const chain_required *r = &p->required[index];
    luaL_checkstack(L, 10, NULL);
    if (push_compiled(L, CHAIN_STEPS + index) != LUA_TFUNCTION) {
        lua_pop(L, 1);
        chunk_compile(L, r->source + r->skip, r->source_size - r->skip, r->file);
    }
    environment_push(L);
    set_require(L, p, r->node, loaded);
    chunk_set_environment(L, -2);
}

static int require_call(lua_State *L)
{
    const sessile_policy *p = lua_touserdata(L, lua_upvalueindex(UP_CHAIN));
    unsigned node = (unsigned)lua_tointeger(L, lua_upvalueindex(UP_NODE));
    const chain_require *edge;
    const char *name;
    size_t size;

    if (lua_type(L, 1) != LUA_TSTRING)
        return luaL_error(L, "require: a policy's name expected, got %s",
                          luaL_typename(L, 1));
    name = lua_tolstring(L, 1, &size);
    vm_charge(L, CHAIN_REQUIRES + size);
    edge = strlen(name) == size ? chunk_find_require(p, node, name) : NULL;
    if (!edge)
        return report_missing(L, name, size);
    lua_settop(L, 1);
    if (lua_rawgeti(L, lua_upvalueindex(UP_LOADED), (lua_Integer)edge->to + 1) ==
        LUA_TTABLE)
        return 1;
    vm_charge(L, ENVIRONMENT_CHARGE);
    push_required(L, p, edge->to, lua_upvalueindex(UP_LOADED));
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s returned a %s, not the policy's table",
                          p->required[edge->to].file, luaL_typename(L, -1));
    lua_pushvalue(L, -1);
    lua_rawseti(L, lua_upvalueindex(UP_LOADED), (lua_Integer)edge->to + 1);
    return 1;
}

/* loaded: as above; 0: a new table. */
static void set_require(lua_State *L, const sessile_policy *p, unsigned node, int loaded)
{
    int environment = lua_gettop(L);

    luaL_checkstack(L, UPS + 1, NULL);
    lua_pushliteral(L, "require");
    lua_pushlightuserdata(L, (void *)p);
    lua_pushinteger(L, (lua_Integer)node);
    if (loaded)
        lua_pushvalue(L, loaded);
    else
        lua_newtable(L);
    lua_pushcclosure(L, require_call, UPS);
    lua_rawset(L, environment);
}

void chunk_set_require(lua_State *L, const sessile_policy *p, unsigned node)
{
    set_require(L, p, node, 0);
}

void chunk_push_step(lua_State *L, const sessile_policy *p, size_t step)
{
    push_compiled(L, step);
    environment_push(L);
    set_require(L, p, p->steps[step].node, 0);
    lua_pushvalue(L, -1);
    chunk_set_environment(L, -3);
}

void chunk_push_function(lua_State *L, const sessile_policy *p, size_t step,
                         const char *name)
{
    int chunk;

    chunk_push_step(L, p, step);
    chunk = lua_gettop(L) - 1;
    lua_pushliteral(L, "string");
    lua_rawget(L, -2);
    environment_use_strings(L, -1);
    lua_settop(L, chunk);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "the file returned a %s, not its table", luaL_typename(L, -1));
    lua_pushstring(L, name);
    if (lua_rawget(L, -2) != LUA_TFUNCTION)
        luaL_error(L, "%s is a %s, not a function", name, luaL_typename(L, -1));
}
