/*
 * vm.h: one private Lua state and its budget.
 *
 * The budget has three parts: gas (instructions, charges, allocated bytes), CPU time,
 * and memory. A spent budget stays spent: every return into the script raises again,
 * and only vm_free() may follow.
 */
#ifndef POLICY_VM_H
#define POLICY_VM_H

#include <locale.h>
#include <lua.h>
#include "base/alloc.h"
#include "base/error.h"
#include "base/os.h"
#include "policy/environment.h"
#include "policy/policy.h"

typedef enum vm_spent { VM_FRESH = 0, VM_GAS, VM_TIME, VM_MEMORY } vm_spent;

#define VM_WHERE 80

typedef struct vm {
    lua_State *L;
    allocator alloc;
    const os_table *os;
    policy_limits limits;
    locale_t locale, outside;

    uint64_t gas;                   /* what remains */
    uint64_t used, soft, allocated; /* bytes: now, the first limit, since the last hook */
    uint64_t charged;               /* since the clock was last read */
    size_t largest;                 /* string or charge of this pipeline */
    lua_State *running;             /* the thread whose hook checks the budget */
    uint64_t cpu_us, wall_us;       /* spent in entries before this one */
    uint64_t cpu_from, wall_from;   /* when this entry began */
    uint64_t wall_check;            /* the time cannot be spent before this */
    vm_spent spent;
    unsigned pcalls;      /* nested calls */
    int starved;          /* the host's allocator returned NULL */
    char where[VM_WHERE]; /* "file.lua:12" of the failure, or "" */
    const char *sentence; /* the last text that was raised with level 0; held in the
                             registry, under the address of this member */

    lua_CFunction stock[STOCK_COUNT]; /* Lua's own functions that ours call */
    char *wanted;    /* CHAIN_NAME bytes for a missing required name; NULL in pipelines */
    void *pipeline;  /* the policy_pipeline that holds this VM */
    struct vm *next; /* in the pool */
} vm;

/* A VM with a full budget and nothing compiled in it. */
sessile_status vm_new(vm **out, const policy_limits *limits, const os_table *os,
                      const allocator *a, sessile_error *err);
void vm_free(vm *v);
/* Fills the budget for another pipeline. */
void vm_refill(vm *v);

/* L runs from here on: sets how often its hook checks the budget. */
void vm_pace(vm *v, lua_State *L);

/* Around everything that runs Lua: the "C" locale, and the clocks. */
void vm_enter(vm *v);
void vm_leave(vm *v);

/* Calls f(arg as light userdata) on the main state, protected; the VM is entered.
 * LUA_OK: its `results` results are on the stack of v->L. Else the stack is unchanged,
 * and err says why (POLICY or NOMEM), with `file` if there is no line. */
int vm_call(vm *v, lua_CFunction f, void *arg, int results, const char *file,
            sessile_error *err);

/* Fills err from the error object at the top of L, which lua_pcall or lua_resume left
 * with that status. Calls no function of the script. */
sessile_status vm_failure(vm *v, lua_State *L, int status, const char *file,
                          sessile_error *err);

/* The VM that L belongs to. */
static inline vm *vm_of(lua_State *L)
{
    return *(vm **)lua_getextraspace(L);
}

/* Takes n from the gas before work proportional to n is done; raises when it is spent. */
void vm_charge(lua_State *L, uint64_t n);
/* The same for n bytes or items that the engine handles: they cost far less than one unit
 * each. */
void vm_charge_work(lua_State *L, size_t n);
/* Takes n from the gas, then calls Lua's own function with our arguments. */
int vm_call_stock(lua_State *L, stock_function which, uint64_t n);
/* Records that a budget is spent, and raises. */
int vm_spend(lua_State *L, vm_spent what);
/* Raises the error of vm_spend() again. */
int vm_raise(lua_State *L);

/* ---- what vm.c uses of the budget */

/* Bytes allocated for one unit of gas. */
#define VM_GAS_BYTES 16
/* The gas for a block of this size is taken before it is allocated: one instruction can
 * fill it. */
#define VM_BIG_BLOCK 65536

int vm_time_spent(vm *v);
/* A string or a charge of that size exists from now on. */
void vm_note_size(vm *v, uint64_t size);
/* Writes "file.lua:12" of the innermost Lua function that runs, or "". */
void vm_find_where(lua_State *L, char out[VM_WHERE]);

#endif
