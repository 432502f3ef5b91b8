/*
 * encoding.c: an encoding: exact counts, ids, and texts of ids. It belongs to no store.
 */
#include "binding.h"

#include <string.h>

/* encoding:name() -> its name; nil, message, code */
static int encoding_name(lua_State *L, struct binding_child *encoding)
{
    lua_pushstring(L, sessile_encoding_name(encoding->handle));
    return 1;
}

/* encoding:count(text) -> tokens; nil, message, code */
static int encoding_count(lua_State *L, struct binding_child *encoding)
{
    sessile_slice text = binding_check_bytes(L, 2);
    sessile_error err;
    int64_t tokens;
    if (sessile_encoding_count(encoding->handle, text, &tokens, &err))
        return binding_fail(L, &err);
    lua_pushinteger(L, (lua_Integer)tokens);
    return 1;
}

/* encoding:encode(text) -> {ids}; nil, message, code */
static int encoding_encode(lua_State *L, struct binding_child *encoding)
{
    sessile_slice text = binding_check_bytes(L, 2);
    uint32_t *ids = NULL;
    size_t k;
    struct binding_result got = binding_result(L);
    got.status =
        sessile_encoding_encode(encoding->handle, text, &ids, &got.count, &got.err);
    int failed = binding_result_failed(L, &got, ids);
    if (failed)
        return failed;
    lua_createtable(L, got.count < INT32_MAX ? (int)got.count : 0, 0);
    for (k = 0; k < got.count; k++) {
        lua_pushinteger(L, (lua_Integer)ids[k]);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    return binding_result_done(&got);
}

/* encoding:decode({ids}) -> text; nil, message, code */
static int encoding_decode(lua_State *L, struct binding_child *encoding)
{
    uint32_t *ids;
    size_t count, k;
    char *text = NULL;

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
    got.status = sessile_encoding_decode(encoding->handle, ids, count, &text, &got.count,
                                         &got.err);
    return binding_result_text(L, &got, text);
}

BINDING_FREE(encoding_free, sessile_encoding_close)

const struct binding_child_class binding_encoding_class = {"sessile.core.Encoding",
                                                           "encoding",
                                                           encoding_free,
                                                           {{"name", encoding_name},
                                                            {"count", encoding_count},
                                                            {"encode", encoding_encode},
                                                            {"decode", encoding_decode}}};

/* encoding(name, {folders=, pattern=}) -> encoding; nil, message, code */
int binding_encoding(lua_State *L)
{
    const char *name = luaL_checkstring(L, 1);
    sessile_encoding_options options;
    struct binding_child *encoding;
    sessile_encoding *handle;
    sessile_status status;
    sessile_error err;

    sessile_encoding_options_init(&options);
    lua_settop(L, 2);
    options.folders = binding_field_string(L, 2, "folders");
    options.pattern = binding_field_string(L, 2, "pattern");
    encoding = binding_child_new(L, &binding_encoding_class, NULL);
    status = sessile_encoding_open(&handle, name, &options, &err);
    /* The usual places first, then where the library itself was installed. */
    if (status == SESSILE_NOTFOUND && options.folders) {
        options.folders = NULL;
        if (!sessile_encoding_open(&handle, name, &options, NULL))
            status = SESSILE_OK;
    }
    return status ? binding_fail(L, &err) : binding_child_opened(encoding, handle);
}
