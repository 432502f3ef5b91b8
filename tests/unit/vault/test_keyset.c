/*
 * test_keyset.c: JWKS files: whose are believed, and which keys are taken.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"
#include "support/tokens.h"

/* Ed25519 and P-256 keys of RFC 8037 and RFC 7515. */
#define ED_X      "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"
#define ED        "\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" ED_X "\""
#define EC_X      "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU"
#define EC_Y      "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"
#define EC(crv)   "\"kty\":\"EC\",\"crv\":\"" crv "\",\"x\":\"" EC_X "\",\"y\":\"" EC_Y "\""
#define K32       "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8"
#define SET(keys) "{\"keys\":[" keys "]}"

static tokens t;

static sessile_status opened(const char *text, unsigned mode, sessile_error *err)
{
    tokens_write(&t, text, mode);
    return tokens_open(&t, err);
}

/* ---------------------------------------------------------------------- whose file */

static void refused(unsigned mode, const char *text, sessile_status status,
                    const char *part)
{
    sessile_error err = {SESSILE_OK, ""};
    assert_refused(opened(text, mode, &err), status, &err, part);
    assert_says(&err, t.path);
    assert_null(t.v);
}

static void file_that_others_may_write_is_DENIED(void **state)
{
    static const unsigned modes[] = {0620, 0602, 0622, 0666, 0777};
    sessile_error err;
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        refused(modes[i], SET("{" ED "}"), SESSILE_DENIED, "chmod go-w");
    must(opened(SET("{" ED "}"), 0644, &err), &err);
    must(opened(SET("{" ED "}"), 0444, &err), &err);
}

static void secret_that_others_may_read_is_DENIED(void **state)
{
    static const unsigned modes[] = {0644, 0640, 0604, 0601};
    sessile_error err;
    (void)state;
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        refused(modes[i],
                SET("{" ED ",\"kid\":\"a\"},{\"kty\":\"oct\",\"k\":\"" K32 "\"}"),
                SESSILE_DENIED, "key 2");
    /* also one that is not used */
    refused(0644, SET("{" ED "},{\"kty\":\"oct\",\"use\":\"enc\",\"k\":\"" K32 "\"}"),
            SESSILE_DENIED, "chmod 600");
    must(opened(SET("{\"kty\":\"oct\",\"k\":\"" K32 "\"}"), 0600, &err), &err);
    must(opened(SET("{\"kty\":\"oct\",\"k\":\"" K32 "\"}"), 0400, &err), &err);
}

static void file_of_another_user_is_DENIED(void **state)
{
    sessile_error err = {SESSILE_OK, ""};
    (void)state;
    tokens_write(&t, SET("{" ED "}"), 0644);
    if (geteuid() == 0)
        assert_int_equal(chown(t.path, 12345, 0), 0);
    else
        t.uid = geteuid() + 1;
    assert_refused(tokens_open(&t, &err), SESSILE_DENIED, &err, "another user");
    t.uid = geteuid() == 0 ? 12345 : geteuid();
    must(tokens_open(&t, &err), &err);
    t.uid = geteuid();
}

static void link_or_folder_or_nothing_is_refused(void **state)
{
    char other[340];
    sessile_error err = {SESSILE_OK, ""};
    (void)state;
    tokens_write(&t, SET("{" ED "}"), 0644);
    snprintf(other, sizeof other, "%s.other", t.path);
    assert_int_equal(rename(t.path, other), 0);
    assert_int_equal(symlink(other, t.path), 0);
    assert_refused(tokens_open(&t, &err), SESSILE_DENIED, &err, "is a link");
    assert_int_equal(unlink(t.path), 0);
    assert_int_equal(unlink(other), 0);
    assert_refused(tokens_open(&t, &err), SESSILE_NOTFOUND, &err, t.path);
    assert_int_equal(mkfifo(t.path, 0600), 0);
    assert_refused(tokens_open(&t, &err), SESSILE_DENIED, &err, "regular file");
    assert_int_equal(unlink(t.path), 0);
    assert_int_equal(mkdir(t.path, 0700), 0);
    assert_refused(tokens_open(&t, &err), SESSILE_DENIED, &err, "regular file");
    assert_int_equal(rmdir(t.path), 0);
}

/* ---------------------------------------------------------------------- what it says */

static void text_that_is_no_key_set_is_INVALID(void **state)
{
    static const struct {
        const char *text, *part;
    } texts[] = {
        {"", "no JSON object"},
        {"[]", "no JSON object"},
        {"null", "no JSON object"},
        {"{\"keys\":[", "no JSON object"},
        {"-----BEGIN PUBLIC KEY-----", "no JSON object"},
        {SET("{" ED "}") SET(""), "no JSON object"},
        {"{}", "no array \"keys\""},
        {"{" ED "}", "no array \"keys\""},
        {"{\"keys\":{}}", "no array \"keys\""},
        {"{\"keys\":\"AAAA\"}", "no array \"keys\""},
        {"{\"keys\":[],\"keys\":[{" ED "}]}", "twice"},
        {SET("{" ED ",\"x\":\"" ED_X "\"}"), "twice"},
        {SET("{" ED ",\"\\u0078\":\"" ED_X "\"}"), "twice"},
        {SET(""), "no key that"},
        {SET("{" ED ",\"use\":\"enc\"}"), "no key that"},
        {SET("{\"kty\":\"RSA\",\"alg\":\"RS512\",\"n\":\"AAAA\"}"), "no key that"},
        {SET("{" ED "},{" ED ",\"kid\":\"a\"}"), "no kid"},
        {SET("{" ED ",\"kid\":\"a\"},{" ED ",\"kid\":\"\\u0061\"}"), "same kid"},
        {SET("7"), "key 1 of"},
        {SET("null"), "no object"},
        {SET("{" ED ",\"kid\":\"a\"},[]"), "key 2 of"},
        {SET("{\"x\":\"" ED_X "\"}"), "no kty"},
        {SET("{\"kty\":7}"), "no kty"},
        {SET("{" ED ",\"kid\":7}"), "kid is no string"},
        {SET("{" ED ",\"kid\":\"\"}"), "kid is empty"},
        {SET("{" ED ",\"kid\":\"a\\u0000\"}"), "NUL"},
        {SET("{" ED ",\"d\":\"AAAA\"}"), "private key"},
        {SET("{" ED ",\"alg\":\"ES256\"}"), "alg does not go"},
        {SET("{" ED ",\"alg\":\"HS256\"}"), "alg does not go"},
        {SET("{\"kty\":\"oct\",\"k\":\"" K32 "\",\"alg\":\"EdDSA\"}"), "alg does not go"},
        {SET("{\"kty\":\"oct\",\"k\":\"" K32 "\",\"alg\":\"RS256\"}"), "alg does not go"},
        {SET("{\"kty\":\"EC2\",\"alg\":\"ES256\"}"), "alg does not go"},
        {SET("{" EC("P-384") ",\"alg\":\"ES256\"}"), "crv does not go"},
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\"}"), "it has no x"},
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":7}"), "it has no x"},
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"\"}"), "32 bytes"},
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" ED_X "=\"}"), "base64url"},
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":\"" ED_X "A\"}"), "32 bytes"},
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
             "\"11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}"),
         "base64url"},
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
             "\"11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURp\"}"),
         "base64url"}, /* a spare bit */
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
             "\"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"),
         "not a point"}, /* of order 1 */
        {SET("{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"x\":"
             "\"_____________________________________________w\"}"),
         "32 bytes"},
        {SET("{" EC("P-256") ",\"d\":\"AAAA\"}"), "private key"},
        {SET("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_X "\"}"), "it has no y"},
        {SET("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" EC_X "\",\"y\":\"" EC_X "\"}"),
         "not a point of P-256"},
        {SET("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AAAA\",\"y\":\"" EC_Y "\"}"),
         "32 bytes each"},
        {SET("{\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":"
             "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\",\"y\":"
             "\"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA\"}"),
         "not a point of P-256"},
        {SET("{\"kty\":\"RSA\",\"n\":\"AQAB\"}"), "it has no e"},
        {SET("{\"kty\":\"RSA\",\"n\":\"\",\"e\":\"AQAB\"}"), "has 0 bits"},
        {SET("{\"kty\":\"RSA\",\"n\":\"AAAA\",\"e\":\"AQAB\"}"), "has 0 bits"},
        {SET("{\"kty\":\"oct\",\"k\":\"\"}"), "has 0 bytes"},
        {SET("{\"kty\":\"oct\",\"k\":\"c2VjcmV0\"}"), "has 6 bytes"},
        {SET("{\"kty\":\"oct\",\"k\":\"AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHg\"}"),
         "has 31 bytes"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        refused(0600, texts[i].text, SESSILE_INVALID, texts[i].part);
}

/* A modulus of `size` bytes: ones, with `first` and `last` at its ends. */
static void modulus(char *out, size_t size, unsigned char first, unsigned char last,
                    const char *e)
{
    unsigned char n[1100];
    memset(n, 0xff, sizeof n);
    n[0] = first;
    n[size - 1] = last;
    char *text = signer_base64url(n, size);
    sprintf(out, SET("{\"kty\":\"RSA\",\"n\":\"%s\",\"e\":\"%s\"}"), text, e);
    free(text);
}

static void RSA_key_that_is_weak_is_INVALID(void **state)
{
    char text[4000];
    sessile_error err;
    (void)state;
    modulus(text, 128, 0x80, 1, "AQAB");
    refused(0600, text, SESSILE_INVALID, "has 1024 bits");
    modulus(text, 256, 0x7f, 1, "AQAB");
    refused(0600, text, SESSILE_INVALID, "has 2047 bits");
    modulus(text, 256, 0, 1, "AQAB"); /* zeros in front do not count */
    refused(0600, text, SESSILE_INVALID, "has 2040 bits");
    modulus(text, 1025, 1, 1, "AQAB");
    refused(0600, text, SESSILE_INVALID, "has 8193 bits");
    modulus(text, 256, 0x80, 2, "AQAB");
    refused(0600, text, SESSILE_INVALID, "n is even");
    static const char *const exponents[] = {"",   "AA",   "AQ",     "AAAB",
                                            "Ag", "AQAA", "AQAAAAE"};
    for (size_t i = 0; i < sizeof exponents / sizeof *exponents; i++) {
        modulus(text, 256, 0x80, 1, exponents[i]);
        refused(0600, text, SESSILE_INVALID, "e is not an odd number");
    }
    modulus(text, 256, 0x80, 1, "Aw");
    must(opened(text, 0644, &err), &err);
    modulus(text, 257, 0, 1, "AAEAAQ"); /* nor do they harm */
    must(opened(text, 0644, &err), &err);
    modulus(text, 1024, 0x80, 1, "AQAB");
    must(opened(text, 0644, &err), &err);
}

static void keys_of_other_kinds_are_passed_over(void **state)
{
    static const char *const others[] = {
        "{\"kty\":\"AKP\",\"alg\":\"ML-DSA-65\",\"pub\":\"AAAA\"}",
        "{\"kty\":\"AKP\"}",
        "{" EC("P-521") "}",
        "{" EC("P-256") ",\"alg\":\"ECDH-ES\"}",
        "{\"kty\":\"OKP\",\"crv\":\"X25519\",\"x\":\"AAAA\"}",
        "{\"kty\":\"RSA\",\"alg\":\"RSA-OAEP\",\"use\":\"enc\",\"n\":\"AA\"}",
        "{\"kty\":\"RSA\",\"use\":\"enc\"}",
        "{\"kty\":\"RSA\",\"alg\":\"rs256\",\"n\":\"AQAB\",\"e\":\"AQAB\"}",
        "{\"kty\":\"RSA\",\"key_ops\":[\"encrypt\"]}",
        "{\"kty\":\"RSA\",\"key_ops\":\"verify\"}",
    };
    sessile_error err;
    char text[1000];
    (void)state;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        sprintf(text,
                SET("%s,{" ED ",\"use\":\"sig\",\"key_ops\":[\"sign\",\"verify\"]}"),
                others[i]);
        must(opened(text, 0644, &err), &err);
        sprintf(text, SET("%s"), others[i]);
        refused(0644, text, SESSILE_INVALID, "no key that");
    }
}

static void too_many_keys_or_bytes_are_LIMIT(void **state)
{
    static const size_t counts[] = {256, 257, 10000, 20000};
    sessile_error err;
    char *text = malloc(20000 * 100);
    (void)state;
    assert_non_null(text);
    for (size_t c = 0; c < 4; c++) {
        size_t size = (size_t)sprintf(text, "{\"keys\":[");
        for (size_t i = 0; i < counts[c]; i++)
            size += (size_t)sprintf(text + size, "%s{" ED ",\"kid\":\"%zu\"}",
                                    i > 0 ? "," : "", i);
        strcpy(text + size, "]}");
        if (c == 0)
            must(opened(text, 0644, &err), &err);
        else
            refused(0644, text, SESSILE_LIMIT,
                    c < 3 ? "more than 256 keys" : "more than 1048576 bytes");
    }
    free(text);
}

static void only_key_needs_no_kid(void **state)
{
    static const signer_key one[] = {SIGNER_ED25519, SIGNER_KEYS};
    static const signer_key two[] = {SIGNER_ED25519, SIGNER_SECRET, SIGNER_KEYS};
    sessile_error err;
    const char *bare = "{\"alg\":\"EdDSA\"}",
               *named = "{\"alg\":\"EdDSA\",\"kid\":\"ed\"}";
    const char *payload = "{" TOKENS_PLAIN "}";
    (void)state;
    tokens_write_keys(&t, one);
    must(tokens_open(&t, &err), &err);
    tokens_expect(&t, "bare", tokens_judge_signed(&t, one[0], bare, payload),
                  JWS_ACCEPTED);
    tokens_expect(&t, "named", tokens_judge_signed(&t, one[0], named, payload),
                  JWS_ACCEPTED);
    tokens_write_keys(&t, two);
    must(tokens_open(&t, &err), &err);
    tokens_expect(&t, "bare", tokens_judge_signed(&t, one[0], bare, payload), JWS_KEY);
}

static int start_all(void **state)
{
    (void)state;
    tokens_init(&t);
    return 0;
}

static int end_all(void **state)
{
    (void)state;
    tokens_deinit(&t);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(file_that_others_may_write_is_DENIED),
        cmocka_unit_test(secret_that_others_may_read_is_DENIED),
        cmocka_unit_test(file_of_another_user_is_DENIED),
        cmocka_unit_test(link_or_folder_or_nothing_is_refused),
        cmocka_unit_test(text_that_is_no_key_set_is_INVALID),
        cmocka_unit_test(RSA_key_that_is_weak_is_INVALID),
        cmocka_unit_test(keys_of_other_kinds_are_passed_over),
        cmocka_unit_test(too_many_keys_or_bytes_are_LIMIT),
        cmocka_unit_test(only_key_needs_no_kid),
    };
    return cmocka_run_group_tests_name("vault/keyset", tests, start_all, end_all);
}
