/*
 * forgotten.c: forgetting users, and the markers that record it.
 *
 * Owns the blobs forgotten-HASH-EPOCH, one line of JSON each:
 *
 *   {"sessile_forgotten":2,"epoch":N,"s":"B"}
 *
 * B = nonce ‖ XChaCha20-Poly1305(master key of epoch N; no bytes), additional data = the
 * blob's name ‖ the line before B. A secret that is only missing may have lost its name
 * to damage; the marker is the evidence that it was removed on purpose. It is there
 * before the secret goes. Only one that opens counts: whoever may write in the store, and
 * has no key, must not be able to have sessions removed. A marker beside a secret means
 * nothing.
 */
#include <string.h>

#include "base/alloc.h"
#include "base/text.h"
#include "vault/ring.h"

#define KIND "\"sessile_forgotten\":2"

/* What is known of a secret that is not there. */
typedef enum evidence {
    UNKNOWN = -1, /* err says why */
    NONE,
    BAD, /* there is a marker, which does not open */
    PROVED
} evidence;

/* ------------------------------------------------------------------------- markers */

void forgotten_name(const char *secret, buf *out)
{
    buf_puts(out, FORGOTTEN_PREFIX);
    buf_puts(out, secret + sizeof USER_PREFIX - 1);
}

/* Whether the marker of this secret is there, and opens. */
static evidence look_at_marker(const keyring *k, const char *secret, sessile_error *err)
{
    uint64_t epoch = user_blob_epoch(secret);
    const unsigned char *key = keyring_master(k, epoch);
    evidence found = NONE;
    char nothing[1], *blob = NULL;
    size_t size;
    buf name;
    buf_init(&name, k->alloc);
    forgotten_name(secret, &name);
    sessile_status status =
        name.failed ? fail_nomem(err)
                    : k->backend->blob_get(k->self, name.data, &blob, &size, err);
    if (!status) {
        status = !key ? SESSILE_DAMAGED
                      : user_line_open(KIND, name.data, epoch, key, blob, size, nothing,
                                       0, k->alloc, err);
        found = status ? BAD : PROVED;
        host_free(blob);
    }
    if (status == SESSILE_NOTFOUND || status == SESSILE_DAMAGED) {
        error_clear(err);
        status = SESSILE_OK;
    }
    buf_deinit(&name);
    return status ? UNKNOWN : found;
}

/* 1: the blob is there; 0: it is not; -1: that is not known. */
static int is_there(const keyring *k, const char *name, sessile_error *err)
{
    char *blob;
    size_t size;
    sessile_status status = k->backend->blob_get(k->self, name, &blob, &size, err);
    if (!status)
        host_free(blob);
    if (status == SESSILE_NOTFOUND)
        error_clear(err);
    return !status ? 1 : status == SESSILE_NOTFOUND ? 0 : -1;
}

/* Removes a blob, if it is there; *removed: it was. */
static sessile_status remove_blob(const keyring *k, const char *name, int *removed,
                                  sessile_error *err)
{
    sessile_status status = k->backend->blob_remove(k->self, name, err);
    *removed = !status;
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    return status;
}

/* Durable on return, whoever put it. One that does not open is replaced. */
static sessile_status mark(const keyring *k, const char *secret, sessile_error *err)
{
    uint64_t epoch = user_blob_epoch(secret);
    sessile_error why = {0};
    const unsigned char *key = keyring_master_now(k, epoch, &why);
    evidence found = key ? look_at_marker(k, secret, &why) : NONE;
    sessile_status status = SESSILE_OK;
    int removed;
    buf name, text;
    if (why.code)
        return fail(err, why.code, "%s", why.message);
    if (!key) /* of an epoch that was dropped, or never was */
        return SESSILE_OK;
    buf_init(&name, k->alloc);
    buf_init(&text, k->alloc);
    forgotten_name(secret, &name);
    if (name.failed)
        status = fail_nomem(err);
    if (!status && found == BAD)
        status = remove_blob(k, name.data, &removed, err);
    if (!status && found != PROVED)
        status = user_line_put(&text, KIND, name.data, epoch, key, "", 0, err);
    if (!status && found != PROVED)
        status = k->backend->blob_put_new(k->self, name.data, text.data, text.size, err);
    if (status == SESSILE_EXISTS || (!status && found == PROVED)) {
        error_clear(err);
        status = k->backend->blob_settle
                     ? k->backend->blob_settle(k->self, name.data, err)
                     : SESSILE_OK;
    }
    buf_deinit(&text);
    buf_deinit(&name);
    return status;
}

sessile_status user_mark(const keyring *k, const char *user, uint64_t epoch,
                         sessile_error *err)
{
    buf secret;
    buf_init(&secret, k->alloc);
    user_blob_name(user, epoch, &secret);
    sessile_status status = secret.failed ? fail_nomem(err) : mark(k, secret.data, err);
    buf_deinit(&secret);
    return status;
}

sessile_status user_unmark(const keyring *k, const char *user, uint64_t epoch,
                           int *removed, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf secret, name;
    *removed = 0;
    if (!k->backend->blob_remove)
        return SESSILE_OK; /* nobody was forgotten there */
    buf_init(&secret, k->alloc);
    buf_init(&name, k->alloc);
    user_blob_name(user, epoch, &secret);
    if (!secret.failed)
        forgotten_name(secret.data, &name);
    if (secret.failed || name.failed) {
        status = fail_nomem(err);
    } else {
        /* first a look, which costs less where there is none */
        sessile_error why = {0};
        int there = is_there(k, name.data, &why);
        if (there < 0)
            status = fail(err, why.code, "%s", why.message);
        else if (there)
            status = remove_blob(k, name.data, removed, err);
    }
    buf_deinit(&secret);
    buf_deinit(&name);
    return status;
}

/* ---------------------------------------------------------------------- on purpose? */

/* Whether a secret that is not there was removed on purpose: by keyring_forget(), or by
 * keyring_drop_users() with its epoch, which no log that opens has then. */
static evidence look_for_evidence(const keyring *k, const char *secret,
                                  sessile_error *err)
{
    uint64_t epoch = user_blob_epoch(secret);
    if (epoch > 0 && epoch < keyring_epoch(k) && !keyring_has(k, epoch))
        return PROVED;
    return look_at_marker(k, secret, err);
}

sessile_status user_fail_forgotten(sessile_error *err)
{
    return fail(err, SESSILE_SEALED,
                "the secret of this user was forgotten: it cannot be read any more");
}

/* The rule of the error, by which it is known from others. */
#define MISSING "user_secret_missing"

int user_secret_is_missing(const sessile_error *err)
{
    return err->code == SESSILE_DAMAGED && !strcmp(err->rule, MISSING);
}

sessile_status user_fail_gone(const keyring *k, const char *user, uint64_t epoch,
                              sessile_error *err)
{
    sessile_status status;
    buf secret;
    buf_init(&secret, k->alloc);
    user_blob_name(user, epoch, &secret);
    error_clear(err);
    if (secret.failed) {
        status = fail_nomem(err);
    } else {
        sessile_error why = {0};
        evidence found = look_for_evidence(k, secret.data, &why);
        status = found == UNKNOWN ? fail(err, why.code, "%s", why.message)
                 : found == PROVED
                     ? user_fail_forgotten(err)
                     : fail_rule(err, SESSILE_DAMAGED, MISSING,
                                 "the blob %s, a user's secret, is missing, and %s: "
                                 "bring back a copy of it. If the user was "
                                 "forgotten, also by an earlier version: forget "
                                 "the user again",
                                 secret.data,
                                 found == BAD ? "its marker does not open"
                                              : "nothing records that the user was "
                                                "forgotten");
    }
    buf_deinit(&secret);
    return status;
}

int keyring_forgot_secret(const keyring *k, const char *secret, sessile_error *err)
{
    int there;
    if (!k->sealed || !k->backend || user_blob_epoch(secret) > keyring_epoch(k))
        return 0;
    there = is_there(k, secret, err);
    if (there)
        return there < 0 ? -1 : 0;
    evidence found = look_for_evidence(k, secret, err);
    return found == UNKNOWN ? -1 : found == PROVED;
}

int keyring_forgot(const keyring *k, const logkey_about *log, sessile_error *err)
{
    int forgot;
    buf secret;
    if (log->user[0] == '\0' || !k->backend)
        return 0;
    buf_init(&secret, k->alloc);
    user_blob_name(log->user, log->epoch, &secret);
    if (secret.failed) {
        fail_nomem(err);
        forgot = -1;
    } else {
        forgot = keyring_forgot_secret(k, secret.data, err);
    }
    buf_deinit(&secret);
    return forgot;
}

/* ---------------------------------------------------------------------- forgetting */

/* Marks the secrets of every epoch of the keyring, also those that are missing. */
static sessile_status mark_epochs(const keyring *k, const char *user, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    size_t count = keyring_epochs(k, NULL, 0);
    uint64_t *epochs = mem_alloc(k->alloc, count * sizeof *epochs);
    if (!epochs)
        return fail_nomem(err);
    size_t known = keyring_epochs(k, epochs, count);
    for (size_t i = 0; i < count && i < known && !status; i++)
        status = user_mark(k, user, epochs[i], err);
    mem_free(k->alloc, epochs, count * sizeof *epochs);
    return status;
}

sessile_status keyring_forget(keyring *k, const char *user, uint64_t *removed,
                              sessile_error *err)
{
    blob_names found;
    sessile_status status;
    buf prefix;
    int gone;
    *removed = 0;
    if (!k->sealed || !k->backend || !k->backend->blob_remove) {
        return fail(err, SESSILE_UNSUPPORTED,
                    "users have secrets of their own in sealed stores only: delete their "
                    "sessions instead");
    }
    buf_init(&prefix, k->alloc);
    buf_puts(&prefix, user);
    buf_puts(&prefix, "-");
    if (prefix.failed)
        return fail_nomem(err);
    status = keyring_refresh(k, err); /* a newer epoch needs its marker too */
    /* Until there are none: a log of this user that is made or resealed meanwhile may
     * bring a new secret with it, and takes the marker away. */
    do {
        if (!status)
            status = mark_epochs(k, user, err);
        if (status)
            break;
        status = blob_names_find(&found, k->backend, k->self, prefix.data, k->alloc, err);
        const char *name = found.text.data;
        for (size_t i = 0; i < found.count && !status; i++) {
            status = mark(k, name, err); /* its epoch may be new here */
            if (status)
                break;
            status = remove_blob(k, name, &gone, err);
            *removed += (uint64_t)gone;
            name += strlen(name) + 1;
        }
        buf_deinit(&found.text);
    } while (!status && found.count > 0);
    buf_deinit(&prefix);
    return status;
}
