/*
 * box.c: bytes that are no lines, sealed: the blocks of an index, a list_cache.
 *
 * Owns the layout of a box: nonce ‖ ciphertext ‖ tag under a key; of a plain store the
 * bytes and 16 bytes of a hash of them, which finds accidents, not people.
 * What a box is for stands in its additional data, so that no box passes for another. It
 * must never show a byte of a box that does not open.
 */
#include <string.h>

#include "base/text.h"
#include "vault/guarded.h"

#define CHECK 16

static int grow(buf *out, size_t plain, size_t around, size_t also)
{
    return plain > SIZE_MAX / 4 || also > SIZE_MAX / 4 ||
           buf_reserve(out, plain + around + also) != 0;
}

/* Of a plain box: a hash of what it is for and what it holds. */
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
    if (grow(out, size, CHECK, 0))
        return fail_nomem(err);
    check_of((unsigned char *)out->data + out->size + size, ad, ad_size, data, size);
    memcpy(out->data + out->size, data, size);
    out->size += size + CHECK;
    return SESSILE_OK;
}

/* Appends what a plain box holds. 0 or -1. */
static int get_plain(buf *out, const void *ad, size_t ad_size, const unsigned char *box,
                     size_t size)
{
    unsigned char check[CHECK];
    if (size < CHECK)
        return -1;
    check_of(check, ad, ad_size, box, size - CHECK);
    if (memcmp(check, box + size - CHECK, CHECK) != 0)
        return -1;
    buf_put(out, box, size - CHECK);
    return out->failed ? -1 : 0;
}

/* The log's commitment and what the box is for, behind what out holds. */
static unsigned char *log_ad(const logkey *k, buf *out, size_t at, const void *ad,
                             size_t ad_size)
{
    unsigned char *whole = (unsigned char *)out->data + at;
    memcpy(whole, k->commitment, VAULT_COMMITMENT);
    memcpy(whole + VAULT_COMMITMENT, ad, ad_size);
    return whole;
}

sessile_status logkey_box(const logkey *k, const void *ad, size_t ad_size,
                          const void *data, size_t size, buf *out, sessile_error *err)
{
    if (k->suite == SUITE_NONE)
        return put_plain(out, ad, ad_size, data, size, err);
    size_t around = suite_nonce_size(k->suite) + VAULT_TAG;
    if (grow(out, size, around, VAULT_COMMITMENT + ad_size))
        return fail_nomem(err);
    unsigned char *whole = log_ad(k, out, out->size + size + around, ad, ad_size);
    seal_with(k, whole, VAULT_COMMITMENT + ad_size, data, size,
              (unsigned char *)out->data + out->size);
    out->size += size + around;
    return SESSILE_OK;
}

int logkey_unbox(const logkey *k, const void *ad, size_t ad_size, const void *box,
                 size_t size, buf *out)
{
    if (k->suite == SUITE_NONE)
        return get_plain(out, ad, ad_size, box, size);
    size_t around = suite_nonce_size(k->suite) + VAULT_TAG;
    if (size < around || grow(out, size, 0, VAULT_COMMITMENT + ad_size))
        return -1;
    unsigned char *whole = log_ad(k, out, out->size + size, ad, ad_size);
    if (open_with(k, whole, VAULT_COMMITMENT + ad_size, box, size,
                  out->data + out->size) != 0)
        return -1;
    out->size += size - around;
    return 0;
}

/* Boxes of the store, not of one log: under the newest master key, named by its epoch,
 * little-endian, in the first 8 bytes. */
#define EPOCH_SIZE 8

sessile_status keyring_box(const keyring *k, const void *ad, size_t ad_size,
                           const void *data, size_t size, buf *out, sessile_error *err)
{
    if (!keyring_sealed(k))
        return put_plain(out, ad, ad_size, data, size, err);
    const suite s = keyring_suite(k);
    size_t around = EPOCH_SIZE + suite_nonce_size(s) + VAULT_TAG;
    if (grow(out, size, around, 0))
        return fail_nomem(err);
    uint64_t epoch = keyring_epoch(k);
    unsigned char *at = (unsigned char *)out->data + out->size;
    for (size_t i = 0; i < EPOCH_SIZE; i++)
        at[i] = (unsigned char)(epoch >> (8 * i));
    seal_bytes(s, keyring_master(k, epoch), ad, ad_size, data, size, at + EPOCH_SIZE);
    out->size += size + around;
    return SESSILE_OK;
}

int keyring_unbox(const keyring *k, const void *ad, size_t ad_size, const void *box,
                  size_t size, buf *out)
{
    const unsigned char *at = box;
    if (!keyring_sealed(k))
        return get_plain(out, ad, ad_size, box, size);
    const suite s = keyring_suite(k);
    size_t around = EPOCH_SIZE + suite_nonce_size(s) + VAULT_TAG;
    uint64_t epoch = 0;
    for (size_t i = 0; i < EPOCH_SIZE && size >= around; i++)
        epoch |= (uint64_t)at[i] << (8 * i);
    const unsigned char *key = size < around ? NULL : keyring_master(k, epoch);
    if (!key || grow(out, size, 0, 0) ||
        open_bytes(s, key, ad, ad_size, at + EPOCH_SIZE, size - EPOCH_SIZE,
                   out->data + out->size) != 0)
        return -1;
    out->size += size - around;
    return 0;
}
