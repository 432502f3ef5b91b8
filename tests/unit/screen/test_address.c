/*
 * test_address.c: addresses by the registries, and connections that are allowed.
 */
#include "support/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>

#include "sessile_screen.h"

static sessile_status judge(const char *text, const char *allow, int port,
                            sessile_error *err)
{
    unsigned char bytes[16];
    int six = strchr(text, ':') != NULL;
    sessile_slice item = sessile_text(allow);
    sessile_url_options options;
    assert_int_equal(inet_pton(six ? AF_INET6 : AF_INET, text, bytes), 1);
    sessile_url_options_init(&options);
    options.allow = &item;
    options.allow_count = allow != NULL;
    return sessile_address_check(six ? SESSILE_IPV6 : SESSILE_IPV4, bytes, port, &options,
                                 err);
}

static void assert_denied(const char *text, const char *rule)
{
    char shown[40];
    sessile_error err;
    snprintf(shown, sizeof shown, "[%s]", rule);
    if (judge(text, NULL, 0, &err) != SESSILE_DENIED)
        fail_msg("%s is not refused", text);
    assert_refused(err.code, SESSILE_DENIED, &err, shown);
}

static void assert_public(const char *text)
{
    sessile_error err;
    if (judge(text, NULL, 0, &err))
        fail_msg("%s is refused: %s", text, err.message);
}

/* The first and the last address of each block, and their neighbours. */
static void test_blocks_end_where_the_registries_say(void **state)
{
    static const struct {
        const char *before, *first, *last, *after, *rule; /* NULL: another block */
    } edges[] = {
        {NULL, "0.0.0.0", "0.255.255.255", "1.0.0.0", "this-network"},
        {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0", "private"},
        {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0", "private"},
        {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0", "loopback"},
        {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0",
         "link-local"},
        {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0", "private"},
        {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0", "special"},
        {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0", "special"},
        {"192.31.195.255", "192.31.196.0", "192.31.196.255", "192.31.197.0", "special"},
        {"192.52.192.255", "192.52.193.0", "192.52.193.255", "192.52.194.0", "special"},
        {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0", "special"},
        {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0", "private"},
        {"192.175.47.255", "192.175.48.0", "192.175.48.255", "192.175.49.0", "special"},
        {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0", "special"},
        {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0", "special"},
        {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0", "special"},
        {"223.255.255.255", "224.0.0.0", "239.255.255.255", NULL, "multicast"},
        {NULL, "240.0.0.0", "255.255.255.255", NULL, "special"},
        {NULL, "2001::", "2001:1ff:ffff::", "2001:200::", "special"},
        {"2001:db7:ffff::", "2001:db8::", "2001:db8:ffff::", "2001:db9::", "special"},
        {"2620:4f:7fff:ffff::", "2620:4f:8000::", "2620:4f:8000:ffff::", "2620:4f:8001::",
         "special"},
        {"3ffe:ffff::", "3fff::", "3fff:fff:ffff::", "3fff:1000::", "special"},
        {NULL, "fc00::", "fdff:ffff::", NULL, "private"},
        {NULL, "fe80::", "febf:ffff::", NULL, "link-local"},
        {NULL, "ff00::", "ffff:ffff::", NULL, "multicast"},
        {NULL, "4000::", "fbff:ffff::", NULL, "special"},
        {NULL, "64:ff9b:1::", "64:ff9b:1:ffff::", NULL, "special"},
        {NULL, "100::", "1fff:ffff::", "2000::", "special"},
        {NULL, "::1", "::1", NULL, "loopback"},
        {NULL, "::", "::", NULL, "this-network"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
        assert_denied(edges[i].first, edges[i].rule);
        assert_denied(edges[i].last, edges[i].rule);
        if (edges[i].before)
            assert_public(edges[i].before);
        if (edges[i].after)
            assert_public(edges[i].after);
    }
}

static void test_metadata_is_refused_also_where_it_is_public(void **state)
{
    (void)state;
    assert_denied("169.254.169.254", "metadata");
    assert_denied("169.254.170.2", "metadata");
    assert_denied("168.63.129.16", "metadata");
    assert_denied("100.100.100.200", "metadata");
    assert_denied("192.0.0.192", "metadata");
    assert_denied("fd00:ec2::254", "metadata");
    assert_denied("fd20:ce::254", "metadata");
    assert_denied("fd00:42::42", "metadata");
    assert_public("168.63.129.17");
}

static void test_an_address_inside_another_counts(void **state)
{
    static const char *const carriers[] = {"::ffff:%s",     "::%s",
                                           "::ffff:0:%s",   "64:ff9b::%s",
                                           "2a00::5efe:%s", "2a00::200:5efe:%s"};
    char text[80];
    (void)state;
    for (size_t i = 0; i < sizeof carriers / sizeof *carriers; i++) {
        snprintf(text, sizeof text, carriers[i], "127.0.0.1");
        assert_denied(text, "loopback");
        snprintf(text, sizeof text, carriers[i], "169.254.169.254");
        assert_denied(text, "metadata");
        snprintf(text, sizeof text, carriers[i], "8.8.8.8");
        assert_public(text);
    }
    assert_denied("2002:0a00:0001::1", "private");
    assert_public("2002:0808:0808::1");
    assert_denied("2001:0:808:808::1", "special"); /* Teredo, whatever is inside */
    assert_denied("fe80::5efe:8.8.8.8", "link-local");
}

static void test_what_is_allowed_may_be_connected_to(void **state)
{
    sessile_error err;
    (void)state;
    must(judge("127.0.0.1", "localhost:3000", 3000, &err), &err);
    must(judge("::1", "localhost:3000", 3000, &err), &err);
    must(judge("::ffff:127.0.0.1", "localhost", 80, &err), &err);
    must(judge("10.1.2.3", "10.0.0.0/8", 80, &err), &err);
    must(judge("10.1.2.3", "10.1.2.3:80", 80, &err), &err);
    must(judge("::ffff:10.1.2.3", "10.1.2.3:80", 80, &err), &err);
    must(judge("::ffff:10.1.2.3", "::ffff:10.1.2.3", 80, &err), &err);
    must(judge("10.1.2.3", "[::ffff:10.1.0.0]/112", 80, &err), &err);
    must(judge("fd00::7", "fd00::7", 80, &err), &err);
    must(judge("fd00::7", "[fd00::7]:80", 80, &err), &err);
    must(judge("fd12::7", "[fd00::]/8", 0, &err), &err);
    must(judge("10.1.2.3", "0.0.0.0/0", 0, &err), &err);

    assert_refused(judge("127.0.0.1", "localhost:3000", 3001, &err), SESSILE_DENIED, &err,
                   "127.0.0.0/8");
    assert_refused(judge("127.0.0.1", "localhost:3000", 0, &err), SESSILE_DENIED, &err,
                   "[loopback]");
    assert_refused(judge("10.2.2.3", "[::ffff:10.1.0.0]/112", 80, &err), SESSILE_DENIED,
                   &err, "");
    assert_refused(judge("127.0.0.2", "localhost", 80, &err), SESSILE_DENIED, &err, "");
    assert_refused(judge("11.0.0.1", "10.0.0.0/7", 80, &err), SESSILE_OK, &err, "");
    assert_refused(judge("192.168.0.1", "10.0.0.0/8", 80, &err), SESSILE_DENIED, &err,
                   "[private]");
    assert_refused(judge("10.0.0.1", ".example.org", 80, &err), SESSILE_DENIED, &err, "");
}

static void test_wrong_arguments_are_refused(void **state)
{
    static const char *const wrong[] = {
        "",          ":80",       ".",           "[::1",
        "[::1]80",   "[::1]:",    "[x]",         "a b",
        "http://x",  "x/8",       "10.0.0.0/33", "[::]/129",
        "10.0.0/-1", "x:0",       "x:65536",     "x:y",
        "1.2.3.4.5", "010.0.0.1", "0x7f.1:",     "m\xc3\xbcnchen.de",
        "*.x.org",   "256.1.1.1"};
    sessile_error err;
    char bytes[16] = {8, 8, 8, 8};
    (void)state;
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        if (judge("8.8.8.8", wrong[i], 0, &err) != SESSILE_INVALID)
            fail_msg("\"%s\" is taken", wrong[i]);
        assert_refused(err.code, SESSILE_INVALID, &err, "item 1");
    }
    assert_refused(sessile_address_check(5, bytes, 0, NULL, &err), SESSILE_INVALID, &err,
                   "family");
    assert_refused(sessile_address_check(4, NULL, 0, NULL, &err), SESSILE_INVALID, &err,
                   "bytes");
    must(sessile_address_check(4, bytes, 0, NULL, NULL), NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_end_where_the_registries_say),
        cmocka_unit_test(test_metadata_is_refused_also_where_it_is_public),
        cmocka_unit_test(test_an_address_inside_another_counts),
        cmocka_unit_test(test_what_is_allowed_may_be_connected_to),
        cmocka_unit_test(test_wrong_arguments_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
