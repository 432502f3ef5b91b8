/*
 * chain.c: a loaded chain: its lifetime, its compiled chunks, its pool of VMs.
 *
 * Owns the steps of a policy, immutable once loaded, and the VMs that no pipeline uses.
 * Must never hold the lock while Lua runs or memory is asked for, and never keep a VM
 * whose budget was spent, or that is full of what a pipeline left.
 */
#include "policy/pipeline.h"
#include "policy/require.h"

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>

/* Registry keys: the list of compiled chunks, and the maker of fresh variables. */
static const char chunks_key, maker_key;

const chain_hook chain_hooks[CHAIN_HOOKS] = {
    {SESSILE_HOOK_MERGE, "merge"},
    {SESSILE_HOOK_SUMMARIZE, "summarize"},
    {SESSILE_HOOK_TRUNCATE, "truncate"},
    {SESSILE_HOOK_SHOULD_COMPACT, "should_compact"},
    {SESSILE_HOOK_FLUSH, "flush"},
    {SESSILE_HOOK_COMPACT, "compact"},
    {SESSILE_HOOK_BRANCH_SUMMARY, "branch_summary"},
};

/* ------------------------------------------------------------------ lifetime */

static void free_text(const allocator *a, char *text)
{
    if (text)
        mem_free(a, text, strlen(text) + 1);
}

static void chain_free(void *policy)
{
    sessile_policy *p = policy;
    allocator a = p->alloc;
    size_t i;

    while (p->idle) {
        vm *v = p->idle;
        p->idle = v->next;
        vm_free(v);
    }
    for (i = 0; i < p->count; i++) {
        chain_step *step = &p->steps[i];
        free_text(&a, step->name);
        free_text(&a, step->options);
        free_text(&a, step->path);
        free_text(&a, step->file);
        mem_free(&a, step->source, step->source_size + 1);
    }
    for (i = 0; i < p->required_count; i++) {
        free_text(&a, p->required[i].file);
        mem_free(&a, p->required[i].source, p->required[i].source_size + 1);
    }
    for (i = 0; i < p->require_count; i++)
        free_text(&a, p->requires[i].name);
    pthread_mutex_destroy(&p->lock);
    mem_free(&a, p, sizeof *p);
}

sessile_status chain_new(sessile_policy **out, const policy_limits *limits,
                         const os_table *os, const allocator *a, sessile_error *err)
{
    sessile_policy *p = mem_zalloc(a, sizeof *p);
    *out = NULL;
    if (!p)
        return fail_nomem(err);
    p->alloc = *a;
    p->os = os;
    p->limits = *limits;
    counted_init(&p->references, chain_free);
    pthread_mutex_init(&p->lock, NULL); /* a plain mutex: cannot fail here */
    *out = p;
    return SESSILE_OK;
}

int policy_is_foreign(const sessile_policy *p)
{
    return p->is_foreign;
}

void policy_retain(sessile_policy *p)
{
    counted_retain(p);
}

void policy_release(sessile_policy *p)
{
    counted_release(p);
}

size_t policy_step_count(const sessile_policy *p)
{
    return p->count;
}

const policy_step_info *policy_step_get(const sessile_policy *p, size_t step)
{
    return step < p->count ? &p->steps[step].info : NULL;
}

/* ------------------------------------------------------------------ chunks */

void chain_compile(lua_State *L, const char *source, size_t size, const char *file)
{
    const char *name = lua_pushfstring(L, "@%s", file);
    int status = luaL_loadbufferx(L, source, size, name, "t");
    lua_remove(L, -2);
    if (status == LUA_ERRMEM)
        vm_spend(L, VM_MEMORY);
    if (status != LUA_OK)
        lua_error(L);
}

/*
 * A chunk compiled once is one function with one variable, its _ENV. Setting that
 * variable would give the new environment to everything that was ever made by the chunk;
 * giving the function another variable leaves what is old with what is old.
 */
void chain_set_environment(lua_State *L, int chunk)
{
    chunk = lua_absindex(L, chunk);
    lua_rawgetp(L, LUA_REGISTRYINDEX, &maker_key);
    lua_insert(L, -2);
    lua_call(L, 1, 1);
    lua_upvaluejoin(L, chunk, 1, -1, 1);
    lua_pop(L, 1);
}

/* Pushes a chunk compiled by compile_all(), or nil. */
static int push_compiled(lua_State *L, size_t index)
{
    if (lua_rawgetp(L, LUA_REGISTRYINDEX, &chunks_key) == LUA_TTABLE)
        lua_rawgeti(L, -1, (lua_Integer)index + 1);
    else
        lua_pushnil(L);
    lua_remove(L, -2);
    return lua_type(L, -1);
}

void chain_push_required(lua_State *L, const sessile_policy *p, size_t index, int loaded)
{
    const chain_required *r = &p->required[index];
    luaL_checkstack(L, 10, NULL);
    if (push_compiled(L, CHAIN_STEPS + index) != LUA_TFUNCTION) {
        lua_pop(L, 1);
        chain_compile(L, r->source + r->skip, r->source_size - r->skip, r->file);
    }
    environment_push(L);
    require_set(L, p, r->node, loaded);
    chain_set_environment(L, -2);
}

void chain_push_chunk(lua_State *L, const sessile_policy *p, size_t step)
{
    push_compiled(L, step);
    environment_push(L);
    require_set(L, p, p->steps[step].node, 0);
    lua_pushvalue(L, -1);
    chain_set_environment(L, -3);
}

void chain_open(lua_State *L)
{
    static const char maker[] = "local e = ... return function() return e end";
    if (luaL_loadbufferx(L, maker, sizeof maker - 1, "=maker", "t") != LUA_OK)
        lua_error(L);
    lua_rawsetp(L, LUA_REGISTRYINDEX, &maker_key);
}

static int compile_all(lua_State *L)
{
    const sessile_policy *p = lua_touserdata(L, 1);
    size_t i;

    chain_open(L);
    context_open(L);
    lua_createtable(L, (int)p->count, 0);
    for (i = 0; i < p->count; i++) {
        const chain_step *step = &p->steps[i];
        if (!step->source)
            continue;
        chain_compile(L, step->source + step->skip, step->source_size - step->skip,
                      step->file);
        lua_rawseti(L, -2, (lua_Integer)i + 1);
    }
    for (i = 0; i < p->required_count; i++) {
        const chain_required *r = &p->required[i];
        chain_compile(L, r->source + r->skip, r->source_size - r->skip, r->file);
        lua_rawseti(L, -2, (lua_Integer)(CHAIN_STEPS + i) + 1);
    }
    lua_rawsetp(L, LUA_REGISTRYINDEX, &chunks_key);
    return 0;
}

/* ------------------------------------------------------------------ the pool */

sessile_status chain_take(sessile_policy *p, vm **out, sessile_error *err)
{
    sessile_status status;
    vm *v;

    *out = NULL;
    pthread_mutex_lock(&p->lock);
    v = p->idle;
    if (v) {
        p->idle = v->next;
        p->idle_count--;
    }
    pthread_mutex_unlock(&p->lock);
    if (v) {
        v->next = NULL;
        vm_refill(v);
        *out = v;
        return SESSILE_OK;
    }
    status = vm_new(&v, &p->limits, p->os, &p->alloc, err);
    if (status)
        return status;
    vm_enter(v);
    if (vm_call(v, compile_all, p, 0, "policy", err) != LUA_OK)
        status = v->starved ? SESSILE_NOMEM : SESSILE_POLICY;
    vm_leave(v);
    if (status) {
        vm_free(v);
        return status;
    }
    vm_refill(v); /* compiling was paid for when the policy was loaded */
    *out = v;
    return SESSILE_OK;
}

void chain_return(sessile_policy *p, vm *v)
{
    if (!v)
        return;
    v->pipeline = NULL;
    if (!v->spent && !v->starved && v->used <= CHAIN_IDLE_BYTES) {
        pthread_mutex_lock(&p->lock);
        if (p->idle_count < CHAIN_IDLE) {
            v->next = p->idle;
            p->idle = v;
            p->idle_count++;
            v = NULL;
        }
        pthread_mutex_unlock(&p->lock);
    }
    vm_free(v);
}
