/*
 * lua_box.h: the userdata behind lua_state.h: a state, its list of messages, one message.
 *
 * All three point to one box in the state's userdata. A list and a message hold that
 * userdata as their user value, so the box outlives them. Ending the state clears the
 * box.
 */
#ifndef POLICY_LUA_BOX_H
#define POLICY_LUA_BOX_H

#include "policy/lua_state.h"

typedef struct lua_box {
    sessile_state *state;    /* NULL once ended */
    lua_state_charge charge; /* NULL: not metered */
} lua_box;

/* Indexes of the user values of a state. */
enum { BOX_MESSAGES = 1, BOX_VARS, BOX_VARS_TEXT, BOX_VALUES = BOX_VARS_TEXT };

typedef struct lua_messages {
    lua_box *box;
    size_t count; /* the list is the first count messages of the state */
} lua_messages;

typedef struct lua_view {
    lua_box *box;
    size_t index; /* from 0 */
} lua_view;

/* The value at index as one of the three; NULL: another value. */
lua_box *lua_box_test(lua_State *L, int index);
lua_messages *lua_messages_test(lua_State *L, int index);
lua_view *lua_view_test(lua_State *L, int index);

/* Raises when the state has ended. */
void lua_box_live(lua_State *L, const lua_box *box);
void lua_box_charge(lua_State *L, const lua_box *box, size_t n);

/* Pushes the metatable under key in the registry, and returns 1 when it was created by
 * this call. */
int lua_box_metatable(lua_State *L, const void *key, const char *name);
/* Makes `index` the __index of the metatable below the top of the stack. Its upvalue is
 * the table at the top, which is popped; names[1] to names[last] are set to their numbers
 * there.
 */
void lua_box_set_index(lua_State *L, const char *const *names, int last,
                       lua_CFunction index);
/* 1 when the userdata at index has the metatable under key. */
int lua_box_is(lua_State *L, int index, const void *key);

void lua_messages_open(lua_State *L);
/* Pushes a list of the first count messages. */
void lua_messages_push(lua_State *L, int state_index, size_t count);

#endif
