/*
 * environment.h: the globals that a policy's source sees.
 *
 * The allowed tables are made once for each VM. Every pipeline gets fresh copies, so that
 * a script cannot change them for the next one. What is not listed here does not exist.
 */
#ifndef POLICY_ENVIRONMENT_H
#define POLICY_ENVIRONMENT_H

#include <lua.h>

/* Lua's own functions that ours call after taking their charge. */
typedef enum stock_function {
    STOCK_BYTE,
    STOCK_CHAR,
    STOCK_FORMAT,
    STOCK_LOWER,
    STOCK_REVERSE,
    STOCK_SUB,
    STOCK_UPPER,
    STOCK_CONCAT,
    STOCK_INSERT,
    STOCK_MOVE,
    STOCK_PACK,
    STOCK_REMOVE,
    STOCK_UNPACK,
    STOCK_UTF8CHAR,
    STOCK_CODEPOINT,
    STOCK_LEN,
    STOCK_CODES,
    STOCK_TONUMBER,
    STOCK_SELECT,
    STOCK_COUNT
} stock_function;

/* Makes the templates in L's registry and fills stock. Raises for memory only. */
void environment_open(lua_State *L, lua_CFunction stock[STOCK_COUNT]);
/* Pushes a fresh environment. */
void environment_push(lua_State *L);
/* Makes ("x"):rep(2) use the environment's string table, at index. */
void environment_use_strings(lua_State *L, int index);

/* Our libraries: each sets its functions in the table at the top of the stack. */
void library_base(lua_State *L);
void library_string(lua_State *L);
void library_match(lua_State *L);
void library_math(lua_State *L);
void library_table(lua_State *L);
void library_utf8(lua_State *L);

/* Pushes the value at index as text, without addresses; __tostring is called. */
const char *library_text(lua_State *L, int index, size_t *size);
/* Bytes of the string at index; 0 for any other type. */
static inline size_t library_string_size(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TSTRING ? lua_rawlen(L, index) : 0;
}
/* pairs in an order that depends on the keys alone; also ctx.sorted_pairs. */
int library_pairs(lua_State *L);

#endif
