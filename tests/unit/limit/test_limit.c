/*
 * test_limit.c: rules and rates, and windows against a list of times, on a clock that the
 * test sets: in the handle, and in the file of a folder and of a database.
 *
 * Own stores: it names each that it is about.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "support/check.h"
#include "support/limits.h"

static uint64_t seed = 1;

/* xorshift64*: 0 to below - 1 */
static uint64_t draw(uint64_t below)
{
    seed ^= seed >> 12;
    seed ^= seed << 25;
    seed ^= seed >> 27;
    return (seed * UINT64_C(2685821657736338717)) % below;
}

/* ------------------------------------------------------------------ rates */

static sessile_status parse(const char *text, limit_rate *out, sessile_error *err)
{
    return limit_rate_parse(out, (sessile_slice){text, strlen(text)}, err);
}

static void rates_are_a_count_and_a_unit(void **state)
{
    static const struct {
        const char *text;
        uint32_t count, period_ms;
    } good[] = {{"1/second", 1, 1000},
                {"10/minute", 10, 60000},
                {"60/hour", 60, 3600000},
                {"65535/day", 65535, 86400000}};
    char printed[LIMIT_RATE_SIZE];
    limit_rate rate;
    sessile_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        must(parse(good[i].text, &rate, &err), &err);
        assert_int_equal(rate.count, good[i].count);
        assert_int_equal(rate.period_ms, good[i].period_ms);
        limit_rate_print(rate, printed);
        assert_string_equal(printed, good[i].text);
    }
    must(parse("off", &rate, &err), &err);
    assert_int_equal(rate.count, 0);
    limit_rate_print(rate, printed);
    assert_string_equal(printed, "off");
}

static void nonsense_is_refused_with_what_is_allowed(void **state)
{
    static const char *const bad[] = {
        "10/fortnight", "",           "10",        "/minute",
        "10/",          "ten/minute", "0/minute",  "010/minute",
        "-1/minute",    "+1/minute",  "65536/day", "1e3/day",
        " 1/day",       "1/day ",     "1 / day",   "10/minutes",
        "10/Minute",    "10//minute", "OFF",       "99999999999999999999/day",
        "10/minute/day"};
    limit_rate rate = {7, 8};
    sessile_error err = {0};
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_refused(parse(bad[i], &rate, &err), SESSILE_INVALID, &err,
                       "a number from 1 to 65535, a slash, and second, minute, hour or "
                       "day");
        assert_int_equal(rate.count, 7);
        assert_int_equal(rate.period_ms, 8);
    }
}

static void rules_have_rates_that_can_be_set(void **state)
{
    static const char *const standard[] = {
        "off",       "10/minute", "100/minute", "1000/minute", "100/minute",
        "20/minute", "60/minute", "10/hour",    "60/minute",   "10/minute"};
    char printed[LIMIT_RATE_SIZE];
    limit_options options;
    sessile_error err = {0};
    (void)state;
    limit_options_init(&options);
    for (int i = 0; i < LIMIT_RULES; i++) {
        limit_rate_print(options.rates[i], printed);
        assert_string_equal(printed, standard[i]);
    }
    for (int i = 1; i < LIMIT_RULES; i++) {
        must(
            limit_options_set(&options, limit_rule_name(i), sessile_text("3/hour"), &err),
            &err);
        assert_int_equal(options.rates[i].count, 3);
    }
    assert_refused(limit_options_set(&options, "none", sessile_text("3/hour"), &err),
                   SESSILE_NOTFOUND, &err, "session_creation, checkpoint_writes");
    assert_refused(limit_options_set(&options, "searches", sessile_text("3"), &err),
                   SESSILE_INVALID, &err, "a slash");
    assert_int_equal(limit_rule_per(LIMIT_SESSION_CREATION), LIMIT_PER_USER);
    assert_int_equal(limit_rule_per(LIMIT_MEMORY_READS), LIMIT_PER_SESSION);
    assert_int_equal(limit_rule_per(LIMIT_FAILURES), LIMIT_PER_SOURCE);
}

/* The column `limit` of operations.def has no name that is not a rule. */
static void operations_name_rules(void **state)
{
    static const limit_rule of[] = {
#define OPERATION(name, permission, also, limit, event, screens, object) LIMIT_##limit,
#include "guard/operations.def"
#undef OPERATION
    };
    int counted = 0;
    (void)state;
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        assert_in_range(of[i], LIMIT_NONE, LIMIT_RULES - 1);
        counted += of[i] != LIMIT_NONE;
    }
    assert_true(counted > 10);
}

/* ------------------------------------------------------------------ places */

typedef struct scene {
    limit_clock clock;
    char folder[256], url[300];
    store_core *store;
    limiter *limiter;
    uint64_t who;
} scene;

enum { PLACES = 3 };
static const char *const places[PLACES] = {"ram:", "file:", "sqlite:"};

static void scene_open(scene *s, int place, const char *rate)
{
    const char *tmp = getenv("TMPDIR");
    limit_clock_init(&s->clock);
    snprintf(s->folder, sizeof s->folder, "%s/limits.XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(s->folder));
    snprintf(s->url, sizeof s->url, "%s%s%s", places[place], place ? s->folder : "",
             place == 0   ? ""
             : place == 1 ? "/store"
                          : "/store.db");
    os_current = &s->clock.table;
    s->store = limit_store(s->url);
    s->limiter = limit_opened(s->store, rate, NULL, 0);
    s->who = limit_somebody(s->limiter, "ann");
}

/* Another limiter of the same store, as another process would have. */
static void scene_again(scene *s, const char *rate)
{
    limiter_close(s->limiter);
    s->limiter = limit_opened(s->store, rate, NULL, 0);
}

static void scene_close(scene *s)
{
    char command[300];
    sessile_error why;
    assert_int_equal(limiter_lost(s->limiter, &why), 0);
    limiter_close(s->limiter);
    store_handle_close(s->store);
    os_current = &os_posix;
    snprintf(command, sizeof command, "rm -rf '%s'", s->folder);
    assert_int_equal(system(command), 0);
}

static const char *const rates[] = {"1/second", "3/second",   "10/minute", "33/minute",
                                    "7/hour",   "100/minute", "1000/day"};
enum { RATES = sizeof rates / sizeof *rates };

/* Steady tries, bursts, and pauses of any length. */
static uint64_t pause_us(limit_rate rate, int kind)
{
    uint64_t period = rate.period_ms * UINT64_C(1000), each = period / rate.count;
    switch (kind) {
    case 0:
        return draw(2 * each + 1);
    case 1:
        return draw(20) ? draw(each / 4 + 1) : draw(2 * period);
    default:
        return draw(10) ? draw(1000) : draw(period / 8 + 1);
    }
}

static void never_more_than_the_rate_in_any_period(void **state)
{
    scene s;
    (void)state;
    for (int round = 0; round < 126; round++) {
        const char *text = rates[round % RATES];
        limit_rate rate = limit_rate_of(text);
        limit_calls calls = {0};
        size_t refused = 0;
        seed = (uint64_t)round + 1;
        scene_open(&s, round % PLACES, text);
        for (int i = 0; i < 2500; i++) {
            s.clock.us += pause_us(rate, round / PLACES % 3);
            if (limit_let(s.limiter, s.who, NULL))
                limit_calls_add(&calls, (int64_t)s.clock.us / 1000 * 1000,
                                (int64_t)s.clock.us / 1000 * 1000);
            else
                refused++;
        }
        assert_true(calls.count >= rate.count);
        if (round / PLACES % 3 == 2 && rate.count <= 33)
            assert_true(refused > 0);
        limit_calls_judge(&calls, rate);
        limit_calls_free(&calls);
        scene_close(&s);
    }
}

static void a_client_slower_by_a_32nd_is_never_refused(void **state)
{
    scene s;
    (void)state;
    for (int round = 0; round < 42; round++) {
        const char *text = rates[round % RATES];
        limit_rate rate = limit_rate_of(text);
        /* 33/32 of period / count, and what a millisecond's rounding may take away */
        uint64_t least =
            rate.period_ms * UINT64_C(33000) / (32 * (uint64_t)rate.count) + 1000;
        seed = (uint64_t)round + 1;
        scene_open(&s, round % PLACES, text);
        s.clock.us += draw(UINT64_C(86400000000));
        for (int i = 0; i < 3000; i++) {
            s.clock.us += least + (draw(4) ? 0 : draw(least));
            assert_true(limit_let(s.limiter, s.who, NULL));
        }
        scene_close(&s);
    }
}

static void retry_ms_is_when_a_try_succeeds(void **state)
{
    scene s;
    (void)state;
    for (int round = 0; round < 63; round++) {
        const char *text = rates[round % RATES];
        limit_rate rate = limit_rate_of(text);
        int64_t retry, again;
        seed = (uint64_t)round + 1;
        scene_open(&s, round % PLACES, text);
        do
            s.clock.us += draw(rate.period_ms * UINT64_C(1000) / rate.count);
        while (limit_let(s.limiter, s.who, &retry));
        assert_in_range(retry, 1, rate.period_ms * UINT64_C(33) / 32 + 1);
        s.clock.us += (uint64_t)(retry - 1) * 1000;
        if (retry > 1) {
            assert_false(limit_let(s.limiter, s.who, &again));
            assert_int_equal(again, 1);
        }
        s.clock.us += 1000;
        assert_true(limit_let(s.limiter, s.who, NULL));
        scene_close(&s);
    }
}

/* Counts n calls, all at the same time, and takes them back. */
static void take_and_return(limiter *l, uint64_t who, int n)
{
    limit_taken taken[50];
    sessile_error err;

    for (int i = 0; i < n; i++)
        must(limit_take(l, LIMIT_SEARCHES, who, &taken[i], &err), &err);
    for (int i = 0; i < n; i++)
        limit_return(l, &taken[i]);
}

static void refused_and_returned_calls_are_not_counted(void **state)
{
    sessile_error err = {0};
    limit_taken taken;
    scene s;
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        scene_open(&s, place, "2/minute");
        for (int i = 0; i < 50; i++)
            take_and_return(s.limiter, s.who, 1 + i % 2);
        assert_true(limit_let(s.limiter, s.who, NULL));
        s.clock.us += UINT64_C(10000000); /* what is returned is the newer one */
        take_and_return(s.limiter, s.who, 1);
        assert_true(limit_let(s.limiter, s.who, NULL));
        assert_refused(limit_take(s.limiter, LIMIT_SEARCHES, s.who, &taken, &err),
                       SESSILE_LIMIT, &err,
                       "the limit searches of 2/minute is reached: try again in 5");
        limit_return(s.limiter, &taken); /* it was not counted */
        assert_in_range(err.retry_ms, 50000, 51875);
        for (int i = 0; i < 50; i++)
            assert_false(limit_let(s.limiter, s.who, NULL));
        s.clock.us += UINT64_C(51875000);
        assert_true(limit_let(s.limiter, s.who, NULL));
        scene_close(&s);
    }
}

static void each_rule_and_each_caller_has_its_own_window(void **state)
{
    sessile_error err = {0};
    scene s;
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        scene_open(&s, place, "1/minute");
        assert_true(limit_let(s.limiter, s.who, NULL));
        assert_false(limit_let(s.limiter, s.who, NULL));
        must(limit_take(s.limiter, LIMIT_EXPORTS, s.who, NULL, &err), &err);
        assert_true(limit_let(s.limiter, limit_somebody(s.limiter, "bob"), NULL));
        /* names are told apart by their parts */
        sessile_slice one[] = {sessile_text("ab"), sessile_text("c")};
        sessile_slice two[] = {sessile_text("a"), sessile_text("bc")};
        assert_true(limiter_who(s.limiter, one, 2) != limiter_who(s.limiter, two, 2));
        for (int i = 0; i < 100; i++)
            must(limit_take(s.limiter, LIMIT_NONE, s.who, NULL, &err), &err);
        scene_close(&s);
    }
}

/* Real time goes on while the clock begins again with the machine, more than once. */
static void nothing_is_gained_by_a_restart_of_the_machine(void **state)
{
    scene s;
    (void)state;
    for (int round = 0; round < 30; round++) {
        limit_rate rate = limit_rate_of("10/minute");
        limit_calls calls = {0};
        int64_t real = 0;
        seed = (uint64_t)round + 1;
        scene_open(&s, 1 + round % 2, "10/minute");
        for (int i = 0; i < 2000; i++) {
            uint64_t step = pause_us(rate, round % 3);
            real += (int64_t)step;
            s.clock.us += step;
            if (draw(200) == 0) {
                /* another start: its clock may be before or behind the old one */
                s.clock.us = draw(UINT64_C(400000000000));
                s.clock.boot++;
                scene_again(&s, "10/minute");
            }
            if (limit_let(s.limiter, s.who, NULL))
                limit_calls_add(&calls, real - 1000, real + 1000); /* ms are cut off */
        }
        limit_calls_judge(&calls, rate);
        limit_calls_free(&calls);
        scene_close(&s);
    }
}

static void a_clock_that_went_back_keeps_nobody_out_for_more_than_a_window(void **state)
{
    scene s;
    (void)state;
    for (int place = 0; place < PLACES; place++) {
        scene_open(&s, place, "3/minute");
        s.clock.us += UINT64_C(86400000000);
        for (int i = 0; i < 3; i++)
            assert_true(limit_let(s.limiter, s.who, NULL));
        s.clock.us -= UINT64_C(43200000000);
        assert_false(limit_let(s.limiter, s.who, NULL));
        s.clock.us += UINT64_C(59000000);
        assert_false(limit_let(s.limiter, s.who, NULL));
        s.clock.us += UINT64_C(2875000);
        assert_true(limit_let(s.limiter, s.who, NULL));
        scene_close(&s);
    }
}

static void thousands_have_their_own_windows(void **state)
{
    enum { CALLERS = 5000 };
    scene s;
    (void)state;
    for (int place = 0; place < 2; place++) {
        scene_open(&s, place, "2/minute");
        for (int turn = 0; turn < 3; turn++) {
            for (int i = 0; i < CALLERS; i++) {
                char name[24];
                snprintf(name, sizeof name, "user %d", i);
                s.clock.us += 1000;
                assert_int_equal(
                    limit_let(s.limiter, limit_somebody(s.limiter, name), NULL),
                    turn < 2);
            }
        }
        scene_close(&s);
    }
}

/* A flood of callers does not give a full window up. */
static void a_flood_does_not_empty_a_full_window(void **state)
{
    scene s;
    (void)state;
    for (int place = 0; place < 2; place++) {
        scene_open(&s, place, "50/hour");
        for (int i = 0; i < 50; i++)
            assert_true(limit_let(s.limiter, s.who, NULL));
        for (uint64_t i = 0; i < 200000; i++)
            (void)limit_let(s.limiter, i * UINT64_C(0x9e3779b97f4a7c15), NULL);
        assert_false(limit_let(s.limiter, s.who, NULL));
        scene_close(&s);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rates_are_a_count_and_a_unit),
        cmocka_unit_test(nonsense_is_refused_with_what_is_allowed),
        cmocka_unit_test(rules_have_rates_that_can_be_set),
        cmocka_unit_test(operations_name_rules),
        cmocka_unit_test(never_more_than_the_rate_in_any_period),
        cmocka_unit_test(a_client_slower_by_a_32nd_is_never_refused),
        cmocka_unit_test(retry_ms_is_when_a_try_succeeds),
        cmocka_unit_test(refused_and_returned_calls_are_not_counted),
        cmocka_unit_test(each_rule_and_each_caller_has_its_own_window),
        cmocka_unit_test(nothing_is_gained_by_a_restart_of_the_machine),
        cmocka_unit_test(a_clock_that_went_back_keeps_nobody_out_for_more_than_a_window),
        cmocka_unit_test(thousands_have_their_own_windows),
        cmocka_unit_test(a_flood_does_not_empty_a_full_window),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
