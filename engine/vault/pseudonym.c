/*
 * pseudonym.c: names for users that only their own secrets turn back into names.
 *
 * Owns the two things that an audit keeps of a user: "u_" and a hash under the user's
 * secret, and the name sealed with that secret. When the user is forgotten, the first
 * stays what it is, a word that means nothing, and nothing opens the second.
 */
#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "vault/ring.h"

static const char hash_name[] = "sessile audit user";
#define NAME_SUITE SUITE_XCHACHA20_POLY1305
enum { SHOWN = 20 }; /* bytes of the hash: 32 letters */

/* "u_" and the hash under a key. */
static void print(char out[PSEUDONYM_SIZE], const unsigned char key[VAULT_KEY],
                  sessile_slice user)
{
    unsigned char inner[32], hash[32];
    hash256(inner, user.data, user.size, hash_name, sizeof hash_name - 1);
    hash256(hash, inner, sizeof inner, key, VAULT_KEY);
    out[0] = 'u';
    out[1] = '_';
    base32_encode(out + 2, hash, SHOWN);
    sodium_memzero(hash, sizeof hash);
}

sessile_status pseudonym_make(const keyring *k, sessile_slice user,
                              char out[PSEUDONYM_SIZE], char secret_name[NAME_SIZE],
                              buf *sealed, sessile_error *err)
{
    const unsigned char *master_key;
    unsigned char *secret;
    char name[NAME_SIZE];
    uint64_t epoch;
    suite kind;
    sessile_status status;
    keyring_user_name(k, user, name);
    secret_name[0] = '\0';
    if (name[0] == '\0') { /* a plain store: users have no secrets */
        print(out, keyring_name_key(k), user);
        return SESSILE_OK;
    }
    status = keyring_current(k, &kind, &epoch, &master_key, err);
    if (status)
        return status;
    secret = sodium_malloc(VAULT_KEY);
    if (!secret)
        return fail_nomem(err);
    status = user_secret_make(k, name, epoch, master_key, secret, err);
    size_t size = suite_nonce_size(NAME_SUITE) + user.size + VAULT_TAG;
    buf box, blob;
    buf_init(&box, k->alloc);
    buf_init(&blob, k->alloc);
    if (!status) {
        user_blob_name(name, epoch, &blob);
        if (buf_reserve(&box, size) || blob.failed || blob.size >= NAME_SIZE)
            status = fail_nomem(err);
    }
    if (!status) {
        print(out, secret, user);
        memcpy(secret_name, blob.data, blob.size + 1);
        seal_bytes(NAME_SUITE, secret, out, strlen(out), user.data, user.size,
                   (unsigned char *)box.data);
        base64_put(sealed, box.data, size);
        if (sealed->failed)
            status = fail_nomem(err);
    }
    sodium_free(secret);
    buf_deinit(&box);
    buf_deinit(&blob);
    return status;
}

sessile_status pseudonym_find(const keyring *k, sessile_slice user,
                              char (*out)[PSEUDONYM_SIZE], size_t room, size_t *count,
                              sessile_error *err)
{
    enum { EPOCHS = 64 };
    uint64_t epochs[EPOCHS];
    unsigned char *secret;
    char name[NAME_SIZE];
    size_t n;
    sessile_status status = SESSILE_OK;
    *count = 0;
    keyring_user_name(k, user, name);
    if (name[0] == '\0') {
        if (room)
            print(out[(*count)++], keyring_name_key(k), user);
        return SESSILE_OK;
    }
    secret = sodium_malloc(VAULT_KEY);
    if (!secret)
        return fail_nomem(err);
    n = keyring_epochs(k, epochs, EPOCHS);
    for (size_t i = 0; !status && i < n && i < EPOCHS && *count < room; i++) {
        const unsigned char *master_key = keyring_master(k, epochs[i]);
        int again;
        if (!master_key)
            continue;
        status = user_secret_open(k, name, epochs[i], master_key, secret, &again, err);
        if (!status)
            print(out[(*count)++], secret, user);
        if (status == SESSILE_SEALED || status == SESSILE_DAMAGED) {
            error_clear(err); /* none, or it was forgotten */
            status = SESSILE_OK;
        }
    }
    sodium_free(secret);
    return status;
}

void pseudonym_under_name_key(const keyring *k, sessile_slice user,
                              char out[PSEUDONYM_SIZE])
{
    print(out, keyring_name_key(k), user);
    out[0] = 'o';
}

sessile_status pseudonym_open(const keyring *k, const char *pseudonym,
                              const char *secret_name, sessile_slice sealed, buf *out,
                              sessile_error *err)
{
    const uint64_t epoch = user_blob_epoch(secret_name);
    const char *dash = strrchr(secret_name, '-');
    const unsigned char *master_key;
    unsigned char *secret;
    char name[NAME_SIZE];
    int again;
    sessile_status status = SESSILE_OK;
    if (epoch == 0 || strlen(secret_name) >= NAME_SIZE)
        return fail(err, SESSILE_DAMAGED, "it does not say whose secret seals the name");
    memcpy(name, secret_name, (size_t)(dash - secret_name));
    name[dash - secret_name] = '\0';
    master_key = keyring_master_now(k, epoch, err);
    if (!master_key)
        return fail(err, SESSILE_SEALED, "the key that sealed a user's name was dropped");
    secret = sodium_malloc(VAULT_KEY);
    if (!secret)
        return fail_nomem(err);
    status = user_secret_open(k, name, epoch, master_key, secret, &again, err);
    buf box;
    buf_init(&box, k->alloc);
    size_t around = suite_nonce_size(NAME_SUITE) + VAULT_TAG;
    if (!status && (buf_reserve(&box, sealed.size + 4) || buf_reserve(out, sealed.size)))
        status = fail_nomem(err);
    if (!status) {
        int64_t size = base64_decode(box.data, sealed.data, sealed.size);
        if (size < (int64_t)around ||
            open_bytes(NAME_SUITE, secret, pseudonym, strlen(pseudonym),
                       (unsigned char *)box.data, (size_t)size, out->data + out->size))
            status = fail(err, SESSILE_SEALED, "the name of %s does not open", pseudonym);
        else
            out->size += (size_t)size - around;
    }
    sodium_free(secret);
    buf_deinit(&box);
    return status;
}
