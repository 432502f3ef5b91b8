/*
 * vm.c: one private Lua state: its memory, its gas, its clock, its errors.
 *
 * Owns every entry from C into Lua, which is one protected call under the "C" locale.
 * Must never let an error escape to lua_atpanic, run the script to describe its error, or
 * let a script go on once a budget is spent.
 */
#include "policy/vm.h"

#include <stdio.h>
#include <string.h>
#include <lauxlib.h>
#include "policy/lua_json.h"
#include "policy/lua_state.h"

/* Instructions between two looks at the budget, while all values are small. */
#define HOOK_STEP 100
/* One instruction may work through a whole string (`<`, ==, "1" + 1), so that with large
 * ones about there are fewer between two looks, for this many bytes of work. */
#define STEP_BYTES ((size_t)4 << 20)
/* No string is larger: comparing two of this size may take 0.1 s, in one instruction. */
#define STRING_MAX ((size_t)16 << 20)
/* Bytes allocated for one unit of gas. */
#define GAS_BYTES 16
/* A block of this size is paid for before it is made: filling it is one instruction. */
#define BIG_BLOCK 65536
/* Charges between two looks at the clock. */
#define CLOCK_CHARGE 1000

/* ------------------------------------------------------------------ the clock */

static int time_spent(vm *v)
{
    uint64_t now = v->os->clock_us(v->os->ud), limit = (uint64_t)v->limits.ms * 1000, cpu;

    /* A thread's CPU time costs a system call, but it cannot have grown by more than the
     * clock on the wall, which costs none. */
    if (now < v->wall_check)
        return 0;
    cpu = v->cpu_us + v->os->thread_cpu_us(v->os->ud) - v->cpu_from;
    if (cpu >= limit)
        return 1;
    v->wall_check = now + (limit - cpu);
    return 0;
}

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

void vm_refill(vm *v)
{
    v->gas = v->limits.gas;
    v->allocated = v->charged = 0;
    v->largest = 0;
    if (v->L)
        vm_pace(v, v->L);
    v->cpu_us = v->wall_us = 0;
    v->pcalls = 0;
    v->where[0] = 0;
}

/* ------------------------------------------------------------------ the pace */

static void on_count(lua_State *L, lua_Debug *ar);

void vm_pace(vm *v, lua_State *L)
{
    int step = HOOK_STEP;
    if (v->largest >= STEP_BYTES)
        step = 1;
    else if (v->largest >= BIG_BLOCK)
        step = (int)(STEP_BYTES / v->largest);
    v->running = L;
    if (lua_gethookcount(L) != step)
        lua_sethook(L, on_count, LUA_MASKCOUNT, step);
}

/* A value of that size is about, and stays so for this pipeline: what depends on the
 * moment of a collection would not be the same in the next run. */
static void note_size(vm *v, uint64_t size)
{
    if (size < BIG_BLOCK || size <= v->largest)
        return;
    v->largest = size;
    if (v->running)
        vm_pace(v, v->running); /* as from a signal: the next instruction sees it */
}

/* ------------------------------------------------------------------ memory */

/*
 * Lua's allocator. A NULL makes Lua collect all garbage and ask again, and then raise.
 * Beyond the soft limit the hook stops the script in good order; the hard limit is for
 * what a single instruction or C function asks for.
 */
static void *vm_realloc(void *ud, void *ptr, size_t osize, size_t nsize)
{
    vm *v = ud;
    int is_string = !ptr && osize == LUA_TSTRING;
    void *block;

    if (!ptr)
        osize = 0; /* it said what kind of object is to be made */
    if (nsize == 0) {
        mem_free(&v->alloc, ptr, osize);
        v->used -= osize;
        return NULL;
    }
    if (nsize <= osize) { /* Lua counts on it that shrinking succeeds */
        block = mem_realloc(&v->alloc, ptr, osize, nsize);
        v->used -= osize - nsize;
        return block ? block : ptr;
    }
    if (is_string && nsize > STRING_MAX)
        return NULL;
    if (nsize > v->limits.memory || v->used + (nsize - osize) > v->limits.memory)
        return NULL;
    if (nsize >= BIG_BLOCK) {
        if (!v->spent && nsize / GAS_BYTES >= v->gas)
            v->spent = VM_GAS;
        if (!v->spent && time_spent(v))
            v->spent = VM_TIME;
        if (v->spent)
            return NULL;
        v->gas -= nsize / GAS_BYTES;
        if (is_string)
            note_size(v, nsize);
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

/* ------------------------------------------------------------------ the budget */

/* Writes "file.lua:12" of the innermost Lua function that runs, or "". */
static void find_where(lua_State *L, char out[VM_WHERE])
{
    lua_Debug ar;
    int level;
    out[0] = 0;
    for (level = 0; level < 32 && lua_getstack(L, level, &ar); level++) {
        if (lua_getinfo(L, "Sl", &ar) && ar.currentline > 0) {
            snprintf(out, VM_WHERE, "%s:%d", ar.short_src, ar.currentline);
            return;
        }
    }
}

int vm_raise(lua_State *L)
{
    lua_pushliteral(L, "the budget is spent"); /* vm_failure() says which */
    return lua_error(L);
}

int vm_spend(lua_State *L, vm_spent what)
{
    vm *v = vm_of(L);
    if (!v->spent) {
        v->spent = what;
        find_where(L, v->where);
    }
    return vm_raise(L);
}

void vm_charge(lua_State *L, uint64_t n)
{
    vm *v = vm_of(L);
    if (v->spent)
        vm_raise(L);
    if (n >= v->gas)
        vm_spend(L, VM_GAS);
    v->gas -= n;
    v->charged += n;
    note_size(v, n);
    if (v->charged >= CLOCK_CHARGE) {
        v->charged = 0;
        if (time_spent(v))
            vm_spend(L, VM_TIME);
    }
}

void vm_charge_work(lua_State *L, size_t n)
{
    vm_charge(L, n / 8 + 1);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    vm *v = vm_of(L);
    uint64_t cost = (uint64_t)lua_gethookcount(L) + v->allocated / GAS_BYTES;

    (void)ar;
    v->allocated = 0;
    if (v->spent || cost >= v->gas)
        vm_spend(L, VM_GAS);
    v->gas -= cost;
    if (v->used > v->soft) {
        lua_gc(L, LUA_GCCOLLECT);
        if (v->used > v->soft)
            vm_spend(L, VM_MEMORY);
    }
    if (time_spent(v))
        vm_spend(L, VM_TIME);
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

/* What was raised, in words. Only strings are quoted: to ask a table for its text would
 * run the script again, unprotected. */
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

/* 1 when the message begins with a place, as "file.lua:12:" or "[string…]:1:". */
static int has_place(const char *message, const char *file)
{
    size_t size = strlen(file);
    return strncmp(message, file, size) == 0 && message[size] == ':' &&
           message[size + 1] >= '0' && message[size + 1] <= '9';
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
        if (has_place(text, file))
            return fail(err, SESSILE_POLICY, "%s", text);
    }
    if (!v->where[0])
        find_where(L, v->where);
    if (v->where[0] && strncmp(text, v->where, strlen(v->where)) == 0)
        return fail(err, SESSILE_POLICY, "%s", text); /* of a file that it requires */
    return fail(err, SESSILE_POLICY, "%s: %s", v->where[0] ? v->where : file, text);
}

/* Message handler of vm_call: the stack is gone when lua_pcall returns. */
static int keep_where(lua_State *L)
{
    vm *v = vm_of(L);
    if (!v->spent)
        find_where(L, v->where);
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
    /* Work after the last look at the budget counts too. */
    if (status == LUA_OK && !v->spent && time_spent(v))
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
    /* Most pipelines end before their garbage is worth looking for. */
    lua_gc(L, LUA_GCINC, 1000, 0, 0);
    lua_state_open(L);
    lua_json_meter(L, vm_charge_work);
    environment_open(L, v->stock);
    return 0;
}

sessile_status vm_new(vm **out, const policy_limits *limits, const os_table *os,
                      const allocator *a, sessile_error *err)
{
    vm *v = mem_zalloc(a, sizeof *v);
    int status;

    *out = NULL;
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
