/*
 * suite.c: the two ways to seal, guarded memory, and nothing else.
 *
 * Owns every call to an AEAD. It must never choose a nonce but at random: counters are
 * rewound by backups, forks and crashes. AES-256-GCM is used only where the CPU has it
 * (libsodium has no other); its key schedule is kept beside the key, in guarded memory.
 */
#include "vault/guarded.h"

#include <sodium.h>
#include <string.h>

#include "base/text.h"

/* ------------------------------------------------------------ guarded memory */

static void *guarded_fn(void *ud, void *ptr, size_t osize, size_t nsize)
{
    (void)ud;
    if (nsize == 0) {
        sodium_free(ptr); /* wipes */
        return NULL;
    }
    void *grown = sodium_malloc(nsize);
    if (grown && ptr) {
        memcpy(grown, ptr, osize < nsize ? osize : nsize);
        sodium_free(ptr);
    }
    return grown;
}

const allocator allocator_guarded = {guarded_fn, NULL};

/* ---------------------------------------------------------------------- suites */

const char *suite_name(suite s)
{
    switch (s) {
    case SUITE_AES_256_GCM:
        return "aes-256-gcm";
    case SUITE_XCHACHA20_POLY1305:
        return "xchacha20-poly1305";
    default:
        return "none";
    }
}

int suite_here(suite s)
{
    return s == SUITE_XCHACHA20_POLY1305 ||
           (s == SUITE_AES_256_GCM && crypto_aead_aes256gcm_is_available());
}

sessile_status suite_of(const char *name, size_t size, suite *out, sessile_error *err)
{
    static const suite all[] = {SUITE_AES_256_GCM, SUITE_XCHACHA20_POLY1305};
    *out = SUITE_NONE;
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        const char *known = suite_name(all[i]);
        if (strlen(known) == size && memcmp(known, name, size) == 0) {
            if (!suite_here(all[i])) {
                return fail(err, SESSILE_UNSUPPORTED,
                            "this machine's CPU lacks what the suite %s needs", known);
            }
            *out = all[i];
            return SESSILE_OK;
        }
    }
    return fail(err, SESSILE_UNSUPPORTED,
                "the suite \"%.*s\" is not known here: use aes-256-gcm or "
                "xchacha20-poly1305",
                (int)(size < 40 ? size : 40), name);
}

size_t suite_nonce_size(suite s)
{
    switch (s) {
    case SUITE_AES_256_GCM:
        return crypto_aead_aes256gcm_NPUBBYTES;
    case SUITE_XCHACHA20_POLY1305:
        return crypto_aead_xchacha20poly1305_ietf_NPUBBYTES;
    default:
        return 0;
    }
}

/* ---------------------------------------------------------------------- raw keys */

_Static_assert(crypto_aead_aes256gcm_ABYTES == VAULT_TAG, "tag");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_ABYTES == VAULT_TAG, "tag");
_Static_assert(crypto_aead_aes256gcm_KEYBYTES == VAULT_KEY, "key");
_Static_assert(crypto_aead_xchacha20poly1305_ietf_KEYBYTES == VAULT_KEY, "key");

void seal_bytes(suite s, const unsigned char key[VAULT_KEY], const void *ad,
                size_t ad_size, const void *plain, size_t size, unsigned char *out)
{
    size_t nonce = suite_nonce_size(s);
    random_bytes(out, nonce);
    if (s == SUITE_AES_256_GCM) {
        crypto_aead_aes256gcm_encrypt(out + nonce, NULL, plain, size, ad, ad_size, NULL,
                                      out, key);
    } else {
        crypto_aead_xchacha20poly1305_ietf_encrypt(out + nonce, NULL, plain, size, ad,
                                                   ad_size, NULL, out, key);
    }
}

int open_bytes(suite s, const unsigned char key[VAULT_KEY], const void *ad,
               size_t ad_size, const unsigned char *sealed, size_t size, void *plain)
{
    size_t nonce = suite_nonce_size(s);
    if (size < nonce + VAULT_TAG)
        return -1;
    if (s == SUITE_AES_256_GCM) {
        return crypto_aead_aes256gcm_decrypt(plain, NULL, NULL, sealed + nonce,
                                             size - nonce, ad, ad_size, sealed, key);
    }
    return crypto_aead_xchacha20poly1305_ietf_decrypt(
        plain, NULL, NULL, sealed + nonce, size - nonce, ad, ad_size, sealed, key);
}

/* ---------------------------------------------------------------------- a log's key */

/* Behind the key stands its schedule, 16 bytes aligned: sodium_malloc puts a block's end
 * at a page's end, so a size that is a multiple of 16 aligns its start. */
_Static_assert(VAULT_KEY % 16 == 0, "the schedule follows the key");
_Static_assert(sizeof(crypto_aead_aes256gcm_state) % 16 == 0, "the schedule is aligned");

unsigned char *datakey_new(suite s)
{
    size_t size = VAULT_KEY;
    if (s == SUITE_AES_256_GCM)
        size += sizeof(crypto_aead_aes256gcm_state);
    unsigned char *key = sodium_malloc(size);
    if (key)
        memset(key, 0, size);
    return key;
}

static crypto_aead_aes256gcm_state *schedule(unsigned char *key)
{
    return (crypto_aead_aes256gcm_state *)(void *)(key + VAULT_KEY);
}

void datakey_prepare(suite s, unsigned char *key)
{
    if (s == SUITE_AES_256_GCM)
        crypto_aead_aes256gcm_beforenm(schedule(key), key);
}

void seal_with(const logkey *k, const void *ad, size_t ad_size, const void *plain,
               size_t size, unsigned char *out)
{
    if (k->suite != SUITE_AES_256_GCM) {
        seal_bytes(k->suite, k->key, ad, ad_size, plain, size, out);
        return;
    }
    size_t nonce = suite_nonce_size(k->suite);
    random_bytes(out, nonce);
    crypto_aead_aes256gcm_encrypt_afternm(out + nonce, NULL, plain, size, ad, ad_size,
                                          NULL, out, schedule(k->key));
}

int open_with(const logkey *k, const void *ad, size_t ad_size,
              const unsigned char *sealed, size_t size, void *plain)
{
    size_t nonce = suite_nonce_size(k->suite);
    if (k->suite != SUITE_AES_256_GCM)
        return open_bytes(k->suite, k->key, ad, ad_size, sealed, size, plain);
    if (size < nonce + VAULT_TAG)
        return -1;
    return crypto_aead_aes256gcm_decrypt_afternm(plain, NULL, NULL, sealed + nonce,
                                                 size - nonce, ad, ad_size, sealed,
                                                 schedule(k->key));
}
