/*
 * checkpoint.c: checkpoints as tables: made, listed, restored, withdrawn.
 */
#include <stdint.h>
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"

static const char *const reasons[] = {"manual", "periodic", "event", "threshold", NULL};

/* session:checkpoint{name, state (any value), metadata, keep} -> id */
int binding_session_checkpoint(lua_State *L, struct binding_session *session)
{
    sessile_checkpoint_options options;
    sessile_error err;
    sessile_id id;
    int failed;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 2);
    memset(&options, 0, sizeof options);
    options.name = binding_field_bytes(L, 2, "name");
    options.keep = (uint32_t)binding_field_count(L, 2, "keep", UINT32_MAX);
    failed = binding_field_json(L, 2, "metadata", &options.metadata);
    if (failed)
        return failed;
    if (lua_getfield(L, 2, "state") != LUA_TNIL) {
        failed = binding_json(L, -1, 0, "state", &options.state);
        if (failed)
            return failed;
    }
    if (sessile_checkpoint(session->handle, &options, &id, &err))
        return binding_fail(L, &err);
    binding_push_id(L, id);
    return 1;
}

static void push_row(lua_State *L, const sessile_checkpoint_row *row)
{
    lua_createtable(L, 0, 12);
    binding_set_id(L, "id", row->entry);
    binding_set_id(L, "head", row->head);
    binding_set_integer(L, "time", row->time_ms);
    lua_pushstring(L, sessile_checkpoint_reason_name(row->reason));
    lua_setfield(L, -2, "reason");
    binding_set_integer(L, "messages", row->messages);
    binding_set_integer(L, "tokens", row->tokens);
    binding_set_integer(L, "state_bytes", row->state_bytes);
    binding_set_boolean(L, "sound", row->sound);
    binding_set_slice(L, "name", row->name);
    binding_set_slice(L, "agent_version", row->version);
    binding_set_slice(L, "event", row->event);
    if (row->metadata.size) {
        lua_json_push(L, row->metadata.data, row->metadata.size);
        lua_setfield(L, -2, "metadata");
    }
}

/* session:checkpoints{name, named, since, until, reason} -> rows, newest first */
int binding_session_checkpoints(lua_State *L, struct binding_session *session)
{
    struct binding_guard *guard;
    sessile_checkpoint_filter filter;
    sessile_checkpoint_reason reason;
    sessile_checkpoint_row *rows = NULL;
    sessile_status status;
    sessile_error err;
    size_t count = 0, i;
    lua_settop(L, 2);
    memset(&filter, 0, sizeof filter);
    filter.name = binding_field_bytes(L, 2, "name");
    filter.named = binding_field_boolean(L, 2, "named");
    filter.since_ms = binding_field_integer(L, 2, "since", 0);
    filter.until_ms = binding_field_integer(L, 2, "until", 0);
    if (binding_field_string(L, 2, "reason")) {
        reason = (sessile_checkpoint_reason)binding_one_of(L, 2, "reason", reasons);
        filter.reason = &reason;
    }
    guard = binding_guard(L);
    status = sessile_checkpoints(session->handle, &filter, &rows, &count, &err);
    guard->block = rows;
    if (status)
        return binding_fail(L, &err);
    lua_newtable(L);
    for (i = 0; i < count; i++) {
        push_row(L, &rows[i]);
        lua_rawseti(L, -2, (lua_Integer)(i + 1));
    }
    binding_guard_free(guard);
    return 1;
}

/* session:restore(id, force) -> {checkpoint, head, state, json (its text), warnings (a
 * text)} */
int binding_session_restore(lua_State *L, struct binding_session *session)
{
    struct binding_guard *guard;
    sessile_restored *restored = NULL;
    sessile_status status;
    sessile_error err;
    sessile_id id;
    id = binding_check_id(L, 2);
    guard = binding_guard(L);
    status = sessile_restore(session->handle, id, lua_toboolean(L, 3), &restored, &err);
    guard->block = restored;
    if (status)
        return binding_fail(L, &err);
    lua_createtable(L, 0, 4);
    binding_set_id(L, "checkpoint", restored->checkpoint);
    binding_set_id(L, "head", restored->head);
    if (restored->state.size) {
        lua_json_push(L, restored->state.data, restored->state.size);
        lua_setfield(L, -2, "state");
    }
    binding_set_slice(L, "json", restored->state);
    binding_set_slice(L, "warnings", restored->warnings);
    binding_guard_free(guard);
    return 1;
}

/* session:delete_checkpoint(id) -> true */
int binding_session_delete_checkpoint(lua_State *L, struct binding_session *session)
{
    sessile_error err;
    sessile_id id;
    id = binding_check_id(L, 2);
    return binding_done(L, sessile_checkpoint_delete(session->handle, id, &err), &err);
}

int binding_agent_info(lua_State *L, int table, sessile_agent_info *out)
{
    int failed;
    memset(out, 0, sizeof *out);
    if (!lua_istable(L, table))
        return 0;
    if (lua_getfield(L, table, "agent_info") != LUA_TTABLE) {
        lua_pop(L, 1);
        return 0;
    }
    out->version = binding_field_bytes(L, -1, "version");
    out->config = binding_field_bytes(L, -1, "config");
    lua_getfield(L, -1, "tools");
    lua_remove(L, -2);
    if (lua_isnil(L, -1)) {
        lua_pop(L, 1);
        return 0;
    }
    failed = binding_json(L, -1, 0, "agent_info.tools", &out->tools);
    if (failed)
        return failed;
    lua_rawsetp(L, table, out); /* keeps the text */
    lua_pop(L, 1);
    return 0;
}
