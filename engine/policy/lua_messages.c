/*
 * lua_messages.c: the list of a state's messages, and one message, as Lua values.
 *
 * Owns reading fields on demand: a policy that reads one field of one message of a
 * thousand pays for that field. Must never let a script change what it sees, or depend
 * on the sandbox: Lua hosts use it too.
 */
#include "policy/lua_box.h"

#include <string.h>
#include <lauxlib.h>
#include "base/names.h"
#include "codec/message.h"
#include "policy/lua_json.h"
#include "proposal/state.h"

static const char messages_key, view_key;

/* Fields that are columns of the engine, not of the message's JSON. */
enum {
    FIELD_KEY = 1,
    FIELD_ID,
    FIELD_ROLE,
    FIELD_TOKENS,
    FIELD_PINNED,
    FIELD_TURN,
    FIELD_LABELS,
    FIELD_OPEN,
    FIELD_DEAD,
    FIELD_END
};
static const char *const field_names[FIELD_END] = {
    NULL, "key", "id", "role", "tokens", "pinned", "turn", "labels", "open", "dead"};

lua_messages *lua_messages_test(lua_State *L, int index)
{
    return lua_box_is(L, index, &messages_key) ? lua_touserdata(L, index) : NULL;
}

lua_view *lua_view_test(lua_State *L, int index)
{
    return lua_box_is(L, index, &view_key) ? lua_touserdata(L, index) : NULL;
}

/* The message argument of a metamethod; its state must be live. */
static lua_view *check_view(lua_State *L)
{
    lua_view *view = lua_view_test(L, 1);
    if (!view)
        luaL_error(L, "a message was expected");
    lua_box_live(L, view->box);
    return view;
}

static lua_messages *check_messages(lua_State *L)
{
    lua_messages *list = lua_messages_test(L, 1);
    if (!list)
        luaL_error(L, "a list of messages was expected");
    lua_box_live(L, list->box);
    return list;
}

static sessile_column column_of(lua_State *L, const lua_view *view)
{
    sessile_column column;
    sessile_error err;
    if (state_get(view->box->state, view->index, &column, &err))
        luaL_error(L, "%s", err.message);
    return column;
}

static sessile_slice json_of_view(lua_State *L, const lua_view *view)
{
    sessile_slice json;
    sessile_error err;
    if (state_json(view->box->state, view->index, &json, &err))
        luaL_error(L, "%s", err.message);
    lua_box_charge(L, view->box, json.size);
    return json;
}

/* Pushes the labels as a read-only list. */
static void push_labels(lua_State *L, const lua_view *view)
{
    sessile_slice name;
    sessile_error err;
    lua_newtable(L);
    lua_json_mark_array(L, -1);
    for (size_t n = 0;; n++) {
        if (state_label(view->box->state, view->index, n, &name, &err))
            luaL_error(L, "%s", err.message);
        if (!name.data)
            break;
        lua_box_charge(L, view->box, 16 + name.size);
        lua_pushlstring(L, name.data, name.size);
        lua_rawseti(L, -2, (lua_Integer)n + 1);
    }
    lua_json_freeze(L, -1);
}

static void push_column(lua_State *L, const lua_view *view, const sessile_column *column,
                        int field)
{
    char key[SESSILE_KEY_SIZE];
    switch (field) {
    case FIELD_KEY:
    case FIELD_ID:
        if (field == FIELD_ID && column->written) {
            lua_pushnil(L);
            break;
        }
        key_print(column->key, key);
        lua_pushstring(L, key);
        break;
    case FIELD_ROLE:
        lua_pushstring(L, role_name(column->role));
        break;
    case FIELD_TOKENS:
        lua_pushinteger(L, column->tokens);
        break;
    case FIELD_PINNED:
        lua_pushboolean(L, column->pinned);
        break;
    case FIELD_TURN:
        lua_pushinteger(L, column->turn);
        break;
    case FIELD_LABELS:
        push_labels(L, view);
        break;
    case FIELD_OPEN:
        lua_pushboolean(L, column->open);
        break;
    default:
        lua_pushboolean(L, column->dead);
    }
}

/* A JSON null is nil to a script: `if m.content then` must mean what it says. */
static int null_to_nil(lua_State *L)
{
    if (lua_type(L, -1) == LUA_TLIGHTUSERDATA) {
        lua_pop(L, 1);
        lua_pushnil(L);
    }
    return 1;
}

static int view_index(lua_State *L)
{
    lua_view *view = check_view(L);
    sessile_slice json;
    int field;

    if (lua_type(L, 2) != LUA_TSTRING)
        return 0;
    lua_pushvalue(L, 2);
    lua_rawget(L, lua_upvalueindex(1));
    field = (int)lua_tointeger(L, -1);
    if (field) {
        sessile_column column = column_of(L, view);
        lua_box_charge(L, view->box, 16);
        push_column(L, view, &column, field);
        return 1;
    }
    json = json_of_view(L, view);
    lua_json_push_member(L, json.data, json.size, lua_tostring(L, 2));
    return null_to_nil(L);
}

static int view_newindex(lua_State *L)
{
    return luaL_error(L, "a message is read-only: use state:replace(i, {content = …})");
}

static int view_eq(lua_State *L)
{
    const lua_view *a = lua_view_test(L, 1), *b = lua_view_test(L, 2);
    lua_pushboolean(L, a && b && a->box == b->box && a->index == b->index);
    return 1;
}

static int view_tostring(lua_State *L)
{
    lua_view *view = check_view(L);
    sessile_column column = column_of(L, view);
    lua_pushliteral(L, "message ");
    push_column(L, view, &column, FIELD_KEY);
    lua_concat(L, 2);
    return 1;
}

/* Iterates over a table in the order of a list of names. Upvalues: table, names,
 * position. */
static int fields_next(lua_State *L)
{
    lua_Integer i = lua_tointeger(L, lua_upvalueindex(3));
    do {
        lua_settop(L, 0);
        if (lua_rawgeti(L, lua_upvalueindex(2), ++i) == LUA_TNIL)
            return 1;
        lua_pushvalue(L, 1);
    } while (lua_rawget(L, lua_upvalueindex(1)) == LUA_TLIGHTUSERDATA);
    lua_pushinteger(L, i);
    lua_replace(L, lua_upvalueindex(3));
    return 2;
}

/* All fields by name, in a copy, for scripts that walk over unknown fields. */
static int view_pairs(lua_State *L)
{
    lua_view *view = check_view(L);
    sessile_column column = column_of(L, view);
    sessile_slice json = json_of_view(L, view);
    int field;

    lua_settop(L, 1);
    lua_json_push(L, json.data, json.size);
    for (field = 1; field < FIELD_END; field++) {
        push_column(L, view, &column, field);
        lua_setfield(L, 2, field_names[field]);
    }
    lua_json_keys(L, 2);
    lua_pushinteger(L, 0);
    lua_pushcclosure(L, fields_next, 3);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

int lua_state_stored(lua_State *L)
{
    sessile_slice json;
    lua_settop(L, 1);
    json = json_of_view(L, check_view(L));
    lua_pushlstring(L, json.data, json.size);
    return 1;
}

static void push_view(lua_State *L, lua_messages *list, int list_index, size_t i)
{
    lua_view *view = lua_newuserdatauv(L, sizeof *view, 1);
    view->box = list->box;
    view->index = i;
    lua_getiuservalue(L, list_index, 1);
    lua_setiuservalue(L, -2, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &view_key);
    lua_setmetatable(L, -2);
}

static int messages_index(lua_State *L)
{
    lua_messages *list = check_messages(L);
    int is_integer;
    lua_Integer i = lua_tointegerx(L, 2, &is_integer);

    if (lua_type(L, 2) == LUA_TNUMBER && is_integer) {
        if (i < 1 || (lua_Unsigned)i > list->count)
            return 0;
        lua_box_charge(L, list->box, 32);
        push_view(L, list, 1, (size_t)i - 1);
        return 1;
    }
    /* `previous` of a merge is a list, `next` a state: both answer .messages. */
    if (lua_type(L, 2) == LUA_TSTRING && strcmp(lua_tostring(L, 2), "messages") == 0) {
        lua_settop(L, 1);
        return 1;
    }
    return 0;
}

static int messages_newindex(lua_State *L)
{
    return luaL_error(L,
                      "the list of messages is read-only: use state:drop, state:replace "
                      "or state:insert");
}

static int messages_len(lua_State *L)
{
    lua_pushinteger(L, (lua_Integer)check_messages(L)->count);
    return 1;
}

static int messages_next(lua_State *L)
{
    lua_Integer i = luaL_optinteger(L, 2, 0) + 1;
    lua_messages *list = check_messages(L);
    if (i < 1 || (lua_Unsigned)i > list->count)
        return 0;
    lua_box_charge(L, list->box, 32);
    lua_pushinteger(L, i);
    push_view(L, list, 1, (size_t)i - 1);
    return 2;
}

static int messages_pairs(lua_State *L)
{
    check_messages(L);
    lua_pushcfunction(L, messages_next);
    lua_pushvalue(L, 1);
    lua_pushnil(L);
    return 3;
}

static int messages_tostring(lua_State *L)
{
    lua_pushfstring(L, "%I messages", (LUAI_UACINT)check_messages(L)->count);
    return 1;
}

void lua_messages_push(lua_State *L, int state_index, size_t count)
{
    lua_messages *list;
    state_index = lua_absindex(L, state_index);
    list = lua_newuserdatauv(L, sizeof *list, 1);
    list->box = lua_touserdata(L, state_index);
    list->count = count;
    lua_pushvalue(L, state_index);
    lua_setiuservalue(L, -2, 1);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &messages_key);
    lua_setmetatable(L, -2);
}

void lua_messages_open(lua_State *L)
{
    static const luaL_Reg of_view[] = {
        {"__newindex", view_newindex}, {"__eq", view_eq}, {"__tostring", view_tostring},
        {"__pairs", view_pairs},       {NULL, NULL},
    };
    static const luaL_Reg of_messages[] = {
        {"__index", messages_index},       {"__newindex", messages_newindex},
        {"__len", messages_len},           {"__pairs", messages_pairs},
        {"__tostring", messages_tostring}, {NULL, NULL},
    };

    if (lua_box_metatable(L, &messages_key, "messages"))
        luaL_setfuncs(L, of_messages, 0);
    lua_pop(L, 1);
    if (lua_box_metatable(L, &view_key, "message")) {
        luaL_setfuncs(L, of_view, 0);
        lua_createtable(L, 0, FIELD_END);
        lua_box_set_index(L, field_names, FIELD_END - 1, view_index);
    }
    lua_pop(L, 1);
}
