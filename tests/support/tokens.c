/*
 * tokens.c: a verifier of tokens for tests.
 */
#include "support/tokens.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/check.h"

static int64_t now_ms(void *ud)
{
    return ((tokens *)ud)->now_ms;
}

static uint64_t clock_us(void *ud)
{
    return ((tokens *)ud)->clock_us;
}

static uint32_t uid(void *ud)
{
    return ((tokens *)ud)->uid;
}

static int open_at(void *ud, int dir, const char *path, int flags)
{
    ((tokens *)ud)->opens++;
    return os_posix.open_at(NULL, dir, path, flags);
}

static int stat_at(void *ud, int dir, const char *name, os_stat_info *out)
{
    ((tokens *)ud)->stats++;
    return os_posix.stat_at(NULL, dir, name, out);
}

void tokens_init(tokens *t)
{
    memset(t, 0, sizeof *t);
    t->signer = signer_new();
    t->os = os_posix;
    t->os.ud = t;
    t->os.now_ms = now_ms;
    t->os.clock_us = clock_us;
    t->os.uid = uid;
    t->os.open_at = open_at;
    t->os.stat_at = stat_at;
    t->now_ms = TOKENS_NOW * INT64_C(1000);
    t->clock_us = 5000000;
    t->uid = geteuid();
    const char *temporary = getenv("TMPDIR");
    snprintf(t->folder, sizeof t->folder, "%.250s/tokens-XXXXXX",
             temporary ? temporary : "/tmp");
    assert_non_null(mkdtemp(t->folder));
    snprintf(t->path, sizeof t->path, "%s/jwks.json", t->folder);
}

void tokens_deinit(tokens *t)
{
    jws_close(t->v);
    signer_free(t->signer);
    unlink(t->path);
    assert_int_equal(rmdir(t->folder), 0);
}

void tokens_write(tokens *t, const char *text, unsigned mode)
{
    char temporary[340];
    snprintf(temporary, sizeof temporary, "%s.new", t->path);
    FILE *f = fopen(temporary, "wb");
    assert_non_null(f);
    assert_int_equal(fwrite(text, 1, strlen(text), f), strlen(text));
    assert_int_equal(fclose(f), 0);
    assert_int_equal(chmod(temporary, mode), 0);
    assert_int_equal(rename(temporary, t->path), 0);
}

void tokens_write_keys(tokens *t, const signer_key *keys)
{
    char *text = signer_jwks(t->signer, keys);
    tokens_write(t, text, 0600);
    free(text);
}

sessile_status tokens_open(tokens *t, sessile_error *err)
{
    const jws_options options = {
        .keys = t->path, .issuer = TOKENS_ISSUER, .audience = "sessile"};
    jws_close(t->v);
    return jws_open(&t->v, &options, &t->os, &allocator_default, err);
}

void tokens_start(tokens *t)
{
    static const signer_key keys[] = {SIGNER_ED25519, SIGNER_P256,   SIGNER_RSA,
                                      SIGNER_PSS,     SIGNER_SECRET, SIGNER_KEYS};
    sessile_error err = {SESSILE_OK, ""};
    tokens_init(t);
    tokens_write_keys(t, keys);
    must(tokens_open(t, &err), &err);
}

jws_reason tokens_judge(tokens *t, const char *token, size_t size)
{
    const jws_claims *claims;
    jws_refusal refusal;
    sessile_error err = {SESSILE_OK, ""};
    sessile_status status =
        jws_verify(t->v, (sessile_slice){token, size}, &claims, &refusal, &err);
    if (!status) {
        assert_non_null(claims);
        assert_int_equal(refusal.reason, JWS_ACCEPTED);
    } else {
        assert_null(claims);
        assert_int_equal(status, SESSILE_DENIED);
        assert_int_equal(err.code, SESSILE_DENIED);
        assert_string_equal(err.message, "the credential is not accepted");
        assert_true(refusal.reason > JWS_ACCEPTED && refusal.reason < JWS_REASON_COUNT);
    }
    jws_release(t->v, claims);
    return refusal.reason;
}

jws_reason tokens_judge_signed(tokens *t, signer_key key, const char *header,
                               const char *payload)
{
    char *token = signer_token(t->signer, key, header, payload);
    jws_reason reason = tokens_judge(t, token, strlen(token));
    free(token);
    return reason;
}

void tokens_expect(tokens *t, const char *what, jws_reason got, jws_reason wanted)
{
    t->tried++;
    if (got != wanted) {
        print_error("%s: %s, not %s\n", what, jws_reason_name(got),
                    jws_reason_name(wanted));
    }
    assert_int_equal(got, wanted);
}

char *tokens_header(signer_key key)
{
    char *out = malloc(128);
    assert_non_null(out);
    snprintf(out, 128, "{\"alg\":\"%s\",\"kid\":\"%s\"}", signer_algorithm(key),
             signer_kid(key));
    return out;
}
