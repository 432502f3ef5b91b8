/*
 * test_keyset_changes.c: what happens when a JWKS file changes, and when OpenSSL is
 * loaded.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <dlfcn.h>
#include <fcntl.h>
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

/* ---------------------------------------------------------------------- changes */

static const signer_key first[] = {SIGNER_ED25519, SIGNER_KEYS};
static const signer_key second[] = {SIGNER_OTHER, SIGNER_KEYS};

static void judged(const char *what, signer_key key, jws_reason wanted)
{
    char *header = tokens_header(key);
    tokens_expect(&t, what, tokens_judge_signed(&t, key, header, "{" TOKENS_PLAIN "}"),
                  wanted);
    free(header);
}

static void changed_file_is_read_within_a_second(void **state)
{
    sessile_error err;
    (void)state;
    tokens_write_keys(&t, first);
    must(tokens_open(&t, &err), &err);
    judged("before", SIGNER_ED25519, JWS_ACCEPTED);
    tokens_write_keys(&t, second);
    t.clock_us += 999999;
    judged("not looked at yet", SIGNER_ED25519, JWS_ACCEPTED);
    judged("not looked at yet", SIGNER_OTHER, JWS_KEY);
    t.clock_us += 1;
    judged("a known token of a key that is gone", SIGNER_ED25519, JWS_KEY);
    judged("after", SIGNER_OTHER, JWS_ACCEPTED);
}

static void file_is_looked_at_once_a_second_and_read_once(void **state)
{
    sessile_error err;
    (void)state;
    tokens_write_keys(&t, first);
    must(tokens_open(&t, &err), &err);
    t.opens = t.stats = 0;
    for (int i = 0; i < 50; i++) {
        judged("again and again", SIGNER_ED25519, JWS_ACCEPTED);
        t.clock_us += 100000;
    }
    assert_in_range(t.stats, 4, 5);
    assert_int_equal(t.opens, 0);
}

/* A file that was written a moment ago may be written once more with the same times. */
static void file_that_is_new_is_read_again(void **state)
{
    sessile_error err;
    int64_t now = t.now_ms;
    (void)state;
    tokens_write_keys(&t, first);
    t.now_ms = os_posix.now_ms(NULL);
    must(tokens_open(&t, &err), &err);
    t.opens = 0;
    t.clock_us += 1000000;
    (void)tokens_judge(&t, "x", 1);
    assert_int_equal(t.opens, 1);
    t.now_ms += 10000;
    t.clock_us += 1000000;
    (void)tokens_judge(&t, "x", 1);
    assert_int_equal(t.opens, 2);
    t.clock_us += 1000000;
    (void)tokens_judge(&t, "x", 1);
    assert_int_equal(t.opens, 2); /* its times are old now */
    t.now_ms = now;
}

/* Old keys are not used on: one of them may have been removed on purpose. */
static void file_that_turned_bad_refuses_every_token(void **state)
{
    const struct {
        const char *text;
        unsigned mode;
        sessile_status status;
        const char *part;
    } bad[] = {{"{", 0600, SESSILE_INVALID, "no JSON object"},
               {SET(""), 0600, SESSILE_INVALID, "no key that"},
               {SET("{" ED "}"), 0666, SESSILE_DENIED, "chmod go-w"},
               {NULL, 0, SESSILE_NOTFOUND, "jwks.json"}};
    char *token = signer_token(t.signer, SIGNER_ED25519, "{\"alg\":\"EdDSA\"}",
                               "{" TOKENS_PLAIN "}");
    const jws_claims *claims;
    jws_refusal refusal;
    sessile_error err;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        tokens_write_keys(&t, first);
        must(tokens_open(&t, &err), &err);
        tokens_expect(&t, "good", tokens_judge(&t, token, strlen(token)), JWS_ACCEPTED);
        if (bad[i].text)
            tokens_write(&t, bad[i].text, bad[i].mode);
        else
            assert_int_equal(unlink(t.path), 0);
        t.clock_us += 1000000;
        for (int n = 0; n < 3; n++) {
            assert_int_equal(jws_verify(t.v, (sessile_slice){token, strlen(token)},
                                        &claims, &refusal, &err),
                             SESSILE_DENIED);
            assert_string_equal(err.message, "the credential is not accepted");
            assert_int_equal(refusal.reason, JWS_KEYSET);
            assert_int_equal(refusal.keyset.code, bad[i].status);
            assert_says(&refusal.keyset, bad[i].part);
        }
        tokens_write_keys(&t, first);
        t.clock_us += 1000000;
        tokens_expect(&t, "good again", tokens_judge(&t, token, strlen(token)),
                      JWS_ACCEPTED);
    }
    free(token);
}

/* A writer that does not rename: each time that the file was looked at, it grows, or is
 * written again with as many bytes. */
static int growths, grows;

static int write_meanwhile(void *ud, int fd, os_stat_info *out)
{
    int status = os_posix.stat_fd(NULL, fd, out);
    (void)ud;
    if (growths-- > 0 && grows) {
        FILE *f = fopen(t.path, "ab");
        assert_non_null(f);
        fputs(" ", f);
        fclose(f);
    } else if (growths >= 0) {
        const struct timespec times[2] = {{1000 + growths, 0}, {1000 + growths, 0}};
        assert_int_equal(utimensat(AT_FDCWD, t.path, times, 0), 0);
    }
    return status;
}

static void file_that_changes_while_it_is_read_is_read_again(void **state)
{
    sessile_error err = {SESSILE_OK, ""};
    (void)state;
    t.os.stat_fd = write_meanwhile;
    for (grows = 0; grows < 2; grows++) {
        tokens_write_keys(&t, first);
        growths = 1;
        t.opens = 0;
        must(tokens_open(&t, &err), &err);
        assert_int_equal(t.opens, 2);
        judged("read again", SIGNER_ED25519, JWS_ACCEPTED);
        growths = 1000;
        assert_refused(tokens_open(&t, &err), SESSILE_BUSY, &err, "rename");
    }
    t.os.stat_fd = os_posix.stat_fd;
}

/* ---------------------------------------------------------------------- OpenSSL */

static int is_loaded(void)
{
    void *library = dlopen("libcrypto.so.3", RTLD_NOW | RTLD_NOLOAD);
    if (library)
        dlclose(library);
    return library != NULL;
}

/* The first test: the signer is not there yet, which loads it too. */
static void OpenSSL_is_loaded_when_a_key_needs_it(void **state)
{
    char path[320];
    const jws_options options = {.keys = path, .issuer = "i", .audience = "a"};
    static const char *const texts[] = {
        SET("{" ED ",\"kid\":\"a\"},{\"kty\":\"oct\",\"k\":\"" K32 "\",\"kid\":\"b\"}"),
        SET("{" EC("P-256") "}")};
    const char *temporary = getenv("TMPDIR");
    jws_verifier *v;
    sessile_error err;
    (void)state;
    snprintf(path, sizeof path, "%.250s/keyset-%d", temporary ? temporary : "/tmp",
             (int)getpid());
    assert_false(is_loaded());
    for (int i = 0; i < 2; i++) {
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        fputs(texts[i], f);
        assert_int_equal(fclose(f), 0);
        assert_int_equal(chmod(path, 0600), 0);
        must(jws_open(&v, &options, &os_posix, &allocator_default, &err), &err);
        jws_close(v);
        assert_int_equal(is_loaded(), i);
    }
    assert_int_equal(unlink(path), 0);
    tokens_init(&t);
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
        cmocka_unit_test(OpenSSL_is_loaded_when_a_key_needs_it),
        cmocka_unit_test(changed_file_is_read_within_a_second),
        cmocka_unit_test(file_is_looked_at_once_a_second_and_read_once),
        cmocka_unit_test(file_that_is_new_is_read_again),
        cmocka_unit_test(file_that_turned_bad_refuses_every_token),
        cmocka_unit_test(file_that_changes_while_it_is_read_is_read_again),
    };
    return cmocka_run_group_tests_name("vault/keyset_changes", tests, NULL, end_all);
}
