/*
 * lua_state.c: a sessile_state as a Lua value: its fields, its vars, its edits.
 *
 * Owns the methods with which scripts edit a context, in the engine's VM and in a Lua
 * host. Must never use the state after lua_state_end(), hold memory of its own across
 * a call that can raise, or depend on the sandbox.
 */
#include "policy/lua_state.h"

#include <math.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/lua_box.h"
#include "policy/lua_json.h"
#include "proposal/state.h"

/* Limit on the JSON of a message or of vars; the engine's own limits are lower. */
#define TEXT_MAX ((size_t)16 << 20)

static const char state_key;

lua_box *lua_box_test(lua_State *L, int index)
{
    return lua_box_is(L, index, &state_key) ? lua_touserdata(L, index) : NULL;
}

/* ------------------------------------------------------------------ arguments */

static lua_box *check_state(lua_State *L)
{
    lua_box *box = lua_box_test(L, 1);
    if (!box)
        luaL_error(L, "call it with a colon, as in state:drop(i)");
    lua_box_live(L, box);
    return box;
}

static void check(lua_State *L, sessile_status status, const sessile_error *err)
{
    if (status)
        luaL_error(L, "%s", err->message);
}

/* A position from 1 to last, as an index from 0. */
static size_t check_index(lua_State *L, const char *what, int arg, size_t last)
{
    int is_integer;
    lua_Integer i = lua_tointegerx(L, arg, &is_integer);
    if (lua_type(L, arg) != LUA_TNUMBER || !is_integer)
        luaL_error(L, "%s: a message's position was expected, got %s", what,
                   luaL_typename(L, arg));
    if (i < 1 || (lua_Unsigned)i > last)
        luaL_error(L, "%s: there is no position %I (1 to %I)", what, (LUAI_UACINT)i,
                   (LUAI_UACINT)last);
    return (size_t)i - 1;
}

/* A number of items, which can be a share of a window: rounded down, never negative. */
static int64_t check_amount(lua_State *L, const char *what, int arg)
{
    lua_Number n;
    if (lua_type(L, arg) != LUA_TNUMBER)
        luaL_error(L, "%s: a number was expected, got %s", what, luaL_typename(L, arg));
    if (lua_isinteger(L, arg)) {
        lua_Integer i = lua_tointeger(L, arg);
        return i < 0 ? 0 : i;
    }
    n = lua_tonumber(L, arg);
    if (isnan(n))
        luaL_error(L, "%s: the number is NaN", what);
    if (n <= 0)
        return 0;
    return n >= 9.2e18 ? INT64_MAX : (int64_t)n;
}

/* Pushes the JSON of a table of fields. */
static sessile_slice check_json(lua_State *L, const char *what, int arg, int message)
{
    sessile_slice text;
    if (lua_type(L, arg) != LUA_TTABLE)
        luaL_error(L, "%s: a table was expected, got %s", what, luaL_typename(L, arg));
    if (!lua_json_text(L, arg, message, TEXT_MAX))
        luaL_error(L, "%s: %s", what, lua_tostring(L, -1));
    text.data = lua_tolstring(L, -1, &text.size);
    return text;
}

/* ------------------------------------------------------------------ edits */

static int method_drop(lua_State *L)
{
    lua_box *box = check_state(L);
    size_t count = state_count(box->state);
    size_t first = check_index(L, "drop", 2, count), last = first;
    sessile_error err;

    if (!lua_isnoneornil(L, 3))
        last = check_index(L, "drop", 3, count);
    if (last < first)
        luaL_error(L, "drop: %I comes after %I", (LUAI_UACINT)first + 1,
                   (LUAI_UACINT)last + 1);
    lua_box_charge(L, box, 32 * (last - first + 1));
    check(L, state_drop(box->state, first, last, &err), &err);
    return 0;
}

static int method_replace(lua_State *L)
{
    lua_box *box = check_state(L);
    size_t i = check_index(L, "replace", 2, state_count(box->state));
    sessile_slice fields = check_json(L, "replace", 3, 1);
    sessile_error err;

    lua_box_charge(L, box, fields.size);
    check(L, state_replace(box->state, i, fields, &err), &err);
    return 0;
}

static int method_insert(lua_State *L)
{
    lua_box *box = check_state(L);
    size_t count = state_count(box->state), first = 0, last = 0;
    size_t i = check_index(L, "insert", 2, count + 1);
    sessile_slice message;
    sessile_error err;
    int covers = 0;

    lua_settop(L, 4);
    if (!lua_isnil(L, 4)) {
        luaL_checktype(L, 4, LUA_TTABLE);
        lua_pushliteral(L, "covers");
        lua_rawget(L, 4);
        if (!lua_isnil(L, 5)) {
            if (!lua_istable(L, 5))
                luaL_error(L, "insert: covers is {first, last}");
            lua_rawgeti(L, 5, 1);
            lua_rawgeti(L, 5, 2);
            first = check_index(L, "insert: covers", 6, count);
            last = check_index(L, "insert: covers", 7, count);
            if (last < first)
                luaL_error(L, "insert: covers: %I comes after %I", (LUAI_UACINT)first + 1,
                           (LUAI_UACINT)last + 1);
            covers = 1;
        }
    }
    message = check_json(L, "insert", 3, 1);
    lua_box_charge(L, box, message.size + 32 * (last - first + 1));
    check(L, state_insert(box->state, i, message, covers, first, last, &err), &err);
    return 0;
}

static int method_keep_last(lua_State *L)
{
    static const char *const names[] = {"messages", "turns", "tokens", NULL};
    static const sessile_unit units[] = {SESSILE_MESSAGES, SESSILE_TURNS, SESSILE_TOKENS};
    lua_box *box = check_state(L);
    int64_t n = check_amount(L, "keep_last", 2);
    sessile_unit unit = units[luaL_checkoption(L, 3, "messages", names)];
    sessile_error err;

    lua_box_charge(L, box, 16 * state_count(box->state));
    check(L, state_keep_last(box->state, n, unit, &err), &err);
    return 0;
}

/* ------------------------------------------------------------------ questions */

static int method_find_cut(lua_State *L)
{
    lua_box *box = check_state(L);
    int64_t tokens = check_amount(L, "find_cut", 2);

    lua_box_charge(L, box, 16 * state_count(box->state));
    lua_pushinteger(L, (lua_Integer)state_find_cut(box->state, tokens) + 1);
    return 1;
}

/* Appends {turn=, first=, last=, tokens=} to the list at the top. */
static void push_turn(lua_State *L, lua_Integer at, uint32_t turn, size_t first,
                      size_t last, int64_t tokens)
{
    lua_createtable(L, 0, 4);
    lua_pushinteger(L, turn);
    lua_setfield(L, -2, "turn");
    lua_pushinteger(L, (lua_Integer)first + 1);
    lua_setfield(L, -2, "first");
    lua_pushinteger(L, (lua_Integer)last + 1);
    lua_setfield(L, -2, "last");
    lua_pushinteger(L, tokens);
    lua_setfield(L, -2, "tokens");
    lua_rawseti(L, -2, at);
}

/* The turns, oldest first, as ranges of positions; turn 0 is what precedes the first. */
static int method_turns(lua_State *L)
{
    lua_box *box = check_state(L);
    size_t count = state_count(box->state), first = 0, i;
    lua_Integer turns = 0;
    uint32_t turn = 0;
    int64_t tokens = 0;

    lua_box_charge(L, box, 64 * count);
    lua_newtable(L);
    for (i = 0; i < count; i++) {
        sessile_column column;
        sessile_error err;
        check(L, state_get(box->state, i, &column, &err), &err);
        if (i > first && column.turn != turn) {
            push_turn(L, ++turns, turn, first, i - 1, tokens);
            first = i;
            tokens = 0;
        }
        turn = column.turn;
        tokens += column.tokens;
    }
    if (count > first)
        push_turn(L, ++turns, turn, first, count - 1, tokens);
    return 1;
}

static int method_pairs_of(lua_State *L)
{
    lua_box *box = check_state(L);
    size_t i = check_index(L, "pairs_of", 2, state_count(box->state));
    size_t few[16], count = state_pairs(box->state, i, few, 16), k;
    size_t *all = few;

    lua_box_charge(L, box, 32 * count);
    if (count > 16) {
        all = lua_newuserdatauv(L, count * sizeof *all, 0);
        state_pairs(box->state, i, all, count);
    }
    lua_createtable(L, count < 1000000 ? (int)count : 0, 0);
    for (k = 0; k < count; k++) {
        lua_pushinteger(L, (lua_Integer)all[k] + 1);
        lua_rawseti(L, -2, (lua_Integer)k + 1);
    }
    return 1;
}

/* ------------------------------------------------------------------ fields */

enum {
    FIELD_MESSAGES = 1,
    FIELD_TOKENS,
    FIELD_WINDOW,
    FIELD_RESERVE,
    FIELD_KEEP_MIN,
    FIELD_VARS
};

static void push_messages(lua_State *L, lua_box *box)
{
    if (lua_getiuservalue(L, 1, BOX_MESSAGES) == LUA_TUSERDATA)
        return;
    lua_pop(L, 1);
    lua_messages_push(L, 1, state_count(box->state));
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, BOX_MESSAGES);
}

/* Vars are read on first use. Their text is kept as we would write it, so that reading
 * them does not count as an edit. */
static void push_vars(lua_State *L, lua_box *box)
{
    sessile_slice text;
    if (lua_getiuservalue(L, 1, BOX_VARS) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    text = state_vars_text(box->state);
    lua_box_charge(L, box, text.size);
    if (text.size)
        lua_json_push(L, text.data, text.size);
    else
        lua_newtable(L);
    if (!lua_json_text(L, -1, 0, TEXT_MAX)) {
        lua_pop(L, 1);
        lua_pushnil(L); /* cannot be written: any value set counts as a change */
    }
    lua_setiuservalue(L, 1, BOX_VARS_TEXT);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, BOX_VARS);
}

static int state_index(lua_State *L)
{
    lua_box *box = check_state(L);
    int64_t window;

    if (lua_type(L, 2) != LUA_TSTRING)
        return 0;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNUMBER)
        return 1; /* a method, or nil */
    switch (lua_tointeger(L, -1)) {
    case FIELD_MESSAGES:
        push_messages(L, box);
        break;
    case FIELD_TOKENS:
        lua_pushinteger(L, state_tokens(box->state));
        break;
    case FIELD_WINDOW:
        window = state_window(box->state);
        if (window > 0)
            lua_pushinteger(L, window);
        else
            lua_pushnumber(L, HUGE_VAL);
        break;
    case FIELD_RESERVE:
        lua_pushinteger(L, state_reserve(box->state));
        break;
    case FIELD_KEEP_MIN:
        lua_pushinteger(L, state_keep_min(box->state));
        break;
    default:
        push_vars(L, box);
    }
    return 1;
}

static int state_newindex(lua_State *L)
{
    lua_box *box = check_state(L);
    if (lua_type(L, 2) != LUA_TSTRING || strcmp(lua_tostring(L, 2), "vars") != 0)
        luaL_error(L,
                   "only vars of a state can be assigned: use state:drop, state:replace "
                   "or state:insert");
    if (!lua_istable(L, 3))
        luaL_error(L, "vars is a table, got %s", luaL_typename(L, 3));
    push_vars(L, box); /* the value before, to detect a change */
    lua_settop(L, 3);
    lua_setiuservalue(L, 1, BOX_VARS);
    return 0;
}

static int state_tostring(lua_State *L)
{
    lua_pushliteral(L, "state");
    return 1;
}

/* ------------------------------------------------------------------ for C */

void lua_state_open(lua_State *L)
{
    static const luaL_Reg of_state[] = {
        {"__newindex", state_newindex}, {"__tostring", state_tostring}, {NULL, NULL}};
    static const luaL_Reg methods[] = {
        {"drop", method_drop},         {"replace", method_replace},
        {"insert", method_insert},     {"keep_last", method_keep_last},
        {"find_cut", method_find_cut}, {"turns", method_turns},
        {"pairs_of", method_pairs_of}, {NULL, NULL},
    };
    static const char *const fields[] = {NULL,      "messages", "tokens", "window",
                                         "reserve", "keep_min", "vars"};

    luaL_checkstack(L, 8, NULL);
    lua_json_open(L);
    lua_messages_open(L);
    if (lua_box_metatable(L, &state_key, "state")) {
        luaL_setfuncs(L, of_state, 0);
        luaL_newlib(L, methods);
        lua_box_set_index(L, fields, FIELD_VARS, state_index);
    }
    lua_pop(L, 1);
}

void lua_state_push(lua_State *L, sessile_state *state, lua_state_charge charge)
{
    lua_box *box = lua_newuserdatauv(L, sizeof *box, BOX_VALUES);
    box->state = state;
    box->charge = charge;
    lua_rawgetp(L, LUA_REGISTRYINDEX, &state_key);
    lua_setmetatable(L, -2);
}

void lua_state_push_previous(lua_State *L, int index)
{
    lua_box *box = lua_box_test(L, index);
    size_t count = box && box->state ? state_previous(box->state) : 0;
    if (count)
        lua_messages_push(L, index, count);
    else
        lua_pushnil(L);
}

void lua_state_end(lua_State *L, int index)
{
    lua_box *box = lua_box_test(L, index);
    if (box)
        box->state = NULL;
}
