/* test_error.c: errors: their sentences, times and rules; the names of statuses. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#undef fail /* the engine has a function of that name */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

static void error_message_is_cut_between_characters(void **state)
{
    sessile_error err;
    char text[600];
    size_t i;
    (void)state;
    for (i = 0; i + 2 < sizeof text; i += 2)
        memcpy(text + i, "\xc3\xa9", 3);
    assert_int_equal(fail(&err, SESSILE_INVALID, "a%s", text), SESSILE_INVALID);
    assert_int_equal(err.code, SESSILE_INVALID);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_true(utf8_valid(err.message, strlen(err.message)));
    fail(&err, SESSILE_INVALID, "%s", text); /* one byte less: a character is cut off */
    assert_int_equal(strlen(err.message), sizeof err.message - 2);
    assert_true(utf8_valid(err.message, strlen(err.message)));
}

static void error_message_has_no_control_characters(void **state)
{
    sessile_error err;
    (void)state;
    fail(&err, SESSILE_IO, "a\n\x1b[31m\x7f%s",
         "\xc2\x9b"
         "1m\xff");
    assert_string_equal(err.message, "a??[31m???1m?");
}

static void a_new_error_has_no_time_of_an_old_one(void **state)
{
    sessile_error err = {.code = SESSILE_LIMIT, .message = "wait", .retry_ms = 1234};
    (void)state;
    fail_prefix(&err, "it");
    assert_int_equal(err.retry_ms, 1234);
    fail(&err, SESSILE_IO, "x");
    assert_int_equal(err.retry_ms, 0);
    assert_int_equal(fail_rule(&err, SESSILE_DENIED, "a_rule", "no %s", "way"),
                     SESSILE_DENIED);
    assert_string_equal(err.rule, "a_rule");
    assert_string_equal(err.message, "no way");
    assert_int_equal(fail(&err, SESSILE_DENIED, "other"), SESSILE_DENIED);
    assert_string_equal(err.rule, "");
    err.retry_ms = 5;
    error_clear(&err);
    assert_int_equal(err.retry_ms, 0);
}

static void error_may_be_absent(void **state)
{
    (void)state;
    assert_int_equal(fail(NULL, SESSILE_IO, "x"), SESSILE_IO);
    assert_int_equal(fail_errno(NULL, ENOSPC, "x"), SESSILE_FULL);
    assert_int_equal(fail_nomem(NULL), SESSILE_NOMEM);
    error_clear(NULL);
}

static void error_prefix_stands_before_the_message(void **state)
{
    sessile_error err;
    char text[600];
    (void)state;
    fail(&err, SESSILE_DAMAGED, "bad line");
    assert_int_equal(fail_prefix(&err, "file %d", 7), SESSILE_DAMAGED);
    assert_string_equal(err.message, "file 7: bad line");
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = 0;
    fail(&err, SESSILE_DAMAGED, "%s", text);
    fail_prefix(&err, "p");
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
    assert_memory_equal(err.message, "p: xxx", 6);
    fail_prefix(&err, "%s", text);
    assert_int_equal(strlen(err.message), sizeof err.message - 1);
}

static void errno_maps_to_a_status(void **state)
{
    sessile_error err;
    (void)state;
    assert_int_equal(status_of_errno(ENOSPC), SESSILE_FULL);
    assert_int_equal(status_of_errno(EDQUOT), SESSILE_FULL);
    assert_int_equal(status_of_errno(EACCES), SESSILE_DENIED);
    assert_int_equal(status_of_errno(EPERM), SESSILE_DENIED);
    assert_int_equal(status_of_errno(EROFS), SESSILE_DENIED);
    assert_int_equal(status_of_errno(ELOOP), SESSILE_DENIED);
    assert_int_equal(status_of_errno(ENOENT), SESSILE_NOTFOUND);
    assert_int_equal(status_of_errno(EEXIST), SESSILE_EXISTS);
    assert_int_equal(status_of_errno(ENOMEM), SESSILE_NOMEM);
    assert_int_equal(status_of_errno(EIO), SESSILE_IO);
    assert_int_equal(fail_errno(&err, ENOENT, "cannot open %s", "x"), SESSILE_NOTFOUND);
    assert_string_equal(err.message, "cannot open x: No such file or directory");
}

static void every_status_has_its_name(void **state)
{
    int i, j;
    (void)state;
    for (i = 0; i <= SESSILE_CLOSED; i++) {
        for (j = 0; j < i; j++)
            assert_string_not_equal(sessile_status_name((sessile_status)i),
                                    sessile_status_name((sessile_status)j));
        assert_string_not_equal(sessile_status_name((sessile_status)i), "UNKNOWN");
    }
    assert_string_equal(sessile_status_name(SESSILE_NOTFOUND), "NOTFOUND");
    assert_string_equal(sessile_status_name((sessile_status)99), "UNKNOWN");
    assert_string_equal(sessile_version(), SESSILE_VERSION);
    assert_string_equal(sessile_hook_name(SESSILE_HOOK_SHOULD_COMPACT), "should_compact");
    assert_string_equal(sessile_hook_name((sessile_hook)3), "unknown");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_message_is_cut_between_characters),
        cmocka_unit_test(error_message_has_no_control_characters),
        cmocka_unit_test(a_new_error_has_no_time_of_an_old_one),
        cmocka_unit_test(error_may_be_absent),
        cmocka_unit_test(error_prefix_stands_before_the_message),
        cmocka_unit_test(errno_maps_to_a_status),
        cmocka_unit_test(every_status_has_its_name),
    };
    return cmocka_run_group_tests_name("errors", tests, NULL, NULL);
}
