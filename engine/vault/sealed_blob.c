/*
 * sealed_blob.c: seals bytes that are not lines: blocks of an index, a list cache.
 *
 * Owns the layout of a sealed blob: nonce ‖ ciphertext ‖ tag. In a plain store: the bytes
 * and 16 bytes of a hash of them, which finds accidents, not attacks. The additional data
 * says what a blob is for, so that no blob passes for another. It must never show a byte
 * of a blob that does not open.
 */
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

#define CHECK 16

static int reserve_blob(buf *out, size_t plain, size_t around, size_t also)
{
    return plain > SIZE_MAX / 4 || also > SIZE_MAX / 4 ||
           buf_reserve(out, plain + around + also) != 0;
}

/* Of a plain blob: a hash of its purpose and its bytes. */
static void check_of(unsigned char out[CHECK], const void *ad, size_t ad_size,
                     const void *data, size_t size)
{
    unsigned char both[32 + 32], whole[32];
    hash256(both, ad, ad_size, NULL, 0);
    hash256(both + 32, data, size, NULL, 0);
    hash256(whole, both, sizeof both, NULL, 0);
    memcpy(out, whole, CHECK);
}

static sessile_status put_plain(buf *out, const void *ad, size_t ad_size,
                                const void *data, size_t size, sessile_error *err)
{
    if (reserve_blob(out, size, CHECK, 0))
        return fail_nomem(err);
    check_of((unsigned char *)out->data + out->size + size, ad, ad_size, data, size);
    memcpy(out->data + out->size, data, size);
    out->size += size + CHECK;
    return SESSILE_OK;
}

/* Appends the bytes of a plain blob. 0 or -1. */
static int get_plain(buf *out, const void *ad, size_t ad_size, const unsigned char *blob,
                     size_t size)
{
    unsigned char check[CHECK];
    if (size < CHECK)
        return -1;
    check_of(check, ad, ad_size, blob, size - CHECK);
    if (memcmp(check, blob + size - CHECK, CHECK) != 0)
        return -1;
    buf_put(out, blob, size - CHECK);
    return out->failed ? -1 : 0;
}

/* Writes the log's commitment and the additional data behind the bytes of out. */
static unsigned char *log_ad(const logkey *k, buf *out, size_t at, const void *ad,
                             size_t ad_size)
{
    unsigned char *whole = (unsigned char *)out->data + at;
    memcpy(whole, k->commitment, VAULT_COMMITMENT);
    memcpy(whole + VAULT_COMMITMENT, ad, ad_size);
    return whole;
}

sessile_status logkey_seal_blob(const logkey *k, const void *ad, size_t ad_size,
                                const void *data, size_t size, buf *out,
                                sessile_error *err)
{
    if (k->suite == SUITE_NONE)
        return put_plain(out, ad, ad_size, data, size, err);
    size_t around = suite_nonce_size(k->suite) + VAULT_TAG;
    if (reserve_blob(out, size, around, VAULT_COMMITMENT + ad_size))
        return fail_nomem(err);
    unsigned char *whole = log_ad(k, out, out->size + size + around, ad, ad_size);
    seal_with(k, whole, VAULT_COMMITMENT + ad_size, data, size,
              (unsigned char *)out->data + out->size);
    out->size += size + around;
    return SESSILE_OK;
}

int logkey_open_blob(const logkey *k, const void *ad, size_t ad_size, const void *blob,
                     size_t size, buf *out)
{
    if (k->suite == SUITE_NONE)
        return get_plain(out, ad, ad_size, blob, size);
    size_t around = suite_nonce_size(k->suite) + VAULT_TAG;
    if (size < around || reserve_blob(out, size, 0, VAULT_COMMITMENT + ad_size))
        return -1;
    unsigned char *whole = log_ad(k, out, out->size + size, ad, ad_size);
    if (open_with(k, whole, VAULT_COMMITMENT + ad_size, blob, size,
                  out->data + out->size) != 0)
        return -1;
    out->size += size - around;
    return 0;
}

/* Blobs of the store, not of one log: under the newest master key. The first 8 bytes
 * are its epoch, little-endian. */
#define EPOCH_SIZE 8

sessile_status keyring_seal_blob(const keyring *k, const void *ad, size_t ad_size,
                                 const void *data, size_t size, buf *out,
                                 sessile_error *err)
{
    if (!keyring_sealed(k))
        return put_plain(out, ad, ad_size, data, size, err);
    const suite s = keyring_suite(k);
    size_t around = EPOCH_SIZE + suite_nonce_size(s) + VAULT_TAG;
    if (reserve_blob(out, size, around, 0))
        return fail_nomem(err);
    uint64_t epoch = keyring_epoch(k);
    unsigned char *at = (unsigned char *)out->data + out->size;
    for (size_t i = 0; i < EPOCH_SIZE; i++)
        at[i] = (unsigned char)(epoch >> (8 * i));
    seal_bytes(s, keyring_master(k, epoch), ad, ad_size, data, size, at + EPOCH_SIZE);
    out->size += size + around;
    return SESSILE_OK;
}

static uint64_t epoch_of(const void *blob, size_t size)
{
    const unsigned char *at = blob;
    uint64_t epoch = 0;
    for (size_t i = 0; i < EPOCH_SIZE && size >= EPOCH_SIZE; i++)
        epoch |= (uint64_t)at[i] << (8 * i);
    return epoch;
}

int keyring_open_blob(const keyring *k, const void *ad, size_t ad_size, const void *blob,
                      size_t size, buf *out)
{
    /* the suite of the store may be another one since */
    const suite suites[] = {keyring_suite(k), SUITE_XCHACHA20_POLY1305,
                            SUITE_AES_256_GCM};
    if (!keyring_sealed(k))
        return get_plain(out, ad, ad_size, blob, size);
    const unsigned char *key = keyring_master(k, epoch_of(blob, size));
    if (!key || reserve_blob(out, size, 0, 0))
        return -1;
    for (size_t i = 0; i < sizeof suites / sizeof *suites; i++) {
        size_t around = EPOCH_SIZE + suite_nonce_size(suites[i]) + VAULT_TAG;
        if (size >= around && suite_here(suites[i]) &&
            open_bytes(suites[i], key, ad, ad_size,
                       (const unsigned char *)blob + EPOCH_SIZE, size - EPOCH_SIZE,
                       out->data + out->size) == 0) {
            out->size += size - around;
            return 0;
        }
    }
    return -1;
}

int keyring_blob_is_old(const keyring *k, const void *blob, size_t size)
{
    return keyring_sealed(k) && epoch_of(blob, size) != keyring_epoch(k);
}
