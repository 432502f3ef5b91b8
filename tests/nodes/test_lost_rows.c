/*
 * test_lost_rows.c: a row of a database is lost, cut short or says something else.
 *
 * Owns what that costs: the entry that the row held, as a hole in a file does, and
 * nothing where only numbers are wrong. Check tells, salvage makes the session writable
 * again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "nodes/database.h"
#include "support/ledger.h"

enum { MESSAGES = 6 };

static void change(const database *d, const char *format)
{
    char text[300];
    if (strcmp(d->kind, "postgres") == 0) {
        snprintf(text, sizeof text, format, postgres_schema(d->place));
        char *done = postgres_sql(d->place, text);
        assert_non_null(done);
        free(done);
        return;
    }
    sqlite3 *db;
    snprintf(text, sizeof text, format, "main");
    assert_int_equal(sqlite3_open(strchr(d->url, ':') + 1, &db), SQLITE_OK);
    assert_int_equal(sqlite3_exec(db, text, NULL, NULL, NULL), SQLITE_OK);
    sqlite3_close(db);
}

static sessile_checked checked(sessile_store *store, int salvage)
{
    sessile_session_options which;
    sessile_check *check;
    sessile_checked log;
    sessile_error err = {0};
    sessile_session_options_init(&which);
    which.id = sessile_text("hurt");
    assert_int_equal(sessile_check_open(&check, store, &which, salvage, &err),
                     SESSILE_OK);
    assert_int_equal(sessile_check_next(check, &log, &err), SESSILE_OK);
    assert_non_null(log.file);
    assert_true(log.count > 0);
    sessile_check_close(check);
    return log;
}

static size_t messages(sessile_session *s)
{
    sessile_message *list;
    size_t count;
    sessile_error err = {0};
    sessile_status status = sessile_messages(s, NULL, &list, &count, &err);
    if (status)
        fail_msg("%s", err.message);
    sessile_free(list);
    return count;
}

static void costs(const char *kind, int sealed, const char *lie, size_t lost)
{
    const char *why = "", *const say = "{\"role\":\"user\",\"content\":\"word\"}";
    database *d = database_new(kind, sealed, 0, &why);
    sessile_store *store;
    sessile_session_options options;
    sessile_session *s;
    sessile_id id;
    sessile_error err = {0};
    if (!d) {
        print_message("# %s\n", why);
        skip();
    }
    assert_int_equal(database_open(d, NULL, &store, &err), SESSILE_OK);
    sessile_session_options_init(&options);
    options.id = sessile_text("hurt");
    assert_int_equal(sessile_create(&s, store, &options, &err), SESSILE_OK);
    for (int i = 0; i < MESSAGES; i++)
        assert_int_equal(sessile_append(s, sessile_text(say), &id, &err), SESSILE_OK);
    sessile_session_close(s, NULL);
    change(d, lie);

    assert_int_equal(sessile_resume(&s, store, &options, &err), SESSILE_OK);
    if (messages(s) != MESSAGES - lost)
        fail_msg("%s %d: %s: %zu messages", kind, sealed, lie, messages(s));
    if (sessile_append(s, sessile_text(say), &id, &err) != SESSILE_DAMAGED)
        fail_msg("%s %d: %s: %d %s", kind, sealed, lie, (int)err.code, err.message);
    assert_non_null(strstr(err.message, "salvage"));
    sessile_session_close(s, NULL);
    sessile_checked found = checked(store, 0);
    assert_int_equal(found.salvaged, 0);
    if (lost > 0 && found.lost != lost)
        fail_msg("%s %d: %s: %zu lost", kind, sealed, lie, (size_t)found.lost);
    assert_int_equal(checked(store, 1).salvaged, 1);

    assert_int_equal(sessile_resume(&s, store, &options, &err), SESSILE_OK);
    assert_int_equal(messages(s), MESSAGES - lost);
    if (sessile_append(s, sessile_text(say), &id, &err))
        fail_msg("%s %d: %s: %s", kind, sealed, lie, err.message);
    /* a lost entry's id is not given out again; a number that lies may cost one */
    if (id <= MESSAGES || (lost > 0 && id != MESSAGES + 1))
        fail_msg("%s %d: %s: the new entry is %08x", kind, sealed, lie, (unsigned)id);
    sessile_session_close(s, NULL);
    ledger_check_clean(store, "hurt");
    sessile_store_close(store);
    database_free(d);
}

/* Numbered from 0, the header; a message each. */
static void a_lost_row_costs_what_it_held(void **state)
{
    static const struct {
        const char *lie;
        size_t lost;
    } lies[] = {
        {"delete from %s.entries where id = 3", 1},
        {"delete from %s.entries where id in (2, 3, 5)", 3},
        {"delete from %s.entries where id = 6", 1},
        {"update %s.entries set line = substr(line, 1, 40) where id = 2", 1},
        {"update %s.entries set line = substr(line, 1, 40) where id = 6", 1},
        {"update %s.entries set at = at + 1000000 where id = 4", 1},
        {"update %s.sessions set count = count + 1", 0},
        {"update %s.sessions set count = count - 1", 0},
        {"update %s.sessions set bytes = bytes + 64", 0},
        {"update %s.sessions set bytes = 9", 0},
        {"delete from %s.entries where id in (5, 6)", 2},
        {"update %1$s.sessions set tag = (select substr(line, 1, 16)"
         " from %1$s.entries where id = 1)",
         0},
        {"update %1$s.sessions set tag = (select substr(line, 1, 3)"
         " from %1$s.entries where id = 1)",
         0},
    };
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++)
        for (int sealed = 0; sealed < 2; sealed++)
            costs(*state, sealed, lies[i].lie, lies[i].lost);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(a_lost_row_costs_what_it_held, (void *)"sqlite"),
        cmocka_unit_test_prestate(a_lost_row_costs_what_it_held, (void *)"postgres"),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
