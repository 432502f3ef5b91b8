/*
 * test_once.c: a turn with a name is written once, however often and by whomever it is
 * asked for.
 */
#include "support/check.h"
#include "support/children.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* One message of the user, under a name, after a base. */
static sessile_status ask(sessile_session *s, const char *name, sessile_id base,
                          sessile_run_options *o, sessile_outcome *out,
                          sessile_error *err)
{
    const sessile_slice message =
        sessile_text("{\"role\":\"user\",\"content\":\"hello\"}");
    sessile_need need;
    sessile_run *run;
    sessile_status status;

    o->once = sessile_text(name);
    o->has_base = 1;
    o->base = base;
    status = sessile_turn_begin(&run, s, &message, 1, o, err);
    if (status)
        return status;
    status = sessile_run_step(run, &need, err);
    if (!status)
        status = sessile_run_outcome(run, out, err);
    sessile_run_free(run);
    return status;
}

static sessile_outcome asked(sessile_session *s, const char *name, sessile_id base)
{
    sessile_run_options o;
    sessile_outcome out;
    sessile_error err;

    sessile_run_options_init(&o);
    must(ask(s, name, base, &o, &out, &err), &err);
    return out;
}

static size_t messages_of(sessile_session *s)
{
    sessile_message *list;
    sessile_error err;
    size_t count;

    must(sessile_messages(s, NULL, &list, &count, &err), &err);
    sessile_free(list);
    return count;
}

static void a_turn_that_was_written_is_told_again(void **state)
{
    place *p = *state;
    sessile_session *s = session_in(state, "s"), *other;
    sessile_outcome first = asked(s, "one", 0), again;

    assert_int_equal(first.again, 0);
    say(s, "user", "somebody else's");
    again = asked(s, "one", 0);
    assert_int_equal(again.again, 1);
    assert_int_equal(again.first, first.first);
    assert_int_equal(again.last, first.last);
    assert_int_equal(again.head, first.last + 1);
    assert_int_equal(again.verdict, SESSILE_NO_POLICY);
    assert_int_equal(messages_of(s), 2);
    session_closed(s);

    sessile_store *st = place_again(p); /* as another process has it */
    other = session_resumed(st, "s");
    again = asked(other, "one", 0);
    assert_int_equal(again.again, 1);
    assert_int_equal(again.last, first.last);
    session_closed(other);
    place_again_close(p, st);
}

static void a_name_counts_after_its_base_alone(void **state)
{
    sessile_session *s = session_in(state, "s");
    sessile_outcome first = asked(s, "one", 0), second;

    second = asked(s, "one", first.last); /* another turn: it was thought on the first */
    assert_int_equal(second.again, 0);
    assert_true(second.last > first.last);
    assert_int_equal(asked(s, "one", first.last).last, second.last);
    assert_int_equal(asked(s, "one", 0).last, first.last);
    session_closed(s);
}

static void another_name_is_a_conflict_or_another_turn(void **state)
{
    sessile_session *s = session_in(state, "s");
    sessile_outcome out, first = asked(s, "one", 0);
    sessile_run_options o;
    sessile_error err;

    sessile_run_options_init(&o);
    assert_int_equal(ask(s, "two", 0, &o, &out, &err), SESSILE_CONFLICT);
    o.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    must(ask(s, "two", 0, &o, &out, &err), &err);
    assert_int_equal(out.again, 0);
    assert_true(out.last > first.last);
    must(ask(s, "two", 0, &o, &out, &err), &err);
    assert_int_equal(out.again, 1);
    o.on_conflict = SESSILE_ON_CONFLICT_BRANCH;
    must(ask(s, "three", 0, &o, &out, &err), &err);
    assert_int_equal(out.again, 0);
    must(ask(s, "three", 0, &o, &out, &err), &err);
    assert_int_equal(out.again, 1);
    assert_int_equal(messages_of(s), 2); /* the third is beside the head */
    session_closed(s);
}

static void a_name_needs_a_base_and_a_size(void **state)
{
    sessile_session *s = session_in(state, "s");
    sessile_slice message = sessile_text("{\"role\":\"user\",\"content\":\"hello\"}");
    const char *const names[] = {"a\nb", "\xff", "\xc3"};
    char name[66];
    sessile_run_options o;
    sessile_outcome out;
    sessile_error err;
    sessile_run *run;

    sessile_run_options_init(&o);
    o.once = sessile_text("one");
    assert_int_equal(sessile_turn_begin(&run, s, &message, 1, &o, &err), SESSILE_INVALID);
    assert_non_null(strstr(err.message, "base"));
    memset(name, 'x', 65);
    name[65] = 0;
    assert_int_equal(ask(s, name, 0, &o, &out, &err), SESSILE_INVALID);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        assert_int_equal(ask(s, names[i], 0, &o, &out, &err), SESSILE_INVALID);
    assert_int_equal(messages_of(s), 0);
    name[64] = 0;
    must(ask(s, name, 0, &o, &out, &err), &err);
    assert_int_equal(asked(s, name, 0).again, 1);
    must(ask(s, "\"quoted\\ \xc3\xa4", out.last, &o, &out, &err), &err);
    assert_int_equal(out.again, 0);
    assert_int_equal(asked(s, "\"quoted\\ \xc3\xa4", 0).again, 1);
    session_closed(s);
}

/* ------------------------------------------------------------------ two processes */

enum { TURNS = 60, TRIES = 3 };

/* Each turn is asked for several times, as by somebody who heard no answer. */
static void write_turns(place *p, char who)
{
    sessile_store *st = place_again(p);
    sessile_session *s = session_resumed(st, "s");
    sessile_outcome out = {0};
    sessile_run_options o;
    sessile_error err;

    sessile_run_options_init(&o);
    o.on_conflict = SESSILE_ON_CONFLICT_APPEND;
    for (int i = 0; i < TURNS; i++) {
        sessile_id base = out.head, last = 0;
        char name[20];
        snprintf(name, sizeof name, "%c%d", who, i);
        for (int try = 0; try < TRIES; try++) {
            must(ask(s, name, base, &o, &out, &err), &err);
            assert_int_equal(out.again, try > 0);
            assert_true(!last || out.last == last);
            last = out.last;
        }
    }
    session_closed(s);
    place_again_close(p, st);
}

static void write_as_told(void *arg, int in, int out)
{
    write_turns(arg, 'b');
    child_tell(out, 'q');
    (void)child_hear(in);
}

static void two_processes_write_each_turn_once(void **state)
{
    place *p = *state;
    sessile_session *s;
    child other;

    session_closed(session_in(state, "s"));
    other = child_start(write_as_told, p);
    write_turns(p, 'a');
    assert_int_equal(child_hear(other.from), 'q');
    child_end(&other);
    s = session_resumed(p->store, "s");
    assert_int_equal(messages_of(s), 2 * TURNS);
    session_closed(s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        OVER(a_turn_that_was_written_is_told_again),
        OVER(a_name_counts_after_its_base_alone),
        OVER(another_name_is_a_conflict_or_another_turn),
        OVER(a_name_needs_a_base_and_a_size),
    };
    const struct CMUnitTest of_two[] = {OVER(two_processes_write_each_turn_once)};
    int failed = run_over_kinds("a turn with a name", STORE_RAM, tests,
                                sizeof tests / sizeof *tests);

    return failed +
           run_over_kinds("a turn with a name, two processes", STORE_SEALED, of_two, 1);
}
