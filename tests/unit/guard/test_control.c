/*
 * test_control.c: the control log: facts are kept in order, seen by other handles within
 * a second, survive keys that change, and say nothing of a user who was forgotten.
 */
#include "guard/enter.h"
#include "support/check.h"
#include "support/keyed.h"
#include "support/logs.h"
#include "support/sessions.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "guard/control.h"
#include "session/header.h"

typedef struct files {
    char *folder, path[600];
    sessile_store *store;
    control *control;
} files;

static control *opened(sessile_store *store)
{
    sessile_error err;
    control *c;

    must(control_open(&c, store->core, &err), &err);
    return c;
}

static int set_up(void **state)
{
    files *f = calloc(1, sizeof *f);

    f->folder = folder_make();
    snprintf(f->path, sizeof f->path, "%s/store", f->folder);
    f->store = keyed_open(f->path, KEYED_OLD);
    f->control = opened(f->store);
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    files *f = *state;

    control_close(f->control);
    sessile_store_close(f->store);
    folder_remove(f->folder);
    free(f);
    return 0;
}

/* A lock of a user. */
static sessile_id lock_user(control *c, const char *user)
{
    sessile_error err;
    sessile_id id;
    buf data;

    buf_init(&data, &allocator_default);
    buf_puts(&data, "{\"user\":");
    must(control_put_user(c, &data, sessile_text(user), &err), &err);
    buf_puts(&data, ",\"reason\":\"a test\"}");
    must(control_append(c, CONTROL_LOCK, &data, 1, &id, &err), &err);
    buf_deinit(&data);
    return id;
}

/* "ann,bob,-,": the users of all locks, in order; "-": who was forgotten. */
static sessile_status add_user(void *arg, const control_fact *fact, sessile_error *err)
{
    json user = json_get(fact->data, "user");
    buf *out = arg;

    (void)err;
    assert_int_equal(fact->kind, CONTROL_LOCK);
    assert_true(json_is(json_get(fact->data, "reason"), "a test"));
    if (control_is_lost(user))
        buf_putc(out, '-');
    else
        assert_int_equal(header_get_name(out, user), 0);
    buf_putc(out, ',');
    return SESSILE_OK;
}

static void assert_locks(control *c, const char *expected)
{
    sessile_error err;
    buf out;

    buf_init(&out, &allocator_default);
    buf_puts(&out, "");
    must(control_look_now(c, NULL, &err), &err);
    must(control_each(c, CONTROL_LOCK, add_user, &out, &err), &err);
    assert_string_equal(out.data, expected);
    buf_deinit(&out);
}

static void facts_are_kept_in_order(void **state)
{
    files *f = *state;
    sessile_error err;
    buf empty;

    assert_locks(f->control, "");
    assert_int_equal(lock_user(f->control, "ann"), 1);
    assert_int_equal(lock_user(f->control, "b\xff"), 2);
    buf_init(&empty, &allocator_default);
    buf_puts(&empty, "{}");
    must(control_append(f->control, CONTROL_HOLD, &empty, 0, NULL, &err), &err);
    buf_deinit(&empty);
    assert_int_equal(lock_user(f->control, "ann"), 4);
    assert_locks(f->control, "ann,b\xff,ann,");

    control *again = opened(f->store);
    assert_locks(again, "ann,b\xff,ann,");
    control_close(again);
}

static void another_handle_sees_a_fact(void **state)
{
    files *f = *state;
    sessile_store *store = keyed_open(f->path, KEYED_OLD);
    control *other = opened(store);
    uint64_t before, after;
    sessile_error err;

    must(control_look(other, &before, &err), &err);
    lock_user(f->control, "ann");
    must(control_look(other, &after, &err), &err); /* the same second, most likely */
    usleep(1100000);
    must(control_look(other, &after, &err), &err);
    assert_true(before != after);
    assert_locks(other, "ann,");
    lock_user(other, "bob");
    lock_user(f->control, "cid");
    assert_locks(other, "ann,bob,cid,");
    assert_locks(f->control, "ann,bob,cid,");
    control_close(other);
    sessile_store_close(store);
}

static void names_survive_a_reseal(void **state)
{
    files *f = *state;
    sessile_error err;
    sessile_reseal_state last;

    lock_user(f->control, KEYED_USER);
    lock_user(f->control, "bob");
    must(sessile_keys_rotate(f->store, NULL, NULL, &err), &err);
    must(keyed_reseal(f->store, NULL, &last, &err), &err);
    assert_int_equal(last.failed, 0);
    assert_int_equal(last.dropped, 1);
    assert_locks(f->control, KEYED_USER ",bob,"); /* an open handle follows */
    lock_user(f->control, "cid");

    control *again = opened(f->store);
    assert_locks(again, KEYED_USER ",bob,cid,");
    control_close(again);
    assert_int_equal(keyed_files_with(f->path, KEYED_USER), 0);
}

static void a_forgotten_user_has_no_name(void **state)
{
    files *f = *state;
    sessile_error err;

    lock_user(f->control, KEYED_USER);
    lock_user(f->control, "bob");
    must(sessile_forget(f->store, sessile_text(KEYED_USER), NULL, &err), &err);

    control *again = opened(f->store);
    assert_locks(again, "-,bob,");
    lock_user(again, KEYED_USER); /* somebody of the same name, later */
    assert_locks(again, "-,bob," KEYED_USER ",");
    control_close(again);
}

static void no_session_is_there(void **state)
{
    files *f = *state;
    sessile_listed *rows;
    sessile_error err;
    size_t count;

    lock_user(f->control, "ann");
    for (int i = 0; i < 2; i++) { /* without the list cache, and with it */
        must(sessile_list(f->store, NULL, &rows, &count, &err), &err);
        assert_int_equal(count, 0);
        sessile_free(rows);
    }
}

/* The path of the control log. */
static void control_path(const files *f, char path[700])
{
    snprintf(path, 700, "%s/agents/guard.control/000.jsonl", f->path);
    if (access(path, R_OK))
        fail_msg("%s is not there", path);
}

static void a_damaged_log_is_not_trusted(void **state)
{
    files *f = *state;
    char path[700];
    sessile_error err;
    buf data;
    FILE *file;

    lock_user(f->control, "ann");
    lock_user(f->control, "bob");
    control_path(f, path);
    file = fopen(path, "r+b");
    assert_non_null(file);
    assert_int_equal(fseek(file, -120, SEEK_END), 0);
    int c = fgetc(file);
    assert_int_equal(fseek(file, -120, SEEK_END), 0);
    fputc(c == 'A' ? 'B' : 'A', file);
    fclose(file);

    control *again = opened(f->store);
    assert_int_equal(control_look(again, NULL, &err), SESSILE_DAMAGED);
    assert_int_equal(control_each(again, CONTROL_LOCK, add_user, NULL, &err),
                     SESSILE_DAMAGED);
    buf_init(&data, &allocator_default);
    buf_puts(&data, "{}");
    assert_int_equal(control_append(again, CONTROL_HOLD, &data, 1, NULL, &err),
                     SESSILE_DAMAGED);
    buf_deinit(&data);
    control_close(again);
}

static void a_log_that_was_cut_is_missed(void **state)
{
    files *f = *state;
    char path[700], line[4096];
    sessile_error err;
    FILE *file;

    lock_user(f->control, "ann");
    control_path(f, path);
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    assert_int_equal(truncate(path, (off_t)strlen(line)), 0);
    for (int i = 0; i < 2; i++)
        assert_true(control_look_now(f->control, NULL, &err));
    /* who opens it then sees what is left: an older log */
    control *again = opened(f->store);
    assert_locks(again, "");
    control_close(again);
}

static void what_cannot_be_kept_is_refused(void **state)
{
    files *f = *state;
    sessile_error err;
    buf data;

    buf_init(&data, &allocator_default);
    buf_puts(&data, "[]");
    assert_int_equal(control_append(f->control, CONTROL_LOCK, &data, 1, NULL, &err),
                     SESSILE_INVALID);
    buf_clear(&data);
    buf_puts(&data, "{\"a\":\"");
    for (int i = 0; i < 70000; i++)
        buf_putc(&data, 'a');
    buf_puts(&data, "\"}");
    assert_int_equal(control_append(f->control, CONTROL_LOCK, &data, 1, NULL, &err),
                     SESSILE_INVALID);
    buf_deinit(&data);
    assert_locks(f->control, "");
}

static void a_volatile_store_has_one_too(void **state)
{
    sessile_store *store;
    sessile_error err;
    control *c;

    (void)state;
    must(sessile_open(&store, "ram:", NULL, &err), &err);
    c = opened(store);
    lock_user(c, "ann");
    assert_locks(c, "ann,");
    control_close(c);
    sessile_store_close(store);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        CASE(facts_are_kept_in_order),      CASE(another_handle_sees_a_fact),
        CASE(names_survive_a_reseal),       CASE(a_forgotten_user_has_no_name),
        CASE(no_session_is_there),          CASE(a_damaged_log_is_not_trusted),
        CASE(a_log_that_was_cut_is_missed), CASE(what_cannot_be_kept_is_refused),
        CASE(a_volatile_store_has_one_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
