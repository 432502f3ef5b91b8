/*
 * test_url_resolve.c: names in URLs that are resolved, by a resolver of the test's; and
 * the real one.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <errno.h>

#include "base/os.h"
#include "screen/url.h"
#include "sessile_guard.h"
#include "support/check.h"
#include "support/sessions.h"

#include <cmocka.h>

/* What each name has. */
static const struct known {
    const char *name;
    int count, error;
    os_address list[3];
} known[] = {
    {"public.example.org", 1, 0, {{4, {93, 184, 216, 34}}}},
    {"ten.example.org", 1, 0, {{4, {10, 1, 2, 3}}}},
    {"both.example.org", 2, 0, {{4, {93, 184, 216, 34}}, {4, {169, 254, 169, 254}}}},
    {"six.example.org", 2, 0, {{6, {0x26, 6, 0x28}}, {6, {[15] = 1}}}},
    {"mapped.example.org", 1, 0, {{6, {[10] = 0xff, 0xff, 192, 168, 0, 1}}}},
    {"xn--mnchen-3ya.de", 1, 0, {{4, {127, 0, 0, 1}}}},
    {"late.example.org", -1, ETIMEDOUT, {{0, {0}}}},
    {"many.example.org", -1, E2BIG, {{0, {0}}}},
};

static os_table table;
static uint64_t now_us;
static int asked, given_ms, takes_ms;
static sessile_url_found found;
static sessile_error err;

static uint64_t clock_us(void *ud)
{
    (void)ud;
    return now_us;
}

static int resolve(void *ud, const char *name, int timeout_ms, os_address *out, int room)
{
    (void)ud;
    asked++;
    given_ms = timeout_ms;
    now_us += (uint64_t)takes_ms * 1000;
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        if (strcmp(known[i].name, name) != 0)
            continue;
        errno = known[i].error;
        assert_true(known[i].count <= room);
        if (known[i].count > 0)
            memcpy(out, known[i].list, (size_t)known[i].count * sizeof *out);
        return known[i].count;
    }
    errno = ENOENT;
    return -1;
}

static int set_up(void **state)
{
    (void)state;
    table = os_posix;
    table.clock_us = clock_us;
    table.resolve = resolve;
    os_current = &table;
    now_us = 1000000;
    asked = given_ms = takes_ms = 0;
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    os_current = &os_posix;
    return 0;
}

static sessile_status check(const char *text, const char *allow)
{
    sessile_slice item = sessile_text(allow);
    sessile_url_options options = {
        .allow = &item, .allow_count = allow != NULL, .resolve = 1};
    return sessile_url_check(sessile_text(text), &options, &found, &err);
}

static void expect(const char *text, const char *rule)
{
    sessile_status status = check(text, NULL);

    if (status != (rule ? SESSILE_DENIED : SESSILE_OK))
        fail_msg("%s: %s %s", text, sessile_status_name(status), err.message);
    if (rule)
        assert_string_equal(found.rule, rule);
}

static void a_name_is_refused_by_each_of_its_addresses(void **state)
{
    (void)state;
    expect("see https://public.example.org/x", NULL);
    expect("see https://ten.example.org/x", "private");
    expect("see https://TEN.example.org.:8080/x", "private");
    expect("see https://both.example.org/x", "metadata");
    expect("see https://six.example.org/x", "loopback");
    expect("see https://mapped.example.org/x", "private");
    expect("see https://m\xc3\xbcnchen.de/", "loopback");
    expect("https://public.example.org/?u=http://ten.example.org/", "private");
}

static void a_name_without_an_address_is_refused(void **state)
{
    (void)state;
    expect("https://none.example.org/", "unresolved");
    expect("https://late.example.org/", "unresolved");
    expect("https://many.example.org/", "unresolved");
    /* what may be a comment is refused for an address alone */
    expect("//none.example.org is what?", NULL);
    expect("//ten.example.org/x", "private");
    table.resolve = NULL;
    expect("https://public.example.org/", "unresolved");
}

static void what_is_allowed_or_refused_anyway_is_not_asked_for(void **state)
{
    (void)state;
    expect("http://10.0.0.1/", "private");
    expect("http://localhost/", "local-name");
    expect("http://8.8.8.8/", NULL);
    must(check("https://ten.example.org/x", ".example.org"), &err);
    assert_int_equal(asked, 0);
    must(check("https://ten.example.org/x", "10.0.0.0/8"), &err);
    assert_int_equal(check("https://ten.example.org/x", "10.0.0.0/16"), SESSILE_DENIED);
    /* and nothing is when nobody wants it */
    asked = 0;
    must(sessile_url_check(sessile_text("https://ten.example.org/x"), NULL, &found, &err),
         &err);
    assert_int_equal(asked, 0);
}

static void a_text_asks_for_so_many_names_and_waits_so_long(void **state)
{
    char text[4096] = "";
    (void)state;

    for (int i = 0; i < 40; i++)
        strcat(text, "https://public.example.org/ ");
    expect(text, NULL);
    assert_int_equal(asked, 1); /* the same name */
    assert_int_equal(given_ms, URL_RESOLVE_MS);
    asked = 0;
    text[0] = 0;
    for (int i = 0; i < 40; i++)
        snprintf(text + strlen(text), 64, "https://public.example.org:%d/ ", 1000 + i);
    expect(text, "unresolved");
    assert_int_equal(asked, URL_NAMES_MOST);
    /* a slow server of names: the rest of the time, and no more */
    asked = 0;
    takes_ms = 900;
    expect(text, "unresolved");
    assert_int_equal(asked, 3);
    assert_int_equal(given_ms, URL_RESOLVE_MS - 1800);
}

/* A store's rules say so for its writes. */
static void a_write_is_refused(void **state)
{
    sessile_store_options so;
    sessile_guard_options go;
    sessile_checkpoint_options co = {.state = {NULL, 0}};
    sessile_session_options o = named("s");
    sessile_session *s;
    sessile_store *store;
    (void)state;

    for (int resolves = 0; resolves < 2; resolves++) {
        sessile_store_options_init(&so);
        so.key_source = SESSILE_KEY_PLAIN;
        must(sessile_open(&store, "ram:", &so, &err), &err);
        sessile_guard_options_init(&go);
        assert_int_equal(go.urls.options.resolve, 0);
        go.urls.options.resolve = resolves;
        must(sessile_store_guard(store, &go, &err), &err);
        must(sessile_create(&s, store, &o, &err), &err);
        co.state = sessile_text("{\"u\":\"https://ten.example.org/\"}");
        sessile_status status = sessile_checkpoint(s, &co, NULL, &err);
        assert_int_equal(status, resolves ? SESSILE_DENIED : SESSILE_OK);
        assert_string_equal(err.rule, resolves ? "private" : "");
        /* messages are looked at when somebody says so */
        must(sessile_append(s,
                            sessile_text("{\"role\":\"user\",\"content\":"
                                         "\"https://ten.example.org/\"}"),
                            NULL, &err),
             &err);
        session_closed(s);
        sessile_store_close(store);
    }
}

/* The system's own, with what needs no network. */
static void the_systems_resolver(void **state)
{
    os_address list[64];
    char name[300];
    int count = os_resolve(NULL, "localhost", 5000, list, 64);
    (void)state;

    assert_true(count >= 1);
    for (int i = 0; i < count; i++) {
        address at = {list[i].family, {0}};
        memcpy(at.bytes, list[i].bytes, sizeof at.bytes);
        assert_string_equal(address_judge(&at).rule, "loopback");
    }
    assert_int_equal(os_resolve(NULL, "127.0.0.1", 5000, list, 64), 1);
    assert_int_equal(list[0].family, 4);
    assert_int_equal(os_resolve(NULL, "127.0.0.1", 5000, list, 0), -1);
    assert_int_equal(errno, E2BIG);
    /* given up at once: what was asked for is freed when its answer comes */
    for (int i = 0; i < 8; i++)
        if (os_resolve(NULL, "localhost", 0, list, 64) < 0)
            assert_true(errno == ETIMEDOUT || errno == EAGAIN);
    sleep(1); /* the answers come, so that nothing is left at the end */
    memset(name, 'a', sizeof name - 1);
    name[sizeof name - 1] = 0;
    assert_int_equal(os_resolve(NULL, name, 5000, list, 64), -1);
    assert_int_equal(errno, ENOENT);
}

#define WITH_TABLE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_TABLE(a_name_is_refused_by_each_of_its_addresses),
        WITH_TABLE(a_name_without_an_address_is_refused),
        WITH_TABLE(what_is_allowed_or_refused_anyway_is_not_asked_for),
        WITH_TABLE(a_text_asks_for_so_many_names_and_waits_so_long),
        WITH_TABLE(a_write_is_refused),
        cmocka_unit_test(the_systems_resolver),
    };
    return cmocka_run_group_tests_name("names of URLs", tests, NULL, NULL);
}
