/*
 * checkpoint.c: checkpoints as tables: made, listed, restored, withdrawn.
 */
#include <stdint.h>
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"

static const char *const reasons[] = {"manual", "periodic", "event", "threshold", NULL};

#define OPTION(...) BINDING_FIELD(sessile_checkpoint_options, __VA_ARGS__)
static const struct binding_field options_fields[] =
    BINDING_FIELDS(OPTION("name", SLICE, name), OPTION("keep", COUNT, keep));

/* session:checkpoint{name, state (any value), metadata, keep} -> id */
int binding_session_checkpoint(lua_State *L, struct binding_session *session)
{
    sessile_checkpoint_options options;
    sessile_error err;
    sessile_id id;
    luaL_checktype(L, 2, LUA_TTABLE);
    memset(&options, 0, sizeof options);
    binding_get_fields(L, 2, options_fields, &options);
    if (binding_field_json(L, 2, "metadata", &options.metadata))
        return 3;
    if (binding_raw_field(L, 2, "state") != LUA_TNIL &&
        binding_json(L, -1, 0, "state", &options.state))
        return 3;
    return binding_done_id(L, sessile_checkpoint(session->handle, &options, &id, &err),
                           &id, &err);
}

#define CHECKPOINT(...) BINDING_FIELD(sessile_checkpoint_row, __VA_ARGS__)
static const struct binding_row checkpoint_row = BINDING_ROW(
    sessile_checkpoint_row, NULL, CHECKPOINT("id", ID, entry),
    CHECKPOINT("head", ID, head), CHECKPOINT("time", INTEGER, time_ms),
    CHECKPOINT("messages", INTEGER, messages), CHECKPOINT("tokens", INTEGER, tokens),
    CHECKPOINT("state_bytes", INTEGER, state_bytes), CHECKPOINT("sound", BOOLEAN, sound),
    CHECKPOINT("name", SLICE, name), CHECKPOINT("agent_version", SLICE, version),
    CHECKPOINT("event", SLICE, event), CHECKPOINT("metadata", JSON, metadata),
    BINDING_ENUM(sessile_checkpoint_row, "reason", reason, reasons));

#define FILTER(...) BINDING_FIELD(sessile_checkpoint_filter, __VA_ARGS__)
static const struct binding_field filter_fields[] = BINDING_FIELDS(
    FILTER("name", SLICE, name), FILTER("named", BOOLEAN, named),
    FILTER("since", INTEGER, since_ms), FILTER("until", INTEGER, until_ms));

/* session:checkpoints{name, named, since, until, reason} -> rows, newest first */
int binding_session_checkpoints(lua_State *L, struct binding_session *session)
{
    sessile_checkpoint_filter filter;
    sessile_checkpoint_reason reason;
    sessile_checkpoint_row *rows = NULL;
    memset(&filter, 0, sizeof filter);
    binding_get_fields(L, 2, filter_fields, &filter);
    if (binding_field_string(L, 2, "reason")) {
        reason = (sessile_checkpoint_reason)binding_one_of(L, 2, "reason", reasons);
        filter.reason = &reason;
    }
    struct binding_result got = binding_result(L);
    got.status =
        sessile_checkpoints(session->handle, &filter, &rows, &got.count, &got.err);
    return binding_result_rows(L, &got, &checkpoint_row, rows);
}

#define RESTORED(...) BINDING_FIELD(sessile_restored, __VA_ARGS__)
static const struct binding_row restored_row =
    BINDING_ROW(sessile_restored, NULL, RESTORED("checkpoint", ID, checkpoint),
                RESTORED("head", ID, head), RESTORED("state", JSON, state),
                RESTORED("json", SLICE, state), RESTORED("warnings", SLICE, warnings));

/* session:restore(id, force) -> {checkpoint, head, state, json (its text), warnings (a
 * text)} */
int binding_session_restore(lua_State *L, struct binding_session *session)
{
    sessile_restored *restored = NULL;
    sessile_id id = binding_check_id(L, 2);
    struct binding_result got = binding_result(L);
    got.status =
        sessile_restore(session->handle, id, lua_toboolean(L, 3), &restored, &got.err);
    return binding_result_row(L, &got, &restored_row, restored);
}

/* session:delete_checkpoint(id) -> true */
int binding_session_delete_checkpoint(lua_State *L, struct binding_session *session)
{
    sessile_id id = binding_check_id(L, 2);
    sessile_error err;
    return binding_done(L, sessile_checkpoint_delete(session->handle, id, &err), &err);
}

int binding_agent_info(lua_State *L, int table, sessile_agent_info *out)
{
    int at, failed = 0;
    memset(out, 0, sizeof *out);
    if (binding_raw_field(L, table, "agent_info") == LUA_TTABLE) {
        at = lua_gettop(L);
        out->version = binding_field_bytes(L, at, "version");
        out->config = binding_field_bytes(L, at, "config");
        if (binding_raw_field(L, at, "tools") != LUA_TNIL)
            failed = binding_json(L, -1, 0, "agent_info.tools", &out->tools);
    }
    return failed; /* what *out borrows stays on the stack */
}
