/*
 * lua_config.c: reads a configuration file: checks it, runs it in a VM, returns its
 * table as JSON.
 *
 * Must never run a file that somebody else can have written, call a function in the
 * table, or mention the limits of policies in an error.
 */
#include "policy/lua_config.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <lauxlib.h>
#include "base/alloc.h"
#include "policy/chunk.h"
#include "policy/lua_json.h"
#include "policy/source.h"

#define GAS        1000000
#define TIME_MS    500
#define MEMORY     ((uint64_t)8 << 20)
#define VALUES_MAX 10000
#define DEPTH_MAX  16
#define JSON_MAX   ((size_t)2 << 20)

typedef struct reading {
    const source *c;
    lua_Integer values;
    char key[64]; /* of the value at the top of the table */
} reading;

/* ------------------------------------------------------------------ to data */

static int refuse(lua_State *L, const reading *r, const char *what)
{
    return luaL_error(L, "'%s' %s", r->key, what);
}

static void flatten(lua_State *L, reading *r, int depth);

/* Replaces the table at the top by the list of its keys and values. */
static void flatten_table(lua_State *L, reading *r, int depth)
{
    int from = lua_gettop(L);
    lua_Integer n = 0;
    if (depth >= DEPTH_MAX)
        refuse(L, r, "is nested too deep, or in a circle");
    luaL_checkstack(L, 8, NULL);
    lua_newtable(L);
    lua_json_mark_array(L, -1);
    for (lua_pushnil(L); lua_next(L, from);) {
        if (depth == 0)
            snprintf(r->key, sizeof r->key, "%s",
                     lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2)
                                                    : luaL_typename(L, -2));
        if (lua_type(L, -2) != LUA_TSTRING && !lua_isinteger(L, -2))
            refuse(L, r, "has a key that is neither a name nor a whole number");
        flatten(L, r, depth + 1);
        lua_pushvalue(L, -2);
        lua_rawseti(L, from + 1, ++n);
        lua_rawseti(L, from + 1, ++n);
    }
    lua_replace(L, from);
}

/* Replaces the value at the top by one that JSON has. */
static void flatten(lua_State *L, reading *r, int depth)
{
    lua_Debug ar;
    if (++r->values > VALUES_MAX)
        refuse(L, r, "holds too many values");
    switch (lua_type(L, -1)) {
    case LUA_TTABLE:
        flatten_table(L, r, depth);
        break;
    case LUA_TFUNCTION:
        lua_pushvalue(L, -1);
        lua_getinfo(L, ">S", &ar);
        lua_newtable(L);
        lua_pushinteger(L, ar.linedefined);
        lua_setfield(L, -2, "line");
        lua_replace(L, -2);
        break;
    case LUA_TNUMBER:
        if (!isfinite(lua_tonumber(L, -1)))
            refuse(L, r, "is no finite number");
        break;
    case LUA_TSTRING:
    case LUA_TBOOLEAN:
        break;
    default:
        refuse(L, r, "is no value of a configuration");
    }
}

/* Runs the file; leaves its table as JSON text. */
static int run_file(lua_State *L)
{
    reading *r = lua_touserdata(L, 1);
    const source *c = r->c;

    lua_settop(L, 0);
    chunk_open(L);
    chunk_compile(L, c->text.data + c->skip, c->text.size - c->skip, c->file);
    environment_push(L);
    lua_getfield(L, 2, "string");
    environment_use_strings(L, 3);
    lua_settop(L, 2);
    chunk_set_environment(L, 1);
    lua_call(L, 0, 1);
    if (!lua_istable(L, 1))
        luaL_error(L, "it returns %s, not its settings: end it with return { … }",
                   lua_isnil(L, 1) ? "nothing" : luaL_typename(L, 1));
    flatten_table(L, r, 0);
    if (!lua_json_text(L, 1, 0, JSON_MAX))
        lua_error(L);
    return 1;
}

/* ------------------------------------------------------------------ running */

/* Turns a failure of the VM into one of a configuration. */
static sessile_status failure(const vm *v, const source *c, sessile_error *err)
{
    if (v->starved)
        return SESSILE_NOMEM;
    if (v->spent)
        return fail(err, SESSILE_INVALID, "%s: %s: a configuration only says what is set",
                    v->where[0] ? v->where : c->file,
                    v->spent == VM_MEMORY ? "it wants more than 8 MiB of memory"
                    : v->spent == VM_TIME ? "it runs for more than half a second"
                                          : "it does not end within a million steps");
    if (err && err->code == SESSILE_POLICY)
        err->code = SESSILE_INVALID;
    return SESSILE_INVALID;
}

static sessile_status run(const source *c, lua_config *out, sessile_error *err)
{
    static const policy_limits limits = {
        .gas = GAS, .ms = TIME_MS, .memory = MEMORY, .result = JSON_MAX};
    reading r = {.c = c};
    sessile_status status;
    vm *v;

    status = vm_new(&v, &limits, os_current, &allocator_default, err);
    if (status)
        return status;
    vm_enter(v);
    if (vm_call(v, run_file, &r, 1, c->file, err) == LUA_OK) {
        const char *text = lua_tolstring(v->L, -1, &out->values_size);
        out->values = host_dup(&allocator_default, text, out->values_size);
        out->text_size = c->text.size - c->skip;
        out->text = host_dup(&allocator_default, c->text.data + c->skip, out->text_size);
        if (!out->values || !out->text)
            status = fail_nomem(err);
    } else {
        status = failure(v, c, err);
    }
    vm_leave(v);
    vm_free(v);
    return status;
}

/* ------------------------------------------------------------------ reading */

static sessile_status find_path(const char *path, lua_config *out, sessile_error *err)
{
    char *found = os_proc_real_path(path);
    if (!found)
        return fail_errno(err, errno, "finding the configuration %s", path);
    out->path = host_dup(&allocator_default, found, strlen(found));
    free(found);
    return out->path ? SESSILE_OK : fail_nomem(err);
}

sessile_status lua_config_read(const char *path, lua_config *out, sessile_error *err)
{
    source_place from = {os_current, &allocator_default, ""};
    sessile_status status;
    source c;

    memset(out, 0, sizeof *out);
    source_init(&c, &allocator_default);
    c.kind = "configuration";
    status = source_read_path(&c, &from, path, err);
    if (status == SESSILE_POLICY) /* no text */
        status = err ? (err->code = SESSILE_INVALID) : SESSILE_INVALID;
    if (!status && !c.own)
        status = fail(err, SESSILE_DENIED, "the configuration %s belongs to another user",
                      path);
    else if (!status && c.foreign)
        status =
            fail(err, SESSILE_DENIED,
                 "the configuration %s can be written by others: chmod go-w it", path);
    if (!status)
        status = run(&c, out, err);
    source_deinit(&c);
    if (!status)
        status = find_path(path, out, err);
    if (status) {
        host_free(out->values);
        host_free(out->text);
        memset(out, 0, sizeof *out);
    }
    return status;
}

int lua_config_stays_below(const char *folder, char *path)
{
    return os_stays_below(os_current, folder, path) == 0;
}
