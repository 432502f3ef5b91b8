/* test_config.c: what a run, a session and a store inherit from one another. */
#include "guard/enter.h"
#include "support/check.h"
#include "support/sessions.h"
#include "session/config.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

static sessile_triggers often = {.messages = 2}, never = {.messages = 0};
static char a_policy, a_fallback;

/* Every member differs from the one of other(). */
static sessile_config one(void)
{
    return (sessile_config){.policy = (sessile_policy *)&a_policy,
                            .fallback = (sessile_policy *)&a_fallback,
                            .triggers = &often,
                            .checkpoint = {&never, 3},
                            .window = 1000,
                            .reserve = 10,
                            .keep_min = 5,
                            .has_timeout = 1,
                            .timeout_ms = 0,
                            .isolation = SESSILE_WORKER};
}

static sessile_config other(void)
{
    return (sessile_config){.policy = (sessile_policy *)&a_fallback,
                            .fallback = (sessile_policy *)&a_policy,
                            .triggers = &never,
                            .checkpoint = {&often, 4},
                            .window = 2000,
                            .reserve = 20,
                            .keep_min = 6,
                            .has_timeout = 1,
                            .timeout_ms = 7,
                            .isolation = SESSILE_IN_PROCESS};
}

static void assert_same_config(const sessile_config *a, const sessile_config *b)
{
    assert_ptr_equal(a->policy, b->policy);
    assert_ptr_equal(a->fallback, b->fallback);
    assert_ptr_equal(a->triggers, b->triggers);
    assert_ptr_equal(a->checkpoint.triggers, b->checkpoint.triggers);
    assert_int_equal(a->checkpoint.keep, b->checkpoint.keep);
    assert_int_equal(a->window, b->window);
    assert_int_equal(a->reserve, b->reserve);
    assert_int_equal(a->keep_min, b->keep_min);
    assert_int_equal(a->has_timeout, b->has_timeout);
    assert_int_equal(a->timeout_ms, b->timeout_ms);
    assert_int_equal(a->isolation, b->isolation);
}

static void every_member_that_is_not_set_is_inherited(void **state)
{
    sessile_config mine = {0}, theirs = one();
    (void)state;
    config_inherit(&mine, &theirs);
    assert_same_config(&mine, &theirs);
}

static void every_member_that_is_set_stays(void **state)
{
    sessile_config mine = one(), theirs = other(), before = one();
    (void)state;
    config_inherit(&mine, &theirs); /* timeout 0 is set: it does not wait */
    assert_same_config(&mine, &before);
}

static void what_cannot_be_is_invalid(void **state)
{
    sessile_triggers wrong = {.share = 1001};
    const sessile_config cases[] = {
        {.window = -1},
        {.reserve = -1},
        {.has_timeout = 1, .timeout_ms = -2},
        {.isolation = (sessile_isolation)3},
        {.triggers = &wrong},
        {.checkpoint = {.triggers = &wrong}},
    };
    sessile_config fine = {.timeout_ms = -2}; /* not set: not looked at */
    sessile_error err;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(config_check(&cases[i], &err), SESSILE_INVALID);
    assert_int_equal(config_check(&fine, &err), SESSILE_OK);

    /* Each by itself is right; one that is given replaces the one that is inherited. */
    sessile_config window = {.window = 20}, reserve = {.reserve = 20},
                   less = {.window = 20, .reserve = 19};
    assert_int_equal(config_check(&window, &err), SESSILE_OK);
    assert_int_equal(config_check_merged(&window, &reserve, &err), SESSILE_INVALID);
    assert_int_equal(config_check_merged(&reserve, &window, &err), SESSILE_INVALID);
    assert_int_equal(config_check_merged(&less, &reserve, &err), SESSILE_OK);
}

static void a_session_has_its_own_and_then_its_stores(void **state)
{
    place *p = *state;
    sessile_session_options options = named("s");
    sessile_session *s, *fork;
    sessile_error err;
    sessile_id id;

    p->store->core->config.window = 2000;
    p->store->core->config.checkpoint.keep = 4;
    options.config.window = 1000;
    options.config.triggers = &often;
    options.config.isolation = SESSILE_WORKER;
    assert_int_equal(sessile_create(&s, p->store, &options, &err), SESSILE_OK);
    sessile_config config = session_config(s->core);
    assert_int_equal(config.window, 1000);
    assert_int_equal(config.checkpoint.keep, 4);
    assert_int_equal(config.timeout_ms, p->store->core->config.timeout_ms);
    assert_int_equal(config.isolation, SESSILE_WORKER);
    assert_int_equal(config.triggers->messages, 2);
    assert_ptr_not_equal(config.triggers, &often); /* a copy */

    /* A fork has what its session has, as it is now. */
    assert_int_equal(sessile_session_set_timeout(s, 30, &err), SESSILE_OK);
    assert_int_equal(sessile_append(s,
                                    sessile_text("{\"role\":\"user\",\"content\":\"x\"}"),
                                    &id, &err),
                     SESSILE_OK);
    options = named("fork");
    options.config.reserve = 5;
    assert_int_equal(sessile_fork(&fork, s, id, &options, &err), SESSILE_OK);
    config = session_config(fork->core);
    assert_int_equal(config.window, 1000);
    assert_int_equal(config.reserve, 5);
    assert_int_equal(config.timeout_ms, 30);
    assert_int_equal(config.triggers->messages, 2);
    session_closed(fork);
    session_closed(s);
}

static void a_copy_runs_policies_where_its_store_says(void **state)
{
    place *p = *state;
    sessile_store_options stores;
    sessile_session_options options = named("s");
    sessile_session *s, *copy;
    sessile_store *strict;
    sessile_error err;

    options.config.window = 1000;
    options.config.isolation = SESSILE_IN_PROCESS;
    assert_int_equal(sessile_create(&s, p->store, &options, &err), SESSILE_OK);
    sessile_store_options_init(&stores);
    stores.config.isolation = SESSILE_WORKER;
    stores.config.window = 2000;
    assert_int_equal(sessile_open(&strict, "ram:", &stores, &err), SESSILE_OK);
    options = named("copy");
    assert_int_equal(sessile_put(&copy, strict, s, &options, &err), SESSILE_OK);
    sessile_config config = session_config(copy->core);
    assert_int_equal(config.isolation, SESSILE_WORKER);
    assert_int_equal(config.window, 1000);
    assert_int_equal(config.timeout_ms, 5000); /* the store's, not that of p->store */
    session_closed(copy);

    /* What the session was given is its own, also when its store has the same. */
    assert_int_equal(
        sessile_session_set_timeout(s, p->store->core->config.timeout_ms, &err),
        SESSILE_OK);
    options = named("copy-2");
    assert_int_equal(sessile_put(&copy, strict, s, &options, &err), SESSILE_OK);
    assert_int_equal(session_config(copy->core).timeout_ms,
                     p->store->core->config.timeout_ms);
    session_closed(copy);
    sessile_store_close(strict);
    session_closed(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_member_that_is_not_set_is_inherited),
        cmocka_unit_test(every_member_that_is_set_stays),
        cmocka_unit_test(what_cannot_be_is_invalid),
        cmocka_unit_test_setup_teardown(a_session_has_its_own_and_then_its_stores,
                                        place_set_up_ram, place_tear_down),
        cmocka_unit_test_setup_teardown(a_copy_runs_policies_where_its_store_says,
                                        place_set_up_ram, place_tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
