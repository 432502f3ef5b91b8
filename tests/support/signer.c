/*
 * signer.c: keys and signatures for tests of tokens. OpenSSL is loaded at run time, so
 * that the programs of other tests are not linked with it.
 */
#include "support/signer.h"

#include <dlfcn.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FUNCTIONS(X)                   \
    X(EVP_PKEY_Q_keygen)               \
    X(EVP_PKEY_new_raw_public_key)     \
    X(EVP_PKEY_get_bn_param)           \
    X(EVP_PKEY_get_octet_string_param) \
    X(EVP_PKEY_free)                   \
    X(BN_bn2binpad)                    \
    X(BN_num_bits)                     \
    X(BN_free)                         \
    X(EVP_MD_CTX_new)                  \
    X(EVP_MD_CTX_free)                 \
    X(EVP_DigestSignInit_ex)           \
    X(EVP_DigestSign)                  \
    X(EVP_DigestVerifyInit_ex)         \
    X(EVP_DigestVerify)                \
    X(EVP_PKEY_CTX_set_rsa_padding)    \
    X(EVP_PKEY_CTX_set_rsa_pss_saltlen)

static struct {
#define FIELD(name) __typeof__(&(name)) name;
    FUNCTIONS(FIELD)
#undef FIELD
} ssl;

struct signer {
    EVP_PKEY *p256, *rsa, *rsa1024;
    unsigned char public[2][32], private[2][64]; /* Ed25519 */
    unsigned char secret[32];
    unsigned char modulus[256];
    int salt;
};

static const struct {
    const char *algorithm, *kid;
} about[SIGNER_KEYS] = {{"EdDSA", "ed"}, {"ES256", "es"}, {"RS256", "rs"},
                        {"PS256", "ps"}, {"HS256", "hs"}, {"RS256", "weak"},
                        {"EdDSA", "ed2"}};

const char *signer_algorithm(signer_key key)
{
    return about[key].algorithm;
}

const char *signer_kid(signer_key key)
{
    return about[key].kid;
}

/* Whatever goes wrong here is no failure of what is tested. */
static void need(int holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "signer: %s\n", what);
        abort();
    }
}

static void *room(size_t size)
{
    void *p = calloc(1, size + 1);
    need(p != NULL, "no memory");
    return p;
}

static void load(void)
{
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    need(library != NULL, "no libcrypto.so.3");
    const struct {
        const char *name;
        void *out;
    } functions[] = {
#define ROW(name) {#name, &ssl.name},
        FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        void *found = dlsym(library, functions[i].name);
        need(found != NULL, functions[i].name);
        memcpy(functions[i].out, &found, sizeof found);
    }
    dlclose(library);
}

signer *signer_new(void)
{
    signer *s = room(sizeof *s);
    BIGNUM *n = NULL;
    need(sodium_init() >= 0, "no libsodium");
    s->salt = RSA_PSS_SALTLEN_DIGEST;
    load();
    for (int i = 0; i < 2; i++)
        crypto_sign_keypair(s->public[i], s -> private[i]);
    randombytes_buf(s->secret, sizeof s->secret);
    s->p256 = ssl.EVP_PKEY_Q_keygen(NULL, NULL, "EC", "P-256");
    s->rsa = ssl.EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)2048);
    s->rsa1024 = ssl.EVP_PKEY_Q_keygen(NULL, NULL, "RSA", (size_t)1024);
    need(s->p256 && s->rsa && s->rsa1024, "no keys");
    need(ssl.EVP_PKEY_get_bn_param(s->rsa, OSSL_PKEY_PARAM_RSA_N, &n) == 1, "no n");
    need(ssl.BN_bn2binpad(n, s->modulus, sizeof s->modulus) == 256, "n");
    ssl.BN_free(n);
    return s;
}

void signer_free(signer *s)
{
    ssl.EVP_PKEY_free(s->p256);
    ssl.EVP_PKEY_free(s->rsa);
    ssl.EVP_PKEY_free(s->rsa1024);
    free(s);
}

void signer_set_salt(signer *s, int size)
{
    s->salt = size;
}

const unsigned char *signer_modulus(const signer *s)
{
    return s->modulus;
}

char *signer_base64url(const void *data, size_t size)
{
    size_t most =
        sodium_base64_encoded_len(size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *out = room(most);
    sodium_bin2base64(out, most, data, size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    return out;
}

/* ---------------------------------------------------------------------- keys */

static char *number_of(EVP_PKEY *key, const char *name)
{
    unsigned char bytes[1024];
    BIGNUM *n = NULL;
    need(ssl.EVP_PKEY_get_bn_param(key, name, &n) == 1, name);
    int size = (ssl.BN_num_bits(n) + 7) / 8;
    need(ssl.BN_bn2binpad(n, bytes, size) == size, name);
    ssl.BN_free(n);
    return signer_base64url(bytes, (size_t)size);
}

static EVP_PKEY *openssl_key(const signer *s, signer_key key)
{
    if (key == SIGNER_P256)
        return s->p256;
    return key == SIGNER_RSA1024 ? s->rsa1024 : s->rsa;
}

char *signer_jwk(const signer *s, signer_key key, int is_private)
{
    char *out = room(2048), *first = NULL, *second = NULL;
    EVP_PKEY *k = openssl_key(s, key);
    const char *form;
    switch (key) {
    case SIGNER_ED25519:
    case SIGNER_OTHER:
        first = signer_base64url(s->public[key == SIGNER_OTHER], 32);
        form = "{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"%s\"";
        break;
    case SIGNER_P256:
        first = number_of(k, OSSL_PKEY_PARAM_EC_PUB_X);
        second = number_of(k, OSSL_PKEY_PARAM_EC_PUB_Y);
        if (strlen(first) != 43 || strlen(second) != 43) { /* leading zeros: padded */
            unsigned char point[65];
            size_t size;
            need(ssl.EVP_PKEY_get_octet_string_param(k, OSSL_PKEY_PARAM_PUB_KEY, point,
                                                     sizeof point, &size) == 1 &&
                     size == 65,
                 "no point");
            free(first);
            free(second);
            first = signer_base64url(point + 1, 32);
            second = signer_base64url(point + 33, 32);
        }
        form = "{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"%s\",\"y\":\"%s\"";
        break;
    case SIGNER_SECRET:
        first = signer_base64url(s->secret, sizeof s->secret);
        form = "{\"kty\":\"oct\",\"k\":\"%s\"";
        break;
    default:
        first = number_of(k, OSSL_PKEY_PARAM_RSA_N);
        second = number_of(k, OSSL_PKEY_PARAM_RSA_E);
        form = "{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"";
        break;
    }
    int size = snprintf(out, 2048, form, first, second ? second : "");
    snprintf(out + size, 2048 - (size_t)size, ",\"alg\":\"%s\",\"kid\":\"%s\"%s}",
             about[key].algorithm, about[key].kid, is_private ? ",\"d\":\"AAAA\"" : "");
    free(first);
    free(second);
    return out;
}

char *signer_jwks(const signer *s, const signer_key *keys)
{
    char *out = room(2048 * (SIGNER_KEYS + 1));
    strcpy(out, "{\"keys\":[");
    for (size_t i = 0; keys[i] != SIGNER_KEYS; i++) {
        char *one = signer_jwk(s, keys[i], 0);
        if (i > 0)
            strcat(out, ",");
        strcat(out, one);
        free(one);
    }
    strcat(out, "]}");
    return out;
}

/* ---------------------------------------------------------------------- signatures */

/* An INTEGER of DER as 32 bytes. Returns what follows it. */
static const unsigned char *take_integer(unsigned char out[32], const unsigned char *at)
{
    size_t size = at[1];
    at += 2;
    for (; size > 32; size--)
        need(*at++ == 0, "a long integer");
    memset(out, 0, 32);
    memcpy(out + 32 - size, at, size);
    return at + size;
}

static int start(EVP_MD_CTX *md, EVP_PKEY *key, signer_key kind, int to_sign, int salt)
{
    EVP_PKEY_CTX *context;
    int done =
        to_sign
            ? ssl.EVP_DigestSignInit_ex(md, &context, "SHA256", NULL, NULL, key, NULL)
            : ssl.EVP_DigestVerifyInit_ex(md, &context, "SHA256", NULL, NULL, key, NULL);
    if (kind == SIGNER_PSS) {
        need(ssl.EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1,
             "PSS");
        need(ssl.EVP_PKEY_CTX_set_rsa_pss_saltlen(context, salt) == 1, "PSS");
    }
    return done;
}

static size_t sign(const signer *s, signer_key key, const char *text,
                   unsigned char out[512])
{
    const unsigned char *data = (const unsigned char *)text;
    size_t size = 512;
    if (key == SIGNER_ED25519 || key == SIGNER_OTHER) {
        crypto_sign_detached(out, NULL, data, strlen(text),
                             s->private[key == SIGNER_OTHER]);
        return crypto_sign_BYTES;
    }
    if (key == SIGNER_SECRET) {
        crypto_auth_hmacsha256(out, data, strlen(text), s->secret);
        return crypto_auth_hmacsha256_BYTES;
    }
    EVP_MD_CTX *md = ssl.EVP_MD_CTX_new();
    need(start(md, openssl_key(s, key), key, 1, s->salt) == 1, "cannot sign");
    need(ssl.EVP_DigestSign(md, out, &size, data, strlen(text)) == 1, "cannot sign");
    ssl.EVP_MD_CTX_free(md);
    if (key == SIGNER_P256) {
        unsigned char raw[64];
        take_integer(raw + 32, take_integer(raw, out + 2));
        memcpy(out, raw, sizeof raw);
        size = sizeof raw;
    }
    return size;
}

static char *join(const char *first, const char *second)
{
    char *out = room(strlen(first) + 1 + strlen(second));
    sprintf(out, "%s.%s", first, second);
    return out;
}

static char *input_of(const char *header, const char *payload)
{
    char *first = signer_base64url(header, strlen(header));
    char *second = signer_base64url(payload, strlen(payload));
    char *out = join(first, second);
    free(first);
    free(second);
    return out;
}

char *signer_forge(const char *header, const char *payload, const void *signature,
                   size_t size)
{
    char *input = input_of(header, payload), *last = signer_base64url(signature, size);
    char *out = join(input, last);
    free(input);
    free(last);
    return out;
}

char *signer_token(const signer *s, signer_key key, const char *header,
                   const char *payload)
{
    unsigned char signature[512];
    char *input = input_of(header, payload);
    size_t size = sign(s, key, input, signature);
    free(input);
    return signer_forge(header, payload, signature, size);
}

char *signer_token_hmac(const void *secret, size_t size, const char *header,
                        const char *payload)
{
    crypto_auth_hmacsha256_state state;
    unsigned char mac[32];
    char *input = input_of(header, payload);
    crypto_auth_hmacsha256_init(&state, secret, size);
    crypto_auth_hmacsha256_update(&state, (const unsigned char *)input, strlen(input));
    crypto_auth_hmacsha256_final(&state, mac);
    free(input);
    return signer_forge(header, payload, mac, sizeof mac);
}

/* ---------------------------------------------------------------------- the floor */

struct signer_floor {
    signer_key kind;
    EVP_PKEY *key;
    int is_own;
    char *input;
    unsigned char signature[512];
    size_t size;
};

signer_floor *signer_floor_new(const signer *s, signer_key key, const char *token)
{
    signer_floor *f = room(sizeof *f);
    const char *dot = strrchr(token, '.');
    f->kind = key;
    f->input = room((size_t)(dot - token));
    memcpy(f->input, token, (size_t)(dot - token));
    f->is_own = key == SIGNER_ED25519;
    f->key = f->is_own ? ssl.EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL,
                                                         s->public[0], 32)
                       : openssl_key(s, key);
    if (key == SIGNER_P256) { /* a new one, as DER */
        EVP_MD_CTX *md = ssl.EVP_MD_CTX_new();
        f->size = sizeof f->signature;
        need(start(md, f->key, key, 1, RSA_PSS_SALTLEN_DIGEST) == 1 &&
                 ssl.EVP_DigestSign(md, f->signature, &f->size,
                                    (const unsigned char *)f->input,
                                    strlen(f->input)) == 1,
             "cannot sign");
        ssl.EVP_MD_CTX_free(md);
    } else {
        f->size = sign(s, key, f->input, f->signature);
    }
    return f;
}

int signer_floor_verify(const signer_floor *f)
{
    EVP_MD_CTX *md = ssl.EVP_MD_CTX_new();
    int right =
        f->is_own ? ssl.EVP_DigestVerifyInit_ex(md, NULL, NULL, NULL, NULL, f->key, NULL)
                  : start(md, f->key, f->kind, 0, RSA_PSS_SALTLEN_DIGEST);
    right = right == 1 &&
            ssl.EVP_DigestVerify(md, f->signature, f->size,
                                 (const unsigned char *)f->input, strlen(f->input)) == 1;
    ssl.EVP_MD_CTX_free(md);
    return right;
}

void signer_floor_free(signer_floor *f)
{
    if (f->is_own)
        ssl.EVP_PKEY_free(f->key);
    free(f->input);
    free(f);
}
