/*
 * listed.c: lists over a table of system calls that counts the logs that are opened.
 */
#include "guard/enter.h"
#include "support/listed.h"

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

#include "admin/list.h"
#include "support/lists.h"
#include "support/logs.h"

os_table listed_os;
unsigned long listed_logs_opened; /* set to 0 before what is to be counted */
int listed_hidden;               /* the list cache cannot be opened, nor a file be made */
int listed_readonly;             /* no file can be made */
int64_t listed_ahead_ms = 10000; /* of lists: what was just written is settled */

static int open_at(void *ud, int dir, const char *path, int flags)
{
    size_t size = strlen(path);
    (void)ud;
    if (size > 6 && !strcmp(path + size - 6, ".jsonl"))
        __atomic_fetch_add(&listed_logs_opened, 1, __ATOMIC_RELAXED);
    if (listed_hidden && !strcmp(path, ".list_cache")) {
        errno = ENOENT;
        return -1;
    }
    if ((listed_hidden || listed_readonly) && (flags & OS_CREATE_NEW)) {
        errno = EROFS;
        return -1;
    }
    return os_posix.open_at(NULL, dir, path, flags);
}

int listed_in_a_list; /* entries keep the real time */

static int64_t shifted_now_ms(void *ud)
{
    (void)ud;
    return os_posix.now_ms(NULL) + (listed_in_a_list ? listed_ahead_ms : 0);
}

void listed_put_row(buf *out, const sessile_listed *row, int with_torn)
{
    buf_put(out, row->id.data, row->id.size);
    buf_printf(out, "|%s|%s|%s|%" PRId64 "|%" PRId64 "|%" PRIu64 "|%" PRIu64 "|%" PRIu64,
               row->agent.data, row->user.data, row->title.data, row->created_ms,
               row->modified_ms, row->entries, row->messages, row->bytes);
    if (with_torn)
        buf_printf(out, "|%" PRIu64, row->torn);
    buf_printf(out, "|%s|%s\n", sessile_status_name(row->status), row->message);
}

char *listed_text(sessile_store *st, const sessile_list_options *o)
{
    sessile_listed *rows;
    sessile_error err;
    size_t count;
    char *text;
    buf out;

    buf_init(&out, &allocator_default);
    listed_in_a_list = 1;
    sessile_status status = list_sessions(st->core, NULL, o, &rows, &count, &err);
    listed_in_a_list = 0;
    if (status)
        buf_printf(&out, "%s: %s", sessile_status_name(status), err.message);
    for (size_t i = 0; !status && i < count; i++)
        listed_put_row(&out, &rows[i], 0);
    sessile_free(rows);
    buf_putc(&out, 0);
    text = strdup(out.data);
    assert_non_null(text);
    buf_deinit(&out);
    return text;
}

const sessile_list_options listed_all;

/* The list without a list cache: what every other one must be. */
char *listed_bare(sessile_store *st, const sessile_list_options *o)
{
    listed_hidden = 1;
    char *text = listed_text(st, o);
    listed_hidden = 0;
    return text;
}

void assert_listed_right(sessile_store *st, const char *where)
{
    char *got = listed_text(st, &listed_all), *again = listed_text(st, &listed_all),
         *expected = listed_bare(st, &listed_all);
    if (strcmp(got, expected) || strcmp(again, expected)) {
        print_error("%s (SEED=%" PRIu64 ")\n--- expected\n%s--- got\n%s--- again\n%s",
                    where, random_seed(), expected, got, again);
        fail_msg("a list with a list_cache differs");
    }
    free(got);
    free(again);
    free(expected);
}

unsigned long listed_opened(sessile_store *st)
{
    listed_logs_opened = 0;
    free(listed_text(st, &listed_all));
    return listed_logs_opened;
}

void listed_path(const place *p, const char *name, char out[600])
{
    snprintf(out, 600, "%s/agents/main/%s", p->folder, name);
}

char *listed_cache_read(const place *p, size_t *size)
{
    char path[600];
    listed_path(p, ".list_cache", path);
    return file_read_all(path, size);
}

void listed_cache_write(const place *p, const void *data, size_t size)
{
    char path[600];
    listed_path(p, ".list_cache", path);
    unlink(path);
    file_write_all(path, data, size);
}

void listed_make_three(const place *p)
{
    static const char *const ids[] = {"one", "two", "three"};
    for (size_t i = 0; i < 3; i++) {
        sessile_session *s = session_made(p->store, ids[i]);
        say(s, "user", "hello");
        session_closed(s);
    }
}

void listed_append(const place *p, const char *id)
{
    sessile_store *other = place_again(p);
    sessile_session *s = session_resumed(other, id);
    say(s, "user", "more");
    session_closed(s);
    place_again_close(p, other);
}

void listed_spoil(const char *path, long offset)
{
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    fseek(file, offset, SEEK_SET);
    int c = fgetc(file);
    fseek(file, offset, SEEK_SET);
    fputc(c == '#' ? '!' : '#', file);
    fclose(file);
}

static int set_up(void **state, store_kind kind)
{
    place *p = malloc(sizeof *p);
    listed_os = os_posix;
    listed_os.open_at = open_at;
    listed_os.now_ms = shifted_now_ms;
    os_current = &listed_os;
    listed_ahead_ms = 10000;
    listed_hidden = listed_readonly = 0;
    place_open(p, kind);
    *state = p;
    return 0;
}

static int set_up_sealed(void **state)
{
    return set_up(state, STORE_SEALED);
}

static int set_up_plain(void **state)
{
    return set_up(state, STORE_PLAIN);
}

static int tear_down(void **state)
{
    os_current = &os_posix;
    return place_tear_down(state);
}

int listed_run(const struct CMUnitTest *tests, size_t count, const char *what)
{
    static const store_kind kinds[] = {STORE_SEALED, STORE_PLAIN};
    int failed = 0;
    for (size_t k = 0; k < 2; k++) {
        struct CMUnitTest over[32];
        char name[64];
        assert_true(count <= sizeof over / sizeof *over);
        for (size_t i = 0; i < count; i++) {
            over[i] = tests[i];
            over[i].setup_func = kinds[k] == STORE_SEALED ? set_up_sealed : set_up_plain;
            over[i].teardown_func = tear_down;
        }
        snprintf(name, sizeof name, "%s over %s", what, store_kind_names[kinds[k]]);
        failed += _cmocka_run_group_tests(name, over, count, NULL, NULL);
    }
    return failed;
}
