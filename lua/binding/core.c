/*
 * core.c: the module sessile.core: opening a store, and the few values that JSON knows
 * and Lua does not.
 *
 * The module is the engine's C interface with Lua's manners; everything a person would
 * call comfort (policies as tables, the model loop, paths with ~) is Lua on top of it, in
 * lua/sessile/. It keeps no state outside the Lua state that loaded it.
 */
#include "binding.h"
#include "policy/lua_json.h"
#include "policy/lua_state.h"
#include "policy/lua_text.h"

/* array(table) -> the same table, to be written as [] even when it is empty */
static int core_array(lua_State *L)
{
    luaL_checktype(L, 1, LUA_TTABLE);
    lua_settop(L, 1);
    lua_json_mark_array(L, 1);
    return 1;
}

/* json(text) -> a value that is written as that text */
static int core_json(lua_State *L)
{
    size_t size;
    const char *text = luaL_checklstring(L, 1, &size);
    lua_json_verbatim(L, text, size);
    return 1;
}

/* text(value) -> its JSON text; nil, message, code */
static int core_text(lua_State *L)
{
    sessile_slice text;
    luaL_checkany(L, 1);
    return binding_json(L, 1, 0, "value", &text) ? 3 : 1;
}

/* plain(value) -> a copy of what a state showed, made of tables that can be changed and
 * gone through. Only for values the engine gave: they are known to be sound JSON. */
static int core_plain(lua_State *L)
{
    sessile_slice text;
    luaL_checkany(L, 1);
    lua_settop(L, 1);
    if (!lua_istable(L, 1))
        return 1;
    if (binding_json(L, 1, 0, "value", &text))
        return 3;
    lua_json_push(L, text.data, text.size);
    return 1;
}

/* count(text) -> its tokens, {tokens, low, high, source} */
static int core_count(lua_State *L)
{
    sessile_slice text = binding_check_bytes(L, 1);
    sessile_tokens tokens;
    sessile_error err;
    if (sessile_count_text(NULL, text, &tokens, &err))
        return binding_fail(L, &err);
    return binding_push_count(L, &tokens);
}

static const luaL_Reg functions[] = {
    {"open", binding_open},
    {"limits", binding_limits},
    {"schemes", binding_schemes},
    {"scheme", binding_scheme},
    {"sorts", binding_sorts},
    {"permissions", binding_permissions},
    {"keys_init", binding_keys_init},
    {"migrate", binding_migrate},
    {"open_records", binding_open_records},
    {"now", binding_now},
    {"random", binding_random},
    {"on_misuse", binding_on_misuse},
    {"config", binding_config},
    {"stays_below", binding_stays_below},
    {"array", core_array},
    {"json", core_json},
    {"text", core_text},
    {"plain", core_plain},
    {"stored", lua_state_stored},
    {"count", core_count},
    {"encoding", binding_encoding},
    {"screens", binding_screens},
    {"audit_check", binding_audit_check},
    {"url_check", binding_url_check},
    {"address_check", binding_address_check},
    {"http_library", binding_http_library},
    {"request", binding_request},
    {"sleep", binding_sleep},
    {NULL, NULL},
};

static const struct binding_child_class *const children[] = {
    &binding_check_class,     &binding_search_class, &binding_encoding_class,
    &binding_reseal_class,    &binding_policy_class, &binding_entries_class,
    &binding_migration_class, &binding_memory_class, &binding_memory_run_class,
    &binding_screens_class,   &binding_audit_class,  &binding_verification_class,
};

BINDING_EXPORT int luaopen_sessile_core(lua_State *L)
{
    luaL_checkversion(L);
    lua_json_open(L);
    lua_state_open(L);
    binding_store_open(L);
    binding_session_open(L);
    binding_run_open(L);
    binding_request_open(L);
    for (size_t i = 0; i < sizeof children / sizeof *children; i++)
        binding_child_register(L, children[i]);
    binding_entries_open(L);
    luaL_newlib(L, functions);
    lua_text_open(L);
    lua_pushlightuserdata(L, NULL);
    lua_setfield(L, -2, "null");
    lua_pushstring(L, sessile_version());
    lua_setfield(L, -2, "version");
    return 1;
}
