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

#define KEYS(...) BINDING_FIELD(sessile_keys, __VA_ARGS__)
static const struct binding_row plain_row = {
    sizeof(sessile_keys),
    NULL,
    {KEYS("sealed", BOOLEAN, sealed), KEYS("logs", INTEGER, logs)}};

#define EPOCH(...) BINDING_FIELD(sessile_keys_epoch, __VA_ARGS__)
static const struct binding_row epoch_row = {
    sizeof(sessile_keys_epoch),
    NULL,
    {EPOCH("epoch", INTEGER, epoch), EPOCH("logs", INTEGER, logs)}};

static void more_of_sealed(lua_State *L, const void *row)
{
    const sessile_keys *keys = row;
    binding_set_text(L, "source", binding_key_sources[keys->key_source]);
    binding_push_rows(L, &epoch_row, keys->epochs, keys->epoch_count);
    lua_setfield(L, -2, "epochs");
}

static const struct binding_row sealed_row = {
    sizeof(sessile_keys),
    more_of_sealed,
    {KEYS("sealed", BOOLEAN, sealed), KEYS("logs", INTEGER, logs),
     KEYS("suite", TEXT, suite), KEYS("kdf", TEXT, kdf),
     KEYS("kdf_ops", INTEGER, kdf_ops), KEYS("kdf_mem", INTEGER, kdf_mem),
     KEYS("users", INTEGER, users), KEYS("user_logs", INTEGER, user_logs),
     KEYS("old_logs", INTEGER, old_logs), KEYS("odd_logs", INTEGER, odd_logs)}};

/* store:keys() -> {sealed, suite, kdf, …, epochs = {{epoch, logs}, …}} */
int binding_store_keys(lua_State *L, struct binding_store *store)
{
    sessile_keys *keys = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_keys_status(store->handle, &keys, &got.err);
    if (binding_result_failed(L, &got, keys))
        return 3;
    binding_push_row(L, keys->sealed ? &sealed_row : &plain_row, keys);
    return binding_result_done(&got);
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

#define RESEAL(...) BINDING_FIELD(sessile_reseal_state, __VA_ARGS__)
static const struct binding_row reseal_row = {
    sizeof(sessile_reseal_state),
    NULL,
    {RESEAL("logs", INTEGER, logs), RESEAL("seen", INTEGER, seen),
     RESEAL("resealed", INTEGER, resealed), RESEAL("forgotten", INTEGER, forgotten),
     RESEAL("failed", INTEGER, failed), RESEAL("dropped", INTEGER, dropped)}};

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
    binding_push_row(L, &reseal_row, &state);
    binding_set_failure(L, state.log, &state.why);
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
