/*
 * migrate_keys.c: copies the keyring and the users' secrets when bytes are copied
 * unchanged.
 *
 * Makes sure that a forgotten user stays forgotten: secrets are copied after the logs,
 * and each is looked up in the source once more after it was copied. The markers of
 * forgotten users are copied too. Must never remove or overwrite a secret of the target
 * unless the source proves that its user was forgotten: the source may have lost its own,
 * by one flipped bit in a name.
 */
#include "admin/migrate.h"
#include "base/alloc.h"

#include <string.h>

sessile_status migrate_blob(const store *st, const char *name, char **out, size_t *size,
                            sessile_error *err)
{
    sessile_status status;

    *out = NULL;
    *size = 0;
    if (!(st->table->capabilities & SESSILE_BACKEND_SEALS))
        return SESSILE_OK;
    status = st->table->blob_get(st->self, name, out, size, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

static sessile_status list_blobs(blob_names *out, const store_core *st,
                                 const char *prefix, sessile_error *err)
{
    return blob_names_find(out, st->backend.table, st->backend.self, prefix, &st->alloc,
                           err);
}

int migrate_has_no_users(const migration_core *m)
{
    blob_names users;
    sessile_status status = list_blobs(&users, m->from, USER_PREFIX, NULL);
    int none = !status && users.count == 0;

    buf_deinit(&users.text);
    return none;
}

/* Puts a marker into the target, over one that does not open. */
static sessile_status put_marker(migration_core *m, const char *name, const char *text,
                                 size_t size, sessile_error *err)
{
    const store *to = &m->to->backend;
    char *was;
    size_t was_size;
    sessile_status status = to->table->blob_put_new(to->self, name, text, size, err);

    if (status != SESSILE_EXISTS)
        return status;
    error_clear(err);
    if (!m->from->keys || !to->table->blob_replace)
        return SESSILE_OK;
    status = migrate_blob(to, name, &was, &was_size, err);
    if (!status && was && (was_size != size || memcmp(was, text, size)))
        status = to->table->blob_replace(to->self, name, was, was_size, text, size, err);
    host_free(was);
    return status;
}

/* Users who were forgotten in the source are known to be so in the target. With a key,
 * only what proves that is copied. */
static sessile_status put_markers(migration_core *m, sessile_error *err)
{
    blob_names markers;
    sessile_status status = list_blobs(&markers, m->from, FORGOTTEN_PREFIX, err);
    buf secret;

    buf_init(&secret, &m->from->alloc);
    for (size_t at = 0; !status && at < markers.text.size;) {
        const char *name = markers.text.data + at;
        sessile_error why = {0};
        char *text;
        size_t size;
        at += strlen(name) + 1;
        buf_clear(&secret);
        buf_puts(&secret, USER_PREFIX);
        buf_puts(&secret, name + sizeof FORGOTTEN_PREFIX - 1);
        if (secret.failed)
            status = fail_nomem(err);
        else if (m->from->keys &&
                 keyring_forgot_secret(m->from->keys, secret.data, &why) != 1)
            status = why.code ? fail(err, why.code, "%s", why.message) : SESSILE_OK;
        else if (!(status = migrate_blob(&m->from->backend, name, &text, &size, err))) {
            if (text) /* else the user came back since it was listed */
                status = put_marker(m, name, text, size, err);
            host_free(text);
        }
    }
    buf_deinit(&secret);
    buf_deinit(&markers.text);
    return status;
}

/* The user has a secret in the source: in the target nothing may say otherwise. */
static sessile_status remove_marker(const store *to, const char *secret,
                                    sessile_error *err)
{
    sessile_status status;
    buf name;

    if (!to->table->blob_remove)
        return SESSILE_OK;
    buf_init(&name, &allocator_default);
    forgotten_name(secret, &name);
    status =
        name.failed ? fail_nomem(err) : to->table->blob_remove(to->self, name.data, err);
    buf_deinit(&name);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

/* ------------------------------------------------------------------ one secret */

/* A secret of the target stays, since nothing proves that its user was forgotten. */
static sessile_status keep(migration_core *m, const char *name, const char *why,
                           sessile_error *err)
{
    buf_puts(&m->kept, name);
    buf_putc(&m->kept, 0);
    buf_puts(&m->kept, why);
    buf_putc(&m->kept, 0);
    m->state.users_kept++;
    return m->kept.failed ? fail_nomem(err) : SESSILE_OK;
}

/* The source has it no more: neither has the target, if its user was forgotten. */
static sessile_status remove_there(migration_core *m, const char *name,
                                   sessile_error *err)
{
    const store *to = &m->to->backend;
    sessile_error why = {0};
    int forgot = m->from->keys ? keyring_forgot_secret(m->from->keys, name, &why) : 0;
    sessile_status status;

    if (forgot < 0)
        return fail(err, why.code, "%s", why.message);
    if (!forgot)
        return keep(m, name,
                    m->from->keys
                        ? "this user's secret is missing in the source, and nothing "
                          "proves that the user was forgotten: it was kept in the "
                          "target. Bring it back from there, or forget the user again"
                        : "this user's secret is missing in the source, and without the "
                          "key nothing proves that the user was forgotten: it was kept "
                          "in the target. Run it again with the key",
                    err);
    status =
        to->table->blob_remove ? to->table->blob_remove(to->self, name, err) : SESSILE_OK;
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        return SESSILE_OK;
    }
    if (!status)
        m->state.users_removed++;
    return status;
}

/* Both have one of this name, and not the same. */
static sessile_status settle(migration_core *m, const char *name, const char *was,
                             size_t was_size, const char *text, size_t size,
                             sessile_error *err)
{
    const store *to = &m->to->backend;

    if (!m->options.mirror || !to->table->blob_replace)
        return fail(
            err, SESSILE_CONFLICT,
            "%s is a different secret in the target: the user was forgotten in one "
            "of the two stores, and created again. It was left alone",
            name);
    if (!m->from->keys || keyring_secret_look(m->from->keys, name, text, size) != 1)
        return keep(m, name,
                    "this user's secret is another one in the source, or damaged there, "
                    "and nothing proves that the one in the target was forgotten: that "
                    "was kept. See what opens: sessile check; or make a new copy",
                    err);
    return to->table->blob_replace(to->self, name, was, was_size, text, size, err);
}

static sessile_status put_user(migration_core *m, const char *name, sessile_error *err)
{
    const store *from = &m->from->backend, *to = &m->to->backend;
    char *text, *was, *again = NULL;
    size_t size, was_size, again_size;
    sessile_status status = migrate_blob(from, name, &text, &size, err);

    if (status || !text)
        return status; /* forgotten since it was listed; forget_others() looks */
    status = migrate_blob(to, name, &was, &was_size, err);
    if (!status && was) {
        if (size != was_size || memcmp(text, was, size))
            status = settle(m, name, was, was_size, text, size, err);
    } else if (!status) {
        status = to->table->blob_put_new(to->self, name, text, size, err);
        m->state.users += !status;
        if (!status)
            status = remove_marker(to, name, err);
    }
    host_free(was);
    host_free(text);
    /* Forgotten while it was copied: then it may not stay. */
    if (!status)
        status = migrate_blob(from, name, &again, &again_size, err);
    if (!status && !again)
        status = remove_there(m, name, err);
    host_free(again);
    return status;
}

/* Those of `to` that are no more in `from`. */
static sessile_status forget_others(migration_core *m, sessile_error *err)
{
    blob_names there;
    sessile_status status = list_blobs(&there, m->to, USER_PREFIX, err);

    for (size_t at = 0; !status && at < there.text.size;) {
        const char *name = there.text.data + at;
        char *text = NULL;
        size_t size;
        at += strlen(name) + 1;
        status = migrate_blob(&m->from->backend, name, &text, &size, err);
        if (!status && !text)
            status = remove_there(m, name, err);
        host_free(text);
    }
    buf_deinit(&there.text);
    return status;
}

sessile_status migrate_users(migration_core *m, sessile_error *err)
{
    blob_names users;
    sessile_status status;

    buf_init(&m->kept, &m->from->alloc);
    if (m->from
            ->keys) /* epochs that were dropped are proof; those it knows count, else */
        (void)keyring_refresh(m->from->keys, NULL);
    status = list_blobs(&users, m->from, USER_PREFIX, err);
    for (size_t at = 0; !status && at < users.text.size;) {
        const char *name = users.text.data + at;
        at += strlen(name) + 1;
        status = put_user(m, name, err);
    }
    buf_deinit(&users.text);
    if (!status)
        status = put_markers(m, err);
    return !status && m->options.mirror ? forget_others(m, err) : status;
}

/* The keyring got new keys, and lost none: the copy's is brought up to date. 1: done. */
static int follow(migration_core *m, const char *text, size_t size)
{
    const store *to = &m->to->backend;

    return (m->parts & SESSILE_MIGRATE_KEYRING) && m->from->keys &&
           to->table->blob_replace && !keyring_refresh(m->from->keys, NULL) &&
           keyring_continues(m->from->keys, m->keyring, m->keyring_size) &&
           !to->table->blob_replace(to->self, KEYRING_BLOB, m->keyring, m->keyring_size,
                                    text, size, NULL);
}

sessile_status migrate_keys_same(migration_core *m, sessile_error *err)
{
    char *text;
    size_t size;
    sessile_status status =
        migrate_blob(&m->from->backend, KEYRING_BLOB, &text, &size, err);

    if (!status &&
        (!text || ((size != m->keyring_size || memcmp(text, m->keyring, size)) &&
                   !follow(m, text, size))))
        status = fail(err, SESSILE_CONFLICT,
                      "the keys of the store were changed while it was copied: what was "
                      "copied may need keys that the copy lacks. Remove the copy, and "
                      "make another");
    host_free(text);
    return status;
}
