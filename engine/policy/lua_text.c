/*
 * lua_text.c: hashes, base64, JSON texts and their parts, as Lua functions.
 *
 * Owns the table `span`. An importer uses it to cut pieces out of a recorded line, so
 * that 9007199254740993, 1.50 and "\u00e9" reach the log as they were written. Must
 * never print a value: a caller that needs a number gets its text. The whole text is
 * checked (json_check: RFC 8259 and UTF-8) before a part of it is returned.
 */
#include "policy/lua_text.h"

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>

#include "base/text.h"
#include "codec/json.h"
#include "policy/lua_json.h"

/* Levels of nesting: the default limit of the engine. */
#define DEPTH_MOST 128

/* ------------------------------------------------------------------------ bytes */

/* sha256(bytes) -> the hash in hex digits; its 32 bytes */
static int text_sha256(lua_State *L)
{
    unsigned char sum[32];
    char hex[2 * sizeof sum + 1];
    size_t size;
    const char *data = luaL_checklstring(L, 1, &size);
    sha256(sum, data, size);
    hex_encode(hex, sum, sizeof sum);
    lua_pushstring(L, hex);
    lua_pushlstring(L, (const char *)sum, sizeof sum);
    return 2;
}

/* base64(bytes) -> text, padded */
static int text_base64(lua_State *L)
{
    size_t size, room;
    const char *data = luaL_checklstring(L, 1, &size);
    luaL_Buffer out;
    luaL_argcheck(L, size < PTRDIFF_MAX / 2, 1, "too long");
    room = base64_size(size);
    base64_encode(luaL_buffinitsize(L, &out, room + 1), data, size);
    luaL_pushresultsize(&out, room);
    return 1;
}

/* base64_bytes(text) -> bytes; nil when the text is not canonical base64 */
static int text_base64_bytes(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    luaL_Buffer out;
    int64_t raw = base64_decode(luaL_buffinitsize(L, &out, size), text, size);
    luaL_pushresultsize(&out, raw < 0 ? 0 : (size_t)raw);
    if (raw < 0)
        lua_pushnil(L);
    return 1;
}

/* ------------------------------------------------------------------------ JSON */

/* 1 when the value at index is a JSON text of at most depth levels; *out is its value.
 * Else 0. */
static int read_deep(lua_State *L, int index, unsigned depth, json *out)
{
    size_t size;
    const char *text;
    sessile_status status;
    buf compact;

    if (lua_type(L, index) != LUA_TSTRING)
        return 0;
    text = lua_tolstring(L, index, &size);
    buf_init(&compact, &allocator_default);
    status = json_check(&compact, text, size, depth, NULL);
    buf_deinit(&compact);
    if (status == SESSILE_NOMEM)
        luaL_error(L, "not enough memory");
    if (status)
        return 0;
    *out = json_of(text, size); /* the value in the original text */
    return 1;
}

static int read_text(lua_State *L, int index, json *out)
{
    return read_deep(L, index, DEPTH_MOST, out);
}

/* 1 when argument 1 is a JSON text of that type. Else pushes nil. */
static int read_typed(lua_State *L, json_type type, json *out)
{
    if (read_text(L, 1, out) && out->type == type)
        return 1;
    lua_pushnil(L);
    return 0;
}

static void push_raw(lua_State *L, json value)
{
    lua_pushlstring(L, value.at, value.size);
}

/* decode(text[, names[, depth]]) -> its value; nil: it is no JSON text. names: a set: the
 * members of the outermost object that have one of them are values that are written as
 * they are. depth: levels of nesting that are taken; 128. */
static int text_decode(lua_State *L)
{
    json value;
    json_iter it;

    lua_settop(L, 3);
    if (!read_deep(L, 1, (unsigned)luaL_optinteger(L, 3, DEPTH_MOST), &value))
        return 0;
    if (value.type != JSON_OBJECT || !lua_istable(L, 2)) {
        lua_json_push(L, value.at, value.size);
        return 1;
    }
    lua_newtable(L);
    for (it = json_begin(value); json_next(&it);) {
        lua_json_push(L, it.key.at, it.key.size);
        lua_pushvalue(L, -1);
        if (lua_rawget(L, 2) != LUA_TNIL)
            lua_json_verbatim(L, it.value.at, it.value.size);
        else
            lua_json_push(L, it.value.at, it.value.size);
        lua_remove(L, -2);
        lua_rawset(L, 4);
    }
    return 1;
}

/* span.valid(text) -> whether it is one JSON value in UTF-8, and nothing else */
static int span_valid(lua_State *L)
{
    json value;
    lua_pushboolean(L, read_text(L, 1, &value));
    return 1;
}

/* span.kind(raw) -> "object", "array", "string", "number", "true", "false", "null",
 * from the first character alone; nil: no value begins with it */
static int span_kind(lua_State *L)
{
    static const char *const names[] = {
        [JSON_NULL] = "null",     [JSON_FALSE] = "false",   [JSON_TRUE] = "true",
        [JSON_NUMBER] = "number", [JSON_STRING] = "string", [JSON_ARRAY] = "array",
        [JSON_OBJECT] = "object",
    };
    const char *text = luaL_checkstring(L, 1);
    text += strspn(text, " \t\r\n");
    lua_pushstring(L, names[json_of(text, *text ? 1 : 0).type]);
    return 1;
}

/* span.object(text) -> a list of its members in order, each {key = decoded, raw_key =
 * as written, raw = the value as written}; a table of key to raw (the last one of
 * duplicate keys). nil: not an object. */
static int span_object(lua_State *L)
{
    json object;
    json_iter it;
    lua_Integer i = 0;

    if (!read_typed(L, JSON_OBJECT, &object))
        return 1;
    lua_settop(L, 1);
    lua_newtable(L);
    lua_newtable(L);
    for (it = json_begin(object); json_next(&it);) {
        lua_createtable(L, 0, 3);
        lua_json_push(L, it.key.at, it.key.size);
        push_raw(L, it.value);
        lua_pushvalue(L, -2);
        lua_pushvalue(L, -2);
        lua_rawset(L, 3);
        lua_setfield(L, 4, "raw");
        lua_setfield(L, 4, "key");
        push_raw(L, it.key);
        lua_setfield(L, 4, "raw_key");
        lua_rawseti(L, 2, ++i);
    }
    return 2;
}

/* span.array(text[, depth]) -> a list of its elements, each as written; nil: not an array
 */
static int span_array(lua_State *L)
{
    unsigned depth = (unsigned)luaL_optinteger(L, 2, DEPTH_MOST);
    json array;
    json_iter it;
    lua_Integer i = 0;

    if (!read_deep(L, 1, depth, &array) || array.type != JSON_ARRAY) {
        lua_pushnil(L);
        return 1;
    }
    lua_newtable(L);
    for (it = json_begin(array); json_next(&it);) {
        push_raw(L, it.value);
        lua_rawseti(L, -2, ++i);
    }
    return 1;
}

/* span.string(raw) -> the decoded JSON string; nil: raw is not exactly one string */
static int span_string(lua_State *L)
{
    json value;
    if (read_text(L, 1, &value) && value.type == JSON_STRING &&
        value.size == lua_rawlen(L, 1))
        lua_json_push(L, value.at, value.size);
    else
        lua_pushnil(L);
    return 1;
}

/* span.quote(text) -> the text as a JSON string. Invalid UTF-8 is not changed; DEL is
 * escaped too, for terminals. */
static int span_quote(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    luaL_Buffer out;

    luaL_buffinit(L, &out);
    luaL_addchar(&out, '"');
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        char code[8] = {'\\', (char)c, 0};
        if (c == '\n' || c == '\r' || c == '\t')
            code[1] = c == '\n' ? 'n' : c == '\r' ? 'r' : 't';
        else if (c < 0x20 || c == 0x7f)
            snprintf(code, sizeof code, "\\u%04x", c);
        else if (c != '"' && c != '\\') {
            luaL_addchar(&out, (char)c);
            continue;
        }
        luaL_addstring(&out, code);
    }
    luaL_addchar(&out, '"');
    luaL_pushresult(&out);
    return 1;
}

void lua_text_open(lua_State *L)
{
    static const luaL_Reg bytes[] = {
        {"sha256", text_sha256},
        {"base64", text_base64},
        {"base64_bytes", text_base64_bytes},
        {"decode", text_decode},
        {NULL, NULL},
    };
    static const luaL_Reg span[] = {
        {"valid", span_valid}, {"kind", span_kind},     {"object", span_object},
        {"array", span_array}, {"string", span_string}, {"quote", span_quote},
        {NULL, NULL},
    };
    luaL_setfuncs(L, bytes, 0);
    luaL_newlib(L, span);
    lua_pushinteger(L, DEPTH_MOST);
    lua_setfield(L, -2, "max_depth");
    lua_setfield(L, -2, "span");
}
