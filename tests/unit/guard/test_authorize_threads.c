/* test_authorize_threads.c: a rule of the host's is asked by two threads at once. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <pthread.h>

#include "sessile_guard.h"
#include "support/policies.h"
#include "support/views.h"

#include <cmocka.h>

enum { CALLS = 200 };
typedef struct caller {
    sessile_store *view;
    int allowed, denied;
} caller;

static void *call(void *arg)
{
    caller *c = arg;
    sessile_operation o = {
        .name = sessile_text("tool"), .permission = SESSILE_MAY_VIEW_SESSION, .reads = 1};
    sessile_error err;

    for (int i = 0; i < CALLS; i++) {
        sessile_status status = sessile_may(c->view, &o, &err);
        c->allowed += !status;
        c->denied += status == SESSILE_DENIED && !strcmp(err.rule, "authorize:bob");
    }
    return NULL;
}

static void two_views_are_asked_about_at_once(void **state)
{
    sessile_guard_options o;
    char path[1024];
    pthread_t threads[2];
    caller callers[2] = {{NULL, 0, 0}, {NULL, 0, 0}};
    views v;

    (void)state;
    policies_write(
        "rule",
        "return { authorize = function(who) return who.user ~= 'bob', 'bob' end }");
    snprintf(path, sizeof path, "%s/rule.lua", policies_folder());
    sessile_guard_options_init(&o);
    o.audit.on = 1;
    o.authorize = path;
    views_open(&v, &o);
    callers[0].view = view_of(&v, "ann", "editor");
    callers[1].view = view_of(&v, "bob", "editor");
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, call, &callers[i]), 0);
    for (int i = 0; i < 2; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(callers[0].allowed, CALLS);
    assert_int_equal(callers[1].denied, CALLS);
    sessile_store_close(callers[0].view);
    sessile_store_close(callers[1].view);
    views_close(&v);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(two_views_are_asked_about_at_once,
                                        policies_set_up, policies_tear_down),
    };
    return cmocka_run_group_tests_name("authorize, threads", tests, NULL, NULL);
}
