/* forks.c: forks made, and compared with the session that they come from */
#include "support/forks.h"

#include "support/check.h"
#include "support/faulty.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

sessile_session *fork_with(sessile_session *s, sessile_id entry,
                           const sessile_session_options *o)
{
    sessile_session *f = NULL;
    sessile_error err;

    must(sessile_fork(&f, s, entry, o, &err), &err);
    return f;
}

sessile_session *fork_at(sessile_session *s, sessile_id entry, const char *id)
{
    sessile_session_options o;

    sessile_session_options_init(&o);
    o.id = sessile_text(id);
    return fork_with(s, entry, &o);
}

char *entry_text_of(sessile_session *s, sessile_id id)
{
    char *text;
    size_t size;
    sessile_error err;

    must(sessile_entry(s, id, &text, &size, &err), &err);
    return text;
}

void assert_same_entries(sessile_session *a, sessile_session *b, sessile_id last)
{
    for (sessile_id id = 1; id <= last; id++) {
        char *x = entry_text_of(a, id), *y = entry_text_of(b, id);
        assert_string_equal(x, y);
        sessile_free(x);
        sessile_free(y);
    }
}

void assert_head(sessile_session *s, sessile_id expected)
{
    sessile_id head;
    sessile_error err;

    must(sessile_head(s, &head, &err), &err);
    assert_int_equal(head, expected);
}

void assert_contents(sessile_session *s, const char *expected)
{
    sessile_message *rows;
    sessile_error err;
    size_t count;
    char got[4096] = "";

    must(sessile_messages(s, NULL, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++) {
        const char *at = strstr(rows[i].json.data, "\"content\":\"");
        assert_non_null(at);
        at += strlen("\"content\":\"");
        size_t n = strcspn(at, "\"");
        assert_true(strlen(got) + n + 2 < sizeof got);
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%.*s", i ? " " : "",
                 (int)n, at);
    }
    sessile_free(rows);
    assert_string_equal(got, expected);
}

void assert_title(sessile_session *s, const char *expected)
{
    char *title;
    size_t size;
    sessile_error err;

    must(sessile_title(s, &title, &size, &err), &err);
    assert_string_equal(title, expected);
    sessile_free(title);
}

void assert_labels(sessile_session *s, const char *expected)
{
    sessile_label_row *rows;
    sessile_error err;
    size_t count;
    char got[1024] = "";

    must(sessile_labels(s, &rows, &count, &err), &err);
    for (size_t i = 0; i < count; i++)
        snprintf(got + strlen(got), sizeof got - strlen(got), "%s%08" PRIx32 "=%s",
                 i ? " " : "", rows[i].entry, rows[i].name.data);
    sessile_free(rows);
    assert_string_equal(got, expected);
}

void put_label(sessile_session *s, sessile_id id, const char *name)
{
    sessile_error err;

    must(sessile_label(s, id, sessile_text(name), &err), &err);
}

void give_title(sessile_session *s, const char *title)
{
    sessile_error err;

    must(sessile_set_title(s, sessile_text(title), &err), &err);
}

void assert_clean(sessile_store *st)
{
    sessile_check *check;
    sessile_checked step;
    sessile_error err;

    must(sessile_check_open(&check, st, NULL, 0, &err), &err);
    do {
        must(sessile_check_next(check, &step, &err), &err);
        for (size_t i = 0; step.file && i < step.count; i++)
            if (step.findings[i].severity != SESSILE_NOTE)
                fail_msg("%s: %s", step.findings[i].file, step.findings[i].what);
    } while (step.file);
    sessile_check_close(check);
}
