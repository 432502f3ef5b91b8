/* access.c: grants, access keys and locks of a store. */
#include <string.h>
#include "binding.h"

#define GRANT(...) BINDING_FIELD(sessile_grant_options, __VA_ARGS__)
static const struct binding_field grant_fields[] =
    BINDING_FIELDS(GRANT("user", SLICE, user), GRANT("holders", SLICE, holders),
                   GRANT("role", TEXT, role), GRANT("session", SLICE, session),
                   GRANT("agent", SLICE, agent), GRANT("owner", SLICE, owner),
                   GRANT("until", INTEGER, until_ms));

/* store:grant({user, holders, role, agents, session, agent, owner, until}) -> id; nil,
 * message, code */
int binding_store_grant(lua_State *L, struct binding_store *store)
{
    sessile_grant_options options;
    sessile_id id;
    sessile_error err;
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_grant_options_init(&options);
    binding_get_fields(L, 2, grant_fields, &options);
    options.agents = binding_field_texts(L, 2, "agents", 1, &options.agent_count);
    sessile_status status = sessile_grant(store->handle, &options, &id, &err);
    return binding_done_id(L, status, &id, &err);
}

static void set_list(lua_State *L, const char *name, const sessile_slice *list,
                     size_t count)
{
    if (!count)
        return;
    lua_createtable(L, (int)count, 0);
    for (size_t i = 0; i < count; i++) {
        lua_pushlstring(L, list[i].data, list[i].size);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, name);
}

static void more_of_grant(lua_State *L, const void *row)
{
    const sessile_grant_row *grant = row;
    set_list(L, "agents", grant->agents, grant->agent_count);
}

#define GRANTED(...) BINDING_FIELD(sessile_grant_row, __VA_ARGS__)
static const struct binding_row granted_row = BINDING_ROW(
    sessile_grant_row, more_of_grant, GRANTED("id", ID, id), GRANTED("user", SLICE, user),
    GRANTED("holders", SLICE, holders), GRANTED("role", SLICE, role),
    GRANTED("session", SLICE, session), GRANTED("agent", SLICE, agent),
    GRANTED("owner", SLICE, owner), GRANTED("by", SLICE, by),
    GRANTED("created", INTEGER, created_ms), GRANTED("until", TIME, until_ms));

/* store:grants() -> {{id, user, holders, role, agents, session, agent, owner, by,
 * created, until}, …}; nil, message, code */
int binding_store_grants(lua_State *L, struct binding_store *store)
{
    sessile_grant_row *rows = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_grants(store->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &granted_row, rows);
}

/* store:ungrant(id) -> true; nil, message, code */
int binding_store_ungrant(lua_State *L, struct binding_store *store)
{
    sessile_error err;
    return binding_done(L, sessile_grant_end(store->handle, binding_check_id(L, 2), &err),
                        &err);
}

/* ------------------------------------------------------------------ access keys */

#define KEY(...) BINDING_FIELD(sessile_access_key_options, __VA_ARGS__)
static const struct binding_field key_fields[] =
    BINDING_FIELDS(KEY("user", SLICE, user), KEY("device", SLICE, device),
                   KEY("label", SLICE, label), KEY("expires", INTEGER, expires_ms));

/* store:access_key({user, roles, agents, device, label, expires}) -> text; nil, message,
 * code */
int binding_store_access_key(lua_State *L, struct binding_store *store)
{
    sessile_access_key_options options;
    char *key = NULL;
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_access_key_options_init(&options);
    binding_get_fields(L, 2, key_fields, &options);
    options.roles = binding_field_texts(L, 2, "roles", 0, &options.role_count);
    options.agents = binding_field_texts(L, 2, "agents", 1, &options.agent_count);
    struct binding_result got = binding_result(L);
    got.status = sessile_access_key(store->handle, &options, &key, &got.err);
    got.count = key ? strlen(key) : 0;
    return binding_result_text(L, &got, key);
}

static void more_of_key(lua_State *L, const void *row)
{
    const sessile_access_key_row *key = row;
    set_list(L, "roles", key->roles, key->role_count);
    set_list(L, "agents", key->agents, key->agent_count);
}

#define KEPT(...) BINDING_FIELD(sessile_access_key_row, __VA_ARGS__)
static const struct binding_row kept_row = BINDING_ROW(
    sessile_access_key_row, more_of_key, KEPT("id", SLICE, id), KEPT("user", SLICE, user),
    KEPT("device", SLICE, device), KEPT("label", SLICE, label), KEPT("by", SLICE, by),
    KEPT("created", INTEGER, created_ms), KEPT("expires", TIME, expires_ms));

/* store:access_keys() -> {{id, user, roles, agents, device, label, by, created, expires},
 * …}; nil, message, code */
int binding_store_access_keys(lua_State *L, struct binding_store *store)
{
    sessile_access_key_row *rows = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_access_keys(store->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &kept_row, rows);
}

/* store:revoke_key(id) -> true; nil, message, code */
int binding_store_revoke_key(lua_State *L, struct binding_store *store)
{
    sessile_error err;
    sessile_slice id = binding_check_bytes(L, 2);
    return binding_done(L, sessile_access_key_revoke(store->handle, id, &err), &err);
}

/* ------------------------------------------------------------------ locks */

/* {user, key, reason} at index 2 */
static sessile_access_lock_row read_lock(lua_State *L)
{
    static const struct binding_field fields[] =
        BINDING_FIELDS(BINDING_FIELD(sessile_access_lock_row, "user", SLICE, user),
                       BINDING_FIELD(sessile_access_lock_row, "key", SLICE, key),
                       BINDING_FIELD(sessile_access_lock_row, "reason", SLICE, reason));
    sessile_access_lock_row lock;
    memset(&lock, 0, sizeof lock);
    luaL_checktype(L, 2, LUA_TTABLE);
    binding_get_fields(L, 2, fields, &lock);
    return lock;
}

/* store:lock({user, key, reason}) -> true; nil, message, code */
int binding_store_lock(lua_State *L, struct binding_store *store)
{
    sessile_access_lock_row lock = read_lock(L);
    sessile_error err;
    return binding_done(
        L, sessile_access_lock(store->handle, lock.user, lock.key, lock.reason, &err),
        &err);
}

/* store:unlock({user, key}) -> true; nil, message, code */
int binding_store_unlock(lua_State *L, struct binding_store *store)
{
    sessile_access_lock_row lock = read_lock(L);
    sessile_error err;
    return binding_done(
        L, sessile_access_unlock(store->handle, lock.user, lock.key, &err), &err);
}

#define LOCK(...) BINDING_FIELD(sessile_access_lock_row, __VA_ARGS__)
static const struct binding_row lock_row =
    BINDING_ROW(sessile_access_lock_row, NULL, LOCK("user", SLICE, user),
                LOCK("key", SLICE, key), LOCK("reason", SLICE, reason),
                LOCK("by", SLICE, by), LOCK("created", INTEGER, created_ms));

/* store:locks() -> {{user, key, reason, by, created}, …}; nil, message, code */
int binding_store_locks(lua_State *L, struct binding_store *store)
{
    sessile_access_lock_row *rows = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_access_locks(store->handle, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &lock_row, rows);
}
