/*
 * fuzz_jws.c: tokens, before and behind their signature, and key sets.
 *
 * The first byte chooses: 0 the rest is a token; 1 it is a header, a line break and a
 * payload, signed here with a right key; 2 it is a JWKS file.
 *
 * Holds: a token is accepted or DENIED with the one sentence, and the same when it is
 * shown again; one that was not signed here is never accepted; what an accepted one says
 * is text without control characters, and it expires within a day; a refused key set has
 * an error that is text.
 */
#include "fuzz/fuzz.h"

#include <errno.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "vault/jws.h"
#include "vault/keyset.h"

#define NOW   INT64_C(1700000000)
#define PLAIN "\"iss\":\"i\",\"aud\":\"a\",\"sub\":\"ann\",\"exp\":1700000600"
#define H_HS  "{\"alg\":\"HS256\",\"kid\":\"hs\"}"
#define H_ED  "{\"alg\":\"EdDSA\",\"kid\":\"ed\"}"
#define EC                                                   \
    "{\"kty\":\"EC\",\"crv\":\"P-256\",\"kid\":\"es\","      \
    "\"x\":\"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU\"," \
    "\"y\":\"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0\"}"

static const char *const words[] = {"\"alg\":\"none\"",
                                    "\"kid\":\"hs\"",
                                    "\"jku\":\"",
                                    "\"crit\":[",
                                    "\"typ\":\"JWT\"",
                                    "\\u0061lg",
                                    "\"exp\":1e400",
                                    "\"nbf\":1700000060",
                                    "\"iat\":",
                                    "\"aud\":[\"a\"]",
                                    "\"roles\":[\"r\"]",
                                    "\"act\":{\"sub\":\"s\"}",
                                    "\"jti\":",
                                    "\\ud800",
                                    "\\u0000",
                                    ".",
                                    "=",
                                    "\"kty\":\"OKP\"",
                                    "\"kty\":\"RSA\"",
                                    "\"crv\":\"P-256\"",
                                    "\"use\":\"sig\"",
                                    "\"key_ops\":[",
                                    "\"e\":\"AQAB\"",
                                    "\"k\":\"",
                                    "1700000600",
                                    "253402300800",
                                    NULL};

const fuzz_about fuzz_this = {"jws", 10000, 1 << 14, words};

/* ---------------------------------------------------------------------- one file */

static const void *file_data;
static size_t file_size;

static int open_file(void *ud, int dir, const char *path, int flags)
{
    (void)ud, (void)dir, (void)path, (void)flags;
    return 7;
}

static int close_file(void *ud, int fd)
{
    (void)ud, (void)fd;
    return 0;
}

static int64_t read_file(void *ud, int fd, void *out, size_t size, uint64_t offset)
{
    (void)ud, (void)fd;
    if (offset >= file_size)
        return 0;
    if (size > file_size - offset)
        size = file_size - (size_t)offset;
    memcpy(out, (const char *)file_data + offset, size);
    return (int64_t)size;
}

static int stat_file(void *ud, int fd, os_stat_info *out)
{
    (void)ud, (void)fd;
    memset(out, 0, sizeof *out);
    out->is_regular = 1;
    out->mode = 0600;
    out->size = file_size;
    return 0;
}

static int64_t now_ms(void *ud)
{
    (void)ud;
    return NOW * 1000;
}

static uint64_t clock_us(void *ud)
{
    (void)ud;
    return 0; /* the file is never looked at again */
}

static uint32_t uid(void *ud)
{
    (void)ud;
    return 0;
}

static const os_table fake = {.open_at = open_file,
                              .close = close_file,
                              .pread = read_file,
                              .stat_fd = stat_file,
                              .now_ms = now_ms,
                              .clock_us = clock_us,
                              .uid = uid};

/* ---------------------------------------------------------------------- keys */

static unsigned char seed[32], public[32], private[64], hmac_key[32];
static char key_set[4096];

static char *base64url(const void *data, size_t size)
{
    size_t most =
        sodium_base64_encoded_len(size, sodium_base64_VARIANT_URLSAFE_NO_PADDING);
    char *out = malloc(most);
    FUZZ_CHECK(out != NULL);
    return sodium_bin2base64(out, most, data, size,
                             sodium_base64_VARIANT_URLSAFE_NO_PADDING);
}

/* The same in every run. */
static jws_verifier *verifier(void)
{
    static const jws_options options = {.keys = "jwks", .issuer = "i", .audience = "a"};
    static jws_verifier *v;
    unsigned char modulus[256];
    if (v)
        return v;
    FUZZ_CHECK(base_init() == 0);
    for (size_t i = 0; i < 32; i++)
        seed[i] = hmac_key[i] = (unsigned char)i;
    memset(modulus, 0xff, sizeof modulus);
    crypto_sign_seed_keypair(public, private, seed);
    char *x = base64url(public, 32), *k = base64url(hmac_key, 32),
         *n = base64url(modulus, 256);
    snprintf(
        key_set, sizeof key_set,
        "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"ed\",\"x\":\"%s\"},"
        "{\"kty\":\"oct\",\"kid\":\"hs\",\"k\":\"%s\"},{\"kty\":\"RSA\",\"kid\":\"rs\","
        "\"alg\":\"PS256\",\"n\":\"%s\",\"e\":\"AQAB\"}," EC "]}",
        x, k, n);
    free(x);
    free(k);
    free(n);
    file_data = key_set;
    file_size = strlen(key_set);
    FUZZ_CHECK(jws_open(&v, &options, &fake, &allocator_default, NULL) == SESSILE_OK);
    return v;
}

static char *sign(const void *header, size_t header_size, const void *payload,
                  size_t payload_size, int with_ed)
{
    char *first = base64url(header, header_size),
         *second = base64url(payload, payload_size);
    size_t most = strlen(first) + strlen(second) + 100;
    char *token = malloc(most);
    unsigned char signature[64];
    FUZZ_CHECK(token != NULL);
    int size = snprintf(token, most, "%s.%s", first, second);
    const unsigned char *text = (const unsigned char *)token;
    if (with_ed)
        crypto_sign_detached(signature, NULL, text, (size_t)size, private);
    else
        crypto_auth_hmacsha256(signature, text, (size_t)size, hmac_key);
    char *last = base64url(signature, with_ed ? 64 : 32);
    snprintf(token + size, most - (size_t)size, ".%s", last);
    free(first);
    free(second);
    free(last);
    return token;
}

/* ---------------------------------------------------------------------- what holds */

static void check_text(sessile_slice text)
{
    FUZZ_CHECK(strlen(text.data) == text.size && utf8_valid(text.data, text.size));
    for (size_t i = 0; i < text.size; i++)
        FUZZ_CHECK((unsigned char)text.data[i] >= 0x20 && text.data[i] != 0x7f);
}

static void check_claims(const jws_claims *c)
{
    FUZZ_CHECK(c->user.size > 0 && strcmp(c->issuer.data, "i") == 0);
    FUZZ_CHECK(c->expires_ms > NOW * 1000);
    FUZZ_CHECK(c->expires_ms <= NOW * 1000 + JWS_LIFE_MS + 2 * JWS_SKEW_MS);
    check_text(c->user);
    check_text(c->actor);
    check_text(c->token_id);
    for (size_t i = 0; i < c->role_count; i++)
        check_text(c->roles[i]);
    for (size_t i = 0; i < c->agent_count; i++)
        check_text(c->agents[i]);
}

static jws_reason verify(const void *token, size_t size)
{
    sessile_error err = {SESSILE_OK, ""};
    const jws_claims *claims;
    jws_refusal refusal;
    sessile_status status =
        jws_verify(verifier(), (sessile_slice){token, size}, &claims, &refusal, &err);
    FUZZ_CHECK((status == SESSILE_OK) == (claims != NULL));
    FUZZ_CHECK((status == SESSILE_OK) == (refusal.reason == JWS_ACCEPTED));
    if (claims) {
        check_claims(claims);
        FUZZ_CHECK(size <= JWS_MOST);
    } else {
        FUZZ_CHECK(status == SESSILE_DENIED && refusal.reason < JWS_REASON_COUNT);
        FUZZ_CHECK(strcmp(err.message, "the credential is not accepted") == 0);
    }
    jws_release(verifier(), claims);
    return refusal.reason;
}

/* Tokens that fuzz_seeds() signed. */
static char *signed_here[8];
static size_t signed_count;

static void judge_token(const void *token, size_t size)
{
    jws_reason reason = verify(token, size);
    size_t known = 0;
    FUZZ_CHECK(verify(token, size) == reason);
    if (reason != JWS_ACCEPTED)
        return;
    for (size_t i = 0; i < signed_count; i++)
        known +=
            strlen(signed_here[i]) == size && memcmp(signed_here[i], token, size) == 0;
    FUZZ_CHECK(known > 0);
}

static void judge_keys(const void *text, size_t size)
{
    signature_library library = {NULL, &allocator_default};
    sessile_error err = {SESSILE_OK, ""};
    keyset *set;
    (void)verifier(); /* which has the file to itself */
    file_data = text;
    file_size = size;
    sessile_status status =
        keyset_read(&set, "jwks", &library, &fake, &allocator_default, &err);
    FUZZ_CHECK(status == err.code && !status == (set != NULL));
    FUZZ_CHECK(!status || status == SESSILE_INVALID || status == SESSILE_LIMIT);
    FUZZ_CHECK(utf8_valid(err.message, strlen(err.message)));
    keyset_free(set);
    signature_library_close(&library);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    size--;
    switch (*data++ % 3) {
    case 0:
        if (signed_count == 0)
            fuzz_seeds(NULL, NULL);
        judge_token(data, size);
        break;
    case 1: {
        const uint8_t *line = memchr(data, '\n', size);
        size_t header = line ? (size_t)(line - data) : size;
        (void)verifier(); /* the keys */
        char *token =
            sign(data, header, line ? line + 1 : data, line ? size - header - 1 : 0, 0);
        jws_reason reason = verify(token, strlen(token));
        FUZZ_CHECK(verify(token, strlen(token)) == reason);
        free(token);
        break;
    }
    default:
        judge_keys(data, size);
    }
    return 0;
}

/* take NULL: only what a token must be, to be accepted, is made. */
void fuzz_seeds(fuzz_take take, void *arg)
{
    static const char *const payloads[] = {
        "{" PLAIN "}",
        "{" PLAIN ",\"roles\":[\"viewer\",\"\\u00e4\"],\"agents\":\"a b\",\"jti\":\"7\","
        "\"act\":{\"sub\":\"s\"},\"nbf\":1699999999,\"iat\":1.7e9}"};
    jws_verifier *v = verifier();
    for (size_t i = 0; v && signed_count < 4; i++) {
        const char *header = i % 2 ? H_ED : H_HS, *payload = payloads[i / 2];
        signed_here[signed_count++] =
            sign(header, strlen(header), payload, strlen(payload), i % 2);
    }
    if (!take)
        return;
    for (size_t i = 0; i < signed_count; i++)
        fuzz_give_text(take, arg, 0, signed_here[i]);
    fuzz_give_text(take, arg, 0, "eyJhbGciOiJub25lIn0.e30.");
    fuzz_give_text(take, arg, 0,
                   "eyJhbGciOiJFUzI1NiIsImtpZCI6ImVzIn0.e30."
                   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
                   "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAA");
    fuzz_give_text(take, arg, 1, H_HS "\n{" PLAIN "}");
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        char text[600];
        snprintf(text, sizeof text, "%s\n%s", H_HS, payloads[i]);
        fuzz_give_text(take, arg, 1, text);
    }
    fuzz_give_text(take, arg, 2, key_set);
    fuzz_give_text(take, arg, 2, "{\"keys\":[" EC "]}");
}
