/*
 * session.c: sessions as userdata: opening, names, facts, and single writes.
 *
 * Owns the rule that a session closed while a run or an iterator lives is closed for Lua
 * at once, and for the engine when the last of them has gone. Runs, lists and iterators
 * are in run.c and entries.c.
 */
#include "binding.h"

/* ------------------------------------------------------------------ life */

static sessile_status session_close_handle(struct binding_session *session,
                                           sessile_error *err)
{
    sessile_session *handle = session->handle;
    sessile_status status;
    if (!session->closed || session->children > 0 || !handle)
        return SESSILE_OK;
    session->handle = NULL;
    status = sessile_session_close(handle, err);
    binding_store_release(session->store);
    return status;
}

sessile_status binding_session_release(struct binding_session *session,
                                       sessile_error *err)
{
    session->children--;
    return session_close_handle(session, err);
}

struct binding_session *binding_session_live(lua_State *L, int index)
{
    struct binding_session *session = luaL_checkudata(L, index, BINDING_SESSION);
    if (session->closed || !session->handle) {
        binding_closed(L, "session");
        return NULL;
    }
    return session;
}

static int session_finalize(lua_State *L)
{
    struct binding_session *session = luaL_checkudata(L, 1, BINDING_SESSION);
    session->closed = 1;
    session_close_handle(session, NULL);
    return 0;
}

/* session:close() -> true; nil, message, code when the last sync failed. Again: true. */
static int session_close(lua_State *L)
{
    struct binding_session *session = luaL_checkudata(L, 1, BINDING_SESSION);
    sessile_error err;
    session->closed = 1;
    return binding_done(L, session_close_handle(session, &err), &err);
}

static int session_text(lua_State *L)
{
    struct binding_session *session = luaL_checkudata(L, 1, BINDING_SESSION);
    if (session->closed || !session->handle) {
        lua_pushliteral(L, BINDING_SESSION " (closed)");
        return 1;
    }
    lua_pushliteral(L, BINDING_SESSION ": ");
    binding_push_slice(L, sessile_session_id(session->handle));
    lua_concat(L, 2);
    return 1;
}

int binding_session_options(lua_State *L, int table, sessile_session_options *out)
{
    const char *uuid;
    int failed;
    sessile_session_options_init(out);
    failed = binding_agent_info(L, table, &out->agent_info);
    if (failed)
        return failed;
    out->id = binding_field_bytes(L, table, "id");
    out->agent = binding_field_bytes(L, table, "agent");
    out->user = binding_field_bytes(L, table, "user");
    out->title = binding_field_bytes(L, table, "title");
    uuid = binding_field_string(L, table, "uuid");
    out->uuid_v4 = uuid && uuid[0] == 'v' && uuid[1] == '4';
    binding_field_config(L, table, &out->config);
    out->ttl_ms = binding_field_integer(L, table, "ttl_ms", 0);
    return binding_field_json(L, table, "metadata", &out->metadata);
}

struct binding_session *binding_session_new(lua_State *L, int table,
                                            sessile_session_options *out)
{
    luaL_checktype(L, table, LUA_TTABLE);
    if (binding_session_options(L, table, out))
        return NULL;
    struct binding_session *session = binding_new(L, sizeof *session, 1, BINDING_SESSION);
    session->closed = 1;
    if (luaL_testudata(L, 1, BINDING_STORE))
        lua_pushvalue(L, 1);
    else
        lua_getiuservalue(L, 1, 1);
    lua_setiuservalue(L, -2, 1);
    return session;
}

int binding_session_made(lua_State *L, struct binding_session *made,
                         struct binding_store *store, sessile_status status,
                         const sessile_error *err)
{
    if (status)
        return binding_fail(L, err);
    made->closed = 0;
    made->store = store;
    store->children++;
    return 1;
}

/* ------------------------------------------------------------------ names and times */

/* session:info() -> {id, agent, user, created, torn, damage, origin, parent} */
static int session_info(lua_State *L, struct binding_session *session)
{
    sessile_status status;
    sessile_error why;
    uint64_t lost;
    int64_t window, reserve;
    lua_createtable(L, 0, 10);
    status = sessile_session_damage(session->handle, &lost, &why);
    if (status == SESSILE_DAMAGED || status == SESSILE_TRUNCATED) {
        lua_createtable(L, 0, 3);
        binding_set_status(L, "code", status);
        binding_set_text(L, "message", why.message);
        binding_set_integer(L, "lost", (int64_t)lost);
        lua_setfield(L, -2, "damage");
    }
    binding_push_slice(L, sessile_session_id(session->handle));
    lua_setfield(L, -2, "id");
    binding_push_slice(L, sessile_session_agent(session->handle));
    lua_setfield(L, -2, "agent");
    binding_push_slice(L, sessile_session_user(session->handle));
    lua_setfield(L, -2, "user");
    binding_set_integer(L, "created", (int64_t)sessile_session_created(session->handle));
    binding_set_integer(L, "torn", (int64_t)sessile_session_torn(session->handle));
    window = sessile_session_window(session->handle, &reserve);
    binding_set_integer(L, "window", window);
    binding_set_integer(L, "reserve", reserve);
    binding_push_links(L, session->handle);
    return 1;
}

static int session_modified(lua_State *L, struct binding_session *session)
{
    lua_pushinteger(L, (lua_Integer)sessile_session_modified(session->handle));
    return 1;
}

static int session_title(lua_State *L, struct binding_session *session)
{
    char *title = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_title(session->handle, &title, &got.count, &got.err);
    return binding_result_text(L, &got, title);
}

static int session_set_title(lua_State *L, struct binding_session *session)
{
    sessile_slice title = binding_check_bytes(L, 2);
    sessile_error err;
    return binding_done(L, sessile_set_title(session->handle, title, &err), &err);
}

/* session:set_timeout(ms) -> true: how long its calls wait; -1: for ever */
static int session_set_timeout(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    int timeout_ms = binding_timeout(luaL_checkinteger(L, 2));
    return binding_done(L, sessile_session_set_timeout(session->handle, timeout_ms, &err),
                        &err);
}

/* session:sync() -> true: what it wrote is on the device, and the next write says so */
static int session_sync(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    return binding_done(L, sessile_session_sync(session->handle, &err), &err);
}

/* session:watch{timeout_ms, after} -> changed, id of the newest entry; nil, message,
 * code. Waits, for ever where no time is given, until there are entries behind `after`,
 * or behind those that this handle has read. */
static int session_watch(lua_State *L, struct binding_session *session)
{
    sessile_status status;
    sessile_error err;
    sessile_id seen;
    int timeout_ms, changed;
    luaL_checktype(L, 2, LUA_TTABLE);
    if (!binding_field_timeout(L, 2, "timeout_ms", &timeout_ms))
        timeout_ms = -1;
    seen = binding_field_id(L, 2, "after");
    seen = seen == SESSILE_NO_ID ? 0 : seen + 1;
    status = sessile_session_watch(session->handle, &seen, timeout_ms, &changed, &err);
    if (status)
        return binding_fail(L, &err);
    lua_pushboolean(L, changed);
    binding_push_id(L, seen - 1);
    return 2;
}

/* ------------------------------------------------------------------ writes */

/* session:append(message) -> id; nil, message, code */
static int session_append(lua_State *L, struct binding_session *session)
{
    sessile_slice message;
    sessile_error err;
    sessile_id id;
    luaL_checktype(L, 2, LUA_TTABLE);
    if (binding_json(L, 2, 1, "message", &message))
        return 3;
    return binding_done_id(L, sessile_append(session->handle, message, &id, &err), &id,
                           &err);
}

/* session:custom(data[, source]) -> id; nil, message, code */
static int session_custom(lua_State *L, struct binding_session *session)
{
    const char *source = luaL_optstring(L, 3, NULL);
    sessile_slice data;
    sessile_error err;
    sessile_id id;
    luaL_checktype(L, 2, LUA_TTABLE);
    if (binding_json(L, 2, 0, "data", &data))
        return 3;
    return binding_done_id(
        L, sessile_append_custom(session->handle, data, source, &id, &err), &id, &err);
}

/* session:write(entries[, base]) -> ids; nil, message, code. entries: {{message =} or
 * {custom =, source =}, …} */
static int session_write(lua_State *L, struct binding_session *session)
{
    sessile_id base = binding_opt_id(L, 3), first;
    sessile_error err;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    size_t n = (size_t)lua_rawlen(L, 2);
    sessile_write_entry *list = lua_newuserdatauv(L, (n + 1) * sizeof *list, 0);
    lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0); /* keeps the texts */
    for (size_t i = 0; i < n; i++) {
        char what[40];
        lua_rawgeti(L, 2, (lua_Integer)i + 1);
        list[i].custom = binding_raw_field(L, -1, "message") == LUA_TNIL;
        if (list[i].custom)
            binding_raw_field(L, -2, "custom");
        snprintf(what, sizeof what, "entry %zu", i + 1);
        int failed = binding_json(L, -1, !list[i].custom, what, &list[i].json);
        if (failed)
            return failed;
        lua_rawseti(L, 5, (lua_Integer)i + 1);
        lua_settop(L, 6);
        list[i].source = binding_field_string(L, 6, "source");
        lua_settop(L, 5);
    }
    if (sessile_write(session->handle, list, n, base, &first, &err))
        return binding_fail(L, &err);
    lua_createtable(L, n < INT32_MAX ? (int)n : 0, 0);
    for (size_t i = 0; i < n; i++) {
        binding_push_id(L, first + (sessile_id)i);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    return 1;
}

static int session_clear(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    return binding_done(L, sessile_clear(session->handle, &err), &err);
}

/* session:pop(n[, base]) -> the messages that were taken off; nil, message, code */
static int session_pop(lua_State *L, struct binding_session *session)
{
    lua_Integer n = luaL_checkinteger(L, 2);
    sessile_id base = binding_opt_id(L, 3);
    sessile_message *list = NULL;
    luaL_argcheck(L, n > 0, 2, "a number from 1 expected");
    struct binding_result got = binding_result(L);
    got.status =
        sessile_pop(session->handle, (size_t)n, base, &list, &got.count, &got.err);
    return binding_result_messages(L, &got, list);
}

/* ------------------------------------------------------------------ figures */

static int session_head(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    sessile_id id;
    return binding_done_id(L, sessile_head(session->handle, &id, &err), &id, &err);
}

static int session_event_count(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    uint64_t count;
    return binding_done_count(L, sessile_event_count(session->handle, &count, &err),
                              &count, &err);
}

#define USAGE(...) BINDING_FIELD(sessile_usage, __VA_ARGS__)
static const struct binding_row usage_row = BINDING_ROW(
    sessile_usage, NULL, USAGE("input", INTEGER, input), USAGE("output", INTEGER, output),
    USAGE("cache_read", INTEGER, cache_read), USAGE("cache_write", INTEGER, cache_write));

/* Adds `uncosted` to the group at the top. */
static void more_of_group(lua_State *L, const void *group)
{
    binding_push_row(L, &usage_row, &((const sessile_usage_group *)group)->uncosted);
    lua_setfield(L, -2, "uncosted");
}

#define GROUP(...) BINDING_FIELD(sessile_usage_group, __VA_ARGS__)
static const struct binding_row group_row =
    BINDING_ROW(sessile_usage_group, more_of_group, GROUP("key", STRING, key),
                GROUP("model", STRING, model), GROUP("cost", NUMBER, cost),
                GROUP("reports", INTEGER, reports), GROUP("first", INTEGER, first_ms),
                GROUP("last", INTEGER, last_ms), GROUP("input", INTEGER, usage.input),
                GROUP("output", INTEGER, usage.output),
                GROUP("cache_read", INTEGER, usage.cache_read),
                GROUP("cache_write", INTEGER, usage.cache_write));

/* -> {{key, input, …, reports, first, last}, …}; times in ms */
static int usage_groups(lua_State *L, sessile_session *handle, sessile_usage_by by)
{
    struct binding_result got = binding_result(L);
    sessile_usage_group *groups = NULL;
    got.status = sessile_usage_groups(handle, by, &groups, &got.count, &got.err);
    return binding_result_rows(L, &got, &group_row, groups);
}

/* session:usage() -> {input, output, cache_read, cache_write}
 * session:usage("day"|"model"|"agent"|"day_and_model") -> a list of groups */
static int session_usage(lua_State *L, struct binding_session *session)
{
    sessile_usage usage;
    sessile_error err;
    if (!lua_isnoneornil(L, 2)) {
        static const char *const by[] = {"day", "model", "agent", "day_and_model", NULL};
        return usage_groups(L, session->handle,
                            (sessile_usage_by)luaL_checkoption(L, 2, NULL, by));
    }
    return binding_done_row(L, sessile_total_usage(session->handle, &usage, &err),
                            &usage_row, &usage, &err);
}

/* session:tokens{model, tools, system, at} -> n, {tokens, low, high, source} */
static int session_tokens(lua_State *L, struct binding_session *session)
{
    sessile_count_options options;
    sessile_tokens tokens;
    sessile_error err;
    lua_settop(L, 2);
    if (binding_count_options(L, 2, &options))
        return 3;
    if (sessile_count_tokens_with(session->handle, &options, &tokens, &err))
        return binding_fail(L, &err);
    return binding_push_count(L, &tokens);
}

/* ------------------------------------------------------------------ registration */

static const struct binding_method methods[] = {
    {"fork", .session = binding_session_fork},
    {"child", .session = binding_session_child},
    {"merged", .session = binding_session_merged},
    {"discarded", .session = binding_session_discarded},
    {"subsessions", .session = binding_session_subsessions},
    {"info", .session = session_info},
    {"modified", .session = session_modified},
    {"title", .session = session_title},
    {"set_title", .session = session_set_title},
    {"set_timeout", .session = session_set_timeout},
    {"sync", .session = session_sync},
    {"watch", .session = session_watch},
    {"life", .session = binding_session_life},
    {"set_ttl", .session = binding_session_set_ttl},
    {"set_archived", .session = binding_session_set_archived},
    {"append", .session = session_append},
    {"custom", .session = session_custom},
    {"write", .session = session_write},
    {"clear", .session = session_clear},
    {"pop", .session = session_pop},
    {"recall", .session = binding_session_recall},
    {"agent_source", .session = binding_session_agent_source},
    {"recall_find", .session = binding_session_recall_find},
    {"recall_run", .session = binding_session_recall_run},
    {"remember_run", .session = binding_session_remember_run},
    {"head", .session = session_head},
    {"event_count", .session = session_event_count},
    {"usage", .session = session_usage},
    {"tokens", .session = session_tokens},
    {"records", .session = binding_session_records},
    {"messages", .session = binding_session_messages},
    {"context", .session = binding_session_context},
    {"entry", .session = binding_session_entry},
    {"entries", .session = binding_session_entries},
    {"turn", .session = binding_session_turn},
    {"compact", .session = binding_session_compact},
    {"plan", .session = binding_session_plan},
    {"branch", .session = binding_session_branch},
    {"path", .session = binding_session_path},
    {"children", .session = binding_session_children},
    {"siblings", .session = binding_session_siblings},
    {"leaves", .session = binding_session_leaves},
    {"common_ancestor", .session = binding_session_common_ancestor},
    {"tree", .session = binding_session_tree},
    {"label", .session = binding_session_label},
    {"unlabel", .session = binding_session_unlabel},
    {"labels", .session = binding_session_labels},
    {"settings", .session = binding_session_settings},
    {"metadata", .session = binding_session_metadata},
    {"suspend", .session = binding_session_suspend},
    {"suspended", .session = binding_session_suspended},
    {"resume_with", .session = binding_session_resume_with},
    {"cancel", .session = binding_session_cancel},
    {"pending_runs", .session = binding_session_pending_runs},
    {"checkpoint", .session = binding_session_checkpoint},
    {"checkpoints", .session = binding_session_checkpoints},
    {"restore", .session = binding_session_restore},
    {"delete_checkpoint", .session = binding_session_delete_checkpoint},
    {"answer", .session = binding_session_answer},
    {"compactions", .session = binding_session_compactions},
    {"why", .session = binding_session_why},
    {"uncompact", .session = binding_session_uncompact},
    {NULL},
};

void binding_session_open(lua_State *L)
{
    binding_class(L, BINDING_SESSION, methods, session_close, session_finalize,
                  session_text);
}
