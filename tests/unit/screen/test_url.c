/*
 * test_url.c: URLs in a text: the corpus of attacks and of ordinary texts, what is
 * allowed, and where what was found is.
 */
#include "support/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "screen/url.h"
#include "sessile_screen.h"
#include "support/urls.h"

static sessile_url_found found;
static sessile_error err;

static sessile_status check(const char *text, const char *allow, int only)
{
    sessile_slice item = sessile_text(allow);
    sessile_url_options options = {
        .allow = &item, .allow_count = allow != NULL, .only_allowed = only};
    return sessile_url_check(sessile_text(text), &options, &found, &err);
}

static void test_attacks_are_refused(void **state)
{
    (void)state;
    assert_true(url_attack_count >= 146);
    for (size_t i = 0; i < url_attack_count; i++) {
        if (check(url_attacks[i].text, NULL, 0) != SESSILE_DENIED)
            fail_msg("not refused: %s", url_attacks[i].text);
        assert_string_equal(found.rule, url_attacks[i].rule);
        assert_null(strstr(err.message, url_attacks[i].text));
    }
}

static void test_ordinary_texts_are_not(void **state)
{
    (void)state;
    assert_true(url_ordinary_count >= 48);
    for (size_t i = 0; i < url_ordinary_count; i++) {
        if (check(url_ordinary[i], NULL, 0))
            fail_msg("refused: %s: %s", url_ordinary[i], err.message);
        assert_null(found.rule);
    }
}

/* An attack is found wherever it stands, also behind other URLs. */
static void test_an_attack_is_found_in_a_long_text(void **state)
{
    static const char attack[] = "http://169.254.169.254/x";
    size_t size = 0, room = 1 << 18;
    char *text = malloc(room);
    (void)state;
    assert_non_null(text);
    while (size + 200 < room)
        size += (size_t)snprintf(text + size, room - size, "%s ",
                                 url_ordinary[size % url_ordinary_count]);
    assert_int_equal(sessile_url_check((sessile_slice){text, size}, NULL, &found, &err),
                     SESSILE_OK);
    for (size_t shift = 0; shift < 16; shift++) {
        memset(text + size, ' ', shift);
        memcpy(text + size + shift, attack, sizeof attack);
        assert_int_equal(
            sessile_url_check((sessile_slice){text, size + shift + sizeof attack}, NULL,
                              &found, &err),
            SESSILE_DENIED);
        assert_int_equal(found.offset, size + shift);
        assert_int_equal(found.size, strlen("http://169.254.169.254"));
    }
    free(text);
}

static void test_the_first_one_is_named(void **state)
{
    (void)state;
    check("see https://example.org/ and http://10.0.0.1:80/x, http://127.0.0.1", NULL, 0);
    assert_string_equal(found.rule, "private");
    assert_int_equal(found.offset, 29);
    assert_int_equal(found.size, strlen("http://10.0.0.1:80"));
    assert_refused(err.code, SESSILE_DENIED, &err, "the URL at byte 29");
    assert_says(&err, "a private address (10.0.0.0/8)");
}

static void test_hosts_are_allowed(void **state)
{
    static const struct {
        const char *allow, *yes, *no;
    } cases[] = {
        {"localhost:3000", "http://localhost:3000/x", "http://localhost:3001/"},
        {"localhost:3000", "http://127.0.0.1:3000", "http://127.0.0.2:3000"},
        {"localhost:3000", "http://[::1]:3000/", "http://localhost/"},
        {"localhost", "http://LOCALHOST.:99/", "http://foo.localhost/"},
        {".localhost", "http://foo.localhost/", "http://fooLocalhost/"},
        {".corp", "http://wiki.corp/", "http://wiki.lan/"},
        {"10.0.0.5", "http://167772165/", "http://10.0.0.6/"},
        {"10.0.0.5", "http://[::ffff:10.0.0.5]/", "http://[::ffff:10.0.0.6]/"},
        {"10.0.0.0/8", "http://10.9.8.7:80/", "http://192.168.0.1/"},
        {"[fd00::]/8", "http://[fd00::1]/", "http://[fc00::1]/"},
        {"db:5432", "postgres://u:p@db:5432/x", "postgres://u:p@db/x"},
        {"wiki:443", "https://wiki/", "http://wiki/"},
        {"example.org", "http://example.org/", "http://example.org@127.0.0.1/"},
        {"127.0.0.1", "http://127.0.0.1/", "http://010.0.0.1/"},
        {".nip.io", "http://10.0.0.1.nip.io/", "http://10.0.0.1.sslip.io/"},
        {"localhost", "http://localhost/", "file:///localhost/"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (check(cases[i].yes, cases[i].allow, 0))
            fail_msg("%s with %s: %s", cases[i].yes, cases[i].allow, err.message);
        if (check(cases[i].no, cases[i].allow, 0) != SESSILE_DENIED)
            fail_msg("%s with %s is not refused", cases[i].no, cases[i].allow);
    }
}

static void test_only_what_is_allowed_passes(void **state)
{
    static const char *const yes[] = {"https://example.org/",
                                      "https://a.b.example.org:8080/x?file=report.pdf",
                                      "no URL, // a comment",
                                      "//example.org/x",
                                      "https://ann.lee:pw@example.org/",
                                      "s3://bucket/key"};
    static const char *const no[] = {"https://example.com/",
                                     "https://notexample.org/",
                                     "http://8.8.8.8/",
                                     "https://example.org.evil.io",
                                     "https://example.org@evil.io/",
                                     "//evil.io/x",
                                     "https://evil.io\\@example.org/",
                                     "https://example.org\\@evil.io/",
                                     "http://[2606:4700::1]/"};
    (void)state;
    for (size_t i = 0; i < sizeof yes / sizeof *yes; i++)
        if (check(yes[i], ".example.org", 1))
            fail_msg("%s: %s", yes[i], err.message);
    for (size_t i = 0; i < sizeof no / sizeof *no; i++) {
        if (check(no[i], ".example.org", 1) != SESSILE_DENIED)
            fail_msg("%s is not refused", no[i]);
        assert_string_equal(found.rule, "not-allowed");
    }
    assert_int_equal(check("https://example.org/", NULL, 1), SESSILE_DENIED);
}

static void test_a_long_host_is_refused(void **state)
{
    char text[2000];
    (void)state;
    memset(text, 'a', sizeof text);
    memcpy(text, "http://", 7);
    memcpy(text + 1500, "@127.0.0.1/", 12);
    assert_int_equal(check(text, NULL, 0), SESSILE_DENIED);
    assert_string_equal(found.rule, "not-a-host");
    for (size_t i = 7; i < 1400; i += 4)
        memcpy(text + i, "a.b@", 4); /* whatever its parts are */
    memcpy(text + 1407, "127.0.0.1/", 11);
    assert_int_equal(check(text, NULL, 0), SESSILE_DENIED);
    assert_string_equal(found.rule, "not-a-host");
    memset(text + 7, '0', 900);
    strcpy(text + 900, "177.0.0.1/"); /* inet_aton() reads any number of zeros */
    assert_int_equal(check(text, NULL, 0), SESSILE_DENIED);
    assert_string_equal(found.rule, "loopback");
}

/* Without libidn2 a name that is not ASCII is refused, and the sentence says what to do.
 * Other texts do not need it. */
static void test_without_libidn2(void **state)
{
    static const char *const texts[] = {"https://m\xc3\xbcnchen.de/",
                                        "http://%E2%91%A0.0.0.1/",
                                        "//\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.1/"};
    sessile_url_options options = {.allow = NULL};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        assert_refused(url_check(sessile_text(texts[i]), &options, "libidn2-is-absent.so",
                                 &found, &err),
                       SESSILE_DENIED, &err, "install libidn2-0");
        assert_string_equal(found.rule, "no-libidn2");
    }
    must(url_check(sessile_text("m\xc3\xbcnchen: https://example.org/\xc3\xbc"), &options,
                   "libidn2-is-absent.so", &found, &err),
         &err);
}

/* What takes long to look at may not take long for each of its bytes. */
static void test_hostile_texts_end(void **state)
{
    static const char *const pieces[] = {"http:1",  ".\\\\1",     "//",       "%2F%2F1",
                                         "x:\\\\a", "http://a\n", "http:1\n", "a@",
                                         ":",       "[",          "://"};
    size_t size = 1 << 20;
    char *text = malloc(size);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        size_t length = strlen(pieces[i]);
        for (size_t at = 0; at < size; at++)
            text[at] = pieces[i][at % length];
        sessile_status status =
            sessile_url_check((sessile_slice){text, size}, NULL, &found, &err);
        assert_true(status == SESSILE_OK || status == SESSILE_DENIED);
    }
    free(text);
}

static void test_wrong_arguments_are_refused(void **state)
{
    sessile_slice allow[] = {{"example.org", 11}, {"http://x", 8}};
    sessile_slice no_data = {NULL, 3};
    sessile_url_options options = {.allow = allow, .allow_count = 2};
    (void)state;
    found.rule = "old";
    assert_refused(sessile_url_check(sessile_text("x"), &options, &found, &err),
                   SESSILE_INVALID, &err, "item 2");
    assert_null(found.rule);
    assert_refused(sessile_url_check(no_data, NULL, &found, &err), SESSILE_INVALID, &err,
                   "text");
    options.allow = NULL;
    assert_refused(sessile_url_check(sessile_text("x"), &options, NULL, &err),
                   SESSILE_INVALID, &err, "allow");
    must(sessile_url_check(sessile_text(NULL), NULL, NULL, NULL), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_attacks_are_refused),
        cmocka_unit_test(test_ordinary_texts_are_not),
        cmocka_unit_test(test_an_attack_is_found_in_a_long_text),
        cmocka_unit_test(test_the_first_one_is_named),
        cmocka_unit_test(test_hosts_are_allowed),
        cmocka_unit_test(test_only_what_is_allowed_passes),
        cmocka_unit_test(test_a_long_host_is_refused),
        cmocka_unit_test(test_without_libidn2),
        cmocka_unit_test(test_hostile_texts_end),
        cmocka_unit_test(test_wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
