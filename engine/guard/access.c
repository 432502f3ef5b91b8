/*
 * access.c: the fold of grants, keys and locks, and what it says of a principal.
 *
 * Owns the rule of what adds up: a role that is granted adds to those of the credential,
 * and a view of a view has no more than each of the two. Must never take what it cannot
 * read for less than it is: a grant whose user was forgotten is no grant, and a fold that
 * could not be made says no.
 */
#include "guard/access.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "guard/guard.h"
#include "session/header.h"

/* A text of the fold, or an array of slices. */
struct access_text {
    access_text *next;
    size_t size; /* of the block */
};

/* ------------------------------------------------------------------ life */

static void drop_fold(access_fold *a)
{
    const allocator *alloc = &a->guard->alloc;

    while (a->texts) {
        access_text *t = a->texts;
        a->texts = t->next;
        wipe(t + 1, t->size - sizeof *t);
        mem_free(alloc, t, t->size);
    }
    a->grant_count = a->key_count = a->lock_count = 0;
    atomic_store(&a->narrow_count, 0);
    a->version = 0;
}

sessile_status access_open(access_fold **out, guard *g, store_core *st,
                           sessile_error *err)
{
    access_fold *a = mem_zalloc(&g->alloc, sizeof *a);
    sessile_status status;

    *out = NULL;
    if (!a)
        return fail_nomem(err);
    a->guard = g;
    status = control_open(&a->control, st, err);
    if (status) {
        mem_free(&g->alloc, a, sizeof *a);
        return status;
    }
    pthread_mutex_init(&a->mutex, NULL);
    *out = a;
    return SESSILE_OK;
}

void access_close(access_fold *a)
{
    const allocator *alloc;

    if (!a)
        return;
    alloc = &a->guard->alloc;
    drop_fold(a);
    mem_free(alloc, a->grants, a->grant_capacity * sizeof *a->grants);
    mem_free(alloc, a->keys, a->key_capacity * sizeof *a->keys);
    mem_free(alloc, a->locks, a->lock_capacity * sizeof *a->locks);
    control_close(a->control);
    pthread_mutex_destroy(&a->mutex);
    mem_free(alloc, a, sizeof *a);
}

/* ------------------------------------------------------------------ the fold */

static void *new_text(access_fold *a, size_t size)
{
    access_text *t = mem_zalloc(&a->guard->alloc, sizeof *t + size);

    if (!t)
        return NULL;
    t->next = a->texts;
    t->size = sizeof *t + size;
    a->texts = t;
    return t + 1;
}

/* Keeps a text. 0; -1: no memory. What is no text is empty. */
static int keep(access_fold *a, json value, sessile_slice *out)
{
    buf text;
    char *kept;
    int bad;

    *out = (sessile_slice){"", 0};
    if (value.type != JSON_STRING && value.type != JSON_OBJECT)
        return 0;
    buf_init(&text, &a->guard->alloc);
    bad = header_get_name(&text, value);
    kept = bad ? NULL : new_text(a, text.size + 1);
    if (kept && text.size)
        memcpy(kept, text.data, text.size);
    if (kept)
        *out = (sessile_slice){kept, text.size};
    bad = text.failed || (!bad && !kept);
    buf_wipe(&text);
    return bad ? -1 : 0;
}

static int keep_list(access_fold *a, json value, const sessile_slice **out, size_t *count)
{
    json_iter it = json_begin(value);
    sessile_slice *list;
    size_t n = 0;

    *out = NULL;
    *count = 0;
    if (value.type != JSON_ARRAY)
        return 0;
    while (json_next(&it))
        n++;
    list = new_text(a, (n + 1) * sizeof *list);
    if (!list)
        return -1;
    it = json_begin(value);
    for (size_t i = 0; i < n && json_next(&it); i++)
        if (keep(a, it.value, &list[i]))
            return -1;
    *out = list;
    *count = n;
    return 0;
}

static int64_t time_in(json data, const char *name)
{
    int64_t ms;

    return json_int(json_get(data, name), &ms) || ms < 0 ? 0 : ms;
}

static int is_lost(json data, const char *name)
{
    return json_get(data, name).type == JSON_NULL;
}

/* The role of a grant, as it is defined now; one that is not gives nothing. */
static void set_role(const access_fold *a, access_grant *g)
{
    const role *r = roles_find_slice(&a->guard->roles, g->is.role);

    g->may = r ? r->may : 0;
    g->all = r ? r->all : 0;
}

static void remove_row(void *rows, size_t *count, size_t at, size_t size)
{
    char *row = (char *)rows + at * size;

    (*count)--;
    memmove(row, row + size, (*count - at) * size);
}

static sessile_status fold_grant(void *arg, const control_fact *f, sessile_error *err)
{
    access_fold *a = arg;
    access_grant *g;
    uint64_t end;

    if (!json_uint(json_get(f->data, "end"), &end)) {
        for (size_t i = a->grant_count; i-- > 0;)
            if (a->grants[i].is.id == end)
                remove_row(a->grants, &a->grant_count, i, sizeof *a->grants);
        return SESSILE_OK;
    }
    if (is_lost(f->data, "user") || is_lost(f->data, "owner"))
        return SESSILE_OK;
    if (mem_grow(&a->guard->alloc, (void **)&a->grants, &a->grant_capacity,
                 a->grant_count + 1, sizeof *a->grants))
        return fail_nomem(err);
    g = &a->grants[a->grant_count];
    memset(g, 0, sizeof *g);
    g->is.id = f->id;
    g->is.created_ms = f->time_ms;
    g->is.until_ms = time_in(f->data, "until");
    if (keep(a, json_get(f->data, "user"), &g->is.user) ||
        keep(a, json_get(f->data, "holders"), &g->is.holders) ||
        keep(a, json_get(f->data, "role"), &g->is.role) ||
        keep(a, json_get(f->data, "session"), &g->is.session) ||
        keep(a, json_get(f->data, "agent"), &g->is.agent) ||
        keep(a, json_get(f->data, "owner"), &g->is.owner) ||
        keep(a, json_get(f->data, "by"), &g->is.by) ||
        keep_list(a, json_get(f->data, "agents"), &g->is.agents, &g->is.agent_count))
        return fail_nomem(err);
    set_role(a, g);
    a->grant_count++;
    if (g->is.session.size || g->is.agent_count)
        atomic_fetch_add(&a->narrow_count, 1);
    return SESSILE_OK;
}

static sessile_status fold_key(void *arg, const control_fact *f, sessile_error *err)
{
    access_fold *a = arg;
    access_key *k;
    const char *hash;
    size_t size;

    if (mem_grow(&a->guard->alloc, (void **)&a->keys, &a->key_capacity, a->key_count + 1,
                 sizeof *a->keys))
        return fail_nomem(err);
    for (size_t i = a->key_count; i-- > 0;)
        if (json_get(f->data, "revoke").type == JSON_STRING &&
            json_is(json_get(f->data, "revoke"), a->keys[i].is.id.data))
            remove_row(a->keys, &a->key_count, i, sizeof *a->keys);
    k = &a->keys[a->key_count];
    memset(k, 0, sizeof *k);
    if (!json_plain(json_get(f->data, "hash"), &hash, &size) ||
        size != 2 * ACCESS_KEY_HASH || hex_decode(k->hash, hash, ACCESS_KEY_HASH))
        return SESSILE_OK;
    k->is_lost = is_lost(f->data, "user");
    k->is.created_ms = f->time_ms;
    k->is.expires_ms = time_in(f->data, "expires");
    if (keep(a, json_get(f->data, "key"), &k->is.id) ||
        keep(a, json_get(f->data, "user"), &k->is.user) ||
        keep(a, json_get(f->data, "device"), &k->is.device) ||
        keep(a, json_get(f->data, "label"), &k->is.label) ||
        keep(a, json_get(f->data, "by"), &k->is.by) ||
        keep_list(a, json_get(f->data, "roles"), &k->is.roles, &k->is.role_count) ||
        keep_list(a, json_get(f->data, "agents"), &k->is.agents, &k->is.agent_count))
        return fail_nomem(err);
    a->key_count++;
    return SESSILE_OK;
}

static sessile_status fold_lock(void *arg, const control_fact *f, sessile_error *err)
{
    access_fold *a = arg;
    sessile_access_lock_row *l;
    int on = json_get(f->data, "locked").type != JSON_FALSE;

    if (is_lost(f->data, "user"))
        return SESSILE_OK;
    if (mem_grow(&a->guard->alloc, (void **)&a->locks, &a->lock_capacity,
                 a->lock_count + 1, sizeof *a->locks))
        return fail_nomem(err);
    l = &a->locks[a->lock_count];
    memset(l, 0, sizeof *l);
    l->created_ms = f->time_ms;
    if (keep(a, json_get(f->data, "user"), &l->user) ||
        keep(a, json_get(f->data, "key"), &l->key) ||
        keep(a, json_get(f->data, "reason"), &l->reason) ||
        keep(a, json_get(f->data, "by"), &l->by))
        return fail_nomem(err);
    for (size_t i = a->lock_count; i-- > 0;)
        if (slice_same(a->locks[i].user, l->user) &&
            slice_same(a->locks[i].key, l->key)) {
            sessile_access_lock_row newest = *l;
            remove_row(a->locks, &a->lock_count, i, sizeof *a->locks);
            l = &a->locks[a->lock_count];
            *l = newest;
        }
    a->lock_count += on != 0;
    return SESSILE_OK;
}

sessile_status access_begin(access_fold *a, int now, sessile_error *err)
{
    uint64_t version;
    sessile_status status = now ? control_look_now(a->control, &version, err)
                                : control_look(a->control, &version, err);

    if (status)
        return status;
    pthread_mutex_lock(&a->mutex);
    if (a->version == version)
        return SESSILE_OK;
    drop_fold(a);
    status = control_each(a->control, CONTROL_GRANT, fold_grant, a, err);
    if (!status)
        status = control_each(a->control, CONTROL_KEY, fold_key, a, err);
    if (!status)
        status = control_each(a->control, CONTROL_LOCK, fold_lock, a, err);
    if (status) {
        drop_fold(a);
        pthread_mutex_unlock(&a->mutex);
        return status;
    }
    a->version = version;
    return SESSILE_OK;
}

void access_end(access_fold *a)
{
    pthread_mutex_unlock(&a->mutex);
}

const access_key *access_find_key(const access_fold *a, sessile_slice id)
{
    for (size_t i = 0; i < a->key_count; i++)
        if (slice_same(a->keys[i].is.id, id))
            return &a->keys[i];
    return NULL;
}

int access_is_locked(const access_fold *a, sessile_slice user, sessile_slice key)
{
    for (size_t i = 0; i < a->lock_count; i++)
        if ((a->locks[i].user.size && slice_same(a->locks[i].user, user)) ||
            (a->locks[i].key.size && slice_same(a->locks[i].key, key)))
            return 1;
    return 0;
}

/* ------------------------------------------------------------------ principals */

static int is_host(const principal *p)
{
    return !p->parent;
}

/* The principal whose grants count: of a view of a view, the first one. */
static const principal *first_of(const principal *p)
{
    while (!is_host(p->parent))
        p = p->parent;
    return p;
}

/* 1: the grant is given to p, and has not ended. *until_ms: at the latest. */
static int is_given(const access_grant *g, const principal *p, int64_t now_ms,
                    int64_t *until_ms)
{
    int given = g->is.user.size ? slice_same(g->is.user, p->user) : 0;

    for (size_t i = 0; !given && g->is.holders.size && i < p->role_count; i++)
        given = slice_same(g->is.holders, p->roles[i]);
    if (!given || (g->is.until_ms && now_ms >= g->is.until_ms))
        return 0;
    if (g->is.until_ms && (!*until_ms || g->is.until_ms < *until_ms))
        *until_ms = g->is.until_ms;
    return 1;
}

static permissions limit_of(const principal *p)
{
    permissions most = PERMISSIONS_ALL;

    for (; !is_host(p->parent); p = p->parent)
        if (!p->inherits)
            most &= atomic_load(&p->base);
    return most;
}

static permissions on_names(const access_fold *a, const principal *p,
                            const guard_names *names, int sees, int64_t *until_ms)
{
    int64_t now_ms = guard_now_ms(a->guard);
    const principal *first = first_of(p);
    permissions may = 0;

    for (size_t i = 0; i < a->grant_count; i++) {
        const access_grant *g = &a->grants[i];
        int covers = g->is.session.size
                         ? slice_same(g->is.session, names->id) &&
                               slice_same(g->is.agent, names->agent) &&
                               slice_same(g->is.owner, names->user)
                         : g->is.agent_count && (sees || g->all) &&
                               names_match(g->is.agents, g->is.agent_count, names->agent);
        if (covers && is_given(g, first, now_ms, until_ms))
            may |= g->is.session.size ? g->may & ~PERMISSION(CREATE_SESSION) : g->may;
    }
    return may & limit_of(p);
}

int access_is_narrow(const principal *p)
{
    const access_fold *a = p->guard->access;

    return a && !is_host(p) && !p->is_granted && atomic_load(&a->narrow_count);
}

permissions access_on(principal *p, const guard_names *names, int sees, int64_t *until_ms)
{
    access_fold *a = p->guard->access;
    permissions may;

    *until_ms = 0;
    if (!access_is_narrow(p) || access_begin(a, 0, NULL))
        return 0;
    may = on_names(a, p, names, sees, until_ms);
    access_end(a);
    return may;
}

/* What p may, by what its credential gives and by grants that are on no names. */
static void add_up(const access_fold *a, const principal *p, permissions *may, int *all,
                   int64_t *until_ms)
{
    int64_t now_ms = guard_now_ms(a->guard);

    if (is_host(p->parent)) {
        *may = atomic_load(&p->base);
        *all = p->base_all;
        for (size_t i = 0; i < a->grant_count; i++) {
            const access_grant *g = &a->grants[i];
            if (g->is.session.size || g->is.agent_count ||
                !is_given(g, p, now_ms, until_ms))
                continue;
            *may |= g->may;
            *all |= g->all;
        }
        return;
    }
    add_up(a, p->parent, may, all, until_ms);
    if (p->is_granted) {
        guard_names names = {p->agents[0], p->owner, p->session};
        *may =
            (p->is_own ? *may : 0) | on_names(a, p->parent, &names, p->is_own, until_ms);
        *all &= p->is_own;
    } else if (!p->inherits) {
        *may &= atomic_load(&p->base);
        *all &= p->base_all;
    }
}

static int is_refused(const access_fold *a, const principal *p)
{
    for (; !is_host(p); p = p->parent)
        if (access_is_locked(a, p->user, p->key) ||
            (p->is_by_key && !access_find_key(a, p->key)))
            return 1;
    return 0;
}

sessile_status access_refuse(sessile_error *err)
{
    return fail(err, SESSILE_DENIED, "the credential is not accepted");
}

sessile_status access_check(principal *p, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_error why = {0};
    uint64_t version;
    int64_t until_ms;

    if (!a || is_host(p))
        return SESSILE_OK;
    if (p->parent && !is_host(p->parent)) { /* what p may rests on what it may */
        sessile_status status = access_check(p->parent, err);
        if (status)
            return status;
    }
    if (control_look(a->control, &version, &why))
        return fail_rule(err, SESSILE_DENIED, "control",
                         "the control log of this store cannot be trusted, so nobody but "
                         "the host may use it, who repairs it");
    until_ms = atomic_load(&p->until_ms);
    if (atomic_load(&p->version) != version ||
        (until_ms && guard_now_ms(p->guard) >= until_ms)) {
        permissions may;
        int all;
        sessile_status status = access_begin(a, 0, &why);
        if (status)
            return status == SESSILE_NOMEM
                       ? fail_nomem(err)
                       : fail_rule(err, SESSILE_DENIED, "control",
                                   "the control log of this store cannot be read");
        until_ms = 0;
        add_up(a, p, &may, &all, &until_ms);
        atomic_store(&p->may, may);
        atomic_store(&p->all, all);
        atomic_store(&p->refused, is_refused(a, p));
        atomic_store(&p->until_ms, until_ms);
        atomic_store(&p->version, a->version);
        access_end(a);
    }
    return atomic_load(&p->refused) || (p->is_granted && !atomic_load(&p->may))
               ? access_refuse(err)
               : SESSILE_OK;
}

sessile_status access_accept(principal *p, sessile_error *err)
{
    return principal_stands(p) && principal_lives(p) ? access_check(p, err)
                                                     : access_refuse(err);
}
