/* access_keys.c: access keys and locks: made, ended, listed. */
#include "guard/access_facts.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/names.h"
#include "base/text.h"
#include "guard/access_rows.h"
#include "guard/guard.h"
#include "session/header.h"

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
        if (!access_has_ended(p, g->is.until_ms) && slice_same(g->is.user, user)) {
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

static sessile_status check_key_texts(const principal *p,
                                      const sessile_access_key_options *o,
                                      sessile_error *err)
{
    sessile_status status = access_check_text(p, o->user, "name of the user", err);

    if (!status)
        status = access_check_text(p, o->device, "name of the device", err);
    if (!status)
        status = access_check_text(p, o->label, "label", err);
    return status ? status
                  : access_check_texts(p, o->agents, o->agent_count, "agent", err);
}

sessile_status access_key_make(principal *p, const store_core *st,
                               const sessile_access_key_options *o, char **key,
                               sessile_error *err)
{
    char text[ACCESS_KEY_TEXT + 1], hex[2 * ACCESS_KEY_HASH + 1];
    unsigned char hash[ACCESS_KEY_HASH];
    sessile_slice id;
    sessile_status status = access_check_until(p, o->expires_ms, "key", err);
    buf data;

    for (size_t i = 0; !status && i < o->role_count; i++)
        status = access_check_role(p, o->roles[i], 0, err);
    if (!status)
        status = check_key_texts(p, o, err);
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
    status = fact_put_user(p, &data, "user", o->user, err);
    buf_puts(&data, ",\"roles\":[");
    for (size_t i = 0; i < o->role_count; i++) {
        if (i)
            buf_putc(&data, ',');
        json_put_cstring(&data, o->roles[i]);
    }
    buf_putc(&data, ']');
    fact_put_names(&data, "agents", o->agents, o->agent_count);
    fact_put_name(&data, "device", o->device);
    fact_put_name(&data, "label", o->label);
    if (o->expires_ms)
        buf_printf(&data, ",\"expires\":%" PRIi64, o->expires_ms);
    *key = status ? NULL : host_dup(&p->guard->alloc, text, ACCESS_KEY_TEXT);
    if (!status && !*key)
        status = fail_nomem(err);
    if (!status)
        status = fact_append(p, CONTROL_KEY, &data, NULL, err);
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
    static const rows_shape sh = {sizeof(sessile_access_key_row),
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
    sessile_status status = rows_begin(p, count_keys, &chosen, &room, err);

    if (status)
        return status;
    for (size_t i = 0; i < a->key_count; i++)
        chosen[n++] = &a->keys[i].is;
    status = rows_end(p, &sh, chosen, room, n, &out, count, err);
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
    status = fact_append(p, CONTROL_KEY, &data, NULL, err);
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
    status = fact_put_user(p, &data, "user", user, err);
    fact_put_name(&data, "key", key);
    fact_put_name(&data, "reason", reason);
    if (!status)
        status = fact_append(p, CONTROL_LOCK, &data, NULL, err);
    buf_deinit(&data);
    return status;
}

static sessile_status check_lock(const principal *p, sessile_slice user,
                                 sessile_slice key, sessile_slice reason,
                                 sessile_error *err)
{
    sessile_status status = access_check_text(p, user, "name of the user", err);

    if (!user.size == !key.size)
        return fail(err, SESSILE_INVALID, "a lock is of a user or of a key: name one");
    return status ? status : access_check_text(p, reason, "reason", err);
}

sessile_status access_lock_set(principal *p, sessile_slice user, sessile_slice key,
                               sessile_slice reason, sessile_error *err)
{
    access_fold *a = p->guard->access;
    sessile_status status = check_lock(p, user, key, reason, err);

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
    sessile_status status = check_lock(p, user, key, (sessile_slice){NULL, 0}, err);
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
    static const rows_shape sh = {sizeof(sessile_access_lock_row),
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
    sessile_status status = rows_begin(p, count_locks, &chosen, &room, err);

    if (status)
        return status;
    for (size_t i = 0; i < a->lock_count; i++)
        chosen[n++] = &a->locks[i];
    status = rows_end(p, &sh, chosen, room, n, &out, count, err);
    *rows = out;
    return status;
}
