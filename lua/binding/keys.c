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
    sessile_slice url = binding_check_bytes(L, 1);
    sessile_store_options options;
    sessile_error err;
    lua_settop(L, 2);
    if (strlen(url.data) != url.size)
        return binding_zero_byte(L);
    binding_store_options(L, 2, &options);
    return binding_done(L, sessile_keys_init(url.data, &options, &err), &err);
}

#define KEYS(...) BINDING_FIELD(sessile_keys, __VA_ARGS__)
static const struct binding_row plain_row = BINDING_ROW(
    sessile_keys, NULL, KEYS("sealed", BOOLEAN, sealed), KEYS("logs", INTEGER, logs));

#define EPOCH(...) BINDING_FIELD(sessile_keys_epoch, __VA_ARGS__)
static const struct binding_row epoch_row =
    BINDING_ROW(sessile_keys_epoch, NULL, EPOCH("epoch", INTEGER, epoch),
                EPOCH("logs", INTEGER, logs));

static void more_of_sealed(lua_State *L, const void *row)
{
    const sessile_keys *keys = row;
    binding_push_rows(L, &epoch_row, keys->epochs, keys->epoch_count);
    lua_setfield(L, -2, "epochs");
}

static const struct binding_row sealed_row = BINDING_ROW(
    sessile_keys, more_of_sealed, KEYS("sealed", BOOLEAN, sealed),
    KEYS("logs", INTEGER, logs), KEYS("suite", TEXT, suite), KEYS("kdf", TEXT, kdf),
    KEYS("kdf_ops", INTEGER, kdf_ops), KEYS("kdf_mem", INTEGER, kdf_mem),
    KEYS("users", INTEGER, users), KEYS("user_logs", INTEGER, user_logs),
    KEYS("old_logs", INTEGER, old_logs), KEYS("odd_logs", INTEGER, odd_logs),
    BINDING_ENUM(sessile_keys, "source", key_source, binding_key_sources));

/* store:keys() -> {sealed, suite, kdf, …, epochs = {{epoch, logs}, …}} */
int binding_store_keys(lua_State *L, struct binding_store *store)
{
    sessile_keys *keys = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_keys_status(store->handle, &keys, &got.err);
    return binding_result_row(L, &got, keys && keys->sealed ? &sealed_row : &plain_row,
                              keys);
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
    return binding_done_count(
        L, sessile_keys_rotate(store->handle, &options, &epoch, &err), &epoch, &err);
}

/* store:forget(user) -> how many sessions could be read until now */
int binding_store_forget(lua_State *L, struct binding_store *store)
{
    sessile_slice user = binding_check_bytes(L, 2);
    sessile_error err;
    uint64_t sessions;
    return binding_done_count(L, sessile_forget(store->handle, user, &sessions, &err),
                              &sessions, &err);
}

/* ------------------------------------------------------------------ resealing */

static void more_of_reseal(lua_State *L, const void *row)
{
    const sessile_reseal_state *state = row;
    binding_set_failure(L, state->log, &state->why);
}

#define RESEAL(...) BINDING_FIELD(sessile_reseal_state, __VA_ARGS__)
static const struct binding_row reseal_row =
    BINDING_ROW(sessile_reseal_state, more_of_reseal, RESEAL("logs", INTEGER, logs),
                RESEAL("seen", INTEGER, seen), RESEAL("resealed", INTEGER, resealed),
                RESEAL("forgotten", INTEGER, forgotten),
                RESEAL("failed", INTEGER, failed), RESEAL("dropped", INTEGER, dropped));

/* step() -> done, state; nil, message, code */
static int reseal_step(lua_State *L, struct binding_child *reseal)
{
    sessile_reseal_state state;
    sessile_error err;
    return binding_stepped(L, sessile_reseal_step(reseal->handle, &state, &err),
                           &reseal_row, &state, &err);
}

BINDING_FREE(reseal_free, sessile_reseal_free)

const struct binding_child_class binding_reseal_class = {
    "sessile.core.Reseal", "reseal", reseal_free, {{"step", reseal_step}}};

/* store:reseal([suite]) -> a reseal to be stepped */
int binding_store_reseal(lua_State *L, struct binding_store *store)
{
    const char *suite = luaL_optstring(L, 2, NULL);
    struct binding_child *reseal = binding_child_new(L, &binding_reseal_class, store);
    sessile_reseal *handle;
    sessile_error err;
    if (sessile_reseal_begin(&handle, store->handle, suite, &err))
        return binding_fail(L, &err);
    return binding_child_opened(reseal, handle);
}
