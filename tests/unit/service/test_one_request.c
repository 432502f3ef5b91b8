/*
 * test_one_request.c: methods that take one request: a call that sends two, or none, is
 * refused, and nothing is done of what it asked for.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "support/runs.h"

/* When the second message leaves, and when the client says that it was the last. */
typedef enum timing { ALL_AT_ONCE, END_LATER, SECOND_LATER, TIMINGS } timing;

static void turn(serving *s)
{
    for (int i = 0; i < 10; i++)
        rpc_loop_turn(s->loop, 5);
}

static void send_twice(serving *s, const char *method, const void *request, timing when)
{
    stream st;
    stream_open(s, &st, method, request);
    if (when == SECOND_LATER)
        turn(s);
    stream_send(&st, request);
    if (when == END_LATER)
        turn(s);
    if (st.request)
        rpc_request_end(st.request);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
    assert_string_equal(st.status, "EINVALID");
    assert_string_equal(st.message, "the method takes one request");
    assert_int_equal(st.count, 0);
    stream_done(&st);
}

/* Its head is that entry, and it has no title. */
static void is_as_it_was(serving *s, sessile_id head)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    r.session = names_of("s");
    const Sessile__V1__SessionInfo *info = serve_ok(s, "ResumeSession", &r);
    assert_int_equal(info->head, head);
    assert_string_equal(info->title, "");
}

static void test_what_is_asked_twice_is_not_done(void **state)
{
    Sessile__V1__AppendRequest append = SESSILE__V1__APPEND_REQUEST__INIT;
    Sessile__V1__TitleRequest title = SESSILE__V1__TITLE_REQUEST__INIT;
    Sessile__V1__DeleteRequest delete = SESSILE__V1__DELETE_REQUEST__INIT;
    Sessile__V1__SessionRequest read = SESSILE__V1__SESSION_REQUEST__INIT;
    Sessile__V1__CreateRequest create = SESSILE__V1__CREATE_REQUEST__INIT;
    Sessile__V1__Json json = SESSILE__V1__JSON__INIT;
    sessile_store *store = run_store("ram:");
    serving s;
    (void)state;
    serving_start(&s, store, NULL);
    create.session = append.session = title.session = delete.session = read.session =
        names_of("s");
    json.text = "{\"role\":\"user\",\"content\":\"written twice\"}";
    append.message = &json;
    title.title = "given twice";
    serve_ok(&s, "CreateSession", &create);
    const sessile_id head = append_by(&s, "s", "one");
    for (timing when = ALL_AT_ONCE; when < TIMINGS; when++) {
        send_twice(&s, "AppendMessage", &append, when);
        send_twice(&s, "SetTitle", &title, when);
        send_twice(&s, "DeleteSession", &delete, when);
        send_twice(&s, "ResumeSession", &read, when);
        is_as_it_was(&s, head);
    }
    serve_ok(&s, "AppendMessage", &append); /* as it is meant */
    is_as_it_was(&s, head + 1);
    serving_stop(&s);
    sessile_store_close(store);
}

static void test_a_call_without_a_request_is_refused(void **state)
{
    static const char *const methods[] = {"AppendMessage", "GetContext", "Run"};
    sessile_store *store = run_store("ram:");
    serving s;
    (void)state;
    serving_start(&s, store, NULL);
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        stream st;
        stream_open(&s, &st, methods[i], NULL);
        rpc_request_end(st.request);
        stream_wait_end(&st);
        assert_int_equal(st.code, RPC_INVALID_ARGUMENT);
        assert_string_equal(st.status, "EINVALID");
        assert_string_equal(st.message, "the call has no request");
        stream_done(&st);
    }
    serving_stop(&s);
    sessile_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_asked_twice_is_not_done),
        cmocka_unit_test(test_a_call_without_a_request_is_refused),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
