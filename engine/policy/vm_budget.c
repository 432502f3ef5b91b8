/*
 * vm_budget.c: the budget of a VM: gas, CPU time, memory.
 *
 * Owns the hook that checks the budget while Lua runs, and the charges that C functions
 * take before they work. Must never let a script continue after its budget is spent.
 */
#include "policy/vm.h"

#include <stdio.h>

/* Instructions between two checks of the budget, while all values are small. */
#define HOOK_STEP 100
/* One instruction can process a whole string (`<`, ==, "1" + 1). With large strings the
 * hook therefore runs more often: after about this many bytes of work. */
#define STEP_BYTES ((size_t)4 << 20)
/* Gas charged between two checks of the clock. */
#define CLOCK_CHARGE 1000

/* ------------------------------------------------------------------ the clock */

int vm_time_spent(vm *v)
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

/* ------------------------------------------------------------------ the pace */

static void on_count(lua_State *L, lua_Debug *ar);

void vm_pace(vm *v, lua_State *L)
{
    int step = HOOK_STEP;
    if (v->largest >= STEP_BYTES)
        step = 1;
    else if (v->largest >= VM_BIG_BLOCK)
        step = (int)(STEP_BYTES / v->largest);
    v->running = L;
    if (lua_gethookcount(L) != step)
        lua_sethook(L, on_count, LUA_MASKCOUNT, step);
}

/* The size counts until the end of the pipeline. If it stopped counting when the value is
 * collected, two runs could differ, because they collect at different moments. */
void vm_note_size(vm *v, uint64_t size)
{
    if (size < VM_BIG_BLOCK || size <= v->largest)
        return;
    v->largest = size;
    if (v->running)
        vm_pace(v, v->running); /* this is allowed at any time, as from a signal: the next
                                   instruction sees it */
}

/* ------------------------------------------------------------------ the budget */

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
    if (v->sentence) {
        lua_pushnil(v->L);
        lua_rawsetp(v->L, LUA_REGISTRYINDEX, &v->sentence);
    }
    v->sentence = NULL;
}

void vm_find_where(lua_State *L, char out[VM_WHERE])
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
        vm_find_where(L, v->where);
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
    vm_note_size(v, n);
    if (v->charged >= CLOCK_CHARGE) {
        v->charged = 0;
        if (vm_time_spent(v))
            vm_spend(L, VM_TIME);
    }
}

void vm_charge_work(lua_State *L, size_t n)
{
    vm_charge(L, n / 8 + 1);
}

int vm_call_stock(lua_State *L, stock_function which, uint64_t n)
{
    vm_charge(L, n);
    return vm_of(L)->stock[which](L);
}

static void on_count(lua_State *L, lua_Debug *ar)
{
    vm *v = vm_of(L);
    uint64_t cost = (uint64_t)lua_gethookcount(L) + v->allocated / VM_GAS_BYTES;

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
    if (vm_time_spent(v))
        vm_spend(L, VM_TIME);
}
