/*
 * lua_json.h: JSON text to Lua values and back, by one rule for policies and Lua hosts.
 *
 * To Lua: null is the light userdata NULL. Integers that fit 64 bits are integers, other
 * numbers are floats. In LuaJIT, where numbers are doubles, an integer beyond 2^53 is
 * kept as text (lua_json_verbatim), and a whole number up to that is an integer. Arrays
 * are tables with the array metatable, so that an empty one is written as [] again.
 * Objects are plain tables; of duplicate keys the last one wins.
 *
 * To JSON: a table with the array metatable, or whose keys are exactly 1..n (n >= 1), is
 * an array; {} is an object. Keys of objects are sorted by bytes. Integers are written as
 * integers, floats in the shortest form that reads back the same (%.17g at most), never
 * nan or inf. In a message, {} as content or tool_calls is an array. A string is assumed
 * to be UTF-8. A table with the field `.json`, made by lua_json_verbatim(), is written as
 * that text.
 */
#ifndef POLICY_LUA_JSON_H
#define POLICY_LUA_JSON_H

#include <stddef.h>
#include <lua.h>

/* Registers the metatables in the registry of L; idempotent. */
void lua_json_open(lua_State *L);

/* Levels of nesting that can be written and read: the greatest limits.depth, and what an
 * entry has around a message. The engine checks limits.depth itself. */
#define LUA_JSON_DEPTH 1008

/* Pushes the value of checked JSON text. Raises only for lack of memory, or nesting
 * beyond LUA_JSON_DEPTH. */
void lua_json_push(lua_State *L, const char *text, size_t size);
/* Pushes only member `name` of an object, or nil; the rest is not converted. */
void lua_json_push_member(lua_State *L, const char *text, size_t size, const char *name);

/* Pushes the JSON text of the value at index as a string and returns 1. Or pushes a
 * sentence (such as "metadata.x: a function cannot be JSON") and returns 0: for NaN
 * and infinities, functions, userdata, mixed tables, cycles, nesting beyond
 * LUA_JSON_DEPTH, and text beyond max_size. message 1 applies the rule for content and
 * tool_calls. Reads raw: no metamethod runs. */
int lua_json_text(lua_State *L, int index, int message, size_t max_size);
/* The same; *too_much is 1 when nesting or max_size was the reason. */
int lua_json_bounded(lua_State *L, int index, int message, size_t max_size,
                     int *too_much);

/* How the value at index is written: a table with one of our metatables, or any other. */
enum { LUA_JSON_PLAIN = 0, LUA_JSON_ARRAY, LUA_JSON_VERBATIM, LUA_JSON_FROZEN };
int lua_json_kind(lua_State *L, int index);

/* Marks the table at index as an array. */
void lua_json_mark_array(lua_State *L, int index);
/* Pushes a table that is written as exactly that text (the engine finds INVALID text). */
void lua_json_verbatim(lua_State *L, const char *text, size_t size);

/* Replaces the table at index, and tables in it, by proxies that read the same and
 * refuse assignment. lua_json_text() writes them like the originals. In LuaJIT they stay
 * as they are. */
void lua_json_freeze(lua_State *L, int index);
/* If the value at index is such a proxy, pushes the original table and returns 1; else
 * 0. */
int lua_json_thaw(lua_State *L, int index);
/* Pushes the list of the string keys of the table at index, sorted by bytes. Raw. */
void lua_json_keys(lua_State *L, int index);

/* Called by lua_json_text() for each table before it is written; may raise. One for
 * each L. */
typedef void (*lua_json_charge)(lua_State *L, size_t n);
void lua_json_meter(lua_State *L, lua_json_charge charge);

#endif
