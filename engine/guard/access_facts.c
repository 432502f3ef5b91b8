/*
 * access_facts.c: grants, access keys and locks: made, ended, listed.
 *
 * Owns what these facts look like in the control log, and that nobody gives what they do
 * not have.
 */
#include "guard/access.h"

#include <inttypes.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "guard/guard.h"
#include "session/header.h"

/* ------------------------------------------------------------------ who may */

static int manages(const principal *p)
{
    return (p->may & PERMISSION(MANAGE_ACCESS)) && p->all && principal_is_whole(p);
}

static sessile_status check_until(const principal *p, int64_t until_ms, const char *what,
                                  sessile_error *err)
{
    if (until_ms < 0 || (until_ms && until_ms <= guard_now_ms(p->guard)))
        return fail(err, SESSILE_INVALID, "the %s would have ended already", what);
    return SESSILE_OK;
}

/* on_session: its scope is of no matter. */
static sessile_status check_role(const principal *p, const char *name, int on_session,
                                 sessile_error *err)
{
    const role *r = name ? roles_find(&p->guard->roles, name) : NULL;

    if (!r)
        return fail(err, SESSILE_INVALID, "there is no role \"%.63s\"", name ? name : "");
    if ((p->may & PERMISSION_HOST) != 0)
        return SESSILE_OK;
    if ((r->may & ~p->may) || (r->all && !on_session && !p->all))
        return fail(err, SESSILE_DENIED,
                    "nobody gives what they do not have: the role %s may more", r->name);
    return SESSILE_OK;
}

/* ------------------------------------------------------------------ writing */

static void put_name(buf *out, const char *name, sessile_slice text)
{
    if (!text.size)
        return;
    buf_printf(out, ",\"%s\":", name);
    header_put_name(out, text);
}

static void put_names(buf *out, const char *name, const sessile_slice *list, size_t count)
{
    if (!count)
        return;
    buf_printf(out, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        if (i)
            buf_putc(out, ',');
        header_put_name(out, list[i]);
    }
    buf_putc(out, ']');
}

static sessile_status put_user(const principal *p, buf *out, const char *name,
                               sessile_slice user, sessile_error *err)
{
    if (!user.size)
        return SESSILE_OK;
    buf_printf(out, ",\"%s\":", name);
    return control_put_user(p->guard->access->control, out, user, err);
}

/* Ends the data, which begins with "{" and a member, and appends it, durably. */
static sessile_status append(const principal *p, control_kind kind, buf *data,
                             sessile_id *id, sessile_error *err)
{
    sessile_status status = put_user(p, data, "by", p->user, err);

    buf_putc(data, '}');
    return status ? status
                  : control_append(p->guard->access->control, kind, data, 1, id, err);
}

/* ------------------------------------------------------------------ rows */

/* Where the texts and the lists of a row are. */
typedef struct shape {
    size_t size, texts[8], text_count, lists[2], counts[2], list_count;
} shape;

#define FIELD(row, at, type) (*(type *)(void *)((char *)(row) + (at)))

static void move_text(sessile_slice *s, char **at)
{
    if (s->size)
        memcpy(*at, s->data, s->size);
    s->data = *at;
    *at += s->size;
    *(*at)++ = 0;
}

/* Copies of rows in one block for the host. */
static sessile_status give(const allocator *a, const shape *sh, const void *const *rows,
                           size_t n, void **out, sessile_error *err)
{
    size_t lists = 0, texts = 0;
    sessile_slice *list;
    char *block, *at;

    for (size_t i = 0; i < n; i++) {
        const void *row = rows[i];
        for (size_t k = 0; k < sh->text_count; k++)
            texts += FIELD(row, sh->texts[k], const sessile_slice).size + 1;
        for (size_t k = 0; k < sh->list_count; k++) {
            const sessile_slice *from = FIELD(row, sh->lists[k], sessile_slice *const);
            size_t count = FIELD(row, sh->counts[k], const size_t);
            lists += count;
            for (size_t j = 0; j < count; j++)
                texts += from[j].size + 1;
        }
    }
    block = host_alloc(a, n * sh->size + lists * sizeof *list + texts + 1);
    if (!block)
        return fail_nomem(err);
    list = (sessile_slice *)(void *)(block + n * sh->size);
    at = (char *)(list + lists);
    for (size_t i = 0; i < n; i++) {
        char *row = block + i * sh->size;
        memcpy(row, rows[i], sh->size);
        for (size_t k = 0; k < sh->text_count; k++)
            move_text(&FIELD(row, sh->texts[k], sessile_slice), &at);
        for (size_t k = 0; k < sh->list_count; k++) {
            size_t count = FIELD(row, sh->counts[k], size_t);
            if (count)
                memcpy(list, FIELD(row, sh->lists[k], sessile_slice *),
                       count * sizeof *list);
            FIELD(row, sh->lists[k], sessile_slice *) = list;
            for (size_t j = 0; j < count; j++)
                move_text(list++, &at);
        }
    }
    *out = block;
    return SESSILE_OK;
}

/* Begins listing: the fold as it is now, and room for pointers to count rows of it. */
static sessile_status begin_list(const principal *p,
                                 size_t (*count)(const access_fold *a),
                                 const void ***rows, size_t *room, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = access_begin(a, 1, err);

    *rows = NULL;
    if (status)
        return status;
    *room = count(a) + 1;
    *rows = mem_alloc(&a->guard->alloc, *room * sizeof **rows);
    if (*rows)
        return SESSILE_OK;
    access_end(a);
    return fail_nomem(err);
}

static sessile_status end_list(const principal *p, const shape *sh, const void **rows,
                               size_t room, size_t n, void **out, size_t *count,
                               sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = give(&a->guard->alloc, sh, rows, n, out, err);

    *count = status ? 0 : n;
    mem_free(&a->guard->alloc, rows, room * sizeof *rows);
    access_end(a);
    return status;
}

/* ------------------------------------------------------------------ grants */

static sessile_status check_grant(const principal *p, const sessile_grant_options *o,
                                  const guard_names *names, sessile_error *err)
{
    sessile_status status = SESSILE_OK;

    if (!o->user.size == !o->holders.size)
        return fail(err, SESSILE_INVALID,
                    "a grant is given to a user, or to all holders of a role: name one");
    if (o->session.size && o->agent_count)
        return fail(err, SESSILE_INVALID,
                    "a grant is on one session or with some agents, not both");
    status = check_until(p, o->until_ms, "grant", err);
    if (!status)
        status = check_role(p, o->role, o->session.size != 0, err);
    if (status || manages(p) || (p->may & PERMISSION_HOST))
        return status;
    if (!o->session.size || !p->user.size || !slice_same(names->user, p->user) ||
        !principal_sees(p, names))
        return fail(err, SESSILE_DENIED,
                    "this needs the permission manage_access: without it one shares a "
                    "session of one's own, and no more");
    return SESSILE_OK;
}

sessile_status access_grant_make(principal *p, const store_core *st,
                                 const sessile_grant_options *o, sessile_id *id,
                                 sessile_error *err)
{
    guard_names names = {o->agent, o->owner, o->session};
    sessile_status status;
    buf data;

    if (!names.agent.size)
        names.agent = (sessile_slice){st->agent, strlen(st->agent)};
    if (!names.user.data && !p->all)
        names.user = p->user;
    status = check_grant(p, o, &names, err);
    if (status)
        return status;
    buf_init(&data, &p->guard->alloc);
    buf_puts(&data, "{\"role\":");
    json_put_cstring(&data, o->role);
    status = put_user(p, &data, "user", o->user, err);
    put_name(&data, "holders", o->holders);
    put_names(&data, "agents", o->agents, o->agent_count);
    if (o->session.size) {
        put_name(&data, "session", names.id);
        put_name(&data, "agent", names.agent);
        if (!status)
            status = put_user(p, &data, "owner", names.user, err);
    }
    if (o->until_ms)
        buf_printf(&data, ",\"until\":%" PRIi64, o->until_ms);
    if (!status)
        status = append(p, CONTROL_GRANT, &data, id, err);
    buf_deinit(&data);
    return status;
}

static int has_ended(const principal *p, int64_t until_ms)
{
    return until_ms && guard_now_ms(p->guard) >= until_ms;
}

/* 1: p sees the grant, or (to_end) may end it. */
static int is_of(const principal *p, const access_grant *g, int to_end)
{
    int is_owner = g->is.session.size && p->user.size && slice_same(g->is.owner, p->user);

    if (has_ended(p, g->is.until_ms))
        return 0;
    return manages(p) || (p->may & PERMISSION_HOST) || is_owner ||
           (!to_end && p->user.size && slice_same(g->is.user, p->user));
}

static size_t count_grants(const access_fold *a)
{
    return a->grant_count;
}

sessile_status access_grant_list(principal *p, sessile_grant_row **rows, size_t *count,
                                 sessile_error *err)
{
#define AT(field) offsetof(sessile_grant_row, field)
    static const shape sh = {
        sizeof(sessile_grant_row),
        {AT(user), AT(holders), AT(role), AT(session), AT(agent), AT(owner), AT(by)},
        7,
        {AT(agents)},
        {AT(agent_count)},
        1};
#undef AT
    const access_fold *a = p->guard->access;
    const void **chosen;
    size_t n = 0, room;
    void *out = NULL;
    sessile_status status = begin_list(p, count_grants, &chosen, &room, err);

    if (status)
        return status;
    for (size_t i = 0; i < a->grant_count; i++)
        if (is_of(p, &a->grants[i], 0))
            chosen[n++] = &a->grants[i].is;
    status = end_list(p, &sh, chosen, room, n, &out, count, err);
    *rows = out;
    return status;
}

sessile_status access_grant_end(principal *p, sessile_id id, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = access_begin(a, 1, err);
    int found = 0;
    buf data;

    if (status)
        return status;
    for (size_t i = 0; i < a->grant_count; i++)
        found |= a->grants[i].is.id == id && is_of(p, &a->grants[i], 1);
    access_end(a);
    if (!found)
        return fail(err, SESSILE_NOTFOUND, "no grant %08" PRIx32 " is in force", id);
    buf_init(&data, &a->guard->alloc);
    buf_printf(&data, "{\"end\":%" PRIu32, id);
    status = append(p, CONTROL_GRANT, &data, NULL, err);
    buf_deinit(&data);
    return status;
}

/* ------------------------------------------------------------------ access keys */

/* A key opens what is granted to its user: nobody makes one that gives more than they
 * have themselves. */
static sessile_status check_key_user(principal *p, sessile_slice user, sessile_error *err)
{
    access_fold *a = p->guard->access;
    permissions more = 0;
    int all = 0;
    sessile_status status;

    if (p->may & PERMISSION_HOST || !user.size || slice_same(user, p->user))
        return SESSILE_OK;
    status = access_begin(a, 1, err);
    if (status)
        return status;
    for (size_t i = 0; i < a->grant_count; i++) {
        const access_grant *g = &a->grants[i];
        if (!has_ended(p, g->is.until_ms) && slice_same(g->is.user, user)) {
            more |= g->may;
            all |= g->all && !g->is.session.size;
        }
    }
    access_end(a);
    if (more & ~p->may || (all && !p->all))
        return fail(err, SESSILE_DENIED,
                    "this user was granted more than this view has: only who has it may "
                    "make the key");
    return SESSILE_OK;
}

sessile_status access_key_make(principal *p, const store_core *st,
                               const sessile_access_key_options *o, char **key,
                               sessile_error *err)
{
    char text[ACCESS_KEY_TEXT + 1], hex[2 * ACCESS_KEY_HASH + 1];
    unsigned char hash[ACCESS_KEY_HASH];
    sessile_slice id;
    sessile_status status = check_until(p, o->expires_ms, "key", err);
    buf data;

    for (size_t i = 0; !status && i < o->role_count; i++)
        status = check_role(p, o->roles[i], 0, err);
    if (!status)
        status = check_key_user(p, o->user, err);
    if (status)
        return status;
    access_key_draw(text);
    (void)access_key_read((sessile_slice){text, ACCESS_KEY_TEXT}, &id);
    access_key_hash(st->keys, (sessile_slice){text, ACCESS_KEY_TEXT}, hash);
    hex_encode(hex, hash, sizeof hash);
    buf_init(&data, &p->guard->alloc);
    buf_printf(&data, "{\"key\":\"%.*s\",\"hash\":\"%s\"", (int)id.size, id.data, hex);
    status = put_user(p, &data, "user", o->user, err);
    buf_puts(&data, ",\"roles\":[");
    for (size_t i = 0; i < o->role_count; i++) {
        if (i)
            buf_putc(&data, ',');
        json_put_cstring(&data, o->roles[i]);
    }
    buf_putc(&data, ']');
    put_names(&data, "agents", o->agents, o->agent_count);
    put_name(&data, "device", o->device);
    put_name(&data, "label", o->label);
    if (o->expires_ms)
        buf_printf(&data, ",\"expires\":%" PRIi64, o->expires_ms);
    *key = status ? NULL : host_dup(&p->guard->alloc, text, ACCESS_KEY_TEXT);
    if (!status && !*key)
        status = fail_nomem(err);
    if (!status)
        status = append(p, CONTROL_KEY, &data, NULL, err);
    if (status && *key) {
        wipe(*key, ACCESS_KEY_TEXT);
        host_free(*key);
        *key = NULL;
    }
    wipe(text, sizeof text);
    buf_deinit(&data);
    return status;
}

static size_t count_keys(const access_fold *a)
{
    return a->key_count;
}

sessile_status access_key_list(principal *p, sessile_access_key_row **rows, size_t *count,
                               sessile_error *err)
{
#define AT(field) offsetof(sessile_access_key_row, field)
    static const shape sh = {sizeof(sessile_access_key_row),
                             {AT(id), AT(user), AT(device), AT(label), AT(by)},
                             5,
                             {AT(roles), AT(agents)},
                             {AT(role_count), AT(agent_count)},
                             2};
#undef AT
    const access_fold *a = p->guard->access;
    const void **chosen;
    size_t n = 0, room;
    void *out = NULL;
    sessile_status status = begin_list(p, count_keys, &chosen, &room, err);

    if (status)
        return status;
    for (size_t i = 0; i < a->key_count; i++)
        chosen[n++] = &a->keys[i].is;
    status = end_list(p, &sh, chosen, room, n, &out, count, err);
    *rows = out;
    return status;
}

sessile_status access_key_revoke(principal *p, sessile_slice id, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = access_begin(a, 1, err);
    int found;
    buf data;

    if (status)
        return status;
    found = access_find_key(a, id) != NULL;
    access_end(a);
    if (!found)
        return fail(err, SESSILE_NOTFOUND, "there is no such access key");
    buf_init(&data, &a->guard->alloc);
    buf_puts(&data, "{\"revoke\":");
    header_put_name(&data, id);
    status = append(p, CONTROL_KEY, &data, NULL, err);
    buf_deinit(&data);
    return status;
}

/* ------------------------------------------------------------------ locks */

static sessile_status set_lock(const principal *p, int on, sessile_slice user,
                               sessile_slice key, sessile_slice reason,
                               sessile_error *err)
{
    sessile_status status;
    buf data;

    buf_init(&data, &p->guard->alloc);
    buf_printf(&data, "{\"locked\":%s", on ? "true" : "false");
    status = put_user(p, &data, "user", user, err);
    put_name(&data, "key", key);
    put_name(&data, "reason", reason);
    if (!status)
        status = append(p, CONTROL_LOCK, &data, NULL, err);
    buf_deinit(&data);
    return status;
}

static sessile_status check_lock(sessile_slice user, sessile_slice key,
                                 sessile_error *err)
{
    return !user.size == !key.size
               ? fail(err, SESSILE_INVALID, "a lock is of a user or of a key: name one")
               : SESSILE_OK;
}

sessile_status access_lock_set(principal *p, sessile_slice user, sessile_slice key,
                               sessile_slice reason, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = check_lock(user, key, err);

    if (!status && key.size) { /* a part of an id would lock nothing, and say it did */
        status = access_begin(a, 1, err);
        if (status)
            return status;
        if (!access_find_key(a, key))
            status = fail(err, SESSILE_NOTFOUND, "there is no such access key");
        access_end(a);
    }
    return status ? status : set_lock(p, 1, user, key, reason, err);
}

sessile_status access_lock_end(principal *p, sessile_slice user, sessile_slice key,
                               sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = check_lock(user, key, err);
    int found;

    if (!status)
        status = access_begin(a, 1, err);
    if (status)
        return status;
    found = access_is_locked(a, user, key);
    access_end(a);
    if (!found)
        return fail(err, SESSILE_NOTFOUND, "there is no such lock");
    return set_lock(p, 0, user, key, (sessile_slice){NULL, 0}, err);
}

static size_t count_locks(const access_fold *a)
{
    return a->lock_count;
}

sessile_status access_lock_list(principal *p, sessile_access_lock_row **rows,
                                size_t *count, sessile_error *err)
{
#define AT(field) offsetof(sessile_access_lock_row, field)
    static const shape sh = {sizeof(sessile_access_lock_row),
                             {AT(user), AT(key), AT(reason), AT(by)},
                             4,
                             {0},
                             {0},
                             0};
#undef AT
    const access_fold *a = p->guard->access;
    const void **chosen;
    size_t n = 0, room;
    void *out = NULL;
    sessile_status status = begin_list(p, count_locks, &chosen, &room, err);

    if (status)
        return status;
    for (size_t i = 0; i < a->lock_count; i++)
        chosen[n++] = &a->locks[i];
    status = end_list(p, &sh, chosen, room, n, &out, count, err);
    *rows = out;
    return status;
}
