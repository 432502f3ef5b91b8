/*
 * signature.c: verifies with one key and the one algorithm that the key has.
 *
 * Owns the only use of OpenSSL: libcrypto is loaded when a key needs it, with a library
 * context of its own, so that neither openssl.cnf nor what a host set up for itself
 * changes what is verified. Must never choose an algorithm by what a token says, and must
 * leave nothing in the error queue of the thread, which belongs to the host.
 */
#include "vault/signature.h"

#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>
#include <openssl/rsa.h>
#include <sodium.h>
#include <string.h>

#include "base/os.h"

#define LIBRARY "libcrypto.so.3"

#define FUNCTIONS(X)                     \
    X(OSSL_LIB_CTX_new)                  \
    X(OSSL_LIB_CTX_free)                 \
    X(OSSL_PARAM_BLD_new)                \
    X(OSSL_PARAM_BLD_free)               \
    X(OSSL_PARAM_BLD_push_BN)            \
    X(OSSL_PARAM_BLD_to_param)           \
    X(OSSL_PARAM_construct_utf8_string)  \
    X(OSSL_PARAM_construct_octet_string) \
    X(OSSL_PARAM_construct_end)          \
    X(OSSL_PARAM_free)                   \
    X(BN_bin2bn)                         \
    X(BN_free)                           \
    X(ERR_set_mark)                      \
    X(ERR_pop_to_mark)                   \
    X(EVP_PKEY_CTX_new_from_name)        \
    X(EVP_PKEY_CTX_new_from_pkey)        \
    X(EVP_PKEY_CTX_free)                 \
    X(EVP_PKEY_fromdata_init)            \
    X(EVP_PKEY_fromdata)                 \
    X(EVP_PKEY_public_check)             \
    X(EVP_PKEY_free)                     \
    X(EVP_MD_CTX_new)                    \
    X(EVP_MD_CTX_free)                   \
    X(EVP_DigestVerifyInit_ex)           \
    X(EVP_DigestVerify)                  \
    X(EVP_PKEY_CTX_set_rsa_padding)      \
    X(EVP_PKEY_CTX_set_rsa_pss_saltlen)

struct openssl {
    void *library;
    OSSL_LIB_CTX *context;
#define FIELD(name) __typeof__(&(name)) name;
    FUNCTIONS(FIELD)
#undef FIELD
};

const char *signature_name(signature_algorithm algorithm)
{
    static const char *const names[] = {"", "EdDSA", "ES256", "RS256", "PS256", "HS256"};
    return names[algorithm];
}

/* ---------------------------------------------------------------------- libcrypto */

void signature_library_close(signature_library *library)
{
    struct openssl *o = library->openssl;
    if (!o)
        return;
    if (o->context)
        o->OSSL_LIB_CTX_free(o->context);
    os_library_close(o->library);
    mem_free(library->alloc, o, sizeof *o);
    library->openssl = NULL;
}

static sessile_status find_functions(struct openssl *o, sessile_error *err)
{
    const struct {
        const char *name;
        void *out;
        size_t size;
    } functions[] = {
#define ROW(name) {#name, &o->name, sizeof o->name},
        FUNCTIONS(ROW)
#undef ROW
    };
    for (size_t i = 0; i < sizeof functions / sizeof *functions; i++) {
        if (os_library_find(o->library, functions[i].name, functions[i].out,
                            functions[i].size) != 0) {
            return fail(err, SESSILE_UNSUPPORTED,
                        LIBRARY " of this machine has no %s: install OpenSSL 3",
                        functions[i].name);
        }
    }
    return SESSILE_OK;
}

/* Loads it, unless it is there. */
static sessile_status load(signature_library *library, sessile_error *err)
{
    sessile_status status;
    struct openssl *o;
    if (library->openssl)
        return SESSILE_OK;
    o = mem_zalloc(library->alloc, sizeof *o);
    if (!o)
        return fail_nomem(err);
    library->openssl = o;
    o->library = os_library_open(LIBRARY);
    if (!o->library) {
        status = fail(err, SESSILE_UNSUPPORTED,
                      "it needs OpenSSL (" LIBRARY
                      "), which is not on this machine: install libssl3");
    } else {
        status = find_functions(o, err);
    }
    if (!status) {
        o->context = o->OSSL_LIB_CTX_new();
        if (!o->context)
            status = fail_nomem(err);
    }
    if (status)
        signature_library_close(library);
    return status;
}

/* The public key of these parameters; NULL: OpenSSL refuses them. */
static EVP_PKEY *make_openssl_key(const struct openssl *o, const char *type,
                                  OSSL_PARAM *parameters)
{
    EVP_PKEY *key = NULL;
    EVP_PKEY_CTX *context = o->EVP_PKEY_CTX_new_from_name(o->context, type, NULL);
    if (!context || o->EVP_PKEY_fromdata_init(context) != 1 ||
        o->EVP_PKEY_fromdata(context, &key, EVP_PKEY_PUBLIC_KEY, parameters) != 1) {
        o->EVP_PKEY_free(key);
        key = NULL;
    }
    o->EVP_PKEY_CTX_free(context);
    return key;
}

/* ---------------------------------------------------------------------- keys */

enum { P256 = 32, P256_POINT = 1 + 2 * P256 };

static sessile_status make_p256(signature_key *key, const struct openssl *o,
                                signature_part x, signature_part y, sessile_error *err)
{
    unsigned char point[P256_POINT] = {4}; /* uncompressed */
    char group[] = "prime256v1";
    int valid = 0;
    if (x.size != P256 || y.size != P256)
        return fail(err, SESSILE_INVALID, "x and y of P-256 have 32 bytes each");
    memcpy(point + 1, x.data, P256);
    memcpy(point + 1 + P256, y.data, P256);
    OSSL_PARAM parameters[] = {
        o->OSSL_PARAM_construct_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, 0),
        o->OSSL_PARAM_construct_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point,
                                             sizeof point),
        o->OSSL_PARAM_construct_end()};
    key->openssl = make_openssl_key(o, "EC", parameters);
    if (key->openssl) {
        EVP_PKEY_CTX *check =
            o->EVP_PKEY_CTX_new_from_pkey(o->context, key->openssl, NULL);
        valid = check && o->EVP_PKEY_public_check(check) == 1;
        o->EVP_PKEY_CTX_free(check);
    }
    if (!valid)
        return fail(err, SESSILE_INVALID, "x and y are not a point of P-256");
    return SESSILE_OK;
}

static signature_part without_zeros(signature_part number)
{
    while (number.size > 0 && number.data[0] == 0) {
        number.data++;
        number.size--;
    }
    return number;
}

static size_t bits_of(signature_part number)
{
    size_t bits = number.size * 8;
    if (bits > 0)
        for (unsigned top = number.data[0]; !(top & 0x80); top <<= 1)
            bits--;
    return bits;
}

static sessile_status make_rsa(signature_key *key, const struct openssl *o,
                               signature_part n, signature_part e, sessile_error *err)
{
    OSSL_PARAM_BLD *builder;
    OSSL_PARAM *parameters = NULL;
    BIGNUM *modulus, *exponent;
    size_t bits;
    n = without_zeros(n);
    e = without_zeros(e);
    bits = bits_of(n);
    key->rsa_bytes = n.size;
    if (bits < RSA_LEAST || bits > RSA_MOST) {
        return fail(err, SESSILE_INVALID,
                    "its modulus has %zu bits: use one of %d to %d bits", bits, RSA_LEAST,
                    RSA_MOST);
    }
    if (n.data[n.size - 1] % 2 == 0)
        return fail(err, SESSILE_INVALID, "n is even, which is no modulus of RSA");
    if (bits_of(e) < 2 || bits_of(e) > 32 || e.data[e.size - 1] % 2 == 0) {
        return fail(err, SESSILE_INVALID,
                    "e is not an odd number of 2 to 32 bits, such as 65537 (AQAB)");
    }
    builder = o->OSSL_PARAM_BLD_new();
    modulus = o->BN_bin2bn(n.data, (int)n.size, NULL);
    exponent = o->BN_bin2bn(e.data, (int)e.size, NULL);
    if (builder && modulus && exponent &&
        o->OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_N, modulus) == 1 &&
        o->OSSL_PARAM_BLD_push_BN(builder, OSSL_PKEY_PARAM_RSA_E, exponent) == 1)
        parameters = o->OSSL_PARAM_BLD_to_param(builder);
    if (parameters)
        key->openssl = make_openssl_key(o, "RSA", parameters);
    o->OSSL_PARAM_free(parameters);
    o->OSSL_PARAM_BLD_free(builder);
    o->BN_free(modulus);
    o->BN_free(exponent);
    if (!parameters)
        return fail_nomem(err);
    if (!key->openssl)
        return fail(err, SESSILE_INVALID, "OpenSSL takes n and e for no RSA key");
    return SESSILE_OK;
}

static sessile_status make_secret(signature_key *key, signature_part k,
                                  sessile_error *err)
{
    if (k.size < SECRET_LEAST || k.size > SECRET_MOST) {
        return fail(err, SESSILE_INVALID,
                    "its secret has %zu bytes: use one of %d to %d random bytes", k.size,
                    SECRET_LEAST, SECRET_MOST);
    }
    key->secret = sodium_malloc(k.size);
    if (!key->secret)
        return fail_nomem(err);
    memcpy(key->secret, k.data, k.size);
    key->secret_size = k.size;
    return SESSILE_OK;
}

static sessile_status make_ed25519(signature_key *key, signature_part x,
                                   sessile_error *err)
{
    if (x.size != sizeof key->ed25519)
        return fail(err, SESSILE_INVALID, "x of Ed25519 has 32 bytes");
    if (!crypto_core_ed25519_is_valid_point(x.data)) {
        return fail(err, SESSILE_INVALID,
                    "x is not a point of Ed25519 that a key can have");
    }
    memcpy(key->ed25519, x.data, x.size);
    return SESSILE_OK;
}

sessile_status signature_key_init(signature_key *key, signature_library *library,
                                  signature_algorithm algorithm, signature_part first,
                                  signature_part second, sessile_error *err)
{
    sessile_status status;
    memset(key, 0, sizeof *key);
    switch (algorithm) {
    case SIGNATURE_EDDSA:
        status = make_ed25519(key, first, err);
        break;
    case SIGNATURE_HS256:
        status = make_secret(key, first, err);
        break;
    case SIGNATURE_ES256:
    case SIGNATURE_RS256:
    case SIGNATURE_PS256:
        status = load(library, err);
        if (status)
            break;
        library->openssl->ERR_set_mark();
        status = algorithm == SIGNATURE_ES256
                     ? make_p256(key, library->openssl, first, second, err)
                     : make_rsa(key, library->openssl, first, second, err);
        library->openssl->ERR_pop_to_mark();
        break;
    default:
        status = fail(err, SESSILE_INVALID, "it has no algorithm that is known here");
        break;
    }
    if (!status)
        key->algorithm = algorithm;
    return status;
}

void signature_key_deinit(signature_key *key, const signature_library *library)
{
    if (key->openssl)
        library->openssl->EVP_PKEY_free(key->openssl);
    sodium_free(key->secret); /* wipes */
    memset(key, 0, sizeof *key);
}

/* ---------------------------------------------------------------------- verifying */

static int verify_hs256(const signature_key *key, const void *data, size_t size,
                        const unsigned char *mac, size_t mac_size)
{
    crypto_auth_hmacsha256_state state;
    unsigned char right[crypto_auth_hmacsha256_BYTES];
    int wrong;
    if (mac_size != sizeof right)
        return -1;
    crypto_auth_hmacsha256_init(&state, key->secret, key->secret_size);
    crypto_auth_hmacsha256_update(&state, data, size);
    crypto_auth_hmacsha256_final(&state, right);
    wrong = sodium_memcmp(right, mac, sizeof right);
    sodium_memzero(&state, sizeof state);
    sodium_memzero(right, sizeof right);
    return wrong;
}

/* A positive INTEGER of DER, in its shortest form. Returns its size: 3 to 2 + 33. */
static size_t put_integer(unsigned char *out, const unsigned char number[P256])
{
    size_t zeros = 0, size;
    int is_padded;
    while (zeros < P256 - 1 && number[zeros] == 0)
        zeros++;
    size = P256 - zeros;
    is_padded = number[zeros] >> 7;
    out[0] = 2;
    out[1] = (unsigned char)(size + (size_t)is_padded);
    out[2] = 0;
    memcpy(out + 2 + is_padded, number + zeros, size);
    return 2 + out[1];
}

/* r and s as a token has them, 32 bytes each, as OpenSSL wants them. It judges what they
 * are: neither may be 0, nor as large as the order of the curve. */
static size_t put_ecdsa(unsigned char out[2 + 2 * (3 + P256)],
                        const unsigned char raw[2 * P256])
{
    size_t size = put_integer(out + 2, raw);
    size += put_integer(out + 2 + size, raw + P256);
    out[0] = 0x30;
    out[1] = (unsigned char)size;
    return 2 + size;
}

static int verify_openssl(const signature_key *key, const struct openssl *o,
                          const void *data, size_t size, const unsigned char *signature,
                          size_t signature_size)
{
    unsigned char der[2 + 2 * (3 + P256)];
    EVP_PKEY_CTX *context = NULL; /* owned by md */
    EVP_MD_CTX *md;
    int right;
    if (key->algorithm == SIGNATURE_ES256) {
        if (signature_size != 2 * P256)
            return -1;
        signature_size = put_ecdsa(der, signature);
        signature = der;
    } else if (signature_size != key->rsa_bytes) {
        /* OpenSSL takes a signature without its leading zero for the whole one. */
        return -1;
    }
    o->ERR_set_mark();
    md = o->EVP_MD_CTX_new();
    right = md && o->EVP_DigestVerifyInit_ex(md, &context, "SHA256", o->context, NULL,
                                             key->openssl, NULL) == 1;
    if (key->algorithm == SIGNATURE_PS256) {
        right = right &&
                o->EVP_PKEY_CTX_set_rsa_padding(context, RSA_PKCS1_PSS_PADDING) == 1 &&
                o->EVP_PKEY_CTX_set_rsa_pss_saltlen(context, RSA_PSS_SALTLEN_DIGEST) == 1;
    }
    right = right && o->EVP_DigestVerify(md, signature, signature_size, data, size) == 1;
    o->EVP_MD_CTX_free(md);
    o->ERR_pop_to_mark();
    return right ? 0 : -1;
}

int signature_verify(const signature_key *key, const signature_library *library,
                     const void *data, size_t size, const unsigned char *signature,
                     size_t signature_size)
{
    switch (key->algorithm) {
    case SIGNATURE_EDDSA:
        if (signature_size != crypto_sign_BYTES)
            return -1;
        return crypto_sign_verify_detached(signature, data, size, key->ed25519);
    case SIGNATURE_HS256:
        return verify_hs256(key, data, size, signature, signature_size);
    case SIGNATURE_ES256:
    case SIGNATURE_RS256:
    case SIGNATURE_PS256:
        return verify_openssl(key, library->openssl, data, size, signature,
                              signature_size);
    default:
        return -1;
    }
}
