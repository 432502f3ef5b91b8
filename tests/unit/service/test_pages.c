/* test_pages.c: lists in pages, while sessions are made, removed and written to. */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "support/sessions.h"

/* What a walk through pages has seen: how often each of "s0" to "s99". */
typedef struct seen {
    int count[100];
    size_t pages;
} seen;

static Sessile__V1__ListResponse *next_page(Sessile__V1__ListRequest *r, seen *seen)
{
    Sessile__V1__ListResponse *page = call_ok("ListSessions", r);
    seen->pages++;
    for (size_t i = 0; i < page->n_sessions; i++) {
        int n = -1;
        assert_int_equal(sscanf(page->sessions[i]->session->id, "s%d", &n), 1);
        seen->count[n]++;
    }
    r->page_token = page->next_page_token;
    return page;
}

static void walk(Sessile__V1__ListRequest *r, seen *seen)
{
    do
        (void)next_page(r, seen);
    while (*r->page_token);
}

static void assert_each_once(const seen *seen, int first, int end)
{
    for (int i = first; i < end; i++)
        assert_int_equal(seen->count[i], 1);
}

/* Sessions s0 to s(n-1), each with as many messages as its number modulo 3. */
static void make_sessions(int n)
{
    static char ids[100][8];
    for (int i = 0; i < n; i++) {
        snprintf(ids[i], sizeof ids[i], "s%d", i);
        session_with(ids[i], i % 3);
    }
}

static void write_to(const char *id)
{
    sessile_session *s = session_resumed(direct.store, id);
    sessile_slice message = sessile_text("{\"role\":\"user\",\"content\":\"more\"}");
    assert_int_equal(sessile_append(s, message, NULL, NULL), SESSILE_OK);
    session_closed(s);
}

static void remove_one(const char *id)
{
    sessile_session_options names = named(id);
    assert_int_equal(sessile_delete(direct.store, &names, NULL, NULL, NULL), SESSILE_OK);
}

static void test_pages_have_each_session_once(void **state)
{
    static const char *const sorts[] = {"",      "modified", "created",
                                        "title", "size",     "messages"};
    (void)state;
    make_sessions(10);
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
        seen seen = {.pages = 0};
        r.sort = (char *)sorts[i];
        r.limit = 3;
        walk(&r, &seen);
        assert_int_equal(seen.pages, 4);
        assert_each_once(&seen, 0, 10);
    }
}

static void test_the_last_page_has_no_token(void **state)
{
    Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
    (void)state;
    Sessile__V1__ListResponse *page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 0);
    assert_string_equal(page->next_page_token, "");
    make_sessions(4);
    r.limit = 4;
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 4);
    assert_string_equal(page->next_page_token, "");
    r.skip = 1;
    r.limit = 2;
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 2);
    r.skip = 0;
    r.page_token = page->next_page_token;
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 1);
    assert_string_equal(page->next_page_token, "");
}

static void test_nothing_is_missed_while_sessions_move(void **state)
{
    static const char *const sorts[] = {"modified", "created", "title", "size",
                                        "messages"};
    (void)state;
    make_sessions(12);
    for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
        Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
        seen seen = {.pages = 0};
        r.sort = (char *)sorts[i];
        r.limit = 4;
        /* Between two pages: a session that was given moves to the front, or goes. */
        const Sessile__V1__ListResponse *page = next_page(&r, &seen);
        write_to(page->sessions[1]->session->id);
        page = next_page(&r, &seen);
        char gone[8];
        snprintf(gone, sizeof gone, "%s", page->sessions[0]->session->id);
        remove_one(gone);
        while (*r.page_token)
            (void)next_page(&r, &seen);
        for (int n = 0; n < 12; n++)
            assert_true(seen.count[n] >= 1);
        session_with(gone, 1); /* for the next order */
    }
}

static void test_pages_go_on_when_their_last_row_is_gone(void **state)
{
    Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
    seen seen = {.pages = 0};
    (void)state;
    make_sessions(9);
    r.sort = "size";
    r.limit = 3;
    const Sessile__V1__ListResponse *page = next_page(&r, &seen);
    remove_one(page->sessions[2]->session->id);
    page = next_page(&r, &seen);
    write_to(page->sessions[2]->session->id);
    walk(&r, &seen);
    for (int n = 0; n < 9; n++)
        assert_true(seen.count[n] >= 1);
}

static void test_a_new_session_does_not_repeat_others(void **state)
{
    Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
    seen seen = {.pages = 0};
    (void)state;
    make_sessions(9);
    r.limit = 4;
    (void)next_page(&r, &seen);
    session_with("s50", 0);
    session_with("s51", 0);
    walk(&r, &seen);
    assert_each_once(&seen, 0, 9);
}

static void test_a_token_of_another_request_is_refused(void **state)
{
    Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
    char changed[400];
    (void)state;
    make_sessions(5);
    r.limit = 2;
    const Sessile__V1__ListResponse *page = call_ok("ListSessions", &r);
    r.page_token = page->next_page_token;
    r.limit = 3;
    call_ok("ListSessions", &r);
    r.sort = "created";
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.sort = "";
    r.id_prefix = "s";
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.id_prefix = "";
    r.skip = 1;
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.skip = 0;
    snprintf(changed, sizeof changed, "%s", page->next_page_token);
    changed[strlen(changed) - 1] = 0;
    r.page_token = changed;
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.page_token = "!";
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.page_token = "AAAA";
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

static void test_a_token_made_up_is_only_a_place(void **state)
{
    Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
    Sessile__V1__Listed key = SESSILE__V1__LISTED__INIT;
    unsigned char raw[256];
    char token[400];
    (void)state;
    make_sessions(3);
    r.limit = 1;
    const Sessile__V1__ListResponse *page = call_ok("ListSessions", &r);
    assert_true(base64_decode(raw, page->next_page_token, strlen(page->next_page_token)) >
                8);
    key.session = asked("nobody");
    key.entries = UINT64_MAX;
    key.modified_ms = INT64_MAX;
    base64_encode(token, raw, 8 + sessile__v1__listed__pack(&key, raw + 8));
    r.page_token = token;
    r.limit = 1000;
    page = call_ok("ListSessions", &r);
    assert_int_equal(page->n_sessions, 3);
}

static void test_limits_of_a_page(void **state)
{
    Sessile__V1__ListRequest r = SESSILE__V1__LIST_REQUEST__INIT;
    char *lives[] = {"asleep"};
    (void)state;
    r.limit = 1001;
    call_fails("ListSessions", &r, RPC_RESOURCE_EXHAUSTED, "ELIMIT");
    r.limit = 0;
    r.sort = "colour";
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
    r.sort = "";
    r.lives = lives;
    r.n_lives = 1;
    call_fails("ListSessions", &r, RPC_INVALID_ARGUMENT, "EINVALID");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        DIRECT(test_pages_have_each_session_once),
        DIRECT(test_the_last_page_has_no_token),
        DIRECT(test_nothing_is_missed_while_sessions_move),
        DIRECT(test_pages_go_on_when_their_last_row_is_gone),
        DIRECT(test_a_new_session_does_not_repeat_others),
        DIRECT(test_a_token_of_another_request_is_refused),
        DIRECT(test_a_token_made_up_is_only_a_place),
        DIRECT(test_limits_of_a_page),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
