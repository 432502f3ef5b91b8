/*
 * encoding.c: an encoding as a userdata: exact counts, ids, and texts of ids.
 *
 * It is nobody's child: an encoding outlives stores.
 */
#include "binding.h"

#include <string.h>

struct binding_encoding {
    sessile_encoding *handle;
};

static int encoding_finalize(lua_State *L)
{
    struct binding_encoding *e = luaL_checkudata(L, 1, BINDING_ENCODING);
    sessile_encoding_close(e->handle);
    e->handle = NULL;
    return 0;
}

/* The handle, or NULL with the three values of a closed one. */
static const sessile_encoding *live(lua_State *L)
{
    struct binding_encoding *e = luaL_checkudata(L, 1, BINDING_ENCODING);
    if (!e->handle)
        binding_closed(L, "encoding");
    return e->handle;
}

/* encoding:name() -> its name; "closed" */
static int encoding_name(lua_State *L)
{
    struct binding_encoding *e = luaL_checkudata(L, 1, BINDING_ENCODING);
    lua_pushstring(L, e->handle ? sessile_encoding_name(e->handle) : "closed");
    return 1;
}

/* encoding:count(text) -> tokens; nil, message, code */
static int encoding_count(lua_State *L)
{
    const sessile_encoding *e = live(L);
    sessile_slice text;
    sessile_error err;
    int64_t tokens;

    if (!e)
        return 3;
    text.data = luaL_checklstring(L, 2, &text.size);
    if (sessile_encoding_count(e, text, &tokens, &err))
        return binding_fail(L, &err);
    lua_pushinteger(L, (lua_Integer)tokens);
    return 1;
}

/* encoding:encode(text) -> {ids}; nil, message, code */
static int encoding_encode(lua_State *L)
{
    const sessile_encoding *e = live(L);
    sessile_slice text;
    uint32_t *ids = NULL;
    size_t k;

    if (!e)
        return 3;
    text.data = luaL_checklstring(L, 2, &text.size);
    struct binding_result got = binding_result(L);
    got.status = sessile_encoding_encode(e, text, &ids, &got.count, &got.err);
    if (binding_result_failed(L, &got, ids))
        return 3;
    lua_createtable(L, got.count < INT32_MAX ? (int)got.count : 0, 0);
    for (k = 0; k < got.count; k++) {
        lua_pushinteger(L, (lua_Integer)ids[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    return binding_result_done(&got);
}

/* encoding:decode({ids}) -> text; nil, message, code */
static int encoding_decode(lua_State *L)
{
    const sessile_encoding *e = live(L);
    uint32_t *ids;
    size_t count, size, k;
    char *text = NULL;

    if (!e)
        return 3;
    luaL_checktype(L, 2, LUA_TTABLE);
    struct binding_result got = binding_result(L);
    count = (size_t)lua_rawlen(L, 2);
    ids = lua_newuserdatauv(L, (count ? count : 1) * sizeof *ids, 0);
    for (k = 0; k < count; k++) {
        int exact;
        lua_rawgeti(L, 2, (lua_Integer)k + 1);
        lua_Integer id = lua_tointegerx(L, -1, &exact);
        if (!exact || id < 0 || id > (lua_Integer)UINT32_MAX)
            return luaL_argerror(L, 2, "a list of ids, which are integers");
        ids[k] = (uint32_t)id;
        lua_pop(L, 1);
    }
    got.status = sessile_encoding_decode(e, ids, count, &text, &size, &got.err);
    if (binding_result_failed(L, &got, text))
        return 3;
    lua_pushlstring(L, text, size);
    return binding_result_done(&got);
}

static int encoding_text(lua_State *L)
{
    lua_pushliteral(L, BINDING_ENCODING);
    return 1;
}

/* encoding(name, {folders=, pattern=}) -> encoding; nil, message, code */
int binding_encoding(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    sessile_encoding_options options;
    struct binding_encoding *e;
    sessile_status status;
    sessile_error err;

    sessile_encoding_options_init(&options);
    lua_settop(L, 2);
    options.folders = binding_field_string(L, 2, "folders");
    options.pattern = binding_field_string(L, 2, "pattern");
    e = binding_new(L, sizeof *e, 0, BINDING_ENCODING);
    status = sessile_encoding_open(&e->handle, name, &options, &err);
    /* The usual places first, then where the library itself was installed. */
    if (status == SESSILE_NOTFOUND && options.folders) {
        options.folders = NULL;
        if (!sessile_encoding_open(&e->handle, name, &options, NULL))
            status = SESSILE_OK;
    }
    return status ? binding_fail(L, &err) : 1;
}

void binding_encoding_open(lua_State *L)
{
    static const luaL_Reg methods[] = {
        {"name", encoding_name},      {"count", encoding_count},
        {"encode", encoding_encode},  {"decode", encoding_decode},
        {"close", encoding_finalize}, {NULL, NULL},
    };
    binding_class(L, BINDING_ENCODING, methods, encoding_finalize, encoding_text);
}
