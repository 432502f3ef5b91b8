/*
 * require.c: one policy's file used by another, inside the VM.
 *
 * Owns the function `require` of environments. A required file runs in an environment of
 * its own, once for each step that requires it, so that two steps share no table. Must
 * never open a file, and never give a name another meaning than the chain has for it.
 */
#include "policy/require.h"

#include <stdlib.h>
#include <string.h>
#include <lauxlib.h>
#include "base/text.h"

/* What a fresh environment costs, in gas. */
#define ENVIRONMENT_CHARGE 500

enum { UP_CHAIN = 1, UP_NODE, UP_LOADED, UPS = UP_LOADED };

const chain_require *require_find(const sessile_policy *p, unsigned node,
                                  const char *name)
{
    size_t i;
    for (i = 0; i < p->require_count; i++) {
        if (p->requires[i].node == node && strcmp(p->requires[i].name, name) == 0)
        return &p->requires[i];
    }
    return NULL;
}

/* A name that means nothing: while a file is looked into, whoever looks finds it. */
static int want_required(lua_State *L, const char *name, size_t size)
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
    edge = strlen(name) == size ? require_find(p, node, name) : NULL;
    if (!edge)
        return want_required(L, name, size);
    lua_settop(L, 1);
    if (lua_rawgeti(L, lua_upvalueindex(UP_LOADED), (lua_Integer)edge->to + 1) ==
        LUA_TTABLE)
        return 1;
    vm_charge(L, ENVIRONMENT_CHARGE);
    chain_push_required(L, p, edge->to, lua_upvalueindex(UP_LOADED));
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        return luaL_error(L, "%s returned a %s, not the policy's table",
                          p->required[edge->to].file, luaL_typename(L, -1));
    lua_pushvalue(L, -1);
    lua_rawseti(L, lua_upvalueindex(UP_LOADED), (lua_Integer)edge->to + 1);
    return 1;
}

void require_set(lua_State *L, const sessile_policy *p, unsigned node, int loaded)
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

/* ------------------------------------------------------------------ the hash */

static int compare_names(const void *a, const void *b)
{
    const chain_require *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

sessile_status require_hash(const sessile_policy *p, unsigned node, sessile_slice source,
                            char out[65], sessile_error *err)
{
    const chain_require *edges[CHAIN_REQUIRES];
    unsigned char digest[32];
    size_t count = 0, i;
    buf text;

    hash256(digest, source.data, source.size, NULL, 0);
    hex_encode(out, digest, sizeof digest);
    for (i = 0; i < p->require_count; i++) {
        if (p->requires[i].node == node)
        edges[count++] = &p->requires[i];
    }
    if (count == 0)
        return SESSILE_OK;
    qsort(edges, count, sizeof *edges, compare_names);
    buf_init(&text, &p->alloc);
    buf_printf(&text, "requires\n%s\n", out);
    for (i = 0; i < count; i++)
        buf_printf(&text, "%s\n%s\n", edges[i]->name, p->required[edges[i]->to].hash);
    if (!text.failed) {
        hash256(digest, text.data, text.size, NULL, 0);
        hex_encode(out, digest, sizeof digest);
    }
    sessile_status status = text.failed ? fail_nomem(err) : SESSILE_OK;
    buf_deinit(&text);
    return status;
}
