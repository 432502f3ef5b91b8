/*
 * run.c: runs as userdata: a turn, a compaction, a plan or a branch on its way; the needs
 * it states and the answers it takes.
 *
 * Owns the state that a hook is given while it is given: it is cut off when the answer
 * came or the run is closed, whichever is first, so that a script that kept it gets an
 * error and never freed memory. Runs no user code: the loop is Lua
 * (lua/sessile/host.lua), which is why a model function may yield.
 */
#include <limits.h>
#include <stdint.h>
#include <string.h>
#include "binding.h"
#include "policy/lua_json.h"
#include "policy/lua_state.h"

/* User values of a run. */
enum {
    RUN_SESSION = 1,
    RUN_POLICY,
    RUN_FALLBACK,
    RUN_STATE,
    RUN_ANSWER,
    RUN_VALUES = RUN_ANSWER
};

/* ------------------------------------------------------------------ life */

/* Ends the state of the run at index, if there is one. */
static void end_state(lua_State *L, int index)
{
    index = lua_absindex(L, index);
    if (lua_getiuservalue(L, index, RUN_STATE) == LUA_TUSERDATA) {
        lua_state_end(L, lua_gettop(L));
        lua_pushnil(L);
        lua_setiuservalue(L, index, RUN_STATE);
    }
    lua_pop(L, 1);
}

static int run_finalize(lua_State *L)
{
    struct binding_run *run = luaL_checkudata(L, 1, BINDING_RUN);
    if (run->handle) {
        end_state(L, 1);
        sessile_run_free(run->handle);
        run->handle = NULL;
        binding_session_release(run->session, NULL);
    }
    return 0;
}

struct binding_run *binding_run_live(lua_State *L, int index)
{
    struct binding_run *run = luaL_checkudata(L, index, BINDING_RUN);
    if (!run->handle) {
        binding_closed(L, "run");
        return NULL;
    }
    return run;
}

static int run_text(lua_State *L)
{
    struct binding_run *run = luaL_checkudata(L, 1, BINDING_RUN);
    lua_pushfstring(L, "%s%s", BINDING_RUN,
                    !run->handle ? " (closed)"
                    : run->done  ? " (done)"
                                 : "");
    return 1;
}

/* Pushes an empty run of the session at 1. Its policy and its fallback, fields of the
 * table at options, are kept with it. */
static struct binding_run *run_new(lua_State *L, int options, sessile_run_options *out)
{
    struct binding_run *run = binding_new(L, sizeof *run, RUN_VALUES, BINDING_RUN);
    int at = lua_gettop(L);
    lua_pushvalue(L, 1);
    lua_setiuservalue(L, at, RUN_SESSION);
    if (lua_istable(L, options)) {
        binding_raw_field(L, options, "policy");
        out->config.policy = binding_policy_opt(L, -1);
        lua_setiuservalue(L, at, RUN_POLICY);
        binding_raw_field(L, options, "fallback");
        out->config.fallback = binding_policy_opt(L, -1);
        lua_setiuservalue(L, at, RUN_FALLBACK);
    }
    return run;
}

/* Takes what a begin function said; the run is on top. */
static int run_begun(lua_State *L, struct binding_run *run,
                     struct binding_session *session, sessile_status status,
                     const sessile_error *err)
{
    if (status)
        return binding_fail(L, err);
    run->session = session;
    session->children++;
    return 1;
}

/* ------------------------------------------------------------------ begin */

/* The JSON of every message of the list at `list`: an array of slices, and the table that
 * keeps their texts, are left on the stack. 0, or 3 when one cannot be JSON. */
static int read_messages(lua_State *L, int list, sessile_slice **out, size_t *count)
{
    size_t n = (size_t)lua_rawlen(L, list);
    for (size_t i = 1; i <= n; i++) {
        if (lua_rawgeti(L, list, (lua_Integer)i) != LUA_TTABLE) {
            return binding_misuse(L, "message %d: table expected, got %s", (int)i,
                                  luaL_typename(L, -1));
        }
        lua_pop(L, 1);
    }
    return binding_json_list(L, list, 1, out, count);
}

/* What the members of sessile_run_options are called in Lua; each kind of run is given
 * those that it takes. */
static const char *const conflicts[] = {"fail", "append", "branch", NULL};
#define RUN(...) BINDING_FIELD(sessile_run_options, __VA_ARGS__)
static const struct binding_field run_fields[] = BINDING_FIELDS(
    RUN("model", SLICE, model), RUN("event", SLICE, event), RUN("once", SLICE, once),
    RUN("summary", SLICE, summary), RUN("summarize", BOOLEAN, summarize),
    RUN("instructions", SLICE, instructions), RUN("no_policy", BOOLEAN, no_policy),
    RUN("no_fallback", BOOLEAN, no_fallback),
    BINDING_ENUM(sessile_run_options, "on_conflict", on_conflict, conflicts));

static void read_options(lua_State *L, int table, sessile_run_options *out)
{
    sessile_run_options_init(out);
    binding_field_config(L, table, &out->config);
    binding_get_fields(L, table, run_fields, out);
    out->reason = binding_field_reason(L, table, "reason");
    if (lua_istable(L, table) && binding_raw_field(L, table, "memories") == LUA_TTABLE)
        out->memories = binding_memories(L, lua_gettop(L), &out->memory_count);
    out->base = binding_field_id(L, table, "base");
    out->has_base = out->base != SESSILE_NO_ID;
}

/* session:turn(messages, {usage, model, metadata, base, once, on_conflict, policy,
 * no_policy, fallback, triggers, event, checkpoint, checkpoint_keep, state, window,
 * reserve, keep_min, timeout_ms, isolation}) -> run; nil, message, code */
int binding_session_turn(lua_State *L, struct binding_session *session)
{
    sessile_run_options options;
    struct binding_triggers triggers;
    struct binding_run *run;
    sessile_slice *messages = NULL;
    sessile_status status;
    sessile_error err;
    size_t count = 0;
    int failed;
    luaL_checktype(L, 2, LUA_TTABLE);
    lua_settop(L, 3);
    luaL_checkstack(L, 40, "turn"); /* what the options borrow stays on it */
    read_options(L, 3, &options);
    binding_field_triggers(L, 3, &options.config, &triggers);
    if ((failed = binding_field_json(L, 3, "usage", &options.usage)) ||
        (failed = binding_field_json(L, 3, "metadata", &options.metadata)) ||
        (failed = read_messages(L, 2, &messages, &count)))
        return failed;
    if (lua_istable(L, 3) && binding_raw_field(L, 3, "state") != LUA_TNIL) {
        failed = binding_json(L, -1, 0, "state", &options.state);
        if (failed)
            return failed;
    }
    run = run_new(L, 3, &options);
    status = sessile_turn_begin(&run->handle, session->handle, messages, count, &options,
                                &err);
    return run_begun(L, run, session, status, &err);
}

typedef sessile_status (*run_begin)(sessile_run **, sessile_session *,
                                    const sessile_run_options *, sessile_error *);

/* {policy, fallback, instructions, reason, window, reserve, keep_min, timeout_ms} */
static int begin(lua_State *L, struct binding_session *session, run_begin function)
{
    sessile_run_options options;
    struct binding_run *run;
    sessile_status status;
    sessile_error err;
    lua_settop(L, 2);
    read_options(L, 2, &options);
    run = run_new(L, 2, &options);
    status = function(&run->handle, session->handle, &options, &err);
    return run_begun(L, run, session, status, &err);
}

int binding_session_compact(lua_State *L, struct binding_session *session)
{
    return begin(L, session, sessile_compact_begin);
}

int binding_session_plan(lua_State *L, struct binding_session *session)
{
    return begin(L, session, sessile_plan_begin);
}

/* session:branch(id, {summary, summarize, instructions, model, base, on_conflict, policy,
 * no_policy, window, reserve, keep_min, timeout_ms}) -> run; nil, message, code */
int binding_session_branch(lua_State *L, struct binding_session *session)
{
    sessile_run_options options;
    struct binding_run *run;
    sessile_status status;
    sessile_slice text;
    sessile_error err;
    sessile_key key;
    text.data = luaL_checklstring(L, 2, &text.size);
    lua_settop(L, 3);
    if (sessile_key_parse(text, &key) || key.n != 0)
        return binding_no_entry(L, session);
    read_options(L, 3, &options);
    run = run_new(L, 3, &options);
    status =
        sessile_branch_begin(&run->handle, session->handle, key.entry, &options, &err);
    return run_begun(L, run, session, status, &err);
}

/* {pending_run, text or failed (neither: it asks again), policy, timeout_ms} */
int binding_session_answer(lua_State *L, struct binding_session *session)
{
    sessile_run_options options;
    struct binding_run *run;
    sessile_answer answer;
    sessile_status status;
    sessile_error err;
    sessile_id pending_run;
    int given;
    lua_settop(L, 2);
    read_options(L, 2, &options);
    memset(&answer, 0, sizeof answer);
    pending_run = binding_field_id(L, 2, "pending_run");
    binding_raw_field(L, 2, "text");
    binding_raw_field(L, 2, "failed");
    given = !lua_isnil(L, -2) || !lua_isnil(L, -1);
    answer.status = lua_isnil(L, -2) ? SESSILE_IO : SESSILE_OK;
    answer.text = binding_field_bytes(L, 2, lua_isnil(L, -2) ? "failed" : "text");
    lua_settop(L, 2);
    run = run_new(L, 2, &options);
    status = sessile_answer_begin(&run->handle, session->handle, pending_run,
                                  given ? &answer : NULL, &options, &err);
    return run_begun(L, run, session, status, &err);
}

/* ------------------------------------------------------------------ needs */

/* The fields of a hook's need; the run is at 1, the need on top. */
static void push_hook(lua_State *L, const sessile_need *need)
{
    int at = lua_gettop(L);
    lua_pushstring(L, sessile_hook_name(need->hook));
    lua_setfield(L, at, "hook");
    lua_state_push(L, need->state, NULL);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, RUN_STATE);
    if (need->hook == SESSILE_HOOK_MERGE || need->hook == SESSILE_HOOK_BRANCH_SUMMARY) {
        lua_state_push_previous(L, lua_gettop(L));
        lua_setfield(L, at, need->hook == SESSILE_HOOK_MERGE ? "previous" : "abandoned");
    }
    lua_setfield(L, at, "state");
    if (need->options.size)
        lua_json_push(L, need->options.data, need->options.size);
    else
        lua_newtable(L);
    lua_setfield(L, at, "options");
    lua_pushinteger(L, (lua_Integer)need->now_ms);
    lua_setfield(L, at, "now");
}

static void push_need(lua_State *L, const sessile_need *need)
{
    lua_createtable(L, 0, 10);
    lua_pushstring(L, need->policy ? need->policy : "");
    lua_setfield(L, -2, "policy");
    binding_set_integer(L, "step", (int64_t)need->step + 1);
    lua_pushstring(L, sessile_reason_name(need->reason));
    lua_setfield(L, -2, "reason");
    if (need->fallback)
        binding_set_boolean(L, "fallback", 1);
    if (need->instructions.size) {
        binding_push_slice(L, need->instructions);
        lua_setfield(L, -2, "instructions");
    }
    if (need->kind == SESSILE_NEED_MODEL) {
        lua_pushliteral(L, "model");
        lua_setfield(L, -2, "kind");
        lua_json_push(L, need->request.data, need->request.size);
        lua_setfield(L, -2, "request");
        return;
    }
    if (need->kind == SESSILE_NEED_STATE) {
        lua_pushliteral(L, "state");
        lua_setfield(L, -2, "kind");
        return;
    }
    lua_pushliteral(L, "hook");
    lua_setfield(L, -2, "kind");
    push_hook(L, need);
}

/* run:step() -> a need; true when it is done; nil, message, code */
static int run_step(lua_State *L, struct binding_run *run)
{
    sessile_status status;
    sessile_need need;
    sessile_error err;
    if (run->asks != SESSILE_NEED_NONE)
        return binding_misuse(L, "run:step: the run waits for an answer: give it first");
    lua_settop(L, 1);
    memset(&need, 0, sizeof need);
    status = sessile_run_step(run->handle, &need, &err);
    if (!status) {
        run->done = 1;
        lua_pushboolean(L, 1);
        return 1;
    }
    if (status != SESSILE_NEEDS)
        return binding_fail(L, &err);
    run->asks = (int)need.kind;
    run->hook = need.hook;
    push_need(L, &need);
    return 1;
}

/* ------------------------------------------------------------------ answers */

static int asked_nothing(lua_State *L, const char *method)
{
    return binding_misuse(L, "run:%s: the run asked nothing: step it", method);
}

/* Gives the answer; its text is the string on top (or nil), which the run keeps. */
static int give(lua_State *L, struct binding_run *run, sessile_answer *answer)
{
    sessile_status status;
    sessile_error err;
    if (lua_type(L, -1) == LUA_TSTRING)
        answer->text.data = lua_tolstring(L, -1, &answer->text.size);
    lua_pushvalue(L, -1);
    lua_setiuservalue(L, 1, RUN_ANSWER);
    status = sessile_run_reply(run->handle, answer, &err);
    run->asks = SESSILE_NEED_NONE;
    end_state(L, 1);
    return binding_done(L, status, &err);
}

/* run:reply(value) -> true; nil, message, code. For a model's need the text it said; for
 * a hook's what the hook returned (nothing: the state as edited). */
static int run_reply(lua_State *L, struct binding_run *run)
{
    sessile_answer answer;
    sessile_error err;
    if (run->asks == SESSILE_NEED_NONE)
        return asked_nothing(L, "reply");
    lua_settop(L, 2);
    memset(&answer, 0, sizeof answer);
    answer.status = SESSILE_OK;
    if (run->asks == SESSILE_NEED_MODEL) {
        if (lua_type(L, 2) != LUA_TSTRING)
            return binding_misuse(L, "run:reply: the model's text expected, got %s",
                                  luaL_typename(L, 2));
        return give(L, run, &answer);
    }
    if (run->asks == SESSILE_NEED_STATE) {
        int failed = binding_json(L, 2, 0, "state", &answer.text);
        return failed ? failed : give(L, run, &answer);
    }
    if (run->hook == SESSILE_HOOK_SHOULD_COMPACT) {
        answer.verdict = lua_toboolean(L, 2);
        lua_pushnil(L);
        return give(L, run, &answer);
    }
    if (run->hook == SESSILE_HOOK_BRANCH_SUMMARY) {
        if (lua_toboolean(L, 2) && lua_type(L, 2) != LUA_TSTRING) {
            answer.status = SESSILE_POLICY;
            lua_pushfstring(L, "it returned a %s, not a text", luaL_typename(L, 2));
        } else if (lua_type(L, 2) != LUA_TSTRING) {
            lua_pushnil(L);
        }
        return give(L, run, &answer);
    }
    lua_getiuservalue(L, 1, RUN_STATE);
    answer.status = lua_state_result(L, 3, 2, &err);
    lua_settop(L, 2);
    if (!answer.status)
        lua_pushnil(L);
    else
        lua_pushstring(L, err.message);
    return give(L, run, &answer);
}

static int run_defer(lua_State *L, struct binding_run *run)
{
    if (run->asks == SESSILE_NEED_NONE)
        return asked_nothing(L, "defer");
    return binding_run_defer(L, run);
}

/* run:fail(reason) -> true: the answer is that there is none */
static int run_fail(lua_State *L, struct binding_run *run)
{
    sessile_answer answer;
    luaL_checkstring(L, 2);
    if (run->asks == SESSILE_NEED_NONE)
        return asked_nothing(L, "fail");
    lua_settop(L, 2);
    memset(&answer, 0, sizeof answer);
    answer.status = run->asks == SESSILE_NEED_MODEL ? SESSILE_IO : SESSILE_POLICY;
    return give(L, run, &answer);
}

/* run:context() -> list of messages as the run leaves, or would leave, them */
static int run_context(lua_State *L, struct binding_run *run)
{
    sessile_message *list = NULL;
    struct binding_result got = binding_result(L);
    got.status = sessile_run_context(run->handle, &list, &got.count, &got.err);
    return binding_result_messages(L, &got, list);
}

static const struct binding_method methods[] = {
    {"step", .run = run_step},
    {"reply", .run = run_reply},
    {"fail", .run = run_fail},
    {"defer", .run = run_defer},
    {"outcome", .run = binding_run_outcome},
    {"context", .run = run_context},
    {NULL},
};

void binding_run_open(lua_State *L)
{
    binding_class(L, BINDING_RUN, methods, run_finalize, run_finalize, run_text);
}
