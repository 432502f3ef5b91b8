/*
 * line_complete.c: the Tab key: completes the line that is being typed.
 *
 * The reader's function returns a list. The prefix that all its texts share is inserted;
 * if there is none, the texts are shown. Must never let an error of that function, or a
 * result that is not a list, pass through libedit: Tab then does nothing.
 */
#include <lauxlib.h>

#include "command/line.h"

/* Pushes complete(what stands before the cursor), a list of what it may become. */
static int ask_complete(lua_State *L)
{
    reading *r = lua_touserdata(L, 1);
    const LineInfo *line = el_line(r->el);
    lua_pushvalue(L, 2);
    lua_pushlstring(L, line->buffer, (size_t)(line->cursor - line->buffer));
    lua_call(L, 1, 1);
    luaL_checktype(L, -1, LUA_TTABLE);
    return 1;
}

/* How many bytes the texts of the list at the top begin with alike. */
static size_t shared_size(lua_State *L, lua_Integer count)
{
    size_t size = 0;
    for (lua_Integer i = 1; i <= count; i++) {
        size_t length, first_length, same = 0;
        const char *first, *one;
        lua_rawgeti(L, -1, 1);
        lua_rawgeti(L, -2, i);
        first = luaL_checklstring(L, -2, &first_length);
        one = luaL_checklstring(L, -1, &length);
        while (same < length && same < first_length && one[same] == first[same])
            same++;
        size = i == 1 || same < size ? same : size;
        lua_pop(L, 2);
    }
    return size;
}

static int insert_completion(lua_State *L)
{
    reading *r = lua_touserdata(L, 1);
    const LineInfo *line = el_line(r->el);
    size_t typed = (size_t)(line->cursor - line->buffer), same;
    lua_Integer count;
    lua_settop(L, 2);
    count = luaL_len(L, 2);
    same = shared_size(L, count);
    if (same > typed) {
        lua_rawgeti(L, 2, 1);
        lua_pushlstring(L, luaL_checkstring(L, -1) + typed, same - typed);
        el_insertstr(r->el, lua_tostring(L, -1));
    } else if (count > 1) {
        line_say("\r\n");
        for (lua_Integer i = 1; i <= count; i++) {
            lua_rawgeti(L, 2, i);
            line_say(luaL_checkstring(L, -1));
            line_say(i < count ? "  " : "\r\n");
            lua_pop(L, 1);
        }
        lua_pushboolean(L, 1);
        return 1;
    }
    lua_pushboolean(L, 0);
    return 1;
}

unsigned char line_complete(EditLine *el, int unused)
{
    reading *r = line_reading(el);
    lua_State *L = r->L;
    int top = lua_gettop(L), listed = 0, fine;
    (void)unused;
    if (!r->complete || !lua_checkstack(L, 10))
        return CC_ERROR;
    lua_pushcfunction(L, ask_complete);
    lua_pushlightuserdata(L, r);
    lua_pushvalue(L, r->complete);
    fine = lua_pcall(L, 2, 1, 0) == LUA_OK && lua_rawlen(L, -1) > 0;
    if (fine) {
        lua_pushcfunction(L, insert_completion);
        lua_pushlightuserdata(L, r);
        lua_pushvalue(L, -3);
        fine = lua_pcall(L, 2, 1, 0) == LUA_OK;
        listed = fine && lua_toboolean(L, -1);
    }
    lua_settop(L, top);
    return fine ? (unsigned char)(listed ? CC_REDISPLAY : CC_REFRESH) : CC_ERROR;
}
