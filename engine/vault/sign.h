/*
 * sign.h: signatures by keys that are used once: a seed gives a key, and the next seed.
 *
 * A seed is 32 bytes of guarded memory. sign_evolve() replaces it with a hash of itself:
 * who has it then has every later key and none before. Whoever holds a seed frees it with
 * seed_free(), which wipes it.
 */
#ifndef VAULT_SIGN_H
#define VAULT_SIGN_H

#include "vault/vault.h"

#define SIGN_SEED   32
#define SIGN_PUBLIC 32
#define SIGN_BYTES  64

/* Guarded memory of SIGN_SEED bytes, not set; NULL: none left. */
unsigned char *seed_new(void);
void seed_free(unsigned char *seed); /* NULL is ignored */

/* Random bytes. */
void sign_draw(unsigned char seed[SIGN_SEED]);
/* seed = BLAKE2b-256(key: seed; "sessile audit evolve"). */
void sign_evolve(unsigned char seed[SIGN_SEED]);
/* The public key of the Ed25519 key that the seed is. */
void sign_public(const unsigned char seed[SIGN_SEED], unsigned char out[SIGN_PUBLIC]);
void sign_make(const unsigned char seed[SIGN_SEED], const void *data, size_t size,
               unsigned char out[SIGN_BYTES]);
/* 1: it is the signature of these bytes by that key. */
int sign_holds(const unsigned char key[SIGN_PUBLIC], const void *data, size_t size,
               const unsigned char signature[SIGN_BYTES]);

/*
 * A seed and its number, as a blob: sealed with the newest master key of the store as it
 * is now, and in a plain store only checked for accidents. name: what the blob is called.
 * put appends to out, which may hold it for good. open: SEALED: it does not open.
 */
sessile_status seed_put(const keyring *k, const char *name, uint64_t number,
                        const unsigned char seed[SIGN_SEED], buf *out,
                        sessile_error *err);
sessile_status seed_open(const keyring *k, const char *name, const void *blob,
                         size_t size, uint64_t *number, unsigned char seed[SIGN_SEED],
                         sessile_error *err);

#endif
