/*
 * access_fold.c: the fold of grants, keys and locks.
 *
 * Must never take what it cannot read for less than it is: a grant whose user was
 * forgotten is no grant.
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
    return control_is_lost(json_get(data, name));
}

/* The role of a grant, as it is defined now; one that is not gives nothing. */
static void set_role(const access_fold *a, access_grant *g)
{
    const role *r = roles_find_slice(&a->guard->roles, g->is.role);

    g->may = r ? r->may : 0;
    g->all = r ? r->all : 0;
}

/* Which session of its names it is on. */
static void set_made(access_grant *g, json value)
{
    const char *text;
    size_t size;

    if (json_plain(value, &text, &size) && size < sizeof g->made)
        memcpy(g->made, text, size);
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
    set_made(g, json_get(f->data, "made"));
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

    if (is_lost(f->data, "user") || json_get(f->data, "end").type != JSON_NONE)
        return SESSILE_OK; /* the end of a lock of somebody who was forgotten */
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
