/*
 * test_ledger.c: the judge of the tests sees each thing that can go wrong with a message.
 *
 * Every fault is planted in a session that is otherwise as the ledger says, and it must
 * be counted as itself and as nothing else.
 */
#include "support/ledger.h"
#include "support/sessions.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

/* A message is written as writer and number, "0.3", in the order in which it is there. */
static sessile_id put(sessile_session *s, const char *name)
{
    unsigned writer, number;
    char text[64];
    assert_int_equal(sscanf(name, "%u.%u", &writer, &number), 2);
    ledger_text(text, writer, number);
    return say(s, "user", text);
}

static sessile_session *session_of(void **state, const char *id, const char *messages)
{
    char copy[200];
    sessile_session *s = session_made(((place *)*state)->store, id);
    snprintf(copy, sizeof copy, "%s", messages);
    for (char *name = strtok(copy, " "); name; name = strtok(NULL, " "))
        put(s, name);
    return s;
}

/* Two writers with three messages each: acknowledged, but the last of the second, whose
 * outcome is this. */
static ledger *ledger_of(ledger_outcome last)
{
    ledger *l = ledger_new();
    for (int i = 0; i < 2; i++) {
        unsigned writer = ledger_writer(l);
        for (unsigned n = 0; n < 3; n++)
            ledger_note(l, writer, n, writer == 1 && n == 2 ? last : LEDGER_ACKNOWLEDGED,
                        SESSILE_NO_ID);
    }
    return l;
}

static ledger_sum judged(void **state, ledger_outcome last, const char *messages)
{
    ledger *l = ledger_of(last);
    sessile_session *s = session_of(state, "judged", messages);
    ledger_sum sum = ledger_compare(l, s);
    session_closed(s);
    ledger_free(l);
    return sum;
}

/* How many faults, of all kinds. */
static unsigned long faults(const ledger_sum *sum)
{
    return sum->lost + sum->twice + sum->revoked + sum->invented + sum->astray +
           sum->disorder + sum->off_path;
}

static void what_is_right_has_no_fault(void **state)
{
    ledger_sum sum = judged(state, LEDGER_ACKNOWLEDGED, "0.0 1.0 1.1 0.1 0.2 1.2");
    ledger_check_sum(&sum);
    assert_int_equal(faults(&sum), 0);
    assert_int_equal(sum.acknowledged, 6);
    assert_int_equal(sum.there, 6);
}

static void a_loss_is_seen(void **state)
{
    ledger_sum sum = judged(state, LEDGER_ACKNOWLEDGED, "0.0 1.0 1.1 0.2 1.2");
    assert_int_equal(sum.lost, 1);
    assert_int_equal(faults(&sum), 1);
}

static void a_doubling_is_seen(void **state)
{
    ledger_sum sum = judged(state, LEDGER_ACKNOWLEDGED, "0.0 1.0 1.1 0.1 0.1 0.2 1.2");
    assert_int_equal(sum.twice, 1);
    assert_int_equal(faults(&sum), 1);
}

static void a_swap_is_seen(void **state)
{
    ledger_sum sum = judged(state, LEDGER_ACKNOWLEDGED, "0.0 1.0 1.1 0.2 0.1 1.2");
    assert_int_equal(sum.disorder, 1);
    assert_int_equal(faults(&sum), 1);
}

static void what_was_refused_must_not_be_there(void **state)
{
    ledger_sum sum = judged(state, LEDGER_REFUSED, "0.0 0.1 0.2 1.0 1.1 1.2");
    assert_int_equal(sum.revoked, 1);
    assert_int_equal(faults(&sum), 1);
}

static void what_nobody_sent_is_seen(void **state)
{
    ledger_sum sum =
        judged(state, LEDGER_ACKNOWLEDGED, "0.0 0.1 0.2 1.0 1.1 1.2 1.4 7.0");
    assert_int_equal(sum.invented, 2);
    assert_int_equal(faults(&sum), 2);
}

static void what_nobody_knows_is_there_once_or_not(void **state)
{
    ledger *l = ledger_of(LEDGER_UNKNOWN);
    static const char *const there[] = {"0.0 0.1 0.2 1.0 1.1 1.2", "0.0 0.1 0.2 1.0 1.1"};
    for (int i = 0; i < 2; i++) {
        char id[8];
        snprintf(id, sizeof id, "s%d", i);
        sessile_session *s = session_of(state, id, there[i]);
        ledger_sum sum = ledger_compare(l, s);
        assert_int_equal(faults(&sum), 0);
        assert_int_equal(sum.unsaid, 1 - i);
        session_closed(s);
    }
    ledger_free(l);
    ledger_sum sum = judged(state, LEDGER_UNKNOWN, "0.0 0.1 0.2 1.0 1.1 1.2 1.2");
    assert_int_equal(sum.twice, 1);
}

static void one_that_was_cut_short_may_be_there(void **state)
{
    ledger_sum sum =
        judged(state, LEDGER_ACKNOWLEDGED, "0.0 0.1 0.2 1.0 1.1 1.2 0.3 1.3");
    assert_int_equal(faults(&sum), 0);
    assert_int_equal(sum.unsaid, 2);
}

static void a_message_off_the_path_is_seen(void **state)
{
    ledger *l = ledger_of(LEDGER_ACKNOWLEDGED);
    sessile_session *s = session_of(state, "judged", "0.0 0.1 0.2 1.0");
    sessile_id id = put(s, "1.1");
    move_head(s, id - 1);
    put(s, "1.2");
    ledger_sum sum = ledger_compare(l, s);
    assert_int_equal(sum.off_path, 1);
    assert_int_equal(faults(&sum), 1);
    session_closed(s);
    ledger_free(l);
}

/* ------------------------------------------------------------------ journals */

/* A writer of its own process, which is killed after it has sent its third message. */
static void write_and_die(const char *folder, unsigned writer, sessile_id entry)
{
    char text[64];
    ledger_journal j;
    pid_t pid = fork();
    if (pid == 0) {
        ledger_journal_open(&j, folder, writer);
        ledger_journal_send(&j, "one", text);
        ledger_journal_note(&j, 0, LEDGER_ACKNOWLEDGED, entry);
        ledger_journal_send(&j, "two", text);
        ledger_journal_note(&j, 1, LEDGER_ACKNOWLEDGED, SESSILE_NO_ID);
        ledger_journal_send(&j, "one", text);
        _exit(0);
    }
    assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void journals_of_dead_writers_are_one_ledger(void **state)
{
    place *p = *state;
    char *folder = folder_make();
    sessile_session *one = session_made(p->store, "one"),
                    *two = session_made(p->store, "two");
    sessile_id first = put(one, "0.0"), second = put(one, "1.0");
    put(two, "1.1");
    put(two, "0.1");
    put(one, "0.2");
    session_closed(one);
    session_closed(two);
    write_and_die(folder, 0, first);
    write_and_die(folder, 1, second);
    ledger *l = ledger_read(folder);
    ledger_sum sum = ledger_compare_all(l, p->store);
    assert_int_equal(faults(&sum), 0);
    assert_int_equal(sum.acknowledged, 4);
    assert_int_equal(sum.there, 5);
    assert_int_equal(sum.unsaid, 1);
    ledger_free(l);
    folder_remove(folder);
}

static void another_entry_or_session_than_was_said_is_seen(void **state)
{
    place *p = *state;
    char *folder = folder_make();
    sessile_session *one = session_made(p->store, "one"),
                    *two = session_made(p->store, "two");
    sessile_id first = put(one, "0.0");
    put(one, "0.1"); /* was sent into two */
    session_closed(one);
    session_closed(two);
    write_and_die(folder, 0, first + 1);
    ledger *l = ledger_read(folder);
    ledger_sum sum = ledger_compare_all(l, p->store);
    assert_int_equal(sum.astray, 2);
    assert_int_equal(faults(&sum), 2);
    ledger_free(l);
    folder_remove(folder);
}

static void who_writes_down_what_he_sends_can_hide_nothing(void **state)
{
    place *p = *state;
    char *folder = folder_make();
    sessile_session *one = session_made(p->store, "one"),
                    *two = session_made(p->store, "two");
    sessile_id first = put(one, "0.0");
    put(two, "0.1");
    put(two, "0.3"); /* he has sent three */
    session_closed(one);
    session_closed(two);
    write_and_die(folder, 0, first);
    ledger *l = ledger_read(folder);
    ledger_sum sum = ledger_compare_all(l, p->store);
    assert_int_equal(sum.invented, 1);
    assert_int_equal(faults(&sum), 1);
    ledger_free(l);
    folder_remove(folder);
}

int main(void)
{
#define EACH(test) \
    cmocka_unit_test_setup_teardown(test, place_set_up_sealed, place_tear_down)
    const struct CMUnitTest tests[] = {
        EACH(what_is_right_has_no_fault),
        EACH(a_loss_is_seen),
        EACH(a_doubling_is_seen),
        EACH(a_swap_is_seen),
        EACH(what_was_refused_must_not_be_there),
        EACH(what_nobody_sent_is_seen),
        EACH(what_nobody_knows_is_there_once_or_not),
        EACH(one_that_was_cut_short_may_be_there),
        EACH(a_message_off_the_path_is_seen),
        EACH(journals_of_dead_writers_are_one_ledger),
        EACH(another_entry_or_session_than_was_said_is_seen),
        EACH(who_writes_down_what_he_sends_can_hide_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
