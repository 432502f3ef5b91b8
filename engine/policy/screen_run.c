/*
 * screen_run.c: the function of a screen, run on one item.
 *
 * Owns the item and ctx that a script sees, and the reading of what it returns. Must
 * never leave an item readable after the run, or put what a script raised, which can be
 * the text itself, into an error.
 */
#include "policy/screen.h"

#include <string.h>
#include <lauxlib.h>

#include "codec/message.h"
#include "policy/chunk.h"
#include "policy/lua_box.h"
#include "policy/lua_json.h"

/* Registry keys: the metatable of items, the item of this run. */
static const char metatable_key, item_key;

enum {
    FIELD_KIND = 1,
    FIELD_ROLE,
    FIELD_SOURCE,
    FIELD_AUTHOR,
    FIELD_KEY,
    FIELD_SIZE,
    FIELD_TEXT,
    FIELD_URLS,
    FIELD_MATCHES
};

typedef struct run {
    const struct screen_script *script;
    const screen_sight *sight;
    screen_answer *answer;
} run;

/* ------------------------------------------------------------------ the item */

static void push_slice(lua_State *L, sessile_slice text)
{
    vm_charge_work(L, text.size);
    lua_pushlstring(L, text.size ? text.data : "", text.size);
}

static void push_urls(lua_State *L, const screen_sight *sight)
{
    size_t i;
    lua_createtable(L, (int)sight->url_count, 0);
    for (i = 0; i < sight->url_count; i++) {
        push_slice(L, sight->urls[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
}

/* {pattern = {{from, to}, …}}, of those that matched. */
static void push_matches(lua_State *L, const screen_sight *sight)
{
    const pattern_set *set = sight->patterns;
    const pattern_hits *hits = sight->hits;
    size_t count = set ? pattern_set_count(set) : 0, i, hit = 0;

    vm_charge(L, 8 * hits->count + count);
    lua_newtable(L);
    for (i = 0; i < count; i++) {
        lua_Integer n = 0;
        if (!(hits->matched >> i & 1))
            continue;
        lua_newtable(L);
        for (; hit < hits->count && hits->list[hit].pattern == i; hit++) {
            lua_createtable(L, 2, 0);
            lua_pushinteger(L, (lua_Integer)hits->list[hit].from + 1);
            lua_rawseti(L, -2, 1);
            lua_pushinteger(L, (lua_Integer)hits->list[hit].to);
            lua_rawseti(L, -2, 2);
            lua_rawseti(L, -2, ++n);
        }
        lua_setfield(L, -2, pattern_set_name(set, i));
    }
}

static void push_field(lua_State *L, const screen_sight *sight, lua_Integer field)
{
    const sessile_screen_item *item = sight->item;
    switch (field) {
    case FIELD_KIND:
        lua_pushstring(L, screen_kind_name(item->kind));
        break;
    case FIELD_ROLE:
        lua_pushstring(L, item->role == SESSILE_ROLE_NONE ? NULL : role_name(item->role));
        break;
    case FIELD_SOURCE:
        lua_pushstring(L, screen_source_name(item->source));
        break;
    case FIELD_AUTHOR:
        push_slice(L, item->author);
        break;
    case FIELD_KEY:
        push_slice(L, item->key);
        break;
    case FIELD_SIZE:
        lua_pushinteger(L, (lua_Integer)sight->text.size);
        break;
    case FIELD_TEXT:
        push_slice(L, sight->text);
        break;
    case FIELD_URLS:
        push_urls(L, sight);
        break;
    default:
        push_matches(L, sight);
    }
}

/* Makes a field when it is read first, and keeps it with the item. */
static int item_index(lua_State *L)
{
    const screen_sight **sight = lua_touserdata(L, 1);

    lua_settop(L, 2);
    if (lua_type(L, 2) != LUA_TSTRING || !lua_box_is(L, 1, &metatable_key))
        return 0;
    if (!*sight)
        return luaL_error(L, "this item has ended");
    lua_getiuservalue(L, 1, 1);
    lua_pushvalue(L, 2);
    if (lua_rawget(L, 3) != LUA_TNIL)
        return 1;
    lua_pushvalue(L, 2);
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNUMBER)
        return 0;
    push_field(L, *sight, lua_tointeger(L, -1));
    if (lua_istable(L, -1))
        lua_json_freeze(L, -1);
    lua_pushvalue(L, 2);
    lua_pushvalue(L, -2);
    lua_rawset(L, 3);
    return 1;
}

static int item_newindex(lua_State *L)
{
    return luaL_error(L, "an item can only be read");
}

static void push_item(lua_State *L, const screen_sight *sight)
{
    static const char *const names[] = {NULL,  "kind", "role", "source", "author",
                                        "key", "size", "text", "urls",   "matches"};
    const screen_sight **item = lua_newuserdatauv(L, sizeof(void *), 1);

    *item = sight;
    lua_newtable(L);
    lua_setiuservalue(L, -2, 1);
    if (lua_box_metatable(L, &metatable_key, "item")) {
        lua_newtable(L);
        lua_box_set_index(L, names, FIELD_MATCHES, item_index);
        lua_pushcfunction(L, item_newindex);
        lua_setfield(L, -2, "__newindex");
    }
    lua_setmetatable(L, -2);
    lua_pushvalue(L, -1);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &item_key);
}

/* After the run: what the script kept of the item says nothing any more. */
static void end_item(lua_State *L)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &item_key) == LUA_TUSERDATA)
        *(const screen_sight **)lua_touserdata(L, -1) = NULL;
    lua_pop(L, 1);
    lua_pushnil(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &item_key); /* the key is there: no allocation */
}

static void push_ctx(lua_State *L, const chain_step *step)
{
    lua_createtable(L, 0, 1);
    lua_json_push(L, step->options, strlen(step->options));
    lua_setfield(L, -2, "options");
    lua_json_freeze(L, -1);
}

/* ------------------------------------------------------------------ the answer */

static void read_spans(lua_State *L, run *r, int list)
{
    size_t size = r->sight->text.size, n, i;

    if (lua_json_thaw(L, list))
        lua_replace(L, list);
    if (!lua_istable(L, list))
        luaL_error(L, "its third result is a list of places, as item.matches.NAME");
    n = lua_rawlen(L, list);
    vm_charge(L, n);
    for (i = 1; i <= n; i++) {
        lua_Integer from = 0, to = 0;
        lua_rawgeti(L, list, (lua_Integer)i);
        if (!lua_istable(L, -1))
            luaL_error(L, "a place is {from, to}");
        lua_json_thaw(L, -1); /* the table behind one of ours is then on top */
        lua_rawgeti(L, -1, 1);
        from = lua_tointeger(L, -1);
        lua_rawgeti(L, -2, 2);
        to = lua_tointeger(L, -1);
        if (from < 1 || to < from || (lua_Unsigned)to > size)
            luaL_error(L, "place %d is not in the text", (int)i);
        if (view_spans_add(&r->answer->spans, (size_t)from - 1, (size_t)to, NULL))
            luaL_error(L, "not enough memory");
        lua_settop(L, list);
    }
    r->answer->has_spans = 1;
}

/* The results at index `first` and the two behind it. */
static void read_answer(lua_State *L, run *r, int first)
{
    screen_answer *answer = r->answer;
    int verdict = SESSILE_SCREEN_PASS;
    const char *rule;
    size_t size;

    if (!lua_isnil(L, first)) {
        verdict = lua_type(L, first) == LUA_TSTRING
                      ? screen_verdict_of(lua_tostring(L, first))
                      : -1;
        if (verdict < 0)
            luaL_error(L, "a screen returns \"pass\", \"flag\", \"redact\" or "
                          "\"refuse\", or nothing");
    }
    if (!lua_isnil(L, first + 1)) {
        rule = lua_type(L, first + 1) == LUA_TSTRING ? lua_tolstring(L, first + 1, &size)
                                                     : "";
        if (!rule[0] || size > SCREEN_RULE_MAX || strlen(rule) != size)
            luaL_error(L, "its second result is the name of a rule");
        memcpy(answer->rule, rule, size + 1);
    }
    if (!lua_isnil(L, first + 2) && verdict == SESSILE_SCREEN_REDACT)
        read_spans(L, r, first + 2);
    answer->verdict = (sessile_screen_verdict)verdict;
}

static int call_screen(lua_State *L)
{
    run *r = lua_touserdata(L, 1);
    sessile_policy *chain = r->script->chain;

    chunk_push_function(L, chain, 0, "screen");
    push_item(L, r->sight);
    push_ctx(L, &chain->steps[0]);
    lua_call(L, 2, 3);
    read_answer(L, r, lua_gettop(L) - 2);
    return 0;
}

sessile_status screen_script_run(void *ref, const screen_sight *sight,
                                 screen_answer *answer, sessile_error *err)
{
    const struct screen_script *script = ref;
    sessile_policy *chain = script->chain;
    run r = {script, sight, answer};
    sessile_error why;
    sessile_status status;
    vm *v;

    status = chain_take_vm(chain, &v, err);
    if (status)
        return status;
    vm_enter(v);
    if (vm_call(v, call_screen, &r, 0, chain->steps[0].file, &why) != LUA_OK) {
        status = v->starved ? fail_nomem(err) : SESSILE_POLICY;
        if (status == SESSILE_POLICY && (v->spent || script->verbose))
            (void)fail(err, status, "%s", why.message);
        else if (status == SESSILE_POLICY)
            (void)fail(err, status, "%s: it raised an error",
                       v->where[0] ? v->where : chain->steps[0].file);
    }
    end_item(v->L);
    vm_leave(v);
    chain_return_vm(chain, v);
    return status;
}
