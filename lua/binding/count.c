/*
 * count.c: tokens of texts and messages, and the host's own counter.
 *
 * A counter is called from inside an engine's call, while the state that made that call
 * is busy: so it has a coroutine of its own, in which nothing else runs. It may not
 * yield.
 */
#include <string.h>
#include "binding.h"

struct counter {
    lua_State *thread; /* a function at its bottom */
};

static int64_t host_count(void *ud, const char *text, size_t size)
{
    struct counter *counter = ud;
    lua_State *T = counter->thread;
    int64_t n = -1;
    if (lua_gettop(T) != 1 || !lua_checkstack(T, 4))
        return -1; /* it is counting: it has called the engine itself */
    lua_pushvalue(T, 1);
    lua_pushlstring(T, text, size);
    if (lua_pcall(T, 1, 1, 0) == LUA_OK) {
        int whole = 0;
        lua_Integer given = lua_tointegerx(T, -1, &whole);
        n = whole && given >= 0 ? (int64_t)given : -1;
    }
    lua_settop(T, 1);
    return n;
}

void binding_counter(lua_State *L, int table, sessile_store_options *out)
{
    struct counter *counter;
    if (!lua_istable(L, table)) {
        lua_pushnil(L);
        return;
    }
    if (lua_getfield(L, table, "count") == LUA_TNIL)
        return;
    counter = lua_newuserdatauv(L, sizeof *counter, 1);
    counter->thread = lua_newthread(L);
    lua_pushvalue(L, -3);
    lua_xmove(L, counter->thread, 1);
    lua_setiuservalue(L, -2, 1); /* the thread lives as long as the counter */
    lua_remove(L, -2);
    out->count = host_count;
    out->count_ud = counter;
}

int binding_count_options(lua_State *L, int table, sessile_count_options *out)
{
    int failed;
    sessile_count_options_init(out);
    if (!lua_istable(L, table))
        return 0;
    failed = binding_field_json(L, table, "tools", &out->tools);
    if (failed)
        return failed;
    out->model = binding_field_bytes(L, table, "model");
    out->system = binding_field_bytes(L, table, "system");
    out->at = binding_field_id(L, table, "at");
    return 0;
}

static int push_count(lua_State *L, const sessile_tokens *tokens)
{
    lua_pushinteger(L, (lua_Integer)tokens->tokens);
    binding_push_tokens(L, tokens);
    return 2;
}

/* Why an encoding was passed over, in the table at the top. */
static void set_why(lua_State *L, sessile_store *store)
{
    char why[512];
    sessile_encoding_error(store, why, sizeof why);
    if (*why) {
        lua_pushstring(L, why);
        lua_setfield(L, -2, "missing");
    }
}

/* store:count(text) -> n, {tokens, low, high, source, missing} */
int binding_count(lua_State *L, struct binding_store *store)
{
    sessile_slice text;
    sessile_tokens tokens;
    sessile_error err;
    text.data = luaL_checklstring(L, 2, &text.size);
    if (sessile_count_text(store->handle, text, &tokens, &err))
        return binding_fail(L, &err);
    push_count(L, &tokens);
    set_why(L, store->handle);
    return 2;
}

/* store:count_messages(list, {model, tools, system}) -> n, {tokens, low, high, source,
 * missing, each} */
int binding_count_messages(lua_State *L, struct binding_store *store)
{
    sessile_count_options options;
    sessile_slice *texts;
    sessile_tokens *each, tokens;
    sessile_error err;
    lua_Unsigned count, i;
    int failed, kept;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    failed = binding_count_options(L, 3, &options);
    if (failed)
        return failed;
    count = lua_rawlen(L, 2);
    texts = lua_newuserdatauv(L, (size_t)count * (sizeof *texts + sizeof *each) + 1, 0);
    each = (sessile_tokens *)(texts + count);
    lua_newtable(L); /* keeps what the messages were written as */
    kept = lua_gettop(L);
    for (i = 0; i < count; i++) {
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        failed = binding_json(L, -1, 0, "message", &texts[i]);
        if (failed)
            return failed;
        lua_rawseti(L, kept, (lua_Integer)i + 1);
        lua_settop(L, kept);
    }
    if (sessile_count_messages(store->handle, &options, texts, (size_t)count, each,
                               &tokens, &err))
        return binding_fail(L, &err);
    push_count(L, &tokens);
    set_why(L, store->handle);
    lua_newtable(L);
    for (i = 0; i < count; i++) {
        binding_push_tokens(L, &each[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "each");
    return 2;
}
