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
 * {"sessile_user":2,… is a secret that was drawn after another one of the same name had
 * been forgotten. So a log that does not open with it is one of those that were
 * forgotten, and a copy of the earlier secret is not to be kept.
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

#define OUTER SUITE_XCHACHA20_POLY1305
#define KIND  "\"sessile_user\":1"
#define AGAIN "\"sessile_user\":2" /* an earlier one of its name was forgotten */
#define TRIES 8

void user_blob_name(const char *user, uint64_t epoch, buf *out)
{
    buf_puts(out, user);
    buf_puts(out, "-");
    buf_put_u64(out, epoch);
}

uint64_t user_blob_epoch(const char *name)
{
    const char *at = strrchr(name, '-');
    uint64_t n = 0;
    for (at = at ? at + 1 : ""; *at >= '0' && *at <= '9' && n <= UINT32_MAX; at++)
        n = n * 10 + (uint64_t)(*at - '0');
    return *at == '\0' && n <= UINT32_MAX ? n : 0;
}

/* The line before its base64. */
static void put_head(buf *out, const char *kind, uint64_t epoch)
{
    buf_puts(out, "{");
    buf_puts(out, kind);
    buf_puts(out, ",\"epoch\":");
    buf_put_u64(out, epoch);
    buf_puts(out, ",\"s\":\"");
}

/* What is authenticated beside the bytes: the name, then the head. */
static sessile_status put_ad(buf *out, const char *kind, const char *name, uint64_t epoch,
                             size_t *head, sessile_error *err)
{
    buf_puts(out, name);
    *head = out->size;
    put_head(out, kind, epoch);
    return out->failed ? fail_nomem(err) : SESSILE_OK;
}

sessile_status user_line_put(buf *out, const char *kind, const char *name, uint64_t epoch,
                             const unsigned char *master_key, const void *data,
                             size_t size, sessile_error *err)
{
    unsigned char raw[USER_RAW];
    size_t head;
    buf ad;
    buf_init(&ad, out->alloc);
    sessile_status status = put_ad(&ad, kind, name, epoch, &head, err);
    if (!status) {
        seal_bytes(OUTER, master_key, ad.data, ad.size, data, size, raw);
        put_head(out, kind, epoch);
        base64_put(out, raw, suite_nonce_size(OUTER) + size + VAULT_TAG);
        buf_puts(out, "\"}\n");
        status = out->failed ? fail_nomem(err) : SESSILE_OK;
    }
    buf_deinit(&ad);
    return status;
}

sessile_status user_line_open(const char *kind, const char *name, uint64_t epoch,
                              const unsigned char *master_key, const char *blob,
                              size_t blob_size, void *out, size_t size,
                              const allocator *a, sessile_error *err)
{
    unsigned char raw[USER_RAW + 3];
    size_t head, raw_size = suite_nonce_size(OUTER) + size + VAULT_TAG;
    size_t text_size = base64_size(raw_size);
    buf ad;
    buf_init(&ad, a);
    sessile_status status = put_ad(&ad, kind, name, epoch, &head, err);
    if (!status) {
        size_t before = ad.size - head;
        if (blob_size != before + text_size + 3 ||
            memcmp(blob, ad.data + head, before) != 0 ||
            memcmp(blob + blob_size - 3, "\"}\n", 3) != 0 ||
            text_size / 4 * 3 > sizeof raw ||
            base64_decode(raw, blob + before, text_size) != (int64_t)raw_size ||
            open_bytes(OUTER, master_key, ad.data, ad.size, raw, raw_size, out) != 0)
            status = fail(err, SESSILE_DAMAGED,
                          "the blob %s, a user's secret, is not what was written: bring "
                          "back a copy of it",
                          name);
    }
    buf_deinit(&ad);
    return status;
}

/* Opens the blob of a user's secret. *again: it is of the kind AGAIN. */
static sessile_status open_secret(const char *name, uint64_t epoch,
                                  const unsigned char *master_key, const char *blob,
                                  size_t size, unsigned char out[VAULT_KEY], int *again,
                                  const allocator *a, sessile_error *err)
{
    sessile_status status =
        user_line_open(KIND, name, epoch, master_key, blob, size, out, VAULT_KEY, a, err);
    *again = 0;
    if (status == SESSILE_DAMAGED) {
        error_clear(err);
        status = user_line_open(AGAIN, name, epoch, master_key, blob, size, out,
                                VAULT_KEY, a, err);
        *again = !status;
    }
    return status;
}

static sessile_status get_secret(const keyring *k, const char *user, uint64_t epoch,
                                 const unsigned char *master_key,
                                 unsigned char out[VAULT_KEY], int *again,
                                 sessile_error *err)
{
    buf name;
    sessile_status status = SESSILE_OK;
    *again = 0;
    buf_init(&name, k->alloc);
    user_blob_name(user, epoch, &name);
    if (name.failed)
        status = fail_nomem(err);
    /* Twice: one that is just being removed is read half overwritten. */
    for (int tries = 0; !status; tries++) {
        char *blob;
        size_t size;
        status = k->backend->blob_get(k->self, name.data, &blob, &size, err);
        if (status)
            break;
        status = open_secret(name.data, epoch, master_key, blob, size, out, again,
                             k->alloc, err);
        host_free(blob);
        if (status != SESSILE_DAMAGED || tries > 0)
            break;
        error_clear(err);
        status = SESSILE_OK;
    }
    buf_deinit(&name);
    return status;
}

int keyring_secret_look(const keyring *k, const char *name, const char *blob, size_t size)
{
    uint64_t epoch = user_blob_epoch(name);
    const unsigned char *key = k->sealed ? keyring_master(k, epoch) : NULL;
    unsigned char *out = key ? sodium_malloc(VAULT_KEY) : NULL;
    int again, opens;
    if (!out)
        return -1;
    opens = !open_secret(name, epoch, key, blob, size, out, &again, k->alloc, NULL);
    sodium_free(out);
    return opens ? again : -1;
}

/* Draws a secret and puts it, if there is none. EXISTS. */
static sessile_status put_secret(const keyring *k, const char *user, uint64_t epoch,
                                 const unsigned char *master_key,
                                 unsigned char out[VAULT_KEY], sessile_error *err)
{
    sessile_error why = {0};
    int again = 0;
    buf name, text;
    buf_init(&name, k->alloc);
    buf_init(&text, k->alloc);
    user_blob_name(user, epoch, &name);
    sessile_status status = name.failed ? fail_nomem(err) : SESSILE_OK;
    if (!status)
        again = keyring_forgot_secret(k, name.data, &why);
    if (again < 0)
        status = fail(err, why.code, "%s", why.message);
    if (!status) {
        random_bytes(out, VAULT_KEY);
        status = user_line_put(&text, again ? AGAIN : KIND, name.data, epoch, master_key,
                               out, VAULT_KEY, err);
    }
    if (!status)
        status = k->backend->blob_put_new(k->self, name.data, text.data, text.size, err);
    buf_deinit(&name);
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
    user_blob_name(user, epoch, &name);
    status =
        name.failed ? fail_nomem(err) : k->backend->blob_settle(k->self, name.data, err);
    buf_deinit(&name);
    return status;
}

sessile_status user_secret_open(const keyring *k, const char *user, uint64_t epoch,
                                const unsigned char *master_key,
                                unsigned char out[VAULT_KEY], int *again,
                                sessile_error *err)
{
    sessile_status status = get_secret(k, user, epoch, master_key, out, again, err);
    return status == SESSILE_NOTFOUND ? user_fail_gone(k, user, epoch, err) : status;
}

/* After a marker was taken away: the secret must still be there, or it was forgotten
 * meanwhile, and nothing records that any more. *gone: then the marker is back. */
static sessile_status look_again(const keyring *k, const char *user, uint64_t epoch,
                                 const unsigned char *master_key,
                                 unsigned char out[VAULT_KEY], int *gone,
                                 sessile_error *err)
{
    int again;
    sessile_status status = get_secret(k, user, epoch, master_key, out, &again, err);
    *gone = status == SESSILE_NOTFOUND;
    if (!*gone)
        return status;
    error_clear(err);
    return user_mark(k, user, epoch, err);
}

sessile_status user_secret_make(const keyring *k, const char *user, uint64_t epoch,
                                const unsigned char *master_key,
                                unsigned char out[VAULT_KEY], sessile_error *err)
{
    for (int tries = 0; tries < TRIES; tries++) {
        int again, found, marked, gone = 0;
        sessile_status status = get_secret(k, user, epoch, master_key, out, &again, err);
        found = !status;
        if (status == SESSILE_NOTFOUND) {
            error_clear(err);
            status = put_secret(k, user, epoch, master_key, out, err);
        }
        if (status == SESSILE_EXISTS) {
            error_clear(err); /* somebody else was first: theirs is as good */
            continue;
        }
        /* Only now: a crash before leaves the record of what was forgotten, and whoever
         * uses this secret comes here first. */
        if (!status)
            status = user_unmark(k, user, epoch, &marked, err);
        if (!status && marked)
            status = look_again(k, user, epoch, master_key, out, &gone, err);
        if (!status && found && !gone)
            status = settle(k, user, epoch, err);
        if (status || !gone)
            return status;
    }
    return fail(err, SESSILE_BUSY,
                "the user is being forgotten, or made, by another process: try again");
}

/* ---------------------------------------------------------------------- all users */

sessile_status keyring_drop_users(keyring *k, sessile_error *err)
{
    blob_names found;
    sessile_status status = keyring_refresh(k, err);
    if (!status) {
        status = blob_names_find(&found, k->backend, k->self, USER_PREFIX, k->alloc, err);
        const char *name = found.text.data;
        for (size_t i = 0; i < found.count && !status; i++) {
            uint64_t epoch = user_blob_epoch(name);
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
        if (user_blob_epoch(name) != 0) {
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
