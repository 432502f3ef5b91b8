/* check.c: assertions about statuses and errors. */
#include "support/check.h"

#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

void must(sessile_status status, const sessile_error *err)
{
    if (status)
        fail_msg("%s: %s", sessile_status_name(status), err->message);
}

void assert_says(const sessile_error *err, const char *part)
{
    if (!strstr(err->message, part))
        fail_msg("\"%s\" is not in \"%s\"", part, err->message);
}

void assert_refused(sessile_status got, sessile_status expected, const sessile_error *err,
                    const char *part)
{
    assert_string_equal(sessile_status_name(got), sessile_status_name(expected));
    assert_int_equal(err->code, expected);
    assert_says(err, part);
}
