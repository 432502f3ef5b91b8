/*
 * signer.h: signs tokens as an identity provider does, and as an attacker would like to.
 *
 * It is written for tests and shares nothing with the engine's verifier but libsodium and
 * libcrypto, which it loads. Keys are new in each process. Results are for free().
 */
#ifndef SUPPORT_SIGNER_H
#define SUPPORT_SIGNER_H

#include <stddef.h>

typedef enum signer_key {
    SIGNER_ED25519, /* kid "ed" */
    SIGNER_P256,    /* kid "es" */
    SIGNER_RSA,     /* kid "rs", 2048 bits */
    SIGNER_PSS,     /* kid "ps", the same key */
    SIGNER_SECRET,  /* kid "hs", 32 bytes */
    SIGNER_RSA1024, /* kid "weak" */
    SIGNER_OTHER,   /* kid "ed2", another Ed25519 */
    SIGNER_KEYS
} signer_key;

typedef struct signer signer;
signer *signer_new(void);
void signer_free(signer *s);

/* "EdDSA", "ES256", …: the algorithm of a key; its kid. */
const char *signer_algorithm(signer_key key);
const char *signer_kid(signer_key key);
/* The key as a JWK, with alg and kid; `private`: with a "d". */
char *signer_jwk(const signer *s, signer_key key, int is_private);
/* {"keys":[…]} of these keys; ends with SIGNER_KEYS. */
char *signer_jwks(const signer *s, const signer_key *keys);

/* BASE64URL(header) "." BASE64URL(payload) "." signature by that key, whatever they say.
 */
char *signer_token(const signer *s, signer_key key, const char *header,
                   const char *payload);
/* The salt of SIGNER_PSS from now on, in bytes; -1: 32, as PS256 has it. */
void signer_set_salt(signer *s, int size);
/* The same with a signature of the caller's. */
char *signer_forge(const char *header, const char *payload, const void *signature,
                   size_t size);
/* HMAC with any bytes as the secret. */
char *signer_token_hmac(const void *secret, size_t size, const char *header,
                        const char *payload);
char *signer_base64url(const void *data, size_t size);
/* n of the RSA key, as 256 bytes. */
const unsigned char *signer_modulus(const signer *s);

/* What OpenSSL alone takes for a signature: initializing and verifying. It is prepared
 * for the token (signature decoded, as DER for ES256) and returns 1 when it is right. */
typedef struct signer_floor signer_floor;
signer_floor *signer_floor_new(const signer *s, signer_key key, const char *token);
int signer_floor_verify(const signer_floor *f);
void signer_floor_free(signer_floor *f);

#endif
