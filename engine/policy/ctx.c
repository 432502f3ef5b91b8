/*
 * ctx.c: ctx, what a policy can read and ask apart from its state.
 *
 * Owns the script's only clock, its only random numbers, its log and its access to a
 * model. Must never return anything that differs in a second run of the same turn. Must
 * never call the model: it yields the request, and the caller of the pipeline answers.
 */
#include "policy/pipeline.h"

#include <string.h>
#include <lauxlib.h>
#include "base/names.h"
#include "base/text.h"
#include "policy/lua_json.h"
#include "policy/lua_box.h"
#include "proposal/state.h"

/* Bytes of log lines kept from one pipeline. */
#define LOG_MAX 16384

/* A model costs money, not gas: no policy has a reason to ask it more often than this. */
#define REQUESTS_MAX 32

static const char context_key;

policy_pipeline *ctx_pipeline(lua_State *L)
{
    policy_pipeline *pl = vm_of(L)->pipeline;
    if (!pl)
        luaL_error(L, "ctx cannot be used outside of a hook");
    return pl;
}

/* ------------------------------------------------------------------ small things */

static uint64_t read_u64(const unsigned char *at)
{
    uint64_t n = 0;
    int i;
    for (i = 7; i >= 0; i--)
        n = n << 8 | at[i];
    return n;
}

/* Seeds with BLAKE2b(session id, turn's id, policy's hash): runs of the same turn agree.
 */
static void seed(lua_State *L, policy_pipeline *pl, pipeline_random *r)
{
    const char *hash = pl->policy->steps[pl->step].info.hash;
    unsigned char digest[32];
    char turn[SESSILE_KEY_SIZE];
    const char *text;
    size_t size;
    int i;

    key_print((sessile_key){pl->setup.turn, 0}, turn);
    lua_pushlstring(L, pl->setup.session_id.data ? pl->setup.session_id.data : "",
                    pl->setup.session_id.size);
    lua_pushstring(L, turn);
    lua_pushstring(L, hash);
    lua_concat(L, 3);
    text = lua_tolstring(L, -1, &size);
    hash256(digest, text, size, NULL, 0);
    lua_pop(L, 1);
    for (i = 0; i < 4; i++)
        r->s[i] = read_u64(digest + 8 * i);
    r->s[0] |= 1; /* all zeros is the one state that never moves */
    r->seeded = 1;
}

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

/* xoshiro256** by Blackman and Vigna (prng.di.unimi.it), public domain algorithm. */
static uint64_t draw(pipeline_random *r)
{
    uint64_t *s = r->s, result = rotate(s[1] * 5, 7) * 9, t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotate(s[3], 45);
    return result;
}

/* ctx.random(n): an integer from 1 to n; without n a number from 0 up to 1. */
static int context_random(lua_State *L)
{
    policy_pipeline *pl = ctx_pipeline(L);
    pipeline_random *r = &pl->random[pl->step];
    uint64_t n, limit, value;

    if (!r->seeded)
        seed(L, pl, r);
    if (lua_isnoneornil(L, 1)) {
        lua_pushnumber(L, (lua_Number)(draw(r) >> 11) * 0x1p-53);
        return 1;
    }
    luaL_argcheck(L, luaL_checkinteger(L, 1) >= 1, 1, "must be 1 or more");
    n = (uint64_t)lua_tointeger(L, 1);
    limit = UINT64_MAX - UINT64_MAX % n; /* values beyond would favour the small ones */
    do
        value = draw(r);
    while (value >= limit);
    lua_pushinteger(L, (lua_Integer)(value % n) + 1);
    return 1;
}

static int context_count(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    vm_charge(L, size / 2 + 1);
    lua_pushinteger(L, state_count_text(ctx_pipeline(L)->state, text, size).tokens);
    return 1;
}

static int context_log(lua_State *L)
{
    policy_pipeline *pl = ctx_pipeline(L);
    int i, n = lua_gettop(L);
    size_t size, k;
    const char *text;
    luaL_Buffer line;

    luaL_buffinit(L, &line);
    for (i = 1; i <= n; i++) {
        if (i > 1)
            luaL_addchar(&line, ' ');
        library_text(L, i, &size);
        vm_charge(L, size / 4 + 1);
        luaL_addvalue(&line);
    }
    luaL_pushresult(&line);
    text = lua_tolstring(L, -1, &size);
    if (pl->log.size >= LOG_MAX)
        return 0;
    if (size > LOG_MAX - pl->log.size)
        size = utf8_floor(text, size, LOG_MAX - pl->log.size);
    for (k = 0; k < size; k++)
        buf_putc(&pl->log,
                 (unsigned char)text[k] < 0x20 || text[k] == 0x7f ? ' ' : text[k]);
    buf_putc(&pl->log, '\n');
    return 0;
}

/* ------------------------------------------------------------------ the model */

/* A message view in a request is sent as what a model needs of it. */
static void push_sendable(lua_State *L, int index)
{
    static const char *const fields[] = {"role", "content", "author", "tool_calls",
                                         "tool_call_id"};
    size_t i;
    index = lua_absindex(L, index);
    lua_createtable(L, 0, 5);
    for (i = 0; i < sizeof fields / sizeof *fields; i++)
        if (lua_getfield(L, index, fields[i]) == LUA_TNIL)
            lua_pop(L, 1);
        else
            lua_setfield(L, -2, fields[i]);
}

/* Pushes the list of messages at index as plain tables: views become what is sent of
 * them, tables stay what they are. */
static void push_messages(lua_State *L, int index)
{
    lua_Integer i, n;
    index = lua_absindex(L, index);
    if (!lua_istable(L, index) && !lua_messages_test(L, index))
        luaL_error(L, "ctx.model: messages is a list of messages, got %s",
                   luaL_typename(L, index));
    n = luaL_len(L, index);
    vm_charge(L, 8 * (uint64_t)n + 1);
    lua_newtable(L);
    lua_json_mark_array(L, -1);
    for (i = 1; i <= n; i++) {
        lua_geti(L, index, i);
        if (lua_view_test(L, -1)) {
            push_sendable(L, -1);
            lua_remove(L, -2);
        } else if (!lua_istable(L, -1)) {
            luaL_error(L, "ctx.model: messages[%I] is a %s, not a message",
                       (LUAI_UACINT)i, luaL_typename(L, -1));
        }
        lua_rawseti(L, -2, i);
    }
}

static void check_request(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_pushnil(L);
    while (lua_next(L, 1)) {
        const char *key = lua_type(L, -2) == LUA_TSTRING ? lua_tostring(L, -2) : "?";
        if (strcmp(key, "messages") != 0 && strcmp(key, "max_tokens") != 0 &&
            strcmp(key, "purpose") != 0 && strcmp(key, "model") != 0)
            luaL_error(
                L, "ctx.model takes messages, max_tokens, purpose and model, not '%s'",
                key);
        lua_pop(L, 1);
    }
}

/* Sets field `name` of the table at the top to the request's, when it has one. */
static void copy_field(lua_State *L, const char *name, int type)
{
    int is_integer;
    lua_pushstring(L, name);
    if (lua_rawget(L, 1) == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    if (lua_type(L, -1) != type)
        luaL_error(L, "ctx.model: %s is a %s, got %s", name, lua_typename(L, type),
                   luaL_typename(L, -1));
    if (type == LUA_TNUMBER && !lua_isinteger(L, -1)) {
        lua_Integer n = lua_tointegerx(L, -1, &is_integer);
        if (!is_integer) /* a share of a window */
            n = lua_tonumber(L, -1) >= 1 && lua_tonumber(L, -1) < 9e15
                    ? (lua_Integer)lua_tonumber(L, -1)
                    : 0;
        lua_pop(L, 1);
        lua_pushinteger(L, n);
    }
    lua_setfield(L, -2, name);
}

/* The coroutine continues: the arguments of resume are the answer, or nil and a
 * reason. */
static int model_answered(lua_State *L, int status, lua_KContext before)
{
    (void)status;
    return lua_gettop(L) - (int)before;
}

static int context_model(lua_State *L)
{
    policy_pipeline *pl = ctx_pipeline(L);
    if (!lua_isyieldable(L))
        return luaL_error(L, "ctx.model cannot be used here");
    lua_settop(L, 1);
    check_request(L);
    if (pl->asked >= REQUESTS_MAX) {
        lua_pushnil(L);
        lua_pushfstring(L, "a pipeline may ask the model %d times", REQUESTS_MAX);
        return 2;
    }
    lua_createtable(L, 0, 4);
    lua_pushliteral(L, "messages");
    lua_rawget(L, 1);
    push_messages(L, -1);
    lua_setfield(L, 2, "messages");
    lua_settop(L, 2);
    copy_field(L, "max_tokens", LUA_TNUMBER);
    copy_field(L, "purpose", LUA_TSTRING);
    copy_field(L, "model", LUA_TSTRING);
    if (!lua_json_text(L, 2, 0, (size_t)pl->policy->limits.result))
        return luaL_error(L, "ctx.model: %s", lua_tostring(L, -1));
    lua_replace(L, 1);
    lua_settop(L, 1);
    pl->asked++;
    pl->asks_memory = 0;
    return lua_yieldk(L, 1, 0, model_answered);
}

/* ------------------------------------------------------------------ ctx */

enum {
    FIELD_OPTIONS = 1,
    FIELD_SESSION,
    FIELD_REASON,
    FIELD_INSTRUCTIONS,
    FIELD_MEMORY,
    FIELD_NOW
};

static void push_slice(lua_State *L, sessile_slice text)
{
    lua_pushlstring(L, text.data ? text.data : "", text.size);
}

static void push_options(lua_State *L, const policy_pipeline *pl)
{
    const char *options = pl->policy->steps[pl->step].options;
    if (pipeline_get_slot(L, pl, SLOT_OPTIONS) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    lua_json_push(L, options, strlen(options));
    lua_json_freeze(L, -1);
    lua_pushvalue(L, -1);
    pipeline_set_slot(L, pl, SLOT_OPTIONS);
}

static void push_session(lua_State *L, const policy_pipeline *pl)
{
    const policy_setup *setup = &pl->setup;
    if (pipeline_get_slot(L, pl, SLOT_SESSION) != LUA_TNIL)
        return;
    lua_pop(L, 1);
    lua_createtable(L, 0, 4);
    push_slice(L, setup->session_id);
    lua_setfield(L, -2, "id");
    push_slice(L, setup->agent);
    lua_setfield(L, -2, "agent");
    push_slice(L, setup->title);
    lua_setfield(L, -2, "title");
    if (setup->metadata.size)
        lua_json_push(L, setup->metadata.data, setup->metadata.size);
    else
        lua_newtable(L);
    lua_setfield(L, -2, "metadata");
    lua_json_freeze(L, -1);
    lua_pushvalue(L, -1);
    pipeline_set_slot(L, pl, SLOT_SESSION);
}

static int context_index(lua_State *L)
{
    policy_pipeline *pl = ctx_pipeline(L);
    lua_settop(L, 2);
    if (lua_type(L, 2) != LUA_TSTRING)
        return 0;
    if (lua_rawget(L, lua_upvalueindex(1)) != LUA_TNUMBER)
        return 1; /* a function, or nil */
    switch (lua_tointeger(L, -1)) {
    case FIELD_OPTIONS:
        push_options(L, pl);
        break;
    case FIELD_SESSION:
        push_session(L, pl);
        break;
    case FIELD_REASON:
        lua_pushstring(L, reason_name(pl->reason));
        break;
    case FIELD_INSTRUCTIONS:
        if (pl->setup.instructions.size)
            push_slice(L, pl->setup.instructions);
        else
            lua_pushnil(L);
        break;
    case FIELD_MEMORY:
        if (pl->setup.has_memory)
            ctx_memory_push(L);
        else
            lua_pushnil(L);
        break;
    default:
        lua_pushinteger(L, pl->setup.now_ms);
    }
    return 1;
}

static int context_newindex(lua_State *L)
{
    return luaL_error(L, "ctx is read-only");
}

static int context_tostring(lua_State *L)
{
    lua_pushliteral(L, "ctx");
    return 1;
}

void ctx_open(lua_State *L)
{
    static const luaL_Reg of_context[] = {
        {"__newindex", context_newindex}, {"__tostring", context_tostring}, {NULL, NULL}};
    static const luaL_Reg functions[] = {
        {"random", context_random},      {"count", context_count}, {"log", context_log},
        {"sorted_pairs", library_pairs}, {"model", context_model}, {NULL, NULL},
    };
    static const char *const fields[] = {NULL,           "options", "session", "reason",
                                         "instructions", "memory",  "now"};

    lua_newuserdatauv(L, 1, 0);
    lua_createtable(L, 0, 4);
    luaL_setfuncs(L, of_context, 0);
    luaL_newlib(L, functions);
    lua_box_set_index(L, fields, FIELD_NOW, context_index);
    lua_pushliteral(L, "ctx");
    lua_setfield(L, -2, "__name");
    lua_setmetatable(L, -2);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &context_key);
    ctx_memory_open(L);
}

void ctx_push(lua_State *L)
{
    lua_rawgetp(L, LUA_REGISTRYINDEX, &context_key);
}
