/*
 * hash.c: hashes, random bytes, and wiping and comparing secrets.
 *
 * Owns this folder's use of libsodium. Must never allocate: buf.c uses it to wipe.
 */
#include "base/text.h"

#include <pthread.h>
#include <string.h>
#include <sodium.h>

void random_bytes(void *out, size_t size)
{
    randombytes_buf(out, size);
}

void hash256(unsigned char out[32], const void *data, size_t size, const void *key,
             size_t key_size)
{
    /* Fails only for sizes that callers never use: a key has at most 64 bytes. */
    (void)crypto_generichash(out, 32, data, size, key, key ? key_size : 0);
}

void sha256(unsigned char out[32], const void *data, size_t size)
{
    (void)crypto_hash_sha256(out, data, size);
}

/* The key of hash64: drawn once, then constant for the process. Without a key, a model
 * that chooses the ids of its calls could make tables slow, or make two ids equal. */
static unsigned char table_key[crypto_shorthash_KEYBYTES];
static pthread_once_t table_key_once = PTHREAD_ONCE_INIT;
/* hash64_veil: (bare ^ mask) * factor, undone with the factor's inverse mod 2^64. */
static uint64_t veil_mask, veil_factor, veil_inverse;

static void draw_table_key(void)
{
    (void)base_init();
    randombytes_buf(table_key, sizeof table_key);
    randombytes_buf(&veil_mask, sizeof veil_mask);
    randombytes_buf(&veil_factor, sizeof veil_factor);
    veil_factor |= 1;
    /* Newton: each step doubles the number of correct bits. An odd number is its own
     * inverse modulo 8. */
    veil_inverse = veil_factor;
    for (int i = 0; i < 5; i++)
        veil_inverse *= 2 - veil_factor * veil_inverse;
}

uint64_t hash64(const void *data, size_t size)
{
    unsigned char out[crypto_shorthash_BYTES];
    uint64_t hash;
    pthread_once(&table_key_once, draw_table_key);
    crypto_shorthash(out, data, size, table_key);
    memcpy(&hash, out, sizeof hash);
    return hash;
}

uint64_t hash64_veil(uint64_t bare)
{
    pthread_once(&table_key_once, draw_table_key);
    return (bare ^ veil_mask) * veil_factor;
}

uint64_t hash64_bare(uint64_t lasting)
{
    pthread_once(&table_key_once, draw_table_key);
    return lasting * veil_inverse ^ veil_mask;
}

uint64_t hash64_keyed(const hash_key *key, const void *data, size_t size)
{
    unsigned char out[crypto_shorthash_BYTES];
    uint64_t hash = 0;
    crypto_shorthash(out, data, size, key->bytes);
    for (size_t i = 0; i < sizeof out; i++)
        hash |= (uint64_t)out[i] << (8 * i);
    return hash;
}

hash_key hash_key_of(const char *name, const void *secret, size_t size)
{
    unsigned char whole[32];
    hash_key key;
    hash256(whole, secret, size, name, strlen(name));
    memcpy(key.bytes, whole, sizeof key.bytes);
    return key;
}

uint64_t hash64_lasting(const void *data, size_t size)
{
    static const hash_key key = {"sessile hash 1"};
    return hash64_veil(hash64_keyed(&key, data, size));
}

void wipe(void *data, size_t size)
{
    if (size)
        sodium_memzero(data, size);
}

int same_bytes(const void *a, const void *b, size_t size)
{
    return sodium_memcmp(a, b, size) == 0;
}

int base_init(void)
{
    return sodium_init() < 0 ? -1 : 0;
}
