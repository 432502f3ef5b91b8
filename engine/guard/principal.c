/* principal.c: makes principals, and asks them. */
#include "guard/principal.h"

#include "guard/guard.h"

#include <string.h>

#include "base/names.h"

static void free_principal(void *object)
{
    principal *p = object;
    allocator a = p->alloc;
    principal *parent = p->parent;

    mem_free(&a, p->agents, p->agent_count * sizeof *p->agents);
    mem_free(&a, p->text, p->text_size);
    if (!parent && p->guard)
        guard_free(p->guard);
    mem_free(&a, p, sizeof *p);
    principal_release(parent);
}

static principal *new_principal(const allocator *a)
{
    principal *p = mem_zalloc(a, sizeof *p);

    if (!p)
        return NULL;
    counted_init(&p->references, free_principal);
    p->alloc = *a;
    return p;
}

principal *principal_host(guard *g, const allocator *a)
{
    principal *p = new_principal(a);

    if (!p)
        return NULL;
    p->guard = g;
    p->may = PERMISSION_HOST | (g->require_principal ? 0 : PERMISSIONS_ALL);
    p->all = 1;
    p->role = p->method = slice_of("host");
    return p;
}

void principal_retain(principal *p)
{
    counted_retain(p);
}

uint32_t principal_hold(principal *p)
{
    counted_retain(p);
    return 1 + atomic_fetch_add(&p->guard->made, 1);
}

void principal_release(principal *p)
{
    counted_release(p);
}

/* ------------------------------------------------------------------ made */

/* Without roles it has its parent's. */
static void copy_roles(principal *p, const sessile_credential *c, char *at)
{
    p->role = c->role_count ? (sessile_slice){at, 0} : p->parent->role;
    for (size_t i = 0; i < c->role_count; i++) {
        size_t size = c->roles[i] ? strlen(c->roles[i]) : 0;
        if (p->role.size)
            *at++ = ',';
        memcpy(at, size ? c->roles[i] : "", size);
        at += size;
        p->role.size = (size_t)(at - p->role.data);
    }
}

/* Copies the texts of a credential into one block. 0, or -1: no memory. */
static int copy_texts(principal *p, const sessile_credential *c)
{
    size_t size = c->user.size + c->actor.size + c->session.size;
    char *at;

    for (size_t i = 0; i < c->agent_count; i++)
        size += c->agents[i].size;
    for (size_t i = 0; i < c->role_count; i++)
        size += c->roles[i] ? strlen(c->roles[i]) + 1 : 0;
    p->text = mem_alloc(&p->alloc, size + 1);
    if (!p->text)
        return -1;
    p->text_size = size + 1;
    if (c->agent_count) {
        p->agents = mem_zalloc(&p->alloc, c->agent_count * sizeof *p->agents);
        if (!p->agents)
            return -1;
        p->agent_count = c->agent_count;
    }
    at = p->text;
#define COPY(to, from)                            \
    do {                                          \
        if ((from).size)                          \
            memcpy(at, (from).data, (from).size); \
        (to) = (sessile_slice){at, (from).size};  \
        at += (from).size;                        \
    } while (0)
    COPY(p->user, c->user);
    COPY(p->actor, c->actor);
    COPY(p->session, c->session);
    for (size_t i = 0; i < c->agent_count; i++)
        COPY(p->agents[i], c->agents[i]);
#undef COPY
    copy_roles(p, c, at);
    return 0;
}

static int same(sessile_slice a, sessile_slice b)
{
    return a.size == b.size && (!a.size || !memcmp(a.data, b.data, a.size));
}

static sessile_status take_roles(principal *p, const roles *known,
                                 const sessile_credential *c, sessile_error *err)
{
    int is_host = (p->parent->may & PERMISSION_HOST) != 0;

    if (!c->role_count && !is_host) {
        p->may = p->parent->may;
        p->all = p->parent->all;
        return SESSILE_OK;
    }
    for (size_t i = 0; i < c->role_count; i++) {
        const char *name = c->roles[i] ? c->roles[i] : "";
        const role *r = roles_find(known, name);
        if (!r)
            return fail(err, SESSILE_INVALID,
                        "there is no role \"%.63s\": define it in "
                        "the guard's options",
                        name);
        p->may |= r->may;
        p->all |= r->all;
    }
    if (!is_host) {
        p->may &= p->parent->may;
        p->all &= p->parent->all;
    }
    return SESSILE_OK;
}

sessile_status principal_make(principal **out, principal *parent,
                              const sessile_credential *credential, sessile_error *err)
{
    principal *p;
    sessile_status status;

    if (!(parent->may & (PERMISSION_HOST | PERMISSION(IMPERSONATE))) &&
        !same(credential->user, parent->user))
        return fail(err, SESSILE_DENIED,
                    "a view of a view is of the same user: ask the host for another");
    p = new_principal(&parent->alloc);
    if (!p)
        return fail_nomem(err);
    principal_retain(parent);
    p->parent = parent;
    p->guard = parent->guard;
    p->method = parent->method;
    p->number = 1 + atomic_fetch_add(&p->guard->made, 1);
    atomic_init(&p->expires_ms, credential->expires_ms);
    status = copy_texts(p, credential) ? fail_nomem(err) : SESSILE_OK;
    if (!status)
        status = take_roles(p, &p->guard->roles, credential, err);
    if (status)
        principal_release(p);
    else
        *out = p;
    return status;
}

/* ------------------------------------------------------------------ asked */

int principal_stands(const principal *p)
{
    for (; p; p = p->parent)
        if (atomic_load_explicit(&p->revoked, memory_order_relaxed))
            return 0;
    return 1;
}

int principal_lives(const principal *p)
{
    for (; p; p = p->parent) {
        int64_t until = atomic_load_explicit(&p->expires_ms, memory_order_relaxed);
        if (until && guard_now_ms(p->guard) >= until)
            return 0;
    }
    return 1;
}

/* A name, or with a `*` at its end the beginning of names. */
static int matches(sessile_slice pattern, sessile_slice name)
{
    if (pattern.size && pattern.data[pattern.size - 1] == '*')
        return name.size >= pattern.size - 1 &&
               !memcmp(name.data, pattern.data, pattern.size - 1);
    return same(pattern, name);
}

int principal_sees_agent(const principal *p, sessile_slice agent)
{
    for (; p; p = p->parent) {
        size_t i = 0;
        while (i < p->agent_count && !matches(p->agents[i], agent))
            i++;
        if (p->agent_count && i == p->agent_count)
            return 0;
    }
    return 1;
}

/* Who may impersonate sees other users through the views that it makes, not itself. */
static int sees_user(const principal *p, const principal *by, sessile_slice user)
{
    return p->all || (by != p && (p->may & PERMISSION(IMPERSONATE))) ||
           (p->user.size && same(p->user, user));
}

int principal_sees(const principal *by, const guard_names *names)
{
    if (!principal_sees_agent(by, names->agent))
        return 0;
    for (const principal *p = by; p; p = p->parent)
        if (!sees_user(p, by, names->user) ||
            (p->session.size && !same(p->session, names->id)))
            return 0;
    return 1;
}
