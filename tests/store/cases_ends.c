/*
 * cases_ends.c: many logs that are asked for at once, and the clock of a store's server.
 */
#include "store/backend.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static uint64_t end_of(opened *o, sessile_backend_log *log)
{
    uint64_t bytes = 0;

    must(o->table->ends(o->self, &log, 1, &bytes, &o->err), &o->err);
    return bytes;
}

/* As many as there may be, of few logs: one may be among them twice. */
static void many_logs_are_asked_for_at_once(void **state)
{
    enum { LOGS = 7 };
    opened o = open_site(*state);
    sessile_backend_log *logs[LOGS], **many = calloc(SESSILE_ENDS_MOST, sizeof *many);
    uint64_t *bytes = calloc(SESSILE_ENDS_MOST, sizeof *bytes);
    char name[20];

    assert_non_null(many);
    assert_non_null(bytes);
    for (int i = 0; i < LOGS; i++) {
        snprintf(name, sizeof name, "log%d", i);
        create(&o, "main", name, "one\n");
        logs[i] = log_of(&o, name);
    }
    for (int i = 0; i < LOGS; i += 2) { /* through handles that are not asked with */
        sessile_log_end end = {1, 4, {0}};
        snprintf(name, sizeof name, "log%d", i);
        sessile_backend_log *other = log_of(&o, name);
        for (int n = 0; n <= i; n++)
            must(append(&o, other, &end, "more\n", 5, 1, (unsigned char)n), &o.err);
        o.table->close(other);
    }
    for (size_t i = 0; i < SESSILE_ENDS_MOST; i++)
        many[i] = logs[i % LOGS];
    must(o.table->ends(o.self, many, SESSILE_ENDS_MOST, bytes, &o.err), &o.err);
    for (size_t i = 0; i < SESSILE_ENDS_MOST; i++) {
        size_t log = i % LOGS;
        assert_int_equal(bytes[i], log % 2 ? 4 : 4 + 5 * (log + 1));
    }
    /* and after a handle has seen it itself */
    for (size_t i = 0; i < LOGS; i++)
        assert_int_equal(size_of(&o, logs[i]), bytes[i]);
    must(o.table->ends(o.self, logs, LOGS, bytes + LOGS, &o.err), &o.err);
    assert_memory_equal(bytes + LOGS, bytes, LOGS * sizeof *bytes);
    for (int i = 0; i < LOGS; i++)
        o.table->close(logs[i]);
    free(many);
    free(bytes);
    done(&o);
}

static void an_end_follows_what_a_handle_appends(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_log_end end = {1, 4, {0}};

    must(append(&o, a, &end, "two\n", 4, 1, 1), &o.err);
    assert_int_equal(end_of(&o, a), 8);
    must(append(&o, b, &end, "three\n", 6, 1, 2), &o.err);
    assert_int_equal(end_of(&o, a), 14);
    assert_int_equal(end_of(&o, b), 14);
    done_with(&o, a, b);
}

static void the_end_of_a_log_that_is_gone_is_told(void **state)
{
    opened o = open_site(*state);
    uint64_t bytes[3];

    create(&o, "main", "gone", "one\n");
    create(&o, "main", "again", "one\n");
    create(&o, "main", "stays", "one\n");
    sessile_backend_log *logs[3] = {log_of(&o, "gone"), log_of(&o, "again"),
                                    log_of(&o, "stays")};
    remove_log(&o, "gone");
    remove_log(&o, "again");
    create(&o, "main", "again", "one\n"); /* just as long */
    must(o.table->ends(o.self, logs, 3, bytes, &o.err), &o.err);
    assert_true(bytes[0] == SESSILE_LOG_GONE);
    assert_true(bytes[1] == SESSILE_LOG_GONE);
    assert_int_equal(bytes[2], 4);
    for (int i = 0; i < 3; i++)
        o.table->close(logs[i]);
    done(&o);
}

static void the_end_of_a_log_that_was_replaced_is_told(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_backend_draft *draft = NULL;
    char kept[256] = "";

    must(o.table->draft_new(o.self, "main", "log", &draft, &o.err), &o.err);
    must(o.table->draft_write(draft, "neu\n", 4, &o.err), &o.err);
    (void)size_of(&o, a);
    assert_int_equal(locked(&o, a), 0);
    must(o.table->draft_replace(draft, a, 0, kept, sizeof kept, &o.err), &o.err);
    unlocked(&o, a);
    assert_true(end_of(&o, b) == SESSILE_LOG_GONE);
    sessile_backend_log *log = log_of(&o, "log");
    assert_int_equal(end_of(&o, log), 4);
    o.table->close(log);
    done_with(&o, a, b);
}

/* Whoever follows a log for others does not decide for its handle what it has seen. */
static void asking_for_ends_is_no_look(void **state)
{
    sessile_backend_log *a, *b;
    opened o = open_log(*state, "one\n", &a, &b);
    sessile_log_end end = {1, 4, {0}};

    assert_int_equal(size_of(&o, a), 4);
    must(append(&o, b, &end, "two\n", 4, 1, 1), &o.err);
    assert_int_equal(end_of(&o, a), 8);
    refused(removed(&o, a), SESSILE_CONFLICT, &o.err);
    done_with(&o, a, b);
}

static void a_clock_is_that_of_a_server(void **state)
{
    enum { DAY_MS = 86400000 };
    opened o = open_site(*state);
    int64_t first, second;

    must(o.table->clock(o.self, &first, &o.err), &o.err);
    must(o.table->clock(o.self, &second, &o.err), &o.err);
    /* milliseconds, wherever that server is: the clocks of two machines are not months
     * apart */
    assert_true(llabs(first - (int64_t)time(NULL) * 1000) < INT64_C(60) * DAY_MS);
    assert_true(llabs(second - first) < DAY_MS);
    done(&o);
}

static const struct CMUnitTest cases[] = {
    CASE_IF(many_logs_are_asked_for_at_once, NEEDS_ENDS),
    CASE_IF(an_end_follows_what_a_handle_appends, NEEDS_ENDS),
    CASE_IF(the_end_of_a_log_that_is_gone_is_told, NEEDS_ENDS | NEEDS_REMOVE),
    CASE_IF(the_end_of_a_log_that_was_replaced_is_told,
            NEEDS_ENDS | SESSILE_BACKEND_REPLACES),
    CASE_IF(asking_for_ends_is_no_look, NEEDS_ENDS | NEEDS_REMOVE | NEEDS_NO_LOCKS),
    CASE_IF(a_clock_is_that_of_a_server, NEEDS_CLOCK),
};

CASES(cases_ends, cases);
