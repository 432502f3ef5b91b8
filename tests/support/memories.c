/* memories.c: long-term memories for tests. */
#include "support/memories.h"
#include "support/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

sessile_memory *memory_of(sessile_store *st, const char *user)
{
    sessile_memory_options options;
    sessile_memory *m;
    sessile_error err;

    sessile_memory_options_init(&options);
    options.agent = sessile_text("coder");
    options.user = sessile_text(user);
    options.consent = sessile_text(user ? "yes" : NULL);
    must(sessile_memory_open(&m, st, &options, &err), &err);
    return m;
}

sessile_id remember(sessile_memory *m, const char *key, const char *value,
                    const char *also)
{
    sessile_memory_write_entry e;
    sessile_error err;
    sessile_id id;

    sessile_memory_write_init(&e);
    e.key = sessile_text(key);
    e.value = sessile_text(value);
    e.also = sessile_text(also);
    must(sessile_memory_write(m, &e, 1, &id, &err), &err);
    return id;
}

void judge(sessile_memory *m, sessile_id id, sessile_memory_verdict_kind verdict)
{
    sessile_error err;
    must(sessile_memory_verdict(m, &id, 1, verdict, sessile_text(NULL),
                                sessile_text(NULL), NULL, &err),
         &err);
}

static char *joined(sessile_memory_row *rows, size_t count)
{
    size_t size = 1;
    char *out;
    for (size_t i = 0; i < count; i++)
        size += rows[i].value.size + 1;
    out = calloc(size, 1);
    assert_non_null(out);
    for (size_t i = 0; i < count; i++) {
        strcat(out, i ? "|" : "");
        strcat(out, rows[i].value.data);
    }
    sessile_free(rows);
    return out;
}

char *found(sessile_memory *m, const char *question)
{
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;
    must(sessile_memory_search(m, sessile_text(question), NULL, &rows, &count, &err),
         &err);
    return joined(rows, count);
}

char *listed_values(sessile_memory *m, const sessile_memory_list_options *options)
{
    sessile_memory_row *rows;
    sessile_error err;
    size_t count;
    must(sessile_memory_list(m, options, &rows, &count, &err), &err);
    return joined(rows, count);
}

void expect_text(char *text, const char *expected)
{
    assert_string_equal(text, expected);
    free(text);
}

void expect_key(sessile_memory *m, const char *key, const char *value)
{
    sessile_memory_row *row;
    sessile_error err;
    sessile_status status = sessile_memory_read(m, sessile_text(key), &row, &err);
    if (!value) {
        assert_int_equal(status, SESSILE_NOTFOUND);
        return;
    }
    must(status, &err);
    assert_string_equal(row->value.data, value);
    sessile_free(row);
}
