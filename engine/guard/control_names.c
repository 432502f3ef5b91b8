/*
 * control_names.c: names of users in the control log: sealed, opened, sealed again.
 *
 * Owns the two spellings of a user in a fact. Must never write a name that is not sealed
 * with the secret of its user, in a sealed store.
 */
#include "guard/control_names.h"

#include <string.h>

#include "codec/entry.h"
#include "log/log.h"
#include "session/fold.h"
#include "session/handle.h"
#include "session/header.h"

/* A member that control_put_user() sealed. */
static int is_sealed_user(json value, sessile_slice *id, char secret[NAME_SIZE],
                          sessile_slice *name)
{
    sessile_slice s;

    if (value.type != JSON_OBJECT ||
        !json_plain(json_get(value, "id"), &id->data, &id->size) ||
        !json_plain(json_get(value, "secret"), &s.data, &s.size) ||
        !json_plain(json_get(value, "name"), &name->data, &name->size) ||
        s.size >= NAME_SIZE || id->size >= PSEUDONYM_SIZE)
        return 0;
    memcpy(secret, s.data, s.size);
    secret[s.size] = 0;
    return 1;
}

sessile_status control_seal_user(const store_core *st, buf *out, sessile_slice user,
                                 sessile_error *err)
{
    char id[PSEUDONYM_SIZE], secret[NAME_SIZE] = "";
    sessile_status status = SESSILE_OK;
    buf name;

    buf_init(&name, &st->alloc);
    if (user.size)
        status = pseudonym_make(st->keys, user, id, secret, &name, err);
    if (!status && secret[0])
        buf_printf(out, "{\"id\":\"%s\",\"secret\":\"%s\",\"name\":\"%.*s\"}", id, secret,
                   (int)name.size, name.data);
    else if (!status)
        header_put_name(out, user);
    if (!status && out->failed)
        status = fail_nomem(err);
    buf_deinit(&name);
    return status;
}

sessile_slice control_pseudonym(json value)
{
    char secret[NAME_SIZE];
    sessile_slice id, name, none = {NULL, 0};

    return is_sealed_user(value, &id, secret, &name) ? id : none;
}

sessile_status control_open_user(const store_core *st, json value, buf *out, int *lost,
                                 sessile_error *err)
{
    char secret[NAME_SIZE], id[PSEUDONYM_SIZE];
    sessile_slice pseudonym, name;
    sessile_status status;

    *lost = 1;
    if (!is_sealed_user(value, &pseudonym, secret, &name))
        return SESSILE_OK;
    memcpy(id, pseudonym.data, pseudonym.size);
    id[pseudonym.size] = 0;
    status = pseudonym_open(st->keys, id, secret, name, out, err);
    *lost = status != SESSILE_OK;
    if (!status || status == SESSILE_NOMEM || status == SESSILE_IO)
        return status;
    error_clear(err);
    return SESSILE_OK;
}

sessile_status control_put_data(buf *out, json data, control_put put, void *arg,
                                sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    char between = '{';
    json_iter it;

    for (it = json_begin(data); !status && json_next(&it); between = ',') {
        buf_putc(out, between);
        buf_put(out, it.key.at, it.key.size);
        buf_putc(out, ':');
        if (json_get(it.value, "secret").type == JSON_STRING)
            status = put(arg, it.value, out, err);
        else
            buf_put(out, it.value.at, it.value.size);
    }
    if (between == '{')
        buf_putc(out, between);
    buf_putc(out, '}');
    if (!status && out->failed)
        status = fail_nomem(err);
    return status;
}

int control_is_lost(json member)
{
    return json_get(member, "lost").type == JSON_STRING;
}

int control_is_user(const store_core *st, json member, sessile_slice user)
{
    char secret[NAME_SIZE];
    const char *lost;
    size_t size, own;
    buf name;
    int same;

    if (json_plain(json_get(member, "lost"), &lost, &size)) {
        keyring_user_name(st->keys, user, secret);
        own = strlen(secret);
        return own && size > own && !memcmp(lost, secret, own) && lost[own] == '-';
    }
    if (member.type != JSON_STRING && member.type != JSON_OBJECT)
        return 0;
    buf_init(&name, &st->alloc);
    same = !header_get_name(&name, member) && name.size == user.size && user.size &&
           !memcmp(name.data, user.data, user.size);
    buf_wipe(&name);
    return same;
}

/* ------------------------------------------------------------------ resealing */

/* A user's name under the newest secret. What does not open any more stays as it is. */
static sessile_status seal_member(void *arg, json user, buf *out, sessile_error *err)
{
    const store_core *st = arg;
    sessile_status status;
    int lost;
    buf name;

    buf_init(&name, &st->alloc);
    status = control_open_user(st, user, &name, &lost, err);
    if (!status && lost)
        buf_put(out, user.at, user.size);
    else if (!status)
        status = control_seal_user(st, out, (sessile_slice){name.data, name.size}, err);
    buf_wipe(&name);
    return status;
}

static sessile_status seal_names(void *arg, sessile_id id, const char *text, size_t size,
                                 buf *out, sessile_error *err)
{
    sessile_status status;
    json data;
    entry e;

    if (id == 0)
        return SESSILE_OK;
    status = entry_read(&e, text, size, err);
    data = status ? (json){NULL, 0, JSON_NONE} : json_get(e.data, "data");
    if (status || e.type != ENTRY_FACT || data.type != JSON_OBJECT)
        return status;
    buf_put(out, text, (size_t)(data.at - text));
    status = control_put_data(out, data, seal_member, arg, err);
    buf_put(out, data.at + data.size, size - (size_t)(data.at - text) - data.size);
    return status;
}

sessile_status control_reseal(store_core *st, const char *folder, const char *name,
                              int *done, sessile_error *err)
{
    log_index_callbacks callbacks = session_index_callbacks(NULL, 1);
    sessile_status status =
        log_change_entries(&st->backend, st->keys, folder, name, st->config.timeout_ms,
                           &callbacks, seal_names, st, &st->alloc, err);

    *done = status == SESSILE_OK;
    return status;
}
