/*
 * store.c: stores and loaded policies as userdata.
 *
 * Owns the translation of open's options, and the rule that a closed store lives on,
 * unseen, until the sessions and policies it handed out are gone. Options are plain
 * values here; the Lua layer has checked their names and expanded paths.
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"

/* ------------------------------------------------------------------ life */

static void store_close_handle(struct binding_store *store)
{
    if (store->closed && store->children == 0 && store->handle) {
        sessile_store *handle = store->handle;
        store->handle = NULL;
        sessile_store_close(handle);
        if (store->of)
            binding_store_release(store->of);
        if (store->audit)
            binding_store_release(store->audit);
    }
}

void binding_store_release(struct binding_store *store)
{
    store->children--;
    store_close_handle(store);
}

struct binding_store *binding_store_live(lua_State *L, int index)
{
    struct binding_store *store = luaL_checkudata(L, index, BINDING_STORE);
    if (store->closed || !store->handle) {
        binding_closed(L, "store");
        return NULL;
    }
    return store;
}

static int store_finalize(lua_State *L)
{
    struct binding_store *store = luaL_checkudata(L, 1, BINDING_STORE);
    store->closed = 1;
    store_close_handle(store);
    return 0;
}

/* store:close() -> true. Closing twice is closing once. */
static int store_close(lua_State *L)
{
    store_finalize(L);
    lua_pushboolean(L, 1);
    return 1;
}

static int store_text(lua_State *L)
{
    struct binding_store *store = luaL_checkudata(L, 1, BINDING_STORE);
    lua_pushfstring(L, "%s%s", BINDING_STORE, store->closed ? " (closed)" : "");
    return 1;
}

/* ------------------------------------------------------------------ open */

int binding_one_of(lua_State *L, int table, const char *name, const char *const *values)
{
    const char *text = binding_field_string(L, table, name);
    int i;
    if (!text)
        return 0;
    for (i = 0; values[i]; i++)
        if (strcmp(text, values[i]) == 0)
            return i;
    return binding_misuse(L, "option '%s': unknown value '%s'", name, text);
}

static void read_limits(lua_State *L, int table, sessile_limits *out)
{
    const sessile_limit *limit;
    if (binding_raw_field(L, table, "limits") == LUA_TNIL) {
        lua_pop(L, 1);
        return;
    }
    table = lua_absindex(L, -1);
    luaL_argcheck(L, lua_istable(L, table), 2, "option 'limits': table expected");
    for (size_t i = 0; (limit = sessile_limit_at(i)); i++) {
        /* a bound below that is the engine's to report */
        uint64_t most = limit->most > UINT32_MAX ? INT64_MAX : UINT32_MAX;
        sessile_limits_set(out, limit->name,
                           binding_field_count(L, table, limit->name, most), NULL);
    }
    lua_pop(L, 1);
}

static const char *const units[] = {"count", "size", "ms", NULL};
static const char *const places[] = {"folder", "file", "server", "memory", NULL};

static void more_of_limit(lua_State *L, const void *row)
{
    uint64_t most = ((const sessile_limit *)row)->most;
    binding_set_integer(L, "most", most > INT64_MAX ? INT64_MAX : (int64_t)most);
}

#define LIMIT(...) BINDING_FIELD(sessile_limit, __VA_ARGS__)
static const struct binding_row limit_row = BINDING_ROW(
    sessile_limit, more_of_limit, LIMIT("name", TEXT, name),
    BINDING_ENUM(sessile_limit, "unit", unit, units), LIMIT("default", INTEGER, standard),
    LIMIT("least", INTEGER, least), LIMIT("about", TEXT, help));

#define SCHEME(...) BINDING_FIELD(sessile_store_scheme, __VA_ARGS__)
static const struct binding_row scheme_row =
    BINDING_ROW(sessile_store_scheme, NULL, SCHEME("scheme", TEXT, scheme),
                BINDING_ENUM(sessile_store_scheme, "place", place, places),
                SCHEME("form", TEXT, form), SCHEME("about", TEXT, help));

/* limits() -> {{name, unit, default, least, most, about}, …} */
int binding_limits(lua_State *L)
{
    const sessile_limit *limit;
    lua_newtable(L);
    for (size_t i = 0; (limit = sessile_limit_at(i)); i++) {
        binding_push_row(L, &limit_row, limit);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* schemes() -> {{scheme, place, form, about}, …}; form may be nil */
int binding_schemes(lua_State *L)
{
    const sessile_store_scheme *scheme;
    lua_newtable(L);
    for (size_t i = 0; (scheme = sessile_store_scheme_at(i)); i++) {
        binding_push_row(L, &scheme_row, scheme);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

/* scheme(url) -> {scheme, place, form, about, path}, path nil where it has none; nil: no
 * store has such a URL */
int binding_scheme(lua_State *L)
{
    const char *path;
    sessile_slice url = binding_check_bytes(L, 1);
    const sessile_store_scheme *scheme = sessile_store_scheme_of(url.data, &path);
    if (!scheme)
        return 0;
    binding_push_row(L, &scheme_row, scheme);
    if (path) /* all of it: a zero byte is refused by who opens it */
        lua_pushlstring(L, path, url.size - (size_t)(path - url.data));
    else
        lua_pushnil(L);
    lua_setfield(L, -2, "path");
    return 1;
}

void binding_store_options(lua_State *L, int table, sessile_store_options *out)
{
    static const char *const durabilities[] = {"sync", "none", NULL};
    const char *agent;
    sessile_store_options_init(out);
    if (lua_isnoneornil(L, table))
        return;
    luaL_checktype(L, table, LUA_TTABLE);
    agent = binding_field_string(L, table, "agent");
    if (agent)
        out->agent = agent;
    out->key_source =
        (sessile_key_source)binding_one_of(L, table, "key_source", binding_key_sources);
    out->key = binding_field_string(L, table, "key");
    out->suite = binding_field_string(L, table, "suite");
    out->durability = binding_one_of(L, table, "durability", durabilities) ? SESSILE_NONE
                                                                           : SESSILE_SYNC;
    out->allow_network = binding_field_boolean(L, table, "network");
    binding_field_config(L, table, &out->config);
    out->policy_path = binding_field_string(L, table, "policy_path");
    out->model = binding_field_string(L, table, "model");
    out->encoding = binding_field_string(L, table, "encoding");
    out->encoding_path = binding_field_string(L, table, "encoding_path");
    out->worker = binding_field_string(L, table, "worker");
    out->remote = binding_field_string(L, table, "remote");
    read_limits(L, table, &out->limits);
}

/* open(url, {agent, key_source, key, suite, durability, timeout_ms, network, window,
 * reserve, keep_min, policy_path, isolation, worker, remote, model, encoding,
 * encoding_path, count, limits})
 * -> store; nil, message, code */
int binding_open(lua_State *L)
{
    sessile_slice url = binding_check_bytes(L, 1);
    sessile_store_options options;
    sessile_error err;
    struct binding_store *store;
    lua_settop(L, 2);
    if (strlen(url.data) != url.size)
        return binding_zero_byte(L);
    binding_store_options(L, 2, &options);
    binding_counter(L, 2, &options);
    store = binding_new(L, sizeof *store, 2, BINDING_STORE);
    lua_pushvalue(L, 3);
    lua_setiuservalue(L, -2, 1);
    if (sessile_open(&store->handle, url.data, &options, &err)) {
        store->closed = 1;
        return binding_fail(L, &err);
    }
    return 1;
}

/* ------------------------------------------------------------------ methods */

static int store_sealed(lua_State *L, struct binding_store *store)
{
    lua_pushboolean(L, sessile_store_sealed(store->handle));
    return 1;
}

/* store:changed{session, …} -> {boolean, …}; nil, message, code */
static int store_changed(lua_State *L, struct binding_store *store)
{
    sessile_session **sessions;
    unsigned char *changed;
    sessile_error err;
    luaL_checktype(L, 2, LUA_TTABLE);
    size_t n = (size_t)lua_rawlen(L, 2), room = n ? n : 1;
    luaL_argcheck(L, n < INT_MAX / sizeof *sessions, 2, "too many sessions");
    sessions = lua_newuserdatauv(L, room * sizeof *sessions, 0);
    changed = lua_newuserdatauv(L, room, 0);
    for (size_t i = 0; i < n; i++) {
        lua_rawgeti(L, 2, (lua_Integer)(i + 1));
        struct binding_session *session = binding_session_live(L, -1);
        if (!session)
            return 3;
        sessions[i] = session->handle; /* the table keeps it */
        lua_pop(L, 1);
    }
    if (sessile_changed(store->handle, sessions, n, changed, &err))
        return binding_fail(L, &err);
    lua_createtable(L, (int)n, 0);
    for (size_t i = 0; i < n; i++) {
        lua_pushboolean(L, changed[i]);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    return 1;
}

/* store:clock() -> ms that this machine's clock is ahead of the store's server's, exact
 * to so many ms; nil, message, code */
static int store_clock(lua_State *L, struct binding_store *store)
{
    int64_t ahead_ms, within_ms;
    sessile_error err;
    if (sessile_store_clock(store->handle, &ahead_ms, &within_ms, &err))
        return binding_fail(L, &err);
    lua_pushinteger(L, ahead_ms);
    lua_pushinteger(L, within_ms);
    return 2;
}

/* store:create, resume, session{id, agent, user, title, metadata, uuid, policy, window,
 * reserve, keep_min, timeout_ms} -> session; nil, message, code */
static int open_session(lua_State *L, struct binding_store *store,
                        sessile_status (*open)(sessile_session **, sessile_store *,
                                               const sessile_session_options *,
                                               sessile_error *))
{
    sessile_session_options options;
    sessile_error err;
    struct binding_session *made = binding_session_new(L, 2, &options);
    if (!made)
        return 3;
    return binding_session_made(L, made, store,
                                open(&made->handle, store->handle, &options, &err), &err);
}

static int store_create(lua_State *L, struct binding_store *store)
{
    return open_session(L, store, sessile_create);
}

static int store_resume(lua_State *L, struct binding_store *store)
{
    return open_session(L, store, sessile_resume);
}

static int store_session(lua_State *L, struct binding_store *store)
{
    return open_session(L, store, sessile_session_open);
}

#define LISTED(...) BINDING_FIELD(sessile_listed, __VA_ARGS__)
static const struct binding_field life_fields[] = BINDING_FIELDS(
    LISTED("ttl", TIME, ttl_ms), LISTED("expires", TIME, expires_ms),
    LISTED("deleted", TIME, deleted_ms), LISTED("labels", JSON, labels),
    LISTED("created", INTEGER, created_ms), LISTED("modified", INTEGER, modified_ms),
    LISTED("entries", INTEGER, entries), LISTED("messages", INTEGER, messages));

static void more_of_listed(lua_State *L, const void *of)
{
    const sessile_listed *row = of;
    if (row->status) {
        binding_set_status(L, "status", row->status);
        lua_pushstring(L, row->message ? row->message : "");
        lua_setfield(L, -2, "message");
    } else {
        binding_set_text(L, "status", sessile_life_name(row->life));
    }
    if (!row->status || row->entries > 0)
        binding_set_fields(L, life_fields, row);
}

const struct binding_row binding_listed_row =
    BINDING_ROW(sessile_listed, more_of_listed, LISTED("id", SLICE, id),
                LISTED("agent", SLICE, agent), LISTED("user", SLICE, user),
                LISTED("title", SLICE, title), LISTED("bytes", INTEGER, bytes),
                LISTED("torn", INTEGER, torn));

#define LIST(...) BINDING_FIELD(sessile_list_options, __VA_ARGS__)
static const struct binding_field list_fields[] = BINDING_FIELDS(
    LIST("agent", SLICE, agent), LIST("prefix", SLICE, id_prefix),
    LIST("title", SLICE, title), LIST("user", SLICE, user), LIST("label", SLICE, label),
    LIST("search", SLICE, text), LIST("since", INTEGER, since_ms),
    LIST("until", INTEGER, until_ms), LIST("lives", COUNT, lives),
    LIST("offset", COUNT, offset), LIST("limit", COUNT, limit));

/* sorts() -> the names of the orders of a list */
int binding_sorts(lua_State *L)
{
    const char *name;
    lua_newtable(L);
    for (int i = 0; (name = sessile_sort_name((sessile_sort)i)); i++) {
        lua_pushstring(L, name);
        lua_rawseti(L, -2, i + 1);
    }
    return 1;
}

static sessile_sort sort_of(lua_State *L, int table)
{
    const char *text = binding_field_string(L, table, "sort"), *name;
    if (!text)
        return SESSILE_SORT_MODIFIED;
    for (int i = 0; (name = sessile_sort_name((sessile_sort)i)); i++)
        if (strcmp(text, name) == 0)
            return (sessile_sort)i;
    binding_misuse(L, "option 'sort': unknown value '%s'", text);
    return SESSILE_SORT_MODIFIED;
}

void binding_list_options(lua_State *L, int table, sessile_list_options *out)
{
    sessile_list_options_init(out);
    binding_get_fields(L, table, list_fields, out);
    out->sort = sort_of(L, table);
}

/* store:list({agent, prefix, title, user, label, search, since, until, lives, sort,
 * offset, limit}) -> rows */
static int store_list(lua_State *L, struct binding_store *store)
{
    sessile_list_options options;
    sessile_listed *rows = NULL;
    luaL_checktype(L, 2, LUA_TTABLE);
    binding_list_options(L, 2, &options);
    struct binding_result got = binding_result(L);
    got.status = sessile_list_with(store->handle, &options, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &binding_listed_row, rows);
}

/* ------------------------------------------------------------------ policies */

/* store:policy({{name=, options=, hooks=}, …}) -> policy; nil, message, code */
static int store_policy(lua_State *L, struct binding_store *store)
{
    sessile_policy_step *steps;
    sessile_policy *handle;
    sessile_slice options;
    sessile_error err;
    size_t count, i;
    int texts;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    count = (size_t)lua_rawlen(L, 2);
    luaL_argcheck(L, count >= 1, 2, "at least one policy expected");
    steps = lua_newuserdatauv(L, count * sizeof *steps, 0);
    memset(steps, 0, count * sizeof *steps);
    lua_createtable(L, (int)count, 0); /* keeps the JSON texts */
    texts = lua_gettop(L);
    for (i = 0; i < count; i++) {
        int step = texts + 1;
        lua_rawgeti(L, 2, (lua_Integer)(i + 1));
        luaL_argcheck(L, lua_istable(L, step), 2, "every policy must be a table");
        steps[i].name = binding_field_string(L, step, "name");
        steps[i].hooks = (unsigned)binding_field_count(L, step, "hooks", UINT_MAX);
        if (binding_field_json(L, step, "options", &options))
            return 3;
        steps[i].options = options.data;
        lua_rawseti(L, texts, (lua_Integer)(i + 1));
        lua_pop(L, 1);
    }
    struct binding_child *policy = binding_child_new(L, &binding_policy_class, store);
    if (sessile_policy_load(&handle, store->handle, steps, count, &err))
        return binding_fail(L, &err);
    return binding_child_opened(policy, handle);
}

sessile_policy *binding_policy_opt(lua_State *L, int index)
{
    struct binding_child *policy;
    if (lua_isnoneornil(L, index))
        return NULL;
    policy = luaL_checkudata(L, index, binding_policy_class.name);
    if (!policy->handle)
        binding_misuse(L, "the policy is closed");
    return policy->handle;
}

BINDING_FREE(policy_free, sessile_policy_free)

const struct binding_child_class binding_policy_class = {
    .name = "sessile.core.Policy", .noun = "policy", .free = policy_free};

/* ------------------------------------------------------------------ registration */

static const struct binding_method store_methods[] = {
    {"sealed", .store = store_sealed},
    {"changed", .store = store_changed},
    {"clock", .store = store_clock},
    {"count", .store = binding_count},
    {"count_messages", .store = binding_count_messages},
    {"create", .store = store_create},
    {"resume", .store = store_resume},
    {"session", .store = store_session},
    {"open_over", .store = binding_store_open_over},
    {"list", .store = store_list},
    {"check", .store = binding_store_check},
    {"search", .store = binding_store_search},
    {"memory", .store = binding_store_memory},
    {"delete", .store = binding_store_delete},
    {"undelete", .store = binding_store_undelete},
    {"purge", .store = binding_store_purge},
    {"purge_forgotten", .store = binding_store_purge_forgotten},
    {"deletions", .store = binding_store_deletions},
    {"nodes", .store = binding_store_nodes},
    {"standbys", .store = binding_store_standbys},
    {"policy", .store = store_policy},
    {"keys", .store = binding_store_keys},
    {"rotate", .store = binding_store_rotate},
    {"reseal", .store = binding_store_reseal},
    {"forget", .store = binding_store_forget},
    {"put", .store = binding_store_put},
    {"guard", .store = binding_store_guard},
    {"screen", .store = binding_store_screen},
    {"as", .store = binding_store_as},
    {"renew", .store = binding_store_renew},
    {"revoke", .store = binding_store_revoke},
    {"who", .store = binding_store_who},
    {"can", .store = binding_store_can},
    {"consent", .store = binding_store_consent},
    {"consents", .store = binding_store_consents},
    {"hold", .store = binding_store_hold},
    {"holds", .store = binding_store_holds},
    {"release", .store = binding_store_release_hold},
    {"purge_retention", .store = binding_store_purge_retention},
    {"erase_user", .store = binding_store_erase_user},
    {"audit", .store = binding_store_audit},
    {"audit_verify", .store = binding_store_audit_verify},
    {"audit_root", .store = binding_store_audit_root},
    {"audit_head", .store = binding_store_audit_head},
    {"audit_seal", .store = binding_store_audit_seal},
    {"audit_prove", .store = binding_store_audit_prove},
    {"grant", .store = binding_store_grant},
    {"grants", .store = binding_store_grants},
    {"ungrant", .store = binding_store_ungrant},
    {"access_key", .store = binding_store_access_key},
    {"access_keys", .store = binding_store_access_keys},
    {"revoke_key", .store = binding_store_revoke_key},
    {"lock", .store = binding_store_lock},
    {"unlock", .store = binding_store_unlock},
    {"locks", .store = binding_store_locks},
    {"may", .store = binding_store_may},
    {"note", .store = binding_store_note},
    {NULL},
};

void binding_store_open(lua_State *L)
{
    binding_class(L, BINDING_STORE, store_methods, store_close, store_finalize,
                  store_text);
}
