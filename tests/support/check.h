/* check.h: assertions about statuses and the errors that come with them. */
#ifndef SUPPORT_CHECK_H
#define SUPPORT_CHECK_H

#include "sessile.h"

/* Fails the test, with the error's message, unless status is OK. */
void must(sessile_status status, const sessile_error *err);
/* The message has this part. */
void assert_says(const sessile_error *err, const char *part);
/* The status and the error's code are as expected, and the message has this part. */
void assert_refused(sessile_status got, sessile_status expected, const sessile_error *err,
                    const char *part);

#endif
