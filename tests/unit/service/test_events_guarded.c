/*
 * test_events_guarded.c: events under a guard: whose sessions can be watched, and what
 * becomes of a stream whose user may no more.
 */
#include "users.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sessile_access.h"
#include "support/runs.h"

static void test_only_ones_own_sessions_are_watched(void **state)
{
    users w;
    stream st;
    char status[32];
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    (void)state;
    users_open(&w);
    r.session = names_of("s");
    stream_begin(&w.s, &st, "StreamSessionEvents", &r);
    assert_true(stream_wait(&st, 1));
    stream_done(&st);
    /* His own session of that name is not there; hers he is not told about. */
    users_call_as(&w, BOB);
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status), RPC_NOT_FOUND);
    r.session->user = (char *)"ann";
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status),
                     RPC_PERMISSION_DENIED);
    r.session->id = (char *)"not there";
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status),
                     RPC_PERMISSION_DENIED);
    users_call_as(&w, -1);
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status),
                     RPC_UNAUTHENTICATED);
    users_close(&w);
}

static void test_a_revoked_key_ends_a_stream_before_the_next_entry(void **state)
{
    users w;
    stream st;
    sessile_error err;
    sessile_session *own;
    sessile_session_options o;
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    (void)state;
    users_open(&w);
    r.session = names_of("s");
    stream_begin(&w.s, &st, "StreamSessionEvents", &r);
    assert_true(stream_wait(&st, 1)); /* there is one entry: the stream is at its end */
    const char *id = w.key[ANN] + strlen("sesk_");
    if (sessile_access_key_revoke(
            w.store, (sessile_slice){id, (size_t)(strchr(id, '_') - id)}, &err))
        fail_msg("%s", err.message);
    size_t before = st.count;
    sessile_session_options_init(&o);
    o.id = sessile_text("s");
    o.user = sessile_text("ann");
    if (sessile_resume(&own, w.store, &o, &err) ||
        sessile_append(own, sessile_text("{\"role\":\"user\",\"content\":\"secret\"}"),
                       NULL, &err))
        fail_msg("%s", err.message);
    (void)sessile_session_close(own, NULL);
    stream_wait_end(&st);
    assert_int_equal(st.code, RPC_PERMISSION_DENIED);
    assert_int_equal(st.count, before);
    stream_done(&st);
    users_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_ones_own_sessions_are_watched),
        cmocka_unit_test(test_a_revoked_key_ends_a_stream_before_the_next_entry),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
