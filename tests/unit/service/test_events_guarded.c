/*
 * test_events_guarded.c: events under a guard: whose sessions can be watched, and what
 * becomes of a stream whose user may no more.
 */
#include "serving.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "sessile_access.h"
#include "sessile_guard.h"
#include "support/runs.h"

typedef struct world {
    sessile_store *store;
    serving s;
    char *key[2];
    char bearer[2][300];
    rpc_header as[2][2];
} world;

static void make_key(world *w, int i, const char *user)
{
    const char *editor = "editor";
    sessile_access_key_options o;
    sessile_error err;
    sessile_access_key_options_init(&o);
    o.user = sessile_text(user);
    o.roles = &editor;
    o.role_count = 1;
    if (sessile_access_key(w->store, &o, &w->key[i], &err))
        fail_msg("%s", err.message);
    snprintf(w->bearer[i], sizeof w->bearer[i], "Bearer %s", w->key[i]);
    w->as[i][0] = (rpc_header){"authorization", w->bearer[i]};
    w->as[i][1] = (rpc_header){NULL, NULL};
}

static void world_open(world *w)
{
    sessile_guard_options o;
    service_settings settings;
    sessile_error err;
    memset(w, 0, sizeof *w);
    memset(&settings, 0, sizeof settings);
    w->store = run_store("ram:");
    sessile_guard_options_init(&o);
    if (sessile_store_guard(w->store, &o, &err))
        fail_msg("%s", err.message);
    make_key(w, 0, "ann");
    make_key(w, 1, "bob");
    settings.guarded = 1;
    serving_start(&w->s, w->store, &settings);
    Sessile__V1__CreateRequest r = SESSILE__V1__CREATE_REQUEST__INIT;
    r.session = names_of("s");
    w->s.headers = w->as[0];
    serve_ok(&w->s, "CreateSession", &r);
}

static void world_close(world *w)
{
    serving_stop(&w->s);
    sessile_free(w->key[0]);
    sessile_free(w->key[1]);
    sessile_store_close(w->store);
}

static void test_only_ones_own_sessions_are_watched(void **state)
{
    world w;
    stream st;
    char status[32];
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    (void)state;
    world_open(&w);
    r.session = names_of("s");
    stream_begin(&w.s, &st, "StreamSessionEvents", &r);
    assert_true(stream_wait(&st, 1));
    stream_done(&st);
    /* His own session of that name is not there; hers he is not told about. */
    w.s.headers = w.as[1];
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status), RPC_NOT_FOUND);
    r.session->user = (char *)"ann";
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status),
                     RPC_PERMISSION_DENIED);
    r.session->id = (char *)"not there";
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status),
                     RPC_PERMISSION_DENIED);
    w.s.headers = NULL;
    assert_int_equal(serve_fails(&w.s, "StreamSessionEvents", &r, status),
                     RPC_UNAUTHENTICATED);
    world_close(&w);
}

static void test_a_revoked_key_ends_a_stream_before_the_next_entry(void **state)
{
    world w;
    stream st;
    sessile_error err;
    sessile_session *own;
    sessile_session_options o;
    Sessile__V1__EventsRequest r = SESSILE__V1__EVENTS_REQUEST__INIT;
    (void)state;
    world_open(&w);
    r.session = names_of("s");
    stream_begin(&w.s, &st, "StreamSessionEvents", &r);
    assert_true(stream_wait(&st, 1)); /* there is one entry: the stream is at its end */
    const char *id = w.key[0] + strlen("sesk_");
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
    world_close(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_only_ones_own_sessions_are_watched),
        cmocka_unit_test(test_a_revoked_key_ends_a_stream_before_the_next_entry),
    };
    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
