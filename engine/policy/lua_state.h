/*
 * lua_state.h: a sessile_state as a Lua value, with the same methods in the engine's
 * policy VM and in a Lua host.
 *
 * Fields: messages (oldest first, read-only, each a view whose fields are read on demand:
 * role, content, author, tool_calls, tool_call_id, timestamp, usage, metadata and any
 * other field of the JSON; key, id, tokens, pinned, turn, labels, open, dead), tokens,
 * window (math.huge when unlimited), reserve, vars (can be assigned or edited in place).
 *
 * Methods: drop(i[, j]), replace(i, fields), insert(i, message, {covers={i, j}}),
 * keep_last(n, unit), find_cut(tokens), turns(), pairs_of(i). Indexes start at 1.
 */
#ifndef POLICY_LUA_STATE_H
#define POLICY_LUA_STATE_H

#include <lua.h>
#include "sessile.h"

/* Called before work proportional to n is done for a script; may raise. NULL: no
 * charge. */
typedef void (*lua_state_charge)(lua_State *L, size_t n);

/* Registers the metatables in L; idempotent. */
void lua_state_open(lua_State *L);

/* Pushes a state. After lua_state_end(), the state and everything reached through it
 * raise. */
void lua_state_push(lua_State *L, sessile_state *state, lua_state_charge charge);
/* Pushes the list of the first `previous` messages, read-only; nil when there are none.
 */
void lua_state_push_previous(lua_State *L, int state_index);

/* Applies what a hook returned (at `result`; none or nil: the state as edited): nil,
 * the state itself, {messages = …} or a list of messages. Writes vars back if they
 * were edited. Returns SESSILE_OK, or fills err: INVALID with a sentence that names
 * the item. */
sessile_status lua_state_result(lua_State *L, int state_index, int result,
                                sessile_error *err);
/* A function for Lua hosts: (a message of a state, or of `previous`) -> its JSON, as it
 * is stored, or as an edit has left it. */
int lua_state_stored(lua_State *L);
/* Disconnects the userdata from the state. */
void lua_state_end(lua_State *L, int state_index);

#endif
