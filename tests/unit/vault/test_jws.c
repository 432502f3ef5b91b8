/*
 * test_jws.c: tokens that are accepted, what they say, and how long they are known.
 * test_jws_says.c and test_jws_forged.c have those that are refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "support/check.h"
#include "support/rations.h"
#include "support/tokens.h"

#define H_ED       "{\"alg\":\"EdDSA\",\"kid\":\"ed\"}"
#define ED         SIGNER_ED25519
#define P(members) "{" TOKENS_PLAIN "," members "}"
#define P_ALL      "{" TOKENS_PLAIN "}"
#define P_EXP(value)                                                      \
    "{\"iss\":\"" TOKENS_ISSUER "\",\"aud\":\"sessile\",\"sub\":\"ann\"," \
    "\"exp\":" value "}"

static tokens t;

static const jws_claims *verified(const char *token)
{
    const jws_claims *claims;
    jws_refusal refusal;
    sessile_error err = {0};
    sessile_status status =
        jws_verify(t.v, (sessile_slice){token, strlen(token)}, &claims, &refusal, &err);
    if (status)
        print_error("%s: %s\n", token, jws_reason_name(refusal.reason));
    assert_int_equal(status, SESSILE_OK);
    return claims;
}

static const jws_claims *verified_payload(const char *payload)
{
    char *token = signer_token(t.signer, ED, H_ED, payload);
    const jws_claims *claims = verified(token);
    free(token);
    return claims;
}

static void assert_text(sessile_slice got, const char *wanted)
{
    assert_int_equal(got.size, strlen(wanted));
    assert_string_equal(got.data, wanted); /* with its NUL */
}

/* ---------------------------------------------------------------------- what is taken */

static void token_of_each_algorithm_is_accepted(void **state)
{
    (void)state;
    for (signer_key key = SIGNER_ED25519; key <= SIGNER_SECRET; key++) {
        char *header = tokens_header(key);
        tokens_expect(&t, header, tokens_judge_signed(&t, key, header, P_ALL),
                      JWS_ACCEPTED);
        free(header);
    }
}

static void harmless_headers_are_accepted(void **state)
{
    static const char *const headers[] = {
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"typ\":\"JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"typ\":\"jwt\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"typ\":\"at+JWT\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"typ\":\"application/at+jwt\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"x5t\":\"AAAA\",\"x5t#S256\":\"AAAA\"}",
        "{\"alg\":\"EdDSA\",\"kid\":\"ed\",\"of the issuer\":[{},{\"a\":[1e400]}]}",
        "{\"alg\":\"EdD\\u0053A\",\"ki\\u0064\":\"\\u0065d\"}",
        " {\r\n\t\"kid\" : \"ed\" , \"alg\" : \"EdDSA\" } \n",
    };
    (void)state;
    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++)
        tokens_expect(&t, headers[i], tokens_judge_signed(&t, ED, headers[i], P_ALL),
                      JWS_ACCEPTED);
}

static void payloads_at_the_edge_are_accepted(void **state)
{
    static const char *const payloads[] = {
        P_EXP("1699999941"), /* 59 s ago */
        P_EXP("1699999940.001"),
        P_EXP("1700000600.75"),
        P_EXP("17000006e2"),
        P_EXP("1.7000006e+9"),
        P_EXP("1700086460"),                    /* 24 h, and the skew */
        P_EXP("1700086400,\"iat\":1700000000"), /* 24 h exactly */
        P_EXP("1700086460,\"iat\":1700000060"), /* the issuer's clock is a minute ahead */
        P_EXP("1699999950,\"iat\":1699999000"),
        P("\"nbf\":1700000060"),
        P("\"nbf\":0"),
        P("\"iat\":1700000060"),
        P("\"iat\":1699999999.5"),
        P("\"x\":1e400,\"y\":-1e400,\"z\":null"), /* nothing that is asked for */
        P("\"act\":{}"),
        P("\"roles\":[]"),
        " " P_ALL "\r\n",
        "{\"iss\":\"https:\\/\\/id.example\",\"aud\":[\"other\",\"s\\u0065ssile\"],"
        "\"sub\":\"ann\",\"exp\":1700000600}",
    };
    (void)state;
    for (size_t i = 0; i < sizeof payloads / sizeof *payloads; i++)
        tokens_expect(&t, payloads[i], tokens_judge_signed(&t, ED, H_ED, payloads[i]),
                      JWS_ACCEPTED);
}

/* 8192 bytes are taken, 8193 are not. */
static void largest_token_is_accepted(void **state)
{
    char payload[8192];
    (void)state;
    for (size_t all = 6049; all <= 6050; all++) {
        size_t size = (size_t)sprintf(payload, "{" TOKENS_PLAIN ",\"x\":\"");
        memset(payload + size, 'x', all - size);
        strcpy(payload + all - 2, "\"}");
        char *token = signer_token(t.signer, ED, H_ED "  ", payload);
        assert_int_equal(strlen(token), all == 6049 ? 8192 : 8193);
        tokens_expect(&t, "large", tokens_judge(&t, token, strlen(token)),
                      all == 6049 ? JWS_ACCEPTED : JWS_SIZE);
        free(token);
    }
}

/* ---------------------------------------------------------------------- what it says */

static void claims_are_read(void **state)
{
    const jws_claims *c = verified_payload(
        P("\"roles\":[\"viewer\",\"admin\"],\"agents\":[\"coder\",\"doc*\"],"
          "\"act\":{\"sub\":\"svc-7\",\"iss\":\"x\"},\"jti\":\"7f\",\"iat\":1700000000"));
    (void)state;
    assert_text(c->user, "ann");
    assert_text(c->issuer, TOKENS_ISSUER);
    assert_text(c->actor, "svc-7");
    assert_text(c->token_id, "7f");
    assert_int_equal(c->role_count, 2);
    assert_text(c->roles[0], "viewer");
    assert_text(c->roles[1], "admin");
    assert_int_equal(c->agent_count, 2);
    assert_text(c->agents[0], "coder");
    assert_text(c->agents[1], "doc*");
    assert_int_equal(c->expires_ms, 1700000660000);
    jws_release(t.v, c);
}

static void missing_claims_are_empty(void **state)
{
    const jws_claims *c = verified_payload(P_ALL);
    (void)state;
    assert_text(c->actor, "");
    assert_text(c->token_id, "");
    assert_int_equal(c->role_count, 0);
    assert_int_equal(c->agent_count, 0);
    jws_release(t.v, c);
}

static void list_may_be_one_string_of_words(void **state)
{
    const jws_claims *c =
        verified_payload(P("\"roles\":\" viewer  admin\\u0020x \",\"agents\":\"coder\""));
    (void)state;
    assert_int_equal(c->role_count, 3);
    assert_text(c->roles[0], "viewer");
    assert_text(c->roles[1], "admin");
    assert_text(c->roles[2], "x");
    assert_int_equal(c->agent_count, 1);
    assert_text(c->agents[0], "coder");
    jws_release(t.v, c);
}

static void long_lists_are_read_whole(void **state)
{
    char array[4000] = "\"roles\":[\"r0\"", words[4000] = "\"agents\":\"a";
    char payload[8192];
    (void)state;
    for (int i = 1; i < 400; i++) {
        sprintf(array + strlen(array), ",\"r%d\"", i);
        strcat(words, " a");
    }
    sprintf(payload, "{" TOKENS_PLAIN ",%s],%s\"}", array, words);
    const jws_claims *c = verified_payload(payload);
    assert_int_equal(c->role_count, 400);
    assert_text(c->roles[399], "r399");
    assert_int_equal(c->agent_count, 400);
    assert_text(c->agents[399], "a");
    jws_release(t.v, c);
}

static void escapes_are_decoded(void **state)
{
    const jws_claims *c = verified_payload("{\"iss\":\"" TOKENS_ISSUER
                                           "\",\"aud\":\"sessile\",\"exp\":1700000600,"
                                           "\"sub\":\"\\u00e4\\ud83d\\ude00\\\"\\/ b\"}");
    (void)state;
    assert_text(c->user, "\xc3\xa4\xf0\x9f\x98\x80\"/ b");
    jws_release(t.v, c);
}

static void claims_have_the_names_that_were_set(void **state)
{
    const jws_options options = {.keys = t.path,
                                 .issuer = TOKENS_ISSUER,
                                 .audience = "sessile",
                                 .user = "https://example.com/user",
                                 .roles = "/realm_access/roles",
                                 .agents = "/a~1b/c~0d",
                                 .actor = "azp"};
    jws_verifier *usual = t.v;
    sessile_error err;
    (void)state;
    must(jws_open(&t.v, &options, &t.os, &allocator_default, &err), &err);
    const jws_claims *c = verified_payload(
        P("\"https://example.com/user\":\"bob\",\"realm_access\":{\"roles\":[\"r\"]},"
          "\"roles\":[\"no\"],\"a/b\":{\"c~d\":\"x y\"},\"azp\":\"app\""));
    assert_text(c->user, "bob");
    assert_int_equal(c->role_count, 1);
    assert_text(c->roles[0], "r");
    assert_int_equal(c->agent_count, 2);
    assert_text(c->actor, "app");
    jws_release(t.v, c);
    tokens_expect(&t, "no user", tokens_judge_signed(&t, ED, H_ED, P_ALL), JWS_MISSING);
    tokens_expect(&t, "a parent that is no object",
                  tokens_judge_signed(&t, ED, H_ED,
                                      P("\"https://example.com/user\":\"bob\","
                                        "\"realm_access\":[\"admin\"]")),
                  JWS_CLAIM);
    jws_close(t.v);
    t.v = usual;
}

static void verifier_without_what_it_needs_is_INVALID(void **state)
{
    jws_options options = {
        .keys = t.path, .issuer = TOKENS_ISSUER, .audience = "sessile"};
    const char **fields[] = {&options.keys, &options.issuer, &options.audience};
    static const char *const names[] = {"`keys`", "`issuer`", "`audience`"};
    jws_verifier *v;
    sessile_error err;
    (void)state;
    for (size_t i = 0; i < 3; i++) {
        const char *was = *fields[i];
        *fields[i] = NULL;
        assert_refused(jws_open(&v, &options, &t.os, &allocator_default, &err),
                       SESSILE_INVALID, &err, names[i]);
        *fields[i] = "";
        assert_refused(jws_open(&v, &options, &t.os, &allocator_default, &err),
                       SESSILE_INVALID, &err, names[i]);
        assert_null(v);
        *fields[i] = was;
    }
}

/* ---------------------------------------------------------------------- known tokens */

static void verified_token_is_known_until_it_expires(void **state)
{
    char *token = signer_token(t.signer, ED, H_ED, P("\"iat\":1699999970"));
    int64_t now = t.now_ms;
    (void)state;
    const jws_claims *first = verified(token), *again = verified(token);
    assert_ptr_equal(first, again); /* the same block: it was not read again */
    t.now_ms = INT64_C(1700000659999);
    const jws_claims *last = verified(token);
    assert_ptr_equal(first, last);
    t.now_ms = INT64_C(1700000660000);
    tokens_expect(&t, "known", tokens_judge(&t, token, strlen(token)), JWS_EXPIRED);
    tokens_expect(&t, "not known", tokens_judge(&t, token, strlen(token)), JWS_EXPIRED);
    t.now_ms = now;
    jws_release(t.v, verified(token)); /* the clock was set back: known once more */
    t.now_ms = INT64_C(1699999900000);
    tokens_expect(&t, "before iat", tokens_judge(&t, token, strlen(token)), JWS_EARLY);
    t.now_ms = now;
    assert_text(first->user, "ann"); /* still ours */
    jws_release(t.v, first);
    jws_release(t.v, again);
    jws_release(t.v, last);
    free(token);
}

/* A token that differs in one byte is another token, also beside a known one. */
static void changed_token_is_not_found_as_the_known_one(void **state)
{
    char *token = signer_token(t.signer, ED, H_ED, P_ALL);
    (void)state;
    jws_release(t.v, verified(token));
    for (size_t i = 0; token[i]; i++) {
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        assert_int_not_equal(tokens_judge(&t, token, strlen(token)), JWS_ACCEPTED);
        token[i] = was;
    }
    jws_release(t.v, verified(token));
    free(token);
}

static void more_tokens_than_are_known_are_verified(void **state)
{
    enum { TOKENS = 300 };
    char *all[TOKENS], payload[300];
    (void)state;
    for (int i = 0; i < TOKENS; i++) {
        sprintf(payload, "{" TOKENS_PLAIN ",\"jti\":\"%d\"}", i);
        all[i] = signer_token(t.signer, ED, H_ED, payload);
    }
    for (int round = 0; round < 2; round++)
        for (int i = 0; i < TOKENS; i++) {
            const jws_claims *c = verified(all[i]);
            assert_int_equal(atoi(c->token_id.data), i);
            jws_release(t.v, c);
        }
    for (int i = 0; i < TOKENS; i++)
        free(all[i]);
}

typedef struct caller {
    char *right[5], *wrong;
    size_t mistakes;
} caller;

static void *verify_many(void *arg)
{
    caller *me = arg;
    for (int i = 0; i < 300; i++) {
        const jws_claims *claims;
        jws_refusal refusal;
        const char *token = i % 6 == 5 ? me->wrong : me->right[i % 6];
        sessile_status status = jws_verify(t.v, (sessile_slice){token, strlen(token)},
                                           &claims, &refusal, NULL);
        me->mistakes += status != (i % 6 == 5 ? SESSILE_DENIED : SESSILE_OK);
        if (claims)
            me->mistakes += strcmp(claims->user.data, "ann") != 0;
        jws_release(t.v, claims);
    }
    return NULL;
}

static void several_threads_verify_at_the_same_time(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    caller callers[THREADS];
    char payload[300];
    (void)state;
    for (int i = 0; i < THREADS; i++) {
        callers[i].mistakes = 0;
        for (signer_key key = SIGNER_ED25519; key <= SIGNER_SECRET; key++) {
            char *header = tokens_header(key);
            sprintf(payload, "{" TOKENS_PLAIN ",\"jti\":\"t%d\"}", i / 2);
            callers[i].right[key] = signer_token(t.signer, key, header, payload);
            free(header);
        }
        callers[i].wrong = signer_token(t.signer, SIGNER_OTHER, H_ED, P_ALL);
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, verify_many, &callers[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(callers[i].mistakes, 0);
        for (int key = 0; key < 5; key++)
            free(callers[i].right[key]);
        free(callers[i].wrong);
    }
}

/* ---------------------------------------------------------------------- its manners */

/* Each allocation fails once: NOMEM, nothing is lost, and the next call is right. */
static void no_memory_is_NOMEM_and_decides_nothing(void **state)
{
    const jws_options options = {
        .keys = t.path, .issuer = TOKENS_ISSUER, .audience = "sessile"};
    char *header = tokens_header(SIGNER_P256);
    char *token = signer_token(t.signer, SIGNER_P256, header, P("\"jti\":\"a\\/b\""));
    rations r = {-1, 0};
    const allocator a = {ration, &r};
    sessile_status status = SESSILE_NOMEM;
    jws_verifier *v;
    const jws_claims *claims;
    jws_refusal refusal;
    sessile_error err;
    (void)state;
    for (long n = 0; status; n++) {
        r.left = n;
        status = jws_open(&v, &options, &t.os, &a, &err);
        assert_true(!status || status == SESSILE_NOMEM);
        if (!status)
            jws_close(v);
        assert_int_equal(r.live, 0);
    }
    r.left = -1;
    must(jws_open(&v, &options, &t.os, &a, &err), &err);
    status = SESSILE_NOMEM;
    for (long n = 0; status; n++) {
        r.left = n;
        status =
            jws_verify(v, (sessile_slice){token, strlen(token)}, &claims, &refusal, &err);
        assert_true(!status || (status == SESSILE_NOMEM && !claims));
    }
    assert_true(claims != NULL);
    jws_release(v, claims);
    jws_close(v);
    assert_int_equal(r.live, 0);
    free(token);
    free(header);
}

/* The queue of errors is the thread's, and the host may look at it. */
static void OpenSSL_is_left_as_it_was(void **state)
{
    static const signer_key keys[] = {SIGNER_P256, SIGNER_RSA, SIGNER_PSS};
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD);
    unsigned long (*peek)(void);
    unsigned char zeros[256] = {0};
    (void)state;
    assert_non_null(library);
    void *found = dlsym(library, "ERR_peek_error");
    assert_non_null(found);
    memcpy(&peek, &found, sizeof peek);
    assert_int_equal(peek(), 0);
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char *header = tokens_header(keys[i]);
        char *token =
            signer_forge(header, P_ALL, zeros, keys[i] == SIGNER_P256 ? 64 : 256);
        tokens_expect(&t, header, tokens_judge(&t, token, strlen(token)), JWS_SIGNATURE);
        assert_int_equal(peek(), 0);
        free(token);
        free(header);
    }
    dlclose(library);
}

static void each_reason_has_a_name_and_a_sentence(void **state)
{
    (void)state;
    for (int i = 0; i < JWS_REASON_COUNT; i++) {
        assert_true(*jws_reason_name((jws_reason)i) != '\0');
        assert_true(strlen(jws_reason_sentence((jws_reason)i)) > 10);
        for (int other = 0; other < i; other++)
            assert_string_not_equal(jws_reason_name((jws_reason)i),
                                    jws_reason_name((jws_reason)other));
    }
    assert_string_equal(jws_reason_name(JWS_EXPIRED), "expired");
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
        cmocka_unit_test(token_of_each_algorithm_is_accepted),
        cmocka_unit_test(harmless_headers_are_accepted),
        cmocka_unit_test(payloads_at_the_edge_are_accepted),
        cmocka_unit_test(largest_token_is_accepted),
        cmocka_unit_test(claims_are_read),
        cmocka_unit_test(missing_claims_are_empty),
        cmocka_unit_test(list_may_be_one_string_of_words),
        cmocka_unit_test(long_lists_are_read_whole),
        cmocka_unit_test(escapes_are_decoded),
        cmocka_unit_test(claims_have_the_names_that_were_set),
        cmocka_unit_test(verifier_without_what_it_needs_is_INVALID),
        cmocka_unit_test(verified_token_is_known_until_it_expires),
        cmocka_unit_test(changed_token_is_not_found_as_the_known_one),
        cmocka_unit_test(more_tokens_than_are_known_are_verified),
        cmocka_unit_test(several_threads_verify_at_the_same_time),
        cmocka_unit_test(no_memory_is_NOMEM_and_decides_nothing),
        cmocka_unit_test(OpenSSL_is_left_as_it_was),
        cmocka_unit_test(each_reason_has_a_name_and_a_sentence),
    };
    return cmocka_run_group_tests_name("vault/jws", tests, start_all, end_all);
}
