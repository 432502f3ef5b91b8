/*
 * keys.c: a store's keys: create, change, show, reseal, forget; and the
 * handle of a sealing that is under way.
 *
 * No secret is ever pushed: where one comes from is all that Lua says and is told.
 */
#include <stdint.h>
#include <string.h>
#include "binding.h"

/* The names of sessile_key_source, in its order. */
const char *const binding_key_sources[] = {"default", "plain",  "env",
                                           "file",    "secret", NULL};

/* keys_init(url, options as for open) -> true; nil, message, code */
int binding_keys_init(lua_State *L)
{
    const char *url = luaL_checkstring(L, 1);
    sessile_store_options options;
    sessile_error err;
    lua_settop(L, 2);
    binding_store_options(L, 2, &options);
    return binding_done(L, sessile_keys_init(url, &options, &err), &err);
}

/* store:keys() -> {sealed, suite, kdf, …, epochs = {{epoch, logs}, …}} */
int binding_store_keys(lua_State *L, struct binding_store *store)
{
    struct binding_guard *guard;
    sessile_keys *keys = NULL;
    sessile_error err;
    size_t i;
    guard = binding_guard(L);
    if (sessile_keys_status(store->handle, &keys, &err))
        return binding_fail(L, &err);
    guard->block = keys;
    lua_createtable(L, 0, 12);
    binding_set_boolean(L, "sealed", keys->sealed);
    binding_set_integer(L, "logs", keys->logs);
    if (keys->sealed) {
        binding_set_text(L, "suite", keys->suite);
        binding_set_text(L, "source", binding_key_sources[keys->key_source]);
        binding_set_text(L, "kdf", keys->kdf);
        binding_set_integer(L, "kdf_ops", keys->kdf_ops);
        binding_set_integer(L, "kdf_mem", keys->kdf_mem);
        binding_set_integer(L, "users", keys->users);
        binding_set_integer(L, "user_logs", keys->user_logs);
        binding_set_integer(L, "old_logs", keys->old_logs);
        binding_set_integer(L, "odd_logs", keys->odd_logs);
        lua_createtable(L, (int)keys->epoch_count, 0);
        for (i = 0; i < keys->epoch_count; i++) {
            lua_createtable(L, 0, 2);
            binding_set_integer(L, "epoch", keys->epochs[i].epoch);
            binding_set_integer(L, "logs", keys->epochs[i].logs);
            lua_rawseti(L, -2, (lua_Integer)(i + 1));
        }
        lua_setfield(L, -2, "epochs");
    }
    binding_guard_free(guard);
    return 1;
}

/* store:rotate([{key_source, key, make}]) -> the newest epoch */
int binding_store_rotate(lua_State *L, struct binding_store *store)
{
    sessile_rotate_options options;
    sessile_error err;
    uint64_t epoch;
    memset(&options, 0, sizeof options);
    if (lua_istable(L, 2)) {
        options.new_secret = 1;
        options.key_source =
            (sessile_key_source)binding_one_of(L, 2, "key_source", binding_key_sources);
        options.key = binding_field_string(L, 2, "key");
        options.make_file = binding_field_boolean(L, 2, "make");
    }
    if (sessile_keys_rotate(store->handle, &options, &epoch, &err))
        return binding_fail(L, &err);
    lua_pushinteger(L, (lua_Integer)epoch);
    return 1;
}

/* store:forget(user) -> how many sessions could be read until now */
int binding_store_forget(lua_State *L, struct binding_store *store)
{
    sessile_slice user;
    sessile_error err;
    uint64_t sessions;
    user.data = luaL_checklstring(L, 2, &user.size);
    if (sessile_forget(store->handle, user, &sessions, &err))
        return binding_fail(L, &err);
    lua_pushinteger(L, (lua_Integer)sessions);
    return 1;
}

/* ------------------------------------------------------------------ resealing */

struct binding_reseal {
    sessile_reseal *handle;
    struct binding_store *store;
};

/* store:reseal([suite]) -> a sealing to be stepped */
int binding_store_reseal(lua_State *L, struct binding_store *store)
{
    const char *suite = luaL_optstring(L, 2, NULL);
    struct binding_reseal *reseal;
    sessile_error err;
    reseal = binding_new(L, sizeof *reseal, 1, BINDING_RESEAL);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    if (sessile_reseal_begin(&reseal->handle, store->handle, suite, &err))
        return binding_fail(L, &err);
    reseal->store = store;
    store->children++;
    return 1;
}

static int reseal_finalize(lua_State *L)
{
    struct binding_reseal *reseal = luaL_checkudata(L, 1, BINDING_RESEAL);
    if (reseal->handle) {
        sessile_reseal_free(reseal->handle);
        reseal->handle = NULL;
        binding_store_release(reseal->store);
    }
    return 0;
}

/* step() -> done, state; nil, message, code */
static int reseal_step(lua_State *L)
{
    struct binding_reseal *reseal = luaL_checkudata(L, 1, BINDING_RESEAL);
    sessile_reseal_state state;
    sessile_status status;
    sessile_error err;
    if (!reseal->handle)
        return binding_closed(L, "sealing");
    status = sessile_reseal_step(reseal->handle, &state, &err);
    if (status && status != SESSILE_NEEDS)
        return binding_fail(L, &err);
    lua_pushboolean(L, status == SESSILE_OK);
    lua_createtable(L, 0, 8);
    binding_set_integer(L, "logs", state.logs);
    binding_set_integer(L, "seen", state.seen);
    binding_set_integer(L, "resealed", state.resealed);
    binding_set_integer(L, "forgotten", state.forgotten);
    binding_set_integer(L, "failed", state.failed);
    binding_set_integer(L, "dropped", state.dropped);
    if (state.log) {
        lua_createtable(L, 0, 3);
        binding_set_text(L, "log", state.log);
        binding_set_text(L, "message", state.why.message);
        lua_pushfstring(L, "E%s", sessile_status_name(state.why.code));
        lua_setfield(L, -2, "code");
        lua_setfield(L, -2, "failure");
    }
    return 2;
}

static int reseal_text(lua_State *L)
{
    struct binding_reseal *reseal = luaL_checkudata(L, 1, BINDING_RESEAL);
    lua_pushfstring(L, "%s%s", BINDING_RESEAL, reseal->handle ? "" : " (closed)");
    return 1;
}

static const luaL_Reg reseal_methods[] = {
    {"step", reseal_step},
    {"close", reseal_finalize},
    {NULL, NULL},
};

void binding_keys_open(lua_State *L)
{
    binding_class(L, BINDING_RESEAL, reseal_methods, reseal_finalize, reseal_text);
}
