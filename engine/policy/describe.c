/*
 * describe.c: what a policy's file declares: its table, or the table as JSON.
 *
 * Owns the one way to run a file in order to inspect it. Must never trust facts from
 * the worker more than the file itself: the reader checks the table as if the file had
 * made it.
 */
#include "policy/describe.h"

#include <lauxlib.h>
#include <string.h>

#include "base/error.h"
#include "policy/chunk.h"
#include "policy/lua_json.h"

#define FACTS_MAX ((size_t)1 << 20)

/* All fields of a policy's table, hooks included. */
static const char *const fields[] = {
    "name",     "version",   "about",    "options",        "chain", "fallback",
    "merge",    "summarize", "truncate", "should_compact", "flush", "compact",
    "remember", "tidy",      "recall",   "admit",          NULL};
/* Those of them that are lists of policies. */
static const char *const lists[] = {"chain", "fallback"};

void describe_run(lua_State *L, const char *source, size_t size, const char *file,
                  const sessile_policy *p, unsigned node)
{
    int top = lua_gettop(L);
    const char *wanted = vm_of(L)->wanted;

    chunk_open(L);
    chunk_compile(L, source, size, file);
    environment_push(L);
    chunk_set_require(L, p, node);
    lua_getfield(L, top + 2, "string");
    environment_use_strings(L, top + 3);
    lua_settop(L, top + 2);
    chunk_set_environment(L, top + 1);
    lua_call(L, 0, 1);
    if (wanted && wanted[0]) /* a pcall has swallowed it */
        luaL_error(L, "'%s' is not loaded yet", wanted);
    if (!lua_istable(L, top + 1))
        luaL_error(L, "a policy's file returns its table, this one a %s",
                   luaL_typename(L, top + 1));
}

int describe_line(lua_State *L, int function)
{
    lua_Debug ar;
    int line;
    if (lua_iscfunction(L, function)) {
        if (!lua_getupvalue(L, function, 1))
            return 0;
        line = (int)lua_tointeger(L, -1);
        lua_pop(L, 1);
        return line;
    }
    lua_pushvalue(L, function);
    lua_getinfo(L, ">S", &ar);
    return ar.linedefined;
}

/* ------------------------------------------------------------------ to facts */

typedef struct description {
    const char *file;
    sessile_slice source;
    const sessile_policy *policy;
    unsigned node;
} description;

/* Sets the functions of the table at 2, a list of {name, line}, as t.functions. */
static void set_functions(lua_State *L, int t)
{
    lua_Integer n = 0;
    lua_newtable(L);
    lua_json_mark_array(L, -1);
    for (lua_pushnil(L); lua_next(L, 2); lua_pop(L, 1)) {
        if (lua_type(L, -2) != LUA_TSTRING || !lua_isfunction(L, -1))
            continue;
        lua_createtable(L, 2, 0);
        lua_pushvalue(L, -3);
        lua_rawseti(L, -2, 1);
        lua_pushinteger(L, describe_line(L, -2));
        lua_rawseti(L, -2, 2);
        lua_rawseti(L, -4, ++n);
    }
    lua_setfield(L, t, "functions");
}

/* Replaces an element of a chain at the top, {"name", option = …}, by
 * {"policy":"name","options":{…}}: JSON has no list with names. */
static void split_element(lua_State *L)
{
    int element = lua_gettop(L);
    lua_newtable(L);
    lua_rawgeti(L, element, 1);
    lua_setfield(L, -2, "policy");
    lua_newtable(L);
    for (lua_pushnil(L); lua_next(L, element);) {
        if (lua_isinteger(L, -2) && lua_tointeger(L, -2) == 1) {
            lua_pop(L, 1);
            continue;
        }
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
    lua_setfield(L, -2, "options");
    lua_replace(L, element);
}

/* Replaces the elements of the chain at the top by forms that JSON has. */
static void split_chain(lua_State *L)
{
    int chain = lua_gettop(L);
    size_t n = lua_rawlen(L, chain), i;
    lua_newtable(L);
    lua_json_mark_array(L, -1);
    for (i = 1; i <= n && i <= CHAIN_STEPS + 1; i++) {
        if (lua_rawgeti(L, chain, (lua_Integer)i) == LUA_TTABLE)
            split_element(L);
        lua_rawseti(L, -2, (lua_Integer)i);
    }
    lua_replace(L, chain);
}

static int is_list(const char *field)
{
    return !strcmp(field, lists[0]) || !strcmp(field, lists[1]);
}

/* Leaves the facts as a string. */
static int describe(lua_State *L)
{
    const description *d = lua_touserdata(L, 1);
    size_t i;

    lua_settop(L, 1);
    describe_run(L, d->source.data, d->source.size, d->file, d->policy, d->node);
    lua_newtable(L);
    set_functions(L, 3);
    lua_newtable(L);
    for (i = 0; fields[i]; i++) {
        lua_pushstring(L, fields[i]);
        if (lua_rawget(L, 2) == LUA_TNIL || lua_isfunction(L, -1)) {
            lua_pop(L, 1);
            continue;
        }
        if (is_list(fields[i]) && lua_istable(L, -1))
            split_chain(L);
        if (!lua_json_text(L, -1, 0, FACTS_MAX))
            return luaL_error(L, "%s: %s", fields[i], lua_tostring(L, -1));
        lua_pop(L, 1);
        lua_setfield(L, 4, fields[i]);
    }
    lua_setfield(L, 3, "fields");
    if (!lua_json_text(L, 3, 0, FACTS_MAX))
        return luaL_error(L, "%s", lua_tostring(L, -1));
    return 1;
}

sessile_status describe_file(buf *facts, const char *file, sessile_slice source,
                             const sessile_policy *p, unsigned node, char *wanted,
                             sessile_error *err)
{
    description d = {file, source, p, node};
    sessile_status status;
    vm *v;

    wanted[0] = 0;
    status = vm_new(&v, &p->limits, p->os, &p->alloc, err);
    if (status)
        return status;
    vm_enter(v);
    v->wanted = wanted;
    if (vm_call(v, describe, &d, 1, file, err) == LUA_OK) {
        size_t size;
        const char *text = lua_tolstring(v->L, -1, &size);
        buf_put(facts, text, size);
        status = facts->failed ? fail_nomem(err) : SESSILE_OK;
    } else if (v->starved) {
        status = SESSILE_NOMEM;
    } else {
        status = wanted[0] && !v->spent ? SESSILE_OK : SESSILE_POLICY;
    }
    vm_leave(v);
    vm_free(v);
    return status;
}

/* ------------------------------------------------------------------ from facts */

static int nothing(lua_State *L)
{
    (void)L;
    return 0;
}

/* Reverses split_chain() for the chain at the top. */
static void join_chain(lua_State *L)
{
    int chain = lua_gettop(L);
    size_t n = lua_rawlen(L, chain), i;
    for (i = 1; i <= n; i++) {
        if (lua_rawgeti(L, chain, (lua_Integer)i) == LUA_TTABLE &&
            lua_getfield(L, -1, "options") == LUA_TTABLE) {
            lua_getfield(L, -2, "policy");
            lua_rawseti(L, -2, 1);
            lua_rawseti(L, chain, (lua_Integer)i);
        }
        lua_settop(L, chain);
    }
}

void describe_push(lua_State *L, const char *facts, size_t size)
{
    int top = lua_gettop(L);
    size_t i, n;

    chunk_open(L);
    lua_json_push(L, facts, size);
    if (!lua_istable(L, top + 1) || lua_getfield(L, top + 1, "fields") != LUA_TTABLE ||
        lua_getfield(L, top + 1, "functions") != LUA_TTABLE)
        luaL_error(L, "the policy's process sent what is no answer");
    n = lua_rawlen(L, top + 3);
    for (i = 1; i <= n; i++) {
        if (lua_rawgeti(L, top + 3, (lua_Integer)i) != LUA_TTABLE ||
            lua_rawgeti(L, top + 4, 1) != LUA_TSTRING ||
            lua_rawgeti(L, top + 4, 2) != LUA_TNUMBER)
            luaL_error(L, "the policy's process sent what is no answer");
        lua_pushcclosure(L, nothing, 1);
        lua_rawset(L, top + 2);
        lua_settop(L, top + 3);
    }
    lua_settop(L, top + 2);
    lua_remove(L, top + 1);
    for (i = 0; i < sizeof lists / sizeof *lists; i++) {
        if (lua_getfield(L, top + 1, lists[i]) == LUA_TTABLE)
            join_chain(L);
        lua_settop(L, top + 1);
    }
}
