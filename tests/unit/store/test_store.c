/*
 * test_store.c: what the stores of one process promise, the file store and the one in
 * memory.
 *
 * Own stores: it names each that it is about.
 */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail

#include <stdlib.h>
#include <string.h>

#include "support/raw_store.h"

#define T p.st.table
#define S p.st.self

static raw_kind current;

static void what_is_appended_is_read_back(void **state)
{
    raw_store p;
    sessile_error err = {0};
    char bytes[16];
    size_t got;
    int poisoned;
    (void)state;
    sessile_backend_log *log = raw_open_log(&p, current, "one\n");
    raw_holds(&p, log, "one\n");
    sessile_log_end end = {1, 4, {1}};
    const unsigned char tag[16] = {2}, tag2[16] = {3};
    assert_int_equal(T->append(log, &end, "two\nthree\n", 10, 2, tag, &poisoned, &err),
                     SESSILE_OK);
    assert_int_equal(poisoned, 0);
    assert_int_equal(end.count, 3);
    assert_int_equal(end.bytes, 14);
    assert_memory_equal(end.tag, tag, 16);
    assert_int_equal(T->append(log, &end, "4\n", 2, 1, tag2, &poisoned, &err),
                     SESSILE_OK);
    assert_int_equal(T->sync(log, &err), SESSILE_OK);
    raw_holds(&p, log, "one\ntwo\nthree\n4\n");
    assert_int_equal(T->read(log, 1, 4, bytes, 3, &got, &err), SESSILE_OK);
    assert_int_equal(got, 3);
    assert_memory_equal(bytes, "two", 3);
    assert_int_equal(T->read(log, 3, 14, bytes, 10, &got, &err), SESSILE_OK);
    assert_int_equal(got, 2);
    assert_int_equal(T->read(log, 4, 16, bytes, 10, &got, &err), SESSILE_OK);
    assert_int_equal(got, 0);
    raw_close_log(&p, log);
}

static void append_where_the_log_does_not_end_is_CONFLICT(void **state)
{
    raw_store p;
    sessile_error err = {0};
    int poisoned;
    (void)state;
    sessile_backend_log *a = raw_open_log(&p, current, "one\n"), *b = raw_log(&p, "log");
    sessile_log_end from_a = {1, 4, {0}}, from_b = from_a;
    const unsigned char tag[16] = {7};
    assert_int_equal(T->append(a, &from_a, "two\n", 4, 1, tag, &poisoned, &err),
                     SESSILE_OK);
    assert_int_equal(T->append(b, &from_b, "2nd\n", 4, 1, tag, &poisoned, &err),
                     SESSILE_CONFLICT);
    assert_int_equal(poisoned, 0);
    assert_int_equal(from_b.bytes, 4);
    raw_holds(&p, b, "one\ntwo\n");
    sessile_log_end beyond = {9, 99, {0}};
    assert_int_equal(T->append(b, &beyond, "x\n", 2, 1, tag, &poisoned, &err),
                     SESSILE_TRUNCATED);
    raw_holds(&p, a, "one\ntwo\n");
    T->close(a);
    raw_close_log(&p, b);
}

static void names_taken_and_missing_are_told(void **state)
{
    raw_store p;
    sessile_error err = {0};
    sessile_backend_log *log = (void *)1;
    (void)state;
    raw_open(&p, current);
    assert_int_equal(T->open(S, "main", "log", &log, &err), SESSILE_NOTFOUND);
    assert_null(log);
    assert_int_equal(T->create(S, "main", "log", "one\n", 4, &err), SESSILE_OK);
    assert_int_equal(T->create(S, "main", "log", "two\n", 4, &err), SESSILE_EXISTS);
    assert_int_equal(T->create(S, "else", "log", "two\n", 4, &err), SESSILE_OK);
    assert_int_equal(T->open(S, "main", "other", &log, &err), SESSILE_NOTFOUND);
    log = raw_log(&p, "log");
    raw_holds(&p, log, "one\n");
    raw_close_log(&p, log);
}

static void names_that_lead_elsewhere_are_INVALID(void **state)
{
    static const char *const bad[] = {"",     ".", "..",  "a/b", "/etc", ".hidden",
                                      "a\nb", "A", "a b", "~",   "a\\b", "\xc3\xa9"};
    raw_store p;
    char longest[300];
    (void)state;
    memset(longest, 'a', sizeof longest);
    longest[201] = 0;
    raw_open(&p, current);
    for (size_t i = 0; i <= sizeof bad / sizeof *bad; i++) {
        const char *name = i < sizeof bad / sizeof *bad ? bad[i] : longest;
        sessile_error err = {0};
        sessile_backend_log *log;
        char *blob;
        size_t size;
        assert_int_equal(T->create(S, name, "log", "x\n", 2, &err), SESSILE_INVALID);
        assert_int_equal(T->create(S, "main", name, "x\n", 2, &err), SESSILE_INVALID);
        assert_int_equal(T->open(S, name, "log", &log, &err), SESSILE_INVALID);
        assert_int_equal(T->open(S, "main", name, &log, &err), SESSILE_INVALID);
        assert_int_equal(T->blob_get(S, name, &blob, &size, &err), SESSILE_INVALID);
        assert_int_equal(T->blob_put_new(S, name, "x", 1, &err), SESSILE_INVALID);
    }
    assert_int_equal(raw_has_logs(&p), 0);
    raw_close(&p);
}

static void lock_excludes_other_handles(void **state)
{
    raw_store p;
    sessile_error err = {0};
    int replaced = 7;
    (void)state;
    sessile_backend_log *a = raw_open_log(&p, current, "one\n"), *b = raw_log(&p, "log");
    const int sh = SESSILE_LOCK_SHARED, ex = SESSILE_LOCK_EXCLUSIVE;
    assert_int_equal(T->lock(a, ex, 0, &replaced, &err), SESSILE_OK);
    assert_int_equal(replaced, 0);
    assert_int_equal(T->lock(b, ex, 0, &replaced, &err), SESSILE_BUSY);
    assert_int_equal(T->lock(b, sh, 0, &replaced, &err), SESSILE_BUSY);
    assert_int_equal(T->lock(b, ex, 30, &replaced, &err), SESSILE_BUSY);
    T->unlock(a);
    assert_int_equal(T->lock(a, sh, 0, &replaced, &err), SESSILE_OK);
    assert_int_equal(T->lock(b, sh, 0, &replaced, &err), SESSILE_OK);
    T->unlock(a);
    assert_int_equal(T->lock(a, ex, 0, &replaced, &err), SESSILE_BUSY);
    T->unlock(b);
    assert_int_equal(T->lock(a, ex, 0, &replaced, &err), SESSILE_OK);
    /* a handle that closes gives it back */
    T->close(a);
    assert_int_equal(T->lock(b, ex, 0, &replaced, &err), SESSILE_OK);
    T->unlock(b);
    T->unlock(b);
    raw_close_log(&p, b);
}

static void list_shows_every_log_once(void **state)
{
    raw_store p;
    sessile_error err = {0};
    raw_names all = {"", 99}, some = {"", 99}, one = {"", 1}, none = {"", 99};
    (void)state;
    raw_open(&p, current);
    assert_int_equal(T->list(S, NULL, raw_note, &none, &err), SESSILE_OK);
    assert_int_equal(raw_has_logs(&p), 0);
    assert_int_equal(T->create(S, "main", "a", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->create(S, "main", "=b", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->create(S, "else", "a", "x\n", 2, &err), SESSILE_OK);
    assert_int_equal(T->list(S, NULL, raw_note, &all, &err), SESSILE_OK);
    assert_int_equal(T->list(S, "else", raw_note, &some, &err), SESSILE_OK);
    assert_int_equal(T->list(S, NULL, raw_note, &one, &err), SESSILE_OK);
    assert_int_equal(T->list(S, "nobody", raw_note, &none, &err), SESSILE_OK);
    assert_int_equal(strlen(all.text), strlen("main/a main/=b else/a "));
    assert_non_null(strstr(all.text, "main/a "));
    assert_non_null(strstr(all.text, "main/=b "));
    assert_string_equal(some.text, "else/a ");
    assert_int_equal(one.left, 0);
    assert_string_equal(none.text, "");
    assert_int_equal(raw_has_logs(&p), 1);
    raw_close(&p);
}

static void blob_is_put_once_and_whole(void **state)
{
    raw_store p;
    sessile_error err = {0};
    char *data = (char *)1;
    size_t size = 9;
    (void)state;
    raw_open(&p, current);
    assert_int_equal(T->blob_get(S, "keyring", &data, &size, &err), SESSILE_NOTFOUND);
    assert_null(data);
    assert_int_equal(size, 0);
    assert_int_equal(T->blob_put_new(S, "keyring", "a\0b", 3, &err), SESSILE_OK);
    assert_int_equal(T->blob_put_new(S, "keyring", "c", 1, &err), SESSILE_EXISTS);
    assert_int_equal(T->blob_get(S, "keyring", &data, &size, &err), SESSILE_OK);
    assert_int_equal(size, 3);
    assert_memory_equal(data, "a\0b", 4);
    sessile_free(data);
    assert_int_equal(raw_has_logs(&p), 0);
    raw_close(&p);
}

static void out_of_memory_is_NOMEM_and_changes_nothing(void **state)
{
    (void)state;
    for (size_t at = 1;; at++) {
        raw_store p;
        sessile_error err = {0};
        sessile_backend_log *log = NULL;
        char *blob = NULL;
        size_t size;
        int poisoned;
        sessile_log_end end = {1, 4, {0}};
        const unsigned char tag[16] = {0};
        raw_init(&p);
        p.os.lazy = 1;
        p.memory.fail_at = at;
        sessile_status status = raw_try(&p, current, &err);
        if (!status)
            status = T->create(S, "main", "log", "one\n", 4, &err);
        if (!status)
            status = T->open(S, "main", "log", &log, &err);
        if (!status)
            status = T->append(log, &end, "two\n", 4, 1, tag, &poisoned, &err);
        if (!status)
            status = T->blob_put_new(S, "keyring", "k", 1, &err);
        if (!status)
            status = T->blob_get(S, "keyring", &blob, &size, &err);
        size_t calls = p.memory.calls;
        p.memory.fail_at = 0;
        assert_true(status == SESSILE_OK || status == SESSILE_NOMEM);
        sessile_free(blob);
        if (log) {
            if (end.bytes == 4)
                raw_holds(&p, log, "one\n");
            T->close(log);
        }
        raw_close(&p);
        if (calls < at)
            break;
    }
}

static int use_file(void **state)
{
    (void)state;
    current = RAW_FILE;
    return 0;
}

static int use_ram(void **state)
{
    (void)state;
    current = RAW_RAM;
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_appended_is_read_back),
        cmocka_unit_test(append_where_the_log_does_not_end_is_CONFLICT),
        cmocka_unit_test(names_taken_and_missing_are_told),
        cmocka_unit_test(names_that_lead_elsewhere_are_INVALID),
        cmocka_unit_test(lock_excludes_other_handles),
        cmocka_unit_test(list_shows_every_log_once),
        cmocka_unit_test(blob_is_put_once_and_whole),
        cmocka_unit_test(out_of_memory_is_NOMEM_and_changes_nothing),
    };
    int failed = cmocka_run_group_tests_name("file", tests, use_file, NULL);
    return failed + cmocka_run_group_tests_name("ram", tests, use_ram, NULL);
}
