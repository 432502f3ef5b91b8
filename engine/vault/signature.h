/*
 * signature.h: the public keys and secrets that tokens are verified with.
 *
 * A key has exactly one algorithm, and there is no way to verify with another one.
 * EdDSA and HS256 are libsodium's; the others are OpenSSL's, whose library is loaded when
 * the first key needs it.
 */
#ifndef VAULT_SIGNATURE_H
#define VAULT_SIGNATURE_H

#include <stddef.h>

#include "base/alloc.h"
#include "base/error.h"

typedef enum signature_algorithm {
    SIGNATURE_NONE = 0, /* no algorithm of ours; nothing verifies with it */
    SIGNATURE_EDDSA,    /* Ed25519 */
    SIGNATURE_ES256,    /* ECDSA on P-256 with SHA-256 */
    SIGNATURE_RS256,    /* RSASSA-PKCS1-v1_5 with SHA-256 */
    SIGNATURE_PS256,    /* RSASSA-PSS with SHA-256 and a salt of 32 bytes */
    SIGNATURE_HS256     /* HMAC with SHA-256 */
} signature_algorithm;

/* The name in a header or a key ("ES256"), exactly so; "" for NONE. */
const char *signature_name(signature_algorithm algorithm);

/* Bytes of an HS256 secret; bits of an RSA modulus. */
enum { SECRET_LEAST = 32, SECRET_MOST = 1024, RSA_LEAST = 2048, RSA_MOST = 8192 };
/* The longest signature: of RSA_MOST bits. */
enum { SIGNATURE_MOST = RSA_MOST / 8 };

/* OpenSSL, once it was needed. Zeroed: not loaded. It must outlive its keys. */
typedef struct signature_library {
    struct openssl *openssl;
    const allocator *alloc;
} signature_library;
void signature_library_close(signature_library *library);

typedef struct signature_key {
    signature_algorithm algorithm;
    unsigned char ed25519[32];
    unsigned char *secret; /* of HS256: guarded memory */
    size_t secret_size;
    void *openssl;    /* an EVP_PKEY, for the others */
    size_t rsa_bytes; /* of the modulus: a signature has as many */
} signature_key;

/* The bytes of a key: EdDSA x; ES256 x, y; RS256 and PS256 n, e; HS256 k. */
typedef struct signature_part {
    const unsigned char *data;
    size_t size;
} signature_part;

/*
 * Makes a key: call signature_key_deinit() afterwards, also after a failure. Points that
 * are not on their curve, or of small order, are refused. INVALID: the sentence says what
 * is wrong with the parts, without "the key". UNSUPPORTED: there is no libcrypto.
 */
sessile_status signature_key_init(signature_key *key, signature_library *library,
                                  signature_algorithm algorithm, signature_part first,
                                  signature_part second, sessile_error *err);
void signature_key_deinit(signature_key *key, const signature_library *library);

/* Verifies. 0, or -1: it is not a signature of these bytes by this key. Safe in several
 * threads at the same time. */
int signature_verify(const signature_key *key, const signature_library *library,
                     const void *data, size_t size, const unsigned char *signature,
                     size_t signature_size);

#endif
