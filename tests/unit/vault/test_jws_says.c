/*
 * test_jws_says.c: tokens that must not be accepted for what they say, each with the
 * reason. They are signed with a right key unless the table says otherwise.
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

#define H(alg, kid)    "{\"alg\":\"" alg "\",\"kid\":\"" kid "\"}"
#define H_AND(members) "{\"alg\":\"EdDSA\",\"kid\":\"ed\"," members "}"
#define P(members)     "{" TOKENS_PLAIN "," members "}"
#define P_ALL          "{" TOKENS_PLAIN "}"
#define ISS            "\"iss\":\"" TOKENS_ISSUER "\""
#define P_ISS(value) \
    "{\"iss\":" value ",\"aud\":\"sessile\",\"sub\":\"ann\",\"exp\":1700000600}"
#define P_AUD(value) "{" ISS ",\"aud\":" value ",\"sub\":\"ann\",\"exp\":1700000600}"
#define P_SUB(value) "{" ISS ",\"aud\":\"sessile\",\"sub\":" value ",\"exp\":1700000600}"
#define P_EXP(value) "{" ISS ",\"aud\":\"sessile\",\"sub\":\"ann\",\"exp\":" value "}"
#define ED           SIGNER_ED25519

static tokens t;

/* ---------------------------------------------------------------------- headers */

typedef struct signed_with {
    signer_key key;
    const char *header;
    jws_reason reason;
} signed_with;

static const signed_with headers[] = {
    /* no algorithm, in every spelling */
    {ED, H("none", "ed"), JWS_ALGORITHM},
    {ED, H("None", "ed"), JWS_ALGORITHM},
    {ED, H("NONE", "ed"), JWS_ALGORITHM},
    {ED, H("nOnE", "ed"), JWS_ALGORITHM},
    {ED, H("none", "hs"), JWS_ALGORITHM},
    {ED, H("none", "rs"), JWS_ALGORITHM},
    {ED, H("", "ed"), JWS_ALGORITHM},
    {ED, H("no\\u006ee", "ed"), JWS_ALGORITHM},
    {ED, "{\"alg\":\"none\"}", JWS_KEY},
    /* the algorithm of another key, or of none here */
    {SIGNER_SECRET, H("HS256", "rs"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("HS256", "es"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("HS256", "ed"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("RS256", "hs"), JWS_ALGORITHM},
    {SIGNER_RSA, H("RS256", "ps"), JWS_ALGORITHM},
    {SIGNER_PSS, H("PS256", "rs"), JWS_ALGORITHM},
    {SIGNER_RSA, H("PS256", "rs"), JWS_ALGORITHM},
    {ED, H("EdDSA", "es"), JWS_ALGORITHM},
    {ED, H("ES256", "ed"), JWS_ALGORITHM},
    {ED, H("Ed25519", "ed"), JWS_ALGORITHM},
    {ED, H("EDDSA", "ed"), JWS_ALGORITHM},
    {ED, H("eddsa", "ed"), JWS_ALGORITHM},
    {SIGNER_RSA, H("rs256", "rs"), JWS_ALGORITHM},
    {SIGNER_RSA, H("RS256 ", "rs"), JWS_ALGORITHM},
    {SIGNER_RSA, H(" RS256", "rs"), JWS_ALGORITHM},
    {SIGNER_RSA, H("RS256\\u0000", "rs"), JWS_ALGORITHM},
    {SIGNER_RSA, H("RS384", "rs"), JWS_ALGORITHM},
    {SIGNER_RSA, H("RS512", "rs"), JWS_ALGORITHM},
    {SIGNER_RSA, H("RS1", "rs"), JWS_ALGORITHM},
    {SIGNER_P256, H("ES384", "es"), JWS_ALGORITHM},
    {SIGNER_P256, H("ES256K", "es"), JWS_ALGORITHM},
    {SIGNER_P256, H("es256", "es"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("HS384", "hs"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("hs256", "hs"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("HS256/64", "hs"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("dir", "hs"), JWS_ALGORITHM},
    {SIGNER_SECRET, H("A256KW", "hs"), JWS_ALGORITHM},
    {ED, "{\"kid\":\"ed\"}", JWS_HEADER},
    {ED, "{\"kid\":\"ed\",\"alg\":null}", JWS_HEADER},
    {ED, "{\"kid\":\"ed\",\"alg\":0}", JWS_HEADER},
    {ED, "{\"kid\":\"ed\",\"alg\":false}", JWS_HEADER},
    {ED, "{\"kid\":\"ed\",\"alg\":[\"EdDSA\"]}", JWS_HEADER},
    {ED, "{\"kid\":\"ed\",\"alg\":{\"EdDSA\":1}}", JWS_HEADER},
    {ED, "{\"kid\":\"ed\",\"ALG\":\"EdDSA\"}", JWS_HEADER},
    /* kid is compared, and nothing else */
    {ED, "{\"alg\":\"EdDSA\"}", JWS_KEY},
    {ED, H("EdDSA", ""), JWS_KEY},
    {ED, H("EdDSA", "ED"), JWS_KEY},
    {ED, H("EdDSA", " ed"), JWS_KEY},
    {ED, H("EdDSA", "ed "), JWS_KEY},
    {ED, H("EdDSA", "ed\\u0000"), JWS_KEY},
    {ED, H("EdDSA", "ed\\u0000x"), JWS_KEY},
    {ED, H("EdDSA", "%65d"), JWS_KEY},
    {ED, H("EdDSA", "./ed"), JWS_KEY},
    {ED, H("EdDSA", "*"), JWS_KEY},
    {ED, H("EdDSA", "../../../../../../dev/null"), JWS_KEY},
    {ED, H("EdDSA", "/proc/self/environ"), JWS_KEY},
    {ED, H("EdDSA", "file:///etc/passwd"), JWS_KEY},
    {ED, H("EdDSA", "https://evil.example/jwks.json"), JWS_KEY},
    {ED, H("EdDSA", "ed' OR '1'='1"), JWS_KEY},
    {ED, H("EdDSA", "x' UNION SELECT 'AAAA"), JWS_KEY},
    {ED, H("EdDSA", "key|/usr/bin/id"), JWS_KEY},
    {ED, H("EdDSA", "%n%n%s%s"), JWS_KEY},
    {SIGNER_OTHER, H("EdDSA", "ed2"), JWS_KEY},
    {ED, "{\"alg\":\"EdDSA\",\"kid\":null}", JWS_HEADER},
    {ED, "{\"alg\":\"EdDSA\",\"kid\":0}", JWS_HEADER},
    {ED, "{\"alg\":\"EdDSA\",\"kid\":[\"ed\"]}", JWS_HEADER},
    {ED, "{\"alg\":\"EdDSA\",\"kid\":{\"ed\":\"ed\"}}", JWS_HEADER},
    /* the key of somebody else */
    {SIGNER_OTHER, H("EdDSA", "ed"), JWS_SIGNATURE},
    {ED, H("ES256", "es"), JWS_SIGNATURE},
    {ED, H("HS256", "hs"), JWS_SIGNATURE},
    {SIGNER_SECRET, H("EdDSA", "ed"), JWS_SIGNATURE},
    {SIGNER_RSA, H("PS256", "ps"), JWS_SIGNATURE},
    {SIGNER_PSS, H("RS256", "rs"), JWS_SIGNATURE},
    {SIGNER_RSA1024, H("RS256", "rs"), JWS_SIGNATURE},
    {SIGNER_P256, H("EdDSA", "ed"), JWS_SIGNATURE},
    /* what brings a key, has it fetched, or changes what is signed */
    {ED, H_AND("\"jku\":\"https://evil.example/jwks.json\""), JWS_FORBIDDEN},
    {ED, H_AND("\"jku\":null"), JWS_FORBIDDEN},
    {ED, H_AND("\"j\\u006bu\":\"file:///tmp/jwks.json\""), JWS_FORBIDDEN},
    {ED, H_AND("\"x5u\":\"https://evil.example/cert.pem\""), JWS_FORBIDDEN},
    {ED, H_AND("\"x5c\":[\"MIIB\"]"), JWS_FORBIDDEN},
    {SIGNER_OTHER, H_AND("\"jwk\":{\"kty\":\"OKP\"}"), JWS_FORBIDDEN},
    {ED, H_AND("\"\\u006Awk\":{}"), JWS_FORBIDDEN},
    {ED, H_AND("\"crit\":[]"), JWS_FORBIDDEN},
    {ED, H_AND("\"crit\":[\"exp\"]"), JWS_FORBIDDEN},
    {ED, H_AND("\"crit\":[\"b64\"],\"b64\":false"), JWS_FORBIDDEN},
    {ED, H_AND("\"b64\":false"), JWS_FORBIDDEN},
    {ED, H_AND("\"b64\":true"), JWS_FORBIDDEN},
    {ED, H_AND("\"zip\":\"DEF\""), JWS_FORBIDDEN},
    {ED, H_AND("\"enc\":\"A256GCM\""), JWS_FORBIDDEN},
    {ED, H_AND("\"cty\":\"JWT\""), JWS_FORBIDDEN},
    {ED, "{\"alg\":\"dir\",\"enc\":\"A256GCM\"}", JWS_FORBIDDEN},
    /* tokens of other uses */
    {ED, H_AND("\"typ\":\"\""), JWS_TYPE},
    {ED, H_AND("\"typ\":\"JWS\""), JWS_TYPE},
    {ED, H_AND("\"typ\":\"JOSE\""), JWS_TYPE},
    {ED, H_AND("\"typ\":\"dpop+jwt\""), JWS_TYPE},
    {ED, H_AND("\"typ\":\"logout+jwt\""), JWS_TYPE},
    {ED, H_AND("\"typ\":\"secevent+jwt\""), JWS_TYPE},
    {ED, H_AND("\"typ\":\"application/\""), JWS_TYPE},
    {ED, H_AND("\"typ\":\"jwt2\""), JWS_TYPE},
    {ED, H_AND("\"typ\":null"), JWS_TYPE},
    {ED, H_AND("\"typ\":1"), JWS_TYPE},
    /* a member twice */
    {ED, H_AND("\"alg\":\"EdDSA\""), JWS_DOUBLED},
    {ED, H_AND("\"alg\":\"none\""), JWS_DOUBLED},
    {ED, H_AND("\"\\u0061lg\":\"none\""), JWS_DOUBLED},
    {ED, H_AND("\"al\\u0067\":\"EdDSA\""), JWS_DOUBLED},
    {ED, H_AND("\"kid\":\"es\""), JWS_DOUBLED},
    {ED, H_AND("\"k\\u0069d\":\"ed\""), JWS_DOUBLED},
    {ED, H_AND("\"x\":{\"a\":1,\"b\":[{\"c\":1,\"c\":2}]}"), JWS_DOUBLED},
    {ED, H_AND("\"x\":1,\"x\":1"), JWS_DOUBLED},
    {ED, H_AND("\"\":1,\"\":1"), JWS_DOUBLED},
    {ED, H_AND("\"\\ud800\":1,\"\\udfff\":1"), JWS_DOUBLED},
    /* no object */
    {ED, "", JWS_HEADER},
    {ED, "[]", JWS_HEADER},
    {ED, "null", JWS_HEADER},
    {ED, "\"EdDSA\"", JWS_HEADER},
    {ED, "7", JWS_HEADER},
    {ED, "{}", JWS_HEADER},
    {ED, "{", JWS_HEADER},
    {ED, H("EdDSA", "ed") H("EdDSA", "ed"), JWS_HEADER},
    {ED, H("EdDSA", "ed") "x", JWS_HEADER},
    {ED, "\xef\xbb\xbf" H("EdDSA", "ed"), JWS_HEADER},
    {ED, "{\"alg\":\"EdDSA\",\"kid\":\"ed\",}", JWS_HEADER},
    {ED, "{'alg':'EdDSA','kid':'ed'}", JWS_HEADER},
    {ED, "{alg:\"EdDSA\",kid:\"ed\"}", JWS_HEADER},
    {ED, H_AND("/**/\"x\":1"), JWS_HEADER},
    {ED, H_AND("\"x\":NaN"), JWS_HEADER},
    {ED, H_AND("\"x\":\"\xff\""), JWS_HEADER},
    {ED, H_AND("\"x\":\"\xc0\xae\""), JWS_HEADER},
    {ED, H_AND("\"x\":\"\xed\xa0\x80\""), JWS_HEADER},
    {ED, H_AND("\"x\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"), JWS_HEADER},
};

static void headers_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        tokens_expect(&t, headers[i].header,
                      tokens_judge_signed(&t, headers[i].key, headers[i].header, P_ALL),
                      headers[i].reason);
    }
}

/* ---------------------------------------------------------------------- payloads */

typedef struct says {
    const char *payload;
    jws_reason reason;
} says;

static const says payloads[] = {
    {"{\"aud\":\"sessile\",\"sub\":\"ann\",\"exp\":1700000600}", JWS_MISSING},
    {"{" ISS ",\"sub\":\"ann\",\"exp\":1700000600}", JWS_MISSING},
    {"{" ISS ",\"aud\":\"sessile\",\"exp\":1700000600}", JWS_MISSING},
    {"{" ISS ",\"aud\":\"sessile\",\"sub\":\"ann\"}", JWS_MISSING},
    {"{" ISS ",\"aud\":\"sessile\",\"sub\":\"ann\",\"Exp\":1700000600}", JWS_MISSING},
    {"{}", JWS_MISSING},
    {P_ISS("\"\""), JWS_ISSUER},
    {P_ISS("\"https://id.example/\""), JWS_ISSUER},
    {P_ISS("\"https://id.exampl\""), JWS_ISSUER},
    {P_ISS("\"https://ID.example\""), JWS_ISSUER},
    {P_ISS("\"http://id.example\""), JWS_ISSUER},
    {P_ISS("\"https://id.example.evil\""), JWS_ISSUER},
    {P_ISS("\"https://id.example\\u0000\""), JWS_ISSUER},
    {P_ISS("\" https://id.example\""), JWS_ISSUER},
    {P_ISS("\"https://\xd1\x96"
           "d.example\""),
     JWS_ISSUER},
    {P_ISS("null"), JWS_CLAIM},
    {P_ISS("[\"https://id.example\"]"), JWS_CLAIM},
    {P_ISS("{\"https://id.example\":1}"), JWS_CLAIM},
    {P_AUD("\"other\""), JWS_AUDIENCE},
    {P_AUD("\"\""), JWS_AUDIENCE},
    {P_AUD("\"Sessile\""), JWS_AUDIENCE},
    {P_AUD("\"sessile \""), JWS_AUDIENCE},
    {P_AUD("\"sessile\\u0000\""), JWS_AUDIENCE},
    {P_AUD("\"sessile,other\""), JWS_AUDIENCE},
    {P_AUD("\"*\""), JWS_AUDIENCE},
    {P_AUD("[]"), JWS_AUDIENCE},
    {P_AUD("[\"other\",\"another\"]"), JWS_AUDIENCE},
    {P_AUD("[\"sessile\",7]"), JWS_CLAIM},
    {P_AUD("[[\"sessile\"]]"), JWS_CLAIM},
    {P_AUD("[null]"), JWS_CLAIM},
    {P_AUD("{\"sessile\":\"sessile\"}"), JWS_CLAIM},
    {P_AUD("null"), JWS_CLAIM},
    {P_AUD("7"), JWS_CLAIM},
    {P_SUB("\"\""), JWS_CLAIM},
    {P_SUB("null"), JWS_CLAIM},
    {P_SUB("7"), JWS_CLAIM},
    {P_SUB("true"), JWS_CLAIM},
    {P_SUB("[\"ann\"]"), JWS_CLAIM},
    {P_SUB("{\"sub\":\"ann\"}"), JWS_CLAIM},
    {P_SUB("\"ann\\u0000\""), JWS_CLAIM},
    {P_SUB("\"\\u0000\""), JWS_CLAIM},
    {P_SUB("\"ann\\nadmin\""), JWS_CLAIM},
    {P_SUB("\"ann\\u001b[2J\""), JWS_CLAIM},
    {P_SUB("\"ann\x7f\""), JWS_CLAIM},
    {P_SUB("\"\\ud800\""), JWS_CLAIM},
    {P_SUB("\"ann\\udc00\\ud800\""), JWS_CLAIM},
    {P_EXP("\"1700000600\""), JWS_CLAIM},
    {P_EXP("\"\""), JWS_CLAIM},
    {P_EXP("null"), JWS_CLAIM},
    {P_EXP("true"), JWS_CLAIM},
    {P_EXP("[1700000600]"), JWS_CLAIM},
    {P_EXP("{}"), JWS_CLAIM},
    {P_EXP("1e400"), JWS_CLAIM},
    {P_EXP("-1e400"), JWS_CLAIM},
    {P_EXP("1e308"), JWS_CLAIM},
    {P_EXP("1e9999999999999999999999"), JWS_CLAIM},
    {P_EXP("1e-9999999999999999999999"), JWS_CLAIM},
    {P_EXP("9223372036854775807"), JWS_CLAIM},
    {P_EXP("9223372036854775808"), JWS_CLAIM},
    {P_EXP("18446744073709551616"), JWS_CLAIM},
    {P_EXP("253402300800"), JWS_CLAIM},
    {P_EXP("-1"), JWS_CLAIM},
    {P_EXP("-1700000600"), JWS_CLAIM},
    {P_EXP("-9223372036854775808"), JWS_CLAIM},
    {P_EXP("-0"), JWS_EXPIRED},
    {P_EXP("0"), JWS_EXPIRED},
    {P_EXP("0.5"), JWS_EXPIRED},
    {P_EXP("1e-300"), JWS_EXPIRED},
    {P_EXP("1699999940"), JWS_EXPIRED},
    {P_EXP("1699999939.999"), JWS_EXPIRED},
    {P_EXP("1.69999994e9"), JWS_EXPIRED},
    {P_EXP("1700000600000"), JWS_CLAIM}, /* milliseconds */
    {P_EXP("253402300799"), JWS_LIFE},
    {P_EXP("1700086461"), JWS_LIFE},
    {P_EXP("1700086460.001"), JWS_LIFE},
    {P_EXP("1700086401,\"iat\":1700000000"), JWS_LIFE},
    {P_EXP("1700086400,\"iat\":1699999999"), JWS_LIFE},
    {P_EXP("1700086400.001,\"iat\":1700000000"), JWS_LIFE},
    {P("\"iat\":0"), JWS_LIFE},
    {P_EXP("1700000010,\"iat\":1700000010"), JWS_LIFE},
    {P_EXP("1699999990,\"iat\":1700000000"), JWS_LIFE},
    {P_EXP("1700000030,\"nbf\":1700000030"), JWS_LIFE},
    {P("\"iat\":1700000061"), JWS_EARLY},
    {P("\"iat\":1700000060.001"), JWS_EARLY},
    {P("\"iat\":\"1700000000\""), JWS_CLAIM},
    {P("\"iat\":null"), JWS_CLAIM},
    {P("\"iat\":-1"), JWS_CLAIM},
    {P("\"iat\":1e400"), JWS_CLAIM},
    {P("\"nbf\":1700000061"), JWS_EARLY},
    {P("\"nbf\":1700000060.001"), JWS_EARLY},
    {P("\"nbf\":253402300799"), JWS_EARLY},
    {P("\"nbf\":\"1699999999\""), JWS_CLAIM},
    {P("\"nbf\":null"), JWS_CLAIM},
    {P("\"nbf\":-1"), JWS_CLAIM},
    {P("\"nbf\":1e400"), JWS_CLAIM},
    {P("\"nbf\":false"), JWS_CLAIM},
    {P("\"roles\":null"), JWS_CLAIM},
    {P("\"roles\":7"), JWS_CLAIM},
    {P("\"roles\":{\"admin\":true}"), JWS_CLAIM},
    {P("\"roles\":[7]"), JWS_CLAIM},
    {P("\"roles\":[\"viewer\",null]"), JWS_CLAIM},
    {P("\"roles\":[[\"admin\"]]"), JWS_CLAIM},
    {P("\"roles\":[\"\"]"), JWS_CLAIM},
    {P("\"roles\":[\"admin\\u0000\"]"), JWS_CLAIM},
    {P("\"roles\":\"viewer\\tadmin\""), JWS_CLAIM},
    {P("\"agents\":\"\""), JWS_CLAIM},
    {P("\"agents\":[]"), JWS_CLAIM},
    {P("\"agents\":true"), JWS_CLAIM},
    {P("\"agents\":[{}]"), JWS_CLAIM},
    {P("\"agents\":[\"coder\\n*\"]"), JWS_CLAIM},
    {P("\"act\":\"svc\""), JWS_CLAIM},
    {P("\"act\":[\"svc\"]"), JWS_CLAIM},
    {P("\"act\":null"), JWS_CLAIM},
    {P("\"act\":{\"sub\":7}"), JWS_CLAIM},
    {P("\"act\":{\"sub\":\"\"}"), JWS_CLAIM},
    {P("\"act\":{\"sub\":null}"), JWS_CLAIM},
    {P("\"jti\":7"), JWS_CLAIM},
    {P("\"jti\":\"\""), JWS_CLAIM},
    {P("\"jti\":\"a\\u0000\""), JWS_CLAIM},
    {P("\"sub\":\"admin\""), JWS_DOUBLED},
    {P("\"s\\u0075b\":\"admin\""), JWS_DOUBLED},
    {P("\"exp\":1700000600"), JWS_DOUBLED},
    {P("\"\\u0065xp\":253402300799"), JWS_DOUBLED},
    {P("\"iss\":\"" TOKENS_ISSUER "\""), JWS_DOUBLED},
    {P("\"aud\":\"sessile\""), JWS_DOUBLED},
    {P("\"act\":{\"sub\":\"a\",\"sub\":\"b\"}"), JWS_DOUBLED},
    {P("\"x\":[[{\"a\":1,\"\\u0061\":1}]]"), JWS_DOUBLED},
    {"", JWS_PAYLOAD},
    {" ", JWS_PAYLOAD},
    {"[]", JWS_PAYLOAD},
    {"[" P_ALL "]", JWS_PAYLOAD},
    {"null", JWS_PAYLOAD},
    {"true", JWS_PAYLOAD},
    {"\"ann\"", JWS_PAYLOAD},
    {"1e400", JWS_PAYLOAD},
    {"{", JWS_PAYLOAD},
    {P_ALL "}", JWS_PAYLOAD},
    {P_ALL P_ALL, JWS_PAYLOAD},
    {"{" TOKENS_PLAIN ",}", JWS_PAYLOAD},
    {"\xef\xbb\xbf" P_ALL, JWS_PAYLOAD},
    {P("\"x\":\"\xff\""), JWS_PAYLOAD},
    {P("\"x\":\"\xf4\x90\x80\x80\""), JWS_PAYLOAD},
    {P("\"x\":\"a\nb\""), JWS_PAYLOAD},
    {P("\"x\":\"\\x41\""), JWS_PAYLOAD},
    {P("\"x\":\"\\u12\""), JWS_PAYLOAD},
    {P("\"x\":Infinity"), JWS_PAYLOAD},
    {P("\"x\":undefined"), JWS_PAYLOAD},
    {P_EXP("01700000600"), JWS_PAYLOAD},
    {P_EXP("0x6553F358"), JWS_PAYLOAD},
    {P_EXP("+1700000600"), JWS_PAYLOAD},
    {P_EXP("1700000600."), JWS_PAYLOAD},
    {P_EXP("17e"), JWS_PAYLOAD},
    {P("\"x\":[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]"), JWS_PAYLOAD},
    {P("\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{"
       "\"x\":{\"x\":{\"x\":{\"x\":{\"x\":{}}}}}}}}}}}}}}}}"),
     JWS_PAYLOAD},
};

static void payloads_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++) {
        tokens_expect(&t, payloads[i].payload,
                      tokens_judge_signed(&t, ED, H("EdDSA", "ed"), payloads[i].payload),
                      payloads[i].reason);
    }
}

static void payload_as_large_or_deep_as_fits_is_refused(void **state)
{
    char text[6000];
    (void)state;
    size_t size = (size_t)sprintf(text, "{" TOKENS_PLAIN ",\"x\":");
    memset(text + size, '[', 2000);
    memset(text + size + 2000, ']', 2000);
    strcpy(text + size + 4000, "}");
    tokens_expect(&t, "2000 levels", tokens_judge_signed(&t, ED, H("EdDSA", "ed"), text),
                  JWS_PAYLOAD);
    memset(text + size, '[', 4000);
    text[size + 4000] = '\0';
    tokens_expect(&t, "4000 open", tokens_judge_signed(&t, ED, H("EdDSA", "ed"), text),
                  JWS_PAYLOAD);
    size = (size_t)sprintf(text, "{" TOKENS_PLAIN);
    for (int i = 0; i < 125; i++)
        size += (size_t)sprintf(text + size, ",\"m%d\":%d", i, i);
    strcpy(text + size, "}");
    tokens_expect(&t, "129 members", tokens_judge_signed(&t, ED, H("EdDSA", "ed"), text),
                  JWS_DOUBLED);
}

static void enough_was_tried(void **state)
{
    (void)state;
    assert_true(t.tried >= 250);
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
        cmocka_unit_test(headers_are_refused),
        cmocka_unit_test(payloads_are_refused),
        cmocka_unit_test(payload_as_large_or_deep_as_fits_is_refused),
        cmocka_unit_test(enough_was_tried),
    };
    return cmocka_run_group_tests_name("vault/jws_says", tests, start_all, end_all);
}
