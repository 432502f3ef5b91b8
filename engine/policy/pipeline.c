/*
 * pipeline.c: one pipeline: its hooks run in one VM, in environments made for it.
 *
 * A hook runs as a coroutine, so that asking a model is a yield. The C call then
 * returns NEEDS, nothing blocks, and the answer resumes the coroutine, in this thread
 * or another. Each step of the chain has its own environment, made when its first hook
 * runs and dropped with the pipeline. Must never leave Lua values of this pipeline in
 * the VM for the next one, or let the script use its state after the hook has ended.
 */
#include "policy/pipeline.h"

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>
#include "base/names.h"
#include "base/text.h"
#include "policy/chunk.h"
#include "policy/lua_json.h"
#include "policy/lua_state.h"
#include "policy/worker.h"

/* ------------------------------------------------------------------ life */

static sessile_slice copy_slice(char **at, sessile_slice from)
{
    sessile_slice copy = {*at, from.size};
    if (from.size)
        memcpy(*at, from.data, from.size);
    *at += from.size;
    return copy;
}

sessile_status policy_pipeline_new(policy_pipeline **out, sessile_policy *p,
                                   const policy_setup *setup, sessile_error *err)
{
    size_t size = setup->session_id.size + setup->agent.size + setup->title.size +
                  setup->metadata.size + setup->instructions.size;
    policy_pipeline *pl;
    char *at;

    *out = NULL;
    if (p->is_foreign && !setup->worker)
        return fail(err, SESSILE_DENIED,
                    "a policy that others may write runs in a process of its own only");
    pl = mem_zalloc(&p->alloc, sizeof *pl);
    if (!pl)
        return fail_nomem(err);
    at = pl->texts = mem_alloc(&p->alloc, size);
    if (!at) {
        mem_free(&p->alloc, pl, sizeof *pl);
        return fail_nomem(err);
    }
    pl->texts_size = size;
    pl->setup = *setup;
    pl->setup.session_id = copy_slice(&at, setup->session_id);
    pl->setup.agent = copy_slice(&at, setup->agent);
    pl->setup.title = copy_slice(&at, setup->title);
    pl->setup.metadata = copy_slice(&at, setup->metadata);
    pl->setup.instructions = copy_slice(&at, setup->instructions);
    pl->policy = p;
    policy_retain(p);
    buf_init(&pl->log, &p->alloc);
    buf_init(&pl->text, &p->alloc);
    buf_init(&pl->arguments, &p->alloc);
    *out = pl;
    return SESSILE_OK;
}

/* Disconnects what scripts hold of the state. Raises nothing: it only reads and
 * clears. */
static void end_state(policy_pipeline *pl)
{
    lua_State *L = pl->vm->L;
    pl->state = NULL;
    if (pipeline_push_table(L) == LUA_TTABLE) {
        lua_rawgeti(L, -1, TABLE_STATE);
        lua_state_end(L, -1);
        lua_pop(L, 1);
    }
    lua_pop(L, 1);
}

/* A coroutine that failed cannot be used again. Assigning nil allocates nothing. */
static void drop_thread(lua_State *L)
{
    if (pipeline_push_table(L) == LUA_TTABLE) {
        lua_pushnil(L);
        lua_rawseti(L, -2, TABLE_THREAD);
    }
    lua_pop(L, 1);
}

void policy_pipeline_free(policy_pipeline *pl)
{
    sessile_policy *p;
    if (!pl)
        return;
    p = pl->policy;
    if (pl->vm) {
        end_state(pl);
        lua_pushnil(pl->vm->L);
        pipeline_set_table(pl->vm->L);
        chain_return_vm(p, pl->vm);
    }
    buf_deinit(&pl->log);
    buf_deinit(&pl->text);
    buf_deinit(&pl->arguments);
    mem_free(&p->alloc, pl->texts, pl->texts_size);
    mem_free(&p->alloc, pl, sizeof *pl);
    policy_release(p);
}

const char *policy_pipeline_log(const policy_pipeline *pl)
{
    return pl->log.data ? pl->log.data : "";
}

uint64_t policy_pipeline_us(const policy_pipeline *pl)
{
    return pl->vm ? pl->vm->wall_us : pl->worker_us;
}

/* ------------------------------------------------------------------ starting a hook */

static const char *file_of(const policy_pipeline *pl)
{
    return pl->policy->steps[pl->step].file;
}

/* Runs the chunk of the step in an environment of its own; pushes what it returns. */
static void instantiate(lua_State *L, const policy_pipeline *pl)
{
    chunk_push_step(L, pl->policy, pl->step);
    lua_pushliteral(L, "string");
    lua_rawget(L, -2);
    environment_use_strings(L, -1);
    pipeline_set_slot(L, pl, SLOT_STRINGS);
    lua_pop(L, 1);
    lua_call(L, 0, 1);
    if (!lua_istable(L, -1))
        luaL_error(L, "%s: it returned a %s, not the policy's table", file_of(pl),
                   luaL_typename(L, -1));
    lua_pushvalue(L, -1);
    pipeline_set_slot(L, pl, SLOT_HOOKS);
}

static void push_hook(lua_State *L, policy_pipeline *pl)
{
    const char *name = hook_name(pl->hook);
    lua_Debug ar;

    if (pipeline_get_slot(L, pl, SLOT_HOOKS) == LUA_TNIL) {
        lua_pop(L, 1);
        instantiate(L, pl);
    } else {
        pipeline_get_slot(L, pl, SLOT_STRINGS);
        environment_use_strings(L, -1);
        lua_pop(L, 1);
    }
    lua_pushstring(L, name);
    if (lua_rawget(L, -2) != LUA_TFUNCTION)
        luaL_error(L, "%s: %s is a %s, not a function", file_of(pl), name,
                   luaL_typename(L, -1));
    lua_remove(L, -2);
    lua_pushvalue(L, -1);
    lua_getinfo(L, ">S", &ar);
    if (ar.linedefined > 0)
        snprintf(pl->origin, sizeof pl->origin, "%s:%d", ar.short_src, ar.linedefined);
    else
        snprintf(pl->origin, sizeof pl->origin, "%s", file_of(pl));
}

static int is_of_memory(const policy_pipeline *pl)
{
    return (CHAIN_MEMORY_HOOKS & (unsigned)pl->hook) != 0;
}

/* Pushes the arguments of a hook of a memory, which the script can only read. Returns how
 * many. */
static int push_values(lua_State *L, const policy_pipeline *pl)
{
    int array = lua_gettop(L) + 1, count, i;
    vm_charge(L, pl->arguments.size / 4 + 1);
    lua_json_push(L, pl->arguments.data, pl->arguments.size);
    count = (int)lua_rawlen(L, array);
    luaL_checkstack(L, count + 1, NULL);
    for (i = 1; i <= count; i++)
        if (lua_rawgeti(L, array, i) == LUA_TTABLE)
            lua_json_freeze(L, -1);
    lua_remove(L, array);
    return count;
}

/* Leaves the hook and its arguments on the coroutine. */
static int start_hook(lua_State *L)
{
    policy_pipeline *pl = lua_touserdata(L, 1);
    int table, hook, state, arguments = 2;
    lua_State *co;

    if (pipeline_push_table(L) != LUA_TTABLE) {
        lua_pop(L, 1);
        lua_createtable(L, TABLE_SLOTS - 1 + (int)pl->policy->count * SLOTS, 0);
        lua_pushvalue(L, -1);
        pipeline_set_table(L);
    }
    table = lua_gettop(L);
    push_hook(L, pl);
    hook = lua_gettop(L);
    lua_state_push(L, pl->state, vm_charge_work);
    state = lua_gettop(L);
    lua_pushvalue(L, state);
    lua_rawseti(L, table, TABLE_STATE);
    if (lua_rawgeti(L, table, TABLE_THREAD) != LUA_TTHREAD) {
        lua_pop(L, 1);
        lua_newthread(L);
        lua_pushvalue(L, -1);
        lua_rawseti(L, table, TABLE_THREAD);
    }
    co = lua_tothread(L, -1);

    lua_pushvalue(L, hook);
    if (pl->hook == SESSILE_HOOK_MERGE) {
        lua_state_push_previous(L, state);
        arguments++;
    }
    if (pl->hook == SESSILE_HOOK_BRANCH_SUMMARY) /* a list to read, nothing to edit */
        lua_state_push_previous(L, state);
    else if (is_of_memory(pl))
        arguments = 1 + push_values(L, pl);
    else
        lua_pushvalue(L, state);
    ctx_push(L);
    if (!lua_checkstack(co, arguments + 1))
        return luaL_error(L, "not enough memory");
    lua_xmove(L, co, arguments + 1);
    pl->passed = arguments;
    return 0;
}

/* ------------------------------------------------------------------ its three ends */

typedef struct hook_end {
    policy_pipeline *pl;
    lua_State *co;
    int verdict;
    sessile_status status;
    sessile_error err;
} hook_end;

/* The text that a branch_summary returned, at index; nothing when it returned none. */
static void take_text(lua_State *L, hook_end *end, int index)
{
    policy_pipeline *pl = end->pl;
    uint64_t limit = pl->policy->limits.result;
    const char *text;
    size_t size;

    if (!index || !lua_toboolean(L, index))
        return;
    if (lua_type(L, index) != LUA_TSTRING) {
        end->status = fail(&end->err, SESSILE_INVALID, "it returned a %s, not a text",
                           luaL_typename(L, index));
        return;
    }
    text = lua_tolstring(L, index, &size);
    if (size > limit) {
        end->status = fail(&end->err, SESSILE_LIMIT,
                           "its text has %zu bytes and the limit [policy_result] is %llu",
                           size, (unsigned long long)limit);
        return;
    }
    buf_clear(&pl->text);
    buf_put(&pl->text, text, size);
    if (pl->text.failed)
        end->status = fail_nomem(&end->err);
}

/* The results of a hook of a memory, from the coroutine: an array of two. */
static void take_values(lua_State *L, hook_end *end)
{
    policy_pipeline *pl = end->pl;
    int i, too_much = 0;
    const char *text;
    size_t size;

    lua_settop(end->co, 2);
    lua_createtable(L, 2, 0);
    lua_json_mark_array(L, -1);
    if (!lua_checkstack(L, 2))
        luaL_error(L, "not enough memory");
    lua_xmove(end->co, L, 2);
    for (i = 2; i > 0; i--) {
        if (lua_isnil(L, -1)) {
            lua_pop(L, 1);
            lua_pushlightuserdata(L, NULL);
        }
        lua_rawseti(L, -1 - i, i);
    }
    if (!lua_json_bounded(L, -1, 0, (size_t)pl->policy->limits.result, &too_much)) {
        end->status = fail(&end->err, too_much ? SESSILE_LIMIT : SESSILE_INVALID,
                           "what it returned: %s", lua_tostring(L, -1));
        return;
    }
    text = lua_tolstring(L, -1, &size);
    buf_clear(&pl->text);
    if (!utf8_valid(text, size))
        end->status = fail(&end->err, SESSILE_INVALID, "what it returned is not UTF-8");
    else if (buf_put(&pl->text, text, size), pl->text.failed)
        end->status = fail_nomem(&end->err);
}

/* The hook returned: its first result is at index 1 of the coroutine. */
static int finish_hook(lua_State *L)
{
    hook_end *end = lua_touserdata(L, 1);
    int result = 0;

    if (is_of_memory(end->pl)) {
        take_values(L, end);
        return 0;
    }
    pipeline_push_table(L);
    lua_rawgeti(L, 2, TABLE_STATE);
    if (lua_gettop(end->co) > 0) {
        lua_settop(end->co, 1);
        lua_xmove(end->co, L, 1);
        result = 4;
    }
    if (end->pl->hook == SESSILE_HOOK_SHOULD_COMPACT) {
        end->verdict = result && lua_toboolean(L, result);
        result = 0;
    }
    if (end->pl->hook == SESSILE_HOOK_BRANCH_SUMMARY) {
        take_text(L, end, result);
        return 0;
    }
    end->status = lua_state_result(L, 3, result, &end->err);
    return 0;
}

static sessile_status end_failed(policy_pipeline *pl, policy_result *out,
                                 sessile_status status)
{
    out->spent = pl->vm->spent != VM_FRESH;
    drop_thread(pl->vm->L);
    end_state(pl);
    return status;
}

static sessile_status end_returned(policy_pipeline *pl, lua_State *co, policy_result *out,
                                   sessile_error *err)
{
    hook_end end = {pl, co, 0, SESSILE_OK, {0}};

    if (vm_call(pl->vm, finish_hook, &end, 0, file_of(pl), err) != LUA_OK)
        return end_failed(pl, out, pl->vm->starved ? SESSILE_NOMEM : SESSILE_POLICY);
    if (end.status == SESSILE_INVALID || end.status == SESSILE_LIMIT) {
        (void)end_failed(pl, out,
                         fail(err, SESSILE_POLICY, "%s: %s: %s", pl->origin,
                              hook_name(pl->hook), end.err.message));
        out->spent |= end.status == SESSILE_LIMIT;
        return SESSILE_POLICY;
    }
    if (end.status)
        return end_failed(pl, out, fail(err, end.status, "%s", end.err.message));
    out->verdict = end.verdict;
    if (pl->hook == SESSILE_HOOK_BRANCH_SUMMARY || is_of_memory(pl))
        out->text = (sessile_slice){pl->text.data, pl->text.size};
    end_state(pl);
    return SESSILE_OK;
}

/* Resumes the coroutine, with arguments that are on its stack, to one of its three
 * ends. */
static sessile_status resume(policy_pipeline *pl, lua_State *co, int arguments,
                             policy_result *out, sessile_error *err)
{
    vm *v = pl->vm;
    int results, status;

    v->where[0] = 0;
    vm_pace(v, co);
    status = lua_resume(co, v->L, arguments, &results);
    if (v->spent && (status == LUA_OK || status == LUA_YIELD)) {
        lua_settop(co, 0);
        status = LUA_ERRRUN;
    }
    if (status == LUA_OK)
        return end_returned(pl, co, out, err);
    if (status == LUA_YIELD) {
        pl->waiting = 1;
        out->asks_memory = pl->asks_memory;
        out->request.data = lua_tolstring(co, -1, &out->request.size);
        return SESSILE_NEEDS;
    }
    return end_failed(pl, out, vm_failure(v, co, status, file_of(pl), err));
}

static lua_State *thread_of(lua_State *L)
{
    lua_State *co;
    pipeline_push_table(L);
    lua_rawgeti(L, -1, TABLE_THREAD);
    co = lua_tothread(L, -1);
    lua_pop(L, 2);
    return co;
}

/* ------------------------------------------------------------------ elsewhere */

static worker_job job_of(policy_pipeline *pl, policy_result *out)
{
    worker_job job = {.step = pl->step,
                      .hook = pl->hook,
                      .reason = pl->reason,
                      .state = pl->state,
                      .journal = pl->setup.journal,
                      .arguments = {pl->arguments.data, pl->arguments.size},
                      .log = &pl->log,
                      .us = &pl->worker_us,
                      .out = out};
    return job;
}

/* Records whether the worker waits for an answer. */
static sessile_status worker_came_back(policy_pipeline *pl, sessile_status status)
{
    pl->waiting = status == SESSILE_NEEDS;
    return status;
}

static sessile_status call_worker(policy_pipeline *pl, policy_result *out,
                                  sessile_error *err)
{
    worker_job job = job_of(pl, out);
    sessile_status status = SESSILE_OK;

    if (!pl->opened)
        status =
            worker_open(pl->setup.worker, pl->policy, &pl->setup, pl->setup.state, err);
    pl->opened = status == SESSILE_OK;
    if (!status)
        status = worker_call(pl->setup.worker, &job, err);
    return worker_came_back(pl, status);
}

sessile_status policy_pipeline_call(policy_pipeline *pl, size_t step, sessile_hook hook,
                                    sessile_state *state, sessile_reason reason,
                                    policy_result *out, sessile_error *err)
{
    sessile_status status;

    memset(out, 0, sizeof *out);
    if (step >= pl->policy->count || pl->policy->steps[step].info.is_host)
        return fail(err, SESSILE_INVALID, "step %zu of the chain is no Lua policy", step);
    if (pl->waiting)
        return fail(err, SESSILE_INVALID, "the policy waits for an answer");
    if (!(pl->policy->steps[step].info.hooks & (unsigned)hook))
        return SESSILE_OK;
    pl->step = step;
    pl->hook = hook;
    pl->reason = reason;
    pl->state = state;
    pl->passed = 0;
    buf_clear(&pl->text);
    if (pl->setup.worker)
        return call_worker(pl, out, err);
    if (!pl->vm) {
        status = chain_take_vm(pl->policy, &pl->vm, err);
        if (status)
            return status;
        pl->vm->pipeline = pl;
    }
    pl->vm->pcalls = 0;
    vm_enter(pl->vm);
    if (pl->vm->spent)
        status = end_failed(
            pl, out, fail(err, SESSILE_POLICY, "%s: its budget is spent", file_of(pl)));
    else if (vm_call(pl->vm, start_hook, pl, 0, file_of(pl), err) != LUA_OK)
        status = end_failed(pl, out, pl->vm->starved ? SESSILE_NOMEM : SESSILE_POLICY);
    else
        status = resume(pl, thread_of(pl->vm->L), pl->passed, out, err);
    vm_leave(pl->vm);
    return status;
}

sessile_status policy_pipeline_call_with(policy_pipeline *pl, size_t step,
                                         sessile_hook hook, sessile_slice arguments,
                                         sessile_state *state, sessile_reason reason,
                                         policy_result *out, sessile_error *err)
{
    buf_clear(&pl->arguments);
    buf_put(&pl->arguments, arguments.data, arguments.size);
    if (pl->arguments.failed)
        return fail_nomem(err);
    return policy_pipeline_call(pl, step, hook, state, reason, out, err);
}

/* ------------------------------------------------------------------ answers */

typedef struct hook_answer {
    policy_pipeline *pl;
    const sessile_answer *answer;
    lua_State *co;
    int arguments;
} hook_answer;

/* Pushes the answer on the coroutine: the text, or nil and a reason. An answer is
 * untrusted text, so its size is checked before the script sees it. */
static int push_answer(lua_State *L)
{
    hook_answer *a = lua_touserdata(L, 1);
    sessile_slice text = a->answer->text;
    uint64_t limit = a->pl->policy->limits.result;

    lua_settop(a->co, 0);
    if (text.size > limit) {
        lua_pushnil(L);
        lua_pushfstring(L, "the answer is longer than %I bytes", (LUAI_UACINT)limit);
    } else if (!utf8_valid(text.data ? text.data : "", text.size)) {
        lua_pushnil(L);
        lua_pushliteral(L, "the answer is not UTF-8");
    } else if (a->answer->status) {
        lua_pushnil(L);
        if (text.size)
            lua_pushlstring(L, text.data, text.size);
        else
            lua_pushliteral(L, "the model did not answer");
    } else {
        lua_pushlstring(L, text.data ? text.data : "", text.size);
    }
    a->arguments = lua_gettop(L) - 1;
    if (!lua_checkstack(a->co, a->arguments))
        return luaL_error(L, "not enough memory");
    lua_xmove(L, a->co, a->arguments);
    return 0;
}

sessile_status policy_pipeline_answer(policy_pipeline *pl, const sessile_answer *answer,
                                      policy_result *out, sessile_error *err)
{
    hook_answer a = {pl, answer, NULL, 0};
    sessile_status status;

    memset(out, 0, sizeof *out);
    if (!pl->waiting)
        return fail(err, SESSILE_INVALID, "nothing was asked");
    pl->waiting = 0;
    if (pl->setup.worker) {
        worker_job job = job_of(pl, out);
        return worker_came_back(pl, worker_answer(pl->setup.worker, &job, answer, err));
    }
    vm_enter(pl->vm);
    a.co = thread_of(pl->vm->L);
    if (vm_call(pl->vm, push_answer, &a, 0, file_of(pl), err) != LUA_OK)
        status = end_failed(pl, out, pl->vm->starved ? SESSILE_NOMEM : SESSILE_POLICY);
    else
        status = resume(pl, a.co, a.arguments, out, err);
    vm_leave(pl->vm);
    return status;
}
