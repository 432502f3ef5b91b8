/* principal.c: makes principals, and asks them. */
#include "guard/principal.h"

#include "guard/guard.h"

#include <stdio.h>
#include <string.h>

#include "base/names.h"

static void free_principal(void *object)
{
    principal *p = object;
    allocator a = p->alloc;
    principal *parent = p->parent;

    mem_free(&a, p->agents, p->agent_count * sizeof *p->agents);
    mem_free(&a, p->roles, p->role_count * sizeof *p->roles);
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

static int copy_list(principal *p, const sessile_slice *from, size_t count,
                     sessile_slice **to, size_t *to_count)
{
    if (!count)
        return 0;
    *to = mem_zalloc(&p->alloc, count * sizeof **to);
    if (!*to)
        return -1;
    *to_count = count;
    memcpy(*to, from, count * sizeof **to);
    return 0;
}

/* Copies what is known into one block. 0, or -1: no memory. */
static int copy_texts(principal *p, const principal_about *c)
{
    sessile_slice *texts[] = {&p->user, &p->actor, &p->session, &p->owner,
                              &p->on,   &p->key,   &p->source,  &p->device};
    const sessile_slice from[] = {c->user, c->actor, c->session, c->owner,
                                  c->on,   c->key,   c->source,  c->device};
    enum { TEXTS = sizeof texts / sizeof *texts };
    size_t size = 0;
    char *at;

    if (copy_list(p, c->agents, c->agent_count, &p->agents, &p->agent_count) ||
        copy_list(p, c->roles, c->role_count, &p->roles, &p->role_count))
        return -1;
    for (size_t i = 0; i < TEXTS; i++) {
        *texts[i] = from[i];
        size += from[i].size;
    }
    for (size_t i = 0; i < p->agent_count; i++)
        size += p->agents[i].size;
    for (size_t i = 0; i < p->role_count; i++)
        size += 2 * p->roles[i].size + 1;
    p->text = at = mem_alloc(&p->alloc, size + 1);
    if (!at)
        return -1;
    p->text_size = size + 1;
    for (size_t i = 0; i < TEXTS + p->agent_count + p->role_count; i++) {
        sessile_slice *s = i < TEXTS ? texts[i]
                           : i < TEXTS + p->agent_count
                               ? &p->agents[i - TEXTS]
                               : &p->roles[i - TEXTS - p->agent_count];
        if (s->size)
            memcpy(at, s->data, s->size);
        s->data = at;
        at += s->size;
    }
    p->role = p->role_count ? (sessile_slice){at, 0} : p->parent->role;
    for (size_t i = 0; i < p->role_count; i++) {
        if (i)
            *at++ = ',';
        memcpy(at, p->roles[i].data, p->roles[i].size);
        at += p->roles[i].size;
        p->role.size = (size_t)(at - p->role.data);
    }
    return 0;
}

sessile_status principal_roles(const roles *known, const principal_about *about,
                               permissions *may, int *all, sessile_error *err)
{
    *may = 0;
    *all = 0;
    for (size_t i = 0; i < about->role_count; i++) {
        const role *r = roles_find_slice(known, about->roles[i]);
        if (!r && about->is_lenient)
            continue;
        if (!r)
            return fail(err, SESSILE_INVALID,
                        "there is no role \"%.*s\": define it in the guard's options",
                        (int)(about->roles[i].size < 63 ? about->roles[i].size : 63),
                        about->roles[i].data ? about->roles[i].data : "");
        *may |= r->may;
        *all |= r->all;
    }
    return SESSILE_OK;
}

static sessile_status take_roles(principal *p, const principal_about *about,
                                 sessile_error *err)
{
    principal *parent = p->parent;
    permissions may;
    int all, is_host = (parent->may & PERMISSION_HOST) != 0;
    sessile_status status = principal_roles(&p->guard->roles, about, &may, &all, err);

    /* a key or a token without roles gives none */
    p->inherits = !about->role_count && !is_host && !about->is_lenient;
    p->base = may;
    p->base_all = all;
    if (p->inherits) {
        p->may = parent->may;
        p->all = parent->all;
    } else {
        p->may = is_host ? may : may & parent->may;
        p->all = is_host ? all : all & parent->all;
    }
    return status;
}

static principal *new_child(principal *parent, const principal_about *about)
{
    principal *p = new_principal(&parent->alloc);

    if (!p)
        return NULL;
    principal_retain(parent);
    p->parent = parent;
    p->guard = parent->guard;
    p->method = about->method ? slice_of(about->method) : parent->method;
    p->is_by_key = about->is_by_key;
    p->number = 1 + atomic_fetch_add(&p->guard->made, 1);
    p->is_lenient = about->is_lenient;
    atomic_init(&p->expires_ms, about->expires_ms);
    atomic_init(&p->version, UINT64_MAX);
    if (!copy_texts(p, about))
        return p;
    principal_release(p);
    return NULL;
}

sessile_status principal_make(principal **out, principal *parent,
                              const principal_about *about, sessile_error *err)
{
    principal *p;
    sessile_status status;

    if (!(parent->may & (PERMISSION_HOST | PERMISSION(IMPERSONATE))) &&
        !slice_same(about->user, parent->user))
        return fail(err, SESSILE_DENIED,
                    "a view of a view is of the same user: ask the host for another");
    p = new_child(parent, about);
    if (!p)
        return fail_nomem(err);
    status = take_roles(p, about, err);
    if (status)
        principal_release(p);
    else
        *out = p;
    return status;
}

sessile_status principal_make_granted(principal **out, principal *p,
                                      const guard_names *names, int is_own,
                                      const char *made, permissions may, int64_t until_ms,
                                      sessile_error *err)
{
    const principal_about about = {.user = p->user,
                                   .actor = p->actor,
                                   .session = is_own ? p->session : names->id,
                                   .owner = names->user,
                                   .on = names->id,
                                   .key = p->key,
                                   .source = p->source,
                                   .device = p->device,
                                   .agents = &names->agent,
                                   .agent_count = 1,
                                   .is_by_key = p->is_by_key};
    principal *granted = new_child(p, &about);

    if (!granted)
        return fail_nomem(err);
    granted->is_granted = 1;
    granted->is_own = is_own;
    granted->may = (is_own ? (permissions)p->may : 0) | may;
    granted->all = is_own && p->all;
    granted->until_ms = until_ms;
    snprintf(granted->made, sizeof granted->made, "%s", made ? made : "");
    *out = granted;
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ asked */

int principal_is_whole(const principal *p)
{
    for (; p; p = p->parent)
        if (p->agent_count || p->session.size)
            return 0;
    return 1;
}

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
    return slice_same(pattern, name);
}

int names_match(const sessile_slice *patterns, size_t count, sessile_slice name)
{
    size_t i = 0;

    while (i < count && !matches(patterns[i], name))
        i++;
    return i < count;
}

int principal_sees_agent(const principal *p, sessile_slice agent)
{
    for (; p; p = p->parent)
        if (p->agent_count && !names_match(p->agents, p->agent_count, agent))
            return 0;
    return 1;
}

sessile_slice principal_session(const principal *p)
{
    while (p->parent && !p->session.size)
        p = p->parent;
    return p->session;
}

int principal_reaches(const principal *p, const guard_names *names)
{
    if (!principal_sees_agent(p, names->agent))
        return 0;
    for (; p; p = p->parent)
        if (p->session.size &&
            (!slice_same(p->session, names->id) || !slice_same(p->owner, names->user)))
            return 0;
    return 1;
}

/* Who may impersonate sees other users through the views that it makes, not itself. */
static int sees_user(const principal *p, const principal *by, sessile_slice user)
{
    return p->all || (by != p && (p->may & PERMISSION(IMPERSONATE))) ||
           (p->user.size && slice_same(p->user, user));
}

int principal_sees(const principal *by, const guard_names *names)
{
    if (by && !principal_reaches(by, names))
        return 0;
    if (by && by->is_granted) /* the one session, or its own with that agent */
        return slice_same(by->agents[0], names->agent) &&
               (slice_same(by->owner, names->user) || (by->is_own && by->all));
    for (const principal *p = by; p; p = p->parent)
        if (!sees_user(p, by, names->user))
            return 0;
    return 1;
}
