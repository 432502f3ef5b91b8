/*
 * vm.c: one private Lua state: its memory, its entries, its errors.
 *
 * Owns Lua's allocator, and every entry from C into Lua: a protected call under the "C"
 * locale. Must never let an error reach lua_atpanic, run the script to describe its
 * error, or let a script continue after its budget is spent.
 */
#include "policy/vm.h"

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/lua_json.h"
#include "policy/lua_state.h"
#include "policy/own_lua.h"

/* No string is larger: comparing two of this size may take 0.1 s, in one instruction. */
#define STRING_MAX ((size_t)16 << 20)

void vm_enter(vm *v)
{
    uint64_t limit = (uint64_t)v->limits.ms * 1000;
    v->outside = uselocale(v->locale);
    v->wall_from = v->os->clock_us(v->os->ud);
    v->cpu_from = v->os->thread_cpu_us(v->os->ud);
    v->wall_check = v->wall_from + (v->cpu_us < limit ? limit - v->cpu_us : 0);
}

void vm_leave(vm *v)
{
    v->cpu_us += v->os->thread_cpu_us(v->os->ud) - v->cpu_from;
    v->wall_us += v->os->clock_us(v->os->ud) - v->wall_from;
    uselocale(v->outside);
    v->running = NULL; /* a coroutine may be collected before the next entry */
}

/* ------------------------------------------------------------------ memory */

/* Lua's allocator. When it returns NULL, Lua collects all garbage, tries again, and
 * then raises. Beyond the soft limit the hook stops the script; the hard limit is for
 * what a single instruction or C function allocates. */
static void *vm_realloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    vm *v = ud;
    int is_string = !ptr && osize == LUA_TSTRING;
    void *block;

    if (!ptr)
        osize = 0; /* osize was the kind of the new object */
    if (nsize == 0) {
        mem_free(&v->alloc, ptr, osize);
        v->used -= osize;
        return NULL;
    }
    if (nsize <= osize) { /* Lua requires that shrinking succeeds */
        block = mem_realloc(&v->alloc, ptr, osize, nsize);
        v->used -= osize - nsize;
        return block ? block : ptr;
    }
    if (is_string && nsize > STRING_MAX)
        return NULL;
    if (nsize > v->limits.memory || v->used + (nsize - osize) > v->limits.memory)
        return NULL;
    if (nsize >= VM_BIG_BLOCK) {
        if (!v->spent && nsize / VM_GAS_BYTES >= v->gas)
            v->spent = VM_GAS;
        if (!v->spent && vm_time_spent(v))
            v->spent = VM_TIME;
        if (v->spent)
            return NULL;
        v->gas -= nsize / VM_GAS_BYTES;
        if (is_string)
            vm_note_size(v, nsize);
    }
    block = mem_realloc(&v->alloc, ptr, osize, nsize);
    if (!block) {
        v->starved = 1;
        return NULL;
    }
    v->used += nsize - osize;
    v->allocated += nsize - osize;
    return block;
}

/* ------------------------------------------------------------------ errors */

static void describe_budget(const vm *v, char *out, size_t size)
{
    switch (v->spent) {
    case VM_GAS:
        snprintf(out, size, "it spent its budget of %llu instructions [policy_gas]",
                 (unsigned long long)v->limits.gas);
        break;
    case VM_TIME:
        snprintf(out, size, "it spent its budget of %u ms [policy_ms]", v->limits.ms);
        break;
    default:
        snprintf(out, size, "it spent its budget of %llu bytes of memory [policy_memory]",
                 (unsigned long long)v->limits.memory);
    }
}

/* Describes the raised value. Only strings are quoted: asking a table for its text
 * would run the script again, unprotected. */
static void describe_object(lua_State *L, char *out, size_t size)
{
    switch (lua_type(L, -1)) {
    case LUA_TSTRING:
        snprintf(out, size, "%s", lua_tostring(L, -1));
        break;
    case LUA_TNUMBER:
        if (lua_isinteger(L, -1))
            snprintf(out, size, "it raised %lld", (long long)lua_tointeger(L, -1));
        else
            snprintf(out, size, "it raised %.14g", lua_tonumber(L, -1));
        break;
    case LUA_TNIL:
        snprintf(out, size, "it raised nil");
        break;
    default:
        snprintf(out, size, "it raised a %s: raise a string that says what is wrong",
                 lua_typename(L, lua_type(L, -1)));
    }
}

/* 1 when the message begins with a position, as "file.lua:12:" or "[string…]:1:". */
static int has_place(const char *message, const char *file)
{
    size_t size = strlen(file);
    return strncmp(message, file, size) == 0 && message[size] == ':' &&
           message[size + 1] >= '0' && message[size + 1] <= '9';
}

/* 1 when the error is a text that the script raised as it is: error(text, 0). */
static int is_sentence(const vm *v, lua_State *L)
{
    return lua_type(L, -1) == LUA_TSTRING && lua_tostring(L, -1) == v->sentence;
}

sessile_status vm_failure(vm *v, lua_State *L, int status, const char *file,
                          sessile_error *err)
{
    char text[400];

    if (status == LUA_ERRMEM && !v->spent)
        v->spent = VM_MEMORY;
    if (v->spent == VM_MEMORY && v->starved)
        return fail_nomem(err);
    if (v->spent) {
        describe_budget(v, text, sizeof text);
    } else {
        describe_object(L, text, sizeof text);
        if (has_place(text, file) || is_sentence(v, L))
            return fail(err, SESSILE_POLICY, "%s", text);
    }
    if (!v->where[0])
        vm_find_where(L, v->where);
    if (v->where[0] && strncmp(text, v->where, strlen(v->where)) == 0)
        return fail(err, SESSILE_POLICY, "%s",
                    text); /* the position is in a required file */
    return fail(err, SESSILE_POLICY, "%s: %s", v->where[0] ? v->where : file, text);
}

/* Message handler of vm_call: the stack is gone when lua_pcall returns. */
static int keep_where(lua_State *L)
{
    vm *v = vm_of(L);
    if (!v->spent)
        vm_find_where(L, v->where);
    return 1;
}

int vm_call(vm *v, lua_CFunction f, void *arg, int results, const char *file,
            sessile_error *err)
{
    int status, top = lua_gettop(v->L);

    v->where[0] = 0;
    vm_pace(v, v->L);
    lua_pushcfunction(v->L, keep_where);
    lua_pushcfunction(v->L, f);
    lua_pushlightuserdata(v->L, arg);
    status = lua_pcall(v->L, 1, results, top + 1);
    /* Work after the last check of the budget counts too. */
    if (status == LUA_OK && !v->spent && vm_time_spent(v))
        v->spent = VM_TIME;
    if (status == LUA_OK && v->spent)
        status = LUA_ERRRUN;
    if (status != LUA_OK) {
        vm_failure(v, v->L, status, file, err);
        lua_settop(v->L, top);
    } else {
        lua_remove(v->L, top + 1);
    }
    return status;
}

/* ------------------------------------------------------------------ life */

static int open_vm(lua_State *L)
{
    vm *v = lua_touserdata(L, 1);
    /* Most pipelines end before collecting garbage is worth the time. */
    lua_gc(L, LUA_GCINC, 1000, 0, 0);
    lua_state_open(L);
    lua_json_meter(L, vm_charge_work);
    environment_open(L, v->stock);
    return 0;
}

sessile_status vm_new(vm **out, const policy_limits *limits, const os_table *os,
                      const allocator *a, sessile_error *err)
{
    vm *v;
    int status;

    *out = NULL;
    status = own_lua_check(err);
    if (status)
        return status;
    v = mem_zalloc(a, sizeof *v);
    if (!v)
        return fail_nomem(err);
    v->alloc = *a;
    v->os = os;
    v->limits = *limits;
    v->soft = limits->memory - limits->memory / 8;
    vm_refill(v);
    v->locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (v->locale != (locale_t)0)
        v->L = lua_newstate(vm_realloc, v);
    if (!v->L) {
        vm_free(v);
        return fail_nomem(err);
    }
    *(vm **)lua_getextraspace(v->L) = v;
    vm_pace(v, v->L);
    vm_enter(v);
    status = vm_call(v, open_vm, v, 0, "policy", err);
    vm_leave(v);
    if (status != LUA_OK) {
        int starved = v->starved;
        vm_free(v);
        return starved ? SESSILE_NOMEM : SESSILE_POLICY;
    }
    *out = v;
    return SESSILE_OK;
}

void vm_free(vm *v)
{
    allocator a;
    if (!v)
        return;
    if (v->L)
        lua_close(v->L);
    if (v->locale != (locale_t)0)
        freelocale(v->locale);
    a = v->alloc;
    mem_free(&a, v, sizeof *v);
}
