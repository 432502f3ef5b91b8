/*
 * user.c: the secrets of users, which wrap the data keys of their sessions.
 *
 * Owns the blobs user-HASH-EPOCH, one line of JSON each:
 *
 *   {"sessile_user":1,"epoch":N,"s":"B"}
 *
 * B = nonce ‖ XChaCha20-Poly1305(master key of epoch N; 32 random bytes), additional data
 * = the blob's name ‖ the line before B. Removing a user's blobs forgets that user:
 * nothing else holds those bytes. So a secret must never be anywhere but in its blob and,
 * for the duration of one call, in guarded memory; and a blob is never copied or
 * replaced, so that no crash leaves a copy under a name that nobody looks for.
 *
 * No opened secret is kept: another process may have forgotten the user, and the next
 * open must see it. Reading and opening the blob is a small part of opening a session.
 *
 * Also owns the blobs forgotten-HASH-EPOCH, the markers of forgotten users. A secret that
 * is only missing may have lost its name to damage; the marker is the evidence that it
 * was removed on purpose. The marker is written before the secret is removed.
 *
 * Each epoch has its own secret: one that was read with an old master key, from an old
 * copy of the blob, opens nothing that was sealed in a newer epoch.
 */
#include <sodium.h>
#include <string.h>

#include "base/map.h"
#include "base/alloc.h"
#include "base/text.h"
#include "vault/ring.h"

#define OUTER     SUITE_XCHACHA20_POLY1305
#define TEXT_SIZE 256

#define MARKER "{\"sessile_forgotten\":1}\n"

/* user-HASH-EPOCH */
static void blob_name(const char *user, uint64_t epoch, buf *out)
{
    buf_puts(out, user);
    buf_puts(out, "-");
    buf_put_u64(out, epoch);
}

/* The line before its base64. */
static void put_head(buf *out, uint64_t epoch)
{
    buf_puts(out, "{\"sessile_user\":1,\"epoch\":");
    buf_put_u64(out, epoch);
    buf_puts(out, ",\"s\":\"");
}

/* What is authenticated beside the secret: the name, then the head. */
static sessile_status put_ad(buf *out, const char *user, uint64_t epoch, size_t *head,
                             sessile_error *err)
{
    blob_name(user, epoch, out);
    *head = out->size;
    put_head(out, epoch);
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

static sessile_status fail_blob(const char *name, sessile_error *err)
{
    return fail(
        err, SESSILE_DAMAGED,
        "the blob %s, a user's secret, is not what was written: bring back a copy "
        "of it",
        name);
}

static sessile_status open_blob(const char *user, uint64_t epoch,
                                const unsigned char *master_key, const char *blob,
                                size_t size, unsigned char out[VAULT_KEY],
                                const allocator *a, sessile_error *err)
{
    unsigned char raw[64 + VAULT_KEY + VAULT_TAG];
    size_t head, raw_size = suite_nonce_size(OUTER) + VAULT_KEY + VAULT_TAG;
    size_t text_size = base64_size(raw_size);
    buf ad;
    buf_init(&ad, a);
    sessile_status status = put_ad(&ad, user, epoch, &head, err);
    if (!status) {
        size_t before = ad.size - head;
        if (size != before + text_size + 3 || memcmp(blob, ad.data + head, before) != 0 ||
            memcmp(blob + size - 3, "\"}\n", 3) != 0 || text_size / 4 * 3 > sizeof raw ||
            base64_decode(raw, blob + before, text_size) != (int64_t)raw_size ||
            open_bytes(OUTER, master_key, ad.data, ad.size, raw, raw_size, out) != 0) {
            ad.data[head] = '\0';
            status = fail_blob(ad.data, err);
        }
    }
    buf_deinit(&ad);
    return status;
}

static sessile_status get_secret(const keyring *k, const char *user, uint64_t epoch,
                                 const unsigned char *master_key,
                                 unsigned char out[VAULT_KEY], sessile_error *err)
{
    buf name;
    sessile_status status = SESSILE_OK;
    buf_init(&name, k->alloc);
    blob_name(user, epoch, &name);
    if (name.failed)
        status = fail_nomem(err);
    /* Twice: one that is just being removed is read half overwritten. */
    for (int tries = 0; !status; tries++) {
        char *blob;
        size_t size;
        status = k->backend->blob_get(k->self, name.data, &blob, &size, err);
        if (status)
            break;
        status = open_blob(user, epoch, master_key, blob, size, out, k->alloc, err);
        host_free(blob);
        if (status != SESSILE_DAMAGED || tries > 0)
            break;
        error_clear(err);
        status = SESSILE_OK;
    }
    buf_deinit(&name);
    return status;
}

/* Draws a secret and puts it, if there is none. EXISTS. */
static sessile_status put_secret(const keyring *k, const char *user, uint64_t epoch,
                                 const unsigned char *master_key,
                                 unsigned char out[VAULT_KEY], sessile_error *err)
{
    unsigned char raw[64 + VAULT_KEY + VAULT_TAG];
    size_t head, raw_size = suite_nonce_size(OUTER) + VAULT_KEY + VAULT_TAG;
    buf ad, text;
    buf_init(&ad, k->alloc);
    buf_init(&text, k->alloc);
    sessile_status status = put_ad(&ad, user, epoch, &head, err);
    if (!status) {
        random_bytes(out, VAULT_KEY);
        seal_bytes(OUTER, master_key, ad.data, ad.size, out, VAULT_KEY, raw);
        put_head(&text, epoch);
        base64_put(&text, raw, raw_size);
        buf_puts(&text, "\"}\n");
        ad.data[head] = '\0';
        status = text.failed ? fail_nomem(err)
                             : k->backend->blob_put_new(k->self, ad.data, text.data,
                                                        text.size, err);
    }
    buf_deinit(&ad);
    buf_deinit(&text);
    return status;
}

/* One that somebody else put may not have its name on the device yet. */
static sessile_status settle(const keyring *k, const char *user, uint64_t epoch,
                             sessile_error *err)
{
    buf name;
    sessile_status status = SESSILE_OK;
    if (!k->backend->blob_settle)
        return SESSILE_OK;
    buf_init(&name, k->alloc);
    blob_name(user, epoch, &name);
    status =
        name.failed ? fail_nomem(err) : k->backend->blob_settle(k->self, name.data, err);
    buf_deinit(&name);
    return status;
}

/* ------------------------------------------------------------------------- markers */

/* The marker of the secret in the blob user-HASH-EPOCH. */
static void marker_name(const char *secret, buf *out)
{
    buf_puts(out, FORGOTTEN_PREFIX);
    buf_puts(out, secret + sizeof USER_PREFIX - 1);
}

/* Durable on return, whoever put it. */
static sessile_status mark(const keyring *k, const char *secret, sessile_error *err)
{
    buf name;
    sessile_status status;
    buf_init(&name, k->alloc);
    marker_name(secret, &name);
    status = name.failed ? fail_nomem(err)
                         : k->backend->blob_put_new(k->self, name.data, MARKER,
                                                    sizeof MARKER - 1, err);
    if (status == SESSILE_EXISTS) {
        error_clear(err);
        status = k->backend->blob_settle
                     ? k->backend->blob_settle(k->self, name.data, err)
                     : SESSILE_OK;
    }
    buf_deinit(&name);
    return status;
}

static sessile_status unmark(const keyring *k, const char *user, uint64_t epoch,
                             sessile_error *err)
{
    buf secret, name;
    sessile_status status;
    if (!k->backend->blob_remove)
        return SESSILE_OK; /* nobody was forgotten there */
    buf_init(&secret, k->alloc);
    buf_init(&name, k->alloc);
    blob_name(user, epoch, &secret);
    if (!secret.failed)
        marker_name(secret.data, &name);
    status = secret.failed || name.failed
                 ? fail_nomem(err)
                 : k->backend->blob_remove(k->self, name.data, err);
    if (status == SESSILE_NOTFOUND) {
        error_clear(err);
        status = SESSILE_OK;
    }
    buf_deinit(&secret);
    buf_deinit(&name);
    return status;
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

/* Whether a secret that is not there was removed on purpose: by keyring_forget(), or by
 * keyring_drop_users() with its epoch, which no log that opens has then. -1: unknown. */
static int is_on_purpose(const keyring *k, uint64_t epoch, const char *marker,
                         sessile_error *err)
{
    if (epoch > 0 && epoch < keyring_epoch(k) && !keyring_has(k, epoch))
        return 1;
    return is_there(k, marker, err);
}

/* The secret of a log is not there: SEALED if that was on purpose, else DAMAGED. */
static sessile_status fail_gone(const keyring *k, const char *user, uint64_t epoch,
                                sessile_error *err)
{
    buf secret, name;
    sessile_status status;
    buf_init(&secret, k->alloc);
    buf_init(&name, k->alloc);
    blob_name(user, epoch, &secret);
    if (!secret.failed)
        marker_name(secret.data, &name);
    error_clear(err);
    if (secret.failed || name.failed) {
        status = fail_nomem(err);
    } else {
        sessile_error why = {SESSILE_OK, ""};
        int marked = is_on_purpose(k, epoch, name.data, &why);
        status = marked < 0   ? fail(err, why.code, "%s", why.message)
                 : marked > 0 ? user_fail_forgotten(err)
                              : fail(err, SESSILE_DAMAGED,
                                     "the blob %s, a user's secret, is missing, and "
                                     "nothing records that the user was forgotten: bring "
                                     "back a copy of it, or forget the user again",
                                     secret.data);
    }
    buf_deinit(&secret);
    buf_deinit(&name);
    return status;
}

sessile_status user_secret_open(const keyring *k, const char *user, uint64_t epoch,
                                const unsigned char *master_key,
                                unsigned char out[VAULT_KEY], sessile_error *err)
{
    sessile_status status = get_secret(k, user, epoch, master_key, out, err);
    return status == SESSILE_NOTFOUND ? fail_gone(k, user, epoch, err) : status;
}

sessile_status user_fail_forgotten(sessile_error *err)
{
    return fail(err, SESSILE_SEALED,
                "the secret of this user was forgotten: the session cannot be read any "
                "more");
}

int keyring_forgot(const keyring *k, const logkey_about *log, sessile_error *err)
{
    buf secret, name;
    int there, marked = 0;
    if (log->user[0] == '\0' || !k->backend || log->epoch > keyring_epoch(k))
        return 0;
    buf_init(&secret, k->alloc);
    buf_init(&name, k->alloc);
    blob_name(log->user, log->epoch, &secret);
    if (!secret.failed)
        marker_name(secret.data, &name);
    if (secret.failed || name.failed) {
        fail_nomem(err);
        there = -1;
    } else {
        there = is_there(k, secret.data, err);
        if (there == 0)
            marked = is_on_purpose(k, log->epoch, name.data, err);
    }
    buf_deinit(&secret);
    buf_deinit(&name);
    return there < 0 ? -1 : marked;
}

sessile_status user_secret_make(const keyring *k, const char *user, uint64_t epoch,
                                const unsigned char *master_key,
                                unsigned char out[VAULT_KEY], sessile_error *err)
{
    for (int tries = 0;; tries++) {
        sessile_status status = get_secret(k, user, epoch, master_key, out, err);
        if (!status)
            return settle(k, user, epoch, err);
        if (status != SESSILE_NOTFOUND)
            return status;
        error_clear(err);
        /* Before, so that no crash leaves a marker beside a secret in use; and after,
         * for one that was put meanwhile. */
        status = unmark(k, user, epoch, err);
        if (!status)
            status = put_secret(k, user, epoch, master_key, out, err);
        if (!status)
            return unmark(k, user, epoch, err);
        if (status != SESSILE_EXISTS || tries > 0)
            return status;
        error_clear(err); /* somebody else was first: theirs is as good */
    }
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
    for (size_t i = 0; i < count && i < known && !status; i++) {
        buf secret;
        buf_init(&secret, k->alloc);
        blob_name(user, epochs[i], &secret);
        status = secret.failed ? fail_nomem(err) : mark(k, secret.data, err);
        buf_deinit(&secret);
    }
    mem_free(k->alloc, epochs, count * sizeof *epochs);
    return status;
}

sessile_status keyring_forget(keyring *k, const char *user, uint64_t *removed,
                              sessile_error *err)
{
    blob_names found;
    sessile_status status;
    buf prefix;
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
    /* Until there are none: a log of this user that is being resealed may bring a
     * new secret with it, and takes the marker away. */
    do {
        status = mark_epochs(k, user, err);
        if (status)
            break;
        status = blob_names_find(&found, k->backend, k->self, prefix.data, k->alloc, err);
        const char *name = found.text.data;
        for (size_t i = 0; i < found.count && !status; i++) {
            status = mark(k, name, err); /* its epoch may be new here */
            if (status)
                break;
            status = k->backend->blob_remove(k->self, name, err);
            *removed += status == SESSILE_OK;
            if (status == SESSILE_NOTFOUND) {
                error_clear(err); /* somebody else does the same */
                status = SESSILE_OK;
            }
            name += strlen(name) + 1;
        }
        buf_deinit(&found.text);
    } while (!status && found.count > 0);
    buf_deinit(&prefix);
    return status;
}

/* The epoch that a blob's name ends with; 0: it has none. */
static uint64_t epoch_of(const char *name)
{
    const char *at = strrchr(name, '-');
    uint64_t n = 0;
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9' && n <= UINT32_MAX; at++)
        n = n * 10 + (uint64_t)(*at - '0');
    return *at == '\0' && n <= UINT32_MAX ? n : 0;
}

sessile_status keyring_drop_users(keyring *k, sessile_error *err)
{
    blob_names found;
    sessile_status status = keyring_refresh(k, err);
    if (!status) {
        status = blob_names_find(&found, k->backend, k->self, USER_PREFIX, k->alloc, err);
        const char *name = found.text.data;
        for (size_t i = 0; i < found.count && !status; i++) {
            uint64_t epoch = epoch_of(name);
            if (epoch != 0 && !keyring_has(k, epoch) && epoch < keyring_epoch(k)) {
                status = k->backend->blob_remove(k->self, name, err);
                if (status == SESSILE_NOTFOUND) {
                    error_clear(err);
                    status = SESSILE_OK;
                }
            }
            name += strlen(name) + 1;
        }
        buf_deinit(&found.text);
    }
    return status;
}

sessile_status keyring_users(const keyring *k, uint64_t *count, sessile_error *err)
{
    blob_names found;
    map users; /* by the hash of the name without its epoch */
    uint32_t there;
    *count = 0;
    if (!k->sealed || !k->backend)
        return SESSILE_OK;
    map_init(&users, k->alloc);
    sessile_status status =
        blob_names_find(&found, k->backend, k->self, USER_PREFIX, k->alloc, err);
    const char *name = found.text.data;
    for (size_t i = 0; i < found.count && !status; i++) {
        if (epoch_of(name) != 0) {
            uint64_t user = hash64(name, (size_t)(strrchr(name, '-') - name));
            if (!map_get(&users, user, &there)) {
                *count += 1;
                if (map_put(&users, user, 1) != 0)
                    status = fail_nomem(err);
            }
        }
        name += strlen(name) + 1;
    }
    map_deinit(&users);
    buf_deinit(&found.text);
    return status;
}
