/*
 * test_jws_forged.c: tokens that must not be accepted for how they are spelt, or because
 * nobody who may has signed them. Each has the reason.
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

#include "support/tokens.h"
#include "vault/jose.h"

#define H(alg, kid) "{\"alg\":\"" alg "\",\"kid\":\"" kid "\"}"
#define P_ALL       "{" TOKENS_PLAIN "}"
#define ED          SIGNER_ED25519

static tokens t;

/* ---------------------------------------------------------------------- spelling */

enum { WHOLE, HEADER, PAYLOAD, SIGNATURE };
enum { START, END };

/* A token that is right, with characters taken away at one end of a part, and put there.
 */
typedef struct misspelt {
    int part, end, less;
    const char *more;
    jws_reason reason;
} misspelt;

static const misspelt spellings[] = {
    {WHOLE, END, 0, ".", JWS_FORM},
    {WHOLE, END, 0, "..", JWS_FORM},
    {WHOLE, END, 0, ".e30", JWS_FORM},
    {WHOLE, END, 0, ".e30.e30", JWS_FORM}, /* the five parts of a JWE */
    {WHOLE, START, 0, ".", JWS_FORM},
    {WHOLE, START, 0, "e30.", JWS_FORM},
    {WHOLE, END, 0, "\n", JWS_ENCODING},
    {WHOLE, END, 0, "\r\n", JWS_ENCODING},
    {WHOLE, END, 0, " ", JWS_ENCODING},
    {WHOLE, START, 0, " ", JWS_ENCODING},
    {WHOLE, START, 0, "\t", JWS_ENCODING},
    {WHOLE, START, 0, "Bearer ", JWS_ENCODING},
    {WHOLE, START, 0, "\xef\xbb\xbf", JWS_ENCODING},
    {WHOLE, START, 0, "\"", JWS_ENCODING},
    {HEADER, END, 0, "=", JWS_ENCODING},
    {HEADER, END, 0, "==", JWS_ENCODING},
    {HEADER, END, 0, "\n", JWS_ENCODING},
    {HEADER, END, 0, "+", JWS_ENCODING},
    {HEADER, END, 0, "/", JWS_ENCODING},
    {HEADER, END, 0, "*", JWS_ENCODING},
    {HEADER, END, 0, "%3D", JWS_ENCODING},
    {HEADER, END, 0, "\xc2\xa0", JWS_ENCODING},
    {HEADER, END, 1, "", JWS_ENCODING},
    {HEADER, END, 1000, "", JWS_HEADER},
    {PAYLOAD, END, 0, "=", JWS_SIGNATURE},
    {PAYLOAD, END, 0, "A", JWS_SIGNATURE},
    {PAYLOAD, END, 1, "", JWS_SIGNATURE},
    {PAYLOAD, START, 1, "f", JWS_SIGNATURE},
    {PAYLOAD, START, 0, "\n", JWS_SIGNATURE},
    {PAYLOAD, END, 10000, "", JWS_SIGNATURE},
    {PAYLOAD, END, 10000, "e30", JWS_SIGNATURE},
    {SIGNATURE, END, 0, "=", JWS_ENCODING},
    {SIGNATURE, END, 0, "==", JWS_ENCODING},
    {SIGNATURE, END, 0, "\n", JWS_ENCODING},
    {SIGNATURE, END, 1, "", JWS_ENCODING}, /* a length that no encoder writes */
    {SIGNATURE, START, 1, "+", JWS_ENCODING},
    {SIGNATURE, START, 1, "/", JWS_ENCODING},
    {SIGNATURE, START, 0, "AAAA", JWS_SIGNATURE},
    {SIGNATURE, START, 4, "", JWS_SIGNATURE},
    {SIGNATURE, START, 4, "AAAA", JWS_SIGNATURE},
    {SIGNATURE, START, 1000, "", JWS_SIGNATURE},
    {SIGNATURE, START, 1000, "AA", JWS_SIGNATURE},
};

static char *misspell(const misspelt *m, const char *token)
{
    const char *first = strchr(token, '.'), *last = strrchr(token, '.');
    const char *from = m->part == PAYLOAD     ? first + 1
                       : m->part == SIGNATURE ? last + 1
                                              : token;
    const char *to = m->part == HEADER    ? first
                     : m->part == PAYLOAD ? last
                                          : token + strlen(token);
    int less = m->less < to - from ? m->less : (int)(to - from);
    char *out = malloc(strlen(token) + strlen(m->more) + 1);
    assert_non_null(out);
    const char *cut = m->end == START ? from : to - less;
    sprintf(out, "%.*s%s%s", (int)(cut - token), token, m->more, cut + less);
    return out;
}

static void other_spellings_are_refused(void **state)
{
    char *token = signer_token(t.signer, ED, H("EdDSA", "ed"), P_ALL);
    (void)state;
    assert_int_equal(tokens_judge(&t, token, strlen(token)), JWS_ACCEPTED);
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        char *wrong = misspell(&spellings[i], token);
        tokens_expect(&t, wrong, tokens_judge(&t, wrong, strlen(wrong)),
                      spellings[i].reason);
        free(wrong);
    }
    free(token);
}

/* The characters that decode to the same bytes, when spare bits are not looked at. */
static void spare_bits_are_refused(void **state)
{
    static const char alphabet[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    char *token = signer_token(t.signer, ED, H("EdDSA", "ed"), P_ALL);
    char *last = token + strlen(token) - 1; /* 64 bytes end with four spare bits */
    size_t right = (size_t)(strchr(alphabet, *last) - alphabet);
    (void)state;
    assert_int_equal(right % 16, 0);
    for (size_t spare = 1; spare < 16; spare++) {
        *last = alphabet[right + spare];
        tokens_expect(&t, "spare bits", tokens_judge(&t, token, strlen(token)),
                      JWS_ENCODING);
    }
    free(token);
}

/* Each byte in place of each character: a token has one spelling. */
static void each_other_byte_is_refused(void **state)
{
    char *header = tokens_header(SIGNER_SECRET);
    char *token = signer_token(t.signer, SIGNER_SECRET, header, P_ALL);
    size_t size = strlen(token);
    (void)state;
    for (size_t i = 0; i < size; i++) {
        char was = token[i];
        for (int byte = 0; byte < 256; byte++)
            if ((char)byte != was) {
                token[i] = (char)byte;
                assert_int_not_equal(tokens_judge(&t, token, size), JWS_ACCEPTED);
            }
        token[i] = was;
    }
    free(header);
    free(token);
}

static void base64url_has_64_characters(void **state)
{
    unsigned char out[8];
    size_t size;
    (void)state;
    for (int at = 0; at < 4; at++) {
        int taken = 0;
        for (int byte = 0; byte < 256; byte++) {
            char text[] = "AAAA";
            text[at] = (char)byte;
            taken += jose_decode(out, sizeof out, text, 4, &size) == 0 && size == 3;
        }
        assert_int_equal(taken, 64);
    }
    assert_int_equal(jose_decode(out, 3, "AAAA", 4, &size), 0);
    assert_int_equal(jose_decode(out, 2, "AAAA", 4, &size), -1);
    assert_int_equal(jose_decode(out, 2, "_-8", 3, &size), 0);
    assert_int_equal(size, 2);
    assert_memory_equal(out, "\xff\xef", 2);
    assert_int_equal(jose_decode(out, 1, "_-8", 3, &size), -1);
    assert_int_equal(jose_decode(out, 1, "_w", 2, &size), 0);
    assert_int_equal(jose_decode(out, 8, "_", 1, &size), -1);
    assert_int_equal(jose_decode(out, 0, "", 0, &size), 0);
}

static void texts_that_are_no_token_are_refused(void **state)
{
    static const char *const texts[] = {"x",
                                        "token",
                                        "e30",
                                        "e30.e30",
                                        "{\"payload\":\"e30\",\"signatures\":[]}",
                                        "sesk_AAAA_BBBB_CCCC",
                                        "\xff\xfe",
                                        "-----BEGIN PUBLIC KEY-----"};
    char large[8193];
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        tokens_expect(&t, texts[i], tokens_judge(&t, texts[i], strlen(texts[i])),
                      JWS_FORM);
    tokens_expect(&t, "empty", tokens_judge(&t, "", 0), JWS_FORM);
    tokens_expect(&t, "NULL", tokens_judge(&t, NULL, 0), JWS_FORM);
    tokens_expect(&t, "one dot", tokens_judge(&t, ".", 1), JWS_FORM);
    tokens_expect(&t, "two dots", tokens_judge(&t, "..", 2), JWS_HEADER);
    tokens_expect(&t, "three dots", tokens_judge(&t, "...", 3), JWS_FORM);
    memset(large, '.', sizeof large);
    tokens_expect(&t, "8192 dots", tokens_judge(&t, large, 8192), JWS_FORM);
    tokens_expect(&t, "8193 dots", tokens_judge(&t, large, 8193), JWS_SIZE);
    memset(large, 'A', sizeof large);
    tokens_expect(&t, "8192 letters", tokens_judge(&t, large, 8192), JWS_FORM);
    large[4096] = large[8000] = '.';
    tokens_expect(&t, "zeros", tokens_judge(&t, large, 8192), JWS_HEADER);
    large[4000] = '\0';
    tokens_expect(&t, "a NUL", tokens_judge(&t, large, 8192), JWS_ENCODING);
}

static void token_of_a_megabyte_is_refused_by_its_size(void **state)
{
    size_t size = 1 << 20;
    char *payload = malloc(size + 1);
    (void)state;
    assert_non_null(payload);
    size_t head = (size_t)sprintf(payload, "{" TOKENS_PLAIN ",\"x\":\"");
    memset(payload + head, 'x', size - head);
    strcpy(payload + size - 2, "\"}");
    tokens_expect(&t, "a megabyte",
                  tokens_judge_signed(&t, ED, H("EdDSA", "ed"), payload), JWS_SIZE);
    free(payload);
}

/* ---------------------------------------------------------------------- signatures */

static void forge(const char *what, signer_key key, const void *signature, size_t size)
{
    char *header = tokens_header(key);
    char *token = signer_forge(header, P_ALL, signature, size);
    tokens_expect(&t, what, tokens_judge(&t, token, strlen(token)), JWS_SIGNATURE);
    free(header);
    free(token);
}

/* The order of P-256, big-endian. */
static const unsigned char order[32] = {0xff, 0xff, 0xff, 0xff, 0,    0,    0,    0,
                                        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
                                        0xbc, 0xe6, 0xfa, 0xad, 0xa7, 0x17, 0x9e, 0x84,
                                        0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51};

static void edges_of_ECDSA_are_refused(void **state)
{
    enum { EDGES = 6 };
    unsigned char edge[EDGES][32] = {{0}}, signature[128] = {0};
    (void)state;
    edge[1][31] = 1;
    for (int i = 2; i < 5; i++)
        memcpy(edge[i], order, 32);
    edge[2][31]--;
    edge[4][31]++;
    memset(edge[5], 0xff, 32);
    for (int r = 0; r < EDGES; r++)
        for (int s = 0; s < EDGES; s++) {
            memcpy(signature, edge[r], 32);
            memcpy(signature + 32, edge[s], 32);
            forge("edges of r and s", SIGNER_P256, signature, 64);
        }
    static const size_t sizes[] = {0, 1, 32, 63, 65, 70, 71, 72, 96, 128};
    memset(signature, 1, sizeof signature);
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        forge("size of ES256", SIGNER_P256, signature, sizes[i]);
}

/* r + n, which is r to who computes without looking; and the DER that OpenSSL takes. */
static void ECDSA_of_another_form_is_refused(void **state)
{
    char *header = tokens_header(SIGNER_P256);
    char *token = signer_token(t.signer, SIGNER_P256, header, P_ALL);
    unsigned char raw[72], der[72] = {0x30, 68, 2, 32};
    size_t size;
    (void)state;
    assert_int_equal(tokens_judge(&t, token, strlen(token)), JWS_ACCEPTED);
    assert_int_equal(jose_decode(raw, sizeof raw, strrchr(token, '.') + 1,
                                 strlen(strrchr(token, '.') + 1), &size),
                     0);
    assert_int_equal(size, 64);
    memcpy(der + 4, raw, 32);
    der[36] = 2;
    der[37] = 32;
    memcpy(der + 38, raw + 32, 32);
    forge("DER", SIGNER_P256, der, 70);
    for (size_t half = 0; half < 64; half += 32) {
        unsigned char more[64];
        unsigned carry = 0;
        memcpy(more, raw, sizeof more);
        for (size_t i = 32; i-- > 0;) {
            carry += (unsigned)raw[half + i] + order[i];
            more[half + i] = (unsigned char)carry;
            carry >>= 8;
        }
        forge("a number and n", SIGNER_P256, more, sizeof more);
    }
    free(header);
    free(token);
}

static void edges_of_EdDSA_are_refused(void **state)
{
    /* the order of the group, little-endian */
    static const unsigned char group[32] = {
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7,
        0xa2, 0xde, 0xf9, 0xde, 0x14, 0,    0,    0,    0,    0,    0,
        0,    0,    0,    0,    0,    0,    0,    0,    0,    0x10};
    unsigned char signature[65] = {0}, right[64];
    size_t size;
    char *token = signer_token(t.signer, ED, H("EdDSA", "ed"), P_ALL);
    const char *last = strrchr(token, '.') + 1;
    (void)state;
    forge("zeros", ED, signature, 64);
    signature[0] = 1; /* R is the neutral point, s is 0 */
    forge("neutral", ED, signature, 64);
    assert_int_equal(jose_decode(right, sizeof right, last, strlen(last), &size), 0);
    unsigned carry = 0; /* s + L verifies where s is not checked */
    memcpy(signature, right, 32);
    for (size_t i = 0; i < 32; i++) {
        carry += (unsigned)right[32 + i] + group[i];
        signature[32 + i] = (unsigned char)carry;
        carry >>= 8;
    }
    forge("s and L", ED, signature, 64);
    forge("63 bytes", ED, right, 63);
    memcpy(signature, right, 64);
    signature[64] = 0;
    forge("65 bytes", ED, signature, 65);
    free(token);
}

static void edges_of_RSA_are_refused(void **state)
{
    static const size_t sizes[] = {0, 1, 255, 257, 512, 1024, 1025};
    unsigned char signature[1025] = {0};
    (void)state;
    for (signer_key key = SIGNER_RSA; key <= SIGNER_PSS; key++) {
        for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
            forge("size of RSA", key, signature, sizes[i]);
        forge("0", key, signature, 256);
        signature[255] = 1;
        forge("1", key, signature, 256);
        memcpy(signature, signer_modulus(t.signer), 256);
        forge("n", key, signature, 256);
        signature[255]--;
        forge("n - 1", key, signature, 256);
        memset(signature, 0xff, 256);
        forge("more than n", key, signature, 256);
        memset(signature, 0, sizeof signature);
    }
}

/* The right signature, cut short or followed by more. */
static void signature_of_another_size_is_refused(void **state)
{
    (void)state;
    for (signer_key key = SIGNER_ED25519; key <= SIGNER_SECRET; key++) {
        char *header = tokens_header(key);
        char *token = signer_token(t.signer, key, header, P_ALL);
        const char *last = strrchr(token, '.') + 1;
        unsigned char raw[260] = {0};
        size_t size;
        assert_int_equal(jose_decode(raw, 256, last, strlen(last), &size), 0);
        forge("a byte more", key, raw, size + 1);
        forge("four bytes more", key, raw, size + 4);
        forge("a byte less", key, raw, size - 1);
        forge("half of it", key, raw, size / 2);
        forge("all but the first", key, raw + 1, size - 1);
        free(header);
        free(token);
    }
}

/* A MAC without its last byte is not completed by what was in memory before: here by the
 * 32nd byte of the header. */
static void short_MAC_is_not_completed(void **state)
{
    const char *header = "{\"alg\":\"HS256\",\"kid\":\"hs\",\"typ\":\"JWT\"}";
    unsigned char mac[32];
    char payload[200];
    size_t size;
    int found = 0;
    (void)state;
    for (int i = 0; i < 20000 && !found; i++) {
        sprintf(payload, "{" TOKENS_PLAIN ",\"x\":%d}", i);
        char *token = signer_token(t.signer, SIGNER_SECRET, header, payload);
        const char *last = strrchr(token, '.') + 1;
        assert_int_equal(jose_decode(mac, sizeof mac, last, strlen(last), &size), 0);
        found = mac[31] == (unsigned char)header[31];
        free(token);
    }
    assert_true(found);
    char *token = signer_forge(header, payload, mac, 31);
    tokens_expect(&t, "31 bytes", tokens_judge(&t, token, strlen(token)), JWS_SIGNATURE);
    free(token);
}

/* A number with a byte less is the same number: here its first byte is zero. */
static void RSA_without_its_leading_zero_is_refused(void **state)
{
    unsigned char raw[256];
    char payload[200];
    size_t size;
    (void)state;
    for (signer_key key = SIGNER_RSA; key <= SIGNER_PSS; key++) {
        char *header = tokens_header(key);
        raw[0] = 1;
        for (int i = 0; i < 20000 && raw[0]; i++) {
            snprintf(payload, sizeof payload, "{" TOKENS_PLAIN ",\"x\":%d}", i);
            char *token = signer_token(t.signer, key, header, payload);
            const char *last = strrchr(token, '.') + 1;
            assert_int_equal(jose_decode(raw, sizeof raw, last, strlen(last), &size), 0);
            free(token);
        }
        assert_int_equal(size, sizeof raw);
        assert_int_equal(raw[0], 0);
        char *token = signer_forge(header, payload, raw, size);
        tokens_expect(&t, "256 bytes", tokens_judge(&t, token, strlen(token)),
                      JWS_ACCEPTED);
        free(token);
        token = signer_forge(header, payload, raw + 1, size - 1);
        tokens_expect(&t, "255 bytes", tokens_judge(&t, token, strlen(token)),
                      JWS_SIGNATURE);
        free(token);
        free(header);
    }
}

static void PSS_with_another_salt_is_refused(void **state)
{
    static const int sizes[] = {0, 20, 31, 33, 64, 222};
    char *header = tokens_header(SIGNER_PSS);
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        signer_set_salt(t.signer, sizes[i]);
        tokens_expect(&t, "another salt",
                      tokens_judge_signed(&t, SIGNER_PSS, header, P_ALL), JWS_SIGNATURE);
    }
    signer_set_salt(t.signer, -1);
    free(header);
}

/* The confusion of keys: a public key, which everybody has, as the secret of an HMAC. */
static void HMAC_with_what_is_public_is_refused(void **state)
{
    char *jwk = signer_jwk(t.signer, SIGNER_RSA, 0);
    const struct {
        const void *data;
        size_t size;
    } public[] = {{jwk, strlen(jwk)},
                  {signer_modulus(t.signer), 256},
                  {signer_modulus(t.signer), 32},
                  {"", 0},
                  {"secret", 6},
                  {"\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 32}};
    static const char *const names[] = {"rs", "ps", "es", "ed", "hs"};
    (void)state;
    for (size_t i = 0; i < sizeof public / sizeof *public; i++)
        for (size_t n = 0; n < sizeof names / sizeof *names; n++) {
            char header[64];
            sprintf(header, H("HS256", "%s"), names[n]);
            char *token =
                signer_token_hmac(public[i].data, public[i].size, header, P_ALL);
            tokens_expect(&t, "HMAC", tokens_judge(&t, token, strlen(token)),
                          strcmp(names[n], "hs") == 0 ? JWS_SIGNATURE : JWS_ALGORITHM);
            free(token);
        }
    free(jwk);
}

static void each_changed_bit_of_a_signature_is_refused(void **state)
{
    (void)state;
    for (signer_key key = SIGNER_ED25519; key <= SIGNER_SECRET; key++) {
        char *header = tokens_header(key);
        char *token = signer_token(t.signer, key, header, P_ALL);
        const char *last = strrchr(token, '.') + 1;
        unsigned char raw[256];
        size_t size;
        assert_int_equal(jose_decode(raw, sizeof raw, last, strlen(last), &size), 0);
        for (size_t bit = 0; bit<size * 8; bit += size> 64 ? 61 : 1) {
            raw[bit / 8] ^= (unsigned char)(1u << bit % 8);
            char *wrong = signer_forge(header, P_ALL, raw, size);
            assert_int_equal(tokens_judge(&t, wrong, strlen(wrong)), JWS_SIGNATURE);
            free(wrong);
            raw[bit / 8] ^= (unsigned char)(1u << bit % 8);
        }
        free(header);
        free(token);
    }
}

static void enough_was_tried(void **state)
{
    (void)state;
    assert_true(t.tried >= 150);
    print_message("# figure: tokens refused, each for its reason = %zu\n", t.tried);
}

static int start_all(void **state)
{
    (void)state;
    tokens_start(&t);
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
        cmocka_unit_test(other_spellings_are_refused),
        cmocka_unit_test(spare_bits_are_refused),
        cmocka_unit_test(each_other_byte_is_refused),
        cmocka_unit_test(base64url_has_64_characters),
        cmocka_unit_test(texts_that_are_no_token_are_refused),
        cmocka_unit_test(token_of_a_megabyte_is_refused_by_its_size),
        cmocka_unit_test(edges_of_ECDSA_are_refused),
        cmocka_unit_test(ECDSA_of_another_form_is_refused),
        cmocka_unit_test(edges_of_EdDSA_are_refused),
        cmocka_unit_test(edges_of_RSA_are_refused),
        cmocka_unit_test(signature_of_another_size_is_refused),
        cmocka_unit_test(short_MAC_is_not_completed),
        cmocka_unit_test(RSA_without_its_leading_zero_is_refused),
        cmocka_unit_test(PSS_with_another_salt_is_refused),
        cmocka_unit_test(HMAC_with_what_is_public_is_refused),
        cmocka_unit_test(each_changed_bit_of_a_signature_is_refused),
        cmocka_unit_test(enough_was_tried),
    };
    return cmocka_run_group_tests_name("vault/jws_forged", tests, start_all, end_all);
}
