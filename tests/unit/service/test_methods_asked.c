/*
 * test_methods_asked.c: how often a call asks the store, which may be a database far
 * away, and that it never shows what was there before the call.
 */
#include "direct.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "store/counted.h"
#include "support/postgres_stores.h"

static minimal_medium *medium;
static sessile_store *other; /* as another server has it */

static int set_up(void **state)
{
    (void)state;
    medium = minimal_medium_new();
    other = counted_store(medium);
    assert_non_null(other);
    return direct_open_over(counted_store(medium));
}

static int tear_down(void **state)
{
    direct_close(state);
    sessile_store_close(other);
    minimal_medium_free(medium);
    return 0;
}

static void count_anew(void)
{
    memset(&counted, 0, sizeof counted);
}

static sessile_session *open_beside(sessile_store *store, const char *id)
{
    sessile_session_options options;
    sessile_session *s;
    sessile_session_options_init(&options);
    options.id = sessile_text(id);
    assert_int_equal(sessile_resume(&s, store, &options, NULL), SESSILE_OK);
    return s;
}

/* Another server sets the title of a session. */
static void retitle(const char *id, const char *title)
{
    sessile_session *s = open_beside(other, id);
    assert_int_equal(sessile_set_title(s, sessile_text(title), NULL), SESSILE_OK);
    assert_int_equal(sessile_session_close(s, NULL), SESSILE_OK);
}

static const char *title_of(Sessile__V1__SessionRequest *r)
{
    const Sessile__V1__SessionInfo *info = call_ok("ResumeSession", r);
    return info->title;
}

/* ---------------------------------------------------------------------- how often */

static void what_a_session_is_is_asked_once(void **state)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    r.session = session_with("s", 3);
    call_ok("ResumeSession", &r);
    count_anew();
    const Sessile__V1__SessionInfo *info = call_ok("ResumeSession", &r);
    assert_int_equal(info->head, 3);
    assert_int_equal(info->events, 3);
    assert_int_equal(counted.size, 1);
    assert_int_equal(counted.open + counted.read, 0);
}

/* The first call of a session costs what opening it costs. */
static void a_session_that_the_call_opens_is_not_asked_about_again(void **state)
{
    static const char *const methods[] = {"ResumeSession", "GetSuspension", "ListLabels"};
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    r.session = session_with("s", 3);
    count_anew();
    assert_int_equal(sessile_session_close(open_beside(other, "s"), NULL), SESSILE_OK);
    const struct counted opening = counted;
    for (size_t i = 0; i < sizeof methods / sizeof *methods; i++) {
        keep_close(direct.service.keep);
        assert_int_equal(keep_open(&direct.service.keep, &direct.service, 100,
                                   &allocator_default, NULL),
                         SESSILE_OK);
        count_anew();
        call_ok(methods[i], &r);
        print_message("# figure: %s of a session that is not open: %u times its end\n",
                      methods[i], counted.size);
        assert_memory_equal(&counted, &opening, sizeof counted);
    }
}

static void a_change_is_followed_by_one_question(void **state)
{
    Sessile__V1__LifeRequest r = SESSILE__V1__LIFE_REQUEST__INIT;
    (void)state;
    r.session = session_with("s", 1);
    r.change_case = SESSILE__V1__LIFE_REQUEST__CHANGE_ARCHIVED;
    r.archived = 1;
    call_ok("SetLife", &r);
    count_anew();
    r.archived = 0;
    const Sessile__V1__SessionInfo *info = call_ok("SetLife", &r);
    assert_string_equal(info->life, "active");
    assert_int_equal(counted.append, 1);
    assert_in_range(counted.size, 0, 2); /* before the append, and for the reply */
}

static sessile_store *store_over(store *st)
{
    sessile_store_options options;
    sessile_store *out;
    sessile_store_options_init(&options);
    options.key_source = SESSILE_KEY_PLAIN;
    assert_int_equal(sessile_open_with(&out, st->table, st->self, &options, NULL),
                     SESSILE_OK);
    return out;
}

/* Over a database far away that is what the first call of a session takes. */
static void the_first_call_of_a_session_is_three_round_trips(void **state)
{
    static const int sizes[] = {3, 300, 1400};
    static const char *const methods[] = {"ResumeSession", "GetSuspension"};
    (void)state;
    char *url = postgres_place(postgres_needed()->url);
    store st = store_at(url);
    direct_open_over(store_over(&st));
    char ids[3][16];
    for (size_t i = 0; i < 3; i++) {
        snprintf(ids[i], sizeof ids[i], "s-%d", sizes[i]);
        session_with(ids[i], sizes[i]);
    }
    direct_close(state);
    for (size_t i = 0; i < 6; i++) {
        Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
        st = store_at(url);
        direct_open_over(store_over(&st));
        const pg_store *ps = st.self;
        const uint64_t before = ps->round_trips;
        r.session = asked(ids[i / 2]);
        call_ok(methods[i % 2], &r);
        const unsigned cold = (unsigned)(ps->round_trips - before);
        call_ok(methods[i % 2], &r);
        print_message("# figure: %s, %d messages: %u round trips, then %u\n",
                      methods[i % 2], sizes[i / 2], cold,
                      (unsigned)(ps->round_trips - before) - cold);
        assert_in_range(cold, 1, 3);
        assert_int_equal(ps->round_trips - before - cold, 1);
        direct_close(state);
    }
    postgres_drop(url);
}

/* ---------------------------------------------------------------------- how fresh */

static void each_call_sees_what_others_wrote_before_it(void **state)
{
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    r.session = session_with("s", 1);
    retitle("s", "before it was open");
    assert_string_equal(title_of(&r), "before it was open");
    retitle("s", "after the call that opened it");
    assert_string_equal(title_of(&r), "after the call that opened it");
    retitle("s", "later");
    assert_string_equal(title_of(&r), "later");
}

/* A call that failed leaves nothing behind that the next one believes. */
static void a_call_that_failed_does_not_make_the_next_one_see_the_past(void **state)
{
    Sessile__V1__EntryRequest none = SESSILE__V1__ENTRY_REQUEST__INIT;
    Sessile__V1__SessionRequest r = SESSILE__V1__SESSION_REQUEST__INIT;
    (void)state;
    none.session = r.session = session_with("s", 1);
    none.entry = 99;
    call_fails("GetEntry", &none, RPC_NOT_FOUND, "ENOTFOUND");
    retitle("s", "new");
    assert_string_equal(title_of(&r), "new");
}

int main(void)
{
#define ASKED(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ASKED(what_a_session_is_is_asked_once),
        ASKED(a_session_that_the_call_opens_is_not_asked_about_again),
        ASKED(a_change_is_followed_by_one_question),
        cmocka_unit_test(the_first_call_of_a_session_is_three_round_trips),
        ASKED(each_call_sees_what_others_wrote_before_it),
        ASKED(a_call_that_failed_does_not_make_the_next_one_see_the_past),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
