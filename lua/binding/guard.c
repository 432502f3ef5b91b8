/*
 * guard.c: the guard of a store, and its views, which are stores as well.
 *
 * A view keeps the store that it was made from, and counts as one of its children.
 */
#include <string.h>
#include "binding.h"
#include "sessile_guard.h"

void *binding_field_texts(lua_State *L, int table, const char *name, int slices,
                          size_t *count)
{
    void *list;
    *count = 0;
    if (binding_raw_field(L, table, name) == LUA_TNIL) {
        lua_pop(L, 1);
        return NULL;
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    size_t n = (size_t)lua_rawlen(L, -1);
    list = lua_newuserdatauv(L, (n + 1) * sizeof(sessile_slice), 0);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, -2, (lua_Integer)i + 1);
        sessile_slice text = {NULL, 0};
        text.data = luaL_checklstring(L, -1, &text.size);
        if (slices)
            ((sessile_slice *)list)[i] = text;
        else
            ((const char **)list)[i] = text.data;
        lua_pop(L, 1);
    }
    *count = n;
    return list;
}

/* {{name, all, permissions = {…}}, …}; what it pushes anchors the texts. */
static void read_roles(lua_State *L, int table, sessile_guard_options *out)
{
    sessile_role_definition *roles;
    int list;
    if (binding_raw_field(L, table, "roles") == LUA_TNIL)
        return;
    list = lua_absindex(L, -1);
    luaL_checktype(L, list, LUA_TTABLE);
    out->role_count = (size_t)lua_rawlen(L, list);
    roles = lua_newuserdatauv(L, (out->role_count + 1) * sizeof *roles, 0);
    out->roles = roles;
    for (size_t i = 0; i < out->role_count; i++) {
        luaL_checkstack(L, 8, NULL);
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        int one = lua_absindex(L, -1);
        luaL_checktype(L, one, LUA_TTABLE);
        memset(&roles[i], 0, sizeof roles[i]);
        roles[i].name = binding_field_string(L, one, "name");
        roles[i].all = binding_field_boolean(L, one, "all");
        roles[i].permissions =
            binding_field_texts(L, one, "permissions", 0, &roles[i].permission_count);
    }
}

/* permissions() -> their names */
int binding_permissions(lua_State *L)
{
    lua_newtable(L);
    for (int i = 0; i < SESSILE_PERMISSION_COUNT; i++) {
        lua_pushstring(L, sessile_permission_name((sessile_permission)i));
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

/* The table at a field, if there is one: pushes it, or nothing. */
static int push_table(lua_State *L, int table, const char *name)
{
    if (binding_raw_field(L, table, name) == LUA_TNIL) {
        lua_pop(L, 1);
        return 0;
    }
    luaL_checktype(L, -1, LUA_TTABLE);
    return 1;
}

/* limits = {rates = {{rule, rate}, …}, shared, deny}; what it pushes anchors the texts.
 */
static void read_limits(lua_State *L, int table, sessile_limit_options *out)
{
    sessile_rate_limit *rates;
    luaL_checkstack(L, 8, NULL);
    if (!push_table(L, table, "limits"))
        return;
    int limits = lua_absindex(L, -1);
    out->on = 1;
    out->shared = binding_field_string(L, limits, "shared");
    out->deny = binding_field_boolean(L, limits, "deny");
    if (!push_table(L, limits, "rates"))
        return;
    int list = lua_absindex(L, -1);
    out->rate_count = (size_t)lua_rawlen(L, list);
    rates = lua_newuserdatauv(L, (out->rate_count + 1) * sizeof *rates, 0);
    out->rates = rates;
    for (size_t i = 0; i < out->rate_count; i++) {
        lua_rawgeti(L, list, (lua_Integer)i + 1);
        luaL_checktype(L, -1, LUA_TTABLE);
        rates[i].rule = binding_field_string(L, lua_absindex(L, -1), "rule");
        rates[i].rate = binding_field_string(L, lua_absindex(L, -1), "rate");
        lua_pop(L, 1); /* the list has it */
    }
}

/* audit = {store, sync, reads, closed}. *of: the store that keeps it, which is left on
 * the stack; NULL: none. 0, or the three values of a failure: 3. */
static int read_audit(lua_State *L, int table, sessile_audit_options *out,
                      struct binding_store **of)
{
    luaL_checkstack(L, 8, NULL);
    if (!push_table(L, table, "audit"))
        return 0;
    int audit = lua_absindex(L, -1);
    out->on = 1;
    out->sync = binding_field_boolean(L, audit, "sync");
    out->no_reads = binding_field_boolean(L, audit, "no_reads");
    out->closed = binding_field_boolean(L, audit, "closed");
    if (binding_raw_field(L, audit, "store") == LUA_TNIL)
        return 0;
    *of = binding_store_live(L, -1);
    if (!*of)
        return 3;
    out->store = (*of)->handle;
    return 0;
}

#define TOKEN(...) BINDING_FIELD(sessile_token_options, __VA_ARGS__)
static const struct binding_field token_fields[] = BINDING_FIELDS(
    TOKEN("issuer", TEXT, issuer), TOKEN("audience", TEXT, audience),
    TOKEN("keys", TEXT, keys), TOKEN("user", TEXT, user), TOKEN("roles", TEXT, roles),
    TOKEN("agents", TEXT, agents), TOKEN("actor", TEXT, actor));

/* store:guard({roles, require_principal, limits, audit, consent, token, profile, off,
 * authorize, screens, urls}) -> true; nil, message, code */
int binding_store_guard(lua_State *L, struct binding_store *store)
{
    sessile_guard_options options;
    sessile_token_options token = {0};
    struct binding_store *audit = NULL;
    sessile_error err;
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_guard_options_init(&options);
    options.require_principal = binding_field_boolean(L, 2, "require_principal");
    options.consent = binding_field_boolean(L, 2, "consent");
    options.off = binding_field_boolean(L, 2, "off");
    options.profile = binding_field_string(L, 2, "profile");
    options.authorize = binding_field_string(L, 2, "authorize");
    if (push_table(L, 2, "token")) {
        binding_get_fields(L, lua_absindex(L, -1), token_fields, &token);
        options.token = &token;
    }
    read_roles(L, 2, &options);
    read_limits(L, 2, &options.limits);
    binding_write_rules(L, 2, &options);
    if (read_audit(L, 2, &options.audit, &audit))
        return 3;
    int kept = lua_absindex(L, -1); /* the store of the audit, if there is one */
    sessile_status status = sessile_store_guard(store->handle, &options, &err);
    if (!status && audit && audit != store) {
        lua_pushvalue(L, kept);
        lua_setiuservalue(L, 1, 2);
        store->audit = audit;
        audit->children++;
    }
    return binding_done(L, status, &err);
}

#define CREDENTIAL(...) BINDING_FIELD(sessile_credential, __VA_ARGS__)
static const struct binding_field credential_fields[] = BINDING_FIELDS(
    CREDENTIAL("user", SLICE, user), CREDENTIAL("actor", SLICE, actor),
    CREDENTIAL("session", SLICE, session), CREDENTIAL("agent", SLICE, agent),
    CREDENTIAL("owner", SLICE, owner), CREDENTIAL("expires", INTEGER, expires_ms),
    CREDENTIAL("key", SLICE, key), CREDENTIAL("token", SLICE, token),
    CREDENTIAL("os", BOOLEAN, os), CREDENTIAL("source", SLICE, source),
    CREDENTIAL("device", SLICE, device));

/* The credential at index 2; what it leaves on the stack anchors its texts. */
static void read_credential(lua_State *L, sessile_credential *out)
{
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    sessile_credential_init(out);
    binding_get_fields(L, 2, credential_fields, out);
    out->roles = binding_field_texts(L, 2, "roles", 0, &out->role_count);
    out->agents = binding_field_texts(L, 2, "agents", 1, &out->agent_count);
}

/* store:as({user, actor, roles, agents, session, agent, owner, expires, key, token, os,
 * source, device}) -> store; nil, message, code */
int binding_store_as(lua_State *L, struct binding_store *store)
{
    sessile_credential credential;
    struct binding_store *view;
    sessile_error err;
    read_credential(L, &credential);
    view = binding_new(L, sizeof *view, 1, BINDING_STORE);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, -2, 1);
    if (sessile_store_as(&view->handle, store->handle, &credential, &err)) {
        view->closed = 1;
        return binding_fail(L, &err);
    }
    view->of = store;
    store->children++;
    return 1;
}

/* store:renew(credential, by) -> true; nil, message, code */
int binding_store_renew(lua_State *L, struct binding_store *store)
{
    struct binding_store *by = NULL;
    sessile_credential credential;
    sessile_error err;
    if (!lua_isnoneornil(L, 3)) {
        by = binding_store_live(L, 3);
        if (!by)
            return 3;
    }
    read_credential(L, &credential); /* the caller has the store */
    return binding_done(
        L, sessile_store_renew(store->handle, by ? by->handle : NULL, &credential, &err),
        &err);
}

/* store:revoke() -> true; nil, message, code */
int binding_store_revoke(lua_State *L, struct binding_store *store)
{
    sessile_error err;
    return binding_done(L, sessile_store_revoke(store->handle, &err), &err);
}

static void more_of_principal(lua_State *L, const void *row)
{
    const sessile_principal *who = row;
    lua_Integer n = 0;
    lua_newtable(L);
    for (int i = 0; i < SESSILE_PERMISSION_COUNT; i++)
        if (who->permissions >> i & 1) {
            lua_pushstring(L, sessile_permission_name((sessile_permission)i));
            lua_rawseti(L, -2, ++n);
        }
    lua_setfield(L, -2, "permissions");
    if (!who->agent_count)
        return;
    lua_newtable(L);
    for (size_t i = 0; i < who->agent_count; i++) {
        lua_pushlstring(L, who->agents[i].data, who->agents[i].size);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    lua_setfield(L, -2, "agents");
}

#define PRINCIPAL(...) BINDING_FIELD(sessile_principal, __VA_ARGS__)
static const struct binding_row principal_row =
    BINDING_ROW(sessile_principal, more_of_principal, PRINCIPAL("user", SLICE, user),
                PRINCIPAL("actor", SLICE, actor), PRINCIPAL("session", SLICE, session),
                PRINCIPAL("all", BOOLEAN, all), PRINCIPAL("host", BOOLEAN, host),
                PRINCIPAL("expires", TIME, expires_ms), PRINCIPAL("key", SLICE, key),
                PRINCIPAL("method", TEXT, method));

/* store:who() -> {user, actor, session, agents, permissions, all, host, expires, method,
 * key}; nil, message, code */
int binding_store_who(lua_State *L, struct binding_store *store)
{
    sessile_principal who;
    sessile_error err;
    sessile_status status = sessile_store_who(store->handle, &who, &err);
    return binding_done_row(L, status, &principal_row, &who, &err);
}

static sessile_permission check_permission(lua_State *L, const char *name)
{
    int i = 0;
    while (i < SESSILE_PERMISSION_COUNT &&
           strcmp(name, sessile_permission_name((sessile_permission)i)) != 0)
        i++;
    if (i == SESSILE_PERMISSION_COUNT)
        binding_misuse(L, "there is no permission '%s'", name);
    return (sessile_permission)i;
}

#define OPERATION(...) BINDING_FIELD(sessile_operation, __VA_ARGS__)
static const struct binding_field operation_fields[] =
    BINDING_FIELDS(OPERATION("name", SLICE, name), OPERATION("agent", SLICE, agent),
                   OPERATION("user", SLICE, user), OPERATION("id", SLICE, id));

/* store:may({name, permission, limit, agent, user, id, reads}) -> true; nil, message,
 * code, retry_ms, rule */
int binding_store_may(lua_State *L, struct binding_store *store)
{
    sessile_operation o = {.name = {NULL, 0}};
    sessile_error err;
    lua_settop(L, 2);
    luaL_checktype(L, 2, LUA_TTABLE);
    binding_get_fields(L, 2, operation_fields, &o);
    const char *permission = binding_field_string(L, 2, "permission");
    o.permission = check_permission(L, permission ? permission : "");
    o.limit = binding_field_string(L, 2, "limit");
    o.reads = binding_field_boolean(L, 2, "reads");
    return binding_done(L, sessile_may(store->handle, &o, &err), &err);
}

/* store:note(name, details) -> true; nil, message, code */
int binding_store_note(lua_State *L, struct binding_store *store)
{
    sessile_slice name = binding_check_bytes(L, 2), details = binding_check_bytes(L, 3);
    sessile_error err;
    return binding_done(L, sessile_audit_note(store->handle, name, details, &err), &err);
}

/* store:can(permission, agent, user, id) -> boolean; raises for another permission */
int binding_store_can(lua_State *L, struct binding_store *store)
{
    sessile_permission permission = check_permission(L, luaL_checkstring(L, 2));
    sessile_slice of[3];
    for (int k = 0; k < 3; k++) {
        of[k] = sessile_text(NULL);
        of[k].data = luaL_optlstring(L, 3 + k, NULL, &of[k].size);
        of[k].size = of[k].data ? of[k].size : 0;
    }
    lua_pushboolean(L, sessile_can(store->handle, permission, of[0], of[1], of[2]));
    return 1;
}
