/*
 * lua_result.c: turns what a hook returned into edits of the state.
 *
 * Owns reading a list of messages that a script built, and writing back a policy's
 * vars. Must never run a metamethod of the script (everything is read raw), or depend
 * on the sandbox: Lua hosts use it too.
 */
#include "policy/lua_state.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <lauxlib.h>
#include "base/names.h"
#include "policy/lua_box.h"
#include "policy/lua_json.h"
#include "proposal/state.h"

#define TEXT_MAX ((size_t)16 << 20)

static sessile_status refuse(sessile_error *err, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static sessile_status refuse(sessile_error *err, const char *format, ...)
{
    if (err) {
        va_list args;
        va_start(args, format);
        if (vsnprintf(err->message, sizeof err->message, format, args) < 0)
            err->message[0] = 0;
        va_end(args);
        err->code = SESSILE_INVALID;
    }
    return SESSILE_INVALID;
}

/* LIMIT where a bound was exceeded: law 10 distinguishes it from malformed results. */
static sessile_status as_limit(int too_much, sessile_error *err)
{
    if (!too_much)
        return SESSILE_INVALID;
    if (err)
        err->code = SESSILE_LIMIT;
    return SESSILE_LIMIT;
}

/* A list under construction. Tables on Lua's stack hold what items point to. */
typedef struct builder {
    lua_State *L;
    lua_box *box;
    sessile_state_item *items;
    size_t count;
    int anchors; /* stack index of the table that holds texts and keys */
    lua_Integer held;
    sessile_error *err;
} builder;

/* Moves the value at the top into the anchors. */
static void hold(builder *b)
{
    lua_rawseti(b->L, b->anchors, ++b->held);
}

static const char *name_of(lua_State *L, int index)
{
    return lua_type(L, index) == LUA_TUSERDATA ? "another value"
                                               : luaL_typename(L, index);
}

/* Reads the keys in `field` of a message that a script built: strings, or messages. */
static sessile_status read_keys(builder *b, size_t at, int table, const char *field,
                                const sessile_key **out, size_t *count)
{
    lua_State *L = b->L;
    sessile_key *keys;
    size_t i, n;

    lua_pushstring(L, field);
    if (lua_rawget(L, table) == LUA_TNIL) {
        lua_pop(L, 1);
        return SESSILE_OK;
    }
    if (!lua_istable(L, -1))
        return refuse(b->err, "message %zu: %s is a list of keys, not a %s", at + 1,
                      field, name_of(L, -1));
    n = lua_rawlen(L, -1);
    lua_box_charge(L, b->box, 32 * n);
    keys = lua_newuserdatauv(L, n ? n * sizeof *keys : 1, 0);
    for (i = 0; i < n; i++) {
        const lua_view *view;
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        view = lua_view_test(L, -1);
        if (view && view->box == b->box) {
            sessile_column column;
            if (state_get(b->box->state, view->index, &column, b->err))
                return SESSILE_INVALID;
            keys[i] = column.key;
        } else {
            sessile_slice text = {NULL, 0};
            if (lua_type(L, -1) == LUA_TSTRING)
                text.data = lua_tolstring(L, -1, &text.size);
            if (!text.data || key_parse(text, &keys[i]))
                return refuse(b->err, "message %zu: %s[%zu] is no key of a message",
                              at + 1, field, i + 1);
        }
        lua_pop(L, 1);
    }
    *out = keys;
    *count = n;
    hold(b);
    lua_pop(L, 1);
    return SESSILE_OK;
}

/* Pushes a copy of a table without covers and replaces, which are not part of the
 * message. */
static void push_bare(lua_State *L, int table)
{
    lua_newtable(L);
    lua_pushnil(L);
    while (lua_next(L, table)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "";
        if (strcmp(key, "covers") == 0 || strcmp(key, "replaces") == 0) {
            lua_pop(L, 1);
            continue;
        }
        lua_pushvalue(L, -2);
        lua_insert(L, -2);
        lua_rawset(L, -4);
    }
}

static sessile_status read_new(builder *b, size_t at, int table, sessile_state_item *item)
{
    lua_State *L = b->L;
    sessile_status status;
    int too_much;

    if ((status = read_keys(b, at, table, "covers", &item->covers, &item->cover_count)) ||
        (status =
             read_keys(b, at, table, "replaces", &item->replaces, &item->replace_count)))
        return status;
    if (item->covers || item->replaces)
        push_bare(L, table);
    else
        lua_pushvalue(L, table);
    if (!lua_json_bounded(L, -1, 1, TEXT_MAX, &too_much)) {
        (void)refuse(b->err, "message %zu: %s", at + 1, lua_tostring(L, -1));
        return as_limit(too_much, b->err);
    }
    item->json.data = lua_tolstring(L, -1, &item->json.size);
    lua_box_charge(L, b->box, item->json.size);
    hold(b);
    lua_pop(L, 1);
    return SESSILE_OK;
}

/* The item at the top of the stack. */
static sessile_status read_item(builder *b, size_t at)
{
    lua_State *L = b->L;
    sessile_state_item *item = &b->items[at];
    const lua_view *view = lua_view_test(L, -1);

    memset(item, 0, sizeof *item);
    if (view) {
        if (view->box != b->box)
            return refuse(b->err, "message %zu belongs to another state", at + 1);
        item->index = view->index;
        return SESSILE_OK;
    }
    item->index = SIZE_MAX;
    if (!lua_istable(L, -1))
        return refuse(b->err, "message %zu of the list is no message (%s)", at + 1,
                      name_of(L, -1));
    return read_new(b, at, lua_gettop(L), item);
}

static sessile_status rebuild_range(lua_State *L, lua_box *box, size_t count,
                                    sessile_error *err)
{
    sessile_state_item *items = lua_newuserdatauv(L, count * sizeof *items + 1, 0);
    size_t i;
    memset(items, 0, count * sizeof *items);
    for (i = 0; i < count; i++)
        items[i].index = i;
    return state_rebuild(box->state, items, count, err);
}

/* The table at index is a list of messages: the whole new context. */
static sessile_status rebuild(lua_State *L, lua_box *box, int index, sessile_error *err)
{
    builder b = {L, box, NULL, lua_rawlen(L, index), 0, 0, err};
    size_t keys = 0, i;

    lua_pushnil(L);
    while (lua_next(L, index)) {
        lua_pop(L, 1);
        keys++;
        if (lua_type(L, -1) == LUA_TSTRING)
            return refuse(err,
                          "it returned a table with the field '%.40s', which is no list "
                          "of messages",
                          lua_tostring(L, -1));
    }
    if (keys != b.count)
        return refuse(err, "it returned a list of messages with holes");
    lua_box_charge(L, box, 64 * b.count);
    b.items = lua_newuserdatauv(L, b.count * sizeof *b.items + 1, 0);
    lua_newtable(L);
    b.anchors = lua_gettop(L);
    for (i = 0; i < b.count; i++) {
        sessile_status status;
        lua_rawgeti(L, index, (lua_Integer)i + 1);
        if ((status = read_item(&b, i)))
            return status;
        lua_pop(L, 1);
    }
    return state_rebuild(box->state, b.items, b.count, err);
}

static sessile_status take_list(lua_State *L, lua_box *box, int index, sessile_error *err)
{
    const lua_messages *list = lua_messages_test(L, index);
    if (list) {
        if (list->box != box)
            return refuse(err, "it returned the messages of another state");
        if (list->count == state_count(box->state))
            return SESSILE_OK; /* the state's own list: the state as edited */
        return rebuild_range(L, box, list->count, err);
    }
    if (!lua_istable(L, index))
        return refuse(err, "its messages are a %s, not a list", name_of(L, index));
    return rebuild(L, box, index, err);
}

static sessile_status take_result(lua_State *L, lua_box *box, int state_index, int result,
                                  sessile_error *err)
{
    if (result == 0 || lua_isnoneornil(L, result) || lua_rawequal(L, result, state_index))
        return SESSILE_OK;
    if (lua_messages_test(L, result))
        return take_list(L, box, result, err);
    if (!lua_istable(L, result))
        return refuse(
            err, "it returned %s%s: return nothing, the state, or a list of messages",
            lua_type(L, result) == LUA_TUSERDATA ? "" : "a ", name_of(L, result));
    lua_pushliteral(L, "messages");
    if (lua_rawget(L, result) != LUA_TNIL)
        return take_list(L, box, lua_gettop(L), err);
    return take_list(L, box, result, err);
}

/* Writes the vars back, if the script has read or set them and they differ. */
static sessile_status keep_vars(lua_State *L, lua_box *box, int state_index,
                                sessile_error *err)
{
    sessile_slice text;
    int too_much;
    if (lua_getiuservalue(L, state_index, BOX_VARS) == LUA_TNIL)
        return SESSILE_OK;
    if (!lua_json_bounded(L, -1, 0, TEXT_MAX, &too_much)) {
        (void)refuse(err, "vars: %s", lua_tostring(L, -1));
        return as_limit(too_much, err);
    }
    lua_getiuservalue(L, state_index, BOX_VARS_TEXT);
    if (lua_rawequal(L, -1, -2))
        return SESSILE_OK;
    text.data = lua_tolstring(L, -2, &text.size);
    return state_set_vars(box->state, text, err);
}

sessile_status lua_state_result(lua_State *L, int state_index, int result,
                                sessile_error *err)
{
    int top = lua_gettop(L);
    lua_box *box = lua_box_test(L, state_index);
    sessile_status status;

    state_index = lua_absindex(L, state_index);
    if (result != 0)
        result = lua_absindex(L, result);
    luaL_checkstack(L, 16, NULL);
    if (!box || !box->state)
        return refuse(err, "the state has ended");
    status = take_result(L, box, state_index, result, err);
    if (!status)
        status = keep_vars(L, box, state_index, err);
    lua_settop(L, top);
    return status;
}
