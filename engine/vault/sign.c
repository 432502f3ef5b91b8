/*
 * sign.c: Ed25519 keys of seeds that evolve.
 *
 * Owns the derivation of a key, and of the next seed. A secret key exists in guarded
 * memory for the time of one call only.
 */
#include "vault/sign.h"

#include <sodium.h>
#include <string.h>

#include "base/text.h"
#include "base/wire.h"
#include "vault/guarded.h"

static const char evolve_name[] = "sessile audit evolve";

unsigned char *seed_new(void)
{
    return sodium_malloc(SIGN_SEED);
}

void seed_free(unsigned char *seed)
{
    sodium_free(seed);
}

void sign_draw(unsigned char seed[SIGN_SEED])
{
    random_bytes(seed, SIGN_SEED);
}

void sign_evolve(unsigned char seed[SIGN_SEED])
{
    unsigned char next[SIGN_SEED];
    hash256(next, evolve_name, sizeof evolve_name - 1, seed, SIGN_SEED);
    memcpy(seed, next, SIGN_SEED);
    sodium_memzero(next, sizeof next);
}

void sign_public(const unsigned char seed[SIGN_SEED], unsigned char out[SIGN_PUBLIC])
{
    unsigned char secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(out, secret, seed);
    sodium_memzero(secret, sizeof secret);
}

void sign_make(const unsigned char seed[SIGN_SEED], const void *data, size_t size,
               unsigned char out[SIGN_BYTES])
{
    unsigned char key[SIGN_PUBLIC], secret[crypto_sign_SECRETKEYBYTES];
    crypto_sign_seed_keypair(key, secret, seed);
    crypto_sign_detached(out, NULL, data, size, secret);
    sodium_memzero(secret, sizeof secret);
}

int sign_holds(const unsigned char key[SIGN_PUBLIC], const void *data, size_t size,
               const unsigned char signature[SIGN_BYTES])
{
    return crypto_sign_verify_detached(signature, data, size, key) == 0;
}

/* ------------------------------------------------------------------ blobs */

#define PAYLOAD (8 + SIGN_SEED)

sessile_status seed_put(const keyring *k, const char *name, uint64_t number,
                        const unsigned char seed[SIGN_SEED], buf *out, sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    const unsigned char *master_key;
    uint64_t epoch;
    suite kind;
    buf plain;

    if (keyring_sealed(k)) /* the newest, and durable: nothing else opens the seed */
        status = keyring_current(k, &kind, &epoch, &master_key, err);
    if (status)
        return status;
    buf_init(&plain, &allocator_guarded);
    wire_put_u64(&plain, number);
    buf_put(&plain, seed, SIGN_SEED);
    status = plain.failed ? fail_nomem(err)
                          : keyring_seal_blob(k, name, strlen(name), plain.data,
                                              plain.size, out, err);
    buf_wipe(&plain);
    return status;
}

sessile_status seed_open(const keyring *k, const char *name, const void *blob,
                         size_t size, uint64_t *number, unsigned char seed[SIGN_SEED],
                         sessile_error *err)
{
    sessile_status status = SESSILE_OK;
    buf plain;
    wire w;

    buf_init(&plain, &allocator_guarded);
    if (keyring_open_blob(k, name, strlen(name), blob, size, &plain)) {
        /* another process may have rotated the keys */
        status = plain.failed ? fail_nomem(err) : keyring_refresh(k, err);
        if (!status && keyring_open_blob(k, name, strlen(name), blob, size, &plain))
            status = fail(err, SESSILE_SEALED,
                          "the seed %s does not open: its key was dropped, or it is "
                          "damaged",
                          name);
    }
    if (!status && plain.size != PAYLOAD)
        status = fail(err, SESSILE_SEALED, "the seed %s is not what was written", name);
    if (!status) {
        wire_init(&w, plain.data, plain.size);
        *number = wire_u64(&w);
        memcpy(seed, plain.data + 8, SIGN_SEED);
    }
    buf_wipe(&plain);
    return status;
}
