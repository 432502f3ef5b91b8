/*
 * values.c: arguments in, results out: fields of option tables, JSON, ids, messages, and
 * the nil, message, code of an expected failure.
 *
 * Never keeps anything: what it pushes belongs to the Lua stack, what it reads is
 * anchored there. A wrong type is the caller's mistake and raises; a value the engine
 * could refuse is left to the engine, whose refusal is returned.
 */
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"

/* Text longer than this is beyond every limit the engine has; it refuses it by name. */
#define TEXT_MAX ((size_t)1 << 31)

/* ------------------------------------------------------------------ failures */

int binding_fail_with(lua_State *L, sessile_status status, const char *message)
{
    lua_pushnil(L);
    lua_pushstring(L, message);
    lua_pushfstring(L, "E%s", sessile_status_name(status));
    return 3;
}

int binding_fail(lua_State *L, const sessile_error *err)
{
    int count = binding_fail_with(L, err->code, err->message);
    if (err->retry_ms <= 0 && !err->rule[0])
        return count;
    if (err->retry_ms > 0)
        lua_pushinteger(L, (lua_Integer)err->retry_ms);
    else
        lua_pushnil(L);
    if (!err->rule[0])
        return count + 1;
    lua_pushstring(L, err->rule);
    return count + 2;
}

int binding_zero_byte(lua_State *L)
{
    return binding_fail_with(L, SESSILE_INVALID,
                             "the URL of the store has a zero byte in it: give a path "
                             "or a URL without one");
}

int binding_closed(lua_State *L, const char *what)
{
    lua_pushnil(L);
    lua_pushfstring(L, "the %s is closed: nothing was done", what);
    lua_pushliteral(L, "ECLOSED");
    return 3;
}

int binding_done(lua_State *L, sessile_status status, const sessile_error *err)
{
    if (status)
        return binding_fail(L, err);
    lua_pushboolean(L, 1);
    return 1;
}

int binding_done_id(lua_State *L, sessile_status status, const sessile_id *id,
                    const sessile_error *err)
{
    if (status)
        return binding_fail(L, err);
    binding_push_id(L, *id);
    return 1;
}

int binding_done_count(lua_State *L, sessile_status status, const uint64_t *count,
                       const sessile_error *err)
{
    if (status)
        return binding_fail(L, err);
    lua_pushinteger(L, (lua_Integer)*count);
    return 1;
}

int binding_done_row(lua_State *L, sessile_status status, const struct binding_row *type,
                     const void *row, const sessile_error *err)
{
    if (status)
        return binding_fail(L, err);
    binding_push_row(L, type, row);
    return 1;
}

static const char misuse_key = 0;

int binding_on_misuse(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TFUNCTION);
    lua_settop(L, 1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &misuse_key);
    return 0;
}

int binding_misuse(lua_State *L, const char *format, ...)
{
    va_list arguments;
    int known = lua_rawgetp(L, LUA_REGISTRYINDEX, &misuse_key) == LUA_TFUNCTION;
    va_start(arguments, format);
    lua_pushvfstring(L, format, arguments);
    va_end(arguments);
    if (known)
        lua_call(L, 1, 0);
    return lua_error(L);
}

/* ------------------------------------------------------------------ fields of options */

int binding_raw_field(lua_State *L, int table, const char *name)
{
    if (!lua_istable(L, table)) {
        lua_pushnil(L);
        return LUA_TNIL;
    }
    table = lua_absindex(L, table);
    lua_pushstring(L, name);
    return lua_rawget(L, table);
}

static void wrong_field(lua_State *L, const char *name, const char *wanted)
{
    binding_misuse(L, "option '%s': %s expected, got %s", name, wanted,
                   luaL_typename(L, -1));
}

sessile_slice binding_field_bytes(lua_State *L, int table, const char *name)
{
    sessile_slice slice = {NULL, 0};
    int type = binding_raw_field(L, table, name);
    if (type == LUA_TSTRING)
        slice.data = lua_tolstring(L, -1, &slice.size);
    else if (type != LUA_TNIL)
        wrong_field(L, name, "string");
    lua_pop(L, 1); /* the table keeps the string */
    return slice;
}

const char *binding_field_string(lua_State *L, int table, const char *name)
{
    sessile_slice slice = binding_field_bytes(L, table, name);
    if (slice.data && strlen(slice.data) != slice.size)
        binding_misuse(L, "option '%s': the string holds a zero byte", name);
    return slice.data;
}

lua_Integer binding_field_integer(lua_State *L, int table, const char *name,
                                  lua_Integer fallback)
{
    lua_Integer value = fallback;
    int type = binding_raw_field(L, table, name);
    if (type != LUA_TNIL) {
        int exact = 0;
        if (type == LUA_TNUMBER)
            value = lua_tointegerx(L, -1, &exact);
        if (!exact)
            wrong_field(L, name, "integer");
    }
    lua_pop(L, 1);
    return value;
}

uint64_t binding_field_count(lua_State *L, int table, const char *name, uint64_t most)
{
    lua_Integer value = binding_field_integer(L, table, name, 0);
    if (value < 0 || (uint64_t)value > most) {
        binding_misuse(
            L, value < 0 ? "option '%s' is negative" : "option '%s' is too large", name);
    }
    return (uint64_t)value;
}

int binding_timeout(lua_Integer ms)
{
    return ms < 0 ? -1 : ms > INT32_MAX ? INT32_MAX : (int)ms;
}

int binding_field_timeout(lua_State *L, int table, const char *name, int *out)
{
    int given = binding_raw_field(L, table, name) != LUA_TNIL;
    lua_pop(L, 1);
    *out = binding_timeout(given ? binding_field_integer(L, table, name, 0) : 0);
    return given;
}

int binding_field_boolean(lua_State *L, int table, const char *name)
{
    int value;
    binding_raw_field(L, table, name);
    value = lua_toboolean(L, -1);
    lua_pop(L, 1);
    return value;
}

/* A whole-entry id of 8 digits. */
static int parse_id(sessile_slice text, sessile_id *out)
{
    sessile_key key;
    if (sessile_key_parse(text, &key) || key.n != 0)
        return 0;
    *out = key.entry;
    return 1;
}

sessile_id binding_field_id(lua_State *L, int table, const char *name)
{
    sessile_id id = SESSILE_NO_ID;
    sessile_slice text = binding_field_bytes(L, table, name);
    if (text.data && !parse_id(text, &id)) {
        binding_misuse(L, "option '%s': an entry id of 8 hex digits expected, got '%s'",
                       name, text.data);
    }
    return id;
}

sessile_id binding_check_id(lua_State *L, int index)
{
    sessile_id id = SESSILE_NO_ID;
    luaL_argcheck(L, parse_id(binding_check_bytes(L, index), &id), index,
                  "an entry id of 8 hex digits expected");
    return id;
}

sessile_id binding_opt_id(lua_State *L, int index)
{
    return lua_isnoneornil(L, index) ? SESSILE_NO_ID : binding_check_id(L, index);
}

sessile_slice binding_check_bytes(lua_State *L, int index)
{
    sessile_slice text;
    text.data = luaL_checklstring(L, index, &text.size);
    return text;
}

sessile_slice binding_opt_bytes(lua_State *L, int index)
{
    sessile_slice text;
    text.data = luaL_optlstring(L, index, "", &text.size);
    return text;
}

sessile_role binding_role_of(const char *name)
{
    int role = SESSILE_FUNCTION;
    while (role != SESSILE_ROLE_NONE &&
           (!name || strcmp(name, sessile_role_name((sessile_role)role)) != 0))
        role--;
    return (sessile_role)role;
}

sessile_role binding_field_role(lua_State *L, int table, const char *name)
{
    const char *text = binding_field_string(L, table, name);
    sessile_role role = binding_role_of(text);
    if (text && role == SESSILE_ROLE_NONE)
        binding_misuse(L, "option '%s': unknown role '%s'", name, text);
    return role;
}

sessile_reason binding_field_reason(lua_State *L, int table, const char *name)
{
    const char *text = binding_field_string(L, table, name);
    int reason;
    if (!text)
        return SESSILE_REASON_MANUAL;
    for (reason = SESSILE_REASON_TURN; reason <= SESSILE_REASON_MANUAL; reason++)
        if (strcmp(text, sessile_reason_name((sessile_reason)reason)) == 0)
            return (sessile_reason)reason;
    binding_misuse(L, "option '%s': unknown reason '%s'", name, text);
    return SESSILE_REASON_MANUAL;
}

/* ------------------------------------------------------------------ JSON */

int binding_json(lua_State *L, int index, int message, const char *what,
                 sessile_slice *out)
{
    index = lua_absindex(L, index);
    if (lua_json_text(L, index, message, TEXT_MAX)) {
        out->data = lua_tolstring(L, -1, &out->size);
        return 0;
    }
    lua_pushnil(L);
    lua_pushfstring(L, "%s: %s", what, lua_tostring(L, -2));
    lua_pushliteral(L, "EINVALID");
    lua_remove(L, -4);
    return 3;
}

int binding_field_json(lua_State *L, int table, const char *name, sessile_slice *out)
{
    int pushed;
    out->data = NULL;
    out->size = 0;
    switch (binding_raw_field(L, table, name)) {
    case LUA_TNIL:
        return 0;
    case LUA_TTABLE:
        break;
    default:
        wrong_field(L, name, "table");
    }
    pushed = binding_json(L, -1, 0, name, out);
    lua_remove(L, -(pushed ? pushed : 1) - 1);
    return pushed;
}

int binding_json_list(lua_State *L, int index, int message, sessile_slice **out,
                      size_t *count)
{
    size_t n = (size_t)lua_rawlen(L, index);
    sessile_slice *list = lua_newuserdatauv(L, (n ? n : 1) * sizeof *list, 0);
    lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
    for (size_t i = 0; i < n; i++) {
        char what[40];
        snprintf(what, sizeof what, "message %zu", i + 1);
        lua_rawgeti(L, index, (lua_Integer)(i + 1));
        int failed = binding_json(L, -1, message, what, &list[i]);
        if (failed)
            return failed;
        lua_rawseti(L, -3, (lua_Integer)(i + 1));
        lua_pop(L, 1);
    }
    *out = list;
    *count = n;
    return 0;
}

/* ------------------------------------------------------------------ results */

void binding_push_key(lua_State *L, sessile_key key)
{
    char text[SESSILE_KEY_SIZE];
    if (key.entry == SESSILE_NO_ID) {
        lua_pushnil(L);
        return;
    }
    sessile_key_print(key, text);
    lua_pushstring(L, text);
}

void binding_push_id(lua_State *L, sessile_id id)
{
    sessile_key key;
    key.entry = id;
    key.n = 0;
    binding_push_key(L, key);
}

void binding_push_slice(lua_State *L, sessile_slice slice)
{
    lua_pushlstring(L, slice.data ? slice.data : "", slice.size);
}

/* ------------------------------------------------------------------ fields to set */

void binding_set_integer(lua_State *L, const char *name, int64_t value)
{
    lua_pushinteger(L, (lua_Integer)value);
    lua_setfield(L, -2, name);
}

void binding_set_time(lua_State *L, const char *name, int64_t ms)
{
    if (ms) {
        lua_pushinteger(L, (lua_Integer)ms);
        lua_setfield(L, -2, name);
    }
}

void binding_set_boolean(lua_State *L, const char *name, int value)
{
    lua_pushboolean(L, value);
    lua_setfield(L, -2, name);
}

void binding_set_text(lua_State *L, const char *name, const char *text)
{
    if (text && *text) {
        lua_pushstring(L, text);
        lua_setfield(L, -2, name);
    }
}

void binding_set_status(lua_State *L, const char *name, sessile_status status)
{
    lua_pushfstring(L, "E%s", sessile_status_name(status));
    lua_setfield(L, -2, name);
}

void binding_set_slice(lua_State *L, const char *name, sessile_slice text)
{
    if (text.size) {
        binding_push_slice(L, text);
        lua_setfield(L, -2, name);
    }
}

void binding_set_id(lua_State *L, const char *name, sessile_id id)
{
    binding_push_id(L, id);
    lua_setfield(L, -2, name);
}

void binding_set_key(lua_State *L, const char *name, sessile_key key)
{
    binding_push_key(L, key);
    lua_setfield(L, -2, name);
}

/* ------------------------------------------------------------------ lists */

/* Gives the table on top a metatable that answers the fields of the table below it. Those
 * are read like fields and are not seen by pairs(), so a message that was read can be
 * appended again without carrying our names for it along. [table, fields -> table] */
static void behind(lua_State *L, const char *name)
{
    lua_createtable(L, 0, 2);
    lua_pushvalue(L, -2);
    lua_setfield(L, -2, "__index");
    lua_pushstring(L, name);
    lua_setfield(L, -2, "__name");
    lua_setmetatable(L, -3);
    lua_pop(L, 1);
}

void binding_push_messages(lua_State *L, const sessile_message *list, size_t count)
{
    size_t i;
    luaL_checkstack(L, 8, "messages");
    lua_createtable(L, count < INT32_MAX ? (int)count : 0, 0);
    for (i = 0; i < count; i++) {
        const sessile_message *m = &list[i];
        lua_json_push(L, m->json.data, m->json.size);
        lua_createtable(L, 0, 5);
        binding_push_key(L, m->key);
        lua_pushvalue(L, -1);
        lua_setfield(L, -3, "id");
        lua_setfield(L, -2, "key");
        binding_set_integer(L, "tokens", (int64_t)m->tokens);
        binding_set_integer(L, "time", (int64_t)m->time_ms);
        binding_push_slice(L, m->json);
        lua_setfield(L, -2, "json");
        behind(L, "sessile.Message");
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
}

void binding_push_object(lua_State *L, const char *name, const char *json, size_t size)
{
    luaL_checkstack(L, 8, name);
    lua_json_push(L, json, size);
    lua_createtable(L, 0, 1);
    lua_pushlstring(L, json, size);
    lua_setfield(L, -2, "json");
    behind(L, name);
}

#define TOKENS(...) BINDING_FIELD(sessile_tokens, __VA_ARGS__)
static const struct binding_row tokens_row = BINDING_ROW(
    sessile_tokens, NULL, TOKENS("tokens", INTEGER, tokens), TOKENS("low", INTEGER, low),
    TOKENS("high", INTEGER, high), TOKENS("source", TEXT, source));

void binding_push_tokens(lua_State *L, const sessile_tokens *tokens)
{
    binding_push_row(L, &tokens_row, tokens);
}

int binding_push_count(lua_State *L, const sessile_tokens *tokens)
{
    lua_pushinteger(L, (lua_Integer)tokens->tokens);
    binding_push_tokens(L, tokens);
    return 2;
}
