/*
 * chain.c: a loaded chain: its lifetime, its hashes, its pool of VMs.
 *
 * Owns the steps of a policy, immutable once loaded, and the idle VMs. Must never hold
 * the lock while Lua runs or memory is allocated, and never keep a VM whose budget was
 * spent or whose memory is full of the data of a past pipeline.
 */
#include "policy/pipeline.h"

#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "policy/chunk.h"
#include "policy/source.h"

const chain_hook chain_hooks[CHAIN_HOOKS] = {
    {SESSILE_HOOK_MERGE, "merge"},
    {SESSILE_HOOK_SUMMARIZE, "summarize"},
    {SESSILE_HOOK_TRUNCATE, "truncate"},
    {SESSILE_HOOK_SHOULD_COMPACT, "should_compact"},
    {SESSILE_HOOK_FLUSH, "flush"},
    {SESSILE_HOOK_COMPACT, "compact"},
    {SESSILE_HOOK_BRANCH_SUMMARY, "branch_summary"},
    {SESSILE_HOOK_REMEMBER, "remember"},
    {SESSILE_HOOK_TIDY, "tidy"},
    {SESSILE_HOOK_RECALL, "recall"},
    {SESSILE_HOOK_ADMIT, "admit"},
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
    policy_release(p->fallback);
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

sessile_policy *policy_fallback(const sessile_policy *p)
{
    return p->fallback;
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

/* ------------------------------------------------------------------ hashes */

static int compare_names(const void *a, const void *b)
{
    const chain_require *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

sessile_status chain_hash(const sessile_policy *p, unsigned node, sessile_slice source,
                          char out[65], sessile_error *err)
{
    const chain_require *edges[CHAIN_REQUIRES];
    unsigned char digest[32];
    size_t count = 0, i;
    buf text;

    hash256(digest, source.data, source.size, NULL, 0);
    hex_encode(out, digest, sizeof digest);
    for (i = 0; i < p->require_count; i++)
        if (p->requires[i].node == node)
    edges[count++] = &p->requires[i];
    if (count == 0)
        return SESSILE_OK;
    qsort(edges, count, sizeof *edges, compare_names);
    buf_init(&text, &p->alloc);
    buf_printf(&text, "requires\n%s\n", out);
    for (i = 0; i < count; i++)
        buf_printf(&text, "%s\n%s\n", edges[i]->name, p->required[edges[i]->to].hash);
    if (!text.failed) {
        hash256(digest, text.data, text.size, NULL, 0);
        hex_encode(out, digest, sizeof digest);
    }
    sessile_status status = text.failed ? fail_nomem(err) : SESSILE_OK;
    buf_deinit(&text);
    return status;
}

/* ------------------------------------------------------------------ the pool */

static int prepare(lua_State *L)
{
    chunk_open(L);
    ctx_open(L);
    chunk_compile_chain(L, lua_touserdata(L, 1));
    return 0;
}

sessile_status chain_take_vm(sessile_policy *p, vm **out, sessile_error *err)
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
    if (vm_call(v, prepare, p, 0, "policy", err) != LUA_OK)
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

void chain_return_vm(sessile_policy *p, vm *v)
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

sessile_status chain_add_source(sessile_policy *p, const source *c, const char *name,
                                int64_t version, const char *options, sessile_error *err)
{
    const allocator *a = &p->alloc;
    chain_step *step = &p->steps[p->count++]; /* counted before it is filled, so that it
                                                 is released in any case */

    step->name = mem_dup(a, name, strlen(name));
    step->options = mem_dup(a, options, strlen(options));
    step->path = mem_dup(a, c->path.data, c->path.size);
    step->file = mem_dup(a, c->file, strlen(c->file));
    step->source = mem_dup(a, c->text.data, c->text.size);
    step->source_size = c->text.size;
    step->skip = c->skip;
    if (!step->name || !step->options || !step->path || !step->file || !step->source)
        return fail_nomem(err);
    step->info.name = step->name;
    step->info.options = step->options;
    step->info.path = step->path;
    step->info.version = version;
    return SESSILE_OK;
}

sessile_status chain_warm(sessile_policy *p, sessile_error *err)
{
    vm *ready;
    sessile_status status = p->is_foreign ? SESSILE_OK : chain_take_vm(p, &ready, err);

    if (!status && !p->is_foreign)
        chain_return_vm(p, ready);
    return status;
}
