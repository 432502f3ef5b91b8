/*
 * compat51.h: the functions of Lua 5.4 that the binding uses, on the interface of Lua 5.1
 * that LuaJIT has. It is included before anything else when the module for LuaJIT is
 * compiled, so that the other files are the same for both.
 *
 * Numbers are doubles there: a whole number up to 2^53 is an integer here. The user
 * values of a userdata are in the table that is its environment.
 */
#ifndef BINDING_COMPAT51_H
#define BINDING_COMPAT51_H

#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <lua.h>
#include <lauxlib.h>

#if LUA_VERSION_NUM != 501 || !defined(LUA_LJDIR)
#error "compat51.h is for LuaJIT"
#endif
_Static_assert(sizeof(lua_Integer) == 8, "the module for LuaJIT is for 64-bit machines");

#define LUA_OK          0
#define LUA_INTEGER_FMT "%td"
#define LUAI_UACINT     ptrdiff_t
typedef size_t lua_Unsigned;

#define COMPAT       __attribute__((unused)) static
#define COMPAT_EXACT 9007199254740992.0 /* 2^53 */

#define luaL_checkversion(L) ((void)(L))
#define lua_rawlen           lua_objlen

COMPAT int compat_absindex(lua_State *L, int index)
{
    return index > 0 || index <= LUA_REGISTRYINDEX ? index : lua_gettop(L) + index + 1;
}
#define lua_absindex compat_absindex

/* ---- get functions return the type of what they push */

COMPAT int compat_rawget(lua_State *L, int index)
{
    lua_rawget(L, index);
    return lua_type(L, -1);
}
#define lua_rawget compat_rawget

COMPAT int compat_rawgeti(lua_State *L, int index, lua_Integer n)
{
    lua_rawgeti(L, index, (int)n);
    return lua_type(L, -1);
}
#define lua_rawgeti              compat_rawgeti
#define lua_rawseti(L, index, n) lua_rawseti(L, index, (int)(n))

COMPAT int compat_rawgetp(lua_State *L, int index, const void *key)
{
    index = lua_absindex(L, index);
    lua_pushlightuserdata(L, (void *)key);
    return lua_rawget(L, index);
}
#define lua_rawgetp compat_rawgetp

COMPAT void compat_rawsetp(lua_State *L, int index, const void *key)
{
    index = lua_absindex(L, index);
    lua_pushlightuserdata(L, (void *)key);
    lua_insert(L, -2);
    lua_rawset(L, index);
}
#define lua_rawsetp compat_rawsetp

COMPAT int compat_newmetatable(lua_State *L, const char *name)
{
    int is_new = luaL_newmetatable(L, name);
    if (is_new) {
        lua_pushstring(L, name);
        lua_setfield(L, -2, "__name");
    }
    return is_new;
}
#define luaL_newmetatable compat_newmetatable

/* ---- user values */

COMPAT void *compat_newuserdatauv(lua_State *L, size_t size, int values)
{
    void *block = lua_newuserdata(L, size);
    if (values > 0) {
        lua_createtable(L, values, 0);
        lua_setfenv(L, -2);
    }
    return block;
}
#define lua_newuserdatauv compat_newuserdatauv

COMPAT int compat_getiuservalue(lua_State *L, int index, int n)
{
    lua_getfenv(L, index);
    lua_rawgeti(L, -1, n);
    lua_remove(L, -2);
    return lua_type(L, -1);
}
#define lua_getiuservalue compat_getiuservalue

COMPAT int compat_setiuservalue(lua_State *L, int index, int n)
{
    lua_getfenv(L, index);
    lua_insert(L, -2);
    lua_rawseti(L, -2, n);
    lua_pop(L, 1);
    return 1;
}
#define lua_setiuservalue compat_setiuservalue

/* ---- integers */

/* Whether the value at index is a number, or a text of one, that is whole and exact. */
COMPAT int compat_whole(lua_State *L, int index, lua_Integer *out)
{
    lua_Number n = lua_tonumber(L, index);
    *out = 0;
    if (!lua_isnumber(L, index) || !(n >= -COMPAT_EXACT && n <= COMPAT_EXACT) ||
        n != (lua_Number)(lua_Integer)n)
        return 0;
    *out = (lua_Integer)n;
    return 1;
}

COMPAT int compat_isinteger(lua_State *L, int index)
{
    lua_Integer ignored;
    return lua_type(L, index) == LUA_TNUMBER && compat_whole(L, index, &ignored);
}
#define lua_isinteger compat_isinteger

COMPAT lua_Integer compat_tointegerx(lua_State *L, int index, int *is_whole)
{
    lua_Integer value;
    int whole = compat_whole(L, index, &value);
    if (is_whole)
        *is_whole = whole;
    return value;
}
#define lua_tointegerx          compat_tointegerx
#define lua_tointeger(L, index) compat_tointegerx(L, index, NULL)

COMPAT lua_Integer compat_checkinteger(lua_State *L, int arg)
{
    lua_Integer value;
    if (!compat_whole(L, arg, &value)) {
        luaL_checknumber(L, arg);
        luaL_argerror(L, arg, "number has no integer representation");
    }
    return value;
}
#define luaL_checkinteger compat_checkinteger
#define luaL_optinteger(L, arg, fallback) \
    (lua_isnoneornil(L, arg) ? (fallback) : compat_checkinteger(L, arg))

/* Pushes the number that a text is; returns its size with the zero byte, or 0. */
COMPAT size_t compat_stringtonumber(lua_State *L, const char *text)
{
    lua_pushstring(L, text);
    if (!lua_isnumber(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    lua_pushnumber(L, lua_tonumber(L, -1));
    lua_remove(L, -2);
    return strlen(text) + 1;
}
#define lua_stringtonumber compat_stringtonumber

/* ---- texts */

/* Formats %s, %d, %I, %f and %%; with place 1 the line of the caller comes first. */
COMPAT const char *compat_format(lua_State *L, int place, const char *format,
                                 va_list list)
{
    luaL_Buffer buffer;
    char number[40];
    luaL_buffinit(L, &buffer);
    if (place) {
        luaL_where(L, 1);
        luaL_addvalue(&buffer);
    }
    for (; *format; format++) {
        if (*format != '%') {
            luaL_addchar(&buffer, *format);
            continue;
        }
        switch (*++format) {
        case 's': {
            const char *text = va_arg(list, const char *);
            luaL_addstring(&buffer, text ? text : "(null)");
            continue;
        }
        case 'd':
            snprintf(number, sizeof number, "%d", va_arg(list, int));
            break;
        case 'I':
            snprintf(number, sizeof number, "%td", va_arg(list, ptrdiff_t));
            break;
        case 'f':
            snprintf(number, sizeof number, "%.14g", va_arg(list, double));
            break;
        default:
            snprintf(number, sizeof number, "%c", *format);
        }
        luaL_addstring(&buffer, number);
    }
    luaL_pushresult(&buffer);
    return lua_tostring(L, -1);
}

COMPAT const char *compat_pushvfstring(lua_State *L, const char *format, va_list list)
{
    return compat_format(L, 0, format, list);
}
#define lua_pushvfstring compat_pushvfstring

COMPAT const char *compat_pushfstring(lua_State *L, const char *format, ...)
{
    const char *text;
    va_list list;
    va_start(list, format);
    text = compat_format(L, 0, format, list);
    va_end(list);
    return text;
}
#define lua_pushfstring compat_pushfstring

COMPAT int compat_error(lua_State *L, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    compat_format(L, 1, format, list);
    va_end(list);
    return lua_error(L);
}
#define luaL_error compat_error

/* A buffer of a known size: a userdata on the stack. */
COMPAT char *compat_buffinitsize(lua_State *L, luaL_Buffer *buffer, size_t size)
{
    buffer->L = L;
    return lua_newuserdata(L, size ? size : 1);
}
#define luaL_buffinitsize compat_buffinitsize

COMPAT void compat_pushresultsize(luaL_Buffer *buffer, size_t size)
{
    lua_pushlstring(buffer->L, lua_touserdata(buffer->L, -1), size);
    lua_remove(buffer->L, -2);
}
#define luaL_pushresultsize compat_pushresultsize

#endif
