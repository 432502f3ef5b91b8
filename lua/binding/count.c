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
    if (binding_raw_field(L, table, "count") == LUA_TNIL)
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

#define COUNT(...) BINDING_FIELD(sessile_count_options, __VA_ARGS__)
static const struct binding_field count_fields[] = BINDING_FIELDS(
    COUNT("model", SLICE, model), COUNT("system", SLICE, system), COUNT("at", ID, at));

int binding_count_options(lua_State *L, int table, sessile_count_options *out)
{
    sessile_count_options_init(out);
    binding_get_fields(L, table, count_fields, out);
    return lua_istable(L, table) ? binding_field_json(L, table, "tools", &out->tools) : 0;
}

/* n, {tokens, …, missing}: why the encoding was not used. */
static int push_count(lua_State *L, sessile_store *store, const sessile_tokens *tokens)
{
    char missing[512];
    sessile_encoding_error(store, missing, sizeof missing);
    binding_push_count(L, tokens);
    binding_set_text(L, "missing", missing);
    return 2;
}

/* store:count(text) -> n, {tokens, low, high, source, missing} */
int binding_count(lua_State *L, struct binding_store *store)
{
    sessile_slice text = binding_check_bytes(L, 2);
    sessile_tokens tokens;
    sessile_error err;
    if (sessile_count_text(store->handle, text, &tokens, &err))
        return binding_fail(L, &err);
    return push_count(L, store->handle, &tokens);
}

/* store:count_messages(list, {model, tools, system}) -> n, {tokens, low, high, source,
 * missing, each} */
int binding_count_messages(lua_State *L, struct binding_store *store)
{
    sessile_count_options options;
    sessile_slice *texts;
    sessile_tokens *each, tokens;
    sessile_error err;
    size_t count;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    if (binding_count_options(L, 3, &options) ||
        binding_json_list(L, 2, 0, &texts, &count))
        return 3;
    each = lua_newuserdatauv(L, count * sizeof *each + 1, 0);
    if (sessile_count_messages(store->handle, &options, texts, count, each, &tokens,
                               &err))
        return binding_fail(L, &err);
    push_count(L, store->handle, &tokens);
    lua_newtable(L);
    for (size_t i = 0; i < count; i++) {
        binding_push_tokens(L, &each[i]);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "each");
    return 2;
}
