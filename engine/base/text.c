/*
 * text.c: hex, base32, base64, random bytes and hashes.
 *
 * Owns the two libraries behind them, modp_b64 and libsodium's hashes. Must never decode
 * leniently: two texts that mean the same bytes would let a sealed line be changed
 * without anybody noticing.
 */
#include "base/text.h"

#include <pthread.h>
#include <string.h>
#include <modp_b64.h>
#include <sodium.h>

void hex_encode(char *out, const void *data, size_t size)
{
    static const char digits[] = "0123456789abcdef";
    const unsigned char *at = data;
    size_t i;
    for (i = 0; i < size; i++) {
        *out++ = digits[at[i] >> 4];
        *out++ = digits[at[i] & 15];
    }
    *out = 0;
}

/* The value of a lower-case hex digit, or -1. */
static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    return -1;
}

int hex_decode(void *out, const char *hex, size_t out_size)
{
    unsigned char *to = out;
    size_t i;
    for (i = 0; i < out_size; i++) {
        int high = hex_value(hex[2 * i]);
        int low = high < 0 ? -1 : hex_value(hex[2 * i + 1]); /* no byte past a NUL */
        if (low < 0)
            return -1;
        to[i] = (unsigned char)(high << 4 | low);
    }
    return 0;
}

void base32_encode(char *out, const void *data, size_t size)
{
    static const char digits[] = "abcdefghijklmnopqrstuvwxyz234567";
    const unsigned char *at = data;
    unsigned pending = 0, bits = 0;
    size_t i;
    for (i = 0; i < size; i++) {
        pending = (pending << 8 | at[i]) & 0xfff;
        bits += 8;
        while (bits >= 5) {
            bits -= 5;
            *out++ = digits[pending >> bits & 31];
        }
    }
    if (bits)
        *out++ = digits[pending << (5 - bits) & 31];
    *out = 0;
}

size_t base64_size(size_t raw_size)
{
    return raw_size / 3 * 4 + (raw_size % 3 ? 4 : 0);
}

void base64_encode(char *out, const void *data, size_t size)
{
    modp_b64_encode(out, data, size);
}

void base64_put(buf *out, const void *data, size_t size)
{
    if (size > PTRDIFF_MAX / 2) {
        out->failed = 1;
        return;
    }
    if (buf_reserve(out, base64_size(size)))
        return;
    /* modp answers the length without the NUL that it writes too. */
    out->size += modp_b64_encode(out->data + out->size, data, size);
}

int64_t base64_decode(void *out, const char *text, size_t size)
{
    size_t raw, tail;
    char quad[modp_b64_encode_len(3)];

    if (size == 0)
        return 0;
    if (size % 4 != 0)
        return -1;
    raw = modp_b64_decode(out, text, size);
    if (raw == (size_t)-1 || raw == 0)
        return -1;
    /* Spare bits of the last quad are ignored by modp: only the encoder's own spelling of
     * these bytes is taken. All quads before the last have no spare bits. */
    tail = raw % 3 ? raw % 3 : 3;
    modp_b64_encode(quad, (const char *)out + raw - tail, tail);
    if (base64_size(raw) != size || memcmp(quad, text + size - 4, 4) != 0)
        return -1;
    return (int64_t)raw;
}

void random_bytes(void *out, size_t size)
{
    randombytes_buf(out, size);
}

void hash256(unsigned char out[32], const void *data, size_t size, const void *key,
             size_t key_size)
{
    /* Fails only for sizes that the caller never has: a key is at most 64 bytes. */
    (void)crypto_generichash(out, 32, data, size, key, key ? key_size : 0);
}

void sha256(unsigned char out[32], const void *data, size_t size)
{
    (void)crypto_hash_sha256(out, data, size);
}

/*
 * The key of hash64: drawn once, a constant of the process from then on. Without a key a
 * model that chooses the ids of its calls could make tables slow, or two ids the same.
 */
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
    /* Newton: each step doubles the bits that are right; an odd number is its own inverse
     * in the lowest three. */
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

uint64_t hash64_lasting(const void *data, size_t size)
{
    static const unsigned char key[crypto_shorthash_KEYBYTES] = "sessile hash 1";
    unsigned char out[crypto_shorthash_BYTES];
    uint64_t hash = 0;
    crypto_shorthash(out, data, size, key);
    for (size_t i = 0; i < sizeof out; i++)
        hash |= (uint64_t)out[i] << (8 * i);
    return hash64_veil(hash);
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
